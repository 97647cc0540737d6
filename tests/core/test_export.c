/* test_export.c - cai_export: round trips, refusals, storage.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

enum { TOKENS = 600, TEXT = 2000, ROWS = 32 };

static cai_token tokens[TOKENS];
static char text[TEXT];
static cai_interface exported_mask;
static cai_array a, mask, b, mask_b;
static cai_field fields_a[ROWS], fields_b[ROWS];
static cai_error err;

static cai_export_storage whole_storage(void)
{
    cai_export_storage storage;
    storage.tokens = tokens;
    storage.token_capacity = TOKENS;
    storage.text = text;
    storage.text_capacity = TEXT;
    storage.mask = &exported_mask;
    help_fill(tokens, sizeof tokens);
    help_fill(text, sizeof text);
    help_fill(&exported_mask, sizeof exported_mask);
    return storage;
}

static void import_into(const cai_interface *in, cai_array *out, cai_array *out_mask,
                        cai_field *rows)
{
    cai_import_options options;
    options.flags = 0;
    options.mask = out_mask;
    options.fields = rows;
    options.field_capacity = ROWS;
    help_fill(out, sizeof *out);
    if (!CHECK_INT(cai_import(in, &options, out, &err), CAI_OK)) printf("%s\n", err.message);
}

static void import_a(const char *dictionary)
{
    help_reset();
    cai_test_note(dictionary);
    import_into(help_dict(dictionary), &a, &mask, fields_a);
}

/* ------------------------------------------------------------------ round trips */

/* Same array but for `version` and what it implies. CAI_HAD_STRIDES may differ: an array in C
 * order is written without strides. */
static void check_same(const cai_array *x, const cai_array *y)
{
    const uint32_t judged = ~(uint32_t)(CAI_HAD_STRIDES | CAI_FUTURE_VERSION);
    int64_t row;
    CHECK_UINT(x->flags & judged, y->flags & judged);
    CHECK_UINT(x->data, y->data);
    CHECK_BYTES(&x->dtype, &y->dtype, sizeof x->dtype);
    if (x->size > 0) CHECK_INT(x->sync, y->sync);
    if (x->size > 0) CHECK_UINT(x->stream, y->stream);
    CHECK_INT(x->ndim, y->ndim);
    CHECK_INT(x->size, y->size);
    CHECK_INT(x->nbytes, y->nbytes);
    CHECK_INT(x->lo, y->lo);
    CHECK_INT(x->hi, y->hi);
    CHECK_INT(x->field_count, y->field_count);
    CHECK_INT(x->mask != NULL, y->mask != NULL);
    CHECK_BYTES(x->shape, y->shape, (size_t)x->ndim * 8);
    if (!(x->flags & CAI_C_CONTIGUOUS)) {
        CHECK_BYTES(x->strides, y->strides, (size_t)x->ndim * 8);
    }
    for (row = 0; row < x->field_count; row++) {
        CHECK_INT(x->fields[row].offset, y->fields[row].offset);
        CHECK_BYTES(x->fields[row].name, y->fields[row].name, x->fields[row].name_length);
        CHECK_BYTES(&x->fields[row].dtype, &y->fields[row].dtype, sizeof(cai_dtype));
    }
}

/* The entries that are written, as the manual says. */
static void check_entries(const cai_interface *out, int32_t version)
{
    int contiguous = (a.flags & CAI_C_CONTIGUOUS) != 0;
    CHECK(out->shape && out->typestr && out->data && out->version);
    CHECK_INT(out->version->kind, CAI_TOKEN_INT);
    CHECK_UINT(out->version->number, version);
    CHECK_INT(out->shape->kind, CAI_TOKEN_TUPLE);
    CHECK_INT(out->data->kind, CAI_TOKEN_TUPLE);
    CHECK_INT(out->data[2].kind, CAI_TOKEN_BOOL);
    CHECK_INT(out->typestr->kind, CAI_TOKEN_STR);
    CHECK_INT(out->strides == NULL || out->strides->kind == CAI_TOKEN_NONE, contiguous);
    CHECK_INT(out->stream != NULL && out->stream->kind != CAI_TOKEN_NONE,
              a.sync == CAI_SYNC_STREAM && a.size > 0);
    CHECK_INT(out->descr != NULL && out->descr->kind == CAI_TOKEN_LIST, a.field_count > 0);
    CHECK_INT(out->mask_interface != NULL, a.mask != NULL);
    if (a.mask) CHECK(out->mask != NULL && out->mask_interface == &exported_mask);
    CHECK(out->data[1].number == a.data);
    if (a.size == 0) CHECK_UINT(out->data[1].number, 0);
}

