#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_python.h on live Python objects: what they mean, what they lie, what is left of them.

    check_python.py --inspect build/cai_inspect [--cc cc] [--count 20000] [--imports 100000] [--sanitize]

probe.c is built in a temporary folder, and each part of the test runs in a process of its own, so that a crash is a
finding of its part:

    cases       every descriptor case as a live object, against what cai_inspect says of its repr
    mutants     mutants of the cases, the same way
    exports     every accepted case as a dictionary of versions 0 to 3, and back
    numpy       random arrays of NumPy in host memory, against what NumPy says of them, and back
    lies        objects whose attributes, values, keys and methods do what they should not
    streams     what a stream may be
    group       the k-th of n objects fails: all or none
    references  no reference and no memory is left behind on any path
    memory      many imports, exports and failures in a row
    threads     arrays released by threads that have never seen Python

With --sanitize the probe is built with -fsanitize=address,undefined, too, and the parts that could make it read what
it should not run again under it. Exit status 0: all is right; 1: not; 77: no compiler, or no Python.h.
"""

from __future__ import annotations

import argparse
import ast
import collections
import ctypes
import gc
import json
import pathlib
import random
import sys
import threading
import tracemalloc
import types
import warnings
import weakref
from typing import Any, Callable, Iterator

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "oracle"), str(TESTS / "python")]

import inspect_io  # noqa: E402
import mutate_cases  # noqa: E402
import parts  # noqa: E402
import reference  # noqa: E402
import vector_cases  # noqa: E402
from parts import check  # noqa: E402

CUDA, HOST = "__cuda_array_interface__", "__array_interface__"
ADDRESS = 139637976727552
PLAIN = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
PROFILES = ((False, "strict"), (True, "lenient"))
KEYS = ("shape", "typestr", "data", "version", "strides", "stream", "descr", "mask")

probe: Any = None  # the module, in the process of a part


# ---------------------------------------------------------------------------- live objects


class Exporter:
    """An object with a dictionary that is always the same."""

    def __init__(self, table: Any, name: str = CUDA) -> None:
        setattr(self, name, table)


class Building:
    """An object that builds its dictionary anew each time."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.make()


def with_masks(table: Any, depth: int = 0) -> Any:
    """The table with objects in place of dictionaries of masks: a text has no objects."""
    if not isinstance(table, dict) or not isinstance(table.get("mask"), dict) or depth == 2:
        return table
    return {**table, "mask": Exporter(with_masks(table["mask"], depth + 1))}


