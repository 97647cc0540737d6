/* im2col_world.h - what CUDA's documents say of im2col mode, and random arrays and columns
 * SPDX-License-Identifier: MIT
 *
 * C99 and C++11, without CUDA. test_im2col_map.c compares cai_im2col_map_of with the document,
 * tests/gpu/im2col_maps.cu with the driver and with copies. */
#ifndef IM2COL_WORLD_H
#define IM2COL_WORLD_H

#include "tensor_map_world.h"

/* The arguments of cuTensorMapEncodeIm2col. What tiles have, too, is in `map`, whose first box is channelsPerPixel.
 * Corners are in the order of the dimensions, W first. */
typedef struct column_call {
    world_call map;
    int64_t lower[3], upper[3];
    uint32_t pixels;
} column_call;

/* ------------------------------------------------------------------ the document */
/* cuda.h of CUDA 13.0, the comment on cuTensorMapEncodeIm2col: each sentence that demands something is a row, those
 * that tiles have, too, by the same function. "Area" is not explained there. PTX ISA, "im2col mode", says what the
 * box is: "Lower-Corner specifies the corner with the smallest coordinate and Upper-Corner specifies the corner
 * with the largest coordinate"; cuda.h says that these are offsets from the first and from the last pixel. CUTLASS
 * (cute/atom/copy_traits_sm90_im2col.hpp) counts (extent + upper - lower - 1) / stride + 1 pixels.
 *
 * cuda.h writes the corners as {D, H, W}, and does not say which is entry 0. CUTLASS has an array "in [W,H,D] order",
 * and its tests convolve on a GPU with filters of 2 x 5 and padding, which differ in H and W. Triton and cuda.core
 * reverse the order of the array's axes. tests/gpu/im2col_maps.cu asks a GPU. */

static inline uint32_t column_spatial(const column_call *c)
{
    return c->map.rank < 3 ? 0 : c->map.rank > 5 ? 3 : c->map.rank - 2;
}

static inline int column_corners(const int64_t *corners, const column_call *c, uint32_t rank, int64_t most)
{
    uint32_t i;
    for (i = 0; i < column_spatial(c) && c->map.rank == rank; ++i)
        if (corners[i] < -most - 1 || corners[i] > most) return 0;
    return 1;
}

static inline int c_rank(const column_call *c) { return c->map.rank == 3 || c->map.rank == 4 || c->map.rank == 5; }
static inline int c_lower_3(const column_call *c) { return column_corners(c->lower, c, 3, 32767); }
static inline int c_lower_4(const column_call *c) { return column_corners(c->lower, c, 4, 127); }
static inline int c_lower_5(const column_call *c) { return column_corners(c->lower, c, 5, 15); }
static inline int c_upper_3(const column_call *c) { return column_corners(c->upper, c, 3, 32767); }
static inline int c_upper_4(const column_call *c) { return column_corners(c->upper, c, 4, 127); }
static inline int c_upper_5(const column_call *c) { return column_corners(c->upper, c, 5, 15); }
static inline int c_area(const column_call *c)
{
    uint32_t i;
    for (i = 0; i < column_spatial(c); ++i) {
        const uint64_t pixels = c->map.dim[1 + i];
        if (pixels < 1 || pixels > WORLD_POWER(32)) continue; /* another row says so */
        if (c->lower[i] > (int64_t)pixels - 1 + c->upper[i]) return 0;
    }
    return 1;
}
static inline int c_channels(const column_call *c) { return c->map.box[0] <= 256; }
static inline int c_pixels(const column_call *c) { return c->pixels <= 1024; }

typedef struct column_sentence {
    const char *text;
    int (*tiles)(const world_call *call); /* of tiles, too; or */
    int (*columns)(const column_call *call);
} column_sentence;

