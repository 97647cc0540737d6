#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Libraries take the arrays that ext/cai_caster.h makes, and the casters take theirs, in order, on the simulated driver.

    test_caster_libraries.py --cxx g++ [--only NAME,NAME] [--python PYTHON] [--table | --self-test]

caster_libraries.py runs under `python -m cai_sim` for each library that the interpreter has: numbers must be right, and
no race may be found. A read without an exchange must be a race. --table prints what was found as rows, with versions,
and the lines of each header and of each saxpy. With --self-test defects are planted in a copy of
cai_caster.h, and each must be found. Exit status 0: all is right; 1: not; 3: it does not compile; 77 with a reason: no
nanobind, no cai_sim or no compiler.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE)]
from build_module import needs, skip  # noqa: E402
from caster_support import BINDINGS, ROOT, PYTHON, STRICT, SUFFIX, ended, includes, run, same  # noqa: E402

MODULES = {"numpy": "numpy", "jax": "jax", "numba": "numba_cuda", "cuda_core": "cuda.core", "tvm_ffi": "tvm_ffi",
           "torch": "torch", "cupy": "cupy"}  # fmt: skip
WAYS = {"numpy": ["returned"], "jax": ["returned"], "cuda_core": ["returned"]}
ALL = ["returned", "taken", "unordered"]

SAXPYS = {"cai_nanobind.h": "saxpy_nanobind.cpp", "cai_pybind11.h": "saxpy_pybind11.cpp", "cai.pxd": "saxpy_cython.pyx"}
NO_WORK, RACE = 8, 4  # exit statuses of cai_sim
DEFECTS = [
    ("a tensor of DLPack is not ordered", "return cai_python_dlpack_ordered(py, *events.load(), self, array_of(self), &request);",
     "request.flags |= CAI_DLPACK_ORDERED; return cai_python_dlpack(py, self, array_of(self), &request);", "cuda_core"),
    ("the stream is not told", "        name_stream(&seen);", "        seen.sync = CAI_SYNC_NONE;",
     "numba"),
]  # fmt: skip


def build(options: argparse.Namespace, folder: pathlib.Path, headers: pathlib.Path) -> pathlib.Path:
    part, robin_map = options.parts / "nanobind.o", options.nanobind / "ext" / "robin_map" / "include"
    system = ["-isystem", options.nanobind / "include", "-isystem", robin_map, *PYTHON]
    cxx = [options.cxx, "-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden"]
    if not part.exists():
        combined = options.nanobind / "src" / "nb_combined.cpp"
        run([*cxx, "-fno-strict-aliasing", "-w", "-c", combined, *system, "-o", part])
    library = folder / ("caster_libraries" + SUFFIX)
    run([*cxx, *STRICT, HERE / "caster_libraries.cpp", part, *includes(headers), *system, "-shared", "-ldl", "-lpthread",
         "-o", library])  # fmt: skip
    return library


def outcome(options: argparse.Namespace, library: pathlib.Path, name: str, way: str) -> tuple[int, str]:
    """The exit status of cai_sim, and what the program printed, or the end of the report."""
    command = [options.python, "-B", "-m", "cai_sim", HERE / "caster_libraries.py", library, name, way]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    line = next((line for line in done.stdout.splitlines() if line.startswith(f"{name} {way}: ")), "")
    return done.returncode, line or done.stdout[-1500:] + done.stderr[-1500:]


def has(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def version(python: str, module: str) -> str:
    code = f"import {module} as found; print(found.__version__)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip() or "?"


def print_lines() -> None:
    """Lines that are not empty: of each header without its comment at the top, and of each saxpy."""
    print("\n| header | its lines of code | lines of a whole saxpy |\n|---|---|---|")
    for header, saxpy in {"cai_caster.h": "", **SAXPYS}.items():
        text = (ROOT / "ext" / header).read_text(encoding="utf-8")
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        example = (BINDINGS / "casters" / saxpy).read_text(encoding="utf-8") if saxpy else ""
        print(f"| `{header}` | {count(code)} | {count(example) if saxpy else ''} |")


def count(text: str) -> int:
    return sum(bool(line.strip()) and not line.lstrip().startswith(("/*", " *", "*", "#  ", "# ")) for line in text.splitlines())


def check(options: argparse.Namespace, library: pathlib.Path, name: str) -> None:
    found = {}
    for way in WAYS.get(name, ALL):
        status, line = outcome(options, library, name, way)
        found[way] = "a race" if status == RACE else "in order" if status in (0, NO_WORK) else f"status {status}"
        wanted = [RACE] if way == "unordered" else [0, NO_WORK] if name in ("numpy", "jax") else [0]
        same(f"{name} {way}: the verdict", "" if status in wanted else f"{status}: {line}", "")
        if way != "unordered":
            same(f"{name} {way}: numbers", line, f"{name} {way}: 1024 x [7]")
    if options.table:
        where = " (host memory)" if name in ("numpy", "jax") else ""
        print(f"| {MODULES[name]} {version(options.python, MODULES[name])}{where} | " + " | ".join(found.get(way, "") for way in ALL) + " |", flush=True)


def self_test(options: argparse.Namespace) -> None:
    text = (ROOT / "ext" / "cai_caster.h").read_text(encoding="utf-8")
    for number, (name, before, after, library) in enumerate(DEFECTS):
        folder = options.parts / f"defect{number}"
        folder.mkdir()
        same(f"{name}: in the header", before in text, True)
        (folder / "cai_caster.h").write_text(text.replace(before, after), encoding="utf-8")
        header = (ROOT / "ext" / "cai_nanobind.h").read_text(encoding="utf-8")
        (folder / "cai_nanobind.h").write_text(header, encoding="utf-8")
        status, line = outcome(options, build(options, folder, folder), library, "returned")
        same(f"{name}: found", status == 0 and line.endswith("1024 x [7]"), False)
    print(f"{len(DEFECTS)} defects planted")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--only", default="", help="names of libraries")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with the libraries")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    needs(numpy=True, cc=options.cxx)
    found = importlib.util.find_spec("nanobind")
    if not found or not found.origin:
        skip("this Python has no nanobind")
    if not has(options.python, "cai_sim"):
        skip("this Python has no cai_sim")
    options.nanobind = pathlib.Path(found.origin).parent
    names = [name for name in options.only.split(",") if name] or [n for n, m in MODULES.items() if has(options.python, m)]
    with tempfile.TemporaryDirectory(prefix="cai-libraries-") as name:
        options.parts = pathlib.Path(name)
        if options.self_test:
            self_test(options)
        else:
            library = build(options, options.parts, ROOT / "ext")
            if options.table:
                print("| library | returned by us | taken by us | taken without an exchange |\n|---|---|---|---|")
            for name in names:
                check(options, library, name)
            print_lines() if options.table else print(", ".join(names))
    return ended()


if __name__ == "__main__":
    sys.exit(main())
