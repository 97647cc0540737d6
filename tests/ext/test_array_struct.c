/* test_array_struct.c - ext/cai_array_struct.h: the struct judged, made, and back; every refusal.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "ext/cai_array_struct.h"
#include "cai_test.h"
#include "cai_test_help.h"

enum { ROWS = 16, NATIVE = CAI_ARRAY_STRUCT_NATIVE, WRITABLE = CAI_ARRAY_STRUCT_WRITABLE };
enum { HAS_DESCR = CAI_ARRAY_STRUCT_HAS_DESCR };

static double elements[64];
static intptr_t extents[2 * CAI_MAX_NDIM], numbers[2 * CAI_MAX_NDIM];
static cai_array a, b;
static cai_array_struct made;
static cai_field rows_a[ROWS], rows_b[ROWS];
static cai_error err;

/* A struct of (2, 3) elements in C order. */
static cai_array_struct plain(char typekind, int itemsize, int flags)
{
    cai_array_struct s;
    memset(&s, 0xA5, sizeof s);
    s.two = 2;
    s.nd = 2;
    s.typekind = typekind;
    s.itemsize = itemsize;
    s.flags = flags;
    s.shape = extents;
    s.strides = extents + 2;
    s.data = elements;
    extents[0] = 2;
    extents[1] = 3;
    extents[2] = 3 * (intptr_t)itemsize;
    extents[3] = itemsize;
    return s;
}

static void check_error(cai_status got, cai_status status, int32_t entry, int32_t at,
                        const char *message)
{
    cai_test_note(message);
    CHECK_INT(got, status);
    CHECK_INT(err.code, status);
    CHECK_INT(err.native, 0);
    CHECK_INT(err.entry, entry);
    CHECK_INT(err.index, at);
    CHECK_STR(err.message, message);
    cai_test_note("");
}

/* ------------------------------------------------------------------ import */

static void refused(const cai_array_struct *s, const char *descr, int64_t capacity,
                    cai_status status, int32_t entry, int32_t at, const char *message)
{
    const cai_token *tokens = descr ? help_run(descr) : NULL;
    help_fill(&a, sizeof a);
    help_fill(rows_a, sizeof rows_a);
    help_fill(&err, sizeof err);
    check_error(cai_array_struct_import(s, tokens, rows_a, capacity, &a, &err), status, entry, at,
                message);
    CHECK(help_filled(&a, sizeof a));
    CHECK(help_filled(rows_a, sizeof rows_a));
    CHECK_INT(cai_array_struct_import(s, tokens, rows_a, capacity, &a, NULL), status);
}

static int taken(const cai_array_struct *s, const char *descr)
{
    const cai_token *tokens = descr ? help_run(help_order(descr)) : NULL;
    help_fill(&a, sizeof a);
    help_fill(&err, sizeof err);
    if (!CHECK_INT(cai_array_struct_import(s, tokens, rows_a, ROWS, &a, &err), CAI_OK)) {
        printf("    %s\n", err.message);
        return 0;
    }
    CHECK(help_filled(&err, sizeof err));
    CHECK_INT(cai_array_check(&a, NULL), CAI_OK);
    CHECK(a.release == NULL && a.mask == NULL && a.stream == 0 && a.event == 0);
    CHECK_INT(a.version, 3);
    CHECK_INT(a.memory, CAI_MEMORY_HOST);
    CHECK_INT(a.sync, CAI_SYNC_NONE);
    CHECK_INT(a.device, CAI_DEVICE_UNKNOWN);
    if (a.size <= HELP_ELEMENTS) help_check_facts(&a);
    return 1;
}

