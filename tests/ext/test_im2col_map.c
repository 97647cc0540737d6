/* test_im2col_map.c - cai_im2col_map_of: each refusal, random arrays against CUDA's document, and the columns of
 * random convolutions
 * SPDX-License-Identifier: MIT
 *
 *     test_im2col_map [arrays [seed]]    how many random arrays: 100,000 */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai_tensor_map.h"
#include "cai_test.h"
#include "cai_test_help.h"
#include "im2col_world.h"

static cai_error error;
static cai_array x;
static cai_im2col_tile tile;
static cai_im2col_map_plan plan;

/* float16, N H W C = 64 x 14 x 9 x 64, and a filter of 3 x 3 with padding: example 1 of PTX ISA */
static void begin(void)
{
    static const int64_t shape[4] = {64, 14, 9, 64};
    int32_t at;
    memset(&tile, 0, sizeof tile);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT16, 4, shape, NULL, (void *)(uintptr_t)0x10000, &error), CAI_OK);
    for (at = 0; at < 2; ++at) tile.lower[at] = tile.upper[at] = -1;
    tile.channels = 8;
    tile.pixels = 64;
}

/* The same with 1 or 3 axes between N and C */
static void begin_of(int32_t ndim)
{
    begin();
    x.ndim = ndim;
    if (ndim == 5) x.shape[3] = 9;
    x.shape[ndim - 1] = 64;
    x.strides[ndim - 1] = 2;
    if (ndim == 5) x.strides[3] = 128;
    tile.lower[2] = tile.upper[2] = 0;
    if (ndim == 3) tile.lower[1] = tile.upper[1] = 0;
}

static void taken(const char *what)
{
    cai_test_note(what);
    error.message[0] = 0;
    CHECK_INT(cai_im2col_map_of(&x, &tile, &plan, &error), CAI_OK);
    CHECK_STR(error.message, "");
    cai_test_note("");
}

static void refused(const char *what, int32_t entry, int32_t index, const char *message)
{
    cai_im2col_map_plan before;
    cai_test_note(what);
    memset(&plan, 7, sizeof plan);
    before = plan;
    CHECK_INT(cai_im2col_map_of(&x, &tile, &plan, &error), entry ? CAI_ERR_EXPECT : CAI_ERR_ARGUMENT);
    CHECK_INT(error.code, entry ? CAI_ERR_EXPECT : CAI_ERR_ARGUMENT);
    CHECK_INT(error.entry, entry);
    CHECK_INT(error.index, index);
    CHECK_STR(error.message, help_order(message));
    CHECK_BYTES(&plan, &before, sizeof plan);
    CHECK_INT(cai_im2col_map_of(&x, &tile, &plan, NULL), entry ? CAI_ERR_EXPECT : CAI_ERR_ARGUMENT);
    cai_test_note("");
}

