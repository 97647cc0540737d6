#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs everyday programs on the simulated driver (sim/tests/driver/everyday), by hand: they need PyTorch and CuPy.

    check_everyday.py [--python PYTHON] [--only TEXT]

PYTHON has the package cai_sim and the libraries. In CuPy `python -m cai_sim.cupy` was run. Each program must come to its
own end without a race that is certain, or, if it is one of STOPS, say why not. Exit status 0: all as expected; 1: not;
77: all were skipped.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "everyday"
# What does not run, and the sentence that says so.
STOPS = {
    "core_sync": r"cuda\.bindings\.runtime \(also Device\.sync of cuda\.core\) does not run here .* Stream\.sync\(\)",
    "cupy_sorted": r"CuPy's Thrust \(sort, unique, median\) does not run here",
    "newton": r"Kernels do not run here: results are not there",
    "torch_lstm": r"torch\.backends\.cudnn\.enabled = False goes without it",
    "torch_solve": r"libcusolver\.so\S* of nvidia-cusolver \S+ does not run here",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="programs whose name has this text")
    options = parser.parse_args()
    wrong, ran = [], 0
    for program in sorted(PROGRAMS.glob("*.py")):
        if options.only not in program.name:
            continue
        command = [options.python, "-W", "ignore", "-m", "cai_sim", "--accept=possible,not-judged", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", done.stderr)
        first = re.search(r"^cai_sim: (?!Kernels|Of cuDNN,|.* does not run| *cu\w+ is not).*$", done.stderr, re.M)
        print(f"{program.stem:16} {done.returncode}  {'no ' + missing[1] if missing else first[0] if first else ''}", flush=True)
        if missing:
            continue
        ran += 1
        stops = STOPS.get(program.stem)
        if (done.returncode == 0) == bool(stops) or (stops and not re.search(stops, done.stderr)):
            wrong.append(f"{program.name}:\n{done.stdout}{done.stderr}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
