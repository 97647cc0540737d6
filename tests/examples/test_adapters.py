#!/usr/bin/env python3
"""The shared object for PyTorch as PyTorch takes it: by ctypes, without a header. Hooks and CUDA's contexts are
Python functions here; without them, as many calls as this machine's CUDA allows.

    test_adapters.py --library build/libcai_torch.so [--nm nm]
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
from ctypes import c_char, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

NAMES = ["cai_torch_alloc", "cai_torch_counts", "cai_torch_free", "cai_torch_set_cuda", "cai_torch_set_hooks"]
ARGUMENT, ABI, CUDA, UNAVAILABLE, PENDING, OUT_OF_MEMORY = 1, 17, 18, 19, 24, 25

failures: list[str] = []


def same(what: str, got: object, expected: object) -> None:
    if got != expected:
        failures.append(f"{what}: {got!r}, not {expected!r}")


class Count(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in "allocated freed live_bytes peak_bytes empty failed".split()]
    _fields_ += [("first_failure", c_int32), ("native", c_int32)]


Alloc = ctypes.CFUNCTYPE(c_int, c_void_p, ctypes.POINTER(c_void_p), c_size_t, c_void_p)
Free = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_void_p)


class Hooks(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("version", c_uint32), ("flags", c_uint32), ("kind", c_int32)]
    _fields_ += [("ctx", c_void_p), ("device_alloc", Alloc), ("device_free", Free), ("name", c_char * 64)]


Current = ctypes.CFUNCTYPE(c_int32, c_void_p, ctypes.POINTER(c_uint64))
Push = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64)
Pop = ctypes.CFUNCTYPE(c_int32, c_void_p)
Retain = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int32, ctypes.POINTER(c_uint64))
Release = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int32)


class Cuda(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("version", c_uint32), ("flags", c_uint32), ("reserved", c_uint32)]
    _fields_ += [("self", c_void_p), ("current", Current), ("push", Push), ("pop", Pop), ("synchronize", c_void_p)]
    _fields_ += [("others", c_void_p * 43), ("retain", Retain), ("release", Release)]


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.cai_torch_alloc.restype = c_void_p
    library.cai_torch_alloc.argtypes = [c_size_t, c_int, c_void_p]
    library.cai_torch_free.restype = None
    library.cai_torch_free.argtypes = [c_void_p, c_size_t, c_int, c_void_p]
    return library


def counts(library: ctypes.CDLL, device: int) -> dict[str, int]:
    count = Count()
    same(f"cai_torch_counts({device})", library.cai_torch_counts(device, ctypes.byref(count)), 0)
    return {name: getattr(count, name) for name, _ in Count._fields_ if getattr(count, name)}


def check_symbols(path: str, nm: str) -> None:
    if not sys.platform.startswith("linux"):
        return
    run = subprocess.run([nm, "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    same("what the shared object exports", sorted(line.split()[-1] for line in run.stdout.splitlines()), NAMES)


class World:
    """Contexts 100 + device, none of them current; memory at made-up addresses."""

    def __init__(self) -> None:
        self.log: list[tuple[object, ...]] = []
        self.current = 0
        self.next = 0x10000
        self.error = 0
        self.hooks = Hooks(ctypes.sizeof(Hooks), 1, 0, 0, None, Alloc(self.alloc), Free(self.free), b"python")
        self.cuda = Cuda(ctypes.sizeof(Cuda), 1, 0, 0, None, Current(self.ask), Push(self.push), Pop(self.pop))
        self.cuda.retain, self.cuda.release = Retain(self.retain), Release(self.release)

    def alloc(self, ctx, out, size, stream):
        self.log.append(("alloc", self.current, size, stream))
        if self.error:
            return self.error
        out[0] = self.next
        self.next += 0x1000
        return 0

    def free(self, ctx, ptr, size, stream):
        self.log.append(("free", self.current, ptr, size, stream))
        return self.error

    def ask(self, _, out):
        out[0] = self.current
        return 0

    def push(self, _, context):
        self.log.append(("push", context))
        self.current = context
        return 0

    def pop(self, _):
        self.log.append(("pop",))
        self.current = 0
        return 0

    def retain(self, _, device, out):
        self.log.append(("retain", device))
        out[0] = 100 + device
        return 0

    def release(self, _, device):
        self.log.append(("release", device))
        return 0

    def take(self) -> list[tuple[object, ...]]:
        taken, self.log = self.log, []
        return taken


def check_python_hooks(path: str) -> None:
    library, world = load(path), World()
    same("set_cuda", library.cai_torch_set_cuda(ctypes.byref(world.cuda)), 0)
    same("set_cuda again", library.cai_torch_set_cuda(ctypes.byref(world.cuda)), PENDING)
    same("set_hooks", library.cai_torch_set_hooks(1, ctypes.byref(world.hooks)), 0)
    same("set_hooks of device 64", library.cai_torch_set_hooks(64, ctypes.byref(world.hooks)), ARGUMENT)
    world.hooks.version = 2
    same("set_hooks of another version", library.cai_torch_set_hooks(2, ctypes.byref(world.hooks)), ABI)
    a = library.cai_torch_alloc(1000, 1, 0x50)
    same("an address", a, 0x10000)
    same("calls", world.take(), [("retain", 1), ("push", 101), ("alloc", 101, 1000, 0x50), ("pop",)])
    same("an empty one", library.cai_torch_alloc(0, 1, 0x50), None)
    same("device -1", library.cai_torch_alloc(8, -1, 0x50), None)
    same("device 64", library.cai_torch_alloc(8, 64, 0x50), None)
    world.current = 101
    b = library.cai_torch_alloc(24, 1, None)
    library.cai_torch_free(b, 24, 1, None)
    same("calls with NULL", world.take(), [("alloc", 101, 24, 1), ("free", 101, b, 24, 1)])
    world.error = 2
    same("out of memory", library.cai_torch_alloc(1 << 40, 1, 0x50), None)
    world.error = 0
    library.cai_torch_free(a, 1000, 1, 0x50)
    same("counts", counts(library, 1), {"allocated": 2, "freed": 2, "peak_bytes": 1024, "empty": 1, "failed": 1,
                                       "first_failure": OUT_OF_MEMORY, "native": 2})
    same("counts of no device", counts(library, -1), {"failed": 2, "first_failure": CUDA, "native": 101})


def check_this_machine(path: str) -> str:
    """With CUDA as it is found here, if it is."""
    library = load(path)
    address = library.cai_torch_alloc(1 << 20, 0, None)
    library.cai_torch_free(address, 1 << 20, 0, None)
    found = counts(library, 0)
    if address:
        same("counts on a GPU", found, {"allocated": 1, "freed": 1, "peak_bytes": 1 << 20})
        return "GPU"
    same("failed", found.pop("failed"), 1)
    if found.get("first_failure") == UNAVAILABLE:
        return "no CUDA here"
    return f"CUDA here says {found}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--part", choices=["python_hooks", "this_machine"])
    options = parser.parse_args()
    if options.part:  # each in a process of its own, as there is one registry in each
        answer = globals()[f"check_{options.part}"](options.library)
        print("\n".join(failures) or answer or "ok")
        return 1 if failures else 0
    check_symbols(options.library, options.nm)
    said = {}
    for part in ("python_hooks", "this_machine"):
        run = subprocess.run([sys.executable, "-B", __file__, "--library", options.library, "--part", part],
                             capture_output=True, text=True)
        same(f"{part}\n{run.stdout}{run.stderr}", run.returncode, 0)
        said[part] = run.stdout.strip()
        if part == "python_hooks":
            same("lines on stderr", run.stderr.count("cai_torch: allocation of"), 3)
    print("\n".join(failures) or f"hooks in Python: {said['python_hooks']}; default hooks: {said['this_machine']}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
