# SPDX-License-Identifier: MIT
"""What the tests of the casters have in common: exporters, checks, and the process whose end shows what is left."""

from __future__ import annotations

import ctypes
import gc
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import sysconfig
import threading
import weakref
from typing import Any, Callable, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINDINGS = ROOT / "examples" / "bindings"
SECONDS = 20  # of a process with all checks, which takes less than one
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
PLAIN = {"shape": (6,), "typestr": "<f4", "data": (4096, False), "version": 3}
BORROWED = "BufferError: the array is borrowed, so nothing keeps its memory: own it first"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
PYTHON = ["-isystem", sysconfig.get_path("include")]

# In cai_caster.h, which all casters share
SHARED = [
    ("references are not dropped", "    cai_python_release(&of->py, &array, 1); /* and", "    cai_array_release(&array); /* and"),
    ("a taken array is not owned", "to = cai::array(&taken);", "to = cai::array(&taken), to.release = nullptr;"),
    ("flags are lost", "= {flags, 0, 0, nullptr}", "= {flags * 0, 0, 0, nullptr}"),
    ("a wrong stream is 0", "&to.number)) return CAI_PYTHON_FAILED;", "&to.number)) PyErr_Clear();"),
    ("an array is a stream", "    if (array) {\n        PyErr", "    if (false) {\n        PyErr"),
    ("a result is empty", "cai_array_move(array_of(made), array);", "(void)array;"),
    ("a result is not released", "    give_back(self);\n", ""),
    ("a result is released too early", "if (is_settled(*array)) {", "if (true) {"),
    ("a result keeps its type", "Py_DECREF(type);", "(void)type;"),
    ("a borrowed result", "if (!is_kept) return refuse", "if (!is_kept && false) return refuse"),
    ("an empty result is refused", "array->release || is_empty;", "array->release || (is_empty && false);"),
    ("the stream object goes first", "owner ? owner : in_call::owner_of(*array)", "owner = nullptr"),
    ("a ring stays", "    Py_VISIT(object_of(self)->stream);\n", ""),
    ("the host waits for a ring", "!PyObject_GC_IsFinalized(stream))", "false)"),
    ("the event of an ordered array stays", "if (events && array.flags & CAI_OWN_EVENT) return false;", ""),
    ("a default stream where there is none", "CAI_CUDA_NO_DEFAULT_STREAMS) return release_behind_host", "0U) return release_behind_host"),
    ("an event that the host waited for stays", "if (by_event) CAI_TRY(cai_stream_drop_event", "if (false) CAI_TRY(cai_stream_drop_event"),
    ("the stream of an empty array is not asked", "if (context && cuda->context_push", "context = 0;\n    if (context && cuda->context_push"),
    ("an empty array has no device", "!array->size) place_empty(", "false) place_empty("),
    ("an error of an attribute is none", "if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;", ""),
    ("stream 2 of the thread that drops", "array->stream > CAI_STREAM_PER_THREAD)", "array->stream)"),
    ("the thread that returns last", " || array->thread) return 0;", ") return 0;"),
    ("stream 2 is named elsewhere", " || now != array->thread)", ")"),
    ("the stream of an argument goes first", "to = {array.stream, from, true};", "(void)to, (void)from;"),
    ("what a capture holds is lost", "kept = is_captured ?", "kept = is_captured && false ?"),
    ("a call with an array retries nothing", "    if (of->kept) settle_kept(of);\n    cai_python_release(&of->py, &array, 1);",
     "    cai_python_release(&of->py, &array, 1);"),
    ("a call that makes an array retries nothing", "    if (of->kept) settle_kept(of);\n    PyObject *const made", "    PyObject *const made"),
    ("a drain retries nothing", "    if (of && of->kept) settle_kept(of);\n", ""),
    ("what a function has moved stays", "    if (!of) return;\n    if (of->kept)", "    if (!of || !array.release) return;\n    if (of->kept)"),
    ("results by a call of the type", "| Py_TPFLAGS_DISALLOW_INSTANTIATION", ""),
    ("no exchange in C", "if (cai_python_offer(of->type, &exchange)) return -1;", "(void)exchange;"),
    ("no exchange of DLPack", "return cai_python_dlpack_offer_ordered(&of->py, *events.load(), of->type, &dlpack::table);", "return 0;"),
    ("a drain keeps the arguments", "    if (of) cai_python_drain(&of->py);\n", "    (void)of;\n"),
    ("a drain of nothing", "events ? cai_keepalive_drain(*events.load(), &err) :", "false ? CAI_ERR_CUDA :"),
    ("NumPy makes an object", "if (!is_on_host(self)) return PyCFunction_New(&refuses, self);", "(void)refuses;"),
    ("both interfaces", "if (is_on_host(self) == (on_host != nullptr))", "(void)on_host;"),
]  # fmt: skip
TYPED = [
    ("typed writes into what is read-only", ": uint32_t{CAI_WRITABLE};", ": 0U;"),
    ("typed takes no None", "if (found != CAI_PYTHON_NOT_MINE) return found;", "return found;"),
    ("no object is told", "if (!argument->type[0]) return", "if (true) return"),
]  # fmt: skip

