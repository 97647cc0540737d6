/* kernels_pybind11.cpp - saxpy(a, x, y, stream) returns a new array, a x + y, by cai_pybind11.h
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_pybind11.h"

#include "cai_emm.h"

#include "saxpy.h"

static cai_emm_pool blocks;
static cai_emm_hooks memory;

static cai_py::array saxpy(float a, cai_py::typed<const float> in1, cai_py::typed<const float> in2, cai_py::stream s)
{
    const pybind11::gil_scoped_release without_gil;
    cai::array &x = in1.expect("x"), &y = in2.expect("y"), z;
    cai::call(cai_expect_same_shape, &x, "x", &y, "y");
    cai::call(cai_emm_array, &z, cai_py::pool(), &memory, CAI_FLOAT32, x.ndim, x.shape, s.number);
    cai::exchange ex(cai_py::pool(), s.number, x, y); // s waits for the libraries that made x and y
    queue_saxpy(a, x, y, z, s.number);
    ex.finish(); // they get their arrays back when s has passed
    return z;
}

PYBIND11_MODULE(kernels_pybind11, m)
{
    cai_py::open(m, cai_cuda_linked);
    cai::call(cai_emm_pool_create, &blocks, cai_py::pool().cuda(), 0); // of device 0
    cai::call(cai_emm_hooks_async, &memory, cai_py::pool().cuda(), &blocks);
    m.def("saxpy", saxpy, pybind11::arg("a"), pybind11::arg("x"), pybind11::arg("y"), pybind11::arg("stream"));
}