static const column_sentence column_document[] = {
    {"tensorDataType has to be an enum from CUtensorMapDataType", w_type, NULL},
    {"tensorRank must be 3, 4, or 5", NULL, c_rank},
    {"globalAddress must be 16 byte aligned", w_address, NULL},
    {"INTERLEAVE_32B: globalAddress must be 32 byte aligned", w_address_32b, NULL},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: globalAddress must be 32 byte aligned", w_address_wide, NULL},
    {"globalDim must be non-zero and less than or equal to 2^32", w_dim, NULL},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: globalDim[0] must be a multiple of 128", w_dim_wide, NULL},
    {"16U4_ALIGN8B: globalDim[0] must be a multiple of 2", w_dim_u4, NULL},
    {"globalStrides must be a multiple of 16 and less than 2^40", w_strides, NULL},
    {"INTERLEAVE_32B: the strides must be a multiple of 32", w_strides_32b, NULL},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: the strides must be a multiple of 32", w_strides_wide, NULL},
    {"pixelBoxLowerCorner, tensorRank 3: within [-32768, 32767]", NULL, c_lower_3},
    {"pixelBoxLowerCorner, tensorRank 4: within [-128, 127]", NULL, c_lower_4},
    {"pixelBoxLowerCorner, tensorRank 5: within [-16, 15]", NULL, c_lower_5},
    {"pixelBoxUpperCorner, tensorRank 3: within [-32768, 32767]", NULL, c_upper_3},
    {"pixelBoxUpperCorner, tensorRank 4: within [-128, 127]", NULL, c_upper_4},
    {"pixelBoxUpperCorner, tensorRank 5: within [-16, 15]", NULL, c_upper_5},
    {"the bounding box must have non-zero area", NULL, c_area},
    {"channelsPerPixel must be less than or equal to 256", NULL, c_channels},
    {"16U6_ALIGN16B, 16U4_ALIGN16B: channelsPerPixel must be 128", w_box_wide, NULL},
    {"pixelsPerColumn must be less than or equal to 1024", NULL, c_pixels},
    {"elementStrides must be non-zero and <= 8; with INTERLEAVE_NONE the first is ignored", w_steps, NULL},
    {"interleave is of type CUtensorMapInterleave", w_interleave, NULL},
    {"INTERLEAVE_NONE: the inner dimension must be less than or equal to the swizzle size", w_span, NULL},
    {"16U6_ALIGN16B requires INTERLEAVE_NONE", w_u6_plain, NULL},
    {"swizzle has to be of type CUtensorMapSwizzle", w_swizzle, NULL},
    {"INTERLEAVE_32B: swizzle must be SWIZZLE_32B", w_swizzle_32b, NULL},
    {"16U6_ALIGN16B: only NONE, 128B, 128B_ATOM_32B, 128B_ATOM_64B are supported", w_swizzle_u6, NULL},
    {"16U4_ALIGN16B: only NONE, 128B, 128B_ATOM_32B are supported", w_swizzle_u4, NULL},
    {"l2Promotion must be of type CUtensorMapL2promotion", w_l2, NULL},
    {"oobFill must be of type CUtensorMapFloatOOBfill", w_fill, NULL},
    {"NAN_REQUEST_ZERO_FMA can only be used with a floating-point data type", w_nan, NULL},
};

enum { COLUMN_SENTENCES = sizeof column_document / sizeof *column_document };

/* Which sentence does not hold: -1 for none, -2 for several. */
static inline int32_t column_broken(const column_call *call)
{
    int32_t row, found = -1;
    for (row = 0; row < (int32_t)COLUMN_SENTENCES; ++row) {
        const column_sentence *const one = &column_document[row];
        if (one->tiles ? !one->tiles(&call->map) : !one->columns(call)) found = found == -1 ? row : -2;
    }
    return found;
}

/* The first part of a plan that is not what the call has: its name, or NULL. */
static inline const char *column_difference(const cai_im2col_map_plan *plan, const column_call *call)
{
    const world_call *const map = &call->map;
    const uint64_t inner = world_wide(map) ? map->box[0] : map->box[0] * world_bits(map->type) / 8;
    uint32_t i;
    if (plan->rank != map->rank) return "rank";
    if (plan->address != map->address) return "address";
    if (plan->type != map->type) return "type";
    if (plan->interleave != map->interleave || plan->swizzle != map->swizzle) return "interleave or swizzle";
    if (plan->l2_promotion != map->l2_promotion || plan->fill != map->oob_fill) return "l2_promotion or fill";
    if (plan->channels != map->box[0] || plan->pixels != call->pixels) return "channels or pixels";
    for (i = 0; i < 5; ++i) {
        if (plan->dims[i] != (i < plan->rank ? map->dim[i] : 0)) return "dims";
        if (plan->steps[i] != (i < plan->rank ? map->element_strides[i] : 0)) return "steps";
        if (i < 4 && plan->strides[i] != (i + 1 < plan->rank ? map->strides[i] : 0)) return "strides";
        if (i < 3 && (plan->lower[i] != call->lower[i] || plan->upper[i] != call->upper[i])) return "corners";
    }
    return plan->column_bytes == (plan->interleave ? 0 : inner * call->pixels) ? NULL : "column_bytes";
}

