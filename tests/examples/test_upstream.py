#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/upstream: what the patches add compiles with these headers, and passes the tests that the patches add.

    test_upstream.py --cxx g++ --nm nm

The other projects are not here. Stand-ins take the place of what the added code needs of them. That the patches apply
to their commits is checked by hand (examples/upstream/README.md). Exit status 0: all is right; 1: not; 3: it does not
compile; 77 with a reason: something is missing.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import types
from typing import Any

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE), str(HERE.parents[1] / "packaging")]
from build_module import needs, skip  # noqa: E402
from caster_support import PYTHON, ROOT, STRICT, SUFFIX, ended, load, run, same  # noqa: E402
from make_release import license_of  # noqa: E402

UPSTREAM = ROOT / "examples" / "upstream"
MODULE = ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT}"]
CUTILE = ["-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-fPIC", "-fvisibility=hidden", "-DNDEBUG",
          "-fno-builtin", "-Wall", "-Werror", *PYTHON]  # fmt: skip

CUTILE_PY_H = """
#pragma once
#include <Python.h>
#include <utility>
struct Failed {};
struct Passed {};
static constexpr Failed ErrorRaised = {};
static constexpr Passed OK = {};
struct Status {
    bool passed;
    Status(Failed) : passed(false) {}
    Status(Passed) : passed(true) {}
    explicit operator bool() const { return passed; }
};
template <class T> struct Result {
    T value;
    bool passed;
    Result(Failed) : value(), passed(false) {}
    Result(const T &v) : value(v), passed(true) {}
    bool is_ok() const { return passed; }
    const T &operator*() const { return value; }
};
struct PyPtr {
    PyObject *p;
    explicit PyPtr(PyObject *q = nullptr) : p(q) {}
    PyPtr(const PyPtr &) = delete;
    PyPtr &operator=(PyPtr &&other)
    {
        std::swap(p, other.p);
        return *this;
    }
    ~PyPtr() { Py_XDECREF(p); }
    PyObject *get() const { return p; }
    explicit operator bool() const { return p; }
};
inline PyPtr steal(PyObject *p) { return PyPtr(p); }
inline PyPtr newref(PyObject *p) { return PyPtr(Py_NewRef(p)); }
void py_add(const char *text);
void py_add(long long number);
Failed py_raise(PyObject *type);
inline void py_add(int number) { py_add(static_cast<long long>(number)); }
inline void py_add(long number) { py_add(static_cast<long long>(number)); }
template <class... Parts> Failed raise(PyObject *type, Parts... parts)
{
    (py_add(parts), ...);
    return py_raise(type);
}
"""

CUTILE_MODULE = """
#include "cuda_array_interface.h"
#include <string>
static std::string text;
void py_add(const char *more) { text += more; }
void py_add(long long number) { text += std::to_string(number); }
Failed py_raise(PyObject *type)
{
    PyErr_SetString(type, text.c_str());
    text.clear();
    return ErrorRaised;
}
enum { kDLInt, kDLUInt, kDLFloat, kDLBfloat = 4, kDLBool = 6, BYTE_BITWIDTH = 8 };
struct DLDataType {
    uint8_t code, bits;
    uint16_t lanes;
};
union Word {
    void *device_ptr;
    int64_t i64;
};
using ArenaOffset = size_t;
struct Arena {
    Word words[1 + 2 * CAI_MAX_NDIM];
    Word &operator[](size_t i) { return words[i]; }
};
static ArenaOffset arena_alloc_words(Arena &, size_t) { return 0; }
@DTYPE@
static Result<DLDataType> extract(PyObject *pyobj, unsigned index_bitwidth, Arena &arena, int32_t &rank)
{
@READ@
    rank = ndim;
    return *dtype;
}
static PyObject *extract_python(PyObject *, PyObject *obj)
{
    Arena arena;
    int32_t rank = 0;
    const Result<DLDataType> dtype = extract(obj, 32, arena, rank);
    if (!dtype.is_ok()) return nullptr;
    PyObject *const words = PyList_New(0);
    for (int32_t i = 0; i < 1 + 2 * rank; i++) PyList_Append(words, steal(PyLong_FromLongLong(arena[i].i64)).get());
    return Py_BuildValue("iiN", (*dtype).code, (*dtype).bits, words);
}
static PyMethodDef methods[] = {{"extract", extract_python, METH_O, nullptr}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "cutile", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_cutile()
{
    return cuda_array_interface_init() ? PyModule_Create(&definition) : nullptr;
}
"""

GRIDTOOLS_MODULE = """
#include "cuda_array_interface.hpp"
#include <array>
#include <pybind11/stl.h>
namespace gridtools { namespace python_sid_adapter_impl_ {
using std::array;
template <class T, size_t Dim> auto as_cuda_sid(pybind11::object const &src)
{
    auto iface = src.attr("__cuda_array_interface__").cast<pybind11::dict>();
@READ@
    return std::make_tuple(reinterpret_cast<size_t>(ptr), strides, shape);
}
}}
PYBIND11_MODULE(testee, m)
{
    m.def("as_cuda_sid", gridtools::python_sid_adapter_impl_::as_cuda_sid<double const, 3>);
    m.def("as_writable_cuda_sid", gridtools::python_sid_adapter_impl_::as_cuda_sid<double, 3>);
}
"""

