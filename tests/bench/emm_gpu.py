#!/usr/bin/env python3
"""emm_gpu.cu beside the pools of CuPy and PyTorch, in one run: ratios, with versions.

    emm_gpu.py --program build/tests/bench/emm_gpu

CuPy and PyTorch are called from Python, which their times contain; the time of an empty Python call stands
beside them. Whichever is not installed is named. Exit status 77: skipped, no GPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from typing import Any, Callable

SKIPPED, REPEATS, BLOCKS = 77, 7, 64
PAIRS = {"pair of 256 B": 256, "pair of 1 MiB": 1 << 20, "pair of 64 MiB": 64 << 20}
BASE = "cudaMallocAsync, cudaFreeAsync"


def best(turn: Callable[[], int]) -> float:
    """Nanoseconds an allocation; `turn` returns how many it made."""
    least = 1e30
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        count = turn()
        least = min(least, (time.perf_counter_ns() - start) / count)
    return least


def pair(alloc: Callable[[int], Any], size: int) -> Callable[[], int]:
    def turn() -> int:
        for _ in range(5000):
            alloc(size)  # freed with the reference
        return 5000

    return turn


def mixed(alloc: Callable[[int], Any]) -> Callable[[], int]:
    def turn() -> int:
        for _ in range(50):
            blocks = [alloc(256 << (i * 7 % 13)) for i in range(BLOCKS)]
            for i in range(BLOCKS):
                blocks[i * 29 % BLOCKS] = None
        return 50 * BLOCKS

    return turn


def times_of(alloc: Callable[[int], Any]) -> dict[str, float]:
    times = {name: best(pair(alloc, size)) for name, size in PAIRS.items()}
    return {**times, "mixed": best(mixed(alloc))}


def cupy_times(cupy: Any) -> dict[str, float]:
    with cupy.cuda.Stream(non_blocking=True):
        return times_of(cupy.get_default_memory_pool().malloc)


def torch_times(torch: Any) -> dict[str, float]:
    """Storage without a tensor; freed when the reference goes."""
    if not torch.cuda.is_available():
        raise RuntimeError("finds no GPU")
    torch.cuda.init()
    with torch.cuda.stream(torch.cuda.Stream()):
        return times_of(lambda size: torch.UntypedStorage(size, device="cuda"))


def peers() -> dict[str, dict[str, float]]:
    found = {"an empty Python call": times_of(lambda size: None)}
    for name, measure in (("cupy", cupy_times), ("torch", torch_times)):
        try:
            module = importlib.import_module(name)
            found[f"{name} {module.__version__}, its pool"] = measure(module)
        except Exception as error:  # a peer that does not work is named, and is no failure of ours
            print(f"{name}: left out: {type(error).__name__}: {error}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    run = subprocess.run([options.program, "--json"], capture_output=True, text=True)
    if run.returncode:
        print((run.stdout + run.stderr).strip())
        return run.returncode
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    table: dict[str, dict[str, float]] = {}
    for line in lines[1:]:
        table.setdefault(line["way"], {})[line["pattern"]] = line["ns"]
    table.update(peers())
    print(f"{lines[0]['device']}, runtime {lines[0]['runtime']}, driver {lines[0]['driver']}, "
          f"Python {sys.version.split()[0]}; nanoseconds an allocation and its free, best of {REPEATS}")
    for pattern in (*PAIRS, "mixed"):
        print(f"\n{pattern}")
        for way, times in table.items():
            print(f"  {way:34} {times[pattern]:12.0f}   {times[pattern] / table[BASE][pattern]:8.2f} of {BASE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
