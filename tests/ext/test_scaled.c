/* test_scaled.c - ext/cai_scaled.h against CUTLASS's layout, the documents' examples and a decoder of its own
 * SPDX-License-Identifier: MIT
 *
 * Witnesses: CUTLASS's SfAtom as shapes and strides (include/cutlass/detail/sm100_blockscaled_layout.hpp), the
 * examples of cuDNN's "The 128x4 Tiled Layout for Block Scaling Factors", the tables of values of OCP MX 1.0.
 * Beside this, tests/oracle/scaled.py has the formula of torchao and the decoders of ml_dtypes. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai_scaled.h"
#include "cai_test.h"
#include "cai_test_help.h"
#include "packed_model.h"

enum { E8M0 = CAI_FLOAT8_E8M0FNU, E4M3 = CAI_FLOAT8_E4M3FN, E5M2 = CAI_FLOAT8_E5M2, FP4 = CAI_FLOAT4_E2M1FN_X2 };

/* An argument with its arrays, at addresses that nobody reads. */
typedef struct argument {
    cai_array data, scales;
    cai_scaled x;
} argument;

static void describe(cai_array *out, int32_t code, int32_t ndim, const int64_t *shape, uint64_t address)
{
    cai_dtype dtype;
    CHECK_INT(cai_dtype_of(code, &dtype, NULL), CAI_OK);
    if (cai_dtype_values(&dtype) > 1 && ndim)
        CHECK_INT(cai_array_init_packed(out, code, ndim, shape, ndim - 1, NULL, (void *)(uintptr_t)address, NULL),
                  CAI_OK);
    else CHECK_INT(cai_array_init_dtype(out, &dtype, ndim, shape, NULL, address, NULL), CAI_OK);
}

/* Makes data of `shape`, and scales of the shape that cai_scales_shape gives. */
static void make(argument *a, int32_t code, int32_t ndim, const int64_t *shape, int32_t scales, int32_t axis,
                 int32_t block, int32_t rows, int32_t layout)
{
    int64_t extents[8];
    const cai_scaled x = {&a->data, &a->scales, axis, block, rows, layout};
    a->x = x;
    describe(&a->data, code, ndim, shape, 0x1000);
    if (a->data.packed_axis >= 0) /* the values of an element along the blocks */
        CHECK_INT(cai_array_init_packed(&a->data, code, ndim, shape, axis < 0 ? axis + ndim : axis, NULL,
                                        (void *)0x1000, NULL), CAI_OK);
    CHECK_INT(cai_scales_shape(&a->x, extents, NULL), CAI_OK);
    describe(&a->scales, scales, ndim, extents, 0x100000);
}

/* ------------------------------------------------------------------ formats */
typedef struct row {
    int32_t format, code, scales, block, rows;
} row;

/* OCP MX 1.0, cuDNN's table for NVFP4, DeepSeek-V3's README_WEIGHTS.md */
static const row formats[] = {{CAI_MXFP8, E4M3, E8M0, 32, 1}, {CAI_MXFP8, E5M2, E8M0, 32, 1},
                              {CAI_MXFP4, FP4, E8M0, 32, 1}, {CAI_NVFP4, FP4, E4M3, 16, 1},
                              {CAI_FP8_128X128, E4M3, CAI_FLOAT32, 128, 128}};
enum { FORMATS = (int)(sizeof formats / sizeof formats[0]) };

static int in_table(const row *r)
{
    int i;
    for (i = 0; i < FORMATS && memcmp(&formats[i], r, sizeof *r) != 0;) i++;
    return i < FORMATS;
}

/* A format takes what its row says, and nothing beside it. */
static void check_formats(void)
{
    static const int32_t codes[] = {E4M3, E5M2, FP4, CAI_FLOAT4_E2M1FN, CAI_UINT8, E8M0}, blocks[] = {16, 32, 128};
    static const int32_t scales[] = {E8M0, E4M3, CAI_FLOAT32, CAI_UINT8, CAI_FLOAT16}, rows[] = {1, 128};
    static const int64_t shape[2] = {300, 200};
    row r;
    size_t c, s, b, n;
    for (c = 0; c < 6; c++) for (s = 0; s < 5; s++) for (b = 0; b < 3; b++) for (n = 0; n < 2; n++) {
        argument a;
        make(&a, codes[c], 2, shape, scales[s], 1, blocks[b], rows[n], CAI_SCALES_PLAIN);
        CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_ANY_SCALED, CAI_ANY_SCALES, CAI_ANY_AXIS, 0, NULL), CAI_OK);
        for (r.format = CAI_MXFP8; r.format < CAI_SCALED_COUNT; r.format++) {
            r.code = codes[c], r.scales = scales[s], r.block = blocks[b], r.rows = rows[n];
            CHECK_INT(cai_expect_scaled(&a.x, "x", r.format, CAI_SCALES_PLAIN, CAI_ANY_AXIS, 0, NULL),
                      in_table(&r) ? CAI_OK : CAI_ERR_EXPECT);
        }
    }
}

