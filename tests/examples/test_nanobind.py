#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_nanobind.h: functions bound with nanobind take arrays of any library, in order, and keep nothing.

    test_nanobind.py --cxx g++ --cc gcc [--self-test]

The saxpy of the example runs on the simulated CUDA. A second module has overloads, None, lists, results, streams and
exceptions. At the end of its process no array is alive, the simulation has no leaks, and nanobind reports none. The
module of docs/python.md runs, too. With --self-test defects are planted in a copy of the caster, and each must be found. Exit status 0: all is right; 1: not;
3: it does not compile; 77 with a reason: no nanobind, no compiler or no Python.h.
"""

from __future__ import annotations

import argparse
import ctypes
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
    PYTHON, ROOT, SHARED, STRICT, SUFFIX, TYPED, Array, Host, Stream, check_lines, check_manual, check_module, check_typed, device, ended, includes, leaks,
    load, raised, run, same, self_test)  # fmt: skip

CASTERS = ROOT / "ext"
DEFECTS = [
    *SHARED, *TYPED,
    ("what is wrong goes to the next overload", "return found != CAI_PYTHON_NOT_MINE;",
     "error = nullptr; return found == CAI_PYTHON_TAKEN;"),
    ("what is no array is an error", "return found != CAI_PYTHON_NOT_MINE;", "return true;"),
    ("None is an array", "if (!found) throw next_overload();\n        return *found;", "(void)found;\n        return value;"),
    ("nullptr for all", "return is_null ? nullptr", "return true ? nullptr"),
    ("a list has None", "    Py_XDECREF(items);", "    found += found == CAI_PYTHON_NOT_MINE;\n    Py_XDECREF(items);"),
    ("a wrong item is lost", "    Py_XDECREF(items);",
     "    if (found < 0) PyErr_Clear(), found = 0;\n    Py_XDECREF(items);"),
    ("a list is kept", "    Py_XDECREF(items);", ""),
    ("None never comes to typed", "struct has_arg_defaults<cai_caster::typed<T, NDIM>> : std::true_type", "struct cai_unused"),
    ("the stream object of an optional goes first", "template <> struct type_caster<std::optional<cai_caster::stream>> {",
     "template <typename> struct cai_no_caster;\ntemplate <> struct cai_no_caster<std::optional<cai_caster::stream>> {"),
    ("an error without its text", "(void)cai_python_raise(&e);", "PyErr_SetString(PyExc_ValueError, e.what() + 2);"),
]  # fmt: skip


SHOWN = """
#include "saxpy_device.h"
static saxpy_device *device;
static const cai_cuda *simulated() { return saxpy_device_cuda(device = saxpy_device_open()); }
int32_t launch_double(const cai_array &x, const cai_array &y, uint64_t s)
{
    return saxpy_device_launch(device, 2, &x, 0, &y, s, nullptr);
}
static const char *at_end() // of what the simulation calls leaks
{
    const cai_cuda *const cuda = saxpy_device_cuda(device);
    cai_status status = cai_nb::pool().close(nullptr);
    if (!status) status = cai_emm_pool_destroy(&blocks, nullptr);
    if (cuda->context_pop(cuda->self) || cuda->primary_release(cuda->self, 0)) return "the context is still there";
    return status ? "not closed" : saxpy_device_leaks(device);
}
NB_MODULE(doubled_more, m)
{
    uint64_t context = 0;
    const cai_cuda *const cuda = cai_nb::pool().cuda();
    cai::check_cuda(cuda->primary_retain(cuda->self, 0, &context), "primary_retain");
    cai::check_cuda(cuda->context_push(cuda->self, context), "context_push");
    m.def("new_stream", [] { return saxpy_device_new_stream(device); });
    m.def("drop_stream", [](uint64_t stream) { saxpy_device_drop_stream(device, stream); });
    m.def("run", [] { return saxpy_device_run(device); });
    m.def("calls", [] { return saxpy_device_calls(device); });
    m.def("at_end", at_end);
}
"""


def compile_module(options: argparse.Namespace, casters: pathlib.Path, source: pathlib.Path, library: pathlib.Path,
                   warnings: Sequence[str]) -> pathlib.Path:  # fmt: skip
    """A library with all modules of a file. What does not depend on the caster is compiled once."""
    part, robin_map = options.parts / "nanobind.o", options.nanobind / "ext" / "robin_map" / "include"
    system = ["-isystem", options.nanobind / "include", "-isystem", robin_map, *PYTHON]
    cxx = [options.cxx, "-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden", "-DCAI_NO_CUDART", "-DCAI_NO_LOADER"]
    if not part.exists():
        combined = options.nanobind / "src" / "nb_combined.cpp"
        run([*cxx, "-fno-strict-aliasing", "-w", "-c", combined, *system, "-o", part])
    run([*cxx, *warnings, source, *includes(casters), *system, "-shared", part, device(options.cc, options.parts),
         "-lpthread", "-o", library])  # fmt: skip
    return library


def build(options: argparse.Namespace, folder: pathlib.Path, casters: pathlib.Path,
          warnings: Sequence[str] = STRICT) -> pathlib.Path:  # fmt: skip
    """A library with the saxpy and with the second module."""
    library = folder / ("saxpy_nanobind" + SUFFIX)
    return compile_module(options, casters, HERE / "nanobind_more.cpp", library, warnings)


def check_shown(options: argparse.Namespace) -> None:
    """The module of docs/python.md, with a kernel on the simulated CUDA."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    shown = re.search(r"```c\+\+\n(// doubled\.cpp.*?)```", text, re.DOTALL)[1]
    same("it opens what is linked", shown.count("cai_cuda_linked"), 1)
    source = options.parts / "doubled.cpp"
    declared = "static const cai_cuda *simulated();\n\nNB_MODULE(doubled"
    shown = shown.replace("cai_cuda_linked", "simulated()").replace("NB_MODULE(doubled", declared)
    source.write_text(shown + SHOWN, encoding="utf-8")
    library = compile_module(options, CASTERS, source, options.parts / ("doubled" + SUFFIX), STRICT)
    module, more = load(library, "doubled"), load(library, "doubled_more")
    memory, producer, consumer = (ctypes.c_float * 6)(*range(6)), more.new_stream(), more.new_stream()
    x = Array(data=(ctypes.addressof(memory), False), shape=(2, 3), stream=producer)
    more.calls()
    y = module.doubled(x, Stream((0, consumer)))
    same("a wait at each end", more.calls().count("stream_wait_event"), 2)
    seen = y.__cuda_array_interface__
    same("what is returned", [seen["shape"], seen["typestr"], seen["stream"]], [(2, 3), "<f4", consumer])
    more.run()
    same("numbers", list((ctypes.c_float * 6).from_address(seen["data"][0])), [0, 2, 4, 6, 8, 10])
    empty = module.doubled(Array(data=(0, False), shape=(0, 4)), consumer)
    same("of an empty array", [empty.shape, empty.device], [(0, 4), 0])
    same("a wrong dtype", raised(module.doubled, Array(typestr="<f8"), consumer),
         "ValueError: x: expected float32, on the device; got float64, 1-D")  # fmt: skip
    del y, empty
    more.drop_stream(producer), more.drop_stream(consumer)
    same("leaks", more.at_end(), "")


