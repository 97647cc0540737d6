#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests whether an array of Python keeps the rules of the CUDA Array Interface, of DLPack and of the exchange in C; and
whether a stream object keeps those of __cuda_stream__.

    python tools/cai_conform.py [--rules] MODULE:EXPRESSION ...
    python tools/cai_conform.py --consumer MODULE:FUNCTION ...

--consumer: the function gets hard arrays, and is judged by what it makes of them (cai_conform_consumer.py).
For each object: one line for each rule that is broken, and "N rules checked, M broken, K not checkable (why)".
--rules prints all rules. From Python: check(obj) returns the findings, examine(obj) also what was checked.
Exit status 0: nothing is broken; 1: something is; 2: an object cannot be made, or offers nothing to check.

Standard library alone, and no CUDA. An object is asked as any consumer would ask it, and all is given back. No memory
of the array is read or written, no stream is made, and no kernel is launched. docs/conform.md explains each check.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import re
import sys
import time
import weakref
from ctypes import POINTER, PYFUNCTYPE, Structure, byref, c_char_p, c_int, c_int32, c_int64, c_uint32, c_uint64
from ctypes import c_void_p, py_object
from math import prod
from typing import Any, Callable, Iterator, NamedTuple

CAI, API, HEADER = "CUDA Array Interface 3", "array API 2024.12, __dlpack__", "dlpack.h 1.3"
SPEC, EXCHANGE, POLICY = "DLPack, Python specification", "docs/c-exchange.md", "policy of cai"
NUMPY, STREAM = "NumPy's array interface", "cuda.core, the stream protocol"

RULES = {
    "R1": ("the attribute is a dict", CAI),
    "R2": ("shape, typestr, data and version are required", CAI),
    "R3": ("shape is a tuple of ints", CAI),
    "R4": ("typestr is a str", CAI),
    "R5": ("data is a tuple of 2: a pointer as an int, 0 to 2^64 - 1, and read-only", CAI),
    "R6": ("read-only is a bool", CAI),
    "R7": ("the data is accessible from the device", CAI),
    "R8": ("version is an int, 0 or more", CAI),
    "R12": ("an empty array exports the pointer 0", CAI),
    "R14": ("the pointer 0 is wrong with at least one element", NUMPY),
    "R17": ("no extent is negative", NUMPY),
    "R18": ("the count of elements and bytes fits 63 bits, extents of 0 left out", NUMPY),
    "R19": ("strides is None or a tuple of ints", CAI),
    "R20": ("strides None means C order", CAI),
    "R22": ("strides has as many items as shape", CAI),
    "R28": ("all bytes lie in 0 to 2^64", POLICY),
    "R29": ("at most 64 dimensions", NUMPY),
    "R30": ("typestr is a byte order, a kind, a number, and a unit for m and M alone", NUMPY),
    "R32": ("the kind has items of this size", NUMPY),
    "R33": ("bit fields have no strides", POLICY),
    "R34": ("the unit is one of NumPy's", NUMPY),
    "R37": ("O has no meaning in device memory", POLICY),
    "R38": ("items have at least one byte", POLICY),
    "R40": ("descr is a list of tuples of 2 or 3", NUMPY),
    "R41": ("the bytes of descr add up to those of typestr", NUMPY),
    "R43": ("a field has a typestr or a list, and a tuple of repeats", NUMPY),
    "R44": ("a name is a str or a pair of them, and unique in its list", NUMPY),
    "R45": ("lists nest up to 32 deep", POLICY),
    "R50": ("mask is None, or an object that exports the interface", CAI),
    "R51": ("the shape of the mask broadcasts to that of the array", NUMPY),
    "R71": ("the stream 0 is disallowed: it could be None or either default stream", CAI),
    "R74": ("stream is None, 1, 2, or a handle as an int; -1 is DLPack's", CAI),
    "S1": ("two reads in a row say the same", POLICY),
    "S2": ("what was read and given back leaves no reference to the object", POLICY),
    "S3": ("an object without a dictionary raises AttributeError, so that hasattr can ask", "Python, hasattr"),
    "S4": ("what an object is asked for does not raise by chance, or from its other attributes", POLICY),
    "S5": ("values that are negated or conjugated when they are read are not exported", POLICY),
    "S6": ("strides are in bytes: no element begins inside another one", POLICY),
    "C1": ("__cuda_stream__ is a method that returns a tuple of 2", STREAM),
    "C2": ("the first item is the version 0", STREAM),
    "C3": ("the second item is the handle as an int, 0 to 2^64 - 1", STREAM),
    "D1": ("__dlpack__ and __dlpack_device__ come together", API),
    "D2": ("__dlpack_device__() is a tuple of a type of device and a number", API),
    "D3": ("__dlpack__ takes no positional arguments", API),
    "D4": ("__dlpack__ takes stream, max_version, dl_device and copy", API),
    "D5": ('the result is a capsule "dltensor" or "dltensor_versioned"', SPEC),
    "D6": ("without max_version the struct is that of before DLPack 1.0", API),
    "D7": ("the major version is the one that was asked for", API),
    "D8": ("ndim is 0 or more, shape is there, and no extent is negative", HEADER),
    "D9": ("strides are there, from version 1.2 on", HEADER),
    "D10": ("the dtype has a code, bits and lanes", HEADER),
    "D11": ("data is NULL if there is no element, and only then", HEADER),
    "D12": ("the tensor is on the device of __dlpack_device__", API),
    "D13": ("the tensor is what the dictionary describes", POLICY),
    "D14": ("read-only memory has the flag; a struct without flags cannot say it", HEADER),
    "D15": ("a capsule that nobody used calls the deleter when it goes", SPEC),
    "D16": ("a capsule that was used does not call the deleter", SPEC),
    "D17": ("copy=True makes a copy and sets the flag, copy=False makes none", API),
    "D18": ("the stream 0 is disallowed for CUDA, and all but None for the host", API),
    "D19": ("the tensor is the same for each stream that is taken", POLICY),
    "D20": ("dl_device: the own one is taken, one that is not there raises BufferError", API),
    "D21": ("what cannot be exported raises BufferError", API),
    "D22": ("for CUDA a stream besides None is taken: consumers pass one", API),
    "D23": ("what has a dictionary is on a device that has one", CAI),
    "T1": ('the type has the attribute, a capsule "dlpack_exchange_api"', HEADER),
    "T2": ("a table of major version 1 is in the chain, and later ones come first", HEADER),
    "T3": ("all functions but dltensor_from_py_object_no_sync are there", HEADER),
    "T4": ("managed_tensor_from_py_object_no_sync gives a tensor, or -1 and a BufferError", HEADER),
    "T5": ("its tensor is right, and that of __dlpack__ and of the dictionary", HEADER),
    "T6": ("dltensor_from_py_object_no_sync gives the same tensor, or -1 and a BufferError", HEADER),
    "T7": ("current_work_stream returns 0", HEADER),
    "X1": ('the type has the capsule "__cai_exchange__", whose context is a weak reference to the type', EXCHANGE),
    "X2": ("abi is 0x43414931, struct_size at least 24, describe is there", EXCHANGE),
    "X3": ("describe returns 0, or -1 and a BufferError", EXCHANGE),
    "X4": ("the head of the array is of this layout, and has no bits of a later one", EXCHANGE),
    "X5": ("size, bytes, extent and flags follow from shape, strides and dtype", EXCHANGE),
    "X6": ("the array is what the dictionary describes, its stream included", EXCHANGE),
    "X7": ("the stream is not 0 with CAI_SYNC_STREAM, the event not with CAI_SYNC_EVENT", EXCHANGE),
    "X8": ("release sets itself to NULL", EXCHANGE),
    "X9": ("adopt refuses a borrowed array with BufferError, and leaves it as it was", EXCHANGE),
}  # fmt: skip


