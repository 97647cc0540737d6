/* cai_test_help.h - what several tests share: a reader of Python-like text, and brute force.
 * SPDX-License-Identifier: MIT
 *
 * Include after cai.h and cai_test.h. In texts '@' stands for this machine's byte order in a
 * typestr ('<' or '>') and '`' for the other one. */
#ifndef CAI_TEST_HELP_H
#define CAI_TEST_HELP_H

/* ------------------------------------------------------------------ byte order */

static inline int help_is_little(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/* Replaces '@' and '`'; the result lives until 8 more calls. */
static inline const char *help_order(const char *text)
{
    static char buffers[8][2048];
    static int turn;
    char *to = buffers[turn = (turn + 1) % 8];
    size_t i;
    for (i = 0; text[i] != 0 && i < 2047; i++) {
        to[i] = text[i];
        if (text[i] == '@') to[i] = help_is_little() ? '<' : '>';
        if (text[i] == '`') to[i] = help_is_little() ? '>' : '<';
    }
    to[i] = 0;
    return to;
}

/* ------------------------------------------------------------------ reader */

/* Grammar: None True False 12 -3 1.5 'str' b'bytes' (items) [items] {} {1} np(12) obj obj0 ?
 * An interface is "key=value; key=value; !key"; a mask may be {interface}. */

enum { HELP_TOKENS = 60000, HELP_TEXT = 400000, HELP_INTERFACES = 64 };

static cai_token help_tokens[HELP_TOKENS];
static int64_t help_token_count;
static char help_text[HELP_TEXT];
static int64_t help_text_count;
static cai_interface help_interfaces[HELP_INTERFACES];
static int64_t help_interface_count;

static inline void help_reset(void)
{
    help_token_count = 0;
    help_text_count = 0;
    help_interface_count = 0;
}

static inline void help_stop(const char *why, const char *at)
{
    printf("test text: %s at \"%.40s\"\n", why, at);
    exit(3);
}

static inline void help_space(const char **at)
{
    while (**at == ' ' || **at == '\n') (*at)++;
}

static inline int help_take(const char **at, const char *word)
{
    size_t length = strlen(word);
    help_space(at);
    if (strncmp(*at, word, length) != 0) return 0;
    *at += length;
    return 1;
}

static inline cai_token *help_token(int32_t kind)
{
    cai_token *token = &help_tokens[help_token_count];
    if (help_token_count++ >= HELP_TOKENS - 1) help_stop("too many tokens", "");
    memset(token, 0, sizeof *token);
    token->kind = kind;
    return token;
}

/* The kind and the number of an int that was written in decimal. */
static inline void help_int(const char **at, cai_token *token)
{
    int negative = help_take(at, "-"), big = 0;
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (value > (UINT64_MAX - digit) / 10) big = 1;
        value = value * 10 + digit;
    }
    if (**at == '.') {
        token->kind = CAI_TOKEN_FLOAT;
        for ((*at)++; **at >= '0' && **at <= '9'; (*at)++) value |= (uint64_t)(**at - '0');
        token->number = value != 0;
        return;
    }
    if (negative && value > (uint64_t)1 << 63) big = 1;
    if (!big && !negative && value > INT64_MAX) token->kind = CAI_TOKEN_UINT;
    if (big) token->kind = CAI_TOKEN_BIG_INT;
    token->number = big ? 0 : negative ? 0 - value : value;
}

static inline int help_hex(char c)
{
    const char *digits = "0123456789abcdef";
    const char *found = strchr(digits, c);
    return found == NULL || c == 0 ? -1 : (int)(found - digits);
}

static inline void help_string(const char **at, cai_token *token)
{
    char *start = &help_text[help_text_count];
    char *to = start;
    for (; **at != '\''; (*at)++) {
        if (to - help_text >= HELP_TEXT - 1 || **at == 0) help_stop("string", *at);
        *to = **at;
        if (**at == '\\') {
            *to = (char)(help_hex((*at)[2]) * 16 + help_hex((*at)[3]));
            *at += 3;
        }
        to++;
    }
    (*at)++;
    token->text = start;
    token->length = (uint32_t)(to - start);
    help_text_count = to - help_text;
}

static inline void help_value(const char **at);

static inline void help_items(const char **at, int32_t kind, const char *end)
{
    int64_t index = help_token_count;
    uint32_t count = 0;
    help_token(kind);
    while (!help_take(at, end)) {
        help_value(at);
        count++;
        help_take(at, ",");
    }
    help_tokens[index].length = count;
}

