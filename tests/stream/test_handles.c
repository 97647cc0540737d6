/* test_handles.c - captures, how long handles live, and host threads
 * SPDX-License-Identifier: MIT */
#include "pool_setup.h"

/* ------------------------------------------------------------------ captures */

/* Outside of the capture of a producer, and then in it. */
static void check_joined_capture(void)
{
    cai_array a, b;
    cai_array *list[1] = {&a}, *both[3] = {&a, &b, &a};
    cai_exchange ex;
    cai_exchange_options o = options_of(0, 0);
    uint64_t s1, s2, s3;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    s3 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    exchange_once(list, 1, s3); /* an idle event */
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_THREAD_LOCAL), 0);
    o.flags = CAI_EXCHANGE_JOIN_CAPTURE;
    cai_sim_log_clear(sim);
    make(&b, m1, CAI_SYNC_STREAM, s3); /* does not capture: nobody can be after both */
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, both, 2, s2, &o, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, both + 1, 2, s2, &o, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, s2, &o, &err), CAI_OK);
    logged("stream_context s2 -> c1\nstream_context s1 -> c1\n"
           "stream_capture s2 -> none\nstream_capture s1 -> active 1\ncontext_id c1 -> 1\n"
           "event_record e1 s1\nstream_wait_event s2 e1\nevent_destroy e1\n");
    exchange_once(list, 1, s2); /* both are in the capture now */
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_create"), 3);
    CHECK_INT(cai_sim_calls_of(sim, "event_destroy"), 3);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    CHECK_INT(pool.idle_count, 0); /* an event of a capture is not used again */
    exchange_once(list, 1, s2);
    close_pool();
}

static void check_captured_producer(void)
{
    cai_array a, event;
    cai_array *list[2] = {&a, &event};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(1, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&event, m1, CAI_SYNC_EVENT, 0);
    event.event = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_THREAD_LOCAL), 0);
    CHECK_INT(cai_stream_order(&pool, s1, s2, &err), CAI_ERR_CAPTURE);
    CHECK(strstr(err.message, "cai_exchange_begin_with allows it by CAI_EXCHANGE_JOIN_CAPTURE") != NULL);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s1, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_ERR_CAPTURE);
    own(&a);
    CHECK_INT(cai_keepalive_push(&a, &pool, s1, &err), CAI_ERR_CAPTURE);
    CHECK_INT(released, 0);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(pool.free, 0); /* the place in the list was given back */
    cai_array_release(&a);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    CHECK_INT(cai_sim_event_destroy(sim, event.event), 0);
    close_pool();
}

static void check_capture_refusals(void)
{
    cai_array a, unknown;
    cai_array *list[2] = {&a, &unknown};
    cai_exchange ex;
    cai_exchange_options host = options_of(CAI_MODE_HOST, 0);
    uint64_t s1, s2, s3;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    s3 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&unknown, m1, CAI_SYNC_UNKNOWN, 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s3, &err), CAI_OK);
    CHECK_INT(cai_sim_capture_begin(sim, s3, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_CAPTURE); /* a capture began in between */
    CHECK_INT(pool.open_exchanges, 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s3, &err), CAI_ERR_CAPTURE);
    CHECK_INT(err.index, 0);
    CHECK_INT(err.native, 0);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, s3, &host, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list + 1, 1, s3, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_THREAD_LOCAL), 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s3, &err), CAI_ERR_CAPTURE); /* two captures */
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    CHECK(cai_sim_stream_synchronize(sim, s3) != 0); /* spoils the capture */
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s3, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_stream_order(&pool, s3, s2, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK(cai_sim_capture_end(sim, s3, NULL) != 0);
    cai_sim_clear_error(sim);
    exchange_once(list, 1, s2);
    close_pool();
}

/* ------------------------------------------------------------------ how long handles live */

static uint64_t gone[MOST]; /* streams that were destroyed */
static int32_t gone_count, named_gone;

static void look_for_gone(uint64_t stream)
{
    int32_t i;
    for (i = 0; i < gone_count; i++) named_gone += gone[i] == stream;
}

static int32_t strict_context(void *self, uint64_t stream, uint64_t *context)
{
    look_for_gone(stream);
    return cai_sim_cuda(sim)->stream_context(self, stream, context);
}

static int32_t strict_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    look_for_gone(stream);
    return cai_sim_cuda(sim)->stream_capture(self, stream, capture);
}

static int32_t strict_wait(void *self, uint64_t stream, uint64_t event)
{
    look_for_gone(stream);
    return cai_sim_cuda(sim)->stream_wait_event(self, stream, event);
}

