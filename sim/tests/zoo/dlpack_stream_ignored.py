# SPDX-License-Identifier: MIT
"""The producer ignores the stream that the consumer passes to __dlpack__ (wjakob/nanobind#1383).

cuda.core's Buffer does so, too: its comment leaves the order to the user.
"""
import sys

from cuda.core import Device
from cuda.core.utils import StridedMemoryView

device = Device()
device.set_current()
producer, consumer = device.create_stream(), device.create_stream()

buffer = device.allocate(4096, stream=producer)
buffer.fill(1, stream=producer)  # still queued
if "--fixed" in sys.argv:
    consumer.wait(producer)
view = StridedMemoryView.from_dlpack(buffer, stream_ptr=int(consumer.handle))

result = device.allocate(4096, stream=consumer)
result.copy_from(buffer, stream=consumer)  # view.ptr is buffer's
producer.wait(consumer)
consumer.sync()
producer.sync()
