#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the simulated driver knows of launches by real libraries.

    check_kernels.py [--python PYTHON] [--only NAME,...]

PYTHON has the package cai_sim and the libraries: numba-cuda, cuda.core, PyCUDA. Each case is a program of a few lines in
a process of its own. What is expected is the number of races that are certain, of those that are possible, and of
launches that are not judged. Exit status 0: all as expected; 1: not; 77: there is no package cai_sim, or no library.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

NUMBA = """
import numpy as np
from numba import cuda
@cuda.jit
def fill(a, v):
    i = cuda.grid(1)
    if i < a.size:
        a[i] = v
@cuda.jit
def fill_rows(a, v):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        a[i, j] = v
@cuda.jit
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]
a = cuda.device_array(1000, np.float32)
b = cuda.device_array(1000, np.float32)
rows = cuda.device_array((20, 50), np.float32)
host = cuda.pinned_array(1000, np.float32)
s, t = cuda.stream(), cuda.stream()
def order(first, second):
    event = cuda.event()
    event.record(first)
    event.wait(second)
"""
# Kernels with pointers alone, and a struct by value that has one.
CODE = '''
CODE = """
struct span { double scale; float *data; int count; };
extern "C" __global__ void fill(float *a, float v, int n) { if (threadIdx.x < n) a[threadIdx.x] = v; }
extern "C" __global__ void put(float *a, const float *b, int n) { if (threadIdx.x < n) a[threadIdx.x] = b[threadIdx.x]; }
extern "C" __global__ void scale(span s) { if (threadIdx.x < s.count) s.data[threadIdx.x] *= (float)s.scale; }
extern "C" { __device__ float variable[100]; }
extern "C" __global__ void last(float *a) { a[0] = variable[99]; }
"""
'''
CORE = CODE + """
import struct
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device()
device.set_current()
one = LaunchConfig(grid=1, block=64)
module = Program(CODE, code_type="c++", options=ProgramOptions(arch="sm_90")).compile("cubin")
fill = module.get_kernel("fill")
s, t = device.create_stream(), device.create_stream()
a = device.allocate(4000, stream=s)
s.sync()
def go(stream, pointer):
    launch(stream, one, fill, pointer, np.float32(1), np.int32(10))
"""
PTX = CORE.replace('"cubin"', '"ptx"') + """
from cuda.core import LegacyPinnedMemoryResource
put = module.get_kernel("put")
b, c = device.allocate(4000, stream=s), device.allocate(4000, stream=s)
host = LegacyPinnedMemoryResource().allocate(4000)
s.sync()
v, n = np.float32(1), np.int32(10)
def go(stream, kernel, *arguments):
    launch(stream, one, kernel, *arguments)
"""
PYCUDA = CODE + """
import numpy as np
import pycuda.autoinit
import pycuda.driver as drv
from pycuda.compiler import compile
module = drv.module_from_buffer(compile(CODE, arch="sm_90", no_extern_c=True))
fill = module.get_function("fill")
s, t = drv.Stream(), drv.Stream()
a = drv.mem_alloc(4000)
span = np.array([(2.0, int(a), 10, 0)], np.dtype([("s", "f8"), ("d", "u8"), ("n", "i4"), ("p", "i4")]))[0]
def by_value(stream):
    module.get_function("scale")(span, block=(64, 1, 1), stream=stream)
def go(stream, pointer):
    fill(np.intp(int(pointer)), np.float32(1), np.int32(10), block=(64, 1, 1), stream=stream)
"""
# Memory that is mapped
VIRTUAL = PYCUDA + """
from cuda.bindings import driver as cu
def call(name, *arguments):
    error, *rest = getattr(cu, name)(*arguments)
    assert error == 0, (name, error)
    return rest[0] if rest else None
size = 1 << 21
wish = cu.CUmemAllocationProp()
wish.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
wish.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
access = cu.CUmemAccessDesc()
access.location = wish.location
access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
where = call("cuMemAddressReserve", 2 * size, 0, 0, 0)
call("cuMemMap", where, size, 0, call("cuMemCreate", size, wish, 0), 0)
call("cuMemSetAccess", where, size, [access], 1)
"""
PROGRAMMATIC = """
import ctypes
def early(what):
    one = cu.CUlaunchAttribute()
    one.id = what
    one.value.programmaticStreamSerializationAllowed = 1
    config = cu.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1
    config.hStream, config.attrs, config.numAttrs = s.handle, [one], 1
    by_name = call("cuModuleGetFunction", call("cuModuleLoadData", compile(CODE, arch="sm_90", no_extern_c=True)), b"fill")
    go(s, a)
    call("cuLaunchKernelEx", config, by_name, ((int(a), 1.0, 10), (ctypes.c_void_p, ctypes.c_float, ctypes.c_int)), 0)
"""


