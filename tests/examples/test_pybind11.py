#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_pybind11.h: functions bound with pybind11 take arrays of any library, in order, and keep nothing.

    test_pybind11.py --cxx g++ --cc gcc [--pybind11 FOLDER] [--self-test]

The saxpy of the example runs on the simulated CUDA. A second module has overloads, None, lists, results, streams and
exceptions. At the end of its process no array is alive, and the simulation has no leaks. test_caster.py has what else
the caster must do. With --self-test defects are planted in a copy of the caster, and each must be found. Exit status
0: all is right; 1: not; 3: it does not compile; 77 with a reason: no pybind11, no compiler or no Python.h.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
from typing import Any, Sequence

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE)]
from build_module import needs, skip  # noqa: E402
from caster_support import (  # noqa: E402
    PYTHON, ROOT, SHARED, STRICT, SUFFIX, TYPED, Array, Host, Stream, check_lines, check_manual, check_module, check_typed, device, ended, includes, leaks,
    load, raised, run, same, self_test)  # fmt: skip

CASTERS = ROOT / "ext"
DEFECTS = [
    *SHARED, *TYPED,
    ("None is an array", "is_null ? nullptr : &value", "&value"),
    ("what is wrong goes to the next overload", "if (found == CAI_PYTHON_FAILED) throw error_already_set();",
     "if (found == CAI_PYTHON_FAILED) PyErr_Clear();"),
    ("the stream object of an optional goes first", "template <> struct type_caster<std::optional<cai_caster::stream>> {",
     "template <typename> struct cai_no_caster;\ntemplate <> struct cai_no_caster<std::optional<cai_caster::stream>> {"),
    ("an error without its text", "(void)cai_python_raise(&e);", "PyErr_SetString(PyExc_ValueError, e.what() + 2);"),
]  # fmt: skip


def build(options: argparse.Namespace, folder: pathlib.Path, casters: pathlib.Path,
          warnings: Sequence[str] = STRICT) -> pathlib.Path:  # fmt: skip
    """A library with both modules."""
    library = folder / ("saxpy_pybind11" + SUFFIX)
    run([options.cxx, "-std=c++17", "-O0", "-fPIC", *warnings, "-DCAI_NO_CUDART", "-DCAI_NO_LOADER", *includes(casters),
         "-isystem", options.pybind11, *PYTHON, HERE / "pybind11_more.cpp", device(options.cc, options.parts), "-shared",
         "-lpthread", "-o", library])  # fmt: skip
    return library


def check_arguments(more: Any) -> None:
    same("overloads on the rank", [more.rank(Array()), more.rank(Array(shape=(2, 3)))], ["1-D", "2-D"])
    same("none for this rank", raised(more.rank, Array(shape=(1, 2, 3)))[:51], "TypeError: rank(): incompatible function arguments.")
    same("overloads", [more.which(x) for x in (Array(), Array(typestr="<f8"), None, "x", 5, Host())],
         ["float32 6", "array 6", "None", "text x", "object", "object"])  # fmt: skip
    for name in ("which", "only", "pointer", "optional"):
        wrong = raised(getattr(more, name), Array(shape=(-1,)))
        same(f"{name}: a wrong array", wrong, "ValueError: shape[0] = -1 is negative")
    for name in ("only", "pointer", "optional", "host", "sizes"):
        same(f"{name}: no array", raised(getattr(more, name), 5)[:35], f"TypeError: {name}(): incompatible function arguments"[:35])
    same("None where an array must be", raised(more.only, None)[:46], "TypeError: only(): incompatible function argum")
    same("None for a pointer", [more.pointer(Array()), more.pointer(None)], [6, -1])
    same("optional", [more.optional(Array()), more.optional(None), more.optional()], [6, -1, -1])
    same("flags", [more.host(Host()), raised(more.only, Host())[:17]], [6, "TypeError: only()"])
    same("lists", [more.sizes([]), more.sizes([Array(), Host()]), more.sizes((Array(),))], [0, 12, 6])
    same("a list with None", raised(more.sizes, [Array(), None])[:20], "TypeError: sizes(): ")
    same("a list with a wrong array", raised(more.sizes, [Array(), Array(shape=(-2,))]),
         "ValueError: shape[0] = -2 is negative")  # fmt: skip


def check_streams(more: Any) -> None:
    same("streams", [more.stream(1), more.stream(Stream((0, 7)))], [1, 7])
    same("no stream at all", raised(more.stream, "s")[:22], "TypeError: stream(): i")
    same("None", raised(more.stream, None)[:22], "TypeError: stream(): i")
    same("a wrong pair", raised(more.stream, Stream((3, 7)))[:11], "ValueError:")
    same("0", raised(more.stream, 0)[:22], "ValueError: stream = 0")


def check(library: pathlib.Path) -> None:
    saxpy, more = load(library, "saxpy_pybind11"), load(library, "pybind11_more")
    check_arguments(more)
    check_streams(more)
    pair = more.pair(more.new_stream())
    same("a list of results", [type(item) for item in pair], [saxpy.array, saxpy.array])
    del pair
    check_typed(more)
    check_module(saxpy, more, [more.only, more.pointer])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--pybind11", help="the folder of its headers; else what its package says")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--only", default="", help="of --self-test: defects with one of these in their names, with | between")
    parser.add_argument("--library", type=pathlib.Path, help="only the checks, of a library that was built")
    options = parser.parse_args()
    if options.library:
        check(options.library)
        return ended()
    needs(numpy=False, cc=options.cxx)
    if not options.pybind11:
        try:
            import pybind11
        except ImportError:
            skip("this Python has no pybind11")
        options.pybind11 = pybind11.get_include()
    with tempfile.TemporaryDirectory(prefix="cai-pybind11-") as name:
        options.parts = pathlib.Path(name)
        same("a process with all checks", leaks(__file__, build(options, options.parts, CASTERS)), "")
        check_manual("cai_pybind11.h", options.parts,
                     [options.cxx, "-std=c++17", "-DCAI_NO_CUDART", *STRICT, *includes(CASTERS), "-isystem",
                      options.pybind11, *PYTHON])  # fmt: skip
        check_lines("saxpy_pybind11.cpp", ["/*", "*"])
        if options.self_test:
            self_test("cai_pybind11.h", DEFECTS, options.parts,
                      lambda casters: leaks(__file__, build(options, casters, casters, ["-w"])), options.only)  # fmt: skip
    return ended()


if __name__ == "__main__":
    sys.exit(main())