#define TAKEN(change) (begin(), (change), taken(#change))
#define REFUSED(change, entry, index, message) (begin(), (change), refused(#change, entry, index, message))
#define TAKEN_OF(ndim, change) (begin_of(ndim), (change), taken(#ndim ": " #change))
#define REFUSED_OF(ndim, change, entry, index, message)                                                      \
    (begin_of(ndim), (change), refused(#ndim ": " #change, entry, index, message))

/* ------------------------------------------------------------------ refusals */
static void test_array(void)
{
    REFUSED(x.ndim = 2, CAI_ENTRY_SHAPE, -1, "the array has 2 dimensions, a tensor map of im2col mode 3 to 5");
    REFUSED(x.ndim = 6, CAI_ENTRY_SHAPE, -1, "the array has 6 dimensions, a tensor map of im2col mode 3 to 5");
    REFUSED((x.ndim = 2, tile.interleave = 1), CAI_ENTRY_SHAPE, -1,
            "the array has 2 dimensions, a tensor map of im2col mode 3 to 5");
    REFUSED(x.shape[1] = 0, CAI_ENTRY_SHAPE, 1, "shape[1] = 0 is not in 1..4294967296");
    TAKEN(x.shape[1] = (int64_t)1 << 32);
    REFUSED(x.strides[0] = 25608, CAI_ENTRY_STRIDES, 0, "strides[0] = 25608 is not a multiple of 16");
    REFUSED(x.strides[3] = 8, CAI_ENTRY_STRIDES, 3, "strides[3] = 8, not 2: the last axis must be contiguous");
    REFUSED(x.data += 8, CAI_ENTRY_DATA, 0, "data = 0x10008 is not a multiple of 16");
    begin();
    CHECK_INT(cai_dtype_of(CAI_COMPLEX32, &x.dtype, &error), CAI_OK);
    refused("complex32", CAI_ENTRY_TYPESTR, -1,
            "@c4 has no type of a tensor map: name one of its size (tile.type)");
    begin();
    CHECK_INT(cai_im2col_map_of(&x, NULL, &plan, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_im2col_map_of(&x, &tile, NULL, &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "tile or out is NULL");
    CHECK_INT(cai_im2col_map_of(NULL, &tile, &plan, &error), CAI_ERR_ARGUMENT);
    x.abi = 0;
    CHECK_INT(cai_im2col_map_of(&x, &tile, &plan, &error), CAI_ERR_ABI);
}

static void test_corners(void)
{
    REFUSED(tile.lower[0] = -129, 0, 0, "tile.lower[0] = -129 is not in -128..127");
    TAKEN(tile.lower[0] = -128);
    REFUSED(tile.upper[1] = 128, 0, 1, "tile.upper[1] = 128 is not in -128..127");
    TAKEN(tile.upper[1] = 127);
    REFUSED_OF(3, tile.lower[0] = -32769, 0, 0, "tile.lower[0] = -32769 is not in -32768..32767");
    TAKEN_OF(3, tile.lower[0] = -32768);
    REFUSED_OF(3, tile.upper[0] = 32768, 0, 0, "tile.upper[0] = 32768 is not in -32768..32767");
    TAKEN_OF(3, tile.upper[0] = 32767);
    REFUSED_OF(5, tile.lower[2] = -17, 0, 2, "tile.lower[2] = -17 is not in -16..15");
    TAKEN_OF(5, tile.lower[2] = -16);
    REFUSED_OF(5, tile.upper[2] = 16, 0, 2, "tile.upper[2] = 16 is not in -16..15");
    TAKEN_OF(5, tile.upper[2] = 15);
    REFUSED(tile.lower[2] = 1, 0, 2, "tile.lower[2] = 1 is not in 0..0");
    REFUSED(tile.upper[2] = -1, 0, 2, "tile.upper[2] = -1 is not in 0..0");
    REFUSED_OF(3, tile.steps[1] = 1, 0, 1, "tile.steps[1] = 1 is not in 0..0");
    REFUSED(tile.steps[0] = 9, 0, 0, "tile.steps[0] = 9 is not in 0..8");
    REFUSED(tile.steps[1] = -1, 0, 1, "tile.steps[1] = -1 is not in 0..8");
    /* 9 pixels of W: from 3 to 3, from 3 to 2 */
    TAKEN((tile.lower[1] = 3, tile.upper[1] = -5));
    REFUSED((tile.lower[1] = 3, tile.upper[1] = -6), 0, 1,
            "tile.upper[1] = -6: the box has no pixel of 9 with lower[1] = 3");
    REFUSED((tile.lower[1] = 100, tile.upper[1] = -100), 0, 1,
            "tile.upper[1] = -100: the box has no pixel of 9 with lower[1] = 100");
    TAKEN((tile.lower[1] = 9, tile.upper[1] = 1)); /* pixels that are all outside of the array */
}

static void test_column(void)
{
    REFUSED(tile.channels = 0, 0, -1, "tile.channels = 0 is not in 1..256");
    REFUSED(tile.channels = 257, 0, -1, "tile.channels = 257 is not in 1..256");
    TAKEN(tile.channels = 256);
    REFUSED(tile.pixels = 0, 0, -1, "tile.pixels = 0 is not in 1..1024");
    REFUSED(tile.pixels = 1025, 0, -1, "tile.pixels = 1025 is not in 1..1024");
    TAKEN(tile.pixels = 1024);
    REFUSED(tile.channels = 4, 0, -1, "tile.channels = 4: 4 x 16 bits are not a multiple of 16 bytes");
    TAKEN((tile.channels = 4, tile.interleave = 1));
    CHECK_UINT(plan.column_bytes, 0);
    REFUSED((tile.channels = 72, tile.swizzle = 3), 0, -1,
            "tile.channels = 72: 144 bytes are more than 128 (tile.swizzle = 3)");
    TAKEN((tile.channels = 64, tile.swizzle = 3));
    REFUSED((tile.interleave = 2, tile.swizzle = 3), 0, -1, "tile.swizzle = 3: INTERLEAVE_32B needs SWIZZLE_32B, 1");
    REFUSED(tile.type = 17, 0, -1, "tile.type = 17 is not in 0..16");
    REFUSED(tile.interleave = 3, 0, -1, "tile.interleave = 3 is not in 0..2");
    REFUSED(tile.swizzle = 7, 0, -1, "tile.swizzle = 7 is not in 0..6");
    REFUSED(tile.l2_promotion = 4, 0, -1, "tile.l2_promotion = 4 is not in 0..3");
    REFUSED(tile.fill = 2, 0, -1, "tile.fill = 2 is not in 0..1");
}

/* Images whose channels are packed values */
static void begin_packed(int32_t code, int32_t type)
{
    const int64_t shape[4] = {8, 14, 9, 256}, strides[4] = {32256, 2304, 256, code == CAI_FLOAT6_E3M2FN_X4 ? 3 : 1};
    begin();
    CHECK_INT(cai_array_init_packed(&x, code, 4, shape, 3, strides, (void *)(uintptr_t)0x10000, &error), CAI_OK);
    tile.type = type;
    tile.channels = 128;
}

static void test_packed(void)
{
    begin_packed(CAI_FLOAT4_E2M1FN_X2, CAI_TENSOR_MAP_16U4_ALIGN8B);
    taken("16U4_ALIGN8B");
    CHECK(plan.dims[0] == 256 && plan.column_bytes == 64 * 64);
    begin_packed(CAI_FLOAT4_E2M1FN_X2, CAI_TENSOR_MAP_16U4_ALIGN16B);
    taken("16U4_ALIGN16B");
    CHECK_UINT(plan.column_bytes, 64 * 128);
    tile.channels = 64;
    refused("64 of 16U4_ALIGN16B", 0, -1, "tile.channels = 64: type 16U4_ALIGN16B needs 128");
    begin_packed(CAI_FLOAT6_E3M2FN_X4, CAI_TENSOR_MAP_16U6_ALIGN16B);
    taken("16U6_ALIGN16B");
    CHECK_UINT(plan.column_bytes, 64 * 128);
}

/* ------------------------------------------------------------------ plans */
static void test_plan(void)
{
    begin_of(5);
    x.shape[0] = 3;
    x.strides[0] = 1 << 20;
    x.strides[1] = 1 << 16;
    x.strides[2] = 1 << 12;
    tile.lower[0] = -1;
    tile.lower[1] = -2;
    tile.lower[2] = -3;
    tile.upper[0] = 1;
    tile.upper[1] = 2;
    tile.upper[2] = 3;
    tile.steps[0] = 4;
    tile.steps[2] = 6;
    tile.channels = 32;
    tile.pixels = 100;
    tile.swizzle = CAI_TENSOR_MAP_SWIZZLE_64B;
    tile.l2_promotion = CAI_TENSOR_MAP_L2_128B;
    tile.fill = CAI_TENSOR_MAP_FILL_NAN;
    taken("a plan");
    CHECK_UINT(plan.address, 0x10000);
    CHECK_INT(plan.rank, 5);
    CHECK(plan.dims[0] == 64 && plan.dims[1] == 9 && plan.dims[2] == 9 && plan.dims[3] == 14 && plan.dims[4] == 3);
    CHECK(plan.strides[0] == 128 && plan.strides[1] == 1 << 12 && plan.strides[2] == 1 << 16);
    CHECK(plan.strides[3] == 1 << 20);
    CHECK(plan.lower[0] == -3 && plan.lower[1] == -2 && plan.lower[2] == -1);
    CHECK(plan.upper[0] == 3 && plan.upper[1] == 2 && plan.upper[2] == 1);
    CHECK(plan.steps[0] == 1 && plan.steps[1] == 6 && plan.steps[2] == 1 && plan.steps[3] == 4 && plan.steps[4] == 1);
    CHECK(plan.channels == 32 && plan.pixels == 100 && plan.column_bytes == 32 * 100 * 2);
    CHECK(plan.type == 6 && plan.interleave == 0 && plan.swizzle == 2 && plan.l2_promotion == 2 && plan.fill == 1);
    begin();
    taken("example 1 of PTX ISA");
    CHECK(plan.lower[2] == 0 && plan.upper[2] == 0 && plan.steps[3] == 1 && plan.steps[4] == 0 && plan.dims[4] == 0);
}

/* ------------------------------------------------------------------ convolutions */
typedef struct convolution {
    int64_t extent, before, behind, filter, dilation, stride;
} convolution;

static convolution random_convolution(world_chance *chance)
{
    convolution one;
    one.extent = 1 + world_below(chance, 12);
    one.before = world_below(chance, 4);
    one.behind = world_below(chance, 4);
    one.filter = 1 + world_below(chance, 5);
    one.dilation = 1 + world_below(chance, 3);
    one.stride = 1 + world_below(chance, 8);
    return one;
}

/* H_out of torch.nn.Conv2d's documentation, with padding of two sides; 0 if there is none */
static int64_t output_of(const convolution *one)
{
    const int64_t room = one->extent + one->before + one->behind - one->dilation * (one->filter - 1) - 1;
    return room < 0 ? 0 : room / one->stride + 1;
}

/* The same by its meaning: the filter goes through the padded axis as far as it fits. */
static int64_t windows_of(const convolution *one)
{
    const int64_t reach = one->dilation * (one->filter - 1);
    int64_t first, count = 0;
    for (first = -one->before; first + reach < one->extent + one->behind; first += one->stride) ++count;
    return count;
}

/* Each base pixel of the plan is where the filter begins for the output pixel of the same number. */
static void check_walk(const convolution *axes, int32_t spatial, const int64_t *output)
{
    column_place place;
    int64_t pixel, pixels = 2; /* images */
    int32_t at;
    memset(&place, 0, sizeof place);
    for (at = 0; at < spatial; ++at) {
        place.at[at] = plan.lower[at];
        pixels *= output[at];
    }
    for (pixel = 0; pixel < pixels; ++pixel) {
        int64_t rest = pixel;
        for (at = spatial - 1; at >= 0; --at) { /* the last axis goes first; it is entry 0 of a plan */
            CHECK_INT(place.at[spatial - 1 - at], rest % output[at] * axes[at].stride - axes[at].before);
            rest /= output[at];
        }
        CHECK_INT(place.image, rest);
        column_next(&plan, &place);
    }
    CHECK_INT(place.image, 2);
}

static int64_t convolutions, without_output;

/* The recipe of the header: the box has a pixel for each pixel of the output, in its order. */
static void check_convolution(world_chance *chance)
{
    const int32_t spatial = 1 + (int32_t)world_below(chance, 3);
    int64_t shape[5] = {2, 1, 1, 1, 1}, output[3];
    convolution axes[3];
    int32_t at, empty = 0;
    memset(&tile, 0, sizeof tile);
    for (at = 0; at < spatial; ++at) {
        axes[at] = random_convolution(chance);
        output[at] = output_of(&axes[at]);
        CHECK_INT(windows_of(&axes[at]), output[at]);
        if (output[at] == 0) empty = 1;
        shape[1 + at] = axes[at].extent;
        tile.lower[at] = (int32_t)-axes[at].before;
        tile.upper[at] = (int32_t)(axes[at].behind - axes[at].dilation * (axes[at].filter - 1));
        tile.steps[at] = (int32_t)axes[at].stride;
    }
    shape[1 + spatial] = 8;
    tile.channels = 8;
    tile.pixels = 1;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT16, spatial + 2, shape, NULL, &x, NULL), CAI_OK);
    x.data = 0x10000;
    CHECK_INT(cai_im2col_map_of(&x, &tile, &plan, &error), empty ? CAI_ERR_ARGUMENT : CAI_OK);
    if (empty) {
        ++without_output;
        CHECK(strstr(error.message, "the box has no pixel of"));
        return;
    }
    ++convolutions;
    check_walk(axes, spatial, output);
}

/* ------------------------------------------------------------------ chance */
static int64_t accepted, at_a_bound, alone[COLUMN_SENTENCES];

static void check_random(world_chance *chance)
{
    column_call call;
    const char *why;
    int32_t sentence;
    char text[300];
    column_good(chance, &x, &tile);
    why = column_call_of(&x, &tile, &call);
    CHECK(why == NULL && column_broken(&call) == -1);
    if (world_below(chance, 2)) {
        ++at_a_bound;
        column_to_a_bound(chance, &x, &tile);
    }
    why = column_call_of(&x, &tile, &call);
    sentence = column_broken(&call);
    snprintf(text, sizeof text, "%s", why ? why : sentence >= 0 ? column_document[sentence].text : "");
    cai_test_note(text);
    CHECK_INT(cai_im2col_map_of(&x, &tile, &plan, &error) == CAI_OK, why == NULL && sentence == -1);
    if (why == NULL && sentence >= 0) ++alone[sentence];
    if (why || sentence != -1) return;
    ++accepted;
    why = column_difference(&plan, &call);
    CHECK_STR(why ? why : "", "");
}

static void test_random(int64_t count, uint64_t seed)
{
    world_chance chance = {0, 16, 7};
    int64_t i;
    size_t row;
    chance.state = seed;
    for (i = 0; i < count / 10; ++i) check_convolution(&chance);
    printf("%lld convolutions, %lld without output\n", (long long)convolutions, (long long)without_output);
    for (i = 0; i < count; ++i) check_random(&chance);
    cai_test_note("");
    printf("%lld arrays, %lld at a bound, %lld accepted\n", (long long)count, (long long)at_a_bound,
           (long long)accepted);
    if (count < 50000) return;
    CHECK(accepted > count / 2);
    for (row = 0; row < COLUMN_SENTENCES; ++row) {
        cai_test_note(column_document[row].text); /* each condition was the only one that did not hold */
        CHECK(alone[row] >= 3);
    }
    cai_test_note("");
}

int main(int count, char **arguments)
{
    const int64_t arrays = count > 1 ? atoll(arguments[1]) : 100000;
    test_array();
    test_corners();
    test_column();
    test_packed();
    test_plan();
    test_random(arrays, count > 2 ? (uint64_t)atoll(arguments[2]) : 20240611);
    return cai_test_end();
}
