/* runner.h - runs the cases of a file: each call's log, status and error, exactly.
 * SPDX-License-Identifier: MIT
 *
 * It also alters what they expect. A program adds its own commands, and what it makes at the beginning of each
 * case and gives back at its end: struct runner. */
#ifndef RUNNER_H
#define RUNNER_H

#include "commands.h"

/* ----------------------------------------------------------------- commands */

/* A call of the library: its log and status are compared. */
typedef struct call_entry {
    const char *name;
    cai_status (*function)(script_words *in, cai_error *err);
} call_entry;

/* What producer, consumer and GPU do beside them, or a fact. */
typedef struct plain_entry {
    const char *name;
    void (*function)(script_words *in);
} plain_entry;

/* What a program adds; the tables end in an entry without a name. */
typedef struct runner {
    const char *name;
    const call_entry *calls;
    const plain_entry *plains;
    void (*begin)(script_words *in);
    void (*check)(script_words *in);             /* after every call */
    void (*finish)(script_words *in);            /* gives back what is left, before the pool goes */
    void (*leaks)(char *text, size_t capacity);  /* adds to the leaks of the simulation */
    void (*free)(void);
} runner;

static const runner *the_runner;

/* Calls of cai_stream.h. */
static const call_entry stream_calls[] = {
    {"begin", do_begin},   {"end", do_end},     {"finish", do_finish}, {"order", do_order},
    {"export", do_export}, {"detach", do_detach}, {"drop_event", do_drop_event}, {"push", do_push},
    {"poll", do_poll},     {"drain", do_drain}, {"forget", do_forget},   {"destroy_pool", do_destroy_pool},
    {"locate", do_locate}, {"decode", do_decode}, {"remember_thread", do_remember_thread},
    {NULL, NULL},
};

static const plain_entry stream_plains[] = {
    {"stream", do_stream},     {"context", do_context},     {"current", do_current},
    {"thread", do_thread},     {"pool", do_pool},           {"table", do_table},
    {"modes", do_modes},     {"device_reset", do_device_reset},
    {"inactive", do_inactive},
    {"warm", do_warm},         {"recreate", do_recreate},   {"destroy", do_destroy},
    {"event", do_event},       {"capture", do_capture},     {"end_capture", do_end_capture},
    {"join", do_join},         {"invalidate", do_invalidate}, {"fail", do_fail},
    {"teardown", do_teardown}, {"device_error", do_device_error}, {"pageable", do_pageable},
    {"last_error", do_last_error}, {"memory", do_memory},   {"array", do_array},
    {"kill", do_kill},         {"launch", do_launch},       {"run", do_run},
    {"move", do_move},         {"ordered", do_ordered},     {"unordered", do_unordered},
    {"launches", do_launches}, {"place", do_place},         {"location", do_location},
    {"created", do_created},   {"idle", do_idle},           {"waiting", do_waiting},
    {"open", do_open},         {"released", do_released},   {"sync", do_sync},
    {"leaves", do_leaves},     {"answers", do_answers},    {"segments", do_segments},
    {"strangers", do_strangers}, {NULL, NULL},
};

static const call_entry *find_call(const char *name, const call_entry *table)
{
    for (; table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0) return table;
    }
    return NULL;
}

static const plain_entry *find_plain(const char *name, const plain_entry *table)
{
    for (; table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0) return table;
    }
    return NULL;
}

/* The program's own commands come first. */
static const call_entry *call_named(const char *name)
{
    const call_entry *found = find_call(name, the_runner->calls);
    return found != NULL ? found : find_call(name, stream_calls);
}

static const plain_entry *plain_named(const char *name)
{
    const plain_entry *found = find_plain(name, the_runner->plains);
    return found != NULL ? found : find_plain(name, stream_plains);
}

/* -------------------------------------------------------------- alterations */

/* What the self-test does to the expectation of one command. */
enum { ALTER_NOTHING, ALTER_DROP, ALTER_CHANGE, ALTER_SWAP, ALTER_ADD, ALTER_STATUS };