/* ------------------------------------------------------------------ arrays and columns */
/* The tile of the same modes whose last axis has the channels. */
static inline void column_tile(const cai_array *array, const cai_im2col_tile *from, cai_tensor_tile *tile)
{
    int32_t axis;
    memset(tile, 0, sizeof *tile);
    for (axis = 0; axis < 5 && axis < array->ndim; ++axis)
        tile->box[axis] = axis == array->ndim - 1 ? from->channels : 1;
    tile->type = from->type;
    tile->interleave = from->interleave;
    tile->swizzle = from->swizzle;
    tile->l2_promotion = from->l2_promotion;
    tile->fill = from->fill;
}

/* What cannot be said in a call, or the document says nothing of: the reason, or NULL. `call` gets what can. */
static inline const char *column_call_of(const cai_array *array, const cai_im2col_tile *tile, column_call *call)
{
    const int32_t spatial = array->ndim - 2 < 3 ? array->ndim - 2 : 3;
    cai_tensor_tile same;
    const char *why;
    int32_t at;
    memset(call, 0, sizeof *call);
    column_tile(array, tile, &same);
    why = world_call_of(array, &same, &call->map);
    call->map.box[0] = (uint32_t)tile->channels;
    call->pixels = (uint32_t)tile->pixels;
    for (at = 0; at < 3; ++at) {
        const int32_t dim = array->ndim - 2 - at; /* the axis is at + 1 */
        if (at >= spatial && (tile->lower[at] || tile->upper[at] || tile->steps[at]))
            why = "corners or steps of more axes than the array";
        if (at >= spatial) continue;
        if (dim <= 3) call->lower[dim - 1] = tile->lower[at];
        if (dim <= 3) call->upper[dim - 1] = tile->upper[at];
        call->map.element_strides[dim] = tile->steps[at] ? (uint32_t)tile->steps[at] : 1;
    }
    if (tile->channels == 0 || tile->pixels == 0) why = "a column of nothing";
    else if (!w_box_16(&call->map)) why = "channels that are not multiples of 16 bytes";
    return why;
}

static inline int32_t column_most(int32_t ndim) { return ndim == 3 ? 32767 : ndim == 4 ? 127 : 15; }

/* Corners that the document takes, for an axis of any extent. */
static inline void column_box(world_chance *chance, const cai_array *array, cai_im2col_tile *tile, int32_t at)
{
    const int64_t most = column_most(array->ndim), extent = array->shape[at + 1];
    do {
        tile->lower[at] = (int32_t)(world_below(chance, 2 * most + 2) - most - 1);
        tile->upper[at] = (int32_t)(world_below(chance, 2 * most + 2) - most - 1);
    } while (extent + tile->upper[at] - tile->lower[at] < 1);
    if (world_below(chance, 2)) tile->steps[at] = 1 + (int32_t)world_below(chance, 8);
}

/* Takes what a column shares with a tile. */
static inline void column_take(cai_im2col_tile *tile, const cai_tensor_tile *same, int32_t ndim)
{
    tile->channels = same->box[ndim - 1];
    tile->type = same->type;
    tile->interleave = same->interleave;
    tile->swizzle = same->swizzle;
    tile->l2_promotion = same->l2_promotion;
    tile->fill = same->fill;
}

