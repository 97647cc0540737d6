#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/cai_conform.py: types that break one rule each (conform_broken.py), and real libraries.

    check_conform.py --broken | --planted [--jobs N]
    check_conform.py [--cc cc] [--dlpack FOLDER] [--python PYTHON]... [--only NAME] [--least N] [--write]

--broken: each of these types is found by its rule, and by no other. --planted: each check of the tool is left out in
turn, and one of these types must show it. Without both: each library runs in a process of its own, on the simulated
driver if it has arrays on a device. EXPECTED and docs/results/conform.md say what is found, in later versions, too.
--python: another Python, which is asked for a library that this one lacks. --only: one library. --least: how many
must be here. --write renews the page.
Exit status 0: all is so; 1: not; 77: too few libraries are here.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import ctypes
import gc
import importlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import types
from typing import Any, Callable, Iterator

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = ROOT / "tools" / "cai_conform.py"
PAGE = ROOT / "docs" / "results" / "conform.md"
MANUAL = ROOT / "docs" / "conform.md"
BEGIN, END = "<!-- tests/python/check_conform.py --write -->\n", "<!-- end -->\n"
sys.path[:0] = [str(HERE), str(TOOL.parent)]

import library_support as support  # noqa: E402

Arrays = Iterator[tuple[str, Any]]  # what it is, and the object; the object stays until the next one is asked for

# ------------------------------------------------------------------------------------- types that break one rule


def check_broken() -> int:
    import conform_broken as broken

    bad = 0
    for what, obj in broken.RIGHT:
        found = broken.tool.check(obj)
        bad += bool(found)
        print("".join(f"right, {what}: {finding}: WRONG\n" for finding in found), end="")
    for rule, what, obj in broken.CASES:
        rules = sorted({finding.rule for finding in broken.tool.check(obj)})
        bad += rules != [rule]
        print("" if rules == [rule] else f"{rule}, {what}: found is {' '.join(rules) or 'nothing'}: WRONG\n", end="")
    untested = broken.tool.RULES.keys() - {rule for rule, _, _ in broken.CASES} - {"R7"}  # R7 needs a driver
    counts = len(broken.RIGHT), len(broken.CASES), len(broken.tool.RULES)
    print("{} right types, {} that break one of {} rules: {} wrong".format(*counts, bad))
    if untested:
        print(f"rules without a type that breaks them: {' '.join(sorted(untested))}: WRONG")
    return bad + len(untested)


def check_main() -> int:
    """The command line, by its output and exit status."""
    right, broken, nothing = "conform_broken:RIGHT[0][1]", "conform_broken:dictionary(stream=0)", "math:pi"
    cases = [
        ([right], 0, r": \d+ rules checked, 0 broken, \d+ not checkable \(.*all D: it has no __dlpack__;"),
        ([right, broken], 1, r"dictionary\(stream=0\): R71: stream is 0; .* \[CUDA Array Interface 3\]\n"),
        ([nothing], 2, r"math:pi: 0 rules checked"),
        (["math:no"], 2, r"cannot be made: NameError"),
        (["math"], 2, r"^math: MODULE:EXPRESSION is wanted\n$"),
        ([":pi"], 2, r"^:pi: MODULE:EXPRESSION is wanted\n$"),
        ([], 2, r"MODULE:EXPRESSION"),
        (["--rules"], 0, r"\| R1 \| .*\n(.*\n)*\| X9 \|"),
    ]
    bad = 0
    for arguments, status, pattern in cases:
        done = subprocess.run([sys.executable, "-B", TOOL, *arguments], capture_output=True, text=True, cwd=HERE)
        right_so = done.returncode == status and re.search(pattern, done.stdout)
        bad += not right_so
        print("" if right_so else f"{arguments}: status {done.returncode}, {done.stdout}{done.stderr}: WRONG\n", end="")
    return bad


