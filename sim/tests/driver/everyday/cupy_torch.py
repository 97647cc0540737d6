# SPDX-License-Identifier: MIT
"""Memory of CuPy in PyTorch, and back."""
import cupy
import torch

given = cupy.full((20, 10), 3, dtype=cupy.float32)
tensor = torch.as_tensor(given, device="cuda").mul_(2)
print(cupy.asarray(tensor).sum(), cupy.from_dlpack(tensor.t().contiguous()).shape)
