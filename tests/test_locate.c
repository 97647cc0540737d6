/* test_locate.c - where arrays live: edges of allocations, masks, tables that lack something.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"
#if !defined(CAI_SIM_LINKED)
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { BYTES = 1024 };

static cai_sim *sim;
static cai_cuda cuda;
static cai_array a, mask;
static cai_location where;
static cai_error err;
static uint64_t c1, c2, m1, m2; /* contexts, and BYTES of memory in each */
static char plain[BYTES];

static uint64_t alloc(uint64_t context, int32_t kind)
{
    uint64_t address;
    CHECK_INT(cai_sim_set_context(sim, context), 0);
    address = cai_sim_alloc(sim, kind, BYTES);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK(address != 0);
    return address;
}

static void open_sim(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    cuda = *cai_sim_cuda(sim);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    m1 = alloc(c1, CAI_SIM_MEM_DEVICE);
    m2 = alloc(c2, CAI_SIM_MEM_DEVICE);
    cai_sim_log_clear(sim);
}

static void make(cai_array *array, uint64_t data, int32_t ndim, int64_t extent, int64_t stride)
{
    const int64_t shape[2] = {extent, 1}, strides[2] = {stride, 4};
    cai_dtype dtype;
    CHECK_INT(cai_dtype_of(CAI_FLOAT32, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(array, &dtype, ndim, shape, strides, data, NULL), CAI_OK);
}

static void logged(const char *expected)
{
    CHECK_STR(cai_sim_log(sim), expected);
    cai_sim_log_clear(sim);
}

/* An array with a bound: INSIDE, or CAI_ERR_MEMORY with nothing stored. */
static void bounded(uint64_t data, int32_t ndim, int64_t extent, int64_t stride, cai_status status)
{
    cai_location before;
    memset(&where, 0x5a, sizeof where);
    before = where;
    make(&a, data, ndim, extent, stride);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), status);
    CHECK_INT(a.memory, status ? CAI_MEMORY_UNKNOWN : CAI_MEMORY_DEVICE);
    CHECK_INT(a.device, status ? CAI_DEVICE_UNKNOWN : 0);
    if (status) {
        CHECK_BYTES(&where, &before, sizeof where);
        CHECK_INT(err.code, CAI_ERR_MEMORY);
        CHECK_INT(err.entry, CAI_ENTRY_DATA);
        CHECK(strstr(err.message, " of an allocation of 1024 bytes are not all in it") != NULL);
    } else {
        CHECK_INT(where.bounds, CAI_BOUNDS_INSIDE);
        CHECK_UINT(where.base, m1);
        CHECK_UINT(where.nbytes, BYTES);
        CHECK_UINT(where.data, data);
    }
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK); /* unasked, nothing is checked */
    CHECK_INT(where.bounds, CAI_BOUNDS_UNKNOWN);
    CHECK_UINT(where.base | where.nbytes, 0);
}

static void check_edges(void)
{
    int64_t n;
    open_sim();
    for (n = 1; n <= 256; n++) {
        bounded(m1 + (uint64_t)(BYTES - 4 * n), 1, n, 4, CAI_OK);            /* ends with the allocation */
        bounded(m1 + (uint64_t)(BYTES - 4 * n) + 1, 1, n, 4, CAI_ERR_MEMORY); /* one byte later */
        bounded(m1 + (uint64_t)(4 * (n - 1)), 1, n, -4, CAI_OK);             /* starts with it, backwards */
    }
    for (n = 2; n <= 256; n++) bounded(m1 + (uint64_t)(4 * (n - 1)) - 1, 1, n, -4, CAI_ERR_MEMORY);
    bounded(m1, 1, 257, 4, CAI_ERR_MEMORY);
    bounded(m1 + 1020, 0, 1, 0, CAI_OK); /* a scalar */
    bounded(m1 + 1021, 0, 1, 0, CAI_ERR_MEMORY);
    bounded(m1 + 1020, 1, 1000000, 0, CAI_OK); /* all in one place */
    bounded(m1, 2, 2, 1020, CAI_OK);
    bounded(m1, 2, 2, 1021, CAI_ERR_MEMORY);
    bounded(m1 + 1020, 2, 2, -1020, CAI_OK);
    bounded(m1 + 1020, 2, 2, -1021, CAI_ERR_MEMORY);
    bounded(m1, 1, 2, (int64_t)1 << 46, CAI_ERR_MEMORY);
    bounded(m1 + 1020, 1, 2, -16384, CAI_ERR_MEMORY);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ other answers of CUDA */

static uint64_t told_base, told_size;

static int32_t told_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self;
    memset(info, 0, sizeof *info);
    info->memory = CAI_MEMORY_DEVICE;
    info->device_pointer = pointer;
    return 0;
}

