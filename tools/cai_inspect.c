/* cai_inspect - judges interface dictionaries as Python prints them, or as JSON
 * SPDX-License-Identifier: MIT
 *
 *     cai_inspect [--lenient] [--all] [--lint] [--table] [FILE...]
 *     cai_inspect [--lenient] --plan [TO] FROM
 *
 * One JSON object for each dictionary, in order; --table for people; --all names every entry that is
 * wrong; --lint adds what consumers commonly lose of it. Exit status 0: all were accepted, 1: at least
 * one was rejected, 2: usage, I/O or out of memory. Plain C99, no CUDA. */

#define CAI_IMPLEMENTATION
#include "cai.h"
#include "ext/cai_transfer.h"

#include "cai_literal.h"
#include "cai_lint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cai_plan.h"

/* ---------------------------------------------------------------------------- output */

/* printf would take most of the time of a large input. */
typedef struct inspect_out {
    FILE *file;
    size_t used;
    int failed;
    char buffer[65536];
} inspect_out;

static void out_flush(inspect_out *o)
{
    if (o->used > 0 && fwrite(o->buffer, 1, o->used, o->file) != o->used) o->failed = 1;
    o->used = 0;
}

static void out_bytes(inspect_out *o, const char *text, size_t length)
{
    while (length > 0) {
        size_t part = sizeof o->buffer - o->used;
        if (part > length) part = length;
        memcpy(o->buffer + o->used, text, part);
        o->used += part;
        text += part;
        length -= part;
        if (o->used == sizeof o->buffer) out_flush(o);
    }
}

static void out_text(inspect_out *o, const char *text)
{
    out_bytes(o, text, strlen(text));
}

static void out_spaces(inspect_out *o, int count)
{
    while (count-- > 0) out_bytes(o, " ", 1);
}

static void out_u64(inspect_out *o, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value > 0);
    out_bytes(o, digits + at, sizeof digits - at);
}

static void out_i64(inspect_out *o, int64_t value)
{
    if (value < 0) out_text(o, "-");
    out_u64(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void out_i64s(inspect_out *o, const int64_t *values, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; i++) {
        if (i > 0) out_text(o, ", ");
        out_i64(o, values[i]);
    }
}

/* ----------------------------------------------------------------------------- UTF-8 */

/* Bytes of the well-formed UTF-8 character at `text`, or 0. No surrogates, nothing overlong. */
static size_t utf8_length(const char *text, size_t length)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t need = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    size_t i;
    if (need == 0 || c[0] > 0xf4 || need > length) return 0;
    for (i = 1; i < need; i++) {
        if ((c[i] & 0xc0) != 0x80) return 0;
    }
    if (need == 3 && ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f))) return 0;
    if (need == 4 && ((c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))) return 0;
    return need;
}

/* For people: what a terminal might obey or cannot show becomes '?'. Returns the columns. */
static int out_shown(inspect_out *o, const char *text, size_t length)
{
    size_t at = 0;
    int columns = 0;
    while (at < length) {
        const size_t part = utf8_length(text + at, length - at);
        const unsigned char c = (unsigned char)text[at];
        /* U+0080 to U+009f are control characters too */
        const int control = c < 0x20 || c == 0x7f ||
                            (part == 2 && c == 0xc2 && (unsigned char)text[at + 1] < 0xa0);
        out_bytes(o, part == 0 || control ? "?" : text + at, part == 0 || control ? 1 : part);
        at += part == 0 ? 1 : part;
        columns++;
    }
    return columns;
}

/* ------------------------------------------------------------------------------ JSON */

static void json_string(inspect_out *o, const char *text, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    char escape[] = "\\u0000";
    size_t at = 0;
    out_text(o, "\"");
    while (at < length) {
        const size_t part = utf8_length(text + at, length - at);
        const unsigned char c = (unsigned char)text[at];
        if (part == 0) {
            out_text(o, "\\ufffd");
        } else if (c == '"' || c == '\\') {
            out_bytes(o, "\\", 1);
            out_bytes(o, text + at, 1);
        } else if (c < 0x20 || c == 0x7f) {
            escape[4] = hex[c >> 4];
            escape[5] = hex[c & 15];
            out_text(o, escape);
        } else {
            out_bytes(o, text + at, part);
        }
        at += part == 0 ? 1 : part;
    }
    out_text(o, "\"");
}

static void json_key(inspect_out *o, const char *key)
{
    out_text(o, ", \"");
    out_text(o, key);
    out_text(o, "\": ");
}

static void json_bool(inspect_out *o, const char *key, int value)
{
    json_key(o, key);
    out_text(o, value ? "true" : "false");
}

static void json_name(inspect_out *o, const char *key, const char *name)
{
    json_key(o, key);
    json_string(o, name, strlen(name));
}

static void json_list(inspect_out *o, const char *key, const int64_t *values, int32_t count)
{
    json_key(o, key);
    out_text(o, "[");
    out_i64s(o, values, count);
    out_text(o, "]");
}

static void json_typestr(inspect_out *o, const cai_dtype *dtype)
{
    char typestr[CAI_TYPESTR_SIZE];
    (void)cai_dtype_typestr(dtype, typestr, CAI_TYPESTR_SIZE);
    json_name(o, "typestr", typestr);
}

static void json_field(inspect_out *o, const cai_field *field)
{
    out_text(o, "{\"name\": ");
    json_string(o, field->name, (size_t)field->name_length);
    json_key(o, "title");
    if (field->title == NULL) {
        out_text(o, "null");
    } else {
        json_string(o, field->title, (size_t)field->title_length);
    }
    json_key(o, "offset");
    out_i64(o, field->offset);
    json_key(o, "nbytes");
    out_i64(o, field->nbytes);
    json_typestr(o, &field->dtype);
    json_list(o, "shape", field->shape, field->ndim);
    json_key(o, "parent");
    out_i64(o, field->parent);
    out_text(o, "}");
}

static void json_fields(inspect_out *o, const cai_array *array)
{
    int64_t row;
    json_key(o, "fields");
    if (array->fields == NULL) {
        out_text(o, "null");
        return;
    }
    out_text(o, "[");
    for (row = 0; row < array->field_count; row++) {
        if (row > 0) out_text(o, ", ");
        json_field(o, &array->fields[row]);
    }
    out_text(o, "]");
}

