#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the package cai_sim (sim/python) without a GPU library: what it says of programs whose calls are known.

    check_python_sim.py [--cc COMPILER] [--root FOLDER] [--only NAME,...] [--driver FOLDER]

stub_driver.c stands for the driver. A small library "alpha", with metadata as pip writes it, calls it. With --driver
programs run on the libcuda.so.1 of that folder, too: one that calls it by ctypes, and those of the GPU libraries that
Python can import. Each program runs in a process of its own. Exit status 0: all is right; 1: not; 77: no compiler, or
another system than Linux.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import xml.etree.ElementTree
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror"

# A library that calls CUDA: with a lock of its own, as allocators of real ones have.
ALPHA_C = r"""
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
int32_t stub_launch(uint64_t, const char *, uint64_t, uint64_t, int32_t);
int32_t alpha_launch(uint64_t, const char *, uint64_t, uint64_t, int32_t);
int32_t alpha_locked(uint64_t, uint64_t);
int32_t alpha_lock_alone(void);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int inside;
int32_t alpha_launch(uint64_t stream, const char *kernel, uint64_t address, uint64_t bytes, int32_t write)
{
    const int32_t result = stub_launch(stream, kernel, address, bytes, write);
    return result;
}
/* Calls CUDA under the lock, once another thread waits for the lock. */
int32_t alpha_locked(uint64_t stream, uint64_t address)
{
    int32_t result;
    pthread_mutex_lock(&lock);
    inside = 1;
    usleep(300000);
    result = stub_launch(stream, "under a lock", address, 64, 1);
    pthread_mutex_unlock(&lock);
    return result;
}
/* Called with the GIL, which it keeps while it waits for the lock. */
int32_t alpha_lock_alone(void)
{
    while (!inside) usleep(1000);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return 0;
}
"""
CUDART_C = r"""
#include <stdint.h>
typedef struct function { const char *name; int64_t calls; int32_t served, reserved; } function;
int32_t cai_runtime_function_get(int32_t index, function *out);
int32_t cai_runtime_function_get(int32_t index, function *out)
{
    static const function functions[] = {{"cudaServed", 2, 1, 0}, {"cudaMissing", 1, 0, 0}, {"cudaNever", 0, 0, 0}};
    if (index < 0 || index > 2) return 0;
    *out = functions[index];
    return 1;
}
"""
ALPHA_PY = """
import ctypes
import os
import threading
from ctypes import c_int32, c_uint64, c_char_p

driver = ctypes.CDLL("libcuda.so.1")
here = os.path.join(os.path.dirname(__file__), "libalpha.so")
free, held = ctypes.CDLL(here), ctypes.PyDLL(here)  # without the GIL, and with it
for library in (free, held):
    library.alpha_launch.argtypes = [c_uint64, c_char_p, c_uint64, c_uint64, c_int32]
    library.alpha_locked.argtypes = [c_uint64, c_uint64]
for name in ("stub_alloc", "stub_stream", "stub_event"):
    getattr(driver, name).restype = c_uint64
driver.stub_alloc.argtypes = driver.stub_free.argtypes = driver.stub_synchronize.argtypes = driver.stub_tell.argtypes = [c_uint64]
driver.stub_record.argtypes = driver.stub_wait.argtypes = [c_uint64, c_uint64]
stream, event = driver.stub_stream, driver.stub_event


def zeros(count):
    return driver.stub_alloc(count)


def launch(stream, kernel, array, count=64, write=1, library=free):
    return library.alpha_launch(stream, kernel.encode(), array, count, write)


def order(first, second):
    made = event()
    driver.stub_record(made, first)
    driver.stub_wait(second, made)
"""
RACE = """
import alpha

def produce(stream):
    a = alpha.zeros(1024)
    alpha.launch(stream, "fill", a)
    return a

def consume(stream, a):
    alpha.launch(stream, "scale", a, 32, 0, alpha.held)

s1, s2 = alpha.stream(), alpha.stream()
a = produce(s1)
{order}
consume(s2, a)
"""

failures: list[str] = []


def check(good: Any, text: str) -> None:
    if not good:
        failures.append(text)


