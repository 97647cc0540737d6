/* test_emm_races.c - cai_manager.h: what another thread does between two steps of a call, in one thread.
 * SPDX-License-Identifier: MIT
 *
 * races.h has the other thread and what checks the order of frees. Besides this, what the other tests of
 * cai_manager.h do not reach: slots that fail after they did their work, tables that lack slots, limits. */
#include "races.h"

/* ------------------------------------------------------------------ frees */

static cai_memory_handle shared, made;
static cai_array array;

/* Releases the array while a stream captures. */
static void release_captured(uint64_t stream)
{
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&array);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
}

static void owns(void);
static void release_theirs(void);

static int32_t no_event_synchronize(void *self, uint64_t event)
{
    (void)self, (void)event;
    return 1;
}

/* A reference of another thread to the object, by its handle or an array's. */
static void frees_theirs(void)
{
    work(s3);
    let(shared, s3);
}

static void releases_theirs(void)
{
    work(s3);
    release_theirs();
}

/* Two references, both given back as if they were not the last: the later one frees after both. */
static void check_free_and_free(int32_t owned, const char *place)
{
    open_emm(0);
    shared = get(100, s2);
    if (owned) owns();
    else retain(shared);
    work(s2);
    meanwhile(place, 0, owned ? releases_theirs : frees_theirs);
    let(shared, s2);
    CHECK_INT(ran, 1);
    freed(1, s2);
    close_emm();
}

/* The same, and CUDA makes no order: the host waits. */
static void check_free_and_free_failing(const char *slot, int32_t times)
{
    open_emm(0);
    shared = get(100, s2);
    retain(shared);
    retain(shared);
    work(s2);
    fail(slot, times, 999, 0);
    meanwhile("context_current", 0, frees_theirs);
    let(shared, s2);
    CHECK_INT(ran, 1);
    let(shared, s1);
    freed(1, s1);
    close_emm();
}

/* The event of an earlier reference cannot be followed, and not be waited for. It stays. If another one comes
 * meanwhile, the free stays until a reset. */
static void check_free_never(int32_t another)
{
    int32_t i;
    open_emm(0);
    shared = get(100, s2);
    for (i = 0; i < 3; i++) retain(shared);
    work(s2);
    let(shared, s2);
    fail("stream_wait_event", 1, 999, 0);
    cuda.event_synchronize = no_event_synchronize;
    if (another) meanwhile("after stream_synchronize", 0, frees_theirs);
    let(shared, s3);
    cuda.event_synchronize = cai_sim_cuda(sim)->event_synchronize;
    if (!another) let(shared, s3);
    let(shared, s1);
    CHECK_INT(frees, !another);
    if (another) {
        BAD(cai_manager_destroy(&emm, err), CAI_ERR_PENDING, "contexts");
        cai_sim_run(sim);
        GOOD(cai_manager_reset(&emm, err));
    }
    freed(1, another ? CAI_STREAM_LEGACY : s1);
    close_emm();
}

static void is_stale(void)
{
    BAD(cai_manager_free(&emm, shared, s3, err), CAI_ERR_STALE, "does not exist");
    BAD(cai_manager_retain(&emm, shared, err), CAI_ERR_STALE, "does not exist");
}

static void is_stale_and_gets(void)
{
    is_stale();
    made = get(50, s1);
    CHECK((uint32_t)made != (uint32_t)shared); /* its place is not free yet */
}

/* Both free the only reference: the other one is told. */
static void check_double_free(void)
{
    const char *const at[2] = {"context_current", "after stream_capture"};
    int32_t i;
    for (i = 0; i < 2; i++) {
        open_emm(0);
        shared = get(100, s2);
        meanwhile(at[i], 0, is_stale_and_gets);
        let(shared, s2);
        CHECK_INT(ran, 1);
        freed(1, s2);
        CHECK_UINT(counts().live, 1);
        let(made, s1);
        close_emm();
    }
}

