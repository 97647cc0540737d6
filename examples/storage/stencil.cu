// stencil.cu - the device of stencil.c: the CUDA Runtime, and the kernels
// SPDX-License-Identifier: MIT

#define CAI_STREAM_IMPLEMENTATION // cai_cuda_linked
#define CAI_STATIC                // stencil.c has the other functions
#define CAI_CORE_IMPLEMENTATION
#include "stencil.h"

#include <cuda_runtime.h>

#include <cstdio>

static const int WIDTH = 32, HEIGHT = 8; // of a block

// A thread is one column of a field, with its halo or without.
__global__ static void halo_kernel(cai_kernel_view in)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) - HALO;
    const int j = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) - HALO;
    if (i >= NI + HALO || j >= NJ + HALO) return;
    for (int k = 0; k < NK; ++k) fill_halo_at(&in, i, j, k);
}

__global__ static void diffuse_kernel(cai_kernel_view out, cai_kernel_view in)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int j = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    if (i >= NI || j >= NJ) return;
    for (int k = 0; k < NK; ++k) diffuse_at(&out, &in, i, j, k);
}

static dim3 blocks(int width, int height)
{
    return dim3(static_cast<unsigned>((width + WIDTH - 1) / WIDTH),
                static_cast<unsigned>((height + HEIGHT - 1) / HEIGHT));
}

extern "C" int32_t stencil_launch(const stencil_device *device, cai_kernel_view out, cai_kernel_view in)
{
    const cudaStream_t stream = cai_stream_to_cuda(device->stream);
    halo_kernel<<<blocks(NI + 2 * HALO, NJ + 2 * HALO), dim3(WIDTH, HEIGHT), 0, stream>>>(in);
    diffuse_kernel<<<blocks(NI, NJ), dim3(WIDTH, HEIGHT), 0, stream>>>(out, in);
    return cudaGetLastError();
}

extern "C" void stencil_host_works(const cai_kernel_view *, int)
{
}

static uint64_t new_stream()
{
    cudaStream_t stream = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 0;
    return CAI_STREAM(stream);
}

extern "C" int stencil_open(stencil_device *out)
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
    std::snprintf(out->name, sizeof out->name, "%.200s", properties.name);
    out->cuda = &driver.cuda;
    out->home = new_stream();
    out->stream = new_stream();
    return 1;
}

extern "C" int stencil_close(stencil_device *device)
{
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) error = cudaStreamDestroy(cai_stream_to_cuda(device->home));
    if (error == cudaSuccess) error = cudaStreamDestroy(cai_stream_to_cuda(device->stream));
    if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
