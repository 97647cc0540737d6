# SPDX-License-Identifier: MIT
"""A kernel of Numba on a tensor."""
import torch
from numba import cuda


@cuda.jit
def ramp(out):
    place = cuda.grid(1)
    if place < out.size:
        out[place] = place * 0.5


tensor = torch.empty(4096, device="cuda")
ramp[32, 128](cuda.as_cuda_array(tensor))
torch.cuda.synchronize()
print((tensor + 1).mean().item())
