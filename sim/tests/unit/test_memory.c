/* test_memory.c - pools, virtual memory, large blocks and attributes of pointers in the simulated CUDA.
 * SPDX-License-Identifier: MIT */
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { MB = 1 << 20, SEGMENT = CAI_SIM_GRANULARITY };

static cai_sim *sim;
static const cai_cuda *cuda;
static uint64_t pool, s, t; /* the default pool of device 0, two streams there */

/* Of calls on handles that are dead or none, the tests look at the answers. */
static void go_on(void *context, const cai_sim_undefined *what)
{
    (void)context;
    (void)what;
}

static void start(const char *note, uint32_t options)
{
    cai_test_note(note);
    sim = cai_sim_create(2);
    cai_sim_on_undefined(sim, go_on, NULL);
    if (sim == NULL) exit(2);
    cai_sim_set_options(sim, options);
    cuda = cai_sim_cuda(sim);
    pool = cai_sim_pool_default(sim, 0);
    s = cai_sim_stream_create(sim, 1);
    t = cai_sim_stream_create(sim, 1);
}

static void finish(void)
{
    cai_sim_destroy(sim);
    cai_test_note("");
}

static uint64_t value_of(uint64_t of, int32_t attribute)
{
    uint64_t value = 99;
    CHECK_INT(cai_sim_pool_get(sim, of, attribute, &value), 0);
    return value;
}

static void expect_bytes(uint64_t of, uint64_t used, uint64_t reserved)
{
    CHECK_UINT(value_of(of, CAI_SIM_POOL_USED), used);
    CHECK_UINT(value_of(of, CAI_SIM_POOL_RESERVED), reserved);
}

static uint64_t take(uint64_t from, uint64_t bytes, uint64_t stream)
{
    const uint64_t made = cai_sim_pool_alloc(sim, from, bytes, stream);
    CHECK(made != 0);
    return made;
}

static void give(uint64_t address, uint64_t stream)
{
    CHECK_INT(cai_sim_pool_free(sim, address, stream), 0);
}

static int32_t touch(uint64_t stream, uint64_t address, uint64_t bytes, int32_t write)
{
    cai_sim_access access = cai_sim_reads(address, bytes);
    access.write = write;
    return cai_sim_touch(sim, stream, "touch", &access, 1);
}

/* Runs all, and gives the error of the first context. */
static int32_t run(void)
{
    (void)cai_sim_run(sim);
    return cai_sim_set_context(sim, cai_sim_primary(sim, 0)) ? -1 : cai_sim_context_synchronize(sim);
}

static uint64_t memory_left(void)
{
    uint64_t left = 0, total;
    CHECK_INT(cuda->memory_info(sim, &left, &total), 0);
    return left;
}

/* ---------------------------------------------------------------------- pools */
static void test_pools_of_devices(void)
{
    uint64_t mine;
    start("default and current pools", 0);
    CHECK(pool != 0 && cai_sim_pool_default(sim, 1) != pool);
    CHECK_UINT(cai_sim_pool_default(sim, 2), 0);
    CHECK_UINT(cai_sim_pool_default(sim, -1), 0);
    CHECK_UINT(cai_sim_pool_current(sim, 2), 0);
    CHECK_UINT(cai_sim_pool_current(sim, 0), pool);
    CHECK_UINT(cai_sim_pool_create(sim, 2), 0);
    CHECK_INT(cai_sim_clear_error(sim), 101);
    CHECK_INT(cai_sim_pool_destroy(sim, pool), 1);
    mine = cai_sim_pool_create(sim, 0);
    CHECK_INT(cai_sim_pool_set_current(sim, 1, mine), 1);
    CHECK_INT(cai_sim_pool_set_current(sim, 2, mine), 101);
    CHECK_INT(cai_sim_pool_set_current(sim, 0, mine), 0);
    CHECK_UINT(cai_sim_pool_current(sim, 0), mine);
    (void)take(0, 8, s);
    expect_bytes(mine, 8, 8);
    expect_bytes(pool, 0, 0);
    CHECK_INT(cai_sim_pool_destroy(sim, mine), 0);
    CHECK_UINT(cai_sim_pool_current(sim, 0), pool);
    CHECK_INT(cai_sim_pool_destroy(sim, mine), 1);
    CHECK_UINT(cai_sim_pool_alloc(sim, mine, 8, s), 0);
    CHECK_UINT(cai_sim_pool_alloc(sim, 7, 8, s), 0);
    CHECK_UINT(cai_sim_pool_alloc(sim, pool, 0, s), 0);
    CHECK_INT(cai_sim_pool_trim(sim, 7, 0), 1);
    finish();
}

static void test_pool_of_another_device(void)
{
    uint64_t there, m;
    cai_sim_pointer info;
    start("a pool of another device than the stream", 0);
    there = cai_sim_pool_create(sim, 1);
    m = take(there, 8, s);
    CHECK_INT(cai_sim_pointer_get(sim, m, &info), 0);
    CHECK_INT(info.device, 1);
    CHECK_UINT(info.pool, there);
    CHECK_INT(cai_sim_pool_access(sim, there, 0), 0);
    CHECK_INT(cai_sim_pool_access(sim, there, 1), 1);
    CHECK_INT(cai_sim_pool_access(sim, there, 2), 0);
    CHECK_INT(cai_sim_pool_set_access(sim, there, 1, 0), 1);
    CHECK_INT(cai_sim_pool_set_access(sim, there, 1, 1), 0);
    CHECK_INT(cai_sim_pool_set_access(sim, there, 2, 1), 101);
    CHECK_INT(cai_sim_pool_set_access(sim, there, 0, 1), 0);
    CHECK_INT(touch(s, m, 8, 1), 0);
    CHECK_INT(run(), 0);
    CHECK_INT(cai_sim_pool_set_access(sim, there, 0, 0), 0);
    CHECK_INT(touch(s, m, 8, 1), 0);
    CHECK_INT(run(), 700);
    finish();
}

