# SPDX-License-Identifier: MIT
"""Transforms: cuFFT."""
import cupy

signal = cupy.random.random((8, 256)).astype(cupy.complex64)
print(cupy.fft.ifft2(cupy.fft.fft2(signal)).shape, cupy.fft.rfft(signal.real).shape)
