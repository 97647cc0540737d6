#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The casters where Python has several interpreters, starts twice, or has no GIL.

    test_caster_interpreters.py --cxx g++ --cc gcc [--only nanobind,pybind11,cython] [--beside PYTHON|newest]
                                [--threads N] [--self-test]

Each caster's module is imported into several interpreters, one after the other and at the same time, where the tool
allows that; where it refuses, what it says is printed. A program starts Python three times. Threads use one module,
which a build without GIL runs at the same time. With --self-test defects are planted in a copy of cai_caster.h, and
each must be found (Python 3.12 or later). --beside runs it with another Python, too, which gets the tools of this one. Exit status 0: all is right; 1: not; 3: it does not compile; 77 with a reason.
"""

from __future__ import annotations

import argparse
import gc
import glob
import importlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from typing import Any

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE)]
from build_module import needs, skip  # noqa: E402
from caster_support import PYTHON, ROOT, STRICT, SUFFIX, Array, Stream, device, ended, failures, includes, load, run, same  # noqa: E402

NAME = "caster_interpreters"
TOOLS = ("nanobind", "pybind11", "cython")
SECONDS = 60  # of a process, which takes some
HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
DEFECTS = [
    ("an array keeps the stream object of another interpreter", "if (at->interpreter_ != here) continue;", "if (!here) continue;"),
    ("an interpreter finds the state of one that has ended", "    of->interpreter = NOT_OPEN;\n    Py_DECREF(of->life);", "    Py_DECREF(of->life);"),
    ("a state ends before its arrays", "object_of(made)->life = Py_NewRef(of->life);", "object_of(made)->life = Py_NewRef(Py_None);"),
    ("states pile up", "if (!of->kept) of->interpreter = FREE;", ""),
    ("a pool for each interpreter", "        if (events) return 0;\n", "        events = nullptr;\n"),
    ("PyGILState_Check is asked", "if (is_attached()) cai_caster::drop", "if (PyGILState_Check()) cai_caster::drop"),
    ("one state for all interpreters", "while (at && at->interpreter != here) at = at->next;", "(void)here;"),
]  # fmt: skip

# What each interpreter does
CODE = """
import gc, importlib.machinery, importlib.util, sys, time, weakref
m = sys.modules.get("caster_interpreters")
if not m:
    loader = importlib.machinery.ExtensionFileLoader("caster_interpreters", {path!r})
    m = importlib.util.module_from_spec(importlib.util.spec_from_file_location("caster_interpreters", {path!r}, loader=loader))
    loader.exec_module(m)
    assert not hasattr(m.array, "kept"), "the type of another interpreter"

class Stream:
    def __init__(self, number):
        self.number = number
    def __cuda_stream__(self):
        return 0, self.number

class Array:
    def __init__(self, stream):
        self.__cuda_array_interface__ = dict(shape=(6,), typestr="<f4", data=(4096, False), version=3, stream=stream)

def settle(done):
    # If another interpreter polls just then, it has what waits here, and releases it later.
    m.run(), m.alive()
    m.run(), m.alive()
    for _ in range(998):
        m.run(), m.alive()
        if done():
            return
        time.sleep(0.001)

number = m.new_stream()
for i in range({rounds}):
    s = Stream(number)
    watch = weakref.ref(s)
    y = m.made(6, s)
    assert type(y) is m.array and y.__cuda_array_interface__["stream"] == number, y
    assert m.size(y) == m.size(Array(number)) == 6
    assert m.exchanged(Stream(number), y) == m.exchanged(s, Array(number)) == 6
    del s
    assert watch() is not None, "the stream object goes before the array"
    if hasattr(m, "drop_without_gil"):
        m.drop_without_gil(Array(number))
    s = Stream(number)
    s.ring = m.made(6, s)
    del s, y
    settle(lambda: watch() is None)
    assert watch() is None, "the stream object stays"
    if i % 16 == 0:
        gc.collect()
