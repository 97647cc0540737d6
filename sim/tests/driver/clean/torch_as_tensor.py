# SPDX-License-Identifier: MIT
"""`torch.as_tensor` does not read `stream`, so the program waits for the producer's stream first.

PyTorch's reference of `torch.as_tensor`, and Numba's page "CUDA Array Interface (Version 3)".
"""
import numpy as np
import torch
from numba import cuda

torch.cuda.init()
stream = cuda.stream()
host = cuda.pinned_array(1024, np.float32)
array = cuda.to_device(host, stream=stream)
stream.synchronize()
tensor = torch.as_tensor(array, device="cuda")
copy = tensor.clone()
torch.cuda.current_stream().synchronize()
array.copy_to_device(host, stream=stream)
stream.synchronize()