def manual_rules() -> str:
    """The generated part of docs/conform.md: no sources, the rules of docs/rules.md by their numbers, no tables in C."""
    rules = subprocess.run([sys.executable, "-B", TOOL, "--rules"], capture_output=True, text=True).stdout
    rows = re.findall(r"^\| (\w\d+) \| (.*) \| .*$", rules, re.M)
    numbers = [rule for rule, _ in rows if rule[0] == "R"]
    lines = [f"| {rule} | {says} |" for rule, says in rows if rule[0] not in "RTX"]
    line = f"Of [rules.md](rules.md): {', '.join(numbers)}."
    return textwrap.fill(line, 118) + "\n\n| rule | it says |\n|---|---|\n" + "\n".join(lines) + "\n"


def check_manual(write: bool) -> int:
    """docs/conform.md: its table of rules, and what its files and its first command do."""
    rules = manual_rules()
    text = MANUAL.read_text(encoding="utf-8")
    head, old, tail = between(text)
    if write:
        MANUAL.write_text(head + BEGIN + rules + END + tail, encoding="utf-8")
    bad = int(old != rules and not write)
    print("docs/conform.md: the rules are others: WRONG (--write renews them)\n" * bad, end="")
    with tempfile.TemporaryDirectory() as folder:
        for name, block in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", text, re.M | re.S):
            pathlib.Path(folder, name).write_text(block, encoding="utf-8")
        shown = re.search(r"^\$ python tools/cai_conform\.py \"(mine:.*?)\"\n(.*?)^```$", text, re.M | re.S)
        command = [sys.executable, "-B", TOOL, shown[1] if shown else ""]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if not shown or done.stdout != shown[2]:
            print(f"docs/conform.md shows another output than {done.stdout}{done.stderr}: WRONG")
            bad += 1
        sys.path.insert(0, folder)
        try:
            importlib.import_module("test_mine").test_rules()
            print("docs/conform.md: the test of mine.py finds nothing: WRONG")
            bad += 1
        except AssertionError as error:
            bad += not str(error).startswith("R71: stream is 0;")
    return bad


# ------------------------------------------------------------------------------------ each check left out in turn


def places(tree: ast.AST) -> list[tuple[str, Any, int]]:
    """(rule, node, index) of each condition: expect(RULE, CONDITION, ...), and yield RULE, CONDITION, ..."""
    found: list[tuple[str, Any, int]] = []
    for node in ast.walk(tree):
        items: Any = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "expect":
            items = node.args
        elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
            items = node.value.elts
        if len(items) == 3 and isinstance(items[0], ast.Constant) and not (
            isinstance(items[1], ast.Constant) and items[1].value is True
        ):
            found.append((items[0].value, items, 1))
    return found


def run_without(number: int) -> int:
    """The cases of a rule, by the tool with a condition of it left out; 1: a case shows it."""
    tree = ast.parse(TOOL.read_text(encoding="utf-8"))
    rule, items, index = places(tree)[number]
    print(f"line {items[index].lineno}, {rule}: {ast.unparse(items[index])}")
    items[index] = ast.copy_location(ast.Constant(True), items[index])
    module = types.ModuleType("cai_conform")
    module.__file__ = str(TOOL)
    sys.modules["cai_conform"] = module
    exec(compile(ast.fix_missing_locations(tree), str(TOOL), "exec"), vars(module))  # noqa: S102
    import conform_broken as broken

    cases = [obj for of, _, obj in broken.CASES if of == rule]
    return int(any({finding.rule for finding in module.check(obj)} != {rule} for obj in cases))


