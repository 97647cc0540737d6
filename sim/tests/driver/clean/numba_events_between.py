# SPDX-License-Identifier: MIT
"""Two streams pass an array to and fro by events, without the host.

Numba's page "CUDA Array Interface (Version 3)", part "Streams": the synchronization is by whom uses both.
"""
import numpy as np
from numba import cuda


@cuda.jit("void(float32[::1])")
def next_step(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += 1


left, right = cuda.stream(), cuda.stream()
host = cuda.pinned_array(512, np.float32)
array = cuda.to_device(host, stream=left)
for _ in range(5):
    there, back = cuda.event(timing=False), cuda.event(timing=False)
    next_step[4, 128, left](array)
    there.record(left)
    there.wait(right)
    next_step[4, 128, right](array)
    back.record(right)
    back.wait(left)
array.copy_to_host(host, stream=left)
left.synchronize()
