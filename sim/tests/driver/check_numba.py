#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks examples/adapters/numba: Numba's memory comes from a table of hooks, on the simulated driver.

    sim/tests/driver/check_numba.py --library build/libcai_numba.so [--plugin build/plugin_example.so]
        [--pool build/sim/tests/driver/pool_table.so] [--python PYTHON]

PYTHON has the package cai_sim, Numba and numba-cuda. Each way to choose the plugin and each table has a process of its
own, under `python -m cai_sim`. Exit status 0: all is right; 1: not; 77: there is no package cai_sim, or no numba-cuda.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import os
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char, c_int, c_int32, c_size_t, c_uint32, c_void_p
from typing import Any

ADAPTER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "adapters" / "numba"
NEEDS = "import cai_sim, numba, numba_cuda; from cuda.bindings import driver"
MEMORY = 64 << 20  # bytes of the simulated device
failures: list[str] = []


def check(good: Any, text: str) -> None:
    if not good:
        failures.append(text)


def same(what: str, got: object, expected: object) -> None:
    check(got == expected, f"{what}: {got!r}, not {expected!r}")


def raised(what: str, call: Callable[[], object], kind: type[Exception], pattern: str) -> None:
    """The call raises an exception of this type, whose text matches."""
    try:
        call()
    except kind as error:
        check(re.search(pattern, str(error)), f"{what}: no {pattern!r} in {error}")
    except Exception as error:
        failures.append(f"{what}: {type(error).__name__}: {error}")
    else:
        failures.append(f"{what}: no error")


# ------------------------------------------------------------------------ in a process with Numba


def change(before: dict[str, int], after: dict[str, int], *names: str) -> list[int]:
    return [after[name] - before[name] for name in names]


def balanced(case: Callable[..., None]) -> Callable[..., None]:
    """After the case all its memory is back, and no free failed."""

    @functools.wraps(case)
    def run(manager: Any, *arguments: Any) -> None:
        manager.flush()
        before, free = manager.counts(), memory_free(manager)
        case(manager, *arguments)
        gc.collect()
        manager.flush()
        after = manager.counts()
        allocated, freed, failed = change(before, after, "allocated", "freed", "failed")
        check(allocated, f"{case.__name__}: nothing was allocated by the table")
        same(f"{case.__name__}: allocations less frees", allocated - freed, 0)
        same(f"{case.__name__}: frees that failed", failed, 0)
        same(f"{case.__name__}: leaks", manager.leaks(), [])
        if not keeps_memory(manager):
            same(f"{case.__name__}: bytes that the device lost", free - memory_free(manager), 0)

    return run


def keeps_memory(manager: Any) -> bool:
    """Over this table a pool of its own keeps what was freed, until the pool goes."""
    return bool(manager.table_name() == "cuda_async")


def memory_free(manager: Any) -> int:
    manager.context.synchronize()  # what a pool frees has its turn in a stream
    return manager.get_memory_info().free


@balanced
def case_arrays(manager: Any, table: str) -> None:
    """An array, its slices, and copies."""
    import numpy as np
    from numba import cuda

    before = manager.counts()
    host = np.arange(1000, dtype=np.float32)
    array = cuda.device_array(1000, np.float32)
    array.copy_to_device(host)
    part = array[100:200]
    same("a slice", part.copy_to_host().tolist(), host[100:200].tolist())
    del part
    same("after its slice is gone", array.copy_to_host().tolist(), host.tolist())
    same("one array", change(before, manager.counts(), "allocated", "freed"), [1, 0])
    same("the list", [leak.size for leak in manager.leaks()], [4000])
    part = array[10:20]
    del array
    gc.collect()
    same("a slice alone", (part.copy_to_host().tolist(), len(manager.leaks())), (host[10:20].tolist(), 1))
    same("no elements", cuda.device_array(0).copy_to_host().size, 0)


