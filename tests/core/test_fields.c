/* test_fields.c - descr: the flat table, its limits, its round trip, views of fields.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

enum { MANY = CAI_MAX_FIELDS + 8 };

static cai_field fields[MANY];
static int64_t count;
static cai_error err;
static char long_text[HELP_TEXT / 4];

static cai_status compile(const char *descr, const char *typestr, int64_t capacity)
{
    cai_dtype dtype = help_dtype(typestr);
    const cai_token *run;
    help_reset();
    run = help_run(descr);
    cai_test_note(descr);
    help_fill(fields, sizeof fields);
    count = -7;
    return cai_fields_compile(run, &dtype, 0, fields, capacity, &count, &err);
}

static int name_is(const cai_field *field, const char *name)
{
    size_t length = strlen(name);
    return field->name_length == length && memcmp(field->name, name, length) == 0;
}

static int title_is(const cai_field *field, const char *title)
{
    size_t length = strlen(title);
    return field->title != NULL && field->title_length == length &&
           memcmp(field->title, title, length) == 0;
}

static void check_field(int64_t row, const char *name, int32_t code, int64_t offset,
                        int64_t nbytes, int32_t parent, int32_t children, int32_t ndim)
{
    const cai_field *field = &fields[row];
    CHECK(name_is(field, name));
    CHECK_INT(field->dtype.code, code);
    CHECK_INT(field->offset, offset);
    CHECK_INT(field->nbytes, nbytes);
    CHECK_INT(field->parent, parent);
    CHECK_INT(field->child_count, children);
    CHECK_INT(field->ndim, ndim);
    CHECK_INT(field->reserved, 0);
}

/* ------------------------------------------------------------------ the table */

static void check_flat(void)
{
    CHECK_INT(compile("[('a','@i4'),('b','`f8'),('c','|S3')]", "|V15", MANY), CAI_OK);
    CHECK_INT(count, 3);
    check_field(0, "a", CAI_INT32, 0, 4, -1, 0, 0);
    check_field(1, "b", CAI_SWAPPED(CAI_FLOAT64), 4, 8, -1, 0, 0);
    check_field(2, "c", CAI_BYTES, 12, 3, -1, 0, 0);
    CHECK_INT(fields[2].dtype.itemsize, 3);
    CHECK(fields[0].title == NULL);
    CHECK_INT(fields[0].title_length, 0);
    CHECK(help_filled(&fields[3], sizeof fields[3]));
    CHECK_INT(compile("[('a','@m8[25s]')]", "@m8", MANY), CAI_OK);
    CHECK_INT(fields[0].dtype.unit_count, 25);
    CHECK_INT(compile("[('real','`f4'),('imag','`f4')]", "`c8", MANY), CAI_OK);
    CHECK_INT(compile("[('big','>i4'),('little','<i4')]", "|V8", MANY), CAI_OK);
    CHECK((fields[0].dtype.code ^ fields[1].dtype.code) == 0x01000000);
    CHECK_INT(compile("[('\xc3\xbc',  '|u1'), ('a b.c','|u1')]", "|V2", MANY), CAI_OK);
    check_field(0, "\xc3\xbc", CAI_UINT8, 0, 1, -1, 0, 0);
    check_field(1, "a b.c", CAI_UINT8, 1, 1, -1, 0, 0);
}

static void check_titles(void)
{
    CHECK_INT(compile("[(('Full name','b'),'@i4'),('c','@i2'),(('','d'),'@i2')]", "|V8", MANY),
              CAI_OK);
    check_field(0, "b", CAI_INT32, 0, 4, -1, 0, 0);
    CHECK(title_is(&fields[0], "Full name"));
    CHECK(fields[1].title == NULL);
    check_field(2, "d", CAI_INT16, 6, 2, -1, 0, 0);
    CHECK(fields[2].title == NULL || fields[2].title_length == 0);
}

