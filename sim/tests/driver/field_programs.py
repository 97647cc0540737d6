# SPDX-License-Identifier: MIT
"""Programs with examples/storage/python/cai_field.c: the name of one is the argument. check_field.py runs them."""

from __future__ import annotations

import gc
import sys
from typing import Any, Callable

import cai_field
import numpy
from numba import cuda

SHAPE, HALO = (12, 9, 4), (2, 2, 0)
VALUES = numpy.arange(432.0).reshape(SHAPE)


def make(**options: Any) -> Any:
    cuda.current_context()
    return cai_field.field(SHAPE, preset="gtcuda", dims="IJK", halo=HALO, **options)


def filled(**options: Any) -> Any:
    field = make(**options)
    numpy.asarray(field.host("overwrite"))[...] = VALUES
    return field


def raises(kind: type[Exception], words: str, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert words in str(error), f"{error!r} does not say {words!r}"
    else:
        raise AssertionError(f"no {kind.__name__}: {words}")


def numpy_reads() -> None:
    """All ways to the host side, which lives as long as a view of it."""
    field = filled()
    for view in (numpy.asarray(field.host()), numpy.from_dlpack(field.host())):
        assert (view == VALUES).all() and view.strides == (8, 96, 864) and not view.flags.writeable
    side = field.host("write")
    assert not hasattr(side, "__cuda_array_interface__") and side.__dlpack_device__() == (3, 0)
    view = numpy.asarray(side)[field.domain]
    assert view.shape == (8, 5, 4)
    view[...] = 7
    del side
    raises(RuntimeError, "the host side is open for writing", field.device)
    del view
    assert field.state == "host newer"
    kept = numpy.asarray(field.host())
    del field
    gc.collect()
    assert kept[2, 2, 0] == 7 and kept[0, 0, 0] == VALUES[0, 0, 0]


def numba_writes() -> None:
    """The device side by the interface, on a stream of the consumer, and on home."""
    home = cuda.stream()
    for stream in (home, cuda.stream(), cuda.default_stream()):
        field = filled(home=home)
        assert not hasattr(field.device("read", stream), "__array_interface__")
        assert field.state == "clean"
        view = cuda.as_cuda_array(field.device("write", stream), sync=False)
        staged = cuda.pinned_array(SHAPE, order="F")
        view.copy_to_host(staged, stream=stream)
        stream.synchronize()
        staged *= 2
        view.copy_to_device(staged, stream=stream)
        del view
        assert field.state == "device newer"
        assert (numpy.asarray(field.host()) == 2 * VALUES).all()
        assert field.state == "clean"


def core_reads() -> None:
    """DLPack: the consumer's stream waits for that of the side, and the end of the side waits for it."""
    from cuda.core import Buffer, Device
    from cuda.core.utils import StridedMemoryView

    field = filled()
    device = Device()
    device.set_current()
    mine, theirs = device.create_stream(), device.create_stream()
    view = StridedMemoryView.from_dlpack(field.device("write", mine), stream_ptr=int(theirs.handle))
    nines = numpy.full(SHAPE, 9.0, order="F")
    source = device.allocate(nines.nbytes, stream=theirs)
    cuda.as_cuda_array(Viewed(source, nines), sync=False).copy_to_device(nines, stream=cuda.external_stream(int(theirs.handle)))
    Buffer.from_handle(view.ptr, nines.nbytes).copy_from(source, stream=theirs)
    raises(RuntimeError, "the device side is open for writing", field.host)
    del view
    assert field.state == "device newer"
    assert (numpy.asarray(field.host()) == 9).all()


def streams_stay() -> None:
    """The field and its sides keep the streams that they were given, which end with their last reference."""
    from cuda.core import Device

    device = Device()
    device.set_current()
    field = filled(home=device.create_stream())
    side = field.device("write", device.create_stream())
    gc.collect()
    del side
    assert (numpy.asarray(field.host()) == VALUES).all()


class Viewed:
    """A buffer as an array."""

    def __init__(self, buffer: Any, like: Any) -> None:
        self.__cuda_array_interface__ = {"shape": like.shape, "typestr": like.dtype.str, "version": 3, "stream": None,
                                         "data": (int(buffer.handle), False), "strides": like.strides}  # fmt: skip


def forgets_its_stream() -> None:
    """The side was asked for on home, and the work is on a stream that is not ordered with it. A race."""
    field = filled(home=cuda.stream())
    stream = cuda.stream()
    view = cuda.as_cuda_array(field.device("write"), sync=False)
    view.copy_to_device(cuda.pinned_array_like(VALUES.copy(order="F")), stream=stream)
    del view
    field.host()


class Named:
    """An array with what GT4Py 1.1.12 reads of an argument: get_dims and get_origin of gt4py.storage.cartesian.utils."""

    def __init__(self, array: Any, dims: tuple[str, ...], origin: tuple[int, ...]) -> None:
        self.__array_interface__ = array.__array_interface__
        self.kept, self.__gt_dims__, self.__gt_origin__ = array, dims, origin


# The names of the axes, the origin that GT4Py 1.1.12 takes, and the halo of each axis. The names are in the order of
# the array, and the origin is in the order I, J, K, data (StencilObject._normalize_origins).
GT4PY = [
    ("IJK", (2, 1, 0), (2, 1, 0)),
    ("KJI", (2, 1, 0), (0, 1, 2)),
    ("JKI", (3, 2, 1), (2, 1, 3)),
    ("K0I", (3, 2, 0), (2, 0, 3)),
    ("10K", (1, 0, 0), (0, 0, 1)),
]


def gt4py_attributes() -> None:
    """The sides have GT4Py's attributes, and field.of reads them: field_gt4py.py tries both with GT4Py itself."""
    cuda.current_context()
    for dims, origin, halo in GT4PY:
        field = cai_field.field((12, 9, 14), dims=dims, halo=halo)
        for side in (field.host(), field.device()):
            assert (side.__gt_dims__, side.__gt_origin__) == (tuple(dims), origin), (dims, side.__gt_origin__)
        inside = [slice.stop - slice.start for slice in field.domain]
        assert field.gt_domain == tuple(inside[axis] for axis in sorted(range(3), key=lambda axis: "IJK01".index(dims[axis])))
        array = numpy.zeros((12, 9, 14))
        taken = cai_field.field.of(Named(array, tuple(dims), origin))
        assert taken.domain == field.domain and taken.host().__gt_dims__ == tuple(dims)
        assert numpy.asarray(taken.host()).ctypes.data == array.ctypes.data
    assert not hasattr(cai_field.field((3,)).host(), "__gt_dims__")
    assert cai_field.field((3,)).host().__gt_origin__ == (0,)


def field_of_array() -> None:
    """The memory of an array is the host side. It is given back when the work of the field has passed."""
    array = VALUES.copy()
    before = sys.getrefcount(array)
    cuda.current_context()
    field = cai_field.field.of(array, dims=("I", "J", "K"), halo=HALO, home=cuda.stream())
    assert field.state == "host newer" and field.host().__gt_origin__ == HALO
    view = cuda.as_cuda_array(field.device("write"), sync=False)
    fours = cuda.pinned_array_like(array)
    fours[...] = 4
    view.copy_to_device(fours)
    del view
    assert (array == VALUES).all() and (numpy.asarray(field.host()) == 4).all() and (array == 4).all()
    del field
    assert cai_field.field((1,)).state == "clean"  # any call looks for work that has passed
    assert sys.getrefcount(array) == before
    memory = cuda.device_array(SHAPE)
    field = cai_field.field.of(memory)
    assert field.state == "device newer" and not hasattr(field.host(), "__gt_dims__")
    from cuda.core import Device

    device = Device()
    stream = device.create_stream()
    buffer = device.allocate(VALUES.nbytes, stream=stream)  # of a memory pool
    stream.sync()
    field = cai_field.field.of(Viewed(buffer, VALUES))
    assert field.device().__cuda_array_interface__["data"][0] == int(buffer.handle) and field.state == "device newer"
    del field
    raises(ValueError, "different lengths", cai_field.field.of, array, dims="IJ")
    raises(TypeError, "dims[1] is not a string", cai_field.field.of, array, dims=("I", 1, "K"))
    raises(ValueError, "a halo of 5 at both ends does not fit axis 1 of 9", cai_field.field.of, array, halo=(0, 5, 0))
    raises(ValueError, "a halo of -1 at both ends does not fit axis 0", cai_field.field.of, array, halo=(-1, 0, 0))
    raises(TypeError, "__gt_origin__ is not a tuple of 3", cai_field.field.of, Named(array, ("I", "J", "K"), (1, 1)))
    raises(TypeError, "", cai_field.field.of, object())
    assert cai_field.field((1,)).state == "clean" and sys.getrefcount(array) == before


def misuse() -> None:
    raises(RuntimeError, "no context", cai_field.field, (3,))
    field = make()
    raises(TypeError, "must be tuple", cai_field.field, [3])
    raises(TypeError, "halo is not a tuple of 1 numbers", cai_field.field, (3,), halo=(1, 1))
    raises(TypeError, "int", cai_field.field, (3.5,))
    raises(ValueError, "more than 8", cai_field.field, (1,) * 9)
    raises(ValueError, "different lengths", cai_field.field, (3, 3), preset="C", dims="IJK")
    raises(ValueError, "gtcudb", cai_field.field, (3,), preset="gtcudb", dims="I")
    raises(Exception, "typestr", cai_field.field, (3,), "!!")
    raises(ValueError, "mode 'rw'", field.host, "rw")
    raises(TypeError, "", field.device, "read", None)
    raises(TypeError, "cannot create", type(field.host()))
    raises(BufferError, "copy", field.host().__dlpack__, copy=True)
    empty = cai_field.field((0, 3))
    assert numpy.asarray(empty.host("write")).shape == (0, 3)


def host_functions() -> None:
    """The host waits without the GIL, so a host function in Python runs meanwhile. The field is busy for it."""
    import ctypes

    from cuda.bindings import driver

    home = cuda.stream()
    field = filled(home=home)
    said: list[str] = []

    def function(_: Any) -> None:
        try:
            said.append(field.host().__class__.__name__)
        except RuntimeError as error:
            said.append(str(error))

    kept = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
    field.device("write")
    address = ctypes.cast(kept, ctypes.c_void_p).value
    assert driver.cuLaunchHostFunc(home.handle, driver.CUhostFn(address), 0)[0] == 0
    assert (numpy.asarray(field.host()) == VALUES).all()
    assert said == ["another thread uses the field"], said


if __name__ == "__main__":
    globals()[sys.argv[1]]()
