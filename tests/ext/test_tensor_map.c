/* test_tensor_map.c - ext/cai_tensor_map.h: each refusal, and random arrays against CUDA's document
 * SPDX-License-Identifier: MIT
 *
 *     test_tensor_map [arrays [seed [table]]]    how many random arrays: 100,000. `table` prints what refused them. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai_tensor_map.h"
#include "cai_test.h"
#include "cai_test_help.h"
#include "tensor_map_world.h"

enum { SENTENCES = sizeof world_document / sizeof *world_document };

static cai_error error;
static cai_array x;
static cai_tensor_tile tile;
static cai_tensor_map_plan plan;

/* float32, 8 x 100 x 64 with rows of 256 bytes, and a box of 2 x 16 x 32 */
static void begin(void)
{
    static const int64_t shape[3] = {8, 100, 64};
    cai_dtype dtype;
    memset(&tile, 0, sizeof tile);
    CHECK_INT(cai_dtype_of(CAI_FLOAT32, &dtype, &error), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&x, &dtype, 3, shape, NULL, 0x10000, &error), CAI_OK);
    tile.box[0] = 2;
    tile.box[1] = 16;
    tile.box[2] = 32;
}

/* The same of bytes, 100 x 192, for values of 4 and 6 bits. The box is of 4 x 128 values. */
static void begin_packed(int32_t type)
{
    static const int64_t shape[2] = {100, 192};
    cai_dtype dtype;
    memset(&tile, 0, sizeof tile);
    CHECK_INT(cai_dtype_of(CAI_UINT8, &dtype, &error), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&x, &dtype, 2, shape, NULL, 0x10000, &error), CAI_OK);
    tile.type = type;
    tile.box[0] = 4;
    tile.box[1] = 128;
}

static void set_dtype(int32_t code)
{
    CHECK_INT(cai_dtype_of(code, &x.dtype, &error), CAI_OK);
    x.strides[x.ndim - 1] = x.dtype.itemsize;
}

/* As a bit field, whose elements have no bytes. */
static void set_bits(void)
{
    x.dtype.code = CAI_BITFIELD;
    x.dtype.itemsize = 0;
    x.dtype.bits = 4;
}

static void taken(const char *what)
{
    cai_test_note(what);
    error.message[0] = 0;
    CHECK_INT(cai_tensor_map_of(&x, &tile, &plan, &error), CAI_OK);
    CHECK_STR(error.message, "");
    cai_test_note("");
}

static void refused(const char *what, int32_t entry, int32_t index, const char *message)
{
    cai_tensor_map_plan before;
    cai_test_note(what);
    memset(&plan, 7, sizeof plan);
    before = plan;
    CHECK_INT(cai_tensor_map_of(&x, &tile, &plan, &error), entry ? CAI_ERR_EXPECT : CAI_ERR_ARGUMENT);
    CHECK_INT(error.code, entry ? CAI_ERR_EXPECT : CAI_ERR_ARGUMENT);
    CHECK_INT(error.entry, entry);
    CHECK_INT(error.index, index);
    CHECK_STR(error.message, help_order(message));
    CHECK_BYTES(&plan, &before, sizeof plan);
    CHECK_INT(cai_tensor_map_of(&x, &tile, &plan, NULL), entry ? CAI_ERR_EXPECT : CAI_ERR_ARGUMENT);
    cai_test_note("");
}

