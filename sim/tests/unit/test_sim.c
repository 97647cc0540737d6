/* test_sim.c - the simulated CUDA itself: each rule of CUDA that it keeps, and its own services.
 * SPDX-License-Identifier: MIT
 *
 * What is asked of "CUDA" goes through the table (cuda->...), the test's own part through cai_sim_.... */
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

#if !defined(CAI_SIM_NO_THREADS) && !defined(_WIN32)
#include <pthread.h>
#include <sched.h>
#endif

static cai_sim *sim;
static const cai_cuda *cuda;
static uint64_t c1, c2;   /* the primary contexts of two devices */
static char order[64];    /* the letters of the functions that ran */

static void letter(void *x)
{
    const size_t length = strlen(order);
    order[length] = *(const char *)x;
    order[length + 1] = 0;
}

/* Of calls on handles that are dead or none, the tests look at the answers. */
static void go_on(void *context, const cai_sim_undefined *what)
{
    (void)context;
    (void)what;
}

static void start(const char *note)
{
    cai_test_note(note);
    sim = cai_sim_create(2);
    if (sim == NULL) exit(2);
    cai_sim_on_undefined(sim, go_on, NULL);
    cuda = cai_sim_cuda(sim);
    c1 = cai_sim_primary_retain(sim, 0);
    c2 = cai_sim_primary_retain(sim, 1);
    order[0] = 0;
}

/* A simulation with these options, whatever the environment says; no primary context is retained. */
static void start_with(const char *note, uint32_t options)
{
    start(note);
    cai_sim_primary_release(sim, 0);
    cai_sim_primary_release(sim, 1);
    cai_sim_set_options(sim, options);
}

/* One option off, in a test of what it turns off. */
static void without(uint32_t option)
{
    cai_sim_set_options(sim, cai_sim_options(sim) & ~option);
}

static void finish(void)
{
    cai_sim_destroy(sim);
    cai_test_note("");
}

/* Launches a function that writes a letter to `order`. */
static int32_t launch(uint64_t stream, const char *name)
{
    static char letters[26];
    char *place = &letters[name[0] - 'A'];
    *place = name[0];
    return cai_sim_launch(sim, stream, name, letter, place, NULL, 0);
}

static uint64_t allocate_async(uint64_t bytes, uint64_t stream)
{
    uint64_t pointer = 0;
    CHECK_INT(cuda->memory_alloc_async(sim, &pointer, bytes, stream), 0);
    return pointer;
}

static uint64_t event(void)
{
    uint64_t made = 0;
    CHECK_INT(cuda->event_create(sim, &made), 0);
    return made;
}

static uint64_t stream_on(uint64_t context, int32_t nonblocking)
{
    uint64_t made;
    const uint64_t before = cai_sim_current(sim);
    CHECK_INT(cai_sim_set_context(sim, context), 0);
    made = cai_sim_stream_create(sim, nonblocking);
    CHECK(made > 2);
    CHECK_INT(cai_sim_set_context(sim, before), 0);
    return made;
}

static void expect_log(const char *text)
{
    CHECK_STR(cai_sim_log(sim), text);
    cai_sim_log_clear(sim);
}

static void expect_leaks(int32_t count, const char *text)
{
    char got[200];
    CHECK_INT(cai_sim_leaks(sim, got, sizeof got), count);
    CHECK_STR(got, text);
}

/* Each call about allocation, on the legacy stream. */
enum { UUID_CALL = 13, MEMORY_CALLS = 20 };

static int32_t memory_call(int32_t which, uint64_t pointer)
{
    static unsigned char handle[64];
    static const cai_cuda_copy one_row = {8, 16, 8, 8, 1, 1, 8, 1, 1};
    uint64_t out, other;
    switch (which) {
    case 0: return cuda->memory_alloc(sim, &out, 8);
    case 1: return cuda->memory_free(sim, pointer);
    case 2: return cuda->host_alloc(sim, &out, 8, 0);
    case 3: return cuda->host_free(sim, pointer);
    case 4: return cuda->host_register(sim, (uint64_t)(uintptr_t)order, 8, 0);
    case 5: return cuda->host_unregister(sim, pointer);
    case 6: return cuda->managed_alloc(sim, &out, 8, 1);
    case 7: return cuda->memory_alloc_async(sim, &out, 8, 1);
    case 8: return cuda->memory_free_async(sim, pointer, 1);
    case 9: return cuda->memory_info(sim, &out, &other);
    case 10: return cuda->ipc_export(sim, pointer, handle);
    case 11: return cuda->ipc_open(sim, handle, &out);
    case 12: return cuda->ipc_close(sim, pointer);
    case UUID_CALL: return cuda->device_uuid(sim, 0, handle);
    case 14: return cuda->copy_async(sim, pointer, pointer + 8, 8, 1);
    case 15: return cuda->copy_3d_async(sim, &one_row, 1);
    case 16: return cuda->set_async(sim, pointer, 7, 8, 1);
    case 17: return cuda->set_2d_async(sim, pointer, 8, 7, 8, 1, 1);
    case 18: return cuda->copy_peer_async(sim, pointer, 7, pointer + 8, 7, 8, 1);
    default: return cuda->copy_3d_peer_async(sim, &one_row, 7, 7, 1);
    }
}

static int32_t capture_status(uint64_t stream)
{
    cai_cuda_capture capture;
    const int32_t error = cuda->stream_capture(sim, stream, &capture);
    return error ? error : capture.status;
}

/* ------------------------------------------------------------------ options */

/* Memory of each kind that a free of the table takes, used by work that is queued on two devices. */
static void free_used_memory(uint32_t option, const char *expected)
{
    uint64_t x, m[3], host = (uint64_t)(uintptr_t)order;
    int32_t i;
    start_with(option ? "a free of used memory" : "a free of used memory: kind", option);
    x = stream_on(c2, 1);
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->memory_alloc(sim, &m[0], 16), 0);
    CHECK_INT(cuda->managed_alloc(sim, &m[1], 16, 1), 0);
    CHECK_INT(cuda->host_alloc(sim, &m[2], 16, 0), 0);
    CHECK_INT(cuda->host_register(sim, host, 16, 2), 0);
    for (i = 0; i < 3; i++) {
        order[0] = 0;
        CHECK_INT(launch(2, "A"), 0);
        cai_sim_set_context(sim, c2);
        CHECK_INT(launch(x, "P"), 0);
        cai_sim_set_context(sim, c1);
        CHECK_INT(i == 2 ? cuda->host_free(sim, m[i]) : cuda->memory_free(sim, m[i]), 0);
        CHECK_STR(order, expected);
        cai_sim_run(sim);
    }
    order[0] = 0;
    launch(2, "A");
    CHECK_INT(cuda->host_unregister(sim, host), 0); /* never waits */
    CHECK_STR(order, "");
    finish();
}

static void test_option_free(void)
{
    free_used_memory(0, "AP");
    free_used_memory(CAI_SIM_FREE_OWN_CONTEXT, "A");
    free_used_memory(CAI_SIM_FREE_RETURNS, "");
    free_used_memory(CAI_SIM_FREE_RETURNS | CAI_SIM_FREE_OWN_CONTEXT, "");
    start_with("work on memory whose free did not wait: 700", CAI_SIM_FREE_RETURNS);
    cai_sim_set_context(sim, c1);
    {
        const uint64_t m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
        const cai_sim_access write = cai_sim_writes(m, 16);
        CHECK_INT(cai_sim_launch(sim, 1, "late", NULL, NULL, &write, 1), 0);
        CHECK_INT(cuda->memory_free(sim, m), 0);
        CHECK_INT(cuda->context_synchronize(sim), 700);
    }
    finish();
}

static uint64_t primary_of(int32_t device)
{
    uint64_t context = 99;
    CHECK_INT(cuda->device_context(sim, device, &context), 0);
    return context;
}

static void test_option_primary(void)
{
    start_with("primary contexts: there at once", 0);
    CHECK_UINT(primary_of(1), c2);
    CHECK_INT(cuda->context_push(sim, c2), 0);
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_UINT(cai_sim_primary_retain(sim, 1), c2);
    CHECK_INT(cai_sim_primary_release(sim, 1), 0); /* the runtime has one more */
    CHECK_INT(cai_sim_primary_release(sim, 1), 201);
    CHECK_UINT(primary_of(1), c2);
    CHECK_UINT(cai_sim_primary_retain(sim, 2), 0);
    CHECK_UINT(cai_sim_primary_retain(sim, -1), 0);
    CHECK_INT(cai_sim_primary_release(sim, 2), 101);
    CHECK_INT(cai_sim_primary_release(sim, -1), 101);
    finish();
}

static void test_option_primary_inactive(void)
{
    uint64_t s, e, m;
    cai_cuda_pointer info;
    start_with("primary contexts: not at first", CAI_SIM_PRIMARY_INACTIVE);
    CHECK_UINT(primary_of(1), 0);
    CHECK_UINT(cai_sim_primary(sim, 1), c2);
    CHECK_INT(cuda->context_push(sim, c2), 0); /* as an H100 does */
    CHECK_INT(cai_sim_context_synchronize(sim), 709);
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_INT(cai_sim_primary_release(sim, 1), 201);
    CHECK_UINT(cai_sim_primary_retain(sim, 1), c2);
    CHECK_UINT(cai_sim_primary_retain(sim, 1), c2);
    CHECK_INT(cai_sim_primary_release(sim, 1), 0);
    CHECK_UINT(primary_of(1), c2);
    CHECK_UINT(primary_of(0), 0);
    CHECK_INT(cuda->context_push(sim, c2), 0);
    s = cai_sim_stream_create(sim, 0);
    e = event();
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    CHECK_INT(cai_sim_primary_release(sim, 1), 0); /* the last one: not popped, but gone */
    CHECK_UINT(primary_of(1), 0);
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(cuda->context_synchronize(sim), 709);
    CHECK_INT(cuda->stream_synchronize(sim, s), 709);
    CHECK_INT(cuda->event_query(sim, e), 709);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    CHECK_INT(info.memory, CAI_MEMORY_HOST);
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_INT(cuda->context_push(sim, c2), 0); /* as an H100 does */
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_INT(cai_sim_leaks(sim, NULL, 0), 0);
    CHECK_UINT(cai_sim_primary_retain(sim, 1), c2); /* again, and empty */
    CHECK_INT(cuda->context_push(sim, c2), 0);
    CHECK_INT(cuda->context_synchronize(sim), 0);
    CHECK_INT(cuda->stream_synchronize(sim, s), 709);
    finish();
}

static void test_option_primary_held(void)
{
    start_with("primary contexts: the runtime holds what it made current", CAI_SIM_PRIMARY_INACTIVE);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    CHECK_UINT(primary_of(1), c2);
    cai_sim_set_context(sim, 0);
    CHECK_UINT(cai_sim_primary_retain(sim, 1), c2);
    CHECK_INT(cai_sim_primary_release(sim, 1), 0);
    CHECK_UINT(primary_of(1), c2);
    CHECK_UINT(primary_of(0), 0);
    CHECK(cai_sim_stream_create(sim, 0) != 0); /* as the runtime does: on device 0 */
    CHECK_UINT(primary_of(0), c1);
    CHECK_INT(cai_sim_context_destroy(sim, c1), 0);
    CHECK_UINT(primary_of(0), c1);
    cai_sim_set_options(sim, 0);
    CHECK_UINT(cai_sim_options(sim), 0);
    cai_sim_set_options(sim, CAI_SIM_PRIMARY_INACTIVE); /* what is current stays */
    CHECK_UINT(primary_of(0), c1);
    CHECK_UINT(primary_of(1), 0);
    finish();
}

/* The queries that need a current context, on a host thread without one. */
static void expect_queries(uint64_t pinned, int32_t error, int32_t memory, uint32_t flags)
{
    uint64_t x = 99, y = 99;
    int32_t device = 99;
    cai_cuda_pointer info;
    cai_cuda_capture capture;
    CHECK_INT(cuda->context_device(sim, &device), error);
    CHECK_INT(device, 0);
    CHECK_INT(cuda->memory_info(sim, &x, &y), error);
    CHECK(x == 0 && y == 0);
    CHECK_INT(cuda->pointer_range(sim, pinned, &x, &y), error);
    CHECK(x == 0 && y == 0);
    CHECK_INT(cuda->stream_context(sim, 1, &x), error);
    CHECK_INT(cuda->stream_id(sim, 2, &y), error);
    CHECK(x == 0 && y == 0);
    CHECK_INT(cuda->stream_capture(sim, 2, &capture), error);
    CHECK_INT(capture.status, CAI_CAPTURE_NONE);
    CHECK_INT(cuda->event_create(sim, &x), 201); /* no query */
    CHECK_INT(cuda->context_synchronize(sim), 201);
    CHECK_INT(cuda->pointer_info(sim, pinned, &info), 0);
    CHECK_INT(info.memory, memory);
    CHECK_UINT(info.flags, flags);
    CHECK_UINT(info.device_pointer, memory == CAI_MEMORY_HOST || flags ? 0 : pinned);
}

static void test_option_need_context(void)
{
    static const uint32_t options[] = {0, CAI_SIM_NEED_CONTEXT, CAI_SIM_NEED_CONTEXT | CAI_SIM_ZERO_ANSWERS};
    uint64_t pinned;
    cai_cuda_pointer info;
    int32_t i;
    for (i = 0; i < 3; i++) {
        start_with("queries without a current context", options[i]);
        cai_sim_set_context(sim, c1);
        pinned = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 16);
        CHECK_INT(cuda->pointer_info(sim, pinned, &info), 0);
        CHECK(info.flags == 0 && info.device_pointer == pinned);
        cai_sim_set_context(sim, 0);
        if (i == 0) expect_queries(pinned, 201, CAI_MEMORY_PINNED, 0);
        else if (i == 1) expect_queries(pinned, 201, CAI_MEMORY_PINNED, CAI_POINTER_NO_CONTEXT);
        else expect_queries(pinned, 0, CAI_MEMORY_HOST, 0);
        cai_sim_set_context(sim, c1);
        CHECK_INT(cuda->pointer_info(sim, pinned, &info), 0);
        CHECK(info.flags == 0 && info.device_pointer == pinned);
        finish();
    }
}

static void test_option_handles(void)
{
    uint64_t s, e, x;
    int32_t on;
    for (on = 0; on < 2; on++) {
        const int32_t error = on ? 201 : 0;
        start_with("handles without a current context", on ? (uint32_t)CAI_SIM_HANDLES_NEED_CONTEXT : 0);
        s = stream_on(c1, 1);
        cai_sim_set_context(sim, c1);
        e = event();
        cai_sim_set_context(sim, 0);
        CHECK_INT(cuda->event_record(sim, e, s), error);
        CHECK_INT(cuda->stream_wait_event(sim, s, e), error);
        CHECK_INT(cuda->event_synchronize(sim, e), error);
        CHECK_INT(cuda->stream_synchronize(sim, s), error);
        CHECK_INT(cuda->event_query(sim, e), 0); /* 201 is not among its errors */
        CHECK_INT(cuda->stream_context(sim, s, &x), 0);
        CHECK_INT(cuda->stream_id(sim, s, &x), 0);
        CHECK_INT(cuda->event_destroy(sim, e), error);
        cai_sim_set_context(sim, c2); /* whichever one */
        CHECK_INT(cuda->stream_synchronize(sim, s), 0);
        CHECK_INT(cuda->event_destroy(sim, e), on ? 0 : 400);
        finish();
    }
}

static void test_option_segments(void)
{
    uint64_t m, base, size;
    int32_t on;
    for (on = 0; on < 2; on++) {
        start_with("a mapping in segments", on ? (uint32_t)CAI_SIM_SEGMENTS : 0);
        cai_sim_set_context(sim, c1);
        m = cai_sim_alloc(sim, CAI_SIM_MEM_VIRTUAL, 1000);
        CHECK_INT(cuda->pointer_range(sim, m + 999, &base, &size), 0);
        CHECK(base == m && size == 1000); /* one segment of 2 MiB holds it all */
        cai_sim_set_segment(sim, m + 5, 256);
        CHECK_INT(cuda->pointer_range(sim, m + 255, &base, &size), 0);
        CHECK(base == m && size == (on ? 256u : 1000u));
        CHECK_INT(cuda->pointer_range(sim, m + 256, &base, &size), 0);
        CHECK(base == (on ? m + 256 : m) && size == (on ? 256u : 1000u));
        CHECK_INT(cuda->pointer_range(sim, m + 999, &base, &size), 0);
        CHECK(base == (on ? m + 768 : m) && size == (on ? 232u : 1000u));
        m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1000); /* no mapping */
        cai_sim_set_segment(sim, m, 256);
        CHECK_INT(cuda->pointer_range(sim, m + 999, &base, &size), 0);
        CHECK(base == m && size == 1000);
        cai_sim_set_segment(sim, 1, 256); /* of nothing: nothing */
        finish();
    }
}

static void test_option_one_thread(void)
{
    uint64_t green;
    int32_t on;
    for (on = 0; on < 2; on++) {
        const int32_t error = on ? CAI_SIM_ERROR_CONTEXT_IN_USE : 0;
        start_with("a context on two host threads", on ? (uint32_t)CAI_SIM_ONE_THREAD_CONTEXTS : 0);
        green = cai_sim_context_create(sim, 0);
        CHECK_INT(cuda->context_push(sim, green), 0);
        CHECK_INT(cuda->context_push(sim, green), 0); /* twice on one thread */
        cai_sim_host_thread(sim, 5);
        CHECK_INT(cuda->context_push(sim, green), error);
        CHECK_INT(cai_sim_set_context(sim, green), error);
        CHECK_INT(cuda->context_push(sim, c1), 0);
        CHECK_INT(cai_sim_set_context(sim, green), error);
        CHECK_UINT(cai_sim_current(sim), on ? c1 : green);
        cai_sim_set_context(sim, c1);
        cai_sim_host_thread(sim, 0);
        CHECK_INT(cuda->context_push(sim, c1), 0); /* primary ones are current on many; green is not, here */
        cai_sim_host_thread(sim, 5);
        CHECK_INT(cuda->context_push(sim, green), 0);
        finish();
    }
}

static uint64_t answered_thread(void)
{
    uint64_t thread = 0;
    CHECK_INT(cuda->host_thread(sim, &thread), 0);
    return thread;
}

static void test_option_reuse_threads(void)
{
    int32_t on;
    for (on = 0; on < 2; on++) {
        start_with("numbers of host threads", on ? (uint32_t)CAI_SIM_REUSE : 0);
        cai_sim_host_thread(sim, 5);
        CHECK_INT(cuda->context_push(sim, c1), 0);
        CHECK_INT(launch(2, "A"), 0);
        CHECK_UINT(answered_thread(), 5);
        cai_sim_host_thread(sim, 6);
        CHECK_UINT(answered_thread(), 6);
        cai_sim_host_thread_end(sim, 0); /* nobody */
        cai_sim_host_thread_end(sim, 5);
        CHECK_UINT(answered_thread(), 6);
        cai_sim_host_thread(sim, 7);
        CHECK_UINT(answered_thread(), on ? 5u : 7u);
        CHECK_UINT(cai_sim_current(sim), 0);
        CHECK_INT(cuda->context_push(sim, c1), 0);
        CHECK_INT(cuda->stream_synchronize(sim, 2), 0); /* another stream than that of 5 */
        CHECK_STR(order, "");
        CHECK_INT(cai_sim_pending(sim), 1);
        CHECK_INT(cuda->context_pop(sim), 0);
        cai_sim_host_thread(sim, 8); /* each number once */
        CHECK_UINT(answered_thread(), 8);
        cai_sim_host_thread_end(sim, 8);
        CHECK(answered_thread() >> 32); /* itself again */
        CHECK_INT(cai_sim_run(sim), 1);
        CHECK_INT(cai_sim_leaks(sim, NULL, 0), 1); /* what 5 did not pop */
        finish();
    }
}

static void reuse_handles(int32_t on)
{
    cai_sim_operation op;
    uint64_t s = stream_on(c1, 0), other;
    CHECK_INT(launch(s, "A"), 0);
    cai_sim_stream_destroy(sim, s);
    CHECK((stream_on(c1, 0) == s) == on); /* though its work has not run */
    other = event();
    CHECK_INT(cuda->event_destroy(sim, other), 0);
    CHECK_INT(cuda->event_record(sim, event(), 1), 0);
    CHECK_INT(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op), 1);
    CHECK((op.event == other) == on);
    CHECK_INT(op.event_number, 2); /* of the handle's present owner */
}

/* m[1] is freed, and m[2] is at its address if addresses are used again. */
static void reuse_addresses(int32_t on, uint64_t m[3])
{
    cai_sim_access access;
    uint64_t other;
    m[0] = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 300);
    m[1] = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 300);
    memset(cai_sim_bytes(sim, m[1]), 7, 300);
    access = cai_sim_reads(m[1] + 8, 8);
    CHECK_INT(cai_sim_host_access(sim, "early", &access, 1), 0);
    CHECK_INT(cai_sim_free(sim, m[0]) | cai_sim_free(sim, m[1]), 0);
    other = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 301); /* too large for either */
    CHECK(other != m[0] && other != m[1]);
    m[2] = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 100);
    CHECK((m[2] == m[1]) == on); /* freed last */
    CHECK_INT(*(char *)cai_sim_bytes(sim, m[2]), 0);
    CHECK(cai_sim_bytes(sim, m[1] + 100) == NULL);
    CHECK_INT(cai_sim_memory_at(sim, m[1], NULL), on ? 4 : 2);
}

/* What was done to an address before it was used again, and what is done to it late. */
static void reuse_accesses(int32_t on, const uint64_t m[3])
{
    uint64_t id = cai_sim_operation_count(sim);
    cai_sim_access access;
    cai_sim_operation op;
    char name[40];
    while (cai_sim_operation_get(sim, id, &op) && op.kind != CAI_SIM_OP_HOST_ACCESS) id--;
    cai_sim_access_name(sim, &op.accesses[0], name, sizeof name);
    CHECK_STR(name, "m2[8, 16)"); /* of that time, not of now */
    access = cai_sim_writes(m[1], 16);
    CHECK_INT(cai_sim_launch(sim, 1, "late", NULL, NULL, &access, 1), 0);
    CHECK_INT(cuda->context_synchronize(sim), on ? 0 : 700);
    access = cai_sim_writes(m[1] + 104, 16);
    CHECK_INT(cai_sim_launch(sim, 1, "late", NULL, NULL, &access, 1), on ? 0 : 700);
    CHECK_INT(cuda->context_synchronize(sim), 700); /* where no new allocation covers it */
}

static void test_option_reuse(void)
{
    uint64_t m[3];
    int32_t on;
    for (on = 0; on < 2; on++) {
        start_with("handles and addresses", on ? (uint32_t)CAI_SIM_REUSE : 0);
        cai_sim_set_context(sim, c1);
        reuse_handles(on);
        reuse_addresses(on, m);
        reuse_accesses(on, m);
        finish();
    }
}

static void test_option_reuse_in_stream_order(void)
{
    uint64_t m[2];
    char name[40];
    start_with("an address comes back when the free has run", CAI_SIM_REUSE);
    cai_sim_set_context(sim, c1);
    m[0] = allocate_async(64, 1);
    CHECK_INT(cuda->memory_free_async(sim, m[0], 1), 0);
    m[1] = allocate_async(64, 1);
    CHECK(m[1] != m[0]);
    CHECK_INT(cuda->context_synchronize(sim), 0);
    m[1] = allocate_async(64, 1);
    CHECK_UINT(m[1], m[0]);
    CHECK_INT(cai_sim_leaks(sim, name, sizeof name), 2);
    CHECK_STR(name, "allocations: m2 m3");
    finish();
}

/* The contents that memory had at the end count, whether or not its address was used again. */
static void test_option_reuse_fingerprint(void)
{
    uint64_t prints[2];
    int32_t on;
    for (on = 0; on < 2; on++) {
        uint64_t m;
        start_with("the fingerprint of memory used again", on ? (uint32_t)CAI_SIM_REUSE : 0);
        cai_sim_set_context(sim, c1);
        m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
        memset(cai_sim_bytes(sim, m), 7, 64);
        cai_sim_free(sim, m);
        m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
        memset(cai_sim_bytes(sim, m), 9, 8);
        prints[on] = cai_sim_fingerprint(sim);
        finish();
    }
    CHECK_UINT(prints[0], prints[1]);
}

static void test_option_progress(void)
{
    uint64_t s, t, e;
    int32_t on, asked;
    for (on = 0; on < 2; on++) {
        start_with("a loop that polls", on ? (uint32_t)CAI_SIM_PROGRESS : 0);
        cai_sim_set_context(sim, c1);
        s = stream_on(c1, 1);
        t = stream_on(c1, 1);
        e = event();
        launch(t, "B");
        launch(s, "A");
        launch(s, "C");
        CHECK_INT(cuda->event_record(sim, e, s), 0);
        launch(s, "D");
        for (asked = 1; asked < 9 && cuda->event_query(sim, e) == 600; asked++)
            CHECK_INT(cai_sim_pending(sim), on ? 5 - asked : 5);
        CHECK_INT(asked, on ? 4 : 9);
        CHECK_STR(order, on ? "BAC" : "");
        CHECK_INT(cuda->event_query(sim, e), on ? 0 : 600);
        CHECK_INT(cai_sim_pending(sim), on ? 1 : 5); /* an event that is ready runs nothing */
        finish();
    }
}

