/* What test_nanobind.py asks of cai_nanobind.h beside the saxpy of the example. Both modules are in one library: the
 * example is imported first, and has opened the device. */
#include "saxpy_nanobind.cpp"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <stdexcept>

namespace nb = nanobind;
using host_array = cai_nb::basic_array<CAI_PYTHON_HOST>;

static float memory[6]; // the simulated device's kernels work on it
static int64_t released;
static void forget(cai_array *array)
{
    array->release = nullptr;
    ++released;
}

static cai_nb::array made(int64_t size, cai_nb::stream s, bool owned)
{
    cai_nb::array array;
    cai_error err;
    if (cai_array_init(&array, CAI_FLOAT32, 1, &size, nullptr, memory, &err)) cai_nb::raise(err);
    if (owned) cai_array_own(&array, forget, nullptr);
    if (cai_stream_export(&array, &pool, s.number, nullptr, 0, &err)) cai_nb::raise(err);
    return array;
}

/* An exception between begin and finish, which a user's own code throws: finish orders all the same. */
static void throws(cai_nb::array x, cai_nb::stream s)
{
    cai_array *const io[1] = {&x};
    cai_exchange ex;
    cai_error err;
    if (cai_exchange_begin(&ex, &pool, io, 1, s.number, &err)) cai_nb::raise(err);
    try {
        throw std::runtime_error("thrown between begin and finish");
    } catch (...) {
        if (cai_exchange_finish(&ex, CAI_ERR_ARGUMENT, io, 1, nullptr)) throw;
        throw std::logic_error("finish forgot the failure");
    }
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
    m.def("memory", [] { return reinterpret_cast<uintptr_t>(memory); });
    m.def("new_stream", [] { return saxpy_device_new_stream(device); });
    m.def("run", [] { return saxpy_device_run(device); });
    m.def("calls", [] { return std::string(saxpy_device_calls(device)); });
    m.def("released", [] { return released; });
    m.def("poll", [] { cai_error err; if (cai_keepalive_poll(&pool, nullptr, &err)) cai_nb::raise(err); });
    m.def("alive", [] { cai_python_drain(&nb::cai_data->py); return nb::cai_data->py.home->holders - 1; });
}

NB_MODULE(nanobind_more, m)
{
    bind_more(m);
}
