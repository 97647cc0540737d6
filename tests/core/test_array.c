/* test_array.c - making, owning, moving, checking and printing arrays.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

static cai_array a;
static cai_error err;
static char memory[256];

/* ------------------------------------------------------------------ init */

static void check_init_plain(void)
{
    const int64_t shape[2] = {2, 3};
    help_fill(&a, sizeof a);
    help_fill(&err, sizeof err);
    CHECK_INT(cai_array_init(&a, CAI_UINT8, 2, shape, NULL, memory, &err), CAI_OK);
    CHECK(help_filled(&err, sizeof err));
    CHECK_UINT(a.abi, CAI_ABI);
    CHECK_INT(a.struct_size, sizeof a);
    CHECK(a.release == NULL && a.owner == NULL && a.fields == NULL && a.mask == NULL);
    CHECK_UINT(a.flags, CAI_WRITABLE | CAI_C_CONTIGUOUS | CAI_ALIGNED | CAI_NO_SELF_OVERLAP |
                            CAI_DENSE);
    CHECK_INT(a.version, 3);
    CHECK_UINT(a.data, (uint64_t)(uintptr_t)memory);
    CHECK_INT(a.dtype.code, CAI_UINT8);
    CHECK_INT(a.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(a.sync, CAI_SYNC_UNKNOWN);
    CHECK_INT(a.ndim, 2);
    CHECK_UINT(a.stream | a.event | a.thread, 0);
    CHECK_INT(a.field_count, 0);
    CHECK_INT(a.packed_axis, -1);
    CHECK_INT(a.packed_extent, 0);
    CHECK_INT(a.backend, CAI_BACKEND_CUDA);
    CHECK_UINT(a.must_understand, 0);
    CHECK_UINT(a.reserved, 0);
    CHECK_INT(a.strides[0] * 10 + a.strides[1], 31);
    help_check_facts(&a);
    CHECK_INT(cai_array_check(&a, NULL), CAI_OK);
}

static void check_read_only(void)
{
    const int64_t shape[2] = {2, 3};
    cai_array before;
    int i;
    CHECK_INT(cai_array_init(&a, CAI_UINT8, 2, shape, NULL, memory, NULL), CAI_OK);
    memcpy(&before, &a, sizeof a);
    for (i = 0; i < 2; i++) { /* twice is the same as once */
        cai_array_set_read_only(&a, 1 + i);
        CHECK_UINT(a.flags, before.flags & ~(uint32_t)CAI_WRITABLE);
        CHECK_INT(cai_expect(&a, "y", CAI_UINT8, 2, CAI_WRITABLE, &err), CAI_ERR_EXPECT);
        CHECK_STR(err.message, "y: expected uint8, 2-D, writable; got uint8, 2-D, read-only");
    }
    for (i = 0; i < 2; i++) {
        cai_array_set_read_only(&a, 0);
        CHECK(memcmp(&a, &before, sizeof a) == 0);
    }
}

static void check_init_more(void)
{
    const int64_t shape[2] = {2, 3}, strides[2] = {1, -9}, empty[2] = {0, 3};
    cai_dtype dtype = help_dtype("`M8[25s]");
    char line[80];
    CHECK_INT(cai_array_init(&a, CAI_DATETIME64, 0, NULL, NULL, memory, NULL), CAI_OK);
    CHECK(cai_array_text(&a, line, (int32_t)sizeof line) > 0);
    CHECK(line[1] == 'M' && line[2] == '8' && line[3] == ' ');
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 2, shape, strides, memory + 64, NULL), CAI_OK);
    CHECK(a.flags & CAI_HAD_STRIDES);
    CHECK_INT(a.strides[1], -9);
    help_check_facts(&a);
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 0, NULL, NULL, memory, NULL), CAI_OK);
    CHECK_INT(a.size, 1);
    CHECK_INT(a.ndim, 0);
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 2, empty, NULL, NULL, NULL), CAI_OK);
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 2, empty, NULL, memory, NULL), CAI_OK);
    CHECK_UINT(a.data, 0);
    CHECK_INT(cai_array_init(&a, CAI_SWAPPED(CAI_INT16), 2, shape, NULL, memory, NULL), CAI_OK);
    CHECK(a.flags & CAI_BYTE_SWAPPED);
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 2, shape, NULL, UINT64_MAX - 47, NULL), CAI_OK);
    CHECK_BYTES(&a.dtype, &dtype, sizeof dtype);
    CHECK_UINT(a.data, UINT64_MAX - 47);
    CHECK_INT(a.hi, 48);
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 2, shape, NULL, UINT64_MAX - 46, NULL),
              CAI_ERR_DATA);
    dtype = help_dtype("|S7");
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 2, shape, NULL, 4096, NULL), CAI_OK);
    CHECK_INT(a.nbytes, 42);
    dtype = help_dtype("|t3");
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 2, shape, NULL, 4096, NULL), CAI_OK);
    CHECK_INT(a.nbytes, 3);
    CHECK_INT(a.strides[0] | a.strides[1], 0);
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 2, shape, strides, 4096, NULL), CAI_ERR_STRIDES);
}

