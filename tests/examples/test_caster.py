#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_pybind11.h: a module with pybind11 takes what cai_python_import takes, raises what it raises, keeps nothing.

    test_caster.py --cxx g++ [--pybind11 FOLDER] [--self-test [--only TEXT]]

What it raises is compared with what the smallest binding of docs/python.md raises, for the same objects. A second
module has overloads, containers, pointers and py::cast. With --self-test defects are planted in a copy of the caster, and each must be found. Exit status 0: all is right; 1: not;
3: the example does not compile; 77 with a reason: no pybind11, no NumPy, no C++ compiler or no Python.h.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gc
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref
from typing import Any, Callable, Iterator, NamedTuple

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
CASTERS = ROOT / "ext"
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "tests" / "examples" / "python"), str(ROOT / "tests" / "support"), str(ROOT / "tests" / "python")]
from build_module import load, needs, skip  # noqa: E402
from check_smallest import snippet  # noqa: E402
from parts import traced_growth  # noqa: E402
from planting import choose  # noqa: E402

FLAGS = ["-std=c++17", "-O0", "-fPIC"]
STRICT = ["-Wall", "-Wextra", "-Werror"]
PLAIN = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
NOT_OURS = "TypeError: facts(): incompatible function arguments"
FUNCTION = """#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_pybind11.h"
#include <pybind11/stl.h>
template <typename T> static void take(T x) { (void)x; }
template <typename T> static void cast(const pybind11::object &x) { auto &&made = pybind11::cast<T>(x); (void)made; }
PYBIND11_MODULE(probe, module)
{
%s}
"""

# Whether it compiles
KINDS = [("take<cai::array>", True), ("take<cai::array &&>", True), ("take<const cai::array &>", True),
         ("take<const cai::array *>", True), ("take<cai::array *>", True), ("take<std::vector<cai::array>>", True),
         ("cast<cai::array>", True), ("cast<std::vector<cai::array>>", True), ("take<cai::array &>", False),
         ("cast<const cai::array &>", False)]  # fmt: skip

MORE = """#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_pybind11.h"
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <optional>
#include <string>
#include <variant>
namespace py = pybind11;
using any_array = cai_py::basic_array<CAI_PYTHON_HOST>;

static std::string of_device(const cai::array &) { return "array"; }
static std::string of_numpy(py::array) { return "numpy"; }
static std::string of_object(py::object) { return "object"; }
static long extent(const cai::array *x) { return x ? static_cast<long>(x->shape[0]) : -1; }
static long extent_owned(cai::array *x) { return x ? static_cast<long>(x->shape[0]) : -1; }
static long extent_reference(const cai::array &x) { return static_cast<long>(x.shape[0]); }
static std::vector<long> extents(std::vector<any_array> x)
{
    std::vector<long> made;
    std::vector<any_array> moved;
    for (any_array &item : x) moved.push_back(std::move(item));
    for (const any_array &item : moved) made.push_back(static_cast<long>(item.shape[0]));
    return made;
}
static long assigned(const py::object &x)
{
    cai::array made = py::cast<cai::array>(x), other = x.cast<cai::array>();
    cai::array third = py::object(x).cast<cai::array>(); /* an rvalue that others have, too */
    made = std::move(other);
    third = std::move(third);
    if (!third.release) return -2;
    made = std::move(third);
    return static_cast<long>(made.shape[0]);
}
PYBIND11_MODULE(more, module)
{
    cai_py::open(module);
    module.def("which", of_device);
    module.def("which", of_numpy);
    module.def("which", of_object);
    module.def("pointer", extent);
    module.def("owned_pointer", extent_owned);
    module.def("reference", extent_reference);
    module.def("vector", extents);
    module.def("assigned", assigned);
    module.def("not_none", extent, py::arg("x").none(false));
    module.def("pointer_or_object", extent);
    module.def("pointer_or_object", of_object);
    module.def("returned", [](cai::array x) { return x; });
    module.def("adopted", [] {
        const int64_t size = 2;
        cai::array made;
        cai::call(cai_array_init, &made, CAI_INT32, 1, &size, nullptr, &made);
        made.memory = CAI_MEMORY_HOST;
        made.own(std::string("kept"));
        PyObject *const object = cai_caster::exchange.adopt(cai_caster::find_state()->type, &made);
        if (!object) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(object);
    });
    module.def("optional", [](std::optional<cai::array> x) { return x ? static_cast<long>(x->shape[0]) : -1; });
    module.def("variant", [](const std::variant<long, cai::array, std::string> &x) { return x.index(); });
}
"""

