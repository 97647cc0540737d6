// exchange_gpu.cu - the device of exchange.c: the CUDA Runtime, and the kernels
// SPDX-License-Identifier: MIT

#define CAI_STREAM_IMPLEMENTATION // cai_cuda_linked
#define CAI_STATIC                // exchange.c has the other functions
#define CAI_CORE_IMPLEMENTATION
#include "exchange_device.h"

#include <cuda_runtime.h>

#include <cstdio>

__global__ static void ramp_kernel(float *x, int64_t size, long long cycles)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long start = clock64();
    while (clock64() - start < cycles) {} // so that a consumer who does not wait is seen
    if (i < size) x[i] = static_cast<float>(i);
}

__global__ static void scale_kernel(cai_kernel_view y, cai_kernel_view x, int64_t size, float a, float b)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const float value = *static_cast<float *>(cai_kernel_element(&x, i));
    *static_cast<float *>(cai_kernel_element(&y, i)) = a * value + b;
}

static unsigned blocks(int64_t size)
{
    return static_cast<unsigned>((size + 255) / 256);
}

static cudaStream_t handle(uint64_t stream)
{
    return cai_stream_to_cuda(stream);
}

static int32_t ramp(float *x, int64_t size, uint64_t stream)
{
    ramp_kernel<<<blocks(size), 256, 0, handle(stream)>>>(x, size, 1000000);
    return cudaGetLastError();
}

static int32_t scale(cai_kernel_view y, cai_kernel_view x, int64_t size, float a, float b, uint64_t stream)
{
    scale_kernel<<<blocks(size), 256, 0, handle(stream)>>>(y, x, size, a, b);
    return cudaGetLastError();
}

static int32_t read_back(float *to, const float *from, int64_t size, uint64_t stream)
{
    const size_t bytes = static_cast<size_t>(size) * sizeof *to;
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, handle(stream));
    return error != cudaSuccess ? error : cudaStreamSynchronize(handle(stream));
}

static uint64_t new_stream()
{
    cudaStream_t stream = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 0;
    return CAI_STREAM(stream);
}

static const char *calls()
{
    return "";
}

static int32_t close_device()
{
    return cudaDeviceSynchronize();
}

extern "C" int exchange_gpu(exchange_device *out)
{
    static cai_cuda_driver driver;
    cudaDeviceProp properties;
    cai_error err;
    cudaError_t error = cudaGetDeviceProperties(&properties, 0);
    if (error == cudaSuccess) error = cudaFree(nullptr); // makes the device's context, which cai then finds
    if (error != cudaSuccess) {
        std::snprintf(out->name, sizeof out->name, "no GPU (%s)", cudaGetErrorString(error));
        return 0;
    }
    if (cai_cuda_linked(&driver, &err) != CAI_OK) {
        std::snprintf(out->name, sizeof out->name, "no CUDA (%s)", err.message);
        return 0;
    }
    std::snprintf(out->name, sizeof out->name, "%.200s, CUDA %d.%d, driver for %d.%d", properties.name,
                  driver.runtime_version / 1000, driver.runtime_version % 1000 / 10,
                  driver.driver_version / 1000, driver.driver_version % 1000 / 10);
    out->simulated = out->quiet = 0;
    out->cuda = &driver.cuda;
    out->new_stream = new_stream;
    out->ramp = ramp;
    out->scale = scale;
    out->read = read_back;
    out->calls = calls;
    out->close = close_device;
    return 1;
}
