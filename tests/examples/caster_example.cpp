/* caster_example.cpp - what test_caster.py binds with cai_pybind11.h, without CUDA
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART // calls no CUDA
#include "cai_pybind11.h"

namespace py = pybind11;
using any_array = cai_py::basic_array<CAI_PYTHON_HOST>;

/* (shape, dtype, whether it may be written to): borrowed from the caster for the time of the call. */
static py::tuple facts(const cai::array &x)
{
    py::tuple shape(static_cast<size_t>(x.ndim));
    for (int32_t i = 0; i < x.ndim; ++i) shape[static_cast<size_t>(i)] = x.shape[i];
    return py::make_tuple(shape, cai_dtype_name(x.dtype.code), (x.flags & CAI_WRITABLE) != 0);
}

/* What is no array at all comes here. */
static py::str facts_of_int(long long number)
{
    return py::str("the int {}").format(number);
}

/* The sum of doubles in host memory, without the GIL: the array is ours, and goes before the GIL is back. */
static double total(any_array x)
{
    cai::call(cai_expect, &x, "x", CAI_FLOAT64, 1, 0u);
    if (x.memory != CAI_MEMORY_HOST) throw py::value_error("x is not in host memory");
    py::gil_scoped_release without_gil;
    const any_array mine(std::move(x));
    double sum = 0;
    for (int64_t i = 0; i < mine.shape[0]; ++i) {
        double item;
        memcpy(&item, reinterpret_cast<const char *>(mine.data) + i * mine.strides[0], sizeof item);
        sum += item;
    }
    return sum;
}

PYBIND11_MODULE(caster_example, module)
{
    cai_py::open(module);
    module.def("facts", facts, py::arg("x"));
    module.def("facts", facts_of_int, py::arg("x"));
    module.def("total", total, py::arg("x"));
}
