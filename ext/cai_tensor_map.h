/* cai_tensor_map.h - an array and a tile as the arguments of cuTensorMapEncodeTiled or Im2col - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_TENSOR_MAP_IMPLEMENTATION)
#define CAI_TENSOR_MAP_IMPLEMENTATION
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_tensor_map.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_TENSOR_MAP_H_INCLUDED) && CAI_TENSOR_MAP_H_INCLUDED != 200
#error "cai_tensor_map.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_TENSOR_MAP_H_INCLUDED
#define CAI_TENSOR_MAP_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_TENSOR_MAP_IMPLEMENTATION for this header alone). All other configuration
    is that of cai.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_tensor_map.h"

WHAT IT IS
    A kernel of compute capability 9.0 or higher copies tiles of an array to shared memory through a tensor
    map (TMA). cuTensorMapEncodeTiled makes the map, for convolutions cuTensorMapEncodeIm2col. If a call
    refuses, it does not say why. A plan has the arguments of the call, or an error says which condition does
    not hold.

        cai_tensor_tile tile = {0};
        cai_tensor_map_plan plan;
        tile.box[0] = 64; tile.box[1] = 32;                // rows, columns
        tile.swizzle = CAI_TENSOR_MAP_SWIZZLE_128B;
        CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, 2, CAI_ON_DEVICE, err));
        CAI_TRY(cai_tensor_map_of(x, &tile, &plan, err));
        result = cuTensorMapEncodeTiled(&map, CAI_TENSOR_MAP_ARGUMENTS(plan)); // cuda.h is yours

    A tile is in the order of the array's axes. CUDA has the reverse order, so a plan has it, too. The kernel
    gives its coordinates in CUDA's order: the column first, then the row.

THREADS
    The functions keep no state. Any number of threads may call them.
*/

#if defined(CAI_NAMESPACE)
#define cai_tensor_map_of CAI_PRIV_RENAMED(cai_tensor_map_of)
#define cai_im2col_map_of CAI_PRIV_RENAMED(cai_im2col_map_of)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------- >>tiles */
enum { CAI_TENSOR_MAP_MAX_NDIM = 5 };

/** Types of elements of a tile. All but UINT8 have the values of CUtensorMapDataType. Its UINT8 is 0. There is
 *  none of int8, int16, bool and float8. A copy moves bits, so UINT8 and UINT16 carry these. In those with
 *  ALIGN, 16 values of 4 or 6 bits are packed (CUDA 12.8, compute capability 10.0). */
enum {
    CAI_TENSOR_MAP_BY_DTYPE = 0, /* the type of the array's dtype. With 1 byte it is UINT8 */
    CAI_TENSOR_MAP_UINT8 = 16,   /* not CUDA's 0. A plan has 0 */
    CAI_TENSOR_MAP_UINT16 = 1, CAI_TENSOR_MAP_UINT32, CAI_TENSOR_MAP_INT32,
    CAI_TENSOR_MAP_UINT64, CAI_TENSOR_MAP_INT64, CAI_TENSOR_MAP_FLOAT16, CAI_TENSOR_MAP_FLOAT32,
    CAI_TENSOR_MAP_FLOAT64, CAI_TENSOR_MAP_BFLOAT16, CAI_TENSOR_MAP_FLOAT32_FTZ, CAI_TENSOR_MAP_TFLOAT32,
    CAI_TENSOR_MAP_TFLOAT32_FTZ, CAI_TENSOR_MAP_16U4_ALIGN8B, CAI_TENSOR_MAP_16U4_ALIGN16B,
    CAI_TENSOR_MAP_16U6_ALIGN16B
};

/** The values of CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion and
 *  CUtensorMapFloatOOBfill. The swizzles with ATOM need CUDA 12.8. */
enum { CAI_TENSOR_MAP_INTERLEAVE_NONE, CAI_TENSOR_MAP_INTERLEAVE_16B, CAI_TENSOR_MAP_INTERLEAVE_32B };
enum {
    CAI_TENSOR_MAP_SWIZZLE_NONE, CAI_TENSOR_MAP_SWIZZLE_32B, CAI_TENSOR_MAP_SWIZZLE_64B,
    CAI_TENSOR_MAP_SWIZZLE_128B, CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
    CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_64B
};
enum {
    CAI_TENSOR_MAP_L2_NONE, CAI_TENSOR_MAP_L2_64B, CAI_TENSOR_MAP_L2_128B, CAI_TENSOR_MAP_L2_256B
};
enum { CAI_TENSOR_MAP_FILL_ZERO, CAI_TENSOR_MAP_FILL_NAN };

