# SPDX-License-Identifier: MIT
"""A reader writes into a buffer on a stream of its own, before the buffer is allocated (NVIDIA/cudf#17074)."""
import sys

from cuda.core import Device

device = Device()
device.set_current()
stream, reader = device.create_stream(), device.create_stream()

buffer = device.allocate(4096, stream=stream)  # in the order of `stream`
if "--fixed" in sys.argv:
    reader.wait(stream)
buffer.fill(1, stream=reader)

stream.wait(reader)
buffer.close(stream)
reader.sync()
