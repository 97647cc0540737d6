"""Brute-force reference for CUDA Array Interface dictionaries.

Written from the rules (R1-R61 of the dossier), not from cai.h, and meant to be
obviously right: Python integers without limit, one definition after the other,
no shortcuts. The standard library only.

    verdict = judge_line("{'shape': (2, 3), 'typestr': '<f4', ...}")
    verdict.accepted(lenient=False), verdict.entries(lenient=False), verdict.facts

A dictionary is read once, as the lenient profile reads it. What only the strict
profile rejects is written down as a *forgivable* fault on the way; everything
else is a hard fault. All faults are collected, there is no order among them.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any, Iterator

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
UINT64_MAX = 2**64 - 1

MAX_NDIM = 64
MAX_DESCR_DEPTH = 32
MAX_FIELDS = 4096
MAX_REPEAT_DIMS = 8
SELF_OVERLAP_LIMIT = 3000  # elements; larger arrays are not enumerated

SIZES = {
    "b": {1},
    "i": {1, 2, 4, 8},
    "u": {1, 2, 4, 8},
    "f": {2, 4, 8, 10, 12, 16},
    "c": {4, 8, 16, 20, 24, 32},
    "m": {8},
    "M": {8},
}
UNITS = "Y M W D h m s ms us ns ps fs as".split()

TYPESTR = re.compile(r"([<>|=]?)([tbiufcmMOSUV])(0|[1-9][0-9]*)(?:\[([0-9]*)([A-Za-z]+)\])?")


@dataclass(frozen=True)
class Fault:
    """One reason to reject; `forgivable` ones are no faults in the lenient profile."""

    entry: str
    reason: str
    forgivable: bool = False


@dataclass(frozen=True)
class DType:
    """An element type; `n` is the number of bits, characters or bytes of the typestr."""

    kind: str
    n: int
    swapped: bool
    multiple: int = 1
    unit: str = ""

    @property
    def itemsize(self) -> int | None:
        """Bytes of an element, None for a bit field."""
        if self.kind == "t":
            return None
        return 4 * self.n if self.kind == "U" else self.n

    @property
    def alignment(self) -> int | None:
        """Natural alignment; None where it depends on the platform."""
        if self.kind in "tbSV":
            return 1
        if self.kind == "U":
            return 4
        if self.kind in "mM":
            return 8
        size = self.n // 2 if self.kind == "c" else self.n
        return size if size in (1, 2, 4, 8, 16) else None


@dataclass
class Field:
    """One tuple of a descr; `parent` is an index into the flat table or None."""

    name: str
    title: str | None
    offset: int  # from the start of the list that the tuple stands in
    nbytes: int  # repeats included
    dtype: DType | None  # None: nested
    shape: tuple[int, ...]
    parent: int | None


@dataclass
class Verdict:
    """What the reference says of one dictionary."""

    faults: list[Fault] = field(default_factory=list)
    facts: dict[str, Any] | None = None  # given when there is no hard fault

    def of(self, lenient: bool) -> list[Fault]:
        """The faults in a profile."""
        return [f for f in self.faults if not (lenient and f.forgivable)]

    def accepted(self, lenient: bool) -> bool:
        """Whether the profile accepts the dictionary."""
        return not self.of(lenient)

    def entries(self, lenient: bool) -> set[str]:
        """The entries at fault in a profile."""
        return {f.entry for f in self.of(lenient)}

    def add(self, entry: str, reason: str, forgivable: bool = False) -> None:
        """Writes down a fault."""
        self.faults.append(Fault(entry, reason, forgivable))


def is_int(value: object) -> bool:
    """A Python int that is not a bool."""
    return type(value) is int


# ---------------------------------------------------------------- typestr


def parse_typestr(value: object, entry: str, verdict: Verdict) -> DType | None:
    """The type that a typestr names (R30-R38), or None after a fault."""
    if isinstance(value, bytes):
        verdict.add(entry, "typestr is bytes", forgivable=True)
        value = value.decode("latin-1")
    if not isinstance(value, str):
        verdict.add(entry, "typestr is not a str")
        return None
    match = TYPESTR.fullmatch(value)
    if match is None:
        verdict.add(entry, "typestr grammar")
        return None
    order, kind, digits, multiple, unit = match.groups()
    if order in ("", "="):
        verdict.add(entry, "typestr without a byte order of its own", forgivable=True)
    n = int(digits)
    reason = type_fault(kind, n, multiple, unit)
    if reason:
        verdict.add(entry, reason)
        return None
    several_bytes = {"i": n, "u": n, "f": n, "c": 2, "m": 8, "M": 8, "U": 4}.get(kind, 1) > 1
    unit = "" if unit in (None, "generic") else unit
    return DType(kind, n, order == ">" and several_bytes, int(multiple or 1), unit)


def type_fault(kind: str, n: int, multiple: str | None, unit: str | None) -> str | None:
    """Why a typestr of the right grammar names no type, or None."""
    if kind == "O":
        return "object pointers mean nothing in device memory"
    if kind in SIZES and n not in SIZES[kind]:
        return "no such size of this kind"
    if not 1 <= n <= INT32_MAX or (kind == "U" and 4 * n > INT32_MAX):
        return "itemsize"
    if unit is None:
        return None
    if kind not in "mM":
        return "a unit on a type that has none"
    if unit == "generic":
        return "a multiple of generic" if multiple else None
    if unit not in UNITS:
        return "no such unit"
    if multiple and (multiple.startswith("0") or int(multiple) > INT32_MAX):
        return "multiple of the unit"
    return None


# ---------------------------------------------------------------- descr


class DescrReader:
    """Reads a descr into a flat table and adds up its bytes."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.fields: list[Field] = []
        self.count = 0

    def bad(self, reason: str, forgivable: bool = False) -> None:
        """Writes down a fault of descr."""
        self.verdict.add("descr", reason, forgivable)

    def items(self, value: object, depth: int, parent: int | None) -> int:
        """The bytes of a list of fields."""
        if isinstance(value, tuple):
            self.bad("a tuple in place of a list", forgivable=True)
        elif not isinstance(value, list):
            self.bad("descr is not a list")
            return 0
        if not value:
            self.bad("an empty list")
        if depth > MAX_DESCR_DEPTH:
            self.bad("nested too deeply")
            return 0
        names: list[str] = []
        total = 0
        for item in value:
            total += self.item(item, depth, parent, total, names)
        if len(names) != len(set(names)):
            self.bad("a name twice")
        return total

    def item(self, item: object, depth: int, parent: int | None, offset: int, names: list[str]) -> int:
        """The bytes of one field, repeats included."""
        self.count += 1
        if self.count > MAX_FIELDS:
            if self.count == MAX_FIELDS + 1:
                self.bad("too many fields")
            return 0
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            self.bad("a field is not a tuple of 2 or 3")
            return 0
        title, name = self.name(item[0])
        if name:
            names.append(name)
        shape = self.repeat(item[2]) if len(item) == 3 else ()
        index = len(self.fields)
        record = Field(name, title, offset, 0, None, shape, parent)
        self.fields.append(record)
        if isinstance(item[1], (list, tuple)):
            size = self.items(item[1], depth + 1, index)
        else:
            record.dtype = self.type(item[1])
            size = (record.dtype.itemsize or 0) if record.dtype else 0
        record.nbytes = size * product(shape)
        if max(size, record.nbytes) > INT32_MAX:  # no typestr is as large, but a repeat of 0 may hide it
            self.bad("a field beyond the limit of an itemsize")
        return record.nbytes

    def name(self, value: object) -> tuple[str | None, str]:
        """Title and name of a field."""
        if isinstance(value, str):
            return None, value
        if isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, str) for v in value):
            return value[0], value[1]
        self.bad("the name of a field")
        return None, ""

    def type(self, value: object) -> DType | None:
        """The type of a field; no bit fields."""
        dtype = parse_typestr(value, "descr", self.verdict)
        if dtype is not None and dtype.kind == "t":
            self.bad("a bit field within a record")
            return None
        return dtype

    def repeat(self, value: object) -> tuple[int, ...]:
        """The repeat shape of a field."""
        if is_int(value):
            self.bad("repeat is an int", forgivable=True)
            value = (value,)
        if not isinstance(value, tuple):
            self.bad("repeat is not a tuple")
            return ()
        if len(value) > MAX_REPEAT_DIMS:
            self.bad("repeat of too many dimensions")
        if not all(is_int(v) and 0 <= v <= INT64_MAX for v in value):
            self.bad("repeat")
            return ()
        return value


