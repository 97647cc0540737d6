# SPDX-License-Identifier: MIT
"""The view of an array of Numba makes the consumer's stream wait for the producer's.

cuda.core's reference of `StridedMemoryView`.
"""
import numpy as np
from cuda.core import Buffer, Device
from cuda.core.utils import StridedMemoryView
from numba import cuda

device = Device()
device.set_current()
mine, theirs = cuda.stream(), device.create_stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=mine)
view = StridedMemoryView.from_cuda_array_interface(array, stream_ptr=int(theirs.handle))
result = device.allocate(4096, stream=theirs)
Buffer.from_handle(view.ptr, 4096).copy_to(result, stream=theirs)
theirs.sync()
result.close(theirs)