failures: list[str] = []
checks = 0


def same(what: str, got: object, wanted: object) -> None:
    global checks
    checks += 1
    if got != wanted:
        failures.append(f"{what}: {got!r}, not {wanted!r}")


def raised(call: Callable[..., Any], *arguments: Any) -> str:
    try:
        return f"no exception: {call(*arguments)!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def ended() -> bool:
    for failure in failures:
        print(failure)
    print(f"{checks} checks, {len(failures)} failures")
    return bool(failures)


class Array:
    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {**PLAIN, **changes}


class Host:
    def __init__(self) -> None:
        self.__array_interface__ = dict(PLAIN)


class Stream:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __cuda_stream__(self) -> Any:
        return self.value


# ------------------------------------------------------------------------------------ building


def includes(casters: pathlib.Path) -> list[str]:
    """`casters` has the headers of the casters: ext, or a copy with a defect."""
    folders = (casters, BINDINGS / "casters", ROOT, ROOT / "ext", ROOT / "sim", BINDINGS / "python")
    return [f"-I{path}" for path in folders]


def run(command: Sequence[object]) -> None:
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if made.returncode or made.stderr:
        print(" ".join(map(str, command)), made.stdout, made.stderr, sep="\n")
        sys.exit(3)


def device(cc: str, folder: pathlib.Path) -> pathlib.Path:
    """The simulated device of the saxpy, compiled once."""
    made = folder / "device.o"
    if not made.exists():
        source = BINDINGS / "python" / "saxpy_simulated.c"
        run([cc, "-std=c99", "-O1", "-fPIC", "-c", source, *includes(folder), "-o", made])
    return made


def load(library: pathlib.Path, name: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, library, loader=loader))
    loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------------ checking


def check_lines(name: str, beside: Sequence[str]) -> None:
    """The lines of the user: those that do not begin with the words of `beside`."""
    text = (BINDINGS / "casters" / name).read_text(encoding="utf-8")
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith(tuple(beside))]
    same(f"{name} has {len(lines)} lines, at most 25", len(lines) <= 25, True)


def check_manual(header: str, folder: pathlib.Path, command: Sequence[object]) -> None:
    """The code in the manual of a header compiles, and has at most 25 lines."""
    manual = (ROOT / "ext" / header).read_text(encoding="utf-8").partition("DO THIS")[2].partition("ARGUMENTS")[0]
    lines = [line[8:] for line in manual.splitlines() if line.startswith("        ") and line.strip()]
    same(f"{header}: lines of its manual", 15 < len(lines) <= 25, True)
    lines.insert(2, "int32_t launch_saxpy(float a, const cai_array &x, const cai_array &y, uint64_t s);")
    source = folder / "manual.cpp"
    code = "\n".join(lines).replace("cai_cuda_linked", "static_cast<const cai_cuda *>(nullptr)")
    source.write_text(code + "\n", encoding="utf-8")
    run([*command, "-fsyntax-only", source])


def check_saxpy(saxpy: Callable[..., Any], more: Any) -> None:
    """In order: the consumer's stream waits for the producer's, and the other way round."""
    producer, consumer = more.new_stream(), more.new_stream()
    x = more.made(6, producer, True)
    more.calls()
    saxpy(2.0, x, x, Stream((0, consumer)))
    calls = more.calls()
    same("waits of an exchange", calls.count("event_record"), calls.count("stream_wait_event"))
    same("a wait at each end", calls.count("stream_wait_event"), 2)
    same("a wrong dtype", raised(saxpy, 1.0, Array(typestr="<f8"), x, consumer),
         "ValueError: x: expected float32, on the device; got float64, 1-D")  # fmt: skip
    same("read-only", raised(saxpy, 1.0, x, Array(data=(4096, True)), consumer)[:30],
         "ValueError: y: expected float3")  # fmt: skip
    same("a wrong shape", raised(saxpy, 1.0, Array(), Array(shape=(5,)), consumer),
         "ValueError: shape[0] = 6 in x, 5 in y")  # fmt: skip
    same("no stream", raised(saxpy, 1.0, x, x, 0)[:22], "ValueError: stream = 0")