@balanced
def case_host(manager: Any, table: str) -> None:
    """Pinned, mapped and managed memory, and memory that is pinned."""
    import numpy as np
    from numba import cuda
    from numba.cuda.cudadrv import driver

    before, host = manager.counts(), np.arange(1000, dtype=np.float32)
    pinned, mapped, managed = cuda.pinned_array(100), cuda.mapped_array(50, wc=True), cuda.managed_array(25)
    same("pinned, mapped, managed", change(before, manager.counts(), "allocated", "live_bytes"), [3, 1400])
    pinned[:], mapped[:], managed[:] = 1, 2, 3
    device = cuda.device_array(50)
    driver.device_to_device(device, mapped, 400)  # from its address on the device
    same("mapped", device.copy_to_host().tolist(), [2.0] * 50)
    device = cuda.to_device(pinned)
    same("from pinned memory", device.copy_to_host().tolist(), [1.0] * 100)
    with cuda.pinned(host):
        same("pinned by a block", max(manager.leaks(), key=lambda leak: leak.number).address, host.ctypes.data)
    same("from memory that was pinned", cuda.to_device(host).copy_to_host().tolist(), host.tolist())
    with cuda.mapped(host) as inside:
        same("mapped by a block", inside.copy_to_host().tolist(), host.tolist())
    del inside
    with cuda.pinned(host):
        pass


@balanced
def case_memory_runs_out(manager: Any, table: str) -> None:
    import numpy as np
    from numba import cuda
    from numba.cuda.cudadrv.driver import CudaAPIError

    too_many = MEMORY + 1
    text = rf"OUT_OF_MEMORY: 2>\] cai_numba, {too_many} bytes of device memory: device_alloc of {table}: out of memory"
    raised("too much", lambda: cuda.device_array(too_many, np.uint8), CudaAPIError, text)
    before, much = manager.counts(), MEMORY * 3 // 4
    with cuda.defer_cleanup():
        first = cuda.device_array(much, np.uint8)
        del first
        second = cuda.device_array(much, np.uint8)  # the deferred free makes room
        same("a second try", change(before, manager.counts(), "retries", "allocated", "freed"), [1, 2, 1])
        del second


@balanced
def case_defer(manager: Any, table: str) -> None:
    from numba import cuda

    before = manager.counts()
    with cuda.defer_cleanup():
        for _ in range(20):
            cuda.device_array(10)
        with cuda.defer_cleanup():
            cuda.pinned_array(10)
        same("in a scope", change(before, manager.counts(), "allocated", "freed", "deferred"), [21, 0, 21])
    same("after it", change(before, manager.counts(), "freed", "deferred"), [21, 0])


@balanced
def case_ipc(manager: Any, table: str) -> None:
    from numba import cuda
    from numba.cuda.cudadrv.error import CudaDriverError

    array, mapped = cuda.device_array(100), cuda.mapped_array(10)
    raised("IPC of mapped memory", lambda: manager.get_ipc_handle(mapped.gpu_data), CudaDriverError, "cuIpcGetMemHandle")
    if table == "cuda":
        handle = array.get_ipc_handle()._ipc_handle
        part = array[4:8].get_ipc_handle()._ipc_handle
        same("the size and the offset", [(one.size, one.offset) for one in (handle, part)], [(800, 0), (32, 32)])
        both = [ctypes.string_at(one.handle.getPtr(), 64) for one in (handle, part)]
        check(both[0] == both[1] and any(both[0]), f"handles: {both}")
    else:
        raised("IPC of a pool", array.get_ipc_handle, CudaDriverError, "no handle for other processes")


