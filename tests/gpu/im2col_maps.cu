// im2col_maps.cu - maps of im2col mode: what does the driver refuse, and which pixels does a copy take?
// SPDX-License-Identifier: MIT
//
//     gpu_im2col_maps [arrays [seed]]    10000
//
// The arrays are those of tests/ext/im2col_world.h, half of them at a bound of one condition. If cai_im2col_map_of
// takes one, the driver must take its plan. If it refuses one, the driver must refuse the same arguments, as far as
// the document speaks of them. Then kernels copy columns of random convolutions, and each element must be the one
// that the convolution has there: this decides on the order of the corners, too. The last lines are single questions
// that the document leaves open.
//
// Exit status 0: no difference; 1: there are some; 2: an error; 77: no GPU of compute capability 9.0 or higher.
#define CAI_IMPLEMENTATION
#include "cai_tensor_map.h"
#include "../ext/im2col_world.h"
#include "map_driver.h"

#include <cuda/barrier>

#include <utility>
#include <vector>

namespace {

enum { MOST_WORDS = 4096, COPIES = 400 };

decltype(&cuTensorMapEncodeIm2col) encode;

CUresult driver_says(const column_call &c)
{
    CUtensorMap map;
    int lower[3], upper[3];
    for (int i = 0; i < 3; ++i) lower[i] = static_cast<int>(c.lower[i]);
    for (int i = 0; i < 3; ++i) upper[i] = static_cast<int>(c.upper[i]);
    return encode(&map, static_cast<CUtensorMapDataType>(c.map.type), c.map.rank,
                  reinterpret_cast<void *>(static_cast<uintptr_t>(c.map.address)), c.map.dim, c.map.strides, lower,
                  upper, c.map.box[0], c.pixels, c.map.element_strides,
                  static_cast<CUtensorMapInterleave>(c.map.interleave),
                  static_cast<CUtensorMapSwizzle>(c.map.swizzle),
                  static_cast<CUtensorMapL2promotion>(c.map.l2_promotion),
                  static_cast<CUtensorMapFloatOOBfill>(c.map.oob_fill));
}

void print_call(const column_call &c)
{
    std::printf("    type %lld, rank %u, address 0x%llx, interleave %lld, swizzle %lld, channels %u, pixels %u\n",
                static_cast<long long>(c.map.type), c.map.rank, static_cast<unsigned long long>(c.map.address),
                static_cast<long long>(c.map.interleave), static_cast<long long>(c.map.swizzle), c.map.box[0],
                c.pixels);
    for (uint32_t i = 0; i < c.map.rank && i < 8; ++i)
        std::printf("    dim %llu, stride %lld, step %u\n", static_cast<unsigned long long>(c.map.dim[i]),
                    i ? static_cast<long long>(c.map.strides[i - 1]) : 0, c.map.element_strides[i]);
    for (uint32_t i = 0; i < column_spatial(&c); ++i)
        std::printf("    lower %lld, upper %lld\n", static_cast<long long>(c.lower[i]),
                    static_cast<long long>(c.upper[i]));
}

void differ(const char *what, CUresult result, const char *message, const column_call &call)
{
    if (++differences > MOST_PRINTED) return;
    std::printf("DIFFERENCE: %s: the driver says %d; %s\n", what, static_cast<int>(result), message);
    print_call(call);
}

void compare(const cai_array &x, const cai_im2col_tile &tile, tally<COLUMN_SENTENCES> *count)
{
    column_call call;
    cai_im2col_map_plan plan;
    cai_error err;
    CUtensorMap map;
    const char *const why = column_call_of(&x, &tile, &call);
    if (cai_im2col_map_of(&x, &tile, &plan, &err) == CAI_OK) {
        const CUresult result = encode(&map, CAI_IM2COL_MAP_ARGUMENTS(plan));
        if (result) differ("the plan was taken", result, "", call);
        else ++count->both_take;
        return;
    }
    if (why) {
        ++count->ours[why];
        return;
    }
    const CUresult result = driver_says(call);
    const int row = column_broken(&call);
    if (!result) differ("refused", result, err.message, call);
    else ++count->both_refuse;
    if (row >= 0) ++count->alone[row];
}

// ------------------------------------------------------------------------------ copies

struct where {
    int rank, at[5];
    uint16_t offset[3];
};

typedef cuda::barrier<cuda::thread_scope_block> block_barrier;

__device__ void copy_column(unsigned to, const CUtensorMap *map, const where &w, unsigned barrier)
{
    if (w.rank == 3)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3, %4}], [%5], {%6};" ::"r"(to), "l"(map), "r"(w.at[0]), "r"(w.at[1]),
                     "r"(w.at[2]), "r"(barrier), "h"(w.offset[0]) : "memory");
    else if (w.rank == 4)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to), "l"(map), "r"(w.at[0]),
                     "r"(w.at[1]), "r"(w.at[2]), "r"(w.at[3]), "r"(barrier), "h"(w.offset[0]), "h"(w.offset[1])
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};" ::"r"(to), "l"(map), "r"(w.at[0]),
                     "r"(w.at[1]), "r"(w.at[2]), "r"(w.at[3]), "r"(w.at[4]), "r"(barrier), "h"(w.offset[0]),
                     "h"(w.offset[1]), "h"(w.offset[2]) : "memory");
}

