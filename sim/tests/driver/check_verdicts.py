#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `python -m cai_sim` says of programs that race, and of the same with the wait that is missing.

    check_verdicts.py [--python PYTHON] [--only TEXT] [--jobs 2] [--reports]

Each program is a few lines with one library. Without WAIT it races. With it, and in the QUIET ones, nothing races. In
the READS ones a kernel that only reads must be told from one that writes. PYTHON has the package cai_sim and the
libraries; what is not there is skipped, with its name.

Exit status 0: each race is certain, and what is clean is clean, but for what POSSIBLE names. 1: not so. 77: nothing
ran.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

SAID = {0: "clean", 4: "certain", 7: "possible", 8: "not judged"}

NUMBA = """
import numpy as np
from LIBRARY import cuda
@cuda.jit
def fill(a, v):
    i = cuda.grid(1)
    if i < a.size:
        a[i] = v
@cuda.jit
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]
@cuda.jit
def more(a, out):
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
a, b, c, d = (cuda.device_array(1024, np.float32) for _ in range(4))
at = cuda.device_array(1024, np.int64)
host = cuda.pinned_array(1024, np.float32)
cuda.synchronize()
def wait():
    event = cuda.event()
    event.record(s)
    event.wait(t)
BODY
cuda.synchronize()
"""
CORE = '''
import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions, Program, ProgramOptions, launch
device = Device()
device.set_current()
CODE = r"""
extern "C" __global__ void fill(float *a, int n, float v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = v; }
extern "C" __global__ void add(float *out, const float *a, const float *b, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = a[i] + b[i]; }
extern "C" __global__ void more(const float *a, float *b) { b[threadIdx.x] = a[threadIdx.x] + 1; }
extern "C" __global__ void twice(float *a) { a[threadIdx.x] *= 2; }
"""
def made(kind, **options):
    return Program(CODE, "c++", ProgramOptions(arch="sm_90", **options)).compile(kind)
BUILD
kernels = {name: module.get_kernel(name) for name in ("fill", "add", "more", "twice")}
block = LaunchConfig(grid=1, block=256)
s, t = device.create_stream(), device.create_stream()
a, b, c, d = (device.allocate(4096, stream=s) for _ in range(4))
host = LegacyPinnedMemoryResource().allocate(4096)
s.sync()
t.wait(s)
def fill(stream, x, n=1024):
    launch(stream, LaunchConfig(grid=8, block=128), kernels["fill"], int(getattr(x, "handle", x)), np.int32(n), np.float32(1))
def add(stream, out, x, y, n=1024):
    launch(stream, LaunchConfig(grid=8, block=128), kernels["add"], *(int(getattr(z, "handle", z)) for z in (out, x, y)), np.int32(n))
def part(x, first, size):
    return Buffer.from_handle(int(x.handle) + first, size)
def wait():
    t.wait(s)
BODY
s.sync()
t.sync()
'''
CUBIN = 'module = made("cubin")'
LINKED = 'module = Linker(made("ptx", relocatable_device_code=True), options=LinkerOptions(arch="sm_90")).link("cubin")'
LTO = """module = Linker(made("ltoir", link_time_optimization=True),
                options=LinkerOptions(arch="sm_90", link_time_optimization=True)).link("cubin")"""
