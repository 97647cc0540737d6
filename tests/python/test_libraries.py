# SPDX-License-Identifier: MIT
"""Arrays of real libraries through cai_python.h and back: of one library into our extension (libraries.c), and what it
computes into the other, the numbers compared with NumPy's.

    python -m pytest -q tests/python/test_libraries.py [--sanitize]
    python tests/python/test_libraries.py              the same; exit status 77 where pytest or what it needs is missing

Without a GPU: arrays in host memory, of NumPy, ctypes, PyTorch, JAX and tvm_ffi. With one: CuPy, PyTorch, Numba, JAX,
cuda.core, Warp and RMM, each with each, on streams of their own and with work pending on them. What cannot be imported
is skipped, and everything of the device where there is none: each with its reason. tests/python/make-env makes an
environment with all of them.

On the simulated driver (sim/tests/driver/check_matrix.py) the pairs run, too. No kernel of a library computes there, so
the numbers are compared only where copies alone made them.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import pathlib
import subprocess
import sys
import time
import weakref
from typing import Any, Iterator

try:
    import pytest
except ImportError:
    print("skipped: no pytest")
    sys.exit(77)

# ----------------------------------------------------------------------------- as a program


class Tally:
    """Counts what ran."""

    def __init__(self) -> None:
        self.ran = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.ran += report.when == "call" and not report.skipped


def main() -> int:
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: no NumPy")
        return 77
    tally = Tally()
    status = pytest.main(["-q", "-rs", "-p", "no:cacheprovider", __file__, *sys.argv[1:]], plugins=[tally])
    return 77 if status in (0, 5) and not tally.ran else int(status)


if __name__ == "__main__":
    sys.exit(main())

sys.dont_write_bytecode = True
numpy = pytest.importorskip("numpy")

import library_support as support  # noqa: E402

HOST = {kind.name: kind for kind in support.HOST}
DEVICE = {kind.name: kind for kind in support.DEVICE}
LENGTH = 100_003  # floats of an array on the device; no multiple of a block
SPIN = 0.1  # seconds that pass on a stream before the last write, long against what is queued meanwhile

# --------------------------------------------------------------------------------- fixtures


def built(factory: pytest.TempPathFactory, request: pytest.FixtureRequest, simulated: bool) -> Any:
    flags = ("-fsanitize=undefined", "-fno-sanitize-recover=all") if request.config.getoption("--sanitize") else ()
    headers = request.config.getoption("--include")
    flags += (f"-I{headers}",) if headers else ()
    try:
        return support.build(factory.mktemp("libraries"), flags, simulated)
    except support.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    return built(tmp_path_factory, request, False)


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """No import and no memory of ours outlives a test that passed, whatever libraries held of it."""
    yield
    if "module" not in request.fixturenames or "gpu" in request.fixturenames:
        return
    settled(request.getfixturevalue("module"), (0, 0, 0))


def settled(module: Any, expected: tuple[int, int, int]) -> None:
    """(imported arrays, blocks of our memory, arrays that wait for a stream) are so many."""
    if module.counts() != expected:
        gc.collect()  # dear with these libraries, and mostly there is nothing to collect
    for _ in range(600):  # some let go on a thread of their own, soon after
        module.pass_time()
        if module.counts() == expected:
            return
        time.sleep(0.05)
    assert module.counts() == expected


_opened: dict[Any, Any] = {}


def opened(kind: Any, *arguments: Any) -> Any:
    """The library, once; or a skip with the reason, remembered, too."""
    if kind not in _opened:
        try:
            _opened[kind] = kind(*arguments)
        except support.Missing as missing:
            _opened[kind] = missing
    if isinstance(_opened[kind], support.Missing):
        pytest.skip(str(_opened[kind]))
    return _opened[kind]


def ways_of(kinds: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, way) for name, kind in kinds.items() for way in kind.ways]


HOST_WAYS = ways_of(HOST)


def needs_dlpack(module: Any, way: str, name: str) -> None:
    """Without DLPack's header only dictionaries and buffers are read."""
    if not module.HAS_DLPACK and (way == "__dlpack__" or way == "as is" and name in ("PyTorch", "JAX", "tvm_ffi", "cuda.core")):
        pytest.skip("no dlpack.h in an installed package")


# ----------------------------------------------------------------------------------- the host

VALUES = {
    "1-D": numpy.arange(100, dtype="f4"),
    "2-D": numpy.arange(12, dtype="f4").reshape(3, 4),
    "one": numpy.full((1, 1), 5, "f4"),
    "empty": numpy.zeros((0, 3), "f4"),
    "0-D": numpy.array(7, "f4"),
}


