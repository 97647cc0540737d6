/* test_faults.c - every CUDA call of every function fails once, with every class of error.
 * SPDX-License-Identifier: MIT
 *
 * A scenario is a function of cai_stream.h in a situation. It runs once without a fault, which gives the list
 * of its calls; then again for each of these calls and each error, with that call failing. What must hold
 * after each is in check_after. At the end a table says how many failures of which call were injected into
 * which function, and how often something was left behind. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { PLACES = 70, ARRAYS = 4, STREAMS = 6, CALLS = 160, OPERATIONS = 21 };

static const int32_t errors[] = {1, 2, 3, 4, 35, 201, 400, 700, 709, 719, 900, 905, 906, 907, 999};

enum { ERRORS = (int)(sizeof errors / sizeof errors[0]) };

/* ------------------------------------------------------------------ the world of a scenario */

typedef struct world {
    cai_event_pool pool;
    cai_keepalive places[PLACES];
    cai_array a[ARRAYS], mask;
    cai_array *list[ARRAYS];
    int32_t count;
    cai_exchange ex;
    cai_exchange_options options;
    cai_location where;
    cai_status work; /* that end is told */
    int32_t waiting;
    uint64_t s[STREAMS]; /* 0 to 2 of c1, 3 to 5 of c2 */
    uint64_t c1, c2, m1, m2, pooled, pinned;
    uint64_t events[ARRAYS]; /* of the test */
    int32_t capturing;       /* s[0] captures */
} world;

static cai_sim *sim;
static world w;
static int32_t released, released_bits; /* bits: of the arrays of the world, if they are owned by numbers */

static void on_release(cai_array *array)
{
    const int32_t *number = (const int32_t *)array->owner;
    array->release = NULL;
    released++;
    if (number) released_bits |= 1 << *number;
}

/* What came from a device with an error, a stranger's, is of no interest here. */
static void must(cai_status status) { CHECK_INT(status, CAI_OK); }

static void open_world(int32_t capacity)
{
    int32_t i;
    memset(&w, 0, sizeof w);
    released = 0;
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS); /* the test says what runs */
    w.c1 = cai_sim_primary(sim, 0);
    w.c2 = cai_sim_primary(sim, 1);
    must(cai_sim_set_context(sim, w.c2));
    for (i = 3; i < STREAMS; i++) w.s[i] = cai_sim_stream_create(sim, 1);
    w.m2 = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096);
    w.pooled = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 4096);
    must(cai_sim_set_context(sim, w.c1));
    for (i = 0; i < 3; i++) w.s[i] = cai_sim_stream_create(sim, 1);
    w.m1 = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096);
    for (i = 0; i < ARRAYS; i++) w.list[i] = &w.a[i];
    must(cai_event_pool_init(&w.pool, cai_sim_cuda(sim), w.places, capacity, 0, NULL));
}

static void make(cai_array *array, uint64_t data, int32_t sync, uint64_t stream)
{
    const int64_t extent = 16;
    cai_dtype dtype;
    must(cai_dtype_of(CAI_FLOAT32, &dtype, NULL));
    must(cai_array_init_dtype(array, &dtype, 1, &extent, NULL, data, NULL));
    array->sync = sync;
    array->stream = stream;
    if (stream == CAI_STREAM_PER_THREAD) must(cai_sim_cuda(sim)->host_thread(sim, &array->thread));
}

static void add(uint64_t data, int32_t sync, uint64_t stream) { make(&w.a[w.count++], data, sync, stream); }

static void own_all(void)
{
    int32_t i;
    for (i = 0; i < w.count; i++) cai_array_own(&w.a[i], on_release, NULL);
}

static int32_t numbers[ARRAYS] = {0, 1, 2, 3};

static void own_by_number(void)
{
    int32_t i;
    released_bits = 0;
    for (i = 0; i < w.count; i++) {
        cai_array_own(&w.a[i], on_release, &numbers[i]);
        if (i % 2 == 0) w.a[i].flags |= CAI_ORDERED_FREE;
    }
}

/* An exchange over both contexts: it works, and the pool is warm after it. */
static void exchange_across(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    const int32_t open = w.pool.open_exchanges;
    cai_exchange ex;
    make(&a, w.m1, CAI_SYNC_STREAM, w.s[1]);
    make(&b, w.m2, CAI_SYNC_STREAM, w.s[4]);
    must(cai_exchange_begin(&ex, &w.pool, list, 2, w.s[5], NULL));
    CHECK_INT(w.pool.open_exchanges, open + 1);
    must(cai_exchange_end(&ex, CAI_OK, NULL));
    CHECK_INT(w.pool.open_exchanges, open);
}

static void keep(int32_t count, uint64_t stream)
{
    cai_array a;
    while (count-- > 0) {
        make(&a, w.m1, CAI_SYNC_NONE, 0);
        cai_array_own(&a, on_release, NULL);
        must(cai_keepalive_push(&a, &w.pool, stream, NULL));
    }
}

/* 32 idle events of c1: no room for one more. */
static void fill_idle(void)
{
    keep(CAI_POOL_EVENTS, w.s[0]);
    must(cai_keepalive_drain(&w.pool, NULL));
    CHECK_INT(w.pool.idle_count, CAI_POOL_EVENTS);
    released = 0;
}

