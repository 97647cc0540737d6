// cai_rmm.hpp - hooks of cai_emm.h as a memory resource of RMM
// SPDX-License-Identifier: MIT
//     cai_rmm memory(hooks);             // hooks: copied; outlives what is allocated
//     auto resource = memory.resource(); // an rmm::mr::callback_memory_resource
// One for each device, current in every call, as RMM wants it anyway. Memory is aligned to 256 bytes.
#ifndef CAI_RMM_HPP
#define CAI_RMM_HPP
#include "cai_emm.h"
#include <rmm/error.hpp>
#if __has_include(<rmm/mr/callback_memory_resource.hpp>)
#include <rmm/mr/callback_memory_resource.hpp>
#else
#include <rmm/mr/device/callback_memory_resource.hpp>
#endif
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

struct cai_rmm {
    cai_emm_hooks hooks; // up to its name
    std::atomic<std::uint64_t> failed_frees{0};

    explicit cai_rmm(const cai_emm_hooks &given) : hooks()
    {
        cai_error err;
        if (cai_emm_hooks_check(&given, &err)) throw rmm::bad_alloc(err.message);
        std::memcpy(&hooks, &given, offsetof(cai_emm_hooks, initialize));
    }
    rmm::mr::callback_memory_resource resource()
    {
        return {[](std::size_t size, auto s, void *arg) { return allocate(size, number(s, 0), arg); },
                [](void *ptr, std::size_t size, auto s, void *arg) { give(ptr, size, number(s, 0), arg); },
                this, this};
    }

private:
    static CUstream_st *named(CUstream_st *s) { return cai_stream_to_cuda(CAI_STREAM(s)); } // not NULL
    template <class S> static auto number(S s, int) -> decltype(named(s.value())) { return named(s.value()); }
    template <class S> static auto number(S s, long) -> decltype(named(s.get())) { return named(s.get()); }

    static void *allocate(std::size_t size, CUstream_st *stream, void *self)
    {
        const cai_emm_hooks &h = static_cast<cai_rmm *>(self)->hooks;
        void *ptr = nullptr;
        cai_error err;
        if (!size) return nullptr;
        const cai_status status = cai_cuda_status(h.device_alloc(h.ctx, &ptr, size, stream), h.name, &err);
        if (status && err.native == 2) throw rmm::out_of_memory(err.message); // what RMM's adaptors try again
        if (status || !ptr) throw rmm::bad_alloc(status ? err.message : "device_alloc gave NULL");
        return ptr;
    }
    // deallocate is noexcept. Error 4 is CUDA's answer while the process ends.
    static void give(void *ptr, std::size_t size, CUstream_st *stream, void *self)
    {
        const cai_emm_hooks &h = static_cast<cai_rmm *>(self)->hooks;
        const int error = ptr ? h.device_free(h.ctx, ptr, size, stream) : 0;
        if (!error || error == 4) return;
        ++static_cast<cai_rmm *>(self)->failed_frees;
        std::fprintf(stderr, "cai_rmm: %s: free of %zu bytes: CUDA error %d\n", h.name, size, error);
    }
};
#endif
