# SPDX-License-Identifier: MIT
"""The libraries: where they are, how they are loaded, and the structs of cai_sim.h, cai_check.h, cai_timeline.h and
cai_driver.h."""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import subprocess
import sys
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from . import _stand_ins

RUNTIMES = ("libcudart.so.13", "libcudart.so.12")
COMPILERS = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvJitLink.so.13", "libnvJitLink.so.12")
NAME = 160  # bytes for a name of a stream or of memory
TEXT = 640  # CAI_CHECK_TEXT

LAUNCH, RECORD, WAIT, SYNCHRONIZE, HOST_ACCESS, ALLOC, FREE, PUBLISH, OBSERVE, COPY, HOST_FUNCTION, GRAPH = range(1, 13)
KINDS = {
    LAUNCH: "launch", RECORD: "event record", WAIT: "event wait", SYNCHRONIZE: "synchronization",
    HOST_ACCESS: "host access", ALLOC: "allocation", FREE: "free", PUBLISH: "publish", OBSERVE: "observe", COPY: "copy",
    HOST_FUNCTION: "host function", GRAPH: "graph launch",
}  # fmt: skip
DROPPED = 3  # CAI_SIM_STATE_DROPPED
MAY_READ = 3  # CAI_SIM_MAY_READ; above it CAI_SIM_MAY_ACCESS
FOLLOWS, GLOBALS, UNREAD, EARLY, ELSEWHERE = 1, 2, 4, 8, 16  # CAI_KERNEL_FOLLOWS and the others, of a launch
DESTROYED, NEVER_MADE, OUT_OF_REACH = 1, 2, 3  # CAI_DRIVER_...
SEEN = "access before this call"  # CAI_DRIVER_HOST_ACCESS


class Access(ctypes.Structure):  # cai_sim_access
    _fields_ = [("address", c_uint64), ("bytes", c_uint64), ("write", c_int32), ("memory", c_int32)]


class Operation(ctypes.Structure):  # cai_sim_operation
    _fields_ = [
        ("id", c_uint64), ("kind", c_int32), ("state", c_int32), ("stream", c_uint64), ("context", c_uint64),
        ("thread", c_uint64), ("event", c_uint64), ("capture", c_uint64), ("order", c_uint64), ("name", c_char_p),
        ("waits", POINTER(c_uint64)), ("accesses", POINTER(Access)), ("wait_count", c_int32), ("access_count", c_int32),
        ("declared", c_int32), ("event_number", c_int32), ("tag", c_uint64), ("executable", c_uint64), ("node", c_uint64),
        ("newest", c_uint64), ("branch", c_int32), ("reserved", c_int32),
    ]  # fmt: skip


class CheckRace(ctypes.Structure):  # cai_check_race
    _fields_ = [
        ("first", c_uint64), ("second", c_uint64), ("address", c_uint64), ("bytes", c_uint64),
        ("first_writes", c_int32), ("second_writes", c_int32), ("memory", c_int32), ("certain", c_int32),
    ]  # fmt: skip


class TimelineOptions(ctypes.Structure):  # cai_timeline_options
    _fields_ = [("title", c_char_p), ("first", c_uint64), ("labels", c_void_p), ("room", c_uint64 * 8)]


class DriverCall(ctypes.Structure):  # cai_driver_call
    _fields_ = [
        ("name", c_char_p), ("caller", c_void_p), ("site", c_uint64), ("kernel", c_char_p),
        ("opaque", c_int32), ("follows", c_int32),
    ]  # fmt: skip


class DriverFunction(ctypes.Structure):  # cai_driver_function
    _fields_ = [("name", c_char_p), ("calls", c_int64), ("asked", c_int32), ("served", c_int32), ("failed", c_int64)]


class DriverDead(ctypes.Structure):  # cai_driver_dead
    _fields_ = [
        ("what", c_int32), ("argument", c_int32), ("device", c_int32), ("of_device", c_int32), ("kind", c_char_p),
        ("name", c_char_p), ("call", c_char_p), ("made", c_uint64), ("destroyed", c_uint64), ("used", c_uint64),
    ]  # fmt: skip


class Lifetime(ctypes.Structure):  # cai_sim_lifetime
    _fields_ = [
        ("made", c_uint64), ("ended", c_uint64), ("before", c_uint64), ("after", c_uint64), ("number", c_int32), ("live", c_int32),
        ("kind", c_int32), ("device", c_int32),
    ]  # fmt: skip


class DriverHost(ctypes.Structure):  # cai_driver_host
    _fields_ = [("watched", c_int64), ("not_watched", c_int64), ("forgotten", c_int64), ("registered", c_int64)]


class RuntimeFunction(ctypes.Structure):  # cai_runtime_function
    _fields_ = [("name", c_char_p), ("calls", c_int64), ("served", c_int32), ("reserved", c_int32)]


class DlInfo(ctypes.Structure):  # Dl_info
    _fields_ = [("file", c_char_p), ("base", c_void_p), ("symbol", c_char_p), ("address", c_void_p)]


