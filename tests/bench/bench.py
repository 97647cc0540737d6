#!/usr/bin/env python3
"""Measures cai.h, cai_stream.h and cai_emm.h against their budgets (section 8 of the design) and prints a table.

    tests/bench/bench.py            everything
    tests/bench/bench.py --check    what is the same on every machine: instructions, lines, sizes

Exit status 1 if a budget is exceeded, but for NOT_MET; times never fail. 77 with --check where instructions cannot
be counted (no valgrind). Needs gcc; x86-64 for the budgets of instructions and sizes.

Instructions: valgrind --tool=callgrind --toggle-collect=FUNCTION collects between entry and
return of the exported functions, callees included, the caller's loop not. The program runs once
with N and once with 2 N calls; their difference over N leaves out what happens only once, such as
the dynamic linker's look-up of memcpy.
"""

import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import timeit

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

EXCHANGE = "cai_exchange_begin cai_exchange_end"

# case of calls.c, functions, what it is, budget in instructions or None
INSTRUCTIONS = [
    ("init_2d", "cai_array_init", "cai_array_init, 2-D, C order", 200),
    ("init_4d", "cai_array_init", "cai_array_init, 4-D, strided", 350),
    ("import_2d", "cai_import", "cai_import, 2-D, C order", 300),
    ("import_4d", "cai_import", "cai_import, 4-D, strided", 480),
    ("import_cupy", "cai_import", "cai_import, 2-D with stream and descr (CuPy's)", None),
    ("expect_2d", "cai_expect", "cai_expect, 2-D, writable, no self-overlap", None),
    ("kernel_view_4d", "cai_kernel_view_of", "cai_kernel_view_of, 4-D", None),
    ("overlap_same", "cai_overlap", "cai_overlap, an array with itself", None),
    ("overlap_interleaved", "cai_overlap", "cai_overlap, even and odd columns", None),
    ("compile_record", "cai_fields_compile", "cai_fields_compile, record of 3 fields", None),
    ("export_2d", "cai_export", "cai_export, 2-D, version 3", None),
    ("slice_4d", "cai_view_slice", "cai_view_slice, 4-D, step -2", None),
    ("exchange_same_1", EXCHANGE, "exchange, 1 array on the consumer's stream", 60),
    ("exchange_same_8", EXCHANGE, "exchange, 8 arrays on the consumer's stream", 8 * 60),
    ("exchange_across_1", EXCHANGE, "exchange, 8 arrays on another stream", None),
    ("exchange_across_4", EXCHANGE, "exchange, 8 arrays on 4 other streams", None),
    ("alloc_free", "cai_emm_alloc cai_emm_free", "memory, allocate and free, no-op hooks", 150),
    ("view_free", "cai_emm_view cai_emm_free", "memory, view and free", None),
    ("retain_free", "cai_emm_retain cai_emm_free", "memory, retain and free", None),
    ("array_release", "cai_emm_array cai_array_release", "memory, array of 2-D and its release", None),
]
# CUDA calls of an exchange, once warm: (record, wait, create, destroy); queries are told, not limited
CUDA_CALLS = {"exchange_same_1": (0, 0, 0, 0), "exchange_same_8": (0, 0, 0, 0),
              "exchange_across_1": (2, 2, 0, 0), "exchange_across_4": (5, 8, 0, 0)}
LINES, SIZE, IMPORT_SIZE, COMPILE_SECONDS = 2800, 32 * 1024, 8 * 1024, 1.0
STREAM_LINES, EMM_LINES = 2000, 1200

# Budgets that are not met. The table says so; the exit status fails where they get worse than this.
NOT_MET = {"cai.h": 3160, "cai_stream.h": 3095, "cai_emm.h": 2680,
           "a unit that calls only cai_import (CAI_STATIC)": 12800,
           "memory, allocate and free, no-op hooks": 485}

IMPLEMENTATION = '#define CAI_IMPLEMENTATION\n#include "cai.h"\n'
STREAM = '#define CAI_IMPLEMENTATION\n#define CAI_NO_CUDART\n#include "cai_stream.h"\n'
ALL = '#define CAI_IMPLEMENTATION\n#define CAI_NO_CUDART\n#include "cai_emm.h"\n'
DECLARATIONS = '#include "cai.h"\nextern int declared;\n'
IMPORT_ONLY = """#define CAI_STATIC
#define CAI_IMPLEMENTATION
#include "cai.h"
int read_array(const cai_interface *in, cai_array *out, cai_error *err);
int read_array(const cai_interface *in, cai_array *out, cai_error *err)
{
    return cai_import(in, NULL, out, err);
}
"""


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"bench.py: {' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