/* A free that fails gives its reference back to the handle. */
static void check_free_refused(void)
{
    open_emm(0);
    shared = get(100, s2);
    fail("stream_capture", 1, 1, 0);
    meanwhile("stream_capture", 0, is_stale);
    BAD(cai_manager_free(&emm, shared, s2, err), CAI_ERR_CUDA, "stream_capture");
    CHECK_INT(ran, 1);
    CHECK_INT(info_of(shared).references, 1);
    retain(shared);
    fail("stream_capture", 1, 1, 0);
    BAD(cai_manager_free(&emm, shared, s2, err), CAI_ERR_CUDA, "stream_capture");
    CHECK_INT(info_of(shared).references, 2);
    let(shared, s2);
    let(shared, s2);
    freed(1, s2);
    close_emm();
}

/* Pinned memory: the host waits for each reference before it is unpinned. */
static void check_pin_and_free(int32_t references)
{
    static char bytes[64];
    int32_t i;
    open_sim(0);
    hooks.pin = hook_pin;
    hooks.unpin = hook_unpin;
    make_emm();
    GOOD(cai_manager_pin(&shared, &emm, bytes, sizeof bytes, 0, err));
    for (i = 1; i < references; i++) retain(shared);
    work(s2);
    meanwhile("after stream_capture", 0, frees_theirs); /* on s3 */
    let(shared, s2);
    CHECK_INT(ran, 1);
    for (i = 2; i < references; i++) let(shared, s1);
    freed(1, references > 2 ? s1 : s2);
    close_emm();
}

/* A reference goes on stream 2 of another thread: the free comes after an event in it. */
static void check_free_per_thread(void)
{
    open_emm(0);
    shared = get(100, s1);
    retain(shared);
    cai_sim_host_thread(sim, 2);
    work(CAI_STREAM_PER_THREAD);
    let(shared, CAI_STREAM_PER_THREAD);
    cai_sim_host_thread(sim, 1);
    let(shared, s1);
    freed(1, s1);
    close_emm();
}

/* Of three references another thread gives one back meanwhile: the last free comes after both. */
static void check_free_of_three(const char *place)
{
    open_emm(0);
    shared = get(100, s1);
    retain(shared);
    retain(shared);
    work(s2);
    meanwhile(place, 0, frees_theirs);
    let(shared, s2);
    CHECK_INT(ran, 1);
    CHECK_INT(frees, 0);
    let(shared, s1);
    freed(1, s1);
    close_emm();
}

/* ------------------------------------------------------------------ lists */

static cai_memory_handle many[2 * FIRST_CHUNK];

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
    cai_memory_handle memory;
    open_full(0);
    list_calls = 0;
    meanwhile("alloc_fn", 0, gets_one);
    memory = get(10, s2);
    CHECK_INT(ran, 1);
    CHECK_INT(list_calls, 2);
    CHECK_INT(list_live, 2);
    CHECK((uint32_t)memory != (uint32_t)made);
    CHECK_UINT(counts().live, FIRST_CHUNK + 2);
    let(memory, s2);
    let(made, s3);
    close_full(FIRST_CHUNK);
}

