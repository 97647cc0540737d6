#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The example extension (examples/bindings/python) on the simulated runtime: from live NumPy arrays through the interface and
the order on streams, and back.

    check_example.py --cc COMPILER [--self-test] | --pip | --module PATH

Builds the module in a temporary folder, by a compiler or as `pip install ./examples/bindings/python` does (with the setuptools
that is here, and no network), or takes one that was built. With --self-test it plants defects in the module, one at a
time, and each must be found. Exit status 1 if something is not so, 77 with a reason where NumPy or what the
build needs is missing.
"""

import argparse
import ctypes
import gc
import importlib.metadata
import importlib.util
import itertools
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref

sys.dont_write_bytecode = True
from build_module import EXAMPLE, INCLUDES, ROOT, build, build_example, load, needs, skip  # noqa: E402

checks = failures = 0


def check(what, got, expected):
    global checks, failures
    checks += 1
    if got != expected:
        failures += 1
        print(f"{what}: {got!r}, not {expected!r}")


def check_raises(what, kind, message, call):
    try:
        call()
    except Exception as error:  # noqa: BLE001
        check(what, (type(error), str(error)), (kind, message))
    else:
        check(what, "nothing is raised", message)


class Foreign:
    """An array of another library: a dictionary, and what keeps the memory."""

    def __init__(self, owner, **changes):
        self.owner = owner
        self.dictionary = {**owner.__cuda_array_interface__, **changes}

    @property
    def __cuda_array_interface__(self):
        return self.dictionary


class ForeignStream:
    """A stream object of another library."""

    def __init__(self, stream):
        self.stream = stream

    def __cuda_stream__(self):
        return self.stream.__cuda_stream__()


def view_of(array, at):
    """array[at], of a device array: what a library with slices would export."""
    import numpy

    seen = numpy.asarray(array)[at]
    shown = seen.__array_interface__
    return Foreign(array, shape=seen.shape, strides=seen.strides, data=shown["data"])


def ordering(saxpy):
    """The calls since the last time that order work, without their arguments."""
    names = [line.split()[0] for line in saxpy.simulation()["calls"].splitlines()]
    return [name for name in names if name in ("event_record", "stream_wait_event", "stream_synchronize",
                                               "context_synchronize", "event_synchronize")]


def settle(saxpy):
    """Runs everything, lets go of everything; the calls so far are forgotten."""
    gc.collect()
    saxpy.simulation(True)
    state = saxpy.simulation(True)
    return {key: state[key] for key in ("imported", "waiting", "queued")}


NOTHING = {"imported": 0, "waiting": 0, "queued": 0}

# ------------------------------------------------------------------------------------------- numbers


def test_numbers(saxpy, numpy):
    """y = a x + y of every pair of views, on one stream and on three, against NumPy."""
    base = numpy.arange(7 * 8, dtype="f4").reshape(7, 8)
    cuts = [(), (slice(None, None, -1),), (slice(1, 6, 2), slice(None, None, -3)), (3,), (slice(0, 0),), (2, 5, ...)]
    for at, streams in itertools.product(cuts, (1, 3)):
        made = [saxpy.stream() for _ in range(streams)]
        host_x, host_y = base.copy(), 1000 - base[::-1]
        x = saxpy.array(host_x, made[0])
        y = saxpy.array(host_y, made[-1])
        cut_x, cut_y = (view_of(x, at), view_of(y, at)) if at else (x, y)
        check(f"{at}: nothing is returned", saxpy.saxpy(0.5, cut_x, cut_y, made[streams // 2]), None)
        wanted = host_y.copy()
        wanted[at] = numpy.float32(0.5) * host_x[at] + wanted[at]
        check(f"{at} on {streams} streams", numpy.asarray(y).tolist(), wanted.tolist())
        check(f"{at} on {streams} streams: x", numpy.asarray(x).tolist(), host_x.tolist())


def test_shapes(saxpy, numpy):
    """The way in: scalars, empty arrays, any strides, eight axes; the way out has the same shape."""
    s = saxpy.stream()
    rng = numpy.random.default_rng(1)
    big = rng.integers(-99, 99, (3, 4, 5, 6)).astype("f4")
    sources = [numpy.array(3, "f4"), numpy.zeros(0, "f4"), numpy.zeros((2, 0, 3), "f4"), big, big.T, big[::-1, ::2],
               big[..., ::-1], numpy.broadcast_to(numpy.float32(7), (2, 3)), big.reshape((3, 4, 1, 5, 1, 6, 1, 1))]
    for source in sources:
        made = saxpy.array(source, s)
        back = numpy.asarray(made)
        check(f"shape {source.shape}", (back.dtype, back.shape), (source.dtype, source.shape))
        check(f"values {source.shape}", back.tolist(), source.tolist())
        saxpy.saxpy(2, made, made, s)
        check(f"in place {source.shape}", numpy.asarray(made).tolist(), (3 * source).tolist())


def test_device_source(saxpy, numpy):
    """array() of an array of another library on the device, and the same by ints and other stream objects."""
    s, t = saxpy.stream(), saxpy.stream()
    x = saxpy.array(numpy.arange(6, dtype="f4"), s)
    for stream in (t, ForeignStream(t), t.__cuda_stream__()[1]):
        copy = saxpy.array(view_of(x, slice(None, None, -2)), stream)
        check("a copy on the device", numpy.asarray(copy).tolist(), [5, 3, 1])
        check("its stream", copy.__cuda_array_interface__["stream"], t.__cuda_stream__()[1])
    del copy  # before t: a number keeps no stream
    kept = saxpy.array(x, saxpy.stream())
    gc.collect()
    check("the stream lives as long as the array", numpy.asarray(kept).tolist(), [0, 1, 2, 3, 4, 5])


# ------------------------------------------------------------------------------------------- the interface


def test_interface(saxpy, numpy):
    s = saxpy.stream()
    x = saxpy.array(numpy.zeros((2, 3), "f4"), s)
    entries = x.__cuda_array_interface__
    address, read_only = entries.pop("data")
    check("entries", entries, {"shape": (2, 3), "typestr": "<f4", "version": 3, "strides": None,
                               "stream": s.__cuda_stream__()[1]})
    check("data", (address > 0, read_only), (True, False))
    constant = saxpy.array(numpy.zeros(3, "f4"), s, read_only=True)
    check("read-only", constant.__cuda_array_interface__["data"][1], True)
    check("NumPy honours it", numpy.asarray(constant).flags.writeable, False)
    empty = saxpy.array(numpy.zeros((0, 3), "f4"), s).__cuda_array_interface__
    check("empty", (empty["shape"], empty["data"]), ((0, 3), (0, False)))
    check("scalar", saxpy.array(numpy.float32(1), s).__cuda_array_interface__["shape"], ())
    check("__cuda_stream__", s.__cuda_stream__()[0], 0)


OVERLAP = "x shares, or may share, bytes with out, and not element by element"


def address(array):
    return array.__cuda_array_interface__["data"][0]


def test_errors(saxpy, numpy):
    s = saxpy.stream()
    x, y = saxpy.array(numpy.arange(6, dtype="f4"), s), saxpy.array(numpy.ones(6, "f4"), s)
    constant = saxpy.array(numpy.ones(6, "f4"), s, read_only=True)
    short = saxpy.array(numpy.ones(5, "f4"), s)
    settle(saxpy)
    cases = [
        (ValueError, "x: expected float32, on the device; got int32, 1-D", lambda: (x_as(typestr="<i4"), y)),
        (ValueError, "x: expected float32, on the device; got >f4, 1-D", lambda: (x_as(typestr=">f4"), y)),
        (ValueError, "y: expected float32, writable, no self-overlap, on the device; got float32, 1-D, read-only",
         lambda: (x, constant)),
        (ValueError, "y: expected float32, writable, no self-overlap, on the device; got float32, 1-D, strides (0,), "
                     "overlapping itself", lambda: (x, Foreign(y, strides=(0,)))),
        (ValueError, OVERLAP, lambda: (view_of(y, slice(0, 5)), view_of(y, slice(1, 6)))),
        (ValueError, "shape[0] = 5 in x, 6 in y", lambda: (short, y)),
        (ValueError, f"x: data {address(x):#x}: the array reaches byte 36 of an allocation of 24 bytes",
         lambda: (x_as(shape=(9,)), Foreign(y, shape=(9,)))),
        (ValueError, "y: data 0x8 is plain host memory, or was freed", lambda: (x, Foreign(y, data=(8, False)))),
        (ValueError, "argument 1 (x), of type Foreign: shape[0] = -1 is negative", lambda: (x_as(shape=(-1,)), y)),
        (TypeError, "argument 2 (y), of type ndarray: the object has no __cuda_array_interface__", lambda: (x, numpy.ones(6, "f4"))),
    ]

    def x_as(**changes):
        return Foreign(x, **changes)

    for kind, message, arguments in cases:
        pair = arguments()
        saxpy.simulation()
        check_raises("exception", kind, message, lambda: saxpy.saxpy(1, *pair, s))  # noqa: B023
        check("nothing was done", (saxpy.simulation()["imported"], ordering(saxpy)), (0, []))
    for stream, kind in ((None, TypeError), (0, ValueError), (-1, ValueError), ("1", TypeError)):
        try:
            saxpy.saxpy(1, x, y, stream)
            check("no error of a stream", stream, kind)
        except (TypeError, ValueError) as error:
            check(f"stream {stream!r}", (type(error), str(error)[:6]), (kind, "stream" if stream != "1" else "a stre"))
    check_raises("source", ValueError, "source: expected float32; got float64, 1-D",
                 lambda: saxpy.array(numpy.ones(3), s))
    check_raises("nothing", TypeError, "the object has no __cuda_array_interface__, no __array_interface__, no buffer; "
                                       "its type is NoneType",
                 lambda: saxpy.array(None, s))
    check_raises("arguments", TypeError, "function takes exactly 4 arguments (1 given)".replace("function", "saxpy()"),
                 lambda: saxpy.saxpy(1))
    liar = type("Liar", (), {"__cuda_array_interface__": property(lambda _: 1 / 0)})()
    check_raises("a dictionary that raises", ZeroDivisionError, "division by zero", lambda: saxpy.saxpy(1, x, liar, s))
    check("y is as it was", numpy.asarray(y).tolist(), [1.0] * 6)


# ------------------------------------------------------------------------------------------- order


def test_order(saxpy, numpy):
    """One record and one wait at each end across streams, no wait on the same one."""
    s, t = saxpy.stream(), saxpy.stream()
    x, y = saxpy.array(numpy.ones(4, "f4"), s), saxpy.array(numpy.ones(4, "f4"), s)
    settle(saxpy)
    saxpy.saxpy(1, x, y, s)
    check("on the same stream", ordering(saxpy), ["event_record"])  # which tells when the objects can go
    settle(saxpy)
    saxpy.saxpy(1, x, y, t)
    check("across streams", ordering(saxpy), ["event_record", "stream_wait_event"] * 2)
    settle(saxpy)
    check("the objects stay", saxpy.saxpy(1, x, y, t) or saxpy.simulation()["imported"], 2)
    check("until the work has passed", settle(saxpy), NOTHING)


def test_delayed(saxpy, numpy):
    """Work that is queued and has not run, at every hand-over of a chain."""
    streams = [saxpy.stream() for _ in range(5)]
    x, y = saxpy.array(numpy.full(100, 2, "f4"), streams[0]), saxpy.array(numpy.full(100, 1, "f4"), streams[1])
    memory = (ctypes.c_float * 100).from_address(address(y))
    for n in range(10):
        saxpy.saxpy(1, x, y, streams[n % 5])
        saxpy.saxpy(1, y, x, streams[(n + 2) % 5])
    check("nothing has run", (memory[0], saxpy.simulation()["queued"] > 40), (0.0, True))
    a, b = 2, 1
    for _ in range(10):
        b += a
        a += b
    check("y", (numpy.asarray(y).tolist(), memory[99]), ([float(b)] * 100, float(b)))
    check("x", numpy.asarray(x).tolist(), [float(a)] * 100)


def test_released_after_the_work(saxpy, numpy):
    """An object is kept until the work has passed, also if its producer's stream waits for that."""
    s = saxpy.stream()
    x, y = saxpy.array(numpy.ones(4, "f4"), s), saxpy.array(numpy.ones(4, "f4"), s)
    settle(saxpy)
    foreign = Foreign(x, stream=None)
    seen = weakref.ref(foreign)
    saxpy.saxpy(3, foreign, y, s)
    del foreign
    check("it waits", (seen() is not None, saxpy.simulation()["waiting"]), (True, 2))
    saxpy.saxpy(0, x, y, s)
    check("it waits still", seen() is not None, True)
    check("nothing is left", (settle(saxpy), seen()), (NOTHING, None))
    check("and the work is right", numpy.asarray(y).tolist(), [4.0] * 4)
    source = numpy.ones(4, "f4")
    before = sys.getrefcount(source)
    kept = saxpy.array(source, s)
    check("a source is kept until the copy", sys.getrefcount(source), before + 1)
    settle(saxpy)
    check("and no longer", sys.getrefcount(source), before)
    del kept


