# SPDX-License-Identifier: MIT
"""Two libraries use the default stream and a non-blocking one (bheisler/RustaCUDA#59).

Only blocking streams wait for the legacy default stream.
"""
import sys

from cuda.core import LEGACY_DEFAULT_STREAM, Device

device = Device()
device.set_current()
stream = device.create_stream()  # non-blocking
buffer = device.allocate(4096, stream=stream)
stream.sync()

buffer.fill(1, stream=LEGACY_DEFAULT_STREAM)  # still queued
if "--fixed" in sys.argv:
    stream.wait(LEGACY_DEFAULT_STREAM)
buffer.fill(2, stream=stream)

stream.sync()
LEGACY_DEFAULT_STREAM.sync()
