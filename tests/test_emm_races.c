/* test_emm_races.c - cai_emm.h: what another thread does between two steps of a call, in one thread.
 * SPDX-License-Identifier: MIT
 *
 * The slots of the CUDA table, the hooks and alloc_fn are places where "another thread", host thread 2 of the
 * simulation, gets to run: a function of the test, armed by meanwhile(place, skip, function). What the
 * hooks that free get is held against the work that the test queued: the free must come after all of it.
 * Besides this, what the other tests of cai_emm.h do not reach: slots that fail after they did their work,
 * tables that lack slots, limits. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_emm.h"
#if !defined(CAI_SIM_LINKED)
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { PLACES = 8, BLOCKS = 400, WORKS = 16, FIRST_CHUNK = 64 };

static cai_sim *sim;
static cai_cuda cuda; /* the simulation's, with slots of the test around it */
static cai_stream_pool pool;
static cai_keepalive places[PLACES];
static cai_emm emm;
static uint64_t c1, c2, s1, s2, s3;
static cai_error errors[2]; /* of this thread, of the other one */
static int32_t me;          /* 1: the other one runs */

#define err (&errors[me])

static void poison(void) { memset(err, 0x5a, sizeof *err); }

static void check_untouched(const char *file, int line)
{
    cai_error untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    cai_test_true(file, line, "err is untouched", memcmp(err, &untouched, sizeof untouched) == 0);
}

/* A success, which leaves err alone. */
#define GOOD(call)                                                                                           \
    do {                                                                                                     \
        poison();                                                                                            \
        CHECK_INT(call, CAI_OK);                                                                             \
        check_untouched(__FILE__, __LINE__);                                                                 \
    } while (0)

/* A failure: its status, and a word that its message must have. */
#define BAD(call, status, word)                                                                              \
    do {                                                                                                     \
        poison();                                                                                            \
        CHECK_INT(call, status);                                                                             \
        if (CHECK_INT(err->code, status)) CHECK(strstr(err->message, word) != NULL);                         \
    } while (0)

/* ------------------------------------------------------------------ the other thread */

static struct {
    const char *place; /* NULL: not armed */
    int32_t skip;      /* so many passes of the place */
    void (*run)(void);
} armed;
static int32_t ran; /* how often it did */

static void meanwhile(const char *place, int32_t skip, void (*run)(void))
{
    armed.place = place;
    armed.skip = skip;
    armed.run = run;
    ran = 0;
}

/* A step of a call: the other thread may come in. No guard is held at any of them. */
static void step(const char *place)
{
    if (emm.guard) {
        printf("the guard is held at %s\n", place);
        exit(2);
    }
    if (!armed.place || strcmp(armed.place, place) != 0 || armed.skip-- > 0) return;
    armed.place = NULL;
    ran++;
    me = 1;
    cai_sim_host_thread(sim, 2);
    armed.run();
    CHECK_UINT(cai_sim_current(sim), c1);
    cai_sim_host_thread(sim, 1);
    me = 0;
}

/* A slot that fails with `error` from now on, `times` times; it did its work if `done`. */
static struct {
    const char *slot;
    int32_t times, error, done;
} fault;

static void fail(const char *slot, int32_t times, int32_t error, int32_t done)
{
    fault.slot = slot;
    fault.times = times;
    fault.error = error;
    fault.done = done;
}

static int32_t fails(const char *slot)
{
    return fault.times > 0 && strcmp(fault.slot, slot) == 0;
}

#define SLOT(name, parameters, arguments)                                                                    \
    static int32_t slot_##name parameters                                                                    \
    {                                                                                                        \
        int32_t error;                                                                                       \
        step(#name);                                                                                         \
        if (fails(#name)) {                                                                                  \
            fault.times--;                                                                                   \
            if (fault.done) CHECK_INT(cai_sim_cuda(sim)->name arguments, 0);                                 \
            return fault.error;                                                                              \
        }                                                                                                    \
        error = cai_sim_cuda(sim)->name arguments;                                                           \
        step("after " #name);                                                                                \
        return error;                                                                                        \
    }

SLOT(context_current, (void *self, uint64_t *context), (self, context))
SLOT(context_push, (void *self, uint64_t context), (self, context))
SLOT(context_pop, (void *self), (self))
SLOT(context_synchronize, (void *self), (self))
SLOT(stream_capture, (void *self, uint64_t stream, cai_cuda_capture *capture), (self, stream, capture))
SLOT(stream_wait_event, (void *self, uint64_t stream, uint64_t event), (self, stream, event))
SLOT(stream_synchronize, (void *self, uint64_t stream), (self, stream))
SLOT(event_record, (void *self, uint64_t event, uint64_t stream), (self, event, stream))
SLOT(host_thread, (void *self, uint64_t *thread), (self, thread))

/* ------------------------------------------------------------------ work, and frees that come after it */

static uint64_t works[WORKS];
static int32_t work_count;

/* Queues work on the memory. */
static void work(uint64_t stream)
{
    CHECK_INT(cai_sim_launch(sim, stream, "work", NULL, NULL, NULL, 0), 0);
    works[work_count++] = cai_sim_operation_count(sim);
}

static int comes_after(uint64_t id, uint64_t earlier)
{
    cai_sim_operation operation;
    int32_t i;
    if (id == earlier) return 1;
    if (id < earlier || !cai_sim_operation_get(sim, id, &operation)) return 0;
    for (i = 0; i < operation.wait_count; i++) {
        if (comes_after(operation.waits[i], earlier)) return 1;
    }
    return 0;
}

/* What is queued on `stream` now comes after all the work. */
static void check_order(uint64_t stream)
{
    cai_sim_operation operation;
    int32_t i;
    CHECK_INT(cai_sim_launch(sim, stream, "free", NULL, NULL, NULL, 0), 0);
    for (i = 0; i < work_count; i++) {
        CHECK(cai_sim_operation_get(sim, works[i], &operation));
        if (operation.state != CAI_SIM_STATE_QUEUED) continue;
        CHECK(comes_after(cai_sim_operation_count(sim), works[i]));
    }
}

/* ------------------------------------------------------------------ hooks and lists of the test */

static struct {
    char *ptr;
    int live;
} blocks[BLOCKS];
static int32_t block_count, block_live;
static int32_t frees;           /* calls of a hook that frees */
static uint64_t freed_on;       /* the stream of the last one */
static cai_emm_hooks hooks;
static int64_t list_live, list_calls;

static int hook_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)stream;
    CHECK(ctx == &block_count);
    CHECK_UINT(cai_sim_current(sim), emm.context);
    step("device_alloc");
    if (block_count == BLOCKS) exit(2);
    blocks[block_count].ptr = (char *)malloc(size + 256);
    blocks[block_count].live = 1;
    *ptr = blocks[block_count].ptr + (256 - (size_t)(uintptr_t)blocks[block_count].ptr % 256);
    block_count++;
    block_live++;
    return 0;
}

static int hook_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    int32_t i;
    (void)size;
    CHECK(ctx == &block_count);
    CHECK_UINT(cai_sim_current(sim), emm.context);
    for (i = 0; i < block_count; i++) {
        if (blocks[i].live && (char *)ptr > blocks[i].ptr && (char *)ptr <= blocks[i].ptr + 256) break;
    }
    if (!CHECK(i < block_count)) return 1; /* it lives, and so is freed once */
    blocks[i].live = 0;
    free(blocks[i].ptr);
    block_live--;
    frees++;
    freed_on = cai_stream_number(stream, 0);
    check_order(freed_on);
    step("device_free");
    return 0;
}

