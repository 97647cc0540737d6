/* script.h - reads case files: cases, their commands, and the expected call log of each command.
 * SPDX-License-Identifier: MIT
 *
 * An unindented line begins a case, 4 spaces are a command, 8 spaces a line of the call log of the
 * command above; empty lines and lines that begin with # are skipped. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPT_WORDS = 48, SCRIPT_TEXT = 400 };

typedef struct script_command {
    char *text;
    int line;
    int first_log; /* its lines in script.logs */
    int log_count;
} script_command;

typedef struct script_case {
    char id[16];
    char *title;
    int line;
    int first_command; /* its commands in script.commands */
    int command_count;
} script_case;

typedef struct script {
    const char *path;
    char *bytes;
    script_case *cases;
    script_command *commands;
    char **logs;
    int case_count, command_count, log_count;
} script;

/* One command in words, and what it expects behind the "=". */
typedef struct script_words {
    const char *path;
    int line;
    int count, at;
    char text[SCRIPT_TEXT];
    char *word[SCRIPT_WORDS];
    char *expected; /* NULL: success */
} script_words;

/* ------------------------------------------------------------------ reading */

static inline void script_stop(const char *path, int line, const char *why, const char *at)
{
    fprintf(stderr, "%s:%d: %s: \"%.80s\"\n", path, line, why, at);
    exit(2);
}

static inline void *script_storage(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL) script_stop("storage", 0, "out of memory", "");
    return memory;
}

static inline char *script_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = 0;
    char *bytes;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0)
        script_stop(path, 0, "cannot be read", "");
    rewind(file);
    bytes = (char *)script_storage((size_t)size + 1, 1);
    if (fread(bytes, 1, (size_t)size, file) != (size_t)size) script_stop(path, 0, "cannot be read", "");
    fclose(file);
    return bytes;
}

static inline void script_begin_case(script *s, char *text, int line)
{
    script_case *c = &s->cases[s->case_count++];
    size_t length = strcspn(text, " ");
    if (length == 0 || length >= sizeof c->id || text[length] == 0)
        script_stop(s->path, line, "no id and title", text);
    memcpy(c->id, text, length);
    c->title = text + length + 1;
    c->line = line;
    c->first_command = s->command_count;
}

static inline void script_line(script *s, char *text, int line)
{
    script_command *command = &s->commands[s->command_count];
    const size_t indent = strspn(text, " ");
    const size_t length = strlen(text);
    if (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\r'))
        script_stop(s->path, line, "ends in a space", text);
    if (text[indent] == 0 || text[indent] == '#') return;
    if (indent == 0) {
        script_begin_case(s, text, line);
    } else if (indent == 4 && s->case_count > 0) {
        command->text = text + 4;
        command->line = line;
        command->first_log = s->log_count;
        s->command_count++;
        s->cases[s->case_count - 1].command_count++;
    } else if (indent == 8 && s->case_count > 0 && s->cases[s->case_count - 1].command_count > 0) {
        s->logs[s->log_count++] = text + 8;
        command[-1].log_count++;
    } else {
        script_stop(s->path, line, "belongs to nothing, or is indented by neither 0, 4 nor 8", text);
    }
}

static inline void script_read(script *s, const char *path)
{
    size_t lines = 1, i;
    int number = 1;
    char *text;
    memset(s, 0, sizeof *s);
    s->path = path;
    text = s->bytes = script_bytes(path);
    for (i = 0; text[i] != 0; i++) lines += text[i] == '\n';
    s->cases = (script_case *)script_storage(lines, sizeof *s->cases);
    s->commands = (script_command *)script_storage(lines, sizeof *s->commands);
    s->logs = (char **)script_storage(lines, sizeof *s->logs);
    while (*text != 0) {
        char *end = text + strcspn(text, "\n");
        const int last = *end == 0;
        *end = 0;
        script_line(s, text, number++);
        text = last ? end : end + 1;
    }
}

static inline void script_free(script *s)
{
    free(s->bytes);
    free(s->cases);
    free(s->commands);
    free(s->logs);
}

/* -------------------------------------------------------------------- words */

static inline void script_split(const script *s, const script_command *command, script_words *in)
{
    char *at = in->text, *equals;
    const size_t length = strlen(command->text);
    memset(in, 0, sizeof *in);
    in->path = s->path;
    in->line = command->line;
    if (length >= sizeof in->text) script_stop(s->path, command->line, "too long", command->text);
    memcpy(in->text, command->text, length);
    equals = strstr(in->text, " = ");
    if (equals != NULL && memchr(in->text, '"', (size_t)(equals - in->text)) == NULL) {
        *equals = 0;
        in->expected = equals + 3;
    }
    while (*at != 0) {
        if (in->count == SCRIPT_WORDS) script_stop(s->path, command->line, "too many words", command->text);
        if (*at == '"') {
            in->word[in->count++] = ++at;
            at += strcspn(at, "\"");
        } else {
            in->word[in->count++] = at;
            at += strcspn(at, " ");
        }
        if (*at != 0) *at++ = 0;
        while (*at == ' ') at++;
    }
}

static inline void script_bad(const script_words *in, const char *why)
{
    const int at = in->at < in->count ? in->at : in->count - 1;
    script_stop(in->path, in->line, why, in->word[at]);
}

static inline int script_more(const script_words *in)
{
    return in->at < in->count;
}

/* The next word, which must be there. */
static inline const char *script_word(script_words *in)
{
    if (!script_more(in)) script_bad(in, "a word is missing behind");
    return in->word[in->at++];
}

/* Takes the next word if it is this one. */
static inline int script_take(script_words *in, const char *word)
{
    if (!script_more(in) || strcmp(in->word[in->at], word) != 0) return 0;
    in->at++;
    return 1;
}

static inline int64_t script_number(script_words *in)
{
    const char *word = script_word(in);
    char *end;
    const long long value = strtoll(word, &end, 0);
    if (end == word || *end != 0) {
        in->at--;
        script_bad(in, "not a number");
    }
    return value;
}

static inline void script_end(const script_words *in)
{
    if (script_more(in)) script_bad(in, "not understood");
}

#endif
