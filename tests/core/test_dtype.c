/* test_dtype.c - codes, typestrs, units, C types, alignments.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

typedef struct code_row {
    const char *name;
    int32_t code;
    int32_t kind;
    int32_t bytes;
    int32_t format;
    const char *text;
} code_row;

#define ROW_OF(name, kind, bytes, format, text) {#name, name, kind, bytes, format, text},
static const code_row codes[] = {CAI_DTYPE_LIST(ROW_OF)};
#undef ROW_OF

enum { CODES = (int)(sizeof codes / sizeof codes[0]) };

/* ------------------------------------------------------------------ codes */

static int32_t unit_bytes(const code_row *row)
{
    return row->kind == 'c' ? row->bytes / 2 : row->bytes;
}

/* Formats without a typestr of their own travel as 'V', which has no byte order. */
static int has_order(const code_row *row)
{
    return row->format == 0 && unit_bytes(row) > 1;
}

static int is_power_of_two(int32_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

static void check_alignment(const code_row *row, const cai_dtype *dtype)
{
    int32_t unit = unit_bytes(row);
    CHECK(is_power_of_two(dtype->alignment));
    CHECK(dtype->alignment <= 16);
    CHECK_INT(dtype->itemsize % dtype->alignment, 0);
    if (is_power_of_two(unit)) CHECK_INT(dtype->alignment, unit);
}

static void check_code_of(const code_row *row, int32_t swapped)
{
    cai_dtype dtype;
    int32_t code = swapped ? CAI_SWAPPED(row->code) : row->code;
    int sized = row->bytes > 0 && !(swapped && !has_order(row));
    help_fill(&dtype, sizeof dtype);
    if (!sized) {
        CHECK_INT(cai_dtype_of(code, &dtype, NULL), CAI_ERR_ARGUMENT);
        CHECK(help_filled(&dtype, sizeof dtype));
        return;
    }
    CHECK_INT(cai_dtype_of(code, &dtype, NULL), CAI_OK);
    CHECK_INT(dtype.code, code);
    CHECK_INT(dtype.itemsize, row->bytes);
    CHECK(row->format < 10 ? dtype.bits == 0 : dtype.bits > 0 && dtype.bits < 8); /* test_packed.c */
    CHECK_INT(dtype.unit, CAI_UNIT_NONE);
    CHECK_INT(dtype.unit_count, 0);
    check_alignment(row, &dtype);
}

/* The typestr that a code must have. */
static void expected_typestr(const code_row *row, int32_t swapped, char *text)
{
    const char *order = unit_bytes(row) == 1 || row->format >= 10 ? "|" : swapped ? "`" : "@";
    if (row->format == 0) sprintf(text, "%s%c%d", order, row->kind, (int)row->bytes);
    if (row->format != 0) sprintf(text, "%sV%d", order, (int)row->bytes);
    strcpy(text, help_order(text));
}

static void check_round_trip(const code_row *row, int32_t swapped)
{
    cai_dtype dtype, parsed;
    char text[CAI_TYPESTR_SIZE], expected[CAI_TYPESTR_SIZE];
    int32_t length;
    memset(&dtype, 0, sizeof dtype);
    CHECK_INT(cai_dtype_of(swapped ? CAI_SWAPPED(row->code) : row->code, &dtype, NULL), CAI_OK);
    length = cai_dtype_typestr(&dtype, text, CAI_TYPESTR_SIZE);
    expected_typestr(row, swapped, expected);
    CHECK_STR(text, expected);
    CHECK_INT(length, strlen(text));
    CHECK_INT(cai_dtype_parse(text, length, 0, &parsed, NULL), CAI_OK);
    if (row->format == 0) CHECK_BYTES(&parsed, &dtype, sizeof dtype);
    CHECK_INT(parsed.itemsize, dtype.itemsize);
}

static void check_codes(void)
{
    int32_t i, k;
    for (i = 0; i < CODES; i++) {
        const code_row *row = &codes[i];
        cai_test_note(row->name);
        CHECK_INT(row->code, CAI_CODE(row->kind, row->bytes, row->format));
        CHECK_INT(row->code & 0x01000000, 0);
        CHECK(row->code != CAI_ANY_DTYPE);
        for (k = 0; k < i; k++) CHECK(row->code != codes[k].code);
        for (k = 0; k < i; k++) CHECK(strcmp(row->text, codes[k].text) != 0);
        CHECK_STR(cai_dtype_name(row->code), row->text);
        if (has_order(row)) CHECK_STR(cai_dtype_name(CAI_SWAPPED(row->code)), row->text);
        check_code_of(row, 0);
        check_code_of(row, 1);
        if (row->bytes > 0) check_round_trip(row, 0);
        if (row->bytes > 0 && has_order(row)) check_round_trip(row, 1);
    }
    cai_test_note("");
}

static void check_unknown_codes(void)
{
    const int32_t bad[] = {0,          1,          -1,        INT32_MIN, INT32_MAX, CAI_FLOAT32 + 1,
                           0x02000000, 0x01000000, 'f' << 8, 'f',       CAI_CODE('i', 3, 0),
                           CAI_CODE('f', 4, 1), CAI_CODE('i', 16, 0), CAI_FLOAT32 | 0x02000000};
    size_t i;
    cai_dtype dtype;
    cai_error err;
    help_fill(&dtype, sizeof dtype);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_INT(cai_dtype_of(bad[i], &dtype, &err), CAI_ERR_ARGUMENT);
        CHECK_INT(err.code, CAI_ERR_ARGUMENT);
        CHECK_STR(cai_dtype_name(bad[i]), "unknown");
    }
    CHECK(help_filled(&dtype, sizeof dtype));
}

