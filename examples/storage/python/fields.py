# SPDX-License-Identifier: MIT
"""A field on host and device: NumPy works on one side, Numba on the other, and only what is stale is copied.

    python fields.py                     with a GPU
    python -m cai_sim fields.py          without one: the simulated driver looks for races. Kernels do not run

It needs the module cai_field (cai_field.c, built by setup.py beside it), NumPy and Numba.
"""

import cai_field
import numpy
from numba import cuda

SHAPE, HALO = (12, 9, 4), (2, 2, 0)

cuda.current_context()  # the context of the field
field = cai_field.field(SHAPE, preset="gtcuda", dims="IJK", halo=HALO)
stream = cuda.stream()

# The host: all of it is written, so nothing is copied. The end of the statement is the end of the access.
values = numpy.arange(432.0).reshape(SHAPE)
numpy.asarray(field.host("overwrite"))[...] = values
assert field.state == "host newer"

# The device: copied there, in the order of `stream`. Each view of the side keeps it open.
view = cuda.as_cuda_array(field.device("write", stream), sync=False)
staged = cuda.pinned_array(SHAPE, order="F")
view.copy_to_host(staged, stream=stream)
stream.synchronize()
staged *= 2
view.copy_to_device(staged, stream=stream)
try:
    field.host()
except RuntimeError as error:
    print("refused:", error)
del view
assert field.state == "device newer"

# The host again: copied back. The view is read-only, and the domain has no halo.
host = numpy.asarray(field.host())
assert field.state == "clean" and not host.flags.writeable
assert (host == 2 * values).all()
print("domain:", host[field.domain].shape, "strides in bytes:", host.strides)
