# SPDX-License-Identifier: MIT
"""`sync=False` is right where the consumer works on the stream that the producer named.

Numba's page "CUDA Array Interface (Version 3)", part "Synchronization".
"""
import numpy as np
from numba import cuda

producer = cuda.stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=producer)
handle = array.__cuda_array_interface__["stream"]
same = cuda.external_stream(handle)
view = cuda.as_cuda_array(array, sync=False)
result = cuda.device_array(1024, np.float32, stream=same)
result.copy_to_device(view, stream=same)
array.copy_to_device(host, stream=producer)
producer.synchronize()
