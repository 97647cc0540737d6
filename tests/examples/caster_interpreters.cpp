/* caster_interpreters.cpp - the module of test_caster_interpreters.py, by nanobind or by pybind11
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#if defined(WITH_NANOBIND)
#include "cai_nanobind.h"
namespace py = nanobind;
namespace cai_of = cai_nb;
#define MODULE NB_MODULE(caster_interpreters, m)
#else
#include "cai_pybind11.h"
namespace py = pybind11;
namespace cai_of = cai_py;
#if PYBIND11_VERSION_HEX >= 0x03000000
#define MODULE                                                                                               \
    PYBIND11_MODULE(caster_interpreters, m, py::mod_gil_not_used(), py::multiple_interpreters::per_interpreter_gil())
#else
#define MODULE PYBIND11_MODULE(caster_interpreters, m)
#endif
#endif
#include "caster_interpreters.h"

MODULE
{
    cai_of::open(m, several::cuda());
    m.def("made", [](int64_t size, cai_of::stream s) {
        cai::array array;
        several::make(array, size, s.number);
        return array;
    });
    m.def("size", [](const cai_of::array &x) { return x.size; });
    m.def("exchanged", [](cai_of::stream s, cai_of::array x) { return several::exchange(x, s.number); });
    m.def("new_stream", [] { return saxpy_device_new_stream(several::device()); });
    m.def("run", several::run);
    m.def("drain", several::drain);
    m.def("alive", several::alive);
    m.def("leak", [](py::object x) { x.inc_ref(); });
    m.def("pool", several::pool);
    m.def("states", several::states);
    m.def("lost", several::lost);
}
