# SPDX-License-Identifier: MIT
"""A memory manager of the program's own allocates what Numba asks for, and frees it.

Numba's page "External Memory Management (EMM) Plugin interface", part "The Host-Only CUDA Memory Manager".
"""
import numpy as np
from numba import cuda
from cuda.bindings import driver as drv


class Manager(cuda.HostOnlyCUDAMemoryManager):
    def memalloc(self, size):
        code, pointer = drv.cuMemAlloc(size)
        assert code == 0, code
        address = int(pointer)

        def free():
            drv.cuMemFree(address)

        return cuda.MemoryPointer(self.context, drv.CUdeviceptr(address), size, finalizer=free)

    def initialize(self):
        super().initialize()

    def get_memory_info(self):
        _, free, total = drv.cuMemGetInfo()
        return cuda.MemoryInfo(free, total)

    def get_ipc_handle(self, memory):
        raise NotImplementedError

    @property
    def interface_version(self):
        return 1


cuda.set_memory_manager(Manager)
for _ in range(4):
    stream = cuda.stream()
    host = cuda.pinned_array(1024, np.float32)
    array = cuda.to_device(host, stream=stream)
    array.copy_to_host(host, stream=stream)
    stream.synchronize()
    del array
