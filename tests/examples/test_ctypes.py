"""The ctypes binding of examples/bindings/shared over libcai: the descriptor cases as Python objects get the verdict
and the words that cai_inspect has for their text; objects that no text has; live NumPy arrays if there are any.

    test_ctypes.py --library build/libcai.so --inspect build/cai_inspect
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import pathlib
import re
import subprocess
import sys
from typing import Any, Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "bindings" / "shared"))
sys.path.insert(0, str(ROOT / "tests" / "oracle"))

import cai_abi  # noqa: E402
import cai_ctypes  # noqa: E402
import inspect_io  # noqa: E402
import vector_cases  # noqa: E402

CLEAN = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
FACTS = (
    "size nbytes ndim shape strides c_contiguous f_contiguous extent byte_swapped aligned "
    "typestr dtype version sync stream data itemsize"
).split()

failures: list[str] = []


def same(what: str, got: object, expected: object) -> None:
    if got != expected:
        failures.append(f"{what}: {got!r}, not {expected!r}")


def facts(array: cai_ctypes.Array) -> dict[str, Any]:
    """An array as cai_inspect writes it."""
    found = {key: getattr(array, key) for key in FACTS}
    found = {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
    if array.dtype == "bitfield":
        found["strides"] = found["itemsize"] = None
    rows = array.fields
    found["fields"] = None if rows is None else [[name, text, at, list(shape)] for name, text, at, shape in rows]
    found["mask"] = None if array.mask is None else facts(array.mask)
    found["read_only"] = not array.writable
    return found


def expected_facts(answer: dict[str, Any]) -> dict[str, Any]:
    """The same of an answer of cai_inspect."""
    found = {key: answer[key] for key in (*FACTS, "fields", "mask", "read_only")}
    if found["fields"] is not None:
        found["fields"] = [[row[key] for key in ("name", "typestr", "offset", "shape")] for row in found["fields"]]
    if found["mask"] is not None:
        found["mask"] = expected_facts(found["mask"])
    return found


def in_words_of_headers(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer of cai_inspect, whose messages use the words of a command line."""
    return {**answer, "message": inspect_io.words_of_headers(answer["message"])}


def check_cases(inspect: str, exceptions: dict[str, str]) -> int:
    """Every case, strict and lenient."""
    lines = vector_cases.inputs()
    for lenient in (False, True):
        done = subprocess.run([inspect] + ["--lenient"] * lenient, input="\n".join(lines), capture_output=True,
                              encoding="utf-8", check=False)  # fmt: skip
        answers = [json.loads(answer) for answer in done.stdout.splitlines()]
        same("answers of cai_inspect", len(answers), len(lines))
        for line, answer in zip(lines, answers):
            try:
                array = cai_ctypes.import_array(cai_ctypes.from_literal(line), lenient)
            except (BufferError, TypeError, ValueError) as error:
                got = {"ok": False, "entry": error.entry, "status": error.status, "rule": error.rule,
                       "message": str(error)}  # fmt: skip
                same(line, got, in_words_of_headers(answer))
                same(f"exception of {line}", type(error).__name__, exceptions[error.status])
            else:
                same(line, facts(array), expected_facts(answer) if answer["ok"] else answer)
    return len(lines)


def check_layout() -> int:
    """Every offset of tests/build/abi/layout.txt."""
    names = "dtype field array cuda_capture cuda_pointer cuda_copy cuda emm_hooks".split()
    structs = {f"cai_{name}_v0": getattr(cai_abi, f"cai_{name}") for name in names}
    rows = [line.split() for line in (ROOT / "tests" / "build" / "abi" / "layout.txt").read_text().splitlines()]
    rows = [row for row in rows if row and row[0] in structs]
    for row in rows:
        struct = structs[row[0]]
        size = ctypes.sizeof(struct) if row[1] == "sizeof" else getattr(struct, row[1]).offset
        same(f"{row[0]} {row[1]}", size, int(row[2]))
    return len(rows)


class Index:
    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


class Unclear:
    def __bool__(self) -> bool:
        raise ValueError("neither true nor false")


