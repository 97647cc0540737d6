/* saxpy.cu - the kernel of the bindings
 * SPDX-License-Identifier: MIT */
#include "saxpy.h"

#include <cuda_runtime.h>

static __global__ void saxpy_kernel(float a, cai_kernel_view x, cai_kernel_view y, cai_kernel_view z, int64_t size)
{
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
        const float xi = *static_cast<const float *>(cai_kernel_element(&x, i));
        const float yi = *static_cast<const float *>(cai_kernel_element(&y, i));
        *static_cast<float *>(cai_kernel_element(&z, i)) = a * xi + yi;
    }
}

void queue_saxpy(float a, const cai_array &x, const cai_array &y, const cai_array &z, uint64_t stream)
{
    cai_kernel_view vx, vy, vz;
    cai::call(cai_kernel_view_of, &x, &vx);
    cai::call(cai_kernel_view_of, &y, &vy);
    cai::call(cai_kernel_view_of, &z, &vz);
    if (!z.size) return;
    const int64_t blocks = (z.size + 255) / 256;
    const unsigned grid = static_cast<unsigned>(blocks < 65535 ? blocks : 65535);
    saxpy_kernel<<<grid, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(a, vx, vy, vz, z.size);
    cai::check_cuda(cudaGetLastError(), "saxpy");
}