class Finding(NamedTuple):
    rule: str
    found: str
    says: str
    source: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.found}; {self.says} [{self.source}]"


def named(rules: list[str]) -> str:
    """The ids, or "all R" if that is what they are."""
    for letter in "RCDTX":
        group = [rule for rule in RULES if rule[0] == letter]
        if set(group) <= set(rules):
            rules = [f"all {letter}"] + [rule for rule in rules if rule not in group]
    return " ".join(rules)


class Report:
    """What was checked of one object, what is broken, and why the rest was not checked."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.checked: set[str] = set()
        self.skipped: dict[str, str] = {}
        self.where = ""  # before what is found, in a mask

    def expect(self, rule: str, right: Any, found: str) -> bool:
        self.checked.add(rule)
        if not right:
            found = self.where + " ".join(found.split())  # in one line, also what others raise
            finding = Finding(rule, found if len(found) <= 160 else found[:157] + "...", *RULES[rule])
            self.findings += [finding] if finding not in self.findings else []
        return bool(right)

    def skip(self, rules: str, why: str) -> None:
        """Rules whose ids match the pattern, as far as they are not checked by the end."""
        self.skipped.update((rule, why) for rule in RULES if re.fullmatch(rules, rule) and rule not in self.skipped)

    def unchecked(self) -> dict[str, list[str]]:
        """The rules that were not checked, by the reason."""
        out: dict[str, list[str]] = {}
        for rule in RULES.keys() - self.checked:
            out.setdefault(self.skipped.get(rule, "nothing of this array depends on them"), []).append(rule)
        return {why: sorted(rules, key=list(RULES).index) for why, rules in out.items()}

    def summary(self) -> str:
        why = "; ".join(f"{named(rules)}: {why}" for why, rules in sorted(self.unchecked().items()))
        broken = {finding.rule for finding in self.findings}
        return (f"{len(self.checked)} rules checked, {len(broken)} broken, "
                f"{len(RULES) - len(self.checked)} not checkable" + (f" ({why})" if why else ""))  # fmt: skip


class Facts(NamedTuple):
    """An array, by whatever described it. Strides are in bytes; read_only None: not said."""

    data: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str  # "" for those that not all can say
    itemsize: int
    read_only: bool | None = None


def c_order(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(shape[i], 1)
    return tuple(strides)


def extent(of: Facts) -> tuple[int, int]:
    """The bytes of the array, from its first element."""
    if 0 in of.shape:
        return 0, 0
    steps = [(n - 1) * stride for n, stride in zip(of.shape, of.strides)]
    return sum(min(0, step) for step in steps), of.itemsize + sum(max(0, step) for step in steps)


def differences(one: Facts, two: Facts) -> str:
    """In words; "" if both are the same array. Strides count where an extent is above 1."""
    out = [] if one.shape == two.shape else [f"shape {one.shape} and {two.shape}"]
    if not out and prod(one.shape):
        strides = [[s for n, s in zip(of.shape, of.strides) if n > 1] for of in (one, two)]
        out += [f"strides {one.strides} and {two.strides}"] * (strides[0] != strides[1])
        out += [f"data {one.data:#x} and {two.data:#x}"] * (one.data != two.data)
    out += [f"items of {one.itemsize} and {two.itemsize} bytes"] * (one.itemsize != two.itemsize)
    out += [f"kinds {one.kind} and {two.kind}"] * (one.kind != two.kind and bool(one.kind and two.kind))
    if None not in (one.read_only, two.read_only) and one.read_only != two.read_only:
        out.append("one of them read-only")
    return ", ".join(out)


def settled(right: Callable[[], bool]) -> bool:
    """Whether something becomes so: some libraries let go of an array on a thread of their own, soon after."""
    for attempt in range(20):
        if right():
            return True
        gc.collect() if attempt == 0 else time.sleep(0.02)
    return False


def synchronize() -> None:
    """Waits for the work of the context, if the process has a driver and a context."""
    driver = loaded_driver()
    if driver:
        driver.cuCtxSynchronize()


def check_references(report: Report, obj: Any, what: str, action: Callable[[], Any]) -> None:
    """Whether each call leaves a reference. A type may give it back at a later call, when its stream has passed: the
    references grow for some calls, and then no more."""
    action()
    before, calls = sys.getrefcount(obj), 0

    def stops() -> bool:
        nonlocal calls
        if calls:
            synchronize()
        more = 10 if calls else 4
        for _ in range(more):
            action()
        calls += more
        return sys.getrefcount(obj) - before < calls // 2

    report.expect("S2", settled(stops), f"{what} leaves a reference to the object each time")


# ------------------------------------------------------------------------------------------------ the dictionary
SIZES = {"b": {1}, "i": {1, 2, 4, 8}, "u": {1, 2, 4, 8}, "f": {2, 4, 8, 10, 12, 16}, "c": {4, 8, 16, 20, 24, 32},
         "m": {8}, "M": {8}}  # fmt: skip
UNITS = "Y M W D h m s ms us ns ps fs as".split()
TYPESTR = re.compile(r"([<>|])([tbiufcmMOSUV])(0|[1-9][0-9]*)(\[([1-9][0-9]*)?([A-Za-z]+)\])?")


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def are_ints(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(is_int, value))


def check_typestr(report: Report, text: str) -> tuple[str, int]:
    """The kind, and the bytes of an item; ("", 0) if the text is wrong. A swapped dtype is a kind of its own."""
    match = TYPESTR.fullmatch(text)
    right = match and (not match[4] or match[2] in "mM")
    if not report.expect("R30", right, f"the typestr is {text!r}") or not match:
        return "", 0
    kind, number = match[2], int(match[3])
    right = report.expect("R37", kind != "O", f"the typestr is {text!r}")
    right &= report.expect("R38", number or kind in SIZES, f"the typestr is {text!r}")
    right &= report.expect("R32", kind not in SIZES or number in SIZES[kind], f"the typestr is {text!r}")
    if match[4]:
        right &= report.expect("R34", match[6] in UNITS, f"the unit is {match[6]!r}")
    size = (number + 7) // 8 if kind == "t" else 4 * number if kind == "U" else number
    swapped = match[1] == ("<" if sys.byteorder == "big" else ">") and kind in "iufcmMU" and size > 1
    return ("swapped " * swapped + kind, size) if right else ("", 0)


def descr_bytes(report: Report, rows: Any, depth: int = 1) -> int | None:
    """The bytes of a record; None if it is wrong."""
    if not report.expect("R45", depth <= 32, "descr nests deeper than 32 lists"):
        return None
    right = isinstance(rows, list) and rows and all(isinstance(row, tuple) and len(row) in (2, 3) for row in rows)
    if not report.expect("R40", right, f"descr is {rows!r}"):
        return None
    names, total = [], 0
    for row in rows:
        repeats = row[2] if len(row) == 3 else ()
        right = are_ints(repeats) and min(repeats, default=0) >= 0 and isinstance(row[1], (str, list))
        if not report.expect("R43", right, f"a field is {row!r}"):
            return None
        names.append(row[0][1] if isinstance(row[0], tuple) and len(row[0]) == 2 else row[0])
        size = check_typestr(report, row[1])[1] if isinstance(row[1], str) else descr_bytes(report, row[1], depth + 1)
        if not size:
            return None
        total += size * prod(repeats)
    named = [name for name in names if name != ""]
    right = all(isinstance(name, str) for name in names) and len(set(named)) == len(named)
    return total if report.expect("R44", right, f"the names are {names!r}") else None


def check_mask(report: Report, mask: Any, shape: tuple[int, ...]) -> None:
    if not report.expect("R50", mask is None or hasattr(mask, "__cuda_array_interface__"), f"mask is {mask!r}"):
        return
    if mask is None or report.where:  # a mask of a mask is nobody's
        return report.skip("R51", "it has no mask")
    report.where = "mask: "
    facts = check_dictionary(report, mask)
    report.where = ""
    if facts:
        pairs = zip(reversed(facts.shape), reversed(shape))
        right = len(facts.shape) <= len(shape) and all(m in (1, n) for m, n in pairs)
        report.expect("R51", right, f"the mask has the shape {facts.shape}, the array {shape}")


def check_stream(report: Report, stream: Any) -> None:
    if report.expect("R74", stream is None or is_int(stream) and stream >= 0, f"stream is {stream!r}"):
        report.expect("R71", stream != 0 or stream is None, "stream is 0")


def check_data(report: Report, data: Any, shape: tuple[int, ...]) -> tuple[int, bool] | None:
    right = isinstance(data, tuple) and len(data) == 2 and is_int(data[0]) and 0 <= data[0] < 1 << 64
    if not report.expect("R5", right, f"data is {data!r}"):
        return None
    report.expect("R6", isinstance(data[1], bool) or data[1] in (0, 1), f"read-only is {data[1]!r}")
    if 0 in shape:
        report.expect("R12", data[0] == 0, f"the shape is {shape}, the pointer {data[0]:#x}")
    else:
        report.expect("R14", data[0], f"the shape is {shape}, the pointer 0")
    return data[0], bool(data[1])


def check_shape(report: Report, shape: Any) -> bool:
    return (report.expect("R3", are_ints(shape), f"shape is {shape!r}")
            and report.expect("R29", len(shape) <= 64, f"shape has {len(shape)} extents")
            and report.expect("R17", min(shape, default=0) >= 0, f"shape is {shape!r}"))  # fmt: skip


def check_strides(report: Report, entries: Any, kind: str, itemsize: int, obj: Any) -> tuple[int, ...] | None:
    """The strides in bytes, whoever said them."""
    shape, strides = entries["shape"], entries.get("strides")
    ordered = c_order(shape, itemsize)
    if kind == "t" and not report.expect("R33", strides is None, f"strides is {strides!r}"):
        return None
    if not report.expect("R19", strides is None or are_ints(strides), f"strides is {strides!r}"):
        return None
    if strides is not None:
        right = report.expect("R22", len(strides) == len(shape), f"strides is {strides!r}, shape {shape!r}")
        return strides if right else None
    own, own_shape = getattr(obj, "strides", None), getattr(obj, "shape", None)
    if not (are_ints(own) and are_ints(own_shape) and len(own) == len(shape) and tuple(own_shape) == tuple(shape)):
        report.skip("R20", "it has strides, or no attributes that say the same shape and strides")
        return ordered
    facts = [Facts(0, shape, s, "", itemsize) for s in (own, ordered, c_order(shape, 1))]
    right = not differences(facts[0], facts[1]) or not differences(facts[0], facts[2])  # bytes, or elements
    report.expect("R20", right, f"strides is None, and the array says {own!r}")
    return ordered


def loaded_driver() -> Any:
    """CUDA's driver, if the process has it already: none is loaded."""
    try:
        return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (OSError, AttributeError):
        return None