class Table:
    """Prints rows as they come; remembers whether a budget was exceeded."""

    def __init__(self):
        self.exceeded = []

    def title(self, text):
        print(f"\n{text}")

    def row(self, what, value, unit, budget=None, binding=True):
        over = budget is not None and value > budget
        if over and binding and value > NOT_MET.get(what, budget):
            self.exceeded.append(what)
        said = "" if budget is None else f"<= {budget:g}" + ("  EXCEEDED" if over else "")
        print(f"  {what:<52}{f'{value:.6g}':>10} {unit:<13}{said}")


class Bench:
    def __init__(self, cc, folder):
        self.cc, self.folder, self.table = cc, folder, Table()
        self.x86 = platform.machine() in ("x86_64", "AMD64") and sys.maxsize > 2**32

    def compile(self, name, text, *flags):
        source, out = self.folder / f"{name}.c", self.folder / f"{name}.o"
        source.write_text(text)
        run(self.cc, "-std=c99", *flags, "-I", ROOT, "-c", source, "-o", out)
        return out

    def link_calls(self):
        implementation = self.compile("implementation", ALL, "-O2")
        program = self.folder / "calls"
        run(self.cc, "-std=c99", "-O2", "-I", ROOT, HERE / "calls.c", HERE / "hooks.c", implementation, "-o", program)
        return program

    # ------------------------------------------------------------- instructions

    def collected(self, program, case, functions, calls):
        toggles = [f"--toggle-collect={function}" for function in functions.split()]
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.folder / 'callgrind'}",
             *toggles, str(program), case, str(calls)],
            capture_output=True, text=True)
        found = re.search(r"Collected : ([0-9]+)", result.stderr)
        if result.returncode or not found:
            sys.exit(f"bench.py: {case}\n{result.stderr}")
        return int(found.group(1))

    def instructions(self):
        """False if they cannot be counted here."""
        self.table.title(f"instructions a call ({self.version()}, -O2, no LTO; callgrind)")
        if not shutil.which("valgrind"):
            print("  skipped: valgrind not found")
            return False
        program, calls = self.link_calls(), 100
        for case, function, what, budget in INSTRUCTIONS:
            once = self.collected(program, case, function, calls)
            twice = self.collected(program, case, function, 2 * calls)
            self.table.row(what, (twice - once) / calls, "instructions", budget, self.x86)
        return True

    def cuda_calls(self):
        self.table.title("CUDA calls of an exchange, begin and end, once warm")
        for line in run(self.link_calls(), "count").splitlines():
            case, *words = line.split()
            counts = dict(zip(words[::2], map(int, words[1::2])))
            wanted = dict(zip(("record", "wait", "create", "destroy"), CUDA_CALLS[case]))
            right = all(counts[name] == number for name, number in wanted.items())
            if not right:
                self.table.exceeded.append(case)
            print(f"  {case:<52}{' '.join(words)}{'' if right else f'  not {wanted}'}")

    # -------------------------------------------------------------------- sizes

    def section_bytes(self, objectfile):
        """Bytes of code and constants; tables of pointers (.data.rel.ro) are constants too."""
        total = 0
        for line in run("size", "-A", objectfile).splitlines():
            if re.match(r"\.(text|rodata|data\.rel\.ro)", line):
                total += int(line.split()[1])
        return total

    def sizes(self):
        self.table.title("size (-Os: .text, .rodata and .data.rel.ro of the object)")
        lines = len((ROOT / "cai.h").read_text().splitlines())
        self.table.row("cai.h", lines, "lines", LINES)
        whole = self.compile("whole", IMPLEMENTATION, "-Os")
        self.table.row("all of cai.h", self.section_bytes(whole), "bytes", SIZE, self.x86)
        lines = len((ROOT / "cai_stream.h").read_text().splitlines())
        self.table.row("cai_stream.h", lines, "lines", STREAM_LINES)
        both = self.compile("both", STREAM, "-Os")
        self.table.row("cai_stream.h without cai.h",
                       self.section_bytes(both) - self.section_bytes(whole), "bytes")
        lines = len((ROOT / "cai_emm.h").read_text().splitlines())
        self.table.row("cai_emm.h", lines, "lines", EMM_LINES)
        every = self.compile("every", ALL, "-Os")
        self.table.row("cai_emm.h without the other two",
                       self.section_bytes(every) - self.section_bytes(both), "bytes")
        only = self.compile("only", IMPORT_ONLY, "-Os")
        self.table.row("a unit that calls only cai_import (CAI_STATIC)", self.section_bytes(only),
                       "bytes", IMPORT_SIZE, self.x86)

    # -------------------------------------------------------------------- times

    def version(self):
        return run(self.cc, "--version").splitlines()[0]

    def compile_seconds(self, name, text, *flags):
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            self.compile(name, text, *flags)
            best = min(best, time.perf_counter() - start)
        return best

    def compile_times(self):
        self.table.title("compile time (best of 5)")
        for what, text, budget in [("an empty unit", "int declared;\n", None),
                                   ("declarations only", DECLARATIONS, None),
                                   ("implementation of cai.h", IMPLEMENTATION, None),
                                   ("implementation of the three headers", ALL, COMPILE_SECONDS)]:
            self.table.row(f"{what}, -O2", self.compile_seconds("timed", text, "-O2"), "s", budget,
                           binding=False)

    def call_times(self):
        self.table.title("time a call (best of 7; cai_import starts from tokens, the others from a "
                         "Python object\n  whose dictionary is prebuilt)")
        program = self.link_calls()
        for case, _, what, _ in INSTRUCTIONS:
            best = min(float(run(program, case, 1000000)) for _ in range(7))
            self.table.row(what, best, "ns")
        python_times(self.table)