/* ------------------------------------------------------------------ offsets */
/* CUTLASS: SfAtom has shape ((32, 4), (V, 4)) and stride ((16, 4), (0, 1)), in values. tile_to_shape repeats it
 * with Step<2, 1, 3>: first along K, then along M, then along L. */
static int64_t cutlass(int64_t m, int64_t k, int64_t l, int64_t rows, int64_t columns, int64_t v)
{
    const int64_t shape[4] = {32, 4, v, 4}, stride[4] = {16, 4, 0, 1};
    const int64_t tiles_k = (columns + 4 * v - 1) / (4 * v), tiles_m = (rows + 127) / 128;
    int64_t offset = 512 * (k / (4 * v) + tiles_k * (m / 128 + tiles_m * l));
    int i;
    for (i = 0; i < 2; i++) offset += m % shape[i] * stride[i], m /= shape[i];
    m = k;
    for (i = 2; i < 4; i++) offset += m % shape[i] * stride[i], m /= shape[i];
    return offset;
}

/* Compares each value of one argument of 2 or 3 axes. */
static void check_offsets(const argument *a)
{
    const int32_t ndim = a->data.ndim, axis = a->x.axis < 0 ? a->x.axis + ndim : a->x.axis;
    const int32_t beside = axis == ndim - 1 ? ndim - 2 : ndim - 1;
    const int64_t columns = axis == a->data.packed_axis ? a->data.packed_extent : a->data.shape[axis];
    const int64_t rows = beside == a->data.packed_axis ? a->data.packed_extent : a->data.shape[beside];
    const int64_t *strides = a->scales.strides;
    cai_scale_map map;
    int64_t l, m, k;
    CHECK_INT(cai_scale_map_of(&a->x, &map, NULL), CAI_OK);
    CHECK_INT(map.reserved, 0);
    for (l = 0; l < (ndim == 3 ? a->data.shape[0] : 1); l++)
        for (m = 0; m < rows; m++)
            for (k = 0; k < columns; k++) {
                const int64_t offset = cai_scale_offset(&map, m, k) + l * map.batch_stride;
                const int64_t plain = m / a->x.rows * strides[beside] + k / a->x.block * strides[axis] +
                                      (ndim == 3 ? l * strides[0] : 0);
                if (a->x.layout == CAI_SCALES_PLAIN) CHECK_INT(offset, plain);
                else CHECK_INT(offset, cutlass(m, k, l, rows, columns, a->x.block));
                CHECK(offset >= 0 && offset < a->scales.nbytes);
            }
}

/* Blocks count values of every packed dtype, MXFP6's among them, whatever the bytes of an element are. */
static void check_packed(void)
{
    static const int64_t shape[2] = {130, 99};
    int i;
    for (i = 0; i < KINDS; i++) {
        argument a;
        make(&a, kinds[i].packed, 2, shape, E8M0, -1, 32, 1, CAI_SCALES_PLAIN);
        CHECK(a.scales.shape[0] == 130 && a.scales.shape[1] == 4);
        check_offsets(&a);
        make(&a, kinds[i].packed, 2, shape, E8M0, -1, 32, 1, CAI_SCALES_128X4);
        CHECK(a.scales.shape[0] == 256 && a.scales.shape[1] == 4);
        check_offsets(&a);
        make(&a, kinds[i].packed, 2, shape, E8M0, 0, 32, 1, CAI_SCALES_PLAIN); /* across the packed axis */
        CHECK(a.scales.shape[0] == 5 && a.scales.shape[1] == 99);
        check_offsets(&a);
    }
}

static void check_layouts(void)
{
    static const int64_t extents[] = {1, 31, 33, 128, 129, 260};
    int i, rows, columns;
    for (i = 0; i < FORMATS; i++)
        for (rows = 0; rows < 6; rows++)
            for (columns = 0; columns < 6; columns++) {
                const row *f = &formats[i];
                const int64_t shape[3] = {2, extents[rows], extents[columns]};
                const int32_t three = (rows + columns) % 3 == 0, axis = rows % 2 ? -1 : -2;
                argument a;
                make(&a, f->code, 2 + three, shape + !three, f->scales, axis, f->block, f->rows, CAI_SCALES_PLAIN);
                check_offsets(&a);
                if (f->rows > 1) continue;
                make(&a, f->code, 2 + three, shape + !three, f->scales, axis, f->block, 1, CAI_SCALES_128X4);
                CHECK_INT(cai_expect_scaled(&a.x, "x", f->format, CAI_SCALES_128X4, CAI_ANY_AXIS, 0, NULL), CAI_OK);
                check_offsets(&a);
            }
}

