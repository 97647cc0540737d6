/* test_locate.c - where arrays live: edges of allocations, masks, tables that lack something.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
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
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), status);
    CHECK_INT(a.memory, status ? CAI_MEMORY_UNKNOWN : CAI_MEMORY_DEVICE);
    CHECK_INT(a.device, status ? CAI_DEVICE_UNKNOWN : 0);
    if (status) {
        CHECK_BYTES(&where, &before, sizeof where);
        CHECK_INT(err.code, CAI_ERR_MEMORY);
        CHECK_INT(err.entry, CAI_ENTRY_DATA);
        CHECK(strstr(err.message, " of an allocation of 1024 bytes") != NULL);
    } else {
        CHECK_INT(where.bounds, CAI_BOUNDS_INSIDE);
        CHECK_UINT(where.base, m1);
        CHECK_UINT(where.nbytes, BYTES);
        CHECK_UINT(where.data, data);
    }
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK); /* unasked, nothing is checked */
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
    info->context = c1;
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
    return cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, NULL, NULL);
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
    CHECK_INT(told(8192, 1, 4, 4096, 0), CAI_OK); /* nothing was told */
    CHECK_INT(told(8192, 1, 4, 8196, 4096), CAI_ERR_MEMORY);
    cai_sim_destroy(sim);
}

/* Backwards, and over the end all the same. */
static void check_both_ends(void)
{
    open_sim();
    bounded(m1 + 1022, 1, 2, -4, CAI_ERR_MEMORY);
    make(&a, m1 + 1020, 1, 3, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, ": the array reaches byte 1032 of an allocation of 1024 bytes") != NULL);
    make(&a, m1, 1, 3, -4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, ": the array reaches byte -8 of an allocation of 1024 bytes") != NULL);
    bounded(m1 + 1020, 1, 2, -4, CAI_OK);
    cai_sim_destroy(sim);
}

static int32_t low_address(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    const int32_t error = told_info(self, pointer, info);
    info->device_pointer = 4;
    return error;
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
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
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
        CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
        CHECK_INT(where.bounds, CAI_BOUNDS_UNKNOWN);
        CHECK_UINT(where.base | where.nbytes, 0);
    }
    CHECK_INT(cai_sim_fail_op(sim, "pointer_range", 1, 500), 1);
    CHECK_INT(cai_sim_fail_op(sim, "context_current", 1, 700), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_fail_op(sim, "pointer_range", 1, 700), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "a: pointer_range: CUDA error 700 (illegal address) of an earlier operation");
    cuda.pointer_range = NULL;
    make(&a, m1, 1, 100000, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
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
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
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
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is on device 0 and its mask on device 1") != NULL);
    make(&mask, m1 + 1000, 1, 10, 4); /* out of its allocation */
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_MEMORY);
    make(&mask, (uint64_t)(uintptr_t)plain, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    make(&mask, m1, 1, 10, 4);
    CHECK_INT(cai_sim_fail_op(sim, "pointer_info", 2, 999), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_BYTES(&where, &before, sizeof where); /* after all these, nothing was stored */
    CHECK_INT(a.memory | mask.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(a.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(mask.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, NULL, NULL), CAI_OK);
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
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(mask.memory, CAI_MEMORY_MANAGED);
    CHECK_INT(mask.device, 1);
    make(&mask, pinned, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(mask.memory, CAI_MEMORY_PINNED);
    cai_sim_destroy(sim);
}

static void check_empty(void)
{
    open_sim();
    make(&a, (uint64_t)(uintptr_t)plain, 1, 0, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS | CAI_LOCATE_PAGEABLE, &where, &err), CAI_OK);
    CHECK_INT(where.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(where.device, CAI_DEVICE_UNKNOWN);
    CHECK_UINT(where.data | where.base | where.nbytes | where.context, 0);
    make(&mask, m1, 1, 0, 4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
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
    refused(cai_locate(&a, "a", NULL, 0, &where, &err), CAI_ERR_ARGUMENT, "cuda is NULL");
    refused(cai_locate(NULL, "weights", &cuda, 0, &where, &err), CAI_ERR_ARGUMENT, "weights: array is NULL");
    refused(cai_locate(&a, NULL, &cuda, 0, &where, &err), CAI_ERR_ARGUMENT, "cai_locate: name is NULL");
    refused(cai_locate(&a, "a", &cuda, 8, &where, &err), CAI_ERR_ARGUMENT,
            "cai_locate: flags = 0x8 has unknown bits");
    cuda.version = 2;
    sprintf(sentence, "the CUDA table has version 2 and %d bytes, this header needs version 1 and at least %d bytes",
            (int)sizeof cuda, (int)offsetof(cai_cuda, context_current));
    refused(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_ABI, sentence);
    cuda.version = CAI_CUDA_VERSION;
    a.ndim = 65;
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_ABI);
    a.ndim = 1;
    cuda.pointer_info = NULL;
    refused(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_UNAVAILABLE,
            "the CUDA table has no pointer_info");
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, NULL), CAI_ERR_UNAVAILABLE);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    cai_sim_destroy(sim);
}

static void check_pageable(void)
{
    open_sim();
    make(&a, (uint64_t)(uintptr_t)plain, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is plain host memory, or was freed") != NULL);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "the current device cannot read such memory") != NULL);
    cai_sim_set_device_attribute(sim, 1, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1); /* another device can */
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_MEMORY);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    cai_sim_set_device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_PAGEABLE | CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(a.memory, CAI_MEMORY_HOST);
    CHECK_UINT(where.data, a.data);
    CHECK_INT(where.bounds, CAI_BOUNDS_UNKNOWN);
    cuda.device_attribute = NULL;
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_UNAVAILABLE);
    CHECK_STR(err.message, "a: the CUDA table has no device_attribute");
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    cai_sim_destroy(sim);
}

