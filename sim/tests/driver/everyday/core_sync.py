# SPDX-License-Identifier: MIT
"""Device.sync of cuda.core: cuda.bindings.runtime has a static runtime."""
from cuda.core import Device

device = Device()
device.set_current()
device.sync()
