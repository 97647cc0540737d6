#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what cai_ptx.c says of kernels that nvcc compiles to PTX: which memory each reads and writes.

    check_ptx.py --program TEST_KERNEL --nvcc NVCC [--rounds 300]

TEST_KERNEL is sim/tests/driver/test_kernel.c. Each kernel below has beside it what it does with each eight bytes of its
parameters, as its CUDA source says. Optimized PTX must give exactly that. PTX for a debugger keeps pointers in memory,
so there "unknown" is right, too, and nothing else. Variables must have the sizes that they have in the cubin which
ptxas makes of the same text. Then the PTX is damaged at random (--rounds): TEST_KERNEL is to be built with sanitizers
for that. Exit status 0: all is right; 1: not; 77: no nvcc.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

READS, WRITES, UNKNOWN = 1, 2, 4
LETTERS = {"-": 0, "r": READS, "w": WRITES, "x": READS | WRITES, "?": UNKNOWN, "n": None}  # n: no pointer, whatever it is

# Behind each kernel: a letter for each word of its parameters. "x" reads and writes. Behind "|" what its arguments do not
# tell: "f" pointers in memory, "g" global variables, "u" not known.
SOURCE = r"""
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cuda_pipeline_primitives.h>
#include <mma.h>
struct Two { float *to; int n; const float *from; };
struct Node { Node *next; float value; };
__device__ float table[64];
__constant__ float limit;
static __constant__ float fixed[4] = {1, 2, 3, 4};
__device__ __noinline__ void store(float *p, float v) { *p = v; }
extern "C" {
__global__ void nothing() {} //
__global__ void unused(float *a, int n) {} // - n
__global__ void copy(float *a, const float *b, int n) { if (threadIdx.x < n) a[threadIdx.x] = b[threadIdx.x]; } // w r n
__global__ void in_place(float *a) { a[threadIdx.x] *= 2; } // x
__global__ void vectors(float4 *a, const float4 *b) { a[threadIdx.x] = b[threadIdx.x]; } // w r
__global__ void cached(float *a, const float *__restrict__ b) { a[0] = __ldg(b + threadIdx.x); } // w r
__global__ void counts(int *a) { atomicAdd(a + threadIdx.x, 1); } // x
__global__ void swaps(int *a, int *b) { b[0] = atomicCAS(a, 1, 2); } // x w
__global__ void either(float *a, float *b, int n) { float *p = n > 3 ? a : b; p[threadIdx.x] = 1; } // w w n
__global__ void turns(float *a, float *b, int n)
{ for (int i = 0; i < n; i++) { a[i] = b[i + 1]; float *c = a; a = b; b = c; } } // x x n
__global__ void numbers(uint64_t a, uint64_t b) { *(float *)(b * 2 + 8) = *(const float *)(a ^ 64); } // r w
__global__ void by_value(Two t) { t.to[t.n] = t.from[0]; } // w n r
__global__ void array_by_value(Two t, float *a) { a[0] = t.from[1] + t.to[1]; } // r - r w
__global__ void behind(float **rows) { rows[0][1] = 2; } // r | f
__global__ void list(Node *node, float v) { for (; node; node = node->next) node->value = v; } // x n | f
__global__ void picks(float *a, const long long *at) { a[at[threadIdx.x]] = 1; } // w r
__global__ void picks_row(float *a, const long long *at, long long stride) { a[at[threadIdx.x] * stride + 3] = 1; } // w r n
__global__ void picks_int(char *a, const int *at) { a[at[threadIdx.x]] = 1; } // w r
__global__ void sums(const unsigned long long *a, unsigned long long *b) { atomicAdd(b + (a[threadIdx.x] & 63), a[0]); } // r x
__global__ void waves(float *a) { a[threadIdx.x] = sinf(a[threadIdx.x]); } // x
__global__ void limits(float *a) { a[threadIdx.x] = limit; } // w | g
__global__ void fixed_table(float *a, int n) { a[0] = fixed[n]; } // w n
__global__ void checks(float *a, int n) { assert(n > 3); a[n] = 1; } // w n
__global__ void module(const float *a) { table[threadIdx.x] = a[threadIdx.x]; } // r | g
__global__ void shares(const float *a, float *b)
{ __shared__ float s[64]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); b[threadIdx.x] = s[63 - threadIdx.x]; } // r w
__global__ void pipes(const float4 *a, float4 *b)
{ __shared__ float4 s[64]; __pipeline_memcpy_async(&s[threadIdx.x], &a[threadIdx.x], 16); __pipeline_commit();
  __pipeline_wait_prior(0); __syncthreads(); b[threadIdx.x] = s[63 - threadIdx.x]; } // r w
__global__ void tiles(const half *a, const half *b, float *c)
{ using namespace nvcuda::wmma; fragment<matrix_a, 16, 16, 16, half, row_major> x; fragment<matrix_b, 16, 16, 16, half, col_major> y;
  fragment<accumulator, 16, 16, 16, float> z; fill_fragment(z, 0.f); load_matrix_sync(x, a, 16); load_matrix_sync(y, b, 16);
  mma_sync(z, x, y, z); store_matrix_sync(c, z, 16, mem_row_major); } // r r w
__global__ void kept(float *a, float **b) { b[0] = a; } // ? w
__global__ void prints(float *a) { printf("%p\n", a); } // ?
__global__ void calls(float *a, const float *b) { store(a, b[0]); } // ? r | u
__global__ void many(float *a, float *b, int n) { float *p[2] = {a, b}; p[n & 1][threadIdx.x] = 1; } // ? ? n | f
__global__ void address(const __grid_constant__ Two t, float *b, int n) { b[0] = (&t.to)[n][0]; } // ? ? ? w n
__global__ void volatile_one(volatile float *a) { a[0] = 1; } // w
__global__ void asks(float *a, unsigned *b) { asm volatile("red.global.add.u32 [%0], 1;" :: "l"(b)); a[0] = 1; } // w x
}
"""
EXPECTED = {
    match[1]: [LETTERS[letter] for letter in match[2].split()]
    for match in re.finditer(r"__global__ void (\w+)\(.*?\} //([ \-rwx?n]*)", SOURCE, re.S)
}
FLAGS = {"f": 1, "g": 2, "u": 4}
FOLLOWS = {
    match[1]: sum(FLAGS[letter] for letter in match[2] or "")
    for match in re.finditer(r"__global__ void (\w+)\(.*?\} //[ \-rwx?n]*(?:\| (\w+))?\n", SOURCE, re.S)
}
SETTINGS = {
    "sm_75": ["-arch=sm_75"], "sm_90": ["-arch=sm_90"], "sm_120": ["-arch=sm_120"], "lines": ["-arch=sm_80", "-lineinfo"],
    "debug": ["-arch=sm_90", "-G"],
}  # fmt: skip