static void capture(void)
{
    must(cai_sim_capture_begin(sim, w.s[0], CAI_SIM_MODE_THREAD_LOCAL));
    w.capturing = 1;
}

/* Pulls another stream into the capture, or joins it. */
static void fork_capture(uint64_t from, uint64_t to)
{
    uint64_t event;
    int32_t i, elsewhere = 0;
    for (i = 3; i < STREAMS; i++) elsewhere |= w.s[i] == from;
    must(cai_sim_set_context(sim, elsewhere ? w.c2 : w.c1));
    event = cai_sim_event_create(sim);
    must(cai_sim_event_record(sim, event, from));
    must(cai_sim_stream_wait_event(sim, to, event));
    must(cai_sim_event_destroy(sim, event));
    must(cai_sim_set_context(sim, w.c1));
}

/* ------------------------------------------------------------------ situations */

static void handles_to_c1(void) { add(w.m1, CAI_SYNC_STREAM, w.s[0]); add(w.m2, CAI_SYNC_STREAM, w.s[3]); }

static void cold(void)
{
    handles_to_c1();
    add(w.m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    w.ex.stream = w.s[2];
}

static void warm(void)
{
    exchange_across();
    cold();
}

static void cold_to_c2(void)
{
    cold();
    w.ex.stream = w.s[5];
}

static void to_legacy(void)
{
    handles_to_c1();
    add(w.m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    w.ex.stream = CAI_STREAM_LEGACY;
}

static void masked(void)
{
    add(w.m1, CAI_SYNC_STREAM, w.s[0]);
    make(&w.mask, w.m2, CAI_SYNC_STREAM, w.s[3]);
    w.a[0].mask = &w.mask;
    w.ex.stream = w.s[2];
}

static void unknown(void)
{
    add(w.m1, CAI_SYNC_UNKNOWN, 0);
    add(w.m2, CAI_SYNC_UNKNOWN, 0);
    add(w.m2, CAI_SYNC_STREAM, w.s[3]);
    w.ex.stream = w.s[2];
}

static void unknown_legacy(void)
{
    unknown();
    w.options.unknown = CAI_UNKNOWN_LEGACY;
}

static void pool_memory(void)
{
    add(w.pooled, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    w.ex.stream = w.s[2];
}

static void events(void)
{
    int32_t i;
    for (i = 0; i < 2; i++) {
        add(w.m1, CAI_SYNC_EVENT, i ? w.s[0] : 0);
        w.events[i] = w.a[i].event = cai_sim_event_create(sim);
        must(cai_sim_event_record(sim, w.events[i], w.s[i]));
    }
    w.ex.stream = w.s[3];
}

static void host(void)
{
    events();
    add(w.m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    add(w.m1, CAI_SYNC_STREAM, w.s[1]);
    w.options.mode = CAI_MODE_HOST;
}

static void host_to_legacy(void)
{
    handles_to_c1();
    w.options.mode = CAI_MODE_HOST;
    w.ex.stream = CAI_STREAM_LEGACY;
}

static void none(void)
{
    add(w.m1, CAI_SYNC_NONE, 0);
    w.ex.stream = w.s[3];
}

static void none_warm(void)
{
    exchange_across();
    none();
}

static void same_capture(void)
{
    capture();
    fork_capture(w.s[0], w.s[1]);
    fork_capture(w.s[0], w.s[3]);
    handles_to_c1();
    w.ex.stream = w.s[1];
}

static void join_capture(void)
{
    capture();
    fork_capture(w.s[0], w.s[3]);
    handles_to_c1();
    w.options.flags = CAI_EXCHANGE_JOIN_CAPTURE;
    w.ex.stream = w.s[2];
}

static void crowded(void)
{
    fill_idle();
    cold_to_c2();
}

/* ------------------------------------------------------------------ functions under test */

static cai_status do_begin(cai_error *err)
{
    return cai_exchange_begin_with(&w.ex, &w.pool, w.list, w.count, w.ex.stream, &w.options, err);
}

static void begun(void) { must(do_begin(NULL)); }

static void failed_work(void)
{
    begun();
    w.work = CAI_ERR_SHAPE;
}

static cai_status do_end(cai_error *err) { return cai_exchange_end(&w.ex, w.work, err); }

static void begun_owned(void)
{
    begun();
    own_by_number();
}

static void failed_work_owned(void)
{
    failed_work();
    own_by_number();
}

static cai_status do_finish(cai_error *err)
{
    return cai_exchange_finish(&w.ex, w.work, w.list, w.count, err);
}

static cai_status do_push(cai_error *err) { return cai_keepalive_push(&w.a[0], &w.pool, w.ex.stream, err); }
static cai_status do_poll(cai_error *err) { return cai_keepalive_poll(&w.pool, &w.waiting, err); }
static cai_status do_drain(cai_error *err) { return cai_keepalive_drain(&w.pool, err); }
static cai_status do_destroy(cai_error *err) { return cai_event_pool_destroy(&w.pool, err); }
static cai_status do_detach(cai_error *err) { return cai_stream_detach(&w.a[0], &w.pool, err); }
static cai_status do_drop(cai_error *err) { return cai_stream_drop_event(&w.a[0], &w.pool, err); }
static cai_status do_order(cai_error *err) { return cai_stream_order(&w.pool, w.s[0], w.ex.stream, err); }

static cai_status do_order_legacy(cai_error *err)
{
    return cai_stream_order(&w.pool, CAI_STREAM_PER_THREAD, CAI_STREAM_LEGACY, err);
}

static cai_status do_export(cai_error *err)
{
    const uint64_t pending[5] = {w.s[0], w.s[3], CAI_STREAM_LEGACY, w.s[1], w.s[0]};
    return cai_stream_export(&w.a[0], &w.pool, w.ex.stream, pending, 5, err);
}

static cai_status do_export_captured(cai_error *err)
{
    const uint64_t pending[2] = {w.s[0], w.s[3]};
    return cai_stream_export(&w.a[0], &w.pool, w.ex.stream, pending, 2, err);
}

static cai_status do_locate(cai_error *err)
{
    return cai_locate(&w.a[0], "a", cai_sim_cuda(sim), CAI_LOCATE_BOUNDS | CAI_LOCATE_PAGEABLE, &w.where,
                      err);
}

static void owned(void)
{
    none();
    own_all();
}

static void owned_warm(void)
{
    none_warm();
    own_all();
}

static void owned_legacy(void)
{
    owned();
    w.ex.stream = CAI_STREAM_LEGACY;
}

/* The list has as many places as arrays wait; the first of them has passed. */
static void owned_full(void)
{
    owned();
    keep(1, w.s[0]);
    must(cai_sim_stream_synchronize(sim, w.s[0]));
    keep(1, w.s[3]);
}

/* None of them has passed. */
static void owned_full_busy(void)
{
    owned();
    keep(1, w.s[0]);
    keep(1, w.s[3]);
}

static void wait_three(int32_t idle)
{
    keep(1, w.s[0]);
    keep(1, w.s[3]);
    keep(1, w.s[2]);
    keep(idle, w.s[1]);
    must(cai_sim_stream_synchronize(sim, w.s[1]));
    must(cai_keepalive_poll(&w.pool, NULL, NULL));
    CHECK_INT(w.pool.waiting, 3);
    must(cai_sim_stream_synchronize(sim, w.s[0]));
    must(cai_sim_stream_synchronize(sim, w.s[3]));
    released = 0;
}

static void three_wait(void) { wait_three(0); }
static void many_wait(void) { wait_three(CAI_POOL_EVENTS); } /* no room for their events */

static void detachable(void) { add(w.m2, CAI_SYNC_STREAM, w.s[3]); }
static void detachable_legacy(void) { add(w.m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY); }
static void detachable_warm(void) { exchange_across(); add(w.m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD); }

static void detached(void)
{
    detachable();
    must(do_detach(NULL));
    w.ex.stream = w.s[2];
}

static void detached_with_mask(void)
{
    detached();
    make(&w.mask, w.m1, CAI_SYNC_STREAM, w.s[1]);
    must(cai_stream_detach(&w.mask, &w.pool, NULL));
    w.a[0].mask = &w.mask;
}

static void cold_while_some_wait(void)
{
    keep(1, w.s[1]);
    must(cai_sim_stream_synchronize(sim, w.s[1]));
    keep(2, w.s[0]);
    cold();
}

static void mixed_memory(void)
{
    make(&w.a[0], w.pooled, CAI_SYNC_NONE, 0);
    make(&w.mask, w.pooled + 256, CAI_SYNC_NONE, 0);
    w.a[0].mask = &w.mask;
    w.count = 1;
}

static char plain[256];

static void pageable(void)
{
    make(&w.a[0], (uint64_t)(uintptr_t)plain, CAI_SYNC_NONE, 0);
    cai_sim_set_device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
    w.count = 1;
}

/* Pinned memory on a thread without a context, where CUDA tells its address in one only. */
static void pinned_nowhere(void)
{
    must(cai_sim_set_context(sim, w.c2));
    w.pinned = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 4096);
    make(&w.a[0], w.pinned, CAI_SYNC_NONE, 0);
    w.count = 1;
    cai_sim_set_options(sim, (cai_sim_options(sim) | CAI_SIM_NEED_CONTEXT) & ~(uint32_t)CAI_SIM_ZERO_ANSWERS);
    must(cai_sim_set_context(sim, 0));
}

/* ------------------------------------------------------------------ scenarios */

enum {
    ENDING = 1 << 0,  /* "the process is ending" is a success */
    BEGINS = 1 << 2,  /* an exchange is owed after success */
    ENDS = 1 << 3,    /* and is not, whatever happens */
    KEEPS = 1 << 4,   /* a[0] is owned, and is after a failure */
    LETS_GO = 1 << 5, /* arrays wait, and are released */
    FULL = 1 << 6,    /* a list of two places, and a poll in it, whose errors are not told */
    LOCATES = 1 << 7,
    NOWHERE = 1 << 8, /* no context is current */
    DROPS = 1 << 9,   /* an event goes with the array */
    LOOKS = 1 << 10,  /* begin looks at arrays that wait */
    FINISHES = 1 << 11
};

typedef struct scenario {
    const char *function, *situation;
    void (*prepare)(void);
    void (*prepare_more)(void);
    cai_status (*act)(cai_error *err);
    uint32_t flags;
} scenario;

static const scenario scenarios[] = {
    {"cai_exchange_begin", "two contexts, cold", cold, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "two contexts, warm", warm, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "consumer elsewhere", cold_to_c2, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "legacy consumer", to_legacy, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "mask", masked, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "unknown, synchronized", unknown, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "unknown, legacy", unknown_legacy, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "pool memory", pool_memory, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "events", events, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "CAI_MODE_HOST", host, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "one capture", same_capture, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "joining a capture", join_capture, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "no room for idle events", crowded, NULL, do_begin, BEGINS},
    {"cai_exchange_begin", "no context is current", to_legacy, NULL, do_begin, BEGINS | NOWHERE},
    {"cai_exchange_begin", "arrays wait", cold_while_some_wait, NULL, do_begin, BEGINS | LOOKS},
    {"cai_exchange_end", "two contexts, cold", cold, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "two contexts, warm", warm, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "consumer elsewhere", cold_to_c2, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "legacy consumer", to_legacy, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "after failed work", cold, failed_work, do_end, ENDING | ENDS},
    {"cai_exchange_end", "mask", masked, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "events", events, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "CAI_MODE_HOST", host, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "CAI_MODE_HOST, legacy", host_to_legacy, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "one capture", same_capture, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "joining a capture", join_capture, begun, do_end, ENDING | ENDS},
    {"cai_exchange_end", "no room for idle events", crowded, begun, do_end, ENDING | ENDS},
    {"cai_exchange_finish", "two contexts, cold", cold, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "two contexts, warm", warm, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "consumer elsewhere", cold_to_c2, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "after failed work", cold, failed_work_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "mask", masked, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "no pending work", none, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "CAI_MODE_HOST", host, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "no pending work, warm", none_warm, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "unknown, synchronized", unknown, begun_owned, do_finish, ENDING | FINISHES},
    {"cai_exchange_finish", "detached", detached, begun_owned, do_finish, ENDING | FINISHES | DROPS},
    {"cai_exchange_finish", "detached, mask too", detached_with_mask, begun_owned, do_finish,
     ENDING | FINISHES | DROPS},
    {"cai_keepalive_push", "another context", owned, NULL, do_push, ENDING | KEEPS},
    {"cai_keepalive_push", "another context, warm", owned_warm, NULL, do_push, ENDING | KEEPS},
    {"cai_keepalive_push", "legacy stream", owned_legacy, NULL, do_push, ENDING | KEEPS},
    {"cai_keepalive_push", "full list", owned_full, NULL, do_push, ENDING | KEEPS | FULL},
    {"cai_keepalive_push", "full list, the host waits", owned_full_busy, NULL, do_push,
     ENDING | KEEPS | FULL},
    {"cai_keepalive_poll", "three wait", three_wait, NULL, do_poll, ENDING | LETS_GO},
    {"cai_keepalive_poll", "no room for idle events", many_wait, NULL, do_poll, ENDING | LETS_GO},
    {"cai_keepalive_drain", "three wait", three_wait, NULL, do_drain, ENDING | LETS_GO},
    {"cai_keepalive_drain", "no room for idle events", many_wait, NULL, do_drain, ENDING | LETS_GO},
    {"cai_stream_order", "into the other context", cold_to_c2, NULL, do_order, 0},
    {"cai_stream_order", "default streams", cold, NULL, do_order_legacy, 0},
    {"cai_stream_order", "one capture", same_capture, NULL, do_order, 0},
    {"cai_stream_export", "four streams", cold_to_c2, NULL, do_export, 0},
    {"cai_stream_export", "one capture", same_capture, NULL, do_export_captured, 0},
    {"cai_stream_detach", "another context", detachable, NULL, do_detach, 0},
    {"cai_stream_detach", "legacy stream", detachable_legacy, NULL, do_detach, 0},
    {"cai_stream_detach", "per-thread stream, warm", detachable_warm, NULL, do_detach, 0},
    {"cai_stream_drop_event", "", detached, NULL, do_drop, ENDING},
    {"cai_event_pool_destroy", "two idle events", exchange_across, NULL, do_destroy, ENDING},
    {"cai_locate", "device memory, bounds", cold, NULL, do_locate, LOCATES},
    {"cai_locate", "pool memory, bounds, mask", mixed_memory, NULL, do_locate, LOCATES},
    {"cai_locate", "pageable memory", pageable, NULL, do_locate, LOCATES},
    {"cai_locate", "pinned memory, no context", pinned_nowhere, NULL, do_locate, LOCATES | NOWHERE}};

enum { SCENARIOS = (int)(sizeof scenarios / sizeof scenarios[0]) };

/* ------------------------------------------------------------------ logs */

static const char *const operations[OPERATIONS] = {
    "context_current", "context_push", "context_pop", "context_synchronize", "context_device",
    "device_context", "stream_context", "stream_capture", "stream_id", "stream_wait_event",
    "stream_synchronize", "event_create", "event_destroy", "event_record", "event_query",
    "event_synchronize", "capture_mode", "pointer_info", "pointer_range", "device_attribute", "context_id"};

#include "fault_log.h"

/* A call that puts an order into streams, or waits. */
static int orders(const char *line)
{
    return is(line, "event_create") || is(line, "event_record") || is(line, "stream_wait_event") ||
           is(line, "stream_synchronize") || is(line, "context_synchronize") || is(line, "event_synchronize");
}

/* Names in the log: streams of c2 were made first. */
static int waited(const char *log, uint64_t stream)
{
    static const char *const names[STREAMS] = {"s4 ", "s5 ", "s6 ", "s1 ", "s2 ", "s3 "};
    const char *name = stream == 1 ? "legacy " : "per_thread ";
    int32_t i;
    for (i = 0; i < STREAMS; i++) {
        if (w.s[i] == stream) name = names[i];
    }
    for (; *log; log = next_line(log)) {
        if (is(log, "stream_wait_event") && !failed(log) &&
            strncmp(log + strlen("stream_wait_event "), name, strlen(name)) == 0)
            return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ one run */

typedef struct fault {
    int32_t call; /* the one that fails; 0: none */
    int32_t error;
    int32_t length; /* so many calls in a row fail */
    int32_t sick;   /* an error of device sick - 1, from before the call */
    const char *operation;
} fault;

static int64_t injections, runs, leaks, context_changes, error_changes, mode_changes;
static int64_t cells[SCENARIOS][OPERATIONS];
static char text[16000];  /* the log of the run */
static char clean[16000]; /* that without a fault */
static world old;
static cai_error err;

static int is_dead(int32_t error) { return error == 4 || error == 700 || error == 709 || error == 719; }

/* Asks whether a context is still the one that it was, before an event of it is named. No answer is an answer. */
static int asks_whether_it_lives(const scenario *sc, const fault *f)
{
    if (strcmp(f->operation, "context_id") != 0) return 0;
    return sc->prepare == crowded || sc->act == do_destroy || sc->flags & (LETS_GO | FULL | LOOKS);
}

/* The status that a failure must have; -1: it depends. */
static cai_status expected(const scenario *sc, const fault *f)
{
    const int destroys = strcmp(f->operation, "event_destroy") == 0;
    const int polls = strcmp(f->operation, "event_query") == 0 ||
                      strcmp(f->operation, "capture_mode") == 0 ||
                      strcmp(f->operation, "event_synchronize") == 0;
    if (f->sick || asks_whether_it_lives(sc, f)) return -1;
    if (sc->flags & (ENDS | FINISHES) && w.work) return w.work;
    if (!f->call || (f->error == 4 && sc->flags & ENDING)) return CAI_OK;
    if (sc->flags & FULL && polls) return -1;
    if (sc->flags & NOWHERE && (f->error == 201 || f->error == 709)) return -1; /* then another one is asked */
    if (sc->flags & LOOKS && f->call == 2) return -1; /* does the consumer capture? that is asked again */
    if (polls && sc->flags & LOOKS) return f->length > 1 ? -1 : CAI_OK;
    if ((destroys && sc->flags & (LETS_GO | DROPS | LOOKS)) ||
        (strcmp(f->operation, "pointer_range") == 0 && (f->error == 1 || f->error == 201)))
        return f->length > 1 ? -1 : CAI_OK;
    return f->error >= 900 && f->error <= 908 ? CAI_ERR_CAPTURE : CAI_ERR_CUDA;
}

static void check_error(const scenario *sc, const fault *f, cai_status status, const cai_error *got)
{
    const cai_status wanted = expected(sc, f);
    const char *said = got ? got->message : "";
    char start[60];
    cai_error untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    if (wanted >= 0) CHECK_INT(status, wanted);
    if (!got) return;
    if (status == CAI_OK || (sc->flags & (ENDS | FINISHES) && w.work)) {
        CHECK_BYTES(got, &untouched, sizeof untouched);
        return;
    }
    CHECK_INT(got->code, status);
    CHECK(got->index >= -1 && got->index < (sc->flags & (BEGINS | ENDS) ? w.count : 5)); /* arrays, streams */
    if (wanted < 0) return;
    sprintf(start, "%s: CUDA error %d (", f->operation, (int)f->error);
    CHECK_INT(got->native, f->error);
    CHECK_INT(got->entry, CAI_ENTRY_NONE);
    if (sc->flags & LOCATES) { /* which names its argument */
        CHECK(strncmp(said, "a: ", 3) == 0);
        said += strlen(strncmp(said, "a: mask: ", 9) == 0 ? "a: mask: " : "a: ");
    }
    if (sc->flags & (BEGINS | FINISHES) && got->index >= 0 && strncmp(said, start, strlen(start)) != 0) {
        char array[40]; /* the end says its own sentence, with the index beside it */
        sprintf(array, "arrays[%d]: ", (int)got->index);
        CHECK(strncmp(said, array, strlen(array)) == 0);
        said += strlen(array);
    }
    if (strncmp(said, start, strlen(start)) != 0) CHECK_STR(said, start);
}

static int32_t mode_here(void)
{
    const cai_cuda *cuda = cai_sim_cuda(sim);
    int32_t mode = 0, before;
    must(cuda->capture_mode(cuda->self, &mode));
    before = mode;
    must(cuda->capture_mode(cuda->self, &mode));
    return before;
}

/* Beyond repair: what restores failed as well, or the question whether there is something to restore. */
static int broken(void)
{
    const int32_t pops = lines_of(text, "context_pop", 1);
    return pops > 1 || (pops && lines_of(text, "context_current", 1)) ||
           lines_of(text, "capture_mode", 1) > 1;
}

/* What the thread had before, it has again. */
static void check_thread(uint64_t context, int32_t last)
{
    if (cai_sim_last_error(sim) != last) error_changes++;
    CHECK_INT(cai_sim_last_error(sim), last);
    if (broken()) return;
    if (cai_sim_current(sim) != context) context_changes++;
    CHECK_UINT(cai_sim_current(sim), context);
    if (mode_here() != 0) mode_changes++;
    CHECK_INT(mode_here(), 0);
}

/* The first call that failed. */
static const char *first_failed(void)
{
    const char *line = text;
    while (*line && !failed(line)) line = next_line(line);
    CHECK(*line != 0);
    return line;
}

/* The waits of end: without a record there are none, and one that fails does not keep back the others; nor
 * does a stream that cannot be asked. */
static void check_waits(void)
{
    const char *line = first_failed(), *first = text;
    const int32_t all = lines_of(clean, "stream_wait_event", 0), n = lines_of(text, "stream_wait_event", 0);
    const int asks = is(line, "stream_capture");
    while (operation_of(first) != operation_of(line)) first = next_line(first);
    if (is(line, "stream_wait_event") || is(line, "event_destroy")) CHECK_INT(n, all);
    else if (asks) CHECK_INT(n, first == line ? 0 : all - 1); /* the consumer is asked first */
    else if (is(line, "context_push") || is(line, "context_pop") || is(line, "context_current"))
        CHECK(n == 0 || n == all - 1 || n == all);
    else CHECK_INT(n, 0);
}

/* No call that orders after the one that failed - but for the waits of end. */
static void check_calls_after(const scenario *sc, const fault *f)
{
    const char *line;
    if (!f->call || sc->flags & (LETS_GO | FULL | DROPS | LOOKS | FINISHES) || f->length > 1) return;
    if (asks_whether_it_lives(sc, f)) return;
    if (sc->flags & ENDS && lines_of(clean, "stream_wait_event", 0)) {
        check_waits();
        return;
    }
    for (line = next_line(first_failed()); *line; line = next_line(line)) CHECK(!orders(line));
}

/* The list of the pool is whole. */
static void check_places(void)
{
    int32_t i, n = 0;
    for (i = w.pool.free; i >= 0 && n < 1000; i = w.places[i].next) n++;
    CHECK_INT(n + w.pool.waiting, w.pool.capacity);
}

static void check_arrays_unchanged(void)
{
    int32_t i;
    for (i = 0; i < ARRAYS; i++) CHECK_BYTES(&w.a[i], &old.a[i], offsetof(cai_array, shape));
    CHECK_BYTES(&w.mask, &old.mask, offsetof(cai_array, shape));
}

static void check_begun(cai_status status)
{
    CHECK_INT(w.pool.open_exchanges, old.pool.open_exchanges + (status == CAI_OK));
    check_arrays_unchanged();
    if (status != CAI_OK) CHECK_INT(cai_exchange_end(&w.ex, CAI_OK, NULL), CAI_ERR_ARGUMENT);
}

static void check_ended(const fault *f, cai_status status)
{
    cai_exchange again = w.ex;
    CHECK_INT(w.pool.open_exchanges, old.pool.open_exchanges - 1);
    CHECK_INT(cai_exchange_end(&again, CAI_OK, NULL), CAI_ERR_ARGUMENT);
    check_arrays_unchanged();
    (void)f;
    (void)status;
}

/* The exchange has ended, each array was released, waits, or is still owned, and none is released before its
 * time. */
static void check_finished(const fault *f, cai_status status)
{
    const int of_callbacks = f->call && strcmp(f->operation, "capture_mode") == 0 &&
                             lines_of(text, "stream_synchronize", 0) > 0; /* the wait came before */
    const int passed = (status == CAI_OK || w.work || of_callbacks) && w.options.mode == CAI_MODE_HOST;
    const int32_t bits = released_bits, waits = w.pool.waiting - old.pool.waiting;
    int32_t i, owned = 0;
    const int dead = f->sick || (f->call && is_dead(f->error)); /* no work is left to wait for */
    CHECK_INT(w.pool.open_exchanges, 0);
    for (i = 0; i < w.count; i++) {
        const uint64_t s = old.a[i].stream, t = old.a[i].mask ? old.a[i].mask->stream : s;
        const int good = (s == w.ex.stream || waited(text, s)) && (t == w.ex.stream || waited(text, t));
        owned += w.a[i].release != NULL;
        if (bits >> i & 1 && !(good && i % 2 == 0) && !passed) CHECK(dead);
    }
    CHECK_INT(released + waits + owned, w.count);
    if (owned) CHECK(status != CAI_OK);
    for (i = 0; i < w.count; i++) cai_array_release(&w.a[i]);
    CHECK_INT(released + w.pool.waiting - old.pool.waiting, w.count);
}

static void check_kept(const scenario *sc, const fault *f, cai_status status)
{
    const int dead = f->sick || (f->call && is_dead(f->error));
    if (status == CAI_OK) CHECK(w.a[0].release == NULL);
    else if (!dead) CHECK(w.a[0].release == on_release);
    if (sc->flags & FULL) return;
    CHECK_INT(w.pool.waiting - old.pool.waiting + released, w.a[0].release == NULL);
}

static void check_let_go(const scenario *sc, const fault *f, cai_status status)
{
    const int32_t could = sc->act == do_drain ? 3 : 2;
    CHECK_INT(released + w.pool.waiting, 3);
    if (sc->act == do_poll) CHECK_INT(w.waiting, w.pool.waiting);
    if (f->sick || f->length > 1) return;
    if (!f->call || strcmp(f->operation, "event_destroy") == 0) CHECK_INT(released, could);
    if (status != CAI_OK && strcmp(f->operation, "capture_mode") != 0) {
        const int32_t asked = lines_of(text, "event_query", 0) + lines_of(text, "event_synchronize", 0);
        CHECK_INT(asked, 3);
        if (!is_dead(f->error)) CHECK(released == could || released == could - 1);
    }
}

/* Bounds that CUDA tells in no context stay unknown; those of a mask are nobody's. */
static void check_bounds(void)
{
    const char *line = text;
    int known = 0;
    while (*line && !is(line, "pointer_range")) line = next_line(line);
    if (!*line) return;
    for (; *line && !is(line, "pointer_info"); line = next_line(line))
        known |= is(line, "pointer_range") && !failed(line);
    CHECK_INT(w.where.bounds, known ? CAI_BOUNDS_INSIDE : CAI_BOUNDS_UNKNOWN);
    CHECK_INT((w.where.base | w.where.nbytes) != 0, known);
}

static void check_result(const scenario *sc, const fault *f, cai_status status)
{
    if (sc->flags & BEGINS) check_begun(status);
    else if (sc->flags & ENDS) check_ended(f, status);
    else if (sc->flags & FINISHES) check_finished(f, status);
    else if (sc->flags & KEEPS) check_kept(sc, f, status);
    else if (sc->flags & LETS_GO) check_let_go(sc, f, status);
    else if (sc->act == do_destroy) CHECK(w.pool.idle_count == 0 && w.pool.cuda == NULL);
    else if (status != CAI_OK) check_arrays_unchanged();
    if (sc->flags & LOCATES && status != CAI_OK) CHECK_BYTES(&w.where, &old.where, sizeof w.where);
    if (sc->flags & LOCATES && status == CAI_OK) check_bounds();
    if (sc->act != do_destroy) check_places();
}

/* Ends the capture; nothing that failed may have spoiled it. */
static void end_capture(void)
{
    const cai_cuda *cuda = cai_sim_cuda(sim);
    cai_cuda_capture state;
    int32_t i;
    if (!w.capturing) return;
    for (i = 1; i < STREAMS; i++) {
        must(cuda->stream_capture(cuda->self, w.s[i], &state));
        if (state.status) fork_capture(w.s[i], w.s[0]);
    }
    must(cai_sim_capture_end(sim, w.s[0], NULL));
}

/* Finishes what is owed, uses the pool again, and counts what was left behind. An event is lost if CUDA does
 * not destroy it; a device in error does, and reports the error. */
static void finish(const scenario *sc, const fault *f, cai_status status)
{
    char left[400];
    int32_t i, lost = f->sick ? 0 : lines_of(text, "event_destroy", 1);
    if (sc->act == do_drop && status != CAI_OK) lost = 0; /* it is told, and tried again */
    if (sc->act == do_drop && f->sick) w.a[0].sync = CAI_SYNC_NONE;
    if (sc->flags & NOWHERE) must(cai_sim_set_context(sim, w.c1));
    if (sc->flags & BEGINS && status == CAI_OK) must(do_end(NULL));
    end_capture();
    for (i = 0; i < w.count; i++) cai_array_release(&w.a[i]);
    if (w.a[0].sync == CAI_SYNC_EVENT && !w.events[0]) must(do_drop(NULL));
    if (w.mask.sync == CAI_SYNC_EVENT) must(cai_stream_drop_event(&w.mask, &w.pool, NULL));
    for (i = 0; i < ARRAYS; i++) {
        if (w.events[i]) must(cai_sim_event_destroy(sim, w.events[i]));
    }
    if (sc->act != do_destroy) {
        exchange_across();
        must(cai_keepalive_drain(&w.pool, NULL));
        must(cai_event_pool_destroy(&w.pool, NULL));
    }
    cai_sim_run(sim);
    for (i = 0; i < STREAMS; i++) must(cai_sim_stream_destroy(sim, w.s[i]));
    must(cai_sim_free(sim, w.m1));
    must(cai_sim_free(sim, w.m2));
    must(cai_sim_free(sim, w.pooled));
    if (w.pinned) must(cai_sim_free(sim, w.pinned));
    i = cai_sim_leaks(sim, left, sizeof left);
    if (f->sick || (f->call && f->error != 4 && is_dead(f->error))) { /* events that are dead are not destroyed */
        CHECK(i == 0 || (strncmp(left, "events: ", 8) == 0 && !strchr(left, ';')));
        return;
    }
    leaks += i - lost;
    if (i != lost) CHECK_STR(left, "");
}

/* told: with an error struct; otherwise without, and with an error of CUDA's pending. */
static void run_once(const scenario *sc, const fault *f, int told)
{
    char note[200];
    cai_status status;
    uint64_t context;
    int32_t i, last;
    sprintf(note, "%s, %s: call %d (%s) fails with %d, %d times%s", sc->function, sc->situation, (int)f->call,
            f->operation, (int)f->error, (int)f->length, f->sick ? ", device in error" : "");
    cai_test_note(note);
    open_world(sc->flags & FULL ? 2 : PLACES);
    sc->prepare();
    if (sc->prepare_more) sc->prepare_more();
    if (!told) CHECK(cai_sim_event_destroy(sim, 0) != 0);
    if (sc->flags & NOWHERE) must(cai_sim_set_context(sim, 0)); /* such a call makes one current */
    if (f->sick) cai_sim_set_device_error(sim, f->sick - 1, 700);
    memcpy(&old, &w, sizeof w);
    context = cai_sim_current(sim);
    last = cai_sim_last_error(sim);
    if (!f->sick) CHECK_INT(last == 0, told);
    cai_sim_log_clear(sim);
    for (i = 0; i < f->length; i++) CHECK_INT(cai_sim_fail(sim, f->call + i, f->error), 1);
    memset(&err, 0x5a, sizeof err);
    status = sc->act(told ? &err : NULL);
    CHECK(strlen(cai_sim_log(sim)) < sizeof text);
    strcpy(text, cai_sim_log(sim));
    if (f->length == 1) CHECK_INT(cai_sim_faults(sim), 0);
    cai_sim_faults_clear(sim);
    check_error(sc, f, status, told ? &err : NULL);
    check_thread(context, last);
    check_calls_after(sc, f);
    if (f->sick) cai_sim_set_device_error(sim, f->sick - 1, 0);
    cai_sim_clear_error(sim);
    runs++;
    if (!broken()) check_result(sc, f, status);
    if (!broken()) finish(sc, f, status);
    cai_sim_destroy(sim);
}

/* The process ends: everything answers 4. */
static void run_teardown(const scenario *sc)
{
    cai_status status;
    int32_t calls;
    open_world(sc->flags & FULL ? 2 : PLACES);
    sc->prepare();
    if (sc->prepare_more) sc->prepare_more();
    if (sc->flags & NOWHERE) must(cai_sim_set_context(sim, 0));
    cai_test_note(sc->situation);
    memset(&err, 0x5a, sizeof err);
    cai_sim_teardown(sim);
    cai_sim_log_clear(sim);
    status = sc->act(&err);
    calls = cai_sim_calls(sim);
    CHECK(calls > 0);
    CHECK_INT(status, w.work ? w.work : sc->flags & ENDING ? CAI_OK : CAI_ERR_CUDA);
    if (!(sc->flags & ENDING)) CHECK_INT(err.native, 4);
    CHECK_UINT(cai_sim_current(sim), sc->flags & NOWHERE ? 0 : w.c1);
    if (sc->flags & KEEPS && !(sc->flags & FULL)) CHECK_INT(released, 1);
    if (sc->flags & LETS_GO) CHECK_INT(released, 3);
    if (sc->flags & FINISHES) CHECK_INT(released, w.count);
    CHECK_INT(w.pool.open_exchanges, 0);
    runs++;
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ all runs */

static void run_scenario(int32_t index)
{
    const scenario *sc = &scenarios[index];
    fault f = {0, 0, 0, 0, ""};
    const char *line;
    int32_t i, told, call = 0;
    run_once(sc, &f, 1);
    strcpy(clean, text);
    run_once(sc, &f, 0);
    CHECK_STR(text, clean);
    CHECK(*clean != 0);
    f.length = 1;
    for (line = clean; *line; line = next_line(line)) {
        f.call = ++call;
        f.operation = operations[operation_of(line)];
        for (i = 0; i < ERRORS; i++) {
            f.error = errors[i];
            for (told = 0; told < 2; told++) run_once(sc, &f, told);
            cells[index][operation_of(line)] += 2;
            injections += 2;
        }
        for (f.length = 2; f.length <= 16; f.length += 7) { /* 2, 9 and 16 calls in a row */
            f.error = 999;
            run_once(sc, &f, 1);
            f.error = 4;
            run_once(sc, &f, 1);
        }
        f.length = 1;
    }
    f.call = f.length = 0;
    f.operation = "";
    for (f.sick = 1; f.sick <= 2; f.sick++) {
        f.error = 700;
        for (told = 0; told < 2; told++) run_once(sc, &f, told);
    }
    run_teardown(sc);
}

static void print_row(int32_t first, int32_t end)
{
    int32_t i, k;
    printf("%-24s", scenarios[first].function);
    for (k = 0; k < OPERATIONS; k++) {
        int64_t sum = 0;
        for (i = first; i < end; i++) sum += cells[i][k];
        if (sum) printf(" %4ld", (long)sum);
        else printf("    .");
    }
    printf("\n");
}

static void print_table(void)
{
    int32_t i, first = 0;
    for (i = 0; i < OPERATIONS; i++)
        printf("%s%c %s", i % 5 ? "  " : i ? "\n" : "", 'a' + (int)i, operations[i]);
    printf("\n\n%-24s", "failures injected");
    for (i = 0; i < OPERATIONS; i++) printf("    %c", 'a' + (int)i);
    printf("\n");
    for (i = 1; i <= SCENARIOS; i++) {
        if (i < SCENARIOS && strcmp(scenarios[i].function, scenarios[first].function) == 0) continue;
        print_row(first, i);
        first = i;
    }
    printf("\n%ld injections, leaks %ld, context changes %ld, last-error changes %ld, "
           "capture-mode changes %ld\n",
           (long)injections, (long)leaks, (long)context_changes, (long)error_changes, (long)mode_changes);
    printf("%ld runs, with failures in a row, devices in error, and the end of the process\n", (long)runs);
}

static void run(void)
{
    int32_t i;
    for (i = 0; i < SCENARIOS; i++) run_scenario(i);
    cai_test_note("");
    print_table();
    CHECK_INT(leaks | context_changes | error_changes | mode_changes, 0);
}

CAI_TEST_MAIN(run)