static void check_version(int32_t version)
{
    cai_interface out;
    cai_export_storage storage = whole_storage();
    help_fill(&err, sizeof err);
    if (!CHECK_INT(cai_export(&a, version, &storage, &out, &err), CAI_OK)) return;
    CHECK(help_filled(&err, sizeof err));
    check_entries(&out, version);
    import_into(&out, &b, &mask_b, fields_b);
    CHECK_INT(b.version, version);
    check_same(&b, &a);
    if (a.mask) check_same(b.mask, a.mask);
}

static void check_refused(int32_t version, int32_t entry)
{
    cai_interface out;
    cai_export_storage storage = whole_storage();
    help_fill(&out, sizeof out);
    CHECK_INT(cai_export(&a, version, &storage, &out, &err), CAI_ERR_EXPORT);
    CHECK_INT(err.code, CAI_ERR_EXPORT);
    CHECK_INT(err.entry, entry);
    CHECK_INT(cai_export(&a, version, &storage, &out, NULL), CAI_ERR_EXPORT);
    CHECK(help_filled(&out, sizeof out));
}

#define ONES_8 "1,1,1,1,1,1,1,1,"

static const char *const layouts[] = {
    "", "shape=()", "shape=(5,)", "strides=(4,8)", "strides=(-12,4)", "strides=(0,4)",
    "data=(4096,True)", "typestr='`f8'; strides=(24,8)", "typestr='|b1'", "typestr='|S7'",
    "typestr='@U3'", "typestr='@m8[25s]'", "typestr='@M8'", "typestr='@c4'", "typestr='|t3'",
    "typestr='`c16'", "typestr='|V9'; data=(4097,False)", "shape=(1,1,3); strides=(9,-9,4)",
    "data=(18446744073709551000,False)", "shape=(2,); strides=(9223372036854775803,)",
    "strides=(12,4)", "shape=(3,); typestr='@f4'; strides=(5,)",
    ("shape=(" ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 "1,1,1,1,1,1,1,2)"),
    "typestr='|V8'; descr=[('a','@i4'),('b','`i4')]",
    "typestr='|V9'; descr=[(('T','a'),'@i2',(2,)),('','|V1'),('r',[('x','|u1'),('','|V3')])]",
};

static void check_layouts(void)
{
    char dictionary[900];
    size_t i;
    for (i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        int32_t version;
        sprintf(dictionary, "version=3; stream=7; %s", layouts[i]);
        import_a(dictionary);
        check_version(3);
        for (version = 0; version < 3; version++) check_refused(version, CAI_ENTRY_STREAM);
        sprintf(dictionary, "version=3; %s", layouts[i]);
        import_a(dictionary);
        check_version(3);
        sprintf(dictionary, "version=2; %s", layouts[i]);
        import_a(dictionary);
        for (version = 0; version < 3; version++) check_version(version);
        check_refused(3, CAI_ENTRY_STREAM);
    }
}

/* An empty array has nothing to wait for: every version can carry it. */
static void check_empty(void)
{
    const char *texts[] = {"shape=(0,3)", "shape=(2,0,3); strides=(1,2,3)",
                           "shape=(0,); stream=7", "shape=(2,0); version=2",
                           "shape=(0,); data=(0,True); stream=7"};
    int32_t version;
    size_t i;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        import_a(texts[i]);
        for (version = 0; version <= 3; version++) check_version(version);
    }
    import_a("shape=(0,)");
    a.sync = CAI_SYNC_EVENT;
    for (version = 0; version <= 3; version++) check_version(version);
}

static void check_masks(void)
{
    int32_t version;
    import_a("mask={shape=(3,); typestr='|b1'; data=(8192,True); version=3}");
    check_refused(0, CAI_ENTRY_MASK);
    check_version(3);
    import_a("stream=5; mask={shape=(2,1); typestr='|i1'; strides=(9,1); data=(8192,False);"
             "version=3; stream=9}");
    check_version(3);
    CHECK_UINT(mask_b.stream, 9);
    for (version = 0; version < 3; version++) check_refused(version, CAI_ENTRY_STREAM);
    import_a("version=1; mask={shape=(2,3); typestr='|t1'; data=(8192,True); version=1}");
    check_version(1);
    check_version(2);
    check_refused(0, CAI_ENTRY_MASK);
    import_a("version=2; mask={shape=(); typestr='|b1'; data=(8192,True); version=3; stream=4}");
    check_refused(2, CAI_ENTRY_MASK);
    import_a("version=3; mask={shape=(); typestr='|b1'; data=(8192,True); version=2}");
    check_refused(3, CAI_ENTRY_MASK);
}