def check_planted(jobs: int) -> int:
    count = len(places(ast.parse(TOOL.read_text(encoding="utf-8"))))

    def one(number: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", __file__, "--without", str(number)]
        return subprocess.run(command, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(one, range(count)))
    missed = [run.stdout.strip() for run in done if run.returncode == 0 and ", R7:" not in run.stdout]
    print("\n".join(f"{line}: NOT FOUND" for line in missed))
    print(f"{count - len(missed)} of {count} conditions that were left out are found")
    return len(missed)


# ------------------------------------------------------------------------------------------------- the libraries


def simulated() -> Any:
    """The simulated driver in this process."""
    cai_sim = support.need("cai_sim")
    if not cai_sim.started():
        cai_sim.start()
    return cai_sim


class Wraps:
    """Somebody's dictionary, changed."""

    def __init__(self, of: Any, **changes: Any) -> None:
        self.of, self.__cuda_array_interface__ = of, {**of.__cuda_array_interface__, **changes}


def wrong_address(_: Any) -> Arrays:
    simulated()
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or driver.cuCtxSetCurrent(context):
        raise support.Missing("the driver does not start")
    import conform_broken as broken

    yield "host memory", broken.dictionary()
    address = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(24)) == 0
    yield "device memory", broken.dictionary(data=(address.value, False))
    yield "more bytes than there are", broken.dictionary(data=(address.value, False), shape=(1 << 20,))
    on_device = {"entries": {**broken.ENTRIES, "data": (address.value, False)}}
    yield "DLPack of its device", broken.dlpack(**on_device)
    elsewhere = broken.dlpack(tensor={"device_id": 1}, **broken.of_device(2, 1), **on_device)
    yield "DLPack of another device", elsewhere


def numpy_arrays(_: Any) -> Arrays:
    numpy = support.need("numpy")
    yield "2-D", numpy.zeros((2, 3), "f4")
    yield "transposed", numpy.zeros((2, 3), "f8").T
    yield "reversed", numpy.arange(6)[::-1]
    yield "scalar", numpy.array(1.5)
    yield "empty", numpy.zeros((0, 3), "f4")
    yield "bool", numpy.zeros(3, "?")
    yield "complex", numpy.zeros(3, "c16")
    read_only = numpy.zeros(3)
    read_only.flags.writeable = False
    yield "read-only", read_only
    yield "swapped", numpy.zeros(3, ">f4" if sys.byteorder == "little" else "<f4")
    yield "records", numpy.zeros(3, "i4,f8")
    yield "times", numpy.zeros(3, "M8[s]")
    yield "bfloat16 of ml_dtypes", numpy.zeros(3, support.need("ml_dtypes").bfloat16)


def jax_arrays(_: Any) -> Arrays:
    support.os.environ["JAX_PLATFORMS"] = "cpu"
    numpy = support.need("jax").numpy
    yield "2-D, on the host", numpy.zeros((2, 3), "f4")
    yield "scalar, on the host", numpy.array(1.5)
    yield "empty, on the host", numpy.zeros((0, 3), "f4")
    yield "bfloat16, on the host", numpy.zeros(3, "bfloat16")
    yield "bool, on the host", numpy.zeros(3, "bool")


def tvm_arrays(_: Any) -> Arrays:
    tvm, numpy = support.need("tvm_ffi"), support.need("numpy")
    two = tvm.from_dlpack(numpy.zeros((2, 3), "f4"))
    yield "2-D, on the host", two
    yield "empty, on the host", tvm.from_dlpack(numpy.zeros((0, 3), "f4"))
    if hasattr(tvm.core, "DLTensorTestWrapper"):
        yield "its type for tests of the table", tvm.core.DLTensorTestWrapper(two)


def warp_arrays(_: Any) -> Arrays:
    warp = support.need("warp")
    warp.config.quiet = True
    warp.init()
    yield "2-D, on the host", warp.zeros((2, 3), dtype=warp.float32, device="cpu")
    yield "empty, on the host", warp.zeros((0, 3), dtype=warp.float32, device="cpu")
    yield "vectors, on the host", warp.zeros(4, dtype=warp.vec3, device="cpu")


