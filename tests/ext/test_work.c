/* test_work.c - ext/cai_place.h: bare streams, dependencies in, an event out, migration, the cache of streams
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_place.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"
#include "cai_test_help.h"

enum { A = 0x50, B = 0x60, BYTES = 16 };

static cai_error err;

static cai_array make(uint64_t data, uint64_t stream)
{
    const int64_t four = 4;
    cai_array array;
    memset(&array, 0, sizeof array); /* arrays are compared as a whole */
    CHECK_INT(cai_array_init(&array, CAI_FLOAT32, 1, &four, NULL, (void *)(uintptr_t)data, NULL), CAI_OK);
    array.device = 0;
    array.memory = CAI_MEMORY_DEVICE;
    array.sync = stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    array.stream = stream;
    return array;
}

/* ------------------------------------------------------------------ bare streams */

/* The same operand as an array, and as a stream alone. */
static cai_operand operand_as(const cai_array *array, uint64_t stream, int bare)
{
    return bare ? cai_operand_stream(stream, 0, NULL) : cai_operand_array(array, NULL);
}

/* What stands for {none, A, B}^3 in arrays alone stands for it in streams, too. */
static void check_cell(int32_t cell, int32_t policy, uint64_t given)
{
    static const uint64_t streams[3] = {0, A, B};
    const uint64_t of[3] = {streams[cell / 9], streams[cell / 3 % 3], streams[cell % 3]};
    const cai_array x = make(0x1000, of[0]), y = make(0x2000, of[1]), out = make(0x3000, of[2]);
    cai_placement expected, at;
    cai_status status = CAI_OK;
    int32_t bare, index = 0;
    memset(&expected, 0, sizeof expected);
    for (bare = 0; bare < 4; bare++) {
        cai_operand inputs[2];
        inputs[0] = operand_as(&x, of[0], bare & 1);
        inputs[1] = operand_as(&y, of[1], bare & 2);
        memset(&at, 0, sizeof at);
        memset(&err, 0, sizeof err);
        if (!bare) {
            status = cai_place(inputs, 2, &out, policy, 0, given, &expected, &err);
            index = err.index;
            continue;
        }
        CHECK_INT(cai_place(inputs, 2, &out, policy, 0, given, &at, &err), status);
        CHECK_INT(err.index, index);
        CHECK_UINT(at.stream, expected.stream);
        CHECK_INT(at.decided, expected.decided);
        CHECK_INT(at.device, expected.device);
    }
}

static void test_matrix(void)
{
    static const uint64_t given[3] = {0, A, B};
    int32_t cell, policy, g;
    cai_test_note("none, A, B of two operands and out: as arrays and as streams");
    for (cell = 0; cell < 27; cell++)
        for (policy = CAI_PLACE_IDENTICAL; policy <= CAI_PLACE_INTO; policy++)
            for (g = policy == CAI_PLACE_INTO; g < 3; g++) check_cell(cell, policy, given[g]);
}

static void refused(const cai_operand *inputs, int32_t policy, cai_status status, const char *message)
{
    cai_placement at;
    help_fill(&at, sizeof at);
    CHECK_INT(cai_place(inputs, 2, NULL, policy, 0, A, &at, &err), status);
    CHECK_INT(err.index, 1);
    CHECK_STR(err.message, message);
    CHECK(help_filled(&at, sizeof at));
}

static void test_bare(void)
{
    const cai_array x = make(0x1000, A);
    cai_operand in[2];
    cai_placement at;
    cai_test_note("bare streams");
    in[0] = cai_operand_array(&x, "x");
    in[1] = cai_operand_stream(B, 1, "queue");
    refused(in, CAI_PLACE_SAME_DEVICE, CAI_ERR_PLACEMENT,
            "queue is on device 1, stream 0x60, but x is on device 0, stream 0x50");
    in[1].device = CAI_DEVICE_UNKNOWN; /* the caller knows what it does */
    CHECK_INT(cai_place(in, 2, NULL, CAI_PLACE_SAME_DEVICE, 0, 0, &at, &err), CAI_OK);
    refused(in, CAI_PLACE_IDENTICAL, CAI_ERR_PLACEMENT,
            "queue is on stream 0x60, but x is on device 0, stream 0x50");
    in[1].stream = UINT64_MAX;
    refused(in, CAI_PLACE_SAME_DEVICE, CAI_ERR_STREAM,
            "queue: stream -1 is no stream: use CAI_MODE_IGNORE for no order");
    in[1].stream = A;
    in[1].array = &x;
    refused(in, CAI_PLACE_SAME_DEVICE, CAI_ERR_ARGUMENT, "queue: both an array and a stream");
    in[1] = cai_operand_stream(A, -2, NULL);
    refused(in, CAI_PLACE_INTO, CAI_ERR_ARGUMENT, "input 1: device = -2");
    in[1] = cai_operand_stream(0, 7, NULL); /* a scalar */
    CHECK_INT(cai_place(in, 2, NULL, CAI_PLACE_IDENTICAL, 0, 0, &at, &err), CAI_OK);
    in[0] = cai_operand_stream(1, 0, "p"); /* 1 of two devices, 1 of an unknown one, 2 twice */
    in[1] = cai_operand_stream(1, CAI_DEVICE_UNKNOWN, "q");
    refused(in, CAI_PLACE_IDENTICAL, CAI_ERR_PLACEMENT, "q is on stream 0x1, but p is on device 0, stream 0x1");
    in[0].stream = in[1].stream = 2;
    in[1].device = 0;
    CHECK_INT(cai_place(in, 2, NULL, CAI_PLACE_IDENTICAL, 0, 0, &at, &err), CAI_OK);
    CHECK_INT(at.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(at.device, 0);
}

/* ------------------------------------------------------------------ order, by the checker */

/* One library writes on its stream, and hands out the stream or an event. Another works on its own stream and
 * hands out an event, for which the first one waits. One part is left out. */
typedef struct trade {
    int32_t by_event, without_in, without_out, on_host;
} trade;

static void fail_unless(cai_sim *sim, int good, const char *what)
{
    if (!good) cai_check_fail(sim, what);
}

static void trade_program(cai_sim *sim, void *argument)
{
    const trade *t = (const trade *)argument;
    const uint64_t theirs = cai_sim_stream_create(sim, 1), mine = cai_sim_stream_create(sim, 1);
    const uint64_t data = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    const cai_sim_access use = cai_sim_writes(data, BYTES);
    uint64_t before = 0, done = 0;
    cai_event_pool pool;
    cai_exchange ex;
    cai_work work;
    fail_unless(sim, !cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL), "no pool");
    (void)cai_sim_touch(sim, theirs, "first", &use, 1);
    if (t->by_event) fail_unless(sim, !cai_event_make(&pool, theirs, &before, NULL), "no event");
    work.stream = t->by_event ? 0 : theirs;
    work.event = before;
    fail_unless(sim, !cai_exchange_begin(&ex, &pool, NULL, 0, mine, NULL), "not begun");
    if (!t->without_in) fail_unless(sim, !cai_stream_depend(&pool, ex.stream, &work, 1, NULL), "no wait");
    (void)cai_sim_touch(sim, ex.stream, "second", &use, 1);
    fail_unless(sim, !cai_event_make(&pool, ex.stream, &done, NULL), "no event out");
    fail_unless(sim, !cai_exchange_end(&ex, CAI_OK, NULL), "not ended");
    if (t->on_host) (void)cai_sim_event_synchronize(sim, done);
    else if (!t->without_out) (void)cai_sim_stream_wait_event(sim, theirs, done);
    fail_unless(sim, !cai_event_drop(&pool, done, NULL), "not dropped"); /* the wait may still be pending */
    fail_unless(sim, !cai_event_drop(&pool, before, NULL), "not dropped");
    (void)cai_sim_touch(sim, theirs, "third", &use, 1);
    (void)cai_sim_context_synchronize(sim);
    fail_unless(sim, !cai_event_pool_destroy(&pool, NULL), "not destroyed");
    (void)cai_sim_free(sim, data);
    (void)cai_sim_stream_destroy(sim, theirs);
    (void)cai_sim_stream_destroy(sim, mine);
}

