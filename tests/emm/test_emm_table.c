/* test_emm_table.c - cai_emm.h: memory and owned arrays by a table, without a manager
 * SPDX-License-Identifier: MIT
 *
 * The order of a free is judged by the simulation: work on memory that was freed gives its context error 700.
 * Each test runs where CUDA's frees wait, and where they return at once (CAI_SIM_FREE_RETURNS). */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#if !defined(CAI_TESTS_LINKED)
#include <stdlib.h>
static int no_memory, held; /* the implementation gets none; how many blocks it has */
static void *take(size_t size)
{
    if (no_memory) return NULL;
    ++held;
    return malloc(size);
}
static void give(void *block)
{
    --held;
    free(block);
}
#define malloc(size) take(size)
#define free(block) give(block)
#endif
#include "cai_emm.h"
#undef malloc
#undef free
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

static cai_sim *sim;
static cai_cuda cuda; /* the simulation's; tests take slots out */
static cai_event_pool pool;
static cai_emm_hooks hooks;
static cai_error err;
static uint64_t c1, c2, s1, s2, peer; /* two streams of c1, one of c2 */
static int32_t returns, async;        /* frees do not wait; cudaMallocAsync, or OWN */
static cai_emm_pool mine;

enum { OWN = 2 }; /* cudaMallocAsync, by a pool of one's own */

static const int64_t shape[2] = {16, 16};

#define GOOD(call) CHECK_INT(call, CAI_OK)

#define BAD(call, status, word)                                                                              \
    do {                                                                                                     \
        CHECK_INT(call, status);                                                                             \
        if (CHECK_INT(err.code, status)) CHECK(strstr(err.message, word) != NULL);                           \
    } while (0)

/* ------------------------------------------------------------------ hooks that only record */
typedef struct spy {
    int32_t allocs, frees, error; /* error: what a hook returns */
    void *gives, *freed;
    size_t size;
    struct CUstream_st *stream;
} spy;

static int spy_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    spy *at = (spy *)ctx;
    at->allocs++;
    at->size = size;
    at->stream = stream;
    *ptr = at->gives;
    return at->error;
}

static int spy_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    spy *at = (spy *)ctx;
    at->frees++;
    at->freed = ptr;
    at->size = size;
    at->stream = stream;
    return at->error;
}

static cai_emm_hooks spy_table(spy *at, void *gives)
{
    cai_emm_hooks table;
    memset(at, 0, sizeof *at);
    at->gives = gives;
    memset(&table, 0, sizeof table);
    table.struct_size = sizeof table;
    table.version = CAI_EMM_VERSION;
    table.ctx = at;
    table.device_alloc = spy_alloc;
    table.device_free = spy_free;
    memcpy(table.name, "spy", 4);
    return table;
}

static void check_memory(void)
{
    void *const place = (void *)(uintptr_t)0x7000, *ptr = &ptr;
    spy at;
    cai_emm_hooks own = spy_table(&at, place);
    GOOD(cai_emm_alloc(&ptr, &own, 4096, CAI_STREAM_LEGACY, &err));
    CHECK(ptr == place && at.allocs == 1 && at.size == 4096 && at.stream == cai_stream_to_cuda(1));
    GOOD(cai_emm_free(&own, ptr, 4096, 0x500, &err));
    CHECK(at.freed == place && at.frees == 1 && at.size == 4096 && at.stream == cai_stream_to_cuda(0x500));
    GOOD(cai_emm_alloc(&ptr, &own, 0, CAI_STREAM_LEGACY, &err));
    CHECK(!ptr && at.allocs == 1);
    GOOD(cai_emm_free(&own, NULL, 0, CAI_STREAM_LEGACY, &err));
    CHECK_INT(at.frees, 1);
}

static void check_memory_errors(void)
{
    void *ptr = &ptr;
    spy at;
    cai_emm_hooks own = spy_table(&at, (void *)(uintptr_t)0x7000);
    BAD(cai_emm_alloc(NULL, &own, 8, 1, &err), CAI_ERR_ARGUMENT, "cai_emm_alloc: out is NULL");
    BAD(cai_emm_alloc(&ptr, NULL, 8, 1, &err), CAI_ERR_ARGUMENT, "cai_emm_alloc: hooks is NULL");
    BAD(cai_emm_alloc(&ptr, &own, 8, 0, &err), CAI_ERR_STREAM, "stream 0 is ambiguous");
    CHECK_INT(err.entry, CAI_ENTRY_STREAM);
    BAD(cai_emm_alloc(&ptr, &own, 8, UINT64_MAX, &err), CAI_ERR_STREAM, "stream -1");
    BAD(cai_emm_free(NULL, &at, 8, 1, &err), CAI_ERR_ARGUMENT, "cai_emm_free: hooks is NULL");
    BAD(cai_emm_free(&own, &at, 8, 0, &err), CAI_ERR_STREAM, "stream 0 is ambiguous");
    CHECK(at.allocs == 0 && at.frees == 0);
    at.error = 700;
    BAD(cai_emm_alloc(&ptr, &own, 8, 1, &err), CAI_ERR_CUDA,
        "device_alloc of spy: CUDA error 700 (illegal address)");
    CHECK_INT(err.native, 700);
    BAD(cai_emm_free(&own, &at, 8, 1, &err), CAI_ERR_CUDA,
        "device_free of spy: CUDA error 700 (illegal address)");
    own.name[0] = 0;
    BAD(cai_emm_free(&own, &at, 8, 1, &err), CAI_ERR_CUDA, "device_free of an unnamed table: ");
    at.error = 2;
    BAD(cai_emm_alloc(&ptr, &own, 8, 1, &err), CAI_ERR_OUT_OF_MEMORY,
        "device_alloc of an unnamed table is out of memory for 8 bytes");
    CHECK_INT(err.native, 2);
    CHECK_INT(cai_emm_alloc(&ptr, &own, 8, 1, NULL), CAI_ERR_OUT_OF_MEMORY);
    at.error = 0;
    at.gives = NULL;
    BAD(cai_emm_alloc(&ptr, &own, 8, 1, &err), CAI_ERR_MEMORY, "succeeded and returned NULL for 8 bytes");
    at.gives = (void *)(uintptr_t)0x7010;
    at.frees = 0;
    BAD(cai_emm_alloc(&ptr, &own, 8, 1, &err), CAI_ERR_MEMORY, "which is not aligned to 256 bytes");
    CHECK(at.frees == 1 && at.freed == at.gives && at.size == 8 && at.stream == cai_stream_to_cuda(1));
    memcpy(own.name, "spy", 4);
    BAD(cai_emm_alloc(&ptr, &own, 8, 1, &err), CAI_ERR_MEMORY, "device_alloc of spy returned");
    CHECK(ptr == (void *)&ptr); /* no failure has written it */
}

