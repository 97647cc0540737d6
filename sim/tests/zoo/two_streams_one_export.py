# SPDX-License-Identifier: MIT
"""Work is pending on two streams, and an export names one (a question in numba/numba#5162)."""
import sys

import numpy as np
from cuda.core import Device
from cuda.core.utils import StridedMemoryView
from numba import cuda

device = Device()
device.set_current()
first, second = cuda.stream(), cuda.stream()
host = cuda.pinned_array(1024, np.float32)

array = cuda.device_array(1024, np.float32, stream=first)
array[:512].copy_to_device(host[:512], stream=first)
array[512:].copy_to_device(host[512:], stream=second)
if "--fixed" in sys.argv:
    done = cuda.event()
    done.record(second)
    done.wait(first)

consumer = device.create_stream()
StridedMemoryView.from_cuda_array_interface(array, stream_ptr=int(consumer.handle))  # waits for `first`
cuda.as_cuda_array(array, sync=False).copy_to_host(stream=cuda.external_stream(int(consumer.handle)))