@pytest.mark.parametrize("shape", VALUES)
@pytest.mark.parametrize("name,way", HOST_WAYS)
def test_facts_on_host(module: Any, name: str, way: str, shape: str) -> None:
    """What an import says of an array, against what the library says of it."""
    library = opened(HOST[name])
    needs_dlpack(module, way, name)
    if name == "ctypes" and shape in ("0-D", "empty") or name == "Warp" and shape == "0-D":
        pytest.skip(f"{name} has no such array")
    values = VALUES[shape]
    array = library.make(values)
    facts = module.facts(library.ways[way](array))
    seen = library.numbers(array)
    assert facts["shape"] == values.shape
    assert facts["dtype"] == "float32" and facts["itemsize"] == 4 and not facts["swapped"]
    assert facts["size"] == values.size
    assert facts["memory"] == "host" and facts["sync"] == "none" and facts["stream"] == 0
    if values.size:
        assert facts["data"] == seen.__array_interface__["data"][0]
        strides = [(f, s) for f, s, extent in zip(facts["strides"], seen.strides, values.shape) if extent > 1]
        assert all(f == s for f, s in strides)
    else:
        assert facts["data"] == 0
    assert facts["read_only"] == (way in library.read_only)


@pytest.mark.parametrize("name,way", HOST_WAYS)
def test_host_memory_is_refused_unasked(module: Any, name: str, way: str) -> None:
    library = opened(HOST[name])
    needs_dlpack(module, way, name)
    array = library.make(VALUES["1-D"])
    with pytest.raises(TypeError):
        module.facts(library.ways[way](array), 0)


def takers(kinds: dict[str, Any]) -> list[str]:
    return [name for name, kind in kinds.items() if name != "ctypes"]


@pytest.mark.parametrize("consumer", takers(HOST))
@pytest.mark.parametrize("name,way", HOST_WAYS)
def test_pair_on_host(module: Any, name: str, way: str, consumer: str) -> None:
    """One library's arrays in, the other's out; what it came from goes before it is read."""
    producer, other = opened(HOST[name]), opened(HOST[consumer])
    needs_dlpack(module, way, name)
    for values in (VALUES["1-D"], VALUES["2-D"], VALUES["one"]):
        expected = 2 * values + (values + 1)
        for how, (take, shares) in other.take.items():
            if not module.HAS_DLPACK and (how == "from_dlpack" or consumer == "PyTorch"):
                continue  # PyTorch has no other way to objects on the host
            x, y = producer.make(values), producer.make(values + 1)
            ours = module.saxpy(2, producer.ways[way](x), producer.ways[way](y))
            where = module.facts(ours)["data"]
            theirs = take(ours)
            del ours, x, y
            seen = other.numbers(theirs)
            assert seen.shape == values.shape and seen.dtype == values.dtype
            assert (seen == expected).all(), how
            if shares:
                assert seen.__array_interface__["data"][0] == where, how
            del seen, theirs


@pytest.mark.parametrize("name,way", HOST_WAYS)
def test_in_place_on_host(module: Any, name: str, way: str) -> None:
    """y = a x + y in the library's own memory; not in that of an array that nobody may change."""
    library = opened(HOST[name])
    needs_dlpack(module, way, name)
    values = VALUES["2-D"]
    x, y = library.make(values), library.make(values + 1)
    if way in library.read_only:
        with pytest.raises(ValueError, match="y: .*read-only"):
            module.saxpy(2, library.ways[way](x), library.ways[way](y), into=True)
        assert (library.numbers(y) == values + 1).all()
    else:
        assert module.saxpy(2, library.ways[way](x), library.ways[way](y), into=True) is None
        assert (library.numbers(y) == 3 * values + 1).all()
    assert (library.numbers(x) == values).all()


@pytest.mark.parametrize("name,way", HOST_WAYS)
def test_adopted_array_keeps_its_owner(module: Any, name: str, way: str) -> None:
    """An array of ours around the import of another one, which goes meanwhile."""
    library = opened(HOST[name])
    needs_dlpack(module, way, name)
    values = VALUES["2-D"]
    array = library.make(values)
    kept = module.adopted(library.ways[way](array))
    del array
    again = [library.make(values - 100) for _ in range(4)]  # what would get its memory, if that was free
    assert (numpy.asarray(kept) == values).all()
    assert len(again) == 4 and module.counts()[0] == 1
    del kept


@pytest.mark.parametrize("name,way", HOST_WAYS)
def test_nothing_of_it_is_kept(module: Any, name: str, way: str) -> None:
    """Once an import is released the array goes with its last reference."""
    library = opened(HOST[name])
    needs_dlpack(module, way, name)
    array = library.make(VALUES["2-D"])
    try:
        alive = weakref.ref(array)
    except TypeError:
        pytest.skip(f"{name} has no weak references to its arrays")
    module.facts(library.ways[way](array))
    module.saxpy(1, library.ways[way](array), library.ways[way](array))
    del array
    if alive() is not None:
        gc.collect()
    assert alive() is None


def test_buffers_are_given_back(module: Any) -> None:
    """A bytearray cannot grow as long as somebody has its buffer."""
    data = bytearray(8)
    kept = module.adopted(data)
    with pytest.raises(BufferError):
        data.append(1)
    assert module.counts()[0] == 1
    del kept
    module.counts()
    data.append(1)
    assert len(data) == 9