static void test_peer_access(void)
{
    uint64_t m, pinned;
    cai_sim_access access;
    cai_cuda_pointer info;
    start("peer access");
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    pinned = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 16);
    access = cai_sim_reads(m, 16);
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    CHECK(info.flags == 0 && info.device_pointer == m);
    CHECK_INT(cai_sim_launch(sim, 1, "peer", NULL, NULL, &access, 1), 0);
    CHECK_INT(cuda->context_synchronize(sim), 0);
    cai_sim_set_peer_access(sim, 1, 0, 0);
    cai_sim_set_peer_access(sim, 2, 0, 0); /* no such devices: nothing */
    cai_sim_set_peer_access(sim, 0, 2, 0);
    cai_sim_set_peer_access(sim, -1, 0, 0);
    cai_sim_set_peer_access(sim, 0, -1, 0);
    cai_sim_set_peer_access(sim, 0, 0, 0); /* a device has access to its own */
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    CHECK_UINT(info.flags, CAI_POINTER_NO_CONTEXT);
    CHECK(info.device_pointer == 0 && info.device == 0 && info.context == c1);
    CHECK_INT(cuda->pointer_info(sim, pinned, &info), 0);
    CHECK(info.flags == 0 && info.device_pointer == pinned);
    cai_sim_set_context(sim, c1); /* on the device itself, as ever */
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    CHECK(info.flags == 0 && info.device_pointer == m);
    CHECK_INT(cai_sim_launch(sim, 1, "own", NULL, NULL, &access, 1), 0);
    CHECK_INT(cuda->context_synchronize(sim), 0);
    cai_sim_set_context(sim, c2);
    cai_sim_set_peer_access(sim, 1, 0, 1);
    CHECK_INT(cai_sim_launch(sim, 1, "peer", NULL, NULL, &access, 1), 0);
    CHECK_INT(cuda->context_synchronize(sim), 0);
    cai_sim_set_peer_access(sim, 1, 0, 0);
    CHECK_INT(cai_sim_launch(sim, 1, "peer", NULL, NULL, &access, 1), 0);
    CHECK_INT(cuda->context_synchronize(sim), 700);
    finish();
}

/* ------------------------------------------------------------------ making, contexts */

static void test_making(void)
{
    CHECK(cai_sim_create(0) == NULL);
    CHECK(cai_sim_create(-1) == NULL);
    CHECK(cai_sim_create(CAI_SIM_DEVICES + 1) == NULL);
    cai_sim_destroy(NULL);
    start("making");
    CHECK_UINT(cuda->struct_size, sizeof(cai_cuda));
    CHECK_INT(cuda->version, CAI_CUDA_VERSION);
    CHECK_UINT(cuda->flags, 0);
    CHECK(cuda->self == sim);
    CHECK(cuda->context_current && cuda->context_push && cuda->context_pop && cuda->context_synchronize);
    CHECK(cuda->context_device && cuda->device_context && cuda->stream_context && cuda->stream_capture);
    CHECK(cuda->stream_id && cuda->stream_wait_event && cuda->stream_synchronize && cuda->event_create);
    CHECK(cuda->event_destroy && cuda->event_record && cuda->event_query && cuda->event_synchronize);
    CHECK(cuda->capture_mode && cuda->pointer_info && cuda->pointer_range && cuda->device_attribute);
    CHECK(cuda->memory_alloc && cuda->memory_free && cuda->memory_alloc_async && cuda->memory_free_async);
    CHECK(cuda->host_alloc && cuda->host_free && cuda->host_register && cuda->host_unregister);
    CHECK(cuda->managed_alloc && cuda->memory_info && cuda->ipc_export && cuda->ipc_open && cuda->ipc_close);
    CHECK(cuda->host_thread != NULL && cuda->device_uuid != NULL);
    CHECK(cuda->copy_async && cuda->copy_3d_async && cuda->set_async && cuda->set_2d_async);
    CHECK(cuda->copy_peer_async && cuda->copy_3d_peer_async);
    CHECK_UINT(cai_sim_primary(sim, 2), 0);
    CHECK_UINT(cai_sim_primary(sim, -1), 0);
    expect_leaks(0, "");
    expect_log("");
    finish();
}

static void test_contexts(void)
{
    uint64_t context = 99, third;
    int32_t device = 9;
    start("contexts: current, push, pop");
    CHECK_INT(cuda->context_current(sim, &context), 0); /* (D) none is no error */
    CHECK_UINT(context, 0);
    CHECK_INT(cuda->context_pop(sim), 201);
    CHECK_INT(cuda->context_device(sim, &device), 201);
    CHECK_INT(cuda->context_synchronize(sim), 201);
    CHECK_INT(cuda->event_create(sim, &context), 201);
    CHECK_INT(cuda->context_push(sim, 77), 201);
    CHECK_INT(cuda->context_push(sim, 0), 201);
    CHECK_INT(cuda->context_push(sim, c2), 0);
    CHECK_INT(cuda->context_push(sim, c1), 0);
    CHECK_INT(cuda->context_current(sim, &context), 0);
    CHECK_UINT(context, c1);
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_UINT(cai_sim_current(sim), c2);
    CHECK_INT(cuda->context_device(sim, &device), 0);
    CHECK_INT(device, 1);
    CHECK_INT(cuda->device_context(sim, 0, &context), 0);
    CHECK_UINT(context, c1);
    CHECK_INT(cuda->device_context(sim, 2, &context), 101);
    CHECK_UINT(context, 0);
    CHECK_INT(cuda->device_context(sim, -1, &context), 101);
    expect_leaks(1, "context stack: 1");
    third = cai_sim_context_create(sim, 1);
    CHECK_UINT(cai_sim_current(sim), c2); /* not made current */
    CHECK_INT(cai_sim_set_context(sim, third), 0);
    CHECK_INT(cuda->context_device(sim, &device), 0);
    CHECK_INT(device, 1);
    expect_leaks(2, "contexts: c3; context stack: 1"); /* the top was replaced, it is still a pushed one */
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_UINT(cai_sim_current(sim), 0);
    CHECK_INT(cai_sim_context_destroy(sim, third), 0);
    CHECK_INT(cai_sim_context_destroy(sim, third), 201);
    CHECK_INT(cuda->context_push(sim, third), 201); /* (D) */
    CHECK_INT(cai_sim_set_context(sim, third), 201);
    CHECK_UINT(cai_sim_context_create(sim, 2), 0);
    CHECK_INT(cai_sim_clear_error(sim), 101);
    expect_leaks(0, "");
    finish();
    start("contexts: a pop too many");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cuda->context_pop(sim), 0);
    expect_leaks(1, "context stack: 1");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    CHECK_UINT(cai_sim_current(sim), 0);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    finish();
    start("contexts: the runtime makes that of device 0 current");
    CHECK(cai_sim_stream_create(sim, 0) != 0);
    CHECK_UINT(cai_sim_current(sim), c1);
    cai_sim_host_thread(sim, 7); /* on each thread anew */
    CHECK_UINT(cai_sim_current(sim), 0);
    finish();
}

static void test_context_destroyed(void)
{
    uint64_t context, stream, e, m, p, out;
    int32_t device;
    start("a destroyed context");
    without(CAI_SIM_ONE_THREAD_CONTEXTS); /* it is current on two */
    context = cai_sim_context_create(sim, 0);
    cai_sim_set_context(sim, context);
    stream = cai_sim_stream_create(sim, 0);
    e = event();
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    p = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 64);
    CHECK_INT(launch(stream, "A"), 0);
    cai_sim_set_context(sim, c2);
    CHECK_INT(launch(1, "B"), 0);
    cai_sim_set_context(sim, context);
    CHECK_INT(cai_sim_stream_destroy(sim, cai_sim_stream_create(sim, 0)), 0);
    CHECK_INT(cuda->event_destroy(sim, event()), 0);
    CHECK_INT(cai_sim_capture_begin(sim, 2, CAI_SIM_MODE_GLOBAL), 0);
    CHECK_INT(cuda->event_record(sim, e, stream), 0);
    cai_sim_host_thread(sim, 5);
    cai_sim_set_context(sim, context); /* current on two threads */
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_sim_context_destroy(sim, context), 0);
    CHECK_UINT(cai_sim_current(sim), 0); /* (D) popped here */
    CHECK_INT(cai_sim_pending(sim), 1);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_STR(order, "B"); /* what was queued in it does not run */
    CHECK_INT(cuda->event_query(sim, e), 709);
    CHECK_INT(cuda->event_destroy(sim, e), 709);
    CHECK_INT(cuda->stream_context(sim, stream, &out), 709);
    CHECK_INT(cuda->stream_synchronize(sim, stream), 709);
    CHECK(cai_sim_bytes(sim, m) == NULL);
    CHECK(cai_sim_bytes(sim, p) != NULL); /* (D) pool memory has no context */
    CHECK_INT(cai_sim_free(sim, p), 0);
    cai_sim_set_context(sim, 0); /* cai_sim_free is of the runtime */
    cai_sim_host_thread(sim, 5);
    CHECK_INT(cuda->context_current(sim, &out), 0);
    CHECK_UINT(out, context); /* (D) it stays current elsewhere, and is dead */
    CHECK_INT(cuda->context_device(sim, &device), 709);
    CHECK_INT(cuda->event_create(sim, &out), 709);
    CHECK_INT(cuda->stream_context(sim, 1, &out), 709);
    CHECK_UINT(cai_sim_stream_create(sim, 0), 0);
    CHECK_INT(cai_sim_last_error(sim), 709);
    expect_leaks(0, "");
    cai_sim_set_device_error(sim, 0, 719); /* a dead context has none */
    cai_sim_set_device_error(sim, 5, 719);
    CHECK_INT(cuda->event_create(sim, &out), 709);
    finish();
}

static void test_primary_reset(void)
{
    uint64_t stream, e;
    start("a primary context is reset");
    stream = cai_sim_stream_create(sim, 0);
    e = event();
    cai_sim_set_device_error(sim, 0, 719);
    CHECK_INT(cai_sim_context_destroy(sim, c1), 0);
    CHECK_UINT(cai_sim_current(sim), c1);
    CHECK_INT(cuda->stream_synchronize(sim, stream), 709);
    CHECK_INT(cuda->event_query(sim, e), 709);
    CHECK_INT(cuda->event_create(sim, &e), 0); /* it works again, and its error is gone */
    CHECK_INT(cuda->event_destroy(sim, e), 0);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 0);
    expect_leaks(0, "");
    finish();
}

/* ------------------------------------------------------------------ streams */

static void test_streams(void)
{
    uint64_t s, t, out, id1, id2;
    start("streams");
    s = stream_on(c1, 0);
    t = stream_on(c2, 1);
    CHECK_INT(cuda->stream_context(sim, t, &out), 0);
    CHECK_UINT(out, c2);
    CHECK_INT(cuda->stream_context(sim, 1, &out), 201); /* (D) relative to the current context */
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->stream_context(sim, 1, &out), 0);
    CHECK_UINT(out, c2);
    CHECK_INT(cuda->stream_context(sim, 2, &out), 0);
    CHECK_UINT(out, c2);
    CHECK_INT(cuda->stream_context(sim, 0, &out), 400);
    CHECK_INT(cuda->stream_context(sim, 3, &out), 400); /* W35: a handle, and an unknown one */
    CHECK_INT(cuda->stream_context(sim, UINT64_MAX, &out), 400);
    CHECK_INT(cuda->stream_synchronize(sim, s + 1), 400);
    CHECK_INT(launch(s, "A"), 400); /* (D) not the current context */
    CHECK_INT(cai_sim_clear_error(sim), 400);
    CHECK_INT(cai_sim_last_error(sim), 0);
    cai_sim_set_context(sim, c1);
    CHECK_INT(launch(s, "A"), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s), 0); /* (D) what it has queued is done all the same */
    CHECK_INT(cai_sim_stream_destroy(sim, s), 400);
    CHECK_INT(cai_sim_stream_destroy(sim, 1), 400);
    CHECK_INT(cai_sim_stream_destroy(sim, 2), 400);
    CHECK_INT(cuda->stream_context(sim, s, &out), 400);
    CHECK_INT(launch(s, "B"), 400);
    CHECK_INT(cai_sim_step(sim, s), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_STR(order, "A");
    CHECK_INT(cuda->stream_id(sim, 1, &id1), 0); /* default streams have ids, too */
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->stream_id(sim, 1, &id2), 0);
    CHECK(id1 != id2);
    CHECK_INT(cuda->stream_id(sim, 2, &id1), 0);
    cai_sim_host_thread(sim, 3);
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->stream_id(sim, 2, &id2), 0);
    CHECK(id1 != id2);
    finish();
}

static void test_recycling(void)
{
    uint64_t s, t, u, e, f, id1, id2;
    start("R85, W39: handles that come back");
    without(CAI_SIM_REUSE);
    s = stream_on(c1, 0);
    t = stream_on(c1, 0);
    CHECK_INT(cuda->stream_id(sim, s, &id1), 0);
    cai_sim_stream_destroy(sim, s);
    u = stream_on(c1, 0);
    CHECK(u != s && u != t); /* not unless asked for */
    cai_sim_recycle_handles(sim, 1);
    cai_sim_stream_destroy(sim, u);
    cai_sim_stream_destroy(sim, t);
    CHECK_UINT(stream_on(c2, 1), t); /* destroyed last */
    CHECK_UINT(stream_on(c2, 1), u);
    CHECK_UINT(stream_on(c2, 1), s);
    CHECK_INT(cuda->stream_id(sim, s, &id2), 0);
    CHECK(id1 != id2);
    cai_sim_set_context(sim, c1);
    e = event();
    cuda->event_record(sim, e, 1);
    CHECK_INT(cuda->event_destroy(sim, e), 0);
    cai_sim_set_context(sim, c2);
    f = event();
    CHECK_UINT(f, e);
    CHECK_INT(cuda->event_query(sim, f), 0); /* a new one: not recorded, of another context */
    CHECK_INT(cuda->event_record(sim, f, s), 0);
    cai_sim_log_clear(sim);
    cuda->stream_synchronize(sim, s);
    cuda->event_destroy(sim, f);
    expect_log("stream_synchronize s6\nevent_destroy e2\n");
    expect_leaks(3, "streams: s4 s5 s6");
    finish();
}

static void test_legacy_stream(void)
{
    uint64_t a, b, n, ids[8], x;
    cai_sim_operation op;
    start("R104: the legacy stream");
    cai_sim_set_context(sim, c1);
    a = stream_on(c1, 0);
    b = stream_on(c1, 0);
    n = stream_on(c1, 1);
    x = stream_on(c2, 0);
    launch(a, "A"); /* 1 */
    launch(n, "N"); /* 2 */
    launch(2, "T"); /* 3: the per-thread stream is blocking */
    launch(1, "L"); /* 4: after A and T, not N */
    launch(b, "B"); /* 5: after L */
    launch(n, "M"); /* 6: after N only */
    launch(1, "K"); /* 7: after L, B; A and T are before L */
    cai_sim_set_context(sim, c2);
    launch(x, "X"); /* 8: another context */
    launch(1, "Y"); /* 9 */
    CHECK_INT(cai_sim_operation_get(sim, 4, &op), 1);
    CHECK_INT(op.wait_count, 2);
    CHECK(op.waits[0] == 1 && op.waits[1] == 3);
    cai_sim_operation_get(sim, 5, &op);
    CHECK(op.wait_count == 1 && op.waits[0] == 4);
    cai_sim_operation_get(sim, 6, &op);
    CHECK(op.wait_count == 1 && op.waits[0] == 2);
    cai_sim_operation_get(sim, 7, &op);
    CHECK(op.wait_count == 2 && op.waits[0] == 4 && op.waits[1] == 5);
    cai_sim_operation_get(sim, 9, &op);
    CHECK(op.wait_count == 1 && op.waits[0] == 8);
    CHECK_INT(cai_sim_ready(sim, ids, 8), 4);
    CHECK(ids[0] == 1 && ids[1] == 2 && ids[2] == 3 && ids[3] == 8);
    cai_sim_set_context(sim, c1);
    CHECK_INT(cai_sim_step(sim, 1), 0);
    CHECK_INT(cai_sim_step(sim, b), 0);
    CHECK_INT(cai_sim_step(sim, n), 1);
    CHECK_INT(cai_sim_step(sim, n), 1); /* needs nobody */
    CHECK_INT(cuda->stream_synchronize(sim, b), 0);
    CHECK_STR(order, "NMATLB"); /* what B needs, and nothing else */
    CHECK_INT(cai_sim_run(sim), 3);
    CHECK_STR(order, "NMATLBKXY");
    finish();
    start("R104: synchronizing the legacy stream");
    cai_sim_set_context(sim, c1);
    a = stream_on(c1, 0);
    n = stream_on(c1, 1);
    launch(n, "N");
    launch(a, "A");
    launch(2, "T");
    CHECK_INT(cuda->stream_synchronize(sim, 1), 0); /* (D) it stands for all blocking streams */
    CHECK_STR(order, "AT");
    launch(1, "L");
    CHECK_INT(cuda->stream_synchronize(sim, 2), 0);
    CHECK_STR(order, "AT"); /* nothing new in 2 */
    CHECK_INT(cuda->context_synchronize(sim), 0);
    CHECK_STR(order, "ATNL");
    finish();
}

static void test_per_thread_stream(void)
{
    uint64_t thread = 0, e;
    start("R73, R84: the per-thread stream");
    CHECK_INT(cuda->host_thread(sim, &thread), 0);
    CHECK(thread > UINT32_MAX);
    CHECK_INT(cuda->host_thread(sim, NULL), 1);
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cuda->host_thread(sim, &thread), 0);
    CHECK_UINT(thread, 1);
    launch(2, "A");
    cai_sim_host_thread(sim, 2);
    launch(2, "B");
    CHECK_INT(cuda->stream_synchronize(sim, 2), 0);
    CHECK_STR(order, "B"); /* streams of different threads do not wait for one another */
    e = event();
    CHECK_INT(cuda->event_record(sim, e, 2), 0);
    CHECK_INT(cuda->event_synchronize(sim, e), 0); /* W08: it tells nothing of A */
    CHECK_STR(order, "B");
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cuda->stream_synchronize(sim, 2), 0);
    CHECK_STR(order, "BA");
    cai_sim_set_context(sim, c2);
    launch(2, "C");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->stream_synchronize(sim, 2), 0);
    CHECK_STR(order, "BA"); /* nor those of different contexts */
    finish();
}

/* ------------------------------------------------------------------ events */

static void test_events(void)
{
    uint64_t s, t, e, f;
    start("R100: contexts of events");
    s = stream_on(c1, 1);
    t = stream_on(c2, 1);
    cai_sim_set_context(sim, c1);
    e = event();
    CHECK_INT(cuda->event_record(sim, e, t), 400);
    CHECK_INT(cuda->event_record(sim, e, s), 0);
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->event_record(sim, e, 1), 400); /* 1 of c2 */
    CHECK_INT(cuda->event_record(sim, e, 0), 400);
    CHECK_INT(cuda->event_record(sim, e, s), 0);
    CHECK_INT(cuda->stream_wait_event(sim, t, e), 0); /* a wait may cross */
    CHECK_INT(cuda->event_query(sim, e), 600);
    CHECK_INT(cuda->event_synchronize(sim, e), 0);
    CHECK_INT(cuda->event_query(sim, e), 0);
    CHECK_INT(cuda->event_query(sim, e + 1), 400);
    CHECK_INT(cuda->stream_wait_event(sim, t, s), 400);
    CHECK_INT(cuda->stream_wait_event(sim, 5, e), 400);
    finish();
    start("R101: events that were not recorded, recorded again, destroyed");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    e = event();
    f = event();
    CHECK_INT(cuda->event_query(sim, e), 0);
    CHECK_INT(cuda->event_synchronize(sim, e), 0);
    CHECK_INT(cuda->stream_wait_event(sim, t, e), 0);
    CHECK_INT(cai_sim_pending(sim), 0);
    launch(s, "A");
    cuda->event_record(sim, e, s); /* W33 */
    cuda->stream_wait_event(sim, t, e);
    launch(s, "B");
    cuda->event_record(sim, e, s);
    launch(t, "T");
    CHECK_INT(cuda->stream_synchronize(sim, t), 0);
    CHECK_STR(order, "AT"); /* T waits for the first record */
    CHECK_INT(cuda->event_query(sim, e), 600);
    launch(t, "U");
    cuda->event_record(sim, f, t);
    cuda->stream_wait_event(sim, s, f);
    CHECK_INT(cuda->event_destroy(sim, f), 0); /* while it is pending and waited for */
    CHECK_INT(cuda->event_destroy(sim, f), 400);
    CHECK_INT(cuda->event_query(sim, f), 400);
    CHECK_INT(cuda->stream_wait_event(sim, s, f), 400);
    launch(s, "C");
    CHECK_INT(cuda->stream_synchronize(sim, s), 0);
    CHECK_STR(order, "ATBUC");
    expect_leaks(3, "streams: s1 s2; events: e1");
    finish();
}

/* ------------------------------------------------------------------ the scheduler */

static void twice(void *x)
{
    *(int32_t *)x *= 2;
}

static void plus_three(void *x)
{
    *(int32_t *)x += 3;
}

