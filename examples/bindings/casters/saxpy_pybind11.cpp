/* saxpy_pybind11.cpp - y = a x + y on the caller's stream, for arrays of any library, by cai_pybind11.h
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_pybind11.h"
#include "saxpy_device.h"

static cai::event_pool pool;
static saxpy_device *device;

static void saxpy(float a, cai::array x, cai::array y, cai_py::stream s)
{
    const pybind11::gil_scoped_release without_gil;
    cai::call(cai_expect, &x, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE);
    cai::call(cai_expect, &y, "y", CAI_FLOAT32, CAI_ANY_NDIM,
              CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP);
    cai::call(cai_expect_same_shape, &x, "x", &y, "y");
    cai::exchange ex(pool, s.number, x, y);
    cai::call(saxpy_device_launch, device, a, &x, 1.0f, &y, s.number);
    ex.finish();
}

PYBIND11_MODULE(saxpy_pybind11, m)
{
    cai_error err;
    cai_py::open(m);
    device = saxpy_device_open();
    if (pool.open(saxpy_device_cuda(device), 64, 0, &err)) throw cai::error(err);
    m.def("saxpy", saxpy);
}
