/* cai_scaled.h - values and the scales of their blocks, as one argument - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_SCALED_IMPLEMENTATION)
#define CAI_SCALED_IMPLEMENTATION
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_scaled.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_SCALED_H_INCLUDED) && CAI_SCALED_H_INCLUDED != 200
#error "cai_scaled.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_SCALED_H_INCLUDED
#define CAI_SCALED_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_SCALED_IMPLEMENTATION for this header alone). All other configuration is
    that of cai.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_scaled.h"

WHAT IT IS
    In MXFP8, MXFP4 and NVFP4 a block of values shares a scale. So an argument of a library is two arrays, and
    scales of a wrong shape or layout give wrong numbers, not errors. A cai_scaled names both arrays and how
    they belong together. One function checks it.

        const cai_scaled a = {&values, &scales, 1, 16, 1, CAI_SCALES_128X4};
        CAI_TRY(cai_expect_scaled(&a, "a", CAI_NVFP4, CAI_SCALES_128X4, -1, CAI_ON_DEVICE, err));
        CAI_TRY(cai_scale_map_of(&a, &map, err));            // passes by value to a kernel
        scale = scale_bytes[cai_scale_offset(&map, i, k)];   // of value (i, k)

    A value times the scale of its block is the number. NVFP4 also has a float32 factor of the whole tensor:
    that is an argument of its own. The header counts values, also of packed dtypes, where an element is
    several values.

DOCUMENTS
    Formats: OCP Microscaling Formats (MX) 1.0, and for NVFP4 cuDNN's "The 128x4 Tiled Layout for Block
    Scaling Factors". CAI_SCALES_128X4: cuBLAS, "1D Block Scaling Factors Layout"; CUTLASS,
    Sm1xxBlockScaledConfig::SfAtom; torchao, to_blocked; PyTorch, SwizzleType.SWIZZLE_32_4_4.
    CAI_FP8_128X128: DeepSeek-V3's weight files.

THREADS
    The functions keep no state. Any number of threads may call them.
*/

#if defined(CAI_NAMESPACE)
#define cai_expect_scaled CAI_PRIV_RENAMED(cai_expect_scaled)
#define cai_scale_map_of CAI_PRIV_RENAMED(cai_scale_map_of)
#define cai_scales_shape CAI_PRIV_RENAMED(cai_scales_shape)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- >>formats */
/** The format of a scaled array. In all formats but the last, a block lies along one axis. */
enum {
    CAI_ANY_SCALED = 0,  /* for cai_expect_scaled: any dtypes and any block */
    CAI_MXFP8 = 1,       /* float8_e4m3fn or float8_e5m2, 32 values, scales float8_e8m0fnu */
    CAI_MXFP4 = 2,       /* float4_e2m1fn_x2, 32 values, scales float8_e8m0fnu */
    CAI_NVFP4 = 3,       /* float4_e2m1fn_x2, 16 values, scales float8_e4m3fn */
    CAI_FP8_128X128 = 4, /* float8_e4m3fn, 128 x 128 values, scales float32 */
    CAI_SCALED_COUNT = 5
};

/** The layout of the scales. */
enum {
    /* One scale for each block, in the order of the blocks. Any strides. */
    CAI_SCALES_PLAIN = 0,
    /* For Blackwell's matrix multiplication. A tile has the scales of 128 rows and 4 blocks. Its 512 bytes are
     * 32 times 16: first the 4 scales of row 0, then of row 32, 64 and 96, then of row 1, 33 and so on. The
     * tiles are in C order. Rows and blocks are padded to whole tiles. The scales have no gaps and are at an
     * address that 16 divides. An array with more axes has one such matrix for each index of the first ones.
     * The layout has no transpose. */
    CAI_SCALES_128X4 = 1,
    CAI_ANY_SCALES = -1 /* for cai_expect_scaled */
};

enum { CAI_ANY_AXIS = INT32_MIN }; /* for cai_expect_scaled */

