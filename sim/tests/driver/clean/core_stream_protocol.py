# SPDX-License-Identifier: MIT
"""A stream of another library comes in by the method `__cuda_stream__`.

cuda.core's page "Interoperability", part "`__cuda_stream__` protocol".
"""
import numpy as np
from cuda.core import Device
from numba import cuda


class Foreign:
    def __init__(self, stream):
        self.stream = stream

    def __cuda_stream__(self):
        return 0, int(self.stream.handle)


device = Device()
device.set_current()
mine = cuda.stream()
theirs = device.create_stream(Foreign(mine))  # the same stream
buffer = device.allocate(4096, stream=theirs)
buffer.fill(1, stream=theirs)
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=mine)
result = device.allocate(4096, stream=theirs)
result.copy_from(buffer, stream=theirs)
mine.synchronize()