static void test_every_order(void)
{
    int32_t value = 5;
    uint64_t s, t, ids[4], e;
    start("orders of work: the test chooses");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    cai_sim_launch(sim, s, "twice", twice, &value, NULL, 0);
    cai_sim_launch(sim, t, "plus three", plus_three, &value, NULL, 0);
    CHECK_INT(value, 5); /* nothing runs at launch */
    CHECK_INT(cai_sim_ready(sim, ids, 1), 2);
    CHECK_INT(cai_sim_run_operation(sim, 2), 1);
    CHECK_INT(cai_sim_run_operation(sim, 2), 0);
    CHECK_INT(cai_sim_run_operation(sim, 0), 0);
    CHECK_INT(cai_sim_run_operation(sim, 99), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_INT(value, 16);
    cai_sim_launch(sim, s, "twice", twice, &value, NULL, 0);
    cai_sim_launch(sim, t, "plus three", plus_three, &value, NULL, 0);
    CHECK_INT(cai_sim_run(sim), 2);
    CHECK_INT(value, 35);
    e = event();
    cai_sim_launch(sim, s, "twice", twice, &value, NULL, 0);
    cuda->event_record(sim, e, s);
    cuda->stream_wait_event(sim, t, e);
    cai_sim_launch(sim, t, "plus three", plus_three, &value, NULL, 0);
    CHECK_INT(cai_sim_ready(sim, ids, 4), 1); /* ordered: one order only */
    CHECK_INT(cai_sim_step(sim, t), 0);
    CHECK_INT(cai_sim_step(sim, s), 1);
    CHECK_INT(cai_sim_step(sim, t), 0);
    CHECK_INT(cai_sim_step(sim, s), 1); /* the record */
    CHECK_INT(cai_sim_step(sim, s), 0);
    CHECK_INT(cai_sim_step(sim, t), 1); /* the wait */
    CHECK_INT(value, 70);
    CHECK_INT(cai_sim_step(sim, t), 1);
    CHECK_INT(value, 73);
    CHECK_INT(cai_sim_pending(sim), 0);
    CHECK_INT(cai_sim_step(sim, 77), 0);
    CHECK_INT(cai_sim_ready(sim, NULL, 0), 0);
    finish();
}

static int32_t errors_inside[7];

static void calls_cuda(void *x)
{
    uint64_t out = 99;
    int32_t mode = 2;
    errors_inside[0] = cuda->event_create(sim, &out);
    errors_inside[1] = cuda->event_query(sim, *(uint64_t *)x);
    errors_inside[2] = launch(1, "Z");
    errors_inside[3] = cai_sim_stream_create(sim, 0) == 0 && cai_sim_context_create(sim, 0) == 0;
    errors_inside[4] = cuda->capture_mode(sim, &mode);
    errors_inside[5] = cai_sim_run(sim) + cai_sim_run_operation(sim, 1) + cai_sim_step(sim, 1);
    errors_inside[6] = memory_call(0, 0);
    CHECK_UINT(out, 0);
    CHECK_INT(cuda->host_thread(sim, &out), 0); /* no call of CUDA */
    CHECK_INT(cai_sim_calls(sim), 4);
}

static void test_functions_make_no_calls(void)
{
    uint64_t e;
    start("(D) no CUDA in host functions");
    cai_sim_set_context(sim, c1);
    e = event();
    cai_sim_log_clear(sim);
    cai_sim_launch(sim, 1, "calls", calls_cuda, &e, NULL, 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK(errors_inside[0] == 800 && errors_inside[1] == 800 && errors_inside[2] == 800);
    CHECK_INT(errors_inside[3], 1);
    CHECK_INT(errors_inside[4], 800);
    CHECK_INT(errors_inside[5], 0);
    CHECK_INT(errors_inside[6], 800);
    CHECK_INT(cai_sim_clear_error(sim), 800);
    expect_log("event_create ! 800\nevent_query e1 ! 800\ncapture_mode relaxed ! 800\n"
               "memory_alloc 8 ! 800\n");
    CHECK_INT(cuda->event_query(sim, e), 0); /* and afterwards it works */
    finish();
}

typedef struct trace_names {
    uint64_t s, t, e, m; /* two streams, an event, memory */
} trace_names;

/* Makes operations 1 to 9. */
static void trace_make(trace_names *n)
{
    cai_sim_access access[2];
    cai_sim_host_thread(sim, 3);
    n->s = stream_on(c1, 1);
    n->t = stream_on(c2, 1);
    cai_sim_set_context(sim, c1);
    n->m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    access[0] = cai_sim_reads(n->m, 4);
    access[1] = cai_sim_writes(n->m + 4, 8);
    CHECK_INT(cai_sim_launch(sim, n->s, "a kernel with a name that is far too long", NULL, NULL, access, 2), 0);
    access[0].bytes = 99; /* it has its own copy */
    n->e = event();
    cuda->event_record(sim, n->e, n->s);
    cuda->stream_wait_event(sim, n->t, n->e);
    CHECK_INT(cai_sim_host_access(sim, "reads back", access, 1), 0);
    cuda->event_synchronize(sim, n->e);
    CHECK_INT(cuda->event_query(sim, n->e), 0);
    cai_sim_host_thread(sim, 4);
    cai_sim_set_context(sim, c2);
    cuda->stream_synchronize(sim, n->t);
    CHECK_INT(cai_sim_free(sim, n->m), 0);
}

static void trace_of_memory_and_launch(const trace_names *n)
{
    cai_sim_operation op;
    CHECK_UINT(cai_sim_operation_count(sim), 9);
    CHECK_INT(cai_sim_operation_get(sim, 0, &op), 0);
    CHECK_INT(cai_sim_operation_get(sim, 10, &op), 0);
    CHECK_INT(cai_sim_operation_get(sim, 1, &op), 1);
    CHECK(op.kind == CAI_SIM_OP_ALLOC && op.accesses[0].address == n->m && op.accesses[0].bytes == 16);
    cai_sim_operation_get(sim, 2, &op);
    CHECK(op.id == 2 && op.kind == CAI_SIM_OP_LAUNCH && op.state == CAI_SIM_STATE_DONE && op.order == 1);
    CHECK(op.context == c1 && op.thread == 3 && op.event == 0 && op.capture == 0 && op.wait_count == 0);
    CHECK_STR(op.name, "a kernel with a name that is fa");
    CHECK(op.access_count == 2 && op.accesses[0].bytes == 4 && !op.accesses[0].write);
    CHECK(op.accesses[1].address == n->m + 4 && op.accesses[1].bytes == 8 && op.accesses[1].write == 1);
}

static void trace_of_order(const trace_names *n)
{
    cai_sim_operation op;
    cai_sim_operation_get(sim, 3, &op);
    CHECK(op.kind == CAI_SIM_OP_RECORD && op.event == n->e && op.wait_count == 1 && op.waits[0] == 2);
    cai_sim_operation_get(sim, 4, &op);
    CHECK(op.kind == CAI_SIM_OP_WAIT && op.context == c2 && op.wait_count == 1 && op.waits[0] == 3);
    CHECK(op.order == 3 && op.stream != 0);
    cai_sim_operation_get(sim, 5, &op);
    CHECK(op.kind == CAI_SIM_OP_HOST_ACCESS && op.stream == 0 && op.thread == 3 && op.access_count == 1);
    CHECK_STR(op.name, "reads back");
    cai_sim_operation_get(sim, 6, &op);
    CHECK(op.kind == CAI_SIM_OP_SYNCHRONIZE && op.wait_count == 1 && op.waits[0] == 3);
    CHECK_STR(op.name, "event_synchronize");
    cai_sim_operation_get(sim, 7, &op);
    CHECK(op.kind == CAI_SIM_OP_SYNCHRONIZE && op.waits[0] == 3); /* a query that says yes */
    cai_sim_operation_get(sim, 8, &op);
    CHECK(op.kind == CAI_SIM_OP_SYNCHRONIZE && op.waits[0] == 4 && op.thread == 4);
    cai_sim_operation_get(sim, 9, &op);
    CHECK(op.kind == CAI_SIM_OP_FREE && op.accesses[0].address == n->m && op.thread == 4);
}

static void test_trace(void)
{
    const cai_sim_access access[1] = {{0, 0, 0, 0}};
    cai_sim_operation op;
    trace_names n;
    start("the trace");
    trace_make(&n);
    trace_of_memory_and_launch(&n);
    trace_of_order(&n);
    CHECK_INT(cai_sim_launch(sim, n.t, NULL, NULL, NULL, NULL, 1), 1);
    CHECK_INT(cai_sim_launch(sim, n.t, NULL, NULL, NULL, access, -1), 1);
    CHECK_INT(cai_sim_host_access(sim, NULL, NULL, 1), 1);
    CHECK_INT(cai_sim_launch(sim, n.t, NULL, NULL, NULL, NULL, 0), 0);
    cai_sim_operation_get(sim, 10, &op);
    CHECK_STR(op.name, "");
    CHECK_INT(op.state, CAI_SIM_STATE_QUEUED);
    CHECK_UINT(op.order, 0);
    finish();
}

/* ------------------------------------------------------------------ captures (R103) */

static void test_capture_pulls_in(void)
{
    uint64_t s, t, n, e, f;
    cai_cuda_capture capture;
    cai_sim_operation op;
    start("R103, W23, W24: a capture and what it pulls in");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c2, 0);
    n = stream_on(c1, 1);
    e = event();
    launch(s, "A");
    CHECK_INT(capture_status(s), CAI_CAPTURE_NONE);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_THREAD_LOCAL), 0);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL), 401);
    CHECK_INT(cuda->stream_capture(sim, s, &capture), 0);
    CHECK(capture.status == CAI_CAPTURE_ACTIVE && capture.id == 1 && capture.reserved == 0);
    launch(s, "B");
    CHECK_INT(cuda->event_record(sim, e, s), 0);
    CHECK_INT(capture_status(t), CAI_CAPTURE_NONE);
    CHECK_INT(cuda->stream_wait_event(sim, t, e), 0);
    CHECK_INT(capture_status(t), CAI_CAPTURE_ACTIVE); /* W23: another context, and a blocking stream */
    cai_sim_set_context(sim, c2);
    launch(t, "C");
    f = event();
    CHECK_INT(cuda->event_record(sim, f, t), 0);
    CHECK_INT(cuda->stream_wait_event(sim, s, f), 0); /* W24: joins */
    CHECK_INT(cai_sim_capture_end(sim, n, NULL), 401);
    expect_leaks(6, "streams: s1 s2 s3; events: e1 e2; captures: 1");
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 0);
    CHECK_INT(capture_status(t), CAI_CAPTURE_NONE);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_STR(order, "A"); /* what was captured does not run */
    launch(t, "D");
    cai_sim_operation_get(sim, 3, &op); /* the record: after B, and not after A */
    CHECK(op.state == CAI_SIM_STATE_CAPTURED && op.capture == 1 && op.wait_count == 1 && op.waits[0] == 2);
    cai_sim_operation_get(sim, 2, &op);
    CHECK_INT(op.wait_count, 0); /* (D) to enter a capture severs the dependency, */
    cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op);
    CHECK_INT(op.wait_count, 0); /* to leave it, too */
    CHECK_INT(cuda->event_query(sim, e), 1);
    CHECK_INT(cuda->event_synchronize(sim, e), 1);
    CHECK_INT(cuda->stream_wait_event(sim, n, e), 1);
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->event_record(sim, e, s), 0); /* recorded outside it is an event as any */
    CHECK_INT(cuda->event_synchronize(sim, e), 0);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cuda->stream_capture(sim, s, &capture), 0);
    CHECK_UINT(capture.id, 2);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 0); /* (D) relaxed: any thread */
    finish();
}

static void test_capture_joins(void)
{
    uint64_t s, t, e, f;
    cai_sim_operation op;
    start("R103, W23: 904");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    e = event();
    f = event();
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL);
    launch(s, "A");
    cuda->event_record(sim, e, s);
    cuda->stream_wait_event(sim, t, e);
    launch(t, "B");
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 904);
    CHECK_INT(capture_status(s), CAI_CAPTURE_NONE); /* (D) it has ended all the same */
    CHECK_INT(capture_status(t), CAI_CAPTURE_NONE);
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL);
    launch(s, "A");
    cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op);
    CHECK_INT(op.wait_count, 0); /* nothing of the capture before */
    cuda->event_record(sim, e, s);
    cuda->stream_wait_event(sim, t, e);
    launch(t, "B");
    cuda->event_record(sim, f, t);
    launch(t, "C"); /* after the join */
    cuda->stream_wait_event(sim, s, f);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 904);
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL);
    launch(s, "A");
    cuda->event_record(sim, e, s);
    cuda->stream_wait_event(sim, t, e);
    CHECK_INT(cai_sim_capture_begin(sim, 2, CAI_SIM_MODE_GLOBAL), 0); /* W25: another one beside it */
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 0); /* pulled in, but no work */
    CHECK_INT(capture_status(t), CAI_CAPTURE_NONE);
    CHECK_INT(capture_status(2), CAI_CAPTURE_ACTIVE);
    CHECK_INT(cai_sim_capture_end(sim, 2, NULL), 0);
    finish();
}

/* (R) An end at the wrong place ends the capture. The id of a stream that captures invalidates it. */
static void test_capture_misused(void)
{
    uint64_t s, t, e, id;
    start("R103: ends at the wrong place, and ids");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    e = event();
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cuda->event_record(sim, e, s), 0);
    CHECK_INT(cuda->stream_wait_event(sim, t, e), 0);
    CHECK_INT(cai_sim_capture_end(sim, t, NULL), 903);
    CHECK_INT(capture_status(s), CAI_CAPTURE_NONE);
    CHECK_INT(capture_status(t), CAI_CAPTURE_NONE);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 401);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 908);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(capture_status(s), CAI_CAPTURE_NONE);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 401);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cuda->stream_id(sim, s, &id), 900);
    CHECK_INT(capture_status(s), CAI_CAPTURE_INVALIDATED);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    finish();
}

/* Each step against a fresh global capture of s, which is non-blocking, beside t; returns its error. */
typedef int32_t (*wrong_step)(uint64_t s, uint64_t t, uint64_t captured);

static void check_invalidates(const char *note, wrong_step step, int32_t error)
{
    uint64_t s, t, e;
    start(note);
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    e = event();
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL), 0);
    CHECK_INT(launch(s, "A"), 0);
    CHECK_INT(cuda->event_record(sim, e, s), 0);
    CHECK_INT(step(s, t, e), error);
    CHECK_INT(capture_status(s), CAI_CAPTURE_INVALIDATED);
    CHECK_INT(launch(s, "B"), 901); /* (D) nothing works until it is ended */
    CHECK_INT(cuda->event_record(sim, e, s), 901);
    CHECK_INT(cuda->stream_wait_event(sim, s, e), 901);
    CHECK_INT(cuda->stream_synchronize(sim, s), 900); /* (R) as before */
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL), 401);
    CHECK_INT(cuda->stream_wait_event(sim, stream_on(c1, 1), e), 1);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    CHECK_INT(capture_status(s), CAI_CAPTURE_NONE);
    CHECK_INT(launch(s, "C"), 0);
    finish();
}

static int32_t synchronizes_stream(uint64_t s, uint64_t t, uint64_t captured)
{
    return (void)t, (void)captured, cuda->stream_synchronize(sim, s);
}

static int32_t synchronizes_context(uint64_t s, uint64_t t, uint64_t captured)
{
    return (void)s, (void)t, (void)captured, cuda->context_synchronize(sim);
}

static int32_t synchronizes_other_stream(uint64_t s, uint64_t t, uint64_t captured)
{
    return (void)s, (void)captured, cuda->stream_synchronize(sim, t);
}

static int32_t queries_event(uint64_t s, uint64_t t, uint64_t captured)
{
    return (void)s, (void)t, cuda->event_query(sim, captured);
}

static int32_t synchronizes_event(uint64_t s, uint64_t t, uint64_t captured)
{
    return (void)s, (void)t, cuda->event_synchronize(sim, captured);
}

static int32_t queries_other_event(uint64_t s, uint64_t t, uint64_t captured)
{
    const uint64_t e = event();
    CHECK_INT(cuda->event_record(sim, e, t), 0);
    return (void)s, (void)captured, cuda->event_query(sim, e);
}

static int32_t waits_for_outside(uint64_t s, uint64_t t, uint64_t captured)
{
    const uint64_t e = event();
    CHECK_INT(cuda->event_record(sim, e, t), 0);
    return (void)captured, cuda->stream_wait_event(sim, s, e);
}

static int32_t waits_for_nothing(uint64_t s, uint64_t t, uint64_t captured)
{
    return (void)t, (void)captured, cuda->stream_wait_event(sim, s, event());
}

static int32_t legacy_waits(uint64_t s, uint64_t t, uint64_t captured)
{
    return (void)s, (void)t, cuda->stream_wait_event(sim, 1, captured);
}

static int32_t merges(uint64_t s, uint64_t t, uint64_t captured)
{
    int32_t error;
    CHECK_INT(cai_sim_capture_begin(sim, t, CAI_SIM_MODE_RELAXED), 0);
    error = cuda->stream_wait_event(sim, t, captured);
    CHECK_INT(capture_status(t), CAI_CAPTURE_INVALIDATED); /* both of them */
    return (void)s, error;
}

static int32_t allocates(uint64_t s, uint64_t t, uint64_t captured)
{
    const uint64_t m = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 8); /* stream-ordered: allowed */
    CHECK(m != 0);
    CHECK_INT(cai_sim_free(sim, m), 0);
    CHECK_INT(capture_status(s), CAI_CAPTURE_ACTIVE);
    CHECK_UINT(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 8), 0);
    return (void)t, (void)captured, cai_sim_last_error(sim);
}

static int32_t frees(uint64_t s, uint64_t t, uint64_t captured)
{
    uint64_t m;
    int32_t mode = CAI_SIM_MODE_RELAXED;
    CHECK_INT(cuda->capture_mode(sim, &mode), 0);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 8);
    CHECK_INT(cuda->capture_mode(sim, &mode), 0);
    CHECK(m != 0 && capture_status(s) == CAI_CAPTURE_ACTIVE);
    return (void)t, (void)captured, cai_sim_free(sim, m);
}

static int32_t destroys_stream(uint64_t s, uint64_t t, uint64_t captured)
{
    CHECK_INT(cuda->stream_wait_event(sim, t, captured), 0);
    return (void)s, cai_sim_stream_destroy(sim, t);
}

static void test_capture_invalidation(void)
{
    check_invalidates("R103: its stream is synchronized", synchronizes_stream, 900);
    check_invalidates("R103: its context is synchronized", synchronizes_context, 900);
    check_invalidates("another stream is synchronized", synchronizes_other_stream, 900);
    check_invalidates("R103: its event is queried", queries_event, 907);
    check_invalidates("R103: its event is synchronized", synchronizes_event, 907);
    check_invalidates("R103: another event is queried", queries_other_event, 900);
    check_invalidates("R103, W22: it waits for what is outside", waits_for_outside, 905);
    check_invalidates("it waits for an event that was not recorded", waits_for_nothing, 905);
    check_invalidates("the legacy stream waits for it", legacy_waits, 905);
    check_invalidates("R103, W25: two captures meet", merges, 902);
    check_invalidates("memory is allocated", allocates, 900);
    check_invalidates("memory is freed", frees, 900);
    check_invalidates("a stream in it is destroyed", destroys_stream, 0);
}

static void test_capture_and_legacy(void)
{
    uint64_t b, e, f;
    int32_t mode;
    for (mode = CAI_SIM_MODE_GLOBAL; mode <= CAI_SIM_MODE_RELAXED; mode++) {
        start("R103, W27: the legacy stream while a blocking stream captures");
        cai_sim_set_context(sim, c1);
        b = stream_on(c1, 0);
        e = event();
        f = event();
        CHECK_INT(cuda->event_record(sim, f, b), 0);
        CHECK_INT(cai_sim_capture_begin(sim, 1, mode), 900);
        CHECK_INT(cai_sim_capture_begin(sim, b, mode), 0);
        CHECK_INT(capture_status(1), 906); /* (D) in any mode, and nothing is invalidated */
        CHECK_INT(capture_status(b), CAI_CAPTURE_ACTIVE);
        CHECK_INT(capture_status(2), CAI_CAPTURE_NONE);
        cai_sim_set_context(sim, c2);
        CHECK_INT(capture_status(1), CAI_CAPTURE_NONE); /* that of another context */
        CHECK_INT(launch(1, "X"), 0);
        cai_sim_set_context(sim, c1);
        CHECK_INT(launch(2, "Y"), 0); /* and another blocking stream */
        CHECK_INT(cuda->event_record(sim, e, 1), 906);
        CHECK_INT(capture_status(b), CAI_CAPTURE_INVALIDATED);
        CHECK_INT(capture_status(1), 906); /* until it is ended */
        CHECK_INT(cai_sim_capture_end(sim, b, NULL), 901);
        CHECK_INT(capture_status(1), CAI_CAPTURE_NONE);
        cai_sim_capture_begin(sim, b, mode);
        CHECK_INT(launch(1, "Z"), 906);
        CHECK_INT(cai_sim_capture_end(sim, b, NULL), 901);
        cai_sim_capture_begin(sim, b, mode);
        CHECK_INT(cuda->stream_wait_event(sim, 1, f), 906);
        CHECK_INT(cai_sim_capture_end(sim, b, NULL), 901);
        cai_sim_capture_begin(sim, b, mode);
        CHECK_INT(cuda->stream_synchronize(sim, 1), 906);
        CHECK_INT(cai_sim_capture_end(sim, b, NULL), 901);
        finish();
    }
    start("R104: the legacy stream while a non-blocking stream captures");
    cai_sim_set_context(sim, c1);
    b = stream_on(c1, 1);
    cai_sim_capture_begin(sim, b, CAI_SIM_MODE_GLOBAL);
    CHECK_INT(capture_status(1), CAI_CAPTURE_NONE);
    CHECK_INT(launch(1, "L"), 0);
    CHECK_INT(launch(b, "B"), 0);
    CHECK_INT(cai_sim_capture_end(sim, b, NULL), 0);
    CHECK_INT(cai_sim_capture_begin(sim, b, 3), 1);
    CHECK_INT(cai_sim_capture_begin(sim, 0, 0), 400);
    CHECK_INT(cai_sim_capture_end(sim, 0, NULL), 400);
    finish();
}

/* One thread captures in `mode`; another one with mode `own` queries an event of before. */
static int32_t query_beside(int32_t mode, int32_t own, int32_t after)
{
    uint64_t s, e;
    int32_t error, before = own;
    start("capture modes");
    s = stream_on(c1, 1);
    cai_sim_set_context(sim, c1);
    e = event();
    CHECK_INT(cuda->event_record(sim, e, s), 0);
    cai_sim_run(sim);
    cai_sim_capture_begin(sim, s, mode);
    cai_sim_host_thread(sim, 2);
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->capture_mode(sim, &before), 0);
    CHECK_INT(before, CAI_SIM_MODE_GLOBAL);
    error = cuda->event_query(sim, e);
    CHECK_INT(capture_status(s), after);
    CHECK_INT(cuda->capture_mode(sim, &before), 0);
    CHECK_INT(before, own);
    finish();
    return error;
}

/* The thread that captures in `mode` changes its own mode and queries. */
static int32_t query_within(int32_t mode, int32_t own)
{
    uint64_t s, e;
    int32_t error;
    start("capture modes, own thread");
    s = stream_on(c1, 1);
    cai_sim_set_context(sim, c1);
    e = event();
    cai_sim_capture_begin(sim, s, mode);
    cuda->capture_mode(sim, &own);
    error = cuda->event_query(sim, e);
    finish();
    return error;
}

static void test_capture_modes(void)
{
    const int32_t global = CAI_SIM_MODE_GLOBAL, local = CAI_SIM_MODE_THREAD_LOCAL;
    const int32_t relaxed = CAI_SIM_MODE_RELAXED;
    const int32_t active = CAI_CAPTURE_ACTIVE, dead = CAI_CAPTURE_INVALIDATED;
    uint64_t s, e;
    int32_t mode;
    CHECK_INT(query_beside(global, global, dead), 900); /* (D) all nine of cuThreadExchange... */
    CHECK_INT(query_beside(global, local, active), 0);
    CHECK_INT(query_beside(global, relaxed, active), 0);
    CHECK_INT(query_beside(local, global, active), 0);
    CHECK_INT(query_beside(local, local, active), 0);
    CHECK_INT(query_beside(local, relaxed, active), 0);
    CHECK_INT(query_beside(relaxed, global, active), 0);
    CHECK_INT(query_beside(relaxed, local, active), 0);
    CHECK_INT(query_beside(relaxed, relaxed, active), 0);
    CHECK_INT(query_within(global, global), 900);
    CHECK_INT(query_within(global, local), 900);
    CHECK_INT(query_within(global, relaxed), 0);
    CHECK_INT(query_within(local, global), 900);
    CHECK_INT(query_within(local, local), 900);
    CHECK_INT(query_within(local, relaxed), 0);
    CHECK_INT(query_within(relaxed, global), 0);
    start("the relaxed mode does not allow what conflicts");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    e = event();
    mode = 3;
    CHECK_INT(cuda->capture_mode(sim, &mode), 1);
    mode = -1;
    CHECK_INT(cuda->capture_mode(sim, &mode), 1);
    mode = relaxed;
    CHECK_INT(cuda->capture_mode(sim, &mode), 0);
    cai_sim_capture_begin(sim, s, global);
    cuda->event_record(sim, e, s);
    CHECK_INT(cuda->stream_synchronize(sim, stream_on(c1, 1)), 0);
    CHECK_INT(capture_status(s), active);
    CHECK_INT(cuda->event_query(sim, e), 907);
    CHECK_INT(capture_status(s), dead);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    cai_sim_capture_begin(sim, s, relaxed);
    CHECK_INT(cuda->context_synchronize(sim), 900);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    cai_sim_capture_begin(sim, s, global); /* destroyed while it captures */
    CHECK_INT(cai_sim_stream_destroy(sim, s), 0);
    mode = global;
    cuda->capture_mode(sim, &mode);
    CHECK_INT(cuda->context_synchronize(sim), 0);
    finish();
}

/* ------------------------------------------------------------------ memory */

static void test_memory(void)
{
    static const struct {
        const char *log;
        int32_t memory, flags, has_context, device_address;
    } rows[] = {
        {"device 0 c1", CAI_MEMORY_DEVICE, 0, 1, 1},
        {"managed 0 c1", CAI_MEMORY_MANAGED, 0, 1, 1},
        {"pinned 0 c1", CAI_MEMORY_PINNED, 0, 1, 1},
        {"pinned 0 c1", CAI_MEMORY_PINNED, 0, 1, 2},
        {"pinned 0 c1", CAI_MEMORY_PINNED, 0, 1, 0},
        {"device 0 none", CAI_MEMORY_DEVICE, CAI_POINTER_POOL, 0, 1},
        {"device 0 none", CAI_MEMORY_DEVICE, 0, 0, 1},
        {"device 0 c1", CAI_MEMORY_DEVICE, CAI_POINTER_ARRAY, 1, 1}};
    uint64_t m, base, size;
    int32_t kind, i;
    cai_cuda_pointer info;
    char line[80];
    start("G01-G08, G14, G15, G20: kinds of memory");
    for (kind = CAI_SIM_MEM_DEVICE; kind <= CAI_SIM_MEM_ARRAY; kind++) {
        cai_test_note(rows[kind].log);
        cai_sim_set_context(sim, c1);
        m = cai_sim_alloc(sim, kind, 1000);
        CHECK(m != 0 && m % 256 == 0);
        for (i = 0; i < 1000; i++) ((unsigned char *)cai_sim_bytes(sim, m))[i] = 1;
        cai_sim_set_context(sim, c2); /* G02: the answer is of the memory, not of the current context */
        cai_sim_log_clear(sim);
        memset(&info, 0xFF, sizeof info);
        CHECK_INT(cuda->pointer_info(sim, m + 256, &info), 0); /* G03 */
        sprintf(line, "pointer_info m%d+256 -> %s\n", (int)kind + 1, rows[kind].log);
        expect_log(line);
        CHECK_INT(info.memory, rows[kind].memory);
        CHECK_INT(info.device, 0);
        CHECK_INT(info.flags, rows[kind].flags);
        CHECK_UINT(info.context, rows[kind].has_context ? c1 : 0);
        CHECK_UINT(info.reserved, 0);
        if (rows[kind].device_address == 0) CHECK_UINT(info.device_pointer, 0);
        if (rows[kind].device_address == 1) CHECK_UINT(info.device_pointer, m + 256);
        if (rows[kind].device_address == 2) CHECK(info.device_pointer > m + 1000);
        CHECK_INT(cuda->pointer_range(sim, m + 999, &base, &size), kind == CAI_SIM_MEM_ARRAY ? 500 : 0);
        CHECK_UINT(base, kind == CAI_SIM_MEM_ARRAY ? 0 : m);
        CHECK_UINT(size, kind == CAI_SIM_MEM_ARRAY ? 0 : 1000);
        CHECK_INT(cuda->pointer_info(sim, m + 1000, &info), 0); /* one past the end */
        CHECK_INT(info.memory, CAI_MEMORY_HOST);
    }
    expect_leaks(8, "allocations: m1 m2 m3 m4 m5 m6 m7 m8");
    finish();
}