def check_numbers(saxpy: Callable[..., Any], more: Any) -> None:
    """The kernel has run, on the memory that both arrays share: y = 2 x + y three times."""
    stream = more.new_stream()
    x = more.made(6, stream, True)
    more.run()
    more.fill(1.0)
    for _ in range(3):
        saxpy(2.0, x, x, stream)
    more.run()
    same("numbers", more.first(), 27.0)


def settle(more: Any) -> None:
    """Gives back what waits. An array that goes may let another one go."""
    for _ in range(3):
        more.run(), more.poll(), more.alive()


def check_results(array: type, more: Any) -> None:
    stream = more.new_stream()
    made = more.made(6, stream, True)
    seen = made.__cuda_array_interface__
    same("a result", [type(made), seen["shape"], seen["stream"], more.only(made)], [array, (6,), stream, 6])
    same("its facts", [made.shape, made.strides, made.dtype, len(made)], [(6,), (4,), "<f4", 6])
    same("its text", repr(made)[:len(array.__module__) + 20], f"<{array.__module__}.array float32 (6,)")
    same("in device memory", raised(lambda: made.__array_interface__)[:15], "AttributeError:")
    for name in ("__cai_exchange__", "__dlpack_c_exchange_api__"):
        same(f"{name}", type(array.__dict__[name]).__name__, "PyCapsule")
    same("NumPy is refused", raised(made.__array__, None)[:41], "TypeError: NumPy takes arrays in host mem")
    same("a borrowed result", raised(more.made, 6, stream, False), BORROWED)
    empty = more.made(0, stream, False)
    same("an empty result keeps nothing", [empty.shape, len(empty), more.only(empty)], [(0,), 0, 0])
    same("it as a tensor of DLPack", type(empty.__dlpack__(stream=stream)).__name__, "PyCapsule")
    same("a borrowed array of other code", raised(more.adopt_borrowed), BORROWED)
    settle(more)
    before = more.released()
    del made
    same("not before its stream has passed", more.released() - before, 0)
    settle(more)
    same("released once", more.released() - before, 1)
    again = more.same(Array(data=(8192, True)))
    same("an argument as result", again.__cuda_array_interface__["data"], (8192, True))


def check_used(more: Any) -> None:
    """An argument that comes back is ordered at both ends, and names the stream of the function."""
    mine, theirs = more.new_stream(), more.new_stream()
    for given, waits in ((Array(), 0), (Array(stream=theirs), 2)):
        more.calls()
        made = more.used(given, mine)
        same("waits of an argument that comes back", more.calls().count("stream_wait_event"), waits)
        same("its stream", made.__cuda_array_interface__["stream"], mine)
        del made
        settle(more)
        same("it is given back", sys.getrefcount(given), 3)


def check_drain(saxpy: Callable[..., Any], more: Any) -> None:
    """A drain gives arguments back, without another call that takes an array."""
    x, stream = Array(data=(more.memory(), False)), more.new_stream()
    before = sys.getrefcount(x)
    saxpy(1.0, x, x, stream)
    same("kept for the work", sys.getrefcount(x) > before, True)
    more.run()
    more.drain()
    same("given back by a drain", sys.getrefcount(x), before)
    saxpy(1.0, x, x, stream)
    more.run()
    y = Array(data=(more.memory(), False))
    saxpy(1.0, y, y, stream)
    same("given back by the next call on the stream", sys.getrefcount(x), before)
    more.run()
    more.drain()


def check_host_results(more: Any) -> None:
    made = more.numbers(5)
    seen = made.__array_interface__
    same("in host memory", [seen["shape"], made.device, hasattr(made, "__cuda_array_interface__")], [(5,), None, False])
    same("NumPy needs no method", hasattr(made, "__array__"), False)
    same("its device for DLPack", made.__dlpack_device__(), (1, 0))
    same("its numbers", list((ctypes.c_float * 5).from_address(seen["data"][0])), [0, 1, 2, 3, 4])
    same("a tensor of DLPack", type(made.__dlpack__()).__name__, "PyCapsule")
    same("taken again", more.host(made), 5)