__global__ void copy_kernel(const __grid_constant__ CUtensorMap map, where w, unsigned bytes, uint32_t *out)
{
    __shared__ alignas(128) uint32_t column[MOST_WORDS];
#pragma nv_diag_suppress static_var_with_dynamic_init // init() below
    __shared__ block_barrier arrived;
    block_barrier::arrival_token token;
    if (threadIdx.x == 0) {
        init(&arrived, blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta(); // the copy sees the barrier
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const auto handle = cuda::device::barrier_native_handle(arrived);
        copy_column(static_cast<unsigned>(__cvta_generic_to_shared(column)), &map, w,
                    static_cast<unsigned>(__cvta_generic_to_shared(handle)));
        token = cuda::device::barrier_arrive_tx(arrived, 1, bytes);
    } else {
        token = arrived.arrive();
    }
    arrived.wait(std::move(token));
    for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[i] = column[i];
}

// A convolution, an output pixel and a place in the filter. Along each axis: D, H, W as far as they are there.
struct column {
    cai_array x;
    cai_im2col_tile tile;
    cai_im2col_map_plan plan;
    int64_t offset[3]; // in the order of the plan
    column_place first;
    int64_t channel;
};

bool make_column(world_chance *chance, uint32_t *data, column *c)
{
    const int spatial = 1 + static_cast<int>(world_below(chance, 3));
    int64_t shape[5] = {1 + world_below(chance, 3), 1, 1, 1, 1};
    c->tile = cai_im2col_tile();
    c->first = column_place();
    for (int at = 0; at < spatial; ++at) {
        const int64_t filter = 1 + world_below(chance, 4), dilation = 1 + world_below(chance, 2);
        shape[1 + at] = 1 + world_below(chance, 7);
        c->tile.lower[at] = -static_cast<int32_t>(world_below(chance, 4));
        c->tile.upper[at] = static_cast<int32_t>(world_below(chance, 4) - dilation * (filter - 1));
        c->tile.steps[at] = 1 + static_cast<int32_t>(world_below(chance, 3));
        c->offset[spatial - 1 - at] = dilation * world_below(chance, filter);
    }
    shape[1 + spatial] = 4 * (1 + world_below(chance, 8));
    c->tile.channels = 4 * (1 + static_cast<int32_t>(world_below(chance, 8)));
    c->tile.pixels = 1 + static_cast<int32_t>(world_below(chance, 128));
    c->channel = 4 * world_below(chance, shape[1 + spatial] / 4);
    if (cai_array_init(&c->x, CAI_UINT32, spatial + 2, shape, nullptr, data, nullptr) ||
        cai_im2col_map_of(&c->x, &c->tile, &c->plan, nullptr))
        return false; // an empty box
    for (int i = 0; i < spatial; ++i) c->first.at[i] = c->plan.lower[i];
    for (int64_t skip = world_below(chance, 40); skip > 0; --skip) column_next(&c->plan, &c->first);
    c->first.image %= shape[0];
    return true;
}

// What the convolution has there: the index of the element and 1, or 0 outside of the array
uint32_t expected(const column &c, const column_place &place, int64_t channel)
{
    const int spatial = c.x.ndim - 2;
    if (place.image >= c.x.shape[0] || channel >= c.x.shape[c.x.ndim - 1]) return 0;
    int64_t bytes = place.image * c.x.strides[0] + 4 * channel;
    for (int axis = 1; axis <= spatial; ++axis) {
        const int64_t at = place.at[spatial - axis] + c.offset[spatial - axis];
        if (at < 0 || at >= c.x.shape[axis]) return 0;
        bytes += at * c.x.strides[axis];
    }
    return static_cast<uint32_t>(bytes / 4 + 1);
}

void compare_column(const column &c, const std::vector<uint32_t> &got)
{
    column_place place = c.first;
    for (int32_t pixel = 0; pixel < c.tile.pixels; ++pixel, column_next(&c.plan, &place))
        for (int32_t channel = 0; channel < c.tile.channels; ++channel) {
            const uint32_t is = got[static_cast<size_t>(pixel * c.tile.channels + channel)];
            const uint32_t wanted = expected(c, place, c.channel + channel);
            if (is == wanted) continue;
            if (++differences > MOST_PRINTED) return;
            std::printf("DIFFERENCE: ndim %d, pixel %d, channel %d: %u, not %u; lower %d %d %d, upper %d %d %d\n",
                        c.x.ndim, pixel, channel, is, wanted, c.plan.lower[0], c.plan.lower[1], c.plan.lower[2],
                        c.plan.upper[0], c.plan.upper[1], c.plan.upper[2]);
            return;
        }
}

bool copy_columns(world_chance *chance, int *copied)
{
    const size_t words = 3 * 7 * 7 * 7 * 32;
    std::vector<uint32_t> values(words), got(MOST_WORDS);
    uint32_t *data, *out;
    column c;
    for (size_t i = 0; i < words; ++i) values[i] = static_cast<uint32_t>(i + 1);
    if (cudaMalloc(&data, 4 * words) || cudaMalloc(&out, 4 * MOST_WORDS) ||
        cudaMemcpy(data, values.data(), 4 * words, cudaMemcpyHostToDevice))
        return false;
    for (int i = 0; i < COPIES; ++i) {
        CUtensorMap map;
        where w = {};
        if (!make_column(chance, data, &c)) continue;
        w.rank = c.x.ndim;
        w.at[0] = static_cast<int>(c.channel);
        for (int dim = 0; dim < w.rank - 2; ++dim) {
            w.at[1 + dim] = static_cast<int>(c.first.at[dim]);
            w.offset[dim] = static_cast<uint16_t>(c.offset[dim]);
        }
        w.at[w.rank - 1] = static_cast<int>(c.first.image);
        if (encode(&map, CAI_IM2COL_MAP_ARGUMENTS(c.plan))) return false;
        copy_kernel<<<1, 128>>>(map, w, static_cast<unsigned>(c.plan.column_bytes), out);
        if (cudaGetLastError() || cudaMemcpy(got.data(), out, c.plan.column_bytes, cudaMemcpyDeviceToHost))
            return false;
        compare_column(c, got);
        ++*copied;
    }
    return !cudaFree(data) && !cudaFree(out);
}

// --------------------------------------------------------------------- single questions

void ask(const char *question, const column_call &call)
{
    std::printf("%s: the driver says %d\n", question, static_cast<int>(driver_says(call)));
}

void ask_all()
{
    const int64_t shape[4] = {4, 16, 100, 64};
    cai_array x;
    cai_im2col_tile tile = {};
    column_call c, changed;
    (void)!cai_array_init(&x, CAI_FLOAT16, 4, shape, nullptr, &x, nullptr);
    x.data = 0x7f0000000000;
    tile.channels = 8;
    tile.pixels = 64;
    (void)column_call_of(&x, &tile, &c);
    ask("C order", c);
    changed = c;
    changed.map.box[0] = 4;
    ask("channels of 8 bytes", changed);
    changed.map.box[0] = 12;
    ask("channels of 24 bytes", changed);
    changed.map.box[0] = 0;
    ask("no channels", changed);
    changed = c;
    changed.pixels = 0;
    ask("no pixels", changed);
    changed = c;
    changed.map.element_strides[3] = 2;
    ask("a step of N", changed);
    changed.map.element_strides[3] = 9;
    ask("a step of 9 of N", changed);
    changed = c;
    changed.lower[0] = changed.upper[0] = 120;
    ask("a box that is outside of the array", changed);
    changed.lower[0] = 101;
    changed.upper[0] = 0;
    ask("a box that ends one pixel before it begins", changed);
}

} // namespace

int main(int argc, char **argv)
{
    const long long arrays = argc > 1 ? std::atoll(argv[1]) : 10000;
    const int major = find_device();
    int copied = 0;
    if (!major) return 77;
    if (!find_encode("cuTensorMapEncodeIm2col", &encode)) return 2;
    world_chance chance = chance_of(argc, argv, major);
    tally<COLUMN_SENTENCES> count;
    for (long long i = 0; i < arrays; ++i) {
        cai_array x;
        cai_im2col_tile tile;
        column_good(&chance, &x, &tile);
        if (world_below(&chance, 2)) column_to_a_bound(&chance, &x, &tile);
        compare(x, tile, &count);
    }
    print_tally(count, column_document, "not of the document");
    ask_all();
    if (!copy_columns(&chance, &copied)) {
        std::printf("a copy failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 2;
    }
    std::printf("%lld arrays: %lld taken by both, %lld refused by both; %d columns copied; %d differences\n", arrays,
                count.both_take, count.both_refuse, copied, differences);
    return differences ? 1 : 0;
}
