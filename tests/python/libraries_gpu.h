/* libraries_gpu.h - what libraries.c needs of a GPU beside cai_stream.h: streams, two kernels, copies
 * SPDX-License-Identifier: MIT
 *
 * By the driver's library alone: no toolkit, no runtime. All on device 0, in its primary context. */
#ifndef LIBRARIES_GPU_H
#define LIBRARIES_GPU_H

#include "cai_stream.h"

#include <stdio.h>
#include <string.h>
#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

/* r = a x + y of `n` floats at strides in bytes; and a wait of `ns` nanoseconds. */
static const char gpu_kernels[] =
    ".version 6.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry saxpy(.param .f32 a, .param .u64 n, .param .u64 x, .param .u64 sx,\n"
    "                      .param .u64 y, .param .u64 sy, .param .u64 r, .param .u64 sr)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b32 %i<4>;\n    .reg .f32 %f<4>;\n    .reg .b64 %d<12>;\n"
    "    mov.u32 %i0, %ctaid.x;\n    mov.u32 %i1, %ntid.x;\n    mov.u32 %i2, %tid.x;\n"
    "    cvt.u64.u32 %d1, %i2;\n    mul.wide.u32 %d0, %i0, %i1;\n    add.u64 %d0, %d0, %d1;\n"
    "    ld.param.u64 %d2, [n];\n    setp.ge.u64 %p, %d0, %d2;\n    @%p ret;\n"
    "    ld.param.u64 %d3, [x];\n    ld.param.u64 %d4, [sx];\n    mad.lo.u64 %d3, %d0, %d4, %d3;\n"
    "    ld.param.u64 %d5, [y];\n    ld.param.u64 %d6, [sy];\n    mad.lo.u64 %d5, %d0, %d6, %d5;\n"
    "    ld.param.u64 %d7, [r];\n    ld.param.u64 %d8, [sr];\n    mad.lo.u64 %d7, %d0, %d8, %d7;\n"
    "    ld.param.f32 %f0, [a];\n    ld.f32 %f1, [%d3];\n    ld.f32 %f2, [%d5];\n"
    "    fma.rn.f32 %f3, %f0, %f1, %f2;\n    st.f32 [%d7], %f3;\n    ret;\n"
    "}\n"
    ".visible .entry spin(.param .u64 ns)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d0, [ns];\n    mov.u64 %d1, %globaltimer;\n"
    "again:\n"
    "    mov.u64 %d2, %globaltimer;\n    sub.u64 %d3, %d2, %d1;\n    setp.lt.u64 %p, %d3, %d0;\n"
    "    @%p bra again;\n    ret;\n"
    "}\n";

enum { GPU_NOT_READY = 600, GPU_NOT_SUPPORTED = 801 };

typedef struct gpu {
    cai_cuda_driver driver;
    int tried;    /* `why` says how it went: empty if there is one */
    char why[512];
    uint64_t context;
    void *library, *module, *saxpy, *spin;
    int (*initialize)(unsigned);
    int (*retain)(void **, int);
    int (*stream_create)(void **, unsigned);
    int (*stream_destroy)(void *);
    int (*stream_query)(void *);
    int (*copy_to_host)(void *, unsigned long long, size_t, void *);
    int (*copy_to_device)(unsigned long long, const void *, size_t, void *);
    int (*copy)(unsigned long long, unsigned long long, size_t, void *);
    int copies; /* the simulated driver, which runs no kernel */
    int (*load)(void **, const void *);
    int (*entry)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                  void **, void **);
} gpu;

/* A stretch of floats: where, and how far apart. */
typedef struct gpu_floats {
    uint64_t data;
    int64_t stride;
} gpu_floats;

/* `out` is the address of a pointer to a function: C has no cast from an object's. */
static int gpu_symbol(gpu *g, const char *name, void *out)
{
#if defined(_WIN32)
    FARPROC found = GetProcAddress((HMODULE)g->library, name);
#else
    void *found = dlsym(g->library, name);
#endif
    memcpy(out, &found, sizeof found);
    if (!found) (void)snprintf(g->why, sizeof g->why, "the driver has no %s", name);
    return found ? 0 : -1;
}

static int gpu_symbols(gpu *g)
{
#if defined(_WIN32)
    g->library = (void *)LoadLibraryA("nvcuda.dll");
#else
    g->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
    if (!g->library) {
        (void)snprintf(g->why, sizeof g->why, "the driver's library does not load");
        return -1;
    }
    return gpu_symbol(g, "cuInit", &g->initialize) || gpu_symbol(g, "cuDevicePrimaryCtxRetain", &g->retain) ||
                   gpu_symbol(g, "cuStreamCreate", &g->stream_create) ||
                   gpu_symbol(g, "cuStreamDestroy_v2", &g->stream_destroy) ||
                   gpu_symbol(g, "cuStreamQuery", &g->stream_query) ||
                   gpu_symbol(g, "cuMemcpyDtoHAsync_v2", &g->copy_to_host) ||
                   gpu_symbol(g, "cuMemcpyHtoDAsync_v2", &g->copy_to_device) ||
                   gpu_symbol(g, "cuMemcpyDtoDAsync_v2", &g->copy) ||
                   gpu_symbol(g, "cuModuleLoadData", &g->load) ||
                   gpu_symbol(g, "cuModuleGetFunction", &g->entry) ||
                   gpu_symbol(g, "cuLaunchKernel", &g->launch)
               ? -1
               : 0;
}