# name: (result, arguments). The handle of a simulation and text that C allocates are c_void_p.
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "cai_driver_sim": (c_void_p, ()),
    "cai_driver_configure": (c_int32, (c_int32, c_uint64, c_uint32)),
    "cai_driver_set_site": (None, (c_void_p, c_void_p)),
    "cai_driver_call_of": (c_int32, (c_uint64, POINTER(DriverCall))),
    "cai_driver_mark": (None, (c_char_p,)),
    "cai_driver_source": (c_int32, (c_char_p, c_size_t, c_char_p, c_size_t)),
    "cai_driver_undefined": (c_int32, (c_int32, POINTER(DriverDead))),
    "cai_sim_stream_lifetime": (c_int32, (c_void_p, c_uint64, POINTER(Lifetime))),
    "cai_driver_host_get": (None, (POINTER(DriverHost),)),
    "cai_driver_turned_away": (c_int32, (c_int32, c_char_p, c_size_t)),
    "cai_driver_function_get": (c_int32, (c_int32, POINTER(DriverFunction))),
    "cai_sim_operation_count": (c_uint64, (c_void_p,)),
    "cai_sim_operation_get": (c_int32, (c_void_p, c_uint64, POINTER(Operation))),
    "cai_sim_stream_name": (None, (c_void_p, c_uint64, c_char_p, c_size_t)),
    "cai_sim_access_name": (None, (c_void_p, POINTER(Access), c_char_p, c_size_t)),
    "cai_sim_access_memory": (c_int32, (c_void_p, POINTER(Access), POINTER(c_uint64))),
    "cai_sim_errors": (c_int32, (c_void_p, c_char_p, c_size_t)),
    "cai_sim_publish": (c_uint64, (c_void_p,)),
    "cai_sim_observe": (c_int32, (c_void_p, c_uint64)),
    "cai_sim_pending": (c_int32, (c_void_p,)),
    "cai_check_races": (c_int32, (c_void_p, POINTER(CheckRace), c_int32)),
    "cai_check_race_text": (None, (c_void_p, POINTER(CheckRace), c_char_p)),
    "cai_check_order_make": (c_void_p, (c_void_p,)),
    "cai_check_order_free": (None, (c_void_p,)),
    "cai_check_before": (c_int32, (c_void_p, c_uint64, c_uint64)),
    "cai_timeline_text": (c_void_p, (c_void_p, POINTER(TimelineOptions))),
    "cai_timeline_svg": (c_void_p, (c_char_p, POINTER(c_int32))),
}
RECORDER = {"cai_driver_record": (c_int32, (c_char_p, c_char_p, c_size_t))}
RUNTIME = {"cai_runtime_function_get": (c_int32, (c_int32, POINTER(RuntimeFunction)))}
SITES = {
    "cai_sites_begin": (c_int32, (c_void_p,)),
    "cai_sites_end": (None, ()),
    "cai_sites_get": (c_int32, (c_uint64, POINTER(c_uint64), POINTER(c_void_p), POINTER(c_int32))),
    "cai_sites_missed": (c_uint64, ()),
    "cai_sites_here": (c_uint64, (c_void_p,)),
}
PROTOTYPE = CFUNCTYPE(c_uint64, c_void_p)


def declare(library: ctypes.CDLL, functions: dict[str, tuple[Any, tuple[Any, ...]]]) -> ctypes.CDLL:
    """Sets the types of functions. One that is missing is an AttributeError with its name."""
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def folder() -> pathlib.Path:
    """Where the libraries are: CAI_SIM_LIBRARIES, or beside this file."""
    return pathlib.Path(os.environ.get("CAI_SIM_LIBRARIES") or pathlib.Path(__file__).resolve().parent / "lib")


def point_libraries() -> None:
    """Libraries that look for the driver by a variable of their own: Triton in a folder, Dr.Jit by file."""
    load_by_name()
    os.environ.setdefault("TRITON_LIBCUDA_PATH", str(folder()))
    os.environ.setdefault("DRJIT_LIBCUDA_PATH", str(folder() / "libcuda.so.1"))
    os.environ.setdefault("CUPY_ACCELERATORS", "")  # sums by CuPy's own kernels: its CUB has a static runtime
    # PyTorch: each tensor is a block of its own, and its free is in the trace. Older versions know the second name.
    if not {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} & set(os.environ):
        os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"


def loaded() -> list[str]:
    """The files of CUDA's driver and runtime that this process has loaded."""
    try:
        maps = pathlib.Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return []
    return sorted(set(re.findall(r"^[^/\n]* (/.*/lib(?:cuda|cudart)(?:-[0-9a-f]+)?\.so[^/\n]*)$", maps, re.M)))


def foreign() -> list[str]:
    """Those of them that are not this package's."""
    ours = os.path.realpath(folder())
    return [file for file in loaded() if os.path.dirname(os.path.realpath(file)) != ours]


