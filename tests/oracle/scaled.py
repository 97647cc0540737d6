#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_scaled.h against decoders and a swizzle that are not ours.

    scaled.py --driver build/scaled_driver [--count 200] [--seed 1] [--torch]

Random bytes are values and scales of each format. ml_dtypes says what numbers they are. The swizzle is torchao's
`to_blocked` (torchao/prototype/mx_formats/utils.py): views and a permutation, without a formula for offsets. Each
value times the scale that cai_scaled.h finds must be the number that these say, bit for bit, and the shape of the
scales must be the padded one. With --torch, PyTorch's own to_blocked and its own float8 decode instead (ml_dtypes stays for FP4).
Exit status 0: all equal; 1: not; 77: ml_dtypes or PyTorch is missing.
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import random
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)


def code(kind: str, size: int, number: int) -> int:
    """A dtype as cai.h numbers it."""
    return ord(kind) << 8 | size | number << 16


# Of each format of cai_scaled.h: its number, the dtype of values and of scales, and the block
E4M3, E5M2, E8M0 = code("f", 1, 5), code("f", 1, 7), code("f", 1, 9)
FP4, FLOAT32 = code("f", 1, 31), code("f", 4, 0)
FORMATS = {
    "MXFP8 e4m3": (1, E4M3, E8M0, 32, 1), "MXFP8 e5m2": (1, E5M2, E8M0, 32, 1), "MXFP4": (2, FP4, E8M0, 32, 1),
    "NVFP4": (3, FP4, E4M3, 16, 1), "FP8 128x128": (4, E4M3, FLOAT32, 128, 128),
}  # fmt: skip
PLAIN, TILED = 0, 1
EXTENTS = [1, 2, 15, 16, 17, 31, 32, 33, 63, 65, 127, 128, 129, 200, 256, 257]


class MlDtypes:
    """ml_dtypes decodes, and NumPy permutes as torchao does."""

    def __init__(self):
        import ml_dtypes

        self.dtypes = {E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2, E8M0: ml_dtypes.float8_e8m0fnu,
                       FP4: ml_dtypes.float4_e2m1fn, FLOAT32: np.float32}  # fmt: skip

    def decode(self, raw, of):
        return raw.view(self.dtypes[of]).astype(np.float32)

    def swizzle(self, scales):
        rows, columns = scales.shape
        tall, wide = -(-rows // 128), -(-columns // 4)
        padded = np.zeros((tall * 128, wide * 4), np.uint8)
        padded[:rows, :columns] = scales
        blocks = padded.reshape(tall, 128, wide, 4).transpose(0, 2, 1, 3)
        return blocks.reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3).reshape(-1)


class PyTorch(MlDtypes):
    """PyTorch decodes float8 and swizzles. Its module of tests is not imported, as that needs more than PyTorch."""

    def __init__(self):
        super().__init__()
        import torch

        self.torch = torch
        path = pathlib.Path(torch.__file__).parent / "testing/_internal/common_quantized.py"
        wanted = [node for node in ast.parse(path.read_text()).body
                  if isinstance(node, ast.FunctionDef) and node.name in ("ceil_div", "to_blocked")]  # fmt: skip
        names = {"torch": torch}
        exec(compile(ast.Module(wanted, []), str(path), "exec"), names)
        self.to_blocked = names["to_blocked"]
        self.float8 = {E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2, E8M0: torch.float8_e8m0fnu}

    def decode(self, raw, of):
        if of not in self.float8:
            return super().decode(raw, of)
        return self.torch.from_numpy(raw.copy()).view(self.float8[of]).to(self.torch.float32).numpy()

    def swizzle(self, scales):
        return self.to_blocked(self.torch.from_numpy(np.ascontiguousarray(scales))).numpy().reshape(-1)


def random_request(rng):
    """A format, a layout, an axis and a shape."""
    name = rng.choice(list(FORMATS))
    layout = PLAIN if name == "FP8 128x128" else rng.choice([PLAIN, TILED])
    shape = [rng.choice(EXTENTS), rng.choice(EXTENTS)]
    if rng.random() < 0.3:
        shape.insert(0, rng.randint(1, 3))
    return name, layout, len(shape) - rng.choice([1, 2]), shape