static void test_memory_unknown(void)
{
    uint64_t m, base, size;
    int32_t plain = 0, yes = 9;
    cai_cuda_pointer info;
    start("G09, G11: plain and freed memory");
    memset(&info, 0xFF, sizeof info);
    CHECK_INT(cuda->pointer_info(sim, (uint64_t)(uintptr_t)&plain, &info), 0); /* without a context, too */
    CHECK(info.memory == CAI_MEMORY_HOST && info.device == CAI_DEVICE_UNKNOWN && info.flags == 0);
    CHECK(info.context == 0 && info.device_pointer == 0);
    CHECK_INT(cuda->pointer_range(sim, (uint64_t)(uintptr_t)&plain, &base, &size), 201);
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->pointer_range(sim, (uint64_t)(uintptr_t)&plain, &base, &size), 500);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    CHECK_INT(cai_sim_free(sim, m + 1), 1);
    CHECK_INT(cai_sim_free(sim, m), 0);
    CHECK_INT(cai_sim_free(sim, m), 1);
    CHECK_INT(cai_sim_clear_error(sim), 1);
    CHECK_INT(cai_sim_free(sim, 0), 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    CHECK_INT(info.memory, CAI_MEMORY_HOST);
    CHECK_INT(cuda->pointer_range(sim, m, &base, &size), 500);
    CHECK_INT(cuda->pointer_info(sim, 0, &info), 0);
    expect_log("pointer_info m1 -> host -1 none\npointer_range m1 ! 500\npointer_info 0x0 -> host -1 none\n");
    CHECK_INT(cai_sim_last_error(sim), 0); /* G12: calls of the table leave no last error */
    CHECK(cai_sim_bytes(sim, m) == NULL);
    CHECK(cai_sim_bytes(sim, 0) == NULL);
    CHECK_UINT(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 0), 0); /* (D) nothing, and no error */
    CHECK_INT(cai_sim_last_error(sim), 0);
    CHECK_UINT(cai_sim_alloc(sim, 8, 16), 0);
    CHECK_INT(cai_sim_clear_error(sim), 1);
    CHECK_UINT(cai_sim_alloc(sim, 0, UINT64_MAX), 0);
    CHECK_INT(cai_sim_clear_error(sim), 2);
    CHECK_INT(cuda->device_attribute(sim, 1, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &yes), 0);
    CHECK_INT(yes, 0);
    cai_sim_set_device_attribute(sim, 1, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 5); /* G10 */
    cai_sim_set_device_attribute(sim, 7, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
    CHECK_INT(cuda->device_attribute(sim, 1, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &yes), 0);
    CHECK_INT(yes, 1);
    CHECK_INT(cuda->device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &yes), 0);
    CHECK_INT(yes, 0);
    CHECK_INT(cuda->device_attribute(sim, 2, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &yes), 101);
    CHECK_INT(cuda->device_attribute(sim, 0, CAI_ATTRIBUTE_CONCURRENT_MANAGED, &yes), 0);
    CHECK_INT(yes, 1);
    cai_sim_set_device_attribute(sim, 1, CAI_ATTRIBUTE_CONCURRENT_MANAGED, 0);
    CHECK_INT(cuda->device_attribute(sim, 1, CAI_ATTRIBUTE_CONCURRENT_MANAGED, &yes), 0);
    CHECK_INT(yes, 0);
    CHECK_INT(cuda->device_attribute(sim, 0, 1, &yes), 1); /* it is not known */
    finish();
}

static void test_memory_misused(void)
{
    uint64_t m, other;
    int32_t plain = 0;
    cai_sim_access access[1];
    cai_sim_operation op;
    cai_cuda_pointer info;
    start("work on memory that was freed");
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 16);
    other = cai_sim_context_create(sim, 0);
    access[0] = cai_sim_writes(m, 16);
    cai_sim_launch(sim, 2, "A", letter, &order[60], access, 1);
    CHECK_INT(cai_sim_free(sim, m), 0); /* too early */
    access[0] = cai_sim_writes((uint64_t)(uintptr_t)&plain, sizeof plain);
    cai_sim_launch(sim, 1, "B", letter, &order[60], access, 1);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 700);
    CHECK_STR(order, ""); /* neither ran */
    cai_sim_operation_get(sim, 2, &op);
    CHECK_INT(op.state, CAI_SIM_STATE_DROPPED);
    CHECK_UINT(op.order, 0);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0); /* G18: that is exempt */
    CHECK_INT(cai_sim_last_error(sim), 700);
    CHECK_INT(cai_sim_clear_error(sim), 700);
    CHECK_INT(cai_sim_last_error(sim), 700); /* that of a context stays */
    cai_sim_set_context(sim, other);
    CHECK_INT(cai_sim_last_error(sim), 0);
    CHECK_INT(cuda->context_synchronize(sim), 0); /* only that context */
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    access[0] = cai_sim_reads(m + 8, 8);
    CHECK_INT(cai_sim_launch(sim, 1, "C", NULL, NULL, access, 1), 0);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 0);
    access[0] = cai_sim_reads(m + 8, 9); /* over the end */
    CHECK_INT(cai_sim_launch(sim, 1, "D", NULL, NULL, access, 1), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_INT(cuda->context_synchronize(sim), 700);
    finish();
}

/* ------------------------------------------------------------------ allocation */

static int32_t memory_of(uint64_t pointer)
{
    cai_cuda_pointer info;
    const int32_t error = cuda->pointer_info(sim, pointer, &info);
    return error ? error : info.memory;
}

static uint64_t allocate(uint64_t bytes)
{
    uint64_t pointer = 0;
    CHECK_INT(cuda->memory_alloc(sim, &pointer, bytes), 0);
    return pointer;
}

/* Launches a letter that writes the first 8 bytes. */
static void launch_on(uint64_t stream, const char *name, uint64_t pointer)
{
    static char letters[26];
    const cai_sim_access access = cai_sim_writes(pointer, 8);
    char *place = &letters[name[0] - 'A'];
    *place = name[0];
    CHECK_INT(cai_sim_launch(sim, stream, name, letter, place, &access, 1), 0);
}

static void expect_free(uint64_t free_bytes, uint64_t total_bytes)
{
    uint64_t got = 7, total = 7;
    CHECK_INT(cuda->memory_info(sim, &got, &total), 0);
    CHECK_UINT(got, free_bytes);
    CHECK_UINT(total, total_bytes);
}

static void test_allocation(void)
{
    uint64_t m, p, h, g, base, size;
    int32_t i;
    start("allocation through the table");
    for (i = 0; i < MEMORY_CALLS; i++) /* (D) no context; (R) a free needs none */
        CHECK_INT(memory_call(i, 1), i == UUID_CALL ? 0 : i == 1 || i == 3 ? 1 : 201);
    cai_sim_set_context(sim, c2);
    cai_sim_log_clear(sim);
    m = allocate(1000);
    p = allocate_async(1000, 1);
    CHECK_INT(cuda->host_alloc(sim, &h, 1000, 7), 0);
    CHECK_INT(cuda->managed_alloc(sim, &g, 1000, 2), 0);
    CHECK(m % 256 == 0 && p % 256 == 0 && h % 256 == 0 && g % 256 == 0);
    CHECK_INT(((const unsigned char *)cai_sim_bytes(sim, m))[999], 0);
    CHECK_INT(cuda->pointer_range(sim, m + 999, &base, &size), 0);
    CHECK_UINT(base, m);
    CHECK_UINT(size, 1000);
    memory_of(m), memory_of(p), memory_of(h), memory_of(g);
    expect_leaks(4, "allocations: m1 m2 m3 m4");
    CHECK_INT(cuda->memory_free(sim, m), 0);
    CHECK_INT(cuda->memory_free(sim, p), 0); /* (D) pool memory, too */
    CHECK_INT(cuda->host_free(sim, h), 0);
    CHECK_INT(cuda->memory_free(sim, g), 0);
    expect_log("memory_alloc 1000 -> m1\nmemory_alloc_async 1000 legacy -> m2\n"
               "host_alloc 1000 flags 7 -> m3\nmanaged_alloc 1000 flags 2 -> m4\n"
               "pointer_range m1+999 -> m1 1000\npointer_info m1 -> device 1 c2\n"
               "pointer_info m2 -> device 1 none\npointer_info m3 -> pinned 1 c2\n"
               "pointer_info m4 -> managed 1 c2\nmemory_free m1\nmemory_free m2\nhost_free m3\n"
               "memory_free m4\n");
    CHECK_INT(memory_of(m), CAI_MEMORY_HOST);
    CHECK(cai_sim_bytes(sim, h) == NULL);
    CHECK_INT(cai_sim_last_error(sim), 0); /* calls of the driver */
    expect_leaks(0, "");
    finish();
}

static void test_allocation_refused(void)
{
    uint64_t m, p, h, out = 7;
    start("allocation that is not to be had");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->memory_alloc(sim, &out, 0), 1);
    CHECK_UINT(out, 0);
    CHECK_INT(cuda->memory_alloc_async(sim, &out, 0, 1), 0); /* (R) */
    CHECK_UINT(out, 0);
    CHECK_INT(cuda->host_alloc(sim, &out, 0, 0), 0);
    CHECK_UINT(out, 0);
    CHECK_INT(cuda->host_alloc(sim, &out, 8, 8), 1); /* (D) no such flag */
    CHECK_INT(cuda->managed_alloc(sim, &out, 0, 1), 1);
    CHECK_INT(cuda->managed_alloc(sim, &out, 8, 0), 1);
    CHECK_INT(cuda->managed_alloc(sim, &out, 8, 3), 1);
    CHECK_INT(cuda->memory_alloc_async(sim, &out, 8, 77), 400);
    CHECK_INT(cuda->memory_alloc(sim, &out, UINT64_MAX), 2);
    CHECK_INT(cuda->host_alloc(sim, &out, UINT64_MAX, 0), 2);
    expect_leaks(0, "");
    m = allocate(16);
    p = allocate_async(16, 2);
    CHECK_INT(cuda->host_alloc(sim, &h, 16, 0), 0);
    CHECK_INT(cuda->memory_free(sim, 0), 1);
    CHECK_INT(cuda->memory_free(sim, m + 1), 1);
    CHECK_INT(cuda->memory_free(sim, h), 1);
    CHECK_INT(cuda->memory_free(sim, (uint64_t)(uintptr_t)order), 1);
    CHECK_INT(cuda->host_free(sim, m), 1);
    CHECK_INT(cuda->host_free(sim, p), 1);
    CHECK_INT(cuda->memory_free_async(sim, h, 2), 1);
    CHECK_INT(cuda->memory_free_async(sim, p + 8, 2), 1);
    CHECK_INT(cuda->memory_free_async(sim, p, 77), 400);
    expect_leaks(3, "allocations: m1 m2 m3");
    CHECK_INT(cuda->memory_free(sim, m), 0);
    CHECK_INT(cuda->memory_free(sim, m), 1); /* twice */
    CHECK_INT(cuda->host_free(sim, h), 0);
    CHECK_INT(cuda->host_free(sim, h), 1);
    CHECK_INT(cai_sim_free(sim, cai_sim_alloc(sim, CAI_SIM_MEM_ARRAY, 8)), 0);
    CHECK_INT(cuda->memory_free(sim, cai_sim_alloc(sim, CAI_SIM_MEM_ARRAY, 8)), 1);
    CHECK_INT(cuda->memory_free(sim, cai_sim_alloc(sim, CAI_SIM_MEM_VIRTUAL, 8)), 1);
    CHECK_INT(cuda->host_free(sim, cai_sim_alloc(sim, CAI_SIM_MEM_ALIASED, 8)), 0);
    finish();
}

/* With CAI_SIM_FREE_RETURNS off, a free waits for the context of the memory, and for nothing else. */
static void test_free_waits(void)
{
    uint64_t s, x, m, h;
    cai_sim_operation op;
    start("free of pool memory does not wait");
    cai_sim_set_context(sim, c1);
    m = allocate_async(16, 2);
    launch_on(2, "A", m);
    CHECK_INT(cuda->memory_free(sim, m), 0); /* (D) */
    CHECK_STR(order, "");
    CHECK_INT(cuda->stream_synchronize(sim, 2), 700);
    finish();
    start("free waits");
    without(CAI_SIM_FREE_RETURNS);
    s = stream_on(c1, 1);
    x = stream_on(c2, 1);
    cai_sim_set_context(sim, c2);
    launch(x, "X"); /* 1 */
    cai_sim_set_context(sim, c1);
    m = allocate(16);                               /* 2 */
    CHECK_INT(cuda->host_alloc(sim, &h, 16, 0), 0); /* 3 */
    launch_on(s, "A", m);                           /* 4 */
    cai_sim_set_context(sim, c2);                   /* whatever is current */
    CHECK_INT(cuda->memory_free(sim, m), 0);        /* 5, 6 */
    CHECK_STR(order, "A");
    cai_sim_operation_get(sim, 5, &op);
    CHECK(op.kind == CAI_SIM_OP_SYNCHRONIZE && op.wait_count == 1 && op.waits[0] == 4);
    CHECK_STR(op.name, "memory_free");
    cai_sim_operation_get(sim, 6, &op);
    CHECK(op.kind == CAI_SIM_OP_FREE && op.stream == 0 && op.accesses[0].address == m);
    cai_sim_set_context(sim, c1);
    launch_on(2, "B", h);
    CHECK_INT(cuda->host_free(sim, h), 0);
    CHECK_STR(order, "AB");
    CHECK_INT(cai_sim_pending(sim), 1);
    CHECK_INT(cai_sim_free(sim, allocate(8)), 0); /* (S) that of the test does not */
    CHECK_INT(cai_sim_pending(sim), 1);
    cai_sim_run(sim);
    CHECK_STR(order, "ABX");
    finish();
}

static void test_free_in_stream_order(void)
{
    uint64_t s, t, m, e;
    cai_sim_operation op;
    start("memory_free_async is an operation of the stream");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    e = event();
    m = allocate_async(16, s);
    launch_on(s, "A", m);
    cai_sim_log_clear(sim);
    CHECK_INT(cuda->memory_free_async(sim, m, s), 0);
    CHECK_INT(cai_sim_pending(sim), 3);
    CHECK_INT(memory_of(m), CAI_MEMORY_DEVICE); /* (S) until it runs */
    CHECK_INT(cuda->memory_free_async(sim, m, s), 1);
    CHECK_INT(cuda->memory_free(sim, m), 1);
    CHECK_INT(cai_sim_free(sim, m), 1);
    expect_log("memory_free_async m1 s1\npointer_info m1 -> device 0 none\nmemory_free_async m1 s1 ! 1\n"
               "memory_free m1 ! 1\n");
    expect_leaks(3, "streams: s1 s2; events: e1");
    cai_sim_operation_get(sim, 3, &op);
    CHECK(op.kind == CAI_SIM_OP_FREE && op.state == CAI_SIM_STATE_QUEUED && op.waits[0] == 2);
    CHECK(op.stream != 0 && op.accesses[0].address == m && op.accesses[0].bytes == 16);
    cai_sim_operation_get(sim, 1, &op);
    CHECK(op.kind == CAI_SIM_OP_ALLOC && op.state == CAI_SIM_STATE_QUEUED && op.stream != 0);
    CHECK_INT(cai_sim_step(sim, s) + cai_sim_step(sim, s) + cai_sim_step(sim, s), 3);
    CHECK_STR(order, "A");
    CHECK_INT(memory_of(m), CAI_MEMORY_HOST);
    m = allocate_async(16, s);
    launch_on(t, "B", m);
    cuda->event_record(sim, e, t);
    cuda->stream_wait_event(sim, s, e); /* ordered: whatever comes first */
    CHECK_INT(cuda->memory_free_async(sim, m, s), 0);
    CHECK_INT(cuda->stream_synchronize(sim, s), 0);
    CHECK_STR(order, "AB");
    m = allocate_async(16, s);
    CHECK_INT(cuda->memory_free_async(sim, m, s), 0);
    launch_on(t, "C", m); /* not ordered: it may come late, or early */
    CHECK_INT(cuda->stream_synchronize(sim, s), 0);
    CHECK_INT(cuda->stream_synchronize(sim, t), 700);
    CHECK_STR(order, "AB");
    finish();
}

static void test_alloc_in_stream_order(void)
{
    uint64_t s, t, m;
    start("memory_alloc_async is an operation of the stream");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    m = allocate_async(16, s);
    CHECK_INT(memory_of(m), CAI_MEMORY_DEVICE);
    launch_on(t, "A", m); /* not ordered: lucky if the allocation comes first */
    CHECK_INT(cai_sim_step(sim, s), 1);
    CHECK_INT(cuda->stream_synchronize(sim, t), 0);
    CHECK_STR(order, "A");
    CHECK_INT(cuda->memory_free_async(sim, m, s), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    m = allocate_async(16, s);
    CHECK_INT(cuda->memory_free(sim, m), 0); /* waits until it is there */
    CHECK_INT(cai_sim_pending(sim), 0);
    CHECK_INT(memory_of(m), CAI_MEMORY_HOST);
    m = allocate_async(16, s);
    launch_on(t, "B", m);
    CHECK_INT(cuda->stream_synchronize(sim, t), 700);
    CHECK_STR(order, "A");
    finish();
}

static void test_free_that_does_not_run(void)
{
    uint64_t s, m, h, own;
    start("memory_free_async, and the context goes");
    own = cai_sim_context_create(sim, 0);
    s = stream_on(own, 1);
    m = allocate_async(16, s); /* (D) a handle of a stream needs no context */
    CHECK_INT(cuda->memory_free_async(sim, m, s), 0);
    CHECK(cai_sim_bytes(sim, m) != NULL);
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    CHECK(cai_sim_bytes(sim, m) == NULL); /* it counts as having run */
    CHECK_INT(cuda->memory_free_async(sim, m, s), 709);
    expect_leaks(0, "");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->context_synchronize(sim), 0); /* (D) the pool held it until then */
    expect_free((uint64_t)1 << 40, (uint64_t)1 << 40);
    finish();
    start("memory, and an error of the device");
    cai_sim_set_context(sim, c1);
    m = allocate_async(16, 1);
    s = allocate(16);
    CHECK_INT(cuda->memory_free_async(sim, m, 1), 0);
    CHECK_INT(cuda->host_alloc(sim, &h, 8, 0), 0);
    CHECK_INT(cuda->host_register(sim, (uint64_t)(uintptr_t)order, 8, 0), 0);
    cai_sim_set_device_error(sim, 0, 719);
    CHECK_INT(cai_sim_run(sim), 2);
    CHECK(cai_sim_bytes(sim, m) != NULL); /* dropped */
    CHECK_INT(cuda->memory_alloc(sim, &own, 8), 719);
    CHECK_INT(cuda->memory_alloc_async(sim, &own, 8, 1), 719);
    CHECK_INT(cuda->host_alloc(sim, &own, 8, 0), 719);
    CHECK_INT(cuda->host_register(sim, (uint64_t)(uintptr_t)order, 8, 0), 719);
    CHECK_INT(memory_call(9, 0), 719);
    CHECK_INT(memory_call(10, s), 719);
    CHECK_INT(cuda->memory_free_async(sim, s, 1), 719);
    CHECK_INT(cuda->host_free(sim, h), 719); /* it is reported, and it is freed */
    CHECK_INT(cuda->host_unregister(sim, (uint64_t)(uintptr_t)order), 719);
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->memory_free(sim, s), 719); /* that of its own context, too */
    expect_leaks(0, "");
    finish();
}

static void test_allocation_and_captures(void)
{
    uint64_t s, t, m, p;
    int32_t i, mode = CAI_SIM_MODE_RELAXED;
    for (i = 0; i < 7; i++) { /* (D) of memory_alloc, (S) of the others */
        start("calls that are potentially unsafe");
        cai_sim_set_context(sim, c1);
        s = stream_on(c1, 1);
        m = i == 3 ? cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 8)
                   : cai_sim_alloc(sim, i == 5 ? CAI_SIM_MEM_REGISTERED : CAI_SIM_MEM_DEVICE, 8);
        cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL);
        mode = CAI_SIM_MODE_RELAXED;
        CHECK_INT(cuda->capture_mode(sim, &mode), 0);
        CHECK_INT(memory_call(i == 0 ? 2 : 0, m), 0);
        CHECK_INT(capture_status(s), CAI_CAPTURE_ACTIVE);
        CHECK_INT(cuda->capture_mode(sim, &mode), 0);
        CHECK_INT(memory_call(i, m), 900);
        CHECK_INT(capture_status(s), CAI_CAPTURE_INVALIDATED);
        expect_leaks(4, "streams: s1; allocations: m1 m2; captures: 1"); /* it did nothing */
        finish();
    }
    start("(S) memory of graphs is not modelled");
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    p = allocate_async(8, t);
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_GLOBAL);
    CHECK_INT(cuda->memory_alloc_async(sim, &m, 8, t), 900); /* (R) unsafe beside a capture, too */
    CHECK_INT(cuda->memory_free_async(sim, p, t), 900);
    CHECK_INT(capture_status(s), CAI_CAPTURE_INVALIDATED);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED);
    m = allocate_async(8, t);
    CHECK_INT(cuda->memory_free_async(sim, m, t), 0);
    CHECK_INT(capture_status(s), CAI_CAPTURE_ACTIVE);
    CHECK_INT(cuda->memory_alloc_async(sim, &m, 8, s), 900);
    CHECK_INT(cuda->memory_alloc_async(sim, &m, 8, s), 900);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED);
    CHECK_INT(cuda->memory_free_async(sim, p, s), 900);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    s = stream_on(c1, 0);
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED);
    CHECK_INT(cuda->memory_alloc_async(sim, &m, 8, 1), 906);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    CHECK_INT(cuda->memory_free_async(sim, p, s), 0);
    finish();
}

static void test_memory_limit(void)
{
    uint64_t m = 7, p, g, other = 7;
    start("the memory of a device");
    CHECK_INT(cuda->memory_info(sim, &m, &other), 201);
    CHECK_UINT(m + other, 0);
    cai_sim_set_context(sim, c1);
    expect_free((uint64_t)1 << 40, (uint64_t)1 << 40);
    cai_sim_set_memory(sim, 0, 1000);
    cai_sim_set_memory(sim, 2, 1);
    cai_sim_set_memory(sim, -1, 1);
    m = allocate(500);
    p = allocate_async(300, 1);
    CHECK_INT(cuda->managed_alloc(sim, &other, 201, 1), 2);
    CHECK_INT(cuda->managed_alloc(sim, &g, 200, 1), 0);
    expect_free(0, 1000);
    CHECK_INT(cuda->memory_alloc(sim, &other, 1), 2);
    CHECK_UINT(other, 0);
    CHECK_INT(cuda->memory_alloc_async(sim, &other, 1, 1), 2);
    CHECK_UINT(cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 1), 0);
    CHECK_INT(cai_sim_clear_error(sim), 2);
    CHECK_INT(cuda->host_alloc(sim, &other, 5000, 0), 0); /* not of the device */
    CHECK(cai_sim_alloc(sim, CAI_SIM_MEM_VIRTUAL, 5000) != 0);
    cai_sim_set_context(sim, c2); /* another device */
    expect_free((uint64_t)1 << 40, (uint64_t)1 << 40);
    CHECK_INT(cuda->memory_free(sim, m), 0);
    cai_sim_set_context(sim, c1);
    expect_free(500, 1000);
    CHECK_INT(cuda->memory_free_async(sim, p, 1), 0);
    expect_free(500, 1000); /* not before it runs */
    CHECK_INT(cuda->memory_alloc_async(sim, &p, 501, 1), 2);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 0);
    expect_free(800, 1000);
    cai_sim_set_memory(sim, 0, 100); /* less than there is in use */
    expect_free(0, 100);
    CHECK_INT(cai_sim_free(sim, g), 0);
    cai_sim_log_clear(sim);
    expect_free(100, 100);
    expect_log("memory_info -> 100 100\n");
    CHECK_INT(cuda->memory_alloc(sim, &m, 100), 0);
    expect_free(0, 100);
    CHECK_INT(cai_sim_context_destroy(sim, c1), 0);
    expect_free(100, 100);
    finish();
}

static void test_host_registered(void)
{
    static unsigned char block[64];
    const uint64_t h = (uint64_t)(uintptr_t)block;
    uint64_t pinned, m;
    cai_cuda_pointer info;
    start("host memory that is registered");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->host_register(sim, h, 64, 0), 0);
    CHECK_INT(cuda->pointer_info(sim, h + 63, &info), 0);
    CHECK(info.memory == CAI_MEMORY_PINNED && info.context == c1 && info.device_pointer == 0);
    CHECK(cai_sim_bytes(sim, h) == block);
    expect_leaks(1, "allocations: m1");
    CHECK_INT(cuda->host_register(sim, h + 16, 16, 0), 712); /* (D) any part of it */
    CHECK_INT(cuda->host_register(sim, h - 16, 17, 0), 712);
    CHECK_INT(cuda->host_free(sim, h), 1);
    CHECK_INT(cuda->memory_free(sim, h), 1);
    CHECK_INT(cuda->host_unregister(sim, h + 1), 713);
    launch_on(1, "A", h);
    CHECK_INT(cuda->host_unregister(sim, h), 0);
    CHECK_STR(order, ""); /* (S) it does not wait */
    CHECK_INT(cuda->host_unregister(sim, h), 713); /* (D) */
    CHECK_INT(memory_of(h), CAI_MEMORY_HOST);
    CHECK_INT(cuda->host_register(sim, h + 32, 16, 2), 0);
    CHECK_INT(cuda->host_register(sim, h + 48, 16, 2), 0); /* side by side */
    CHECK_INT(cuda->host_register(sim, h, 32, 2), 0);      /* again, and mapped */
    CHECK_INT(cuda->pointer_info(sim, h + 8, &info), 0);
    CHECK_UINT(info.device_pointer, h + 8);
    expect_log("host_register 64 flags 0 -> m1\npointer_info m1+63 -> pinned 0 c1\n"
               "host_register 16 flags 0 ! 712\nhost_register 17 flags 0 ! 712\nhost_free m1 ! 1\n"
               "memory_free m1 ! 1\nhost_unregister m1+1 ! 713\nhost_unregister m1\n"
               "host_unregister m1 ! 713\npointer_info m1 -> host -1 none\nhost_register 16 flags 2 -> m2\n"
               "host_register 16 flags 2 -> m3\nhost_register 32 flags 2 -> m4\n"
               "pointer_info m4+8 -> pinned 0 c1\n");
    CHECK_INT(cuda->stream_synchronize(sim, 1), 0); /* A finds the memory that is registered now */
    CHECK_INT(cuda->host_unregister(sim, h), 0);
    launch_on(1, "B", h);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 700);
    CHECK_STR(order, "A");
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->host_register(sim, 0, 16, 0), 1);
    CHECK_INT(cuda->host_register(sim, h, 0, 0), 1);
    CHECK_INT(cuda->host_register(sim, h, UINT64_MAX, 0), 1);
    CHECK_INT(cuda->host_register(sim, h, 16, 16), 1);
    CHECK_INT(cuda->host_alloc(sim, &pinned, 16, 0), 0);
    CHECK_INT(cuda->host_register(sim, pinned + 8, 8, 0), 712); /* (S) */
    CHECK_INT(cuda->host_unregister(sim, pinned), 713);
    m = allocate(16);
    CHECK_INT(cuda->host_register(sim, m, 8, 0), 1);
    CHECK_INT(cuda->host_unregister(sim, cai_sim_alloc(sim, CAI_SIM_MEM_REGISTERED, 8)), 0);
    finish();
}