/* ------------------------------------------------------------------ the simulation */
static void in(uint64_t context) { CHECK_INT(cai_sim_set_context(sim, context), 0); }

static void open_sim(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    if (returns) cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_FREE_RETURNS);
    cai_sim_host_thread(sim, 1);
    cuda = *cai_sim_cuda(sim);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    in(c2);
    peer = cai_sim_stream_create(sim, 1);
    in(c1);
    s1 = cai_sim_stream_create(sim, 1);
    s2 = cai_sim_stream_create(sim, 1);
    GOOD(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err));
    if (async == OWN) GOOD(cai_emm_pool_create(&mine, &cuda, 0, &err));
    GOOD(async ? cai_emm_hooks_async(&hooks, &cuda, async == OWN ? &mine : NULL, &err)
               : cai_emm_hooks_cuda(&hooks, &cuda, &err));
}

/* Runs what is left, frees first. Returns true if work came too late. leaks: how many; -1: memory alone. */
static int close_sim(int32_t leaks)
{
    char text[400];
    int32_t late;
    cai_sim_faults_clear(sim);
    cai_sim_clear_error(sim);
    in(c1);
    while (cai_sim_step(sim, s1)) {} /* frees in its order before work elsewhere, if nothing forbids that */
    cai_sim_run(sim);
    GOOD(cai_keepalive_drain(&pool, &err));
    GOOD(cai_event_pool_destroy(&pool, &err));
    if (async == OWN) GOOD(cai_emm_pool_destroy(&mine, &err));
    late = cai_sim_errors(sim, text, sizeof text);
    CHECK_INT(cai_sim_stream_destroy(sim, s1), late ? 700 : 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s2), late ? 700 : 0);
    in(c2);
    CHECK_INT(cai_sim_stream_destroy(sim, peer), 0);
    if (leaks >= 0 && !CHECK_INT(cai_sim_leaks(sim, text, sizeof text), leaks)) printf("    %s\n", text);
    else if (leaks < 0 && cai_sim_leaks(sim, text, sizeof text)) CHECK(!strncmp(text, "allocations: ", 13));
    cai_sim_destroy(sim);
#if !defined(CAI_TESTS_LINKED)
    CHECK_INT(held, 0); /* each owner went with its array */
#endif
    return late != 0;
}

static void work_at(uint64_t address, uint64_t stream)
{
    const cai_sim_access access = cai_sim_writes(address, 1024);
    const uint64_t before = cai_sim_current(sim);
    if (stream == peer) in(c2);
    CHECK_INT(cai_sim_touch(sim, stream, "kernel", &access, 1), 0);
    in(before);
}

static cai_array make(uint64_t stream)
{
    cai_array array;
    memset(&array, 0, sizeof array);
    GOOD(cai_emm_array(&array, &pool, &hooks, CAI_FLOAT32, 2, shape, stream, &err));
    return array;
}

static void check_free_after_work(void)
{
    void *ptr;
    open_sim();
    GOOD(cai_emm_alloc(&ptr, &hooks, 1024, s1, &err));
    work_at((uint64_t)(uintptr_t)ptr, s1);
    GOOD(cai_emm_free(&hooks, ptr, 1024, s1, &err));
    CHECK(!close_sim(0));
    if (!returns && !async) return;
    open_sim(); /* the control: without an order the simulation sees it */
    GOOD(cai_emm_alloc(&ptr, &hooks, 1024, s1, &err));
    work_at((uint64_t)(uintptr_t)ptr, s2);
    GOOD(cai_emm_free(&hooks, ptr, 1024, s1, &err));
    CHECK(close_sim(0));
}

static void check_array(void)
{
    cai_array x, empty, value;
    int64_t none = 0;
    open_sim();
    x = make(s1);
    CHECK(x.data && x.data % 256 == 0 && x.release && x.sync == CAI_SYNC_STREAM && x.stream == s1);
    CHECK(x.memory == CAI_MEMORY_DEVICE && x.device == 0 && x.nbytes == 1024);
    GOOD(cai_array_check(&x, &err));
    GOOD(cai_emm_array(&empty, &pool, &hooks, CAI_FLOAT32, 1, &none, s1, &err));
    CHECK(!empty.release && empty.sync == CAI_SYNC_NONE);
    GOOD(cai_emm_array(&value, &pool, &hooks, CAI_FLOAT64, 0, NULL, CAI_STREAM_PER_THREAD, &err));
    CHECK(value.size == 1 && value.stream == CAI_STREAM_PER_THREAD && value.thread == 1);
    value.release(&value); /* as a binding may do */
    CHECK(!value.release);
    cai_array_release(&x);
    CHECK(!x.release);
    CHECK(!close_sim(0));
}