static int hook_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    (void)ctx, (void)ptr, (void)size, (void)flags;
    return 0;
}

static int hook_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)ptr, (void)size;
    frees++;
    freed_on = cai_stream_number(stream, 0);
    return 0;
}

static void *list_alloc(void *user_data, size_t size)
{
    void *ptr;
    CHECK(user_data == &list_live);
    list_calls++;
    step("alloc_fn");
    ptr = malloc(size);
    list_live++;
    return ptr;
}

static void list_free(void *user_data, void *ptr, size_t size)
{
    (void)size;
    CHECK(user_data == &list_live && ptr);
    list_live--;
    free(ptr);
}

static void fill_hooks(uint32_t flags)
{
    memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.flags = flags;
    hooks.ctx = &block_count;
    hooks.device_alloc = hook_alloc;
    hooks.device_free = hook_free;
    strcpy(hooks.name, "my_pool");
}

/* ------------------------------------------------------------------ opening and closing */

static void open_sim(uint32_t flags)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    s1 = cai_sim_stream_create(sim, 1);
    s2 = cai_sim_stream_create(sim, 1);
    s3 = cai_sim_stream_create(sim, 1);
    cuda = *cai_sim_cuda(sim);
    cuda.context_current = slot_context_current;
    cuda.context_push = slot_context_push;
    cuda.context_pop = slot_context_pop;
    cuda.context_synchronize = slot_context_synchronize;
    cuda.stream_capture = slot_stream_capture;
    cuda.stream_wait_event = slot_stream_wait_event;
    cuda.stream_synchronize = slot_stream_synchronize;
    cuda.event_record = slot_event_record;
    cuda.host_thread = slot_host_thread;
    memset(&emm, 0, sizeof emm);
    armed.place = NULL;
    fault.times = 0;
    block_count = block_live = frees = work_count = me = 0;
    list_live = list_calls = 0;
    freed_on = 0;
    fill_hooks(flags);
}

static void make_emm(void)
{
    cai_emm_options options;
    memset(&options, 0, sizeof options);
    options.alloc_fn = list_alloc;
    options.free_fn = list_free;
    options.user_data = &list_live;
    GOOD(cai_stream_pool_init(&pool, &cuda, places, PLACES, 0, err));
    GOOD(cai_emm_init(&emm, &pool, &hooks, &options, err));
}

static void open_emm(uint32_t flags)
{
    open_sim(flags);
    make_emm();
}

/* Everything was given back, once. */
static void close_emm(void)
{
    char text[400];
    CHECK(armed.place == NULL);
    CHECK_INT(cai_emm_live(&emm, NULL, 0), 0);
    CHECK_UINT(emm.count.live, 0);
    CHECK_UINT(emm.count.live_bytes, 0);
    GOOD(cai_emm_destroy(&emm, err));
    CHECK_INT(fault.times, 0);
    CHECK_INT(block_live, 0);
    CHECK_INT(list_live, 0);
    CHECK_UINT(cai_sim_current(sim), c1);
    GOOD(cai_stream_pool_destroy(&pool, err));
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, s1), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s2), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s3), 0);
    cai_sim_leaks(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
    sim = NULL;
}

static cai_memory get(size_t size, uint64_t stream)
{
    cai_memory memory = 0;
    GOOD(cai_emm_alloc(&memory, &emm, size, 0, stream, err));
    return memory;
}

static void let(cai_memory memory, uint64_t stream) { GOOD(cai_emm_free(&emm, memory, stream, err)); }

