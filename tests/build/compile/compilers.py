"""What matrix.py and symbols.py share: arguments, flags, and running many compilers at once."""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import os
import pathlib
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass, field

HEADER = pathlib.Path(__file__).resolve().parents[3] / "cai.h"
DIAGNOSTIC = re.compile(r"\b(?:warning|error)(?: #\d+(?:-D)?)?:|undefined reference|multiple definition")


def argument_parser(description: str) -> argparse.ArgumentParser:
    """A parser for the header and the compilers; a compiler that is not there is left out."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--header", type=pathlib.Path, default=HEADER)
    for name in ("gcc", "gxx", "clang", "clangxx", "nvcc"):
        parser.add_argument(f"--{name}", default=shutil.which(name.replace("xx", "++")))
    parser.add_argument("--mingw", default=shutil.which("x86_64-w64-mingw32-gcc"))
    parser.add_argument("--m32-flags", default="-m32", help="how gcc makes 32-bit programs")
    parser.add_argument("--cuda-include", help="folder of cuda_runtime_api.h; nvcc's by default")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time (2)")
    parser.add_argument("--tier", choices=("full", "exhaustive"), default="full", help="how many jobs (full)")
    return parser


def cpu_seconds() -> str:
    """What the compilers cost so far, to be printed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return f"{used.ru_utime + used.ru_stime:.0f} CPU seconds"


def cuda_flags(args: argparse.Namespace) -> list[str]:
    """How a host compiler finds CUDA's headers; empty where there are none."""
    folder = args.cuda_include or nvcc_include(args.nvcc)
    return ["-isystem", str(folder)] if folder else []


@functools.lru_cache(maxsize=None)
def nvcc_include(nvcc: str | None) -> str | None:
    """The include folder that nvcc uses."""
    if not nvcc or not shutil.which(nvcc):
        return None
    command = [nvcc, "--dryrun", "-x", "cu", "-E", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r'"-I([^"]+)"', done.stderr)
    return next((folder for folder in found if pathlib.Path(folder, "cuda_runtime_api.h").is_file()), None)


def name_and_root(header: pathlib.Path) -> tuple[str, pathlib.Path]:
    """How a unit includes a header, and from which folder: "cai.h", or "ext/cai_x.h" of the folder above."""
    folder = header.resolve().parent
    root = folder.parent if folder.name == "ext" else folder
    return str(header.resolve().relative_to(root)), root


@dataclass
class Job:
    """One command. `refuse`: it must fail, with this text in what it prints. `only`: diagnostics
    count if the line names one of these files; without it every line of output counts. `runs`: a
    program that it makes, which must end with 0."""

    name: str
    command: list[str]
    refuse: str = ""
    only: tuple[str, ...] = ()
    runs: str = ""


@dataclass
class Tally:
    """Counts over all jobs."""

    compilations: int = 0
    diagnostics: int = 0
    refused: int = 0
    ran: int = 0
    failures: list[str] = field(default_factory=list)


def run_command(command: list[str]) -> tuple[int, str]:
    """Exit status, and stdout and stderr together."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def run_job(job: Job) -> tuple[Job, int, str]:
    """Runs one command, and the program that it makes."""
    status, output = run_command(job.command)
    if job.runs and not status:
        status, said = run_command([job.runs])
        output += f"the program ended with {status}: {said}\n" if status else ""
    return job, status, output


def judge(job: Job, status: int, output: str, tally: Tally) -> None:
    """Adds a finished job to the tally."""
    tally.compilations += 1
    tally.ran += bool(job.runs)
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