def check_result_streams(more: Any) -> None:
    """A result keeps the stream object of the call (R81), and a collection may end both."""
    number = more.new_stream()
    stream = Stream((0, number))
    watch = weakref.ref(stream)
    made = more.made(6, stream, True)
    del stream
    same("the stream object lives", watch() is None, False)
    del made
    same("and goes behind the array", watch(), None)
    stream = Stream((0, number))
    watch = weakref.ref(stream)
    stream.array = more.made(6, stream, True)
    settle(more)
    before = more.released()
    del stream
    gc.collect()
    same("a ring of both is collected", watch(), None)
    settle(more)
    same("and released", more.released() - before, 1)


def check_rings(more: Any) -> None:
    """A ring of an array and its stream object: an event stands for the work, and goes, too, also if the owner orders."""
    for what in ("made", "ordered"):
        stream = Stream((0, more.new_stream()))
        stream.array = more.made(6, stream, True) if what == "made" else more.ordered(stream)
        settle(more)
        before = more.released()
        more.calls()
        del stream
        gc.collect()
        calls = more.calls()
        same(f"a ring, {what}: no wait for the context", [calls.count("context_synchronize"), calls.count("event_record") > 0], [0, True])
        settle(more)
        same(f"a ring, {what}: released, and no event stays", [more.released() - before, more.alive()], [1, 0])


def check_no_defaults(more: Any) -> None:
    """Where there are no default streams the host waits: for the event, or for the context."""
    stream = Stream((0, more.new_stream()))
    stream.array, before = more.made(6, stream, True), more.released()
    unknown = more.same(Array(version=2))
    reported: list[Any] = []
    sys.unraisablehook = lambda what: reported.append(str(what.exc_value))
    more.set_no_defaults(True)
    more.calls()
    del stream
    gc.collect()
    first = more.calls()
    del unknown
    second = more.calls()
    more.set_no_defaults(False)
    sys.unraisablehook = sys.__unraisablehook__
    same("without default streams", [first.count("event_synchronize"), second.count("context_synchronize"), reported], [1, 1, []])
    same("released by the host", more.released() - before, 1)
    settle(more)