static void retain(cai_memory memory) { GOOD(cai_emm_retain(&emm, memory, err)); }

static cai_emm_count counts(void)
{
    cai_emm_count count;
    cai_emm_counts(&emm, &count);
    return count;
}

static cai_memory_info info_of(cai_memory memory)
{
    cai_memory_info info;
    memset(&info, 0, sizeof info);
    GOOD(cai_emm_info(&emm, memory, &info, err));
    return info;
}

/* Freed: so often in all, the last time on this stream. */
static void freed(int32_t times, uint64_t stream)
{
    CHECK_INT(frees, times);
    CHECK_UINT(freed_on, stream);
}

/* ------------------------------------------------------------------ frees */

static cai_memory shared, theirs, made;
static cai_array array;
static int32_t again;

/* Moves the memory on to another stream, where the other thread works on it; a few times. */
static void moves(void)
{
    const uint64_t to = info_of(shared).stream == s1 ? s3 : s1;
    GOOD(cai_emm_set_stream(&emm, shared, to, err));
    work(to);
    if (again-- > 1) meanwhile("after stream_wait_event", 0, moves);
}

/* A free that is not the last, while the memory's stream changes: it is ordered before the new one. */
static void check_free_and_moves(int32_t times)
{
    open_emm(0);
    shared = get(100, s1);
    work(s1);
    retain(shared);
    work(s2);
    again = times;
    meanwhile("after stream_wait_event", 0, moves);
    let(shared, s2);
    CHECK_INT(ran, 1);
    CHECK_INT(again, 0);
    CHECK_INT(info_of(shared).references, 1);
    CHECK_INT(frees, 0);
    let(shared, info_of(shared).stream);
    freed(1, times % 2 ? s3 : s1);
    close_emm();
}

/* The same, and the other thread's free is the last. */
static void check_free_and_moves_from_elsewhere(void)
{
    open_emm(0);
    shared = get(100, s1);
    work(s1);
    retain(shared);
    again = 1;
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    meanwhile("after stream_capture", 0, moves);
    let(shared, s1); /* s1 is not its stream any more */
    CHECK_INT(ran, 1);
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    let(shared, s2);
    freed(1, s2);
    close_emm();
}

static void retains(void)
{
    retain(shared);
    work(s3);
}

static void makes_view(void)
{
    GOOD(cai_emm_view(&theirs, &emm, shared, 10, 20, err));
    work(s3);
}

/* The last reference is not the last any more: the memory's stream waits, not the one of the free. */
static void check_free_and_retain(void (*other)(void))
{
    open_emm(0);
    theirs = 0;
    shared = get(100, s1);
    work(s1);
    work(s2);
    meanwhile("after stream_wait_event", 0, other);
    let(shared, s2);
    CHECK_INT(ran, 1);
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().live, 1);
    let(theirs ? theirs : shared, s3);
    freed(1, s3);
    close_emm();
}

/* A reference of another thread to the object, by its handle or a view's. */
static void frees_theirs(void)
{
    work(s3);
    let(theirs, s3);
}

/* Two references, both given back as if they were not the last: the later one frees after both. */
static void check_free_and_free(int32_t view, int32_t own_stream)
{
    uint64_t stream;
    open_emm(0);
    stream = own_stream ? s1 : s2;
    shared = theirs = get(100, s1);
    if (view) GOOD(cai_emm_view(&theirs, &emm, shared, 0, 1, err));
    else retain(shared);
    work(s1);
    work(stream);
    meanwhile(own_stream ? "after stream_capture" : "after stream_wait_event", 0, frees_theirs);
    let(shared, stream);
    CHECK_INT(ran, 1);
    freed(1, s1);
    close_emm();
}

static void frees_shared(void)
{
    let(shared, s3);
}

static void frees_and_gets(void)
{
    let(shared, s3);
    made = get(50, s1);
    CHECK_UINT((uint32_t)made, (uint32_t)shared); /* in the same place */
}

/* Both free the only reference: one of them is told. */
static void check_double_free(void (*other)(void))
{
    const char *const at[3] = {"context_current", "after stream_capture", "after stream_wait_event"};
    int32_t i;
    for (i = 0; i < 3; i++) {
        open_emm(0);
        made = 0;
        shared = get(100, s1);
        meanwhile(at[i], 0, other);
        BAD(cai_emm_free(&emm, shared, s2, err), CAI_ERR_STALE, "not there any more");
        CHECK_INT(ran, 1);
        freed(1, s3);
        CHECK_UINT(counts().live, made ? 1 : 0);
        if (made) {
            CHECK_INT(info_of(made).references, 1);
            CHECK_UINT(info_of(made).stream, s1);
            let(made, s1);
        }
        close_emm();
    }
}

/* Memory without a stream gets_one that of the first free. */
static void check_homeless(void)
{
    static char bytes[64];
    open_sim(0);
    hooks.pin = hook_pin;
    hooks.unpin = hook_unpin;
    make_emm();
    GOOD(cai_emm_pin(&shared, &emm, bytes, sizeof bytes, 0, err));
    theirs = shared;
    retain(shared);
    retain(shared);
    work(s2);
    meanwhile("after stream_capture", 0, frees_theirs); /* on s3 */
    let(shared, s2);
    CHECK_INT(ran, 1);
    CHECK_UINT(info_of(shared).stream, s3);
    check_order(s3);
    retain(shared);
    meanwhile("after stream_wait_event", 0, frees_theirs);
    GOOD(cai_emm_set_stream(&emm, shared, s1, err));
    CHECK_UINT(info_of(shared).stream, s1);
    check_order(s1);
    let(shared, s1);
    freed(1, s1);
    close_emm();
}

