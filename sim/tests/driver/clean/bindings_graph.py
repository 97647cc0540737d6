# SPDX-License-Identifier: MIT
"""Two streams are captured as one graph, whose launches are in order with the work of the stream before and after.

The CUDA C++ Programming Guide on graphs: "Cross-stream dependencies and events", with cuda.bindings.
"""
from cuda.bindings import driver as drv
from cuda.core import Device


def call(function, *arguments):
    code, *values = function(*arguments)
    assert code == 0, code
    return values[0] if values else None


device = Device()
device.set_current()
main, side = device.create_stream(), device.create_stream()
source, result = device.allocate(4096, stream=main), device.allocate(4096, stream=main)
fork, join = call(drv.cuEventCreate, 2), call(drv.cuEventCreate, 2)
call(drv.cuStreamBeginCapture, main.handle, drv.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
source.fill(3, stream=main)
call(drv.cuEventRecord, fork, main.handle)
call(drv.cuStreamWaitEvent, side.handle, fork, 0)
result.copy_from(source, stream=side)
call(drv.cuEventRecord, join, side.handle)
call(drv.cuStreamWaitEvent, main.handle, join, 0)
graph = call(drv.cuStreamEndCapture, main.handle)
ready = call(drv.cuGraphInstantiate, graph, 0)
for _ in range(3):
    call(drv.cuGraphLaunch, ready, main.handle)
source.fill(1, stream=main)
main.sync()
