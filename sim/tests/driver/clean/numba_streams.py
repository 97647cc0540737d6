# SPDX-License-Identifier: MIT
"""Copies and a kernel on one stream, and an event that the host waits for.

Numba's page "Memory management", part "Streams", and "CUDA Host API".
"""
import numpy as np
from numba import cuda


@cuda.jit("void(float32[::1], float32)")
def scale(values, factor):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= factor


stream, done = cuda.stream(), cuda.event()
host = cuda.pinned_array(1024, np.float32)
host[:] = 1
array = cuda.to_device(host, stream=stream)
scale[8, 128, stream](array, np.float32(2))
array.copy_to_host(host, stream=stream)
done.record(stream)
done.synchronize()
host[:] = 2
array.copy_to_device(host, stream=stream)
stream.synchronize()
