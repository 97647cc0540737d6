/* test_expect.c - the sentences of cai_expect and cai_expect_same_shape.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

static cai_array a, mask;
static cai_error err;

static void import_array(const char *text)
{
    cai_import_options options;
    memset(&options, 0, sizeof options);
    options.mask = &mask;
    help_reset();
    cai_test_note(text);
    CHECK_INT(cai_import(help_dict(text), &options, &a, NULL), CAI_OK);
}

/* ------------------------------------------------------------------ one sentence each */

typedef struct row {
    const char *array;
    int32_t code;
    int32_t ndim;
    uint32_t requirements;
    const char *message; /* NULL: it is what is expected */
} row;

enum {
    ANY = CAI_ANY_DTYPE,
    ANYD = CAI_ANY_NDIM,
    W = CAI_WRITABLE,
    C = CAI_C_CONTIGUOUS,
    F = CAI_F_CONTIGUOUS,
    A = CAI_ALIGNED,
    N = CAI_NO_SELF_OVERLAP,
    D = CAI_ON_DEVICE,
    M = CAI_ALLOW_MASK,
    U = CAI_ALLOW_UNALIGNED
};

#define MASKED "mask={shape=(3,); typestr='|b1'; data=(8192,True); version=3}"

static const row rows[] = {
    {"", CAI_FLOAT32, 2, 0, NULL},
    {"", CAI_FLOAT32, 2, W | C | A | N | D | M | U, NULL},
    {"", ANY, ANYD, 0, NULL},
    {"", ANY, 2, W, NULL},
    {"", CAI_FLOAT32, ANYD, N, NULL},
    /* dtype */
    {"", CAI_FLOAT64, 2, 0, "x: expected float64, 2-D; got float32, 2-D"},
    {"", CAI_FLOAT64, ANYD, 0, "x: expected float64; got float32, 2-D"},
    {"typestr='`f4'", CAI_FLOAT32, 2, 0, "x: expected float32, 2-D; got `f4, 2-D"},
    {"", CAI_SWAPPED(CAI_FLOAT32), 2, 0, "x: expected `f4, 2-D; got float32, 2-D"},
    {"typestr='`f4'", CAI_SWAPPED(CAI_FLOAT32), 2, 0, NULL},
    {"typestr='|V2'", CAI_BFLOAT16, 2, 0, "x: expected bfloat16, 2-D; got |V2, 2-D"},
    {"typestr='|S5'", CAI_FLOAT32, 2, 0, "x: expected float32, 2-D; got |S5, 2-D"},
    {"typestr='|S5'", CAI_BYTES, 2, 0, NULL},
    {"", CAI_BYTES, 2, 0, "x: expected bytes, 2-D; got float32, 2-D"},
    {"typestr='|V9'", CAI_UNICODE, 2, 0, "x: expected unicode, 2-D; got |V9, 2-D"},
    {"typestr='@m8[ns]'", CAI_INT64, 2, 0, "x: expected int64, 2-D; got @m8[ns], 2-D"},
    {"typestr='@m8[ns]'", CAI_TIMEDELTA64, 2, 0, NULL},
    {"typestr='|t1'", CAI_BOOL, 2, 0, "x: expected bool, 2-D; got |t1, 2-D"},
    /* dimensions */
    {"", CAI_FLOAT32, 3, 0, "x: expected float32, 3-D; got float32, 2-D"},
    {"", CAI_FLOAT32, 0, 0, "x: expected float32, 0-D; got float32, 2-D"},
    {"shape=()", CAI_FLOAT32, 2, 0, "x: expected float32, 2-D; got float32, 0-D"},
    {"", ANY, 1, 0, "x: expected 1-D; got float32, 2-D"},
    {"shape=()", CAI_FLOAT32, 0, W | C | F | A | N, NULL},
    /* order */
    {"strides=(4,8)", CAI_FLOAT32, 2, C,
     "x: expected float32, 2-D, C-contiguous; got float32, 2-D, strides (4, 8)"},
    {"strides=(4,8)", CAI_FLOAT32, 2, F, NULL},
    {"", CAI_FLOAT32, 2, F,
     "x: expected float32, 2-D, F-contiguous; got float32, 2-D, strides (12, 4)"},
    {"strides=(-12,4)", ANY, ANYD, C,
     "x: expected C-contiguous; got float32, 2-D, strides (-12, 4)"},
    {"shape=(3,); strides=(8,)", ANY, 1, C | F,
     "x: expected 1-D, C-contiguous, F-contiguous; got float32, 1-D, strides (8,)"},
    {"shape=(0,3); strides=(9,9)", CAI_FLOAT32, 2, C | F | A | N, NULL},
    /* writable */
    {"data=(4096,True)", CAI_FLOAT32, 2, W, "x: expected float32, 2-D, writable; got float32, 2-D, "
                                            "read-only"},
    {"data=(4096,True)", CAI_FLOAT32, 2, 0, NULL},
    /* overlap */
    {"strides=(0,4)", CAI_FLOAT32, 2, N,
     "x: expected float32, 2-D, no self-overlap; got float32, 2-D, strides (0, 4), overlapping "
     "itself"},
    {"strides=(0,4)", CAI_FLOAT32, 2, 0, NULL},
    /* alignment: asked for unless the caller can do without */
    {"data=(4098,False)", CAI_FLOAT32, 2, 0,
     "x: expected float32, 2-D, aligned; got float32, 2-D, not aligned to 4 bytes"},
    {"data=(4098,False)", CAI_FLOAT32, 2, U, NULL},
    {"data=(4098,False)", CAI_FLOAT32, 2, A,
     "x: expected float32, 2-D, aligned; got float32, 2-D, not aligned to 4 bytes"},
    {"data=(4098,False)", CAI_FLOAT32, 2, A | U,
     "x: expected float32, 2-D, aligned; got float32, 2-D, not aligned to 4 bytes"},
    {"strides=(13,4)", ANY, ANYD, 0,
     "x: expected aligned; got float32, 2-D, not aligned to 4 bytes"},
    {"data=(4104,False); typestr='@c32'", ANY, ANYD, 0,
     "x: expected aligned; got complex256, 2-D, not aligned to 16 bytes"},
    {"data=(4097,False); typestr='|V8'", ANY, ANYD, 0, NULL},
    /* mask */
    {MASKED, CAI_FLOAT32, 2, 0, "x: expected float32, 2-D, no mask; got float32, 2-D, with a mask"},
    {MASKED, CAI_FLOAT32, 2, M, NULL},
    {MASKED, ANY, ANYD, 0, "x: expected no mask; got float32, 2-D, with a mask"},
    /* several at once: what is not met is said, what is met is only asked for */
    {"typestr='`f8'; strides=(8,16); data=(4096,True)", CAI_FLOAT32, 2, C | W,
     "x: expected float32, 2-D, C-contiguous, writable; got `f8, 2-D, strides (8, 16), read-only"},
    {"strides=(4,8)", CAI_FLOAT32, 2, C | W | N | D,
     "x: expected float32, 2-D, C-contiguous, writable, no self-overlap, on the device; got "
     "float32, 2-D, strides (4, 8)"},
    {"strides=(0,3); data=(4097,True); " MASKED, CAI_INT8, 1, W | C | F | N,
     "x: expected int8, 1-D, C-contiguous, F-contiguous, writable, no self-overlap, aligned, no "
     "mask; got float32, 2-D, strides (0, 3), overlapping itself, read-only, not aligned to 4 "
     "bytes, with a mask"},
};

