# distutils: language = c++
# distutils: define_macros = CAI_IMPLEMENTATION
# saxpy_cython.pyx - y = a x + y on the caller's stream, for arrays of any library, by cai.pxd
# SPDX-License-Identifier: MIT
cimport cai
from cai cimport error
from libc.stdint cimport uint64_t

cdef extern from "saxpy_device.h" nogil:
    ctypedef struct saxpy_device
    saxpy_device *saxpy_device_open()
    const cai.cai_cuda *saxpy_device_cuda(saxpy_device *)
    void launch "cai_cython::call<saxpy_device_launch>"(saxpy_device *, float, cai.array *, float, cai.array *,
                                                        uint64_t) except +error

cdef saxpy_device *device = saxpy_device_open()
array = cai.open(saxpy_device_cuda(device))


def saxpy(float a, x, y, stream):
    cdef cai.array vx = cai.take(x, 0), vy = cai.take(y, 0)
    cdef cai.exchange ex
    cdef uint64_t s = cai.stream(stream)
    cai.expect(&vx, "x", cai.CAI_FLOAT32, cai.CAI_ANY_NDIM, cai.CAI_ON_DEVICE)
    cai.expect(&vy, "y", cai.CAI_FLOAT32, cai.CAI_ANY_NDIM,
               cai.CAI_ON_DEVICE | cai.CAI_WRITABLE | cai.CAI_NO_SELF_OVERLAP)
    cai.expect_same_shape(&vx, "x", &vy, "y")
    with nogil:
        ex.begin(s, vx, vy)
        launch(device, a, &vx, 1, &vy, s)
        ex.finish()
