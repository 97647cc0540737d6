/* cai_check.c - the checker of cai_check.h
 * SPDX-License-Identifier: MIT
 *
 *   >>order      happens before, by vector clocks
 *   >>races      accesses that it does not order, and how they are told
 *   >>choices    a search by running again, with another choice where there was one
 *   >>threads    host threads that run one at a time
 *   >>batons
 *   >>runs       one run of a program, and what comes of it
 *   >>checking   all of them
 *
 * The two oracles share nothing but the program: the clocks see the trace of a run, the search for orders
 * sees what the scheduler of the simulation has ready, and what memory holds in the end. */
#include "cai_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(CAI_SIM_NO_THREADS) && defined(_WIN32)
#include <windows.h>
#elif !defined(CAI_SIM_NO_THREADS)
#include <pthread.h>
#include <time.h>
#endif

static void *check_new(size_t count, size_t size)
{
    void *made = calloc(count ? count : 1, size);
    if (made == NULL) abort();
    return made;
}

/* -------------------------------------------------------------------- >>order */
/* Everything happens in a lane: a stream, a branch of the graphs launched there, what it has in a capture, or
 * a host thread. The launches of graphs in a stream are ordered, and so are their branches. The clock of an
 * operation says how much of each lane comes before it; its own place in its lane is in it. */
typedef struct check_lane {
    uint64_t stream, capture, thread;
    int32_t branch;
} check_lane;

struct cai_check_order {
    uint64_t count;
    int32_t lane_count;
    check_lane *lanes;
    int32_t *lane;    /* of each operation */
    uint32_t *clocks; /* lane_count of each operation */
    uint32_t *ends;   /* how many each lane has so far */
    int32_t one_host; /* calls of all host threads are ordered as they came */
};

static check_lane check_lane_of(const cai_check_order *order, const cai_sim_operation *op)
{
    check_lane lane;
    lane.stream = op->stream;
    lane.capture = op->capture;
    lane.branch = op->branch;
    lane.thread = op->stream || order->one_host ? 0 : op->thread;
    return lane;
}

static check_lane check_caller_of(const cai_check_order *order, const cai_sim_operation *op)
{
    check_lane lane;
    lane.stream = lane.capture = 0;
    lane.branch = 0;
    lane.thread = order->one_host ? 0 : op->thread;
    return lane;
}

/* The number of a lane; a new one gets the next. */
static int32_t check_lane_number(cai_check_order *order, check_lane lane)
{
    int32_t i;
    for (i = 0; i < order->lane_count; i++) {
        const check_lane *at = &order->lanes[i];
        if (at->stream != lane.stream || at->branch != lane.branch) continue;
        if (at->capture == lane.capture && at->thread == lane.thread) return i;
    }
    if (order->lane_count % 16 == 0) {
        const size_t room = (size_t)order->lane_count + 16;
        order->lanes = (check_lane *)realloc(order->lanes, room * sizeof *order->lanes);
        if (order->lanes == NULL) abort();
    }
    order->lanes[order->lane_count] = lane;
    return order->lane_count++;
}

static uint32_t *check_clock(const cai_check_order *order, uint64_t id)
{
    return &order->clocks[(size_t)(id - 1) * (size_t)order->lane_count];
}

static void check_join(uint32_t *clock, const uint32_t *other, int32_t lanes)
{
    int32_t i;
    for (i = 0; i < lanes; i++)
        if (clock[i] < other[i]) clock[i] = other[i];
}

/* hosts: the clock of each host thread, at the number of its lane. */
static void check_order_step(cai_check_order *order, const cai_sim_operation *op, uint32_t *hosts)
{
    const int32_t lanes = order->lane_count, lane = order->lane[op->id - 1];
    uint32_t *clock = check_clock(order, op->id);
    uint32_t *host = &hosts[(size_t)check_lane_number(order, check_caller_of(order, op)) * (size_t)lanes];
    int32_t i;
    if (!op->capture) check_join(clock, host, lanes); /* a graph runs where it is launched */
    for (i = 0; i < op->wait_count; i++) check_join(clock, check_clock(order, op->waits[i]), lanes);
    clock[lane] = ++order->ends[lane];
    if (!op->stream) memcpy(host, clock, (size_t)lanes * sizeof *host);
}

static cai_check_order *check_order_make(cai_sim *sim, int32_t one_host)
{
    cai_check_order *order = (cai_check_order *)check_new(1, sizeof *order);
    cai_sim_operation op;
    uint32_t *hosts;
    uint64_t id;
    size_t lanes;
    order->one_host = one_host;
    order->count = cai_sim_operation_count(sim);
    order->lane = (int32_t *)check_new((size_t)order->count, sizeof *order->lane);
    for (id = 1; id <= order->count && cai_sim_operation_get(sim, id, &op); id++) {
        (void)check_lane_number(order, check_caller_of(order, &op));
        order->lane[id - 1] = check_lane_number(order, check_lane_of(order, &op));
    }
    lanes = (size_t)order->lane_count;
    order->clocks = (uint32_t *)check_new((size_t)order->count * lanes, sizeof *order->clocks);
    order->ends = (uint32_t *)check_new(lanes, sizeof *order->ends);
    hosts = (uint32_t *)check_new(lanes * lanes, sizeof *hosts);
    for (id = 1; id <= order->count && cai_sim_operation_get(sim, id, &op); id++)
        check_order_step(order, &op, hosts);
    free(hosts);
    return order;
}

cai_check_order *cai_check_order_make(cai_sim *sim)
{
    return check_order_make(sim, 0);
}

