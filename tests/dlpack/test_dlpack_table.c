/* test_dlpack_table.c - what the deleter of an ordered export does, cell by cell, on the simulated runtime
 * SPDX-License-Identifier: MIT
 *
 * A cell is a stream of the consumer, a capture, a driver and a promise. Each rule names what it rests on: a
 * sentence of CUDA's documentation, or an answer of an H100 (tests/gpu/facts_h100.txt). A cell without such a
 * source parks the array. Where the consumer may destroy its stream, it does so before the deleter runs.
 *
 * test_dlpack_table cells prints a line for each cell; test_dlpack_table rules prints the table of docs/dlpack.md. */
#include "ordered.h"
#include "cai_test.h"

enum { BYTES = 64, FILLED = 7, USED_AGAIN = 9, CONSUMER_THREAD = 7, OTHER_THREAD = 9 };

static cai_error err;

/* ------------------------------------------------------------------- the table */

enum { OWN, LEGACY, THREAD, ENDED, BLOCKING, NON_BLOCKING, UNNAMED, STREAMS };
enum { QUIET, SEEN, UNSEEN, INSIDE, CAPTURES };
enum { OLD, D120, D125, DRIVERS };
enum { NOTHING, LIVE, FREE, PROMISES };
enum { IMPOSSIBLE, AT_ONCE, EVENT_1, EVENT_STREAM, EVENT_CONTEXT, AFTER_CAPTURE, PARKED, GRAPH };

static const char *const stream_names[] = {"the array's own", "1", "2", "2 of a thread that ended", "a blocking one",
                                           "a non-blocking one", "-1"};
static const char *const capture_names[] = {"none", "of a blocking stream", "of a non-blocking stream",
                                            "the export is in it"};
static const char *const driver_names[] = {"below 12.0", "12.0", "12.5"};
static const char *const promise_names[] = {"none", "`STREAMS_LIVE`", "`NO_CAPTURES`"};
static const char *const outcome_names[] = {"cannot be", "at once", "an event in stream 1",
                                            "an event in that stream", "an event of the context",
                                            "parked until the capture has ended, then an event in stream 1",
                                            "parked", "stays until the graph has ended, then as without a capture"};

typedef struct rule {
    uint32_t streams, captures, drivers, promises; /* bits */
    int32_t outcome;
    const char *source;
} rule;

#define BIT(n) (1u << (n))
#define ANY 0xffu
#define HANDLES (BIT(BLOCKING) | BIT(NON_BLOCKING))
#define SYNCING (BIT(LEGACY) | BIT(THREAD) | BIT(ENDED) | BIT(BLOCKING)) /* with stream 1 */

/* The first one that matches decides. */
static const rule rules[] = {
    {BIT(LEGACY) | BIT(UNNAMED), BIT(INSIDE), ANY, ANY, IMPOSSIBLE,
     "cuStreamBeginCapture: \"Capture must not be initiated if stream is CU_STREAM_LEGACY\""},
    {ANY, BIT(INSIDE), ANY, ANY, GRAPH,
     "cuGraphLaunch: \"ordered behind [...] any previous launches of hGraphExec\"; a user object tells the end"},
    {ANY, BIT(SEEN) | BIT(UNSEEN), ANY, BIT(FREE), IMPOSSIBLE, "the promise"},
    {BIT(OWN), ANY, ANY, ANY, AT_ONCE, "R81: a stream outlives the export; the owner frees in its order"},
    {HANDLES, ANY, ANY, BIT(LIVE), EVENT_STREAM,
     "the promise; H100, `beside_record_global`: 0, and the capture goes on"},
    {SYNCING, BIT(SEEN), ANY, ANY, AFTER_CAPTURE,
     "H100, `legacy_beside_blocking`: the query is 906 without harm, a record ends the capture"},
    {BIT(LEGACY), ANY, ANY, ANY, EVENT_1, "cuEventRecord; H100, `legacy_beside_non_blocking`: 0"},
    {BIT(THREAD) | BIT(ENDED), ANY, ANY, ANY, EVENT_1, "H100, `stream_2_of_an_ended_thread`: 600, so it is covered"},
    {BIT(BLOCKING), ANY, ANY, ANY, EVENT_1, "H100, `legacy_covers_destroyed_blocking`: 600, so it is covered"},
    {BIT(NON_BLOCKING), BIT(QUIET), BIT(D125), BIT(FREE), EVENT_CONTEXT,
     "H100, `context_event_destroyed_stream`: 600, so it is covered"},
    {ANY, ANY, ANY, ANY, PARKED, NULL}};

