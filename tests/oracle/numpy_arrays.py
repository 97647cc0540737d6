"""cai against NumPy: live arrays through cai_inspect, and views and overlaps through the header.

    numpy_arrays.py --inspect build/cai_inspect [--driver build/numpy_driver]
                    [--count 200000] [--requests 200000] [--seed 1]

Part 1 makes random arrays (views, broadcasts, unaligned, swapped, structured, empty, ...) and
compares what cai_inspect says of repr(a.__array_interface__) with what NumPy says of a. Then
every typestr that NumPy can print. Part 2 (with --driver, built of numpy_driver.c) compares
overlap, self-overlap, reshape without a copy, broadcast and the shape of several arrays. No data is read or written.

Where cai and NumPy may differ, and why:
* NumPy's strides of a contiguous array are free in dimensions of 1 and in empty arrays, and the
  interface says None for all of them; cai fills in those of C order (R20).
* An empty array has data 0 and extent [0, 0) in cai (R12, R27).
* np.reshape takes any negative extent for -1; cai takes -1 only.
* NumPy aligns dtype(align=True) records by their fields, |Vn carries no alignment: none are made.
"""

from __future__ import annotations

import argparse
import collections
import mmap
import random
import subprocess
from typing import Any, Callable, Iterator

import numpy as np
from numpy.lib.array_utils import byte_bounds

import inspect_io
import reference

try:
    from numpy._core._multiarray_tests import internal_overlap
except ImportError:  # no public function; without it only arrays that can be enumerated
    internal_overlap = None

# Whole pages, so that arrays are the same in each run; mapped, so that they lie high enough for large
# arrays to reach far below them: NumPy's solver takes an address below 0 for a very high one.
BUFFER = np.frombuffer(mmap.mmap(-1, 1 << 16), dtype=np.uint8)
START = BUFFER.__array_interface__["data"][0]
MAX_ELEMENTS = 2000
LEAST_SHARE = 5.0  # percent of each class
BATCH = 20000

Random = random.Random
Array = np.ndarray

UNITS = "Y M W D h m s ms us ns ps fs as".split()


# ---------------------------------------------------------------- dtypes


def plain_dtypes() -> list[np.dtype]:
    """Every plain dtype, in both byte orders."""
    names = "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 S1 S5 S16 U1 U3 U8 V1 V2 V7 V16 m8 M8".split()
    names += [f"{kind}8[{unit}]" for kind in "mM" for unit in ("D", "ns", "25s", "as", "generic")]
    dtypes = [np.dtype(order + name) for name in names for order in "<>"]
    longs = [np.dtype(np.longdouble), np.dtype(np.clongdouble)]
    return dtypes + longs + [d.newbyteorder() for d in longs]


def structured_dtypes() -> list[np.dtype]:
    """Records: packed, padded, nested, with sub-arrays and titles."""
    point = np.dtype([("x", "<f4"), ("y", ">f4")])
    padded = {"names": ["a", "b"], "formats": ["<i2", "<f8"], "offsets": [2, 8], "itemsize": 24}
    return [
        point,
        np.dtype([("ival", ">i4"), ("", "V4"), ("dval", ">f8")]),
        np.dtype([("a", "u1"), ("b", "<f8")]),
        np.dtype(padded),
        np.dtype([("m", "<f4", (3, 3)), ("n", "S3"), ("k", "?")]),
        np.dtype([(("Full name", "b"), "<i4"), (("Another", "t"), "<M8[ns]")]),
        np.dtype([("p", point), ("q", point, (2,)), ("r", "<c8")]),
        np.dtype([("outer", [("inner", [("deep", "<i2", (2, 2))]), ("u", "<U2")]), ("z", "u1")]),
        np.dtype([("r", np.dtype(padded)), ("s", "<i8")]),
        np.dtype([("none", "<i4", (0,)), ("some", "<i2", (1,))]),
        np.dtype([("f%d" % i, "<i4") for i in range(20)]),
        np.dtype([("grüße", "<u2"), ("it's", "<u2"), ('"\\', "V3")]),
        np.dtype([("only", "<f8")]),
        np.dtype([("v", "V3", (2,)), ("w", "|b1")]),
    ]


