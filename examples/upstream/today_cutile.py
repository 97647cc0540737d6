# SPDX-License-Identifier: MIT
"""How the released cuTile reads __cuda_array_interface__. It needs no GPU:

    pip install cuda-tile==1.7.0
    python -m cai_sim examples/upstream/today_cutile.py
"""

import cuda.tile as ct
from cuda.tile import _cext


@ct.kernel
def kernel(x):
    pass


class Producer:
    def __init__(self, **entries):
        good = {"shape": (6, 4), "typestr": "<f4", "data": (4096, False), "version": 3}
        self.__cuda_array_interface__ = {**good, **entries}


def read(name, **entries):
    convention = _cext.CallingConvention.cutile_python_v1()
    try:
        (seen,) = _cext.get_parameter_constraints_from_pyargs(kernel, (Producer(**entries),), convention)
        print(f"{name}: taken as {seen.dtype}, constant strides {seen.stride_constant}")
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")


read("strides of 6 bytes for items of 4", strides=(16, 6))
read("one stride for two axes", strides=(4,))
read("a mask", mask=Producer(typestr="|b1"))
read("a negative extent", shape=(-3, 4))
read("an extent of 2**33, with 32-bit indices", shape=(2**33, 1))
