# SPDX-License-Identifier: MIT
"""Transforms: cuFFT."""
import torch

signal = torch.rand(6, 128, device="cuda")
print(torch.fft.irfft(torch.fft.rfft(signal)).shape, torch.fft.fftn(torch.rand(4, 8, 6, device="cuda")).shape)
