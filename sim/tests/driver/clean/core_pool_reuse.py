# SPDX-License-Identifier: MIT
"""A pool gives the same memory again and again, in the order of one stream."""
from cuda.core import Device

device = Device()
device.set_current()
stream = device.create_stream()
for step in range(20):
    buffer = device.allocate(1 << 16, stream=stream)
    buffer.fill(step, stream=stream)
    buffer.close(stream)
stream.sync()
