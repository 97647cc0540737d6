# SPDX-License-Identifier: MIT
"""Two kernels of PyTorch on two streams, without a wait."""
import torch

x = torch.rand(256, device="cuda")
with torch.cuda.stream(torch.cuda.Stream()):
    torch.mul(x, 5, out=x)
