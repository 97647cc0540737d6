# SPDX-License-Identifier: MIT
"""Places in the Python program: told by libcai_sites.so (cai_sites.c) as a number, and read from it here."""

from __future__ import annotations

import atexit
import ctypes
import dataclasses
import functools
import importlib.metadata
import linecache
import os
import re
import sys
import sysconfig
from ctypes import c_int32, c_uint64, c_void_p

# In the order of struct sites_python.
INTERPRETER = (
    "PyGILState_Check", "PyGILState_GetThisThreadState", "PyGILState_Ensure", "PyGILState_Release", "PyEval_SaveThread",
    "PyEval_RestoreThread", "PyThreadState_GetFrame", "PyFrame_GetBack", "PyFrame_GetCode", "PyFrame_GetLineNumber",
    "Py_DecRef", "PyGC_Disable", "PyGC_Enable",
)  # fmt: skip
HERE = os.path.dirname(os.path.abspath(__file__))
COMMAND = "<command>"  # the file name of what -c runs
LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


@dataclasses.dataclass(frozen=True)
class Frame:
    """A line of a Python stack."""

    file: str
    line: int
    function: str

    @property
    def installed(self) -> bool:
        """Whether it is of Python, of an installed package, of a module that reports skip, or of no file."""
        if self.file.startswith("<"):
            return self.file != COMMAND
        if self.file.startswith((HERE, *LIBRARY)) or re.search(r"/(site|dist)-packages/", self.file):
            return True
        return skipped(self.file)

    @property
    def source(self) -> str:
        """The text of the line, or ""."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{short(self.file)}:{self.line}, in {self.function}"


@functools.lru_cache(maxsize=None)
def skipped(file: str) -> bool:
    """Whether the module of this file has __cai_sim_skip__ = True: a binding whose callers are the user's lines."""
    dictionaries = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
    return any(one.get("__file__") == file and one.get("__cai_sim_skip__") is True for one in dictionaries)


def short(file: str) -> str:
    """A file name as a reader of the report writes it; of an installed package as it is imported."""
    installed = re.search(r"/(?:site|dist)-packages/(.*)", file)
    if installed:
        return installed[1]
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return file
    return file if file.startswith("<") or relative.startswith("..") else relative


class Sites:
    """The places of a run."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.known: dict[int, tuple[Frame, ...]] = {0: ()}
        self.function: c_void_p | None = None
        pointers = [ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value for name in INTERPRETER]
        table = (c_void_p * len(pointers))(*pointers)
        if library.cai_sites_begin(ctypes.addressof(table)):
            self.function = ctypes.cast(library.cai_sites_here, c_void_p)
            atexit.register(library.cai_sites_end)

    def frames(self, site: int) -> tuple[Frame, ...]:
        """The stack of a place, the innermost line first."""
        walked = []
        outer, code, line = c_uint64(), c_void_p(), c_int32()
        at = site
        while at not in self.known:
            if not self.library.cai_sites_get(at, ctypes.byref(outer), ctypes.byref(code), ctypes.byref(line)):
                self.known[at] = ()
                break
            found = ctypes.cast(code, ctypes.py_object).value
            frame = Frame(found.co_filename, line.value, getattr(found, "co_qualname", found.co_name))
            walked.append((at, frame))
            at = outer.value
        stack = self.known[at]
        for number, frame in reversed(walked):
            stack = (frame, *stack)
            self.known[number] = stack
        return self.known[site]

    @property
    def missed(self) -> int:
        """Calls whose place is not known because another thread kept the GIL."""
        return self.library.cai_sites_missed()


@functools.lru_cache(maxsize=None)
def _records() -> list[tuple[str, str, str]]:
    """Of each installed distribution: its folder, its files, and its name with the version."""
    found = []
    for distribution in importlib.metadata.distributions():
        record = distribution.read_text("RECORD")
        if record:
            base = os.path.realpath(str(distribution.locate_file("")))
            found.append((base, "\n" + record, f"{distribution.metadata['Name']} {distribution.version}"))
    return found


@functools.lru_cache(maxsize=None)
def distribution_of(file: str) -> str:
    """The installed distribution that a file is of, such as "numba-cuda 0.30.4", or ""."""
    real = os.path.realpath(file)
    for base, record, name in _records():
        if real.startswith(base + os.sep) and f"\n{os.path.relpath(real, base)}," in record:
            return name
    return ""


@functools.lru_cache(maxsize=None)
def library_of(file: str) -> str:
    """What to call the shared object that called: its distribution, or its name."""
    name = os.path.basename(file)
    if name.startswith("libffi"):
        return "ctypes"
    return distribution_of(file) or name or "unknown"
