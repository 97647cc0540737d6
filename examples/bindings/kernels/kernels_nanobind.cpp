/* kernels_nanobind.cpp - saxpy(a, x, y, stream) returns a new array, a x + y, by cai_nanobind.h
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_nanobind.h"

#include "cai_emm.h"

#include "saxpy.h"

static cai_emm_pool blocks;
static cai_emm_hooks memory;

static cai_nb::array saxpy(float a, cai_nb::typed<const float> in1, cai_nb::typed<const float> in2, cai_nb::stream s)
{
    const nanobind::gil_scoped_release without_gil;
    cai::array &x = in1.expect("x"), &y = in2.expect("y"), z;
    cai::call(cai_expect_same_shape, &x, "x", &y, "y");
    cai::call(cai_emm_array, &z, cai_nb::pool(), &memory, CAI_FLOAT32, x.ndim, x.shape, s.number);
    cai::exchange ex(cai_nb::pool(), s.number, x, y); // s waits for the libraries that made x and y
    queue_saxpy(a, x, y, z, s.number);
    ex.finish(); // they get their arrays back when s has passed
    return z;
}

NB_MODULE(kernels_nanobind, m)
{
    cai_nb::open(m, cai_cuda_linked);
    cai::call(cai_emm_pool_create, &blocks, cai_nb::pool().cuda(), 0); // of device 0
    cai::call(cai_emm_hooks_async, &memory, cai_nb::pool().cuda(), &blocks);
    m.def("saxpy", saxpy, nanobind::arg("a"), nanobind::arg("x"), nanobind::arg("y"), nanobind::arg("stream"));
}
