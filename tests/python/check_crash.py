#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nothing that Python code does to attributes, classes or capsules crashes a module that uses ext/cai_python.h.

    check_crash.py [--cc cc] [--dlpack FOLDER] [--count 1500] [--seed 1] [--sanitize]

crash.c, and the two modules of examples/bindings/exchange, are built in a temporary folder. Each part of the test is a
list of attempts that runs in a process of its own, with Python's allocator in debug mode. If an attempt ends the
process, that is a crash, and the part goes on behind it.

    copies        each attribute of each exporter, on classes, instances and metaclasses of others
    proxies       objects that forward what they are asked, on the instance or on the class
    classes       classes that change or go: __class__, __bases__, mro(), attributes, addresses used again
    values        subclasses with methods of their own, numbers, nesting, recursion, entries that change while read
    reentry       code that runs during a call: it imports, releases, collects, deletes, changes what is being read
    buffers       the buffer protocol: views that go, memory that is to be resized while it is in use
    capsules      capsules of other names, used ones, one for two consumers
    streams       what is given for a stream
    garbage       modules, types and arrays that are collected in any order
    random        attempts of all kinds combined at random
    threads       threads that change what others read, and release what others hold
    ends          arrays that outlive their module or the interpreter, each in a program of its own
    interpreters  the same in interpreters beside the main one

Not tried: what needs forged memory. ctypes can make a capsule with any pointer in it, rename one to the name of another
struct, or write to any address; so can an interface that says a false address. And DLPack's exchange table has no type
in it: what an exporter's own functions do with an object of another class is that exporter's; the one here looks.

With --sanitize the modules are built with -fsanitize=address,undefined, too, and all runs again. Prints
"tried N, crashes M". Exit status 0: no crash; 1: one or more; 77: no compiler, or no Python.h.
"""

from __future__ import annotations

import argparse
import array
import collections
import contextlib
import ctypes
import faulthandler
import gc
import importlib.machinery
import importlib.util
import itertools
import mmap
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import types
import weakref
from typing import Any, Callable, Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from parts import SANITIZE, WARNINGS, sanitizer_environment, why_skipped  # noqa: E402

EXCHANGE, TABLE = "__cai_exchange__", "__dlpack_c_exchange_api__"
CUDA, HOST, STRUCT = "__cuda_array_interface__", "__array_interface__", "__array_struct__"
DLPACK, DEVICE, STREAM = "__dlpack__", "__dlpack_device__", "__cuda_stream__"
NAMES = (EXCHANGE, TABLE, CUDA, HOST, STRUCT, DLPACK, DEVICE, STREAM, "__buffer__", "__release_buffer__", "dtype",
         "is_conj", "is_neg")  # fmt: skip
PLAIN = {"shape": (2, 3), "typestr": "<f4", "data": (1 << 40, False), "version": 3}
JOURNAL = 4096  # bytes, of which the attempt that runs now is written
MOST_CRASHES = 8  # of one part

crash: Any = None  # the modules, in the process of a part
consumer: Any = None
producer: Any = None
hashes = random.Random(1)
nested_left = 0  # how often code that runs in a call may act in this attempt

Attempt = tuple[str, Callable[[], Any]]


def flag_sets() -> tuple[int, ...]:
    return (0, crash.HOST, crash.HOST | crash.MASK | crash.FIELDS | crash.NARROW | crash.LENIENT, crash.BORROW | crash.HOST)


def quietly(call: Callable[[], Any]) -> Any:
    """What an exception says is not of interest here."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001
        return error.with_traceback(None)


def use(*things: Any) -> None:
    """Every reader of objects, on these."""
    for flags in flag_sets():
        quietly(lambda: crash.take(things, flags))
    held = quietly(lambda: crash.hold(things, crash.HOST))
    for version in (1, 3):
        quietly(lambda: crash.interface(things, crash.HOST | crash.MASK, version, None))
    quietly(lambda: crash.adopt(crash.Kept, things, crash.HOST))
    for thing in things:
        quietly(lambda: crash.stream(thing))
        quietly(lambda: consumer.facts(thing))
        if isinstance(thing, type):
            quietly(lambda: crash.adopt(thing, (crash.Kept(),), crash.HOST))
        else:
            quietly(lambda: crash.adopt(type(thing), (crash.Kept(),), crash.HOST))
    if isinstance(held, Exception):
        return
    quietly(lambda: crash.release(held))
    crash.drain()


class Exporter:
    """An object with one attribute of a protocol."""

    def __init__(self, value: Any, name: str = CUDA) -> None:
        setattr(self, name, value)


def with_property(get: Callable[[Any], Any], name: str = CUDA, base: type = object) -> Any:
    """An object whose attribute is what a function says."""
    return type("Property", (base,), {name: property(get)})()


def plus(**changes: Any) -> dict[str, Any]:
    return {**PLAIN, **changes}


# ----------------------------------------------------------------------------------- exporters


def exporters() -> list[tuple[str, Any]]:
    """Objects that export what they have, rightly."""
    made = [("Lent", crash.Lent()), ("Kept", crash.Kept()), ("Tabled", crash.Tabled()),
            ("Lent on the device", crash.Lent(4, crash.DEVICE)), ("producer.floats", producer.floats(4096, 4, 7)),
            ("a subclass", type("Derived", (crash.Kept,), {})()), ("a dictionary", Exporter(dict(PLAIN))),
            ("bytearray", bytearray(16)), ("array.array", array.array("d", [1, 2])), ("memoryview", memoryview(bytes(8))),
            ("ctypes", (ctypes.c_int * 3)())]  # fmt: skip
    with contextlib.suppress(ImportError):
        import numpy

        made.append(("numpy", numpy.arange(6.0)))
    return made


def attributes_of(thing: Any) -> list[tuple[str, str, Any]]:
    """(name, where it is, value) of all that an exporter has."""
    found = []
    for name in NAMES:
        for where, owner in (("instance", thing), ("type", type(thing))):
            with contextlib.suppress(Exception):
                found.append((name, where, getattr(owner, name)))
        for base in type(thing).__mro__:
            if name in vars(base):
                found.append((name, "dict", vars(base)[name]))
                break
    return found