static void check_padding(void)
{
    CHECK_INT(compile("[('a','`i4'),('','|V4'),('b','@f8'),('','|V2'),('','|V1')]", "|V19", MANY),
              CAI_OK);
    CHECK_INT(count, 5);
    check_field(1, "", CAI_VOID, 4, 4, -1, 0, 0);
    check_field(2, "b", CAI_FLOAT64, 8, 8, -1, 0, 0);
    check_field(3, "", CAI_VOID, 16, 2, -1, 0, 0);
    check_field(4, "", CAI_VOID, 18, 1, -1, 0, 0);
}

static void check_sub_arrays(void)
{
    CHECK_INT(compile("[('ival','@i4'),('data','`f8',(16,4))]", "|V516", MANY), CAI_OK);
    check_field(1, "data", CAI_SWAPPED(CAI_FLOAT64), 4, 512, -1, 0, 2);
    CHECK_INT(fields[1].shape[0], 16);
    CHECK_INT(fields[1].shape[1], 4);
    CHECK_INT(compile("[('a','|u1',()),('b','|u1',(1,1,1,1,1,1,1,3))]", "|V4", MANY), CAI_OK);
    check_field(0, "a", CAI_UINT8, 0, 1, -1, 0, 0);
    check_field(1, "b", CAI_UINT8, 1, 3, -1, 0, 8);
    CHECK_INT(fields[1].shape[7], 3);
    CHECK_INT(compile("[('a','@f8',(0,3)),('b','|u1')]", "|V1", MANY), CAI_OK);
    check_field(0, "a", CAI_FLOAT64, 0, 0, -1, 0, 2);
    check_field(1, "b", CAI_UINT8, 0, 1, -1, 0, 0);
    CHECK_INT(compile("[('a','|V2',(3,))]", "|V6", MANY), CAI_OK);
    check_field(0, "a", CAI_VOID, 0, 6, -1, 0, 1);
    CHECK_INT(fields[0].dtype.itemsize, 2);
}

static void check_nested(void)
{
    const char *text = "[('p',[('x','@f4'),('y','@f4'),('',"
                       "'|V2')],(2,3)),('q',[('r',[('s','|u1')]),('x','@i2')]),('e','|u1')]";
    CHECK_INT(compile(text, "|V64", MANY), CAI_OK);
    CHECK_INT(count, 9);
    check_field(0, "p", CAI_VOID, 0, 60, -1, 3, 2);
    CHECK_INT(fields[0].dtype.itemsize, 10);
    CHECK_INT(fields[0].shape[0] * 10 + fields[0].shape[1], 23);
    check_field(1, "x", CAI_FLOAT32, 0, 4, 0, 0, 0);
    check_field(2, "y", CAI_FLOAT32, 4, 4, 0, 0, 0);
    check_field(3, "", CAI_VOID, 8, 2, 0, 0, 0);
    check_field(4, "q", CAI_VOID, 60, 3, -1, 2, 0);
    CHECK_INT(fields[4].dtype.itemsize, 3);
    check_field(5, "r", CAI_VOID, 0, 1, 4, 1, 0);
    check_field(6, "s", CAI_UINT8, 0, 1, 5, 0, 0);
    check_field(7, "x", CAI_INT16, 1, 2, 4, 0, 0);
    check_field(8, "e", CAI_UINT8, 63, 1, -1, 0, 0);
}