gc.collect()
settle(lambda: m.alive() == 0)
assert m.alive() == 0, m.alive()
kept = [m.made(6, Stream(number)) for _ in range(3)]  # until the interpreter ends
m.array.kept = m.made(6, Stream(number))  # until its type ends
"""
# An array that nobody drops, when Python ends
LEAK = """
m.leak(m.made(6, Stream(number)))
"""
# Of a program that starts Python several times
PROGRAM = r"""
#include <Python.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int i, failed = 0;
    for (i = 0; i < 3 && !failed; ++i) {
        FILE *const file = fopen(argv[argc - 1], "r");
        Py_InitializeEx(0);
        failed = !file || PyRun_SimpleFileEx(file, argv[argc - 1], 1);
        if (Py_FinalizeEx()) failed = 1;
    }
    printf("%d starts, %s\n", i, failed ? "failed" : "all right");
    return failed;
}
"""


def interpreters() -> Any:
    """(create, run, destroy) of this Python, whatever it calls them."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return module.create, module.run_string, module.destroy
    return None


# ------------------------------------------------------------------------------------ building


def build(options: argparse.Namespace, tool: str, folder: pathlib.Path, casters: pathlib.Path, warnings: Any = STRICT) -> pathlib.Path:
    cxx = [options.cxx, "-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", *options.flags]
    library, part = folder / (NAME + SUFFIX), device(options.cc, options.parts)
    source, more = HERE / "caster_interpreters.cpp", []
    if tool == "cython":
        source = folder / f"{NAME}.cpp"
        run([sys.executable, "-m", "cython", "--cplus", "-3", "-I", casters, HERE / f"{NAME}.pyx", "-o", source])
        more = ["-DCYTHON_USE_MODULE_STATE=1"] if sys.version_info >= (3, 12) else []  # else it refuses interpreters
        more += ["-DCAI_IMPLEMENTATION", "-DCAI_NO_CUDART", "-DCAI_NO_LOADER", f"-I{HERE}"]
        warnings = ["-w"]
    elif tool == "nanobind":
        home = pathlib.Path(importlib.util.find_spec("nanobind").origin).parent
        more = ["-DWITH_NANOBIND", "-isystem", home / "include", "-isystem", home / "ext" / "robin_map" / "include"]
        more += [] if HAS_GIL else ["-DNB_FREE_THREADED"]
        combined = options.parts / "nanobind.o"
        if not combined.exists():
            run([*cxx, "-fno-strict-aliasing", "-w", "-c", home / "src" / "nb_combined.cpp", *more, *PYTHON, "-o", combined])
        part = [combined, part]
    else:
        import pybind11

        more = ["-isystem", pybind11.get_include()]
    parts = part if isinstance(part, list) else [part]
    run([*cxx, *warnings, source, *parts, *includes(casters), *more, *PYTHON, "-shared", "-lpthread", "-o", library])
    return library


def program(options: argparse.Namespace) -> pathlib.Path | None:
    """The program that starts Python, or None where Python is no shared library."""
    folder = pathlib.Path(sysconfig.get_config_var("LIBDIR") or "")
    name = sysconfig.get_config_var("LDLIBRARY") or ""
    if not (folder / name).exists() or not name.endswith(".so"):
        return None
    source, made = options.parts / "starts.c", options.parts / "starts"
    source.write_text(PROGRAM, encoding="utf-8")
    run([options.cc, source, *PYTHON, folder / name, f"-Wl,-rpath,{folder}", "-o", made])
    return made


# ------------------------------------------------------------------------------------ checking


def in_one(functions: Any, path: pathlib.Path, rounds: int = 40) -> str:
    """What an interpreter says that imports the module: "" if all is right."""
    create, execute, destroy = functions
    identity = create()
    try:
        said = execute(identity, CODE.format(path=str(path), rounds=rounds))
        return "" if said is None else str(getattr(said, "formatted", said)).strip()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        destroy(identity)


class Calls:
    """An array that runs code in another interpreter while it is asked."""

    def __init__(self, functions: Any, identity: int, code: str) -> None:
        self.run = lambda: functions[1](identity, code)
        self.said: Any = "not called"

    @property
    def __cuda_array_interface__(self) -> Any:
        self.said = self.run()
        return Array(stream=None).__cuda_array_interface__


