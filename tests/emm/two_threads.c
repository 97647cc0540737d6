/* two_threads.c - cai_manager.h and arrays of cai_emm.h: random steps of two threads, in one thread.
 * SPDX-License-Identifier: MIT
 *
 *     two_threads [SEED [ROUNDS]]
 *
 * In each round two threads have handles and arrays of one piece of a manager's memory, and in some rounds
 * arrays by a table. They take random steps. While a call of thread 1 is under way, thread 2 takes steps in
 * its CUDA calls and hooks (races.h). Each free must come after all work that was queued on the memory before
 * it was given back. There must be one free of each. The rounds have the seeds SEED, SEED + 1, ... The same
 * seed always does the same. If a round fails, its steps are printed. */
#include "races.h"

enum { STEPS = 14, ARRAYS = 4, CELLS = 4, STREAMS = 5, TURNS = 1000, BAD_ROUNDS = 9 };

/* What a thread has of the manager's memory, `shared`. A free that failed is made again on its stream. */
static struct {
    int32_t handles, arrays, scopes;
    uint32_t failed_on; /* the number of the stream */
    int32_t failed;
    cai_array array[ARRAYS];
} hands[2];
static cai_memory_handle shared;

/* An array by a table. Either thread may release it. */
typedef struct cell {
    cai_array array;
    cai_emm_hooks hooks;
    work_list works;
    uint32_t home; /* the number of the stream that it was made with */
    char *ptr;     /* NULL: freed */
    int32_t held;  /* 1: it was not released, 2: it is being made */
    char bytes[512];
} cell;
static cell cells[CELLS];

static uint64_t random_state, seed;
static uint32_t width; /* how many streams the round uses, stream 2 last */
static int32_t with_captures, with_faults, with_tables, captured[STREAMS], capturing, step_number, ending;
static int64_t captures, captures_before[2]; /* of the call under way of each thread */
static int64_t steps, inside, deferred, manager_frees, table_frees, table_left;
static char told[16000]; /* the steps of the round */

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* Streams by number: s1, s2, s3, stream 2 of thread 1, stream 2 of thread 2. */
static uint64_t stream_of(uint32_t number)
{
    const uint64_t streams[STREAMS] = {s1, s2, s3, CAI_STREAM_PER_THREAD, CAI_STREAM_PER_THREAD};
    return streams[number];
}

/* One that this thread can use, and that does not capture. */
static uint32_t any_number(void)
{
    uint32_t i;
    do {
        i = draw(width);
        if (i > 2) i = 3 + (uint32_t)me;
    } while (captured[i]);
    return i;
}

static uint64_t any_stream(void) { return stream_of(any_number()); }

/* Notes a step, for messages. */
static void tell(const char *what, const char *how, uint64_t stream)
{
    const size_t length = strlen(told);
    char line[160], on[20] = "";
    uint32_t i;
    for (i = 0; i < 3; i++) { /* as the simulation names them */
        if (stream_of(i) == stream) (void)snprintf(on, sizeof on, " on s%d", (int)i + 1);
    }
    if (stream == CAI_STREAM_PER_THREAD) (void)snprintf(on, sizeof on, " on per_thread");
    (void)snprintf(line, sizeof line, "seed %llu, step %d, thread %d: %s%s%s", (unsigned long long)seed,
                   (int)step_number, (int)me + 1, what, on, how);
    cai_test_note(line);
    (void)snprintf(told + length, sizeof told - length, "    %s\n", line);
    steps++;
}

static void become(int32_t thread)
{
    me = thread;
    cai_sim_host_thread(sim, (uint64_t)thread + 1);
}

static void more_work(work_list *list, uint64_t stream)
{
    if (list->count < WORKS) queue_work(list, stream);
}

/* True: the call under way may fail. While any stream captures, the host cannot wait for the context. */
static int may_fail(void) { return with_faults || capturing || captures != captures_before[me]; }

static int went_well(cai_status status)
{
    if (status && !may_fail()) {
        printf("%s\n", err->message);
        CHECK_INT(status, CAI_OK);
    }
    return !status;
}

/* ------------------------------------------------------------------ the other thread, and faults */

static void take_step(void);

