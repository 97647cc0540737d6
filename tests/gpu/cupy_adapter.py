#!/usr/bin/env python3
"""CuPy on a table of hooks, opened before anything made a context.

    cupy_adapter.py build/libcai_cupy.so
"""

import ctypes
import sys

import cupy
import numpy


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.cai_cupy_open.restype = ctypes.c_void_p
    library.cai_cupy_open.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64,
                                      ctypes.c_void_p]
    error = ctypes.create_string_buffer(512)
    adapter = library.cai_cupy_open(None, None, 0, 0, error)
    if not adapter:
        print(error.raw.split(b"\0\0")[-1])
        return 1
    allocator = cupy.cuda.memory.CFunctionAllocator(adapter, address(library.cai_cupy_malloc),
                                                    address(library.cai_cupy_free), library)
    cupy.cuda.set_allocator(allocator.malloc)
    x = cupy.random.rand(1000, 1000)
    right = numpy.allclose(cupy.asnumpy(x @ x.T), cupy.asnumpy(x) @ cupy.asnumpy(x).T)
    for i in range(1000):
        numbers = cupy.arange(i + 1)
    right = right and int(numbers.sum()) == 499500
    print("right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