/* Scales with strides of their own: "outer-dim-major", as torch.nn.functional.scaled_mm takes BlockWise1x128. */
static void check_strides(void)
{
    const int64_t shape[2] = {100, 300}, transposed[2] = {3, 100}, one[1] = {40};
    argument a;
    cai_scale_map map;
    make(&a, E4M3, 2, shape, CAI_FLOAT32, 1, 128, 1, CAI_SCALES_PLAIN);
    describe(&a.scales, CAI_FLOAT32, 2, transposed, 0x100000);
    CHECK_INT(cai_view_permute(&a.scales, NULL, &a.scales, NULL), CAI_OK);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_ANY_SCALED, CAI_SCALES_PLAIN, CAI_ANY_AXIS, CAI_C_CONTIGUOUS, NULL), CAI_OK);
    check_offsets(&a);
    CHECK_INT(cai_scale_map_of(&a.x, &map, NULL), CAI_OK);
    CHECK_INT(cai_scale_offset(&map, 7, 257), 7 * 4 + 2 * 400);
    make(&a, E4M3, 1, one, E8M0, 0, 32, 1, CAI_SCALES_PLAIN);
    CHECK_INT(cai_scale_map_of(&a.x, &map, NULL), CAI_OK);
    CHECK_INT(cai_scale_offset(&map, 0, 39), 1);
    CHECK_INT(map.row_stride, 0);
}

/* ------------------------------------------------------------------ shapes */
static void check_shape(int32_t code, int32_t ndim, const int64_t *shape, int32_t axis, int32_t block,
                        int32_t layout, const int64_t *expected)
{
    argument a;
    int32_t i;
    make(&a, code, ndim, shape, E8M0, axis, block, 1, layout);
    for (i = 0; i < ndim; i++) CHECK_INT(a.scales.shape[i], expected[i]);
}

static void check_shapes(void)
{
    const int64_t cudnn[2] = {500, 192}, mxfp8[2] = {512, 8}, nvfp4[2] = {512, 12}, plain[2] = {500, 6};
    const int64_t square[2] = {256, 256}, tiles[2] = {256, 8}, v[4] = {2, 3, 1000, 64};
    const int64_t along[4] = {2, 3, 32, 64}, tiled[4] = {2, 3, 128, 32}, empty[2] = {0, 40}, none[2] = {0, 4};
    const int64_t b[2] = {192, 500}, b_scales[2] = {6, 500}, b_tiles[2] = {512, 8}, flat[1] = {4096}, grouped[3] = {40, 5, 7}, groups[3] = {2, 5, 7};
    argument a;
    check_shape(E4M3, 2, cudnn, 1, 32, CAI_SCALES_128X4, mxfp8); /* cuDNN's examples */
    check_shape(FP4, 2, cudnn, 1, 16, CAI_SCALES_128X4, nvfp4);
    check_shape(E4M3, 2, square, 1, 32, CAI_SCALES_128X4, tiles);
    check_shape(E4M3, 2, cudnn, -1, 32, CAI_SCALES_PLAIN, plain);
    check_shape(E4M3, 4, v, 2, 32, CAI_SCALES_PLAIN, along);
    check_shape(E4M3, 4, v, 2, 32, CAI_SCALES_128X4, tiled); /* rows: axis 3, blocks: axis 2 */
    check_shape(E4M3, 2, empty, 1, 32, CAI_SCALES_128X4, none);
    check_shape(E4M3, 3, grouped, 0, 32, CAI_SCALES_PLAIN, groups);
    check_shape(E4M3, 2, b, 0, 32, CAI_SCALES_PLAIN, b_scales); /* B of a product: blocks along K, axis 0 */
    check_shape(E4M3, 2, b, 0, 32, CAI_SCALES_128X4, b_tiles);
    make(&a, E4M3, 2, empty, E8M0, 1, 32, 1, CAI_SCALES_128X4);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, CAI_ANY_AXIS, 0, NULL), CAI_OK);
    make(&a, E4M3, 2, cudnn, E8M0, 1, 32, 1, CAI_SCALES_128X4);
    CHECK_INT(cai_view_permute(&a.scales, NULL, &a.scales, NULL), CAI_OK); /* as cuDNN has those of B */
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, CAI_ANY_AXIS, CAI_C_CONTIGUOUS, NULL), CAI_OK);
    describe(&a.scales, E8M0, 1, flat, 0x100000); /* as torchao has them */
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, CAI_ANY_AXIS, CAI_ON_DEVICE, NULL), CAI_OK);
}

