#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests that other libraries have of themselves on the simulated driver, and compares with peers.txt.

    sim/tests/driver/check_peers.py [--library build/libcai_numba.so] [--cuda-core FOLDER] [--python PYTHON] [--all]
                                [--only SUITE,...] [--write]

PYTHON has the package cai_sim and the libraries. Numba's tests are in its package. cuda.core publishes none: FOLDER is
`cuda_core/tests` of a checkout of github.com/NVIDIA/cuda-python. --library is needed by the suites over cai_numba.

Each suite is a process under `python -m cai_sim`. peers.txt has how many tests of a suite passed, and of each other one why
not. A test that does not pass and is not there is an error, and so are fewer that pass. --write renews peers.txt for the suites that ran. --all runs the suites
that take long, too. Exit status 0: no such test; 1: there is one; 77: no suite could run.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import ctypes
import dataclasses
import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
RECORD = HERE / "peers.txt"
ADAPTER = HERE.parents[2] / "examples" / "adapters" / "numba"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
NUMBA_TESTS = "numba.cuda.tests"
Results = dict[str, tuple[str, str]]  # a test: how it ended, and why


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    packages: tuple[str, ...]  # whose versions are recorded
    modules: tuple[str, ...]
    table: str = ""  # Numba's memory by this table of cai_numba
    slow: bool = False  # by --all alone


NUMBA = ("numba-cuda", "numba", "cuda-bindings", "cuda-core")
CORE = ("cuda-core", "cuda-bindings")
MEMORY = (
    "cudadrv.test_emm_plugins", "cudadrv.test_array_attr", "cudadrv.test_cuda_memory", "cudadrv.test_cuda_ndarray",
    "cudadrv.test_host_alloc", "cudadrv.test_pinned", "cudadrv.test_reset_device", "cudadrv.test_deallocations",
    "cudadrv.test_context_stack", "cudadrv.test_events", "cudapy.test_cuda_array_interface",
)  # fmt: skip
DRIVER = (
    "cudadrv.test_streams", "cudadrv.test_detect", "cudadrv.test_profiler", "cudadrv.test_select_device",
    "cudadrv.test_cuda_auto_context", "cudadrv.test_cuda_driver", "cudadrv.test_cuda_devicerecord",
    "cudadrv.test_module_callbacks", "cudapy.test_ipc",
)  # fmt: skip
SLOW = (
    "cudadrv.test_cuda_array_slicing", "cudadrv.test_init", "cudadrv.test_linker", "cudadrv.test_managed_alloc",
    "cudadrv.test_nvjitlink", "cudadrv.test_nvvm_driver", "cudadrv.test_linkable_code", "cudadrv.test_inline_ptx",
    "cudapy.test_device_array_capture", "cudapy.test_multiprocessing", "cudapy.test_multithreads",
    "cudapy.test_dispatcher", "cudapy.test_gufunc", "cudapy.test_record_dtype", "cudapy.test_array",
)  # fmt: skip
SUITES = (
    Suite("numba.memory", NUMBA, MEMORY),
    Suite("numba.driver", NUMBA, DRIVER),
    Suite("numba.table", NUMBA, (*MEMORY, "cudapy.test_ipc"), table="cuda"),
    Suite("numba.pool", NUMBA, MEMORY, table="async", slow=True),
    Suite("numba.more", NUMBA, SLOW, slow=True),
    Suite("core.streams", CORE, ("test_stream.py", "test_event.py", "test_context.py", "test_device.py")),
    Suite("core.memory", CORE, ("test_memory.py", "test_memory_peer_access.py", "memory")),
    Suite("core.views", CORE, ("test_utils.py", "test_utils_dlpack.py", "test_strided_layout.py")),
    Suite("core.graphs", CORE, ("graph", "test_launcher.py", "test_module.py"), slow=True),
)


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


# ------------------------------------------------------------------------ in the process of a suite


