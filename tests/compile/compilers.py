"""What matrix.py and symbols.py share: arguments, flags, and running many compilers at once."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
from dataclasses import dataclass, field

HEADER = pathlib.Path(__file__).resolve().parent.parent.parent / "cai.h"
DIAGNOSTIC = re.compile(r"\b(?:warning|error)(?: #\d+(?:-D)?)?:|undefined reference|multiple definition")


def argument_parser(description: str) -> argparse.ArgumentParser:
    """A parser for the header and the compilers; a compiler that is not there is left out."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--header", type=pathlib.Path, default=HEADER)
    for name, program in (("gcc", "gcc"), ("gxx", "g++"), ("clang", "clang"), ("clangxx", "clang++"), ("nvcc", "nvcc")):
        parser.add_argument(f"--{name}", default=shutil.which(program))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser


def name_and_root(header: pathlib.Path) -> tuple[str, pathlib.Path]:
    """How a unit includes a header, and from which folder: "cai.h", or "ext/cai_x.h" of the folder above."""
    folder = header.resolve().parent
    root = folder.parent if folder.name == "ext" else folder
    return str(header.resolve().relative_to(root)), root


@dataclass
class Job:
    """One command. `refuse`: it must fail, with this text in what it prints. `only`: diagnostics
    count if the line names one of these files; without it every line of output counts."""

    name: str
    command: list[str]
    refuse: str = ""
    only: tuple[str, ...] = ()


@dataclass
class Tally:
    """Counts over all jobs."""

    compilations: int = 0
    diagnostics: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def run_job(job: Job) -> tuple[Job, int, str]:
    """Runs one command; its output has stdout and stderr."""
    done = subprocess.run(
        job.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=300, check=False,
    )  # fmt: skip
    return job, done.returncode, done.stdout


def judge(job: Job, status: int, output: str, tally: Tally) -> None:
    """Adds a finished job to the tally."""
    tally.compilations += 1
    if job.only and status == 0:
        output = "\n".join(line for line in output.splitlines() if any(name in line for name in job.only))
    found = len(DIAGNOSTIC.findall(output))
    shown = f"{job.name}\n    {' '.join(job.command)}\n{output[:3000]}"
    if job.refuse:
        tally.refused += 1
        if status == 0:
            tally.failures.append(f"must be refused and was not: {shown}")
        elif job.refuse not in output:
            tally.failures.append(f"refused, but not with {job.refuse!r}: {shown}")
        return
    tally.diagnostics += max(found, 1 if status else 0)
    if status or output.strip():
        tally.failures.append(shown)


def run_all(jobs: list[Job], workers: int) -> Tally:
    """Runs the commands, `workers` at a time. Whatever a compiler says without being asked fails."""
    tally = Tally()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for job, status, output in pool.map(run_job, jobs):
            judge(job, status, output, tally)
    return tally