static void test_pool_amounts(void)
{
    uint64_t a, b, before;
    start("used and reserved bytes", 0);
    before = memory_left();
    a = take(0, 1000, s);
    b = take(0, 24, s);
    expect_bytes(pool, 1024, 1024);
    CHECK_UINT(memory_left(), before - 1024);
    give(a, s);
    expect_bytes(pool, 1024, 1024);
    (void)cai_sim_run(sim); /* nobody synchronized */
    expect_bytes(pool, 24, 1024);
    CHECK_UINT(memory_left(), before - 1024);
    CHECK_INT(cai_sim_stream_synchronize(sim, t), 0);
    expect_bytes(pool, 24, 24);
    CHECK_UINT(memory_left(), before - 24);
    CHECK_UINT(value_of(pool, CAI_SIM_POOL_USED_HIGH), 1024);
    CHECK_UINT(value_of(pool, CAI_SIM_POOL_RESERVED_HIGH), 1024);
    CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_USED_HIGH, 1), 1);
    CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_USED_HIGH, 0), 0);
    CHECK_UINT(value_of(pool, CAI_SIM_POOL_USED_HIGH), 24);
    CHECK_UINT(value_of(pool, CAI_SIM_POOL_RESERVED_HIGH), 1024);
    CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_USED, 0), 1);
    CHECK_INT(cai_sim_pool_set(sim, pool, 0, 0), 1);
    CHECK_INT(cai_sim_pool_set(sim, pool, 9, 0), 1);
    CHECK_INT(cai_sim_pool_get(sim, pool, 9, &a), 1);
    CHECK_INT(cai_sim_pool_get(sim, pool, 0, &a), 1);
    CHECK_INT(cai_sim_pool_get(sim, pool, 4, NULL), 1);
    CHECK_INT(cai_sim_pool_get(sim, 7, 4, &a), 1);
    CHECK_INT(cai_sim_free(sim, b), 0); /* at once */
    expect_bytes(pool, 0, 24);
    finish();
}

static void test_pool_threshold(void)
{
    uint64_t e;
    int how;
    for (how = 0; how < 3; how++) {
        start("what is above the threshold goes at a synchronization", 0);
        CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_THRESHOLD, 350), 0);
        CHECK_UINT(value_of(pool, CAI_SIM_POOL_THRESHOLD), 350);
        give(take(0, 300, s), s);
        give(take(0, 400, s), s);
        e = cai_sim_event_create(sim);
        CHECK_INT(cai_sim_event_record(sim, e, s), 0);
        expect_bytes(pool, 700, 700);
        CHECK_INT(how == 0   ? cai_sim_stream_synchronize(sim, s)
                  : how == 1 ? cai_sim_event_synchronize(sim, e)
                             : cai_sim_context_synchronize(sim),
                  0);
        expect_bytes(pool, 0, 400); /* without that there are less than 350 */
        CHECK_INT(cai_sim_pool_trim(sim, pool, 400), 0);
        expect_bytes(pool, 0, 400);
        CHECK_INT(cai_sim_pool_trim(sim, pool, 0), 0);
        expect_bytes(pool, 0, 0);
        finish();
    }
}

static void test_pool_destroyed(void)
{
    uint64_t mine, a, b, before;
    char text[80];
    start("a pool that is destroyed keeps what is allocated", 0);
    before = memory_left();
    mine = cai_sim_pool_create(sim, 0);
    a = take(mine, 64, s);
    b = take(mine, 32, s);
    give(b, s);
    CHECK_INT(cai_sim_leaks(sim, text, sizeof text), 4);
    CHECK_STR(text, "streams: s1 s2; allocations: m1; pools: p3");
    CHECK_INT(cai_sim_pool_destroy(sim, mine), 0);
    CHECK_UINT(memory_left(), before - 96);
    CHECK_INT(touch(s, a, 64, 1), 0);
    CHECK_INT(run(), 0);
    CHECK_UINT(memory_left(), before - 64);
    give(a, t);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_UINT(memory_left(), before);
    finish();
}

/* ---------------------------------------------------------------------- reuse */
static void test_no_reuse(void)
{
    uint64_t a;
    start("without the option no address is used again", 0);
    a = take(0, 64, s);
    give(a, s);
    CHECK(take(0, 64, s) != a);
    CHECK_INT(run(), 0);
    CHECK(take(0, 64, s) != a);
    finish();
}

static void test_reuse_in_a_stream(void)
{
    uint64_t a, b;
    unsigned char *bytes;
    start("memory freed earlier in the stream", CAI_SIM_POOL_REUSE);
    a = take(0, 64, s);
    bytes = (unsigned char *)cai_sim_bytes(sim, a);
    CHECK_INT(touch(s, a, 64, 1), 0);
    give(a, s);
    b = take(0, 40, s);
    CHECK_UINT(b, a);
    expect_bytes(pool, 104, 64); /* both are allocated until the free has run */
    CHECK_INT(touch(s, b, 40, 0), 0);
    CHECK_INT(cai_sim_step(sim, s), 1);
    CHECK_INT(cai_sim_step(sim, s), 1); /* it is still the memory of the first one */
    CHECK(bytes[0] != 0);
    CHECK_INT(cai_sim_step(sim, s), 1); /* the free */
    expect_bytes(pool, 40, 64);
    CHECK_INT(cai_sim_step(sim, s), 1);
    CHECK_INT(bytes[0], 0);
    CHECK_INT(touch(t, a + 40, 24, 1), 0); /* behind the end of the second one */
    CHECK_INT(run(), 700);
    finish();
    start("a block that three take in turn before any of it has run", CAI_SIM_POOL_REUSE);
    a = take(0, 64, s);
    bytes = (unsigned char *)cai_sim_bytes(sim, a);
    CHECK_INT(touch(s, a, 64, 1), 0);
    give(a, s);
    CHECK_UINT(take(0, 64, s), a);
    CHECK_INT(touch(s, a, 32, 1), 0);
    give(a, s);
    CHECK_UINT(take(0, 64, s), a);
    CHECK_INT(run(), 0);
    CHECK_INT(bytes[0], 0);
    CHECK_INT(bytes[63], 0);
    finish();
    start("a late access is to freed memory until it is allocated again", CAI_SIM_POOL_REUSE);
    a = take(0, 64, s);
    CHECK_INT(cai_sim_step(sim, s), 1);
    give(a, s);
    CHECK_UINT(take(0, 64, s), a);
    CHECK_INT(touch(t, a, 64, 1), 0);
    CHECK_INT(cai_sim_step(sim, s), 1); /* the free, but not the allocation */
    CHECK_INT(cai_sim_step(sim, t), 1);
    CHECK_INT(cai_sim_context_synchronize(sim), 700);
    finish();
}

/* Would t use again what was freed in s? */
static int reuses(uint64_t a)
{
    const uint64_t b = take(0, 64, t);
    const int same = a == b;
    return same;
}

static void order(uint64_t before, uint64_t after)
{
    const uint64_t e = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_event_record(sim, e, before), 0);
    CHECK_INT(cai_sim_stream_wait_event(sim, after, e), 0);
}