/* Only the simulated driver exports this. */
static int gpu_is_simulated(const gpu *g)
{
#if defined(_WIN32)
    return GetProcAddress((HMODULE)g->library, "cai_driver_sim") != NULL;
#else
    return dlsym(g->library, "cai_driver_sim") != NULL;
#endif
}

/* 0, or -1: `why` says why there is none. A failure is remembered. */
static int gpu_open(gpu *g)
{
    const cai_cuda *cuda = &g->driver.cuda;
    cai_error err;
    void *primary = NULL;
    int32_t code;
    if (g->tried) return g->why[0] ? -1 : 0;
    g->tried = 1;
    (void)snprintf(g->why, sizeof g->why, "no GPU");
    if (cai_cuda_load(&g->driver, NULL, &err)) {
        (void)snprintf(g->why, sizeof g->why, "no GPU: %s", err.message);
        return -1;
    }
    if (gpu_symbols(g)) return -1;
    g->copies = gpu_is_simulated(g);
    code = g->initialize(0);
    if (!code) code = g->retain(&primary, 0); /* where no library has made it active yet */
    g->context = (uint64_t)(uintptr_t)primary;
    if (code) (void)snprintf(g->why, sizeof g->why, "no GPU: context of device 0: CUDA error %d", (int)code);
    if (code) return -1;
    code = cuda->context_push(cuda->self, g->context);
    if (!code) {
        code = g->load(&g->module, gpu_kernels);
        if (!code) code = g->entry(&g->saxpy, g->module, "saxpy");
        if (!code) code = g->entry(&g->spin, g->module, "spin");
        (void)cuda->context_pop(cuda->self);
    }
    if (code) (void)snprintf(g->why, sizeof g->why, "the kernels do not load: CUDA error %d", (int)code);
    else g->why[0] = 0;
    return code ? -1 : 0;
}

/* All that follows is called between these two, on a GPU that is open. */
static int32_t gpu_enter(gpu *g)
{
    return g->driver.cuda.context_push(g->driver.cuda.self, g->context);
}

static void gpu_leave(gpu *g)
{
    (void)g->driver.cuda.context_pop(g->driver.cuda.self);
}

/* 1 and 2 are the driver's numbers of the default streams, too. */
static void *gpu_stream(uint64_t stream)
{
    return (void *)(uintptr_t)stream;
}

/* In place of a x + y where no kernel runs: the first half of x, the second half of y. */
static int32_t gpu_copy_halves(gpu *g, size_t n, gpu_floats x, gpu_floats y, gpu_floats r, uint64_t stream)
{
    const size_t first = n / 2 * sizeof(float), second = n * sizeof(float) - first;
    const int64_t step = (int64_t)sizeof(float);
    int32_t code = 0;
    if (n > 1 && (x.stride != step || y.stride != step || r.stride != step)) return GPU_NOT_SUPPORTED;
    if (first) code = g->copy(r.data, x.data, first, gpu_stream(stream));
    if (code || r.data == y.data) return code;
    return g->copy(r.data + first, y.data + first, second, gpu_stream(stream));
}

static int32_t gpu_run_saxpy(gpu *g, float a, int64_t n, gpu_floats x, gpu_floats y, gpu_floats r,
                             uint64_t stream)
{
    void *parameters[8];
    parameters[0] = &a;
    parameters[1] = &n;
    parameters[2] = &x.data;
    parameters[3] = &x.stride;
    parameters[4] = &y.data;
    parameters[5] = &y.stride;
    parameters[6] = &r.data;
    parameters[7] = &r.stride;
    if (n <= 0) return 0;
    if (g->copies) return gpu_copy_halves(g, (size_t)n, x, y, r, stream);
    return g->launch(g->saxpy, (unsigned)((n + 255) / 256), 1, 1, 256, 1, 1, 0, gpu_stream(stream),
                     parameters, NULL);
}

static int32_t gpu_run_spin(gpu *g, uint64_t nanoseconds, uint64_t stream)
{
    void *parameters[1];
    parameters[0] = &nanoseconds;
    if (!nanoseconds || g->copies) return 0;
    return g->launch(g->spin, 1, 1, 1, 1, 1, 1, 0, gpu_stream(stream), parameters, NULL);
}

static int gpu_computes(const gpu *g)
{
    return !g->copies;
}

static int32_t gpu_new_stream(gpu *g, uint64_t *stream)
{
    void *made = NULL;
    const int32_t code = g->stream_create(&made, 1); /* not ordered with the legacy stream */
    *stream = (uint64_t)(uintptr_t)made;
    return code;
}

static void gpu_drop_stream(gpu *g, uint64_t stream)
{
    (void)g->stream_destroy(gpu_stream(stream));
}

/* It passes without us. */
static void gpu_pass_time(gpu *g)
{
    (void)g;
}

static int32_t gpu_query(gpu *g, uint64_t stream)
{
    return g->stream_query(gpu_stream(stream));
}

/* Both wait until it is done. */
static int32_t gpu_to_host(gpu *g, void *to, uint64_t from, size_t bytes, uint64_t stream)
{
    const int32_t code = g->copy_to_host(to, from, bytes, gpu_stream(stream));
    return code ? code : g->driver.cuda.stream_synchronize(g->driver.cuda.self, stream);
}

static int32_t gpu_to_device(gpu *g, uint64_t to, const void *from, size_t bytes, uint64_t stream)
{
    const int32_t code = g->copy_to_device(to, from, bytes, gpu_stream(stream));
    return code ? code : g->driver.cuda.stream_synchronize(g->driver.cuda.self, stream);
}

#endif