/* ------------------------------------------------------------------ streams of memory */

static void check_moves_and_moves(int32_t times)
{
    open_emm(0);
    shared = get(100, s1);
    work(s1);
    again = times;
    meanwhile("after stream_wait_event", 0, moves);
    GOOD(cai_emm_set_stream(&emm, shared, s2, err));
    CHECK_INT(again, 0);
    CHECK_UINT(info_of(shared).stream, s2);
    let(shared, s2);
    freed(1, s2);
    close_emm();
}

/* The other thread moves the memory away and back. */
static void moves_and_returns(void)
{
    GOOD(cai_emm_set_stream(&emm, shared, s3, err));
    work(s3);
    GOOD(cai_emm_set_stream(&emm, shared, s1, err));
}

static void check_moves_and_returns(void)
{
    open_emm(0);
    shared = get(100, s1);
    meanwhile("after stream_wait_event", 0, moves_and_returns);
    GOOD(cai_emm_set_stream(&emm, shared, s2, err));
    CHECK_INT(ran, 1);
    let(shared, s2);
    freed(1, s2);
    close_emm();
}

/* A reference that is not the last goes after the new stream was ordered, and before it is the memory's. */
static void check_moves_and_free(int32_t view)
{
    open_emm(0);
    shared = theirs = get(100, s1);
    if (view) GOOD(cai_emm_view(&theirs, &emm, shared, 0, 1, err));
    else retain(shared);
    work(s1);
    meanwhile("after stream_wait_event", 0, frees_theirs);
    GOOD(cai_emm_set_stream(&emm, shared, s2, err));
    CHECK_INT(ran, 1);
    let(shared, s2);
    freed(1, s2);
    close_emm();
}

/* The memory goes meanwhile: the handle is stale, and what lies in its place now is left alone. */
static void check_moves_and_gone(void)
{
    open_emm(0);
    shared = get(100, s1);
    meanwhile("after stream_wait_event", 0, frees_and_gets);
    BAD(cai_emm_set_stream(&emm, shared, s2, err), CAI_ERR_STALE, "not there any more");
    CHECK_UINT(info_of(made).stream, s1);
    let(made, s1);
    freed(2, s1);
    close_emm();
}

/* The same where the free is collected: it stays on the stream that it was given. */
static void check_moves_and_collected(void)
{
    open_emm(0);
    shared = get(100, s3);
    GOOD(cai_emm_defer_begin(&emm, err));
    meanwhile("after stream_wait_event", 0, frees_shared);
    BAD(cai_emm_set_stream(&emm, shared, s2, err), CAI_ERR_STALE, "not there any more");
    GOOD(cai_emm_defer_end(&emm, err));
    GOOD(cai_emm_flush(&emm, err));
    freed(1, s3);
    close_emm();
}

/* ------------------------------------------------------------------ lists */

static cai_memory many[2 * FIRST_CHUNK];

/* All slots of the first chunk are used but these. */
static void open_full(int32_t but)
{
    int32_t i;
    open_emm(0);
    for (i = 0; i < FIRST_CHUNK - but; i++) many[i] = get(1, s1);
}

static void close_full(int32_t count)
{
    int32_t i;
    for (i = 0; i < count; i++) let(many[i], s1);
    close_emm();
}

static void gets_one(void)
{
    made = get(50, s3);
}

static void frees_63(void)
{
    let(many[63], s1);
}

static void frees_63_and_gets(void)
{
    let(many[63], s1);
    made = get(50, s3);
    CHECK_UINT((uint32_t)made, (uint32_t)many[63]);
}

/* Both grow the lists: one of the two chunks goes back. */
static void check_grow_and_grow(void)
{
    cai_memory memory;
    open_full(0);
    list_calls = 0;
    meanwhile("alloc_fn", 0, gets_one);
    memory = get(10, s2);
    CHECK_INT(ran, 1);
    CHECK_INT(list_calls, 2);
    CHECK_INT(list_live, 3); /* the table, two chunks */
    CHECK((uint32_t)memory != (uint32_t)made);
    CHECK_UINT(counts().live, FIRST_CHUNK + 2);
    let(memory, s2);
    let(made, s3);
    close_full(FIRST_CHUNK);
}

/* A free gives the place that was missing; or gives it to another one. */
static void check_grow_and_free(void)
{
    cai_memory memory;
    open_full(0);
    meanwhile("alloc_fn", 0, frees_63);
    memory = get(10, s2);
    CHECK_UINT((uint32_t)memory, (uint32_t)many[63]);
    many[63] = get(1, s1);
    let(memory, s2);
    many[64] = get(1, s1);
    close_full(FIRST_CHUNK + 1);
    open_full(0);
    meanwhile("alloc_fn", 0, frees_63_and_gets);
    memory = get(10, s2);
    CHECK_UINT((uint32_t)memory, FIRST_CHUNK + 1);
    let(memory, s2);
    let(made, s3);
    close_full(FIRST_CHUNK - 1);
}

/* The object goes while its view's place is made. */
static void check_view_and_free(void (*other)(void))
{
    cai_memory view = 9;
    open_full(0);
    made = 0;
    meanwhile("alloc_fn", 0, other);
    BAD(cai_emm_view(&view, &emm, many[63], 0, 1, err), CAI_ERR_STALE, "another thread");
    CHECK_INT(ran, 1);
    CHECK_UINT(view, 0);
    CHECK_UINT(counts().live, FIRST_CHUNK - 1 + (made ? 1 : 0));
    if (made) CHECK_INT(info_of(made).references, 1);
    if (made) let(made, s3);
    close_full(FIRST_CHUNK - 1);
}

