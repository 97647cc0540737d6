// bench_nanobind.cpp - the peer of tests/python/bench: an ndarray argument of nanobind
// SPDX-License-Identifier: MIT
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(bench_nanobind, m)
{
    m.def("nothing", [](nb::handle) {});
    m.def("take", [](nb::ndarray<>) {});
    m.def("take_ro", [](nb::ndarray<nb::ro>) {});
}
