#!/usr/bin/env python3
"""Trains a small network with every allocation of PyTorch through a table of hooks, and once more without.

    train.py --library build/libcai_torch.so [--steps 50]

Prints the counts of the table, and compares the losses of each step with those of PyTorch's own allocator. The
allocator must be chosen before anything is allocated, so each run is a process of its own. Exit status 77: there is
no PyTorch, or no GPU that it can use.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import pathlib
import subprocess
import sys
from typing import Any

SKIPPED = 77
TOLERANCE = 1e-5  # relative; the same kernels run on other addresses


class Count(ctypes.Structure):
    """cai_torch_count of cai_torch.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in "allocated freed live_bytes peak_bytes empty failed".split()]
    _fields_ += [("first_failure", ctypes.c_int32), ("native", ctypes.c_int32)]


def reason_to_skip() -> str:
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if not torch.version.cuda:
        return f"PyTorch {torch.__version__} is built without CUDA"
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no GPU"
    return ""


def use_table(library: str) -> None:
    from torch.cuda import memory

    table = memory.CUDAPluggableAllocator(library, "cai_torch_alloc", "cai_torch_free")
    memory.change_current_allocator(table)


def train(steps: int) -> list[float]:
    import torch
    from torch import nn

    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    x = torch.randn(512, 64).cuda()
    y = torch.sin(x[:, :8]) + x[:, 8:16].square()
    side, losses = torch.cuda.Stream(), []
    for _ in range(steps):
        loss = nn.functional.mse_loss(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.cuda.stream(side):  # memory of another stream, and none at all
            torch.ones(1000, device="cuda").sum().item()
            torch.empty(0, device="cuda")
    torch.cuda.synchronize()
    return losses


def work(library: str | None, steps: int) -> dict[str, Any]:
    """One run, in this process."""
    import torch

    if library:
        use_table(library)
    losses = train(steps)
    if not library:
        return {"losses": losses, "device": torch.cuda.get_device_name(), "torch": torch.__version__}
    count = Count()
    if ctypes.CDLL(library).cai_torch_counts(torch.cuda.current_device(), ctypes.byref(count)):
        sys.exit("cai_torch_counts failed")
    return {"losses": losses, "count": {name: getattr(count, name) for name, _ in Count._fields_}}


def run(library: str | None, steps: int) -> dict[str, Any]:
    """One run, in a process of its own."""
    command = [sys.executable, __file__, "--worker", "--steps", str(steps)]
    command += ["--library", library] if library else []
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def compare(own: dict[str, Any], table: dict[str, Any], steps: int) -> list[str]:
    count, wrong = table["count"], []
    largest = max(abs(a - b) / max(abs(a), 1e-12) for a, b in zip(own["losses"], table["losses"]))
    print(f"{own['device']}, PyTorch {own['torch']}, {steps} steps")
    print(f"loss {own['losses'][0]:.6f} to {own['losses'][-1]:.6f}; with the table {table['losses'][-1]:.6f}; "
          f"largest relative difference {largest:.1e}")
    print("the table saw: " + ", ".join(f"{name} {value}" for name, value in count.items() if value))
    if largest > TOLERANCE:
        wrong.append(f"the losses differ by {largest:.1e}")
    if not own["losses"][-1] < own["losses"][0]:
        wrong.append("the network did not learn")
    if count["allocated"] < steps:
        wrong.append("allocations went past the table")
    if count["failed"]:
        wrong.append(f"{count['failed']} allocations or frees failed, first with {count['native']}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", help="libcai_torch.so")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.library, options.steps)))
        return 0
    if not options.library:
        parser.error("--library is needed")
    reason = reason_to_skip()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    library = str(pathlib.Path(options.library).resolve())
    wrong = compare(run(None, options.steps), run(library, options.steps), options.steps)
    print("\n".join(wrong) or "the same losses")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