OLDER_NUMPY = """
import importlib.util, sys
import numpy
spec = importlib.util.spec_from_file_location("libraries", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
class Dictionary:
    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__
for shape in ((0,), (0, 3), (3, 0, 2), (2, 3), ()):
    values = numpy.arange(numpy.prod(shape), dtype="f4").reshape(shape)
    for made in (module.saxpy(2, values, values), module.adopted(values), module.adopted(values[..., None][..., 0])):
        ways = [numpy.asarray, lambda made: numpy.asarray(Dictionary(made)), lambda made: numpy.array(made, copy=True)]
        for way in ways + [numpy.from_dlpack] * module.HAS_DLPACK:
            seen = way(made)
            assert seen.shape == shape and seen.dtype == values.dtype, (shape, seen)
            assert (seen == values).all() or (seen == 3 * values).all(), (shape, seen)
print(numpy.__version__)
"""


def test_older_numpy(module: Any) -> None:
    """NumPy up to 2.3 reads an empty array only if it has an address."""
    folder = pathlib.Path(os.environ.get("CAI_OLDER_NUMPY") or pathlib.Path(sys.prefix) / "older-numpy")
    if not (folder / "numpy").exists():
        pytest.skip("no older NumPy (tests/python/make-env installs one)")
    command = [sys.executable, "-B", "-c", OLDER_NUMPY, module.__file__]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder)})
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() != numpy.__version__, "it is no older one"


VIEWS = {
    "transposed": lambda a: a.T,
    "every other": lambda a: a[:, ::2],
    "a column": lambda a: a[:, 1],
    "an element": lambda a: a[1, 2, ...],
    "broadcast": lambda a: numpy.broadcast_to(a[0], a.shape),
    "reversed": lambda a: a[::-1, ::-1],
}


@pytest.mark.parametrize("way", support.NumPy.ways)
@pytest.mark.parametrize("view", VIEWS)
def test_views_of_numpy(module: Any, view: str, way: str) -> None:
    library = opened(HOST["NumPy"])
    needs_dlpack(module, way, "NumPy")
    array = VIEWS[view](VALUES["2-D"].copy())
    facts = module.facts(library.ways[way](array))
    assert facts["shape"] == array.shape and facts["strides"] == array.strides
    assert facts["data"] == array.__array_interface__["data"][0]
    assert facts["read_only"] == (not array.flags.writeable)


@pytest.mark.parametrize("way", support.TorchOnHost.ways)
@pytest.mark.parametrize("view", ["transposed", "every other", "a column", "an element"])
def test_views_of_torch(module: Any, view: str, way: str) -> None:
    library = opened(HOST["PyTorch"])
    needs_dlpack(module, way, "PyTorch")
    array = VIEWS[view](library.make(VALUES["2-D"]))
    facts = module.facts(library.ways[way](array))
    assert facts["shape"] == tuple(array.shape)
    assert facts["strides"] == tuple(4 * stride for stride in array.stride())
    assert facts["data"] == array.data_ptr()


# ------------------------------------------------------------------------------------- dtypes

NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
NARROW = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
    "float8_e8m0fnu": "float8_e8m0fnu",
    "float8_e3m4": "float8_e3m4",
    "float8_e4m3": "float8_e4m3",
    "float8_e4m3b11fnuz": "float8_e4m3b11fnuz",
}


@pytest.mark.parametrize("way", support.NumPy.ways)
@pytest.mark.parametrize("dtype", NAMES)
def test_dtypes_of_numpy(module: Any, dtype: str, way: str) -> None:
    needs_dlpack(module, way, "NumPy")
    array = numpy.zeros(3, dtype)
    facts = module.facts(support.NumPy.ways[way](array))
    assert (facts["dtype"], facts["itemsize"]) == (dtype, array.itemsize)


@pytest.mark.parametrize("way", ["as is", "__array_interface__", "buffer"])
@pytest.mark.parametrize("dtype", ["f4", "i8", "c16", "u2"])
def test_swapped_numpy(module: Any, dtype: str, way: str) -> None:
    array = numpy.zeros(3, numpy.dtype(dtype).newbyteorder())
    facts = module.facts(support.NumPy.ways[way](array))
    assert facts["swapped"] and facts["itemsize"] == array.itemsize
    with pytest.raises(ValueError, match="float32"):
        module.saxpy(2, array, array)


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_dtypes_of_numpy(module: Any, dtype: str) -> None:
    """With CAI_PYTHON_NARROW the dtype of the array counts; without, what the typestr says."""
    narrow = pytest.importorskip("ml_dtypes")
    if not hasattr(narrow, dtype):
        pytest.skip(f"ml_dtypes {narrow.__version__} has no {dtype}")
    array = numpy.zeros(3, getattr(narrow, dtype))
    if array.__array_interface__["typestr"][1] != "V":
        pytest.skip(f"ml_dtypes {narrow.__version__} has a typestr of its own: {array.__array_interface__['typestr']}")
    facts = module.facts(array, module.HOST | module.NARROW)
    assert (facts["dtype"], facts["itemsize"]) == (NARROW[dtype], array.itemsize)
    assert module.facts(array)["dtype"] == "void"


