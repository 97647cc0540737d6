#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs programs on the recorder, with the simulated driver as the real one: the reports are those of a plain run.

    sim/tests/driver/check_recorder.py [--python PYTHON] [--only NAME] [--jobs 2] [--all] [--real]

PYTHON has the package cai_sim and the libraries of the programs: all of sim/tests/zoo, and those of sim/tests/driver/clean in
CLEAN, or with --all each of them. A second copy of the simulated libcuda.so.1 plays the real driver. It gets handles that
differ from those of the simulation behind the recorder, so that one in place of the other is found. Compared are all races
with their lines and arrays. What was seen is compared too, if no call of the program returned a lasting error: a device
that stops after an error is not simulated. No call may be left out of the recording. --real: the real driver is that of
the system, on a GPU; then races alone are compared.

Exit status 0: all are alike; 1: not; 77: all were skipped, or there is no package cai_sim.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import difflib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import check_clean
from check_zoo import RACE, ZOO, missing

SALT = 77
# Captures, host functions, pools, host memory, threads, queries, and a second library.
CLEAN = ("bindings_graph", "bindings_host_function", "core_graph", "core_numpy_pinned", "core_pool_reuse",
         "core_pool_two_streams", "numba_poll", "numba_threads", "pycuda_numba_async")  # fmt: skip
SYSTEM = "system"  # in place of a file: the driver of the system
SEEN = "what was seen:"
ONLY_PLAIN = ("  asked for, and not served", "  kernels do not run")


def play_real(file: str) -> None:
    """Moves the handles of the library that plays the real driver away from those of the recorder's simulation."""
    real = ctypes.CDLL(file)
    for name in ("cai_driver_sim", "cai_sim_context_create", "cai_sim_pool_create"):
        getattr(real, name).restype = ctypes.c_uint64
    sim = ctypes.c_void_p(real.cai_driver_sim())
    real.cai_sim_salt_handles(sim, SALT)
    for _ in range(3):
        real.cai_sim_context_create(sim, 0)
        real.cai_sim_pool_create(sim, 0)


def child(file: str, program: list[str]) -> int:
    """Runs one program as `python -m cai_sim --record=FILE` does."""
    import cai_sim
    from cai_sim.__main__ import status_of

    cai_sim.start(record=True if file == SYSTEM else file)
    if file != SYSTEM:
        play_real(file)
    status = status_of(program)
    sys.stdout.flush()
    sys.stderr.write("\n" + cai_sim.report())
    return RACE if any(race.certain for race in cai_sim.races()) else status


def run(command: list[str]) -> tuple[int, list[str], bool]:
    """The exit status, the report, and whether a library is missing."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = done.stderr.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("cai_sim: ")), len(lines))
    report = lines[begin:] if begin < len(lines) else lines
    own = pathlib.Path(__file__).name  # its lines are in the tracebacks of a child
    return done.returncode, [line for line in report if not line.startswith(ONLY_PLAIN) and own not in line], bool(missing(done))


def compared(plain: list[str], recorded: list[str], races_alone: bool) -> list[str]:
    """What differs between two reports."""
    if races_alone or any(line.startswith("  errors of CUDA that were left") for line in plain):
        plain, recorded = plain[: plain.index(SEEN)], recorded[: recorded.index(SEEN)] if SEEN in recorded else recorded
    return list(difflib.unified_diff(plain, recorded, "plain", "recorded", lineterm="", n=0))


def check(python: str, file: str, program: list[str]) -> tuple[bool, list[str]]:
    """Whether a library is missing, and what is wrong."""
    status, plain, absent = run([python, "-W", "ignore", "-m", "cai_sim", *program])
    if absent:
        return True, []
    again, recorded, _ = run([python, "-W", "ignore", __file__, "--child", file, *program])
    wrong = compared(plain, recorded, file == SYSTEM)
    wrong += [line for line in recorded if "not recorded" in line]
    if status != again:
        wrong.append(f"exit status {again}, not {status}")
    if not any(line.startswith("cai_sim: ") for line in recorded):
        wrong += recorded
    return False, wrong


# One allocation, and a call that the simulation does not serve.
LACKS = """
import ctypes
cuda, out = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(out), 0)
cuda.cuCtxSetCurrent(out)
cuda.cuMemAlloc_v2(ctypes.byref(out), ctypes.c_size_t(64))
cuda.cuGraphAddEmptyNode(None, None, None, ctypes.c_size_t(0))
"""


def check_lacking(python: str, file: str) -> list[str]:
    """What is not recorded is said in the first line."""
    done = subprocess.run([python, "-m", "cai_sim", f"--record={file}", "-c", LACKS], capture_output=True, text=True)
    texts = ("cai_sim: not judged: calls of 1 function, which were not recorded", "cuGraphAddEmptyNode")
    return [] if done.returncode == 8 and all(text in done.stderr for text in texts) else [f"lacking: {done.stderr.strip()}"]


# A static runtime makes the context, and makes it current, in a way that the recorder does not see. Here that is the
# real driver's library itself. {how}: which context. Two threads, then a race of two streams.
PRIVATE = """
import ctypes, sys, threading
import cai_sim
cai_sim.start(record=sys.argv[1])
real, cuda = ctypes.CDLL(sys.argv[1]), ctypes.CDLL("libcuda.so.1")
context, one, two, a = (ctypes.c_void_p() for _ in range(4))
real.cai_driver_sim.restype = ctypes.c_uint64
real.cai_sim_salt_handles(ctypes.c_void_p(real.cai_driver_sim()), 77)
assert real.cuInit(0) == 0
def private():
    assert real.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and real.cuCtxSetCurrent(context) == 0
