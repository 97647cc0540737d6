#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai.pxd: functions of Cython take arrays of any library by cai.pxd, in order, and keep nothing.

    test_cython.py --cxx g++ --cc gcc [--self-test]

The saxpy of the example runs on the simulated CUDA. cython_more.pyx has overloads, None, lists, results, streams and
exceptions. At the end of its process no array is alive, and the simulation has no leaks. The snippet of docs/python.md
is compiled, too. With --self-test defects are planted in a copy of cai.pxd, and each must be found. Exit status 0: all
is right; 1: not; 3: it does not compile; 77 with a reason: no Cython, no compiler or no Python.h.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import re
import sys
import tempfile
from typing import Any, Sequence

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE)]
from build_module import needs, skip  # noqa: E402
from caster_support import (  # noqa: E402
    BINDINGS, PYTHON, ROOT, SHARED, SUFFIX, Array, Host, Stream, check_lines, check_module, device, ended, includes, leaks, load,
    raised, run, same, self_test)  # fmt: skip

CASTERS = ROOT / "ext"
NONE = "TypeError: the object has no __cuda_array_interface__, no __dlpack__; its type is "
NO_IN_CALL = ("the stream object goes first", "the stream of an argument goes first")  # give is told the stream object
DEFECTS = [
    *[defect for defect in SHARED if defect[0] not in NO_IN_CALL],
    ("references are not dropped by the array", "if (is_attached()) cai_caster::drop(*this);", ""),
    ("a taken array is not released", "static_cast<cai::array &>(to) = cai::array(&taken);",
     "cai_array_borrow(&to, &taken);"),
    ("what is wrong goes to the next overload",
     "check(found == CAI_PYTHON_FAILED);\n        return", "PyErr_Clear();\n        return"),
    ("what is no array is an error", "return found == CAI_PYTHON_TAKEN;",
     "check(!found && PyErr_Format(PyExc_TypeError, \"no\") == nullptr);\n        return true;"),
    ("the stream object is not kept", "stream == Py_None ? nullptr : stream", "stream == Py_None ? stream : nullptr"),
    ("an exchange of nothing", "this->emplace(cai_caster::pool(), stream, arrays...);",
     "this->emplace(cai_caster::pool(), stream); ((void)arrays, ...);"),
    ("an end that does nothing", "this->value().finish();", ""),
    ("an error without its text", "(void)cai_python_raise(&e);",
     "PyErr_SetString(PyExc_ValueError, \"\"); (void)e;"),
]  # fmt: skip


# ------------------------------------------------------------------------------------ building


def compile_pyx(options: argparse.Namespace, folder: pathlib.Path, casters: pathlib.Path, source: pathlib.Path,
                warnings: Sequence[str] = ("-Wall", "-Wextra", "-Werror")) -> pathlib.Path:
    """An extension module of one file of Cython, and of the device of the saxpy."""
    made = folder / f"{source.stem}.cpp"
    run([sys.executable, "-m", "cython", "--cplus", "-3", "-Wextra", "-I", casters, "-I", BINDINGS / "casters", source, "-o", made])
    library = folder / (source.stem + SUFFIX)
    macros = ["-DCAI_IMPLEMENTATION", "-DCAI_NO_CUDART", "-DCAI_NO_LOADER"]
    run([options.cxx, "-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden", *warnings, *macros, *includes(casters),
         f"-I{HERE}", *PYTHON, "-shared", made, device(options.cc, options.parts), "-lpthread", "-o", library])  # fmt: skip
    return library


def snippet() -> str:
    """The first block of Cython in docs/python.md."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    return re.search(r"```cython\n(.*?)```", text, re.DOTALL)[1]


def check_snippet(options: argparse.Namespace) -> None:
    source = options.parts / "facts.pyx"
    source.write_text(snippet(), encoding="utf-8")
    module = load(compile_pyx(options, options.parts, CASTERS, source), "facts")
    same("facts", module.facts(Array(shape=(2, 3))), ([2, 3], "float32"))
    same("facts of no array", raised(module.facts, 5), NONE + "int")


# ------------------------------------------------------------------------------------ checking


def check_arguments(more: Any) -> None:
    same("overloads", [more.which(x) for x in (Array(), Array(shape=(2, 3), typestr="<f8"), None, "x", 5, Host())],
         ["float32 6", "float64 2 24", "None", "text x", "object", "object"])  # fmt: skip
    same("another dtype", raised(more.which, Array(typestr="<i4")), "TypeError: float32 or float64 is expected")
    same("a wrong array", raised(more.which, Array(shape=(-1,))), "ValueError: shape[0] = -1 is negative")
    same("the same without overloads", raised(more.only, Array(shape=(-1,))), "ValueError: shape[0] = -1 is negative")
    same("no array", raised(more.only, 5), NONE + "int")
    same("None where an array must be", raised(more.only, None), NONE + "NoneType")
    same("optional", [more.optional(Array()), more.optional(None), more.optional()], [6, -1, -1])
    same("a wrong optional", raised(more.optional, Array(version=-1))[:11], "ValueError:")
    same("flags", [more.host(Host()), raised(more.only, Host())], [6, NONE + "Host"])
    same("lists", [more.sizes([]), more.sizes([Array(), Host()]), more.sizes((Array(),))], [0, 12, 6])
    same("a list with None", raised(more.sizes, [Array(), None])[:12], "TypeError: t")
    same("a list with a wrong array", raised(more.sizes, [Array(), Array(shape=(-2,))]),
         "ValueError: shape[0] = -2 is negative")  # fmt: skip


def check_streams(more: Any) -> None:
    same("streams", [more.stream(1), more.stream(Stream((0, 7)))], [1, 7])
    same("no stream at all", raised(more.stream, "s")[:21], "TypeError: a stream i")
    same("None", raised(more.stream, None)[:26], "TypeError: stream is None,")
    same("a wrong pair", raised(more.stream, Stream((3, 7)))[:11], "ValueError:")
    same("0", raised(more.stream, 0)[:22], "ValueError: stream = 0")


def check(library: pathlib.Path) -> None:
    more = load(library, "cython_more")  # with the saxpy in it
    check_arguments(more)
    check_streams(more)
    same("an end without a begin", raised(more.no_begin)[:13], "RuntimeError:")
    check_module(more, more, [more.only])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--only", default="", help="of --self-test: defects with one of these in their names, with | between")
    parser.add_argument("--library", type=pathlib.Path, help="only the checks, of a library that was built")
    options = parser.parse_args()
    if options.library:
        check(options.library)
        return ended()
    needs(numpy=False, cc=options.cxx)
    if not importlib.util.find_spec("Cython"):
        skip("this Python has no Cython")
    more = HERE / "cython_more.pyx"
    with tempfile.TemporaryDirectory(prefix="cai-cython-") as name:
        options.parts = pathlib.Path(name)
        library = compile_pyx(options, options.parts, CASTERS, more)
        same("a process with all checks", leaks(__file__, library), "")
        check_snippet(options)
        check_lines("saxpy_cython.pyx", ["#"])
        if options.self_test:
            self_test("cai.pxd", DEFECTS, options.parts,
                      lambda folder: leaks(__file__, compile_pyx(options, folder, folder, more, ["-w"])), options.only)  # fmt: skip
    return ended()


if __name__ == "__main__":
    sys.exit(main())