/* An array and a column that the document takes: any of them, not the simplest. */
static inline void column_good(world_chance *chance, cai_array *array, cai_im2col_tile *tile)
{
    cai_tensor_tile same;
    int32_t at;
    do world_good(chance, array, &same);
    while (array->ndim < 3);
    memset(tile, 0, sizeof *tile);
    for (at = 0; at < array->ndim - 2; ++at) column_box(chance, array, tile, at);
    column_take(tile, &same, array->ndim);
    tile->pixels = 1 + (int32_t)world_below(chance, 1024);
}

static inline void column_dimensions(world_chance *chance, cai_array *array, cai_im2col_tile *tile)
{
    int32_t at;
    array->ndim = (int32_t)world_below(chance, 8);
    if (array->ndim && world_below(chance, 4)) array->strides[array->ndim - 1] = array->dtype.itemsize;
    for (at = array->ndim < 2 ? 0 : array->ndim - 2; at < 3 && world_below(chance, 8); ++at)
        tile->lower[at] = tile->upper[at] = tile->steps[at] = 0;
}

/* Corners of an axis whose box has one pixel, or none. */
static inline void column_narrow(world_chance *chance, cai_array *array, cai_im2col_tile *tile, int32_t at)
{
    const int64_t most = column_most(array->ndim);
    const int32_t behind = (int32_t)world_below(chance, most + 1);
    array->shape[at + 1] = 1 + world_below(chance, most);
    tile->upper[at] = -behind;
    tile->lower[at] = (int32_t)array->shape[at + 1] - behind - (int32_t)world_below(chance, 3);
}

/* Sets something of the array or of the modes that tiles have, too, to a bound. */
static inline void column_to_a_bound_of_tiles(world_chance *chance, cai_array *array, cai_im2col_tile *tile)
{
    const int32_t ndim = array->ndim;
    cai_tensor_tile same;
    column_tile(array, tile, &same);
    world_to_a_bound(chance, array, &same);
    array->ndim = ndim; /* column_dimensions has these */
    column_take(tile, &same, ndim);
}

/* Sets something to a value at or near the bound of a condition, on either side. */
static inline void column_to_a_bound(world_chance *chance, cai_array *array, cai_im2col_tile *tile)
{
    static const int32_t corners[] = {-32769, -32768, 32767, 32768, -129, -128, 127, 128, -17, -16, 15, 16, 0, -1,
                                      INT32_MAX, INT32_MIN};
    static const int32_t channels[] = {0, 1, 2, 4, 8, 15, 16, 17, 32, 64, 127, 128, 129, 256, 257, -1, INT32_MAX,
                                       INT32_MIN};
    static const int32_t pixels[] = {0, 1, 2, 256, 257, 1023, 1024, 1025, -1, INT32_MAX, INT32_MIN};
    static const int32_t steps[] = {0, 1, 2, 7, 8, 9, -1, 256};
    const int32_t at = (int32_t)world_below(chance, array->ndim - 2);
    switch (world_below(chance, 14)) {
    case 0: tile->lower[at] = WORLD_PICK(chance, corners); break;
    case 1: tile->upper[at] = WORLD_PICK(chance, corners); break;
    case 2: column_narrow(chance, array, tile, at); break;
    case 3: tile->channels = WORLD_PICK(chance, channels); break;
    case 4: tile->pixels = WORLD_PICK(chance, pixels); break;
    case 5: tile->steps[at] = WORLD_PICK(chance, steps); break;
    case 6: column_dimensions(chance, array, tile); break;
    default: column_to_a_bound_of_tiles(chance, array, tile);
    }
}

/* ------------------------------------------------------------------ pixels */
/* Where a walk through a box is: N, and D, H, W as entries 2, 1, 0. */
typedef struct column_place {
    int64_t image, at[3];
} column_place;

/* The next base pixel of a column, as PTX ISA and its examples have it: W first. Past the end of a box comes the next
 * row of it, after these D, then the next image. */
static inline void column_next(const cai_im2col_map_plan *plan, column_place *place)
{
    uint32_t i;
    for (i = 0; i + 2 < plan->rank; ++i) {
        place->at[i] += plan->steps[1 + i];
        if (place->at[i] <= (int64_t)plan->dims[1 + i] - 1 + plan->upper[i]) return;
        place->at[i] = plan->lower[i];
    }
    ++place->image;
}

#endif
