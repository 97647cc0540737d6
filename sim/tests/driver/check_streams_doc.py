#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs what docs/streams.md says of libraries: each statement is quoted here, and compared with what the library does.

    check_streams_doc.py [--only TEXT]

The libraries run on the simulated driver. Those that are not installed are skipped, with their rows. Where a cell of
the document is not the one that is quoted here, or a row says "simulated" without a program here, the check fails.
Exit status 0: all is as the document says; 1: not; 77: no package cai_sim, or no library.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import warnings
import weakref
from typing import Any, Callable

try:
    import cai_sim
    from cai_sim import _native
except ImportError:
    print("skipped: no package cai_sim (pip install ./sim/python)")
    sys.exit(77)

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "streams.md"
TABLES = {"consumer": "### As consumers of", "producer": "### As producers of", "dlpack": "### DLPack\n"}
LEGACY, PER_THREAD = 1, 2
NONBLOCKING = 1  # CU_STREAM_NON_BLOCKING
ITEMS = 8  # floats of an array here


# ------------------------------------------------------------------------------ the document


def rows(table: str) -> dict[str, dict[str, str]]:
    """The rows of a table by their first cell. Links are their text."""
    text = DOCUMENT.read_text(encoding="utf-8")
    part = re.split(r"\n##+ ", text[text.index(TABLES[table]) + 4:])[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    cells = [[re.sub(r"\[([^]]*)\]\[[^]]*\]", r"\1", cell.strip()) for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0].strip("| "): dict(zip(cells[0], row)) for row in cells[1:]}


class Statement:
    """A row of a table, what it says, and the program that tries it."""

    def __init__(self, table: str, row: str, package: str, says: dict[str, str], environment: dict[str, str],
                 program: Callable[[World], None]) -> None:  # fmt: skip
        self.table, self.row, self.package, self.says, self.environment = table, row, package, says, environment
        self.program = program
        self.name = program.__name__


STATEMENTS: list[Statement] = []


def statement(table: str, row: str, package: str, says: dict[str, str], **environment: str) -> Callable[[Any], Any]:
    """Adds a program. With an environment it runs in a process of its own."""

    def add(program: Callable[[World], None]) -> Callable[[World], None]:
        STATEMENTS.append(Statement(table, row, package, says, environment, program))
        return program

    return add


# ------------------------------------------------------------------------------ the world


class Exporter:
    """Device memory of nobody's library, with work pending on `stream`. Keeps what it is asked for in `asked`."""

    def __init__(self, world: World, stream: int | None, dlpack: bool = False) -> None:
        self.address = world.memory(4 * ITEMS)
        self.asked: list[Any] = []
        self.table = {"shape": (ITEMS,), "typestr": "<f4", "data": (self.address, False), "version": 3, "stream": stream}
        if stream is not None:
            world.work(self.address, stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.table


class Asked(Exception):
    """Ends an import by DLPack: what was passed is known."""


class Capsules:
    """Something to import by DLPack, which tells only what it is asked for."""

    def __init__(self) -> None:
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **options: Any) -> Any:
        self.streams.append(options.get("stream", "nothing"))
        raise Asked


class World:
    """The simulated driver, called without a library."""

    def __init__(self) -> None:
        cai_sim.start()
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.trace = cai_sim._running()
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.context = context
        self.enter()

    def enter(self) -> None:
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *arguments: Any) -> None:
        error = getattr(self.cuda, name)(*arguments)
        assert error == 0, f"{name}: error {error}"

    def stream(self) -> int:
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), NONBLOCKING)
        return made.value

    def memory(self, size: int) -> int:
        made = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(size))
        return made.value

    def work(self, address: int, stream: int) -> None:
        self.call("cuMemsetD8Async", ctypes.c_uint64(address), 1, ctypes.c_size_t(4 * ITEMS), ctypes.c_void_p(stream))

    def name(self, stream: int) -> str:
        """The name in what `calls` returns."""
        before = self.trace.count()
        self.work(self.memory(4 * ITEMS), stream)
        return next(self.trace.stream(op) for op in self.trace.operations(before + 1) if op.stream)

    def calls(self, action: Callable[[], Any]) -> list[str]:
        """What `action` orders: "record s1", "s2 waits for s1", "host waits for s1"."""
        before = self.trace.count()
        kept = action()  # lives until its calls were read
        recorded, said = {}, []
        for op in self.trace.operations(before + 1):
            stream = self.trace.stream(op)
            if op.kind == _native.RECORD:
                recorded[op.event] = stream
                said.append(f"record {stream}")
            elif op.kind == _native.WAIT:
                said.append(f"{stream} waits for {recorded.get(op.event, '?')}")
            elif op.kind == _native.SYNCHRONIZE:
                awaited = [self.trace.one(op.waits[i]) for i in range(op.wait_count)]
                said += [f"host waits for {self.trace.stream(one)}" for one in awaited if one.stream]
        del kept
        return said

    def streams_of(self, action: Callable[[], Any]) -> set[str]:
        """The streams of the copies and launches of `action`."""
        before = self.trace.count()
        action()
        return {self.trace.stream(op) for op in self.trace.operations(before + 1) if op.kind in (_native.COPY, _native.LAUNCH)}