def test_many_wait(saxpy, numpy):
    """More arrays than there are places: the host waits for the oldest, the work is done, and nothing is lost."""
    s = saxpy.stream()
    x, y = saxpy.array(numpy.ones(4, "f4"), s), saxpy.array(numpy.zeros(4, "f4"), s)
    settle(saxpy)
    foreign = Foreign(x, stream=None)
    for _ in range(100):
        saxpy.saxpy(1, foreign, y, s)
    check("the list was full", saxpy.simulation()["waiting"] <= 64, True)
    check("the work was done", numpy.asarray(y).tolist(), [100.0] * 4)
    del foreign
    check("nothing is left", settle(saxpy), NOTHING)


# ------------------------------------------------------------------------------------------- lifetime


def test_lifetime(saxpy, numpy):
    """References and counts return to where they were, whatever dies first."""
    s = saxpy.stream()
    x, y = saxpy.array(numpy.ones(4, "f4"), s), saxpy.array(numpy.ones(4, "f4"), s)
    wrong = Foreign(x, typestr="<f8", shape=(2,))
    watched = (saxpy, s, x, y, wrong, wrong.dictionary, saxpy.array, saxpy.stream)
    settle(saxpy)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(200):
        saxpy.saxpy(1, x, y, s)
        for call in (lambda: saxpy.saxpy(1, wrong, y, s), lambda: saxpy.array(wrong, s), lambda: saxpy.array(x, None)):
            try:
                call()
                check("no error", call, None)
            except (TypeError, ValueError):
                pass
        saxpy.array(x, saxpy.stream())
    check("nothing is left", settle(saxpy), NOTHING)
    check("references", [sys.getrefcount(item) for item in watched], before)
    shown = numpy.asarray(y)
    del x, y, s, wrong, watched
    check("NumPy keeps the memory", shown.tolist(), [201.0] * 4)
    del shown
    check("nothing is left", settle(saxpy), NOTHING)


