# SPDX-License-Identifier: MIT
"""A side stream waits for the current one, and the current one waits for it; `record_stream` keeps the block.

PyTorch's page "CUDA semantics", part "CUDA streams".
"""
import torch

side = torch.cuda.Stream()
for _ in range(4):
    tensor = torch.zeros(4096, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        result = tensor.clone()
        tensor.record_stream(side)
    del tensor
    torch.cuda.current_stream().wait_stream(side)
    result.zero_()
torch.cuda.synchronize()