typedef struct alteration {
    int kind;
    int command; /* of script.commands */
    int line;    /* of its log */
} alteration;

/* The expected lines, altered; their number. */
static int expected_lines(const script *s, int index, const alteration *a, const char **out)
{
    static char changed[WORLD_LINE + SCRIPT_TEXT];
    const script_command *command = &s->commands[index];
    const int altered = a->command == index ? a->kind : ALTER_NOTHING;
    char **log = &s->logs[command->first_log];
    int count = 0, i;
    for (i = 0; i <= command->log_count; i++) {
        const int here = altered != ALTER_NOTHING && a->line == i;
        if (here && altered == ALTER_ADD) out[count++] = "stream_synchronize X";
        if (i == command->log_count || count >= WORLD_LOG - 2) break;
        if (here && altered == ALTER_DROP) continue;
        out[count] = log[i];
        if (here && altered == ALTER_SWAP) out[count] = log[i + 1];
        if (altered == ALTER_SWAP && a->line == i - 1) out[count] = log[i - 1];
        if (here && altered == ALTER_CHANGE) {
            snprintf(changed, sizeof changed, "%s0", log[i]);
            out[count] = changed;
        }
        count++;
    }
    return count;
}

/* ------------------------------------------------------------------ compare */

/* How many lines of the rest agree, by the longest common subsequence. */
static int common[WORLD_LOG + 1][WORLD_LOG + 1];

static void show_difference(const char **expected, int count)
{
    int i, j;
    for (i = count; i >= 0; i--) {
        for (j = w.log_count; j >= 0; j--) {
            if (i == count || j == w.log_count) common[i][j] = 0;
            else if (strcmp(expected[i], w.log[j]) == 0) common[i][j] = common[i + 1][j + 1] + 1;
            else common[i][j] = common[i + 1][j] > common[i][j + 1] ? common[i + 1][j] : common[i][j + 1];
        }
    }
    printf("        (- expected, + made)\n");
    for (i = 0, j = 0; i < count || j < w.log_count;) {
        if (i < count && j < w.log_count && strcmp(expected[i], w.log[j]) == 0) {
            printf("          %s\n", expected[i++]);
            j++;
        } else if (j == w.log_count || (i < count && common[i + 1][j] >= common[i][j + 1])) {
            printf("        - %s\n", expected[i++]);
        } else {
            printf("        + %s\n", w.log[j++]);
        }
    }
}

static void compare_log(script_words *in, const char **expected, int count)
{
    int i;
    int equal = count == w.log_count;
    for (i = 0; equal && i < count; i++) equal = strcmp(expected[i], w.log[i]) == 0;
    if (equal) return;
    complain(in, "%s: another call log", in->word[0]);
    if (!w.quiet) show_difference(expected, count);
}

/* "text" is the whole message, "...text", "text..." and "...text..." a part of it. */
static int message_matches(const char *message, const char *pattern)
{
    char text[SCRIPT_TEXT];
    size_t length = strlen(pattern);
    const int open_start = strncmp(pattern, "...", 3) == 0;
    const int open_end = length >= 6 && strcmp(pattern + length - 3, "...") == 0;
    const char *found;
    if (open_start) pattern += 3;
    length = strlen(pattern) - (open_end ? 3 : 0);
    memcpy(text, pattern, length);
    text[length] = 0;
    found = open_start ? strstr(message, text) : strncmp(message, text, length) == 0 ? message : NULL;
    if (found == NULL) return 0;
    return open_end || strcmp(message + strlen(message) - length, text) == 0;
}