def hosts(name: str, value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Objects of other classes that have the attribute, each in another way."""

    def instance() -> Any:
        made = type("Plain", (), {})()
        setattr(made, name, value)
        return made

    def slots() -> Any:
        made = type("Slots", (), {"__slots__": (name,)})()
        setattr(made, name, value)
        return made

    def by_metaclass_attribute() -> Any:
        return type("Meta", (type,), {name: value})("Class", (), {})()

    def by_metaclass_getattr() -> Any:
        def get(cls: type, asked: str) -> Any:
            if asked == name:
                return value
            raise AttributeError(asked)

        return type("Meta", (type,), {"__getattr__": get})("Class", (), {})()

    def by_metaclass_getattribute() -> Any:
        def get(cls: type, asked: str) -> Any:
            return value if asked == name else type.__getattribute__(cls, asked)

        return type("Meta", (type,), {"__getattribute__": get})("Class", (), {})()

    def by_getattribute() -> Any:
        def get(self: Any, asked: str) -> Any:
            return value if asked == name else object.__getattribute__(self, asked)

        return type("Class", (), {"__getattribute__": get})()

    def by_set_name() -> Any:
        made = type("Class", (), {})
        setattr(made, name, value)
        return made()

    def by_mro() -> Any:
        mixin = type("Mixin", (), {name: value})
        return type("Meta", (type,), {"mro": lambda cls: [cls, mixin, object]})("Class", (), {})()

    yield "a class", lambda: type("Class", (), {name: value})()
    yield "a class that derives", lambda: type("Derived", (type("Class", (), {name: value}),), {})()
    yield "a mixin", lambda: type("Class", (int, type("Mixin", (), {name: value})), {})()
    yield "slots and a class", lambda: type("Class", (), {"__slots__": (), name: value})()
    yield "a property", lambda: type("Class", (), {name: property(lambda self: value)})()
    yield "a class method", lambda: type("Class", (), {name: classmethod(lambda cls: value)})()
    yield "a class itself", lambda: type("Class", (), {name: value})
    for maker in (instance, slots, by_metaclass_attribute, by_metaclass_getattr, by_metaclass_getattribute, by_getattribute,
                  by_set_name, by_mro):  # fmt: skip
        yield maker.__name__, maker
    for base in (int, float, tuple, list, dict, str, bytes, bytearray, Exception, types.ModuleType, set, type(iter([]))):
        with contextlib.suppress(TypeError):
            arguments = ("name",) if base is types.ModuleType else ()
            made = type("Sub", (base,), {name: value})
            yield f"a subclass of {base.__name__}", lambda made=made, arguments=arguments: made(*arguments)
    for base in (crash.Lent, crash.Kept, producer.floats):
        yield f"a subclass of {base.__name__}", lambda base=base: type("Sub", (base,), {name: value})(*arguments_of(base))


def arguments_of(base: type) -> tuple[int, ...]:
    return (4096, 4, 0) if base is producer.floats else ()


def part_copies(options: argparse.Namespace) -> Iterator[Attempt]:
    for label, thing in exporters():
        for name, where, value in attributes_of(thing):
            for how, make in hosts(name, value):
                yield f"{name} of {label} ({where}), on {how}", lambda make=make: use(make())
    for first, second in itertools.product(("Lent", "Kept"), repeat=2):
        if first != second:
            yield f"__cai_exchange__ of {first} is set on {second}", lambda a=first, b=second: swap_exchange(a, b)
    for label, thing in exporters():
        everything = {name: value for name, where, value in attributes_of(thing) if where != "instance"}
        for base in (object, int, tuple, crash.Lent, crash.Kept):
            yield (f"everything of {label} on a subclass of {base.__name__}",
                   lambda base=base, everything=everything: use(type("All", (base,), dict(everything))()))


def swap_exchange(first: str, second: str) -> None:
    """The types of a module are heap types, and may be written to."""
    kinds = {"Lent": crash.fresh(False), "Kept": crash.fresh(True)}
    receiver = kinds[second]
    quietly(lambda: setattr(receiver, EXCHANGE, getattr(kinds[first], EXCHANGE)))
    use(receiver())
    use(type("Derived", (receiver,), {})())
    quietly(lambda: crash.adopt(receiver, (crash.Kept(),), crash.HOST))


# ------------------------------------------------------------------------------------- proxies


def proxies(thing: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    wrapped = type(thing)

    class ForwardingMeta(type):
        def __getattr__(cls, name: str) -> Any:
            return getattr(wrapped, name)

    class WholeMeta(type):
        def __getattribute__(cls, name: str) -> Any:
            if name.startswith("__") and name not in NAMES:
                return type.__getattribute__(cls, name)
            return getattr(wrapped, name)

    class Forwarding:
        def __init__(self, inner: Any) -> None:
            object.__setattr__(self, "inner", inner)

        def __getattr__(self, name: str) -> Any:
            return getattr(object.__getattribute__(self, "inner"), name)

    class Claiming(Forwarding):
        @property
        def __class__(self) -> Any:
            return wrapped

    class Mirror(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return True

        def __subclasscheck__(cls, subclass: type) -> bool:
            return True

        def __getattr__(cls, name: str) -> Any:
            return getattr(wrapped, name)

    def lying_about(name: str, answer: Any) -> type:
        """Says that the class derives from the one that is wrapped, and has what that has."""
        return type("LyingMeta", (type,), {name: property(lambda cls: answer)})

    lies = {"__mro__": (wrapped, object), "__dict__": dict(vars(wrapped)), "__bases__": (wrapped,), "__base__": wrapped,
            "__class__": type(wrapped), "__name__": 5, "__flags__": -1}  # fmt: skip
    capsule = next((vars(base)[EXCHANGE] for base in wrapped.__mro__ if EXCHANGE in vars(base)), None)
    for name, answer in lies.items():
        yield (f"a class that lies about {name}",
               lambda name=name, answer=answer: lying_about(name, answer)("Proxy", (), {EXCHANGE: capsule})())
    yield "an object that forwards", lambda: Forwarding(thing)
    yield "an object that says it is of the class", lambda: Claiming(thing)
    yield "weakref.proxy", lambda: weakref.proxy(thing)
    for meta in (ForwardingMeta, WholeMeta, Mirror):
        yield f"{meta.__name__}", lambda meta=meta: meta("Proxy", (Forwarding,), {})(thing)
        yield f"{meta.__name__}, empty", lambda meta=meta: meta("Proxy", (), {})()
        yield f"{meta.__name__}, over an int", lambda meta=meta: meta("Proxy", (int,), {})(5)
        yield f"{meta.__name__}, itself", lambda meta=meta: meta("Proxy", (), {})
    for base in (crash.Lent, crash.Kept):
        yield (f"a {base.__name__} whose metaclass forwards",
               lambda base=base: ForwardingMeta("Proxy", (base,), {EXCHANGE: None})())


def part_proxies(options: argparse.Namespace) -> Iterator[Attempt]:
    for label, thing in exporters():
        for how, make in proxies(thing):
            yield f"{how} for {label}", lambda make=make: use(quietly(make))


# ------------------------------------------------------------------------------------- classes


def after_a_type_is_gone(is_kept: bool, count: int) -> None:
    """The capsule of a type that is gone, on classes that may have its address."""
    kind = crash.fresh(is_kept)
    use(kind())
    capsule, address = getattr(kind, EXCHANGE), id(kind)
    del kind
    for number in range(16):  # what readers remember
        use(type(f"Other{number}", (), {})())
    gc.collect()
    kept = []
    for number in range(count):
        made = type(f"New{number}", (), {"__slots__": (), EXCHANGE: capsule})
        kept.append(made)
        if id(made) == address:
            break
    use(made())
    for other in kept[:4]:
        use(other())
    del capsule
    use(made())


def change_class(first: type, second: type) -> None:
    thing = first()
    use(thing)
    held = quietly(lambda: crash.hold((thing,), crash.HOST))
    quietly(lambda: setattr(thing, "__class__", second))
    use(thing)
    quietly(lambda: crash.touch_held(held))
    del held
    use(thing)


def change_bases(first: type, second: type, third: Any) -> None:
    derived = type("Derived", (first,), {})
    thing = derived()
    use(thing)
    quietly(lambda: setattr(derived, "__bases__", (second,)))
    use(thing)
    quietly(lambda: use(derived()))
    if third is not None:
        quietly(lambda: setattr(derived, "__bases__", (second, third)))
        use(thing)


def with_mro(base: type, order: Callable[[type], list[type]]) -> None:
    def make() -> Any:
        meta = type("Meta", (type,), {"mro": lambda cls: order(cls)})
        return meta("Class", (base,), {})

    made = quietly(make)
    if isinstance(made, type):
        use(quietly(lambda: made()))
        use(made)


def late_mro(base: type, target: type) -> None:
    """mro() says one thing when the class is made, another when the bases change."""
    state = {"late": False}
    meta = type("Meta", (type,), {"mro": lambda cls: [cls, target, object] if state["late"] else type.mro(cls)})
    made = meta("Class", (base,), {})
    thing = made()
    use(thing)
    state["late"] = True
    other = type("Other", (base,), {})
    quietly(lambda: setattr(made, "__bases__", (other,)))
    use(thing)


def change_attributes(base: type, name: str, value: Any) -> None:
    made = type("Class", (base,), {})
    thing = made(*arguments_of(base))
    use(thing)
    quietly(lambda: setattr(made, name, value))
    use(thing)
    quietly(lambda: delattr(made, name))
    use(thing)
    quietly(lambda: delattr(base, name))
    use(thing)


def many_classes(base: type, count: int) -> None:
    """Classes of one address after the other, with and without an exchange."""
    for number in range(count):
        made = type("Class", (base if number % 2 else object,), {CUDA: PLAIN} if number % 3 else {})
        quietly(lambda: crash.take((made(),), crash.HOST))
        quietly(lambda: consumer.facts(made()))
        del made
        if number % 5 == 0:
            gc.collect()


def part_classes(options: argparse.Namespace) -> Iterator[Attempt]:
    for is_kept in (False, True):
        for count in (1, 10, 200, 2000):
            yield f"a capsule whose type is gone, {count} classes", lambda k=is_kept, c=count: after_a_type_is_gone(k, c)
    subs = {name: lambda base=base: type("Sub", (base,), {})
            for name, base in (("Lent", crash.Lent), ("Kept", crash.Kept), ("object", object), ("int", int), ("dict", dict))}
    kinds: dict[str, Callable[[], type]] = {"Lent": lambda: crash.Lent, "Kept": lambda: crash.Kept,
                                            "fresh Lent": lambda: crash.fresh(False), "fresh Kept": lambda: crash.fresh(True),
                                            **{f"a subclass of {name}": make for name, make in subs.items()}}  # fmt: skip
    for (one, first), (two, second) in itertools.product(kinds.items(), repeat=2):
        yield f"__class__ of {one} becomes {two}", lambda a=first, b=second: change_class(a(), b())
        yield f"__bases__ with {one} become {two}", lambda a=first, b=second: change_bases(a(), b(), None)
        yield f"__bases__ with {one} become {two} and object", lambda a=first, b=second: change_bases(a(), b(), object)
        yield f"mro() of {one} says {two}", lambda a=first, b=second: with_mro(a(), lambda cls, t=b(): [cls, t, object])
        yield f"mro() of {one} says later {two}", lambda a=first, b=second: late_mro(a(), b())
    orders: dict[str, Callable[[type], list[Any]]] = {
        "nothing": lambda cls: [], "itself": lambda cls: [cls], "no class": lambda cls: [cls, 5, object],
        "twice": lambda cls: [cls, cls, object], "backwards": lambda cls: type.mro(cls)[::-1],
        "another exception": lambda cls: 1 // 0}  # fmt: skip
    for how, order in orders.items():
        for base in (object, crash.Lent, crash.Kept, int):
            yield f"mro() of {base.__name__} says {how}", lambda base=base, order=order: with_mro(base, order)
    values = {"None": None, "5": 5, "of Lent": crash.Lent.__cai_exchange__, "of Kept": crash.Kept.__cai_exchange__,
              "a dictionary": PLAIN, "a property": property(lambda self: PLAIN),
              "a raising property": property(lambda self: 1 // 0)}  # fmt: skip
    for base_name, make in kinds.items():
        for name in NAMES[:7]:
            for what, value in values.items():
                yield (f"{name} of {base_name} becomes {what}",
                       lambda make=make, name=name, value=value: change_attributes(make(), name, value))
    for base in (object, crash.Lent, crash.Kept):
        yield f"many classes over {base.__name__}", lambda base=base: many_classes(base, 300)


# -------------------------------------------------------------------------------------- values


class EvilInt(int):
    """Every method says something else."""

    def __index__(self) -> int:
        return 1 << 100

    def __int__(self) -> int:
        return -1

    def __bool__(self) -> bool:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = int.__hash__


class EvilTuple(tuple):
    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: Any) -> Any:
        raise RuntimeError

    def __iter__(self) -> Any:
        return iter([self])


class EvilList(list):
    def __len__(self) -> int:
        return -1

    def __getitem__(self, index: Any) -> Any:
        self.clear()
        return None

    def __iter__(self) -> Any:
        self.clear()
        return iter(())


class EvilStr(str):
    def __len__(self) -> int:
        return 1 << 40

    def encode(self, *arguments: Any) -> bytes:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(hashes.choice(list(PLAIN)))


class EvilDict(dict):
    def __getitem__(self, key: Any) -> Any:
        self.clear()
        raise KeyError(key)

    def __len__(self) -> int:
        return 1 << 40

    def get(self, key: Any, default: Any = None) -> Any:
        return self

    def __contains__(self, key: object) -> bool:
        raise RuntimeError

    def __missing__(self, key: Any) -> Any:
        return self


class EvilBytes(bytes):
    def __len__(self) -> int:
        return 1 << 40


class EvilFloat(float):
    def __float__(self) -> float:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = float.__hash__


class Evil:
    """It is everything, and nothing of it works."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def fail(self, *arguments: Any) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    __index__ = __int__ = __float__ = __bool__ = __len__ = __iter__ = __getitem__ = __str__ = __repr__ = __hash__ = fail
    __eq__ = __call__ = __buffer__ = __release_buffer__ = fail


def nested(kind: Callable[[Any], Any], depth: int, bottom: Any = 1) -> Any:
    for _ in range(depth):
        bottom = kind(bottom)
    return bottom


def itself() -> list[Any]:
    made: list[Any] = [1]
    made.append(made)
    return made


def awkward() -> list[tuple[str, Any]]:
    """Values of any entry."""
    numbers = [0, 1, -1, 2**31, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**64), 10**4000]
    made: list[tuple[str, Any]] = [(f"{str(n)[:24]}", n) for n in numbers]
    made += [(f"({str(n)[:24]},)", (n,)) for n in numbers] + [(f"[{str(n)[:24]}] * 64", [n] * 64) for n in numbers]
    made += [(f"({str(n)[:24]}, False)", (n, False)) for n in numbers]
    kinds: list[tuple[str, Any]] = [
        ("None", None), ("True", True), ("nan", float("nan")), ("inf", float("inf")), ("1j", 1j), ("ellipsis", ...),
        ("a slice", slice(1)), ("a class", int), ("EvilInt", EvilInt(3)), ("EvilTuple", EvilTuple((2, 3))),
        ("EvilList", EvilList([2, 3])), ("EvilStr", EvilStr("<f4")), ("EvilDict", EvilDict(PLAIN)),
        ("EvilBytes", EvilBytes(b"<f4")), ("EvilFloat", EvilFloat(1.5)), ("Evil", Evil()), ("Evil(5)", Evil(5)),
        ("Evil(error)", Evil(ValueError())), ("Evil(exit)", Evil(OSError())), ("a tuple of evil", (EvilInt(2), Evil(3))),
        ("a list of evil", [EvilInt(2), Evil(3), EvilTuple((1,))]), ("1000 zeros", (0,) * 1000),
        ("100000 zeros", (0,) * 100000), ("65 ones", (1,) * 65), ("a list of itself", itself()),
        ("deep tuples", nested(lambda x: (x,), 3000)), ("deep lists", nested(lambda x: [x], 3000)),
        ("deep fields", nested(lambda x: [("a", x)], 900, "<f4")), ("lone surrogates", "\ud800"), ("nul", "<f4\0"),
        ("long text", "<f" + "4" * 100000), ("<f999999999999999999999", "<f999999999999999999999"), ("empty", ""),
        ("bytes", b"<f4"), ("bytearray", bytearray(b"<f4")), ("a memoryview", memoryview(b"<f4")),
        ("rows", [("a", "<f4"), ("b", "<f4", (2, 3)), (("t", "c"), "|V4")]), ("rows of nothing", [()] * 5),
        ("rows of evil", [(EvilStr("a"), EvilStr("<f4"), EvilTuple((1,)))]), ("5000 rows", [("a", "|i1")] * 5000),
        ("rows with no names", [("", "")] * 3), ("a generator", (x for x in ())), ("range", range(3)),
        ("a weak proxy", weakref.proxy(Evil)), ("an exporter", Exporter(PLAIN))]  # fmt: skip
    return made + kinds


