#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The exchange in C (docs/c-exchange.md) between types that offer it and ext/cai_python.h.

    check_exchange.py [--cc cc] [--dlpack FOLDER] [--count 2000] [--imports 100000] [--sanitize] [--limited]

exchange.c is built in a temporary folder, and each part of the test runs in a process of its own:

    facts       random arrays by the exchange, against what their dictionaries say, and those that are exported
    numpy       arrays of NumPy in host memory by the exchange, against what NumPy says of them
    pending     what is pending, where the memory lives, masks, rows: all that a dictionary cannot say
    offers      which attributes are an exchange, who inherits them, what comes first
    refused     what describe says and is not taken: nothing is left behind
    references  how many references each kind of import holds, and when they go
    elsewhere   arrays released by a thread that has never seen Python, while the GIL is held
    group       the k-th of n objects fails: all or none
    cache       more types than are remembered; types, modules and states that go
    threads     threads of Python that import arrays of many types
    adopt       instances made of arrays
    memory      many imports in a row
    page        the tables and the two modules of docs/c-exchange.md

With --sanitize all but `memory` and `page` run again with a module that was built with -fsanitize=address,undefined.
Exit status 0: all is right; 1: not; 77: no compiler, or no Python.h.
"""

from __future__ import annotations

import argparse
import gc
import importlib.machinery
import importlib.util
import itertools
import os
import pathlib
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import tracemalloc
import weakref
from typing import Any, Callable, Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from check_python import (CUDA, HOST, SANITIZE, WARNINGS, Exporter, attempt, references_of, resident,  # noqa: E402
                          sanitizer_environment, why_skipped)

EXCHANGE = "__cai_exchange__"
DLPACK = ("__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__")
ADDRESS = 139637976727552
UNKNOWN, NONE, STREAM, EVENT = range(4)  # CAI_SYNC_...
HOST_MEMORY = 1
HAD_STRIDES = 256
REMEMBERS = getattr(sys, "_is_gil_enabled", lambda: True)()  # types; without the GIL none

probe: Any = None  # the module, in the process of a part
wrong: list[str] = []
checks = 0


def check(good: Any, text: str) -> bool:
    """Counts, and notes what is wrong."""
    global checks
    checks += 1
    if not good:
        wrong.append(text)
    return bool(good)


class Own(Exception):
    """An exception that nobody else raises."""


class OwnAttribute(AttributeError):
    """What says that there is no attribute."""


def take(thing: Any, flags: int = 0) -> tuple[dict[str, Any] | None, BaseException | None]:
    """The facts of one object; nothing of it is kept."""
    held, error = attempt(lambda: probe.hold((thing,), flags))
    if error is not None:
        return None, error
    facts = probe.facts(held)[0]
    probe.release(held)
    return facts, None


def grown(things: list[Any], before: list[int]) -> list[int]:
    """References that are there now, and were not before."""
    return [now - then for now, then in zip(references_of(things), before)]


def live() -> int:
    return probe.counts()[3]


def released() -> int:
    return probe.counts()[1]


# ------------------------------------------------------------------------------------ facts


def random_parts(rng: random.Random) -> dict[str, Any]:
    """Arguments of a type of exchange.c."""
    typestr = rng.choice(["<f4", "<f8", ">f4", "|u1", "<i2", ">i8", "<c16", "|b1", "<c8", "|S5", "<U3", "|V12",
                          "<m8[25s]", ">M8[ns]", "<f2", "|i1"])  # fmt: skip
    size = int(re.sub(r"\D", "", typestr[2:4])) * (4 if typestr[1] == "U" else 1)
    shape = tuple(rng.choice((1, 1, 2, 3, 5, 0 if rng.random() < 0.3 else 4)) for _ in range(rng.randrange(5)))
    strides: tuple[int, ...] | None = None
    if rng.random() < 0.7:
        order = list(range(len(shape)))
        if rng.random() < 0.5:
            rng.shuffle(order)
        steps, step = [0] * len(shape), size
        for axis in order:
            steps[axis] = step * rng.choice((1, 1, 1, -1, 2))
            step = abs(steps[axis]) * max(shape[axis], 1)
            if rng.random() < 0.1:
                steps[axis] = rng.choice((0, 1, size))
        strides = tuple(steps)
    stream = rng.choice((0, 0, 1, 2, 7, 2**40, 2**64 - 1))
    return {"address": ADDRESS + rng.choice((0, 0, 1, 4, 8)), "shape": shape, "typestr": typestr, "strides": strides,
            "read_only": rng.random() < 0.3, "sync": STREAM if stream else NONE, "stream": stream}  # fmt: skip


def dictionary_of(parts: dict[str, Any]) -> dict[str, Any]:
    """What an exporter says of the same array in version 3."""
    return {"shape": parts["shape"], "typestr": parts["typestr"], "data": (parts["address"], parts["read_only"]),
            "version": 3, "strides": parts["strides"], "stream": parts["stream"] or None}  # fmt: skip


def difference(a: dict[str, Any], b: dict[str, Any], but: tuple[str, ...] = ()) -> list[str]:
    return [f"{key}: {a[key]} and {b[key]}" for key in a if key not in but and a[key] != b[key]]


def part_facts(options: argparse.Namespace) -> None:
    rng = random.Random(options.seed)
    maker = probe.make_type("plain")
    kinds = {"empty": 0, "strided": 0, "stream": 0, "swapped": 0, "overlapping": 0}
    for _ in range(options.count):
        parts = random_parts(rng)
        thing, table = maker(**parts), dictionary_of(parts)
        held, error = attempt(lambda: probe.hold((thing,), rng.choice((0, probe.BORROW, probe.LENIENT))))
        if not check(error is None, f"{parts}: {error!r}"):
            continue
        facts = probe.facts(held)[0]
        by_table, error = take(Exporter(table))
        if check(error is None, f"{table}: {error!r}"):
            found = difference(facts, by_table, ("owned",))
            check(not found, f"{parts}, by the exchange and by its dictionary: {found}")
        said = {"data": parts["address"] if facts["size"] else 0, "shape": parts["shape"], "typestr": parts["typestr"],
                "stream": parts["stream"], "sync": parts["sync"]}  # fmt: skip
        check(not difference(said, facts), f"{parts}: {difference(said, facts)}")
        check(bool(facts["flags"] & 1) is not parts["read_only"], f"{parts}: writable {facts['flags'] & 1}")
        if parts["strides"]:
            check(facts["strides"] == parts["strides"], f"{parts}: strides {facts['strides']}")
        back, error = attempt(lambda: probe.interface(held, 3))
        if check(error is None, f"{parts}: export {error!r}"):
            again, error = take(Exporter(back))
            check(error is None, f"{back}: {error!r}")
            but = ("owned", "strides", "flags") if facts["flags"] & 2 else ("owned", "flags")
            if again is not None and facts["size"] == 0:
                but += ("sync", "stream")  # no work is pending on nothing
            found = difference(facts, again, but) if again else ["nothing"]
            check(not found, f"{parts}, exported and imported: {found}")
            check(again and not (facts["flags"] ^ again["flags"]) & ~HAD_STRIDES, f"{parts}: flags, exported and imported")
        probe.release(held)
        kinds["empty"] += facts["size"] == 0
        kinds["strided"] += not facts["flags"] & 2
        kinds["stream"] += facts["sync"] == STREAM
        kinds["swapped"] += bool(facts["flags"] & 128)
        kinds["overlapping"] += bool(facts["flags"] & 32)
    check(live() == 0, f"live: {live()}")
    check(min(kinds.values()) > options.count // 50, f"too few of a kind: {kinds}")
    print(f"{options.count} arrays: {kinds}")


def as_inspect_says(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts by the keys of cai_inspect."""
    flags = facts["flags"]
    overlap = "no" if flags & 16 else "yes" if flags & 32 else "undecided"
    said = {key: facts[key] for key in ("itemsize", "size", "nbytes", "ndim", "typestr", "data", "version", "mask")}
    said.update(ok=True, strides=list(facts["strides"]), shape=list(facts["shape"]), extent=[facts["lo"], facts["hi"]],
                c_contiguous=bool(flags & 2), f_contiguous=bool(flags & 4), aligned=bool(flags & 8),
                read_only=not flags & 1, byte_swapped=bool(flags & 128), self_overlap=overlap, fields=None,
                sync="none" if facts["sync"] == NONE else "?", stream=facts["stream"] or None)  # fmt: skip
    return said


