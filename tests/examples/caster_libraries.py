# SPDX-License-Identifier: MIT
"""Libraries take what a module with the casters returns, and the module takes theirs: python -m cai_sim, see the test.

    caster_libraries.py MODULE.so NAME returned|taken|unordered
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from typing import Any

N, VALUE = 1024, 7


def load(path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader("caster_libraries", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("caster_libraries", path, loader=loader))
    loader.exec_module(module)
    return module


def with_torch(path: str, way: str) -> Any:
    import torch

    torch.cuda.init()
    torch.empty(1, device="cuda")
    module, mine, theirs = load(path), torch.cuda.Stream(), torch.cuda.Stream()
    if way == "returned":
        y = module.filled(N, VALUE, mine.cuda_stream)
        with torch.cuda.stream(theirs):
            taken = torch.from_dlpack(y)
            del y
            copy = torch.empty(N, dtype=torch.int32, device="cuda")
            copy.copy_(taken)
            del taken
            return copy.cpu()
    host = torch.full((N,), VALUE, dtype=torch.int32).pin_memory()
    with torch.cuda.stream(theirs):
        x = torch.empty(N, dtype=torch.int32, device="cuda")
        x.copy_(host, non_blocking=True)
        made = module.copied(x, mine.cuda_stream, way == "taken")
    return torch.from_dlpack(made).cpu()


def with_cupy(path: str, way: str) -> Any:
    import cupy

    cupy.empty(1)
    module, mine, theirs = load(path), cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    if way == "returned":
        y = module.filled(N, VALUE, mine)
        with theirs:
            taken = cupy.asarray(y)
            del y
            copy = cupy.empty(N, "i4")
            copy.data.copy_from_device_async(taken.data, 4 * N, theirs)
        return cupy.asnumpy(copy, stream=theirs)  # CuPy has no wait of `mine` for `theirs`, so `taken` stays until here
    import numpy

    host = cupy.cuda.alloc_pinned_memory(4 * N)
    numbers = numpy.frombuffer(host, "i4", N)
    numbers[:] = VALUE
    with theirs:
        x = cupy.empty(N, "i4")
        x.set(numbers, stream=theirs)
        made = module.copied(x, mine, way == "taken")
        return cupy.asnumpy(cupy.asarray(made), stream=theirs)


def with_numba(path: str, way: str) -> Any:
    import numpy
    from numba import cuda

    cuda.current_context()
    module, mine, theirs = load(path), cuda.stream(), cuda.stream()
    if way == "returned":
        y = module.filled(N, VALUE, int(mine.handle))
        taken = cuda.as_cuda_array(y)
        copy = cuda.device_array(N, "i4", stream=theirs)
        copy.copy_to_device(taken, stream=theirs)
        theirs.synchronize()
        return copy.copy_to_host(stream=theirs)
    host = cuda.pinned_array(N, numpy.int32)
    host[:] = VALUE
    x = cuda.device_array(N, numpy.int32, stream=theirs)
    x.copy_to_device(host, stream=theirs)
    made = module.copied(x, int(mine.handle), way == "taken")
    return cuda.as_cuda_array(made).copy_to_host(stream=mine)


def with_cuda_core(path: str, way: str) -> Any:
    import numpy
    from cuda.core import Buffer, Device
    from cuda.core.utils import StridedMemoryView

    device = Device()
    device.set_current()
    module, mine, theirs = load(path), device.create_stream(), device.create_stream()
    if way != "returned":
        raise NotImplementedError("a buffer has no pending work that it names")
    y = module.filled(N, VALUE, mine)
    view = StridedMemoryView.from_any_interface(y, stream_ptr=int(theirs.handle))
    del y
    copy = device.allocate(4 * N, stream=theirs)
    Buffer.from_handle(view.ptr, 4 * N).copy_to(copy, stream=theirs)
    del view
    from cuda.bindings import driver

    seen = numpy.empty(N, "i4")
    theirs.sync()
    driver.cuMemcpyDtoH(seen.ctypes.data, int(copy.handle), 4 * N)
    return seen


def with_tvm_ffi(path: str, way: str) -> Any:
    import tvm_ffi
    from cuda.core import Device

    device = Device()
    device.set_current()
    module, mine, theirs = load(path), device.create_stream(), device.create_stream()
    y = module.filled(N, VALUE, mine)
    tensor = tvm_ffi.from_dlpack(y)
    return numbers_of(module.copied(tensor, theirs, way != "unordered"), theirs)


def numbers_of(array: Any, stream: Any) -> Any:
    import numpy
    from cuda.bindings import driver

    seen = numpy.empty(N, "i4")
    stream.sync()
    driver.cuMemcpyDtoH(seen.ctypes.data, array.__cuda_array_interface__["data"][0], 4 * N)
    return seen


def with_numpy(path: str, way: str) -> Any:
    import numpy

    return numpy.from_dlpack(load(path).on_host(N, VALUE))


def with_jax(path: str, way: str) -> Any:
    import jax.dlpack

    return jax.dlpack.from_dlpack(load(path).on_host(N, VALUE))


def main() -> None:
    path, name, way = sys.argv[1:]
    seen = globals()[f"with_{name}"](path, way)
    values = sorted({int(value) for value in seen})
    print(f"{name} {way}: {len(seen)} x {values}")


main()