static void check_trade(int32_t by_event, int32_t without_in, int32_t without_out, int32_t on_host)
{
    trade t;
    cai_check_result result;
    const int racy = without_in || without_out;
    t.by_event = by_event;
    t.without_in = without_in;
    t.without_out = without_out;
    t.on_host = on_host;
    CHECK_INT(cai_check(trade_program, &t, NULL, &result), racy);
    if (!racy) CHECK_STR(result.text, "");
    CHECK_INT(result.failed, 0);
    if (without_in) CHECK(strstr(result.text, "\"first\"") && strstr(result.text, "\"second\""));
    if (without_out) CHECK(strstr(result.text, "\"second\"") && strstr(result.text, "\"third\""));
}

static void test_trade(void)
{
    int32_t by_event;
    cai_test_note("work in, an event out");
    for (by_event = 0; by_event < 2; by_event++) {
        check_trade(by_event, 0, 0, 0);
        check_trade(by_event, 0, 0, 1);
        check_trade(by_event, 1, 0, 0);
        check_trade(by_event, 0, 1, 0);
    }
}

/* An array goes from queue to queue. 0: by cai_migrate. 1: the stream is only written down. */
static void move_program(cai_sim *sim, void *argument)
{
    const int32_t carelessly = *(const int32_t *)argument;
    const uint64_t old = cai_sim_stream_create(sim, 1), next = cai_sim_stream_create(sim, 1);
    const uint64_t data = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    const cai_sim_access use = cai_sim_writes(data, BYTES);
    cai_array array = make(data, old), mask = make(data, old);
    cai_event_pool pool;
    array.mask = &mask;
    fail_unless(sim, !cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL), "no pool");
    (void)cai_sim_touch(sim, old, "before", &use, 1);
    fail_unless(sim, !cai_stream_detach(&mask, &pool, NULL), "no event");
    if (!carelessly) fail_unless(sim, !cai_migrate(&array, &pool, next, NULL), "not migrated");
    else array.stream = mask.stream = next;
    fail_unless(sim, array.stream == next && mask.stream == next, "on another stream");
    fail_unless(sim, carelessly || mask.sync == CAI_SYNC_STREAM, "still an event");
    (void)cai_sim_touch(sim, next, "after", &use, 1);
    (void)cai_sim_context_synchronize(sim);
    if (carelessly) fail_unless(sim, !cai_stream_drop_event(&mask, &pool, NULL), "not dropped");
    fail_unless(sim, !cai_event_pool_destroy(&pool, NULL), "not destroyed");
    (void)cai_sim_free(sim, data);
    (void)cai_sim_stream_destroy(sim, old);
    (void)cai_sim_stream_destroy(sim, next);
}

static void test_migrate(void)
{
    int32_t carelessly;
    cai_test_note("migration");
    for (carelessly = 0; carelessly < 2; carelessly++) {
        cai_check_result result;
        CHECK_INT(cai_check(move_program, &carelessly, NULL, &result), carelessly);
        CHECK_INT(result.failed, 0);
        if (!carelessly) CHECK_STR(result.text, "");
    }
}

static int32_t given_back;

static void give_back(cai_array *array)
{
    array->release = NULL;
    ++given_back;
}

/* An owned array is released when the consumer's stream has passed: its owner does not know of the new stream. The
 * old stream waits for nothing. All that is so in each mode of the pool. */
static void test_migrate_owned(void)
{
    int32_t mode;
    cai_test_note("an owned array on another queue");
    for (mode = CAI_MODE_EVENT; mode <= CAI_MODE_IGNORE; mode++) {
        cai_sim *sim = cai_sim_create(1);
        uint64_t old, next;
        cai_event_pool pool;
        cai_exchange ex;
        cai_array x, *list[1] = {&x};
        CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
        old = cai_sim_stream_create(sim, 1);
        next = cai_sim_stream_create(sim, 1);
        CHECK_INT(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, &err), CAI_OK);
        CHECK_INT(cai_event_pool_set_modes(&pool, mode, 0, &err), CAI_OK);
        x = make(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES), old);
        cai_array_own(&x, give_back, NULL);
        cai_sim_log_clear(sim);
        CHECK_INT(cai_migrate(&x, &pool, next, &err), CAI_OK);
        CHECK_INT(cai_sim_calls_of(sim, "event_record"), 1);
        CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 1);
        CHECK_INT(cai_sim_calls_of(sim, "stream_synchronize"), 0);
        given_back = 0;
        (void)cai_sim_touch(sim, next, "still at work", NULL, 0);
        CHECK_INT(cai_event_pool_set_modes(&pool, CAI_MODE_EVENT, 0, &err), CAI_OK);
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, next, &err), CAI_OK);
        CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
        CHECK_INT(given_back, 0);
        CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
        CHECK_INT(given_back, 1);
        CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
        cai_sim_destroy(sim);
    }
}

