#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an import of an array of a real library costs: cai_python.h beside what the libraries themselves have.

    bench_libraries.py [--repeat 7] [--number 20000]

Best of 7 runs of a loop each, the runs of all lines interleaved; nanoseconds per call, and less those of a call that
does nothing. On the host always, on the device where there is one. What cannot be imported is named with the reason.
cai's lines import and release; the others make an array or a view of the library, and drop it. At the end each array is
one line, with all who read it side by side. `python -m cai_sim bench_libraries.py` has a simulated device, whose calls
of CUDA take other times than those of a driver. Exit status 77 where the build needs something that is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import operator
import platform
import subprocess
import sys
import tempfile
import timeit
from typing import Any, Callable, Iterator

sys.dont_write_bytecode = True
import library_support as support  # noqa: E402

NOTHING = "a call that does nothing"
FATAL = {("nanobind ndarray", "ctypes")}  # nanobind 3.1.0 ends the process: the buffer has no strides


@dataclasses.dataclass(frozen=True, eq=False)
class Line:
    """Who reads what, and the call that does it."""

    place: str
    reader: str
    given: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def name(self) -> str:
        return f"{self.place}: {self.reader}, of {self.given}" if self.place else NOTHING


def opened(kinds: tuple[Any, ...], *arguments: Any) -> list[Any]:
    """The libraries that are there; the others are named."""
    made = []
    for kind in kinds:
        try:
            made.append(kind(*arguments))
        except support.Missing as missing:
            print(f"not measured: {kind.name}: {missing}")
    return made


def peers(folder: str, numpy: Any) -> dict[str, Callable[[Any], Any]]:
    """Who takes arrays of any library: nanobind's ndarray, NumPy, cuda.core, Python's own views."""
    found: dict[str, Callable[[Any], Any]] = {"NumPy from_dlpack": numpy.from_dlpack, "memoryview": memoryview}
    for name, make in (("nanobind ndarray", lambda: support.build_nanobind(folder).take_ro),
                       ("cuda.core view", cuda_core_view)):  # fmt: skip
        try:
            found[name] = make()
        except support.Missing as missing:
            print(f"not measured: {name}: {missing}")
    return found


def cuda_core_view() -> Callable[[Any], Any]:
    view = support.need("cuda.core.utils").StridedMemoryView
    return lambda thing: view.from_any_interface(thing, stream_ptr=-1)


def host_lines(module: Any, numpy: Any, others: dict[str, Callable[[Any], Any]]) -> Iterator[Line]:
    libraries = opened(support.HOST)
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    for library in libraries:
        array = library.make(values)
        for way, export in library.ways.items():
            if way != "__dlpack__" or module.HAS_DLPACK:
                yield Line("host", "cai", f"{library.name} {way}", module.take, (export(array),))
        for reader, take in others.items():
            if (reader, library.name) not in FATAL:
                yield Line("host", reader, f"{library.name} as is", take, (array,))
    ours, array = module.saxpy(1, values, values), values.copy()
    yield Line("host", "cai", "an array with __cai_exchange__", module.take, (ours,))
    for library in libraries:
        for how, (take, _) in library.take.items():
            if how != "from_dlpack" or module.HAS_DLPACK:
                yield Line("host", f"{library.name} {how}", "NumPy as is", take, (array,))


def device_lines(module: Any, numpy: Any, others: dict[str, Callable[[Any], Any]]) -> Iterator[Line]:
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
        yield Line("device", "cai", name, module.take, (array, 0))
        if not name.endswith(" as is"):
            continue
        if hasattr(array, "__cuda_array_interface__"):
            alone = operator.attrgetter("__cuda_array_interface__")
            yield Line("device", "its dictionary alone", name, alone, (array,))
        for reader in ("nanobind ndarray", "cuda.core view"):
            if reader in others:
                yield Line("device", reader, name, others[reader], (array,))
    # one exporter for all: what they cost differs by who reads, not by who is read
    for name, array in (("ours", ours), *((n, a) for n, a in arrays if n in ("CuPy as is", "PyTorch as is"))):
        for library in libraries:
            stream = library.stream()
            for how, (take, _) in library.take.items():
                yield Line("device", f"{library.name} {how}", name, take, (array, stream))


def usable(lines: Iterator[Line]) -> list[Line]:
    """Those that work at all; the others are named."""
    good = []
    for line in lines:
        try:
            line.function(*line.arguments)
            good.append(line)
        except Exception as error:
            print(f"not measured: {line.name}: {type(error).__name__}: {' '.join(str(error).split())[:100]}")
    return good


def side_by_side(place: str, net: dict[Line, float]) -> None:
    """What is read by several readers: a row for each array, a column for each reader."""
    lines = [line for line in net if line.place == place]
    rows = [given for given in dict.fromkeys(line.given for line in lines)
            if len({line.reader for line in lines if line.given == given}) > 1]  # fmt: skip
    columns = [reader for reader in dict.fromkeys(line.reader for line in lines)
               if len({line.given for line in lines if line.reader == reader}) > 1]  # fmt: skip
    for row in rows:
        found = {line.reader: net[line] for line in lines if line.given == row}
        print(f"{place}: {row}: " + "; ".join(f"{column} {found[column]:.0f}" for column in columns if column in found))


def versions() -> str:
    names = "numpy torch jax apache-tvm-ffi cuda-core warp-lang cupy-cuda13x cupy-cuda12x numba-cuda rmm-cu13 rmm-cu12 nanobind".split()
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
        others = peers(folder, numpy)
        lines = [Line("", "", "", module.nothing, (None,))]
        lines += usable(host_lines(module, numpy, others)) + usable(device_lines(module, numpy, others))
        best = dict.fromkeys(lines, float("inf"))
        for _ in range(options.repeat):
            for line in lines:
                timer = timeit.Timer("f(*a)", globals={"f": line.function, "a": line.arguments})
                best[line] = min(best[line], timer.timeit(options.number) / options.number * 1e9)
        print(f"{versions()}\n{compiler.splitlines()[0]}, -O2")
        print(f"best of {options.repeat} runs of {options.number} calls")
        net = {line: value - best[lines[0]] for line, value in best.items()}
        for line, value in best.items():
            print(f"{line.name:64} {value:9.1f} ns {net[line]:9.1f} above a call")
        print("\nside by side, ns above a call")
        side_by_side("host", net)
        side_by_side("device", net)
    return 0


if __name__ == "__main__":
    sys.exit(main())