/* ------------------------------------------------------------------ values */
/* OCP MX 1.0: the values of FP4 by their bits, and E8M0 as a power of two */
static float decode(const argument *a, const cai_scale_map *map, int64_t m, int64_t k)
{
    static const float fp4[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const uint8_t *data = (const uint8_t *)(uintptr_t)a->data.data;
    const uint8_t *scales = (const uint8_t *)(uintptr_t)a->scales.data;
    const int bits = data[m * a->data.strides[0] + k / 2] >> (k % 2 ? 4 : 0) & 15;
    int power = scales[cai_scale_offset(map, m, k)] - 127;
    float value = bits & 8 ? -fp4[bits & 7] : fp4[bits];
    for (; power > 0; power--) value *= 2;
    for (; power < 0; power++) value /= 2;
    return value;
}

static void check_values(void)
{
    static uint8_t data[130][32], scales[2 * 512 + 16];
    const int64_t shape[2] = {130, 64}, count[1] = {1024};
    argument a;
    cai_scale_map map;
    const uintptr_t aligned = ((uintptr_t)scales + 15) / 16 * 16;
    const cai_scaled x = {&a.data, &a.scales, 1, 32, 1, CAI_SCALES_128X4};
    a.x = x;
    CHECK_INT(cai_array_init_packed(&a.data, FP4, 2, shape, 1, NULL, data, NULL), CAI_OK);
    CHECK_INT(cai_array_init(&a.scales, E8M0, 1, count, NULL, (void *)aligned, NULL), CAI_OK);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP4, CAI_SCALES_128X4, CAI_ANY_AXIS, 0, NULL), CAI_OK);
    CHECK_INT(cai_scale_map_of(&a.x, &map, NULL), CAI_OK);
    data[33][16] = 0x7f;                   /* value 32: -6; value 33: 6 */
    ((uint8_t *)aligned)[16 + 4 + 1] = 130; /* row 33 of tile 0, block 1, by cuDNN's list of offsets */
    data[129][0] = 0x32;                    /* value 0: 1; value 1: 1.5 */
    ((uint8_t *)aligned)[512 + 16] = 126;   /* row 1 of tile 1, block 0 */
    CHECK(decode(&a, &map, 33, 32) == -48);
    CHECK(decode(&a, &map, 33, 33) == 48);
    CHECK(decode(&a, &map, 129, 0) == 0.5f);
    CHECK(decode(&a, &map, 129, 1) == 0.75f);
}

/* ------------------------------------------------------------------ refusals */
static const int64_t usual[2] = {100, 90};

static void usual_argument(argument *a, int32_t layout)
{
    make(a, E4M3, 2, usual, E8M0, 1, 32, 1, layout);
}

static void refuse(const argument *a, int32_t format, int32_t layout, uint32_t requirements, cai_status status,
                   const char *message)
{
    cai_error err;
    memset(&err, 0, sizeof err);
    CHECK_INT(cai_expect_scaled(&a->x, "x", format, layout, CAI_ANY_AXIS, requirements, &err), status);
    CHECK_STR(err.message, message);
    CHECK_INT(cai_expect_scaled(&a->x, "x", format, layout, CAI_ANY_AXIS, requirements, NULL), status);
}

static void refuse_any(const argument *a, cai_status status, const char *message)
{
    refuse(a, CAI_ANY_SCALED, CAI_ANY_SCALES, 0, status, message);
}

/* The fields of a scaled array. */
static void refuse_fields(void)
{
    static const char last_two[] =
        "x: axis = 0 is not one of the last two of 3 axes: rows above 1 and layout 128X4 need it";
    const int64_t three[3] = {4, 5, 6};
    argument a;
    usual_argument(&a, CAI_SCALES_PLAIN);
    a.x.layout = 2;
    refuse_any(&a, CAI_ERR_ARGUMENT, "x: layout = 2 is not in 0..1");
    a.x.layout = CAI_SCALES_PLAIN, a.x.block = 0;
    refuse_any(&a, CAI_ERR_ARGUMENT, "x: block = 0 is less than 1");
    a.x.block = 32, a.x.rows = 0;
    refuse_any(&a, CAI_ERR_ARGUMENT, "x: rows = 0: the layout has 1 or more");
    a.x.rows = 2, a.x.layout = CAI_SCALES_128X4;
    refuse_any(&a, CAI_ERR_ARGUMENT, "x: rows = 2: the layout has 1");
    a.x.rows = 1, a.x.axis = 2;
    refuse_any(&a, CAI_ERR_ARGUMENT, "x: axis = 2 is not one of 2 axes");
    a.x.axis = -3;
    refuse_any(&a, CAI_ERR_ARGUMENT, "x: axis = -3 is not one of 2 axes");
    describe(&a.data, E4M3, 1, usual, 0x1000);
    a.x.axis = 0;
    refuse_any(&a, CAI_ERR_SHAPE, "x: the data has 1 axis: rows above 1 and layout 128X4 need 2 or more");
    a.x.layout = CAI_SCALES_PLAIN, a.x.rows = 128;
    refuse_any(&a, CAI_ERR_SHAPE, "x: the data has 1 axis: rows above 1 and layout 128X4 need 2 or more");
    describe(&a.data, E4M3, 3, three, 0x1000);
    refuse_any(&a, CAI_ERR_ARGUMENT, last_two);
    a.x.layout = CAI_SCALES_128X4, a.x.rows = 1;
    refuse_any(&a, CAI_ERR_ARGUMENT, last_two);
    a.x.data = NULL;
    refuse_any(&a, CAI_ERR_ARGUMENT, "x: data: array is NULL");
}

