#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the simulated driver finds beside races of queued work: what the host itself reads and refills before it
has waited (host_programs.py), and uses of what was destroyed (lifetime_programs.py).

    sim/tests/driver/check_findings.py PROGRAMS [--python PYTHON] [--only NAME]

PYTHON has the package cai_sim, Numba and numba-cuda. Runs each program under both settings: those of RACES give what
they say, and the clean ones nothing. Exit status 0: all is right; 1: not; 77: there is no package cai_sim, or no
numba-cuda.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import re
import subprocess
import sys
import tempfile

NEEDS = "import cai_sim, numba, numba_cuda; from cuda.bindings import driver"
SETTINGS: tuple[tuple[str, ...], ...] = (("--devices=2",), ("--devices=2", "--adversarial"))


def run(python: str, folder: pathlib.Path, name: str, text: str, setting: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    file = folder / f"program_{name}.py"
    file.write_text(text + "\n")
    return subprocess.run([python, "-m", "cai_sim", *setting, str(file)], capture_output=True, text=True, timeout=120, cwd=folder)


def wrong(done: subprocess.CompletedProcess[str], status: int, line: str, pattern: str) -> str:
    """What is not as it should be, or ""."""
    first = re.search(r"^cai_sim: (.*)$", done.stderr, re.M)
    said = first[1] if first else ""
    if done.returncode != status or "Traceback" in done.stderr:
        return f"status {done.returncode}"
    if "are not seen" in done.stderr:
        return "memory is not watched"
    if not re.fullmatch(line, said):
        return "not found" if pattern else "a false alarm"
    return "" if re.search(pattern, done.stderr, re.S) else f"no {pattern}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", choices=("host", "lifetime"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if subprocess.run([options.python, "-c", NEEDS], capture_output=True).returncode:
        print("no package cai_sim, or no numba-cuda")
        return 77
    given = importlib.import_module(f"{options.programs}_programs")
    programs = {name: (text, 0, "no race", "") for name, text in given.CLEAN.items()} | given.RACES
    failed = ran = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, *expected) in programs.items():
            for setting in SETTINGS:
                if options.only and name != options.only:
                    continue
                done = run(options.python, pathlib.Path(folder), name, given.BEGIN + text, setting)
                why = wrong(done, *expected)
                ran += 1
                failed += bool(why)
                if why or options.only:
                    print(f"{name} {' '.join(setting)}: {why or 'right'}\n{done.stdout}{done.stderr}")
    print(f"{ran} runs, {failed} wrong")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
