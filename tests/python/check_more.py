#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_python.h: buffers, rows of a descr, narrow formats, releases after a stream, what is remembered of types.

    check_more.py [--inspect build/cai_inspect] [--cc cc] [--count 5000] [--rounds 100000] [--sanitize]

more.c is built in a temporary folder together with the simulated CUDA, and each part runs in a process of its own:

    formats   formats of the buffer protocol against what NumPy reads in them
    arrays    random arrays of NumPy behind a memoryview
    objects   what has a buffer in Python's library
    held      a buffer is held until the array is released, and let go of on every failing path
    fields    rows of a descr against NumPy's dtypes and cai_inspect, and what is left when all that they came from is gone
    narrow    bfloat16 and float8 by the exporter's dtype
    after     arrays that are kept until a stream of the simulated CUDA has passed
    streams   __cuda_stream__ and back
    types     what is remembered of a type, and what must not be
    memory    many rounds of each

With --sanitize the module is built with -fsanitize=address,undefined, too, and runs again under it. Exit status 0:
all is right; 1: not; 77: no compiler, or no Python.h.
"""

from __future__ import annotations

import argparse
import array
import collections
import copy
import ctypes
import gc
import io
import itertools
import mmap
import pathlib
import pickle
import random
import re
import struct
import sys
import tempfile
import warnings
import weakref
from typing import Any, Callable, Iterator

import check_python as base
import inspect_io
import parts
from check_python import ADDRESS, CUDA, HOST, Building, Exporter, Own, attempt, plus, raising, take
from parts import check

try:
    import numpy as np

    import numpy_arrays
except ImportError:
    np = None

HERE = pathlib.Path(__file__).resolve().parent
REFUSALS = (BufferError, TypeError, ValueError)
probe: Any = None  # the module, in the process of a part


def take_error(thing: Any, flags: int) -> BaseException | None:
    return take(thing, flags)[1]


def same_dtype(a: str, b: str) -> bool:
    return inspect_io.dtype_of(a) is not None and inspect_io.dtype_of(a) == inspect_io.dtype_of(b)


# --------------------------------------------------------------------------------- formats

LETTERS = "?cbBhHiIlLqQnNefdgFDGPOspwuxtzZ&X"
ORDERS = ("", "@", "=", "<", ">", "!", "^")
COUNTS = ("", "1", "2", "5", "01", "0", "1000000000", "99999999999999999999")
SPECIAL = (
    "", " ", " i", "i ", "ii", "i d", "<i>i", "<<i", "<>i", "<", "Z", "Zi", "ZZd", "dZ", "Z1d", "1Zd", "2Zf", "(2,3)i", "(2)i",
    "(2)3s", "T{i:a:}", "T{<i:a:>d:b:}", "T{<i:a:<h:b:2x}", "T{}", "i:a:", ":a:", "i:", "X{}", "&i", "1", "5", "-1s", "+1s",
    "i\x80", "\xff", "i" * 1000, "9" * 1000, "s5", "5s5s", "é", "%s%n", "3x", "<2x", "w3", "3ww",
)  # fmt: skip

# What NumPy reads and cai_python.h does not, and why
NUMPY_ONLY = {
    "a pointer to an object": lambda f: f.strip("@=<>!^") in ("O", "1O", "01O"),
    "bytes of no meaning": lambda f: f.endswith("x") and "T" not in f,
    "a sub-array, which no typestr has": lambda f: f[:1] == "(" or count_of(f) not in (None, 1),
    "a record": lambda f: f[:1] == "T" or ":" in f or len(f.strip("@=<>!^0123456789Z")) > 1,
    "native sizes without alignment, which the struct module does not know": lambda f: f[:1] == "^",
    "a text of more than 999,999,999 bytes": lambda f: f.strip("@=<>!^") == "1000000000s",
}
# What NumPy does not read: the kind that the struct module means by it; and complex numbers of two float16 (R36)
OURS_ONLY = {o + c + letter: kind for o in ("", "@") for c in ("", "1", "01") for letter, kind in (("n", "i"), ("N", "u"))}
OURS_ONLY.update({order + "Ze": "c" for order in ORDERS if order != "^"})


def count_of(text: str) -> int | None:
    """The number before a letter that is no text."""
    digits = "".join(itertools.takewhile(str.isdigit, text.lstrip("@=<>!^")))
    return int(digits) if digits and text[-1:] not in "sw" else None


def numpy_reads(buffer: Any) -> Any:
    """The dtype that NumPy finds in a buffer, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns of sizes that contradict the format, and goes on
        made, error = attempt(lambda: np.asarray(memoryview(buffer)))
    return None if error is not None else made.dtype


def buffer_of(text: str, itemsize: int, **more: Any) -> Any:
    return probe.Buffer(bytes(range(64)), format=text.encode("latin-1"), itemsize=itemsize, read_only=True, **more)


def size_of(text: str) -> int:
    """The size that a format has in NumPy, else in the struct module, else 8."""
    if text.endswith("Ze"):
        return 4
    size, error = attempt(lambda: np._core._internal._dtype_from_pep3118(text).itemsize)
    if error is not None:
        size, error = attempt(lambda: struct.calcsize(text))
    return size if error is None and 0 < size <= 1 << 40 else 8