PLAIN = plain_dtypes()
STRUCTURED = structured_dtypes()


# ---------------------------------------------------------------- random arrays


def layout(rng: Random, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of an array that may be packed, permuted, spread, broadcast, anything."""
    while True:
        ndim = rng.choice((0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 7))
        shape = [rng.choice((1, 2, 2, 3, 3, 4, 5, 7) if ndim < 5 else (1, 1, 2, 3)) for _ in range(ndim)]
        if ndim and rng.random() < 0.04:
            shape[rng.randrange(ndim)] = 0
        if reference.product(shape) <= MAX_ELEMENTS:
            break
    order = list(range(ndim))
    if rng.random() < 0.4:
        rng.shuffle(order)
    style = rng.random()
    strides, step = [0] * ndim, itemsize
    for axis in reversed(order):
        if style > 0.5 and rng.random() < 0.3:
            step *= rng.choice((1, 2, 3))
        strides[axis] = step
        step *= max(1, shape[axis])
        if style > 0.4:
            wild = rng.random()
            if wild < 0.2:
                strides[axis] = -strides[axis]
            elif wild < 0.33:
                strides[axis] = 0
            elif wild < 0.43:
                strides[axis] = rng.choice((1, -1, 3, itemsize // 2, itemsize + 1, -itemsize - 3, rng.randrange(-40, 41)))
    return tuple(shape), tuple(strides)


def fresh(rng: Random, dtype: np.dtype) -> Array:
    """An array somewhere in the buffer."""
    while True:
        shape, strides = layout(rng, dtype.itemsize)
        low, high = reference.extent(shape, strides, dtype.itemsize)
        if high - low <= BUFFER.size - 64:
            break
    offset = rng.randrange(0, BUFFER.size - (high - low) - 32)
    offset += -low - (START + offset) % 16
    if rng.random() < 0.2:
        offset += rng.choice((1, 2, 4, 8, 3, 5))
    return np.ndarray(shape, dtype, buffer=BUFFER, offset=max(offset, -low), strides=strides)


def sliced(rng: Random, a: Array) -> Array:
    """Slices, single elements and new axes."""
    index: list[Any] = []
    for dim in a.shape:
        wild = rng.random()
        if wild < 0.1 and dim:
            index.append(rng.randrange(-dim, dim))
            continue
        bounds = [rng.choice((None, None, rng.randrange(-dim - 1, dim + 2))) for _ in "ab"]
        index.append(slice(*bounds, rng.choice((None, 1, 2, 3, -1, -1, -2))))
        if wild > 0.95:
            index.append(None)
    return a[tuple(index) + (Ellipsis,)]


def broadcast(rng: Random, a: Array) -> Array:
    """Dimensions of 1 repeated, more dimensions in front."""
    shape = tuple(rng.choice((2, 3, 1)) if d == 1 else d for d in a.shape)
    shape = tuple(rng.choice((1, 2, 3)) for _ in range(rng.choice((0, 1, 1, 2)))) + shape
    return np.broadcast_to(a, shape) if reference.product(shape) <= MAX_ELEMENTS else a


def transposed(rng: Random, a: Array) -> Array:
    """The axes in another order."""
    axes = list(range(a.ndim))
    rng.shuffle(axes)
    return a.transpose(axes)


def other_order(_: Random, a: Array) -> Array:
    """The other byte order."""
    return a.view(a.dtype.newbyteorder())


def one_field(rng: Random, a: Array) -> Array:
    """One field of a record, or some of them."""
    if a.dtype.names is None:
        return a
    if rng.random() < 0.2:
        return a[rng.sample(a.dtype.names, rng.randrange(1, len(a.dtype.names) + 1))]
    return a[rng.choice(a.dtype.names)]


def part(rng: Random, a: Array) -> Array:
    """Real or imaginary part."""
    return rng.choice((a.real, a.imag)) if a.dtype.kind == "c" else a


def diagonal(_: Random, a: Array) -> Array:
    """The diagonal of the first two axes."""
    return a.diagonal() if a.ndim >= 2 else a


def windows(rng: Random, a: Array) -> Array:
    """Windows that overlap."""
    if a.ndim == 0 or a.ndim > 3 or a.shape[0] < 2:
        return a
    return np.lib.stride_tricks.sliding_window_view(a, rng.choice((2, a.shape[0])), axis=0)


def read_only(_: Random, a: Array) -> Array:
    """A read-only view."""
    a = a.view()
    a.flags.writeable = False
    return a


OPERATIONS: list[Callable[[Random, Array], Array]] = [
    sliced, sliced, sliced, broadcast, transposed, other_order, one_field, one_field, part, diagonal, windows, read_only,
    lambda rng, a: a[..., None], lambda rng, a: a[None], lambda rng, a: a.squeeze(), lambda rng, a: a[::-1] if a.ndim else a,
]  # fmt: skip


def random_array(rng: Random) -> Array:
    """An array of any sort with an itemsize above 0."""
    while True:
        dtype = rng.choice(STRUCTURED) if rng.random() < 0.3 else rng.choice(PLAIN)
        a = fresh(rng, dtype)
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            a = rng.choice(OPERATIONS)(rng, a)
        a = np.asanyarray(a)
        if a.ndim <= 64 and 0 < a.itemsize and a.size <= MAX_ELEMENTS and has_descr(a.dtype):
            return a


def has_descr(dtype: np.dtype) -> bool:
    """Whether descr can say the fields: NumPy writes it only for fields in the order of memory."""
    if dtype.names is None:
        return dtype.base.names is None or has_descr(dtype.base)
    end = 0
    for name in dtype.names:
        inner, offset = dtype.fields[name][:2]
        if offset < end or not has_descr(inner):
            return False
        end = offset + inner.itemsize
    return True


# ---------------------------------------------------------------- what NumPy says


def byte_offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The offset of every element in C order."""
    out = np.zeros(1, dtype=np.int64)
    for dim, stride in zip(shape, strides):
        out = np.add.outer(out, np.arange(dim, dtype=np.int64) * stride).ravel()
    return out


def self_overlap(a: Array) -> bool:
    """Whether two elements share a byte, element by element."""
    ordered = np.sort(byte_offsets(a.shape, a.strides))
    return bool((np.diff(ordered) < a.itemsize).any())


def effective_strides(a: Array) -> list[int]:
    """NumPy's strides, or those of C order where the interface says None."""
    if a.__array_interface__["strides"] is not None:
        return list(a.strides)
    return list(reference.c_strides(a.shape, a.itemsize))


def fields_of(dtype: np.dtype, parent: int = -1, rows: list[tuple[Any, ...]] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a record as cai lays them out: padding is a row without a name."""
    rows = [] if rows is None else rows
    end = 0
    for name in dtype.names or ():
        inner, offset, *title = dtype.fields[name]
        if offset > end:
            rows.append(("", None, end, offset - end, (), parent, f"|V{offset - end}"))
        base, shape = inner.subdtype or (inner, ())
        rows.append((name, title[0] if title else None, offset, inner.itemsize, shape, parent, None if base.names else base.str))
        if base.names is not None:
            fields_of(base, len(rows) - 1, rows)
        end = offset + inner.itemsize
    if end < dtype.itemsize:
        rows.append(("", None, end, dtype.itemsize - end, (), parent, f"|V{dtype.itemsize - end}"))
    return rows


def expected_facts(a: Array, overlapping: bool) -> dict[str, Any]:
    """What cai_inspect must say of an array, from NumPy's own attributes."""
    interface = a.__array_interface__
    address = interface["data"][0]
    low, high = byte_bounds(a) if a.size else (address, address)
    return {
        "itemsize": a.itemsize,
        "size": a.size,
        "nbytes": a.nbytes,
        "shape": list(a.shape),
        "ndim": a.ndim,
        "strides": effective_strides(a),
        "c_contiguous": a.flags.c_contiguous,
        "f_contiguous": a.flags.f_contiguous,
        "aligned": a.flags.aligned,
        "read_only": not a.flags.writeable,
        "byte_swapped": not a.dtype.isnative and a.dtype.byteorder == ">",
        "extent": [low - address, high - address],
        "data": address if a.size else 0,
        "version": 3,
        "sync": "none",
        "stream": None,
        "self_overlap": "yes" if overlapping else "no",
        "mask": None,
    }


def array_differences(a: Array, overlapping: bool, answer: dict[str, Any]) -> list[str]:
    """What cai_inspect says otherwise than NumPy."""
    if not answer["ok"]:
        return [f"rejected: {answer['message']}"]
    found = [
        f"{key}: cai {answer.get(key, 'absent')!r}, NumPy {value!r}"
        for key, value in expected_facts(a, overlapping).items()
        if answer.get(key, "absent") != value and not (key == "self_overlap" and answer.get(key) == "undecided")
    ]
    for axis, dim in enumerate(a.shape):
        if a.size and dim > 1 and answer["strides"][axis] != a.strides[axis]:
            found.append(f"strides[{axis}]: cai {answer['strides'][axis]}, NumPy {a.strides[axis]}")
    if inspect_io.dtype_of(answer["typestr"]) != inspect_io.dtype_of(a.dtype.str):
        found.append(f"typestr: cai {answer['typestr']!r}, NumPy {a.dtype.str!r}")
    return found + field_differences(a.dtype, answer["fields"])


def field_differences(dtype: np.dtype, given: list[dict[str, Any]] | None) -> list[str]:
    """The field table against the dtype."""
    if dtype.names is None or given is None:
        return [] if dtype.names is None and given is None else [f"fields: cai {given!r}, NumPy {dtype}"]
    rows = [(f["name"], f["title"], f["offset"], f["nbytes"], tuple(f["shape"]), f["parent"]) for f in given]
    wanted = fields_of(dtype)
    if rows != [row[:6] for row in wanted]:
        return [f"fields: cai {rows}, NumPy {wanted}"]
    return [
        f"fields: {row[0]!r}: cai {f['typestr']!r}, NumPy {row[6]!r}"
        for f, row in zip(given, wanted)
        if row[6] is not None and inspect_io.dtype_of(f["typestr"]) != inspect_io.dtype_of(row[6])
    ]


def classes_of(a: Array, overlapping: bool) -> Iterator[str]:
    """The classes an array belongs to."""
    used = [s for d, s in zip(a.shape, a.strides) if d > 1]
    yield from ["rank 0"] if a.ndim == 0 else ["rank >= 3"] if a.ndim >= 3 else []
    yield from ["negative strides"] if any(s < 0 for s in used) else []
    yield from ["zero strides"] if 0 in used else []
    yield from [] if a.flags.aligned else ["unaligned"]
    yield from ["swapped"] if a.dtype.byteorder == ">" else []
    yield from ["structured"] if a.dtype.names is not None else []
    yield from ["overlapping"] if overlapping else []
    yield from ["empty"] if a.size == 0 else []


CLASSES = ("rank 0", "rank >= 3", "negative strides", "zero strides", "unaligned", "swapped", "structured", "overlapping")


def check_arrays(program: str | None, count: int, seed: int) -> bool:
    """Part 1: random arrays through cai_inspect."""
    rng = random.Random(seed)
    counts: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    done = undecided = 0
    while done < count:
        arrays = [random_array(rng) for _ in range(min(BATCH, count - done))]
        done += len(arrays)
        lines = [repr(a.__array_interface__) for a in arrays]
        overlapping = [self_overlap(a) for a in arrays]
        for a, overlaps in zip(arrays, overlapping):
            counts.update(classes_of(a, overlaps))
        if program is None:
            continue
        for a, overlaps, line, answer in zip(arrays, overlapping, lines, inspect_io.inspect(program, lines)):
            undecided += answer.get("self_overlap") == "undecided"
            wrong += [f"{text}\n    {line}" for text in array_differences(a, overlaps, answer)]
    inspect_io.report("differs", wrong)
    shares = {name: 100.0 * counts[name] / max(1, count) for name in (*CLASSES, "empty")}
    text = ", ".join(f"{name} {counts[name]} ({share:.1f} %)" for name, share in shares.items())
    print(f"arrays {count}: {text}, self-overlap undecided {undecided}, differences {len(wrong)}")
    rare = [name for name in CLASSES if shares[name] < LEAST_SHARE]
    if rare:
        print(f"too few arrays of: {', '.join(rare)}")
    return not wrong and not rare


# ---------------------------------------------------------------- typestrs


def every_dtype() -> Iterator[np.dtype]:
    """Every dtype whose typestr NumPy can print, up to a few sizes of the flexible ones."""
    for scalar in set(np.sctypeDict.values()):
        yield np.dtype(scalar)
    for char in np.typecodes["All"]:
        yield np.dtype(char)
    sizes = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8, 16), "c": (8, 16, 32)}
    flexible = (*range(1, 70), 127, 128, 255, 256, 1000, 65535, 65536, 2**20, 2**29 - 1)
    sizes.update(S=flexible + (2**31 - 1,), U=flexible, V=flexible + (2**31 - 1,))
    for order in "<>=|":
        for kind, each in sizes.items():
            for size in each:
                try:
                    yield np.dtype(f"{order}{kind}{size}")
                except TypeError:  # this platform has no such long double
                    pass
        for kind in "mM":
            yield np.dtype(f"{order}{kind}8")
            yield np.dtype(f"{order}{kind}8[generic]")
            for unit in UNITS:
                for multiple in ("", 1, 2, 7, 25, 100, 1000, 2**31 - 1):
                    yield np.dtype(f"{order}{kind}8[{multiple}{unit}]")
    yield from STRUCTURED
    yield np.dtypes.StringDType()