def part_numpy(options: argparse.Namespace) -> None:
    try:
        import numpy_arrays
    except ImportError as error:
        print(f"skipped: {error}")
        return
    rng = random.Random(options.seed)
    maker = probe.make_type("plain")
    for _ in range(options.count):
        a = numpy_arrays.random_array(rng)
        table = a.__array_interface__
        address, fixed = table["data"]
        thing = maker(address, a.shape, a.dtype.str, strides=table["strides"], read_only=fixed, memory=HOST_MEMORY)
        facts, error = take(thing, probe.HOST)
        if not check(facts is not None, f"{table}: {error!r}"):
            continue
        said = as_inspect_says(facts)
        found = numpy_arrays.array_differences(a, numpy_arrays.self_overlap(a), said)
        found = [text for text in found if not text.startswith("fields")]
        check(not found and facts["memory"] == HOST_MEMORY, f"{table}: {found}")
    print(f"{options.count} arrays of NumPy")


def part_pending(options: argparse.Namespace) -> None:
    """What a dictionary cannot say, or not in each version."""
    del options
    maker = probe.make_type("plain")
    fields = {"device": 3, "memory": 4, "sync": EVENT, "stream": 9, "event": 2**63 + 1, "thread": 77}
    combinations = 0
    for sync, stream, event, thread in itertools.product(range(4), (0, 1, 2, 7, 2**64 - 1), (0, 5), (0, 2**63)):
        for device, memory in ((-1, 0), (0, 4), (7, 3), (0, 2)):
            said = {"sync": sync, "stream": stream, "event": event, "thread": thread, "device": device, "memory": memory}
            for flags in (0, probe.BORROW):
                facts, error = take(maker(ADDRESS, (2, 3), **said), flags)
                good = facts is not None and not difference(said, facts)
                check(good, f"{said}, flags {flags}: {error!r}, {facts and difference(said, facts)}")
                combinations += 1
    for version in (0, 1, 2):
        facts, _ = take(maker(ADDRESS, (2, 3), sync=UNKNOWN))
        table = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": version}
        by_table, error = take(Exporter(table))
        good = facts and by_table and not difference(facts, by_table, ("version",))
        check(good, f"unknown, and version {version}: {error!r}")
    mask = maker(ADDRESS + 64, (3,), "|b1", sync=STREAM, stream=5, read_only=True)
    masked = maker(ADDRESS, (2, 3), mask=mask, **fields)
    for flags in (probe.MASK, probe.MASK | probe.BORROW):
        facts, error = take(masked, flags)
        inner = facts and facts["mask"]
        alone, _ = take(mask)
        check(inner is not None and not difference(inner, alone, ("owned",)), f"a mask: {error!r}, {inner}")
        check(inner and not inner["owned"] and inner["mask"] is None, f"a mask is itself without one, and borrowed: {inner}")
        check(facts and not difference(fields, facts), f"the array of a mask: {facts}")
    records = maker(ADDRESS, (5,), "|V2", fields=True)
    rows = [("a", 0, 1, -1), ("b", 1, 1, -1)]
    for flags, expected in ((0, []), (probe.BORROW, []), (probe.WITH_FIELDS, rows), (probe.WITH_FIELDS | probe.BORROW, rows)):
        facts, error = take(records, flags)
        rows_there = facts and (facts["fields"], facts["has_rows"])
        check(rows_there == (expected, bool(expected)), f"rows with flags {flags}: {error!r}, {rows_there}")
    deep = maker(ADDRESS, (1,) * 64, strides=tuple(range(64)))
    facts, error = take(deep)
    check(facts and facts["shape"] == (1,) * 64 and facts["strides"] == tuple(range(64)), f"64 axes: {error!r}")
    scalar, error = take(maker(ADDRESS, ()))
    check(scalar and scalar["shape"] == () and scalar["size"] == 1, f"a scalar: {error!r}")
    later, error = take(maker(ADDRESS, (2, 3), mode=probe.LONG_ARRAY))
    check(later and later["struct_size"] > take(maker(ADDRESS, (2, 3)))[0]["struct_size"], f"a later struct: {error!r}")
    print(f"{combinations} combinations")


# ----------------------------------------------------------------------------------- offers


def loud_property() -> Any:
    def raise_it(_: Any) -> Any:
        raise Own("it was asked for what comes later")

    return property(raise_it)


def with_metaclass(answer: Callable[[], Any], asked: list[str], base: type = object) -> type:
    """A type whose metaclass answers for the exchange."""
    class Meta(type(base)):  # type: ignore[misc]
        @property
        def __cai_exchange__(cls) -> Any:
            asked.append(cls.__name__)
            return answer()

    return Meta("Asked", (base,), {CUDA: {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS + 1024, False), "version": 3}})


