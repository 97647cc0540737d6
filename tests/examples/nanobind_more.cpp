/* What test_nanobind.py asks of cai_nanobind.h beside the saxpy of the example. Both modules are in one library: the
 * example is imported first, and has opened the device. */
#include "saxpy_nanobind.cpp"
#include "caster_more.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using host_array = cai_nb::basic_array<CAI_PYTHON_HOST>;

static void bind_more(nb::module_ &m)
{
    m.def("which", [](const cai_nb::array &x) { return "array " + std::to_string(x.size); });
    m.def("which", [](const std::string &text) { return "text " + text; });
    m.def("which", [](nb::object) { return std::string("object"); });
    m.def("pointer", [](cai_nb::array *x) { return x ? x->size : -1; }, nb::arg("x").none());
    m.def("optional", [](std::optional<cai_nb::array> x) { return x ? x->size : -1; }, nb::arg("x").none());
    m.def("made_optional", [](std::optional<cai_nb::stream> s) { return more::made<cai_nb::array>(6, *s, true); }, nb::arg("s").none());
    m.def("adopt_borrowed", [] {
        PyObject *const made = more::adopt_borrowed();
        if (!made) throw nb::python_error();
        return nb::steal<nb::object>(made);
    });
    m.def("drain", cai_nb::drain);
    m.def("rank", [](const cai_nb::array &x) { return x.ndim == 1 ? "1-D" : throw nb::next_overload(); });
    m.def("rank", [](const cai_nb::array &x) { return x.ndim == 2 ? "2-D" : throw nb::next_overload(); });
    m.def("typed", [](cai_nb::typed<const float, 2> x) { return x.expect("x").size; });
    m.def("writes", [](cai_nb::typed<double> x) { return x.expect("x").size; });
    m.def("reference", [](const cai_nb::array &x) { return x.size; }, nb::arg("x").none());
}

NB_MODULE(nanobind_more, m)
{
    more::open(device);
    more::bind<cai_nb::array, host_array, cai_nb::stream, nb::gil_scoped_release>(m);
    bind_more(m);
}
