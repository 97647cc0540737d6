#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_python_dlpack.h on live Python objects: what comes in, what goes out, and what is left of it.

    check_dlpack.py --dlpack FOLDER [--cc cc] [--count 5000] [--rounds 100000] [--sanitize]

FOLDER has dlpack/dlpack.h of DLPack 1.3 or later. dlpack.c is built in a temporary folder, and each part of the test
runs in a process of its own, so that a crash is a finding of its part:

    numpy_in    random arrays of NumPy through __dlpack__ alone, against what NumPy says of them
    numpy_out   np.from_dlpack of what the header exports, against what was exported
    device      CUDA and its relatives: what __dlpack__ is asked, and what its answer becomes
    table       DLPack's exchange table of a type
    order       which of several interfaces is read
    lies        objects, capsules and tables that do what they should not
    arguments   what a consumer may ask of __dlpack__
    exports     what is exported, in the words of dlpack.h
    references  no reference, no memory and no tensor is left behind on any path
    no_memory   each allocation fails in turn
    memory      many imports, exports and failures in a row
    threads     arrays and tensors released by threads that have never seen Python
    libraries   live tensors of tvm_ffi and PyTorch, where they can be imported

With --sanitize the module is built with -fsanitize=address,undefined, too, and most parts run again under it. Exit
status 0: all is right; 1: not; 77: no compiler, no Python.h, or no dlpack.h that is new enough.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import gc
import pathlib
import random
import re
import sys
import tracemalloc
import weakref
from typing import Any, Callable, Iterator

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(HERE), str(TESTS / "dlpack")]

import numpy_dlpack  # noqa: E402
import parts  # noqa: E402
from check_python import Own, OwnBase, attempt, raising  # noqa: E402
from parts import check  # noqa: E402

np: Any = numpy_dlpack.np
probe: Any = None  # the module, in the process of a part

CUDA, HOST = "__cuda_array_interface__", "__array_interface__"
TABLE = "__dlpack_c_exchange_api__"
PROTOCOLS = (CUDA, "__dlpack_device__", "__dlpack__")
CPU, GPU, PINNED, ROCM, MANAGED = 1, 2, 3, 10, 13  # DLDeviceType
MEMORY_HOST, MEMORY_PINNED, MEMORY_MANAGED, MEMORY_DEVICE = 1, 2, 3, 4
UNKNOWN, NONE, STREAM, EVENT = range(4)  # CAI_SYNC
FRESH = {False: "dltensor", True: "dltensor_versioned"}
ADDRESS = 0x7F5A00000000
REFUSED = (TypeError, ValueError, BufferError)
SPEC = {"address": ADDRESS, "shape": (2, 3), "strides": (3, 1), "device": (GPU, 0)}
DICTIONARY = {"shape": (7,), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}


def spec(**entries: Any) -> dict[str, Any]:
    return {**SPEC, **entries}


def as_expected(error: BaseException | None, expected: Any) -> bool:
    """expected: "ok", an exception of that very identity, a type, or a tuple of types."""
    if isinstance(expected, BaseException) or error is None or expected == "ok":
        return error is expected or (error is None and expected == "ok")
    return type(error) in (expected if isinstance(expected, tuple) else (expected,))


@contextlib.contextmanager
def balanced(name: str) -> Iterator[None]:
    """Each tensor that is made meanwhile has its deleter called, once, and no array stays."""
    made, deleted, twice, strange = probe.counts()
    alive = probe.live()
    yield
    probe.drain()
    now = probe.counts()
    check(now[0] - made == now[1] - deleted, f"{name}: {now[0] - made} tensors, {now[1] - deleted} deleters called")
    check(now[2] == twice, f"{name}: a deleter was called twice")
    check(now[3] == strange, f"{name}: a function was called that is not to be called")
    check(probe.live() == alive, f"{name}: {probe.live() - alive} arrays are alive")


def references_of(things: list[Any]) -> list[int]:
    return [sys.getrefcount(thing) for thing in things]


def take(thing: Any, flags: int = 0, stream: int = 0) -> tuple[dict[str, Any] | None, BaseException | None]:
    """The facts of one object; nothing of it is kept."""
    held, error = attempt(lambda: probe.hold((thing,), flags, stream))
    if error is not None:
        return None, error
    facts = probe.facts(held)[0]
    probe.release(held)
    return facts, None


def contiguous(shape: Any) -> tuple[int, ...]:
    """The strides of C order, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= max(extent, 1)
    return tuple(strides)


# ------------------------------------------------------------------------------- producers


class Producer:
    """An object with DLPack's two methods, which notes what they are asked."""

    def __init__(self, tensor: dict[str, Any], name: str = "dltensor_versioned", device: Any = None) -> None:
        self.tensor, self.name, self.asked = tensor, name, []  # type: ignore[var-annotated]
        self.device = tensor.get("device", (GPU, 0)) if device is None else device
        self.capsule: Any = None

    def __dlpack_device__(self) -> Any:
        return self.device() if callable(self.device) else self.device

    def answer(self) -> Any:
        self.capsule = probe.capsule(self.tensor, self.name)
        return self.capsule

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        return self.answer()

    def name_now(self) -> Any:
        """What the capsule is called now, which goes with that."""
        name = probe.capsule_name(self.capsule) if self.capsule is not None else None
        self.capsule = None
        return name


class Old(Producer):
    """Of before DLPack 1.0."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        self.asked.append({"stream": stream})
        return self.answer()


class Oldest(Producer):
    """Of before streams."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        self.asked.append({})
        return self.answer()


class Only:
    """The two methods of another object, and nothing else of it."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __dlpack_device__(self) -> Any:
        return self.thing.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.thing.__dlpack__(**keywords)


class OnlyOld(Only):
    """The same of before DLPack 1.0."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        return self.thing.__dlpack__(stream=stream)


class Tabled:
    """What functions of a table ask: which tensor it is."""

    lent: Any = None

    def __init__(self, managed: Any, tensor: Any = None) -> None:
        self.said, self.lends, self.asked = managed, tensor if tensor is not None else managed, []  # type: ignore

    def managed(self) -> Any:
        self.asked.append("managed")
        return self.said() if callable(self.said) else self.said

    def tensor(self) -> Any:
        self.asked.append("tensor")
        return self.lends() if callable(self.lends) else self.lends


def tabled(table: Any, *arguments: Any, base: type = Tabled, **attributes: Any) -> Any:
    """An instance of a new type with that table."""
    return type("Tabled", (base,), {TABLE: table, **attributes})(*arguments)


def current(answer: Any) -> list[Any]:
    """Says what the current stream is; a list of the last two who asked."""
    asked: list[Any] = []

    def say(kind: int, index: int) -> Any:
        asked[:] = [*asked, (kind, index)][-2:]
        return answer() if callable(answer) else answer

    probe.set_current(say)
    return asked


# ------------------------------------------------------------------------------ NumPy, in


def view_of(facts: dict[str, Any]) -> Any:
    """What is there, read by NumPy at the address that the header says."""
    if facts["size"] == 0:
        return np.empty(facts["shape"], facts["dtype"])
    low, high = facts["lo"], facts["hi"]
    memory = (ctypes.c_char * (high - low)).from_address(facts["data"] + low)
    return np.ndarray(facts["shape"], facts["dtype"], memory, -low, facts["strides"])


def differences(a: Any, facts: dict[str, Any], versioned: bool) -> list[str]:
    """Where the facts are not what NumPy says."""
    mine = {
        "dtype": facts["dtype"], "shape": tuple(facts["shape"]), "itemsize": facts["itemsize"], "size": facts["size"],
        "strides": numpy_dlpack.moving(facts["shape"], facts["strides"]),
        "data": facts["data"], "read_only": facts["read_only"], "c": facts["c_contiguous"], "f": facts["f_contiguous"],
    }  # fmt: skip
    its = {
        "dtype": a.dtype.name, "shape": a.shape, "itemsize": a.itemsize, "size": a.size,
        "strides": numpy_dlpack.moving(a.shape, a.strides), "data": a.ctypes.data if a.size else 0,
        "read_only": not (versioned and a.flags.writeable), "c": a.flags.c_contiguous, "f": a.flags.f_contiguous,
    }  # fmt: skip
    found = [f"{key} {mine[key]}, NumPy {its[key]}" for key in mine if mine[key] != its[key]]
    place = (facts["memory"], facts["device"], facts["sync"], facts["stream"], facts["owned"], facts["plain"])
    return found + ([] if place == (MEMORY_HOST, -1, NONE, 0, True, True) else [f"place {place}"])