def check_nested(functions: Any, module: Any, path: pathlib.Path) -> None:
    """A call in another interpreter, made on this thread while a call here has the same stream."""
    identity = functions[0]()
    number = module.new_stream()
    functions[1](identity, CODE.format(path=str(path), rounds=1))
    stream = Stream((0, number))
    before = sys.getrefcount(stream)
    calls = Calls(functions, identity, f"nested = m.made(6, {number})")
    same("a call within a call", [module.exchanged(stream, calls), calls.said], [6, None])
    same("another interpreter has our object", sys.getrefcount(stream), before)
    functions[2](identity)


def check_several(tool: str, path: pathlib.Path) -> None:
    functions = interpreters()
    module = sys.modules[NAME] = load(path, NAME)
    if not functions or tool == "pybind11" and sys.version_info < (3, 12):
        print(f"{tool}: {'it' if functions else 'this Python'} has no interpreters beside the first")
        return
    scope = {"__name__": "first"}
    exec(CODE.format(path=str(path), rounds=40), scope)
    del module.array.kept
    scope.clear()  # 3.13 without GIL makes its functions immortal
    pool = module.pool()
    first = in_one(functions, path)
    if hasattr(module, "drop_without_gil"):
        module.drop_without_gil(Array())  # Python knows of a second interpreter now
    same(f"{tool}: one pool for all", module.pool(), pool)
    if first:
        print(f"{tool}: a second interpreter says: {first.splitlines()[-1]}")
        same(f"{tool}: what a second interpreter says", "ImportError" in first, True)
        same(f"{tool}: it may refuse", tool == "nanobind" or sys.version_info < (3, 12), True)
    else:
        said: list[str] = []
        for _ in range(3):
            said.append(in_one(functions, path))
        threads = [threading.Thread(target=lambda: said.append(in_one(functions, path))) for _ in range(4)]
        for thread in threads:
            thread.start()
            if sys.version_info < (3, 12):
                thread.join()
        for thread in threads:
            thread.join()
        same(f"{tool}: interpreters", said, [""] * 7)
        check_nested(functions, module, path)
        same(f"{tool}: states, at most those at the same time", module.states() <= 6, True)
        print(f"{tool}: 9 interpreters, {module.states()} states")
    for _ in range(4):  # what waits may hold a ring
        gc.collect(), module.run(), module.alive()
    module.drain()
    same(f"{tool}: arrays that are alive, lost", [module.alive(), module.lost()], [0, 0])


def check_threads(tool: str, path: pathlib.Path, count: int, rounds: int = 300) -> None:
    """All threads at once: results, rings, exchanges, on streams of their own and on a common one."""
    module, seen = load(path, NAME), []
    common = Stream((0, module.new_stream()))
    shared = module.made(6, common)
    barrier = threading.Barrier(count)

    def work() -> None:
        try:
            number = module.new_stream()
            barrier.wait()
            for i in range(rounds):
                s = Stream((0, number))
                y = module.made(6, s)
                s.ring = module.made(6, s)
                assert module.size(y) == module.size(shared) == len(shared) == 6
                assert shared.__cuda_array_interface__["shape"] == (6,) and repr(shared)
                assert module.exchanged(s, y) == module.exchanged(common, module.made(6, common)) == 6
                z = shared.__dlpack__(stream=number, max_version=(1, 0))
                del y, z, s
                if i % 64 == 0:
                    module.run(), gc.collect()
        except BaseException as error:
            seen.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(f"{tool}: {count} threads", seen, [])
    del shared
    for _ in range(4):  # what waits may hold a ring
        gc.collect(), module.run(), module.alive()
    module.drain()
    same(f"{tool}: arrays of threads that are alive, lost", [module.alive(), module.lost()], [0, 0])
    if not HAS_GIL:
        same(f"{tool}: the import leaves the GIL away", sys._is_gil_enabled(), False)
    print(f"{tool}: {count} threads, {'with' if HAS_GIL else 'without'} the GIL")


def finding(options: argparse.Namespace, tool: str, path: pathlib.Path) -> str:
    """What is wrong with a library that was built: "" is nothing."""
    said = []
    for part in ("several", "threads"):
        command = [sys.executable, "-B", __file__, "--library", str(path), "--tool", tool, "--part", part, "--threads", str(options.threads)]
        said.append(text_of(command))
    if options.program and tool == "pybind11":
        code = options.parts / "code.py"
        code.write_text(CODE.format(path=str(path), rounds=20) + LEAK, encoding="utf-8")
        said.append(text_of([str(options.program), str(code)]))
    return "".join(said)