class Function(ctypes.Structure):  # cai_driver_function of sim/driver/cai_driver.h
    _fields_ = [("name", ctypes.c_char_p), ("calls", ctypes.c_int64), ("asked", ctypes.c_int32), ("served", ctypes.c_int32)]


def calls() -> dict[str, tuple[int, bool]]:
    """How often each function of the driver was called, and whether it is served."""
    get = ctypes.CDLL("libcuda.so.1").cai_driver_function_get
    get.argtypes = [ctypes.c_int32, ctypes.POINTER(Function)]
    found, one = {}, Function()
    while get(len(found), ctypes.byref(one)):
        found[one.name.decode()] = one.calls, bool(one.served)
    return found


def called(before: dict[str, tuple[int, bool]], pattern: str, served: bool) -> list[str]:
    """The functions with such a name that were called since then."""
    now = calls().items()
    return [name for name, (count, yes) in now if yes == served and count > before[name][0] and re.match(pattern, name)]


def reason(error: BaseException, before: dict[str, tuple[int, bool]]) -> str:
    """Why a test failed, in a few words."""
    text, kind = str(error), type(error).__name__
    missing = called(before, "cu", False)
    if missing:
        return f"not served: {', '.join(missing)}"
    if isinstance(error, ModuleNotFoundError):
        return f"needs {error.name}"
    if isinstance(error, AssertionError) and called(before, "cuLaunch(Cooperative)?Kernel", True):
        return "a kernel's result"
    found = re.search("CUDA_ERROR_[A-Z_]+", text)
    first = next(filter(None, map(str.strip, text.splitlines())), "")
    first = re.sub(r" \(/[^)]*\)?$", "", first)  # where a module lies on this machine
    return f"{kind}: {found[0] if found else first[:90]}".replace("|", "/")


class Recorder:
    """A plugin of pytest that takes note of each test."""

    def __init__(self, root: pathlib.Path) -> None:
        self.results: Results = {}
        self.root, self.before = root, calls()

    def name(self, nodeid: str) -> str:
        return re.sub(r"0x[0-9a-f]{6,}", "0x", nodeid.encode("ascii", "backslashreplace").decode())

    def pytest_runtest_setup(self, item: Any) -> None:
        self.before = calls()

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        import pytest

        name = f"{os.path.relpath(item.path, self.root)}::{item.nodeid.partition('::')[2]}"
        name, error = self.name(name), call.excinfo.value if call.excinfo else None
        if isinstance(error, pytest.skip.Exception):
            self.results[name] = SKIPPED, " ".join(str(error).split())[:90].replace("|", "/")
        elif error is not None:
            expected = item.get_closest_marker("xfail") or isinstance(error, pytest.xfail.Exception)
            self.results[name] = SKIPPED if expected else FAILED, reason(error, self.before)
        else:
            self.results.setdefault(name, (PASSED, ""))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            last = str(report.longrepr).strip().splitlines()[-1]
            self.results[self.name(report.nodeid)] = FAILED, last.removeprefix("E").strip()[:110].replace("|", "/")
        elif report.skipped:
            text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
            self.results[self.name(report.nodeid)] = SKIPPED, text.removeprefix("Skipped: ")[:90].replace("|", "/")


def numba_files(modules: tuple[str, ...]) -> list[str]:
    """The files of Numba's tests. pytest would give them another name and import them once more."""
    files = []
    for module in modules:
        found = importlib.util.find_spec(f"{NUMBA_TESTS}.{module}")
        files.append(found.origin)
        try:
            sys.modules[f"cuda.tests.{module}"] = importlib.import_module(f"{NUMBA_TESTS}.{module}")
        except ImportError:
            pass  # pytest says it
    return files