static const char *self_overlap_name(uint32_t flags)
{
    if (flags & CAI_NO_SELF_OVERLAP) return "no";
    return flags & CAI_SELF_OVERLAP ? "yes" : "undecided";
}

static const char *sync_name(int32_t sync)
{
    if (sync == CAI_SYNC_NONE) return "none";
    return sync == CAI_SYNC_STREAM ? "stream" : "unknown";
}

/* Sizes, strides and what follows from them: the first keys of an array. */
static void json_layout(inspect_out *o, const cai_array *array)
{
    const int bitfield = array->dtype.code == CAI_BITFIELD;
    const int64_t extent[2] = {array->lo, array->hi};
    out_text(o, "\"itemsize\": ");
    if (bitfield) {
        out_text(o, "null");
    } else {
        out_i64(o, array->dtype.itemsize);
    }
    json_key(o, "size");
    out_i64(o, array->size);
    json_key(o, "nbytes");
    out_i64(o, array->nbytes);
    if (bitfield) {
        json_key(o, "strides");
        out_text(o, "null");
    } else {
        json_list(o, "strides", array->strides, array->ndim);
    }
    json_bool(o, "c_contiguous", (array->flags & CAI_C_CONTIGUOUS) != 0);
    json_bool(o, "f_contiguous", (array->flags & CAI_F_CONTIGUOUS) != 0);
    json_list(o, "extent", extent, 2);
}

/* The keys of an array without the braces and without its mask. */
static void json_array(inspect_out *o, const cai_array *array)
{
    json_layout(o, array);
    json_bool(o, "read_only", (array->flags & CAI_WRITABLE) == 0);
    json_bool(o, "byte_swapped", (array->flags & CAI_BYTE_SWAPPED) != 0);
    json_bool(o, "aligned", (array->flags & CAI_ALIGNED) != 0);
    json_name(o, "self_overlap", self_overlap_name(array->flags));
    json_key(o, "ndim");
    out_i64(o, array->ndim);
    json_list(o, "shape", array->shape, array->ndim);
    json_typestr(o, &array->dtype);
    json_name(o, "dtype", cai_dtype_name(array->dtype.code));
    json_key(o, "version");
    out_i64(o, array->version);
    json_name(o, "sync", sync_name(array->sync));
    json_key(o, "stream");
    if (array->sync == CAI_SYNC_STREAM) {
        out_u64(o, array->stream);
    } else {
        out_text(o, "null");
    }
    json_key(o, "data");
    out_u64(o, array->data);
    json_fields(o, array);
    json_key(o, "mask");
}

/* -------------------------------------------------------------------------- verdicts */

enum { INSPECT_ERRORS = CAI_ENTRY_COUNT + 1 };

/* All that is known of one dictionary. */
typedef struct inspect_verdict {
    cai_interface in[CAI_LITERAL_LEVELS];
    cai_literal_keys unknown;
    cai_array array, mask;              /* if it was accepted */
    int error_count;                    /* 0: it was accepted */
    cai_error errors[INSPECT_ERRORS];   /* the first one alone without --all */
    int in_elements;                    /* its strides look like counts of elements: */
    cai_lint_strides strides;
} inspect_verdict;

/* One cell or one line of text, cut off where it is full. */
typedef struct inspect_text {
    size_t used;
    char text[4000];
} inspect_text;

static void text_bytes(inspect_text *t, const char *text, size_t length)
{
    const size_t room = sizeof t->text - t->used;
    if (length > room) length = room;
    if (length > 0) memcpy(t->text + t->used, text, length);
    t->used += length;
}

static void text_put(inspect_text *t, const char *text)
{
    text_bytes(t, text, strlen(text));
}

static void text_i64(inspect_text *t, int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)value);
    text_put(t, digits);
}

/* As Python writes a tuple: (), (3,), (2, 3). */
static void text_tuple(inspect_text *t, const int64_t *values, int32_t count)
{
    int32_t i;
    text_put(t, "(");
    for (i = 0; i < count; i++) {
        if (i > 0) text_put(t, ", ");
        text_i64(t, values[i]);
    }
    text_put(t, count == 1 ? ",)" : ")");
}

/* "strides (3, 1) look like elements; in bytes they are (12, 4)" */
static void text_elements(inspect_text *t, const cai_lint_strides *strides)
{
    text_put(t, "strides ");
    text_tuple(t, strides->written, strides->ndim);
    text_put(t, " look like elements; in bytes they are ");
    text_tuple(t, strides->bytes, strides->ndim);
}

/* "unknown key 'stride': did you mean 'strides'?" */
static void text_unknown(inspect_text *t, const char *key, size_t length, int32_t entry)
{
    text_put(t, "unknown key '");
    text_bytes(t, key, length < 200 ? length : 200);
    text_put(t, "'");
    if (entry == CAI_ENTRY_NONE) {
        text_put(t, ": no consumer reads it");
    } else {
        text_put(t, ": did you mean '");
        text_put(t, cai_entry_name(entry));
        text_put(t, "'?");
    }
}

/* A rule that says otherwise what strides in elements bring with them. */
static int is_consequence(const inspect_verdict *v, const cai_lint_rule *rule)
{
    return v->in_elements && (rule->applies == cai_lint_writes_overlap ||
                              rule->applies == cai_lint_is_unaligned ||
                              rule->applies == cai_lint_has_odd_stride);
}

static int rule_applies(const inspect_verdict *v, const cai_lint_rule *rule)
{
    return v->error_count == 0 && !is_consequence(v, rule) && rule->applies(&v->array, &v->in[0]);
}

/* In place of `from`, at `at`, which is at least as long. */
static void replace_words(char *at, const char *from, const char *to)
{
    const size_t before = strlen(from), after = strlen(to);
    memmove(at + after, at + before, strlen(at + before) + 1);
    memcpy(at, to, after);
}

/* The words of cai.h are those of a C program: in their place, those of a command line and of text. */
static void use_own_words(cai_error *err)
{
    static const char forgiven[] = "(accepted by CAI_LENIENT)";
    static const char mask[] = "mask must be None or an object with the interface";
    const size_t length = strlen(err->message);
    char *const end = err->message + (length < sizeof forgiven - 1 ? 0 : length - (sizeof forgiven - 1));
    if (strcmp(end, forgiven) == 0) {
        replace_words(end, forgiven, "(accepted with --lenient)");
    }
    if (err->entry == CAI_ENTRY_MASK && strncmp(err->message, mask, sizeof mask - 1) == 0) {
        replace_words(err->message, mask, "mask must be None or the dictionary of a mask");
    }
}

