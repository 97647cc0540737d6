#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs of sim/tests/zoo on the simulated driver: each race is found, and each repaired program is clean.

    sim/tests/driver/check_zoo.py [--python PYTHON] [--runs 1] [--only NAME]

PYTHON has the package cai_sim and the libraries of the programs. Each program runs `--runs` times under both settings of
the driver. A program whose library is missing is skipped, with its name. Exit status 0: all as expected; 1: not; 77: all
were skipped, or there is no package cai_sim.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import subprocess
import sys

ZOO = pathlib.Path(__file__).resolve().parents[1] / "zoo"
RACE = 4
SETTINGS = ([], ["--adversarial"])


def run(python: str, setting: list[str], program: pathlib.Path, fixed: bool) -> subprocess.CompletedProcess[str]:
    command = [python, "-W", "ignore", "-m", "cai_sim", *setting, str(program), *(["--fixed"] if fixed else [])]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def missing(done: subprocess.CompletedProcess[str]) -> str:
    """The library that a program does not find, or ""."""
    for line in done.stderr.splitlines():
        if line.startswith("ModuleNotFoundError: No module named "):
            return line.split("'")[1].split(".")[0]
    return ""


def check(python: str, runs: int, program: pathlib.Path) -> tuple[str, list[str]]:
    """The library that is missing, and what is wrong."""
    wrong = []
    for setting in SETTINGS:
        for fixed in (False, True):
            expected = 0 if fixed else RACE
            seen = collections.Counter()
            for _ in range(runs):
                done = run(python, setting, program, fixed)
                if missing(done):
                    return missing(done), []
                seen[done.returncode] += 1
            if seen[expected] != runs:
                what = f"{program.name}{' --fixed' if fixed else ''}{' (adversarial)' if setting else ''}"
                wrong.append(f"{what}: status {expected} in {seen[expected]} of {runs} runs; {dict(seen)}\n{done.stderr}")
    return "", wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="", help="programs whose name has this text")
    options = parser.parse_args()
    if subprocess.run([options.python, "-c", "import cai_sim"], capture_output=True).returncode != 0:
        print("skipped: the package cai_sim is not installed (pip install ./sim/python)")
        return 77
    programs = [path for path in sorted(ZOO.glob("*.py")) if options.only in path.name]
    found, failed = 0, 0
    for program in programs:
        library, wrong = check(options.python, options.runs, program)
        if library:
            print(f"{program.name}: skipped, {library} is not installed")
            continue
        found += not wrong
        failed += bool(wrong)
        print(f"{program.name}: {'wrong' if wrong else 'found, and clean when repaired'}")
        for text in wrong:
            print(f"  wrong: {text}")
    print(f"{found} of {len(programs)} programs found in {options.runs} runs under {len(SETTINGS)} settings")
    return 1 if failed or not programs else 0 if found else 77


if __name__ == "__main__":
    sys.exit(main())
