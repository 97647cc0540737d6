#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs of sim/tests/driver/clean on the simulated driver. Each of them is right, so a race is a false alarm.

    sim/tests/driver/check_clean.py [--python PYTHON] [--only NAME] [--jobs 2] [--reports]

PYTHON has the package cai_sim and the libraries of the programs. Each program runs under both settings of the driver.
A program whose library is missing is skipped, with its name. A possible race counts as a false alarm. So does a report
that EXPLAINED names, but that is not a failure. Programs with launches that are not judged are counted.

Exit status 0: each program that ran ended with 0 and without a race, or is explained, and fewer than one in ten have a
false alarm. 1: not so. 77: all were skipped, or there is no package cai_sim.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import pathlib
import subprocess
import sys

CLEAN = pathlib.Path(__file__).resolve().parent / "clean"
ALARMS = (4, 7)  # exit statuses of a race and of a possible one
NOT_JUDGED = 8
SETTINGS = {"default": [], "adversarial": ["--adversarial"]}
ONE_IN = 10

# False alarms that are known: the program, and why it is reported.
EXPLAINED: dict[str, str] = {}


@dataclasses.dataclass
class Outcome:
    program: str
    setting: str
    status: int
    text: str

    @property
    def missing(self) -> str:
        """The library that the program does not find, or ""."""
        for line in self.text.splitlines():
            if line.startswith("ModuleNotFoundError: No module named "):
                return line.split("'")[1].split(".")[0]
        return ""

    @property
    def races(self) -> int:
        return self.count("race ")

    @property
    def possible(self) -> int:
        return self.count("possible race ")

    @property
    def not_judged(self) -> bool:
        return self.status == NOT_JUDGED

    @property
    def reported(self) -> bool:
        """Whether the report was written at all: a program without one says nothing of races."""
        return any(line.startswith("cai_sim: ") for line in self.text.splitlines())

    def count(self, begin: str) -> int:
        lines = self.text.splitlines()
        return sum(line.startswith(begin) and line[len(begin) :].split(" ")[0].isdigit() for line in lines)


def run(python: str, program: pathlib.Path, setting: str) -> Outcome:
    command = [python, "-W", "ignore", "-m", "cai_sim", *SETTINGS[setting], str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return Outcome(program.name, setting, -1, "no end after 120 seconds")
    return Outcome(program.name, setting, done.returncode, done.stdout + done.stderr)


def wrong(outcome: Outcome) -> str:
    """What is wrong with one run, or ""."""
    if outcome.status not in (0, NOT_JUDGED, *ALARMS):
        return f"exit status {outcome.status}"
    if not outcome.reported:
        return "no report"
    if outcome.status in ALARMS or outcome.races or outcome.possible:
        return f"{outcome.races} races and {outcome.possible} possible races"
    return ""


def show(outcomes: list[Outcome], reports: bool) -> tuple[set[str], list[str]]:
    """The programs with a false alarm, and those that fail."""
    alarms, failed = set(), []
    for outcome in outcomes:
        what = wrong(outcome)
        explained = EXPLAINED.get(outcome.program, "")
        alarm = outcome.status in ALARMS and outcome.reported and bool(what)
        if alarm:
            alarms.add(outcome.program)
        if what and not (alarm and explained):
            failed.append(outcome.program)
        note = "; some launches are not judged" if outcome.not_judged else ""
        ending = f" ({explained})" if alarm and explained else ""
        print(f"{outcome.program} ({outcome.setting}): {what or 'clean'}{ending}{note}")
        if what or reports:
            print("\n".join("  " + line for line in outcome.text.splitlines()))
    return alarms, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="programs whose name has this text")
    parser.add_argument("--jobs", type=int, default=2, help="programs that run at a time")
    parser.add_argument("--reports", action="store_true", help="print each report")
    options = parser.parse_args()
    if subprocess.run([options.python, "-c", "import cai_sim"], capture_output=True).returncode != 0:
        print("skipped: the package cai_sim is not installed (pip install ./sim/python)")
        return 77
    programs = [path for path in sorted(CLEAN.glob("*.py")) if options.only in path.name]
    work = [(program, setting) for program in programs for setting in SETTINGS]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda item: run(options.python, *item), work))
    ran = [outcome for outcome in outcomes if not outcome.missing]
    for name in sorted({f"{one.program}: skipped, {one.missing} is not installed" for one in outcomes if one.missing}):
        print(name)
    alarms, failed = show(ran, options.reports)
    count = len({outcome.program for outcome in ran})
    dark = len({outcome.program for outcome in ran if outcome.not_judged})
    print(f"{count} of {len(programs)} programs ran under {len(SETTINGS)} settings: {len(alarms)} with a false alarm, "
          f"{dark} with launches that are not judged")
    if not programs or failed or len(alarms) * ONE_IN >= max(count, 1):
        return 77 if programs and not ran else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
