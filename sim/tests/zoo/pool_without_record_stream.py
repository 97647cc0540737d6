# SPDX-License-Identifier: MIT
"""An array is freed in the order of one stream while another stream still reads it (cupy/cupy#8068).

The pool may give its memory to the next array of the first stream at once.
"""
import sys

from cuda.core import Device

device = Device()
device.set_current()
mine, other = device.create_stream(), device.create_stream()

array = device.allocate(4096, stream=mine)
array.fill(1, stream=mine)
result = device.allocate(4096, stream=other)
other.wait(mine)
result.copy_from(array, stream=other)  # still queued
if "--fixed" in sys.argv:
    mine.wait(other)
array.close(mine)

mine.sync()
other.sync()