/* ------------------------------------------------------------------ what no version says */

static void check_events(void)
{
    int32_t version;
    for (version = 0; version <= 3; version++) {
        import_a("");
        a.sync = CAI_SYNC_EVENT;
        a.event = 77;
        check_refused(version, CAI_ENTRY_STREAM);
        a.stream = 7;
        check_refused(version, CAI_ENTRY_STREAM);
    }
    import_a("");
    a.device = 3; /* no entry of any version: not refused, not written */
    a.memory = CAI_MEMORY_MANAGED;
    check_version(3);
}

static void check_versions(void)
{
    const int32_t versions[] = {-1, 4, 5, INT32_MAX, INT32_MIN};
    cai_export_storage storage = whole_storage();
    cai_interface out;
    size_t i;
    import_a("");
    help_fill(&out, sizeof out);
    for (i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        CHECK_INT(cai_export(&a, versions[i], &storage, &out, &err), CAI_ERR_ARGUMENT);
    }
    a.sync = CAI_SYNC_STREAM; /* but 0 is no stream */
    a.stream = 0;
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_ERR_EXPORT);
    a.sync = 7; /* of a later version: it is not "no pending work" */
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_ERR_EXPORT);
    CHECK_STR(err.message, "stream: work may be pending, but version 3 without a stream means none");
    a.sync = -1;
    CHECK_INT(cai_export(&a, 3, &storage, &out, NULL), CAI_ERR_EXPORT);
    import_a("mask={shape=(3,); typestr='|b1'; data=(8192,True); version=3}");
    mask.abi = 0;
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_ERR_ABI);
    a.struct_size = 8;
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_ERR_ABI);
    CHECK(help_filled(&out, sizeof out));
    import_a("version=9; stream=5"); /* a future version is written as one we know */
    check_version(3);
}

/* Narrow formats have no typestr: they are written as bytes. */
static void check_narrow(void)
{
    const int64_t shape[1] = {4};
    cai_export_storage storage = whole_storage();
    cai_interface out;
    CHECK_INT(cai_array_init(&a, CAI_BFLOAT16, 1, shape, NULL, text, NULL), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_OK);
    CHECK_INT(out.typestr->length, 3);
    CHECK_BYTES(out.typestr->text, help_order("@V2"), 3);
    CHECK_INT(cai_array_init(&a, CAI_FLOAT8_E5M2, 1, shape, NULL, text, NULL), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    storage = whole_storage();
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_OK);
    CHECK_BYTES(out.typestr->text, "|V1", 3);
}

/* ------------------------------------------------------------------ storage */

/* Every smaller capacity fails, writes nothing outside of it and leaves `out` alone. */
static void check_capacity(int64_t token_capacity, int64_t text_capacity, int expected)
{
    cai_interface out;
    cai_export_storage storage = whole_storage();
    cai_status status;
    storage.token_capacity = token_capacity;
    storage.text_capacity = text_capacity;
    help_fill(&out, sizeof out);
    status = cai_export(&a, 3, &storage, &out, &err);
    CHECK_INT(status, expected ? CAI_OK : CAI_ERR_CAPACITY);
    CHECK(help_filled(tokens + token_capacity,
                      sizeof tokens[0] * (size_t)(TOKENS - token_capacity)));
    CHECK(help_filled(text + text_capacity, (size_t)(TEXT - text_capacity)));
    if (status != CAI_OK) {
        CHECK_INT(err.code, CAI_ERR_CAPACITY);
        CHECK(help_filled(&out, sizeof out));
        CHECK(help_filled(&exported_mask, sizeof exported_mask) || a.mask != NULL);
    }
}

static int works_with(int64_t token_capacity, int64_t text_capacity)
{
    cai_interface out;
    cai_export_storage storage = whole_storage();
    storage.token_capacity = token_capacity;
    storage.text_capacity = text_capacity;
    return cai_export(&a, 3, &storage, &out, NULL) == CAI_OK;
}

