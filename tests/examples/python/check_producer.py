#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/producer, in C and in C++, on the simulated driver: what it gives to libraries, and takes of them, in order.

    check_producer.py --cc gcc --cxx g++ [--dlpack FOLDER] [--only c|cpp] [--planted]

Builds both modules in a temporary folder. Each then runs the programs below: `alone`, without another library that makes
a context, `several` threads, and `libraries`. A race, a handle that was destroyed, a failed check, or no end is a
failure. Of several threads, a race that a lock may prevent is none.
--planted: defects that are put into the sources, one at a time, are found. Exit status 0: all is right; 1: not; 77: no
compiler, no Python.h, no dlpack.h, no package cai_sim, or no library.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import weakref

sys.dont_write_bytecode = True
from build_module import FLAGS, INCLUDES, ROOT, build, load, needs, skip  # noqa: E402

SOURCES = {"c": "producer.c", "cpp": "producer.cpp"}
PARTS = ("alone", "libraries")
SECONDS = 60  # of a program; a wait with the GIL held never ends
DEADLOCK = 5  # of a program with a defect
N = 1024  # bytes of an array

# What is planted, the program that finds it, and for each source what is replaced, and by what. Each stands there once.
PLANTED = (
    ("the stream is not kept", "alone", {
        "c": [("self->stream = Py_XNewRef(stream);", "")],
        "cpp": [("self->stream = Py_XNewRef(stream);", "")]}),
    ("the module is not kept", "alone", {
        "c": [("= Py_NewRef(module);", "= module;"), ("Py_DECREF(module); /* perhaps", "/* perhaps")],
        "cpp": [("= Py_NewRef(module);", "= module;"), ("Py_DECREF(module); /* perhaps", "/* perhaps")]}),
    ("the array of a view is not kept", "alone", {
        "c": [("self->base = Py_XNewRef(base);", "")],
        "cpp": [("self->base = Py_XNewRef(base);", "")]}),
    ("the memory is freed on another stream", "alone", {
        "c": [("cai_array_release(array); /*", "array->stream = 1; cai_array_release(array); /*")],
        "cpp": [("cai_array_release(&array); /*", "array.stream = 1; cai_array_release(&array); /*")]}),
    ("the memory of others goes at once", "alone", {
        "c": [("return cai_keepalive_push(array, &state->pool, array->stream, err);",
               "{ cai_array_release(array); return CAI_OK; }")],
        "cpp": [("return cai_keepalive_push(&array, cuda.pool, array.stream, err);",
                 "{ cai_array_release(&array); return CAI_OK; }")]}),
    ("a wait ends a capture", "alone", {
        "c": [("if (array->sync == CAI_SYNC_STREAM)\n        return cai_keepalive_push",
               "state->pool.cuda->stream_synchronize(state->pool.cuda->self, array->stream);\n"
               "    if (array->sync == CAI_SYNC_STREAM)\n        return cai_keepalive_push")],
        "cpp": [("if (array.sync == CAI_SYNC_STREAM) return",
                 "cuda.cuda.stream_synchronize(cuda.cuda.self, array.stream);\n"
                 "    if (array.sync == CAI_SYNC_STREAM) return")]}),
    ("an array is taken without a wait", "alone", {
        "c": [("return cai_migrate(array, &state->pool, stream, err);",
               "{ array->sync = CAI_SYNC_STREAM; array->stream = stream; return CAI_OK; }")],
        "cpp": [("return cai::call(cai_migrate, &array, cuda.pool, stream);",
                 "{ array.sync = CAI_SYNC_STREAM; array.stream = stream; return; }")]}),
    ("nobody makes the context", "alone", {
        "c": [("cuda->primary_retain(cuda->self, DEVICE, &state->context)", "0")],
        "cpp": [("cuda.primary_retain(cuda.self, device, &context)", "0")]}),
    ("the context is not let go", "alone", {
        "c": [("(void)cuda->primary_release(cuda->self, DEVICE);", "{}")],
        "cpp": [("(void)cuda.primary_release(cuda.self, device);", "{}")]}),
    ("the memory of CUDA's pool is not given back", "alone", {
        "c": [("status = cai_emm_pool_destroy(&state->memory, NULL);", "{}")],
        "cpp": [("status = cai_emm_pool_destroy(&memory, nullptr);", "{}")]}),
    ("the stream of a cycle is named after its end", "alone", {
        "c": [("array->sync = CAI_SYNC_UNKNOWN;", "return;")],
        "cpp": [("array.sync = CAI_SYNC_UNKNOWN;", "return;")]}),
    ("a cycle with the module is not seen", "alone", {
        "c": [("Py_VISIT(((array_object *)self)->module);", "")],
        "cpp": [("Py_VISIT(object_of(self)->module);", "")]}),
    ("the end of an array waits with the GIL held", "alone", {
        "c": [("Py_BEGIN_ALLOW_THREADS\n    status = give_back(state, &object->array, &err);\n    Py_END_ALLOW_THREADS",
               "status = give_back(state, &object->array, &err);")],
        "cpp": [("if (unlocked([&] { return give_back(cuda, object->array, &err); }))",
                 "if (give_back(cuda, object->array, &err))")]}),
    ("drain waits with the GIL held", "alone", {
        "c": [("Py_BEGIN_ALLOW_THREADS\n    status = cai_keepalive_drain(&state->pool, &err);\n    Py_END_ALLOW_THREADS",
               "status = cai_keepalive_drain(&state->pool, &err);")],
        "cpp": [("unlocked([&] { cai::call(cai_keepalive_drain, state->cuda->pool); });",
                 "cai::call(cai_keepalive_drain, state->cuda->pool);")]}),
    ("the end of the module waits with the GIL held", "alone", {
        "c": [("Py_BEGIN_ALLOW_THREADS /* it waits */\n    close_cuda(state);\n    Py_END_ALLOW_THREADS",
               "close_cuda(state);")],
        "cpp": [("unlocked([&] { delete state->cuda; });", "delete state->cuda;")]}),
    ("__dlpack__ orders nothing", "libraries", {
        "c": [("return cai_python_dlpack_ordered(&state->py, &state->pool, self, array, &request);",
               "request.flags |= CAI_DLPACK_ORDERED; return cai_python_dlpack(&state->py, self, array, &request);")],
        "cpp": [("return cai_python_dlpack_ordered(&state->py, state->cuda->pool, self, array, &request);",
                 "request.flags |= CAI_DLPACK_ORDERED; return cai_python_dlpack(&state->py, self, array, &request);")]}),
    ("the table of DLPack orders nothing", "libraries", {
        "c": [("cai_python_dlpack_offer_ordered(&state->py, &state->pool, state->type, &dlpack_table)",
               "cai_python_dlpack_offer(&state->py, state->type, &dlpack_table)")],
        "cpp": [("cai_python_dlpack_offer_ordered(&state->py, state->cuda->pool, state->type, &dlpack_table)",
                 "cai_python_dlpack_offer(&state->py, state->type, &dlpack_table)")]}),
    ("adopt takes a borrowed array", "libraries", {
        "c": [("array->release && (array->sync == CAI_SYNC_NONE", "(array->sync == CAI_SYNC_NONE")],
        "cpp": [("array->release && (array->sync == CAI_SYNC_NONE", "(array->sync == CAI_SYNC_NONE")]}),
)  # fmt: skip

