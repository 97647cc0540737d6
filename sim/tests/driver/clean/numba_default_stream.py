# SPDX-License-Identifier: MIT
"""The default stream waits for each blocking stream, and each blocking stream waits for it.

CUDA's page "Stream synchronization behavior"; Numba's `cuda.stream` makes blocking streams.
"""
import numpy as np
from numba import cuda


@cuda.jit("void(float32[::1])")
def clear(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] = 0


stream = cuda.stream()
host = np.ones(1024, np.float32)
array = cuda.to_device(host)
clear[8, 128, stream](array)
print(array.copy_to_host()[0])  # the default stream
clear[8, 128](array)
back = array.copy_to_host(stream=stream)  # kept until the copy has ended
stream.synchronize()
