# SPDX-License-Identifier: MIT
"""Numba works on the current stream of PyTorch, so an array of either is in order with the other.

Numba's `external_stream`, and PyTorch's reference of `torch.cuda.Stream.cuda_stream`.
"""
import torch
from numba import cuda

stream = torch.cuda.Stream()
same = cuda.external_stream(stream.cuda_stream)
with torch.cuda.stream(stream):
    tensor = torch.zeros(1024, device="cuda")
    view = cuda.as_cuda_array(tensor, sync=False)
    copy = cuda.device_array(1024, "float32", stream=same)
    copy.copy_to_device(view, stream=same)
    result = torch.as_tensor(copy, device="cuda") + tensor
stream.synchronize()
