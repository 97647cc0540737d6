# SPDX-License-Identifier: MIT
"""pip install ./examples/storage/python, in a checkout of cai: the headers are found beside it."""

import os

from setuptools import Extension, setup
from tvm_ffi.libinfo import find_dlpack_include_path

ROOT = os.path.join("..", "..", "..")

setup(
    ext_modules=[
        Extension(
            "cai_field",
            sources=["cai_field.c"],
            include_dirs=[ROOT, os.path.join(ROOT, "ext"), find_dlpack_include_path()],
            extra_compile_args=[] if os.name == "nt" else ["-std=c99"],
        )
    ],
)
