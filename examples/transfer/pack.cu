// pack.cu - packs and unpacks the faces of a field by a kernel that follows a plan, beside CUDA's own copies
// SPDX-License-Identifier: MIT
//
// A plan is a few numbers, so a kernel takes it by value. Each thread copies one unit of a run. CUDA's 2-D and 3-D
// copies need no kernel. This program prints the times of both.
//
//     nvcc -I. -Iext examples/transfer/pack.cu -o pack && ./pack
//
// Exit status 0: right; 1: wrong, or an error; 77: no device.
#define CAI_IMPLEMENTATION
#include "cai_stream.h"
#include "pack.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int64_t N = 64; // the field is N x N x N float64, with a halo of 2
constexpr int64_t HALO = 2;
constexpr int REPEATS = 20;

__global__ void pack_kernel(cai_transfer plan, int32_t unit, int64_t units)
{
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i < units; i += step) pack_one(&plan, unit, i);
}

cai_status cuda_status(cudaError_t error, const char *what, cai_error *err)
{
    return cai_cuda_status(static_cast<int32_t>(error), what, err);
}

// All of a plan in one launch. The elements of the target share no bytes, so the threads need no order.
cai_status launch(const cai_transfer &plan, cudaStream_t stream, cai_error *err)
{
    const int32_t unit = pack_unit(&plan);
    const int64_t units = plan.nbytes / unit, blocks = (units + 255) / 256;
    if (!units) return CAI_OK;
    pack_kernel<<<static_cast<unsigned>(blocks < 65535 ? blocks : 65535), 256, 0, stream>>>(plan, unit, units);
    return cuda_status(cudaGetLastError(), "pack_kernel", err);
}

struct world {
    cai_cuda_driver driver;
    cai_event_pool pool;
    cudaStream_t producer, stream;
    double *memory[2];          // of the field, and of one that gets its faces
    double *buffers[2];         // of the kernel, of CUDA's copies
    std::vector<double> values; // of the field
    cai_array field, target;
};

uint64_t address(const void *pointer)
{
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

enum how { KERNEL, COPIES };

cai_status carry_out(world &w, const cai_transfer &plan, how by, cai_error *err)
{
    if (by == KERNEL) return launch(plan, w.stream, err);
    return cai_transfer_copy(&plan, &w.driver.cuda, CAI_STREAM(w.stream), err);
}

// What a neighbour gets: the first points inside of an axis, without the halo of the other axes.
cai_status face_of(const cai_array &field, int32_t axis, cai_array *out, cai_error *err)
{
    *out = field;
    for (int32_t i = 0; i < 3; ++i) {
        const cai_array whole = *out;
        CAI_TRY(cai_view_slice(&whole, i, HALO, i == axis ? HALO : N - 2 * HALO, 1, out, err));
    }
    return CAI_OK;
}

// Packs a face, or unpacks it, REPEATS times. The exchange orders that with the producer's work on the field.
cai_status face(world &w, cai_array *view, int packs, how by, float *milliseconds, cai_error *err)
{
    cudaEvent_t begin = nullptr, end = nullptr;
    cai_transfer plan;
    cai_exchange ex;
    const uint64_t buffer = address(w.buffers[by]);
    CAI_TRY(packs ? cai_transfer_pack(&plan, view, buffer, err) : cai_transfer_unpack(&plan, view, buffer, err));
    CAI_TRY(cuda_status(cudaEventCreate(&begin), "cudaEventCreate", err));
    CAI_TRY(cuda_status(cudaEventCreate(&end), "cudaEventCreate", err));
    CAI_TRY(cai_exchange_begin(&ex, &w.pool, &view, 1, CAI_STREAM(w.stream), err));
    cai_status status = cuda_status(cudaEventRecord(begin, w.stream), "cudaEventRecord", err);
    for (int i = 0; !status && i < REPEATS; ++i) status = carry_out(w, plan, by, err);
    if (!status) status = cuda_status(cudaEventRecord(end, w.stream), "cudaEventRecord", err);
    CAI_TRY(cai_exchange_end(&ex, status, err));
    CAI_TRY(cuda_status(cudaEventSynchronize(end), "cudaEventSynchronize", err));
    CAI_TRY(cuda_status(cudaEventElapsedTime(milliseconds, begin, end), "cudaEventElapsedTime", err));
    CAI_TRY(cuda_status(cudaEventDestroy(begin), "cudaEventDestroy", err));
    return cuda_status(cudaEventDestroy(end), "cudaEventDestroy", err);
}

// The first kernel of a module waits until the module is loaded. That is no part of the times.
cai_status load_kernel(cudaStream_t stream, cai_error *err)
{
    pack_kernel<<<1, 1, 0, stream>>>(cai_transfer(), 1, 0); // no units
    CAI_TRY(cuda_status(cudaGetLastError(), "pack_kernel", err));
    return cuda_status(cudaStreamSynchronize(stream), "cudaStreamSynchronize", err);
}

// How many elements of both buffers are not those of the face, in C order.
cai_status wrong_elements(world &w, const cai_array &view, int64_t *wrong, cai_error *err)
{
    std::vector<double> packed(static_cast<size_t>(view.size));
    for (const double *buffer : w.buffers) {
        CAI_TRY(cuda_status(cudaMemcpy(packed.data(), buffer, packed.size() * sizeof(double), cudaMemcpyDefault),
                            "cudaMemcpy", err));
        size_t n = 0;
        for (int64_t i = 0; i < view.shape[0]; ++i)
            for (int64_t j = 0; j < view.shape[1]; ++j)
                for (int64_t k = 0; k < view.shape[2]; ++k, ++n) {
                    const int64_t offset = i * view.strides[0] + j * view.strides[1] + k * view.strides[2];
                    const uint64_t first = (view.data - address(w.memory[0])) / sizeof(double);
                    *wrong += packed[n] != w.values[first + static_cast<size_t>(offset) / sizeof(double)];
                }
    }
    return CAI_OK;
}

// The target has the faces, and 0 elsewhere.
cai_status wrong_target(const world &w, int64_t *wrong, cai_error *err)
{
    std::vector<double> got(w.values.size());
    CAI_TRY(cuda_status(cudaMemcpy(got.data(), w.memory[1], got.size() * sizeof(double), cudaMemcpyDefault),
                        "cudaMemcpy", err));
    for (int64_t n = 0; n < N * N * N; ++n) {
        const int64_t indices[3] = {n / N / N, n / N % N, n % N};
        bool inside = true, in_face = false;
        for (int64_t index : indices) {
            inside = inside && index >= HALO && index < N - HALO;
            in_face = in_face || index < 2 * HALO;
        }
        in_face = in_face && inside;
        *wrong += got[static_cast<size_t>(n)] != (in_face ? w.values[static_cast<size_t>(n)] : 0.0);
    }
    return CAI_OK;
}

cai_status open(world &w, cai_error *err)
{
    const int64_t shape[3] = {N, N, N};
    const size_t nbytes = static_cast<size_t>(N * N * N) * sizeof(double);
    for (int64_t i = 0; i < N * N * N; ++i) w.values.push_back(static_cast<double>(i + 1));
    CAI_TRY(cuda_status(cudaStreamCreateWithFlags(&w.producer, cudaStreamNonBlocking), "cudaStreamCreate", err));
    CAI_TRY(cuda_status(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking), "cudaStreamCreate", err));
    for (double *&memory : w.memory) CAI_TRY(cuda_status(cudaMalloc(&memory, nbytes), "cudaMalloc", err));
    for (double *&buffer : w.buffers)
        CAI_TRY(cuda_status(cudaMalloc(&buffer, static_cast<size_t>(HALO * N * N) * sizeof(double)), "cudaMalloc",
                            err));
    CAI_TRY(cai_cuda_linked(&w.driver, err));
    CAI_TRY(cai_event_pool_init(&w.pool, &w.driver.cuda, nullptr, 0, 0, err));
    CAI_TRY(cuda_status(cudaMemcpyAsync(w.memory[0], w.values.data(), nbytes, cudaMemcpyDefault, w.producer),
                        "cudaMemcpyAsync", err));
    CAI_TRY(cuda_status(cudaMemsetAsync(w.memory[1], 0, nbytes, w.producer), "cudaMemsetAsync", err));
    CAI_TRY(cai_array_init(&w.field, CAI_FLOAT64, 3, shape, nullptr, w.memory[0], err));
    CAI_TRY(cai_array_init(&w.target, CAI_FLOAT64, 3, shape, nullptr, w.memory[1], err));
    CAI_TRY(cai_stream_export(&w.field, &w.pool, CAI_STREAM(w.producer), nullptr, 0, err));
    return cai_stream_export(&w.target, &w.pool, CAI_STREAM(w.producer), nullptr, 0, err);
}

