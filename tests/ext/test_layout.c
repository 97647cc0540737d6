/* test_layout.c - ext/cai_layout.h: GT4Py's figures, its presets, random plans against brute force
 * SPDX-License-Identifier: MIT
 *
 *     test_layout [plans [seed]]    how many random plans: 200,000 */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai_layout.h"
#include "cai_test.h"
#include "cai_test_help.h"
#include "packed_model.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 4, MOST_BYTES = 1 << 16 };

static cai_error error;

static void set_shape(cai_layout *layout, int32_t ndim, const int64_t *shape, const char *map)
{
    int32_t i;
    memset(layout, 0, sizeof *layout);
    layout->ndim = ndim;
    for (i = 0; i < ndim; ++i) {
        layout->shape[i] = shape[i];
        layout->map[i] = map[i] - '0';
    }
}

/* -------------------------------------------------------------------- figures */
/* What GT4Py's allocators give: gt4py/storage/allocators.py, run in July 2026. */
typedef struct figure {
    int32_t ndim;
    int64_t shape[3];
    const char *map;
    int32_t itemsize, alignment;
    int64_t aligned[3];
    uint64_t address;
    int64_t strides[3], nbytes, offset;
} figure;

static const figure figures[] = {
    {3, {12, 12, 80}, "210", 8, 256, {3, 3, 0}, 0x7f0000000000, {8, 256, 3072}, 246015, 232},
    {3, {12, 12, 80}, "012", 8, 8, {3, 3, 0}, 4096, {7680, 640, 8}, 92167, 0},
    {3, {5, 3, 7}, "012", 4, 64, {1, 1, 3}, 4100, {192, 64, 4}, 1023, 48},
    {3, {5, 3, 7}, "201", 4, 64, {1, 1, 3}, 4112, {4, 448, 64}, 1407, 44},
    {1, {1, 0, 0}, "0", 8, 32, {0, 0, 0}, 4097, {8, 0, 0}, 63, 31},
    {0, {0, 0, 0}, "", 8, 64, {0, 0, 0}, 4097, {0, 0, 0}, 71, 63},
    {2, {3, 4, 0}, "10", 16, 8, {1, 2, 0}, 4100, {16, 48, 0}, 199, 4},
    {2, {3, 4, 0}, "10", 8, 24, {1, 2, 0}, 4104, {8, 24, 0}, 119, 16},
};

static void test_figures(void)
{
    size_t row;
    int32_t i;
    for (row = 0; row < sizeof figures / sizeof *figures; ++row) {
        const figure *one = &figures[row];
        const cai_dtype dtype = help_void(one->itemsize);
        cai_layout layout;
        set_shape(&layout, one->ndim, one->shape, one->map);
        layout.alignment = one->alignment;
        layout.flags = CAI_LAYOUT_ALIGN_INDEX;
        memcpy(layout.aligned, one->aligned, sizeof one->aligned);
        CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
        for (i = 0; i < one->ndim; ++i) CHECK_INT(layout.strides[i], one->strides[i]);
        CHECK_INT(layout.nbytes, one->nbytes);
        CHECK_INT(cai_layout_offset(&layout, one->address), one->offset);
    }
}

/* --------------------------------------------------------------------- presets */
/* dims, then the maps of C, F, gtx86, gtmc and gtcuda of the prototype of GDP-3, then those of today's GT4Py with
 * I, J, K at 012, 210 and 120. */
static const char *const preset_rows[][9] = {
    {"IJK", "012", "210", "012", "201", "210", "012", "210", "120"},
    {"KJI", "012", "210", "210", "102", "012", "012", "210", "120"},
    {"JIK", "012", "210", "102", "021", "120", "012", "210", "120"},
    {"IJ", "01", "10", "01", "10", "10", "01", "10", "01"},
    {"IK", "01", "10", "01", "10", "10", "01", "10", "10"},
    {"JK", "01", "10", "01", "01", "10", "01", "10", "10"},
    {"KJI0", "0123", "3210", "3210", "2130", "1230", "1230", "3210", "2310"},
    {"IJK0", "0123", "3210", "1230", "3120", "3210", "1230", "3210", "2310"},
    {"IJK01", "01234", "43210", "23401", "42310", "43210", "23401", "43201", "34201"},
};
static const struct {
    const char *name;
    int32_t column, alignment, items;
} preset_names[] = {
    {"C", 1, 0, 0}, {"F", 2, 0, 0}, {"gtx86", 3, 0, 0}, {"gtmc", 4, 8, 0}, {"gtcuda", 5, 32, 0},
    {"debug", 6, 1, 1}, {"numpy", 6, 1, 1}, {"gt:cpu_kfirst", 6, 1, 1}, {"dace:cpu_kfirst", 6, 1, 1},
    {"dace:gpu_IJK", 6, 1, 1}, {"gt:cpu_ifirst", 7, 1, 1}, {"gt:gpu", 7, 32, 1}, {"dace:gpu", 7, 1, 1},
    {"dace:cpu_KJI", 7, 1, 1}, {"dace:cpu", 8, 1, 1},
};

static void check_preset(size_t name, size_t row)
{
    const char *const dims = preset_rows[row][0], *const map = preset_rows[row][preset_names[name].column];
    cai_layout layout;
    char found[12] = "";
    int32_t i;
    memset(&layout, 0, sizeof layout);
    layout.halo_low[0] = 3;
    CHECK_INT(cai_layout_preset(&layout, preset_names[name].name, dims, &error), CAI_OK);
    for (i = 0; i < layout.ndim; ++i) found[i] = (char)('0' + layout.map[i]);
    CHECK_STR(found, map);
    CHECK_INT(layout.ndim, (int64_t)strlen(dims));
    CHECK_INT(layout.alignment, preset_names[name].alignment);
    CHECK_INT(layout.flags, preset_names[name].items ? CAI_LAYOUT_ALIGN_ITEMS : 0);
    CHECK_INT(layout.halo_low[0], 3);
}