static void test_reuse_behind_events(void)
{
    uint64_t a;
    int allowed;
    for (allowed = 0; allowed < 2; allowed++) {
        start("memory freed in another stream, behind an event", CAI_SIM_POOL_REUSE);
        CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_FOLLOW_EVENTS, (uint64_t)allowed), 0);
        a = take(0, 64, s);
        order(s, t);
        give(a, s);
        CHECK(!reuses(a)); /* the record is before the free */
        order(s, t);
        CHECK_INT(reuses(a), allowed);
        CHECK_INT(run(), 0);
        finish();
    }
    start("memory freed in the legacy stream, before a blocking one", CAI_SIM_POOL_REUSE);
    t = cai_sim_stream_create(sim, 0);
    a = take(0, 64, 1);
    give(a, 1);
    CHECK(reuses(a));
    finish();
}

/* What two_owners does besides: a call after the record, or the host waits for the record. */
enum { NO_MORE, CALL_BETWEEN, HOST_WAITS };

/* Thread 1 makes `shared` wait for the free of `a`. Thread 2 records in `recorded` just before, which is the
 * same stream if threads share it, makes t wait for that and allocates. Returns whether it gets `a`, whose
 * free t does not wait for. */
static int two_owners(uint64_t a, uint64_t shared, uint64_t recorded, int more)
{
    const uint64_t freed = cai_sim_event_create(sim), other = cai_sim_event_create(sim);
    int same;
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(touch(s, a, 64, 1), 0);
    give(a, s);
    CHECK_INT(cai_sim_event_record(sim, freed, s), 0);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(cai_sim_event_record(sim, other, recorded), 0);
    cai_sim_host_thread(sim, 1);
    if (more == CALL_BETWEEN) CHECK_INT(cai_sim_event_query(sim, freed), 600);
    CHECK_INT(cai_sim_stream_wait_event(sim, shared, freed), 0);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_stream_wait_event(sim, t, other), 0);
    if (more == HOST_WAITS) CHECK_INT(cai_sim_event_synchronize(sim, other), 0);
    same = reuses(a);
    cai_sim_host_thread(sim, 0);
    return same;
}

static void test_two_owners(void)
{
    const uint32_t early = CAI_SIM_POOL_REUSE | CAI_SIM_POOL_EARLY_WAITS;
    uint64_t mine = 0, shared;
    start("a pool that knows of a wait too early", early);
    shared = cai_sim_stream_create(sim, 1);
    CHECK(two_owners(take(0, 64, s), shared, shared, NO_MORE));
    CHECK_INT(run(), 0);
    finish();
    start("the same without the option", CAI_SIM_POOL_REUSE);
    shared = cai_sim_stream_create(sim, 1);
    CHECK(!two_owners(take(0, 64, s), shared, shared, NO_MORE));
    finish();
    start("the same with a call between the record and the wait", early);
    shared = cai_sim_stream_create(sim, 1);
    CHECK(!two_owners(take(0, 64, s), shared, shared, CALL_BETWEEN));
    finish();
    start("the same where no stream is shared", early);
    shared = cai_sim_stream_create(sim, 1);
    CHECK(!two_owners(take(0, 64, s), shared, cai_sim_stream_create(sim, 1), NO_MORE));
    finish();
    start("the same without reuse by events", early);
    CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_FOLLOW_EVENTS, 0), 0);
    shared = cai_sim_stream_create(sim, 1);
    CHECK(!two_owners(take(0, 64, s), shared, shared, HOST_WAITS));
    finish();
    start("the same with a pool of the table", early);
    shared = cai_sim_stream_create(sim, 1);
    CHECK_INT(cuda->pool_create(sim, 0, 6, &mine), 0);
    CHECK_INT(cai_sim_pool_set_current(sim, 0, mine), 0);
    CHECK(!two_owners(take(mine, 64, s), shared, shared, NO_MORE));
    finish();
}

static void test_pools_of_the_table(void)
{
    uint64_t mine = 9, memory = 9;
    start("pools of the table", 0);
    CHECK_INT(cuda->pool_create(sim, 2, 7, &mine), 101);
    CHECK_UINT(mine, 0);
    CHECK_INT(cuda->pool_create(sim, 0, 8, &mine), 1);
    CHECK_INT(cuda->pool_create(sim, 0, 5, NULL), 1);
    CHECK_INT(cuda->pool_create(sim, 0, 5, &mine), 0);
    CHECK_UINT(value_of(mine, CAI_SIM_POOL_FOLLOW_EVENTS), 1);
    CHECK_UINT(value_of(mine, CAI_SIM_POOL_OPPORTUNISTIC), 0);
    CHECK_UINT(value_of(mine, CAI_SIM_POOL_INTERNAL_WAITS), 1);
    CHECK_UINT(value_of(mine, CAI_SIM_POOL_THRESHOLD), UINT64_MAX);
    CHECK_UINT(cai_sim_pool_current(sim, 0), pool);
    CHECK_INT(cuda->memory_alloc_from_pool(sim, &memory, 64, 0, s), 1);
    CHECK_UINT(memory, 0);
    CHECK_INT(cuda->memory_alloc_from_pool(sim, &memory, 64, mine, s), 0);
    expect_bytes(mine, 64, 64);
    CHECK_INT(cuda->memory_free_async(sim, memory, s), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
    expect_bytes(mine, 0, 64); /* it keeps what it has */
    CHECK_INT(cuda->pool_destroy(sim, mine), 0);
    finish();
}

static void test_reuse_when_done(void)
{
    uint64_t a, b;
    int allowed;
    for (allowed = 0; allowed < 2; allowed++) {
        start("memory whose free has run", CAI_SIM_POOL_REUSE);
        CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_OPPORTUNISTIC, (uint64_t)allowed), 0);
        CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_THRESHOLD, 1000), 0);
        a = take(0, 64, s);
        give(a, s);
        CHECK(!reuses(a));
        (void)cai_sim_run(sim);
        CHECK_INT(reuses(a), allowed);
        finish();
        start("the same when the host waited for it", CAI_SIM_POOL_REUSE);
        CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_OPPORTUNISTIC, (uint64_t)allowed), 0);
        CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_THRESHOLD, 1000), 0);
        a = take(0, 64, s);
        b = take(0, 30, s);
        give(a, s);
        CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
        CHECK(reuses(a));
        CHECK_INT(cai_sim_free(sim, b), 0);
        CHECK(take(0, 15, t) != b); /* less than half */
        CHECK_UINT(take(0, 16, t), b);
        finish();
    }
}