# ------------------------------------------------------------------------------------------ what the programs share


def wanted(what, got, expected=True):
    if got != expected:
        sys.exit(f"{what}: {got!r}, not {expected!r}")


def refused(what, call):
    try:
        call()
    except (TypeError, ValueError, BufferError, IndexError, RuntimeError):
        return
    sys.exit(f"{what}: nothing is raised")


def number(stream):
    return stream if isinstance(stream, int) else stream.__cuda_stream__()[1]


class Cuda:
    """The driver. Each stream has memory of its own to copy to."""

    def __init__(self):
        from cuda.bindings import driver

        self.driver = driver
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        error, *results = getattr(self.driver, name)(*arguments)
        if error:
            sys.exit(f"{name}: {error!r}")
        return results[0] if len(results) == 1 else tuple(results)

    def active(self):
        return bool(self.call("cuDevicePrimaryCtxGetState", 0)[1])

    def retain(self):
        self.call("cuCtxSetCurrent", self.call("cuDevicePrimaryCtxRetain", 0))

    def free_bytes(self):
        return int(self.call("cuMemGetInfo")[0])

    def write(self, pointer, stream):
        self.call("cuMemsetD8Async", pointer, 7, N, number(stream))

    def pointer(self, array):
        return array.__cuda_array_interface__["data"][0]


