/* old.c - version 0.1 in a shared object of its own: the layout that it had, and the contract that it had.
 * SPDX-License-Identifier: MIT
 * The stand-in has the layout of that version by hand, as a checkout without history has no old header. With
 * -DVERSIONS_OLD_HEADER='"cai_0_1.h"', from `git show 648733b:cai.h`, the real header is compiled in its place. */
#include "versions.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(VERSIONS_OLD_HEADER)
#define CAI_STATIC
#define CAI_IMPLEMENTATION
#include VERSIONS_OLD_HEADER
#define OLD_ABI CAI_ABI
typedef cai_array old_array;
#else
#define OLD_ABI 0x43414930u

typedef struct old_dtype {
    int32_t code, itemsize, bits, unit, unit_count, alignment;
} old_dtype;

typedef struct old_array {
    uint32_t abi, struct_size;
    void (*release)(struct old_array *self);
    void *owner;
    uint32_t flags;
    int32_t version;
    uint64_t data;
    old_dtype dtype;
    int32_t device, memory, sync, ndim;
    uint64_t stream, event, thread;
    int64_t size, nbytes, lo, hi;
    const void *fields;
    struct old_array *mask;
    int64_t field_count;
    uint64_t reserved[4];
    int64_t shape[64], strides[64];
} old_array;

#define OLD_AT(member, offset) (offsetof(old_array, member) == (offset))
typedef char old_layout[sizeof(void *) != 8 || (OLD_AT(release, 8) && OLD_AT(data, 32) && OLD_AT(device, 64) &&
                                                OLD_AT(stream, 80) && OLD_AT(fields, 136) && OLD_AT(reserved, 160) &&
                                                OLD_AT(shape, 192) && sizeof(old_array) == 1216) ? 1 : -1];
#endif

static int old_live, old_released;

static void old_release(old_array *self)
{
    free(self->owner);
    self->release = NULL;
    --old_live;
    ++old_released;
}

static int old_describe(int kind, void *out)
{
    old_array *array = (old_array *)out;
    int32_t i;
    memset(array, kind == HOSTILE ? 0xaa : 0, sizeof *array);
    array->abi = OLD_ABI;
    array->struct_size = (uint32_t)sizeof *array;
    array->release = NULL;
    array->owner = NULL;
    if (kind != BORROWED) {
        array->owner = malloc(1);
        array->release = old_release;
        ++old_live;
    }
    if (kind == HOSTILE) return 0;
    array->data = 4096;
    array->dtype.code = 0x6604; /* float32 */
    array->dtype.itemsize = array->dtype.alignment = 4;
    array->ndim = 2;
    array->size = 6;
    array->nbytes = array->hi = 24;
    for (i = 0; i < 2; ++i) {
        array->shape[i] = i ? 3 : 2;
        array->strides[i] = i ? 4 : 12;
    }
    return 0;
}

/* What 0.1 says: a consumer that does not know the value of abi must call release and nothing else. */
static int old_refuses(const old_array *array, char why[256])
{
#if defined(VERSIONS_OLD_HEADER)
    cai_error err;
    if (!cai_array_check(array, &err)) return 0;
    memcpy(why, err.message, sizeof err.message);
    return 1;
#else
    if (array->abi == OLD_ABI) return 0;
    memcpy(why, "another abi", sizeof "another abi");
    return 1;
#endif
}

static int old_take(int consumer, versions_describe describe, int kind, char why[256])
{
    struct {
        old_array array;
        unsigned char behind[64];
    } room;
    int says;
    (void)consumer;
    memset(&room, 0x55, sizeof room);
    describe(kind, &room.array);
    says = old_refuses(&room.array, why) ? REFUSED : ACCEPTED;
    if (says == ACCEPTED && (room.array.ndim != 2 || room.array.shape[1] != 3)) says = REFUSED;
    if (room.array.release) room.array.release(&room.array);
    if (room.array.release || room.behind[0] != 0x55 || memcmp(room.behind, room.behind + 1, 63)) return OVERRUN;
    return says;
}

static const char *old_consumer(int consumer)
{
    return consumer ? NULL : "the contract of 0.1";
}

static int old_count_live(void)
{
    return old_live;
}

static int old_count_released(void)
{
    return old_released;
}

VERSIONS_API const versions_side *versions_old(void)
{
    static const versions_side side = {OLD_ABI,      (uint32_t)sizeof(old_array), old_describe,
                                       old_take,     old_consumer,                old_count_live,
                                       old_count_released};
    return &side;
}