@pytest.mark.parametrize("way", support.TorchOnHost.ways)
@pytest.mark.parametrize("dtype", [*NAMES, *NARROW])
def test_dtypes_of_torch(module: Any, dtype: str, way: str) -> None:
    library = opened(HOST["PyTorch"])
    needs_dlpack(module, way, "PyTorch")
    if not hasattr(library.torch, dtype):
        pytest.skip(f"PyTorch {library.version} has no {dtype}")
    array = library.torch.zeros(3).to(getattr(library.torch, dtype))
    facts = module.facts(library.ways[way](array))
    assert (facts["dtype"], facts["itemsize"]) == (dtype, array.element_size())


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("dtype", [*NAMES, *NARROW])
def test_dtypes_of_jax(module: Any, dtype: str) -> None:
    library = opened(HOST["JAX"])
    needs_dlpack(module, "__dlpack__", "JAX")
    if not hasattr(library.jax.numpy, dtype.replace("bool", "bool_")):
        pytest.skip(f"JAX {library.version} has no {dtype}")
    array = library.make(VALUES["1-D"]).astype(dtype)
    if str(array.dtype) != dtype:
        pytest.skip(f"JAX makes {array.dtype} of it, without jax_enable_x64")
    try:
        array.__dlpack__()
    except Exception as error:
        pytest.skip(f"JAX {library.version} does not export it: {' '.join(str(error).split())[:80]}")
    facts = module.facts(array)
    assert (facts["dtype"], facts["itemsize"]) == (dtype, array.dtype.itemsize)


def test_rows_of_numpy(module: Any) -> None:
    """The rows of a descr against the offsets that NumPy has."""
    dtype = numpy.dtype([("position", [("x", "f4"), ("y", "f4")]), ("id", "i8"), ("flag", "?")], align=True)
    rows = module.facts(numpy.zeros(3, dtype), module.HOST | module.FIELDS)["fields"]
    named = {name: (kind, offset, size, parent) for name, kind, offset, size, parent in rows if name}
    assert named["id"] == ("int64", dtype.fields["id"][1], 8, -1)
    assert named["flag"] == ("bool", dtype.fields["flag"][1], 1, -1)
    assert named["position"][1:3] == (dtype.fields["position"][1], 8)
    assert named["x"] == ("float32", 0, 4, [row[0] for row in rows].index("position"))
    assert named["y"] == ("float32", 4, 4, named["x"][3])
    assert module.facts(numpy.zeros(3, dtype))["fields"] == []


# ------------------------------------------------------------------------ what they do not give


def test_read_only_numpy(module: Any) -> None:
    array = VALUES["1-D"].copy()
    array.flags.writeable = False
    for name, way in support.NumPy.ways.items():
        if name == "__dlpack__" and not module.HAS_DLPACK:
            continue
        assert module.facts(way(array))["read_only"], name
        with pytest.raises(ValueError, match="read-only"):
            module.saxpy(1, array, way(array), into=True)
    assert (array == VALUES["1-D"]).all()


@pytest.mark.parametrize("what", ["meta", "sparse"])
def test_tensors_without_memory(module: Any, what: str) -> None:
    """PyTorch's own exception comes through."""
    library = opened(HOST["PyTorch"])
    needs_dlpack(module, "as is", "PyTorch")
    array = library.torch.empty(3, device="meta") if what == "meta" else library.torch.eye(3).to_sparse()
    for way in library.ways.values():
        with pytest.raises((RuntimeError, BufferError, TypeError, ValueError)):
            module.facts(way(array))


@pytest.mark.filterwarnings("ignore:B?ComplexHalf support", "ignore:BComplex32 support")
def test_tensors_that_are_not_what_is_in_memory(module: Any) -> None:
    """Conjugates that PyTorch has not computed yet are refused by its __dlpack__. Its exchange in C, and for negatives
    its __dlpack__ too, give out what is in memory. So an import asks is_conj() and is_neg()."""
    library = opened(HOST["PyTorch"])
    needs_dlpack(module, "__dlpack__", "PyTorch")
    conjugate = (library.torch.arange(6) * 1j).to(library.torch.complex64).conj()
    with pytest.raises(BufferError):
        module.facts(support.by_dlpack(conjugate))
    negative = library.torch._neg_view(conjugate.real)
    for lazy, said in ((conjugate, "is_conj"), (conjugate.imag, "is_neg"), (negative, "is_neg")):
        with pytest.raises(BufferError, match=said):
            module.facts(lazy)
    for plain in (conjugate.real, conjugate.resolve_conj(), conjugate.imag.resolve_neg()):
        assert module.facts(plain)["shape"] == (6,)
    for parts in ("complex32", "bcomplex32", "complex128"):  # of halves, of bfloat16, of doubles
        if hasattr(library.torch, parts):
            with pytest.raises(BufferError, match="is_neg"):
                module.facts(library.torch.zeros(6, dtype=getattr(library.torch, parts)).conj().imag)


