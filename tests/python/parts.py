# SPDX-License-Identifier: MIT
"""The harness of the checks of cai_python.h: a check is made of parts, each of which runs in a process of its own, so
that a crash is a finding of its part, on a module that is built in a temporary folder.

A script has functions part_NAME(options), calls check() in them, and makes a Suite of itself. All findings are printed
as "PART: wrong: ...", "PART: ended with STATUS" or "PART: did not end".
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tracemalloc
from typing import Any, Callable

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
FINDING = r"^[\w-]+(, sanitized)?: (wrong: |ended with |did not end)"

wrong: list[str] = []
checks = 0
leaves_as = ""  # with --first: the name of the part, which ends at its first finding


def check(good: Any, text: str) -> bool:
    """Counts, and notes what is wrong."""
    global checks
    checks += 1
    if not good:
        wrong.append(text)
        if leaves_as:
            report(leaves_as)
            os._exit(1)  # whatever the part has under way
    return bool(good)


def report(part: str, most: int = 20) -> None:
    """Prints the first findings."""
    for text in wrong[:most]:
        print(f"{part}: wrong: {text}"[:1500])
    if len(wrong) > most:
        print(f"{part}: and {len(wrong) - most} more")
    sys.stdout.flush()


def traced_growth(many: Callable[[int], None], warm: int, times: int, enough: int = 4096) -> int:
    """The fewest bytes of Python's memory by which one of three runs of many(times) grew. What leaks does so in each
    run; a table of the interpreter that grows does so in one. `enough` is below one object of 16 bytes a time."""
    tracemalloc.start()
    many(warm)
    grown = []
    for _ in range(3):
        before = tracemalloc.get_traced_memory()[0]
        many(times)
        grown.append(tracemalloc.get_traced_memory()[0] - before)
        if grown[-1] < enough:
            break
    tracemalloc.stop()
    return min(grown)


def growth_of(call: Callable[[], Any], times: int, settle: Callable[[], Any]) -> float:
    """Bytes of Python's memory that stay behind, per call. `settle` lets go of what waits. tracemalloc runs."""
    def run(count: int) -> int:
        for _ in range(count):
            try:
                call()
            except BaseException as error:  # noqa: B902 - all of them are of interest
                error.__traceback__ = None
        settle()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    best = 1e9
    for _ in range(6):  # the interpreter fills caches of its own now and then
        best = min(best, (-run(2) + run(times)) / times)
        if best < 8:
            break
    return best


def resident() -> int:
    """Bytes of this process in memory; 0 where that is not known. statm may lack many pages on a machine of many cores,
    smaps_rollup has them all."""
    try:
        found = re.search(r"^Rss:\s+(\d+) kB", pathlib.Path("/proc/self/smaps_rollup").read_text(), re.M)
        return 1024 * int(found[1]) if found else 0
    except OSError:
        return 0


def resident_growth(many: Callable[[int], None], warm: int, times: int, enough: int) -> int:
    """The fewest bytes by which one of three runs of many(times) made this process grow. What leaks does so in each
    run; a huge page that the system puts in place of small ones does so in one."""
    many(warm)
    grown = []
    for _ in range(3):
        before = resident()
        many(times)
        grown.append(resident() - before)
        if grown[-1] < enough:
            break
    return min(grown)


def why_skipped(options: argparse.Namespace) -> str | None:
    """Why nothing can be built here."""
    if not shutil.which(options.cc):
        return f"no {options.cc}"
    header = pathlib.Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        return f"no {header}"
    return "Python is older than 3.11" if sys.version_info < (3, 11) else None


def sanitizer_environment(options: argparse.Namespace) -> dict[str, str] | None:
    """What a process needs to load a sanitized module, or None."""
    found = []
    for library in ("libasan.so", "libubsan.so"):
        done = subprocess.run([options.cc, f"-print-file-name={library}"], capture_output=True, text=True, check=False)
        path = pathlib.Path(done.stdout.strip())
        if not path.is_absolute() or not path.exists():
            return None
        found.append(str(path))
    leaks = "detect_leaks=0:allocator_may_return_null=1:abort_on_error=0"
    environment = {"LD_PRELOAD": ":".join(found), "ASAN_OPTIONS": leaks, "PYTHONMALLOC": "malloc"}
    variables = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", "import json"], capture_output=True, env=variables, check=False)
    return None if done.returncode else environment


