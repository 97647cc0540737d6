/* What test_pybind11.py asks of cai_pybind11.h beside the saxpy of the example. Both modules are in one library: the
 * example is imported first, and has opened the device. */
#include "saxpy_pybind11.cpp"
#include "caster_more.h"
#include <optional>
#include <pybind11/stl.h>

namespace py = pybind11;
using host_array = cai_py::basic_array<CAI_PYTHON_HOST>;

static std::vector<cai::array> pair(cai_py::stream s)
{
    std::vector<cai::array> arrays;
    for (int64_t size : {6, 3}) arrays.push_back(more::made<cai::array>(size, s, true));
    return arrays;
}

/* Overloads by dtype: what has another one goes to the next. */
static std::string which(const cai::array &x)
{
    if (x.dtype.code != CAI_FLOAT32) throw py::reference_cast_error("another dtype");
    return "float32 " + std::to_string(x.size);
}

static void bind_more(py::module_ &m)
{
    m.def("which", which);
    m.def("which", [](const cai::array &x) { return "array " + std::to_string(x.size); });
    m.def("which", [](const std::string &text) { return "text " + text; });
    m.def("which", [](py::none) { return "None"; });
    m.def("which", [](py::object) { return "object"; });
    m.def("pointer", [](cai::array *x) { return x ? x->size : -1; });
    m.def("optional", [](std::optional<cai::array> x) { return x ? x->size : -1; }, py::arg("x") = py::none());
    m.def("made_optional", [](std::optional<cai_py::stream> s) { return more::made<cai::array>(6, *s, true); }, py::arg("s") = py::none());
    m.def("adopt_borrowed", [] {
        PyObject *const made = more::adopt_borrowed();
        if (!made) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(made);
    });
    m.def("drain", cai_py::drain);
    m.def("rank", [](const cai::array &x) { return x.ndim == 1 ? "1-D" : throw py::reference_cast_error(); });
    m.def("rank", [](const cai::array &x) { return x.ndim == 2 ? "2-D" : throw py::reference_cast_error(); });
    m.def("typed", [](cai_py::typed<const float, 2> x) { return x.expect("x").size; });
    m.def("writes", [](cai_py::typed<double> x) { return x.expect("x").size; });
    m.def("pair", pair);
}

PYBIND11_MODULE(pybind11_more, m)
{
    more::open(device);
    more::bind<cai::array, host_array, cai_py::stream, py::gil_scoped_release>(m);
    bind_more(m);
}