/* Codes are part of the ABI. */
static void check_fixed_codes(void)
{
    CHECK_INT(CAI_BOOL, 0x6201);
    CHECK_INT(CAI_INT64, 0x6908);
    CHECK_INT(CAI_UINT8, 0x7501);
    CHECK_INT(CAI_FLOAT32, 0x6604);
    CHECK_INT(CAI_COMPLEX128, 0x6310);
    CHECK_INT(CAI_BFLOAT16, 0x16602);
    CHECK_INT(CAI_FLOAT8_E8M0FNU, 0x96601);
    CHECK_INT(CAI_SWAPPED(CAI_FLOAT32), 0x1006604);
    CHECK_INT(CAI_BYTES, 'S' * 256);
    CHECK_INT(CAI_VOID, 'V' * 256);
}

/* ------------------------------------------------------------------ C types */

typedef struct c_type {
    int32_t code;
    int32_t size;
    int32_t kind;
} c_type;

static void check_c_types(void)
{
    const c_type types[] = {
        {CAI_LONG, (int32_t)sizeof(long), 'i'},
        {CAI_PTRDIFF, (int32_t)sizeof(ptrdiff_t), 'i'},
        {CAI_UNSIGNED_LONG, (int32_t)sizeof(long), 'u'},
        {CAI_SIZE, (int32_t)sizeof(size_t), 'u'},
        {CAI_LONG_DOUBLE, (int32_t)sizeof(long double), 'f'},
    };
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++) {
        cai_dtype dtype;
        memset(&dtype, 0, sizeof dtype);
        CHECK_INT(cai_dtype_of(types[i].code, &dtype, NULL), CAI_OK);
        CHECK_INT(dtype.itemsize, types[i].size);
        CHECK_INT(dtype.code >> 8, types[i].kind);
        CHECK(strcmp(cai_dtype_name(types[i].code), "unknown") != 0);
    }
}

/* A C type that the machine lays out at less than its natural alignment is still an array. */
static void check_c_alignment(void)
{
    struct { char c; int32_t x; } s4;
    struct { char c; int16_t x; } s2;
    struct { char c; float x; } f4;
    CHECK_INT((char *)&s4.x - (char *)&s4, help_dtype("@i4").alignment);
    CHECK_INT((char *)&s2.x - (char *)&s2, help_dtype("@i2").alignment);
    CHECK_INT((char *)&f4.x - (char *)&f4, help_dtype("@f4").alignment);
}

/* ------------------------------------------------------------------ typestr */

typedef struct good_row {
    const char *text;
    int32_t code;
    int32_t itemsize;
    int32_t bits;
    int32_t unit;
    int32_t unit_count;
    int32_t alignment;
    const char *printed;
} good_row;