def check_driver(report: Report, facts: Facts) -> None:
    """Asks CUDA's driver for the first and the last byte."""
    driver = loaded_driver()
    if not driver:
        return report.skip("R7", "no CUDA driver is loaded")
    pageable, kind, (lo, hi) = c_int(), c_uint32(), extent(facts)
    if driver.cuDeviceGetAttribute(byref(pageable), 88, 0) or pageable.value:
        return report.skip("R7", "the device has no driver that knows, or it reads all memory of the host")
    states = [driver.cuPointerGetAttribute(byref(kind), 2, c_uint64(facts.data + at)) for at in (lo, hi - 1)]
    if hi and not set(states) - {0, 1}:
        report.expect("R7", not any(states), f"the driver does not know the {'first' if states[0] else 'last'} byte")


def check_entries(report: Report, entries: dict[str, Any], obj: Any) -> Facts | None:
    """What the dictionary describes; None if it is not clear."""
    missing = [key for key in ("shape", "typestr", "data", "version") if key not in entries]
    report.expect("R2", not missing, f"without {', '.join(missing)}")
    version = entries.get("version", 3)
    report.expect("R8", is_int(version) and version >= 0, f"version is {version!r}")
    check_stream(report, entries.get("stream"))
    if missing or not check_shape(report, entries["shape"]):
        return None
    shape = entries["shape"]
    data = check_data(report, entries["data"], shape)
    check_mask(report, entries.get("mask"), shape)
    typestr = entries["typestr"]
    if not report.expect("R4", isinstance(typestr, str), f"typestr is {typestr!r}"):
        return None
    kind, itemsize = check_typestr(report, typestr)
    if not itemsize:
        return None
    if entries.get("descr") is not None:
        size = descr_bytes(report, entries["descr"])
        report.expect("R41", size in (None, itemsize), f"descr has {size} bytes, typestr {itemsize}")
    total = prod(n for n in shape if n) * itemsize
    if not report.expect("R18", total < 1 << 63, f"the shape is {shape}, an item {itemsize} bytes"):
        return None
    strides = check_strides(report, entries, kind, itemsize, obj)
    if data is None or strides is None:
        return None
    inside = kind != "t" and any(n > 1 and 0 < abs(stride) < itemsize for n, stride in zip(shape, strides))
    report.expect("S6", not inside, f"strides is {strides}, an item has {itemsize} bytes")
    facts = Facts(data[0], shape, strides, kind, itemsize, data[1])
    lo, hi = extent(facts)
    if report.expect("R28", hi == 0 or facts.data + lo >= 0 and facts.data + hi <= 1 << 64,
                     f"data {facts.data:#x}, the bytes {lo} to {hi} from there"):  # fmt: skip
        check_driver(report, facts)
    return facts


