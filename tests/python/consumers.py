# SPDX-License-Identifier: MIT
"""Consumers for check_consumers.py: one of each library, and one of plain Python that can be given a defect."""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import pathlib
import shutil
import sys
import tempfile
from typing import Any, Callable

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]
import library_support as support  # noqa: E402

Consumer = Callable[[Any], Any]


def on_host(obj: Any) -> bool:
    return hasattr(obj, "__dlpack_device__") and obj.__dlpack_device__()[0] == 1


def simulated() -> None:
    cai_sim = support.need("cai_sim")
    if not cai_sim.started():
        cai_sim.start(devices=2)


def of_numpy() -> Consumer:
    return support.need("numpy").from_dlpack


def of_jax() -> Consumer:
    support.os.environ["JAX_PLATFORMS"] = "cpu"
    return support.need("jax.dlpack").from_dlpack


def of_tvm() -> Consumer:
    return support.need("tvm_ffi").from_dlpack


def of_numba() -> Consumer:
    simulated()
    return support.need("numba.cuda").as_cuda_array


def of_cuda_core() -> Consumer:
    simulated()
    support.need("numpy")
    core, view_type = support.need("cuda.core"), support.need("cuda.core.utils").StridedMemoryView

    def take(obj: Any) -> dict[str, Any]:
        core.Device(0).set_current()
        if hasattr(obj, "__dlpack__"):
            view = view_type.from_dlpack(obj, stream_ptr=-1 if on_host(obj) else 1)
        else:
            view = view_type.from_cuda_array_interface(obj, stream_ptr=1)
        strides = view.strides and tuple(stride * view.dtype.itemsize for stride in view.strides)
        return {"data": view.ptr, "shape": view.shape, "strides": strides, "typestr": view.dtype.str,
                "read_only": view.readonly, "view": view}  # fmt: skip

    return take


def of_cupy(name: str) -> Consumer:
    simulated()
    cupy = support.need("cupy")
    if not cupy.is_available():
        raise support.Missing("CuPy does not run on the simulated driver (python -m cai_sim.cupy)")
    return getattr(cupy, name)


def of_torch(name: str) -> Consumer:
    simulated()
    torch = support.need("torch")
    if not torch.cuda.is_available():
        raise support.Missing("PyTorch does not run on the simulated driver")
    return torch.from_dlpack if name == "from_dlpack" else lambda obj: torch.as_tensor(obj, device="cuda")


def of_cai() -> Consumer:
    simulated()
    support.need("numpy")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    module = support.build(folder)
    gc.callbacks.append(lambda phase, info: (module.pass_time(), module.counts()))  # what is parked goes
    return module.adopted


def of_caster() -> Consumer:
    simulated()
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return support.build_caster(folder).echo


CONSUMERS: dict[str, tuple[Callable[[], Consumer], tuple[str, ...]]] = {  # the last ones by hand: CI lacks them
    "NumPy, from_dlpack": (of_numpy, ("numpy",)),
    "JAX, from_dlpack": (of_jax, ("jax",)),
    "tvm_ffi, from_dlpack": (of_tvm, ("apache-tvm-ffi",)),
    "numba-cuda, as_cuda_array": (of_numba, ("numba-cuda",)),
    "cuda.core, StridedMemoryView": (of_cuda_core, ("cuda-core",)),
    "cai, libraries.c": (of_cai, ()),
    "cai, cai_caster.h": (of_caster, ()),
    "CuPy, asarray": (functools.partial(of_cupy, "asarray"), ("cupy-cuda13x",)),
    "CuPy, from_dlpack": (functools.partial(of_cupy, "from_dlpack"), ("cupy-cuda13x",)),
    "PyTorch, as_tensor": (functools.partial(of_torch, "as_tensor"), ("torch",)),
    "PyTorch, from_dlpack": (functools.partial(of_torch, "from_dlpack"), ("torch",)),
}


# --------------------------------------------------------------------------------------------- in plain Python
DEFECTS = {  # what it does wrongly, and a case that shows it
    "forgets the offset in bytes": "an offset of 8 bytes",
    "takes all for C order": "transposed",
    "reads strides that are NULL as 0": "strides are NULL, before 1.2",
    "loses the read-only flag": "read-only",
    "takes swapped bytes for its own": "swapped bytes",
    "leaves out the mask": "a mask",
    "takes any version": "version 2.0",
    "takes a used capsule": "a capsule that was used",
    "does not mark the capsule": "plain",
    "deletes twice": "plain",
    "never deletes": "plain",
    "keeps nothing": "plain",
    "does not wait": "a stream with pending work",
    "asks for no order": "a stream with pending work",
    "takes the stream 0": "the stream 0",
    "copies something else": "plain",
    "passes a stream for the host": "plain",
    "passes the stream 0": "plain",
    "keeps the object for ever": "plain",
    "says nothing": "plain",
    "takes a negative extent": "a negative extent",
    "takes strides of another length": "strides of another length",
}