/* CAI_ERR_CUDA [400] [at 2] ["message"], or nothing: success. */
static void compare_status(script_words *in, cai_status status, const cai_error *err, int altered)
{
    script_words wanted;
    script_command rest;
    script about;
    cai_status code = CAI_OK;
    memset(&wanted, 0, sizeof wanted);
    if (in->expected != NULL) {
        memset(&about, 0, sizeof about);
        about.path = in->path;
        rest.text = in->expected;
        rest.line = in->line;
        script_split(&about, &rest, &wanted);
        code = status_word(&wanted);
    }
    if (altered) code = code == CAI_ERR_STALE ? CAI_ERR_VIEW : CAI_ERR_STALE;
    if (status != code) {
        complain(in, "%s gives %s, not %s (%s)", in->word[0], status ? cai_status_name(status) : "CAI_OK",
                 code ? cai_status_name(code) : "CAI_OK", status ? err->message : "");
        return;
    }
    if (err->code == 0x5a5a5a5a) { /* untouched: success, or the status of the work was given back */
        if (script_more(&wanted) && !script_take(&wanted, "untouched"))
            complain(in, "no error was stored");
        return;
    }
    if (err->code != status) complain(in, "err.code is %d, the status %d", err->code, status);
    if (script_more(&wanted) && wanted.word[wanted.at][0] >= '0' && wanted.word[wanted.at][0] <= '9')
        same(in, "err.native", (uint64_t)(int64_t)err->native, (uint64_t)script_number(&wanted));
    else if (err->native != 0)
        complain(in, "err.native is %d", err->native);
    if (script_take(&wanted, "at"))
        same(in, "err.index", (uint64_t)(int64_t)err->index, (uint64_t)script_number(&wanted));
    if (script_more(&wanted) && !message_matches(err->message, script_word(&wanted)))
        complain(in, "%s says \"%s\"", in->word[0], err->message);
    script_end(&wanted);
}

/* ------------------------------------------------------------ what always holds */

/* Is it a question that is asked of a stream only once? 1 and 2 are other streams elsewhere. */
static int is_query_of_handle(const char *line)
{
    if (strncmp(line, "stream_context ", 15) != 0 && strncmp(line, "stream_capture ", 15) != 0) return 0;
    return strstr(line, " legacy") == NULL && strstr(line, " per_thread") == NULL;
}

/* Some commands are several calls in one: an end and what keeps arrays. A begin that may release what waits
 * asks whether C captures, and asks again after the callbacks. So does an export before the host waits. */
static void check_queries(const script_words *in, int32_t waiting)
{
    int i, j, again = strcmp(in->word[0], "begin") == 0 && waiting > 0;
    if (strcmp(in->word[0], "export") == 0) again = w.pool.export_mode == CAI_MODE_HOST;
    if (strcmp(in->word[0], "poll") == 0 || strcmp(in->word[0], "drain") == 0) return;
    if (strcmp(in->word[0], "finish") == 0) return;
    for (i = 0; i < w.log_count; i++) {
        if (!is_query_of_handle(w.log[i])) continue;
        for (j = i + 1; j < w.log_count; j++) {
            if (strcmp(w.log[i], w.log[j]) != 0) continue;
            if (!again) complain(in, "asks twice: %s", w.log[i]);
            again = 0;
        }
    }
}

/* The capture mode of the thread as the table tells it, global at first; -1 while calls are made to fail. */
static int32_t capture_mode(void)
{
    int32_t mode = CAI_SIM_MODE_RELAXED, other;
    if (cai_sim_faults(w.sim) > 0 || w.cuda.capture_mode == NULL) return -1;
    if (w.cuda.capture_mode(w.cuda.self, &mode) != 0) return -1;
    other = mode;
    w.cuda.capture_mode(w.cuda.self, &other);
    return mode;
}