static void test_reuse_by_waiting(void)
{
    uint64_t a, b;
    cai_sim_operation op;
    start("an allocation waits for a free if there is no other memory", 0);
    cai_sim_set_memory(sim, 0, 100);
    a = take(0, 64, s);
    CHECK_INT(touch(s, a, 64, 1), 0);
    give(a, s);
    CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_INTERNAL_WAITS, 0), 0);
    CHECK_UINT(cai_sim_pool_alloc(sim, 0, 64, t), 0);
    CHECK_INT(cai_sim_clear_error(sim), 2);
    CHECK_INT(cai_sim_pool_set(sim, pool, CAI_SIM_POOL_INTERNAL_WAITS, 1), 0);
    b = take(0, 64, t);
    CHECK_UINT(b, a);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_INT(op.wait_count, 1);
    CHECK_INT(touch(t, b, 64, 1), 0);
    CHECK_INT(cai_sim_step(sim, t), 0);
    CHECK_INT(run(), 0);
    finish();
    start("what a pool holds makes room", 0);
    cai_sim_set_memory(sim, 0, 100);
    give(take(0, 64, s), s);
    (void)cai_sim_run(sim);
    expect_bytes(pool, 0, 64);
    (void)take(0, 90, s);
    expect_bytes(pool, 90, 90);
    finish();
}

/* --------------------------------------------------------------- large blocks */
static void test_large_blocks(void)
{
    const uint64_t large = (uint64_t)64 * MB;
    uint64_t a, b;
    unsigned char *bytes;
    start("a large block keeps its address and is empty when it is freed", 0);
    a = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, large);
    bytes = (unsigned char *)cai_sim_bytes(sim, a);
    CHECK(bytes != NULL && a % 256 == 0);
    CHECK_INT(bytes[0] | bytes[large - 1], 0);
    bytes[5] = bytes[large - 1] = 7;
    CHECK_INT(cai_sim_free(sim, a), 0);
#if defined(__linux__)
    CHECK_INT(bytes[5] | bytes[large - 1], 0); /* the address is still there */
#endif
    b = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, large);
    CHECK(b != a);
    CHECK_INT(touch(s, a, 8, 1), 0);
    CHECK_INT(run(), 700);
    CHECK(cai_sim_fingerprint(sim) != 0);
    finish();
    start("a large block is used again", CAI_SIM_REUSE);
    a = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, MB);
    bytes = (unsigned char *)cai_sim_bytes(sim, a);
    bytes[MB - 1] = 7;
    CHECK_INT(cai_sim_free(sim, a), 0);
    CHECK_UINT(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, MB), a);
    CHECK_INT(bytes[MB - 1], 0);
    finish();
}

static int32_t first_one(void *context, const uint64_t *ready, int32_t count, int32_t needed)
{
    (void)context;
    (void)ready;
    (void)count;
    (void)needed;
    return 0;
}

/* Whether the fingerprint knows what a freed block held. */
static int tells_apart(uint64_t bytes, int with_hook)
{
    cai_sim_hooks hooks = {NULL, NULL, NULL};
    uint64_t prints[2];
    int i;
    hooks.choose = with_hook ? first_one : NULL;
    for (i = 0; i < 2; i++) {
        uint64_t a;
        start("fingerprints of freed memory", 0);
        cai_sim_set_hooks(sim, &hooks);
        a = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, bytes);
        *(unsigned char *)cai_sim_bytes(sim, a) = (unsigned char)(1 + i);
        CHECK_INT(cai_sim_free(sim, a), 0);
        prints[i] = cai_sim_fingerprint(sim);
        finish();
    }
    return prints[0] != prints[1];
}

static void test_fingerprints(void)
{
    CHECK(tells_apart(100, 0));
    CHECK(tells_apart(MB, 1));
#if defined(__linux__)
    CHECK(!tells_apart(MB, 0));
#endif
}

/* ------------------------------------------------------------- virtual memory */
#if defined(__linux__)
static uint64_t range, first, second; /* four segments of addresses, and memory for one each */

static void start_virtual(const char *note, uint32_t options)
{
    start(note, options);
    range = cai_sim_virtual_reserve(sim, 4 * SEGMENT, 0);
    first = cai_sim_physical_create(sim, 0, SEGMENT);
    second = cai_sim_physical_create(sim, 0, SEGMENT);
    CHECK(range != 0 && range % SEGMENT == 0);
    CHECK_INT(cai_sim_virtual_map(sim, range, SEGMENT, 0, first), 0);
    CHECK_INT(cai_sim_virtual_map(sim, range + SEGMENT, SEGMENT, 0, second), 0);
}

static void allow(uint64_t address, uint64_t bytes, int32_t device, int32_t access)
{
    CHECK_INT(cai_sim_virtual_set_access(sim, address, bytes, device, access), 0);
}

static void test_virtual_refused(void)
{
    start_virtual("what virtual memory refuses", 0);
    CHECK_UINT(cai_sim_virtual_reserve(sim, 0, 0), 0);
    CHECK_UINT(cai_sim_virtual_reserve(sim, 4095, 0), 0);
    CHECK_UINT(cai_sim_virtual_reserve(sim, 4096, 3), 0);
    CHECK_UINT(cai_sim_virtual_reserve(sim, 4096, (uint64_t)1 << 26) % ((uint64_t)1 << 26), 0);
    CHECK_UINT(cai_sim_physical_create(sim, 2, SEGMENT), 0);
    CHECK_UINT(cai_sim_physical_create(sim, 0, SEGMENT - 1), 0);
    CHECK_UINT(cai_sim_physical_create(sim, 0, 0), 0);
    CHECK_INT(cai_sim_virtual_map(sim, range, SEGMENT, 0, first), 1); /* mapped already */
    CHECK_INT(cai_sim_virtual_map(sim, range + 2 * SEGMENT, SEGMENT, SEGMENT, first), 1);
    CHECK_INT(cai_sim_virtual_map(sim, range + 2 * SEGMENT, 2 * SEGMENT, 0, first), 1);
    CHECK_INT(cai_sim_virtual_map(sim, range + 4 * SEGMENT, SEGMENT, 0, first), 1);
    CHECK_INT(cai_sim_virtual_map(sim, range + 2 * SEGMENT + 4096, SEGMENT, 0, first), 1);
    CHECK_INT(cai_sim_virtual_map(sim, range + 2 * SEGMENT, 0, 0, first), 1);
    CHECK_INT(cai_sim_virtual_map(sim, range + 2 * SEGMENT, SEGMENT, 0, 7), 1);
    CHECK_INT(cai_sim_virtual_unmap(sim, range, SEGMENT / 2), 1);
    CHECK_INT(cai_sim_virtual_unmap(sim, range + 4096, SEGMENT), 1);
    CHECK_INT(cai_sim_virtual_unmap(sim, range, 3 * SEGMENT), 1);
    CHECK_INT(cai_sim_virtual_unmap(sim, range, 0), 1);
    CHECK_INT(cai_sim_virtual_set_access(sim, range, 3 * SEGMENT, 0, 3), 1);
    CHECK_INT(cai_sim_virtual_set_access(sim, range, SEGMENT / 2, 0, 3), 1);
    CHECK_INT(cai_sim_virtual_set_access(sim, range, SEGMENT, 2, 3), 101);
    CHECK_INT(cai_sim_virtual_set_access(sim, range, SEGMENT, 0, 2), 1);
    CHECK_INT(cai_sim_virtual_free(sim, range, 4 * SEGMENT), 1); /* something is mapped */
    CHECK_INT(cai_sim_free(sim, range), 1);
    CHECK_INT(cai_sim_physical_release(sim, 7), 1);
    CHECK_UINT(cai_sim_physical_retain(sim, range + 2 * SEGMENT), 0);
    finish();
}