/** What a kernel copies at once. Zero it, then set the box and what else differs. */
typedef struct cai_tensor_tile {
    int32_t box[5];       /* elements along each axis of the array, 1 to 256; 0 past the last axis */
    int32_t steps[5];     /* every n-th element along each axis, 1 to 8; 0 is 1. The tile then has
                             ceil(box / step) elements along this axis */
    int32_t type;         /* CAI_TENSOR_MAP_FLOAT32_FTZ, ...; 0: CAI_TENSOR_MAP_BY_DTYPE */
    int32_t interleave;   /* CAI_TENSOR_MAP_INTERLEAVE_... */
    int32_t swizzle;      /* CAI_TENSOR_MAP_SWIZZLE_... */
    int32_t l2_promotion; /* CAI_TENSOR_MAP_L2_... */
    int32_t fill;         /* CAI_TENSOR_MAP_FILL_..., for elements outside of the array */
} cai_tensor_tile;

/** The arguments of cuTensorMapEncodeTiled, in CUDA's order of dimensions: the last axis of the array is
 *  dimension 0. What is past the rank is 0. */
typedef struct cai_tensor_map_plan {
    uint64_t address;    /* globalAddress */
    uint64_t dims[5];    /* globalDim: elements */
    uint64_t strides[4]; /* globalStrides: bytes, of dimensions 1 to 4 */
    uint32_t box[5];     /* boxDim: elements */
    uint32_t steps[5];   /* elementStrides */
    uint32_t rank;       /* tensorRank */
    int32_t type;        /* of CUtensorMapDataType */
    int32_t interleave, swizzle, l2_promotion, fill;
    uint64_t box_bytes;  /* of shared memory that a copy fills, with gaps (ALIGN16B); 0 with interleave */
} cai_tensor_map_plan;

#ifdef __cplusplus
#define CAI_PRIV_MAP_CAST(type, value) static_cast<type>(value)
#define CAI_PRIV_MAP_POINTER(value) reinterpret_cast<void *>(static_cast<uintptr_t>(value))
#else
#define CAI_PRIV_MAP_CAST(type, value) ((type)(value))
#define CAI_PRIV_MAP_POINTER(value) ((void *)(uintptr_t)(value))
#endif

#define CAI_PRIV_MAP_ARRAY(plan)                                                                             \
    CAI_PRIV_MAP_CAST(CUtensorMapDataType, (plan).type), (plan).rank, CAI_PRIV_MAP_POINTER((plan).address),  \
        (plan).dims, (plan).strides
#define CAI_PRIV_MAP_MODES(plan)                                                                             \
    CAI_PRIV_MAP_CAST(CUtensorMapInterleave, (plan).interleave),                                             \
        CAI_PRIV_MAP_CAST(CUtensorMapSwizzle, (plan).swizzle),                                               \
        CAI_PRIV_MAP_CAST(CUtensorMapL2promotion, (plan).l2_promotion),                                      \
        CAI_PRIV_MAP_CAST(CUtensorMapFloatOOBfill, (plan).fill)

/** All arguments of cuTensorMapEncodeTiled after the first. cuda.h must be included where you use it. */
#define CAI_TENSOR_MAP_ARGUMENTS(plan)                                                                       \
    CAI_PRIV_MAP_ARRAY(plan), (plan).box, (plan).steps, CAI_PRIV_MAP_MODES(plan)

/** Plans a tensor map. The conditions are those that the comment on cuTensorMapEncodeTiled in cuda.h lists
 *  (CUDA 13.0).
 *  - ndim is 1 to 5, with interleave 3 to 5. Extents are 1 to 2^32.
 *  - data and strides are multiples of 16, with INTERLEAVE_32B or a type of ALIGN16B of 32.
 *  - The last axis is contiguous: CUDA has no stride for it. If another axis is, permute the array
 *    (cai_view_permute). The other strides are 0 to 2^40 - 1, in any order: rows may repeat and overlap. The
 *    document computes strides from padding. CUTLASS passes others, too, so this is not taken as a demand.
 *  - An axis of extent 1 may have any stride. If CUDA does not take it, the plan has another one.
 *  - box is 1 to 256, and may exceed the array. Without interleave its last axis has a multiple of 16 bytes,
 *    at most those of the swizzle.
 *  - steps are 1 to 8. Without interleave the last axis has none (PTX ISA, Traversal-Stride). CUDA would
 *    ignore them, so they are refused.
 *  - INTERLEAVE_32B needs SWIZZLE_32B. FILL_NAN needs a type of floating point.
 *  - A type that you name has the size of an element, such as UINT64 for complex64.
 *  - For the types with ALIGN box, dims and the kernel's coordinates count values of 4 or 6 bits. The array
 *    has a packed dtype (CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT6_E2M3FN_X4, CAI_INT4_X2) or bytes. A packed dtype
 *    needs tile.type, and the last axis as packed_axis. dims[0] is packed_extent: what is beyond is filled.
 *    In an array of bytes the last extent counts bytes. With ALIGN8B it has an even number of values, with
 *    ALIGN16B a multiple of 128. With ALIGN16B its box is 128, and the swizzle is NONE, 128B or
 *    128B_ATOM_32B, for 16U6 also 128B_ATOM_64B. 16U6 has no interleave.
 *  With interleave the axes are passed on as they are. The document does not say how slices follow one
 *  another.
 *  The device is not known here: the driver of an older one may refuse what is new in CUDA 12.8.
 *  Mask, stream and memory do not count: call cai_expect before. On failure `out` is unchanged. Errors:
 *  CAI_ERR_EXPECT (the array) and CAI_ERR_ARGUMENT (the tile, NULL), with the axis as index, CAI_ERR_ABI. */
