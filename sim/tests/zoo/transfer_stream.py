# SPDX-License-Identifier: MIT
"""A copy runs on a stream of its own, and the default stream reads its result (ROCm/pytorch#3194).

The stream is non-blocking, so the default stream does not wait for it.
"""
import sys

import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.driver as drv

transfer = drv.Stream(1)  # non-blocking
host = drv.pagelocked_zeros(1024, np.float32)
array = drv.mem_alloc(host.nbytes)
drv.memcpy_htod_async(array, host, transfer)  # still queued
if "--fixed" in sys.argv:
    done = drv.Event().record(transfer)
    done.synchronize()

result = drv.mem_alloc(host.nbytes)
drv.memcpy_dtod_async(result, array, host.nbytes)  # the default stream
drv.Context.synchronize()