def check_dictionary(report: Report, obj: Any) -> Facts | None:
    try:
        entries = obj.__cuda_array_interface__
        again = obj.__cuda_array_interface__
    except AttributeError:
        return report.skip("R.*", "it has no __cuda_array_interface__")
    except Exception as error:
        report.expect("S3", False, f"reading the dictionary raises {error!r}")
        return None
    if not report.expect("R1", isinstance(entries, dict), f"it is {type(entries).__name__}"):
        return None
    same = isinstance(again, dict) and all(entries[key] == again.get(key) for key in entries if key != "mask")
    report.expect("S1", same and entries.keys() == again.keys(), f"{entries!r}, and {again!r}")
    check_references(report, obj, "the dictionary", lambda: obj.__cuda_array_interface__)
    return check_entries(report, dict(entries), obj)


# -------------------------------------------------------------------------------------------------------- DLPack
class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]  # fmt: skip


class Legacy(Structure):
    """DLManagedTensor, of before DLPack 1.0."""

    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class Versioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", Tensor)]  # fmt: skip


DELETER = PYFUNCTYPE(None, c_void_p)  # with the GIL, which a deleter may need and may not ask for
READ_ONLY, COPIED, PADDED = 1, 2, 4
HOST_DEVICE, CUDA_DEVICES, NO_DEVICE = 1, (2, 13), (12, 0)
NAMES = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}
DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
MAX_VERSION = (1, 3)
KEYWORDS = {"stream": -1, "max_version": MAX_VERSION, "dl_device": (2, 0), "copy": False}  # what may stand there

api = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle)  # argument types of our own
api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = [py_object, c_char_p]
api.PyCapsule_GetPointer.restype = api.PyCapsule_GetContext.restype = c_void_p
api.PyCapsule_SetName.argtypes = [py_object, c_char_p]
api.PyCapsule_GetContext.argtypes = [py_object]


class Managed:
    """A tensor with a deleter. Its deleter is replaced by one that counts the calls, and passes the first one on."""

    alive: set[Managed] = set()  # those that were not deleted: C has a pointer to them

    def __init__(self, pointer: int, versioned: bool) -> None:
        self.pointer, self.calls = pointer, 0
        self.struct: Any = (Versioned if versioned else Legacy).from_address(pointer)
        self.version = (self.struct.major, self.struct.minor) if versioned else (0, 0)
        self.flags = self.struct.flags if versioned else 0
        self.original = self.struct.deleter
        self.stand_in = DELETER(self.called)
        if self.original:
            self.struct.deleter = ctypes.cast(self.stand_in, c_void_p).value
            Managed.alive.add(self)

    def called(self, pointer: int) -> None:
        self.calls += 1
        if self.calls == 1 and self.original:
            DELETER(self.original)(pointer)

    def delete(self) -> None:
        if not self.calls:
            self.called(self.pointer)


def tensor_faults(tensor: Tensor, version: tuple[int, int]) -> Iterator[tuple[str, bool, str]]:
    """(rule, whether it is kept, what was found); ends where the rest cannot be read."""
    right = 0 <= tensor.ndim <= 64 and (tensor.ndim == 0 or bool(tensor.shape))
    shape = tensor.shape[: tensor.ndim] if right and tensor.ndim else []
    right = right and min(shape, default=0) >= 0
    yield "D8", right, f"ndim is {tensor.ndim}, shape {shape or 'NULL'}"
    right_dtype = tensor.code <= 17 and tensor.bits > 0 and tensor.lanes > 0
    yield "D10", right_dtype, f"code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes"
    if right:
        right = tensor.ndim == 0 or bool(tensor.strides) or version < (1, 2)
        yield "D9", right, "strides is NULL"
        yield "D11", bool(tensor.data) == (0 not in shape), f"the shape is {tuple(shape)}, data {tensor.data or 0:#x}"


def tensor_facts(tensor: Tensor, read_only: bool | None) -> Facts:
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    itemsize = (tensor.bits * tensor.lanes + 7) // 8
    has_strides = tensor.ndim and tensor.strides
    strides = tuple(itemsize * s for s in tensor.strides[: tensor.ndim]) if has_strides else c_order(shape, itemsize)
    kind = DLPACK_KINDS.get(tensor.code, "")
    return Facts((tensor.data or 0) + tensor.byte_offset, shape, strides, kind, itemsize, read_only)


def has_bytes(tensor: Tensor, flags: int) -> bool:
    """Whether an element is whole bytes. If not, shape and strides count values: a dictionary cannot say that."""
    return tensor.bits * tensor.lanes % 8 == 0 or bool(flags & PADDED)


class Asked:
    """What __dlpack__ answers. error: what it raised; managed: None if it is no capsule of DLPack."""

    def __init__(self, obj: Any, **keywords: Any) -> None:
        self.capsule = self.error = self.managed = None
        self.name = b""
        try:
            self.capsule = obj.__dlpack__(**keywords)
        except Exception as error:
            self.error = error.with_traceback(None)
            return
        for name in NAMES:
            if api.PyCapsule_IsValid(self.capsule, name):
                self.name = name
                self.managed = Managed(api.PyCapsule_GetPointer(self.capsule, name), name != b"dltensor")

    def readable(self) -> bool:
        """Whether the struct is one that we know, and its tensor can be read."""
        if not self.managed or self.name != b"dltensor" and self.managed.version[0] != 1:
            return False
        faults = tensor_faults(self.managed.struct.tensor, self.managed.version)
        return all(right for rule, right, _ in faults if rule in ("D8", "D10"))

    def facts(self) -> Facts:
        read_only = bool(self.managed.flags & READ_ONLY) if self.name != b"dltensor" else None
        return tensor_facts(self.managed.struct.tensor, read_only)

    def copied(self) -> bool:
        return self.name != b"dltensor" and bool(self.managed.flags & COPIED)

    def differs(self, other: Facts) -> str:
        """From what somebody else says of the array. A copy may be elsewhere, in another order, and writable."""
        facts = self.facts()
        if not has_bytes(self.managed.struct.tensor, self.managed.flags):
            return ""
        if self.copied():
            other = other._replace(data=facts.data, strides=facts.strides, read_only=None)
        return differences(other, facts)

    def use(self) -> None:
        """As a consumer does: renames the capsule, drops it, and deletes the tensor."""
        if self.managed:
            api.PyCapsule_SetName(self.capsule, NAMES[self.name])
            self.capsule = None
            self.managed.delete()