/* A free gives the place that was missing; or gives it to another one. */
static void check_grow_and_free(void)
{
    cai_memory_handle memory;
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

/* An array of bytes on the memory, with a reference of its own. */
static void own(cai_memory_handle memory, uint64_t stream)
{
    const int64_t extent = 8;
    GOOD(cai_array_init(&array, CAI_INT8, 1, &extent, NULL, cai_manager_pointer(&emm, memory), err));
    array.sync = CAI_SYNC_STREAM;
    array.stream = stream;
    GOOD(cai_manager_own(&array, &emm, memory, err));
}

/* An array that the other thread gives back in the order of s3. */
static void owns(void)
{
    own(shared, s3);
    work(s3);
}

static void release_theirs(void)
{
    cai_array_release(&array);
}

/* ------------------------------------------------------------------ deferred frees */

static void flushes(void)
{
    GOOD(cai_manager_flush(&emm, err));
    CHECK_UINT(counts().deferred, 0);
}

static void defers_theirs(void)
{
    let(shared, s3);
}

static void begins(void)
{
    GOOD(cai_manager_defer_begin(&emm, err));
}

/* The hook defer: how often it got 1, and 0. */
static int32_t scopes[2];

static int hook_scope(void *ctx, int on)
{
    (void)ctx;
    scopes[!!on]++;
    step("defer");
    return on ? 1 : 0;
}

/* The hook refuses a scope. Another thread began one inside it meanwhile, whose end does not call the hook. */
static void check_scope_refused(void)
{
    open_sim(0);
    hooks.defer = hook_scope;
    make_emm();
    memset(scopes, 0, sizeof scopes);
    meanwhile("defer", 0, begins);
    BAD(cai_manager_defer_begin(&emm, err), CAI_ERR_CUDA, "defer of");
    CHECK_INT(ran, 1);
    GOOD(cai_manager_defer_end(&emm, err));
    CHECK_INT(scopes[1], 1);
    CHECK_INT(scopes[0], 0);
    BAD(cai_manager_defer_end(&emm, err), CAI_ERR_ARGUMENT, "no scope");
    close_emm();
}

static void defer(int32_t count)
{
    while (count-- > 0) let(get(10, s1), s1);
}

/* Two threads carry the list out: each object once. */
static void check_flush_and_flush(void)
{
    open_emm(CAI_EMM_FREES_WAIT);
    defer(5);
    meanwhile("device_free", 1, flushes);
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(ran, 1);
    CHECK_INT(frees, 5);
    CHECK_UINT(counts().freed, 5);
    CHECK_UINT(counts().deferred_bytes, 0);
    defer(5);
    meanwhile("context_current", 0, flushes); /* all is gone before it begins */
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(frees, 10);
    defer(10);
    meanwhile("device_free", 0, flushes);
    defer(1); /* the eleventh */
    CHECK_INT(frees, 21);
    CHECK_UINT(counts().deferred, 0);
    close_emm();
}

/* One more is deferred, or a scope begins, while they are carried out. */
static void check_flush_and_more(void)
{
    open_emm(CAI_EMM_FREES_WAIT);
    shared = get(20, s3);
    defer(3);
    meanwhile("device_free", 0, defers_theirs);
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(frees, 3);
    CHECK_UINT(counts().deferred, 1);
    CHECK_UINT(counts().deferred_bytes, 20);
    defer(2);
    meanwhile("device_free", 0, begins);
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(frees, 6);
    BAD(cai_manager_destroy(&emm, err), CAI_ERR_PENDING, "1 scopes");
    GOOD(cai_manager_defer_end(&emm, err));
    close_emm();
}

/* ------------------------------------------------------------------ arrays */

/* The array's stream captures; the other thread gives its own reference back. */
static void check_release_captured_and_free(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    work(s2);
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_THREAD_LOCAL), 0);
    meanwhile("after stream_capture", 0, frees_theirs);
    cai_array_release(&array);
    CHECK_INT(ran, 1);
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().deferred, 1);
    CHECK_INT(cai_sim_capture_end(sim, s2, NULL), 0);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
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
    release_captured(s2);
    let(shared, s1);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* Memory that a reset freed needs no wait. Its place is as good as new. */