TORCH = """
import torch
device = torch.device("cuda")
a, b, c, d = (torch.empty(1024, device=device) for _ in range(4))
index = torch.zeros(16, dtype=torch.int64, device=device)
x, y, z = (torch.empty(1 << 22, device=device) for _ in range(3))
host = torch.empty(1024).pin_memory()
s, t = torch.cuda.Stream(), torch.cuda.Stream()
torch.cuda.synchronize()
def on(stream):
    return torch.cuda.stream(stream)
def wait():
    t.wait_stream(s)
BODY
torch.cuda.synchronize()
"""
TRITON = TORCH.replace("BODY", '''
import triton
import triton.language as tl
@triton.jit
def fill_kernel(a, v, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(a + i, v, mask=i < n)
@triton.jit
def add_kernel(out, a, b, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)
@triton.jit
def more_kernel(a, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, mask=i < n) + 1, mask=i < n)
def more(stream, x, out):
    with on(stream):
        more_kernel[(4,)](x, out, 4096, BLOCK=1024)
def fill(stream, x):
    with on(stream):
        fill_kernel[(8,)](x, 1.0, x.numel(), BLOCK=128)
def add(stream, out, x, y):
    with on(stream):
        add_kernel[(8,)](out, x, y, out.numel(), BLOCK=128)
BODY''')
CUPY = '''
import cupy
a, b, c, d = (cupy.empty(1024, dtype="f4") for _ in range(4))
host = cupy.cuda.alloc_pinned_memory(4096)
raw = cupy.RawKernel(r"""extern "C" __global__ void scale(float *a, const float *b, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 2 * b[i]; }""", "scale")
code = 'extern "C" __global__ void more(const float *a, float *b) { b[threadIdx.x] = a[threadIdx.x] + 1; }'
more = cupy.RawKernel(code, "more")
element = cupy.ElementwiseKernel("float32 a", "float32 b", "b = a + 1", "element")
named = cupy.RawModule(code="template<class T> __global__ void copy(const T *a, T *b) { b[threadIdx.x] = a[threadIdx.x]; }",
                       name_expressions=("copy<float>",)).get_function("copy<float>")
x, y, z = (cupy.empty(256, "f") for _ in range(3))
s, t = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
cupy.cuda.Device().synchronize()
def wait():
    t.wait_event(s.record())
BODY
cupy.cuda.Device().synchronize()
'''
WAIT = "wait()"
NUMBA_PROGRAMS = {
    "both write": "fill[8, 128, s](a, 1); WAIT; fill[8, 128, t](a, 2)",
    "written, then read": "fill[8, 128, s](a, 1); WAIT; add[8, 128, t](c, a, b)",
    "read, then written": "add[8, 128, s](c, a, b); WAIT; fill[8, 128, t](a, 1)",
    "written, then copied out": "fill[8, 128, s](a, 1); WAIT; a.copy_to_host(host, stream=t)",
    "copied in, then read": "a.copy_to_device(host, stream=s); WAIT; add[8, 128, t](c, a, b)",
    "halves that overlap": "fill[8, 128, s](a[:600], 1); WAIT; fill[8, 128, t](a[500:], 2)",
    "a reversed view": "fill[8, 128, s](a[::-1], 1); WAIT; a[:10].copy_to_host(host[:10], stream=t)",
}
NUMBA_QUIET = {
    "two readers": "add[8, 128, s](c, a, b); add[8, 128, t](d, a, b)",
    "a reader and a copy out": "add[8, 128, s](c, a, b); a.copy_to_host(host, stream=t)",
    "halves": "fill[8, 128, s](a[:512], 1); fill[8, 128, t](a[512:], 2)",
}
CORE_PROGRAMS = {
    "both write": "fill(s, a); WAIT; fill(t, a)",
    "written, then read": "fill(s, a); WAIT; add(t, c, a, b)",
    "read, then written": "add(s, c, a, b); WAIT; fill(t, a)",
    "the second half": "fill(s, a); WAIT; fill(t, int(a.handle) + 2048, 512)",
    "the last bytes copied out": "fill(s, a); WAIT; part(a, 4000, 96).copy_to(part(host, 0, 96), stream=t)",
    "written, then set": "fill(s, a); WAIT; a.fill(0, stream=t)",
    "set, then read": "a.fill(1, stream=s); WAIT; add(t, c, a, b)",
}
CORE_QUIET = {
    "two readers": "add(s, c, a, b); add(t, d, a, b)",
    "a reader and a copy out": "add(s, c, a, b); a.copy_to(host, stream=t)",
}
TORCH_PROGRAMS = {
    "both write": "with on(s): a.fill_(1)\nWAIT\nwith on(t): a.fill_(2)",
    "written, then read": "with on(s): a.fill_(1)\nWAIT\nwith on(t): torch.add(a, b, out=c)",
    "read, then written": "with on(s): torch.add(a, b, out=c)\nWAIT\nwith on(t): a.mul_(2)",
    "written, then copied out": "with on(s): a.add_(1)\nWAIT\nwith on(t): host.copy_(a, non_blocking=True)",
    "copied in, then read": "with on(s): a.copy_(host, non_blocking=True)\nWAIT\nwith on(t): torch.mul(a, 2, out=c)",
    "the second half": "with on(s): a.fill_(1)\nWAIT\nwith on(t): a[512:].fill_(2)",
    "indexed": "with on(s): a.fill_(1)\nWAIT\nwith on(t): torch.index_select(a, 0, index, out=torch.empty(16, device=device))",
}
TORCH_QUIET = {
    "two readers": "with on(s): torch.add(a, b, out=c)\nwith on(t): torch.add(a, b, out=d)",
    "other tensors": "with on(s): a.fill_(1)\nwith on(t): b.fill_(1)",
}
TRITON_PROGRAMS = {
    "both write": "fill(s, a); WAIT; fill(t, a)",
    "written, then read": "fill(s, a); WAIT; add(t, c, a, b)",
    "read, then written": "add(s, c, a, b); WAIT; fill(t, a)",
    "the second half": "fill(s, a); WAIT; fill(t, a[512:])",
    "copied out": "fill(s, a)\nWAIT\nwith on(t): host.copy_(a, non_blocking=True)",
}
TRITON_QUIET = {
    "two readers": "add(s, c, a, b); add(t, d, a, b)",
    "a reader and a copy out": "add(s, c, a, b)\nwith on(t): host.copy_(a, non_blocking=True)",
}
CUPY_PROGRAMS = {
    "both write": "with s: a.fill(1)\nWAIT\nwith t: a.fill(2)",
    "written, then read": "with s: a.fill(1)\nWAIT\nwith t: cupy.add(a, b, out=c)",
    "read, then written": "with s: cupy.add(a, b, out=c)\nWAIT\nwith t: a *= 2",
    "a raw kernel": "with s: raw((8,), (128,), (a, b, cupy.int32(1024)))\nWAIT\nwith t: cupy.add(a, b, out=c)",
    "the second half": "with s: a.fill(1)\nWAIT\nwith t: a[512:].fill(2)",
    "copied out": "with s: a += 1\nWAIT\na.data.copy_to_host_async(host.ptr, 4096, t)",
    "copied in": "a.data.copy_from_host_async(host.ptr, 4096, s)\nWAIT\nwith t: cupy.multiply(a, 2, out=c)",
}
CUPY_QUIET = {
    "two readers": "with s: cupy.add(a, b, out=c)\nwith t: cupy.add(a, b, out=d)",
    "raw kernels that read": "with s: raw((8,), (128,), (c, b, cupy.int32(1024)))\nwith t: raw((8,), (128,), (d, b, cupy.int32(1024)))",
}
NUMBA_READS = {
    "a kernel that reads one array and writes another, and a reader": "more[4, 256, s](a, b); WAIT; more[4, 256, t](b, c)",
    "in place, and a reader": "twice[4, 256, s](a); WAIT; more[4, 256, t](a, c)",
    "two parts that overlap": "twice[3, 256, s](a[:513]); WAIT; twice[2, 256, t](a[512:])",
}
NUMBA_READS_QUIET = {
    "two readers of one array": "more[4, 256, s](a, b); more[4, 256, t](a, c)",
    "two halves in place": "twice[2, 256, s](a[:512]); twice[2, 256, t](a[512:])",
    "an index, read twice": "pick[4, 256, s](a, at, b); pick[4, 256, t](a, at, c)",
}
CORE_READS = {"in place, and a reader": 'launch(s, block, kernels["twice"], a); WAIT; launch(t, block, kernels["more"], a, c)'}
CORE_READS_QUIET = {"two readers of one array": 'launch(s, block, kernels["more"], a, b); launch(t, block, kernels["more"], a, c)'}
TRITON_READS = {"a kernel that reads one array and writes another, and a reader": "more(s, x, y); WAIT; more(t, y, z)"}
TRITON_READS_QUIET = {"two readers of one array": "more(s, x, y); more(t, x, z)"}
CUPY_READS = {
    "RawKernel: a writer and a reader": "with s: more((1,), (256,), (x, y))\nWAIT\nwith t: more((1,), (256,), (y, z))",
    "a ufunc in place, and a reader": "with s: cupy.multiply(x, 2, x)\nWAIT\nwith t: cupy.add(x, 1, z)",
    "a sum, and a writer": "with s: x.sum(out=y[0])\nWAIT\nwith t: element(z, x)",
}
CUPY_READS_QUIET = {
    "RawKernel: two readers": "with s: more((1,), (256,), (x, y))\nwith t: more((1,), (256,), (x, z))",
    "ElementwiseKernel: two readers": "with s: element(x, y)\nwith t: element(x, z)",
    "RawModule with a template: two readers": "with s: named((1,), (256,), (x, y))\nwith t: named((1,), (256,), (x, z))",
}
TORCH_READS = {
    "a kernel that reads one tensor and writes another, and a reader":
        "with on(s): torch.add(x, 1, out=y)\nWAIT\nwith on(t): torch.mul(y, 2, out=z)",
    "a reader, and a copy to it": "with on(s): torch.add(x, 1, out=y)\nWAIT\nwith on(t): x.copy_(z, non_blocking=True)",
    "a fill, and a sum": "with on(s): x.fill_(1)\nWAIT\nwith on(t): x.sum()",
}  # fmt: skip
TORCH_READS_QUIET = {
    "two readers of one tensor": "with on(s): torch.add(x, 1, out=y)\nwith on(t): torch.mul(x, 2, out=z)",
    "three tensors, one of them broadcast":
        "with on(s): torch.add(x.view(64, -1), y[:1 << 16], out=z.view(64, -1))\n"
        "with on(t): torch.mul(x.view(64, -1), y[:1 << 16], out=torch.empty(64, 1 << 16, device=device))",
    "of two types: two readers":
        "with on(s): torch.add(x, 1, out=y)\n"
        "with on(t): torch.add(x, z.double(), out=torch.empty(1 << 22, device=device, dtype=torch.double))",
    "different tensors, in place": "with on(s): torch.add(x, 1, out=x)\nwith on(t): torch.mul(y, 2, out=z)",
}  # fmt: skip
LIBRARIES = {
    "numba-cuda": (NUMBA.replace("LIBRARY", "numba"), NUMBA_PROGRAMS | NUMBA_READS, NUMBA_QUIET | NUMBA_READS_QUIET),
    "numba-cuda-mlir": (NUMBA.replace("LIBRARY", "numba_cuda_mlir"), NUMBA_PROGRAMS | NUMBA_READS, NUMBA_QUIET | NUMBA_READS_QUIET),
    "cuda.core, NVRTC": (CORE.replace("BUILD", CUBIN), CORE_PROGRAMS | CORE_READS, CORE_QUIET | CORE_READS_QUIET),
    "cuda.core, linked PTX": (CORE.replace("BUILD", LINKED), CORE_READS, CORE_READS_QUIET),
    "cuda.core, LTO": (CORE.replace("BUILD", LTO), CORE_READS, CORE_READS_QUIET),
    "Triton": (TRITON, TRITON_PROGRAMS | TRITON_READS, TRITON_QUIET | TRITON_READS_QUIET),
    "CuPy": (CUPY, CUPY_PROGRAMS | CUPY_READS, CUPY_QUIET | CUPY_READS_QUIET),
    "PyTorch": (TORCH, TORCH_PROGRAMS | TORCH_READS, TORCH_QUIET | TORCH_READS_QUIET),
}
# By library, name, and whether it races. Nothing tells how far a pointer behind the first byte goes. PyTorch's kernel for
# broadcasts is machine code alone.
POSSIBLE = {
    ("cuda.core, NVRTC", "the second half", True),
    ("cuda.core, NVRTC", "the last bytes copied out", True),
    ("Triton", "the second half", True),
    ("CuPy", "the second half", True),
    ("PyTorch", "the second half", True),
    ("PyTorch", "three tensors, one of them broadcast", False),
}