def check_device(report: Report, obj: Any) -> tuple[int, int] | None:
    try:
        device = obj.__dlpack_device__()
    except Exception as error:
        device = error
    right = isinstance(device, tuple) and len(device) == 2 and all(map(is_int, device)) and min(device) >= 0
    return (int(device[0]), int(device[1])) if report.expect("D2", right, f"it is {device!r}") else None


def check_keywords(report: Report, obj: Any) -> dict[str, Any]:
    """The keywords with which we ask from then on."""
    try:
        obj.__dlpack__(None)
        report.expect("D3", False, "it takes one, the stream or whatever it is")
    except Exception:
        report.expect("D3", True, "")
    plain, missing = Asked(obj).error, []
    for name, value in KEYWORDS.items():
        error = Asked(obj, **{name: None}).error
        if not isinstance(error, TypeError):
            continue
        if isinstance(plain, TypeError):  # perhaps by the array: is this about the keyword?
            taken = str(error) == str(plain) or name not in str(error)
        else:
            taken = not isinstance(Asked(obj, **{name: value}).error, TypeError)
            report.expect("D4", not taken, f"{name}=None raises {error!r}")
        missing += [] if taken else [name]
    report.expect("D4", not missing, f"it does not take {', '.join(missing)}")
    if "copy" in missing:
        report.skip("D17", "it takes no copy")
    if "dl_device" in missing:
        report.skip("D20", "it takes no dl_device")
    if "stream" in missing:
        report.skip("D18|D19", "it takes no stream")
    return {} if "max_version" in missing else {"max_version": MAX_VERSION}


def check_capsules(report: Report, obj: Any, keywords: dict[str, Any]) -> Asked | None:
    """A tensor that can be read, or None."""
    plain, asked = Asked(obj), Asked(obj, **keywords)
    for each in (plain, asked):
        report.expect("D21", not each.error or isinstance(each.error, BufferError), f"it raises {each.error!r}")
    if asked.error:
        return report.skip("D.*|T5", f"it cannot be exported: {asked.error}")
    for each in (plain, asked):
        report.expect("D5", each.managed or each.error, f"it is {each.capsule!r}")
    report.expect("D6", plain.name != b"dltensor_versioned", "it is the struct with versions")
    if asked.name == b"dltensor_versioned":
        report.expect("D7", asked.managed.version[0] == 1, f"it is {asked.managed.version[0]}, asked was 1")
    return asked if asked.managed and (asked.name == b"dltensor" or asked.managed.version[0] == 1) else None


def check_deleters(report: Report, obj: Any, keywords: dict[str, Any]) -> None:
    """A destructor may delete in a way of its own. Then the references tell, if the tensor has one."""
    before = sys.getrefcount(obj)
    unused, used = Asked(obj, **keywords), Asked(obj, **keywords)
    if not (unused.managed and used.managed and unused.managed.original and used.managed.original):
        return report.skip("D15|D16", "the tensor has no deleter")
    held = (sys.getrefcount(obj) - before) // 2
    unused.capsule = None
    if settled(lambda: unused.managed.calls or held and sys.getrefcount(obj) < before + 2 * held) or held:
        given_back = not held or unused.managed.calls or sys.getrefcount(obj) < before + 2 * held  # or later: S2
        report.expect("D15", unused.managed.calls < 2 and given_back, f"the deleter ran {unused.managed.calls} times")
    else:
        report.skip("D15", "its destructor calls no deleter of the struct, and it holds no reference to the object")
    api.PyCapsule_SetName(used.capsule, NAMES[used.name])
    before, used.capsule = sys.getrefcount(obj), None
    if report.expect("D16", not used.managed.calls and sys.getrefcount(obj) == before, "the tensor was deleted"):
        used.managed.delete()
    check_references(report, obj, "a capsule that is used", lambda: Asked(obj, **keywords).use())


def check_read_only(report: Report, obj: Any, asked: Asked, told: Facts | None) -> None:
    """By the dictionary, or by the buffer; both structs are asked for."""
    read_only = told.read_only if told else None
    try:
        read_only = memoryview(obj).readonly if read_only is None else read_only
    except (TypeError, ValueError, BufferError):
        pass
    if read_only is None:
        return report.skip("D14", "neither a dictionary nor a buffer says whether it is read-only")
    if asked.name != b"dltensor":
        right = asked.facts().read_only == read_only
        report.expect("D14", right, f"read-only is {read_only}, the flags {asked.managed.flags}")
    elif read_only:
        report.expect("D14", False, "it is read-only, and the struct has no flags")


def check_copies(report: Report, obj: Any, keywords: dict[str, Any], facts: Facts, always: bool) -> None:
    """always: it makes a copy unless it is told to make none."""
    for copy in (True, False):
        asked = Asked(obj, copy=copy, **keywords)
        if asked.error:
            report.expect("D21", isinstance(asked.error, BufferError), f"copy={copy} raises {asked.error!r}")
        elif asked.readable() and prod(facts.shape):
            moved, flag = always or asked.facts().data != facts.data, asked.copied()
            right = moved == copy and (flag == copy or asked.name == b"dltensor")
            report.expect("D17", right, f"copy={copy}: {'another' if moved else 'the same'} address, the flag {flag}")


def device_contradiction(told: Facts, device: tuple[int, int]) -> str:
    """What the dictionary says against the device; a driver that the process has knows of which one an address is."""
    driver, reads_all, ordinal = loaded_driver(), c_int(), c_int()
    known = driver and driver.cuPointerGetAttribute(byref(ordinal), 9, c_uint64(told.data)) == 0
    if device[0] == HOST_DEVICE:  # right for mapped memory, and if the device reads all memory of the host
        known = known or driver and driver.cuDeviceGetAttribute(byref(reads_all), 88, 0) == 0 and reads_all.value
        return "" if known else f"it has a dictionary, and is on {device}, the host"
    if not known or device[0] != 2:
        return ""
    return "" if ordinal.value == device[1] else f"the memory is of device {ordinal.value}, the object on {device}"