static int32_t strict_record(void *self, uint64_t event, uint64_t stream)
{
    look_for_gone(stream);
    return cai_sim_cuda(sim)->event_record(self, event, stream);
}

/* Takes the stream that was made last away from the test, which destroys the others at its end. */
static void destroy_last(uint64_t stream)
{
    CHECK_UINT(made[--made_count], stream);
    CHECK_INT(cai_sim_stream_destroy(sim, stream), 0);
    gone[gone_count++ % MOST] = stream;
}

/* Streams are destroyed at the first moment that the header allows, with their work pending. What waits for
 * them is released all the same, and no call names one of them. */
static void check_handles_end(void)
{
    cai_array a, b, c;
    cai_array *list[3] = {&a, &b, &c};
    cai_exchange ex;
    uint64_t s1, s2, s3;
    int32_t turn;
    open_pool(4, 0);
    cuda.stream_context = strict_context;
    cuda.stream_capture = strict_capture;
    cuda.stream_wait_event = strict_wait;
    cuda.event_record = strict_record;
    gone_count = named_gone = 0;
    s1 = stream_in(c1);
    for (turn = 0; turn < 4; turn++) {
        s2 = stream_in(c1);
        s3 = stream_in(c1);
        make(&a, m1, CAI_SYNC_STREAM, s1);
        make(&b, m1, CAI_SYNC_NONE, 0);
        make(&c, m1, CAI_SYNC_STREAM, s2);
        own(&a);
        own(&b);
        own(&c);
        CHECK_INT(cai_sim_launch(sim, s3, "before", NULL, NULL, NULL, 0), 0);
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, turn == 3 ? 2 : 3, turn == 3 ? s2 : s3, &err), CAI_OK);
        if (turn < 2) {
            CHECK_INT(cai_exchange_finish(&ex, turn ? CAI_ERR_SHAPE : CAI_OK, list, 3, NULL),
                      turn ? CAI_ERR_SHAPE : CAI_OK);
        } else {
            CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
            CHECK_INT(cai_keepalive_push(&a, &pool, ex.stream, &err), CAI_OK);
            CHECK_INT(cai_keepalive_push(&b, &pool, ex.stream, &err), CAI_OK);
            CHECK_INT(cai_keepalive_push(&c, &pool, ex.stream, &err), CAI_OK);
        }
        CHECK_INT(pool.waiting, 3);
        destroy_last(s3);
        destroy_last(s2);
        CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
        cai_sim_run(sim);
        CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
        CHECK_INT(released * 10 + pool.waiting, 30);
    }
    if (!(cai_sim_options(sim) & CAI_SIM_REUSE)) { /* else other streams have these handles now */
        CHECK_INT(named_gone, 0);
        look_for_gone(gone[0]); /* the watch sees what it is for */
        CHECK_INT(named_gone, 1);
    }
    close_pool();
}

/* One record in all: for the edges back, and for all arrays that wait. */
static void check_one_event(void)
{
    cai_array arrays[6];
    cai_array *list[6];
    cai_exchange ex;
    uint64_t s1, s2;
    int32_t i;
    open_pool(8, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    for (i = 0; i < 6; i++) {
        make(&arrays[i], m1, i < 3 ? CAI_SYNC_STREAM : CAI_SYNC_NONE, i < 3 ? s1 : 0);
        list[i] = &arrays[i];
        own(&arrays[i]);
    }
    arrays[1].flags |= CAI_ORDERED_FREE;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 6, s2, &err), CAI_OK);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 6, &err), CAI_OK);
    logged("stream_capture s2 -> none\nstream_capture s1 -> none\nevent_record e1 s2\nstream_wait_event s1 e1\n"
           "capture_mode relaxed -> global\ncapture_mode global -> relaxed\n");
    CHECK_INT(released * 10 + pool.waiting, 15); /* the second alone at once */
    CHECK_INT(pool.idle_count, 0);
    CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    logged("capture_mode relaxed -> global\ncontext_id c1 -> 1\nevent_query e1 -> not_ready\n"
           "capture_mode global -> relaxed\n");
    cai_sim_run(sim);
    CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    logged("capture_mode relaxed -> global\ncontext_id c1 -> 1\nevent_query e1 -> done\n"
           "capture_mode global -> relaxed\n");
    CHECK_INT(released * 10 + pool.waiting, 60);
    CHECK_INT(pool.idle_count, 1); /* the event came back once */
    close_pool();
}

