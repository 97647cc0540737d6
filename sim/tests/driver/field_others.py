# SPDX-License-Identifier: MIT
"""Programs with examples/storage/python/cai_field.c and libraries that CI does not have: the name of one is the argument."""

from __future__ import annotations

import gc
import sys
from typing import Any

import cai_field
import numpy

SHAPE, HALO = (12, 9, 4), (2, 2, 0)
VALUES = numpy.arange(432.0).reshape(SHAPE)


def filled(home: Any) -> Any:
    field = cai_field.field(SHAPE, preset="gtcuda", dims="IJK", halo=HALO, home=home)
    numpy.asarray(field.host("overwrite"))[...] = VALUES
    return field


def holds(field: Any, value: float) -> None:
    """The device side was written and is closed."""
    gc.collect()
    assert field.state == "device newer"
    assert (numpy.asarray(field.host()) == value).all()


def torch_writes() -> None:
    """PyTorch, by DLPack."""
    import torch

    torch.cuda.init()
    field = filled(torch.cuda.Stream())
    fives = torch.full(SHAPE[::-1], 5.0, dtype=torch.float64).pin_memory()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        tensor = torch.from_dlpack(field.device("write", stream))
        tensor.permute(2, 1, 0).copy_(fives, non_blocking=True)
        del tensor
    holds(field, 5)


def cupy_writes() -> None:
    """CuPy, by the interface and by DLPack."""
    import cupy

    cupy.cuda.Device(0).use()
    field = filled(cupy.cuda.Stream(non_blocking=True))
    pinned = numpy.frombuffer(cupy.cuda.alloc_pinned_memory(VALUES.nbytes), VALUES.dtype, VALUES.size)
    sixes = pinned.reshape(SHAPE, order="F")
    sixes[...] = 6
    for take in (cupy.asarray, cupy.from_dlpack):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            array = take(field.device("write", stream))
            array.set(sixes, stream=stream)
            del array
        holds(field, 6)
        numpy.asarray(field.host("write"))[...] = VALUES


if __name__ == "__main__":
    globals()[sys.argv[1]]()