static void test_refused_numbers(void)
{
    cai_array_struct s = plain('f', 8, NATIVE);
    help_fill(&err, sizeof err);
    check_error(cai_array_struct_import(NULL, NULL, NULL, 0, &a, &err), CAI_ERR_ARGUMENT, 0, -1,
                "cai_array_struct_import: in is NULL");
    check_error(cai_array_struct_import(&s, NULL, NULL, 0, NULL, &err), CAI_ERR_ARGUMENT, 0, -1,
                "cai_array_struct_import: out is NULL");
    s.two = -3;
    refused(&s, NULL, ROWS, CAI_ERR_INTERFACE, CAI_ENTRY_NONE, -1,
            "two = -3 is not 2: this is no PyArrayInterface");
    s.two = 2;
    s.nd = -1;
    refused(&s, NULL, ROWS, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, -1, "shape: nd = -1 is not in 0..64");
    s.nd = 65;
    refused(&s, NULL, ROWS, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, -1, "shape: nd = 65 is not in 0..64");
    s.nd = INT32_MIN;
    refused(&s, NULL, ROWS, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, -1,
            "shape: nd = -2147483648 is not in 0..64");
    s.nd = 2;
    s.shape = NULL;
    refused(&s, NULL, ROWS, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, -1, "shape is NULL, but nd = 2");
    s.shape = extents;
    s.strides = NULL;
    refused(&s, NULL, ROWS, CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, -1, "strides is NULL, but nd = 2");
    s.strides = extents + 2;
    extents[1] = -1;
    refused(&s, NULL, ROWS, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, 1, "shape[1] = -1 is negative");
    extents[1] = 3;
    s.data = NULL;
    refused(&s, NULL, ROWS, CAI_ERR_DATA, CAI_ENTRY_DATA, 0,
            "data[0] = 0 (NULL) but the array is not empty");
}

static void test_refused_kinds(void)
{
    cai_array_struct s = plain('f', 0, NATIVE);
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, -1,
            "typestr: itemsize = 0 is not positive");
    s.itemsize = -8;
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, -1,
            "typestr: itemsize = -8 is not positive");
    s = plain('t', 1, NATIVE);
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, -1,
            "typestr: kind t counts bits, but itemsize = 1 counts bytes");
    s = plain('U', 6, NATIVE);
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, -1,
            "typestr: itemsize = 6 of kind U is not a multiple of 4");
    s = plain('f', 3, NATIVE);
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, 2,
            help_order("typestr '@f3' is not valid at 2: the kind has no such size"));
    s = plain('i', 3, 0);
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, 2,
            help_order("typestr '`i3' is not valid at 2: the kind has no such size"));
    s = plain('O', 8, NATIVE);
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, 1,
            help_order("typestr '@O8' is not valid at 1: Python objects cannot live in device "
                       "memory"));
    s = plain((char)0, 2147483647, NATIVE);
    refused(&s, NULL, ROWS, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, 1,
            help_order("typestr '@\\x002147483647' is not valid at 1: the kind must be one of t b i "
                       "u f c m M S U V"));
    s = plain('M', 4, NATIVE);
    CHECK_INT(cai_array_struct_import(&s, NULL, NULL, 0, &a, NULL), CAI_ERR_TYPESTR);
}

static void test_refused_descr(void)
{
    cai_array_struct s = plain('V', 12, HAS_DESCR | NATIVE);
    refused(&s, NULL, ROWS, CAI_ERR_MISSING, CAI_ENTRY_DESCR, -1,
            "descr: flags = 2560 require it, but no tokens were given");
    refused(&s, "[('a', '<i4'), ('b', '<f4')]", ROWS, CAI_ERR_DESCR, CAI_ENTRY_DESCR, -1,
            "descr adds up to 8 bytes, but typestr has 12");
    refused(&s, "[('a', '<i4'), ('b', '<f8')]", 1, CAI_ERR_CAPACITY, CAI_ENTRY_DESCR, -1,
            "descr needs 2 rows, but the storage has 1");
    refused(&s, "[('a', '<i4'), ('a', '<f8')]", ROWS, CAI_ERR_DESCR, CAI_ENTRY_DESCR, 1,
            "descr[1]: the name 'a' occurs twice");
    refused(&s, "7", ROWS, CAI_ERR_TYPE, CAI_ENTRY_DESCR, -1, "descr must be a list, not an int");
    CHECK_INT(cai_array_struct_import(&s, help_run("7"), NULL, 0, &a, NULL), CAI_ERR_TYPE);
}