enum { RULES = sizeof rules / sizeof rules[0] };

typedef struct cell {
    int32_t stream, capture, driver, promise;
} cell;

static const rule *rule_of(const cell *at)
{
    const rule *found = rules;
    while (!(found->streams & BIT(at->stream)) || !(found->captures & BIT(at->capture)) ||
           !(found->drivers & BIT(at->driver)) || !(found->promises & BIT(at->promise)))
        found++;
    return found;
}

/* ------------------------------------------------------------------- a world */

typedef struct world {
    cai_sim *sim;
    cai_cuda cuda; /* of the driver of the cell */
    cai_event_pool pool;
    uint64_t context, s1, consumer, launched, capturing, memory, executable;
    cai_array array;
    cai_dlpack_ordered storage;
    struct DLManagedTensorVersioned *tensor;
    int32_t released, done, dead, used, wrong;
} world;

static world w;

static void count_dead(void *context, const cai_sim_undefined *what)
{
    printf("    %s\n", what->text);
    ++*(int32_t *)context;
}

static unsigned char *bytes_of_memory(void)
{
    return (unsigned char *)cai_sim_bytes(w.sim, w.memory);
}

static void fill(void *unused)
{
    (void)unused;
    memset(bytes_of_memory(), FILLED, BYTES);
}

static void use(void *unused)
{
    int32_t i;
    (void)unused;
    w.used++;
    for (i = 0; i < BYTES; i++) w.wrong += bytes_of_memory()[i] != FILLED;
}

static void use_again(void *unused)
{
    (void)unused;
    memset(bytes_of_memory(), USED_AGAIN, BYTES);
}

static void launch(uint64_t stream, const char *name, cai_sim_function function, int writes)
{
    const cai_sim_access access = writes ? cai_sim_writes(w.memory, BYTES) : cai_sim_reads(w.memory, BYTES);
    CHECK_INT(cai_sim_launch(w.sim, stream, name, function, NULL, &access, 1), 0);
}

/* The owner gives the memory to its next array, in the order of its stream. */
static void give_to_the_next(cai_array *array)
{
    array->release = NULL;
    w.released++;
    launch(w.s1, "use again", use_again, 1);
}

static void count_done(cai_dlpack_storage *storage)
{
    (void)storage;
    w.done++;
}

static void open_table(int32_t driver)
{
    w.cuda = *cai_sim_cuda(w.sim);
    if (driver < D125) w.cuda.context_record = NULL;
    if (driver < D120) w.cuda.stream_id = NULL;
    if (driver < D120) w.cuda.context_id = NULL;
}

