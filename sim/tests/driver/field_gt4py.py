# SPDX-License-Identifier: MIT
"""Programs with examples/storage/python/cai_field.c and GT4Py 1.1.12: the name of one is the argument.

CI does not have GT4Py, as it brings 440 MB with it: pip install gt4py. What GT4Py wants of an object is recorded in
field_programs.py (gt4py_attributes), which runs without it. device_sides needs CuPy, too.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import cai_field
import numpy
from gt4py.storage.cartesian import utils as gt

SHAPE, HALO, INSIDE = (12, 9, 4), (2, 2, 0), (8, 5, 4)
VALUES = numpy.random.default_rng(1).random(SHAPE)
EXPECTED = numpy.zeros(SHAPE)
EXPECTED[2:-2, 2:-2] = VALUES[3:-1, 2:-2] + VALUES[2:-2, 1:-3]


def context() -> Any:
    from numba import cuda

    return cuda.current_context()


def stencil(backend: str = "numpy") -> Any:
    """b = a[1, 0, 0] + a[0, -1, 0]: another one for each axis."""
    os.environ["GT_CACHE_ROOT"] = os.environ["TMPDIR"] = tempfile.mkdtemp()
    from gt4py.cartesian import gtscript
    from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval  # noqa: F401

    def sums(a: Field[float], b: Field[float]):  # type: ignore[valid-type]
        with computation(PARALLEL), interval(...):
            b = a[1, 0, 0] + a[0, -1, 0]  # noqa: F841

    sums.__annotations__ = {"a": Field[float], "b": Field[float]}
    return gtscript.stencil(backend=backend, definition=sums)


def put(field: Any, values: Any, order: tuple[int, ...]) -> Any:
    numpy.asarray(field.host("overwrite"))[...] = values.transpose(order)
    return field


def fields_of(dims: str) -> tuple[Any, Any]:
    """The two fields of the stencil, with their axes in this order."""
    order = tuple("IJK".index(name) for name in dims)
    shape, halo = (tuple(numbers[axis] for axis in order) for numbers in (SHAPE, HALO))
    a, b = (cai_field.field(shape, preset="gt:cpu_kfirst", dims=dims, halo=halo) for _ in "ab")
    return put(a, VALUES, order), put(b, numpy.zeros(SHAPE), order)


def stencil_takes_fields() -> None:
    """The sides are arguments. GT4Py orders the axes by their names, and begins at the origin."""
    context()
    sums = stencil()
    for dims in ("IJK", "KJI", "JKI", "KIJ"):
        a, b = fields_of(dims)
        sums(a.host(), b.host("write"), domain=a.gt_domain)
        assert (a.state, b.state) == ("host newer", "host newer")
        found = numpy.asarray(b.host()).transpose(tuple(dims.index(name) for name in "IJK"))
        assert (found == EXPECTED).all(), dims


def compiled_refuses_read_only() -> None:
    """A stencil in C++ takes a read-only array for no argument."""
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    context()
    sums = stencil("gt:cpu_kfirst")
    a, b = fields_of("KJI")
    try:
        sums(a.host(), b.host("write"), domain=a.gt_domain)
    except ValueError as error:
        assert "read-only" in str(error)
    else:
        raise AssertionError("GT4Py takes read-only memory now: say so in docs/storage.md")
    sums(a.host("write"), b.host("write"), domain=a.gt_domain)
    assert (numpy.asarray(b.host()).transpose(2, 1, 0) == EXPECTED).all()


def upper_halo_needs_domain() -> None:
    """GT4Py knows no upper halo: without a domain it computes as far as the stencil reads inside of the arrays."""
    context()
    a, b = fields_of("IJK")
    stencil()(a.host(), b.host("write"))
    found = numpy.asarray(b.host())
    assert found[2:11, 2:].all() and not found[11:].any() and not found[:2].any()


def from_array_refuses_pinned() -> None:
    """The one function of GT4Py that chooses the device by __dlpack_device__ knows no pinned memory."""
    import gt4py.storage

    context()
    a, _ = fields_of("IJK")
    try:
        gt4py.storage.from_array(a.host(), backend="numpy")
    except TypeError as error:
        assert "Cannot convert" in str(error)
    else:
        raise AssertionError("GT4Py takes pinned memory now: say so in docs/storage.md")
    assert (gt4py.storage.from_array(numpy.asarray(a.host()), backend="numpy") == VALUES).all()


def field_of_storage() -> None:
    """Memory of gt4py.storage as the host side: written there, copied to the device, and back."""
    import gt4py.storage
    from numba import cuda

    context()
    for backend in ("numpy", "gt:cpu_ifirst", "dace:cpu"):
        theirs = gt4py.storage.from_array(VALUES, backend=backend, aligned_index=HALO)
        field = cai_field.field.of(theirs, dims="IJK", halo=HALO)
        side = field.host("write")
        assert numpy.asarray(side).ctypes.data == theirs.ctypes.data and numpy.asarray(side).strides == theirs.strides
        assert gt.get_dims(side) == ("I", "J", "K") and gt.get_origin(side) == HALO and field.gt_domain == INSIDE
        del side
        view = cuda.as_cuda_array(field.device("write"), sync=False)
        assert view.shape == SHAPE and view.strides == theirs.strides
        del view
        assert field.state == "device newer"
        cuda.synchronize()
        theirs[...] = 0  # the copy from the device writes over this
        assert (numpy.asarray(field.host()) == VALUES).all() and (theirs == VALUES).all()


def field_of_next() -> None:
    """A field of gt4py.next: names, origin and buffer, and back to such a field without a copy."""
    import gt4py.next as gtx
    from gt4py.next.embedded.nd_array_field import NumPyArrayField

    context()
    domain = gtx.domain({gtx.Dimension("I"): (-2, 10), gtx.Dimension("Cell"): (-1, 8)})
    theirs = gtx.as_field(domain, VALUES[:, :, 0])
    field = cai_field.field.of(theirs)
    side = field.host("write")
    assert (gt.get_dims(side), gt.get_origin(side)) == (theirs.__gt_dims__, theirs.__gt_origin__) == (("I", "Cell"), (2, 1))
    assert field.gt_domain == (8, 7)
    back = NumPyArrayField.from_array(numpy.asarray(side), domain=domain)
    assert back.ndarray.ctypes.data == theirs.ndarray.ctypes.data and back.__gt_origin__ == (2, 1)


def device_sides() -> None:
    """What a stencil of a GPU backend does with its arguments, by CuPy. The kernel itself needs a GPU."""
    import cupy
    import gt4py.storage
    from gt4py.cartesian.stencil_object import _extract_array_infos

    cupy.cuda.Device(0).use()
    field = cai_field.field(SHAPE[::-1], preset="C", dims="KJI", halo=HALO[::-1], home=cupy.cuda.Stream(non_blocking=True))
    numpy.asarray(field.host("overwrite"))[...] = VALUES.transpose(2, 1, 0)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        info = _extract_array_infos({"a": field.device("read", stream)}, "gpu")["a"]
        assert info.array.shape == SHAPE and info.dimensions == ("I", "J", "K") and info.origin == HALO
        assert info.array.strides == (8, 96, 864) and (info.array.get(stream=stream, order="A") == VALUES).all()
        del info
    theirs = gt4py.storage.empty(SHAPE, backend="gt:gpu", aligned_index=HALO)
    field = cai_field.field.of(theirs, dims="IJK", halo=HALO, home=cupy.cuda.Stream(non_blocking=True))
    found = cupy.asarray(field.device())
    assert (field.state, found.data.ptr, found.strides) == ("device newer", theirs.data.ptr, theirs.strides)
    assert field.host().__gt_origin__ == HALO and field.state == "clean"


if __name__ == "__main__":
    globals()[sys.argv[1]]()