def judge_descr(value: Any, dtype: DType | None, verdict: Verdict) -> list[Field] | None:
    """The flat table of fields, or None for none (R40-R45)."""
    if value is None:
        return None
    if dtype is not None and dtype.kind == "t":
        verdict.add("descr", "a descr on a bit field")
    before = sum(not f.forgivable for f in verdict.faults)
    reader = DescrReader(verdict)
    total = reader.items(value, 1, None)
    if sum(not f.forgivable for f in verdict.faults) > before:
        return None  # a broken descr has no size of its own to compare
    if total > INT32_MAX or (dtype is not None and total != dtype.itemsize):
        verdict.add("descr", "not as many bytes as typestr")
    if len(reader.fields) == 1:
        only = reader.fields[0]
        plain = not only.name and only.title is None and len(value[0]) == 2
        if plain and dtype is not None and only.dtype == dtype:
            return None
    return reader.fields


# ---------------------------------------------------------------- numbers


def product(numbers: Any) -> int:
    """The product of integers."""
    result = 1
    for number in numbers:
        result *= number
    return result


def c_strides(shape: tuple[int, ...], unit: int) -> tuple[int, ...]:
    """The strides of C order (R20)."""
    return tuple(unit * product(max(d, 1) for d in shape[i + 1 :]) for i in range(len(shape)))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], unit: int) -> bool:
    """Whether the last index runs fastest and nothing lies between (R23)."""
    if 0 in shape:
        return True
    expected = unit
    for dim, stride in zip(reversed(shape), reversed(strides)):
        if dim != 1:
            if stride != expected:
                return False
            expected *= dim
    return True


def extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The bytes touched, relative to the first element (R27)."""
    if 0 in shape:
        return 0, 0
    steps = [(dim - 1) * stride for dim, stride in zip(shape, strides)]
    return sum(min(0, s) for s in steps), itemsize + sum(max(0, s) for s in steps)


def offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> Iterator[int]:
    """The byte offset of each element, in C order."""
    if not shape:
        yield 0
        return
    for i in range(shape[0]):
        for rest in offsets(shape[1:], strides[1:]):
            yield i * strides[0] + rest


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool | None:
    """Whether two elements share a byte; None where there are too many to look."""
    if 0 in shape:
        return False
    if product(shape) > SELF_OVERLAP_LIMIT:
        return None
    ordered = sorted(offsets(shape, strides))
    return any(b - a < itemsize for a, b in zip(ordered, ordered[1:]))


def is_aligned(shape: tuple[int, ...], strides: tuple[int, ...], data: int, dtype: DType) -> bool | None:
    """Address and strides are multiples of the natural alignment (R26)."""
    if dtype.alignment is None:
        return None
    if 0 in shape:
        return True
    used = [data] + [s for d, s in zip(shape, strides) if d > 1]
    return all(number % dtype.alignment == 0 for number in used)


# ---------------------------------------------------------------- entries


def judge_shape(value: object, verdict: Verdict) -> tuple[tuple[int, ...] | None, int | None]:
    """The shape, and the number of dimensions (known also of a faulty shape)."""
    if isinstance(value, list):
        verdict.add("shape", "shape is a list", forgivable=True)
    elif not isinstance(value, tuple):
        verdict.add("shape", "shape is missing or not a tuple")
        return None, None
    good = True
    if len(value) > MAX_NDIM:
        verdict.add("shape", "too many dimensions")
        good = False
    if not all(is_int(d) and 0 <= d <= INT64_MAX for d in value):
        verdict.add("shape", "a dimension is not an int from 0 to INT64_MAX")
        good = False
    return (tuple(value) if good else None), len(value)


def judge_strides(value: object, ndim: int | None, dtype: DType | None, verdict: Verdict) -> tuple[tuple[int, ...] | None, bool]:
    """The explicit strides or None, and whether they are good."""
    if value is None:
        return None, True
    if dtype is not None and dtype.kind == "t":
        verdict.add("strides", "strides on a bit field")
        return None, False
    if isinstance(value, list):
        verdict.add("strides", "strides is a list", forgivable=True)
    elif not isinstance(value, tuple):
        verdict.add("strides", "strides is not a tuple")
        return None, False
    good = True
    if not all(is_int(s) and INT64_MIN <= s <= INT64_MAX for s in value):
        verdict.add("strides", "a stride is not an int of 64 bits")
        good = False
    if ndim is not None and len(value) != ndim:
        verdict.add("strides", "not as many strides as dimensions")
        good = False
    return (tuple(value) if good else None), good


def judge_data(value: object, shape: tuple[int, ...] | None, verdict: Verdict) -> tuple[int | None, bool]:
    """Address and read-only flag (R5, R6, R12-R14)."""
    if isinstance(value, list):
        verdict.add("data", "data is a list", forgivable=True)
    elif not isinstance(value, tuple):
        verdict.add("data", "data is missing or not a tuple")
        return None, False
    if len(value) < 2:
        verdict.add("data", "data has fewer than two items")
        return None, False
    if len(value) > 2:
        verdict.add("data", "data has more than two items", forgivable=True)
    pointer, read_only = value[0], value[1]
    if not (isinstance(read_only, bool) or (is_int(read_only) and read_only in (0, 1))):
        verdict.add("data", "the read-only flag is no bool", forgivable=True)
    empty = shape is not None and 0 in shape
    if pointer is None:
        if shape is None or empty:
            verdict.add("data", "the pointer is None", forgivable=True)
        if not empty:  # of a faulty shape nobody can say: both
            verdict.add("data", "the pointer of a non-empty array is None")
        return 0, bool(read_only)
    if not (is_int(pointer) and 0 <= pointer <= UINT64_MAX):
        verdict.add("data", "the pointer is not an int from 0 to 2^64 - 1")
        return None, bool(read_only)
    if pointer == 0 and shape is not None and not empty:
        verdict.add("data", "NULL with at least one element")
    return pointer, bool(read_only)


def judge_version(table: dict[Any, Any], verdict: Verdict) -> int:
    """The version (R8, R61)."""
    if "version" not in table:
        verdict.add("version", "version is missing", forgivable=True)
        return 0
    value = table["version"]
    if not (is_int(value) and 0 <= value <= INT32_MAX):
        verdict.add("version", "version is not an int from 0 to INT32_MAX")
        return 0
    return value


def judge_stream(value: object, verdict: Verdict) -> int | None:
    """The stream (R70-R74)."""
    if value is not None and not (is_int(value) and 1 <= value <= UINT64_MAX):
        verdict.add("stream", "stream is not an int from 1 to 2^64 - 1")
        return None
    return value  # type: ignore[return-value]


def judge_mask(value: object, shape: tuple[int, ...] | None, verdict: Verdict) -> dict[str, Any] | None:
    """The facts of the mask; its faults are faults of the entry mask (R50-R53)."""
    if value is None:
        return None
    if not isinstance(value, dict):
        verdict.add("mask", "mask exposes no interface")
        return None
    inner = judge({k: v for k, v in value.items() if k != "mask"})
    for fault in inner.faults:
        verdict.add("mask", "mask: " + fault.reason, fault.forgivable)
    if value.get("mask") is not None:
        verdict.add("mask", "a mask of a mask")
    if inner.facts is None:
        return None
    mask_shape = inner.facts["shape"]
    if shape is not None:
        fits = len(mask_shape) <= len(shape) and all(
            m in (1, d) for m, d in zip(reversed(mask_shape), reversed(shape))
        )
        if not fits:
            verdict.add("mask", "mask does not broadcast to the array")
    return inner.facts


# ---------------------------------------------------------------- the whole


def judge_sizes(shape: tuple[int, ...], dtype: DType | None, verdict: Verdict) -> None:
    """Elements and bytes fit int64, dimensions of zero left out (R18)."""
    count = product(d for d in shape if d != 0)
    if count > INT64_MAX:
        verdict.add("shape", "too many elements")
    if dtype is not None and nbytes_of(count, dtype) > INT64_MAX:
        verdict.add("shape", "too many bytes")
        verdict.add("typestr", "too many bytes")


def nbytes_of(count: int, dtype: DType) -> int:
    """The bytes of so many elements, bit fields packed (R33)."""
    if dtype.kind == "t":
        return (count * dtype.n + 7) // 8
    return count * (dtype.itemsize or 0)


def judge_extent(low: int, high: int, data: int | None, verdict: Verdict) -> None:
    """The bytes touched lie in the address space (R27, R28)."""
    if low < INT64_MIN or high > INT64_MAX:
        verdict.add("strides", "the extent does not fit int64")
    if data is not None and (data + low < 0 or data + high > UINT64_MAX + 1):
        for entry in ("data", "strides", "shape"):
            verdict.add(entry, "the address range wraps")


def judge(table: object) -> Verdict:
    """Judges one dictionary by all rules."""
    verdict = Verdict()
    if not isinstance(table, dict):
        verdict.add("", "no dictionary")
        return verdict
    shape, ndim = judge_shape(table.get("shape"), verdict)
    dtype = parse_typestr(table.get("typestr"), "typestr", verdict)
    data, read_only = judge_data(table.get("data"), shape, verdict)
    version = judge_version(table, verdict)
    strides, good_strides = judge_strides(table.get("strides"), ndim, dtype, verdict)
    fields = judge_descr(table.get("descr"), dtype, verdict)
    stream = judge_stream(table.get("stream"), verdict)
    mask = judge_mask(table.get("mask"), shape, verdict)
    if shape is None:
        return verdict
    judge_sizes(shape, dtype, verdict)
    if dtype is None or not good_strides:
        return verdict
    facts = layout_facts(shape, strides, dtype, data)
    if 0 not in shape:
        judge_extent(*facts["extent"], data, verdict)
    if any(not f.forgivable for f in verdict.faults):
        return verdict
    synchronized = "stream" in table or version >= 3
    facts.update(
        read_only=read_only,
        byte_swapped=dtype.swapped,
        dtype=dtype,
        version=version,
        stream=stream,
        sync="stream" if stream is not None else "none" if synchronized else "unknown",
        fields=fields,
        mask=mask,
    )
    verdict.facts = facts
    return verdict


def layout_facts(shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: DType, data: int | None) -> dict[str, Any]:
    """Everything that follows from shape, strides, type and address."""
    bits = dtype.kind == "t"
    unit = dtype.n if bits else dtype.itemsize or 0
    filled = c_strides(shape, unit) if strides is None else strides
    size = product(shape)
    nbytes = nbytes_of(size, dtype)
    flipped = tuple(reversed(shape)), tuple(reversed(filled))
    address = 0 if size == 0 else data or 0
    return {
        "itemsize": None if bits else unit,
        "ndim": len(shape),
        "shape": list(shape),
        "size": size,
        "nbytes": nbytes,
        "strides": None if bits else list(filled),
        "c_contiguous": is_contiguous(shape, filled, unit),
        "f_contiguous": is_contiguous(*flipped, unit),
        "extent": [0, nbytes] if bits else list(extent(shape, filled, unit)),
        "self_overlap": False if bits else overlaps_itself(shape, filled, unit),
        "aligned": True if bits else is_aligned(shape, filled, address, dtype),
        "data": address,
    }


def judge_line(line: str) -> Verdict:
    """Judges one line as Python's repr prints a dictionary."""
    try:
        table = ast.literal_eval(line)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        table = None
    return judge(table)
