# SPDX-License-Identifier: MIT
"""What test_libraries.py and bench_libraries.py share: libraries.c as a module, and the libraries behind one shape.

A library that cannot be used raises Missing with the reason. Those of the host need no GPU; what is about the device
is written for CuPy, PyTorch, Numba, JAX, cuda.core, Warp, RMM and PyCUDA, and each works on a stream of its own there.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
from typing import Any, Callable, Iterator

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Packages that bring DLPack's header, and where
HEADERS = (
    ("tvm_ffi", "include/dlpack/dlpack.h"),
    ("torch", "include/ATen/dlpack.h"),
    ("cupy", "_core/include/cupy/_dlpack/dlpack.h"),
)
FLAGS = ("-std=c99", "-O2", "-g", "-fPIC", "-shared")


class Missing(Exception):
    """Why something cannot be used here."""


def need(name: str) -> Any:
    """A module, or Missing."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # an import of a large library fails in many ways
        raise Missing(f"{name} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def version(*names: str) -> str:
    """The version of the first of these distributions that is installed."""
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return "?"


def need_jax() -> Any:
    """JAX's part for CUDA may end the process where there is no driver: it is left alone then. Where there is one it
    takes most of the memory, unless told not to."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if "JAX_PLATFORMS" not in os.environ and sys.platform.startswith("linux"):
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            os.environ["JAX_PLATFORMS"] = "cpu"
    return need("jax")


# ------------------------------------------------------------------------------ the module


def compiler() -> str:
    named = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    found = next((path for path in map(shutil.which, filter(None, named)) if path), None)
    if not found:
        raise Missing("no C compiler (CC, cc, gcc, clang)")
    return found


def dlpack_header() -> pathlib.Path | None:
    """Of an installed package: one with the exchange between types, else one that has versions."""
    known = []
    for package, path in HEADERS:
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(package)
            for folder in (spec.submodule_search_locations if spec else None) or ():
                header = pathlib.Path(folder) / path
                if header.is_file():
                    known.append(header)
    for mark in ("DLPackExchangeAPI", "DLManagedTensorVersioned"):
        for header in known:
            if mark in header.read_text(errors="replace"):
                return header
    return None


def build(folder: str | os.PathLike[str], flags: tuple[str, ...] = (), simulated: bool = False) -> Any:
    """libraries.c as a module of this Python, built in `folder`. simulated: its device is that of sim."""
    include = sysconfig.get_path("include")
    if not (pathlib.Path(include) / "Python.h").exists():
        raise Missing("no Python.h")
    made = pathlib.Path(folder) / f"libraries{sysconfig.get_config_var('EXT_SUFFIX')}"
    includes = [f"-I{ROOT}", f"-I{ROOT / 'ext'}", "-isystem", include]
    if simulated:
        includes += ["-DLIBRARIES_SIMULATED", f"-I{ROOT / 'sim'}"]
    link = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-ldl"]
    command = [compiler(), *FLAGS, *flags, *includes, str(HERE / "libraries.c"), "-o", str(made), *link]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"libraries.c does not build:\n{' '.join(command)}\n{run.stderr}")
    return load(made, "libraries")


def build_caster(folder: str | os.PathLike[str]) -> Any:
    """caster.cpp as a module of this Python, built in `folder`."""
    named = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
    cxx = next((path for path in map(shutil.which, filter(None, named)) if path), None)
    if not cxx or not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
        raise Missing("no C++ compiler (CXX, c++, g++, clang++) or no Python.h")
    made = pathlib.Path(folder) / f"caster{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ["-std=c++17", "-O0", "-fPIC", "-shared", "-fvisibility=hidden"]
    includes = [f"-I{ROOT}", f"-I{ROOT / 'ext'}", "-isystem", sysconfig.get_path("include")]
    link = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-ldl", "-lpthread"]
    command = [cxx, *flags, *includes, str(HERE / "caster.cpp"), "-o", str(made), *link]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"caster.cpp does not build:\n{' '.join(command)}\n{run.stderr}")
    return load(made, "caster")


def build_nanobind(folder: str | os.PathLike[str]) -> Any:
    """bench_nanobind.cpp as a module of this Python, built in `folder`."""
    nanobind = need("nanobind")
    target = pathlib.Path(folder) / f"bench_nanobind{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not target.exists():
        at = pathlib.Path(nanobind.include_dir()).parent
        free_threaded = ["-DNB_FREE_THREADED"] if sysconfig.get_config_var("Py_GIL_DISABLED") else []
        flags = ["-std=c++17", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing"]
        includes = [f"-I{at / 'include'}", f"-I{at / 'ext' / 'robin_map' / 'include'}"]
        includes += ["-isystem", sysconfig.get_path("include")]
        sources = [str(HERE / "bench_nanobind.cpp"), str(at / "src" / "nb_combined.cpp")]
        command = ["c++", *flags, *free_threaded, *includes, *sources, "-o", str(target)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise Missing(str(error)) from None
        if done.returncode:
            raise Missing(done.stderr.strip().splitlines()[0])
    return load(target, "bench_nanobind")


def load(path: pathlib.Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Only:
    """An object with some attributes of another one, and nothing else: so that these are what is read."""

    def __init__(self, thing: Any, *names: str) -> None:
        self.thing = thing
        for name in names:
            setattr(self, name, getattr(thing, name))


class Sized(Only):
    """One with a length, which some ask for before they look at anything else."""

    def __len__(self) -> int:
        table = getattr(self, "__cuda_array_interface__", None) or self.__array_interface__
        return int(table["shape"][0])


def as_is(thing: Any) -> Any:
    return thing


def by_dlpack(thing: Any) -> Any:
    return Only(thing, "__dlpack__", "__dlpack_device__")


def by_dictionary(thing: Any) -> Any:
    return Only(thing, "__cuda_array_interface__")


# -------------------------------------------------------------------------------- the host


class Host:
    """A library with arrays in host memory. make: of a NumPy array, a copy. ways: what an import is given. take:
    arrays of the library over what is given to it, and whether the memory is the same. numbers: as NumPy has them.
    read_only: the ways that give no leave to write; all of them where the library never does."""

    name = "?"
    ways: dict[str, Callable[[Any], Any]] = {"as is": as_is}
    take: dict[str, tuple[Callable[[Any], Any], bool]] = {}
    read_only: tuple[str, ...] = ()

    def make(self, values: Any) -> Any:
        raise NotImplementedError

    def numbers(self, array: Any) -> Any:
        raise NotImplementedError


class NumPy(Host):
    name = "NumPy"
    ways = {
        "as is": as_is,
        "__array_interface__": lambda a: Only(a, "__array_interface__"),
        "__dlpack__": by_dlpack,
        "buffer": memoryview,
    }

    def __init__(self) -> None:
        self.numpy = need("numpy")
        self.version = version("numpy")
        self.take = {"asarray": (self.numpy.asarray, True), "from_dlpack": (self.numpy.from_dlpack, True)}

    def make(self, values: Any) -> Any:
        return values.copy(order="K")

    def numbers(self, array: Any) -> Any:
        return array


class PlainPython(Host):
    """What has no library: ctypes, through the buffer protocol."""

    name = "ctypes"

    def __init__(self) -> None:
        self.numpy = need("numpy")
        self.version = sys.version.split()[0]

    def make(self, values: Any) -> Any:
        kind = ctypes.c_float
        for extent in reversed(values.shape):
            kind = kind * extent
        return kind.from_buffer_copy(values.tobytes())

    def numbers(self, array: Any) -> Any:
        return self.numpy.frombuffer(array, "f4").reshape(memoryview(array).shape)


class TorchOnHost(Host):
    name = "PyTorch"
    ways = {"as is": as_is, "__dlpack__": by_dlpack}

    def __init__(self) -> None:
        self.torch = need("torch")
        self.version = version("torch")
        self.take = {
            "from_dlpack": (self.torch.from_dlpack, True),
            "as_tensor": (self.torch.as_tensor, False),
            "asarray": (self.torch.asarray, False),
        }

    def make(self, values: Any) -> Any:
        return self.torch.tensor(values)

    def numbers(self, array: Any) -> Any:
        return array.numpy()


class JaxOnHost(Host):
    name = "JAX"
    ways = {"as is": as_is, "__dlpack__": by_dlpack, "buffer": memoryview}
    read_only = tuple(ways)

    def __init__(self) -> None:
        self.jax = need_jax()
        self.numpy = need("numpy")
        self.version = version("jax")
        try:
            self.device = self.jax.devices("cpu")[0]
        except RuntimeError as error:
            raise Missing(f"jax has no device cpu: {error}") from None
        self.take = {
            "from_dlpack": (self.jax.dlpack.from_dlpack, True),
            "asarray": (self.jax.numpy.asarray, False),
        }

    def make(self, values: Any) -> Any:
        return self.jax.device_put(values, self.device).block_until_ready()

    def numbers(self, array: Any) -> Any:
        return self.numpy.asarray(array)


class TvmOnHost(Host):
    name = "tvm_ffi"
    ways = {"as is": as_is, "__dlpack__": by_dlpack}

    def __init__(self) -> None:
        self.tvm = need("tvm_ffi")
        self.numpy = need("numpy")
        self.version = version("apache-tvm-ffi")
        self.take = {"from_dlpack": (self.tvm.from_dlpack, True)}

    def make(self, values: Any) -> Any:
        return self.tvm.from_dlpack(values.copy(order="K"))

    def numbers(self, array: Any) -> Any:
        return self.numpy.from_dlpack(array)


class CudaCoreOnHost(Host):
    """Views of NumPy's memory."""

    name = "cuda.core"
    ways = {"as is": as_is, "__dlpack__": by_dlpack}

    def __init__(self) -> None:
        self.numpy = need("numpy")
        self.view = need("cuda.core.utils").StridedMemoryView
        self.version = version("cuda-core")
        self.take = {"from_dlpack": (lambda thing: self.view.from_dlpack(thing, stream_ptr=-1), True)}

    def make(self, values: Any) -> Any:
        return self.view.from_dlpack(values.copy(order="K"), stream_ptr=-1)

    def numbers(self, array: Any) -> Any:
        return self.numpy.from_dlpack(array)


class WarpOnHost(Host):
    name = "Warp"
    ways = {"as is": as_is, "__dlpack__": by_dlpack}
    read_only = ("__dlpack__",)  # a capsule of before DLPack 1.0, which cannot say that it may be written to

    def __init__(self) -> None:
        self.warp = need("warp")
        self.version = version("warp-lang")
        self.warp.config.quiet = True
        self.warp.init()
        self.take = {"from_dlpack": (self.warp.from_dlpack, True), "array": (self.over, True)}

    def over(self, thing: Any) -> Any:
        return self.warp.array(Sized(thing, "__array_interface__"), dtype=self.warp.float32, device="cpu", copy=False)

    def make(self, values: Any) -> Any:
        return self.warp.array(values, dtype=self.warp.float32, device="cpu")

    def numbers(self, array: Any) -> Any:
        return array.numpy()


HOST: tuple[type[Host], ...] = (NumPy, PlainPython, TorchOnHost, JaxOnHost, TvmOnHost, CudaCoreOnHost, WarpOnHost)


# ------------------------------------------------------------------------------ the device


class Device:
    """A library with arrays on device 0.

    stream: a new one, not a default stream. put: a NumPy array of floats, copied to the device; nothing is pending
    when it returns. room: as much memory, for `write`. write: copies one array of the library into another, queued on
    the stream and without a wait of the host; returns the array that has the values. current: makes the stream the
    one that the library exports with.

    ways: (what an import is given, does it say where the work is pending). take: (an array of the library over what
    is given to it, does its stream wait for what is pending there). refused: (a way that takes no array with work
    on a stream of others, what the exception says). read: the floats as NumPy has them, read on the stream."""

    name = "?"
    has_streams = True
    ways: dict[str, tuple[Callable[[Any], Any], bool]] = {}
    take: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {}
    refused: dict[str, tuple[Callable[[Any, Any], Any], str]] = {}

    def __init__(self, module: Any) -> None:
        self.module = module
        self.numpy = need("numpy")
        self.open()

    def open(self) -> None:
        raise NotImplementedError

    def number(self, stream: Any) -> int:
        return int(stream.__cuda_stream__()[1]) or 1

    @contextlib.contextmanager
    def current(self, stream: Any) -> Iterator[None]:
        yield

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        raise NotImplementedError


class CuPy(Device):
    name = "CuPy"
    ways = {"dictionary": (by_dictionary, True), "as is": (as_is, True), "__dlpack__": (by_dlpack, True)}

    def open(self) -> None:
        self.cupy = need("cupy")
        self.version = self.cupy.__version__
        if not self.cupy.is_available():
            raise Missing("CuPy has no CUDA here")
        self.take = {
            "asarray": (lambda thing, stream: self.cupy.asarray(thing), True),
            "from_dlpack": (lambda thing, stream: self.cupy.from_dlpack(thing), True),
        }

    def stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def number(self, stream: Any) -> int:
        return int(stream.ptr)

    @contextlib.contextmanager
    def current(self, stream: Any) -> Iterator[None]:
        with stream:
            yield

    def put(self, values: Any, stream: Any) -> Any:
        with stream:
            made = self.cupy.asarray(values)
        stream.synchronize()
        return made

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.full_like(values, -1), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        with stream:
            self.cupy.copyto(to, source)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        with stream:
            return self.cupy.asnumpy(array + 0 if self.module.computes() else array, stream=stream)


class Torch(Device):
    name = "PyTorch"
    ways = {"as is": (as_is, True), "__dlpack__": (by_dlpack, True), "dictionary": (by_dictionary, False)}

    def open(self) -> None:
        self.torch = need("torch")
        self.version = self.torch.__version__
        if not self.torch.cuda.is_available():
            raise Missing("PyTorch has no CUDA here")
        self.take = {
            "from_dlpack": (lambda thing, stream: self.torch.from_dlpack(thing), True),
            "as_tensor": (lambda thing, stream: self.torch.as_tensor(thing, device="cuda:0"), False),
        }

    def stream(self) -> Any:
        return self.torch.cuda.Stream()

    def number(self, stream: Any) -> int:
        return int(stream.cuda_stream)

    @contextlib.contextmanager
    def current(self, stream: Any) -> Iterator[None]:
        with self.torch.cuda.stream(stream):
            yield

    def put(self, values: Any, stream: Any) -> Any:
        with self.torch.cuda.stream(stream):
            made = self.torch.tensor(values, device="cuda:0")
        stream.synchronize()
        return made

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.full_like(values, -1), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        with self.torch.cuda.stream(stream):
            to.copy_(source)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        with self.torch.cuda.stream(stream):
            return (array + 0 if self.module.computes() else array).cpu().numpy()


class Numba(Device):
    name = "Numba"
    ways = {"as is": (as_is, True)}

    def open(self) -> None:
        self.cuda = need("numba.cuda")
        self.version = version("numba-cuda", "numba")
        if not self.cuda.is_available():
            raise Missing("Numba has no CUDA here")
        self.take = {
            "as_cuda_array": (lambda thing, stream: self.cuda.as_cuda_array(thing), True),
            "as_cuda_array(sync=False)": (lambda thing, stream: self.cuda.as_cuda_array(thing, sync=False), False),
        }

    def stream(self) -> Any:
        return self.cuda.stream()

    def number(self, stream: Any) -> int:
        return int(getattr(stream.handle, "value", stream.handle))

    def put(self, values: Any, stream: Any) -> Any:
        made = self.cuda.to_device(values, stream=stream)
        stream.synchronize()
        return made

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.full_like(values, -1), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        to.copy_to_device(source, stream=stream)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        host = array.copy_to_host(stream=stream)
        stream.synchronize()
        return host


class Jax(Device):
    """JAX has streams, but shows none: what is pending is a long computation, whose result is the array."""

    name = "JAX"
    has_streams = False
    ways = {"as is": (as_is, False), "__dlpack__": (by_dlpack, True)}

    def open(self) -> None:
        self.jax = need_jax()
        self.version = self.jax.__version__
        if not self.module.computes():
            raise Missing("JAX works by kernels, and device code does not run on the simulated driver")
        try:
            self.device = self.jax.devices("cuda")[0]
        except RuntimeError as error:
            raise Missing(f"JAX has no CUDA here: {' '.join(str(error).split())[:200]}") from None
        self.take = {
            "from_dlpack": (lambda thing, stream: self.jax.dlpack.from_dlpack(thing), True),
        }
        # it looks for the dictionary's stream among its own
        self.refused = {"asarray": (lambda thing, stream: self.jax.numpy.asarray(thing), "GetStreamFromExternalStream")}
        self.late = self.jax.jit(self.compute_late)

    def compute_late(self, values: Any, matrix: Any) -> Any:
        """The values, after a chain of products that the compiler cannot leave out."""
        numpy = self.jax.numpy
        chain = self.jax.lax.fori_loop(0, 40, lambda i, m: m @ matrix, matrix)
        return values + numpy.minimum(numpy.abs(chain[0, 0]), 0)

    def stream(self) -> Any:
        return None

    def number(self, stream: Any) -> int:
        return 1

    def put(self, values: Any, stream: Any) -> Any:
        return self.jax.device_put(values, self.device).block_until_ready()

    @functools.cached_property
    def matrix(self) -> Any:
        return self.put(self.numpy.eye(4096, dtype="f4"), None)

    def room(self, values: Any, stream: Any) -> Any:
        return None

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        return self.late(source, self.matrix)

    def read(self, array: Any, stream: Any) -> Any:
        return self.numpy.asarray(array + 0)


class CudaCore(Device):
    """Memory of cuda.core says nothing of streams: whoever hands it over orders them."""

    name = "cuda.core"

    def open(self) -> None:
        try:
            core, utils = need("cuda.core"), need("cuda.core.utils")
            self.core, self.view = core, utils.StridedMemoryView
            self.device = core.Device(0)
        except (Missing, AttributeError):
            core = need("cuda.core.experimental")
            self.core, self.view = core, need("cuda.core.experimental.utils").StridedMemoryView
            self.device = core.Device(0)
        self.version = version("cuda-core")
        self.device.set_current()
        self.ways = {"Buffer": (by_dlpack, False)}
        if hasattr(self.view, "from_buffer"):
            self.ways["StridedMemoryView"] = (self.view_of, False)
        self.take = {
            "StridedMemoryView, dictionary": (lambda t, s: self.view(by_dictionary(t), self.number(s)), True),
            "StridedMemoryView, __dlpack__": (lambda t, s: self.view(by_dlpack(t), self.number(s)), True),
        }

    def view_of(self, buffer: Any) -> Any:
        return self.view.from_buffer(buffer, (buffer.size // 4,), dtype=self.numpy.dtype("f4"))

    def stream(self) -> Any:
        return self.device.create_stream()

    def put(self, values: Any, stream: Any) -> Any:
        made = self.device.allocate(values.nbytes, stream=stream)
        ours = self.module.upload(values, self.number(stream))
        source = self.core.Buffer.from_handle(ours.__cuda_array_interface__["data"][0], values.nbytes, owner=ours)
        made.copy_from(source, stream=stream)
        stream.sync()
        return made

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.full_like(values, -1), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        to.copy_from(source, stream=stream)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        data = self.module.copy(array.ptr, array.shape[0] * array.dtype.itemsize, self.number(stream))
        return self.numpy.frombuffer(data, "f4")


class Warp(Device):
    name = "Warp"
    ways = {"as is": (as_is, False), "__dlpack__": (by_dlpack, True)}

    def open(self) -> None:
        self.warp = need("warp")
        self.version = self.warp.__version__
        self.warp.config.quiet = True
        self.warp.init()
        if not self.warp.is_cuda_available():
            raise Missing("Warp has no CUDA here")
        self.take = {
            "from_dlpack": (lambda thing, stream: self.warp.from_dlpack(thing), True),
            "array": (self.over, False),
        }

    def over(self, thing: Any, stream: Any) -> Any:
        sized = Sized(thing, "__cuda_array_interface__")
        return self.warp.array(sized, dtype=self.warp.float32, device="cuda:0", copy=False)

    def stream(self) -> Any:
        return self.warp.Stream("cuda:0")

    def number(self, stream: Any) -> int:
        return int(stream.cuda_stream)

    @contextlib.contextmanager
    def current(self, stream: Any) -> Iterator[None]:
        with self.warp.ScopedStream(stream, sync_enter=False):
            yield

    def put(self, values: Any, stream: Any) -> Any:
        with self.current(stream):
            made = self.warp.array(values, dtype=self.warp.float32, device="cuda:0")
        self.warp.synchronize_stream(stream)
        return made

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.full_like(values, -1), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        self.warp.copy(to, source, stream=stream)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        with self.current(stream):
            return array.numpy()


class Rmm(Device):
    """Bytes, and a dictionary without a stream."""

    name = "RMM"
    ways = {"as is": (as_is, False)}

    def open(self) -> None:
        self.rmm = need("rmm")
        self.streams = need("rmm.pylibrmm.stream")
        self.version = self.rmm.__version__
        self.take = {"copy_from_device": (self.copied, False)}

    def copied(self, thing: Any, stream: Any) -> Any:
        made = self.rmm.DeviceBuffer(size=4 * thing.__cuda_array_interface__["shape"][0], stream=stream)
        made.copy_from_device(thing, stream=stream)
        return made

    def stream(self) -> Any:
        return self.streams.Stream()

    def put(self, values: Any, stream: Any) -> Any:
        data = values.tobytes()
        made = self.rmm.DeviceBuffer.to_device(data, stream=stream)
        stream.synchronize()  # data must live until then
        return made

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.full_like(values, -1), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        to.copy_from_device(source, stream=stream)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        return self.numpy.frombuffer(array.tobytes(stream=stream), "f4")


class PyCuda(Device):
    """Its dictionary says that nothing is pending, whatever is: whoever hands it over orders the streams. It shares
    the primary context of the other libraries."""

    name = "PyCUDA"
    ways = {"as is": (as_is, False)}

    def open(self) -> None:
        why = self.module.device()  # where there is no device its modules below fail in many ways
        if why:
            raise Missing(why)
        need("pycuda.autoprimaryctx")
        self.driver, self.arrays = need("pycuda.driver"), need("pycuda.gpuarray")
        self.version = version("pycuda")
        self.take = {"GPUArray": (self.over, False)}

    def over(self, thing: Any, stream: Any) -> Any:
        table = thing.__cuda_array_interface__
        return self.arrays.GPUArray(table["shape"], table["typestr"], base=thing, gpudata=table["data"][0])

    def stream(self) -> Any:
        return self.driver.Stream()

    def number(self, stream: Any) -> int:
        return int(stream.handle)

    def put(self, values: Any, stream: Any) -> Any:
        made = self.arrays.to_gpu_async(values, stream=stream)
        stream.synchronize()
        return made

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.full_like(values, -1), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        self.driver.memcpy_dtod_async(to.gpudata, source.gpudata, source.nbytes, stream)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        host = array.get_async(stream=stream)
        stream.synchronize()
        return host


class Ours(Device):
    """The module itself in the place of a library, so that the tests can be tried in simulation."""

    name = "ours"

    def open(self) -> None:
        self.version = "0"
        self.ways = {"as is": (as_is, True), "dictionary": (by_dictionary, True)}
        if self.module.HAS_DLPACK:
            self.ways["__dlpack__"] = (by_dlpack, True)
        self.take = {"dictionary": (lambda thing, stream: self.module.adopted(by_dictionary(thing)), False)}

    def stream(self) -> Any:
        return self.module.stream()

    def put(self, values: Any, stream: Any) -> Any:
        return self.module.upload(values, stream)

    def room(self, values: Any, stream: Any) -> Any:
        return self.put(self.numpy.zeros_like(values), stream)

    def write(self, to: Any, source: Any, stream: Any) -> Any:
        self.module.saxpy(1, source, to, stream, into=True)
        return to

    def read(self, array: Any, stream: Any) -> Any:
        table = array.__cuda_array_interface__
        data = self.module.copy(table["data"][0], 4 * table["shape"][0], stream)
        return self.numpy.frombuffer(data, "f4")


DEVICE: tuple[type[Device], ...] = (CuPy, Torch, Numba, Jax, CudaCore, Warp, Rmm, PyCuda)