def same(got: Any, expected: Any, what: str = "") -> None:
    assert got == expected, f"{what}{': ' if what else ''}{got!r}, not {expected!r}"


def refuses(kind: type[BaseException], action: Callable[[], Any]) -> None:
    try:
        action()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def lives_with(world: World, take: Callable[[Exporter], Any]) -> None:
    """The exporter lives as long as what was made of it, and no longer. No call orders what comes then."""
    owner = Exporter(world, None)
    known = weakref.ref(owner)
    made = take(owner)
    del owner
    gc.collect()
    assert known() is not None, "the owner is gone while its consumer lives"

    def drop() -> None:
        nonlocal made
        made = None
        gc.collect()

    same(world.calls(drop), [], "at the end")
    assert known() is None, "the owner outlives its consumer"


def not_held(world: World, use: Callable[[Exporter], Any]) -> None:
    owner = Exporter(world, None)
    known = weakref.ref(owner)
    use(owner)
    del owner
    gc.collect()
    assert known() is None, "the owner is held after the call"


def passed(take: Callable[[Any], Any], producer: Capsules | None = None) -> Any:
    """The stream that a consumer passes to __dlpack__."""
    producer = producer or Capsules()
    try:
        take(producer)
    except Asked:
        pass
    return producer.streams[0]


# ------------------------------------------------------------------------------- numba-cuda

NUMBA = "numba-cuda 0.30.4"


@statement("consumer", f"{NUMBA}, `as_cuda_array`", "numba-cuda", {
    "`stream` read": "yes",
    "waits how": "host synchronizes that stream; off with `NUMBA_CUDA_ARRAY_INTERFACE_SYNC=0` or `sync=False`",
    "back edge": "the array's own methods then work in the producer's stream; a kernel does so only if launched there",
    "owner": "with the array",
})  # fmt: skip
def numba_as_cuda_array(world: World) -> None:
    from numba import cuda

    stream = world.stream()
    name = world.name(stream)
    same(world.calls(lambda: cuda.as_cuda_array(Exporter(world, stream))), [f"host waits for {name}"])
    same(world.calls(lambda: cuda.as_cuda_array(Exporter(world, stream), sync=False)), [])
    same(world.calls(lambda: cuda.as_cuda_array(Exporter(world, None))), [])
    array = cuda.as_cuda_array(Exporter(world, stream))
    same(world.streams_of(array.copy_to_host), {name}, "its methods")
    kernel = cuda.jit("void(float32[:])")(lambda values: None)
    other = cuda.stream()
    same(world.streams_of(lambda: kernel[1, 1, other](array)), {world.name(int(other.handle))}, "a kernel")
    lives_with(world, cuda.as_cuda_array)


@statement("consumer", f"{NUMBA}, `as_cuda_array`", "numba-cuda", {}, NUMBA_CUDA_ARRAY_INTERFACE_SYNC="0")
def numba_without_wait(world: World) -> None:
    from numba import cuda

    same(world.calls(lambda: cuda.as_cuda_array(Exporter(world, world.stream()))), [])


@statement("consumer", f"{NUMBA}, kernel argument", "numba-cuda", {
    "`stream` read": "yes, unless the object has `__dlpack__`, which comes first",
    "waits how": "event by cuda.core, then the host synchronizes that stream, too",
    "back edge": "none",
    "owner": "until the launch has returned",
})  # fmt: skip
def numba_kernel_argument(world: World) -> None:
    from numba import cuda

    kernel = cuda.jit("void(float32[:])")(lambda values: None)
    theirs, mine = world.stream(), cuda.stream()
    names = world.name(theirs), world.name(int(mine.handle))
    said = world.calls(lambda: kernel[1, 1, mine](Exporter(world, theirs)))
    same(said, [f"record {names[0]}", f"{names[1]} waits for {names[0]}", f"host waits for {names[0]}"])
    not_held(world, lambda thing: kernel[1, 1, mine](thing))

    class Both(Capsules):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            self.streams.append("dictionary")
            return Exporter(world, None).__cuda_array_interface__

    same(passed(lambda thing: kernel[1, 1, mine](thing), Both()), int(mine.handle), "asked for first")