def test_cycles(saxpy, numpy):
    """An array in a cycle with its stream object is collected."""
    class Stream(ForeignStream):
        pass

    stream = Stream(saxpy.stream())
    stream.array = saxpy.array(numpy.ones(4, "f4"), stream)
    seen = weakref.ref(stream)
    del stream
    gc.collect()
    check("collected", seen(), None)
    check("nothing is left", settle(saxpy), NOTHING)


def test_threads(saxpy, numpy):
    """Eight threads on arrays and streams of their own, and on one stream."""
    one, wrong = saxpy.stream(), []

    def work(number):
        streams = [saxpy.stream(), one]
        x, y = (saxpy.array(numpy.full(50, n, "f4"), streams[number % 2]) for n in (1, 0))
        for n in range(50):
            saxpy.saxpy(1, x, y, streams[n % 2])
        if numpy.asarray(y).tolist() != [50.0] * 50:
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("threads", wrong, [])
    check("nothing is left", settle(saxpy), NOTHING)


# ------------------------------------------------------------------------------------------- the end

PROGRAMS = {
    "arrays alive": "import sys\nkept = x, y, s\nsaxpy.saxpy(1, x, y, s)\nsys.exit(3)",
    "arrays in the module": "import sys\nsaxpy.kept = x, y, s, saxpy\nsaxpy.saxpy(1, F(x), y, s)\ndel x, y, s\n"
                            "sys.exit(3)",
    "arrays that wait": "import sys\nsaxpy.saxpy(1, F(x), y, s)\ndel x, y\nsys.exit(3)",
    "NumPy looks on": "import sys\nseen = numpy.asarray(y)\ndel x, y, s, saxpy\nsys.exit(3)",
    "module gone": "import gc, sys\ndel x, y, s, saxpy\nsys.modules.pop('cai_saxpy', None)\ngc.collect()\nsys.exit(3)",
    "module of its own": "import sys\nother = load(PATH, 'cai_saxpy')\nt = other.stream()\n"
                         "z = other.array(numpy.ones(4, 'f4'), t)\ntry:\n    other.saxpy(1, x, z, t)\n"
                         "except Exception:\n    sys.exit(3)",
    "finalizer that works": "import sys\nclass Late:\n    def __init__(self, *held): self.held = held\n"
                            "    def __del__(self):\n        f, x, y, s = self.held\n        f(1, x, y, s)\n"
                            "late = Late(saxpy.saxpy, x, y, s)\nlate.cycle = late\ndel x, y, s, saxpy\nsys.exit(3)",
}

