// storage_gpu.cu - storages on a GPU: what copies by descriptors cost, and managed memory beside two buffers
// SPDX-License-Identifier: MIT
//
//     nvcc -O2 -std=c++17 -I. -Iext tests/bench/storage_gpu.cu -o storage_gpu && ./storage_gpu
//
// All in one run. Storages of several layouts copy a field of 125 MiB to the other side. Beside each stands a
// plain copy of as many bytes between pinned memory and the device. Then the host and kernels take turns with
// a field that has two buffers, or managed memory. Best of 7; the numbers are verified. Exit status 77: no GPU.

#define CAI_IMPLEMENTATION
#include "cai_storage.h"

#include "must.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { REPEATS = 7, NI = 500, NJ = 512, NK = 64 };

__global__ static void increment(cai_kernel_view x)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < NI) *static_cast<double *>(cai_kernel_at3(&x, i, blockIdx.y, blockIdx.z)) += 1;
}

struct world {
    cai_cuda_driver driver;
    cai_event_pool pool;
    cai_emm_hooks hooks;
    cudaStream_t home;
};

static cai_storage_options options_of(world &w, int32_t kind)
{
    cai_storage_options options = {};
    options.pool = &w.pool;
    options.hooks = &w.hooks;
    options.home = CAI_STREAM(w.home);
    options.kind = kind;
    options.flags = CAI_STORAGE_ZEROS;
    return options;
}

static cai_layout layout_of(const char *preset, int32_t alignment)
{
    cai_layout layout = {};
    cai_error err;
    must(cai_layout_preset(&layout, preset, "IJK", &err), err);
    layout.alignment = alignment;
    layout.shape[0] = NI;
    layout.shape[1] = NJ;
    layout.shape[2] = NK;
    return layout;
}

static cai_dtype doubles()
{
    cai_dtype dtype;
    cai_error err;
    must(cai_dtype_of(CAI_FLOAT64, &dtype, &err), err);
    return dtype;
}

// Microseconds of a turn on home, best of all.
template <class Turn> static double best(const world &w, Turn turn)
{
    double least = 1e30;
    for (int repeat = 0; repeat < REPEATS; ++repeat) {
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const auto start = std::chrono::steady_clock::now();
        turn();
        must(cudaStreamSynchronize(w.home), "cudaStreamSynchronize");
        const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
        if (passed.count() < least) least = passed.count();
    }
    return least;
}

// A plain copy of as many bytes.
static double plain(const world &w, int64_t bytes, cudaMemcpyKind kind)
{
    void *host = nullptr, *device = nullptr;
    must(cudaHostAlloc(&host, static_cast<size_t>(bytes), cudaHostAllocPortable), "cudaHostAlloc");
    must(cudaMalloc(&device, static_cast<size_t>(bytes)), "cudaMalloc");
    std::memset(host, 0, static_cast<size_t>(bytes));
    const double time = best(w, [&] {
        const bool in = kind == cudaMemcpyHostToDevice;
        must(cudaMemcpyAsync(in ? device : host, in ? host : device, static_cast<size_t>(bytes), kind, w.home),
             "cudaMemcpyAsync");
    });
    must(cudaFree(device), "cudaFree");
    must(cudaFreeHost(host), "cudaFreeHost");
    return time;
}

static void set_all(const cai_array &array, double value)
{
    cai_kernel_view view;
    cai_error err;
    must(cai_kernel_view_of(&array, &view, &err), err);
    for (int64_t k = 0; k < NK; ++k)
        for (int64_t j = 0; j < NJ; ++j)
            for (int64_t i = 0; i < NI; ++i) *static_cast<double *>(cai_kernel_at3(&view, i, j, k)) = value;
}

static void expect_all(const cai_array &array, double value)
{
    cai_kernel_view view;
    cai_error err;
    must(cai_kernel_view_of(&array, &view, &err), err);
    for (int64_t k = 0; k < NK; ++k)
        for (int64_t j = 0; j < NJ; ++j)
            for (int64_t i = 0; i < NI; ++i) {
                const double found = *static_cast<double *>(cai_kernel_at3(&view, i, j, k));
                if (found < value || found > value) {
                    std::printf("wrong number at %d, %d, %d: %g, not %g\n", int(i), int(j), int(k), found, value);
                    std::exit(1);
                }
            }
}