/** Values and their scales. Both arrays are yours and live as long as you use this. */
typedef struct cai_scaled {
    const cai_array *data;
    const cai_array *scales; /* CAI_FLOAT8_E8M0FNU, CAI_FLOAT8_E4M3FN, CAI_FLOAT32, ...; 1 byte in 128X4 */
    int32_t axis;   /* of data, along which the blocks lie; negative: from the end. In 128X4, and if rows is
                       not 1, it is one of the last two axes, and the rows lie along the other */
    int32_t block;  /* values along the axis that share a scale, 1 or more; the last block may have fewer */
    int32_t rows;   /* rows that share a scale, 1 or more; 1 in 128X4 */
    int32_t layout; /* CAI_SCALES_... */
} cai_scaled;

/** Computes the shape of the scales of x->data, to allocate them. x->scales is not read. `shape` gets as many
 *  extents as data has axes. In 128X4 the last two are the padded rows and the padded blocks. Fill the padding
 *  with zeros. Errors: CAI_ERR_ARGUMENT (NULL, a field of x), CAI_ERR_SHAPE (too many scales, or data has too
 *  few axes), CAI_ERR_ABI. On failure `shape` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_scales_shape(const cai_scaled *x, int64_t *shape, cai_error *err);

/** Checks an argument of a consumer: both arrays, their dtypes, the block, the layout, the shape of the
 *  scales and the device. Scales are no bool and not packed; those of 128X4 have 8 bits. Data in device
 *  memory with scales in plain host memory is refused, and the reverse. `name` is its name in the message.
 *  `format` is CAI_MXFP8, ..., or CAI_ANY_SCALED. `layout` is CAI_SCALES_... or CAI_ANY_SCALES. `axis` is the
 *  axis of data along which your kernel has the blocks, -1 for the last one, or CAI_ANY_AXIS if it goes by
 *  x->axis. `requirements` are those of cai_expect, of both arrays. Those about contiguity are of data alone:
 *  a kernel that takes no strides needs CAI_C_CONTIGUOUS. The values of a packed element must lie along
 *  x->axis, as cuBLASLt, CUTLASS and PyTorch have them. Only plain scales of CAI_ANY_SCALED may have another
 *  data->packed_axis. In 128X4 the number of scales counts, not their shape and the order of their axes.
 *  Producers give this layout different ones: PyTorch 1 axis, cuDNN blocks and rows, also transposed. A
 *  message is "x: scales.shape[1] = 3, not 4: the data has 100 values, 32 to a scale".
 *  Errors: CAI_ERR_EXPECT, and those of cai_scales_shape. */
CAI_API CAI_MUST_CHECK cai_status cai_expect_scaled(const cai_scaled *x, const char *name, int32_t format,
                                                    int32_t layout, int32_t axis, uint32_t requirements,
                                                    cai_error *err);

/* --------------------------------------------------------------------- >>kernel */
/** Where the scales are. Pass it by value to a kernel, with a pointer to the first scale. */
typedef struct cai_scale_map {
    int64_t row_stride;   /* bytes from a row of scales to the next; in 128X4 of tiles */
    int64_t block_stride; /* bytes from a scale to the next of its row; in 128X4 from tile to tile */
    int64_t batch_stride; /* bytes from matrix to matrix, if data has 3 axes; else 0 */
    int32_t block, rows;  /* values */
    int32_t layout;       /* CAI_SCALES_... */
    int32_t reserved;     /* 0 */
} cai_scale_map;

/** Fills a map of an argument that cai_expect_scaled checked before. If data has more than 3 axes, take views.
 *  Errors: CAI_ERR_VIEW (more than 3 axes, or x->axis is not one of the last two), and those of
 *  cai_expect_scaled. On failure `out` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_scale_map_of(const cai_scaled *x, cai_scale_map *out, cai_error *err);

/** Returns the bytes from the first scale of a matrix to that of the value (row, column), unchecked. `column`
 *  is the index of the value along the axis of the blocks, `row` that along the other axis. Both count values.
 *  For matrix n add n * map->batch_stride. */
