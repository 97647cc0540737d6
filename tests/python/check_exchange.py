#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The exchange in C (docs/c-exchange.md) between types that offer it and ext/cai_python.h.

    check_exchange.py [--cc cc] [--dlpack FOLDER] [--count 2000] [--imports 100000] [--sanitize] [--limited]

exchange.c is built in a temporary folder, and each part of the test runs in a process of its own:

    facts       random arrays by the exchange, against what their dictionaries say, and those that are exported
    numpy       arrays of NumPy in host memory by the exchange, against what NumPy says of them
    pending     what is pending, where the memory lives, masks, rows: all that a dictionary cannot say
    offers      which attributes are an exchange, who inherits them, what comes first
    proof       attributes that are copied, forwarded, or outlive their type are no exchange
    refused     what describe says and is not taken: nothing is left behind
    references  how many references each kind of import holds, and when they go
    elsewhere   arrays released by a thread that has never seen Python, while the GIL is held
    gone        arrays that outlive their module, and modules that go while arrays are released
    interpreters  arrays of one interpreter that are released in another
    group       the k-th of n objects fails: all or none
    cache       more types than are remembered; types, modules and states that go
    threads     threads of Python that import arrays of many types
    adopt       instances made of arrays
    try         taken, not mine, failed; which of several arguments is wrong
    memory      many imports in a row
    page        the tables of docs/c-exchange.md, and the two modules of examples/bindings/exchange