@balanced
def case_threads(manager: Any, table: str) -> None:
    import numpy as np
    from numba import cuda

    before, wrong = manager.counts(), []

    def work(number: int) -> None:
        for i in range(50):
            array = cuda.to_device(np.full(100 + i, number))
            if not (array.copy_to_host() == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same("threads", (wrong, change(before, manager.counts(), "allocated")), ([], [200]))


def case_reset(manager: Any, table: str) -> None:
    from numba import cuda

    before, free = manager.counts(), memory_free(manager)
    array, mapped, view = cuda.device_array(100), cuda.mapped_array(10), None
    view = array[1:2]
    cuda.current_context().reset()
    same("leaks after a reset", len(manager.leaks()), 1)
    if not keeps_memory(manager):
        same("bytes that the device lost by a reset", free - memory_free(manager), 0)
    del array, view, mapped
    gc.collect()
    same("what a reset freed", change(before, manager.counts(), "lost", "failed"), [1, 0])
    case_arrays(manager, table)


CASES = [case_arrays, case_host, case_memory_runs_out, case_defer, case_ipc, case_threads, case_reset]


def work(how: str, table: str) -> None:
    """All cases over one table."""
    import cai_numba
    from numba import cuda

    if how == "call":
        cuda.set_memory_manager(cai_numba.over(table))
    cuda.current_context()
    manager = cai_numba.current()
    name = {"cuda": "cuda", "async": "cuda_async"}[table]
    same("the table", manager.table_name(), name)
    same("the device", manager.get_memory_info().total, MEMORY)
    for case in CASES:
        case(manager, name)
    print(f"{how}, {table}: {manager.counts()}")


# ------------------------------------------------------------------------ a table in Python

Alloc = CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), c_size_t, c_void_p)
Free = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_void_p)


class Hooks(ctypes.Structure):  # cai_emm_hooks, as far as it is required
    _fields_ = [("struct_size", c_uint32), ("version", c_uint32), ("flags", c_uint32), ("kind", c_int32)]
    _fields_ += [("ctx", c_void_p), ("device_alloc", Alloc), ("device_free", Free), ("name", c_char * 64)]


class Mine:
    """A table over cuMemAlloc, with a list of what it was called with."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.fails = 0
        self.kept = Alloc(self.alloc), Free(self.free)
        self.hooks = Hooks(ctypes.sizeof(Hooks), 1, 0, 0, None, *self.kept, b"mine")

    def alloc(self, _: int, out: Any, size: int, stream: int) -> int:
        from cuda.bindings import driver

        if self.fails:
            return self.fails
        error, address = driver.cuMemAlloc(size)
        if not error:
            out[0] = int(address)
            self.live[int(address)] = size
        return int(error)

    def free(self, _: int, address: int, size: int, stream: int) -> int:
        from cuda.bindings import driver

        check(self.live.pop(address, None) == size, f"free of {size} bytes at {address:#x}")
        driver.cuStreamSynchronize(stream)
        return int(driver.cuMemFree(address)[0])


def work_mine() -> None:
    """The hooks are called with what Numba asks for, and their errors reach the program."""
    import cai_numba
    import numpy as np
    from numba import cuda
    from numba.cuda.cudadrv.driver import CudaAPIError

    mine = Mine()
    cuda.set_memory_manager(cai_numba.over(ctypes.addressof(mine.hooks)))
    one, two = cuda.device_array(10, np.uint8), cuda.to_device(np.arange(100, dtype=np.int64))
    same("what the hooks saw", sorted(mine.live.values()), [10, 800])
    same("the numbers", two.copy_to_host().tolist(), list(range(100)))
    same("the address", two.device_ctypes_pointer.value in mine.live, True)
    del one, two
    gc.collect()
    cai_numba.current().flush()
    same("after the frees", mine.live, {})
    mine.fails = 700
    raised("a hook that fails", lambda: cuda.device_array(10), CudaAPIError, "ILLEGAL_ADDRESS: 700>.*device_alloc of mine")
    mine.fails = 0
    raised("no hook for pinned memory", lambda: cuda.pinned_array(10), NotImplementedError, "host_alloc")
    raised("no hook that counts", cuda.current_context().get_memory_info, NotImplementedError, "memory_info")


def work_plugin(path: str) -> None:
    """A table of a shared object; its memory is the host's, so that nothing is copied."""
    import cai_numba
    from numba import cuda

    array = cuda.device_array(100)
    manager = cai_numba.current()
    same("the plugin's table", manager.table_name(), "plugin_example")
    same("the plugin", [leak.size for leak in manager.leaks()], [800])
    del array
    gc.collect()
    manager.flush()
    same("the plugin, at the end", manager.leaks(), [])


