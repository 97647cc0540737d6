/* tensor_map_world.h - what CUDA's document says of tensor maps, and random arrays and tiles
 * SPDX-License-Identifier: MIT
 *
 * C99 and C++11, without CUDA. test_tensor_map.c compares cai_tensor_map_of with the document,
 * tests/gpu/tensor_maps.cu with the driver. */
#ifndef TENSOR_MAP_WORLD_H
#define TENSOR_MAP_WORLD_H

#include "cai_tensor_map.h"

#include <string.h>

/* The arguments of cuTensorMapEncodeTiled, in the words of the document. Any number of dimensions up to 8 has
 * its place here, and any value. */
typedef struct world_call {
    int64_t type, interleave, swizzle, l2_promotion, oob_fill;
    uint32_t rank;
    uint64_t address, dim[8], strides[8];
    uint32_t box[8], element_strides[8];
} world_call;

/* ------------------------------------------------------------------ the document */
/* cuda.h of CUDA 13.0, the comment on cuTensorMapEncodeTiled: each sentence that demands something is a row.
 *
 * One passage is not a row: "Each following dimension specified includes previous dimension stride", with a
 * computation of strides from padding. Read as a demand, it would refuse what NVIDIA's own code passes to this
 * function. CUTLASS (cute/atom/copy_traits_sm90_tma.hpp) asserts multiples of 16 below 2^40, takes the dimensions
 * in the order of the tile, whatever their strides are, and joins several into one of their greatest common
 * divisor, which overlaps itself. NVIDIA's release notes of driver 595.71.05 tell of a defect in maps of tensors
 * that are not "dense non-overlapping", which the driver made. libcu++ (cuda/__tma/make_tma_descriptor.h) refuses
 * overlaps and smaller outer strides, a stride of 0 it takes; it also refuses a box larger than the array, of which
 * the document says nothing. */

#define WORLD_POWER(n) ((uint64_t)1 << (n))

enum { W_U4_8 = 13, W_U4_16 = 14, W_U6_16 = 15 };

/* "1 byte", "2 bytes", ..., "4 bits", "6 bits": the comments of CUtensorMapDataType */
static inline uint64_t world_bits(int64_t type)
{
    switch (type) {
    case 0: return 8;
    case 1: case 6: case 9: return 16;
    case 2: case 3: case 7: case 10: case 11: case 12: return 32;
    case 4: case 5: case 8: return 64;
    case W_U4_8: case W_U4_16: return 4;
    case W_U6_16: return 6;
    default: return 8; /* no type: another row says so */
    }
}

static inline int world_wide(const world_call *c)
{
    return c->type == W_U6_16 || c->type == W_U4_16;
}

static inline uint32_t world_ranks(const world_call *c)
{
    return c->rank > 8 ? 8 : c->rank;
}

static inline int world_all(const uint64_t *values, uint32_t count, uint64_t least, uint64_t most, uint64_t multiple)
{
    uint32_t i;
    for (i = 0; i < count; ++i)
        if (values[i] < least || values[i] > most || values[i] % multiple) return 0;
    return 1;
}

static inline int world_strides(const world_call *c, uint64_t multiple)
{
    return world_all(c->strides, c->rank ? world_ranks(c) - 1 : 0, 0, WORLD_POWER(40) - 1, multiple);
}

static inline int world_small(const uint32_t *values, uint32_t first, uint32_t count, uint32_t most)
{
    uint32_t i;
    for (i = first; i < count; ++i)
        if (values[i] < 1 || values[i] > most) return 0;
    return 1;
}

static inline uint64_t world_inner_bits(const world_call *c)
{
    return (uint64_t)c->box[0] * world_bits(c->type);
}

