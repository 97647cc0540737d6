/* fuzz_dictionary.h - makes the token runs of a dictionary of the fuzzer's bytes.
 *
 * The runs are well-formed, as a reader promises; kinds and values are arbitrary. A byte of 0
 * always picks something valid, so that many inputs pass the first checks. Every run and every
 * text lies in a block of its exact size, so that the address sanitizer sees a read past its end.
 */

#ifndef CAI_FUZZ_DICTIONARY_H_INCLUDED
#define CAI_FUZZ_DICTIONARY_H_INCLUDED

#include "fuzz_source.h"

enum {
    MAX_TOKENS = 2048, /* of one entry; from ENOUGH on it is only brought to its end */
    ENOUGH = 1500,
    MAX_DEPTH = 40     /* of a descr; cai.h goes to 32 */
};

/* ------------------------------------------------------------------ >>tokens */

/** One entry while it is being written. It is static in all functions, because ASan marks what is on the stack. */
typedef struct run {
    source *in;
    cai_token tokens[MAX_TOKENS];
    int32_t count;
} run;

static void emit(run *r, int32_t kind, uint32_t length, uint64_t number, const char *text)
{
    cai_token *token = &r->tokens[r->count++];
    MUST(r->count <= MAX_TOKENS);
    token->kind = kind;
    token->length = length;
    token->number = number;
    token->text = text;
}

static int is_full(const run *r)
{
    return r->count > ENOUGH || r->in->block_count > ENOUGH;
}

static const cai_token *finish(const run *r)
{
    return (const cai_token *)keep(r->in, r->tokens, (size_t)r->count * sizeof(cai_token));
}

static void emit_int(run *r, int64_t value)
{
    emit(r, CAI_TOKEN_INT, 0, (uint64_t)value, NULL);
}

static void emit_string(run *r, int32_t kind, const char *text, size_t length)
{
    emit(r, kind, (uint32_t)length, 0, (const char *)keep(r->in, text, length));
}

static void emit_raw_string(run *r, int32_t kind)
{
    char text[256];
    size_t length = (size_t)pick(r->in, 12), i;
    if (length == 11) length = take(r->in);
    for (i = 0; i < length; i++) text[i] = (char)take(r->in);
    emit_string(r, kind, text, length);
}

/** A value of any kind. */
static void emit_anything(run *r, int32_t depth)
{
    int32_t kind = CAI_TOKEN_NONE + pick(r->in, CAI_TOKEN_OTHER);
    uint32_t length, i;
    if (kind == CAI_TOKEN_STR || kind == CAI_TOKEN_BYTES) {
        emit_raw_string(r, kind);
    } else if (kind == CAI_TOKEN_TUPLE || kind == CAI_TOKEN_LIST) {
        length = depth > 0 && !is_full(r) ? (uint32_t)pick(r->in, 4) : 0;
        emit(r, kind, length, 0, NULL);
        for (i = 0; i < length; i++) emit_anything(r, depth - 1);
    } else if (kind == CAI_TOKEN_INT || kind == CAI_TOKEN_INDEX) {
        emit(r, kind, 0, (uint64_t)any_number(r->in), NULL);
    } else if (kind == CAI_TOKEN_UINT) {
        emit(r, kind, 0, (uint64_t)any_number(r->in) | (uint64_t)1 << 63, NULL);
    } else {
        emit(r, kind, 0, take(r->in) & 1, NULL);
    }
}

static const cai_token *any_entry(source *in)
{
    static run r;
    r.in = in;
    r.count = 0;
    emit_anything(&r, 3);
    return finish(&r);
}

/* ----------------------------------------------------------------- >>entries */

static void emit_extent(run *r)
{
    switch (pick(r->in, 24)) {
    case 20: emit_int(r, take(r->in)); break;
    case 21: emit_int(r, any_number(r->in)); break;
    case 22: emit(r, CAI_TOKEN_INDEX, 0, take(r->in), NULL); break;
    case 23: emit_anything(r, 1); break;
    default: emit_int(r, 1 + pick(r->in, 4)); break;
    }
}

