#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records the dictionaries that real libraries export, for interfaces.txt. They run on the simulated driver:

    tools/demo/record.py           compares with interfaces.txt what the installed libraries export
    tools/demo/record.py --write   writes it there, with the versions of the libraries

Addresses and handles of streams differ from run to run. Two dictionaries are the same if everything else is.
What a library that is not installed exported stays as it is. Exit status 77: there is no package cai_sim.
"""

from __future__ import annotations

import ast
import importlib.metadata
import pathlib
import re
import sys
from typing import Any, Callable, Iterator

try:
    import cai_sim
except ImportError:
    print("skipped: no package cai_sim (pip install ./sim/python)")
    sys.exit(77)

FILE = pathlib.Path(__file__).with_name("interfaces.txt")
HANDLES = 3  # a stream from this number on is a handle: 0, 1 and 2 have meanings of their own
Arrays = Iterator[tuple[str, Any]]


def numba_cuda() -> Arrays:
    import numpy as np
    from numba import cuda
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

    yield "C order, no stream", cuda.device_array((4, 3))
    yield "Fortran order + stream", cuda.device_array((4, 3), order="F", stream=cuda.stream())
    three = cuda.device_array(3)
    yield "broadcast of 3 to (4, 3)", DeviceNDArray((4, 3), (0, 8), np.float64, gpu_data=three.gpu_data)
    yield "datetime64", cuda.device_array(365, "M8[ns]")
    yield "x[::2, 1:]", cuda.device_array((1024, 768), np.float32)[::2, 1:]
    yield "records", cuda.device_array(100, np.dtype([("pos", "<f4", (3,)), ("id", "<i8")], align=True))
    yield "empty", cuda.device_array((0, 3))
    yield "legacy default stream", cuda.device_array(8, np.complex64, stream=cuda.default_stream())
    yield "per-thread default stream", cuda.device_array(8, stream=cuda.per_thread_default_stream())


def cupy() -> Arrays:
    import cupy as library
    import numpy as np

    if not library.is_available():  # a wheel of CuPy as it is: its libcudart is static
        return
    record = np.dtype([("pos", [("x", "<f4"), ("y", "<f4")]), ("id", "<i8"), ("flag", "|b1")], align=True)
    matrix = library.empty((1024, 768), np.float32)
    with library.cuda.Stream(non_blocking=True):
        yield "C order, current stream", matrix
    yield "x[::2, ::-1], stream 1", matrix[::2, ::-1]
    with library.cuda.Stream.ptds:
        yield "records, stream 2", library.empty(1000, record)
    yield "empty", library.empty((0, 768), np.float32)


def pycuda() -> Arrays:
    import numpy as np
    import pycuda.autoprimaryctx  # noqa: F401
    from pycuda import gpuarray

    matrix = gpuarray.empty((256, 256), np.float32)
    yield "GPUArray", matrix
    yield "Fortran order", gpuarray.empty((256, 256), np.complex128, order="F")
    yield "column of a matrix", matrix[:, 1]
    yield "x[::-1]", gpuarray.empty(256, np.float32)[::-1]
    yield "records", gpuarray.empty(4, np.dtype([("a", "<f4"), ("b", "<i2")]))


def torch() -> Arrays:
    import torch as library

    def empty(*shape: int, **options: Any) -> Any:
        return library.empty(shape, device="cuda", **options)

    yield "image batch", empty(32, 3, 224, 224)
    yield "channels last", empty(32, 3, 224, 224, dtype=library.float16, memory_format=library.channels_last)
    yield "x.expand(1000, 64)", empty(64).expand(1000, 64)
    yield "bfloat16", empty(4096, 4096, dtype=library.bfloat16)
    yield "loss value, 0-d", empty()
    yield "x.conj()", empty(8, dtype=library.complex64).conj()
    with library.cuda.stream(library.cuda.Stream()):
        yield "on a stream of its own", empty(8)


def numpy() -> Arrays:
    import numpy as np

    matrix = np.arange(12, dtype="f4").reshape(3, 4)
    yield "C order", matrix
    yield "x[:, ::-1]", matrix[:, ::-1]
    yield "broadcast_to(v, (4, 3))", np.broadcast_to(np.zeros(3), (4, 3))
    fields = [("pos", [("x", "f4"), ("y", "f4")]), ("tag", "S3"), ("w", "f8", (2, 2))]
    yield "aligned records", np.zeros(3, np.dtype(fields, align=True))
    yield "big-endian", np.zeros(5, ">i4")


# name in interfaces.txt, package, arrays, attribute
LIBRARIES: tuple[tuple[str, str, Callable[[], Arrays], str], ...] = (
    ("CuPy", "cupy-cuda13x", cupy, "__cuda_array_interface__"),  # after python -m cai_sim.cupy
    ("numba-cuda", "numba-cuda", numba_cuda, "__cuda_array_interface__"),
    ("PyCUDA", "pycuda", pycuda, "__cuda_array_interface__"),
    ("PyTorch", "torch", torch, "__cuda_array_interface__"),
    ("NumPy", "numpy", numpy, "__array_interface__"))


def comparable(table: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from run to run."""
    same = dict(table, data=(bool(table["data"][0]), table["data"][1]))
    if (same.get("stream") or 0) >= HANDLES:
        same["stream"] = "a handle"
    return same


class Recorder:
    """Compares with interfaces.txt, and changes its text."""

    def __init__(self) -> None:
        self.text = FILE.read_text(encoding="utf-8")
        self.same, self.differing, self.newer = 0, [], set()

    @property
    def known(self) -> int:
        return self.same + len(self.differing)

    def take(self, library: str, version: str, title: str, table: dict[str, Any]) -> None:
        head = rf"# {re.escape(library)} (\S+) - {re.escape(title)} \| recorded\n((?:#[^\n]*\n)*)"
        found = re.search(head + r"(\{.*\})\n", self.text)
        if not found:
            self.differing.append(f"{library} - {title}: not in {FILE.name}:\n"
                                  f"    # {library} {version} - {title} | recorded\n    {table}")
            return
        known = ast.literal_eval(found[3])
        if comparable(known) == comparable(table):
            self.same += 1
            table = known  # no new addresses
        else:
            self.differing.append(f"{library} - {title}: version {version} exports\n    {table}\n"
                                  f"  and {found[1]} exported\n    {known}")
        if version != found[1]:
            self.newer.add(f"{library} {version}, recorded with {found[1]}")
        block = f"# {library} {version} - {title} | recorded\n{found[2]}{table}\n"
        self.text = self.text[:found.start()] + block + self.text[found.end():]


def main() -> int:
    cai_sim.start()
    recorder = Recorder()
    for library, package, arrays, attribute in LIBRARIES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            print(f"skipped: {library} is not installed")
            continue
        known = recorder.known
        for title, array in arrays():
            recorder.take(library, version, title, getattr(array, attribute))
        if recorder.known == known:
            print(f"skipped: {library} {version} does not run here")
    if "--write" in sys.argv[1:]:
        FILE.write_text(recorder.text, encoding="utf-8")
    for line in [*sorted(recorder.newer), *recorder.differing]:
        print(line)
    print(f"{recorder.same} dictionaries are as recorded, {len(recorder.differing)} are not")
    return 1 if recorder.differing else 0


if __name__ == "__main__":
    sys.exit(main())