CAI_API CAI_MUST_CHECK cai_status cai_tensor_map_of(const cai_array *array, const cai_tensor_tile *tile,
                                                    cai_tensor_map_plan *out, cai_error *err);

/* -------------------------------------------------------------------- >>columns */
/** What a kernel copies at once in im2col mode: a column of pixels, and some channels of each. Zero it, then
 *  set `channels`, `pixels` and what else differs. The axes of the array are N, W, C, or N, H, W, C, or
 *  N, D, H, W, C. `lower`, `upper` and `steps` have the axes between N and C, in this order, and 0 past them.
 *  A convolution has lower = -(padding before), upper = padding behind - dilation * (filter - 1), steps =
 *  stride: one pixel of the box for each pixel of the output. */
typedef struct cai_im2col_tile {
    int32_t lower[3]; /* first pixel of the box, counted from the first one of the axis */
    int32_t upper[3]; /* last pixel of the box, counted from the last one of the axis */
    int32_t steps[3]; /* every n-th pixel of the box, 1 to 8; 0 is 1 */
    int32_t channels; /* elements of a pixel, 1 to 256 */
    int32_t pixels;   /* of a column, 1 to 1024. Steps do not change how many are copied */
    int32_t type, interleave, swizzle, l2_promotion, fill; /* as in cai_tensor_tile */
} cai_im2col_tile;

/** The arguments of cuTensorMapEncodeIm2col, in CUDA's order of dimensions: C, W, H, D, N. What is past the
 *  rank is 0. */
typedef struct cai_im2col_map_plan {
    uint64_t address;      /* globalAddress */
    uint64_t dims[5];      /* globalDim: elements */
    uint64_t strides[4];   /* globalStrides: bytes, of dimensions 1 to 4 */
    int32_t lower[3];      /* pixelBoxLowerCorner: W, H, D */
    int32_t upper[3];      /* pixelBoxUpperCorner: W, H, D */
    uint32_t channels;     /* channelsPerPixel */
    uint32_t pixels;       /* pixelsPerColumn */
    uint32_t steps[5];     /* elementStrides: 1 for C and N */
    uint32_t rank;         /* tensorRank */
    int32_t type;          /* of CUtensorMapDataType */
    int32_t interleave, swizzle, l2_promotion, fill;
    uint64_t column_bytes; /* of shared memory that a copy fills, with gaps (ALIGN16B); 0 with interleave */
} cai_im2col_map_plan;

/** All arguments of cuTensorMapEncodeIm2col after the first. cuda.h must be included where you use it. */
#define CAI_IM2COL_MAP_ARGUMENTS(plan)                                                                       \
    CAI_PRIV_MAP_ARRAY(plan), (plan).lower, (plan).upper, (plan).channels, (plan).pixels, (plan).steps,      \
        CAI_PRIV_MAP_MODES(plan)

/** Plans a tensor map of im2col mode. The conditions are those of the comment on cuTensorMapEncodeIm2col in
 *  cuda.h (CUDA 13.0). For array, type and modes they are those of cai_tensor_map_of.
 *  - ndim is 3 to 5.
 *  - Along an axis of n pixels the box has those from lower to n - 1 + upper (PTX ISA, im2col mode; CUTLASS
 *    counts the same). It has at least one: this is the "non-zero area" of cuda.h.
 *  - A corner is -32768 to 32767 with ndim 3, -128 to 127 with ndim 4, -16 to 15 with ndim 5.
 *  - Without interleave channels have a multiple of 16 bytes, at most those of the swizzle. cuda.h demands
 *    the multiple for tiles only. Here it is our rule: CUTLASS has no other columns. ALIGN16B needs 128
 *    channels.
 *  - N and C have no steps: PTX ISA has them for D, H and W.
 *  cuda.h lists corners as {D, H, W}. CUTLASS, Triton and cuda.core pass W first, as in all other arguments,
 *  and so does the plan. The kernel's coordinates are C, then lower + stride * (pixel of the output) for W, H
 *  and D, then N. Its offsets are dilation * (place in the filter) for W, H and D. With ndim 3 they are at
 *  most 65535, with ndim 4 255, with ndim 5 31.
 *  cuTensorMapEncodeIm2colWide (compute capability 10.0) has no plan.
 *  On failure `out` is unchanged. Errors are those of cai_tensor_map_of. For lower, upper and steps the index
 *  is that in these arrays. */
