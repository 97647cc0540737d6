# SPDX-License-Identifier: MIT
"""A layer of attention in half precision: graphs of operations of cuDNN."""
import torch
from torch.nn import functional

query, key, value = (torch.rand(1, 2, 64, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
layer = torch.nn.TransformerEncoderLayer(64, 2, dim_feedforward=128, batch_first=True, device="cuda")
print(out.shape, layer(torch.rand(3, 7, 64, device="cuda")).sum().item())