def check_streams(report: Report, obj: Any, keywords: dict[str, Any], facts: Facts, device: tuple[int, int]) -> None:
    if device[0] == HOST_DEVICE or device[0] in CUDA_DEVICES:
        stream = 1 if device[0] == HOST_DEVICE else 0
        report.expect("D18", Asked(obj, stream=stream, **keywords).error, f"it takes the stream {stream}")
    if device[0] not in CUDA_DEVICES:
        return report.skip("D19", "the device has no streams of CUDA")
    refusals = []
    for number in (None, -1, 1, 2):
        asked = Asked(obj, stream=number, **keywords)
        refusals += [repr(asked.error)] if asked.error and number else []
        if not asked.error:  # a refusal is allowed
            found = asked.differs(facts) if asked.readable() else "it cannot be read"
            report.expect("D19", not found, f"stream={number}: {found}")
    report.expect("D22", len(refusals) < 3, f"stream=-1, 1 and 2: {', '.join(dict.fromkeys(refusals))}")


def check_devices(report: Report, obj: Any, keywords: dict[str, Any], device: tuple[int, int]) -> None:
    own, none = (Asked(obj, dl_device=which, **keywords).error for which in (device, NO_DEVICE))
    report.expect("D20", not own, f"dl_device={device} raises {own!r}")
    report.expect("D20", isinstance(none, BufferError), f"dl_device={NO_DEVICE}: {none!r}")


def check_protocol(report: Report, obj: Any, told: Facts | None) -> Facts | None:
    """__dlpack__. told: what the dictionary says."""
    methods = [callable(getattr(obj, name, None)) for name in ("__dlpack__", "__dlpack_device__")]
    if not any(methods):
        return report.skip("D.*", "it has no __dlpack__")
    if not report.expect("D1", all(methods), f"it has only {'__dlpack__' if methods[0] else '__dlpack_device__'}"):
        return None
    device = check_device(report, obj)
    keywords = check_keywords(report, obj)
    asked = check_capsules(report, obj, keywords)
    if not asked:
        return None
    for fault in tensor_faults(asked.managed.struct.tensor, asked.managed.version):
        report.expect(*fault)
    if not asked.readable():
        return None
    facts, tensor = asked.facts(), asked.managed.struct.tensor
    found = asked.differs(told._replace(read_only=None)) if told else ""
    if told:
        report.expect("D13", not found, f"in the dictionary and here: {found}")
    else:
        report.skip("D13", "it has no dictionary")
    check_read_only(report, obj, asked, told)
    if device:
        where = (tensor.device_type, tensor.device_id)
        report.expect("D12", where == device, f"the tensor is on {where}, the object on {device}")
        found = device_contradiction(told, device) if told else ""
        if told:
            report.expect("D23", not found, found)
        if "D18" not in report.skipped:
            check_streams(report, obj, keywords, facts, device)
        if "D20" not in report.skipped:
            check_devices(report, obj, keywords, device)
    if "D17" not in report.skipped:
        check_copies(report, obj, keywords, facts, asked.copied())
    check_deleters(report, obj, keywords)
    return facts if not asked.copied() else None


# ------------------------------------------------------------------------------------------- DLPack's table of a type
TABLE = "__dlpack_c_exchange_api__"
FUNCTION = PYFUNCTYPE(c_int, py_object, c_void_p)  # raises what the function has set
CURRENT_STREAM = PYFUNCTYPE(c_int, c_int32, c_int32, c_void_p)


class Table(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("previous", c_void_p), ("allocator", c_void_p),
                ("to_managed", c_void_p), ("from_managed", c_void_p), ("to_tensor", c_void_p),
                ("current_stream", c_void_p)]  # fmt: skip


def capsule_pointer(capsule: Any, name: bytes) -> int | None:
    return api.PyCapsule_GetPointer(capsule, name) if api.PyCapsule_IsValid(capsule, name) else None


def call(function: Callable[..., int], *arguments: Any) -> tuple[bool, str]:
    """Whether it succeeded, and what is wrong with the way in which it failed ("" for a BufferError)."""
    try:
        return function(*arguments) == 0, "it fails, and no exception is set"
    except BufferError:
        return False, ""
    except Exception as error:
        return False, f"it raises {error!r}"


def gives_table(obj: Any) -> bool:
    """Whether the table of the type gives a tensor."""
    report = Report()
    table = table_of(report, obj)
    managed = take_managed(obj, FUNCTION(table.to_managed))[0] if table and table.to_managed else None
    if managed and managed.version[0] == 1:
        managed.delete()
    return bool(managed)


def table_of(report: Report, obj: Any) -> Table | None:
    found = getattr(type(obj), TABLE, None)
    if found is None and TABLE not in getattr(obj, "__dict__", {}):  # a proxy passes on what nobody looks for
        return report.skip("T.", f"the type has no {TABLE}")
    if getattr(obj, TABLE, None) is None:
        return report.skip("T.", f"the type has no {TABLE}")
    pointer = capsule_pointer(found, b"dlpack_exchange_api")
    if not report.expect("T1", pointer, f"the attribute of the type is {found!r}"):
        return None
    versions = []
    while pointer and len(versions) < 16:
        table = Table.from_address(pointer)
        versions.append((table.major, table.minor))
        pointer = table.previous if table.major != 1 else None
    in_order = versions == sorted(versions, reverse=True) and not pointer
    return table if report.expect("T2", table.major == 1 and in_order, f"the versions are {versions}") else None


def check_table(report: Report, obj: Any, others: list[Facts]) -> None:
    """others: what __dlpack__ and the dictionary say of the array."""
    table = table_of(report, obj)
    names = ("allocator", "to_managed", "from_managed", "current_stream")
    missing = [name for name in names if table and not getattr(table, name)]
    if not table or not report.expect("T3", not missing, f"NULL: {' '.join(missing)}"):
        return
    device = check_managed(report, obj, FUNCTION(table.to_managed), others)
    if not device:
        return
    stream, current = c_void_p(), CURRENT_STREAM(table.current_stream)
    given, why = call(current, *device, ctypes.addressof(stream))
    report.expect("T7", given, f"for the device {device}: {why or 'BufferError'}")
    if not table.to_tensor:
        return report.skip("T6", "the table does not have it")
    tensor, borrow = Tensor(), FUNCTION(table.to_tensor)
    given, why = call(borrow, obj, ctypes.addressof(tensor))
    found = judge_tensor(tensor, (1, 3), None, others) if given else why
    report.expect("T6", not found, found)
    check_references(report, obj, "a borrowed tensor", lambda: call(borrow, obj, ctypes.addressof(tensor)))


def judge_tensor(tensor: Tensor, version: tuple[int, int], flags: int | None, others: list[Facts]) -> str:
    """What is wrong with a tensor, in words. flags: None if it has none."""
    faults = [found for _, right, found in tensor_faults(tensor, version) if not right]
    if faults:
        return ", ".join(faults)
    if not has_bytes(tensor, flags or 0):
        return ""
    facts = tensor_facts(tensor, None if flags is None else bool(flags & READ_ONLY))
    return "; ".join(filter(None, (differences(facts, other) for other in others)))


def take_managed(obj: Any, function: Any) -> tuple[Managed | None, str]:
    pointer = c_void_p()
    given, why = call(function, obj, ctypes.addressof(pointer))
    if not given:
        return None, why
    return (Managed(pointer.value, True), "") if pointer.value else (None, "it succeeds without a tensor")