/* An array of bytes on the memory, with a reference of its own. */
static void own(cai_memory memory, uint64_t stream)
{
    const int64_t extent = 8;
    GOOD(cai_array_init(&array, CAI_INT8, 1, &extent, NULL, cai_emm_pointer(&emm, memory), err));
    array.sync = CAI_SYNC_STREAM;
    array.stream = stream;
    GOOD(cai_emm_own(&array, &emm, memory, err));
}

static void check_own_and_free(void)
{
    const int64_t extent = 1;
    open_full(0);
    GOOD(cai_array_init(&array, CAI_INT8, 1, &extent, NULL, cai_emm_pointer(&emm, many[63]), err));
    meanwhile("alloc_fn", 0, frees_63);
    BAD(cai_emm_own(&array, &emm, many[63], err), CAI_ERR_STALE, "another thread");
    CHECK_INT(ran, 1);
    CHECK(array.release == NULL);
    close_full(FIRST_CHUNK - 1);
}

/* ------------------------------------------------------------------ collected frees */

static void flushes(void)
{
    GOOD(cai_emm_flush(&emm, err));
    CHECK_UINT(counts().pending, 0);
}

static void collects(void)
{
    let(theirs, s3);
}

static void begins(void)
{
    GOOD(cai_emm_defer_begin(&emm, err));
}

static void collect(int32_t count)
{
    while (count-- > 0) let(get(10, s1), s1);
}

/* Two threads carry the list out: each object once. */
static void check_flush_and_flush(void)
{
    open_emm(CAI_EMM_COLLECT);
    collect(5);
    meanwhile("device_free", 1, flushes);
    GOOD(cai_emm_flush(&emm, err));
    CHECK_INT(ran, 1);
    CHECK_INT(frees, 5);
    CHECK_UINT(counts().freed, 5);
    CHECK_UINT(counts().pending_bytes, 0);
    collect(5);
    meanwhile("context_current", 0, flushes); /* all is gone before it begins */
    GOOD(cai_emm_flush(&emm, err));
    CHECK_INT(frees, 10);
    collect(10);
    meanwhile("device_free", 0, flushes);
    collect(1); /* the eleventh */
    CHECK_INT(frees, 21);
    CHECK_UINT(counts().pending, 0);
    close_emm();
}

/* One more is collected, or a scope begins, while they are carried out. */
static void check_flush_and_more(void)
{
    open_emm(CAI_EMM_COLLECT);
    theirs = get(20, s3);
    collect(3);
    meanwhile("device_free", 0, collects);
    GOOD(cai_emm_flush(&emm, err));
    CHECK_INT(frees, 3);
    CHECK_UINT(counts().pending, 1);
    CHECK_UINT(counts().pending_bytes, 20);
    collect(2);
    meanwhile("device_free", 0, begins);
    GOOD(cai_emm_flush(&emm, err));
    CHECK_INT(frees, 6);
    BAD(cai_emm_destroy(&emm, err), CAI_ERR_PENDING, "1 scopes");
    GOOD(cai_emm_defer_end(&emm, err));
    close_emm();
}

/* ------------------------------------------------------------------ callbacks */

static void frees_object(void *user_data)
{
    CHECK(user_data == &shared);
    step("callback");
}

/* The view's last callback runs while the other thread gives the object's last reference back. */
static void check_callback(void)
{
    open_emm(0);
    theirs = get(100, s1);
    GOOD(cai_emm_view(&shared, &emm, theirs, 0, 10, err));
    GOOD(cai_emm_on_free(&emm, shared, frees_object, &shared, err));
    work(s1);
    work(s2);
    meanwhile("callback", 0, frees_theirs);
    let(shared, s2);
    CHECK_INT(ran, 1);
    freed(1, s3);
    close_emm();
}

/* ------------------------------------------------------------------ arrays */

/* The release of an array, whose stream is s2, while the memory moves on. */
static void check_release_and_moves(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    work(s1);
    work(s2);
    again = 1;
    meanwhile("after stream_wait_event", 0, moves);
    cai_array_release(&array);
    CHECK_INT(ran, 1);
    let(shared, s3);
    freed(1, s3);
    close_emm();
}

static void moves_and_frees(void)
{
    GOOD(cai_emm_set_stream(&emm, shared, s3, err));
    work(s3);
    let(shared, s3);
}

/* The array's stream captures; the other thread moves the memory and gives its own reference back. */
static void check_release_captured_and_moves(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    work(s1);
    work(s2);
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_THREAD_LOCAL), 0);
    meanwhile("after stream_capture", 0, moves_and_frees);
    cai_array_release(&array);
    CHECK_INT(ran, 1);
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().pending, 1);
    CHECK_INT(cai_sim_capture_end(sim, s2), 0);
    GOOD(cai_emm_flush(&emm, err));
    freed(1, s3);
    close_emm();
}

/* The array's stream captures, and its reference is not the last: the free that is comes after it all the
 * same. */
static void check_release_captured_first(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    work(s2);
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&array);
    CHECK_INT(cai_sim_capture_end(sim, s2), 0);
    let(shared, s1);
    GOOD(cai_emm_flush(&emm, err));
    freed(1, s1);
    close_emm();
}

