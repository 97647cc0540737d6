/* saxpy_pybind11.cpp - y = a x + y on the caller's stream, for arrays of any library, by cai_pybind11.h
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_pybind11.h"
#include "saxpy_device.h"

static saxpy_device *device;

static void saxpy(float a, cai_py::typed<const float> in, cai_py::typed<float> out, cai_py::stream s)
{
    const pybind11::gil_scoped_release without_gil;
    cai::array &x = in.expect("x"), &y = out.expect("y", CAI_ON_DEVICE | CAI_NO_SELF_OVERLAP);
    cai::call(cai_expect_same_shape, &x, "x", &y, "y");
    cai::exchange ex(cai_py::pool(), s.number, x, y);
    cai::call(saxpy_device_launch, device, a, &x, 1.0f, &y, s.number);
    ex.finish();
}

PYBIND11_MODULE(saxpy_pybind11, m)
{
    device = saxpy_device_open();
    cai_py::open(m, saxpy_device_cuda(device));
    m.def("saxpy", saxpy);
}
