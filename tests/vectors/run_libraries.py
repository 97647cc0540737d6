#!/usr/bin/env python3
"""Gives the vectors to real libraries: dictionaries on the simulated driver, DLPack tensors on the host.

    run_libraries.py [--python PYTHON ...] [--write]

What a library gets wrong must be what vectors.json says of it ("known": "run", "as": "reader"). --write writes it there,
then make_vectors.py --write renews the rest. CuPy is not in CI: --python names an environment with it.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import subprocess
import sys
from typing import Any, Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "vectors"))
import check_vectors  # noqa: E402
import dlpack_capsules as dlpack  # noqa: E402

MASTER = ROOT / "vectors" / "vectors.json"
MADE_UP = dlpack.MADE_UP
Facts = dict
Reader = Callable[[Facts], Facts]


class Array:
    def __init__(self, interface: Facts) -> None:
        self.__cuda_array_interface__ = interface


def at(table: Facts, base: int) -> Facts:
    """The dictionary with memory that is there."""
    data = table.get("data")
    if isinstance(data, tuple) and data and type(data[0]) is int and MADE_UP <= data[0] < MADE_UP + 4096:
        return {**table, "data": (data[0] - MADE_UP + base, *data[1:])}
    return table


def facts(shape: Any, itemsize: int, **more: Any) -> Facts:
    """Of an empty array no stride and no flag matters. Nobody here has masks."""
    found = {"shape": list(shape), "itemsize": itemsize, "size": math.prod(shape), "mask": None}
    return {**found, **more} if found["size"] else found


def numba_reader() -> Iterator[Reader]:
    from numba import cuda

    memory = cuda.device_array(1 << 16, "u1")
    base = memory.__cuda_array_interface__["data"][0] + 4096

    def read(table: Facts) -> Facts:
        array = cuda.from_cuda_array_interface(at(table, base), sync=False)
        return facts(array.shape, array.dtype.itemsize, strides=list(array.strides),
                     c_contiguous=array.is_c_contiguous(), f_contiguous=array.is_f_contiguous(),
                     read_only=array.__cuda_array_interface__["data"][1])  # fmt: skip

    yield read
    del memory


def core_reader() -> Iterator[Reader]:
    from cuda.core import Device
    from cuda.core.utils import StridedMemoryView

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    memory = device.allocate(1 << 16, stream=stream)
    base = int(memory.handle) + 4096

    def read(table: Facts) -> Facts:
        handle = type(table.get("stream")) is int and table["stream"] > 2  # nobody's stream
        mine = -1 if handle or "stream" not in table else int(stream.handle)  # -1: streams are left alone
        view = StridedMemoryView.from_cuda_array_interface(Array(at(table, base)), stream_ptr=mine)
        itemsize = view.dtype.itemsize
        strides = {} if view.strides is None else {"strides": [step * itemsize for step in view.strides]}
        return facts(view.shape, itemsize, read_only=view.readonly, **strides)

    yield read
    del memory


def cupy_reader() -> Iterator[Reader]:
    import cupy

    memory = cupy.empty(1 << 16, "u1")
    base = memory.data.ptr + 4096

    def read(table: Facts) -> Facts:
        if type(table.get("stream")) is int and table["stream"] > 2:
            table = {**table, "stream": 1}
        array = cupy.asarray(Array(at(table, base)))
        return facts(array.shape, array.itemsize, nbytes=array.nbytes, strides=list(array.strides),
                     c_contiguous=array.flags.c_contiguous, f_contiguous=array.flags.f_contiguous,
                     read_only=array.__cuda_array_interface__["data"][1])  # fmt: skip

    yield read
    del memory


# ------------------------------------------------------------------------------------------------------- DLPack


class Unsaid(Exception):
    """The vector is about what the reader does not ask for."""


def asked(read: Callable[[dlpack.Object], Facts]) -> Reader:
    def reader(given: Facts) -> Facts:
        thing = dlpack.Object(given)
        try:
            found = read(thing)
        except Exception:
            if thing.unsaid:
                raise Unsaid from None
            raise
        found.pop("mask")
        if "address" in found:
            found["address"] += MADE_UP - dlpack.BASE
        return found

    return reader


def numpy_dlpack() -> Iterator[Reader]:
    import numpy

    def read(thing: dlpack.Object) -> Facts:
        array = numpy.from_dlpack(thing)
        return facts(array.shape, array.itemsize, dtype=array.dtype.name, address=array.ctypes.data,
                     strides=list(array.strides), nbytes=array.nbytes, c_contiguous=array.flags.c_contiguous,
                     f_contiguous=array.flags.f_contiguous, read_only=not array.flags.writeable)  # fmt: skip

    yield asked(read)


def core_dlpack() -> Iterator[Reader]:
    from cuda.core.utils import StridedMemoryView

    def read(thing: dlpack.Object) -> Facts:
        view = StridedMemoryView.from_dlpack(thing, stream_ptr=-1)
        itemsize = view.dtype.itemsize
        strides = {} if view.strides is None else {"strides": [step * itemsize for step in view.strides]}
        return facts(view.shape, itemsize, dtype=view.dtype.name, address=view.ptr, read_only=view.readonly, **strides)

    yield asked(read)


def tvm_dlpack() -> Iterator[Reader]:
    import tvm_ffi

    def read(thing: dlpack.Object) -> Facts:
        tensor = tvm_ffi.from_dlpack(thing)
        bits = tensor.dtype.bits * tensor.dtype.lanes
        if bits % 8:
            return {"shape": list(tensor.shape), "mask": None}
        return facts(tensor.shape, bits // 8, address=tensor.data_ptr(), strides=[step * bits // 8 for step in tensor.strides])

    yield asked(read)


def jax_dlpack() -> Iterator[Reader]:
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_enable_x64", True)

    def read(thing: dlpack.Object) -> Facts:
        array = jax.numpy.from_dlpack(thing)  # what is not aligned is copied
        return facts(array.shape, array.dtype.itemsize, dtype=array.dtype.name)

    yield asked(read)


# ------------------------------------------------------------------------------------------------------ libraries

DESCR, FORK = "it looks at descr", "a vector may crash it"
READERS = {  # library and kind: the distribution, the reader, what else is to be known
    ("numba-cuda", "dictionary"): ("numba-cuda", numba_reader, ""),
    ("cuda.core", "dictionary"): ("cuda-core", core_reader, ""),
    ("CuPy", "dictionary"): ("cupy-cuda13x", cupy_reader, DESCR),
    ("NumPy", "dlpack"): ("numpy", numpy_dlpack, FORK),
    ("cuda.core", "dlpack"): ("cuda-core", core_dlpack, FORK),
    ("tvm_ffi", "dlpack"): ("apache-tvm-ffi", tvm_dlpack, FORK),
    ("JAX", "dlpack"): ("jax", jax_dlpack, ""),  # its threads do not go with a fork
}


def in_words(wrong: str) -> str:
    """One of accepted, refused with the kind of exception, and the facts that differ."""
    if wrong.startswith("is accepted"):
        return "accepted"
    if wrong.startswith("is refused"):
        return "refused, " + wrong.split(": ")[1]
    return "ignores the mask" if wrong.startswith("mask is None") else wrong


def judged(vector: Facts, read: Reader) -> str:
    """What the reader gets wrong. A vector that is about what it does not ask for is right."""

    def unless_unsaid(given: Facts) -> Facts:
        try:
            return read(given)
        except Unsaid:
            unsaid.append(vector["id"])
            raise

    unsaid: list[str] = []
    wrong = check_vectors.judge(vector, unless_unsaid)
    return "" if unsaid or not wrong else in_words(wrong)


def judged_apart(vector: Facts, read: Reader) -> str:
    """The same, in a process of its own."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, (judged(vector, read) or "right").encode())
        os._exit(0)
    os.close(theirs)
    said = os.read(ours, 4000).decode()
    os.close(ours)
    os.waitpid(child, 0)
    return "" if said == "right" else said or "crashes"