static void test_presets(void)
{
    size_t name, row;
    for (name = 0; name < sizeof preset_names / sizeof *preset_names; ++name)
        for (row = 0; row < sizeof preset_rows / sizeof *preset_rows; ++row) {
            cai_test_note(preset_names[name].name);
            check_preset(name, row);
        }
    cai_test_note("");
}

static void test_presets_refused(void)
{
    static const char *const dims[] = {NULL, "II", "IJKL", "IJx", "012345678"};
    cai_layout layout, before;
    size_t i;
    memset(&layout, 7, sizeof layout);
    before = layout;
    for (i = 0; i < sizeof dims / sizeof *dims; ++i)
        CHECK_INT(cai_layout_preset(&layout, "gtcuda", dims[i], &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "dims has more than 8 axes");
    CHECK_INT(cai_layout_preset(&layout, "gtgpu", "IJK", &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "there is no preset \"gtgpu\"");
    CHECK_INT(cai_layout_preset(&layout, NULL, "IJK", &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_preset(NULL, "C", "IJK", &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_preset(&layout, "C", "xyy", NULL), CAI_ERR_ARGUMENT);
    CHECK_BYTES(&layout, &before, sizeof layout);
    memset(&layout, 0, sizeof layout);
    CHECK_INT(cai_layout_preset(&layout, "C", "xyz", &error), CAI_OK);
    CHECK_INT(cai_layout_preset(&layout, "gtcuda", "I9", &error), CAI_OK);
    CHECK(layout.map[0] == 1 && layout.map[1] == 0);
    CHECK_INT(cai_layout_preset(&layout, "gt:gpu", "0IJ", &error), CAI_OK); /* an axis of data stays in its place */
    CHECK(layout.map[0] == 0 && layout.map[1] == 2 && layout.map[2] == 1);
    CHECK_INT(cai_layout_preset(&layout, "gt:gpu", "I-", &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "dims has '-': the preset knows I, J, K and digits");
    CHECK_INT(cai_layout_preset(&layout, "gt:gpu", "", &error), CAI_OK);
    CHECK_INT(layout.ndim, 0);
}

/* GT4Py's own presets count elements. */
static void test_alignment_in_items(void)
{
    const cai_dtype dtype = help_void(8);
    cai_dtype none;
    cai_layout layout;
    memset(&none, 0, sizeof none); /* as of bit fields */
    memset(&layout, 0, sizeof layout);
    CHECK_INT(cai_layout_preset(&layout, "gt:gpu", "I", &error), CAI_OK);
    layout.shape[0] = 33;
    layout.flags |= CAI_LAYOUT_ALIGN_INDEX;
    CHECK_INT(cai_layout_plan(&layout, &none, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
    CHECK_INT(layout.boundary, 256);
    CHECK_INT(layout.flags, CAI_LAYOUT_ALIGN_INDEX | CAI_LAYOUT_ALIGN_ITEMS);
    CHECK_INT(layout.nbytes, 64 * 8 + 255);
    layout.alignment = 1;
    layout.flags = CAI_LAYOUT_ALIGN_ITEMS;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
    CHECK_INT(layout.boundary, 8);
    CHECK_INT(layout.nbytes, 33 * 8 + 7);
    layout.alignment = 0;
    layout.flags = CAI_LAYOUT_ALIGN_ITEMS;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
    CHECK_INT(layout.boundary, 1);
    CHECK_INT(layout.nbytes, 33 * 8);
}

/* ---------------------------------------------------------------- random plans */
/* The alignment fits the itemsize: one divides the other. */
static void random_layout(cai_layout *layout, int32_t *itemsize)
{
    static const int32_t sizes[] = {1, 2, 4, 6, 8, 12, 16};
    int32_t i, other;
    memset(layout, 0, sizeof *layout);
    *itemsize = sizes[help_between(0, 6)];
    layout->ndim = (int32_t)help_between(0, MOST_AXES);
    layout->flags = help_between(0, 1) ? CAI_LAYOUT_ALIGN_INDEX : 0;
    for (i = 0; i < layout->ndim; ++i) {
        layout->map[i] = i;
        layout->shape[i] = help_between(0, 8) + (help_between(0, 15) != 0);
        if (layout->shape[i]) layout->aligned[i] = help_between(0, layout->shape[i] - 1);
        layout->halo_low[i] = help_between(0, layout->shape[i]);
        layout->halo_high[i] = help_between(0, layout->shape[i] - layout->halo_low[i]);
    }
    for (i = layout->ndim - 1; i > 0; --i) {
        const int32_t at = (int32_t)help_between(0, i), kept = layout->map[i];
        layout->map[i] = layout->map[at];
        layout->map[at] = kept;
    }
    other = (int32_t)help_between(1, 40);
    layout->alignment = help_between(0, 3) ? *itemsize * other : *itemsize;
    if (!help_between(0, 3)) layout->alignment = *itemsize % other == 0 ? other : 0;
}

static uint64_t address_of(const cai_layout *layout, uint64_t first, const int64_t *index)
{
    int32_t axis;
    for (axis = 0; axis < layout->ndim; ++axis) first += (uint64_t)(index[axis] * layout->strides[axis]);
    return first;
}

static int is_empty(const cai_layout *layout)
{
    int32_t axis;
    for (axis = 0; axis < layout->ndim; ++axis)
        if (!layout->shape[axis]) return 1;
    return 0;
}

static int32_t inner_of(const cai_layout *layout)
{
    int32_t axis, inner = -1;
    for (axis = 0; axis < layout->ndim; ++axis)
        if (layout->map[axis] == layout->ndim - 1) inner = axis;
    return inner;
}

/* Every element is in the block, no two share a byte, and each row is aligned at the index of `aligned`. */
static int elements_are_right(const cai_layout *layout, int32_t itemsize, uint64_t block)
{
    static unsigned char taken[MOST_BYTES];
    const uint64_t first = block + (uint64_t)cai_layout_offset(layout, block);
    const int32_t inner = inner_of(layout);
    const uint64_t alignment = layout->alignment > 1 ? (uint64_t)layout->alignment : 1;
    int64_t index[CAI_LAYOUT_MAX_NDIM] = {0};
    memset(taken, 0, (size_t)layout->nbytes);
    do {
        const uint64_t at = address_of(layout, first, index);
        int32_t byte;
        if (at < block || at + (uint64_t)itemsize > block + (uint64_t)layout->nbytes) return 0;
        for (byte = 0; byte < itemsize; ++byte)
            if (taken[at - block + (uint64_t)byte]++) return 0;
        if ((inner < 0 || index[inner] == layout->aligned[inner]) && at % alignment) return 0;
    } while (help_next(index, layout->shape, layout->ndim));
    return 1;
}

/* No smaller step from row to row would do, and of each axis the elements follow those of the axes inside. */
static int strides_are_least(const cai_layout *layout, int32_t itemsize)
{
    int64_t inside = itemsize, least;
    int32_t place, axis;
    for (place = layout->ndim - 1; place >= 0; --place) {
        for (axis = 0; layout->map[axis] != place; ++axis) continue;
        if (layout->strides[axis] != inside) return 0;
        inside *= layout->shape[axis];
        for (least = inside; place == layout->ndim - 1 && layout->alignment > 1; ++least)
            if (least % layout->alignment == 0 && least % itemsize == 0) break;
        inside = least;
    }
    return layout->nbytes == inside + (layout->alignment > 1 ? layout->alignment - 1 : 0);
}

static void test_random(int64_t plans)
{
    int64_t plan;
    for (plan = 0; plan < plans; ++plan) {
        cai_layout layout, again;
        cai_array array;
        int32_t itemsize, axis;
        cai_dtype dtype;
        const uint64_t block = 0x10000 + (uint64_t)help_between(0, 4095);
        random_layout(&layout, &itemsize);
        dtype = help_void(itemsize);
        CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
        if (is_empty(&layout)) {
            CHECK_INT(layout.nbytes, 0);
            continue;
        }
        for (axis = 0; axis < layout.ndim && !(layout.flags & CAI_LAYOUT_ALIGN_INDEX); ++axis)
            CHECK(layout.aligned[axis] == layout.halo_low[axis] || layout.halo_low[axis] == layout.shape[axis]);
        if (layout.nbytes <= MOST_BYTES) CHECK(elements_are_right(&layout, itemsize, block));
        CHECK(strides_are_least(&layout, itemsize));
        CHECK_INT(cai_array_init_dtype(&array, &dtype, layout.ndim, layout.shape, layout.strides,
                                       block + (uint64_t)cai_layout_offset(&layout, block), &error), CAI_OK);
        CHECK_INT(cai_layout_check(&layout, &array, &error), CAI_OK);
        CHECK_INT(cai_layout_of(&array, &again, &error), CAI_OK);
        CHECK_INT(cai_layout_check(&again, &array, &error), CAI_OK);
        again = layout;
        CHECK_INT(cai_layout_plan(&again, &dtype, &error), CAI_OK); /* a plan may be planned */
        CHECK_BYTES(&again, &layout, sizeof layout);
    }
}

/* Planned for one dtype, and then for another: as if it was planned for the other alone. */
static void test_again(void)
{
    static const int32_t sizes[] = {8, 4, 16, 1};
    int32_t i, k;
    for (i = 0; i < 4; ++i)
        for (k = 0; k < 4; ++k) {
            const cai_dtype first = help_void(sizes[i]), second = help_void(sizes[k]);
            cai_layout layout, fresh;
            memset(&layout, 0, sizeof layout);
            CHECK_INT(cai_layout_preset(&layout, "gt:gpu", "IJK", &error), CAI_OK);
            layout.shape[0] = 33;
            layout.shape[1] = layout.shape[2] = 3;
            layout.halo_low[0] = 1;
            fresh = layout;
            CHECK_INT(cai_layout_plan(&fresh, &second, &error), CAI_OK);
            CHECK_INT(cai_layout_plan(&layout, &first, &error), CAI_OK);
            CHECK_INT(cai_layout_plan(&layout, &second, &error), CAI_OK);
            CHECK_BYTES(&layout, &fresh, sizeof layout);
        }
}

/* --------------------------------------------------------------------- refused */
static void test_refused(void)
{
    static const int64_t shape[] = {4, 5, 6};
    const cai_dtype dtype = help_void(8), odd = help_void(12);
    cai_layout layout, good;
    set_shape(&good, 3, shape, "120");
    layout = good;
    CHECK_INT(cai_layout_plan(NULL, &dtype, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_plan(&layout, NULL, &error), CAI_ERR_ARGUMENT);
    layout.map[1] = 1;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "map[1] = 1: no permutation; ndim is 3");
    CHECK_INT(error.index, 1);
    layout.map[1] = 3;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    layout.map[1] = -1;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    layout = good;
    layout.ndim = -1;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    layout.ndim = 9;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    layout = good;
    layout.alignment = 128;
    CHECK_INT(cai_layout_plan(&layout, &odd, &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "alignment = 128, itemsize = 12, flags = 0x0: one must divide the other");
    layout.alignment = -8;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    layout.alignment = INT32_MAX / 4;
    layout.flags = CAI_LAYOUT_ALIGN_ITEMS;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    layout = good;
    layout.flags = 4;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_ARGUMENT);
    layout = good;
    layout.shape[2] = -1;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "shape[2] = -1: the least is 0");
    layout.shape[2] = INT64_MIN;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "shape[2] = -9223372036854775808: the least is 0");
    layout = good;
    layout.halo_low[1] = 2;
    layout.halo_high[1] = 4;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "halo_high[1] = 4: what is left is 3");
    layout.halo_low[1] = 6;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "halo_low[1] = 6: the extent is 5");
    layout.halo_low[1] = -1;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "halo_low[1] = -1: the extent is 5");
    layout = good;
    layout.flags = CAI_LAYOUT_ALIGN_INDEX;
    layout.aligned[0] = 4;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "aligned[0] = 4: the extent is 4");
    layout.aligned[0] = -1;
    CHECK_INT(cai_layout_plan(&layout, &dtype, NULL), CAI_ERR_SHAPE);
}

/* Extents whose product leaves 63 bits, and one of 31 bits that does not. */
static void test_large(void)
{
    static const int64_t large[] = {(int64_t)1 << 40, (int64_t)1 << 40}, cube[] = {1291, 1291, 1291};
    static const int64_t most[] = {INT64_MAX}, ones[] = {1, 1, 1, 1, 1, 1, 1, 2};
    const cai_dtype byte = help_void(1);
    cai_layout layout, before;
    set_shape(&layout, 2, large, "01");
    before = layout;
    CHECK_INT(cai_layout_plan(&layout, &byte, &error), CAI_ERR_SHAPE);
    CHECK_BYTES(&layout, &before, sizeof layout);
    set_shape(&layout, 3, cube, "012");
    CHECK_INT(cai_layout_plan(&layout, &byte, &error), CAI_OK);
    CHECK_INT(layout.nbytes, 2151685171);
    set_shape(&layout, 1, most, "0");
    CHECK_INT(cai_layout_plan(&layout, &byte, &error), CAI_OK);
    CHECK_INT(layout.nbytes, INT64_MAX);
    layout.alignment = 64;
    CHECK_INT(cai_layout_plan(&layout, &byte, &error), CAI_ERR_SHAPE);
    layout.alignment = 24;
    layout.shape[0] = INT64_MAX - 25;
    CHECK_INT(cai_layout_plan(&layout, &byte, &error), CAI_ERR_SHAPE); /* by what any address needs */
    layout.shape[0] = INT64_MAX - 31;
    CHECK_INT(cai_layout_plan(&layout, &byte, &error), CAI_OK);
    set_shape(&layout, CAI_LAYOUT_MAX_NDIM, ones, "01234567");
    CHECK_INT(cai_layout_plan(&layout, &byte, &error), CAI_OK);
    CHECK_INT(layout.nbytes, 2);
}

/* --------------------------------------------------------------- given memory */
static void test_given(void)
{
    static const int64_t shape[] = {3, 1, 4}, tied[] = {2, 3, 2};
    static const int64_t strides[] = {32, 8, 8}, zeros[] = {0, 0, 0}, negative[] = {-32, 8, 8}, inside[] = {16, 8, 8};
    static const int64_t small[] = {-8, 8, 32};
    const cai_dtype dtype = help_void(8);
    cai_array array;
    cai_layout layout, wanted;
    int64_t many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, shape, strides, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_OK);
    CHECK(layout.map[0] == 0 && layout.map[1] == 2 && layout.map[2] == 1); /* of equal strides the larger extent */
    CHECK_INT(layout.nbytes, 96);
    CHECK_INT(layout.strides[0], 32);
    set_shape(&wanted, 3, shape, "012");
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_OK); /* an axis of extent 1 may be anywhere */
    set_shape(&wanted, 3, shape, "102");
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_OK);
    set_shape(&wanted, 3, shape, "210");
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_ERR_EXPECT);
    CHECK_STR(error.message, "strides[2] = 8: bytes inside: 72");
    CHECK_INT(error.index, 2);
    set_shape(&wanted, 3, tied, "012");
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_ERR_EXPECT);
    CHECK_STR(error.message, "shape[0] = 3: the layout has 2");
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, tied, zeros, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_OK);
    CHECK(layout.map[1] == 0 && layout.map[0] == 1 && layout.map[2] == 2); /* extents, then axes */
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, shape, negative, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_OK);
    CHECK_INT(layout.map[0], 0);
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, shape, small, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_OK);
    CHECK(layout.map[2] == 0 && layout.map[0] == 1 && layout.map[1] == 2);
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, shape, negative, 0x1000, &error), CAI_OK);
    set_shape(&wanted, 3, shape, "012");
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_ERR_EXPECT);
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, shape, inside, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_ERR_EXPECT); /* rows that share bytes */
    set_shape(&wanted, 3, shape, "013");
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_ERR_ARGUMENT);
    set_shape(&wanted, 3, shape, "012");
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 8, many, NULL, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_OK);
    CHECK_INT(layout.map[7], 7);
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 9, many, NULL, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_ERR_SHAPE);
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_ERR_EXPECT);
    CHECK_INT(cai_layout_of(&array, NULL, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_check(NULL, &array, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_of(NULL, &layout, &error), CAI_ERR_ARGUMENT);
    array.abi = 0;
    CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_ERR_ABI);
    CHECK_INT(cai_layout_check(&wanted, &array, &error), CAI_ERR_ABI);
}