PROLOGUE = """import sys
sys.dont_write_bytecode = True
sys.path.insert(0, FOLDER)
import numpy
from build_module import load
class F:
    def __init__(self, owner):
        self.owner = owner
        self.__cuda_array_interface__ = {**owner.__cuda_array_interface__, 'stream': None}
saxpy = load(PATH, 'cai_saxpy')
s = saxpy.stream()
x, y = saxpy.array(numpy.ones(4, 'f4'), s), saxpy.array(numpy.ones(4, 'f4'), s)
"""


def test_end(path):
    """sys.exit with everything alive: the exit status is the program's own."""
    for name, program in PROGRAMS.items():
        settings = f"PATH, FOLDER = {str(path)!r}, {sys.path[0]!r}\n"
        run = subprocess.run([sys.executable, "-c", settings + PROLOGUE + program], capture_output=True, text=True,
                             timeout=300)
        check(f"exit: {name}", (run.returncode, run.stdout + run.stderr), (3, ""))


# ------------------------------------------------------------------------------------------- defects

PLANTED = {
    "no order at the beginning": ("&state->pool, io, 2, stream", "&state->pool, io, 0, stream"),
    "no order at the end": ("status = cai_exchange_finish(&ex, status, io, 2, err);", "--state->pool.open_exchanges;"),
    "released before the work": ("status = cai_exchange_finish(&ex, status, io, 2, err);",
                                 "status = cai_exchange_end(&ex, status, err);"
                                 "cai_array_release(x); cai_array_release(y);"),
    "references never dropped": ("    cai_python_release(&state->py, v, 2);", "    "),
    "read-only not honoured": ("cai_array_set_read_only(", "if (0) cai_array_set_read_only("),
    "stream object not kept": ("array->base.stream = Py_NewRef(stream);", ""),
    "overlap not looked at": ("    CAI_TRY(cai_place(", "    if (0) CAI_TRY(cai_place("),
    "output not checked": ("CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP", "CAI_ON_DEVICE"),
    "module leaked": ("    Py_DECREF(held.module);", "    "),
    "module not kept": ("->module = Py_NewRef(module);", "->module = module;"),
    "not seen by the collector": ("    Py_VISIT(((object *)self)->stream);", ""),
    "freed at once": ("cuda->memory_free_async(cuda->self, array->data, ((object *)self)->handle)",
                      "cuda->memory_free(cuda->self, array->data)"),
    "looked at too early": ("failed = cuda->stream_synchronize(cuda->self, ((object *)self)->handle);", "failed = 0;"),
}