def recursive(limit_seen: list[int]) -> Any:
    """A property that imports the object that it is of."""

    def get(self: Any) -> Any:
        limit_seen.append(1)
        crash.take((self,), crash.HOST)
        return PLAIN

    return with_property(get)


def mask_of_masks(depth: int) -> Any:
    mask = Exporter(plus(typestr="|b1"))
    for _ in range(depth):
        mask = Exporter(plus(typestr="|b1", mask=mask))
    return mask


def endless_mask() -> Any:
    table = plus(typestr="|b1")
    table["mask"] = Exporter(table)
    return Exporter(table)


def part_values(options: argparse.Namespace) -> Iterator[Attempt]:
    for key in (*PLAIN, "strides", "stream", "descr", "mask", "offset", 5, None, EvilStr("shape")):
        for what, value in awkward():
            yield f"{key!r:.20} is {what}", lambda k=key, v=value: use(Exporter({**PLAIN, k: v}), Exporter({**PLAIN, k: v}, HOST))
    for what, value in awkward():
        for name in NAMES:
            yield f"{name} is {what}", lambda name=name, value=value: use(*(make() for _, make in itertools.islice(
                hosts(name, value), 1)), with_property(lambda self: value, name))  # fmt: skip
        yield f"the object is {what}", lambda value=value: use(value)
    for base in (dict, EvilDict, collections.OrderedDict, lambda t: collections.defaultdict(Evil, t), lambda t: collections.Counter(),
                 types.MappingProxyType, collections.ChainMap, collections.UserDict):  # fmt: skip
        yield "a dictionary of another kind", lambda base=base: use(Exporter(base(dict(PLAIN))), Exporter(base(dict(PLAIN)), HOST))
    for keys in (itertools.permutations(PLAIN, 2)):
        yield "evil keys", lambda keys=keys: use(Exporter({EvilStr(k) if k in keys else k: v for k, v in PLAIN.items()}))
    for depth in (1, 2, 100, 900):
        yield f"{depth} masks", lambda depth=depth: use(mask_of_masks(depth))
    yield "a mask of itself", lambda: use(endless_mask())
    yield "imports itself", lambda: quietly(lambda: crash.take((recursive([]),), crash.HOST))
    yield "imports itself, on a thread", lambda: on_threads([lambda: quietly(lambda: crash.take((recursive([]),), 0))])
    for code in (*range(-3, 70), 2**31 - 1, -(2**31)):
        yield f"raise {code}", lambda code=code: [quietly(lambda: crash.raise_(code, text)) for text in (b"", b"\xff" * 5000)]
    for count in range(9):
        yield f"{count} objects", lambda count=count: use(*[crash.Kept() for _ in range(count)])
        yield f"{count} objects, the last is none", lambda count=count: use(*[crash.Kept() for _ in range(count - 1)], 5)


# ------------------------------------------------------------------------------------- reentry