static const good_row good[] = {
    {"|i1", CAI_INT8, 1, 0, 0, 0, 1, "|i1"},
    {"<i1", CAI_INT8, 1, 0, 0, 0, 1, "|i1"},
    {">i1", CAI_INT8, 1, 0, 0, 0, 1, "|i1"},
    {"|u1", CAI_UINT8, 1, 0, 0, 0, 1, "|u1"},
    {"<b1", CAI_BOOL, 1, 0, 0, 0, 1, "|b1"},
    {"`b1", CAI_BOOL, 1, 0, 0, 0, 1, "|b1"},
    {"@i2", CAI_INT16, 2, 0, 0, 0, 2, "@i2"},
    {"@i8", CAI_INT64, 8, 0, 0, 0, 8, "@i8"},
    {"`u8", CAI_SWAPPED(CAI_UINT64), 8, 0, 0, 0, 8, "`u8"},
    {"|i4", CAI_INT32, 4, 0, 0, 0, 4, "@i4"},
    {"|f8", CAI_FLOAT64, 8, 0, 0, 0, 8, "@f8"},
    {"@f2", CAI_FLOAT16, 2, 0, 0, 0, 2, "@f2"},
    {"`f4", CAI_SWAPPED(CAI_FLOAT32), 4, 0, 0, 0, 4, "`f4"},
    {"@f16", CAI_FLOAT128, 16, 0, 0, 0, 16, "@f16"},
    {"@c4", CAI_COMPLEX32, 4, 0, 0, 0, 2, "@c4"},
    {"@c8", CAI_COMPLEX64, 8, 0, 0, 0, 4, "@c8"},
    {"`c16", CAI_SWAPPED(CAI_COMPLEX128), 16, 0, 0, 0, 8, "`c16"},
    {"@c32", CAI_COMPLEX256, 32, 0, 0, 0, 16, "@c32"},
    {"@M8", CAI_DATETIME64, 8, 0, 0, 0, 8, "@M8"},
    {"@m8[25s]", CAI_TIMEDELTA64, 8, 0, CAI_UNIT_SECOND, 25, 8, "@m8[25s]"},
    {"`M8[ns]", CAI_SWAPPED(CAI_DATETIME64), 8, 0, CAI_UNIT_NANOSECOND, 1, 8, "`M8[ns]"},
    {"@m8[1D]", CAI_TIMEDELTA64, 8, 0, CAI_UNIT_DAY, 1, 8, "@m8[D]"},
    {"@m8[generic]", CAI_TIMEDELTA64, 8, 0, CAI_UNIT_NONE, 0, 8, "@m8"},
    {"@m8[2147483647as]", CAI_TIMEDELTA64, 8, 0, CAI_UNIT_ATTOSECOND, 2147483647, 8,
     "@m8[2147483647as]"},
    {"|S5", CAI_BYTES, 5, 0, 0, 0, 1, "|S5"},
    {"<S5", CAI_BYTES, 5, 0, 0, 0, 1, "|S5"},
    {"`S1", CAI_BYTES, 1, 0, 0, 0, 1, "|S1"},
    {"@U4", CAI_UNICODE, 16, 0, 0, 0, 4, "@U4"},
    {"`U4", CAI_SWAPPED(CAI_UNICODE), 16, 0, 0, 0, 4, "`U4"},
    {"@U536870911", CAI_UNICODE, 2147483644, 0, 0, 0, 4, "@U536870911"},
    {"|V16", CAI_VOID, 16, 0, 0, 0, 1, "|V16"},
    {"<V2", CAI_VOID, 2, 0, 0, 0, 1, "|V2"},
    {">V2", CAI_VOID, 2, 0, 0, 0, 1, "|V2"},
    {"|V2147483647", CAI_VOID, 2147483647, 0, 0, 0, 1, "|V2147483647"},
    {"|t1", CAI_BITFIELD, 0, 1, 0, 0, 1, "|t1"},
    {"<t12", CAI_BITFIELD, 0, 12, 0, 0, 1, "|t12"},
};

static void check_good_typestr(const good_row *row)
{
    cai_dtype dtype;
    char text[CAI_TYPESTR_SIZE];
    cai_error err;
    const char *typestr = help_order(row->text);
    help_fill(&dtype, sizeof dtype);
    help_fill(&err, sizeof err);
    CHECK_INT(cai_dtype_parse(typestr, (int64_t)strlen(typestr), 0, &dtype, &err), CAI_OK);
    CHECK(help_filled(&err, sizeof err));
    CHECK_INT(dtype.code, row->code);
    CHECK_INT(dtype.itemsize, row->itemsize);
    CHECK_INT(dtype.bits, row->bits);
    CHECK_INT(dtype.unit, row->unit);
    CHECK_INT(dtype.unit_count, row->unit_count);
    CHECK_INT(dtype.alignment, row->alignment);
    CHECK_INT(cai_dtype_typestr(&dtype, text, CAI_TYPESTR_SIZE),
              strlen(help_order(row->printed)));
    CHECK_STR(text, help_order(row->printed));
}