static void test_virtual_life(void)
{
    uint64_t before, extra;
    unsigned char *bytes;
    char text[120];
    start_virtual("physical memory lives until its last handle and mapping are gone", 0);
    before = memory_left();
    bytes = (unsigned char *)cai_sim_bytes(sim, range);
    bytes[9] = 7;
    CHECK_INT(bytes[SEGMENT + 9], 0);
    CHECK_INT(cai_sim_virtual_unmap(sim, range, SEGMENT), 0);
    CHECK(cai_sim_bytes(sim, range) == NULL);
    CHECK_INT(cai_sim_virtual_map(sim, range + 2 * SEGMENT, SEGMENT, 0, first), 0);
    CHECK_INT(((unsigned char *)cai_sim_bytes(sim, range + 2 * SEGMENT))[9], 7);
    CHECK_INT(cai_sim_virtual_map(sim, range, SEGMENT, 0, first), 0); /* twice */
    bytes[10] = 8;
    CHECK_INT(((unsigned char *)cai_sim_bytes(sim, range + 2 * SEGMENT))[10], 8);
    CHECK_INT(cai_sim_physical_release(sim, first), 0);
    CHECK_INT(cai_sim_physical_release(sim, first), 1);
    CHECK_UINT(memory_left(), before);
    extra = cai_sim_physical_retain(sim, range + 5);
    CHECK_UINT(extra, first);
    CHECK_INT(cai_sim_physical_release(sim, extra), 0);
    CHECK_INT(cai_sim_virtual_unmap(sim, range + 2 * SEGMENT, SEGMENT), 0);
    CHECK_UINT(memory_left(), before);
    CHECK_INT(cai_sim_leaks(sim, text, sizeof text), 6);
    CHECK_STR(text, "streams: s1 s2; allocations: m2 m4; physical memory: b2; address ranges: 1");
    CHECK_INT(cai_sim_virtual_unmap(sim, range, 2 * SEGMENT), 0);
    CHECK_UINT(memory_left(), before + SEGMENT);
    CHECK_INT(cai_sim_physical_release(sim, second), 0);
    CHECK_UINT(memory_left(), before + 2 * SEGMENT);
    CHECK_INT(cai_sim_virtual_free(sim, range, SEGMENT), 1);
    CHECK_INT(cai_sim_virtual_free(sim, range, 4 * SEGMENT), 0);
    CHECK_INT(cai_sim_virtual_free(sim, range, 4 * SEGMENT), 1);
    CHECK_INT(cai_sim_leaks(sim, text, sizeof text), 2);
    finish();
}

/* 0, or the error that the access gives. */
static int32_t access_error(uint64_t address, uint64_t bytes, int32_t access, int32_t write)
{
    int32_t error;
    start_virtual("access to a mapping", 0);
    if (access >= 0) allow(range, 2 * SEGMENT, 0, access);
    CHECK_INT(touch(s, range + address, bytes, write), 0);
    error = run();
    finish();
    return error;
}

static void test_virtual_access(void)
{
    CHECK_INT(access_error(0, 8, -1, 0), 700);
    CHECK_INT(access_error(0, 8, CAI_SIM_ACCESS_NONE, 0), 700);
    CHECK_INT(access_error(0, 8, CAI_SIM_ACCESS_READ, 0), 0);
    CHECK_INT(access_error(0, 8, CAI_SIM_ACCESS_READ, 1), 700);
    CHECK_INT(access_error(0, 8, CAI_SIM_ACCESS_READ_WRITE, 1), 0);
    CHECK_INT(access_error(SEGMENT - 4, 8, CAI_SIM_ACCESS_READ_WRITE, 1), 0); /* both mappings */
    CHECK_INT(access_error(2 * SEGMENT - 4, 8, CAI_SIM_ACCESS_READ_WRITE, 1), 700);
    CHECK_INT(access_error(2 * SEGMENT, 8, CAI_SIM_ACCESS_READ_WRITE, 1), 700);
    start_virtual("access per device, and again after the next mapping", 0);
    allow(range, SEGMENT, 0, CAI_SIM_ACCESS_READ_WRITE);
    allow(range, SEGMENT, 1, CAI_SIM_ACCESS_READ);
    CHECK_INT(cai_sim_virtual_access(sim, range + 5, 0), CAI_SIM_ACCESS_READ_WRITE);
    CHECK_INT(cai_sim_virtual_access(sim, range + 5, 1), CAI_SIM_ACCESS_READ);
    CHECK_INT(cai_sim_virtual_access(sim, range + SEGMENT, 0), CAI_SIM_ACCESS_NONE);
    allow(range + SEGMENT, SEGMENT, 0, CAI_SIM_ACCESS_READ);
    CHECK_INT(cai_sim_virtual_access(sim, range + SEGMENT, 1), CAI_SIM_ACCESS_NONE);
    CHECK_INT(cai_sim_virtual_access(sim, range, 2), CAI_SIM_ACCESS_NONE);
    CHECK_INT(cai_sim_virtual_unmap(sim, range, SEGMENT), 0);
    CHECK_INT(cai_sim_virtual_map(sim, range, SEGMENT, 0, first), 0);
    CHECK_INT(cai_sim_virtual_access(sim, range, 0), CAI_SIM_ACCESS_NONE);
    finish();
}

static void test_virtual_copies(void)
{
    unsigned char host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uint64_t from = (uint64_t)(uintptr_t)host;
    start_virtual("a copy over two mappings", 0);
    allow(range, 2 * SEGMENT, 0, CAI_SIM_ACCESS_READ_WRITE);
    CHECK_INT(cai_sim_copy(sim, range + SEGMENT - 4, from, 8, s), 0);
    CHECK_INT(((unsigned char *)cai_sim_bytes(sim, range + SEGMENT))[0], 5);
    CHECK_INT(cai_sim_copy(sim, range + 2 * SEGMENT - 4, from, 8, s), 1);
    CHECK_INT(cai_sim_copy(sim, range + 2 * SEGMENT, from, 8, s), 1);
    CHECK_INT(cai_sim_virtual_set_access(sim, range, SEGMENT, 0, CAI_SIM_ACCESS_READ), 0);
    CHECK_INT(cai_sim_copy(sim, range, from, 8, s), 700);
    finish();
}