static inline void help_word(const char **at)
{
    if (help_take(at, "None")) {
        help_token(CAI_TOKEN_NONE);
    } else if (help_take(at, "True")) {
        help_token(CAI_TOKEN_BOOL)->number = 1;
    } else if (help_take(at, "False")) {
        help_token(CAI_TOKEN_BOOL);
    } else if (help_take(at, "obj0")) {
        help_token(CAI_TOKEN_OBJECT);
    } else if (help_take(at, "obj")) {
        help_token(CAI_TOKEN_OBJECT)->number = 1;
    } else if (help_take(at, "?")) {
        help_token(CAI_TOKEN_OTHER);
    } else if (help_take(at, "{}")) {
        help_token(CAI_TOKEN_DICT);
    } else if (help_take(at, "{1}")) {
        help_token(CAI_TOKEN_DICT)->number = 1;
    } else {
        help_stop("no value", *at);
    }
}

static inline void help_value(const char **at)
{
    if (help_take(at, "np(")) {
        cai_token *token = help_token(CAI_TOKEN_INT);
        help_int(at, token);
        if (token->kind == CAI_TOKEN_INT) token->kind = CAI_TOKEN_INDEX;
        help_take(at, ")");
    } else if (help_take(at, "(")) {
        help_items(at, CAI_TOKEN_TUPLE, ")");
    } else if (help_take(at, "[")) {
        help_items(at, CAI_TOKEN_LIST, "]");
    } else if (help_take(at, "b'")) {
        help_string(at, help_token(CAI_TOKEN_BYTES));
    } else if (help_take(at, "'")) {
        help_string(at, help_token(CAI_TOKEN_STR));
    } else if (**at == '-' || (**at >= '0' && **at <= '9')) {
        help_int(at, help_token(CAI_TOKEN_INT));
    } else {
        help_word(at);
    }
}

/* A long text with '@' and '`' replaced; the result lives until the next call. */
static inline const char *help_long(const char *base, const char *text)
{
    static char whole[HELP_TEXT / 4];
    size_t length = strlen(base), i;
    if (length + strlen(text) >= sizeof whole) help_stop("too long", text);
    memcpy(whole, base, length);
    memcpy(whole + length, text, strlen(text) + 1);
    for (i = 0; whole[i] != 0; i++) {
        if (whole[i] == '@') whole[i] = help_is_little() ? '<' : '>';
        else if (whole[i] == '`') whole[i] = help_is_little() ? '>' : '<';
    }
    return whole;
}

/* The token run of a value. */
static inline const cai_token *help_run(const char *text)
{
    const cai_token *start = &help_tokens[help_token_count];
    text = help_long("", text);
    help_value(&text);
    return start;
}

static inline const cai_token **help_slot(cai_interface *in, const char **at)
{
    if (help_take(at, "shape")) return &in->shape;
    if (help_take(at, "typestr")) return &in->typestr;
    if (help_take(at, "data")) return &in->data;
    if (help_take(at, "version")) return &in->version;
    if (help_take(at, "strides")) return &in->strides;
    if (help_take(at, "stream")) return &in->stream;
    if (help_take(at, "descr")) return &in->descr;
    if (help_take(at, "mask")) return &in->mask;
    help_stop("no key", *at);
    return NULL;
}

static inline cai_interface *help_interface(const char **at, const char *end)
{
    cai_interface *in = &help_interfaces[help_interface_count];
    if (help_interface_count++ >= HELP_INTERFACES - 1) help_stop("interfaces", *at);
    memset(in, 0, sizeof *in);
    while (!help_take(at, end) && **at != 0) {
        if (help_take(at, "!")) {
            *help_slot(in, at) = NULL;
        } else {
            const cai_token **slot = help_slot(in, at);
            if (!help_take(at, "=")) help_stop("no =", *at);
            *slot = &help_tokens[help_token_count];
            help_space(at);
            if (slot == &in->mask && (*at)[0] == '{' && (*at)[1] >= 'a' && (*at)[1] <= 'z') {
                (*at)++;
                help_token(CAI_TOKEN_OBJECT)->number = 1;
                in->mask_interface = help_interface(at, "}");
            } else {
                help_value(at);
            }
        }
        help_take(at, ";");
    }
    return in;
}

/* "shape=(2,3); typestr='@f4'; data=(4096,False); version=3" and what `text` changes of it. */
static inline cai_interface *help_dict(const char *text)
{
    const char *base = "shape=(2,3); typestr='@f4'; data=(4096,False); version=3; ";
    const char *at = help_long(base, text);
    return help_interface(&at, "\x7f");
}

/* ------------------------------------------------------------------ numbers */

static uint64_t help_random_state = 20240607;

