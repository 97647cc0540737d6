/* vectors.h - reads vectors.tsv, whose values become tokens of cai.h. Include after cai.h.
 * SPDX-License-Identifier: MIT */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID, KIND, VERDICT, NEEDS, RULES, ENTRY, INPUT, DTYPE, SHAPE, ITEMSIZE, SIZE, NBYTES, STRIDES, EXTENT,
       C_CONTIGUOUS, F_CONTIGUOUS, READ_ONLY, BYTE_SWAPPED, ADDRESS, ORDER, STREAM, MASK_SHAPE, CELLS };

static char *cells[CELLS];     /* of the vector at hand */
static cai_token values[8192]; /* its input: each value, and behind it what is in it */
static int judged, refused, wrong;

static void read_number(const char *text, cai_token *value)
{
    errno = 0;
    value->number = *text == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
    value->kind = *text != '-' && value->number > INT64_MAX ? CAI_TOKEN_UINT : CAI_TOKEN_INT;
    if (errno) value->kind = CAI_TOKEN_BIG_INT;
}

static void read_text(char *from, cai_token *value) /* %20 is a space */
{
    unsigned byte;
    char *to = from;
    for (value->text = from; *from; *to++ = (char)byte) {
        byte = (unsigned char)*from++;
        if (byte == '%' && sscanf(from, "%2x", &byte) == 1) from += 2;
    }
    value->length = (uint32_t)(to - value->text);
}

static uint32_t items_in(const cai_token *value)
{
    if (value->kind == CAI_TOKEN_STR) return 0;
    return value->kind == CAI_TOKEN_OBJECT ? 2 * value->length : value->length;
}

/* Reads a value from *text, and what is in it. Returns the token behind. */
static cai_token *read_value(char **text, cai_token *value)
{
    static const char kinds[] = "nbifstlmd";
    static const int32_t tokens[] = {CAI_TOKEN_NONE, CAI_TOKEN_BOOL, CAI_TOKEN_INT, CAI_TOKEN_FLOAT, CAI_TOKEN_STR,
                                     CAI_TOKEN_TUPLE, CAI_TOKEN_LIST, CAI_TOKEN_OBJECT, CAI_TOKEN_OBJECT};
    char *at = *text, *end = at + strcspn(at, " ");
    cai_token *behind = value + 1;
    uint32_t items;
    *text = *end ? end + 1 : end;
    *end = '\0';
    memset(value, 0, sizeof *value);
    value->kind = tokens[strchr(kinds, *at) - kinds];
    if (*at == 'i') read_number(at + 1, value);
    else if (*at == 's') read_text(at + 1, value);
    else if (*at == 'b' || *at == 'f') value->number = atof(at + 1) != 0;
    else if (*at != 'n') value->length = (uint32_t)strtoul(at + 1, NULL, 10);
    for (items = items_in(value); items > 0; items--) behind = read_value(text, behind);
    return behind;
}

static const cai_token *skip(const cai_token *value)
{
    uint32_t items = items_in(value);
    for (value++; items > 0; items--) value = skip(value);
    return value;
}

/* The value of a key of a dictionary, or NULL. */
static const cai_token *find(const cai_token *table, const char *key)
{
    const cai_token *at = table + 1;
    uint32_t i;
    for (i = 0; i < table->length; i++, at = skip(at + 1))
        if (at->length == strlen(key) && memcmp(at->text, key, at->length) == 0) return at + 1;
    return NULL;
}

/* Reads the next vector. Returns 0 at the end. */
static int next_vector(FILE *file)
{
    static char line[65536];
    char *at = line, *text;
    int cell;
    do {
        if (!fgets(line, sizeof line, file)) return 0;
    } while (line[0] == '#' || strncmp(line, "id\t", 3) == 0);
    for (cell = 0; cell < CELLS; cell++) {
        cells[cell] = at;
        at += strcspn(at, "\t\n");
        if (*at) *at++ = '\0';
    }
    text = cells[INPUT];
    (void)read_value(&text, values);
    return 1;
}

/* Compares a fact as text. The cell "-" wants nothing. */
static void is(int cell, const char *name, const char *format, ...)
{
    char found[2000];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(found, sizeof found, format, list);
    va_end(list);
    if (strcmp(cells[cell], "-") == 0 || strcmp(cells[cell], found) == 0) return;
    printf("%s: %s is %s, not %s\n", cells[ID], name, found, cells[cell]);
    wrong++;
}

static const char *list_of(const int64_t *numbers, int32_t count)
{
    static char text[2000];
    size_t at = 1;
    int32_t i;
    strcpy(text, "[");
    for (i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%" PRId64, i ? "," : "", numbers[i]);
    strcpy(text + at, "]");
    return text;
}

/* Compares the verdict. */
static void verdict(int accepted, const char *message)
{
    judged++;
    if (accepted == (strcmp(cells[VERDICT], "accept") == 0)) return;
    if (!accepted && strcmp(cells[NEEDS], "-") != 0) {
        printf("%s: refused, it needs %s\n", cells[ID], cells[NEEDS]);
        refused++;
        return;
    }
    printf("%s: not %s: %s\n", cells[ID], cells[VERDICT], message);
    wrong++;
}