typedef struct bad_row {
    const char *text;
    int32_t index;
    int32_t length; /* -1: strlen */
} bad_row;

static const bad_row bad[] = {
    {"", 0, -1},          {"<", 1, -1},          {"<f", 2, -1},       {"<i+4", 2, -1},
    {"<i-4", 2, -1},      {"<i04", 2, -1},       {"<i 4", 2, -1},     {"float32", 0, -1},
    {"?", 0, -1},         {"i4,f8", 0, -1},      {"(2,)<f4", 0, -1},  {"<q8", 1, -1},
    {"<e2", 1, -1},       {"<F8", 1, -1},        {"<f4 ", 3, -1},     {" <f4", 0, -1},
    {"<f4\0", 3, 4},      {"<\0" "4", 1, 3},     {"<x4", 1, -1},      {"|O8", 1, -1},
    {"<b4", 2, -1},       {"<b0", 2, -1},        {"<i3", 2, -1},      {"<i16", 2, -1},
    {"<u5", 2, -1},       {"<f1", 2, -1},        {"<f3", 2, -1},      {"<f32", 2, -1},
    {"<c2", 2, -1},       {"<c12", 2, -1},       {"<c64", 2, -1},     {"|S0", 2, -1},
    {"|V0", 2, -1},       {"<U0", 2, -1},        {"|t0", 2, -1},      {"|V00", 2, -1},
    {"|V2147483648", 2, -1},     {"|V99999999999", 2, -1}, {"|V18446744073709551617", 2, -1},
    {"|V340282366920938463463374607431768211457", 2, -1}, {"<U536870912", 2, -1},
    {"|V21474836470", 2, -1},    {"|V21474836471", 2, -1},  {"<m8[21474836470s]", 3, -1},
    {"|t2147483648", 2, -1},     {"<U1073741825", 2, -1},  {"<M4[ns]", 2, -1},
    {"<M16", 2, -1},      {"<f4[ns]", 3, -1},    {"|V8[s]", 3, -1},   {"<m8[", 3, -1},
    {"<m8]", 3, -1},      {"<m8[]", 3, -1},      {"<m8[q]", 3, -1},   {"<m8[S]", 3, -1},
    {"<m8[ss]", 3, -1},   {"<m8[sn]", 3, -1},    {"<m8[nss]", 3, -1}, {"<m8[d]", 3, -1},
    {"<m8[y]", 3, -1},    {"<m8[25]", 3, -1},    {"<m8[0s]", 3, -1},  {"<m8[00s]", 3, -1},
    {"<m8[01s]", 3, -1},  {"<m8[-1s]", 3, -1},   {"<m8[+1s]", 3, -1}, {"<m8[ s]", 3, -1},
    {"<m8[s ]", 3, -1},   {"<m8[2147483648s]", 3, -1}, {"<m8[4294967297s]", 3, -1},
    {"<m8[18446744073709551617s]", 3, -1},       {"<m8[s]x", 6, -1},  {"<m8[s][s]", 6, -1},
    {"<m8(s)", 3, -1},    {"<m8[1generic]", 3, -1},
    {"<m8[2generic]", 3, -1},    {"<m8[generics]", 3, -1},  {"<f8[generic]", 3, -1},
    {"<<f4", 1, -1},      {"<ff4", 2, -1},       {"<f4f4", 3, -1},    {"<f\x80", 2, -1},
    {"<f4\n", 3, -1},
};

static void check_bad_typestr(const bad_row *row)
{
    cai_dtype dtype;
    cai_error err;
    int32_t k;
    int64_t length = row->length < 0 ? (int64_t)strlen(row->text) : row->length;
    for (k = 0; k < 2; k++) { /* strict, lenient */
        help_fill(&dtype, sizeof dtype);
        CHECK_INT(cai_dtype_parse(row->text, length, (uint32_t)k, &dtype, &err),
                  CAI_ERR_TYPESTR);
        CHECK_INT(err.code, CAI_ERR_TYPESTR);
        if (k == 0 || strchr("<>|", row->text[0])) CHECK_INT(err.index, row->index);
        CHECK(strlen(err.message) > 10);
        CHECK(strstr(err.message, "CAI_LENIENT") == NULL);
        CHECK_INT(cai_dtype_parse(row->text, length, (uint32_t)k, &dtype, NULL),
                  CAI_ERR_TYPESTR);
        CHECK(help_filled(&dtype, sizeof dtype));
    }
}