/* An array on stream 2 of this thread, released while that captures. */
static void own_and_release_captured(uint64_t thread)
{
    const int32_t before = frees;
    cai_sim_host_thread(sim, thread);
    own(shared, CAI_STREAM_PER_THREAD);
    array.thread = thread;
    work(CAI_STREAM_PER_THREAD);
    if (info_of(shared).stream == CAI_STREAM_PER_THREAD) let(shared, CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_sim_capture_begin(sim, CAI_STREAM_PER_THREAD, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&array);
    CHECK_INT(cai_sim_capture_end(sim, CAI_STREAM_PER_THREAD), 0);
    CHECK_INT(frees, before);
    cai_sim_host_thread(sim, 1);
}

/* Stream 2 of one thread is not that of another. */
static void check_release_captured_threads(void)
{
    open_emm(0);
    shared = get(100, CAI_STREAM_PER_THREAD);
    own_and_release_captured(1);
    GOOD(cai_emm_flush(&emm, err));
    freed(1, CAI_STREAM_PER_THREAD);
    shared = get(100, s1);
    own_and_release_captured(1);
    own_and_release_captured(2);
    let(shared, s1);
    GOOD(cai_emm_flush(&emm, err)); /* after everything */
    freed(2, s1);
    close_emm();
}

/* A free on stream 2 of one thread that comes after that of another: no thread may do both, but a reset. */
static void check_release_captured_between(void)
{
    open_emm(0);
    shared = get(100, s1);
    own_and_release_captured(1);
    cai_sim_host_thread(sim, 2);
    let(shared, CAI_STREAM_PER_THREAD);
    GOOD(cai_emm_flush(&emm, err));
    cai_sim_host_thread(sim, 1);
    GOOD(cai_emm_flush(&emm, err));
    CHECK_INT(frees, 0);
    BAD(cai_emm_destroy(&emm, err), CAI_ERR_THREAD, "thread");
    cai_sim_run(sim);
    GOOD(cai_emm_reset(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* Leaves a free on s1 that is to come after s2. */
static void collect_after_capture(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    let(shared, s1);
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&array);
    CHECK_INT(cai_sim_capture_end(sim, s2), 0);
    CHECK_UINT(counts().pending, 1);
}

/* It cannot be ordered after it: the host waits. If it cannot wait either, the free stays. */
static void check_flush_without_order(void)
{
    collect_after_capture();
    work(s2);
    fail("event_record", 1, 1, 0);
    CHECK_INT(cai_sim_fail_op(sim, "context_synchronize", 1, 1), 1);
    GOOD(cai_emm_flush(&emm, err));
    CHECK_INT(cai_sim_faults(sim), 0);
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().pending, 1);
    cai_sim_log_clear(sim);
    fail("event_record", 1, 1, 0);
    GOOD(cai_emm_flush(&emm, err));
    freed(1, s1);
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), 1);
    close_emm();
}

/* At the end there is no later. */
static void check_destroy_without_order(void)
{
    collect_after_capture();
    fail("event_record", 1, 1, 0);
    CHECK_INT(cai_sim_fail_op(sim, "context_synchronize", 1, 1), 1);
    close_emm();
    CHECK_INT(frees, 1);
}

/* A free after everything stays while the host cannot wait. */
static void check_flush_after_everything(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    let(shared, s1);
    work(s2);
    array.sync = CAI_SYNC_UNKNOWN;
    fail("context_synchronize", 2, 1, 0);
    cai_array_release(&array);
    CHECK_UINT(counts().pending, 1);
    GOOD(cai_emm_flush(&emm, err));
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().pending, 1);
    GOOD(cai_emm_flush(&emm, err));
    freed(1, s1);
    close_emm();
}

/* The thread is not known: the host waits. Memory on stream 2, of whoever, is freed on the legacy stream. */
static void check_release_without_thread(void)
{
    const uint64_t homes[2] = {s1, CAI_STREAM_PER_THREAD};
    int32_t i;
    for (i = 0; i < 2; i++) {
        open_emm(0);
        shared = get(100, i ? homes[1] : s1);
        own(shared, CAI_STREAM_PER_THREAD);
        CHECK_UINT(info_of(shared).stream, i ? 2 : s1);
        let(shared, i ? homes[1] : s1);
        work(s2);
        fail("host_thread", 1, 1, 0);
        cai_array_release(&array);
        freed(1, i ? 1 : s1);
        CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), 1);
        close_emm();
    }
}

/* The manager was made anew, which failed, with arrays of it about: their release does nothing. */
static void check_release_without_manager(void)
{
    cai_array copy;
    cai_emm before;
    open_emm(0);
    shared = get(100, s1);
    own(shared, s1);
    before = emm;
    copy = array;
    BAD(cai_emm_init(&emm, &pool, NULL, NULL, err), CAI_ERR_ARGUMENT, "hooks is NULL");
    cai_array_release(&copy);
    CHECK(copy.release == NULL);
    emm = before;
    CHECK_INT(cai_emm_live(&emm, NULL, 0), 2);
    cai_array_release(&array);
    let(shared, s1);
    freed(1, s1);
    close_emm();
}

/* ------------------------------------------------------------------ threads */

