/* cai_sites.c - the place in a Python program from which CUDA was called, as a number
 * SPDX-License-Identifier: MIT
 *
 * cai_sites_here is the site function of cai_driver_set_site. It walks the Python stack of the calling thread
 * and gives each stack a number. Three things could go wrong there, and each has its rule:
 *
 * - A thread may call CUDA while it holds a lock of its library. If Python code ran now, another thread could
 *   get the GIL and wait for that lock. So no Python code runs here, and nothing is collected. Functions of
 *   the interpreter read the frames, and the objects of code are kept for the report.
 * - A thread may call CUDA without the GIL. It must not wait for the GIL without a limit, as the thread that
 *   has it may wait for a lock of this one. So a thread of this file, the scribe, waits for the GIL, and the
 *   caller waits a fifth of a second for the scribe.
 * - The frames of a thread must not change while they are read. A caller whose frames the scribe is reading
 *   waits until that is done. The scribe runs no Python code, so it does end.
 *
 * The interpreter's functions are passed in, so that one library serves every CPython from 3.10 on. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cai_sim.h"

/* The functions that cai_sim/_sites.py calls. */
/** Begins to tell places. `python` has the functions of struct sites_python. 1: done; 0: it could not start.
 *  Not for two threads at once. */
int32_t cai_sites_begin(const void *python);

/** Ends that: from now on the place is 0. Call it without the GIL, before the interpreter ends. */
void cai_sites_end(void);

/** The site function of cai_driver_set_site: the number of the calling thread's stack. 0: it runs no Python
 *  code, or another thread kept the GIL for a fifth of a second. */
uint64_t cai_sites_here(void *context);

/** Reads one line of a stack: the object of code, its line, and the number of the caller's line. 1, or 0 if
 *  there is none of this number. */
int32_t cai_sites_get(uint64_t site, uint64_t *outer, void **code, int32_t *line);

/** How many calls got no place because another thread kept the GIL. */
uint64_t cai_sites_missed(void);

/* Functions of the interpreter, in the order in which cai_sim/_sites.py names them. */
typedef struct sites_python {
    int (*gil_is_held)(void);                 /* PyGILState_Check */
    void *(*thread_state)(void);              /* PyGILState_GetThisThreadState */
    int (*gil_take)(void);                    /* PyGILState_Ensure */
    void (*gil_give)(int state);              /* PyGILState_Release */
    void *(*save)(void);                      /* PyEval_SaveThread */
    void (*restore)(void *thread_state);      /* PyEval_RestoreThread */
    void *(*frame_of)(void *thread_state);    /* PyThreadState_GetFrame */
    void *(*frame_back)(void *frame);         /* PyFrame_GetBack */
    void *(*frame_code)(void *frame);         /* PyFrame_GetCode */
    int (*frame_line)(void *frame);           /* PyFrame_GetLineNumber */
    void (*drop)(void *object);               /* Py_DecRef */
    int (*collect_off)(void);                 /* PyGC_Disable */
    int (*collect_on)(void);                  /* PyGC_Enable */
} sites_python;

enum { SITES_DEPTH = 200, SITES_WAIT_NS = 200 * 1000 * 1000 };

/* One line of a stack. Its number is its index; 0 is no place. */
typedef struct sites_line {
    uint64_t outer; /* the line that called it, or 0 */
    void *code;     /* the object of code, with a reference of ours */
    int32_t line;
    uint32_t next;  /* in its bucket */
} sites_line;

/* What a thread without the GIL asks of the scribe. It lies on that thread's stack. */
typedef struct sites_request {
    void *thread_state;
    uint64_t site;
    enum { SITES_ASKED, SITES_TAKEN, SITES_ANSWERED } state;
    struct sites_request *next;
} sites_request;

static struct {
    sites_python python;
    pthread_mutex_t lock; /* never held while a thread waits for the GIL */
    pthread_cond_t asked, answered;
    pthread_t scribe;
    int32_t running;
    sites_request *requests;
    sites_line *lines;
    uint32_t count, capacity;
    uint32_t *buckets;
    uint32_t bucket_count; /* a power of 2 */
    uint64_t missed;
} sites;

