/* What test_nanobind.py asks of cai_nanobind.h beside the saxpy of the example. Both modules are in one library: the
 * example is imported first, and has opened the device. */
#include "saxpy_nanobind.cpp"
#include "caster_more.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <stdexcept>

namespace nb = nanobind;
using host_array = cai_nb::basic_array<CAI_PYTHON_HOST>;

static cai_nb::array made(int64_t size, cai_nb::stream s, bool owned)
{
    cai_nb::array array;
    more::make(array, size, s.number, owned);
    return array;
}

/* An exception between begin and finish, or one after it. */
static void throws(cai_nb::array x, cai_nb::stream s, bool ends)
{
    cai::exchange ex(pool, s.number, x);
    if (ends) ex.finish();
    throw std::runtime_error("thrown between begin and finish");
}

static void throws_in_c(cai_nb::array x, cai_nb::stream s)
{
    const nb::gil_scoped_release without_gil;
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

static void bind_more(nb::module_ &m)
{
    m.def("which", [](const cai_nb::array &x) { return "array " + std::to_string(x.size); });
    m.def("which", [](const std::string &text) { return "text " + text; });
    m.def("which", [](nb::object) { return std::string("object"); });
    m.def("only", [](const cai_nb::array &x) { return x.size; });
    m.def("pointer", [](cai_nb::array *x) { return x ? x->size : -1; }, nb::arg("x").none());
    m.def("optional", [](std::optional<cai_nb::array> x) { return x ? x->size : -1; }, nb::arg("x").none());
    m.def("reference", [](const cai_nb::array &x) { return x.size; }, nb::arg("x").none());
    m.def("host", [](const host_array &x) { return x.size; });
    m.def("sizes", sum_of_sizes);
    m.def("stream", [](cai_nb::stream s) { return s.number; });
    m.def("made", made);
    m.def("same", [](cai_nb::array x) { return x; });
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

NB_MODULE(nanobind_more, m)
{
    more::open(device, &nb::detail::cai_now->py, &pool);
    bind_more(m);
}