/* promised: what the manual says suffices. */
static void check_storage(const char *dictionary, int64_t promised_tokens, int64_t promised_text)
{
    int64_t need_tokens = 0, need_text = 0, i;
    import_a(dictionary);
    while (need_tokens < promised_tokens && !works_with(need_tokens, TEXT)) need_tokens++;
    while (need_text < promised_text && !works_with(TOKENS, need_text)) need_text++;
    CHECK(works_with(promised_tokens, promised_text));
    CHECK(works_with(need_tokens, need_text));
    CHECK(need_text > 0 && need_tokens > 0);
    for (i = 0; i < need_tokens; i++) check_capacity(i, need_text, 0);
    for (i = 0; i < need_text; i++) check_capacity(need_tokens, i, 0);
    check_capacity(need_tokens, need_text, 1);
    check_capacity(promised_tokens, promised_text, 1);
    check_capacity(0, 0, 0);
}

static void check_storages(void)
{
    const int64_t T = CAI_TYPESTR_SIZE;
    check_storage("stream=7", 2 * 2 + 8, T);
    check_storage("stream=7; strides=(4,8)", 2 * 2 + 8, T);
    check_storage("stream=7; shape=()", 8, T);
    check_storage("stream=7; typestr='@m8[2147483647as]'; strides=(99,9)", 12, T);
    check_storage("stream=7; typestr='@U536870911'; shape=(2,0)", 12, T);
    check_storage("stream=7; shape=(1,1,1,1,1,2,2,2); strides=(1,2,3,4,5,60,60,60)", 24, T);
    check_storage("stream=5; strides=(4,8); mask={shape=(2,1); typestr='|i1'; strides=(9,1);"
                  "data=(8192,False); version=3; stream=9}", 2 * (2 * 2 + 8) + 1, 2 * T);
    check_storage("typestr='|V8'; strides=(80,8); descr=[('a','@i4'),('b','`i4')]", 12 + 2 * 16,
                  3 * T);
    check_storage("typestr='|V8'; strides=(80,8);"
                  "descr=[(('T','a'),'|u1',(1,1,1,1,1,1,1,1)),(('U','b'),'|u1',(1,1,1,1,1,1,1,7))]",
                  12 + 2 * 16, 3 * T);
    check_storage("typestr='|V9'; stream=3; strides=(90,9);"
                  "descr=[(('T','a'),'@i2',(2,)),('','|V1'),(('q','r'),[('x','|u1'),('','|V3')],"
                  "(1,1,1,1,1,1,1,1))]", 12 + 5 * 16, 6 * T);
}

static void check_mask_storage(void)
{
    cai_interface out;
    cai_export_storage storage = whole_storage();
    import_a("mask={shape=(3,); typestr='|b1'; data=(8192,True); version=3}");
    storage.mask = NULL;
    help_fill(&out, sizeof out);
    CHECK(cai_export(&a, 3, &storage, &out, &err) != CAI_OK);
    CHECK(err.code == CAI_ERR_CAPACITY || err.code == CAI_ERR_ARGUMENT);
    CHECK(help_filled(&out, sizeof out));
    import_a("");
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_OK);
    CHECK(out.mask_interface == NULL);
    storage.tokens = NULL;
    storage.token_capacity = 0;
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_ERR_CAPACITY);
    storage = whole_storage();
    storage.text = NULL;
    storage.text_capacity = 0;
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_ERR_CAPACITY);
    storage = whole_storage();
    storage.token_capacity = -1;
    CHECK(cai_export(&a, 3, &storage, &out, &err) != CAI_OK);
    storage.token_capacity = INT64_MIN;
    CHECK(cai_export(&a, 3, &storage, &out, &err) != CAI_OK);
}

/* A field table that came from elsewhere may leave gaps, which padding fills, and may be one that
 * no descr can say. */