def numba_arrays(_: Any) -> Arrays:
    simulated()
    numpy, cuda = support.need("numpy"), support.need("numba.cuda")
    stream = cuda.stream()
    two = cuda.device_array((2, 3), numpy.float32)
    yield "2-D", two
    yield "of a stream", cuda.device_array(3, numpy.float32, stream=stream)
    for name in ("default_stream", "legacy_default_stream", "per_thread_default_stream"):
        yield f"of cuda.{name}()", cuda.device_array(3, numpy.float32, stream=getattr(cuda, name)())
    yield "a column", two[:, 1]
    yield "every other element", cuda.device_array(6, numpy.float32)[::2]
    yield "scalar", cuda.device_array((), numpy.float32)
    yield "empty", cuda.device_array((0, 3), numpy.float32)
    yield "records", cuda.device_array(4, numpy.dtype([("a", "i4"), ("b", "f8")]))
    yield "mapped", cuda.mapped_array(3, numpy.float32)
    yield "managed", cuda.managed_array(3, numpy.float32)
    yield "as_cuda_array of a broadcast one", cuda.as_cuda_array(Wraps(two, shape=(4, 3), strides=(0, 4)))
    yield "as_cuda_array of one with version 2", cuda.as_cuda_array(Wraps(two, version=2))


def cuda_core_arrays(_: Any) -> Arrays:
    simulated()
    numpy, core = support.need("numpy"), support.need("cuda.core")
    view = support.need("cuda.core.utils").StridedMemoryView
    device = core.Device(0)
    device.set_current()
    buffer = device.allocate(24, stream=device.create_stream())
    yield "Buffer", buffer
    yield "StridedMemoryView of it", view.from_buffer(buffer, (2, 3), dtype=numpy.dtype("f4"))
    yield "StridedMemoryView of records", view.from_buffer(buffer, (3,), dtype=numpy.dtype("i4,i4"))
    read_only = numpy.zeros(3)
    read_only.flags.writeable = False
    yield "StridedMemoryView of NumPy's", view.from_dlpack(numpy.zeros((2, 3), "f4"), stream_ptr=-1)
    yield "StridedMemoryView of NumPy's, read-only", view.from_dlpack(read_only, stream_ptr=-1)
    yield "StridedMemoryView of NumPy's, empty", view.from_dlpack(numpy.zeros((0, 3), "f4"), stream_ptr=-1)


def pycuda_arrays(_: Any) -> Arrays:
    simulated()
    numpy = support.need("numpy")
    support.need("pycuda.autoprimaryctx")
    arrays = support.need("pycuda.gpuarray")
    two = arrays.zeros((2, 3), numpy.float32)
    yield "2-D", two
    yield "a column", two[:, 1]
    yield "scalar", arrays.empty((), numpy.float32)
    yield "empty", arrays.empty((0, 3), numpy.float32)
    yield "records", arrays.empty(3, numpy.dtype([("a", "i4"), ("b", "f8")]))


def cupy_arrays(_: Any) -> Arrays:
    simulated()
    cupy = support.need("cupy")
    if not cupy.is_available():
        raise support.Missing("CuPy does not run on the simulated driver (python -m cai_sim.cupy)")
    two = cupy.empty((2, 3), "f4")
    yield "2-D", two
    with cupy.cuda.Stream(non_blocking=True):
        yield "of a stream", two
    with cupy.cuda.Stream(ptds=True):
        yield "of the per-thread stream", two
    yield "transposed", two.T
    yield "reversed", two[::-1]
    yield "broadcast", cupy.broadcast_to(two[0], (2, 3))
    yield "scalar", cupy.empty((), "f4")
    yield "empty", cupy.empty((0, 3), "f4")
    yield "bool", cupy.empty(3, "?")
    yield "complex", cupy.empty(3, "c16")
    yield "of a read-only one", cupy.asarray(Wraps(two, data=(two.data.ptr, True), stream=None))
    records = {"shape": (3,), "typestr": "|V8", "descr": [("a", "<i4"), ("b", "<i4")], "strides": None}
    yield "of records", cupy.asarray(Wraps(two, **records))