/* Data that nobody can hold, but whose scales could be counted wrongly. */
static void refuse_sizes(void)
{
    static const int64_t strides[2] = {0, 0};
    const int64_t shapes[3][2] = {{INT64_MAX, 0}, {0, INT64_MAX}, {1ll << 61, 2}};
    int64_t extents[2] = {-5, -6};
    cai_error err;
    argument a;
    int i;
    usual_argument(&a, CAI_SCALES_128X4);
    a.x.block = 1;
    for (i = 0; i < 3; i++) {
        CHECK_INT(cai_array_init(&a.data, E4M3, 2, shapes[i], strides, (void *)0x1000, NULL), CAI_OK);
        CHECK_INT(cai_scales_shape(&a.x, extents, &err), CAI_ERR_SHAPE);
        CHECK_STR(err.message, "the scales are more than 2^63 - 1");
        CHECK_INT(extents[0], -5);
    }
    CHECK_INT(cai_scales_shape(NULL, extents, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_scales_shape: x or shape is NULL");
    CHECK_INT(cai_scales_shape(&a.x, NULL, NULL), CAI_ERR_ARGUMENT);
    a.x.data = NULL;
    CHECK_INT(cai_scales_shape(&a.x, extents, NULL), CAI_ERR_ARGUMENT);
}

static void refuse_formats(void)
{
    argument a;
    make(&a, E4M3, 2, usual, E4M3, 1, 16, 1, CAI_SCALES_PLAIN);
    refuse(&a, CAI_NVFP4, 0, 0, CAI_ERR_EXPECT,
           "x: the values are float8_e4m3fn, those of NVFP4 are float4_e2m1fn_x2");
    describe(&a.data, CAI_FLOAT4_E2M1FN, 2, usual, 0x1000);
    refuse(&a, CAI_NVFP4, 0, 0, CAI_ERR_EXPECT,
           "x: the values are float4_e2m1fn (one value in a byte), those of NVFP4 are float4_e2m1fn_x2");
    usual_argument(&a, CAI_SCALES_PLAIN);
    refuse(&a, CAI_FP8_128X128, 0, 0, CAI_ERR_EXPECT, "x: scales: expected float32; got float8_e8m0fnu, 2-D");
    refuse(&a, CAI_MXFP8, CAI_SCALES_128X4, 0, CAI_ERR_EXPECT, "x: the layout of the scales is plain, not 128X4");
    make(&a, CAI_UINT8, 2, usual, E8M0, 1, 32, 1, CAI_SCALES_PLAIN);
    refuse(&a, CAI_MXFP8, 0, 0, CAI_ERR_EXPECT,
           "x: the values are uint8, those of MXFP8 are float8_e4m3fn or float8_e5m2");
    make(&a, E4M3, 2, usual, E8M0, 1, 16, 2, CAI_SCALES_PLAIN);
    refuse(&a, CAI_MXFP8, 0, 0, CAI_ERR_EXPECT, "x: a block has 2 x 16 values, that of MXFP8 has 1 x 32");
    usual_argument(&a, CAI_SCALES_128X4);
    refuse(&a, CAI_MXFP8, CAI_SCALES_PLAIN, 0, CAI_ERR_EXPECT, "x: the layout of the scales is 128X4, not plain");
    refuse(&a, -1, 0, 0, CAI_ERR_ARGUMENT, "cai_expect_scaled: format = -1 is not in 0..4");
    refuse(&a, 5, 0, 0, CAI_ERR_ARGUMENT, "cai_expect_scaled: format = 5 is not in 0..4");
    refuse(&a, 0, -2, 0, CAI_ERR_ARGUMENT, "cai_expect_scaled: layout = -2 is not in -1..1");
    refuse(&a, 0, 2, 0, CAI_ERR_ARGUMENT, "cai_expect_scaled: layout = 2 is not in -1..1");
}

/* What cai_expect says of each array, and the device. */
static void refuse_arrays(void)
{
    cai_error err;
    argument a;
    usual_argument(&a, CAI_SCALES_PLAIN);
    CHECK_INT(cai_expect_scaled(NULL, "x", 0, 0, CAI_ANY_AXIS, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_expect_scaled: x or name is NULL");
    CHECK_INT(cai_expect_scaled(&a.x, NULL, 0, 0, CAI_ANY_AXIS, 0, NULL), CAI_ERR_ARGUMENT);
    refuse(&a, 0, 0, 1u << 30, CAI_ERR_ARGUMENT, "x: cai_expect: requirements = 0x40000000 has unknown bits");
    cai_array_set_read_only(&a.scales, 1);
    refuse(&a, 0, 0, CAI_WRITABLE, CAI_ERR_EXPECT, "x: scales: expected writable; got float8_e8m0fnu, 2-D, read-only");
    cai_array_set_read_only(&a.data, 1);
    refuse(&a, 0, 0, CAI_WRITABLE, CAI_ERR_EXPECT, "x: data: expected writable; got float8_e4m3fn, 2-D, read-only");
    refuse(&a, 0, 0, CAI_F_CONTIGUOUS, CAI_ERR_EXPECT,
           "x: data: expected F-contiguous; got float8_e4m3fn, 2-D, strides (90, 1)");
    a.data.device = 0;
    CHECK_INT(cai_expect_scaled(&a.x, "x", 0, 0, CAI_ANY_AXIS, 0, NULL), CAI_OK);
    a.scales.device = 0;
    CHECK_INT(cai_expect_scaled(&a.x, "x", 0, 0, CAI_ANY_AXIS, 0, NULL), CAI_OK);
    a.scales.device = 2;
    refuse_any(&a, CAI_ERR_EXPECT, "x: the data is on device 0, the scales on device 2");
    a.data.device = -1;
    CHECK_INT(cai_expect_scaled(&a.x, "x", 0, 0, CAI_ANY_AXIS, 0, NULL), CAI_OK);
}

/* A kernel that takes pointers reads the blocks along the axis that it was written for. */
static void refuse_axes(void)
{
    const int64_t square[2] = {128, 128}, batch[3] = {2, 128, 128};
    argument a;
    cai_error err;
    int32_t axis;
    make(&a, E4M3, 2, square, E8M0, 1, 32, 1, CAI_SCALES_128X4);
    for (axis = -3; axis < 4; axis++) {
        const int last = axis == -1 || axis == 1, first = axis == -2 || axis == 0;
        a.x.axis = 1;
        CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, axis, 0, NULL),
                  last ? CAI_OK : CAI_ERR_EXPECT);
        a.x.axis = -2;
        CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, axis, 0, NULL),
                  first ? CAI_OK : CAI_ERR_EXPECT);
    }
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, -1, 0, &err), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "x: the blocks lie along axis 0 of 2, not along -1");
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, CAI_ANY_AXIS, 0, &err), CAI_OK);
    make(&a, E4M3, 3, batch, E8M0, 1, 32, 1, CAI_SCALES_128X4);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, 1, 0, &err), CAI_OK);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, -2, 0, &err), CAI_OK);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP8, CAI_SCALES_128X4, -1, 0, &err), CAI_ERR_EXPECT);
}