/* The default descr says nothing that the typestr does not. */
static void check_default(void)
{
    CHECK_INT(compile("[('','@f4')]", "@f4", MANY), CAI_OK);
    CHECK_INT(count, 0);
    CHECK(help_filled(fields, sizeof fields));
    CHECK_INT(compile("[('','|V4')]", "|V4", MANY), CAI_OK);
    CHECK_INT(count, 0);
    CHECK_INT(compile("[('a','@f4')]", "@f4", MANY), CAI_OK);
    CHECK_INT(count, 1);
    CHECK_INT(compile("[(('t',''),'@f4')]", "@f4", MANY), CAI_OK);
    CHECK_INT(count, 1);
    CHECK_INT(compile("[('','@f4',())]", "@f4", MANY), CAI_OK);
    CHECK(count == 0 || count == 1);
    CHECK_INT(compile("[('','@i4')]", "@f4", MANY), CAI_OK);
    CHECK_INT(count, 1);
    CHECK_INT(compile("[('','@u2',(2,))]", "@u4", MANY), CAI_OK);
    CHECK_INT(count, 1);
    CHECK_INT(compile("None", "@f4", MANY), CAI_OK);
    CHECK_INT(count, 0);
}

/* ------------------------------------------------------------------ refusals */

typedef struct refusal {
    const char *descr;
    const char *typestr;
    int32_t status;
} refusal;

static const refusal refusals[] = {
    {"[]", "|V8", CAI_ERR_DESCR},
    {"[('a',[])]", "|V8", CAI_ERR_DESCR},
    {"[('a','<i4')]", "|V8", CAI_ERR_DESCR},
    {"[('a','<i4'),('b','<i8')]", "|V8", CAI_ERR_DESCR},
    {"[('a','<i4'),('a','<i4')]", "|V8", CAI_ERR_DESCR},
    {"[('a','<i4'),(('t','a'),'<i4')]", "|V8", CAI_ERR_DESCR},
    {"[('r',[('a','<i4'),('a','<i4')])]", "|V8", CAI_ERR_DESCR},
    {"[('a','<i4'),('',[('b','<i2'),('b','<i2')])]", "|V8", CAI_ERR_DESCR},
    {"[('a','<i4',(-1,)),('b','<i8')]", "|V4", CAI_ERR_DESCR},
    {"[('a','<i4',(1,1,1,1,1,1,1,1,1))]", "|V4", CAI_ERR_DESCR},
    {"[('a','<i4',(1099511627776,1099511627776))]", "|V8", CAI_ERR_DESCR},
    {"[('a','|u1',(4294967296,4294967296)),('b','|V8')]", "|V8", CAI_ERR_DESCR},
    {"[('a',[('b','|u1',(4294967296,))],(4294967296,)),('c','|V8')]", "|V8", CAI_ERR_DESCR},
    {"[('a','|u1',(9223372036854775807,)),('b','|u1',(9223372036854775807,)),('c','|V10')]", "|V8",
     CAI_ERR_DESCR},
    {"[('a','|O8')]", "|V8", CAI_ERR_DESCR},
    {"[('a','|t8'),('b','|V7')]", "|V8", CAI_ERR_DESCR},
    {"[('','|t8')]", "|t8", CAI_ERR_DESCR},
    {"[('a','f8')]", "|V8", CAI_ERR_DESCR},
    {"[('a','<f8 ')]", "|V8", CAI_ERR_DESCR},
    {"5", "|V8", CAI_ERR_TYPE},
    {"(('a','<i8'),)", "|V8", CAI_ERR_TYPE},
    {"['a','<i8']", "|V8", CAI_ERR_TYPE},
    {"[('a',)]", "|V8", CAI_ERR_TYPE},
    {"[('a','<i4',2)]", "|V8", CAI_ERR_TYPE},
    {"[(('t',),'<i8')]", "|V8", CAI_ERR_TYPE},
    {"[('a',{})]", "|V8", CAI_ERR_TYPE},
};

static void check_refusals(void)
{
    size_t i;
    for (i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const refusal *r = &refusals[i];
        CHECK_INT(compile(r->descr, r->typestr, MANY), r->status);
        CHECK_INT(err.code, r->status);
        CHECK_INT(err.entry, CAI_ENTRY_DESCR);
        CHECK_INT(count, -7);
        CHECK(help_filled(fields, sizeof fields));
    }
    /* the same name at two levels, and in two records, is fine */
    CHECK_INT(compile("[('a',[('a','@i4')]),('b',[('a','@i4')])]", "|V8", MANY), CAI_OK);
}

