#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the simulated driver sees what the host itself reads and refills before it has waited.

    tests/driver/check_host.py [--python PYTHON] [--only NAME]

PYTHON has the package cai_sim, Numba and numba-cuda. Runs each program of host_programs.py under both settings: those
with a race give exactly one kind of finding, a possible race, and the clean ones none. Exit status 0: all is right; 1:
not; 77: there is no package cai_sim, or no numba-cuda.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from host_programs import BEGIN, CLEAN, RACES

NEEDS = "import cai_sim, numba, numba_cuda; from cuda.bindings import driver"
SETTINGS: tuple[tuple[str, ...], ...] = ((), ("--adversarial",))


def run(python: str, folder: pathlib.Path, name: str, text: str, setting: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    file = folder / f"{name}.py"
    file.write_text(BEGIN + text + "\n")
    return subprocess.run([python, "-m", "cai_sim", *setting, str(file)], capture_output=True, text=True, timeout=120, cwd=folder)


def wrong(done: subprocess.CompletedProcess[str], pattern: str) -> str:
    """What is not as it should be, or ""."""
    first = re.search(r"^cai_sim: (.*)$", done.stderr, re.M)
    said = first[1] if first else ""
    if done.returncode or "Traceback" in done.stderr:
        return "did not end well"
    if "are not seen" in done.stderr:
        return "memory is not watched"
    if not pattern:
        return "" if said == "no race" else "a false alarm"
    if not re.fullmatch(r"\d possible races?", said):
        return "not found"
    return "" if re.search(pattern, done.stderr, re.S) else f"no {pattern}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if subprocess.run([options.python, "-c", NEEDS], capture_output=True).returncode:
        print("no package cai_sim, or no numba-cuda")
        return 77
    programs = {name: (text, "") for name, text in CLEAN.items()} | RACES
    failed = ran = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, pattern) in programs.items():
            for setting in SETTINGS:
                if options.only and name != options.only:
                    continue
                done = run(options.python, pathlib.Path(folder), name, text, setting)
                why = wrong(done, pattern)
                ran += 1
                failed += bool(why)
                if why or options.only:
                    print(f"{name} {' '.join(setting)}: {why or 'right'}\n{done.stdout}{done.stderr}")
    print(f"{ran} runs, {failed} wrong")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