CAI_API CAI_MUST_CHECK cai_status cai_im2col_map_of(const cai_array *array, const cai_im2col_tile *tile,
                                                    cai_im2col_map_plan *out, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TENSOR_MAP_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>modes  >>boxes  >>arrays  >>corners */

#if defined(CAI_TENSOR_MAP_IMPLEMENTATION) && !defined(CAI_TENSOR_MAP_IMPLEMENTED)
#define CAI_TENSOR_MAP_IMPLEMENTED

#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

/* Fills an error of an axis and returns its status. With CAI_ENTRY_NONE it is about the tile. */
CAI_PRIV_PRINTF(4, 5)
CAI_PRIV_COLD cai_status cai_priv_map_fail(cai_error *err, int32_t entry, int32_t axis, const char *format,
                                           ...)
{
    const cai_status status = entry ? CAI_ERR_EXPECT : CAI_ERR_ARGUMENT;
    va_list values;
    va_start(values, format);
    (void)cai_priv_error_values(err, status, 0, format, values);
    va_end(values);
    if (!err) return status;
    err->entry = entry;
    err->index = axis;
    return status;
}

/* --------------------------------------------------------------------- >>modes */
/* The types below are those of a plan: CUDA's. */
enum { CAI_PRIV_MAP_UINT8 = 0 };

/* A type of ALIGN16B has 128 values of the last axis at once. */
static int cai_priv_map_wide(int32_t type)
{
    return type >= CAI_TENSOR_MAP_16U4_ALIGN16B;
}

static const char *cai_priv_map_type_name(int32_t type)
{
    static const char *const names[16] = {
        "UINT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16",
        "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B",
    };
    return names[type];
}

/* Returns the bits of an element. */
static int32_t cai_priv_map_bits(int32_t type)
{
    static const uint8_t bits[16] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
    return bits[type];
}

static cai_status cai_priv_map_option(const char *name, int32_t value, int32_t last, cai_error *err)
{
    if (value >= 0 && value <= last) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile.%s = %d is not in 0..%d", name, value, last);
}

/* Checks each enumerator by itself. */
static cai_status cai_priv_map_options(const cai_tensor_tile *tile, cai_error *err)
{
    CAI_TRY(cai_priv_map_option("type", tile->type, CAI_TENSOR_MAP_UINT8, err));
    CAI_TRY(cai_priv_map_option("interleave", tile->interleave, CAI_TENSOR_MAP_INTERLEAVE_32B, err));
    CAI_TRY(cai_priv_map_option("swizzle", tile->swizzle, CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, err));
    CAI_TRY(cai_priv_map_option("l2_promotion", tile->l2_promotion, CAI_TENSOR_MAP_L2_256B, err));
    return cai_priv_map_option("fill", tile->fill, CAI_TENSOR_MAP_FILL_NAN, err);
}

/* Returns whether a type of ALIGN16B may have a swizzle. */
static int cai_priv_map_wide_swizzle(int32_t type, int32_t swizzle)
{
    if (swizzle == CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_64B) return type == CAI_TENSOR_MAP_16U6_ALIGN16B;
    return swizzle == CAI_TENSOR_MAP_SWIZZLE_NONE || swizzle == CAI_TENSOR_MAP_SWIZZLE_128B ||
           swizzle == CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_32B;
}

/* Checks the enumerators with one another. */
static cai_status cai_priv_map_modes(const cai_tensor_map_plan *plan, cai_error *err)
{
    const int32_t type = plan->type, swizzle = plan->swizzle;
    if (plan->interleave == CAI_TENSOR_MAP_INTERLEAVE_32B && swizzle != CAI_TENSOR_MAP_SWIZZLE_32B)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile.swizzle = %d: INTERLEAVE_32B needs SWIZZLE_32B, 1",
                              swizzle);
    if (plan->interleave && type == CAI_TENSOR_MAP_16U6_ALIGN16B)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile.interleave = %d: type 16U6_ALIGN16B needs 0",
                              plan->interleave);
    if (cai_priv_map_wide(plan->type) && !cai_priv_map_wide_swizzle(plan->type, plan->swizzle))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile.swizzle = %d is not for type %s", swizzle,
                              cai_priv_map_type_name(type));
    if (plan->fill && (type < CAI_TENSOR_MAP_FLOAT16 || type > CAI_TENSOR_MAP_TFLOAT32_FTZ))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile.fill = %d: type %s has no NaN", plan->fill,
                              cai_priv_map_type_name(type));
    return CAI_OK;
}