static void check_array_errors(void)
{
    const int64_t huge[2] = {INT64_MAX / 8, 1};
    cai_array x, clean;
    cai_event_pool unmade;
    open_sim();
    memset(&x, 0x5a, sizeof x);
    memset(&unmade, 0, sizeof unmade);
    clean = x;
    BAD(cai_emm_array(NULL, &pool, &hooks, CAI_INT8, 2, shape, s1, &err), CAI_ERR_ARGUMENT, "out is NULL");
    BAD(cai_emm_array(&x, &pool, NULL, CAI_INT8, 2, shape, s1, &err), CAI_ERR_ARGUMENT, "hooks is NULL");
    BAD(cai_emm_array(&x, NULL, &hooks, CAI_INT8, 2, shape, s1, &err), CAI_ERR_ARGUMENT, "pool is NULL");
    BAD(cai_emm_array(&x, &unmade, &hooks, CAI_INT8, 2, shape, s1, &err), CAI_ERR_ARGUMENT, "not made");
    BAD(cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, 0, &err), CAI_ERR_STREAM, "stream 0");
    BAD(cai_emm_array(&x, &pool, &hooks, 77, 2, shape, s1, &err), CAI_ERR_ARGUMENT, "code");
    CHECK(cai_emm_array(&x, &pool, &hooks, CAI_FLOAT64, 2, huge, s1, &err) != CAI_OK);
    CHECK_INT(cai_sim_capture_begin(sim, s1, 2), 0);
    BAD(cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, s1, &err), CAI_ERR_CAPTURE, "is capturing");
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    in(0);
    BAD(cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, s1, &err), CAI_ERR_UNAVAILABLE, "no context");
    in(c1);
    CHECK(!memcmp(&x, &clean, sizeof x));
    CHECK(!close_sim(0));
}

/* Work on the array's own stream and on another one, which comes after the allocation. */
static cai_array in_use(uint64_t stream)
{
    cai_array array = make(s1);
    work_at(array.data, s1);
    if (stream != s1) GOOD(cai_stream_order(&pool, s1, stream, &err));
    work_at(array.data, stream);
    return array;
}

/* The consumer's work is on another stream, and the array names it in each way. */
static void check_array_order(int32_t sync, uint64_t stream, int32_t thread)
{
    uint64_t event = 0;
    cai_array x;
    open_sim();
    stream = stream == 1 ? s1 : stream == 2 ? s2 : stream == 3 ? peer : CAI_STREAM_PER_THREAD;
    x = in_use(stream);
    if (sync == CAI_SYNC_EVENT) {
        event = cai_sim_event_create(sim);
        CHECK_INT(cai_sim_event_record(sim, event, stream), 0);
        x.event = event;
    }
    x.sync = sync;
    x.stream = sync == CAI_SYNC_STREAM ? stream : 0;
    x.thread = 1;
    cai_sim_host_thread(sim, (uint64_t)thread);
    cai_array_release(&x);
    cai_sim_host_thread(sim, 1);
    if (event) CHECK_INT(cai_sim_event_destroy(sim, event), 0);
    CHECK(!close_sim(0));
}

static void check_orders(void)
{
    int32_t thread;
    for (thread = 1; thread <= 2; ++thread) {
        check_array_order(CAI_SYNC_STREAM, 1, thread);
        check_array_order(CAI_SYNC_STREAM, 2, thread);
        if (async != OWN) check_array_order(CAI_SYNC_STREAM, 3, thread); /* has no access */
        check_array_order(CAI_SYNC_EVENT, 2, thread);
        check_array_order(CAI_SYNC_UNKNOWN, 2, thread);
    }
    check_array_order(CAI_SYNC_STREAM, 4, 1);
}

/* Stream 2 of the thread that made the array, which another thread releases. */
static void check_other_thread(void)
{
    cai_array x;
    open_sim();
    x = make(CAI_STREAM_PER_THREAD);
    work_at(x.data, CAI_STREAM_PER_THREAD);
    cai_sim_host_thread(sim, 2);
    in(c1);
    cai_array_release(&x);
    cai_sim_host_thread(sim, 1);
    CHECK(!close_sim(0));
}

static void check_contexts(uint64_t current)
{
    cai_array x;
    open_sim();
    x = make(s1);
    work_at(x.data, s1);
    current = current ? c2 : 0;
    in(current);
    cai_array_release(&x);
    CHECK_UINT(cai_sim_current(sim), current);
    in(c1);
    CHECK(!close_sim(0));
}

/* While its stream captures the memory stays, and the capture is unharmed. A capture of the stream that it was
 * made on does not matter. */
static void check_capture(int32_t home)
{
    cai_array x;
    open_sim();
    x = in_use(s2);
    x.stream = s2;
    CHECK_INT(cai_sim_capture_begin(sim, home ? s1 : s2, 2), 0);
    cai_array_release(&x);
    CHECK_INT(pool.waiting, !home);
    GOOD(cai_keepalive_poll(&pool, NULL, &err));
    CHECK_INT(pool.waiting, !home); /* the host must wait, as s2 may be gone */
    CHECK_INT(cai_sim_capture_end(sim, home ? s1 : s2, NULL), 0);
    CHECK(!x.release);
    CHECK(!close_sim(0));
}

/* The legacy stream must not be used while any blocking stream captures. Asking is harmless. */
static void check_legacy_capture(uint64_t home, int32_t sync, uint64_t named)
{
    uint64_t blocking;
    cai_array x;
    open_sim();
    blocking = cai_sim_stream_create(sim, 0);
    if (!home) home = s1;
    x = make(home);
    work_at(x.data, home);
    if (sync == CAI_SYNC_NONE) CHECK_INT(cai_sim_context_synchronize(sim), 0);
    x.sync = sync;
    x.stream = named;
    CHECK_INT(cai_sim_capture_begin(sim, blocking, 2), 0);
    cai_array_release(&x);
    CHECK_INT(pool.waiting, 1);
    GOOD(cai_keepalive_poll(&pool, NULL, &err));
    CHECK_INT(pool.waiting, 1);
    BAD(cai_keepalive_drain(&pool, &err), CAI_ERR_PENDING, "while a stream captures");
    CHECK_INT(cai_sim_capture_end(sim, blocking, NULL), 0);
    if (sync != CAI_SYNC_UNKNOWN) GOOD(cai_keepalive_poll(&pool, NULL, &err));
    CHECK_INT(pool.waiting, sync == CAI_SYNC_UNKNOWN);
    CHECK_INT(cai_sim_stream_destroy(sim, blocking), 0);
    CHECK(!close_sim(0));
}

