// saxpy.cu - y = a x + y on device arrays of any layout, checked before anything is launched.
//
//     nvcc -I. examples/array/saxpy.cu -o saxpy && ./saxpy
//
// saxpy() is what a library exports; main() makes arrays, calls it and verifies what it did.
// Exit status 0: right; 1: wrong, or a CUDA error; 77: there is no GPU.

#define CAI_IMPLEMENTATION
#include "cai.h"

#include <cuda_runtime.h>

#include <cstdio>

// ------------------------------------------------------------------ the library

__global__ static void saxpy_kernel(float a, cai_kernel_view x, cai_kernel_view y, int64_t size)
{
    int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i < size; i += step)
        *static_cast<float *>(cai_kernel_element(&y, i)) +=
            a * *static_cast<const float *>(cai_kernel_element(&x, i));
}

// Enqueues on `stream`; whether the launch succeeded is for the caller's cudaGetLastError().
// Waiting for work that the arrays have pending takes cai_stream.h; here such arrays are refused.
extern "C" cai_status saxpy(float a, const cai_array *x, const cai_array *y, cudaStream_t stream,
                            cai_error *err)
{
    const uint32_t output = CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP;
    cai_kernel_view in, out;
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, CAI_ANY_NDIM, output, err));
    CAI_TRY(cai_expect_same_shape(x, "x", y, "y", err));
    CAI_TRY(cai_kernel_view_of(x, &in, err));
    CAI_TRY(cai_kernel_view_of(y, &out, err));
    if (x->sync != CAI_SYNC_NONE || y->sync != CAI_SYNC_NONE)
        return cai_error_set(CAI_ERR_EXPECT, "x, y", "work may be pending on one of them", err);
    if (cai_overlap(x, y) != CAI_OVERLAP_NO)
        return cai_error_set(CAI_ERR_EXPECT, "x, y", "elements of one lie in the other", err);
    if (y->size > 0) {
        int64_t blocks = (y->size + 255) / 256;
        unsigned grid = static_cast<unsigned>(blocks < 65535 ? blocks : 65535);
        saxpy_kernel<<<grid, 256, 0, stream>>>(a, in, out, y->size);
    }
    return CAI_OK;
}

// --------------------------------------------------------------------- its user

static const int ROWS = 20, COLUMNS = 50, SIZE = ROWS * COLUMNS;

static int failed(const char *what, const char *why)
{
    std::printf("saxpy: %s: %s\n", what, why);
    return 1;
}

#define CHECK_CUDA(call)                                                                           \
    do {                                                                                           \
        cudaError_t code = (call);                                                                 \
        if (code != cudaSuccess) return failed(#call, cudaGetErrorString(code));                   \
    } while (0)

#define CHECK_CAI(call)                                                                            \
    do {                                                                                           \
        if ((call) != CAI_OK) return failed(#call, err.message);                                   \
    } while (0)

// x is read backwards along both axes, y is every second float of a buffer twice as long.
static int describe(float *x_buffer, float *y_buffer, cai_array *x, cai_array *y)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    const int64_t x_strides[2] = {-COLUMNS * 4, -4}, y_strides[2] = {COLUMNS * 8, 8};
    cai_error err;
    CHECK_CAI(cai_array_init(x, CAI_FLOAT32, 2, shape, x_strides, x_buffer + SIZE - 1, &err));
    CHECK_CAI(cai_array_init(y, CAI_FLOAT32, 2, shape, y_strides, y_buffer, &err));
    x->sync = y->sync = CAI_SYNC_NONE; // cudaMemcpy has returned: nothing is pending
    return 0;
}

static int run(float *x_buffer, float *y_buffer, float *host)
{
    cai_array x, y, repeated;
    cai_error err;
    CHECK_CUDA(cudaMemcpy(x_buffer, host, SIZE * sizeof(float), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemset(y_buffer, 0, 2 * SIZE * sizeof(float)));
    CHECK_CUDA(cudaDeviceSynchronize()); // cudaMemset may return early
    if (describe(x_buffer, y_buffer, &x, &y)) return 1;

    const int64_t shape[3] = {2, ROWS, COLUMNS};
    CHECK_CAI(cai_view_broadcast(&y, 3, shape, &repeated, &err));
    if (saxpy(2, &x, &repeated, nullptr, &err) == CAI_OK)
        return failed("a repeated output", "was not refused");
    std::printf("refused, as it should be: %s\n", err.message);

    CHECK_CAI(saxpy(2, &x, &y, nullptr, &err));
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(host, y_buffer, 2 * SIZE * sizeof(float), cudaMemcpyDeviceToHost));
    return 0;
}

static int verify(const float *host)
{
    for (int i = 0; i < SIZE; i++)
        if (host[2 * i] != 2.0f * static_cast<float>(SIZE - 1 - i) || host[2 * i + 1] != 0.0f)
            return failed("element", "has a wrong value, or the gap after it was written");
    std::printf("saxpy: %d elements right, x backwards, y every second float\n", SIZE);
    return 0;
}

int main()
{
    static float host[2 * SIZE];
    float *x_buffer = nullptr, *y_buffer = nullptr;
    int devices = 0;
    cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0) {
        std::printf("skipped: %s\n", code == cudaSuccess ? "no GPU" : cudaGetErrorString(code));
        return 77;
    }
    for (int i = 0; i < SIZE; i++) host[i] = static_cast<float>(i);
    CHECK_CUDA(cudaMalloc(&x_buffer, SIZE * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&y_buffer, 2 * SIZE * sizeof(float)));
    int result = run(x_buffer, y_buffer, host) || verify(host);
    CHECK_CUDA(cudaFree(x_buffer));
    CHECK_CUDA(cudaFree(y_buffer));
    return result;
}