def torch_arrays(_: Any) -> Arrays:
    simulated()
    torch = support.need("torch")
    yield "2-D, on the host", torch.zeros((2, 3))
    yield "empty, on the host", torch.zeros((0, 3))
    yield "bfloat16, on the host", torch.zeros(3, dtype=torch.bfloat16)
    yield "conjugated, on the host", torch.zeros(3, dtype=torch.complex64).conj()
    yield "with a gradient, on the host", torch.zeros(3, requires_grad=True)
    if not torch.cuda.is_available():
        return
    two = torch.empty((2, 3), device="cuda")
    yield "2-D", two
    with torch.cuda.stream(torch.cuda.Stream()):
        yield "of a stream", two
    yield "transposed", two.T
    yield "broadcast", two[:1].expand(2, 3)
    yield "scalar", torch.empty((), device="cuda")
    yield "empty", torch.empty((0, 3), device="cuda")
    yield "bool", torch.empty(3, dtype=torch.bool, device="cuda")
    yield "bfloat16", torch.empty(3, dtype=torch.bfloat16, device="cuda")
    yield "float8", torch.empty(3, dtype=torch.float8_e4m3fn, device="cuda")
    lazy = torch.empty(3, dtype=torch.complex64, device="cuda").conj()
    yield "conjugated", lazy
    yield "negated", lazy.imag


def our_arrays(options: argparse.Namespace) -> Arrays:
    simulated()
    numpy = support.need("numpy")
    with tempfile.TemporaryDirectory() as folder:
        module = support.build(folder)
        stream = module.stream()
        gc.callbacks.append(lambda phase, info: module.pass_time())  # what deleters have parked goes by a drain
        yield "libraries.c, 2-D on a stream", module.upload(numpy.zeros((2, 3), "f4"), stream)
        yield "libraries.c, on no stream", module.adopted(module.upload(numpy.zeros((2, 3), "f4"), stream))
        yield "libraries.c, empty", module.upload(numpy.zeros((0, 3), "f4"), stream)
        yield "libraries.c, on the host", module.saxpy(1, numpy.zeros(3, "f4"), numpy.zeros(3, "f4"))