/* Two simulations play two processes: `sim` exports, `other` opens. */
static void test_other_process(void)
{
    cai_sim *other = cai_sim_create(1);
    const cai_cuda *there = cai_sim_cuda(other);
    unsigned char handle[65], again[65];
    uint64_t m, opened = 7, twice = 7, out = 7, size = 7;
    start("memory of another process");
    CHECK_INT(cai_sim_set_context(sim, c1) + cai_sim_set_context(other, cai_sim_primary(other, 0)), 0);
    m = allocate(100);
    *(unsigned char *)cai_sim_bytes(sim, m) = 42;
    memset(handle, 0x77, sizeof handle);
    memset(again, 0x77, sizeof again);
    CHECK_INT(cuda->ipc_export(sim, m, handle), 0);
    CHECK_INT(cuda->ipc_export(sim, m + 99, again), 0); /* of the whole allocation */
    CHECK_BYTES(handle, again, 65);
    CHECK_INT(handle[64], 0x77);
    CHECK_INT(cuda->ipc_export(sim, allocate(1), again), 0);
    CHECK(memcmp(handle, again, 64) != 0);
    CHECK_INT(cuda->ipc_open(sim, handle, &opened), 201); /* (R) in its own process */
    CHECK_UINT(opened, 0);
    CHECK_INT(there->ipc_open(other, handle, &opened), 0);
    CHECK_INT(*(const unsigned char *)cai_sim_bytes(other, opened), 42);
    CHECK_INT(there->pointer_range(other, opened + 99, &out, &size), 0);
    CHECK_UINT(size, 100);
    CHECK_INT(there->ipc_open(other, handle, &twice), 0); /* (D) counted */
    CHECK_UINT(twice, opened);
    CHECK_INT(there->memory_free(other, opened), 1);
    CHECK_INT(there->ipc_export(other, opened, again), 1);
    CHECK_INT(there->ipc_close(other, opened + 1), 1);
    CHECK_INT(there->ipc_close(other, opened), 0);
    CHECK_INT(cai_sim_leaks(other, NULL, 0), 1);
    CHECK_INT(there->ipc_close(other, opened), 0);
    CHECK_INT(there->ipc_close(other, opened), 1);
    CHECK(cai_sim_bytes(other, opened) == NULL);
    CHECK_STR(cai_sim_log(other), "ipc_open -> m1\npointer_range m1+99 -> m1 100\nipc_open -> m1\n"
                                  "memory_free m1 ! 1\nipc_export m1 ! 1\nipc_close m1+1 ! 1\nipc_close m1\n"
                                  "ipc_close m1\nipc_close m1 ! 1\n");
    expect_log("memory_alloc 100 -> m1\nipc_export m1\nipc_export m1+99\nmemory_alloc 1 -> m2\n"
               "ipc_export m2\nipc_open ! 201\n");
    CHECK_INT(cai_sim_leaks(other, NULL, 0), 0);
    CHECK_INT(cuda->ipc_close(sim, m), 1);
    CHECK_INT(there->memory_info(other, &out, &size), 0);
    CHECK_UINT(out, size); /* (S) it does not count */
    CHECK_INT(there->ipc_open(other, handle, &opened), 0);
    CHECK(cai_sim_bytes(other, opened) != NULL);
    cai_sim_set_device_error(other, 0, 719);
    CHECK_INT(there->ipc_close(other, opened), 719);
    CHECK_INT(cai_sim_leaks(other, NULL, 0), 0);
    cai_sim_destroy(other);
    finish();
}

static void test_other_process_second_device(void)
{
    cai_sim *other = cai_sim_create(2);
    unsigned char handle[64];
    cai_cuda_pointer info;
    uint64_t opened = 7;
    start("memory of another process, on its second device");
    cai_sim_set_context(sim, c2);
    CHECK_INT(cai_sim_set_context(other, cai_sim_primary(other, 0)), 0);
    CHECK_INT(cuda->ipc_export(sim, allocate(8), handle), 0);
    CHECK_INT(cai_sim_cuda(other)->ipc_open(other, handle, &opened), 0);
    CHECK_INT(cai_sim_cuda(other)->pointer_info(other, opened, &info), 0);
    CHECK(info.memory == CAI_MEMORY_DEVICE && info.device == 1 && info.context == cai_sim_primary(other, 0));
    cai_sim_destroy(other);
    finish();
}

static void test_other_process_refused(void)
{
    cai_sim *other = cai_sim_create(1);
    const cai_cuda *there = cai_sim_cuda(other);
    unsigned char handle[64];
    uint64_t m, kept, opened = 0, own;
    cai_sim_access access;
    int32_t kind;
    start("memory of another process: refused");
    CHECK_INT(cai_sim_set_context(sim, c1) + cai_sim_set_context(other, cai_sim_primary(other, 0)), 0);
    for (kind = CAI_SIM_MEM_MANAGED; kind <= CAI_SIM_MEM_ARRAY; kind++)
        CHECK_INT(cuda->ipc_export(sim, cai_sim_alloc(sim, kind, 8), handle), 1);
    CHECK_INT(cuda->ipc_export(sim, 8, handle), 1);
    CHECK_INT(there->ipc_open(other, handle, &opened), 1); /* no handle */
    m = allocate(8);
    kept = allocate(8);
    CHECK_INT(cuda->ipc_export(sim, m, handle), 0);
    CHECK_INT(cuda->memory_free(sim, m), 0);
    CHECK_INT(cuda->ipc_export(sim, m, handle), 1);
    CHECK_INT(cuda->ipc_export(sim, kept, handle), 0);
    CHECK_INT(there->ipc_open(other, handle, &opened), 0);
    own = cai_sim_context_create(other, 0);
    CHECK_INT(cai_sim_set_context(other, own), 0);
    CHECK_INT(there->ipc_open(other, handle, &m), 208); /* (S) one context of a device */
    CHECK_UINT(m, 0);
    access = cai_sim_reads(opened, 8);
    CHECK_INT(cai_sim_launch(other, 1, "A", letter, &order[60], &access, 1), 0);
    CHECK_INT(cai_sim_context_synchronize(other), 0);
    CHECK_INT(cuda->memory_free(sim, kept), 0);
    CHECK_INT(cai_sim_launch(other, 1, "B", letter, &order[60], &access, 1), 0);
    CHECK_INT(cai_sim_context_synchronize(other), 700); /* (S) undefined in CUDA */
    CHECK_INT(cai_sim_set_context(other, cai_sim_primary(other, 0)), 0);
    CHECK_INT(there->ipc_close(other, opened), 0);
    CHECK_INT(there->ipc_open(other, handle, &opened), 1); /* freed meanwhile */
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->ipc_export(sim, allocate(8), handle), 0);
    CHECK_INT(there->ipc_open(other, handle, &opened), 101); /* the other one has one device */
    cai_sim_destroy(other);
    finish();
}

static void test_uuid(void)
{
    cai_sim *other = cai_sim_create(CAI_SIM_DEVICES);
    unsigned char here[17], there[17];
    start("UUIDs of devices");
    memset(here, 0x77, sizeof here);
    memset(there, 0x77, sizeof there);
    CHECK_INT(cuda->device_uuid(sim, 1, here), 0);
    CHECK_INT(cai_sim_cuda(other)->device_uuid(other, 1, there), 0);
    CHECK_BYTES(here, there, 17); /* the same device for every process */
    CHECK_INT(here[16], 0x77);
    CHECK_INT(cai_sim_cuda(other)->device_uuid(other, CAI_SIM_DEVICES - 1, there), 0);
    CHECK(memcmp(here, there, 16) != 0);
    CHECK_INT(cuda->device_uuid(sim, 2, here), 101);
    CHECK_INT(here[0] | here[15], 0);
    CHECK_INT(cuda->device_uuid(sim, -1, here), 101);
    expect_log("device_uuid 1\ndevice_uuid 2 ! 101\ndevice_uuid -1 ! 101\n");
    cai_sim_destroy(other);
    finish();
}

static void test_allocation_faults(void)
{
    static const char *const names[MEMORY_CALLS] = {
        "memory_alloc", "memory_free", "host_alloc", "host_free", "host_register", "host_unregister",
        "managed_alloc", "memory_alloc_async", "memory_free_async", "memory_info", "ipc_export", "ipc_open",
        "ipc_close", "device_uuid", "copy_async", "copy_3d_async", "set_async", "set_2d_async",
        "copy_peer_async", "copy_3d_peer_async"};
    unsigned char handle[64];
    uint64_t m = 7;
    int32_t i;
    start("allocation that is made to fail");
    cai_sim_set_context(sim, c1);
    for (i = 0; i < MEMORY_CALLS; i++) {
        CHECK_INT(cai_sim_fail_op(sim, names[i], 1, 5), 1);
        CHECK_INT(memory_call(i, 1), 5);
        CHECK_INT(cai_sim_omit_op(sim, names[i], 1), 1);
        CHECK_INT(memory_call(i, 1), 0);
        CHECK_INT(cai_sim_calls_of(sim, names[i]), 2);
    }
    expect_leaks(0, "");
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(cai_sim_fail(sim, 1, 2), 1);
    CHECK_INT(cuda->memory_alloc(sim, &m, 8), 2);
    CHECK_UINT(m, 0);
    CHECK_INT(cai_sim_omit(sim, 1), 1);
    memset(handle, 0x77, sizeof handle);
    CHECK_INT(cuda->ipc_export(sim, 8, handle), 0);
    CHECK_INT(handle[0] | handle[63], 0);
    finish();
}

/* ------------------------------------------------------------------- copies */

/* Memory of a kind by a letter: pageable, pinned, managed, device. 64 bytes. */
static uint64_t place(char kind, unsigned char fill)
{
    static unsigned char pageable[4][64];
    static int next;
    const int32_t of = kind == 'h' ? CAI_SIM_MEM_PINNED : kind == 'm' ? CAI_SIM_MEM_MANAGED : CAI_SIM_MEM_DEVICE;
    unsigned char *bytes = pageable[next++ % 4];
    uint64_t address = (uint64_t)(uintptr_t)bytes;
    if (kind != 'p') address = cai_sim_alloc(sim, of, 64);
    if (kind != 'p') bytes = (unsigned char *)cai_sim_bytes(sim, address);
    memset(bytes, fill, 64);
    return address;
}

static int byte_at(uint64_t address)
{
    const unsigned char *bytes = (const unsigned char *)cai_sim_bytes(sim, address);
    return bytes != NULL ? *bytes : *(const unsigned char *)(uintptr_t)address;
}

/* What has happened when a copy returns: '-' nothing, 'w' the work before it in the stream, 's' also what was to
 * be copied is read, 'd' it is done. */
static char copy_returns(char to_kind, char from_kind, int async)
{
    const uint64_t stream = async ? cai_sim_stream_create(sim, 1) : CAI_STREAM_LEGACY;
    const uint64_t to = place(to_kind, 1), from = place(from_kind, 7);
    char result = '-';
    order[0] = 0;
    CHECK_INT(launch(stream, "A"), 0);
    if (async) CHECK_INT(cai_sim_copy_async(sim, to, from, 64, stream), 0);
    else CHECK_INT(cai_sim_copy(sim, to, from, 64, stream), 0);
    if (order[0]) result = byte_at(to) == 7 ? 'd' : 'w';
    if (result != 'd') { /* the source changes before the copy runs */
        if (from_kind == 'p') *(unsigned char *)(uintptr_t)from = 9;
        else *(unsigned char *)cai_sim_bytes(sim, from) = 9;
        cai_sim_run(sim);
        if (byte_at(to) == 7) result = 's';
        else CHECK_INT(byte_at(to), 9);
    }
    CHECK_INT(byte_at(to + 63), 7);
    CHECK_INT(cai_sim_pending(sim), 0);
    return result;
}

/* Each line: to, from, and what has happened when a copy returns: synchronous, asynchronous, and both with
 * CAI_SIM_COPY_RETURNS. From CUDA's page "API synchronization behavior". */
static void test_copy_returns(void)
{
    static const char *const lines[] = {"pp dddd", "ph dddd", "hp dddd", "hh dddd", "dd ----", "dp dds-",
                                        "dh d-d-", "pd ddd-", "hd d-d-", "mm dd--", "md d---", "dm d---",
                                        "mp dds-", "pm ddd-", "mh ddd-", "hm ddd-"};
    size_t i;
    int k;
    for (i = 0; i < sizeof lines / sizeof *lines; i++) {
        start_with(lines[i], 0);
        cai_sim_set_context(sim, c1);
        for (k = 0; k < 4; k++) {
            cai_sim_set_options(sim, k < 2 ? 0 : CAI_SIM_COPY_RETURNS);
            CHECK_INT(copy_returns(lines[i][0], lines[i][1], k % 2), lines[i][3 + k]);
        }
        finish();
    }
}

static cai_sim_rows rows_at(uint64_t address, uint64_t pitch, uint64_t plane)
{
    cai_sim_rows rows;
    rows.address = address;
    rows.pitch = pitch;
    rows.plane = plane;
    return rows;
}

static cai_sim_extent extent_of(uint64_t width, uint64_t height, uint64_t depth)
{
    cai_sim_extent extent;
    extent.width = width;
    extent.height = height;
    extent.depth = depth;
    return extent;
}

/* 2 planes of 3 rows of 4 bytes, out of rows of 8 into rows of 5. */
static void test_copy_rows(void)
{
    uint64_t to, from, y, z, x;
    unsigned char *source;
    cai_sim_rows into, out_of;
    const cai_sim_extent extent = extent_of(4, 3, 2);
    cai_sim_operation op;
    start("copies: rows and planes");
    to = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    from = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    source = (unsigned char *)cai_sim_bytes(sim, from);
    for (x = 0; x < 64; x++) source[x] = (unsigned char)(x + 1);
    into = rows_at(to, 5, 15);
    out_of = rows_at(from + 2, 8, 24);
    CHECK_INT(cai_sim_copy_rows_async(sim, &into, &out_of, &extent, 1), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_INT(op.kind, CAI_SIM_OP_COPY);
    CHECK_STR(op.name, "copy");
    CHECK_INT(op.access_count, 12); /* 6 rows each: neither those of a side, nor its planes, touch */
    CHECK(op.accesses[1].address == from + 10 && op.accesses[1].bytes == 4 && !op.accesses[1].write);
    CHECK(op.accesses[9].address == to + 15 && op.accesses[9].bytes == 4 && op.accesses[9].write);
    CHECK_INT(byte_at(to), 0);
    cai_sim_run(sim);
    for (z = 0; z < 2; z++)
        for (y = 0; y < 3; y++)
            for (x = 0; x < 5; x++)
                CHECK_INT(byte_at(to + 15 * z + 5 * y + x), x == 4 ? 0 : (int)(3 + 24 * z + 8 * y + x));
    CHECK_INT(byte_at(to + 30), 0);
    out_of = rows_at(from, 4, 12); /* one piece each */
    into = rows_at(to, 4, 12);
    CHECK_INT(cai_sim_copy_rows(sim, &into, &out_of, &extent, 1), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_INT(op.access_count, 2);
    CHECK(op.accesses[0].address == from && op.accesses[0].bytes == 24);
    cai_sim_run(sim);
    CHECK_INT(byte_at(to + 23), 24);
    finish();
}

/* The slots do what the functions do, are logged, and want pitch and height also where there is one row. */
static void test_copy_slots(void)
{
    cai_cuda_copy good, copy;
    cai_sim_operation op;
    uint64_t to, from, s;
    size_t i;
    start("copies: the slots of the table");
    to = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    from = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    s = cai_sim_stream_create(sim, 1);
    for (i = 0; i < 64; i++) ((unsigned char *)cai_sim_bytes(sim, from))[i] = (unsigned char)(i + 1);
    good.to = to;
    good.from = from;
    good.to_pitch = 5;
    good.from_pitch = 8;
    good.to_height = 3;
    good.from_height = 4;
    good.width = 4;
    good.height = 3;
    good.depth = 2;
    CHECK_INT(cuda->set_async(sim, to, 0x1ff, 64, s), 0);
    CHECK_INT(cuda->copy_3d_async(sim, &good, s), 0);
    CHECK_INT(cuda->copy_async(sim, to + 40, from, 8, s), 0);
    CHECK_INT(cuda->set_2d_async(sim, to + 50, 4, 0, 2, 3, s), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_STR(op.name, "set");
    CHECK_INT(op.access_count, 3);
    CHECK_INT(byte_at(to), 0); /* none waited */
    cai_sim_run(sim);
    expect_log("set_async m1 511 64 s1\ncopy_3d_async m1 m2 4 3 2 s1\ncopy_async m1+40 m2 8 s1\n"
               "set_2d_async m1+50 0 2 3 s1\n");
    for (i = 0; i < 30; i++)
        CHECK_INT(byte_at(to + i), i % 5 == 4 ? 255 : (int)(1 + i / 15 * 32 + i / 5 % 3 * 8 + i % 5));
    CHECK_INT(byte_at(to + 30), 255);
    CHECK_INT(byte_at(to + 47), 8);
    CHECK(byte_at(to + 50) == 0 && byte_at(to + 52) == 255 && byte_at(to + 59) == 0 && byte_at(to + 60) == 255);
#define REFUSED_COPY(change) (copy = good, change, CHECK_INT(cuda->copy_3d_async(sim, &copy, s), 1))
    REFUSED_COPY((copy.height = copy.depth = 1, copy.to_pitch = 3));
    REFUSED_COPY((copy.height = copy.depth = 1, copy.from_pitch = 3));
    REFUSED_COPY((copy.depth = 1, copy.to_height = 2));
    REFUSED_COPY((copy.depth = 1, copy.from_height = 2));
    REFUSED_COPY(copy.to_height = UINT64_MAX / 4);
    REFUSED_COPY(copy.from_height = UINT64_MAX / 4);
    REFUSED_COPY(copy.to += 36);
    CHECK_INT(cuda->set_2d_async(sim, to, 3, 0, 4, 1, s), 1);
    CHECK_INT(cuda->set_async(sim, to + 1, 0, 64, s), 1);
    CHECK_INT(cuda->copy_async(sim, to + 1, from, 64, s), 1);
    finish();
}

/* Copies between devices are copies: queued, logged, with all accesses. They need access to no pool. */
static void test_peer_slots(void)
{
    const cai_cuda_copy rows = {0, 0, 5, 8, 3, 4, 4, 3, 2};
    cai_cuda_copy good = rows;
    cai_sim_operation op;
    uint64_t to, from, s;
    size_t i;
    start("copies between devices: the slots of the table");
    cai_sim_set_context(sim, c2);
    from = cai_sim_pool_alloc(sim, cai_sim_pool_create(sim, 1), 64, 1);
    cai_sim_context_synchronize(sim);
    cai_sim_set_context(sim, c1);
    to = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    s = cai_sim_stream_create(sim, 1);
    for (i = 0; i < 64; i++) ((unsigned char *)cai_sim_bytes(sim, from))[i] = (unsigned char)(i + 1);
    good.to = to;
    good.from = from;
    cai_sim_log_clear(sim);
    CHECK_INT(cuda->copy_3d_peer_async(sim, &good, c1, c2, s), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_STR(op.name, "copy");
    CHECK_INT(op.access_count, 12);
    CHECK_INT(cuda->copy_peer_async(sim, to + 40, c1, from, c2, 8, s), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_INT(op.access_count, 2);
    CHECK_INT(byte_at(to), 0); /* none waited */
    cai_sim_run(sim);
    expect_log("copy_3d_peer_async m2 c1 m1 c2 4 3 2 s1\ncopy_peer_async m2+40 c1 m1 c2 8 s1\n");
    for (i = 0; i < 30; i++)
        CHECK_INT(byte_at(to + i), i % 5 == 4 ? 0 : (int)(1 + i / 15 * 32 + i / 5 % 3 * 8 + i % 5));
    CHECK(byte_at(to + 30) == 0 && byte_at(to + 40) == 1 && byte_at(to + 47) == 8 && byte_at(to + 48) == 0);
    CHECK_INT(cuda->stream_synchronize(sim, s), 0);
    finish();
}

/* The contexts are those that pointer_info tells of the memory; memory without one is of a device. */
static void test_peer_slots_refused(void)
{
    cai_cuda_copy rows = {0, 0, 8, 8, 1, 1, 8, 1, 1};
    uint64_t here, there, managed, other;
    start("copies between devices that are refused");
    cai_sim_set_context(sim, c2);
    there = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 64);
    cai_sim_set_context(sim, c1);
    here = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    managed = cai_sim_alloc(sim, CAI_SIM_MEM_MANAGED, 64);
    other = cai_sim_context_create(sim, 0);
    rows.to = here;
    rows.from = there;
#define PEER(to, to_context, from, from_context) \
    cuda->copy_peer_async(sim, to, to_context, from, from_context, 64, 1)
    CHECK_INT(PEER(here, c1, there, c2), 0);
    CHECK_INT(PEER(there, c2, here, c1), 0);
    CHECK_INT(PEER(managed, c1, there, c2), 0);
    CHECK_INT(PEER(here, 0, there, c2), 0); /* (R) that of the memory */
    CHECK_INT(PEER(here, c1, there, 7), 201);
    CHECK_INT(PEER(here, c2, there, c2), 1);
    CHECK_INT(PEER(here, other, there, c2), 1);
    CHECK_INT(PEER(here, c1, there, c1), 1);
    CHECK_INT(PEER(here + 1, c1, there, c2), 1);
    CHECK_INT(PEER((uint64_t)(uintptr_t)order, c1, there, c2), 1);
    CHECK_INT(PEER(cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 64), c1, there, c2), 1);
    CHECK_INT(cuda->copy_3d_peer_async(sim, &rows, c1, c2, 1), 0);
    CHECK_INT(cuda->copy_3d_peer_async(sim, &rows, c2, c2, 1), 1);
    CHECK_INT(cuda->copy_3d_peer_async(sim, &rows, c1, other, 1), 1);
    rows.to_pitch = 7;
    CHECK_INT(cuda->copy_3d_peer_async(sim, &rows, c1, c2, 1), 1);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_free(sim, managed), 0);
    CHECK_INT(PEER(managed, c1, there, c2), 1);
    cai_sim_set_device_error(sim, 1, 719);
    CHECK_INT(PEER(here, c1, there, c2), 719);
#undef PEER
    finish();
}

/* A copy that names no contexts finds memory of a pool by way of the current one, or not. */
static void test_copies_of_pools(void)
{
    cai_cuda_copy rows = {0, 0, 8, 8, 1, 1, 8, 1, 1};
    uint64_t pool, here, there, s;
    start("copies of memory of pools");
    cai_sim_set_context(sim, c2);
    pool = cai_sim_pool_create(sim, 1);
    there = cai_sim_pool_alloc(sim, pool, 64, 1);
    cai_sim_context_synchronize(sim);
    cai_sim_set_context(sim, c1);
    here = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    s = cai_sim_stream_create(sim, 1);
    rows.to = here;
    rows.from = there;
    without(CAI_SIM_COPY_NEEDS_ACCESS);
    CHECK_INT(cuda->copy_async(sim, here, there, 64, s), 0);
    cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_COPY_NEEDS_ACCESS);
    CHECK_INT(cuda->copy_async(sim, here, there, 64, s), 1);
    CHECK_INT(cuda->copy_async(sim, there, here, 64, s), 1);
    CHECK_INT(cuda->copy_3d_async(sim, &rows, s), 1);
    CHECK_INT(cuda->copy_peer_async(sim, here, c1, there, c2, 64, s), 0);
    cai_sim_set_context(sim, c2); /* that of the memory; the stream may be of another device */
    CHECK_INT(cuda->copy_async(sim, here, there, 64, s), 0);
    CHECK_INT(cuda->copy_3d_async(sim, &rows, s), 0);
    cai_sim_set_context(sim, 0);
    CHECK_INT(cuda->copy_async(sim, here, there, 64, s), 1);
    cai_sim_set_context(sim, c1);
    CHECK_INT(cai_sim_pool_set_access(sim, pool, 0, 1), 0);
    CHECK_INT(cuda->copy_async(sim, here, there, 64, s), 0);
    cai_sim_run(sim);
    finish();
}

static int32_t copy_of(uint64_t address, uint64_t pitch, uint64_t plane, cai_sim_extent extent)
{
    const cai_sim_rows rows = rows_at(address, pitch, plane);
    const uint64_t count = cai_sim_operation_count(sim);
    const int32_t to = cai_sim_copy_rows_async(sim, &rows, &rows, &extent, 1);
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0, 1, 1), to);
    if (to) CHECK_UINT(cai_sim_operation_count(sim), count);
    return to;
}

