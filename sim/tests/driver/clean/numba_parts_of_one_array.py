# SPDX-License-Identifier: MIT
"""Two streams write two halves of one array: nothing is shared, so nothing must wait."""
import numpy as np
from numba import cuda

streams = [cuda.stream(), cuda.stream()]
host = cuda.pinned_array(1024, np.float32)
array = cuda.device_array(1024, np.float32)
for part, stream in enumerate(streams):
    half = slice(512 * part, 512 * part + 512)
    array[half].copy_to_device(host[half], stream=stream)
for stream in streams:
    stream.synchronize()
print(array.copy_to_host()[0])