def check_typestrs(program: str | None) -> bool:
    """Every typestr: accepted with NumPy's itemsize and byte order, or rejected for a reason."""
    dtypes = list({d.str: d for d in every_dtype()}.values())
    template = "{{'shape': (3,), 'typestr': {!r}, 'data': (4096, False), 'version': 3}}"
    lines = [template.format(d.str) for d in dtypes]
    wrong = []
    rejected = 0
    for d, answer in zip(dtypes, inspect_io.inspect(program, lines) if program else []):
        if d.kind in "OT" or d.itemsize == 0:  # pointers to Python objects, or nothing at all
            rejected += 1
            if answer["ok"] or answer["entry"] != "typestr":
                wrong.append(f"{d.str}: not rejected for its typestr: {answer}")
            continue
        said = tuple(answer.get(key) for key in ("ok", "itemsize", "byte_swapped"))
        if said != (True, d.itemsize, d.byteorder == ">"):
            wrong.append(f"{d.str}: cai {answer}, NumPy itemsize {d.itemsize}, byte order {d.byteorder}")
    inspect_io.report("differs", wrong)
    print(f"typestrs {len(dtypes)}, of them rejected {rejected}, differences {len(wrong)}")
    return not wrong


# ---------------------------------------------------------------- part 2: through the header