/* ------------------------------------------------------------------ errors */

static uint64_t device_of[2];

static cai_sim *two_devices(void)
{
    cai_sim *sim = cai_sim_create(2);
    device_of[0] = cai_sim_primary(sim, 0);
    device_of[1] = cai_sim_primary(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, device_of[1]), 0); /* active from now on */
    CHECK_INT(cai_sim_set_context(sim, device_of[0]), 0);
    return sim;
}

/* Without a current context 1 and 2 are those of the primary context of the data's device. */
static void test_migrate_without_context(void)
{
    cai_sim *sim = two_devices();
    cai_event_pool pool;
    cai_array x, y, z;
    const uint64_t second = cai_sim_context_create(sim, 0);
    cai_test_note("default streams without a current context");
    CHECK_INT(cai_sim_set_context(sim, second), 0);
    x = make(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES), 0);
    CHECK_INT(cai_sim_set_context(sim, device_of[1]), 0);
    y = make(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES), 0);
    y.device = 1;
    z = y;
    z.device = CAI_DEVICE_UNKNOWN;
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    CHECK_INT(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(cai_migrate(&x, &pool, CAI_STREAM_LEGACY, &err), CAI_ERR_STREAM);
    CHECK_INT(err.rule, 83);
    CHECK_INT(cai_migrate(&y, &pool, CAI_STREAM_LEGACY, &err), CAI_OK);
    CHECK_INT(cai_migrate(&z, &pool, CAI_STREAM_LEGACY, &err), CAI_OK);
    z.device = CAI_DEVICE_UNKNOWN;
    z.data = (uint64_t)(uintptr_t)&z; /* plain memory of the host has no device: that of 1 is device 0 */
    z.memory = CAI_MEMORY_HOST;
    CHECK_INT(cai_migrate(&z, &pool, CAI_STREAM_LEGACY, &err), CAI_ERR_STREAM);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

static int32_t nobody_knows(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self;
    (void)pointer;
    info->device = CAI_DEVICE_UNKNOWN;
    return 0;
}

/* CUDA is asked where an array is that was not located. */
static void test_migrate_not_located(void)
{
    cai_sim *sim = two_devices();
    cai_cuda cuda = *cai_sim_cuda(sim);
    cai_event_pool pool;
    cai_array x = make(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES), 0);
    uint64_t stream;
    int32_t i;
    cai_test_note("arrays that were not located");
    CHECK_INT(cai_sim_set_context(sim, device_of[1]), 0);
    stream = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_OK);
    for (i = 0; i < 2; ++i) {
        x.memory = i ? CAI_MEMORY_DEVICE : CAI_MEMORY_UNKNOWN;
        x.device = CAI_DEVICE_UNKNOWN;
        CHECK_INT(cai_migrate(&x, &pool, stream, &err), CAI_ERR_PLACEMENT);
        CHECK(strstr(err.message, "the array is on device 0, but the work is on device 1") == err.message);
    }
    CHECK_INT(cai_sim_fail_op(sim, "pointer_info", 1, 1), 1);
    CHECK_INT(cai_migrate(&x, &pool, stream, &err), CAI_ERR_CUDA);
    cuda.pointer_info = nobody_knows;
    CHECK_INT(cai_migrate(&x, &pool, stream, &err), CAI_OK);
    x.memory = CAI_MEMORY_MANAGED; /* every device can use it */
    x.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_migrate(&x, &pool, stream, &err), CAI_OK);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

/* 1 and 2 of the current context are other streams than those of the memory's (R83). */
static void test_migrate_default(void)
{
    cai_sim *sim = two_devices();
    cai_cuda cuda = *cai_sim_cuda(sim);
    cai_event_pool pool;
    cai_array x = make(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES), 0), y = x, before;
    uint64_t second = cai_sim_context_create(sim, 0);
    cai_test_note("default streams of two contexts");
    CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(cai_migrate(&x, &pool, CAI_STREAM_LEGACY, &err), CAI_OK);
    before = x;
    CHECK_INT(cai_sim_set_context(sim, second), 0);
    CHECK_INT(cai_migrate(&x, &pool, CAI_STREAM_LEGACY, &err), CAI_ERR_STREAM);
    CHECK_INT(err.rule, 83);
    CHECK(strstr(err.message, "stream 1 of the memory's context") != NULL);
    CHECK(!memcmp(&x, &before, sizeof x));
    CHECK_INT(cuda.memory_alloc_async(cuda.self, &y.data, BYTES, CAI_STREAM_LEGACY), 0); /* of no context */
    y.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_migrate(&y, &pool, CAI_STREAM_LEGACY, &err), CAI_OK);
    y.device = CAI_DEVICE_UNKNOWN;
    y.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_sim_set_context(sim, device_of[1]), 0);
    CHECK_INT(cai_migrate(&y, &pool, CAI_STREAM_LEGACY, &err), CAI_ERR_PLACEMENT);
    y.memory = CAI_MEMORY_MANAGED; /* as the array says */
    CHECK_INT(cai_migrate(&y, &pool, CAI_STREAM_LEGACY, &err), CAI_ERR_STREAM);
    y.size = 0; /* it is nowhere */
    CHECK_INT(cai_migrate(&y, &pool, CAI_STREAM_LEGACY, &err), CAI_OK);
    cai_sim_run(sim);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