/* No kernel and no loop of a CPU reads both arrays. */
static void refuse_places(void)
{
    const int32_t memories[] = {CAI_MEMORY_UNKNOWN, CAI_MEMORY_HOST, CAI_MEMORY_PINNED, CAI_MEMORY_MANAGED,
                                CAI_MEMORY_DEVICE};
    argument a;
    int i, j;
    usual_argument(&a, CAI_SCALES_PLAIN);
    for (i = 0; i < 5; i++)
        for (j = 0; j < 5; j++) {
            const int apart = (i == 1 && j == 4) || (i == 4 && j == 1);
            a.data.memory = memories[i];
            a.scales.memory = memories[j];
            CHECK_INT(cai_expect_scaled(&a.x, "x", 0, 0, CAI_ANY_AXIS, 0, NULL), apart ? CAI_ERR_EXPECT : CAI_OK);
        }
    a.data.memory = CAI_MEMORY_DEVICE, a.data.device = 0;
    a.scales.memory = CAI_MEMORY_HOST;
    refuse_any(&a, CAI_ERR_EXPECT, "x: the data is in device memory, the scales are in plain host memory");
    a.scales.device = 0; /* a device that can use it */
    CHECK_INT(cai_expect_scaled(&a.x, "x", 0, 0, CAI_ANY_AXIS, 0, NULL), CAI_OK);
    a.data.memory = CAI_MEMORY_HOST, a.data.device = -1;
    a.scales.memory = CAI_MEMORY_DEVICE;
    refuse_any(&a, CAI_ERR_EXPECT, "x: the data is in plain host memory, the scales are in device memory");
}

/* A scale is an element, in 128X4 a whole byte. */
static void refuse_scale_dtypes(void)
{
    static const int32_t codes[] = {CAI_FLOAT4_E2M1FN_X2, CAI_INT4_X2, CAI_BOOL, CAI_INT4, CAI_FLOAT4_E2M1FN,
                                    CAI_UINT8, CAI_INT8, CAI_FLOAT8_E5M2};
    const int64_t tiles[1] = {512}, plain[2] = {100, 3};
    argument a;
    int i;
    for (i = 0; i < 8; i++) {
        usual_argument(&a, CAI_SCALES_128X4);
        CHECK_INT(cai_array_init(&a.scales, codes[i], 1, tiles, NULL, (void *)0x100000, NULL), CAI_OK);
        CHECK_INT(cai_expect_scaled(&a.x, "x", 0, CAI_ANY_SCALES, CAI_ANY_AXIS, 0, NULL), i < 5 ? CAI_ERR_EXPECT : CAI_OK);
        usual_argument(&a, CAI_SCALES_PLAIN);
        CHECK_INT(cai_array_init(&a.scales, codes[i], 2, plain, NULL, (void *)0x100000, NULL), CAI_OK);
        CHECK_INT(cai_expect_scaled(&a.x, "x", 0, 0, CAI_ANY_AXIS, 0, NULL), i < 3 ? CAI_ERR_EXPECT : CAI_OK);
    }
    CHECK_INT(cai_array_init(&a.scales, CAI_FLOAT4_E2M1FN_X2, 2, plain, NULL, (void *)0x100000, NULL), CAI_OK);
    refuse_any(&a, CAI_ERR_EXPECT, "x: the scales are float4_e2m1fn_x2: a scale is an element, and no bool");
    usual_argument(&a, CAI_SCALES_128X4);
    describe(&a.scales, CAI_INT4, 1, tiles, 0x100000);
    refuse_any(&a, CAI_ERR_EXPECT, "x: the scales are int4: those of layout 128X4 have 8 bits");
}