cai_status close(world &w, cai_error *err)
{
    CAI_TRY(cai_event_pool_destroy(&w.pool, err));
    for (double *buffer : w.buffers) CAI_TRY(cuda_status(cudaFree(buffer), "cudaFree", err));
    for (double *memory : w.memory) CAI_TRY(cuda_status(cudaFree(memory), "cudaFree", err));
    CAI_TRY(cuda_status(cudaStreamDestroy(w.stream), "cudaStreamDestroy", err));
    return cuda_status(cudaStreamDestroy(w.producer), "cudaStreamDestroy", err);
}

cai_status run(world &w, int64_t *wrong, cai_error *err)
{
    static const char *const names[3] = {"outer", "middle", "inner"};
    CAI_TRY(open(w, err));
    CAI_TRY(load_kernel(w.stream, err));
    std::printf("halo of %d, microseconds    runs   pack by kernel  by copies   unpack by kernel  by copies\n",
                static_cast<int>(HALO));
    for (int32_t axis = 0; axis < 3; ++axis) {
        float times[4] = {0, 0, 0, 0};
        cai_array from, to;
        cai_transfer plan;
        CAI_TRY(face_of(w.field, axis, &from, err));
        CAI_TRY(face_of(w.target, axis, &to, err));
        CAI_TRY(cai_transfer_pack(&plan, &from, 0, err));
        for (int n = 0; n < 4; ++n)
            CAI_TRY(face(w, n < 2 ? &from : &to, n < 2, n % 2 ? COPIES : KERNEL, &times[n], err));
        CAI_TRY(wrong_elements(w, from, wrong, err));
        std::printf("%-24s %7lld", names[axis], static_cast<long long>(plan.runs));
        for (float time : times) std::printf("%16.1f", static_cast<double>(time) * 1000 / REPEATS);
        std::printf("\n");
    }
    CAI_TRY(wrong_target(w, wrong, err));
    return close(w, err);
}

} // namespace

int main()
{
    static world w;
    int devices = 0;
    int64_t wrong = 0;
    cai_error err;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        std::puts("skipped: no device");
        return 77;
    }
    if (run(w, &wrong, &err)) {
        std::printf("%s\n", err.message);
        return 1;
    }
    std::printf("%lld wrong elements\n", static_cast<long long>(wrong));
    return wrong != 0;
}