/* More arrays than places: the host waits for the oldest, and each group has an event of its own. */
static void check_more_than_places(void)
{
    cai_array arrays[7];
    cai_array *list[7];
    cai_exchange ex;
    uint64_t s1;
    int32_t i;
    open_pool(3, 0);
    s1 = stream_in(c1);
    for (i = 0; i < 7; i++) {
        make(&arrays[i], m1, CAI_SYNC_NONE, 0);
        list[i] = &arrays[i];
        own(&arrays[i]);
    }
    CHECK_INT(cai_sim_launch(sim, s1, "work", NULL, NULL, NULL, 0), 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 7, s1, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 7, &err), CAI_OK);
    CHECK_INT(released * 10 + pool.waiting, 61);
    CHECK_INT(cai_sim_calls_of(sim, "event_record"), 3);
    CHECK_INT(cai_sim_calls_of(sim, "event_synchronize"), 2);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 7);
    close_pool();
}

/* What a late callback finds: five fields, and zeros. */
static void check_late_callback(void)
{
    cai_array a, mask;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1;
    int32_t kind;
    open_pool(3, 0);
    s1 = stream_in(c1);
    for (kind = 0; kind < 4; kind++) {
        make(&a, m1, CAI_SYNC_STREAM, kind == 0 ? s1 : kind == 1 ? 1 : 2);
        make(&mask, m1, CAI_SYNC_NONE, 0);
        if (kind == 3) a.sync = CAI_SYNC_NONE;
        a.mask = &mask;
        a.device = 0;
        own(&a);
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, kind == 2 ? 2 : s1, &err), CAI_OK);
        CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
        CHECK_INT(released * 10 + pool.waiting, 1);
        CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
        CHECK_INT(released, 1);
        CHECK_INT(released_last.sync, kind < 2 ? CAI_SYNC_STREAM : CAI_SYNC_NONE);
        CHECK_UINT(released_last.stream, kind == 0 ? s1 : kind == 1);
        CHECK_UINT(released_last.data, m1);
        CHECK_INT(released_last.device, 0);
        CHECK(!released_last.mask && !released_last.size && !released_last.event && !released_last.thread);
        CHECK_INT(cai_array_check(&released_last, &err), CAI_OK);
    }
    close_pool();
}

/* An event whose record failed is not used again. */
static void check_failed_record(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    exchange_once(list, 1, s2);
    CHECK_INT(pool.idle_count, 1);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 1, 400), 1);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_ERR_CUDA);
    CHECK_INT(pool.idle_count, 0);
    CHECK_INT(cai_sim_calls_of(sim, "event_destroy"), 1);
    exchange_once(list, 1, s2);
    close_pool();
}

/* What is parked is tried again by a poll and by a drain, which says what it cannot do. */
typedef struct parked_memory {
    cai_priv_parked node;
    int32_t refusals, tries, waits;
} parked_memory;

static int try_parked(cai_priv_parked *node, int wait)
{
    parked_memory *memory = (parked_memory *)(void *)node;
    memory->tries++;
    memory->waits += wait;
    return memory->refusals-- <= 0;
}

static void check_parked(void)
{
    parked_memory one, two;
    int32_t waiting;
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    one.node.again = two.node.again = try_parked;
    one.refusals = 1;
    two.refusals = 3;
    open_pool(2, 0);
    cai_priv_park(&pool, &one.node);
    cai_priv_park(&pool, &two.node);
    CHECK_INT(pool.waiting, 2);
    REFUSED(cai_event_pool_destroy(&pool, &err), CAI_ERR_PENDING,
            "0 exchanges have not ended, and 2 arrays wait in the keep-alive list");
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_OK);
    CHECK_INT(waiting, 2);
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_OK);
    CHECK_INT(waiting * 100 + one.tries * 10 + two.tries, 122);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_ERR_PENDING);
    CHECK(strstr(err.message, "cai_keepalive_drain after the capture") != NULL);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(two.tries * 10 + two.waits, 42);
    CHECK_INT(pool.waiting, 0);
    close_pool();
}

static int32_t mode_in_callback;

static void on_release_mode(cai_array *array)
{
    array->release = NULL;
    mode_in_callback = CAI_SIM_MODE_RELAXED;
    (void)cai_sim_cuda(sim)->capture_mode(sim, &mode_in_callback);
    (void)cai_sim_cuda(sim)->capture_mode(sim, &mode_in_callback);
    released++;
}