class World:
    """The libraries, and programs that run on them."""

    def __init__(self, cc: str, root: pathlib.Path, folder: pathlib.Path) -> None:
        self.root, self.folder, self.number = root, folder, 0
        self.libraries, self.packages = folder / "libraries", folder / "site-packages"
        self.libraries.mkdir(parents=True)
        (self.packages / "alpha").mkdir(parents=True)
        sim = root / "sim"
        shared = [cc, "-std=gnu99", "-O1", "-g", "-fPIC", "-shared", "-pthread", f"-I{root}", f"-I{sim}", f"-I{sim / 'driver'}"]
        self.shared = shared
        sources = [str(sim / name) for name in ("cai_sim.c", "cai_check.c", "cai_timeline.c")]
        self.build([*shared, "-w", "-Wl,-soname,libcuda.so.1", *sources, str(HERE / "stub_driver.c")], "libcuda.so.1")
        self.build([*shared, *WARNINGS.split(), "-fsyntax-only", str(HERE / "stub_driver.c")], "")
        self.build([*shared, *WARNINGS.split(), str(ROOT / "sim" / "python" / "cai_sites.c")], "libcai_sites.so")
        (folder / "cudart.c").write_text(CUDART_C)
        self.build([*shared, *WARNINGS.split(), "-Wl,-soname,libcudart.so.13", str(folder / "cudart.c")], "libcudart.so.13")
        (folder / "alpha.c").write_text(ALPHA_C)
        alpha = self.packages / "alpha" / "libalpha.so"
        self.build([*shared, "-O0", str(folder / "alpha.c"), str(self.libraries / "libcuda.so.1"), "-o", str(alpha)], "")
        (self.packages / "alpha" / "__init__.py").write_text(ALPHA_PY)
        metadata = self.packages / "alpha-1.5.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.5\n")
        (metadata / "RECORD").write_text("alpha/__init__.py,,\nalpha/libalpha.so,,\n")

    def build(self, command: list[str], output: str) -> None:
        if output:
            command = [*command, "-o", str(self.libraries / output)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs Python with the package, in the folder."""
        path = os.pathsep.join([str(ROOT / "sim" / "python"), str(self.packages)])
        variables = {**os.environ, "PYTHONPATH": path, "CAI_SIM_LIBRARIES": str(self.libraries), **environment}
        command = [sys.executable, "-B", "-X", "faulthandler", *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=self.folder, timeout=60)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -1, "", "did not end")

    def run(self, program: str, *options: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Runs a program in the package."""
        self.number += 1
        name = f"program{self.number}.py"
        (self.folder / name).write_text(program)
        return self.python("-m", "cai_sim", *options, name, *arguments)


def expect(done: subprocess.CompletedProcess[str], status: int, *patterns: str, without: tuple[str, ...] = ()) -> None:
    """The exit status, and what stderr matches and does not match."""
    whole = f"{done.args[5:]}: {done.stdout}{done.stderr}"
    check(done.returncode == status, f"status {done.returncode}, not {status}: {whole}")
    for pattern in patterns:
        check(re.search(pattern, done.stderr, re.S), f"no {pattern!r} in {whole}")
    for pattern in without:
        check(not re.search(pattern, done.stderr, re.S), f"{pattern!r} in {whole}")


# ------------------------------------------------------------------------ what the report says


def check_race(world: World) -> None:
    expect(world.run(RACE.format(order="")), 4, r"cai_sim: 1 race\n",
           r'race 1 on m1\[0, 32\)\n  1024 bytes, allocated at program\d+.py:5, in produce:  a = alpha.zeros\(1024\)\n'
           r'  s1, one of 2, made at program\d+.py:12, in <module>:  s1, s2 = alpha.stream\(\), alpha.stream\(\)\n'
           r'  s2, one of 2, made at program\d+.py:12, in <module>:  s1, s2 = alpha.stream\(\), alpha.stream\(\)\n'
           r'  kernel "fill" writes on s1 \(operation \d+\)\n      at program\d+.py:6, in produce:  alpha.launch\(stream, "fill"'
           r'.*?      from program\d+.py:13, in <module>\n      in \S*alpha/__init__.py:\d+, in launch\n      stub_launch of alpha 1.5\n'
           r'  kernel "scale" reads on s2 .*?at program\d+.py:10, in consume:.*?  nothing makes s2 wait for s1\n  between the two: cuEventRecord\(event, s1\); cuStreamWaitEvent\(s2, event, 0\)\n',
           r"called by: alpha 1.5 \(2 calls\), ctypes \(1 call\)\n",
           r"called, and not served \(they returned an error\): "
           r"stub_not_served, stub_not_followed \(2 of 3 calls\), cudaMissing\n",
           r"asked for, and not served: 1 function: stub_asked_for\n", without=("not judged", "stub_never", "line is not known"))  # fmt: skip
    expect(world.run(RACE.format(order="alpha.order(s1, s2)")), 0, r"cai_sim: no race\n", without=("race 1",))


def check_possible(world: World) -> None:
    program = RACE.format(order="alpha.launch(s2, 'maybe', a, 64, 2); alpha.launch(s1, 'other', a, 64, 2)")
    program = program.replace('alpha.launch(stream, "fill", a)', "pass")
    said = r"cai_sim: \d possible race", "possible, not certain: nothing tells whether", '"maybe" may write on s2'
    expect(world.run(program), 7, *said, without=(r"cai_sim: \d race",))
    expect(world.run(program + "raise SystemExit(3)\n"), 3, *said)
    expect(world.run(program, "--accept", "possible"), 0, *said)
    far = RACE.format(order="").replace("a, 32, 0,", "a, 32, 4,")
    expect(world.run(far), 7, "cai_sim: 1 possible race\n", '"scale" may write on s2', "whether it comes as far as the other one")
    both = program + "b = alpha.zeros(64)\nalpha.launch(s1, 'w', b)\nalpha.launch(s2, 'w', b)\nalpha.launch(s2, 'dark', 0)\n"
    expect(world.run(both), 4, r"cai_sim: 1 race and \d possible races?; not judged: 1 of \d launches\n")
    program = RACE.format(order="") + "for i in range(5): alpha.launch(s2, 'scale', a)\n"
    done = world.run(program)
    expect(done, 4, r"cai_sim: 2 races\n", "and 4 more pairs of operations of these two calls")
    check(done.stderr.count("s1, one of 2, made at") == 1, f"a stream is told of once: {done.stderr}")


def check_opaque(world: World) -> None:
    program = "import alpha\ns = alpha.stream()\nfor i in range(3): alpha.launch(s, 'dark', 0)\n"
    expect(world.run(program), 8, "cai_sim: not judged: 3 of 3 launches\n", r"not judged: 3 launches of kernels whose accesses are not known: dark \(3\)", without=("no race",))
    expect(world.run(program, "--accept=unread,not-judged"), 0, "cai_sim: not judged: 3 of 3 launches\n")
    expect(world.run("pass"), 8, "cai_sim: not judged: no work was queued", without=("no race",))
    (world.folder / "dead.py").write_text(program)
    expect(world.python("-m", "cai_sim", "dead.py", STUB_DEAD="1"), 5, r"cai_sim: 1 use of what was destroyed\n",
           r"dead handle: stream s3\n  made      at dead.py:2, in <module>:  s = alpha.stream\(\)\n            stub_stream of ctypes\n"
           r"  destroyed at dead.py:3.*  used      at dead.py:3.*  and 1 more time\n")  # fmt: skip
    expect(world.python("-m", "cai_sim", "dead.py", STUB_DEAD="2"), 5, r"cai_sim: 1 use of what was destroyed\n",
           r"dead handle: s3, which never was the handle of a stream\n  given     at dead.py:3")  # fmt: skip
    expect(world.python("-m", "cai_sim", "dead.py", STUB_DEAD="3"), 5, r"cai_sim: 1 launch on memory out of reach\n", r"out of reach: an argument is m3, of device 1")


def check_unread(world: World) -> None:
    """Kernels whose code was not read: accepted, but for --strict."""
    program = "import alpha\na = alpha.zeros(8)\nalpha.launch(alpha.stream(), 'sass', a, 8, 2 + 64)\n"
    said = "cai_sim: no race, if a kernel that could not be read follows only the pointers of its arguments\n"
    expect(world.run(program), 0, said, r"judged by the pointers of their arguments: sass \(1\)\n")
    expect(world.run(program, "--strict"), 9, said)
    expect(world.run(program + "raise SystemExit(3)\n", "--strict"), 3, said)
    expect(world.run(program, "--strict", "--accept=unread"), 0, said)
    more = program + "alpha.launch(alpha.stream(), 'other', alpha.zeros(8), 8, 2 + 64)\n"
    expect(world.run(more), 0, "no race, if 2 kernels that could not be read follow only the pointers of their arguments\n")


PYTESTS = """
import alpha

s1, s2 = alpha.stream(), alpha.stream()

def test_clean():
    a = alpha.zeros(8)
    alpha.launch(s1, "one", a, 8); alpha.order(s1, s2); alpha.launch(s2, "two", a, 8)

def test_race():
    a = alpha.zeros(8)
    alpha.launch(s1, "three", a, 8); alpha.launch(s2, "four", a, 8)

def test_likely():
    a = alpha.zeros(8)
    alpha.launch(s1, "five", a, 8); alpha.launch(s2, "six", a, 8, 4)

def test_nothing_known():
    a = alpha.zeros(8)
    alpha.launch(s1, "seven", a, 8, 2); alpha.launch(s2, "eight", a, 8, 2)

def test_wrong():
    assert False, "of itself"

def test_dark():
    alpha.launch(s1, "dark", 0)
"""


PYTESTS_UNDEFINED = """
import alpha

for i in range(4): alpha.stream()
def test_clean(): pass
def test_dead(): alpha.driver.stub_use(1)
def test_dead_again(): alpha.driver.stub_use(1); alpha.driver.stub_use(1)
def test_between(): pass
def test_far(): alpha.driver.stub_use(3)
def test_never(): alpha.driver.stub_use(2)
"""

# More races than are read at once, and one more.
PYTESTS_RACES = """
import alpha
import sys
import sysconfig

sys.modules["cai_sim._trace"].MOST_RACES = 50
s1, s2 = alpha.stream(), alpha.stream()

def test_many():
    a = alpha.zeros(8)
    for stream in (s1, s2):
        for i in range(10): alpha.launch(stream, "one", a, 8)

def test_clean(): pass

def test_late():
    a = alpha.zeros(8)
    alpha.launch(s1, "late", a, 8); alpha.launch(s2, "later", a, 8)
"""


def check_pytest(world: World) -> None:
    """The plugin: what fails, by which text, and what the whole run says."""
    (world.folder / "test_alpha.py").write_text(PYTESTS)
    (world.folder / "test_undefined.py").write_text(PYTESTS_UNDEFINED)

    def run(*options: str, file: str = "test_alpha.py") -> subprocess.CompletedProcess[str]:
        plugin = ("-p", "cai_sim_pytest", "--cai-sim")
        command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, file, *options)
        return world.python(*command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")

    done = run()
    if "No module named pytest" in done.stderr:
        print("pytest: skipped, it is not installed")
        return
    text = done.stdout + done.stderr
    failed = re.findall(r"^FAILED test_alpha.py::test_(\w+)", text, re.M)
    check(failed == ["race", "likely", "wrong"] and done.returncode == 1, f"pytest: {failed}, status {done.returncode}: {text}")
    for said in ('kernel "three" writes on s1', 'kernel "six" may write on s2', "of itself",
                 "cai_sim: 1 race and 2 possible races; not judged: 1 of 9 launches\n", "test_alpha.py:12, in test_race"):  # fmt: skip
        check(said in text, f"pytest: no {said!r} in {text}")
    done = run(file="test_undefined.py")
    failed = re.findall(r"^FAILED test_undefined.py::test_(\w+)", done.stdout, re.M)
    check(failed == ["dead", "dead_again", "far", "never"], f"pytest: {failed}: {done.stdout}{done.stderr}")
    for said in (r"dead handle: stream s3\n  made", "  and 1 more time", "out of reach: an argument is m3", "which never was"):
        check(re.search(said, done.stdout), f"pytest: no {said!r} in {done.stdout}")
    failures = done.stdout.partition("short test summary")[0]  # the summary repeats each text where CI is set
    check(failures.count("destroyed at") == 2, f"pytest: not told twice in {done.stdout}")
    (world.folder / "test_races.py").write_text(PYTESTS_RACES)
    done = run(file="test_races.py")
    failed = re.findall(r"^FAILED test_races.py::test_(\w+)", done.stdout, re.M)
    check(failed == ["many", "late"], f"pytest, many races: {failed}: {done.stdout[-2000:]}{done.stderr}")
    check('kernel "later" writes on s2' in done.stdout, f"pytest: the late race is not told in {done.stdout[-2000:]}")
    clean = run("-k", "clean or known")
    check(clean.returncode == 0 and "cai_sim: 1 possible race\n" in clean.stdout, f"pytest: {clean.stdout}{clean.stderr}")
    dark = run("-k", "dark")
    check(dark.returncode == 8 and "not judged: 1 of 1 launch" in dark.stdout, f"pytest: {dark.stdout}{dark.stderr}")
    dark = run("-k", "dark", "--cai-sim-options", "--accept not-judged --devices 2")
    check(dark.returncode == 0, f"pytest: {dark.stdout}{dark.stderr}")
    own = "import cai_sim; cai_sim.start()\n" + PYTESTS.replace("    assert False", "    assert True")
    (world.folder / "test_own.py").write_text(own)  # who starts it, judges it
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "cai_sim_pytest", "test_own.py")
    done = world.python(*command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    check(done.returncode == 0, f"pytest: {done.stdout}{done.stderr}")
    bad = run("--cai-sim-options", "--svg x.svg")
    check(bad.returncode == 4 and "without --svg" in bad.stderr, f"pytest: {bad.returncode}: {bad.stdout}{bad.stderr}")


def check_unfinished(world: World) -> None:
    """A program that did not come to its end is not told that it has no race."""
    ordered = RACE.format(order="alpha.order(s1, s2)")
    expect(world.run(ordered + "raise KeyError('x')\n"), 1, "KeyError: 'x'",
           r"cai_sim: not judged to the end: KeyError ended the program\n", without=("no race",))  # fmt: skip
    expect(world.run(RACE.format(order="") + "raise KeyError('x')\n"), 4, r"cai_sim: 1 race\n")
    broken = ordered + "alpha.driver.stub_break(700)\n"
    said = r"cai_sim: not judged to the end: the device has failed with error 700\n"
    expect(world.run(broken), 6, said, without=("no race",))
    expect(world.run(broken + "raise SystemExit(3)\n"), 3, said)

def check_away(world: World) -> None:
    """A static libcudart is named, with its cure. NVRTC asks for the same, and goes on."""
    (world.folder / "away.py").write_text(RACE.format(order="alpha.order(s1, s2)"))
    alpha, cupy = str(world.packages / "alpha" / "libalpha.so"), "/x/cupy_backends/cuda/api/runtime.cpython-311-x86_64-linux-gnu.so"
    nvrtc = "/x/nvidia/cu13/lib/libnvrtc.so.13"
    expect(world.python("-m", "cai_sim", "away.py", STUB_AWAY=f"{alpha}:{cupy}:{nvrtc}"), 6,
           r"cai_sim: not judged to the end: alpha 1\.5, runtime\.cpython-311-x86_64-linux-gnu\.so was turned away\n",
           r"turned away: libalpha\.so of alpha 1\.5 does not run here: its CUDA runtime is linked statically, and asks for private "
           r"tables of the driver, which are not here\. If you build it, link it with `nvcc -cudart shared`, or with CUDA_RUNTIME_LIBRARY Shared in CMake\n",
           r"turned away: CuPy does not run here \(runtime\.\S*\): .*not here\. Run `python\S* -m cai_sim\.cupy` once",
           without=("no race", "turned away: libnvrtc"))  # fmt: skip
    expect(world.python("-m", "cai_sim", "away.py", STUB_AWAY=nvrtc), 0, r"cai_sim: no race\n", without=("turned away",))
    (world.folder / "raises.py").write_text("raise ValueError('stopped')\n")
    expect(world.python("-m", "cai_sim", "raises.py", STUB_AWAY=cupy), 1,
           r"ValueError: stopped\ncai_sim: CuPy does not run here.*`python\S* -m cai_sim\.cupy`",
           without=("results are not there",))  # fmt: skip
    expect(world.run("raise RuntimeError('cudaMallocAsync does not yet support this')\n"), 1,
           r"cai_sim: cai_sim chose this allocator of PyTorch.*PYTORCH_ALLOC_CONF=backend:native")  # fmt: skip
    expect(world.run("assert 1 == 2\n"), 1, r"AssertionError\ncai_sim: Kernels do not run here: results are not there")


def check_variables(world: World) -> None:
    """Triton and Dr.Jit look for the driver by variables of their own."""
    said = r"(\S+) \1/libcuda.so.1\n"
    program = "import os, sys\nsys.stderr.write('{TRITON_LIBCUDA_PATH} {DRJIT_LIBCUDA_PATH}\\n'.format(**os.environ))\n"
    expect(world.run(program), 8, said)
    (world.folder / "variables.py").write_text(program)
    expect(world.python("-m", "cai_sim", "variables.py", TRITON_LIBCUDA_PATH="/mine"), 8, r"/mine \S+/libcuda.so.1\n")


def check_waits(world: World) -> None:
    """The missing wait as code of the libraries that made the two streams, and the names of streams."""
    program = """
import sys, types
from cai_sim._sites import Frame
from cai_sim._trace import Call, Race, Stream, targets
from cai_sim._waits import between
sys.modules["cuda.core"] = types.ModuleType("cuda.core")
old = types.ModuleType("cupy")
old.cuda = types.SimpleNamespace(Stream=object)
new = types.ModuleType("cupy")
new.cuda = types.SimpleNamespace(Stream=types.SimpleNamespace(from_external=None))
made = {"t": "torch 2.15.0", "c": "cupy-cuda13x 14.2.0", "n": "numba-cuda 0.30.4", "k": "cuda-bindings 13.5.0", "p": "pycuda 2026.1",
        "j": "jax-cuda13-plugin 0.10", "x": "ctypes", "r": "triton 3.9.0"}
def call(stream, library):
    return Call(1, "copy", "", "", "copy", stream, False, library, (), 1)
def side(text):
    library, _, stream = text.partition(" ")
    used = call(stream or "s1" + library, made[library])
    return used, Stream(used.stream, call("", made[library]) if used.stream[:2] == "s1" else None)
for line in WAITS.strip().splitlines():
    pair, _, code = line.partition(": ")
    sys.modules["cupy"] = new if pair.endswith("!") else old
    (second, two), (first, one) = map(side, pair.strip("!").split(" < "))
    race = Race(True, "", "", 0, 0, first, second, "", "", "", None, 0, "", (one, two))
    if between(race) != code: print(line, "|", between(race))
for source, names in TARGETS.items():
    if targets(source) != names: print(source, targets(source))
"""
    waits = """
t < t: s1t.wait_stream(s1t)
t < c: s1t.wait_stream(torch.cuda.ExternalStream(s1c.ptr))
t < n: s1t.wait_stream(torch.cuda.ExternalStream(int(s1n.handle)))
t < k: s1t.wait_stream(torch.cuda.ExternalStream(int(s1k.handle)))
t < p: s1t.wait_stream(torch.cuda.ExternalStream(s1p.handle))
t < x: s1t.wait_stream(torch.cuda.ExternalStream(s1x))
t < c legacy: s1t.wait_stream(torch.cuda.default_stream())
t < t per_thread: s1t.wait_stream(torch.cuda.ExternalStream(2))
t < t legacy c2: cuEventRecord(event, legacy c2); cuStreamWaitEvent(s1t.cuda_stream, event, 0)
t legacy < n: torch.cuda.default_stream().wait_stream(torch.cuda.ExternalStream(int(s1n.handle)))
r legacy < t: torch.cuda.default_stream().wait_stream(s1t)
c < t: s1c.wait_event(cupy.cuda.ExternalStream(s1t.cuda_stream).record())
c < t!: s1c.wait_event(cupy.cuda.Stream.from_external(s1t).record())
c < p!: s1c.wait_event(cupy.cuda.ExternalStream(s1p.handle).record())
n < t: event = cuda.event(); event.record(cuda.external_stream(s1t.cuda_stream)); event.wait(s1n)
n < k: event = cuda.event(); event.record(cuda.external_stream(int(s1k.handle))); event.wait(s1n)
k < n: s1k.wait(s1n)
k < p: s1k.wait(Stream.from_handle(s1p.handle))
k < n per_thread: s1k.wait(PER_THREAD_DEFAULT_STREAM)
p < p: s1p.wait_for_event(pycuda.driver.Event().record(s1p))
p < n: event = cuda.event(); event.record(s1n); event.wait(cuda.external_stream(s1p.handle))
p < t: torch.cuda.ExternalStream(s1p.handle).wait_stream(s1t)
p < x: cuEventRecord(event, s1x); cuStreamWaitEvent(s1p.handle, event, 0)
p legacy < p: cuEventRecord(event, s1p.handle); cuStreamWaitEvent(legacy, event, 0)
x < k: Stream.from_handle(s1x).wait(s1k)
j < k: let the host wait for s1k: s1k.sync()
j < x: let the host wait for s1x, by its synchronize()
t < j: let the host wait for s1j: block_until_ready() of JAX's array
t the host < t: let the host wait for s1t: s1t.synchronize()
t the host < n legacy: let the host wait for legacy: cuda.legacy_default_stream().synchronize()
"""
    names = {"s = f()": ["s"], "self.s: S = f(1)": ["self.s"], "a, b = f(), x.g()": ["a", "b"], "s = f(": ["s"], "s = x.f(1,": ["s"],
             "a, b = f()": [], "s = [f() for i in j]": [], "s = f(); t = g()": [], "f(s)": [], "f(s=g())": [], "s == f()": [],
             "f(s, t=g(": [], "s = [f(": [], "a = b = f()": [], "s += f()": [], "": []}  # fmt: skip
    done = world.python("-c", program.replace("WAITS", repr(waits), 1).replace("TARGETS", repr(names), 1))
    check(done.returncode == 0 and not done.stdout, f"waits: {done.stdout}{done.stderr}")


def check_frees(world: World) -> None:
    program = RACE.format(order="alpha.order(s1, s2)") + "alpha.driver.stub_free(a)\n"
    expect(world.run(program), 4, "cai_sim: 2 races", "frees on the host", "nothing orders|nothing makes the host wait",
           r"between the two: let the host wait for s2, by its synchronize\(\)\n")  # fmt: skip
    done = world.run(program.replace("alpha.driver.stub_free(a)", "alpha.driver.stub_synchronize(s2); alpha.driver.stub_free(a)"))
    expect(done, 0, "cai_sim: no race\n")


# ------------------------------------------------------------------------ threads and the GIL


def check_threads(world: World) -> None:
    begin = "import alpha, threading\ns1, s2 = alpha.stream(), alpha.stream()\na = alpha.zeros(1024)\n"
    run = "t = threading.Thread(target=work)\nt.start()\nt.join()\nalpha.launch(s2, 'second', a)\n"
    program = begin + "def work():\n    alpha.launch(s1, 'first', a)\n" + run
    expect(world.run(program), 4, "cai_sim: 1 race\n", r"program\d+.py:5, in work:", "kernel \"second\" writes on s2")
    program = begin + "def work():\n    alpha.launch(s1, 'first', a)\n    alpha.driver.stub_synchronize(s1)\n"
    expect(world.run(program + run), 0, "cai_sim: no race\n")
    lock = "import threading\nlock = threading.Lock()\nlock.acquire()\n" + program + "    lock.release()\n"
    lock += "threading.Thread(target=work).start()\nlock.acquire()\nalpha.launch(s2, 'second', a)\n"
    expect(world.run(lock), 7, "cai_sim: 1 possible race\n", "a lock of the program may order")
    one = begin + "lock = threading.Lock()\nlock.acquire()\nalpha.launch(s1, 'first', a)\ndef work():\n    alpha.driver.stub_synchronize(s1)\n"
    one += "    lock.release()\nthreading.Thread(target=work).start()\nlock.acquire()\nalpha.launch(s2, 'second', a)\n"
    expect(world.run(one), 7, "cai_sim: 1 possible race\n", "a lock of the program may order the host threads")  # another thread waited for it
    later = begin + "import time\nalpha.launch(s2, 'first', a)\ndef work():\n    time.sleep(.3)\n    alpha.launch(s1, 'late', a)\n"
    expect(world.run(later + "threading.Thread(target=work).start()\n"), 4, r"cai_sim: 1 race\n", 'kernel "late"')
    bare = begin + "t = threading.Thread(target=alpha.launch, args=(s1, 'bare', a))\n" + run[run.index("t.start"):]
    expect(world.run(bare), 4, r'kernel "bare" writes on s1 \(operation \d+\)\n      at \S*alpha/__init__.py')


TELLING = """
import alpha, concurrent.futures, queue, threading
s1, s2 = alpha.stream(), alpha.stream()
a = alpha.zeros(1024)
def work(tell):
    alpha.launch(s1, "first", a)
    {wait}
    tell()
{tell}
alpha.launch(s2, "second", a)
"""
TELLS = {
    "thread": "t = threading.Thread(target=work, args=(int,))\nt.start()\nt.join()",
    "pool": "with concurrent.futures.ThreadPoolExecutor() as p: p.submit(work, int).result()",
    "map": "with concurrent.futures.ThreadPoolExecutor() as p: list(p.map(work, [int]))",
    "event": "e = threading.Event()\nthreading.Thread(target=work, args=(e.set,)).start()\ne.wait()",
    "queue": "q = queue.Queue()\nthreading.Thread(target=work, args=(lambda: q.put(a),)).start()\nq.get()",
    "stack": "q = queue.LifoQueue()\nq.put(a)\nthreading.Thread(target=work, args=(lambda: q.put(7),)).start()\n"
             "while q.qsize() < 2: pass\nassert q.get() == 7",
}  # fmt: skip


def check_telling(world: World) -> None:
    """What tells another thread of Python orders what the host waited for, and nothing else."""
    wait = "alpha.driver.stub_synchronize(s1)"
    for name, tell in TELLS.items():
        expect(world.run(TELLING.format(wait=wait, tell=tell)), 0, "cai_sim: no race\n")
        expect(world.run(TELLING.format(wait="", tell=tell)), 4, "cai_sim: 1 race\n", 'kernel "second"')
    expect(world.run(TELLING.format(wait=wait, tell=TELLS["stack"].replace("assert q.get() == 7", "q.queue.pop(); q.get()"))), 7,
           "a lock of the program may order")  # fmt: skip
    kept = "class T(threading.Thread):\n    def run(self): work(int)\nt = T()\nt.start()\nt.join()\nassert 'run' not in vars(t)"
    expect(world.run(TELLING.format(wait=wait, tell=kept)), 0, "cai_sim: no race\n")


def check_host_function(world: World) -> None:
    """What a host function tells the program orders, if it ran after the first and before the second was queued."""
    program = """
        import alpha
        s1, s2, s3 = alpha.stream(), alpha.stream(), alpha.stream()
        a = alpha.zeros(1024)
        {before}
        alpha.launch(s1, "first", a)
        {after}
        alpha.driver.stub_run()
        alpha.launch(s2, "second", a)
        {late}
    """
    tells = {"before": "", "after": "", "late": ""}
    run = lambda **which: world.run(textwrap.dedent(program).format(**tells | which))  # noqa: E731
    expect(run(), 4, "cai_sim: 1 race\n")
    expect(run(after="alpha.driver.stub_tell(s1)"), 7, "cai_sim: 1 possible race\n", "a host function ran in between")
    expect(run(after="alpha.order(s1, s3); alpha.driver.stub_tell(s3)"), 7, "cai_sim: 1 possible race\n")
    expect(run(after="alpha.driver.stub_tell(s3)"), 4, "cai_sim: 1 race\n")  # it knows nothing of s1
    expect(run(before="alpha.driver.stub_tell(s1)"), 4, "cai_sim: 1 race\n")
    expect(run(late="alpha.driver.stub_tell(s1)"), 4, "cai_sim: 1 race\n")


def check_lock(world: World) -> None:
    """One thread calls CUDA under a lock, without the GIL, and another one waits for that lock with the GIL."""
    program = ("import alpha, threading, time\ns = alpha.stream()\na = alpha.zeros(64)\n"
               "t = threading.Thread(target=alpha.free.alpha_locked, args=(s, a))\nt.start()\n"
               "time.sleep(.1)\nalpha.held.alpha_lock_alone()\nt.join()\nprint('ended')\n")  # fmt: skip
    done = world.run(program)
    expect(done, 0, "the GIL was not free in time for 1 call:")
    check("ended" in done.stdout, "the program did not end")


def check_busy(world: World) -> None:
    """Lines are right while other threads compute, and while objects are collected."""
    program = """
import alpha, threading, gc, sys, re
import cai_sim
stop = []
def compute():
    while not stop: [[] for i in range(100)]
def one(n):
    for i in range(200):
        alpha.launch(s, f"one {n} {i}", a, library=alpha.free)
        alpha.launch(s, f"two {n} {i}", a, library=alpha.held)
gc.set_threshold(1)
s, a = alpha.stream(), alpha.zeros(64)
threads = [threading.Thread(target=one, args=(n,)) for n in range(3)]
busy = threading.Thread(target=compute)
for t in threads + [busy]: t.start()
for t in threads: t.join()
stop.append(1)
cai_sim.write_trace("busy.txt")
lines = open("busy.txt").read().splitlines()
for word, line in (("one", 9), ("two", 10)):
    found = [l for l in lines if f'launch; "{word} ' in l]
    assert len(found) == 600, len(found)
    wrong = [l for l in found if not re.search(rf"; at program\\d+.py:{line}, in one$", l)]
    assert not [l for l in wrong if "; at " in l], wrong[:3]
    assert len(wrong) < 20, (len(wrong), wrong[:3])
assert gc.isenabled()
print("right")
"""
    done = world.run(program)
    check("right" in done.stdout, f"lines of threads: {done.stdout}{done.stderr}")


# ------------------------------------------------------------------------ the command, the functions


def check_command(world: World) -> None:
    say = "import sys\nprint(__name__, sys.argv, sys.path[0])\n"
    done = world.run(say, arguments=("--devices", "-x"))
    check(done.stdout.startswith(f"__main__ ['program{world.number}.py', '--devices', '-x'] {world.folder}\n"), done.stdout)
    (world.folder / "amodule.py").write_text(say)
    done = world.python("-m", "cai_sim", "-m", "amodule", "x")
    check(done.stdout.startswith(f"__main__ ['{world.folder}/amodule.py', 'x'] {world.folder}\n"), done.stdout)
    done = world.python("-m", "cai_sim", "-c", "import alpha, sys\nalpha.launch(alpha.stream(), 'k', 5)\nprint(sys.argv)", "y")
    check(done.stdout == "['-c', 'y']\n", f"-c: {done.stdout}{done.stderr}")
    source = "import alpha\ns=alpha.stream; a=alpha.zeros(9)\nalpha.launch(s(), 'k', a)\nalpha.launch(s(), 'l', a)"
    expect(world.python("-m", "cai_sim", "-c", source), 4, r"<command>:4, in <module>:  alpha.launch\(s\(\), 'l', a\)")
    expect(world.run("raise SystemExit('so')"), 1, r"^so\n")
    done = world.run("def f(): return 1 / 0\nf()\n")
    expect(done, 1, r"ZeroDivisionError", without=("runpy", "__main__.py"))
    expect(world.run("raise KeyboardInterrupt"), 130)
    count = "import alpha; print(alpha.driver.stub_devices_made())"
    check(world.run(count, "--devices", "3", "--memory=1M").stdout == "3\n", "--devices")
    fits = "import alpha\nprint([bool(alpha.zeros(n << 20)) for n in (1, 2)])"
    check(world.run(fits, "--memory", "2M").stdout == "[True, False]\n", "--memory")
    options = "import os; print(os.environ.get('CAI_SIM_OPTIONS'))"
    check(world.run(options, "--adversarial").stdout == "adversarial\n", "--adversarial")
    check(world.run(options).stdout == "None\n", "without --adversarial")
    for wrong in (["--nothing", "x"], ["--devices"], ["--devices", "x", "p"], ["--devices", "65", "program1.py"], ["none.py"], ["--accept", "races", "program1.py"],
                  ["-m"], ["-x"], []):  # fmt: skip
        check(world.python("-m", "cai_sim", *wrong).returncode == 2, f"accepted: {wrong}")
    check(world.python("-m", "cai_sim", "--help").stdout.startswith("python -m cai_sim"), "--help")


def check_functions(world: World) -> None:
    program = """
import cai_sim
assert not cai_sim.started()
for early in (cai_sim.races, cai_sim.report, lambda: cai_sim.mark("x")):
    try: early()
    except RuntimeError as error: assert "start was not called" in str(error)
    else: raise AssertionError
cai_sim.start()
import alpha
s1, s2 = alpha.stream(), alpha.stream()
a = alpha.zeros(100)
alpha.launch(s1, "one", a)
assert cai_sim.races() == []
cai_sim.mark("here")
alpha.launch(s2, "two", a, 8)
[race] = cai_sim.races()
assert race.certain and race.bytes == 8 and race.allocated_bytes == 100 and race.array == "", race
assert race.mark == "here" and race.first.kernel == "one" and race.second.line.line == 15, race
assert race.first.library == race.first.caller == "alpha 1.5" and not race.first.opaque, race
assert race.second.frames[0].installed and not race.second.line.installed, race
assert str(race).startswith("race on m1[0, 8): kernel \\"one\\" writes on s1 at program"), str(race)
cai_sim.mark("there")
now = cai_sim.position()
assert cai_sim.races(since=now) == []
alpha.launch(s1, "three", a, 8, 2)
assert len(cai_sim.races(since=now)) == 1 and len(cai_sim.races()) == 2
assert "after the mark 'here'" in cai_sim.report()
b = alpha.zeros(8)
alpha.launch(s1, "four", b, 8, 2); alpha.launch(s2, "five", b, 8, 2)
assert len(cai_sim.races()) == 3 and len(cai_sim.races(possible=False)) == 2
try: cai_sim.start()
except RuntimeError as error: assert "called before" in str(error)
else: raise AssertionError
print("right")
"""
    (world.folder / "program_functions.py").write_text(program)
    done = world.python("program_functions.py")
    check(done.stdout == "right\n" and done.returncode == 0, f"functions: {done.stdout}{done.stderr}")


def check_names(world: World) -> None:
    names = {"fill": "fill", "_ZN8__main__4fillB2v1B104cw51": "fill", "_Z1fPf": "f", "_Z1f4Pair": "f", "_Zx": "_Zx", "_ZN": "_ZN", "": "",
             "_ZN2at6native6kernelILi4E": "at::native::kernel"}  # fmt: skip
    program = f"from cai_sim._trace import readable as r\nprint([n for n, w in {names}.items() if r(n) != w])"
    done = world.python("-c", program)
    check(done.stdout == "[]\n", f"names of kernels: {done.stdout}{done.stderr}")
    program = "from cai_sim._picture import squeezed as s\nprint(s([(500, 508), (504, 505), (1000, 1008), (1001, 1002)]))"
    times = "{500: 0, 508: 8, 504: 4, 505: 5, 1000: 12, 1008: 20, 1001: 13, 1002: 14}\n"
    done = world.python("-c", program)
    check(done.stdout == times, f"times of a picture: {done.stdout}{done.stderr}")


def check_layout(world: World) -> None:
    """The structs of _native.py are those of the headers."""
    names = {"Access": "cai_sim_access", "Operation": "cai_sim_operation", "CheckRace": "cai_check_race",
             "TimelineOptions": "cai_timeline_options", "DriverCall": "cai_driver_call",
             "DriverFunction": "cai_driver_function", "RuntimeFunction": "cai_runtime_function"}  # fmt: skip
    program = ("import ctypes\nimport cai_sim._native as n\n"
               f"for p, c in {names}.items():\n"
               "    t = getattr(n, p)\n"
               "    if not hasattr(t, 'room'): print(c, ctypes.sizeof(t))\n"
               "    for f, *_ in t._fields_:\n"
               "        if f != 'room': print(c, f, getattr(t, f).offset, getattr(t, f).size)\n")  # fmt: skip
    rows = [row.split() for row in world.python("-c", program).stdout.splitlines()]
    tests = "".join(f'_Static_assert(sizeof({row[0]}) == {row[1]}, "size");\n' for row in rows if len(row) == 2)
    rows = [row for row in rows if len(row) > 2]
    check(len(rows) > 40, f"only {len(rows)} members")
    tests += "".join(f"_Static_assert(offsetof({c}, {m}) == {o} && sizeof(((({c} *)0)->{m})) == {s}, \"{c}.{m}\");\n"
                    for c, m, o, s in rows)  # fmt: skip
    headers = "".join(f'#include "{name}.h"\n' for name in ("cai_timeline", "cai_driver", "runtime/cai_runtime"))
    (world.folder / "layout.c").write_text("#include <stddef.h>\n" + headers + tests)
    done = subprocess.run([*world.shared, "-fsyntax-only", str(world.folder / "layout.c")], capture_output=True, text=True)
    check(done.returncode == 0, f"layout: {done.stderr}")


def check_start(world: World) -> None:
    """What start says if it cannot do its work."""
    other = world.folder / "other"
    other.mkdir()
    shutil.copy(world.libraries / "libcuda.so.1", other)
    early = f"import ctypes; ctypes.CDLL({str(other / 'libcuda.so.1')!r})\nimport cai_sim\ncai_sim.start()\n"
    done = world.python("-c", early)
    check(done.returncode == 1 and "comes too late, this process has loaded" in done.stderr, f"early: {done.stderr}")
    check(str(other) in done.stderr, f"early: {done.stderr}")
    shutil.copy(world.libraries / "libcuda.so.1", other / "libcudart-0123abcd.so.12.9")
    late = f"import ctypes; ctypes.CDLL({str(other / 'libcudart-0123abcd.so.12.9')!r})\n"
    expect(world.run(late), 8, "not simulated, and not seen here: /.*/other/libcudart-0123abcd.so.12.9")
    done = world.python("-m", "cai_sim", "program1.py", CAI_SIM_LIBRARIES=str(world.packages))
    check(done.returncode == 2 and "there is no libcuda.so.1 in" in done.stderr, f"no libraries: {done.stderr}")


def check_files(world: World) -> None:
    """--svg and --trace of a short run and of a long one."""
    expect(world.run(RACE.format(order=""), "--svg", "short.svg", "--trace=short.txt"), 4)
    drawn = (world.folder / "short.svg").read_text()
    xml.etree.ElementTree.fromstring(drawn)
    check("fill" in drawn and "scale" in drawn and "race on m1" in drawn, "the picture of a short run")
    trace = (world.folder / "short.txt").read_text()
    check(re.search(r'^\d+ s2 launch; "scale"; reads m1\[0, 32\); stub_launch of alpha 1.5; at program\d+.py:10, in consume$', trace, re.M),
          f"the trace: {trace}")  # fmt: skip
    more = "for i in range(2000):\n    alpha.launch(s1, f'more {i}', b)\n    if i % 100 == 0: alpha.order(s1, s2)\n"
    begin, middle, end = RACE.format(order=more).replace("s1, s2 =", "b = alpha.zeros(64)\ns1, s2 =").partition("a = produce(s1)\n")
    program = begin + middle + end + more
    expect(world.run(program, "--svg", "long.svg", "--trace=long.txt"), 4 if "order" not in more else 0)
    racy = begin + more + middle + "for i in range(300): alpha.launch(s1, f'last {i}', b)\n" + "consume(s2, a)\n" + more
    expect(world.run(racy, "--svg", "long.svg", "--trace=long.txt"), 4)
    drawn = (world.folder / "long.svg").read_text()
    xml.etree.ElementTree.fromstring(drawn)
    check("race on m2" in drawn and "scale" in drawn and "fill" in drawn, "the picture of a long run has its race")
    check(re.search(r": \d+ of 4\d\d\d operations", drawn) and len(drawn) < 60_000, f"{len(drawn)} bytes of picture")
    check((world.folder / "long.txt").read_text().count("\n") > 4000, "the trace of a long run")


# ------------------------------------------------------------------------ the driver

# Two streams by the driver's API. {order}: what is between the two.
DRIVER = """
import ctypes
from ctypes import byref, c_size_t, c_uint64, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    assert error == 0, (name, error)
context, one, two, event, a, b = c_void_p(), c_void_p(), c_void_p(), c_void_p(), c_uint64(), c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuStreamCreate", byref(one), 1)
call("cuStreamCreate", byref(two), 1)
call("cuEventCreate", byref(event), 2)
call("cuMemAlloc_v2", byref(a), c_size_t(1024))
call("cuMemAlloc_v2", byref(b), c_size_t(1024))
call("cuMemsetD8Async", a, 1, c_size_t(1024), one)
{order}
call("cuMemcpyDtoDAsync_v2", b, a, c_size_t(512), two)
"""
WAIT = 'call("cuEventRecord", event, one)\ncall("cuStreamWaitEvent", two, event, 0)'
# An array of Numba is filled in Numba's stream, and copied by cuda.core in its own. {stream}: -1: it does not wait.
TWO_LIBRARIES = """
import numpy as np
from numba import cuda
from cuda.core import Buffer, Device
from cuda.core.utils import StridedMemoryView

device = Device()
device.set_current()
mine, theirs = cuda.stream(), device.create_stream()
host = cuda.pinned_array(1024, np.float32)
x = cuda.device_array(1024, np.float32, stream=mine)
x.copy_to_device(host, stream=mine)
view = StridedMemoryView.from_cuda_array_interface(x, stream_ptr={stream})
out = device.allocate(4096, stream=theirs)
Buffer.from_handle(view.ptr, 4096).copy_to(out, stream=theirs)
theirs.sync()
mine.synchronize()
"""

# Each test uses a destroyed event of its own.
PYTESTS_MANY = """
import ctypes
import pytest

cuda = ctypes.CDLL("libcuda.so.1")
context, event = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)

@pytest.mark.parametrize("number", range(100))
def test_one(number):
    cuda.cuEventCreate(ctypes.byref(event), 2)
    cuda.cuEventDestroy_v2(event)
    cuda.cuEventQuery(event)
"""


def many_findings(world: World) -> None:
    """In a long run of pytest each test fails by its own finding. A report of a whole run stays short."""
    (world.folder / "test_many.py").write_text(PYTESTS_MANY)
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "cai_sim_pytest", "--cai-sim", "test_many.py")
    done = world.python(*command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    if "No module named pytest" not in done.stderr:
        failures = done.stdout.partition("short test summary")[0]
        named = re.findall(r"^dead handle: event (e\d+)$", failures, re.M)
        check(len(named) == len(set(named)) == 100, f"pytest: {len(named)} of 100 tests failed: {done.stdout[-2000:]}{done.stderr}")
        check("cai_sim: 100 uses of what was destroyed" in done.stdout, f"pytest: {done.stdout[-2000:]}")
    program = PYTESTS_MANY.replace("import pytest\n", "").replace('@pytest.mark.parametrize("number", range(100))\n', "")
    done = world.run(program + "for number in range(100): test_one(number)\n")
    expect(done, 5, r"cai_sim: 100 uses of what was destroyed\n", r"\n75 more uses of what was destroyed or is out of reach, not shown\n")
    check(done.stderr.count("dead handle: event") == 25, f"a report of {done.stderr.count('dead handle')} uses: {done.stderr[:2000]}")


def on_driver(world: World, folder: pathlib.Path) -> None:
    """Programs on the simulated driver itself."""
    (world.libraries / "libcuda.so.1").unlink()
    (world.libraries / "libcudart.so.13").unlink()
    for file in sorted(folder.glob("libcuda*.so.*")):
        shutil.copy(file, world.libraries)
    expect(world.run(DRIVER.format(order="")), 4, r"cai_sim: 1 race\n", r"race 1 on m1\[0, 512\)", r"from program\d+.py:18, in <module>",
           "cuMemsetD8Async of ctypes", r"from program\d+.py:20, in <module>", "cuMemcpyDtoDAsync_v2 of ctypes", "nothing makes s2 wait for s1")  # fmt: skip
    expect(world.run(DRIVER.format(order=WAIT)), 0, r"cai_sim: no race\n")
    expect(world.run(DRIVER.format(order=WAIT), "--adversarial", "--devices=2", "--memory=1G"), 0, r"cai_sim: no race\n")
    many_findings(world)
    done = world.python("-c", "import numba.cuda, cuda.core, numpy")
    if done.returncode:
        print(f"numba-cuda and cuda.core: skipped, {done.stderr.strip().splitlines()[-1]}")
        return
    expect(world.run(TWO_LIBRARIES.format(stream="-1")), 4, r"cai_sim: 1 race\n", r'race 1 on m\d+\[0, 4096\) \("x"\)',
           r"program\d+.py:12, in <module>:  x.copy_to_device\(host, stream=mine\)", r"of numba-cuda \S+, by cuda-bindings",
           r"program\d+.py:15, in <module>:  Buffer.from_handle", r"between the two: theirs\.wait\(mine\)\n",
           r'  s1 \("mine"\), made at program\d+.py:9, in <module>:  mine, theirs =.*\n  s2 \("theirs"\), made at')  # fmt: skip
    mended = TWO_LIBRARIES.format(stream="-1").replace("\nview =", "\ntheirs.wait(mine)\nview =")
    expect(world.run(mended), 0, r"cai_sim: no race\n")
    expect(world.run(TWO_LIBRARIES.format(stream="int(theirs.handle)")), 0, r"cai_sim: no race\n")


CUPY = """
import os, pathlib, sys
from cai_sim import cupy
folder, *arguments = sys.argv[1:]
sys.stdout = sys.stderr
sys.path.insert(0, folder)
sys.prefix = os.environ.get("PREFIX", folder)
made = pathlib.Path(folder, "made.so")
made.write_text("anew")
cupy.build = lambda *given: print("a build") or made
sys.argv[1:] = arguments
sys.exit(cupy.main())
"""


def check_cupy(world: World) -> None:
    """python -m cai_sim.cupy changes a module of this environment only, and once."""
    site = world.folder / "site"
    module = site / "cupy_backends" / "cuda" / "api" / f"runtime{sysconfig.get_config_var('EXT_SUFFIX')}"
    module.parent.mkdir(parents=True)
    (site / "cupy_backends" / "__init__.py").touch()
    module.write_text("shipped")
    (site / "cupy_cuda13x-99.0.dist-info").mkdir()
    (site / "cupy_cuda13x-99.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: cupy-cuda13x\nVersion: 99.0\n")
    (world.folder / "tool.py").write_text(CUPY)
    tool, path = ("tool.py", str(site)), re.escape(str(module))
    expect(world.python(*tool, PREFIX="/nowhere"), 1, f"cai_sim.cupy: {path} is outside of this environment \\(/nowhere\\)", without=("a build",))
    check(module.read_text() == "shipped", "cupy: a module outside of the environment was changed")
    with module.open() as held:
        expect(world.python(*tool), 0, f"builds {path} anew\n", "a build\n", f"{path} is built, for")
        check((held.read(), module.read_text()) == ("shipped", "anew"), "cupy: the file was overwritten in place")
    expect(world.python(*tool), 0, f"{path} is built already\n", without=("a build",))
    expect(world.python(*tool, "--back"), 0, f"{path} is as in the wheel\n")
    check(module.read_text() == "shipped", "cupy: the module of the wheel did not come back")
    expect(world.python(*tool), 0, "a build\n")
    module.write_text("upgraded")  # as pip does
    expect(world.python(*tool, "--back"), 1, f"cai_sim.cupy: {path} is not what was built here: CuPy was installed anew, so there is nothing to put back\n")
    check(module.read_text() == "upgraded", "cupy: an older module came back")
    expect(world.python(*tool), 0, "a build\n")
    expect(world.python(*tool, "--back"), 0, f"{path} is as in the wheel\n")
    check(module.read_text() == "upgraded", "cupy: the module of the upgrade did not come back")


CHECKS = {name[6:]: call for name, call in list(globals().items()) if name.startswith("check_")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="where the headers and the simulation are")
    parser.add_argument("--only", default=",".join(CHECKS))
    parser.add_argument("--driver", type=pathlib.Path, help="where the simulated libcuda.so.1 is")
    options = parser.parse_args()
    if not sys.platform.startswith("linux") or not shutil.which(options.cc) or sys.version_info < (3, 10):
        print("check_python_sim.py: skipped, it needs Linux, a compiler, and Python 3.10")
        return 77
    with tempfile.TemporaryDirectory() as name:
        world = World(options.cc, options.root, pathlib.Path(name).resolve() / "world")
        for only in options.only.split(","):
            before = len(failures)
            CHECKS[only](world)
            print(f"{only}: {'right' if len(failures) == before else 'wrong'}")
        if options.driver:
            before = len(failures)
            on_driver(world, options.driver)
            print(f"driver: {'right' if len(failures) == before else 'wrong'}")
    for failure in failures:
        print(f"wrong: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
