#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/bindings/casters: functions bound with nanobind take arrays of any library, in order, and keep nothing.

    test_nanobind.py --cxx g++ --cc gcc [--self-test]

The saxpy of the example runs on the simulated CUDA. A second module has overloads, None, lists, results, streams and
exceptions. With --self-test defects are planted in a copy of the caster, and each must be found. Exit status 0: all
is right; 1: not; 3: it does not compile; 77 with a reason: no nanobind, no compiler or no Python.h.
"""

from __future__ import annotations

import argparse
import gc
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any, Callable

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "examples" / "python")]
from build_module import needs, skip  # noqa: E402

BINDINGS = ROOT / "examples" / "bindings"
SECONDS = 20  # of a process with all checks, which takes less than one
LINES = {"cai_nanobind.h": 112, "saxpy_nanobind.cpp": 38}
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
PLAIN = {"shape": (6,), "typestr": "<f4", "data": (4096, False), "version": 3}
DEFECTS = [
    ("a taken array is not released", "cai_python_release(&cai_data->py, &this->value, 1);", ""),
    ("references are not dropped", "cai_python_release(&cai_data->py, &this->value, 1);", "cai_array_release(&this->value);"),
    ("a move leaves an owner behind", "noexcept { cai_array_move(this, &from); }",
     "noexcept { static_cast<cai_array &>(*this) = from; }"),
    ("what is wrong goes to the next overload", "return found != CAI_PYTHON_NOT_MINE;",
     "this->error.reset(); return found == CAI_PYTHON_TAKEN;"),
    ("what is no array is an error", "return found != CAI_PYTHON_NOT_MINE;", "return true;"),
    ("None is an array", "if (none) throw next_overload(); ", ""),
    ("nullptr for all", "return none ? nullptr", "return true ? nullptr"),
    ("flags are lost", "= {F, 0, 0, nullptr}", "= {0, 0, 0, nullptr}"),
    ("a list has None", " || one.none) return false;", ") return false;"),
    ("a wrong item is lost", "if (one.error) return this->error.emplace(*one.error), true;", "if (one.error) continue;"),
    ("a wrong stream is 0", ".number)) error.emplace();", ".number)) PyErr_Clear();"),
    ("an array that was never made", "nanobind::inst_ready(object);", "true;"),
    ("a result is not the module's", "cai_array_move(&(new (nanobind::inst_ptr<held>(made)) held)->value, from);",
     "(void)from; new (nanobind::inst_ptr<held>(made)) held;"),
    ("no exchange in C", "|| cai_python_offer(data->type, &exchange)", "|| !exchange.describe"),
]  # fmt: skip

failures: list[str] = []
checks = 0


def same(what: str, got: object, wanted: object) -> None:
    global checks
    checks += 1
    if got != wanted:
        failures.append(f"{what}: {got!r}, not {wanted!r}")


def raised(call: Callable[..., Any], *arguments: Any) -> str:
    try:
        return f"no exception: {call(*arguments)!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


class Array:
    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {**PLAIN, **changes}


class Host:
    def __init__(self) -> None:
        self.__array_interface__ = dict(PLAIN)


class Stream:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __cuda_stream__(self) -> Any:
        return self.value


# ------------------------------------------------------------------------------------ building


def run(command: list[str]) -> None:
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode or made.stderr:
        print(" ".join(command), made.stderr, sep="\n")
        sys.exit(3)


def build(options: argparse.Namespace, folder: pathlib.Path, casters: pathlib.Path) -> pathlib.Path:
    """A library with both modules. What does not depend on the caster is compiled once."""
    library = folder / ("saxpy_nanobind" + sysconfig.get_config_var("EXT_SUFFIX"))
    nanobind, python = options.nanobind, ["-isystem", sysconfig.get_path("include")]
    system = ["-isystem", str(nanobind / "include"), "-isystem", str(nanobind / "ext" / "robin_map" / "include"), *python]
    own = [f"-I{path}" for path in (casters, ROOT, ROOT / "ext", ROOT / "sim", BINDINGS / "python")]
    parts = options.parts / "nanobind.o", options.parts / "device.o"
    cxx = [options.cxx, "-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden",
           "-DCAI_NO_CUDART", "-DCAI_NO_LOADER"]
    if not parts[0].exists():
        run([*cxx, "-fno-strict-aliasing", "-w", "-c", str(nanobind / "src" / "nb_combined.cpp"), *system, "-o", str(parts[0])])
        run([options.cc, "-std=c99", "-O1", "-fPIC", "-c", str(BINDINGS / "python" / "saxpy_simulated.c"), *own, "-o", str(parts[1])])
    run([*cxx, *STRICT, str(ROOT / "tests" / "examples" / "nanobind_more.cpp"), *own, *system, "-shared", *map(str, parts),
         "-lpthread", "-o", str(library)])  # fmt: skip
    return library


def load(library: pathlib.Path, name: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, library, loader=loader))
    loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------------ checking


def check_saxpy(saxpy: Any, more: Any) -> None:
    """In order: the consumer's stream waits for the producer's, and the other way round."""
    producer, consumer = more.new_stream(), more.new_stream()
    x = more.made(6, producer, True)
    more.calls()
    saxpy.saxpy(2.0, x, x, Stream((0, consumer)))
    calls = more.calls()
    same("waits of an exchange", calls.count("event_record"), calls.count("stream_wait_event"))
    same("a wait at each end", calls.count("stream_wait_event"), 2)
    same("a wrong dtype", raised(saxpy.saxpy, 1.0, Array(typestr="<f8"), x, consumer),
         "ValueError: x: expected float32, on the device; got float64, 1-D")  # fmt: skip
    same("a wrong shape", raised(saxpy.saxpy, 1.0, Array(), Array(shape=(5,)), consumer),
         "ValueError: shape[0] = 6 in x, 5 in y")  # fmt: skip
    same("no stream", raised(saxpy.saxpy, 1.0, x, x, 0)[:22], "ValueError: stream = 0")
    del x


def check_arguments(more: Any) -> None:
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


def check_results(saxpy: Any, more: Any) -> None:
    stream = more.new_stream()
    array = more.made(6, stream, True)
    seen = array.__cuda_array_interface__
    same("a result", [type(array), seen["shape"], seen["stream"], more.only(array)], [saxpy.array, (6,), stream, 6])
    same("its exchange in C", type(array).__dict__["__cai_exchange__"].__class__.__name__, "PyCapsule")
    same("a borrowed result", raised(more.made, 6, stream, False)[:11], "ValueError:")
    before = more.released()
    del array
    same("released once", more.released() - before, 1)
    again = more.same(Array(data=(8192, True)))
    same("an argument as result", again.__cuda_array_interface__["data"], (8192, True))
    never = saxpy.array.__new__(saxpy.array)
    same("never made", raised(more.only, never), "TypeError: the array was never made")


def check_exceptions(more: Any) -> None:
    producer, consumer = more.new_stream(), more.new_stream()
    array = more.made(6, producer, True)
    more.calls()
    same("an exception of the function", raised(more.throws, array, consumer),
         "RuntimeError: thrown between begin and finish")  # fmt: skip
    same("in order all the same", more.calls().count("stream_wait_event"), 2)


def check_references(saxpy: Any, more: Any) -> None:
    """No call keeps an object: not when it fails, and not when another overload takes it."""
    objects = [Array(data=(more.memory(), False)), Array(shape=(-1,)), Host(), Array(typestr="<f8")]
    stream = more.new_stream()
    calls = [more.which, more.pointer, more.optional, more.host, lambda x: more.sizes([x, x]), more.same,
             lambda x: saxpy.saxpy(1.0, x, x, stream), lambda x: more.throws(x, stream)]  # fmt: skip

    def all_calls() -> None:
        for call in calls:
            for item in objects:
                raised(call, item)
        more.run()
        more.poll()

    all_calls()
    gc.collect()
    counts = [sys.getrefcount(item) for item in objects]
    for _ in range(10):
        all_calls()
    gc.collect()
    same("references", [sys.getrefcount(item) for item in objects], counts)
    same("arrays that are alive", more.alive(), 0)


def check(library: pathlib.Path) -> None:
    saxpy, more = load(library, "saxpy_nanobind"), load(library, "nanobind_more")
    for group in (check_arguments, check_streams, check_exceptions):
        group(more)
    for both in (check_saxpy, check_results, check_references):
        both(saxpy, more)
    more.run()


def check_lines() -> None:
    for name, most in LINES.items():
        lines = len((BINDINGS / "casters" / name).read_text().splitlines())
        same(f"{name} has {lines} lines, at most {most}", lines <= most, True)


def leaks(options: argparse.Namespace, library: pathlib.Path) -> str:
    """What a process with all checks prints at its end: nanobind names what is still alive."""
    command = [sys.executable, "-B", __file__, "--cxx", options.cxx, "--library", str(library)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not ended after {SECONDS} s"
    return "" if done.returncode == 0 and not done.stderr else f"{done.stdout[-2000:]}{done.stderr[-2000:]}exit status {done.returncode}"


def self_test(options: argparse.Namespace, folder: pathlib.Path) -> None:
    text = (BINDINGS / "casters" / "cai_nanobind.h").read_text()
    for number, (name, before, after) in enumerate(DEFECTS):
        casters = folder / str(number)
        casters.mkdir()
        shutil.copy(BINDINGS / "casters" / "saxpy_nanobind.cpp", casters)
        same(f"{name}: in the header", before in text, True)
        (casters / "cai_nanobind.h").write_text(text.replace(before, after))
        same(f"{name}: found", bool(leaks(options, build(options, casters, casters))), True)
    print(f"{len(DEFECTS)} defects planted")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--library", type=pathlib.Path, help="only the checks, of a library that was built")
    options = parser.parse_args()
    if options.library:
        check(options.library)
    else:
        needs(numpy=False, cc=options.cxx)
        found = importlib.util.find_spec("nanobind")
        if not found or not found.origin:
            skip("this Python has no nanobind")
        options.nanobind = pathlib.Path(found.origin).parent
        with tempfile.TemporaryDirectory(prefix="cai-nanobind-") as name:
            options.parts = pathlib.Path(name)
            library = build(options, options.parts, BINDINGS / "casters")
            same("a process with all checks", leaks(options, library), "")
            check_lines()
            if options.self_test:
                self_test(options, options.parts)
    for failure in failures:
        print(failure)
    print(f"{checks} checks, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
