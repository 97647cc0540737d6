# SPDX-License-Identifier: MIT
"""A selection by a mask, and sums."""
import cupy

values = cupy.linspace(0, 1, 500)
print(values[values < 0.3].sum(), cupy.cumsum(values)[-1], cupy.where(values > 0.5, 1, 0).sum())