static void test_unmap_and_work(void)
{
    int returns;
    for (returns = 0; returns < 2; returns++) {
        start_virtual("whether an unmap waits", returns ? CAI_SIM_FREE_RETURNS : 0);
        allow(range, SEGMENT, 0, CAI_SIM_ACCESS_READ_WRITE);
        CHECK_INT(touch(s, range, 8, 1), 0);
        CHECK_INT(cai_sim_virtual_unmap(sim, range, SEGMENT), 0);
        CHECK_INT(run(), returns ? 700 : 0);
        finish();
    }
}

static void test_virtual_pointers(void)
{
    cai_sim_pointer info;
    uint64_t base, size;
    int on;
    for (on = 0; on < 2; on++) {
        start_virtual("the range of a mapping", on ? CAI_SIM_SEGMENTS : 0);
        CHECK_INT(cuda->pointer_range(sim, range + SEGMENT + 5, &base, &size), 0);
        CHECK_UINT(base, on ? range + SEGMENT : range);
        CHECK_UINT(size, on ? SEGMENT : 2 * SEGMENT);
        CHECK_INT(cuda->pointer_range(sim, range + 2 * SEGMENT, &base, &size), 500);
        finish();
    }
    start_virtual("the attributes of a mapping", 0);
    allow(range, SEGMENT, 0, CAI_SIM_ACCESS_READ);
    CHECK_INT(cai_sim_pointer_get(sim, range + SEGMENT + 5, &info), 0);
    CHECK_INT(info.kind, CAI_SIM_MEM_VIRTUAL);
    CHECK_UINT(info.first, range);
    CHECK_UINT(info.bytes, 4 * SEGMENT);
    CHECK_UINT(info.mapping, range + SEGMENT);
    CHECK_UINT(info.mapping_bytes, SEGMENT);
    CHECK_UINT(info.physical, second);
    CHECK_INT(info.mapped, 1);
    CHECK_INT(info.access, CAI_SIM_ACCESS_NONE);
    CHECK_INT(cai_sim_pointer_get(sim, range, &info), 0);
    CHECK_INT(info.access, CAI_SIM_ACCESS_READ);
    CHECK_INT(cai_sim_pointer_get(sim, range + 3 * SEGMENT, &info), 0);
    CHECK_INT(info.mapped, 0);
    CHECK_UINT(info.first, range);
    CHECK_UINT(info.mapping, 0);
    finish();
}

static void test_virtual_accesses_of_the_trace(void)
{
    cai_sim_operation op;
    start_virtual("an access over two mappings is two", 0);
    CHECK_INT(touch(s, range + SEGMENT - 4, 12, 1), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK_INT(op.access_count, 2);
    CHECK_UINT(op.accesses[0].bytes, 4);
    CHECK_UINT(op.accesses[1].bytes, 8);
    CHECK_INT(op.accesses[0].memory + 1, op.accesses[1].memory);
    finish();
}
#endif

/* ------------------------------------------------------------------- pointers */
static void test_pointers(void)
{
    cai_sim_pointer info;
    uint64_t m;
    char text[8];
    start("the attributes of pointers", 0);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 100);
    CHECK_INT(cai_sim_pointer_get(sim, m + 7, &info), 0);
    CHECK_INT(info.kind, CAI_SIM_MEM_DEVICE);
    CHECK_UINT(info.context, cai_sim_primary(sim, 0));
    CHECK_UINT(info.first, m);
    CHECK_UINT(info.bytes, 100);
    CHECK_UINT(info.mapping, m);
    CHECK_UINT(info.buffer, 1);
    CHECK_UINT(info.device_address, m + 7);
    CHECK_UINT(info.host_address, 0);
    CHECK_UINT(info.pool, 0);
    CHECK_INT(info.device, 0);
    CHECK_INT(info.managed, 0);
    CHECK_INT(info.exportable, 1);
    CHECK_INT(info.access, CAI_SIM_ACCESS_READ_WRITE);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_ALIASED, 100);
    CHECK_INT(cai_sim_pointer_get(sim, m + 7, &info), 0);
    CHECK_UINT(info.host_address, m + 7);
    CHECK(info.device_address != m + 7);
    CHECK_INT(cai_sim_pointer_get(sim, info.device_address, &info), 0); /* by the address of devices */
    CHECK_UINT(info.host_address, m + 7);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_MANAGED, 100);
    CHECK_INT(cai_sim_pointer_get(sim, m, &info), 0);
    CHECK_INT(info.managed, 1);
    CHECK_UINT(info.host_address, m);
    CHECK_INT(info.exportable, 0);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_REGISTERED, 100);
    CHECK_INT(cai_sim_pointer_get(sim, m, &info), 0);
    CHECK_UINT(info.device_address, 0);
    CHECK_INT(info.access, CAI_SIM_ACCESS_NONE);
    m = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 100);
    CHECK_INT(cai_sim_pointer_get(sim, m, &info), 0);
    CHECK_UINT(info.pool, pool);
    CHECK_UINT(info.context, 0);
    CHECK_INT(cai_sim_free(sim, m), 0);
    CHECK_INT(cai_sim_pointer_get(sim, m, &info), 1);
    CHECK_INT(info.kind, CAI_SIM_MEM_NONE);
    CHECK_INT(info.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(cai_sim_pointer_get(sim, (uint64_t)(uintptr_t)text, &info), 1);
    CHECK_INT(cai_sim_pointer_get(sim, m, NULL), 1);
    finish();
}

/* ------------------------------------------------------- memory of a real driver */
enum { ADOPTED = 0x10000 }; /* where this process has nothing: an access would end it */

static void test_adopted(void)
{
    static char host[64];
    uint64_t a, b;
    start("memory that a real driver made", 0);
    cai_sim_adopt(sim, ADOPTED);
    a = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 256);
    CHECK_UINT(a, ADOPTED);
    CHECK(cai_sim_bytes(sim, a) == NULL);
    CHECK_INT(touch(s, a, 256, 1), 0);
    CHECK_INT(cai_sim_copy_async(sim, a, a + 128, 64, t), 0);
    CHECK_INT(cai_sim_copy(sim, a, (uint64_t)(uintptr_t)host, sizeof host, t), 0);
    CHECK_INT(run(), 0);
    b = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 256); /* an address is for one allocation */
    CHECK(b != 0 && b != a);
    CHECK_INT(cai_sim_free(sim, a), 0);
    CHECK_INT(cai_sim_free(sim, a), 1);
    cai_sim_adopt(sim, ADOPTED);
    CHECK_UINT(cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 64), ADOPTED); /* the real driver gave it again */
    CHECK_INT(cai_sim_free(sim, ADOPTED), 0);
    CHECK_INT(cai_sim_free(sim, b), 0);
    finish();
}

