/* cai_inspect - judges interface dictionaries, one a line, as Python's repr prints them
 * SPDX-License-Identifier: MIT
 *
 *     cai_inspect [--lenient] [--lint] [--table] [FILE...]
 *
 * One JSON object a line, in order; --table for people; --lint adds what consumers commonly lose of
 * it. Exit status 0: all were accepted, 1: at least one was rejected, 2: usage, I/O or out of
 * memory. Plain C99, no CUDA. */

#define CAI_IMPLEMENTATION
#include "cai.h"

#include "cai_literal.h"
#include "cai_lint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What consumers lose of it; `in` is what it was made of. */
static void json_lint(inspect_out *o, const cai_array *array, const cai_interface *in)
{
    int i, count = 0;
    json_key(o, "lint");
    out_text(o, "[");
    for (i = 0; i < CAI_LINT_RULES; i++) {
        const cai_lint_rule *rule = &cai_lint_rules[i];
        if (!rule->applies(array, in)) continue;
        out_text(o, count++ > 0 ? ", {\"entry\": \"" : "{\"entry\": \"");
        out_text(o, cai_entry_name(rule->entry));
        out_text(o, "\"");
        json_name(o, "loses", rule->loses);
        json_name(o, "advice", rule->advice);
        out_text(o, "}");
    }
    out_text(o, "]");
}

/* lint: the entries if --lint was given, else NULL. */
static void json_accepted(inspect_out *o, const cai_array *array, const cai_interface *lint)
{
    out_text(o, "{\"ok\": true, ");
    json_array(o, array);
    if (array->mask == NULL) {
        out_text(o, "null");
    } else {
        out_text(o, "{");
        json_array(o, array->mask);
        out_text(o, "null}");
    }
    if (lint != NULL) json_lint(o, array, lint);
    out_text(o, "}\n");
}

