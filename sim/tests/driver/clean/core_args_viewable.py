# SPDX-License-Identifier: MIT
"""A function takes arrays of any library by `args_viewable_as_strided_memory`, on a stream that its caller gives.

cuda.core's reference of `args_viewable_as_strided_memory`.
"""
import numpy as np
from cuda.core import Buffer, Device
from cuda.core.utils import args_viewable_as_strided_memory
from numba import cuda


@args_viewable_as_strided_memory((0,))
def duplicate(array, stream):
    view = array.view(int(stream.handle))
    result = Device().allocate(4 * view.shape[0], stream=stream)
    Buffer.from_handle(view.ptr, result.size).copy_to(result, stream=stream)
    return result


device = Device()
device.set_current()
stream, mine = device.create_stream(), cuda.stream()
array = cuda.to_device(cuda.pinned_array(256, np.float32), stream=mine)
results = [duplicate(array, stream) for _ in range(3)]
stream.sync()