/* ---------------------------------------------------------------------- >>boxes */
/* Returns the bytes of shared memory that dimension 0 of a box fills. ALIGN16B: 16 values fill 16 bytes. */
static uint64_t cai_priv_map_inner_bytes(const cai_tensor_map_plan *plan)
{
    if (cai_priv_map_wide(plan->type)) return plan->box[0];
    return plan->box[0] * (uint64_t)cai_priv_map_bits(plan->type) / 8;
}

/* Checks dimension 0 of a box: `name`, which has the index `axis`. */
static cai_status cai_priv_map_inner(const cai_tensor_map_plan *plan, const char *name, int32_t axis,
                                     cai_error *err)
{
    static const uint8_t spans[7] = {0, 32, 64, 128, 128, 128, 128};
    const int32_t box = (int32_t)plan->box[0], bits = box * cai_priv_map_bits(plan->type);
    const int32_t span = spans[plan->swizzle];
    if (cai_priv_map_wide(plan->type) && box != 128)
        return cai_priv_map_fail(err, CAI_ENTRY_NONE, axis, "tile.%s = %d: type %s needs 128", name, box,
                                 cai_priv_map_type_name(plan->type));
    if (plan->interleave) return CAI_OK;
    if (bits % 128)
        return cai_priv_map_fail(err, CAI_ENTRY_NONE, axis,
                                 "tile.%s = %d: %d x %d bits are not a multiple of 16 bytes", name, box, box,
                                 bits / box);
    if (span && bits > 8 * span)
        return cai_priv_map_fail(err, CAI_ENTRY_NONE, axis,
                                 "tile.%s = %d: %d bytes are more than %d (tile.swizzle = %d)", name, box,
                                 bits / 8, span, plan->swizzle);
    return CAI_OK;
}

/* Checks box and steps of one axis, and stores them. The last axis has no steps, except with interleave. */
static cai_status cai_priv_map_axis(const cai_tensor_tile *tile, int32_t axis, cai_tensor_map_plan *plan,
                                    cai_error *err)
{
    const int32_t dim = (int32_t)plan->rank - 1 - axis;
    const int32_t box = tile->box[axis], step = tile->steps[axis];
    const int32_t most = dim < 0 ? 0 : dim > 0 || plan->interleave ? 8 : 1;
    if (dim < 0 ? box != 0 : box < 1 || box > 256)
        return cai_priv_map_fail(err, CAI_ENTRY_NONE, axis, "tile.box[%d] = %d: %s", axis, box,
                                 dim < 0 ? "the array has no such axis" : "it is not in 1..256");
    if (step < 0 || step > most)
        return cai_priv_map_fail(err, CAI_ENTRY_NONE, axis, "tile.steps[%d] = %d is not in 0..%d%s", axis,
                                 step, most, most == 1 ? ": CUDA ignores those of the last axis" : "");
    if (dim < 0) return CAI_OK;
    plan->box[dim] = (uint32_t)box;
    plan->steps[dim] = step ? (uint32_t)step : 1;
    return CAI_OK;
}

static cai_status cai_priv_map_box(const cai_tensor_tile *tile, cai_tensor_map_plan *plan, cai_error *err)
{
    static const char *const names[5] = {"box[0]", "box[1]", "box[2]", "box[3]", "box[4]"};
    const int32_t last = (int32_t)plan->rank - 1;
    int32_t axis;
    uint32_t dim;
    for (axis = 0; axis < CAI_TENSOR_MAP_MAX_NDIM; ++axis) CAI_TRY(cai_priv_map_axis(tile, axis, plan, err));
    CAI_TRY(cai_priv_map_inner(plan, names[last], last, err));
    if (plan->interleave) return CAI_OK;
    plan->box_bytes = cai_priv_map_inner_bytes(plan);
    for (dim = 1; dim < plan->rank; ++dim)
        plan->box_bytes *= (plan->box[dim] + plan->steps[dim] - 1) / plan->steps[dim];
    return CAI_OK;
}

/* --------------------------------------------------------------------- >>arrays */
/* Returns the type of a dtype, or -1. */
static int32_t cai_priv_map_type_of(const cai_dtype *dtype)
{
    if (dtype->itemsize == 1) return CAI_PRIV_MAP_UINT8;
    switch (dtype->code) {
    case CAI_INT16:
    case CAI_UINT16: return CAI_TENSOR_MAP_UINT16;
    case CAI_INT32: return CAI_TENSOR_MAP_INT32;
    case CAI_UINT32: return CAI_TENSOR_MAP_UINT32;
    case CAI_INT64: return CAI_TENSOR_MAP_INT64;
    case CAI_UINT64: return CAI_TENSOR_MAP_UINT64;
    case CAI_FLOAT16: return CAI_TENSOR_MAP_FLOAT16;
    case CAI_FLOAT32: return CAI_TENSOR_MAP_FLOAT32;
    case CAI_FLOAT64: return CAI_TENSOR_MAP_FLOAT64;
    case CAI_BFLOAT16: return CAI_TENSOR_MAP_BFLOAT16;
    default: return -1;
    }
}

