# SPDX-License-Identifier: MIT
"""What libraries in Python know of the source of their machine code, for the driver: PTX tells reads from writes.

NVRTC and nvJitLink have stand-ins (_native.load_compilers). Triton runs a compiler of its own as another program, and
keeps the PTX beside the machine code in its cache; its public hook for kernels that are loaded names both files. The
cache is used as it is. CuPy's cache has machine code alone, so settings of its own keep CuPy from loading that."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

TRITON = "triton.knobs"


def explain(driver: ctypes.CDLL, files: Any) -> None:
    """Gives the driver the PTX of a kernel of Triton. files: {name: path} of its cache."""
    found = {os.path.splitext(str(name))[1]: path for name, path in dict(files or {}).items()}
    try:
        with open(found[".cubin"], "rb") as cubin, open(found[".ptx"], "rb") as ptx:
            image, text = cubin.read(), ptx.read()
    except (KeyError, OSError):
        return
    driver.cai_driver_source(image, len(image), text, len(text))


def watch_triton(driver: ctypes.CDLL, knobs: ModuleType) -> None:
    """Adds the hook. A Triton without it is judged by machine code."""
    chain = getattr(getattr(knobs, "runtime", None), "kernel_load_start_hook", None)
    if hasattr(chain, "add"):
        chain.add(lambda module, function, name, files, hash: explain(driver, files))


class After:
    """A finder that finds nothing, but calls a function when one module has been imported."""

    def __init__(self, name: str, function: Callable[[ModuleType], None]) -> None:
        self.name, self.function = name, function

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            self.function(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def ask(driver: ctypes.CDLL, recorded: bool) -> None:
    """Makes the libraries tell. recorded: their machine code runs on a real driver, so it stays as it is."""
    if TRITON in sys.modules:
        watch_triton(driver, sys.modules[TRITON])
    else:
        sys.meta_path.insert(0, After(TRITON, lambda knobs: watch_triton(driver, knobs)))  # type: ignore[arg-type]
    if recorded:
        os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")  # kernels are compiled in each run, so NVRTC is asked
    else:
        os.environ.setdefault("CUPY_COMPILE_WITH_PTX", "1")  # images are PTX. They have names of their own in the cache