TAKEN = "if (found == CAI_PYTHON_FAILED) throw error_already_set();"
HEADERS = ("cai_pybind11.h", "cai_caster.h")


class Defect(NamedTuple):
    name: str
    before: str
    after: str


DEFECTS = [Defect(*defect) for defect in [
    ("nothing is dropped", "    cai_python_release(&of->py, &array, 1); /* and", "    cai_array_release(&array); /* and"),
    ("every TypeError is no array", TAKEN,
     "if (found < 0 && PyErr_ExceptionMatches(PyExc_TypeError)) PyErr_Clear(); else " + TAKEN),
    ("ValueError is no array", TAKEN,
     "if (found < 0 && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear(); else " + TAKEN),
    ("no other overload", "return found == CAI_PYTHON_TAKEN;",
     'if (!found) throw type_error("no array");\n        return found == CAI_PYTHON_TAKEN;'),
    ("flags are lost", "options = {flags, 0, 0, nullptr}", "options = {flags * 0, 0, 0, nullptr}"),
    ("host memory is always welcome", "options = {flags, 0, 0, nullptr}",
     "options = {flags | CAI_PYTHON_HOST, 0, 0, nullptr}"),
    ("a taken array is not owned", "to = cai::array(&taken);", "to = cai::array(&taken), to.release = nullptr;"),
    ("None is an array", "return is_null ? nullptr : &value;", "return &value;"),
    ("None is an array where nullptr cannot be said",
     'operator const T &()\n    {\n        if (is_null) throw reference_cast_error("None is no array");',
     "operator const T &()\n    {"),
    ("None is never nullptr", "return convert;", "return convert && false;"),
    ("None is taken before other overloads had it", "return convert;", "return convert || true;"),
    ("a wait without a pool", "return !events || array.sync", "return array.sync"),
    ("adopted work is forgotten", "    return make(array, nullptr);", "    return give(array);"),
    ("a device array without CUDA", "    if (!events) return refuse", "    if (false) return refuse"),
    ("owned elsewhere, and not cast", "operator const T &()",
     "operator T &() { return value; }\n    operator const T &()"),
]]  # fmt: skip

failures: list[str] = []
checks = 0


def same(what: str, got: object, wanted: object) -> None:
    global checks
    checks += 1
    if got != wanted:
        failures.append(f"{what}: {got!r}, not {wanted!r}")