/* What cai_import says of a layout, cai_array_init says too, accepted or not. */
static void check_init_as_import(void)
{
    static cai_array b;
    int i, k;
    for (i = 0; i < 3000; i++) {
        int64_t shape[4], strides[4], data = help_between(0, 40);
        char text[300];
        int ndim = (int)help_between(1, 4), at;
        cai_status status;
        at = sprintf(text, "data=(%d,False); shape=(", (int)data);
        for (k = 0; k < ndim; k++) {
            shape[k] = help_between(help_between(0, 9) == 0 ? -1 : 0, 4);
            at += sprintf(text + at, "%d,", (int)shape[k]);
        }
        at += sprintf(text + at, "); strides=(");
        for (k = 0; k < ndim; k++) {
            strides[k] = help_between(-12, 12);
            at += sprintf(text + at, "%d,", (int)strides[k]);
        }
        sprintf(text + at, ")");
        help_reset();
        cai_test_note(text);
        status = cai_import(help_dict(text), NULL, &b, NULL);
        help_fill(&a, sizeof a);
        CHECK_INT(cai_array_init_dtype(&a, &b.dtype, ndim, shape, strides, (uint64_t)data, NULL),
                  status == CAI_OK || i > 0 ? status : CAI_OK);
        if (status != CAI_OK) {
            CHECK(help_filled(&a, sizeof a));
            continue;
        }
        a.sync = b.sync;
        CHECK_BYTES(&a, &b, offsetof(cai_array, shape));
    }
    cai_test_note("");
}

/* ------------------------------------------------------------------ ownership */

static int releases;
static cai_array *released;
static void *released_owner;

static void count_release(cai_array *self)
{
    releases++;
    released = self;
    released_owner = self->owner;
    self->release = NULL;
}

/* A callback that forgets to clear itself. */
static void forgetful_release(cai_array *self)
{
    releases++;
    released = self;
}

/* A callback that frees the memory of the struct. */
static void poison_release(cai_array *self)
{
    releases++;
    help_fill(self, sizeof *self);
}

static void make_owned(cai_array *array, void (*release)(cai_array *self))
{
    const int64_t shape[3] = {2, 3, 4};
    CHECK_INT(cai_array_init(array, CAI_UINT8, 3, shape, NULL, memory, NULL), CAI_OK);
    cai_array_own(array, release, memory + 5);
    CHECK(array->release == release);
    CHECK(array->owner == memory + 5);
}