def text_of(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not ended after {SECONDS} s"
    if done.returncode == 0 and not done.stderr:
        print(done.stdout.strip())
        return ""
    return f"{done.stdout[-2000:]}{done.stderr[-2000:]}exit status {done.returncode}"


def self_test(options: argparse.Namespace) -> None:
    texts = {name: (ROOT / "ext" / name).read_text(encoding="utf-8") for name in ("cai_caster.h", "cai_pybind11.h", "cai.pxd")}
    for number, (name, before, after) in enumerate(DEFECTS):
        folder = options.parts / f"defect{number}"
        folder.mkdir()
        places = [place for place, text in texts.items() if before in text]
        same(f"{name}: in one header", len(places), 1)
        for place, text in texts.items():
            (folder / place).write_text(text.replace(before, after), encoding="utf-8")
        tool = "cython" if places == ["cai.pxd"] else "pybind11"
        same(f"{name}: found", bool(finding(options, tool, build(options, tool, folder, folder, ["-w"]))), True)
    print(f"{len(DEFECTS)} defects planted")


def newest() -> str | None:
    """The newest Python above this one, on the path or of pyenv, that has a Python.h."""
    found = [shutil.which(f"python3.{minor}") for minor in range(12, 20)]
    found += glob.glob(str(pathlib.Path.home() / ".pyenv" / "versions" / "3.1[2-9].*" / "bin" / "python3"))
    code = "import sys, sysconfig, os; print(sys.version_info[1] * os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
    minors = {}
    for python in filter(None, found):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        if done.returncode == 0 and int(done.stdout) > sys.version_info[1]:
            minors[int(done.stdout)] = python
    return minors[max(minors)] if minors else None


def check_beside(options: argparse.Namespace, python: str | None) -> None:
    """The same with another Python, which sees the tools of this one."""
    if not python:
        print("no other Python is here")
        return
    tools = options.parts / "tools"
    tools.mkdir()
    for name in ("pybind11", "nanobind", "Cython", "cython.py"):
        for folder in sys.path:
            if (pathlib.Path(folder) / name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(pathlib.Path(folder) / name)
    command = [python, "-B", __file__, "--cxx", options.cxx, "--cc", options.cc, "--only", options.only]
    command += ["--self-test"] if options.self_test else []
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tools)})
    print(done.stdout.strip())
    same(f"with {python}", done.stderr + f"exit status {done.returncode}", "exit status 0")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--only", default=",".join(TOOLS))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--flags", default="", help="more of the compiler: -fsanitize=thread")
    parser.add_argument("--beside", help="another Python, or the newest one that is found")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--library", type=pathlib.Path, help="only a part of the checks, of a library that was built")
    parser.add_argument("--tool")
    parser.add_argument("--part")
    options = parser.parse_args()
    if options.library:
        if options.part == "several":
            check_several(options.tool, options.library)
        else:
            check_threads(options.tool, options.library, options.threads)
        for failure in failures:
            print(failure)
        return bool(failures)
    needs(numpy=False, cc=options.cxx)
    options.flags = options.flags.split()
    if options.self_test and not options.beside and sys.version_info < (3, 12):
        skip("pybind11 has no second interpreter before Python 3.12: --beside newest")
    tools = [tool for tool in options.only.split(",") if importlib.util.find_spec("Cython" if tool == "cython" else tool)]
    if not tools:
        skip("this Python has neither of " + options.only)
    print(f"Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory(prefix="cai-interpreters-") as name:
        options.parts = pathlib.Path(name)
        options.program = program(options)
        for tool in tools if not options.beside or not options.self_test else ():
            folder = options.parts / tool
            folder.mkdir()
            if not options.self_test:
                same(tool, finding(options, tool, build(options, tool, folder, ROOT / "ext")), "")
        if options.self_test and not options.beside:
            self_test(options)
        if options.beside:
            check_beside(options, newest() if options.beside == "newest" else options.beside)
    return ended()


if __name__ == "__main__":
    sys.exit(main())
