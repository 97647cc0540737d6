# SPDX-License-Identifier: MIT
"""A tensor is dropped while a side stream still reads it, without record_stream. The next one gets its memory."""
import torch

side = torch.cuda.Stream()
x = torch.zeros(1 << 16, device="cuda")
there, back = torch.ones(1 << 16).pin_memory(), torch.zeros(1 << 16).pin_memory()
torch.cuda.synchronize()
with torch.cuda.stream(side):
    back.copy_(x, non_blocking=True)
del x
y = torch.empty(1 << 16, device="cuda")
y.copy_(there, non_blocking=True)