With --sanitize all but `memory` and `page` run again with a module that was built with -fsanitize=address,undefined.
Exit status 0: all is right; 1: not; 77: no compiler, or no Python.h.
"""

from __future__ import annotations

import argparse
import ctypes
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
import threading
import time
import weakref
from typing import Any, Callable, Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import parts  # noqa: E402
from check_python import CUDA, HOST, Exporter, attempt, references_of  # noqa: E402
from parts import check  # noqa: E402

EXCHANGE = "__cai_exchange__"
DLPACK = ("__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__")
ADDRESS = 139637976727552
ANOTHER_NAME = b"another name"  # the capsule keeps the address
UNKNOWN, NONE, STREAM, EVENT = range(4)  # CAI_SYNC_...
HOST_MEMORY = 1
OWNERS = 1 << 11 | 1 << 12  # CAI_OWN_EVENT, CAI_ORDERED_FREE
HAD_STRIDES = 256
REMEMBERS = 1  # places of a type

probe: Any = None  # the module, in the process of a part


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
    empty_ones(maker)
    check(live() == 0, f"live: {live()}")
    check(min(kinds.values()) > options.count // 50, f"too few of a kind: {kinds}")
    print(f"{options.count} arrays: {kinds}")


def empty_ones(maker: type) -> None:
    """An empty array in host memory has an address in its dictionary, which NumPy 2.3 and before want."""
    for memory, shape, typestr in itertools.product((HOST_MEMORY, 2, 4), ((0,), (3, 0), (0, 0, 2)), ("<f4", "|u1", "<c16")):
        flags = probe.HOST if memory == HOST_MEMORY else 0
        held = probe.hold((maker(ADDRESS, shape, typestr, memory=memory),), flags)
        table = probe.interface(held, 3)
        name = f"empty, memory {memory}, {shape} {typestr}"
        check((table["data"][0] != 0) is (memory == HOST_MEMORY), f"{name}: {table}")
        check(table["data"][0] % 8 == 0 and table["data"][1] is False, f"{name}: {table}")
        probe.release(held)


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


def with_metaclass(answer: Any, asked: list[str], base: type, members: dict[str, Any]) -> Any:
    """An instance of a type whose metaclass answers for every attribute that says what arrays are."""
    def say(cls: type, name: str) -> Any:
        if name in (EXCHANGE, "__mro__", "__dict__", CUDA, HOST, *DLPACK):
            asked.append(name)
            if isinstance(answer, BaseException):
                raise answer
            return answer
        return type.__getattribute__(cls, name)

    class Meta(type(base)):  # type: ignore[misc]
        __getattribute__ = say

    made = Meta("Asked", (base,), members)
    asked.clear()
    return made(ADDRESS, (2, 3)) if base is not object else made()


def part_offers(options: argparse.Namespace) -> None:
    del options
    table = dictionary_of({"shape": (4,), "typestr": "<f8", "address": ADDRESS + 512, "read_only": True, "strides": None,
                           "stream": 0})  # fmt: skip
    offered = {"plain": True, "no adopt": True, "long": True, "other abi": False, "short": False, "header": False,
               "no describe": False, "other name": False, "no name": False, "no context": False, "none": False}  # fmt: skip
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
        check(facts and facts["data"] == ADDRESS + 512, f"{kind}, a subclass with a dictionary: {error!r}, {facts}")
    maker = probe.make_type("plain")
    for name in (CUDA, HOST, *DLPACK[:2]):
        setattr(maker, name, loud_property())
    for flags in (0, probe.HOST, probe.BORROW):
        facts, error = take(maker(ADDRESS, (2, 3)), flags)
        check(facts and facts["data"] == ADDRESS, f"what comes later was asked for: {error!r}")
    if hasattr(probe, "offer_table"):
        probe.offer_table(maker)
        for type_ in (maker, type("Sub", (maker,), {})):
            facts, error = take(type_(ADDRESS, (2, 3), sync=STREAM, stream=9))
            check(facts and facts["stream"] == 9, f"DLPack's exchange came first: {error!r}")
        print("beside DLPack's exchange in C")
    maker = probe.make_type("plain")
    earlier(maker, table)
    not_any_more(maker, table)
    not_of_instances(maker, table)
    asked_types(table)
    static_types()


def earlier(maker: type, table: dict[str, Any]) -> None:
    """A class that says anew what its arrays are comes before the exchange of its base, one behind does not."""
    mixin = type("Mixin", (), {CUDA: table})
    sub, plain = type("Sub", (maker,), {CUDA: table}), type("Plain", (maker,), {})
    orders: list[tuple[str, type, int]] = [
        ("derived from that one", type("Below", (sub,), {}), 512), ("a class before", type("Sub", (mixin, maker), {}), 512),
        ("a class behind", type("Sub", (maker, mixin), {}), 0), ("nothing new", type("Below", (plain,), {}), 0),
        ("a diamond", type("Diamond", (plain, sub), {}), 512),
        ("offered again", type("Again", (sub,), {EXCHANGE: getattr(maker, EXCHANGE)}), 0)]  # fmt: skip
    for name, type_, more in orders:
        facts, error = take(type_(ADDRESS, (2, 3)))
        check(facts and facts["data"] == ADDRESS + more, f"earlier in the MRO, {name}: {error!r}, {facts}")
    for name in (CUDA, HOST, DLPACK[0]):
        _, error = take(type("Loud", (maker,), {name: loud_property()})(ADDRESS, (2, 3)), probe.HOST)
        heard = type(error) is Own or (name == DLPACK[0] and not hasattr(probe, "offer_table"))
        check(heard, f"{name} of a derived class was not asked for: {error!r}")
        facts, error = take(type("Quiet", (maker,), {name: None})(ADDRESS, (2, 3)))
        check(type(error) is TypeError, f"{name} = None in a derived class: {error!r}, {facts}")


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
    """A metaclass and a descriptor can say what they like: they are not asked."""
    maker = probe.make_type("plain")
    capsule = getattr(maker, EXCHANGE)
    for base, expected in ((object, 512), (maker, 0)):
        for answer in (Own("by the metaclass"), KeyboardInterrupt(), capsule, None, 7):
            asked: list[str] = []
            thing = with_metaclass(answer, asked, base, {CUDA: table} if base is object else {})
            for _ in range(3):
                before = references_of([thing, type(thing)])
                facts, got = take(thing)
                check(facts and facts["data"] == ADDRESS + expected, f"the metaclass says {answer!r}: {got!r}")
                check(not any(grown([thing, type(thing)], before)), f"the metaclass says {answer!r}: references")
            check(not asked, f"the metaclass was asked for {asked}")

    class Descriptor:
        def __get__(self, instance: Any, owner: Any) -> Any:
            raise Own("by the descriptor")

    facts, got = take(type("Described", (), {EXCHANGE: Descriptor(), CUDA: table})())
    check(facts and facts["data"] == ADDRESS + 512, f"a descriptor that raises: {got!r}")
    everything = type("Meta", (type,), {"__getattr__": lambda cls, name: 7})("Everything", (), {})
    check(type(take(everything())[1]) is TypeError, "a metaclass that has every attribute")

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


# ------------------------------------------------------------------------------------ proof


class Forwarding(type):
    """The metaclass of a transparent proxy: it has all attributes of the type that is wrapped."""
    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.wrapped, name)


def part_proof(options: argparse.Namespace) -> None:
    """An exchange is of the type that it was offered for, and of those that derive from it: no copy of it counts."""
    maker, other = probe.make_type("plain"), probe.make_type("no adopt")
    capsule = getattr(maker, EXCHANGE)
    table = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS + 512, False), "version": 3}
    bare, tabled = type("Bare", (), {EXCHANGE: capsule}), type("Tabled", (), {EXCHANGE: capsule, CUDA: table})
    slots = type("Slots", (), {EXCHANGE: capsule, "__slots__": ()})
    proxy = Forwarding("Proxy", (), {"wrapped": maker, "__getattr__": lambda self, name: getattr(maker(ADDRESS, (2,)), name)})
    ordered = type("Meta", (type,), {"mro": lambda cls: [cls, bare, object]})("Ordered", (), {})
    number = type("Number", (int,), {EXCHANGE: capsule})
    cases: list[tuple[str, Any, Any]] = [
        ("copied", bare(), TypeError), ("copied to one of another layout", number(5), TypeError),
        ("copied to one with slots", slots(), TypeError), ("copied beside a dictionary", tabled(), ADDRESS + 512),
        ("derived from a copy", type("Sub", (bare,), {})(), TypeError), ("by a proxy", proxy(), TypeError),
        ("by an mro of its own", ordered(), TypeError),
        ("copied to the base of it", type("Sub", (bare, maker), {})(ADDRESS, (2,)), ADDRESS),
        ("copied to another that offers", type("Sub", (other,), {EXCHANGE: capsule})(ADDRESS, (2,)), TypeError),
        ("copied to one that derives", type("Sub", (maker,), {EXCHANGE: capsule})(ADDRESS, (2,)), ADDRESS)]  # fmt: skip
    for name, thing, expected in cases:
        for flags in (0, probe.BORROW, probe.HOST):
            facts, error = take(thing, flags)
            said = type(error) if error else facts["data"]
            check(said == expected, f"an exchange {name}: {error!r}, {facts}")
    for type_ in (bare, tabled, number, proxy):
        _, error = attempt(lambda type_=type_: probe.adopt_by_header(type_, maker(ADDRESS, (2,)), True))
        check(type(error) is TypeError, f"adopted by a copy: {error!r}")
    renamed = probe.make_type("plain")
    set_name = ctypes.pythonapi.PyCapsule_SetName
    set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
    set_name(getattr(renamed, EXCHANGE), ANOTHER_NAME)
    check(type(take(renamed(ADDRESS, (2,)))[1]) is TypeError, "a capsule of another name")
    changed = type("Changed", (), {"__slots__": ()})
    changed_thing = changed()
    setattr(changed, EXCHANGE, capsule)
    check(type(take(changed_thing)[1]) is TypeError, "copied later")
    thing = type("First", (maker,), {})(ADDRESS, (2,))
    thing.__class__ = type("Second", (maker,), {CUDA: table})
    check(take(thing)[0]["data"] == ADDRESS + 512, "an object of another class by now")
    twice = gone_and_back(options.count)
    check(twice or "ASAN_OPTIONS" in os.environ, "no type got the address of the one that was offered")
    adopts(maker)
    last = probe.make_type("plain")
    weak = weakref.ref(last)
    before = sys.getrefcount(weak)
    delattr(last, EXCHANGE)
    check(before - sys.getrefcount(weak) == 1, "a capsule that goes leaves its context behind")
    print(f"{len(cases)} ways to have it, {twice} types at the address of the one that it was offered for")


def gone_and_back(rounds: int) -> int:
    """Capsules that outlive their type, and another type at the address of that."""
    found = 0
    for _ in range(min(rounds, 200)):
        maker = probe.make_type("plain")
        capsule, address = getattr(maker, EXCHANGE), id(maker)
        del maker
        gc.collect()
        kept = []
        for _ in range(20):
            kept.append(type("Evil", (), {EXCHANGE: capsule, "__slots__": ("a", "b", "c")}))
            found += id(kept[-1]) == address
            _, error = take(kept[-1]())
            check(type(error) is TypeError, f"by the capsule of a type that is gone: {error!r}")
            if id(kept[-1]) == address:
                break
    return found


def adopts(maker: type) -> None:
    """cai_python_adopt: who has the array afterwards."""
    for kind, owned, expected in (("plain", True, None), ("sloppy", True, None), ("plain", False, ValueError),
                                  ("no adopt", True, TypeError), ("none", True, TypeError)):  # fmt: skip
        type_, gone = probe.make_type(kind), released()
        got, error = attempt(lambda: probe.adopt_by_header(type_, maker(ADDRESS, (4,)), owned))
        check(type(error) is expected if expected else got is not None, f"{kind}, owned {owned}: {error!r}")
        adopted = got is not None
        del got
        check(released() - gone == owned, f"{kind}, owned {owned}, adopted {adopted}: released {released() - gone} times")
    for kind, expected in (("plain", None), ("sloppy", None), ("no adopt", TypeError)):  # an empty array needs no owner
        type_ = probe.make_type(kind)
        got, error = attempt(lambda: probe.adopt_by_header(type_, maker(ADDRESS, (0, 3)), False))
        check(type(error) is expected if expected else type(got) is type_, f"{kind}, empty: {error!r}")
    _, error = attempt(lambda: probe.adopt_by_header(probe.make_type("plain"), maker(ADDRESS, (0,), mask=maker(ADDRESS, (3,), "|b1")), False))
    check(type(error) is ValueError, f"empty, with a borrowed mask: {error!r}")


# ---------------------------------------------------------------------------------- refused


def part_refused(options: argparse.Namespace) -> None:
    del options
    maker = probe.make_type("plain")
    mask = maker(ADDRESS + 64, (3,), "|b1")
    names = {probe.OTHER_ABI: BufferError, probe.SHORT_ARRAY: BufferError, probe.MANY_AXES: BufferError, probe.LATER_BIT: BufferError,
             probe.MANY_FIELDS: BufferError, probe.NEGATIVE_AXES: BufferError}  # fmt: skip
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
    check("abi" in text and "0x43414931" in text, f"another abi: {text}")
    text = str(take(probe.make_type("other abi")(ADDRESS, (2, 3)))[1])
    check("its __cai_exchange__ has abi = 0x43414930, not 0x43414931; " in text and "its type is" in text, f"a type of another abi: {text}")
    text = str(take(probe.make_type("short")(ADDRESS, (2, 3)))[1])
    check("__cai_exchange__" not in text, f"a short exchange: {text}")
    text = str(take(maker(ADDRESS, (2, 3), mode=probe.LATER_BIT))[1])
    check("must_understand = 0x1" in text, f"a bit of a later version: {text}")
    check("1215" in str(take(maker(ADDRESS, (2, 3), mode=probe.SHORT_ARRAY))[1]) or sys.maxsize < 2**32, "a short struct")
    check("ndim" in str(take(maker(ADDRESS, (2, 3), mode=probe.MANY_AXES))[1]), "65 axes")
    check("mask" in str(take(maker(ADDRESS, (2, 3), mask=mask))[1]), "a mask")
    for flags in (0, probe.BORROW):
        facts, error = take(maker(ADDRESS, (2, 3), mode=probe.BORROWED_EVENT), flags)
        check(error is None and not facts["flags"] & OWNERS, f"a borrowed array's event, flags {flags}: {error!r}, {facts}")
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
        for type_ in (maker, type("Sub", (maker, type("Mixin", (), {CUDA: table})), {})):  # there is no other way then
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
            if count == 1:
                again = probe.hold((thing,), flags)  # an import drops what was released, by an exchange at hand, too
                now = sys.getrefcount(thing) - before
                check(now == references, f"mode {mode}: {now} references of 1, after an import")
                probe.release(again)
                gone += at_end
            elif count == 3:
                probe.hold((), 0)
            else:
                probe.drain()
            check(sys.getrefcount(thing) == before and live() == 0, f"mode {mode}: drained, {live()} live")
            probe.release(held)
            del held
            check(released() == gone and sys.getrefcount(thing) == before, f"mode {mode}: released twice")
    print("released by a thread of C that has never seen Python, while the GIL was held")


# ------------------------------------------------------------------------------------- gone


def passes(condition: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether it comes true while this thread runs Python, as the main thread does. A busy machine may need seconds."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


def part_gone(options: argparse.Namespace) -> None:
    """Arrays that outlive their module: nobody waits for the GIL, and no reference is lost."""
    maker = probe.make_type("plain")
    thing = maker(ADDRESS, (2, 3))
    before = sys.getrefcount(thing)
    for how in ("array", "thread", "python"):
        for closed in (False, True):
            probe.park((thing,) * 100, 0, closed)
            check(sys.getrefcount(thing) == before + 100, f"{how}, closed {closed}: not held")
            probe.unpark(how)
            if not closed:
                probe.drain()
            good = passes(lambda: sys.getrefcount(thing) == before)
            check(good, f"{how}, closed {closed}: {sys.getrefcount(thing) - before} references are lost")
    lost = lefts = 0
    for spins in [*range(0, 200000, 2000)] * max(1, options.count // 500):
        lefts += probe.race(thing, 3000, spins) not in (0, 3000)
        lost += not passes(lambda: sys.getrefcount(thing) == before)
        if lost:
            break
    check(lost == 0, f"cleared while a thread releases: {sys.getrefcount(thing) - before} references are lost")
    if hasattr(probe, "park_tensor"):
        on_device = maker(ADDRESS, (2, 3), memory=4, device=0)
        before = sys.getrefcount(on_device)
        for how, now in (("here", True), ("detached", False), ("thread", False)):
            probe.park_tensor(on_device)
            check(sys.getrefcount(on_device) == before + 1, f"a tensor, {how}: not held")
            probe.delete_tensor(how)
            at_once = sys.getrefcount(on_device) == before
            can_tell = sys.version_info >= (3, 12) or not probe.LIMITED  # that this thread is attached
            check(at_once or not (now and can_tell), f"a tensor, {how}: not dropped at once")
            check(passes(lambda: sys.getrefcount(on_device) == before), f"a tensor, {how}: a reference is lost")
    pending()
    print(f"{lefts} times a thread was met in its releases")


def pending() -> None:
    """An exception that is set stays, whatever a release runs."""
    said: list[int] = []

    class Loud(probe.make_type("plain")):  # type: ignore[misc]
        def __del__(self) -> None:
            said.append(1)
            try:
                raise KeyError
            except KeyError:
                pass

    held = probe.hold((Loud(ADDRESS, (2, 3)), Loud(ADDRESS, (2, 3))), 0)
    _, error = attempt(lambda: probe.release_pending(held))
    check(type(error) is LookupError and said == [1, 1], f"released while an exception is set: {error!r}, {said}")


# ----------------------------------------------------------------------------- interpreters

INTERPRETER = """
import importlib.machinery, importlib.util, threading
loader = importlib.machinery.ExtensionFileLoader("cai_exchange", {path!r})
spec = importlib.util.spec_from_file_location("cai_exchange", {path!r}, loader=loader)
probe = importlib.util.module_from_spec(spec)
loader.exec_module(probe)
maker = probe.make_type("plain")
"""


def interpreters() -> tuple[Callable[[], Any], Callable[[Any, str], Any], Callable[[Any], Any]] | None:
    """(create, run, destroy), if this Python has them."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        if not probe.LIMITED and sys.version_info >= (3, 12):
            return module.create, module.run_string, module.destroy
        # with the GIL of the first: others have no threads in 3.11, and do not take a module of the limited API
        shared: dict[str, Any] = {"isolated": False} if sys.version_info < (3, 13) else {"config": "legacy"}
        return lambda: module.create(**shared), module.run_string, module.destroy
    return None