static void check_typestrs(void)
{
    size_t i;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        cai_test_note(good[i].text);
        check_good_typestr(&good[i]);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cai_test_note(bad[i].text);
        check_bad_typestr(&bad[i]);
    }
    cai_test_note("");
}

/* Every text of up to 4 bytes of the alphabet, against the grammar written out again. */
static int is_typestr4(const char *s, int length)
{
    int i, value = 0;
    if (length < 3 || strchr("<>|", s[0]) == NULL) return 0;
    for (i = 2; i < length; i++) {
        if (s[i] < '0' || s[i] > '9') return 0;
        value = value * 10 + (s[i] - '0');
    }
    if (s[2] == '0') return 0;
    if (strchr("tSUV", s[1]) != NULL) return 1;
    if (s[1] == 'b') return value == 1;
    if (strchr("iu", s[1]) != NULL) return value == 1 || value == 2 || value == 4 || value == 8;
    if (strchr("mM", s[1]) != NULL) return value == 8;
    if (s[1] == 'f' && length == 3) return value == 2 || value == 4 || value == 8;
    if (s[1] == 'f') return value == 10 || value == 12 || value == 16;
    if (s[1] != 'c') return 0;
    return value == 4 || value == 8 || value == 16 || value == 20 || value == 24 || value == 32;
}

static void check_every_text(void)
{
    const char *letters = "<>|=tbiufcmMOSUV0123468 +[]s";
    const int n = (int)strlen(letters);
    int64_t number, total = 1;
    int length, i;
    for (length = 1; length <= 4; length++) {
        total *= n;
        for (number = 0; number < total; number++) {
            char text[8] = {0};
            int64_t rest = number;
            cai_dtype dtype;
            cai_status status;
            for (i = 0; i < length; i++, rest /= n) text[i] = letters[rest % n];
            status = cai_dtype_parse(text, length, 0, &dtype, NULL);
            if ((status == CAI_OK) == is_typestr4(text, length)) continue;
            cai_test_note(text);
            CHECK_INT(status, is_typestr4(text, length) ? CAI_OK : CAI_ERR_TYPESTR);
        }
        CHECK_INT(number, total);
    }
    cai_test_note("");
}

/* Every byte in every place, by cai_dtype_parse and by cai_import. */
static void check_every_byte(void)
{
    const char *texts[] = {"<f4", ">i8", "|b1", "<U9", "|V1", "<c16"};
    size_t i, at;
    int byte;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (at = 0; at < strlen(texts[i]); at++) {
            for (byte = 1; byte < 256; byte++) {
                char text[8];
                cai_dtype dtype;
                cai_array array;
                cai_token token;
                cai_interface in = *help_dict("shape=(1,)");
                int valid;
                strcpy(text, texts[i]);
                text[at] = (char)byte;
                valid = is_typestr4(text, (int)strlen(text));
                memset(&token, 0, sizeof token);
                token.kind = CAI_TOKEN_STR;
                token.text = text;
                token.length = (uint32_t)strlen(text);
                in.typestr = &token;
                help_reset();
                CHECK_INT(cai_dtype_parse(text, token.length, 0, &dtype, NULL) == CAI_OK, valid);
                CHECK_INT(cai_import(&in, NULL, &array, NULL) == CAI_OK, valid);
                if (valid) CHECK_BYTES(&array.dtype, &dtype, sizeof dtype);
            }
        }
    }
}

static void check_lenient(void)
{
    const char *texts[] = {"=f4", "f4", "=M8[ns]", "M8", "V3", "U2", "t1"};
    const int32_t expected[] = {CAI_FLOAT32, CAI_FLOAT32, CAI_DATETIME64, CAI_DATETIME64, CAI_VOID,
                                CAI_UNICODE, CAI_BITFIELD};
    size_t i;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cai_dtype dtype;
        cai_error err;
        int64_t length = (int64_t)strlen(texts[i]);
        memset(&dtype, 0, sizeof dtype);
        CHECK_INT(cai_dtype_parse(texts[i], length, 0, &dtype, &err), CAI_ERR_TYPESTR);
        CHECK_INT(err.index, 0);
        CHECK(strstr(err.message, " (accepted by CAI_LENIENT)") != NULL);
        CHECK_INT(cai_dtype_parse(texts[i], length, CAI_LENIENT, &dtype, NULL), CAI_OK);
        CHECK_INT(dtype.code, expected[i]);
    }
}

