"""Judges the inputs of vectors without cai: dictionaries by tests/oracle/reference.py, streams and DLPack tensors here.

A function returns the facts, or raises Wrong with the fields at fault. check_vectors.py takes them as readers.
"""

from __future__ import annotations

import math
import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import reference  # noqa: E402

Facts = dict


class Wrong(ValueError):
    """`args`: the entries or fields at fault."""


# ------------------------------------------------------------------------------------------------ dictionaries

NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex", "m": "timedelta64", "M": "datetime64",
         "S": "bytes", "U": "unicode", "V": "void", "t": "bitfield"}  # fmt: skip


def name_of(dtype: reference.DType) -> str:
    """float32, bytes, ..."""
    return NAMES[dtype.kind] + (str(8 * dtype.n) if dtype.kind in "iufc" else "")


def row_of(field: reference.Field) -> Facts:
    """A row of a descr. The type of a nested list is None."""
    dtype = field.dtype
    return {"name": field.name, "title": field.title, "offset": field.offset, "nbytes": field.nbytes,
            "dtype": name_of(dtype) if dtype else None, "byte_swapped": dtype.swapped if dtype else False,
            "shape": list(field.shape), "parent": -1 if field.parent is None else field.parent}  # fmt: skip


def facts_of(known: Facts) -> Facts:
    """The facts of the reference under the names of the vectors."""
    keys = "shape itemsize size nbytes strides c_contiguous f_contiguous extent read_only byte_swapped aligned".split()
    facts = {"dtype": name_of(known["dtype"]), **{key: known[key] for key in keys}, "address": known["data"]}
    if facts["aligned"] is None:  # the platform decides
        del facts["aligned"]
    facts["order"] = known["sync"]
    facts["stream"] = known["stream"]
    facts["mask"] = facts_of(known["mask"]) if known["mask"] else None
    facts["fields"] = None if known["fields"] is None else [row_of(field) for field in known["fields"]]
    return facts


def read_dictionary(table: Facts) -> Facts:
    """A dictionary. A mask is a dict, or an object with the attribute."""
    mask = table.get("mask")
    table = {**table, "mask": getattr(mask, "__cuda_array_interface__", mask)}
    verdict = reference.judge({key: item for key, item in table.items() if key != "mask" or mask is not None})
    if not verdict.accepted(lenient=False):
        raise Wrong(*sorted(verdict.entries(lenient=False)))
    return facts_of(verdict.facts or {})


# ------------------------------------------------------------------------------------------------------ streams


def meaning(order: str, handle: int | None = None) -> Facts:
    return {"order": order, "stream": handle}


def read_stream(given: Facts) -> Facts:
    """The entry `stream` of a dictionary, or the argument of __dlpack__."""
    number = given.get("stream")
    if number is not None and not (reference.is_int(number) and -1 <= number <= reference.UINT64_MAX):
        raise Wrong("stream")
    if given["protocol"] == "interface":
        if number in (0, -1):
            raise Wrong("stream")
        if number is None:
            return meaning("none" if "stream" in given or given["version"] >= 3 else "unknown")
    elif given["platform"] == "cpu":
        if number is not None:
            raise Wrong("stream")
        return meaning("none")
    elif number == -1:
        return meaning("unordered")
    elif number is None:
        return meaning("legacy")
    elif given["platform"] == "rocm":
        if number in (1, 2):
            raise Wrong("stream")
        return meaning("handle", number) if number else meaning("default")
    elif number == 0:
        raise Wrong("stream")
    return meaning({1: "legacy", 2: "per_thread"}.get(number, "handle"), number if number > 2 else None)


# ------------------------------------------------------------------------------------------------------- DLPack

CODES = ("int uint float handle bfloat complex bool float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
         "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn").split()
DEVICES = {*range(1, 5), *range(7, 19)}  # of DLPack 1.3
READ_ONLY, COPIED, PADDED = 1, 2, 4


def dlpack_name(code: int, bits: int, lanes: int) -> str:
    """float32, float32x4, float8_e5m2, ..."""
    plain = CODES[code] + (str(bits) if code in (0, 1, 2, 3, 4, 5) else "")
    return plain + (f"x{lanes}" if lanes > 1 else "")


def check_head(given: Facts) -> None:
    """What stands beside the numbers of the array."""
    versioned = given["struct"] == "DLManagedTensorVersioned"
    (device, number), (code, bits, lanes) = given["device"], given["dtype"]
    for wrong, field in ((versioned and given["version"][0] != 1, "version"),
                         (versioned and given["flags"] & ~7, "flags"),
                         (device not in DEVICES or number < 0, "device"),
                         (code >= len(CODES) or not bits or not lanes, "dtype"),
                         (not 0 <= given["ndim"] <= reference.MAX_NDIM, "ndim"),
                         (given["ndim"] and given["shape"] is None, "shape")):  # fmt: skip
        if wrong:
            raise Wrong(field)


def read_dlpack(given: Facts) -> Facts:
    """A tensor by the values of its fields."""
    check_head(given)
    versioned = given["struct"] == "DLManagedTensorVersioned"
    flags = given["flags"] if versioned else 0
    shape, strides, (code, bits, lanes) = tuple(given["shape"] or ()), given["strides"], given["dtype"]
    if versioned and given["version"][1] >= 2 and shape and strides is None:
        raise Wrong("strides")
    if min(shape, default=0) < 0:
        raise Wrong("shape")
    whole = bits * lanes % 8 == 0 or flags & PADDED
    unit = (bits * lanes + 7) // 8 if whole else None
    some = math.prod(extent for extent in shape if extent)
    if some > reference.INT64_MAX or some * bits * lanes // 8 > reference.INT64_MAX:
        raise Wrong("shape")
    steps = tuple(strides) if strides is not None else reference.c_strides(shape, 1)
    size = math.prod(shape)
    nbytes = size * unit if unit else (size * bits * lanes + 7) // 8
    in_bytes = tuple(step * (unit or 1) for step in steps)
    extent = list(reference.extent(shape, in_bytes, unit)) if unit else [0, nbytes]
    address = given["data"] + given["byte_offset"] if given["data"] and size else 0
    if size and not given["data"]:
        raise Wrong("data")
    if size and (extent[0] < reference.INT64_MIN or extent[1] > reference.INT64_MAX):
        raise Wrong("strides")
    if size and (address + extent[0] < 0 or address + extent[1] > 2**64):
        raise Wrong("data", "strides", "byte_offset")
    facts = {"dtype": dlpack_name(code, bits, lanes), "shape": list(shape), "itemsize": unit, "size": size,
             "nbytes": nbytes, "strides": list(in_bytes) if unit else None,
             "c_contiguous": reference.is_contiguous(shape, steps, 1),
             "f_contiguous": reference.is_contiguous(shape[::-1], steps[::-1], 1), "extent": extent,
             "address": address, "device": list(given["device"])}  # fmt: skip
    if any(not reference.INT64_MIN <= step <= reference.INT64_MAX for step in in_bytes):
        del facts["strides"]  # no element uses such a stride
    if versioned:
        facts.update(read_only=bool(flags & READ_ONLY), copied=bool(flags & COPIED))
    return facts


READERS = {"dictionary": read_dictionary, "stream": read_stream, "dlpack": read_dlpack}
