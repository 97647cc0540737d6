# SPDX-License-Identifier: MIT
"""Numba works on a stream of cuda.core, so the order of that stream is enough.

Numba's reference of `external_stream`.
"""
import numpy as np
from cuda.core import Buffer, Device
from numba import cuda


@cuda.jit("void(float32[::1])")
def double(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= 2


device = Device()
device.set_current()
stream = device.create_stream()
numba_stream = cuda.external_stream(int(stream.handle))
array = cuda.to_device(cuda.pinned_array(1024, np.float32), stream=numba_stream)
double[8, 128, numba_stream](array)
result = device.allocate(4096, stream=stream)
Buffer.from_handle(array.__cuda_array_interface__["data"][0], 4096).copy_to(result, stream=stream)
double[8, 128, numba_stream](array)
stream.sync()
