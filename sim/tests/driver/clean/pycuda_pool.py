# SPDX-License-Identifier: MIT
"""Arrays from PyCUDA's pool, whose memory is used again after the host waited.

PyCUDA's reference of `pycuda.tools.DeviceMemoryPool`.
"""
import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.gpuarray as gpuarray
from pycuda.tools import DeviceMemoryPool

pool = DeviceMemoryPool()
for step in range(6):
    array = gpuarray.to_gpu(np.full(1024, step, np.float32), allocator=pool.allocate)
    assert array.get()[0] == step
    del array
pool.stop_holding()