def real_driver() -> str:
    """The file of the system's libcuda.so.1. It is not loaded: who asks for libcuda.so.1 then would get it."""
    places = [pathlib.Path(place) for place in os.environ.get("LD_LIBRARY_PATH", "").split(":") if place]
    try:
        known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    except OSError:
        known = ""
    files = [place / "libcuda.so.1" for place in places]
    wide = r"^\s*libcuda\.so\.1 \([^)]*(?:x86-64|AArch64)[^)]*\) => (.*)$"  # not those of 32 bits
    files += map(pathlib.Path, re.findall(wide, known, re.M))
    files += [pathlib.Path(place, "libcuda.so.1") for place in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib")]
    found = next((file for file in files if file.exists()), None)
    if found is None:
        raise RuntimeError("there is no libcuda.so.1 of a real driver on this system: name its file")
    return str(found)


def real_library(name: str) -> str:
    """The file of a library of CUDA's toolkit, where its users look for it: packages of Python, an environment of
    conda, the system's places, and a toolkit. "": there is none."""
    places = [place for path in sys.path if path for place in sorted(pathlib.Path(path).glob("nvidia/*/lib"))]
    places.append(pathlib.Path(sys.prefix, "lib"))
    places += [pathlib.Path(place) for place in os.environ.get("LD_LIBRARY_PATH", "").split(":") if place]
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places += [pathlib.Path(toolkit, "lib64") for toolkit in toolkits if toolkit]
    places += [pathlib.Path(place) for place in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")]
    ours = os.path.realpath(folder())
    return next((str(place / name) for place in places
                 if (place / name).exists() and os.path.realpath(place) != ours), "")  # fmt: skip


def load_compilers() -> list[ctypes.CDLL]:
    """Loads the stand-ins of NVRTC and nvJitLink, each where the real one is found. Who asks for the library by its
    soname finds the stand-in, which hands PTX to the driver. The real one is opened at the first call."""
    stand_ins = []
    for name in COMPILERS:
        real = real_library(name)
        if not real or not (folder() / name).exists():
            continue
        stand_in = ctypes.CDLL(str(folder() / name), ctypes.RTLD_LOCAL)
        stand_in.cai_compiler_real.argtypes = [c_char_p]
        stand_in.cai_compiler_real.restype = None
        stand_in.cai_compiler_real(os.fsencode(real))
        stand_ins.append(stand_in)
    return stand_ins


def open_real(recorder: ctypes.CDLL, file: str) -> None:
    """Gives the recorder the driver that it records."""
    declare(recorder, RECORDER)
    why = ctypes.create_string_buffer(TEXT)
    if not recorder.cai_driver_record(file.encode(), why, TEXT):
        raise RuntimeError(f"{file} cannot be recorded: {why.value.decode(errors='replace')}")


def load(recorder: bool = False) -> tuple[ctypes.CDLL, ctypes.CDLL, list[ctypes.CDLL]]:
    """Loads the driver, so that every library finds its functions, then the runtimes that are there. Returns the
    driver, the library that tells places in Python, and the runtimes. recorder: the driver is the recorder, and the
    runtimes are those of CUDA, which libraries load themselves."""
    here = folder()
    file = here / "record" / "libcuda.so.1" if recorder else here / "libcuda.so.1"
    if not file.exists():
        raise RuntimeError(f"there is no {file.name} in {file.parent}: build this package with pip, or set CAI_SIM_LIBRARIES")
    driver = declare(ctypes.CDLL(str(file), ctypes.RTLD_GLOBAL), FUNCTIONS)
    files = [here / name for name in RUNTIMES if (here / name).exists() and not recorder]
    runtimes = [declare(ctypes.CDLL(str(file), ctypes.RTLD_GLOBAL), RUNTIME) for file in files]
    if not recorder:
        runtimes += [declare(library, RUNTIME) for library in _stand_ins.load(here)]
    sites = declare(ctypes.CDLL(str(here / "libcai_sites.so")), SITES)
    load_compilers()
    return driver, sites, runtimes


def load_by_name() -> None:
    """A library that loads one of ours by path, as PyTorch does with libcudart.so.13 of its packages, gets ours."""
    load = ctypes.CDLL.__init__

    def init(self: ctypes.CDLL, name: Any, *arguments: Any, **options: Any) -> None:
        base = os.path.basename(name) if isinstance(name, str) else ""
        load(self, base if base in ours and os.path.dirname(name) != place else name, *arguments, **options)

    place = str(folder())
    ours = {"libcuda.so.1", *RUNTIMES, *_stand_ins.loaded}
    ctypes.CDLL.__init__ = init  # type: ignore[method-assign]


_libc = ctypes.CDLL(None)
_libc.free.restype = None
_libc.free.argtypes = [c_void_p]
_libc.dladdr.restype = c_int32
_libc.dladdr.argtypes = [c_void_p, POINTER(DlInfo)]


def text_of(pointer: int | None) -> str:
    """Text that C allocated, which is freed."""
    if not pointer:
        return ""
    text = ctypes.string_at(pointer).decode(errors="replace")
    _libc.free(pointer)
    return text


def file_of(address: int | None) -> str:
    """The shared object that has an address, or ""."""
    info = DlInfo()
    if not address or not _libc.dladdr(address, ctypes.byref(info)) or not info.file:
        return ""
    return info.file.decode(errors="replace")