def part_interpreters(options: argparse.Namespace) -> None:
    """Arrays of one interpreter that are released in another: their objects end where they belong."""
    del options
    found = interpreters()
    if not found:
        print("skipped: this Python has no interpreters beside the first")
        return
    create, execute, destroy = found
    start = INTERPRETER.format(path=probe.__file__)
    inner = create()

    def there(code: str) -> None:
        said = execute(inner, code)
        check(said is None, f"in another interpreter, {code!r}: {said}")

    there(start)
    maker = probe.make_type("plain")
    tensors = [("park_tensor", "delete_tensor", how, None) for how in ("here", "detached", "thread", "its thread")]
    hows = ("array", "python", "thread", "its thread")
    ways = [("park", "unpark", how, closed) for how in hows for closed in (False, True)]
    for park, unpark, how, closed in ways + (tensors if hasattr(probe, "park_tensor") else []):
        name = f"{unpark}({how!r}), closed {closed}"
        ended = probe.ended()[0]
        thing = maker(ADDRESS, (2, 3), memory=4, device=0)
        probe.park((thing,), 0, closed) if park == "park" else probe.park_tensor(thing)
        del thing
        if how.startswith("its thread"):
            there(f"worker = threading.Thread(target=probe.{unpark}, args=('array',)); worker.start(); worker.join()")
        else:
            there(f"probe.{unpark}({how!r})")
        now, where, _ = probe.ended()
        good = now == ended or (now == ended + 1 and where == 0)
        check(good, f"{name}: ended {now - ended} times, the last time in {where}")
        if closed is False:
            probe.drain()
        if sys.version_info < (3, 12) and closed is not False:  # 3.11 may have asked the other interpreter to look
            probe.park((maker(ADDRESS, (2, 3)),), 0, False)
            probe.unpark("array")
            probe.drain()
            if closed:
                continue
        check(passes(lambda: probe.ended()[0] >= ended + 1), f"{name}: an object of the first interpreter stays")
        check(probe.ended()[1] == 0, f"{name}: an object of the first interpreter ended in {probe.ended()[1]}")
    for how in ("array", "python", "thread"):  # the other way round
        ended = probe.ended()[0]
        there(f"thing = maker({ADDRESS}, (2, 3)); probe.park((thing,), 0, False); del thing")
        probe.unpark(how)
        probe.drain()
        check(probe.ended()[0] == ended, f"{how}: an object of another interpreter ended in this one")
        there("probe.drain()")
        good = probe.ended()[0] == ended + 1 and probe.ended()[1] != 0
        check(good, f"{how}: an object of another interpreter ended {probe.ended()[0] - ended} times, in {probe.ended()[1]}")
    there(f"thing = maker({ADDRESS}, (2, 3)); probe.park((thing,), 0, False); del thing")
    destroy(inner)
    probe.unpark("array")  # of an interpreter that is gone
    inner = create()
    there(start)
    there(f"thing = maker({ADDRESS}, (2, 3)); probe.park((thing,) * 3, 0, True); probe.unpark('array'); del thing")
    destroy(inner)
    print(f"{len(ways)} ways, and {len(tensors) if hasattr(probe, 'park_tensor') else 0} of tensors")


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
    cache_asks_once()
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
    """A type that was met goes when nobody else has it."""
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
        check(more == 0, f"a type {kind} that was met: {more} references more")
        weak = weakref.ref(type_)  # the one that all have in common
        count = sys.getrefcount(weak)
        meet_others()
        gone = count - sys.getrefcount(weak)
        check(gone == REMEMBERS, f"a type {kind}: {gone} of what led to it went with its place")
        probe.own_state((type_(ADDRESS, (2, 3)),) if kind != "with nothing" else (), 0, False)
        check(sys.getrefcount(weak) == count - gone, f"a type {kind}: a state that is gone leads to it")
        del weak
        seen = weakref.ref(type_)
        del type_
        gc.collect()
        check(seen() is None, f"a type {kind} stays because it is remembered")


