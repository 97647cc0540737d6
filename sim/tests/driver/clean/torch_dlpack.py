# SPDX-License-Identifier: MIT
"""DLPack gives the consumer's stream to PyTorch, which makes it wait; the way back is ordered by an event.

The Array API standard's page of `__dlpack__`, and PyTorch's reference of `torch.utils.dlpack`.
"""
import torch
from cuda.core import Buffer, Device
from cuda.core.utils import StridedMemoryView

torch.cuda.init()
device = Device()
device.set_current()
theirs, mine = device.create_stream(), torch.cuda.Stream()
with torch.cuda.stream(mine):
    tensor = torch.zeros(1024, device="cuda")
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=int(theirs.handle))
    result = device.allocate(4096, stream=theirs)
    Buffer.from_handle(view.ptr, 4096).copy_to(result, stream=theirs)
    mine.wait_stream(torch.cuda.ExternalStream(int(theirs.handle)))
    tensor.zero_()
mine.synchronize()
