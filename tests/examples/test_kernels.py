#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/bindings/kernels: both modules are built with CMake and nvcc, and are in order on the simulated driver.

    test_kernels.py --cmake cmake --nvcc nvcc --work FOLDER

Kernels do not run there, so the launch and the order are judged, and the sentences of wrong arguments. Exit status 0:
all is right; 1: not; 77 with a reason: no nanobind, pybind11, Numba or cai_sim.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
KERNELS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "bindings" / "kernels"
WANTED = (
    "array float32 (1000,)", "x: expected float32, on the device; got float32, 1-D, in host memory",
    "y: expected float32, on the device; got None", "x: array[dtype=float32]", "cai_sim: no race", "1 launch",
    "2 event records, 2 event waits",
)  # fmt: skip


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    for name in ("nanobind", "pybind11", "numba_cuda", "cai_sim"):
        if not importlib.util.find_spec(name):
            print(f"this Python has no {name}")
            return 77
    for step in (("-S", KERNELS, "-B", options.work, f"-DCMAKE_CUDA_COMPILER={options.nvcc}",
                  "-DCMAKE_CUDA_ARCHITECTURES=80", "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared",
                  f"-DPython_EXECUTABLE={sys.executable}"), ("--build", options.work)):  # fmt: skip
        done = run(options.cmake, *step)
        if done.returncode:
            print(done.stdout[-3000:], done.stderr[-3000:])
            return 1
    failures = 0
    for name in ("kernels_nanobind", "kernels_pybind11"):
        done = run(sys.executable, "-B", "-m", "cai_sim", KERNELS / "try.py", name, options.work)
        missing = [text for text in WANTED if text not in done.stdout + done.stderr]
        if done.returncode or missing:
            print(f"{name}: exit status {done.returncode}, without {missing}:", done.stdout, done.stderr, sep="\n")
            failures += 1
    print(f"2 modules, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