static void json_rejected(inspect_out *o, const cai_error *err)
{
    out_text(o, "{\"ok\": false, \"entry\": ");
    json_string(o, cai_entry_name(err->entry), strlen(cai_entry_name(err->entry)));
    json_name(o, "status", cai_status_name(err->code));
    json_name(o, "message", err->message);
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
static void table_notes(inspect_out *o, const cai_array *array)
{
    const uint32_t flags = array->flags;
    if (!(flags & CAI_WRITABLE)) out_detail(o, "read-only: many consumers drop this");
    if (flags & CAI_BYTE_SWAPPED) {
        out_detail(o, "other byte order: many consumers read the bytes as they are");
    }
    if (!(flags & CAI_ALIGNED)) out_detail(o, "not aligned for its dtype");
    if ((flags & CAI_WRITABLE) && (flags & CAI_SELF_OVERLAP)) {
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

/* What consumers lose of it and what to do, in place of the notes. */
static void table_lint(inspect_out *o, const cai_array *array, const cai_interface *in)
{
    inspect_text t;
    int i;
    for (i = 0; i < CAI_LINT_RULES; i++) {
        const cai_lint_rule *rule = &cai_lint_rules[i];
        if (!rule->applies(array, in)) continue;
        t.used = 0;
        text_put(&t, cai_entry_name(rule->entry));
        text_put(&t, ": consumers lose ");
        text_put(&t, rule->loses);
        text_put(&t, ". ");
        text_put(&t, rule->advice);
        out_wrapped(o, t.text, t.used);
    }
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

static void table_accepted(inspect_out *o, const cai_array *array, const cai_interface *lint,
                           int column)
{
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
    if (lint == NULL) {
        table_notes(o, array);
    } else {
        table_lint(o, array, lint);
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

typedef struct inspect {
    inspect_out out;
    inspect_label label;
    uint32_t flags; /* of cai_import */
    int table, lint;
    int64_t accepted, rejected;
    cai_token *tokens;
    size_t token_capacity;
    cai_field *fields;
    char *line;
    size_t line_capacity;
    int64_t line_number;
} inspect;

static int inspect_trouble(const char *what, const char *name)
{
    (void)fprintf(stderr, "cai_inspect: %s%s%s\n", what, name == NULL ? "" : ": ",
                  name == NULL ? "" : name);
    return 2;
}

static void inspect_table_row(inspect *it, const cai_array *array, const cai_interface *lint,
                              const cai_error *err)
{
    inspect_out *o = &it->out;
    int column;
    column = label_begin(o, &it->label, it->line_number);
    if (array != NULL) {
        table_accepted(o, array, lint, column);
    } else {
        out_text(o, "rejected\n");
        out_detail(o, err->message);
    }
    label_remarks(o, &it->label);
    it->label.lines.used = 0;
}

/* Judges one dictionary and writes the verdict. False: out of memory. */
static int inspect_dictionary(inspect *it, char *line, size_t length)
{
    const size_t capacity = cai_literal_capacity(length < INT32_MAX ? length : 0);
    cai_interface in[CAI_LITERAL_LEVELS];
    const cai_interface *lint = it->lint ? in : NULL;
    cai_import_options options;
    cai_array array, mask;
    cai_error err;
    cai_status status;
    if (capacity > it->token_capacity) {
        free(it->tokens);
        it->tokens = (cai_token *)malloc(capacity * sizeof *it->tokens);
        it->token_capacity = it->tokens == NULL ? 0 : capacity;
        if (it->tokens == NULL) return 0;
    }
    memset(&options, 0, sizeof options);
    options.flags = it->flags;
    options.mask = &mask;
    options.fields = it->fields;
    options.field_capacity = CAI_MAX_FIELDS;
    status = cai_literal_read(line, length, it->tokens, it->token_capacity, in, &err);
    if (status == CAI_OK) status = cai_import(&in[0], &options, &array, &err);
    if (status == CAI_OK) {
        it->accepted++;
    } else {
        it->rejected++;
    }
    if (it->table) {
        inspect_table_row(it, status == CAI_OK ? &array : NULL, lint, &err);
    } else if (status == CAI_OK) {
        json_accepted(&it->out, &array, lint);
    } else {
        json_rejected(&it->out, &err);
    }
    return 1;
}

/* Reads a line of any length and any bytes into it->line. 1: a line, 0: the end, -1: no memory. */
static int inspect_next(inspect *it, FILE *file, size_t *length)
{
    size_t used = 0;
    int c;
    while ((c = getc(file)) != EOF && c != '\n') {
        if (used == it->line_capacity) {
            const size_t capacity = used < 1024 ? 1024 : used * 2;
            char *grown = capacity > used ? (char *)realloc(it->line, capacity) : NULL;
            if (grown == NULL) return -1;
            it->line = grown;
            it->line_capacity = capacity;
        }
        it->line[used++] = (char)c;
    }
    *length = used;
    it->line_number++;
    return used > 0 || c != EOF;
}

/* A line of a file: a comment, nothing, or a dictionary. False: out of memory. */
static int inspect_line(inspect *it, size_t length)
{
    static const char bom[] = "\xef\xbb\xbf";
    char *line = it->line;
    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' ')) length--;
    if (it->line_number == 1 && length >= 3 && memcmp(line, bom, 3) == 0) {
        line += 3;
        length -= 3;
    }
    if (length > 0 && line[0] == '#') {
        if (!it->table) return 1;
        if (length > 1 && line[1] == '#') {
            label_title(&it->out, &it->label, line, length);
        } else {
            label_add(&it->label, line, length);
        }
        return 1;
    }
    if (length > 0) return inspect_dictionary(it, line, length);
    it->label.lines.used = 0;
    return 1;
}

/* Returns 0, or the exit status of what went wrong. */
static int inspect_file(inspect *it, const char *name)
{
    const int standard = strcmp(name, "-") == 0;
    FILE *file = standard ? stdin : fopen(name, "rb");
    size_t length = 0;
    int more, failed;
    if (file == NULL) return inspect_trouble("cannot open", name);
    it->line_number = 0;
    it->label.lines.used = 0;
    it->label.heading.used = 0;
    while ((more = inspect_next(it, file, &length)) > 0) {
        if (!inspect_line(it, length)) {
            more = -1;
            break;
        }
        /* who writes to a pipe wants the answer before writing on */
        if (standard) out_flush(&it->out);
    }
    failed = ferror(file);
    if (!standard) (void)fclose(file);
    if (more < 0) return inspect_trouble("out of memory", NULL);
    return failed ? inspect_trouble("cannot read", name) : 0;
}

/* ------------------------------------------------------------------------------ main */

static const char usage_text[] =
    "usage: cai_inspect [--lenient] [--lint] [--table] [--] [FILE...]\n"
    "\n"
    "Reads __cuda_array_interface__ dictionaries, one a line, as Python's repr prints them,\n"
    "from the files or from standard input (no file, or -), and judges each.\n"
    "Blank lines and lines that begin with # are skipped.\n"
    "\n"
    "  --lenient  forgive what CAI_LENIENT forgives (see cai.h)\n"
    "  --lint     add what consumers commonly lose of an accepted dictionary, and how the\n"
    "             producer avoids it\n"
    "  --table    a table for people instead of one JSON object a line; a comment line above a\n"
    "             dictionary, '# Library - what it is | origin', is its label\n"
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
    if (it->table) table_header(&it->out);
    it->fields = (cai_field *)malloc(CAI_MAX_FIELDS * sizeof *it->fields);
    if (it->fields == NULL) return inspect_trouble("out of memory", NULL);
    status = inspect_files(it, count, names);
    if (it->table && status == 0) table_summary(it);
    out_flush(&it->out);
    if (fflush(stdout) != 0 || it->out.failed) {
        status = inspect_trouble("cannot write to standard output", NULL);
    }
    if (status == 0 && it->rejected > 0) status = 1;
    free(it->fields);
    free(it->tokens);
    free(it->line);
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
        } else if (strcmp(argv[i], "--lint") == 0) {
            it->lint = 1;
        } else if (strcmp(argv[i], "--table") == 0) {
            it->table = 1;
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