static void check_release(void)
{
    releases = 0;
    make_owned(&a, count_release);
    CHECK_INT(releases, 0);
    cai_array_release(&a);
    CHECK_INT(releases, 1);
    CHECK(released == &a && released_owner == memory + 5);
    CHECK(a.release == NULL);
    cai_array_release(&a);
    cai_array_release(NULL);
    CHECK_INT(releases, 1);
    make_owned(&a, forgetful_release);
    cai_array_release(&a);
    cai_array_release(&a);
    CHECK_INT(releases, 2);
    CHECK(a.release == NULL);
    make_owned(&a, poison_release);
    cai_array_release(&a);
    CHECK_INT(releases, 3);
    CHECK(help_filled(&a, sizeof a)); /* not touched after the callback */
    make_owned(&a, count_release);
    a.release(&a); /* as a consumer of another library calls it */
    cai_array_release(&a);
    CHECK_INT(releases, 4);
    make_owned(&a, count_release);
    cai_array_own(&a, NULL, NULL); /* borrowed again */
    cai_array_release(&a);
    CHECK_INT(releases, 4);
}

static void check_borrow(void)
{
    static cai_array mask;
    cai_array to, before;
    releases = 0;
    make_owned(&a, count_release);
    a.mask = &mask;
    a.event = 7;
    a.flags |= (uint32_t)(CAI_OWN_EVENT | CAI_ORDERED_FREE);
    a.struct_size += 8; /* of a later version */
    memcpy(&before, &a, sizeof a);
    help_fill(&to, sizeof to);
    cai_array_borrow(&to, &a);
    CHECK_BYTES(&a, &before, sizeof a);
    CHECK(to.release == NULL && to.owner == NULL && to.mask == &mask);
    CHECK_INT(to.struct_size, sizeof to);
    CHECK_UINT(to.flags | CAI_OWN_EVENT | CAI_ORDERED_FREE, a.flags); /* the event is the owner's */
    CHECK(!(to.flags & (CAI_OWN_EVENT | CAI_ORDERED_FREE)));          /* and so is the free */
    to.struct_size = before.struct_size;
    to.release = before.release;
    to.owner = before.owner;
    to.flags = before.flags;
    CHECK_BYTES(&to, &before, offsetof(cai_array, shape));
    CHECK_BYTES(to.shape, before.shape, 24);
    CHECK_BYTES(to.strides, before.strides, 24);
    CHECK(help_filled(to.shape + 3, sizeof to.shape - 24)); /* what is in use alone */
    cai_array_borrow(&to, &a);
    cai_array_release(&to);
    CHECK_INT(releases, 0);
    cai_array_release(&a);
    CHECK_INT(releases, 1);
}

static void check_move(void)
{
    cai_array to, before;
    releases = 0;
    make_owned(&a, count_release);
    memset(a.shape + 3, 0x77, sizeof a.shape - 24);
    memcpy(&before, &a, sizeof a);
    help_fill(&to, sizeof to);
    cai_array_move(&to, &a);
    CHECK_INT(releases, 0);
    CHECK(a.release == NULL);
    CHECK_BYTES(&to, &before, offsetof(cai_array, shape));
    CHECK_BYTES(to.shape, before.shape, 24);
    CHECK_BYTES(to.strides, before.strides, 24);
    cai_array_release(&a);
    CHECK_INT(releases, 0);
    cai_array_release(&to);
    CHECK_INT(releases, 1);
    CHECK(released == &to && released_owner == memory + 5);
    cai_array_release(&to);
    CHECK_INT(releases, 1);
}

/* The slots that are in use, at every number of axes. */
static void check_move_ndim(void)
{
    int64_t shape[64];
    int32_t ndim;
    for (ndim = 0; ndim < 64; ndim++) shape[ndim] = 1 + (ndim == 5);
    for (ndim = 0; ndim <= 64; ndim++) {
        cai_array to;
        CHECK_INT(cai_array_init(&a, CAI_INT8, ndim, shape, NULL, memory, NULL), CAI_OK);
        help_fill(&to, sizeof to);
        cai_array_move(&to, &a);
        CHECK_INT(cai_array_check(&to, NULL), CAI_OK);
        CHECK_INT(to.ndim, ndim);
        CHECK_BYTES(to.shape, a.shape, (size_t)ndim * 8);
        CHECK_BYTES(to.strides, a.strides, (size_t)ndim * 8);
    }
}