/* Callbacks run relaxed, and none in a begin whose consumer captures. */
static void check_callbacks_in_captures(void)
{
    cai_array a, x;
    cai_array *list[1] = {&x};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(2, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_NONE, 0);
    make(&x, m1, CAI_SYNC_STREAM, s1);
    cai_array_own(&a, on_release_mode, NULL);
    released = 0;
    CHECK_INT(cai_keepalive_push(&a, &pool, s2, &err), CAI_OK);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_GLOBAL), 0);
    {
        cai_exchange_options o = options_of(0, 0);
        o.flags = CAI_EXCHANGE_JOIN_CAPTURE; /* the producer captures, the consumer not yet */
        CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, s2, &o, &err), CAI_OK);
        CHECK_INT(released, 1);
        CHECK_INT(mode_in_callback, CAI_SIM_MODE_RELAXED);
        CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    }
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    cai_array_own(&a, on_release_mode, NULL);
    CHECK_INT(cai_keepalive_push(&a, &pool, s2, &err), CAI_OK);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_GLOBAL), 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_ERR_CAPTURE);
    CHECK_INT(released, 1); /* the consumer captures */
    CHECK_INT(cai_sim_capture_end(sim, s2, NULL), 0);
    CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    CHECK_INT(released, 2);
    close_pool();
}

/* An owner that frees memory, which CUDA forbids while another thread captures globally. */
static int32_t freed_with;

static void on_release_free(cai_array *array)
{
    array->release = NULL;
    freed_with = cai_sim_free(sim, (uint64_t)(uintptr_t)array->owner);
    released++;
}

static void own_memory(cai_array *array)
{
    released = 0;
    freed_with = -1;
    cai_array_own(array, on_release_free, (void *)(uintptr_t)cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096));
}

/* Finishes an exchange of one array while thread 7 captures. */
static void finish_beside_capture(cai_array *a, uint64_t stream, uint64_t captured, int32_t mode)
{
    cai_array *list[1];
    cai_exchange ex;
    const cai_exchange_options o = options_of(mode, 0);
    list[0] = a;
    own_memory(a);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, stream, &o, &err), CAI_OK);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_sim_capture_begin(sim, captured, CAI_SIM_MODE_GLOBAL), 0);
    cai_sim_host_thread(sim, 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK_INT(released * 1000 + freed_with, 1000);
    CHECK_INT(cai_sim_calls_of(sim, "capture_mode") % 2, 0);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_capture_end(sim, captured, NULL), 0); /* it is as it was */
    cai_sim_host_thread(sim, 0);
}

/* What cai_exchange_finish gives back at once ends no capture of another thread. */
static void check_released_beside_captures(void)
{
    cai_array a;
    uint64_t s1, s2;
    open_pool(1, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    a.flags |= CAI_ORDERED_FREE;
    finish_beside_capture(&a, s1, s2, 0);
    logged("capture_mode relaxed -> global\ncapture_mode global -> relaxed\n");
    make_empty(&a, CAI_SYNC_NONE, 0);
    finish_beside_capture(&a, s1, s2, 0);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    finish_beside_capture(&a, s1, s2, CAI_MODE_HOST);
    close_pool();
}

/* The pool is full while the callback of an array runs, and thread 7 needs a place. It releases the next one. */
static uint64_t needed_by;

static void on_release_need(cai_array *array)
{
    cai_array more;
    int32_t i;
    array->release = NULL;
    released++;
    cai_sim_host_thread(sim, 7);
    for (i = 0; i < 2; i++) {
        make(&more, m1, CAI_SYNC_NONE, 0);
        cai_array_own(&more, on_release, NULL);
        CHECK_INT(cai_keepalive_push(&more, &pool, needed_by, &err), CAI_OK);
    }
    cai_sim_host_thread(sim, 0);
}

static void check_place_beside_captures(void)
{
    cai_array a, b;
    uint64_t s1, s2;
    open_pool(2, 0);
    needed_by = s1 = stream_in(c1);
    s2 = stream_in(c1);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cai_sim_host_thread(sim, 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    make(&b, m1, CAI_SYNC_NONE, 0);
    own_memory(&b);
    cai_array_own(&a, on_release_need, NULL);
    CHECK_INT(cai_keepalive_push(&a, &pool, s1, &err), CAI_OK);
    CHECK_INT(cai_keepalive_push(&b, &pool, s1, &err), CAI_OK);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_GLOBAL), 0);
    CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    CHECK_INT(released, 2);
    CHECK_INT(freed_with, 0);
    CHECK_INT(cai_sim_capture_end(sim, s2, NULL), 0);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    close_pool();
}