static void test_depend_errors(void)
{
    cai_sim *sim = two_devices();
    const uint64_t stream = cai_sim_stream_create(sim, 1);
    cai_work work[2] = {{0, 0}, {0, 0}};
    cai_event_pool pool;
    cai_test_note("errors of cai_stream_depend");
    CHECK_INT(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL), CAI_OK);
    CHECK_INT(cai_stream_depend(NULL, stream, work, 1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_depend(&pool, 0, work, 1, &err), CAI_ERR_STREAM);
    CHECK_INT(cai_stream_depend(&pool, stream, NULL, 1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_depend(&pool, stream, work, -1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_depend(&pool, stream, NULL, 0, &err), CAI_OK);
    work[0].stream = 1;
    CHECK_INT(cai_stream_depend(&pool, stream, work, 2, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(err.index, 1);
    CHECK_STR(err.message, "depends[1]: neither a stream nor an event");
    CHECK_INT(cai_sim_calls_of(sim, "event_record"), 0); /* nothing before all is checked */
    work[1].stream = work[1].event = 5;
    CHECK_INT(cai_stream_depend(&pool, stream, work, 2, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "depends[1]: both a stream and an event");
    work[1].stream = UINT64_MAX;
    work[1].event = 0;
    CHECK_INT(cai_stream_depend(&pool, stream, work, 2, &err), CAI_ERR_STREAM);
    CHECK_INT(err.index, 1);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

static void test_event_errors(void)
{
    cai_sim *sim = two_devices();
    const uint64_t stream = cai_sim_stream_create(sim, 1);
    cai_work work = {0, 0};
    cai_event_pool pool;
    uint64_t event = 77;
    int32_t error;
    cai_test_note("errors of events");
    CHECK_INT(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL), CAI_OK);
    CHECK_INT(cai_event_make(&pool, 0, &event, &err), CAI_ERR_STREAM);
    CHECK_INT(cai_event_make(&pool, stream, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_event_make(NULL, stream, &event, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_event_drop(NULL, 5, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_event_drop(&pool, 0, &err), CAI_OK);
    for (error = 1; error <= 6; error++) { /* each CUDA call of it fails once */
        CHECK_INT(cai_sim_fail(sim, error, 719), 1);
        if (!cai_event_make(&pool, stream, &event, &err)) break;
        CHECK_INT(err.native, 719);
        CHECK_UINT(event, 77);
        CHECK_UINT(cai_sim_current(sim), device_of[0]);
    }
    CHECK(event != 77);
    CHECK_INT(error, 6); /* current, stream_context, capture, create, record; the last fault is left */
    CHECK_INT(cai_event_drop(&pool, event, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_event_drop(&pool, event, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, device_of[1]), 0);
    CHECK_INT(cai_event_make(&pool, stream, &event, &err), CAI_OK); /* of the stream's context */
    work.event = event;
    CHECK_INT(cai_sim_capture_begin(sim, stream, 0), 0);
    CHECK_INT(cai_stream_depend(&pool, stream, &work, 1, &err), CAI_ERR_CAPTURE);
    CHECK_INT(err.rule, 103);
    CHECK_INT(cai_event_make(&pool, stream, &event, &err), CAI_ERR_CAPTURE);
    CHECK_UINT(cai_sim_current(sim), device_of[1]);
    CHECK_INT(cai_event_drop(&pool, event, &err), CAI_OK);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

static void test_migrate_errors(void)
{
    cai_sim *sim = two_devices();
    cai_array x = make(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES), 0);
    cai_array before;
    cai_event_pool pool;
    cai_test_note("errors of migration");
    CHECK_INT(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, device_of[1]), 0);
    x.device = 0;
    before = x;
    CHECK_INT(cai_migrate(&x, &pool, cai_sim_stream_create(sim, 1), &err), CAI_ERR_PLACEMENT);
    CHECK(strstr(err.message, "the array is on device 0, but the work is on device 1, stream 0x") == err.message);
    CHECK(strstr(err.message, ": copy it (cai_move)") != NULL);
    CHECK_INT(cai_migrate(&x, &pool, UINT64_MAX, &err), CAI_ERR_STREAM);
    CHECK(!memcmp(&x, &before, sizeof x));
    x.backend = CAI_BACKEND_HIP;
    CHECK_INT(cai_migrate(&x, &pool, cai_sim_stream_create(sim, 1), &err), CAI_ERR_STREAM);
    CHECK_STR(err.message, "backend = 1, but the table is of backend 0");
    x.backend = CAI_BACKEND_CUDA;
    x.memory = CAI_MEMORY_MANAGED; /* of no device, and of a context */
    CHECK_INT(cai_migrate(&x, &pool, CAI_STREAM_PER_THREAD, &err), CAI_ERR_STREAM);
    CHECK_INT(err.rule, 83);
    CHECK_INT(cai_sim_set_context(sim, device_of[0]), 0);
    CHECK_INT(cai_migrate(&x, &pool, CAI_STREAM_PER_THREAD, &err), CAI_OK);
    CHECK(x.thread != 0 && x.stream == CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ the cache */

typedef struct maker {
    cai_sim *sim;
    int32_t made, destroyed, error, device;
} maker;

static int32_t create(void *self, int32_t device, uint64_t *stream)
{
    maker *m = (maker *)self;
    int32_t here = -1;
    const int32_t error = cai_sim_cuda(m->sim)->context_device(cai_sim_cuda(m->sim)->self, &here);
    if (error) return error;
    CHECK_INT(here, device);
    m->device = device;
    if (m->error) return m->error;
    m->made++;
    *stream = cai_sim_stream_create(m->sim, 1);
    return 0;
}

static int32_t destroy(void *self, uint64_t stream)
{
    maker *m = (maker *)self;
    m->destroyed++;
    if (m->error) return m->error;
    return cai_sim_stream_destroy(m->sim, stream);
}

static cai_stream_maker maker_of(maker *m, cai_sim *sim)
{
    cai_stream_maker made;
    memset(m, 0, sizeof *m);
    m->sim = sim;
    made.self = m;
    made.create = create;
    made.destroy = destroy;
    return made;
}

static void test_cache(void)
{
    cai_sim *sim = two_devices();
    maker m;
    const cai_stream_maker hooks = maker_of(&m, sim);
    cai_cached_stream places[3];
    cai_stream_cache cache;
    uint64_t first = 0, second = 0, again = 0, own = 0, full = 99;
    const uint64_t more = cai_sim_context_create(sim, 0), most = cai_sim_context_create(sim, 0);
    cai_test_note("a cache of streams");
    CHECK_INT(cai_stream_cache_init(&cache, cai_sim_cuda(sim), &hooks, places, 3, 1, &err), CAI_OK);
    m.error = 2;
    CHECK_INT(cai_stream_cache_get(&cache, 0, &full, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, 2);
    CHECK_UINT(full, 99);
    CHECK_INT(cache.count, 0); /* the next call tries again */
    m.error = 0;
    CHECK_INT(cai_stream_cache_get(&cache, 0, &first, &err), CAI_OK);
    CHECK_INT(cai_stream_cache_get(&cache, 0, &again, &err), CAI_OK);
    CHECK_UINT(first, again);
    CHECK_INT(cai_stream_cache_get(&cache, CAI_DEVICE_UNKNOWN, &second, &err), CAI_OK);
    CHECK(first != second && m.made == 2 && m.device == 1);
    CHECK_UINT(cai_sim_current(sim), device_of[0]);
    CHECK_INT(cai_sim_set_context(sim, more), 0);
    CHECK_INT(cai_stream_cache_get(&cache, 0, &own, &err), CAI_OK); /* of the same device, another context */
    CHECK(own != first && m.made == 3);
    CHECK_INT(cai_stream_cache_get(&cache, 1, &again, &err), CAI_OK);
    CHECK_UINT(again, second);
    CHECK_INT(cai_sim_set_context(sim, most), 0);
    CHECK_INT(cai_stream_cache_get(&cache, 0, &full, &err), CAI_ERR_CAPACITY);
    CHECK_STR(err.message, "the cache has room for 3 streams");
    CHECK_INT(cai_sim_set_context(sim, 0), 0); /* none: the primary one */
    CHECK_INT(cai_stream_cache_get(&cache, 0, &again, &err), CAI_OK);
    CHECK_UINT(again, first);
    CHECK_UINT(cai_sim_current(sim), 0);
    CHECK_INT(cai_sim_set_context(sim, device_of[0]), 0);
    cai_stream_cache_forget(&cache, more);
    CHECK_INT(cache.count, 2);
    CHECK_INT(cai_stream_cache_get(&cache, 1, &again, &err), CAI_OK);
    CHECK_UINT(again, second);
    m.error = 719;
    CHECK_INT(cai_stream_cache_destroy(&cache, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, 719);
    CHECK_INT(m.destroyed, 2);
    CHECK_INT(cai_stream_cache_destroy(&cache, &err), CAI_ERR_ARGUMENT);
    cai_sim_destroy(sim);
}

static void test_cache_misuse(void)
{
    cai_sim *sim = two_devices();
    maker m;
    cai_stream_maker hooks = maker_of(&m, sim);
    cai_cached_stream places[1];
    cai_stream_cache cache;
    cai_cuda lame = *cai_sim_cuda(sim);
    uint64_t stream = 99;
    cai_test_note("misuse of a cache");
    CHECK_INT(cai_stream_cache_init(NULL, &lame, &hooks, places, 1, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_init(&cache, NULL, &hooks, places, 1, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_init(&cache, &lame, NULL, places, 1, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_init(&cache, &lame, &hooks, NULL, 1, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_init(&cache, &lame, &hooks, places, 0, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_init(&cache, &lame, &hooks, places, 1, -1, &err), CAI_ERR_ARGUMENT);
    lame.device_context = NULL;
    CHECK_INT(cai_stream_cache_init(&cache, &lame, &hooks, places, 1, 0, &err), CAI_ERR_UNAVAILABLE);
    lame.version = 9;
    CHECK_INT(cai_stream_cache_init(&cache, &lame, &hooks, places, 1, 0, &err), CAI_ERR_ABI);
    hooks.destroy = NULL;
    CHECK_INT(cai_stream_cache_init(&cache, cai_sim_cuda(sim), &hooks, places, 1, 0, &err), CAI_OK);
    CHECK_INT(cai_stream_cache_get(NULL, 0, &stream, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_get(&cache, -2, &stream, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_get(&cache, 0, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_get(&cache, 9, &stream, &err), CAI_ERR_CUDA); /* there are two */
    CHECK_UINT(stream, 99);
    CHECK_INT(cai_stream_cache_get(&cache, 0, &stream, &err), CAI_OK);
    cai_stream_cache_forget(NULL, 0);
    CHECK_INT(cai_stream_cache_destroy(&cache, &err), CAI_OK); /* the streams stay */
    CHECK_INT(m.destroyed, 0);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ every CUDA call fails once */

enum { DEPEND_EVENT, DEPEND_STREAM, MAKE, MIGRATE, MIGRATE_DEFAULT, GET, GET_OTHER, PLACE_ON, STEPS };

typedef struct bench {
    cai_sim *sim;
    cai_cuda cuda;
    cai_event_pool pool;
    maker m;
    cai_cached_stream places[2];
    cai_stream_cache cache;
    uint64_t stream, other, event;
    cai_array x, was;
} bench;

static void open_bench(bench *b)
{
    b->sim = two_devices();
    b->cuda = *cai_sim_cuda(b->sim);
    b->other = cai_sim_stream_create(b->sim, 1);
    b->stream = cai_sim_stream_create(b->sim, 1);
    CHECK_INT(cai_event_pool_init(&b->pool, &b->cuda, NULL, 0, 0, NULL), CAI_OK);
    {
        const cai_stream_maker hooks = maker_of(&b->m, b->sim);
        CHECK_INT(cai_stream_cache_init(&b->cache, &b->cuda, &hooks, b->places, 2, 0, NULL), CAI_OK);
    }
    b->x = make(cai_sim_alloc(b->sim, CAI_SIM_MEM_DEVICE, BYTES), b->other);
    CHECK_INT(cai_event_make(&b->pool, b->other, &b->event, NULL), CAI_OK);
    b->was = b->x;
}

static void close_bench(bench *b)
{
    CHECK_INT(cai_event_drop(&b->pool, b->event, NULL), CAI_OK);
    CHECK_INT(cai_event_pool_destroy(&b->pool, NULL), CAI_OK);
    CHECK_INT(cai_stream_cache_destroy(&b->cache, NULL), CAI_OK);
    cai_sim_destroy(b->sim);
}

static cai_status do_step(bench *b, int32_t step, cai_error *e)
{
    cai_work work[2];
    cai_placement at;
    uint64_t out = 0;
    cai_status status;
    memset(work, 0, sizeof work);
    work[0].stream = b->other;
    work[1].event = b->event;
    if (step == DEPEND_EVENT) return cai_stream_depend(&b->pool, b->stream, &work[1], 1, e);
    if (step == DEPEND_STREAM) return cai_stream_depend(&b->pool, b->stream, work, 2, e);
    if (step == MIGRATE) return cai_migrate(&b->x, &b->pool, b->stream, e);
    if (step == MIGRATE_DEFAULT) return cai_migrate(&b->x, &b->pool, CAI_STREAM_LEGACY, e);
    if (step == GET) return cai_stream_cache_get(&b->cache, 0, &out, e);
    if (step == GET_OTHER) return cai_stream_cache_get(&b->cache, 1, &out, e);
    if (step == PLACE_ON) return cai_place_on(&b->cache, 0, NULL, b->stream, &at, e);
    status = cai_event_make(&b->pool, b->stream, &out, e);
    if (!status && cai_event_drop(&b->pool, out, NULL)) (void)b->cuda.event_destroy(b->cuda.self, out);
    return status;
}

/* The n-th call fails. Returns 0 if there are fewer. */
static int fail_step(int32_t step, uint64_t context, int32_t n, int32_t error, int32_t has_error)
{
    static bench b;
    cai_status status;
    open_bench(&b);
    CHECK_INT(cai_sim_set_context(b.sim, context == 2 ? 0 : device_of[context]), 0);
    CHECK_INT(cai_sim_fail(b.sim, n, error), 1);
    memset(&err, 0, sizeof err);
    status = do_step(&b, step, has_error ? &err : NULL);
    if (status) {
        /* device 1 is current: its stream 1 is not that of the array */
        const int refused = step == MIGRATE_DEFAULT && context == 1 &&
                            (status == CAI_ERR_STREAM || status == CAI_ERR_PLACEMENT);
        if (!refused) CHECK_INT(status, error == 901 ? CAI_ERR_CAPTURE : CAI_ERR_CUDA);
        if (has_error) CHECK_INT(err.code, status);
        if (has_error && !refused) CHECK_INT(err.native, error);
        if (step == MIGRATE || step == MIGRATE_DEFAULT) CHECK(!memcmp(&b.x, &b.was, sizeof b.x));
    }
    CHECK_UINT(cai_sim_current(b.sim), context == 2 ? 0 : device_of[context]);
    (void)b.cuda.context_current(b.cuda.self, &context); /* takes the fault, if it was not used */
    while (n-- > 0) (void)b.cuda.context_current(b.cuda.self, &context);
    if (!status) b.x.sync = CAI_SYNC_NONE;
    close_bench(&b);
    return status != CAI_OK;
}

static void test_faults(void)
{
    int32_t step, n, context, found = 0;
    cai_test_note("every CUDA call fails once");
    for (step = 0; step < STEPS; step++) {
        for (context = 0; context < 3; context++) {
            for (n = 1; n < 30; n++) {
                found += fail_step(step, (uint64_t)context, n, 719, 1);
                found += fail_step(step, (uint64_t)context, n, 901, n % 2);
            }
        }
    }
    CHECK(found > 150);
}

/* ------------------------------------------------------------------ tables and contexts that lack something */

static int32_t no_primary(void *self, int32_t device, uint64_t *context)
{
    (void)self, (void)device;
    *context = 0;
    return 0;
}

static void test_no_context(void)
{
    static bench b;
    cai_sim *sim = cai_sim_create(2);
    cai_stream_cache cache;
    cai_cached_stream place;
    maker m;
    const cai_stream_maker hooks = maker_of(&m, sim);
    cai_cuda table = *cai_sim_cuda(sim);
    uint64_t stream = 99;
    cai_test_note("no context");
    table.device_context = no_primary;
    CHECK_INT(cai_stream_cache_init(&cache, &table, &hooks, &place, 1, 0, &err), CAI_OK);
    CHECK_INT(cai_stream_cache_get(&cache, 1, &stream, &err), CAI_ERR_CUDA); /* none is made */
    CHECK_INT(err.native, 201);
    CHECK_STR(err.message, "no context of device 1 is current on this host thread, and its primary context is "
                           "not active: choose a device (cudaSetDevice)");
    CHECK_INT(cai_stream_cache_get(&cache, 1, &stream, NULL), CAI_ERR_CUDA);
    CHECK_INT(cai_stream_cache_destroy(&cache, &err), CAI_OK);
    cai_sim_destroy(sim);
    open_bench(&b); /* 1 without a current context: of device 0's primary one */
    CHECK_INT(cai_sim_set_context(b.sim, 0), 0);
    stream = b.stream;
    b.stream = CAI_STREAM_LEGACY;
    CHECK_INT(do_step(&b, MAKE, &err), CAI_OK);
    CHECK_INT(do_step(&b, DEPEND_EVENT, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(b.sim, "device_context", 1, 700), 1);
    CHECK_INT(do_step(&b, MAKE, &err), CAI_ERR_CUDA);
    CHECK_UINT(cai_sim_current(b.sim), 0);
    CHECK_INT(cai_sim_set_context(b.sim, device_of[0]), 0);
    b.stream = stream;
    b.x.abi = 3;
    CHECK_INT(do_step(&b, MIGRATE, &err), CAI_ERR_ABI);
    CHECK_INT(cai_sim_fail_op(b.sim, "event_destroy", 1, 4), 1); /* the process ends */
    CHECK_INT(cai_event_drop(&b.pool, 12345, &err), CAI_OK);
    close_bench(&b);
}

static int32_t create_1(void *self, int32_t device, uint64_t *stream)
{
    (void)self, (void)device;
    *stream = CAI_STREAM_LEGACY;
    return 0;
}

static void test_bad_maker(void)
{
    cai_sim *sim = two_devices();
    cai_stream_maker hooks;
    cai_stream_cache cache;
    cai_cached_stream place;
    uint64_t stream = 99;
    cai_test_note("a maker that makes no handle");
    memset(&hooks, 0, sizeof hooks);
    hooks.create = create_1;
    CHECK_INT(cai_stream_cache_init(&cache, cai_sim_cuda(sim), &hooks, &place, 1, 0, &err), CAI_OK);
    CHECK_INT(cai_stream_cache_get(&cache, 0, &stream, &err), CAI_ERR_STREAM);
    CHECK_STR(err.message, "create made stream 1, which is no handle");
    CHECK_UINT(stream, 99);
    cai_stream_cache_forget(&cache, 0);
    CHECK_INT(cai_stream_cache_destroy(&cache, &err), CAI_OK);
    hooks.create = NULL;
    CHECK_INT(cai_stream_cache_init(&cache, cai_sim_cuda(sim), &hooks, &place, 1, 0, &err), CAI_ERR_ARGUMENT);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ states that are rare */

static void test_rare_arrays(void)
{
    static bench b;
    cai_array empty;
    const int64_t zero = 0;
    cai_placement at;
    cai_test_note("arrays that are rare");
    open_bench(&b);
    CHECK_INT(cai_stream_detach(&b.x, &b.pool, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(b.sim, "event_destroy", 1, 719), 1); /* which is no reason to fail */
    CHECK_INT(do_step(&b, MIGRATE, &err), CAI_OK);
    CHECK(b.x.sync == CAI_SYNC_STREAM && b.x.stream == b.stream && !b.x.event);
    CHECK(!(b.x.flags & CAI_OWN_EVENT));
    CHECK_INT(cai_array_init(&empty, CAI_FLOAT32, 1, &zero, NULL, NULL, NULL), CAI_OK);
    empty.memory = CAI_MEMORY_DEVICE;
    empty.device = 1;
    CHECK_INT(cai_migrate(&empty, &b.pool, b.stream, &err), CAI_OK);
    b.x.device = CAI_DEVICE_UNKNOWN; /* not located */
    CHECK_INT(cai_migrate(&b.x, &b.pool, b.other, &err), CAI_OK);
    CHECK_INT(cai_place_on(&b.cache, 0, &b.x, b.stream, &at, &err), CAI_ERR_MEMORY);
    CHECK_STR(err.message, "the array's device is unknown, call cai_locate");
    empty.sync = CAI_SYNC_STREAM;
    empty.stream = b.stream;
    CHECK_INT(cai_place_on(&b.cache, 1, &empty, b.stream, &at, &err), CAI_ERR_PLACEMENT); /* which is nowhere */
    CHECK_INT(cai_place_on(&b.cache, 0, NULL, 0, NULL, &err), CAI_ERR_ARGUMENT);
    b.m.error = 999;
    CHECK_INT(cai_place_on(&b.cache, 0, NULL, 0, &at, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, 999);
    b.m.error = 0;
    close_bench(&b);
}

static void go_on(void *context, const cai_sim_undefined *what)
{
    (void)context;
    (void)what;
}

static void test_rare_calls(void)
{
    static bench b;
    static cai_event_pool none;
    cai_stream_cache cache;
    cai_placement at;
    cai_work work[2];
    uint64_t stream;
    cai_stream_maker hooks;
    cai_test_note("calls that are rare");
    open_bench(&b);
    memset(work, 0, sizeof work);
    work[1].stream = b.other;
    CHECK_INT(cai_stream_depend(&b.pool, b.stream, work, 2, NULL), CAI_ERR_ARGUMENT);
    work[0].event = 0xbad; /* never an event: the simulation would end the program */
    cai_sim_on_undefined(b.sim, go_on, NULL);
    CHECK_INT(cai_stream_depend(&b.pool, b.stream, work, 2, NULL), CAI_ERR_CUDA);
    CHECK_INT(cai_stream_depend(&b.pool, b.stream, work, 2, &err), CAI_ERR_CUDA);
    cai_sim_on_undefined(b.sim, NULL, NULL);
    CHECK_INT(err.index, 0);
    CHECK_INT(cai_event_drop(&none, 5, &err), CAI_ERR_ARGUMENT);
    memset(&cache, 0, sizeof cache);
    CHECK_INT(cai_stream_cache_get(&cache, 0, &stream, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_place_on(&cache, 0, NULL, 0, &at, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_stream_cache_destroy(NULL, &err), CAI_ERR_ARGUMENT);
    hooks = b.cache.maker;
    b.cuda.context_device = NULL;
    CHECK_INT(cai_stream_cache_init(&cache, &b.cuda, &hooks, b.places, 2, 0, &err), CAI_ERR_UNAVAILABLE);
    b.cuda.context_pop = NULL;
    CHECK_INT(cai_stream_cache_init(&cache, &b.cuda, &hooks, b.places, 2, 0, &err), CAI_ERR_UNAVAILABLE);
    b.cuda.context_push = NULL;
    CHECK_INT(cai_stream_cache_init(&cache, &b.cuda, &hooks, b.places, 2, 0, &err), CAI_ERR_UNAVAILABLE);
    b.cuda.context_current = NULL;
    CHECK_INT(cai_stream_cache_init(&cache, &b.cuda, &hooks, b.places, 2, 0, &err), CAI_ERR_UNAVAILABLE);
    b.cuda.struct_size = (uint32_t)offsetof(cai_cuda, stream_context);
    CHECK_INT(cai_stream_cache_init(&cache, &b.cuda, &hooks, b.places, 2, 0, &err), CAI_ERR_UNAVAILABLE);
    b.cuda = *cai_sim_cuda(b.sim);
    CHECK_INT(do_step(&b, GET, &err), CAI_OK);
    cai_stream_cache_forget(&b.cache, 0);
    CHECK_INT(b.cache.count, 0);
    CHECK_INT(do_step(&b, GET, &err), CAI_OK);
    CHECK_INT(do_step(&b, GET_OTHER, &err), CAI_OK);
    b.m.error = 719;
    CHECK_INT(cai_stream_cache_destroy(&b.cache, &err), CAI_ERR_CUDA); /* the first of two */
    CHECK_INT(cai_stream_cache_init(&b.cache, &b.cuda, &hooks, b.places, 2, 0, &err), CAI_OK);
    b.m.error = 0;
    CHECK_INT(do_step(&b, GET, &err), CAI_OK);
    b.m.error = 4; /* the process ends */
    close_bench(&b);
}

/* ------------------------------------------------------------------ which device */

/* A cache of two devices, with a stream of the user on each. */
typedef struct choice {
    cai_sim *sim;
    maker m;
    cai_stream_maker hooks;
    cai_cached_stream places[2];
    cai_stream_cache cache;
    uint64_t here, there, zero, one;
    cai_array x; /* on device 0, stream here */
} choice;

static void open_choice(choice *c)
{
    c->sim = two_devices();
    c->hooks = maker_of(&c->m, c->sim);
    CHECK_INT(cai_stream_cache_init(&c->cache, cai_sim_cuda(c->sim), &c->hooks, c->places, 2, 1, &err), CAI_OK);
    CHECK_INT(cai_stream_cache_get(&c->cache, 0, &c->zero, &err), CAI_OK);
    CHECK_INT(cai_stream_cache_get(&c->cache, 1, &c->one, &err), CAI_OK);
    c->here = cai_sim_stream_create(c->sim, 1);
    CHECK_INT(cai_sim_set_context(c->sim, device_of[1]), 0);
    c->there = cai_sim_stream_create(c->sim, 1);
    CHECK_INT(cai_sim_set_context(c->sim, device_of[0]), 0);
    c->x = make(0x1000, c->here);
}

static void close_choice(choice *c)
{
    CHECK_INT(cai_stream_cache_destroy(&c->cache, &err), CAI_OK);
    cai_sim_destroy(c->sim);
}

static void test_which_device(void)
{
    choice c;
    cai_placement at;
    cai_test_note("which device");
    open_choice(&c);
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, NULL, 0, &at, &err), CAI_OK); /* the default */
    CHECK(at.device == 1 && at.stream == c.one && !at.decided);
    CHECK_INT(cai_place_on(&c.cache, 0, NULL, 0, &at, &err), CAI_OK); /* an ordinal */
    CHECK(at.device == 0 && at.stream == c.zero);
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, NULL, c.there, &at, &err), CAI_OK); /* a stream */
    CHECK(at.device == 1 && at.stream == c.there && at.decided == 1);
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, NULL, 1, &at, &err), CAI_OK); /* of the current one */
    CHECK(at.device == 0 && at.stream == 1);
    CHECK_INT(cai_place_on(&c.cache, 0, &c.x, 0, &at, &err), CAI_OK); /* an array, and its stream */
    CHECK(at.device == 0 && at.stream == c.here && at.memory == CAI_MEMORY_DEVICE);
    c.x.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, &c.x, 0, &at, &err), CAI_OK);
    CHECK(at.device == 0 && at.stream == c.zero);
    c.x.memory = CAI_MEMORY_PINNED; /* names no device */
    c.x.sync = CAI_SYNC_STREAM;
    CHECK_INT(cai_place_on(&c.cache, 1, &c.x, 0, &at, &err), CAI_OK);
    CHECK(at.device == 1 && at.stream == c.one);
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, &c.x, 0, &at, &err), CAI_OK); /* its stream does */
    CHECK(at.device == 0 && at.stream == c.here);
    c.x.stream = CAI_STREAM_LEGACY; /* of another context: not the one of that name here */
    c.x.device = 1;
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, &c.x, 0, &at, &err), CAI_OK);
    CHECK(at.device == 1 && at.stream == c.one && !at.decided);
    c.x.device = 0;
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, &c.x, 0, &at, &err), CAI_OK);
    CHECK(at.device == 0 && at.stream == CAI_STREAM_LEGACY && at.decided == 1);
    close_choice(&c);
}

static void test_which_device_refused(void)
{
    choice c;
    cai_placement at;
    cai_test_note("which device: refused");
    open_choice(&c);
    help_fill(&at, sizeof at);
    CHECK_INT(cai_place_on(&c.cache, 1, &c.x, 0, &at, &err), CAI_ERR_PLACEMENT);
    CHECK(strstr(err.message, "the array (stream 0x") == err.message);
    CHECK(strstr(err.message, ") is on device 0, but the device that is named is on device 1") != NULL);
    CHECK_INT(cai_place_on(&c.cache, CAI_DEVICE_UNKNOWN, &c.x, c.there, &at, &err), CAI_ERR_PLACEMENT);
    CHECK(strstr(err.message, "stream 0x") == err.message);
    CHECK(strstr(err.message, " is on device 1, but the array (stream 0x") != NULL);
    CHECK_INT(cai_place_on(&c.cache, 0, NULL, c.there, &at, &err), CAI_ERR_PLACEMENT);
    CHECK_INT(cai_place_on(&c.cache, 0, NULL, UINT64_MAX, &at, &err), CAI_ERR_STREAM);
    CHECK_INT(cai_place_on(&c.cache, -2, NULL, 0, &at, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_place_on(NULL, 0, NULL, 0, &at, &err), CAI_ERR_ARGUMENT);
    c.x.backend = CAI_BACKEND_HIP;
    CHECK_INT(cai_place_on(&c.cache, 0, &c.x, 0, &at, &err), CAI_ERR_STREAM);
    CHECK_STR(err.message, "backend = 1, but the table is of backend 0");
    c.x.abi = 1;
    CHECK_INT(cai_place_on(&c.cache, 0, &c.x, 0, &at, &err), CAI_ERR_ABI);
    CHECK(help_filled(&at, sizeof at));
    close_choice(&c);
}

int main(void)
{
    test_matrix();
    test_bare();
    test_trade();
    test_migrate();
    test_migrate_owned();
    test_migrate_default();
    test_migrate_without_context();
    test_migrate_not_located();
    test_depend_errors();
    test_event_errors();
    test_migrate_errors();
    test_cache();
    test_cache_misuse();
    test_faults();
    test_no_context();
    test_bad_maker();
    test_rare_arrays();
    test_rare_calls();
    test_which_device();
    test_which_device_refused();
    return cai_test_end();
}
