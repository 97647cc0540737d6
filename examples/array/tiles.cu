// tiles.cu - y = transpose of x. A tensor map (TMA) copies each tile to shared memory.
//
//     nvcc -arch=sm_90 -I. -Iext examples/array/tiles.cu -o tiles && ./tiles
//
// transpose() is what a library exports; main() makes arrays, calls it and verifies what it did.
// Exit status 0: right; 1: wrong, or a CUDA error; 77: there is no GPU of compute capability 9.0 or higher.

#define CAI_IMPLEMENTATION
#include "cai_tensor_map.h"

#include <cuda.h>
#include <cuda/barrier>
#include <cuda_runtime.h>

#include <cstdio>
#include <utility>
#include <vector>

// ------------------------------------------------------------------ the library

static const int TILE = 32;
typedef cuda::barrier<cuda::thread_scope_block> block_barrier;

__global__ static void transpose_kernel(const __grid_constant__ CUtensorMap x, unsigned bytes,
                                        cai_kernel_view y)
{
    __shared__ alignas(128) float tile[TILE][TILE];
#pragma nv_diag_suppress static_var_with_dynamic_init // init() below
    __shared__ block_barrier arrived;
    block_barrier::arrival_token token;
    const int row = static_cast<int>(blockIdx.y) * TILE, column = static_cast<int>(blockIdx.x) * TILE;
    if (threadIdx.x == 0) {
        init(&arrived, blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta(); // the copy sees the barrier
    }
    __syncthreads();
    if (threadIdx.x == 0) { // one thread copies, the column first
        cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(tile, &x, column, row, arrived);
        token = cuda::device::barrier_arrive_tx(arrived, 1, bytes);
    } else {
        token = arrived.arrive();
    }
    arrived.wait(std::move(token));
    for (int i = static_cast<int>(threadIdx.x); i < TILE * TILE; i += static_cast<int>(blockDim.x)) {
        const int r = i % TILE, c = i / TILE; // a tile is complete: outside of x it has zeros
        if (row + r < y.shape[1] && column + c < y.shape[0])
            *static_cast<float *>(cai_kernel_at2(&y, column + c, row + r)) = tile[r][c];
    }
}

// Makes the map of a plan. A library need not link libcuda: the CUDA Runtime finds the function. What some
// drivers need for small arrays on Blackwell is in docs/transfer.md.
static cai_status encode(const cai_tensor_map_plan &plan, CUtensorMap *map, cai_error *err)
{
    static const char name[] = "cuTensorMapEncodeTiled";
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *function = nullptr;
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) ||
        found != cudaDriverEntryPointSuccess)
        return cai_error_set(CAI_ERR_UNAVAILABLE, name, nullptr, err);
    if (reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(map, CAI_TENSOR_MAP_ARGUMENTS(plan)))
        return cai_error_set(CAI_ERR_CUDA, name, nullptr, err);
    return CAI_OK;
}

// Enqueues on `stream`, for arrays that have no work pending.
static cai_status transpose(const cai_array *x, const cai_array *y, cudaStream_t stream, cai_error *err)
{
    const uint32_t output = CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP;
    cai_tensor_tile tile = {};
    cai_tensor_map_plan plan;
    CUtensorMap map;
    cai_kernel_view out;
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, 2, CAI_ON_DEVICE, err));
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, 2, output, err));
    if (y->shape[0] != x->shape[1] || y->shape[1] != x->shape[0])
        return cai_error_set(CAI_ERR_EXPECT, "y", "its shape is not that of x, reversed", err);
    tile.box[0] = tile.box[1] = TILE;
    CAI_TRY(cai_error_name(cai_tensor_map_of(x, &tile, &plan, err), "x", err));
    CAI_TRY(encode(plan, &map, err));
    CAI_TRY(cai_kernel_view_of(y, &out, err));
    const dim3 grid(static_cast<unsigned>((x->shape[1] + TILE - 1) / TILE),
                    static_cast<unsigned>((x->shape[0] + TILE - 1) / TILE));
    transpose_kernel<<<grid, 256, 0, stream>>>(map, static_cast<unsigned>(plan.box_bytes), out);
    return CAI_OK;
}

// --------------------------------------------------------------------- its user

static const int ROWS = 1000, COLUMNS = 70, STRIDE = 80; // rows of x begin every 320 bytes

static int failed(const char *what, const char *why)
{
    std::printf("tiles: %s: %s\n", what, why);
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

static int transposed()
{
    const int64_t shape[2] = {ROWS, COLUMNS}, other[2] = {COLUMNS, ROWS}, strides[2] = {STRIDE * 4, 4};
    std::vector<float> in(ROWS * STRIDE), out(ROWS * COLUMNS);
    float *x_buffer, *y_buffer;
    cai_array x, y;
    cai_error err;
    for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<float>(i);
    CHECK_CUDA(cudaMalloc(&x_buffer, in.size() * 4));
    CHECK_CUDA(cudaMalloc(&y_buffer, out.size() * 4));
    CHECK_CUDA(cudaMemcpy(x_buffer, in.data(), in.size() * 4, cudaMemcpyHostToDevice));
    CHECK_CAI(cai_array_init(&x, CAI_FLOAT32, 2, shape, strides, x_buffer, &err));
    CHECK_CAI(cai_array_init(&y, CAI_FLOAT32, 2, other, nullptr, y_buffer, &err));
    CHECK_CAI(transpose(&x, &y, nullptr, &err));
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(out.data(), y_buffer, out.size() * 4, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < out.size(); i++)
        if (out[i] != in[i % ROWS * STRIDE + i / ROWS]) return failed("y", "not the transpose of x");
    x.data += 4; // as if the first column were left out: an address that no tensor map takes
    if (transpose(&x, &y, nullptr, &err) == CAI_OK) return failed("x", "it is not aligned, and was taken");
    std::printf("transposed %d x %d; %s\n", ROWS, COLUMNS, err.message);
    CHECK_CUDA(cudaFree(x_buffer));
    CHECK_CUDA(cudaFree(y_buffer));
    return 0;
}

int main()
{
    int devices = 0, major = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major < 9) {
        std::printf("skipped: no GPU of compute capability 9.0 or higher\n");
        return 77;
    }
    return transposed();
}