/* What thread 2 does while a call of thread 1 is under way. */
static void meantime(void)
{
    char note[sizeof cai_test_noted];
    const int64_t before = steps;
    uint32_t times = 1 + draw(3);
    memcpy(note, cai_test_noted, sizeof note);
    while (times--) take_step();
    inside += steps - before;
    cai_test_note(note);
    if (draw(2)) meanwhile("", (int32_t)draw(4), meantime); /* again, later in the same call */
}

/* Before a call: thread 2 may come in at one of its first steps. */
static void disturb(void)
{
    captures_before[me] = captures;
    if (!me && draw(5)) meanwhile("", (int32_t)draw(8), meantime);
}

static void start_faults(void)
{
    static const char *const slots[] = {"event_record", "stream_wait_event", "context_synchronize",
                                        "stream_synchronize", "host_thread", "stream_capture"};
    const uint32_t count = (uint32_t)(sizeof slots / sizeof *slots) - (with_captures != 0);
    /* A stream whose query fails is taken for one that does not capture, so it must not capture. */
    if (!me && with_faults && draw(2)) fail(slots[draw(count)], 1 + (int32_t)draw(2), 1, 0);
}

static void end_faults(void)
{
    if (!me) fault.times = 0;
}

/* ------------------------------------------------------------------ steps; false: none was possible */

static int step_free(void)
{
    const uint32_t number = hands[me].failed ? hands[me].failed_on : any_number();
    const uint64_t stream = stream_of(number);
    if (!hands[me].handles || captured[number]) return 0;
    tell("free", "", stream);
    if (draw(3)) more_work(&works, stream);
    disturb();
    hands[me].handles--;
    hands[me].failed = !went_well(cai_manager_free(&emm, shared, stream, err));
    hands[me].failed_on = number;
    hands[me].handles += hands[me].failed;
    return 1;
}

/* What an array by a table names next comes after the work in the stream that it was made with. The host waits
 * where it names none. */
static void leave_home(uint32_t home, const cai_array *array)
{
    const uint64_t event = cai_sim_event_create(sim);
    const int32_t here = me;
    if (home > 2) become((int32_t)home - 3);
    CHECK_INT(cai_sim_event_record(sim, event, stream_of(home)), 0);
    become(here);
    if (array->sync == CAI_SYNC_NONE) CHECK_INT(cai_sim_event_synchronize(sim, event), 0);
    else CHECK_INT(cai_sim_stream_wait_event(sim, array->stream, event), 0);
    CHECK_INT(cai_sim_event_destroy(sim, event), 0);
}

/* A thread, this or the other one, works on the array. The array then names a stream, an event or no work, or
 * says nothing of the work. home: of an array by a table, else STREAMS. Returns the number of the stream, which does not capture. */
static uint32_t name_work(cai_array *array, work_list *list, const char *what, uint32_t home)
{
    static const char *const how[] = {" by a stream", " of no more work", " of unknown work", " by an event"};
    static const int32_t states[] = {CAI_SYNC_STREAM, CAI_SYNC_NONE, CAI_SYNC_UNKNOWN, CAI_SYNC_EVENT};
    const uint32_t state = draw(4);
    const int32_t here = me;
    uint32_t number;
    tell(what, how[state], 0);
    become((int32_t)draw(2));
    number = any_number();
    array->sync = states[state];
    array->stream = stream_of(number);
    array->thread = (uint64_t)me + 1;
    if (home < STREAMS) leave_home(home, array);
    if (array->sync != CAI_SYNC_NONE) tell("work on the array", "", array->stream);
    if (array->sync != CAI_SYNC_NONE) more_work(list, array->stream);
    if (array->sync == CAI_SYNC_EVENT) {
        array->event = cai_sim_event_create(sim);
        CHECK_INT(cai_sim_event_record(sim, array->event, array->stream), 0);
    }
    become(here);
    return number;
}

