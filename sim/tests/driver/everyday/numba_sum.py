# SPDX-License-Identifier: MIT
"""A reduction of Numba."""
import numpy
from numba import cuda

largest = cuda.reduce(lambda a, b: max(a, b))
print(largest(numpy.arange(3000, dtype=numpy.float32)))