static inline uint64_t help_random(void) /* splitmix64 */
{
    uint64_t z = help_random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int64_t help_between(int64_t low, int64_t high) /* both included */
{
    return low + (int64_t)(help_random() % (uint64_t)(high - low + 1));
}

/* Steps an index in C order; 0 at the end. */
static inline int help_next(int64_t *index, const int64_t *shape, int32_t ndim)
{
    int32_t axis = ndim;
    while (axis-- > 0) {
        if (++index[axis] < shape[axis]) return 1;
        index[axis] = 0;
    }
    return 0;
}

/* ------------------------------------------------------------------ brute force */

enum { HELP_ELEMENTS = 4096 };

/* Addresses of all elements in C order; their number. */
static inline int64_t help_addresses(const cai_array *a, uint64_t *to)
{
    int64_t index[CAI_MAX_NDIM + 1] = {0};
    int64_t count = 0;
    int32_t i;
    for (i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 0) return 0;
    }
    do {
        uint64_t at = a->data;
        for (i = 0; i < a->ndim; i++) at += (uint64_t)index[i] * (uint64_t)a->strides[i];
        if (count >= HELP_ELEMENTS) help_stop("too many elements", "");
        to[count++] = at;
    } while (help_next(index, a->shape, a->ndim));
    return count;
}

static inline int help_compare(const void *x, const void *y)
{
    uint64_t a, b;
    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
    return (a > b) - (a < b);
}

/* Running product in an order of the axes that starts at `axis` and goes by `step`. */
static inline int help_contiguous(const cai_array *a, int32_t axis, int32_t step, int64_t unit)
{
    int32_t i;
    if (a->size == 0) return 1;
    for (i = 0; i < a->ndim; i++, axis += step) {
        if (a->shape[axis] == 1) continue;
        if (a->strides[axis] != unit) return 0;
        unit *= a->shape[axis];
    }
    return 1;
}

static inline int help_aligned(const cai_array *a)
{
    uint64_t bits = a->data;
    int32_t i;
    if (a->size == 0) return 1;
    for (i = 0; i < a->ndim; i++) {
        if (a->shape[i] > 1) bits |= (uint64_t)a->strides[i];
    }
    return bits % (uint64_t)a->dtype.alignment == 0;
}

/* Checks size, nbytes, lo, hi and the computed flags of a small array against its elements. */
static inline void help_check_facts(const cai_array *a)
{
    static uint64_t at[HELP_ELEMENTS];
    int64_t count = help_addresses(a, at), item = a->dtype.itemsize, i;
    int overlaps = 0;
    CHECK_INT(a->size, count);
    CHECK_INT(a->nbytes, count * item);
    qsort(at, (size_t)count, sizeof at[0], help_compare);
    for (i = 1; i < count; i++) overlaps |= at[i] - at[i - 1] < (uint64_t)item;
    CHECK_INT(a->lo, count == 0 ? 0 : (int64_t)(at[0] - a->data));
    CHECK_INT(a->hi, count == 0 ? 0 : (int64_t)(at[count - 1] - a->data) + item);
    if (count == 0) CHECK_UINT(a->data, 0);
    CHECK_INT((a->flags & CAI_C_CONTIGUOUS) != 0, help_contiguous(a, a->ndim - 1, -1, item));
    CHECK_INT((a->flags & CAI_F_CONTIGUOUS) != 0, help_contiguous(a, 0, 1, item));
    CHECK_INT((a->flags & CAI_ALIGNED) != 0, help_aligned(a));
    CHECK_INT((a->flags & CAI_SELF_OVERLAP) != 0, overlaps);
    CHECK_INT((a->flags & CAI_NO_SELF_OVERLAP) != 0, !overlaps);
    CHECK_INT((a->flags & CAI_DENSE) != 0, !overlaps && a->hi - a->lo == count * item);
    CHECK_INT((a->flags & CAI_BYTE_SWAPPED) != 0, (a->dtype.code & 0x01000000) != 0);
}

/* Storage filled with 0xA5, and whether it still is. */
static inline void help_fill(void *at, size_t size)
{
    memset(at, 0xA5, size);
}

static inline int help_filled(const void *at, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)at;
    size_t i;
    for (i = 0; i < size; i++) {
        if (bytes[i] != 0xA5) return 0;
    }
    return 1;
}

/* A dtype from a typestr with '@' and '`'. */
static inline cai_dtype help_dtype(const char *typestr)
{
    cai_dtype dtype;
    const char *text = help_order(typestr);
    memset(&dtype, 0, sizeof dtype);
    CHECK_INT(cai_dtype_parse(text, (int64_t)strlen(text), 0, &dtype, NULL), CAI_OK);
    return dtype;
}

/* ------------------------------------------------------------------ dtypes */

/* Elements of so many bytes, of no type. */
static inline cai_dtype help_void(int32_t bytes)
{
    char typestr[16];
    cai_dtype dtype;
    memset(&dtype, 0, sizeof dtype);
    (void)snprintf(typestr, sizeof typestr, "|V%d", (int)bytes);
    CHECK_INT(cai_dtype_parse(typestr, (int64_t)strlen(typestr), 0, &dtype, NULL), CAI_OK);
    return dtype;
}

#endif