VARIABLES = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .v4 .f32 q;
.visible .global .u32 x, y, list[3] = {1, 2, 3};
.visible .global .align 4 .u32 table[2][3] = {{1, 2, 3}, {4, 5, 6}}, pairs[][2] = {{1}, {2}, {3}};
.visible .const .f32 bias[] = {-1.0, 1.0};
.visible .global .u64 pointers[] = {generic(x), x+4};
.visible .entry last(.param .align 8 .b8 s[16])
{ .reg .b64 %rd<2>; ld.param.u64 %rd1, [s+0x8]; st.global.u32 [%rd1], 0; ret; }
"""


def right(known: int | None, found: int, debug: bool) -> bool:
    """Whether what was found is what is known. For a debugger UNKNOWN stands for all that is missing."""
    if known is None or found == known:
        return True
    if known == UNKNOWN:  # a part of it may be found as well
        return bool(found & UNKNOWN)
    return debug and bool(found & UNKNOWN)


def judge(text: str, debug: bool) -> list[str]:
    found = {words[1]: [int(word) for word in words[2:]] for words in map(str.split, text.splitlines()) if words[0] == "words"}
    wrong = [] if text.startswith("known") else ["the image is opaque"]
    for name, known in EXPECTED.items():
        seen = found.get(name)
        if seen is None or len(seen) != len(known) or not all(right(k, s, debug) for k, s in zip(known, seen)):
            wrong.append(f"{name}: {seen}, not {known}")
    beyond = {words[1]: int(words[2]) for words in map(str.split, text.splitlines()) if words[0] == "follows"}
    for name, known in FOLLOWS.items():
        seen = beyond.get(name, -1)
        if seen != known and not (debug and seen >= 0 and (known & ~seen == 0 or seen & FLAGS["u"])):
            wrong.append(f"{name} follows {seen}, not {known}")
    return wrong


def sizes(program: str, image: pathlib.Path) -> set[tuple[str, str]]:
    """The names of an image's variables, with their bytes."""
    done = subprocess.run([program, "--list", str(image)], capture_output=True, text=True)
    return {(words[1], words[2]) for words in map(str.split, done.stdout.splitlines()) if words[0] == "global"}


def judge_variables(program: str, nvcc: str, folder: pathlib.Path) -> list[str]:
    text, cubin = folder / "variables.ptx", folder / "variables.cubin"
    text.write_text(VARIABLES)
    made = subprocess.run([nvcc, "-cubin", "-arch=sm_80", str(text), "-o", str(cubin)], capture_output=True, text=True)
    if made.returncode:
        return [f"variables: {made.stderr.strip()}"]
    found, known = sizes(program, text), sizes(program, cubin)
    return [] if found == known and len(known) == 8 else [f"variables: {sorted(found)}, not {sorted(known)}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--rounds", default="300")
    options = parser.parse_args()
    if not shutil.which(options.nvcc):
        print("skipped: no nvcc")
        return 77
    wrong, images, lacking = [], [], []
    with tempfile.TemporaryDirectory() as name:
        source = pathlib.Path(name) / "kernels.cu"
        source.write_text(SOURCE)
        for setting, flags in SETTINGS.items():
            image = source.with_name(f"{setting}.ptx")
            made = subprocess.run([options.nvcc, "-ptx", *flags, str(source), "-o", str(image)], capture_output=True, text=True)
            if made.returncode:
                lacking.append(f"{setting}: {made.stderr.strip().splitlines()[:1]}")
                continue
            images.append(str(image))
            done = subprocess.run([options.program, "--list", str(image)], capture_output=True, text=True)
            wrong += [f"{setting}: {text}" for text in judge(done.stdout, setting == "debug")]
        wrong += judge_variables(options.program, options.nvcc, source.parent)
        done = subprocess.run([options.program, "--fuzz", options.rounds, *images], capture_output=True, text=True)
        if done.returncode:
            wrong.append(f"damaged: status {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    print("\n".join(wrong))
    print(f"{len(EXPECTED)} kernels in {len(images)} settings, {len(wrong)} wrong"
          + (f"; not compiled: {', '.join(lacking)}" if lacking else ""))  # fmt: skip
    return 1 if wrong or not images else 0


if __name__ == "__main__":
    sys.exit(main())