/* Was the first error about what the strides say? Then its message tells that they look like elements. */
static int is_about_strides(const inspect_verdict *v)
{
    return v->in_elements && v->error_count > 0 &&
           (v->errors[0].entry == CAI_ENTRY_STRIDES || v->errors[0].entry == CAI_ENTRY_DATA);
}

/* ---------------------------------------------------------------------- JSON of these */

static void json_remark(inspect_out *o, int *count, const char *entry, const char *loses,
                        const char *advice, size_t length)
{
    out_text(o, (*count)++ > 0 ? ", {\"entry\": \"" : "{\"entry\": \"");
    out_text(o, entry);
    out_text(o, "\"");
    json_name(o, "loses", loses);
    json_key(o, "advice");
    json_string(o, advice, length);
    out_text(o, "}");
}

/* What consumers lose of it. */
static void json_lint(inspect_out *o, const inspect_verdict *v)
{
    inspect_text t;
    int i, count = 0;
    json_key(o, "lint");
    out_text(o, "[");
    for (i = 0; i < v->unknown.count; i++) {
        const char *key = v->unknown.text[i];
        const int32_t entry = cai_lint_near_entry(key, v->unknown.length[i]);
        if (!cai_lint_is_unknown(key, v->unknown.length[i])) continue;
        t.used = 0;
        text_unknown(&t, key, v->unknown.length[i], entry);
        json_remark(o, &count, cai_entry_name(entry), "the value of an unknown key", t.text, t.used);
    }
    t.used = 0;
    if (v->in_elements) {
        text_elements(&t, &v->strides);
        json_remark(o, &count, "strides", "which elements are meant", t.text, t.used);
    }
    for (i = 0; i < CAI_LINT_RULES; i++) {
        const cai_lint_rule *rule = &cai_lint_rules[i];
        if (!rule_applies(v, rule)) continue;
        json_remark(o, &count, cai_entry_name(rule->entry), rule->loses, rule->advice, strlen(rule->advice));
    }
    out_text(o, "]");
}

static void json_error(inspect_out *o, const cai_error *err)
{
    out_text(o, "\"entry\": ");
    json_string(o, cai_entry_name(err->entry), strlen(cai_entry_name(err->entry)));
    json_name(o, "status", cai_status_name(err->code));
    json_key(o, "rule");
    out_i64(o, err->rule);
    json_name(o, "message", err->message);
}

static void json_errors(inspect_out *o, const inspect_verdict *v)
{
    int i;
    json_key(o, "errors");
    out_text(o, "[");
    for (i = 0; i < v->error_count; i++) {
        out_text(o, i > 0 ? ", {" : "{");
        json_error(o, &v->errors[i]);
        out_text(o, "}");
    }
    out_text(o, "]");
}

static void json_verdict(inspect_out *o, const inspect_verdict *v, int all, int lint)
{
    if (v->error_count > 0) {
        out_text(o, "{\"ok\": false, ");
        json_error(o, &v->errors[0]);
    } else {
        out_text(o, "{\"ok\": true, ");
        json_array(o, &v->array);
        if (v->array.mask == NULL) {
            out_text(o, "null");
        } else {
            out_text(o, "{");
            json_array(o, v->array.mask);
            out_text(o, "null}");
        }
    }
    if (all) json_errors(o, v);
    if (lint) json_lint(o, v);
    out_text(o, "}\n");
}

/* ----------------------------------------------------------------------------- table */

enum {
    TABLE_WIDTH = 110,
    /* first columns of the cells of a row */
    TABLE_DTYPE = 29,
    TABLE_SHAPE = 41,
    TABLE_LAYOUT = 60,
    TABLE_SYNC = 71,
    TABLE_EXTENT = 94,
    TABLE_DETAIL = 6 /* indent of the lines below a row */
};

/* Columns that `text` takes on a terminal, wide characters not considered. */
static int shown_columns(const char *text, size_t length)
{
    size_t at = 0;
    int columns = 0;
    while (at < length) {
        const size_t part = utf8_length(text + at, length - at);
        at += part == 0 ? 1 : part;
        columns++;
    }
    return columns;
}

/* Lines of at most TABLE_WIDTH columns, broken at spaces. */
static void out_wrapped(inspect_out *o, const char *text, size_t length)
{
    int column = TABLE_DETAIL;
    out_spaces(o, TABLE_DETAIL);
    while (length > 0) {
        const char *space = (const char *)memchr(text + 1, ' ', length - 1);
        const size_t word = space == NULL ? length : (size_t)(space - text);
        const int columns = shown_columns(text, word);
        if (column + columns > TABLE_WIDTH && column > TABLE_DETAIL + 2) {
            out_text(o, "\n");
            out_spaces(o, TABLE_DETAIL + 2);
            column = TABLE_DETAIL + 2;
            if (*text == ' ') {
                text++;
                length--;
                continue;
            }
        }
        column += out_shown(o, text, word);
        text += word;
        length -= word;
    }
    out_text(o, "\n");
}

static void out_detail(inspect_out *o, const char *text)
{
    out_wrapped(o, text, strlen(text));
}

/* Writes a cell and pads up to where the next one begins. */
static void out_cell(inspect_out *o, const char *text, size_t length, int *column, int next)
{
    *column += out_shown(o, text, length);
    if (*column + 2 > next) next = *column + 2;
    out_spaces(o, next - *column);
    *column = next;
}

static const char *layout_name(const cai_array *array)
{
    int32_t axis;
    int negative = 0;
    if (array->dtype.code == CAI_BITFIELD) return "bits";
    if (array->size == 0) return "empty";
    if (array->ndim == 0) return "scalar";
    if (array->flags & CAI_C_CONTIGUOUS) return "C";
    if (array->flags & CAI_F_CONTIGUOUS) return "F";
    for (axis = 0; axis < array->ndim; axis++) {
        if (array->shape[axis] > 1 && array->strides[axis] == 0) return "broadcast";
        if (array->shape[axis] > 1 && array->strides[axis] < 0) negative = 1;
    }
    if (negative) return "negative";
    return array->flags & CAI_DENSE ? "permuted" : "strided";
}