/* ------------------------------------------------------------------------ lines */
static uint32_t sites_bucket(uint64_t outer, const void *code, int32_t line)
{
    uint64_t hash = outer * 0x9E3779B97F4A7C15u;
    hash = (hash ^ (uint64_t)(uintptr_t)code) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ (uint64_t)(uint32_t)line) * 0x94D049BB133111EBu;
    return (uint32_t)(hash >> 32) & (sites.bucket_count - 1);
}

/* Makes room for one more line. Returns 0 without memory. */
static int sites_grow(void)
{
    const uint32_t capacity = sites.capacity ? 2 * sites.capacity : 1024;
    uint32_t *buckets, i;
    sites_line *lines;
    if (sites.count < sites.capacity) return 1;
    if (capacity > (uint32_t)1 << 30) return 0;
    lines = (sites_line *)realloc(sites.lines, capacity * sizeof *lines);
    if (lines == NULL) return 0;
    sites.lines = lines;
    buckets = (uint32_t *)calloc(2 * (size_t)capacity, sizeof *buckets);
    if (buckets == NULL) return 0;
    free(sites.buckets);
    sites.buckets = buckets;
    sites.bucket_count = 2 * capacity;
    sites.capacity = capacity;
    if (sites.count == 0) sites.count = 1; /* 0 is no place */
    for (i = 1; i < sites.count; i++) {
        uint32_t *bucket = &buckets[sites_bucket(lines[i].outer, lines[i].code, lines[i].line)];
        lines[i].next = *bucket;
        *bucket = i;
    }
    return 1;
}

/* The number of a line. Takes the reference to `code`, or sets *code to NULL for the caller to keep none. */
static uint64_t sites_number(uint64_t outer, void **code, int32_t line)
{
    sites_line *made;
    uint32_t at, *bucket;
    if (!sites_grow()) return outer;
    bucket = &sites.buckets[sites_bucket(outer, *code, line)];
    for (at = *bucket; at; at = sites.lines[at].next) {
        const sites_line *known = &sites.lines[at];
        if (known->outer == outer && known->code == *code && known->line == line) return at;
    }
    made = &sites.lines[sites.count];
    made->outer = outer;
    made->code = *code;
    made->line = line;
    made->next = *bucket;
    *code = NULL; /* the reference is ours now */
    *bucket = sites.count;
    return sites.count++;
}

/* The number of the stack of a thread. The caller has the GIL, and that thread does not run. */
static uint64_t sites_walk(void *thread_state)
{
    const sites_python *python = &sites.python;
    void *codes[SITES_DEPTH];
    int32_t lines[SITES_DEPTH], depth = 0, i;
    uint64_t site = 0;
    const int collected = python->collect_off();
    void *frame = python->frame_of(thread_state);
    while (frame != NULL && depth < SITES_DEPTH) {
        void *back = python->frame_back(frame);
        codes[depth] = python->frame_code(frame);
        lines[depth++] = (int32_t)python->frame_line(frame);
        python->drop(frame);
        frame = back;
    }
    if (frame != NULL) python->drop(frame);
    pthread_mutex_lock(&sites.lock);
    for (i = depth - 1; i >= 0; i--) site = sites_number(site, &codes[i], lines[i]);
    pthread_mutex_unlock(&sites.lock);
    for (i = 0; i < depth; i++)
        if (codes[i] != NULL) python->drop(codes[i]);
    if (collected) (void)python->collect_on();
    return site;
}

/* ----------------------------------------------------------------------- scribe */
/* Answers all requests that wait. Called with the GIL. */
static void sites_answer(void)
{
    sites_request *taken, *request, *next;
    pthread_mutex_lock(&sites.lock);
    taken = sites.requests;
    sites.requests = NULL;
    for (request = taken; request != NULL; request = request->next) request->state = SITES_TAKEN;
    pthread_mutex_unlock(&sites.lock);
    for (request = taken; request != NULL; request = next) {
        next = request->next;
        request->site = sites_walk(request->thread_state);
        pthread_mutex_lock(&sites.lock);
        request->state = SITES_ANSWERED; /* from here on it may be gone */
        pthread_cond_broadcast(&sites.answered);
        pthread_mutex_unlock(&sites.lock);
    }
}

