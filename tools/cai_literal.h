/* cai_literal.h - reads a dictionary as Python prints it, or JSON, into tokens for cai_import
 * SPDX-License-Identifier: MIT
 * Include after cai.h. Static functions over memory of the caller: no allocation, no recursion.
 *
 *     cai_interface in[CAI_LITERAL_LEVELS];
 *     cai_token *tokens = malloc(cai_literal_capacity(length) * sizeof *tokens);
 *     CAI_TRY(cai_literal_read(line, length, tokens, cai_literal_capacity(length), in, NULL, err));
 *     CAI_TRY(cai_import(&in[0], &options, &array, err));
 *
 * It tags and copies, cai.h judges. Unknown keys are read over; of equal keys the last one counts,
 * as in Python. What repr prints and Python cannot read back (<Stream at 0x7f00>, array([1, 2]))
 * is skipped up to its closing bracket and tagged as an object; so is any bare word.
 *
 * A text form has no objects that export the interface, so the dict of a `mask` stands for one.
 *
 * JSON: a dictionary whose first key stands in double quotes, and in which nothing is written that
 * only Python has: no single quote, parenthesis, <, None, True or False. JSON has no tuples. Its lists are
 * read as tuples, apart from those that a descr wants as lists. null, true and false are words of JSON.
 *
 * A dictionary may take several lines, as pprint and json.dumps print it. cai_literal_goes_on tells a
 * program that reads a file whether the next line belongs to the dictionary. */

#ifndef CAI_LITERAL_H_INCLUDED
#define CAI_LITERAL_H_INCLUDED

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    CAI_LITERAL_LEVELS = 3, /* an array, its mask, and the mask of a mask, for cai.h to refuse */
    CAI_LITERAL_DEPTH = 200, /* nested brackets, as in CPython's own parser */
    CAI_LITERAL_UNKNOWN = 16 /* unknown keys that are kept */
};

/* Keys that are no entry of the interface, those of a mask included. */
typedef struct cai_literal_keys {
    int32_t count; /* at most CAI_LITERAL_UNKNOWN */
    const char *text[CAI_LITERAL_UNKNOWN];
    size_t length[CAI_LITERAL_UNKNOWN];
} cai_literal_keys;

/* What a list of JSON is. */
enum { CAI_LITERAL_PLAIN = 0, CAI_LITERAL_DESCR, CAI_LITERAL_FIELD };

/* One open bracket. */
typedef struct cai_literal_frame {
    int32_t kind;              /* CAI_TOKEN_TUPLE, _LIST, _DICT; a set is CAI_TOKEN_OBJECT */
    int32_t level;             /* dict: the interface that it fills, or -1 */
    int32_t entry;             /* dict: what the value at hand is for, CAI_ENTRY_... */
    int32_t in_value;          /* dict: past the colon of a key */
    int32_t comma;             /* the last thing read was a comma */
    int32_t role;              /* CAI_LITERAL_PLAIN, ... */
    int32_t named;             /* in the parentheses of a name: torch.Size([...]) */
    uint32_t items;
    size_t token;              /* of the bracket itself */
    size_t start;              /* first token of the item at hand */
    size_t column;             /* where the bracket was opened */
    const cai_interface *mask; /* what the dict at hand fills, if it is a mask */
} cai_literal_frame;

typedef struct cai_literal_reader {
    char *line;
    size_t length;
    size_t at;
    cai_token *tokens;
    size_t capacity;
    size_t count;
    cai_interface *levels;
    int32_t depth;
    int32_t json;
    cai_literal_keys *unknown; /* or NULL */
    cai_error *err;
    cai_literal_frame frames[CAI_LITERAL_DEPTH];
} cai_literal_reader;

/** Tokens that any line of `length` bytes fits into: each but the last has a separator or a
 *  bracket of its own behind it, apart from those of brackets that are still open. */
static size_t cai_literal_capacity(size_t length)
{
    return length / 2 + CAI_LITERAL_DEPTH + 8;
}

/* ------------------------------------------------------------------------- characters */

/* The character `ahead` bytes on, or -1 past the end; a NUL is a character like others. */
static int cai_literal_peek(const cai_literal_reader *r, size_t ahead)
{
    return ahead < r->length - r->at ? (unsigned char)r->line[r->at + ahead] : -1;
}

static int cai_literal_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int cai_literal_is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static int cai_literal_is_quote(int c)
{
    return c == '\'' || c == '"';
}

static void cai_literal_skip_space(cai_literal_reader *r)
{
    int c = cai_literal_peek(r, 0);
    while (c == ' ' || c == '\t' || c == '\f' || c == '\r' || c == '\n') {
        r->at++;
        c = cai_literal_peek(r, 0);
    }
}

/* The bracket that closes c, or 0. */
static char cai_literal_closer(int c)
{
    if (c == '(') return ')';
    if (c == '[') return ']';
    if (c == '{') return '}';
    if (c == '<') return '>';
    return 0;
}

