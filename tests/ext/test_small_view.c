/* test_small_view.c - ext/cai_small_view.h beside cai_kernel_view
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai_small_view.h"
#include "cai_test.h"
#include "cai_test_help.h"
#include "packed_model.h"

/* Compares all elements of a small view with those of a kernel view. */
static void check_elements(const cai_array *array)
{
    cai_kernel_view view;
    cai_small_view small;
    int64_t n;
    int32_t i;
    CHECK_INT(cai_kernel_view_of(array, &view, NULL), CAI_OK);
    CHECK_INT(cai_small_view_of(array, &small, NULL), CAI_OK);
    CHECK(small.data == view.data);
    CHECK_INT(small.ndim, view.ndim);
    CHECK_INT(small.itemsize, view.itemsize);
    for (i = 0; i < 4; i++) CHECK_INT(small.shape[i], view.shape[i]);
    for (i = 0; i < 4; i++) CHECK_INT(small.strides[i], view.strides[i]);
    for (n = 0; n < array->size; n++) CHECK(cai_small_element(&small, n) == cai_kernel_element(&view, n));
    if (array->size == 0) return;
    CHECK(cai_small_at1(&small, 1) == cai_kernel_at1(&view, 1));
    CHECK(cai_small_at2(&small, 1, 2) == cai_kernel_at2(&view, 1, 2));
    CHECK(cai_small_at3(&small, 1, 2, 3) == cai_kernel_at3(&view, 1, 2, 3));
}

static void check_views(void)
{
    static char memory[4096];
    static const int64_t shapes[][4] = {{2, 3, 4, 5}, {7, 1, 2, 3}, {0, 3, 4, 5}};
    int32_t ndim, reversed;
    size_t i;
    for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (ndim = 0; ndim <= 4; ndim++)
            for (reversed = 0; reversed < 2; reversed++) {
                cai_array array;
                CHECK_INT(cai_array_init(&array, CAI_FLOAT32, ndim, shapes[i], NULL, memory, NULL), CAI_OK);
                if (reversed) CHECK_INT(cai_view_permute(&array, NULL, &array, NULL), CAI_OK);
                check_elements(&array);
            }
}

/* Elements again, whichever axis has the values: those of a kernel view, which test_packed.c compares by bits. */
static void check_packed(void)
{
    static unsigned char memory[4096];
    int32_t round;
    for (round = 0; round < 2000; round++) {
        const packed_kind *k = random_kind();
        int64_t shape[3];
        int32_t ndim;
        const int32_t axis = random_values(k, &ndim, shape);
        cai_array array;
        CHECK_INT(cai_array_init_packed(&array, k->packed, ndim, shape, axis, NULL, memory, NULL), CAI_OK);
        if (round % 2) CHECK_INT(cai_view_permute(&array, NULL, &array, NULL), CAI_OK);
        check_elements(&array);
    }
}

static void check_refusals(void)
{
    static char memory[64];
    static const int64_t shape[5] = {1, 2, 3, 4, 2};
    cai_small_view small, before;
    cai_array array;
    cai_dtype bits;
    cai_error err;
    memset(&small, 0x5a, sizeof small);
    before = small;
    CHECK_INT(cai_small_view_of(NULL, &small, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_array_init(&array, CAI_INT8, 5, shape, NULL, memory, NULL), CAI_OK);
    CHECK_INT(cai_small_view_of(&array, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_small_view_of: out is NULL");
    CHECK_INT(cai_small_view_of(&array, &small, NULL), CAI_ERR_VIEW);
    CHECK_INT(cai_small_view_of(&array, &small, &err), CAI_ERR_VIEW);
    CHECK_STR(err.message, "the array has 5 dimensions, a small view at most 4: cai_view_coalesce may merge some");
    CHECK_INT(err.entry, CAI_ENTRY_SHAPE);
    CHECK_INT(err.index, 4);
    CHECK_INT(cai_dtype_parse("|t4", 3, 0, &bits, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&array, &bits, 1, shape + 4, NULL, 4096, NULL), CAI_OK);
    CHECK_INT(cai_small_view_of(&array, &small, &err), CAI_ERR_VIEW);
    CHECK_BYTES(&small, &before, sizeof small);
}

static void run(void)
{
    CHECK(sizeof(cai_small_view) <= 80);
    CHECK(sizeof(void *) != 8 || 4096 / sizeof(cai_small_view) == 51);
    CHECK(sizeof(void *) != 8 || 4096 / sizeof(cai_kernel_view) == 28);
    check_views();
    check_packed();
    check_refusals();
}

CAI_TEST_MAIN(run)