/* Nobody knows the stream: work may be on another device. A capture that stream 1 tells of is not ended. */
static void check_unknown_elsewhere(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    cai_exchange_options legacy = options_of(0, CAI_UNKNOWN_LEGACY);
    uint64_t s1, s2, blocking, pooled;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c2);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    CHECK_INT(cai_sim_launch(sim, s2, "of the peer", NULL, NULL, NULL, 0), 0);
    blocking = cai_sim_stream_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_OK);
    CHECK_INT(cai_sim_stream_synchronize(sim, s2), 0);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_capture_begin(sim, blocking, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_ERR_CAPTURE);
    CHECK_INT(err.native, 906);
    CHECK_INT(cai_sim_capture_end(sim, blocking, NULL), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, blocking), 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    pooled = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 64);
    {
        const uint64_t further = cai_sim_context_create(sim, 0);
        CHECK_INT(cai_sim_set_context(sim, further), 0);
        make(&a, pooled, CAI_SYNC_UNKNOWN, 0);
        cai_sim_log_clear(sim);
        CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, s1, &legacy, &err), CAI_OK);
        CHECK_INT(ex.edge_count, 2); /* stream 1 of the current context, and that of the primary one */
        CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
        CHECK_INT(cai_event_pool_forget(&pool, further, &err), CAI_OK);
        CHECK_INT(cai_sim_set_context(sim, c1), 0);
        cai_sim_run(sim);
        CHECK_INT(cai_sim_context_destroy(sim, further), 0);
    }
    CHECK_INT(cai_sim_free(sim, pooled), 0);
    close_pool();
}

/* A consumer on the legacy stream cannot join a capture. */
static void check_join_legacy(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    cai_exchange_options o = options_of(0, 0);
    uint64_t s1;
    open_pool(0, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    o.flags = CAI_EXCHANGE_JOIN_CAPTURE;
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, CAI_STREAM_LEGACY, &o, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    close_pool();
}

/* ------------------------------------------------------------------ host threads */

static void check_threads(void)
{
    cai_array a, mask;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1;
    open_pool(2, 0);
    s1 = stream_in(c1);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_OK);
    CHECK_UINT(a.thread, 0);
    make(&mask, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    mask.thread = 0;
    a.mask = &mask;
    a.stream = CAI_STREAM_PER_THREAD;
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_ERR_THREAD, of_first(of_no_thread));
    REFUSED(cai_stream_detach(&a, &pool, &err), CAI_ERR_THREAD, of_no_thread);
    CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_OK);
    CHECK_UINT(a.thread, 7);
    CHECK_UINT(mask.thread, 7);
    exchange_once(list, 1, s1);
    cai_sim_host_thread(sim, 0x1f);
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_ERR_THREAD, of_first(not_of_1f));
    CHECK_INT(err.index, 0);
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 2, &err), CAI_ERR_THREAD, of_first(not_of_1f));
    REFUSED(cai_stream_detach(&a, &pool, &err), CAI_ERR_THREAD, not_of_1f);
    CHECK_INT(pool.open_exchanges, 0);
    cai_sim_host_thread(sim, 0);
    close_pool();
}

/* An event goes from thread to thread; the array is released there by way of the list. */
static void check_detached_elsewhere(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    open_pool(2, 0);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    make(&a, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_OK);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, CAI_STREAM_PER_THREAD, &err), CAI_OK);
    logged("context_current -> c1\nstream_capture per_thread -> none\nstream_wait_event per_thread e1\n");
    cai_sim_host_thread(sim, 9); /* the consumer's stream 2 is of thread 8 */
    REFUSED(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_THREAD, not_of_9);
    CHECK_INT(cai_exchange_end(&ex, CAI_ERR_SHAPE, &err), CAI_ERR_THREAD);
    own(&a);
    REFUSED(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_ERR_THREAD, not_of_9);
    CHECK_INT(released, 0);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK_INT(pool.open_exchanges, 0);
    CHECK_INT(pool.waiting, 1);
    cai_sim_host_thread(sim, 0); /* any thread may drain */
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 1);
    close_pool();
}

int main(void)
{
    check_joined_capture();
    check_captured_producer();
    check_capture_refusals();
    check_handles_end();
    check_one_event();
    check_more_than_places();
    check_late_callback();
    check_failed_record();
    check_parked();
    check_callbacks_in_captures();
    check_released_beside_captures();
    check_place_beside_captures();
    check_unknown_elsewhere();
    check_join_legacy();
    check_threads();
    check_detached_elsewhere();
    return cai_test_end();
}
