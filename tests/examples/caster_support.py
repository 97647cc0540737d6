# SPDX-License-Identifier: MIT
"""What the tests of the casters have in common: exporters, checks, and the process whose end shows what is left."""

from __future__ import annotations

import gc
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import sysconfig
from typing import Any, Callable, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINDINGS = ROOT / "examples" / "bindings"
SECONDS = 20  # of a process with all checks, which takes less than one
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
PLAIN = {"shape": (6,), "typestr": "<f4", "data": (4096, False), "version": 3}
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
PYTHON = ["-isystem", sysconfig.get_path("include")]

KNOWN = {"X9"}  # adopt takes a borrowed array

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
    return [f"-I{path}" for path in (casters, ROOT, ROOT / "ext", ROOT / "sim", BINDINGS / "python")]


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


def check_lines(limits: dict[str, int], beside: Sequence[str] = ()) -> None:
    """`beside`: the saxpy's lines that are not counted, as they are the kernel's, begin with these words."""
    for name, most in limits.items():
        lines = [line.strip() for line in (BINDINGS / "casters" / name).read_text(encoding="utf-8").splitlines()]
        lines = [line for line in lines if not beside or line and not line.startswith(tuple(beside))]
        same(f"{name} has {len(lines)} lines, at most {most}", len(lines) <= most, True)


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


def check_results(array: type, more: Any) -> None:
    stream = more.new_stream()
    made = more.made(6, stream, True)
    seen = made.__cuda_array_interface__
    same("a result", [type(made), seen["shape"], seen["stream"], more.only(made)], [array, (6,), stream, 6])
    same("its exchange in C", type(made).__dict__["__cai_exchange__"].__class__.__name__, "PyCapsule")
    same("a borrowed result", raised(more.made, 6, stream, False)[:11], "ValueError:")
    before = more.released()
    del made
    same("released once", more.released() - before, 1)
    again = more.same(Array(data=(8192, True)))
    same("an argument as result", again.__cuda_array_interface__["data"], (8192, True))


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
         ["TypeError: cannot create 'cai.array' instances", "TypeError:"])  # fmt: skip
    before, stream = sys.getrefcount(array), more.new_stream()
    for _ in range(5):
        more.made(6, stream, True)
    same("references to the type", sys.getrefcount(array), before)


def check_rules(more: Any) -> None:
    """tools/cai_conform.py, with a result. KNOWN: what it may find."""
    sys.path.insert(0, str(ROOT / "tools"))
    from cai_conform import check

    stream = more.new_stream()
    for what, made in (("on a stream", more.made(6, stream, True)), ("of a library", more.same(Array()))):
        found = [str(finding) for finding in check(made) if finding.rule not in KNOWN]
        same(f"rules that a result {what} breaks", found, [])
    more.run()


def check_module(saxpy: Any, more: Any, calls: Sequence[Callable[[Any], Any]]) -> None:
    """What all casters must do. `calls`: functions of one argument that keep nothing, beside those that all have."""
    check_exceptions(more)
    check_type(saxpy.array, more)
    check_saxpy(saxpy.saxpy, more)
    check_numbers(saxpy.saxpy, more)
    check_results(saxpy.array, more)
    check_rules(more)
    stream = more.new_stream()
    check_references([*calls, more.which, more.optional, more.host, lambda x: more.sizes([x, x]), more.same,
                      lambda x: saxpy.saxpy(1.0, x, x, stream), lambda x: more.throws(x, stream, False),
                      lambda x: more.throws_in_c(x, stream)], more)  # fmt: skip
    last = Array()
    before = sys.getrefcount(last)
    more.only(last)
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
              finding: Callable[[pathlib.Path], str]) -> None:  # fmt: skip
    """Plants each defect in a copy of the folder of the casters. `finding` builds it, and says what is wrong."""
    text = (BINDINGS / "casters" / caster).read_text(encoding="utf-8")
    for number, (name, before, after) in enumerate(defects):
        casters = folder / f"defect{number}"
        casters.mkdir()
        for other in (BINDINGS / "casters").iterdir():
            (casters / other.name).write_text(other.read_text(encoding="utf-8"), encoding="utf-8")
        same(f"{name}: in the header", before in text, True)
        (casters / caster).write_text(text.replace(before, after), encoding="utf-8")
        same(f"{name}: found", bool(finding(casters)), True)
    print(f"{len(defects)} defects planted")