static void check_field_tables(void)
{
    cai_interface out;
    cai_export_storage storage = whole_storage();
    cai_array c;
    import_a("typestr='|V16'; descr=[('a','@i4'),('','|V4'),('b','@f8')]");
    fields_a[1] = fields_a[2]; /* no padding row now */
    a.field_count = 2;
    CHECK_INT(cai_export(&a, 3, &storage, &out, &err), CAI_OK);
    import_into(&out, &b, &mask_b, fields_b);
    CHECK_INT(b.field_count, 3);
    CHECK_INT(fields_b[1].nbytes, 4);
    CHECK_INT(fields_b[2].offset, 8);
    c = a;
    fields_a[1].offset = 2; /* overlaps what is before it */
    storage = whole_storage();
    help_fill(&out, sizeof out);
    CHECK_INT(cai_export(&c, 3, &storage, &out, &err), CAI_ERR_EXPORT);
    CHECK_INT(err.entry, CAI_ENTRY_DESCR);
    CHECK(help_filled(&out, sizeof out));
    fields_a[1].offset = 4; /* leaves 4 bytes at the end */
    storage = whole_storage();
    CHECK_INT(cai_export(&c, 3, &storage, &out, &err), CAI_OK);
    import_into(&out, &b, &mask_b, fields_b);
    CHECK_INT(b.field_count, 3);
    CHECK_INT(fields_b[2].offset, 12);
    CHECK_INT(fields_b[2].nbytes, 4);
}

/* Padding that the table does not have takes storage too. */
static void check_gap_storage(void)
{
    import_a("typestr='|V16'; stream=7; descr=[('a','@i4'),('','|V4'),('b','@i4'),('','|V4')]");
    fields_a[1] = fields_a[2];
    a.field_count = 2;
    {
        int64_t need_tokens = 0, need_text = 0, i;
        while (!works_with(need_tokens, TEXT) && need_tokens < TOKENS) need_tokens++;
        while (!works_with(TOKENS, need_text) && need_text < TEXT) need_text++;
        CHECK(need_tokens <= 2 * 2 + 8 + 4 * 16);
        CHECK(need_text <= 5 * CAI_TYPESTR_SIZE);
        for (i = 0; i < need_tokens; i++) check_capacity(i, need_text, 0);
        for (i = 0; i < need_text; i++) check_capacity(need_tokens, i, 0);
        check_capacity(need_tokens, need_text, 1);
    }
}

static void check_table(int good)
{
    cai_interface out;
    cai_export_storage storage = whole_storage();
    cai_status status;
    help_fill(&out, sizeof out);
    status = cai_export(&a, 3, &storage, &out, &err);
    CHECK_INT(status == CAI_OK, good);
    if (good) return;
    CHECK(help_filled(&out, sizeof out));
    CHECK_INT(err.code, status);
}

/* Tables of others may be wrong in any way: an error, no crash, no endless loop. */
static void check_wrong_tables(void)
{
    int i;
    import_a("typestr='|V11'; descr=[('p',[('x','@f4'),('y','|u1')],(2,)),('q','|u1')]");
    fields_a[3].offset = 12; /* beyond the record */
    check_table(0);
    fields_a[3].offset = -1;
    check_table(0);
    fields_a[3].offset = 10;
    check_table(1);
    a.fields = NULL; /* a table that was not kept */
    check_table(1);
    a.fields = fields_a;
    a.field_count = 0;
    check_table(1);
    import_a("typestr='|V4'; descr=[('a',[('a',[('a',[('a','@i4')])])])]");
    for (i = 1; i < ROWS; i++) fields_a[i] = fields_a[1];
    for (i = 0; i < ROWS; i++) fields_a[i].parent = i - 1;
    a.field_count = ROWS; /* deeper than a descr may be, or a leaf that is a record */
    {
        cai_interface out;
        cai_export_storage storage = whole_storage();
        cai_status status = cai_export(&a, 3, &storage, &out, &err);
        CHECK(status == CAI_OK || status == CAI_ERR_EXPORT || status == CAI_ERR_CAPACITY);
    }
}

/* Views are exported like any array. */
static void check_views(void)
{
    cai_array view;
    import_a("stream=7; shape=(4,6)");
    CHECK_INT(cai_view_slice(&a, 1, 5, 6, -1, &view, NULL), CAI_OK);
    a = view;
    check_version(3);
    CHECK_INT(cai_view_index(&a, 0, 2, &view, NULL), CAI_OK);
    a = view;
    check_version(3);
}

static void run(void)
{
    check_layouts();
    check_empty();
    check_masks();
    check_events();
    check_versions();
    check_narrow();
    check_storages();
    check_mask_storage();
    check_field_tables();
    check_gap_storage();
    check_wrong_tables();
    check_views();
    cai_test_note("");
}

CAI_TEST_MAIN(run)