/* A struct of another layout may have any bits in the place of ndim. It is moved with its release, and refused then. */
static void check_move_foreign(void)
{
    static const int32_t ndims[] = {65, 66, 70, INT32_MAX, INT32_MIN, -1};
    size_t i;
    for (i = 0; i < sizeof ndims / sizeof ndims[0]; i++) {
        struct {
            cai_array array;
            unsigned char after[4096];
        } to, from;
        memset(&to, 0x55, sizeof to);
        memset(&from, 0xaa, sizeof from);
        from.array.abi = CAI_ABI + 1;
        from.array.ndim = ndims[i];
        from.array.release = count_release;
        from.array.owner = &from;
        cai_array_move(&to.array, &from.array);
        CHECK(to.after[0] == 0x55 && !memcmp(to.after, to.after + 1, sizeof to.after - 1));
        CHECK(to.array.release == count_release && to.array.owner == &from && !from.array.release);
        CHECK_INT(cai_array_check(&to.array, NULL), CAI_ERR_ABI);
    }
}

/* ------------------------------------------------------------------ check */

static void good_array(void)
{
    const int64_t shape[2] = {2, 3};
    CHECK_INT(cai_array_init(&a, CAI_UINT8, 2, shape, NULL, memory, NULL), CAI_OK);
}

static void check_abi(void)
{
    CHECK_INT(cai_array_check(&a, &err), CAI_ERR_ABI);
    CHECK_INT(err.code, CAI_ERR_ABI);
    CHECK_INT(cai_array_check(&a, NULL), CAI_ERR_ABI);
    good_array();
}

static void check_check(void)
{
    int i;
    good_array();
    CHECK_INT(cai_array_check(NULL, &err), CAI_ERR_ARGUMENT);
    a.abi = 0;
    check_abi();
    a.abi = CAI_ABI + 1;
    check_abi();
    a.struct_size = (uint32_t)sizeof a - 1;
    check_abi();
    a.struct_size = 0;
    check_abi();
    a.struct_size = (uint32_t)sizeof a + 64; /* a later maker may append */
    CHECK_INT(cai_array_check(&a, &err), CAI_OK);
    good_array();
    a.ndim = -1;
    check_abi();
    a.ndim = 65;
    check_abi();
    a.ndim = INT32_MIN;
    check_abi();
    a.field_count = -1;
    check_abi();
    a.field_count = CAI_MAX_FIELDS + 1;
    check_abi();
    a.field_count = INT64_MIN;
    check_abi();
    memset(&a, 0, sizeof a);
    check_abi();
    help_fill(&a, sizeof a);
    check_abi();
    for (i = 0; i < 2000; i++) { /* random bytes: a verdict, no crash */
        size_t k;
        unsigned char *bytes = (unsigned char *)&a;
        for (k = 0; k < sizeof a; k++) bytes[k] = (unsigned char)help_random();
        CHECK_INT(cai_array_check(&a, &err), CAI_ERR_ABI);
    }
}

/* ------------------------------------------------------------------ text */

typedef struct row {
    const char *array;
    const char *text;
} row;

