# SPDX-License-Identifier: MIT
"""A host function of a stream runs in its order: the host waits for the stream and sees that it ran.

CUDA's reference of `cuLaunchHostFunc`, with cuda.bindings and Numba.
"""
import ctypes

import numpy as np
from cuda.bindings import driver as drv
from numba import cuda

ended = []
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: ended.append(True))
address = ctypes.cast(function, ctypes.c_void_p).value

first, second = cuda.stream(), cuda.stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=first)
assert drv.cuLaunchHostFunc(first.handle, drv.CUhostFn(address), 0)[0] == 0
first.synchronize()
assert ended == [True]
array.copy_to_host(host, stream=second)
second.synchronize()