CAI_HOST_DEVICE static inline int64_t cai_scale_offset(const cai_scale_map *map, int64_t row, int64_t column)
{
    const int64_t i = row / map->rows, j = column / map->block;
    if (map->layout == CAI_SCALES_PLAIN) return i * map->row_stride + j * map->block_stride;
    return i / 128 * map->row_stride + j / 4 * map->block_stride + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_SCALED_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>shapes  >>checks  >>maps */

#if defined(CAI_SCALED_IMPLEMENTATION) && !defined(CAI_SCALED_IMPLEMENTED)
#define CAI_SCALED_IMPLEMENTED
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

/* --------------------------------------------------------------------- >>shapes */
/* How data and scales meet. */
typedef struct cai_priv_scaled {
    int32_t ndim, axis, row_axis; /* of data; row_axis: -1 if there are no rows */
    int64_t shape[CAI_MAX_NDIM];  /* of the scales */
    int64_t count;                /* of the scales, padding included */
} cai_priv_scaled;

/* Returns the values along an axis. */
static int64_t cai_priv_scaled_extent(const cai_array *data, int32_t axis)
{
    return axis == data->packed_axis ? data->packed_extent : data->shape[axis];
}

static int64_t cai_priv_scaled_ceil(int64_t extent, int64_t block)
{
    return extent / block + (extent % block > 0);
}

/* Checks the fields that say how the blocks lie, each by itself. */
static cai_status cai_priv_scaled_fields(const cai_scaled *x, cai_error *err)
{
    const int tiled = x->layout == CAI_SCALES_128X4;
    if (x->layout != CAI_SCALES_PLAIN && !tiled)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "layout = %d is not in 0..1", x->layout);
    if (x->block < 1) return cai_priv_error(err, CAI_ERR_ARGUMENT, "block = %d is less than 1", x->block);
    if (x->rows < 1 || (tiled && x->rows > 1))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "rows = %d: the layout has %s", x->rows,
                              tiled ? "1" : "1 or more");
    return CAI_OK;
}

/* Finds the axes. */
static cai_status cai_priv_scaled_axes(const cai_scaled *x, cai_priv_scaled *plan, cai_error *err)
{
    const int32_t ndim = plan->ndim = x->data->ndim, axis = x->axis < 0 ? x->axis + ndim : x->axis;
    const int matrix = x->layout == CAI_SCALES_128X4 || x->rows > 1;
    if (axis < 0 || axis >= ndim)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "axis = %d is not one of %d axes", x->axis, ndim);
    if (matrix && ndim < 2)
        return cai_priv_error(err, CAI_ERR_SHAPE,
                              "the data has 1 axis: rows above 1 and layout 128X4 need 2 or more");
    if (matrix && axis < ndim - 2)
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "axis = %d is not one of the last two of %d axes: rows above 1 and layout 128X4 "
                              "need it", x->axis, ndim);
    plan->axis = axis;
    plan->row_axis = ndim < 2 ? -1 : axis == ndim - 1 ? ndim - 2 : ndim - 1;
    return CAI_OK;
}

/* Pads rows and blocks to whole tiles. The rows become the axis before the last. Returns 0 if it overflows. */
static int cai_priv_scaled_pad(cai_priv_scaled *plan)
{
    const int64_t rows = cai_priv_scaled_ceil(plan->shape[plan->row_axis], 128);
    const int64_t blocks = cai_priv_scaled_ceil(plan->shape[plan->axis], 4);
    if (rows > INT64_MAX / 128 || blocks > INT64_MAX / 4) return 0;
    plan->shape[plan->ndim - 2] = rows * 128;
    plan->shape[plan->ndim - 1] = blocks * 4;
    return 1;
}

/* Counts the scales. Returns 0 if they are too many, where extents of 0 are left out. */
static int cai_priv_scaled_count(cai_priv_scaled *plan)
{
    int32_t i;
    int empty = 0;
    plan->count = 1;
    for (i = 0; i < plan->ndim; ++i) {
        empty |= !plan->shape[i];
        if (!plan->shape[i]) continue;
        if (plan->shape[i] > INT64_MAX / plan->count) return 0;
        plan->count *= plan->shape[i];
    }
    if (empty) plan->count = 0;
    return 1;
}

