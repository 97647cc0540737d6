# SPDX-License-Identifier: MIT
"""A consumer does not read the `stream` of the dictionary (dmlc/xgboost#6753, NVIDIA/DALI#5125).

Here it is PyCUDA: a copy from an object with __cuda_array_interface__ asks for `data` alone.
"""
import sys

import numpy as np
from numba import cuda

cuda.select_device(0)
import pycuda.autoprimaryctx  # noqa: E402, F401
import pycuda.driver as drv  # noqa: E402

stream = cuda.stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=stream)  # its dictionary names `stream`
if "--fixed" in sys.argv:
    stream.synchronize()

consumer = drv.Stream(1)
result = drv.mem_alloc(array.nbytes)
pointer = array.__cuda_array_interface__["data"][0]
drv.memcpy_dtod_async(result, pointer, array.nbytes, consumer)
consumer.synchronize()