def actions(thing: Any, table: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """What code does that runs in the middle of a call; all names are of the object being read."""
    kept = {"held": None}

    def once_more(call: Callable[[], Any]) -> None:
        """Several places of an object act: without an end, calls would double with each call."""
        global nested_left
        nested_left -= 1
        if nested_left > 0:
            quietly(call)

    def hold() -> None:
        kept["held"] = quietly(lambda: crash.hold((thing,), crash.HOST))

    def change_own_class() -> None:
        thing.__class__ = type("Other", (), {})

    return {
        "clears the dictionary": table.clear,
        "fills the dictionary": lambda: table.update({str(n): n for n in range(1000)}),
        "replaces the entries": lambda: table.update({key: object() for key in list(table)}),
        "deletes an entry": lambda: table.pop("data", None),
        "deletes the attribute": lambda: quietly(lambda: delattr(thing, CUDA)),
        "deletes the attribute of the class": lambda: quietly(lambda: delattr(type(thing), CUDA)),
        "sets an exchange on the class": lambda: quietly(lambda: setattr(type(thing), EXCHANGE, crash.Kept.__cai_exchange__)),
        "changes the class": lambda: quietly(change_own_class),
        "clears the object": lambda: thing.__dict__.clear(),
        "imports others": lambda: once_more(lambda: [quietly(lambda: crash.take((t(),), crash.HOST)) for t in
                                                     [type("Other", (), {}) for _ in range(20)]]),
        "imports itself": lambda: once_more(lambda: crash.take((Exporter(table),), crash.HOST)),
        "holds itself": lambda: once_more(hold),
        "lets go": lambda: kept.clear(),
        "reads it by the other reader": lambda: once_more(lambda: consumer.facts(thing)),
        "reads others by the other reader": lambda: once_more(lambda: [quietly(lambda: consumer.facts(t())) for t in
                                                                       [type("Other", (), {}) for _ in range(20)]]),
        "drains": lambda: crash.drain(),
        "collects": lambda: once_more(gc.collect),
        "raises": lambda: 1 // 0,
        "raises what is swallowed": lambda: getattr(thing, "nothing"),
        "raises TypeError": lambda: len(5),
        "exits": lambda: (_ for _ in ()).throw(SystemExit(3)),
        "waits": lambda: time.sleep(0),
    }  # fmt: skip


class Acting:
    """Does something when it is asked for a number, or for anything else."""

    def __init__(self, act: Callable[[], Any], answer: Any) -> None:
        self.act, self.answer = act, answer

    def __index__(self) -> int:
        self.act()
        return self.answer

    def __bool__(self) -> bool:
        self.act()
        return True

    def __eq__(self, other: object) -> bool:
        self.act()
        return False

    def __hash__(self) -> int:
        return hash("shape")

    def __str__(self) -> str:
        self.act()
        return "bfloat16"

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.act()


def places(make_action: Callable[[Any, dict[str, Any]], Callable[[], Any]]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Where code can run in an import: objects with an action in each of these places."""

    def entry(key: str, wrap: Callable[[Acting], Any]) -> Callable[[], Any]:
        def make() -> Any:
            thing, table = Exporter(None), dict(PLAIN, strides=[12, 4], stream=7)
            table[key] = wrap(Acting(lambda: make_action(thing, table)(), 2))
            thing.__cuda_array_interface__ = table
            return thing
        return make

    for key in ("shape", "strides"):
        yield f"an item of {key}", entry(key, lambda acting: (acting, 3))
        yield f"an item of a list in {key}", entry(key, lambda acting: [acting, 3])
    yield "the address", entry("data", lambda acting: (acting, False))
    yield "the flag", entry("data", lambda acting: (4096, acting))
    yield "the version", entry("version", lambda acting: acting)
    yield "the stream", entry("stream", lambda acting: acting)
    yield "a row", entry("descr", lambda acting: [("a", "<f4", (acting,)), acting])
    yield "a typestr", entry("typestr", lambda acting: acting)

    def by_key() -> Any:
        thing, table = Exporter(None), dict(PLAIN)
        table[Acting(lambda: make_action(thing, table)(), 0)] = 1  # type: ignore[index]
        thing.__cuda_array_interface__ = table
        return thing

    def by_property(name: str, value: Any) -> Callable[[], Any]:
        def make() -> Any:
            table = dict(PLAIN)

            def get(self: Any) -> Any:
                make_action(self, table)()
                return table if value is None else value

            return with_property(get, name)
        return make

    def by_metaclass(name: str) -> Callable[[], Any]:
        def make() -> Any:
            table: dict[str, Any] = dict(PLAIN)
            state: dict[str, Any] = {"depth": 0}

            def get(cls: type, asked: str) -> Any:
                if asked == name and state["depth"] < 2 and "thing" in state:
                    state["depth"] += 1
                    make_action(state["thing"], table)()
                raise AttributeError(asked)

            made = type("Meta", (type,), {"__getattr__": get})("Class", (), {})()
            made.__cuda_array_interface__ = table
            state["thing"] = made
            return made
        return make

    def by_mask(name: str) -> Callable[[], Any]:
        def make() -> Any:
            thing, table = Exporter(None), plus(typestr="<f4")

            def get(self: Any) -> Any:
                make_action(thing, table)()
                return plus(typestr="|b1")

            table["mask"] = with_property(get, name)
            thing.__cuda_array_interface__ = table
            return thing
        return make

    def by_dtype() -> Any:
        thing, table = Exporter(None), plus(typestr="<u2", shape=(3,))
        thing.__cuda_array_interface__ = table
        thing.dtype = Acting(lambda: make_action(thing, table)(), 0)
        return thing

    yield "a key", by_key
    for name, value in ((CUDA, None), (HOST, None), (EXCHANGE, None), (DLPACK, None), (DEVICE, (1, 0)), (STREAM, None),
                        ("dtype", None), ("is_conj", None), (TABLE, None)):  # fmt: skip
        yield f"the property {name}", by_property(name, value)
        yield f"{name} of the metaclass", by_metaclass(name)
    for name in (CUDA, HOST):
        yield f"{name} of the mask", by_mask(name)
    yield "the dtype", by_dtype


def part_reentry(options: argparse.Namespace) -> Iterator[Attempt]:
    for what in actions(None, {}):
        for where, make in places(lambda thing, table, what=what: actions(thing, table)[what]):
            yield f"{where} {what}", lambda make=make: use_and_drop(make)
    for what in ("imports others", "drains", "collects", "raises", "waits"):
        yield f"a reference that is dropped {what}", lambda what=what: drop_acting(what)
    for method in ("__dlpack__", "__dlpack_device__", "__cuda_stream__", "is_conj", "is_neg"):
        for what in actions(None, {}):
            yield f"{method}() {what}", lambda method=method, what=what: call_acting(method, what)


def use_and_drop(make: Callable[[], Any]) -> None:
    """The object goes with the last of its arrays."""
    try:
        thing = make()
        use(thing)
        held = quietly(lambda: crash.hold((make(), thing), crash.HOST | crash.MASK | crash.NARROW | crash.FIELDS | crash.LENIENT))
        del thing
        gc.collect()
        del held
        crash.drain()
    except SystemExit:
        pass


def drop_acting(what: str) -> None:
    """__del__ of an object that an array had."""
    for flags in flag_sets():
        class Last(Exporter):
            def __del__(self) -> None:
                quietly(actions(self, {})[what])
                self.again = quietly(lambda: crash.hold((self,), flags))  # it lives on

        for release in (crash.release, lambda held: None, lambda held: quietly(lambda: crash.elsewhere(held, 0))):
            held = quietly(lambda: crash.hold((Last(PLAIN), Last(PLAIN)), flags & ~crash.BORROW))
            quietly(lambda: release(held))
            del held
            crash.drain()


def call_acting(method: str, what: str) -> None:
    table = dict(PLAIN)

    class Called(Exporter):
        pass

    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        actions(self, table)[what]()
        return {"__dlpack_device__": (1, 0), "__cuda_stream__": (0, 7), "is_conj": False, "is_neg": False}.get(method)

    setattr(Called, method, call)
    if method == "__dlpack__":
        Called.__dlpack_device__ = lambda self: (1, 0)  # type: ignore[attr-defined]
    for value in (table, None):
        with contextlib.suppress(SystemExit):
            use(Called(table) if value else Called(5, "other"))


# ------------------------------------------------------------------------------------- buffers


def buffers() -> list[tuple[str, Callable[[], Any], Callable[[Any], Any]]]:
    """(name, what has the memory, what would move it)"""
    def release_view(view: Any) -> None:
        view.release()

    made: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
        ("bytearray", lambda: bytearray(64), lambda x: x.extend(bytes(10000))),
        ("bytearray, cleared", lambda: bytearray(64), lambda x: x.clear()),
        ("array.array", lambda: array.array("d", [1.0] * 8), lambda x: x.extend([0.0] * 1000)),
        ("array.array, popped", lambda: array.array("d", [1.0] * 8), lambda x: x.pop()),
        ("memoryview", lambda: memoryview(bytearray(64)), release_view),
        ("a cast memoryview", lambda: memoryview(bytearray(64)).cast("d", (2, 4)), release_view),
        ("a memoryview backwards", lambda: memoryview(bytearray(64))[::-3], release_view),
        ("mmap", lambda: mmap.mmap(-1, 4096), lambda x: x.close()),
        ("mmap, resized", lambda: mmap.mmap(-1, 4096), lambda x: x.resize(1 << 20)),
        ("Kept", lambda: crash.Kept(8), lambda x: x.resize(10000)),
        ("a subclass of Kept", lambda: type("Sub", (crash.Kept,), {})(8), lambda x: x.resize(10000)),
        ("Tabled", lambda: crash.Tabled(8), lambda x: x.resize(10000)),
        ("Lent", lambda: crash.Lent(8), lambda x: x.__init__()),
    ]  # fmt: skip
    return made


def move_while_held(make: Callable[[], Any], move: Callable[[Any], Any]) -> None:
    thing = make()
    held = [quietly(lambda: crash.hold((thing, thing), crash.HOST)) for _ in range(2)]
    for step in range(3):
        quietly(lambda: move(thing))
        for one in held:
            quietly(lambda: crash.touch_held(one))
        quietly(lambda: crash.touch((thing,), crash.HOST))
        if step < len(held):
            quietly(lambda: crash.elsewhere(held[step], 100))
    del thing
    gc.collect()
    for one in held:
        quietly(lambda: crash.touch_held(one))


def move_while_imported(make: Callable[[], Any], move: Callable[[Any], Any]) -> None:
    """The second object of a call moves the memory of the first."""
    thing = make()

    def get(self: Any) -> Any:
        quietly(lambda: move(thing))
        return {**PLAIN, "shape": (0,)}

    quietly(lambda: crash.touch((thing, with_property(get), thing), crash.HOST))


def buffer_classes() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Classes with __buffer__ of their own, since Python 3.12."""
    answers: dict[str, Callable[[Any], Any]] = {
        "a view": lambda self: memoryview(bytearray(8)), "None": lambda self: None, "bytes": lambda self: b"12345678",
        "a released view": lambda self: memoryview(bytearray(8)).release(), "itself": lambda self: memoryview(self),
        "raises": lambda self: 1 // 0, "another": lambda self: memoryview(crash.Kept())}  # fmt: skip
    endings: dict[str, Callable[[Any, Any], Any]] = {
        "returns": lambda self, view: None, "releases": lambda self, view: view.release(),
        "raises": lambda self, view: 1 // 0, "imports": lambda self, view: crash.take((self,), crash.HOST),
        "collects": lambda self, view: gc.collect()}  # fmt: skip
    for (what, get), (end, drop) in itertools.product(answers.items(), endings.items()):
        yield (f"__buffer__ says {what}, __release_buffer__ {end}",
               lambda get=get, drop=drop: type("Buffer", (), {"__buffer__": lambda self, flags: get(self),
                                                              "__release_buffer__": drop})())  # fmt: skip


def part_buffers(options: argparse.Namespace) -> Iterator[Attempt]:
    for name, make, move in buffers():
        yield f"{name} moves while it is held", lambda make=make, move=move: move_while_held(make, move)
        yield f"{name} moves while it is imported", lambda make=make, move=move: move_while_imported(make, move)
    for name, make in buffer_classes():
        yield name, lambda make=make: use(make())
    formats = ["", "b", "@d", "<d", ">q", "=I", "!h", "Zd", "5s", "0s", "99999999999s", "2d", "dd", "T{d:a:}", "P", "?", "c", "x"]
    for letter in formats:
        for shape in ((8,), (2, 4), (0,), ()):
            yield (f"ctypes of format {letter!r}, {shape}",
                   lambda letter=letter, shape=shape: use(quietly(lambda: memoryview(bytearray(64)).cast(letter or "B", shape))))
    for depth in (1, 30, 64, 65):
        yield f"an array of {depth} dimensions", lambda depth=depth: use(nested(lambda kind: kind * 1, depth, ctypes.c_int)())
    fields = type("Record", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_int), ("b", ctypes.c_double)]})
    yield "a record", lambda: use(fields(), (fields * 3)(), (ctypes.c_char_p * 2)(), ctypes.c_void_p())