static void check_reset_after_captured(void)
{
    cai_memory_handle lost;
    open_emm(0);
    lost = get(100, s1);
    shared = lost;
    own(shared, s2);
    release_captured(s2);
    GOOD(cai_manager_reset(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    let(lost, s3);
    shared = get(100, s1);
    CHECK_UINT((uint32_t)shared, (uint32_t)lost);
    let(shared, s1);
    freed(2, s1);
    close_emm();
}

/* An array on stream 2 of this thread, released while that captures. */
static void own_and_release_captured(uint64_t thread, int32_t last)
{
    const int32_t before = frees;
    cai_sim_host_thread(sim, thread);
    own(shared, CAI_STREAM_PER_THREAD);
    array.thread = thread;
    work(CAI_STREAM_PER_THREAD);
    if (last) let(shared, CAI_STREAM_PER_THREAD);
    release_captured(CAI_STREAM_PER_THREAD);
    CHECK_INT(frees, before);
    cai_sim_host_thread(sim, 1);
}

/* Stream 2 of one thread is not that of another. */
static void check_release_captured_threads(void)
{
    open_emm(0);
    shared = get(100, CAI_STREAM_PER_THREAD);
    own_and_release_captured(1, 1);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    shared = get(100, s1);
    own_and_release_captured(1, 0);
    own_and_release_captured(2, 0);
    let(shared, s1);
    GOOD(cai_manager_flush(&emm, err)); /* after everything */
    freed(2, CAI_STREAM_LEGACY);
    close_emm();
}

/* An array on stream 2 of this thread keeps memory on stream 2 of another one, which frees it. */
static void check_release_captured_elsewhere(void)
{
    open_emm(0);
    cai_sim_host_thread(sim, 2);
    shared = get(100, CAI_STREAM_PER_THREAD);
    cai_sim_host_thread(sim, 1);
    own(shared, CAI_STREAM_PER_THREAD);
    array.thread = 1;
    cai_sim_host_thread(sim, 2);
    let(shared, CAI_STREAM_PER_THREAD);
    cai_sim_host_thread(sim, 1);
    work(CAI_STREAM_PER_THREAD);
    release_captured(CAI_STREAM_PER_THREAD);
    CHECK_UINT(counts().deferred, 1);
    cai_sim_host_thread(sim, 2);
    GOOD(cai_manager_flush(&emm, err));
    cai_sim_host_thread(sim, 1);
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

static void frees_on_its_own(void)
{
    work(CAI_STREAM_PER_THREAD);
    let(shared, CAI_STREAM_PER_THREAD);
}

/* The host has waited for everything, but not for what the other thread does on its stream 2 before it frees. */
static void check_release_and_free_elsewhere(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s1);
    array.sync = CAI_SYNC_UNKNOWN;
    meanwhile("after context_synchronize", 0, frees_on_its_own);
    cai_array_release(&array);
    CHECK_INT(ran, 1);
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* The same with pinned memory: the host waits before it is unpinned. */
static void check_release_and_free_pinned(int32_t fails_to_wait)
{
    static char bytes[64];
    open_sim(0);
    hooks.pin = hook_pin;
    hooks.unpin = hook_unpin;
    make_emm();
    GOOD(cai_manager_pin(&shared, &emm, bytes, sizeof bytes, 0, err));
    own(shared, s1);
    work(s1);
    meanwhile("after stream_capture", 0, frees_theirs);
    if (fails_to_wait) fail("stream_synchronize", 1, 1, 0);
    cai_array_release(&array);
    CHECK_INT(ran, 1);
    CHECK_INT(frees, !fails_to_wait);
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), fails_to_wait);
    freed(1, fails_to_wait ? CAI_STREAM_LEGACY : s1);
    close_emm();
}

/* A free that comes after a stream that captured at a release: the host waits for the context, where somebody
 * asked for that, not where a limit was passed. */
static void check_release_captured_between(void)
{
    open_emm(0);
    shared = get(100, s1);
    own_and_release_captured(1, 0);
    cai_sim_host_thread(sim, 2);
    let(shared, CAI_STREAM_PER_THREAD);
    cai_sim_log_clear(sim);
    emm.options.deferred_count = 0;
    GOOD(cai_manager_defer_begin(&emm, err));
    GOOD(cai_manager_defer_end(&emm, err));
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), 0);
    CHECK_INT(frees, 0);
    CHECK_INT(cai_sim_fail_op(sim, "context_synchronize", 1, 1), 1);
    BAD(cai_manager_destroy(&emm, err), CAI_ERR_PENDING, "context_synchronize");
    cai_sim_host_thread(sim, 1);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), 2);
    close_emm();
}

/* Leaves a free on s1 that is to come after s2. */
static void defer_after_capture(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    let(shared, s1);
    release_captured(s2);
    CHECK_UINT(counts().deferred, 1);
}

/* The host cannot wait: the free stays, and so does the manager. */
static void check_flush_without_wait(void)
{
    defer_after_capture();
    work(s2);
    fail("context_synchronize", 2, 1, 0);
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().deferred, 1);
    BAD(cai_manager_destroy(&emm, err), CAI_ERR_PENDING, "context_synchronize");
    CHECK_INT(frees, 0);
    close_emm();
    freed(1, CAI_STREAM_LEGACY);
}