/* Flags of the producer: what is computed, and what is believed. */
static void test_flags(void)
{
    cai_array_struct s = plain('f', 8, 0x103 | NATIVE | WRITABLE);
    const uint32_t c_order = CAI_C_CONTIGUOUS | CAI_DENSE | CAI_ALIGNED | CAI_NO_SELF_OVERLAP;
    extents[3] = 16; /* not contiguous, whatever the flags say */
    extents[2] = 48;
    if (taken(&s, NULL)) CHECK_UINT(a.flags & (CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS), 0);
    CHECK_INT(a.dtype.code, CAI_FLOAT64);
    CHECK(a.flags & CAI_WRITABLE);
    s = plain('f', 8, NATIVE); /* contiguous, whatever the flags do not say */
    if (taken(&s, NULL)) CHECK_UINT(a.flags & ~(uint32_t)CAI_HAD_STRIDES, c_order);
    CHECK_UINT(a.data, (uint64_t)(uintptr_t)elements);
    s = plain('f', 8, 0);
    if (taken(&s, NULL)) CHECK_INT(a.dtype.code, CAI_SWAPPED(CAI_FLOAT64));
    CHECK(a.flags & CAI_BYTE_SWAPPED);
    s.flags = 0x7fff & ~HAS_DESCR; /* bits that nobody defined */
    if (taken(&s, NULL)) CHECK_INT(a.dtype.code, CAI_FLOAT64);
    s.data = (char *)elements + 1;
    if (taken(&s, NULL)) CHECK_UINT(a.flags & CAI_ALIGNED, 0);
    s = plain('f', 8, HAS_DESCR | NATIVE);
    if (taken(&s, "[('', '@f8')]")) CHECK(a.fields == NULL && a.field_count == 0);
    if (taken(&s, "None")) CHECK(a.fields == NULL && a.field_count == 0);
}

static void test_shapes(void)
{
    cai_array_struct s = plain('u', 2, NATIVE);
    int i;
    s.nd = 0;
    if (taken(&s, NULL)) CHECK_INT(a.size, 1);
    s.shape = s.strides = NULL;
    if (taken(&s, NULL)) CHECK_INT(a.size, 1);
    s = plain('u', 2, NATIVE | WRITABLE);
    s.data = (char *)elements + 10;
    extents[2] = 0;
    extents[3] = -4;
    if (taken(&s, NULL)) CHECK_INT(a.lo, -8);
    CHECK_INT(a.strides[0], 0);
    CHECK_INT(a.strides[1], -4);
    extents[0] = 0; /* an empty array has no address */
    s.data = NULL;
    if (taken(&s, NULL)) CHECK_INT(a.size, 0);
    s.data = elements;
    if (taken(&s, NULL)) CHECK_UINT(a.data, 0);
    s.nd = 64;
    s.strides = extents + 64;
    for (i = 0; i < 64; i++) extents[i] = 1;
    for (i = 0; i < 64; i++) extents[64 + i] = 2;
    if (taken(&s, NULL)) CHECK_INT(a.ndim, 64);
    s = plain('U', 12, NATIVE);
    if (taken(&s, NULL)) CHECK_INT(a.dtype.itemsize, 12);
    CHECK_INT(a.dtype.code, CAI_UNICODE);
}

/* What NumPy exports of a structured array: flags 0. */
static void test_trap(void)
{
    const char *descr = "[('a', '@i4'), ('b', '@f8')]";
    cai_array_struct s = plain('V', 12, 0);
    if (!taken(&s, NULL)) return;
    CHECK_INT(a.dtype.code, CAI_VOID);
    CHECK_UINT(a.flags & (CAI_BYTE_SWAPPED | CAI_WRITABLE), 0);
    CHECK_UINT(a.flags & (CAI_C_CONTIGUOUS | CAI_ALIGNED), CAI_C_CONTIGUOUS | CAI_ALIGNED);
    CHECK(a.fields == NULL && a.field_count == 0);
    if (!taken(&s, descr)) return; /* not announced, but the caller knows it */
    CHECK_INT(a.field_count, 2);
    CHECK_UINT(a.flags & CAI_WRITABLE, 0);
    s.flags |= WRITABLE;
    if (!taken(&s, descr)) return;
    CHECK(a.flags & CAI_WRITABLE);
    CHECK(a.fields == rows_a);
    CHECK_BYTES(a.fields[1].name, "b", 1);
    CHECK_INT(a.fields[1].offset, 4);
    CHECK_INT(cai_array_struct_import(&s, help_run(help_order(descr)), NULL, 0, &b, &err), CAI_OK);
    CHECK(b.fields == NULL && b.field_count == 0);
}

/* ------------------------------------------------------------------ export */