def check_managed(report: Report, obj: Any, function: Any, others: list[Facts]) -> tuple[int, int] | None:
    """The device of the tensor, or None."""
    managed, why = take_managed(obj, function)
    report.expect("T4", managed or not why, why)
    if not managed:
        return report.skip("T.", "the table refuses this array")
    tensor = managed.struct.tensor
    if not report.expect("T5", managed.version[0] == 1, f"the version is {managed.version}"):
        managed.delete()
        return None
    found = judge_tensor(tensor, managed.version, managed.flags, others)
    report.expect("T5", not found, found)
    device = (tensor.device_type, tensor.device_id)
    managed.delete()

    def take_and_delete() -> None:
        again, _ = take_managed(obj, function)
        if again:
            again.delete()

    check_references(report, obj, "a tensor of the table", take_and_delete)
    return device


# --------------------------------------------------------------------------------------------- the exchange in C
EXCHANGE_NAME, ABI = "__cai_exchange__", 0x43414931
NO_SYNC, SYNC_STREAM, SYNC_EVENT = 1, 2, 3
WRITABLE, C_CONTIGUOUS, F_CONTIGUOUS = 1, 2, 4
SWAPPED_CODE = 0x01000000


class Array(Structure):
    """cai_array_v0, on 64-bit machines."""

    _fields_ = [("abi", c_uint32), ("struct_size", c_uint32), ("release", c_void_p), ("owner", c_void_p),
                ("flags", c_uint32), ("version", c_int32), ("data", c_uint64), ("code", c_uint32),
                ("itemsize", c_int32), ("bits", c_int32), ("unit", c_int32), ("unit_count", c_int32),
                ("alignment", c_int32), ("device", c_int32), ("memory", c_int32), ("sync", c_int32), ("ndim", c_int32),
                ("stream", c_uint64), ("event", c_uint64), ("thread", c_uint64), ("size", c_int64), ("nbytes", c_int64),
                ("lo", c_int64), ("hi", c_int64), ("fields", c_void_p), ("mask", c_void_p), ("field_count", c_int64),
                ("packed_extent", c_int64), ("packed_axis", c_int32), ("backend", c_int32), ("must_understand", c_uint64),
                ("reserved", c_uint64), ("shape", c_int64 * 64), ("strides", c_int64 * 64)]  # fmt: skip


class Exchange(Structure):
    _fields_ = [("abi", c_uint32), ("struct_size", c_uint32), ("describe", c_void_p), ("adopt", c_void_p)]


RELEASE = PYFUNCTYPE(None, POINTER(Array))
ADOPT = PYFUNCTYPE(py_object, py_object, POINTER(Array))


def exchange_of(report: Report, obj: Any) -> Exchange | None:
    kinds = type(obj).__mro__
    found = next((vars(kind)[EXCHANGE_NAME] for kind in kinds if EXCHANGE_NAME in vars(kind)), None)
    if found is None:
        return report.skip("X.*", f"the type has no {EXCHANGE_NAME}")
    if ctypes.sizeof(Array) != 1216:
        return report.skip("X.*", "this machine has another layout of arrays")
    pointer = capsule_pointer(found, EXCHANGE_NAME.encode())
    proven = pointer and api.PyCapsule_GetContext(found) in {id(w) for kind in kinds for w in weakref.getweakrefs(kind)}
    if not report.expect("X1", proven, f"it is {found!r}" + (", without such a context" if pointer else "")):
        return None
    offer = Exchange.from_address(pointer)
    right = offer.abi == ABI and offer.struct_size >= 24 and offer.describe
    return offer if report.expect("X2", right, f"abi {offer.abi:#x}, struct_size {offer.struct_size}") else None


def array_facts(x: Array) -> Facts:
    swapped = bool(x.code & SWAPPED_CODE)
    kind = chr(x.code >> 8 & 0xFF) if not x.code >> 16 & 0xFF else ""
    return Facts(x.data, tuple(x.shape[: x.ndim]), tuple(x.strides[: x.ndim]), "swapped " * swapped + kind, x.itemsize,
                 not x.flags & WRITABLE)  # fmt: skip


def bits_right(x: Array) -> bool:
    """Whether bits and itemsize are those of the code. Formats 10 to 15 are below 8 bits, 26 to 31 the same packed."""
    form = x.code >> 16 & 0xFF
    if form > 31 or form & 15 < 10:
        return True
    return bool((x.bits, x.itemsize) == ((1, 2, 4, 6, 6, 4)[(form & 15) - 10], x.code & 0xFF))


