/* new.c - this version in a shared object of its own: each consumer is one function of a header.
 * SPDX-License-Identifier: MIT */
#define CAI_STATIC
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_array_struct.h"
#include "cai_dlpack.h"
#include "cai_layout.h"
#include "cai_place.h"
#include "cai_scaled.h"
#include "cai_small_view.h"
#include "cai_tensor_map.h"
#include "cai_transfer.h"
#include "versions.h"

#include <stdlib.h>
#include <string.h>

static int new_live, new_released;

static void new_release(cai_array *self)
{
    free(self->owner);
    self->release = NULL;
    --new_live;
    ++new_released;
}

static int new_describe(int kind, void *out)
{
    static const int64_t shape[2] = {2, 3};
    cai_array *array = (cai_array *)out;
    cai_error err;
    if (cai_array_init(array, CAI_FLOAT32, 2, shape, NULL, (void *)(uintptr_t)4096, &err)) return -1;
    array->memory = CAI_MEMORY_HOST;
    array->sync = CAI_SYNC_NONE;
    if (kind != BORROWED) {
        cai_array_own(array, new_release, malloc(1));
        ++new_live;
    }
    if (kind == LATER) array->must_understand = (uint64_t)1 << 63;
    if (kind == HOSTILE)
        memset((char *)array + offsetof(cai_array, flags), 0xaa, sizeof *array - offsetof(cai_array, flags));
    return 0;
}

/* The consumers. Each has one array that it judges. `good` is an array of this version for a second argument. */
typedef cai_status (*new_judge)(cai_array *array, const cai_array *good, cai_error *err);

static cai_status new_check(cai_array *array, const cai_array *good, cai_error *err)
{
    (void)good;
    return cai_array_check(array, err);
}

static cai_status new_expect(cai_array *array, const cai_array *good, cai_error *err)
{
    (void)good;
    return cai_expect(array, "x", CAI_FLOAT32, 2, CAI_C_CONTIGUOUS, err);
}

static cai_status new_same_shape(cai_array *array, const cai_array *good, cai_error *err)
{
    return cai_expect_same_shape(good, "x", array, "y", err);
}

static cai_status new_slice(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_array out;
    (void)good;
    return cai_view_slice(array, 0, 0, 1, 1, &out, err);
}

static cai_status new_reinterpret(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_array out;
    return cai_view_reinterpret(array, &good->dtype, &out, err);
}

static cai_status new_coalesce(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_array out;
    (void)good;
    return cai_view_coalesce(array, &out, err);
}

static cai_status new_kernel(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_kernel_view out;
    (void)good;
    return cai_kernel_view_of(array, &out, err);
}

static cai_status new_dictionary(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_token tokens[64];
    char text[256];
    cai_export_storage storage;
    cai_interface out;
    (void)good;
    memset(&storage, 0, sizeof storage);
    storage.tokens = tokens;
    storage.token_capacity = 64;
    storage.text = text;
    storage.text_capacity = sizeof text;
    return cai_export(array, 3, &storage, &out, err);
}

static cai_status new_array_struct(cai_array *array, const cai_array *good, cai_error *err)
{
    intptr_t storage[128];
    cai_array_struct out;
    (void)good;
    return cai_array_struct_export(array, NULL, storage, &out, err);
}

static cai_status new_dlpack(cai_array *array, const cai_array *good, cai_error *err)
{
    int64_t storage[128];
    cai_dl_tensor out;
    (void)good;
    return cai_dlpack_lend(array, CAI_DLPACK_ORDERED, storage, &out, err);
}

static cai_status new_transfer(cai_array *array, const cai_array *good, cai_error *err)
{
    static cai_transfer out;
    return cai_transfer_plan(&out, good, array, err);
}

static cai_status new_layout(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_layout out;
    (void)good;
    return cai_layout_of(array, &out, err);
}

static cai_status new_kernel_at(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_location where;
    cai_kernel_view out;
    (void)good;
    memset(&where, 0, sizeof where);
    where.data = 4096;
    return cai_kernel_view_at(array, &where, &out, err);
}

static cai_status new_small_view(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_small_view out;
    (void)good;
    return cai_small_view_of(array, &out, err);
}

static cai_status new_scaled_data(cai_array *array, const cai_array *good, cai_error *err)
{
    const cai_scaled x = {array, good, -1, 1, 1, CAI_SCALES_PLAIN};
    cai_scale_map out;
    return cai_scale_map_of(&x, &out, err);
}

static cai_status new_scales(cai_array *array, const cai_array *good, cai_error *err)
{
    const cai_scaled x = {good, array, -1, 1, 1, CAI_SCALES_PLAIN};
    cai_scale_map out;
    return cai_scale_map_of(&x, &out, err);
}

/* What it refuses later is not of the version: rows of 12 bytes. */
static cai_status new_tensor_map(cai_array *array, const cai_array *good, cai_error *err)
{
    cai_tensor_tile tile;
    cai_tensor_map_plan out;
    cai_status status;
    (void)good;
    memset(&tile, 0, sizeof tile);
    status = cai_tensor_map_of(array, &tile, &out, err);
    return status == CAI_ERR_ABI ? status : CAI_OK;
}

static const struct {
    const char *name;
    new_judge judge;
} new_consumers[] = {
    {"cai_array_check", new_check},
    {"cai_expect", new_expect},
    {"cai_expect_same_shape", new_same_shape},
    {"cai_view_slice", new_slice},
    {"cai_view_reinterpret", new_reinterpret},
    {"cai_view_coalesce", new_coalesce},
    {"cai_kernel_view_of", new_kernel},
    {"cai_kernel_view_at", new_kernel_at},
    {"cai_small_view_of", new_small_view},
    {"cai_export", new_dictionary},
    {"cai_array_struct_export", new_array_struct},
    {"cai_dlpack_lend", new_dlpack},
    {"cai_transfer_plan", new_transfer},
    {"cai_layout_of", new_layout},
    {"cai_scale_map_of, data", new_scaled_data},
    {"cai_scale_map_of, scales", new_scales},
    {"cai_tensor_map_of", new_tensor_map},
};
enum { NEW_CONSUMERS = (int)(sizeof new_consumers / sizeof *new_consumers) };

static int new_take(int consumer, versions_describe describe, int kind, char why[256])
{
    struct {
        cai_array array;
        unsigned char behind[64];
    } room;
    cai_array good;
    cai_error err;
    cai_status status;
    memset(&room, 0x55, sizeof room);
    memset(&err, 0, sizeof err);
    if (new_describe(BORROWED, &good)) return OVERRUN;
    good.data = 8192;
    describe(kind, &room.array);
    status = new_consumers[consumer].judge(&room.array, &good, &err);
    memcpy(why, err.message, sizeof err.message);
    cai_array_release(&room.array);
    if (room.array.release || room.behind[0] != 0x55 || memcmp(room.behind, room.behind + 1, 63)) return OVERRUN;
    return status == CAI_OK ? ACCEPTED : status == CAI_ERR_ABI ? REFUSED : OVERRUN;
}

static const char *new_consumer(int consumer)
{
    return consumer < NEW_CONSUMERS ? new_consumers[consumer].name : NULL;
}

static int new_count_live(void)
{
    return new_live;
}

static int new_count_released(void)
{
    return new_released;
}

VERSIONS_API const versions_side *versions_new(void)
{
    static const versions_side side = {CAI_ABI,      (uint32_t)sizeof(cai_array), new_describe,
                                       new_take,     new_consumer,                new_count_live,
                                       new_count_released};
    return &side;
}