/* Not NUL-terminated: nothing past `length` counts. */
static void check_length(void)
{
    cai_dtype dtype;
    CHECK_INT(cai_dtype_parse("<f4x", 3, 0, &dtype, NULL), CAI_OK);
    CHECK_INT(dtype.itemsize, 4);
    CHECK_INT(cai_dtype_parse("<f16", 3, 0, &dtype, NULL), CAI_ERR_TYPESTR);
    CHECK_INT(cai_dtype_parse("<f4", 0, 0, &dtype, NULL), CAI_ERR_TYPESTR);
    CHECK_INT(cai_dtype_parse("<f4", (int64_t)INT32_MAX + 1, 0, &dtype, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_parse("<f4", INT64_MIN, 0, &dtype, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_parse("|V123", 4, 0, &dtype, NULL), CAI_OK);
    CHECK_INT(dtype.itemsize, 12);
}

/* ------------------------------------------------------------------ units */

static void check_units(void)
{
    const char *names[] = {"Y",  "M",  "W",  "D",  "h",  "m",  "s",
                           "ms", "us", "ns", "ps", "fs", "as"};
    int32_t i, count;
    for (i = 0; i < 13; i++) {
        for (count = 0; count < 3; count++) {
            char text[24], again[CAI_TYPESTR_SIZE];
            cai_dtype dtype;
            char number[4] = {(char)('0' + count), 0, 0, 0};
            sprintf(text, "@M8[%s%s]", count ? number : "", names[i]);
            dtype = help_dtype(text);
            CHECK_INT(dtype.unit, CAI_UNIT_YEAR + i);
            CHECK_INT(dtype.unit_count, count ? count : 1);
            sprintf(text, "@M8[%s%s]", count > 1 ? number : "", names[i]);
            cai_dtype_typestr(&dtype, again, CAI_TYPESTR_SIZE);
            CHECK_STR(again, help_order(text));
        }
    }
    CHECK_INT(CAI_UNIT_ATTOSECOND, 13);
}

/* ------------------------------------------------------------------ printing */

static void check_truncation(const char *typestr)
{
    cai_dtype dtype = help_dtype(typestr);
    char whole[CAI_TYPESTR_SIZE], part[CAI_TYPESTR_SIZE + 8];
    int32_t length = cai_dtype_typestr(&dtype, whole, CAI_TYPESTR_SIZE), capacity;
    CHECK_STR(whole, help_order(typestr));
    CHECK(length < CAI_TYPESTR_SIZE);
    for (capacity = 0; capacity <= CAI_TYPESTR_SIZE; capacity++) {
        int32_t kept = capacity == 0 ? 0 : capacity - 1 < length ? capacity - 1 : length;
        help_fill(part, sizeof part);
        CHECK_INT(cai_dtype_typestr(&dtype, part, capacity), kept);
        if (capacity > 0) CHECK_INT(strlen(part), kept);
        CHECK_BYTES(part, whole, (size_t)kept);
        CHECK(help_filled(part + capacity, sizeof part - (size_t)capacity));
    }
    CHECK_INT(cai_dtype_typestr(&dtype, NULL, 0), 0);
}

static void check_printing(void)
{
    cai_dtype odd;
    char text[CAI_TYPESTR_SIZE];
    check_truncation("@f4");
    check_truncation("@m8[2147483647as]");
    check_truncation("|V2147483647");
    check_truncation("@U536870911");
    check_truncation("|t2147483647");
    help_fill(&odd, sizeof odd); /* garbage prints something, within the buffer */
    help_fill(text, sizeof text);
    CHECK(cai_dtype_typestr(&odd, text, 12) >= 0);
    CHECK(memchr(text, 0, 12) != NULL);
    CHECK(help_filled(text + 12, sizeof text - 12));
    CHECK_INT(cai_dtype_of(CAI_DATETIME64, &odd, NULL), CAI_OK);
    odd.unit = CAI_UNIT_ATTOSECOND + 1;
    CHECK_INT(cai_dtype_typestr(&odd, text, 12), 3); /* without a unit */
    text[0] = 'x';
    CHECK(cai_dtype_typestr(NULL, text, 8) >= 0);
    CHECK(memchr(text, 0, 8) != NULL);
}

static void run(void)
{
    check_codes();
    check_unknown_codes();
    check_fixed_codes();
    check_c_types();
    check_c_alignment();
    check_typestrs();
    check_every_text();
    check_every_byte();
    check_lenient();
    check_length();
    check_units();
    check_printing();
}

CAI_TEST_MAIN(run)
