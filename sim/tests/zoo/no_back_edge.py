# SPDX-License-Identifier: MIT
"""The producer writes the next step while the consumer still reads this one (dmlc/dlpack#176).

The protocol has an edge at the beginning of the exchange and none at its end.
"""
import sys

import numpy as np
from cuda.core import Device
from cuda.core.utils import StridedMemoryView
from numba import cuda

device = Device()
device.set_current()
mine, theirs = cuda.stream(), device.create_stream()
step = cuda.pinned_array(1024, np.float32)

array = cuda.to_device(step, stream=mine)
StridedMemoryView.from_cuda_array_interface(array, stream_ptr=int(theirs.handle))
consumer = cuda.external_stream(int(theirs.handle))
copy = cuda.device_array(1024, np.float32)
copy.copy_to_device(cuda.as_cuda_array(array, sync=False), stream=consumer)  # still queued
if "--fixed" in sys.argv:
    done = cuda.event()
    done.record(consumer)
    done.wait(mine)
array.copy_to_device(step, stream=mine)  # the next step

cuda.synchronize()
