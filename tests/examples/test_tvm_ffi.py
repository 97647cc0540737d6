#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ext/cai_tvm_ffi.h: the saxpy of the example and functions of tvm_ffi_more.c, called from Python through tvm_ffi.

    test_tvm_ffi.py --cc gcc [--python PYTHON] [--self-test]

On the host: numbers, layouts, sentences, results, and that nothing stays alive. On the simulated driver (python -m
cai_sim): work in order over two streams, and work that is not, which must be a race. With --self-test defects are planted
in a copy of the header, and each must be found. Exit status 0: all is right; 1: not; 3: it does not compile; 77 with a
reason: no apache-tvm-ffi, no cai_sim or no compiler.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import pathlib
import resource
import subprocess
import sys
import tempfile
from typing import Any, Callable

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE)]
from build_module import needs, skip  # noqa: E402
from caster_support import ROOT, STRICT, ended, raised, run, same  # noqa: E402

RACE = 4  # exit status of cai_sim
DEFECTS = [
    ("any stream is the legacy one", "return stream ? (uint64_t)(uintptr_t)stream : (uint64_t)CAI_STREAM_LEGACY;",
     "(void)stream;\n    return CAI_STREAM_LEGACY;"),
    ("no stream is 0", ": (uint64_t)CAI_STREAM_LEGACY;", ": 0;"),
    ("an argument has no order", "options.sync = CAI_SYNC_STREAM;", "options.sync = CAI_SYNC_NONE;"),
    ("the struct is where the object begins", "+ sizeof(TVMFFIObject));\n}\n\nCAI_API cai_status cai_tvm_ffi_array",
     "+ 0 * sizeof(TVMFFIObject));\n}\n\nCAI_API cai_status cai_tvm_ffi_array"),
    ("anything is a tensor", "    if (!tensor) return cai_priv_tvm_refuse(args, index, \"a tensor\", err);\n",
     "    if (!tensor) tensor = (const DLTensor *)value->v_ptr;\n    if (!tensor) return cai_priv_tvm_refuse(args, index, \"\", err);\n"),
    ("no pointer is a tensor", "    if (value->type_index == kTVMFFIDLTensorPtr)", "    if (0)"),
    ("errors without a name", "return cai_error_name(cai_priv_tvm_describe(tensor, out, err), args->names[index], err);",
     "return cai_priv_tvm_describe(tensor, out, err);"),
    ("too many arguments", "    if (given > count)", "    if (0)"),
    ("a float is an integer", "if (value->type_index != kTVMFFIInt && value->type_index != kTVMFFIBool)",
     "if (value->type_index != kTVMFFIInt && value->type_index != kTVMFFIBool && value->type_index != kTVMFFIFloat)"),
    ("an integer is no float", "*out = (double)value->v_int64;", "*out = value->v_float64;"),
    ("a result stays after an error", "        (void)TVMFFIObjectDecRef(result->v_obj);\n", ""),
    ("a message stays alive", "    (void)TVMFFIObjectDecRef(error);\n", "    (void)TVMFFIObjectIncRef(error);\n    memset(error, 0, 0);\n"),
    ("every error is a lack of memory", "    if (cell->kind.size == sizeof memory - 1 && !memcmp(cell->kind.data, memory, sizeof memory - 1))",
     "    if (cell->kind.size || memory[0])"),
    ("a room is not freed", "    free(storage); /*", "    (void)storage; /*"),
    ("given without an order", "else status = cai_dlpack_export_ordered_versioned(array, pool, stream, 0, room, &managed, err);",
     "else (void)pool, (void)stream, status = cai_dlpack_export_versioned(array, CAI_DLPACK_ORDERED, &room->storage, &managed, err);"),
    ("every error is a RuntimeError", "case name: return #exception;", "case name: return \"RuntimeError\";"),
]  # fmt: skip