def compile_cxx(options: argparse.Namespace, source: pathlib.Path, *flags: str) -> subprocess.CompletedProcess[str]:
    includes = [f"-I{path}" for path in (options.casters, ROOT, ROOT / "ext")]
    systems = ["-isystem", options.pybind11, "-isystem", sysconfig.get_path("include")]
    command = [options.cxx, *FLAGS, *flags, *includes, *systems, str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def build(options: argparse.Namespace, folder: str, name: str, source: pathlib.Path, *flags: str) -> Any:
    target = pathlib.Path(tempfile.mkdtemp(dir=folder)) / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    made = compile_cxx(options, source, *flags, "-shared", *undefined, "-o", str(target))
    if made.returncode or made.stderr:
        print(made.stderr)
        sys.exit(3)
    return load(target, name)


class Array:
    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {**PLAIN, **changes}


class Number(Array):
    """An array that could be an int, too."""

    def __index__(self) -> int:
        return 5


class Raising:
    """An exporter whose property raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def __cuda_array_interface__(self) -> Any:
        raise self.error.with_traceback(None)


class Entry(Array):
    def __init__(self, table: Any) -> None:
        self.__cuda_array_interface__ = table


def said(function: Callable[[Any], Any], thing: Any) -> str:
    try:
        return f"no error: {function(thing)}"
    except Exception as error:  # noqa: BLE001 - all of them are of interest
        return f"{type(error).__name__}: {error}"


WRONG = [Array(shape=(2, -1)), Array(typestr="<f3"), Array(shape="ab"), Array(shape=(2.5,)), Array(data=(0, False)),
         Array(data=4096), Array(version="3"), Array(strides=(4,)), Array(stream=0), Array(mask=Array()),
         Number(shape=(-2,)), Number(shape=7), Entry(None), Entry([1]), Entry({}),
         Raising(TypeError("of the exporter")), Raising(KeyError("k")), Raising(OSError(5, "no"))]  # fmt: skip


def check_facts(module: Any, smallest: Any) -> None:
    """What it takes, and what it raises: as the binding in C."""
    for given in (Array(), Array(shape=(), typestr="<c16"), Array(shape=(0, 5), data=(0, True)), Array(version=2),
                  Number(shape=(9,)), Array(strides=(24, 8))):
        same(f"facts of {given.__cuda_array_interface__}", module.facts(given)[:2], smallest.facts(given))
    same("may be written to", [module.facts(Array(data=(4096, only)))[2] for only in (False, True)], [True, False])
    for given in WRONG:
        wanted = said(smallest.facts, given)
        same("an error is one", wanted[:8] == "no error", False)
        same("what is raised", said(module.facts, given), wanted)


def check_overloads(module: Any, numpy: Any) -> None:
    """What is no array at all is for the next overload, nothing else is."""
    same("an int", module.facts(7), "the int 7")
    same("an array that is an int, too", module.facts(Number()), ((2, 3), "float32", True))
    for given in (None, "text", b"bytes", object(), Array, Raising, Raising(AttributeError("no")), numpy.ones(3)):
        same(f"{given!r} is no array", said(module.facts, given)[:len(NOT_OURS)], NOT_OURS)


def check_total(module: Any, numpy: Any) -> None:
    """Arrays of NumPy, of whole numbers, whose sum is exact."""
    plain = numpy.arange(100, dtype=numpy.float64)
    for given in (plain, plain[::3], plain[::-7], plain[:0], numpy.broadcast_to(plain[5:6], 9), memoryview(plain)):
        same("total", module.total(given), float(numpy.sum(given)))
    locked = plain.copy()
    locked.flags.writeable = False
    same("total of what is read-only", module.total(locked), 4950.0)
    same("another dtype", said(module.total, plain.astype("f4"))[:12], "ValueError: ")
    same("another dtype is named", "float32" in said(module.total, plain.astype("f4")), True)
    same("on the device", said(module.total, Array(shape=(3,), typestr="<f8")), "ValueError: x is not in host memory")
    threads = [threading.Thread(target=lambda: [same("total", module.total(plain), 4950.0) for _ in range(200)])
               for _ in range(4)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_references(module: Any, numpy: Any) -> None:
    """Nothing is kept, whether it works or not, nor dropped twice."""
    buffer = bytearray(80)
    for function, given in ([(module.facts, thing) for thing in (Array(), Number(), None, *WRONG)]
                            + [(module.total, numpy.ones(4)), (module.total, numpy.ones(4, "f4")),
                               (module.total, memoryview(buffer).cast("d")), (module.total, Array())]):  # fmt: skip
        said(function, given)
        gc.collect()
        table = getattr(given, "__dict__", {}).get("__cuda_array_interface__")
        before = sys.getrefcount(given), sys.getrefcount(table)
        for _ in range(500):
            said(function, given)
        same(f"references after {said(function, given)}", (sys.getrefcount(given), sys.getrefcount(table)), before)
    del given
    buffer.extend(b"x")  # BufferError if it is held
    last = Array()
    watch = weakref.ref(last)
    module.facts(last)
    del last
    same("an array that lives on", watch(), None)


def check_memory(module: Any, numpy: Any) -> None:
    """Each block that is lost is one of 8000; all that else may stay is a few objects of Python's own."""
    calls = [(module.facts, Array()), (module.facts, WRONG[0]), (module.total, numpy.ones(4)), (module.facts, 3)]

    def many(count: int) -> None:
        for function, given in calls:
            for _ in range(count):
                said(function, given)
        gc.collect()

    same("2000 blocks less grew", traced_growth(many, 500, 2000, 2000 * 8) < 2000 * 8, True)


class Liar:
    """An array whose own code fails, with the words of one that is none."""

    @property
    def __cuda_array_interface__(self) -> Any:
        raise TypeError("the object has no __cuda_array_interface__ today: the driver is missing")


def check_more(module: Any, numpy: Any) -> None:
    """Overloads behind it, containers, pointers, py::cast."""
    for given, wanted in ((Array(), "array"), (numpy.zeros(3), "numpy"), (numpy.zeros((0, 2)), "numpy"), (3, "object"),
                          (bytearray(8), "object"), (None, "object"), (memoryview(b"a"), "object"), (Array, "object")):  # fmt: skip
        same(f"which overload takes {given!r:.40}", module.which(given), wanted)
    same("what fails is no other overload's", said(module.which, Liar())[:24], "TypeError: the object ha")
    same("what is wrong is no other overload's", said(module.which, WRONG[0])[:11], "ValueError:")
    five, six = Array(shape=(5,)), Array(shape=(6,))
    same("None is the other overload's", [module.pointer_or_object(x) for x in (five, None)], [5, "object"])
    for name in ("pointer", "owned_pointer", "reference", "assigned", "not_none", "optional"):
        if hasattr(module, name):
            same(f"{name}(an array)", getattr(module, name)(five), 5)
            same(f"{name}(5)", said(getattr(module, name), 5).split(":")[0], "RuntimeError" if name == "assigned" else "TypeError")
            same(f"{name}(a wrong array)", said(getattr(module, name), WRONG[0])[:11], "ValueError:")
    for name, wanted in (("pointer", -1), ("owned_pointer", -1), ("optional", -1), ("reference", None), ("not_none", None)):
        if hasattr(module, name):
            answer = said(getattr(module, name), None)
            same(f"{name}(None)", answer[:9] if wanted is None else answer,
                 "TypeError" if wanted is None else f"no error: {wanted}")  # fmt: skip
    same("a result on a device, without CUDA", said(module.returned, five),
         "BufferError: without CUDA only arrays in host memory are returned: open(m, cuda)")  # fmt: skip
    adopted = module.adopted()
    same("work of adopted arrays stays unknown", said(lambda x: x.__array_interface__, adopted)[:12], "BufferError:")
    unraisable: list[Any] = []
    sys.unraisablehook = unraisable.append
    del adopted
    sys.unraisablehook = sys.__unraisablehook__
    same("and is released without a pool", unraisable, [])
    same("a vector", module.vector([five, numpy.zeros(3), six]), [5, 3, 6])
    same("an empty vector", module.vector(()), [])
    for given in ([five, None], [5], [five, six, 7], five):
        same("a vector with what is no array", said(module.vector, given)[:9], "TypeError")
    same("a vector with a wrong array", said(module.vector, [five, WRONG[0]])[:11], "ValueError:")
    if hasattr(module, "variant"):
        for given, wanted in ((five, 1), (5, 0), ("text", 2)):
            same(f"variant({given!r:.20})", module.variant(given), wanted)
        same("variant(None)", said(module.variant, None)[:9], "TypeError")
        same("variant(a wrong array)", said(module.variant, WRONG[0])[:11], "ValueError:")


def check_more_references(module: Any, numpy: Any) -> None:
    five, host = Array(shape=(5,)), numpy.zeros(3)
    names = [name for name in dir(module) if not name.startswith("_")]
    for name in names:
        for given in (five, host, [five, host], [five, host, 5], [five, WRONG[0]], (five,) * 20):
            before = sys.getrefcount(five), sys.getrefcount(host)
            for _ in range(20):
                said(getattr(module, name), given)
            module.reference(Array())  # what the items of containers had is dropped by the next call
            same(f"references after {name}", (sys.getrefcount(five), sys.getrefcount(host)), before)
    last = Array(shape=(5,))
    watch = weakref.ref(last)
    module.vector([last, last])
    module.assigned(last)
    module.reference(Array())
    del last
    same("an array that lives on in a container", watch(), None)


def check_sources(options: argparse.Namespace, folder: str) -> None:
    """Not to be used as a plain cai_array, which would be a copy of what is owned."""
    right = [kind for kind, compiles in KINDS if compiles]
    for kinds, compiles in [(right, True)] + [([kind], False) for kind, compiles in KINDS if not compiles]:
        source = pathlib.Path(folder) / "probe.cpp"
        source.write_text(FUNCTION % "".join(f'    module.def("f", &{kind});\n' for kind in kinds), encoding="utf-8")
        made = compile_cxx(options, source, *STRICT, "-Wno-unused-function", "-fsyntax-only")
        same(f"{', '.join(kinds)} compiles", made.returncode == 0, compiles)


def groups(options: argparse.Namespace, folder: str, numpy: Any) -> Iterator[None]:
    """All checks, those behind long compilations last; between two groups --planted may leave."""
    source, more = pathlib.Path(folder) / "smallest.cpp", pathlib.Path(folder) / "more.cpp"
    source.write_text(snippet(), encoding="utf-8")
    more.write_text(MORE, encoding="utf-8")
    smallest = build(options, folder, "smallest", source, "-w")
    module = build(options, folder, "caster_example", HERE / "caster_example.cpp", *STRICT)
    check_facts(module, smallest)
    check_overloads(module, numpy)
    check_total(module, numpy)
    check_references(module, numpy)
    if not options.planted:
        check_memory(module, numpy)
    yield
    module = build(options, folder, "more", more, *STRICT)
    check_more(module, numpy)
    check_more_references(module, numpy)
    yield
    check_sources(options, folder)
    yield


def judge(options: argparse.Namespace, defect: Defect) -> tuple[bool, str]:
    """Whether the checks fail over a caster with the defect, and what they print first."""
    with tempfile.TemporaryDirectory() as folder:
        for name in HEADERS:  # found before those of ext
            text = (options.casters / name).read_text(encoding="utf-8")
            (pathlib.Path(folder) / name).write_text(text.replace(defect.before, defect.after), encoding="utf-8")
        command = [sys.executable, "-B", __file__, "--cxx", options.cxx, "--pybind11", options.pybind11, "--planted"]
        run = subprocess.run([*command, "--casters", folder], capture_output=True, text=True, check=False)
    first = (run.stdout + run.stderr).split("\n")[0][:100] or f"ended by signal {-run.returncode}"
    return run.returncode == 1 or run.returncode < 0, f"({run.returncode}) {first}"


def self_test(options: argparse.Namespace) -> int:
    text = "".join((options.casters / name).read_text(encoding="utf-8") for name in HEADERS)
    stale = [defect.name for defect in DEFECTS if defect.before not in text]
    for name in stale:
        print(f"DOES NOT APPLY any more: {name}")
    defects = choose(options, DEFECTS)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda defect: judge(options, defect), defects))
    for defect, (found, said) in zip(defects, verdicts):
        print("found" if found else "NOT FOUND", defect.name, said, sep=": ", flush=True)
    print(f"{sum(found for found, _ in verdicts)} of {len(defects)} defects found")
    return 0 if all(found for found, _ in verdicts) and not stale else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--pybind11", help="the folder of its headers; else what its package says")
    parser.add_argument("--casters", type=pathlib.Path, default=CASTERS, help="the folder of the caster")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--only", default="", help="of --self-test: defects with this in their names")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="of --self-test: one of N defects")
    parser.add_argument("--sample", default="", help="draws the share; without it the commit does")
    parser.add_argument("--planted", action="store_true", help="without what finds no defect of --self-test, until a finding")
    options = parser.parse_args()
    options.root = ROOT
    needs(numpy=True, cc=options.cxx)
    if not options.pybind11:
        try:
            import pybind11
        except ImportError:
            skip("this Python has no pybind11")
        options.pybind11 = pybind11.get_include()
    if not (pathlib.Path(options.pybind11) / "pybind11" / "gil_safe_call_once.h").exists():
        skip(f"no pybind11 2.12 or later in {options.pybind11}")
    if options.self_test:
        return self_test(options)
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        for _ in groups(options, folder, numpy):
            if options.planted and failures:
                break
    for failure in failures[:20]:
        print(failure)
    print(f"checks {checks}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