/* host_thread fails wherever stream 2 asks for it: nothing was done. */
static void check_no_thread(void)
{
    cai_memory memory = 9;
    open_emm(0);
    fail("host_thread", 1, 1, 0);
    BAD(cai_emm_alloc(&memory, &emm, 10, 0, CAI_STREAM_PER_THREAD, err), CAI_ERR_CUDA, "host_thread");
    CHECK_UINT(memory, 0);
    CHECK_INT(block_live, 0);
    shared = get(100, s1);
    fail("host_thread", 1, 1, 0);
    BAD(cai_emm_free(&emm, shared, CAI_STREAM_PER_THREAD, err), CAI_ERR_CUDA, "host_thread");
    fail("host_thread", 1, 1, 0);
    BAD(cai_emm_set_stream(&emm, shared, CAI_STREAM_PER_THREAD, err), CAI_ERR_CUDA, "host_thread");
    CHECK_INT(info_of(shared).references, 1);
    CHECK_UINT(info_of(shared).stream, s1);
    GOOD(cai_emm_defer_begin(&emm, err));
    work(s1);
    let(shared, CAI_STREAM_PER_THREAD);
    GOOD(cai_emm_defer_end(&emm, err));
    fail("host_thread", 1, 1, 0);
    GOOD(cai_emm_flush(&emm, err));
    CHECK_UINT(counts().pending, 1); /* whose it is was not to be known */
    GOOD(cai_emm_flush(&emm, err));
    freed(1, CAI_STREAM_PER_THREAD);
    close_emm();
}

/* It answers that the process ends: the memory counts as freed. */
static void check_thread_at_end(void)
{
    open_emm(0);
    shared = get(100, s1);
    fail("host_thread", 1, 4, 0);
    let(shared, CAI_STREAM_PER_THREAD);
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().live, 0);
    CHECK_UINT(counts().failed, 0);
    free(blocks[0].ptr);
    block_live = 0;
    close_emm();
}

/* ------------------------------------------------------------------ contexts */