/* Checks the type for a dtype of values below 8 bits. Packed ones have no type of their own. */
static cai_status cai_priv_map_narrow(const cai_dtype *dtype, int32_t given, int32_t type, cai_error *err)
{
    const int32_t values = cai_dtype_values(dtype);
    const char *const name = cai_dtype_name(dtype->code);
    if (values > 1 && dtype->bits == cai_priv_map_bits(type)) return CAI_OK;
    if (values == 1)
        return cai_priv_map_fail(err, CAI_ENTRY_TYPESTR, -1,
                                 "%s has a byte for each value: type %s packs them", name,
                                 cai_priv_map_type_name(type));
    if (dtype->bits < 4)
        return cai_priv_map_fail(err, CAI_ENTRY_TYPESTR, -1,
                                 "%s has no type of a tensor map (as bytes: cai_view_reinterpret)", name);
    return cai_priv_map_fail(err, CAI_ENTRY_TYPESTR, -1,
                             "%s%s%s: name %s (tile.type; as bytes: cai_view_reinterpret)", name,
                             given ? " is not " : "", given ? cai_priv_map_type_name(type) : "",
                             dtype->bits == 6 ? "16U6_ALIGN16B" : "16U4_ALIGN8B or 16U4_ALIGN16B");
}

static cai_status cai_priv_map_no_type(const cai_dtype *dtype, cai_error *err)
{
    const int32_t size = dtype->itemsize;
    const int any = size == 2 || size == 4 || size == 8;
    char typestr[CAI_TYPESTR_SIZE];
    (void)cai_dtype_typestr(dtype, typestr, CAI_TYPESTR_SIZE);
    return cai_priv_map_fail(err, CAI_ENTRY_TYPESTR, -1, "%s has no type of a tensor map: %s", typestr,
                             any ? "name one of its size (tile.type)"
                                 : "none has its size (as smaller elements: cai_view_reinterpret)");
}

static cai_status cai_priv_map_type(const cai_dtype *dtype, int32_t given, int32_t *type, cai_error *err)
{
    int32_t bytes;
    *type = given || cai_dtype_values(dtype) > 1 ? given : cai_priv_map_type_of(dtype);
    if (*type == CAI_TENSOR_MAP_UINT8) *type = CAI_PRIV_MAP_UINT8;
    if (*type < 0) return cai_priv_map_no_type(dtype, err);
    if (dtype->itemsize && dtype->bits && (cai_dtype_values(dtype) > 1 || cai_priv_map_bits(*type) < 8))
        return cai_priv_map_narrow(dtype, given, *type, err);
    bytes = (cai_priv_map_bits(*type) + 7) / 8; /* values of 4 and 6 bits may be in arrays of bytes */
    if (dtype->itemsize == bytes) return CAI_OK;
    return cai_priv_map_fail(err, CAI_ENTRY_TYPESTR, -1, "type %s is for an itemsize of %d, not of %d",
                             cai_priv_map_type_name(*type), bytes, dtype->itemsize);
}

static cai_status cai_priv_map_rank(const cai_array *array, int im2col, cai_tensor_map_plan *plan,
                                    cai_error *err)
{
    const int32_t least = im2col || plan->interleave ? 3 : 1;
    const char *const mode = im2col ? " of im2col mode" : plan->interleave ? " with interleave" : "";
    plan->rank = (uint32_t)array->ndim;
    if (array->ndim >= least && array->ndim <= CAI_TENSOR_MAP_MAX_NDIM) return CAI_OK;
    return cai_priv_map_fail(err, CAI_ENTRY_SHAPE, -1, "the array has %d dimensions, a tensor map%s %d to 5",
                             array->ndim, mode, least);
}

/* Stores the values of the last axis of a packed array. Unused bits of its last element are outside. */
static cai_status cai_priv_map_values(const cai_array *array, int32_t axis, cai_tensor_map_plan *plan,
                                      cai_error *err)
{
    const long long extent = array->packed_extent, most = 1ll << 32;
    const int32_t unit = cai_priv_map_wide(plan->type) ? 128 : 2;
    if (array->packed_axis != axis)
        return cai_priv_map_fail(err, CAI_ENTRY_SHAPE, array->packed_axis,
                                 "packed_axis = %d, not %d: a tensor map has the values of an element along "
                                 "the last axis",
                                 array->packed_axis, axis);
    if (extent < 1 || extent > most)
        return cai_priv_map_fail(err, CAI_ENTRY_SHAPE, axis, "packed_extent = %lld is not in 1..%lld", extent,
                                 most);
    if (extent % unit)
        return cai_priv_map_fail(err, CAI_ENTRY_SHAPE, axis,
                                 "packed_extent = %lld: type %s takes multiples of %d values", extent,
                                 cai_priv_map_type_name(plan->type), unit);
    plan->dims[0] = (uint64_t)extent;
    return CAI_OK;
}