static inline int w_type(const world_call *c) { return c->type >= 0 && c->type <= 15; }
static inline int w_rank(const world_call *c) { return c->rank != 0 && c->rank <= 5; }
static inline int w_rank_3(const world_call *c) { return c->interleave == 0 || c->rank >= 3; }
static inline int w_address(const world_call *c) { return c->address % 16 == 0; }
static inline int w_address_32b(const world_call *c) { return c->interleave != 2 || c->address % 32 == 0; }
static inline int w_address_wide(const world_call *c) { return !world_wide(c) || c->address % 32 == 0; }
static inline int w_dim(const world_call *c)
{
    return world_all(c->dim, world_ranks(c), 1, WORLD_POWER(32), 1);
}
static inline int w_dim_wide(const world_call *c) { return !world_wide(c) || c->dim[0] % 128 == 0; }
static inline int w_dim_u4(const world_call *c) { return c->type != W_U4_8 || c->dim[0] % 2 == 0; }
static inline int w_strides(const world_call *c) { return world_strides(c, 16); }
static inline int w_strides_32b(const world_call *c) { return c->interleave != 2 || world_strides(c, 32); }
static inline int w_strides_wide(const world_call *c) { return !world_wide(c) || world_strides(c, 32); }
static inline int w_box(const world_call *c) { return world_small(c->box, 0, world_ranks(c), 256); }
static inline int w_box_16(const world_call *c) { return c->interleave != 0 || world_inner_bits(c) % 128 == 0; }
static inline int w_box_wide(const world_call *c) { return !world_wide(c) || c->box[0] == 128; }
static inline int w_steps(const world_call *c)
{
    return world_small(c->element_strides, c->interleave == 0 ? 1 : 0, world_ranks(c), 8);
}
static inline int w_interleave(const world_call *c) { return c->interleave >= 0 && c->interleave <= 2; }
static inline int w_span(const world_call *c)
{
    static const uint64_t bytes[] = {0, 32, 64, 128, 128, 128, 128};
    if (c->interleave != 0 || c->swizzle < 1 || c->swizzle > 6) return 1;
    return world_inner_bits(c) <= 8 * bytes[c->swizzle];
}
static inline int w_u6_plain(const world_call *c) { return c->type != W_U6_16 || c->interleave == 0; }
static inline int w_swizzle(const world_call *c) { return c->swizzle >= 0 && c->swizzle <= 6; }
static inline int w_swizzle_32b(const world_call *c) { return c->interleave != 2 || c->swizzle == 1; }
static inline int w_swizzle_u6(const world_call *c)
{
    return c->type != W_U6_16 || c->swizzle == 0 || c->swizzle == 3 || c->swizzle == 4 || c->swizzle == 6;
}
static inline int w_swizzle_u4(const world_call *c)
{
    return c->type != W_U4_16 || c->swizzle == 0 || c->swizzle == 3 || c->swizzle == 4;
}
static inline int w_l2(const world_call *c) { return c->l2_promotion >= 0 && c->l2_promotion <= 3; }
static inline int w_fill(const world_call *c) { return c->oob_fill == 0 || c->oob_fill == 1; }
static inline int w_nan(const world_call *c) { return c->oob_fill != 1 || (c->type >= 6 && c->type <= 12); }

static const struct world_sentence {
    const char *text;
    int (*holds)(const world_call *call);
} world_document[] = {
    {"tensorDataType has to be an enum from CUtensorMapDataType", w_type},
    {"tensorRank must be non-zero and less than or equal to 5", w_rank},
    {"interleave is not NONE: tensorRank must be greater than or equal to 3", w_rank_3},
    {"globalAddress must be 16 byte aligned", w_address},
    {"INTERLEAVE_32B: globalAddress must be 32 byte aligned", w_address_32b},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: globalAddress must be 32 byte aligned", w_address_wide},
    {"globalDim must be non-zero and less than or equal to 2^32", w_dim},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: globalDim[0] must be a multiple of 128", w_dim_wide},
    {"16U4_ALIGN8B: globalDim[0] must be a multiple of 2", w_dim_u4},
    {"globalStrides must be a multiple of 16 and less than 2^40", w_strides},
    {"INTERLEAVE_32B: the strides must be a multiple of 32", w_strides_32b},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: the strides must be a multiple of 32", w_strides_wide},
    {"boxDim must be non-zero and less than or equal to 256", w_box},
    {"INTERLEAVE_NONE: boxDim[0] * elementSizeInBytes must be a multiple of 16 bytes", w_box_16},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: boxDim[0] must be 128", w_box_wide},
    {"elementStrides must be non-zero and <= 8; with INTERLEAVE_NONE the first is ignored", w_steps},
    {"interleave is of type CUtensorMapInterleave", w_interleave},
    {"INTERLEAVE_NONE: the inner dimension must be less than or equal to the swizzle size", w_span},
    {"16U6_ALIGN16B requires INTERLEAVE_NONE", w_u6_plain},
    {"swizzle has to be of type CUtensorMapSwizzle", w_swizzle},
    {"INTERLEAVE_32B: swizzle must be SWIZZLE_32B", w_swizzle_32b},
    {"16U6_ALIGN16B: only NONE, 128B, 128B_ATOM_32B, 128B_ATOM_64B are supported", w_swizzle_u6},
    {"16U4_ALIGN16B: only NONE, 128B, 128B_ATOM_32B are supported", w_swizzle_u4},
    {"l2Promotion must be of type CUtensorMapL2promotion", w_l2},
    {"oobFill must be of type CUtensorMapFloatOOBfill", w_fill},
    {"NAN_REQUEST_ZERO_FMA can only be used with a floating-point data type", w_nan},
};