static void text_dtype(inspect_text *t, const cai_array *array)
{
    const cai_dtype *dtype = &array->dtype;
    char typestr[CAI_TYPESTR_SIZE];
    const int swapped = (array->flags & CAI_BYTE_SWAPPED) != 0;
    const int kind = dtype->code >> 8 & 0xff;
    const int flexible = strchr("mMSUVt", kind) != NULL;
    if (array->fields != NULL && kind == 'V') {
        text_put(t, "record");
        return;
    }
    if (!flexible) text_put(t, cai_dtype_name(dtype->code));
    if (!flexible && swapped) text_put(t, " ");
    (void)cai_dtype_typestr(dtype, typestr, CAI_TYPESTR_SIZE);
    if (flexible || swapped) text_put(t, typestr);
}

/* Whose work may still be pending. */
static void text_sync(inspect_text *t, const cai_array *array)
{
    char digits[24];
    if (array->sync == CAI_SYNC_NONE) {
        text_put(t, "none");
    } else if (array->sync != CAI_SYNC_STREAM) {
        text_put(t, "unknown");
    } else {
        (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)array->stream);
        text_put(t, "stream ");
        text_put(t, digits);
        if (array->stream == CAI_STREAM_LEGACY) text_put(t, " (legacy)");
        if (array->stream == CAI_STREAM_PER_THREAD) text_put(t, " (per-thread)");
    }
}

static void text_extent(inspect_text *t, const cai_array *array)
{
    if (array->lo == 0) {
        text_i64(t, array->hi);
        text_put(t, array->hi == 1 ? " byte" : " bytes");
        return;
    }
    text_put(t, "[");
    text_i64(t, array->lo);
    text_put(t, ", ");
    text_i64(t, array->hi);
    text_put(t, ")");
}

/* The name of a field with those of the records around it: "pos.x". Returns its offset in the
 * outermost record. */
static int64_t text_field_name(inspect_text *t, const cai_array *array, int64_t row)
{
    const cai_field *fields = array->fields;
    int64_t path[CAI_MAX_FIELD_DEPTH], offset = 0;
    int depth = 0;
    if (fields[row].name_length == 0) text_put(t, "padding");
    while (row >= 0 && depth < CAI_MAX_FIELD_DEPTH) {
        path[depth++] = row;
        offset += fields[row].offset;
        row = fields[row].parent;
    }
    while (depth-- > 0 && fields[path[0]].name_length > 0) {
        const cai_field *field = &fields[path[depth]];
        text_bytes(t, field->name, (size_t)field->name_length);
        if (depth > 0) text_put(t, ".");
    }
    return offset;
}

/* "20 bytes: x <f4 at 0, y <f4 (2, 2) at 4"; records are told by the names of their fields. */
static void table_fields(inspect_out *o, const cai_array *array, inspect_text *t)
{
    int64_t row;
    const char *separator = array->dtype.itemsize == 1 ? " byte: " : " bytes: ";
    t->used = 0;
    text_i64(t, array->dtype.itemsize);
    for (row = 0; row < array->field_count; row++) {
        const cai_field *field = &array->fields[row];
        char typestr[CAI_TYPESTR_SIZE];
        int64_t offset;
        if (field->child_count > 0 && field->ndim == 0) continue;
        text_put(t, separator);
        separator = ", ";
        offset = text_field_name(t, array, row);
        (void)cai_dtype_typestr(&field->dtype, typestr, CAI_TYPESTR_SIZE);
        text_put(t, " ");
        text_put(t, typestr);
        if (field->ndim > 0) text_put(t, " ");
        if (field->ndim > 0) text_tuple(t, field->shape, field->ndim);
        text_put(t, " at ");
        text_i64(t, offset);
    }
    out_wrapped(o, t->text, t->used);
}

static void table_mask(inspect_out *o, const cai_array *mask, inspect_text *t)
{
    t->used = 0;
    text_put(t, "mask: ");
    text_dtype(t, mask);
    text_put(t, " ");
    text_tuple(t, mask->shape, mask->ndim);
    text_put(t, ", pending work: ");
    text_sync(t, mask);
    out_wrapped(o, t->text, t->used);
    t->used = 0;
    text_put(t, "a consumer that cannot handle the mask must refuse the array");
    out_wrapped(o, t->text, t->used);
}

/* What a consumer of this array commonly loses or gets wrong. */
static void table_notes(inspect_out *o, const inspect_verdict *v)
{
    const cai_array *array = &v->array;
    const uint32_t flags = array->flags;
    if (!(flags & CAI_WRITABLE)) out_detail(o, "read-only: many consumers drop this");
    if (flags & CAI_BYTE_SWAPPED) {
        out_detail(o, "other byte order: many consumers read the bytes as they are");
    }
    if (!(flags & CAI_ALIGNED) && !v->in_elements) out_detail(o, "not aligned for its dtype");
    if (!v->in_elements && (flags & CAI_WRITABLE) && (flags & CAI_SELF_OVERLAP)) {
        out_detail(o, "elements share memory, yet it is writable: only safe to read");
    }
    if (array->dtype.code == CAI_VOID && array->dtype.itemsize == 2 && array->fields == NULL) {
        out_detail(o, "two opaque bytes, bfloat16 by convention (it has no typestr)");
    }
    if (array->sync == CAI_SYNC_STREAM && array->stream == CAI_STREAM_PER_THREAD) {
        out_detail(o, "stream 2 is the default stream of one host thread; which one is not said");
    }
    if (flags & CAI_FUTURE_VERSION) out_detail(o, "newer than version 3: known entries judged");
}

/* What is known of a dictionary whether it was accepted or not. */
static void table_remarks(inspect_out *o, const inspect_verdict *v, int lint)
{
    inspect_text t;
    int i;
    for (i = 0; lint && i < v->unknown.count; i++) {
        const char *key = v->unknown.text[i];
        const size_t length = v->unknown.length[i];
        if (!cai_lint_is_unknown(key, length)) continue;
        t.used = 0;
        text_unknown(&t, key, length, cai_lint_near_entry(key, length));
        out_wrapped(o, t.text, t.used);
    }
    if (!v->in_elements || is_about_strides(v)) return;
    t.used = 0;
    text_elements(&t, &v->strides);
    out_wrapped(o, t.text, t.used);
}