def blocks_of(shape, axis, block, rows):
    """The shape of the scales, one for each block."""
    beside = 2 * len(shape) - 3 - axis
    per = {axis: block, beside: rows}
    return [-(-extent // per.get(i, 1)) for i, extent in enumerate(shape)]


def numbers(values, scales, axis, block, rows):
    """What the values are with the scale of each one's block, by repetition of the scales."""
    for along, count in ((axis, block), (2 * values.ndim - 3 - axis, rows)):
        taken = [slice(None)] * values.ndim
        taken[along] = slice(values.shape[along])
        scales = np.repeat(scales, count, along)[tuple(taken)]
    return values * scales


def memory_of(witness, raw, layout, axis):
    """The bytes of the scales, and the shape that they should have."""
    if layout == PLAIN:
        return raw.reshape(-1).view(np.uint8), list(raw.shape)
    upright = raw if axis == raw.ndim - 1 else np.swapaxes(raw, -1, -2)
    matrices = upright.reshape(-1, *upright.shape[-2:])
    padded = [-(-upright.shape[-2] // 128) * 128, -(-upright.shape[-1] // 4) * 4]
    return np.concatenate([witness.swizzle(m) for m in matrices]), list(upright.shape[:-2]) + padded


def judge(witness, request, answer, rng):
    """Returns what is wrong, or None."""
    name, layout, axis, shape = request
    _, of, scales_of, block, rows = FORMATS[name]
    status, extents, offsets = answer[0], answer[1 : 1 + len(shape)], answer[1 + len(shape) :]
    bits = rng.integers(0, 16 if of == FP4 else 256, shape, np.uint8)
    raw = rng.integers(0, 256, blocks_of(shape, axis, block, rows), np.uint8)
    if scales_of == FLOAT32:
        raw = rng.standard_normal(raw.shape).astype(np.float32)
    memory, expected_extents = memory_of(witness, raw, layout, axis)
    if status or list(extents) != expected_extents:
        return f"status {status}, scales {list(extents)}, not {expected_extents}"
    values = witness.decode(bits, of)
    expected = numbers(values, witness.decode(raw, scales_of), axis, block, rows)
    found = witness.decode(memory.view(np.float32 if scales_of == FLOAT32 else np.uint8), scales_of)
    got = values * found[offsets.reshape(shape) // (4 if scales_of == FLOAT32 else 1)]
    same = np.isnan(got) & np.isnan(expected) | (got.view(np.uint32) == expected.view(np.uint32))
    return None if same.all() else f"{np.count_nonzero(~same)} values differ, the first at {np.argwhere(~same)[0]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    try:
        witness = PyTorch() if options.torch else MlDtypes()
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    choose, rng = random.Random(options.seed), np.random.default_rng(options.seed)
    np.seterr(all="ignore")
    requests = [random_request(choose) for _ in range(options.count)]
    lines = [" ".join(map(str, [*FORMATS[name], layout, axis, len(shape), *shape])) for name, layout, axis, shape in requests]
    done = subprocess.run([options.driver], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(requests)
    seen, wrong = {}, 0
    for request, line in zip(requests, answers):
        problem = judge(witness, request, np.array(line.split(), np.int64), rng)
        wrong += problem is not None
        if problem:
            print(f"{request}: {problem}")
        key = f"{request[0]}, {'128x4' if request[1] else 'plain'}"
        arrays, values = seen.get(key, (0, 0))
        seen[key] = arrays + 1, values + int(np.prod(request[3]))
    for key, (arrays, values) in sorted(seen.items()):
        print(f"{key}: {arrays} arrays, {values} values")
    print(f"{len(requests)} arrays, {wrong} differ")
    return 1 if wrong or not requests else 0


if __name__ == "__main__":
    sys.exit(main())
