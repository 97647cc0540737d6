# SPDX-License-Identifier: MIT
"""One pool serves two streams. Each frees in its own order, so the pool orders what it gives to the other."""
from cuda.core import Device

device = Device()
device.set_current()
streams = [device.create_stream(), device.create_stream()]
for step in range(12):
    stream = streams[step % 2]
    buffer = device.allocate(4096, stream=stream)
    buffer.fill(step, stream=stream)
    buffer.close(stream)
for stream in streams:
    stream.sync()
