/* caster_interpreters.h - what test_caster_interpreters.py binds by each caster: several interpreters open one module
 * SPDX-License-Identifier: MIT
 * Counts are of all interpreters. */
#pragma once
#include "cai_caster.h"
#include "saxpy_device.h"
#include <atomic>

namespace several {
inline std::atomic<int64_t> made, released;

/* One for all interpreters, which may be the first at the same time. */
inline saxpy_device *device()
{
    static saxpy_device *const opened = saxpy_device_open();
    return opened;
}

inline const cai_cuda *cuda()
{
    return saxpy_device_cuda(device());
}

inline void forget(cai_array *array)
{
    array->release = nullptr;
    ++released;
}

inline void make(cai::array &to, int64_t size, uint64_t stream)
{
    static float memory[6];
    cai::call(cai_array_init, &to, CAI_FLOAT32, 1, &size, nullptr, memory);
    to.memory = CAI_MEMORY_DEVICE;
    to.device = 0;
    cai_array_own(&to, forget, nullptr);
    ++made;
    cai::call(cai_stream_export, &to, cai_caster::pool(), stream, nullptr, 0u);
}

template <class Array> int64_t exchange(Array &x, uint64_t stream)
{
    const int64_t size = x.size;
    cai::exchange ex(cai_caster::pool(), stream, x);
    ex.finish();
    return size;
}

/* Runs what is queued, and gives back what waited for it. */
inline void run()
{
    (void)saxpy_device_run(device());
    cai::call(cai_keepalive_poll, cai_caster::pool(), nullptr);
}

/* The same for what waits for nothing that is known, as a tensor that nobody has taken. */
inline void drain()
{
    cai::call(cai_keepalive_drain, cai_caster::pool());
}

/* Arrays of this interpreter that its objects own. */
inline int64_t alive()
{
    cai_caster::module_state *const of = cai_caster::find_state();
    if (!of) return -1;
    cai_python_drain(&of->py);
    return of->py.home->holders - 1;
}

inline uint64_t pool()
{
    return reinterpret_cast<uintptr_t>(&cai_caster::pool());
}

inline int64_t states()
{
    int64_t count = 0;
    for (const cai_caster::module_state *at = cai_caster::states; at; at = at->next) ++count;
    return count;
}

inline int64_t lost()
{
    return made - released;
}
} // namespace several