def test_jax_on_the_host_is_read_by_its_buffer(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The property of CUDA's dictionary takes longer to raise than the rest of the import: at most once."""
    library = opened(HOST["JAX"])
    needs_dlpack(module, "as is", "JAX")
    array = library.make(VALUES["2-D"])
    kind, asked = type(array), []
    for name in ("__cuda_array_interface__", "__dlpack__"):
        was = vars(kind)[name]
        get = was.fget if isinstance(was, property) else was
        note = lambda self, *a, name=name, get=get, **k: asked.append(name) or get(self, *a, **k)  # noqa: E731
        monkeypatch.setattr(kind, name, property(note) if isinstance(was, property) else note)
    for _ in range(3):
        assert module.facts(array)["read_only"]
    assert asked in ([], ["__cuda_array_interface__"])
    narrow = library.make(VALUES["1-D"]).astype("bfloat16")  # no buffer has that
    assert module.facts(narrow)["dtype"] == "bfloat16" and asked[-1] == "__dlpack__"


def test_jax_on_the_host_takes_no_dictionary_of_cuda() -> None:
    library = opened(HOST["JAX"])
    if any(device.platform != "cpu" for device in library.jax.devices()):
        pytest.skip("JAX has a GPU here")
    entries = {"shape": (6,), "typestr": "<f4", "data": (4096, False), "version": 3}
    given = type("Given", (), {"__cuda_array_interface__": entries})()
    with pytest.raises(RuntimeError, match="requires CUDA support"):
        library.jax.numpy.asarray(given)


def test_deleted_jax_array(module: Any) -> None:
    library = opened(HOST["JAX"])
    needs_dlpack(module, "__dlpack__", "JAX")
    array = library.make(VALUES["1-D"])
    array.delete()
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        module.facts(array)


def test_dlpack_of_ours(module: Any) -> None:
    """What a consumer may ask of __dlpack__, answered as the standard has it."""
    if not module.HAS_DLPACK:
        pytest.skip("no dlpack.h in an installed package")
    x = VALUES["2-D"]
    ours = module.saxpy(1, x, x)
    assert ours.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(ours.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(ours.__dlpack__())
    assert '"dltensor"' in repr(ours.__dlpack__(max_version=(0, 8)))
    for refused in ({"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            ours.__dlpack__(**refused)
    ours.__dlpack__(copy=False, dl_device=(1, 0))
    seen = numpy.from_dlpack(ours)
    assert seen.flags.writeable and (seen == 2 * x).all()


def test_ours_into_ours(module: Any) -> None:
    """The exchange between types in C: no dictionary, no DLPack."""
    x = module.saxpy(1, VALUES["1-D"], VALUES["1-D"])
    y = module.saxpy(1, x, x)
    assert (numpy.frombuffer(y.tobytes(), "f4") == 4 * VALUES["1-D"]).all()
    facts = module.facts(y)
    assert facts["memory"] == "host" and not facts["read_only"]
    assert facts["data"] == y.__array_interface__["data"][0]
    with pytest.raises(AttributeError):
        y.__cuda_array_interface__


# --------------------------------------------------------------------------------- the device


@pytest.fixture(scope="session")
def gpu(module: Any) -> Any:
    """The module, with a GPU."""
    why = module.device()
    if why:
        pytest.skip(why)
    return module


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    """The module over the simulated runtime: what is ours of the tests runs everywhere."""
    return built(tmp_path_factory, request, True)


@pytest.fixture(params=["simulated", "gpu"])
def device(request: pytest.FixtureRequest) -> Any:
    module = request.getfixturevalue(request.param)
    if not module.computes():
        pytest.skip("device code does not run on the simulated driver")
    return module


@contextlib.contextmanager
def nothing_left_on(gpu: Any, *streams: Any) -> Iterator[None]:
    """What was imported goes when its streams have passed."""
    gpu.pass_time()
    before = gpu.counts()
    yield
    for stream in streams:
        gpu.synchronize(stream)
    settled(gpu, before)


def device_values(computes: bool = True) -> tuple[Any, Any, Any]:
    """x, y and 2 x + y: small integers, so that float32 is exact. Without kernels: half of x and half of y."""
    x = numpy.arange(LENGTH, dtype="f4") % 1000
    y = numpy.arange(LENGTH, dtype="f4") % 77 + 1
    return x, y, 2 * x + y if computes else numpy.concatenate([x[: LENGTH // 2], y[LENGTH // 2 :]])


def driver_sim() -> Any:
    """The package cai_sim, if this process runs on the simulated driver."""
    package = sys.modules.get("cai_sim")
    return package if package and package.started() else None


def races_since(position: int) -> list[Any]:
    sim = driver_sim()
    return sim.races(since=position) if sim else []


def position() -> int:
    sim = driver_sim()
    return sim.position() if sim else 0


def floats(ours: Any) -> Any:
    return numpy.frombuffer(ours.tobytes(), "f4")


@pytest.mark.parametrize("in_order", [True, False])
def test_pending_work_of_ours(device: Any, in_order: bool) -> None:
    """Two of our streams. Left out, the order is missed: so the other tests can fail."""
    x, y, expected = device_values()
    first, second = device.stream(), device.stream()
    with nothing_left_on(device, first, second):
        floats(device.saxpy(1, device.upload(x, first), device.upload(y, first), first))  # all is loaded
        x_there, y_there = device.upload(numpy.full_like(x, -5), first), device.upload(y, second)
        source = device.upload(x + 5, first)
        device.saxpy(1, source, x_there, first, into=True, spin=SPIN)  # now it is x, but late
        assert device.done(second) and not device.done(first)
        result = device.saxpy(2, x_there, y_there, second, in_order=in_order)
        assert not device.done(first)
        seen = floats(result)
        device.synchronize(first)
        assert (floats(x_there) == x).all()
        del x_there, y_there, source, result
    assert (seen == expected).all() == in_order


@pytest.mark.parametrize("in_order", [True, False])
def test_owner_waits_for_work_of_ours(device: Any, in_order: bool) -> None:
    """The back edge: what the owner does next with x comes after our work on it."""
    x, y, expected = device_values()
    first, second = device.stream(), device.stream()
    with nothing_left_on(device, first, second):
        floats(device.saxpy(1, device.upload(x, first), device.upload(y, first), first))
        x_there, y_there = device.upload(x, first), device.upload(y, first)
        ones = device.upload(numpy.ones_like(x), first)
        result = device.saxpy(2, x_there, y_there, second, in_order=in_order, spin=SPIN)
        device.saxpy(1, ones, x_there, first, into=True)  # x + 1
        changed = floats(x_there)
        seen = floats(result)
        del x_there, y_there, ones, result
    assert (changed == x + 1).all()
    assert (seen == expected).all() == in_order


def test_facts_on_device(device: Any) -> None:
    """What is ours there, by each of its ways, says on which stream it is pending."""
    stream = device.stream()
    x = device.upload(numpy.ones((3, 4), "f4"), stream)
    ways = {"as is": x, "dictionary": support.by_dictionary(x)}
    if device.HAS_DLPACK:
        ways["__dlpack__"] = support.by_dlpack(x)
    for way, given in ways.items():
        facts = device.facts(given, 0, stream.handle)
        assert (facts["shape"], facts["strides"], facts["dtype"]) == ((3, 4), (16, 4), "float32"), way
        assert facts["data"] == x.__cuda_array_interface__["data"][0]
        assert (facts["sync"], facts["stream"]) == ("stream", stream.handle), way
        assert facts["memory"] == ("unknown" if way == "dictionary" else "device"), way
    assert x.__cuda_array_interface__["stream"] == stream.handle and x.__cuda_array_interface__["version"] == 3
    with pytest.raises(AttributeError):
        x.__array_interface__
    with pytest.raises(ValueError):  # the host, and the device
        device.saxpy(1, x, x)


@pytest.mark.parametrize("asked", ["wait", "no wait"])
def test_dlpack_of_ours_on_device(device: Any, asked: str) -> None:
    """__dlpack__ lets the stream wait that the consumer names; -1 is its own affair.

    The capsule stays until the copy is made: its deleter may wait for the device.
    """
    if not device.HAS_DLPACK:
        pytest.skip("no dlpack.h in an installed package")
    x, y, expected = device_values()
    first, second = device.stream(), device.stream()
    with nothing_left_on(device, first, second):
        floats(device.saxpy(1, device.upload(x, first), device.upload(y, first), first))
        x_there, y_there = device.upload(x, first), device.upload(y, first)
        result = device.saxpy(2, x_there, y_there, first, spin=SPIN)
        capsule = result.__dlpack__(stream=second.handle if asked == "wait" else -1)
        seen = numpy.frombuffer(device.copy(device.facts(result, 0)["data"], 4 * LENGTH, second), "f4")
        device.synchronize(first)
        del capsule, x_there, y_there, result
    assert (seen == expected).all() == (asked == "wait")


class Plain:
    """An array without a stream: version 3 says that nothing is pending on it."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {**owner.__cuda_array_interface__, "stream": None}


def test_kept_until_the_work_has_passed(device: Any) -> None:
    """R80: nobody's stream waits for our work, so the objects live until it is done."""
    x, y, expected = device_values()
    stream = device.stream()
    with nothing_left_on(device, stream):
        floats(device.saxpy(1, device.upload(x, stream), device.upload(y, stream), stream))
        given = [Plain(device.upload(values, stream)) for values in (x, y)]
        alive = [weakref.ref(one) for one in given]
        result = device.saxpy(2, *given, stream, spin=SPIN)
        del given
        assert device.counts()[2] == 2 and all(one() for one in alive)
        assert (floats(result) == expected).all()
        assert device.counts()[2] == 0 and not any(one() for one in alive)
        del result


def device_pairs() -> list[Any]:
    """Producer and consumer; the ways of each are looped over, as some are known only once a library is there."""
    return [pytest.param(a, b, id=f"{a}-{b}") for a, b in itertools.product(DEVICE, DEVICE)]


def one_exchange(
    gpu: Any, producer: Any, way: str, consumer: Any, how: str, seconds: float, in_order: bool = True
) -> dict[str, Any]:
    """x and y of one library, late; 2 x + y of ours on a stream of ours; read by the other library on its stream."""
    x, y, expected = device_values(gpu.computes())
    start = position()
    export, says = producer.ways[way]
    take, waits = consumer.take[how]
    theirs, mine, others = producer.stream(), gpu.stream(), consumer.stream()
    there = producer.number(theirs)
    sources = [producer.put(values, theirs) for values in (x, y)]
    arrays = [producer.room(values, theirs) for values in (x, y)]
    if seconds and producer.has_streams:
        gpu.spin(there, seconds)
    arrays = [producer.write(to, source, theirs) for to, source in zip(arrays, sources)]
    pending = bool(seconds) and producer.has_streams and not gpu.done(there)
    with producer.current(theirs):
        if not says and producer.has_streams:
            gpu.order(there, mine)
        given = [export(array) for array in arrays]
        facts = gpu.facts(given[0], gpu.HOST, mine.handle)
        began = time.perf_counter()
        ours = gpu.saxpy(2, *given, mine, spin=seconds, in_order=in_order)
        took = time.perf_counter() - began
    if facts["sync"] == "stream" and facts["stream"] == there and there > 2:
        producer.write(arrays[0], sources[1], theirs)  # must come after what we do with x
    with consumer.current(others):
        if not waits and consumer.has_streams:
            gpu.order(mine, consumer.number(others))
        elif not waits:
            gpu.synchronize(mine)
        taken = take(ours, others)
        seen = consumer.read(taken, others)
    gpu.synchronize(mine)
    if producer.has_streams:
        gpu.synchronize(there)
    assert seen.dtype == expected.dtype and seen.shape == expected.shape
    races = races_since(start)
    text = f"{producer.name} {way} -> {consumer.name} {how}"
    assert not races or not in_order, f"{text}: {races[0]}"
    wrong = int((seen != expected).sum()) if in_order else 0
    assert not wrong, f"{text}: {wrong} of {LENGTH} are wrong; {facts}"
    return {"facts": facts, "pending": pending, "took": took, "races": races}


def exchanges(gpu: Any, first: Any, second: Any) -> list[str]:
    """Each way in and each way out; once to load everything, once with work pending at both ends. Returns them."""
    before = gpu.counts()
    done = []
    for way, how in itertools.product(first.ways, second.take):
        one_exchange(gpu, first, way, second, how, 0.0)
        seen = one_exchange(gpu, first, way, second, how, SPIN)
        text = f"{first.name} {way} -> {second.name} {how}: {seen['facts']}"
        assert seen["facts"]["dtype"] in ("float32", "uint8", "int8"), text
        if first.has_streams and gpu.computes():
            assert seen["pending"], f"nothing was pending any more: {text}"
        if seen["facts"]["sync"] == "stream":
            assert seen["took"] < SPIN / 2 or not gpu.computes(), f"the import waited on the host: {text}"
        done.append(f"{first.name} {way} -> {second.name} {how}")
    settled(gpu, before)
    return done


def in_place(gpu: Any, library: Any) -> None:
    """y = a x + y in the library's own memory, by each way, and read on the library's own stream."""
    x, y, expected = device_values(gpu.computes())
    start = position()
    for way, (export, says) in library.ways.items():
        theirs, mine = library.stream(), gpu.stream()
        there = library.number(theirs)
        arrays = [library.put(values, theirs) for values in (x, y)]
        with library.current(theirs):
            if not says and library.has_streams:
                gpu.order(there, mine)
            given = [export(array) for array in arrays]
            facts = gpu.facts(given[1], gpu.HOST, mine.handle)
            if facts["read_only"]:
                with pytest.raises(ValueError, match="read-only"):
                    gpu.saxpy(2, *given, mine, into=True, spin=SPIN)
                continue
            gpu.saxpy(2, *given, mine, into=True, spin=SPIN)
            if facts["stream"] != there:
                gpu.order(mine, there)  # DLPack, and version 2, have no way back
            seen = numpy.frombuffer(gpu.copy(facts["data"], 4 * LENGTH, there), "f4")
        assert (seen == expected).all(), f"{library.name} {way}: {facts}"
        gpu.synchronize(mine)
    races = races_since(start)
    assert not races, f"{library.name}: {races[0]}"


@pytest.mark.parametrize("producer,consumer", device_pairs())
def test_pair_on_device(gpu: Any, producer: str, consumer: str, record_property: Any) -> None:
    for pair in exchanges(gpu, opened(DEVICE[producer], gpu), opened(DEVICE[consumer], gpu)):
        record_property("through cai", (pair, "in order"))


def on_driver_sim() -> None:
    if driver_sim() is None:
        pytest.skip("only the simulated driver names races (sim/tests/driver/check_matrix.py)")


@pytest.mark.parametrize("name", DEVICE)
def test_order_left_out_on_device(gpu: Any, name: str) -> None:
    """The same without the waits: a race, so the test above can fail. A way that says nothing is ordered by hand."""
    library = opened(DEVICE[name], gpu)
    on_driver_sim()
    ways = [way for way, (_, says) in library.ways.items() if says and way != "__dlpack__"]
    if not ways:
        pytest.skip(f"{name} says of no array where work is pending")
    for way in ways:
        found = one_exchange(gpu, library, way, support.Ours(gpu), "dictionary", SPIN, in_order=False)["races"]
        assert found, f"{name} {way}: no race without the waits"


def direct_exchange(gpu: Any, producer: Any, way: str, consumer: Any, how: str, current: bool) -> list[Any]:
    """One library's array, written on its stream, read by the other one on its own, without cai: the races."""
    x, _, _ = device_values()
    theirs, others = producer.stream(), consumer.stream()
    source, array = producer.put(x, theirs), producer.room(x, theirs)
    start = position()
    with contextlib.ExitStack() as stack:
        if current:
            stack.enter_context(producer.current(theirs))
        array = producer.write(array, source, theirs)
        given = producer.ways[way][0](array)
        if current:
            stack.enter_context(consumer.current(others))
        consumer.read(consumer.take[how][0](given, others), others)
    races = races_since(start)
    gpu.synchronize(producer.number(theirs))
    return races


@pytest.mark.parametrize("producer,consumer", device_pairs())
def test_direct_pair_on_device(gpu: Any, producer: str, consumer: str, record_property: Any) -> None:
    """Which libraries race without cai, with the streams current and not. It is recorded: others decide on it."""
    first, second = opened(DEVICE[producer], gpu), opened(DEVICE[consumer], gpu)
    on_driver_sim()
    choices = {kind.current is not support.Device.current for kind in (type(first), type(second))}
    scopes = (True, False) if True in choices else (True,)
    for way, how, current in itertools.product(first.ways, second.take, scopes):
        text = f"{first.name} {way} -> {second.name} {how}" + ("" if current else ", streams not current")
        try:
            races = direct_exchange(gpu, first, way, second, how, current)
        except Exception as error:  # a library that does not take the other's array
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:70]}"
            record_property("directly", (text, f"refused ({said})"))
            continue
        kinds = {"certain" if race.certain else "possible" for race in races}
        record_property("directly", (text, f"race ({', '.join(sorted(kinds))})" if races else "in order"))


@pytest.mark.parametrize("name", DEVICE)
def test_refused_on_device(gpu: Any, name: str) -> None:
    """What a library does not take of ours, which docs/python.md tells users."""
    library = opened(DEVICE[name], gpu)
    mine = gpu.stream()
    ours = gpu.upload(VALUES["1-D"], mine)
    gpu.synchronize(mine.handle)
    for how, (take, words) in library.refused.items():
        with pytest.raises(Exception, match=words):
            print(how, take(ours, library.stream()))


@pytest.mark.parametrize("name", DEVICE)
def test_captured_on_device(gpu: Any, name: str, record_property: Any) -> None:
    """The producer's stream is being captured. cai refuses to cross that, and the capture goes on."""
    library = opened(DEVICE[name], gpu)
    on_driver_sim()
    try:
        driver = support.need("cuda.bindings.driver")
    except support.Missing as missing:
        pytest.skip(str(missing))
    ways = [way for way, (_, says) in library.ways.items() if says and way != "__dlpack__"]
    if not ways:
        pytest.skip(f"{name} says of no array where work is pending")
    x, y, _ = device_values()
    for way in ways:
        theirs, mine = library.stream(), gpu.stream()
        arrays = [library.put(values, theirs) for values in (x, y)]
        there = driver.CUstream(library.number(theirs))
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        with library.current(theirs):
            given = [library.ways[way][0](array) for array in arrays]
            if gpu.facts(given[0], gpu.HOST, mine.handle)["sync"] != "stream":
                continue
            assert int(driver.cuStreamBeginCapture(there, mode)[0]) == 0
            try:
                with pytest.raises(Exception, match="captur"):
                    gpu.saxpy(2, *given, mine)
            finally:
                code, graph = driver.cuStreamEndCapture(there)
        assert int(code) == 0, f"{name} {way}: the capture ended with {code!r}"
        assert int(driver.cuGraphDestroy(graph)[0]) == 0
        record_property("captured", (f"{name} {way}", "refused, the capture goes on"))


@pytest.mark.parametrize("name", DEVICE)
def test_in_place_on_device(gpu: Any, name: str) -> None:
    in_place(gpu, opened(DEVICE[name], gpu))


def test_pair_of_ours(device: Any) -> None:
    """The same with our module in the place of both libraries."""
    exchanges(device, support.Ours(device), support.Ours(device))


def test_in_place_of_ours(device: Any) -> None:
    in_place(device, support.Ours(device))


@pytest.mark.parametrize("name", DEVICE)
def test_streams_of_libraries(gpu: Any, name: str) -> None:
    """An object with __cuda_stream__ is the stream that its number says."""
    library = opened(DEVICE[name], gpu)
    if not gpu.computes():
        pytest.skip("device code does not run on the simulated driver, so nothing stays pending")
    stream = library.stream()
    if not hasattr(stream, "__cuda_stream__"):
        pytest.skip(f"{name} {library.version} has no streams with __cuda_stream__")
    assert gpu.done(stream)
    gpu.spin(stream, SPIN)
    assert not gpu.done(stream) and not gpu.done(library.number(stream))
    gpu.synchronize(stream)
    assert gpu.done(library.number(stream))