def part_offers(options: argparse.Namespace) -> None:
    del options
    table = dictionary_of({"shape": (4,), "typestr": "<f8", "address": ADDRESS + 512, "read_only": True, "strides": None,
                           "stream": 0})  # fmt: skip
    offered = {"plain": True, "no adopt": True, "long": True, "other abi": False, "short": False, "header": False,
               "no describe": False, "other name": False, "no name": False, "none": False}  # fmt: skip
    for kind, expected in offered.items():
        maker = probe.make_type(kind)
        check(hasattr(maker, EXCHANGE) is (kind != "none"), f"{kind}: the attribute")
        if kind != "none":
            holders = sys.getrefcount(getattr(maker, EXCHANGE)) - sys.getrefcount(object())
            check(holders == 1, f"{kind}: {holders} hold the capsule")
        for type_, of_type in ((maker, "itself"), (type("Sub", (maker,), {}), "a subclass"),
                               (type("Sub", (type("Mid", (maker,), {}),), {}), "one of a subclass")):  # fmt: skip
            thing = type_(ADDRESS, (2, 3), sync=STREAM, stream=7)
            for _ in range(3):
                facts, error = take(thing)
                if expected:
                    check(facts and facts["stream"] == 7, f"{kind}, {of_type}: {error!r}")
                else:
                    check(type(error) is TypeError, f"{kind}, {of_type}: {error!r}, {facts}")
            check(thing.described == (3 if expected else 0), f"{kind}, {of_type}: described {thing.described} times")
        if kind != "none":
            holders = sys.getrefcount(getattr(maker, EXCHANGE)) - sys.getrefcount(object())
            check(holders == 1, f"{kind}, imported: {holders} hold the capsule")
        with_table = type("Sub", (maker,), {CUDA: table})(ADDRESS, (2, 3))
        facts, error = take(with_table)
        data = ADDRESS if expected else ADDRESS + 512
        check(facts and facts["data"] == data, f"{kind}, a subclass with a dictionary: {error!r}, {facts}")
    maker = probe.make_type("plain")
    loud = type("Loud", (maker,), {name: loud_property() for name in (CUDA, HOST, *DLPACK[:2])})
    for flags in (0, probe.HOST, probe.BORROW):
        facts, error = take(loud(ADDRESS, (2, 3)), flags)
        check(facts and facts["data"] == ADDRESS, f"what comes later was asked for: {error!r}")
    if hasattr(probe, "offer_table"):
        probe.offer_table(maker)
        probe.offer_table(loud)
        for type_ in (maker, loud, type("Sub", (maker,), {})):
            facts, error = take(type_(ADDRESS, (2, 3), sync=STREAM, stream=9))
            check(facts and facts["stream"] == 9, f"DLPack's exchange came first: {error!r}")
        print("beside DLPack's exchange in C")
        maker = probe.make_type("plain")
    not_any_more(maker, table)
    not_of_instances(maker, table)
    asked_types(table)
    static_types()


def not_any_more(maker: type, table: dict[str, Any]) -> None:
    """What is no exchange, in place of one that would be inherited."""
    class Wrong:
        pass

    capsule = getattr(probe.make_type("other name"), EXCHANGE)
    for value in (None, 5, "x", {}, Wrong, Wrong(), lambda: None, capsule, id(capsule), b""):
        sub = type("Sub", (maker,), {EXCHANGE: value, CUDA: table})
        facts, error = take(sub(ADDRESS, (2, 3)))
        check(facts and facts["data"] == ADDRESS + 512, f"{value!r:.30} in place of the exchange: {error!r}, {facts}")
        bare = type("Sub", (maker,), {EXCHANGE: value})
        facts, error = take(bare(ADDRESS, (2, 3)))
        check(type(error) is TypeError, f"{value!r:.30} in place of the exchange, and nothing else: {error!r}, {facts}")
    again = type("Sub", (type("Mid", (maker,), {EXCHANGE: None}),), {EXCHANGE: getattr(maker, EXCHANGE), CUDA: table})
    facts, error = take(again(ADDRESS, (2, 3)))
    check(facts and facts["data"] == ADDRESS, f"an exchange that is there again: {error!r}")


def not_of_instances(maker: type, table: dict[str, Any]) -> None:
    """What an instance has of that name is nothing; what a type has is nothing of the type's own."""
    plain = Exporter(table)
    setattr(plain, EXCHANGE, getattr(maker, EXCHANGE))
    facts, error = take(plain)
    check(facts and facts["data"] == ADDRESS + 512, f"an exchange of an instance: {error!r}")
    bare = type("Bare", (), {})()
    setattr(bare, EXCHANGE, getattr(maker, EXCHANGE))
    check(type(take(bare)[1]) is TypeError, "an exchange of an instance, and nothing else")
    sub = type("Sub", (maker,), {})(ADDRESS, (2, 3))
    setattr(sub, EXCHANGE, None)
    facts, error = take(sub)
    check(facts and facts["data"] == ADDRESS, f"an instance cannot hide the exchange of its type: {error!r}")
    for type_ in (maker, type("Sub", (maker,), {})):
        facts, error = take(type_)
        check(type(error) is TypeError, f"a type is no array: {error!r}, {facts}")