def look_at(name: str, kind: str) -> Facts:
    """What is found of a library, in this process."""
    package, reader, more = READERS[name, kind]
    try:
        if kind == "dictionary":
            import cai_sim

            cai_sim.start()
        kept = reader()  # until the end, with its memory
        read = next(kept)
    except Exception as error:  # an import of a large library fails in many ways
        return {"missing": f"{type(error).__name__}: {str(error)[:200]}"}
    found = {}
    for vector in check_vectors.load():
        about_descr = "descr" in vector.get("entry", []) and "descr" in vector["input"]
        if vector["kind"] != kind or vector.get("policy") or (about_descr and more != DESCR):
            continue
        if kind == "dlpack" and not dlpack.is_of_host(vector):
            continue
        wrong = (judged_apart if more == FORK else judged)(vector, read)
        if wrong:
            found[vector["id"]] = wrong
    return {"version": importlib.metadata.version(package), "found": found}


def look_apart(name: str, kind: str, pythons: list[str]) -> Facts:
    """The same, in a process of its own, by the first Python that has the library."""
    answer: Facts = {}
    for python in [sys.executable, *pythons]:
        command = [python, "-B", __file__, "--library", name, kind]
        done = subprocess.run(command, capture_output=True, text=True)
        last = [line for line in done.stdout.splitlines() if line.startswith('{"')]
        answer = json.loads(last[-1]) if last else {"failed": f"status {done.returncode}: {done.stderr[-800:]}"}
        if "missing" not in answer:
            break
    return answer