static cai_status cai_priv_scaled_plan(const cai_scaled *x, cai_priv_scaled *plan, cai_error *err)
{
    int32_t i;
    plan->axis = 0; /* gcc does not see that they are filled, where all is inlined */
    plan->count = 0;
    CAI_TRY(cai_priv_scaled_fields(x, err));
    CAI_TRY(cai_array_check(x->data, err));
    CAI_TRY(cai_priv_scaled_axes(x, plan, err));
    for (i = 0; i < plan->ndim; ++i) {
        const int64_t per = i == plan->axis ? x->block : i == plan->row_axis ? x->rows : 1;
        plan->shape[i] = cai_priv_scaled_ceil(cai_priv_scaled_extent(x->data, i), per);
    }
    if ((x->layout == CAI_SCALES_128X4 && !cai_priv_scaled_pad(plan)) || !cai_priv_scaled_count(plan))
        return cai_priv_error(err, CAI_ERR_SHAPE, "the scales are more than 2^63 - 1");
    return CAI_OK;
}

CAI_API cai_status cai_scales_shape(const cai_scaled *x, int64_t *shape, cai_error *err)
{
    cai_priv_scaled plan;
    int32_t i;
    if (!x || !shape) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_scales_shape: x or shape is NULL");
    CAI_TRY(cai_priv_scaled_plan(x, &plan, err));
    for (i = 0; i < plan.ndim; ++i) shape[i] = plan.shape[i];
    return CAI_OK;
}

/* --------------------------------------------------------------------- >>checks */
/* What a format has. The two dtypes of the values may be the same. */
static const struct {
    const char *name;
    int32_t codes[2], scales, block, rows;
} cai_priv_scaled_formats[CAI_SCALED_COUNT] = {
    {"any", {0, 0}, CAI_ANY_DTYPE, 0, 0},
    {"MXFP8", {CAI_FLOAT8_E4M3FN, CAI_FLOAT8_E5M2}, CAI_FLOAT8_E8M0FNU, 32, 1},
    {"MXFP4", {CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT4_E2M1FN_X2}, CAI_FLOAT8_E8M0FNU, 32, 1},
    {"NVFP4", {CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT4_E2M1FN_X2}, CAI_FLOAT8_E4M3FN, 16, 1},
    {"FP8_128X128", {CAI_FLOAT8_E4M3FN, CAI_FLOAT8_E4M3FN}, CAI_FLOAT32, 128, 128},
};

/* Checks the values and the block of a format. */
static cai_status cai_priv_scaled_format(const cai_scaled *x, int32_t format, cai_error *err)
{
    const int32_t code = x->data->dtype.code;
    const int32_t *codes = cai_priv_scaled_formats[format].codes;
    const char *name = cai_priv_scaled_formats[format].name;
    if (code != codes[0] && code != codes[1])
        return cai_priv_error(err, CAI_ERR_EXPECT, "the values are %s%s, those of %s are %s%s%s",
                              cai_dtype_name(code),
                              x->data->dtype.bits && x->data->packed_axis < 0 ? " (one value in a byte)" : "",
                              name, cai_dtype_name(codes[0]),
                              codes[1] == codes[0] ? "" : " or ",
                              codes[1] == codes[0] ? "" : cai_dtype_name(codes[1]));
    if (x->block == cai_priv_scaled_formats[format].block && x->rows == cai_priv_scaled_formats[format].rows)
        return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "a block has %d x %d values, that of %s has %d x %d", x->rows,
                          x->block, name, cai_priv_scaled_formats[format].rows,
                          cai_priv_scaled_formats[format].block);
}