static void test_given_alignment(void)
{
    static const int64_t shape[] = {3, 4}, padded[] = {64, 8}, odd[] = {40, 8}, empty[] = {0, 4};
    const cai_dtype dtype = help_void(8);
    cai_layout layout;
    cai_array array;
    set_shape(&layout, 2, shape, "01");
    layout.alignment = 32;
    layout.halo_low[1] = 1;
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 2, shape, padded, 0x1000 - 8, &error), CAI_OK);
    CHECK_INT(cai_layout_check(&layout, &array, &error), CAI_OK);
    array.data += 8;
    CHECK_INT(cai_layout_check(&layout, &array, &error), CAI_ERR_EXPECT);
    CHECK_STR(error.message, "the element to align is at 0x1008: the alignment is 32");
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 2, shape, odd, 0x1000 - 8, &error), CAI_OK);
    CHECK_INT(cai_layout_check(&layout, &array, &error), CAI_ERR_EXPECT);
    CHECK_STR(error.message, "strides[0] = 40: alignment: 32");
    layout.shape[0] = 0;
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 2, empty, odd, 1, &error), CAI_OK);
    CHECK_INT(cai_layout_check(&layout, &array, &error), CAI_OK);
}

static void test_permute(void)
{
    static const int32_t axes[] = {2, 0, 1}, wrong[] = {0, 1, 1}, outside[] = {0, 1, 3};
    static const int64_t shape[] = {4, 5, 6};
    const cai_dtype dtype = help_void(4);
    cai_layout layout, moved, before;
    int32_t i;
    set_shape(&layout, 3, shape, "201");
    for (i = 0; i < 3; ++i) {
        layout.halo_low[i] = i;
        layout.halo_high[i] = i + 1;
    }
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
    before = layout;
    CHECK_INT(cai_layout_permute(&layout, axes, &moved, &error), CAI_OK);
    for (i = 0; i < 3; ++i) {
        CHECK_INT(moved.map[i], layout.map[axes[i]]);
        CHECK_INT(moved.shape[i], layout.shape[axes[i]]);
        CHECK_INT(moved.strides[i], layout.strides[axes[i]]);
        CHECK_INT(moved.aligned[i], layout.aligned[axes[i]]);
        CHECK(moved.halo_low[i] == axes[i] && moved.halo_high[i] == axes[i] + 1);
    }
    CHECK(moved.nbytes == layout.nbytes && moved.offset == layout.offset);
    CHECK_INT(cai_layout_permute(&layout, wrong, &layout, &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "axes[2] = 1: no permutation; ndim is 3");
    CHECK_INT(cai_layout_permute(&layout, outside, &layout, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_permute(NULL, axes, &layout, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_layout_permute(&layout, axes, NULL, &error), CAI_ERR_ARGUMENT);
    CHECK_BYTES(&layout, &before, sizeof layout);
    layout.map[0] = 5;
    CHECK_INT(cai_layout_permute(&layout, axes, &moved, &error), CAI_ERR_ARGUMENT);
    set_shape(&layout, 3, shape, "000"); /* C order, reversed */
    CHECK_INT(cai_layout_permute(&layout, NULL, &layout, &error), CAI_OK);
    CHECK(layout.map[0] == 2 && layout.map[1] == 1 && layout.map[2] == 0 && layout.shape[0] == 6);
}

/* --------------------------------------------------------------------- domains */
static void give_back(cai_array *array)
{
    ++*(int *)array->owner;
    array->release = NULL;
}

static void test_domain_view(void)
{
    static const int64_t shape[] = {5, 4}, strides[] = {-8, 40}, low[] = {1, 1}, high[] = {2, 0};
    static const int64_t all[] = {2, 3}, wide[] = {5, 0}, below_zero[] = {-1, 0}, none[] = {0, 0}, one[] = {0, 1};
    const cai_dtype dtype = help_void(8);
    cai_array array, view, mask, point;
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 2, shape, strides, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_view_domain(&array, low, high, &view, &error), CAI_OK);
    CHECK(view.shape[0] == 2 && view.shape[1] == 3 && view.data == 0x1000 - 8 + 40);
    CHECK(view.strides[0] == -8 && view.strides[1] == 40);
    CHECK_INT(cai_view_domain(&array, none, one, &view, &error), CAI_OK);
    CHECK(view.shape[0] == 5 && view.shape[1] == 3 && view.data == array.data);
    CHECK_INT(cai_view_domain(&array, low, all, &view, &error), CAI_OK);
    CHECK_INT(view.size, 0);
    CHECK_INT(cai_view_domain(&array, low, wide, &view, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "halo_high[0] = 5: what is left is 4");
    CHECK_INT(cai_view_domain(&array, below_zero, high, &view, &error), CAI_ERR_SHAPE);
    CHECK_INT(cai_view_domain(&array, low, below_zero, &view, &error), CAI_ERR_SHAPE);
    CHECK_INT(cai_view_domain(&array, NULL, high, &view, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_view_domain(&array, low, NULL, &view, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_view_domain(NULL, low, high, &view, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_view_domain(&array, low, high, NULL, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_array_init_dtype(&mask, &dtype, 2, shape, strides, 0x2000, &error), CAI_OK);
    array.mask = &mask;
    CHECK_INT(cai_view_domain(&array, low, high, &view, &error), CAI_ERR_MASK);
    array.mask = NULL;
    CHECK_INT(cai_array_init_dtype(&point, &dtype, 0, NULL, NULL, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_view_domain(&point, low, high, &view, &error), CAI_OK);
    CHECK(view.ndim == 0 && view.data == 0x1000);
    array.release = give_back;
    CHECK_INT(cai_view_domain(&array, low, high, &array, &error), CAI_ERR_ARGUMENT); /* it would lose its owner */
    array.release = NULL;
    CHECK_INT(cai_view_domain(&array, low, high, &array, &error), CAI_OK); /* a view of itself */
    CHECK_INT(array.shape[0], 2);
}

static void test_dims(void)
{
    static const int64_t shape[] = {2, 1, 3}, first[] = {1, 2, 3};
    const cai_dtype dtype = help_void(4);
    cai_array array, view, mask;
    int released = 0;
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, shape, NULL, 0x1000, &error), CAI_OK);
    cai_array_own(&array, give_back, &released);
    CHECK_INT(cai_view_dims(&array, "IJK", "KI", &view, &error), CAI_OK);
    CHECK(view.ndim == 2 && view.shape[0] == 3 && view.shape[1] == 2 && view.strides[0] == 4 && view.strides[1] == 12);
    CHECK(view.release == NULL);
    CHECK_INT(cai_view_dims(&array, "IJK", "0KJI", &view, &error), CAI_OK);
    CHECK(view.ndim == 4 && view.shape[0] == 1 && view.strides[0] == 0 && view.shape[1] == 3 && view.shape[3] == 2);
    CHECK_INT(cai_view_dims(&array, "IJK", "J", &view, &error), CAI_ERR_VIEW);
    CHECK_STR(error.message, "the axis 'K' of extent 3 is not in \"J\"");
    CHECK_INT(cai_view_dims(&array, "IJ", "IJK", &view, &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "dims \"IJ\" of 3 axes");
    CHECK_INT(cai_view_dims(&array, "IIK", "IJK", &view, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_view_dims(&array, "IJK", NULL, &view, &error), CAI_ERR_ARGUMENT);
    CHECK_STR(error.message, "wanted is NULL");
    CHECK_INT(cai_view_dims(&array, "IJK", "IJK", NULL, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_view_dims(&array, "IJK", "IJK", &array, &error), CAI_ERR_ARGUMENT); /* it would lose its owner */
    cai_array_release(&array);
    CHECK_INT(released, 1);
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, first, NULL, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_view_dims(&array, "IJK", "KJ01", &view, &error), CAI_OK);
    CHECK(view.ndim == 4 && view.shape[0] == 3 && view.shape[1] == 2 && view.shape[2] == 1 && view.shape[3] == 1);
    CHECK(view.strides[0] == 4 && view.strides[1] == 12 && view.strides[2] == 0 && view.strides[3] == 0);
    CHECK_INT(cai_view_dims(&array, "IJK", "JK", &view, &error), CAI_OK);
    CHECK(view.ndim == 2 && view.shape[0] == 2 && view.shape[1] == 3);
    CHECK_INT(cai_array_init_dtype(&mask, &dtype, 3, first, NULL, 0x2000, &error), CAI_OK);
    array.mask = &mask; /* views refuse it, whatever they begin with */
    CHECK_INT(cai_view_dims(&array, "IJK", "JK", &view, &error), CAI_ERR_MASK);
    CHECK_INT(cai_view_dims(&array, "IJK", "IJK0", &view, &error), CAI_ERR_MASK);
    CHECK_INT(cai_view_dims(&array, "IJK", "IJK", &view, &error), CAI_ERR_MASK);
}

static void test_domain_of(void)
{
    static const int64_t a_shape[] = {10, 12, 80}, b_shape[] = {80, 9}, low[] = {3, 3, 0}, high[] = {3, 2, 0};
    static const int64_t b_high[] = {1, 0}, wide[] = {81, 0}, all[] = {80, 0};
    const cai_dtype dtype = help_void(4);
    cai_array a, b;
    cai_grid_field fields[2], turned[2];
    const int64_t least[2] = {INT64_MIN, 0};
    int64_t extents[3] = {7, 7, 7}, zero[1] = {7};
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 3, a_shape, NULL, 0x1000, &error), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&b, &dtype, 2, b_shape, NULL, 0x1000, &error), CAI_OK);
    memset(fields, 0, sizeof fields);
    fields[0].array = &a;
    fields[0].dims = "IJK";
    fields[0].halo_low = low;
    fields[0].halo_high = high;
    fields[1].array = &b;
    fields[1].dims = "KI";
    CHECK_INT(cai_domain_of(fields, 2, "IJK", extents, &error), CAI_OK);
    CHECK(extents[0] == 4 && extents[1] == 7 && extents[2] == 80);
    fields[1].halo_high = b_high;
    CHECK_INT(cai_domain_of(fields, 2, "KI", extents, &error), CAI_OK);
    CHECK(extents[0] == 79 && extents[1] == 4 && extents[2] == 80);
    CHECK_INT(cai_domain_of(&fields[1], 1, "IJK", extents, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "no field has the axis 'J'");
    fields[1].halo_high = wide;
    CHECK_INT(cai_domain_of(fields, 2, "IJK", extents, &error), CAI_ERR_SHAPE);
    CHECK_INT(error.index, 1);
    CHECK_INT(cai_domain_of(fields, 2, "IJK", extents, NULL), CAI_ERR_SHAPE);
    fields[1].halo_high = least;
    CHECK_INT(cai_domain_of(fields, 2, "IJK", extents, &error), CAI_ERR_SHAPE);
    CHECK_STR(error.message, "halo_high[0] = -9223372036854775808: what is left is 80");
    fields[1].halo_high = all;
    CHECK_INT(cai_domain_of(fields, 2, "K", zero, &error), CAI_OK);
    CHECK_INT(zero[0], 0);
    turned[0] = fields[1];
    turned[1] = fields[0];
    CHECK_INT(cai_domain_of(turned, 2, "K", zero, &error), CAI_OK); /* what comes later does not raise it */
    CHECK_INT(zero[0], 0);
    fields[1].dims = "K";
    CHECK_INT(cai_domain_of(fields, 2, "IJK", extents, &error), CAI_ERR_ARGUMENT);
    fields[1].dims = NULL;
    CHECK_INT(cai_domain_of(fields, 2, "IJK", extents, &error), CAI_ERR_ARGUMENT);
    fields[1].array = NULL;
    CHECK_INT(cai_domain_of(fields, 2, "IJK", extents, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_domain_of(fields, 0, "IJK", extents, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_domain_of(NULL, 1, "IJK", extents, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_domain_of(fields, 1, NULL, extents, &error), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_domain_of(fields, 1, "IJK", NULL, NULL), CAI_ERR_ARGUMENT);
    CHECK(extents[0] == 79 && extents[1] == 4 && extents[2] == 80); /* what failed stored nothing */
}

static void test_empty(void)
{
    static const int64_t shape[] = {4, 0};
    const cai_dtype dtype = help_void(8);
    cai_layout layout;
    set_shape(&layout, 2, shape, "01");
    layout.alignment = 64;
    CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
    CHECK_INT(layout.nbytes, 0);
    CHECK_INT(cai_layout_offset(&layout, 8), 0);
}

/* -------------------------------------------------------------------- the page */
/* docs/storage.md has these two, word for word: tests/docs/check_docs.py compares them. */
cai_status make_field(int64_t nx, int64_t ny, int64_t nz, void **block, cai_array *field, cai_array *domain,
                      cai_error *err);
cai_status common(const cai_array *field, const cai_array *surface, const int64_t *halo, cai_array *wide,
                  int64_t *domain, cai_error *err);

/* ---- docs/storage.md */
/* A field of float64, nx x ny x nz, with a halo of 3 in I and J. free(*block) ends it. */
cai_status make_field(int64_t nx, int64_t ny, int64_t nz, void **block, cai_array *field, cai_array *domain,
                      cai_error *err)
{
    cai_layout layout;
    cai_dtype dtype;
    uint64_t address;
    memset(&layout, 0, sizeof layout);
    CAI_TRY(cai_dtype_of(CAI_FLOAT64, &dtype, err));
    CAI_TRY(cai_layout_preset(&layout, "gtcuda", "IJK", err));
    layout.alignment = 256; /* bytes; the preset is a beginning */
    layout.shape[0] = nx + 6;
    layout.shape[1] = ny + 6;
    layout.shape[2] = nz;
    layout.halo_low[0] = layout.halo_high[0] = layout.halo_low[1] = layout.halo_high[1] = 3;
    CAI_TRY(cai_layout_plan(&layout, &dtype, err));
    *block = malloc((size_t)layout.nbytes);
    if (*block == NULL) return cai_error_set(CAI_ERR_OUT_OF_MEMORY, "make_field", NULL, err);
    address = (uint64_t)(uintptr_t)*block;
    CAI_TRY(cai_array_init_dtype(field, &dtype, 3, layout.shape, layout.strides,
                                 address + (uint64_t)cai_layout_offset(&layout, address), err));
    return cai_view_domain(field, layout.halo_low, layout.halo_high, domain, err);
}
/* ---- */

/* ---- docs/storage.md */
/* The surface as a field over I, J and K, and the domain of both. */
cai_status common(const cai_array *field, const cai_array *surface, const int64_t *halo, cai_array *wide,
                  int64_t *domain, cai_error *err)
{
    const cai_grid_field fields[2] = {{field, "IJK", halo, halo}, {surface, "JI", NULL, NULL}};
    CAI_TRY(cai_domain_of(fields, 2, "IJK", domain, err));
    return cai_view_dims(surface, "JI", "IJK", wide, err);
}
/* ---- */

static void test_page(void)
{
    static const int64_t surface_shape[] = {8, 40}, halo[] = {3, 3, 0};
    cai_array field, domain, surface, wide;
    int64_t extents[3] = {0, 0, 0};
    void *block = NULL;
    double height[320];
    CHECK_INT(make_field(6, 6, 80, &block, &field, &domain, &error), CAI_OK);
    CHECK(field.strides[0] == 8 && field.strides[1] == 256 && field.strides[2] == 3072);
    CHECK(domain.shape[0] == 6 && domain.shape[1] == 6 && domain.shape[2] == 80);
    CHECK_UINT(domain.data % 256, 0);
    CHECK_UINT(domain.data - field.data, 3 * 8 + 3 * 256);
    CHECK_INT(cai_array_init(&surface, CAI_FLOAT64, 2, surface_shape, NULL, height, &error), CAI_OK);
    CHECK_INT(common(&field, &surface, halo, &wide, extents, &error), CAI_OK);
    CHECK(extents[0] == 6 && extents[1] == 6 && extents[2] == 80);
    CHECK(wide.ndim == 3 && wide.shape[0] == 40 && wide.shape[1] == 8 && wide.strides[2] == 0);
    free(block);
    CHECK_INT(make_field((int64_t)1 << 40, (int64_t)1 << 40, 1, &block, &field, &domain, &error), CAI_ERR_SHAPE);
}

/* ------------------------------------------------------------------ packed dtypes */
/* A layout counts elements. Its values are all in the block, no two at one place, along the innermost axis. */
static void test_packed_plans(void)
{
    static const char *const presets[] = {"C", "F", "gtx86", "gtmc", "gtcuda", "gt:gpu"};
    static unsigned char block[MOST_BYTES], used[8 * MOST_BYTES];
    static model m;
    int32_t round;
    for (round = 0; round < 2000; ++round) {
        const packed_kind *k = random_kind();
        cai_layout layout;
        cai_dtype dtype;
        cai_array array;
        int64_t n;
        int32_t i;
        memset(&layout, 0, sizeof layout);
        CHECK_INT(cai_layout_preset(&layout, presets[round % 6], "IJK", &error), CAI_OK);
        for (i = 0; i < 3; ++i) layout.shape[i] = help_between(2, 5);
        CHECK_INT(cai_dtype_of(k->packed, &dtype, &error), CAI_OK);
        if (k->bytes == 3) layout.alignment = 0; /* no power of two */
        CHECK_INT(cai_layout_plan(&layout, &dtype, &error), CAI_OK);
        CHECK_INT(cai_array_init_dtype(&array, &dtype, 3, layout.shape, layout.strides,
                                       (uint64_t)(uintptr_t)block +
                                           (uint64_t)cai_layout_offset(&layout, (uint64_t)(uintptr_t)block),
                                       &error), CAI_OK);
        CHECK_INT(layout.map[array.packed_axis], 2);
        model_of(&array, k, &m);
        CHECK_INT(m.count, array.size * k->values);
        memset(used, 0, sizeof used);
        for (n = 0; n < m.count * k->bits; ++n) {
            const uint64_t bit = m.bit[n / k->bits] + (uint64_t)(n % k->bits) - 8 * (uint64_t)(uintptr_t)block;
            if (!CHECK(bit < 8 * (uint64_t)layout.nbytes && !used[bit])) break;
            used[bit] = 1;
        }
        CHECK_INT(cai_layout_check(&layout, &array, &error), CAI_OK);
        CHECK_INT(cai_layout_of(&array, &layout, &error), CAI_OK);
        for (i = 0; i < 3; ++i) CHECK(layout.shape[i] == array.shape[i] && layout.strides[i] == array.strides[i]);
    }
}

/* A halo counts elements, too. What is behind the domain may have unused bits. */
static void test_packed_domains(void)
{
    static unsigned char block[MOST_BYTES];
    static model whole, part, want, got;
    int32_t round;
    for (round = 0; round < 5000; ++round) {
        const packed_kind *k = random_kind();
        int64_t shape[3], low[3], high[3];
        int32_t ndim, i;
        const int32_t axis = random_values(k, &ndim, shape);
        cai_array array, view;
        CHECK_INT(cai_array_init_packed(&array, k->packed, ndim, shape, axis, NULL, block, &error), CAI_OK);
        model_of(&array, k, &whole);
        want = whole;
        for (i = 0; i < ndim; ++i) {
            const int64_t values = i == axis ? k->values : 1;
            int64_t end;
            low[i] = help_between(0, array.shape[i]);
            high[i] = help_between(0, array.shape[i] - low[i]);
            end = (array.shape[i] - high[i]) * values;
            if (end > shape[i]) end = shape[i];
            if (low[i] + high[i] == array.shape[i]) end = low[i] * values;
            part = want;
            model_take(&part, i, low[i] * values, end - low[i] * values, &want);
        }
        CHECK_INT(cai_view_domain(&array, low, high, &view, &error), CAI_OK);
        CHECK_INT(cai_array_check(&view, &error), CAI_OK);
        model_of(&view, k, &got);
        CHECK_INT(got.count, want.count);
        CHECK_BYTES(got.bit, want.bit, (size_t)want.count * sizeof want.bit[0]);
    }
}

/* The packed axis keeps its values wherever it goes, and is not dropped. */
static void test_packed_dims(void)
{
    static unsigned char block[64];
    static const int64_t shape[2] = {3, 7}, one[2] = {3, 2};
    cai_array array, view;
    CHECK_INT(cai_array_init_packed(&array, CAI_INT4_X2, 2, shape, 1, NULL, block, &error), CAI_OK);
    CHECK_INT(cai_view_dims(&array, "IJ", "JKI", &view, &error), CAI_OK);
    CHECK(view.packed_axis == 0 && view.packed_extent == 7 && view.shape[0] == 4 && view.strides[0] == 1);
    CHECK_INT(cai_array_init_packed(&array, CAI_INT4_X2, 2, one, 1, NULL, block, &error), CAI_OK);
    CHECK_INT(cai_view_dims(&array, "IJ", "I", &view, &error), CAI_ERR_VIEW);
    CHECK_STR(error.message, "axis 1 cannot be dropped: an element is 2 values (as bytes: cai_view_reinterpret)");
}

int main(int count, char **arguments)
{
    const int64_t plans = count > 1 ? atoll(arguments[1]) : 200000;
    if (count > 2) help_random_state = (uint64_t)atoll(arguments[2]);
    test_figures();
    test_presets();
    test_presets_refused();
    test_alignment_in_items();
    test_random(plans);
    test_again();
    test_refused();
    test_large();
    test_given();
    test_given_alignment();
    test_permute();
    test_domain_view();
    test_dims();
    test_domain_of();
    test_packed_plans();
    test_packed_domains();
    test_packed_dims();
    test_page();
    CHECK_INT(cai_layout_offset(NULL, 8), 0);
    test_empty();
    return cai_test_end();
}