/* A record of `depth` lists, one in the other. */
static const char *nest(int depth)
{
    int i, at = 0;
    for (i = 0; i < depth - 1; i++) at += sprintf(long_text + at, "[('a',");
    at += sprintf(long_text + at, "[('a','|u1')]");
    for (i = 0; i < depth - 1; i++) at += sprintf(long_text + at, ")]");
    return long_text;
}

static void check_depth(void)
{
    int depth;
    for (depth = 1; depth <= 40; depth++) {
        int good = depth <= CAI_MAX_FIELD_DEPTH;
        CHECK_INT(compile(nest(depth), "|V1", MANY), good ? CAI_OK : CAI_ERR_DESCR);
        CHECK_INT(count, good ? depth : -7);
        if (good) CHECK_INT(fields[depth - 1].parent, depth - 2);
    }
    CHECK_INT(compile(nest(3000), "|V1", MANY), CAI_ERR_DESCR);
    cai_test_note("");
}

/* Rows of distinct names, all padding, or nested ones. */
static const char *many(int rows, int style)
{
    int i, at = sprintf(long_text, style == 2 ? "[('r',[" : "[");
    for (i = style == 2; i < rows; i++) {
        if (style == 1) at += sprintf(long_text + at, "('','|V1'),");
        if (style != 1) at += sprintf(long_text + at, "('f%d','|u1'),", i);
    }
    sprintf(long_text + at, style == 2 ? "])]" : "]");
    return long_text;
}

static void check_many(void)
{
    int style, rows;
    for (style = 0; style < 3; style++) {
        for (rows = CAI_MAX_FIELDS - 1; rows <= CAI_MAX_FIELDS + 1; rows++) {
            char typestr[16];
            int good = rows <= CAI_MAX_FIELDS;
            sprintf(typestr, "|V%d", style == 2 ? rows - 1 : rows);
            CHECK_INT(compile(many(rows, style), typestr, MANY), good ? CAI_OK : CAI_ERR_DESCR);
            CHECK_INT(count, good ? rows : -7);
            if (good) CHECK_INT(fields[rows - 1].offset, rows - 1 - (style == 2));
        }
    }
    cai_test_note("");
}

/* Many names, the last one a duplicate of each in turn. */
static void check_duplicates(void)
{
    int i, k;
    for (k = 0; k < 30; k++) {
        int at = sprintf(long_text, "[");
        for (i = 0; i < 30; i++) at += sprintf(long_text + at, "('n%d','|u1'),", i);
        sprintf(long_text + at, "('n%d','|u1')]", k);
        CHECK_INT(compile(long_text, "|V31", MANY), CAI_ERR_DESCR);
        CHECK_INT(count, -7);
    }
    CHECK_INT(compile("[('ab','|u1'),('a','|u1'),('b','|u1'),('abc','|u1')]", "|V4", MANY), CAI_OK);
}

static void check_capacity(void)
{
    const char *text = "[('a','|u1'),('r',[('b','|u1'),('c','|u1')]),('','|V1')]";
    cai_dtype dtype = help_dtype("|V4");
    const cai_token *run;
    int64_t capacity;
    for (capacity = 0; capacity < 5; capacity++) {
        CHECK_INT(compile(text, "|V4", capacity), CAI_ERR_CAPACITY);
        CHECK_INT(err.code, CAI_ERR_CAPACITY);
        CHECK_INT(count, -7);
        CHECK(help_filled(fields, sizeof fields));
    }
    CHECK_INT(compile(text, "|V4", 5), CAI_OK);
    CHECK_INT(count, 5);
    CHECK(help_filled(&fields[5], sizeof fields[5]));
    run = help_run(text);
    count = -7;
    CHECK_INT(cai_fields_compile(run, &dtype, 0, NULL, 0, &count, NULL), CAI_OK);
    CHECK_INT(count, 5);
    /* a wrong descr is wrong, whatever the capacity */
    CHECK_INT(compile("[('a','|u1'),('b','|u1')]", "|V4", 0), CAI_ERR_DESCR);
}