class Stream:
    """A non-blocking stream. It ends with this object, as with the stream objects of all libraries."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.handle = cuda.call("cuStreamCreate", 1)

    def __cuda_stream__(self):
        return 0, int(self.handle)

    def __del__(self):
        self.cuda.call("cuStreamDestroy", self.handle)


class Foreign:
    """An array of a library that frees its memory at once."""

    def __init__(self, cuda, stream):
        self.cuda, self.stream = cuda, stream
        self.memory = cuda.call("cuMemAlloc", N)
        cuda.write(self.memory, stream)
        self.__cuda_array_interface__ = {"shape": (N,), "typestr": "|u1", "data": (int(self.memory), False),
                                         "version": 3, "stream": number(stream)}  # fmt: skip

    def __del__(self):
        self.cuda.call("cuMemFree", self.memory)


class Blocked:
    """Work on a stream that does not end before a thread of Python has run. No thread can while somebody waits with the
    GIL held."""

    def __init__(self, cuda, stream):
        libc = ctypes.CDLL(None)
        self.gate = ctypes.create_string_buffer(64)
        self.post = lambda: libc.sem_post(self.gate)
        libc.sem_init(self.gate, 0, 0)
        wait = ctypes.cast(libc.sem_wait, ctypes.c_void_p).value
        cuda.call("cuLaunchHostFunc", number(stream), cuda.driver.CUhostFn(wait), ctypes.addressof(self.gate))
        threading.Timer(0.05, self.post).start()


def opened(path):
    return load(path, "producer")


# ------------------------------------------------------------------------------------------------------- alone


def context(path, cuda):
    """The module makes the context, and the last array ends it."""
    wanted("a context before the import", cuda.active(), False)
    producer = opened(path)
    wanted("a context after the import", cuda.active())
    x = producer.empty((N,), "|u1", 1)
    del producer
    gc.collect()
    wanted("a context while an array lives", cuda.active())
    wanted("x", (x.shape, x.strides, x.dtype, x.device, len(x)), ((N,), (1,), "|u1", 0, N))
    capsule = x.__dlpack__(stream=1)
    del x
    gc.collect()
    wanted("a context while a capsule lives", cuda.active())
    del capsule
    gc.collect()
    wanted("a context at the end", cuda.active(), False)


def streams(path, cuda):
    """A stream lives as long as an array names it."""
    producer = opened(path)
    s = Stream(cuda)
    seen = weakref.ref(s)
    x = producer.empty((2, N // 2), "|u1", s)
    view = x[1:, ::2]
    whole = x[:]
    other = producer.asarray(x, s)
    del s, x
    gc.collect()
    cuda.write(cuda.pointer(other), other.__cuda_array_interface__["stream"])
    del other
    producer.drain()
    cuda.write(cuda.pointer(whole), whole.__cuda_array_interface__["stream"])
    del whole
    for dtype in (">f4", "<M8[ms]", "<c16", "|b1"):
        wanted("a dtype", producer.empty((3,), dtype, 1).dtype, dtype)
    refused("text", lambda: producer.empty((3,), "<U3", 1))
    refused("an extent that is no number", lambda: producer.empty((3, None, 2), "|u1", 1))
    wanted("the view", (view.shape, view.strides, view[0].shape, view[-1, 3].shape), ((1, N // 4), (N // 2, 2), (N // 4,), ()))
    cuda.call("cuStreamSynchronize", view.__cuda_array_interface__["stream"])
    refused("an index too large", lambda: view[1])
    refused("too many indices", lambda: view[0, 0, 0])
    del view
    producer.drain()
    wanted("the stream at the end", seen(), None)


def reuse(path, cuda):
    """Memory is used again behind the work on it, on other streams, too."""
    producer = opened(path)
    s, t = Stream(cuda), Stream(cuda)
    for _ in range(20):
        x = producer.empty((N,), "|u1", s)
        cuda.write(cuda.pointer(x), s)
        y = producer.asarray(x, t)
        cuda.write(cuda.pointer(y), t)
        del x, y
        y = producer.asarray(Foreign(cuda, s), t)
        cuda.write(cuda.pointer(y), t)
        del y
        z = producer.empty((N,), "|u1", t)
        cuda.write(cuda.pointer(z), t)
        del z
    producer.drain()


def cycles(path, cuda):
    """A collection ends the stream object before the array, and the module with its array."""
    producer = opened(path)
    s = Stream(cuda)
    s.array = producer.empty((N,), "|u1", s)
    s.taken = producer.asarray(Foreign(cuda, Stream(cuda)), s)
    cuda.write(cuda.pointer(s.array), s)
    cuda.write(cuda.pointer(s.taken), s)
    producer.kept = producer.empty((N,), "|u1", Stream(cuda))[3:]
    gone = [weakref.ref(s), weakref.ref(producer)]
    del s, producer
    gc.collect()
    wanted("what is left of the cycles", [ref() for ref in gone], [None, None])


def captures(path, cuda):
    """The capture of a stream goes on when an array goes that it may use. The memory stays, and that is said."""
    producer = opened(path)
    s = Stream(cuda)
    foreign = Foreign(cuda, s)
    x, y = producer.asarray(foreign, s), producer.empty((N,), "|u1", s)
    said = []
    sys.unraisablehook = lambda unraisable: said.append(type(unraisable.exc_value))
    cuda.call("cuStreamBeginCapture", s.handle, cuda.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
    refused("memory of a stream that captures", lambda: producer.empty((N,), "|u1", s))
    del x, y
    graph = cuda.call("cuStreamEndCapture", s.handle)
    sys.unraisablehook = sys.__unraisablehook__
    wanted("what was said", said, [RuntimeError])
    cuda.call("cuGraphDestroy", graph)
    cuda.call("cuStreamSynchronize", s.handle)
    cuda.call("cuMemFree", foreign.memory)
    foreign.memory = 0  # nobody gives it back
    producer.drain()


def waits(path, cuda):
    """Nobody waits with the GIL held: drain, the end of a cycle, the end of the module."""
    producer = opened(path)
    s = Stream(cuda)
    x = producer.asarray(Foreign(cuda, s), s)
    blocked = [Blocked(cuda, s)]
    del x
    producer.drain()
    s.array = producer.empty((N,), "|u1", s)
    blocked.append(Blocked(cuda, s))
    del s
    gc.collect()
    x = producer.asarray(Foreign(cuda, 1), 1)
    blocked.append(Blocked(cuda, 1))
    del x, producer
    gc.collect()
    return blocked


def threads(path, cuda):
    """Threads that share two streams."""
    producer = opened(path)
    shared = Stream(cuda), Stream(cuda)
    failed = []

    def work(first):
        try:
            cuda.retain()
            for i in range(30):
                mine, other = shared[(i + first) % 2], shared[(i + first + 1) % 2]
                x = producer.empty((N,), "|u1", mine)
                cuda.write(cuda.pointer(x), mine)
                y = producer.asarray(x, other)
                cuda.write(cuda.pointer(y), other)
                del x, y
            cuda.call("cuDevicePrimaryCtxRelease", 0)
        except BaseException as error:  # noqa: BLE001, SystemExit, too
            failed.append(repr(error))

    running = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    wanted("threads that failed", failed, [])
    producer.drain()


def leave_nothing(path, cuda, parts):
    cuda.retain()
    before = cuda.free_bytes()
    for part in parts:
        kept = part(path, cuda)
        gc.collect()
        cuda.call("cuCtxSynchronize")
        wanted(f"bytes that {part.__name__} leaves", before - cuda.free_bytes(), 0)
        del kept


def alone(path):
    cuda = Cuda()
    context(path, cuda)
    leave_nothing(path, cuda, (streams, reuse, cycles, captures, waits))


def several(path):
    """What one thread waited for another one may free, behind a lock of the pool, which cai_sim does not see."""
    leave_nothing(path, Cuda(), (threads,))


# --------------------------------------------------------------------------------------------------- libraries


def give(producer, cuda, s, t):
    """Each library takes arrays that have work pending on `s`, and works on its own stream."""
    import numba.cuda
    import tvm_ffi
    from cuda.core.utils import StridedMemoryView

    def pending():
        x = producer.empty((N,), "|u1", s)
        cuda.write(cuda.pointer(x), s)
        return x

    for _ in range(4):
        view = StridedMemoryView.from_dlpack(pending(), stream_ptr=number(t))  # drops it while its work is queued
        cuda.write(view.ptr, t)
        del view
        x = pending()
        view = StridedMemoryView.from_cuda_array_interface(x, stream_ptr=number(t))
        cuda.write(view.ptr, t)
        cuda.call("cuStreamSynchronize", number(t))  # a consumer of the dictionary must wait before it lets go
        del view, x
        theirs = numba.cuda.as_cuda_array(pending())
        wanted("Numba's shape", theirs.shape, (N,))
        host = theirs.copy_to_host()  # on our stream, and perhaps not at once
        cuda.call("cuStreamSynchronize", number(s))
        del theirs, host
        tensor = tvm_ffi.from_dlpack(pending())  # by the table in C; TVM FFI works on our current stream, the legacy one
        cuda.write(tensor.data_ptr(), 1)
        del tensor
    wanted("what TVM FFI returns", type(tvm_ffi.convert(lambda array: array)(pending())), type(pending()))
    producer.drain()


def take(producer, cuda, s, t):
    """Arrays of each library, with work pending on `t`."""
    import numba.cuda
    import numpy
    import tvm_ffi
    from cuda.core import Device

    device = Device(0)
    stream = numba.cuda.stream()
    for _ in range(4):
        theirs = numba.cuda.device_array(N, numpy.uint8, stream=stream)
        cuda.write(cuda.pointer(theirs), int(getattr(stream.handle, "value", stream.handle)))
        x = producer.asarray(theirs, s)
        wanted("the memory of Numba's array", cuda.pointer(x), cuda.pointer(theirs))
        cuda.write(cuda.pointer(x), s)
        del theirs, x  # Numba frees at once
        buffer = device.allocate(N, stream=t)
        cuda.write(int(buffer.handle), t)
        t.sync()  # a Buffer does not say where its work is
        x = producer.asarray(buffer, s)
        cuda.write(cuda.pointer(x), s)
        del buffer, x
        mine = producer.empty((N,), "|u1", t)
        cuda.write(cuda.pointer(mine), t)
        tensor = tvm_ffi.from_dlpack(mine)
        cuda.call("cuStreamSynchronize", 1)  # its __dlpack__ ignores the stream
        x = producer.asarray(tensor, s)
        cuda.write(cuda.pointer(x), s)
        del mine, tensor, x
        producer.drain()


def refuse(producer, s):
    """The host, in both directions."""
    import numpy
    import tvm_ffi

    x = producer.empty((2, 3), "<f4", s)
    host = numpy.zeros(3, "f4")
    refused("an array of NumPy", lambda: producer.asarray(host, s))
    refused("a tensor on the host", lambda: producer.asarray(tvm_ffi.from_dlpack(host), s))
    refused("a list", lambda: producer.asarray([1.0], s))
    refused("no stream", lambda: producer.empty((3,), "<f4", None))
    refused("a negative extent", lambda: producer.empty((-3,), "<f4", s))
    refused("no dtype", lambda: producer.empty((3,), "float", s))
    refused("a type that is not called", lambda: type(x)())
    refused("NumPy", lambda: numpy.from_dlpack(x))
    refused("a copy", lambda: x.__dlpack__(copy=True))
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_platforms", "cpu")
    refused("an array of JAX on the host", lambda: producer.asarray(jax.numpy.zeros(3), s))
    refused("JAX on the host", lambda: jax.dlpack.from_dlpack(x))


def conform(producer, s):
    """tools/cai_conform.py finds nothing. Its references are let go of when it collects."""
    sys.path.insert(0, str(ROOT / "tools"))
    from cai_conform import check

    gc.callbacks.append(lambda phase, info: producer.drain())
    x = producer.empty((4, 6), "<f4", s)
    for what, array in (("2-D", x), ("a view", x[1:, ::2]), ("empty", producer.empty((0, 3), "<i8", s)),
                        ("0-D", producer.empty((), "<c16", 1)), ("taken", producer.asarray(x, 1))):  # fmt: skip
        wanted(f"what is broken, {what}", [str(finding) for finding in check(array)], [])
    gc.callbacks.pop()


def libraries(path):
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    s, t = device.create_stream(), device.create_stream()
    cuda = Cuda()
    producer = opened(path)
    give(producer, cuda, s, t)
    take(producer, cuda, s, t)
    refuse(producer, s)
    conform(producer, s)


# ---------------------------------------------------------------------------------------------------- the test


def made(options, folder, kind, text=None):
    """The module, of the source or of a changed text of it."""
    folder = pathlib.Path(folder)
    source = ROOT / "examples" / "producer" / SOURCES[kind]
    if text is not None:
        source = folder / SOURCES[kind]
        source.write_text(text)
    compiler, flags = options.cc, ()
    if kind == "cpp":
        FLAGS[:] = [flag for flag in FLAGS if not flag.startswith(("-std", "-Wstrict-p", "-Wmissing-p"))]
        compiler, flags = options.cxx, ("-std=c++17",)
    flags += ("-g0",) if text is None else ("-w", "-O0")
    return build(compiler, folder, "producer", [source], INCLUDES, (*flags, "-ldl"))


def run(path, part, seconds=SECONDS, *setting):
    """The exit status, and what was said."""
    command = [sys.executable, "-B", "-m", "cai_sim", *setting, __file__, "--run", part, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return -1, f"no end after {seconds} seconds"
    return done.returncode, done.stdout + done.stderr


def plain(options, kinds):
    bad = 0
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            path = made(options, folder, kind)
            # The calls of the two are the same: one of them on the driver that does the least is enough for libraries.
            least = ("libraries", "--adversarial") if kind == "c" else ("alone", "--adversarial")
            for part, *setting in (("alone",), ("libraries",), ("several", "--accept", "possible"), least):
                status, said = run(path, part, SECONDS, *setting)
                if not status:
                    continue
                bad += 1
                print(f"{SOURCES[kind]}, {part} {' '.join(setting)}: exit status {status}\n{said}")
    print(f"{len(kinds)} modules, {bad} programs failed")
    return 1 if bad else 0


def planted(options, kinds):
    missed = 0
    for name, part, changes in PLANTED:
        for kind in kinds:
            text = (ROOT / "examples" / "producer" / SOURCES[kind]).read_text(encoding="utf-8")
            for old, new in changes[kind]:
                if text.count(old) != 1:
                    sys.exit(f"{name}: {old!r} stands {text.count(old)} times in {SOURCES[kind]}, once is expected")
                text = text.replace(old, new)
            with tempfile.TemporaryDirectory() as folder:
                status, said = run(made(options, folder, kind, text), part, DEADLOCK)
            missed += status == 0
            last = next((line for line in said.splitlines() if line and not line.startswith("what was seen")), "")
            print(f"{'MISSED' if status == 0 else 'found'}: {name} ({SOURCES[kind]}): {status}: {last[:100]}", flush=True)
    print(f"{len(PLANTED) * len(kinds)} defects, {missed} missed")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--only", choices=SOURCES)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--run", nargs=2, metavar=("PART", "MODULE"))
    options = parser.parse_args()
    if options.run:
        return globals()[options.run[0]](options.run[1])
    needs(cc=options.cc)
    for name in ("cai_sim", "cuda.bindings", "cuda.core", "numba.cuda", "tvm_ffi"):
        try:
            found = importlib.util.find_spec(name)
        except ImportError:
            found = None
        if not found:
            skip(f"this Python has no {name}")
    kinds = [options.only] if options.only else list(SOURCES)
    return planted(options, kinds) if options.planted else plain(options, kinds)


if __name__ == "__main__":
    sys.exit(main())