/* Releases an array after more work on it. The stream that it names may capture by now. */
static void release(cai_array *array, work_list *list, const char *what, uint32_t home)
{
    const uint32_t number = name_work(array, list, what, home);
    const uint64_t event = array->sync == CAI_SYNC_EVENT ? array->event : 0;
    const uint64_t stream = array->stream;
    const int capture = with_captures && array->sync == CAI_SYNC_STREAM && !capturing &&
                        (number < 3 || array->thread == (uint64_t)me + 1) && draw(2);
    disturb();
    if (capture) {
        tell("capture during the release", "", stream);
        CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_RELAXED), 0);
        captured[number] = capturing = 1;
        captures++;
    }
    start_faults();
    cai_array_release(array);
    end_faults();
    if (capture) {
        (void)cai_sim_capture_end(sim, stream, NULL);
        captured[number] = capturing = 0;
    }
    if (event) CHECK_INT(cai_sim_event_destroy(sim, event), 0);
}

static int step_release(void)
{
    if (!hands[me].arrays) return 0;
    release(&hands[me].array[--hands[me].arrays], &works, "release", STREAMS);
    return 1;
}

/* The memory waits in the pool if no order was possible. */
static int step_table_release(void)
{
    cell *c = &cells[draw(CELLS)];
    if (c->held != 1 || captured[c->home]) return 0;
    c->held = 0;
    release(&c->array, &c->works, "table: release", c->home);
    if (!c->ptr) return 1;
    CHECK(may_fail());
    CHECK(pool.waiting > 0);
    table_left++;
    return 1;
}

static int step_scope_end(void)
{
    if (!hands[me].scopes) return 0;
    tell("end of a scope", "", 0);
    disturb();
    hands[me].scopes--;
    GOOD(cai_manager_defer_end(&emm, err));
    return 1;
}

static int step_scope(void)
{
    if (hands[me].scopes || draw(3)) return 0;
    tell("begin of a scope", "", 0);
    disturb();
    hands[me].scopes++;
    GOOD(cai_manager_defer_begin(&emm, err));
    return 1;
}

static int step_retain(void)
{
    if (!hands[me].handles || hands[me].handles > 2) return 0;
    tell("retain", "", 0);
    retain(shared);
    hands[me].handles++;
    return 1;
}

static int step_own(void)
{
    cai_array *array = &hands[me].array[hands[me].arrays];
    const int64_t extent = 8;
    if (!hands[me].handles || hands[me].arrays == ARRAYS) return 0;
    tell("array", "", 0);
    GOOD(cai_array_init(array, CAI_INT8, 1, &extent, NULL, cai_manager_pointer(&emm, shared), err));
    array->sync = CAI_SYNC_NONE;
    GOOD(cai_manager_own(array, &emm, shared, err));
    hands[me].arrays++;
    return 1;
}

static void flush(void)
{
    tell("flush", "", 0);
    disturb();
    start_faults();
    (void)went_well(cai_manager_flush(&emm, err));
    end_faults();
}

static int step_flush(void)
{
    flush();
    return 1;
}

static int step_table(void)
{
    cell *c = &cells[draw(CELLS)];
    const uint32_t number = any_number();
    const uint64_t stream = stream_of(number);
    const int64_t extent = 8;
    if (!with_tables || c->held || c->ptr) return 0;
    tell("table: array", "", stream);
    c->home = number;
    c->works.count = 0;
    c->held = 2;
    disturb();
    c->held = went_well(cai_emm_array(&c->array, &pool, &c->hooks, CAI_INT8, 1, &extent, stream, err));
    if (c->held) queue_work(&c->works, stream);
    return 1;
}

static void take_step(void)
{
    static int (*const kinds[])(void) = {
        step_free, step_release, step_table_release, step_scope_end, step_flush, step_free, step_release,
        step_own,  step_table,   step_scope,         step_flush,     step_retain};
    const uint32_t count = ending ? 5 : (uint32_t)(sizeof kinds / sizeof *kinds);
    int32_t tries = 8;
    while (tries-- && !kinds[draw(count)]()) continue;
}

/* ------------------------------------------------------------------ rounds */

static int table_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    cell *c = (cell *)ctx;
    (void)size, (void)stream;
    CHECK_UINT(cai_sim_current(sim), c1);
    CHECK(!c->ptr);
    c->ptr = c->bytes + (256 - (size_t)(uintptr_t)c->bytes % 256);
    *ptr = c->ptr;
    return 0;
}

