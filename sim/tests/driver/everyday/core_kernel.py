# SPDX-License-Identifier: MIT
"""A kernel in CUDA C, by cuda.core."""
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
code = 'extern "C" __global__ void clear(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 0; }'
kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("clear")
memory = device.allocate(1024, stream=stream)
launch(stream, LaunchConfig(grid=2, block=128), kernel, memory)
memory.close(stream)
stream.sync()
