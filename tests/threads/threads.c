/* threads.c - many host threads on one pool: every event with one thread at a time, every array once.
 * SPDX-License-Identifier: MIT
 *
 *     threads thin|sim THREADS ROUNDS
 *
 * On the simulation, and on a table of its own. That one takes no lock and uses relaxed atomics alone, so
 * that what orders the threads is the pool and nothing else: ThreadSanitizer sees every gap. It follows each
 * event: which thread recorded it last, and whether it is parked, that is, waits in the keep-alive list or
 * belongs to a detached array, and in which context it was made. A thread destroys a stream of its own as
 * soon as the header allows, and makes another one. Prints one line; the exit status is 1 if an event was
 * with two threads, an array was released twice or never, a stream was named that is gone, or something is
 * left over. On the simulation a stream that is gone ends the program at once. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"
#if !defined(CAI_SIM_LINKED)
#include "sim/cai_sim.c"
#endif

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_THREADS = 64,
    EVENTS = 1 << 20,  /* that a run may create */
    SHARED = 6,        /* streams that all threads use */
    OWN = 3,           /* streams of one thread alone */
    LIST = 5,          /* places in the keep-alive list: few, so that it is often full */
    ARRAYS = 4         /* of one exchange */
};

#define STREAM_BASE 0x1000u
#define STREAM_STEP 0x8000u /* from a stream to the one that takes its place */
#define EVENT_BASE 0x100000u

/* ------------------------------------------------------------------ relaxed */