/* Nor is memory taken from or given to CUDA there, or beside a global capture of another thread. */
static void check_hooks_and_captures(void)
{
    uint64_t blocking;
    void *ptr = NULL, *other = NULL;
    cai_array x;
    open_sim();
    blocking = cai_sim_stream_create(sim, 0);
    GOOD(cai_emm_alloc(&ptr, &hooks, 512, CAI_STREAM_LEGACY, &err));
    CHECK_INT(cai_sim_capture_begin(sim, blocking, 2), 0);
    if (async) BAD(cai_emm_alloc(&other, &hooks, 512, CAI_STREAM_LEGACY, &err), CAI_ERR_CUDA, "error 906");
    BAD(cai_emm_free(&hooks, ptr, 512, CAI_STREAM_LEGACY, &err), CAI_ERR_CUDA, "CUDA error 906");
    BAD(cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, 1, &err), CAI_ERR_CAPTURE, "is not allowed");
    CHECK_INT(cai_sim_capture_end(sim, blocking, NULL), 0);
    GOOD(cai_emm_free(&hooks, ptr, 512, CAI_STREAM_LEGACY, &err));
    if (async) {
        GOOD(cai_emm_alloc(&ptr, &hooks, 512, CAI_STREAM_LEGACY, &err));
        CHECK(cai_sim_fail_op(sim, "stream_capture", 1, 700)); /* nothing runs: it is freed */
        GOOD(cai_emm_free(&hooks, ptr, 512, CAI_STREAM_LEGACY, &err));
    }
    cai_sim_host_thread(sim, 2);
    in(c1);
    CHECK_INT(cai_sim_capture_begin(sim, s2, 0), 0);
    cai_sim_host_thread(sim, 1);
    GOOD(cai_emm_alloc(&ptr, &hooks, 512, s1, &err));
    GOOD(cai_emm_free(&hooks, ptr, 512, s1, &err));
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_capture_end(sim, s2, NULL), 0);
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_stream_destroy(sim, blocking), 0);
    CHECK(!close_sim(0));
}

/* An array that was moved names its new stream alone. The simulation ends a program that uses a dead one. */
static void check_moved(void)
{
    uint64_t gone;
    cai_array x;
    open_sim();
    gone = cai_sim_stream_create(sim, 1);
    x = make(gone);
    work_at(x.data, gone);
    GOOD(cai_stream_order(&pool, gone, s2, &err));
    x.stream = s2;
    CHECK_INT(cai_sim_stream_destroy(sim, gone), 0);
    work_at(x.data, s2);
    cai_array_release(&x);
    CHECK(!close_sim(0));
}

/* A destroyed context took its memory with it, and so did one that was reset. */
static void check_destroyed_context(int32_t reset)
{
    spy at;
    cai_array x;
    uint64_t context, stream;
    open_sim();
    context = reset ? c2 : cai_sim_context_create(sim, 0);
    in(context);
    stream = cai_sim_stream_create(sim, 1);
    hooks = spy_table(&at, (void *)(uintptr_t)0x7000);
    x = make(stream);
    CHECK_INT(cai_sim_context_destroy(sim, context), 0);
    if (reset) peer = cai_sim_stream_create(sim, 1);
    if (reset) x.sync = CAI_SYNC_NONE;
    in(c1);
    cai_array_release(&x);
    CHECK(at.allocs == 1 && at.frees == 0);
    CHECK_UINT(cai_sim_current(sim), c1);
    CHECK(!close_sim(0));
}

/* On a broken device no work runs any more: the hook is called at once. */
static void check_broken_device(int32_t sync, uint64_t named)
{
    cai_sim_access late;
    spy at;
    cai_array x;
    uint64_t gone;
    open_sim();
    hooks = spy_table(&at, (void *)(uintptr_t)0x7000);
    x = make(s1);
    x.sync = sync;
    x.stream = named == 1 ? s1 : 0;
    gone = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    CHECK_INT(cai_sim_free(sim, gone), 0);
    late = cai_sim_writes(gone, 64);
    CHECK_INT(cai_sim_touch(sim, s1, "late", &late, 1), 0);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_context_synchronize(sim), 700);
    cai_array_release(&x);
    CHECK_INT(at.frees, 1);
    CHECK_INT(pool.waiting, 0);
    CHECK(close_sim(0));
}

/* A context that cannot be entered: one that is gone took the memory with it. On a broken device nothing runs. */
static void check_no_entry(int32_t error, int32_t frees, int32_t waiting)
{
    spy at;
    cai_array x;
    open_sim();
    hooks = spy_table(&at, (void *)(uintptr_t)0x7000);
    x = make(s1);
    in(c2);
    CHECK(cai_sim_fail_op(sim, "context_push", 1, error));
    cai_array_release(&x);
    CHECK_INT(at.frees, frees);
    CHECK_INT(pool.waiting, waiting);
    in(c1);
    CHECK(!close_sim(0));
}

/* A hook of CUDA's that speaks of a capture has freed nothing. Of any other hook nobody knows that. */
static void check_hook_that_fails(void)
{
    static const int32_t errors[] = {2, 900, 950};
    spy at;
    cai_array x;
    int32_t i;
    open_sim();
    for (i = 0; i < 3; ++i) {
        x = make(s1);
        CHECK(async ? cai_sim_fail_op(sim, "memory_free_async", 1, 900)
                    : cai_sim_fail_op(sim, "stream_capture", 2, 900)); /* that of the hook */
        cai_array_release(&x);
        CHECK_INT(pool.waiting, 1);
        cai_sim_faults_clear(sim);
        GOOD(cai_keepalive_drain(&pool, &err));
    }
    CHECK(!close_sim(0));
    for (i = 0; i < 3; ++i) {
        open_sim();
        hooks = spy_table(&at, (void *)(uintptr_t)0x7000);
        x = make(s1);
        at.error = errors[i];
        cai_array_release(&x);
        CHECK_INT(at.frees, 1);
        CHECK_INT(pool.waiting, 0);
        CHECK(!close_sim(0));
    }
}