def work(suite: Suite, out: str, folder: str) -> int:
    """Runs a suite in this process, and writes what became of its tests."""
    import pytest

    options = ["-q", "--continue-on-collection-errors", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=short", "-o", "addopts="]
    if suite.packages is NUMBA:
        files = numba_files(suite.modules)
        root = pathlib.Path(importlib.import_module(NUMBA_TESTS).__file__).parent
        options += ["--import-mode=importlib", f"--rootdir={root}"]
    else:
        root = pathlib.Path(folder).resolve()
        files = [str(root / module) for module in suite.modules if (root / module).exists()]
        options += [f"--rootdir={root}"]
        os.chdir(root)

    class Fixtures:  # of the conftest.py that Numba does not publish
        @pytest.fixture
        def initialize_from_pytest_config(self, request: Any) -> None:
            request.instance._dump_failed_filechecks = False

    recorder = Recorder(root)
    pytest.main([*options, *files], plugins=[recorder, Fixtures()])
    pathlib.Path(out).write_text(json.dumps(recorder.results))
    return 0


# ------------------------------------------------------------------------ the record


@dataclasses.dataclass
class Record:
    """What is known of a suite: the versions, how many tests passed, and the others."""

    versions: str = ""
    passed: int = 0
    others: Results = dataclasses.field(default_factory=dict)


def read() -> dict[str, Record]:
    record: dict[str, Record] = {}
    name = ""
    for line in RECORD.read_text().splitlines() if RECORD.exists() else []:
        heading = re.fullmatch(r"\[(\S+)\] (.*): (\d+) passed", line)
        if heading:
            name = heading[1]
            record[name] = Record(heading[2], int(heading[3]))
        elif line and not line.startswith("#"):
            test, outcome, why = [*line.split(" | ", 2), "", ""][:3]
            record[name].others[test] = outcome, why
    return record


def write(record: dict[str, Record]) -> None:
    lines = ["# Other libraries' own tests that do not pass on the simulated driver. check_peers.py --write makes this file."]
    for suite in SUITES:
        if suite.name in record:
            one = record[suite.name]
            lines += ["", f"[{suite.name}] {one.versions}: {one.passed} passed"]
            lines += [" | ".join(filter(None, (test, *one.others[test]))) for test in sorted(one.others)]
    RECORD.write_text("\n".join(lines) + "\n")


def recorded(versions: str, results: Results) -> Record:
    others = {test: result for test, result in results.items() if result[0] != PASSED}
    return Record(versions, len(results) - len(others), others)


def versions(suite: Suite) -> str:
    return ", ".join(f"{package} {version(package)}" for package in suite.packages)


def lines_of(results: Results) -> list[str]:
    """How many passed, and the reasons of the others."""
    count = collections.Counter(outcome for outcome, _ in results.values())
    lines = [", ".join(f"{count[outcome]} {outcome}" for outcome in (PASSED, FAILED, SKIPPED))]
    why = collections.Counter(why for outcome, why in results.values() if outcome == FAILED)
    return [*lines, *(f"    {times} failed: {text}" for text, times in why.most_common())]


def compare(old: Record, new: Record) -> tuple[list[str], int]:
    """The tests that do not pass and did, and how many pass now that did not."""
    wrong = []
    for test, (outcome, why) in new.others.items():
        if test not in old.others or (outcome == FAILED and old.others[test][0] == SKIPPED):
            wrong.append(f"{test}: {outcome} {why}")
    if new.passed < old.passed:
        wrong.append(f"{old.passed} passed before, and now {new.passed}")
    return wrong, len(old.others.keys() - new.others.keys())


# ------------------------------------------------------------------------ the processes


class World:
    def __init__(self, options: argparse.Namespace, folder: str) -> None:
        self.options, self.folder = options, folder
        script = "import cai_sim, pathlib; print(pathlib.Path(cai_sim.__file__).parent / 'lib')"
        done = subprocess.run([options.python, "-c", script], capture_output=True, text=True)
        self.installed = done.returncode == 0
        self.libraries = os.environ.get("CAI_SIM_LIBRARIES") or done.stdout.strip()

    def missing(self, suite: Suite) -> str:
        """Why a suite cannot run, or ""."""
        if not self.installed:
            return "the package cai_sim is not installed (pip install ./sim/python)"
        for package in suite.packages:
            if version(package) == "none":
                return f"{package} is not installed"
        if suite.packages is CORE and not self.options.cuda_core:
            return "cuda.core's package has no tests: --cuda-core says where they are"
        if suite.packages is NUMBA and version("filecheck") == "none":
            return "filecheck is not installed, which Numba's tests import"
        if suite.table and not self.options.library:
            return "no --library"
        return ""

    def environment(self, suite: Suite) -> dict[str, str]:
        """Processes that a test starts find the simulated driver by LD_LIBRARY_PATH."""
        paths = filter(None, [self.libraries, os.environ.get("LD_LIBRARY_PATH")])
        made = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
        made.pop("NUMBA_CUDA_MEMORY_MANAGER", None)
        if suite.table:
            made["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ADAPTER), os.environ.get("PYTHONPATH")]))
            made["CAI_NUMBA_LIBRARY"] = str(pathlib.Path(self.options.library).resolve())
            made["CAI_NUMBA_TABLE"] = suite.table
            made["NUMBA_CUDA_MEMORY_MANAGER"] = "cai_numba"
        return made

    def run(self, suite: Suite) -> tuple[Results, str]:
        """What became of the tests, and what the process said."""
        out = pathlib.Path(self.folder, f"{suite.name}.json")
        command = [self.options.python, "-B", "-W", "ignore", "-m", "cai_sim", __file__, "--suite", suite.name]
        command += ["--out", str(out), "--cuda-core", self.options.cuda_core]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=self.environment(suite), timeout=600)
            said = f"status {done.returncode}\n{done.stdout}{done.stderr}"
        except subprocess.TimeoutExpired:
            said = "did not end"
        results = json.loads(out.read_text()) if out.exists() else {}
        return {test: (outcome, why) for test, (outcome, why) in results.items()}, said


def chosen(options: argparse.Namespace) -> list[Suite]:
    only = options.only.split(",") if options.only else []
    return [suite for suite in SUITES if (suite.name in only if only else options.all or not suite.slow)]


def check(world: World, suite: Suite, record: dict[str, Record], ran: tuple[Results, str]) -> bool:
    """Prints what became of a suite, and renews its record if that is wanted. False: a test is worse than before."""
    results, said = ran
    print(f"{suite.name}: {versions(suite)}: " + "\n".join(lines_of(results)))
    if world.options.log:
        pathlib.Path(world.options.log, f"{suite.name}.txt").write_text(said)
    if not results:
        print(f"  wrong: no test ran\n{said[-3000:]}")
        return False
    now, old = recorded(versions(suite), results), record.get(suite.name, Record())
    if world.options.write:
        record[suite.name] = now
        return True
    if old.versions != now.versions:
        print(f"  not compared: the record is of {old.versions or 'no versions'}")
        return True
    wrong, better = compare(old, now)
    for text in wrong:
        print(f"  wrong: {text}")
    if better:
        print(f"  {better} tests pass now that did not: --write renews the record")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--library", default="", help="libcai_numba.so")
    parser.add_argument("--cuda-core", default=os.environ.get("CAI_CUDA_CORE_TESTS", ""), metavar="FOLDER")
    parser.add_argument("--only", default="", help="suites by name")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--log", default="", help="a folder for what each suite says")
    parser.add_argument("--suite", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.suite:
        return work(next(suite for suite in SUITES if suite.name == options.suite), options.out, options.cuda_core)
    record, good, ran = read(), True, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        world = World(options, folder)
        suites = []
        for suite in chosen(options):
            why = world.missing(suite)
            if why:
                print(f"{suite.name}: skipped, {why}")
            else:
                suites.append(suite)
        for suite, done in zip(suites, pool.map(world.run, suites)):
            good = check(world, suite, record, done) and good
            ran += 1
    if options.write and ran:
        write(record)
    return 77 if not ran else 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
