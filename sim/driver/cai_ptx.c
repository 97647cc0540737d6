/* cai_ptx.c - PTX: the parameters of kernels, and what a kernel does with the memory behind each
 * SPDX-License-Identifier: MIT
 *
 * The order of instructions does not matter here. A register may hold all that any instruction of the kernel
 * puts into it. What a kernel loads with ld.param comes from that parameter. What is computed of it comes from it,
 * too. Then each load, store and atomic says how memory is used behind the parameters that its address comes from.
 *
 * An address that gets out of sight is used in a way that is not known: it is stored, given to a function, or in
 * an instruction that is not known here. Pointers that are in memory are not followed. */
#include "cai_ptx.h"

#include <stdlib.h>
#include <string.h>

enum {
    PTX_WORD = 8,
    PTX_MOST_PARAMETERS = 32764, /* bytes, of one kernel (CUDA 12.1) */
    PTX_MOST_OPERANDS = 8,
    PTX_MOST_NAMES = 256, /* of one operand. wgmma has 128 registers in one */
    PTX_MOST_CELLS = 1 << 23, /* bytes for what registers come from; with more a kernel is not judged */
    PTX_MOST_ROUNDS = 64
};

typedef struct ptx_token {
    const char *text;
    size_t bytes;
    int is_word; /* else one sign */
} ptx_token;

typedef struct ptx_text {
    const char *at, *end;
    ptx_token token; /* the one that is looked at. 0 bytes: the end */
} ptx_text;

typedef struct ptx_parameter {
    uint32_t offset, bytes;
} ptx_parameter;

typedef struct ptx_register {
    const char *name;
    size_t bytes;
} ptx_register;

typedef struct ptx_edge {
    uint32_t from, to;
    uint32_t is_number; /* 1: the result is no address, if what it comes from was loaded from memory */
} ptx_edge;

typedef struct ptx_use {
    uint32_t index; /* of a register */
    uint8_t how;    /* CAI_KERNEL_ */
} ptx_use;

/* One kernel while it is read. Lists grow. */
typedef struct ptx_kernel {
    ptx_parameter *parameters;
    size_t parameter_count, parameter_room;
    uint32_t bytes;
    ptx_register *registers; /* first the names of the parameters, in their order */
    size_t register_count, register_room;
    uint32_t *buckets; /* indices of registers + 1 */
    size_t bucket_count;
    ptx_edge *edges, *loads; /* loads: from a word of the parameters to a register */
    size_t edge_count, edge_room, load_count, load_room;
    ptx_use *uses;
    size_t use_count, use_room;
    uint8_t *words; /* the result */
    int32_t follows;
    int failed;     /* no memory */
} ptx_kernel;

/* The variables of a text that code of the program may access, too. */
typedef struct ptx_globals {
    ptx_token *names;
    size_t count, room;
} ptx_globals;

/* ------------------------------------------------------------------------ >>tokens */
static int ptx_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_$%.:", c) != NULL);
}

/* Behind a comment, or where it stood if there is none. */
static const char *ptx_skip_comment(const char *at, const char *end)
{
    if (end - at < 2 || *at != '/')
        return at;
    if (at[1] == '/') {
        while (at < end && *at != '\n')
            at++;
    } else if (at[1] == '*') {
        at += 2;
        while (end - at >= 2 && (at[0] != '*' || at[1] != '/'))
            at++;
        at = end - at >= 2 ? at + 2 : end;
    }
    return at;
}

static const char *ptx_skip_space(const char *at, const char *end)
{
    const char *before = NULL;
    while (at != before) {
        before = at;
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
            at++;
        at = ptx_skip_comment(at, end);
    }
    return at;
}

/* A word, a string as one sign, or a sign. ':' is of a word only between others, as in "shared::cta". */
static void ptx_next(ptx_text *text)
{
    const char *at = ptx_skip_space(text->at, text->end), *begin = at;
    text->token.text = begin;
    text->token.is_word = at < text->end && ptx_is_word(*at) && *at != ':';
    if (text->token.is_word) {
        while (at < text->end && ptx_is_word(*at) &&
               (*at != ':' || (text->end - at > 2 && at[1] == ':' && at[2] != ':') || at[-1] == ':'))
            at++;
    } else if (at < text->end && *at == '"') {
        for (at++; at < text->end && *at != '"'; at++)
            continue;
        at += at < text->end;
    } else if (at < text->end) {
        at++;
    }
    text->token.bytes = (size_t)(at - begin);
    text->at = at;
}

static int ptx_is(const ptx_token *token, const char *word)
{
    return token->bytes == strlen(word) && !memcmp(token->text, word, token->bytes);
}

static int ptx_begins(const ptx_token *token, const char *word)
{
    return token->bytes >= strlen(word) && !memcmp(token->text, word, strlen(word));
}