/* Checks the shape of the scales that are not tiled. */
static cai_status cai_priv_scaled_plain(const cai_scaled *x, const cai_priv_scaled *plan, cai_error *err)
{
    const cai_array *scales = x->scales;
    cai_status status;
    int32_t i;
    if (scales->ndim != plan->ndim)
        return cai_priv_error(err, CAI_ERR_EXPECT,
                              "scales.ndim = %d, not %d: plain scales have the axes of the data", scales->ndim,
                              plan->ndim);
    for (i = 0; i < plan->ndim && scales->shape[i] == plan->shape[i];) ++i;
    if (i == plan->ndim) return CAI_OK;
    status = cai_priv_error(err, CAI_ERR_EXPECT,
                            "scales.shape[%d] = %lld, not %lld: the data has %lld %s, %d to a scale", i,
                            (long long)scales->shape[i], (long long)plan->shape[i],
                            (long long)cai_priv_scaled_extent(x->data, i),
                            i == plan->axis ? "values" : i == plan->row_axis ? "rows" : "indices",
                            i == plan->axis ? x->block : i == plan->row_axis ? x->rows : 1);
    if (err) err->index = i;
    return status;
}

/* Checks that a scale is an element, in tiles of 8 bits. */
static cai_status cai_priv_scaled_dtype(const cai_dtype *dtype, int tiled, cai_error *err)
{
    const char *name = cai_dtype_name(dtype->code);
    if (cai_dtype_values(dtype) > 1 || dtype->code == CAI_BOOL)
        return cai_priv_error(err, CAI_ERR_EXPECT, "the scales are %s: a scale is an element, and no bool",
                              name);
    if (!tiled || !dtype->bits) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "the scales are %s: those of layout 128X4 have 8 bits", name);
}

/* Checks that a kernel, or the CPU, can use both arrays. */
static cai_status cai_priv_scaled_place(const cai_array *data, const cai_array *scales, cai_error *err)
{
    static const char *const names[2] = {"plain host memory", "device memory"};
    const cai_array *host = data->memory == CAI_MEMORY_HOST ? data : scales;
    const cai_array *other = host == data ? scales : data;
    if (data->device >= 0 && scales->device >= 0 && data->device != scales->device)
        return cai_priv_error(err, CAI_ERR_EXPECT, "the data is on device %d, the scales on device %d",
                              data->device, scales->device);
    if (host->memory != CAI_MEMORY_HOST || host->device >= 0 || other->memory != CAI_MEMORY_DEVICE)
        return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "the data is in %s, the scales are in %s", names[host == scales],
                          names[host == data]);
}

/* Checks scales in tiles. */
static cai_status cai_priv_scaled_tiled(const cai_array *scales, const cai_priv_scaled *plan, cai_error *err)
{
    if (scales->dtype.itemsize != 1)
        return cai_priv_error(err, CAI_ERR_EXPECT, "the scales have %d bytes: those of layout 128X4 have 1",
                              scales->dtype.itemsize);
    if (scales->size != plan->count)
        return cai_priv_error(err, CAI_ERR_EXPECT,
                              "there are %lld scales, not %lld: %lld rows of %lld blocks, padded to 128 and 4",
                              (long long)scales->size, (long long)plan->count,
                              (long long)plan->shape[plan->ndim - 2], (long long)plan->shape[plan->ndim - 1]);
    if (!(scales->flags & CAI_DENSE) || scales->lo)
        return cai_priv_error(err, CAI_ERR_EXPECT,
                              "the scales have gaps or a negative stride: layout 128X4 has none");
    if (scales->data % 16)
        return cai_priv_error(err, CAI_ERR_EXPECT,
                              "the scales are at 0x%llx: layout 128X4 needs a multiple of 16",
                              (unsigned long long)scales->data);
    return CAI_OK;
}

/* Checks that an element of several values belongs to one block. Scales of no format may have another order. */
static cai_status cai_priv_scaled_packed(const cai_scaled *x, int32_t format, int32_t axis, cai_error *err)
{
    const int32_t packed = x->data->packed_axis;
    if (packed < 0 || packed == axis || (format == CAI_ANY_SCALED && x->layout == CAI_SCALES_PLAIN))
        return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT,
                          "the values of an element lie along axis %d, the blocks along axis %d: %s has "
                          "both along one axis", packed, axis,
                          format == CAI_ANY_SCALED ? "layout 128X4" : cai_priv_scaled_formats[format].name);
}