// A host side of one layout and a device side of another one. Both are given, so the copies follow descriptors.
// `own`: both are the storage's, which copies them as one line.
static void measure_copies(world &w, const char *name, const cai_layout &on_host, const cai_layout &on_device,
                           bool own)
{
    const cai_dtype dtype = doubles();
    cai_storage_options host = options_of(w, CAI_STORAGE_HOST), device = options_of(w, CAI_STORAGE_DEVICE);
    cai_storage_options both = options_of(w, CAI_STORAGE_BOTH);
    static cai_storage a, b, field;
    cai_array side[2];
    cai_error err;
    must(cai_storage_init(&a, &host, &dtype, &on_host, &err), err);
    must(cai_storage_init(&b, &device, &dtype, &on_device, &err), err);
    cai_array_borrow(&side[0], &a.array[0]);
    cai_array_borrow(&side[1], &b.array[1]);
    if (own) must(cai_storage_init(&field, &both, &dtype, &on_host, &err), err);
    else must(cai_storage_wrap(&field, &both, &side[0], &side[1], CAI_STORAGE_CLEAN, &err), err);
    must(cudaStreamSynchronize(w.home), "cudaStreamSynchronize");
    set_all(field.array[0], 3);
    const double in = best(w, [&] { must(cai_storage_sync(&field, CAI_SIDE_DEVICE, 1, &err), err); });
    set_all(field.array[0], 0);
    const double out = best(w, [&] { must(cai_storage_sync(&field, CAI_SIDE_HOST, 1, &err), err); });
    expect_all(field.array[0], 3);
    const double as_in = plain(w, field.array[0].nbytes, cudaMemcpyHostToDevice);
    const double as_out = plain(w, field.array[0].nbytes, cudaMemcpyDeviceToHost);
    const double kilobytes = static_cast<double>(field.array[0].nbytes) / 1e3; // a us: GB/s
    std::printf("  %-40s %7.1f GB/s to the device, %3.0f %% of a plain copy; %7.1f GB/s to the host, %3.0f %%\n", name,
                kilobytes / in, 100 * as_in / in, kilobytes / out, 100 * as_out / out);
    must(cai_storage_release(&field, &err), err);
    must(cai_storage_release(&a, &err), err);
    must(cai_storage_release(&b, &err), err);
}

// The host writes all of it, kernels increment it, the host reads it.
static double measure_turns(world &w, int32_t kind, int kernels)
{
    const cai_dtype dtype = doubles();
    const cai_layout layout = layout_of("gtcuda", 256);
    const cai_storage_options options = options_of(w, kind);
    const uint64_t stream = CAI_STREAM(w.home);
    static cai_storage field;
    cai_storage_access a;
    cai_kernel_view view;
    cai_error err;
    if (cai_storage_init(&field, &options, &dtype, &layout, &err)) {
        std::printf("  %s\n", err.message);
        return 0;
    }
    const double time = best(w, [&] {
        must(cai_storage_begin(&a, &field, CAI_SIDE_HOST, CAI_OVERWRITE, 0, &err), err);
        set_all(a.array, 1);
        must(cai_storage_end(&a, CAI_OK, &err), err);
        for (int n = 0; n < kernels; ++n) {
            must(cai_storage_begin(&a, &field, CAI_SIDE_DEVICE, CAI_WRITE, stream, &err), err);
            must(cai_kernel_view_of(&a.array, &view, &err), err);
            increment<<<dim3((NI + 127) / 128, NJ, NK), 128, 0, w.home>>>(view);
            must(cai_storage_end(&a, cai_cuda_status(cudaGetLastError(), "increment", &err), &err), err);
        }
        must(cai_storage_begin(&a, &field, CAI_SIDE_HOST, CAI_READ, 0, &err), err);
        expect_all(a.array, 1 + kernels);
        must(cai_storage_end(&a, CAI_OK, &err), err);
    });
    must(cai_storage_release(&field, &err), err);
    return time;
}

static void compare_turns(world &w, int kernels)
{
    const double two = measure_turns(w, CAI_STORAGE_BOTH, kernels);
    const double managed = measure_turns(w, CAI_STORAGE_MANAGED, kernels);
    std::printf("  %3d kernels: two buffers %9.0f us, managed %9.0f us: %.2f of it\n", kernels, two, managed,
                two > 0 ? managed / two : 0);
}

int main()
{
    static world w;
    cudaDeviceProp properties;
    cai_error err;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        std::printf("skipped: no GPU\n");
        return 77;
    }
    must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    must(cudaFree(nullptr), "cudaFree");
    must(cai_cuda_linked(&w.driver, &err), err);
    must(cai_event_pool_init(&w.pool, &w.driver.cuda, nullptr, 0, 0, &err), err);
    must(cai_emm_hooks_cuda(&w.hooks, &w.driver.cuda, &err), err);
    must(cudaStreamCreateWithFlags(&w.home, cudaStreamNonBlocking), "cudaStreamCreate");
    std::printf("%s, runtime %d, driver %d; %d x %d x %d float64, best of %d\n", properties.name,
                w.driver.runtime_version, w.driver.driver_version, NI, NJ, NK, REPEATS);
    measure_copies(w, "both sides the storage's own", layout_of("gtcuda", 256), layout_of("gtcuda", 256), true);
    measure_copies(w, "given, padded on both sides", layout_of("gtcuda", 256), layout_of("gtcuda", 256), false);
    measure_copies(w, "given, dense on the host", layout_of("F", 0), layout_of("gtcuda", 256), false);
    measure_copies(w, "given, dense on both sides", layout_of("F", 0), layout_of("F", 0), false);
    compare_turns(w, 1);
    compare_turns(w, 10);
    compare_turns(w, 100);
    must(cudaStreamDestroy(w.home), "cudaStreamDestroy");
    must(cai_event_pool_destroy(&w.pool, &err), err);
    return 0;
}