# ------------------------------------------------------------------------------------ capsules


def capsules_of(thing: Any) -> list[tuple[str, Any]]:
    """Capsules that are there without forging any."""
    import datetime  # noqa: F401 - one with a C API in a capsule
    import socket  # noqa: F401

    found = [("of Lent", crash.Lent.__cai_exchange__), ("of Kept", crash.Kept.__cai_exchange__),
             ("of producer", producer.floats.__cai_exchange__), ("held", crash.hold((), 0))]  # fmt: skip
    for module, name in (("_datetime", "datetime_CAPI"), ("_socket", "CAPI"), ("unicodedata", "_ucnhash_CAPI"),
                         ("pyexpat", "expat_CAPI"), ("_decimal", "_C_API"), ("_curses", "_C_API")):  # fmt: skip
        with contextlib.suppress(Exception):
            found.append((f"{module}.{name}", getattr(importlib.import_module(module), name)))
    with contextlib.suppress(Exception):
        found.append(("a table", crash.Tabled.__dlpack_c_exchange_api__))
    for version in (None, (0, 8), (1, 0), (1, 3), (99, 0)):
        with contextlib.suppress(Exception):
            found.append((f"dlpack {version}", thing.__dlpack__(max_version=version)))
    return found


class Producer:
    """__dlpack__ says what it was made with."""

    def __init__(self, capsule: Any, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.capsule(**keywords) if callable(self.capsule) else self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


def rename(capsule: Any, name: bytes | None) -> None:
    """What a consumer does to a capsule; the name is none of a struct."""
    function = ctypes.pythonapi.PyCapsule_SetName
    function.argtypes = [ctypes.py_object, ctypes.c_char_p]
    function.restype = ctypes.c_int
    function(capsule, name)


USED = (b"used_dltensor", b"used_dltensor_versioned", b"", b"used_" * 50, None)


def consume_twice(capsule: Any) -> None:
    one, other = Producer(capsule), Producer(capsule)
    held = quietly(lambda: crash.hold((one, other), crash.HOST))
    again = quietly(lambda: crash.hold((one,), crash.HOST))
    quietly(lambda: crash.touch_held(again))
    third = quietly(lambda: crash.hold((other,), crash.HOST))
    del held, capsule, one, other
    gc.collect()
    quietly(lambda: crash.touch_held(again))
    quietly(lambda: crash.release(again))
    quietly(lambda: crash.touch_held(third))


def rename_between(make: Callable[[], Any], name: bytes | None) -> None:
    """Between two calls, and during one."""
    capsule = make()
    rename(capsule, name)
    use(Producer(capsule))
    capsule = make()

    def device() -> Any:
        rename(capsule, name)
        return (1, 0)

    thing = Producer(capsule)
    thing.__dict__["__dlpack_device__"] = device
    use(thing)
    type(thing)
    second = type("Renaming", (Producer,), {"__dlpack_device__": lambda self: device()})(capsule)
    use(second)


def rename_exchange(is_kept: bool, name: bytes | None) -> None:
    kind = crash.fresh(is_kept)
    thing = kind()
    use(thing)
    rename(getattr(kind, EXCHANGE), name)
    use(thing)
    use(kind())
    use(type("Derived", (kind,), {})())


def part_capsules(options: argparse.Namespace) -> Iterator[Attempt]:
    for what, capsule in capsules_of(crash.Lent()):
        for name in (EXCHANGE, TABLE, DLPACK, CUDA, STREAM, STRUCT):
            for how, make in hosts(name, capsule):
                yield f"the capsule {what} as {name}, on {how}", lambda make=make: use(make())
        for number, device in enumerate(((1, 0), (2, 0), (3, 0), (13, 0), (1, 2**40), (2**70, 0), (), (1,), (1, 0, 0), None, 5,
                                         [1, 0], Evil(), (Evil(1), Evil(0)), EvilTuple((1, 0)))):  # fmt: skip
            yield (f"the capsule {what} by __dlpack__, device {number}",
                   lambda capsule=capsule, device=device: use(Producer(capsule, device)))
    versions = (None, (1, 0))
    for version in versions:
        def make(version: Any = version) -> Any:
            return crash.Lent(5).__dlpack__(max_version=version)
        if not hasattr(crash.Lent, DLPACK):
            break
        yield f"one capsule for two consumers, {version}", lambda make=make: consume_twice(make())
        for name in USED:
            yield f"renamed to {name!r:.20}, {version}", lambda make=make, name=name: rename_between(make, name)
        yield f"capsules nobody uses, {version}", lambda make=make: [make() for _ in range(20)] and gc.collect()
        yield f"a capsule that is made anew, {version}", lambda make=make: use(Producer(lambda **keywords: make()))
        yield f"a capsule made for another version, {version}", lambda: use(Producer(crash.Lent(5).__dlpack__))
    arguments = (None, 0, 1, 2, -1, 2**70, (), (1,), (1, 0), (2**70, 0), (-1, -1), "a", Evil(), EvilTuple((1, 0)), True, [1, 0])
    for keyword in ("stream", "max_version", "dl_device", "copy", "other"):
        for number, argument in enumerate(arguments):
            yield (f"__dlpack__({keyword}={type(argument).__name__} {number})",
                   lambda keyword=keyword, argument=argument: [quietly(lambda: crash.Lent(4, memory).__dlpack__(**{keyword: argument}))
                                                               for memory in (1, crash.DEVICE)])  # fmt: skip
    for is_kept in (False, True):
        for name in (b"", b"__cai_exchange_used__", None):
            yield f"the capsule of a type is renamed to {name!r}", lambda k=is_kept, name=name: rename_exchange(k, name)


# ------------------------------------------------------------------------------------- streams


def part_streams(options: argparse.Namespace) -> Iterator[Attempt]:
    for what, value in awkward():
        yield f"{what} as a stream", lambda value=value: quietly(lambda: crash.stream(value))
        yield (f"__cuda_stream__() says {what}",
               lambda value=value: quietly(lambda: crash.stream(type("S", (), {STREAM: lambda self: value})())))
        for version in (0, EvilInt(0), Evil(0)):
            yield (f"__cuda_stream__() says (0, {what})", lambda value=value, version=version:
                   quietly(lambda: crash.stream(type("S", (), {STREAM: lambda self: (version, value)})())))  # fmt: skip


# ------------------------------------------------------------------------------------- garbage


def another_module(name: str = "cai_crash") -> Any:
    """The module anew, with a state and types of its own."""
    path = pathlib.Path(crash.__file__)
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, str(path), loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def garbage(seed: int) -> None:
    """Things that lead to one another, dropped in any order."""
    rng = random.Random(seed)
    module = another_module()
    kind = rng.choice((module.Lent, module.Kept, module.fresh(True), module.fresh(False)))
    made = type("Sub", (kind,), {"module": module} if rng.random() < 0.5 else {})
    thing: Any = rng.choice((made, kind))()
    flags = rng.choice((crash.HOST, crash.HOST | crash.MASK | crash.LENIENT))
    held = [quietly(lambda m=m: m.hold((thing, Exporter(PLAIN), thing), flags)) for m in (module, crash)]
    if isinstance(thing, made):
        thing.held = held[0]
        thing.itself = thing
    things = {"module": module, "kind": kind, "made": made, "thing": thing, "held": held[0], "other": held[1],
              "capsule": kind.__cai_exchange__, "bound": module.take, "data": quietly(lambda: module.Lent().__dlpack__())}  # fmt: skip
    del module, kind, made, thing, held
    order = list(things)
    rng.shuffle(order)
    for name in order:
        if name in ("held", "other") and rng.random() < 0.5:
            quietly(lambda: crash.elsewhere(things[name], rng.choice((0, 50, 500))))
        if name == "other" and rng.random() < 0.5:
            quietly(lambda: crash.release(things[name]))
        if name == "bound":
            quietly(lambda: things["bound"]((Exporter(PLAIN),), 0))
        del things[name]
        if rng.random() < 0.5:
            gc.collect()
    crash.drain()


def part_garbage(options: argparse.Namespace) -> Iterator[Attempt]:
    for seed in range(200):
        yield f"dropped in order {seed}", lambda seed=seed: garbage(seed)


# -------------------------------------------------------------------------------------- random


def random_value(rng: random.Random, values: list[tuple[str, Any]], depth: int = 0) -> Any:
    kind = rng.randrange(9) if depth < 4 else 0
    if kind < 5:
        return rng.choice(values)[1]
    items = [random_value(rng, values, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return rng.choice((tuple, EvilTuple))(items)
    if kind == 6:
        return rng.choice((list, EvilList))(items)
    return rng.choice((2, 3, "<f4", (2, 3), 4096, (4096, False), [12, 4]))


def random_table(rng: random.Random, values: list[tuple[str, Any]]) -> dict[Any, Any]:
    table: dict[Any, Any] = {**PLAIN, "strides": (12, 4), "stream": 7}
    for _ in range(rng.randrange(3)):
        table[rng.choice([*table, "descr", "mask"])] = random_value(rng, values)
    for _ in range(rng.randrange(2)):
        table.pop(rng.choice(list(table)), None)
    return rng.choice((dict, dict, dict, EvilDict))(table)


def random_attempt(seed: int, shared: dict[str, Any]) -> None:
    """A few classes, attributes and changes of what is there in turn."""
    rng = random.Random(seed)
    values, capsules, bases = shared["values"], shared["capsules"], shared["bases"]
    table = random_table(rng, values)
    namespace: dict[str, Any] = {}
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(NAMES)
        value = rng.choice((table, table, rng.choice(capsules)[1], random_value(rng, values),
                            property(lambda self: rng.choice((table, rng.choice(capsules)[1]))),
                            lambda self, *a, **k: rng.choice((rng.choice(capsules)[1], (1, 0), (2, 0), None))))  # fmt: skip
        namespace[name] = value
    base = rng.choice(bases)
    made = quietly(lambda: type("Random", (base,), namespace))
    thing = quietly(lambda: made(*arguments_of(base)))
    what, where = rng.choice(list(actions(None, {}))), rng.randrange(shared["places"])
    acting = next(itertools.islice(places(lambda t, d: actions(t, d)[what]), where, None))[1]
    group = [thing, quietly(acting), crash.Kept(), Exporter(table)]
    rng.shuffle(group)
    for _ in range(4):
        flags = rng.choice((*flag_sets(), rng.getrandbits(13)))
        some = tuple(rng.sample(group, rng.randrange(1, 4)))
        with contextlib.suppress(SystemExit):
            held = quietly(lambda: crash.hold(some, flags & ~crash.BORROW))
            quietly(lambda: crash.take(some, flags))
            quietly(lambda: consumer.facts(thing))
        change = rng.randrange(6)
        if change == 0 and isinstance(made, type):
            quietly(lambda: setattr(made, rng.choice(NAMES), rng.choice(capsules)[1]))
        elif change == 1:
            quietly(lambda: setattr(thing, "__class__", type("Late", (rng.choice(bases),), {})))
        elif change == 2:
            table.clear()
        elif change == 3:
            quietly(lambda: crash.elsewhere(held, rng.choice((0, 20, 200))))
        elif change == 4:
            quietly(lambda: crash.release(held))
        held = None
    if seed % 50 == 0:
        gc.collect()


def part_random(options: argparse.Namespace) -> Iterator[Attempt]:
    shared = {"values": awkward(), "capsules": capsules_of(crash.Lent()), "places": sum(1 for _ in places(lambda t, d: int)),
              "bases": [object, object, int, dict, tuple, crash.Lent, crash.Kept, crash.Tabled, producer.floats, bytearray]}  # fmt: skip
    shared["values"] = [pair for pair in shared["values"] if "100000" not in pair[0] and "deep" not in pair[0]]
    for number in range(options.count):
        seed = options.seed * 1000003 + number
        yield f"seed {seed}", lambda seed=seed: random_attempt(seed, shared)


# ------------------------------------------------------------------------------------- threads


def on_threads(calls: list[Callable[[], Any]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def until(seconds: float, call: Callable[[int], Any]) -> Callable[[], None]:
    """Calls it again and again, until the time is over."""
    def run() -> None:
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            number += 1
            quietly(lambda: call(number))
    return run


def part_threads(options: argparse.Namespace) -> Iterator[Attempt]:
    seconds = 0.12
    table = plus(strides=(12, 4), stream=7)

    def changing_dictionary() -> None:
        thing = Exporter(table)

        def change(number: int) -> None:
            table["shape"] = [number % 5, 3] if number % 2 else (2, 3)
            table[str(number % 300)] = number
            table.pop(str((number * 7) % 300), None)

        on_threads([until(seconds, change)] + [until(seconds, lambda n: crash.take((thing, thing), 0))] * 2)

    def changing_lists() -> None:
        shape: list[Any] = [2, 3]
        thing = Exporter(plus(shape=shape))

        def change(number: int) -> None:
            shape.extend([1] * (number % 40))
            del shape[number % 3:]

        on_threads([until(seconds, change)] + [until(seconds, lambda n: crash.take((thing,), crash.LENIENT))] * 2)

    def changing_class(bases: tuple[type, type]) -> None:
        classes = [type("Sub", (base,), {}) for base in bases]
        thing = classes[0]()

        def change(number: int) -> None:
            with contextlib.suppress(TypeError):
                thing.__class__ = type("Late", (bases[number % 2],), {CUDA: table} if number % 3 else {})

        on_threads([until(seconds, change)] + [until(seconds, lambda n: (crash.take((thing,), crash.HOST), consumer.facts(thing)))] * 2)

    def changing_attributes() -> None:
        made = type("Sub", (crash.Kept,), {})
        thing = made()
        values = (None, crash.Lent.__cai_exchange__, crash.Kept.__cai_exchange__, table, 5)

        def change(number: int) -> None:
            setattr(made, (EXCHANGE, CUDA, TABLE)[number % 3], values[number % 5])
            if number % 7 == 0:
                delattr(made, EXCHANGE)

        on_threads([until(seconds, change)] + [until(seconds, lambda n: crash.take((thing,), crash.HOST))] * 2)

    def releasing() -> None:
        things = [Exporter(table), crash.Kept(), bytearray(64), crash.Lent()]

        def hold(number: int) -> None:
            held = crash.hold((things[number % 4], things[number % 3]), crash.HOST)
            crash.elsewhere(held, number % 50)

        def release(number: int) -> None:
            crash.release(crash.hold((things[number % 4],), crash.HOST))

        on_threads([until(seconds, hold), until(seconds, release), until(seconds, lambda n: gc.collect())])
        time.sleep(0.01)

    def resizing() -> None:
        kept, plain = crash.Kept(8), bytearray(64)

        def resize(number: int) -> None:
            quietly(lambda: kept.resize(number % 4000))
            quietly(lambda: plain.extend(bytes(number % 100)))
            quietly(lambda: plain.clear())

        on_threads([until(seconds, resize)] + [until(seconds, lambda n: crash.touch((kept, plain), crash.HOST))] * 2)

    def one_capsule() -> None:
        capsules: list[Any] = [None]

        def put(number: int) -> None:
            capsules[0] = crash.Lent(4).__dlpack__()

        on_threads([until(seconds, put)] + [until(seconds, lambda n: crash.take((Producer(capsules[0]),), crash.HOST))] * 2)

    def types_that_go() -> None:
        def work(number: int) -> None:
            made = type("Gone", (crash.Kept if number % 2 else object,), {CUDA: table})
            crash.take((made(),), crash.HOST)
            del made
            if number % 40 == 0:
                gc.collect()

        on_threads([until(seconds, work)] * 3)

    def modules_that_go() -> None:
        def work(number: int) -> None:
            module = another_module()
            held = module.hold((crash.Kept(), module.Kept(), Exporter(table)), crash.HOST)
            crash.elsewhere(held, number % 300)
            del module

        on_threads([until(seconds, work), until(seconds, lambda n: gc.collect()), until(seconds, lambda n: crash.drain())])
        time.sleep(0.01)

    for round_ in range(2):
        yield "a dictionary changes", changing_dictionary
        yield "lists change", changing_lists
        for bases in itertools.combinations((object, crash.Lent, crash.Kept, dict), 2):
            yield "classes change", lambda bases=bases: changing_class(bases)
        yield "attributes change", changing_attributes
        yield "arrays are released", releasing
        yield "memory is resized", resizing
        if sys.flags.nogil if hasattr(sys.flags, "nogil") else not getattr(sys, "_is_gil_enabled", lambda: True)():
            pass  # one capsule for two threads at once is DLPack's to exclude
        else:
            yield "one capsule for several threads", one_capsule
        yield "types go", types_that_go
        yield "modules go", modules_that_go


# ----------------------------------------------------------------------------- ends, interpreters

PROLOGUE = """
import sys, gc, threading, time, atexit, types, os
sys.path.insert(0, {folder!r})
import cai_crash as crash, consumer, producer
TABLE = {{"shape": (2, 3), "typestr": "<f4", "data": (1 << 40, False), "version": 3}}
class Exporter:
    def __init__(self): self.__cuda_array_interface__ = dict(TABLE)
class Last(Exporter):
    def __del__(self):
        try: crash.release(crash.hold((self, crash_kept()), crash.HOST))
        except BaseException: pass
def crash_kept(kept=crash.Kept): return kept()
def all_of():
    made = [Exporter(), crash.Kept(), crash.Lent(), bytearray(8), type("Sub", (crash.Kept,), {{}})()]
    return made + ([crash.Tabled()] if hasattr(crash.Tabled, "__dlpack_c_exchange_api__") else [])
"""

HOLD = "held = crash.hold(tuple(all_of()), crash.HOST); crash.elsewhere(crash.hold(tuple(all_of()), crash.HOST), 1000)\n"
AFTER_FORK = "if p: os.waitpid(p, 0)\ncrash.release(held); crash.touch((crash.Kept(),), crash.HOST)"

ENDS = {
    "arrays in a global": "held = crash.hold(tuple(all_of()), crash.HOST)",
    "arrays in a global, released elsewhere": "crash.elsewhere(crash.hold(tuple(all_of()), crash.HOST), 1000)",
    "released while it ends": "for n in range(40): crash.elsewhere(crash.hold(tuple(all_of()), crash.HOST), 500 * n)",
    "released after the main thread": "crash.elsewhere(crash.hold(tuple(all_of()), crash.HOST), 60000)",
    "the module is deleted first": "held = crash.hold(tuple(all_of()), crash.HOST); things = all_of()\n"
                                   "del sys.modules['cai_crash'], crash; gc.collect(); del held; gc.collect(); del things",
    "the module is deleted, then released elsewhere":
        "held = crash.hold(tuple(all_of()), crash.HOST); elsewhere = crash.elsewhere\n"
        "del sys.modules['cai_crash'], crash; gc.collect(); elsewhere(held, 20000); del elsewhere, held; gc.collect()",
    "__del__ at the end": "last = Last(); again = [Last() for _ in range(5)]; sys.last = Last()",
    "__del__ at the end, held": "held = crash.hold((Last(), Last()), 0)",
    "atexit": "atexit.register(lambda: crash.release(crash.hold(tuple(all_of()), crash.HOST)))\n"
              "held = crash.hold(tuple(all_of()), crash.HOST); atexit.register(crash.release, held)",
    "a daemon thread imports": "t = threading.Thread(target=lambda: [crash.take(tuple(all_of()), crash.HOST) for _ in iter(int, 1)], "
                               "daemon=True); t.start(); time.sleep(0.02)",
    "daemon threads touch": "kept = crash.Kept(100000)\n"
                            "for _ in range(3): threading.Thread(target=lambda: [crash.touch((kept,), crash.HOST) for _ in iter(int, 1)], "
                            "daemon=True).start()\ntime.sleep(0.02)",
    "daemon threads, and arrays that go elsewhere":
        "def work():\n    while True: crash.elsewhere(crash.hold(tuple(all_of()), crash.HOST), 50)\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.02)",
    "os._exit": "held = crash.hold(tuple(all_of()), crash.HOST); crash.elsewhere(held, 100); os._exit(0)",
    "an exception at the end": "held = crash.hold(tuple(all_of()), crash.HOST); raise SystemExit(0)",
    "a cycle at the end": "class C(crash.Kept): pass\nc = C(); c.c = c; c.held = crash.hold((c, Exporter()), crash.HOST); "
                          "c.m = crash; C.m = crash; C.h = c.held",
    "sys.modules is cleared": "held = crash.hold(tuple(all_of()), crash.HOST)\nsys.modules.clear()",
    "the builtins go": "import builtins; held = crash.hold(tuple(all_of()), crash.HOST); last = Last(); builtins.__dict__.clear()",
    "the types lose what they have": "held = crash.hold(tuple(all_of()), crash.HOST)\n"
                                     "for t in (crash.Kept, crash.Lent):\n    for n in list(vars(t)):\n"
                                     "        try: delattr(t, n)\n        except Exception: pass",
    "fork": f"{HOLD}p = os.fork()\n{AFTER_FORK}",
    "fork, when the other thread has ended":
        f"{HOLD}while len(os.listdir('/proc/self/task')) > 1: time.sleep(0.001)\np = os.fork()\n{AFTER_FORK}",
    "exports that are used at the end": "held = [Exporter(), crash.Lent().__dlpack__() if hasattr(crash.Lent, '__dlpack__') else 0]\n"
                                        "sys.held = held; types.held = held[1]",
    "a thread that ends last": "def work():\n    time.sleep(0.03); crash.release(crash.hold(tuple(all_of()), crash.HOST))\n"
                               "threading.Thread(target=work).start()",
}  # fmt: skip

IN_ANOTHER = {
    "imports": "crash.release(crash.hold(tuple(all_of()), crash.HOST))",
    "holds": "held = crash.hold(tuple(all_of()), crash.HOST)",
    "elsewhere": "crash.elsewhere(crash.hold(tuple(all_of()), crash.HOST), 300)",
    "elsewhere, late": "crash.elsewhere(crash.hold(tuple(all_of()), crash.HOST), 60000)",
    "exports": "held = crash.Lent().__dlpack__() if hasattr(crash.Lent, '__dlpack__') else 0",
    "exports and imports": "x = crash.Lent()\nfor _ in range(20): crash.take((x, x), crash.HOST)",
    "__del__": "last = Last(); held = crash.hold((Last(), Last()), 0)",
    "a cycle": "class C(crash.Kept): pass\nc = C(); c.c = c; c.held = crash.hold((c, Exporter()), crash.HOST); C.m = crash",
    "copies": "class E:\n    __slots__ = ()\n    __cai_exchange__ = crash.Kept.__cai_exchange__\n"
              "for f in (lambda: crash.take((E(),), crash.HOST), lambda: consumer.facts(E())):\n"
              "    try: f()\n    except Exception: pass",
}  # fmt: skip

INTERPRETERS = """
try: import _interpreters as I
except ImportError: import _xxsubinterpreters as I
def run(code, end=True):
    made = I.create()
    try: I.run_string(made, code)
    except Exception as error:
        if "does not support" not in str(error): print(error, file=sys.stderr)
    if end: I.destroy(made)
    return made
"""

HOW = {
    "one": "run(code)",
    "three, one after the other": "for _ in range(3): run(code)",
    "three at once": "made = [run(code, False) for _ in range(3)]\nfor m in made: I.destroy(m)",
    "while the main one holds": "held = crash.hold(tuple(all_of()), crash.HOST); run(code); crash.touch((crash.Kept(),), crash.HOST)",
    "on threads": "t = [threading.Thread(target=run, args=(code,)) for _ in range(2)]\n"
                  "for x in t: x.start()\nfor x in t: x.join()",
    "left behind": "run(code, False)",
    "after the module is gone from the main one": "del sys.modules['cai_crash'], crash, crash_kept; gc.collect(); run(code)",
}  # fmt: skip


def run_program(options: argparse.Namespace, text: str) -> str | None:
    """What a program of its own says when it crashes."""
    command = [sys.executable, "-X", "faulthandler", "-c", PROLOGUE.format(folder=str(options.folder)) + text]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
    except subprocess.TimeoutExpired:
        return "did not end"
    bad = done.returncode < 0 or "Sanitizer" in done.stderr or "runtime error" in done.stderr or "Fatal Python" in done.stderr
    return f"ended with {done.returncode}\n{done.stderr[-3000:]}" if bad else None


class Crashed(Exception):
    """A program that was started crashed."""


def program(options: argparse.Namespace, text: str) -> None:
    said = run_program(options, text)
    if said:
        raise Crashed(said)


def part_ends(options: argparse.Namespace) -> Iterator[Attempt]:
    for name, text in ENDS.items():
        # The allocator of gcc 12's AddressSanitizer has no locks for fork: a child waits for ever for another thread's.
        if options.sanitized and name == "fork":
            continue
        yield name, lambda text=text: program(options, text)


def part_interpreters(options: argparse.Namespace) -> Iterator[Attempt]:
    try:
        __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    except ImportError:
        return
    for what, code in IN_ANOTHER.items():
        for how, around in HOW.items():
            if options.sanitized and how not in ("one", "left behind", "on threads"):
                continue
            inner = PROLOGUE.format(folder=str(options.folder)) + code
            yield f"{what}, {how}", lambda inner=inner, around=around: program(
                options, f"{INTERPRETERS}\ncode = {inner!r}\n{around}\n")


# ------------------------------------------------------------------------------------- running

PARTS = {name[5:]: call for name, call in list(globals().items()) if name.startswith("part_")}


def run_part(options: argparse.Namespace) -> int:
    """The attempts from number `--begin` on; the journal says which one runs."""
    global crash, consumer, producer, nested_left
    sys.path.insert(0, str(options.folder))
    import cai_crash
    import consumer as consumer_module
    import producer as producer_module

    crash, consumer, producer = cai_crash, consumer_module, producer_module
    faulthandler.enable()
    if hasattr(signal, "alarm"):
        signal.alarm(options.timeout + 5)  # should the process that waits for this one be ended
    sys.unraisablehook = lambda *arguments: None
    threading.excepthook = lambda *arguments: None
    bad = 0
    with open(options.journal, "r+b") as file, mmap.mmap(file.fileno(), JOURNAL) as journal:
        for number, (name, call) in enumerate(PARTS[options.part](options)):
            if number < options.begin:
                continue
            said = f"{number + 1}\t{name}".encode("utf-8", "replace")[: JOURNAL - 1]
            journal[: len(said) + 1] = said + b"\0"
            nested_left = 12
            try:
                call()
            except Crashed as error:
                bad += 1
                print(f"CRASH\t{name}\t{error}".replace("\n", "\v"), flush=True)
            except BaseException as error:  # noqa: BLE001 - it did not crash
                if options.verbose and not isinstance(error, Exception):
                    print(f"{name}: {error!r}")
    return 0


def describe_end(returncode: int) -> str:
    if returncode < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-returncode).name
    return f"exit status {returncode}"


def run_with_restarts(options: argparse.Namespace, part: str, folder: pathlib.Path, environment: dict[str, str],
                      note: str) -> tuple[int, int]:  # fmt: skip
    """(attempts, crashes) of a part, which begins again behind an attempt that ended it."""
    journal = folder / "journal"
    begin = tried = crashes = 0
    command = [sys.executable, "-B", "-X", "utf8", str(pathlib.Path(__file__).resolve()), "--part", part, "--folder",
               str(folder), "--journal", str(journal), "--count", str(options.count), "--seed", str(options.seed), "--timeout", str(options.timeout)]  # fmt: skip
    command += ["--sanitized"] if note else []
    while crashes < MOST_CRASHES:
        journal.write_bytes(b"0\tbefore the first attempt".ljust(JOURNAL, b"\0"))
        ended: str | None = None
        error = ""
        with tempfile.TemporaryFile("w+", errors="replace") as output, tempfile.TemporaryFile("w+", errors="replace") as errors:
            run = subprocess.Popen([*command, "--begin", str(begin)], stdout=output, stderr=errors, env={**os.environ, **environment})
            try:
                run.wait(options.timeout)
                ended = describe_end(run.returncode) if run.returncode else None
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
                ended = "did not end"
            output.seek(0)
            errors.seek(0)
            error = errors.read()
            lines = output.read().splitlines()
        if not ended and ("Sanitizer" in error or "runtime error:" in error):
            ended = "the sanitizer's report"
        at, _, name = journal.read_bytes().split(b"\0")[0].decode("utf-8", "replace").partition("\t")
        for line in lines:
            crashes += line.startswith("CRASH\t")
            print(f"{part}{note}: " + line.replace("\v", "\n    ")[:3000])
        tried += max(0, int(at) - begin)
        if not ended:
            break
        crashes += 1
        print(f"{part}{note}: {ended} in attempt {at}: {name}")
        print("    " + "\n    ".join(short_error(error)))
        if int(at) <= begin and at == "0":
            break
        begin = int(at)
    print(f"{part}{note}: tried {tried}, crashes {crashes}", flush=True)
    return tried, crashes


def short_error(text: str) -> list[str]:
    """The first lines that say what happened and where."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(lines) if "ERROR" in line or "rror:" in line or "Fatal" in line
                  or "another type" in line), 0)  # fmt: skip
    return lines[first : first + 14]


def example_modules(options: argparse.Namespace) -> dict[str, str]:
    """The modules of examples/bindings/exchange."""
    folder = options.root / "examples" / "bindings" / "exchange"
    return {name: (folder / f"{name}.c").read_text(encoding="utf-8") for name in ("consumer", "producer")}


def build(options: argparse.Namespace, folder: pathlib.Path, flags: list[str]) -> str | None:
    """None, or what the compiler says."""
    folder.mkdir()
    sources = {"cai_crash": HERE / "crash.c"}
    for name, text in example_modules(options).items():
        sources[name] = folder / f"{name}.c"
        sources[name].write_text(text, encoding="utf-8")
    for name, source in sources.items():
        strict = ["-std=c99", *WARNINGS.split()] if name == "cai_crash" else ["-std=c99", "-w"]
        command = [options.cc, *strict, "-O1", "-g", *flags, "-isystem", sysconfig.get_path("include"), f"-I{options.root}",
                   f"-I{options.root / 'ext'}", "-shared", "-fPIC", "-pthread", str(source), "-o", str(folder / f"{name}.so")]  # fmt: skip
        if sys.platform == "darwin":
            command += ["-undefined", "dynamic_lookup"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or (done.stderr and name == "cai_crash"):
            return f"{' '.join(command)}\n{done.stderr}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="where the headers and docs/ are")
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    parser.add_argument("--count", type=int, default=1500, help="attempts of the part `random`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=1200, help="seconds that a part may take")
    parser.add_argument("--sanitize", action="store_true", help="all of it with AddressSanitizer, too")
    parser.add_argument("--only-sanitized", action="store_true")
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--journal", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--sanitized", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        return run_part(options)
    reason = why_skipped(options)
    if reason:
        print(f"check_crash.py: skipped, {reason}")
        return 77
    flags = ["-DCRASH_DLPACK", "-isystem", str(options.dlpack)] if options.dlpack else []
    if not options.dlpack:
        print("skipped: DLPack, which needs --dlpack")
    builds: list[tuple[str, list[str], dict[str, str]]] = []
    if not options.only_sanitized:
        builds.append(("", [], {"PYTHONMALLOC": "debug"}))
    if options.sanitize or options.only_sanitized:
        environment = sanitizer_environment(options)
        if environment:
            builds.append((", sanitized", SANITIZE.split(), environment))
        else:
            print("sanitized: skipped, no libasan to load")
    tried = crashes = 0
    with tempfile.TemporaryDirectory() as name:
        for note, more, environment in builds:
            folder = pathlib.Path(name) / (note[2:] or "plain")
            error = build(options, folder, flags + more)
            if error:
                print(error)
                return 1
            for part in PARTS:
                if part in options.parts.split(","):
                    some, bad = run_with_restarts(options, part, folder, environment, note)
                    tried, crashes = tried + some, crashes + bad
    print(f"tried {tried}, crashes {crashes}")
    return 1 if crashes else 0


if __name__ == "__main__":
    raise SystemExit(main())