/* ------------------------------------------------------------------ round trip */

static const char *const trips[][2] = {
    {"[('a','@i4'),('b','`f8')]", "|V12"},
    {"[('a','@i4'),('','|V4'),('b','`f8'),('','|V16')]", "|V32"},
    {"[(('Title','a'),'@i4',(2,3)),('b','|S5')]", "|V29"},
    {"[('p',[('x','@f4'),('',"
     "'|V1'),('y',[('z','@U2'),('w','@m8[3us]')],(2,))],(3,1)),('q','|b1')]",
     "|V112"},
    {"[('real','`f4'),('imag','`f4')]", "`c8"},
    {"[('','@u2',(2,))]", "@u4"},
    {"[('a','@f8',(0,3)),('b','|u1')]", "|V1"},
    {"[('n',[('n',[('n',[('n','@c4')])])])]", "|V4"},
    {"[('n','|u1',(1,1,1,1,1,1,1,1))]", "|u1"},
    {"[('\xc3\xbc','|u1'),(('\xe2\x82\xac','e'),'|u1')]", "|V2"},
};

static int same_field(const cai_field *a, const cai_field *b)
{
    int same = a->name_length == b->name_length && a->title_length == b->title_length;
    same = same && (a->title == NULL) == (b->title == NULL);
    same = same && memcmp(a->name, b->name, (size_t)a->name_length) == 0;
    same = same && (!a->title || memcmp(a->title, b->title, (size_t)a->title_length) == 0);
    same = same && memcmp(&a->dtype, &b->dtype, sizeof a->dtype) == 0;
    same = same && a->offset == b->offset && a->nbytes == b->nbytes && a->parent == b->parent;
    same = same && a->child_count == b->child_count && a->ndim == b->ndim;
    return same && memcmp(a->shape, b->shape, (size_t)a->ndim * 8) == 0;
}

static void check_trip(const char *descr, const char *typestr, int32_t version)
{
    static cai_field second[64];
    static cai_token tokens[64 * 16];
    static char text[64 * CAI_TYPESTR_SIZE];
    cai_array a, b;
    cai_interface out;
    cai_export_storage storage = {tokens, 64 * 16, text, 64 * CAI_TYPESTR_SIZE, NULL};
    cai_import_options options = {0, NULL, fields, MANY};
    int64_t row;
    sprintf(long_text, "shape=(2,3); typestr='%s'; descr=%s; stream=%s; version=3", typestr, descr,
            version == 3 ? "7" : "None");
    help_reset();
    CHECK_INT(cai_import(help_dict(long_text), &options, &a, &err), CAI_OK);
    CHECK_INT(cai_export(&a, version, &storage, &out, &err), CAI_OK);
    options.fields = second;
    options.field_capacity = 64;
    CHECK_INT(cai_import(&out, &options, &b, &err), CAI_OK);
    CHECK_INT(b.field_count, a.field_count);
    CHECK_BYTES(&b.dtype, &a.dtype, sizeof a.dtype);
    for (row = 0; row < a.field_count; row++) CHECK(same_field(&fields[row], &second[row]));
}

static void check_trips(void)
{
    size_t i;
    int32_t version;
    for (i = 0; i < sizeof trips / sizeof trips[0]; i++) {
        cai_test_note(trips[i][0]);
        for (version = 0; version <= 3; version++) check_trip(trips[i][0], trips[i][1], version);
    }
    cai_test_note("");
}

/* ------------------------------------------------------------------ views of fields */

static cai_array base;

