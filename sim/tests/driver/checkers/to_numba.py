# SPDX-License-Identifier: MIT
"""PyTorch copies on one stream, and Numba reads on another one, without a wait."""
import torch
from numba import cuda

host = torch.zeros(256).pin_memory()
x = torch.empty(256, device="cuda")
torch.cuda.synchronize()
theirs, mine = torch.cuda.Stream(), cuda.stream()
with torch.cuda.stream(theirs):
    x.copy_(host, non_blocking=True)
seen = cuda.as_cuda_array(x).copy_to_host(stream=mine)
mine.synchronize()
