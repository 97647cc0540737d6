# try.py - z = a x + y with arrays of Numba: python -m cai_sim try.py kernels_nanobind (no GPU), or python try.py ...
# SPDX-License-Identifier: MIT
import importlib
import sys

import numpy
from numba import cuda

cuda.current_context()  # the modules allocate in it
sys.path.insert(0, sys.argv[2] if len(sys.argv) > 2 else "build")
module = importlib.import_module(sys.argv[1])
mine, theirs = cuda.stream(), cuda.stream()
x, y = cuda.pinned_array(1000, numpy.float32), cuda.pinned_array(1000, numpy.float32)
x[:], y[:] = 2, 1
on_device = [cuda.device_array(1000, numpy.float32, stream=mine) for _ in (x, y)]
for array, host in zip(on_device, (x, y)):
    array.copy_to_device(host, stream=mine)
z = module.saxpy(3, *on_device, int(theirs.handle))
print(z, cuda.as_cuda_array(z).copy_to_host(stream=theirs)[:3])  # [7. 7. 7.] on a GPU
try:
    module.saxpy(3, x, None, int(theirs.handle))
except ValueError as error:
    print(error)
try:
    module.saxpy(3, on_device[0], None, int(theirs.handle))
except TypeError as error:
    print(error)
print(module.saxpy.__doc__)
