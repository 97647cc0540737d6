/* test_import.c - what cai_import accepts, and what it says of it.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

#define ONES_8 "1,1,1,1,1,1,1,1,"
#define ONES_64 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8

static cai_array a;
static cai_array mask;
static cai_field fields[40];

static cai_status import_with(const char *text, uint32_t flags)
{
    cai_import_options options;
    options.flags = flags;
    options.mask = &mask;
    options.fields = fields;
    options.field_capacity = 40;
    help_reset();
    help_fill(&a, sizeof a);
    help_fill(&mask, sizeof mask);
    help_fill(fields, sizeof fields);
    cai_test_note(text);
    return cai_import(help_dict(text), &options, &a, NULL);
}

static void import_good(const char *text)
{
    cai_error err;
    cai_import_options options;
    CHECK_INT(import_with(text, 0), CAI_OK);
    memset(&options, 0, sizeof options);
    options.mask = &mask;
    help_fill(&err, sizeof err);
    CHECK_INT(cai_import(help_dict(text), &options, &a, &err), CAI_OK);
    CHECK(help_filled(&err, sizeof err));
    CHECK_INT(import_with(text, 0), CAI_OK);
}

static int has(uint32_t flag)
{
    return (a.flags & flag) != 0;
}

/* ------------------------------------------------------------------ the plain case */

