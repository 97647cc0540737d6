// emm_gpu.cu - allocating and freeing on a GPU: by cai_emm.h beside CUDA's own functions
// SPDX-License-Identifier: MIT
//
//     nvcc -O2 -std=c++17 -I. -Iexamples tests/bench/emm_gpu.cu -o emm_gpu && ./emm_gpu [--json]
//
// Five ways in one run: cudaMalloc and cudaFree; cudaMallocAsync and cudaFreeAsync; the header over the
// latter (cai_emm_hooks_async); the header over the pool of examples/memory/pool_plugin.h; that pool's hooks alone.
// Two patterns: one block at a time (pair), and 64 blocks of mixed sizes that live together and go in another
// order (mixed). Host time, best of 7. CUDA's pool keeps its memory (release threshold at its maximum) in all
// ways. Exit status 77: no GPU. emm_gpu.py adds CuPy and PyTorch.

#define CAI_IMPLEMENTATION
#include "cai_manager.h"

#include "examples/memory/pool_plugin.h"

#include "must.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { REPEATS = 7, BLOCKS = 64 };

struct world {
    cudaStream_t stream;
    cai_event_pool streams;
    cai_emm_hooks async, pooled;
    pool_plugin pool;
    cai_manager emm;
};

struct block {
    void *ptr;
    size_t size;
    cai_memory_handle memory;
};

static world w;

// --------------------------------------------------------------------- the ways

static void alloc_plain(block &b)
{
    must(cudaMalloc(&b.ptr, b.size), "cudaMalloc");
}

static void free_plain(block &b)
{
    must(cudaFree(b.ptr), "cudaFree");
}

static void alloc_async(block &b)
{
    must(cudaMallocAsync(&b.ptr, b.size, w.stream), "cudaMallocAsync");
}

static void free_async(block &b)
{
    must(cudaFreeAsync(b.ptr, w.stream), "cudaFreeAsync");
}

static void alloc_emm(block &b)
{
    cai_error err;
    must(cai_manager_alloc(&b.memory, &w.emm, b.size, 0, CAI_STREAM(w.stream), &err), err);
    b.ptr = cai_manager_pointer(&w.emm, b.memory);
}

static void free_emm(block &b)
{
    cai_error err;
    must(cai_manager_free(&w.emm, b.memory, CAI_STREAM(w.stream), &err), err);
}

static void alloc_hooks(block &b)
{
    const int error = w.pooled.device_alloc(w.pooled.ctx, &b.ptr, b.size, w.stream);
    must(static_cast<cudaError_t>(error), "pool_alloc");
}

static void free_hooks(block &b)
{
    const int error = w.pooled.device_free(w.pooled.ctx, b.ptr, b.size, w.stream);
    must(static_cast<cudaError_t>(error), "pool_free");
}

struct way {
    const char *name;
    void (*alloc)(block &);
    void (*free)(block &);
    const cai_emm_hooks *hooks; // of the manager
};

static const way ways[] = {
    {"cudaMalloc, cudaFree", alloc_plain, free_plain, nullptr},
    {"cudaMallocAsync, cudaFreeAsync", alloc_async, free_async, nullptr},
    {"cai_manager over cudaMallocAsync", alloc_emm, free_emm, &w.async},
    {"cai_manager over pool_plugin", alloc_emm, free_emm, &w.pooled},
    {"pool_plugin alone", alloc_hooks, free_hooks, nullptr},
};
enum { WAYS = sizeof ways / sizeof *ways };

// --------------------------------------------------------------------- the patterns

static int turns_of(const way &one, int turns)
{
    return one.alloc == alloc_plain ? turns / 20 : turns; // each cudaFree waits for the device
}

static double pair(const way &one, size_t size)
{
    const int turns = turns_of(one, 20000);
    block b = {nullptr, size, 0};
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < turns; ++i) {
        one.alloc(b);
        one.free(b);
    }
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
    return passed.count() / turns;
}

static double mixed(const way &one, size_t)
{
    const int turns = turns_of(one, 200);
    block blocks[BLOCKS] = {};
    const auto start = std::chrono::steady_clock::now();
    for (int turn = 0; turn < turns; ++turn) {
        for (int i = 0; i < BLOCKS; ++i) {
            blocks[i].size = static_cast<size_t>(256) << (i * 7 % 13); // 256 bytes to 1 MiB
            one.alloc(blocks[i]);
        }
        for (int i = 0; i < BLOCKS; ++i) one.free(blocks[i * 29 % BLOCKS]);
    }
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
    return passed.count() / turns / BLOCKS;
}

static double best(const way &one, double (*pattern)(const way &, size_t), size_t size)
{
    double least = 1e30;
    cai_error err;
    if (one.hooks) must(cai_manager_init(&w.emm, &w.streams, one.hooks, nullptr, &err), err);
    for (int repeat = 0; repeat < REPEATS; ++repeat) {
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const double time = pattern(one, size);
        if (time < least) least = time;
    }
    if (one.hooks) must(cai_manager_destroy(&w.emm, &err), err);
    return least;
}

// ------------------------------------------------------------------- the program

static void open_world(cai_cuda_driver &driver)
{
    cai_error err;
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaFree(nullptr), "cudaFree"); // the primary context
    must(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), "cudaMemPoolSetAttribute");
    must(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cai_cuda_linked(&driver, &err), err);
    must(cai_event_pool_init(&w.streams, &driver.cuda, nullptr, 0, 0, &err), err);
    must(cai_emm_hooks_async(&w.async, &driver.cuda, NULL, &err), err);
    pool_plugin_open(&w.pool, &w.async, &w.pooled);
}

static void close_world()
{
    cai_error err;
    must(static_cast<cudaError_t>(pool_empty(&w.pool, &w.pool.kept, nullptr)), "pool_empty");
    must(cai_event_pool_destroy(&w.streams, &err), err);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void measure(const char *name, double (*pattern)(const way &, size_t), size_t size, bool json)
{
    double times[WAYS];
    for (int i = 0; i < WAYS; ++i) times[i] = best(ways[i], pattern, size);
    if (!json) std::printf("\n%s\n", name);
    for (int i = 0; i < WAYS; ++i)
        if (json)
            std::printf("{\"pattern\": \"%s\", \"way\": \"%s\", \"ns\": %.1f}\n", name, ways[i].name,
                        times[i]);
        else std::printf("  %-32s %10.0f ns   %8.2f of cudaMallocAsync   %8.3f of cudaMalloc\n", ways[i].name,
                         times[i], times[i] / times[1], times[i] / times[0]);
}

int main(int argc, char **argv)
{
    static cai_cuda_driver driver;
    const bool json = argc > 1 && !std::strcmp(argv[1], "--json");
    cudaDeviceProp properties;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        std::printf("skipped: no GPU\n");
        return 77;
    }
    must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    open_world(driver);
    if (json)
        std::printf("{\"device\": \"%s\", \"runtime\": %d, \"driver\": %d}\n", properties.name,
                    driver.runtime_version, driver.driver_version);
    else std::printf("%s, runtime %d, driver %d; nanoseconds an allocation and its free, best of %d\n",
                     properties.name, driver.runtime_version, driver.driver_version, REPEATS);
    measure("pair of 256 B", pair, 256, json);
    measure("pair of 1 MiB", pair, 1 << 20, json);
    measure("pair of 64 MiB", pair, 64 << 20, json);
    measure("mixed", mixed, 0, json);
    close_world();
    return 0;
}