static void call(const script *s, int index, const alteration *a, script_words *in, const call_entry *entry)
{
    const char *expected[WORLD_LOG];
    const uint64_t context = cai_sim_current(w.sim);
    const int32_t last = cai_sim_last_error(w.sim), waiting = w.pool.waiting;
    const int altered = a->kind == ALTER_STATUS && a->command == index;
    cai_status status;
    cai_error err;
    memset(&err, 0x5a, sizeof err);
    in->at = 1;
    begin_log();
    status = entry->function(in, &err);
    script_end(in);
    take_log(in);
    compare_log(in, expected, expected_lines(s, index, a, expected));
    compare_status(in, status, &err, altered);
    if (find_call(entry->name, the_runner->calls) == NULL) check_queries(in, waiting);
    if (cai_sim_current(w.sim) != context) complain(in, "the current context is another one");
    if (cai_sim_last_error(w.sim) != last) complain(in, "CUDA's last error is another one");
    if (capture_mode() > CAI_SIM_MODE_GLOBAL)
        complain(in, "the capture mode of the thread is another one");
    the_runner->check(in);
}

/* --------------------------------------------------------------------- cases */

static void run_command(const script *s, int index, const alteration *a)
{
    const script_command *command = &s->commands[index];
    const call_entry *called;
    const plain_entry *plain;
    script_words in;
    script_split(s, command, &in);
    in.at = 1;
    w.in = &in;
    called = call_named(in.word[0]);
    if (called != NULL) {
        call(s, index, a, &in, called);
        return;
    }
    if (command->log_count > 0 || in.expected != NULL) script_bad(&in, "makes no call of the library");
    plain = plain_named(in.word[0]);
    in.at = plain != NULL;
    if (plain == NULL) script_bad(&in, "no such command");
    plain->function(&in);
    script_end(&in);
}

/* The end of every case: everything passes, all is given back, nothing is left. */
static void finish(script_words *in)
{
    char text[SCRIPT_TEXT];
    cai_error err;
    int i;
    w.in = in;
    begin_log();
    if (cai_sim_faults(w.sim) > 0) complain(in, "a failure that was asked for did not come");
    cai_sim_run(w.sim);
    the_runner->finish(in);
    if (!w.pool_gone && cai_keepalive_drain(&w.pool, &err) != CAI_OK)
        complain(in, "at the end, drain: %s", err.message);
    if (!w.pool_gone && cai_event_pool_destroy(&w.pool, &err) != CAI_OK)
        complain(in, "at the end, pool: %s", err.message);
    for (i = 0; i < w.array_count; i++) {
        held *h = &w.arrays[i];
        if (h->array != NULL && h->array->release == release_array) cai_array_release(h->array);
        if (h->released != h->owned) complain(in, "%s was released %d times", h->name, h->released);
    }
    world_clean();
    cai_sim_leaks(w.sim, text, sizeof text);
    the_runner->leaks(text, sizeof text);
    if (strcmp(text, w.leaves) != 0) complain(in, "leaves \"%s\"", text);
}

/* Runs a case up to its first failure; 1: passed. */
static int run_once(const script *s, const script_case *c, const alteration *a, int garbage, int quiet)
{
    script_words in;
    int i;
    memset(&in, 0, sizeof in);
    in.path = s->path;
    in.line = c->line;
    memcpy(in.text, c->id, sizeof c->id);
    in.word[0] = in.text;
    in.count = 1;
    world_begin(&in, garbage, quiet);
    the_runner->begin(&in);
    for (i = 0; i < c->command_count && !w.failed; i++) run_command(s, c->first_command + i, a);
    if (!w.failed) finish(&in);
    world_free();
    the_runner->free();
    return w.failed == 0;
}

/* Once with one garbage in fresh storage, then with another. */
static int run_case(const script *s, const script_case *c, const alteration *a, int quiet)
{
    return run_once(s, c, a, 0x5a, quiet) && run_once(s, c, a, 0xa5, quiet);
}

static int log_lines(const script *s, const script_case *c)
{
    int lines = 0, i;
    for (i = 0; i < c->command_count; i++) lines += s->commands[c->first_command + i].log_count;
    return lines;
}