static void check_row(const row *r)
{
    cai_array before;
    cai_status status;
    import_array(r->array);
    memcpy(&before, &a, sizeof a);
    help_fill(&err, sizeof err);
    status = cai_expect(&a, "x", r->code, r->ndim, r->requirements, &err);
    CHECK_INT(status, r->message ? CAI_ERR_EXPECT : CAI_OK);
    CHECK_INT(cai_expect(&a, "x", r->code, r->ndim, r->requirements, NULL), status);
    CHECK_BYTES(&a, &before, sizeof a);
    if (status == CAI_OK) {
        CHECK(help_filled(&err, sizeof err));
        return;
    }
    CHECK_INT(err.code, CAI_ERR_EXPECT);
    CHECK_INT(err.native, 0);
    CHECK_INT(err.entry, CAI_ENTRY_NONE);
    CHECK_INT(err.index, -1);
    if (r->message) CHECK_STR(err.message, help_order(r->message));
}

static void check_rows(void)
{
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) check_row(&rows[i]);
    cai_test_note("");
}

/* Each requirement on its own, and all 64 sets of them, against flags alone. */
static void check_sets(void)
{
    const char *arrays[] = {"", "strides=(4,8)", "data=(4097,True)", "strides=(0,4)", MASKED,
                            "shape=(3,)", "data=(4096,True); strides=(24,8)"};
    uint32_t set;
    size_t i;
    for (i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        import_array(arrays[i]);
        for (set = 0; set < 256; set++) {
            uint32_t facts = set & 31, requirements = facts, missing;
            if (set & 32) requirements |= CAI_ON_DEVICE;
            if (set & 64) requirements |= CAI_ALLOW_MASK;
            if (set & 128) requirements |= CAI_ALLOW_UNALIGNED;
            missing = facts & ~a.flags;
            if (!(set & 128)) missing |= CAI_ALIGNED & ~a.flags;
            if (!(set & 64) && a.mask) missing |= CAI_ALLOW_MASK;
            CHECK_INT(cai_expect(&a, "x", ANY, ANYD, requirements, NULL),
                      missing ? CAI_ERR_EXPECT : CAI_OK);
        }
    }
}