static cai_array *import_record(const char *descr, const char *typestr, const char *layout)
{
    cai_import_options options = {0, NULL, fields, MANY};
    help_reset();
    sprintf(long_text, "typestr='%s'; descr=%s; %s", typestr, descr, layout);
    CHECK_INT(cai_import(help_dict(long_text), &options, &base, &err), CAI_OK);
    cai_test_note(descr);
    return &base;
}

/* Rows of the enclosing records, outermost first. */
static int32_t chain_of(int64_t row, int64_t *chain)
{
    int64_t at;
    int32_t n = 0, i;
    for (at = row; at >= 0; at = fields[at].parent) n++;
    for (at = row, i = n; at >= 0; at = fields[at].parent) chain[--i] = at;
    return n;
}

/* Every element of the view is where a walk through the records finds it. */
static void check_addresses(int64_t row, const cai_array *view)
{
    static uint64_t outer[HELP_ELEMENTS], inner[HELP_ELEMENTS], seen[HELP_ELEMENTS];
    int64_t chain[CAI_MAX_FIELD_DEPTH], count_in = help_addresses(&base, outer), i, k;
    int32_t n = chain_of(row, chain), level, axis = base.ndim;
    for (level = 0; level < n; level++) {
        const cai_field *f = &fields[chain[level]];
        int64_t repeats = 1;
        for (i = 0; i < f->ndim; i++) {
            CHECK_INT(view->shape[axis++], f->shape[i]);
            repeats *= f->shape[i];
        }
        for (i = 0; i < count_in; i++) {
            for (k = 0; k < repeats; k++) {
                inner[i * repeats + k] = outer[i] + (uint64_t)(f->offset + k * f->dtype.itemsize);
            }
        }
        count_in *= repeats;
        memcpy(outer, inner, sizeof outer[0] * (size_t)count_in);
    }
    CHECK_INT(view->ndim, axis);
    CHECK_INT(help_addresses(view, seen), count_in);
    CHECK_BYTES(seen, outer, sizeof seen[0] * (size_t)count_in);
}

static void check_views_of(const char *descr, const char *typestr, const char *layout)
{
    cai_array *a = import_record(descr, typestr, layout);
    int64_t row;
    for (row = 0; row < a->field_count; row++) {
        cai_array view;
        help_fill(&view, sizeof view);
        CHECK_INT(cai_view_field(a, row, &view, &err), CAI_OK);
        CHECK_BYTES(&view.dtype, &fields[row].dtype, sizeof view.dtype);
        check_addresses(row, &view);
        help_check_facts(&view);
        CHECK_INT(view.flags & CAI_WRITABLE, a->flags & CAI_WRITABLE);
        CHECK(view.release == NULL && view.mask == NULL);
        CHECK_INT(view.sync, a->sync);
        CHECK_UINT(view.stream, a->stream);
        CHECK_INT(cai_array_check(&view, NULL), CAI_OK);
    }
    help_fill(&base, sizeof base);
}

static void check_views(void)
{
    const char *layouts[] = {"", "shape=()", "shape=(2,0,3)", "shape=(4,); strides=(-64,)",
                             "shape=(2,2); strides=(0,3)", "shape=(3,); strides=(0,)",
                             "shape=(3,); data=(4097,True); stream=9; version=2"};
    size_t i, k;
    for (i = 0; i < sizeof trips / sizeof trips[0]; i++) {
        for (k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
            check_views_of(trips[i][0], trips[i][1], layouts[k]);
        }
    }
    check_views_of("[('p',[('x','@f4',(2,)),('y','|u1')],(2,3)),('q','|u1')]", "|V55", "");
}

