# SPDX-License-Identifier: MIT
"""Numba and PyCUDA share the primary context, and a kernel of Numba takes an array of PyCUDA.

PyCUDA's page "Interoperability with other libraries using the CUDA array interface".
"""
import numpy as np
from numba import cuda

cuda.select_device(0)
import pycuda.autoprimaryctx  # noqa: E402, F401
import pycuda.gpuarray as gpuarray  # noqa: E402


@cuda.jit("void(float32[::1])")
def double(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= 2


array = gpuarray.to_gpu(np.ones(1024, np.float32))
double[8, 128](cuda.as_cuda_array(array))
print(array.get()[0])
