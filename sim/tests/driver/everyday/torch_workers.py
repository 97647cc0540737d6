# SPDX-License-Identifier: MIT
"""Batches of two worker processes, copied from pinned memory."""
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.arange(96.0).reshape(32, 3), torch.arange(32))
    for rows, numbers in DataLoader(data, 8, num_workers=2, pin_memory=True):
        rows = rows.to("cuda", non_blocking=True)
        means = rows.mean(dim=1)
    print(means.cpu().shape)
