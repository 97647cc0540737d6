// tensor_maps.cu - random arrays and tiles: does the driver refuse what CUDA's document says, and nothing else?
// SPDX-License-Identifier: MIT
//
//     gpu_tensor_maps [arrays [seed]]    10000
//
// The arrays are those of tests/ext/tensor_map_world.h, half of them at a bound of one condition. If
// cai_tensor_map_of takes one, the driver must take its plan. If it refuses one, the driver must refuse the same
// arguments, as far as a call can have them; what the call cannot have, or ignores, is counted by its reason. Each
// difference is printed, and at the end how often each condition was the only one that did not hold. Before compute
// capability 10.0 there are no packed types and no swizzles of atoms; what the driver says to these is printed.
// The last lines are single questions that the document leaves open.
//
// Exit status 0: no difference; 1: there are some; 2: an error; 77: no GPU of compute capability 9.0 or higher.
#define CAI_IMPLEMENTATION
#include "cai_tensor_map.h"
#include "../ext/tensor_map_world.h"
#include "map_driver.h"

namespace {

enum { SENTENCES = sizeof world_document / sizeof *world_document };

decltype(&cuTensorMapEncodeTiled) encode;

CUresult driver_says(const world_call &c)
{
    CUtensorMap map;
    return encode(&map, static_cast<CUtensorMapDataType>(c.type), c.rank,
                  reinterpret_cast<void *>(static_cast<uintptr_t>(c.address)), c.dim, c.strides, c.box,
                  c.element_strides, static_cast<CUtensorMapInterleave>(c.interleave),
                  static_cast<CUtensorMapSwizzle>(c.swizzle), static_cast<CUtensorMapL2promotion>(c.l2_promotion),
                  static_cast<CUtensorMapFloatOOBfill>(c.oob_fill));
}

void print_call(const world_call &c)
{
    std::printf("    type %lld, rank %u, address 0x%llx, interleave %lld, swizzle %lld, l2 %lld, fill %lld\n",
                static_cast<long long>(c.type), c.rank, static_cast<unsigned long long>(c.address),
                static_cast<long long>(c.interleave), static_cast<long long>(c.swizzle),
                static_cast<long long>(c.l2_promotion), static_cast<long long>(c.oob_fill));
    for (uint32_t i = 0; i < c.rank; ++i)
        std::printf("    dim %llu, stride %lld, box %u, step %u\n", static_cast<unsigned long long>(c.dim[i]),
                    i ? static_cast<long long>(c.strides[i - 1]) : 0, c.box[i], c.element_strides[i]);
}

void differ(const char *what, CUresult result, const char *message, const world_call &call)
{
    if (++differences > MOST_PRINTED) return;
    std::printf("DIFFERENCE: %s: the driver says %d; %s\n", what, static_cast<int>(result), message);
    print_call(call);
}

int only_broken(const world_call &call)
{
    int found = -1;
    for (int row = 0; row < SENTENCES; ++row)
        if (!world_document[row].holds(&call)) found = found == -1 ? row : -2;
    return found;
}

void compare(const cai_array &x, const cai_tensor_tile &tile, tally<SENTENCES> *count)
{
    world_call call;
    cai_tensor_map_plan plan;
    cai_error err;
    CUtensorMap map;
    const char *const why = world_call_of(&x, &tile, &call);
    if (cai_tensor_map_of(&x, &tile, &plan, &err) == CAI_OK) {
        const CUresult result = encode(&map, CAI_TENSOR_MAP_ARGUMENTS(plan));
        if (result) differ("the plan was taken", result, "", call);
        else ++count->both_take;
        return;
    }
    if (why) {
        ++count->ours[why];
        return;
    }
    const CUresult result = driver_says(call);
    const int row = only_broken(call);
    if (!result) differ("refused", result, err.message, call);
    else ++count->both_refuse;
    if (row >= 0) ++count->alone[row];
}

// ----------------------------------------------------------------- single questions

void ask(const char *question, cai_array x, cai_tensor_tile tile)
{
    world_call call;
    cai_tensor_map_plan plan;
    cai_error err;
    const char *const why = world_call_of(&x, &tile, &call);
    const cai_status status = cai_tensor_map_of(&x, &tile, &plan, &err);
    std::printf("%s: the driver says %d, the plan %s%s%s\n", question, static_cast<int>(driver_says(call)),
                status ? err.message : "is taken", why ? "; " : "", why ? why : "");
}

void ask_all(int major)
{
    const int64_t shape[4] = {4, 16, 100, 64};
    cai_array x, y;
    cai_tensor_tile tile = {};
    (void)!cai_array_init(&x, CAI_FLOAT32, 4, shape, nullptr, &x, nullptr);
    x.data = 0x7f0000000000;
    tile.box[0] = tile.box[1] = 1;
    tile.box[2] = tile.box[3] = 32;
    ask("C order", x, tile);
    y = x;
    y.strides[1] = 256;
    y.strides[2] = 16 * 256;
    ask("an outer axis with a smaller stride", y, tile);
    y = x;
    y.strides[2] = 64;
    ask("rows that overlap", y, tile);
    y = x;
    y.strides[0] = y.strides[1] = 0;
    ask("strides of 0", y, tile);
    tile.steps[3] = 2;
    ask("steps of the last axis", x, tile);
    tile.steps[3] = 9;
    ask("steps of 9 of the last axis", x, tile);
    tile.steps[3] = 0;
    y = x;
    y.shape[3] = 8;
    y.strides[2] = 32;
    ask("a box larger than the array", y, tile);
    y = x;
    y.data = 4096;
    ask("an address of nothing", y, tile);
    for (int swizzle = 4; swizzle < 7 && major < 10; ++swizzle) {
        tile.swizzle = swizzle;
        ask("a swizzle of CUDA 12.8 on this device", x, tile);
    }
    (void)!cai_dtype_of(CAI_UINT8, &x.dtype, nullptr);
    x.shape[3] = 192;
    x.strides[3] = 1;
    tile.box[3] = 128;
    tile.swizzle = 0;
    for (int type = 13; type < 16 && major < 10; ++type) {
        tile.type = type;
        ask("a packed type on this device", x, tile);
    }
}

} // namespace

int main(int argc, char **argv)
{
    const long long arrays = argc > 1 ? std::atoll(argv[1]) : 10000;
    const int major = find_device();
    if (!major) return 77;
    if (!find_encode("cuTensorMapEncodeTiled", &encode)) return 2;
    world_chance chance = chance_of(argc, argv, major);
    tally<SENTENCES> count;
    for (long long i = 0; i < arrays; ++i) {
        cai_array x;
        cai_tensor_tile tile;
        world_good(&chance, &x, &tile);
        if (world_below(&chance, 2)) world_to_a_bound(&chance, &x, &tile);
        compare(x, tile, &count);
    }
    print_tally(count, world_document, "not for a call");
    ask_all(major);
    std::printf("%lld arrays: %lld taken by both, %lld refused by both, %d differences\n", arrays, count.both_take,
                count.both_refuse, differences);
    return differences ? 1 : 0;
}