/* Each CUDA call of a release fails in turn: either the free comes after the work, or there is none. */
static void check_faults(int32_t sync)
{
    int32_t n, failed = 1;
    for (n = 1; failed; ++n) {
        uint64_t event;
        cai_array x;
        open_sim();
        x = in_use(s2);
        x.sync = sync;
        x.stream = sync == CAI_SYNC_STREAM ? s2 : 0;
        event = cai_sim_event_create(sim);
        CHECK_INT(cai_sim_event_record(sim, event, s2), 0);
        if (sync == CAI_SYNC_EVENT) x.event = event;
        cai_sim_fail(sim, n, 999);
        cai_array_release(&x);
        failed = !cai_sim_faults(sim);
        cai_sim_faults_clear(sim);
        CHECK_UINT(cai_sim_current(sim), c1);
        CHECK_INT(cai_sim_event_destroy(sim, event), 0);
        CHECK(!close_sim(failed ? -1 : 0));
    }
    CHECK(n > 3);
}

static void check_fault_of_array(void)
{
    cai_array x, clean;
    int32_t n, failed = 1;
    memset(&x, 0x5a, sizeof x);
    clean = x;
    for (n = 1; failed; ++n) {
        cai_status status;
        open_sim();
        cai_sim_fail(sim, n, 999);
        status = cai_emm_array(&x, &pool, &hooks, CAI_FLOAT32, 2, shape, s1, &err);
        failed = !cai_sim_faults(sim);
        cai_sim_faults_clear(sim);
        if (!status) cai_array_release(&x);
        else CHECK(!memcmp(&x, &clean, sizeof x));
        x = clean;
        CHECK(!close_sim(0));
    }
    CHECK(n > 3);
}

/* ------------------------------------------------------------------ tables over CUDA that lack something */
static void check_tables(void)
{
    cai_emm_hooks table;
    cai_cuda lacks;
    cai_emm_hooks_malloc(NULL);
    open_sim();
    lacks = cuda;
    lacks.stream_synchronize = NULL;
    BAD(cai_emm_hooks_cuda(&table, &lacks, &err), CAI_ERR_UNAVAILABLE, "stream_synchronize");
    lacks = cuda;
    lacks.version++;
    BAD(cai_emm_hooks_cuda(&table, &lacks, &err), CAI_ERR_ABI, "cuda: the CUDA table has ");
    lacks = cuda;
    lacks.pointer_range = NULL;
    GOOD(cai_emm_hooks_cuda(&table, &lacks, &err));
    CHECK(!table.ipc_handle && table.host_free);
    CHECK(!close_sim(0));
}

/* A free by CUDA's functions whose wait does not do. */
static void check_free_of_cuda(void)
{
    cai_emm_hooks table;
    unsigned char handle[64];
    void *ptr = NULL, *base = NULL;
    open_sim();
    GOOD(cai_emm_hooks_cuda(&table, &cuda, &err));
    GOOD(cai_emm_alloc(&ptr, &table, 512, s1, &err));
    CHECK(cai_sim_fail_op(sim, "ipc_export", 1, 801));
    CHECK_INT(table.ipc_handle(table.ctx, ptr, handle, &base), 801);
    CHECK_INT(table.ipc_handle(table.ctx, ptr, handle, &base), 0);
    CHECK(base == ptr);
    CHECK(cai_sim_fail_op(sim, "stream_capture", 1, 999));
    BAD(cai_emm_free(&table, ptr, 512, s1, &err), CAI_ERR_CUDA, "CUDA error 999");
    CHECK_INT(cai_sim_capture_begin(sim, s1, 2), 0);
    BAD(cai_emm_free(&table, ptr, 512, s1, &err), CAI_ERR_CUDA, "CUDA error 900");
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    cuda.context_synchronize = NULL;
    BAD(cai_emm_free(&table, ptr, 512, CAI_STREAM_LEGACY, &err), CAI_ERR_CUDA, "CUDA error 400");
    cuda.context_synchronize = cai_sim_cuda(sim)->context_synchronize;
    GOOD(cai_emm_free(&table, ptr, 512, CAI_STREAM_LEGACY, &err));
    cuda.stream_capture = NULL;
    GOOD(cai_emm_alloc(&ptr, &table, 512, s1, &err));
    GOOD(cai_emm_free(&table, ptr, 512, s1, &err));
    GOOD(cai_emm_alloc(&ptr, &table, 512, s1, &err));
    CHECK(cai_sim_fail_op(sim, "stream_synchronize", 1, 700));
    BAD(cai_emm_free(&table, ptr, 512, s1, &err), CAI_ERR_CUDA, "CUDA error 700"); /* freed all the same */
    CHECK(!close_sim(0));
}