/* What consumers lose of it and what to do, in place of the notes. */
static void table_lint(inspect_out *o, const inspect_verdict *v)
{
    inspect_text t;
    int i;
    for (i = 0; i < CAI_LINT_RULES; i++) {
        const cai_lint_rule *rule = &cai_lint_rules[i];
        if (!rule_applies(v, rule)) continue;
        t.used = 0;
        text_put(&t, cai_entry_name(rule->entry));
        text_put(&t, ": consumers lose ");
        text_put(&t, rule->loses);
        text_put(&t, ". ");
        text_put(&t, rule->advice);
        out_wrapped(o, t.text, t.used);
    }
}

static void table_rejected(inspect_out *o, const inspect_verdict *v, int lint)
{
    int i;
    out_text(o, "rejected\n");
    for (i = 0; i < v->error_count; i++) out_detail(o, v->errors[i].message);
    table_remarks(o, v, lint);
}

/* The line of a shape or of strides. */
static void table_tuple(inspect_out *o, const char *name, const int64_t *values, int32_t count)
{
    inspect_text t;
    t.used = 0;
    text_put(&t, name);
    text_tuple(&t, values, count);
    out_wrapped(o, t.text, t.used);
}

static void table_accepted(inspect_out *o, const inspect_verdict *v, int lint, int column)
{
    const cai_array *array = &v->array;
    inspect_text t;
    int long_shape;
    t.used = 0;
    text_dtype(&t, array);
    out_cell(o, t.text, t.used, &column, TABLE_SHAPE);
    t.used = 0;
    text_tuple(&t, array->shape, array->ndim);
    long_shape = t.used > TABLE_SYNC - TABLE_SHAPE;
    if (long_shape) {
        t.used = 0;
        text_i64(&t, array->ndim);
        text_put(&t, "-D, below");
    }
    out_cell(o, t.text, t.used, &column, TABLE_LAYOUT);
    out_cell(o, layout_name(array), strlen(layout_name(array)), &column, TABLE_SYNC);
    t.used = 0;
    text_sync(&t, array);
    out_cell(o, t.text, t.used, &column, TABLE_EXTENT);
    t.used = 0;
    text_extent(&t, array);
    (void)out_shown(o, t.text, t.used);
    out_text(o, "\n");
    if (long_shape) table_tuple(o, "shape ", array->shape, array->ndim);
    if (!(array->flags & CAI_C_CONTIGUOUS)) {
        table_tuple(o, "strides ", array->strides, array->ndim);
    }
    if (array->fields != NULL && array->field_count > 1) table_fields(o, array, &t);
    if (array->mask != NULL) table_mask(o, array->mask, &t);
    table_remarks(o, v, lint);
    if (lint) {
        table_lint(o, v);
    } else {
        table_notes(o, v);
    }
}

static void table_header(inspect_out *o)
{
    int column = 2;
    out_spaces(o, 2);
    out_cell(o, "", 0, &column, TABLE_DTYPE);
    out_cell(o, "dtype", 5, &column, TABLE_SHAPE);
    out_cell(o, "shape", 5, &column, TABLE_LAYOUT);
    out_cell(o, "layout", 6, &column, TABLE_SYNC);
    out_cell(o, "pending work", 12, &column, TABLE_EXTENT);
    out_text(o, "memory extent\n");
}

/* ---------------------------------------------------------------------------- labels */

/* The comment lines above a dictionary: "# Library - what it is | where it is from", then
 * remarks. In a table the library is a heading over all that follow one another. */
typedef struct inspect_label {
    inspect_text heading; /* library and origin of the row before */
    inspect_text lines;   /* each ends in a newline */
} inspect_label;

static const char *find_text(const char *text, size_t length, const char *wanted)
{
    const size_t size = strlen(wanted);
    size_t at;
    for (at = 0; at + size <= length; at++) {
        if (memcmp(text + at, wanted, size) == 0) return text + at;
    }
    return NULL;
}

static void label_add(inspect_label *label, const char *line, size_t length)
{
    size_t skip = 1; /* the # */
    if (skip < length && line[skip] == ' ') skip++;
    text_bytes(&label->lines, line + skip, length - skip);
    text_put(&label->lines, "\n");
}

/* "## Mistakes": a title of its own, for the dictionaries below. */
static void label_title(inspect_out *o, inspect_label *label, const char *line, size_t length)
{
    size_t skip = 0;
    int column = 3;
    while (skip < length && (line[skip] == '#' || line[skip] == ' ')) skip++;
    out_text(o, "\n== ");
    column += out_shown(o, line + skip, length - skip);
    out_text(o, " ");
    while (++column < TABLE_WIDTH) out_text(o, "=");
    out_text(o, "\n");
    label->heading.used = 0;
}

static void label_heading(inspect_out *o, inspect_label *label, const inspect_text *library,
                          const inspect_text *origin)
{
    inspect_text heading;
    int column = 0;
    heading.used = 0;
    text_bytes(&heading, library->text, library->used);
    text_put(&heading, "|");
    text_bytes(&heading, origin->text, origin->used);
    if (heading.used == label->heading.used &&
        memcmp(heading.text, label->heading.text, heading.used) == 0) {
        return;
    }
    label->heading = heading;
    if (library->used == 0) return;
    out_text(o, "\n");
    out_cell(o, library->text, library->used, &column, TABLE_DTYPE);
    if (origin->used > 0) (void)out_shown(o, origin->text, origin->used);
    out_text(o, "\n");
}

/* Begins the row of a dictionary: heading, then what it is. Returns the column reached. */
static int label_begin(inspect_out *o, inspect_label *label, int64_t line_number)
{
    const char *text = label->lines.text;
    const char *end = (const char *)memchr(text, '\n', label->lines.used);
    const size_t length = end == NULL ? label->lines.used : (size_t)(end - text);
    const char *bar = find_text(text, length, " | ");
    const size_t named = bar == NULL ? length : (size_t)(bar - text);
    const char *dash = find_text(text, named, " - ");
    inspect_text library, what, origin;
    int column = 2;
    library.used = what.used = origin.used = 0;
    if (bar != NULL) text_bytes(&origin, bar + 3, length - named - 3);
    if (dash != NULL) text_bytes(&library, text, (size_t)(dash - text));
    if (dash == NULL) {
        text_bytes(&what, text, named);
    } else {
        text_bytes(&what, dash + 3, (size_t)(text + named - dash) - 3);
    }
    if (length == 0) {
        text_put(&what, "line ");
        text_i64(&what, line_number);
    }
    label_heading(o, label, &library, &origin);
    out_spaces(o, 2);
    out_cell(o, what.text, what.used, &column, TABLE_DTYPE);
    return column;
}