static void test_copy_refused(void)
{
    uint64_t m, s;
    cai_sim_rows rows;
    cai_sim_extent extent = extent_of(8, 2, 2);
    start("copies that are refused");
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    s = cai_sim_stream_create(sim, 0);
    rows = rows_at(m, 8, 16);
    CHECK_INT(copy_of(m, 8, 16, extent), 0);
    CHECK_INT(copy_of(m + 32, 8, 16, extent), 0);
    CHECK_INT(copy_of(m + 33, 8, 16, extent), 1);
    CHECK_INT(copy_of(0, 8, 16, extent), 1);
    CHECK_INT(copy_of(m, 7, 16, extent), 1);
    CHECK_INT(copy_of(m, 8, 15, extent), 1);
    CHECK_INT(copy_of(m, 8, 48, extent), 0);
    CHECK_INT(copy_of(m, 8, 49, extent), 1);
    CHECK_INT(copy_of(m, UINT64_MAX / 2 + 1, 16, extent), 1);
    CHECK_INT(copy_of(m, 8, UINT64_MAX / 2 + 1, extent), 1);
    CHECK_INT(copy_of(m, 8, UINT64_MAX / 2, extent), 1);
    CHECK_INT(copy_of(m, 0, 0, extent_of(64, 1, 1)), 0);
    CHECK_INT(copy_of(m, 0, 0, extent_of(65, 1, 1)), 1);
    CHECK_INT(copy_of(m, 0, 0, extent_of(UINT64_MAX, 1, 1)), 1);
    CHECK_INT(copy_of(0, 0, 0, extent_of(0, 1, 1)), 0);
    CHECK_INT(copy_of(0, 0, 0, extent_of(1, 0, 1)), 0);
    CHECK_INT(copy_of(0, 0, 0, extent_of(1, 1, 0)), 0);
    CHECK_INT(cai_sim_copy_rows(sim, NULL, &rows, &extent, 1), 1);
    CHECK_INT(cai_sim_copy_rows(sim, &rows, NULL, &extent, 1), 1);
    CHECK_INT(cai_sim_copy_rows(sim, &rows, &rows, NULL, 1), 1);
    CHECK_INT(cai_sim_set(sim, NULL, &extent, 0, 1, 1), 1);
    CHECK_INT(cai_sim_set(sim, &rows, NULL, 0, 1, 1), 1);
    CHECK_INT(cai_sim_set(sim, &rows, &extent, 0, 3, 1), 1);
    CHECK_INT(cai_sim_copy_async(sim, m, m + 32, 8, 99), 400);
    CHECK_INT(cai_sim_copy(sim, m, m + 32, 8, 0), 400);
    CHECK_INT(cai_sim_last_error(sim), 400);
    CHECK_INT(cai_sim_stream_destroy(sim, s), 0);
    CHECK_INT(cai_sim_copy(sim, m, m + 32, 8, s), 400);
    CHECK_INT(cai_sim_copy_async(sim, m, m + 32, 8, 1), 0);
    CHECK_INT(cai_sim_free(sim, m), 0);
    CHECK_INT(cai_sim_copy(sim, m, m + 32, 8, 1), 1);
    CHECK_INT(cai_sim_context_synchronize(sim), 700); /* the one before the free */
    finish();
}

static void test_copy_captured(void)
{
    uint64_t m, s, t, e;
    cai_sim_rows rows;
    const cai_sim_extent extent = extent_of(8, 1, 1);
    cai_sim_operation op;
    start("copies and captures");
    m = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 64);
    rows = rows_at(m, 0, 0);
    s = cai_sim_stream_create(sim, 1);
    t = cai_sim_stream_create(sim, 1);
    e = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_THREAD_LOCAL), 0);
    CHECK_INT(cai_sim_event_record(sim, e, s), 0);
    CHECK_INT(cai_sim_stream_wait_event(sim, t, e), 0);
    CHECK_INT(cai_sim_copy_async(sim, m, m + 32, 8, t), 0); /* host to host: it does not wait here */
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_INT(op.state, CAI_SIM_STATE_CAPTURED);
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0, 1, s), 0);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 904); /* the copy is not joined */
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_THREAD_LOCAL), 0);
    CHECK_INT(cai_sim_copy(sim, m, m + 32, 8, t), 900); /* this thread captures */
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cai_sim_copy(sim, m, m + 32, 8, t), 0);
    CHECK_INT(cai_sim_set(sim, &rows, &extent, 0, 1, s), 900);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    finish();
}

static void test_copy_devices(void)
{
    uint64_t one, two, s, aliased, info_of;
    cai_cuda_pointer info;
    start("copies between devices, and in a stream of another one");
    cai_sim_set_context(sim, c2);
    two = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    s = cai_sim_stream_create(sim, 1);
    cai_sim_set_context(sim, c1);
    one = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    memset(cai_sim_bytes(sim, two), 5, 64);
    cai_sim_set_peer_access(sim, 0, 1, 0);
    cai_sim_set_peer_access(sim, 1, 0, 0);
    CHECK_INT(cai_sim_copy_async(sim, one, two, 64, s), 0);
    CHECK_INT(cai_sim_copy(sim, one, two, 64, 1), 0);
    CHECK_INT(byte_at(one), 0);
    CHECK_INT(cai_sim_run(sim), 2);
    CHECK_INT(byte_at(one), 5);
    CHECK_INT(cai_sim_context_synchronize(sim), 0);
    aliased = cai_sim_alloc(sim, CAI_SIM_MEM_ALIASED, 64); /* by the address that devices use */
    CHECK_INT(cuda->pointer_info(sim, aliased, &info), 0);
    info_of = info.device_pointer;
    CHECK(info_of != aliased);
    CHECK_INT(cai_sim_copy(sim, info_of + 8, one, 8, 1), 0);
    CHECK_INT(byte_at(aliased + 8), 5);
    CHECK_INT(byte_at(aliased + 7), 0);
    CHECK_INT(cuda->host_register(sim, (uint64_t)(uintptr_t)order, 16, 0), 0); /* without an address for devices */
    CHECK_INT(cai_sim_copy(sim, (uint64_t)(uintptr_t)order, one, 16, 1), 0);
    CHECK_INT(order[15], 5);
    CHECK_INT(cuda->host_unregister(sim, (uint64_t)(uintptr_t)order), 0);
    finish();
}

/* Does the host wait for a set of memory of a kind? */
static int set_waits(char kind, int async)
{
    const uint64_t m = place(kind, 1);
    const cai_sim_rows rows = rows_at(m, 0, 0);
    const cai_sim_extent extent = extent_of(64, 1, 1);
    int waited;
    if (async) CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0x304, 1, 1), 0);
    else CHECK_INT(cai_sim_set(sim, &rows, &extent, 0x304, 1, 1), 0);
    waited = byte_at(m) == 4;
    cai_sim_run(sim);
    CHECK_INT(byte_at(m), 4);
    return waited;
}

static void test_set(void)
{
    static const unsigned char expected[] = {2, 1, 2, 1, 0, 0, 2, 1, 2, 1, 0, 0, 0, 0, 0, 0};
    uint64_t m;
    uint32_t option;
    cai_sim_rows rows;
    cai_sim_extent extent = extent_of(4, 2, 1);
    cai_sim_operation op;
    for (option = 0; option <= CAI_SIM_COPY_RETURNS; option += CAI_SIM_COPY_RETURNS) {
        start_with("sets", option);
        CHECK_INT(set_waits('d', 0), 0);
        CHECK_INT(set_waits('h', 0), 1);
        CHECK_INT(set_waits('m', 0), 1);
        CHECK_INT(set_waits('d', 1) + set_waits('h', 1) + set_waits('m', 1), 0);
        finish();
    }
    start("sets: units and rows");
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    rows = rows_at(m, 6, 0);
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0xff0102, 2, 1), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK(op.kind == CAI_SIM_OP_COPY && op.access_count == 2 && op.accesses[1].address == m + 6);
    CHECK_STR(op.name, "set");
    cai_sim_run(sim);
    CHECK(memcmp(cai_sim_bytes(sim, m), expected, sizeof expected) == 0);
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0, 4, 1), 1); /* the pitch */
    rows.pitch = 8;
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0x04030201, 4, 1), 0);
    extent.width = 6;
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0, 4, 1), 1);
    rows.address += 2;
    extent.width = 4;
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0, 4, 1), 1);
    extent = extent_of(4, 1, 2);
    rows = rows_at(m, 8, 6);
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0, 4, 1), 1);
    rows = rows_at((uint64_t)(uintptr_t)order, 8, 8);
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 0, 1, 1), 1); /* pageable */
    cai_sim_run(sim);
    CHECK_INT(byte_at(m + 11), 4);
    CHECK_INT(byte_at(m + 4), 0);
    finish();
}

/* ------------------------------------------------------------------ errors */

static void test_device_error(void)
{
    uint64_t s, t, e, f, m, out, own;
    int32_t device;
    cai_cuda_capture capture;
    cai_cuda_pointer info;
    start("G18: a pending error of a device");
    s = stream_on(c1, 0);
    t = stream_on(c2, 0);
    own = cai_sim_context_create(sim, 0);
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    e = event();
    f = event();
    cuda->event_record(sim, e, s);
    launch(s, "A");
    cai_sim_set_device_error(sim, 0, 719);
    CHECK_INT(cuda->event_query(sim, e), 719);
    CHECK_INT(cuda->event_synchronize(sim, e), 719);
    CHECK_INT(cuda->event_record(sim, e, s), 719);
    CHECK_INT(cuda->stream_wait_event(sim, s, e), 719);
    CHECK_INT(cuda->stream_wait_event(sim, t, e), 719);
    CHECK_INT(cuda->stream_synchronize(sim, s), 719);
    CHECK_INT(cuda->stream_id(sim, s, &out), 719);
    CHECK_INT(cuda->context_synchronize(sim), 719);
    CHECK_INT(cuda->event_create(sim, &out), 719);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    CHECK_INT(cuda->pointer_range(sim, m, &out, &out), 719);
    CHECK_INT(cuda->stream_context(sim, s, &out), 719);
    CHECK_INT(cuda->stream_capture(sim, s, &capture), 719);
    CHECK_INT(cuda->context_device(sim, &device), 0);
    CHECK_INT(launch(s, "B"), 719);
    CHECK_UINT(cai_sim_alloc(sim, 0, 8), 0);
    CHECK_INT(cai_sim_run(sim), 2);
    CHECK_STR(order, "");
    CHECK_INT(cuda->event_destroy(sim, f), 719); /* destroyed all the same */
    expect_leaks(5, "streams: s1 s2; events: e1; allocations: m1; contexts: c3");
    CHECK_INT(cuda->context_push(sim, own), 0);
    CHECK_INT(cuda->context_synchronize(sim), 719); /* all contexts of the device */
    CHECK_INT(cuda->context_pop(sim), 0);
    cai_sim_set_context(sim, c2);
    CHECK_INT(cuda->stream_synchronize(sim, t), 0); /* not those of others */
    CHECK_INT(cuda->event_create(sim, &out), 0);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0); /* but that memory is on it */
    cai_sim_set_device_error(sim, 0, 0);
    CHECK_INT(cuda->event_query(sim, e), 0);
    finish();
}

static void test_last_error(void)
{
    start("errors and the last error of a host thread");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->stream_synchronize(sim, 77), 400);
    CHECK_INT(cai_sim_last_error(sim), 0); /* G12: as the driver */
    CHECK_INT(cai_sim_stream_synchronize(sim, 77), 400);
    CHECK_INT(cai_sim_last_error(sim), 400); /* as the runtime */
    CHECK_INT(cai_sim_stream_synchronize(sim, 1), 0);
    CHECK_INT(cai_sim_last_error(sim), 400);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_last_error(sim), 0);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_sim_clear_error(sim), 400);
    CHECK_INT(cai_sim_clear_error(sim), 0);
    finish();
}

static void test_teardown(void)
{
    uint64_t out = 7;
    int32_t number = 7;
    cai_cuda_capture capture;
    cai_cuda_pointer info;
    start("R105, W31: the process ends");
    cai_sim_set_context(sim, c1);
    cai_sim_teardown(sim);
    CHECK_INT(cuda->context_current(sim, &out), 4);
    CHECK_UINT(out, 0);
    CHECK_INT(cuda->context_push(sim, c1), 4);
    CHECK_INT(cuda->context_pop(sim), 4);
    CHECK_INT(cuda->context_synchronize(sim), 4);
    CHECK_INT(cuda->context_device(sim, &number), 4);
    CHECK_INT(cuda->device_context(sim, 0, &out), 4);
    CHECK_INT(cuda->stream_context(sim, 1, &out), 4);
    CHECK_INT(cuda->stream_capture(sim, 1, &capture), 4);
    CHECK_INT(cuda->stream_id(sim, 1, &out), 4);
    CHECK_INT(cuda->stream_wait_event(sim, 1, 1), 4);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 4);
    CHECK_INT(cuda->event_create(sim, &out), 4);
    CHECK_INT(cuda->event_destroy(sim, 1), 4);
    CHECK_INT(cuda->event_record(sim, 1, 1), 4);
    CHECK_INT(cuda->event_query(sim, 1), 4);
    CHECK_INT(cuda->event_synchronize(sim, 1), 4);
    number = 2;
    CHECK_INT(cuda->capture_mode(sim, &number), 4);
    CHECK_INT(number, 2);
    CHECK_INT(cuda->pointer_info(sim, 1, &info), 4);
    CHECK_INT(cuda->pointer_range(sim, 1, &out, &out), 4);
    CHECK_INT(cuda->device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &number), 4);
    for (number = 0; number < MEMORY_CALLS; number++) CHECK_INT(memory_call(number, 1), 4);
    CHECK_INT(cuda->host_thread(sim, &out), 0);
    CHECK_INT(cai_sim_calls(sim), 20 + MEMORY_CALLS);
    CHECK_UINT(cai_sim_current(sim), c1);
    expect_leaks(0, "");
    finish();
}

/* ------------------------------------------------------------------ log, faults, leaks */

/* Returns a stream, and in *event_gone the handle of an event that was destroyed. */
static uint64_t log_of_calls(uint64_t *event_gone)
{
    uint64_t s, e, out, m, base, size;
    int32_t number;
    cai_cuda_capture capture;
    cai_cuda_pointer info;
    cuda->context_current(sim, &out);
    cuda->context_push(sim, c2);
    cuda->context_current(sim, &out);
    cuda->context_device(sim, &number);
    cuda->device_context(sim, 1, &out);
    cuda->context_synchronize(sim);
    s = cai_sim_stream_create(sim, 1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1024);
    cuda->stream_context(sim, s, &out);
    cuda->stream_capture(sim, s, &capture);
    cuda->stream_id(sim, s, &out);
    cuda->event_create(sim, &e);
    cuda->event_record(sim, e, s);
    cuda->stream_wait_event(sim, 2, e);
    cuda->event_query(sim, e);
    cuda->event_synchronize(sim, e);
    cuda->event_query(sim, e);
    cuda->stream_synchronize(sim, 1);
    cuda->event_destroy(sim, e);
    cuda->pointer_info(sim, m, &info);
    cuda->pointer_range(sim, m + 5, &base, &size);
    cuda->host_thread(sim, &out); /* not logged */
    cuda->context_pop(sim);
    expect_log("context_current -> none\n"
               "context_push c2\n"
               "context_current -> c2\n"
               "context_device -> 1\n"
               "device_context 1 -> c2\n"
               "context_synchronize\n"
               "stream_context s1 -> c2\n"
               "stream_capture s1 -> none\n"
               "stream_id s1 -> 3\n"
               "event_create -> e1\n"
               "event_record e1 s1\n"
               "stream_wait_event per_thread e1\n"
               "event_query e1 -> not_ready\n"
               "event_synchronize e1\n"
               "event_query e1 -> done\n"
               "stream_synchronize legacy\n"
               "event_destroy e1\n"
               "pointer_info m1 -> device 1 c2\n"
               "pointer_range m1+5 -> m1 1024\n"
               "context_pop\n");
    *event_gone = e;
    return s;
}

static void log_of_captures_and_errors(uint64_t s, uint64_t event_gone)
{
    cai_cuda_capture capture;
    int32_t number;
    cai_sim_capture_begin(sim, s, CAI_SIM_MODE_THREAD_LOCAL);
    cuda->stream_capture(sim, s, &capture);
    number = 1;
    cuda->capture_mode(sim, &number);
    number = 2;
    cuda->capture_mode(sim, &number);
    cuda->capture_mode(sim, &number);
    number = 5;
    cuda->capture_mode(sim, &number);
    cuda->stream_synchronize(sim, s);
    cuda->stream_capture(sim, s, &capture);
    cuda->event_record(sim, 66, 0xabc);
    cuda->device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &number);
    cai_sim_set_device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
    cuda->device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &number);
    cuda->device_attribute(sim, -4, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &number);
    cuda->context_push(sim, 0x12);
    cuda->event_destroy(sim, event_gone); /* a name outlives its object */
    expect_log("stream_capture s1 -> active 1\n"
               "capture_mode thread_local -> global\n"
               "capture_mode relaxed -> thread_local\n"
               "capture_mode thread_local -> relaxed\n"
               "capture_mode 5 ! 1\n"
               "stream_synchronize s1 ! 900\n"
               "stream_capture s1 -> invalidated\n"
               "event_record 0x42 0xabc ! 400\n"
               "device_attribute 0 88 -> 0\n"
               "device_attribute 0 88 -> 1\n"
               "device_attribute -4 88 ! 101\n"
               "context_push 0x12 ! 201\n"
               "event_destroy e1 ! 400\n");
}

static void test_log(void)
{
    uint64_t s, event_gone;
    start("the log");
    without(CAI_SIM_PROGRESS);
    s = log_of_calls(&event_gone);
    log_of_captures_and_errors(s, event_gone);
    finish();
}

static void test_counts(void)
{
    uint64_t e;
    start("counting calls");
    cai_sim_set_context(sim, c1);
    e = event();
    cuda->event_record(sim, e, 1);
    cuda->event_record(sim, e, 1);
    cuda->stream_wait_event(sim, 2, e);
    cuda->event_query(sim, e);
    cuda->event_synchronize(sim, e);
    cuda->stream_synchronize(sim, 1);
    cuda->context_synchronize(sim);
    cuda->event_destroy(sim, e);
    cai_sim_stream_synchronize(sim, 1); /* the test's own calls do not count */
    CHECK_INT(cai_sim_calls(sim), 9);
    CHECK_INT(cai_sim_ordering_calls(sim), 8);
    CHECK_INT(cai_sim_calls_of(sim, "event_record"), 2);
    CHECK_INT(cai_sim_calls_of(sim, "context_pop"), 0);
    CHECK_INT(cai_sim_calls_of(sim, "no_such_call"), -1);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_sim_calls(sim) + cai_sim_ordering_calls(sim), 0);
    CHECK_STR(cai_sim_log(sim), "");
    finish();
}

static void test_test_side_events(void)
{
    uint64_t e;
    start("events by the test's own hand");
    e = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_event_query(sim, e), 0);
    launch(1, "A");
    CHECK_INT(cai_sim_event_record(sim, e, 1), 0);
    CHECK_INT(cai_sim_event_query(sim, e), 600);
    CHECK_INT(cai_sim_clear_error(sim), 600); /* the runtime keeps that, too */
    CHECK_INT(cai_sim_stream_wait_event(sim, 2, e), 0);
    CHECK_INT(cai_sim_event_synchronize(sim, e), 0);
    CHECK_STR(order, "A");
    CHECK_INT(cai_sim_context_synchronize(sim), 0);
    CHECK_INT(cai_sim_pending(sim), 0);
    CHECK_INT(cai_sim_event_destroy(sim, e), 0);
    CHECK_INT(cai_sim_event_destroy(sim, e), 400);
    expect_log("");
    finish();
}

static void test_faults(void)
{
    uint64_t e, f = 7, out;
    int32_t i;
    start("faults");
    without(CAI_SIM_PROGRESS);
    cai_sim_set_context(sim, c1);
    e = event();
    cai_sim_log_clear(sim);
    CHECK_INT(cai_sim_fail(sim, 2, 700), 1);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 2, 719), 1);
    CHECK_INT(cai_sim_faults(sim), 2);
    CHECK_INT(cuda->event_record(sim, e, 1), 0);
    CHECK_INT(cuda->event_create(sim, &f), 700);
    CHECK_UINT(f, 0);
    CHECK_INT(cuda->event_query(sim, e), 600);
    CHECK_INT(cuda->event_record(sim, e, 1), 719);
    CHECK_INT(cai_sim_faults(sim), 0);
    CHECK_INT(cai_sim_pending(sim), 1); /* it did nothing */
    CHECK_INT(cuda->event_record(sim, e, 1), 0);
    expect_log("event_record e1 legacy\nevent_create ! 700\nevent_query e1 -> not_ready\n"
               "event_record e1 legacy ! 719\nevent_record e1 legacy\n");
    CHECK_INT(cai_sim_last_error(sim), 0);
    CHECK_INT(cai_sim_break(sim, 2, 0, 719), 1); /* a device that breaks */
    CHECK_INT(cai_sim_break(sim, 2, -1, 719), 0);
    CHECK_INT(cai_sim_break(sim, 0, 0, 719), 0);
    CHECK_INT(cuda->event_record(sim, e, 1), 0);
    CHECK_INT(cuda->event_record(sim, e, 1), 719);
    CHECK_INT(cuda->event_query(sim, e), 719);
    CHECK_INT(cai_sim_faults(sim), 0);
    expect_log("event_record e1 legacy\nevent_record e1 legacy ! 719\nevent_query e1 ! 719\n");
    cai_sim_set_device_error(sim, 0, 0);
    CHECK_INT(cai_sim_omit(sim, 1), 1);
    CHECK_INT(cai_sim_omit_op(sim, "event_destroy", 1), 1);
    CHECK_INT(cuda->context_current(sim, &out), 0);
    CHECK_UINT(out, 0);
    CHECK_INT(cuda->event_destroy(sim, e), 0);
    CHECK_INT(cuda->context_current(sim, &out), 0);
    CHECK_UINT(out, c1);
    expect_log("context_current (omitted)\nevent_destroy e1 (omitted)\ncontext_current -> c1\n");
    expect_leaks(1, "events: e1");
    CHECK_INT(cai_sim_fail(sim, 0, 1), 0);
    CHECK_INT(cai_sim_fail_op(sim, "event_recrod", 1, 1), 0);
    CHECK_INT(cai_sim_omit_op(sim, "", 1), 0);
    for (i = 0; i < 16; i++) CHECK_INT(cai_sim_fail(sim, 100, 1), 1);
    CHECK_INT(cai_sim_fail(sim, 100, 1), 0);
    cai_sim_faults_clear(sim);
    CHECK_INT(cai_sim_faults(sim), 0);
    cai_sim_fail_op(sim, "event_query", 1, 600);
    CHECK_INT(cuda->event_query(sim, e), 600);
    cai_sim_fail(sim, 1, 4);
    CHECK_INT(cuda->context_pop(sim), 4);
    CHECK_UINT(cai_sim_current(sim), c1);
    finish();
}

static void test_missing_answers(void)
{
    uint64_t out;
    start("nowhere to put the answer");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cuda->context_current(sim, NULL), 1);
    CHECK_INT(cuda->context_device(sim, NULL), 1);
    CHECK_INT(cuda->device_context(sim, 0, NULL), 1);
    CHECK_INT(cuda->stream_context(sim, 1, NULL), 1);
    CHECK_INT(cuda->stream_capture(sim, 1, NULL), 1);
    CHECK_INT(cuda->stream_id(sim, 1, NULL), 1);
    CHECK_INT(cuda->event_create(sim, NULL), 1);
    CHECK_INT(cuda->capture_mode(sim, NULL), 1);
    CHECK_INT(cuda->pointer_info(sim, 1, NULL), 1);
    CHECK_INT(cuda->pointer_range(sim, 1, NULL, &out), 1);
    CHECK_INT(cuda->pointer_range(sim, 1, &out, NULL), 1);
    CHECK_INT(cuda->device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, NULL), 1);
    CHECK_INT(cuda->memory_alloc(sim, NULL, 8), 1);
    CHECK_INT(cuda->memory_alloc_async(sim, NULL, 8, 1), 1);
    CHECK_INT(cuda->host_alloc(sim, NULL, 8, 0), 1);
    CHECK_INT(cuda->managed_alloc(sim, NULL, 8, 1), 1);
    CHECK_INT(cuda->memory_info(sim, NULL, &out), 1);
    CHECK_INT(cuda->memory_info(sim, &out, NULL), 1);
    CHECK_INT(cuda->ipc_export(sim, 8, NULL), 1);
    CHECK_INT(cuda->ipc_open(sim, NULL, &out), 1);
    CHECK_INT(cuda->ipc_open(sim, order, NULL), 1);
    CHECK_INT(cuda->device_uuid(sim, 0, NULL), 1);
    CHECK_INT(cuda->copy_3d_async(sim, NULL, 1), 1);
    CHECK_INT(cuda->copy_3d_peer_async(sim, NULL, 1, 1, 1), 1);
    expect_leaks(0, "");
    finish();
}

static void test_table_copy(void)
{
    uint64_t out = 0;
    cai_cuda poor;
    start("a copy of the table with a slot less");
    poor = *cai_sim_cuda(sim);
    poor.stream_id = NULL;
    CHECK_INT(poor.context_push(poor.self, c1), 0);
    CHECK_INT(poor.context_current(poor.self, &out), 0);
    CHECK_UINT(out, c1);
    CHECK(cuda->stream_id != NULL);
    finish();
}

static void test_leaks(void)
{
    char text[12];
    start("leaks");
    cai_sim_set_context(sim, c1);
    stream_on(c1, 0);
    cai_sim_stream_destroy(sim, stream_on(c1, 0));
    stream_on(c1, 0);
    event();
    cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 1);
    cai_sim_context_create(sim, 1);
    cuda->context_push(sim, c2);
    cai_sim_capture_begin(sim, 2, CAI_SIM_MODE_RELAXED);
    cai_sim_host_thread(sim, 9);
    cuda->context_push(sim, c2);
    expect_leaks(8, "streams: s1 s3; events: e1; allocations: m1; contexts: c3; captures: 1; "
                    "context stack: 2");
    CHECK_INT(cai_sim_leaks(sim, NULL, 0), 8);
    CHECK_INT(cai_sim_leaks(sim, text, sizeof text), 8);
    CHECK_STR(text, "streams: s1");
    finish();
}

/* ------------------------------------------------------------------ work that does what it says */

/* Fills 8 bytes, lets `name` touch them in a stream, or on the host (0), and returns them. */
static uint64_t left_by(uint64_t stream, const char *name, uint64_t m, int32_t fill,
                        const cai_sim_access *read)
{
    uint64_t left;
    cai_sim_access access[2];
    access[0] = cai_sim_writes(m, 8);
    if (read != NULL) access[1] = *read;
    memset(cai_sim_bytes(sim, m), fill, 8);
    if (stream) {
        CHECK_INT(cai_sim_touch(sim, stream, name, access, read != NULL ? 2 : 1), 0);
        CHECK_INT(cuda->stream_synchronize(sim, stream), 0);
    } else {
        CHECK_INT(cai_sim_host_touch(sim, name, access, read != NULL ? 2 : 1), 0);
    }
    memcpy(&left, cai_sim_bytes(sim, m), 8);
    return left;
}