/* 1: the operation waits for `other` itself. */
static int waits_for(uint64_t operation, uint64_t other)
{
    cai_sim_operation info;
    int32_t i;
    CHECK_INT(cai_sim_operation_get(sim, operation, &info), 1);
    for (i = 0; i < info.wait_count; i++)
        if (info.waits[i] == other) return 1;
    return 0;
}

/* The real driver gives two blocks again as one. What was queued before is of the two. */
static void test_adopted_again(void)
{
    uint64_t a, b, both, frees, made;
    start("memory of a pool that a real driver gives again", 0);
    cai_sim_adopt(sim, ADOPTED);
    a = take(0, 256, s);
    cai_sim_adopt(sim, ADOPTED + 256);
    b = take(0, 256, s);
    CHECK_UINT(a, ADOPTED);
    CHECK_UINT(b, ADOPTED + 256);
    CHECK_INT(touch(s, b, 256, 1), 0);
    give(a, s);
    give(b, s);
    frees = cai_sim_operation_count(sim);
    cai_sim_adopt(sim, ADOPTED);
    both = take(0, 512, t);
    made = cai_sim_operation_count(sim);
    CHECK_UINT(both, ADOPTED);
    CHECK(waits_for(made, frees) && waits_for(made, frees - 1));
    CHECK_INT(touch(t, both, 512, 1), 0);
    CHECK_INT(run(), 0);
    give(both, t);
    CHECK_INT(run(), 0);
    cai_sim_adopt(sim, ADOPTED);
    both = take(0, 512, s); /* the free has run: only the driver knows of it */
    CHECK(!waits_for(cai_sim_operation_count(sim), made + 2));
    give(both, s);
    finish();
}

static void test_adopted_mapping(void)
{
    uint64_t addresses, memory;
    start("addresses that a real driver reserved", 0);
    cai_sim_adopt(sim, 8 * SEGMENT);
    addresses = cai_sim_virtual_reserve(sim, 2 * SEGMENT, 0);
    memory = cai_sim_physical_create(sim, 0, SEGMENT);
    CHECK_UINT(addresses, 8 * SEGMENT);
    CHECK_INT(cai_sim_virtual_map(sim, addresses, SEGMENT, 0, memory), 0);
    CHECK_INT(cai_sim_virtual_set_access(sim, addresses, SEGMENT, 0, CAI_SIM_ACCESS_READ_WRITE), 0);
    CHECK_INT(touch(s, addresses, 64, 1), 0);
    CHECK_INT(cai_sim_copy_async(sim, addresses, addresses + 64, 64, s), 0);
    CHECK_INT(run(), 0);
    CHECK_INT(cai_sim_virtual_unmap(sim, addresses, SEGMENT), 0);
    CHECK_INT(cai_sim_physical_release(sim, memory), 0);
    CHECK_INT(cai_sim_virtual_free(sim, addresses, 2 * SEGMENT), 0);
    finish();
}

/* Memory of the caller. Here the second address has other bytes, so that the accesses of the simulation are seen. */
typedef struct twice {
    unsigned char *blocks[4];
    int made, cleared, inside, refuses;
} twice;

static void *twice_make(void *context, uint64_t bytes, void **other)
{
    twice *w = (twice *)context;
    unsigned char *made;
    if (w->refuses) return NULL;
    made = w->blocks[w->made++] = (unsigned char *)calloc(1, 2 * (size_t)bytes + 512);
    if (made == NULL) exit(2);
    made += (256 - (uintptr_t)made % 256) % 256;
    *other = made + bytes;
    return made;
}

static void twice_clear(void *context, void *block, uint64_t bytes)
{
    (void)bytes;
    ((twice *)context)->cleared++;
    CHECK(block != NULL);
}

static void twice_function(void *context, int32_t begins)
{
    ((twice *)context)->inside += begins ? 1 : -1;
}

static void look_inside(void *argument)
{
    CHECK_INT(((const twice *)argument)->inside, 1);
}

static void test_host_memory(void)
{
    twice w = {{NULL, NULL, NULL, NULL}, 0, 0, 0, 0};
    cai_sim_host_memory functions = {NULL, twice_make, twice_clear, twice_function};
    const unsigned char *bytes;
    uint64_t pinned, managed, device;
    start("memory of the caller", CAI_SIM_REUSE);
    functions.context = &w;
    cai_sim_set_host_memory(sim, &functions);
    device = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    CHECK_INT(w.made, 0);
    pinned = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 64);
    managed = cai_sim_alloc(sim, CAI_SIM_MEM_MANAGED, 2 * MB);
    CHECK_INT(w.made, 2);
    bytes = (const unsigned char *)(uintptr_t)pinned;
    CHECK_INT(touch(s, pinned, 64, 1), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
    CHECK_INT(bytes[0] | bytes[63], 0); /* not here, */
    CHECK(bytes[64] | bytes[127]);      /* but at the second address */
    CHECK_INT(cai_sim_copy(sim, device, pinned, 64, s), 0);
    CHECK(memcmp((const void *)(uintptr_t)device, bytes + 64, 64) == 0);
    CHECK_INT(cai_sim_host_function(sim, s, "look", look_inside, &w, NULL, 0), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
    CHECK_INT(w.inside, 0);
    CHECK_INT(cai_sim_free(sim, device), 0);
    CHECK_INT(cai_sim_free(sim, pinned), 0);
    CHECK(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64) == device); /* a block stays of its kind */
    CHECK_INT(w.cleared, 0);
    CHECK(cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 64) == pinned);
    CHECK_INT(w.cleared, 1);
    CHECK_INT(cai_sim_free(sim, managed), 0);
    CHECK_INT(w.cleared, 2); /* a large one at once */
    w.refuses = 1;
    CHECK(cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 4 * MB) != 0);
    CHECK_INT(w.made, 2);
    finish();
    free(w.blocks[0]);
    free(w.blocks[1]);
}

/* ------------------------------------------------------------------ views */
typedef struct view_case {
    int32_t ndim;
    int64_t shape[4], strides[4]; /* elements, bytes */
    int64_t first;                /* byte of the element [0, 0, ...] */
    int32_t accesses;
} view_case;

