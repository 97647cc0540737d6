/* test_kernel.c - kernel views and their accessors.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

enum { MEMORY = 1 << 16 };

static char memory[MEMORY];
static cai_array a;
static cai_kernel_view view;
static cai_error err;

static void check_view(void)
{
    int32_t i;
    help_fill(&view, sizeof view);
    help_fill(&err, sizeof err);
    CHECK_INT(cai_kernel_view_of(&a, &view, &err), CAI_OK);
    CHECK(help_filled(&err, sizeof err));
    CHECK_INT(view.ndim, a.ndim);
    CHECK_INT(view.itemsize, a.dtype.itemsize);
    CHECK_UINT((uintptr_t)view.data, a.data);
    for (i = 0; i < 8; i++) {
        CHECK_INT(view.shape[i], i < a.ndim ? a.shape[i] : 1);
        CHECK_INT(view.strides[i], i < a.ndim ? a.strides[i] : 0);
    }
}

/* Accessors give the addresses of the elements. */
static void check_addresses(void)
{
    static uint64_t at[HELP_ELEMENTS];
    int64_t count = help_addresses(&a, at), n, i, j, k;
    for (n = 0; n < count; n++) CHECK_UINT((uintptr_t)cai_kernel_element(&view, n), at[n]);
    n = 0;
    for (i = 0; a.ndim == 1 && i < a.shape[0]; i++, n++) {
        CHECK_UINT((uintptr_t)cai_kernel_at1(&view, i), at[n]);
    }
    for (i = 0; a.ndim == 2 && i < a.shape[0]; i++) {
        for (j = 0; j < a.shape[1]; j++, n++) {
            CHECK_UINT((uintptr_t)cai_kernel_at2(&view, i, j), at[n]);
        }
    }
    for (i = 0; a.ndim == 3 && i < a.shape[0]; i++) {
        for (j = 0; j < a.shape[1]; j++) {
            for (k = 0; k < a.shape[2]; k++, n++) {
                CHECK_UINT((uintptr_t)cai_kernel_at3(&view, i, j, k), at[n]);
            }
        }
    }
}

/* Every number of axes, C order and strides of any sign. */
static void check_ranks(void)
{
    int64_t shape[8], strides[8];
    int32_t ndim, i;
    int round;
    for (round = 0; round < 60; round++) {
        for (ndim = 0; ndim <= 8; ndim++) {
            for (i = 0; i < ndim; i++) {
                shape[i] = help_between(1, ndim > 4 ? 2 : 4);
                strides[i] = help_between(-200, 200);
            }
            CHECK_INT(cai_array_init(&a, round % 2 ? CAI_FLOAT32 : CAI_UINT8, ndim, shape,
                                     round % 3 ? strides : NULL, memory + MEMORY / 2, NULL),
                      CAI_OK);
            check_view();
            check_addresses();
        }
    }
}

static void check_empty(void)
{
    const int64_t shape[3] = {2, 0, 3};
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 3, shape, NULL, memory, NULL), CAI_OK);
    check_view();
    CHECK(view.data == NULL);
    CHECK_INT(view.shape[1], 0);
}

/* Reads and writes through a view of a view. */
static void check_values(void)
{
    const int64_t shape[2] = {3, 4};
    static int32_t numbers[12];
    cai_array flipped;
    int32_t i;
    for (i = 0; i < 12; i++) numbers[i] = i;
    CHECK_INT(cai_array_init(&a, CAI_INT32, 2, shape, NULL, numbers, NULL), CAI_OK);
    CHECK_INT(cai_view_permute(&a, NULL, &flipped, NULL), CAI_OK);
    CHECK_INT(cai_view_slice(&flipped, 0, 3, 4, -1, &a, NULL), CAI_OK);
    check_view();
    for (i = 0; i < 12; i++) {
        int32_t value;
        memcpy(&value, cai_kernel_at2(&view, i / 3, i % 3), sizeof value);
        CHECK_INT(value, i % 3 * 4 + 3 - i / 3);
        memcpy(&value, cai_kernel_element(&view, i), sizeof value);
        CHECK_INT(value, i % 3 * 4 + 3 - i / 3);
    }
}

static void check_refused(cai_status wanted)
{
    help_fill(&view, sizeof view);
    CHECK_INT(cai_kernel_view_of(&a, &view, &err), wanted);
    CHECK_INT(err.code, wanted);
    CHECK_INT(cai_kernel_view_of(&a, &view, NULL), wanted);
    CHECK(help_filled(&view, sizeof view));
}

static void check_refusals(void)
{
    int64_t shape[64];
    int32_t ndim;
    cai_dtype bit = help_dtype("|t1");
    for (ndim = 0; ndim < 64; ndim++) shape[ndim] = 1 + ndim % 2 * (ndim < 9);
    for (ndim = 9; ndim <= 64; ndim++) {
        CHECK_INT(cai_array_init(&a, CAI_FLOAT32, ndim, shape, NULL, memory, NULL), CAI_OK);
        check_refused(CAI_ERR_VIEW);
        CHECK_INT(cai_view_coalesce(&a, &a, NULL), CAI_OK); /* as the manual advises */
        check_view();
    }
    CHECK_INT(cai_array_init_dtype(&a, &bit, 1, shape, NULL, 4096, NULL), CAI_OK);
    check_refused(CAI_ERR_VIEW);
    a.abi = 3;
    check_refused(CAI_ERR_ABI);
}

/* An address that this machine cannot point to. */
static void check_wide_address(void)
{
    cai_dtype dtype = help_dtype("@f4");
    uint64_t address = (uint64_t)1 << 40;
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 0, NULL, NULL, address, NULL), CAI_OK);
    if (sizeof(void *) < 8) {
        check_refused(CAI_ERR_VIEW);
    } else {
        check_view();
    }
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 0, NULL, NULL, UINTPTR_MAX - 3, NULL), CAI_OK);
    check_view();
}

/* Neither mask nor stream nor read-only matters here. */
static void check_indifferent(void)
{
    cai_array mask;
    cai_import_options options;
    memset(&options, 0, sizeof options);
    options.mask = &mask;
    help_reset();
    CHECK_INT(cai_import(help_dict("data=(4096,True); stream=7; mask={shape=(3,); typestr='|b1';"
                                   "data=(8192,True); version=3}"), &options, &a, NULL), CAI_OK);
    check_view();
    a = mask;
    check_view();
}

static void check_constants(void)
{
    CHECK_INT(CAI_MAX_KERNEL_NDIM, 8);
    CHECK_INT(sizeof view.shape / sizeof view.shape[0], CAI_MAX_KERNEL_NDIM);
    CHECK_INT(sizeof view.strides / sizeof view.strides[0], CAI_MAX_KERNEL_NDIM);
}

static void run(void)
{
    check_constants();
    check_ranks();
    check_empty();
    check_values();
    check_refusals();
    check_wide_address();
    check_indifferent();
}

CAI_TEST_MAIN(run)