def programs() -> list[tuple[str, str, bool, str]]:
    """The library, the name, whether it races, and the text of each."""
    every = []
    for library, (frame, racing, quiet) in LIBRARIES.items():
        for name, body in racing.items():
            every.append((library, name, True, frame.replace("BODY", body.replace("WAIT", "pass"))))
            every.append((library, name, False, frame.replace("BODY", body.replace("WAIT", WAIT))))
        every += [(library, name, False, frame.replace("BODY", body)) for name, body in quiet.items()]
    return every


def run(python: str, text: str) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "program.py")
        file.write_text(text)
        command = [python, "-W", "ignore", "-m", "cai_sim", str(file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return -1, "no end after 300 seconds"
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="those whose library or name has this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reports", action="store_true", help="print the report of what is not as it should be")
    options = parser.parse_args()
    chosen = [one for one in programs() if options.only in f"{one[0]}: {one[1]}"]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda one: run(options.python, one[3]), chosen))
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    missing: collections.Counter[str] = collections.Counter()
    wrong = 0
    for (library, name, races, _), (status, text) in zip(chosen, outcomes):
        lacking = re.search(r"No module named '?(\w+)", text)
        if lacking:
            missing[f"{library}: {lacking[1]} is not installed"] += 1
            continue
        said = SAID.get(status, f"status {status}")
        counts[library, "races" if races else "clean"][said] += 1
        expected = "possible" if (library, name, races) in POSSIBLE else "certain" if races else "clean"
        if said != expected:
            wrong += 1
            print(f"{library}: {name}, {'races' if races else 'clean'}: {said}, not {expected}")
            if options.reports or said not in SAID.values():
                print("\n".join("  " + line for line in text.splitlines()[-40:]))
    for reason, count in missing.items():
        print(f"skipped: {count} of {reason}")
    total: dict[str, collections.Counter[str]] = {"races": collections.Counter(), "clean": collections.Counter()}
    for (library, kind), said in counts.items():
        print(f"{library}, {kind}: " + ", ".join(f"{count} {what}" for what, count in said.most_common()))
        total[kind] += said
    for kind, said in total.items():
        print(f"{sum(said.values())} that {'race' if kind == 'races' else 'are clean'}: "
              + ", ".join(f"{count} {what}" for what, count in said.most_common()))  # fmt: skip
    if not counts:
        return 77
    print(f"{wrong} are not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
