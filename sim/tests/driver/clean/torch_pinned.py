# SPDX-License-Identifier: MIT
"""Batches go to the device from pinned memory with `non_blocking=True`, on a stream that loads ahead.

PyTorch's tutorial on `pin_memory()` and `non_blocking`.
"""
import torch

load, work = torch.cuda.Stream(), torch.cuda.current_stream()
total = torch.zeros(1024, device="cuda")
for step in range(4):
    batch = torch.full((1024,), float(step)).pin_memory()
    with torch.cuda.stream(load):
        loaded = batch.to("cuda", non_blocking=True)
    work.wait_stream(load)
    loaded.record_stream(work)
    total += loaded
back = total.to("cpu", non_blocking=True)
torch.cuda.synchronize()