#define TAKEN(change) (begin(), (change), taken(#change))
#define REFUSED(change, entry, index, message) (begin(), (change), refused(#change, entry, index, message))
#define PACKED_TAKEN(type, change) (begin_packed(type), (change), taken(#type ": " #change))
#define PACKED_REFUSED(type, change, entry, index, message)                                                  \
    (begin_packed(type), (change), refused(#type ": " #change, entry, index, message))

/* ------------------------------------------------------------------ refusals */
static void test_array(void)
{
    const int64_t most = (int64_t)1 << 32, wide = (int64_t)1 << 40;
    REFUSED(x.ndim = 0, CAI_ENTRY_SHAPE, -1, "the array has 0 dimensions, a tensor map 1 to 5");
    REFUSED(x.ndim = 6, CAI_ENTRY_SHAPE, -1, "the array has 6 dimensions, a tensor map 1 to 5");
    REFUSED((x.ndim = 2, tile.interleave = 1), CAI_ENTRY_SHAPE, -1,
            "the array has 2 dimensions, a tensor map with interleave 3 to 5");
    TAKEN(tile.interleave = 1);
    REFUSED(x.shape[1] = 0, CAI_ENTRY_SHAPE, 1, "shape[1] = 0 is not in 1..4294967296");
    TAKEN(x.shape[1] = most);
    REFUSED(x.shape[0] = most + 1, CAI_ENTRY_SHAPE, 0, "shape[0] = 4294967297 is not in 1..4294967296");
    REFUSED(x.strides[0] = 25608, CAI_ENTRY_STRIDES, 0, "strides[0] = 25608 is not a multiple of 16");
    REFUSED(x.strides[0] = -16, CAI_ENTRY_STRIDES, 0, "strides[0] = -16 is not in 0..1099511627775");
    REFUSED(x.strides[0] = wide, CAI_ENTRY_STRIDES, 0, "strides[0] = 1099511627776 is not in 0..1099511627775");
    TAKEN(x.strides[0] = wide - 16);
    TAKEN(x.strides[0] = 0);
    TAKEN(x.strides[1] = 16); /* rows that overlap */
    TAKEN((x.strides[0] = 256, x.strides[1] = 2048)); /* the outer axis has the smaller stride */
    REFUSED(x.strides[2] = 8, CAI_ENTRY_STRIDES, 2, "strides[2] = 8, not 4: the last axis must be contiguous");
    REFUSED((x.strides[0] = 4, x.strides[2] = 1604), CAI_ENTRY_STRIDES, 2,
            "strides[2] = 1604, not 4: the last axis must be contiguous, and axis 0 is (cai_view_permute)");
    REFUSED(x.data += 8, CAI_ENTRY_DATA, 0, "data = 0x10008 is not a multiple of 16");
    TAKEN(x.data += 16);
    TAKEN((tile.interleave = 2, tile.swizzle = 1));
    REFUSED((tile.interleave = 2, tile.swizzle = 1, x.data += 16), CAI_ENTRY_DATA, 0,
            "data = 0x10010 is not a multiple of 32");
    REFUSED((tile.interleave = 2, tile.swizzle = 1, x.strides[1] = 272), CAI_ENTRY_STRIDES, 1,
            "strides[1] = 272 is not a multiple of 32");
}

static void test_tile(void)
{
    REFUSED(tile.box[1] = 0, 0, 1, "tile.box[1] = 0: it is not in 1..256");
    REFUSED(tile.box[1] = 257, 0, 1, "tile.box[1] = 257: it is not in 1..256");
    TAKEN(tile.box[1] = 256);
    REFUSED(tile.box[3] = 1, 0, 3, "tile.box[3] = 1: the array has no such axis");
    REFUSED(tile.steps[4] = 1, 0, 4, "tile.steps[4] = 1 is not in 0..0");
    REFUSED(tile.steps[0] = 9, 0, 0, "tile.steps[0] = 9 is not in 0..8");
    REFUSED(tile.steps[0] = -1, 0, 0, "tile.steps[0] = -1 is not in 0..8");
    REFUSED(tile.steps[2] = 2, 0, 2, "tile.steps[2] = 2 is not in 0..1: CUDA ignores those of the last axis");
    TAKEN((tile.steps[2] = 2, tile.interleave = 1));
    REFUSED(tile.box[2] = 6, 0, 2, "tile.box[2] = 6: 6 x 32 bits are not a multiple of 16 bytes");
    TAKEN((tile.box[2] = 6, tile.interleave = 1));
    REFUSED((tile.box[2] = 12, tile.swizzle = 1), 0, 2, "tile.box[2] = 12: 48 bytes are more than 32 (tile.swizzle = 1)");
    REFUSED((tile.box[2] = 20, tile.swizzle = 2), 0, 2, "tile.box[2] = 20: 80 bytes are more than 64 (tile.swizzle = 2)");
    REFUSED((tile.box[2] = 36, tile.swizzle = 6), 0, 2, "tile.box[2] = 36: 144 bytes are more than 128 (tile.swizzle = 6)");
    TAKEN((tile.box[2] = 36, tile.swizzle = 6, tile.interleave = 1));
    TAKEN((tile.box[2] = 8, tile.swizzle = 1));
    REFUSED((tile.interleave = 2, tile.swizzle = 3), 0, -1, "tile.swizzle = 3: INTERLEAVE_32B needs SWIZZLE_32B, 1");
    REFUSED(tile.type = -1, 0, -1, "tile.type = -1 is not in 0..16");
    REFUSED(tile.type = 17, 0, -1, "tile.type = 17 is not in 0..16");
    REFUSED(tile.interleave = 3, 0, -1, "tile.interleave = 3 is not in 0..2");
    REFUSED(tile.swizzle = 7, 0, -1, "tile.swizzle = 7 is not in 0..6");
    REFUSED(tile.l2_promotion = 4, 0, -1, "tile.l2_promotion = 4 is not in 0..3");
    REFUSED(tile.fill = 2, 0, -1, "tile.fill = 2 is not in 0..1");
    TAKEN(tile.fill = 1);
    REFUSED((set_dtype(CAI_INT32), tile.fill = 1), 0, -1, "tile.fill = 1: type INT32 has no NaN");
    begin();
    CHECK_INT(cai_tensor_map_of(&x, NULL, &plan, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_tensor_map_of(&x, &tile, NULL, &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "tile or out is NULL");
    CHECK_INT(cai_tensor_map_of(NULL, &tile, &plan, &error), CAI_ERR_ARGUMENT);
    x.abi = 0;
    CHECK_INT(cai_tensor_map_of(&x, &tile, &plan, &error), CAI_ERR_ABI);
}

static void test_types(void)
{
    static const int32_t rows[][2] = {
        {CAI_BOOL, 0}, {CAI_INT8, 0}, {CAI_UINT8, 0}, {CAI_FLOAT8_E5M2, 0}, {CAI_FLOAT8_E8M0FNU, 0}, {CAI_INT16, 1},
        {CAI_UINT16, 1}, {CAI_UINT32, 2}, {CAI_INT32, 3}, {CAI_UINT64, 4}, {CAI_INT64, 5}, {CAI_FLOAT16, 6},
        {CAI_FLOAT32, 7}, {CAI_FLOAT64, 8}, {CAI_BFLOAT16, 9}};
    size_t row;
    for (row = 0; row < sizeof rows / sizeof *rows; ++row) {
        TAKEN(set_dtype(rows[row][0]));
        CHECK_INT(plan.type, rows[row][1]);
    }
    REFUSED(set_dtype(CAI_COMPLEX64), CAI_ENTRY_TYPESTR, -1,
            "@c8 has no type of a tensor map: name one of its size (tile.type)");
    REFUSED(set_dtype(CAI_COMPLEX128), CAI_ENTRY_TYPESTR, -1,
            "@c16 has no type of a tensor map: none has its size (as smaller elements: cai_view_reinterpret)");
    TAKEN((set_dtype(CAI_COMPLEX64), tile.type = CAI_TENSOR_MAP_UINT64));
    TAKEN((set_dtype(CAI_FLOAT8_E5M2), tile.type = CAI_TENSOR_MAP_UINT8));
    CHECK_INT(plan.type, 0); /* CUDA's number */
    REFUSED(tile.type = CAI_TENSOR_MAP_UINT8, CAI_ENTRY_TYPESTR, -1, "type UINT8 is for an itemsize of 1, not of 4");
    REFUSED((tile.type = CAI_TENSOR_MAP_UINT8, tile.fill = 1), CAI_ENTRY_TYPESTR, -1,
            "type UINT8 is for an itemsize of 1, not of 4");
    TAKEN(tile.type = CAI_TENSOR_MAP_BY_DTYPE);
    CHECK_INT(plan.type, 7);
    REFUSED(set_dtype(CAI_SWAPPED(CAI_INT16)), CAI_ENTRY_TYPESTR, -1,
            "`i2 has no type of a tensor map: name one of its size (tile.type)");
    REFUSED(set_dtype(CAI_SWAPPED(CAI_FLOAT32)), CAI_ENTRY_TYPESTR, -1,
            "`f4 has no type of a tensor map: name one of its size (tile.type)");
    REFUSED((set_bits(), tile.type = CAI_TENSOR_MAP_16U4_ALIGN8B), CAI_ENTRY_TYPESTR, -1,
            "type 16U4_ALIGN8B is for an itemsize of 1, not of 0");
    REFUSED(tile.type = CAI_TENSOR_MAP_FLOAT64, CAI_ENTRY_TYPESTR, -1,
            "type FLOAT64 is for an itemsize of 8, not of 4");
    REFUSED(tile.type = CAI_TENSOR_MAP_16U4_ALIGN8B, CAI_ENTRY_TYPESTR, -1,
            "type 16U4_ALIGN8B is for an itemsize of 1, not of 4");
    TAKEN(tile.type = CAI_TENSOR_MAP_TFLOAT32_FTZ);
    CHECK_INT(plan.type, 12);
}

static void test_packed(void)
{
    const int64_t most = (int64_t)1 << 31;
    PACKED_TAKEN(CAI_TENSOR_MAP_16U4_ALIGN8B, x.shape[1] = 191);
    CHECK_UINT(plan.dims[0], 382);
    CHECK_UINT(plan.box_bytes, 4 * 64);
    PACKED_TAKEN(CAI_TENSOR_MAP_16U4_ALIGN8B, x.shape[1] = most);
    CHECK_UINT(plan.dims[0], (uint64_t)1 << 32);
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN8B, x.shape[1] = most + 1, CAI_ENTRY_SHAPE, 1,
                   "shape[1] = 2147483649 is not in 1..2147483648");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN8B, tile.box[1] = 16, 0, 1,
                   "tile.box[1] = 16: 16 x 4 bits are not a multiple of 16 bytes");
    PACKED_TAKEN(CAI_TENSOR_MAP_16U4_ALIGN16B, tile.steps[0] = 3);
    CHECK_UINT(plan.dims[0], 384);
    CHECK_UINT(plan.dims[1], 100);
    CHECK_UINT(plan.box_bytes, 2 * 128);
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN16B, x.shape[1] = 160, CAI_ENTRY_SHAPE, 1,
                   "shape[1] = 160: type 16U4_ALIGN16B takes multiples of 64 bytes");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN16B, tile.box[1] = 64, 0, 1, "tile.box[1] = 64: type 16U4_ALIGN16B needs 128");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN16B, x.data += 16, CAI_ENTRY_DATA, 0,
                   "data = 0x10010 is not a multiple of 32");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN16B, x.strides[0] = 208, CAI_ENTRY_STRIDES, 0,
                   "strides[0] = 208 is not a multiple of 32");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN16B, tile.swizzle = 6, 0, -1, "tile.swizzle = 6 is not for type 16U4_ALIGN16B");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U4_ALIGN16B, tile.swizzle = 2, 0, -1, "tile.swizzle = 2 is not for type 16U4_ALIGN16B");
    PACKED_TAKEN(CAI_TENSOR_MAP_16U4_ALIGN16B, tile.swizzle = 4);
    PACKED_TAKEN(CAI_TENSOR_MAP_16U6_ALIGN16B, tile.swizzle = 6);
    CHECK_UINT(plan.dims[0], 256);
    CHECK_UINT(plan.box_bytes, 4 * 128);
    PACKED_TAKEN(CAI_TENSOR_MAP_16U6_ALIGN16B, tile.swizzle = 3);
    PACKED_REFUSED(CAI_TENSOR_MAP_16U6_ALIGN16B, x.shape[1] = 128, CAI_ENTRY_SHAPE, 1,
                   "shape[1] = 128: type 16U6_ALIGN16B takes multiples of 96 bytes");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U6_ALIGN16B, tile.interleave = 1, 0, -1,
                   "tile.interleave = 1: type 16U6_ALIGN16B needs 0");
    PACKED_REFUSED(CAI_TENSOR_MAP_16U6_ALIGN16B, tile.fill = 1, 0, -1, "tile.fill = 1: type 16U6_ALIGN16B has no NaN");
}