/* 1: the word has this part, as ".global" in "ld.global.f32". */
static int ptx_has(const ptx_token *token, const char *part)
{
    size_t bytes = strlen(part), i;
    for (i = 0; i + bytes <= token->bytes; i++)
        if (!memcmp(token->text + i, part, bytes) &&
            (i + bytes == token->bytes || token->text[i + bytes] == '.' || token->text[i + bytes] == ':'))
            return 1;
    return 0;
}

static int ptx_at_end(const ptx_text *text)
{
    return text->token.bytes == 0;
}

/* 10, 0xa, 012 or 0b1010, with or without U behind it. Large numbers stop growing above 1 << 28. */
static uint64_t ptx_number(const ptx_token *token)
{
    static const char digits[] = "0123456789abcdef";
    const char second = token->bytes > 1 && token->text[0] == '0' ? (char)(token->text[1] | 32) : 0;
    const uint64_t base = second == 'x' ? 16 : second == 'b' ? 2 : second ? 8 : 10;
    uint64_t value = 0;
    size_t i;
    for (i = base == 16 || base == 2 ? 2 : 0; i < token->bytes; i++) {
        const char c = token->text[i];
        const char *digit = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 32 : c) : NULL;
        if (!digit || (uint64_t)(digit - digits) >= base)
            break;
        value = value < 1u << 28 ? value * base + (uint64_t)(digit - digits) : value;
    }
    return value;
}

/* From "{" to behind its "}". */
static void ptx_skip_braces(ptx_text *text)
{
    size_t depth = 0;
    do {
        if (ptx_is(&text->token, "{"))
            depth++;
        else if (ptx_is(&text->token, "}"))
            depth--;
        ptx_next(text);
    } while (depth && !ptx_at_end(text));
}

static void ptx_skip_line(ptx_text *text)
{
    while (text->at < text->end && *text->at != '\n')
        text->at++;
    ptx_next(text);
}

/* ------------------------------------------------------------------- >>declarations */
static void *ptx_more(ptx_kernel *kernel, void *array, size_t count, size_t *room, size_t size)
{
    void *more = array;
    if (count < *room)
        return array;
    more = realloc(array, (*room ? 2 * *room : 64) * size);
    if (!more) {
        kernel->failed = 1;
        return array;
    }
    *room = *room ? 2 * *room : 64;
    return more;
}

