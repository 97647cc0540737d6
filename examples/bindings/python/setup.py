# SPDX-License-Identifier: MIT
"""pip install ./examples/bindings/python, in a checkout of cai: the headers are found beside it."""

import os

from setuptools import Extension, setup

ROOT = os.path.join("..", "..", "..")

setup(
    ext_modules=[
        Extension(
            "cai_saxpy",
            sources=["cai_saxpy.c", "saxpy_simulated.c"],
            depends=["saxpy_device.h"],
            include_dirs=[ROOT, os.path.join(ROOT, "ext"), os.path.join(ROOT, "sim")],
            extra_compile_args=[] if os.name == "nt" else ["-std=c99"],
        )
    ],
)