static void not_exported(const cai_array *array, cai_status status, int32_t entry, int32_t at,
                         const char *message)
{
    help_fill(&made, sizeof made);
    help_fill(numbers, sizeof numbers);
    help_fill(&err, sizeof err);
    check_error(cai_array_struct_export(array, NULL, numbers, &made, &err), status, entry, at,
                message);
    CHECK(help_filled(&made, sizeof made));
    CHECK(help_filled(numbers, sizeof numbers));
    CHECK_INT(cai_array_struct_export(array, NULL, numbers, &made, NULL), status);
}

/* An array of the host that can be exported. */
static void host_array(const char *typestr)
{
    const int64_t shape[2] = {2, 3};
    cai_dtype dtype = help_dtype(typestr);
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 2, shape, NULL, (uintptr_t)elements, &err), CAI_OK);
    a.memory = CAI_MEMORY_HOST;
    a.sync = CAI_SYNC_NONE;
}

static void test_not_exported(void)
{
    const int32_t narrow[] = {CAI_BFLOAT16, CAI_FLOAT8_E5M2, CAI_INT4, CAI_UINT1_X8, CAI_FLOAT6_E2M3FN_X4};
    int i;
    host_array("@f4");
    check_error(cai_array_struct_export(NULL, NULL, numbers, &made, &err), CAI_ERR_ARGUMENT, 0, -1,
                "array is NULL");
    check_error(cai_array_struct_export(&a, NULL, numbers, NULL, &err), CAI_ERR_ARGUMENT, 0, -1,
                "cai_array_struct_export: out is NULL");
    help_fill(&made, sizeof made);
    check_error(cai_array_struct_export(&a, NULL, NULL, &made, &err), CAI_ERR_ARGUMENT, 0, -1,
                "cai_array_struct_export: shape_and_strides is NULL");
    CHECK(help_filled(&made, sizeof made));
    a.mask = &b;
    not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_MASK, -1, "mask: the struct cannot contain one");
    for (i = 0; i < (int)(sizeof narrow / sizeof narrow[0]); i++) {
        const int64_t shape[1] = {3};
        char text[100];
        snprintf(text, sizeof text, "typestr: typekind and itemsize cannot express %s", cai_dtype_name(narrow[i]));
        CHECK_INT(cai_array_init(&a, narrow[i], 1, shape, NULL, elements, &err), CAI_OK);
        not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_TYPESTR, -1, text);
    }
    host_array("|t3");
    not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_TYPESTR, -1,
                 "typestr: typekind and itemsize cannot express bitfield");
    host_array("`M8[25s]");
    not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_TYPESTR, -1,
                 "typestr: typekind cannot express the unit of datetime64");
    host_array("|V12");
    a.fields = rows_a;
    a.field_count = 2;
    not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_DESCR, -1,
                 "descr: the array has 2 rows of fields, but descr is NULL");
    a.struct_size = 8;
    help_fill(&made, sizeof made);
    CHECK_INT(cai_array_struct_export(&a, NULL, numbers, &made, &err), CAI_ERR_ABI);
    CHECK(help_filled(&made, sizeof made));
}

static void test_place_and_order(void)
{
    const int64_t none[1] = {0};
    int32_t memory, sync;
    char message[100];
    host_array("@f4");
    for (memory = -1; memory <= 5; memory++) {
        a.memory = memory;
        if (memory >= CAI_MEMORY_HOST && memory <= CAI_MEMORY_MANAGED) {
            CHECK_INT(cai_array_struct_export(&a, NULL, numbers, &made, &err), CAI_OK);
            continue;
        }
        sprintf(message, "data: memory = %d is not HOST, PINNED, MANAGED (1..3)", (int)memory);
        not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1, message);
    }
    host_array("@f4");
    for (sync = 0; sync <= 4; sync++) {
        a.sync = sync;
        if (sync == CAI_SYNC_NONE) continue;
        sprintf(message, "stream: sync = %d is not NONE (1): work may be pending", (int)sync);
        not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_STREAM, -1, message);
    }
    /* Of an empty array there is nothing to read or to wait for. */
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 1, none, NULL, NULL, &err), CAI_OK);
    CHECK_INT(cai_array_struct_export(&a, NULL, numbers, &made, &err), CAI_OK);
    CHECK(made.data == NULL);
    CHECK_INT(made.flags, 0x703);
}