static void check_pools(void)
{
    uint64_t pooled;
    open_sim();
    pooled = alloc(c2, CAI_SIM_MEM_POOL);
    make(&a, pooled, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.needs_peer, 1);
    CHECK_INT(where.device, 1);
    CHECK_UINT(where.context, 0);
    logged("pointer_info m3 -> device 1 none\ncontext_current -> c1\ncontext_device -> 0\n");
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.needs_peer, 0);
    make(&a, m1, 1, 10, 4); /* no pool: peer access is not the matter of this */
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
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
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_INT(where.memory, CAI_MEMORY_PINNED);
    CHECK(where.data != 0 && where.data != a.data);
    CHECK_UINT(a.data, aliased + 8); /* stays */
    make(&a, registered, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " has no address for devices") != NULL);
    make(&a, texture, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is a CUDA array (a texture)") != NULL);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ without a current context */

/* No context is current from here on: what is asked then, beside the options that the environment asks
 * for. */
static void set_none_current(uint32_t answers)
{
    const uint32_t either = CAI_SIM_NEED_CONTEXT | CAI_SIM_ZERO_ANSWERS;
    cai_sim_set_options(sim, (cai_sim_options(sim) & ~either) | answers);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    cai_sim_log_clear(sim);
}

/* No context is current before and after, and none was made. */
static void close_none_current(void)
{
    uint64_t current = 1;
    CHECK_INT(cuda.context_current(cuda.self, &current), 0);
    CHECK_UINT(current, 0);
    cai_sim_destroy(sim);
}

static void located(uint64_t data, int32_t memory, int32_t device)
{
    memset(&where, 0x5a, sizeof where);
    make(&a, data, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_INT(a.memory, memory);
    CHECK_INT(a.device, device);
    CHECK_INT(where.bounds, CAI_BOUNDS_INSIDE);
    CHECK_UINT(where.nbytes, BYTES);
}

/* Every kind of memory of both devices, told as if a context were current, bounds too. */
static void check_no_context(void)
{
    const uint32_t options[2] = {CAI_SIM_NEED_CONTEXT, CAI_SIM_ZERO_ANSWERS};
    int32_t i;
    for (i = 0; i < 2; i++) {
        uint64_t pinned, aliased, registered, managed, pooled, mapped;
        open_sim();
        pinned = alloc(c1, CAI_SIM_MEM_PINNED);
        aliased = alloc(c2, CAI_SIM_MEM_ALIASED);
        registered = alloc(c2, CAI_SIM_MEM_REGISTERED);
        managed = alloc(c2, CAI_SIM_MEM_MANAGED);
        pooled = alloc(c2, CAI_SIM_MEM_POOL);
        mapped = alloc(c2, CAI_SIM_MEM_VIRTUAL);
        set_none_current(options[i]);
        located(m1, CAI_MEMORY_DEVICE, 0);
        located(m2, CAI_MEMORY_DEVICE, 1);
        located(managed, CAI_MEMORY_MANAGED, 1);
        located(mapped, CAI_MEMORY_DEVICE, 1);
        located(pinned, CAI_MEMORY_PINNED, 0);
        CHECK_UINT(where.data, pinned);
        located(aliased, CAI_MEMORY_PINNED, 1);
        CHECK(where.data != 0 && where.data != aliased);
        located(pooled, CAI_MEMORY_DEVICE, 1);
        CHECK_INT(where.needs_peer, 0); /* there is no current device to have it */
        make(&a, registered, 1, 10, 4);
        CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
        CHECK(strstr(err.message, "it was registered without mapping") != NULL);
        make(&a, (uint64_t)(uintptr_t)plain, 1, 10, 4);
        CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
        CHECK(strstr(err.message, " is plain host memory, or was freed") != NULL);
        cai_sim_set_device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
        CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_CUDA);
        CHECK_STR(err.message, "a: context_device: CUDA error 201 (no valid context is current)");
        CHECK_INT(err.native, 201);
        close_none_current();
    }
}

/* The calls: device memory needs none of this, pinned memory one push and pop. */
static void check_no_context_calls(void)
{
    uint64_t pinned;
    open_sim();
    pinned = alloc(c2, CAI_SIM_MEM_PINNED);
    set_none_current(CAI_SIM_NEED_CONTEXT);
    make(&a, m1, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    logged("pointer_info m1 -> device 0 c1\n");
    make(&a, pinned, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    logged("pointer_info m3 -> pinned 1 c2\ncontext_current -> none\ncontext_push c2\n"
           "pointer_info m3 -> pinned 1 c2\ncontext_pop\n");
    close_none_current();
}

static int32_t inactive_primary(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    (void)device;
    *context = 0;
    return 0;
}

static int32_t refused_push(void *self, uint64_t context)
{
    (void)self;
    (void)context;
    return 201;
}

/* Where no context can be had, what is not known is said, and nothing is taken for something else. */
static void check_no_context_at_all(void)
{
    uint64_t own, pinned;
    open_sim();
    own = cai_sim_context_create(sim, 0);
    CHECK(own != 0);
    pinned = alloc(own, CAI_SIM_MEM_PINNED);
    set_none_current(CAI_SIM_NEED_CONTEXT);
    cuda.device_context = inactive_primary;
    make(&a, pinned, 1, 10, 4);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 216), 1); /* a green one, in use on another thread */
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "a: data 0x") == err.message);
    CHECK(strstr(err.message, " is pinned memory whose address for devices is unknown: no context that knows it "
                              "can be made current") != NULL);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 999), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "a: context_push: CUDA error 999 (unknown error)");
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_UINT(where.data, pinned);
    cuda.context_push = refused_push;
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    make(&a, m1, 1, 10, 4); /* memory of devices has the address that it has */
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_OK);
    CHECK_UINT(where.data, m1);
    CHECK_INT(where.bounds, CAI_BOUNDS_UNKNOWN);
    set_none_current(CAI_SIM_ZERO_ANSWERS);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, ", perhaps because no context is current on this thread") != NULL);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_PAGEABLE, &where, &err), CAI_ERR_CUDA);
    close_none_current();
}