/* A blocking stream captures: nobody waits for the context, which would end the capture. */
static void check_flush_in_capture(void)
{
    uint64_t stream;
    defer_after_capture();
    work(s2);
    stream = cai_sim_stream_create(sim, 0);
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_RELAXED), 0);
    GOOD(cai_manager_flush(&emm, err));
    BAD(cai_manager_destroy(&emm, err), CAI_ERR_CAPTURE, "906");
    CHECK_INT(frees, 0);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, stream), 0);
    close_emm();
    freed(1, CAI_STREAM_LEGACY);
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
    CHECK_UINT(counts().deferred, 1);
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().deferred, 1);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* The thread is not known: the legacy stream comes after stream 2 of any thread. */
static void check_release_without_thread(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, CAI_STREAM_PER_THREAD);
    let(shared, s1);
    work(CAI_STREAM_PER_THREAD);
    fail("host_thread", 1, 1, 0);
    cai_array_release(&array);
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* No work is pending, or only on stream 2 of another thread, but a blocking stream captures: the free is deferred. */
static void check_release_beside_capture(int32_t sync, int32_t pinned)
{
    static char bytes[64];
    uint64_t stream;
    open_sim(0);
    hooks.pin = hook_pin;
    hooks.unpin = hook_unpin;
    make_emm();
    stream = cai_sim_stream_create(sim, 0);
    if (pinned) GOOD(cai_manager_pin(&shared, &emm, bytes, sizeof bytes, 0, err));
    else shared = get(100, s1);
    own(shared, CAI_STREAM_PER_THREAD);
    array.sync = sync;
    array.thread = 2;
    let(shared, s1);
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_RELAXED), 0);
    cai_array_release(&array);
    CHECK_UINT(counts().deferred, 1);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    CHECK_INT(cai_sim_stream_destroy(sim, stream), 0);
    close_emm();
}

/* The array's stream cannot be ordered after the other reference: the host waits for its event. */
static void check_release_without_order(void)
{
    open_emm(0);
    shared = get(100, s1);
    own(shared, s2);
    work(s1);
    let(shared, s1);
    work(s2);
    fail("stream_wait_event", 1, 999, 0);
    cai_sim_log_clear(sim);
    cai_array_release(&array);
    CHECK_INT(cai_sim_calls_of(sim, "event_synchronize"), 1);
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), 0);
    freed(1, s2);
    close_emm();
}

/* And the host cannot wait: the free is deferred. */
static void check_free_without_wait(void)
{
    open_emm(0);
    shared = get(100, s1);
    retain(shared);
    work(s1);
    let(shared, s1);
    work(s2);
    cuda.event_synchronize = no_event_synchronize;
    fail("stream_wait_event", 1, 999, 0);
    let(shared, s2);
    cuda.event_synchronize = cai_sim_cuda(sim)->event_synchronize;
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().deferred, 1);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* Pinned memory whose array was released in a capture stays pinned until the host could wait. */
static void check_flush_pinned(void)
{
    static char bytes[64];
    open_sim(0);
    hooks.pin = hook_pin;
    hooks.unpin = hook_unpin;
    make_emm();
    GOOD(cai_manager_pin(&shared, &emm, bytes, sizeof bytes, 0, err));
    own(shared, s1);
    let(shared, s1);
    work(s1);
    release_captured(s1);
    CHECK_UINT(counts().deferred, 1);
    fail("context_synchronize", 1, 999, 0);
    GOOD(cai_manager_flush(&emm, err));
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().deferred, 1);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* A failed init touches nothing. Arrays of a manager that is no more: their release does nothing. */
static void check_release_without_manager(void)
{
    cai_array copy;
    cai_manager before;
    open_emm(0);
    shared = get(100, s1);
    own(shared, s1);
    before = emm;
    copy = array;
    BAD(cai_manager_init(&emm, &pool, NULL, NULL, err), CAI_ERR_ARGUMENT, "hooks is NULL");
    CHECK(memcmp(&emm, &before, sizeof emm) == 0); /* not touched */
    memset(&emm, 0, sizeof emm);
    cai_array_release(&copy);
    CHECK(copy.release == NULL);
    emm = before;
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 1);
    cai_array_release(&array);
    let(shared, s1);
    freed(1, s1);
    close_emm();
}

/* ------------------------------------------------------------------ threads */