/* 0 if two cases of the file have one id. */
static int ids_differ(const script *s)
{
    int i, j;
    for (i = 0; i < s->case_count; i++) {
        for (j = i + 1; j < s->case_count; j++) {
            if (strcmp(s->cases[i].id, s->cases[j].id) != 0) continue;
            printf("%s:%d: %s stands here again\n", s->path, s->cases[j].line, s->cases[j].id);
            return 0;
        }
    }
    return 1;
}

static int run_script(const script *s, int verbose, const char *only)
{
    const alteration nothing = {ALTER_NOTHING, -1, -1};
    int ids = 0, lines = 0, failed = 0, i;
    for (i = 0; i < s->case_count; i++) {
        const script_case *c = &s->cases[i];
        if (only != NULL && strcmp(only, c->id) != 0) continue;
        ids++;
        lines += log_lines(s, c);
        if (!run_case(s, c, &nothing, 0)) {
            printf("%s FAILED: %s\n", c->id, c->title);
            failed++;
        } else if (verbose) {
            printf("%s ok (%d log lines)\n", c->id, log_lines(s, c));
        }
    }
    failed += !ids_differ(s);
    printf("%s: %d ids, %d log lines compared, %d failed\n", s->path, ids, lines, failed);
    return failed;
}

/* ----------------------------------------------------------------- self-test */

static int is_call(const script *s, const script_command *command)
{
    script_words in;
    script_split(s, command, &in);
    return call_named(in.word[0]) != NULL;
}

/* Can this alteration be made there, and does it change anything? */
static int is_possible(const script *s, const alteration *a)
{
    const script_command *command = &s->commands[a->command];
    char **log = &s->logs[command->first_log];
    if (a->kind == ALTER_STATUS) return a->line == 0;
    if (a->kind == ALTER_ADD) return a->line <= command->log_count;
    if (a->kind == ALTER_SWAP)
        return a->line + 1 < command->log_count && strcmp(log[a->line], log[a->line + 1]) != 0;
    return a->line < command->log_count;
}

static int alter_command(const script *s, const script_case *c, int index, int *made)
{
    alteration a;
    int caught = 0;
    a.command = index;
    for (a.line = 0; a.line <= s->commands[index].log_count; a.line++) {
        for (a.kind = ALTER_DROP; a.kind <= ALTER_STATUS; a.kind++) {
            if (!is_possible(s, &a)) continue;
            ++*made;
            if (!run_case(s, c, &a, 1)) caught++;
            else printf("%s:%d: alteration %d of log line %d is not noticed\n", s->path,
                        s->commands[index].line, a.kind, a.line + 1);
        }
    }
    return caught;
}

static int self_test(const script *s)
{
    const alteration nothing = {ALTER_NOTHING, -1, -1};
    int made = 0, caught = 0, i, j;
    for (i = 0; i < s->case_count; i++) {
        const script_case *c = &s->cases[i];
        made += !run_case(s, c, &nothing, 1); /* one that fails anyway notices nothing */
        for (j = c->first_command; j < c->first_command + c->command_count; j++) {
            if (is_call(s, &s->commands[j])) caught += alter_command(s, c, j, &made);
        }
    }
    printf("%s: %d of %d alterations caught\n", s->path, caught, made);
    return caught != made || made == 0;
}

/* The main function of a program of cases. */
static int run_main(int argc, char **argv, const runner *r)
{
    int verbose = 0, testing = 0, failed = 0, files = 0, i;
    const char *only = NULL;
    the_runner = r;
    for (i = 1; i < argc; i++) {
        script s;
        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = 1;
        } else if (strcmp(argv[i], "--self-test") == 0) {
            testing = 1;
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            script_read(&s, argv[i]);
            failed += testing ? self_test(&s) : run_script(&s, verbose, only);
            script_free(&s);
            files++;
        }
    }
    if (files == 0)
        fprintf(stderr, "usage: %s [--verbose] [--self-test] [--only ID] file...\n", r->name);
    return files == 0 ? 2 : failed != 0;
}

#endif