def check_arguments(more: Any) -> None:
    same("overloads on the rank", [more.rank(Array()), more.rank(Array(shape=(2, 3)))], ["1-D", "2-D"])
    same("none for this rank", raised(more.rank, Array(shape=(1, 2, 3)))[:51], "TypeError: rank(): incompatible function arguments.")
    same("an array", more.which(Array()), "array 6")
    same("a text", more.which("x"), "text x")
    same("an int", more.which(5), "object")
    same("None", raised(more.which, None)[:50], "TypeError: which(): incompatible function argument")
    same("host memory", more.which(Host()), "object")
    same("a wrong array", raised(more.which, Array(shape=(-1,))), "ValueError: shape[0] = -1 is negative")
    same("no array", raised(more.only, 5)[:58], "TypeError: only(): incompatible function arguments. The fo")
    same("None where an array must be", raised(more.only, None)[:46], "TypeError: only(): incompatible function argum")
    same("a pointer", [more.pointer(Array()), more.pointer(None)], [6, -1])
    same("None for a reference", raised(more.reference, None)[:24], "TypeError: reference(): ")
    same("a wrong pointer", raised(more.pointer, Array(data=(1, 2))), raised(more.only, Array(data=(1, 2))))
    same("optional", [more.optional(Array()), more.optional(None)], [6, -1])
    same("a wrong optional", raised(more.optional, Array(version=-1))[:30], "TypeError: optional(): incompa")
    same("flags", more.host(Host()), 6)
    same("lists", [more.sizes([]), more.sizes([Array(), Host()]), more.sizes((Array(),))], [0, 12, 6])
    same("a list with None", raised(more.sizes, [Array(), None])[:20], "TypeError: sizes(): ")
    same("a list with an int", raised(more.sizes, [Array(), 7])[:20], "TypeError: sizes(): ")
    same("no list", raised(more.sizes, Array())[:20], "TypeError: sizes(): ")
    same("a list with a wrong array", raised(more.sizes, [Array(), Array(shape=(-2,))]),
         "ValueError: shape[0] = -2 is negative")  # fmt: skip


def check_streams(more: Any) -> None:
    same("streams", [more.stream(1), more.stream(Stream((0, 7)))], [1, 7])
    same("no stream at all", raised(more.stream, "s")[:22], "TypeError: stream(): i")
    same("None", raised(more.stream, None)[:22], "TypeError: stream(): i")
    same("a wrong pair", raised(more.stream, Stream((3, 7)))[:4].isalpha(), True)
    same("0", raised(more.stream, 0)[:22], "ValueError: stream = 0")


def check(library: pathlib.Path) -> None:
    saxpy, more = load(library, "saxpy_nanobind"), load(library, "nanobind_more")
    check_arguments(more)
    check_streams(more)
    check_typed(more)
    check_module(saxpy, more, [more.pointer])


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
    found = importlib.util.find_spec("nanobind")
    if not found or not found.origin:
        skip("this Python has no nanobind")
    options.nanobind = pathlib.Path(found.origin).parent
    with tempfile.TemporaryDirectory(prefix="cai-nanobind-") as name:
        options.parts = pathlib.Path(name)
        same("a process with all checks", leaks(__file__, build(options, options.parts, CASTERS)), "")
        check_shown(options)
        check_manual("cai_nanobind.h", options.parts,
                     [options.cxx, "-std=c++17", "-DCAI_NO_CUDART", *STRICT, *includes(CASTERS), "-isystem",
                      options.nanobind / "include", *PYTHON])  # fmt: skip
        check_lines("saxpy_nanobind.cpp", ["/*", "*"])
        if options.self_test:
            self_test("cai_nanobind.h", DEFECTS, options.parts,
                      lambda casters: leaks(__file__, build(options, casters, casters, ["-w"])), options.only)  # fmt: skip
    return ended()


if __name__ == "__main__":
    sys.exit(main())