/* Only memory that is known to be plain host memory is refused, unless a device can use it. */
static void check_memory(void)
{
    const int32_t kinds[] = {CAI_MEMORY_UNKNOWN, CAI_MEMORY_HOST, CAI_MEMORY_PINNED,
                             CAI_MEMORY_MANAGED, CAI_MEMORY_DEVICE};
    size_t i;
    import_array("");
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int host = kinds[i] == CAI_MEMORY_HOST;
        a.memory = kinds[i];
        CHECK_INT(cai_expect(&a, "x", ANY, ANYD, D, &err), host ? CAI_ERR_EXPECT : CAI_OK);
        if (host) {
            CHECK_STR(err.message, "x: expected on the device; got float32, 2-D, in host memory");
        }
        CHECK_INT(cai_expect(&a, "x", ANY, ANYD, 0, NULL), CAI_OK);
    }
    a.memory = CAI_MEMORY_HOST;
    a.device = 0; /* which can use it: cai_locate said so */
    CHECK_INT(cai_expect(&a, "x", ANY, ANYD, D, &err), CAI_OK);
}

/* An overlap that could not be decided counts as one. */
static void check_undecided(void)
{
    import_array("strides=(24,8)");
    a.flags &= ~(uint32_t)CAI_NO_SELF_OVERLAP;
    CHECK_INT(cai_expect(&a, "x", ANY, ANYD, N, &err), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "x: expected no self-overlap; got float32, 2-D, strides (24, 8), may "
                           "overlap itself");
}

/* Names and shapes of any length: always one line, terminated. */
static void check_long(void)
{
    char name[600];
    int length;
    int64_t ones[64];
    for (length = 0; length < 64; length++) ones[length] = 1;
    import_array("strides=(4,8)");
    for (length = 0; length < 599; length++) {
        memset(name, 'n', sizeof name);
        name[length] = 0;
        help_fill(&err, sizeof err);
        CHECK_INT(cai_expect(&a, name, CAI_INT8, 2, C | W | N | D, &err), CAI_ERR_EXPECT);
        CHECK(memchr(err.message, 0, sizeof err.message) != NULL);
        if (length < 200) CHECK(strncmp(err.message, name, (size_t)length) == 0);
    }
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 64, ones, NULL, name, NULL), CAI_OK);
    for (length = 0; length < 64; length++) a.strides[length] = INT64_MIN;
    a.flags = 0;
    CHECK_INT(cai_expect(&a, "x", CAI_INT8, 2, C | W | N | D, &err), CAI_ERR_EXPECT);
    CHECK(strlen(err.message) < sizeof err.message);
    CHECK(strncmp(err.message, "x: expected int8, 2-D, C-contiguous", 35) == 0);
}