/* The bytes of a type such as ".u64" or ".b8", else 0. */
static uint32_t ptx_type_bytes(const ptx_token *token)
{
    static const struct {
        const char *end;
        uint32_t bytes;
    } sizes[] = {{"128", 16}, {"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}};
    size_t i;
    if (ptx_is(token, ".texref") || ptx_is(token, ".samplerref") || ptx_is(token, ".surfref"))
        return PTX_WORD;
    if (token->bytes < 3 || token->text[0] != '.' || !memchr("usbf", token->text[1], 4))
        return 0;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (token->bytes == 2 + strlen(sizes[i].end) &&
            !memcmp(token->text + 2, sizes[i].end, token->bytes - 2))
            return sizes[i].bytes;
    return 0;
}

/* A declaration: ".align 8 .b8 name[56]". */
typedef struct ptx_variable {
    const char *name;
    size_t name_bytes;
    uint64_t element_bytes, count;
    uint32_t align;
    int is_open; /* the first dimension is empty: "name[]" */
} ptx_variable;

static uint32_t ptx_bytes(const ptx_variable *one)
{
    const uint64_t bytes = one->element_bytes * one->count;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* From "[" to its "]". */
static void ptx_dimension(ptx_text *text, ptx_variable *out)
{
    ptx_next(text);
    if (ptx_is(&text->token, "]"))
        out->is_open = 1;
    else
        out->count *= ptx_number(&text->token);
    if (out->count > UINT32_MAX)
        out->count = UINT32_MAX;
    while (!ptx_at_end(text) && !ptx_is(&text->token, "]"))
        ptx_next(text);
}

/* From ".attribute" to its last ")": .attribute(.managed, .unified(1, 2)) */
static void ptx_attribute(ptx_text *text)
{
    size_t depth = 0;
    do {
        ptx_next(text);
        if (ptx_is(&text->token, "("))
            depth++;
        else if (ptx_is(&text->token, ")"))
            depth--;
    } while (depth && !ptx_at_end(text));
}

/* Reads up to ',' ')' ';' '=' or the end. What is in `out` stays if nothing else is said: "x, y" are of one type.
 * Returns 0: no name, or not as expected. */
static int ptx_declared(ptx_text *text, ptx_variable *out)
{
    uint64_t lanes = 1;
    int pointee = 0; /* the next .align is of what a pointer points to */
    out->name = NULL;
    out->count = 1;
    out->is_open = 0;
    while (!ptx_at_end(text) && (text->token.is_word || ptx_is(&text->token, "["))) {
        if (ptx_is(&text->token, ".align")) {
            ptx_next(text);
            if (!pointee && ptx_number(&text->token) > out->align)
                out->align = (uint32_t)ptx_number(&text->token);
        } else if (ptx_is(&text->token, ".ptr")) {
            pointee = 1;
        } else if (ptx_is(&text->token, ".attribute")) {
            ptx_attribute(text);
        } else if (ptx_is(&text->token, ".v2") || ptx_is(&text->token, ".v4") || ptx_is(&text->token, ".v8")) {
            lanes = (uint64_t)(text->token.text[2] - '0');
        } else if (ptx_type_bytes(&text->token)) {
            out->element_bytes = lanes * ptx_type_bytes(&text->token);
        } else if (ptx_is(&text->token, "[")) {
            ptx_dimension(text, out);
        } else if (text->token.text[0] != '.') {
            out->name = text->token.text;
            out->name_bytes = text->token.bytes;
        }
        ptx_next(text);
    }
    if (out->element_bytes > out->align)
        out->align = (uint32_t)out->element_bytes;
    return out->name && out->element_bytes && out->align <= 128;
}

/* --------------------------------------------------------------------------- >>names */
static uint32_t ptx_hash(const char *text, size_t bytes)
{
    uint32_t hash = 2166136261u;
    size_t i;
    for (i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

static void ptx_rehash(ptx_kernel *kernel)
{
    size_t count = kernel->bucket_count ? 2 * kernel->bucket_count : 256, i, at;
    uint32_t *buckets = (uint32_t *)calloc(count, sizeof *buckets);
    if (!buckets) {
        kernel->failed = 1;
        return;
    }
    for (i = 0; i < kernel->register_count; i++) {
        at = ptx_hash(kernel->registers[i].name, kernel->registers[i].bytes) & (count - 1);
        while (buckets[at])
            at = (at + 1) & (count - 1);
        buckets[at] = (uint32_t)i + 1;
    }
    free(kernel->buckets);
    kernel->buckets = buckets;
    kernel->bucket_count = count;
}

/* The index of a register. Any word that is no number is one. */
static uint32_t ptx_register_of(ptx_kernel *kernel, const ptx_token *token)
{
    size_t at;
    if (2 * (kernel->register_count + 1) > kernel->bucket_count)
        ptx_rehash(kernel);
    kernel->registers = (ptx_register *)ptx_more(kernel, kernel->registers, kernel->register_count,
                                                 &kernel->register_room, sizeof *kernel->registers);
    if (kernel->failed)
        return 0;
    at = ptx_hash(token->text, token->bytes) & (kernel->bucket_count - 1);
    for (; kernel->buckets[at]; at = (at + 1) & (kernel->bucket_count - 1)) {
        const ptx_register *one = &kernel->registers[kernel->buckets[at] - 1];
        if (one->bytes == token->bytes && !memcmp(one->name, token->text, token->bytes))
            return kernel->buckets[at] - 1;
    }
    kernel->registers[kernel->register_count].name = token->text;
    kernel->registers[kernel->register_count].bytes = token->bytes;
    kernel->buckets[at] = (uint32_t)kernel->register_count + 1;
    return (uint32_t)kernel->register_count++;
}

/* A parameter's name is the register of its number, so that names are found once. Returns 0: it is there already,
 * or no memory. */
static int ptx_add_parameter(ptx_kernel *kernel, const ptx_variable *one, uint32_t offset)
{
    ptx_token name;
    ptx_parameter *list = (ptx_parameter *)ptx_more(kernel, kernel->parameters, kernel->parameter_count,
                                                    &kernel->parameter_room, sizeof *list);
    kernel->parameters = list;
    memset(&name, 0, sizeof name);
    name.text = one->name;
    name.bytes = one->name_bytes;
    if (kernel->failed || ptx_register_of(kernel, &name) != kernel->parameter_count || kernel->failed)
        return 0;
    list[kernel->parameter_count].offset = offset;
    list[kernel->parameter_count++].bytes = ptx_bytes(one);
    kernel->bytes = offset + ptx_bytes(one);
    return 1;
}

/* The parameters, from behind "(". Each begins at a multiple of its alignment. Returns 0: not as expected. */
static int ptx_parameters(ptx_text *text, ptx_kernel *kernel)
{
    while (!ptx_is(&text->token, ")")) {
        ptx_variable one;
        uint32_t offset;
        memset(&one, 0, sizeof one);
        if (ptx_at_end(text) || !ptx_declared(text, &one) || one.is_open)
            return 0;
        offset = (kernel->bytes + one.align - 1) / one.align * one.align;
        if (offset > PTX_MOST_PARAMETERS || ptx_bytes(&one) > PTX_MOST_PARAMETERS - offset ||
            !ptx_add_parameter(kernel, &one, offset))
            return 0;
        if (ptx_is(&text->token, ","))
            ptx_next(text);
        else if (!ptx_is(&text->token, ")"))
            return 0;
    }
    ptx_next(text);
    return 1;
}

static void ptx_add_edge(ptx_kernel *kernel, uint32_t from, uint32_t to, int is_number)
{
    ptx_edge edge = {from, to, (uint32_t)is_number};
    kernel->edges = (ptx_edge *)ptx_more(kernel, kernel->edges, kernel->edge_count, &kernel->edge_room,
                                         sizeof edge);
    if (!kernel->failed)
        kernel->edges[kernel->edge_count++] = edge;
}

static void ptx_add_load(ptx_kernel *kernel, uint32_t word, uint32_t to)
{
    ptx_edge edge = {word, to, 0};
    kernel->loads = (ptx_edge *)ptx_more(kernel, kernel->loads, kernel->load_count, &kernel->load_room,
                                         sizeof edge);
    if (!kernel->failed)
        kernel->loads[kernel->load_count++] = edge;
}

static void ptx_add_use(ptx_kernel *kernel, uint32_t index, uint8_t how)
{
    ptx_use use = {index, how};
    kernel->uses = (ptx_use *)ptx_more(kernel, kernel->uses, kernel->use_count, &kernel->use_room,
                                       sizeof use);
    if (!kernel->failed)
        kernel->uses[kernel->use_count++] = use;
}

/* --------------------------------------------------------------------- >>instructions */
/* One operand: its registers, whether they are in [], and a parameter with an offset. */
typedef struct ptx_operand {
    uint32_t registers[PTX_MOST_NAMES];
    int count;
    int is_address;
    const ptx_parameter *parameter;
    uint64_t offset;
    int has_offset, is_odd; /* is_odd: more than a name and one number behind '+' */
} ptx_operand;

typedef struct ptx_instruction {
    ptx_token name;
    ptx_operand operands[PTX_MOST_OPERANDS];
    int count;
    int too_long;
} ptx_instruction;

static int ptx_is_number(const ptx_token *token)
{
    return token->text[0] >= '0' && token->text[0] <= '9';
}

static void ptx_operand_word(ptx_kernel *kernel, ptx_operand *operand, const ptx_token *token)
{
    uint32_t index;
    if (ptx_is_number(token)) {
        operand->is_odd |= operand->has_offset;
        operand->has_offset = 1;
        operand->offset = ptx_number(token);
        return;
    }
    index = ptx_register_of(kernel, token);
    if (kernel->failed)
        return;
    if (index < kernel->parameter_count)
        operand->parameter = &kernel->parameters[index];
    else if (operand->count < PTX_MOST_NAMES)
        operand->registers[operand->count++] = index;
}

/* All but the registers, of which none are counted. */
static void ptx_clear(ptx_instruction *it)
{
    int i;
    for (i = 0; i < PTX_MOST_OPERANDS; i++) {
        ptx_operand *operand = &it->operands[i];
        operand->count = operand->is_address = operand->has_offset = operand->is_odd = 0;
        operand->parameter = NULL;
        operand->offset = 0;
    }
    it->count = 1;
    it->too_long = 0;
}

/* Reads the operands up to ';'. Commas in {} or [] or () divide nothing. */
static void ptx_operands(ptx_text *text, ptx_kernel *kernel, ptx_instruction *out)
{
    ptx_operand *operand = &out->operands[0];
    int depth = 0;
    ptx_clear(out);
    for (; !ptx_at_end(text) && !ptx_is(&text->token, ";"); ptx_next(text)) {
        char sign = text->token.is_word ? 'w' : text->token.text[0];
        if (sign == 'w')
            ptx_operand_word(kernel, operand, &text->token);
        else if (sign == '{' || sign == '[' || sign == '(')
            depth++;
        else if ((sign == '}' || sign == ']' || sign == ')') && depth)
            depth--;
        else if (sign == ',' && !depth) {
            if (out->count == PTX_MOST_OPERANDS) {
                out->too_long = 1;
                continue;
            }
            operand = &out->operands[out->count++];
        }
        operand->is_address |= sign == '[';
        operand->is_odd |= sign == '-' || sign == '*' || sign == '<' || sign == '~';
        out->too_long |= operand->count == PTX_MOST_NAMES;
    }
    ptx_next(text);
}

static void ptx_use_operand(ptx_kernel *kernel, const ptx_operand *operand, uint8_t how)
{
    int i;
    for (i = 0; i < operand->count; i++)
        ptx_add_use(kernel, operand->registers[i], how);
}

/* All words are not known. */
static void ptx_not_judged(ptx_kernel *kernel)
{
    memset(kernel->words, CAI_KERNEL_UNKNOWN, kernel->bytes / PTX_WORD + 1);
    kernel->follows |= CAI_KERNEL_UNREAD;
}

static void ptx_parameter_escapes(ptx_kernel *kernel, const ptx_parameter *parameter)
{
    uint32_t at;
    for (at = parameter->offset / PTX_WORD; at * PTX_WORD < parameter->offset + parameter->bytes; at++)
        kernel->words[at] |= CAI_KERNEL_UNKNOWN;
}

/* The last part of an instruction's name: ".u64". */
static ptx_token ptx_type_of(const ptx_token *name)
{
    ptx_token type = *name;
    size_t dot = name->bytes - 1;
    while (dot && name->text[dot] != '.')
        dot--;
    type.text = name->text + dot;
    type.bytes = name->bytes - dot;
    return type;
}

/* The bit behind those of the parameters' words: a value that may be a pointer, loaded from memory. */
static uint32_t ptx_memory_bit(const ptx_kernel *kernel)
{
    return kernel->bytes / PTX_WORD + 1;
}

/* What is loaded may be a pointer if it has 8 bytes. */
static void ptx_load_memory(ptx_kernel *kernel, const ptx_instruction *it)
{
    const ptx_token type = ptx_type_of(&it->name);
    int i;
    if (ptx_type_bytes(&type) < PTX_WORD || type.text[1] == 'f')
        return;
    for (i = 0; i < it->operands[0].count; i++)
        ptx_add_load(kernel, ptx_memory_bit(kernel), it->operands[0].registers[i]);
}

/* ld.param: the values come from the parameter's words. */
static void ptx_load_parameter(ptx_kernel *kernel, const ptx_instruction *it)
{
    const ptx_operand *to = &it->operands[0], *from = &it->operands[1];
    const ptx_token type = ptx_type_of(&it->name);
    uint32_t bytes, at;
    int i;
    bytes = ptx_type_bytes(&type) ? ptx_type_bytes(&type) : PTX_WORD;
    if (!from->parameter)
        return; /* what a function returned: what went in is marked already */
    if (from->count || from->is_odd || from->offset >= from->parameter->bytes) {
        ptx_parameter_escapes(kernel, from->parameter);
        return;
    }
    at = from->parameter->offset + (uint32_t)from->offset;
    for (i = 0; i < to->count; i++, at += bytes) {
        uint32_t word;
        for (word = at / PTX_WORD; word <= (at + bytes - 1) / PTX_WORD && word * PTX_WORD < kernel->bytes; word++)
            ptx_add_load(kernel, word, to->registers[i]);
    }
}

/* 1: an operand is a number and no pointer: an index that is multiplied by the size of an element. */
static int ptx_scales(const ptx_token *name, int operand)
{
    static const char *const scaling[] = {"mul", "shl.", "shr.", "div.", "rem.", "bfe.", "popc.", "clz."};
    size_t i;
    for (i = 0; i < sizeof scaling / sizeof *scaling; i++)
        if (ptx_begins(name, scaling[i]))
            return 1;
    return ptx_begins(name, "mad") && operand < 3;
}

/* All but the first operand goes into the first. */
static void ptx_compute(ptx_kernel *kernel, const ptx_instruction *it)
{
    int to, from, operand;
    for (operand = 1; operand < it->count; operand++)
        for (to = 0; to < it->operands[0].count; to++)
            for (from = 0; from < it->operands[operand].count; from++)
                ptx_add_edge(kernel, it->operands[operand].registers[from], it->operands[0].registers[to],
                             ptx_scales(&it->name, operand));
}

/* The memory of a load or store that is no memory of the device's allocations. */
static int ptx_is_inner(const ptx_token *name)
{
    return ptx_has(name, ".shared") || ptx_has(name, ".local");
}

/* Addresses are used in `how`; the other operands from `first` on get out of sight. */
static void ptx_access(ptx_kernel *kernel, const ptx_instruction *it, int first, uint8_t how)
{
    int i;
    for (i = 0; i < it->count; i++) {
        if (!it->operands[i].is_address) {
            if (i >= first)
                ptx_use_operand(kernel, &it->operands[i], CAI_KERNEL_UNKNOWN);
        } else if (!ptx_is_inner(&it->name)) {
            ptx_use_operand(kernel, &it->operands[i], how);
        }
    }
}

static void ptx_unknown(ptx_kernel *kernel, const ptx_instruction *it)
{
    int i;
    for (i = 0; i < it->count; i++)
        ptx_use_operand(kernel, &it->operands[i], CAI_KERNEL_UNKNOWN);
    ptx_compute(kernel, it);
}

/* cp.async: "[shared], [global]", and in bulk also "[global], [shared]". The name has both in this order. */
static void ptx_copy(ptx_kernel *kernel, const ptx_instruction *it)
{
    static const char to_global[] = "cp.async.bulk.global.shared";
    int plain = ptx_begins(&it->name, "cp.async.ca.shared") || ptx_begins(&it->name, "cp.async.cg.shared");
    if (it->count < 2) {
        ptx_unknown(kernel, it); /* cp.async.wait_all and others have no address */
    } else if (plain || ptx_begins(&it->name, "cp.async.bulk.shared::c")) {
        ptx_use_operand(kernel, &it->operands[1], CAI_KERNEL_READS);
    } else if (ptx_begins(&it->name, to_global)) {
        ptx_use_operand(kernel, &it->operands[0], CAI_KERNEL_WRITES);
    } else {
        ptx_unknown(kernel, it);
    }
}

static int ptx_has_address(const ptx_instruction *it)
{
    int i;
    for (i = 0; i < it->count; i++)
        if (it->operands[i].is_address)
            return 1;
    return 0;
}

/* The results of these are no addresses. */
static int ptx_compares(const ptx_token *name)
{
    return ptx_begins(name, "setp.") || ptx_begins(name, "isspacep.") || ptx_begins(name, "vote.") ||
           ptx_begins(name, "match.");
}

/* What a function does is not known, but for those that write text and end the kernel. */
static void ptx_calls(ptx_kernel *kernel, const ptx_instruction *it)
{
    static const char *const harmless[] = {"vprintf", "__assertfail"};
    int operand, i;
    size_t k;
    for (operand = 0; operand < it->count; operand++)
        for (i = 0; i < it->operands[operand].count; i++)
            for (k = 0; k < sizeof harmless / sizeof *harmless; k++) {
                const ptx_register *one = &kernel->registers[it->operands[operand].registers[i]];
                if (one->bytes == strlen(harmless[k]) && !memcmp(one->name, harmless[k], one->bytes))
                    return;
            }
    kernel->follows |= CAI_KERNEL_UNREAD;
}

static void ptx_instruct(ptx_kernel *kernel, const ptx_instruction *it)
{
    const ptx_token *name = &it->name;
    int i;
    if (ptx_begins(name, "ld.") || ptx_begins(name, "ldu.") || ptx_begins(name, "atom."))
        if (!ptx_begins(name, "ld.param"))
            ptx_load_memory(kernel, it);
    if (ptx_begins(name, "call"))
        ptx_calls(kernel, it);
    for (i = 0; i < it->count; i++)
        if (it->operands[i].parameter && !ptx_begins(name, "ld.param"))
            ptx_parameter_escapes(kernel, it->operands[i].parameter);
    if (it->too_long)
        ptx_not_judged(kernel);
    else if (ptx_begins(name, "ld.param"))
        ptx_load_parameter(kernel, it);
    else if (ptx_begins(name, "ld.") || ptx_begins(name, "ldu.") || ptx_begins(name, "wmma.load."))
        ptx_access(kernel, it, 1, CAI_KERNEL_READS);
    else if (ptx_begins(name, "st.param"))
        ptx_unknown(kernel, it);
    else if (ptx_begins(name, "st.") || ptx_begins(name, "wmma.store."))
        ptx_access(kernel, it, 0, CAI_KERNEL_WRITES);
    else if (ptx_begins(name, "red."))
        ptx_access(kernel, it, 0, CAI_KERNEL_READS | CAI_KERNEL_WRITES);
    else if (ptx_begins(name, "atom."))
        ptx_access(kernel, it, 1, CAI_KERNEL_READS | CAI_KERNEL_WRITES);
    else if (ptx_begins(name, "cp."))
        ptx_copy(kernel, it);
    else if (ptx_begins(name, "prefetch") || ptx_compares(name))
        return;
    else if (ptx_begins(name, "call") || ptx_has_address(it))
        ptx_unknown(kernel, it);
    else
        ptx_compute(kernel, it);
}

/* The body, from behind its "{". */
static void ptx_body(ptx_text *text, ptx_kernel *kernel)
{
    ptx_instruction it;
    size_t depth = 1;
    while (!ptx_at_end(text) && depth && !kernel->failed) {
        if (ptx_is(&text->token, "{") || ptx_is(&text->token, "}")) {
            depth = ptx_is(&text->token, "{") ? depth + 1 : depth - 1;
            ptx_next(text);
        } else if (ptx_is(&text->token, ".loc") || ptx_is(&text->token, ".file")) {
            ptx_skip_line(text);
        } else if (ptx_is(&text->token, "@")) { /* a predicate: @%p1 or @!%p1 */
            ptx_next(text);
            if (ptx_is(&text->token, "!"))
                ptx_next(text);
            ptx_next(text);
        } else {
            it.name = text->token;
            ptx_next(text);
            if (ptx_is(&text->token, ":")) { /* a label */
                ptx_next(text);
                continue;
            }
            ptx_operands(text, kernel, &it);
            if (it.name.is_word && it.name.text[0] != '.')
                ptx_instruct(kernel, &it);
            else if (!it.name.is_word && !ptx_is(&it.name, ";"))
                ptx_not_judged(kernel);
        }
    }
    if (depth || !(ptx_at_end(text) || ptx_begins(&text->token, ".")))
        ptx_not_judged(kernel); /* the body has no end, or an end too many */
}

/* -------------------------------------------------------------------------- >>result */
/* What each register comes from, as bits of words, until nothing is added. Returns 0: too much. */
static int ptx_follow(const ptx_kernel *kernel, uint64_t *from, size_t row)
{
    const uint32_t memory = ptx_memory_bit(kernel);
    int round, changed = 1;
    size_t i, k;
    for (i = 0; i < kernel->load_count; i++)
        from[kernel->loads[i].to * row + kernel->loads[i].from / 64] |= (uint64_t)1
                                                                         << kernel->loads[i].from % 64;
    for (round = 0; changed && round < PTX_MOST_ROUNDS; round++) {
        changed = 0;
        for (i = 0; i < kernel->edge_count; i++)
            for (k = 0; k < row; k++) {
                const int without = kernel->edges[i].is_number && k == memory / 64;
                uint64_t more = from[kernel->edges[i].from * row + k] & ~((uint64_t)without << memory % 64);
                uint64_t *to = &from[kernel->edges[i].to * row + k];
                changed |= (more & ~*to) != 0;
                *to |= more;
            }
    }
    return !changed;
}

/* The uses of words, of those of registers. */
static void ptx_judge(ptx_kernel *kernel)
{
    size_t words = kernel->bytes / PTX_WORD + 1, row = words / 64 + 1, i, word;
    uint64_t *from = NULL;
    if (kernel->register_count * row * 8 <= PTX_MOST_CELLS)
        from = (uint64_t *)calloc(kernel->register_count * row + 1, sizeof *from);
    if (!from || !ptx_follow(kernel, from, row)) {
        ptx_not_judged(kernel);
        free(from);
        return;
    }
    for (i = 0; i < kernel->use_count; i++)
        if (kernel->uses[i].how != CAI_KERNEL_UNKNOWN &&
            from[kernel->uses[i].index * row + words / 64] >> words % 64 & 1)
            kernel->follows |= CAI_KERNEL_FOLLOWS;
    for (i = 0; i < kernel->use_count; i++)
        for (word = 0; word < words; word++)
            if (from[kernel->uses[i].index * row + word / 64] >> word % 64 & 1)
                kernel->words[word] |= kernel->uses[i].how;
    free(from);
}

static int ptx_finish(const cai_ptx_visitor *visitor, const ptx_token *name, ptx_kernel *kernel)
{
    cai_kernel_parameter *list = (cai_kernel_parameter *)calloc(kernel->parameter_count + 1, sizeof *list);
    size_t i;
    int good;
    if (!list)
        return 0;
    for (i = 0; i < kernel->parameter_count; i++) {
        list[i].offset = kernel->parameters[i].offset;
        list[i].bytes = kernel->parameters[i].bytes;
    }
    ptx_judge(kernel);
    good = visitor->kernel(visitor->context, name->text, name->bytes, list, (int32_t)kernel->parameter_count,
                           kernel->bytes, kernel->words, kernel->follows);
    free(list);
    return good;
}

/* 1: the kernel names a variable of the text. */
static int ptx_names_global(const ptx_kernel *kernel, const ptx_globals *globals)
{
    size_t i, at;
    for (i = 0; kernel->bucket_count && i < globals->count; i++) {
        const ptx_token *name = &globals->names[i];
        at = ptx_hash(name->text, name->bytes) & (kernel->bucket_count - 1);
        for (; kernel->buckets[at]; at = (at + 1) & (kernel->bucket_count - 1)) {
            const ptx_register *one = &kernel->registers[kernel->buckets[at] - 1];
            if (one->bytes == name->bytes && !memcmp(one->name, name->text, name->bytes))
                return 1;
        }
    }
    return 0;
}

/* From behind ".entry". A body that has no end is not judged. */
static int ptx_entry(ptx_text *text, const cai_ptx_visitor *visitor, const ptx_globals *globals)
{
    ptx_token name = text->token;
    ptx_kernel kernel;
    int good;
    memset(&kernel, 0, sizeof kernel);
    ptx_next(text);
    good = name.is_word;
    if (good && ptx_is(&text->token, "(")) {
        ptx_next(text);
        good = ptx_parameters(text, &kernel);
    }
    while (good && !ptx_at_end(text) && !ptx_is(&text->token, "{") && !ptx_is(&text->token, ";"))
        ptx_next(text);
    if (good && ptx_is(&text->token, "{")) {
        kernel.words = (uint8_t *)calloc(kernel.bytes / PTX_WORD + 2, 1);
        ptx_next(text);
        if (kernel.words)
            ptx_body(text, &kernel);
        if (ptx_names_global(&kernel, globals))
            kernel.follows |= CAI_KERNEL_GLOBALS;
        good = kernel.words && !kernel.failed && ptx_finish(visitor, &name, &kernel);
    }
    free(kernel.parameters);
    free(kernel.registers);
    free(kernel.buckets);
    free(kernel.edges);
    free(kernel.loads);
    free(kernel.uses);
    free(kernel.words);
    return good;
}

/* From "=" to the ',' or ';' behind the values. Returns how many are of the first dimension: 2 of {{1, 2}, {3}}. */
static uint64_t ptx_values(ptx_text *text)
{
    uint64_t count = 0;
    int depth = 0, begun = 0; /* begun: there is something in the value that is read */
    for (ptx_next(text); !ptx_at_end(text) && !ptx_is(&text->token, ";"); ptx_next(text)) {
        const char sign = text->token.text[0];
        if (sign == ',' && depth == 0)
            break;
        if (sign == ',' && depth == 1) {
            begun = 0;
        } else if (depth && !begun && sign != '}') {
            begun = 1;
            count++;
        }
        depth += (sign == '{' || sign == '(') - (sign == '}' || sign == ')');
    }
    return count;
}

/* Remembers a variable that the program may access. Not those that the compiler made: texts, tables of functions of
 * the mathematical library, and tables that only this text knows. Returns 0: no memory. */
static int ptx_remember(ptx_globals *globals, const ptx_variable *one, int is_table)
{
    static const char *const compilers[] = {"$str", "__unnamed_", "__cudart_", "__internal_"};
    ptx_token name;
    size_t i;
    memset(&name, 0, sizeof name);
    name.text = one->name;
    name.bytes = one->name_bytes;
    for (i = 0; i < sizeof compilers / sizeof *compilers; i++)
        is_table |= ptx_begins(&name, compilers[i]);
    if (is_table)
        return 1;
    if (globals->count == globals->room) {
        ptx_token *more = (ptx_token *)realloc(globals->names, (2 * globals->room + 16) * sizeof *more);
        if (!more)
            return 0;
        globals->names = more;
        globals->room = 2 * globals->room + 16;
    }
    globals->names[globals->count++] = name;
    return 1;
}

/* One or more variables of one type, up to ';'. local: no other text knows them. */
static int ptx_global(ptx_text *text, const cai_ptx_visitor *visitor, ptx_globals *globals, int local)
{
    const int constant = ptx_is(&text->token, ".const");
    ptx_variable one;
    memset(&one, 0, sizeof one);
    do {
        uint64_t values = 0;
        ptx_next(text);
        if (!ptx_declared(text, &one))
            return 0;
        if (ptx_is(&text->token, "="))
            values = ptx_values(text);
        if (!ptx_remember(globals, &one, constant && local && values))
            return 0;
        if (one.is_open)
            one.count *= values < UINT32_MAX ? values : UINT32_MAX;
        if (!visitor->global(visitor->context, one.name, one.name_bytes, ptx_bytes(&one), constant))
            return 0;
    } while (ptx_is(&text->token, ","));
    return ptx_is(&text->token, ";");
}

int cai_ptx_read(const char *data, size_t bytes, const cai_ptx_visitor *visitor)
{
    const char *zero = (const char *)memchr(data, 0, bytes);
    ptx_text text;
    ptx_globals globals;
    int good = 1, known = 0, local = 1;
    memset(&globals, 0, sizeof globals);
    memset(&text, 0, sizeof text);
    text.at = data;
    text.end = zero ? zero : data + bytes;
    ptx_next(&text);
    while (good && !ptx_at_end(&text)) {
        known |= ptx_is(&text.token, ".version");
        if (ptx_is(&text.token, ".entry")) {
            ptx_next(&text);
            good = ptx_entry(&text, visitor, &globals);
        } else if (ptx_is(&text.token, ".global") || ptx_is(&text.token, ".const")) {
            good = ptx_global(&text, visitor, &globals, local);
        } else if (ptx_is(&text.token, "{")) {
            ptx_skip_braces(&text); /* a function, or a section */
        } else if (ptx_is(&text.token, ".loc") || ptx_is(&text.token, ".file")) {
            ptx_skip_line(&text);
        } else {
            local = !ptx_is(&text.token, ".visible") && !ptx_is(&text.token, ".extern");
            ptx_next(&text);
        }
    }
    free(globals.names);
    return good && known;
}