/* A primary context serves where the own one cannot be entered; its error is told. */
static void check_primary_serves(void)
{
    uint64_t own, pinned;
    open_sim();
    own = cai_sim_context_create(sim, 1);
    pinned = alloc(own, CAI_SIM_MEM_PINNED);
    set_none_current(CAI_SIM_NEED_CONTEXT);
    make(&a, pinned, 1, 10, 4);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 216), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_UINT(where.data, pinned);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 709), 1);
    CHECK_INT(cai_sim_fail_op(sim, "device_context", 1, 700), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "a: device_context: CUDA error 700 (illegal address) of an earlier operation");
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 201), 1);
    CHECK_INT(cai_sim_fail_op(sim, "device_context", 1, 101), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 201), 1);
    cuda.device_context = inactive_primary;
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    cuda = *cai_sim_cuda(sim);
    CHECK_INT(cai_sim_fail_op(sim, "context_pop", 1, 700), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "a: context_pop: CUDA error 700 (illegal address) of an earlier operation");
    close_none_current();
}

/* A table whose queries say 201 themselves, as the letter of CUDA has it. */
static int32_t (*own_info)(void *self, uint64_t pointer, cai_cuda_pointer *info);

static int32_t strict_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    uint64_t current = 0;
    CHECK_INT(cuda.context_current(cuda.self, &current), 0);
    return current ? own_info(self, pointer, info) : 201;
}

