#!/usr/bin/env python3
"""Compiles the programs for MPI with one MPI's compiler, and runs them.

    run_mpi.py --mpicc mpicc.openmpi|mpicc.mpich [--bench]

Its mpiexec has the same ending. Every warning is an error, and no program may take longer than its limit.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ("-std=c99", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
         "-Werror", *(f"-I{ROOT / folder}" for folder in ("", "ext", "sim", "tests/support", "examples/mpi")))  # fmt: skip
SIMULATION = ("sim/cai_sim.c", "sim/cai_check.c")
# name, source, flags, whether it runs on the simulation, arguments
TYPES = ("types", "tests/mpi/test_type.c", (), False, ())
LARGE_COUNTS = ("types, by counts of at most 3", "tests/mpi/test_type.c", ("-DCAI_MPI_MAX_COUNT=3",), False, ("4000",))
BATCHES = ("batches", "tests/mpi/test_batch.c", (), True, ())
LARGE_BATCHES = ("batches, by counts of at most 3", "tests/mpi/test_batch.c", ("-DCAI_MPI_MAX_COUNT=3",), True, ())
HOST = ("without CUDA", "tests/mpi/test_host.c", (), False, ())
HALOS = ("halos without CUDA", "tests/mpi/test_halo.c", (), False, ())
DEVICE_HALOS = ("halos of a device", "tests/mpi/test_halo.c", ("-DHALO_DEVICE",), True, ())
ENGINES = "tests/mpi/bench_engines.c"
STENCIL = "examples/mpi/stencil.c"
HALO = "examples/mpi/halo.c"
TWO_FIELDS = "tests/mpi/test_two_fields.c"
PAGE = "docs/communication.md"
LIMIT = 120  # seconds of one program
# What is wrong, and what a rank must print then. Of the waits of streams in the first step the third is that of
# the packs for the field, the sixth that of the field's stream for the unpacks.
MISTAKES = {
    "a wait of the host is left out": (("check=1", "wait=2"), "races: race on"),
    "the same, MPI on device memory": (("check=1", "wait=1", "engine=2"), "races: race on"),
    "the packs wait for nothing": (("check=1", "edge=3"), "nothing makes s3 wait for s1"),
    "a back edge is left out": (("check=1", "edge=6"), "nothing makes s2 wait for s3"),
    "a halo is used early, MPI on device memory": (("check=1", "early=1", "engine=2"), "races: race on"),
    "a rank has another shape": (("wrong=2",), "has fewer elements than the array|truncated"),
    "a rank dies": (("dies=2",), ""),
}


def environment() -> dict[str, str]:
    """For Open MPI: more processes than cores, also as root in a container. No effect on others."""
    more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}  # fmt: skip
    return {**os.environ, **more}


def mpiexec_of(mpicc: str) -> str:
    """The mpiexec of a compiler: it has the same ending."""
    return str(pathlib.Path(mpicc).with_name(pathlib.Path(mpicc).name.replace("mpicc", "mpiexec")))


class Runner:
    def __init__(self, mpicc: str, folder: pathlib.Path):
        self.mpicc, self.folder, self.mpiexec = mpicc, folder, mpiexec_of(mpicc)

    def compile(self, output: str, *arguments: str) -> str:
        path = str(self.folder / output)
        done = subprocess.run([self.mpicc, *FLAGS, *arguments, "-o", path], cwd=ROOT, capture_output=True, text=True)
        if done.returncode or done.stderr:
            raise SystemExit(f"{' '.join(arguments)}\n{done.stderr}")
        return path

    def run(self, program: str, ranks: int, *arguments: str) -> tuple[int, str]:
        """Returns the exit status and what it wrote; status 124: it took too long."""
        command = [self.mpiexec, "-n", str(ranks), program, *arguments]
        try:
            done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=LIMIT, text=True)  # fmt: skip
        except subprocess.TimeoutExpired as late:
            return 124, str(late.stdout)
        return done.returncode, done.stdout


def check_stencil(runner: Runner, program: str) -> int:
    """The same bits from any number of ranks and each engine, no race in any rank, and each mistake found."""
    failures = 0
    numbers = set()
    for ranks, *arguments in ((1,), (2,), (4,), (8,), (4, "engine=1"), (4, "engine=2"), (1, "engine=2")):
        status, text = runner.run(program, ranks, *arguments)
        found = re.search(r": ([0-9a-f]{16}),", text)
        numbers.add(found.group(1) if found and not status else text)
        print(f"{' '.join(arguments):9} {text.strip()}")
    if len(numbers) != 1:
        print(f"FAILED: {len(numbers)} results")
        failures += 1
    for engine in range(3):
        status, text = runner.run(program, 4, "n=12", "check=1", f"engine={engine}")
        print(f"engine {engine}, 4 ranks: {'no race in any rank' if not status else 'FAILED: ' + text}")
        failures += status != 0
    for name, (arguments, wanted) in MISTAKES.items():
        status, text = runner.run(program, 4, "n=12", *arguments)
        if status and wanted and not text:  # MPI_Abort may lose what was printed
            status, text = runner.run(program, 4, "n=12", *arguments)
        lines = [line for line in text.splitlines() if wanted and re.search(wanted, line)]
        good = status not in (0, 124) and bool(lines) == bool(wanted)
        print(f"{name}: {lines[0] if good and lines else 'ended' if good else f'FAILED, status {status}: {text}'}")
        failures += not good
    return failures


def check_halo(runner: Runner, objects: list[str]) -> int:
    """The same bits from any number of ranks, without CUDA and on a device; others if the field is periodic."""
    programs = {"host": runner.compile("halo", HALO),
                "device": runner.compile("halo_device", HALO, "-DHALO_DEVICE", *objects, "-lpthread")}  # fmt: skip
    found = {}
    for mode in ((), ("periodic",)):
        for where, program in programs.items():
            for ranks in (1, 2, 4):
                status, text = runner.run(program, ranks, *mode)
                print(f"{where:6} {' '.join(mode):8} {text.strip()}")
                found.setdefault(mode, set()).add(text.split(": ")[-1] if not status else f"{where}, {ranks}: {text}")
    good = all(len(numbers) == 1 for numbers in found.values()) and len(set.union(*found.values())) == 2
    if not good:
        print(f"FAILED: {found}")
    return not good


def check_two_fields(runner: Runner) -> int:
    """The halo of docs/communication.md for two fields at once; with one list for both it must fail."""
    page = re.search(r"```c\n(.*?open_halo.*?)```", (ROOT / PAGE).read_text(), re.S)[1].replace('#include "cai_mpi.h"\n', "")
    shared = page.replace("h->", "shared.").replace("{\n    static", "{\n    static my_halo shared;\n    static", 1)
    shared = shared.replace("&shared.batch", "&h->batch")
    failures = 0
    for name, text, counts, good in (("a list for each", page, (1, 2, 3, 4), True), ("one list for both", shared, (2,), False)):
        (runner.folder / "halo_of_page.h").write_text(text)
        program = runner.compile("two_fields", TWO_FIELDS, f"-I{runner.folder}")
        for ranks in counts:
            status, output = runner.run(program, ranks)
            right = (status == 0) == good and status != 124
            said = next(iter(output.splitlines()), "")
            print(f"two fields, {name}, ranks {ranks}: {said if right else f'FAILED, status {status}: {output}'}")
            failures += not right
    return failures


def scaling(runner: Runner, program: str) -> None:
    """Times of steps, the best of three; all ranks share the cores of this machine."""
    for kind, arguments in (("strong", ("n=96",)), ("weak", ("n=48", "weak=1"))):
        first = 0.0
        for ranks in (1, 2, 4, 8):
            texts = [runner.run(program, ranks, "steps=20", *arguments)[1] for _ in range(3)]
            best = min(float(re.search(r"([0-9.]+) ms", text).group(1)) for text in texts)
            first = first or best
            print(f"{kind:6} {ranks} ranks {best:8.2f} ms per step, {best / first:5.2f} of one rank's")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpicc", required=True)
    parser.add_argument("--bench", action="store_true", help="also times: of a face by each engine, of more ranks")
    args = parser.parse_args()
    if not shutil.which(args.mpicc):
        print(f"skipped: no {args.mpicc}")
        return 77
    failures = 0
    with tempfile.TemporaryDirectory(prefix="cai-mpi-") as folder, ThreadPoolExecutor(2) as pool:
        runner = Runner(args.mpicc, pathlib.Path(folder))
        objects = list(pool.map(lambda source: runner.compile(pathlib.Path(source).stem + ".o", "-c", source), SIMULATION))
        for name, source, flags, simulated, arguments in (TYPES, LARGE_COUNTS, HOST, BATCHES, LARGE_BATCHES, HALOS,
                                                          DEVICE_HALOS):  # fmt: skip
            linked = (*objects, "-lpthread") if simulated else ()
            program = runner.compile("program", *flags, source, *linked)
            for ranks in (1, 2, 4) if source.endswith("test_halo.c") else (1,):
                status, text = runner.run(program, ranks, *arguments)
                print(f"--- {name}, ranks {ranks}: {'good' if status == 0 else f'exit status {status}'}\n{text}")
                failures += status != 0
        failures += check_halo(runner, objects) + check_two_fields(runner)
        stencil = runner.compile("stencil", STENCIL, *objects, "-lpthread")
        failures += check_stencil(runner, stencil)
        if args.bench:
            print(runner.run(runner.compile("engines", ENGINES, "-DNDEBUG", "-O2"), 2)[1])
            scaling(runner, stencil)
    print(f"{failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