/* The remarks that the file itself has. */
static void label_remarks(inspect_out *o, const inspect_label *label)
{
    const char *text = label->lines.text;
    const char *const past = text + label->lines.used;
    int first = 1;
    while (text < past) {
        const char *end = (const char *)memchr(text, '\n', (size_t)(past - text));
        if (end == NULL) end = past;
        if (!first && end > text) out_wrapped(o, text, (size_t)(end - text));
        first = 0;
        text = end + 1;
    }
}

/* ----------------------------------------------------------------------------- lines */

typedef struct inspect_buffer {
    char *text;
    size_t used, capacity;
} inspect_buffer;

/* Makes room for one byte more and adds it. False: out of memory. */
static int buffer_add(inspect_buffer *b, char c)
{
    if (b->used == b->capacity) {
        const size_t capacity = b->used < 1024 ? 1024 : b->used * 2;
        char *grown = capacity > b->used ? (char *)realloc(b->text, capacity) : NULL;
        if (grown == NULL) return 0;
        b->text = grown;
        b->capacity = capacity;
    }
    b->text[b->used++] = c;
    return 1;
}

typedef struct inspect {
    inspect_out out;
    inspect_label label;
    uint32_t flags; /* of cai_import */
    int table, lint, all, plan;
    int64_t accepted, rejected;
    cai_token *tokens;
    size_t token_capacity;
    cai_field *fields;
    inspect_verdict verdict;
    inspect_buffer line, entry; /* entry: the dictionary so far, of one line or of several */
    cai_literal_lines lines;
    int64_t line_number, entry_line; /* entry_line: its first line, 0 if there is none */
} inspect;

static int inspect_trouble(const char *what, const char *name)
{
    (void)fprintf(stderr, "cai_inspect: %s%s%s\n", what, name == NULL ? "" : ": ",
                  name == NULL ? "" : name);
    return 2;
}

static void inspect_table_row(inspect *it)
{
    inspect_out *o = &it->out;
    const int column = label_begin(o, &it->label, it->entry_line);
    if (it->verdict.error_count == 0) {
        table_accepted(o, &it->verdict, it->lint, column);
    } else {
        table_rejected(o, &it->verdict, it->lint);
    }
    label_remarks(o, &it->label);
    it->label.lines.used = 0;
}

/* ------------------------------------------------------------------------- all errors */

/* Entries that nothing is wrong with, in place of those that were wrong. */
typedef struct inspect_harmless {
    cai_token shape[CAI_MAX_NDIM + 1], typestr, data[3], version;
    cai_interface now;
    int replaced[CAI_ENTRY_COUNT];
} inspect_harmless;

static void set_token(cai_token *token, int32_t kind, uint32_t length, uint64_t number, const char *text)
{
    token->kind = kind;
    token->length = length;
    token->number = number;
    token->text = text;
}

static int is_sequence(const cai_token *token)
{
    return token != NULL && (token->kind == CAI_TOKEN_TUPLE || token->kind == CAI_TOKEN_LIST) &&
           token->length <= CAI_MAX_NDIM;
}

/* An empty array: no address, no stride and no size is wrong for it. */
static void set_shape(inspect_harmless *h)
{
    const cai_token *like = is_sequence(h->now.shape) ? h->now.shape : h->now.strides;
    const uint32_t ndim = is_sequence(like) && like->length > 0 ? like->length : 1;
    uint32_t i;
    set_token(&h->shape[0], CAI_TOKEN_TUPLE, ndim, 0, NULL);
    for (i = 1; i <= ndim; i++) set_token(&h->shape[i], CAI_TOKEN_INT, 0, 0, NULL);
    h->now.shape = h->shape;
}

static void replace_entry(inspect_harmless *h, int32_t entry)
{
    h->replaced[entry] = 1;
    switch (entry) {
    case CAI_ENTRY_SHAPE: set_shape(h); break;
    case CAI_ENTRY_TYPESTR:
        set_token(&h->typestr, CAI_TOKEN_STR, 3, 0, "|u1");
        h->now.typestr = &h->typestr;
        break;
    case CAI_ENTRY_DATA:
        set_token(&h->data[0], CAI_TOKEN_TUPLE, 2, 0, NULL);
        set_token(&h->data[1], CAI_TOKEN_INT, 0, (uint64_t)1 << 62, NULL);
        set_token(&h->data[2], CAI_TOKEN_BOOL, 0, 0, NULL);
        h->now.data = h->data;
        break;
    case CAI_ENTRY_VERSION:
        set_token(&h->version, CAI_TOKEN_INT, 0, 3, NULL);
        h->now.version = &h->version;
        break;
    case CAI_ENTRY_STRIDES: h->now.strides = NULL; break;
    case CAI_ENTRY_STREAM: h->now.stream = NULL; break;
    case CAI_ENTRY_DESCR: h->now.descr = NULL; break;
    default:
        h->now.mask = NULL;
        h->now.mask_interface = NULL;
        break;
    }
}

/* Is it only so because another entry was replaced? How long a record is, is not known without its
 * typestr; whether a mask that is right by itself fits is not known without the shape. */
static int is_made_up(const inspect_harmless *h, const cai_error *err, const cai_import_options *options)
{
    cai_array alone;
    if (err->entry == CAI_ENTRY_DESCR) {
        return h->replaced[CAI_ENTRY_TYPESTR] && err->code == CAI_ERR_DESCR && err->index < 0;
    }
    if (err->entry != CAI_ENTRY_MASK || !h->replaced[CAI_ENTRY_SHAPE]) return 0;
    if (h->now.mask_interface == NULL) return 0;
    return cai_import(h->now.mask_interface, options, &alone, NULL) == CAI_OK;
}