def asked_types(table: dict[str, Any]) -> None:
    """Attributes that run code: what they raise, and how often they are asked."""
    del table
    for error in (Own("by the metaclass"), KeyboardInterrupt(), ValueError(), MemoryError(), SystemError("by the metaclass")):
        asked: list[str] = []
        answers: list[Any] = [error, error, None]

        def answer(answers: list[Any] = answers) -> Any:
            now = answers.pop(0)
            if now is None:
                raise OwnAttribute
            raise now

        thing = with_metaclass(answer, asked)()
        for _ in range(2):
            before = references_of([thing, type(thing)])
            facts, got = take(thing)
            check(got is error, f"{type(error).__name__} of the attribute: {got!r}, {facts}")
            got = None
            more = grown([thing, type(thing)], before)
            check(not any(more), f"{type(error).__name__} of the attribute: {more} references")
        facts, got = take(thing)
        check(facts and facts["data"] == ADDRESS + 1024, f"after {type(error).__name__}, none: {got!r}")
        check(len(asked) == 3, f"after an exception the type is asked again: {len(asked)}")
    for name, value, expected in (("OwnAttribute", OwnAttribute, 1024), ("an exchange", None, 0), ("None", "none", 1024)):
        asked = []
        maker = probe.make_type("plain")
        capsule = getattr(maker, EXCHANGE)

        def say(value: Any = value, capsule: Any = capsule) -> Any:
            if value is OwnAttribute:
                raise OwnAttribute
            return None if value == "none" else capsule

        thing = with_metaclass(say, asked, maker)(ADDRESS, (2, 3))
        for _ in range(50):
            facts, got = take(thing)
            check(facts and facts["data"] == ADDRESS + expected, f"the metaclass says {name}: {got!r}")
        check(len(asked) == 1 or not REMEMBERS, f"the metaclass says {name}: asked {len(asked)} times")

    class Descriptor:
        def __get__(self, instance: Any, owner: Any) -> Any:
            raise error

    error = Own("by the descriptor")
    _, got = take(type("Described", (), {EXCHANGE: Descriptor()})())
    check(got is error, f"a descriptor that raises: {got!r}")
    everything = type("Meta", (type,), {"__getattr__": lambda cls, name: 7})("Everything", (), {})
    check(type(take(everything())[1]) is TypeError, "a metaclass that has every attribute")

    def imports() -> Any:
        """Asked, the metaclass imports an instance of the very type."""
        if len(asked) < 5:
            take(thing)
        raise OwnAttribute

    asked = []
    thing = with_metaclass(imports, asked)()
    before = sys.getrefcount(type(thing))
    facts, got = take(thing)
    check(facts and facts["data"] == ADDRESS + 1024, f"a metaclass that imports: {got!r}")
    more = sys.getrefcount(type(thing)) - before
    check(more == int(REMEMBERS), f"a metaclass that imports: {more} references to the type")

    class Answering:
        def __getattribute__(self, name: str) -> Any:
            if name == CUDA:
                return {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
            raise AttributeError(name)

    facts, got = take(Answering())
    check(facts and facts["data"] == ADDRESS, f"an object that answers by __getattribute__: {got!r}")


def static_types() -> None:
    """Types that cannot be changed say so, and are as they were."""
    for type_ in (int, list, type, memoryview):
        _, error = attempt(lambda type_=type_: probe.offer(type_, "plain"))
        check(type(error) is TypeError and not hasattr(type_, EXCHANGE), f"offered to {type_.__name__}: {error!r}")
    late = type("Late", (probe.make_type("none"),), {})
    offered = probe.offer(late, "other abi")
    check(offered is None and type(take(late(ADDRESS, ()))[1]) is TypeError, "another abi, offered to a class of Python")
    late = type("Late", (probe.make_type("none"),), {})
    check(probe.offer(late, "plain") is None and take(late(ADDRESS, ()))[0], "offered to a class of Python")
    sub = type("Sub", (late,), {})
    check(getattr(sub, EXCHANGE) is getattr(late, EXCHANGE), "inherited from a class of Python")


# ---------------------------------------------------------------------------------- refused


def part_refused(options: argparse.Namespace) -> None:
    del options
    maker = probe.make_type("plain")
    mask = maker(ADDRESS + 64, (3,), "|b1")
    names = {probe.OTHER_ABI: BufferError, probe.SHORT_ARRAY: BufferError, probe.MANY_AXES: BufferError,
             probe.MANY_FIELDS: BufferError}  # fmt: skip
    cases: list[tuple[str, Any, type[BaseException]]] = [
        (f"mode {mode}", maker(ADDRESS, (2, 3), mode=mode), kind) for mode, kind in names.items()]
    for mode in (probe.BORROWED, probe.OWNED):
        cases.append((f"a mask, mode {mode}", maker(ADDRESS, (2, 3), mask=mask, mode=mode), ValueError))
        cases.append((f"host memory, mode {mode}", maker(ADDRESS, (2, 3), memory=HOST_MEMORY, mode=mode), TypeError))
    for name, thing, kind in cases:
        for flags in (0, probe.BORROW, probe.LENIENT):
            before, gone, described = sys.getrefcount(thing), released(), thing.described
            facts, error = take(thing, flags)
            check(type(error) is kind, f"{name}, flags {flags}: {error!r}, {facts}")
            error = None
            owned = thing.mode != probe.BORROWED
            check(released() - gone == owned, f"{name}, flags {flags}: released {released() - gone} times")
            check(sys.getrefcount(thing) == before and live() == 0, f"{name}, flags {flags}: references, {live()} live")
            check(thing.described == described + 1, f"{name}, flags {flags}: described {thing.described - described} times")
    text = str(take(maker(ADDRESS, (2, 3), mode=probe.OTHER_ABI))[1])
    check("abi" in text and "1128352049" in text, f"another abi: {text}")
    check("1215" in str(take(maker(ADDRESS, (2, 3), mode=probe.SHORT_ARRAY))[1]) or sys.maxsize < 2**32, "a short struct")
    check("ndim" in str(take(maker(ADDRESS, (2, 3), mode=probe.MANY_AXES))[1]), "65 axes")
    check("mask" in str(take(maker(ADDRESS, (2, 3), mask=mask))[1]), "a mask")
    check("host" in str(take(maker(ADDRESS, (2, 3), memory=HOST_MEMORY))[1]), "host memory")
    for mode in (probe.BORROWED, probe.OWNED):
        facts, error = take(maker(ADDRESS, (2, 3), memory=HOST_MEMORY, mode=mode), probe.HOST)
        check(facts and facts["memory"] == HOST_MEMORY, f"host memory that is asked for: {error!r}")
        facts, error = take(maker(ADDRESS, (2, 3), mask=mask, mode=mode), probe.MASK)
        check(facts and facts["mask"], f"a mask that is asked for: {error!r}")
    for memory in (0, 2, 3, 4):
        facts, error = take(maker(ADDRESS, (2, 3), memory=memory))
        check(facts and facts["memory"] == memory, f"memory {memory}: {error!r}")
    for error in (Own("by describe"), BufferError("by describe"), KeyboardInterrupt(), AttributeError("by describe"),
                  TypeError("by describe"), MemoryError(), SystemError("by describe")):  # fmt: skip
        table = {"shape": (2,), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
        for type_ in (maker, type("Sub", (maker,), {CUDA: table})):  # there is no other way left then
            thing = type_(ADDRESS, (2, 3), mode=probe.RAISES, error=error)
            before = sys.getrefcount(thing)
            _, got = take(thing)
            check(got is error, f"describe raises {type(error).__name__}: {got!r}")
            got = None
            check(sys.getrefcount(thing) == before and live() == 0, f"describe raises {type(error).__name__}: references")
            thing.mode = probe.BORROWED
            check(take(thing)[0], "described after it failed")
    thing = maker(ADDRESS, (2, 3), mode=probe.SILENT)
    before = sys.getrefcount(thing)
    _, error = attempt(lambda: probe.hold((maker(ADDRESS, (2, 3)), thing), 0))
    good = type(error) is RuntimeError and "describe" in str(error)
    check(good, f"describe fails without an exception: {error!r}")
    error = None
    check(sys.getrefcount(thing) == before and live() == 0, "describe fails without an exception: references")
    _, error = attempt(lambda: probe.hold((maker(ADDRESS, (2, 3)),), 4))
    check(type(error) is ValueError, f"flags of no meaning: {error!r}")


# ------------------------------------------------------------------------------- references


def part_references(options: argparse.Namespace) -> None:
    """Exactly what each kind of import holds: (references to the object, arrays that are counted, releases at the end)."""
    del options
    maker = probe.make_type("plain")
    sub = type("Sub", (maker,), {})
    mask = maker(ADDRESS + 64, (3,), "|b1")
    held_by = {(probe.BORROWED, 0): (1, 1, 0), (probe.BORROWED, probe.BORROW): (0, 0, 0),
               (probe.OWNED, 0): (0, 0, 1), (probe.OWNED, probe.BORROW): (0, 0, 1),
               (probe.LONG_ARRAY, 0): (0, 0, 1)}  # fmt: skip
    for (mode, flags), (references, counted, at_end) in held_by.items():
        for type_, more in itertools.product((maker, sub), ({}, {"mask": mask}, {"memory": HOST_MEMORY})):
            thing = type_(ADDRESS, (2, 3), mode=mode, **more)
            wanted = flags | (probe.MASK if "mask" in more else 0) | (probe.HOST if "memory" in more else 0)
            name = f"mode {mode}, flags {wanted}, {type_.__name__}, {list(more)}"
            take(thing, wanted)  # from here on the type is remembered
            things = [thing, type_, mask, getattr(type_, EXCHANGE)]
            before, gone = references_of(things), released()
            for count in (1, 2, 5):
                held = probe.hold((thing,) * count, wanted)
                now = grown(things, before)
                check(now == [references * count, 0, 0, 0], f"{name}: {now} references of {count} arrays")
                check(live() == counted * count, f"{name}: {live()} live of {count} arrays")
                facts = probe.facts(held)
                owned = bool(references or at_end)
                check(all(f["owned"] is owned for f in facts), f"{name}: owned {[f['owned'] for f in facts]}")
                check(released() == gone, f"{name}: released before its end")
                probe.release(held)
                gone += at_end * count
                check(released() == gone, f"{name}: {released() - gone} releases too many")
                now = grown(things, before)
                check(now == [0, 0, 0, 0] and live() == 0, f"{name}: {now} references after the release, {live()} live")
                probe.release(held)
                check(released() == gone and not any(grown(things, before)), f"{name}: released twice")
            del held
    outlives(maker)
    print(f"{len(held_by)} kinds of import")


def outlives(maker: type) -> None:
    """An array keeps its object, unless it is owned by itself, or somebody else keeps it."""
    for mode, flags, kept in ((probe.BORROWED, 0, True), (probe.OWNED, 0, False), (probe.BORROWED, probe.BORROW, False)):
        thing = type("Seen", (maker,), {})(ADDRESS, (2, 3), mode=mode)
        seen, gone = weakref.ref(thing), released()
        held = probe.hold((thing,), flags)
        del thing
        check((seen() is not None) is kept, f"mode {mode}, flags {flags}: the object is {'not ' if kept else ''}kept")
        check(probe.facts(held)[0]["data"] == ADDRESS, f"mode {mode}: what was described stays")
        probe.release(held)
        check(seen() is None, f"mode {mode}, flags {flags}: the object stays")
        check(released() - gone == (mode == probe.OWNED), f"mode {mode}: released {released() - gone} times")


def part_elsewhere(options: argparse.Namespace) -> None:
    del options
    maker = probe.make_type("plain")
    for mode, flags, references, at_end in ((probe.BORROWED, 0, 1, 0), (probe.BORROWED, probe.BORROW, 0, 0),
                                            (probe.OWNED, 0, 0, 1)):  # fmt: skip
        thing = maker(ADDRESS, (2, 3), mode=mode)
        before, gone = sys.getrefcount(thing), released()
        for count in (1, 3, 1000):
            held = probe.hold((thing,) * count, flags)
            probe.release_elsewhere(held)
            gone += at_end * count
            check(released() == gone, f"mode {mode}: {released() - gone} releases too many by a thread")
            now = sys.getrefcount(thing) - before
            check(now == references * count, f"mode {mode}: {now} references of {count}, released and not drained")
            check(live() == references * count, f"mode {mode}: {live()} live of {count}, released and not drained")
            if count == 3:
                probe.hold((), 0)  # an import drops what was released, too
            else:
                probe.drain()
            check(sys.getrefcount(thing) == before and live() == 0, f"mode {mode}: drained, {live()} live")
            probe.release(held)
            del held
            check(released() == gone and sys.getrefcount(thing) == before, f"mode {mode}: released twice")
    print("released by a thread of C that has never seen Python, while the GIL was held")


# ------------------------------------------------------------------------------------ group


def part_group(options: argparse.Namespace) -> None:
    rng = random.Random(options.seed)
    table = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
    makers = [probe.make_type("plain") for _ in range(3)]
    rounds = 0
    for count in (1, 2, 3, 8, 65, 300):
        for k in sorted({0, 1, count // 2, count - 1} & set(range(count))):
            for failing in (probe.RAISES, probe.OTHER_ABI, "dictionary", "nothing", "host"):
                things: list[Any] = [rng.choice((Exporter(dict(table)), rng.choice(makers)(ADDRESS, (2, 3)),
                                                 rng.choice(makers)(ADDRESS, (2, 3), mode=probe.OWNED)))
                                     for _ in range(count)]  # fmt: skip
                error = Own(f"{k} of {count}")
                things[k] = {probe.RAISES: makers[0](ADDRESS, (2, 3), mode=probe.RAISES, error=error),
                             probe.OTHER_ABI: makers[1](ADDRESS, (2, 3), mode=probe.OTHER_ABI),
                             "dictionary": Exporter({**table, "shape": (-1,)}), "nothing": object(),
                             "host": makers[0](ADDRESS, (2, 3), memory=HOST_MEMORY)}[failing]  # fmt: skip
                kind = {probe.RAISES: Own, probe.OTHER_ABI: BufferError, "dictionary": ValueError}.get(failing, TypeError)
                owned = sum(getattr(thing, "mode", 0) == probe.OWNED for thing in things[:k])
                gone = released() + owned + (failing == probe.OTHER_ABI)
                group = tuple(things)
                before = references_of(things)
                flags = rng.choice((0, probe.BORROW))
                _, got = attempt(lambda: probe.hold(group, flags))
                name = f"{k} of {count} fails by {failing}, flags {flags}"
                check(type(got) is kind and (kind is not Own or got is error), f"{name}: {got!r}")
                del got
                check(released() == gone, f"{name}: {released() - gone} releases too many")
                check(live() == 0 and references_of(things) == before, f"{name}: references")
                untouched = [thing for thing in things[k + 1:] if getattr(thing, "described", 0)]
                check(not untouched, f"{name}: {len(untouched)} described that come after it")
                rounds += 1
    print(f"{rounds} groups with one that fails")


# ------------------------------------------------------------------------------------ cache


def meet_others(count: int = 400) -> None:
    """Types enough that none that was met before is remembered any more."""
    kept = [type("Other", (), {}) for _ in range(count)]
    for other in kept:
        take(other())
    take(probe.make_type("none")(ADDRESS, ()))


def part_cache(options: argparse.Namespace) -> None:
    rng = random.Random(options.seed)
    cache_of_many(rng, options.count)
    cache_lets_go()
    cache_of_addresses(options.count // 10)
    cache_of_states()
    cache_of_modules()


def cache_of_many(rng: random.Random, count: int) -> None:
    """What each of many types has, in any order."""
    things: list[tuple[str, Any, Any]] = []
    for number in range(4 * probe.TYPES):
        address = ADDRESS + 4096 * number
        table = {"shape": (2, 3), "typestr": "<f4", "data": (address, False), "version": 3}
        error = Own(f"type {number}")
        plain = probe.make_type("plain")(address, (2, 3))
        things.append((f"exchange {number}", plain, address))
        things.append((f"dictionary {number}", type("Table", (), {CUDA: table})(), address))
        things.append((f"nothing {number}", type("Nothing", (), {})(), TypeError))
        failing = probe.make_type("plain")(address, (2,), mode=probe.RAISES, error=error)
        things.append((f"raises {number}", failing, error))
        hidden = type("Hidden", (probe.make_type("plain"),), {EXCHANGE: None, CUDA: table})
        things.append((f"hidden {number}", hidden(ADDRESS, ()), address))
    objects = [thing for _, thing, _ in things]
    del plain, failing, hidden
    before = references_of(objects)
    for _ in range(count):
        name, thing, expected = rng.choice(things)
        facts, error = take(thing, rng.choice((0, probe.BORROW)))
        if isinstance(expected, int):
            check(facts and facts["data"] == expected, f"{name}: {error!r}, {facts and facts['data'] - ADDRESS}")
        else:
            check(error is expected or type(error) is expected, f"{name}: {error!r}")
    facts = error = thing = None
    check(not any(grown(objects, before)), f"references of objects of many types: {grown(objects, before)}")
    print(f"{len(things)} types, {probe.TYPES} are remembered, {count} imports")


def cache_lets_go() -> None:
    """A type that was met stays as long as it is remembered, and no longer."""
    for kind, make in (("with an exchange", lambda: probe.make_type("plain")),
                       ("derived", lambda: type("Sub", (probe.make_type("plain"),), {})),
                       ("with nothing", lambda: type("Nothing", (), {}))):  # fmt: skip
        type_ = make()
        count = sys.getrefcount(type_)
        thing = type_(ADDRESS, (2, 3)) if kind != "with nothing" else type_()
        for _ in range(3):
            take(thing)
        del thing
        more = sys.getrefcount(type_) - count
        check(more == int(REMEMBERS), f"a type {kind} that was met: {more} references more")
        seen = weakref.ref(type_)
        del type_
        gc.collect()
        check((seen() is not None) is REMEMBERS, f"a type {kind} is remembered without a reference")
        meet_others()
        gc.collect()
        check(seen() is None, f"a type {kind} stays after {probe.TYPES} others")


def cache_of_addresses(rounds: int) -> None:
    """A new type may get the address of one that is gone, and is another one."""
    table = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS + 512, False), "version": 3}
    addresses, twice = set(), 0
    for number in range(rounds):
        type_ = type("Some", (probe.make_type("plain"),), {} if number % 2 else {EXCHANGE: None, CUDA: table})
        facts, error = take(type_(ADDRESS, (2, 3)))
        expected = ADDRESS if number % 2 else ADDRESS + 512
        check(facts and facts["data"] == expected, f"type {number} at an address: {error!r}, {facts}")
        twice += id(type_) in addresses
        addresses.add(id(type_))
        del type_
        gc.collect()
    check(twice > 0 or "ASAN_OPTIONS" in os.environ, "no address was used twice")  # the sanitizer keeps what is freed
    print(f"{rounds} types, {twice} at the address of another one")


def cache_of_states() -> None:
    """What cai_python_clear leaves behind."""
    maker = probe.make_type("plain")
    types_ = [type("Sub", (maker,), {}) for _ in range(25 * probe.TYPES)]  # some for each place
    things = tuple(type_(ADDRESS, (2, 3)) for type_ in types_)
    before = references_of(types_)
    owners = references_of(things)
    for count, flags, outlived in itertools.product((1, probe.TYPES, len(things)), (0, probe.BORROW), (False, True)):
        said = probe.own_state(things[:count], flags, outlived)
        live = 0 if flags else count
        check(said == (live, live if outlived else 0), f"a state of its own: {said} live of {count}, {outlived}")
        now = grown(types_, before)
        check(not any(now), f"references of types after cai_python_clear: {now}")
        check(references_of(things) == owners, f"references after release, outlived {outlived}")
    failing = types_[0](ADDRESS, (2, 3), mode=probe.RAISES, error=Own())
    _, error = attempt(lambda: probe.own_state((*things, failing), 0, False))
    check(type(error) is Own, f"a state of its own, failed: {error!r}")
    error = None
    now = grown(types_, before)
    check(now == [1] + [0] * (len(now) - 1), f"references of types after a failure: {now}")  # that of `failing`


def another_module(folder: pathlib.Path) -> Any:
    """The module anew, with a state of its own."""
    loader = importlib.machinery.ExtensionFileLoader("cai_exchange", str(folder / "cai_exchange.so"))
    spec = importlib.util.spec_from_file_location("cai_exchange", str(folder / "cai_exchange.so"), loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def cache_of_modules() -> None:
    """A module whose state remembers types that lead back to it is garbage that can be collected."""
    folder = pathlib.Path(probe.__file__).parent
    for kind in ("its own", "one of Python's", "one of another module"):
        module = another_module(folder)
        check(module is not probe and module.counts()[3] == 0, "a second module is the first one")
        base = (probe if kind == "one of another module" else module).make_type("plain")
        type_ = base if kind == "its own" else type("Sub", (base,), {"module": module})
        held = module.hold((type_(ADDRESS, (2, 3)),), 0)
        module.release(held)
        if REMEMBERS:
            check(type_ in gc.get_referents(module), f"{kind}: cai_python_traverse does not visit a type")
        others = [module.make_type("plain") for _ in range(3 * probe.TYPES)]
        for other in others:
            module.release(module.hold((other(ADDRESS, ()),), 0))
        visited = sum(referent in others or referent is type_ for referent in gc.get_referents(module))
        check(visited <= probe.TYPES, f"{kind}: {visited} types visited")
        seen = [weakref.ref(x) for x in (module, type_, *others)]
        del module, base, type_, held, others, other
        gc.collect()
        alive = sum(ref() is not None for ref in seen)
        check(alive == 0, f"a module that remembers {kind}: {alive} of {len(seen)} objects stay")
    module = another_module(folder)
    type_ = type("Sub", (module.make_type("plain"),), {"module": module})  # with instances that are collected
    thing = type_(ADDRESS, (2, 3))
    module.release_elsewhere(module.hold((thing,), 0))  # it is on the list, and nobody is going to drop it
    check(thing in gc.get_referents(module), "cai_python_traverse does not visit what was released")
    seen = [weakref.ref(x) for x in (module, type_)]
    del module, type_, thing
    gc.collect()
    check(not any(ref() for ref in seen), "a module with something released stays")


def part_threads(options: argparse.Namespace) -> None:
    """Types are asked by several threads, which are switched while a metaclass runs."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    found: list[str] = []
    maker = probe.make_type("plain")
    capsule = getattr(maker, EXCHANGE)
    made: list[tuple[Any, int]] = []
    for number in range(3 * probe.TYPES):
        def answer(number: int = number) -> Any:
            for _ in range(20):
                len(str(number))
            if number % 3 == 0:
                raise OwnAttribute
            return capsule if number % 3 == 1 else None

        address = ADDRESS + 4096 * number
        made.append((with_metaclass(answer, [], maker)(address, (2, 3)), address if number % 3 == 1 else ADDRESS + 1024))
    objects = [thing for thing, _ in made]
    before = references_of(objects)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(options.count):
            thing, expected = rng.choice(made)
            facts, error = take(thing, rng.choice((0, probe.BORROW)))
            if facts is None or facts["data"] != expected:
                found.append(f"by a thread: {error!r}, {facts}")
            if rng.random() < 0.02:
                short = type("Short", (maker,), {})(ADDRESS, ())
                if take(short)[0] is None:
                    found.append("a type that is gone at once")

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.setswitchinterval(interval)
    check(not found, f"{len(found)} wrong: {found[:3]}")
    check(references_of(objects) == before and live() == 0, f"references, {live()} live")
    print(f"{4 * options.count} imports by 4 threads")


# ------------------------------------------------------------------------------------ adopt


def part_adopt(options: argparse.Namespace) -> None:
    rng = random.Random(options.seed)
    maker = probe.make_type("plain")
    sub = type("Sub", (maker,), {})
    for _ in range(min(options.count, 500)):
        parts = random_parts(rng)
        source = maker(**parts)
        for type_ in (maker, sub, probe.make_type("long")):
            gone, adopted = released(), probe.counts()[2]
            made, error = attempt(lambda: probe.adopt(type_, source, True))
            if not check(type(made) is type_, f"{parts}: {error!r}"):
                continue
            check(probe.counts()[2] == adopted + 1 and released() == gone, f"{parts}: adopted and released")
            mine, its = take(made)[0], take(source)[0]
            check(mine and not difference(mine, its), f"{parts}: {mine and difference(mine, its)}")
            held = probe.hold((made,), 0)
            del made
            check(released() == gone, f"{parts}: released while an import holds it")
            probe.release(held)
            check(released() == gone + 1, f"{parts}: released {released() - gone} times in the end")
    source, gone = maker(ADDRESS, (3,)), released()
    masked = maker(ADDRESS, (3,), mask=source)
    cases = [("borrowed", maker, source, False, BufferError, 0), ("with a mask", maker, masked, True, BufferError, 1),
             ("by no adopt", probe.make_type("no adopt"), source, True, TypeError, 0),
             ("by another abi", probe.make_type("other abi"), source, True, TypeError, 0),
             ("by nothing", probe.make_type("none"), source, True, AttributeError, 0)]  # fmt: skip
    for name, type_, thing, owned, kind, count in cases:
        made, error = attempt(lambda: probe.adopt(type_, thing, owned))
        check(made is None and type(error) is kind, f"adopted {name}: {error!r}")
        check(released() - gone == count, f"adopted {name}: released {released() - gone} times by its owner")
        gone = released()


# ----------------------------------------------------------------------------------- memory


def part_memory(options: argparse.Namespace) -> None:
    maker = probe.make_type("plain")
    mask = maker(ADDRESS + 64, (3,), "|b1")
    borrowed, owned = maker(ADDRESS, (2, 3), mask=mask), maker(ADDRESS, (2, 3), mode=probe.OWNED)
    failing = maker(ADDRESS, (2, 3), mode=probe.RAISES, error=Own())
    refused = maker(ADDRESS, (2, 3), mode=probe.OTHER_ABI)
    others = [type("Other", (), {})() for _ in range(400)]  # after them no other type is remembered

    def many(count: int) -> None:
        probe.repeat((borrowed, owned), probe.MASK, count // 5)
        probe.repeat((borrowed, owned), probe.MASK | probe.BORROW, count // 5)
        for number in range(count // 5):
            take((borrowed, owned)[number % 2], probe.MASK)
        for number in range(count // 10):
            attempt(lambda: probe.hold((borrowed, owned, (failing, refused)[number % 2]), probe.MASK))
        for _ in range(count // 200):
            type_ = type("Short", (maker,), {})
            take(type_(ADDRESS, (2, 3)))
        for other in others:
            take(other)
        probe.drain()
        gc.collect()

    many(2000)
    size = resident()
    many(options.imports)
    more = resident() - size
    check(more < max(1 << 20, options.imports), f"resident: {more} bytes more after {options.imports} imports")
    tracemalloc.start()
    many(1000)
    before = tracemalloc.get_traced_memory()[0]
    many(options.imports // 10)
    traced = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    check(traced < 4096, f"traced: {traced} bytes more after {options.imports // 10} imports")
    check(live() == 0, f"live: {live()}")
    print(f"{options.imports} imports and failures: {more} bytes more resident, {traced} traced")
    plain = maker(ADDRESS, (2, 3))
    for name, thing, flags in (("borrowed, a reference", plain, 0), ("borrowed, none", plain, probe.BORROW),
                               ("owned", owned, 0)):  # fmt: skip
        best = min(probe.repeat((thing,), flags, 20000) for _ in range(7))
        print(f"{name}: {best:.0f} ns for an import and its release, with what the test does around them")


# ------------------------------------------------------------------------------------- page


def page_rows(text: str) -> Iterator[tuple[str, int]]:
    """Names of cai and the numbers beside them."""
    for name, number in re.findall(r"^\| `(CAI_\w+)` \| (-?(?:0x)?[0-9a-f]+) \|", text, re.M):
        yield name, int(number, 0)


def page_layout(text: str) -> Iterator[tuple[str, int, int]]:
    """(expression in C, for 64 bits, for 32 bits)"""
    for what, wide, narrow in re.findall(r"^\| (sizeof|`[^`]*`) \| (\d+) \| (\d+) \|", text, re.M):
        struct = "struct cai_python_exchange_v0"
        member = re.search(r"(\w+)`$|(\w+)\(", what)
        expression = f"sizeof({struct})" if what == "sizeof" else f"offsetof({struct}, {member[1] or member[2]})"
        yield expression, int(wide), int(narrow)


def compile_c(options: argparse.Namespace, folder: pathlib.Path, name: str, text: str, module: bool) -> str | None:
    """None, or what the compiler says."""
    source = folder / f"{name}.c"
    source.write_text(text)
    how = ["-shared", "-fPIC", "-o", str(folder / f"{name}.so")] if module else ["-fsyntax-only"]
    if module and sys.platform == "darwin":
        how += ["-undefined", "dynamic_lookup"]
    command = [options.cc, "-std=c99", "-O1", "-w", "-isystem", sysconfig.get_path("include"), f"-I{options.root}",
               f"-I{options.root / 'ext'}", *how, str(source)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr or "no word" if done.returncode else None


def part_page(options: argparse.Namespace) -> None:
    text = (options.root / "docs" / "c-exchange.md").read_text()
    rows, layout = list(page_rows(text)), list(page_layout(text))
    check(len(rows) > 35 and len(layout) == 5, f"{len(rows)} constants, {len(layout)} sizes and offsets in the page")
    lines = ['#include "cai_python.h"'] + [f"typedef char r{n}[(long)({name}) == {number}L ? 1 : -1]; /* {name} */"
                                           for n, (name, number) in enumerate(rows)]  # fmt: skip
    lines += [f"typedef char l{n}[{expression} == (sizeof(void *) == 8 ? {wide} : {narrow}) ? 1 : -1];"
              for n, (expression, wide, narrow) in enumerate(layout)]
    abi = re.search(r"`CAI_ABI` = `(0x[0-9a-f]+)`", text)
    lines.append(f"typedef char abi[CAI_ABI == {abi[1] if abi else 0} ? 1 : -1];")
    error = compile_c(options, options.folder, "page", "\n".join(lines) + "\n", False)
    check(error is None, f"the tables of docs/c-exchange.md: {error and error[:600]}")
    modules = {match[1]: match[0] for match in re.finditer(r"(?s)/\* (\w+)\.c: .*?(?=^```)", text, re.M)}
    check(sorted(modules) == ["consumer", "producer"], f"modules in the page: {sorted(modules)}")
    for name, unit in modules.items():
        error = compile_c(options, options.folder, name, unit, True)
        if not check(error is None, f"{name}.c of docs/c-exchange.md: {error and error[:600]}"):
            return
    import consumer
    import producer

    page_modules(consumer, producer)
    print(f"{len(rows)} constants, {len(layout)} sizes and offsets, 2 modules")


def page_modules(consumer: Any, producer: Any) -> None:
    """The two modules with one another, and with ours."""
    floats = producer.floats(ADDRESS, 5, 7)
    derived = type("Derived", (producer.floats,), {})(ADDRESS, 5, 0)
    check(consumer.facts(floats) == (ADDRESS, 20, True, STREAM, 7), f"{consumer.facts(floats)}")
    check(consumer.facts(derived) == (ADDRESS, 20, True, NONE, 0), f"derived: {consumer.facts(derived)}")
    facts, error = take(floats)
    check(facts and facts["shape"] == (5,) and facts["stream"] == 7 and facts["code"] == 0x6604, f"{error!r}, {facts}")
    maker = probe.make_type("plain")
    gone = released()
    for mode, times in ((probe.BORROWED, 0), (probe.OWNED, 1)):
        thing = maker(ADDRESS, (2, 3), mode=mode, read_only=True)
        before = sys.getrefcount(thing)
        said = consumer.facts(thing)
        check(said == (ADDRESS, 24, False, NONE, 0), f"consumer.c, mode {mode}: {said}")
        check(sys.getrefcount(thing) == before, f"consumer.c, mode {mode}: references")
        check(released() - gone == times, f"consumer.c, mode {mode}: {released() - gone} releases")
        gone = released()
    masked, on_host = maker(ADDRESS, (4,), mask=maker(ADDRESS, (4,), "|b1")), maker(ADDRESS, (4,), memory=HOST_MEMORY)
    refused: list[tuple[Any, type]] = [(masked, BufferError), (on_host, BufferError), (object(), TypeError),
                                       (maker(ADDRESS, (3,), mode=probe.RAISES, error=Own()), Own),
                                       (type("Not", (maker,), {EXCHANGE: None})(ADDRESS, ()), TypeError)]  # fmt: skip
    refused += [(maker(ADDRESS, (3,), mode=m), BufferError) for m in (probe.OTHER_ABI, probe.SHORT_ARRAY, probe.MANY_AXES)]
    nothing = ("none", "short", "other abi", "other name", "header")
    refused += [(probe.make_type(kind)(ADDRESS, (3,)), TypeError) for kind in nothing]
    for number, (thing, kind) in enumerate(refused):
        _, error = attempt(lambda thing=thing: consumer.facts(thing))
        check(type(error) is kind, f"consumer.c, refused {number}: {error!r}")
    check(released() - gone == 3, f"consumer.c: {released() - gone} of 3 owned arrays released")
    gone = released()
    made, error = attempt(lambda: probe.adopt(producer.floats, maker(ADDRESS, (4,)), True))
    check(made is not None and consumer.facts(made) == (ADDRESS, 16, True, NONE, 0), f"producer.c adopts: {error!r}")
    made = None
    check(released() - gone == 1, f"producer.c: released {released() - gone} times")
    for thing, owned in ((maker(ADDRESS, (4,), "<f8"), True), (maker(ADDRESS, (2, 2)), True), (on_host, True), (masked, True),
                         (maker(ADDRESS, (4,)), False)):  # fmt: skip
        _, error = attempt(lambda thing=thing, owned=owned: probe.adopt(producer.floats, thing, owned))
        check(type(error) is BufferError, f"producer.c adopts: {error!r}")


# ---------------------------------------------------------------------------------- running

PARTS = {name[5:]: call for name, call in list(globals().items()) if name.startswith("part_")}
SANITIZED = tuple(part for part in PARTS if part not in ("memory", "page"))


def run_part(options: argparse.Namespace) -> int:
    """In a process of its own."""
    global probe
    sys.path.insert(0, str(options.folder))
    import cai_exchange

    probe = cai_exchange
    PARTS[options.part](options)
    for text in wrong[:10]:
        print(f"{options.part}: wrong: {text}"[:1500])
    print(f"{options.part}: checks {checks}, differences {len(wrong)}")
    return 1 if wrong else 0


def build(options: argparse.Namespace, folder: pathlib.Path, flags: list[str]) -> str | None:
    """None, or what the compiler says."""
    folder.mkdir()
    command = [options.cc, "-std=c99", "-O1", "-g", *WARNINGS.split(), *flags, "-isystem", sysconfig.get_path("include"),
               f"-I{options.root}", f"-I{options.root / 'ext'}", "-shared", "-fPIC", "-pthread", str(HERE / "exchange.c"),
               "-o", str(folder / "cai_exchange.so")]  # fmt: skip
    if sys.platform == "darwin":
        command += ["-undefined", "dynamic_lookup"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None


def spawn(options: argparse.Namespace, part: str, folder: pathlib.Path, environment: dict[str, str], note: str) -> bool:
    """Runs a part, prints what it says; whether it is right."""
    command = [sys.executable, "-X", "utf8", str(pathlib.Path(__file__).resolve()), "--part", part, "--folder", str(folder)]
    for name in ("cc", "root", "count", "seed", "imports"):
        command += [f"--{name}", str(getattr(options, name))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env={**os.environ, **environment},
                              timeout=options.timeout)  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{part}{note}: did not end")
        return False
    for line in done.stdout.splitlines():
        print(line if line.startswith(part) else f"{part}: {line}")
    if done.returncode == 0:
        return True
    if done.returncode != 1 or not done.stdout:
        print(f"{part}{note}: ended with {done.returncode}")
    print(done.stderr if len(done.stderr) < 4000 else done.stderr[:2000] + "\n...\n" + done.stderr[-1500:])
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="where the headers and docs/ are")
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    parser.add_argument("--count", type=int, default=2000, help="arrays, types and imports at random")
    parser.add_argument("--imports", type=int, default=100000, help="imports of the part `memory`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds that a part may take")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--limited", action="store_true", help="build for the limited API of 3.11")
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--first", action="store_true", help="no further part after one that is wrong")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        return run_part(options)
    reason = why_skipped(options)
    if reason:
        print(f"check_exchange.py: skipped, {reason}")
        return 77
    chosen = [part for part in PARTS if part in options.parts.split(",")]
    api = ["-DPy_LIMITED_API=0x030b0000"] if options.limited else []
    if options.dlpack:
        api += ["-DEXCHANGE_DLPACK", "-isystem", str(options.dlpack)]
    else:
        print("skipped: the exchange beside DLPack's, which needs --dlpack")
    good = True
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        error = build(options, work / "plain", api)
        if error:
            print(error)
            return 1
        for part in chosen:
            if good or not options.first:
                good = spawn(options, part, work / "plain", {}, "") and good
        if options.sanitize:
            environment = sanitizer_environment(options)
            error = build(options, work / "sanitized", api + SANITIZE.split()) if environment else "no libasan to load"
            if error:
                print(f"sanitized: skipped, {error}")
            for part in SANITIZED if not error else ():
                if part in chosen:
                    print(f"{part}, sanitized:")
                    good = spawn(options, part, work / "sanitized", environment or {}, ", sanitized") and good
    print("check_exchange: " + ("no differences" if good else "differences"))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
