# SPDX-License-Identifier: MIT
"""Fields of examples/storage/python/cai_field.c as messages of mpi4py, on two ranks with a simulated device each.

    mpiexec -n 2 python -m cai_sim tests/mpi/mpi4py_fields.py waits|forgets|refuses

mpi4py reads the dictionary of the device side, and hands its address to MPI. It takes no notice of the stream. MPI copies
when the host calls it. So the program waits for the stream first (waits), or the copy to the device may be missing in what
is sent (forgets: the program ends with exit status 1 if it is).
"""

from __future__ import annotations

import sys
from typing import Any

import cai_field
import numpy
from mpi4py import MPI
from numba import cuda

SHAPE = (8, 6, 5)
COMM = MPI.COMM_WORLD


def filled(value: float, stream: Any) -> Any:
    cuda.current_context()
    field = cai_field.field(SHAPE, preset="C", dims="IJK", home=stream)
    numpy.asarray(field.host("overwrite"))[...] = value + numpy.arange(240.0).reshape(SHAPE)
    return field


def exchange(wait: bool) -> int:
    """Each rank sends its device side, and receives that of the other. Returns how many elements are wrong."""
    stream = cuda.stream()
    mine, other = filled(1000.0 * COMM.rank, stream), filled(-1.0, stream)
    source, target = mine.device("read", stream), other.device("write", stream)  # both copies are queued
    if wait:
        stream.synchronize()
    peer = 1 - COMM.rank
    COMM.Sendrecv([source, MPI.DOUBLE], peer, 7, [target, MPI.DOUBLE], peer, 7)
    del source, target  # the accesses end: the host side of `other` is older now
    assert other.state == "device newer"
    expected = 1000.0 * peer + numpy.arange(240.0).reshape(SHAPE)
    return int((numpy.asarray(other.host()) != expected).sum())


def refuses() -> int:
    """What MPI cannot take is refused by mpi4py, not sent wrong."""
    field = filled(0.0, cuda.stream())
    part = cuda.as_cuda_array(field.device("read"), sync=True)[:, 1:3]
    for bad in (part, cuda.as_cuda_array(field.device("read"), sync=True)[::2]):
        try:
            COMM.Isend([bad, MPI.DOUBLE], COMM.rank)
        except BufferError as error:
            assert "contiguous" in str(error), error
        else:
            return 1
    return 0


def main() -> int:
    name = sys.argv[1]
    wrong = COMM.allreduce(refuses() if name == "refuses" else exchange(name == "waits"))
    print(f"{name}: {wrong} wrong", flush=True)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