/* ------------------------------------------------------------------ arrays and tiles */
/* What cannot be said in a call, or is ignored by it: the reason, or NULL. `call` gets what can. */
static inline const char *world_call_of(const cai_array *array, const cai_tensor_tile *tile, world_call *call)
{
    static const int32_t types[][2] = {
        {CAI_INT16, 1}, {CAI_UINT16, 1}, {CAI_UINT32, 2}, {CAI_INT32, 3}, {CAI_UINT64, 4}, {CAI_INT64, 5},
        {CAI_FLOAT16, 6}, {CAI_FLOAT32, 7}, {CAI_FLOAT64, 8}, {CAI_BFLOAT16, 9}};
    const char *why = NULL;
    const uint64_t unit = tile->interleave == 2 || (tile->type >= W_U4_16 && tile->type <= W_U6_16) ? 32 : 16;
    const int32_t last = array->ndim - 1, values = cai_dtype_values(&array->dtype);
    int32_t axis;
    size_t row, known = array->dtype.itemsize == 1;
    memset(call, 0, sizeof *call);
    call->type = tile->type == CAI_TENSOR_MAP_UINT8 ? 0 : tile->type;
    for (row = 0; row < sizeof types / sizeof *types && tile->type == 0; ++row)
        if (types[row][0] == array->dtype.code) call->type = types[row][1];
    known = known || call->type != 0;
    if (values > 1) known = call->type != 0;
    if (!known) why = "a dtype without a type";
    else if (values > 1 && w_type(call) && world_bits(call->type) != (uint64_t)array->dtype.bits)
        why = "a type of other values";
    else if (values == 1 && w_type(call) && (world_bits(call->type) + 7) / 8 != (uint64_t)array->dtype.itemsize)
        why = "a type of another size";
    else if (values == 1 && array->dtype.bits && tile->type >= W_U4_8 && tile->type <= W_U6_16)
        why = "a byte for each value, where CUDA packs them";
    call->interleave = tile->interleave;
    call->swizzle = tile->swizzle;
    call->l2_promotion = tile->l2_promotion;
    call->oob_fill = tile->fill;
    call->rank = (uint32_t)array->ndim;
    call->address = array->data;
    for (axis = 0; axis <= last; ++axis) {
        const int32_t at = last - axis;
        call->dim[at] = (uint64_t)array->shape[axis];
        if (at) call->strides[at - 1] = array->shape[axis] == 1 ? unit : (uint64_t)array->strides[axis];
        if (at && array->shape[axis] == 1 && array->strides[axis] >= 0 &&
            array->strides[axis] < ((int64_t)1 << 40) && array->strides[axis] % (int64_t)unit == 0)
            call->strides[at - 1] = (uint64_t)array->strides[axis];
        if (at == 0 && array->shape[axis] != 1 && array->strides[axis] != array->dtype.itemsize)
            why = "a last axis that is not contiguous";
    }
    if (cai_array_check(array, NULL)) why = "a packed axis that does not have its values";
    else if (values > 1 && array->packed_axis != last) why = "a packed axis that is not the last one";
    if (values > 1) call->dim[0] = (uint64_t)array->packed_extent;
    else if (call->type >= W_U4_8 && array->ndim) call->dim[0] = call->dim[0] * 8 / world_bits(call->type);
    for (axis = 0; axis < 5; ++axis) {
        const int32_t at = last - axis, step = tile->steps[axis];
        if (at < 0 && (tile->box[axis] || step)) why = "a box of more dimensions than the array";
        if (at < 0) continue;
        call->box[at] = (uint32_t)tile->box[axis];
        call->element_strides[at] = step ? (uint32_t)step : 1;
        if (at == 0 && tile->interleave == 0 && step != 0 && step != 1) why = "steps of the last axis";
    }
    for (axis = 5; axis <= last; ++axis) { /* a tile has no entry of these: any that is right */
        call->box[last - axis] = 128;
        call->element_strides[last - axis] = 1;
    }
    return why;
}

/* ------------------------------------------------------------------ chance */
typedef struct world_chance {
    uint64_t state;
    int32_t types, swizzles; /* those below are used: 16 and 7, or 13 and 4 before CUDA 12.8 */
} world_chance;