static void check_plain(void)
{
    import_good("");
    CHECK_UINT(a.abi, CAI_ABI);
    CHECK_INT(a.struct_size, sizeof(cai_array));
    CHECK(a.release == NULL);
    CHECK(a.owner == NULL);
    CHECK_UINT(a.flags, CAI_WRITABLE | CAI_C_CONTIGUOUS | CAI_ALIGNED | CAI_NO_SELF_OVERLAP |
                            CAI_DENSE);
    CHECK_INT(a.version, 3);
    CHECK_UINT(a.data, 4096);
    CHECK_INT(a.dtype.code, CAI_FLOAT32);
    CHECK_INT(a.dtype.itemsize, 4);
    CHECK_INT(a.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(a.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(a.sync, CAI_SYNC_NONE);
    CHECK_INT(a.ndim, 2);
    CHECK_UINT(a.stream | a.event | a.thread, 0);
    CHECK_INT(a.shape[0] * 100 + a.shape[1], 203);
    CHECK_INT(a.strides[0] * 100 + a.strides[1], 1204);
    CHECK(a.fields == NULL);
    CHECK(a.mask == NULL);
    CHECK_INT(a.field_count, 0);
    CHECK_INT(a.packed_axis, -1);
    CHECK_INT(a.packed_extent, 0);
    CHECK_INT(a.backend, CAI_BACKEND_CUDA);
    CHECK_UINT(a.must_understand, 0);
    CHECK_UINT(a.reserved, 0);
    help_check_facts(&a);
    CHECK_INT(cai_array_check(&a, NULL), CAI_OK);
}

/* ------------------------------------------------------------------ sync states */

static void check_sync(void)
{
    const char *streams[] = {"", "stream=None", "stream=1", "stream=2", "stream=3",
                             "stream=140735340871680", "stream=9223372036854775808",
                             "stream=18446744073709551615"};
    const uint64_t numbers[] = {0, 0, 1, 2, 3, 140735340871680, (uint64_t)1 << 63, UINT64_MAX};
    int32_t version, k;
    for (version = 0; version <= 4; version++) {
        for (k = 0; k < 8; k++) {
            char text[80];
            int32_t none = version >= 3 ? CAI_SYNC_NONE : CAI_SYNC_UNKNOWN;
            sprintf(text, "version=%d; %s", (int)version, streams[k]);
            import_good(text);
            CHECK_INT(a.version, version);
            CHECK_INT(a.sync, k == 0 ? none : k == 1 ? CAI_SYNC_NONE : CAI_SYNC_STREAM);
            CHECK_UINT(a.stream, numbers[k]);
            CHECK_UINT(a.event | a.thread, 0);
            CHECK_INT(has(CAI_FUTURE_VERSION), version > 3);
        }
    }
    import_good("version=2147483647");
    CHECK_INT(a.version, INT32_MAX);
    CHECK(has(CAI_FUTURE_VERSION));
}

/* ------------------------------------------------------------------ flags */

typedef struct flag_row {
    const char *text;
    uint32_t set;
    uint32_t clear;
} flag_row;

static const flag_row flag_rows[] = {
    {"data=(4096,False)", CAI_WRITABLE, 0},
    {"data=(4096,0)", CAI_WRITABLE, 0},
    {"data=(4096,True)", 0, CAI_WRITABLE},
    {"data=(4096,1)", 0, CAI_WRITABLE},
    {"", 0, CAI_HAD_STRIDES | CAI_F_CONTIGUOUS},
    {"strides=None", 0, CAI_HAD_STRIDES},
    {"strides=(12,4)", CAI_HAD_STRIDES | CAI_C_CONTIGUOUS | CAI_DENSE, CAI_F_CONTIGUOUS},
    {"strides=(4,8)", CAI_HAD_STRIDES | CAI_F_CONTIGUOUS | CAI_DENSE, CAI_C_CONTIGUOUS},
    {"shape=(); strides=()", CAI_HAD_STRIDES | CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS, 0},
    {"shape=(5,)", CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS | CAI_DENSE, 0},
    {"shape=(5,1,1)", CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS, 0},
    {"shape=(1,3); strides=(999,4)", CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS | CAI_ALIGNED, 0},
    {"shape=(3,1); strides=(4,7)", CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS | CAI_ALIGNED, 0},
    {"strides=(13,4)", 0, CAI_ALIGNED | CAI_C_CONTIGUOUS | CAI_DENSE},
    {"data=(4097,False)", CAI_C_CONTIGUOUS, CAI_ALIGNED},
    {"data=(4098,False); typestr='@c4'", CAI_ALIGNED, 0},
    {"data=(4100,False); typestr='@c16'", 0, CAI_ALIGNED},
    {"data=(4100,False); typestr='@c8'", CAI_ALIGNED, 0},
    {"data=(4097,False); typestr='|V8'", CAI_ALIGNED, 0},
    {"shape=(4,); strides=(-4,)", CAI_DENSE | CAI_NO_SELF_OVERLAP, CAI_C_CONTIGUOUS},
    {"strides=(0,4)", CAI_SELF_OVERLAP, CAI_NO_SELF_OVERLAP | CAI_C_CONTIGUOUS},
    {"shape=(2,2); strides=(2,4)", CAI_SELF_OVERLAP, CAI_NO_SELF_OVERLAP | CAI_ALIGNED},
    {"shape=(3,2,4); strides=(16,48,4)", CAI_DENSE, CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS},
    {"shape=(3,); strides=(8,)", CAI_NO_SELF_OVERLAP, CAI_DENSE | CAI_C_CONTIGUOUS},
    {"typestr='`f4'", CAI_BYTE_SWAPPED, 0},
    {"typestr='@f4'", 0, CAI_BYTE_SWAPPED},
    {"typestr='`i1'", 0, CAI_BYTE_SWAPPED},
    {"typestr='`S4'", 0, CAI_BYTE_SWAPPED},
    {"typestr='`U4'", CAI_BYTE_SWAPPED, 0},
    {"typestr='`V4'", 0, CAI_BYTE_SWAPPED},
    {"typestr='|f8'", 0, CAI_BYTE_SWAPPED},
    {"version=4", CAI_FUTURE_VERSION, 0},
};

static void check_flags(void)
{
    size_t i;
    for (i = 0; i < sizeof flag_rows / sizeof flag_rows[0]; i++) {
        import_good(flag_rows[i].text);
        CHECK_UINT(a.flags & flag_rows[i].set, flag_rows[i].set);
        CHECK_UINT(a.flags & flag_rows[i].clear, 0);
        help_check_facts(&a);
    }
}

/* ------------------------------------------------------------------ zero size */

static void check_empty(void)
{
    const char *texts[] = {
        "shape=(0,); data=(0,False)",
        "shape=(2,0,3); data=(0,False)",
        "shape=(2,0,3); data=(0,False); strides=(0,12,4)",
        "shape=(0,); strides=(99,)",
        "shape=(0,); data=(4097,False); strides=(-1,)",
        "shape=(0,3); data=(18446744073709551615,False)",
        "shape=(3,0); strides=(9223372036854775807,-9223372036854775808)",
        "shape=(0,9223372036854775807); typestr='|u1'; data=(0,False)",
        "shape=(4611686018427387904,0); strides=(9223372036854775807,1); typestr='|u1'",
    };
    size_t i;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        import_good(texts[i]);
        CHECK_UINT(a.data, 0);
        CHECK_INT(a.size | a.nbytes | a.lo | a.hi, 0);
        CHECK(has(CAI_C_CONTIGUOUS) && has(CAI_F_CONTIGUOUS) && has(CAI_ALIGNED));
        CHECK(has(CAI_NO_SELF_OVERLAP) && !has(CAI_SELF_OVERLAP));
        CHECK(has(CAI_WRITABLE));
    }
    import_good("shape=(0,); data=(0,True); stream=5");
    CHECK(!has(CAI_WRITABLE));
    CHECK_INT(a.sync, CAI_SYNC_STREAM);
    CHECK_UINT(a.stream, 5);
    import_good("shape=(2,0,3)");
    CHECK_INT(a.strides[0], 12);
    CHECK_INT(a.strides[1], 12);
    CHECK_INT(a.strides[2], 4);
}

/* ------------------------------------------------------------------ limits */

static void check_extent(const char *text, int64_t lo, int64_t hi)
{
    import_good(text);
    CHECK_INT(a.lo, lo);
    CHECK_INT(a.hi, hi);
}

static void check_limits(void)
{
    const int64_t M = INT64_MAX;
    check_extent("shape=(2,); strides=(9223372036854775803,)", 0, M);
    check_extent("shape=(2,); strides=(-9223372036854775808,); data=(9223372036854775808,False)",
                 INT64_MIN, 4);
    check_extent("shape=(2,); data=(9223372036854775807,False); strides=(-9223372036854775807,)",
                 -M, 4);
    check_extent("shape=(1,3); strides=(-9223372036854775808,4)", 0, 12);
    check_extent("shape=(3,2); strides=(-8,4)", -16, 8);
    check_extent("shape=(4,); data=(12,False); strides=(-4,)", -12, 4);
    check_extent("shape=(2,); data=(18446744073709551608,False)", 0, 8);
    check_extent("shape=(); data=(18446744073709551612,False)", 0, 4);
    check_extent("shape=(2147483649,); typestr='|i1'", 0, 2147483649);
    check_extent("shape=(9223372036854775807,); typestr='|i1'", 0, M);
    check_extent("shape=(4611686018427387903,); typestr='@i2'", 0, M - 1);
    check_extent("shape=(2,2,2); strides=(3074457345618258601,-3074457345618258603,4);"
                 "data=(9223372036854775808,False)", -3074457345618258603, 3074457345618258609);
}

static void check_limit_refusals(void)
{
    CHECK_INT(import_with("shape=(2,); strides=(9223372036854775804,)", 0), CAI_ERR_STRIDES);
    CHECK_INT(import_with("shape=(2,2); strides=(9223372036854775800,4)", 0), CAI_ERR_STRIDES);
    CHECK_INT(import_with("shape=(2,2); strides=(9223372036854775799,4)", 0), CAI_OK);
    CHECK_INT(import_with("shape=(2,2); data=(18446744073709551000,False);"
                          "strides=(-9223372036854775808,-1)", 0), CAI_ERR_STRIDES);
    CHECK_INT(import_with("shape=(2,2); data=(18446744073709551000,False);"
                          "strides=(-9223372036854775807,-1)", 0), CAI_OK);
    CHECK_INT(import_with("shape=(2,); strides=(-9223372036854775808,)", 0), CAI_ERR_DATA);
    CHECK_INT(import_with("shape=(4,); data=(11,False); strides=(-4,)", 0), CAI_ERR_DATA);
    CHECK_INT(import_with("shape=(2,); data=(18446744073709551609,False)", 0), CAI_ERR_DATA);
    CHECK_INT(import_with("shape=(2305843009213693952,)", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(2305843009213693951,)", 0), CAI_OK);
    CHECK_INT(import_with("shape=(4611686018427387904,); typestr='@i2'", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(0,4611686018427387904,2); typestr='|u1'", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(4611686018427387904,2,0); typestr='|u1'", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(3037000500,3037000500); typestr='|u1'", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(3037000499,3037000500); typestr='|u1'", 0), CAI_OK);
    /* a broadcast view has more bytes of elements than of memory: still bounded by int64 */
    CHECK_INT(import_with("shape=(4611686018427387904,2); strides=(0,0); typestr='|u1'", 0),
              CAI_ERR_SHAPE);
}

static void check_dimensions(void)
{
    int i;
    import_good("shape=(" ONES_64 ")");
    CHECK_INT(a.ndim, 64);
    CHECK_INT(a.size, 1);
    for (i = 0; i < 64; i++) CHECK_INT(a.strides[i], 4);
    import_good("shape=(2," ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 "1,1,1,1,1,1,3)");
    CHECK_INT(a.ndim, 64);
    CHECK_INT(a.strides[0], 12);
    CHECK_INT(a.strides[1], 12);
    CHECK_INT(a.strides[63], 4);
    CHECK_INT(import_with("shape=(" ONES_64 "1)", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(0," ONES_64 ")", 0), CAI_ERR_SHAPE);
    import_good("shape=(1,1,1); strides=(-9223372036854775808,9223372036854775807,0)");
    CHECK_INT(a.strides[0], INT64_MIN);
    CHECK_INT(a.strides[1], INT64_MAX);
    CHECK(has(CAI_C_CONTIGUOUS) && has(CAI_F_CONTIGUOUS) && has(CAI_ALIGNED));
}

/* Where the search for an overlap is given up, neither flag is set, and no other one changes. */
static void check_undecided(void)
{
    const char *wide = "shape=(2,2); strides=(2305843009213693952,2305843009213693951);";
    char text[200];
    sprintf(text, "%s data=(4096,True)", wide); /* two elements are 1 byte apart */
    import_good(text);
    CHECK(!has(CAI_WRITABLE) && !has(CAI_DENSE) && !has(CAI_C_CONTIGUOUS));
    CHECK(!has(CAI_NO_SELF_OVERLAP));
    sprintf(text, "%s data=(4096,True); typestr='|u1'", wide);
    import_good(text);
    CHECK(!has(CAI_WRITABLE) && !has(CAI_SELF_OVERLAP));
}

/* Random layouts: facts against the elements. */
static void check_random(void)
{
    const char *types[] = {"|V3", "|u1", "@i2", "`f4", "@c8", "|V5", "@f8"};
    int i, k;
    for (i = 0; i < 4000; i++) {
        char text[400];
        int64_t strides[4] = {0, 0, 0, 0};
        int ndim = (int)help_between(0, 4), length;
        int explicit_strides = ndim > 0 && (int)help_between(0, 3);
        length = sprintf(text, "typestr='%s'; data=(%d,%d); shape=(", types[help_between(0, 6)],
                         (int)help_between(100000, 100016), (int)help_between(0, 1));
        for (k = 0; k < ndim; k++) {
            length += sprintf(text + length, "%d,", (int)help_between(help_between(0, 9) != 0, 4));
        }
        length += sprintf(text + length, ")%s", explicit_strides ? "; strides=(" : "");
        for (k = 0; explicit_strides && k < ndim; k++) {
            strides[k] = help_between(-24, 24);
            length += sprintf(text + length, "%d,", (int)strides[k]);
        }
        sprintf(text + length, "%s", explicit_strides ? ")" : "");
        CHECK_INT(import_with(text, 0), CAI_OK);
        CHECK_INT(has(CAI_HAD_STRIDES), explicit_strides);
        if (explicit_strides) CHECK_BYTES(a.strides, strides, (size_t)ndim * 8);
        help_check_facts(&a);
    }
}

/* ------------------------------------------------------------------ bit fields */

static void check_bits(void)
{
    import_good("shape=(13,); typestr='|t1'");
    CHECK_INT(a.dtype.code, CAI_BITFIELD);
    CHECK_INT(a.dtype.itemsize, 0);
    CHECK_INT(a.dtype.bits, 1);
    CHECK_INT(a.size, 13);
    CHECK_INT(a.nbytes, 2);
    CHECK_INT(a.strides[0], 0);
    CHECK_INT(a.lo, 0);
    CHECK_INT(a.hi, 2);
    CHECK(has(CAI_C_CONTIGUOUS) && has(CAI_F_CONTIGUOUS) && has(CAI_ALIGNED));
    CHECK(has(CAI_NO_SELF_OVERLAP) && !has(CAI_SELF_OVERLAP));
    import_good("shape=(3,5); typestr='|t3'; strides=None");
    CHECK_INT(a.nbytes, 6);
    CHECK(has(CAI_C_CONTIGUOUS) && !has(CAI_F_CONTIGUOUS));
    import_good("shape=(); typestr='|t9'");
    CHECK_INT(a.nbytes, 2);
    import_good("shape=(8,0); typestr='|t1'");
    CHECK_INT(a.nbytes, 0);
    CHECK_UINT(a.data, 0);
    import_good("shape=(9223372036854775807,); typestr='|t1'");
    CHECK_INT(a.nbytes, (int64_t)1 << 60);
    CHECK_INT(a.size, INT64_MAX);
    import_good("shape=(9223372036854775807,); typestr='|t7'; data=(1,False)");
    CHECK_INT(a.nbytes, (((int64_t)1 << 60) - 1) * 7 + 7);
    import_good("shape=(9223372036854775807,); typestr='|t8'; data=(1,False)");
    CHECK_INT(a.nbytes, INT64_MAX);
    CHECK_INT(import_with("shape=(9223372036854775807,); typestr='|t9'", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(0,9223372036854775807); typestr='|t9'", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(-1,); typestr='|t1'", 0), CAI_ERR_SHAPE);
    /* 8 q + 7 elements of b = 2^31 - 1 bits: q b bytes fit int64, the rest does not */
    CHECK_INT(import_with("shape=(34359738391,); typestr='|t2147483647'; data=(1,False)", 0),
              CAI_ERR_SHAPE);
    CHECK_INT(import_with("shape=(0,); data=('',False)", 0), CAI_ERR_TYPE);
    CHECK_INT(import_with("shape=(0,-1); strides=(1,1)", 0), CAI_ERR_SHAPE);
    CHECK_INT(import_with("typestr='|V8'; descr=[('a','<i4',-1)]", 0), CAI_ERR_TYPE);
    CHECK_INT(import_with("shape=(9223372036854775807,); typestr='|t1';"
                          "data=(18446744073709551000,False)", 0), CAI_ERR_DATA);
}

/* ------------------------------------------------------------------ masks */

#define GOOD_MASK "typestr='|b1'; data=(8192,True); version=3"

static void check_mask_good(const char *text)
{
    import_good(text);
    CHECK(a.mask == &mask);
    CHECK_INT(cai_array_check(&mask, NULL), CAI_OK);
    CHECK(mask.mask == NULL);
    CHECK(mask.release == NULL);
}

static void check_masks(void)
{
    const char *fitting[] = {"(2,3)", "(1,3)", "(2,1)", "(1,1)", "(3,)", "(1,)", "()"};
    const char *others[] = {"(2,2)", "(3,3)", "(2,)",    "(1,2,3)",
                            "(3,2)", "(0,)",  "(1,1,1)", "(4,)"};
    char text[200];
    size_t i;
    for (i = 0; i < sizeof fitting / sizeof fitting[0]; i++) {
        sprintf(text, "mask={shape=%s; " GOOD_MASK "}", fitting[i]);
        check_mask_good(text);
        CHECK_UINT(mask.data, 8192);
        CHECK_INT(mask.dtype.code, CAI_BOOL);
        CHECK_INT((mask.flags & CAI_WRITABLE), 0);
    }
    for (i = 0; i < sizeof others / sizeof others[0]; i++) {
        sprintf(text, "mask={shape=%s; " GOOD_MASK "}", others[i]);
        CHECK_INT(import_with(text, 0), CAI_ERR_MASK);
    }
    check_mask_good("shape=(2,0); mask={shape=(2,0); " GOOD_MASK "}");
    check_mask_good("shape=(2,0); mask={shape=(1,); " GOOD_MASK "}");
    check_mask_good("shape=(2,3); mask={shape=(2,3); strides=(1,2); " GOOD_MASK "}");
    check_mask_good("version=0; mask={shape=(3,); " GOOD_MASK "}");
    check_mask_good("mask={shape=(3,); typestr='|i1'; data=(8192,False); version=3}");
    check_mask_good("mask={shape=(3,); typestr='`f8'; data=(8192,False); version=3}");
    check_mask_good("shape=(13,); mask={shape=(13,); typestr='<t1'; data=(8192,True); version=3}");
    CHECK_INT(mask.nbytes, 2);
    check_mask_good("mask={shape=(3,); " GOOD_MASK "; mask=None}");
    import_good("mask=None");
    CHECK(a.mask == NULL);
}

/* A reader that hands over the mask's entries and forgets its token: the mask is not lost. */
static void check_mask_alone(void)
{
    cai_import_options options;
    cai_interface in = *help_dict("mask={shape=(3,); " GOOD_MASK "}"), of_mask = *in.mask_interface;
    memset(&options, 0, sizeof options);
    in.mask = NULL;
    CHECK_INT(cai_import(&in, &options, &a, NULL), CAI_ERR_MASK);
    CHECK_INT(cai_import(&in, NULL, &a, NULL), CAI_ERR_MASK);
    options.mask = &mask;
    CHECK_INT(cai_import(&in, &options, &a, NULL), CAI_OK);
    CHECK(a.mask == &mask);
    options.mask = &a;
    CHECK_INT(cai_import(&in, &options, &a, NULL), CAI_ERR_ARGUMENT);
    options.mask = &mask;
    of_mask.mask_interface = &in;
    in.mask_interface = &of_mask;
    CHECK_INT(cai_import(&in, &options, &a, NULL), CAI_ERR_MASK);
}

static void check_mask_streams(void)
{
    check_mask_good("stream=5; mask={shape=(3,); stream=9; " GOOD_MASK "}");
    CHECK_UINT(a.stream, 5);
    CHECK_UINT(mask.stream, 9);
    CHECK_INT(mask.sync, CAI_SYNC_STREAM);
    check_mask_good("stream=5; mask={shape=(3,); typestr='|b1'; data=(8192,False); version=2}");
    CHECK_INT(mask.sync, CAI_SYNC_UNKNOWN);
    CHECK_UINT(mask.stream, 0);
    CHECK_INT(mask.version, 2);
    check_mask_good("version=1; mask={shape=(3,); " GOOD_MASK "}");
    CHECK_INT(a.sync, CAI_SYNC_UNKNOWN);
    CHECK_INT(mask.sync, CAI_SYNC_NONE);
}

static void check_mask_refusals(void)
{
    const char *texts[] = {
        "mask=True", "mask=obj", "mask={}", "mask=5", "mask='x'", "mask=(True,)",
        "mask={shape=(3,); " GOOD_MASK "; mask={shape=(3,); " GOOD_MASK "}}",
        "mask={shape=(3,); " GOOD_MASK "; mask=obj}",
        "mask={shape=(3,); typestr='|b1'; data=(8192,True)}",
        "mask={shape=(3,); typestr='|O8'; data=(8192,True); version=3}",
        "mask={shape=(3,); typestr='|b1'; data=(0,True); version=3}",
    };
    cai_import_options options;
    size_t i;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cai_status status = import_with(texts[i], 0);
        CHECK(status != CAI_OK);
        CHECK(help_filled(&a, sizeof a) && help_filled(&mask, sizeof mask));
    }
    memset(&options, 0, sizeof options);
    CHECK_INT(cai_import(help_dict("mask={shape=(3,); " GOOD_MASK "}"), &options, &a, NULL),
              CAI_ERR_MASK);
    CHECK_INT(cai_import(help_dict("mask={shape=(3,); " GOOD_MASK "}"), NULL, &a, NULL),
              CAI_ERR_MASK);
    CHECK_INT(cai_import(help_dict("mask=None"), NULL, &a, NULL), CAI_OK);
}

/* ------------------------------------------------------------------ lenient */

/* strict refuses, lenient accepts, and gives the array that `good` gives. */
static void check_forgiven(const char *text, const char *good)
{
    static cai_array expected, expected_mask;
    cai_status status;
    import_good(good);
    memcpy(&expected, &a, sizeof a);
    memcpy(&expected_mask, &mask, sizeof mask);
    status = import_with(text, 0);
    CHECK(status != CAI_OK);
    CHECK(help_filled(&a, sizeof a));
    CHECK_INT(import_with(text, CAI_LENIENT), CAI_OK);
    CHECK_INT(a.field_count, expected.field_count);
    CHECK_BYTES(&a, &expected, offsetof(cai_array, shape));
    CHECK_BYTES(a.shape, expected.shape, (size_t)a.ndim * 8);
    CHECK_BYTES(a.strides, expected.strides, (size_t)a.ndim * 8);
    if (a.mask) CHECK_BYTES(&mask, &expected_mask, offsetof(cai_array, shape));
}

static void check_lenient(void)
{
    check_forgiven("!version", "version=0");
    check_forgiven("data=[4096,True]", "data=(4096,True)");
    check_forgiven("data=(4096,False,None)", "");
    check_forgiven("data=(4096,True,1,2,(3,[4]),5)", "data=(4096,True)");
    check_forgiven("data=[4096,False,0]", "");
    check_forgiven("data=(4096,None)", "");
    check_forgiven("data=(4096,2)", "data=(4096,True)");
    check_forgiven("data=(4096,-1)", "data=(4096,True)");
    check_forgiven("data=(4096,99999999999999999999999)", "data=(4096,True)");
    check_forgiven("data=(4096,0.0)", "data=(4096,False)");
    check_forgiven("data=(4096,0.5)", "data=(4096,True)");
    check_forgiven("data=(4096,'')", "data=(4096,False)");
    check_forgiven("data=(4096,'False')", "data=(4096,True)");
    check_forgiven("data=(4096,b'')", "data=(4096,False)");
    check_forgiven("data=(4096,())", "data=(4096,False)");
    check_forgiven("data=(4096,(0,))", "data=(4096,True)");
    check_forgiven("data=(4096,[])", "data=(4096,False)");
    check_forgiven("data=(4096,{})", "data=(4096,False)");
    check_forgiven("data=(4096,{1})", "data=(4096,True)");
    check_forgiven("data=(4096,obj0)", "data=(4096,False)");
    check_forgiven("data=(4096,obj)", "data=(4096,True)");
    check_forgiven("data=(4096,np(0))", "data=(4096,False)");
    check_forgiven("data=(4096,np(3))", "data=(4096,True)");
    check_forgiven("shape=[2,3]", "");
    check_forgiven("shape=[]", "shape=()");
    check_forgiven("strides=[4,8]", "strides=(4,8)");
    check_forgiven("typestr='=f4'", "");
    check_forgiven("typestr='f4'", "");
    check_forgiven("typestr='V5'", "typestr='|V5'");
    check_forgiven("typestr=b'<f4'", "typestr='<f4'");
    check_forgiven("typestr=b'f4'", "");
    check_forgiven("shape=(0,3); data=(None,True)", "shape=(0,3); data=(0,True)");
    check_forgiven("shape=(np(2),np(3))", "");
    check_forgiven("strides=(np(12),np(-4))", "strides=(12,-4)");
    check_forgiven("data=(np(4096),False)", "");
    check_forgiven("version=np(2)", "version=2");
    check_forgiven("stream=np(7)", "stream=7");
    check_forgiven("mask={shape=[3]; " GOOD_MASK "}", "mask={shape=(3,); " GOOD_MASK "}");
}

static void check_lenient_descr(void)
{
    const char *good = "typestr='|V8'; descr=[('a','@i4',(2,))]";
    check_forgiven("typestr='|V8'; descr=[('a','@i4',2)]", good);
    check_forgiven("typestr='|V8'; descr=[('a','@i4',np(2))]", good);
    check_forgiven("typestr='|V8'; descr=[('a','@i4',(np(2),))]", good);
    check_forgiven("typestr='|V8'; descr=(('a','@i4',(2,)),)", good);
    check_forgiven("typestr='|V8'; descr=[('a',b'@i4',(2,))]", good);
    check_forgiven("typestr='|V8'; descr=[('a','i4',(2,))]", good);
    CHECK_INT(fields[0].ndim, 1);
    CHECK_INT(fields[0].shape[0], 2);
    CHECK_INT(fields[0].dtype.code, CAI_INT32);
}

/* Nothing else is forgiven. */
static void check_not_forgiven(void)
{
    const char *texts[] = {
        "!shape", "!typestr", "!data", "shape=None", "shape=5", "shape=(-1,)", "shape=(2.0,3)",
        "shape=(True,3)", "typestr='<f3'", "typestr=' <f4'", "typestr=4", "data=None", "data=4096",
        "data=(4096,)", "data=[4096]", "data=(None,False)", "data=('4096',False)", "data=(0,False)",
        "data=(True,False)", "data=(4096.0,False)", "data=(-1,False)", "data=(np(-1),False)",
        "data=(4096,?)", "version=None", "version='3'", "version=-1", "version=3.0",
        "version=True", "strides=5", "strides=(4,)", "strides=(4.0,4)", "stream=0", "stream=-1",
        "stream=np(0)", "stream=True", "stream='1'", "stream=1.0", "descr=5", "descr=[]",
        "descr=[['a','<f4']]", "descr=[('a','<f8')]", "descr=[('a','<i2',True)]",
        "descr=[('a','<i2',-2)]", "descr=[('a','<i2',[2])]", "mask=True", "mask={}",
    };
    size_t i;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cai_status status = import_with(texts[i], CAI_LENIENT);
        CHECK(status != CAI_OK);
        CHECK(help_filled(&a, sizeof a));
    }
}

/* ------------------------------------------------------------------ dtypes and descr */

static void check_descr(void)
{
    import_good("typestr='`u8'; shape=(2,); descr=[('big','>i4'),('little','<i4')]");
    CHECK_INT(a.field_count, 2);
    CHECK(a.fields == fields);
    CHECK_INT(a.dtype.code, CAI_SWAPPED(CAI_UINT64));
    import_good("descr=[('','@f4')]");
    CHECK(a.fields == NULL);
    CHECK_INT(a.field_count, 0);
    import_good("descr=None");
    CHECK(a.fields == NULL);
    help_reset();
    CHECK_INT(cai_import(help_dict("typestr='|V4'; descr=[('a','<i4')]"), NULL, &a, NULL), CAI_OK);
    CHECK(a.fields == NULL);
    CHECK_INT(a.field_count, 0);
}

/* Python ignores entries it does not know: a reader does not pass them on. Tokens of any kind
 * number outside the list are values that the reader cannot say. */
static void check_unknown_tokens(void)
{
    const int32_t kinds[] = {0, -1, 99, INT32_MAX, INT32_MIN};
    size_t i;
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        cai_interface *in;
        cai_token odd;
        cai_status status;
        help_reset();
        memset(&odd, 0, sizeof odd);
        odd.kind = kinds[i];
        in = help_dict("");
        in->version = &odd;
        status = cai_import(in, NULL, &a, NULL);
        CHECK_INT(status, CAI_ERR_TYPE);
        in = help_dict("");
        in->stream = &odd;
        status = cai_import(in, NULL, &a, NULL);
        CHECK_INT(status, CAI_ERR_TYPE);
    }
}

static void run(void)
{
    check_plain();
    check_sync();
    check_flags();
    check_empty();
    check_limits();
    check_limit_refusals();
    check_dimensions();
    check_undecided();
    check_random();
    check_bits();
    check_masks();
    check_mask_alone();
    check_mask_streams();
    check_mask_refusals();
    check_lenient();
    check_lenient_descr();
    check_not_forgiven();
    check_descr();
    check_unknown_tokens();
}

CAI_TEST_MAIN(run)