static int cai_literal_hex(int c)
{
    if (cai_literal_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* --------------------------------------------------------------------- errors, tokens */

static cai_status cai_literal_error(cai_error *err, int32_t line, int32_t column, const char *message)
{
    if (err == NULL) return CAI_ERR_INTERFACE;
    err->code = CAI_ERR_INTERFACE;
    err->native = err->rule = 0;
    err->entry = CAI_ENTRY_NONE;
    err->index = column;
    if (column < 0) {
        (void)snprintf(err->message, sizeof err->message, "%s", message);
    } else if (line > 0) {
        (void)snprintf(err->message, sizeof err->message, "line %d, column %d: %s", (int)line,
                       (int)column, message);
    } else {
        (void)snprintf(err->message, sizeof err->message, "column %d: %s", (int)column, message);
    }
    return CAI_ERR_INTERFACE;
}

/* The first byte of a line is column 1. Lines are told where there are several, from 1. */
static cai_status cai_literal_fail(const cai_literal_reader *r, size_t at, const char *message)
{
    size_t start = 0, i;
    int32_t line = 1;
    for (i = 0; i < at && i < r->length; i++) {
        if (r->line[i] != '\n') continue;
        start = i + 1;
        line++;
    }
    if (r->length == 0 || memchr(r->line, '\n', r->length) == NULL) line = 0;
    return cai_literal_error(r->err, line, (int32_t)(at - start) + 1, message);
}

static cai_status cai_literal_never_closed(const cai_literal_reader *r, size_t at)
{
    char message[] = "'(' is never closed";
    message[1] = r->line[at];
    return cai_literal_fail(r, at, message);
}

static cai_status cai_literal_emit(cai_literal_reader *r, int32_t kind, uint64_t number)
{
    cai_token *token;
    if (r->count == r->capacity) return cai_literal_fail(r, r->at, "no room for more values");
    token = &r->tokens[r->count++];
    token->kind = kind;
    token->length = 0;
    token->number = number;
    token->text = NULL;
    return CAI_OK;
}

/* ---------------------------------------------------------------------------- numbers */

/* Reads digits into *value; what does not fit in 64 bits sets *too_big. Returns their number. */
static size_t cai_literal_digits(cai_literal_reader *r, int base, uint64_t *value, int *too_big)
{
    size_t start = r->at;
    uint64_t total = 0;
    for (;;) {
        int digit = cai_literal_hex(cai_literal_peek(r, 0));
        if (digit < 0 || digit >= base) break;
        if (total > (UINT64_MAX - (uint64_t)digit) / (uint64_t)base) {
            *too_big = 1;
        } else {
            total = total * (uint64_t)base + (uint64_t)digit;
        }
        r->at++;
    }
    *value = total;
    return r->at - start;
}

static cai_status cai_literal_emit_int(cai_literal_reader *r, int negative, uint64_t value,
                                       int too_big)
{
    const uint64_t most = (uint64_t)INT64_MAX + (negative ? 1u : 0u);
    if (too_big || (negative && value > most)) return cai_literal_emit(r, CAI_TOKEN_BIG_INT, 1);
    if (value > most) return cai_literal_emit(r, CAI_TOKEN_UINT, value);
    return cai_literal_emit(r, CAI_TOKEN_INT, negative ? 0 - value : value);
}

/* Fraction and exponent of a float. Whether it is zero is all that is told of its value. */
static cai_status cai_literal_float_rest(cai_literal_reader *r, int *nonzero)
{
    uint64_t value = 0;
    int too_big = 0;
    if (cai_literal_peek(r, 0) == '.') {
        r->at++;
        (void)cai_literal_digits(r, 10, &value, &too_big);
        *nonzero |= value != 0 || too_big;
    }
    if (cai_literal_peek(r, 0) == 'e' || cai_literal_peek(r, 0) == 'E') {
        r->at++;
        if (cai_literal_peek(r, 0) == '-' || cai_literal_peek(r, 0) == '+') r->at++;
        if (cai_literal_digits(r, 10, &value, &too_big) == 0) {
            return cai_literal_fail(r, r->at, "expected the digits of an exponent");
        }
    }
    return CAI_OK;
}

/* The rest of 1+2j or 2j, whose first number was read. */
static cai_status cai_literal_complex_rest(cai_literal_reader *r)
{
    int last = 0;
    for (;;) {
        int c = cai_literal_peek(r, 0);
        if (!cai_literal_is_digit(c) && !cai_literal_is_word(c) && c != '.' && c != '+' &&
            c != '-') {
            break;
        }
        last = c;
        r->at++;
    }
    if (last != 'j') return cai_literal_fail(r, r->at, "expected a complex number to end in 'j'");
    return cai_literal_emit(r, CAI_TOKEN_OBJECT, 1);
}

static cai_status cai_literal_number(cai_literal_reader *r, int negative)
{
    const size_t start = r->at;
    uint64_t value = 0;
    int too_big = 0, is_float = 0, c;
    size_t digits;
    if (cai_literal_peek(r, 0) == '0' && cai_literal_peek(r, 1) == 'x') {
        r->at += 2;
        digits = cai_literal_digits(r, 16, &value, &too_big);
        if (digits == 0) return cai_literal_fail(r, r->at, "expected a hexadecimal digit");
    } else {
        digits = cai_literal_digits(r, 10, &value, &too_big);
        c = cai_literal_peek(r, 0);
        is_float = c == '.' || c == 'e' || c == 'E';
        if (!is_float && digits > 1 && r->line[start] == '0') {
            return cai_literal_fail(r, start, "an integer must not have leading zeros");
        }
    }
    if (is_float) {
        int nonzero = value != 0 || too_big;
        CAI_TRY(cai_literal_float_rest(r, &nonzero));
        value = nonzero ? 1 : 0;
    }
    c = cai_literal_peek(r, 0);
    if (c == 'j' || c == '+' || c == '-') return cai_literal_complex_rest(r);
    if (cai_literal_is_word(c) || cai_literal_is_digit(c) || c == '.') {
        return cai_literal_fail(r, r->at, "unexpected character in a number");
    }
    if (is_float) return cai_literal_emit(r, CAI_TOKEN_FLOAT, value);
    return cai_literal_emit_int(r, negative, value, too_big);
}

/* ---------------------------------------------------------------------------- strings */

/* Writes a code point as UTF-8; lone surrogates as three bytes, as Python's surrogatepass. */
static size_t cai_literal_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* The number of an escape of exactly `digits` hexadecimal digits, past the letter. */
static cai_status cai_literal_hex_escape(cai_literal_reader *r, int digits, uint32_t *code)
{
    uint32_t total = 0;
    int i;
    for (i = 0; i < digits; i++) {
        int digit = cai_literal_hex(cai_literal_peek(r, 0));
        if (digit < 0) return cai_literal_fail(r, r->at, "expected a hexadecimal digit");
        total = total << 4 | (uint32_t)digit;
        r->at++;
    }
    if (total > 0x10ffff) return cai_literal_fail(r, r->at, "no such Unicode character");
    *code = total;
    return CAI_OK;
}

/* The character that a backslash and a single character stand for, or -1. */
static int cai_literal_simple_escape(int c)
{
    static const char names[] = "\\'\"abfnrtv";
    static const char values[] = "\\'\"\a\b\f\n\r\t\v";
    const char *found = c > 0 ? strchr(names, c) : NULL;
    return found == NULL ? -1 : values[found - names];
}

/* The second half of a character that JSON writes as two escapes, or nothing. */
static cai_status cai_literal_second_half(cai_literal_reader *r, uint32_t *code)
{
    const size_t start = r->at;
    uint32_t low = 0;
    if (*code < 0xd800 || *code > 0xdbff) return CAI_OK;
    if (cai_literal_peek(r, 0) != '\\' || cai_literal_peek(r, 1) != 'u') return CAI_OK;
    r->at += 2;
    CAI_TRY(cai_literal_hex_escape(r, 4, &low));
    if (low >= 0xdc00 && low <= 0xdfff) {
        *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    } else {
        r->at = start;
    }
    return CAI_OK;
}

/* Decodes the escape behind a backslash to `to`. Never longer than the escape itself, so that
 * strings are decoded where they are. */
static cai_status cai_literal_escape(cai_literal_reader *r, int bytes, char **to)
{
    const int c = cai_literal_peek(r, 0);
    uint32_t code = 0;
    int i;
    if (c < 0) return cai_literal_fail(r, r->at, "a string is not closed");
    if (c == 'x' || (!bytes && (c == 'u' || c == 'U'))) {
        r->at++;
        CAI_TRY(cai_literal_hex_escape(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, &code));
        if (r->json && c == 'u') CAI_TRY(cai_literal_second_half(r, &code));
    } else if (r->json && c == '/') {
        code = '/';
        r->at++;
    } else if (c >= '0' && c <= '7') {
        for (i = 0; i < 3 && (cai_literal_peek(r, 0) & ~7) == '0'; i++) {
            code = code << 3 | (uint32_t)(cai_literal_peek(r, 0) - '0');
            r->at++;
        }
        if (bytes) code &= 0xff;
    } else if (cai_literal_simple_escape(c) >= 0) {
        code = (uint32_t)cai_literal_simple_escape(c);
        r->at++;
    } else if (c == 'N' && !bytes) {
        return cai_literal_fail(r, r->at, "named characters are not supported");
    } else { /* Python keeps the backslash of an escape that it does not know */
        code = '\\';
    }
    if (bytes) {
        *(*to)++ = (char)code;
    } else {
        *to += cai_literal_utf8(*to, code);
    }
    return CAI_OK;
}

/* A string, from its quote. */
static cai_status cai_literal_string(cai_literal_reader *r, int bytes)
{
    const size_t start = r->at;
    const int quote = cai_literal_peek(r, 0);
    char *text, *to;
    int c;
    r->at++;
    text = to = r->line + r->at;
    while ((c = cai_literal_peek(r, 0)) != quote) {
        if (c < 0 || c == '\n') return cai_literal_fail(r, start, "a string is not closed");
        if (c >= 0x80 && bytes) return cai_literal_fail(r, r->at, "bytes must be ASCII");
        r->at++;
        if (c == '\\') {
            CAI_TRY(cai_literal_escape(r, bytes, &to));
        } else {
            *to++ = (char)c;
        }
    }
    r->at++;
    CAI_TRY(cai_literal_emit(r, bytes ? CAI_TOKEN_BYTES : CAI_TOKEN_STR, 0));
    r->tokens[r->count - 1].text = text;
    r->tokens[r->count - 1].length = (uint32_t)(to - text);
    return CAI_OK;
}

/* ------------------------------------------------------------------------------ words */

static cai_status cai_literal_skip_quoted(cai_literal_reader *r)
{
    const size_t start = r->at;
    const int quote = cai_literal_peek(r, 0);
    int c;
    r->at++;
    while ((c = cai_literal_peek(r, 0)) != quote) {
        if (c < 0 || c == '\n') return cai_literal_fail(r, start, "a string is not closed");
        r->at += c == '\\' && cai_literal_peek(r, 1) >= 0 ? 2 : 1;
    }
    r->at++;
    return CAI_OK;
}

/* Skips from an opening bracket past the one that closes it. */
static cai_status cai_literal_skip_balanced(cai_literal_reader *r)
{
    const size_t start = r->at;
    char closers[CAI_LITERAL_DEPTH];
    int depth = 0;
    do {
        const int c = cai_literal_peek(r, 0);
        if (c < 0) return cai_literal_never_closed(r, start);
        if (cai_literal_is_quote(c)) {
            CAI_TRY(cai_literal_skip_quoted(r));
            continue;
        }
        if (cai_literal_closer(c) != 0) {
            if (depth == CAI_LITERAL_DEPTH) {
                return cai_literal_fail(r, r->at, "more than 200 nested brackets");
            }
            closers[depth++] = cai_literal_closer(c);
        } else if (c == closers[depth - 1]) {
            depth--;
        } else if (c == ')' || c == ']' || c == '}' || c == '>') {
            return cai_literal_fail(r, r->at, "a bracket that does not match");
        }
        r->at++;
    } while (depth > 0);
    return CAI_OK;
}

static int cai_literal_same(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* Is it one of NumPy's integer types, np.int64 or the like? */
static int cai_literal_is_numpy_int(const char *word, size_t length)
{
    static const char *const names[] = {
        "int8",  "int16",  "int32", "int64", "uint8",    "uint16",    "uint32", "uint64",
        "intc",  "intp",   "uintc", "uintp", "longlong", "ulonglong", "long",   "ulong",
        "short", "ushort", "byte",  "ubyte"};
    size_t prefix = 0, i;
    if (length > 3 && memcmp(word, "np.", 3) == 0) prefix = 3;
    if (length > 6 && memcmp(word, "numpy.", 6) == 0) prefix = 6;
    if (prefix == 0) return 0;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (cai_literal_same(word + prefix, length - prefix, names[i])) return 1;
    }
    return 0;
}

/* "(-3)" behind np.int64, as NumPy 2 prints it. False, with nothing consumed, for all else. */
static int cai_literal_index(cai_literal_reader *r, uint64_t *number)
{
    const size_t start = r->at;
    const int negative = cai_literal_peek(r, 1) == '-';
    uint64_t value = 0;
    int too_big = 0, found;
    r->at += negative ? 2 : 1;
    found = cai_literal_digits(r, 10, &value, &too_big) > 0 && cai_literal_peek(r, 0) == ')' &&
            !too_big && value <= (uint64_t)INT64_MAX + (negative ? 1u : 0u);
    r->at = found ? r->at + 1 : start;
    *number = negative ? 0 - value : value;
    return found;
}

/* Any other object: what follows its name, up to the end of it. */
static cai_status cai_literal_object(cai_literal_reader *r, uint64_t truth)
{
    for (;;) {
        const int c = cai_literal_peek(r, 0);
        if (c == '(' || c == '[') {
            CAI_TRY(cai_literal_skip_balanced(r));
        } else if (cai_literal_is_word(c) || cai_literal_is_digit(c) || c == '.') {
            r->at++;
        } else {
            return cai_literal_emit(r, CAI_TOKEN_OBJECT, truth);
        }
    }
}

static cai_status cai_literal_word(cai_literal_reader *r)
{
    const char *word = r->line + r->at;
    const size_t start = r->at;
    uint64_t number = 0;
    size_t length;
    while (cai_literal_is_word(cai_literal_peek(r, 0)) ||
           cai_literal_is_digit(cai_literal_peek(r, 0)) || cai_literal_peek(r, 0) == '.') {
        r->at++;
    }
    length = r->at - start;
    if (cai_literal_peek(r, 0) != '(' && cai_literal_peek(r, 0) != '[') {
        if (cai_literal_same(word, length, "None")) return cai_literal_emit(r, CAI_TOKEN_NONE, 0);
        if (cai_literal_same(word, length, "True")) return cai_literal_emit(r, CAI_TOKEN_BOOL, 1);
        if (cai_literal_same(word, length, "False")) return cai_literal_emit(r, CAI_TOKEN_BOOL, 0);
        if (r->json && cai_literal_same(word, length, "null")) return cai_literal_emit(r, CAI_TOKEN_NONE, 0);
        if (r->json && cai_literal_same(word, length, "true")) return cai_literal_emit(r, CAI_TOKEN_BOOL, 1);
        if (r->json && cai_literal_same(word, length, "false")) return cai_literal_emit(r, CAI_TOKEN_BOOL, 0);
        if (cai_literal_same(word, length, "inf") || cai_literal_same(word, length, "nan")) {
            return cai_literal_emit(r, CAI_TOKEN_FLOAT, 1);
        }
        return cai_literal_object(r, cai_literal_same(word, length, "np.False_") ? 0 : 1);
    }
    if (cai_literal_is_numpy_int(word, length) && cai_literal_peek(r, 0) == '(' &&
        cai_literal_index(r, &number)) {
        return cai_literal_emit(r, CAI_TOKEN_INDEX, number);
    }
    return cai_literal_object(r, 1);
}

static cai_status cai_literal_signed(cai_literal_reader *r)
{
    const int negative = cai_literal_peek(r, 0) == '-';
    int c;
    r->at++;
    c = cai_literal_peek(r, 0);
    if (cai_literal_is_digit(c)) return cai_literal_number(r, negative);
    if (c == 'i' || c == 'n') {
        const size_t count = r->count;
        CAI_TRY(cai_literal_word(r));
        if (r->tokens[count].kind == CAI_TOKEN_FLOAT) return CAI_OK;
    }
    return cai_literal_fail(r, r->at, "expected a number after the sign");
}

/* A value that is no tuple, list or dict. */
static cai_status cai_literal_scalar(cai_literal_reader *r)
{
    const int c = cai_literal_peek(r, 0);
    if (cai_literal_is_quote(c)) return cai_literal_string(r, 0);
    if (cai_literal_is_digit(c)) return cai_literal_number(r, 0);
    if (c == '-' || c == '+') return cai_literal_signed(r);
    if (c == 'b' && cai_literal_is_quote(cai_literal_peek(r, 1))) {
        r->at++;
        return cai_literal_string(r, 1);
    }
    if (c == '<') {
        CAI_TRY(cai_literal_skip_balanced(r));
        return cai_literal_emit(r, CAI_TOKEN_OBJECT, 1);
    }
    if (cai_literal_is_word(c)) return cai_literal_word(r);
    if (c < 0 && r->depth > 0) {
        return cai_literal_never_closed(r, r->frames[r->depth - 1].column);
    }
    return cai_literal_fail(r, r->at, "expected a value");
}

/* ---------------------------------------------------------------------------- nesting */

static cai_literal_frame *cai_literal_top(cai_literal_reader *r)
{
    return r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
}

static int32_t cai_literal_entry_of(const cai_token *key)
{
    int32_t entry = CAI_ENTRY_COUNT;
    if (key->kind != CAI_TOKEN_STR) return CAI_ENTRY_NONE;
    while (--entry > CAI_ENTRY_NONE) {
        if (cai_literal_same(key->text, key->length, cai_entry_name(entry))) break;
    }
    return entry;
}

static void cai_literal_store(cai_interface *to, int32_t entry, const cai_token *run,
                              const cai_interface *mask)
{
    switch (entry) {
    case CAI_ENTRY_SHAPE: to->shape = run; break;
    case CAI_ENTRY_TYPESTR: to->typestr = run; break;
    case CAI_ENTRY_DATA: to->data = run; break;
    case CAI_ENTRY_VERSION: to->version = run; break;
    case CAI_ENTRY_STRIDES: to->strides = run; break;
    case CAI_ENTRY_STREAM: to->stream = run; break;
    case CAI_ENTRY_DESCR: to->descr = run; break;
    case CAI_ENTRY_MASK:
        to->mask = run;
        to->mask_interface = mask;
        break;
    default: break;
    }
}

/* The interface that a dict opened here fills: that of the line, or that of a mask. */
static int32_t cai_literal_level(cai_literal_reader *r)
{
    const cai_literal_frame *outer = cai_literal_top(r);
    if (outer == NULL) return 0;
    if (outer->kind != CAI_TOKEN_DICT || outer->entry != CAI_ENTRY_MASK || !outer->in_value) {
        return -1;
    }
    return outer->level + 1 < CAI_LITERAL_LEVELS ? outer->level + 1 : -1;
}

/* What the list that is opened here is for: a descr, a field of it, or neither. */
static int32_t cai_literal_role(cai_literal_reader *r)
{
    const cai_literal_frame *outer = cai_literal_top(r);
    if (outer == NULL) return CAI_LITERAL_PLAIN;
    if (outer->role == CAI_LITERAL_DESCR) return CAI_LITERAL_FIELD;
    if (outer->role == CAI_LITERAL_FIELD) return outer->items == 1 ? CAI_LITERAL_DESCR : CAI_LITERAL_PLAIN;
    return outer->kind == CAI_TOKEN_DICT && outer->in_value && outer->entry == CAI_ENTRY_DESCR
               ? CAI_LITERAL_DESCR
               : CAI_LITERAL_PLAIN;
}

/* A subclass of tuple, as it prints itself: torch.Size([2, 3]). How long its name is, with the
 * parenthesis behind it; 0: it is none. Only numbers may stand inside. */
static size_t cai_literal_tuple_name(const cai_literal_reader *r)
{
    static const char *const names[] = {"torch.Size(", "Size(", "tuple("};
    const char *const text = r->line + r->at;
    const size_t left = r->length - r->at;
    size_t i, at = 0;
    for (i = 0; i < sizeof names / sizeof names[0] && at == 0; i++) {
        const size_t length = strlen(names[i]);
        if (left > length && memcmp(text, names[i], length) == 0) at = length;
    }
    if (at == 0 || (text[at] != '[' && text[at] != '(')) return 0;
    for (i = at + 1; i < left && (cai_literal_is_digit((unsigned char)text[i]) || strchr(", -", text[i]));) i++;
    return i + 1 < left && text[i] == (text[at] == '[' ? ']' : ')') && text[i + 1] == ')' ? at : 0;
}

static cai_status cai_literal_open(cai_literal_reader *r, int c, int32_t named)
{
    const int32_t level = c == '{' ? cai_literal_level(r) : -1;
    const int32_t role = r->json && c == '[' ? cai_literal_role(r) : CAI_LITERAL_PLAIN;
    cai_literal_frame *outer = cai_literal_top(r), *frame;
    int32_t kind = named || c == '(' ? CAI_TOKEN_TUPLE : c == '[' ? CAI_TOKEN_LIST : CAI_TOKEN_DICT;
    if (r->depth == CAI_LITERAL_DEPTH) {
        return cai_literal_fail(r, r->at, "more than 200 nested brackets");
    }
    if (r->json && c == '[' && role != CAI_LITERAL_DESCR) kind = CAI_TOKEN_TUPLE;
    CAI_TRY(cai_literal_emit(r, kind, 0));
    frame = &r->frames[r->depth++];
    memset(frame, 0, sizeof *frame);
    frame->kind = kind;
    frame->role = role;
    frame->named = named;
    frame->level = level;
    frame->token = r->count - 1;
    frame->column = r->at++;
    if (level < 0) return CAI_OK;
    memset(&r->levels[level], 0, sizeof r->levels[level]);
    if (outer == NULL) return CAI_OK;
    outer->mask = &r->levels[level];
    r->tokens[frame->token].kind = CAI_TOKEN_OBJECT;
    return CAI_OK;
}

/* Closes the innermost bracket; its value is now an item of the one around it. */
static void cai_literal_close(cai_literal_reader *r)
{
    const cai_literal_frame *frame = &r->frames[--r->depth];
    cai_token *token = &r->tokens[frame->token];
    r->at += frame->named ? 2 : 1;
    if (frame->kind != CAI_TOKEN_TUPLE && frame->kind != CAI_TOKEN_LIST) {
        token->number = frame->level > 0 || frame->items > 0;
    } else if (r->line[frame->column] == '(' && frame->items == 1 && !frame->comma && !frame->named) {
        r->count--; /* (x) is x */
        memmove(token, token + 1, (r->count - frame->token) * sizeof *token);
    } else {
        token->length = frame->items;
    }
}

/* What began as a dict has an item without a colon. */
static void cai_literal_become_set(cai_literal_reader *r, cai_literal_frame *frame)
{
    frame->kind = CAI_TOKEN_OBJECT;
    frame->level = -1;
    frame->items = 1;
    r->tokens[frame->token].kind = CAI_TOKEN_OBJECT;
    if (r->depth > 1) frame[-1].mask = NULL;
}

static void cai_literal_keep_unknown(cai_literal_reader *r, const cai_token *key)
{
    cai_literal_keys *keys = r->unknown;
    if (keys == NULL || key->kind != CAI_TOKEN_STR || keys->count == CAI_LITERAL_UNKNOWN) return;
    keys->text[keys->count] = key->text;
    keys->length[keys->count++] = key->length;
}

/* Gives the value just read to the bracket around it. Only tuples and lists keep all their items:
 * of a dict the values of known entries stay, of other dicts and sets nothing. */
static void cai_literal_take(cai_literal_reader *r, cai_literal_frame *frame)
{
    const cai_token *run = &r->tokens[frame->start];
    if (frame->kind == CAI_TOKEN_TUPLE || frame->kind == CAI_TOKEN_LIST) {
        frame->items++;
        return;
    }
    if (frame->kind == CAI_TOKEN_DICT && !frame->in_value) {
        frame->entry = frame->level < 0 ? CAI_ENTRY_NONE : cai_literal_entry_of(run);
        if (frame->level >= 0 && frame->entry == CAI_ENTRY_NONE) cai_literal_keep_unknown(r, run);
        r->count = frame->start;
        return;
    }
    frame->items++;
    if (frame->kind == CAI_TOKEN_DICT && frame->entry != CAI_ENTRY_NONE) {
        cai_literal_store(&r->levels[frame->level], frame->entry, run, frame->mask);
        return;
    }
    r->count = frame->start;
}

/* Behind an item: a colon, a comma, or the closing bracket, which sets *closed. */
static cai_status cai_literal_separator(cai_literal_reader *r, cai_literal_frame *frame,
                                        int *closed)
{
    char message[] = "expected ',' or ')'";
    const char closer = cai_literal_closer((unsigned char)r->line[frame->column]);
    int c;
    cai_literal_skip_space(r);
    c = cai_literal_peek(r, 0);
    if (c < 0) return cai_literal_never_closed(r, frame->column);
    if (frame->kind == CAI_TOKEN_DICT && !frame->in_value) {
        if (c == ':') {
            frame->in_value = 1;
            r->at++;
            return CAI_OK;
        }
        if (frame->items > 0 || (c != ',' && c != '}')) {
            return cai_literal_fail(r, r->at, "expected ':' after a key");
        }
        cai_literal_become_set(r, frame);
    }
    frame->in_value = 0;
    *closed = c == closer;
    if (*closed) return CAI_OK;
    message[sizeof message - 3] = closer;
    if (c != ',') return cai_literal_fail(r, r->at, message);
    frame->comma = 1;
    r->at++;
    return CAI_OK;
}

/* Reads a value, or the bracket that opens or closes one; *whole: a value is complete. */
static cai_status cai_literal_value(cai_literal_reader *r, int *whole)
{
    cai_literal_frame *frame = cai_literal_top(r);
    size_t name;
    int c;
    cai_literal_skip_space(r);
    c = cai_literal_peek(r, 0);
    *whole = 1;
    if (frame != NULL) {
        frame->start = r->count;
        frame->mask = NULL;
        if (c == cai_literal_closer((unsigned char)r->line[frame->column]) && !frame->in_value) {
            cai_literal_close(r);
            return CAI_OK;
        }
        frame->comma = 0;
    }
    name = cai_literal_tuple_name(r);
    r->at += name;
    if (name > 0) c = cai_literal_peek(r, 0);
    if (c != '(' && c != '[' && c != '{') return cai_literal_scalar(r);
    *whole = 0;
    return cai_literal_open(r, c, name > 0);
}

static cai_status cai_literal_end(cai_literal_reader *r)
{
    const char *message;
    switch (r->tokens[0].kind) {
    case CAI_TOKEN_DICT: message = NULL; break;
    case CAI_TOKEN_NONE: message = "the interface must be a dict, not None"; break;
    case CAI_TOKEN_BOOL: message = "the interface must be a dict, not a bool"; break;
    case CAI_TOKEN_INT:
    case CAI_TOKEN_UINT:
    case CAI_TOKEN_BIG_INT: message = "the interface must be a dict, not an int"; break;
    case CAI_TOKEN_FLOAT: message = "the interface must be a dict, not a float"; break;
    case CAI_TOKEN_STR: message = "the interface must be a dict, not a str"; break;
    case CAI_TOKEN_BYTES: message = "the interface must be a dict, not bytes"; break;
    case CAI_TOKEN_TUPLE: message = "the interface must be a dict, not a tuple"; break;
    case CAI_TOKEN_LIST: message = "the interface must be a dict, not a list"; break;
    default: message = "the interface must be a dict, not another object"; break;
    }
    cai_literal_skip_space(r);
    if (r->at < r->length) return cai_literal_fail(r, r->at, "unexpected text behind the value");
    if (message != NULL) return cai_literal_error(r->err, 0, -1, message);
    /* a dict in parentheses was read as an item, not as the interface */
    if (r->frames[0].kind != CAI_TOKEN_DICT) {
        return cai_literal_error(r->err, 0, -1, "the dict must not stand in parentheses");
    }
    return CAI_OK;
}

/* ------------------------------------------------------------------------- JSON, lines */

/* From a quote past the one that closes it; past the end where none does. */
static size_t cai_literal_past_string(const char *text, size_t length, size_t at)
{
    const char quote = text[at++];
    while (at < length && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
    return at < length ? at + 1 : length + 1;
}

static size_t cai_literal_past_space(const char *text, size_t length, size_t at)
{
    while (at < length && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r'))) at++;
    return at;
}

/* Is it the text of JSON? By the rule at the top. */
static int cai_literal_is_json(const char *text, size_t length)
{
    static const char *const words[] = {"None", "True", "False"};
    size_t at = cai_literal_past_space(text, length, 0), i;
    if (at == length || text[at] != '{') return 0;
    at = cai_literal_past_space(text, length, at + 1);
    if (at == length || text[at] != '"') return 0;
    while (at < length) {
        if (text[at] == '\'' || text[at] == '(' || text[at] == '<') return 0;
        for (i = 0; i < sizeof words / sizeof words[0]; i++) {
            const size_t size = strlen(words[i]);
            if (length - at >= size && memcmp(text + at, words[i], size) == 0) return 0;
        }
        at = text[at] == '"' ? cai_literal_past_string(text, length, at) : at + 1;
    }
    return 1;
}

/* Where a dictionary of several lines stands. Zero it before the first line of each. */
typedef struct cai_literal_lines {
    int64_t open;   /* brackets that are not closed */
    size_t indent;  /* of the first line */
    int started;
} cai_literal_lines;

static size_t cai_literal_indent(const char *line, size_t length)
{
    size_t indent = 0;
    while (indent < length && (line[indent] == ' ' || line[indent] == '\t')) indent++;
    return indent;
}

/** Does this line belong to the dictionary above it? Yes, if a bracket is open, and the line is
 *  indented deeper than the first one or begins with a closing bracket. So a dictionary that was
 *  never closed ends where the next one begins. */
static int cai_literal_goes_on(const cai_literal_lines *lines, const char *line, size_t length)
{
    const size_t indent = cai_literal_indent(line, length);
    if (lines->open <= 0 || indent == length) return 0;
    return indent > lines->indent || line[indent] == '}' || line[indent] == ']' || line[indent] == ')';
}

/** Counts the brackets of a line that belongs to the dictionary. */
static void cai_literal_count(cai_literal_lines *lines, const char *line, size_t length)
{
    size_t at = cai_literal_indent(line, length);
    if (!lines->started) lines->indent = at;
    lines->started = 1;
    while (at < length) {
        const char c = line[at];
        if (c == '(' || c == '[' || c == '{') lines->open++;
        if (c == ')' || c == ']' || c == '}') lines->open--;
        if (!cai_literal_is_quote(c)) {
            at++;
            continue;
        }
        at = cai_literal_past_string(line, length, at);
    }
}

/* ---------------------------------------------------------------------------- reading */

/** Reads the text of one dictionary (without its last newline; it may hold any bytes). Strings are
 *  decoded where they are, so that the text is changed; tokens point into it. levels[0] is the
 *  interface, the others are those of its mask. `capacity`: cai_literal_capacity(length) always
 *  suffices. `unknown`: keeps the keys that are no entries, or NULL.
 *  Errors: CAI_ERR_INTERFACE with the column (from 1) in index, -1 where none is at fault. */
static cai_status cai_literal_read(char *line, size_t length, cai_token *tokens, size_t capacity,
                                   cai_interface levels[CAI_LITERAL_LEVELS], cai_literal_keys *unknown,
                                   cai_error *err)
{
    cai_literal_reader r;
    int whole = 0, closed = 0;
    if (unknown != NULL) unknown->count = 0;
    if (length >= INT32_MAX) {
        return cai_literal_error(err, 0, -1, "the line is longer than 2147483646 bytes");
    }
    memset(levels, 0, CAI_LITERAL_LEVELS * sizeof *levels);
    r.line = line;
    r.length = length;
    r.at = 0;
    r.tokens = tokens;
    r.capacity = capacity;
    r.count = 0;
    r.levels = levels;
    r.depth = 0;
    r.json = cai_literal_is_json(line, length);
    r.unknown = unknown;
    r.err = err;
    r.frames[0].kind = CAI_TOKEN_NONE;
    for (;;) {
        CAI_TRY(cai_literal_value(&r, &whole));
        while (whole) {
            cai_literal_frame *frame = cai_literal_top(&r);
            if (frame == NULL) return cai_literal_end(&r);
            cai_literal_take(&r, frame);
            CAI_TRY(cai_literal_separator(&r, frame, &closed));
            if (!closed) break;
            cai_literal_close(&r);
            closed = 0;
        }
    }
}

#endif /* CAI_LITERAL_H_INCLUDED */