def words(a: Array) -> str:
    """An array in the format of numpy_driver."""
    numbers = (a.itemsize, a.ndim, *a.shape, *a.strides, a.__array_interface__["data"][0])
    return " ".join(map(str, numbers))


def small_array(rng: Random, room: int, most: int = 500) -> Array:
    """An array of single bytes or small items within the first bytes of the buffer."""
    while True:
        itemsize = rng.choice((1, 1, 2, 3, 4, 8))
        shape, strides = layout(rng, itemsize)
        if rng.random() < 0.3:
            strides = tuple(rng.choice((s, s + rng.randrange(-3, 4), rng.randrange(-20, 21))) for s in strides)
        elif rng.random() < 0.2:  # far apart
            strides = tuple(rng.randrange(-room, room + 1) // max(1, d * (len(shape) - 1)) for d in shape)
        low, high = reference.extent(shape, strides, itemsize)
        if high - low <= room and reference.product(shape) <= most:
            offset = rng.randrange(room - (high - low) + 1) - low
            return np.ndarray(shape, f"V{itemsize}", buffer=BUFFER, offset=offset, strides=strides)


def large_array(rng: Random) -> Array:
    """More elements than anybody enumerates; nothing of it is ever touched."""
    ndim = rng.choice((1, 2, 2, 3, 3))
    shape = tuple(rng.choice((2, 3, 10, 1000, 1001, 10**5)) for _ in range(ndim))
    near = rng.choice((1, 8, 1000, 10**6, 10**7))
    strides = tuple(rng.choice((rng.randrange(-near, near + 1), 2 * near, 3 * near, 4)) for _ in range(ndim))
    start = BUFFER[rng.randrange(1000) :].view()
    itemsize = rng.choice((1, 2, 4, 8, 16))
    return np.lib.stride_tricks.as_strided(start[:itemsize].view(f"V{itemsize}")[0:1], shape, strides)


def touched(a: Array, room: int) -> Array:
    """Which of the first bytes of the buffer an array touches."""
    marks = np.zeros(room + 8, dtype=bool)
    first = byte_offsets(a.shape, a.strides) + (a.__array_interface__["data"][0] - START)
    for byte in range(a.itemsize):
        marks[first + byte] = True
    return marks


def overlap_request(rng: Random) -> tuple[str, Callable[[str], str | None]]:
    """Two arrays in one small buffer: element by element, and by NumPy's exact solver."""
    if rng.random() < 0.1:
        return large_overlap_request(rng)
    room = rng.choice((40, 100, 300, 1000, 10000))
    a, b = small_array(rng, room, 200), small_array(rng, room, 200)
    truth = bool((touched(a, room) & touched(b, room)).any()) if a.size and b.size else False
    try:
        if np.shares_memory(a, b, max_work=100000) != truth:
            raise SystemExit(f"numpy_arrays: NumPy and the enumeration differ: {words(a)} / {words(b)}")
    except np.exceptions.TooHardError:
        pass
    return f"0 {words(a)} {words(b)}", lambda text: overlap_answer(text, truth)


def large_overlap_request(rng: Random) -> tuple[str, Callable[[str], str | None]]:
    """Two large arrays: by NumPy's exact solver, as far as that decides in a short time."""
    while True:
        a, b = large_array(rng), large_array(rng)
        try:
            truth = bool(np.shares_memory(a, b, max_work=20000))
            return f"0 {words(a)} {words(b)}", lambda text: overlap_answer(text, truth)
        except (np.exceptions.TooHardError, OverflowError):
            pass


def overlap_answer(text: str, truth: bool) -> str | None:
    """A verdict on overlap: right, undecided (counted) or wrong."""
    if text == "2":
        return "undecided"
    return None if text == str(int(truth)) else f"cai {text}, truth {int(truth)}"


def self_request(rng: Random) -> tuple[str, Callable[[str], str | None]]:
    """One array: element by element, or by NumPy's exact solver."""
    if internal_overlap is not None and rng.random() < 0.1:
        return large_self_request(rng)
    a = small_array(rng, rng.choice((60, 200, 2000)))
    truth = self_overlap(a)
    return f"1 {words(a)}", lambda text: overlap_answer(text, truth)


def large_self_request(rng: Random) -> tuple[str, Callable[[str], str | None]]:
    """One large array, as far as NumPy decides in a short time."""
    while True:
        a = large_array(rng)
        try:
            truth = bool(internal_overlap(a, max_work=20000))
            return f"1 {words(a)}", lambda text: overlap_answer(text, truth)
        except ValueError:  # gave up
            pass


def some_shape(rng: Random, size: int) -> list[int]:
    """A shape of so many elements, sometimes of others, sometimes with -1 or 1s."""
    shape = []
    rest = size
    while rest > 1 and rng.random() < 0.8:
        divisors = [d for d in range(2, min(rest, 60) + 1) if rest % d == 0]
        if not divisors:
            break
        shape.append(rng.choice(divisors))
        rest //= shape[-1]
    if rest != 1 or rng.random() < 0.2:
        shape.append(rest)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        shape.insert(rng.randrange(len(shape) + 1), 1 if size or rng.random() < 0.6 else rng.randrange(4))
    if rng.random() < 0.5:
        rng.shuffle(shape)
    if shape and rng.random() < 0.25:
        shape[rng.randrange(len(shape))] = -1
    if shape and rng.random() < 0.1:
        shape[rng.randrange(len(shape))] += rng.choice((-1, 1, -2))
    return shape


def merged_shape(rng: Random, shape: tuple[int, ...]) -> list[int]:
    """A shape near the array's own: neighbours merged or split, 1s put in or left out."""
    out: list[int] = []
    for dim in shape:
        if out and rng.random() < 0.4:
            out[-1] *= dim
        elif dim % 2 == 0 and dim and rng.random() < 0.3:
            out += [2, dim // 2] if rng.random() < 0.5 else [dim // 2, 2]
        elif dim != 1 or rng.random() < 0.5:
            out.append(dim)
        if rng.random() < 0.1:
            out.append(1)
    return out


def reshape_request(rng: Random) -> tuple[str, Callable[[str], str | None]]:
    """A reshape: NumPy's verdict without a copy, and the addresses of all elements."""
    a = small_array(rng, 2000)
    shape = merged_shape(rng, a.shape) if rng.random() < 0.5 else some_shape(rng, a.size)
    try:
        view = None if min(shape, default=0) < -1 else np.reshape(a, tuple(shape), copy=False)
    except ValueError:
        view = None
    return request(2, a, shape), lambda text: view_answer(text, view, a)


def broadcast_request(rng: Random) -> tuple[str, Callable[[str], str | None]]:
    """A broadcast: NumPy's verdict, and the addresses of all elements."""
    a = small_array(rng, 2000, 60)
    shape = [rng.choice((d, 2, 3, 1, 0, d)) if d == 1 else d for d in a.shape]
    for _ in range(rng.choice((0, 0, 1, 2))):
        shape.insert(0, rng.choice((1, 2, 3, 0 if rng.random() < 0.2 else 2)))
    wild = rng.random()
    if wild < 0.25 and shape:
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 3, 4, -1))
    elif wild < 0.35:
        shape = shape[1:]
    try:
        view = np.broadcast_to(a, tuple(shape))
    except ValueError:
        view = None
    return request(3, a, shape), lambda text: view_answer(text, view, a)


