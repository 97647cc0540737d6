#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Types that offer DLPack's exchange in C, made of their describe and adopt by cai_python_dlpack.h.

    check_dlpack_table.py --dlpack FOLDER [--cc cc] [--root FOLDER]

FOLDER has dlpack/dlpack.h of 1.3 or later. dlpack_table.c is built in a temporary folder. It has two types on the
simulated CUDA, Array (in order at both ends) and Plain. One consumer is in C and knows only dlpack.h. The other is TVM
FFI, if it is installed. cai_check.h finds races; cases that must race show that the test is not blind. Exit status 0:
all is right; 1: not; 77: no compiler, no Python.h, or no dlpack.h that is new enough.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any, Callable

HERE = pathlib.Path(__file__).resolve().parent
READ_ONLY, OWNED, EVENT, UNKNOWN, SWAPPED, FAILS = 1, 2, 4, 8, 16, 32
CUDA = 2


def expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")


def refused(what: str, call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    try:
        call()
    except kind as error:
        if text not in str(error):
            raise AssertionError(f"{what}: refused by {error!r}, not by {text!r}") from error
        return
    raise AssertionError(f"{what}: taken")


# ----------------------------------------------------------------------------------------------------------- values
def check_facts(m: Any) -> None:
    """The same array by both exchanges."""
    s1, s2 = m.streams(2)
    m.set(s1)
    x = m.Array(s1)
    before = sys.getrefcount(x)
    address, shape, strides, *rest = m.facts(x)
    expect("shape", shape, (2, 3))
    expect("strides in elements", strides, (8, 1))
    expect("dtype, device, flags", rest[:5], [2, 32, 1, (CUDA, 0), 0])
    expect("version", rest[5][0], 1)
    expect("by the other exchange", m.imported(x, s2), (address, (32, 4), True))
    m.settle()
    expect("references", sys.getrefcount(x), before)
    y = m.Array(s1, READ_ONLY)
    expect("flags of a read-only array", m.facts(y)[7], 1)
    expect("read-only by the other exchange", m.imported(y, s2)[2], False)


def check_owned(m: Any) -> None:
    """What describe gives away is released once, also if it is refused."""
    s1, s2 = m.streams(2)
    m.set(s1)
    for how in (OWNED, OWNED | READ_ONLY):
        x = m.Array(s1, how)
        before = sys.getrefcount(x)
        m.facts(x)
        expect("not released", m.lent(), 0)
        expect("references", sys.getrefcount(x), before)
    y = m.Array(s1, OWNED | SWAPPED)
    z = m.Plain(s2, OWNED)
    before = sys.getrefcount(y), sys.getrefcount(z)
    refused("swapped", lambda: m.facts(y), BufferError, "swapped")
    refused("another stream", lambda: m.facts(z), BufferError, "current stream")
    expect("not released", m.lent(), 0)
    expect("references", (sys.getrefcount(y), sys.getrefcount(z)), before)


def check_at_once(m: Any) -> None:
    """A tensor that is dropped lets its object go, without a later call of the module."""
    (s1,) = m.streams(1)
    m.set(s1)
    for kind in (m.Plain, m.Array):
        x = kind(s1)
        before = sys.getrefcount(x)
        m.facts(x)
        expect(f"references, {kind.__name__}", sys.getrefcount(x), before)


def check_refused(m: Any) -> None:
    s1, s2 = m.streams(2)
    m.set(s1)
    elsewhere = "not in the current stream"
    cases = (("swapped", m.Array(s1, SWAPPED), "swapped"), ("describe fails", m.Array(s1, FAILS), "not now"),
             ("unknown", m.Array(s1, UNKNOWN), elsewhere), ("a plain type", m.Plain(s2), elsewhere),
             ("an event", m.Plain(s1, EVENT), elsewhere))  # fmt: skip
    for what, x, text in cases:
        before = sys.getrefcount(x)
        refused(what, lambda x=x: m.facts(x), BufferError, text)
        expect(f"references, {what}", sys.getrefcount(x), before)
    expect("the allocator", m.allocate(m.Array(s1)).split(":")[0], "NotImplementedError")


def check_types(m: Any) -> None:
    """Derived types inherit, copies of the attribute prove nothing, and a type can describe its arrays anew."""
    (s1,) = m.streams(1)
    m.set(s1)
    name = "__dlpack_c_exchange_api__"

    class Derived(m.Array):  # type: ignore[misc, name-defined]
        pass

    class Anew(m.Array):  # type: ignore[misc, name-defined]
        __cuda_array_interface__ = None

    class Crossed(m.Array):  # type: ignore[misc, name-defined]
        pass

    class Copy:
        pass

    setattr(Copy, name, m.Array.__dlpack_c_exchange_api__)
    setattr(Crossed, name, m.Plain.__dlpack_c_exchange_api__)
    expect("derived", m.facts(Derived(s1))[1], (2, 3))
    expect("made of a derived", type(m.make(Derived(s1))), m.Array)
    for what, x in (("anew", Anew(s1)), ("a copy", Copy()), ("of another type", Crossed(s1))):
        refused(what, lambda x=x: m.facts(x), BufferError, "of this type")
    own = m.Plain.__dlpack_c_exchange_api__
    setattr(m.Plain, name, m.Array.__dlpack_c_exchange_api__)
    refused("a copy in a type with an exchange", lambda: m.facts(m.Plain(s1)), BufferError, "of this type")
    setattr(m.Plain, name, own)


def check_made(m: Any) -> None:
    """adopt gets what the tensor is, and a tensor that is refused stays the caller's."""
    (s1,) = m.streams(1)
    m.set(s1)
    for kind in (m.Array, m.Plain):
        for how in (0, OWNED):
            x = kind(s1, how)
            before = sys.getrefcount(x)
            y = m.make(x)
            expect("type", type(y), kind)
            expect("tensor", m.facts(y), m.facts(x))
            m.settle()
            expect("kept", (sys.getrefcount(x) - before, m.lent()), (0, 1) if how else (1, 0))
            del y
            m.set(s1, 0)
            m.settle()
            expect("given back", (sys.getrefcount(x) - before, m.lent()), (0, 0))
    x = m.Array(s1)
    before = sys.getrefcount(x)
    m.set(s1, 1)
    refused("adopt", lambda: m.make(x), BufferError, "not adopted")
    m.set(s1, 0)
    refused("version", lambda: m.make(x, 2), BufferError, "major version")
    m.settle()
    expect("references", sys.getrefcount(x), before)


def check_tvm(m: Any) -> str:
    """A consumer that many use: from_dlpack, and calls in which arrays go in and come back."""
    try:
        import tvm_ffi
    except ImportError:
        return "TVM FFI is not installed"
    (s1,) = m.streams(1)
    m.set(s1)
    x = m.Array(s1)
    before = sys.getrefcount(x)
    t = tvm_ffi.from_dlpack(x)
    expect("a reference", sys.getrefcount(x), before + 1)
    device = t.__dlpack_device__()
    expect("from_dlpack", (t.data_ptr(), tuple(t.shape), tuple(t.strides), str(t.dtype), tuple(map(int, device))),
           (m.facts(x)[0], (2, 3), (8, 1), "float32", (CUDA, 0)))  # fmt: skip
    del t
    m.settle()  # it stays until the stream has passed
    expect("references", sys.getrefcount(x), before)
    seen = []
    echo = tvm_ffi.convert(lambda y: (seen.append(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", 0))), y)[1])
    y = echo(x)
    expect("what came back", type(y), m.Array)
    expect("the stream of the call", seen, [s1])
    expect("the tensor that came back", m.facts(y), m.facts(x))
    del y
    m.settle()
    expect("references", sys.getrefcount(x), before)
    m.set(s1, 1)  # adopt refuses: TVM FFI calls the deleter, and returns a tensor of its own
    expect("what came back instead", type(echo(x)), tvm_ffi.Tensor)
    m.set(s1, 0)
    refused("swapped", lambda: echo(m.Array(s1, SWAPPED)), BufferError, "swapped")
    m.settle()
    expect("references", sys.getrefcount(x), before)
    asked = []

    class Anew(m.Array):  # type: ignore[misc, name-defined]
        def __dlpack__(self, **keywords: Any) -> Any:
            asked.append(keywords)
            raise BufferError("asked")

    refused("from_dlpack", lambda: tvm_ffi.from_dlpack(Anew(s1)), BufferError, "asked")
    expect("__dlpack__ was asked", len(asked) > 0, True)
    return ""


class ExchangeAPI(ctypes.Structure):
    """DLPackExchangeAPI of dlpack.h 1.3."""

    _fields_ = [("version", ctypes.c_uint32 * 2), *((name, ctypes.c_void_p) for name in (
        "previous", "allocate", "from_object", "to_object", "borrow", "current_stream"))]  # fmt: skip


def check_first(m: Any) -> str:
    """TVM FFI asks only the first array for its stream. A type of another library has the default one."""
    try:
        import tvm_ffi
    except ImportError:
        return "TVM FFI is not installed"
    (s1,) = m.streams(1)
    m.set(s1)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    give_of = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
    stream_of = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
    table = ExchangeAPI.from_buffer_copy(ExchangeAPI.from_address(pointer(m.Array.__dlpack_c_exchange_api__, b"dlpack_exchange_api")))
    give = give_of(table.from_object)

    def default(_device: int, _number: int, out: Any) -> int:
        out[0] = None
        return 0

    kept = give_of(lambda other, out: give(other.array, out)), stream_of(default)
    table.from_object, table.current_stream = (ctypes.cast(function, ctypes.c_void_p).value for function in kept)

    class Other:
        __dlpack_c_exchange_api__ = ctypes.addressof(table)

        def __init__(self) -> None:
            self.array = m.Array(s1)

    seen: list[int] = []
    note = tvm_ffi.convert(lambda *_: seen.append(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", 0))))
    note(m.Array(s1), Other())
    note(Other(), m.Array(s1))
    expect("the stream of the call", seen, [s1, 0])
    m.settle()
    return ""


def check_twice(m: Any) -> None:
    """A second module of the same file has types of its own, and the same tables."""
    (s1,) = m.streams(1)
    m.set(s1)
    second = load(pathlib.Path(m.__file__).parent)
    second.streams(1)
    expect("the last type is made", type(m.make(m.Array(s1, OWNED))), second.Array)
    expect("the first type", m.facts(m.Array(s1))[1], (2, 3))
    second.settle()
    expect("the second", second.close(), "")
    del second
    gc.collect()
    refused("a type that is gone", lambda: m.make(m.Array(s1)), RuntimeError, "no type")


def check_interpreters(m: Any) -> str:
    """A table is one for all interpreters, and makes the type of each."""
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        return "no _xxsubinterpreters"
    (s1,) = m.streams(1)
    code = (f"import sys\nsys.path.insert(0, {str(pathlib.Path(m.__file__).parent)!r})\nimport dlpack_table as m\n"
            f"(s1,) = m.streams(1)\nm.set(s1)\ny = m.make(m.Array(s1, {OWNED}))\nassert type(y) is m.Array\n"
            "del y\nm.settle()\nassert m.close() == ''\n")  # fmt: skip
    other = interpreters.create()
    try:
        interpreters.run_string(other, code)
    except interpreters.RunFailedError as error:
        raise AssertionError(f"in another interpreter: {error}") from error
    interpreters.destroy(other)
    m.set(s1)
    expect("the type of this interpreter", type(m.make(m.Array(s1, OWNED))), m.Array)
    m.settle()
    return ""


# ------------------------------------------------------------------------------------------------------------ order
def used(m: Any, kind: str, pending: str, how: int = 0, wrong: bool = False) -> None:
    """A consumer launches on the current stream, and drops the tensor while the kernel is queued; so does Python."""
    s1, s2 = m.streams(2)
    m.set(s1)
    x = getattr(m, kind)({"none": 0, "same": s1, "other": s2}[pending], how)
    m.use(x, s2 if wrong else 0)
    del x


def made(m: Any) -> None:
    """An array goes out, comes back, and is used on another stream by the other exchange."""
    s1, s2, s3 = m.streams(3)
    m.set(s1)
    x = m.Array(s3)
    m.use(x)
    y = m.make(x)
    m.imported(y, s2)
    del x, y


CASES: list[tuple[str, bool, Callable[[Any], None]]] = [
    ("plain, pending in the current stream", False, lambda m: used(m, "Plain", "same")),
    ("plain, no stream", True, lambda m: used(m, "Plain", "none")),
    ("pending in the current stream", False, lambda m: used(m, "Array", "same")),
    ("pending in another stream", False, lambda m: used(m, "Array", "other")),
    ("an event", False, lambda m: used(m, "Array", "other", EVENT)),
    ("no stream", False, lambda m: used(m, "Array", "none")),
    ("a consumer on another stream", True, lambda m: used(m, "Array", "same", wrong=True)),
    ("out and back", False, made),
]


def build(options: argparse.Namespace, folder: pathlib.Path) -> str | None:
    target = folder / ("dlpack_table" + sysconfig.get_config_var("EXT_SUFFIX"))
    places = (options.root, options.root / "ext", options.root / "sim", sysconfig.get_paths()["include"])
    command = [options.cc, "-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread",
               *(f"-I{place}" for place in places), f"-isystem{options.dlpack}",
               str(HERE / "dlpack_table.c"), "-o", str(target)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None


def load(folder: pathlib.Path) -> Any:
    path = next(folder.glob("dlpack_table*"))
    specification = importlib.util.spec_from_file_location("dlpack_table", path)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def why_skipped(options: argparse.Namespace) -> str | None:
    if not shutil.which(options.cc):
        return f"no {options.cc}"
    if not (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "no Python.h"
    header = options.dlpack and options.dlpack / "dlpack" / "dlpack.h"
    if not header or not header.exists() or not re.search("DLPackExchangeAPI;", header.read_text()):
        return "no dlpack/dlpack.h of 1.3 or later"
    return None


def judge_values(m: Any, check: Callable[[Any], str | None]) -> bool:
    said, skipped = "", None
    try:
        skipped = check(m)
    except AssertionError as error:
        said = str(error)
    said = said or m.lent() and "arrays that were not released" or m.close()  # by now all arrays are gone
    print(f"{check.__name__[6:]}: {f'{said}: WRONG' if said else skipped or 'right'}")
    return bool(said)


def run(m: Any) -> int:
    checks = (check_facts, check_owned, check_at_once, check_refused, check_types, check_made,
              check_tvm, check_first, check_interpreters)
    bad = sum(judge_values(m, check) for check in checks)
    for what, races, case in CASES:
        case(m)
        said = m.close()
        right = said.startswith("race on") if races else not said
        print(f"{what}: {said or 'in order'}{'' if right else ': WRONG'}")
        bad += not right
    bad += judge_values(m, check_twice)  # last: afterwards nothing is made
    print(f"{len(CASES) + len(checks) + 1} cases, {bad} wrong")
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="where the headers are")
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    options = parser.parse_args()
    reason = why_skipped(options)
    if reason:
        print(f"check_dlpack_table.py: skipped, {reason}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        error = build(options, pathlib.Path(name))
        if error:
            print(error)
            return 1
        return run(load(pathlib.Path(name)))


if __name__ == "__main__":
    sys.exit(main())