@dataclasses.dataclass
class Suite:
    """A script with parts.

    names: globals() of the script, whose variable `probe` becomes the module in the process of a part. module: its
    name; sources: what it is built of, beside this file or below options.root. unsanitized: parts that are not run
    with sanitizers. seconds: for a part. most: how many findings of a part are printed."""

    names: dict[str, Any]
    module: str
    sources: tuple[str, ...]
    unsanitized: tuple[str, ...] = ()
    seconds: int = 900
    begin: Callable[[Any], None] = lambda probe: None  # called in the process of a part

    def __post_init__(self) -> None:
        self.script = pathlib.Path(self.names["__file__"]).resolve()
        self.parts = {name[5:]: call for name, call in self.names.items() if name.startswith("part_")}

    def parser(self) -> argparse.ArgumentParser:
        """The options that all have."""
        parts = ",".join(self.parts)
        made = argparse.ArgumentParser(description=self.names["__doc__"].splitlines()[0])
        made.add_argument("--cc", default=os.environ.get("CC", "cc"))
        made.add_argument("--root", type=pathlib.Path, default=ROOT, help="where the headers are")
        made.add_argument("--seed", type=int, default=1)
        made.add_argument("--timeout", type=int, default=self.seconds, help="seconds that a part may take")
        made.add_argument("--sanitize", action="store_true", help="most parts with AddressSanitizer, too")
        made.add_argument("--limited", action="store_true", help="build for the limited API of 3.11")
        made.add_argument("--optimize", default="1", metavar="0", help="-O")
        made.add_argument("--parts", default=parts, help=f"of {parts}")
        made.add_argument("--first", action="store_true", help="leave at the first finding")
        made.add_argument("--here", action="store_true", help="with --built: all parts in this process, which may crash")
        made.add_argument("--build", type=pathlib.Path, metavar="FOLDER", help="build the module there, and nothing else")
        made.add_argument("--built", type=pathlib.Path, metavar="FOLDER", help="where --build has built it")
        made.add_argument("--part", choices=self.parts, help=argparse.SUPPRESS)
        made.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
        return made

    def load(self, folder: pathlib.Path) -> None:
        """The module, in the process of a part."""
        sys.path.insert(0, str(folder))
        self.names["probe"] = importlib.import_module(self.module)
        self.begin(self.names["probe"])

    def run_part(self, options: argparse.Namespace, part: str) -> int:
        """In this process."""
        global leaves_as
        leaves_as = part if options.first else ""
        self.parts[part](options)
        report(part)
        print(f"{part}: checks {checks}, differences {len(wrong)}", flush=True)
        return 1 if wrong else 0

    def run_here(self, options: argparse.Namespace, chosen: list[str]) -> bool:
        """All parts in this process, up to the first that is wrong."""
        self.load(options.built)
        for part in chosen:
            gc.collect()
            gc.freeze()  # what earlier parts have left, so that collecting is not slower than in a new process
            try:
                if self.run_part(options, part):
                    return False
            except BaseException as error:  # noqa: B902 - as in a process of its own
                print(f"{part}: ended with {error!r}", flush=True)
                return False
        return True

    def build(self, options: argparse.Namespace, folder: pathlib.Path, flags: list[str]) -> str | None:
        """None, or what the compiler says."""
        folder.mkdir(exist_ok=True)
        root = options.root
        sources = [at if at.exists() else root / name for name in self.sources for at in [HERE / name]]
        command = [options.cc, "-std=c99", f"-O{options.optimize}", "-g", *WARNINGS.split(), *flags,
                   *(["-DPy_LIMITED_API=0x030b0000"] if options.limited else []),
                   "-isystem", sysconfig.get_path("include"), f"-I{root}", f"-I{root / 'ext'}", f"-I{root / 'sim'}",
                   "-shared", "-fPIC", "-pthread", *map(str, sources), "-o", str(folder / f"{self.module}.so")]  # fmt: skip
        if sys.platform == "darwin":
            command += ["-undefined", "dynamic_lookup"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None

    def spawn(self, options: argparse.Namespace, part: str, folder: pathlib.Path, environment: dict[str, str], note: str) -> bool:
        """Runs a part, prints what it says; whether it is right."""
        command = [sys.executable, "-B", "-X", "utf8", str(self.script), *sys.argv[1:], "--part", part, "--folder", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=options.timeout,
                                  env={**os.environ, **environment})  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"{part}{note}: did not end")
            return False
        for line in done.stdout.splitlines():
            print(line if line.startswith(f"{part}:") else f"{part}: {line}")
        if done.returncode == 0:
            return True
        if done.returncode != 1 or not done.stdout:
            print(f"{part}{note}: ended with {done.returncode}")
        print(done.stderr if len(done.stderr) < 4000 else done.stderr[:2000] + "\n...\n" + done.stderr[-1500:])
        return False

    def run_all(self, options: argparse.Namespace, work: pathlib.Path, chosen: list[str], flags: list[str]) -> bool:
        """Builds, and runs the parts that were chosen."""
        folder = options.built or work / "plain"
        error = None if options.built else self.build(options, folder, flags)
        if error:
            print(error)
            return False
        good = True
        for part in chosen:
            if good or not options.first:
                good = self.spawn(options, part, folder, {}, "") and good
        if not options.sanitize:
            return good
        environment = sanitizer_environment(options)
        error = self.build(options, work / "sanitized", flags + SANITIZE.split()) if environment else "no libasan to load"
        if error:
            print(f"sanitized: skipped, {error}")
            return good
        for part in [part for part in chosen if part not in self.unsanitized]:
            print(f"{part}, sanitized:")
            good = self.spawn(options, part, work / "sanitized", environment or {}, ", sanitized") and good
        return good

    def main(self, options: argparse.Namespace, reason: str | None = None, flags: tuple[str, ...] = (),
             left_out: tuple[str, ...] = ()) -> int:  # fmt: skip
        """Exit status. reason: why the script skips, beside what all need. left_out: parts that cannot run."""
        if options.part:
            self.load(options.folder)
            return self.run_part(options, options.part)
        reason = why_skipped(options) or reason
        if reason:
            print(f"{self.script.name}: skipped, {reason}")
            return 77
        if options.build:
            error = self.build(options, options.build, list(flags))
            print(error or "built")
            return 1 if error else 0
        chosen = [part for part in options.parts.split(",") if part in self.parts and part not in left_out]
        if options.here:
            return 0 if self.run_here(options, chosen) else 1
        with tempfile.TemporaryDirectory() as name:
            good = not chosen or self.run_all(options, pathlib.Path(name), chosen, list(flags))
        print(f"{self.script.stem}: " + ("no differences" if good else "differences"))
        return 0 if good else 1