def attempt(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """(what it returns, None) or (None, what it raises, without a traceback that keeps things alive)."""
    try:
        return call(), None
    except BaseException as error:  # noqa: B902 - all of them are of interest
        return None, error.with_traceback(None)


def take(thing: Any, flags: int) -> tuple[dict[str, Any] | None, BaseException | None]:
    """The facts of one object; nothing of it is kept."""
    held, error = attempt(lambda: probe.hold((thing,), flags))
    if error is not None:
        return None, error
    facts = probe.facts(held)[0]
    probe.release(held)
    return facts, None


def flags_of(lenient: bool) -> int:
    return probe.MASK | (probe.LENIENT if lenient else 0)


def type_of(status: str) -> type[BaseException]:
    """The exception of a status of cai.h."""
    return {name: exception for name, exception, _ in probe.statuses.values()}[status]


def comparable(facts: dict[str, Any] | None) -> str:
    """The facts but for the rows of a descr, which an import of an object does not keep, and the kind of memory."""
    if facts is None:
        return "none"
    facts = {key: value for key, value in facts.items() if key not in ("fields", "memory", "ok")}
    facts["mask"] = comparable(facts.get("mask"))
    return json.dumps(facts, sort_keys=True)


def same_verdict(thing: Any, lenient: bool, answer: dict[str, Any]) -> str | None:
    """What differs between an import and the answer of cai_inspect."""
    facts, error = take(thing, flags_of(lenient))
    if error is None:
        if not answer["ok"]:
            return f"accepted; cai_inspect: {answer['message']}"
        if facts["fields"] is not None or facts["memory"]:
            return f"fields {facts['fields']}, memory {facts['memory']}"
        mine, its = comparable(facts), comparable(answer)
        return None if mine == its else f"{mine}\n    cai_inspect: {its}"
    if answer["ok"]:
        return f"refused, {error!r}; cai_inspect accepts"
    if answer["status"] == "CAI_ERR_INTERFACE":
        expected: tuple[type, str] = TypeError, f"{CUDA} is not a dictionary"
    else:
        expected = type_of(answer["status"]), inspect_io.words_of_headers(answer["message"])
    if (type(error), str(error)) != expected:
        return f"{error!r}; cai_inspect: {answer['status']} {answer['message']!r}"
    return None


def read_literal(line: str) -> tuple[Any, str | None]:
    """The value of a line, or why it is none."""
    try:
        return ast.literal_eval(line), None
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return None, f"no Python literal: {error}"


# ------------------------------------------------------------------------- cases and mutants


def cases() -> list[tuple[str, str]]:
    return [(case["id"], case["input"]) for case in vector_cases.cases()]


def compare_with_inspect(options: argparse.Namespace, named: list[tuple[str, str]], twice: bool) -> None:
    """Live objects of all lines against cai_inspect. twice: prebuilt, and built anew."""
    live, skipped = [], []
    for name, line in named:
        value, why = read_literal(line)
        if why is None and not isinstance(value, dict) and not line.startswith("{"):
            why = "not a dictionary; what cai_inspect says of its text is about that text"
        if why:
            skipped.append(f"{name}: {why}"[:150])
        else:
            live.append((name, line, with_masks(value)))
    for lenient, profile in PROFILES:
        answers = inspect_io.inspect(options.inspect, [line for _, line, _ in live], lenient)
        for (name, line, table), answer in zip(live, answers):
            ways = {"prebuilt": Exporter(table)}
            if twice:
                ways["built anew"] = Building(lambda line=line: with_masks(ast.literal_eval(line)))
            for way, thing in ways.items():
                difference = same_verdict(thing, lenient, answer)
                check(not difference, f"{name}, {profile}, {way}: {difference}\n    {line[:500]}")
    for text in skipped[:5]:
        print(f"skipped: {text}")
    print(f"{len(live)} live, {len(skipped)} skipped, strict and lenient" + (", prebuilt and built anew" if twice else ""))


def part_cases(options: argparse.Namespace) -> None:
    compare_with_inspect(options, cases(), True)


def part_mutants(options: argparse.Namespace) -> None:
    tables = [ast.literal_eval(line) for _, line in cases()]
    right = [table for table in tables if reference.judge(table).accepted(lenient=False)]
    rng = random.Random(options.seed)
    lines: dict[str, str] = {}
    while len(lines) < options.count:
        name, line = mutate_cases.mutant(rng, right if rng.random() < 0.8 else tables)
        if "\n" not in line and "\r" not in line and name != "text":  # broken text is no object
            lines.setdefault(line, name)
    compare_with_inspect(options, [(name, line) for line, name in lines.items()], False)


# --------------------------------------------------------------------------------- exports


def part_exports(options: argparse.Namespace) -> None:
    """Each accepted case in each version, imported again."""
    made = collections.Counter()
    for name, line in cases():
        table = with_masks(ast.literal_eval(line))
        mask = table.get("mask")
        held, error = attempt(lambda: probe.hold((Exporter(table),), flags_of(False)))
        if error is not None:
            continue
        first = probe.facts(held)[0]
        for version in range(4):
            again, error = attempt(lambda: probe.interface(held, 0, version, mask))
            if error is not None:
                made[f"refused in {version}"] += 1
                pending = first["sync"] == "stream" or (first["mask"] or {}).get("sync") == "stream"
                said = (first["sync"] == "unknown" and version == 3) or (pending and version < 3)
                said = said or (version == 0 and mask is not None) or version == 3
                check(type(error) is BufferError and said, f"{name}, version {version}: {error!r}")
                continue
            made[f"version {version}"] += 1
            check(list(again) == sorted(again, key=KEYS.index), f"{name}: order {list(again)}")
            check(type(again["shape"]) is tuple and type(again["data"]) is tuple, f"{name}: {again}")
            check(("stream" in again) == (version == 3) or first["size"] == 0, f"{name}, version {version}: {again}")
            check(again.get("mask") is mask, f"{name}, version {version}: the mask")
            second, error = take(Exporter(again), flags_of(False))
            for facts in (first, second):
                if facts:
                    facts.update(version=0, sync="", stream=None)
                if facts and facts["c_contiguous"]:  # strides are None then, whatever they were where they do not count
                    facts["strides"] = []
            if check(error is None, f"{name}, version {version}: {error!r} of {again}"):
                mine, its = comparable(first), comparable(second)
                check(mine == its, f"{name}, version {version}: {mine}\n    back: {its}")
            first = probe.facts(held)[0]
        probe.release(held)
    plain = probe.hold((Exporter(PLAIN),), 0)
    masked = probe.hold((Exporter({**PLAIN, "mask": Exporter({**PLAIN, "typestr": "|b1"})}),), probe.MASK)
    for text, call, expected in (
        ("version 4", lambda: probe.interface(plain, 0, 4), (BufferError, ValueError)),
        ("version -1", lambda: probe.interface(plain, 0, -1), (BufferError, ValueError)),
        ("a mask that is none", lambda: probe.interface(plain, 0, 3, Exporter(PLAIN)), (ValueError,)),
        ("a mask left out", lambda: probe.interface(masked, 0, 3), (ValueError,)),
    ):
        _, error = attempt(call)
        check(type(error) in expected, f"{text}: {error!r}")
    for number, (name, exception, _) in sorted(probe.statuses.items()):
        _, error = attempt(lambda: probe.raise_(number, name.encode()))
        check(type(error) is exception and error.args == (name,), f"status {number}: {error!r}")
    _, error = attempt(lambda: probe.raise_(12345, b"what \xff is"))
    check(type(error) is RuntimeError and str(error) == "what \ufffd is", f"an unknown status: {error!r}")
    print(", ".join(f"{key} {made[key]}" for key in sorted(made)))


# ----------------------------------------------------------------------------------- numpy


def part_numpy(options: argparse.Namespace) -> None:
    """Arrays in host memory, and back through a dictionary."""
    try:
        import numpy as np

        import numpy_arrays
    except ImportError as error:
        print(f"skipped: {error}")
        return
    rng = random.Random(options.seed)
    counts: collections.Counter[str] = collections.Counter()
    for _ in range(options.count):
        a = numpy_arrays.random_array(rng)
        overlapping = numpy_arrays.self_overlap(a)
        counts.update(numpy_arrays.classes_of(a, overlapping))
        held, error = attempt(lambda: probe.hold((a,), probe.HOST))
        if not check(error is None, f"{a.__array_interface__}: {error!r}"):
            continue
        facts = probe.facts(held)[0]
        found = [text for text in numpy_arrays.array_differences(a, overlapping, facts) if not text.startswith("fields")]
        check(not found and facts["memory"] == 1, f"{a.__array_interface__}: {found}, memory {facts['memory']}")
        back = np.asarray(Exporter(probe.interface(held, 0, 3), HOST))
        bare = a if a.dtype.names is None else a.view(f"V{a.itemsize}")  # padding is not copied with fields
        same = back.shape == a.shape and back.tobytes() == bare.tobytes() and back.itemsize == a.itemsize
        same = same and (back.flags.writeable == a.flags.writeable or a.size == 0)  # NumPy makes a new one of address 0
        same = same and (a.dtype.names is not None or back.dtype.str == a.dtype.str or a.itemsize == 1)
        same = same and (a.size == 0 or back.__array_interface__["data"] == a.__array_interface__["data"])
        check(same, f"{a.__array_interface__}: back {back.__array_interface__}")
        probe.release(held)
    rare = [name for name in numpy_arrays.CLASSES if counts[name] < options.count // 25]
    check(not rare or options.count < 500, f"too few arrays of {rare}")
    zero_d = np.array(3.0)
    # the dictionary of a scalar alone holds its memory, also where the caller holds the scalar
    for scalar in (lambda: np.float64(3), lambda: np.arange(3.0).sum(), lambda: zero_d, lambda: Exporter(zero_d.__array_interface__, HOST)):
        for flags in (probe.HOST, probe.HOST | 1 << 12):  # CAI_PYTHON_BORROW
            of_caller = scalar()
            held = probe.hold((of_caller,), flags)
            others = [np.array(7.0) for _ in range(1000)]
            found = ctypes.c_double.from_address(probe.facts(held)[0]["data"]).value
            check(found == 3.0 and len(others) == 1000, f"a scalar of NumPy, flags {flags:#x}: {found}, not 3.0")
            probe.release(held)
    _, error = take(np.zeros(3), 0)
    check(type(error) is TypeError, f"an array of NumPy without CAI_PYTHON_HOST: {error!r}")
    print(f"NumPy {np.__version__}: " + ", ".join(f"{name} {counts[name]}" for name in sorted(counts)))


# ------------------------------------------------------------------------------------ lies
#
# A lie makes an object and says what importing it gives, strict and lenient: "ok", an exception of that very
# identity, or the type (or a tuple of types) of an exception.

Lie = "tuple[str, Callable[[], tuple[Any, Any, Any]], int]"
DOCUMENTED = (TypeError, ValueError)


class Own(Exception):
    """An exception that nobody else raises."""


class OwnBase(BaseException):
    """And one that is no Exception."""


class OwnAttribute(AttributeError):
    """What says that there is no attribute."""


def plus(**entries: Any) -> dict[str, Any]:
    return {**PLAIN, **entries}


def raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    """What raises it; of a type a new one each time, as an AttributeError keeps the object that it is about."""
    def raise_it(*_: Any, **__: Any) -> Any:
        raise error

    return raise_it


class Number:
    """Any number by __index__, which does something first."""

    def __init__(self, value: Any, first: Callable[[], Any] = lambda: None) -> None:
        self.value, self.first = value, first

    def __index__(self) -> Any:
        self.first()
        return self.value


def liar(base: type, *names: str) -> type:
    """A subclass with methods that must not be asked."""
    space = {name: raising(Own(f"{base.__name__}.{name} was called")) for name in names}
    if "__eq__" in names and "__hash__" not in names:
        space["__hash__"] = base.__hash__
    return type("Liar", (base,), space)


LyingInt = liar(int, "__index__", "__int__", "__eq__", "__hash__", "__bool__", "__lt__", "__and__", "__repr__")
LyingTuple = liar(tuple, "__len__", "__iter__", "__getitem__", "__eq__", "__hash__", "__bool__", "__contains__")
LyingList = liar(list, "__len__", "__iter__", "__getitem__", "__eq__", "__bool__", "__contains__")
LyingStr = liar(str, "__len__", "__iter__", "__getitem__", "__eq__", "__str__", "__bool__", "encode")
LyingBytes = liar(bytes, "__len__", "__iter__", "__getitem__", "__eq__", "__hash__", "__bytes__")
LyingFloat = liar(float, "__float__", "__bool__", "__eq__", "__hash__", "__int__")
LyingDict = liar(dict, "__getitem__", "__len__", "__iter__", "__contains__", "get", "keys", "items", "__bool__", "copy")


class Missing(dict):
    def __missing__(self, key: Any) -> Any:
        return (1,)


class BrokenKey(str):
    """A key that has the hash of another one, and is no other one until it is armed."""

    armed: Callable[[], Any] | None = None

    def __hash__(self) -> int:
        return hash(str.__str__(self)[1:])

    def __eq__(self, other: Any) -> Any:
        return self.armed() if self.armed else False


def of_property(call: Callable[[], Any]) -> Any:
    return Building(call)


def attribute_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    for kind in (RuntimeError, ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, StopIteration, Own,
                 OwnBase, RecursionError, SystemError, LookupError):  # fmt: skip
        def raises(kind: Any = kind) -> Any:
            error = kind("by the property")
            return of_property(raising(error)), error, error

        yield f"a property raises {kind.__name__}", raises, 0
    for kind in (AttributeError, OwnAttribute):
        yield f"a property raises {kind.__name__}", (
            lambda kind=kind: (of_property(raising(kind)), TypeError, TypeError)), 0  # fmt: skip
    yield "a new dictionary each time", lambda: (of_property(lambda: dict(PLAIN)), "ok", "ok"), 0
    for value in (None, 1, "x", [], (), types.MappingProxyType(PLAIN), collections.UserDict(PLAIN), object(), dict):
        yield f"the attribute is {type(value).__name__}", lambda value=value: (Exporter(value), TypeError, TypeError), 0

    def getattr_raises(kind: type, expected: Any) -> Any:
        error: Any = kind if expected else kind("by __getattr__")
        made = type("Asked", (), {"__getattr__": raising(error)})()
        return made, expected or error, expected or error

    yield "__getattr__ raises AttributeError", lambda: getattr_raises(AttributeError, TypeError), 0
    yield "__getattr__ raises a subclass of AttributeError", lambda: getattr_raises(OwnAttribute, TypeError), 0
    yield "__getattr__ raises something else", lambda: getattr_raises(Own, None), 0
    yield "__getattr__ raises KeyboardInterrupt", lambda: getattr_raises(KeyboardInterrupt, None), 0

    def getattribute(answer: Callable[..., Any], expected: Any) -> Any:
        return type("Asked", (), {"__getattribute__": answer})(), expected, expected

    error = Own("by __getattribute__")
    yield "__getattribute__ raises", lambda: getattribute(raising(error), error), 0
    yield "__getattribute__ says a dictionary", lambda: getattribute(lambda *_: PLAIN, "ok"), 0
    yield "__getattribute__ says None", lambda: getattribute(lambda *_: None, TypeError), 0


def object_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    class WithDictionary:
        __cuda_array_interface__ = PLAIN

    class Descriptor:
        def __get__(self, instance: Any, owner: Any) -> Any:
            raise Own("of the class")

    class Meta(type):
        @property
        def __cuda_array_interface__(cls) -> Any:
            return PLAIN

    module = types.ModuleType("exporting")
    setattr(module, CUDA, PLAIN)

    def function() -> None:
        """Has attributes, too."""

    setattr(function, CUDA, PLAIN)
    slots = type("Slots", (), {"__slots__": (CUDA,)})
    yield "a class with a property (R1)", lambda: (Building, TypeError, TypeError), 0
    yield "a class with an empty slot", lambda: (slots, TypeError, TypeError), 0
    yield "an empty slot", lambda: (slots(), TypeError, TypeError), 0
    yield "a class with a dictionary", lambda: (WithDictionary, "ok", "ok"), 0
    yield "a class whose descriptor raises", lambda: (type("C", (), {CUDA: Descriptor()}), Own, Own), 0
    yield "a class whose metaclass has it", lambda: (Meta("C", (), {}), "ok", "ok"), 0
    yield "a module that has it", lambda: (module, "ok", "ok"), 0
    yield "a function that has it", lambda: (function, "ok", "ok"), 0
    for value in (None, sys, 1, True, "<f4", b"", (), [], {}, dict(PLAIN), object(), type, Ellipsis, len):
        yield f"{value!r:.40} has nothing", lambda value=value: (value, TypeError, TypeError), 0
    keeper = Exporter(PLAIN)
    yield "a weak proxy", lambda: (weakref.proxy(keeper), "ok", "ok"), 0
    yield "a weak proxy of the dead", lambda: (weakref.proxy(Exporter(PLAIN)), ReferenceError, ReferenceError), 0
    both = Exporter(PLAIN)
    setattr(both, HOST, {})
    yield "both interfaces: that of CUDA counts", lambda: (both, "ok", "ok"), 1
    yield "in host memory, and not asked for", lambda: (Exporter(PLAIN, HOST), TypeError, TypeError), 0
    yield "in host memory", lambda: (Exporter(PLAIN, HOST), "ok", "ok"), 1
    yield "in host memory a stream means nothing", lambda: (Exporter(plus(stream=0), HOST), "ok", "ok"), 1
    yield "neither interface", lambda: (object(), TypeError, TypeError), 1
    error = Own("by the second property")
    second = type("Second", (), {HOST: property(raising(error))})
    yield "the second property raises", lambda: (second(), error, error), 1
    first = type("First", (), {CUDA: property(raising(OwnAttribute)), HOST: PLAIN})
    yield "the first property says AttributeError", lambda: (first(), "ok", "ok"), 1
    falls = type("C", (), {CUDA: property(len), HOST: PLAIN})
    yield "a class with a property, and a dictionary for host memory", lambda: (falls, "ok", "ok"), 1
    yield "a class with both properties", (
        lambda: (type("C", (), {CUDA: property(len), HOST: property(len)}), TypeError, TypeError)), 1  # fmt: skip


def dictionary_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    for kind in (LyingDict, collections.OrderedDict, Missing):
        yield f"a {kind.__name__}, read as dict", lambda kind=kind: (Exporter(kind(PLAIN)), "ok", "ok"), 0
    yield "an empty dict with __missing__", lambda: (Exporter(Missing()), ValueError, ValueError), 0
    yield "a defaultdict", lambda: (Exporter(collections.defaultdict(tuple)), ValueError, ValueError), 0
    yield "keys of any type", (
        lambda: (Exporter(plus(**{}) | {1: 2, None: 3, (): [], "\ud800": "\ud800", "": object()}), "ok", "ok")), 0  # fmt: skip
    yield "a dictionary in itself", (
        lambda: (lambda d: (d.update(x=d, descr=d), (Exporter(d), TypeError, TypeError))[1])(plus())), 0  # fmt: skip

    def broken(compare: Callable[..., Any], expected: Any) -> Any:
        key = BrokenKey("?shape")
        table: dict[Any, Any] = {key: (2, 3)}
        table.update(PLAIN)
        key.armed = compare
        return Exporter(table), expected, expected

    error = Own("by __eq__ of a key")
    yield "__eq__ of a key raises", lambda: broken(raising(error), error), 0
    yield "__eq__ of a key says False", lambda: broken(lambda: False, "ok"), 0
    yield "__eq__ of a key says True", lambda: broken(lambda: True, "ok"), 0

    class NoTruth:
        __bool__ = raising(error)

    yield "__eq__ of a key says what has no truth", lambda: broken(NoTruth, error), 0

    def clears() -> Any:
        key = BrokenKey("?typestr")
        table: dict[Any, Any] = {key: "<f8"}
        table.update(PLAIN)
        table["typestr"] = "".join(("<", "f", "4"))
        key.armed = table.clear
        return Exporter(table), ("ok", RuntimeError, *DOCUMENTED), ("ok", RuntimeError, *DOCUMENTED)

    yield "__eq__ of a key clears the dictionary", clears, 0


def value_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    shape = LyingTuple((LyingInt(2), LyingInt(3)))
    table = {"shape": shape, "typestr": LyingStr("<f4"), "data": LyingTuple((LyingInt(ADDRESS), False)),
             "version": LyingInt(3), "strides": LyingTuple((LyingInt(12), LyingInt(4))), "stream": LyingInt(7),
             "descr": LyingList([LyingTuple((LyingStr("x"), LyingStr("<f4")))])}  # fmt: skip
    yield "subclasses that lie about themselves", lambda: (Exporter(table), "ok", "ok"), 0
    yield "a lying list", lambda: (Exporter(plus(shape=LyingList([2, 3]))), TypeError, "ok"), 0
    yield "lying bytes", lambda: (Exporter(plus(typestr=LyingBytes(b"<f4"))), TypeError, "ok"), 0
    yield "a lying float", lambda: (Exporter(plus(data=(ADDRESS, LyingFloat(0)))), TypeError, "ok"), 0
    yield "a lying int as read-only", lambda: (Exporter(plus(data=(ADDRESS, LyingInt(1)))), "ok", "ok"), 0
    yield "a bytearray", lambda: (Exporter(plus(typestr=bytearray(b"<f4"))), TypeError, TypeError), 0
    for text in ("<f4\ud800", "\udfff", "<f4\0", "\0", "<f\u0664", "\uff1cf4", "\U0001f600", "f" * 5000, "<f4" * 9999999, ""):
        yield f"typestr {text[:8]!a}, {len(text)}", (
            lambda text=text: (Exporter(plus(typestr=text)), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
    for text in ("\ud800", "\0", "\u00fc\U0001f600", "x" * 10**6):
        expected = DOCUMENTED if text == "\ud800" else "ok"
        yield f"a field named {text[:4]!a}", (
            lambda text=text, e=expected: (Exporter(plus(descr=[(text, "<f4")])), e, e)), 0  # fmt: skip
    for number in (10**5000, -(10**5000), 2**64, -(2**63) - 1):
        for key in ("version", "stream"):
            yield f"{key} of {number.bit_length()} bits", (
                lambda k=key, n=number: (Exporter(plus(**{k: n})), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
        yield f"shape of {number.bit_length()} bits", (
            lambda n=number: (Exporter(plus(shape=(n,))), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip

    error = Own("by __bool__")

    class Truth:
        __bool__ = raising(error)

    class NoTruth:
        __bool__ = lambda self: 7  # noqa: E731

    class Long:
        __len__ = lambda self: 10**30  # noqa: E731

    yield "a truth that raises", lambda: (Exporter(plus(data=(ADDRESS, Truth()))), TypeError, error), 0
    yield "a truth that is none", lambda: (Exporter(plus(data=(ADDRESS, NoTruth()))), TypeError, TypeError), 0
    yield "a length that is none", lambda: (Exporter(plus(data=(ADDRESS, Long()))), TypeError, OverflowError), 0
    yield "an object of any truth", lambda: (Exporter(plus(data=(ADDRESS, object()))), TypeError, "ok"), 0
    yield "not a number", lambda: (Exporter(plus(data=(ADDRESS, float("nan")))), TypeError, "ok"), 0


def index_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    def with_number(value: Any, strict: Any, lenient: Any, key: str = "shape") -> Any:
        return Exporter(plus(**{key: (2, Number(value)) if key == "shape" else Number(value)})), strict, lenient

    yield "__index__ says 3", lambda: with_number(3, TypeError, "ok"), 0
    yield "__index__ says an int that lies", lambda: with_number(LyingInt(3), TypeError, "ok"), 0
    for value in ("3", None, 3.0, (3,)):
        yield f"__index__ says {value!r}", lambda value=value: with_number(value, TypeError, TypeError), 0
    for value in (2**63, 2**64 - 1, 2**64, 10**400, -(2**63) - 1):
        for key in ("shape", "version", "stream"):
            yield f"__index__ of {key} of {value.bit_length()} bits", (
                lambda v=value, k=key: with_number(v, DOCUMENTED, DOCUMENTED, k)), 0  # fmt: skip
    pointer = plus(data=(Number(2**63 + 64), False))
    yield "__index__ of a pointer above 2^63, strict", lambda: (Exporter(pointer), TypeError, TypeError), 0
    for error in (Own("by __index__"), OwnBase(), KeyboardInterrupt(), OwnAttribute(), IndexError(), OverflowError(),
                  TypeError("by __index__"), MemoryError()):  # fmt: skip
        for key in ("shape", "version", "stream", "data", "descr"):
            swallowed = type(error) is TypeError  # one that is raised again keeps the frames of the last time
            value = Number(1, raising(TypeError if swallowed else error))
            entry = {"shape": (value,), "data": (value, False), "descr": [("x", "<f4", value)]}.get(key, value)
            expected = TypeError if swallowed else error  # of TypeError the entry is named instead
            yield f"__index__ of {key} raises {type(error).__name__}", (
                lambda e=expected, k=key, v=entry: (Exporter(plus(**{k: v})), e, e)), 0  # fmt: skip

    def changing(change: Callable[[dict[str, Any], list[Any], Any], Any], lenient: Any, wrap: type = list) -> Any:
        table = plus()
        items: list[Any] = [2, 0, 3]
        thing = Exporter(table)
        seen = weakref.ref(thing)  # so that no change of the list drops a reference to the object
        items[1] = Number(1, lambda: change(table, items, seen()))
        table["shape"] = items if wrap is list else wrap(items)
        table["strides"] = [12, 12, 4]
        table["typestr"] = "".join(("<", "f", "4"))
        return thing, (TypeError, ValueError), lenient

    yield "__index__ clears the dictionary", lambda: changing(lambda d, i, t: d.clear(), "ok"), 0
    yield "__index__ fills the dictionary", (
        lambda: changing(lambda d, i, t: d.update({str(n): n for n in range(9999)}), "ok")), 0  # fmt: skip
    yield "__index__ deletes what is read", lambda: changing(lambda d, i, t: d.pop("shape", 0), "ok"), 0
    yield "__index__ deletes what comes", lambda: changing(lambda d, i, t: d.pop("data", 0), "ok"), 0
    yield "__index__ exchanges what comes", lambda: changing(lambda d, i, t: d.update(typestr="".join("<f4")), "ok"), 0
    yield "__index__ clears the list", lambda: changing(lambda d, i, t: i.clear(), "ok"), 0
    yield "__index__ extends the list", lambda: changing(lambda d, i, t: i.extend([Number(1)] * 9999), "ok"), 0
    yield "__index__ sorts the list", lambda: changing(lambda d, i, t: i.sort(key=id), "ok"), 0
    yield "__index__ deletes the attribute", lambda: changing(lambda d, i, t: t.__dict__.clear(), "ok", tuple), 0
    yield "__index__ collects", (
        lambda: changing(lambda d, i, t: (d.clear(), i.clear(), t.__dict__.clear(), gc.collect(0)), "ok")), 0  # fmt: skip
    yield "__index__ makes another object of it", (
        lambda: changing(lambda d, i, t: setattr(t, "__class__", Other), "ok")), 0  # fmt: skip
    yield "__index__ imports and releases", (
        lambda: changing(lambda d, i, t: (take(Exporter(PLAIN), 0), probe.drain()), "ok")), 0  # fmt: skip
    yield "__index__ imports, and leaves it to others", (
        lambda: changing(lambda d, i, t: probe.let_go(probe.hold((Exporter(plus()),), 0)), "ok")), 0  # fmt: skip

    def freeing() -> Any:
        """The strings of a list that is cleared while it is read; by then others are where they were."""
        kept: list[str] = []
        items: list[Any] = []

        def mask() -> Any:
            kept.extend("".join(("<", "x", str(n % 10))) for n in range(3000))
            return plus(typestr="|b1")

        items += [(f"name {n}", "".join(("<", "f", str(8)))) for n in range(50)]
        items.append(("last", "<f8", Number(1, items.clear)))
        return Exporter(plus(typestr="|V408", descr=items, mask=Building(mask))), DOCUMENTED, "ok"

    yield "__index__ clears a list of strings", freeing, 0

    def itself(depth: int) -> Any:
        thing = Exporter(plus())
        left = [depth]

        def again() -> None:
            left[0] -= 1
            if left[0] > 0:
                take(thing, flags_of(True))

        getattr(thing, CUDA)["shape"] = (2, Number(3, again))
        return thing, TypeError, "ok"

    yield "__index__ imports its own object", lambda: itself(20), 0

    class Turning:
        def __index__(self) -> int:
            self.__class__ = Other
            return 3

    yield "__index__ becomes another class", lambda: (Exporter(plus(shape=(2, Turning()))), TypeError, "ok"), 0


class Other:
    """What an object may become."""


def deep(kind: type, levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = kind((value,))
    return value


def cycle(width: int, kind: str = "list") -> Any:
    items: list[Any] = []
    items.extend([items] * width if kind == "list" else [(items,)] * width)
    return items


def deep_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    for key in ("shape", "descr"):
        for kind in (tuple, list):
            yield f"{key} nested 200000 times in a {kind.__name__}", (
                lambda k=key, t=kind: (Exporter(plus(**{k: deep(t, 200000)})), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
        yield f"{key} contains itself", lambda k=key: (Exporter(plus(**{k: cycle(1)})), DOCUMENTED, DOCUMENTED), 0
    fields = [(f"f{i}", "|i1") for i in range(5000)]
    for n, good in ((65, "ok"), (66, "ok"), (4096, "ok"), (5000, ValueError)):
        yield f"a descr of {n} fields", (
            lambda n=n, e=good: (Exporter(plus(typestr=f"|V{n}", descr=fields[:n])), e, e)), 0  # fmt: skip
    yield "data of items that nobody reads", (
        lambda: (Exporter(plus(data=(ADDRESS, False) + (1,) * 5000)), ValueError, "ok")), 0  # fmt: skip


def large_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    for key in KEYS:
        for levels in (199, 200, 201, 202, 1000, 50000):
            for kind in (tuple, list):
                yield f"{key} nested {levels} times in a {kind.__name__}", (
                    lambda k=key, n=levels, t=kind: (Exporter(plus(**{k: deep(t, n)})), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
        for width, kind in ((1, "list"), (2, "list"), (65, "list"), (66, "tuple"), (1, "tuple")):
            yield f"{key} contains itself {width} times in a {kind}", (
                lambda k=key, w=width, t=kind: (Exporter(plus(**{k: cycle(w, t)})), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
    for key in KEYS:
        for kind in (tuple, list):
            def huge(key: str = key, kind: type = kind) -> Any:
                value = kind((ADDRESS,)) * 10_000_000
                return Exporter(plus(**{key: value})), DOCUMENTED, "ok" if key == "data" else DOCUMENTED

            yield f"{key} is a {kind.__name__} of 10,000,000", huge, 0
    ones = (1,) * 64
    axes = plus(shape=ones, strides=ones)
    yield "64 axes", lambda: (Exporter(plus(shape=ones, strides=ones)), "ok", "ok"), 0
    yield "64 axes, and a mask of 64", (
        lambda: (Exporter({**axes, "mask": Exporter(axes)}), "ok", "ok")), 0  # fmt: skip


def mask_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    error = Own("by the property of a mask")
    fits = plus(typestr="|b1")
    yield "a mask", lambda: (Exporter(plus(mask=Exporter(fits))), "ok", "ok"), 0
    yield "a mask that is not asked for", lambda: (Exporter(plus(mask=Exporter(fits))), ValueError, ValueError), 2
    yield "a mask None that is not asked for", lambda: (Exporter(plus(mask=None)), "ok", "ok"), 2
    yield "a mask built anew", lambda: (Exporter(plus(mask=Building(lambda: dict(fits)))), "ok", "ok"), 0
    yield "a mask and its array built anew", (
        lambda: (Building(lambda: plus(mask=Building(lambda: dict(fits)))), "ok", "ok")), 0  # fmt: skip
    yield "a mask raises", lambda: (Exporter(plus(mask=Building(raising(error)))), error, error), 0
    yield "a mask says AttributeError", (
        lambda: (Exporter(plus(mask=Building(raising(OwnAttribute)))), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
    yield "a mask that is a class", lambda: (Exporter(plus(mask=Building)), DOCUMENTED, DOCUMENTED), 0
    yield "a mask that is a dict", lambda: (Exporter(plus(mask=dict(fits))), DOCUMENTED, DOCUMENTED), 0
    yield "a mask with no dict", lambda: (Exporter(plus(mask=Exporter(7))), TypeError, TypeError), 0
    yield "a mask with a mask", (
        lambda: (Exporter(plus(mask=Exporter({**fits, "mask": Exporter(fits)}))), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
    yield "a mask with a mask of None", lambda: (Exporter(plus(mask=Exporter({**fits, "mask": None}))), "ok", "ok"), 0
    yield "a mask in host memory of an array that is not", (
        lambda: (Exporter(plus(mask=Exporter(fits, HOST))), DOCUMENTED, DOCUMENTED)), 0  # fmt: skip
    yield "a mask in host memory", lambda: (Exporter(plus(mask=Exporter(fits, HOST)), HOST), "ok", "ok"), 1

    def own() -> Any:
        thing = Exporter(plus())
        getattr(thing, CUDA)["mask"] = thing
        return thing, DOCUMENTED, DOCUMENTED

    def clearing() -> Any:
        table = plus()

        def clear() -> Any:
            table.clear()
            gc.collect(0)
            return dict(fits)

        table["mask"] = Building(clear)
        return Exporter(table), "ok", "ok"

    def asks_again() -> Any:
        thing = Building(lambda: plus(mask=thing))
        return thing, DOCUMENTED, DOCUMENTED

    yield "an array that is its own mask", own, 0
    yield "an array that is its own mask, built anew", asks_again, 0
    yield "a mask clears the dictionary of its array", clearing, 0


def numpy_lies() -> Iterator[tuple[str, Callable[[], Any], int]]:
    try:
        import numpy as np
    except ImportError:
        return
    yield "shape of np.int64", lambda: (Exporter(plus(shape=tuple(np.array([2, 3])))), TypeError, "ok"), 0
    yield "shape of np.uint8", lambda: (Exporter(plus(shape=(np.uint8(2), np.int16(3)))), TypeError, "ok"), 0
    yield "a pointer of np.uint64", lambda: (Exporter(plus(data=(np.uint64(ADDRESS), False))), TypeError, "ok"), 0
    yield "a pointer of np.uint64 above 2^63", (
        lambda: (Exporter(plus(data=(np.uint64(2**63 + 64), False))), TypeError, TypeError)), 0  # fmt: skip
    yield "np.bool_", lambda: (Exporter(plus(data=(ADDRESS, np.bool_(True)))), TypeError, "ok"), 0
    yield "np.str_", lambda: (Exporter(plus(typestr=np.str_("<f4"))), "ok", "ok"), 0
    yield "shape is an array", lambda: (Exporter(plus(shape=np.array([2, 3]))), TypeError, TypeError), 0
    yield "version is an array", lambda: (Exporter(plus(version=np.array(3))), TypeError, "ok"), 0
    yield "a float of NumPy", lambda: (Exporter(plus(shape=(np.float64(2), 3))), TypeError, TypeError), 0


def all_lies(large: bool = True) -> Iterator[tuple[str, Callable[[], Any], int]]:
    for source in (attribute_lies, object_lies, dictionary_lies, value_lies, index_lies, mask_lies, numpy_lies, deep_lies):
        yield from source()
    if large:
        yield from large_lies()


def lie_flags(kind: int, lenient: bool) -> int:
    """kind 0: masks, too; 1: and host memory; 2: neither."""
    return (probe.LENIENT if lenient else 0) | (probe.MASK if kind != 2 else 0) | (probe.HOST if kind == 1 else 0)


def as_expected(error: BaseException | None, expected: Any) -> bool:
    if isinstance(expected, BaseException):
        return error is expected
    choices = expected if isinstance(expected, tuple) else (expected,)
    return "ok" in choices if error is None else type(error) in choices


def check_meanings() -> None:
    """What is accepted, and what it is taken for."""
    for value, read_only in ((0.0, False), (-0.0, False), (0.5, True), (float("nan"), True), ("", False),
                             ("x", True), (b"", False), (b"\0", True), ((), False), ((0,), True),
                             ([], False), ([0], True), ({}, False), ({0: 0}, True),
                             (None, False), (0, False), (2, True), (2**70, True), (object(), True), (set(), False),
                             (True, True), (False, False), (Number(0), False), (Number(3), True)):  # fmt: skip
        facts, error = take(Exporter(plus(data=(ADDRESS, value))), flags_of(True))
        check(error is None and facts["read_only"] is read_only, f"read-only {value!r}: {error!r} {facts}")
    mask = Exporter({**PLAIN, "typestr": "|b1", "version": 1}, HOST)
    facts, error = take(Exporter(plus(version=2, stream=5, mask=mask), HOST), probe.HOST | probe.MASK)
    for each in (facts, facts["mask"]) if check(error is None, f"host memory with a mask: {error!r}") else ():
        check((each["memory"], each["sync"], each["stream"]) == (1, "none", None), f"host memory: {each}")
    for call, word in (
        (lambda: probe.stream(None), "None"),
        (lambda: probe.stream(object()), "__cuda_stream__"),
        (lambda: take(Building, 0), CUDA),
        (lambda: take(object(), probe.HOST), HOST),
        (lambda: take(Exporter(None), 0), "not a dictionary"),
        (lambda: take(Exporter(None, HOST), probe.HOST), HOST + " is not a dictionary"),
    ):
        result, error = attempt(call)
        error = error or result[1]
        check(type(error) is TypeError and word in str(error), f"{word!r} is not in {error!r}")
    check("could mean" in str(attempt(lambda: probe.stream(None))[1]), "why None is no stream")


def check_default_descr() -> None:
    """[('', typestr)] says nothing, whichever str it has; what is almost the same is judged."""
    class Text(str):
        pass

    same = "".join(["<", "f4"])  # another str than that of the typestr
    cases = [
        ("<f4", [("", same)], None), ("<f4", [("", Text("<f4"))], None), ("<f4", [("a", "<f4")], None), ("<f4", [(Text(""), "<f4")], None),
        ("<f4", [("", "<i4")], None), ("<f4", [("", "<f8")], ValueError), ("<f4", [("", "<f2")], ValueError),
        ("<f4", [("", "<f4"), ("", "<f4")], ValueError), ("<f4", [("", "<f4", (2,))], ValueError), ("<f4", [("", 4)], TypeError),
        ("<f4", [["", "<f4"]], TypeError), ("<f4", [], ValueError), ("|t8", [("", "|t8")], ValueError), ("<f5", [("", "<f5")], ValueError),
    ]  # fmt: skip
    for typestr, descr, wanted in cases:
        thing = Exporter(plus(typestr=typestr, descr=descr, strides=None))
        before = sys.getrefcount(descr[0]) if descr else 0
        held, error = attempt(lambda: probe.hold((thing,), probe.FIELDS if hasattr(probe, "FIELDS") else 0))
        held = None
        good = error is None if wanted is None else isinstance(error, wanted)
        check(good, f"{typestr}, descr {descr}: {error!r}")
        check(not descr or sys.getrefcount(descr[0]) == before, f"{typestr}, descr {descr}: references of its row")


def check_other_keys() -> None:
    """Keys of no meaning, and keys that are equal to a known one, but another object."""
    shape = tuple([2, 3])
    for key in ("unknown", 7, "".join(["str", "eam"])):
        thing = Exporter({**plus(shape=shape), key: 1})
        before = sys.getrefcount(shape)
        facts, error = take(thing, 0)
        check(error is None and facts["shape"] == [2, 3], f"a key {key!r}: {facts or error!r}")
        check(sys.getrefcount(shape) == before, f"a key {key!r}: {sys.getrefcount(shape) - before} references")


def part_lies(options: argparse.Namespace) -> None:
    check_meanings()
    check_default_descr()
    check_other_keys()
    outcomes: collections.Counter[str] = collections.Counter()
    for name, make, kind in all_lies(options.large):
        for lenient, profile in PROFILES:
            thing, *expected = make()
            take(object, 0)  # the type of classes is among those remembered, and a thing here
            before = sys.getrefcount(thing)
            _, error = take(thing, lie_flags(kind, lenient))
            outcomes[type(error).__name__ if error is not None else "accepted"] += 1
            check(as_expected(error, expected[lenient]), f"{name}, {profile}: {error!r:.300}, expected {expected[lenient]!r}")
            check(not isinstance(error, SystemError) or error is expected[lenient], f"{name}, {profile}: {error!r}")
            error = None
            probe.drain()
            check(probe.live() == 0, f"{name}, {profile}: {probe.live()} live")
            grown = sys.getrefcount(thing) - before
            check(grown == 0 or thing is None, f"{name}, {profile}: {grown} references")
    _, error = attempt(lambda: probe.hold((), 4))
    check(type(error) is ValueError, f"flags of no meaning: {error!r}")
    check(probe.facts(probe.hold((), 0, True)) == [], "no object at all")
    check("a bool has no subclasses" if attempt(lambda: type("B", (bool,), {}))[1] else "", "bool has a subclass")
    print(", ".join(f"{name} {count}" for name, count in outcomes.most_common()))


# --------------------------------------------------------------------------------- streams


class Streaming:
    """An object with __cuda_stream__."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer() if callable(self.answer) else self.answer


def stream_cases(large: bool = True) -> Iterator[tuple[str, Any, Any]]:
    yield from ((repr(n)[:30], n, n) for n in (1, 2, 3, 2**31, 2**63 - 1, 2**63, 2**64 - 1))
    yield from ((repr(n)[:30], n, ValueError) for n in (0, -1, -(2**63)))
    yield from ((repr(n)[:30], n, DOCUMENTED) for n in (2**64, -(2**63) - 1, 10**400))
    for value in (True, False, None, 1.0, "1", b"1", (0, 1), [], object(), Number(1), Streaming):
        yield repr(value)[:30], value, TypeError
    yield "an int that lies", LyingInt(7), 7
    good = [((0, 7), 7), ([0, 7], 7), ((0, 0), 1), ((0, 1), 1), ((0, 2), 2), ((0, 2**64 - 1), 2**64 - 1), ((0, 2**63), 2**63),
            (LyingTuple((LyingInt(0), LyingInt(9))), 9), (LyingList([0, 9]), 9)]  # fmt: skip
    yield from ((f"__cuda_stream__ says {type(a).__name__}, {n}", Streaming(a), n) for a, n in good)
    bad: list[Any] = [(1, 7), (0, -1), (0, -(2**63)), (0, 2**64), (0, 10**400), (-1, 7), (2**64, 7), (0,), (0, 7, 0), (), [0],
                      7, None, "07", (0, None), (0, 7.0), (None, 7), (0, True), (False, 7), (True, 7), ((0, 7),),
                      (0, (7,)), {0: 7}, {}, object(),
                      ((0, 7), 7), (0, "7"), (0, b"7"), (Number(0), 7), (0, Number(7)), (0, Number(2**63 + 5))]  # fmt: skip
    if large:
        bad += [deep(tuple, 5000), deep(list, 5000), cycle(2), cycle(65), (0,) * 10_000_000, [0] * 10_000_000]
    yield from ((f"__cuda_stream__ says {type(a).__name__} {number}", Streaming(a), DOCUMENTED) for number, a in enumerate(bad))
    for error in (Own(), OwnBase(), KeyboardInterrupt(), OwnAttribute("in it"), AttributeError("in it")):
        yield f"__cuda_stream__ raises {type(error).__name__}", Streaming(raising(error)), error
    error = Own("by the property")
    yield "__cuda_stream__ is a property that raises", type("S", (), {"__cuda_stream__": property(raising(error))})(), error
    attribute = type("S", (), {"__cuda_stream__": property(raising(OwnAttribute))})()
    yield "__cuda_stream__ is a property that says AttributeError", attribute, TypeError
    for value in (7, (0, 7), None):
        yield f"__cuda_stream__ is {value}", type("S", (), {"__cuda_stream__": value})(), TypeError
    yield "__cuda_stream__ takes an argument", type("S", (), {"__cuda_stream__": lambda self, x: (0, x)})(), TypeError
    index = Number(7, raising(error))
    yield "__index__ of a handle raises", Streaming((0, index)), error
    try:
        import numpy as np
    except ImportError:
        return
    yield from ((f"{n!r}", n, TypeError) for n in (np.int64(7), np.uint64(2**63), np.bool_(True), np.array(7)))
    yield "a handle of np.int64", Streaming((0, np.int64(7))), TypeError
    yield "a handle of np.uint64 above 2^63", Streaming((0, np.uint64(2**63 + 5))), TypeError


def part_streams(options: argparse.Namespace) -> None:
    accepted = refused = 0
    for name, thing, expected in stream_cases(options.large):
        before = sys.getrefcount(thing)
        number, error = attempt(lambda: probe.stream(thing))
        if isinstance(expected, int) and not isinstance(expected, type):
            check(number == expected and error is None, f"{name}: {number} {error!r:.300}, expected {expected}")
        else:
            check(error is not None and as_expected(error, expected), f"{name}: {number} {error!r:.300}, expected {expected!r}")
        accepted += error is None
        refused += error is not None
        error = None
        shared = thing is None or isinstance(thing, (bool, int, type))
        check(shared or sys.getrefcount(thing) == before, f"{name}: {sys.getrefcount(thing) - before} references")
    print(f"{accepted} streams accepted, {refused} refused")


# ----------------------------------------------------------------------------------- group


def part_group(options: argparse.Namespace) -> None:
    """All or none."""
    rng = random.Random(options.seed)
    tables = [plus(), plus(mask=Exporter(plus(typestr="|b1"))), plus(stream=7)]
    rounds = 0
    for count in (1, 2, 3, 7, 64, 300):
        for k in sorted({0, 1, count // 2, count - 1} & set(range(count))):
            for error in (Own(f"{k} of {count}"), None):
                things: list[Any] = [Exporter(dict(rng.choice(tables))) for _ in range(count)]
                things[k] = Building(raising(error)) if error else Exporter(plus(shape=(-1,)))
                group = tuple(things)
                before = [sys.getrefcount(thing) for thing in things]
                inner = [sys.getrefcount(v) for thing in things for v in vars(thing).values()]
                _, got = attempt(lambda: probe.hold(group, probe.MASK))
                good = got is error if error else type(got) is ValueError and "shape[0] = -1" in str(got)
                check(good, f"{k} of {count}: {got!r}")
                del got
                check(probe.live() == 0, f"{k} of {count}: {probe.live()} live")
                check([sys.getrefcount(thing) for thing in things] == before, f"{k} of {count}: references of objects")
                now = [sys.getrefcount(v) for thing in things for v in vars(thing).values()]
                check(now == inner, f"{k} of {count}: references of values")
                rounds += 1
    same = Exporter(plus())
    before = sys.getrefcount(same)
    held = probe.hold((same,) * 300, 0)
    check(probe.live() == 300 and sys.getrefcount(same) == before + 300, "one object 300 times")
    probe.release(held)
    check(probe.live() == 0 and sys.getrefcount(same) == before, "one object 300 times, released")
    group_undo_runs_code()
    print(f"{rounds} groups with one that fails")


def group_undo_runs_code() -> None:
    """What is dropped while a failed import is undone runs code that imports, fails and raises; the first exception stays."""
    ran = []

    class Dying(Exporter):
        def __del__(self) -> None:
            ran.append(type(take(Exporter(plus(shape=(-1,))), 0)[1]))
            take(Exporter(plus()), 0)

    def let_one_go() -> Any:
        probe.let_go(probe.hold((Dying(plus()),), 0))
        raise error

    error = Own("the first one")
    _, got = attempt(lambda: probe.hold((Exporter(plus()), Building(let_one_go)), 0))
    check(got is error, f"undone with code that runs meanwhile: {got!r}")
    check(ran == [ValueError], f"the code that ran meanwhile: {ran}")
    check(probe.live() == 0, f"{probe.live()} live after that")


# ------------------------------------------------------------------------------ references


def everything_in(value: Any, found: dict[int, Any] | None = None) -> list[Any]:
    """All objects that a live object consists of, but those that the interpreter shares."""
    found = {} if found is None else found
    shared = isinstance(value, (bool, type(None), type)) or (isinstance(value, int) and -10 < value < 300)
    if id(value) in found or shared or len(found) > 300:
        return list(found.values())
    found[id(value)] = value
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    elif isinstance(value, Exporter):
        inner = list(vars(value).values())
    for item in inner:
        everything_in(item, found)
    return list(found.values())


def references_of(things: list[Any]) -> list[int]:
    return [sys.getrefcount(thing) for thing in things]


def references_of_cases(options: argparse.Namespace) -> int:
    paths = 0
    for name, line in cases():
        thing = Exporter(with_masks(ast.literal_eval(line)))
        things = everything_in(thing)
        for lenient, profile in PROFILES:
            before = references_of(things)
            for _ in range(10):
                take(thing, flags_of(lenient))
            gone = [a - b for a, b in zip(references_of(things), before)]
            check(not any(gone), f"{name}, {profile}: references {gone}")
            paths += 1
        before = references_of(things)
        held, error = attempt(lambda: probe.hold((thing,), flags_of(True)))
        for version in range(4):
            for _ in range(10):
                attempt(lambda: probe.interface(held, 0, version, getattr(thing, CUDA).get("mask")))
        held, error = None, None  # by the destructor of the capsule, and drained with the next import
        take(Exporter(PLAIN), 0)
        gone = [a - b for a, b in zip(references_of(things), before)]
        check(not any(gone), f"{name}, exported: references {gone}")
        paths += 1
    return paths


def memory_paths(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every path, with objects made for each call, so that what is left behind is memory."""
    for name, line in cases():
        for lenient, profile in PROFILES:
            yield f"{name}, {profile}", lambda l=line, n=lenient: take(Exporter(with_masks(ast.literal_eval(l))), flags_of(n))
    for name, make, kind in all_lies(large=False):
        if "29999997" in name or "200000" in name:  # once is enough
            continue
        for lenient, profile in PROFILES:
            yield f"{name}, {profile}", lambda m=make, k=kind, n=lenient: take(m()[0], lie_flags(k, n))
    fields = [(f"f{i}", "|i1") for i in range(200)]
    yield "more tokens than fit on the stack", lambda: take(Exporter(plus(typestr="|V200", descr=fields)), 0)
    broken = plus(typestr="|V200", descr=fields + [Number(1, raising(Own()))])
    yield "a descr that ends too early", lambda: take(Exporter(broken), 0)
    for name, thing, _ in stream_cases(large=False):
        yield f"stream: {name}", lambda t=thing: probe.stream(t)
    yield "a new pair of a stream", lambda: probe.stream(Streaming(lambda: [0, 7]))
    big = 10**20
    yield "a new number by __index__", lambda: take(Exporter(plus(shape=(Number(big * big), 1))), flags_of(True))
    yield "lists", lambda: take(Exporter(plus(shape=[2, 3], strides=[12, 4], data=[ADDRESS, False])), flags_of(True))

    def masked() -> Any:
        return Exporter(plus(mask=Exporter(plus(typestr="|b1"))))

    def exported(version: int, mask: Any = None) -> Any:
        thing = masked() if mask else Exporter(plus(strides=(12 + 2**40, 4 + 2**40), stream=2**60))
        return probe.interface(probe.hold((thing,), probe.MASK), 0, version, mask)

    for version in range(-1, 5):
        yield f"exported as {version}", lambda v=version: exported(v)
        yield f"exported as {version}, with a mask", lambda v=version: exported(v, object())
    yield "a mask that is not asked for", lambda: take(masked(), 0)
    yield "a group that fails", lambda: probe.hold((masked(), masked(), Building(raising(Own()))), probe.MASK)
    yield "released later", lambda: probe.let_go(probe.hold((masked(), masked()), probe.MASK))
    yield "released by nobody but the capsule", lambda: probe.hold((masked(), masked()), probe.MASK)
    yield "a state of its own", lambda: probe.own_state(Exporter(plus()))
    yield "a state of its own, failed", lambda: probe.own_state(object())
    yield "raised", lambda: probe.raise_(5, b"a sentence")
    yield "flags of no meaning", lambda: probe.hold((masked(),), 4)


def part_references(options: argparse.Namespace) -> None:
    gc.freeze()  # what there is now need not be looked through 2000 times
    names = [*KEYS, CUDA, HOST, "__cuda_stream__"]

    def use_names() -> None:
        probe.own_state(Exporter(PLAIN))
        attempt(lambda: probe.own_state(object()))
        attempt(lambda: take(object(), probe.HOST))
        attempt(lambda: probe.stream(object()))

    use_names()
    before = references_of(names)
    for _ in range(50):
        use_names()
    gone = [a - b for a, b in zip(references_of(names), before)]
    check(not any(gone), f"references of names: {gone}")
    kinds = [TypeError, ValueError, BufferError, RuntimeError, MemoryError]
    before = references_of(kinds)
    for number in range(60):
        attempt(lambda: probe.raise_(number, b"x"))
    gone = [a - b for a, b in zip(references_of(kinds), before)]
    check(not any(gone), f"references of exceptions: {gone}")
    paths = references_of_cases(options)
    tracemalloc.start()
    count = 0
    for name, call in memory_paths(options):
        if not options.large and "5000 fields" in name:
            continue
        left = parts.growth_of(call, 20 if options.large else 6 if "4096 fields" in name else 10, probe.drain)
        check(left < 8, f"{name}: {left:.0f} bytes are left behind by each call")
        count += 1
    tracemalloc.stop()
    check(probe.live() == 0, f"{probe.live()} live")
    print(f"references of {paths} paths, memory of {count} paths")


# ---------------------------------------------------------------------------------- memory


def part_memory(options: argparse.Namespace) -> None:
    prebuilt = Exporter(plus(strides=(12, 4), stream=7))
    rebuilt = Building(lambda: plus(stream=7, mask=Exporter(plus(typestr="|b1"))))
    failing, raises = Exporter(plus(shape=(2, -1))), Building(raising(Own()))
    lenient = Exporter(plus(shape=[2, Number(3)], data=[ADDRESS, None, 1]))

    def one() -> None:
        held = probe.hold((prebuilt, rebuilt), probe.MASK)
        probe.interface(held, 0, 3)
        probe.release(held)
        take(lenient, flags_of(True))
        for bad in (failing, raises):
            attempt(lambda: probe.hold((prebuilt, bad), 0))
        probe.stream(Streaming((0, 7)))

    def many(count: int) -> None:
        for _ in range(count):
            one()
        probe.drain()
        gc.collect()

    rounds = max(1, options.imports // 6)
    most = max(1 << 20, 4 * rounds)
    grown = parts.resident_growth(many, 2000, rounds, most)
    check(grown < most, f"resident: {grown} bytes more after {rounds} rounds")
    traced = parts.traced_growth(many, 100, max(1, rounds // 10))
    check(traced < 4096, f"traced: {traced} bytes more after {rounds // 10} rounds")
    check(probe.live() == 0, f"{probe.live()} live")
    print(f"{6 * rounds} imports, {rounds} exports, {2 * rounds} failures: {grown} bytes more resident, {traced} traced")


# --------------------------------------------------------------------------------- threads


def part_threads(options: argparse.Namespace) -> None:
    """C threads release while Python imports, on one thread and on several."""
    del options
    things = [Exporter(plus()) for _ in range(50)]
    before = references_of(things)
    overlapped = 0
    for _ in range(5):
        held = probe.hold(tuple(things) * 200, 0)
        check(probe.live() >= 10000, f"{probe.live()} live of 10000")
        check(probe.begin(held, 4) == 4, "fewer than 4 threads")
        for index in range(3000):
            take(things[index % 50], 0)
            overlapped += probe.live() > 0
        probe.join()
        probe.drain()
        check(probe.live() == 0, f"{probe.live()} live after 4 threads")
        del held
        gone = [a - b for a, b in zip(references_of(things), before)]
        check(not any(gone), f"references after 4 threads: {gone}")

    def work() -> None:
        for index in range(500):
            probe.let_go(probe.hold((things[index % 50], things[index % 7]), 0))
            take(Building(lambda: plus(mask=Exporter(plus()))), probe.MASK)

    workers = [threading.Thread(target=work) for _ in range(4)]
    held = probe.hold(tuple(things) * 200, 0)
    probe.begin(held, 4)
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    probe.join()
    del held
    probe.drain()
    check(probe.live() == 0, f"{probe.live()} live after threads of Python")
    gone = [a - b for a, b in zip(references_of(things), before)]
    check(not any(gone), f"references after threads of Python: {gone}")
    kept = probe.hold(tuple(things), 0)
    check([a - b for a, b in zip(references_of(things), before)] == [1] * 50 and probe.live() == 50, "kept until asked")
    probe.begin(kept, 1)
    probe.join()
    check(probe.live() == 50, "released, and not yet drained")
    probe.hold((), 0)
    check(probe.live() == 0 and references_of(things) == before, "the next import drains")
    print(f"60000 arrays released by 4 C threads; {overlapped} imports met arrays that were still alive")


# ---------------------------------------------------------------------------------- running

SUITE = parts.Suite(globals(), "cai_probe", ("probe.c",), ("mutants", "numpy", "references", "memory"),
                    begin=lambda probe: warnings.simplefilter("ignore", DeprecationWarning))  # of a strange __index__


def main() -> int:
    parser = SUITE.parser()
    parser.add_argument("--inspect", help="the program cai_inspect; without it nothing is compared with it")
    parser.add_argument("--count", type=int, default=20000, help="mutants, and arrays of NumPy")
    parser.add_argument("--imports", type=int, default=100000, help="imports of the part `memory`")
    parser.add_argument("--small", dest="large", action="store_const", const=0, default=1, help="fewer calls, and no values of 10,000,000 items")
    options = parser.parse_args()
    if not options.inspect and not options.part:
        print("skipped: cases and mutants, which need --inspect")
    return SUITE.main(options, left_out=() if options.inspect else ("cases", "mutants"))


if __name__ == "__main__":
    raise SystemExit(main())
