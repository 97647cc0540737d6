# SPDX-License-Identifier: MIT
"""The host asks until an event is complete, and only then another stream uses the array.

Numba's reference of `Event.query`.
"""
import time

import numpy as np
from numba import cuda

first, second = cuda.stream(), cuda.stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=first)
done = cuda.event(timing=False)
done.record(first)
while not done.query():
    time.sleep(0.001)
array.copy_to_host(host, stream=second)
second.synchronize()
