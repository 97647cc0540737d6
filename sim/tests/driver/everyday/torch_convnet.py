# SPDX-License-Identifier: MIT
"""A small network with batch normalization, trained and used: cuDNN."""
import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(1, 4, 5, padding=2), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(196, 10)).cuda()
images, labels = torch.rand(16, 1, 28, 28, device="cuda"), torch.arange(16, device="cuda") % 10
nn.functional.cross_entropy(net(images), labels).backward()
with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
    print(net.eval()(images).shape)
