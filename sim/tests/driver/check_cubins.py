#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what cai_kernel.c reads of images that nvcc makes.

    check_cubins.py --program TEST_KERNEL --nvcc NVCC [--cuobjdump CUOBJDUMP] [--rounds 200]

TEST_KERNEL is sim/tests/driver/test_kernel.c. Parameters are compared with the sizes and places that C gives them, and with
what cuobjdump prints if it is there. Then the images are damaged at random (--rounds each): TEST_KERNEL is to be built
with sanitizers for that. Exit status 0: all is right; 1: not; 77: no nvcc.
"""

from __future__ import annotations

import argparse
import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = """
struct Struct { char c; float *p; int n; double *q; };
struct Big { char c[20000]; float *p; };
extern "C" {
__device__ int counter = 3;
__device__ float table[100];
__constant__ double weights[16] = {1};
__managed__ int shared_by_all = 5;
__device__ __noinline__ int helper(int a) { return a * shared_by_all; }
__global__ void none() {}
__global__ void plain(float *a, const float *b, int n) { if (threadIdx.x < n) a[threadIdx.x] = b[threadIdx.x]; }
__global__ void by_value(Struct s, char tail) { s.p[0] = (float)s.q[0] + tail; }
__global__ void small(char a, short b, char c, double *d) { d[0] = a + b + c; }
__global__ void variables(int *x) { x[0] = helper(counter) + (int)table[3] + (int)weights[threadIdx.x]; }
LARGE
}
"""
LARGE = "__global__ void large(const __grid_constant__ Big b, float *o) { o[0] = b.c[threadIdx.x] + b.p[0]; }"
KERNELS = {
    "none": (0, []),
    "plain": (20, [(0, 8), (8, 8), (16, 4)]),
    "by_value": (33, [(0, 32), (32, 1)]),
    "small": (16, [(0, 1), (2, 2), (4, 1), (8, 8)]),
    "variables": (8, [(0, 8)]),
}
LARGE_KERNEL = (20016, [(0, 20008), (20008, 8)])  # from sm_70 on and CUDA 12.1
GLOBALS = {  # bytes, constant, managed, data
    "counter": (4, 0, 0, 1), "table": (400, 0, 0, 0), "weights": (128, 1, 0, 1), "shared_by_all": (4, 0, 1, 1),
}  # fmt: skip
# name: (options of nvcc, architecture of the kernels, 0: opaque)
IMAGES = {
    "sm_75.cubin": (["-cubin", "-arch=sm_75"], 75),
    "sm_80.cubin": (["-cubin", "-arch=sm_80", "-lineinfo"], 80),
    "sm_90.cubin": (["-cubin", "-arch=sm_90"], 90),
    "sm_90g.cubin": (["-cubin", "-arch=sm_90", "-G"], 90),
    "sm_100.cubin": (["-cubin", "-arch=sm_100"], 100),
    "sm_120.cubin": (["-cubin", "-arch=sm_120"], 120),
    "relocatable.cubin": (["-cubin", "-arch=sm_90", "-rdc=true"], 90),
    "plain.fatbin": (["-fatbin", "-gencode", "arch=compute_80,code=[sm_80,sm_90]"], 0),
    "whole.fatbin": (["-fatbin", "-arch=sm_90", "-Xfatbin", "-compress=false"], 90),
    "plain.ptx": (["-ptx", "-arch=compute_80"], 0),
    "both.fatbin": (["-fatbin", "-gencode", "arch=compute_80,code=[sm_80,compute_80]", "-Xfatbin", "-compress=false"], 80),
    "packed.fatbin": (["-fatbin", "-gencode", "arch=compute_80,code=[sm_80,sm_90,compute_80]", "--compress-mode=size",
                       "-Xfatbin", "-compress-all"], 90),
    "old.fatbin": (["-fatbin", "-arch=sm_90", "--compress-mode=speed", "-Xfatbin", "-compress-all"], 0),
}


def has_zstd() -> bool:
    try:
        ctypes.CDLL("libzstd.so.1")
        return True
    except OSError:
        return False


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=300)


def read(text: str) -> tuple[bool, dict, dict]:
    """What test_kernel --list wrote: opaque, kernels, variables."""
    kernels, variables = {}, {}
    for line in text.splitlines():
        words = line.split()
        if words[0] == "kernel":
            parameters = [tuple(int(number) for number in word.split(":")) for word in words[4:]]
            kernels[words[1]] = (int(words[2]), (words[3] if words[3] == "opaque" else int(words[3]), parameters))
        elif words[0] == "global":
            variables[words[1]] = tuple(int(word) for word in words[2:])
    return text.startswith("opaque"), kernels, variables


def witness(cuobjdump: str, image: pathlib.Path) -> dict[str, list[tuple[int, int]]]:
    """The parameters that cuobjdump prints, by kernel."""
    found: dict[str, list[tuple[int, int]]] = {}
    parts = re.split(r"^\.nv\.info\.(\S+)\s*$", run(cuobjdump, "-elf", image).stdout, flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2]):
        rows = re.findall(r"Ordinal\s*:\s*0x(\w+)\s+Offset\s*:\s*0x(\w+)\s+Size\s*:\s*0x(\w+)", text)
        rows = sorted(tuple(int(number, 16) for number in row) for row in rows)
        found[name] = [(offset, size) for _, offset, size in rows]
    return found


def check(arguments: argparse.Namespace, image: pathlib.Path, architecture: int, large: bool) -> list[str]:
    done = run(arguments.program, "--list", image)
    opaque, kernels, variables = read(done.stdout)
    wrong = [] if done.returncode == 0 else [f"status {done.returncode}: {done.stderr[-300:]}"]
    expected = {**KERNELS, **({"large": LARGE_KERNEL} if large else {})}
    if image.name == "old.fatbin" or (image.name == "packed.fatbin" and not has_zstd()):
        return wrong if opaque else [*wrong, "not opaque, though it is compressed"]
    if {name: what for name, (_, what) in kernels.items()} != expected:
        wrong.append(f"kernels {kernels}")
    if architecture and {one for one, _ in kernels.values()} != {architecture}:
        wrong.append(f"not all of sm_{architecture}: {kernels}")
    wanted = GLOBALS if image.suffix != ".ptx" else {
        name: (size, constant, variables.get(name, (0, 0, 0, 0))[2], 0)
        for name, (size, constant, _, _) in GLOBALS.items()
    }  # fmt: skip
    if variables != wanted:
        wrong.append(f"variables {variables}")
    if opaque:
        wrong.append("opaque")
    if arguments.cuobjdump and image.suffix == ".cubin":
        seen = witness(arguments.cuobjdump, image)
        ours = {name: parameters for name, (_, (_, parameters)) in kernels.items()}
        if {name: seen.get(name) for name in ours} != ours:
            wrong.append(f"cuobjdump says {seen}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--cuobjdump", default=shutil.which("cuobjdump"))
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    if not shutil.which(arguments.nvcc):
        print("skipped: no nvcc")
        return 77
    wrong, made, lacking = [], 0, []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        source = folder / "images.cu"
        images = []
        for name, (options, architecture) in IMAGES.items():
            image = folder / name
            for large in (True, False):  # parameters over 4 KiB: from CUDA 12.1 on
                source.write_text(SOURCE.replace("LARGE\n", LARGE + "\n" if large else ""))
                done = run(arguments.nvcc, *options, source, "-o", image)
                if done.returncode == 0:
                    break
            if done.returncode:
                lacking.append(name)
                continue
            made += 1
            images.append(image)
            wrong += [f"{name}: {what}" for what in check(arguments, image, architecture, large)]
        done = run(arguments.program, "--fuzz", arguments.rounds, *images)
        if done.returncode:
            wrong.append(f"damaged images: status {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    print("\n".join(wrong))
    witnessed = "compared with cuobjdump" if arguments.cuobjdump else "no cuobjdump"
    absent = f"; not made: {', '.join(lacking)}" if lacking else ""
    print(f"{made} images of nvcc, {len(wrong)} wrong, {witnessed}{absent}")
    return 1 if wrong or not made else 0


if __name__ == "__main__":
    sys.exit(main())