# ------------------------------------------------------------------------------- in a process of its own
def on_host(module: Any) -> None:
    import numpy
    import tvm_ffi

    x = numpy.arange(24, dtype="f4").reshape(4, 6)
    for way in (lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[:0], tvm_ffi.from_dlpack):
        y = numpy.ones_like(x)
        module.saxpy(2.0, way(x), way(y))
        if way is not tvm_ffi.from_dlpack:
            expected = numpy.ones_like(x)
            way(expected)[...] += 2 * way(x)
            same("saxpy", y.tolist(), expected.tolist())
    module.saxpy(True, x, y)
    same("saxpy of a bool", y.tolist(), (1 + 3 * x).tolist())
    for what, arguments, sentence in (
        ("too few", (2.0, x), "TypeError: y is missing: there are 2 arguments, not 3"),
        ("none", (), "TypeError: a is missing: there are 0 arguments, not 3"),
        ("too many", (2.0, x, y, y), "TypeError: there are 4 arguments, not 3"),
        ("None", (2.0, None, y), "TypeError: x: expected a tensor, got None"),
        ("a number for a tensor", (2.0, x, 3), "TypeError: y: expected a tensor, got int"),
        ("a text for a number", ("long enough for an object", x, y), "TypeError: a: expected a number, got ffi.String"),
        ("a tensor for a number", (y, x, y), "TypeError: a: expected a number, got ffi.Tensor"),
        ("a function", (2.0, on_host, y), "TypeError: x: expected a tensor, got ffi.Function"),
        ("a dtype", (2.0, x, y.astype("f8")), "ValueError: y: expected float32, no self-overlap; got float64"),
        ("a shape", (2.0, x[:3], y), "ValueError: shape[0] = 3 in x, 4 in y"),
    ):
        got = raised(module.saxpy, *arguments)
        same(what, got if sentence == got else got[: len(sentence)], sentence)
    same("an argument", module.described(x[:, 1:3]), f"float32 (4, 2) strides (24, 4), strided, no pending work, at {x.ctypes.data + 4:#x}")
    same("a pointer", module.by_pointer(x), 1)
    same("integers", [module.as_int(-(2**62)), module.as_int(True)], [-(2**62), 1])
    same("a float is no integer", raised(module.as_int, 1.5), "TypeError: first: expected an integer, got float")
    same("floats", [module.as_float(1.5), module.as_float(-2), module.as_float(False)], [1.5, -2.0, 0.0])
    same("misuse", module.misuse(x), 22)
    asked: list[Any] = []

    class Plain:  # has no table
        def __dlpack_device__(self) -> Any:
            return x.__dlpack_device__()

        def __dlpack__(self, **keywords: Any) -> Any:
            asked.append(keywords)
            return x.__dlpack__(**keywords)

    module.described(Plain())
    same("tvm_ffi passes no stream: cai_tvm_ffi.h says so", asked, [{}])
    results(module, x)


def results(module: Any, x: Any) -> None:
    import numpy

    same("no allocator", raised(module.plus_one, x)[:75],
         "RuntimeError: the environment's allocator: TVMFFIEnvTensorAlloc: allocator ")  # fmt: skip
    module.use_allocator(True)
    for array in (x, x.T, x[:0], x[0, 0, ...]):
        same("a new tensor", numpy.from_dlpack(module.plus_one(array)).tolist(), (array + 1).tolist())
    kept = module.plus_one(x)
    same("one is alive", module.alive(), 1)
    same("an error after the result was made", raised(module.plus_one, x.astype("f8"))[:34], "ValueError: x: expected float32; g")
    same("still one", module.alive(), 1)
    same("the allocator's error", raised(module.plus_one, x, 1001), "RuntimeError: the environment's allocator: more than 1000")
    same("the allocator's lack of memory", raised(module.plus_one, x, 2001), "MemoryError: the environment's allocator: more than 1000")
    same("a wrong size", raised(module.plus_one, x, -1)[:11], "ValueError:")
    module.use_allocator(False)
    given = module.on_host(5)
    view = numpy.from_dlpack(given)
    same("given", view.tolist(), [0, 1, 2, 3, 4])
    del given
    same("a view keeps what was given", module.alive(), 2)
    same("an array that cannot be given", raised(module.on_host, 5, 0)[:14], "RuntimeError: ")  # BufferError
    same("it is released", module.alive(), 2)
    del view, kept
    gc.collect()
    same("all is released", module.alive(), 0)
    same("memory that stays, of results", grown(lambda: module.on_host(7)), "less than 4 MB")
    same("memory that stays, of errors", grown(lambda: raised(module.plus_one, x)), "less than 4 MB")
    same("released again", module.alive(), 0)


def grown(call: Callable[[], Any]) -> str:
    """How much memory the process has got by many calls."""

    def resident() -> int:
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    if not sys.platform.startswith("linux"):
        return "less than 4 MB"
    for _ in range(1000):
        call()
    before = resident()
    for _ in range(10000):
        call()
    more = (resident() - before) >> 20
    return "less than 4 MB" if more < 4 else f"{more} MB"


def on_device(module: Any, way: str) -> None:
    """Two arrays are written in a stream of theirs, and used in the environment's. "apart": in two that are not ordered."""
    import tvm_ffi
    from cuda.core import Device

    device = Device()
    device.set_current()
    module.open_device()
    theirs, mine, other = (device.create_stream() for _ in range(3))
    place = tvm_ffi.device("cuda:0")
    with tvm_ffi.use_raw_stream(place, int(mine.handle)):
        x, y = module.filled(1024, 7, int(theirs.handle)), module.filled(1024, 1, int(theirs.handle))
        same("of the device", module.described(x).split(", at")[0],
             f"float32 (1024,), C-contiguous, stream {int(mine.handle):#x}, device 0")  # fmt: skip
        if way == "in_order":
            module.saxpy(1.0, x, y)
            same("numbers", module.first(y), 7)
            host = tvm_ffi.from_dlpack(__import__("numpy").zeros(1024, "f4"))
            same("two memories", raised(module.saxpy, 1.0, host, y), "ValueError: x, y: one is in other memory than the other")
    if way == "apart":
        with tvm_ffi.use_raw_stream(place, int(other.handle)):
            module.saxpy(1.0, x, y)
    same("no stream was set", module.described(y).split(", ")[2], "stream 1")
    del x, y
    gc.collect()
    module.close_device()