def packed_right(x: Array) -> bool:
    """Whether packed_extent values fill the elements of packed_axis. Without a packed dtype, and without axes, they are 0
    and -1."""
    packed = x.code & 0x100000
    if x.packed_axis == -1:
        return bool(x.packed_extent == 0 and (not packed or x.ndim == 0))
    values = 8 * x.itemsize // x.bits if packed and x.bits > 0 else 1
    inside = 0 <= x.packed_axis < x.ndim and values > 1 and x.packed_extent >= 0
    return bool(inside and -(-x.packed_extent // values) == x.shape[x.packed_axis])


def check_numbers(report: Report, x: Array, facts: Facts) -> None:
    size = prod(facts.shape)
    nbytes = size * x.itemsize if x.itemsize else x.nbytes
    claims = [("size", x.size, size), ("nbytes", x.nbytes, nbytes), ("lo, hi", (x.lo, x.hi), extent(facts)),
              ("data", x.data != 0, size != 0), ("an extent", min(facts.shape, default=0) < 0, False)]  # fmt: skip
    plain = facts._replace(strides=c_order(facts.shape, facts.itemsize))
    turned = facts._replace(shape=facts.shape[::-1], strides=facts.strides[::-1])
    turned_plain = turned._replace(strides=c_order(turned.shape, facts.itemsize))
    for flag, pair in ((C_CONTIGUOUS, (facts, plain)), (F_CONTIGUOUS, (turned, turned_plain))):
        if x.flags & flag:
            claims.append((f"flag {flag}", differences(*pair), ""))
    wrong = [f"{name} is {found}, not {right}" for name, found, right in claims if found != right]
    report.expect("X5", not wrong, ", ".join(wrong))


def check_agreement(report: Report, x: Array, told: Facts, stream: Any) -> None:
    """With the dictionary. Nothing is pending on an empty array, whatever its stream; an event may say less."""
    found = differences(told, array_facts(x))
    report.expect("X6", not found, f"in the dictionary and here: {found}")
    if x.sync in (NO_SYNC, SYNC_STREAM) and x.size:
        here = x.stream if x.sync == SYNC_STREAM else None
        report.expect("X6", here == stream, f"the stream of the dictionary is {stream!r}, here it is {here!r}")


def describe_once(obj: Any, describe: Any) -> Array | None:
    x = Array()
    given, _ = call(describe, obj, ctypes.addressof(x))
    if given and x.release:
        RELEASE(x.release)(x)
    return x if given else None


def gives_exchange(obj: Any) -> bool:
    """Whether the exchange of the type describes the object."""
    offer = exchange_of(Report(), obj)
    return bool(offer and offer.describe and describe_once(obj, FUNCTION(offer.describe)))


def check_adopt(report: Report, obj: Any, adopt: Any, x: Array) -> None:
    """With a borrowed array, which must be refused. None is given away: it could stay until a stream has passed."""
    x.release = x.owner = None
    before = bytes(x)
    try:
        found = f"it takes a borrowed array, and makes a {type(adopt(type(obj), x)).__name__}"
    except BufferError:
        found = "" if bytes(x) == before else "it refuses, and has changed the array"
    except Exception as error:
        found = f"it raises {error!r}"
    report.expect("X9", not found, found)


def check_exchange(report: Report, obj: Any, told: Facts | None) -> None:
    offer = exchange_of(report, obj)
    if not offer:
        return
    x, describe = Array(), FUNCTION(offer.describe)
    given, why = call(describe, obj, ctypes.addressof(x))
    report.expect("X3", given or not why, why)
    if not given:
        return report.skip("X.", "describe refuses this array")
    right = x.abi == ABI and x.struct_size >= 1216 and 0 <= x.ndim <= 64 and 0 <= x.field_count <= 4096
    right = right and not x.must_understand and not x.reserved and 0 <= x.sync <= 3 and 0 <= x.memory <= 7
    right = right and bits_right(x) and packed_right(x)
    says = f"abi {x.abi:#x}, struct_size {x.struct_size}, ndim {x.ndim}, sync {x.sync}"
    says += f", code {x.code:#x}, bits {x.bits}, itemsize {x.itemsize}"
    says += f", packed_axis {x.packed_axis}, packed_extent {x.packed_extent}"
    if report.expect("X4", right, says):
        check_numbers(report, x, array_facts(x))
        right = (x.sync != SYNC_STREAM or x.stream) and (x.sync != SYNC_EVENT or x.event)
        report.expect("X7", right, f"sync is {x.sync}, stream {x.stream}, event {x.event}")
        if told:
            check_agreement(report, x, told, obj.__cuda_array_interface__.get("stream"))
    if x.release:
        RELEASE(x.release)(x)
        report.expect("X8", not x.release, "it is as it was")
    again = describe_once(obj, describe)
    report.expect("S1", again and array_facts(again) == array_facts(x), "describe, twice")
    check_references(report, obj, "describe", lambda: describe_once(obj, describe))
    if offer.adopt:
        check_adopt(report, obj, ADOPT(offer.adopt), x)


# -------------------------------------------------------------------------------------------------------- the tool
def guarded(report: Report, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a check returns; an exception that the object raises where nobody expects one is a finding."""
    try:
        return function(report, *arguments)
    except Exception as error:
        report.expect("S4", False, f"{error!r}, in {function.__name__}")
        return None


def check_lazy(report: Report, obj: Any, told: Facts | None, tensor: Facts | None) -> None:
    """Methods of PyTorch's names say that the memory has other values than the array. No protocol can say it."""
    methods = [(name, getattr(obj, name, None)) for name in ("is_conj", "is_neg")]
    lazy = [name for name, method in methods if callable(method) and method() is True]
    if not any(callable(method) for _, method in methods):
        return report.skip("S5", "it has neither is_conj nor is_neg")
    ways = [("__cuda_array_interface__", told), ("__dlpack__", tensor), (TABLE, lazy and gives_table(obj)),
            (EXCHANGE_NAME, lazy and gives_exchange(obj))]  # fmt: skip
    gives = [name for name, given in ways if given]
    report.expect("S5", not (lazy and gives), f"{' and '.join(lazy)} is True; exported by {', '.join(gives)}")


def check_stream_object(report: Report, obj: Any) -> None:
    """__cuda_stream__, which belongs to streams."""
    method = getattr(obj, "__cuda_stream__", None)
    if method is None:
        return report.skip("C.", "it has no __cuda_stream__")
    try:
        pair, again = (method(), method()) if callable(method) else (method, method)
    except Exception as error:
        pair = again = error
    right = callable(method) and isinstance(pair, tuple) and len(pair) == 2
    found = f"it is {pair!r}" if callable(method) else f"it is {method!r}, no method"
    if report.expect("C1", right, found):
        report.expect("C2", is_int(pair[0]) and pair[0] == 0, f"the version is {pair[0]!r}")
        right = report.expect("C3", is_int(pair[1]) and 0 <= pair[1] < 1 << 64, f"the handle is {pair[1]!r}")
        report.expect("S1", not right or pair == again, f"__cuda_stream__() is {pair!r}, and {again!r}")


def examine(obj: Any) -> Report:
    """All that can be checked of an object."""
    report = Report()
    told = guarded(report, check_dictionary, obj)
    tensor = guarded(report, check_protocol, obj, told)
    guarded(report, check_table, obj, [facts for facts in (told, tensor) if facts])
    guarded(report, check_exchange, obj, told)
    guarded(report, check_lazy, obj, told, tensor)
    guarded(report, check_stream_object, obj)
    report.checked |= {"S3", "S4"} if report.checked else set()  # what would have raised
    Managed.alive = {managed for managed in Managed.alive if not managed.calls}
    return report


def check(obj: Any) -> list[Finding]:
    """The rules that an object breaks."""
    return examine(obj).findings


def consumers() -> Any:
    """The other file, which has this one as its module."""
    sys.modules.setdefault("cai_conform", sys.modules[__name__])
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    return importlib.import_module("cai_conform_consumer")


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--rules"]:
        print("| rule | it says | source |\n|---|---|---|")
        print("\n".join(f"| {rule} | {says} | {source} |" for rule, (says, source) in RULES.items()))
        return 0
    consumer = arguments[:1] == ["--consumer"]
    arguments = arguments[consumer:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    sys.path.insert(0, os.getcwd())
    status = 0
    for argument in arguments:
        module, _, expression = argument.partition(":")
        if not module or not expression:
            print(f"{argument}: MODULE:{'FUNCTION' if consumer else 'EXPRESSION'} is wanted")
            return 2
        try:
            obj = eval(expression, vars(importlib.import_module(module)))  # what the command line is for
        except Exception as error:
            print(f"{argument}: cannot be made: {error!r}")
            return 2
        if consumer:
            status = max(status, consumers().main(argument, obj))
            continue
        report = examine(obj)
        for finding in report.findings:
            print(f"{argument}: {finding}")
        print(f"{argument}: {report.summary()}")
        status = max(status, 1 if report.findings else 0 if report.checked else 2)
    return status


if __name__ == "__main__":
    sys.exit(main())