/* Without data there are no scales, and no strides between them that could overflow. */
static void map_nothing(void)
{
    static const int64_t strides[3] = {0, 0, 1};
    const int64_t shapes[2][3] = {{2, 0, 3ll << 60}, {0, 1ll << 60, 1}};
    const int64_t none[1] = {0};
    cai_scale_map map;
    argument a;
    int i;
    usual_argument(&a, CAI_SCALES_128X4);
    describe(&a.scales, E8M0, 1, none, 0x100000);
    a.x.block = 16, a.x.axis = -1;
    for (i = 0; i < 2; i++) {
        CHECK_INT(cai_array_init(&a.data, E4M3, 3, shapes[i], strides, (void *)0x1000, NULL), CAI_OK);
        CHECK_INT(cai_scale_map_of(&a.x, &map, NULL), CAI_OK);
        CHECK(map.row_stride == 0 && map.batch_stride == 0);
    }
}

static void refuse_scales(void)
{
    const int64_t wrong[2] = {100, 4}, rows[2] = {99, 3}, few[1] = {511}, wide[2] = {128, 8}, fits[2] = {128, 4};
    const int64_t batch[3] = {5, 100, 90}, batches[3] = {4, 100, 3};
    argument a;
    cai_error err;
    usual_argument(&a, CAI_SCALES_PLAIN);
    describe(&a.scales, E8M0, 1, usual, 0x100000);
    refuse_any(&a, CAI_ERR_EXPECT, "x: scales.ndim = 1, not 2: plain scales have the axes of the data");
    describe(&a.scales, E8M0, 2, wrong, 0x100000);
    refuse_any(&a, CAI_ERR_EXPECT, "x: scales.shape[1] = 4, not 3: the data has 90 values, 32 to a scale");
    CHECK_INT(cai_expect_scaled(&a.x, "x", 0, 0, CAI_ANY_AXIS, 0, &err), CAI_ERR_EXPECT);
    CHECK_INT(err.index, 1);
    describe(&a.scales, E8M0, 2, rows, 0x100000);
    refuse_any(&a, CAI_ERR_EXPECT, "x: scales.shape[0] = 99, not 100: the data has 100 rows, 1 to a scale");
    a.x.axis = 0, a.x.rows = 7;
    describe(&a.scales, E8M0, 2, wrong, 0x100000);
    refuse_any(&a, CAI_ERR_EXPECT, "x: scales.shape[0] = 100, not 4: the data has 100 values, 32 to a scale");
    a.scales.shape[0] = 4;
    refuse_any(&a, CAI_ERR_EXPECT, "x: scales.shape[1] = 4, not 13: the data has 90 rows, 7 to a scale");
    make(&a, E4M3, 3, batch, E8M0, 2, 32, 1, CAI_SCALES_PLAIN);
    describe(&a.scales, E8M0, 3, batches, 0x100000);
    refuse_any(&a, CAI_ERR_EXPECT, "x: scales.shape[0] = 4, not 5: the data has 5 indices, 1 to a scale");
    usual_argument(&a, CAI_SCALES_128X4);
    describe(&a.scales, E8M0, 1, few, 0x100000);
    refuse_any(&a, CAI_ERR_EXPECT, "x: there are 511 scales, not 512: 128 rows of 4 blocks, padded to 128 and 4");
    usual_argument(&a, CAI_SCALES_128X4);
    a.scales.data += 8;
    refuse_any(&a, CAI_ERR_EXPECT, "x: the scales are at 0x100008: layout 128X4 needs a multiple of 16");
    describe(&a.scales, E8M0, 2, wide, 0x100000);
    CHECK_INT(cai_view_slice(&a.scales, 1, 0, 4, 1, &a.scales, NULL), CAI_OK);
    refuse_any(&a, CAI_ERR_EXPECT, "x: the scales have gaps or a negative stride: layout 128X4 has none");
    describe(&a.scales, E8M0, 2, fits, 0x100000);
    CHECK_INT(cai_view_slice(&a.scales, 0, 127, 128, -1, &a.scales, NULL), CAI_OK);
    a.scales.data += 4; /* to an address that 16 divides */
    refuse_any(&a, CAI_ERR_EXPECT, "x: the scales have gaps or a negative stride: layout 128X4 has none");
    make(&a, E4M3, 2, usual, CAI_FLOAT32, 1, 32, 1, CAI_SCALES_128X4);
    refuse_any(&a, CAI_ERR_EXPECT, "x: the scales have 4 bytes: those of layout 128X4 have 1");
}

/* An element of two values belongs to one block: they lie along the blocks. Only plain scales of no format, such as
 * int4 weights of AutoAWQ, may have them along the rows. */