/* Checks what is not about one array alone. */
static cai_status cai_priv_scaled_check(const cai_scaled *x, int32_t format, int32_t layout,
                                        cai_priv_scaled *plan, cai_error *err)
{
    CAI_TRY(cai_priv_scaled_plan(x, plan, err));
    if (format != CAI_ANY_SCALED) CAI_TRY(cai_priv_scaled_format(x, format, err));
    CAI_TRY(cai_priv_scaled_packed(x, format, plan->axis, err));
    if (layout != CAI_ANY_SCALES && layout != x->layout)
        return cai_priv_error(err, CAI_ERR_EXPECT, "the layout of the scales is %s, not %s",
                              x->layout ? "128X4" : "plain", layout ? "128X4" : "plain");
    CAI_TRY(cai_priv_scaled_place(x->data, x->scales, err));
    CAI_TRY(cai_priv_scaled_dtype(&x->scales->dtype, x->layout == CAI_SCALES_128X4, err));
    return x->layout ? cai_priv_scaled_tiled(x->scales, plan, err) : cai_priv_scaled_plain(x, plan, err);
}

static cai_status cai_priv_scaled_along(const cai_priv_scaled *plan, int32_t axis, cai_error *err)
{
    if (axis == CAI_ANY_AXIS || plan->axis == (axis < 0 ? axis + plan->ndim : axis)) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "the blocks lie along axis %d of %d, not along %d", plan->axis,
                          plan->ndim, axis);
}

CAI_API cai_status cai_expect_scaled(const cai_scaled *x, const char *name, int32_t format, int32_t layout,
                                     int32_t axis, uint32_t requirements, cai_error *err)
{
    const uint32_t order = CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS;
    cai_priv_scaled plan;
    if (!x || !name) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_expect_scaled: x or name is NULL");
    if (format < 0 || format >= CAI_SCALED_COUNT)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_expect_scaled: format = %d is not in 0..4", format);
    if (layout < CAI_ANY_SCALES || layout > CAI_SCALES_128X4)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_expect_scaled: layout = %d is not in -1..1", layout);
    CAI_TRY(cai_error_name(cai_expect(x->data, "data", CAI_ANY_DTYPE, CAI_ANY_NDIM, requirements, err), name,
                           err));
    CAI_TRY(cai_error_name(cai_expect(x->scales, "scales", cai_priv_scaled_formats[format].scales, CAI_ANY_NDIM,
                                      requirements & ~order, err), name, err));
    CAI_TRY(cai_error_name(cai_priv_scaled_check(x, format, layout, &plan, err), name, err));
    return cai_error_name(cai_priv_scaled_along(&plan, axis, err), name, err);
}

/* ----------------------------------------------------------------------- >>maps */
CAI_API cai_status cai_scale_map_of(const cai_scaled *x, cai_scale_map *out, cai_error *err)
{
    cai_priv_scaled plan;
    const int64_t *strides;
    if (!x || !out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_scale_map_of: x or out is NULL");
    CAI_TRY(cai_array_check(x->scales, err));
    CAI_TRY(cai_priv_scaled_check(x, CAI_ANY_SCALED, CAI_ANY_SCALES, &plan, err));
    if (plan.ndim > 3 || plan.axis < plan.ndim - 2)
        return cai_priv_error(err, CAI_ERR_VIEW, "axis %d of %d: a map has the last two axes of at most 3",
                              plan.axis, plan.ndim);
    strides = x->scales->strides;
    out->block = x->block;
    out->rows = x->rows;
    out->layout = x->layout;
    out->reserved = 0;
    out->batch_stride = 0;
    if (x->layout == CAI_SCALES_128X4) {
        const int64_t blocks = plan.count ? plan.shape[plan.ndim - 1] : 0; /* without scales it may overflow */
        out->block_stride = 512;
        out->row_stride = blocks * 128;
        if (plan.ndim == 3) out->batch_stride = plan.shape[1] * blocks;
        return CAI_OK;
    }
    out->block_stride = strides[plan.axis];
    out->row_stride = plan.row_axis < 0 ? 0 : strides[plan.row_axis];
    if (plan.ndim == 3) out->batch_stride = strides[0];
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_SCALED_IMPLEMENTATION */

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