NANOBIND_MODULE = """
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <vector>
namespace nb = nanobind;
using namespace nb::literals;
NB_MODULE(test_ndarray_ext, m)
{
    m.def("get_shape", [](const nb::ndarray<nb::ro> &x) {
        nb::list shape;
        for (size_t i = 0; i < x.ndim(); i++) shape.append(x.shape(i));
        return shape;
    });
    m.def("ret_array_api", [] {
        static double values[8];
        return nb::ndarray<nb::array_api, double>(values, {2, 4}, nb::capsule(values, [](void *) noexcept {}));
    });
@ADDED@
}
"""


def hunks(patch: str, path: str) -> list[str]:
    """The lines of the hunks of one file."""
    text = (UPSTREAM / patch).read_text(encoding="utf-8")
    part = text.split(f"diff --git a/{path} b/{path}\n", 1)[1].split("\ndiff --git ", 1)[0]
    return part[part.index("\n@@") + 1 :].splitlines()


def after(patch: str, path: str, signs: str = "+ ") -> str:
    """What the hunks of a file leave, or with signs="+" what they add."""
    return "".join(line[1:] + "\n" for line in hunks(patch, path) if line[:1] in (*signs, ""))


def added(patch: str, path: str) -> str:
    return after(patch, path, "+")


def between(text: str, first: str, end: str) -> str:
    """From `first` to what comes before `end`."""
    start = text.index(first)
    return text[start : text.index(end, start)]


def new_files(patch: str, folder: pathlib.Path) -> None:
    """Writes the files that a patch makes, without their folders."""
    text = (UPSTREAM / patch).read_text(encoding="utf-8")
    for path in re.findall(r"^diff --git a/(\S+) b/\S+\nnew file", text, re.MULTILINE):
        (folder / pathlib.Path(path).name).write_text(added(patch, path), encoding="utf-8")


def check_readme() -> None:
    """The page has the commit of each patch and the lines that it adds and removes."""
    page = (UPSTREAM / "README.md").read_text(encoding="utf-8")
    for patch in sorted(UPSTREAM.glob("*.patch")):
        text = patch.read_text(encoding="utf-8")
        paths = re.findall(r"^diff --git a/(\S+) b/", text, re.MULTILINE)
        lines = [line for path in paths for line in hunks(patch.name, path)]
        numbers = f"+{sum(line[:1] == '+' for line in lines)} -{sum(line[:1] == '-' for line in lines)}"
        row = re.search(rf"^\| \[{patch.stem}\.patch\]\({patch.name}\) .*$", page, re.MULTILINE)
        same(f"{patch.name} is in the table", bool(row), True)
        same(f"{patch.name} has {numbers} there", numbers in (row[0] if row else ""), True)
        same(f"{patch.name} has its commit there", bool(row and re.search(r"`[0-9a-f]{40}`", row[0])), True)
        said = license_of(patch.read_bytes())
        same(f"{patch.name} is {said} there, as in the list of a release", f", {said} |" in (row[0] if row else ""), True)
        texts = UPSTREAM.glob(f"licenses/{patch.stem if said.startswith('BSD') else '*'}.txt")  # a BSD one names its owner
        same(f"the text of {patch.name}'s license", said in [license_of(text.read_bytes()) for text in texts], True)
        same(f"{patch.name} has no copy of cai", any(path.endswith("cai.h") for path in paths), False)