/* Each entry that is wrong is noted, replaced by one that is not, and the rest is judged again. */
static void find_all_errors(inspect_verdict *v, const cai_import_options *options)
{
    inspect_harmless h;
    cai_array array;
    cai_error err = v->errors[0];
    int i;
    memset(&h, 0, sizeof h);
    h.now = v->in[0];
    for (i = 0; i < CAI_ENTRY_COUNT; i++) {
        if (err.entry == CAI_ENTRY_NONE || h.replaced[err.entry]) return;
        replace_entry(&h, err.entry);
        for (;;) {
            if (cai_import(&h.now, options, &array, &err) == CAI_OK) return;
            if (!is_made_up(&h, &err, options) || h.replaced[err.entry]) break;
            replace_entry(&h, err.entry);
        }
        if (err.entry == CAI_ENTRY_NONE || h.replaced[err.entry]) return;
        v->errors[v->error_count++] = err;
    }
}

/* ------------------------------------------------------------------- one dictionary */

/* The message of strides in elements, where there is room for it. */
static void add_elements(inspect_verdict *v)
{
    cai_error *err = &v->errors[0];
    const size_t length = strlen(err->message);
    inspect_text t;
    t.used = 0;
    text_put(&t, "; ");
    text_elements(&t, &v->strides);
    if (t.used >= sizeof err->message - length) return;
    memcpy(err->message + length, t.text, t.used);
    err->message[length + t.used] = '\0';
}

static void judge(inspect *it, char *text, size_t length)
{
    inspect_verdict *v = &it->verdict;
    cai_import_options options;
    cai_status status;
    int i, readable;
    memset(&options, 0, sizeof options);
    options.flags = it->flags;
    options.mask = &v->mask;
    options.fields = it->fields;
    options.field_capacity = CAI_MAX_FIELDS;
    v->in_elements = 0;
    status = cai_literal_read(text, length, it->tokens, it->token_capacity, v->in, &v->unknown,
                              &v->errors[0]);
    readable = status == CAI_OK;
    if (readable) status = cai_import(&v->in[0], &options, &v->array, &v->errors[0]);
    v->error_count = status != CAI_OK;
    if (readable) {
        v->in_elements = cai_lint_in_elements(status == CAI_OK ? &v->array : NULL, &v->in[0], &v->strides);
    } else {
        v->unknown.count = 0;
    }
    if (readable && v->error_count > 0 && it->all) find_all_errors(v, &options);
    for (i = 0; i < v->error_count; i++) use_own_words(&v->errors[i]);
    if ((it->table || it->lint) && is_about_strides(v)) add_elements(v);
}

/* Judges the dictionary that was collected, if there is one. False: out of memory. */
static int inspect_entry(inspect *it)
{
    const size_t length = it->entry.used;
    const size_t capacity = cai_literal_capacity(length < INT32_MAX ? length : 0);
    if (it->entry_line == 0) return 1;
    if (capacity > it->token_capacity) {
        free(it->tokens);
        it->tokens = (cai_token *)malloc(capacity * sizeof *it->tokens);
        it->token_capacity = it->tokens == NULL ? 0 : capacity;
        if (it->tokens == NULL) return 0;
    }
    judge(it, it->entry.text, length);
    if (it->verdict.error_count == 0) {
        it->accepted++;
    } else {
        it->rejected++;
    }
    if (it->plan && it->verdict.error_count == 0) {
        /* its picture follows */
    } else if (it->table) {
        inspect_table_row(it);
    } else {
        json_verdict(&it->out, &it->verdict, it->all, it->lint);
    }
    it->entry.used = 0;
    it->entry_line = 0;
    return 1;
}

/* Reads a line of any length and any bytes into it->line. 1: a line, 0: the end, -1: no memory. */
static int inspect_next(inspect *it, FILE *file)
{
    int c;
    it->line.used = 0;
    while ((c = getc(file)) != EOF && c != '\n') {
        if (!buffer_add(&it->line, (char)c)) return -1;
    }
    it->line_number++;
    return it->line.used > 0 || c != EOF;
}

/* A line that is no part of a dictionary: a comment, or nothing. */
static void inspect_comment(inspect *it, const char *line, size_t length)
{
    if (length == 0) {
        it->label.lines.used = 0;
    } else if (it->table && length > 1 && line[1] == '#') {
        label_title(&it->out, &it->label, line, length);
    } else if (it->table) {
        label_add(&it->label, line, length);
    }
}

/* A line of a file: a comment, nothing, or a dictionary or a part of it. False: out of memory. */
static int inspect_line(inspect *it)
{
    static const char bom[] = "\xef\xbb\xbf";
    const char *line = it->line.text;
    size_t length = it->line.used, i;
    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' ')) length--;
    if (it->line_number == 1 && length >= 3 && memcmp(line, bom, 3) == 0) {
        line += 3;
        length -= 3;
    }
    if (it->entry_line > 0 && cai_literal_goes_on(&it->lines, line, length)) {
        if (!buffer_add(&it->entry, '\n')) return 0;
    } else {
        if (!inspect_entry(it)) return 0;
        if (length == 0 || line[0] == '#') {
            inspect_comment(it, line, length);
            return 1;
        }
        memset(&it->lines, 0, sizeof it->lines);
        it->entry_line = it->line_number;
    }
    for (i = 0; i < length; i++) {
        if (!buffer_add(&it->entry, line[i])) return 0;
    }
    cai_literal_count(&it->lines, line, length);
    return it->lines.open > 0 || inspect_entry(it);
}

/* Returns 0, or the exit status of what went wrong. */
static int inspect_file(inspect *it, const char *name)
{
    const int standard = strcmp(name, "-") == 0;
    FILE *file = standard ? stdin : fopen(name, "rb");
    int more, failed;
    if (file == NULL) return inspect_trouble("cannot open", name);
    it->line_number = 0;
    it->label.lines.used = 0;
    it->label.heading.used = 0;
    while ((more = inspect_next(it, file)) > 0) {
        if (!inspect_line(it)) {
            more = -1;
            break;
        }
        /* who writes to a pipe wants the answer before writing on */
        if (standard) out_flush(&it->out);
    }
    if (more == 0 && !inspect_entry(it)) more = -1;
    failed = ferror(file);
    if (!standard) (void)fclose(file);
    if (more < 0) return inspect_trouble("out of memory", NULL);
    return failed ? inspect_trouble("cannot read", name) : 0;
}