/* host_thread fails where an array needs it: nothing was done. */
static void check_no_thread(void)
{
    const int64_t extent = 8;
    open_emm(0);
    fail("host_thread", 1, 1, 0);
    BAD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, CAI_STREAM_PER_THREAD, err), CAI_ERR_CUDA,
        "host_thread");
    CHECK_INT(block_live, 0);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, CAI_STREAM_PER_THREAD, err));
    CHECK_UINT(array.thread, 1);
    cai_array_release(&array);
    freed(1, CAI_STREAM_PER_THREAD);
    close_emm();
}

/* A query answers that the process ends: the memory counts as freed. */
static void check_free_at_end(void)
{
    open_emm(0);
    shared = get(100, s1);
    fail("stream_capture", 1, 4, 0);
    let(shared, CAI_STREAM_PER_THREAD);
    CHECK_INT(frees, 0);
    CHECK_UINT(counts().live, 0);
    CHECK_UINT(counts().failed, 0);
    free(blocks[0].ptr);
    block_live = 0;
    close_emm();
}

/* A reference that is not the last goes in a stream of another context: its event is of there. */
static void check_free_of_other_context(void)
{
    uint64_t other;
    open_emm(0);
    shared = get(100, s1);
    retain(shared);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    other = cai_sim_stream_create(sim, 1);
    work(other);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    let(shared, other);
    let(shared, s1);
    freed(1, s1);
    CHECK_INT(cai_sim_stream_destroy(sim, other), 0);
    close_emm();
}

/* A platform without default streams has none for deferred frees: the host waits for their events. */
static void check_deferred_plain(void)
{
    static char bytes[64];
    open_sim(CAI_EMM_FREES_WAIT);
    hooks.pin = hook_pin;
    hooks.unpin = hook_unpin;
    cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    make_emm();
    shared = get(100, s1);
    own(shared, s2);
    work(s2);
    release_captured(s2);
    work(s1);
    let(shared, s1);
    CHECK_INT(frees, 0);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, 0);
    GOOD(cai_manager_pin(&shared, &emm, bytes, sizeof bytes, 0, err));
    own(shared, s2);
    work(s2);
    release_captured(s2);
    let(shared, s1);
    CHECK_INT(frees, 1);
    GOOD(cai_manager_flush(&emm, err));
    freed(2, 0);
    close_emm();
}