def elsewhere(call: Callable[[], Any]) -> Any:
    """What a call on another thread returns."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start(), thread.join()
    return found.pop() if found else None


def check_threads(more: Any) -> None:
    """Stream 2 is another stream on each thread."""
    made, before = [more.written(2)], (more.released(), more.early())
    elsewhere(lambda: (made.clear(), more.synchronize(2), more.poll()))  # the kernel is still queued
    settle(more)
    same("stream 2, dropped elsewhere", [more.released() - before[0], more.early() - before[1]], [1, 0])
    own = more.made(6, 2, True)
    same("stream 2, named on its thread", own.__cuda_array_interface__["stream"], 2)
    same("stream 2, named elsewhere", elsewhere(lambda: own.__cuda_array_interface__["stream"]), 1)
    again = elsewhere(lambda: more.same(own))
    same("the thread of stream 2, returned elsewhere", [more.thread(again), more.thread(own) > 0], [more.thread(own), True])
    del own, again
    settle(more)


def check_argument_streams(more: Any) -> None:
    """A result on the stream of an array argument keeps that argument, whose stream object lives (R81)."""
    stream = Stream((0, more.new_stream()))
    watch = weakref.ref(stream)
    x = more.made(6, stream, True)
    made = more.like(x)
    del stream, x
    settle(more)
    same("the stream object of an argument lives", watch() is None, False)
    del made
    settle(more)
    same("and goes behind the result", watch(), None)
    stream = Stream((0, more.new_stream()))
    watch = weakref.ref(stream)
    made = more.made_optional(stream)
    del stream
    same("the stream object of an optional lives", watch() is None, False)
    del made
    settle(more)
    same("and goes, too", watch(), None)


def check_captures(more: Any) -> None:
    """What is dropped while its stream captures is released after the capture, by the next call of any kind."""
    other = more.new_stream()
    for what, call in (("takes an array", lambda: more.only(Array())), ("makes one", lambda: more.made(6, other, True)),
                       ("drains", more.drain)):  # fmt: skip
        stream = more.new_stream()
        made, before = more.made(6, stream, True), more.released()
        same("a capture begins", more.capture(stream, True), 0)
        del made
        later = call()
        same(f"not released in a capture by a call that {what}", more.released() - before, 0)
        same("a capture ends", more.capture(stream, False), 0)
        again = call()
        more.run()
        more.poll()
        same(f"released after the capture by a call that {what}", more.released() - before, 1)
        del later, again
        settle(more)


def check_empty(more: Any) -> None:
    """DLPack needs a device, which an address cannot tell: that of the stream, or of the current context."""
    for what, made in (("on a stream", more.made(0, more.new_stream(), True)), ("without one", more.same(Array(shape=(0,), data=(0, False))))):
        same(f"an empty array {what}", [made.__dlpack_device__(), type(made.__dlpack__()).__name__], [(2, 0), "PyCapsule"])
        same(f"the same {what}", more.only(made), 0)
    stream = more.new_stream()
    same("on a thread without a context", elsewhere(lambda: more.made(0, stream, True).__dlpack_device__()), (2, 0))


class Attribute:
    """Its attribute raises what it was given."""

    def __init__(self, name: str, error: BaseException) -> None:
        object.__setattr__(self, "values", (name, error))

    def __getattribute__(self, name: str) -> Any:
        wanted, error = object.__getattribute__(self, "values")
        if name == wanted:
            raise error
        if name == "__cuda_stream__":
            return lambda: (0, 7)
        return object.__getattribute__(self, name)


def check_attributes(more: Any) -> None:
    """Only AttributeError means that there is no attribute."""
    for name in ("__cuda_stream__", "__cuda_array_interface__", "__array_interface__", "__dlpack__", "__cai_exchange__"):
        for error in (KeyboardInterrupt(), RuntimeError("of the object"), SystemExit(3)):
            got = None
            try:
                more.stream(Attribute(name, error))
            except BaseException as found:
                got = found
            same(f"{type(error).__name__} of {name}", got is error, True)
        missing = raised(more.stream, Attribute(name, AttributeError("no")))
        same(f"no {name}", missing[:9] if name == "__cuda_stream__" else missing[:15], "TypeError" if name == "__cuda_stream__" else "no exception: 7")


def check_no_streams(more: Any) -> None:
    class Both(Array, Stream):
        def __init__(self) -> None:
            Array.__init__(self)
            Stream.__init__(self, (0, 7))

    same("an array is no stream", raised(more.stream, Both())[:30], "TypeError: an array is no stre")


def check_typed(more: Any) -> None:
    same("typed", [more.typed(Array(shape=(2, 3))), more.writes(Array(typestr="<f8"))], [6, 6])
    same("its signature", "x: array[dtype=float32, ndim=2]" in more.typed.__doc__.replace("arg0", "x").replace("arg", "x"), True)
    wanted = "x: expected float32, 2-D, on the device; got "
    same("a wrong rank", raised(more.typed, Array()), f"ValueError: {wanted}float32, 1-D")
    same("a wrong dtype", raised(more.typed, Array(typestr="<f8", shape=(2, 3))), f"ValueError: {wanted}float64, 2-D")
    same("None", raised(more.typed, None), f"TypeError: {wanted}None")
    same("no array", raised(more.typed, 5), f"TypeError: {wanted}an object of type int")
    same("host memory", raised(more.typed, Host()), f"ValueError: {wanted}float32, 1-D, in host memory")
    same("read-only", raised(more.writes, Array(typestr="<f8", data=(4096, True)))[:30], "ValueError: x: expected float6")
    same("a wrong array", raised(more.typed, Array(shape=(-1,))), "ValueError: shape[0] = -1 is negative")


def check_order(throws: Callable[..., Any], more: Any, *said: str) -> None:
    """An exception between begin and finish: in order all the same, and nothing is left."""
    producer, consumer = more.new_stream(), more.new_stream()
    array = more.made(6, producer, True)
    more.calls()
    same("an exception of the function", raised(throws, array, consumer), *said)
    same("in order all the same", more.calls().count("stream_wait_event"), 2)


def check_exceptions(more: Any) -> None:
    for ends in (False, True):
        check_order(lambda x, s: more.throws(x, s, ends), more, "RuntimeError: thrown between begin and finish")
    check_order(more.throws_in_c, more, "ValueError: x: expected float64, 1-D; got float32, 1-D")


def check_type(array: type, more: Any) -> None:
    same("no instances but results", [raised(array), raised(object.__new__, array)[:10]],
         [f"TypeError: cannot create '{array.__module__}.array' instances", "TypeError:"])  # fmt: skip
    before, stream = sys.getrefcount(array), more.new_stream()
    for _ in range(5):
        more.made(6, stream, True)
    same("references to the type", sys.getrefcount(array), before)


def check_rules(more: Any) -> None:
    """tools/cai_conform.py, with a result. D2: CUDA does not know the made-up addresses, so no device is known."""
    sys.path.insert(0, str(ROOT / "tools"))
    from cai_conform import check

    stream = more.new_stream()
    for what, made in (("on a stream", more.made(6, stream, True)), ("of a library", more.same(Array()))):
        found = [str(finding) for finding in check(made) if finding.rule != "D2"]
        same(f"rules that a result {what} breaks", found, [])
    del made, found
    gc.collect()
    settle(more)


def check_module(saxpy: Any, more: Any, calls: Sequence[Callable[[Any], Any]]) -> None:
    """What all casters must do. `calls`: functions of one argument that keep nothing, beside those that all have."""
    check_exceptions(more)
    check_type(saxpy.array, more)
    check_saxpy(saxpy.saxpy, more)
    check_numbers(saxpy.saxpy, more)
    check_results(saxpy.array, more)
    check_rules(more)
    check_drain(saxpy.saxpy, more)
    check_host_results(more)
    check_result_streams(more)
    check_rings(more)
    check_no_defaults(more)
    check_threads(more)
    check_captures(more)
    if hasattr(more, "like"):  # a function of Cython names the stream object itself
        check_argument_streams(more)
        check_used(more)
    check_no_streams(more)
    check_attributes(more)
    check_empty(more)
    stream = more.new_stream()
    check_references([*calls, more.which, more.optional, more.host, lambda x: more.sizes([x, x]), more.same,
                      lambda x: saxpy.saxpy(1.0, x, x, stream), lambda x: more.throws(x, stream, False),
                      lambda x: more.throws_in_c(x, stream)], more)  # fmt: skip
    for call in (more.only, more.by_value):
        last = Array()
        before = sys.getrefcount(last)
        call(last)
        same("dropped with the call", sys.getrefcount(last), before)
    more.run()


def check_references(calls: Sequence[Callable[[Any], Any]], more: Any) -> None:
    """No call keeps an object: not when it fails, and not when another overload takes it."""
    objects = [Array(data=(more.memory(), False)), Array(shape=(-1,)), Host(), Array(typestr="<f8")]

    def all_calls() -> None:
        for call in calls:
            for item in objects:
                raised(call, item)
        more.run()
        more.poll()

    all_calls()
    gc.collect()
    counts = [sys.getrefcount(item) for item in objects]
    for _ in range(10):
        all_calls()
    gc.collect()
    same("references", [sys.getrefcount(item) for item in objects], counts)
    same("arrays that are alive", more.alive(), 0)


def leaks(script: str, library: pathlib.Path) -> str:
    """What a process with all checks prints at its end: what is still alive is named on stderr."""
    command = [sys.executable, "-B", script, "--library", str(library)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not ended after {SECONDS} s"
    if done.returncode == 0 and not done.stderr:
        return ""
    return f"{done.stdout[-2000:]}{done.stderr[-2000:]}exit status {done.returncode}"


def self_test(caster: str, defects: Sequence[tuple[str, str, str]], folder: pathlib.Path,
              finding: Callable[[pathlib.Path], str], only: str = "") -> None:  # fmt: skip
    """Plants each defect in copies of `caster` and cai_caster.h. `finding` builds it, and says what is wrong.
    `only`: those whose names have one of these words, with | between."""
    ext = ROOT / "ext"
    defects = [defect for defect in defects if any(word in defect[0] for word in only.split("|"))]
    for number, (name, before, after) in enumerate(defects):
        casters = folder / f"defect{number}"
        casters.mkdir()
        place = next((file for file in (caster, "cai_caster.h") if before in (ext / file).read_text("utf-8")), None)
        same(f"{name}: in a header", bool(place), True)
        if not place:
            continue
        for other in (caster, "cai_caster.h"):  # found before those of ext
            text = (ext / other).read_text(encoding="utf-8")
            (casters / other).write_text(text.replace(before, after) if other == place else text, encoding="utf-8")
        same(f"{name}: found", bool(finding(casters)), True)
    print(f"{len(defects)} defects planted")
