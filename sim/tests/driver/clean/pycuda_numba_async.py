# SPDX-License-Identifier: MIT
"""PyCUDA copies on its stream, and Numba uses the array on the same stream.

PyCUDA's page on the CUDA array interface, and Numba's `external_stream`.
"""
import numpy as np
from numba import cuda

cuda.select_device(0)
import pycuda.autoprimaryctx  # noqa: E402, F401
import pycuda.driver as drv  # noqa: E402
import pycuda.gpuarray as gpuarray  # noqa: E402

stream = drv.Stream()
host = drv.pagelocked_zeros(1024, np.float32)
array = gpuarray.to_gpu_async(host, stream=stream)
same = cuda.external_stream(stream.handle)
view = cuda.as_cuda_array(array, sync=False)
copy = cuda.device_array(1024, np.float32, stream=same)
copy.copy_to_device(view, stream=same)
back = array.get_async(stream=stream)  # kept until the copy has ended
stream.synchronize()