static int32_t told_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    (void)self;
    (void)pointer;
    *base = told_base;
    *size = told_size;
    return 0;
}

static cai_status told(uint64_t data, int64_t extent, int64_t stride, uint64_t base, uint64_t size)
{
    told_base = base;
    told_size = size;
    make(&a, data, 1, extent, stride);
    return cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, NULL, NULL);
}

/* At both ends of the address space, and answers that cannot be. */
static void check_far_addresses(void)
{
    const uint64_t top = UINT64_MAX - 1023;
    const int64_t half = INT64_MAX / 8 * 4;
    open_sim();
    cuda.pointer_info = told_info;
    cuda.pointer_range = told_range;
    CHECK_INT(told(top, 256, 4, top, 1024), CAI_OK);
    CHECK_INT(told(top, 256, 4, top, 1023), CAI_ERR_MEMORY);
    CHECK_INT(told(top, 256, 4, top + 4, 1020), CAI_ERR_MEMORY);
    CHECK_INT(told(top + 1020, 256, -4, top, 1024), CAI_OK);
    CHECK_INT(told(top + 1020, 256, -4, top + 1, 1023), CAI_ERR_MEMORY);
    CHECK_INT(told(4096, 2, half, 0, UINT64_MAX), CAI_OK);
    CHECK_INT(told(4096, 2, half, 4096, (uint64_t)half + 4), CAI_OK);
    CHECK_INT(told(4096, 2, half, 4096, (uint64_t)half + 3), CAI_ERR_MEMORY);
    CHECK_INT(told((uint64_t)half + 4096, 2, -half, 4096, (uint64_t)half + 4), CAI_OK);
    CHECK_INT(told((uint64_t)half + 4096, 2, -half, 4097, (uint64_t)half + 4), CAI_ERR_MEMORY);
    CHECK_INT(told(top, 256, 4, 0, UINT64_MAX), CAI_ERR_MEMORY); /* the last byte of all is not in it */
    CHECK_INT(told(top, 255, 4, 0, UINT64_MAX), CAI_OK);
    CHECK_INT(told(8192, 1, 4, 4096, 4096), CAI_ERR_MEMORY); /* not in what was told at all */
    CHECK_INT(told(8192, 1, 4, 4096, 0), CAI_ERR_MEMORY);
    CHECK_INT(told(8192, 1, 4, 8196, 4096), CAI_ERR_MEMORY);
    cai_sim_destroy(sim);
}

/* Backwards, and over the end all the same. */
static void check_both_ends(void)
{
    open_sim();
    bounded(m1 + 1022, 1, 2, -4, CAI_ERR_MEMORY);
    bounded(m1 + 1020, 1, 2, -4, CAI_OK);
    cai_sim_destroy(sim);
}

static int32_t no_address(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    const int32_t error = told_info(self, pointer, info);
    info->device_pointer = 0;
    return error;
}

/* Where CUDA tells no address of device memory, that of the array is the one. */
static void check_no_address(void)
{
    open_sim();
    cuda.pointer_info = no_address;
    make(&a, m1, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK);
    CHECK_UINT(where.data, m1);
    cai_sim_destroy(sim);
}