/* Where pointers have 4 bytes there are arrays that no struct holds. */
static void test_narrow(void)
{
    const int64_t wide = (int64_t)1 << 32, shape[3] = {wide + 1, 0, 3};
    const int64_t two[2] = {2, 2}, apart[2] = {1, -wide};
    const cai_dtype byte = help_dtype("|u1");
    if (sizeof(void *) > 4) return;
    CHECK_INT(cai_array_init_dtype(&a, &byte, 3, shape, NULL, 0, &err), CAI_OK);
    not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_SHAPE, 0,
                 "shape[0] = 4294967297 does not fit intptr_t");
    CHECK_INT(cai_array_init_dtype(&a, &byte, 2, two, apart, UINT64_MAX - 9, &err), CAI_OK);
    a.memory = CAI_MEMORY_HOST;
    a.sync = CAI_SYNC_NONE;
    not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_STRIDES, 1,
                 "strides[1] = -4294967296 does not fit intptr_t");
    CHECK_INT(cai_array_init_dtype(&a, &byte, 1, two, NULL, UINT64_MAX - 9, &err), CAI_OK);
    a.memory = CAI_MEMORY_HOST;
    a.sync = CAI_SYNC_NONE;
    not_exported(&a, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1,
                 "data = 18446744073709551606 exceeds a pointer");
}

/* ------------------------------------------------------------------ round trips */

static void there_and_back(const cai_token *tokens)
{
    static int object;
    help_fill(&made, sizeof made);
    help_fill(&err, sizeof err);
    if (!CHECK_INT(cai_array_struct_export(&a, tokens ? &object : NULL, numbers, &made, &err),
                   CAI_OK)) {
        printf("    %s\n", err.message);
        return;
    }
    CHECK(help_filled(&err, sizeof err));
    CHECK(made.descr == (tokens ? (void *)&object : NULL));
    CHECK_INT((made.flags & HAS_DESCR) != 0, tokens != NULL);
    CHECK_INT(made.shape == NULL, a.ndim == 0);
    CHECK_INT((made.flags & 0x1) != 0, (a.flags & CAI_C_CONTIGUOUS) != 0);
    CHECK_INT((made.flags & 0x2) != 0, (a.flags & CAI_F_CONTIGUOUS) != 0);
    CHECK_INT((made.flags & 0x100) != 0, (a.flags & CAI_ALIGNED) != 0);
    if (!CHECK_INT(cai_array_struct_import(&made, tokens, rows_b, ROWS, &b, &err), CAI_OK)) return;
    CHECK_UINT(b.flags | CAI_HAD_STRIDES, a.flags | CAI_HAD_STRIDES);
    CHECK_UINT(b.data, a.data);
    CHECK_BYTES(&b.dtype, &a.dtype, sizeof a.dtype);
    CHECK_INT(b.ndim, a.ndim);
    CHECK_BYTES(b.shape, a.shape, (size_t)a.ndim * 8);
    CHECK_BYTES(b.strides, a.strides, (size_t)a.ndim * 8);
    CHECK_INT(b.field_count, a.field_count);
    if (a.field_count) CHECK_BYTES(rows_b, rows_a, (size_t)a.field_count * sizeof rows_a[0]);
    if (sizeof(void *) == 8) CHECK_INT(sizeof made, 56);
}

