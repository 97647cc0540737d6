# SPDX-License-Identifier: MIT
"""A buffer goes through DLPack to a view. The stream that filled it was waited for before.

cuda.core's reference of `Buffer`, whose DLPack ignores the stream.
"""
from cuda.core import Buffer, Device
from cuda.core.utils import StridedMemoryView

device = Device()
device.set_current()
mine, theirs = device.create_stream(), device.create_stream()
buffer = device.allocate(4096, stream=mine)
buffer.fill(9, stream=mine)
theirs.wait(mine)  # `Buffer.__dlpack__` does not know of the pending work
view = StridedMemoryView.from_dlpack(buffer, stream_ptr=int(theirs.handle))
result = device.allocate(4096, stream=theirs)
Buffer.from_handle(view.ptr, 4096).copy_to(result, stream=theirs)
theirs.sync()