def joint_request(rng: Random) -> tuple[str, Callable[[str], str | None]]:
    """The shape of several arrays: NumPy's, or that there is none."""
    whole = [rng.choice((1, 2, 3, 7, 0)) for _ in range(rng.randrange(6))]
    shapes = []
    for _ in range(rng.randrange(1, 5)):
        shape = [1 if rng.random() < 0.4 else d for d in whole[rng.randrange(len(whole) + 1):]]
        if shape and rng.random() < 0.15:
            shape[rng.randrange(len(shape))] = rng.randrange(4)
        shapes.append(shape)
    try:
        wanted = "0 " + " ".join(map(str, np.broadcast_shapes(*map(tuple, shapes))))
    except ValueError:
        wanted = "15"  # CAI_ERR_EXPECT
    line = " ".join(map(str, (4, len(shapes), *(n for shape in shapes for n in (len(shape), *shape)))))
    return line, lambda text: None if text.strip() == wanted.strip() else f"cai {text}, NumPy {wanted}"


def request(number: int, a: Array, shape: list[int]) -> str:
    """A request for a view of another shape."""
    return " ".join(map(str, (number, words(a), len(shape), *shape)))


def view_answer(text: str, view: Array | None, source: Array) -> str | None:
    """The verdict on a view, its shape and where its elements lie."""
    status, *numbers = map(int, text.split())
    if (status == 0) != (view is not None):
        return f"cai status {status}, NumPy {'makes' if view is not None else 'refuses'} the view"
    if view is None:
        return None
    writable, data, ndim, *rest = numbers
    shape, strides = tuple(rest[:ndim]), tuple(rest[ndim:])
    if shape != view.shape:
        return f"shape: cai {shape}, NumPy {view.shape}"
    if view.size == 0:
        return None if data == 0 else f"data of an empty view: {data}"
    wanted = byte_offsets(view.shape, view.strides) + view.__array_interface__["data"][0]
    if not np.array_equal(byte_offsets(shape, strides) + data, wanted):
        return f"elements: cai data {data} strides {strides}, NumPy strides {view.strides}"
    repeated = view.size > source.size
    return None if writable != repeated else f"writable {writable}, repeated {repeated}"