static void check_201(void)
{
    open_sim();
    set_none_current(0);
    own_info = cuda.pointer_info;
    cuda.pointer_info = strict_info;
    located(m2, CAI_MEMORY_DEVICE, 1);
    cuda.device_context = inactive_primary;
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "a: pointer_info: CUDA error 201 (no valid context is current)");
    close_none_current();
}

/* Host memory that the current context cannot use, and its own one can, or cannot either. */
static uint64_t pinned_for, address_there;
static int32_t silent; /* without a context */

static int32_t portable_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    uint64_t current = 0;
    (void)pointer;
    CHECK_INT(cai_sim_cuda(sim)->context_current(self, &current), 0);
    memset(info, 0, sizeof *info);
    info->memory = CAI_MEMORY_PINNED;
    info->context = pinned_for;
    if (silent && !current) {
        memset(info, 0, sizeof *info);
        return 0;
    }
    info->device_pointer = current == pinned_for ? address_there : 0;
    if (!info->device_pointer) info->flags = CAI_POINTER_NO_CONTEXT;
    return 0;
}

static void check_not_portable(void)
{
    open_sim();
    cuda.pointer_info = portable_info;
    pinned_for = c2;
    address_there = 0x7f0000;
    make(&a, 0x5000, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_UINT(where.data, 0x7f0000);
    address_there = 0; /* not for its own context either: that is the last word */
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "it was registered without mapping") != NULL);
    pinned_for = c1; /* the current one */
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "it was registered without mapping") != NULL);
    pinned_for = c2;
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 216), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is pinned memory whose address for devices is unknown: ") != NULL);
    silent = 1; /* the first context that is asked only says whose it is */
    address_there = 0x7f0000;
    pinned_for = cai_sim_context_create(sim, 1);
    set_none_current(0);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_OK);
    CHECK_UINT(where.data, 0x7f0000);
    CHECK_UINT(where.context, pinned_for);
    silent = 0; /* its own cannot be entered, and a primary one has no address for it */
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 216), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, " is pinned memory whose address for devices is unknown: ") != NULL);
    silent = 1;
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 2, 999), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 999), 1);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_fail_op(sim, "device_context", 1, 100), 1); /* no device */
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    pinned_for = c1; /* the primary one itself */
    address_there = 0;
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "it was registered without mapping") != NULL);
    pinned_for = 0; /* of nobody */
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    silent = 0;
    cuda.context_push = refused_push;
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, &where, &err), CAI_ERR_MEMORY);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ mapped memory */

/* ucx#11461, libfabric#12473: a query tells one segment of a mapping. What leaves it may be in the next one, so
 * its bounds are not known. Memory with a context, or of a pool, has one range. */
static uint64_t mapped_context;
static uint32_t mapped_flags;

static int32_t mapped_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self;
    (void)pointer;
    memset(info, 0, sizeof *info);
    info->memory = CAI_MEMORY_DEVICE;
    info->context = mapped_context;
    info->flags = mapped_flags;
    return 0;
}

static void mapped(int64_t extent, int64_t stride, cai_status status, int32_t bounds)
{
    memset(&where, 0, sizeof where);
    make(&a, told_base + 1024, 1, extent, stride);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err), status);
    if (status) return;
    CHECK_INT(where.bounds, bounds);
    CHECK_UINT(where.base, told_base);
    CHECK_UINT(where.nbytes, told_size);
}

static void check_mapped(void)
{
    int32_t kind;
    open_sim();
    cuda.pointer_info = mapped_info;
    cuda.pointer_range = told_range;
    told_base = 0x7f0000000000u;
    told_size = 4096;
    for (kind = 0; kind < 3; kind++) {
        const cai_status outside = kind ? CAI_ERR_MEMORY : CAI_OK;
        mapped_context = kind == 1 ? c1 : 0;
        mapped_flags = kind == 2 ? CAI_POINTER_POOL : 0;
        mapped(768, 4, CAI_OK, CAI_BOUNDS_INSIDE);
        mapped(769, 4, outside, CAI_BOUNDS_UNKNOWN);
        mapped(257, -4, CAI_OK, CAI_BOUNDS_INSIDE);
        mapped(258, -4, outside, CAI_BOUNDS_UNKNOWN);
    }
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ storing the address for devices */

static int32_t aliased_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    const int32_t error = told_info(self, pointer, info);
    info->memory = CAI_MEMORY_PINNED;
    info->device_pointer = pointer + told_base;
    return error;
}