/* A deferred free in a stream of another context: its event is of there, and the stream may be destroyed. */
static void check_deferred_elsewhere(int32_t fails_there)
{
    uint64_t other;
    open_emm(CAI_EMM_FREES_WAIT);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    other = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    shared = get(100, other);
    if (fails_there) fail("context_push", 1, 1, 0); /* the host waits */
    let(shared, other);
    CHECK_UINT(cai_sim_current(sim), c1);
    CHECK_INT(cai_sim_calls_of(sim, "stream_synchronize"), fails_there);
    CHECK_INT(cai_sim_stream_destroy(sim, other), 0);
    GOOD(cai_manager_flush(&emm, err));
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* All work of a context has ended, they say. What goes on all the same is waited for. */
static void check_broken(int plain)
{
    open_emm(0);
    if (plain) cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    shared = get(100, s2);
    retain(shared);
    work(s1);
    fail("stream_capture", 1, 719, 0);
    let(shared, s1);
    CHECK_INT(info_of(shared).references, 1);
    work(s1);
    fail("stream_capture", 1, 700, 0);
    let(shared, s1);
    freed(1, plain ? 0 : CAI_STREAM_LEGACY);
    close_emm();
}

/* The wait for an array whose work is unknown says that all work has ended: it is freed at once. */
static void check_broken_unknown(void)
{
    open_emm(0);
    shared = get(100, s2);
    own(shared, s2);
    array.sync = CAI_SYNC_UNKNOWN;
    let(shared, s2);
    fail("context_synchronize", 1, 700, 0);
    cai_array_release(&array);
    freed(1, CAI_STREAM_LEGACY);
    close_emm();
}

/* ------------------------------------------------------------------ contexts */

/* A push and a pop that were done, and report an error of before. */
static void check_contexts(void)
{
    cai_memory_handle memory = 9;
    open_emm(0);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    fail("context_push", 1, 700, 1);
    BAD(cai_manager_alloc(&memory, &emm, 10, 0, s1, err), CAI_ERR_CUDA, "context_push");
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(block_live, 0);
    fail("context_pop", 1, 700, 1);
    BAD(cai_manager_alloc(&memory, &emm, 10, 0, s1, err), CAI_ERR_CUDA, "context_pop");
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(block_live, 0);
    CHECK_UINT(memory, 9);
    memory = get(10, s1);
    fail("context_pop", 1, 700, 0); /* this one was not */
    BAD(cai_manager_free(&emm, memory, s1, err), CAI_ERR_CUDA, "context_pop");
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(block_live, 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    close_emm();
}

/* ------------------------------------------------------------------ tables */

static void check_tables(void)
{
    cai_emm_hooks out, before;
    open_sim(0);
    memset(&out, 0x5a, sizeof out);
    before = out;
    cuda.struct_size = (uint32_t)offsetof(cai_cuda, context_current) - 1;
    BAD(cai_emm_hooks_cuda(&out, &cuda, err), CAI_ERR_ABI, "the CUDA table has");
    BAD(cai_emm_hooks_async(&out, &cuda, NULL, err), CAI_ERR_ABI, "cuda_async");
    cuda.struct_size = (uint32_t)sizeof cuda + 8;
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
    cai_emm_hooks_malloc(NULL);
    fill_hooks(CAI_EMM_CUDA_HOST);
    hooks.kind = CAI_MEMORY_HOST;
    BAD(cai_manager_init(&emm, NULL, &hooks, NULL, err), CAI_ERR_ARGUMENT, "pool is NULL");
    fill_hooks(0);
    make_emm();
    close_emm();
}

/* CAI_EMM_CUDA_HOST takes whole pairs. */
static void check_half_pairs(void)
{
    static char bytes[64];
    cai_memory_handle memory = 9;
    open_sim(CAI_EMM_CUDA_HOST);
    cuda.host_free = NULL;
    cuda.host_unregister = NULL;
    cuda.memory_free = NULL;
    make_emm();
    BAD(cai_manager_pinned_alloc(&memory, &emm, 10, 0, err), CAI_ERR_UNAVAILABLE, "host_alloc");
    BAD(cai_manager_pin(&memory, &emm, bytes, 10, 0, err), CAI_ERR_UNAVAILABLE, "pin");
    BAD(cai_manager_managed_alloc(&memory, &emm, 10, 0, err), CAI_ERR_UNAVAILABLE, "managed_alloc");
    CHECK_UINT(memory, 9);
    close_emm();
}

static void check_nothing(void)
{
    cai_manager_count count;
    memset(&count, 0x5a, sizeof count);
    memset(&emm, 0, sizeof emm);
    cai_manager_counts(&emm, NULL);
    cai_manager_counts(&emm, &count);
    CHECK_UINT(count.allocated, 0);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 0);
    CHECK_INT(cai_manager_list(NULL, NULL, 0), 0);
}

/* ------------------------------------------------------------------ handles */

/* Host memory needs no pool, and a pool that is not made is none. */
static void check_pool_not_made(void)
{
    cai_event_pool none;
    cai_memory_handle memory;
    memset(&none, 0, sizeof none);
    cai_emm_hooks_malloc(&hooks);
    GOOD(cai_manager_init(&emm, &none, &hooks, NULL, err));
    memory = get(10, CAI_STREAM_LEGACY);
    let(memory, CAI_STREAM_PER_THREAD);
    GOOD(cai_manager_destroy(&emm, err));
}

/* Handles that nobody gave: the next generation of a place, and that of an array. */
static void check_guesses(void)
{
    const int64_t extent = 8;
    cai_memory_handle memory;
    open_emm(0);
    memory = get(10, s1);
    let(memory, s1);
    memory += (uint64_t)1 << 32;
    BAD(cai_manager_free(&emm, memory, s1, err), CAI_ERR_STALE, "");
    BAD(cai_manager_retain(&emm, memory, err), CAI_ERR_STALE, "");
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, err)); /* in this place */
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 1);
    BAD(cai_manager_free(&emm, memory, s1, err), CAI_ERR_STALE, "");
    CHECK(cai_manager_pointer(&emm, memory) == NULL);
    cai_array_release(&array);
    freed(2, s1);
    close_emm();
}