/* What is left depends on the name, on what was there, on what is read and on who it is, and nothing else. */
static void check_left(uint64_t stream, uint64_t m, uint64_t n)
{
    cai_sim_access read = cai_sim_reads(n, 16);
    const uint64_t left = left_by(stream, "A", m, 0, NULL);
    unsigned char *bytes = (unsigned char *)cai_sim_bytes(sim, n);
    uint64_t reading;
    CHECK(left != 0);
    CHECK_UINT(left_by(stream, "A", m, 0, NULL), left);
    CHECK(left_by(stream, "B", m, 0, NULL) != left);
    CHECK(left_by(stream, NULL, m, 0, NULL) != left);
    CHECK(left_by(stream, "A", m, 1, NULL) != left);
    reading = left_by(stream, "A", m, 0, &read);
    CHECK(reading != left);
    CHECK_UINT(left_by(stream, "A", m, 0, &read), reading);
    bytes[15] ^= 1;
    CHECK(left_by(stream, "A", m, 0, &read) != reading);
    bytes[15] ^= 1;
    CHECK_UINT(left_by(stream, "A", m, 0, &read), reading);
}

static void test_touch(void)
{
    uint64_t s, t, m, n, left;
    cai_sim_access access[2];
    cai_sim_operation op;
    unsigned char *bytes;
    start("work that does what it says");
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    n = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 16);
    bytes = (unsigned char *)cai_sim_bytes(sim, m);
    check_left(s, m, n);
    check_left(1, m, n);
    left = left_by(s, "A", m, 0, NULL);
    CHECK(left != left_by(t, "A", m, 0, NULL));
    cai_sim_host_thread(sim, 5); /* who queued it is nothing */
    cai_sim_set_context(sim, c1);
    CHECK_UINT(left_by(s, "A", m, 0, NULL), left);
    CHECK(bytes[8] == 0 && bytes[15] == 0); /* not beyond what it says */
    access[0] = cai_sim_reads(m, 16);
    CHECK_INT(cai_sim_touch(sim, s, "reads", access, 1), 0);
    access[0].bytes = 4; /* it has its own copy */
    cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op);
    CHECK(op.kind == CAI_SIM_OP_LAUNCH && op.state == CAI_SIM_STATE_QUEUED && op.accesses[0].bytes == 16);
    CHECK_STR(op.name, "reads");
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_BYTES(bytes, &left, 8);
    access[0] = cai_sim_writes(n, 8);
    access[1] = cai_sim_writes(n + 8, 8);
    memset(cai_sim_bytes(sim, n), 0, 16);
    CHECK_INT(cai_sim_touch(sim, s, "two", access, 2), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK(memcmp(cai_sim_bytes(sim, n), cai_sim_bytes(sim, n + 8), 8) != 0);
    access[0] = cai_sim_writes((uint64_t)(uintptr_t)order, 8); /* no memory of the simulation: left alone */
    CHECK_INT(cai_sim_touch(sim, s, "elsewhere", access, 1), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_STR(order, "");
    CHECK_INT(cai_sim_touch(sim, s, "x", NULL, 1), 1);
    CHECK_INT(cai_sim_touch(sim, s, "x", access, -1), 1);
    CHECK_INT(cai_sim_touch(sim, 0xabc, "x", NULL, 0), 400);
    CHECK_INT(cai_sim_clear_error(sim), 400); /* as a call of the runtime */
    CHECK_INT(cai_sim_touch(sim, s, NULL, NULL, 0), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    expect_leaks(4, "streams: s1 s2; allocations: m1 m2");
    finish();
}

static void test_touch_that_does_not_run(void)
{
    uint64_t s, m;
    cai_sim_access write;
    start("work that does what it says, and does not run");
    s = stream_on(c1, 1);
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 8);
    write = cai_sim_writes(m, 8);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cai_sim_touch(sim, s, "A", &write, 1), 0);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 0);
    CHECK_INT(cai_sim_run(sim), 0);
    CHECK_INT(*(const unsigned char *)cai_sim_bytes(sim, m), 0);
    write = cai_sim_writes(m, 9);
    CHECK_INT(cai_sim_touch(sim, s, "A", &write, 1), 0);
    CHECK_INT(cuda->stream_synchronize(sim, s), 700); /* over the end */
    CHECK_INT(*(const unsigned char *)cai_sim_bytes(sim, m), 0);
    finish();
}

static void test_touch_kinds_of_memory(void)
{
    static unsigned char own[8];
    uint64_t m;
    cai_sim_access write;
    cai_cuda_pointer info;
    start("work that does what it says, under the address for devices");
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_ALIASED, 8);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    write = cai_sim_writes(info.device_pointer + 4, 4);
    CHECK_INT(cai_sim_touch(sim, 1, "A", &write, 1), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK(memcmp(cai_sim_bytes(sim, m + 4), own, 4) != 0);
    CHECK_BYTES(cai_sim_bytes(sim, m), own, 4);
    CHECK_INT(cuda->host_register(sim, (uint64_t)(uintptr_t)own, 8, 2), 0);
    write = cai_sim_writes((uint64_t)(uintptr_t)own, 4);
    CHECK_INT(cai_sim_touch(sim, 1, "A", &write, 1), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK((own[0] | own[1] | own[2] | own[3]) != 0 && (own[4] | own[5] | own[6] | own[7]) == 0);
    CHECK_INT(cuda->host_unregister(sim, (uint64_t)(uintptr_t)own), 0);
    memset(own, 0, sizeof own);
    write = cai_sim_writes(info.device_pointer, 8);
    CHECK_INT(cai_sim_touch(sim, 1, "A", &write, 1), 0);
    CHECK_INT(cai_sim_free(sim, m), 0);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 700); /* freed, under that address, too */
    finish();
    start("work beyond its memory, under the address for devices");
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_ALIASED, 8);
    CHECK_INT(cuda->pointer_info(sim, m, &info), 0);
    write = cai_sim_writes(info.device_pointer + 4, 5);
    CHECK_INT(cai_sim_touch(sim, 1, "A", &write, 1), 0);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 700);
    finish();
}

static void test_host_touch(void)
{
    uint64_t m, n, left;
    cai_sim_access write;
    cai_sim_operation op;
    start("a host that does what it says");
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 16);
    n = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 16);
    write = cai_sim_writes(m, 8);
    check_left(0, m, n);
    left = left_by(0, "A", m, 0, NULL);
    CHECK(left != left_by(1, "A", m, 0, NULL)); /* the host is not a stream */
    cai_sim_host_thread(sim, 5);
    CHECK(left != left_by(0, "A", m, 0, NULL));
    cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op);
    CHECK(op.kind == CAI_SIM_OP_HOST_ACCESS && op.state == CAI_SIM_STATE_DONE && op.stream == 0);
    CHECK(op.thread == 5 && op.access_count == 1 && op.accesses[0].write == 1);
    CHECK_STR(op.name, "A");
    memcpy(&left, cai_sim_bytes(sim, m), 8);
    CHECK_INT(cai_sim_host_access(sim, "A", &write, 1), 0); /* says so, and changes nothing */
    CHECK_BYTES(cai_sim_bytes(sim, m), &left, 8);
    CHECK_INT(cai_sim_host_touch(sim, "A", NULL, 1), 1);
    CHECK_INT(cai_sim_host_touch(sim, "A", &write, -1), 1);
    CHECK_BYTES(cai_sim_bytes(sim, m), &left, 8);
    CHECK_INT(cai_sim_host_touch(sim, NULL, NULL, 0), 0);
    finish();
}

/* ------------------------------------------------------------------ two host threads, names, places */

static void test_publish(void)
{
    uint64_t published, again, count;
    cai_sim_operation op;
    start("what one host thread tells another");
    cai_sim_host_thread(sim, 1);
    launch(1, "A");
    published = cai_sim_publish(sim);
    CHECK_UINT(published, cai_sim_operation_count(sim));
    CHECK_INT(cai_sim_operation_get(sim, published, &op), 1);
    CHECK(op.kind == CAI_SIM_OP_PUBLISH && op.thread == 1 && op.stream == 0 && op.wait_count == 0);
    CHECK(op.state == CAI_SIM_STATE_DONE && op.access_count == 0);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_observe(sim, published), 0);
    CHECK_INT(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op), 1);
    CHECK(op.kind == CAI_SIM_OP_OBSERVE && op.thread == 2 && op.stream == 0);
    CHECK(op.wait_count == 1 && op.waits[0] == published);
    CHECK_INT(cai_sim_observe(sim, published), 0); /* as often as it likes */
    again = cai_sim_publish(sim);
    CHECK(again > published);
    count = cai_sim_operation_count(sim);
    CHECK_INT(cai_sim_observe(sim, 0), 1);
    CHECK_INT(cai_sim_observe(sim, published - 1), 1); /* the launch */
    CHECK_INT(cai_sim_observe(sim, published + 1), 1); /* the observation */
    CHECK_INT(cai_sim_observe(sim, again + 1), 1);
    CHECK_INT(cai_sim_observe(sim, UINT64_MAX), 1);
    CHECK_UINT(cai_sim_operation_count(sim), count);
    CHECK_INT(cai_sim_pending(sim), 1); /* nothing ran for it */
    expect_log("");
    finish();
}

static uint64_t id_of(uint64_t stream)
{
    uint64_t id = 0;
    CHECK_INT(cuda->stream_id(sim, stream, &id), 0);
    return id;
}

static void check_stream_name(uint64_t id, const char *expected)
{
    char text[40];
    memset(text, 'x', sizeof text);
    cai_sim_stream_name(sim, id, text, sizeof text);
    CHECK_STR(text, expected);
}

static void test_stream_names(void)
{
    uint64_t s, t, legacy;
    char text[4] = "xxx";
    start("names of streams");
    s = stream_on(c2, 1);
    t = stream_on(c1, 0);
    cai_sim_set_context(sim, c1);
    check_stream_name(id_of(s), "s1");
    check_stream_name(id_of(t), "s2");
    legacy = id_of(1);
    check_stream_name(legacy, "legacy");
    cai_sim_host_thread(sim, 1);
    cai_sim_set_context(sim, c1);
    check_stream_name(id_of(2), "per_thread");
    CHECK_UINT(id_of(1), legacy); /* that of the context, not of the thread */
    cai_sim_host_thread(sim, 3);
    cai_sim_set_context(sim, c1);
    check_stream_name(id_of(2), "per_thread 3");
    cai_sim_set_context(sim, c2);
    check_stream_name(id_of(1), "legacy c2");
    check_stream_name(id_of(2), "per_thread 3 c2");
    check_stream_name(0, "");
    check_stream_name(12345, "");
    cai_sim_stream_name(sim, legacy, text, sizeof text);
    CHECK_STR(text, "leg");
    cai_sim_stream_name(sim, legacy, text, 1);
    CHECK_STR(text, "");
    strcpy(text, "yes");
    cai_sim_stream_name(sim, legacy, text, 0);
    CHECK_STR(text, "yes");
    cai_sim_stream_name(sim, legacy, NULL, 4);
    legacy = id_of(s); /* a name outlives its stream, also where the handle comes back */
    cai_sim_recycle_handles(sim, 1);
    CHECK_INT(cai_sim_stream_destroy(sim, s), 0);
    check_stream_name(legacy, "s1");
    CHECK_UINT(stream_on(c2, 1), s);
    check_stream_name(legacy, "s1");
    check_stream_name(id_of(s), "s3");
    finish();
}

static void test_other_names(void)
{
    uint64_t e, m, n;
    char text[40];
    start("names of events and memory");
    cai_sim_set_context(sim, c1);
    e = event();
    cai_sim_event_name(sim, e, text, sizeof text);
    CHECK_STR(text, "e1");
    cai_sim_event_name(sim, event(), text, sizeof text);
    CHECK_STR(text, "e2");
    CHECK_INT(cuda->event_destroy(sim, e), 0);
    cai_sim_event_name(sim, e, text, sizeof text);
    CHECK_STR(text, "e1");
    cai_sim_event_name(sim, 0x2f, text, sizeof text);
    CHECK_STR(text, "0x2f");
    cai_sim_event_name(sim, e, text, 2);
    CHECK_STR(text, "e");
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1024);
    n = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 16);
    cai_sim_memory_name(sim, m, 1024, text, sizeof text);
    CHECK_STR(text, "m1[0, 1024)");
    cai_sim_memory_name(sim, n + 4, 8, text, sizeof text);
    CHECK_STR(text, "m2[4, 12)");
    CHECK_INT(cai_sim_free(sim, m), 0);
    cai_sim_memory_name(sim, m + 1, 0, text, sizeof text);
    CHECK_STR(text, "m1[1, 1)");
    cai_sim_memory_name(sim, 0x10, 16, text, sizeof text);
    CHECK_STR(text, "memory[0x10, 0x20)");
    cai_sim_memory_name(sim, n, 16, text, 6);
    CHECK_STR(text, "m2[0,");
    finish();
}

static void check_place(uint64_t address, int32_t number, uint64_t expected)
{
    uint64_t offset = 99;
    CHECK_INT(cai_sim_memory_at(sim, address, &offset), number);
    if (number) CHECK_UINT(offset, expected);
    CHECK_INT(cai_sim_memory_at(sim, address, NULL), number);
}

static void test_memory_at(void)
{
    uint64_t m, aliased;
    char text[40];
    cai_cuda_pointer info;
    start("the allocation around an address");
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 100);
    aliased = cai_sim_alloc(sim, CAI_SIM_MEM_ALIASED, 50);
    check_place(m, 1, 0);
    check_place(m + 99, 1, 99);
    check_place(m + 100, 0, 0);
    check_place(m - 1, 0, 0);
    check_place(0, 0, 0);
    check_place(aliased + 49, 2, 49);
    CHECK_INT(cuda->pointer_info(sim, aliased, &info), 0);
    CHECK(info.device_pointer != aliased);
    check_place(info.device_pointer, 2, 0);
    check_place(info.device_pointer + 49, 2, 49);
    check_place(info.device_pointer + 50, 0, 0);
    check_place(info.device_pointer - 1, 0, 0);
    cai_sim_memory_name(sim, info.device_pointer + 10, 5, text, sizeof text);
    CHECK_STR(text, "m2[10, 15)");
    CHECK_INT(cai_sim_free(sim, m), 0);
    CHECK_INT(cai_sim_free(sim, aliased), 0);
    check_place(m + 5, 1, 5); /* it was one */
    check_place(info.device_pointer + 5, 2, 5);
    finish();
}

static void test_registered_memory_at(void)
{
    static unsigned char own[64];
    const uint64_t mine = (uint64_t)(uintptr_t)own;
    start("the registration around an address");
    cai_sim_set_context(sim, c1);
    check_place(mine, 0, 0);
    CHECK_INT(cuda->host_register(sim, mine, 32, 0), 0);
    check_place(mine + 31, 1, 31);
    check_place(mine + 32, 0, 0);
    CHECK_INT(cuda->host_unregister(sim, mine), 0);
    check_place(mine, 1, 0);
    CHECK_INT(cuda->host_register(sim, mine, 64, 2), 0);
    check_place(mine + 1, 2, 1); /* the last one */
    CHECK_INT(cuda->host_unregister(sim, mine), 0);
    finish();
}

/* ------------------------------------------------------------------ the fingerprint */

enum {
    RUN_AS_CALLED,
    RUN_AGAIN,        /* the same once more */
    RUN_OTHERWISE,    /* the two writers in the other order */
    RUN_READER_LATE,  /* the reader after the second writer of what it reads */
    RUN_FREED,        /* as called, and freed then */
    RUN_FREED_OTHERWISE,
    RUN_HOST_LATE,    /* the host reads at the end, not at first */
    RUN_HOST_WRITES,
    RUN_BYTES,        /* as called, and a byte of memory changed then */
    RUN_ERROR,        /* as called, and an error then */
    RUN_ERROR_2,      /* on the other device */
    RUN_ANOTHER_ERROR,
    RUNS
};

static void run_in_order(const uint64_t *streams, const char *which)
{
    for (; *which; which++) CHECK_INT(cai_sim_step(sim, streams[*which - '0']), 1);
}

/* Two writers, 0 and 1, of the same memory, a third (2) of other memory; 3 reads the first. */
static uint64_t fingerprint_of(int32_t how)
{
    static const char *const orders[RUNS] = {"0123", "0123", "1023", "0213", "0123", "1023", "0123", "0123",
                                             "0123", "0123", "0123", "0123"};
    uint64_t streams[4], m, n, fingerprint;
    cai_sim_access access;
    int32_t i;
    start("the fingerprint");
    cai_sim_set_context(sim, c1);
    for (i = 0; i < 4; i++) streams[i] = cai_sim_stream_create(sim, 1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 8);
    n = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 24);
    access = cai_sim_reads(m, 8);
    if (how != RUN_HOST_LATE) CHECK_INT(cai_sim_host_access(sim, "look", &access, 1), 0);
    for (i = 0; i < 4; i++) {
        access = i < 2 ? cai_sim_writes(m, 8) : i == 2 ? cai_sim_writes(n, 8) : cai_sim_reads(n, 8);
        CHECK_INT(cai_sim_touch(sim, streams[i], "touch", &access, 1), 0);
    }
    if (how == RUN_READER_LATE) run_in_order(streams, "0132");
    else run_in_order(streams, orders[how]);
    access = how == RUN_HOST_WRITES ? cai_sim_writes(n + 16, 8) : cai_sim_reads(m, 8);
    if (how == RUN_HOST_LATE) CHECK_INT(cai_sim_host_access(sim, "look", &access, 1), 0);
    if (how == RUN_HOST_WRITES) CHECK_INT(cai_sim_host_touch(sim, "write", &access, 1), 0);
    if (how == RUN_FREED || how == RUN_FREED_OTHERWISE) CHECK_INT(cai_sim_free(sim, m), 0);
    if (how == RUN_BYTES) ++*(unsigned char *)cai_sim_bytes(sim, n + 23);
    if (how == RUN_ERROR) cai_sim_set_device_error(sim, 0, 700);
    if (how == RUN_ERROR_2) cai_sim_set_device_error(sim, 1, 700);
    if (how == RUN_ANOTHER_ERROR) cai_sim_set_device_error(sim, 0, 719);
    fingerprint = cai_sim_fingerprint(sim);
    CHECK_UINT(cai_sim_fingerprint(sim), fingerprint);
    finish();
    return fingerprint;
}

static void test_fingerprint(void)
{
    uint64_t prints[RUNS];
    int32_t i, k;
    for (i = 0; i < RUNS; i++) prints[i] = fingerprint_of(i);
    cai_test_note("the fingerprint");
    CHECK_UINT(prints[RUN_AGAIN], prints[RUN_AS_CALLED]);
    CHECK_UINT(prints[RUN_FREED], prints[RUN_AS_CALLED]); /* freed memory counts */
    CHECK_UINT(prints[RUN_FREED_OTHERWISE], prints[RUN_OTHERWISE]);
    for (i = 0; i < RUNS; i++) {
        if (i == RUN_AGAIN || i == RUN_FREED || i == RUN_FREED_OTHERWISE) continue;
        for (k = 0; k < i; k++) {
            if (k == RUN_AGAIN || k == RUN_FREED || k == RUN_FREED_OTHERWISE) continue;
            CHECK(prints[i] != prints[k]);
        }
    }
}

/* The order in which things that do not meet are run, or made, is nothing. */
static uint64_t fingerprint_apart(int32_t how)
{
    uint64_t streams[2], m[2], fingerprint;
    cai_sim_access access;
    int32_t i;
    start("the fingerprint of what does not meet");
    cai_sim_set_context(sim, c1);
    for (i = 0; i < 2; i++) streams[i] = cai_sim_stream_create(sim, 1);
    for (i = 0; i < 2; i++) m[i ^ (how & 1)] = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, i ^ (how & 1) ? 8 : 16);
    for (i = 0; i < 2; i++) {
        access = cai_sim_writes(m[i], 8);
        CHECK_INT(cai_sim_touch(sim, streams[i], "touch", &access, 1), 0);
    }
    run_in_order(streams, how & 2 ? "10" : "01");
    fingerprint = cai_sim_fingerprint(sim);
    finish();
    return fingerprint;
}

static void test_fingerprint_apart(void)
{
    const uint64_t first = fingerprint_apart(0);
    int32_t how;
    for (how = 1; how < 4; how++) CHECK_UINT(fingerprint_apart(how), first);
}

static void expect_errors(int32_t count, const char *text)
{
    char got[200];
    CHECK_INT(cai_sim_errors(sim, got, sizeof got), count);
    CHECK_STR(got, text);
    CHECK_INT(cai_sim_errors(sim, NULL, 0), count);
}

static void test_errors_left(void)
{
    uint64_t out;
    char text[12];
    start("errors that are there");
    expect_errors(0, "");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cai_sim_stream_destroy(sim, 0xabc), 400);
    expect_errors(1, "host: error 400");
    CHECK_INT(cai_sim_clear_error(sim), 400);
    expect_errors(0, "");
    CHECK_INT(cuda->event_destroy(sim, 0xabc), 400); /* the table leaves none behind */
    CHECK_INT(cuda->stream_context(sim, 0xabc, &out), 400);
    expect_errors(0, "");
    cai_sim_set_device_error(sim, 1, 719);
    expect_errors(1, "context c2: error 719");
    cai_sim_set_device_error(sim, 0, 700);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, 0xabc), 201);
    cai_sim_host_thread(sim, 3);
    CHECK_INT(cai_sim_free(sim, 1), 1);
    expect_errors(4, "context c1: error 700; context c2: error 719; host: error 201; host: error 1");
    CHECK_INT(cai_sim_errors(sim, text, sizeof text), 4);
    CHECK_STR(text, "context c1:");
    finish();
    start("errors: not ready is none");
    cai_sim_set_context(sim, c1);
    out = event();
    launch(1, "A");
    CHECK_INT(cai_sim_event_record(sim, out, 1), 0);
    CHECK_INT(cai_sim_event_query(sim, out), 600);
    expect_errors(0, "");
    finish();
}

static void test_salt(void)
{
    uint64_t s, e, id;
    start("handles with salt");
    cai_sim_set_context(sim, c1);
    s = cai_sim_stream_create(sim, 0);
    e = cai_sim_event_create(sim);
    id = id_of(s);
    cai_sim_salt_handles(sim, 5); /* too late */
    CHECK_INT(cuda->stream_synchronize(sim, s), 0);
    CHECK_INT(cuda->event_synchronize(sim, e), 0);
    finish();
    start("handles with salt");
    cai_sim_salt_handles(sim, 4095);
    cai_sim_set_context(sim, c1);
    cai_sim_log_clear(sim);
    CHECK_INT(cuda->stream_synchronize(sim, s), 400);
    CHECK_INT(cuda->event_query(sim, e), 400);
    CHECK(cai_sim_stream_create(sim, 0) != s && cai_sim_event_create(sim) != e);
    CHECK_INT(cuda->stream_synchronize(sim, s), 400);
    CHECK_INT(cuda->event_query(sim, e), 400);
    s = cai_sim_stream_create(sim, 0);
    CHECK_INT(cuda->stream_synchronize(sim, s), 0);
    CHECK(strstr(cai_sim_log(sim), "stream_synchronize s2\n") != NULL);
    CHECK(s % 2 == 0 && s >> 32 == 0);
    finish();
    start("handles without salt");
    cai_sim_salt_handles(sim, 0);
    cai_sim_set_context(sim, c1);
    s = cai_sim_stream_create(sim, 0);
    CHECK_UINT(id_of(s), id); /* ids are the same, whatever the handles */
    finish();
}

/* ------------------------------------------------------------------ hooks */

/* What the hooks were told, and what `choose` answers: a digit of `answers` after the other, '-' for none,
 * the last one again and again. */
typedef struct hearing {
    char heard[400];
    const char *answers;
} hearing;

static void hear(hearing *h, const char *text)
{
    const size_t length = strlen(h->heard);
    if (length + strlen(text) + 1 < sizeof h->heard) strcpy(h->heard + length, text);
}

static void hear_before(void *context, const char *call, int32_t of_table)
{
    hearing *h = (hearing *)context;
    hear(h, of_table ? "*" : "");
    hear(h, call);
    hear(h, " ");
}

/* "3 5?": operations 3 and 5 were offered; "3 5!": one of them had to be taken. */
static int32_t hear_choose(void *context, const uint64_t *ready, int32_t count, int32_t needed)
{
    hearing *h = (hearing *)context;
    const char answer = *h->answers;
    int32_t i;
    for (i = 0; i < count; i++) {
        char number[24];
        sprintf(number, "%s%d", i ? " " : "", (int)ready[i]);
        hear(h, number);
    }
    hear(h, needed ? "! " : "? ");
    if (h->answers[1]) h->answers++;
    return answer == '-' ? -1 : answer - '0';
}

static void set_hooks(hearing *h, int before, int choose)
{
    cai_sim_hooks hooks;
    memset(h, 0, sizeof *h);
    memset(&hooks, 0, sizeof hooks);
    h->answers = "-";
    hooks.context = h;
    if (before) hooks.before = hear_before;
    if (choose) hooks.choose = hear_choose;
    cai_sim_set_hooks(sim, &hooks);
    memset(&hooks, 0, sizeof hooks); /* it has its own copy */
}

static void expect_heard(hearing *h, const char *text)
{
    CHECK_STR(h->heard, text);
    h->heard[0] = 0;
}