def work_streams(path: str) -> None:
    """A pool that queues nothing at a free gives the same block to two blocking streams, also in two threads."""
    import cai_numba
    import numpy as np
    from numba import cuda

    cuda.set_memory_manager(cai_numba.over(path))
    streams, host, seen = [cuda.stream(), cuda.stream()], [cuda.pinned_array(1000), cuda.pinned_array(1000)], set()

    def work(number: int) -> None:
        array = cuda.device_array(1000, np.float64, stream=streams[number])
        array.copy_to_device(host[number], stream=streams[number])
        seen.add(array.device_ctypes_pointer.value)

    for number in (0, 1, 0, 1):
        work(number)
    same("blocks of one thread", len(seen), 1)
    for number in (0, 1):
        thread = threading.Thread(target=work, args=(number,))
        thread.start()
        thread.join()
    same("blocks of all threads", len(seen), 1)
    cuda.synchronize()


def work_captured(path: str) -> None:
    """While a blocking stream captures, nothing is allocated, a free comes later, and the capture goes on."""
    import cai_numba
    from cuda.bindings import driver
    from numba import cuda

    cuda.set_memory_manager(cai_numba.over(path))
    stream, array, pinned = cuda.stream(), cuda.device_array(1000), cuda.pinned_array(10)
    manager = cai_numba.current()
    address, before = array.device_ctypes_pointer.value, manager.counts()
    driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    raised("an allocation while a stream captures", lambda: cuda.device_array(1000), Exception, "906.*captur")
    del array, pinned
    gc.collect()
    same("a free while a stream captures", change(before, manager.counts(), "freed", "failed"), [0, 0])
    error, graph = driver.cuStreamEndCapture(stream.handle)
    same("the capture", int(error), 0)
    driver.cuGraphDestroy(graph)
    array = cuda.device_array(1000)
    if path not in ("cuda", "async"):
        same("the same block", array.device_ctypes_pointer.value, address)
    manager.flush()
    same("after the capture", change(before, manager.counts(), "freed", "failed"), [2, 0])
    same("the list", len(manager.leaks()), 1)


def work_race(path: str) -> None:
    """A race on memory of the table: the report names the lines of this file."""
    import cai_numba
    import numpy as np
    from numba import cuda

    cuda.set_memory_manager(cai_numba.over(path))
    one, two, host = cuda.stream(), cuda.stream(), cuda.pinned_array(1000)
    array = cuda.device_array(1000, np.float64)  # the race is on this memory
    array.copy_to_device(host, stream=one)
    array.copy_to_device(host, stream=two)
    cuda.synchronize()


def work_wrong() -> None:
    """Tables that cannot be used."""
    import cai_numba
    from numba import cuda
    from numba.cuda.cudadrv.error import CudaDriverError

    context = cuda.current_context()
    bad = Hooks(8, 1, 0, 0, None, Alloc(), Free(), b"bad")
    for table, kind, text in (
        ("nothing", OSError, "nothing"), (ctypes.addressof(bad), CudaDriverError, "struct_size"),
    ):  # fmt: skip
        raised(f"the table {table}", cai_numba.over(table)(context=context).initialize, kind, text)
    raised("another manager", cai_numba.current, CudaDriverError, "not the memory manager")


def active() -> bool:
    from cuda.bindings import driver

    return bool(driver.cuDevicePrimaryCtxGetState(0)[2])


def work_first(table: str) -> None:
    """The adapter is chosen before there is a context, and none is left when Numba and the adapter are done."""
    import cai_numba
    from cuda.bindings import driver
    from numba import cuda

    driver.cuInit(0)
    same("active at first", active(), False)
    cuda.set_memory_manager(cai_numba.over(table))
    array = cuda.device_array(100)
    manager = cai_numba.current()
    same("active with an array", active(), True)
    del array
    gc.collect()
    cuda.close()
    counts = manager.counts()
    same("one array", [counts[name] for name in ("allocated", "freed", "failed")], [1, 1, 0])
    del manager
    gc.collect()
    same("active at the end", active(), False)