void cai_check_order_free(cai_check_order *order)
{
    if (order == NULL) return;
    free(order->lanes);
    free(order->lane);
    free(order->clocks);
    free(order->ends);
    free(order);
}

int32_t cai_check_before(const cai_check_order *order, uint64_t first, uint64_t second)
{
    int32_t lane;
    if (first == 0 || second == 0 || first == second) return 0;
    if (first > order->count || second > order->count) return 0;
    lane = order->lane[first - 1];
    return check_clock(order, second)[lane] >= check_clock(order, first)[lane];
}

/* -------------------------------------------------------------------- >>races */
typedef struct check_access { /* memory: the number of an allocation, or 0 and addresses */
    int32_t memory, write;
    uint64_t begin, end, address, operation, capture;
} check_access;

typedef struct check_accesses {
    check_access *all;
    size_t count, capacity;
} check_accesses;

/* The host allocates what nobody else knows yet. */
static int check_counts(const cai_sim_operation *op)
{
    return op->kind != CAI_SIM_OP_ALLOC || op->stream != 0;
}

static void check_collect(cai_sim *sim, const cai_sim_operation *op, check_accesses *out)
{
    int32_t i;
    for (i = 0; i < op->access_count && check_counts(op); i++) {
        const cai_sim_access *from = &op->accesses[i];
        check_access *to;
        if (out->count == out->capacity) {
            out->capacity = 2 * out->capacity + 16;
            out->all = (check_access *)realloc(out->all, out->capacity * sizeof *out->all);
            if (out->all == NULL) abort();
        }
        to = &out->all[out->count];
        to->begin = from->address;
        to->memory = cai_sim_access_memory(sim, from, &to->begin);
        to->end = from->bytes > UINT64_MAX - to->begin ? UINT64_MAX : to->begin + from->bytes;
        to->write = from->write;
        to->address = from->address;
        to->operation = op->id;
        to->capture = op->capture;
        if (from->bytes) out->count++;
    }
}

static int check_can_write(const check_access *a)
{
    return a->write != 0 && a->write != CAI_SIM_MAY_READ;
}

static int check_conflict(const check_access *a, const check_access *b)
{
    return a->memory == b->memory && (check_can_write(a) || check_can_write(b)) && a->begin < b->end &&
           b->begin < a->end && a->operation != b->operation && a->capture == b->capture;
}

static int check_is_certain(const check_access *a, const check_access *b)
{
    const int writes = a->write == 1 || b->write == 1;
    return writes && a->write <= CAI_SIM_MAY_WRITE && b->write <= CAI_SIM_MAY_WRITE;
}

static void check_race_of(const check_access *a, const check_access *b, cai_check_race *race)
{
    const uint64_t begin = a->begin > b->begin ? a->begin : b->begin, end = a->end < b->end ? a->end : b->end;
    race->first = a->operation;
    race->second = b->operation;
    race->address = b->address + (begin - b->begin);
    race->memory = b->memory;
    race->bytes = end - begin;
    race->first_writes = a->write;
    race->second_writes = b->write;
    race->certain = check_is_certain(a, b);
}

/* Of the conflicts of two operations one counts: the first that is certain, else the first. Accesses of one
 * operation stand side by side. */
static int check_counts_for_pair(const check_accesses *in, size_t a, size_t b)
{
    const int certain = check_is_certain(&in->all[a], &in->all[b]);
    size_t i, k, first = a, second = b;
    while (first > 0 && in->all[first - 1].operation == in->all[a].operation) first--;
    while (second > 0 && in->all[second - 1].operation == in->all[b].operation) second--;
    for (i = first; i < in->count && in->all[i].operation == in->all[a].operation; i++)
        for (k = second; k < in->count && in->all[k].operation == in->all[b].operation; k++) {
            const int before = i < a || (i == a && k < b);
            if (!before && certain) continue;
            if (!check_conflict(&in->all[i], &in->all[k])) continue;
            if (check_is_certain(&in->all[i], &in->all[k]) > certain) return 0;
            if (before && check_is_certain(&in->all[i], &in->all[k]) == certain) return 0;
        }
    return 1;
}

enum {
    CHECK_ALL = 0,
    CHECK_CERTAIN = 1, /* not those of which nothing says that one writes */
    CHECK_LIVE = 2     /* not those in captures, which do not run */
};

/* Each lane and memory has a list of accesses, the last one first. An access comes after all that its
 * clock has of a lane, so of each lane only the last ones are looked at. */
typedef struct check_head {
    int32_t lane;
    size_t last;
    struct check_head *next; /* of another lane, the same memory */
} check_head;

typedef struct check_hunt {
    const cai_check_order *order;
    check_accesses in;
    size_t *previous;   /* of each access: that before it in its lane and memory, + 1; 0: none */
    check_head **heads; /* of each memory */
    int32_t memories;
    int which;
    cai_check_race *races;
    int32_t count, capacity;
} check_hunt;

static void check_compare(check_hunt *s, size_t a, size_t b)
{
    const check_access *x = &s->in.all[a], *y = &s->in.all[b];
    if (!check_conflict(x, y)) return;
    if ((s->which & CHECK_CERTAIN) && !check_is_certain(x, y)) return;
    if (!check_counts_for_pair(&s->in, a, b)) return;
    if (s->count < s->capacity) check_race_of(x, y, &s->races[s->count]);
    s->count++;
}