KINDS = {
    "overlap": (0.3, overlap_request),
    "self-overlap": (0.25, self_request),
    "reshape": (0.25, reshape_request),
    "broadcast": (0.15, broadcast_request),
    "joint shape": (0.05, joint_request),
}


def check_header(driver: str | None, count: int, seed: int) -> bool:
    """Part 2: requests through numpy_driver."""
    good = True
    total = 0
    for name, (share, make) in KINDS.items():
        rng = random.Random(f"{seed} {name}")
        requests = [make(rng) for _ in range(-int(-count * share))]
        total += len(requests)
        if driver is None:
            continue
        text = "".join(line + "\n" for line, _ in requests)
        done = subprocess.run([driver], input=text, capture_output=True, text=True, check=False)
        answers = done.stdout.splitlines()
        if done.returncode or len(answers) != len(requests):
            print(f"{name}: {driver} ended with {done.returncode}: {done.stderr.strip()}; answer {len(answers)} of {len(requests)}")
            good = False
            continue
        verdicts = [(line, judge(answer)) for (line, judge), answer in zip(requests, answers)]
        undecided = sum(verdict == "undecided" for _, verdict in verdicts)
        wrong = [f"{verdict}\n    {line}" for line, verdict in verdicts if verdict not in (None, "undecided")]
        inspect_io.report(name, wrong)
        yes = sum(answer.startswith("1" if "overlap" in name else "0") for answer in answers)
        print(f"{name} {len(requests)}: yes {yes}, undecided {undecided}, differences {len(wrong)}")
        good = good and not wrong
    print(f"requests {total}" + ("" if driver else " made, none sent: no --driver"))
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description="cai against NumPy.")
    parser.add_argument("--inspect", help="the program cai_inspect; without it part 1 only makes arrays")
    parser.add_argument("--driver", help="the program numpy_driver; without it part 2 only makes requests")
    parser.add_argument("--count", type=int, default=200000, help="arrays of part 1")
    parser.add_argument("--requests", type=int, default=200000, help="requests of part 2")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    good = check_arrays(options.inspect, options.count, options.seed)
    good = check_typestrs(options.inspect) and good
    good = check_header(options.driver, options.requests, options.seed) and good
    print("numpy_arrays: " + ("no differences" if good else "differences"))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
