# SPDX-License-Identifier: MIT
"""A recurrent layer: its functions of cuDNN are not served."""
import torch

layer = torch.nn.GRU(12, 6).cuda()
print(layer(torch.rand(9, 2, 12, device="cuda"))[0].shape)
