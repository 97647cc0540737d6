// runtime_exchange.cu - a program as nvcc builds it with -cudart shared, on the simulated libraries: memory,
// copies, a launch, symbols, and an exchange through the linked runtime (cai_cuda_linked).
// Kernels do nothing there, so the numbers are those of the copies. Exit status 0: all checks hold.

#define CAI_IMPLEMENTATION
#define CAI_NO_LOADER
#include "cai_stream.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

enum { SIZE = 1000 };

static int failures;

static void check(bool good, const char *what, int line)
{
    if (good) return;
    std::printf("runtime_exchange.cu:%d: %s: does not hold\n", line, what);
    ++failures;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

__device__ float table[4];

__global__ void add_kernel(float *x, const float *y, int size)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < size) x[i] += y[i] + table[i & 3];
}

static void check_launch()
{
    float in[SIZE], out[SIZE];
    float *x = nullptr, *y = nullptr;
    int blocks = 0, best = 0;
    cudaFuncAttributes attributes;
    for (int i = 0; i < SIZE; ++i) in[i] = static_cast<float>(i);
    std::memset(out, 0, sizeof out);
    CHECK(cudaMalloc(&x, sizeof in) == cudaSuccess);
    CHECK(cudaMalloc(&y, sizeof in) == cudaSuccess);
    CHECK(cudaMemcpy(x, in, sizeof in, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemset(y, 0, sizeof in) == cudaSuccess);
    add_kernel<<<4, 256>>>(x, y, SIZE);
    CHECK(cudaGetLastError() == cudaSuccess);
    add_kernel<<<0, 256>>>(x, y, SIZE);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(std::memcmp(in, out, sizeof in) == 0);
    CHECK(cudaFuncGetAttributes(&attributes, add_kernel) == cudaSuccess);
    CHECK(cudaFuncSetAttribute(add_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024) == cudaSuccess);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_kernel, 256, 0) == cudaSuccess);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&blocks, &best, add_kernel) == cudaSuccess);
    CHECK(blocks > 0 && best > 0);
    CHECK(cudaFree(x) == cudaSuccess);
    CHECK(cudaFree(y) == cudaSuccess);
}

static void check_symbol()
{
    const float in[4] = {1, 2, 3, 4};
    float out[4] = {0, 0, 0, 0};
    void *address = nullptr;
    size_t bytes = 0;
    CHECK(cudaGetSymbolSize(&bytes, table) == cudaSuccess);
    CHECK(bytes == sizeof in);
    CHECK(cudaMemcpyToSymbol(table, in, sizeof in) == cudaSuccess);
    CHECK(cudaGetSymbolAddress(&address, table) == cudaSuccess);
    CHECK(cudaMemcpy(out, address, sizeof out, cudaMemcpyDefault) == cudaSuccess);
    CHECK(std::memcmp(in, out, sizeof in) == 0);
}

static cudaStream_t new_stream()
{
    cudaStream_t stream = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
}

// What is written on one stream is read on another one.
static cai_status exchange(cai_event_pool *pool, float *x, const float *host, float *back, cai_error *err)
{
    const int64_t shape[1] = {SIZE};
    const cudaStream_t producer = new_stream(), consumer = new_stream();
    const size_t bytes = SIZE * sizeof *x;
    cai_exchange ex;
    cai_array array;
    cai_array *io[1] = {&array};
    CHECK(cudaMemcpyAsync(x, host, bytes, cudaMemcpyHostToDevice, producer) == cudaSuccess);
    CAI_TRY(cai_array_init(&array, CAI_FLOAT32, 1, shape, NULL, x, err));
    CAI_TRY(cai_locate(&array, "x", pool->cuda, CAI_LOCATE_BOUNDS, NULL, err));
    CHECK(cai_expect(&array, "x", CAI_FLOAT32, 1, CAI_ON_DEVICE, err) == CAI_OK);
    array.sync = CAI_SYNC_STREAM;
    array.stream = CAI_STREAM(producer);
    CAI_TRY(cai_exchange_begin(&ex, pool, io, 1, CAI_STREAM(consumer), err));
    const cudaError_t error = cudaMemcpyAsync(back, x, bytes, cudaMemcpyDeviceToHost, consumer);
    CAI_TRY(cai_exchange_finish(&ex, cai_cuda_status(error, "cudaMemcpyAsync", err), io, 1, err));
    CHECK(cudaStreamSynchronize(consumer) == cudaSuccess);
    CHECK(std::memcmp(back, host, bytes) == 0);
    CHECK(cudaStreamDestroy(producer) == cudaSuccess);
    CHECK(cudaStreamDestroy(consumer) == cudaSuccess);
    return CAI_OK;
}

static cai_status check_exchange(cai_error *err)
{
    static cai_cuda_driver driver;
    float *x = nullptr, *host = nullptr, *back = nullptr;
    cai_event_pool pool;
    CAI_TRY(cai_cuda_linked(&driver, err));
    CHECK(driver.runtime_version == CUDART_VERSION);
    CAI_TRY(cai_event_pool_init(&pool, &driver.cuda, NULL, 0, 0, err));
    CHECK(cudaMalloc(&x, SIZE * sizeof *x) == cudaSuccess);
    CHECK(cudaMallocHost(&host, SIZE * sizeof *x) == cudaSuccess);
    CHECK(cudaMallocHost(&back, SIZE * sizeof *x) == cudaSuccess);
    for (int i = 0; i < SIZE; ++i) host[i] = static_cast<float>(3 * i + 1);
    std::memset(back, 0, SIZE * sizeof *x);
    CAI_TRY(exchange(&pool, x, host, back, err));
    CAI_TRY(cai_event_pool_destroy(&pool, err));
    CHECK(cudaFreeHost(back) == cudaSuccess);
    CHECK(cudaFreeHost(host) == cudaSuccess);
    CHECK(cudaFree(x) == cudaSuccess);
    return CAI_OK;
}

int main()
{
    cai_error err;
    check_launch();
    check_symbol();
    if (check_exchange(&err) != CAI_OK) {
        std::printf("%s\n", err.message);
        ++failures;
    }
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    std::printf("%d failures\n", failures);
    return failures != 0;
}
