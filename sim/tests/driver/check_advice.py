#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The line "between the two" of a report is code: pasted into the program that races, it makes the program clean.

    check_advice.py [--python PYTHON] [--only CONSUMER-PRODUCER]

For each two of the libraries that PYTHON can import, for their default streams, and for a stream made by ctypes ("bare"),
one writes an array in its stream and the other one writes it in its own. The line that the report prints is put between the two. Exit status 0: all
repaired programs are clean; 1: not; 77: there is no package cai_sim, or fewer than two libraries.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Of a library: its import, a stream of its own, a default stream that its own do not wait for, and a call that writes the
# array in {stream}.
LIBRARIES = {
    "torch": ("import torch; torch.cuda.init()", "torch.cuda.Stream()", "torch.cuda.default_stream()",
              "with torch.cuda.stream({stream}): torch.as_tensor(array, device='cuda').fill_(1)"),
    "cupy": ("import cupy", "cupy.cuda.Stream(non_blocking=True)", "cupy.cuda.Stream.null",
             "with {stream}: cupy.asarray(array).fill(1)"),
    "numba": ("from numba import cuda", "cuda.stream()", "cuda.per_thread_default_stream()",
              "cuda.as_cuda_array(array, sync=False).copy_to_device(host, stream={stream})"),
    "cuda.core": ("from cuda.core import LEGACY_DEFAULT_STREAM, Buffer, Stream", "device.create_stream()", "LEGACY_DEFAULT_STREAM",
                  "Buffer.from_handle(address, 4096).fill(1, stream={stream})"),
    "pycuda": ("import pycuda.autoprimaryctx, pycuda.driver", "pycuda.driver.Stream()", "",
               "pycuda.driver.memset_d8_async(address, 1, 4096, {stream})"),
}  # fmt: skip
PROGRAM = """
import ctypes, warnings
from cuda.core import Device
{imports}
warnings.simplefilter("error")
if {bare}: warnings.simplefilter("ignore", DeprecationWarning)  # of CuPy: there is no other way from a handle

device = Device()
device.set_current()
made, bare = ctypes.c_uint64(), ctypes.c_void_p()
driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuMemAlloc_v2(ctypes.byref(made), ctypes.c_size_t(4096)) == 0
address = made.value

class Array:
    __cuda_array_interface__ = dict(version=3, shape=(1024,), typestr="<f4", data=(address, False), strides=None)

array = Array()
if "cuda.as_cuda_array" in {both!r}:
    from numba import cuda
    import numpy
    host = cuda.pinned_array(1024, numpy.float32)
    cuda.as_cuda_array(array, sync=False)
{first}
{second}
{write_first}
{between}
{write_second}
device.set_current()
"""
# Producers and consumers that make their stream themselves, by ctypes.
BARE = ("", "int(bare.value or driver.cuStreamCreate(ctypes.byref(bare), 1) or bare.value)", "",
        "assert driver.cuMemsetD8Async(ctypes.c_uint64(address), 1, ctypes.c_size_t(4096), ctypes.c_void_p({stream})) == 0")  # fmt: skip


def program(producer: tuple[str, ...], consumer: tuple[str, ...], default: str, between: str = "") -> str:
    first = "first = " + (producer[2] if default == "producer" else producer[1])
    second = "second = " + (consumer[2] if default == "consumer" else consumer[1])
    writes = producer[3].format(stream="first"), consumer[3].format(stream="second")
    imports = "\n".join(dict.fromkeys((producer[0], consumer[0])))
    return PROGRAM.format(bare=BARE in (producer, consumer), imports=imports, both=" ".join(writes), first=first, second=second,
                          write_first=writes[0], write_second=writes[1], between=between)  # fmt: skip


def run(python: str, folder: pathlib.Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(text)
    command = [python, "-W", "ignore", "-m", "cai_sim", "program.py"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env=os.environ)


def advice(report: str) -> str:
    """The line of the first race. A stream without a name in the report gets that of the program."""
    found = re.search(r"^  nothing makes (\S+) wait for (\S+)\n  between the two: (.*)$", report, re.M)
    if found is None:
        return ""
    code = re.sub(rf"\b{found[1]}\b", "second", found[3]) if found[1][0] == "s" else found[3]
    return re.sub(rf"\b{found[2]}\b", "first", code) if found[2][0] == "s" else code


def check(python: str, folder: pathlib.Path, title: str, pair: tuple[tuple[str, ...], tuple[str, ...]], default: str) -> bool:
    """One pair: it races, and with the line of the report it does not."""
    raced = run(python, folder, program(*pair, default))
    line = advice(raced.stderr)
    if raced.returncode != 4 or not line:
        print(f"wrong: {title}: status {raced.returncode}, and no race with advice\n{raced.stdout}{raced.stderr}")
        return False
    mended = run(python, folder, program(*pair, default, line))
    good = mended.returncode == 0
    print(f"{title}: {line}", flush=True)
    if not good:
        print(f"wrong: status {mended.returncode}\n{mended.stdout}{mended.stderr}")
    return good


def there(python: str, name: str) -> bool:
    """Whether a library can be imported."""
    command = [python, "-c", f"import cai_sim; cai_sim.start(); import {name}"]
    return subprocess.run(command, capture_output=True).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    names = [name for name in LIBRARIES if there(options.python, name)]
    if "cuda.core" not in names or len(names) < 2:
        print(f"skipped: the package cai_sim, cuda.core and another library are needed, and there is: {names}")
        return 77
    pairs = itertools.product([*names, "bare"], repeat=2)
    cases = [(*pair, "") for pair in pairs if not set(pair) <= {"bare", "pycuda"} or pair == ("pycuda", "pycuda")]  # else: calls in C
    cases += [(name, name, side) for name in names if LIBRARIES[name][2] for side in ("producer", "consumer")]
    right = []
    os.environ["CUPY_CUDA_ARRAY_INTERFACE_SYNC"] = "0"
    with tempfile.TemporaryDirectory() as name:
        for consumer, producer, default in cases:
            title = f"{consumer}-{producer}" + (f", default stream of the {default}" if default else "")
            if options.only and options.only != f"{consumer}-{producer}":
                continue
            pair = LIBRARIES.get(producer, BARE), LIBRARIES.get(consumer, BARE)
            right.append(check(options.python, pathlib.Path(name), title, pair, default))
    print(f"{sum(right)} of {len(right)} pairs are clean with the line of the report")
    return 0 if right and all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
