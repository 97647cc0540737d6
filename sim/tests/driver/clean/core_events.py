# SPDX-License-Identifier: MIT
"""A stream waits for an event, then for a stream; the buffer is freed in the order of its last user.

cuda.core's reference of `Stream.record`, `Stream.wait` and `Buffer.close`.
"""
from cuda.core import Device

device = Device()
device.set_current()
first, second = device.create_stream(), device.create_stream()
source = device.allocate(4096, stream=first)
source.fill(7, stream=first)
second.wait(first.record())
result = device.allocate(4096, stream=second)
result.copy_from(source, stream=second)
first.wait(second)
source.close(first)
result.close(second)
first.sync()
second.sync()