def work_alone(table: str) -> None:
    """Who made the context releases it before the adapter is done: the adapter has a reference."""
    import cai_numba
    from cuda.bindings import driver

    driver.cuInit(0)
    _, context = driver.cuDevicePrimaryCtxRetain(0)
    driver.cuCtxPushCurrent(context)
    adapter = cai_numba.Table(table)
    driver.cuCtxPopCurrent()
    driver.cuDevicePrimaryCtxRelease(0)
    same("active with an adapter", active(), True)
    memory, address = ctypes.c_uint64(), c_void_p()
    adapter.do("alloc", "alloc", cai_numba.DEVICE, 1000, 0, ctypes.byref(memory), ctypes.byref(address))
    adapter.do("free", "free", memory)
    del adapter
    gc.collect()
    same("active without", active(), False)


# ------------------------------------------------------------------------ the processes


class World:
    def __init__(self, python: str, library: str) -> None:
        self.python = python
        self.environment = {**os.environ, "CAI_NUMBA_LIBRARY": library, "CAI_SIM_MEMORY": str(MEMORY)}
        paths = [str(ADAPTER), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment["PYTHONPATH"] = os.pathsep.join(paths)

    def run(self, *arguments: str, options: tuple[str, ...] = (), says: str = "", **environment: str) -> None:
        """One process. says: a pattern of the report of a program with a race."""
        command = [self.python, "-B", "-W", "ignore", "-m", "cai_sim", "--accept=not-judged", *options, __file__, *arguments]
        environment = {**self.environment, **environment}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        what = " ".join((*options, *arguments, *environment.keys() - self.environment.keys()))
        whole = f"{what}: status {done.returncode}\n{done.stdout}{done.stderr}"
        said = "cai_sim: no race" in done.stderr or "cai_sim: not judged: no work was queued" in done.stderr
        good = bool(re.search(says, done.stderr)) if says else done.returncode == 0 and said
        check(good and "Traceback" not in done.stderr, whole)


def processes(world: World, plugin: str, pool: str) -> None:
    for options in ((), ("--adversarial",)):
        world.run("--work", "environment", "cuda", options=options, NUMBA_CUDA_MEMORY_MANAGER="cai_numba")
    world.run("--work", "environment", "async", NUMBA_CUDA_MEMORY_MANAGER="cai_numba", CAI_NUMBA_TABLE="async")
    world.run("--work", "call", "cuda")
    world.run("--work", "call", "async", options=("--adversarial",))
    world.run("--work", "mine", "")
    world.run("--work", "wrong", "")
    for how in ("first", "alone"):
        for table in ("cuda", "async"):
            world.run("--work", how, table)
    if plugin:
        world.run("--work", "plugin", plugin, NUMBA_CUDA_MEMORY_MANAGER="cai_numba", CAI_NUMBA_TABLE=plugin)
    for table in filter(None, (pool, "cuda", "async")):
        says = r"1 race(.|\n)*allocated at \S*check_numba.py:\d+, in work_race: .*the race is on this memory"
        world.run("--work", "race", table, says=says)
        world.run("--work", "captured", table)
    if pool:
        for options in ((), ("--adversarial",)):
            world.run("--work", "streams", pool, options=options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="libcai_numba.so")
    parser.add_argument("--plugin", default="", help="plugin_example.so")
    parser.add_argument("--pool", default="", help="pool_table.so")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--work", nargs=2, metavar=("HOW", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        how, table = options.work
        others = {"mine": work_mine, "plugin": lambda: work_plugin(table), "wrong": work_wrong,
                  "first": lambda: work_first(table), "alone": lambda: work_alone(table),
                  "streams": lambda: work_streams(table), "captured": lambda: work_captured(table),
                  "race": lambda: work_race(table)}  # fmt: skip
        others.get(how, lambda: work(how, table))()
    elif not options.library:
        parser.error("--library is needed")
    elif subprocess.run([options.python, "-c", NEEDS], capture_output=True).returncode:
        print("skipped: the package cai_sim, numba-cuda or cuda-bindings is not installed")
        return 77
    else:
        library = str(pathlib.Path(options.library).resolve())
        plugin, pool = (path and str(pathlib.Path(path).resolve()) for path in (options.plugin, options.pool))
        processes(World(options.python, library), plugin, pool)
    for text in failures:
        print(f"wrong: {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