class Taken:
    """An array that was taken; end deletes the tensor."""

    def __init__(self, entries: dict[str, Any], kept: Any, end: Callable[[], None]) -> None:
        self.__cuda_array_interface__, self.kept, self.end = entries, kept, end

    def __del__(self) -> None:
        self.end()


def plain(defect: str = "") -> Consumer:
    """Takes all that it can name, in order; `defect` is one of DEFECTS, or none."""
    import cai_conform as tool
    import cai_conform_consumer as consumer

    def order(stream: Any) -> None:
        if stream is not None and defect != "does not wait":
            ctypes.CDLL("libcuda.so.1").cuStreamSynchronize(ctypes.c_void_p(stream))

    def take_dictionary(obj: Any) -> Any:
        entries = dict(obj.__cuda_array_interface__)
        stream, shape, strides = entries.get("stream"), entries["shape"], entries.get("strides")
        if defect == "takes the stream 0" and stream == 0:
            stream = None
        if min(shape, default=0) < 0 and defect != "takes a negative extent":
            raise ValueError("a negative extent")
        if strides is not None and len(strides) != len(shape) and defect != "takes strides of another length":
            raise ValueError("strides of another length")
        if stream is not None and stream <= 0:
            raise ValueError("no such stream")
        if defect == "keeps the object for ever":
            consumer.keep(obj)
        order(stream)
        if defect == "leaves out the mask":
            entries.pop("mask", None)
        if defect == "loses the read-only flag":
            entries["data"] = (entries["data"][0], False)
        if defect == "takes swapped bytes for its own":
            entries["typestr"] = entries["typestr"].replace(">", "<")
        if defect == "takes all for C order":
            entries["strides"] = None
        return Taken({**entries, "stream": None}, None if defect == "keeps nothing" else obj, lambda: None)

    def take_dlpack(obj: Any) -> Any:
        stream = None if on_host(obj) else {"asks for no order": -1, "passes the stream 0": 0}.get(defect, 1)
        stream = 1 if defect == "passes a stream for the host" else stream
        capsule: Any = None
        try:
            capsule = obj.__dlpack__(stream=stream, max_version=(1, 3))
        except TypeError:
            capsule = obj.__dlpack__(stream=stream)
        names = dict(tool.NAMES)
        if defect == "takes a used capsule":
            names.update((used, used) for used in tool.NAMES.values())
        name = next((name for name in names if tool.api.PyCapsule_IsValid(capsule, name)), None)
        if name is None:
            raise ValueError("no capsule of DLPack")
        versioned, pointer = name.endswith(b"versioned"), tool.api.PyCapsule_GetPointer(capsule, name)
        struct: Any = (tool.Versioned if versioned else tool.Legacy).from_address(pointer)
        if defect != "does not mark the capsule":
            tool.api.PyCapsule_SetName(capsule, names[name])
        delete = tool.DELETER(struct.deleter) if struct.deleter else lambda at: None
        if versioned and struct.major != 1 and defect != "takes any version":
            delete(pointer)
            raise BufferError("a later major version")
        facts = tool.tensor_facts(struct.tensor, None)
        offset = struct.tensor.byte_offset if defect == "forgets the offset in bytes" else 0
        read_only = versioned and struct.flags & 1 and defect != "loses the read-only flag"
        null = facts.shape and not struct.tensor.strides and defect == "reads strides that are NULL as 0"
        strides = (0,) * len(facts.shape) if null else facts.strides
        entries = {"data": (facts.data - offset, bool(read_only)), "shape": facts.shape, "typestr": f"|V{facts.itemsize}",
                   "strides": None if defect == "takes all for C order" else strides}  # fmt: skip
        if struct.tensor.code in tool.DLPACK_KINDS and struct.tensor.lanes == 1:
            entries["typestr"] = f"<{tool.DLPACK_KINDS[struct.tensor.code]}{facts.itemsize}"
        if defect == "copies something else" and on_host(obj):
            entries["data"] = (ctypes.addressof(consumer.keep(ctypes.create_string_buffer(2048))), False)
        times = {"deletes twice": 2, "never deletes": 0}.get(defect, 1)
        return Taken(entries, capsule, lambda: [delete(pointer) for _ in range(times)] and None)

    def take(obj: Any) -> Any:
        taken = take_dlpack(obj) if hasattr(obj, "__dlpack__") else take_dictionary(obj)
        return None if defect == "says nothing" else taken

    return take


def late() -> Consumer:
    """The same without a defect. It keeps what it took until it has 60, and has been called again."""
    take, kept = plain(), []

    def take_and_keep(obj: Any) -> Any:
        if len(kept) >= 60:
            kept.clear()
        kept.append(take(obj))
        return kept[-1]

    return take_and_keep