static void check_arguments(void)
{
    import_array("");
    CHECK_INT(cai_expect(&a, NULL, ANY, ANYD, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_expect: name is NULL");
    CHECK_INT(cai_expect(NULL, "x", ANY, ANYD, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "x: array is NULL");
    CHECK_INT(cai_expect(NULL, NULL, ANY, ANYD, 0, NULL), CAI_ERR_ARGUMENT);
    a.abi ^= 1;
    CHECK_INT(cai_expect(&a, "x", ANY, ANYD, 0, &err), CAI_ERR_ABI);
    CHECK_INT(err.code, CAI_ERR_ABI);
    CHECK_STR(err.message, "x: abi = 0x43414930 is not 0x43414931, that of this header");
}

/* Numbers of a later version that a consumer need not know: they say nothing, and do not make an array wrong. */
static void check_later(void)
{
    const int64_t shape[2] = {2, 3};
    char line[200];
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 2, shape, NULL, line, NULL), CAI_OK);
    a.memory = 9;
    a.device = -7;
    a.flags |= UINT32_C(1) << 31 | UINT32_C(1) << 13;
    a.reserved = 5;
    a.struct_size += 8;
    CHECK_INT(cai_expect(&a, "x", CAI_FLOAT32, 2, C | CAI_ON_DEVICE, &err), CAI_OK);
    a.dtype.code = CAI_CODE('f', 4, 0x45);
    CHECK_INT(cai_expect(&a, "x", ANY, 2, C | CAI_ON_DEVICE, &err), CAI_OK);
    CHECK_INT(cai_expect(&a, "x", CAI_FLOAT32, 2, 0, &err), CAI_ERR_EXPECT);
    a.sync = 7;
    (void)cai_array_text(&a, line, (int32_t)sizeof line);
    CHECK(strstr(line, "work may be pending") != NULL);
}

/* ------------------------------------------------------------------ same shape */

typedef struct pair {
    const char *a;
    const char *b;
    int32_t index; /* -2: same */
    const char *message;
} pair;

static const pair pairs[] = {
    {"", "typestr='|u1'; strides=(1,2)", -2, NULL},
    {"shape=()", "shape=()", -2, NULL},
    {"shape=(0,3)", "shape=(0,3)", -2, NULL},
    {"", "shape=(2,4)", 1, "shape[1] = 3 in x, 4 in y"},
    {"", "shape=(3,3)", 0, "shape[0] = 2 in x, 3 in y"},
    {"", "shape=(7,8)", 0, "shape[0] = 2 in x, 7 in y"},
    {"", "shape=(3,)", -1, "shape has 2 dimensions in x, 1 in y"},
    {"", "shape=(2,3,1)", -1, "shape has 2 dimensions in x, 3 in y"},
    {"shape=()", "shape=(1,)", -1, "shape has 0 dimensions in x, 1 in y"},
    {"shape=(1,)", "shape=(2,)", 0, "shape[0] = 1 in x, 2 in y"},
};

static void check_same_shape(void)
{
    cai_array b;
    size_t i;
    for (i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const pair *p = &pairs[i];
        cai_status wanted = p->index == -2 ? CAI_OK : CAI_ERR_EXPECT;
        import_array(p->a);
        memcpy(&b, &a, sizeof b);
        import_array(p->b);
        help_fill(&err, sizeof err);
        CHECK_INT(cai_expect_same_shape(&b, "x", &a, "y", &err), wanted);
        CHECK_INT(cai_expect_same_shape(&b, "x", &a, "y", NULL), wanted);
        CHECK_INT(cai_expect_same_shape(&a, "x", &b, "y", NULL), wanted);
        if (wanted == CAI_OK) {
            CHECK(help_filled(&err, sizeof err));
            continue;
        }
        CHECK_INT(err.code, CAI_ERR_EXPECT);
        CHECK_INT(err.index, p->index);
        CHECK_STR(err.message, p->message);
    }
    CHECK_INT(cai_expect_same_shape(&b, NULL, &a, "y", &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_expect_same_shape(&b, "x", &a, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_expect_same_shape: a name is NULL");
    import_array("");
    CHECK_INT(cai_expect_same_shape(&a, "x", NULL, "y", &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "y: array is NULL");
    CHECK_INT(cai_expect_same_shape(NULL, "x", &a, "y", &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "x: array is NULL");
    mask = a;
    mask.ndim = 65;
    CHECK_INT(cai_expect_same_shape(&a, "x", &mask, "y", &err), CAI_ERR_ABI);
    CHECK_STR(err.message, "y: ndim = 65 is not in 0..64");
    CHECK_INT(cai_expect_same_shape(&mask, "x", &a, "y", &err), CAI_ERR_ABI);
    CHECK_STR(err.message, "x: ndim = 65 is not in 0..64");
}

/* What it cannot require it refuses to require. */
static void check_bits(void)
{
    uint32_t bit;
    import_array("");
    for (bit = 1; bit; bit <<= 1) {
        const cai_status status = cai_expect(&a, "a", ANY, ANYD, bit, &err);
        if (bit & (W | C | F | A | N | D | M | U)) CHECK(status != CAI_ERR_ARGUMENT);
        else CHECK_INT(status, CAI_ERR_ARGUMENT);
    }
    CHECK_STR(err.message, "cai_expect: requirements = 0x80000000 has unknown bits");
}

static void run(void)
{
    check_rows();
    check_bits();
    check_sets();
    check_memory();
    check_undecided();
    check_long();
    check_arguments();
    check_later();
    check_same_shape();
}

CAI_TEST_MAIN(run)