static void test_round_trips(void)
{
    static const char *const typestrs[] = {"|b1", "|i1", "@i2", "`i4", "@i8", "|u1", "`u2", "@u4",
                                           "@u8", "@f2", "`f4", "@f8", "@f16", "`f10", "@f12",
                                           "@c4", "@c8", "`c16", "@c32", "@m8", "`M8", "|S5",
                                           "@U3", "`U7", "|V9"};
    const int64_t shape[3] = {3, 1, 4};
    const int64_t strides[3] = {-40, 7, 10};
    const cai_token *tokens;
    cai_array_struct s;
    size_t i;
    for (i = 0; i < sizeof typestrs / sizeof typestrs[0]; i++) {
        cai_dtype dtype = help_dtype(typestrs[i]);
        cai_test_note(typestrs[i]);
        host_array(typestrs[i]);
        there_and_back(NULL);
        CHECK_INT(made.typekind, help_order(typestrs[i])[1]);
        CHECK_INT(made.itemsize, a.dtype.itemsize);
        CHECK_INT(made.flags & NATIVE, typestrs[i][0] == '`' ? 0 : NATIVE);
        a.flags &= ~(uint32_t)CAI_WRITABLE;
        there_and_back(NULL);
        CHECK_INT(made.flags & WRITABLE, 0);
        CHECK_INT(cai_array_init_dtype(&a, &dtype, 3, shape, strides, (uintptr_t)(elements + 40),
                                       &err), CAI_OK);
        a.memory = CAI_MEMORY_PINNED;
        a.sync = CAI_SYNC_NONE;
        there_and_back(NULL);
        CHECK_INT(cai_array_init_dtype(&a, &dtype, 0, NULL, NULL, (uintptr_t)elements, &err),
                  CAI_OK);
        a.memory = CAI_MEMORY_MANAGED;
        a.sync = CAI_SYNC_NONE;
        there_and_back(NULL);
    }
    cai_test_note("structured");
    s = plain('V', 24, HAS_DESCR | WRITABLE);
    tokens = help_run("[('x', '`f4', (2,)), (('full', 'y'), [('z', '@i8'), ('', '|V4')]), "
                      "('w', '|S4')]");
    CHECK_INT(cai_array_struct_import(&s, tokens, rows_a, ROWS, &a, &err), CAI_OK);
    CHECK_INT(a.field_count, 5);
    there_and_back(tokens);
    cai_test_note("");
}

/* cai_error.rule. The status is the same without an error. */
static void test_rules(void)
{
    enum { TWO, ND, NO_SHAPE, NO_STRIDES, NO_SIZE, BITS, UCS4, NEGATIVE, NO_DESCR, COUNT };
    static const struct {
        cai_status status;
        int32_t rule;
    } rows[COUNT] = {{CAI_ERR_INTERFACE, 90}, {CAI_ERR_SHAPE, 29}, {CAI_ERR_SHAPE, 91}, {CAI_ERR_STRIDES, 91},
                     {CAI_ERR_TYPESTR, 38}, {CAI_ERR_TYPESTR, 32}, {CAI_ERR_TYPESTR, 32},
                     {CAI_ERR_SHAPE, 17}, {CAI_ERR_MISSING, 0}};
    static const int32_t codes[3] = {CAI_BFLOAT16, CAI_FLOAT32, CAI_FLOAT32};
    static const int32_t rules_of_exports[3] = {35, 0, 0};
    const int64_t shape[1] = {3};
    int i;
    for (i = 0; i < COUNT; i++) {
        cai_array_struct s = plain(i == BITS ? 't' : i == UCS4 ? 'U' : 'f',
                                   i == NO_SIZE ? 0 : i == UCS4 ? 6 : 4, i == NO_DESCR ? HAS_DESCR | NATIVE : NATIVE);
        if (i == TWO) s.two = 3;
        if (i == ND) s.nd = 65;
        if (i == NO_SHAPE) s.shape = NULL;
        if (i == NO_STRIDES) s.strides = NULL;
        if (i == NEGATIVE) extents[1] = -3;
        help_fill(&err, sizeof err);
        CHECK_INT(cai_array_struct_import(&s, NULL, rows_a, ROWS, &a, &err), rows[i].status);
        CHECK_INT(err.code, rows[i].status);
        CHECK_INT(err.rule, rows[i].rule);
        CHECK_INT(cai_array_struct_import(&s, NULL, rows_a, ROWS, &a, NULL), rows[i].status);
    }
    for (i = 0; i < 3; i++) {
        CHECK_INT(cai_array_init(&a, codes[i], 1, shape, NULL, elements, &err), CAI_OK);
        a.memory = i == 1 ? CAI_MEMORY_DEVICE : CAI_MEMORY_HOST; /* and 2: unknown pending work */
        CHECK_INT(cai_array_struct_export(&a, NULL, numbers, &made, &err), CAI_ERR_EXPORT);
        CHECK_INT(err.rule, rules_of_exports[i]);
        CHECK_INT(cai_array_struct_export(&a, NULL, numbers, &made, NULL), CAI_ERR_EXPORT);
    }
}

static void run(void)
{
    help_reset();
    test_rules();
    test_refused_numbers();
    test_refused_kinds();
    test_refused_descr();
    test_flags();
    test_shapes();
    test_trap();
    test_not_exported();
    test_place_and_order();
    test_narrow();
    test_round_trips();
}

CAI_TEST_MAIN(run)
