/* caster_more.h - what the tests of the casters have beside the functions that they bind, on the saxpy's device
 * SPDX-License-Identifier: MIT
 * At the end of Python what is left is printed: arrays, and what the simulation calls leaks. */
#pragma once
#include "cai_caster.h"
#include "cai_sim.h"
#include "saxpy_device.h"
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace more { namespace {
float memory[6]; // the simulated device's kernels work on it
int64_t released, early; // early: with a kernel still queued
saxpy_device *device;
cai_caster::module_state *state;
cai_python_home *home; // of the state
uint64_t streams[32];
int stream_count;

void forget(cai_array *array)
{
    array->release = nullptr;
    ++released;
}

/* An array of the memory with work pending on a stream. */
void make(cai::array &to, int64_t size, uint64_t stream, bool owned)
{
    cai::call(cai_array_init, &to, CAI_FLOAT32, 1, &size, nullptr, memory);
    if (owned) cai_array_own(&to, forget, nullptr);
    cai::call(cai_stream_export, &to, cai_caster::pool(), stream, nullptr, 0u);
}

void forget_written(cai_array *array)
{
    if (saxpy_device_queued(device)) ++early;
    forget(array);
}

/* An array that a queued kernel writes. */
void make_written(cai::array &to, uint64_t stream)
{
    const int64_t size = 6;
    cai::call(cai_array_init, &to, CAI_FLOAT32, 1, &size, nullptr, memory);
    cai::call(saxpy_device_launch, device, 1.0f, &to, 1.0f, &to, stream);
    cai_array_own(&to, forget_written, nullptr);
    cai::call(cai_stream_export, &to, cai_caster::pool(), stream, nullptr, 0u);
}

cai_sim *simulation()
{
    return static_cast<cai_sim *>(saxpy_device_cuda(device)->self);
}

/* Only a stream of the calling thread runs. */
int32_t synchronize(uint64_t stream)
{
    return cai_sim_stream_synchronize(simulation(), stream);
}

int64_t lose(cai::array &array)
{
    const cai::array gone(std::move(array));
    return gone.size;
}

uint64_t thread_of(const cai_array &array)
{
    return array.thread;
}

/* Begins a capture, or ends it. */
int32_t capture(uint64_t stream, bool begins)
{
    cai_sim *const sim = simulation();
    uint64_t graph = 0;
    if (begins) return cai_sim_capture_begin(sim, stream, 2);
    const int32_t ended = cai_sim_capture_end(sim, stream, &graph);
    return ended ? ended : cai_sim_graph_destroy(sim, graph);
}

/* An array in host memory, whose numbers it owns. */
cai::array numbers(int64_t size)
{
    std::vector<float> kept;
    for (int64_t i = 0; i < size; ++i) kept.push_back(static_cast<float>(i));
    cai::array made;
    cai::call(cai_array_init, &made, CAI_FLOAT32, 1, &size, nullptr, kept.data());
    made.memory = CAI_MEMORY_HOST;
    made.own(std::move(kept));
    return made;
}

/* What other code in C does with the exchange of the type. */
PyObject *adopt_borrowed()
{
    const int64_t size = 6;
    cai_array made;
    cai_error why;
    if (cai_array_init(&made, CAI_FLOAT32, 1, &size, nullptr, memory, &why)) return cai_python_raise(&why);
    made.memory = CAI_MEMORY_HOST;
    return cai_caster::exchange.adopt(state->type, &made);
}

/* An array whose owner frees in the order of its stream, as cai_emm.h does. */
void make_ordered(cai::array &to, uint64_t stream)
{
    make(to, 6, stream, true);
    to.flags |= CAI_ORDERED_FREE;
}

/* A platform without default streams (HIP before ROCm 6.2). */
void set_no_defaults(bool on)
{
    cai_cuda *const cuda = const_cast<cai_cuda *>(cai_caster::pool().cuda());
    cuda->flags = on ? uint32_t{CAI_CUDA_NO_DEFAULT_STREAMS} : 0U;
}

int64_t alive()
{
    if (!home->closed) cai_python_drain(&state->py);
    return home->holders - !home->closed;
}

void poll()
{
    cai::call(cai_keepalive_poll, cai_caster::pool(), nullptr);
}

uint64_t new_stream()
{
    return streams[stream_count++] = saxpy_device_new_stream(device);
}

void report()
{
    cai_error why;
    if (!home->closed) std::fputs("the state has not ended\n", stderr);
    if (alive()) std::fprintf(stderr, "%d arrays are alive\n", static_cast<int>(alive()));
    if (cai_caster::pool().close(&why)) std::fprintf(stderr, "%s\n", why.message);
    while (stream_count) saxpy_device_drop_stream(device, streams[--stream_count]);
    std::fputs(saxpy_device_leaks(device), stderr);
}

void open(saxpy_device *opened)
{
    device = opened;
    state = cai_caster::find_state();
    home = state->py.home;
    ++home->guests; // it is looked at when the interpreter has ended
    if (Py_AtExit(report)) std::fputs("the end has no report\n", stderr);
}
/* An exception between begin and finish, or one after it. */
template <class Array, class Stream> void throws(Array x, Stream s, bool ends)
{
    cai::exchange ex(cai_caster::pool(), s.number, x);
    if (ends) ex.finish();
    throw std::runtime_error("thrown between begin and finish");
}

template <class Array, class Stream, class WithoutGil> void throws_in_c(Array x, Stream s)
{
    const WithoutGil without_gil;
    cai::exchange ex(cai_caster::pool(), s.number, x);
    cai::call(cai_expect, &x, "x", CAI_FLOAT64, 1, 0u);
}

template <class Array> int64_t sum_of_sizes(std::vector<Array> list)
{
    int64_t size = 0;
    std::vector<Array> moved;
    for (Array &item : list) moved.push_back(std::move(item));
    for (const Array &item : moved) size += item.size;
    return size;
}

template <class Array, class Stream> Array made(int64_t size, Stream s, bool owned)
{
    Array array;
    make(array, size, s.number, owned);
    return array;
}

template <class Array, class Stream> Array written(Stream s)
{
    Array array;
    make_written(array, s.number);
    return array;
}

template <class Array, class Stream> Array ordered(Stream s)
{
    Array array;
    make_ordered(array, s.number);
    return array;
}

/* An argument that work of the stream uses, as result: the way of docs/python.md. */
template <class Array, class Stream> Array used(Array x, Stream s)
{
    cai::array seen = x.borrow();
    cai::exchange ex(cai_caster::pool(), s.number, seen);
    ex.finish();
    cai::call(cai_stream_export, &x, cai_caster::pool(), s.number, nullptr, 0u);
    return x;
}

template <class Array> Array like(const Array &x)
{
    Array array;
    make(array, x.size, x.stream, true);
    return array;
}

/* What pybind11 and nanobind bind in the same words. */
template <class Array, class Host, class Stream, class WithoutGil, class Module> void bind(Module &m)
{
    m.def("only", [](const Array &x) { return x.size; });
    m.def("host", [](const Host &x) { return x.size; });
    m.def("sizes", sum_of_sizes<Host>);
    m.def("stream", [](Stream s) { return s.number; });
    m.def("made", made<Array, Stream>);
    m.def("ordered", ordered<Array, Stream>);
    m.def("written", written<Array, Stream>);
    m.def("like", like<Array>);
    m.def("used", used<Array, Stream>);
    m.def("by_value", [](Host x) { return lose(x); });
    m.def("thread", [](const Array &x) { return thread_of(x); });
    m.def("synchronize", synchronize);
    m.def("capture", capture);
    m.def("early", [] { return early; });
    m.def("numbers", [](int64_t size) { return Array(numbers(size)); });
    m.def("same", [](Array x) { return x; });
    m.def("throws", throws<Array, Stream>);
    m.def("throws_in_c", throws_in_c<Array, Stream, WithoutGil>);
    m.def("memory", [] { return reinterpret_cast<uintptr_t>(memory); });
    m.def("fill", [](float value) { for (float &item : memory) item = value; });
    m.def("first", [] { return memory[0]; });
    m.def("new_stream", new_stream);
    m.def("run", [] { return saxpy_device_run(device); });
    m.def("calls", [] { return std::string(saxpy_device_calls(device)); });
    m.def("released", [] { return released; });
    m.def("poll", poll);
    m.def("alive", alive);
    m.def("set_no_defaults", set_no_defaults);
}
}} // namespace more
