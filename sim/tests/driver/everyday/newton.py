# SPDX-License-Identifier: MIT
"""A loop until a result is right: kernels do not run, and the check at the end fails."""
import cupy

guess = cupy.full(10, 3.0)
for _ in range(20):
    guess = (guess + 2 / guess) / 2
assert abs(float(guess[0]) ** 2 - 2) < 1e-9
