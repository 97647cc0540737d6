# SPDX-License-Identifier: MIT
"""Pinned memory goes in and out by way of two streams and one array, with the host between them."""
import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.driver as drv

first, second = drv.Stream(1), drv.Stream(1)
host, back = drv.pagelocked_zeros(1024, np.float32), drv.pagelocked_zeros(1024, np.float32)
array = drv.mem_alloc(host.nbytes)
for step in range(3):
    host[:] = step
    drv.memcpy_htod_async(array, host, first)
    first.synchronize()
    drv.memcpy_dtoh_async(back, array, second)
    done = drv.Event().record(second)
    done.synchronize()
    assert back[0] == step