static int table_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    cell *c = (cell *)ctx;
    (void)size;
    CHECK_UINT(cai_sim_current(sim), c1);
    CHECK(ptr == c->ptr);
    check_after("an array's memory by a table", cai_stream_from_cuda(stream, 0), &c->works);
    step("device_free");
    c->ptr = NULL;
    table_frees++;
    return 0;
}

static void turn(int32_t thread, void (*run)(void))
{
    become(thread);
    step_number++;
    run();
    armed.place = NULL;
    become(0);
}

static void make_cells(void)
{
    int32_t i;
    memset(cells, 0, sizeof cells);
    for (i = 0; i < CELLS; i++) {
        cells[i].hooks = hooks;
        cells[i].hooks.kind = CAI_MEMORY_DEVICE;
        cells[i].hooks.ctx = &cells[i];
        cells[i].hooks.device_alloc = table_alloc;
        cells[i].hooks.device_free = table_free;
    }
}

/* Memory of the manager. Each thread has a handle. */
static void make_memory(void)
{
    static char bytes[128];
    const int pinned = !draw(2);
    uint64_t stream;
    become((int32_t)draw(2));
    stream = any_stream();
    tell(pinned ? "pinned memory" : "memory", "", pinned ? 0 : stream);
    if (pinned) GOOD(cai_manager_pin(&shared, &emm, bytes, 100, 0, err));
    else shared = get(100, stream);
    retain(shared);
    hands[0].handles = hands[1].handles = 1;
    become(0);
}

static void start_round(void)
{
    random_state = seed * 2654435761u + 12345;
    (void)draw(2);
    memset(hands, 0, sizeof hands);
    memset(captured, 0, sizeof captured);
    told[0] = 0;
    capturing = step_number = ending = 0;
    with_captures = seed % 2 == 1;
    with_faults = (int32_t)draw(2);
    with_tables = !draw(5);
    width = 2 + draw(4);
    open_sim(draw(3) ? 0 : CAI_EMM_FREES_WAIT);
    hooks.pin = hook_pin;
    hooks.unpin = hook_unpin;
    make_emm();
    make_cells();
    make_memory();
}

static int nothing_left(void)
{
    int32_t i, left = 0;
    for (i = 0; i < 2; i++) left += hands[i].handles + hands[i].arrays + hands[i].scopes;
    for (i = 0; i < CELLS; i++) left += cells[i].held;
    return !left;
}

/* Random threads give everything back. Returns false if that does not end in TURNS steps. */
static int end_round(void)
{
    int32_t turns = TURNS, i;
    ending = 1;
    while (!nothing_left() && turns) {
        turn((int32_t)draw(2), take_step);
        turns--;
    }
    if (!CHECK(turns > 0)) return 0;
    deferred += counts().deferred != 0;
    turn(0, flush); /* with faults */
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(frees, 1);
    CHECK_UINT(counts().deferred, 0);
    GOOD(cai_keepalive_drain(&pool, err));
    for (i = 0; i < CELLS; i++) CHECK(!cells[i].ptr);
    manager_frees += frees;
    close_emm();
    return 1;
}

/* True: nothing failed. */
static int run_round(void)
{
    const int64_t before = cai_test_failures;
    int32_t i, ended;
    start_round();
    for (i = 0; i < STEPS && !nothing_left(); i++) turn((int32_t)draw(2), take_step);
    ended = end_round();
    if (cai_test_failures == before) return 1;
    printf("seed %llu failed:\n%s", (unsigned long long)seed, told);
    fflush(stdout);
    if (!ended) exit(1);
    return 0;
}

int main(int argc, char **argv)
{
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    const uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 80000;
    int32_t bad = 0;
    for (seed = first; seed - first < rounds && bad < BAD_ROUNDS; seed++) bad += !run_round();
    printf("%llu rounds, %d failed. %lld steps, %lld of them inside of calls of the other thread.\n",
           (unsigned long long)(seed - first), (int)bad, (long long)steps, (long long)inside);
    printf("frees: %lld of a manager, %lld at the last flush; %lld by tables, %lld of them later\n",
           (long long)manager_frees, (long long)deferred, (long long)table_frees, (long long)table_left);
    return cai_test_end();
}