/* An allocation that CUDA does not know is no error: bounds stay unknown. */
static void check_unknown_range(void)
{
    const int32_t errors[3] = {1, 201, 500};
    int32_t i;
    open_sim();
    make(&a, m1, 1, 10, 4);
    for (i = 0; i < 3; i++) {
        CHECK_INT(cai_sim_fail_op(sim, "pointer_range", 1, errors[i]), 1);
        CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
        CHECK_INT(where.bounds, CAI_BOUNDS_UNKNOWN);
        CHECK_UINT(where.base | where.nbytes, 0);
    }
    CHECK_INT(cai_sim_fail_op(sim, "pointer_range", 1, 700), 1);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "pointer_range: CUDA error 700 (illegal address)");
    cuda.pointer_range = NULL;
    make(&a, m1, 1, 100000, 4);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(where.bounds, CAI_BOUNDS_UNKNOWN);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ masks, empty arrays */

static void check_masks(void)
{
    cai_location before;
    open_sim();
    make(&a, m1, 1, 10, 4);
    make(&mask, m1 + 512, 1, 10, 4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    logged("pointer_info m1 -> device 0 c1\npointer_range m1 -> m1 1024\n"
           "pointer_info m1+512 -> device 0 c1\npointer_range m1+512 -> m1 1024\n");
    CHECK_INT(mask.memory, CAI_MEMORY_DEVICE);
    CHECK_INT(mask.device, 0);
    CHECK_UINT(where.data, m1); /* of the array */
    make(&a, m1, 1, 10, 4);
    memset(&where, 0x5a, sizeof where);
    before = where;
    make(&mask, m2, 1, 10, 4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is on device 0 and its mask on device 1") != NULL);
    make(&mask, m1 + 1000, 1, 10, 4); /* out of its allocation */
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_MEMORY);
    make(&mask, (uint64_t)(uintptr_t)plain, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    make(&mask, m1, 1, 10, 4);
    CHECK_INT(cai_sim_fail_op(sim, "pointer_info", 2, 999), 1);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_BYTES(&where, &before, sizeof where); /* after all these, nothing was stored */
    CHECK_INT(a.memory | mask.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(a.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(mask.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(cai_locate(&a, &cuda, 0, NULL, NULL), CAI_OK);
    CHECK_INT(mask.memory, CAI_MEMORY_DEVICE);
    cai_sim_destroy(sim);
}

/* Memory that devices share may be of another device than its mask. */
static void check_shared_masks(void)
{
    uint64_t managed, pinned;
    open_sim();
    managed = alloc(c2, CAI_SIM_MEM_MANAGED);
    pinned = alloc(c2, CAI_SIM_MEM_PINNED);
    make(&a, m1, 1, 10, 4);
    make(&mask, managed, 1, 10, 4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(mask.memory, CAI_MEMORY_MANAGED);
    CHECK_INT(mask.device, 1);
    make(&mask, pinned, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(mask.memory, CAI_MEMORY_PINNED);
    cai_sim_destroy(sim);
}

static void check_empty(void)
{
    open_sim();
    make(&a, (uint64_t)(uintptr_t)plain, 1, 0, 4);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS | CAI_LOCATE_PAGEABLE, &where, &err), CAI_OK);
    CHECK_INT(where.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(where.device, CAI_DEVICE_UNKNOWN);
    CHECK_UINT(where.data | where.base | where.nbytes | where.context, 0);
    make(&mask, m1, 1, 0, 4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cuda.pointer_info = NULL;
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    logged("");
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ arguments, slots */

static void refused(cai_status got, cai_status status, const char *sentence)
{
    CHECK_INT(got, status);
    CHECK_INT(err.code, status);
    CHECK_STR(err.message, sentence);
    logged("");
}

static void check_arguments(void)
{
    char sentence[120];
    open_sim();
    make(&a, m1, 1, 10, 4);
    refused(cai_locate(&a, NULL, 0, &where, &err), CAI_ERR_ARGUMENT, "cuda is NULL");
    refused(cai_locate(NULL, &cuda, 0, &where, &err), CAI_ERR_ARGUMENT, "array is NULL");
    refused(cai_locate(&a, &cuda, 4, &where, &err), CAI_ERR_ARGUMENT,
            "cai_locate: flags = 0x4 has unknown bits");
    cuda.version = 2;
    sprintf(sentence, "a CUDA table of version 2 and %d bytes; this header knows version 1 of %d bytes",
            (int)sizeof cuda, (int)sizeof cuda);
    refused(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_ABI, sentence);
    cuda.version = CAI_CUDA_VERSION;
    a.ndim = 65;
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_ABI);
    a.ndim = 1;
    cuda.pointer_info = NULL;
    refused(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_UNAVAILABLE,
            "the CUDA table has no pointer_info");
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, NULL), CAI_ERR_UNAVAILABLE);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    cai_sim_destroy(sim);
}

static void check_pageable(void)
{
    open_sim();
    make(&a, (uint64_t)(uintptr_t)plain, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is plain host memory, or was freed") != NULL);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "the current device cannot read such memory") != NULL);
    cai_sim_set_pageable_access(sim, 1, 1); /* another device can */
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_MEMORY);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    cai_sim_set_pageable_access(sim, 0, 1);
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_PAGEABLE | CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(a.memory, CAI_MEMORY_HOST);
    CHECK_UINT(where.data, a.data);
    CHECK_INT(where.bounds, CAI_BOUNDS_UNKNOWN);
    cuda.context_device = NULL;
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_MEMORY);
    cuda = *cai_sim_cuda(sim);
    cuda.pageable_access = NULL;
    CHECK_INT(cai_locate(&a, &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_UNAVAILABLE);
    CHECK_STR(err.message, "the CUDA table has no pageable_access");
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    cai_sim_destroy(sim);
}

static void check_pools(void)
{
    uint64_t pooled;
    open_sim();
    pooled = alloc(c2, CAI_SIM_MEM_POOL);
    make(&a, pooled, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.needs_peer, 1);
    CHECK_INT(where.device, 1);
    CHECK_UINT(where.context, 0);
    logged("pointer_info m3 -> device 1 none\ncontext_device -> 0\n");
    cuda.context_device = NULL;
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.needs_peer, 0);
    cuda = *cai_sim_cuda(sim);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.needs_peer, 0);
    make(&a, m1, 1, 10, 4); /* no pool: peer access is not the matter of this */
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.needs_peer, 0);
    CHECK_INT(where.device, 0);
    cai_sim_destroy(sim);
}

/* Memory with another address for devices: that one is told, bounds are those of the address given. */
static void check_addresses(void)
{
    uint64_t aliased, registered, texture;
    open_sim();
    aliased = alloc(c1, CAI_SIM_MEM_ALIASED);
    registered = alloc(c1, CAI_SIM_MEM_REGISTERED);
    texture = alloc(c1, CAI_SIM_MEM_ARRAY);
    make(&a, aliased + 8, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.memory, CAI_MEMORY_PINNED);
    CHECK(where.data != 0 && where.data != a.data);
    CHECK_UINT(a.data, aliased + 8); /* stays */
    make(&a, registered, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " has no address for devices") != NULL);
    make(&a, texture, 1, 10, 4);
    CHECK_INT(cai_locate(&a, &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is a CUDA array (a texture)") != NULL);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    cai_sim_destroy(sim);
}

static void run(void)
{
    check_edges();
    check_far_addresses();
    check_both_ends();
    check_no_address();
    check_unknown_range();
    check_masks();
    check_shared_masks();
    check_empty();
    check_arguments();
    check_pageable();
    check_pools();
    check_addresses();
}

CAI_TEST_MAIN(run)
