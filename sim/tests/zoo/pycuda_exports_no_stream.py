# SPDX-License-Identifier: MIT
"""A dictionary says that no work is pending while a copy is queued (NVIDIA/DALI#5125 met such a producer).

PyCUDA 2026.1 exports version 3 with `stream: None`, which promises that nothing is pending. Its copy is on `stream`.
"""
import sys

import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.driver as drv
from numba import cuda
from pycuda import gpuarray

stream = drv.Stream(1)  # non-blocking
host = drv.pagelocked_zeros(1024, np.float32)
array = gpuarray.to_gpu_async(host, stream=stream)  # still queued
if "--fixed" in sys.argv:
    stream.synchronize()

view = cuda.as_cuda_array(array)  # waits for `stream`, which is None
print(view.copy_to_host()[0])