/* ------------------------------------------------------------------ a memory pool of one's own */
static void check_own_pool(void)
{
    cai_emm_pool other;
    cai_cuda lacks;
    cai_emm_hooks table;
    size_t available = 0, total = 0;
    open_sim();
    BAD(cai_emm_pool_create(NULL, &cuda, 0, &err), CAI_ERR_ARGUMENT, "cai_emm_pool_create: out is NULL");
    BAD(cai_emm_pool_create(&other, NULL, 0, &err), CAI_ERR_ARGUMENT, "cuda is NULL");
    BAD(cai_emm_pool_create(&other, &cuda, 2, &err), CAI_ERR_CUDA, "pool_create: CUDA error 101");
    lacks = cuda;
    lacks.struct_size = offsetof(cai_cuda, pool_create);
    BAD(cai_emm_pool_create(&other, &lacks, 0, &err), CAI_ERR_UNAVAILABLE, "pool_create");
    lacks = cuda;
    lacks.pool_destroy = NULL;
    BAD(cai_emm_pool_create(&other, &lacks, 0, &err), CAI_ERR_UNAVAILABLE, "pool_destroy");
    lacks = cuda;
    lacks.memory_alloc_from_pool = NULL;
    BAD(cai_emm_pool_create(&other, &lacks, 0, &err), CAI_ERR_UNAVAILABLE, "memory_alloc_from_pool");
    lacks.version++;
    BAD(cai_emm_pool_create(&other, &lacks, 0, &err), CAI_ERR_ABI, "the CUDA table has");
    memset(&other, 0, sizeof other);
    BAD(cai_emm_pool_destroy(NULL, &err), CAI_ERR_ARGUMENT, "pool is NULL or not made");
    BAD(cai_emm_pool_destroy(&other, &err), CAI_ERR_ARGUMENT, "pool is NULL or not made");
    BAD(cai_emm_hooks_async(&table, &cuda, &other, &err), CAI_ERR_ARGUMENT, "pool is NULL or not made");
    GOOD(cai_emm_pool_create(&other, &cuda, 0, &err));
    lacks = cuda;
    BAD(cai_emm_hooks_async(&table, &lacks, &other, &err), CAI_ERR_ARGUMENT, "pool is NULL or not made");
    GOOD(cai_emm_hooks_async(&table, &cuda, &other, &err));
    CHECK_INT(table.memory_info(table.ctx, &available, &total), 0);
    CHECK(sizeof total == 4 || (total && available <= total)); /* the simulated device has 2^40 bytes */
    CHECK_UINT(cai_sim_pool_current(sim, 0), cai_sim_pool_default(sim, 0)); /* the process's is as it was */
    GOOD(cai_emm_pool_destroy(&other, &err));
    BAD(cai_emm_pool_destroy(&other, &err), CAI_ERR_ARGUMENT, "pool is NULL or not made");
    CHECK(!close_sim(0));
}

/* Thread 1 makes a shared stream wait for a free while thread 2 records there, waits for that in s2 and
 * allocates. Returns whether it gets the memory that s2 does not wait for. */
static int shares_memory(int32_t whose)
{
    uint64_t shared, freed, recorded;
    void *first = NULL, *second = NULL;
    async = whose;
    open_sim();
    cai_sim_set_options(sim, CAI_SIM_DEFAULT | CAI_SIM_POOL_REUSE | CAI_SIM_POOL_EARLY_WAITS);
    shared = cai_sim_stream_create(sim, 1);
    freed = cai_sim_event_create(sim);
    recorded = cai_sim_event_create(sim);
    GOOD(cai_emm_alloc(&first, &hooks, 1024, s1, &err));
    work_at((uint64_t)(uintptr_t)first, s1);
    GOOD(cai_emm_free(&hooks, first, 1024, s1, &err));
    CHECK_INT(cai_sim_event_record(sim, freed, s1), 0);
    cai_sim_host_thread(sim, 2);
    in(c1);
    CHECK_INT(cai_sim_event_record(sim, recorded, shared), 0);
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_stream_wait_event(sim, shared, freed), 0);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_stream_wait_event(sim, s2, recorded), 0);
    GOOD(cai_emm_alloc(&second, &hooks, 1024, s2, &err));
    GOOD(cai_emm_free(&hooks, second, 1024, s2, &err));
    cai_sim_host_thread(sim, 1);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_event_destroy(sim, freed), 0);
    CHECK_INT(cai_sim_event_destroy(sim, recorded), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, shared), 0);
    CHECK(!close_sim(0));
    async = 1;
    return first == second;
}

static void check_shared_stream(void)
{
    CHECK(shares_memory(1));
    CHECK(!shares_memory(OWN));
}

/* ------------------------------------------------------------------ releases where CUDA lacks something */
static spy counter;

/* A released array is freed so many times by hooks that count, on this stream. One that is not freed waits in
 * the pool until nothing is missing any more. */
static void check_frees(cai_array *x, uint64_t thread, int32_t frees, uint64_t stream)
{
    cai_sim_host_thread(sim, thread);
    in(c1);
    counter.frees = 0;
    cai_array_release(x);
    CHECK_INT(counter.frees, frees);
    if (frees) CHECK(counter.stream == cai_stream_to_cuda(stream) && counter.size == 1024);
    cai_sim_host_thread(sim, 1);
    cai_sim_faults_clear(sim);
    cuda = *cai_sim_cuda(sim);
    CHECK_INT(pool.waiting, !frees);
    GOOD(cai_keepalive_drain(&pool, &err));
    CHECK_INT(counter.frees, 1);
    CHECK_INT(pool.waiting, 0);
}

/* An array of these hooks, which names something else now. */
static cai_array counted(uint64_t home, int32_t sync, uint64_t stream)
{
    cai_array x;
    hooks = spy_table(&counter, (void *)(uintptr_t)0x7000);
    x = make(home);
    x.sync = sync;
    x.stream = stream;
    x.thread = 1;
    return x;
}

static int32_t no_number(void *self, uint64_t *number)
{
    (void)self;
    (void)number;
    return 999;
}