/* A view of a nested record has the record's fields no more, or as a table of its own. */
static void check_record_view(void)
{
    cai_array *a = import_record("[('p',[('x','@f4'),('y','|u1')]),('q','|u1')]", "|V6", "");
    cai_array view;
    CHECK_INT(cai_view_field(a, 0, &view, &err), CAI_OK);
    CHECK_INT(view.dtype.code, CAI_VOID);
    CHECK_INT(view.dtype.itemsize, 5);
    CHECK_INT(view.field_count, 0);
    CHECK(view.fields == NULL);
    CHECK_INT(cai_view_field(a, 1, a, &err), CAI_OK); /* in place */
    CHECK_INT(a->dtype.code, CAI_FLOAT32);
    CHECK_INT(a->strides[1], 6);
}

static void check_view_refusals(void)
{
    cai_array *a = import_record("[('p',[('x','@f4'),('y','|u1')]),('q','|u1')]", "|V6", "");
    const int64_t rows[] = {-1, 4, 5, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
    cai_array view;
    size_t i;
    help_fill(&view, sizeof view);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(cai_view_field(a, rows[i], &view, &err) != CAI_OK);
        CHECK(err.code == CAI_ERR_VIEW || err.code == CAI_ERR_ARGUMENT);
    }
    CHECK_INT(cai_import(help_dict(""), NULL, &base, NULL), CAI_OK);
    CHECK(cai_view_field(&base, 0, &view, &err) != CAI_OK);
    a = import_record("[('p','|u1',(1,1,1,1,1,1,1,1))]", "|u1",
                      "shape=(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)");
    CHECK_INT(a->ndim, 57);
    CHECK_INT(cai_view_field(a, 0, &view, &err), CAI_ERR_VIEW);
    CHECK(help_filled(&view, sizeof view));
    cai_test_note("");
}

/* Tables of others may be wrong in any way: a verdict, no crash, no endless loop. */
static void check_wrong_tables(void)
{
    const int32_t parents[] = {1, 3, 4, -2, INT32_MAX, INT32_MIN};
    cai_array *a = import_record("[('p',[('x','@f4'),('y','|u1')],(2,)),('q','|u1')]", "|V11", "");
    cai_array view;
    cai_status status;
    size_t i;
    for (i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        fields[1].parent = parents[i];
        status = cai_view_field(a, 1, &view, &err);
        CHECK(status == CAI_OK || err.code == status);
    }
    fields[1].parent = 0;
    fields[0].parent = 1; /* a cycle of two */
    status = cai_view_field(a, 0, &view, &err);
    CHECK(status == CAI_OK || err.code == status);
    fields[0].parent = -1;
    fields[0].ndim = -1;
    help_fill(&view, sizeof view);
    CHECK(cai_view_field(a, 0, &view, &err) != CAI_OK);
    fields[0].ndim = 9;
    CHECK(cai_view_field(a, 1, &view, &err) != CAI_OK);
    a->fields = NULL;
    CHECK(cai_view_field(a, 0, &view, &err) != CAI_OK);
    CHECK(help_filled(&view, sizeof view));
}

/* Offsets and sizes that no array has room for. */
static void check_wrong_numbers(void)
{
    const int64_t numbers[] = {-1, INT64_MAX, INT64_MIN, (int64_t)1 << 62, 1 << 20};
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cai_array *a = import_record("[('p','@f4',(2,)),('q','|u1')]", "|V9", "");
        cai_array view;
        cai_status status;
        fields[0].shape[0] = numbers[i];
        status = cai_view_field(a, 0, &view, &err);
        CHECK(status == CAI_OK || err.code == status);
        fields[0].shape[0] = 2;
        fields[0].offset = numbers[i];
        status = cai_view_field(a, 0, &view, &err);
        CHECK(status == CAI_OK || err.code == status);
    }
}

static void run(void)
{
    check_flat();
    check_titles();
    check_padding();
    check_sub_arrays();
    check_nested();
    check_default();
    check_refusals();
    check_depth();
    check_many();
    check_duplicates();
    check_capacity();
    check_trips();
    check_views();
    check_record_view();
    check_view_refusals();
    check_wrong_tables();
    check_wrong_numbers();
}

CAI_TEST_MAIN(run)
