#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One build for all Pythons: what modules with cai_python.h take of Python belongs to the stable ABI of 3.11.

    tests/python/check_abi3.py [--cc CC] [--nm NM] [--root FOLDER] [--dlpack FOLDER] [--include FOLDER]...
                               [--interpreter PYTHON]... [--self-test]

Builds, with Py_LIMITED_API=0x030b0000, an object with every function of the header, the probe and the example
extension, and looks up each symbol that they take of Python in CPython's list: that of the package abi3info, that of
CPython 3.11's own tests, or both, which must agree. Then loads the probe, built once, in every interpreter (those of
--interpreter, python3.11 and later that are found) and imports an array there.

--include: folders of Python.h, each built with; by default that of this Python. --self-test plants functions that do
not belong there, one at a time, and each must be named. Exit status 0: all is well; 1: not; 77, with a reason: no
list, no compiler, no nm, or no Python.h of 3.11 or later.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import NoReturn

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = (3, 11)
LEAST = 20  # symbols of Python that every object must have, or this would look at the wrong thing
FLAGS = ["-std=c99", "-O1", "-fPIC", "-shared", "-pthread", "-Werror=implicit-function-declaration",
         "-DPy_LIMITED_API=0x030b0000", "-DCAI_NO_CUDART"]  # fmt: skip
LATER = range(11, 30)

# What the object with every function is made of, by name.
HEADER, STREAM, BOTH = '#include "cai_python.h"\n', '#include "cai_stream.h"\n', '#include "cai_python_dlpack.h"\n'
UNITS = {
    "every function": HEADER,
    "every function, with cai_stream.h": STREAM + HEADER,
    "every function of cai_python_dlpack.h": BOTH,
    "every function of cai_python_dlpack.h, with cai_stream.h": STREAM + BOTH,
}
# A unit that takes one more symbol, and why it is no part of the stable ABI of 3.11.
PLANTED = {
    "PyUnicode_AsUTF8": "stable from 3.13 on",
    "PyObject_GetOptionalAttr": "stable from 3.13 on",
    "PyErr_GetRaisedException": "stable from 3.12 on",
    "PyUnstable_Type_AssignVersionTag": "never stable",
    "PyContextVar_Get": "never stable",
    "_PyType_Lookup": "private",
    "_PyRuntime": "private data",
}
TAKEN = ("PyType_GetName", "PyBuffer_Release")  # stable since 3.11: the control

# What another interpreter does with the probe; prints one line.
SESSION = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("cai_probe", sys.argv[1])
probe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(probe)
class Array:
    __cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (4096, True), "version": 3, "stream": 5}
