#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that reads are told from writes in kernels of real libraries: small programs, racy and clean.

    check_reads.py [--python PYTHON] [--only WORD]

PYTHON has the package cai_sim. Programs whose libraries it lacks are skipped, so that the tests run those of Numba and
cuda.core, and an environment with all libraries runs all (sim/docs/results/real-libraries.md). Each program runs in a process
of its own on the simulated driver. A racy one is certain, possible or missed. A clean one is clean, or named falsely.
Exit status 0: each is what stands beside it; 1: not; 77: PYTHON has no cai_sim, or none of the libraries.
"""

from __future__ import annotations

import argparse
import collections
import os
import subprocess
import sys
import tempfile
import textwrap

CERTAIN, POSSIBLE, CLEAN = "certain", "possible", "clean"

NUMBA = """
import numpy as np
from {package} import cuda
@cuda.jit
def add(a, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = a[i] + 1
@cuda.jit
def twice(a):
    i = cuda.grid(1)
    if i < a.shape[0]:
        a[i] *= 2
@cuda.jit
def pick(a, at, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = a[at[i]]
s, t = cuda.stream(), cuda.stream()
x, y, z = (cuda.device_array(1024, np.float32) for _ in range(3))
at = cuda.device_array(1024, np.int64)
cuda.synchronize()
"""
CORE = """
from cuda.core import Device, Linker, LinkerOptions, LaunchConfig, Program, ProgramOptions, launch
device = Device()
device.set_current()
code = '''extern "C" __device__ float more(float v);
extern "C" __global__ void add(const float *a, float *b) {{ b[threadIdx.x] = a[threadIdx.x] + 1; }}
extern "C" __global__ void twice(float *a) {{ a[threadIdx.x] *= 2; }}'''
def made(kind, **options):
    return Program(code, "c++", ProgramOptions(arch="sm_90", **options)).compile(kind)
{build}
add, twice = module.get_kernel("add"), module.get_kernel("twice")
s, t = device.create_stream(), device.create_stream()
x, y, z = (device.allocate(4096, stream=s) for _ in range(3))
s.sync()
block = LaunchConfig(grid=1, block=256)
"""
CUBIN = 'module = made("cubin")'
PTX_LINKED = 'module = Linker(made("ptx", relocatable_device_code=True), options=LinkerOptions(arch="sm_90")).link("cubin")'
LTO = """module = Linker(made("ltoir", link_time_optimization=True),
                options=LinkerOptions(arch="sm_90", link_time_optimization=True)).link("cubin")"""
TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def add(a, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(a + i, mask=i < n) + 1, mask=i < n)
s, t = torch.cuda.Stream(), torch.cuda.Stream()
x, y, z = (torch.empty(1 << 22, device="cuda") for _ in range(3))  # each is a segment of its own
torch.cuda.synchronize()
def on(stream, a, out):
    with torch.cuda.stream(stream):
        add[(4,)](a, out, 4096, B=1024)
"""
CUPY = """
import cupy
code = 'extern "C" __global__ void add(const float *a, float *b) { b[threadIdx.x] = a[threadIdx.x] + 1; }'
raw = cupy.RawKernel(code, "add")
element = cupy.ElementwiseKernel("float32 a", "float32 b", "b = a + 1", "more")
named = cupy.RawModule(code="template<class T> __global__ void add(const T *a, T *b) { b[threadIdx.x] = a[threadIdx.x]; }",
                       name_expressions=("add<float>",)).get_function("add<float>")
s, t = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
x, y, z = (cupy.empty(256, "f") for _ in range(3))
cupy.cuda.Device().synchronize()
"""
TORCH = """
import torch
s, t = torch.cuda.Stream(), torch.cuda.Stream()
x, y, z = (torch.empty(1 << 22, device="cuda") for _ in range(3))  # each is a segment of its own
torch.cuda.synchronize()
"""


class Case:
    def __init__(self, name: str, needs: str, expected: str, racy: bool, head: str, body: str) -> None:
        self.name, self.needs, self.expected, self.racy = name, needs, expected, racy
        self.program = head + textwrap.dedent(body)


def numba(package: str) -> list[Case]:
    head = NUMBA.format(package=package)
    bodies = [
        ("two readers", CLEAN, False, "add[4, 256, s](x, y); add[4, 256, t](x, z)"),
        ("a writer and a reader", CERTAIN, True, "add[4, 256, s](x, y); add[4, 256, t](y, z)"),
        ("in place, and a reader", CERTAIN, True, "twice[4, 256, s](x); add[4, 256, t](x, z)"),
        ("two halves", CLEAN, False, "twice[2, 256, s](x[:512]); twice[2, 256, t](x[512:])"),
        ("two parts that overlap", CERTAIN, True, "twice[3, 256, s](x[:513]); twice[2, 256, t](x[512:])"),
        ("an index, read twice", CLEAN, False, "pick[4, 256, s](x, at, y); pick[4, 256, t](x, at, z)"),
    ]  # fmt: skip
    return [Case(f"{package}: {name}", package, *rest[:2], head, rest[2]) for name, *rest in bodies]


def core(name: str, build: str) -> list[Case]:
    head = CORE.format(build=build)
    return [
        Case(f"cuda.core, {name}: two readers", "cuda.core", CLEAN, False, head,
             "launch(s, block, add, x, y); launch(t, block, add, x, z)"),
        Case(f"cuda.core, {name}: a writer and a reader", "cuda.core", CERTAIN, True, head,
             "launch(s, block, twice, x); launch(t, block, add, x, z)"),
    ]  # fmt: skip


CASES = [
    *numba("numba"), *numba("numba_cuda_mlir"), *core("NVRTC", CUBIN), *core("linked PTX", PTX_LINKED), *core("LTO", LTO),
    Case("Triton: two readers", "triton", CLEAN, False, TRITON, "on(s, x, y); on(t, x, z)"),
    Case("Triton: a writer and a reader", "triton", CERTAIN, True, TRITON, "on(s, x, y); on(t, y, z)"),
    Case("CuPy, RawKernel: two readers", "cupy", CLEAN, False, CUPY, """
        with s: raw((1,), (256,), (x, y))
        with t: raw((1,), (256,), (x, z))"""),
    Case("CuPy, RawKernel: a writer and a reader", "cupy", CERTAIN, True, CUPY, """
        with s: raw((1,), (256,), (x, y))
        with t: raw((1,), (256,), (y, z))"""),
    Case("CuPy, ElementwiseKernel: two readers", "cupy", CLEAN, False, CUPY, """
        with s: element(x, y)
        with t: element(x, z)"""),
    Case("CuPy, ufunc in place, and a reader", "cupy", CERTAIN, True, CUPY, """
        with s: cupy.multiply(x, 2, x)
        with t: cupy.add(x, 1, z)"""),
    Case("CuPy, RawModule with a template: two readers", "cupy", CLEAN, False, CUPY, """
        with s: named((1,), (256,), (x, y))
        with t: named((1,), (256,), (x, z))"""),
    Case("CuPy, sum, and a writer", "cupy", CERTAIN, True, CUPY, """
        with s: x.sum(out=y[0])
        with t: element(z, x)"""),
    Case("PyTorch: two readers", "torch", CLEAN, False, TORCH, """
        with torch.cuda.stream(s): torch.add(x, 1, out=y)
        with torch.cuda.stream(t): torch.mul(x, 2, out=z)"""),
    Case("PyTorch: a writer and a reader", "torch", CERTAIN, True, TORCH, """
        with torch.cuda.stream(s): torch.add(x, 1, out=y)
        with torch.cuda.stream(t): torch.mul(y, 2, out=z)"""),
    Case("PyTorch: a reader, and a copy to it", "torch", CERTAIN, True, TORCH, """
        with torch.cuda.stream(s): torch.add(x, 1, out=y)
        with torch.cuda.stream(t): x.copy_(z, non_blocking=True)"""),
    Case("PyTorch: three tensors, one of them broadcast", "torch", POSSIBLE, False, TORCH, """
        with torch.cuda.stream(s): torch.add(x.view(64, -1), y[:1 << 16], out=z.view(64, -1))
        with torch.cuda.stream(t): torch.mul(x.view(64, -1), y[:1 << 16], out=torch.empty(64, 1 << 16, device="cuda"))"""),
    Case("PyTorch, of two types: two readers", "torch", CLEAN, False, TORCH, """
        with torch.cuda.stream(s): torch.add(x, 1, out=y)
        with torch.cuda.stream(t): torch.add(x, z.double(), out=torch.empty(1 << 22, device="cuda", dtype=torch.double))"""),
    Case("PyTorch: a fill, and a sum", "torch", CERTAIN, True, TORCH, """
        with torch.cuda.stream(s): x.fill_(1)
        with torch.cuda.stream(t): x.sum()"""),
    Case("PyTorch: different tensors", "torch", CLEAN, False, TORCH, """
        with torch.cuda.stream(s): torch.add(x, 1, out=x)
        with torch.cuda.stream(t): torch.mul(y, 2, out=z)"""),
]  # fmt: skip

RUN = """
import sys, cai_sim
cai_sim.start()
sys.argv = ["program"]
program = sys.stdin.read()
exec(compile(program, "program", "exec"), {"__name__": "__main__"})
found = cai_sim.races()
print("found", sum(race.certain for race in found), len(found))
print(next(line for line in cai_sim.report().splitlines() if line.strip()))
"""


def has(python: str, module: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def judge(python: str, case: Case, folder: str) -> tuple[str, str]:
    """What was found, and more of it if it is not expected."""
    program = os.path.join(folder, "program.py")  # inspect.getsource needs a file, which Triton's kernels and Numba's have
    with open(program, "w") as out:
        out.write(case.program)
    code = RUN.replace("sys.stdin.read()", f"open({program!r}).read()").replace('"program", "exec"', f'{program!r}, "exec"')
    done = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=folder)
    line = next((line for line in done.stdout.splitlines() if line.startswith("found ")), "")
    if done.returncode or not line:
        return "failed", (done.stderr.strip().splitlines() or ["no output"])[-1]
    certain, all_of_them = map(int, line.split()[1:])
    return CERTAIN if certain else POSSIBLE if all_of_them else CLEAN, done.stdout.splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    modules = {case.needs for case in CASES} | {"cai_sim", "numba_cuda"}
    there = {module for module in modules if has(options.python, module)}
    if "numba_cuda" not in there:
        there.discard("numba")
    cases = [case for case in CASES if case.needs in there and options.only in case.name]
    if "cai_sim" not in there or not cases:
        print("skipped: no cai_sim, or none of the libraries")
        return 77
    wrong, counts = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            found, text = judge(options.python, case, folder)
            word = "missed" if case.racy and found == CLEAN else found
            counts["racy" if case.racy else "clean", word] += 1
            good = found == case.expected
            wrong += not good
            print(f"{word:9} {'racy ' if case.racy else 'clean'}  {case.name}" + ("" if good else f"  WRONG, not {case.expected}: {text}"), flush=True)
    for kind in ("racy", "clean"):
        print(f"{kind}: " + ", ".join(f"{count} {word}" for (one, word), count in sorted(counts.items()) if one == kind))
    print(f"{len(cases)} programs, {wrong} not as expected, {len(CASES) - len(cases)} without their libraries")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