/* Compares an access with those before it that nothing orders before it. */
static void check_look_back(check_hunt *s, size_t b)
{
    const check_access *access = &s->in.all[b];
    const check_head *head;
    if ((s->which & CHECK_LIVE) && access->capture) return;
    for (head = s->heads[access->memory]; head != NULL; head = head->next) {
        size_t a = head->last;
        while (a && !cai_check_before(s->order, s->in.all[a - 1].operation, access->operation)) {
            check_compare(s, a - 1, b);
            a = s->previous[a - 1];
        }
    }
}

static void check_append(check_hunt *s, size_t b)
{
    const int32_t lane = s->order->lane[s->in.all[b].operation - 1];
    check_head **at = &s->heads[s->in.all[b].memory];
    while (*at != NULL && (*at)->lane != lane) at = &(*at)->next;
    if (*at == NULL) {
        *at = (check_head *)check_new(1, sizeof **at);
        (*at)->lane = lane;
    }
    s->previous[b] = (*at)->last;
    (*at)->last = b + 1;
}

static void check_hunt_free(check_hunt *s)
{
    int32_t i;
    for (i = 0; i < s->memories; i++)
        while (s->heads[i] != NULL) {
            check_head *head = s->heads[i];
            s->heads[i] = head->next;
            free(head);
        }
    free(s->heads);
    free(s->previous);
    free(s->in.all);
}

static int32_t check_races(cai_sim *sim, const cai_check_order *order, int which, cai_check_race *races,
                           int32_t capacity)
{
    check_hunt s = {order, {NULL, 0, 0}, NULL, NULL, 1, which, races, 0, capacity};
    cai_sim_operation op;
    uint64_t id;
    size_t b;
    for (id = 1; id <= order->count && cai_sim_operation_get(sim, id, &op); id++)
        check_collect(sim, &op, &s.in);
    for (b = 0; b < s.in.count; b++)
        if (s.in.all[b].memory >= s.memories) s.memories = s.in.all[b].memory + 1;
    s.previous = (size_t *)check_new(s.in.count, sizeof *s.previous);
    s.heads = (check_head **)check_new((size_t)s.memories, sizeof *s.heads);
    for (b = 0; b < s.in.count; b++) {
        check_look_back(&s, b);
        check_append(&s, b);
    }
    check_hunt_free(&s);
    return s.count;
}