array = Array()
held = probe.hold((array,) * 1000, 0)
facts = probe.facts(held)[999]
live = probe.live()
probe.release(held)
print(json.dumps([facts["shape"], facts["typestr"], facts["data"], facts["stream"], facts["read_only"], live, probe.live()]))
"""
EXPECTED = [[2, 3], "<f4", 4096, 5, True, 1000, 0]


def skip(reason: str) -> NoReturn:
    print("skipped:", reason)
    sys.exit(77)


# ------------------------------------------------------------------------------------ CPython's list


def list_of_package() -> set[str] | None:
    """From abi3info, without what only some builds of CPython have."""
    try:
        from abi3info import DATAS, FUNCTIONS
    except ImportError:
        return None
    items = [*FUNCTIONS.values(), *DATAS.values()]
    return {item.symbol.name for item in items
            if (item.added.major, item.added.minor) <= LIMIT and item.ifdef is None}  # fmt: skip


def list_of_tests() -> set[str] | None:
    """From the tests that come with CPython 3.11; those of a later version list what was added since, too."""
    if sys.version_info[:2] != LIMIT:
        return None
    path = pathlib.Path(sysconfig.get_path("stdlib"), "test", "test_stable_abi_ctypes.py")
    if not path.is_file():
        return None
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SYMBOL_NAMES":
            return set(ast.literal_eval(node.value))
    return None


def stable_lists() -> dict[str, set[str]]:
    """By name; each has all that may be taken."""
    found = {"abi3info": list_of_package(), "CPython 3.11's tests": list_of_tests()}
    return {name: names for name, names in found.items() if names}


# ------------------------------------------------------------------------------------ objects


class Builder:
    """Builds shared objects in a folder."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.options = options
        self.folder = folder
        self.root = options.root

    def build(self, name: str, sources: list[pathlib.Path], python: str) -> tuple[pathlib.Path, str]:
        """The object, and what the compiler said; empty if it was made."""
        made = self.folder / f"{name}.abi3.so"
        others = [self.options.dlpack] if self.options.dlpack else []
        systems = [flag for path in (python, *others) for flag in ("-isystem", path)]
        own = [f"-I{path}" for path in (self.root, self.root / "ext", self.root / "sim")]
        command = [self.options.cc, *FLAGS, *own, *systems, *map(str, sources), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return made, done.stderr or "it fails" if done.returncode else ""

    def unit(self, text: str) -> list[pathlib.Path]:
        """A file with every function of the headers that a text includes."""
        source = self.folder / "unit.c"
        source.write_text(f"#define CAI_IMPLEMENTATION\n{text}", encoding="utf-8")
        return [source]

    def taken(self, made: pathlib.Path) -> set[str]:
        """The symbols of Python that an object takes."""
        command = [self.options.nm, "-D", "-P", "--undefined-only", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        names = (line.split()[0].partition("@")[0] for line in done.stdout.splitlines() if line.strip())
        return {name for name in names if re.match(r"_?Py", name)}


def strangers(taken: set[str], lists: dict[str, set[str]]) -> list[str]:
    """What is wrong with the symbols of an object."""
    wrong = [f"{name} is not in the list of {where}" for name in sorted(taken)
             for where, stable in lists.items() if name not in stable]  # fmt: skip
    if len(taken) < LEAST:
        wrong.append(f"{len(taken)} symbols of Python, at least {LEAST} were expected")
    return wrong


def objects(builder: Builder) -> dict[str, list[pathlib.Path]]:
    """Sources by name. (A unit is written when it is built.)"""
    root = builder.root
    example = root / "examples" / "bindings" / "python"
    modules = {"the probe": [root / "tests" / "python" / "probe.c"],
               "the example": [example / "cai_saxpy.c", example / "saxpy_simulated.c"]}  # fmt: skip
    return {**{name: [] for name in UNITS if builder.options.dlpack or "dlpack" not in UNITS[name]}, **modules}


def check_objects(builder: Builder, python: str, lists: dict[str, set[str]], failures: list[str]) -> None:
    """All objects, with one Python.h."""
    version = version_of(python)
    for name, sources in objects(builder).items():
        made, said = builder.build("checked", sources or builder.unit(UNITS[name]), python)
        taken = set() if said else builder.taken(made)
        wrong = [f"does not compile: {said}"] if said else strangers(taken, lists)
        failures += [f"{name}, Python.h of {version}: {text}" for text in wrong]
        print(f"{name}, Python.h of {version}: {len(taken)} symbols of Python, {len(wrong)} outside the stable ABI of 3.11")


# ------------------------------------------------------------------------------------ interpreters


def version_of(include: str) -> str:
    """What a Python.h says of itself."""
    header = pathlib.Path(include, "patchlevel.h")
    found = re.search(r'#define PY_VERSION\s+"([^"]+)"', header.read_text(encoding="utf-8")) if header.is_file() else None
    return found[1] if found else ""


def interpreters(options: argparse.Namespace) -> dict[str, str]:
    """Version -> program: this one, and those that were given or are found; one of each version."""
    tell = "import sys; print(sys.version_info >= (3, 11), sys.version.split()[0])"
    found = [shutil.which(f"python3.{minor}") for minor in LATER]
    good: dict[str, str] = {}
    for path in (sys.executable, *options.interpreter, *found):
        if not path:
            continue
        said = subprocess.run([path, "-c", tell], capture_output=True, text=True, check=False).stdout.split()
        if said[:1] == ["True"]:
            good.setdefault(said[1], path)
        elif path in options.interpreter:
            skip(f"{path} is no Python of 3.11 or later")
    return good


def check_interpreters(builder: Builder, python: str, failures: list[str]) -> None:
    """The probe, built once."""
    made, said = builder.build("cai_probe", objects(builder)["the probe"], python)
    if said:
        failures.append(f"the probe does not compile: {said}")
        return
    for version, path in interpreters(builder.options).items():
        done = subprocess.run([path, "-c", SESSION, str(made)], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode or json.loads(done.stdout) != EXPECTED:
            failures.append(f"Python {version}: exit status {done.returncode}, {done.stdout.strip()}, {done.stderr[-1500:]}")
        print(f"built with Python.h of {version_of(python)}, loaded by {version}: {done.stdout.strip()}")


# ------------------------------------------------------------------------------------ the test of the test


def self_test(builder: Builder, python: str, lists: dict[str, set[str]], failures: list[str]) -> None:
    """Each planted symbol must be named, and the control must not."""
    declared = "%(include)svoid %(name)s(void);\nvoid planted(void);\nvoid planted(void)\n{\n    %(name)s();\n}\n"
    for name in (*PLANTED, *TAKEN):
        other = builder.folder / "planted.c"
        other.write_text(declared % {"include": "", "name": name}, encoding="utf-8")
        made, said = builder.build("planted", [*builder.unit(HEADER), other], python)
        found = [said] if said else strangers(builder.taken(made), lists)
        named = [text for text in found if text.startswith(f"{name} is not in")]
        print(f"{name} ({PLANTED.get(name, 'stable: the control')}): {'; '.join(found) or 'nothing'}")
        if said or len(named) != (len(lists) if name in PLANTED else 0) or len(named) != len(found):
            failures.append(f"{name}: found {found}")
    macro_test(builder, python, failures)


def macro_test(builder: Builder, python: str, failures: list[str]) -> None:
    """What the limited API does not declare must not compile: a macro leaves no symbol."""
    for name, stands_for in (("PyTuple_GET_SIZE", "PyTuple_Size"), ("PyTuple_GET_ITEM", "PyTuple_GetItem")):
        text = (builder.root / "ext" / "cai_python.h").read_text(encoding="utf-8")
        changed, count = re.subn(rf"\b{stands_for}\b", name, text)
        (builder.folder / "cai_python.h").write_text(changed, encoding="utf-8")
        _, said = builder.build("planted", builder.unit(HEADER), python)
        (builder.folder / "cai_python.h").unlink()
        refused = count > 0 and "implicit declaration of function" in said and name in said
        print(f"{name} (not of the limited API) in {count} places: {'does not compile' if refused else 'compiles'}")
        if not refused:
            failures.append(f"{name} in {count} places of the header is not refused")


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--nm", default=shutil.which("nm"))
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="where the headers are")
    parser.add_argument("--dlpack", default="", help="a folder with dlpack/dlpack.h")
    parser.add_argument("--include", action="append", default=[], help="a folder with Python.h")
    parser.add_argument("--interpreter", action="append", default=[], help="a Python of 3.11 or later")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    includes = options.include or [sysconfig.get_path("include")]
    for name in includes:
        numbers = tuple(map(int, re.findall(r"\d+", version_of(name))[:2]))
        if numbers < LIMIT or not pathlib.Path(name, "Python.h").is_file():
            skip(f"{name} has no Python.h of 3.11 or later")
    if not options.nm or not shutil.which(options.cc):
        skip(f"no {'nm' if not options.nm else options.cc}")
    lists = stable_lists()
    if not lists:
        skip("no list of the stable ABI: abi3info is not importable, and this is no CPython 3.11 with its tests")
    print(f"the stable ABI of 3.11: {', '.join(f'{len(names)} symbols by {name}' for name, names in lists.items())}")
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="cai-abi3-") as folder:
        builder = Builder(options, pathlib.Path(folder))
        if options.self_test:
            self_test(builder, includes[0], lists, failures)
        else:
            for python in includes:
                check_objects(builder, python, lists, failures)
            check_interpreters(builder, includes[0], failures)
    for failure in failures[:20]:
        print("FAILED:", failure)
    print(f"failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