def created():
    assert real.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
def given():
    assert real.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
def pushed():
    assert real.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxPushCurrent_v2(context) == 0
{how}()
for stream in one, two:
    assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(a), ctypes.c_size_t(64)) == 0
def work():
    assert real.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemsetD8Async(a, 1, ctypes.c_size_t(64), two) == 0
assert cuda.cuMemsetD8Async(a, 1, ctypes.c_size_t(64), one) == 0
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(cai_sim.report())
sys.exit(cai_sim.verdict().status)
"""


def check_private(python: str, file: str) -> list[str]:
    """Contexts that somebody made in a way of their own are known when they are seen first."""
    wrong = []
    for how in ("private", "created", "given", "pushed"):
        program = PRIVATE.replace("{how}", how)
        done = subprocess.run([python, "-c", program, file], capture_output=True, text=True)
        text = done.stdout + done.stderr
        if done.returncode != RACE or "cai_sim: 1 race" not in text or "not recorded" in text:
            wrong.append(f"private context, {how}: status {done.returncode}: {text}")
    return wrong


def check_refused(python: str, file: str) -> list[str]:
    """What the command says if it cannot record."""
    recorder = str(pathlib.Path(file).parent / "record" / "libcuda.so.1")
    wrong = []
    for options, text in (
        (["--record=/nowhere/libcuda.so.1"], "/nowhere/libcuda.so.1 cannot be recorded: "),
        ([f"--record={recorder}"], f"{recorder} is the recorder itself"),
        ([f"--record={file}", "--devices", "2"], "a recorder has the devices and the memory of the real driver"),
    ):
        done = subprocess.run([python, "-m", "cai_sim", *options, "-c", ""], capture_output=True, text=True)
        if done.returncode != 2 or text not in done.stderr:
            wrong.append(f"{options}: status {done.returncode}: {done.stderr.strip()}")
    found = dict(os.environ, LD_LIBRARY_PATH=str(pathlib.Path(file).parent))
    done = subprocess.run([python, "-m", "cai_sim", "--record", "-c", ""], capture_output=True, text=True, env=found)
    if done.returncode != 8 or "cai_sim: not judged: no work was queued" not in done.stderr:
        wrong.append(f"the driver of LD_LIBRARY_PATH: status {done.returncode}: {done.stderr.strip()}")
    return wrong


def programs(only: str, every: bool) -> list[list[str]]:
    zoo = sorted(ZOO.glob("*.py"))
    clean = [path for path in sorted(check_clean.CLEAN.glob("*.py")) if every or path.stem in CLEAN]
    chosen = [[str(path)] for path in zoo + clean]
    if every:
        chosen += [[str(path), "--fixed"] for path in zoo]
    return [program for program in chosen if only in program[0]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="programs whose name has this text")
    parser.add_argument("--jobs", type=int, default=2, help="programs that run at a time")
    parser.add_argument("--all", action="store_true", help="all programs, repaired ones too")
    parser.add_argument("--real", action="store_true", help="on the driver of the system")
    options = parser.parse_args()
    where = subprocess.run([options.python, "-c", "import cai_sim._native as n; print(n.folder())"], capture_output=True, text=True)
    if where.returncode:
        print("skipped: the package cai_sim is not installed (pip install ./sim/python)")
        return 77
    package = pathlib.Path(where.stdout.strip())
    chosen = programs(options.only, options.all)
    with tempfile.TemporaryDirectory() as folder:
        file = SYSTEM if options.real else shutil.copy(package / "libcuda.so.1", folder)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda program: check(options.python, file, program), chosen))
    refused = check_refused(options.python, str(package / "libcuda.so.1"))
    refused += check_lacking(options.python, str(package / "libcuda.so.1"))
    refused += check_private(options.python, str(package / "libcuda.so.1"))
    print("".join(f"said otherwise: {line}\n" for line in refused), end="")
    failed = 0
    for program, (absent, wrong) in zip(chosen, results):
        failed += bool(wrong)
        name = " ".join([pathlib.Path(program[0]).stem, *program[1:]])
        print(f"{name}: {'skipped, a library is not installed' if absent else 'differs' if wrong else 'alike'}")
        print("".join(f"    {line}\n" for line in wrong), end="")
    ran = sum(not absent for absent, _ in results)
    print(f"{ran} of {len(chosen)} programs ran, {failed} with another report on the recorder")
    return 1 if failed or refused or not chosen else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(child(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--child"] else main())
