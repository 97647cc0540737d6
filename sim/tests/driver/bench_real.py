#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What checking costs: a program of exchanges between numba-cuda and cuda.core, on the simulated driver.

    bench_real.py [--exchanges 10000]

The same program runs twice: with the simulated driver alone, and with the package cai_sim, which keeps the line of each
call and judges the order at the end. Each exchange is a copy on Numba's stream, a view of cuda.core that orders its
stream behind that, a copy there, and a wait of Numba's stream. Prints times, their ratio, and the
memory that one operation takes. Times are those of this machine. Exit status 77: a library is missing.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import pathlib
import subprocess
import sys
import time


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def program(exchanges: int, checked: bool) -> dict[str, float]:
    if checked:
        import cai_sim

        cai_sim.start()
    else:
        package = pathlib.Path(importlib.util.find_spec("cai_sim").origin).parent
        ctypes.CDLL(str(package / "lib" / "libcuda.so.1"), ctypes.RTLD_GLOBAL)
    import numpy
    from cuda.core import Buffer, Device, Stream
    from cuda.core.utils import StridedMemoryView
    from numba import cuda

    host = numpy.zeros(256, "f4")
    mine = cuda.stream()
    x = cuda.device_array(256, "f4", stream=mine)
    device = Device(0)
    device.set_current()
    theirs = device.create_stream()
    room = device.allocate(1024, stream=theirs)
    done = device.create_event()
    back = Stream.from_handle(int(mine.handle))
    before, began = resident(), time.perf_counter()
    for _ in range(exchanges):
        x.copy_to_device(host, stream=mine)
        view = StridedMemoryView.from_cuda_array_interface(x, int(theirs.handle))
        room.copy_from(Buffer.from_handle(view.ptr, 1024), stream=theirs)
        theirs.record(done)
        back.wait(done)
    took, grown = time.perf_counter() - began, resident() - before
    said = {"seconds": took, "bytes": grown}
    if checked:
        began = time.perf_counter()
        said["races"], said["operations"] = len(cai_sim.races()), cai_sim.position()
        said["judged"] = time.perf_counter() - began
    return said


def run(exchanges: int, checked: bool) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", __file__, "--exchanges", str(exchanges), "--child", "01"[checked]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=10000)
    parser.add_argument("--child", choices="01", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(program(options.exchanges, options.child == "1")))
        return 0
    for name in ("cai_sim", "numba.cuda", "cuda.core"):
        try:
            found = importlib.util.find_spec(name)
        except ImportError:
            found = None
        if not found:
            print(f"skipped: no {name}")
            return 77
    plain, checked = run(options.exchanges, False), run(options.exchanges, True)
    each = 1e6 / options.exchanges
    print(f"{options.exchanges} exchanges, {checked['operations']:.0f} operations, {checked['races']:.0f} races")
    print(f"the simulated driver alone: {plain['seconds']:.2f} s, {plain['seconds'] * each:.1f} us an exchange")
    print(f"with the package:           {checked['seconds']:.2f} s, {checked['seconds'] * each:.1f} us an exchange, "
          f"{checked['seconds'] / plain['seconds']:.2f} times as long")
    print(f"judged at the end:          {checked['judged']:.2f} s")
    print(f"memory: {plain['bytes'] / checked['operations']:.0f} bytes an operation, "
          f"{checked['bytes'] / checked['operations']:.0f} with the package")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