static void refuse_packed(void)
{
    const int64_t shape[2] = {128, 64}, tiles[1] = {512}, plain[2] = {128, 4}, one[2] = {8, 64}, ones[2] = {1, 64};
    cai_scale_map map;
    cai_error err;
    argument a;
    make(&a, FP4, 2, shape, E4M3, 1, 16, 1, CAI_SCALES_128X4);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_NVFP4, CAI_SCALES_128X4, CAI_ANY_AXIS, CAI_C_CONTIGUOUS, NULL), CAI_OK);
    CHECK_INT(cai_array_init_packed(&a.data, FP4, 2, shape, 0, NULL, (void *)0x1000, NULL), CAI_OK);
    describe(&a.scales, E4M3, 1, tiles, 0x100000);
    refuse(&a, CAI_NVFP4, CAI_SCALES_128X4, 0, CAI_ERR_EXPECT,
           "x: the values of an element lie along axis 0, the blocks along axis 1: NVFP4 has both along one axis");
    refuse_any(&a, CAI_ERR_EXPECT,
               "x: the values of an element lie along axis 0, the blocks along axis 1: layout 128X4 has both along "
               "one axis");
    CHECK_INT(cai_scale_map_of(&a.x, &map, &err), CAI_ERR_EXPECT);
    a.x.layout = CAI_SCALES_PLAIN;
    describe(&a.scales, E4M3, 2, plain, 0x100000);
    refuse(&a, CAI_NVFP4, CAI_ANY_SCALES, 0, CAI_ERR_EXPECT,
           "x: the values of an element lie along axis 0, the blocks along axis 1: NVFP4 has both along one axis");
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_ANY_SCALED, CAI_SCALES_PLAIN, CAI_ANY_AXIS, 0, NULL), CAI_OK);
    make(&a, FP4, 2, one, E8M0, 1, 32, 1, CAI_SCALES_PLAIN);
    CHECK_INT(cai_array_init_packed(&a.data, FP4, 2, one, 0, NULL, (void *)0x1000, NULL), CAI_OK);
    a.x.axis = 0;
    describe(&a.scales, E8M0, 2, ones, 0x100000);
    CHECK_INT(cai_expect_scaled(&a.x, "x", CAI_MXFP4, CAI_SCALES_PLAIN, CAI_ANY_AXIS, 0, NULL), CAI_OK);
    a.data.packed_axis = -1; /* by a maker that does not fill it in */
    a.data.packed_extent = 0;
    refuse_any(&a, CAI_ERR_ABI, "x: data: packed_axis = -1 does not fit ndim = 2, dtype.code = 0x1f6601");
}

/* Blocks without rows are not refused, however many there are: there is no row of tiles. */
static void check_no_rows(void)
{
    const int64_t shape[2] = {0, (int64_t)1 << 62};
    cai_scale_map map;
    argument a;
    make(&a, E4M3, 2, shape, E8M0, 1, 1, 1, CAI_SCALES_128X4);
    CHECK_INT(cai_scale_map_of(&a.x, &map, NULL), CAI_OK);
    CHECK_INT(map.row_stride, 0);
}

static void refuse_maps(void)
{
    const int64_t shape[4] = {2, 3, 40, 50};
    cai_scale_map map;
    cai_error err;
    argument a;
    usual_argument(&a, CAI_SCALES_PLAIN);
    CHECK_INT(cai_scale_map_of(NULL, &map, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_scale_map_of: x or out is NULL");
    CHECK_INT(cai_scale_map_of(&a.x, NULL, NULL), CAI_ERR_ARGUMENT);
    make(&a, E4M3, 4, shape, E8M0, 3, 32, 1, CAI_SCALES_128X4);
    CHECK_INT(cai_scale_map_of(&a.x, &map, &err), CAI_ERR_VIEW);
    CHECK_STR(err.message, "axis 3 of 4: a map has the last two axes of at most 3");
    make(&a, E4M3, 3, shape, E8M0, 0, 32, 1, CAI_SCALES_PLAIN);
    CHECK_INT(cai_scale_map_of(&a.x, &map, &err), CAI_ERR_VIEW);
    CHECK_STR(err.message, "axis 0 of 3: a map has the last two axes of at most 3");
    a.scales.shape[0] = 3;
    CHECK_INT(cai_scale_map_of(&a.x, &map, NULL), CAI_ERR_EXPECT);
    a.scales.abi = 0;
    CHECK_INT(cai_scale_map_of(&a.x, &map, NULL), CAI_ERR_ABI);
}

static void run(void)
{
    check_formats();
    check_layouts();
    check_packed();
    check_strides();
    check_shapes();
    check_values();
    refuse_fields();
    refuse_sizes();
    refuse_formats();
    refuse_arrays();
    refuse_scales();
    refuse_packed();
    refuse_axes();
    refuse_places();
    refuse_scale_dtypes();
    map_nothing();
    refuse_maps();
    check_no_rows();
}

CAI_TEST_MAIN(run)
