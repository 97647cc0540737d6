/* world.h - the simulated machine that one case runs on, and the names that the case gives to things.
 * SPDX-License-Identifier: MIT
 *
 * Two devices, whose primary contexts are c1 and c2; host thread 1, with c1 current; a pool with a keep-alive
 * list of 4 places. */
#ifndef WORLD_H
#define WORLD_H

#include <stdarg.h>

#include "cai_sim.h"
#include "cai_stream.h"
#include "script.h"

enum { WORLD_NAME = 24, WORLD_THINGS = 300, WORLD_ARRAYS = 48, WORLD_PLACES = 80, WORLD_LINE = 160 };
enum { WORLD_LOG = 512, WORLD_EVENTS = 400, WORLD_BYTES = 1024, WORLD_THREADS = 8 };

/* A stream, context, event, memory or operation that the case named. */
typedef struct thing {
    char name[WORLD_NAME];
    char sim[WORLD_NAME]; /* how the log of the simulation calls it; "" for host memory and operations */
    char kind;            /* 's', 'c', 'e', 'm', 'h' for host memory, 'o' for an operation */
    int gone;             /* destroyed or freed by the case */
    uint64_t handle, context, bytes;
    void *host;
} thing;

/* An array of the case. */
typedef struct held {
    char name[WORLD_NAME];
    cai_array *array; /* on the heap, so that a use after `kill` is found */
    uint64_t data;
    int owned, released;
    char wish; /* what its release callback does: 'p' polls, 'd' drains */
} held;

typedef struct opened {
    char name[WORLD_NAME];
    cai_exchange *ex;
} opened;

typedef struct world {
    cai_sim *sim;
    cai_cuda cuda;
    cai_event_pool pool;
    cai_keepalive places[WORLD_PLACES];
    thing things[WORLD_THINGS];
    held arrays[WORLD_ARRAYS];
    opened exchanges[WORLD_THREADS];
    int thing_count, array_count, exchange_count;
    int streams, contexts, events, allocations; /* that the simulation has named so far */
    int created;                                /* events that the pool made since the last `warm` */
    int recorded[WORLD_EVENTS];                 /* by the number in the name */
    int threads[WORLD_THREADS];                 /* met before */
    int pool_gone, failed, quiet;
    int garbage; /* the byte of which fresh storage is full */
    const script_words *in; /* the command that runs */
    char released[SCRIPT_TEXT];                 /* names, in the order of the releases */
    char leaves[SCRIPT_TEXT];                   /* what may be left behind */
    cai_location location;
    int32_t decoded_sync;
    uint64_t decoded_stream;
    int log_count;
    char log[WORLD_LOG][WORLD_LINE]; /* of the last call, in the names of the case */
} world;

static world w;

/* ------------------------------------------------------------------ reports */

#if defined(__GNUC__) || defined(__clang__)
#define WORLD_FORMAT __attribute__((format(printf, 2, 3)))
#else
#define WORLD_FORMAT
#endif

static void complain(const script_words *in, const char *format, ...) WORLD_FORMAT;