static void check_odd_arrays(void)
{
    cai_array x;
    open_sim();
    x = counted(s1, CAI_SYNC_NONE, 0); /* nobody promises that s1 lives */
    check_frees(&x, 1, 1, CAI_STREAM_LEGACY);
    x = counted(s1, CAI_SYNC_STREAM, s2);
    check_frees(&x, 1, 1, s2);
    x = counted(s1, CAI_SYNC_STREAM, 0); /* no stream: the host waits for the context */
    check_frees(&x, 1, 1, CAI_STREAM_LEGACY);
    x = counted(s1, CAI_SYNC_STREAM, UINT64_MAX);
    check_frees(&x, 1, 1, CAI_STREAM_LEGACY);
    x = counted(s1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    check_frees(&x, 2, 1, CAI_STREAM_LEGACY); /* which waits for thread 1's stream */
    x = counted(s1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    check_frees(&x, 1, 1, CAI_STREAM_PER_THREAD);
    x = counted(s1, CAI_SYNC_STREAM, s1); /* outside of its context no hook is called */
    in(c2);
    CHECK(cai_sim_fail_op(sim, "context_push", 1, 999));
    cai_array_release(&x);
    CHECK_INT(counter.frees, 0);
    CHECK_UINT(cai_sim_current(sim), c2);
    GOOD(cai_keepalive_poll(&pool, NULL, &err));
    CHECK_INT(counter.frees, 0); /* nobody promises that s1 lives: the host must wait */
    GOOD(cai_keepalive_drain(&pool, &err));
    CHECK_INT(counter.frees, 1);
    CHECK_UINT(cai_sim_current(sim), c2);
    in(c1);
    CHECK(!close_sim(0));
}

/* The order is not possible, and neither is the wait. */
static void check_no_wait(void)
{
    uint64_t event;
    cai_array x;
    open_sim();
    event = cai_sim_event_create(sim);
    x = counted(s1, CAI_SYNC_UNKNOWN, 0);
    check_frees(&x, 1, 1, CAI_STREAM_LEGACY); /* the control */
    x = counted(s1, CAI_SYNC_UNKNOWN, 0);
    CHECK(cai_sim_fail_op(sim, "context_synchronize", 1, 999));
    check_frees(&x, 1, 0, 0);
    x = counted(s1, CAI_SYNC_UNKNOWN, 0);
    CHECK(cai_sim_fail_op(sim, "capture_mode", 1, 999));
    check_frees(&x, 1, 0, 0);
    x = counted(s1, CAI_SYNC_UNKNOWN, 0);
    CHECK(cai_sim_fail_op(sim, "context_synchronize", 1, 700));
    check_frees(&x, 1, 1, CAI_STREAM_LEGACY); /* the context is dead: nothing runs */
    x = counted(s1, CAI_SYNC_EVENT, 0);
    x.event = event;
    check_frees(&x, 2, 1, CAI_STREAM_LEGACY);
    x = counted(s1, CAI_SYNC_EVENT, s2);
    x.event = event;
    check_frees(&x, 2, 1, s2);
    x = counted(s1, CAI_SYNC_EVENT, 0);
    x.event = event;
    CHECK(cai_sim_fail_op(sim, "stream_wait_event", 1, 999));
    check_frees(&x, 2, 1, CAI_STREAM_LEGACY); /* the host waits */
    x = counted(s1, CAI_SYNC_EVENT, 0);
    x.event = event;
    CHECK(cai_sim_fail_op(sim, "stream_wait_event", 1, 999));
    CHECK(cai_sim_fail_op(sim, "event_synchronize", 1, 999));
    check_frees(&x, 2, 1, CAI_STREAM_LEGACY); /* it waits for the context */
    x = counted(s1, CAI_SYNC_EVENT, 0);
    x.event = event;
    CHECK(cai_sim_fail_op(sim, "stream_wait_event", 1, 999));
    CHECK(cai_sim_fail_op(sim, "event_synchronize", 1, 999));
    CHECK(cai_sim_fail_op(sim, "context_synchronize", 1, 999));
    check_frees(&x, 2, 0, 0);
    x = counted(s1, CAI_SYNC_EVENT, 0);
    x.event = event;
    CHECK(cai_sim_fail_op(sim, "stream_wait_event", 1, 999));
    CHECK(cai_sim_fail_op(sim, "event_synchronize", 1, 700));
    check_frees(&x, 2, 1, CAI_STREAM_LEGACY); /* nothing runs */
    CHECK_INT(cai_sim_event_destroy(sim, event), 0);
    CHECK(!close_sim(0));
}

static void check_without_slots(void)
{
    cai_array x;
    open_sim();
    x = counted(CAI_STREAM_PER_THREAD, CAI_SYNC_NONE, 0);
    cuda.host_thread = no_number;
    check_frees(&x, 1, 1, CAI_STREAM_LEGACY);
    x = counted(CAI_STREAM_PER_THREAD, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    cuda.host_thread = no_number;
    check_frees(&x, 1, 1, CAI_STREAM_LEGACY);
    x = counted(s1, CAI_SYNC_STREAM, s1);
    cuda.context_id = NULL;
    check_frees(&x, 1, 1, s1);
    cuda.context_id = NULL;
    x = counted(s1, CAI_SYNC_STREAM, s1);
    check_frees(&x, 1, 1, s1);
    CHECK(!close_sim(0));
}

/* A platform whose stream 0 is like any other: nothing but a wait orders what names no stream. */
static void check_plain_platform(void)
{
    void *ptr = NULL;
    uint64_t event;
    cai_array x;
    open_sim();
    event = cai_sim_event_create(sim);
    x = counted(s1, CAI_SYNC_NONE, 0);
    cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    check_frees(&x, 1, 1, 0);
    x = counted(s1, CAI_SYNC_EVENT, 0);
    x.event = event;
    cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    check_frees(&x, 1, 1, 0);
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    GOOD(cai_emm_alloc(&ptr, &hooks, 512, CAI_STREAM_LEGACY, &err)); /* which asks for no capture */
    GOOD(cai_emm_free(&hooks, ptr, 512, CAI_STREAM_LEGACY, &err));
    CHECK_INT(cai_sim_event_destroy(sim, event), 0);
    CHECK(!close_sim(0));
}

static void check_own_errors(void)
{
    cai_array x;
    open_sim();
    cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    BAD(cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, 1, &err), CAI_ERR_STREAM, "of this platform");
    cuda = *cai_sim_cuda(sim);
    cuda.host_thread = no_number;
    BAD(cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, 2, &err), CAI_ERR_CUDA, "host_thread: CUDA");
    cuda = *cai_sim_cuda(sim);
#if !defined(CAI_TESTS_LINKED)
    no_memory = 1;
    BAD(cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, s1, &err), CAI_ERR_OUT_OF_MEMORY, "an owner");
    no_memory = 0;
#endif
    CHECK(!close_sim(0));
}

