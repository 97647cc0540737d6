#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an import costs: of dictionaries through cai_python.h, beside NumPy and mpi4py, in one run.

    bench_python.py --cc COMPILER [--dlpack FOLDER] [--repeat 7]

Best of 7 runs of a loop each, the runs of all lines interleaved; nanoseconds per call, and less those of a call that
does nothing. mpi4py is measured where it can be imported, DLPack's exchange of a type in C where FOLDER has dlpack/dlpack.h.
The two types that offer an exchange are of the benchmark, and hold the same array. Exit status 77 where the build needs something that is
missing.
"""

import argparse
import platform
import subprocess
import sys
import tempfile
import timeit

sys.dont_write_bytecode = True
from build_module import ROOT, build, load, needs  # noqa: E402

ENTRIES = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
LONG = {**ENTRIES, "strides": (12, 4), "stream": 1, "descr": [("", "<f4")]}


def with_attribute(name, entries):
    made = type("Holder", (), {"__slots__": (name,)})()
    setattr(made, name, entries)
    return made


class Property:
    @property
    def __cuda_array_interface__(self):
        return {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}


def frombuffer_of_mpi4py():
    """MPI.memory.frombuffer and the version; or None, and why not."""
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        return None, " ".join(str(error).split())
    kind = getattr(MPI, "buffer", None) or MPI.memory
    return kind.frombuffer, mpi4py.__version__


def subjects(bench, numpy, frombuffer):
    array = numpy.zeros((2, 3), "f4")
    prebuilt, longer = (with_attribute("__cuda_array_interface__", entries) for entries in (ENTRIES, LONG))
    host = with_attribute("__array_interface__", {**ENTRIES, "data": array.__array_interface__["data"]})
    contiguous = with_attribute("__cuda_array_interface__", {**ENTRIES, "stream": 1})
    made = [
        ("a call that does nothing", bench.nothing, prebuilt),
        ("the bare reads of a prebuilt dictionary", bench.reads, prebuilt),
        ("cai_import of its entries, tagged before", bench.judge, prebuilt),
        ("cai: prebuilt dictionary", bench.device, prebuilt),
        ("the bare reads with strides, stream and descr", bench.reads, longer),
        ("cai: the same with strides, stream and descr", bench.device, longer),
        ("cai: dictionary made by a property", bench.device, Property()),
        ("that property alone", lambda o: o.__cuda_array_interface__, Property()),
        ("cai: prebuilt __array_interface__", bench.host, host),
        ("cai: numpy.ndarray (__array_interface__)", bench.host, array),
        ("that attribute of numpy.ndarray alone", lambda o: o.__array_interface__, array),
        ("cai: export, version 3 with stream", bench.interface, None),
        ("numpy.asarray, prebuilt __array_interface__", numpy.asarray, host),
        ("numpy.array(copy=False), the same", lambda o: numpy.array(o, copy=False), host),
        ("numpy.from_dlpack of a numpy.ndarray", numpy.from_dlpack, array),
    ]
    ours = bench.Exchanger()
    made += [
        ("type-level exchange, the table at hand", bench.raw_exchange, ours),
        ("cai: type-level exchange, borrowed", bench.borrowed, ours),
        ("cai: type-level exchange, owned", bench.device, ours),
    ]
    if hasattr(bench, "Tensor"):
        theirs = bench.Tensor()
        made += [
            ("DLPack's exchange, the table at hand, borrowed", bench.raw_tensor, theirs),
            ("DLPack's exchange, the table at hand, owned", bench.raw_managed, theirs),
            ("cai: DLPack's exchange", bench.device, theirs),
        ]
    if frombuffer:
        made.append(("mpi4py frombuffer, prebuilt dictionary", frombuffer, prebuilt))
        made.append(("mpi4py frombuffer, the same with stream", frombuffer, contiguous))
    return made


def compiler_version(cc):
    return subprocess.run([cc, "--version"], capture_output=True, text=True).stdout.splitlines()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--dlpack")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--number", type=int, default=100000, help="calls of a run")
    options = parser.parse_args()
    needs(numpy=True, cc=options.cc)
    import numpy

    frombuffer, about = frombuffer_of_mpi4py()
    with tempfile.TemporaryDirectory() as folder:
        source = ROOT / "tests" / "examples" / "python" / "bench_python.c"
        flags = ["-O2"] + (["-DBENCH_DLPACK", "-isystem", options.dlpack] if options.dlpack else [])
        bench = load(build(options.cc, folder, "bench_python", [source], [ROOT, ROOT / "ext"], flags), "bench_python")
        timers = [(name, timeit.Timer("f(o)", globals={"f": function, "o": given}))
                  for name, function, given in subjects(bench, numpy, frombuffer)]
        best = dict.fromkeys((name for name, _ in timers), float("inf"))
        for _ in range(options.repeat):
            for name, timer in timers:
                best[name] = min(best[name], timer.timeit(options.number) / options.number * 1e9)
    print(f"Python {platform.python_version()}, NumPy {numpy.__version__}, "
          f"mpi4py {about if frombuffer else f'not measured: {about}'}")
    print(f"{compiler_version(options.cc)}, -O2; best of {options.repeat} runs of {options.number} calls")
    nothing = best["a call that does nothing"]
    for name, _ in timers:
        print(f"{name:48} {best[name]:8.1f} ns {best[name] - nothing:8.1f} above a call")


if __name__ == "__main__":
    sys.exit(main())
