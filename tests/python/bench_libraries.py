#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an import of an array of a real library costs: cai_python.h beside what the libraries themselves have.

    bench_libraries.py [--repeat 7] [--number 20000]

Best of 7 runs of a loop each, the runs of all lines interleaved; nanoseconds per call, and less those of a call that
does nothing. On the host always, on the device where there is one. What cannot be imported is named with the reason.
cai's lines import and release; the others make an array or a view of the library, and drop it. Exit status 77 where
the build needs something that is missing.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import timeit
from typing import Any, Callable, Iterator

sys.dont_write_bytecode = True
import library_support as support  # noqa: E402

Line = tuple[str, Callable[..., Any], tuple[Any, ...]]


def opened(kinds: tuple[Any, ...], *arguments: Any) -> list[Any]:
    """The libraries that are there; the others are named."""
    made = []
    for kind in kinds:
        try:
            made.append(kind(*arguments))
        except support.Missing as missing:
            print(f"not measured: {kind.name}: {missing}")
    return made


def host_lines(module: Any, numpy: Any) -> Iterator[Line]:
    libraries = opened(support.HOST)
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    for library in libraries:
        array = library.make(values)
        for way, export in library.ways.items():
            if way != "__dlpack__" or module.HAS_DLPACK:
                yield f"host: cai, {library.name} {way}", module.take, (export(array),)
    ours, array = module.saxpy(1, values, values), values.copy()
    yield "host: cai, an array with __cai_exchange__", module.take, (ours,)
    for library in libraries:
        for how, (take, _) in library.take.items():
            if how != "from_dlpack" or module.HAS_DLPACK:
                yield f"host: {library.name} {how}, of NumPy", take, (array,)


def device_lines(module: Any, numpy: Any) -> Iterator[Line]:
    why = module.device()
    if why:
        print(f"not measured: the device: {why}")
        return
    values = numpy.arange(6, dtype="f4")
    mine, arrays = module.stream(), []
    libraries = opened(support.DEVICE, module)
    for library in libraries:
        stream = library.stream()
        array = library.put(values, stream)
        for way, (export, _) in library.ways.items():
            with library.current(stream):
                arrays.append((f"{library.name} {way}", export(array)))
    ours = module.upload(values, mine)
    arrays.append(("an array with __cai_exchange__", ours))
    for name, array in arrays:
        yield f"device: cai, {name}", module.take, (array, 0)
    # one exporter for all: what they cost differs by who reads, not by who is read
    for name, array in (("ours", ours), *((n, a) for n, a in arrays if n in ("CuPy as is", "PyTorch as is"))):
        for library in libraries:
            stream = library.stream()
            for how, (take, _) in library.take.items():
                yield f"device: {library.name} {how}, of {name}", take, (array, stream)


def usable(lines: Iterator[Line]) -> list[Line]:
    """Those that work at all; the others are named."""
    good = []
    for name, function, arguments in lines:
        try:
            function(*arguments)
            good.append((name, function, arguments))
        except Exception as error:
            print(f"not measured: {name}: {type(error).__name__}: {' '.join(str(error).split())[:100]}")
    return good


def versions() -> str:
    names = "numpy torch jax apache-tvm-ffi cuda-core warp-lang cupy-cuda13x cupy-cuda12x numba-cuda rmm-cu13 rmm-cu12".split()
    found = ((name, support.version(name)) for name in names)
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {it}" for name, it in found if it != "?")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--number", type=int, default=20000, help="calls of a run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            numpy, module = support.need("numpy"), support.build(folder)
            compiler = subprocess.run([support.compiler(), "--version"], capture_output=True, text=True).stdout
        except support.Missing as missing:
            print("skipped:", missing)
            return 77
        lines: list[Line] = [("a call that does nothing", module.nothing, (None,))]
        lines += usable(host_lines(module, numpy)) + usable(device_lines(module, numpy))
        best = dict.fromkeys((name for name, _, _ in lines), float("inf"))
        for _ in range(options.repeat):
            for name, function, arguments in lines:
                timer = timeit.Timer("f(*a)", globals={"f": function, "a": arguments})
                best[name] = min(best[name], timer.timeit(options.number) / options.number * 1e9)
        print(f"{versions()}\n{compiler.splitlines()[0]}, -O2")
        print(f"best of {options.repeat} runs of {options.number} calls")
        nothing = best["a call that does nothing"]
        for name in best:
            print(f"{name:56} {best[name]:9.1f} ns {best[name] - nothing:9.1f} above a call")
    return 0


if __name__ == "__main__":
    sys.exit(main())
