# SPDX-License-Identifier: MIT
"""Two pinned buffers in turn: the host waits for the copy out of one before it fills it again."""
import numpy as np
from numba import cuda

stream = cuda.stream()
buffers = [cuda.pinned_array(1024, np.float32) for _ in range(2)]
copied = [cuda.event(timing=False) for _ in range(2)]
array = cuda.device_array(1024, np.float32, stream=stream)
for step in range(8):
    turn = step % 2
    if step >= 2:
        copied[turn].synchronize()
    buffers[turn][:] = step
    array.copy_to_device(buffers[turn], stream=stream)
    copied[turn].record(stream)
stream.synchronize()