static void open_world(const cell *at)
{
    const int64_t shape[1] = {BYTES};
    memset(&w, 0, sizeof w);
    w.sim = cai_sim_create(1);
    if (!w.sim) exit(2);
    cai_sim_on_undefined(w.sim, count_dead, &w.dead);
    w.context = cai_sim_context_create(w.sim, 0);
    CHECK_INT(cai_sim_set_context(w.sim, w.context), 0);
    w.s1 = cai_sim_stream_create(w.sim, 1);
    w.memory = cai_sim_alloc(w.sim, CAI_SIM_MEM_POOL, BYTES);
    open_table(at->driver);
    CHECK_INT(cai_event_pool_init(&w.pool, &w.cuda, NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(cai_array_init(&w.array, CAI_UINT8, 1, shape, NULL, bytes_of_memory(), &err), CAI_OK);
    w.array.memory = CAI_MEMORY_DEVICE;
    w.array.device = 0;
    w.array.sync = CAI_SYNC_STREAM;
    w.array.stream = w.s1;
    cai_array_own(&w.array, give_to_the_next, NULL);
    w.array.flags |= CAI_ORDERED_FREE;
    w.storage.storage.done = count_done;
    launch(w.s1, "fill", fill, 1);
}

/* ------------------------------------------------------------------- a turn */

/* The consumer's stream, by number; it launches on w.launched. */
static void open_consumer(const cell *at)
{
    if (at->stream == LEGACY) w.launched = w.consumer = CAI_STREAM_LEGACY;
    else if (at->stream == THREAD || at->stream == ENDED) w.launched = w.consumer = CAI_STREAM_PER_THREAD;
    else if (at->stream == OWN) w.launched = w.consumer = w.s1;
    else w.launched = w.consumer = cai_sim_stream_create(w.sim, at->stream != BLOCKING);
    if (at->stream == UNNAMED) w.consumer = 0;
    if (at->capture != INSIDE && at->stream != UNNAMED) return;
    CHECK_INT(cai_sim_stream_synchronize(w.sim, w.s1), 0); /* nothing is pending from outside */
    if (at->stream != OWN) w.array.sync = CAI_SYNC_NONE;
}

/* A context may be current on one thread only (CAI_SIM_ONE_THREAD_CONTEXTS). */
static void play(uint64_t thread)
{
    CHECK_INT(cai_sim_set_context(w.sim, 0), 0);
    cai_sim_host_thread(w.sim, thread);
    CHECK_INT(cai_sim_set_context(w.sim, w.context), 0);
}

/* The consumer asks for the array, and launches. */
static void consume(const cell *at)
{
    static const uint32_t flags[] = {0, CAI_DLPACK_STREAMS_LIVE, CAI_DLPACK_NO_CAPTURES};
    uint64_t graph = 0;
    if (at->stream == ENDED) play(CONSUMER_THREAD);
    if (at->capture == INSIDE) CHECK_INT(cai_sim_capture_begin(w.sim, w.launched, 0), 0);
    if (!CHECK_INT(cai_dlpack_export_ordered_versioned(&w.array, &w.pool, w.consumer, flags[at->promise],
                                                       &w.storage, &w.tensor, &err), CAI_OK))
        printf("    %s\n", err.message);
    launch(w.launched, "use", use, 0);
    if (at->capture == INSIDE) {
        CHECK_INT(cai_sim_capture_end(w.sim, w.launched, &graph), 0);
        w.executable = cai_sim_graph_instantiate(w.sim, graph);
        CHECK_INT(cai_sim_graph_destroy(w.sim, graph), 0);
    }
    if (at->stream != ENDED) return;
    play(0);
    cai_sim_host_thread_end(w.sim, CONSUMER_THREAD);
}

/* Another thread captures, in the mode that forbids most. */
static void begin_their_capture(const cell *at)
{
    if (at->capture != SEEN && at->capture != UNSEEN) return;
    play(OTHER_THREAD);
    w.capturing = cai_sim_stream_create(w.sim, at->capture == UNSEEN);
    CHECK_INT(cai_sim_capture_begin(w.sim, w.capturing, 0), 0);
    play(0);
}

static void end_their_capture(void)
{
    uint64_t graph = 0;
    if (!w.capturing) return;
    play(OTHER_THREAD);
    CHECK_INT(cai_sim_capture_end(w.sim, w.capturing, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(w.sim, graph), 0);
    CHECK_INT(cai_sim_stream_destroy(w.sim, w.capturing), 0);
    play(0);
}

static int32_t host_waits(void)
{
    return cai_sim_calls_of(w.sim, "context_synchronize") + cai_sim_calls_of(w.sim, "event_synchronize") +
           cai_sim_calls_of(w.sim, "stream_synchronize");
}

/* What the deleter did, if it has released. */
static int32_t what_it_did(void)
{
    const char *record = strstr(cai_sim_log(w.sim), "event_record ");
    if (cai_sim_calls_of(w.sim, "context_record")) return EVENT_CONTEXT;
    if (!record) return AT_ONCE;
    return strstr(record, " legacy") && strstr(record, " legacy") < strchr(record, '\n') ? EVENT_1 : EVENT_STREAM;
}

static int32_t drop(void)
{
    cai_sim_log_clear(w.sim);
    ((cai_dl_managed_versioned *)w.tensor)->deleter(w.tensor);
    CHECK_INT(host_waits(), 0);
    CHECK_INT(w.pool.dlpack.arrays, !w.released);
    CHECK_INT(w.pool.dlpack.bytes, w.released ? 0 : BYTES);
    if (w.released && what_it_did() == AT_ONCE) CHECK_INT(cai_sim_calls(w.sim), cai_sim_calls_of(w.sim, "capture_mode"));
    return w.released ? what_it_did() : PARKED;
}

/* The graph is launched again, and the array is there. Then the graph ends. */
static void end_graph(void)
{
    int32_t i;
    for (i = 0; i < 2; i++) CHECK_INT(cai_sim_graph_launch(w.sim, w.executable, w.s1), 0);
    CHECK_INT(cai_sim_graph_executable_destroy(w.sim, w.executable), 0);
    w.executable = 0;
    CHECK_INT(cai_keepalive_poll(&w.pool, NULL, &err), CAI_OK); /* its launches are queued */
    CHECK_INT(w.released, 0);
    CHECK_INT(cai_sim_stream_synchronize(w.sim, w.s1), 0);
    CHECK_INT(w.used, 2);
    cai_sim_log_clear(w.sim);
}

/* What ends a parked array. */
static int32_t end_parked(const cell *at)
{
    CHECK_INT(cai_keepalive_poll(&w.pool, NULL, &err), CAI_OK);
    if (at->capture == INSIDE && !w.released && cai_sim_run(w.sim)) /* an event has passed */
        CHECK_INT(cai_keepalive_poll(&w.pool, NULL, &err), CAI_OK);
    if (w.released && at->capture == INSIDE) return what_it_did();
    if (w.released) return at->capture == SEEN ? AFTER_CAPTURE : IMPOSSIBLE;
    return cai_keepalive_drain(&w.pool, &err) ? IMPOSSIBLE : PARKED;
}

/* The graph keeps the array. Then it goes as it would without a capture; but the flags of a stream that captures are
 * not known. */
static int32_t end_kept(const cell *at)
{
    cell quiet = *at;
    CHECK_INT(cai_keepalive_drain(&w.pool, &err), CAI_ERR_PENDING);
    end_graph();
    quiet.capture = QUIET;
    if (at->stream == BLOCKING) quiet.stream = NON_BLOCKING;
    CHECK_INT(end_parked(at), rule_of(&quiet)->outcome);
    return GRAPH;
}

/* Runs what is queued, the newest that may run first. */
static void run_newest(void)
{
    uint64_t ready[16];
    int32_t count;
    while ((count = cai_sim_ready(w.sim, ready, 16)) != 0)
        CHECK_INT(cai_sim_run_operation(w.sim, ready[(count < 16 ? count : 16) - 1]), 1);
}

static void close_world(int lives)
{
    cai_check_race race;
    char text[CAI_CHECK_TEXT] = "";
    run_newest();
    CHECK(w.used > 0);
    CHECK_INT(w.wrong, 0);
    if (cai_check_races(w.sim, &race, 1)) cai_check_race_text(w.sim, &race, text);
    CHECK_STR(text, "");
    CHECK_INT(w.dead, 0);
    CHECK_INT(w.released * 10 + w.done, 11);
    CHECK_INT(w.pool.dlpack.arrays + w.pool.dlpack.bytes + w.pool.waiting, 0);
    if (lives) CHECK_INT(cai_sim_stream_destroy(w.sim, w.launched), 0);
    CHECK_INT(cai_sim_stream_destroy(w.sim, w.s1), 0);
    CHECK_INT(cai_event_pool_destroy(&w.pool, &err), CAI_OK);
    CHECK_INT(cai_sim_free(w.sim, w.memory), 0);
    CHECK_INT(cai_sim_context_destroy(w.sim, w.context), 0);
    CHECK_INT(cai_sim_leaks(w.sim, NULL, 0), 0);
    cai_sim_destroy(w.sim);
}

static void check_cell(const cell *at, const rule *expected)
{
    const int is_handle = at->stream == BLOCKING || at->stream == NON_BLOCKING || at->stream == UNNAMED;
    const int lives = is_handle && at->promise == LIVE;
    int32_t did;
    open_world(at);
    open_consumer(at);
    consume(at);
    if (is_handle && !lives) CHECK_INT(cai_sim_stream_destroy(w.sim, w.launched), 0);
    begin_their_capture(at);
    did = drop();
    if (did == PARKED && at->capture == SEEN) { /* a drain ends no capture that can be asked for */
        CHECK_INT(cai_keepalive_drain(&w.pool, &err), CAI_ERR_PENDING);
    }
    end_their_capture();
    if (did == PARKED) did = at->capture == INSIDE ? end_kept(at) : end_parked(at);
    if (!CHECK_INT(did, expected->outcome))
        printf("    it is \"%s\", not \"%s\"\n", outcome_names[did], outcome_names[expected->outcome]);
    close_world(lives);
}

/* ------------------------------------------------------------------- all cells */

static void run(int prints)
{
    char name[200];
    cell at;
    int32_t i;
    for (i = 0; i < STREAMS * CAPTURES * DRIVERS * PROMISES; i++) {
        const rule *found;
        at.stream = i / (CAPTURES * DRIVERS * PROMISES);
        at.capture = i / (DRIVERS * PROMISES) % CAPTURES;
        at.driver = i / PROMISES % DRIVERS;
        at.promise = i % PROMISES;
        found = rule_of(&at);
        (void)snprintf(name, sizeof name, "stream %s; capture %s; driver %s; promise %s", stream_names[at.stream],
                       capture_names[at.capture], driver_names[at.driver], promise_names[at.promise]);
        if (prints) printf("%s: %s (%s)\n", name, outcome_names[found->outcome],
                           found->source ? found->source : "no source");
        cai_test_note(name);
        CHECK(found->source || found->outcome == PARKED);
        if (found->outcome != IMPOSSIBLE) check_cell(&at, found);
    }
    cai_test_note("");
}

static void print_names(uint32_t bits, const char *const *names, int32_t count)
{
    const char *between = " ";
    int32_t i;
    for (i = 0; i < count; i++) {
        if (!(bits & BIT(i))) continue;
        if ((bits & BIT(count)) != 0) break;
        printf("%s%s", between, names[i]);
        between = ", or ";
    }
    printf("%s |", bits & BIT(count) ? " any" : "");
}

static void print_rules(void)
{
    const rule *at;
    printf("| the consumer's stream | a capture | driver | promise | the deleter | because |\n|---|---|---|---|---|---|\n");
    for (at = rules; at < rules + RULES; at++) {
        printf("|");
        print_names(at->streams, stream_names, STREAMS);
        print_names(at->captures, capture_names, CAPTURES);
        print_names(at->drivers, driver_names, DRIVERS);
        print_names(at->promises, promise_names, PROMISES);
        printf(" %s | %s |\n", outcome_names[at->outcome], at->source ? at->source : "no source");
    }
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "rules")) {
        print_rules();
        return 0;
    }
    run(!strcmp(what, "cells"));
    return cai_test_end();
}