static int64_t add(int64_t *to, int64_t value) { return __atomic_add_fetch(to, value, __ATOMIC_RELAXED); }
static int64_t get(int64_t *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
static void set(int64_t *to, int64_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }

static int64_t swap(int64_t *at, int64_t value)
{
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ table */

typedef struct event {
    int64_t alive, busy, parked;
    int64_t holder; /* the thread that recorded it last; 0: never */
    int64_t left;   /* queries until it has passed */
    int64_t context;
} event;

static event events[EVENTS];
static int64_t created, destroyed, records, waits, host_waits;
static int64_t handed_on; /* may another thread wait for an event than the one that recorded it? */
static int64_t two_threads, bad_contexts, bad_events, bad_streams; /* what must stay 0 */
static int64_t streams[SHARED + MOST_THREADS * OWN], gone_streams;

static __thread int64_t me;          /* 1, 2, ... */
static __thread int64_t parking;     /* records now are for keeping */
static __thread uint64_t contexts[8];
static __thread int depth;
static __thread int32_t mode_of_thread;

static uint64_t current(void) { return depth ? contexts[depth - 1] : 1; }

/* A stream that is named must not be gone. */
static uint64_t context_of(uint64_t stream)
{
    const uint64_t n = (stream - STREAM_BASE) % STREAM_STEP;
    if (stream <= 2) return current();
    if (n < sizeof streams / sizeof streams[0] && get(&streams[n]) != (int64_t)stream) add(&bad_streams, 1);
    return 1 + stream % 2;
}

static event *event_of(uint64_t number)
{
    event *e = &events[(number - EVENT_BASE) % EVENTS];
    if (number < EVENT_BASE || number >= EVENT_BASE + EVENTS || !get(&e->alive)) add(&bad_events, 1);
    return e;
}

static int32_t thin_current(void *self, uint64_t *context)
{
    (void)self;
    *context = current();
    return 0;
}

static int32_t thin_push(void *self, uint64_t context)
{
    (void)self;
    if (depth == 8 || context < 1 || context > 2) add(&bad_contexts, 1);
    contexts[depth++ % 8] = context;
    return 0;
}

static int32_t thin_pop(void *self)
{
    (void)self;
    if (depth-- < 1) add(&bad_contexts, 1);
    return 0;
}

static int32_t thin_synchronize(void *self)
{
    (void)self;
    return 0;
}

static int32_t thin_device(void *self, int32_t *device)
{
    (void)self;
    *device = (int32_t)current() - 1;
    return 0;
}

static int32_t thin_primary(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    *context = (uint64_t)device + 1;
    return 0;
}

static int32_t thin_stream_context(void *self, uint64_t stream, uint64_t *context)
{
    (void)self;
    *context = context_of(stream);
    return 0;
}

static int32_t thin_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    (void)self;
    (void)context_of(stream);
    memset(capture, 0, sizeof *capture);
    return 0;
}

static int32_t thin_context_id(void *self, uint64_t context, uint64_t *id)
{
    (void)self;
    if (context < 1 || context > 2) add(&bad_contexts, 1);
    *id = context + 40;
    return 0;
}

static int32_t thin_wait(void *self, uint64_t stream, uint64_t number)
{
    event *e = event_of(number);
    (void)self;
    (void)context_of(stream);
    sched_yield();
    if (!handed_on && get(&e->holder) != me) add(&two_threads, 1);
    add(&waits, 1);
    return 0;
}

static int32_t thin_stream_synchronize(void *self, uint64_t stream)
{
    (void)self;
    (void)context_of(stream);
    return 0;
}

static int32_t thin_create(void *self, uint64_t *number)
{
    const int64_t n = add(&created, 1) - 1;
    (void)self;
    if (n >= EVENTS) return 2;
    set(&events[n].alive, 1);
    set(&events[n].context, (int64_t)current());
    *number = EVENT_BASE + (uint64_t)n;
    return 0;
}

static int32_t thin_destroy(void *self, uint64_t number)
{
    event *e = event_of(number);
    (void)self;
    if (swap(&e->busy, 1)) add(&two_threads, 1);
    set(&e->alive, 0);
    add(&destroyed, 1);
    return 0;
}

/* Who records holds the event; a parked one must not come back before it has passed. */
static int32_t thin_record(void *self, uint64_t number, uint64_t stream)
{
    event *e = event_of(number);
    (void)self;
    if (get(&e->context) != (int64_t)context_of(stream)) add(&bad_contexts, 1);
    if (swap(&e->busy, 1) || swap(&e->parked, parking)) add(&two_threads, 1);
    set(&e->holder, me);
    set(&e->left, me % 3);
    sched_yield();
    if (get(&e->holder) != me) add(&two_threads, 1);
    set(&e->busy, 0);
    add(&records, 1);
    return 0;
}

static int32_t passed(event *e)
{
    if (add(&e->left, -1) > 0) return 600;
    set(&e->parked, 0);
    return 0;
}

static int32_t thin_query(void *self, uint64_t number)
{
    (void)self;
    return passed(event_of(number));
}

static int32_t thin_event_synchronize(void *self, uint64_t number)
{
    event *e = event_of(number);
    (void)self;
    set(&e->left, 0);
    add(&host_waits, 1);
    sched_yield();
    return passed(e);
}

static int32_t thin_mode(void *self, int32_t *mode)
{
    const int32_t before = mode_of_thread;
    (void)self;
    mode_of_thread = *mode;
    *mode = before;
    return 0;
}

static int32_t thin_pointer(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self;
    memset(info, 0, sizeof *info);
    info->memory = CAI_MEMORY_DEVICE;
    info->device = (int32_t)(pointer >> 20 & 1);
    info->context = 1 + (pointer >> 20 & 1);
    info->device_pointer = pointer;
    return 0;
}

static int32_t thin_thread(void *self, uint64_t *thread)
{
    (void)self;
    *thread = (uint64_t)me;
    return 0;
}

static void fill_table(cai_cuda *cuda)
{
    memset(cuda, 0, sizeof *cuda);
    cuda->struct_size = (uint32_t)sizeof *cuda;
    cuda->version = CAI_CUDA_VERSION;
    cuda->context_current = thin_current;
    cuda->context_push = thin_push;
    cuda->context_pop = thin_pop;
    cuda->context_synchronize = thin_synchronize;
    cuda->context_device = thin_device;
    cuda->device_context = thin_primary;
    cuda->stream_context = thin_stream_context;
    cuda->stream_capture = thin_capture;
    cuda->context_id = thin_context_id;
    cuda->stream_wait_event = thin_wait;
    cuda->stream_synchronize = thin_stream_synchronize;
    cuda->event_create = thin_create;
    cuda->event_destroy = thin_destroy;
    cuda->event_record = thin_record;
    cuda->event_query = thin_query;
    cuda->event_synchronize = thin_event_synchronize;
    cuda->capture_mode = thin_mode;
    cuda->pointer_info = thin_pointer;
    cuda->host_thread = thin_thread;
}

/* ------------------------------------------------------------------ work */

/* Released on whichever thread polls, and not atomic: the pool's hand-over must order it. */
typedef struct token {
    int64_t released;
    int polls; /* the callback polls, too */
} token;

typedef struct worker {
    pthread_t thread;
    int64_t number;
    int64_t rounds;
    uint64_t random;
    token *tokens;
    int64_t used, most;
    int64_t exchanges, failures;
} worker;

static cai_sim *sim;     /* NULL: the thin table */
static cai_cuda table;
static uint64_t memory[2];
static cai_event_pool pool;
static cai_keepalive storage[LIST];

static uint32_t draw(worker *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

static void ok(worker *w, cai_status status, const cai_error *err)
{
    if (status == CAI_OK) return;
    if (!w->failures++) printf("thread %lld: %s\n", (long long)w->number, err ? err->message : "refused");
}

static void on_release(cai_array *array)
{
    token *t = (token *)array->owner;
    const int64_t before = parking;
    array->release = NULL;
    t->released++;
    parking = 0;
    if (t->polls && cai_keepalive_poll(&pool, NULL, NULL) != CAI_OK) t->released += 100;
    parking = before;
}

/* A stream of this thread, or of all, or the per-thread default stream. */
static uint64_t any_stream(worker *w)
{
    const uint32_t n = draw(w, SHARED + OWN + 1);
    if (n == SHARED + OWN) return CAI_STREAM_PER_THREAD;
    return (uint64_t)streams[n < SHARED ? (int64_t)n : (int64_t)n + w->number * OWN];
}

/* No call is left that may name these streams. Those of this thread go, with their work pending. */
static void end_streams(worker *w, const uint64_t *used, int32_t count)
{
    const int64_t first = SHARED + w->number * OWN;
    int64_t n, k;
    for (n = first; n < first + OWN; n++) {
        const uint64_t old = (uint64_t)streams[n];
        uint64_t fresh = old + STREAM_STEP;
        for (k = 0; k < count && used[k] != old;) k++;
        if (k == count) continue;
        if (sim) {
            if (cai_sim_set_context(sim, cai_sim_primary(sim, (int32_t)(n % 2)))) w->failures++;
            if (cai_sim_stream_destroy(sim, old)) w->failures++;
            fresh = cai_sim_stream_create(sim, 1);
            if (cai_sim_set_context(sim, cai_sim_primary(sim, 0))) w->failures++;
        }
        set(&streams[n], (int64_t)fresh);
        add(&gone_streams, 1);
    }
}

static void any_array(worker *w, cai_array *array, int32_t sync)
{
    const int64_t extent = 4;
    const cai_status made =
        cai_array_init(array, CAI_FLOAT32, 1, &extent, NULL, (void *)(uintptr_t)memory[draw(w, 2)], NULL);
    if (made != CAI_OK) w->failures++;
    array->sync = sync;
    array->stream = sync == CAI_SYNC_STREAM ? any_stream(w) : 0;
    ok(w, cai_stream_remember_thread(array, &pool, NULL), NULL);
}

static void own(worker *w, cai_array *array)
{
    token *t = &w->tokens[w->used++];
    t->polls = draw(w, 5) == 0;
    cai_array_own(array, on_release, t);
}

static void push(worker *w, cai_array *array, uint64_t stream)
{
    cai_error err;
    cai_status status;
    parking = 1;
    status = cai_keepalive_push(array, &pool, stream, &err);
    parking = 0;
    ok(w, status, &err);
}

/* Will the array wait in the list? */
static int waits_for_consumer(const cai_array *array)
{
    const uint32_t order = array->flags & (uint32_t)(CAI_ORDERED_FREE | CAI_NO_BACK_EDGE);
    return array->release && (order != CAI_ORDERED_FREE || array->sync == CAI_SYNC_NONE);
}

/* The event of the end is parked if an array waits for it. */
static void finish_exchange(worker *w, cai_exchange *ex, cai_array *const *list, int32_t count, int32_t mode)
{
    cai_error err;
    cai_status status;
    int64_t kept = 0;
    int32_t i;
    for (i = 0; i < count && mode != CAI_MODE_HOST; i++) kept |= waits_for_consumer(list[i]);
    parking = kept;
    status = cai_exchange_finish(ex, CAI_OK, list, count, &err);
    parking = 0;
    ok(w, status, &err);
}

static void do_exchange(worker *w)
{
    const int32_t kinds[3] = {CAI_SYNC_STREAM, CAI_SYNC_STREAM, CAI_SYNC_NONE};
    const uint64_t stream = any_stream(w);
    uint64_t used[ARRAYS + 1]; /* the last is the consumer's */
    cai_array *list[ARRAYS];
    cai_array arrays[ARRAYS];
    cai_exchange_options options;
    cai_exchange ex;
    cai_error err;
    cai_status status;
    int32_t i, count = 1 + (int32_t)draw(w, ARRAYS);
    memset(&options, 0, sizeof options);
    memset(used, 0, sizeof used);
    used[ARRAYS] = stream;
    if (draw(w, 8) == 0) options.mode = CAI_MODE_HOST;
    for (i = 0; i < count; i++) {
        any_array(w, &arrays[i], kinds[draw(w, 3)]);
        if (draw(w, 8) == 0) arrays[i].flags |= CAI_NO_BACK_EDGE;
        if (draw(w, 3) == 0) arrays[i].flags |= CAI_ORDERED_FREE;
        if (draw(w, 2)) own(w, &arrays[i]);
        list[i] = &arrays[i];
        used[i] = arrays[i].stream;
    }
    status = cai_exchange_begin_with(&ex, &pool, list, count, stream, &options, &err);
    ok(w, status, &err);
    if (status == CAI_OK) finish_exchange(w, &ex, list, count, options.mode);
    for (i = 0; i < count; i++) cai_array_release(&arrays[i]); /* if it failed */
    end_streams(w, used, ARRAYS + 1);
    w->exchanges++;
}

static void do_export(worker *w)
{
    uint64_t pending[6]; /* and the array's own */
    cai_array array;
    cai_error err;
    cai_status status;
    uint64_t stream;
    int32_t i, count = (int32_t)draw(w, 6);
    any_array(w, &array, CAI_SYNC_UNKNOWN);
    for (i = 0; i < count; i++) pending[i] = any_stream(w);
    stream = pending[count] = any_stream(w);
    status = cai_stream_export(&array, &pool, stream, pending, count, &err);
    end_streams(w, pending, count + 1);
    if (stream == CAI_STREAM_PER_THREAD && status == CAI_ERR_STREAM) return; /* memory of another context */
    ok(w, status, &err);
}

static void do_detach(worker *w)
{
    cai_array *list[1];
    cai_array array;
    cai_exchange ex;
    cai_error err;
    uint64_t used[2];
    any_array(w, &array, CAI_SYNC_STREAM);
    used[0] = array.stream;
    used[1] = any_stream(w);
    list[0] = &array;
    parking = 1;
    ok(w, cai_stream_detach(&array, &pool, &err), &err);
    parking = 0;
    ok(w, cai_exchange_begin(&ex, &pool, list, 1, used[1], &err), &err);
    if (draw(w, 2)) own(w, &array);
    finish_exchange(w, &ex, list, 1, CAI_MODE_EVENT);
    end_streams(w, used, 2);
    ok(w, cai_stream_drop_event(&array, &pool, &err), &err);
}

static void do_push(worker *w)
{
    const uint64_t stream = any_stream(w);
    cai_array array;
    any_array(w, &array, CAI_SYNC_NONE);
    own(w, &array);
    push(w, &array, stream);
    end_streams(w, &stream, 1);
}

static void do_other(worker *w)
{
    cai_error err;
    int32_t waiting = 0;
    cai_status drained;
    switch (draw(w, 6)) {
    case 0: /* another thread may have arrays at this moment */
        drained = cai_keepalive_drain(&pool, &err);
        if (drained != CAI_ERR_PENDING) ok(w, drained, &err);
        break;
    case 1:
    case 2: ok(w, cai_keepalive_poll(&pool, &waiting, &err), &err); break;
    case 3: ok(w, cai_event_pool_forget(&pool, draw(w, 2) ? 77 : 2, &err), &err); break; /* 77: a search */
    default: ok(w, cai_stream_order(&pool, any_stream(w), any_stream(w), &err), &err); break;
    }
    if (waiting < 0 || waiting > LIST) w->failures++;
}

static void *work(void *argument)
{
    worker *w = (worker *)argument;
    int64_t n;
    me = w->number + 1;
    if (sim && cai_sim_set_context(sim, cai_sim_primary(sim, 0))) w->failures++;
    for (n = 0; n < w->rounds && w->used + ARRAYS < w->most; n++) {
        switch (draw(w, 8)) {
        case 0: do_export(w); break;
        case 1: do_detach(w); break;
        case 2: do_push(w); break;
        case 3:
        case 4: do_other(w); break;
        default: do_exchange(w); break;
        }
    }
    if (depth != 0 || mode_of_thread != 0) add(&bad_contexts, 1);
    if (sim && cai_sim_current(sim) != cai_sim_primary(sim, 0)) add(&bad_contexts, 1);
    return NULL;
}

/* Streams of both contexts, and memory in each; in the thin table numbers do. */
static int open_table(int simulated)
{
    const int64_t count = (int64_t)(sizeof streams / sizeof streams[0]);
    int64_t n;
    fill_table(&table);
    for (n = 0; n < count; n++) streams[n] = STREAM_BASE + n;
    for (n = 0; n < 2; n++) memory[n] = (uint64_t)(n + 2) << 20;
    if (!simulated) return 1;
    sim = cai_sim_create(2);
    if (!sim) return 0;
    table = *cai_sim_cuda(sim);
    for (n = 0; n < count + 2; n++) {
        if (cai_sim_set_context(sim, cai_sim_primary(sim, (int32_t)(n % 2)))) return 0;
        if (n < count) streams[n] = (int64_t)cai_sim_stream_create(sim, 1);
        else memory[n - count] = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    }
    return memory[0] && memory[1];
}

/* What the simulation knows to be left over. */
static int64_t close_table(void)
{
    const int64_t count = (int64_t)(sizeof streams / sizeof streams[0]);
    int64_t n, left;
    if (!sim) return get(&created) - get(&destroyed);
    set(&records, cai_sim_calls_of(sim, "event_record"));
    set(&waits, cai_sim_calls_of(sim, "stream_wait_event"));
    set(&created, cai_sim_calls_of(sim, "event_create"));
    set(&host_waits, cai_sim_calls_of(sim, "event_synchronize"));
    for (n = 0; n < count; n++) (void)cai_sim_stream_destroy(sim, (uint64_t)streams[n]);
    for (n = 0; n < 2; n++) (void)cai_sim_free(sim, memory[n]);
    left = cai_sim_leaks(sim, NULL, 0);
    cai_sim_destroy(sim);
    return left;
}

/* ------------------------------------------------------------------ sums */

typedef struct sums {
    int64_t exchanges, arrays, twice, never, failures;
} sums;

static void add_up(const worker *w, sums *s)
{
    int64_t n;
    s->exchanges += w->exchanges;
    s->arrays += w->used;
    s->failures += w->failures;
    for (n = 0; n < w->used; n++) {
        s->twice += w->tokens[n].released > 1;
        s->never += w->tokens[n].released < 1;
    }
}

static int report(const sums *s, int64_t threads)
{
    const int64_t left = close_table();
    printf("%lld threads: %lld exchanges, %lld records, %lld waits, %lld of the host; "
           "%lld arrays, %lld released twice, %lld never; %lld events, %lld with two threads, "
           "%lld used after the end, %lld left over; %lld streams gone, %lld named after that; "
           "%lld context errors, %lld failures\n",
           (long long)threads, (long long)s->exchanges, (long long)get(&records), (long long)get(&waits),
           (long long)get(&host_waits), (long long)s->arrays, (long long)s->twice, (long long)s->never,
           (long long)get(&created), (long long)get(&two_threads), (long long)get(&bad_events),
           (long long)left, (long long)get(&gone_streams), (long long)get(&bad_streams),
           (long long)get(&bad_contexts), (long long)s->failures);
    return s->twice || s->never || s->failures || left || get(&two_threads) || get(&bad_events) ||
           get(&bad_contexts) || get(&bad_streams) || !s->exchanges || !s->arrays || !get(&gone_streams);
}

static int run(int64_t threads, int64_t rounds)
{
    static worker workers[MOST_THREADS];
    sums s;
    cai_error err;
    int64_t n;
    int bad;
    memset(&s, 0, sizeof s);
    for (n = 0; n < threads; n++) {
        workers[n].number = n;
        workers[n].rounds = rounds;
        workers[n].random = (uint64_t)n * 7919 + 1;
        workers[n].most = rounds * ARRAYS + ARRAYS;
        workers[n].tokens = (token *)calloc((size_t)workers[n].most, sizeof(token));
        if (!workers[n].tokens || pthread_create(&workers[n].thread, NULL, work, &workers[n])) return 2;
    }
    for (n = 0; n < threads; n++) pthread_join(workers[n].thread, NULL);
    me = threads + 1;
    if (cai_keepalive_drain(&pool, &err) != CAI_OK) s.failures++;
    if (pool.waiting || pool.open_exchanges) s.failures++;
    if (cai_event_pool_destroy(&pool, &err) != CAI_OK) s.failures++;
    for (n = 0; n < threads; n++) add_up(&workers[n], &s);
    bad = report(&s, threads);
    for (n = 0; n < threads; n++) free(workers[n].tokens);
    return bad;
}

int main(int argc, char **argv)
{
    const int64_t threads = argc > 2 ? atoll(argv[2]) : 8, rounds = argc > 3 ? atoll(argv[3]) : 4000;
    const int simulated = argc > 1 && strcmp(argv[1], "sim") == 0;
    cai_error err;
    if (threads < 1 || threads > MOST_THREADS || rounds < 1 || rounds > 1000000) return 2;
    if (!open_table(simulated)) return 2;
    if (cai_event_pool_init(&pool, &table, storage, LIST, 0, &err) != CAI_OK) {
        printf("%s\n", err.message);
        return 2;
    }
    return run(threads, rounds);
}