def is_run(one: Facts, name: str) -> bool:
    return (one["library"], one["as"], one["known"]) == (name, "reader", "run")


def written(wrong: list[Facts], name: str, does: str | None, version: str) -> list[Facts]:
    """What a vector says of libraries, after a run of one of them."""
    kept = []
    for one in wrong:
        source = (one["library"], one["as"], one["known"]) == (name, "reader", "source")
        if source and does is not None and "fixed" not in one:
            continue  # it was run
        if source and one["does"].split(",")[0] in ("accepted", "refused") and "fixed" not in one:
            one = {**one, "fixed": version}
        if not is_run(one, name):
            kept.append(one)
    return kept + ([{"library": name, "as": "reader", "does": does, "known": "run"}] if does is not None else [])


def judge(master: Facts, name: str, kind: str, seen: Facts) -> int:
    vectors = [vector for vector in master["vectors"] if vector["kind"] == kind]
    expected = {vector["id"]: one["does"] for vector in vectors for one in vector.get("wrong", []) if is_run(one, name)}
    bad = 0
    for id in sorted({*expected, *seen["found"]}):
        if expected.get(id) != seen["found"].get(id):
            bad += 1
            print(f"{name} {seen['version']}, {id}: {seen['found'].get(id, 'right')}, not {expected.get(id, 'right')}: WRONG")
    print(f"{name} {seen['version']}, {kind}: {len(seen['found'])} vectors wrong")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", action="append", default=[], help="another one that has libraries; repeatable")
    parser.add_argument("--write", action="store_true", help="writes vectors.json")
    parser.add_argument("--library", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.library:
        print(json.dumps(look_at(*options.library)), flush=True)
        return 0
    master = json.loads(MASTER.read_text(encoding="utf-8"))
    bad = here = 0
    for name, kind in READERS:
        seen = look_apart(name, kind, options.python)
        if "found" not in seen:
            print(f"{name}, {kind}: {seen}")
            bad += "failed" in seen
            continue
        here += 1
        if options.write:
            master["libraries"][name]["run"] = seen["version"]
            for vector in master["vectors"]:
                if vector["kind"] == kind and "policy" not in vector:
                    vector["wrong"] = written(vector.get("wrong", []), name, seen["found"].get(vector["id"]), seen["version"])
        else:
            bad += judge(master, name, kind, seen)
    if options.write:
        for vector in master["vectors"]:
            if not vector.get("wrong", True):
                del vector["wrong"]
        MASTER.write_text(json.dumps(master), encoding="utf-8")
        return int(bad > 0)
    if not here and not bad:
        print("skipped: no library is here")
        return 77
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