class Counting(str):
    """A key of a class that counts how often a name is looked up there."""
    asked = 0

    def __hash__(self) -> int:
        return hash(EXCHANGE)

    def __eq__(self, other: object) -> bool:
        if other == EXCHANGE:
            Counting.asked += 1
        return False


def cache_asks_once() -> None:
    """A type is looked through once, whatever other types come between."""
    table = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
    things = [type("Counted", (), {Counting("key"): 1, CUDA: table})() for _ in range(probe.TYPES // 2)]
    for thing in things * 3:
        take(thing)
    before = Counting.asked
    for _ in range(5):
        for thing in things:
            check(take(thing)[0], "an array of a class with a key that counts")
    check(before > 0, "the classes were not looked through")
    check(Counting.asked == before, f"{len(things)} types in turn: asked {Counting.asked - before} times")


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
        check(type_ not in gc.get_referents(module), f"{kind}: cai_python_traverse visits a type")
        others = [module.make_type("plain") for _ in range(3 * probe.TYPES)]
        for other in others:
            module.release(module.hold((other(ADDRESS, ()),), 0))
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
    """Objects of many types are taken by several threads, which are switched while their properties run."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    found: list[str] = []
    maker = probe.make_type("plain")
    made: list[tuple[Any, int]] = []
    for number in range(3 * probe.TYPES):
        address = ADDRESS + 4096 * number

        def answer(_: Any, address: int = address) -> Any:
            for _ in range(20):
                len(str(address))
            return {"shape": (2, 3), "typestr": "<f4", "data": (address, False), "version": 3}

        members = [{CUDA: property(answer)}, {}, {CUDA: property(answer), EXCHANGE: None}][number % 3]
        made.append((type("Some", (maker,), members)(address, (2, 3)), address))
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


# -------------------------------------------------------------------------------- try_import


class OnDevice:
    """An object with __dlpack__ alone."""
    def __init__(self, device: int) -> None:
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **_: Any) -> Any:
        raise Own("it was asked for a tensor")


def liar(error: BaseException) -> Any:
    def answer(_: Any) -> Any:
        raise error

    return type("Liar", (), {CUDA: property(answer)})()


def part_try(options: argparse.Namespace) -> None:
    """Taken, not mine, failed: and which argument it was, of several."""
    maker = probe.make_type("plain")
    table = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
    on_host = maker(ADDRESS, (2, 3), memory=HOST_MEMORY)
    said = TypeError("the object has no __cuda_array_interface__ today: no driver")
    with_dlpack = hasattr(probe, "offer_table")
    taken = [(maker(ADDRESS, (2, 3)), 0), (maker(ADDRESS, (2, 3), mode=probe.OWNED), 0), (Exporter(table), 0),
             (on_host, probe.HOST), (bytearray(8), probe.HOST)]  # fmt: skip
    not_mine: list[tuple[Any, int]] = [(thing, 0) for thing in (3, None, "x", [1], object(), bytearray(8), maker, on_host)]
    not_mine += [(maker(ADDRESS, (2, 3), memory=HOST_MEMORY, mode=probe.OWNED), 0), (3, probe.HOST), (OnDevice(1), 0)]
    failed = [(Exporter({**table, "shape": (-1,)}), 0, ValueError), (liar(said), 0, TypeError), (liar(Own()), 0, Own),
              (maker(ADDRESS, (2, 3), mode=probe.RAISES, error=Own()), 0, Own), (type("Text", (), {CUDA: "x"})(), 0, TypeError),
              (maker(ADDRESS, (2, 3), mode=probe.SILENT), 0, RuntimeError), (3, 4, ValueError)]  # fmt: skip
    if with_dlpack:
        not_mine += [(OnDevice(10), probe.HOST), (OnDevice(8), 0)]
        failed += [(OnDevice(2), 0, Own), (OnDevice(1), probe.HOST, Own)]
    for thing, flags in taken:
        for name in (None, "x"):
            got, error = attempt(lambda: probe.try_(thing, flags, name))
            if check(error is None and got[0] == probe.TAKEN, f"{thing!r}, flags {flags}: {got}, {error!r}"):
                probe.release(got[1])
    for thing, flags in not_mine:
        for name in (None, "x"):
            before, gone = sys.getrefcount(thing), released()
            got, error = attempt(lambda: probe.try_(thing, flags, name))
            check(error is None and got == (probe.NOT_MINE, None), f"{thing!r}, flags {flags}: {got}, {error!r}")
            owned = getattr(thing, "mode", 0) == probe.OWNED
            more = sys.getrefcount(thing) - before if type(thing) not in (int, type(None), type) else 0
            check(not more and released() - gone == owned, f"{thing!r}: {more} references")
            _, error = attempt(lambda: probe.hold((thing,), flags))
            check(type(error) is TypeError, f"{thing!r}, not mine, imported: {error!r}")
            error = None
    for thing, flags, kind in failed:
        for name in (None, "x"):
            got, error = attempt(lambda: probe.try_(thing, flags, name))
            check(got is None and type(error) is kind, f"{thing!r}, flags {flags}: {got}, {error!r}")
    check(live() == 0, f"live: {live()}")
    named(maker, table)


def named(maker: type, table: dict[str, Any]) -> None:
    """Which of several objects it was, by number, name and type."""
    good, wrong_one = Exporter(table), Exporter({**table, "shape": (-1,)})
    plain = "the object has no __cuda_array_interface__" + (", no __dlpack__" if hasattr(probe, "offer_table") else "")
    alone = str(take(wrong_one)[1])
    cases = [((3,), (), f"{plain}; its type is int"), ((wrong_one,), (), alone), ((3,), (None,), f"argument 1, of type int: {plain}"),
             ((3,), ("x",), f"argument 1 (x), of type int: {plain}"), ((good, 3), (), f"argument 2, of type int: {plain}"),
             ((good, 3), ("x", "y"), f"argument 2 (y), of type int: {plain}"),
             ((good, good, wrong_one), (None, "b", "\u03c9"), f"argument 3 (\u03c9), of type Exporter: {alone}"),
             ((wrong_one, 3), ("x", "y"), f"argument 1 (x), of type Exporter: {alone}"),
             ((good, maker(ADDRESS, (2,), memory=HOST_MEMORY)), (None, None),
              "argument 2, of type maker: the array is in plain host memory, but this consumer accepts only memory that CUDA can use")]  # fmt: skip
    for things, names, text in cases:
        _, error = attempt(lambda: probe.import_named(things, 0, names))
        check(str(error) == text and not hasattr(error, "__notes__"), f"named {names}: {error!r}, not {text!r}")
    for error in (Own("its own"), TypeError("its own"), KeyError("its own"), SystemExit(3), UnicodeDecodeError("utf-8", b"x", 0, 1, "y")):
        thing = liar(error)
        _, got = attempt(lambda: probe.import_named((good, thing), 0, ("x", "y")))
        check(got is error and got.__notes__ == ["argument 2 (y), of type Liar"], f"a note: {got!r}, {getattr(got, '__notes__', 0)}")
    caused = TypeError("its own")
    caused.__cause__ = Own()
    thing = maker(ADDRESS, (2, 3), mode=probe.RAISES, error=caused)
    _, got = attempt(lambda: probe.import_named((good, thing), 0, ("x", "y")))
    check(got is caused and str(got) == "its own" and len(got.__notes__) == 1, f"raised in C with a cause: {got!r}")


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

    most = max(1 << 20, options.imports)
    more = parts.resident_growth(many, 2000, options.imports, most)
    check(more < most, f"resident: {more} bytes more after {options.imports} imports")
    traced = parts.traced_growth(many, 1000, options.imports // 10)
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
    for name in ("consumer", "producer"):
        unit = (options.root / "examples" / "bindings" / "exchange" / f"{name}.c").read_text()
        error = compile_c(options, options.folder, name, unit, True)
        if not check(error is None, f"{name}.c of examples/bindings/exchange: {error and error[:600]}"):
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
    refused += [(maker(ADDRESS, (3,), mode=m), BufferError) for m in (probe.OTHER_ABI, probe.LATER_BIT, probe.SHORT_ARRAY, probe.MANY_AXES)]
    nothing = ("none", "short", "other abi", "other name", "header")
    refused += [(probe.make_type(kind)(ADDRESS, (3,)), TypeError) for kind in nothing]
    for number, (thing, kind) in enumerate(refused):
        _, error = attempt(lambda thing=thing: consumer.facts(thing))
        check(type(error) is kind, f"consumer.c, refused {number}: {error!r}")
    check(released() - gone == 4, f"consumer.c: {released() - gone} of 4 owned arrays released")
    gone = released()
    page_reader(consumer, maker)
    made, error = attempt(lambda: probe.adopt(producer.floats, maker(ADDRESS, (4,)), True))
    check(made is not None and consumer.facts(made) == (ADDRESS, 16, True, NONE, 0), f"producer.c adopts: {error!r}")
    made = None
    check(released() - gone == 1, f"producer.c: released {released() - gone} times")
    for thing, owned in ((maker(ADDRESS, (4,), "<f8"), True), (maker(ADDRESS, (2, 2)), True), (on_host, True), (masked, True),
                         (maker(ADDRESS, (4,)), False)):  # fmt: skip
        _, error = attempt(lambda thing=thing, owned=owned: probe.adopt(producer.floats, thing, owned))
        check(type(error) is BufferError, f"producer.c adopts: {error!r}")


class Key(str):
    """A key of a class that has the hash of the attribute, so that a look-up compares it with that name."""
    def __hash__(self) -> int:
        return hash(EXCHANGE)

    def __eq__(self, other: object) -> bool:
        self.compared()
        return False

    def compared(self) -> None:
        raise Own()


def page_reader_is_told_wrong(consumer: Any, maker: type) -> None:
    """consumer.c: a metaclass with a dictionary of its own, errors of the look-up, a capsule of a type that is gone."""
    capsule = getattr(maker, EXCHANGE)
    lying = type("Lying", (type,), {"__dict__": property(lambda cls: {EXCHANGE: capsule})})
    hiding = type("Hiding", (type(maker),), {"__dict__": property(lambda cls: {})})
    raising = type("Raising", (type(maker),), {"__dict__": property(lambda cls: 1 / 0)})
    for meta, bases, there in ((lying, (), False), (hiding, (maker,), True), (raising, (maker,), True)):
        thing = meta("Thing", bases, {})(*((ADDRESS, (2,)) if bases else ()))
        got, error = attempt(lambda thing=thing: consumer.facts(thing))
        check((got is not None) is there, f"consumer.c, a metaclass that is {meta.__name__}: {error!r}")
    _, error = attempt(lambda: consumer.facts(type("Wrong", (), {Key(): 1})()))
    check(type(error) is Own, f"consumer.c, a look-up that raises: {error!r}")
    _, error = attempt(lambda: consumer.facts(type("Right", (maker,), {})(ADDRESS, (2,))))
    check(error is None, f"consumer.c, after a look-up that raised: {error!r}")
    gone = probe.make_type("plain")
    orphan = type("Orphan", (), {EXCHANGE: getattr(gone, EXCHANGE)})
    del gone
    gc.collect()
    _, error = attempt(lambda: consumer.facts(orphan()))
    check(type(error) is TypeError, f"consumer.c, the capsule of a type that is gone: {error!r}")


def page_reader(consumer: Any, maker: type) -> None:
    """consumer.c: copies of the attribute, classes that come earlier, and code that calls it again."""
    capsule = getattr(maker, EXCHANGE)
    table = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
    proxy = Forwarding("Proxy", (), {"wrapped": maker})
    mixin = type("Mixin", (), {CUDA: table})
    for type_ in (type("Evil", (), {EXCHANGE: capsule}), proxy, type("Number", (int,), {EXCHANGE: capsule})):
        _, error = attempt(lambda type_=type_: consumer.facts(type_()))
        check(type(error) is TypeError, f"consumer.c, {type_.__name__}: {error!r}")
    for type_, there in ((type("Sub", (maker,), {CUDA: table}), False), (type("Sub", (mixin, maker), {}), False),
                         (type("Sub", (maker, mixin), {}), True), (type("Sub", (maker,), {EXCHANGE: capsule}), True)):  # fmt: skip
        got, error = attempt(lambda type_=type_: consumer.facts(type_(ADDRESS, (2,))))
        check((got is not None) is there, f"consumer.c, what comes earlier: {error!r}")
    page_reader_is_told_wrong(consumer, maker)
    floats, again = maker(ADDRESS, (2,)), []

    class Asks(Key):
        def compared(self) -> None:
            if not again:
                again.append(attempt(lambda: consumer.facts(3)))
                again.append(attempt(lambda: consumer.facts(floats)))

    class Victim:
        pass

    attempt(lambda: consumer.facts(Victim()))
    before = sys.getrefcount(Victim)
    reentering = type("Reentering", (), {Asks(): 1})()
    _, error = attempt(lambda: consumer.facts(reentering))
    check(type(error) is TypeError and len(again) == 2 and again[1][0], f"consumer.c, called again: {error!r}, {again}")
    check(sys.getrefcount(Victim) == before - 1, f"consumer.c, called again: {before - sys.getrefcount(Victim)} dropped")
    dying = type("Dying", (), {})
    attempt(lambda: consumer.facts(dying()))
    seen = weakref.ref(dying, lambda _: attempt(lambda: consumer.facts(3)))
    del dying
    gc.collect()
    got, error = attempt(lambda: consumer.facts(floats))  # lets go of that type, which calls consumer.c
    check(got is not None, f"consumer.c, called by a type that goes: {error!r}")
    gc.collect()
    check(seen() is None, "consumer.c keeps more than one type")


# ---------------------------------------------------------------------------------- running

SUITE = parts.Suite(globals(), "cai_exchange", ("exchange.c",), ("memory", "page"), seconds=300)


def main() -> int:
    parser = SUITE.parser()
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    parser.add_argument("--count", type=int, default=2000, help="arrays, types and imports at random")
    parser.add_argument("--imports", type=int, default=100000, help="imports of the part `memory`")
    options = parser.parse_args()
    if not options.dlpack and not options.part:
        print("skipped: the exchange beside DLPack's, which needs --dlpack")
    return SUITE.main(options, flags=("-DEXCHANGE_DLPACK", "-isystem", str(options.dlpack)) if options.dlpack else ())


if __name__ == "__main__":
    raise SystemExit(main())