@dataclasses.dataclass
class Case:
    program: str
    races: int = 0
    possible: int = 0
    unknown: int = 0
    launches: int = 1  # at least
    says: str = ""  # text of the report
    otherwise: int = 0  # the exit status without races and such launches


CASES = {
    # Numba's cubins are linked of PTX, which tells who writes
    "numba-two-streams": Case(NUMBA + "fill[8, 128, s](a, 1); fill[8, 128, t](a, 2)", races=1, says="[0, 4000)"),
    "numba-event": Case(NUMBA + "fill[8, 128, s](a, 1); order(s, t); fill[8, 128, t](a, 2)"),
    "numba-one-stream": Case(NUMBA + "fill[8, 128, s](a, 1); fill[8, 128, s](a, 2)"),
    "numba-halves": Case(NUMBA + "fill[8, 128, s](a[:500], 1); fill[8, 128, t](a[500:], 2)"),
    "numba-overlap": Case(NUMBA + "fill[8, 128, s](a[:501], 1); fill[8, 128, t](a[500:], 2)", races=1, says="[2000, 2004)"),
    "numba-strided": Case(NUMBA + "fill[8, 128, s](a[:500:2], 1); fill[8, 128, t](a[499:], 2)"),
    "numba-backwards": Case(NUMBA + "fill[8, 128, s](a[499::-1], 1); fill[8, 128, t](a[500:], 2)"),
    "numba-backwards-overlap": Case(NUMBA + "fill[8, 128, s](a[500::-1], 1); fill[8, 128, t](a[500:], 2)", races=1),
    "numba-rows": Case(NUMBA + "fill_rows[8, (8, 8), s](rows[:10], 1); fill_rows[8, (8, 8), t](rows[10:], 2)"),
    "numba-columns": Case(
        NUMBA + "fill_rows[8, (8, 8), s](rows[:, :25], 1); fill_rows[8, (8, 8), t](rows[:, 25:], 2)", launches=2
    ),
    "numba-columns-overlap": Case(
        NUMBA + "fill_rows[8, (8, 8), s](rows[:, :26], 1); fill_rows[8, (8, 8), t](rows[:, 25:], 2)", races=1, says="[100, 104)"
    ),
    "numba-many-columns": Case(  # too many rows to look at each
        NUMBA + "many = cuda.device_array((100, 10), np.float32); cuda.synchronize()\n"
        "fill_rows[8, (8, 8), s](many[:, :5], 1); fill_rows[8, (8, 8), t](many[:, 5:], 2)", possible=1
    ),
    "numba-third-argument": Case(NUMBA + "c = cuda.device_array(1000, np.float32); fill[8, 128, s](b, 1); add[8, 128, t](c, a, b)", races=1),
    "numba-other-array": Case(NUMBA + "fill[8, 128, s](b, 1); fill[8, 128, t](a, 1)"),
    "numba-copy-out": Case(NUMBA + "fill[8, 128, s](a, 1); a.copy_to_host(host, stream=t)", races=1),
    "numba-copy-in": Case(NUMBA + "fill[8, 128, s](a, 1); a.copy_to_device(host, stream=t)", races=1),
    "numba-mapped": Case(
        NUMBA + "m = cuda.mapped_array(1000, np.float32); fill[8, 128, s](m, 1); fill[8, 128, t](m, 1)", races=1
    ),
    "numba-managed": Case(
        NUMBA + "m = cuda.managed_array(100, np.float32); fill[8, 128, s](m, 1); fill[8, 128, t](m, 1)", races=1
    ),
    # pointers: the byte that they point to, and perhaps all of their memory
    "core-two-streams": Case(CORE + "go(s, a); go(t, a)", races=1),
    "core-event": Case(CORE + "go(s, a); t.wait(s); go(t, a)"),
    "core-elsewhere": Case(CORE + "go(s, a.handle); go(t, a.handle + 2000)", possible=1, says="whether it comes as far"),
    "core-other-memory": Case(CORE + "b = device.allocate(4000, stream=s); s.sync(); go(s, a); go(t, b)", launches=2),
    # PTX tells who reads and who writes
    "ptx-write-write": Case(PTX + "go(s, fill, a, v, n); go(t, fill, a, v, n)", races=1),
    "ptx-write-read": Case(PTX + "go(s, fill, a, v, n); go(t, put, b, a, n)", races=1, says="reads on"),
    "ptx-read-read": Case(PTX + "go(s, put, b, a, n); go(t, put, c, a, n)", launches=2),
    "ptx-event": Case(PTX + "go(s, fill, a, v, n); t.wait(s); go(t, put, b, a, n)", launches=2),
    "ptx-behind": Case(PTX + "go(s, fill, a, v, n); go(t, put, a.handle + 2000, b, n)", possible=1),
    "ptx-copy-out": Case(PTX + "go(s, put, b, a, n); host.copy_from(a, stream=t)", launches=1),
    "ptx-copy-out-of-write": Case(PTX + "go(s, fill, a, v, n); host.copy_from(a, stream=t)", races=1),
    "core-no-such-kernel": Case(
        CORE + "try:\n    module.get_kernel('nobody')\nexcept Exception as e:\n    print('not there', e)",
        launches=0, says="not there CUDA_ERROR_NOT_FOUND",
    ),
    "pycuda-two-streams": Case(PYCUDA + "go(s, a); go(t, a)", possible=1),
    "pycuda-event": Case(PYCUDA + "go(s, a); e = drv.Event().record(s); t.wait_for_event(e); go(t, a)"),
    "pycuda-elsewhere": Case(PYCUDA + "go(s, a); go(t, int(a) + 2000)", possible=1),
    "pycuda-other-memory": Case(PYCUDA + "b = drv.mem_alloc(4000); go(s, a); go(t, b)", launches=2),
    "pycuda-struct": Case(PYCUDA + "go(s, a); by_value(t)", possible=1),
    "pycuda-ptx-struct": Case(PYCUDA.replace('"sm_90"', '"sm_90", target="ptx"') + "go(s, a); by_value(t)", races=1),
    # The kernel adds to an address before the memory, or follows one that is of no memory of CUDA
    "before-memory": Case(
        PTX + "big = device.allocate(1 << 22, stream=s)\ngo(s, fill, int(big.handle) - (1 << 16), v, n)", otherwise=8,
        says="not judged: 1 launch with an address of no memory of CUDA",
    ),
    "pageable": Case(PTX + "h = np.zeros(1 << 20, np.float32)\ngo(s, put, a, h.ctypes.data, n)", otherwise=8, says="addresses of no memory of CUDA, in put (1)"),
    "behind-memory": Case(PTX + "go(s, put, a, int(b.handle) + 4000, np.int32(0))"),
    "programmatic": Case(
        VIRTUAL + PROGRAMMATIC + "early(cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)", otherwise=8,
        says="not judged: the order of programmatic launches, which may begin early, in fill (1)",
    ),
    # The program ignores the errors
    "not-served": Case(
        VIRTUAL + "go(s, a)\ncu.cuMemcpyBatchAsync([cu.CUdeviceptr(int(a))], [cu.CUdeviceptr(int(a) + 400)], [400], 1, [cu.CUmemcpyAttributes()], [0], 1, t.handle)", otherwise=8,
        says="not judged: calls of 1 function, which is not served",
    ),
    "form-not-served": Case(VIRTUAL + "go(s, a)\nc = cu.CUDA_MEMCPY2D()\nc.srcMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_ARRAY\n"
                            "c.dstMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_DEVICE\nc.dstDevice, c.WidthInBytes, c.Height = int(a), 4, 1\n"
                            "cu.cuMemcpy2DAsync(c, t.handle)", otherwise=8, says="cuMemcpy2DAsync_v2 (1 of 1 call)"),
    "left-early": Case(PTX + "import os\ngo(s, fill, a, v, n); go(t, fill, a, v, n); os._exit(0)", races=1),
    "registered": Case(
        VIRTUAL + "h = np.zeros(4096, np.uint8)\n"
        "call('cuMemHostRegister', h.ctypes.data, 4096, cu.CU_MEMHOSTREGISTER_DEVICEMAP)\n"
        "p = int(call('cuMemHostGetDevicePointer', h.ctypes.data, 0))\ngo(s, p); go(t, p)", possible=1,
    ),
    "virtual-mapped": Case(VIRTUAL + "go(s, int(where) + 4096); go(t, int(where) + 4096)", possible=1),
    "virtual-reserved": Case(VIRTUAL + "go(s, int(where) + size); go(t, int(where) + size)"),
    "pycuda-opaque": Case(
        PYCUDA + "fill = drv.module_from_buffer(bytes(64)).get_function('fill')\ngo(s, a); go(t, a)", unknown=2,
        says="not judged: 2 launches of kernels whose accesses are not known: fill (2); by pycuda",
    ),
    "pycuda-variable": Case(
        PYCUDA + "v, n = module.get_global('variable'); assert n == 400, n\n"
        "drv.memset_d32_async(v, 0, 100, s); go(t, v)", races=1, says="400 bytes",
    ),
}  # fmt: skip