/* 100 rows of values, with a box of 4 x 128 */
static void begin_values(int32_t code, int64_t extent, int32_t type)
{
    const int64_t shape[2] = {100, extent}, strides[2] = {256, code == CAI_FLOAT6_E3M2FN_X4 ? 3 : 1};
    memset(&tile, 0, sizeof tile);
    CHECK_INT(cai_array_init_packed(&x, code, 2, shape, 1, strides, (void *)(uintptr_t)0x10000, &error), CAI_OK);
    tile.type = type;
    tile.box[0] = 4;
    tile.box[1] = 128;
}

#define VALUES_REFUSED(code, extent, type, change, entry, index, message)                                    \
    (begin_values(code, extent, type), (change), refused(#code ": " #change, entry, index, message))

/* Arrays of packed dtypes: dimension 0 ends with the values, so that a copy fills what is beyond. */
static void test_values(void)
{
    const int32_t u4 = CAI_TENSOR_MAP_16U4_ALIGN8B, wide = CAI_TENSOR_MAP_16U4_ALIGN16B;
    const int32_t u6 = CAI_TENSOR_MAP_16U6_ALIGN16B, fp4 = CAI_FLOAT4_E2M1FN_X2, fp6 = CAI_FLOAT6_E3M2FN_X4;
    const int64_t most = (int64_t)1 << 32;
    begin_values(fp4, 62, u4);
    taken("62 values");
    CHECK(plan.dims[0] == 62 && plan.dims[1] == 100 && plan.strides[0] == 256 && plan.box_bytes == 4 * 64);
    begin_values(CAI_INT4_X2, most, u4);
    taken("2^32 values");
    CHECK_UINT(plan.dims[0], (uint64_t)most);
    begin_values(fp4, 256, wide);
    taken("256 values, 16 bytes");
    CHECK(plan.dims[0] == 256 && plan.box_bytes == 4 * 128);
    begin_values(fp6, 128, u6);
    taken("128 values of 6 bits");
    CHECK(plan.dims[0] == 128 && plan.box_bytes == 4 * 128);
    VALUES_REFUSED(fp4, 63, u4, (void)0, CAI_ENTRY_SHAPE, 1, "packed_extent = 63: type 16U4_ALIGN8B takes multiples of 2 values");
    VALUES_REFUSED(fp4, 192, wide, (void)0, CAI_ENTRY_SHAPE, 1,
                   "packed_extent = 192: type 16U4_ALIGN16B takes multiples of 128 values");
    VALUES_REFUSED(fp6, 120, u6, (void)0, CAI_ENTRY_SHAPE, 1,
                   "packed_extent = 120: type 16U6_ALIGN16B takes multiples of 128 values");
    VALUES_REFUSED(fp4, most + 2, u4, (void)0, CAI_ENTRY_SHAPE, 1,
                   "packed_extent = 4294967298 is not in 1..4294967296");
    VALUES_REFUSED(fp4, 0, u4, (void)0, CAI_ENTRY_SHAPE, 1, "packed_extent = 0 is not in 1..4294967296");
    VALUES_REFUSED(fp4, 64, u4, (x.packed_axis = 0, x.packed_extent = 200), CAI_ENTRY_SHAPE, 0,
                   "packed_axis = 0, not 1: a tensor map has the values of an element along the last axis");
    VALUES_REFUSED(fp4, 64, 0, (void)0, CAI_ENTRY_TYPESTR, -1,
                   "float4_e2m1fn_x2: name 16U4_ALIGN8B or 16U4_ALIGN16B (tile.type; as bytes: cai_view_reinterpret)");
    VALUES_REFUSED(fp4, 64, CAI_TENSOR_MAP_UINT8, (void)0, CAI_ENTRY_TYPESTR, -1,
                   "float4_e2m1fn_x2 is not UINT8: name 16U4_ALIGN8B or 16U4_ALIGN16B (tile.type; as bytes: cai_view_reinterpret)");
    VALUES_REFUSED(fp4, 64, u6, (void)0, CAI_ENTRY_TYPESTR, -1,
                   "float4_e2m1fn_x2 is not 16U6_ALIGN16B: name 16U4_ALIGN8B or 16U4_ALIGN16B (tile.type; as bytes: cai_view_reinterpret)");
    VALUES_REFUSED(fp6, 128, 0, (void)0, CAI_ENTRY_TYPESTR, -1,
                   "float6_e3m2fn_x4: name 16U6_ALIGN16B (tile.type; as bytes: cai_view_reinterpret)");
    VALUES_REFUSED(fp6, 128, u4, (void)0, CAI_ENTRY_TYPESTR, -1,
                   "float6_e3m2fn_x4 is not 16U4_ALIGN8B: name 16U6_ALIGN16B (tile.type; as bytes: cai_view_reinterpret)");
    VALUES_REFUSED(CAI_INT2_X4, 64, 0, (void)0, CAI_ENTRY_TYPESTR, -1,
                   "int2_x4 has no type of a tensor map (as bytes: cai_view_reinterpret)");
    begin_packed(u4);
    set_dtype(CAI_INT4);
    refused("a byte for each value", CAI_ENTRY_TYPESTR, -1, "int4 has a byte for each value: type 16U4_ALIGN8B packs them");
    tile.type = 0;
    taken("a byte for each value, as bytes");
    CHECK(plan.type == 0 && plan.dims[0] == 192);
}

/* ------------------------------------------------------------------ plans */
static void test_plan(void)
{
    begin();
    tile.steps[0] = 2;
    tile.steps[1] = 3;
    tile.swizzle = CAI_TENSOR_MAP_SWIZZLE_128B;
    tile.l2_promotion = CAI_TENSOR_MAP_L2_256B;
    tile.fill = CAI_TENSOR_MAP_FILL_NAN;
    taken("a plan");
    CHECK_UINT(plan.address, 0x10000);
    CHECK_INT(plan.rank, 3);
    CHECK(plan.dims[0] == 64 && plan.dims[1] == 100 && plan.dims[2] == 8 && plan.dims[3] == 0);
    CHECK(plan.strides[0] == 256 && plan.strides[1] == 25600 && plan.strides[2] == 0);
    CHECK(plan.box[0] == 32 && plan.box[1] == 16 && plan.box[2] == 2 && plan.box[3] == 0);
    CHECK(plan.steps[0] == 1 && plan.steps[1] == 3 && plan.steps[2] == 2 && plan.steps[3] == 0);
    CHECK(plan.type == 7 && plan.interleave == 0 && plan.swizzle == 3 && plan.l2_promotion == 3 && plan.fill == 1);
    CHECK_UINT(plan.box_bytes, 4 * 32 * 6 * 1);
    TAKEN(tile.interleave = CAI_TENSOR_MAP_INTERLEAVE_16B);
    CHECK_UINT(plan.box_bytes, 0);
}

/* No element uses the stride of an axis of extent 1. */
static void test_one(void)
{
    TAKEN((x.shape[0] = 1, x.strides[0] = -7));
    CHECK_UINT(plan.strides[1], 16);
    TAKEN((x.shape[0] = 1, x.strides[0] = 48));
    CHECK_UINT(plan.strides[1], 48);
    TAKEN((x.shape[0] = 1, x.strides[0] = 48, tile.interleave = 2, tile.swizzle = 1));
    CHECK_UINT(plan.strides[1], 32);
    TAKEN((x.shape[2] = 1, x.strides[2] = 1000));
    CHECK_UINT(plan.strides[0], 256);
}

/* ------------------------------------------------------------------ chance */
enum { REASONS = 20 };
static int64_t accepted, at_a_bound, several, alone[SENTENCES];
static struct {
    const char *why; /* what a call cannot say */
    int64_t count;
} unsaid[REASONS];

static void count_unsaid(const char *why)
{
    int32_t i = 0;
    while (i < REASONS - 1 && unsaid[i].why && strcmp(unsaid[i].why, why)) ++i;
    unsaid[i].why = why;
    ++unsaid[i].count;
}

/* Which sentence does not hold: -1 for none, -2 for several. */
static int32_t broken(const world_call *call)
{
    int32_t row, found = -1;
    for (row = 0; row < (int32_t)SENTENCES; ++row)
        if (!world_document[row].holds(call)) found = found == -1 ? row : -2;
    return found;
}

/* The elements of a box, counted along each axis */
static void check_bytes(const world_call *call)
{
    uint64_t elements = 1, values = 0;
    uint32_t i, at;
    for (i = 0; i < call->rank; ++i) {
        uint64_t along = 0;
        for (at = 0; at < call->box[i]; at += i ? call->element_strides[i] : 1) ++along;
        elements *= along;
        if (i == 0) values = along;
    }
    if (world_wide(call)) CHECK_UINT(plan.box_bytes, elements / values * (values / 16) * 16);
    else CHECK_UINT(plan.box_bytes, elements * world_bits(call->type) / 8);
}

static void check_same(const world_call *call)
{
    uint32_t i;
    CHECK_INT(plan.rank, call->rank);
    CHECK_UINT(plan.address, call->address);
    for (i = 0; i < call->rank; ++i) {
        CHECK_UINT(plan.dims[i], call->dim[i]);
        if (i) CHECK_UINT(plan.strides[i - 1], call->strides[i - 1]);
        CHECK_UINT(plan.box[i], call->box[i]);
        CHECK_UINT(plan.steps[i], call->element_strides[i]);
    }
    CHECK(plan.type == call->type && plan.interleave == call->interleave && plan.swizzle == call->swizzle);
    CHECK(plan.l2_promotion == call->l2_promotion && plan.fill == call->oob_fill);
    if (call->interleave) CHECK_UINT(plan.box_bytes, 0);
    else check_bytes(call);
}

static void check_random(world_chance *chance)
{
    world_call call;
    const char *why;
    int32_t sentence;
    char text[300];
    world_good(chance, &x, &tile);
    why = world_call_of(&x, &tile, &call);
    CHECK(why == NULL && broken(&call) == -1);
    if (world_below(chance, 2)) {
        ++at_a_bound;
        world_to_a_bound(chance, &x, &tile);
        if (world_below(chance, 8) == 0) world_to_a_bound(chance, &x, &tile);
    }
    why = world_call_of(&x, &tile, &call);
    sentence = broken(&call);
    snprintf(text, sizeof text, "%s", why ? why : sentence >= 0 ? world_document[sentence].text : "");
    cai_test_note(text);
    CHECK_INT(cai_tensor_map_of(&x, &tile, &plan, &error) == CAI_OK, why == NULL && sentence == -1);
    if (why) count_unsaid(why);
    else if (sentence >= 0) ++alone[sentence];
    else several += sentence == -2;
    if (why || sentence != -1) return;
    ++accepted;
    check_same(&call);
}

/* The rows of docs/results/candidate.md: why arrays were refused. */
static void print_table(void)
{
    size_t row;
    for (row = 0; row < REASONS && unsaid[row].why; ++row)
        printf("| no call can say it: %s | %lld |\n", unsaid[row].why, (long long)unsaid[row].count);
    printf("| several of the sentences below | %lld |\n", (long long)several);
    for (row = 0; row < SENTENCES; ++row)
        printf("| %s | %lld |\n", world_document[row].text, (long long)alone[row]);
}

static void test_random(int64_t count, uint64_t seed)
{
    world_chance chance = {0, 16, 7};
    int64_t i;
    size_t row;
    chance.state = seed;
    for (i = 0; i < count; ++i) check_random(&chance);
    cai_test_note("");
    printf("%lld arrays, %lld at a bound, %lld accepted\n", (long long)count, (long long)at_a_bound,
           (long long)accepted);
    if (count < 10000) return;
    CHECK(accepted > count / 2);
    for (row = 0; row < SENTENCES; ++row) {
        cai_test_note(world_document[row].text); /* each condition was the only one that did not hold */
        CHECK(alone[row] >= 3);
    }
    cai_test_note("");
}

int main(int count, char **arguments)
{
    const int64_t arrays = count > 1 ? atoll(arguments[1]) : 100000;
    test_array();
    test_tile();
    test_types();
    test_packed();
    test_values();
    test_plan();
    test_one();
    test_random(arrays, count > 2 ? (uint64_t)atoll(arguments[2]) : 20240611);
    if (count > 3) print_table();
    return cai_test_end();
}