static inline uint64_t world_next(world_chance *chance)
{
    chance->state ^= chance->state << 13;
    chance->state ^= chance->state >> 7;
    chance->state ^= chance->state << 17;
    return chance->state * 0x2545f4914f6cdd1dull >> 11;
}

static inline int64_t world_below(world_chance *chance, int64_t count)
{
    return (int64_t)(world_next(chance) % (uint64_t)count);
}

#define WORLD_PICK(chance, list) (list)[world_below(chance, (int64_t)(sizeof(list) / sizeof *(list)))]

static inline void world_element(world_chance *chance, cai_array *array, cai_tensor_tile *tile)
{
    static const int32_t codes[] = {
        CAI_BOOL, CAI_INT8, CAI_UINT8, CAI_FLOAT8_E4M3FN, CAI_INT16, CAI_UINT16, CAI_FLOAT16, CAI_BFLOAT16, CAI_INT32,
        CAI_UINT32, CAI_FLOAT32, CAI_INT64, CAI_UINT64, CAI_FLOAT64};
    const int packed = chance->types > 13 && world_below(chance, 4) == 0;
    const int32_t of_bytes = (int32_t)world_below(chance, 2), type = 13 + (int32_t)world_below(chance, 3);
    const int32_t code = !packed          ? WORLD_PICK(chance, codes)
                         : of_bytes       ? CAI_UINT8
                         : type == W_U6_16 ? CAI_FLOAT6_E2M3FN_X4
                                          : CAI_FLOAT4_E2M1FN_X2;
    const int64_t one = 1;
    (void)!cai_array_init(array, code, 1, &one, NULL, tile, NULL);
    array->data = (uint64_t)(0x7f0000000000ll + 64 * world_below(chance, 1000));
    if (packed) tile->type = type;
    if (code == CAI_FLOAT32 && world_below(chance, 2)) tile->type = 10 + (int32_t)world_below(chance, 3);
    if (code == CAI_FLOAT16 || code == CAI_BFLOAT16 || code == CAI_FLOAT32 || code == CAI_FLOAT64)
        tile->fill = (int32_t)world_below(chance, 2);
}

static inline void world_modes(world_chance *chance, cai_tensor_tile *tile)
{
    if (world_below(chance, 3) == 0) tile->interleave = (int32_t)world_below(chance, 3);
    if (tile->type >= W_U4_16) tile->interleave = tile->type == W_U6_16 ? 0 : tile->interleave % 2;
    do tile->swizzle = (int32_t)world_below(chance, chance->swizzles);
    while (tile->type >= W_U4_16 && (tile->swizzle == 1 || tile->swizzle == 2 || tile->swizzle == 5 ||
                                     (tile->swizzle == 6 && tile->type == W_U4_16)));
    if (tile->interleave == 2) tile->swizzle = 1;
    tile->l2_promotion = (int32_t)world_below(chance, 4);
}

/* Sets the values of the last axis of a packed array. */
static inline void world_values(cai_array *array, int64_t extent)
{
    const int64_t values = cai_dtype_values(&array->dtype);
    array->packed_extent = extent;
    array->shape[array->packed_axis] = extent / values + (extent % values > 0);
}

/* An array and a tile that the document takes: any of them, not the simplest. Eight axes have values. */
static inline void world_good(world_chance *chance, cai_array *array, cai_tensor_tile *tile)
{
    static const int32_t spans[] = {256, 32, 64, 128, 128, 128, 128};
    int32_t axis, bits, least, most;
    memset(tile, 0, sizeof *tile);
    world_element(chance, array, tile);
    world_modes(chance, tile);
    array->ndim = 1 + (int32_t)world_below(chance, 5);
    if (tile->interleave && array->ndim < 3) array->ndim = 3;
    for (axis = 0; axis < 8; ++axis) {
        array->shape[axis] = 1 + world_below(chance, world_below(chance, 2) ? 100000 : 4);
        array->strides[axis] = 32 * world_below(chance, world_below(chance, 4) ? 1 << 20 : 3);
        if (tile->interleave != 2 && tile->type < W_U4_16 && world_below(chance, 2)) array->strides[axis] += 16;
    }
    for (axis = 0; axis < array->ndim; ++axis) {
        tile->box[axis] = 1 + (int32_t)world_below(chance, 256);
        tile->steps[axis] = world_below(chance, 2) ? 0 : 1 + (int32_t)world_below(chance, 8);
    }
    axis = array->ndim - 1;
    bits = tile->type >= W_U4_8 ? (int32_t)world_bits(tile->type) : 8 * array->dtype.itemsize;
    array->strides[axis] = array->dtype.itemsize;
    if (tile->type >= W_U4_16) array->shape[axis] *= 16 * bits;
    if (tile->type >= W_U4_16) tile->box[axis] = 128;
    if (cai_dtype_values(&array->dtype) > 1) {
        array->packed_axis = axis;
        world_values(array, (tile->type >= W_U4_16 ? 128 : 2) * (1 + world_below(chance, 1000)));
    }
    if (tile->interleave) return;
    least = 128 / bits;
    most = 8 * spans[tile->swizzle] / bits > 256 ? 256 : 8 * spans[tile->swizzle] / bits;
    if (tile->type < W_U4_16) tile->box[axis] = least * (1 + (int32_t)world_below(chance, most / least));
    tile->steps[axis] = (int32_t)world_below(chance, 2);
}

