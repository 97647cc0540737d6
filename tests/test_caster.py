#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/casters: a module with pybind11 takes what cai_python_import takes, raises what it raises, keeps nothing.

    test_caster.py --cxx g++ [--pybind11 FOLDER] [--self-test]

What it raises is compared with what the smallest binding of docs/python.md raises, for the same objects. With
--self-test defects are planted in a copy of the caster, and each must be found. Exit status 0: all is right; 1: not;
3: the example does not compile; 77 with a reason: no pybind11, no NumPy, no C++ compiler or no Python.h.
"""

from __future__ import annotations

import argparse
import gc
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import tracemalloc
import weakref
from typing import Any, Callable

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
CASTERS = ROOT / "examples" / "casters"
sys.path.insert(0, str(ROOT / "tests" / "python_example"))
from build_module import load, needs, skip  # noqa: E402
from check_smallest import snippet  # noqa: E402

LINES = 60
FLAGS = ["-std=c++17", "-O1", "-fPIC"]
STRICT = ["-Wall", "-Wextra", "-Werror"]
PLAIN = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
NOT_OURS = "TypeError: facts(): incompatible function arguments"
FUNCTION = """#define CAI_IMPLEMENTATION
#include "cai_pybind11.h"
static void take(%s x) { cai_array_release(&x); }
PYBIND11_MODULE(probe, module) { module.def("take", take); }
"""

# What it is, what is there, what stands there instead
DEFECTS = [
    ("no release", "if (py) cai_python_release(py, &value, 1);", ""),
    ("nothing is dropped", "cai_python_release(py, &value, 1);", "cai_array_release(&value);"),
    ("a move leaves an owner behind", "cai_array_move(this, &from);", "static_cast<cai_array &>(*this) = from;"),
    ("every TypeError is no array", "if (text.find(", "if (text.empty() && text.find("),
    ("no other overload", "return false;", "throw error;"),
    ("ValueError is no array", "if (text.find(", "if (!error.matches(PyExc_ValueError) && text.find("),
    ("flags are lost", "{Flags, 0, 0}", "{Flags * 0, 0, 0}"),
    ("host memory is always welcome", "{Flags, 0, 0}", "{Flags | CAI_PYTHON_HOST, 0, 0}"),
    ("a failure keeps the object", "value.release = nullptr;", "value.release = nullptr; object.inc_ref();"),
    ("a copy of what is owned", "enable_if_t<std::is_lvalue_reference<T>::value, cai_array &>", "cai_array &"),
]  # fmt: skip

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
    target = pathlib.Path(folder) / (name + sysconfig.get_config_var("EXT_SUFFIX"))
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
    """Each block that is lost is one of 20000; all that else may stay is a few objects of Python's own."""
    calls = [(module.facts, Array()), (module.facts, WRONG[0]), (module.total, numpy.ones(4)), (module.facts, 3)]
    sizes = []
    tracemalloc.start()
    for _ in range(2):
        for function, given in calls:
            for _ in range(5000):
                said(function, given)
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    same("5000 blocks less grew", sizes[1] - sizes[0] < 5000 * 8, True)


def check_sources(options: argparse.Namespace, folder: str) -> None:
    """Short, C++11, and not to be used by value, which would be a copy of what is owned."""
    for name in ("cai_pybind11.h", "caster_example.cpp"):
        length = len((options.casters / name).read_text(encoding="utf-8").splitlines())
        same(f"{name}, {length} lines: at most {LINES}", length <= LINES, True)
    for kind, compiles in (("cai_array &", True), ("cai::array", True), ("cai_array", False)):
        source = pathlib.Path(folder) / "probe.cpp"
        source.write_text(FUNCTION % kind, encoding="utf-8")
        made = compile_cxx(options, source, *STRICT, "-std=c++11", "-fsyntax-only")
        same(f"{kind} x compiles", made.returncode == 0, compiles)


def self_test(options: argparse.Namespace) -> int:
    missed = 0
    for what, before, after in DEFECTS:
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(options.casters, pathlib.Path(folder) / "casters")
            text = (copy / "cai_pybind11.h").read_text(encoding="utf-8")
            (copy / "cai_pybind11.h").write_text(text.replace(before, after), encoding="utf-8")
            command = [sys.executable, "-B", __file__, "--cxx", options.cxx, "--pybind11", options.pybind11]
            run = subprocess.run([*command, "--casters", str(copy)], capture_output=True, text=True, check=False)
        found = before in text and (run.returncode == 1 or run.returncode < 0)
        missed += not found
        first = (run.stdout + run.stderr).split("\n")[0][:100] or f"ended by signal {-run.returncode}"
        print("found" if found else f"NOT FOUND ({run.returncode})", what, first, sep=": ", flush=True)
    print(f"{len(DEFECTS) - missed} of {len(DEFECTS)} defects found")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--pybind11", help="the folder of its headers; else what its package says")
    parser.add_argument("--casters", type=pathlib.Path, default=CASTERS, help="the folder of the caster")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
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
        source = pathlib.Path(folder) / "smallest.cpp"
        source.write_text(snippet(), encoding="utf-8")
        smallest = build(options, folder, "smallest", source, "-w")
        module = build(options, folder, "caster_example", options.casters / "caster_example.cpp", *STRICT)
        check_sources(options, folder)
        check_facts(module, smallest)
        check_overloads(module, numpy)
        check_total(module, numpy)
        check_references(module, numpy)
        check_memory(module, numpy)
    for failure in failures[:20]:
        print(failure)
    print(f"checks {checks}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