def self_test(cc):
    missed = 0
    source = (EXAMPLE / "cai_saxpy.c").read_text()
    for name, (find, replace) in PLANTED.items():
        with tempfile.TemporaryDirectory() as folder:
            module = pathlib.Path(folder) / "cai_saxpy.c"
            module.write_text(source.replace(find, replace))
            sources = [module, EXAMPLE / "saxpy_simulated.c"]
            path = build(cc, folder, "cai_saxpy", sources, [EXAMPLE, *INCLUDES], ["-w", "-O0"])
            run = subprocess.run([sys.executable, __file__, "--module", path], capture_output=True, timeout=120)
        found = find in source and run.returncode not in (0, 77)
        missed += not found
        print(f"{name}: {'found' if found else 'NOT FOUND'}")
    print(f"defects {len(PLANTED)}, missed {missed}")
    return 1 if missed else 0


def install(folder):
    """pip install ./examples/bindings/python, in a copy of what it takes of the checkout; the module's path."""
    for module in ("pip", "setuptools"):
        if not importlib.util.find_spec(module):
            skip(f"this Python has no {module}")
    setuptools = importlib.metadata.version("setuptools")
    if int(setuptools.split(".")[0]) < 71 and not importlib.util.find_spec("wheel"):
        skip(f"setuptools {setuptools} needs wheel, which this Python has not")
    checkout, target = pathlib.Path(folder) / "checkout", pathlib.Path(folder) / "installed"
    for name in ("examples/bindings/python", "ext", "sim"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    for name in ("cai.h", "cai_stream.h"):
        shutil.copy(ROOT / name, checkout)
    run = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                          "--no-index", "--no-deps", "--no-build-isolation", "--target", target, "./examples/bindings/python"],
                         cwd=checkout, capture_output=True, text=True)
    found = sorted(target.glob("cai_saxpy*" + sysconfig.get_config_var("EXT_SUFFIX")))
    if run.returncode or len(found) != 1:
        sys.exit(f"pip installed {found}\n{run.stdout}{run.stderr}")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc")
    parser.add_argument("--module")
    parser.add_argument("--pip", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if not (options.cc or options.module or options.pip) or (options.self_test and not options.cc):
        parser.error("--cc, --pip or --module; --self-test with --cc")
    needs(numpy=True, cc=None if options.module else options.cc or "cc")
    if options.self_test:
        return self_test(options.cc)
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        path = options.module or (install(folder) if options.pip else build_example(options.cc, folder))
        saxpy = load(path, "cai_saxpy")
        for test in (test_numbers, test_shapes, test_device_source, test_interface, test_errors, test_order,
                     test_delayed, test_released_after_the_work, test_many_wait, test_lifetime, test_cycles,
                     test_threads):
            test(saxpy, numpy)
            check(f"{test.__name__}: nothing is left", settle(saxpy), NOTHING)
        test_end(path)
    print(f"checks {checks}, failures {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