def with_torch(module: Any) -> None:
    """PyTorch's current stream is the environment's, and its allocator, too."""
    import torch

    torch.cuda.init()
    torch.empty(1, device="cuda")
    module.open_device()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x, y = (torch.empty(1024, device="cuda") for _ in range(2))
        x.copy_(torch.full((1024,), 7.0).pin_memory(), non_blocking=True)
        same("of PyTorch", module.described(x).split(", ")[2], f"stream {stream.cuda_stream:#x}")
        module.saxpy(1.0, x, y)
        same("numbers of PyTorch", y.cpu().tolist(), [7.0] * 1024)
    host = torch.arange(6.0).reshape(2, 3)
    made = module.plus_one(host.T)
    same("made by PyTorch", (type(made), made.tolist()), (torch.Tensor, (host.T + 1).tolist()))


def inside(library: str, way: str) -> int:
    import tvm_ffi

    module = tvm_ffi.load_module(library)
    if way in ("host", "torch"):
        on_host(module) if way == "host" else with_torch(module)
    else:
        on_device(module, way)
    return ended()


# --------------------------------------------------------------------------------------- the test
def build(options: argparse.Namespace, folder: pathlib.Path, headers: pathlib.Path) -> pathlib.Path:
    tvm = options.tvm
    library = folder / "saxpy.so"
    flags = ["-std=c99", "-D_DEFAULT_SOURCE", "-O1", "-g", "-fPIC", "-shared", *STRICT, "-DCAI_NO_CUDART"]
    run([options.cc, *flags, ROOT / "examples" / "bindings" / "tvm_ffi" / "saxpy.c", HERE / "tvm_ffi_more.c", f"-I{headers}",
         f"-I{ROOT}", f"-I{ROOT / 'ext'}", "-isystem", tvm / "include", f"-L{tvm / 'lib'}", "-ltvm_ffi",
         f"-Wl,-rpath,{tvm / 'lib'}", "-ldl", "-lpthread", "-o", library])  # fmt: skip
    return library


def verdict(options: argparse.Namespace, library: pathlib.Path, way: str) -> str:
    """Empty, or what is wrong."""
    sim = [] if way == "host" else ["-m", "cai_sim"]
    command = [options.python, "-B", *sim, __file__, "--inside", library, way]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    wanted = RACE if way == "apart" else 0
    if done.returncode == wanted and " 0 failures" in done.stdout:
        return ""
    return f"{way}: exit status {done.returncode}, not {wanted}\n{done.stdout[-3000:]}{done.stderr[-1500:]}"


def ways(options: argparse.Namespace) -> list[str]:
    def has(modules: str) -> bool:
        return subprocess.run([options.python, "-c", f"import tvm_ffi, {modules}"], capture_output=True).returncode == 0

    on_driver = ["in_order", "apart"] if has("cai_sim, cuda.core") else []
    by_torch = ["torch"] if has("cai_sim, torch") else []
    print("" if on_driver else "skipped: the simulated driver: no cai_sim, or no cuda.core\n", end="")
    return ["host", *on_driver, *by_torch]


def self_test(options: argparse.Namespace, folder: pathlib.Path) -> None:
    text = (ROOT / "ext" / "cai_tvm_ffi.h").read_text(encoding="utf-8")
    for number, (name, before, after) in enumerate(DEFECTS):
        at = folder / f"defect{number}"
        at.mkdir()
        same(f"{name}: in the header", text.count(before), 1)
        (at / "cai_tvm_ffi.h").write_text(text.replace(before, after), encoding="utf-8")
        library = build(options, at, at)
        found = any(verdict(options, library, way) for way in ways(options))
        same(f"{name}: found", found, True)
    print(f"{len(DEFECTS)} defects planted")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(*options.inside)
    needs(numpy=True, cc=options.cc)
    found = importlib.util.find_spec("tvm_ffi")
    if not found or not found.origin:
        skip("this Python has no tvm_ffi (pip install apache-tvm-ffi)")
    options.tvm = pathlib.Path(found.origin).parent
    with tempfile.TemporaryDirectory(prefix="cai-tvm-") as name:
        folder = pathlib.Path(name)
        if options.self_test:
            self_test(options, folder)
        else:
            library = build(options, folder, ROOT / "ext")
            for way in ways(options):
                same(way, verdict(options, library, way), "")
    return ended()


if __name__ == "__main__":
    sys.exit(main())