def message(call: Callable[[], Any]) -> str:
    """How a call ends."""
    try:
        return call().text()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def check_objects() -> None:
    """What only Python objects can be."""

    def ends(change: dict[str, Any], expected: str, lenient: bool = False) -> None:
        result = message(lambda: cai_ctypes.import_array({**CLEAN, **change}, lenient))
        if expected not in result:
            failures.append(f"{change}: {result!r} lacks {expected!r}")

    endless: list[Any] = []
    endless += [endless, endless]
    mask = cai_ctypes.Exporter({**CLEAN, "typestr": "|b1"})
    of_itself = cai_ctypes.Exporter({**CLEAN, "typestr": "|b1"})
    of_itself.__cuda_array_interface__["mask"] = of_itself
    ends({}, "float32 (2, 3), C-contiguous, no pending work, at 0x1000")
    ends({"shape": (Index(2), 3)}, "TypeError: shape[0] must be an int, not an object with __index__")
    ends({"shape": (Index(2), 3)}, "float32 (2, 3), C-cont", lenient=True)
    ends({"shape": (Index(2**63), 3)}, "TypeError: shape[0] must be an int, not an object", lenient=True)
    ends({"shape": (2**63, 3)}, "ValueError: shape[0]")
    ends({"shape": (-(2**63), 3)}, "ValueError: shape[0] = -9223372036854775808 is negative")
    ends({"shape": (10**30, 3)}, "ValueError: shape[0]")
    ends({"shape": (2, True)}, "TypeError: shape[1] must be an int, not a bool")
    ends({"data": (2**64 - 24, False)}, "at 0xffffffffffffffe8")
    ends({"data": (4096, Unclear())}, "TypeError: data[1]", lenient=True)
    ends({"data": (4096, object())}, "read-only", lenient=True)
    ends({"data": (4096, 0.5)}, "read-only", lenient=True)
    ends({"data": (4096, 0.0)}, "C-contiguous, no pending", lenient=True)
    ends({"typestr": "<f4\0"}, "ValueError: typestr")
    ends({"typestr": "\ud800"}, r"ValueError: typestr '\xed\xa0\x80' is not valid")
    ends({"typestr": b"<f4"}, "float32", lenient=True)
    ends({"descr": endless}, "ValueError: an entry is nested too deeply")
    ends({"mask": mask}, "with a mask")
    names = [f"field{i}" for i in range(500)]
    array = cai_ctypes.import_array({**CLEAN, "typestr": "|V2000", "descr": [(name, "<f4") for name in names]})
    gc.collect()
    same("names of fields, when all else is gone", [row[0] for row in array.fields], names)
    ends({"mask": mask.__cuda_array_interface__}, "TypeError: mask must be None or an object with the interface")
    ends({"mask": object()}, "TypeError: mask must be None or an object with the interface")
    ends({"mask": of_itself}, "ValueError: mask has a mask itself")
    result = message(lambda: cai_ctypes.import_array([("shape", (2, 3))]))
    same("a list", result, "TypeError: the interface must be a dict, not list")


def check_numpy() -> int:
    """What NumPy says of its own arrays."""
    try:
        import numpy
    except ImportError:
        return 0
    x = numpy.arange(24, dtype="<i2").reshape(2, 3, 4)
    record = numpy.zeros(3, dtype=[("pos", [("x", "<f4"), ("y", "<f4")]), ("tag", "S3"), ("m", ">i2", (2, 2))])
    arrays = [
        x, x.T, x[:, ::-1, ::2], x[0, 0, 0:0], x[0, 0, 1, ...], numpy.broadcast_to(x[0], (5, 3, 4)), x.astype(">f8"),
        x.astype(">f8").view("V8"), x.astype("M8[25s]"), record, record["m"], numpy.array(["a", "bcd"]),
        numpy.zeros(7, "c16")[::-3], numpy.zeros((0, 3)), numpy.zeros(9, "u1")[1:].view("<u4"),
    ]  # fmt: skip
    for y in arrays:
        array = cai_ctypes.import_array(y.__array_interface__, owner=y)
        got = facts(array)
        flags = y.flags
        low, high = numpy.lib.array_utils.byte_bounds(y) if y.size else (0, 0)
        start = y.__array_interface__["data"][0] if y.size else 0
        expected = {
            "shape": list(y.shape), "strides": list(y.strides), "size": y.size, "itemsize": y.itemsize,
            "nbytes": y.nbytes, "typestr": y.dtype.str, "c_contiguous": flags.c_contiguous,
            "f_contiguous": flags.f_contiguous, "read_only": not flags.writeable, "data": start,
            "extent": [low - start, high - start],
        }  # fmt: skip
        if y.size == 0:
            del expected["strides"]  # NumPy has some of its own there and exports none
        same(f"NumPy's {y.dtype} {y.shape} {y.strides}", {key: got[key] for key in expected}, expected)
    same("fields", [row[0] for row in cai_ctypes.import_array(record.__array_interface__).fields],
         ["pos", "x", "y", "tag", "m"])  # fmt: skip
    return len(arrays)


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests the ctypes binding.")
    parser.add_argument("--library", required=True, help="libcai")
    parser.add_argument("--inspect", required=True, help="the program cai_inspect")
    options = parser.parse_args()
    cai_ctypes.load(options.library)
    header = (ROOT / "cai.h").read_text(encoding="utf-8")
    exceptions = dict(re.findall(r"X\((CAI_ERR_\w+), \d+, (\w+),", header))
    numbers = {int(n): name for n, name in re.findall(r"X\(CAI_ERR_\w+, (\d+), (\w+),", header)}
    for number, name in numbers.items():
        same(f"exception {number}", cai_ctypes.OTHER_EXCEPTIONS.get(number, ValueError).__name__, name)
    cases, members = check_cases(options.inspect, exceptions), check_layout()
    check_objects()
    arrays = check_numpy()
    for failure in failures[:10]:
        print(failure[:1000])
    print(f"cases {cases}, members {members}, NumPy's arrays {arrays or '(no NumPy)'}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
