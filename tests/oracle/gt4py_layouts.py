#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_layout.h against GT4Py itself: its presets, and what its allocator gives for random fields.

    tests/oracle/gt4py_layouts.py [--cc gcc] [--fields 20000] [--seed 1]

GT4Py is not among the packages of the tests. It needs few of those that it names:

    pip install --no-deps gt4py
    pip install numpy array-api-compat boltons cached-property cytoolz deepdiff frozendict xxhash typing-extensions

Exit status 0: strides, bytes, offsets, maps and errors are the same; 1: not; 77: no GT4Py.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

try:
    import gt4py
    import numpy
    from gt4py._core import definitions
    from gt4py.storage import allocators
    from gt4py.storage.cartesian import layout_registry
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALIGN_INDEX, ALIGN_ITEMS = 1, 2
DTYPES = ("int8", "int16", "float32", "float64", "complex128")
ALIGNMENTS = (1, 2, 3, 4, 8, 12, 16, 24, 32, 64, 100, 128, 256)


class Layout(ctypes.Structure):  # cai_layout
    _fields_ = [
        ("flags", ctypes.c_uint32), ("ndim", ctypes.c_int32), ("alignment", ctypes.c_int32), ("map", ctypes.c_int32 * 8),
        *((name, ctypes.c_int64 * 8) for name in ("shape", "aligned", "halo_low", "halo_high", "strides")),
        ("nbytes", ctypes.c_int64), ("offset", ctypes.c_int64), ("boundary", ctypes.c_int64),
    ]  # fmt: skip


class Dtype(ctypes.Structure):  # cai_dtype
    _fields_ = [(name, ctypes.c_int32) for name in ("code", "itemsize", "bits", "unit", "unit_count", "alignment")]


def build(cc: str, folder: str) -> ctypes.CDLL:
    source = pathlib.Path(folder, "layout.c")
    source.write_text('#define CAI_IMPLEMENTATION\n#define CAI_SHARED\n#include "cai_layout.h"\n')
    library = source.with_suffix(".so")
    flags = ["-std=c99", "-shared", "-fPIC", f"-I{ROOT}", f"-I{ROOT}/ext"]
    subprocess.run([*shlex.split(cc), *flags, str(source), "-o", str(library)], check=True)
    found = ctypes.CDLL(str(library))
    found.cai_layout_offset.restype = ctypes.c_int64
    found.cai_layout_offset.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    return found


class NoMemory(allocators.NDArrayBufferAllocator):
    """GT4Py's allocator, with an address in place of memory."""

    def malloc(self, length, device_id):
        return numpy.lib.stride_tricks.as_strided(numpy.zeros(1, numpy.uint8), (int(length),), (0,))

    def tensorize(self, *_):
        return None


def theirs(shape, map_, dtype, alignment, aligned, address):
    """Strides, bytes and offset, or None: GT4Py refuses."""
    utils = allocators.ArrayUtils(numpy, numpy.empty, lambda _: (address, address), numpy.lib.stride_tricks.as_strided)
    try:
        made = NoMemory(definitions.DeviceType.CPU, utils).allocate(
            shape, definitions.dtype(numpy.dtype(dtype)), 0, map_, alignment, aligned)  # fmt: skip
    except ValueError:
        return None
    return [int(stride) for stride in made.strides], len(made.buffer), int(made.byte_offset)


def ours(cai, shape, map_, dtype, alignment, aligned, address):
    layout = Layout(flags=ALIGN_INDEX, ndim=len(shape), alignment=alignment)
    for axis, extent in enumerate(shape):
        layout.shape[axis], layout.map[axis], layout.aligned[axis] = extent, map_[axis], aligned[axis]
    if cai.cai_layout_plan(ctypes.byref(layout), ctypes.byref(Dtype(itemsize=numpy.dtype(dtype).itemsize)), None):
        return None
    return list(layout.strides[: len(shape)]), layout.nbytes, cai.cai_layout_offset(ctypes.byref(layout), address)


def check_fields(cai, count: int, seed: int) -> tuple[int, int]:
    """How many fields GT4Py refused, and how many differ."""
    chance = random.Random(seed)
    refused = wrong = 0
    for _ in range(count):
        shape = tuple(chance.randint(1, 12) for _ in range(chance.randint(0, 4)))
        map_ = tuple(chance.sample(range(len(shape)), len(shape)))
        aligned = tuple(chance.randrange(extent) for extent in shape)
        field = (shape, map_, chance.choice(DTYPES), chance.choice(ALIGNMENTS), aligned, chance.randrange(1, 1 << 46))
        expected, found = theirs(*field), ours(cai, *field)
        refused += expected is None
        if found != expected:
            wrong += 1
            print(f"{field}: {found}, not {expected}")
    return refused, wrong


def check_presets(cai) -> tuple[int, int]:
    """How many maps were compared, and how many differ."""
    count = wrong = 0
    space = [axes for length in range(4) for axes in itertools.permutations("IJK", length)]
    for name, info in layout_registry.REGISTRY.items():
        for axes, data in itertools.product(space, ("", "0", "01", "012")):
            layout, dims = Layout(), "".join(axes) + data
            failed = cai.cai_layout_preset(ctypes.byref(layout), name.encode(), dims.encode(), None)
            expected = [int(place) for place in info["layout_map"](tuple(dims))]
            count += 1
            if failed or list(layout.map[: len(dims)]) != expected or layout.alignment != info["alignment"]:
                wrong += 1
                print(f"{name} of {dims}: {list(layout.map[: len(dims)])}, not {expected}")
    return count, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--fields", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cai = build(options.cc, folder)
        maps, wrong_maps = check_presets(cai)
        refused, wrong = check_fields(cai, options.fields, options.seed)
    print(f"GT4Py {gt4py.__version__}: {len(layout_registry.REGISTRY)} presets with {maps} maps, {wrong_maps} wrong; "
          f"{options.fields} fields, of which it refuses {refused}, {wrong} wrong")  # fmt: skip
    return 1 if wrong or wrong_maps else 0


if __name__ == "__main__":
    sys.exit(main())
