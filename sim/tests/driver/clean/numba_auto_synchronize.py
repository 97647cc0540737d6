# SPDX-License-Identifier: MIT
"""`auto_synchronize` waits where the block ends, so another stream may then use the array.

Numba's page "Memory management", part "Streams".
"""
import numpy as np
from numba import cuda

first, second = cuda.stream(), cuda.stream()
host = cuda.pinned_array(4096, np.float32)
with first.auto_synchronize():
    array = cuda.to_device(host, stream=first)
with second.auto_synchronize():
    array.copy_to_host(host, stream=second)
with first.auto_synchronize():
    array.copy_to_device(host, stream=first)