static uint32_t some_ndim(source *in)
{
    uint32_t ndim = (uint32_t)pick(in, 12);
    if (ndim < 8) return ndim % 5;
    return ndim == 11 ? (uint32_t)pick(in, 80) : ndim;
}

static const cai_token *shape_entry(source *in, uint32_t *ndim)
{
    static run r;
    int32_t choice = pick(in, 32);
    uint32_t i;
    r.in = in;
    r.count = 0;
    *ndim = 0;
    if (choice == 31) return NULL;
    if (choice == 30) return any_entry(in);
    *ndim = some_ndim(in);
    emit(&r, choice == 29 ? CAI_TOKEN_LIST : CAI_TOKEN_TUPLE, *ndim, 0, NULL);
    for (i = 0; i < *ndim; i++) emit_extent(&r);
    return finish(&r);
}

static void emit_stride(run *r)
{
    int64_t small = (int8_t)take(r->in);
    switch (pick(r->in, 24)) {
    case 20: emit_int(r, any_number(r->in)); break;
    case 21: emit_int(r, small * 4096); break;
    case 22: emit(r, CAI_TOKEN_INDEX, 0, (uint64_t)small, NULL); break;
    case 23: emit_anything(r, 1); break;
    default: emit_int(r, small * ((int64_t)1 << pick(r->in, 5))); break;
    }
}

static const cai_token *strides_entry(source *in, uint32_t ndim)
{
    static run r;
    int32_t choice = pick(in, 16);
    uint32_t i;
    r.in = in;
    r.count = 0;
    if (choice < 4) return NULL;
    if (choice == 15) return any_entry(in);
    if (choice == 14) {
        emit(&r, CAI_TOKEN_NONE, 0, 0, NULL);
        return finish(&r);
    }
    if (choice == 13) ndim = some_ndim(in);
    emit(&r, choice == 12 ? CAI_TOKEN_LIST : CAI_TOKEN_TUPLE, ndim, 0, NULL);
    for (i = 0; i < ndim; i++) emit_stride(&r);
    return finish(&r);
}

static const struct {
    const char *text;
    int64_t bytes; /* of one element */
} typestrs[] = {
    {"<f4", 4},      {"<f8", 8},  {"|u1", 1},  {"|b1", 1},  {"<i2", 2},  {"<i8", 8},
    {">f4", 4},      {"<c8", 8},  {"<M8[ns]", 8}, {"<m8[25s]", 8}, {"|S5", 5}, {"<U3", 12},
    {"|V16", 16},    {"<V2", 2},  {"<f2", 2},  {">u4", 4},  {"<c16", 16}, {"|i1", 1},
    {"|t1", 0},      {"|t12", 0}, {"f4", 4},   {"=f4", 4},  {"|O8", 8},  {"<f16", 16},
    {"|V2147483647", 2147483647}, {"|V2147483648", 0}, {"<M8[", 8}, {"<f3", 3}, {"|V0", 0},
};

/** A typestr of the table, whole or with one byte changed, or any text; the bytes it stands for. */
static int64_t emit_typestr(run *r)
{
    int32_t choice = pick(r->in, 8);
    char text[16];
    size_t i, length;
    if (choice > 5) {
        emit_raw_string(r, CAI_TOKEN_STR);
        return 0;
    }
    i = take(r->in) % (sizeof typestrs / sizeof typestrs[0]);
    length = strlen(typestrs[i].text);
    memcpy(text, typestrs[i].text, length);
    if (choice == 5) text[take(r->in) % length] = (char)take(r->in);
    emit_string(r, CAI_TOKEN_STR, text, length);
    return typestrs[i].bytes;
}

