# SPDX-License-Identifier: MIT
"""Libraries that do not run on the simulated driver, and what to do about each.

A library whose CUDA runtime is linked statically asks the driver for private tables, and finds none: the last of them
proves that the driver is its maker's, and this project does not answer that."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from typing import Any

from . import _native
from ._sites import library_of
from ._trace import Trace

# What a library is known by, what of it needs the static runtime, and the cure. The first that holds counts.
CURES = (
    (r"cupy_backends/cuda/api/runtime\.", "CuPy",
     "Run `{python} -m cai_sim.cupy` once: it builds this one module anew, in half a minute"),
    (r"/cupy/cuda/thrust\.", "CuPy's Thrust (sort, unique, median)", ""),
    (r"/cupy/cuda/cub\.", "CuPy's CUB (some sums and scans)", "CUPY_ACCELERATORS= (empty) goes without it"),
    (r"/cuda/bindings/.*runtime", "cuda.bindings.runtime (also Device.sync of cuda.core)",
     "Stream.sync(), or cuda.bindings.driver.cuCtxSynchronize(), does the same"),
    (r"/warp/", "Warp", ""),
)  # fmt: skip
GO_ON = re.compile(r"/lib(nvrtc|nvJitLink|nvvm)[-.]")  # compilers: they ask, and go on without
SHARED = "If you build it, link it with `nvcc -cudart shared`, or with CUDA_RUNTIME_LIBRARY Shared in CMake"
REASON = "its CUDA runtime is linked statically, and asks for private tables of the driver, which are not here"


def turned_away(trace: Trace) -> list[str]:
    """The files of the libraries that asked for private tables and stopped."""
    files: list[str] = []
    file = ctypes.create_string_buffer(4096)
    while trace.driver.cai_driver_turned_away(len(files), file, 4096):
        files.append(file.value.decode(errors="replace"))
    return [file for file in files if not GO_ON.search(file)]


def cure(file: str) -> str:
    """What does not run, why, and what to do."""
    name, base = library_of(file), os.path.basename(file)
    where = base if name == base else f"{base} of {name}"
    for pattern, part, text in CURES:
        if re.search(pattern, os.path.realpath(file)):
            advice = text.format(python=os.path.basename(sys.executable) or "python")
            return f"{part} does not run here ({where}): {REASON}" + (f". {advice}" if advice else "")
    return f"{where} does not run here: {REASON}. {SHARED}"


NO_RESULTS = (
    "Kernels do not run here: results are not there. A check of one fails, and a loop that waits for one may not end"
)
ALLOCATOR = (
    "cai_sim chose this allocator of PyTorch, so that each tensor is a block of its own. "
    "PYTORCH_ALLOC_CONF=backend:native in the environment goes back to the other one"
)
CUDNN = (
    "Of cuDNN, convolutions, graphs of operations and batch normalization are served. "
    "torch.backends.cudnn.enabled = False goes without it"
)


def cures(trace: Trace) -> list[str]:
    """A sentence for each library that was turned away."""
    return [cure(file) for file in turned_away(trace)]


def hints(trace: Trace, error: BaseException | None) -> list[str]:
    """What to know of an exception that ended the program."""
    lines = cures(trace)
    if isinstance(error, (AssertionError, KeyboardInterrupt)) and not trace.recorded:
        lines.append(NO_RESULTS)
    if "cudaMallocAsync does not" in str(error):
        lines.append(ALLOCATOR)
    if any(name.startswith("cudnn") for name in called(trace)):
        lines.append(CUDNN)
    return lines


def called(trace: Trace) -> list[str]:
    """The functions of the libraries above the driver that were called, and are not served."""
    names, one = [], _native.RuntimeFunction()
    for library in trace.runtimes:
        index = 0
        while library.cai_runtime_function_get(index, ctypes.byref(one)):
            index += 1
            if one.calls and not one.served:
                names.append(one.name.decode())
    return names


def short(trace: Trace) -> str:
    """The same for the first line of a report, or ""."""
    names = dict.fromkeys(library_of(file) for file in turned_away(trace))
    return f"{', '.join(names)} was turned away" if names else ""


def watch(trace: Trace) -> None:
    """An exception that ends the program is followed by the cures."""
    before = sys.excepthook

    def hook(*error: Any) -> None:
        before(*error)
        for line in hints(trace, error[1]):
            sys.stderr.write(f"cai_sim: {line}\n")

    sys.excepthook = hook
