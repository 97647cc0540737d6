# SPDX-License-Identifier: MIT
"""Pinned memory is an array of NumPy by DLPack. The host reads it after it waited.

cuda.core's reference of `LegacyPinnedMemoryResource`.
"""
import numpy as np
from cuda.core import Device, LegacyPinnedMemoryResource

device = Device()
device.set_current()
stream = device.create_stream()
pinned = LegacyPinnedMemoryResource().allocate(4096)
values = np.from_dlpack(pinned)
buffer = device.allocate(4096, stream=stream)
buffer.fill(5, stream=stream)
pinned.copy_from(buffer, stream=stream)
stream.sync()
assert (values.view(np.uint8) == 5).all()