static const view_case view_cases[] = {
    {0, {0}, {0}, 8, 1},
    {1, {4}, {4}, 0, 1},                    /* in one run */
    {1, {4}, {8}, 4, 4},                    /* every second element */
    {1, {4}, {-8}, 28, 4},                  /* the same, backward */
    {1, {0}, {4}, 0, 0},                    /* empty */
    {2, {3, 0}, {12, 4}, 0, 0},
    {2, {3, 5}, {20, 4}, 0, 1},             /* C order */
    {2, {3, 5}, {4, 12}, 0, 1},             /* Fortran order */
    {2, {3, 2}, {20, 4}, 8, 3},             /* two columns */
    {2, {2, 5}, {40, 4}, 20, 2},            /* every second row */
    {2, {3, 5}, {-20, -4}, 56, 1},          /* both backward */
    {2, {3, 5}, {0, 4}, 0, 1},              /* a row that is repeated */
    {2, {3, 5}, {0, 0}, 16, 1},             /* an element that is repeated */
    {2, {1, 5}, {-99, 4}, 0, 1},            /* the stride of an extent of 1 */
    {2, {3, 4}, {4, 4}, 0, 1},              /* windows that overlap */
    {2, {3, 2}, {2, 16}, 0, 2},             /* by halves of an element */
    {3, {2, 2, 2}, {64, 24, 8}, 0, 8},
    {3, {2, 2, 2}, {8, 64, 24}, 0, 8},      /* the same bytes in another order */
    {4, {2, 3, 2, 2}, {96, 16, 8, 4}, 0, 2},
    {4, {2, 3, 2, 2}, {-96, 32, -8, 4}, 104, 6},
};

static void view_of(const view_case *c, uint64_t memory, cai_kernel_view *view)
{
    int32_t i;
    view->data = (char *)(uintptr_t)(memory + (uint64_t)c->first);
    view->ndim = c->ndim;
    view->itemsize = 4;
    for (i = 0; i < 8; i++) {
        view->shape[i] = i < c->ndim ? c->shape[i] : 1;
        view->strides[i] = i < c->ndim ? c->strides[i] : 0;
    }
}

/* The bytes of the trace are those of the elements, one by one. */
static void check_bytes(const view_case *c, uint64_t memory, const cai_sim_operation *op)
{
    unsigned char expected[256] = {0}, declared[256] = {0};
    int64_t n, size = 1;
    int32_t i;
    for (i = 0; i < c->ndim; i++) size *= c->shape[i];
    for (n = 0; n < size; n++) {
        int64_t at = c->first, rest = n;
        for (i = c->ndim; i-- > 0; rest /= c->shape[i]) at += rest % c->shape[i] * c->strides[i];
        memset(expected + at, 1, 4);
    }
    CHECK_INT(op->access_count, c->accesses);
    for (i = 0; i < op->access_count; i++)
        memset(declared + (op->accesses[i].address - memory), 1, (size_t)op->accesses[i].bytes);
    CHECK(memcmp(expected, declared, sizeof expected) == 0);
}

static void write_nine(void *view)
{
    *(int32_t *)(void *)((cai_kernel_view *)view)->data = 9;
}

static void test_views(void)
{
    uint64_t memory, seen = 0;
    cai_sim_operation op;
    cai_kernel_view two[2], bad;
    size_t i;
    start("the elements of views", CAI_SIM_DEFAULT);
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 256);
    for (i = 0; i < sizeof view_cases / sizeof view_cases[0]; i++) {
        char note[24];
        sprintf(note, "view %d", (int)i);
        cai_test_note(note);
        view_of(&view_cases[i], memory, two);
        CHECK_INT(cai_sim_touch_views(sim, s, note, two, 1, 1), 0);
        CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
        CHECK_STR(op.name, note);
        CHECK(op.declared);
        check_bytes(&view_cases[i], memory, &op);
        CHECK_INT(cai_sim_run(sim), 1);
    }
    CHECK_INT(cai_sim_errors(sim, NULL, 0), 0);
    cai_test_note("what is read and written");
    view_of(&view_cases[1], memory, &two[0]);
    view_of(&view_cases[2], memory + 128, &two[1]);
    CHECK_INT(cai_sim_launch_views(sim, s, "copy", write_nine, two, two, 2, 1), 0);
    CHECK(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &op));
    CHECK(!op.declared && op.access_count == 5);
    CHECK(op.accesses[0].write == 1 && op.accesses[1].write == 0 && op.accesses[4].write == 0);
    CHECK_INT(cai_sim_run(sim), 1);
    CHECK_INT(*(int32_t *)cai_sim_bytes(sim, memory), 9);
    CHECK_INT(cai_sim_launch_views(sim, s, "nothing", NULL, NULL, NULL, 0, 0), 0);
    seen = cai_sim_operation_count(sim);
    cai_test_note("what is no view");
    CHECK_INT(cai_sim_touch_views(sim, s, "x", NULL, 1, 1), 1);
    CHECK_INT(cai_sim_touch_views(sim, s, "x", two, 1, 2), 1);
    CHECK_INT(cai_sim_touch_views(sim, s, "x", two, 1, -1), 1);
    CHECK_INT(cai_sim_touch_views(sim, s, "x", two, -1, -1), 1);
    CHECK_INT(cai_sim_touch_views(sim, 0xabc, "x", two, 1, 1), 400);
    for (i = 0; i < 4; i++) {
        bad = two[0];
        if (i == 0) bad.ndim = 9;
        if (i == 1) bad.ndim = -1;
        if (i == 2) bad.shape[0] = -1;
        if (i == 3) bad.itemsize = -4;
        CHECK_INT(cai_sim_touch_views(sim, s, "x", &bad, 1, 0), 1);
    }
    CHECK_UINT(cai_sim_operation_count(sim), seen);
    cai_test_note("over the end of the memory");
    view_of(&view_cases[2], memory + 256 - 16, two);
    CHECK_INT(cai_sim_touch_views(sim, s, "x", two, 1, 0), 0);
    (void)cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 700);
    finish();
}

static void run_all(void)
{
    test_pools_of_devices();
    test_pool_of_another_device();
    test_pool_amounts();
    test_pool_threshold();
    test_pool_destroyed();
    test_no_reuse();
    test_reuse_in_a_stream();
    test_reuse_behind_events();
    test_two_owners();
    test_pools_of_the_table();
    test_reuse_when_done();
    test_reuse_by_waiting();
    test_large_blocks();
    test_host_memory();
    test_fingerprints();
#if defined(__linux__)
    test_virtual_refused();
    test_virtual_life();
    test_virtual_access();
    test_virtual_copies();
    test_unmap_and_work();
    test_virtual_pointers();
    test_virtual_accesses_of_the_trace();
#endif
    test_pointers();

    test_adopted();
    test_adopted_again();
    test_adopted_mapping();
    test_views();
}

CAI_TEST_MAIN(run_all)
