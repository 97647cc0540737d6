/* saxpy_nanobind.cpp - y = a x + y on the caller's stream, for arrays of any library, by cai_nanobind.h
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_nanobind.h"
#include "saxpy_device.h"

static cai::event_pool pool;
static saxpy_device *device;

static void saxpy(float a, cai_nb::array x, cai_nb::array y, cai_nb::stream s)
{
    const nanobind::gil_scoped_release without_gil;
    cai::call(cai_expect, &x, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE);
    cai::call(cai_expect, &y, "y", CAI_FLOAT32, CAI_ANY_NDIM,
              CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP);
    cai::call(cai_expect_same_shape, &x, "x", &y, "y");
    cai::exchange ex(pool, s.number, x, y);
    cai::call(saxpy_device_launch, device, a, &x, 1.0f, &y, s.number);
    ex.finish();
}

NB_MODULE(saxpy_nanobind, m)
{
    cai_error err;
    cai_nb::open(m);
    device = saxpy_device_open();
    if (pool.open(saxpy_device_cuda(device), 64, 0, &err)) throw cai::error(err);
    m.def("saxpy", saxpy);
}