def constraints(module: Any) -> types.SimpleNamespace:
    """What the test of cuTile sees of an argument."""

    def of(_: object, arguments: tuple, __: object) -> list:
        assert hasattr(arguments[0], "__cuda_array_interface__")  # as cuTile asks before it reads
        code, bits, words = module.extract(arguments[0])
        strides = words[1 + len(words) // 2 :]
        facts = {"dtype": (code, bits), "stride_constant": tuple(1 if stride == 1 else None for stride in strides),
                 "stride_divisible_by": tuple(128 // bits if stride * bits % 128 == 0 else 1 for stride in strides)}
        return [types.SimpleNamespace(**facts)]

    convention = types.SimpleNamespace(cutile_python_v1=lambda: None)
    return types.SimpleNamespace(get_parameter_constraints_from_pyargs=of, CallingConvention=convention)


def check_cutile(options: argparse.Namespace, folder: pathlib.Path) -> None:
    new_files("cutile.patch", folder)
    (folder / "py.h").write_text(CUTILE_PY_H, encoding="utf-8")
    kernel = after("cutile.patch", "cext/tile_kernel.cpp")
    dtype = between(kernel, "static Result<DLDataType> dtype_from_cai", "struct ArrayType")
    read = between(kernel, "    cai_array array;", "    return ArrayRepr {")
    module = folder / "module.cpp"
    module.write_text(CUTILE_MODULE.replace("@DTYPE@", dtype).replace("@READ@", read), encoding="utf-8")
    parts = [folder / (name + ".o") for name in ("cuda_array_interface", "libc")]
    for part in parts:
        run([options.cxx, *CUTILE, f"-I{ROOT}", "-c", part.with_suffix(".cpp"), "-o", part])
    names = [set(re.findall(rf" {kind} (?!_GLOBAL)(\w+)", subprocess.run([options.nm, part], capture_output=True, text=True).stdout))
             for kind, part in (("U", parts[0]), ("T", parts[1]), ("U", parts[1]))]  # fmt: skip
    missing = {name for name in names[0] if not name.startswith(("Py", "_Py", "_Z")) and name not in names[1]}
    same("functions of C that nothing defines", missing | names[2], set())
    library = folder / ("cutile" + SUFFIX)
    run([options.cxx, "-std=c++17", *MODULE, *PYTHON, f"-I{folder}", module, *parts, "-o", library])
    tile = types.ModuleType("cuda.tile")
    tile.kernel, tile.bfloat16, tile._cext = (lambda function: function), (4, 16), constraints(load(library, "cutile"))
    sys.modules["cuda.tile"] = tile
    test = folder / "test_cuda_array_interface.py"
    same("the test of cuTile", options.pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(test)]), 0)


def check_gridtools(options: argparse.Namespace, folder: pathlib.Path) -> None:
    new_files("gridtools.patch", folder)
    module = folder / "testee.cpp"
    adapter = after("gridtools.patch", "include/gridtools/storage/adapter/python_sid_adapter.hpp")
    read = between(adapter, "auto const source = read_array_interface(iface);", "using sid::property;")
    module.write_text(GRIDTOOLS_MODULE.replace("@READ@", read), encoding="utf-8")
    library = folder / ("testee" + SUFFIX)
    system = ["-isystem", options.pybind11.get_include(), *PYTHON]
    run([options.cxx, "-std=c++17", *MODULE, *STRICT, f"-I{folder}", *system, module, "-o", library])
    testee = load(library, "testee")

    def check(source: object, *wanted: object) -> None:
        data, strides, shape = testee.as_cuda_sid(source)
        assert (data, tuple(strides), tuple(shape)) == wanted, (data, strides, shape, wanted)

    def mock(**entries: object) -> types.SimpleNamespace:
        return types.SimpleNamespace(__cuda_array_interface__=entries)

    seen = types.SimpleNamespace(check_cuda_sid=check, as_writable_cuda_sid=testee.as_writable_cuda_sid)
    driver = after("gridtools.patch", "tests/regression/py_bindings/driver.py")
    names: dict[str, Any] = {"testee": seen, "Mock": mock}
    exec(between(driver, "GOOD = ", "test_3d()"), names)
    for name in ("test_cuda_sid_is_taken", "test_cuda_sid_is_refused"):
        names[name]()


def check_nanobind(options: argparse.Namespace, folder: pathlib.Path) -> None:
    shown = added("nanobind.patch", "docs/ndarray.rst")
    test = added("nanobind.patch", "tests/test_ndarray.cpp")
    for line in ('x.attr("__dlpack__")("stream"_a = stream)', "nb::cast<nb::ndarray<double, nb::ndim<2>>>(capsule)"):
        same(f"the page and the test have {line}", [line in shown, line in test], [True, True])
    module, library = folder / "nb.cpp", folder / ("test_ndarray_ext" + SUFFIX)
    module.write_text(NANOBIND_MODULE.replace("@ADDED@", test), encoding="utf-8")
    root = pathlib.Path(options.nanobind.include_dir()).parent
    system = ["-isystem", root / "include", "-isystem", root / "ext" / "robin_map" / "include", *PYTHON]
    run([options.cxx, "-std=c++17", "-O0", *MODULE[1:], "-w", "-fno-strict-aliasing", *system, module,
         root / "src" / "nb_combined.cpp", "-o", library])  # fmt: skip
    names: dict[str, Any] = {"pytest": options.pytest, "t": load(library, "test_ndarray_ext")}
    exec(added("nanobind.patch", "tests/test_ndarray.py"), names)
    names["test56_import_on_stream"]()


def check_cccl() -> None:
    lines = added("cccl.patch", "python/cuda_stf/cuda/stf/_experimental/_stf_bindings_impl.pyx")
    names: dict[str, Any] = {}
    exec("def validate(cai):\n" + lines + "\n    return 'taken'", names)
    same("no mask", [names["validate"]({}), names["validate"]({"mask": None})], ["taken", "taken"])
    try:
        same("a mask", names["validate"]({"mask": object()}), None)
    except ValueError as error:
        same("a mask", "mask" in str(error), True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--nm", required=True)
    options = parser.parse_args()
    needs(numpy=False, cc=options.cxx)
    try:
        import nanobind
        import pybind11
        import pytest
    except ImportError as error:
        skip(str(error))
    options.nanobind, options.pybind11, options.pytest = nanobind, pybind11, pytest
    check_readme()
    check_cccl()
    for check in (check_cutile, check_gridtools, check_nanobind):
        with tempfile.TemporaryDirectory() as folder:
            check(options, pathlib.Path(folder))
    return ended()


if __name__ == "__main__":
    sys.exit(main())