/* Stores an extent. The last one is in bytes if an array of bytes has values of 4 or 6 bits. */
static cai_status cai_priv_map_extent(const cai_array *array, int32_t axis, cai_tensor_map_plan *plan,
                                      cai_error *err)
{
    const int32_t dim = array->ndim - 1 - axis, bits = cai_priv_map_bits(plan->type);
    const int64_t extent = array->shape[axis], most = (int64_t)1 << 32;
    const int64_t per = dim || bits >= 8 ? 8 : bits; /* an element has 8 / per values */
    const int32_t unit = dim == 0 && cai_priv_map_wide(plan->type) ? 16 * bits : 1;
    if (dim == 0 && cai_dtype_values(&array->dtype) > 1) return cai_priv_map_values(array, axis, plan, err);
    if (extent < 1 || extent > most / 8 * per)
        return cai_priv_map_fail(err, CAI_ENTRY_SHAPE, axis, "shape[%d] = %lld is not in 1..%lld", axis,
                                 (long long)extent, (long long)(most / 8 * per));
    if (extent % unit)
        return cai_priv_map_fail(err, CAI_ENTRY_SHAPE, axis,
                                 "shape[%d] = %lld: type %s takes multiples of %d bytes", axis,
                                 (long long)extent, cai_priv_map_type_name(plan->type), unit);
    plan->dims[dim] = (uint64_t)(extent * 8 / per);
    return CAI_OK;
}

/* Fills the error of a last axis that is not contiguous. Of a transposed array another axis is. */
static cai_status cai_priv_map_apart(const cai_array *array, int32_t last, cai_error *err)
{
    const int32_t size = array->dtype.itemsize;
    const long long stride = array->strides[last];
    int32_t axis = 0;
    while (axis < last && array->strides[axis] != size) ++axis;
    if (axis == last)
        return cai_priv_map_fail(err, CAI_ENTRY_STRIDES, last,
                                 "strides[%d] = %lld, not %d: the last axis must be contiguous", last, stride,
                                 size);
    return cai_priv_map_fail(err, CAI_ENTRY_STRIDES, last,
                             "strides[%d] = %lld, not %d: the last axis must be contiguous, and axis %d is "
                             "(cai_view_permute)",
                             last, stride, size, axis);
}

/* Stores a stride. Dimension 0 has none. One that no element uses becomes one that CUDA takes. */
static cai_status cai_priv_map_stride(const cai_array *array, int32_t axis, int32_t unit,
                                      cai_tensor_map_plan *plan, cai_error *err)
{
    const int32_t dim = array->ndim - 1 - axis;
    const long long stride = array->strides[axis], most = (1ll << 40) - 1;
    const int fits = stride >= 0 && stride <= most && stride % unit == 0;
    if (dim) plan->strides[dim - 1] = (uint64_t)(fits ? stride : unit);
    if (array->shape[axis] == 1) return CAI_OK;
    if (dim == 0 && stride != array->dtype.itemsize) return cai_priv_map_apart(array, axis, err);
    if (dim == 0 || fits) return CAI_OK;
    if (stride % unit == 0)
        return cai_priv_map_fail(err, CAI_ENTRY_STRIDES, axis, "strides[%d] = %lld is not in 0..%lld", axis,
                                 stride, most);
    return cai_priv_map_fail(err, CAI_ENTRY_STRIDES, axis, "strides[%d] = %lld is not a multiple of %d", axis,
                             stride, unit);
}

/* Stores what both kinds of maps have: the array, and the modes of a tile. */
static cai_status cai_priv_map_array(const cai_array *array, const cai_tensor_tile *tile, int im2col,
                                     cai_tensor_map_plan *plan, cai_error *err)
{
    int32_t axis, unit;
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_map_options(tile, err));
    memset(plan, 0, sizeof *plan);
    plan->interleave = tile->interleave;
    plan->swizzle = tile->swizzle;
    plan->l2_promotion = tile->l2_promotion;
    plan->fill = tile->fill;
    plan->address = array->data;
    CAI_TRY(cai_priv_map_type(&array->dtype, tile->type, &plan->type, err));
    CAI_TRY(cai_priv_map_modes(plan, err));
    CAI_TRY(cai_priv_map_rank(array, im2col, plan, err));
    unit = plan->interleave == CAI_TENSOR_MAP_INTERLEAVE_32B || cai_priv_map_wide(plan->type) ? 32 : 16;
    for (axis = array->ndim - 1; axis >= 0; --axis) { /* the last one first: a transposed array fails there */
        CAI_TRY(cai_priv_map_extent(array, axis, plan, err));
        CAI_TRY(cai_priv_map_stride(array, axis, unit, plan, err));
    }
    if (array->data % (uint64_t)unit)
        return cai_priv_map_fail(err, CAI_ENTRY_DATA, 0, "data = 0x%llx is not a multiple of %d",
                                 (unsigned long long)array->data, unit);
    return CAI_OK;
}