@statement("producer", NUMBA, "numba-cuda", {"version": "3", "`stream`": "default stream of the array, `None` if it has none"})
def numba_dictionary(world: World) -> None:
    from numba import cuda

    stream = cuda.stream()
    table = cuda.device_array(ITEMS, stream=stream).__cuda_array_interface__
    same((table["version"], table["stream"]), (3, int(stream.handle)))
    same(cuda.device_array(ITEMS).__cuda_array_interface__["stream"], None)


@statement("dlpack", f"{NUMBA}, kernel argument", "numba-cuda", {
    "as a consumer it passes": "stream of the launch, `None` for stream 0",
})  # fmt: skip
def numba_passes(world: World) -> None:
    from numba import cuda

    kernel = cuda.jit("void(float32[:])")(lambda values: None)
    stream = cuda.stream()
    same(passed(lambda thing: kernel[1, 1, stream](thing)), int(stream.handle))
    same(passed(lambda thing: kernel[1, 1](thing)), None)


# --------------------------------------------------------------------------------- cuda.core

CORE = "cuda.core 1.2.2"


@statement("consumer", f"{CORE}, `StridedMemoryView`", "cuda-core", {
    "`stream` read": "yes; 0 is an assertion",
    "waits how": "event; nothing if the streams are equal, or for `stream_ptr=-1`",
    "back edge": "none",
    "owner": "with the view",
})  # fmt: skip
def core_view(world: World) -> None:
    from cuda.core import Device
    from cuda.core.utils import StridedMemoryView

    Device(0).set_current()
    world.enter()
    theirs, mine = world.stream(), world.stream()
    names = world.name(theirs), world.name(mine)
    said = world.calls(lambda: StridedMemoryView.from_cuda_array_interface(Exporter(world, theirs), mine))
    same(said, [f"record {names[0]}", f"{names[1]} waits for {names[0]}"])
    for stream in (theirs, -1):
        same(world.calls(lambda: StridedMemoryView.from_cuda_array_interface(Exporter(world, theirs), stream)), [], str(stream))
    bad = Exporter(world, None)
    bad.table["stream"] = 0
    refuses(AssertionError, lambda: StridedMemoryView.from_cuda_array_interface(bad, mine))
    lives_with(world, lambda thing: StridedMemoryView.from_cuda_array_interface(thing, mine))


@statement("dlpack", f"{CORE}", "cuda-core", {
    "as a consumer it passes": "what the caller gives, which must not be `None`; `None` in place of 0",
    "as a producer it": "`Buffer`: ignores the stream; its comment leaves the order to the user",
})  # fmt: skip
def core_dlpack(world: World) -> None:
    from cuda.core import Device
    from cuda.core.utils import StridedMemoryView

    device = Device(0)
    device.set_current()
    stream = world.stream()
    same([passed(lambda thing: StridedMemoryView.from_dlpack(thing, given)) for given in (stream, -1, 0)], [stream, -1, None])
    refuses(BufferError, lambda: StridedMemoryView.from_dlpack(Capsules(), None))
    mine = device.create_stream()
    buffer = device.allocate(4 * ITEMS, stream=mine)
    world.work(int(buffer.handle), int(mine.handle))
    for given in (None, -1, 1, stream):
        same(world.calls(lambda: buffer.__dlpack__(stream=given)), [], str(given))


# ------------------------------------------------------------------------------------ PyCUDA

PYCUDA = "PyCUDA 2026.1"


@statement("consumer", f"{PYCUDA}, kernel argument", "pycuda", {
    "`stream` read": "no", "waits how": "not at all", "back edge": "none", "owner": "not held after the call",
})  # fmt: skip
def pycuda_kernel_argument(world: World) -> None:
    import pycuda.autoprimaryctx  # noqa: F401
    from pycuda import driver

    kernel = driver.module_from_buffer(PTX).get_function("touch")
    stream = driver.Stream()
    for theirs in (world.stream(), 0, None):  # 0 is not legal: it is not read
        exporter = Exporter(world, None)
        exporter.table["stream"] = theirs
        said = world.calls(lambda: kernel(exporter, block=(1, 1, 1), stream=stream))
        same(said, [], str(theirs))
    not_held(world, lambda thing: kernel(thing, block=(1, 1, 1), stream=stream))


PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 touch_param_0)
{
    ret;
}
"""


@statement("producer", f"{PYCUDA}, `GPUArray`", "pycuda", {"version": "3", "`stream`": "always `None`"})
def pycuda_dictionary(world: World) -> None:
    import numpy
    import pycuda.autoprimaryctx  # noqa: F401
    from pycuda import driver, gpuarray

    host = numpy.zeros(ITEMS, "f4")
    array = gpuarray.to_gpu_async(host, stream=driver.Stream())
    table = array.__cuda_array_interface__
    same((table["version"], table["stream"]), (3, None))


# -------------------------------------------------------------------------------------- CuPy

CUPY = "CuPy 14.2.0"  # after python -m cai_sim.cupy


@statement("consumer", CUPY, "cupy-cuda13x", {
    "`stream` read": "yes",
    "waits how": "host synchronizes that stream; off with `CUPY_CUDA_ARRAY_INTERFACE_SYNC=0`",
    "back edge": "none",
    "owner": "with the array",
})  # fmt: skip
def cupy_asarray(world: World) -> None:
    import cupy

    stream = world.stream()
    name = world.name(stream)
    same(world.calls(lambda: cupy.asarray(Exporter(world, stream))), [f"host waits for {name}"])
    same(world.calls(lambda: cupy.asarray(Exporter(world, None))), [])
    lives_with(world, cupy.asarray)


@statement("consumer", CUPY, "cupy-cuda13x", {}, CUPY_CUDA_ARRAY_INTERFACE_SYNC="0")
def cupy_without_wait(world: World) -> None:
    import cupy

    same(world.calls(lambda: cupy.asarray(Exporter(world, world.stream()))), [])


@statement("producer", CUPY, "cupy-cuda13x", {
    "version": "3; 2 on request by `CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION`",
    "`stream`": "current stream at the time of the export, 1 or 2 in place of 0; absent in version 2",
})  # fmt: skip
def cupy_dictionary(world: World) -> None:
    import cupy

    with cupy.cuda.Stream(non_blocking=True) as made:
        array = cupy.empty(ITEMS)
        same(array.__cuda_array_interface__["stream"], made.ptr)
    table = array.__cuda_array_interface__
    same((table["version"], table["stream"]), (3, LEGACY), "the default stream")
    with cupy.cuda.Stream.ptds:
        same(array.__cuda_array_interface__["stream"], PER_THREAD)


@statement("producer", CUPY, "cupy-cuda13x", {}, CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION="2")
def cupy_version_2(world: World) -> None:
    import cupy

    table = cupy.empty(ITEMS).__cuda_array_interface__
    same((table["version"], "stream" in table), (2, False))


@statement("dlpack", CUPY, "cupy-cuda13x", {
    "as a consumer it passes": "current stream, 1 or 2 in place of 0",
    "as a producer it": "event: the given stream waits for the current one; `None`: legacy; -1: nothing; 0: legacy, with a warning",
})  # fmt: skip
def cupy_dlpack(world: World) -> None:
    import cupy

    made = cupy.cuda.Stream(non_blocking=True)
    with made:
        same(passed(cupy.from_dlpack), made.ptr)
        array = cupy.empty(ITEMS, "f4")
        world.work(array.data.ptr, made.ptr)
        stream = world.stream()
        names = world.name(made.ptr), world.name(stream)
        for given, waits in ((stream, names[1]), (None, "legacy"), (LEGACY, "legacy"), (0, "legacy")):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                said = world.calls(lambda: array.__dlpack__(stream=given))
            same(said, [f"record {names[0]}", f"{waits} waits for {names[0]}"], f"stream={given}")
            same(bool(warned), given == 0, f"stream={given} warns")
        same(world.calls(lambda: array.__dlpack__(stream=-1)), [])
    same(passed(cupy.from_dlpack), LEGACY)
    with cupy.cuda.Stream.ptds:
        same(passed(cupy.from_dlpack), PER_THREAD)


# ----------------------------------------------------------------------------------- PyTorch

TORCH = "PyTorch 2.15.0"


@statement("consumer", TORCH, "torch", {
    "`stream` read": "no", "waits how": "not at all", "back edge": "none", "owner": "with the tensor's storage",
})  # fmt: skip
def torch_as_tensor(world: World) -> None:
    import torch

    for theirs in (world.stream(), 0, None):  # 0 is not legal: it is not read
        exporter = Exporter(world, None)
        exporter.table["stream"] = theirs
        same(world.calls(lambda: torch.as_tensor(exporter, device="cuda")), [], str(theirs))
    lives_with(world, lambda thing: torch.as_tensor(thing, device="cuda"))
    lives_with(world, lambda thing: torch.as_tensor(thing, device="cuda")[1:].untyped_storage())


@statement("producer", TORCH, "torch", {"version": "2", "`stream`": "absent"})
def torch_dictionary(world: World) -> None:
    import torch

    with torch.cuda.stream(torch.cuda.Stream()):
        table = torch.empty(ITEMS, device="cuda").__cuda_array_interface__
    same((table["version"], "stream" in table), (2, False))


@statement("dlpack", TORCH, "torch", {
    "as a consumer it passes": "current stream of that device, 1 in place of 0",
    "as a producer it": "event: the given stream waits for the current one; `None`: the default stream; 2: `BufferError`. "
                        "Nothing passed is -1: no order, on purpose (pytorch#163242)",
})  # fmt: skip
def torch_dlpack(world: World) -> None:
    import torch

    made = torch.cuda.Stream()
    with torch.cuda.stream(made):
        same(passed(torch.from_dlpack), made.cuda_stream)
        array = torch.empty(ITEMS, device="cuda")
        world.work(array.data_ptr(), made.cuda_stream)
        stream = world.stream()
        names = world.name(made.cuda_stream), world.name(stream)
        for given, waits in ((stream, names[1]), (None, "legacy"), (LEGACY, "legacy")):
            said = world.calls(lambda: array.__dlpack__(stream=given))
            same(said, [f"record {names[0]}", f"{waits} waits for {names[0]}"], f"stream={given}")
        refuses(BufferError, lambda: array.__dlpack__(stream=PER_THREAD))
        same(world.calls(lambda: array.__dlpack__(stream=-1)), [])
        same(world.calls(lambda: array.__dlpack__()), [], "nothing passed")
    same(passed(torch.from_dlpack), LEGACY)


# -------------------------------------------------------------------------------------- main


def installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def in_document(known: dict[str, dict[str, dict[str, str]]], one: Statement) -> list[str]:
    """Where the document does not say what the statement quotes."""
    row = known[one.table].get(one.row)
    if row is None:
        return [f"docs/streams.md has no row {one.row!r} among the {one.table}s"]
    wrong = [f"{column}: {row.get(column)!r} in the document, {text!r} here" for column, text in one.says.items()
             if row.get(column) != text]  # fmt: skip
    if "simulated" not in row["known by"]:
        wrong.append(f'{one.row}: "known by" does not say "simulated"')
    return wrong


def without_program(known: dict[str, dict[str, dict[str, str]]]) -> list[str]:
    tried = {(one.table, one.row) for one in STATEMENTS}
    return [f'{row}: "simulated" in the document, and no program here' for table, all_rows in known.items()
            for row, cells in all_rows.items() if "simulated" in cells["known by"] and (table, row) not in tried]  # fmt: skip


def attempt(one: Statement, world: World | None) -> str:
    """What is wrong, or ""."""
    if one.environment and not all(os.environ.get(name) == value for name, value in one.environment.items()):
        command = [sys.executable, __file__, "--only", one.name]
        done = subprocess.run(command, env={**os.environ, **one.environment}, capture_output=True, text=True, timeout=120)
        return "" if done.returncode == 0 else done.stdout + done.stderr
    try:
        assert world is not None
        world.enter()
        one.program(world)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the programs whose name has this text")
    options = parser.parse_args()
    known = {table: rows(table) for table in TABLES}
    wrong, ran, world = without_program(known), 0, World()
    for one in STATEMENTS:
        if options.only not in one.name:
            continue
        wrong += [f"{one.name}: {text}" for text in in_document(known, one)]
        version = installed(one.package)
        if not version:
            print(f"skipped: {one.name}: {one.package} is not installed")
            continue
        ran += 1
        failed = attempt(one, world)
        wrong += [f"{one.name} ({one.package} {version}): {failed}"] if failed else []
        print(f"{'wrong' if failed else 'right'}: {one.name}: {one.table}, {one.row} (run: {version})")
    for text in wrong:
        print(f"wrong: {text}")
    return 1 if wrong else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