/* ----------------------------------------------------------------------------- plans */

/* Judges a dictionary that is an argument. 0: it was accepted; else the exit status. */
static int plan_read(inspect *it, const char *text, cai_array *out)
{
    for (it->entry.used = 0; *text != '\0'; text++) {
        if (!buffer_add(&it->entry, *text)) return inspect_trouble("out of memory", NULL);
    }
    it->entry_line = 1;
    if (!inspect_entry(it)) return inspect_trouble("out of memory", NULL);
    *out = it->verdict.array;
    out->mask = NULL; /* it is copied by a plan of its own */
    return it->verdict.error_count > 0;
}

/* "to    float32 (2, 3), strides (12, 4)" */
static void plan_array(const char *name, const cai_array *array)
{
    static inspect_text t; /* large */
    t.used = 0;
    text_dtype(&t, array);
    text_put(&t, " ");
    text_tuple(&t, array->shape, array->ndim);
    text_put(&t, ", strides ");
    text_tuple(&t, array->strides, array->ndim);
    (void)printf("%-4s  %.*s\n", name, (int)t.used, t.text);
}

/* The copy from one array to another, drawn; of one array, that to a contiguous buffer. */
static int plan_run(inspect *it, int count, char **texts)
{
    cai_array to, from;
    cai_transfer plan;
    cai_error err;
    cai_status status;
    int bad;
    if (count < 1 || count > 2) return inspect_trouble("--plan takes one dictionary, or two: TO FROM", NULL);
    bad = plan_read(it, texts[0], &to);
    if (bad == 0 && count == 2) bad = plan_read(it, texts[1], &from);
    out_flush(&it->out);
    if (bad != 0) return bad;
    status = count == 2 ? cai_transfer_plan(&plan, &to, &from, &err) : cai_transfer_pack(&plan, &to, 0, &err);
    if (status != CAI_OK) {
        (void)printf("no copy: %s\n", err.message);
        return 1;
    }
    if (count == 2) plan_array("to", &to);
    plan_array("from", count == 2 ? &from : &to);
    cai_plan_print(stdout, &plan, count == 2 ? to.data : 0, count == 2 ? from.data : to.data);
    return 0;
}

/* ------------------------------------------------------------------------------ main */

static const char usage_text[] =
    "usage: cai_inspect [--lenient] [--all] [--lint] [--table] [--] [FILE...]\n"
    "       cai_inspect [--lenient] --plan [TO] FROM\n"
    "\n"
    "Reads __cuda_array_interface__ dictionaries, as Python's repr or pprint prints them or as JSON,\n"
    "from the files or from standard input (no file, or -), and judges each. One a line, or over\n"
    "several: lines that are indented deeper than the first, or begin with a closing bracket, belong\n"
    "to a dictionary that is still open. Blank lines and lines that begin with # are skipped.\n"
    "\n"
    "  --lenient  forgive common slips; a message about one ends in '(accepted with --lenient)'\n"
    "  --all      every entry that is wrong, not only the first\n"
    "  --lint     what consumers commonly lose of it, unknown keys, and what to do about both\n"
    "  --table    a table for people instead of JSON; '# Library - what it is | origin' above labels it\n"
    "  --plan     draws the pieces of the copy from the dictionary FROM to the dictionary TO, or to a\n"
    "             contiguous buffer. Both are arguments\n"
    "  --help     this text\n"
    "\n"
    "Exit status: 0 all accepted, 1 at least one rejected, 2 usage, I/O or out of memory.\n";

static int inspect_files(inspect *it, int count, char **names)
{
    int i, status = 0;
    if (count == 0) return inspect_file(it, "-");
    for (i = 0; i < count && status == 0; i++) status = inspect_file(it, names[i]);
    return status;
}

static void table_summary(inspect *it)
{
    inspect_out *o = &it->out;
    out_text(o, "\n");
    out_i64(o, it->accepted + it->rejected);
    out_text(o, it->accepted + it->rejected == 1 ? " dictionary: " : " dictionaries: ");
    out_i64(o, it->accepted);
    out_text(o, " accepted, ");
    out_i64(o, it->rejected);
    out_text(o, " rejected\n");
}

static int inspect_run(inspect *it, int count, char **names)
{
    int status;
    it->out.file = stdout;
    if (it->plan && (it->all || it->lint || it->table))
        return inspect_trouble("--plan goes with --lenient only", NULL);
    if (it->table) table_header(&it->out);
    it->fields = (cai_field *)malloc(CAI_MAX_FIELDS * sizeof *it->fields);
    if (it->fields == NULL) return inspect_trouble("out of memory", NULL);
    status = it->plan ? plan_run(it, count, names) : inspect_files(it, count, names);
    if (it->table && status == 0) table_summary(it);
    out_flush(&it->out);
    if (fflush(stdout) != 0 || it->out.failed) {
        status = inspect_trouble("cannot write to standard output", NULL);
    }
    if (status == 0 && it->rejected > 0) status = 1;
    free(it->fields);
    free(it->tokens);
    free(it->line.text);
    free(it->entry.text);
    return status;
}

int main(int argc, char **argv)
{
    inspect *it = (inspect *)calloc(1, sizeof *it);
    int i, names = 0, options = 1, status;
    if (it == NULL) return inspect_trouble("out of memory", NULL);
    for (i = 1; i < argc; i++) {
        if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[names++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            options = 0;
        } else if (strcmp(argv[i], "--lenient") == 0) {
            it->flags = CAI_LENIENT;
        } else if (strcmp(argv[i], "--all") == 0) {
            it->all = 1;
        } else if (strcmp(argv[i], "--lint") == 0) {
            it->lint = 1;
        } else if (strcmp(argv[i], "--table") == 0) {
            it->table = 1;
        } else if (strcmp(argv[i], "--plan") == 0) {
            it->plan = 1;
        } else {
            const int help = strcmp(argv[i], "--help") == 0;
            free(it);
            if (help) return fputs(usage_text, stdout) < 0 || fflush(stdout) != 0 ? 2 : 0;
            (void)fprintf(stderr, "cai_inspect: unknown option '%s'\n%s", argv[i], usage_text);
            return 2;
        }
    }
    status = inspect_run(it, names, argv);
    free(it);
    return status;
}