static void *sites_scribe(void *unused)
{
    const int state = sites.python.gil_take();
    void *own = sites.python.save();
    (void)unused;
    pthread_mutex_lock(&sites.lock);
    while (sites.running) {
        if (sites.requests == NULL) {
            pthread_cond_wait(&sites.asked, &sites.lock);
            continue;
        }
        pthread_mutex_unlock(&sites.lock);
        sites.python.restore(own);
        sites_answer();
        own = sites.python.save();
        pthread_mutex_lock(&sites.lock);
    }
    pthread_mutex_unlock(&sites.lock);
    sites.python.restore(own);
    sites.python.gil_give(state);
    return NULL;
}

/* Takes a request back. Called with the lock. */
static void sites_withdraw(const sites_request *request)
{
    sites_request **at = &sites.requests;
    while (*at != NULL && *at != request) at = &(*at)->next;
    if (*at != NULL) *at = request->next;
}

static uint64_t sites_ask(void *thread_state)
{
    sites_request request = {thread_state, 0, SITES_ASKED, NULL};
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SITES_WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&sites.lock);
    request.next = sites.requests;
    if (sites.running) sites.requests = &request;
    else request.state = SITES_ANSWERED;
    pthread_cond_signal(&sites.asked);
    while (request.state == SITES_ASKED)
        if (pthread_cond_timedwait(&sites.answered, &sites.lock, &until) == ETIMEDOUT) break;
    if (request.state == SITES_ASKED) {
        sites_withdraw(&request);
        sites.missed++;
    }
    while (request.state == SITES_TAKEN) pthread_cond_wait(&sites.answered, &sites.lock);
    pthread_mutex_unlock(&sites.lock);
    return request.site;
}

static void sites_forked(void)
{
    sites.running = 0; /* the child has no scribe, and its lock may be held by nobody */
}

/* ----------------------------------------------------------------------- public */
int32_t cai_sites_begin(const void *python)
{
    static int prepared;
    pthread_condattr_t attributes;
    if (sites.running) return 1;
    memcpy(&sites.python, python, sizeof sites.python);
    if (!prepared) {
        if (pthread_mutex_init(&sites.lock, NULL) || pthread_condattr_init(&attributes)) return 0;
        if (pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)) return 0;
        if (pthread_cond_init(&sites.asked, &attributes)) return 0;
        if (pthread_cond_init(&sites.answered, &attributes)) return 0;
        if (pthread_atfork(NULL, NULL, sites_forked)) return 0;
        prepared = 1;
    }
    sites.running = 1;
    sites.running = pthread_create(&sites.scribe, NULL, sites_scribe, NULL) == 0;
    return sites.running;
}

void cai_sites_end(void)
{
    if (!sites.running) return;
    pthread_mutex_lock(&sites.lock);
    sites.running = 0;
    pthread_cond_signal(&sites.asked);
    pthread_mutex_unlock(&sites.lock);
    pthread_join(sites.scribe, NULL);
}

uint64_t cai_sites_here(void *context)
{
    void *thread_state;
    (void)context;
    if (!sites.running) return 0;
    thread_state = sites.python.thread_state();
    if (thread_state == NULL) return 0;
    if (sites.python.gil_is_held()) return sites_walk(thread_state);
    return sites_ask(thread_state);
}

int32_t cai_sites_get(uint64_t site, uint64_t *outer, void **code, int32_t *line)
{
    int32_t found = 0;
    pthread_mutex_lock(&sites.lock);
    if (site > 0 && site < sites.count) {
        *outer = sites.lines[site].outer;
        *code = sites.lines[site].code;
        *line = sites.lines[site].line;
        found = 1;
    }
    pthread_mutex_unlock(&sites.lock);
    return found;
}

uint64_t cai_sites_missed(void)
{
    uint64_t missed;
    pthread_mutex_lock(&sites.lock);
    missed = sites.missed;
    pthread_mutex_unlock(&sites.lock);
    return missed;
}