static void check_store_address(void)
{
    uint64_t aliased, more;
    cai_kernel_view view;
    open_sim();
    aliased = alloc(c1, CAI_SIM_MEM_ALIASED);
    more = alloc(c1, CAI_SIM_MEM_ALIASED);
    make(&a, aliased + 8, 1, 10, 4);
    make(&mask, more, 1, 10, 4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, &where, &err), CAI_OK);
    CHECK(a.data == where.data && a.data != aliased + 8);
    CHECK(mask.data != 0 && mask.data != more);
    CHECK_INT(cai_kernel_view_of(&a, &view, &err), CAI_OK);
    CHECK_UINT((uint64_t)(uintptr_t)view.data, where.data);
    CHECK(a.flags & CAI_ALIGNED);
    make(&a, m1, 1, 10, 4); /* mostly it is the same */
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, &where, &err), CAI_OK);
    CHECK_UINT(a.data, m1);
    make(&a, m1 + 40, 1, 10, -4); /* elements below its address */
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, &where, &err), CAI_OK);
    CHECK_UINT(a.data, m1 + 40);
    make(&a, m1, 1, 0, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, &where, &err), CAI_OK);
    CHECK_UINT(a.data, 0); /* an empty one has none */
    cuda.pointer_info = aliased_info;
    told_base = 2; /* no longer a multiple of the alignment */
    make(&a, 4096, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, NULL, &err), CAI_OK);
    CHECK_UINT(a.data, 4098);
    CHECK(!(a.flags & CAI_ALIGNED));
    told_base = UINT64_MAX - 4095 - 32; /* the last elements would wrap around, or the first */
    make(&a, 4096, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, NULL, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, ": elements leave the address space at 0x") != NULL);
    CHECK_UINT(a.data, 4096);
    CHECK_INT(cai_locate(&a, "a", &cuda, 0, NULL, &err), CAI_OK); /* not stored, not judged */
    told_base = UINT64_MAX - 4095 + 4;
    make(&a, 4096, 1, 10, -4);
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, NULL, &err), CAI_ERR_MEMORY);
    make(&a, m1, 1, 10, 4);
    make(&mask, 4096, 1, 10, -4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, "a", &cuda, CAI_LOCATE_STORE_ADDRESS, NULL, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "a: mask: data 0x1000: elements leave") == err.message);
    CHECK_UINT(a.data, m1); /* nothing was stored */
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ which argument, and shorter tables */

static void check_names(void)
{
    char name[400];
    open_sim();
    make(&a, (uint64_t)(uintptr_t)plain, 1, 10, 4);
    CHECK_INT(cai_locate(&a, "weights", &cuda, 0, NULL, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "weights: data 0x") == err.message);
    make(&mask, (uint64_t)(uintptr_t)plain, 1, 10, 4);
    make(&a, m1, 1, 10, 4);
    a.mask = &mask;
    CHECK_INT(cai_locate(&a, "weights", &cuda, 0, NULL, &err), CAI_ERR_MEMORY);
    CHECK(strstr(err.message, "weights: mask: data 0x") == err.message);
    CHECK_INT(cai_locate(&a, "weights", &cuda, 0, NULL, NULL), CAI_ERR_MEMORY);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    CHECK_INT(cai_locate(&a, name, &cuda, 0, NULL, &err), CAI_ERR_MEMORY);
    CHECK_UINT(strlen(err.message), sizeof err.message - 1);
    CHECK_INT(err.entry, CAI_ENTRY_DATA);
    cai_sim_destroy(sim);
}

/* What lies behind the end of a shorter table must not be read: memory of exactly that size. */
static cai_status locate_by(size_t size, uint32_t says)
{
    char *bytes = (char *)malloc(size);
    cai_cuda *table = (cai_cuda *)(void *)bytes;
    cai_status status;
    if (!bytes) exit(2);
    memcpy(bytes, &cuda, size);
    memcpy(bytes + offsetof(cai_cuda, struct_size), &says, sizeof says);
    status = cai_locate(&a, "a", table, CAI_LOCATE_BOUNDS, &where, &err);
    free(bytes);
    return status;
}

