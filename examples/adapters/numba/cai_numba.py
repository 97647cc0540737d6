# SPDX-License-Identifier: MIT
"""Numba's memory from one table of hooks (cai_emm.h): a plugin for Numba's external memory management.

    NUMBA_CUDA_MEMORY_MANAGER=cai_numba python program.py

or, before the first use of the GPU:

    cuda.set_memory_manager(cai_numba.over("async"))

The table is "cuda" (cudaMalloc), "async" (cudaMallocAsync), the path of a shared object that exports
`const cai_emm_hooks *cai_emm_plugin(void)`, or the address of a table that outlives the program's use of CUDA.
CAI_NUMBA_TABLE names the table of `_numba_memory_manager`. CAI_NUMBA_LIBRARY is the path of libcai_numba.so if it
is not beside this file. docs/memory.md says what is lost on the way.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import weakref
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_size_t, c_ubyte, c_uint32, c_uint64, c_void_p
from typing import Any

from cuda.bindings import driver as binding
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError, ManagedMemory
from numba.cuda.cudadrv.error import CudaDriverError

__all__ = ["Leak", "Manager", "current", "over"]
__cai_sim_skip__ = True  # reports of cai_sim name the line that called this module

DEVICE, HOST, MANAGED, PIN = range(4)  # CAI_NUMBA_...
TABLES = {"cuda": 0, "async": 1}
PORTABLE, MAPPED, WRITE_COMBINED = 1, 2, 4  # CAI_HOST_...
GLOBAL, ATTACH_HOST = 1, 2  # CAI_MANAGED_...
UNAVAILABLE, OUT_OF_MEMORY = 19, 2  # a cai_status; CUDA's number


class Error(ctypes.Structure):  # cai_error
    _fields_ = [(name, c_int32) for name in ("code", "native", "entry", "index", "rule")] + [("message", c_char * 240)]


class Counts(ctypes.Structure):  # cai_manager_count
    _fields_ = [
        (name, c_uint64)
        for name in ("live", "deferred", "live_bytes", "deferred_bytes", "allocated", "freed", "retries", "lost", "failed")
    ] + [("first_failure", c_int32), ("reserved", c_int32)]


class Object(ctypes.Structure):  # cai_memory_object
    _fields_ = [(name, c_uint64) for name in ("memory", "number", "address", "size")]
    _fields_ += [("references", c_int64), ("kind", c_int32), ("lost", c_int32)]


class Ipc(ctypes.Structure):  # cai_memory_ipc
    _fields_ = [("handle", c_ubyte * 64), ("offset", c_uint64), ("size", c_uint64), ("device", c_int32), ("reserved", c_int32)]


@dataclasses.dataclass(frozen=True)
class Leak:
    """An allocation that was not given back."""

    number: int  # counts the allocations, from 1
    address: int
    size: int


ERROR = POINTER(Error)
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "open": (c_void_p, (c_void_p, c_int32, ERROR)),
    "close": (c_int32, (c_void_p, ERROR)),
    "alloc": (c_int32, (c_void_p, c_int32, c_size_t, c_uint32, POINTER(c_uint64), POINTER(c_void_p), ERROR)),
    "free": (c_int32, (c_void_p, c_uint64, ERROR)),
    "reset": (c_int32, (c_void_p, ERROR)),
    "memory": (c_int32, (c_void_p, POINTER(c_size_t), POINTER(c_size_t), ERROR)),
    "ipc": (c_int32, (c_void_p, c_uint64, POINTER(Ipc), ERROR)),
    "defer": (c_int32, (c_void_p, c_int32, ERROR)),
    "flush": (c_int32, (c_void_p, ERROR)),
    "list": (c_int64, (c_void_p, POINTER(Object), c_int64)),
    "counts": (None, (c_void_p, POINTER(Counts))),
    "table": (c_char_p, (c_void_p,)),
}


def load() -> dict[str, Any]:
    """The functions of libcai_numba.so by name."""
    path = os.environ.get("CAI_NUMBA_LIBRARY") or pathlib.Path(__file__).resolve().with_name("libcai_numba.so")
    library, functions = ctypes.CDLL(str(path)), {}
    for name, (result, arguments) in FUNCTIONS.items():
        functions[name] = getattr(library, f"cai_numba_{name}")
        functions[name].restype, functions[name].argtypes = result, arguments
    return functions


def plugin(path: str) -> int:
    """The address of the table that a shared object exports. It stays loaded."""
    function = ctypes.CDLL(path).cai_emm_plugin
    function.restype = c_void_p
    address = function()
    if not address:
        raise CudaDriverError(f"{path}: its table cannot work here")
    return address


def failure(error: Error, what: str) -> Exception:
    """The exception for an error of the library."""
    text = f"{what}: {error.message.decode(errors='replace')}"
    if error.native:
        return CudaAPIError(binding.CUresult(error.native), text)
    return NotImplementedError(text) if error.code == UNAVAILABLE else CudaDriverError(text)


class Table:
    """A manager of the library, for one context. It ends after its last allocation."""

    def __init__(self, table: str | int) -> None:
        error, address = Error(), table
        self.call = load()
        if isinstance(table, str):
            address = None if table in TABLES else plugin(table)
        self.pointer = self.call["open"](address, TABLES.get(table, 0), byref(error))
        if not self.pointer:
            raise failure(error, f"cai_numba, table {table!r}")
        weakref.finalize(self, self.call["close"], self.pointer, None)

    def do(self, what: str, function: str, *arguments: Any) -> None:
        """Calls a function of the library, and raises its error."""
        error = Error()
        if self.call[function](self.pointer, *arguments, byref(error)):
            raise failure(error, what)

    def finalizer(self, memory: int) -> Callable[[], None]:
        return lambda: self.do("cai_numba, free", "free", memory)


class Manager(cuda.GetIpcHandleMixin, cuda.BaseCUDAMemoryManager):
    """The plugin. Numba makes one for each context."""

    table: str | int = os.environ.get("CAI_NUMBA_TABLE") or "cuda"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._made: Table | None = None
        self._kept: dict[int, Any] = {}  # mapped and managed memory by its handle, as long as arrays use it

    @property
    def _table(self) -> Table:
        if not self._made:
            self._made = Table(self.table)
        return self._made

    # What Numba calls

    @property
    def interface_version(self) -> int:
        return 1

    def initialize(self) -> None:
        assert self._table

    def memalloc(self, size: int) -> cuda.MemoryPointer:
        memory, address = self._allocate(DEVICE, size, 0)
        pointer = cuda.MemoryPointer(self._context(), c_void_p(address), size, finalizer=self._table.finalizer(memory))
        pointer.cai_memory = memory
        return pointer

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False, wc: bool = False) -> Any:
        flags = (MAPPED if mapped else 0) | (PORTABLE if portable else 0) | (WRITE_COMBINED if wc else 0)
        memory, address = self._allocate(HOST, size, flags)
        return self._host(memory, address, size, mapped, None)

    def mempin(self, owner: Any, pointer: int, size: int, mapped: bool = False) -> Any:
        memory, address = self._allocate(PIN, size, MAPPED if mapped else 0, pointer)
        return self._host(memory, address, size, mapped, owner)

    def memallocmanaged(self, size: int, attach_global: bool = True) -> Any:
        memory, address = self._allocate(MANAGED, size, GLOBAL if attach_global else ATTACH_HOST)
        finalizer = self._keeping(memory)
        self._kept[memory] = ManagedMemory(self._context(), c_void_p(address), size, finalizer=finalizer)
        return self._kept[memory].own()

    def get_ipc_handle(self, memory: Any) -> cuda.IpcHandle:
        place, handle = Ipc(), binding.CUipcMemHandle()
        known = getattr(memory.owner, "cai_memory", None)
        if known is None:  # of another library: the driver knows it
            return super().get_ipc_handle(memory)
        self._table.do("cai_numba, get_ipc_handle", "ipc", known, byref(place))
        ctypes.memmove(handle.getPtr(), place.handle, len(place.handle))
        offset = place.offset + int(memory.handle) - int(memory.owner.handle)
        return cuda.IpcHandle(memory, handle, memory.size, self.context.device.get_device_identity(), offset)

    def get_memory_info(self) -> cuda.MemoryInfo:
        free, total = c_size_t(), c_size_t()
        self._table.do("cai_numba, get_memory_info", "memory", byref(free), byref(total))
        return cuda.MemoryInfo(free=free.value, total=total.value)

    def reset(self) -> None:
        self._kept.clear()
        if self._made:
            self._table.do("cai_numba, reset", "reset")

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        self._table.do("cai_numba, defer_cleanup", "defer", 1)
        try:
            yield
        finally:
            self._table.do("cai_numba, defer_cleanup", "defer", 0)

    # What the program may call

    def counts(self) -> dict[str, int]:
        """The statistics of the manager: cai_manager_count in ext/cai_manager.h says what they are."""
        counts = Counts()
        self._table.call["counts"](self._table.pointer, byref(counts))
        return {name: getattr(counts, name) for name, _ in Counts._fields_ if name != "reserved"}

    def leaks(self) -> list[Leak]:
        """What was not given back."""
        many = self._table.call["list"](self._table.pointer, None, 0)
        objects = (Object * many)()
        many = min(many, self._table.call["list"](self._table.pointer, objects, many))
        return [Leak(one.number, one.address, one.size) for one in objects[:many]]

    def flush(self) -> None:
        """Carries out the deferred frees."""
        self._table.do("cai_numba, flush", "flush")

    def table_name(self) -> str:
        return self._table.call["table"](self._table.pointer).decode(errors="replace")

    # The rest

    def _context(self) -> Any:
        return weakref.proxy(self.context)

    def _allocate(self, kind: int, size: int, flags: int, pointer: int | None = None) -> tuple[int, int]:
        """The handle and the address of new memory."""
        what = f"cai_numba, {size} bytes of {('device', 'host', 'managed', 'pinned')[kind]} memory"
        if size <= 0:
            raise CudaAPIError(binding.CUresult.CUDA_ERROR_INVALID_VALUE, what)
        memory, address = c_uint64(), c_void_p(pointer)
        self._table.do(what, "alloc", kind, size, flags, byref(memory), byref(address))
        return memory.value, address.value

    def _host(self, memory: int, address: int, size: int, mapped: bool, owner: Any) -> Any:
        if not mapped:
            finalizer = self._table.finalizer(memory)
            return cuda.PinnedMemory(self._context(), address, size, owner=owner, finalizer=finalizer)
        finalizer = self._keeping(memory)
        try:
            kept = cuda.MappedMemory(self._context(), address, size, owner=owner, finalizer=finalizer)
        except BaseException:
            finalizer()
            raise
        self._kept[memory] = kept
        return kept.own()

    def _keeping(self, memory: int) -> Callable[[], None]:
        """A finalizer for what stands in _kept: Numba's arrays have weak references to it."""
        kept, free = self._kept, self._table.finalizer(memory)

        def finalizer() -> None:
            kept.pop(memory, None)
            free()

        return finalizer


def over(table: str | int) -> type[Manager]:
    """The plugin over another table, for cuda.set_memory_manager."""
    return type("Manager", (Manager,), {"table": table})


def current() -> Manager:
    """The manager of the current context."""
    manager = cuda.current_context().memory_manager
    if not isinstance(manager, Manager):
        raise CudaDriverError("cai_numba is not the memory manager of this context")
    return manager


_numba_memory_manager = Manager  # what NUMBA_CUDA_MEMORY_MANAGER=cai_numba finds