/* A value of an enumerator that has `count` of them, or one beside these. */
static inline int32_t world_enumerator(world_chance *chance, int32_t count, int32_t above)
{
    const int64_t value = world_below(chance, count + 2) - 1;
    return value == count ? above : (int32_t)value;
}

static inline void world_dimensions(world_chance *chance, cai_array *array, cai_tensor_tile *tile)
{
    int32_t axis;
    array->ndim = (int32_t)world_below(chance, 8);
    if (array->ndim && world_below(chance, 4)) array->strides[array->ndim - 1] = array->dtype.itemsize;
    for (axis = array->ndim; axis < 5 && world_below(chance, 8); ++axis) tile->box[axis] = tile->steps[axis] = 0;
}

/* Sets something to a value at or near the bound of a condition, on either side. */
static inline void world_to_a_bound(world_chance *chance, cai_array *array, cai_tensor_tile *tile)
{
    static const int64_t extents[] = {0, 1, 2, 127, 128, 3221225472ll, 3221225473ll, 2147483648ll, 2147483649ll,
                                      4294967295ll, 4294967296ll, 4294967297ll, -1, INT64_MAX, INT64_MIN};
    static const int64_t strides[] = {0, 1, 4, 8, 16, 24, 32, 48, -16, -32, 1099511627744ll, 1099511627760ll,
                                      1099511627768ll, 1099511627776ll, 1099511627808ll, INT64_MAX, INT64_MIN};
    static const int32_t boxes[] = {0, 1, 2, 4, 8, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 255, 256, 257,
                                    -1, INT32_MAX, INT32_MIN};
    static const int32_t steps[] = {0, 1, 2, 7, 8, 9, -1, 256};
    static const int32_t codes[] = {CAI_COMPLEX64, CAI_COMPLEX32, CAI_FLOAT64, CAI_SWAPPED(CAI_FLOAT32), CAI_UINT8,
                                    CAI_INT16, CAI_INT32, CAI_UINT64, CAI_COMPLEX128};
    static const int64_t addresses[] = {1, 8, 16, 32, 48};
    const int32_t axis = array->ndim ? (int32_t)world_below(chance, array->ndim) : 0;
    const int32_t last = array->ndim - 1, at = world_below(chance, 2) || last < 0 ? axis : last;
    switch (world_below(chance, 14)) {
    case 0:
        if (array->packed_axis >= 0 && array->packed_axis < array->ndim && world_below(chance, 4))
            world_values(array, array->packed_extent > 1 && world_below(chance, 2) ? array->packed_extent - 1
                                                                                   : WORLD_PICK(chance, extents));
        else array->shape[at] = WORLD_PICK(chance, extents);
        break;
    case 1: array->strides[axis] = WORLD_PICK(chance, strides); break;
    case 2:
    case 3: if (at < 5) tile->box[at] = WORLD_PICK(chance, boxes); break;
    case 4: if (at < 5) tile->steps[at] = WORLD_PICK(chance, steps); break;
    case 5: array->data += (uint64_t)WORLD_PICK(chance, addresses); break;
    case 6: world_dimensions(chance, array, tile); break;
    case 7: tile->interleave = world_enumerator(chance, 3, 3); break;
    case 8: tile->swizzle = world_enumerator(chance, chance->swizzles, 7); break;
    case 9: tile->type = world_enumerator(chance, chance->types, 16); break;
    case 10: tile->fill = world_enumerator(chance, 2, 2); break;
    case 12: array->packed_axis = (int32_t)world_below(chance, 4) - 1; break;
    case 11: tile->l2_promotion = world_enumerator(chance, 4, 4); break;
    default: (void)!cai_dtype_of(WORLD_PICK(chance, codes), &array->dtype, NULL);
    }
}

#endif