static void check_shorter_tables(void)
{
    const size_t least = offsetof(cai_cuda, context_current), range = offsetof(cai_cuda, pointer_range);
    const size_t enough = offsetof(cai_cuda, memory_alloc); /* behind host_thread */
    size_t size;
    open_sim();
    make(&a, m1, 1, 10, 4);
    for (size = least; size < sizeof cuda; size += sizeof(void *)) {
        const cai_status status = size >= enough ? CAI_OK : CAI_ERR_UNAVAILABLE;
        CHECK_INT(locate_by(size, (uint32_t)size), status);
        if (!status) CHECK_INT(where.bounds, CAI_BOUNDS_INSIDE);
        else if (size == least) CHECK_STR(err.message, "the CUDA table has no context_current");
        else if (size >= range) CHECK_STR(err.message, "the CUDA table has no host_thread");
        CHECK_INT(locate_by(size + 1, (uint32_t)size + 1), status); /* a slot that is not whole is none */
    }
    CHECK_INT(locate_by(sizeof cuda, (uint32_t)sizeof cuda), CAI_OK);
    CHECK_INT(locate_by(sizeof cuda, (uint32_t)sizeof cuda + 8), CAI_OK); /* longer: of a later version */
    CHECK_INT(locate_by(sizeof cuda, (uint32_t)least - 1), CAI_ERR_ABI);
    cai_sim_destroy(sim);
}

/* cai_error.rule: memory that the device cannot access breaks R7, an address R28. */
static void check_rules(void)
{
    enum { PLAIN, PAGEABLE, REGISTERED, TEXTURE, OUTSIDE, OVER_THE_END, MASK, SLOT, COUNT };
    static const struct {
        const char *what;
        cai_status status;
        int32_t rule;
        uint32_t flags;
    } rows[COUNT] = {{"plain host memory", CAI_ERR_MEMORY, 7, 0},
                     {"of no use to this device", CAI_ERR_MEMORY, 7, CAI_LOCATE_PAGEABLE},
                     {"without an address", CAI_ERR_MEMORY, 7, 0}, {"a texture", CAI_ERR_MEMORY, 7, 0},
                     {"outside", CAI_ERR_MEMORY, 7, CAI_LOCATE_BOUNDS},
                     {"an address below 0", CAI_ERR_MEMORY, 28, CAI_LOCATE_STORE_ADDRESS},
                     {"a mask elsewhere", CAI_ERR_MEMORY, 0, 0}, {"no slot", CAI_ERR_UNAVAILABLE, 0, 0}};
    uint64_t data[COUNT];
    int32_t i;
    open_sim();
    for (i = 0; i < COUNT; i++) data[i] = m1;
    data[PLAIN] = data[PAGEABLE] = (uint64_t)(uintptr_t)plain;
    data[REGISTERED] = alloc(c1, CAI_SIM_MEM_REGISTERED);
    data[TEXTURE] = alloc(c1, CAI_SIM_MEM_ARRAY);
    data[OUTSIDE] = m1 + BYTES - 8;
    for (i = 0; i < COUNT; i++) {
        cai_test_note(rows[i].what);
        make(&a, data[i], 1, 10, i == OVER_THE_END ? -4 : 4);
        make(&mask, m2, 1, 10, 4);
        if (i == OVER_THE_END) cuda.pointer_info = low_address;
        else cuda.pointer_info = i == SLOT ? NULL : cai_sim_cuda(sim)->pointer_info;
        if (i == MASK) a.mask = &mask;
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(cai_locate(&a, "a", &cuda, rows[i].flags, &where, &err), rows[i].status);
        CHECK_INT(err.code, rows[i].status);
        CHECK_INT(err.rule, rows[i].rule);
        CHECK_INT(cai_locate(&a, "a", &cuda, rows[i].flags, &where, NULL), rows[i].status);
    }
    cai_test_note("");
    cai_sim_destroy(sim);
}

static void run(void)
{
    check_rules();
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
    check_no_context();
    check_no_context_calls();
    check_no_context_at_all();
    check_primary_serves();
    check_201();
    check_not_portable();
    check_mapped();
    check_store_address();
    check_names();
    check_shorter_tables();
}

CAI_TEST_MAIN(run)