def part_numpy_in(options: argparse.Namespace) -> None:
    if np is None:
        print("skipped: no NumPy")
        return
    dice = random.Random(options.seed)
    counts: collections.Counter[str] = collections.Counter()
    live: list[Any] = []

    def drop() -> None:
        held, facts, wanted, gone = live.pop(dice.randrange(len(live)))
        check(view_of(facts).tobytes() == wanted, f"elements of {facts}")
        check(gone() is not None, "the memory went before its array")
        way = dice.randrange(4)
        if way == 0:
            probe.begin(held)
            probe.join()
        elif way == 1:
            probe.let_go(held)
        elif way == 2:
            probe.release(held)
        del held
        probe.drain()
        check(gone() is None, f"an array of NumPy is kept after release {way}")

    for _ in range(options.count):
        a = numpy_dlpack.random_array(dice)
        versioned = dice.random() < 0.7
        held, error = attempt(lambda: probe.hold(((Only if versioned else OnlyOld)(a),), probe.HOST))
        if error is not None:
            said = not versioned and not a.flags.writeable and type(error) is BufferError
            check(said, f"{a.__array_interface__}, versioned {versioned}: {error!r}")
            counts["refused by NumPy"] += said
            continue
        facts = probe.facts(held)[0]
        found = differences(a, facts, versioned)
        check(not found, f"{a.__array_interface__}, versioned {versioned}: {found}")
        counts["versioned" if versioned else "without version"] += 1
        counts["read-only"] += facts["read_only"]
        counts["empty"] += a.size == 0
        live.append((held, facts, a.tobytes(), weakref.ref(a)))
        del a, held
        if len(live) > 20:
            drop()
    while live:
        drop()
    check(probe.live() == 0, f"{probe.live()} live")
    kinds = ("versioned", "without version", "read-only", "empty")
    rare = [name for name in kinds if counts[name] < options.count // 50]
    check(not rare, f"too few arrays: {rare}")
    for a in (np.zeros(3, "S5"), np.zeros(3, ">i4"), np.zeros(3, "M8[s]"), np.zeros(3, [("a", "i4")])):
        facts, error = take(Only(a), probe.HOST)
        check(type(error) is BufferError and "DLPack" in str(error), f"{a.dtype}: {error!r}, and not what NumPy says")
        facts, error = take(a, probe.HOST)
        check(error is None and facts["shape"] == [3], f"{a.dtype}, with all of its interfaces: {error!r}")
    a = np.zeros((2, 3))
    before = sys.getrefcount(a)
    for flags in (0, probe.LENIENT, probe.BORROW, probe.MASK):
        facts, error = take(Only(a), flags)
        check(type(error) is TypeError and "host" in str(error), f"host memory that is not asked for: {error!r}")
    check(sys.getrefcount(a) == before, "references of what was refused")
    print(f"NumPy {np.__version__}: " + ", ".join(f"{name} {counts[name]}" for name in sorted(counts)))


# ----------------------------------------------------------------------------- NumPy, out


def exported(a: Any, **more: Any) -> Any:
    address = a.ctypes.data if a.size else 0
    return probe.Array(a, address, a.shape, a.strides, a.dtype.str, not a.flags.writeable, **more)


def part_numpy_out(options: argparse.Namespace) -> None:
    if np is None:
        print("skipped: no NumPy")
        return
    dice = random.Random(options.seed)
    counts: collections.Counter[str] = collections.Counter()
    live: list[Any] = []

    def drop() -> None:
        b, wanted, gone, strong = live.pop(dice.randrange(len(live)))
        check(b.tobytes() == wanted, "elements after the array went")
        check(gone() is not None, "the memory went before the array that shows it")
        del b
        check(strong or gone() is None, "the memory stays until the next call")
        probe.drain()

    for _ in range(options.count):
        a = numpy_dlpack.random_array(dice)
        versioned = dice.random() < 0.7
        x = exported(a)
        keywords: dict[str, Any] = dice.choice(({}, {}, {"device": "cpu"}, {"copy": None}, {"copy": False}))
        b, error = attempt(lambda: np.from_dlpack(x if versioned else OnlyOld(x), **(keywords if versioned else {})))
        if error is not None:
            said = not versioned and not a.flags.writeable and type(error) is BufferError and "read-only" in str(error)
            check(said, f"{a.__array_interface__}, versioned {versioned}, {keywords}: {error!r}")
            counts["read-only, without version: refused"] += said
            continue
        same = b.shape == a.shape and b.dtype == a.dtype and b.tobytes() == a.tobytes()
        same = same and numpy_dlpack.moving(b.shape, b.strides) == numpy_dlpack.moving(a.shape, a.strides)
        same = same and (a.size == 0 or b.ctypes.data == a.ctypes.data)
        same = same and (a.size == 0 or b.flags.writeable == (versioned and a.flags.writeable))  # NumPy's own if empty
        check(same, f"{a.__array_interface__}, versioned {versioned}: {b.__array_interface__}")
        check(x.asked() == (0, 0, versioned), f"asked {x.asked()}, versioned {versioned}")
        counts["versioned" if versioned else "without version"] += 1
        counts["read-only"] += not a.flags.writeable
        live.append((b, a.tobytes(), weakref.ref(a), False))
        del a, b, x
        if len(live) > 20:
            drop()
    while live:
        drop()
    check(probe.live() == 0, f"{probe.live()} live")
    numpy_refusals()
    print(f"NumPy {np.__version__}: " + ", ".join(f"{name} {counts[name]}" for name in sorted(counts)))


def numpy_refusals() -> None:
    """What np.from_dlpack is told where it asks for too much, and what it does itself."""
    a = np.arange(6.0).reshape(2, 3)
    before = sys.getrefcount(a)
    x = exported(a)
    b, error = attempt(lambda: np.from_dlpack(x, copy=True))
    check(type(error) is BufferError and "copy" in str(error), f"copy=True: {error!r}")
    b = np.from_dlpack(x, copy=False)
    b[1, 2] = 77
    check(a[1, 2] == 77, "written through")
    y = probe.Array(a, a.ctypes.data, (2, 3), None, "<f8", memory=MEMORY_DEVICE, device=0)
    check(y.__dlpack_device__() == (GPU, 0), f"device {y.__dlpack_device__()}")
    b, error = attempt(lambda: np.from_dlpack(y))
    check(error is not None, "NumPy takes memory of a device")
    for dtype in (">f8", "|V8", "<M8[s]", "<U2", "|S8"):
        swapped = probe.Array(a, a.ctypes.data, (2,), None, dtype)
        b, error = attempt(lambda: np.from_dlpack(swapped))
        check(type(error) is BufferError and "dtype" in str(error), f"{dtype}: {error!r}")
    odd = probe.Array(a, a.ctypes.data, (2,), (12,), "<f8")
    b, error = attempt(lambda: np.from_dlpack(odd))
    check(type(error) is BufferError and "strides[0] = 12" in str(error), f"strides of 12 bytes: {error!r}")
    b = error = None
    del x, y, swapped, odd
    probe.drain()
    check(sys.getrefcount(a) == before, f"{sys.getrefcount(a) - before} references after refusals")


# ------------------------------------------------------------------------ devices, streams


def part_device(options: argparse.Namespace) -> None:
    """What __dlpack__ is asked, and what becomes of its answer."""
    del options
    handle = 0x55AA12345670
    memories = {GPU: MEMORY_DEVICE, MANAGED: MEMORY_MANAGED, PINNED: MEMORY_PINNED, CPU: MEMORY_HOST}
    makers = ((Producer, "dltensor_versioned"), (Producer, "dltensor"), (Old, "dltensor"), (Old, "dltensor_versioned"),
              (Oldest, "dltensor"))  # fmt: skip
    rounds = 0
    for kind, memory in memories.items():
        for stream in (0, 1, 2, handle, 2**64 - 2):
            for make, name in makers:
                text = f"device {kind}, stream {stream}, {make.__name__} {name}"
                index = 3 if kind == GPU else 0
                thing = make(spec(device=(kind, index), offset=64), name)
                with balanced(text):
                    facts, error = take(thing, probe.HOST, stream)
                    now = thing.name_now()
                streams = kind in (GPU, MANAGED)
                rounds += 1
                if make is Oldest and streams:
                    check(type(error) is TypeError and not thing.asked, f"{text}: {error!r}, asked {thing.asked}")
                    continue
                if not check(error is None, f"{text}: {error!r}"):
                    continue
                check(now == "used_" + name, f"{text}: the capsule is called {now}")
                expected = (STREAM, stream or 1) if streams else (NONE if kind == CPU else UNKNOWN, 0)
                order = facts["sync"], facts["stream"]
                check(order == expected, f"{text}: sync and stream {order}, expected {expected}")
                check((facts["memory"], facts["device"]) == (memory, index if kind == GPU else -1), f"{text}: {facts}")
                same = (facts["data"], facts["shape"], facts["strides"]) == (ADDRESS + 64, [2, 3], [12, 4])
                check(same and facts["dtype"] == "float32" and facts["owned"] and facts["plain"], f"{text}: {facts}")
                check(facts["read_only"] is (name == "dltensor"), f"{text}: read-only {facts['read_only']}")
                check_asked(text, thing, make, stream or 1 if streams else None)
    for flags, read_only in ((0, False), (1, True), (2, True), (3, True)):  # what is written to a copy is lost
        facts, error = take(Producer(spec(flags=flags)))
        check(error is None and facts["read_only"] is read_only, f"flags {flags}: {error!r} {facts}")
    for code, bits, name in ((4, 16, "bfloat16"), (10, 8, "float8_e4m3fn"), (12, 8, "float8_e5m2"), (6, 8, "bool"),
                             (5, 64, "complex64"), (0, 64, "int64"), (1, 8, "uint8"), (2, 16, "float16")):  # fmt: skip
        facts, error = take(Producer(spec(dtype=(code, bits, 1))))
        check(error is None and (facts["dtype"], facts["itemsize"]) == (name, bits // 8), f"{name}: {error!r} {facts}")
    for shape in ((), (0,), (5, 0, 2), (1,) * 64, (2, 3, 4)):
        facts, error = take(Producer(spec(shape=shape, strides=contiguous(shape))))
        check(error is None and facts["shape"] == list(shape) and facts["c_contiguous"], f"{shape}: {error!r} {facts}")
    with balanced("many at once"):
        things = tuple(Producer(spec(address=ADDRESS + 64 * i)) for i in range(8))
        held = probe.hold(things, 0, 2)
        check([f["data"] for f in probe.facts(held)] == [ADDRESS + 64 * i for i in range(8)], "eight at once")
        del held
    print(f"{rounds} imports of 4 kinds of memory")


def check_asked(text: str, thing: Producer, make: type, stream: int | None) -> None:
    """One call, in the words of the producer's version; a stream where there are streams."""
    if not check(len(thing.asked) == 1, f"{text}: asked {thing.asked}"):
        return
    asked = dict(thing.asked[0])
    check(asked.pop("stream", None) == stream, f"{text}: asked {thing.asked}")
    version = asked.pop("max_version", None)
    check(version == ((probe.MAJOR, probe.MINOR) if make is Producer else None), f"{text}: max_version {version}")
    check(not any(asked.values()), f"{text}: asked {thing.asked}")


# ----------------------------------------------------------------------------------- table


def part_table(options: argparse.Namespace) -> None:
    del options
    table = probe.table(probe.MAJOR, probe.MINOR)
    check_current(table)
    check_tables(table)
    check_what_it_says(table)
    check_bits(table)
    check_bits_in_c(table)
    with balanced("a group"):
        current(5)
        things = tuple(tabled(table, spec(address=ADDRESS + 64 * i)) for i in range(7))
        held = probe.hold(things, 0)
        check([f["data"] for f in probe.facts(held)] == [ADDRESS + 64 * i for i in range(7)], "seven of a table")
        del held
    for k in range(8):
        error = Own(f"{k} of 8")
        with balanced(f"{k} of 8 fails"):
            group = tuple(tabled(table, raising(error) if i == k else spec()) for i in range(8))
            _, got = attempt(lambda: probe.hold(group, 0))
            check(got is error, f"{k} of 8: {got!r}")
            del got
    check_memory_of_types(table)
    check_without(table)


def check_without(table: Any) -> None:
    """A cai_python of cai_python_init reads no DLPack. What else an object has is read then."""
    interface = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
    only, both = Producer(spec()), tabled(table, raising(Own()))
    type(both).__cuda_array_interface__ = interface
    for thing in (only, tabled(table, raising(Own()))):
        for flags, more in ((0, ""), (probe.HOST, ", no __array_interface__, no buffer")):
            _, error = attempt(lambda: probe.without(thing, flags))
            text = f"the object has no __cuda_array_interface__{more}; its type is {type(thing).__name__}"
            check(type(error) is TypeError and str(error) == text, f"without DLPack: {error!r}")
    check(not only.asked, f"without DLPack asked: {only.asked}")
    got, error = attempt(lambda: probe.without(both, 0))
    check(got is True, f"a dictionary beside a table, without DLPack: {got} {error!r}")
    _, error = attempt(lambda: probe.hold((object(),), 0))
    text = "the object has no __cuda_array_interface__, no __dlpack__; its type is object"
    check(type(error) is TypeError and str(error) == text, f"with DLPack: {error!r}")


def check_current(table: Any) -> None:
    """The exporter's stream is that of the pending work."""
    memories = {GPU: MEMORY_DEVICE, MANAGED: MEMORY_MANAGED, PINNED: MEMORY_PINNED, CPU: MEMORY_HOST}
    for kind, memory in memories.items():
        for stream, expected in ((0, 1), (1, 1), (2, 2), (0x5500, 0x5500), (2**63 + 8, 2**63 + 8), (None, 1)):
            for flags in (0, probe.BORROW):
                text = f"table, device {kind}, current stream {stream}, flags {flags}"
                asked = current(stream)
                index = 3 if kind == GPU else 0
                with balanced(text):
                    thing = tabled(table, spec(device=(kind, index), offset=8))
                    facts, error = take(thing, flags | probe.HOST, 99)
                    thing.lent = None
                if not check(error is None, f"{text}: {error!r}"):
                    continue
                streams = kind in (GPU, MANAGED)
                wanted = (STREAM, expected) if streams else (NONE if kind == CPU else UNKNOWN, 0)
                order = facts["sync"], facts["stream"]
                check(order == wanted, f"{text}: sync and stream {order}, expected {wanted}")
                check((facts["memory"], facts["device"]) == (memory, index if kind == GPU else -1), f"{text}: {facts}")
                check(facts["data"] == ADDRESS + 8 and facts["shape"] == [2, 3] and facts["plain"], f"{text}: {facts}")
                check(len(asked) == streams and all(i == index for _, i in asked), f"{text}: asked about {asked}")
                check(kind != GPU or asked == [(GPU, 3)], f"{text}: asked about {asked}")
    asked = current(raising(Own()))
    for flags in (0, probe.LENIENT, probe.BORROW, probe.MASK):
        with balanced("host memory that is not asked for"):
            thing = tabled(table, spec(device=(CPU, 0)))
            _, error = take(thing, flags)
            thing.lent = None
            check(type(error) is TypeError and "host" in str(error), f"host memory by a table: {error!r}")
    check(not asked, f"the current stream of the host: {asked}")


def check_tables(table: Any) -> None:
    """Versions, chains, and what is missing."""
    major, minor = probe.MAJOR, probe.MINOR
    unknown = probe.table(major + 1, 0, None, "", True)
    older = probe.table(major - 1, 8, None, "", True)
    chains = {
        "this version": (table, True),
        "a later minor version": (probe.table(major, minor + 7), True),
        "an earlier minor version": (probe.table(major, 0), True),
        "a later one, with this behind it": (probe.table(major + 1, 0, table, "", True), True),
        "two later ones, with this behind them": (
            probe.table(major + 2, 0, probe.table(major + 1, 5, table, "", True), "", True), True),
        "this, with an older one behind it": (probe.table(major, minor, older), True),
        "a later one alone": (unknown, False),
        "a later one with an older one behind it": (probe.table(major + 1, 0, older, "", True), False),
        "an older one alone": (older, False),
        "no managed tensors": (probe.table(major, minor, None, "m"), False),
        "no current stream": (probe.table(major, minor, None, "s"), False),
        "no tensors that are lent": (probe.table(major, minor, None, "t"), True),
        "no allocator, nothing back": (probe.table(major, minor, None, "aot"), True),
    }  # fmt: skip
    for flags in (0, probe.BORROW):
        for name, (capsule, used) in chains.items():
            current(0x70)
            text = f"{name}, flags {flags}"
            with balanced(text):
                thing = tabled(capsule, spec(flags=1))
                facts, error = take(thing, flags)
                thing.lent = None
            if used:
                check(error is None and facts["stream"] == 0x70 and facts["read_only"], f"{text}: {error!r} {facts}")
                continue
            check(type(error) is TypeError, f"{text}: {error!r}")
            with balanced(text):
                facts, error = take(tabled(capsule, spec(), __cuda_array_interface__=DICTIONARY), flags)
                check(error is None and facts["shape"] == [7], f"{text}, with a dictionary: {error!r}")
    others: dict[str, Any] = {"a capsule of another name": probe.table(major, minor, None, "", False, "something else"),
                              "None": None, "an int": 12345, "an object": object()}  # fmt: skip
    for name, value in others.items():
        facts, error = take(tabled(value, spec(), __cuda_array_interface__=DICTIONARY))
        check(error is None and facts["shape"] == [7], f"the table is {name}: {error!r}")
        _, error = take(tabled(value, spec()))
        check(type(error) is TypeError, f"the table is {name}, and nothing else: {error!r}")
    thing = Tabled(spec())
    setattr(thing, TABLE, table)
    _, error = take(thing)
    check(type(error) is TypeError and not thing.asked, f"a table of an instance: {error!r}, {thing.asked}")
    derived = type("Derived", (type(tabled(table, spec())),), {})(spec(shape=(4,), strides=(1,)))
    facts, error = take(derived)
    check(error is None and facts["shape"] == [4], f"a derived type: {error!r}")


def check_bits(table: Any) -> None:
    """PyTorch's exports do not tell of tensors whose values are to be conjugated or negated when they are read."""
    error = Own("by is_neg")
    real, number = SPEC, spec(dtype=(5, 64, 1))  # float32, complex64
    rows = ((number, False, False, "ok"), (number, 0, None, "ok"), (number, True, False, "is_conj()"),
            (number, False, True, "is_neg()"), (number, True, True, "is_conj()"), (number, False, error, error),
            (real, error, False, "ok"), (real, error, True, "is_neg()"))  # fmt: skip
    current(7)
    for given, conjugated, negated, expected in rows:
        says = [raising(it) if it is error else lambda _, answer=it: answer for it in (conjugated, negated)]
        text = f"{'real' if given is real else 'complex'}, conjugated {conjugated}, negated {negated}"
        with balanced(text):
            thing = tabled(table, given, is_conj=says[0], is_neg=says[1])
            _, got = attempt(lambda: probe.release(probe.hold((thing, thing), 0)))
        refused = isinstance(expected, str) and expected != "ok"
        check(type(got) is BufferError and expected in str(got) if refused else as_expected(got, expected),
              f"{text}: {got!r}")  # fmt: skip
        check(thing.asked == ["managed"] * (2 if expected == "ok" else 1), f"{text}: asked {thing.asked}")
    parts_of = [(2, 16), (2, 32), (2, 64), (4, 16), (1, 16), (1, 64)]  # a bfloat16 may come as bits
    for dtype in [*parts_of, (0, 8), (0, 32), (0, 64), (1, 8), (6, 8), (11, 8)]:
        thing = tabled(table, spec(dtype=(*dtype, 1)), is_conj=lambda _: False, is_neg=raising(error))
        with balanced(f"{dtype} negated"):
            _, got = attempt(lambda: probe.release(probe.hold((thing,), 0)))
        check(got is (error if dtype in parts_of else None), f"{dtype}: {got!r}")
    entries = {"shape": (2,), "typestr": "<f4", "data": (ADDRESS, False), "version": 3}
    for bit in (False, True):
        kind = type("Lazy", (), {"__cuda_array_interface__": entries, "is_conj": lambda _: False,
                                 "is_neg": lambda _, answer=bit: answer})  # fmt: skip
        with balanced(f"a dictionary, negated {bit}"):
            _, got = attempt(lambda: probe.release(probe.hold((kind(),), 0)))
        check(type(got) is BufferError if bit else got is None, f"a dictionary, negated {bit}: {got!r}")


def check_bits_in_c(table: Any) -> None:
    """is_neg of a type that cannot be changed is found once, and called past all that may come before it."""
    current(7)
    bases = [probe.Bits, *([probe.FixedBits] if hasattr(probe, "FixedBits") else [])]  # the limited API has one
    for base in bases:
        is_fixed = base is not probe.Bits
        first = base.is_neg
        kinds = [{TABLE: table, "is_conj": None, "negated": bit} for bit in (False, True)]
        things = [type("Bits", (Tabled, base), kind)(SPEC) for kind in kinds]
        for thing in things:
            for _ in range(2):  # the second time the type is remembered
                with balanced(f"{base}, negated {thing.negated}"):
                    _, got = attempt(lambda thing=thing: probe.release(probe.hold((thing,), 0)))
                check(type(got) is BufferError if thing.negated else got is None, f"{base}, {thing.negated}: {got!r}")
        if is_fixed:
            things[0].is_neg = raising(Own("an attribute of the instance"))
        else:
            base.is_neg = lambda _: True
        with balanced(f"{base}, changed"):
            _, got = attempt(lambda: probe.release(probe.hold((things[0],), 0)))
        check(got is None if is_fixed else type(got) is BufferError, f"{base}, changed: {got!r}")
        if not is_fixed:
            base.is_neg = first


def check_what_it_says(table: Any) -> None:
    """Tensors of a table are tensors."""
    current(7)
    for kind in ({"flags": 1}, {"flags": 0}):
        facts, error = take(tabled(table, spec(**kind)))
        check(error is None and facts["read_only"] is bool(kind["flags"]), f"{kind}: {error!r}")
    for code, bits, name in ((4, 16, "bfloat16"), (11, 8, "float8_e4m3fnuz"), (2, 64, "float64")):
        facts, error = take(tabled(table, spec(dtype=(code, bits, 1))))
        check(error is None and facts["dtype"] == name, f"{name}: {error!r} {facts}")
    thing = tabled(table, spec(shape=(2, 5), strides=(7, 1)))
    with balanced("shape and strides are copied"):
        held = probe.hold((thing,), probe.BORROW)
        thing.lent = None  # with BORROW nothing says how long the producer keeps them
        facts = probe.facts(held)[0]
        check((facts["shape"], facts["strides"]) == ([2, 5], [28, 4]), f"{facts}")
        del held
    thing = tabled(table, spec(strides=None))
    with balanced("no strides"):
        _, error = take(thing)
        check(type(error) is ValueError and "strides is NULL" in str(error), f"no strides: {error!r}")
        facts, error = take(thing, probe.LENIENT)
        check(error is None and facts["strides"] == [12, 4], f"no strides, lenient: {error!r}")
        facts, error = take(tabled(table, spec(strides=None, version=(1, 1))))
        check(error is None and facts["strides"] == [12, 4], f"no strides, version 1.1: {error!r}")
    thing = tabled(table, spec(deleter=False))
    before, made = sys.getrefcount(thing), probe.counts()
    held = probe.hold((thing,), 0)
    check(sys.getrefcount(thing) == before + 1, "without a deleter it is the object that is kept")
    probe.release(held)
    check(sys.getrefcount(thing) == before and probe.counts()[1] == made[1], "without a deleter, released")


def check_memory_of_types(table: Any) -> None:
    """More types than are remembered, in any order; a type goes when it is not remembered any more."""
    current(7)
    dice = random.Random(5)
    kinds = [type(tabled(table, spec())) for _ in range(30)] + [type(f"Plain{i}", (Producer,), {}) for i in range(30)]
    with balanced("60 types"):
        for _ in range(2000):
            number = dice.randrange(60)
            facts, error = take(kinds[number](spec(shape=(number,), strides=(1,))))
            check(error is None and facts["shape"] == [number], f"type {number}: {error!r}")
            check(error is None and facts["stream"] == (7 if number < 30 else 1), f"type {number}: stream {facts}")
    gone = [weakref.ref(kind) for kind in kinds]
    kinds.clear()
    for _ in range(300):
        take(tabled(table, spec()))
    gc.collect()
    kept = sum(ref() is not None for ref in gone)
    check(kept <= 8, f"{kept} of 60 types are kept")
    for number in range(60):  # a new type mostly gets the address of the one that is gone, and is another one
        kind = type(tabled(table, spec())) if number % 2 else type("Plain", (Producer,), {})
        facts, error = take(kind(spec()))
        check(error is None and facts["stream"] == (7 if number % 2 else 1), f"type {number} at an address: {error!r}, {facts}")
        del kind
        gc.collect()


# ----------------------------------------------------------------------------------- order


def part_order(options: argparse.Namespace) -> None:
    """Which of several interfaces is read: shapes tell them apart."""
    del options
    current(7)
    table = probe.table(probe.MAJOR, probe.MINOR)
    memory = ctypes.create_string_buffer(64)
    on_host = {**DICTIONARY, "shape": (9,), "data": (ctypes.addressof(memory), False)}

    def make(names: str) -> Any:
        space: dict[str, Any] = {}
        if "t" in names:
            space[TABLE] = table
        if "c" in names:
            space[CUDA] = DICTIONARY
        if "h" in names:
            space[HOST] = on_host
        if "d" in names:
            space["__dlpack_device__"] = lambda self: (GPU, 0)
            space["__dlpack__"] = lambda self, **_: probe.capsule(spec(shape=(5,), strides=(1,)), "dltensor_versioned")
        return type("Several", (Tabled,), space)(spec(shape=(3,), strides=(1,)))

    rows = {"tcdh": 3, "td": 3, "tc": 3, "cdh": 7, "cd": 7, "c": 7, "dh": 9, "d": 5, "h": 9}
    for names, expected in rows.items():
        for flags in (probe.HOST, 0):
            with balanced(names):
                facts, error = take(make(names), flags)
            wanted = 5 if names == "dh" and not flags else None if names == "h" and not flags else expected
            text = f"{names}, flags {flags}: {error!r} {facts}, expected {wanted}"
            check(type(error) is TypeError if wanted is None else error is None and facts["shape"] == [wanted], text)
    tabled = type("TableAlone", (Tabled,), {TABLE: table})
    for members, expected in (({}, 3), ({CUDA: DICTIONARY}, 7), ({TABLE: None, CUDA: DICTIONARY}, 7)):
        with balanced("a class that derives from one with a table"):
            facts, error = take(type("Derived", (tabled,), members)(spec(shape=(3,), strides=(1,))))
        check(error is None and facts["shape"] == [expected], f"derived, with {list(members)}: {error!r} {facts}")
    asked: list[int] = []
    static = {"__dlpack_device__": staticmethod(lambda: asked.append(1) or (GPU, 0)),
              "__dlpack__": staticmethod(lambda **_: probe.capsule(SPEC, "dltensor_versioned"))}  # fmt: skip
    for kind in (Producer, Only, type("Static", (), static)):
        _, error = take(kind)
        check(type(error) is TypeError and not asked, f"a class with __dlpack__: {error!r}, asked {asked}")
    no_device = type("NoDevice", (), {"__dlpack__": lambda self, **_: probe.capsule(SPEC, "dltensor_versioned")})()
    with balanced("no __dlpack_device__"):
        _, error = take(no_device)
    check(type(error) is TypeError and "__dlpack_device__" in str(error), f"no __dlpack_device__: {error!r}")
    check_device_first()


class Counted(bytearray):
    """As JAX's arrays: a property that raises on the host, both methods of DLPack, a buffer. Notes what is asked."""

    def __init__(self, device: Any = (CPU, 0), table: Any = None, buffer: int = 6) -> None:
        super().__init__(buffer)
        self.device, self.table, self.asked = device, table, []  # type: ignore[var-annotated]

    @property
    def __cuda_array_interface__(self) -> Any:
        self.asked.append("c")
        if self.table is None:
            raise AttributeError("only for GPU buffers")
        return self.table

    def __dlpack_device__(self) -> Any:
        self.asked.append("e")
        if isinstance(self.device, BaseException):
            raise self.device
        return self.device

    def __dlpack__(self, **_: Any) -> Any:
        self.asked.append("d")
        return probe.capsule(spec(shape=(5,), strides=(1,), device=(CPU, 0)), "dltensor_versioned")


class Bare:
    pass


def check_asked_of(thing: Any, asked: str, shape: Any, flags: int | None = None) -> None:
    """What an import asks, in this order, and what it gets: a shape, or an exception of that type."""
    with balanced(f"{type(thing).__name__}, {asked}"):
        facts, error = take(thing, probe.HOST if flags is None else flags)
    said = "".join(thing.asked)
    thing.asked.clear()
    good = facts["shape"] == [shape] if facts else not isinstance(shape, int) and as_expected(error, shape)
    check(said == asked and good, f"{type(thing).__name__}: asked {said!r}, not {asked!r}; {error!r} {facts}")


def check_device_first() -> None:
    """An object whose dictionary raises costs what it must: the next one of its type is asked for its device."""
    kind = type("FirstOnHost", (Counted,), {})
    check_asked_of(kind(), "ce", 6)
    check_asked_of(kind(), "e", 6)
    check_asked_of(kind(), "e", TypeError, 0)
    for raised in (RuntimeError("no device"), SystemError("none")):
        check_asked_of(kind(raised), "ece", raised)
    check_asked_of(kind("none"), "ece", TypeError)
    stop = KeyboardInterrupt()
    check_asked_of(kind(stop), "e", stop)
    on_device = kind((GPU, 0), DICTIONARY)
    check_asked_of(on_device, "ec", 7)
    check_asked_of(on_device, "c", 7)  # dictionaries are first again
    check_asked_of(kind(), "ce", 6)
    check_asked_of(kind((GPU, 0)), "ecd", BufferError)
    check_asked_of(kind((MANAGED, 0), DICTIONARY), "ec", 7)
    check_asked_of(kind((CPU, 0), DICTIONARY), "c", 7)
    check_asked_of(kind(), "ce", 6)
    both = kind()
    both.__array_interface__ = {**DICTIONARY, "shape": (9,)}
    check_asked_of(both, "e", 9)
    members = {key: value for key, value in vars(Counted).items() if key in PROTOCOLS}
    members["_fields_"] = [("a", ctypes.c_int), ("b", ctypes.c_float)]
    for base in (Bare, ctypes.Structure):  # no buffer, and one without a typestr
        other = type(base)(f"Other{base.__name__}", (base,), members)
        for asked in ("ced", "ed"):
            thing = other()
            thing.device, thing.table, thing.asked = (CPU, 0), None, []
            check_asked_of(thing, asked, 5)
    for _ in range(3):  # the object changes its type, and nothing else keeps the one before
        leaving = {"__dlpack_device__": lambda self: setattr(self, "__class__", kind) or (CPU, 0)}
        check_asked_of(type("Leaving", (Counted,), leaving)(), "c", 6)
        gc.collect()
    property_of = vars(Counted)[CUDA]
    derived = type("LaterDevice", (Counted,), {CUDA: property_of})  # the class of the dictionary says no device
    for _ in range(2):
        check_asked_of(derived(), "ced", 5)


# ------------------------------------------------------------------------------------ lies


def device_lies() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """(what it is, what makes it, what importing it gives)"""
    for value in (None, 7, (), (GPU,), (GPU, 0, 0), [GPU, 0], "20", (None, 0), (2, None), ("2", 0), (2.0, 0), (2, 0.0)):
        yield f"__dlpack_device__ says {value!r}", lambda v=value: Producer(SPEC, device=lambda: v), REFUSED
    large = (*REFUSED, OverflowError)
    for value in ((2**70, 0), (GPU, 2**70), (-(2**70), 0)):
        yield f"__dlpack_device__ says {value!r}", lambda v=value: Producer(SPEC, device=lambda: v), large
    for kind in (0, 4, 7, 8, 9, ROCM, 11, 12, 14, 15, 16, 17, 18, 99, -1, 2**31, 2**32 + GPU, 2**32 + CPU):
        yield f"__dlpack_device__ says {kind}", lambda k=kind: Producer(SPEC, device=(k, 0)), REFUSED
    for error in (Own(), OwnBase(), KeyboardInterrupt(), TypeError("of a device"), AttributeError("of a device")):
        yield f"__dlpack_device__ raises {type(error).__name__}", (
            lambda e=error: Producer(SPEC, device=raising(e))), error  # fmt: skip
    places = ((CPU, 0), (GPU, 0), (GPU, 1), (PINNED, 0), (MANAGED, 0))
    for said in places:
        for true in places:
            expected = "ok" if said == true else REFUSED
            yield f"__dlpack_device__ says {said}, and the tensor {true}", (
                lambda s=said, t=true: Producer(spec(device=t), device=s)), expected  # fmt: skip
    for kind in (ROCM, 11, 4, 14, 0, -1):
        made = spec(device=(kind, 0))
        yield f"CUDA, and the tensor is on {kind}", lambda m=made: Producer(m, device=(GPU, 0)), REFUSED
    error = Own("by the property")
    space = {"__dlpack_device__": property(raising(error))}
    yield "__dlpack_device__ is a property that raises", lambda: type("Raising", (Producer,), space)(SPEC), error
    yield "the tensor is on device -1", lambda: Producer(spec(device=(GPU, -1))), REFUSED


def capsule_lies() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    for value in (None, 7, "dltensor", (), object(), Producer, ctypes.c_void_p(8)):
        yield f"__dlpack__ returns {value!r:.40}", lambda v=value: answering(lambda: v), TypeError
    for name in ("used_dltensor", "used_dltensor_versioned", "something else", "dlpack_exchange_api"):
        made = spec(deleter=False)
        yield f"a capsule named {name}", lambda n=name, m=made: answering(lambda: probe.capsule(m, n)), TypeError
    errors = (TypeError("inside"), BufferError("inside"), AttributeError("inside"))
    for error in (Own(), OwnBase(), KeyboardInterrupt(), *errors):
        yield f"__dlpack__ raises {type(error).__name__}", lambda e=error: answering(raising(e)), error
    for value in (None, 7, "x"):
        yield f"__dlpack__ is {value!r}", lambda v=value: attribute(v), TypeError
    yield "__dlpack__ takes an argument", lambda: attribute(lambda self, x: x), TypeError
    error = Own("by the property")
    yield "__dlpack__ is a property that raises", lambda: attribute(property(raising(error))), error
    said = property(raising(AttributeError))
    yield "__dlpack__ is a property that says AttributeError", lambda: attribute(said), TypeError
    bad: list[tuple[str, dict[str, Any]]] = [
        ("lanes", {"dtype": (2, 32, 4)}), ("float4", {"dtype": (17, 4, 1)}), ("a handle", {"dtype": (3, 64, 1)}),
        ("long double", {"dtype": (2, 128, 1)}), ("no such code", {"dtype": (200, 8, 1)}), ("65 axes", {"ndim": 65}),
        ("-1 axes", {"ndim": -1}), ("no shape", {"shape": None, "strides": None, "ndim": 2}),
        ("a negative extent", {"shape": (2, -3)}), ("NULL", {"address": 0}), ("large strides", {"strides": (2**62, 1)}),
        ("a large address", {"address": 2**64 - 8, "offset": 64}), ("a large shape", {"shape": (2**40, 2**40)}),
    ]  # fmt: skip
    for name, entries in bad:
        for versioned in (False, True):
            kind = FRESH[versioned]
            yield f"{name}, {kind}", lambda e=entries, k=kind: Producer(spec(**e), k), REFUSED
    for version in ((2, 0), (0, 8), (2**32 - 1, 3)):
        yield f"version {version}", lambda v=version: Producer(spec(version=v)), ValueError
    yield "a later minor version", lambda: Producer(spec(version=(1, 99))), "ok"
    yield "unknown flags", lambda: Producer(spec(flags=8)), BufferError
    yield "no strides", lambda: Producer(spec(strides=None)), ValueError
    yield "no strides, without version", lambda: Producer(spec(strides=None), "dltensor"), "ok"
    yield "no deleter, without version", lambda: Producer(spec(deleter=False), "dltensor"), "ok"


def table_lies() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    table = probe.table(probe.MAJOR, probe.MINOR)
    anything = (*REFUSED, RuntimeError)

    def streaming(answer: Any, *arguments: Any) -> Any:
        current(answer)
        return tabled(table, *arguments)

    for error in (Own(), OwnBase(), BufferError("inside"), TypeError("inside"), KeyboardInterrupt()):
        yield f"managed raises {type(error).__name__}", lambda e=error: streaming(7, raising(e)), error
        yield f"the current stream raises {type(error).__name__}", lambda e=error: streaming(raising(e), SPEC), error
    yield "managed fails without an exception", lambda: streaming(7, -1), anything
    yield "managed succeeds without a tensor", lambda: streaming(7, 0), anything
    yield "managed returns 1", lambda: streaming(7, 1), anything
    yield "the current stream fails without an exception", lambda: streaming((-1,), SPEC), anything
    bad = {"lanes": {"dtype": (2, 32, 4)}, "NULL": {"address": 0}, "ROCm": {"device": (ROCM, 0)},
           "65 axes": {"ndim": 65}, "version 2": {"version": (2, 0)}, "flags": {"flags": 8}}  # fmt: skip
    for name, entries in bad.items():
        yield f"table: {name}", lambda e=entries: streaming(7, spec(**e)), REFUSED
    for name, entries in bad.items():
        yield f"table: {name}, and no deleter", lambda e=entries: streaming(7, spec(**e, deleter=False)), REFUSED
    raising_type = type("Meta", (type,), {TABLE: property(raising(Own("by the metaclass")))})
    yield "a metaclass raises, and is not asked", lambda: raising_type("Raises", (Tabled,), {})(SPEC), TypeError


def answering(call: Callable[[], Any]) -> Any:
    """A producer that answers something else, whatever it is asked."""
    thing = Producer(SPEC)
    thing.answer = call  # type: ignore[method-assign]
    return thing


def attribute(value: Any) -> Any:
    return type("Attribute", (Producer,), {"__dlpack__": value})(SPEC)


def all_lies() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    yield from device_lies()
    yield from capsule_lies()
    yield from table_lies()


def part_lies(options: argparse.Namespace) -> None:
    del options
    outcomes: collections.Counter[str] = collections.Counter()
    current(7)
    for name, make, expected in all_lies():
        for flags in (probe.HOST, probe.HOST | probe.BORROW, probe.HOST | probe.MASK):
            leaks = "deleter" in name or name.startswith("a capsule named")  # by the producer's will
            with contextlib.nullcontext() if leaks else balanced(name):
                thing = make()
                before = sys.getrefcount(thing)
                facts, error = take(thing, flags)
                outcomes[type(error).__name__ if error is not None else "accepted"] += 1
                check(as_expected(error, expected), f"{name}: {error!r:.300}, expected {expected!r}")
                check(not isinstance(error, SystemError), f"{name}: {error!r}")
                check(bool(str(error)) or isinstance(expected, BaseException) or error is None, f"{name}: no text")
                error = facts = None
                probe.drain()
                check(sys.getrefcount(thing) == before, f"{name}: {sys.getrefcount(thing) - before} references")
                now = thing.name_now() if isinstance(thing, Producer) else None
                used = expected == "ok" or name.startswith("version ")
                moved = name.startswith("__dlpack_device__ says (") and ", and the tensor" in name
                if now is not None and not moved:
                    check(now.startswith("used_") == used, f"{name}: the capsule is called {now}")
                del thing
    check_words()
    check_calls()
    check_first_exception_stays()
    print(", ".join(f"{name} {count}" for name, count in outcomes.most_common()))


def check_words() -> None:
    """Messages say what is wrong with which value."""
    words = (
        (Producer(SPEC, device=(ROCM, 3)), ("__dlpack_device__", "(10, 3)")),
        (Producer(SPEC, device=lambda: 7), ("__dlpack_device__",)),
        (Producer(spec(device=(GPU, 1)), device=(GPU, 0)), ("__dlpack_device__", "(2, 0)")),
        (answering(lambda: None), ("__dlpack__", "capsule")),
        (Producer(spec(device=(CPU, 0))), ("host",)),
        (Producer(spec(dtype=(2, 32, 4))), ("lanes = 4",)),
        (Producer(spec(version=(2, 7))), ("version 2.7",)),
        (Producer(spec(flags=8)), ("flags = 0x8",)),
    )
    for thing, expected in words:
        _, error = take(thing)
        check(all(word in str(error) for word in expected), f"{expected} in {error!r}")


def check_calls() -> None:
    """What has its own say is asked once; what knows no max_version a second time, without it."""
    unknown = "__dlpack__() got an unexpected keyword argument 'max_version'"
    for error, calls in ((Own(), 1), (BufferError("x"), 1), (OwnBase(), 1), (TypeError("unsupported dtype"), 1),
                         (TypeError(unknown), 2), (TypeError(), 2)):  # fmt: skip
        thing = answering(raising(error))
        _, got = take(thing, 0, 5)
        check(got is error and len(thing.asked) == calls, f"{error!r}: {got!r}, {len(thing.asked)} calls")
        check(["max_version" in asked for asked in thing.asked] == [True, False][:calls], f"asked {thing.asked}")
        check(all(asked.get("stream") == 5 for asked in thing.asked), f"asked {thing.asked}")

    class Choosy(Producer):
        def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:  # type: ignore[override]
            self.asked.append((stream, max_version))
            if max_version is not None:
                raise TypeError("max_version must not be given")
            return self.answer()

    thing = Choosy(SPEC, "dltensor")
    with balanced("no max_version"):
        facts, got = take(thing, 0, 9)
        thing.name_now()
    check(got is None and facts["stream"] == 9, f"no max_version: {got!r}")
    check(thing.asked == [(9, (probe.MAJOR, probe.MINOR)), (9, None)], f"asked {thing.asked}")
    thing = Producer(SPEC)
    with balanced("the same capsule twice"):
        held = probe.hold((thing,), 0)
        kept = thing.capsule
        again = answering(lambda: kept)
        _, got = take(again)
        check(type(got) is TypeError and "unused" in str(got), f"the same capsule twice: {got!r}")
        check(probe.facts(held)[0]["shape"] == [2, 3], "the first import of a capsule that came twice")
        probe.release(held)
        del held, again, kept
        thing.name_now()
    for stream in (2**64 - 1,):
        with balanced("stream -1"):
            thing = Producer(SPEC)
            _, got = take(thing, 0, stream)
            thing.name_now()
        check(type(got) in REFUSED, f"options.stream = 2**64 - 1: {got!r}")


def check_first_exception_stays() -> None:
    """Deleters may run Python code while an exception is on its way."""
    ran: list[int] = []
    table = probe.table(probe.MAJOR, probe.MINOR)
    error = Own("of the current stream")
    probe.set_on_delete(lambda: ran.append(1))
    for name, make, expected in (
        ("a tensor that is refused", lambda: Producer(spec(dtype=(2, 32, 4))), ValueError),
        ("a tensor without version that is refused", lambda: Producer(spec(dtype=(2, 32, 4)), "dltensor"), ValueError),
        ("another major version", lambda: Producer(spec(version=(2, 0))), ValueError),
        ("another device", lambda: Producer(spec(device=(GPU, 1)), device=(GPU, 0)), BufferError),
        ("a table's tensor that is refused", lambda: tabled(table, spec(dtype=(2, 32, 4))), ValueError),
        ("a table's tensor of another major version", lambda: tabled(table, spec(version=(2, 0))), ValueError),
        ("a table's stream", lambda: (current(raising(error)), tabled(table, SPEC))[1], error),
    ):
        thing = make()
        thing.answer = lambda n=getattr(thing, "name", ""), t=getattr(thing, "tensor", None): probe.capsule(t, n)
        ran.clear()
        _, got = take(thing, 0)
        check(as_expected(got, expected), f"{name}, and code in its deleter: {got!r}")
        check(ran == [1], f"{name}: its deleter ran {len(ran)} times")
    current(5)
    probe.set_on_delete(raising(LookupError("of a deleter")))
    for name, thing in ("a capsule", Producer(SPEC)), ("a table", tabled(table, SPEC)):
        thing.answer = lambda t=getattr(thing, "tensor", None): probe.capsule(t, "dltensor_versioned")
        held = probe.hold((thing,), 0, 0)
        _, got = attempt(lambda h=held: probe.release(h))
        check(got is None, f"{name}, and a deleter that leaves an exception behind: {got!r}")
    probe.set_on_delete(None)


# ------------------------------------------------------------------------------- arguments


def array(**more: Any) -> Any:
    """An array of this module: on a device unless said otherwise."""
    given = {"memory": MEMORY_DEVICE, "device": 0, "sync": STREAM, "stream": 0x70, "dtype": "<f4", "shape": (2, 3),
             "strides": None, "address": ADDRESS, "owner": None, **more}  # fmt: skip
    if given["memory"] != MEMORY_DEVICE and "device" not in more:
        given["device"] = -1
    if given["sync"] != STREAM and "stream" not in more:
        given["stream"] = 0
    first = [given.pop(name) for name in ("owner", "address", "shape", "strides", "dtype")]
    return probe.Array(*first, **given)


def part_arguments(options: argparse.Namespace) -> None:
    """(stream, flags, versioned) of what a consumer asks."""
    del options
    ordered = probe.ORDERED
    rows: list[tuple[str, Any, dict[str, Any], Any]] = [
        # the stream that is to wait
        ("nothing", array(), {}, (1, 0, 0)),
        ("None is the legacy default stream", array(), {"stream": None}, (1, 0, 0)),
        ("a handle", array(), {"stream": 0x99}, (0x99, 0, 0)),
        ("2", array(), {"stream": 2}, (2, 0, 0)),
        ("the array's own stream", array(), {"stream": 0x70}, (0, ordered, 0)),
        ("the array's own stream, the default one", array(stream=1), {}, (0, ordered, 0)),
        ("-1", array(), {"stream": -1}, (0, ordered, 0)),
        ("2, which may be of another thread", array(stream=2), {"stream": 2}, (2, 0, 0)),
        ("a large handle", array(), {"stream": 2**64 - 2}, (2**64 - 2, 0, 0)),
        ("nothing is pending", array(sync=NONE), {"stream": 0x99}, (0, 0, 0)),
        ("nothing is pending, -1", array(sync=NONE), {"stream": -1}, (0, ordered, 0)),
        ("it is not known what is pending", array(sync=UNKNOWN), {"stream": 0x99}, (0x99, 0, 0)),
        ("an event", array(sync=EVENT), {"stream": 0x99}, (0x99, 0, 0)),
        ("managed memory", array(memory=MEMORY_MANAGED), {}, (1, 0, 0)),
        ("pinned memory", array(memory=MEMORY_PINNED), {}, (0, 0, 0)),
        ("pinned memory, -1", array(memory=MEMORY_PINNED), {"stream": -1}, (0, ordered, 0)),
        ("host memory", array(memory=MEMORY_HOST, sync=NONE), {}, (0, 0, 0)),
        ("host memory, None", array(memory=MEMORY_HOST, sync=NONE), {"stream": None}, (0, 0, 0)),
        ("host memory, -1", array(memory=MEMORY_HOST, sync=NONE), {"stream": -1}, (0, ordered, 0)),
        ("host memory, a stream", array(memory=MEMORY_HOST, sync=NONE), {"stream": 1}, ValueError),
        ("pinned memory, a stream", array(memory=MEMORY_PINNED), {"stream": 0x99}, ValueError),
        ("0", array(), {"stream": 0}, ValueError),
        ("-2", array(), {"stream": -2}, ValueError),
        ("2**64", array(), {"stream": 2**64}, (TypeError, ValueError)),
        ("True", array(), {"stream": True}, TypeError),
        ("a float", array(), {"stream": 1.0}, TypeError),
        ("a str", array(), {"stream": "1"}, TypeError),
        ("a tuple", array(), {"stream": (0, 1)}, TypeError),
        # the version
        ("no version", array(), {"max_version": None, "stream": -1}, (0, ordered, 0)),
        ("1.0", array(), {"max_version": (1, 0), "stream": -1}, (0, ordered, 1)),
        ("1.99", array(), {"max_version": (1, 99), "stream": -1}, (0, ordered, 1)),
        ("2.0", array(), {"max_version": (2, 0), "stream": -1}, (0, ordered, 1)),
        ("-1.0", array(), {"max_version": (-1, 0), "stream": -1}, (0, ordered, 0)),
        ("0.8", array(), {"max_version": (0, 8), "stream": -1}, (0, ordered, 0)),
        ("a version of one number", array(), {"max_version": (1,)}, TypeError),
        ("a version of three", array(), {"max_version": (1, 0, 0)}, TypeError),
        ("a version that is no tuple", array(), {"max_version": 1}, TypeError),
        ("a version of text", array(), {"max_version": ("1", "0")}, TypeError),
        # where it is to be
        ("its device", array(device=3), {"dl_device": (GPU, 3), "stream": -1}, (0, ordered, 0)),
        ("any device", array(device=3), {"dl_device": None, "stream": -1}, (0, ordered, 0)),
        ("another device", array(device=3), {"dl_device": (GPU, 0), "stream": -1}, BufferError),
        ("the host", array(), {"dl_device": (CPU, 0)}, BufferError),
        ("a device that is none", array(), {"dl_device": 7}, (BufferError, TypeError)),
        ("the host, of host memory", array(memory=MEMORY_HOST, sync=NONE), {"dl_device": (CPU, 0)}, (0, 0, 0)),
        ("a device that is not known", array(device=-1), {"dl_device": (GPU, 0)}, BufferError),
        # a copy
        ("copy=None", array(), {"copy": None, "stream": -1}, (0, ordered, 0)),
        ("copy=False", array(), {"copy": False, "stream": -1}, (0, ordered, 0)),
        ("copy=True", array(), {"copy": True, "stream": -1}, BufferError),
        ("a word that is none", array(), {"stream": -1, "version": (1, 0)}, TypeError),
    ]  # fmt: skip
    for name, x, keywords, expected in rows:
        own = [value for value in keywords.values() if isinstance(value, (tuple, str, float))]
        before = [sys.getrefcount(value) for value in own]
        got, error = attempt(lambda: x.ask(**keywords))
        if isinstance(expected, tuple) and not isinstance(expected[0], type):
            check(got == expected and error is None, f"{name}: {got} {error!r}, expected {expected}")
        else:
            check(error is not None and as_expected(error, expected), f"{name}: {got} {error!r}, expected {expected}")
        error = None
        now = [sys.getrefcount(value) for value in own]
        check(now == before, f"{name}: references of what was asked {before} {now}")
    _, error = attempt(lambda: array().ask(1))
    check(type(error) is TypeError, f"a stream that is not named: {error!r}")
    error = Own("truth")
    truth = type("Truth", (), {"__bool__": raising(error)})()
    check(attempt(lambda: array().ask(copy=truth))[1] is error, "a copy that cannot say")
    equal = type("Equal", (tuple,), {"__eq__": raising(error), "__hash__": None})((GPU, 0))
    check(attempt(lambda: array().ask(dl_device=equal))[1] is error, "a device that cannot be compared")
    for words, keywords in ((("copy",), {"copy": True}), (("dl_device", "(1, 0)", "(2, 0)"), {"dl_device": (CPU, 0)}),
                            (("stream", "0"), {"stream": 0})):  # fmt: skip
        _, error = attempt(lambda: array().ask(**keywords))
        check(all(word in str(error) for word in words), f"{words}: {error!r}")
    print(f"{len(rows)} requests")


# --------------------------------------------------------------------------------- exports


def part_exports(options: argparse.Namespace) -> None:
    """Structs in the words of dlpack.h, and back through an import."""
    dice = random.Random(options.seed)
    dtypes = {"|b1": (6, 8), "|i1": (0, 8), "<i2": (0, 16), "<i4": (0, 32), "<i8": (0, 64), "|u1": (1, 8),
              "<u2": (1, 16), "<u4": (1, 32), "<u8": (1, 64), "<f2": (2, 16), "<f4": (2, 32), "<f8": (2, 64),
              "<c8": (5, 64), "<c16": (5, 128),
              probe.CAI_BFLOAT16: (4, 16), probe.CAI_FLOAT8_E4M3FN: (10, 8), probe.CAI_COMPLEX32: (5, 32)}  # fmt: skip
    if sys.byteorder == "big":
        dtypes = {key.replace("<", ">") if isinstance(key, str) else key: value for key, value in dtypes.items()}
    places = {MEMORY_DEVICE: GPU, MEMORY_MANAGED: MANAGED, MEMORY_PINNED: PINNED, MEMORY_HOST: CPU}
    for number in range(options.count // 5):
        dtype = dice.choice(list(dtypes))
        code, bits = dtypes[dtype]
        shape = tuple(dice.randint(0 if dice.random() < 0.1 else 1, 4) for _ in range(dice.randint(0, 4)))
        steps = dice.sample(contiguous(shape), len(shape))
        strides = tuple(step * dice.choice((1, 1, 2, -1)) * (bits // 8) for step in steps)
        memory = dice.choice(list(places))
        device = dice.randint(0, 7) if memory == MEMORY_DEVICE else -1
        read_only, versioned = dice.random() < 0.3, dice.random() < 0.7
        layout = {"dtype": dtype, "shape": shape, "strides": strides}
        x = array(**layout, memory=memory, device=device, sync=NONE, read_only=read_only)
        check(x.__dlpack_device__() == (places[memory], max(device, 0)), f"device {x.__dlpack_device__()}")
        keywords = {"max_version": (1, 0)} if versioned else {}
        text = f"{dtype} {shape} {strides} memory {memory} device {device} read-only {read_only} {keywords}"
        capsule, error = attempt(lambda: x.__dlpack__(**keywords))
        if read_only and not versioned:
            check(type(error) is BufferError and "read-only" in str(error), f"{text}: {error!r}")
            continue
        if not check(error is None, f"{text}: {error!r}"):
            continue
        said = probe.read(capsule)
        empty = 0 in shape
        expected = {
            "name": FRESH[versioned], "data": 0 if empty else ADDRESS, "offset": 0,
            "device": (places[memory], max(device, 0)), "dtype": (code, bits, 1), "ndim": len(shape),
            "shape": list(shape) if shape else None,
            "strides": [stride // (bits // 8) for stride in strides] if shape else None,
            "version": (probe.MAJOR, probe.MINOR) if versioned else None, "flags": int(read_only),
        }  # fmt: skip
        check(said == expected, f"{text}: {said}, expected {expected}")
        back = Producer(SPEC, device=expected["device"])
        back.answer = lambda c=capsule: c  # type: ignore[method-assign]
        facts, error = take(back, probe.HOST, 5)
        if check(error is None, f"{text}, back: {error!r}"):
            mine = (facts["shape"], facts["data"], facts["read_only"])
            same = mine == (list(shape), expected["data"], read_only or not versioned)
            same = same and (facts["memory"], facts["device"]) == (memory, device)
            moving = numpy_dlpack.moving
            check(same and moving(shape, facts["strides"]) == moving(shape, strides), f"{text}, back: {facts}")
        check(probe.capsule_name(capsule) == "used_" + FRESH[versioned], f"{text}: {probe.capsule_name(capsule)}")
    back = capsule = None
    check_refused_exports()
    check_owners()
    check(probe.live() == 0, f"{probe.live()} live")
    print(f"{options.count // 5} exports")


def check_refused_exports() -> None:
    """What does not go over, and that nothing is kept of it."""
    version = {"max_version": (1, 0)}
    rows: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
        ("pending work, no order", {"orders": False}, version, "stream"),
        ("pending work in pinned memory", {"memory": MEMORY_PINNED}, version, "stream"),
        ("not known what is pending, pinned memory", {"memory": MEMORY_PINNED, "sync": UNKNOWN}, version, "stream"),
        ("a mask", {"mask": True}, version, "mask"),
        ("memory that is not known", {"memory": 0}, {**version, "stream": None}, "memory"),
        ("a device that is not known", {"device": -1}, version, "device"),
        ("swapped bytes", {"dtype": ">f4" if sys.byteorder == "little" else "<f4"}, version, "dtype"),
        ("a record", {"dtype": "|V8"}, version, "dtype"),
        ("text", {"dtype": "<U3"}, version, "dtype"),
        ("strides that are no elements", {"shape": (4,), "strides": (6,)}, version, "strides[0]"),
        ("read-only, without version", {"read_only": True}, {}, "read-only"),
    ]
    for name, entries, keywords, word in rows:
        owner = Own("the memory")
        before = sys.getrefcount(owner)
        x = array(owner=owner, **entries)
        inside = sys.getrefcount(x)
        got, error = attempt(lambda: x.__dlpack__(**keywords))
        check(type(error) is BufferError and word in str(error), f"{name}: {got} {error!r}")
        error = None
        probe.drain()
        check(sys.getrefcount(x) == inside, f"{name}: {sys.getrefcount(x) - inside} references")
        del x
        check(sys.getrefcount(owner) == before and probe.live() == 0, f"{name}: references, {probe.live()} live")
    _, error = attempt(lambda: array(flags=1 << 20).__dlpack__(**version))
    check(type(error) is ValueError and "flags" in str(error), f"flags of no meaning: {error!r}")
    accepted: list[tuple[str, dict[str, Any], dict[str, Any], int]] = [
        ("ordered", {}, version, 0), ("-1", {"orders": False}, {**version, "stream": -1}, 0),
        ("its own stream", {"orders": False}, {**version, "stream": 0x70}, 0),
        ("a copy", {"flags": probe.COPIED, "sync": NONE}, version, 2),
        ("read-only", {"read_only": True}, version, 1),
        ("both", {"read_only": True, "flags": probe.COPIED}, version, 3),
        ("read-only, dropped", {"read_only": True, "flags": probe.DROP_READ_ONLY}, {}, 0),
        ("empty, with pending work", {"shape": (0, 3), "orders": False}, version, 0),
    ]  # fmt: skip
    for name, entries, keywords, flags in accepted:
        capsule, error = attempt(lambda: array(**entries).__dlpack__(**keywords))
        if check(error is None, f"{name}: {error!r}"):
            check(probe.read(capsule)["flags"] == flags, f"{name}: flags {probe.read(capsule)['flags']}")
    for keywords in (version, {}):
        _, error = attempt(lambda: array(sync=NONE, abi=7).__dlpack__(**keywords, stream=-1))
        check(type(error) is BufferError, f"an array of another layout: {error!r}")
    for entries, expected in (({"memory": 0}, BufferError), ({"device": -1}, BufferError), ({"abi": 7}, BufferError)):
        _, error = attempt(lambda: array(**entries).__dlpack_device__())
        check(type(error) is expected, f"{entries}: {error!r}")


def check_owners() -> None:
    """The object lives as long as the capsule, or what was taken from it."""
    probe.drain()
    check(probe.live() == 0, f"{probe.live()} live")
    for versioned in (False, True):
        name = FRESH[versioned].encode()
        for way in ("nobody", "one that gave it back", "a consumer", "a thread", "an import"):
            text = f"used by {way}, versioned {versioned}"
            x = array(sync=NONE)
            before = sys.getrefcount(x)
            capsule = x.__dlpack__(max_version=(1, 0)) if versioned else x.__dlpack__()
            check(sys.getrefcount(x) == before + 1 and probe.live() == 1, f"{text}: exported")
            if way == "one that gave it back":  # under the name, at an address of its own
                ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), ctypes.c_char_p(name))
            elif way == "a consumer":
                probe.consume(capsule)
            elif way == "a thread":
                probe.consume(capsule, True)
                probe.drain()
            elif way == "an import":
                back = Producer(SPEC)
                back.answer = lambda c=capsule: c  # type: ignore[method-assign]
                held = probe.hold((back,), 0)
                check(sys.getrefcount(x) == before + 1 and probe.live() == 2, f"{text}: imported")
                probe.release(held)
                probe.drain()
                del back, held
            del capsule
            probe.drain()
            left = sys.getrefcount(x) - before
            check(left == 0 and probe.live() == 0, f"{text}: {left} references")


# ------------------------------------------------------------------- references and memory


def memory_paths() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every path, with objects made for each call where that is no new type."""
    new_types = ("is a property", "__dlpack__ is", "takes an argument", "managed", "stream", "table")
    for name, make, _ in all_lies():
        if "metaclass" in name or name.startswith("a capsule named"):
            continue
        if any(words in name for words in new_types):
            yield name, lambda t=make(): (t.asked.clear(), take(t, probe.HOST))
        else:
            yield name, lambda m=make: take(m(), probe.HOST)
    table = probe.table(probe.MAJOR, probe.MINOR)
    thing = tabled(table, spec(strides=(3 + 2**40, 1 + 2**40)))
    current(lambda: 2**60)
    yield "a table", lambda: (thing.asked.clear(), take(thing))
    yield "a table, borrowed", lambda: (thing.asked.clear(), take(thing, probe.BORROW))
    yield "by its device", lambda: take(Counted(), probe.HOST)
    yield "by its device, refused", lambda: take(Counted())
    yield "by its device, which raises", lambda: take(Counted(RuntimeError()), probe.HOST)
    yield "old", lambda: take(Old(spec(), "dltensor"), 0, 2**60)
    yield "new", lambda: take(Producer(spec()), 0, 2**60)
    yield "exported", lambda: array(sync=NONE).__dlpack__(max_version=(1, 0))
    yield "exported without version", lambda: array(sync=NONE).__dlpack__()
    yield "exported and used", lambda: probe.consume(array(sync=NONE).__dlpack__(), True)
    for name, entries in (("a mask", {"mask": True}), ("no device", {"device": -1}), ("no order", {"orders": False}),
                          ("swapped", {"dtype": ">f4"}), ("flags", {"flags": 1 << 20})):  # fmt: skip
        yield f"export refused: {name}", lambda e=entries: array(**e).__dlpack__(max_version=(1, 0))
    for keywords in ({}, {"stream": 0}, {"stream": "x"}, {"stream": 2**60}, {"stream": [2] * 300}, {"copy": True},
                     {"dl_device": (CPU, 0)}, {"dl_device": (GPU, 0)}, {"max_version": 1}, {"max_version": (2**80, 0)},
                     {"unknown": 1}):  # fmt: skip
        yield f"asked {str(keywords)[:60]}", lambda k=keywords: array().ask(**k)
    yield "a device", lambda: array().__dlpack_device__()
    yield "a device that is not known", lambda: array(device=-1).__dlpack_device__()

    def both(*more: Any) -> Any:
        thing.asked.clear()
        return probe.hold((Producer(SPEC), thing, *more), 0)

    yield "a group that fails", lambda: both(answering(raising(Own())))
    yield "released later", lambda: probe.let_go(both())
    yield "released elsewhere", lambda: probe.elsewhere(both())
    yield "released by nobody but the capsule", both


def part_references(options: argparse.Namespace) -> None:
    del options
    gc.freeze()
    names = ["__dlpack__", "__dlpack_device__", TABLE, "max_version", "stream", CUDA]
    current(7)
    table = probe.table(probe.MAJOR, probe.MINOR)
    devices, tensor, streams = (GPU, 2**40), spec(), 2**60
    paths = count = 0
    for make in (lambda: Producer(tensor), lambda: Old(tensor, "dltensor"), lambda: tabled(table, tensor),
                 lambda: Producer(tensor, device=devices), lambda: answering(lambda: devices)):  # fmt: skip
        thing = make()
        things = [thing, type(thing), tensor, devices, table, *names]
        before = []
        for _ in range(20):
            take(thing, 0, streams)
            thing.asked.clear()
            if isinstance(thing, Producer):
                thing.capsule = None
            before = before or references_of(things)
        gone = [a - b for a, b in zip(references_of(things), before)]
        kept = isinstance(thing, Tabled)  # `lent`, and what it was asked
        own, of_names = gone[kept:-len(names)], gone[-len(names):]
        check(not any(own), f"{type(thing).__name__}: references {gone}")
        # the interpreter's cache of attributes holds a name or lets it go; 20 rounds would show more
        check(max(map(abs, of_names)) < 3, f"{type(thing).__name__}: references {of_names} of names")
        paths += 1
    tracemalloc.start()
    for name, call in memory_paths():
        made = probe.counts()
        left = parts.growth_of(call, 20, probe.drain)
        now = probe.counts()
        check(left < 8, f"{name}: {left:.0f} bytes are left behind by each call")
        balance = now[0] - made[0] - (now[1] - made[1])
        check(balance in (0, 1) or "no deleter" in name, f"{name}: {balance} tensors are left behind")
        check(now[2] == made[2], f"{name}: a deleter was called twice")
        count += 1
    tracemalloc.stop()
    check(probe.live() == 0, f"{probe.live()} live")
    print(f"references of {paths} paths, memory of {count} paths")


def part_memory(options: argparse.Namespace) -> None:
    current(7)
    table = probe.table(probe.MAJOR, probe.MINOR)
    in_table, failing = tabled(table, SPEC), tabled(table, spec(dtype=(2, 32, 4)))
    plain, old, bad = Producer(SPEC), Old(SPEC, "dltensor"), Producer(spec(version=(2, 0)))
    x, masked = array(sync=NONE), array(mask=True)
    things = [in_table, failing, plain, old, bad, x, masked]

    def one() -> None:
        for thing in (plain, old, bad):
            thing.asked.clear()
        in_table.asked.clear()
        failing.asked.clear()
        probe.release(probe.hold((in_table, plain), 0))
        for thing in (failing, bad):
            attempt(lambda: probe.hold((old, thing), 0))
        probe.consume(x.__dlpack__(max_version=(1, 0)))
        x.__dlpack__()
        attempt(lambda: masked.__dlpack__(max_version=(1, 0)))

    def many(count: int) -> None:
        for _ in range(count):
            one()
        probe.drain()
        gc.collect()

    rounds = options.rounds
    most = max(1 << 20, 4 * rounds)
    many(2000)
    before = references_of(things)
    with balanced(f"{rounds} rounds"):
        grown = parts.resident_growth(many, 0, rounds, most)
        plain.capsule = old.capsule = bad.capsule = None
    check(references_of(things) == before, f"references {before}, and after that {references_of(things)}")
    check(grown < most, f"resident: {grown} bytes more after {rounds} rounds")
    traced = parts.traced_growth(many, 100, max(1, rounds // 10))
    check(traced < 4096, f"traced: {traced} bytes more after {rounds // 10} rounds")
    check(probe.live() == 0, f"{probe.live()} live")
    print(f"{6 * rounds} imports, 2 exports and 3 failures a round: {grown} bytes more resident, {traced} traced")


# ------------------------------------------------------------------------------- no memory


def part_no_memory(options: argparse.Namespace) -> None:
    """Each allocation of an import or an export fails in turn."""
    del options
    try:
        from _testcapi import remove_mem_hooks, set_nomemory
    except ImportError as error:
        print(f"skipped: {error}")
        return
    current(7)
    table = probe.table(probe.MAJOR, probe.MINOR)
    plain, old, in_table = Producer(SPEC), Old(SPEC, "dltensor"), tabled(table, SPEC)
    x, on_host = array(sync=NONE), Producer(spec(device=(CPU, 0)))
    group = (plain, old, in_table)
    failed: collections.Counter[str] = collections.Counter()
    for name, call in {
        "__dlpack__": lambda: probe.hold((plain,), 0),
        "__dlpack__ without version": lambda: probe.hold((old,), 0),
        "host memory": lambda: probe.hold((on_host,), probe.HOST),
        "a table": lambda: probe.hold((in_table,), 0),
        "a group": lambda: probe.hold(group, 0),
        "an export": lambda: x.__dlpack__(max_version=(1, 0)),
        "an export without version": lambda: x.__dlpack__(),
        "a request": lambda: x.ask(stream=5, dl_device=(GPU, 0)),
        "a device": lambda: x.__dlpack_device__(),
    }.items():
        good = 0  # in a row: the interpreter does without some allocations
        for number in range(1, 200):
            with balanced(f"{name}, allocation {number} fails"):
                plain.capsule = old.capsule = on_host.capsule = None
                for thing in (plain, old, in_table, on_host):
                    thing.asked.clear()
                result = error = None
                set_nomemory(number, number + 1)
                try:
                    result = call()
                except BaseException as raised:  # noqa: B902
                    error = raised.with_traceback(None)
                finally:
                    remove_mem_hooks()
                del result
                plain.capsule = old.capsule = on_host.capsule = None
            failed[name] += error is not None
            check(error is None or type(error) is MemoryError, f"{name}, allocation {number} fails: {error!r}")
            for thing, keywords in ((plain, {"max_version", "stream"}), (on_host, {"max_version"})):
                check(all(set(asked) == keywords for asked in thing.asked),
                      f"{name}, allocation {number} fails: asked with {thing.asked}")  # fmt: skip
            good = good + 1 if error is None else 0
            if good == 5:
                break
    print("failures: " + ", ".join(f"{name} {failed[name]}" for name in failed))


# --------------------------------------------------------------------------------- threads


def part_threads(options: argparse.Namespace) -> None:
    """The release of an array, and the deleter of a tensor, take no GIL."""
    del options
    current(7)
    table = probe.table(probe.MAJOR, probe.MINOR)
    in_table = tabled(table, SPEC)
    overlapped = 0
    for make in (lambda: Producer(SPEC), lambda: Old(SPEC, "dltensor"), lambda: in_table):
        with balanced("released by a thread while this one keeps the GIL"):
            for _ in range(50):
                held = probe.hold((make(), make(), make()), 0)
                check(probe.live() == 3, f"{probe.live()} live of 3")
                probe.elsewhere(held)
                del held
        with balanced("released by a thread while this one imports"):
            for _ in range(100):
                held = probe.hold(tuple(make() for _ in range(8)), 0)
                probe.begin(held)
                for _ in range(20):
                    take(make())
                    overlapped += probe.live() > 0
                probe.join()
                del held
    x = array(sync=NONE)
    before = sys.getrefcount(x)
    for versioned in (False, True):
        capsules = [x.__dlpack__(max_version=(1, 0)) if versioned else x.__dlpack__() for _ in range(100)]
        check(sys.getrefcount(x) == before + 100 and probe.live() == 100, "100 exports")
        for capsule in capsules:
            probe.consume(capsule, True)
        kept = sys.getrefcount(x) == before + 100 and probe.live() == 100
        check(kept or sys.version_info >= (3, 13), "deleters of threads drop no reference themselves")  # soon, since 3.13
        take(in_table)
        check(sys.getrefcount(x) == before and probe.live() == 0, "the next import drains")
        del capsules, capsule
    if np is not None:
        for _ in range(50):
            a = np.zeros(1000)
            gone = weakref.ref(a)
            held = probe.hold((Only(a),), probe.HOST)
            del a
            probe.begin(held)
            probe.join()
            check(gone() is not None or probe.live() == 1, "released, and not yet drained")
            del held
            probe.drain()
            check(gone() is None, "an array of NumPy that a thread released")
    print(f"{overlapped} imports met arrays that were still alive")


# ------------------------------------------------------------------------------- libraries


def part_libraries(options: argparse.Namespace) -> None:
    """Tensors that others made, through tables and methods that others wrote."""
    if np is None:
        print("skipped: no NumPy")
        return
    for name, call in (("tvm_ffi", with_tvm_ffi), ("torch", with_torch)):
        try:
            module = __import__(name)
        except ImportError as error:
            print(f"skipped: {name}, {error}")
            continue
        print(f"{name} {module.__version__}: {call(module, options)}")
    check(probe.live() == 0, f"{probe.live()} live")


def with_tvm_ffi(tvm_ffi: Any, options: argparse.Namespace) -> str:
    """Tensors of NumPy's memory, by __dlpack__ and by the table of the wrapper that the package tests with."""
    dice = random.Random(options.seed)
    wrapper = getattr(tvm_ffi.core, "DLTensorTestWrapper", None)
    has_table = wrapper is not None and hasattr(wrapper, TABLE)
    done: collections.Counter[str] = collections.Counter()
    for _ in range(options.count // 5):
        a = numpy_dlpack.random_array(dice)
        if a.dtype.kind == "c":  # tvm_ffi has no complex dtypes
            continue
        gone, wanted = weakref.ref(a), a.tobytes()
        tensor, error = attempt(lambda: tvm_ffi.from_dlpack(a))
        if error is not None:
            done["refused by tvm_ffi"] += 1
            continue
        ways = {"methods": tensor, "methods without version": OnlyOld(tensor)}
        if has_table:
            ways["table"] = wrapper(tensor)
        for way, thing in ways.items():
            held, error = attempt(lambda: probe.hold((thing,), probe.HOST))
            if not check(error is None, f"{way}: {a.__array_interface__}: {error!r}"):
                continue
            facts = probe.facts(held)[0]
            found = differences(a, facts, way != "methods without version")
            found = [text for text in found if not text.startswith("read_only")]  # which tvm_ffi does not keep
            check(not found, f"{way}: {a.__array_interface__}: {found}")
            check(view_of(facts).tobytes() == wanted, f"{way}: elements")
            probe.release(held)
            done[way] += 1
        held = probe.hold((ways["methods"],), probe.HOST)
        facts = probe.facts(held)[0]
        del a, tensor, ways, thing
        check(view_of(facts).tobytes() == wanted and gone() is not None, "elements after all else went")
        probe.release(held)
        del held
        gc.collect(0)
        probe.drain()
        check(gone() is None, "the memory stays")
    consumed = tvm_ffi_consumes(tvm_ffi, dice, options.count // 10)
    if not has_table:
        print("skipped: the table of tvm_ffi, which this version does not have")
    else:
        done["current stream"] = tvm_ffi_streams(tvm_ffi, wrapper)
    return ", ".join(f"{key} {value}" for key, value in done.items()) + f", exported to it {consumed}"


def tvm_ffi_consumes(tvm_ffi: Any, dice: random.Random, count: int) -> int:
    consumed = 0
    for _ in range(count):
        a = numpy_dlpack.random_array(dice)
        if a.dtype.kind == "c" or not a.flags.writeable:
            continue
        x = exported(a)
        tensor, error = attempt(lambda: tvm_ffi.from_dlpack(x))
        if not check(error is None, f"to tvm_ffi: {a.__array_interface__}: {error!r}"):
            continue
        same = tuple(tensor.shape) == a.shape and str(tensor.dtype) == a.dtype.name
        same = same and (a.size == 0 or tensor.data_ptr() == a.ctypes.data)
        steps = [step * a.itemsize for step in tensor.strides]
        same = same and numpy_dlpack.moving(a.shape, steps) == numpy_dlpack.moving(a.shape, a.strides)
        check(same, f"to tvm_ffi: {a.__array_interface__}: {tensor.shape} {tensor.strides} {tensor.dtype}")
        gone = weakref.ref(a)
        del a, x
        check(gone() is not None, "to tvm_ffi: the memory went")
        del tensor
        probe.drain()
        check(gone() is None, "to tvm_ffi: the memory stays")
        consumed += 1
    return consumed


def tvm_ffi_streams(tvm_ffi: Any, wrapper: Any) -> int:
    """Its current stream of a device, asked through its table about a tensor that claims to be there."""
    tensor = tvm_ffi.from_dlpack(array(sync=NONE, device=2))
    thing = wrapper(tensor)
    good = 0
    for stream, expected in ((None, 1), (0x7770, 0x7770)):
        if stream is None:
            facts, error = take(thing)
        else:
            with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 2), stream):
                facts, error = take(thing)
        said = error is None and (facts["sync"], facts["stream"], facts["device"]) == (STREAM, expected, 2)
        good += check(said and facts["data"] == ADDRESS, f"tvm_ffi, stream {stream}: {error!r} {facts}")
    del thing, tensor
    gc.collect(0)
    probe.drain()
    return good


def with_torch(torch: Any, options: argparse.Namespace) -> str:
    """Tensors of NumPy's memory, and back."""
    dice = random.Random(options.seed)
    ways: collections.Counter[str] = collections.Counter()
    has_table = hasattr(torch.Tensor, TABLE)
    for _ in range(options.count // 5):
        a = numpy_dlpack.random_array(dice)
        tensor, error = attempt(lambda: torch.from_numpy(a))
        if error is not None or not a.flags.writeable:  # negative strides, unsigned numbers
            continue
        for way, thing in (("table" if has_table else "whatever it has", tensor), ("methods", Only(tensor))):
            facts, error = take(thing, probe.HOST)
            if check(error is None, f"torch, {way}: {error!r}"):
                found = differences(a, facts, True)
                check(not found, f"torch, {way}: {a.__array_interface__}: {found}")
                ways[way] += 1
        back, error = attempt(lambda: torch.from_dlpack(exported(a)))
        if check(error is None, f"to torch: {a.__array_interface__}: {error!r}"):
            check(tuple(back.shape) == a.shape and back.numpy().tobytes() == a.tobytes(), f"to torch: {back}")
            ways["exported to it"] += 1
        del back
    facts, error = take(torch.zeros(3, dtype=torch.bfloat16), probe.HOST)
    check(error is None and facts["dtype"] == "bfloat16", f"torch.bfloat16: {error!r}")
    return ", ".join(f"{key} {value}" for key, value in ways.items())


# --------------------------------------------------------------------------------- running

SUITE = parts.Suite(globals(), "cai_probe_dlpack", ("dlpack.c",), ("memory", "no_memory", "libraries", "references"), seconds=600)


def why_skipped(options: argparse.Namespace) -> str | None:
    if options.dlpack is None:
        return "no --dlpack"
    header = options.dlpack / "dlpack" / "dlpack.h"
    if not header.exists():
        return f"no {header}"
    return None if re.search(r"\bDLPackExchangeAPI\b", header.read_text()) else f"{header} has no DLPackExchangeAPI"


def main() -> int:
    parser = SUITE.parser()
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    parser.add_argument("--count", type=int, default=5000, help="random arrays of a part")
    parser.add_argument("--rounds", type=int, default=100000, help="rounds of the part `memory`")
    options = parser.parse_args()
    return SUITE.main(options, why_skipped(options), ("-isystem", str(options.dlpack)))


if __name__ == "__main__":
    raise SystemExit(main())
