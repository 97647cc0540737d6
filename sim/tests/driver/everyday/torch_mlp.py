# SPDX-License-Identifier: MIT
"""A regression with two layers: cuBLAS, cuBLASLt."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(20, 40), nn.GELU(), nn.Linear(40, 3)).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    batch, target = torch.rand(50, 20).to("cuda"), torch.rand(50, 3).to("cuda")
    loss = nn.functional.mse_loss(model(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(step, loss.item())
