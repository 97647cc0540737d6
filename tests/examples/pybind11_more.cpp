/* What test_pybind11.py asks of cai_pybind11.h beside the saxpy of the example. Both modules are in one library: the
 * example is imported first, and has opened the device. */
#include "saxpy_pybind11.cpp"
#include "caster_more.h"
#include <optional>
#include <pybind11/stl.h>
#include <stdexcept>

namespace py = pybind11;
using host_array = cai_py::basic_array<CAI_PYTHON_HOST>;

static cai::array made(int64_t size, cai_py::stream s, bool owned)
{
    cai::array array;
    more::make(array, size, s.number, owned);
    return array;
}

/* An exception between begin and finish, or one after it. */
static void throws(cai::array x, cai_py::stream s, bool ends)
{
    cai::exchange ex(pool, s.number, x);
    if (ends) ex.finish();
    throw std::runtime_error("thrown between begin and finish");
}

static void throws_in_c(cai::array x, cai_py::stream s)
{
    const py::gil_scoped_release without_gil;
    cai::exchange ex(pool, s.number, x);
    cai::call(cai_expect, &x, "x", CAI_FLOAT64, 1, 0u);
}

static int64_t sum_of_sizes(std::vector<host_array> list)
{
    int64_t size = 0;
    std::vector<host_array> moved;
    for (host_array &item : list) moved.push_back(std::move(item));
    for (const host_array &item : moved) size += item.size;
    return size;
}

static std::vector<cai::array> pair(cai_py::stream s)
{
    std::vector<cai::array> arrays;
    for (int64_t size : {6, 3}) arrays.push_back(made(size, s, true));
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
    m.def("only", [](const cai::array &x) { return x.size; });
    m.def("pointer", [](cai::array *x) { return x ? x->size : -1; });
    m.def("optional", [](std::optional<cai::array> x) { return x ? x->size : -1; }, py::arg("x") = py::none());
    m.def("host", [](const host_array &x) { return x.size; });
    m.def("sizes", sum_of_sizes);
    m.def("stream", [](cai_py::stream s) { return s.number; });
    m.def("made", made);
    m.def("pair", pair);
    m.def("same", [](cai::array x) { return x; });
    m.def("throws", throws);
    m.def("throws_in_c", throws_in_c);
    m.def("memory", [] { return reinterpret_cast<uintptr_t>(more::memory); });
    m.def("fill", [](float value) { for (float &item : more::memory) item = value; });
    m.def("first", [] { return more::memory[0]; });
    m.def("new_stream", more::new_stream);
    m.def("run", [] { return saxpy_device_run(device); });
    m.def("calls", [] { return std::string(saxpy_device_calls(device)); });
    m.def("released", [] { return more::released; });
    m.def("poll", more::poll);
    m.def("alive", more::alive);
}

PYBIND11_MODULE(pybind11_more, m)
{
    more::open(device, &py::detail::cai_state().py, &pool);
    bind_more(m);
}