# ------------------------------------------------------------------------ peers in Python

ITEMSIZES = {"<f4": 4, "<f8": 8, "<i4": 4, "<i8": 8, "|u1": 1}


def parse_as_consumers_do(exporter):
    """Reads and checks the dictionary in Python, as the consumers that are written in it do."""
    dictionary = exporter.__cuda_array_interface__
    shape, typestr = dictionary["shape"], dictionary["typestr"]
    pointer, read_only = dictionary["data"]
    strides, itemsize = dictionary.get("strides"), ITEMSIZES[typestr]
    if dictionary["version"] < 2 or dictionary.get("mask") is not None:
        raise ValueError("not supported")
    contiguous, size = [], itemsize
    for extent in reversed(shape):
        contiguous.insert(0, size)
        size *= extent
    if strides is None:
        strides = tuple(contiguous)
    return shape, strides, itemsize, size, pointer, read_only, list(strides) == contiguous


class Exporter:
    """Memory of the host under both names of the interface."""

    def __init__(self, shape, strides):
        self.memory = bytearray(1 << 16)
        import ctypes
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "strides": strides,
                                         "data": (address, False), "version": 3}
        self.__array_interface__ = self.__cuda_array_interface__


def best_nanoseconds(function):
    calls = 20000
    return min(timeit.repeat(function, number=calls, repeat=7)) / calls * 1e9


def python_times(table):
    exporters = [("2-D, C order", Exporter((20, 30), None)),
                 ("4-D, strided", Exporter((2, 3, 4, 5), (7680, 1280, 160, 8)))]
    version = platform.python_version()
    for name, exporter in exporters:
        table.row(f"a parser in Python {version}, {name}",
                  best_nanoseconds(lambda: parse_as_consumers_do(exporter)), "ns")
    try:
        import numpy
    except ImportError:
        print(f"  no NumPy for {sys.executable}")
        return
    for name, exporter in exporters:
        table.row(f"numpy.asarray, NumPy {numpy.__version__}, {name}",
                  best_nanoseconds(lambda: numpy.asarray(exporter)), "ns")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="stable counts only")
    parser.add_argument("--cc", default=os.environ.get("CAI_BENCH_CC", "gcc"))
    args = parser.parse_args()
    if not shutil.which(args.cc):
        print(f"skipped: no {args.cc}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(args.cc, pathlib.Path(name))
        counted = bench.instructions()
        bench.cuda_calls()
        bench.sizes()
        if not args.check:
            bench.compile_times()
            bench.call_times()
    if bench.table.exceeded:
        print("\nover budget: " + "; ".join(bench.table.exceeded))
        return 1
    return 0 if counted else 77


if __name__ == "__main__":
    sys.exit(main())