static int check_race_order(const void *a, const void *b)
{
    const cai_check_race *x = (const cai_check_race *)a, *y = (const cai_check_race *)b;
    if (x->second != y->second) return x->second < y->second ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* The first races of an order that is worked out already. */
static int32_t check_first_races(cai_sim *sim, const cai_check_order *order, int which,
                                 cai_check_race *races, int32_t capacity)
{
    const int32_t count = check_races(sim, order, which, NULL, 0);
    const int32_t stored = count < capacity ? count : capacity;
    cai_check_race *all;
    if (stored > 0) {
        all = (cai_check_race *)check_new((size_t)count, sizeof *all);
        check_races(sim, order, which, all, count);
        qsort(all, (size_t)count, sizeof *all, check_race_order);
        memcpy(races, all, (size_t)stored * sizeof *races);
        free(all);
    }
    return count;
}

int32_t cai_check_races(cai_sim *sim, cai_check_race *races, int32_t capacity)
{
    cai_check_order *order = check_order_make(sim, 0);
    const int32_t count = check_first_races(sim, order, CHECK_ALL, races, capacity);
    cai_check_order_free(order);
    return count;
}

enum { CHECK_NAME = 64 };

/* "s1", "branch 1 of a graph on s1", "the host", "host thread 2". */
static void check_place(cai_sim *sim, const cai_sim_operation *op, char *text)
{
    int skipped = 0;
    if (op->branch) skipped = snprintf(text, CHECK_NAME, "branch %d of a graph on ", (int)op->branch);
    if (op->stream) cai_sim_stream_name(sim, op->stream, text + skipped, (size_t)(CHECK_NAME - skipped));
    else if (op->thread >> 32) snprintf(text, CHECK_NAME, "the host");
    else snprintf(text, CHECK_NAME, "host thread %u", (unsigned)op->thread);
}

static const char *check_verb(const cai_sim_operation *op, int32_t writes)
{
    if (op->kind == CAI_SIM_OP_FREE) return "frees";
    if (op->kind == CAI_SIM_OP_ALLOC) return "allocates";
    if (writes == CAI_SIM_MAY_READ) return "may read";
    if (writes == CAI_SIM_MAY_WRITE || writes == CAI_SIM_MAY_ACCESS) return "may write";
    return writes ? "writes" : "reads";
}

static int check_side(cai_sim *sim, const cai_sim_operation *op, int32_t writes, char *text, size_t room)
{
    char place[CHECK_NAME];
    check_place(sim, op, place);
    return snprintf(text, room, "\"%s\" %s on %s (operation %llu)", op->name, check_verb(op, writes), place,
                    (unsigned long long)op->id);
}

static void check_missing(cai_sim *sim, const cai_sim_operation *a, const cai_sim_operation *b, char *text,
                          size_t room)
{
    char first[CHECK_NAME], second[CHECK_NAME];
    check_place(sim, a, first);
    check_place(sim, b, second);
    if (a->stream || !b->stream) snprintf(text, room, "; nothing makes %s wait for %s", second, first);
    else snprintf(text, room, "; nothing orders %s before what is queued on %s", first, second);
}

void cai_check_race_text(cai_sim *sim, const cai_check_race *race, char *text)
{
    cai_sim_operation a, b;
    char memory[CHECK_NAME], one[152], two[152], missing[176];
    cai_sim_access where;
    text[0] = 0;
    if (!cai_sim_operation_get(sim, race->first, &a) || !cai_sim_operation_get(sim, race->second, &b)) return;
    where = cai_sim_reads(race->address, race->bytes);
    where.memory = race->memory;
    cai_sim_access_name(sim, &where, memory, sizeof memory);
    check_side(sim, &a, race->first_writes, one, sizeof one);
    check_side(sim, &b, race->second_writes, two, sizeof two);
    check_missing(sim, &a, &b, missing, sizeof missing);
    snprintf(text, CAI_CHECK_TEXT, "race on %s: %s, %s%s", memory, one, two, missing);
}

/* ------------------------------------------------------------------ >>choices */
/* The choices of a run, in turn. The first `fixed` are those of a run before. */
typedef struct check_choices {
    int32_t *chosen, *of;
    int32_t count, at, fixed, capacity;
    int32_t changed; /* one of them was of another number this time */
} check_choices;

static void check_rewind(check_choices *c, int32_t fixed)
{
    c->at = 0;
    c->count = c->fixed = fixed;
}

static uint64_t check_throw(uint64_t *dice)
{
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return *dice >> 24;
}

/* Far apart for seeds that are near; never 0. */
static uint64_t check_dice(uint64_t seed)
{
    seed = (seed + 1) * 0x9E3779B97F4A7C15u;
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
    return (seed ^ seed >> 27) | 1;
}

/* One of `of`, more than 1: as before, or the first that was not tried, or by the dice. */
static int32_t check_choose(check_choices *c, int32_t of, uint64_t *dice)
{
    int32_t chosen = 0;
    if (c->at < c->fixed) {
        c->changed |= c->of[c->at] != of;
        chosen = c->chosen[c->at++];
        return chosen < of ? chosen : of - 1;
    }
    if (*dice) chosen = (int32_t)(check_throw(dice) % (uint64_t)of);
    if (c->count == c->capacity) {
        c->capacity = 2 * c->capacity + 64;
        c->chosen = (int32_t *)realloc(c->chosen, (size_t)c->capacity * sizeof *c->chosen);
        c->of = (int32_t *)realloc(c->of, (size_t)c->capacity * sizeof *c->of);
        if (c->chosen == NULL || c->of == NULL) abort();
    }
    c->chosen[c->count] = chosen;
    c->of[c->count++] = of;
    c->at = c->count;
    return chosen;
}

/* Turns to the next run: the last choice that has an alternative left takes it. 0: there is none. */
static int check_advance(check_choices *c)
{
    while (c->count > 0 && c->chosen[c->count - 1] + 1 >= c->of[c->count - 1]) c->count--;
    if (c->count == 0) return 0;
    c->chosen[c->count - 1]++;
    check_rewind(c, c->count);
    return 1;
}

/* ------------------------------------------------------------------ >>threads */
enum { CHECK_THREADS = 8, CHECK_BATONS = 16, CHECK_PASSES = 64, CHECK_NOBODY = -1 };
enum { CHECK_PATIENCE = 60 /* seconds */ };

#if defined(CAI_SIM_NO_THREADS)
#define CHECK_OS_THREADS 0
typedef struct check_gate {
    int unused;
} check_gate;
#else
#define CHECK_OS_THREADS 1
#if defined(_WIN32)
typedef HANDLE check_os_thread;
typedef struct check_gate {
    CRITICAL_SECTION mutex;
    CONDITION_VARIABLE wake[CHECK_THREADS + 1];
} check_gate;
#define CHECK_GATE_MAKE(g) InitializeCriticalSection(&(g)->mutex)
#define CHECK_GATE_FREE(g) DeleteCriticalSection(&(g)->mutex)
#define CHECK_DOOR_MAKE(g, i) InitializeConditionVariable(&(g)->wake[i])
#define CHECK_DOOR_FREE(g, i) ((void)(g))
#define CHECK_LOCK(g) EnterCriticalSection(&(g)->mutex)
#define CHECK_UNLOCK(g) LeaveCriticalSection(&(g)->mutex)
#define CHECK_WAIT(g, i) SleepConditionVariableCS(&(g)->wake[i], &(g)->mutex, CHECK_PATIENCE * 1000)
#define CHECK_WAKE(g, i) WakeConditionVariable(&(g)->wake[i])
#define CHECK_MAIN(name, argument) static DWORD WINAPI name(void *argument)
#define CHECK_START(t, name, argument) ((*(t) = CreateThread(NULL, 0, name, argument, 0, NULL)) != NULL)
#define CHECK_JOIN(t) (WaitForSingleObject(t, INFINITE), CloseHandle(t))
#else
typedef pthread_t check_os_thread;
typedef struct check_gate {
    pthread_mutex_t mutex;
    pthread_cond_t wake[CHECK_THREADS + 1];
} check_gate;
#define CHECK_GATE_MAKE(g) pthread_mutex_init(&(g)->mutex, NULL)
#define CHECK_GATE_FREE(g) pthread_mutex_destroy(&(g)->mutex)
#define CHECK_DOOR_MAKE(g, i) pthread_cond_init(&(g)->wake[i], NULL)
#define CHECK_DOOR_FREE(g, i) pthread_cond_destroy(&(g)->wake[i])
#define CHECK_LOCK(g) pthread_mutex_lock(&(g)->mutex)
#define CHECK_UNLOCK(g) pthread_mutex_unlock(&(g)->mutex)
#define CHECK_WAIT(g, i) check_wait(&(g)->wake[i], &(g)->mutex)
#define CHECK_WAKE(g, i) pthread_cond_signal(&(g)->wake[i])
#define CHECK_MAIN(name, argument) static void *name(void *argument)
#define CHECK_START(t, name, argument) (pthread_create(t, NULL, name, argument) == 0)
#define CHECK_JOIN(t) pthread_join(t, NULL)

/* 0: it took too long. */
static int check_wait(pthread_cond_t *wake, pthread_mutex_t *mutex)
{
    struct timespec end;
    end.tv_sec = time(NULL) + CHECK_PATIENCE;
    end.tv_nsec = 0;
    return pthread_cond_timedwait(wake, mutex, &end) == 0;
}
#endif
#endif

typedef struct check_thread {
    struct check_run *run;
    cai_check_program function;
    void *argument;
    int32_t number, ended;
    int32_t wants; /* the baton that it waits for, or CHECK_NOBODY */
    uint64_t published;
#if CHECK_OS_THREADS
    check_os_thread os;
#endif
} check_thread;

typedef struct check_baton {
    uint64_t passed[CHECK_PASSES];
    int32_t passes, takes;
} check_baton;

/* One run of a program. */
typedef struct check_run {
    cai_sim *sim;
    const cai_check_options *options;
    cai_check_result *result;
    check_choices *turns, *orders; /* orders NULL: work runs as it comes */
    uint64_t *dice;
    check_thread threads[CHECK_THREADS];
    check_baton batons[CHECK_BATONS];
    check_gate gate;
    int32_t thread_count, turn; /* who runs; CHECK_NOBODY: the program itself */
    int32_t stuck, omit_calls;
    int32_t strays; /* turns are not those of the interleaving any more, as a query answered otherwise */
    int32_t needless;
    uint64_t *before, ran; /* what was ready when the work that ran last was chosen, and that */
    int32_t before_count;
    uint64_t started;
} check_run;

static int check_can_run(const check_run *run, const check_thread *thread)
{
    const check_baton *baton = thread->wants < 0 ? NULL : &run->batons[thread->wants];
    return !thread->ended && (run->stuck || baton == NULL || baton->takes < baton->passes);
}

static void check_failure(check_run *run, const char *text)
{
    if (run->result->failed) return;
    run->result->failed = 1;
    if (!run->result->text[0]) snprintf(run->result->text, CAI_CHECK_TEXT, "%s", text);
}

/* Where the work runs in another order, threads may make other calls, and their turns are part of the search
 * for orders from there on. */
static int32_t check_choose_turn(check_run *run, int32_t of)
{
    check_choices *turns = run->turns;
    if (run->orders == NULL) return check_choose(turns, of, run->dice);
    if (turns->at >= turns->fixed || turns->of[turns->at] != of) run->strays = 1;
    return check_choose(run->strays ? run->orders : turns, of, run->dice);
}

/* Whose turn is it? The one who has it comes first. CHECK_NOBODY: all have ended. */
static int32_t check_next(check_run *run, int32_t self)
{
    int32_t able[CHECK_THREADS];
    int32_t i, alive = 0, count = 0;
    if (self >= 0 && check_can_run(run, &run->threads[self])) able[count++] = self;
    for (i = 0; i < run->thread_count; i++) {
        alive += !run->threads[i].ended;
        if (i != self && check_can_run(run, &run->threads[i])) able[count++] = i;
    }
    if (alive == 0) return CHECK_NOBODY;
    if (count > 1) return able[check_choose_turn(run, count)];
    if (count == 1) return able[0];
    check_failure(run, "host threads wait for one another");
    run->stuck = 1; /* batons hold nobody up any more, so that the run can end */
    return check_next(run, self);
}

#if CHECK_OS_THREADS
static void check_await_turn(check_run *run, int32_t self)
{
    while (run->turn != self) {
        if (CHECK_WAIT(&run->gate, self + 1) || run->turn == self) continue;
        fprintf(stderr, "cai_check: a host thread has not continued for %d seconds: does it wait for "
                        "another one by something else than a baton?\n", CHECK_PATIENCE);
        abort();
    }
}

/* Lets somebody go on, perhaps the same. */
static void check_yield(check_run *run, int32_t self)
{
    CHECK_LOCK(&run->gate);
    run->turn = check_next(run, self);
    if (run->turn != self) CHECK_WAKE(&run->gate, run->turn + 1);
    check_await_turn(run, self);
    CHECK_UNLOCK(&run->gate);
}

CHECK_MAIN(check_thread_main, argument)
{
    check_thread *self = (check_thread *)argument;
    check_run *run = self->run;
    CHECK_LOCK(&run->gate);
    check_await_turn(run, self->number);
    CHECK_UNLOCK(&run->gate);
    cai_sim_host_thread(run->sim, (uint64_t)self->number + 1);
    (void)cai_sim_observe(run->sim, run->started);
    self->function(run->sim, self->argument);
    self->published = cai_sim_publish(run->sim);
    CHECK_LOCK(&run->gate);
    self->ended = 1;
    run->turn = check_next(run, self->number);
    CHECK_WAKE(&run->gate, run->turn + 1);
    CHECK_UNLOCK(&run->gate);
    return 0;
}

static void check_run_threads(check_run *run)
{
    int32_t i;
    for (i = 0; i < run->thread_count; i++)
        if (!CHECK_START(&run->threads[i].os, check_thread_main, &run->threads[i])) abort();
    CHECK_LOCK(&run->gate);
    run->turn = check_next(run, CHECK_NOBODY);
    CHECK_WAKE(&run->gate, run->turn + 1);
    check_await_turn(run, CHECK_NOBODY);
    CHECK_UNLOCK(&run->gate);
    for (i = 0; i < run->thread_count; i++) CHECK_JOIN(run->threads[i].os);
}
#endif

/* Whose call is it? CHECK_NOBODY: the program's own. */
static int32_t check_self(const check_run *run)
{
    return run->thread_count ? run->turn : CHECK_NOBODY;
}

/* Calls that no other host thread can notice, nor notice another one's by. */
static int check_is_private(const char *call)
{
    static const char *const prefixes[] = {"context_current", "context_push", "context_pop",
                                           "context_device",  "device_",      "stream_context",
                                           "stream_id",       "stream_capture", "capture_mode",
                                           "pointer_",        "set_context",
                                           "event_create"};
    size_t i;
    for (i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(call, prefixes[i], strlen(prefixes[i])) == 0) return 1;
    return 0;
}

static void check_omit(check_run *run, const char *call)
{
    const cai_check_options *o = run->options;
    const int32_t self = check_self(run);
    if (o->omit == NULL || strcmp(call, o->omit) != 0) return;
    if (o->omit_thread < 0 && self != CHECK_NOBODY) return;
    if (o->omit_thread > 0 && self != o->omit_thread - 1) return;
    if (++run->omit_calls != o->omit_call) return;
    (void)cai_sim_omit_op(run->sim, call, 1);
    run->result->omitted = 1;
}

static void check_before_call(void *context, const char *call, int32_t of_table)
{
    check_run *run = (check_run *)context;
    run->ran = 0; /* what runs from here on comes after something of the host */
#if CHECK_OS_THREADS
    if (run->thread_count && !check_is_private(call)) check_yield(run, run->turn);
#endif
    if (run->orders == NULL) (void)cai_sim_run(run->sim);
    if (of_table) check_omit(run, call);
}

/* Do two operations come out the same in either order? Only if they say all that they do. */
static int check_commute(cai_sim *sim, uint64_t first, uint64_t second)
{
    cai_sim_operation a, b;
    uint64_t from, other;
    int32_t i, k;
    if (!cai_sim_operation_get(sim, first, &a) || !cai_sim_operation_get(sim, second, &b)) return 0;
    if (!a.declared || !b.declared) return 0;
    for (i = 0; i < a.access_count; i++)
        for (k = 0; k < b.access_count; k++) {
            const cai_sim_access *x = &a.accesses[i], *y = &b.accesses[k];
            if (x->write != 1 && y->write != 1) continue;
            from = x->address;
            other = y->address;
            if (cai_sim_memory_at(sim, x->address, &from) != cai_sim_memory_at(sim, y->address, &other))
                continue;
            if (from < other + y->bytes && other < from + x->bytes) return 0;
        }
    return 1;
}

/* Right after `ran`, that is not worth trying which could as well have run before it: of all orders that come
 * out the same for that reason, the one with the lowest ids is tried. */
static int check_is_needless(const check_run *run, uint64_t id)
{
    int32_t i;
    if (run->ran == 0 || id > run->ran) return 0;
    for (i = 0; i < run->before_count; i++)
        if (run->before[i] == id) return check_commute(run->sim, id, run->ran);
    return 0;
}

static void check_note_choice(check_run *run, const uint64_t *ready, int32_t count, uint64_t chosen)
{
    free(run->before);
    run->before = (uint64_t *)check_new((size_t)count, sizeof *ready);
    memcpy(run->before, ready, (size_t)count * sizeof *ready);
    run->before_count = count;
    run->ran = chosen;
}

static int32_t check_choose_work(void *context, const uint64_t *ready, int32_t count, int32_t needed)
{
    check_run *run = (check_run *)context;
    int32_t i, chosen, of = 0;
    int32_t *worth;
    if (run->orders == NULL) return 0;
    worth = (int32_t *)check_new((size_t)count, sizeof *worth);
    for (i = 0; i < count; i++)
        if (!check_is_needless(run, ready[i])) worth[of++] = i;
    if (of == 0 && needed) {
        run->needless = 1; /* an order that comes out the same is tried elsewhere */
        worth[of++] = 0;
    }
    chosen = of + !needed > 1 ? check_choose(run->orders, of + !needed, run->dice) : 0;
    chosen = chosen < of ? worth[chosen] : -1;
    free(worth);
    if (chosen >= 0) check_note_choice(run, ready, count, ready[chosen]);
    else run->ran = 0;
    return chosen;
}

/* The run that a simulation belongs to, or NULL. */
static check_run *check_run_of(cai_sim *sim)
{
    cai_sim_hooks hooks;
    cai_sim_get_hooks(sim, &hooks);
    return hooks.before == check_before_call ? (check_run *)hooks.context : NULL;
}

/* One after the other, each as a host thread of its own, where nobody chooses. */
static void check_in_turn(cai_sim *sim, const cai_check_program *functions, void *const *arguments,
                          int32_t count)
{
    uint64_t published = cai_sim_publish(sim), ends[CHECK_THREADS];
    int32_t i;
    for (i = 0; i < count; i++) {
        cai_sim_host_thread(sim, (uint64_t)i + 1);
        (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
        (void)cai_sim_observe(sim, published);
        functions[i](sim, arguments == NULL ? NULL : arguments[i]);
        ends[i] = cai_sim_publish(sim);
    }
    cai_sim_host_thread(sim, 0);
    for (i = 0; i < count; i++) (void)cai_sim_observe(sim, ends[i]);
}

void cai_check_threads(cai_sim *sim, const cai_check_program *functions, void *const *arguments,
                       int32_t count)
{
    check_run *run = check_run_of(sim);
    int32_t i;
    if (count < 1 || count > CHECK_THREADS || (run != NULL && run->thread_count)) {
        cai_check_fail(sim, "cai_check_threads: count is not in 1..8, or one of its host threads calls it");
        return;
    }
    if (run == NULL || !CHECK_OS_THREADS) {
        check_in_turn(sim, functions, arguments, count);
        return;
    }
    for (i = 0; i < count; i++) {
        check_thread *thread = &run->threads[i];
        memset(thread, 0, sizeof *thread);
        thread->run = run;
        thread->function = functions[i];
        thread->argument = arguments == NULL ? NULL : arguments[i];
        thread->number = i;
        thread->wants = CHECK_NOBODY;
        cai_sim_host_thread(sim, (uint64_t)i + 1);
        (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    }
    cai_sim_host_thread(sim, 0);
    run->started = cai_sim_publish(sim);
    run->thread_count = count;
    run->turn = CHECK_NOBODY;
#if CHECK_OS_THREADS
    check_run_threads(run);
#endif
    run->thread_count = 0;
    for (i = 0; i < count; i++) (void)cai_sim_observe(sim, run->threads[i].published);
}

/* ------------------------------------------------------------------- >>batons */
/* Outside of cai_check there is one baton: the last that was published. */
static void check_take_last(cai_sim *sim)
{
    uint64_t id = cai_sim_operation_count(sim);
    while (id > 0 && cai_sim_observe(sim, id)) id--;
}

void cai_check_pass(cai_sim *sim, int32_t number)
{
    check_run *run = check_run_of(sim);
    const uint64_t published = cai_sim_publish(sim);
    check_baton *baton;
    if (run == NULL) return;
    if (number < 0 || number >= CHECK_BATONS) {
        check_failure(run, "cai_check_pass: baton must be in 0..15");
        return;
    }
    baton = &run->batons[number];
    if (baton->passes < CHECK_PASSES) baton->passed[baton->passes++] = published;
    else check_failure(run, "a baton was passed too often");
}

void cai_check_take(cai_sim *sim, int32_t number)
{
    check_run *run = check_run_of(sim);
    check_baton *baton;
    if (run == NULL) check_take_last(sim);
    if (run == NULL) return;
    if (number < 0 || number >= CHECK_BATONS) {
        check_failure(run, "cai_check_take: baton must be in 0..15");
        return;
    }
    baton = &run->batons[number];
#if CHECK_OS_THREADS
    if (run->thread_count && baton->takes == baton->passes) {
        const int32_t self = run->turn;
        run->threads[self].wants = number;
        check_yield(run, self);
        run->threads[self].wants = CHECK_NOBODY;
    }
#endif
    if (baton->takes < baton->passes) (void)cai_sim_observe(sim, baton->passed[baton->takes++]);
    else if (!run->thread_count) check_failure(run, "a host thread takes a baton that no thread passed");
}

void cai_check_fail(cai_sim *sim, const char *text)
{
    check_run *run = check_run_of(sim);
    if (run != NULL) check_failure(run, text);
    else fprintf(stderr, "%s\n", text);
}

/* --------------------------------------------------------------------- >>runs */
/* What came of one run. */
typedef struct check_outcome {
    uint64_t fingerprint;
    int32_t races;        /* all of them */
    int32_t live_races;   /* not in a capture, which does not run */
    int32_t queued_races; /* and not between host threads alone: with their calls ordered as they came */
    int32_t strays;       /* it is of no interleaving that the others are of */
    int32_t needless;     /* another run comes out the same */
    int32_t broken;       /* work failed that ran as it came: what it comes to says nothing */
} check_outcome;

/* The search, over all runs. */
typedef struct check_search {
    cai_check_program program;
    void *argument;
    cai_check_options options;
    cai_check_result *result;
    check_choices turns, orders;
    uint64_t dice;
    int64_t runs;
    uint64_t first;      /* the fingerprint of the first run of all */
    int32_t differs;     /* interleavings do not come out alike */
    int64_t thread_only; /* interleavings with races of host threads only */
} check_search;

static void check_find_races(check_run *run, check_outcome *out)
{
    cai_check_order *order = check_order_make(run->sim, 0);
    cai_check_race race;
    out->races = check_first_races(run->sim, order, CHECK_CERTAIN, &race, 1);
    out->live_races = out->races ? check_races(run->sim, order, CHECK_CERTAIN | CHECK_LIVE, NULL, 0) : 0;
    out->queued_races = 0;
    cai_check_order_free(order);
    if (out->races == 0) return;
    order = check_order_make(run->sim, 1);
    out->queued_races = check_races(run->sim, order, CHECK_CERTAIN | CHECK_LIVE, NULL, 0);
    cai_check_order_free(order);
    if (run->result->racy) return;
    run->result->racy = 1; /* for this text; counted by interleavings later */
    cai_check_race_text(run->sim, &race, run->result->text);
}

static void check_leaks(check_run *run)
{
    char leaks[CAI_CHECK_TEXT - 16], text[CAI_CHECK_TEXT];
    if (cai_sim_leaks(run->sim, leaks, sizeof leaks) == 0) return;
    snprintf(text, sizeof text, "left alive: %s", leaks);
    check_failure(run, text);
}

/* Work that did not run, and calls that failed, prove nothing. 1: races that there are follow from an error
 * of a context, which is what is told. */
static int32_t check_errors(check_run *run)
{
    char errors[CAI_CHECK_TEXT - 100], text[CAI_CHECK_TEXT];
    if (cai_sim_errors(run->sim, errors, sizeof errors) == 0) return 0;
    snprintf(text, sizeof text, "%s: work did not run, or a call failed (cai_sim_clear_error, if on purpose)",
             errors);
    check_failure(run, text);
    return strncmp(errors, "context", strlen("context")) == 0;
}

static check_outcome check_run_once(check_search *search, check_choices *orders)
{
    check_run *run = (check_run *)check_new(1, sizeof *run);
    const int32_t devices = search->options.devices ? search->options.devices : 1;
    check_outcome out;
    cai_sim_hooks hooks;
    int32_t i;
    run->sim = cai_sim_create(devices);
    if (run->sim == NULL) abort();
    run->options = &search->options;
    run->result = search->result;
    run->turns = &search->turns;
    run->orders = orders;
    run->dice = &search->dice;
#if CHECK_OS_THREADS
    CHECK_GATE_MAKE(&run->gate);
    for (i = 0; i <= CHECK_THREADS; i++) CHECK_DOOR_MAKE(&run->gate, i);
#endif
    (void)cai_sim_set_context(run->sim, cai_sim_primary(run->sim, 0));
    cai_sim_salt_handles(run->sim, (uint32_t)(search->runs + 1));
    hooks.context = run;
    hooks.before = check_before_call;
    hooks.choose = check_choose_work;
    cai_sim_set_hooks(run->sim, &hooks);
    search->program(run->sim, search->argument);
    (void)cai_sim_run(run->sim);
    if (run->turns->changed || (orders != NULL && orders->changed))
        check_failure(run, "the calls of the program differ from run to run");
    out.broken = orders == NULL && check_errors(run);
    run->result->racy |= out.broken;
    check_find_races(run, &out);
    out.strays = run->strays;
    out.needless = run->needless;
    out.fingerprint = cai_sim_fingerprint(run->sim);
    check_leaks(run);
    if (orders == NULL && search->options.each) search->options.each(run->sim, search->options.each_argument);
    cai_sim_destroy(run->sim);
#if CHECK_OS_THREADS
    for (i = 0; i <= CHECK_THREADS; i++) CHECK_DOOR_FREE(&run->gate, i);
    CHECK_GATE_FREE(&run->gate);
#endif
    free(run->before);
    free(run);
    search->runs++;
    return out;
}

/* ----------------------------------------------------------------- >>checking */
static int check_may_run(check_search *search)
{
    const int64_t limit = search->options.limit ? search->options.limit : 200000;
    if (search->runs < limit) return 1;
    search->result->truncated = 1;
    return 0;
}

/* The next run of a search: by turns, or by the dice. */
static int check_more(check_search *search, check_choices *c, int64_t done)
{
    if (search->options.samples == 0 || c->count == 0) return check_advance(c);
    check_rewind(c, 0);
    return done < search->options.samples;
}

/* All orders of the work of one interleaving, until both oracles have spoken. */
static check_outcome check_orders(check_search *search, const check_outcome *as_it_came, int *changed)
{
    const int32_t turns = search->turns.count;
    check_outcome sum = *as_it_came;
    int64_t done = 0;
    check_rewind(&search->orders, 0);
    do {
        check_outcome out;
        if (!check_may_run(search)) break;
        check_rewind(&search->turns, turns);
        out = check_run_once(search, &search->orders);
        done++;
        if (out.needless) continue;
        search->result->orders++;
        if (out.races) sum.races = out.races;
        if (out.strays) continue;
        if (out.live_races) sum.live_races = out.live_races;
        if (out.queued_races) sum.queued_races = out.queued_races;
        if (out.fingerprint != as_it_came->fingerprint) *changed = 1;
    } while (!(*changed && sum.queued_races) && check_more(search, &search->orders, done));
    check_rewind(&search->turns, turns);
    return sum;
}

static void check_interleaving(check_search *search, int64_t *racy)
{
    cai_check_result *result = search->result;
    check_outcome out = check_run_once(search, NULL);
    int changed = 0;
    if (result->interleavings++ == 0) search->first = out.fingerprint;
    if (out.fingerprint != search->first) search->differs = 1;
    out = check_orders(search, &out, &changed);
    *racy += out.races != 0;
    result->changed += changed;
    search->thread_only += out.live_races && !out.queued_races && !changed && !out.broken;
    if (!result->truncated && !out.broken) result->disagreements += changed != (out.queued_races != 0);
}

static void check_say(check_search *search)
{
    cai_check_result *result = search->result;
    const char *text = NULL;
    if (result->text[0]) return;
    if (result->changed)
        text = "another order of the queued work changes memory, but without a race: are all accesses recorded?";
    else if (result->truncated) text = "cut off: there are more runs than the limit allows";
    if (text) snprintf(result->text, CAI_CHECK_TEXT, "%s", text);
}

int32_t cai_check(cai_check_program program, void *argument, const cai_check_options *options,
                  cai_check_result *out)
{
    cai_check_result unwanted;
    check_search search;
    cai_check_result *result = out != NULL ? out : &unwanted;
    int64_t racy = 0;
    memset(result, 0, sizeof *result);
    memset(&search, 0, sizeof search);
    search.program = program;
    search.argument = argument;
    if (options != NULL) search.options = *options;
    search.result = result;
    search.dice = search.options.samples ? check_dice(search.options.seed) : 0;
    do {
        if (!check_may_run(&search)) break;
        check_interleaving(&search, &racy);
    } while (check_more(&search, &search.turns, result->interleavings));
    if (search.thread_only && search.differs) result->changed += search.thread_only;
    else if (search.thread_only && !result->truncated) result->disagreements++;
    result->racy = racy;
    check_say(&search);
    free(search.turns.chosen);
    free(search.turns.of);
    free(search.orders.chosen);
    free(search.orders.of);
    return result->racy || result->changed || result->disagreements || result->failed || result->truncated;
}