static void test_hooks_set(void)
{
    hearing h;
    cai_sim_hooks hooks;
    start("hooks: set, get, clear");
    memset(&hooks, 0xFF, sizeof hooks);
    cai_sim_get_hooks(sim, &hooks);
    CHECK(hooks.context == NULL && hooks.before == NULL && hooks.choose == NULL);
    set_hooks(&h, 1, 1);
    cai_sim_get_hooks(sim, &hooks);
    CHECK(hooks.context == &h && hooks.before == hear_before && hooks.choose == hear_choose);
    cai_sim_set_context(sim, c1);
    expect_heard(&h, "set_context ");
    hooks.before = NULL;
    cai_sim_set_context(sim, c1);
    expect_heard(&h, "set_context ");
    cai_sim_set_hooks(sim, &hooks);
    cai_sim_set_context(sim, c1);
    expect_heard(&h, "");
    cai_sim_set_hooks(sim, NULL);
    cai_sim_get_hooks(sim, &hooks);
    CHECK(hooks.context == NULL && hooks.before == NULL && hooks.choose == NULL);
    CHECK_INT(cai_sim_host_access(sim, "x", NULL, 0), 0);
    CHECK_INT(cai_sim_touch(sim, 1, "x", NULL, 0), 0);
    CHECK_INT(cai_sim_run(sim), 1);
    expect_heard(&h, "");
    finish();
}

static void test_hook_before(void)
{
    hearing h;
    uint64_t s, e, m, third;
    cai_sim_operation op;
    start("hooks: before a call");
    set_hooks(&h, 1, 0);
    cai_sim_set_context(sim, c1);
    third = cai_sim_context_create(sim, 1);
    CHECK_INT(cai_sim_context_destroy(sim, third), 0);
    s = cai_sim_stream_create(sim, 1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 8);
    e = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_launch(sim, s, "x", NULL, NULL, NULL, 0), 0);
    CHECK_INT(cai_sim_touch(sim, s, "x", NULL, 0), 0);
    CHECK_INT(cai_sim_event_record(sim, e, s), 0);
    expect_heard(&h, "set_context context_create context_destroy stream_create alloc event_create launch "
                     "touch event_record ");
    CHECK_INT(cai_sim_event_query(sim, e), 600);
    CHECK_INT(cai_sim_stream_wait_event(sim, s, e), 0);
    CHECK_INT(cai_sim_event_synchronize(sim, e), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
    CHECK_INT(cai_sim_context_synchronize(sim), 0);
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 0);
    CHECK_INT(cai_sim_host_access(sim, "x", NULL, 0), 0);
    CHECK_INT(cai_sim_free(sim, m), 0);
    CHECK_INT(cai_sim_event_destroy(sim, e), 0);
    expect_heard(&h, "event_query stream_wait_event event_synchronize stream_synchronize context_synchronize "
                     "capture_begin capture_end host_access free event_destroy ");
    CHECK_INT(cuda->stream_synchronize(sim, s), 0);
    CHECK_INT(cuda->event_destroy(sim, e), 400); /* also of one that fails, */
    cai_sim_fail(sim, 1, 700);
    CHECK_INT(cuda->context_synchronize(sim), 700);
    cai_sim_omit(sim, 1);
    CHECK_INT(cuda->event_record(sim, e, s), 0); /* and of one that is left out */
    CHECK_INT(cai_sim_stream_destroy(sim, s), 0);
    expect_heard(&h, "*stream_synchronize *event_destroy *context_synchronize *event_record stream_destroy ");
    launch(1, "A"); /* what is no call of CUDA */
    h.heard[0] = 0;
    cai_sim_host_thread(sim, 4);
    (void)cai_sim_step(sim, 1);
    (void)cai_sim_ready(sim, NULL, 0);
    (void)cai_sim_run(sim);
    (void)cai_sim_observe(sim, cai_sim_publish(sim));
    (void)cai_sim_operation_get(sim, 1, &op);
    (void)cai_sim_fingerprint(sim);
    (void)cai_sim_leaks(sim, NULL, 0);
    cai_sim_log_clear(sim);
    (void)cai_sim_memory_at(sim, m, NULL);
    expect_heard(&h, "");
    finish();
}

static void calls_both(void *x)
{
    int32_t *errors = (int32_t *)x;
    errors[0] = cuda->context_synchronize(sim);
    errors[1] = cai_sim_touch(sim, 1, "x", NULL, 0);
}

/* A call from inside a launched function fails, and is not told. */
static void test_hook_before_inside(void)
{
    hearing h;
    int32_t errors[2] = {0, 0};
    start("hooks: not from inside a function");
    cai_sim_set_context(sim, c1);
    CHECK_INT(cai_sim_launch(sim, 1, "calls", calls_both, errors, NULL, 0), 0);
    set_hooks(&h, 1, 0);
    CHECK_INT(cuda->stream_synchronize(sim, 1), 0);
    expect_heard(&h, "*stream_synchronize ");
    CHECK_INT(errors[0], 800);
    CHECK_INT(errors[1], 800);
    finish();
}

/* Two writers in two streams, and an event after the first. */
typedef struct two {
    uint64_t s, t, e, m, pool;
    uint64_t first, second; /* operations */
} two;

static two make_two(hearing *h)
{
    two made;
    cai_sim_access write;
    made.s = stream_on(c1, 1);
    made.t = stream_on(c1, 1);
    cai_sim_set_context(sim, c1);
    made.m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 8);
    made.pool = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 8);
    made.e = event();
    write = cai_sim_writes(made.m, 8);
    set_hooks(h, 0, 1);
    CHECK_INT(cai_sim_touch(sim, made.s, "first", &write, 1), 0);
    made.first = cai_sim_operation_count(sim);
    CHECK_INT(cuda->event_record(sim, made.e, made.s), 0);
    CHECK_INT(cai_sim_touch(sim, made.t, "second", &write, 1), 0);
    made.second = cai_sim_operation_count(sim);
    CHECK_UINT(made.first, 3); /* two allocations; the record is 4 */
    CHECK_UINT(made.second, 5);
    return made;
}

static uint64_t order_of(uint64_t operation)
{
    cai_sim_operation op;
    memset(&op, 0, sizeof op);
    CHECK_INT(cai_sim_operation_get(sim, operation, &op), 1);
    return op.order;
}

static void test_hook_choose_not_needed(void)
{
    hearing h;
    two w;
    cai_sim_access read;
    start("hooks: what the host may notice");
    w = make_two(&h);
    expect_heard(&h, ""); /* queueing is nothing */
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    expect_heard(&h, "3 5? ");
    CHECK_INT(cai_sim_event_query(sim, w.e), 600);
    expect_heard(&h, "3 5? ");
    read = cai_sim_reads(w.m, 8);
    CHECK_INT(cai_sim_host_access(sim, "look", &read, 1), 0);
    CHECK_INT(cai_sim_host_touch(sim, "look", &read, 1), 0);
    expect_heard(&h, "3 5? 3 5? ");
    CHECK_INT(cuda->memory_free(sim, w.pool), 0); /* which does not wait */
    expect_heard(&h, "3 5? ");
    CHECK_INT(cai_sim_pending(sim), 3);
    h.answers = "1-";
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    expect_heard(&h, "3 5? 3? "); /* until it says none */
    CHECK_UINT(order_of(w.second), 1);
    h.answers = "0";
    CHECK_INT(cuda->event_query(sim, w.e), 0);
    expect_heard(&h, "3? "); /* the record ran unasked, and nothing is left */
    CHECK_UINT(order_of(w.first), 2);
    CHECK_INT(cai_sim_pending(sim), 0);
    CHECK_INT(cai_sim_free(sim, w.m), 0);
    expect_heard(&h, "");
    finish();
    start("hooks: a free at once");
    w = make_two(&h);
    h.answers = "0-";
    CHECK_INT(cai_sim_free(sim, w.m), 0);
    expect_heard(&h, "3 5? 5? ");
    h.answers = "0";
    CHECK_INT(cuda->stream_synchronize(sim, w.s), 0); /* the first was in time, the second was not */
    CHECK_INT(cuda->stream_synchronize(sim, w.t), 700);
    finish();
}

static void test_hook_choose_needed(void)
{
    hearing h;
    two w;
    start("hooks: the host waits");
    w = make_two(&h);
    h.answers = "10";
    CHECK_INT(cuda->stream_synchronize(sim, w.s), 0);
    expect_heard(&h, "3 5! 3! ");
    CHECK(order_of(w.second) == 1 && order_of(w.first) == 2);
    finish();
    start("hooks: no more than the host waits for");
    without(CAI_SIM_FREE_RETURNS);
    w = make_two(&h);
    h.answers = "0";
    CHECK_INT(cuda->event_synchronize(sim, w.e), 0);
    expect_heard(&h, "3 5! ");
    CHECK_INT(cai_sim_pending(sim), 1);
    CHECK_INT(cuda->event_synchronize(sim, w.e), 0); /* done: not asked */
    expect_heard(&h, "");
    CHECK_INT(cuda->memory_free(sim, w.m), 0); /* waits for the context */
    expect_heard(&h, "5! ");
    CHECK_UINT(order_of(w.second), 3);
    finish();
    start("hooks: none is no answer where one is needed");
    w = make_two(&h);
    h.answers = "-";
    CHECK_INT(cuda->context_synchronize(sim), 0);
    expect_heard(&h, "3 5! 5! ");
    CHECK(order_of(w.first) == 1 && order_of(w.second) == 3);
    finish();
    start("hooks: all is run");
    w = make_two(&h);
    h.answers = "1";
    CHECK_INT(cai_sim_run(sim), 3);
    expect_heard(&h, "3 5! 3! ");
    CHECK(order_of(w.second) == 1 && order_of(w.first) == 2);
    finish();
}

/* Who asks for the same again and again waits in a loop: then something has to happen. */
static void test_hook_choose_polling(void)
{
    hearing h;
    two w;
    uint64_t f;
    start("hooks: a loop that polls");
    w = make_two(&h);
    f = event();
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    CHECK_INT(cuda->event_record(sim, f, w.t), 0); /* something did */
    expect_heard(&h, "3 5? 3 5? 3 5? ");
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    CHECK_INT(cuda->event_query(sim, f), 600); /* another one */
    expect_heard(&h, "3 5? 3 5? 3 5? 3 5? 3 5? ");
    h.answers = "1-";
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    expect_heard(&h, "3 5! ");
    CHECK_INT(cai_sim_pending(sim), 3); /* one operation, and no more */
    CHECK_INT(cuda->event_query(sim, w.e), 600);
    expect_heard(&h, "3? "); /* and again from the beginning */
    CHECK_INT(cuda->event_query(sim, f), 0);
    while (cuda->event_query(sim, w.e)) {}
    CHECK_UINT(order_of(w.second), 1);
    CHECK_INT(cai_sim_pending(sim), 0);
    cai_sim_set_hooks(sim, NULL); /* without the hook nothing ever runs by a query */
    without(CAI_SIM_PROGRESS);
    launch(w.s, "A");
    CHECK_INT(cuda->event_record(sim, w.e, w.s), 0);
    for (f = 0; f < 20; f++) CHECK_INT(cuda->event_query(sim, w.e), 600);
    finish();
}

/* What touches nothing runs unasked: of what is left, somebody may notice the order. */
static void test_hook_choose_quiet(void)
{
    hearing h;
    uint64_t s, t, e, m, f;
    cai_sim_access read;
    start("hooks: what touches nothing");
    s = stream_on(c1, 1);
    t = stream_on(c1, 1);
    cai_sim_set_context(sim, c1);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 8); /* 1 */
    read = cai_sim_reads(m, 8);
    e = event();
    f = event();
    set_hooks(&h, 0, 1);
    CHECK_INT(cai_sim_launch(sim, s, "x", NULL, NULL, NULL, 0), 0); /* 2 */
    CHECK_INT(cuda->event_record(sim, e, s), 0);
    CHECK_INT(cuda->stream_wait_event(sim, t, e), 0); /* 4 */
    CHECK_INT(cai_sim_pending(sim), 3);
    CHECK_INT(cuda->event_query(sim, e), 0);
    CHECK_INT(cai_sim_pending(sim), 0);
    expect_heard(&h, "");
    launch(s, "A"); /* 6: a function may do anything */
    CHECK_INT(cai_sim_touch(sim, s, "x", &read, 1), 0);
    CHECK_INT(cuda->event_record(sim, f, s), 0); /* 8 */
    CHECK_INT(cuda->event_query(sim, f), 600);
    expect_heard(&h, "6? ");
    h.answers = "0-";
    CHECK_INT(cuda->event_query(sim, f), 600);
    expect_heard(&h, "6? 7? ");
    CHECK_STR(order, "A");
    h.answers = "0";
    CHECK_INT(cuda->event_query(sim, f), 0);
    expect_heard(&h, "7? ");
    finish();
}

/* ------------------------------------------------------------------ threads, size */

#if !defined(CAI_SIM_NO_THREADS) && !defined(_WIN32)

enum { THREADS = 4, ROUNDS = 300 };
static uint64_t threads_seen[THREADS];

static void *one_thread(void *x)
{
    const int32_t which = *(const int32_t *)x;
    uint64_t e, s, current;
    int32_t i, bad = 0;
    bad += cuda->context_current(sim, &current) != 0 || current != 0;
    bad += cuda->host_thread(sim, &threads_seen[which]) != 0;
    bad += cai_sim_set_context(sim, which % 2 ? c1 : c2) != 0;
    s = cai_sim_stream_create(sim, 0);
    for (i = 0; i < ROUNDS; i++) {
        bad += cuda->event_create(sim, &e) != 0;
        bad += cai_sim_launch(sim, i % 2 ? s : 2, "x", NULL, NULL, NULL, 0) != 0;
        bad += cuda->event_record(sim, e, i % 2 ? s : 2) != 0;
        bad += cuda->stream_wait_event(sim, 1, e) != 0;
        bad += cuda->event_synchronize(sim, e) != 0 || cuda->event_query(sim, e) != 0;
        bad += cuda->event_destroy(sim, e) != 0;
    }
    bad += cai_sim_stream_destroy(sim, s) != 0;
    return bad ? x : NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    int32_t numbers[THREADS];
    void *bad;
    int32_t i, k;
    start("threads of the operating system");
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_INT(pthread_create(&threads[i], NULL, one_thread, &numbers[i]), 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], &bad), 0);
        CHECK(bad == NULL);
    }
    for (i = 0; i < THREADS; i++)
        for (k = 0; k < i; k++) CHECK(threads_seen[i] != threads_seen[k]);
    CHECK_INT(cai_sim_calls(sim), THREADS * (1 + 6 * ROUNDS));
    cai_sim_run(sim);
    expect_leaks(0, "");
    finish();
}
#else
static void test_threads(void)
{
}
#endif

/* Random work in random orders: whatever is chosen, an operation runs after all that it waits for. */
static void test_random(void)
{
    uint64_t streams[6], events[6], ids[64], id, seed = 1;
    cai_sim_operation op, before;
    int32_t i, k, count;
    memset(&before, 0, sizeof before);
    start("random work in random orders");
    cai_sim_set_context(sim, c1);
    for (i = 0; i < 4; i++) streams[i] = stream_on(c1, i % 2);
    streams[4] = 1;
    streams[5] = 2;
    for (i = 0; i < 6; i++) events[i] = event();
    for (i = 0; i < 4000; i++) {
        uint64_t s, e;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        s = streams[(seed >> 33) % 6];
        e = events[(seed >> 40) % 6];
        switch ((seed >> 48) % 5) {
        case 0: CHECK_INT(cuda->event_record(sim, e, s), 0); break;
        case 1: CHECK_INT(cuda->stream_wait_event(sim, s, e), 0); break;
        case 2: CHECK_INT(cai_sim_launch(sim, s, "k", NULL, NULL, NULL, 0), 0); break;
        default:
            count = cai_sim_ready(sim, ids, 64);
            CHECK((count > 0) == (cai_sim_pending(sim) > 0));
            if (count > 0) CHECK_INT(cai_sim_run_operation(sim, ids[(seed >> 52) % (uint64_t)count]), 1);
            break;
        }
    }
    cai_sim_run(sim);
    for (id = 1; cai_sim_operation_get(sim, id, &op); id++)
        for (k = 0; k < op.wait_count; k++) {
            CHECK(op.waits[k] < id && cai_sim_operation_get(sim, op.waits[k], &before));
            CHECK(op.order > before.order && before.order > 0);
        }
    CHECK(id > 1500);
    finish();
}

static void run_options(void)
{
    test_option_free();
    test_option_primary();
    test_option_primary_inactive();
    test_option_primary_held();
    test_option_need_context();
    test_option_handles();
    test_option_segments();
    test_option_one_thread();
    test_option_reuse_threads();
    test_option_reuse();
    test_option_reuse_in_stream_order();
    test_option_reuse_fingerprint();
    test_option_progress();
}

static void run_streams_and_events(void)
{
    test_peer_access();
    test_making();
    test_contexts();
    test_context_destroyed();
    test_primary_reset();
    test_streams();
    test_recycling();
    test_legacy_stream();
    test_per_thread_stream();
    test_events();
    test_every_order();
    test_functions_make_no_calls();
    test_trace();
}

static void run_captures(void)
{
    test_capture_pulls_in();
    test_capture_misused();
    test_capture_joins();
    test_capture_invalidation();
    test_capture_and_legacy();
    test_capture_modes();
}

static void run_memory(void)
{
    test_memory();
    test_memory_unknown();
    test_memory_misused();
    test_allocation();
    test_allocation_refused();
    test_free_waits();
    test_free_in_stream_order();
    test_alloc_in_stream_order();
    test_free_that_does_not_run();
    test_allocation_and_captures();
    test_memory_limit();
    test_host_registered();
    test_other_process();
    test_other_process_second_device();
    test_other_process_refused();
    test_uuid();
    test_allocation_faults();
}

/* ------------------------------------------------------- queries of streams */

static void test_stream_query(void)
{
    uint64_t s, t;
    cai_sim_operation op;
    start_with("queries of streams", 0);
    cai_sim_set_context(sim, c1);
    s = stream_on(c1, 0);
    t = stream_on(c1, 1);
    CHECK_INT(cai_sim_stream_query(sim, s), 0);
    CHECK_INT(cai_sim_stream_query(sim, 99), 400);
    CHECK_INT(launch(s, "A"), 0);
    CHECK_INT(launch(t, "B"), 0);
    CHECK_INT(cai_sim_stream_query(sim, s), 600);
    CHECK_INT(cai_sim_stream_query(sim, 1), 600); /* stands for s */
    CHECK_INT(cai_sim_step(sim, s), 1);
    CHECK_INT(cai_sim_stream_query(sim, 1), 0); /* and not for t */
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK(op.kind == CAI_SIM_OP_SYNCHRONIZE && op.wait_count == 1 && op.waits[0] == 2);
    CHECK_STR(op.name, "stream_query");
    CHECK_INT(cai_sim_stream_query(sim, t), 600);
    cai_sim_set_options(sim, CAI_SIM_PROGRESS);
    CHECK_INT(launch(t, "C"), 0);
    CHECK_INT(cai_sim_stream_query(sim, t), 600); /* B ran */
    CHECK_INT(cai_sim_stream_query(sim, t), 0);
    CHECK_STR(order, "ABC");
    CHECK_INT(cai_sim_capture_begin(sim, s, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cai_sim_stream_query(sim, s), 900);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    cai_sim_set_device_error(sim, 0, 719);
    CHECK_INT(cai_sim_stream_query(sim, t), 719);
    finish();
}

/* --------------------------------------------------------- host functions */

static int32_t said_inside;

static void call_inside(void *x)
{
    uint64_t context;
    letter(x);
    said_inside = cuda->context_current(sim, &context);
}

static void test_host_function(void)
{
    static char place[] = "H";
    uint64_t s, t, e;
    cai_sim_operation op;
    start("host functions: in the order of their stream, and no calls inside");
    cai_sim_set_context(sim, c1);
    s = stream_on(c2, 1);
    t = stream_on(c1, 1);
    e = event();
    CHECK_INT(cai_sim_host_function(sim, t, "x", NULL, NULL, NULL, 0), 1);
    CHECK_INT(cai_sim_host_function(sim, 99, "x", call_inside, place, NULL, 0), 400);
    CHECK_INT(launch(t, "A"), 0);
    CHECK_INT(cai_sim_host_function(sim, t, "inside", call_inside, place, NULL, 0), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK(op.kind == CAI_SIM_OP_HOST_FUNCTION && op.state == CAI_SIM_STATE_QUEUED && !op.declared);
    CHECK_INT(launch(t, "B"), 0);
    CHECK_INT(cuda->stream_synchronize(sim, t), 0);
    CHECK_STR(order, "AHB");
    CHECK_INT(said_inside, 800);
    CHECK_INT(cai_sim_host_function(sim, s, "there", call_inside, place, NULL, 0), 0); /* c1 is current */
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_STR(order, "AHBH");
    CHECK_INT(cai_sim_capture_begin(sim, t, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cuda->event_record(sim, e, t), 0);
    CHECK_INT(cuda->stream_wait_event(sim, s, e), 0);
    CHECK_INT(cai_sim_host_function(sim, s, "captured", call_inside, place, NULL, 0), 0);
    CHECK_INT(cai_sim_capture_end(sim, t, NULL), 904); /* a node that is not joined */
    CHECK_INT(cai_sim_host_function(sim, t, "dropped", call_inside, place, NULL, 0), 0);
    cai_sim_set_device_error(sim, 0, 719);
    cai_sim_run(sim);
    CHECK_STR(order, "AHBH");
    finish();
}

#if !defined(CAI_SIM_NO_THREADS) && !defined(_WIN32)
static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
static uint64_t slow_stream;
static int slow_is_inside, slow_is_done;

static int read_flag(const int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

/* A host function that needs a lock, which another thread has while it calls CUDA. */
static void slow_function(void *argument)
{
    (void)argument;
    __atomic_store_n(&slow_is_inside, 1, __ATOMIC_SEQ_CST);
    (void)pthread_mutex_lock(&wanted);
    (void)pthread_mutex_unlock(&wanted);
    __atomic_store_n(&slow_is_done, 1, __ATOMIC_SEQ_CST);
}

static void *wait_for_slow(void *argument)
{
    const int32_t error = argument == NULL ? cai_sim_stream_synchronize(sim, slow_stream) : cai_sim_run(sim) < 0;
    return error || !read_flag(&slow_is_done) ? argument == NULL ? &slow_stream : argument : NULL;
}

static int32_t choose_first(void *context, const uint64_t *ready, int32_t count, int32_t needed)
{
    (void)context;
    (void)ready;
    (void)count;
    return needed - 1;
}

/* One thread runs the function, two more wait for it, and all of CUDA goes on meanwhile. */
static void host_function_threads(const char *note, const cai_sim_hooks *hooks)
{
    pthread_t threads[3];
    void *bad;
    uint64_t other;
    int i;
    start(note);
    cai_sim_set_hooks(sim, hooks);
    cai_sim_set_context(sim, c1);
    slow_stream = cai_sim_stream_create(sim, 1);
    other = cai_sim_stream_create(sim, 1);
    slow_is_inside = slow_is_done = 0;
    CHECK_INT(cai_sim_host_function(sim, slow_stream, "slow", slow_function, NULL, NULL, 0), 0);
    CHECK_INT(launch(slow_stream, "Z"), 0);
    CHECK_INT(pthread_mutex_lock(&wanted), 0);
    for (i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, wait_for_slow, i == 2 ? order : NULL), 0);
    while (!read_flag(&slow_is_inside)) (void)sched_yield();
    CHECK_INT(launch(other, "A"), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, other), 0);
    CHECK_STR(order, "A");
    CHECK_INT(cai_sim_step(sim, slow_stream), 0); /* what is behind it is not ready */
    CHECK_INT(read_flag(&slow_is_done), 0);
    CHECK_INT(pthread_mutex_unlock(&wanted), 0);
    for (i = 0; i < 3; i++) {
        CHECK_INT(pthread_join(threads[i], &bad), 0);
        CHECK(bad == NULL);
    }
    CHECK_STR(order, "AZ");
    CHECK_INT(cai_sim_pending(sim), 0);
    finish();
}

static void test_host_function_threads(void)
{
    const cai_sim_hooks hooks = {NULL, NULL, choose_first};
    host_function_threads("host functions: without a lock of the simulation", NULL);
    host_function_threads("host functions: the same with the hook choose", &hooks);
}
#else
static void test_host_function_threads(void)
{
}
#endif

static void run_further_work(void)
{
    test_copy_returns();
    test_copy_rows();
    test_copy_slots();
    test_peer_slots();
    test_peer_slots_refused();
    test_copies_of_pools();
    test_copy_refused();
    test_copy_captured();
    test_copy_devices();
    test_set();
    test_stream_query();
    test_host_function();
    test_host_function_threads();
}

static void run_errors_and_log(void)
{
    test_device_error();
    test_last_error();
    test_teardown();
    test_log();
    test_counts();
    test_test_side_events();
    test_faults();
    test_missing_answers();
    test_table_copy();
    test_leaks();
}

static void run_accesses_and_names(void)
{
    test_touch();
    test_touch_that_does_not_run();
    test_touch_kinds_of_memory();
    test_host_touch();
    test_publish();
    test_stream_names();
    test_other_names();
    test_memory_at();
    test_registered_memory_at();
    test_fingerprint();
    test_fingerprint_apart();
    test_errors_left();
    test_salt();
}

static void run_hooks_and_threads(void)
{
    test_hooks_set();
    test_hook_before();
    test_hook_before_inside();
    test_hook_choose_not_needed();
    test_hook_choose_needed();
    test_hook_choose_polling();
    test_hook_choose_quiet();
    test_threads();
    test_random();
}

static void run(void)
{
    run_options();
    run_streams_and_events();
    run_captures();
    run_memory();
    run_further_work();
    run_errors_and_log();
    run_accesses_and_names();
    run_hooks_and_threads();
}

CAI_TEST_MAIN(run)