class Stream:
    """A stream of the driver, with a context."""

    def __init__(self) -> None:
        driver, self.context, self.handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
        steps = (("cuInit", 0), ("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0),
                 ("cuCtxSetCurrent", self.context), ("cuStreamCreate", ctypes.byref(self.handle), 1))  # fmt: skip
        for name, *arguments in steps:
            if getattr(driver, name)(*arguments):
                raise support.Missing(f"{name} fails")

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle.value or 0


def caster_arrays(_: Any) -> Arrays:
    simulated()
    with tempfile.TemporaryDirectory() as folder:
        stream, module = Stream(), support.build_caster(folder)
        yield "2-D", module.array((2, 3), stream)
        yield "scalar", module.array((), stream)
        yield "on the legacy default stream", module.array((2, 3), 1)
        yield "taken, and returned", module.echo(module.array((2, 3), stream))


def table_arrays(options: argparse.Namespace) -> Arrays:
    import check_dlpack_table as table

    header = support.dlpack_header()
    options.dlpack = options.dlpack or (header.parents[1] if header else None)
    options.root = ROOT
    why = table.why_skipped(options)
    if why:
        raise support.Missing(why)
    with tempfile.TemporaryDirectory() as folder:
        error = table.build(options, pathlib.Path(folder))
        if error:
            raise RuntimeError(error)
        module = table.load(pathlib.Path(folder))
        here, elsewhere = module.streams(2)
        module.set(here)
        kinds = {"in order at both ends": module.Array, "in the current stream alone": module.Plain}
        for name, kind in kinds.items():
            yield f"{name}, pending there", kind(here)
            yield f"{name}, pending elsewhere", kind(elsewhere)
            for what, how in (("read-only", 1), ("owned", 2), ("an event", 4), ("swapped", 16), ("refused", 32)):
                yield f"{name}, {what}", kind(here, how)


def example_arrays(options: argparse.Namespace) -> Arrays:
    numpy = support.need("numpy")
    sys.path.insert(0, str(ROOT / "tests" / "examples" / "python"))
    import build_module

    with tempfile.TemporaryDirectory() as folder:
        module = build_module.load(build_module.build_example(options.cc, folder), "cai_saxpy")
        stream = module.stream()
        yield "2-D", module.array(numpy.ones((2, 3), "f4"), stream)
        yield "1-D", module.array(numpy.ones(3, "f4"), stream)


class Library:
    """arrays: gives them one after the other. packages: where its version stands; none: it is ours."""

    def __init__(self, arrays: Callable[[argparse.Namespace], Arrays], *packages: str) -> None:
        self.arrays, self.packages = arrays, packages


LIBRARIES = {  # by hand where it says so: CI does not have them
    "NumPy": Library(numpy_arrays, "numpy"),
    "JAX": Library(jax_arrays, "jax"),
    "tvm_ffi": Library(tvm_arrays, "apache-tvm-ffi"),
    "numba-cuda": Library(numba_arrays, "numba-cuda"),
    "cuda.core": Library(cuda_core_arrays, "cuda-core"),
    "PyCUDA": Library(pycuda_arrays, "pycuda"),
    "CuPy": Library(cupy_arrays, "cupy-cuda13x"),  # by hand
    "Warp": Library(warp_arrays, "warp-lang"),  # by hand
    "PyTorch": Library(torch_arrays, "torch"),  # by hand
    "cai, tests/python/libraries.c": Library(our_arrays),
    "cai, ext/cai_caster.h": Library(caster_arrays),
    "cai, tests/python/dlpack_table.c": Library(table_arrays),
    "cai, examples/bindings/python": Library(example_arrays),
}
NO_LIBRARY = "wrong addresses"

# The rules that are broken, by library and array. A difference in a later version is a failure that names it.
EXPECTED: dict[tuple[str, str], str] = {
    ("NumPy", "empty"): "D11",
    **{("JAX", f"{what}, on the host"): "D14" for what in ("2-D", "scalar", "bool")},
    ("JAX", "empty, on the host"): "D11 D14",
    ("tvm_ffi", "2-D, on the host"): "D18",
    ("tvm_ffi", "empty, on the host"): "D11 D18",
    ("tvm_ffi", "its type for tests of the table"): "D18 T3",
    ("numba-cuda", "of cuda.default_stream()"): "R71",
    ("numba-cuda", "as_cuda_array of a broadcast one"): "R20 R7",
    ("cuda.core", "Buffer"): "D18 D20",
    ("cuda.core", "StridedMemoryView of it"): "D18 D20",
    ("cuda.core", "StridedMemoryView of records"): "T4",
    **{("cuda.core", f"StridedMemoryView of NumPy's{what}"): "D18 D20" for what in ("", ", read-only", ", empty")},
    **{("CuPy", what): "D18" for what in ("2-D", "of a stream", "of the per-thread stream", "transposed", "broadcast",
                                         "scalar", "empty", "bool", "complex", "of a read-only one")},
    ("CuPy", "reversed"): "D13 D18",
    **{("Warp", f"{what}, on the host"): "D3 D4" for what in ("2-D", "empty", "vectors")},
    **{("PyTorch", what): "D17 D20" for what in ("2-D, on the host", "bfloat16, on the host", "2-D", "of a stream",
                                                "transposed", "broadcast", "scalar", "bool", "bfloat16")},
    ("PyTorch", "empty, on the host"): "D20",
    ("PyTorch", "empty"): "D20",
    ("PyTorch", "float8"): "D17 D20 S3",
    ("PyTorch", "conjugated, on the host"): "S5",
    ("PyTorch", "conjugated"): "S5",
    ("PyTorch", "negated"): "D17 D20 S5",
}  # fmt: skip


def look_at(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What is found of a library, in this process."""
    import cai_conform

    library = Library(wrong_address) if name == NO_LIBRARY else LIBRARIES[name]
    seen: list[Any] = []
    checked: set[str] = set()
    try:
        for what, obj in library.arrays(options):
            report = cai_conform.examine(obj)
            checked |= report.checked
            seen.append((what, [(finding.rule, finding.found) for finding in report.findings]))
    except support.Missing as missing:
        return {"missing": str(missing)}
    version = support.version(*library.packages) if library.packages else "of this tree"
    return {"version": version, "arrays": seen, "checked": len(checked)}


def answer(command: list[str]) -> dict[str, Any]:
    """What a process of its own prints as JSON, or how it failed."""
    done = subprocess.run(command, capture_output=True, text=True)
    last = [line for line in done.stdout.splitlines() if line.startswith('{"')]
    return json.loads(last[-1]) if last else {"failed": f"status {done.returncode}: {done.stderr[-1500:]}"}


def look_apart(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The same, in a process of its own, by the first Python that has the library."""
    seen: dict[str, Any] = {}
    for python in [sys.executable, *options.python]:
        command = [python, "-B", __file__, "--library", name, "--cc", options.cc]
        command += ["--dlpack", str(options.dlpack)] if options.dlpack else []
        seen = answer(command)
        if "missing" not in seen:
            break
    return seen


def judge(name: str, seen: dict[str, Any]) -> int:
    """Compares with what is expected; prints the differences."""
    if "failed" in seen:
        print(f"{name}: {seen['failed']}: WRONG")
        return 1
    if "missing" in seen:
        print(f"{name}: skipped, {seen['missing']}")
        return 0
    bad = 0
    for what, findings in seen["arrays"]:
        found = " ".join(sorted({rule for rule, _ in findings}))
        expected = EXPECTED.get((name, what), "")
        if found != expected:
            bad += 1
            who = f"{name} {seen['version']}, {what}"
            print(f"{who}: found is {found or 'nothing'}, not {expected or 'nothing'}: WRONG")
            print("".join(f"    {rule}: {text}\n" for rule, text in findings), end="")
    gone = {what for of, what in EXPECTED if of == name} - {what for what, _ in seen["arrays"]}
    print("".join(f"{name}: no array {what!r}: WRONG\n" for what in gone), end="")
    print(f"{name} {seen['version']}: {len(seen['arrays'])} arrays, {seen['checked']} rules")
    return bad + len(gone)


def check_wrong_address(options: argparse.Namespace) -> int:
    """R7, which needs a driver."""
    seen = look_apart(NO_LIBRARY, options)
    if "missing" in seen:
        print(f"R7: skipped, {seen['missing']}")
        return 0
    found = [[what, sorted({rule for rule, _ in findings})] for what, findings in seen.get("arrays", [])]
    right = found == [["host memory", ["R7"]], ["device memory", []], ["more bytes than there are", ["R7"]],
                      ["DLPack of its device", []], ["DLPack of another device", ["D23"]]]
    print("" if right else f"R7: {seen}: WRONG\n", end="")
    return int(not right)


def check_shown() -> int:
    """The command of docs/conform.md that runs on the simulated driver."""
    try:
        support.need("cai_sim"), support.need("numba_cuda")
    except support.Missing as missing:
        print(f"docs/conform.md, the simulated driver: skipped, {missing}")
        return 0
    pattern = r"^\$ python -m cai_sim (\S+) \"(.*)\" \| head -1\n(.*\n)"
    shown = re.search(pattern, MANUAL.read_text(encoding="utf-8"), re.M)
    command = [sys.executable, "-B", "-m", "cai_sim", *(shown.groups()[:2] if shown else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    right = shown and done.stdout.startswith(shown[3])
    print("" if right else f"docs/conform.md shows another output than {done.stdout}{done.stderr}: WRONG\n", end="")
    return int(not right)


# ------------------------------------------------------------------------------------------------------ the page


def grouped(name: str, seen: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(library, arrays, rule, found): the arrays of which the same is found in one row."""
    arrays: dict[tuple[str, str], list[str]] = {}
    for what, findings in seen["arrays"]:
        for rule, text in findings:
            arrays.setdefault((rule, re.sub(r"0x[0-9a-f]+", "an address", text)), []).append(what)
    return [(name, "; ".join(whats), rule, text) for (rule, text), whats in arrays.items()]


def tables(all_seen: dict[str, Any]) -> str:
    """The generated part of the page."""
    lines = ["| library | version | arrays | rules checked | rules broken |", "|---|---|---|---|---|"]
    rows = []
    for name, seen in all_seen.items():
        broken = {rule for _, findings in seen["arrays"] for rule, _ in findings}
        lines.append(f"| {name} | {seen['version']} | {len(seen['arrays'])} | {seen['checked']} | {len(broken)} |")
        rows += grouped(name, seen)
    lines += ["", "| library | arrays | rule | found |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def between(text: str, begin: str = BEGIN, end: str = END) -> tuple[str, str, str]:
    """What stands before, in and after the generated part of a page."""
    head, _, rest = text.partition(begin)
    inside, _, tail = rest.partition(end)
    return head, inside, tail


def without_versions(text: str, counts: int) -> list[str]:
    """The rows, without the second cell of those of libraries, which end in so many counts."""
    row = re.compile(rf"^(\| [^|]+ \|)[^|]+((?:\| \d+ ){{{counts}}}\|)$")
    return [row.sub(r"\1\2", line) for line in text.splitlines() if line]


def compare_page(begin: str, end: str, new: str, counts: int, write: bool) -> int:
    """The page has the rows of `new` between two marks. What it says of a library that is not here stays."""
    head, old, tail = between(PAGE.read_text(encoding="utf-8"), begin, end)
    if write:
        PAGE.write_text(head + begin + new + end + tail, encoding="utf-8")
        return 0
    wrong = [line for line in without_versions(new, counts) if line not in without_versions(old, counts)]
    print("".join(f"docs/results/conform.md lacks {line}: WRONG (--write renews it)\n" for line in wrong), end="")
    return len(wrong)


def check_page(all_seen: dict[str, Any], write: bool) -> int:
    return compare_page(BEGIN, END, tables({name: seen for name, seen in all_seen.items() if "arrays" in seen}), 3, write)


def check_libraries(options: argparse.Namespace) -> int:
    """The exit status."""
    names = [options.only] if options.only else list(LIBRARIES)
    all_seen = {name: look_apart(name, options) for name in names}
    bad = sum(judge(name, seen) for name, seen in all_seen.items()) + check_wrong_address(options)
    bad += 0 if options.only else check_page(all_seen, options.write) + check_shown()
    here = sum("arrays" in seen for seen in all_seen.values())
    print(f"{here} libraries, {bad} wrong")
    if not bad and here < options.least:
        print(f"skipped: {options.least} libraries are wanted")
        return 77
    return int(bad > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--broken", action="store_true", help="the types that break one rule each")
    parser.add_argument("--planted", action="store_true", help="each check of the tool is left out in turn")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cc", default=support.os.environ.get("CC", "cc"))
    parser.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    parser.add_argument("--python", action="append", default=[], help="another one that has libraries; repeatable")
    parser.add_argument("--only", help="one library")
    parser.add_argument("--least", type=int, default=1, help="how many libraries must be here")
    parser.add_argument("--write", action="store_true", help="renews docs/results/conform.md, or docs/conform.md")
    parser.add_argument("--library", help=argparse.SUPPRESS)
    parser.add_argument("--without", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.library:
        print(json.dumps(look_at(options.library, options)), flush=True)
        return 0
    if options.without is not None:
        return run_without(options.without)
    if options.planted:
        return int(check_planted(options.jobs) > 0)
    if options.broken:
        return int(check_broken() + check_main() + check_manual(options.write) > 0)
    return check_libraries(options)


if __name__ == "__main__":
    sys.exit(main())