/** A typestr; `|V` and the bytes of the descr in most dictionaries that have one. */
static const cai_token *typestr_entry(source *in, int64_t descr_bytes)
{
    static run r;
    int32_t choice = pick(in, 16);
    r.in = in;
    r.count = 0;
    if (choice == 15) return NULL;
    if (choice == 14) return any_entry(in);
    if (choice == 13) {
        emit_raw_string(&r, CAI_TOKEN_BYTES);
    } else if (descr_bytes > 0 && choice < 10) {
        char digits[32], text[32];
        size_t n = 0, length = 2;
        do digits[n++] = (char)('0' + descr_bytes % 10);
        while ((descr_bytes /= 10) != 0);
        text[0] = '|';
        text[1] = 'V';
        while (n > 0) text[length++] = digits[--n];
        emit_string(&r, CAI_TOKEN_STR, text, length);
    } else {
        (void)emit_typestr(&r);
    }
    return finish(&r);
}

static void emit_address(run *r)
{
    uint64_t aligned = UINT64_C(0x7f0000000000);
    switch (pick(r->in, 16)) {
    case 10: emit(r, CAI_TOKEN_UINT, 0, take_u64(r->in) | (uint64_t)1 << 63, NULL); break;
    case 11: emit(r, CAI_TOKEN_UINT, 0, UINT64_MAX - take(r->in), NULL); break;
    case 12: emit_int(r, any_number(r->in)); break;
    case 13: emit(r, CAI_TOKEN_NONE, 0, 0, NULL); break;
    case 14: emit_anything(r, 1); break;
    case 15: emit_int(r, 0); break;
    default: emit(r, CAI_TOKEN_INT, 0, aligned + take(r->in), NULL); break;
    }
}

static const cai_token *data_entry(source *in)
{
    static run r;
    int32_t choice = pick(in, 16);
    uint32_t items = choice == 12 ? (uint32_t)pick(in, 5) : 2, i;
    r.in = in;
    r.count = 0;
    if (choice == 15) return NULL;
    if (choice == 14) return any_entry(in);
    emit(&r, choice == 13 ? CAI_TOKEN_LIST : CAI_TOKEN_TUPLE, items, 0, NULL);
    for (i = 0; i < items; i++) {
        if (i == 0) emit_address(&r);
        else if (pick(in, 8) == 7) emit_anything(&r, 1);
        else emit(&r, CAI_TOKEN_BOOL, 0, take(in) & 1, NULL);
    }
    return finish(&r);
}

static const cai_token *version_entry(source *in)
{
    static run r;
    int32_t choice = pick(in, 16);
    r.in = in;
    r.count = 0;
    if (choice == 15) return NULL;
    if (choice == 14) return any_entry(in);
    if (choice == 13) emit_int(&r, any_number(in));
    else emit_int(&r, choice < 8 ? 3 : choice - 8);
    return finish(&r);
}

static const cai_token *stream_entry(source *in)
{
    static run r;
    int32_t choice = pick(in, 16);
    r.in = in;
    r.count = 0;
    if (choice < 6) return NULL;
    if (choice == 15) return any_entry(in);
    if (choice == 14) emit(&r, CAI_TOKEN_UINT, 0, take_u64(in) | (uint64_t)1 << 63, NULL);
    else if (choice == 13) emit(&r, CAI_TOKEN_NONE, 0, 0, NULL);
    else if (choice == 12) emit_int(&r, any_number(in));
    else emit_int(&r, choice - 6);
    return finish(&r);
}

/* ------------------------------------------------------------------- >>descr */

static int64_t emit_record(run *r, int32_t depth, int32_t kind);

static void emit_name(run *r)
{
    char letter = (char)('a' + pick(r->in, 26));
    switch (pick(r->in, 16)) {
    case 11: emit_raw_string(r, CAI_TOKEN_STR); break;
    case 12: emit_string(r, CAI_TOKEN_STR, "", 0); break;
    case 13: emit_anything(r, 1); break;
    case 14:
    case 15:
        emit(r, CAI_TOKEN_TUPLE, 2, 0, NULL);
        emit_raw_string(r, CAI_TOKEN_STR);
        emit_string(r, CAI_TOKEN_STR, &letter, 1);
        break;
    default: emit_string(r, CAI_TOKEN_STR, &letter, 1); break;
    }
}