/* A push and a pop that were done, and report an error of before. */
static void check_contexts(void)
{
    cai_memory memory = 9;
    open_emm(0);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    fail("context_push", 1, 700, 1);
    BAD(cai_emm_alloc(&memory, &emm, 10, 0, s1, err), CAI_ERR_CUDA, "context_push");
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(block_live, 0);
    fail("context_pop", 1, 700, 1);
    BAD(cai_emm_alloc(&memory, &emm, 10, 0, s1, err), CAI_ERR_CUDA, "context_pop");
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(block_live, 0);
    CHECK_UINT(memory, 0);
    memory = get(10, s1);
    fail("context_pop", 1, 700, 0); /* this one was not */
    BAD(cai_emm_free(&emm, memory, s1, err), CAI_ERR_CUDA, "context_pop");
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(block_live, 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    close_emm();
}

/* Tables without slots for contexts. */
static void check_lacking_contexts(void)
{
    cai_memory memory = 9;
    int32_t i;
    for (i = 0; i < 3; i++) {
        open_sim(0);
        if (i == 0) cuda.context_device = NULL;
        if (i == 1) cuda.context_push = NULL;
        if (i == 2) cuda.context_pop = NULL;
        make_emm();
        CHECK_INT(emm.device, 0);
        if (i) {
            CHECK_INT(cai_sim_set_context(sim, c2), 0);
            BAD(cai_emm_alloc(&memory, &emm, 10, 0, s1, err), CAI_ERR_UNAVAILABLE, "cannot push");
            CHECK_INT(cai_sim_set_context(sim, c1), 0);
        }
        let(get(10, s1), s1);
        close_emm();
    }
}

/* ------------------------------------------------------------------ tables */

static void check_tables(void)
{
    cai_emm_hooks out, before;
    open_sim(0);
    memset(&out, 0x5a, sizeof out);
    before = out;
    cuda.struct_size--;
    BAD(cai_emm_hooks_cuda(&out, &cuda, err), CAI_ERR_ABI, "the CUDA table has");
    BAD(cai_emm_hooks_async(&out, &cuda, err), CAI_ERR_ABI, "cuda_async");
    cuda.struct_size += 9;
    cuda.version = 2;
    BAD(cai_emm_hooks_cuda(&out, &cuda, err), CAI_ERR_ABI, "version 2");
    cuda.version = CAI_CUDA_VERSION;
    CHECK_BYTES(&out, &before, sizeof out);
    GOOD(cai_emm_hooks_cuda(&out, &cuda, err)); /* a longer one */
    CHECK(out.ipc_handle != NULL);
    cuda.pointer_range = NULL;
    GOOD(cai_emm_hooks_cuda(&out, &cuda, err));
    CHECK(out.ipc_handle == NULL);
    cuda = *cai_sim_cuda(sim);
    cai_emm_hooks_host(NULL);
    fill_hooks(CAI_EMM_CUDA_HOST);
    hooks.kind = CAI_KIND_HOST;
    BAD(cai_emm_init(&emm, NULL, &hooks, NULL, err), CAI_ERR_ARGUMENT, "pool is NULL");
    fill_hooks(0);
    make_emm();
    close_emm();
}

/* CAI_EMM_CUDA_HOST takes whole pairs. */
static void check_half_pairs(void)
{
    static char bytes[64];
    cai_memory memory = 9;
    open_sim(CAI_EMM_CUDA_HOST);
    cuda.host_free = NULL;
    cuda.host_unregister = NULL;
    cuda.memory_free = NULL;
    make_emm();
    BAD(cai_emm_host_alloc(&memory, &emm, 10, 0, err), CAI_ERR_UNAVAILABLE, "host_alloc");
    BAD(cai_emm_pin(&memory, &emm, bytes, 10, 0, err), CAI_ERR_UNAVAILABLE, "pin");
    BAD(cai_emm_managed_alloc(&memory, &emm, 10, 0, err), CAI_ERR_UNAVAILABLE, "managed_alloc");
    CHECK_UINT(memory, 0);
    close_emm();
}

static void check_nothing(void)
{
    cai_emm_count count;
    memset(&count, 0x5a, sizeof count);
    memset(&emm, 0, sizeof emm);
    cai_emm_counts(&emm, NULL);
    cai_emm_counts(&emm, &count);
    CHECK_UINT(count.allocated, 0);
    CHECK_INT(cai_emm_live(&emm, NULL, 0), 0);
    CHECK_INT(cai_emm_live(NULL, NULL, 0), 0);
}

/* ------------------------------------------------------------------ handles */

/* Handles that nobody gave: the next generation of a place, and that of an array. */
static void check_guesses(void)
{
    const int64_t extent = 8;
    cai_memory memory, view = 9;
    open_emm(0);
    memory = get(10, s1);
    let(memory, s1);
    memory += (uint64_t)1 << 32;
    BAD(cai_emm_free(&emm, memory, s1, err), CAI_ERR_STALE, "");
    BAD(cai_emm_retain(&emm, memory, err), CAI_ERR_STALE, "");
    GOOD(cai_emm_array(&array, &emm, CAI_INT8, 1, &extent, s1, err)); /* in this place */
    CHECK_INT(cai_emm_live(&emm, NULL, 0), 1);
    BAD(cai_emm_free(&emm, memory, s1, err), CAI_ERR_STALE, "");
    CHECK(cai_emm_pointer(&emm, memory) == NULL);
    BAD(cai_emm_view(&view, &emm, 0, 0, 5, err), CAI_ERR_ARGUMENT, "memory is 0");
    CHECK_UINT(view, 0);
    view = 9;
    GOOD(cai_emm_view(&view, &emm, 0, 0, 0, err));
    CHECK_UINT(view, 0);
    cai_array_release(&array);
    freed(2, s1);
    close_emm();
}

/* A place whose generations are used up is not used again. */
static void check_generations(void)
{
    cai_memory memory, next;
    open_emm(0);
    emm.generation = UINT32_MAX - 2;
    memory = get(10, s1);
    CHECK_UINT(memory, (uint64_t)(UINT32_MAX - 2) << 32 | 1);
    let(memory, s1);
    memory = get(10, s1);
    CHECK_UINT(memory, (uint64_t)(UINT32_MAX - 1) << 32 | 1);
    let(memory, s1);
    next = get(10, s1);
    CHECK_UINT((uint32_t)next, 2);
    memory += (uint64_t)1 << 32;
    BAD(cai_emm_free(&emm, memory, s1, err), CAI_ERR_STALE, "");
    let(next, s1);
    freed(3, s1);
    close_emm();
}

/* As after 2^32 - 64 objects that live: no place is left, and none can be made. */
static void check_all_places(void)
{
    cai_memory memory = 9, kept;
    const uint32_t used = UINT32_MAX - FIRST_CHUNK + 1;
    int32_t i;
    open_emm(0);
    kept = get(10, s1);
    for (i = 1; i < CAI_EMM_CHUNKS; i++) emm.chunks[i] = (struct cai_emm_slot *)list_alloc(&list_live, 1);
    emm.slot_count = used;
    list_calls = 0;
    BAD(cai_emm_alloc(&memory, &emm, 10, 0, s1, err), CAI_ERR_OUT_OF_MEMORY, "for lists");
    CHECK_UINT(memory, 0);
    CHECK_UINT(emm.slot_count, used);
    CHECK_INT(list_calls, 0);
    CHECK_INT(block_live, 1); /* the hook's memory went back */
    emm.slot_count = 1;
    let(kept, s1);
    freed(2, s1);
    close_emm();
}

/* ------------------------------------------------------------------ all */

#define RUN(check) (cai_test_note(#check), check) /* failures name it */

static void run_frees(void)
{
    RUN(check_free_and_moves(1));
    RUN(check_free_and_moves(4));
    RUN(check_free_and_moves_from_elsewhere());
    RUN(check_free_and_retain(retains));
    RUN(check_free_and_retain(makes_view));
    RUN(check_double_free(frees_shared));
    RUN(check_double_free(frees_and_gets));
    RUN(check_homeless());
    RUN(check_callback());
}

static void run_both_free(void)
{
    int32_t view;
    for (view = 0; view < 2; view++) {
        RUN(check_free_and_free(view, 0));
        RUN(check_free_and_free(view, 1));
        RUN(check_moves_and_free(view));
    }
}

static void run(void)
{
    run_frees();
    run_both_free();
    RUN(check_moves_and_moves(1));
    RUN(check_moves_and_moves(3));
    RUN(check_moves_and_returns());
    RUN(check_moves_and_gone());
    RUN(check_moves_and_collected());
    RUN(check_grow_and_grow());
    RUN(check_grow_and_free());
    RUN(check_view_and_free(frees_63));
    RUN(check_view_and_free(frees_63_and_gets));
    RUN(check_own_and_free());
    RUN(check_flush_and_flush());
    RUN(check_flush_and_more());
    RUN(check_release_and_moves());
    RUN(check_release_captured_and_moves());
    RUN(check_release_captured_first());
    RUN(check_release_captured_threads());
    RUN(check_release_captured_between());
    RUN(check_flush_without_order());
    RUN(check_destroy_without_order());
    RUN(check_flush_after_everything());
    RUN(check_release_without_thread());
    RUN(check_release_without_manager());
    RUN(check_no_thread());
    RUN(check_thread_at_end());
    RUN(check_contexts());
    RUN(check_lacking_contexts());
    RUN(check_tables());
    RUN(check_half_pairs());
    RUN(check_nothing());
    RUN(check_guesses());
    RUN(check_generations());
    RUN(check_all_places());
}

CAI_TEST_MAIN(run)