/* Says what is wrong with the case; nothing in the runs of the self-test. */
static void complain(const script_words *in, const char *format, ...)
{
    va_list arguments;
    w.failed++;
    if (w.quiet) return;
    printf("%s:%d: ", in->path, in->line);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

/* ------------------------------------------------------------------- things */

static void copy_name(script_words *in, char *to, const char *name)
{
    if (strlen(name) >= WORLD_NAME) script_bad(in, "too long a name before");
    memcpy(to, name, strlen(name) + 1);
}

static thing *find_thing(const char *name, char kind)
{
    int i;
    for (i = 0; i < w.thing_count; i++) {
        if (w.things[i].kind == kind && strcmp(w.things[i].name, name) == 0) return &w.things[i];
    }
    return NULL;
}

static thing *add_thing(script_words *in, const char *name, char kind, uint64_t handle)
{
    thing *t = &w.things[w.thing_count];
    if (w.thing_count >= WORLD_THINGS - 1) script_bad(in, "too many things before");
    if (kind != 'o' && handle == 0) script_bad(in, "the simulation could not make it, before");
    w.thing_count++;
    memset(t, 0, sizeof *t);
    copy_name(in, t->name, name);
    t->kind = kind;
    t->handle = handle;
    t->context = cai_sim_current(w.sim);
    return t;
}

static thing *thing_word(script_words *in, char kind)
{
    thing *t = find_thing(script_word(in), kind);
    if (t == NULL) {
        in->at--;
        script_bad(in, "not known here");
    }
    return t;
}

static held *array_word(script_words *in)
{
    const char *name = script_word(in);
    int i;
    for (i = 0; i < w.array_count; i++) {
        if (strcmp(w.arrays[i].name, name) == 0 && w.arrays[i].array != NULL) return &w.arrays[i];
    }
    in->at--;
    script_bad(in, "no such array, or killed");
    return NULL;
}

/* A stream: a name, a number (0, 1, 2, 3, -1, ...) or what CAI_STREAM gives. */
static uint64_t stream_word(script_words *in)
{
    const thing *t;
    const char *word = script_word(in);
    in->at--;
    if ((word[0] >= '0' && word[0] <= '9') || word[0] == '-') return (uint64_t)script_number(in);
    if (script_take(in, "CAI_STREAM(NULL)")) return CAI_STREAM(NULL);
    if (script_take(in, "CAI_STREAM(NULL)/per-thread")) return caller_per_thread_number(NULL);
    t = thing_word(in, 's');
    return t->handle;
}

/* `c3` or `device 1`: a context; 0 if the next words say none. */
static uint64_t context_words(script_words *in)
{
    if (script_take(in, "device")) return cai_sim_primary(w.sim, (int32_t)script_number(in));
    if (script_take(in, "context")) return thing_word(in, 'c')->handle;
    return 0;
}

/* memory, or memory+256 */
static uint64_t address_word(script_words *in)
{
    char name[WORLD_NAME];
    const char *word = script_word(in), *plus = strchr(word, '+');
    const size_t length = plus ? (size_t)(plus - word) : strlen(word);
    const thing *t;
    if (length >= sizeof name) script_bad(in, "too long a name before");
    memcpy(name, word, length);
    name[length] = 0;
    t = find_thing(name, 'm');
    if (t == NULL) t = find_thing(name, 'h');
    if (t == NULL) {
        in->at--;
        script_bad(in, "no such memory");
    }
    return t->handle + (plus ? (uint64_t)strtoull(plus + 1, NULL, 10) : 0);
}

/* ----------------------------------------------------------------- call log */

/* The name of an address in `bytes` of memory; 0 if it is not in there. */
static int name_address(const thing *t, uint64_t address, char *out)
{
    if (address < t->handle || address - t->handle >= t->bytes) return 0;
    if (address == t->handle) sprintf(out, "%s", t->name);
    else sprintf(out, "%s+%llu", t->name, (unsigned long long)(address - t->handle));
    return 1;
}

/* One token of a log line, its names those of the case: s1 -> X, m1+256 -> a+256. */
static void translate_token(const char *token, char *out)
{
    const uint64_t number = token[0] == '0' && token[1] == 'x' ? (uint64_t)strtoull(token, NULL, 16) : 0;
    const size_t length = strcspn(token, "+");
    int i;
    for (i = w.thing_count - 1; i >= 0; i--) {
        const thing *t = &w.things[i];
        if (t->sim[0] != 0 && strlen(t->sim) == length && strncmp(token, t->sim, length) == 0) {
            sprintf(out, "%s%s", t->name, token + length);
            return;
        }
        if (number != 0 && (t->kind == 'h' || t->kind == 'm') && name_address(t, number, out)) return;
        if (number != 0 && t->handle == number && t->kind == 's') {
            sprintf(out, "%s", t->name);
            return;
        }
    }
    sprintf(out, "%s", token);
}

static void translate_line(const char *line, size_t length, char *out)
{
    char token[WORLD_LINE];
    size_t at = 0, size;
    while (at < length) {
        size = strcspn(line + at, " \n");
        if (size >= 60 || strlen(out) > 70) return;
        memcpy(token, line + at, size);
        token[size] = 0;
        translate_token(token, out + strlen(out));
        at += size;
        if (at < length && line[at] == ' ') {
            strcat(out, " ");
            at++;
        }
    }
}

/* The number of the allocation that a call made, as the simulation names them. */
static void follow_allocations(const char *line)
{
    const char *answer = strstr(line, "-> m");
    unsigned number;
    if (answer == NULL || sscanf(answer, "-> m%u", &number) != 1) return;
    if ((int)number > w.allocations) w.allocations = (int)number;
}

/* Which events the calls made and recorded; a wait for one that was never recorded orders nothing (W34). */
static void follow_events(const script_words *in, const char *log, size_t length)
{
    char line[WORLD_LINE] = "";
    unsigned number = 0, stream = 0;
    int failed;
    memcpy(line, log, length < sizeof line ? length : sizeof line - 1);
    follow_allocations(line);
    failed = strstr(line, " ! ") != NULL || strstr(line, "(omitted)") != NULL;
    if (sscanf(line, "event_create -> e%u", &number) == 1) {
        w.created++;
        if ((int)number > w.events) w.events = (int)number;
        if (number < WORLD_EVENTS) w.recorded[number] = 0;
    } else if (sscanf(line, "event_record e%u", &number) == 1 && number < WORLD_EVENTS) {
        if (!failed) w.recorded[number] = 1;
    } else if (sscanf(line, "stream_wait_event s%u e%u", &stream, &number) == 2 ||
               sscanf(line, "stream_wait_event legacy e%u", &number) == 1 ||
               sscanf(line, "stream_wait_event per_thread e%u", &number) == 1) {
        if (number >= WORLD_EVENTS || !w.recorded[number])
            complain(in, "waits for e%u, which was never recorded", number);
    }
}

static void begin_log(void)
{
    cai_sim_log_clear(w.sim);
    w.log_count = 0;
}

/* Takes over what the simulation has logged since it was asked last. */
static void take_log(const script_words *in)
{
    const char *at = cai_sim_log(w.sim);
    while (*at != 0) {
        const size_t length = strcspn(at, "\n");
        if (w.log_count == WORLD_LOG) script_stop(in->path, in->line, "too many calls", in->text);
        w.log[w.log_count][0] = 0;
        translate_line(at, length, w.log[w.log_count++]);
        follow_events(in, at, length);
        at += length + (at[length] == '\n');
    }
    cai_sim_log_clear(w.sim);
}

/* The name of an event as the log has it. Asks the table, so not while anything captures. */
static void event_name(uint64_t event, char *out)
{
    char line[WORLD_LINE] = "";
    cai_sim_log_clear(w.sim);
    w.cuda.event_query(w.cuda.self, event);
    translate_line(cai_sim_log(w.sim), strcspn(cai_sim_log(w.sim), "\n"), line);
    cai_sim_log_clear(w.sim);
    if (sscanf(line, "event_query %20s", out) != 1) strcpy(out, "?");
}

/* ------------------------------------------------------------------- making */

static void make_pool(script_words *in, int32_t capacity)
{
    cai_error err;
    if (cai_event_pool_init(&w.pool, &w.cuda, capacity ? w.places : NULL, capacity, 0, &err) != CAI_OK)
        script_stop(in->path, in->line, "no pool", err.message);
}

/* No call of the library may name a handle that is dead. */
static void undefined_found(void *context, const cai_sim_undefined *what)
{
    (void)context;
    complain(w.in, "%s", what->text);
}

static void world_begin(script_words *in, int garbage, int quiet)
{
    memset(&w, 0, sizeof w);
    w.garbage = garbage;
    memset(&w.pool, garbage, sizeof w.pool);
    memset(w.places, garbage, sizeof w.places);
    w.quiet = quiet;
    w.sim = cai_sim_create(2);
    if (w.sim == NULL) script_stop(in->path, in->line, "no simulation", "");
    cai_sim_on_undefined(w.sim, undefined_found, NULL);
    cai_sim_set_options(w.sim, cai_sim_options(w.sim) & ~(uint32_t)CAI_SIM_PROGRESS); /* cases say what runs */
    w.cuda = *cai_sim_cuda(w.sim);
    cai_sim_host_thread(w.sim, 1);
    w.threads[1] = 1;
    cai_sim_set_context(w.sim, cai_sim_primary(w.sim, 1)); /* both are active */
    cai_sim_set_context(w.sim, cai_sim_primary(w.sim, 0));
    strcpy(add_thing(in, "c1", 'c', cai_sim_primary(w.sim, 0))->sim, "c1");
    strcpy(add_thing(in, "c2", 'c', cai_sim_primary(w.sim, 1))->sim, "c2");
    w.contexts = 2;
    make_pool(in, 4);
}

static void world_free(void)
{
    int i;
    cai_sim_destroy(w.sim);
    for (i = 0; i < w.thing_count; i++) free(w.things[i].host);
    for (i = 0; i < w.array_count; i++) free(w.arrays[i].array);
    for (i = 0; i < w.exchange_count; i++) free(w.exchanges[i].ex);
}

/* Takes back what the case itself made, so that a leak is one of the code under test. */
static void world_clean(void)
{
    int i;
    for (i = 0; i < w.thing_count; i++) {
        thing *t = &w.things[i];
        if (t->gone) continue;
        if (t->kind == 's') cai_sim_stream_destroy(w.sim, t->handle);
        if (t->kind == 'e') cai_sim_event_destroy(w.sim, t->handle);
        if (t->kind == 'm') cai_sim_free(w.sim, t->handle);
    }
    for (i = 2; i < w.thing_count; i++) {
        if (w.things[i].kind == 'c' && !w.things[i].gone)
            cai_sim_context_destroy(w.sim, w.things[i].handle);
    }
}

#endif
