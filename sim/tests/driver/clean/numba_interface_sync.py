# SPDX-License-Identifier: MIT
"""The import of an array that names its stream waits for that stream on the host.

Numba's page "CUDA Array Interface (Version 3)", part "Synchronization".
"""
import numpy as np
from numba import cuda


class Wrapped:
    """An array of another library, as Numba sees it."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


producer, consumer = cuda.stream(), cuda.stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=producer)
view = cuda.as_cuda_array(Wrapped(array))
result = cuda.device_array(1024, np.float32, stream=consumer)
result.copy_to_device(view, stream=consumer)
consumer.synchronize()
array.copy_to_device(host, stream=producer)
producer.synchronize()
