# SPDX-License-Identifier: MIT
"""A dictionary is imported without the wait for its stream (numba/numba#4933 discusses the cost of the wait).

`sync=False`, or NUMBA_CUDA_ARRAY_INTERFACE_SYNC=0, is right where both work on one stream, and a race elsewhere.
"""
import sys

import numpy as np
from numba import cuda

producer, consumer = cuda.stream(), cuda.stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=producer)  # still queued

view = cuda.as_cuda_array(array, sync="--fixed" in sys.argv)
result = cuda.pinned_array(1024, np.float32)
view.copy_to_host(result, stream=consumer)
consumer.synchronize()
