/* nvidia.c - one table of hooks for NVIDIA's libraries: cuTensorNet, cuStateVec, cuDSS and nvJPEG
 * SPDX-License-Identifier: MIT
 *
 * Their allocators are pairs of functions of the same type as those of the table. So the table is the adapter.
 * This program uses the headers of the libraries that it finds, and nothing else of them: it calls through
 * their structs into the simulated CUDA. Exit status 77: no header was found.
 *
 * A manager does not know this memory: there is no second try, no deferred free, no report of leaks. The memory is
 * freed in the order of the stream that the library names, here by cudaFreeAsync. */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_emm.h"

#include "cai_sim.h"

#include <stdio.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<cuda_runtime_api.h>) /* which all of them include */
#if __has_include(<cutensornet.h>)
#include <cutensornet.h>
#define HAVE_CUTENSORNET
#endif
#if __has_include(<custatevec.h>)
#include <custatevec.h>
#define HAVE_CUSTATEVEC
#endif
#if __has_include(<cudss.h>)
#include <cudss.h>
#define HAVE_CUDSS
#endif
#if __has_include(<nvjpeg.h>)
#include <nvjpeg.h>
#define HAVE_NVJPEG
#endif
#endif
#endif

typedef int (*allocate)(void *ctx, void **ptr, size_t size, struct CUstream_st *stream);
typedef int (*deallocate)(void *ctx, void *ptr, size_t size, struct CUstream_st *stream);

static cai_sim *sim;
static struct CUstream_st *stream;
static int32_t found, failures;

/* What the library does with its allocator. */
static inline void call(const char *library, int32_t major, int32_t minor, void *ctx, allocate a, deallocate d)
{
    void *ptr = NULL;
    cai_sim_log_clear(sim);
    found++;
    if (a(ctx, &ptr, 1000, stream) || !cai_sim_bytes(sim, (uint64_t)(uintptr_t)ptr) || d(ctx, ptr, 1000, stream))
        failures++;
    printf("%s %d.%d\n%s", library, (int)major, (int)minor, cai_sim_log(sim));
}

static inline void skip(const char *library)
{
    printf("%s: skipped: its header was not found\n", library);
}

/* -------------------------------------------------- DeviceMemHandler: ctx, device_alloc, device_free, name */

static void use_cutensornet(const cai_emm_hooks *hooks)
{
#if defined(HAVE_CUTENSORNET)
    cutensornetDeviceMemHandler_t handler;
    memcpy(&handler, &hooks->ctx, sizeof handler); /* then cutensornetSetDeviceMemHandler(handle, &handler) */
    call("cuTensorNet", CUTENSORNET_MAJOR, CUTENSORNET_MINOR, handler.ctx, handler.device_alloc,
         handler.device_free);
#else
    (void)hooks;
    skip("cuTensorNet");
#endif
}

static void use_custatevec(const cai_emm_hooks *hooks)
{
#if defined(HAVE_CUSTATEVEC)
    custatevecDeviceMemHandler_t handler;
    memcpy(&handler, &hooks->ctx, sizeof handler); /* then custatevecSetDeviceMemHandler(handle, &handler) */
    call("cuStateVec", CUSTATEVEC_VER_MAJOR, CUSTATEVEC_VER_MINOR, handler.ctx, handler.device_alloc,
         handler.device_free);
#else
    (void)hooks;
    skip("cuStateVec");
#endif
}

static void use_cudss(const cai_emm_hooks *hooks)
{
#if defined(HAVE_CUDSS)
    cudssDeviceMemHandler_t handler;
    memcpy(&handler, &hooks->ctx, sizeof handler); /* then cudssSetDeviceMemHandler(handle, &handler) */
    call("cuDSS", CUDSS_VERSION_MAJOR, CUDSS_VERSION_MINOR, handler.ctx, handler.device_alloc,
         handler.device_free);
#else
    (void)hooks;
    skip("cuDSS");
#endif
}

/* ------------------------------------------------------------ nvJPEG: the pair and its ctx, in another order */

#if defined(HAVE_NVJPEG)
/* Pinned memory: nvJPEG has a stream where the table has flags. Only for tables with host_alloc; where it is
 * NULL, give nvJPEG no pinned allocator, and it takes CUDA's functions itself. */
static int pinned_malloc(void *ctx, void **ptr, size_t size, cudaStream_t s)
{
    const cai_emm_hooks *hooks = (const cai_emm_hooks *)ctx;
    (void)s;
    return hooks->host_alloc(hooks->ctx, ptr, size, 0);
}

static int pinned_free(void *ctx, void *ptr, size_t size, cudaStream_t s)
{
    const cai_emm_hooks *hooks = (const cai_emm_hooks *)ctx;
    return hooks->host_free(hooks->ctx, ptr, size, s);
}
#endif

static void use_nvjpeg(cai_emm_hooks *hooks)
{
#if defined(HAVE_NVJPEG)
    nvjpegDevAllocatorV2_t device;
    nvjpegPinnedAllocatorV2_t pinned;
    device.dev_malloc = hooks->device_alloc;
    device.dev_free = hooks->device_free;
    device.dev_ctx = hooks->ctx;
    pinned.pinned_malloc = pinned_malloc;
    pinned.pinned_free = pinned_free;
    pinned.pinned_ctx = hooks; /* which lives as long as the decoder */
    /* then nvjpegCreateExV2(backend, &device, hooks->host_alloc ? &pinned : NULL, 0, &handle) */
    call("nvJPEG", NVJPEG_VER_MAJOR, NVJPEG_VER_MINOR, device.dev_ctx, device.dev_malloc, device.dev_free);
    if (hooks->host_alloc)
        call("nvJPEG, pinned", NVJPEG_VER_MAJOR, NVJPEG_VER_MINOR, pinned.pinned_ctx, pinned.pinned_malloc,
             pinned.pinned_free);
#else
    (void)hooks;
    skip("nvJPEG");
#endif
}

int main(void)
{
    cai_emm_pool pool;
    cai_emm_hooks hooks;
    cai_error err;
    uint64_t number;
    sim = cai_sim_create(1);
    if (!sim) return 1;
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    number = cai_sim_stream_create(sim, 1);
    stream = cai_stream_to_cuda(number);
    if (cai_emm_pool_create(&pool, cai_sim_cuda(sim), 0, &err) ||
        cai_emm_hooks_async(&hooks, cai_sim_cuda(sim), &pool, &err)) {
        printf("%s\n", err.message);
        return 1;
    }
    use_cutensornet(&hooks);
    use_custatevec(&hooks);
    use_cudss(&hooks);
    use_nvjpeg(&hooks);
    (void)cai_sim_stream_destroy(sim, number);
    (void)cai_sim_run(sim); /* the frees */
    if (cai_emm_pool_destroy(&pool, &err)) failures++;
    failures += cai_sim_leaks(sim, NULL, 0);
    cai_sim_destroy(sim);
    if (failures) printf("%d failures\n", (int)failures);
    return failures ? 1 : found ? 0 : 77;
}