static const row rows[] = {
    {"", "float32 (2, 3), C-contiguous, no pending work, at 0x1000"},
    {"stream=1", "float32 (2, 3), C-contiguous, stream 1, at 0x1000"},
    {"stream=2", "float32 (2, 3), C-contiguous, stream 2, at 0x1000"},
    {"stream=7; data=(139637976727552,True)",
     "float32 (2, 3), C-contiguous, read-only, stream 0x7, at 0x7f0000000000"},
    {"version=2", "float32 (2, 3), C-contiguous, work may be pending, at 0x1000"},
    {"strides=(4,8)", "float32 (2, 3) strides (4, 8), F-contiguous, no pending work, at 0x1000"},
    {"strides=(-48,8)", "float32 (2, 3) strides (-48, 8), strided, no pending work, at 0x1000"},
    {"strides=(0,4)",
     "float32 (2, 3) strides (0, 4), overlapping itself, no pending work, at 0x1000"},
    {"shape=()", "float32 (), C-contiguous, no pending work, at 0x1000"},
    {"shape=(5,)", "float32 (5,), C-contiguous, no pending work, at 0x1000"},
    {"shape=(0,3)", "float32 (0, 3), C-contiguous, no pending work, at 0x0"},
    {"typestr='`f8'", "`f8 (2, 3), C-contiguous, no pending work, at 0x1000"},
    {"typestr='@m8[25s]'", "@m8[25s] (2, 3), C-contiguous, no pending work, at 0x1000"},
    {"typestr='|S5'", "|S5 (2, 3), C-contiguous, no pending work, at 0x1000"},
    {"typestr='|t1'", "|t1 (2, 3), C-contiguous, no pending work, at 0x1000"},
    {"data=(4097,False)", "float32 (2, 3), C-contiguous, unaligned, no pending work, at 0x1001"},
    {"mask={shape=(3,); typestr='|b1'; data=(8192,True); version=3}",
     "float32 (2, 3), C-contiguous, with a mask, no pending work, at 0x1000"},
    {"shape=(2,2,2); strides=(9223372036854775800,-9223372036854775808,1); typestr='|u1';"
     "data=(9223372036854775808,True)",
     "uint8 (2, 2, 2) strides (9223372036854775800, -9223372036854775808, 1), strided, read-only, "
     "no pending work, at 0x8000000000000000"},
};

/* Every capacity: terminated, inside, its length returned, a prefix that ends in "...". */
static void check_capacities(const cai_array *array)
{
    char whole[3000], part[3000];
    int32_t length = cai_array_text(array, whole, (int32_t)sizeof whole), capacity;
    CHECK_INT(length, strlen(whole));
    for (capacity = 0; capacity <= length + 2; capacity++) {
        int32_t kept = capacity == 0 ? 0 : capacity - 1 < length ? capacity - 1 : length;
        int32_t same = kept == length || kept < 3 ? kept : kept - 3;
        help_fill(part, sizeof part);
        CHECK_INT(cai_array_text(array, part, capacity), kept);
        CHECK(help_filled(part + capacity, sizeof part - (size_t)capacity));
        if (capacity > 0) CHECK_INT(strlen(part), kept);
        CHECK_BYTES(part, whole, (size_t)same);
        if (same < kept) CHECK_BYTES(part + same, "...", 3);
    }
    CHECK_INT(cai_array_text(array, NULL, 0), 0);
    CHECK_INT(cai_array_text(array, NULL, 100), 0);
    help_fill(part, sizeof part);
    CHECK_INT(cai_array_text(array, part, -1), 0);
    CHECK_INT(cai_array_text(array, part, INT32_MIN), 0);
    CHECK(help_filled(part, sizeof part));
}

static void check_text(void)
{
    cai_array mask;
    char text[400];
    cai_import_options options;
    size_t i;
    memset(&options, 0, sizeof options);
    options.mask = &mask;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        help_reset();
        cai_test_note(rows[i].array);
        CHECK_INT(cai_import(help_dict(rows[i].array), &options, &a, NULL), CAI_OK);
        cai_array_text(&a, text, (int32_t)sizeof text);
        CHECK_STR(text, help_order(rows[i].text));
        check_capacities(&a);
    }
    cai_test_note("");
    CHECK_INT(cai_import(help_dict(""), NULL, &a, NULL), CAI_OK);
    a.sync = CAI_SYNC_EVENT;
    a.device = 3;
    cai_array_text(&a, text, (int32_t)sizeof text);
    CHECK_STR(text, "float32 (2, 3), C-contiguous, event, device 3, at 0x1000");
    a.flags = 0;
    cai_array_text(&a, text, (int32_t)sizeof text);
    CHECK(strstr(text, "may overlap itself") != NULL);
}

