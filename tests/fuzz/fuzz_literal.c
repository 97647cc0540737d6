/* fuzz_literal.c - libFuzzer target: any line, read by tools/cai_literal.h, judged by cai.h.
 *
 *     clang -g -O2 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_literal.c -o fuzz_literal
 *
 * Line and tokens lie in blocks of their exact sizes. What must hold is said by MUST. */

#define CAI_IMPLEMENTATION
#include "cai.h"

#include "tools/cai_literal.h"
#include "fuzz.h"

enum { MAX_ROWS = 32 }; /* rows of a descr that are given storage */

/** What one line was read into. */
typedef struct reading {
    char *line;
    size_t length;
    cai_token *tokens;
    size_t capacity;
    cai_interface levels[CAI_LITERAL_LEVELS];
    cai_literal_keys unknown;
    cai_status status;
    cai_error err;
} reading;

static void *allocate(size_t size)
{
    void *block = malloc(size ? size : 1);
    if (!block) abort();
    return block;
}

static void read_line(const uint8_t *data, size_t length, size_t capacity, reading *out)
{
    memset(out, FILL, sizeof *out);
    out->length = length;
    out->capacity = capacity;
    out->line = (char *)allocate(length);
    out->tokens = (cai_token *)allocate(capacity * sizeof(cai_token));
    if (length) memcpy(out->line, data, length);
    out->status = cai_literal_read(out->line, length, out->tokens, capacity, out->levels,
                                   &out->unknown, &out->err);
    if (out->status != CAI_OK) check_error(out->status, &out->err);
}

static void free_reading(reading *r)
{
    free(r->line);
    free(r->tokens);
}

/* ------------------------------------------------------------- the reader's promise */

static void check_text(const reading *r, const cai_token *token)
{
    const char *end = r->line + r->length;
    if (token->length == 0) return;
    MUST(token->text >= r->line && token->text <= end);
    MUST((size_t)(end - token->text) >= token->length);
}

/** Walks one run; it must end within the tokens. */
static void check_run(const reading *r, const cai_token *run)
{
    uint64_t left = 1;
    if (!run) return;
    for (; left > 0; left--, run++) {
        MUST(run >= r->tokens && run < r->tokens + r->capacity);
        MUST(run->kind >= CAI_TOKEN_NONE && run->kind <= CAI_TOKEN_OTHER);
        if (run->kind == CAI_TOKEN_STR || run->kind == CAI_TOKEN_BYTES) check_text(r, run);
        else MUST(run->text == NULL);
        if (run->kind == CAI_TOKEN_TUPLE || run->kind == CAI_TOKEN_LIST) left += run->length;
        if (run->kind == CAI_TOKEN_BOOL) MUST(run->number <= 1);
    }
}

/** The keys that are no entries lie in the line. */
static void check_unknown(const reading *r)
{
    int32_t i;
    MUST(r->unknown.count >= 0 && r->unknown.count <= CAI_LITERAL_UNKNOWN);
    for (i = 0; i < r->unknown.count; i++) {
        cai_token key;
        key.text = r->unknown.text[i];
        key.length = (uint32_t)r->unknown.length[i];
        check_text(r, &key);
    }
}

static void check_interface(const reading *r, const cai_interface *in)
{
    check_run(r, in->shape);
    check_run(r, in->typestr);
    check_run(r, in->data);
    check_run(r, in->version);
    check_run(r, in->strides);
    check_run(r, in->stream);
    check_run(r, in->descr);
    check_run(r, in->mask);
    if (!in->mask_interface) return;
    MUST(in->mask_interface > in && in->mask_interface < r->levels + CAI_LITERAL_LEVELS);
    check_interface(r, in->mask_interface);
}

/* -------------------------------------------------------------------- the verdict */

static cai_status judge(const cai_interface *in, uint32_t flags)
{
    cai_array array, mask;
    cai_field fields[MAX_ROWS];
    cai_import_options options;
    cai_error err;
    char text[256];
    cai_status status;
    memset(&options, 0, sizeof options);
    options.flags = flags;
    options.mask = &mask;
    options.fields = fields;
    options.field_capacity = MAX_ROWS;
    memset(&err, FILL, sizeof err);
    status = cai_import(in, &options, &array, &err);
    check_error(status, &err);
    if (status != CAI_OK) return status;
    MUST(cai_array_check(&array, NULL) == CAI_OK && array.lo <= 0 && array.hi >= 0);
    MUST(cai_array_text(&array, text, sizeof text) == (int32_t)strlen(text));
    return CAI_OK;
}

/** Fewer tokens than needed are an error, never a write past their end; more change nothing. */
static void check_capacity(const uint8_t *data, size_t size, size_t capacity, const reading *whole)
{
    reading r;
    read_line(data, size, capacity, &r);
    MUST(r.status == whole->status || capacity < whole->capacity);
    MUST(r.status != CAI_OK || whole->status == CAI_OK);
    if (r.status == CAI_OK) check_interface(&r, &r.levels[0]);
    free_reading(&r);
}

/** The lines of the input, each in a block of its own: what goes on is indented or closes a bracket. */
static void check_lines(const uint8_t *data, size_t size)
{
    cai_literal_lines lines;
    size_t start = 0, end;
    memset(&lines, 0, sizeof lines);
    for (; start <= size; start = end + 1) {
        char *line;
        for (end = start; end < size && data[end] != '\n'; end++) continue;
        line = (char *)allocate(end - start);
        if (end > start) memcpy(line, data + start, end - start);
        if (cai_literal_goes_on(&lines, line, end - start)) {
            MUST(lines.started && lines.open > 0 && line[0] != '{' && line[0] != '#');
        } else {
            memset(&lines, 0, sizeof lines);
        }
        cai_literal_count(&lines, line, end - start);
        free(line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reading r;
    cai_status strict, lenient;
    read_line(data, size, cai_literal_capacity(size), &r);
    MUST(r.status == CAI_OK || r.status == CAI_ERR_INTERFACE);
    check_unknown(&r);
    check_lines(data, size);
    check_capacity(data, size, size % (r.capacity + 1), &r);
    check_capacity(data, size, 4 * size + 1024, &r);
    if (r.status == CAI_OK) {
        check_interface(&r, &r.levels[0]);
        strict = judge(&r.levels[0], 0);
        lenient = judge(&r.levels[0], CAI_LENIENT);
        MUST(strict != CAI_OK || lenient == CAI_OK);
    }
    free_reading(&r);
    return 0;
}
