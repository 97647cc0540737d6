# SPDX-License-Identifier: MIT
"""A finalizer frees an array in the order of the stream that it happens to run on (JuliaGPU/CUDA.jl#778)."""
import sys

from cuda.core import Device

device = Device()
device.set_current()
worker, finalizer = device.create_stream(), device.create_stream()

array = device.allocate(4096, stream=worker)
finalizer.wait(worker)  # the finalizer knows of the allocation, not of the work after it
array.fill(1, stream=worker)  # still queued
if "--fixed" in sys.argv:
    finalizer.wait(worker)
array.close(finalizer)

worker.sync()
finalizer.sync()
