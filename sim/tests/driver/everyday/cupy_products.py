# SPDX-License-Identifier: MIT
"""Random matrices and their product: cuRAND and cuBLAS."""
import cupy

left, right = cupy.random.standard_normal((30, 40)), cupy.random.random((40, 20), dtype=cupy.float32)
print((left @ right).shape, float(cupy.linalg.norm(left)), cupy.dot(left[0], left[1]).item())