/* Structs of others: text, never a crash, never past the end. */
static void check_text_garbage(void)
{
    int i;
    char text[64];
    CHECK_INT(cai_array_text(NULL, text, 64), 4);
    CHECK_STR(text, "NULL");
    CHECK_INT(cai_array_text(NULL, text, 3), 2);
    CHECK_STR(text, "NU");
    help_fill(&a, sizeof a);
    check_capacities(&a);
    for (i = 0; i < 500; i++) { /* right layout, random contents */
        size_t k;
        unsigned char *bytes = (unsigned char *)&a;
        for (k = 0; k < sizeof a; k++) bytes[k] = (unsigned char)help_random();
        a.abi = CAI_ABI;
        a.struct_size = (uint32_t)sizeof a;
        a.ndim = (int32_t)help_between(0, 64);
        a.field_count = 0;
        help_fill(text, sizeof text);
        CHECK(cai_array_text(&a, text, 60) <= 59);
        CHECK(memchr(text, 0, 60) != NULL);
        CHECK(help_filled(text + 60, 4));
    }
}

static void check_text_long(void)
{
    int64_t shape[64], strides[64];
    int i;
    for (i = 0; i < 64; i++) shape[i] = 1;
    for (i = 0; i < 64; i++) strides[i] = INT64_MIN;
    CHECK_INT(cai_array_init(&a, CAI_COMPLEX256, 64, shape, strides, memory, NULL), CAI_OK);
    shape[0] = 2;
    strides[0] = 64;
    CHECK_INT(cai_array_init(&a, CAI_COMPLEX256, 64, shape, strides, memory, NULL), CAI_OK);
    check_capacities(&a);
}

/* ------------------------------------------------------------------ layout of the structs */

static void check_layout(void)
{
    const int wide = sizeof(void *) == 8;
    CHECK_INT(sizeof(cai_dtype), 24);
    CHECK_INT(sizeof(cai_field), wide ? 144 : 136);
    CHECK_INT(sizeof(cai_array), wide ? 1216 : 1200);
    CHECK_INT(offsetof(cai_array, abi), 0);
    CHECK_INT(offsetof(cai_array, struct_size), 4);
    CHECK_INT(offsetof(cai_array, release), 8);
    CHECK_INT(offsetof(cai_array, owner), wide ? 16 : 12);
    CHECK_INT(offsetof(cai_array, flags), wide ? 24 : 16);
    CHECK_INT(offsetof(cai_array, data), wide ? 32 : 24);
    CHECK_INT(offsetof(cai_array, dtype), wide ? 40 : 32);
    CHECK_INT(offsetof(cai_array, ndim), wide ? 76 : 68);
    CHECK_INT(offsetof(cai_array, stream), wide ? 80 : 72);
    CHECK_INT(offsetof(cai_array, size), wide ? 104 : 96);
    CHECK_INT(offsetof(cai_array, fields), wide ? 136 : 128);
    CHECK_INT(offsetof(cai_array, mask), wide ? 144 : 132);
    CHECK_INT(offsetof(cai_array, shape), wide ? 192 : 176);
    CHECK_INT(offsetof(cai_array, strides), wide ? 704 : 688);
    CHECK_INT(offsetof(cai_field, dtype), wide ? 24 : 16);
    CHECK_INT(offsetof(cai_field, offset), wide ? 48 : 40);
    CHECK_INT(offsetof(cai_field, shape), wide ? 80 : 72);
}

static void run(void)
{
    check_layout();
    check_init_plain();
    check_read_only();
    check_init_more();
    check_init_as_import();
    check_release();
    check_borrow();
    check_move();
    check_move_ndim();
    check_move_foreign();
    check_check();
    check_text();
    check_text_garbage();
    check_text_long();
}

CAI_TEST_MAIN(run)
