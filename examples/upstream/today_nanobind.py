# SPDX-License-Identifier: MIT
"""What an nb::ndarray argument asks of a CuPy array. It needs no GPU. Compile nanobind's own test module first, in a
checkout of nanobind with nanobind.patch:

    g++ -std=c++17 -shared -fPIC -fvisibility=hidden -fno-strict-aliasing -Iinclude -Iext/robin_map/include \\
        $(python3-config --includes) src/nb_combined.cpp tests/test_ndarray.cpp -o test_ndarray_ext.so
    PYTHONPATH=. python -m cai_sim today_nanobind.py
"""

import cupy
import test_ndarray_ext


class Producer:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        print("asked for stream", options.get("stream"))
        return self.array.__dlpack__(**options)


def in_capture(name, call):
    stream.begin_capture()
    try:
        print(f"{name} in a capture:", call())
    except Exception as error:
        print(f"{name} in a capture: {type(error).__name__}: {str(error).splitlines()[0]}")
    try:
        stream.end_capture()
        print("the capture ended")
    except cupy.cuda.runtime.CUDARuntimeError as error:
        print(f"the capture: {error}")


array, stream = cupy.zeros((2, 4)), cupy.cuda.Stream(non_blocking=True)
with stream:
    print("an argument:", test_ndarray_ext.get_shape(Producer(array)))
    in_capture("an argument", lambda: test_ndarray_ext.get_shape(array))
    in_capture("the recipe", lambda: test_ndarray_ext.import_on_stream(array, -1))