CAI_API cai_status cai_tensor_map_of(const cai_array *array, const cai_tensor_tile *tile,
                                     cai_tensor_map_plan *out, cai_error *err)
{
    cai_tensor_map_plan plan;
    if (!tile || !out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile or out is NULL");
    CAI_TRY(cai_priv_map_array(array, tile, 0, &plan, err));
    CAI_TRY(cai_priv_map_box(tile, &plan, err));
    *out = plan;
    return CAI_OK;
}

/* ------------------------------------------------------------------- >>corners */
static cai_status cai_priv_map_within(const char *name, int32_t at, int32_t value, int32_t least,
                                      int32_t most, cai_error *err)
{
    if (value >= least && value <= most) return CAI_OK;
    return cai_priv_map_fail(err, CAI_ENTRY_NONE, at, "tile.%s[%d] = %d is not in %d..%d", name, at, value,
                             least, most);
}

/* Checks the box along a spatial axis, and stores it. */
static cai_status cai_priv_map_corner(const cai_im2col_tile *tile, int32_t at, cai_im2col_map_plan *plan,
                                      cai_error *err)
{
    static const int32_t mosts[6] = {0, 0, 0, 32767, 127, 15};
    const int32_t dim = (int32_t)plan->rank - 2 - at, most = dim < 1 ? 0 : mosts[plan->rank];
    const int32_t lower = tile->lower[at], upper = tile->upper[at], step = tile->steps[at];
    CAI_TRY(cai_priv_map_within("lower", at, lower, dim < 1 ? 0 : -most - 1, most, err));
    CAI_TRY(cai_priv_map_within("upper", at, upper, dim < 1 ? 0 : -most - 1, most, err));
    CAI_TRY(cai_priv_map_within("steps", at, step, 0, dim < 1 ? 0 : 8, err));
    if (dim < 1) return CAI_OK;
    if ((int64_t)plan->dims[dim] + upper <= lower)
        return cai_priv_map_fail(err, CAI_ENTRY_NONE, at,
                                 "tile.upper[%d] = %d: the box has no pixel of %lld with lower[%d] = %d", at,
                                 upper, (long long)plan->dims[dim], at, lower);
    plan->lower[dim - 1] = lower;
    plan->upper[dim - 1] = upper;
    plan->steps[dim] = step ? (uint32_t)step : 1;
    return CAI_OK;
}

static cai_status cai_priv_map_column(const cai_im2col_tile *tile, cai_tensor_map_plan *inner,
                                      cai_im2col_map_plan *plan, cai_error *err)
{
    int32_t at;
    for (at = 0; at < 3; ++at) CAI_TRY(cai_priv_map_corner(tile, at, plan, err));
    if (tile->channels < 1 || tile->channels > 256)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile.channels = %d is not in 1..256", tile->channels);
    if (tile->pixels < 1 || tile->pixels > 1024)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile.pixels = %d is not in 1..1024", tile->pixels);
    inner->box[0] = (uint32_t)tile->channels;
    CAI_TRY(cai_priv_map_inner(inner, "channels", -1, err));
    plan->channels = inner->box[0];
    plan->pixels = (uint32_t)tile->pixels;
    if (!plan->interleave) plan->column_bytes = plan->pixels * cai_priv_map_inner_bytes(inner);
    return CAI_OK;
}

CAI_API cai_status cai_im2col_map_of(const cai_array *array, const cai_im2col_tile *tile,
                                     cai_im2col_map_plan *out, cai_error *err)
{
    cai_tensor_tile modes;
    cai_tensor_map_plan common;
    cai_im2col_map_plan plan;
    if (!tile || !out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "tile or out is NULL");
    memset(&modes, 0, sizeof modes);
    modes.type = tile->type;
    modes.interleave = tile->interleave;
    modes.swizzle = tile->swizzle;
    modes.l2_promotion = tile->l2_promotion;
    modes.fill = tile->fill;
    CAI_TRY(cai_priv_map_array(array, &modes, 1, &common, err));
    memset(&plan, 0, sizeof plan);
    plan.address = common.address;
    memcpy(plan.dims, common.dims, sizeof plan.dims);
    memcpy(plan.strides, common.strides, sizeof plan.strides);
    plan.steps[0] = plan.steps[array->ndim - 1] = 1;
    plan.rank = common.rank;
    plan.type = common.type;
    plan.interleave = common.interleave;
    plan.swizzle = common.swizzle;
    plan.l2_promotion = common.l2_promotion;
    plan.fill = common.fill;
    CAI_TRY(cai_priv_map_column(tile, &common, &plan, err));
    *out = plan;
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TENSOR_MAP_IMPLEMENTATION */

/*
MIT License

Copyright (c) 2026 the cai authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions
of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
*/