/** The repeat of a field; returns how many items that is. */
static int64_t emit_repeat(run *r)
{
    uint32_t ndim = (uint32_t)pick(r->in, 16), i;
    int64_t items = 1;
    if (ndim == 15) {
        emit_int(r, 2);
        return 2;
    }
    if (ndim == 14) {
        emit_anything(r, 2);
        return 1;
    }
    ndim %= ndim < 12 ? 4 : 12;
    emit(r, CAI_TOKEN_TUPLE, ndim, 0, NULL);
    for (i = 0; i < ndim; i++) {
        int32_t extent = 1 + pick(r->in, 3);
        items *= extent;
        if (pick(r->in, 24) == 23) emit_int(r, any_number(r->in));
        else emit_int(r, extent);
    }
    return items;
}

static int64_t emit_field(run *r, int32_t depth)
{
    int32_t choice = pick(r->in, 16);
    int64_t bytes;
    if (is_full(r)) {
        emit(r, CAI_TOKEN_NONE, 0, 0, NULL);
        return 0;
    }
    if (choice == 15) {
        emit_anything(r, 1);
        return 0;
    }
    emit(r, choice == 14 ? CAI_TOKEN_LIST : CAI_TOKEN_TUPLE, choice & 1 ? 3 : 2, 0, NULL);
    emit_name(r);
    bytes = depth > 0 && choice >= 8 && choice < 14 ? emit_record(r, depth - 1, CAI_TOKEN_LIST)
                                                    : emit_typestr(r);
    return choice & 1 ? bytes * emit_repeat(r) : bytes;
}

static int64_t emit_record(run *r, int32_t depth, int32_t kind)
{
    int32_t fields = pick(r->in, 16), i;
    int64_t bytes = 0;
    if (fields == 15 && depth == MAX_DEPTH) fields = pick(r->in, 200);
    else fields = fields < 12 ? 1 + fields % 4 : fields - 12;
    emit(r, kind, (uint32_t)fields, 0, NULL);
    for (i = 0; i < fields; i++) bytes += emit_field(r, depth);
    return bytes < (int64_t)1 << 32 ? bytes : (int64_t)1 << 32;
}

static const cai_token *descr_entry(source *in, int64_t *bytes)
{
    static run r;
    int32_t choice = pick(in, 16);
    r.in = in;
    r.count = 0;
    *bytes = 0;
    if (choice < 8) return NULL;
    if (choice == 15) return any_entry(in);
    *bytes = emit_record(&r, MAX_DEPTH, choice == 14 ? CAI_TOKEN_TUPLE : CAI_TOKEN_LIST);
    return finish(&r);
}

/* --------------------------------------------------------------- >>dictionary */

static void make_interface(source *in, int32_t mask_depth, cai_interface *out);

static void make_mask(source *in, int32_t depth, cai_interface *out)
{
    int32_t choice = pick(in, 16);
    cai_interface mask;
    cai_token object;
    memset(&object, 0, sizeof object);
    object.kind = choice == 8 ? CAI_TOKEN_NONE : CAI_TOKEN_OBJECT;
    object.number = 1;
    if (choice < 8) return;
    out->mask = choice == 9 ? any_entry(in) : (const cai_token *)keep(in, &object, sizeof object);
    if (choice < 10 || depth == 0) return;
    make_interface(in, depth - 1, &mask);
    out->mask_interface = (const cai_interface *)keep(in, &mask, sizeof mask);
}

static void make_interface(source *in, int32_t mask_depth, cai_interface *out)
{
    uint32_t ndim;
    int64_t descr_bytes;
    memset(out, 0, sizeof *out);
    out->shape = shape_entry(in, &ndim);
    out->strides = strides_entry(in, ndim);
    out->descr = descr_entry(in, &descr_bytes);
    out->typestr = typestr_entry(in, descr_bytes);
    out->data = data_entry(in);
    out->version = version_entry(in);
    out->stream = stream_entry(in);
    make_mask(in, mask_depth, out);
}

#endif /* CAI_FUZZ_DICTIONARY_H_INCLUDED */