/* A place whose generations are used up is not used again. */
static void check_generations(void)
{
    cai_memory_handle memory, next;
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
    BAD(cai_manager_free(&emm, memory, s1, err), CAI_ERR_STALE, "");
    let(next, s1);
    freed(3, s1);
    close_emm();
}

/* As after 2^32 - 64 objects that live: no place is left, and none can be made. */
static void check_all_places(void)
{
    cai_memory_handle memory = 9, kept;
    int32_t i;
    open_emm(0);
    kept = get(10, s1);
    for (i = 1; i < CAI_MANAGER_CHUNKS; i++) emm.chunks[i] = (struct cai_manager_slot *)list_alloc(&list_live, 1);
    emm.chunk_count = CAI_MANAGER_CHUNKS;
    emm.idle = NULL;
    list_calls = 0;
    BAD(cai_manager_alloc(&memory, &emm, 10, 0, s1, err), CAI_ERR_OUT_OF_MEMORY, "of lists");
    CHECK_UINT(memory, 9);
    CHECK_INT(list_calls, 0);
    CHECK_INT(block_live, 1); /* the hook's memory went back */
    let(kept, s1);
    freed(2, s1);
    close_emm();
}

/* ------------------------------------------------------------------ all */

#define RUN(check) (cai_test_note(#check), check) /* failures name it */

static void run_frees(void)
{
    int32_t owned;
    for (owned = 0; owned < 2; owned++) {
        RUN(check_free_and_free(owned, "context_current"));
        RUN(check_free_and_free(owned, "after stream_capture"));
        RUN(check_free_and_free(owned, "event_record"));
        RUN(check_free_and_free(owned, "after event_record"));
    }
    RUN(check_free_and_free_failing("stream_wait_event", 1));
    RUN(check_free_and_free_failing("event_record", 2));
    RUN(check_free_never(0));
    RUN(check_free_never(1));
    RUN(check_double_free());
    RUN(check_free_refused());
    RUN(check_free_per_thread());
    RUN(check_free_of_three("after stream_capture"));
    RUN(check_free_of_three("after event_record"));
    RUN(check_pin_and_free(2));
    RUN(check_pin_and_free(3));
    RUN(check_free_without_wait());
}

static void run(void)
{
    run_frees();
    RUN(check_grow_and_grow());
    RUN(check_grow_and_free());
    RUN(check_flush_and_flush());
    RUN(check_flush_and_more());
    RUN(check_scope_refused());
    RUN(check_release_captured_and_free());
    RUN(check_release_captured_first());
    RUN(check_release_captured_elsewhere());
    RUN(check_release_and_free_elsewhere());
    RUN(check_release_and_free_pinned(0));
    RUN(check_release_and_free_pinned(1));
    RUN(check_reset_after_captured());
    RUN(check_release_captured_threads());
    RUN(check_release_captured_between());
    RUN(check_flush_without_wait());
    RUN(check_flush_in_capture());
    RUN(check_flush_after_everything());
    RUN(check_release_without_thread());
    RUN(check_release_beside_capture(CAI_SYNC_NONE, 0));
    RUN(check_release_beside_capture(CAI_SYNC_NONE, 1));
    RUN(check_release_beside_capture(CAI_SYNC_STREAM, 0));
    RUN(check_release_without_order());
    RUN(check_flush_pinned());
    RUN(check_release_without_manager());
    RUN(check_no_thread());
    RUN(check_free_at_end());
    RUN(check_free_of_other_context());
    RUN(check_deferred_plain());
    RUN(check_deferred_elsewhere(0));
    RUN(check_deferred_elsewhere(1));
    RUN(check_broken(0));
    RUN(check_broken(1));
    RUN(check_broken_unknown());
    RUN(check_contexts());
    RUN(check_tables());
    RUN(check_half_pairs());
    RUN(check_nothing());
    RUN(check_pool_not_made());
    RUN(check_guesses());
    RUN(check_generations());
    RUN(check_all_places());
}

CAI_TEST_MAIN(run)