def check_format(text: str, counts: collections.Counter[str]) -> None:
    size = size_of(text)
    shape = (64 // size,) if size <= 64 else (0,)
    buffer = buffer_of(text, size, shape=shape)
    known = numpy_reads(buffer)
    facts, error = take(buffer, probe.HOST)
    if facts is None:
        counts["refused by both" if known is None else "refused here"] += 1
        check(isinstance(error, REFUSALS), f"{text!r}: {error!r}")
        if text.isascii() and len(text) < 100:
            check(f"'{text}'" in str(error) or "typestr: '" in str(error), f"{text!r} is not named: {error!r}")
        if known is not None:
            why = [name for name, is_one in NUMPY_ONLY.items() if is_one(text)]
            counts.update(why[:1])
            check(bool(why), f"{text!r}: NumPy reads {known.str}; {error!r}")
    elif known is None:
        counts["read here only"] += 1
        order = ">" if text[:1] in (">", "!") or (sys.byteorder == "big" and text[:1] != "<") else "<"
        expected = f"{order}{OURS_ONLY.get(text, '?')}{size}"
        check(text in OURS_ONLY and same_dtype(facts["typestr"], expected), f"{text!r}: NumPy refuses; {facts['typestr']}")
    else:
        counts["read by both"] += 1
        good = same_dtype(facts["typestr"], known.str) and facts["shape"] == list(shape) and facts["memory"] == 1
        check(good, f"{text!r}: {facts}; NumPy: {known.str}")
    for lie in {1, 2, 3, 4, 8, 16, 32, 0, -size, 2 * size} - {size}:
        error = take_error(buffer_of(text, lie, shape=(1,)), probe.HOST)
        check(isinstance(error, REFUSALS), f"{text!r} with items of {lie} bytes: {error!r}")
    check(balanced(buffer), f"{text!r}: buffers {buffer.counts()[:2]}")


def part_formats(options: argparse.Namespace) -> None:
    del options
    if np is None:
        print("skipped: no NumPy")
        return
    counts: collections.Counter[str] = collections.Counter()
    texts = [order + count + letter for order in ("", "<") for count in COUNTS for letter in LETTERS]
    texts += [order + count + letter for order in ORDERS for count in ("", "1", "2") for letter in LETTERS]
    texts += [order + "Z" + letter for order in ORDERS for letter in "efdgi"]
    texts += [order + special for special in SPECIAL for order in ("", "<")]
    for text in dict.fromkeys(texts):
        check_format(text.replace("é", "\xe9"), counts)
    for why in NUMPY_ONLY:
        check(counts[why] > 0, f"nothing that NumPy reads is refused as {why}")
    bytes_of_none = probe.Buffer(b"abc", read_only=True, shape=(3,))
    facts, error = take(bytes_of_none, probe.HOST)
    check(error is None and facts["typestr"] == "|u1", f"no format: {facts or error!r}")
    facts, error = take(probe.Buffer(bytes(8), itemsize=4, shape=(2,)), probe.HOST)
    check(isinstance(error, REFUSALS), f"no format, and items of 4 bytes: {facts or error!r}")
    print(", ".join(f"{key} {counts[key]}" for key in sorted(counts)))


# ---------------------------------------------------------------------------------- arrays


def view_differences(a: Any, facts: dict[str, Any]) -> list[str]:
    """What an import of a memoryview of an array says otherwise than the array."""
    overlapping = numpy_arrays.self_overlap(a)
    found = numpy_arrays.array_differences(a, overlapping, facts)
    found = [text for text in found if not text.startswith(("fields", "strides: "))]
    if facts["memory"] != 1 or facts["fields"] is not None or len(facts["strides"]) != a.ndim:
        found.append(f"memory {facts['memory']}, fields {facts['fields']}, strides {facts['strides']}")
    return found


def refused_view(a: Any, text: str) -> str | None:
    """Why a memoryview of NumPy has no typestr."""
    if a.dtype.names is not None:
        return "records"
    if a.dtype.kind == "V":
        return "bytes of no meaning"
    return "long doubles that are not aligned" if text[:1] == "^" and text[-1] == "g" else None


def part_arrays(options: argparse.Namespace) -> None:
    """Random arrays behind a memoryview."""
    if np is None:
        print("skipped: no NumPy")
        return
    rng = random.Random(options.seed)
    counts: collections.Counter[str] = collections.Counter()
    while counts["memoryviews"] < options.count:
        a = numpy_arrays.random_array(rng)
        view, error = attempt(lambda: memoryview(a))
        if error is not None:
            counts["without a buffer"] += 1
            check(type(error) is ValueError and "buffer" in str(error), f"{a.dtype}: {error!r}")  # NumPy's own word
            continue
        counts["memoryviews"] += 1
        facts, error = take(view, probe.HOST)
        why = refused_view(a, view.format)
        if why:
            counts[why] += 1
            check(isinstance(error, BufferError), f"{view.format!r}, {a.dtype}: {error!r}")
            continue
        if check(error is None, f"{view.format!r}, {a.__array_interface__}: {error!r}"):
            found = view_differences(a, facts)
            check(not found, f"{view.format!r}, {a.__array_interface__}: {found}")
        counts.update(numpy_arrays.classes_of(a, numpy_arrays.self_overlap(a)))
        view.release()  # which fails while it is held
    check(options.count < 1000 or counts["swapped"] > options.count // 50, f"too few swapped arrays: {counts}")
    print(", ".join(f"{key} {counts[key]}" for key in sorted(counts)))


# --------------------------------------------------------------------------------- objects


class RaisingInterface(bytearray):
    """A buffer whose attribute says that there is none."""

    @property
    def __array_interface__(self) -> Any:
        raise AttributeError("none")


def ctypes_objects() -> Iterator[tuple[str, Any]]:
    for kind in (ctypes.c_bool, ctypes.c_char, ctypes.c_byte, ctypes.c_ubyte, ctypes.c_short, ctypes.c_ushort, ctypes.c_int,
                 ctypes.c_uint, ctypes.c_long, ctypes.c_ulong, ctypes.c_longlong, ctypes.c_ulonglong, ctypes.c_size_t,
                 ctypes.c_float, ctypes.c_double):  # fmt: skip
        yield f"{kind.__name__}", kind()
        yield f"{kind.__name__}[3]", (kind * 3)()
        yield f"{kind.__name__}[2][3][4]", (kind * 4 * 3 * 2)()
        for order in ("__ctype_be__", "__ctype_le__"):
            if hasattr(kind, order) and ctypes.sizeof(kind) > 1:
                yield f"{kind.__name__}.{order}[2][3]", (getattr(kind, order) * 3 * 2)()
    yield "c_int[0]", (ctypes.c_int * 0)()
    yield "c_double[3][0][2]", (ctypes.c_double * 2 * 0 * 3)()


def memoryviews() -> Iterator[tuple[str, Any]]:
    data = bytearray(range(240))
    flat = memoryview(data)
    yield "a memoryview", flat
    yield "a read-only memoryview", flat.toreadonly()
    yield "a memoryview of bytes", memoryview(bytes(data))
    for code in "bBhHiIlLqQnNfd?c":
        size = struct.calcsize(code)
        yield f"cast to {code}", flat[: 24 * size].cast(code)
        yield f"cast to 2 x 3 x 4 {code}", flat[: 24 * size].cast(code, (2, 3, 4))
    for step in (2, 3, -1, -2, -7, 500, -500):
        yield f"bytes by {step}", flat[::step]
        yield f"ints by {step}", flat.cast("i")[5:40:step]
    yield "an empty slice", flat[3:3]
    yield "an empty slice, backwards", flat[3:9:-1]
    yield "no dimensions", flat[:8].cast("q", ())
    if np is not None:
        cube = np.arange(60, dtype="<i2").reshape(3, 4, 5)
        yield "slices of an array", memoryview(cube[::-1, ::2, 1:4])
        yield "a transposed array", memoryview(cube.transpose(2, 0, 1))
        yield "an array in Fortran's order", memoryview(np.asfortranarray(cube))
        yield "a broadcast array", memoryview(np.broadcast_to(cube[0, 0], (7, 5)))
        yield "64 dimensions", memoryview(np.zeros((1,) * 63 + (2,), dtype="<f4"))


def library_objects() -> Iterator[tuple[str, Any]]:
    yield "bytes", b"some bytes"
    yield "no bytes", b""
    yield "a bytearray", bytearray(7)
    yield "no bytearray", bytearray()
    yield "a bytearray whose attribute raises AttributeError", RaisingInterface(5)
    for code in array.array("b").typecode + "".join(c for c in array.typecodes if c != "b"):
        yield f"array.array('{code}')", array.array(code, "abc" if code in "uw" else [1, 2, 3])
        yield f"no array.array('{code}')", array.array(code)
    yield "a mapping", mmap.mmap(-1, 4096)
    yield "a PickleBuffer", pickle.PickleBuffer(bytearray(9))
    yield "a buffer of a BytesIO", io.BytesIO(b"12345").getbuffer()
    if np is not None:
        yield "a read-only array", memoryview(np.broadcast_to(np.float32(1), (2, 2)))
        yield "a scalar", memoryview(np.float64(1.5))


def part_objects(options: argparse.Namespace) -> None:
    """Whatever NumPy says of the memoryview, flag by flag."""
    del options
    if np is None:
        print("skipped: no NumPy")
        return
    count = 0
    every = probe.HOST | probe.FIELDS | probe.NARROW | probe.MASK
    for name, thing in itertools.chain(library_objects(), memoryviews(), ctypes_objects()):
        with memoryview(thing) as view:
            a = np.asarray(view)
            for flags in (probe.HOST, every, probe.HOST | probe.LENIENT):
                facts, error = take(thing, flags)
                if check(error is None, f"{name}: {error!r}"):
                    found = view_differences(a, facts)
                    check(not found, f"{name}: {found}")
                    check(facts["read_only"] == view.readonly, f"{name}: read_only {facts['read_only']}")
            del a
        error = take_error(thing, every & ~probe.HOST)
        check(type(error) is TypeError, f"{name}, without CAI_PYTHON_HOST: {error!r}")
        count += 1
    with tempfile.TemporaryFile() as file:
        file.write(bytes(100))
        file.flush()
        with mmap.mmap(file.fileno(), 100, access=mmap.ACCESS_READ) as mapping:
            facts, error = take(mapping, probe.HOST)
            check(error is None and facts["read_only"] and facts["shape"] == [100], f"a read-only mapping: {facts or error!r}")
    for kind in (object, int, str, list, type):
        error = take_error(kind("1") if kind is str else kind() if kind is not type else bytes, probe.HOST)
        check(type(error) is TypeError, f"{kind.__name__}: {error!r}")
    print(f"{count} objects with buffers")


# ------------------------------------------------------------------------------------ held


def lying_buffers() -> Iterator[tuple[str, Any, Any]]:
    """Name, buffer, and whether it must be accepted (None: either, but nothing else)."""
    data, two = bytes(range(128)), {"format": b"h", "itemsize": 2}

    def made(**what: Any) -> Any:
        return probe.Buffer(data, **{"read_only": True, **what})

    yield "plain", made(shape=(128,)), True
    yield "strides are NULL", made(shape=(4, 5), **two), True
    yield "negative strides", made(shape=(4, 5), strides=(10, -2), offset=8, **two), True
    yield "no dimensions, no shape", made(ndim=0, length=1), True
    yield "suboffsets that lead nowhere", made(shape=(4, 5), strides=(10, 2), suboffsets=(-1, -1), **two), True
    yield "suboffsets", made(shape=(4, 5), strides=(10, 2), suboffsets=(0, -1), **two), False
    yield "a suboffset at the end", made(shape=(4, 5), strides=(10, 2), suboffsets=(-1, 8), **two), False
    yield "suboffsets, on request only", made(shape=(4, 5), strides=(10, 2), suboffsets=(0, -1), polite=True, **two), False
    yield "64 dimensions", made(shape=(1,) * 64, length=1), True
    yield "64 dimensions and strides", made(shape=(1,) * 64, strides=(1,) * 64, length=1), True
    for ndim in (65, 66, 79, 1000, 2**20, 2**31 - 1, -1, -(2**31)):
        yield f"{ndim} dimensions", made(shape=(1,) * 64, ndim=ndim), False
        rows = {"shape": (1,) * 64, "strides": (1,) * 64, "suboffsets": (-1,) * 64}
        yield f"{ndim} dimensions and all rows", made(**rows, ndim=ndim), False
    yield "no shape", made(ndim=1), False
    yield "no shape, two dimensions", made(ndim=2, **two), False
    yield "no shape, but strides", made(ndim=1, strides=(1,)), False
    yield "a negative extent", made(shape=(-1,)), False
    yield "a negative extent beside 0", made(shape=(0, -1)), False
    yield "too large", made(shape=(2**62, 4)), False
    yield "too large by its strides", made(shape=(2, 2), strides=(2**62, 2**62), **two), False
    yield "strides of INT64_MIN", made(shape=(2, 2), strides=(-(2**63), 2), **two), False
    yield "no memory", made(shape=(3,), null=True), False
    yield "no memory, but empty", made(shape=(0,), null=True, length=0), True
    yield "empty, and says that it has bytes", made(shape=(0,), length=128), True
    yield "strides of INT64_MIN over nothing", made(shape=(0, 2), strides=(-(2**63), 2), length=0, **two), None
    yield "a length of 0", made(shape=(16,), length=0), None
    yield "a length that is too large", made(shape=(16,), length=10**9), None
    yield "a negative length", made(shape=(16,), length=-1), None
    yield "items of no bytes", made(shape=(16,), itemsize=0), False
    yield "items of -1 bytes", made(shape=(16,), itemsize=-1), False
    yield "items of 2^40 bytes", made(shape=(16,), itemsize=2**40), False
    yield "a format that names more than its items", made(shape=(16,), format=b"d", itemsize=4), False
    yield "a format that names less", made(shape=(16,), format=b"h", itemsize=4), False
    yield "text that is larger than its items", made(shape=(16,), format=b"5s", itemsize=4), False


def raising_hooks() -> Iterator[tuple[str, BaseException]]:
    for kind in (BufferError, ValueError, TypeError, AttributeError, Own, KeyboardInterrupt, MemoryError, SystemExit):
        yield kind.__name__, kind("by the buffer")


def balanced(buffer: Any) -> bool:
    given, returned = buffer.counts()[:2]
    return given == returned and probe.live() == 0


def check_lies() -> int:
    count = 0
    every = probe.LENIENT | probe.MASK | probe.FIELDS | probe.NARROW
    for name, buffer, expected in lying_buffers():
        for flags in (probe.HOST, probe.HOST | probe.BORROW, probe.HOST | every):
            before = sys.getrefcount(buffer)
            facts, error = take(buffer, flags)
            count += 1
            if facts is None:
                check(not expected and isinstance(error, REFUSALS), f"{name}: {error!r}")
            else:
                check(expected is not False and facts["memory"] == 1 and facts["read_only"], f"{name}: accepted, {facts}")
            given, returned, asked, _ = buffer.counts()
            check(balanced(buffer), f"{name}: {given} buffers, {returned} returned, {probe.live()} live")
            check(not asked & 1, f"{name}: a writable buffer was asked for")
            del error
            check(sys.getrefcount(buffer) == before, f"{name}: references")
    facts, error = take(probe.Buffer(bytes(24), shape=(2, 3), strides=(12, 4), format=b"<f", itemsize=4), probe.HOST)
    check(error is None and facts["strides"] == [12, 4] and not facts["read_only"], f"a writable one: {facts or error!r}")
    return count


def check_raising() -> None:
    for name, error in raising_hooks():
        buffer = probe.Buffer(b"abc", shape=(3,), hook=raising(error))
        got = take_error(buffer, probe.HOST)
        check(got is error, f"a buffer raises {name}: {got!r}")
        check(balanced(buffer) and buffer.counts()[0] == 0, f"a buffer raises {name}: {buffer.counts()}")
    inner = probe.Buffer(b"abc", shape=(3,))
    kept: list[Any] = []

    def again() -> None:
        take(inner, probe.HOST)
        kept.append(probe.hold((inner, bytearray(3)), probe.HOST))
        probe.let_go(kept[0])
        attempt(lambda: take(object(), probe.HOST))

    buffer = probe.Buffer(b"abc", shape=(3,), hook=again)
    facts, error = take(buffer, probe.HOST)
    check(error is None and facts["shape"] == [3], f"a buffer that imports: {facts or error!r}")
    kept.clear()
    probe.drain()
    check(balanced(buffer) and balanced(inner), f"a buffer that imports: {buffer.counts()}, {inner.counts()}")


def check_resizing() -> None:
    """A bytearray cannot be resized while its buffer is out."""
    for flags in (probe.HOST, probe.HOST | probe.BORROW):
        for way in ("release", "capsule", "let_go", "thread", "failed group", "failed import"):
            data = bytearray(10)
            if way.startswith("failed"):
                bad = Building(raising(Own())) if way == "failed group" else probe.Buffer(b"", format=b"T{}", shape=(1,))
                error = attempt(lambda: probe.hold((data, bad), flags))[1]
                check(isinstance(error, (Own, *REFUSALS)), f"{way}: {error!r}")
            else:
                held = probe.hold((data,), flags)
                check(type(attempt(lambda: data.extend(b"x"))[1]) is BufferError, f"{way}, {flags}: it could be resized")
                check(probe.owned(held) == [True], f"{way}, {flags}: nothing returns the buffer")
                if way == "release":
                    probe.release(held)
                elif way == "let_go":
                    probe.let_go(held)
                elif way == "thread":
                    probe.begin(held, 1)
                    probe.join()
                if way in ("let_go", "thread"):
                    check(type(attempt(lambda: data.extend(b"x"))[1]) is BufferError, f"{way}: returned without the GIL")
                del held
                probe.drain()
            check(attempt(lambda: data.extend(b"x"))[1] is None, f"{way}, {flags}: it cannot be resized any more")
            check(probe.live() == 0, f"{way}: {probe.live()} live")


def check_keeping() -> None:
    """The buffer keeps its object, and nothing of its description is needed later."""
    buffer = probe.Buffer(bytes(range(48)), format=b"<h", itemsize=2, shape=(4, 6), strides=(12, 2))
    address = buffer.counts()[3]
    held = probe.hold((buffer, buffer), probe.HOST)
    before = probe.facts(held)
    buffer.spoil()
    check(probe.facts(held) == before and before[0]["data"] == address, f"{before[0]}, then {probe.facts(held)[0]}")
    check(buffer.counts()[:2] == (2, 0), f"two arrays: {buffer.counts()}")
    del buffer
    gc.collect()
    check(ctypes.string_at(address, 48) == bytes(range(48)), "the memory went with the last name of its object")
    probe.release(held)
    check(probe.live() == 0, f"{probe.live()} live")
    groups = [probe.Buffer(bytes(8), shape=(8,)) for _ in range(30)]
    for k in range(30):
        group = tuple(groups[:k]) + (probe.Buffer(bytes(8), shape=(8,), format=b"T{}"),) + tuple(groups[k:])
        error = attempt(lambda: probe.hold(group, probe.HOST))[1]
        check(isinstance(error, REFUSALS) and all(balanced(b) for b in group), f"a group that fails at {k}: {error!r}")


def check_dictionaries_first() -> None:
    """A buffer is asked for last, and not at all without CAI_PYTHON_HOST."""
    for name, memory in ((HOST, 1), (CUDA, 0)):
        kind = type("Both", (probe.Buffer,), {name: plus()})
        both = kind(bytes(8), shape=(8,))
        facts, error = take(both, probe.HOST)
        good = error is None and facts["data"] == ADDRESS and facts["memory"] == memory
        check(good and both.counts()[:2] == (0, 0), f"a buffer with {name}: {facts or error!r}, {both.counts()}")
    alone = probe.Buffer(bytes(8), shape=(8,))
    error = take_error(alone, probe.FIELDS | probe.NARROW | probe.MASK | probe.LENIENT | probe.BORROW)
    check(type(error) is TypeError and alone.counts()[0] == 0, f"without CAI_PYTHON_HOST: {error!r}, {alone.counts()}")


def part_held(options: argparse.Namespace) -> None:
    del options
    check_dictionaries_first()
    count = check_lies()
    check_raising()
    check_resizing()
    check_keeping()
    print(f"{count} buffers that may lie")


# ---------------------------------------------------------------------------------- fields

NAMES = ("x", "y", "a", "f0", "grüße", "имя", "名前", "𝛼", "it's", '"\\', "tab\t", "é" * 40, "n" * 300, "\x7f", "with blanks")
SIMPLE = "b1 i1 u1 <i2 >i2 <i4 >u4 <i8 <f2 <f4 >f8 <c8 >c16 S3 S17 <U2 >U5 V1 V7 <M8[ns] >m8[25s]".split()


def random_record(rng: random.Random, depth: int = 0) -> Any:
    """A random record, whose fields lie in the order of memory."""
    names = rng.sample(NAMES, rng.randrange(1, 6))
    formats, offsets, titles, end = [], [], [], 0
    for number, _ in enumerate(names):
        nested = depth < 4 and rng.random() < 0.3
        inner = random_record(rng, depth + 1) if nested else np.dtype(rng.choice(SIMPLE))
        if rng.random() < 0.3:
            shape = [rng.choice((1, 2, 3)) if rng.random() < 0.95 else 0 for _ in range(rng.randrange(1, 4))]
            inner = np.dtype((inner, tuple(shape)))
        end += rng.choice((0, 0, 0, 1, 3, 8))
        formats.append(inner)
        offsets.append(end)
        titles.append(f"Title № {number} of {depth}" if rng.random() < 0.2 else None)
        end += inner.itemsize
    made = {"names": names, "formats": formats, "offsets": offsets, "itemsize": max(1, end + rng.choice((0, 0, 0, 5)))}
    return np.dtype({**made, "titles": titles} if any(titles) else made)


def anew(value: Any) -> Any:
    """A copy that shares no text with it."""
    if isinstance(value, str):
        return value.encode().decode() if len(value) > 1 else value
    if isinstance(value, (tuple, list)):
        return type(value)(anew(item) for item in value)
    if isinstance(value, dict):
        return {anew(key): anew(item) for key, item in value.items()}
    return value


def spoil(table: dict[str, Any]) -> None:
    """Takes apart all that a dictionary has."""
    descr = table.get("descr")
    if isinstance(descr, list):
        for row in descr:
            if isinstance(row, tuple) and len(row) > 1 and isinstance(row[1], list):
                row[1].clear()
        descr.clear()
    table.clear()


def rubbish(rng: random.Random) -> list[Any]:
    """New objects where others were."""
    return [bytes([rng.randrange(256)]) * rng.choice((8, 16, 24, 40, 72, 120, 300, 900)) for _ in range(200)]


def kept_rows(table: dict[str, Any], flags: int, rng: random.Random) -> tuple[Any, Any]:
    """The rows of an array at once, and when all that they came from is gone."""
    table = anew(table)
    exporter = Exporter(table, HOST if flags & probe.HOST else CUDA)
    held = probe.hold((exporter,), flags)
    first = copy.deepcopy(probe.fields(held, 0))
    spoil(table)
    if not flags & probe.BORROW:
        del exporter
    del table
    if rng.random() < 0.05:
        gc.collect()
    trash = rubbish(rng)
    last, error = attempt(lambda: probe.fields(held, 0))
    del trash
    probe.release(held)
    return first, last if error is None else error


def check_dtypes(options: argparse.Namespace, rng: random.Random) -> int:
    tables, rows_of = [], []
    for _ in range(max(50, options.count // 5)):
        dtype = rng.choice(numpy_arrays.STRUCTURED) if rng.random() < 0.2 else random_record(rng)
        a = np.zeros(rng.choice(((), (2,), (2, 3))), dtype)
        table = {**a.__array_interface__, "version": 3}
        for flags in (probe.FIELDS, probe.FIELDS | probe.HOST, probe.FIELDS | probe.BORROW, probe.FIELDS | probe.MASK):
            rows, later = kept_rows(table, flags, rng)
            found = numpy_arrays.field_differences(dtype, rows)
            check(not found, f"{dtype}: {found}")
            check(later == rows, f"{dtype}: {rows}\n    later: {later!r}")
        children = collections.Counter(row["parent"] for row in rows)
        counted = all(row["children"] == children[number] and row["reserved"] == 0 for number, row in enumerate(rows))
        check(counted, f"{dtype}: children {rows}")
        tables.append(table)
        rows_of.append(rows)
    if not options.inspect:
        print("skipped: what cai_inspect says, which needs --inspect")
        return len(tables)
    for table, rows, answer in zip(tables, rows_of, inspect_io.inspect(options.inspect, [repr(table) for table in tables])):
        keys = ("name", "title", "offset", "nbytes", "shape", "parent", "typestr")
        mine = [{key: row[key] for key in keys} for row in rows]
        its = [{key: row[key] for key in keys} for row in answer["fields"] or []]
        check(mine == its, f"{table}: {mine}\n    cai_inspect: {its}")
    return len(tables)


def check_other_descrs(rng: random.Random) -> None:
    none = (plus(), plus(descr=None), plus(descr=[("", "<f4")]))
    for table in none:
        held = probe.hold((Exporter(table),), probe.FIELDS)
        rows = probe.fields(held, 0)
        check(not rows or [row["name"] for row in rows] == [""], f"{table}: {rows}")
        probe.release(held)
    record = plus(typestr="|V4", descr=[("a", "<i2"), ("b", "<i2")])
    held = probe.hold((Exporter(record),), 0)
    check(probe.fields(held, 0) is None, "rows that nobody asked for")
    probe.release(held)
    most = plus(typestr="|V4096", descr=[(f"f{i}", "|i1") for i in range(4096)])
    rows, later = kept_rows(most, probe.FIELDS, rng)
    check(rows == later and [row["name"] for row in rows] == [f"f{i}" for i in range(4096)], "4096 fields")
    for name, table in (
        ("4097 fields", plus(typestr="|V4097", descr=[(f"f{i}", "|i1") for i in range(4097)])),
        ("a wrong sum", plus(typestr="|V5", descr=record["descr"])),
        ("a name twice", plus(typestr="|V4", descr=[("a", "<i2"), ("a", "<i2")])),
        ("a name that is no text", plus(typestr="|V4", descr=[("\ud800", "<i2"), ("b", "<i2")])),
        ("a descr that is a dictionary", plus(descr={"a": "<f4"})),
    ):
        with_rows, without = take_error(Exporter(table), probe.FIELDS), take_error(Exporter(table), 0)
        good = with_rows is not None and type(with_rows) is type(without) and str(with_rows) == str(without)
        check(good, f"{name}: {with_rows!r}; without rows {without!r}")
    lenient = plus(typestr="|V4", descr=(("a", "<i2"), ("b", "|i1", 2)))
    rows, later = kept_rows(lenient, probe.FIELDS | probe.LENIENT, rng)
    check(rows == later and [row["shape"] for row in rows] == [[], [2]], f"lenient: {rows}")
    masked = plus(typestr="|V4", descr=anew(record["descr"]), mask=Exporter(plus(typestr="|V4", descr=anew(record["descr"]))))
    rows, later = kept_rows(masked, probe.FIELDS | probe.MASK, rng)
    check(rows == later and len(rows) == 2, f"with a mask: {rows}")
    facts, error = take(Exporter(masked), probe.FIELDS | probe.MASK)
    check(error is None and facts["mask"]["fields"] is None, f"with a mask: {facts or error!r}")


def part_fields(options: argparse.Namespace) -> None:
    if np is None:
        print("skipped: no NumPy")
        return
    rng = random.Random(options.seed)
    check_other_descrs(rng)
    count = check_dtypes(options, rng)
    check(probe.live() == 0, f"{probe.live()} live")
    print(f"{count} records, each in four ways")


# ---------------------------------------------------------------------------------- narrow


class Named:
    """A dtype as NumPy's: it has a name."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def __str__(self) -> str:
        return "a dtype"


class Spoken:
    """A dtype as PyTorch's: only its str says what it is."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def __str__(self) -> Any:
        return self.text


class Typed(Exporter):
    """An exporter with a dtype."""

    def __init__(self, table: Any, dtype: Any, name: str = CUDA) -> None:
        super().__init__(table, name)
        self.dtype = dtype


class Asked:
    """An exporter that counts how often it is asked for its dtype."""

    asked = 0

    def __init__(self, table: Any, call: Callable[[], Any]) -> None:
        self.__cuda_array_interface__, self.call = table, call

    @property
    def dtype(self) -> Any:
        type(self).asked += 1
        return self.call()


def without_dtype(facts: dict[str, Any] | None) -> Any:
    return {key: value for key, value in (facts or {}).items() if key not in ("dtype", "typestr", "aligned")}


def dtypes_that_say(name: str) -> Iterator[tuple[str, Any]]:
    yield "NumPy", Named(name)
    yield "PyTorch", Spoken("torch." + name)
    yield "a bare str", Spoken(name)
    yield "a class", type(name, (), {})
    yield "text", name


def check_narrow(thing: Any, expected: str, text: str) -> None:
    """An import with the flag, against one without it."""
    plain, narrow = take(thing, 0)[0], take(thing, probe.NARROW)
    if not check(narrow[1] is None and plain is not None, f"{text}: {narrow[1]!r}"):
        return
    check(narrow[0]["dtype"] == expected, f"{text}: {narrow[0]['dtype']}, not {expected}")
    check(without_dtype(narrow[0]) == without_dtype(plain), f"{text}: {narrow[0]}\n    without the flag: {plain}")
    flags = [probe.flags(probe.hold((thing,), flag), 0) & ~probe.ALIGNED for flag in (0, probe.NARROW)]
    check(flags[0] == flags[1], f"{text}: flags {flags[1]:#x}, without the flag {flags[0]:#x}")


def check_names() -> int:
    count = 0
    for name, size in probe.narrow():
        if size == 3:  # float6_e2m3fn_x4: no library has a dtype of that name
            check_narrow(Typed(plus(typestr="|V3"), Named(name)), "void", f"|V3, {name}")
            continue
        for kind, dtype in dtypes_that_say(name):
            for typestr in (f"<V{size}", f"|V{size}", f"<u{size}") + (("<f2",) if size == 2 else ()):
                check_narrow(Typed(plus(typestr=typestr), dtype), name, f"{typestr}, {kind}, {name}")
                count += 1
            for other in "|V1 <V2 |u1 <u2 <f2 <V3 <V4 |V8 <f4 <u4 <i4 |S1 |S2 <U1 |b1 |i1 <i2".split():
                if other[2:] == str(size) and other[1] in "Vuf":
                    continue
                before = take(Typed(plus(typestr=other), dtype), 0)[0]["dtype"]
                check_narrow(Typed(plus(typestr=other), dtype), before, f"{other}, {kind}, {name}")
                count += 1
        swapped, error = take(Typed(plus(typestr=f">V{size}"), Named(name)), probe.NARROW)
        kept = "void" if size == 2 else name  # there is no bfloat16 of the other byte order, and a byte has none
        good = error is None and swapped["dtype"] == kept and not swapped["byte_swapped"]
        check(good, f">V{size} and {name}: {(swapped or {}).get('dtype')}, {error!r}")
        without, error = take(Typed(plus(typestr=f"V{size}"), Named(name)), probe.NARROW)
        check(type(error) is ValueError, f"V{size} without a byte order: {without or error!r}")
        lenient, error = take(Typed(plus(typestr=f"V{size}"), Named(name)), probe.NARROW | probe.LENIENT)
        check(error is None and lenient["dtype"] == name, f"V{size}, lenient: {lenient or error!r}")
    return count


def check_shapes() -> None:
    """All that is not the dtype stays what it is."""
    bfloat = Named("bfloat16")
    for more in (
        {"shape": ()}, {"shape": (0, 3), "data": (0, False)}, {"strides": (6, 2)}, {"strides": (-6, 4)}, {"strides": (0, 0)},
        {"data": (ADDRESS, True)}, {"data": (ADDRESS + 1, False)}, {"stream": 7}, {"stream": None}, {"version": 2},
        {"descr": [("", "<V2")]}, {"descr": None}, {"version": 7, "stream": 1},
    ):  # fmt: skip
        thing = Typed(plus(typestr="<V2", **more), bfloat)
        check_narrow(thing, "bfloat16", f"{more}")
        for flags in (probe.FIELDS, probe.BORROW, probe.MASK, probe.FIELDS | probe.MASK | probe.BORROW):
            facts, error = take(thing, probe.NARROW | flags)
            check(error is None and facts["dtype"] == "bfloat16", f"{more}, {flags}: {facts or error!r}")
    masked = Typed(plus(typestr="<V2", mask=Typed(plus(typestr="|V1"), Named("float8_e5m2"))), bfloat)
    facts, error = take(masked, probe.NARROW | probe.MASK)
    plain = take(masked, probe.MASK)[0]
    check(error is None and without_dtype(facts) == without_dtype(plain), f"with a mask: {facts or error!r}, not {plain}")
    check(error is None and facts["dtype"] == "bfloat16", f"with a mask: {facts or error!r}")
    for flags in (probe.NARROW, probe.NARROW | probe.FIELDS):
        record = Typed(plus(typestr="|V2", descr=[("a", "|i1"), ("b", "|i1")]), Named("void16"))
        facts, error = take(record, flags)
        check(error is None and facts["dtype"] == "void", f"a record of two bytes: {facts or error!r}")
    host = Typed(plus(typestr="<V2"), bfloat, HOST)
    facts, error = take(host, probe.NARROW | probe.HOST)
    check(error is None and facts["dtype"] == "bfloat16" and facts["memory"] == 1, f"on the host: {facts or error!r}")


def check_odd_dtypes() -> None:
    for name in ("", "float16", "bfloat", "xbfloat16", "bfloat16x", "bfloat16\0", "BFLOAT16", "b\u017ffloat16", "float8"):
        for dtype in (Named(name), Spoken(name), name):
            check_narrow(Typed(plus(typestr="<V2"), dtype), "void", f"a dtype {name!r}")
    for dtype in (None, 7, (), [], {}, object(), bytes, Named(None), Named(7), Named(b"bfloat16"), Ellipsis):
        check_narrow(Typed(plus(typestr="<V2"), dtype), "void", f"a dtype {dtype!r}")
    named = Spoken("torch.bfloat16")
    named.name = None
    check(take_error(Typed(plus(typestr="<V2"), named), probe.NARROW) is None, "a name that is None")
    for kind in (AttributeError, base.OwnAttribute):
        check_narrow(Asked(plus(typestr="<V2"), raising(kind)), "void", f"dtype raises {kind.__name__}")
        name = property(lambda self: raising(kind)())
        quiet = type("Quiet", (Spoken,), {"name": name})("torch.bfloat16")
        check_narrow(Typed(plus(typestr="<V2"), quiet), "bfloat16", f"the name raises {kind.__name__}")
    for kind in (Own, KeyboardInterrupt, MemoryError, ValueError, TypeError):
        error = kind("by the dtype")
        for place, dtype in (("name", type("Loud", (), {"name": property(raising(error))})()),
                             ("str", type("Loud", (), {"__str__": raising(error)})())):  # fmt: skip
            thing = Typed(plus(typestr="<V2"), dtype)
            got = take_error(thing, probe.NARROW)
            check(got is error, f"{place} raises {kind.__name__}: {got!r}")
            check(take_error(thing, 0) is None, f"{place} raises {kind.__name__}, without the flag")
        check(take_error(Asked(plus(typestr="<V2"), raising(error)), probe.NARROW) is error, f"dtype raises {kind.__name__}")
    check(type(take_error(Typed(plus(typestr="<V2"), Spoken(7)), probe.NARROW)) is TypeError, "a str that is an int")
    Asked.asked = 0
    for typestr, flags in (("<V2", 0), ("<f4", probe.NARROW), ("<i8", probe.NARROW), ("|V3", probe.NARROW), ("<f8", 0)):
        take(Asked(plus(typestr=typestr), lambda: Named("bfloat16")), flags)
        check(Asked.asked == 0, f"the dtype was asked for, {typestr}, flags {flags}")
    check(probe.live() == 0, f"{probe.live()} live")


def check_references() -> None:
    """Neither a dtype nor what it calls itself is kept."""
    for text in ("bfloat16", "no such thing"):
        text = "".join(["torch.", text])  # one of its own
        for dtype in (Named(text), Spoken(text), text):
            thing = Typed(plus(typestr="<V2"), dtype)
            before = sys.getrefcount(dtype), sys.getrefcount(text)
            for _ in range(10):
                take(thing, probe.NARROW)
            gone = sys.getrefcount(dtype) - before[0], sys.getrefcount(text) - before[1]
            check(gone == (0, 0), f"{type(dtype).__name__} {text!r}: references {gone}")


def check_real_ones() -> None:
    try:
        import ml_dtypes
    except ImportError:
        print("skipped: arrays of ml_dtypes, which is not installed")
        return
    names = {name: size for name, size in probe.narrow() if hasattr(ml_dtypes, name)}
    refused = []
    for name, size in names.items():
        a = np.zeros((2, 3), name)
        check(a.dtype.name == name and a.itemsize == size, f"ml_dtypes: {a.dtype}")
        facts, error = take(a, probe.NARROW | probe.HOST)
        if error is not None:  # "<f1" is no typestr (R32)
            check(type(error) is ValueError and a.dtype.str[1:] == "f1", f"ml_dtypes {name}: {error!r}")
            refused.append(f"{name} {a.dtype.str}")
            continue
        good = facts["data"] == a.__array_interface__["data"][0] and facts["strides"] == list(a.strides)
        check(good and facts["dtype"] == name, f"ml_dtypes {name}: {facts}")
        error = take_error(memoryview(a.view("u1")), probe.NARROW | probe.HOST)
        check(error is None, f"ml_dtypes {name}, its bytes: {error!r}")
        swapped = a.view(a.dtype.newbyteorder(">"))
        facts, error = take(swapped, probe.NARROW | probe.HOST)
        kept = "void" if size == 2 else name
        check(error is None and facts["dtype"] == kept, f"ml_dtypes >V{size} {name}: {facts or error!r}")
    read = len(names) - len(refused)
    print(f"ml_dtypes {ml_dtypes.__version__}: {read} formats; refused, as their typestr is none: {refused}")


def part_narrow(options: argparse.Namespace) -> None:
    del options
    check(len(probe.narrow()) == 27 and ("bfloat16", 2) in probe.narrow(), f"{probe.narrow()}")
    count = check_names()
    check_shapes()
    check_odd_dtypes()
    check_references()
    if np is not None:
        check_real_ones()
    print(f"{count} typestrs and names")


# ----------------------------------------------------------------------------------- after


class World:
    """A simulated CUDA with two streams, and objects whose references are counted."""

    def __init__(self, capacity: int = 4, devices: int = 2) -> None:
        probe.simulate(devices, capacity)
        self.mine, self.other = probe.new_stream(), probe.new_stream()
        self.streams = [self.mine, self.other]
        self.events: list[int] = []
        self.things: list[Any] = []

    def array(self, **entries: Any) -> Any:
        """An object that exports PLAIN with other entries; the world keeps it."""
        self.things.append(Exporter(plus(**entries)))
        return self.things[-1]

    def hold(self, flags: int = 0, **entries: Any) -> Any:
        """One array, held."""
        return probe.hold((self.array(**entries),), flags)

    def launch(self, stream: int, device: int = 0) -> None:
        """Work in a stream, which has not run."""
        probe.act("device", 0, device)
        check(probe.act("launch", stream) == 0, "the simulation takes no work")
        probe.act("device", 0, 0)

    def event(self, stream: int) -> int:
        self.events.append(probe.act("event", stream))
        return self.events[-1]

    def references(self) -> list[int]:
        """How many each object has besides the one of the world."""
        return [sys.getrefcount(self.things[i]) - 2 for i in range(len(self.things))]

    def finish(self, text: str, left: str = "") -> None:
        """left: a pattern of what the simulation may have kept: the pool makes no call on an event of a context that has
        ended"""
        probe.act("clear_faults")
        probe.act("run")
        probe.wait()
        probe.drain()
        gone = self.references()
        check(not any(gone) and probe.live() == 0, f"{text}: references {gone}, {probe.live()} live at the end")
        for stream in self.streams:
            probe.act("free", stream)
        for event in self.events:
            probe.act("event_free", event)
        ended = probe.finish()
        check(ended[0] == 0 and re.fullmatch(left, ended[1]) is not None, f"{text}: the pool ends with {ended}")


def exchanged(world: World, held: Any) -> Any:
    """Held arrays of an exchange with world.mine that has ended."""
    probe.exchange(held, world.mine)
    return held


def with_event(world: World, stream: int) -> Any:
    """One array whose event was recorded in world.other."""
    held = world.hold()
    probe.set_sync(held, 0, probe.EVENT, stream, world.event(world.other))
    return held


def masked(world: World, **entries: Any) -> Any:
    """One array that is pending on world.mine, with a mask."""
    return world.hold(probe.MASK, stream=world.mine, mask=Exporter(plus(typestr="|b1", **entries)))


def ordered(held: Any) -> Any:
    """Held arrays whose owners free behind the streams that they name."""
    probe.set_ordered(held)
    return held


EMPTY = {"shape": (0, 3), "data": (0, False)}
Makers = "dict[str, Callable[[World], Any]]"

# Held arrays that are released at once after work on world.mine
SETTLED: Makers = {
    "the same stream": lambda w: ordered(w.hold(stream=w.mine)),
    "another stream, after an exchange": lambda w: ordered(exchanged(w, w.hold(stream=w.other))),
    "an event of another stream, after an exchange": lambda w: ordered(exchanged(w, with_event(w, w.other))),
    "the same stream, and the mask's": lambda w: ordered(masked(w, stream=w.mine)),
    "another stream of the mask, after an exchange": lambda w: ordered(exchanged(w, masked(w, stream=w.other))),
    "a borrowed one": lambda w: w.hold(probe.BORROW),
    "an empty one": lambda w: w.hold(**EMPTY),
    "an empty one with a mask": lambda w: w.hold(probe.MASK, **EMPTY, mask=Exporter(plus(typestr="|b1", **EMPTY))),
}

# Those that have to wait for it
WAITING: Makers = {
    "an owner that frees at once, the same stream": lambda w: w.hold(stream=w.mine),
    "an owner that frees at once, another stream": lambda w: exchanged(w, w.hold(stream=w.other)),
    "an owner that frees at once, and a mask": lambda w: masked(w, stream=w.mine),
    "nothing pending": lambda w: ordered(w.hold()),
    "a stream of None": lambda w: w.hold(stream=None),
    "pending somewhere": lambda w: w.hold(version=2),
    "an event without a stream": lambda w: ordered(with_event(w, 0)),
    "the same stream, and a mask with nothing pending": lambda w: ordered(masked(w)),
    "the same stream, and a mask with something somewhere": lambda w: ordered(masked(w, version=2)),
    "nothing pending, after an exchange": lambda w: ordered(exchanged(w, w.hold())),
}


def check_settled() -> int:
    for name, make in SETTLED.items():
        world = World()
        held = make(world)
        world.launch(world.mine)
        probe.act("clear_log")
        error = attempt(lambda: probe.release_after(held, world.mine))[1]
        check(error is None and probe.owned(held) == [False], f"{name}: {error!r}, owned {probe.owned(held)}")
        good = not any(world.references()) and probe.act("waiting") == 0 and probe.act("ordering") == 0
        check(good, f"{name}: references {world.references()}, {probe.act('log')}")
        world.finish(name)
    return len(SETTLED)


def check_waiting() -> int:
    for name, make in WAITING.items():
        world = World()
        held, none = make(world), probe.hold((), 0)
        world.launch(world.mine)
        error = attempt(lambda: probe.release_after(held, world.mine))[1]
        check(error is None and probe.owned(held) == [False], f"{name}: {error!r}, owned {probe.owned(held)}")
        probe.release_after(none, world.mine)
        probe.release_after(held, world.mine)
        kept = world.references(), probe.act("waiting"), probe.live()
        check(kept == ([1], 1, 1), f"{name}: (references, waiting, live) {kept} while work is queued")
        probe.act("run")
        check(probe.act("waiting") == 1 and world.references() == [1], f"{name}: released by nobody's call")
        probe.release_after(none, world.other)
        kept = world.references(), probe.act("waiting"), probe.live()
        check(kept == ([0], 0, 0), f"{name}: (references, waiting, live) {kept} when the stream has passed")
        world.finish(name)
    return len(WAITING)


def check_many() -> None:
    """Several at a time, on several streams: each goes with its own."""
    world = World(capacity=8)
    first = probe.hold((world.array(), world.array(stream=world.mine), world.array()), 0)
    second = probe.hold((world.array(), world.array(version=1)), 0)
    world.launch(world.mine)
    world.launch(world.other)
    probe.release_after(first, world.mine)
    probe.release_after(second, world.other)
    check(world.references() == [1, 1, 1, 1, 1], f"many: {world.references()}")
    check(probe.act("ordering") == 4, f"many: {probe.act('log')}")  # each call creates an event, and records it once
    while probe.act("step", world.other):
        pass
    probe.release_after(probe.hold((), 0), world.other)
    check(world.references() == [1, 1, 1, 0, 0], f"many, one stream passed: {world.references()}")
    probe.act("run")
    probe.release_after(first, world.mine)  # borrowed by now
    check(not any(world.references()), f"many, both passed: {world.references()}")
    world.finish("many")
    world = World()
    far = probe.new_stream(0, 1)
    world.streams.append(far)
    held = probe.hold((world.array(),), 0)
    world.launch(far, 1)
    current = probe.act("current")
    error = attempt(lambda: probe.release_after(held, far))[1]
    check(error is None and world.references() == [1], f"on another device: {error!r}, {world.references()}")
    now = probe.act("current"), probe.act("last_error")
    check(now == (current, 0), f"{now}, before {current}: the current context, or an error, stays behind")
    world.finish("on another device")


def check_full() -> None:
    """Where the list is full, the host waits for the event that came first, and so for all arrays that share it;
    without places of the caller's a pool has some of its own."""
    for capacity in (0, 1, 2, 3):
        world = World(capacity)
        none = probe.hold((), 0)
        held = probe.hold(tuple(world.array() for _ in range(4)) + (world.array(stream=world.mine),), 0)
        world.launch(world.mine)
        error = attempt(lambda: probe.release_after(held, world.mine))[1]
        text = f"{capacity} places for 5 arrays"
        waiting = 4 % capacity + 1 if capacity else 5
        check(error is None and not any(probe.owned(held)), f"{text}: {error!r}, owned {probe.owned(held)}")
        kept = [0] * (5 - waiting) + [1] * waiting
        check(world.references() == kept, f"{text}: {world.references()}, not {kept}")
        check(probe.act("waiting") == waiting, f"{text}: {probe.act('waiting')} wait")
        queued = 1 if capacity else 2  # the last record, and the work if nobody waited for it
        check(probe.act("pending") == queued, f"{text}: {probe.act('pending')} operations are queued, not {queued}")
        probe.act("run")
        probe.release_after(none, world.mine)
        check(not any(world.references()), f"{text}, when the stream has passed: {world.references()}")
        world.finish(text)


def check_fault(error_number: int, number: int) -> bool:
    """One call of CUDA fails; False if there are not so many."""
    world = World(0)
    world.launch(world.mine)
    probe.release_after(world.hold(), world.mine)
    probe.act("run")
    more = (world.array() for _ in range(16))  # too many for one event
    held = probe.hold((world.array(), world.array(stream=world.other), *more), 0)
    probe.act("fail", number, error_number)
    error = attempt(lambda: probe.release_after(held, world.other))[1]
    struck = probe.act("faults") == 0
    probe.act("clear_faults")
    text, owned, references = f"error {error_number} of call {number}", probe.owned(held), world.references()[1:]
    ended = error_number in (700, 709, 4)
    if error is None:
        check(not any(owned), f"{text}: no exception, and owned {owned}")
    else:
        check(struck and type(error) is RuntimeError and "CUDA" in str(error), f"{text}: {error!r}")
        check(any(owned) or ended, f"{text}: {error!r}, and nothing is owned")
    check(all(r == 1 for r, o in zip(references, owned) if o), f"{text}: owned {owned}, references {references}")
    again = attempt(lambda: probe.release_after(held, world.other))[1]
    check(again is None and not any(probe.owned(held)), f"{text}, again: {again!r}, {probe.owned(held)}")
    world.finish(text, r"(events: e\d)?" if ended else "")
    return struck


def check_faults() -> int:
    """Each call fails once, with errors that pass and with those that end a context, or the process."""
    count = 0
    for error_number in (2, 999, 700, 709, 4):
        for number in itertools.count(1):
            if not check_fault(error_number, number):
                break
            count += 1
    return count


def check_captures() -> None:
    for mode in (0, 1, 2):
        world = World()
        held = probe.hold((world.array(), world.array(stream=world.mine)), 0)
        probe.act("capture", world.mine, mode)
        error = attempt(lambda: probe.release_after(held, world.mine))[1]
        check(type(error) is RuntimeError and "captur" in str(error), f"capture, mode {mode}: {error!r}")
        good = probe.owned(held) == [True, False] and world.references() == [1, 0]  # the second is on that stream
        check(good, f"capture, mode {mode}: owned {probe.owned(held)}, {world.references()}")
        check(probe.act("capture_end", world.mine) == 0, f"capture, mode {mode}: it is broken")
        probe.release_after(held, world.mine)
        world.finish(f"capture, mode {mode}")
        world = World()  # one that captures elsewhere is not disturbed by the poll
        earlier = probe.hold((world.array(),), 0)
        world.launch(world.other)
        probe.release_after(earlier, world.other)
        probe.act("run")
        probe.act("capture", world.mine, mode)
        error = attempt(lambda: probe.release_after(probe.hold((), 0), world.other))[1]
        check(error is None and world.references() == [0], f"a capture elsewhere, mode {mode}: {error!r}")
        check(probe.act("capture_end", world.mine) == 0, f"a capture elsewhere, mode {mode}: it is broken")
        world.finish(f"a capture elsewhere, mode {mode}")


def check_misuse() -> None:
    world = World()
    held = probe.hold((world.array(),), 0)
    for name, stream, kind in (("0", 0, ValueError), ("-1", 2**64 - 1, None)):
        kind = kind or (ValueError, RuntimeError)
        error = attempt(lambda: probe.release_after(held, stream))[1]
        check(isinstance(error, kind), f"stream {name}: {error!r}")
        check(probe.owned(held) == [True] and world.references() == [1], f"stream {name}: owned {probe.owned(held)}")
    for stream in (1, 2):
        again = probe.hold((world.array(),), 0)
        error = attempt(lambda: probe.release_after(again, stream))[1]
        check(error is None and probe.owned(again) == [False], f"stream {stream}: {error!r}")
    probe.release_after(held, world.mine)
    world.finish("streams that are none")
    world = World()
    held = probe.hold((world.array(),), 0)
    probe.act("teardown")
    error = attempt(lambda: probe.release_after(held, world.mine))[1]
    check(error is None and not any(world.references()), f"while the process ends: {error!r}, {world.references()}")
    probe.finish()


def part_after(options: argparse.Namespace) -> None:
    del options
    settled, waiting = check_settled(), check_waiting()
    check_many()
    check_full()
    faults = check_faults()
    check_captures()
    check_misuse()
    print(f"{settled} released at once, {waiting} that wait, {faults} faults")


# --------------------------------------------------------------------------------- streams


class Streaming:
    def __init__(self, pair: Any) -> None:
        self.pair = pair

    def __cuda_stream__(self) -> Any:
        return self.pair


def part_streams(options: argparse.Namespace) -> None:
    rng = random.Random(options.seed)
    numbers = [1, 2, 3, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1] + [rng.getrandbits(64) or 1 for _ in range(1000)]
    for number in numbers:
        pair = probe.cuda_stream(number)
        good = type(pair) is tuple and pair == (0, number) and type(pair[0]) is int and type(pair[1]) is int
        check(good, f"{number}: {pair}")
        back, error = attempt(lambda: probe.stream(Streaming(pair)))
        check(back == number, f"{number}: back {back or error!r}")
        check(number < 300 or sys.getrefcount(pair[1]) == 2, f"{number}: {sys.getrefcount(pair[1])} references")
        check(sys.getrefcount(pair) == 2, f"{number}: the pair has {sys.getrefcount(pair)} references")
    zero, error = attempt(lambda: probe.cuda_stream(0))
    if error is None:  # a NULL stream is the legacy default stream
        check(zero == (0, 0) and probe.stream(Streaming(zero)) == 1, f"0: {zero}")
    else:
        check(type(error) is ValueError, f"0: {error!r}")
    world = World()
    check(probe.stream(Streaming(probe.cuda_stream(world.mine))) == world.mine, "a stream of the simulation")
    world.finish("streams")
    print(f"{len(numbers)} streams")


# ----------------------------------------------------------------------------------- types


def errors_of(call: Callable[[], Any]) -> int | None:
    """How many AttributeErrors a call makes; None where that cannot be counted."""
    probe.count_errors(True)
    call()
    return probe.count_errors(False)


def counting_works() -> bool:
    return errors_of(lambda: attempt(lambda: object().nothing)) == 1


class Slotted:
    """No __dict__."""

    __slots__ = ("value",)


class Late:
    """What gets its attribute late."""


def check_late() -> None:
    """What was refused before is found where it has become an array."""
    late = Late()
    for flags in (0, probe.HOST):
        check(type(take_error(late, flags)) is TypeError, "an object without anything")
        late.__cuda_array_interface__ = plus()
        facts, error = take(late, flags)
        check(error is None and facts["data"] == ADDRESS, f"in the __dict__: {facts or error!r}")
        del late.__cuda_array_interface__
        Late.__getattr__ = lambda self, name: plus() if name == CUDA else raising(AttributeError)()
        facts, error = take(late, flags)
        check(error is None, f"by __getattr__: {error!r}")
        del Late.__getattr__
        Late.__getattribute__ = lambda self, name: plus() if name == CUDA else object.__getattribute__(self, name)
        facts, error = take(late, flags)
        check(error is None, f"by __getattribute__: {error!r}")
        del Late.__getattribute__
        for kind in (Late, Slotted):
            thing = kind()
            take(thing, flags)
            kind.__cuda_array_interface__ = property(lambda self: plus())
            facts, error = take(thing, flags)
            check(error is None, f"{kind.__name__}, by a property that came late: {error!r}")
            boom = Own("late")
            kind.__cuda_array_interface__ = property(raising(boom))
            error = take_error(thing, flags)
            check(error is boom or type(error) is TypeError, f"{kind.__name__}, a late property that raises: {error!r}")
            del kind.__cuda_array_interface__
            check(type(take_error(thing, flags)) is TypeError, f"{kind.__name__}: taken away again")
    for name in (HOST, CUDA):
        thing = Late()
        take(thing, probe.HOST)
        setattr(thing, name, plus())
        facts, error = take(thing, probe.HOST)
        check(error is None and facts["memory"] == (name == HOST), f"{name} in the __dict__: {facts or error!r}")


def check_subclasses() -> None:
    """Of ndarray, which has no such attribute, nor room for one."""
    a = np.arange(6.0)
    take(a, probe.HOST)

    class Child(np.ndarray):
        pass

    class Device(np.ndarray):
        @property
        def __cuda_array_interface__(self) -> Any:
            return plus()

    class Magic(np.ndarray):
        def __getattr__(self, name: str) -> Any:
            return plus() if name == CUDA else raising(AttributeError)()

    class Slots(np.ndarray):
        __slots__ = ()

    for kind in (Child, Device, Magic, Slots):
        for turn in range(2):
            take(a, probe.HOST)
            thing = a.view(kind)
            facts, error = take(thing, probe.HOST)
            on_host = kind in (Child, Slots)
            good = error is None and facts["memory"] == on_host and (facts["data"] == ADDRESS) == (not on_host)
            check(good, f"{kind.__name__}, turn {turn}: {facts or error!r}")
    thing = a.view(Child)
    take(thing, probe.HOST)
    thing.__cuda_array_interface__ = plus()
    facts, error = take(thing, probe.HOST)
    check(error is None and facts["data"] == ADDRESS, f"a subclass of ndarray with a __dict__: {facts or error!r}")
    error = take_error(thing, 0)
    check(error is None, f"the same, without CAI_PYTHON_HOST: {error!r}")


def check_ndarray() -> None:
    """ndarray is read by its buffer. Everything must be as of its dictionary, which a derived type may change."""
    class Other(np.ndarray):
        __slots__ = ()
        __array_interface__ = property(lambda self: {**plus(), "typestr": "|u1", "shape": (7,)})

    class Both(np.ndarray):
        __slots__ = ()
        __array_interface__ = property(lambda self: {**plus(), "typestr": "|u1", "shape": (7,)})
        __array_struct__ = property(raising(RuntimeError))

    class Late(np.ndarray):
        __slots__ = ()

    for kind in (Other, Both, Late):
        thing = np.arange(6.0).view(kind)
        if kind is Late:
            take(thing, probe.HOST)
            Late.__array_interface__ = Other.__array_interface__
        facts, error = take(thing, probe.HOST)
        check(error is None and facts["shape"] == [7] and facts["data"] == ADDRESS, f"{kind.__name__}: {facts or error!r}")
    frozen = np.arange(6, dtype="u1")
    frozen.flags.writeable = False
    arrays = [np.zeros((2, 3), "f4"), frozen, np.zeros((4, 6), "f4")[::2, ::2], np.zeros((3, 1, 2)).T, np.zeros((0, 2)), np.zeros(()),
              np.zeros((1, 3, 1, 4), "i1").transpose(0, 3, 2, 1), np.zeros(3, ">i4"), np.zeros(3, "M8[25s]"), np.zeros(3, "i2,f4"),
              np.zeros(3, "U5"), np.zeros(2, "S3"), np.zeros(2, "V4"), np.zeros(2, "g"), np.zeros(2, "?"), np.zeros(2, object),
              np.broadcast_to(np.arange(3), (2, 3)), np.zeros((2, 3), "c8", order="F")]  # fmt: skip
    for thing in arrays:
        for flags in (probe.HOST, probe.HOST | probe.FIELDS, probe.HOST | probe.NARROW):
            described = Exporter(thing.__array_interface__, "__array_interface__")
            (one, wrong), (two, other) = take(thing, flags), take(described, flags)
            if wrong is None and other is None:
                held = probe.hold((thing, described), flags)
                one["flags"], two["flags"] = probe.flags(held, 0), probe.flags(held, 1)
                probe.release(held)
            same = one == two and type(wrong) is type(other) and str(wrong) == str(other).replace("Exporter", "ndarray")
            check(same, f"{thing.dtype} {thing.shape}, {flags}: {one or wrong!r}, its dictionary {two or other!r}")
    thing = np.zeros(3)
    before = sys.getrefcount(thing)
    held = probe.hold((thing,) * 3, probe.HOST)
    check(sys.getrefcount(thing) == before + 3, f"{sys.getrefcount(thing) - before} references of 3")
    probe.release(held)
    held = probe.hold((thing,) * 3, probe.HOST | probe.BORROW)
    check(sys.getrefcount(thing) == before, f"{sys.getrefcount(thing) - before} references of 3 that are borrowed")
    probe.release(held)
    check(take_error(thing, 0) is not None, "an ndarray without CAI_PYTHON_HOST")


def check_many_types() -> None:
    """More types than are remembered, in turn, and types that go."""
    kinds = [type(f"Kind{i}", (Exporter,), {}) for i in range(100)]
    things = [kind(plus(shape=(i + 1,))) for i, kind in enumerate(kinds)]
    for _ in range(5):
        for i, thing in enumerate(things):
            facts, error = take(thing, 0)
            check(error is None and facts["shape"] == [i + 1], f"type {i}: {facts or error!r}")
            check(type(take_error(kinds[i], 0)) is TypeError, f"type {i}: the class itself")
    alive = [weakref.ref(kind) for kind in kinds]
    del kinds, things, thing
    gc.collect()
    left = sum(kind() is not None for kind in alive)
    check(left <= 8, f"{left} of 100 types are remembered")
    dice = random.Random(1)
    for _ in range(200):  # the same address, another type
        kind = type("Again", (Slotted,), {CUDA: plus()} if dice.random() < 0.5 else {})
        error = take_error(kind(), 0)
        check((error is None) == hasattr(kind, CUDA), f"a type that may be where another was: {error!r}")
        del kind
        gc.collect() if dice.random() < 0.1 else None


def check_counts() -> None:
    """No AttributeError for what a type is known to lack."""
    if not counting_works():
        print("skipped: counts of AttributeErrors, which need a full API of Python")
        return
    things = [("a memoryview", memoryview(b"abc")), ("a bytearray", bytearray(3)), ("an array.array", array.array("d", [1.0]))]
    if np is not None:
        things.append(("an ndarray", np.arange(3.0)))
    for name, thing in things:
        take(thing, probe.HOST)
        own = errors_of(lambda: [getattr(thing, HOST) for _ in range(10)] if hasattr(thing, HOST) else None)
        made = errors_of(lambda: [take(thing, probe.HOST) for _ in range(10)])
        check(made == own, f"{name}: {made} AttributeErrors in 10 imports, {own} by itself")
    exporter = Exporter(plus())
    take(exporter, 0)
    check(errors_of(lambda: [take(exporter, 0) for _ in range(10)]) == 0, "AttributeErrors for an attribute that is there")


def part_types(options: argparse.Namespace) -> None:
    del options
    check_late()
    if np is not None:
        check_subclasses()
        check_ndarray()
    else:
        print("skipped: subclasses of ndarray; no NumPy")
    check_many_types()
    check_counts()
    check(probe.live() == 0, f"{probe.live()} live")
    print("late attributes, subclasses, 100 types")


# ---------------------------------------------------------------------------------- memory


def rounds_of() -> Iterator[tuple[str, Callable[[], Any]]]:
    """One round of each."""
    data, view = bytearray(24), memoryview(bytes(24)).cast("f", (2, 3))
    bad = probe.Buffer(bytes(8), format=b"T{}", shape=(1,))
    raises = probe.Buffer(bytes(8), hook=raising(Own))
    indirect = probe.Buffer(bytes(8), shape=(2, 2), strides=(2, 1), suboffsets=(0, 0))
    record = Exporter(plus(typestr="|V6", descr=[(("Title", "grüße"), "<i2"), ("nested", [("a", "<i2"), ("b", "<i2")])]))
    wrong_record = Exporter(plus(typestr="|V7", descr=[("a", "<i2"), ("b", "<i2")]))
    narrow = Typed(plus(typestr="<V2"), Spoken("torch.bfloat16"))
    loud = Typed(plus(typestr="<V2"), type("Loud", (), {"__str__": raising(Own)})())
    quiet = Typed(plus(typestr="|V1"), Named(7))
    yield "buffers", lambda: probe.release(probe.hold((data, view), probe.HOST))
    yield "buffers, released later", lambda: probe.let_go(probe.hold((data, view), probe.HOST))
    yield "buffers, borrowed", lambda: probe.release(probe.hold((data, view), probe.HOST | probe.BORROW))
    yield "buffers that fail", lambda: [attempt(lambda: probe.hold((data, b), probe.HOST)) for b in (bad, raises, indirect)]
    yield "rows", lambda: probe.release(probe.hold((record, record), probe.FIELDS))
    yield "rows, borrowed", lambda: probe.release(probe.hold((record,), probe.FIELDS | probe.BORROW))
    yield "rows that fail", lambda: attempt(lambda: probe.hold((record, wrong_record), probe.FIELDS))
    yield "narrow", lambda: probe.release(probe.hold((narrow, quiet), probe.NARROW | probe.FIELDS | probe.MASK))
    yield "narrow that fails", lambda: attempt(lambda: probe.hold((narrow, loud), probe.NARROW))
    yield "streams", lambda: probe.stream(Streaming(probe.cuda_stream(2**60)))
    yield "types", lambda: take(type("Kind", (Exporter,), {})(plus()), probe.HOST)
    if np is not None:
        a = np.arange(6.0)
        yield "an ndarray", lambda: probe.release(probe.hold((a,), probe.HOST))


def kept_rounds() -> Iterator[tuple[str, Callable[[], Any]]]:
    """With a simulation."""
    stream = probe.new_stream()
    plain, ordered = Exporter(plus()), Exporter(plus(stream=stream))

    def full() -> None:
        held = probe.hold((plain,) * 9, 0)
        attempt(lambda: probe.release_after(held, stream))
        probe.wait()
        probe.release(held)

    def kept() -> None:
        probe.release_after(probe.hold((plain, ordered), 0), stream)
        probe.act("run")

    yield "kept", kept
    yield "kept, in a list that is full", full
    yield "not kept", lambda: attempt(lambda: probe.release_after(probe.hold((plain, ordered), 0), 0))
    probe.wait()
    probe.act("free", stream)


def grown(call: Callable[[], Any], rounds: int, enough: int) -> tuple[int, int]:
    """Bytes more in memory after so many rounds, and bytes more that Python counted after a fiftieth of them."""
    def many(count: int) -> None:
        for _ in range(count):
            call()
        probe.drain()
        gc.collect()

    size = parts.resident_growth(many, 500, rounds, enough)
    return size, parts.traced_growth(many, 50, max(1, rounds // 50))


def part_memory(options: argparse.Namespace) -> None:
    gc.freeze()
    most = 0

    def one(name: str, call: Callable[[], Any], rounds: int) -> None:
        nonlocal most
        enough = max(1 << 20, 4 * rounds)
        size, traced = grown(call, rounds, enough)
        most = max(most, size)
        check(size < enough, f"{name}: {size} bytes more resident after {rounds} rounds")
        check(traced < 4096, f"{name}: {traced} bytes more after {rounds // 50} rounds")
        check(probe.live() == 0 or "kept" in name, f"{name}: {probe.live()} live")

    count = 0
    for name, call in rounds_of():
        one(name, call, options.rounds if name != "types" else options.rounds // 10)
        count += 1
    probe.simulate(1, 8)
    for name, call in kept_rounds():
        # the trace of a simulation grows by each call, so that only what Python counts tells
        _, traced = grown(call, options.rounds // 20, sys.maxsize)
        check(traced < 4096, f"{name}: {traced} bytes more")
        probe.wait()
        check(probe.live() == 0, f"{name}: {probe.live()} live")
        count += 1
    ended = probe.finish()
    check(ended == (0, ""), f"the simulation ends with {ended}")
    print(f"{count} rounds, {options.rounds} times: at most {most} bytes more resident")


# ---------------------------------------------------------------------------------- running



def begin(module: Any) -> None:
    base.probe = module


SUITE = parts.Suite(globals(), "cai_more", ("more.c", "sim/cai_sim.c"), ("memory",), begin=begin)


def main() -> int:
    parser = SUITE.parser()
    parser.add_argument("--inspect", help="the program cai_inspect; without it rows are compared with NumPy alone")
    parser.add_argument("--count", type=int, default=5000, help="arrays of NumPy; a fifth as many records")
    parser.add_argument("--rounds", type=int, default=100000, help="of the part `memory`")
    return SUITE.main(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