static void check_host(void)
{
    cai_emm_hooks host;
    cai_array x;
    void *ptr = NULL;
    cai_emm_hooks_malloc(&host);
    GOOD(cai_emm_alloc(&ptr, &host, 100, CAI_STREAM_LEGACY, &err));
    CHECK(ptr && (uintptr_t)ptr % 256 == 0);
    if (ptr) memset(ptr, 1, 100);
    GOOD(cai_emm_free(&host, ptr, 100, CAI_STREAM_LEGACY, &err));
    GOOD(cai_emm_array(&x, NULL, &host, CAI_FLOAT32, 2, shape, CAI_STREAM_LEGACY, &err));
    CHECK(x.memory == CAI_MEMORY_HOST && x.sync == CAI_SYNC_NONE && x.release);
    memset((void *)(uintptr_t)x.data, 1, 1024);
    cai_array_release(&x);
    CHECK(!x.release);
#if !defined(CAI_TESTS_LINKED)
    no_memory = 1;
    BAD(cai_emm_alloc(&ptr, &host, 100, 1, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc of host");
    no_memory = 0;
#endif
}

enum { VERSION, NO_HOOKS, ZERO, MINUS_ONE, CROOKED, NOWHERE, NO_DEFAULTS, CAPTURES, FREE_700, FREE_900, BROKEN };

/* A call that fails. */
static cai_status broken(int32_t which, spy *at, cai_error *told)
{
    void *const crooked = (void *)(uintptr_t)0x7001;
    cai_emm_hooks own = spy_table(at, crooked);
    cai_array x;
    void *ptr;
    at->error = which == FREE_700 ? 700 : which == FREE_900 ? 900 : 0;
    if (which == VERSION) own.version = 2;
    if (which == NO_DEFAULTS) cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    if (which <= NO_HOOKS) return cai_emm_hooks_check(which == NO_HOOKS ? NULL : &own, told);
    if (which == ZERO || which == CROOKED) return cai_emm_alloc(&ptr, &own, 8, which == ZERO ? 0 : 1, told);
    if (which >= FREE_700) return cai_emm_free(&own, crooked, 8, 1, told);
    if (which == MINUS_ONE) return cai_emm_free(&own, crooked, 8, UINT64_MAX, told);
    return cai_emm_array(&x, &pool, &hooks, CAI_INT8, 2, shape, which == NO_DEFAULTS ? 1 : s1, told);
}

/* cai_error.rule. The status is the same without an error. */
static void check_rules(void)
{
    static const struct {
        cai_status status;
        int32_t rule;
    } rows[BROKEN] = {{CAI_ERR_ABI, 110}, {CAI_ERR_ARGUMENT, 0}, {CAI_ERR_STREAM, 71}, {CAI_ERR_STREAM, 74},
                      {CAI_ERR_MEMORY, 121}, {CAI_ERR_UNAVAILABLE, 111}, {CAI_ERR_STREAM, 106},
                      {CAI_ERR_CAPTURE, 103}, {CAI_ERR_CUDA, 0}, {CAI_ERR_CUDA, 103}};
    int32_t i;
    spy at;
    open_sim();
    for (i = 0; i < BROKEN; i++) {
        in(i == NOWHERE ? 0 : c1);
        cuda = *cai_sim_cuda(sim);
        if (i == CAPTURES) CHECK_INT(cai_sim_capture_begin(sim, s1, 2), 0);
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(broken(i, &at, &err), rows[i].status);
        CHECK_INT(err.code, rows[i].status);
        CHECK_INT(err.rule, rows[i].rule);
        CHECK_INT(broken(i, &at, NULL), rows[i].status);
        if (i == CAPTURES) CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    }
    cuda = *cai_sim_cuda(sim);
    CHECK(!close_sim(0));
}

static void run(void)
{
    check_rules();
    check_memory();
    check_memory_errors();
    check_host();
    for (returns = 0; returns <= 1; ++returns) {
        for (async = 0; async <= OWN; ++async) {
            check_free_after_work();
            check_array();
            check_array_errors();
            check_orders();
            check_other_thread();
            check_contexts(0);
            check_contexts(1);
            check_capture(0);
            check_capture(1);
            check_legacy_capture(CAI_STREAM_LEGACY, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
            check_legacy_capture(0, CAI_SYNC_NONE, 0);
            check_legacy_capture(0, CAI_SYNC_UNKNOWN, 0);
            check_hooks_and_captures();
            if (!returns) check_hook_that_fails();
            check_moved();
            check_faults(CAI_SYNC_STREAM);
            check_faults(CAI_SYNC_EVENT);
            check_faults(CAI_SYNC_UNKNOWN);
            check_fault_of_array();
        }
    }
    async = 1;
    check_own_pool();
    check_shared_stream();
    check_destroyed_context(0);
    check_destroyed_context(1);
    check_no_entry(4, 0, 0);
    check_no_entry(201, 0, 0);
    check_no_entry(709, 0, 0);
    check_no_entry(700, 1, 0);
    check_no_entry(999, 0, 1);
    check_broken_device(CAI_SYNC_STREAM, 1);
    check_broken_device(CAI_SYNC_NONE, 0);
    check_broken_device(CAI_SYNC_UNKNOWN, 0);
    check_tables();
    check_free_of_cuda();
    check_odd_arrays();
    check_no_wait();
    check_without_slots();
    check_plain_platform();
    check_own_errors();
}

CAI_TEST_MAIN(run)