def count(report: str, what: str) -> int:
    found = re.search(rf"(\d+) {what}", report)
    return int(found[1]) if found else 0


def check(python: str, case: Case) -> tuple[str, str]:
    """The library that is missing, and what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program.py")
        program.write_text(case.program + "\n")
        command = [python, "-W", "ignore", "-m", "cai_sim", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    missing = re.search(r"ModuleNotFoundError: No module named '?(\w+)", done.stderr)
    if missing:
        return missing[1], ""
    output = done.stdout + done.stderr
    report = done.stderr[done.stderr.rfind("\ncai_sim: ") :]
    first = report.strip().split("\n")[0]
    seen = count(first, r"races?\b"), count(first, "possible race"), count(report, "launch(?:es)? of kernels whose")
    wrong = []
    if seen != (case.races, case.possible, case.unknown):
        wrong.append(f"races, possible races, unknown launches: {seen}")
    if count(report, "launch") < case.launches:
        wrong.append("launches are missing")
    if done.returncode != (4 if case.races else 7 if case.possible else 8 if case.unknown else case.otherwise):
        wrong.append(f"status {done.returncode}")
    if case.says not in output:
        wrong.append(f"nothing of {case.says!r}")
    return "", "; ".join(wrong) + "\n" + output[-3000:] if wrong else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    chosen = [name for name in CASES if not arguments.only or any(name.startswith(one) for one in arguments.only.split(","))]
    right, wrong, lacking = 0, [], {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda name: check(arguments.python, CASES[name]), chosen))
    for name, (missing, what) in zip(chosen, found):
        if missing:
            lacking[missing] = lacking.get(missing, 0) + 1
        elif what:
            wrong.append(f"{name}: {what}")
        else:
            right += 1
    print("\n".join(wrong))
    if "cai_sim" in lacking:
        print("skipped: no package cai_sim")
        return 77
    skipped = ", ".join(f"{number} for want of {name}" for name, number in lacking.items())
    print(f"{right} cases right, {len(wrong)} wrong" + (f"; skipped: {skipped}" if skipped else ""))
    return 1 if wrong else 0 if right else 77


if __name__ == "__main__":
    sys.exit(main())
