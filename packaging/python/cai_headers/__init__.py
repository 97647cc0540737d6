# SPDX-License-Identifier: MIT
"""The headers of cai: where a build of an extension finds them. `python -m cai_headers` judges dictionaries."""

import os

__all__ = ["get_cmake_dir", "get_ext_include", "get_include", "get_sim_dir"]

_HERE = os.path.dirname(os.path.abspath(__file__))


def get_include() -> str:
    """The folder of cai.h, cai_stream.h and cai_emm.h."""
    return os.path.join(_HERE, "include", "cai")


def get_ext_include() -> str:
    """The folder of the extensions. They include the headers of get_include()."""
    return os.path.join(_HERE, "include", "cai", "ext")


def get_sim_dir() -> str:
    """The folder of cai_sim.h, cai_sim.c and the other sources of the simulated CUDA."""
    return os.path.join(_HERE, "share", "cai", "sim")


def get_cmake_dir() -> str:
    """The folder of caiConfig.cmake, for cai_DIR."""
    return os.path.join(_HERE, "share", "cmake", "cai")
