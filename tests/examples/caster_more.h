/* caster_more.h - what the tests of the casters have beside the functions that they bind, on the saxpy's device
 * SPDX-License-Identifier: MIT
 * At the end of Python what is left is printed: arrays, and what the simulation calls leaks. */
#pragma once
#include "cai.hpp"
#include "cai_python.h"
#include "saxpy_device.h"
#include <cstdio>

namespace more { namespace {
float memory[6]; // the simulated device's kernels work on it
int64_t released;
saxpy_device *device;
cai_python *py;
cai::stream_pool *events;
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
    cai::call(cai_stream_export, &to, *events, stream, nullptr, 0u);
}

int64_t alive()
{
    cai_python_drain(py);
    return py->home->holders - 1;
}

void poll()
{
    cai::call(cai_keepalive_poll, *events, nullptr);
}

uint64_t new_stream()
{
    return streams[stream_count++] = saxpy_device_new_stream(device);
}

void report()
{
    cai_error why;
    if (alive()) std::fprintf(stderr, "%d arrays are alive\n", static_cast<int>(alive()));
    if (events->close(&why)) std::fprintf(stderr, "%s\n", why.message);
    while (stream_count) saxpy_device_drop_stream(device, streams[--stream_count]);
    std::fputs(saxpy_device_leaks(device), stderr);
}

void open(saxpy_device *a, cai_python *b, cai::stream_pool *c)
{
    device = a;
    py = b;
    events = c;
    if (Py_AtExit(report)) std::fputs("the end has no report\n", stderr);
}
}} // namespace more
