# SPDX-License-Identifier: MIT
"""One stream copies in, another reads after an event, and the first waits before it copies again.

PyCUDA's reference of `Stream.wait_for_event`.
"""
import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.driver as drv

copies, work = drv.Stream(1), drv.Stream(1)
host = drv.pagelocked_zeros(1024, np.float32)
array, result = drv.mem_alloc(host.nbytes), drv.mem_alloc(host.nbytes)
for _ in range(4):
    drv.memcpy_htod_async(array, host, copies)
    work.wait_for_event(drv.Event().record(copies))
    drv.memcpy_dtod_async(result, array, host.nbytes, work)
    copies.wait_for_event(drv.Event().record(work))
drv.Context.synchronize()
