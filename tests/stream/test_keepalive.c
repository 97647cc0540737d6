/* test_keepalive.c - when arrays are released, the keep-alive list, and the events of the pool
 * SPDX-License-Identifier: MIT */
#include "pool_setup.h"

/* ------------------------------------------------------------------ release */

enum { WAITS = 0, AT_ONCE = 1 };

/* What is true of an array when it is released. */
static int32_t sync_at_release(int32_t sync, uint64_t from, int32_t late)
{
    if (sync == CAI_SYNC_STREAM || sync == CAI_SYNC_EVENT) return from ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    return late ? CAI_SYNC_NONE : sync;
}

/* One array through an exchange on `stream`: is it released at once? Its event goes once, in any case. */
static void releases_by(uint32_t flags, int32_t sync, uint64_t from, uint64_t stream, cai_exchange_options o,
                        int32_t when)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    make(&a, m1, sync, from);
    if (sync == CAI_SYNC_EVENT) {
        make(&a, m1, CAI_SYNC_STREAM, from ? from : (uint64_t)CAI_STREAM_PER_THREAD);
        CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_OK);
        CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    }
    a.flags |= flags;
    own(&a);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, stream, &o, &err), CAI_OK);
    CHECK_INT(released, 0);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK(a.release == NULL);
    CHECK_INT(released, when);
    CHECK_INT(pool.waiting, 1 - when);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 1);
    CHECK_INT(released_last.sync, sync_at_release(sync, from, !when));
    CHECK_UINT(released_last.event | a.event, 0);
}

/* Owners that free in the order of the stream that they named, and others. */
static void releases(int32_t sync, uint64_t from, uint64_t stream, cai_exchange_options o, int32_t when)
{
    const int32_t known = o.mode == CAI_MODE_HOST ? AT_ONCE : WAITS;
    releases_by(CAI_ORDERED_FREE, sync, from, stream, o, when);
    releases_by(CAI_ORDERED_FREE | CAI_NO_BACK_EDGE, sync, from, stream, o, known);
    releases_by(0, sync, from, stream, o, known);
}

static void check_releases(void)
{
    cai_exchange_options by_stream = options_of(0, CAI_UNKNOWN_STREAM);
    uint64_t s1, s2;
    open_pool(2, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    by_stream.unknown_stream = s1;
    releases(CAI_SYNC_STREAM, s1, s2, options_of(0, 0), AT_ONCE);
    releases(CAI_SYNC_STREAM, s2, s2, options_of(0, 0), AT_ONCE);
    releases(CAI_SYNC_STREAM, 1, 1, options_of(0, 0), AT_ONCE);
    releases(CAI_SYNC_STREAM, 1, s2, options_of(0, 0), AT_ONCE);
    releases(CAI_SYNC_STREAM, s1, s2, options_of(CAI_MODE_HOST, 0), AT_ONCE);
    releases(CAI_SYNC_STREAM, s1, s2, options_of(CAI_MODE_IGNORE, 0), WAITS);
    releases(CAI_SYNC_STREAM, s2, s2, options_of(CAI_MODE_IGNORE, 0), WAITS);
    releases(CAI_SYNC_NONE, 0, s2, options_of(0, 0), WAITS);
    releases(CAI_SYNC_NONE, 0, s2, options_of(CAI_MODE_HOST, 0), AT_ONCE);
    releases(CAI_SYNC_UNKNOWN, 0, s2, options_of(0, 0), WAITS);
    releases(CAI_SYNC_UNKNOWN, 0, s2, options_of(0, CAI_UNKNOWN_ASSUME_IDLE), WAITS);
    releases(CAI_SYNC_UNKNOWN, 0, s2, options_of(0, CAI_UNKNOWN_LEGACY), WAITS);
    releases(CAI_SYNC_UNKNOWN, 0, s2, by_stream, WAITS); /* does its owner know that stream? */
    releases(CAI_SYNC_EVENT, 0, s2, options_of(0, 0), WAITS);
    releases(CAI_SYNC_EVENT, s1, s2, options_of(0, 0), AT_ONCE);
    releases(CAI_SYNC_EVENT, s2, s2, options_of(0, 0), AT_ONCE);
    releases(CAI_SYNC_EVENT, 0, s2, options_of(CAI_MODE_HOST, 0), AT_ONCE);
    releases(CAI_SYNC_EVENT, s1, s2, options_of(CAI_MODE_HOST, 0), AT_ONCE);
    releases(CAI_SYNC_EVENT, 0, s2, options_of(CAI_MODE_IGNORE, 0), WAITS);
    releases(CAI_SYNC_EVENT, s1, s2, options_of(CAI_MODE_IGNORE, 0), WAITS);
    releases(CAI_SYNC_EVENT, 0, s2, by_stream, WAITS);
    releases(CAI_SYNC_EVENT, 0, s1, by_stream, WAITS);
    releases(CAI_SYNC_EVENT, s1, s2, by_stream, AT_ONCE);
    close_pool();
}

/* Two arrays whose owners are told by number; the work of the first is on `from`, or known to be done. */
static void make_two(cai_array *a, cai_array *b, uint64_t from, uint64_t stream)
{
    static const int32_t owners[2] = {1, 2};
    make(a, m1, from ? CAI_SYNC_STREAM : CAI_SYNC_NONE, from);
    make(b, m1, CAI_SYNC_STREAM, stream);
    own(a);
    a->owner = (void *)(uintptr_t)&owners[0];
    own(b);
    b->owner = (void *)(uintptr_t)&owners[1];
    a->flags |= CAI_ORDERED_FREE;
    b->flags |= CAI_ORDERED_FREE;
}

/* One call: the edges at the end, and each array at once or when the consumer's stream has passed. */
static void check_finish(void)
{
    cai_array a, b;
    cai_array *list[3] = {&a, &b, &a};
    cai_exchange ex;
    cai_error before;
    uint64_t s1, s2;
    int32_t failed, known;
    open_pool(2, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    exchange_once(list, 0, s2);
    for (failed = 0; failed < 2; failed++) {
        for (known = 0; known < 2; known++) {
            const cai_status work = failed ? CAI_ERR_SHAPE : CAI_OK;
            make_two(&a, &b, known ? 0 : s1, s2);
            CHECK_INT(cai_exchange_begin(&ex, &pool, list, 3, s2, &err), CAI_OK);
            memset(&err, 0x5a, sizeof err);
            before = err;
            CHECK_INT(cai_exchange_finish(&ex, work, list, 3, &err), work);
            CHECK_BYTES(&err, &before, sizeof err);
            CHECK_INT(pool.open_exchanges, 0);
            CHECK_INT(pool.waiting, known);
            CHECK(a.release == NULL && b.release == NULL);
            CHECK_INT(released, 2 - known);
            CHECK_INT(release_order[0], 1 + known);
            if (!known) CHECK_INT(release_order[1], 2);
            REFUSED(cai_exchange_finish(&ex, CAI_OK, list, 3, &err), CAI_ERR_ARGUMENT, not_open);
            CHECK_INT(cai_exchange_finish(&ex, CAI_ERR_VIEW, NULL, 0, NULL), CAI_ERR_VIEW);
            CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
            CHECK_INT(released * 10 + release_order[1], 22 - known);
        }
    }
    make_two(&a, &b, s2, s2); /* on one stream: no call but for the callback; what is kept is left out */
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list + 1, 1, &err), CAI_OK);
    CHECK_INT(released * 10 + release_order[0], 12);
    CHECK(a.release != NULL);
    logged("capture_mode relaxed -> global\ncapture_mode global -> relaxed\n");
    make_two(&a, &b, s2, s2); /* and once for all callbacks */
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_OK);
    CHECK_INT(released, 2);
    logged("capture_mode relaxed -> global\ncapture_mode global -> relaxed\n");
    close_pool();
}

/* The first error, and everything else is done all the same. */
static void check_finish_errors(void)
{
    cai_array a, b, c;
    cai_array *list[3] = {&a, &b, &c}, *hole[3] = {&a, NULL, &b};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(2, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    exchange_once(list, 0, s2);
    make_two(&a, &b, s1, s2); /* the end fails; the first array has no edge then, and waits */
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 1, 400), 1);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "event_record: CUDA error 400 (invalid resource handle)");
    CHECK_INT(released * 10 + release_order[0], 12);
    CHECK_INT(pool.waiting, 1);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    make_two(&a, &b, 0, s2); /* the first release fails, and the third */
    make(&c, m1, CAI_SYNC_NONE, 0);
    c.release = a.release;
    c.owner = a.owner;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 3, s2, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 1, 400), 1);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 2, 999), 1);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 3, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "arrays[0]: event_record: CUDA error 400 (invalid resource handle)");
    CHECK_INT(err.index * 1000 + err.native, 400);
    CHECK(a.release != NULL && b.release == NULL && c.release != NULL);
    CHECK_INT(cai_keepalive_push(&a, &pool, s2, &err), CAI_OK); /* those that are still owned */
    CHECK_INT(cai_keepalive_push(&c, &pool, s2, &err), CAI_OK);
    CHECK_INT(pool.waiting, 2);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    make_two(&a, &b, s2, s2);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, hole, 3, &err), CAI_ERR_ARGUMENT);
    CHECK(strstr(err.message, "arrays[1]: array is NULL") != NULL);
    CHECK_INT(err.index, 1);
    CHECK_INT(released * 100 + release_order[0] * 10 + release_order[1], 212);
    close_pool();
}

/* What is said of the arguments, and what becomes of the exchange. */
static void check_finish_arguments(void)
{
    static const char bad[] = "cai_exchange_finish: arrays is NULL, or count is negative";
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    cai_exchange ex;
    cai_error before;
    uint64_t s1;
    int32_t i;
    open_pool(2, 0);
    s1 = stream_in(c1);
    make_two(&a, &b, s1, s1);
    memset(&ex, 0, sizeof ex);
    for (i = 0; i < 3; i++) {
        cai_exchange *of = i ? &ex : NULL;
        if (i == 2) CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, 0, &err), CAI_ERR_STREAM);
        REFUSED(cai_exchange_finish(of, CAI_OK, list, 2, &err), CAI_ERR_ARGUMENT, not_open);
        before = err;
        CHECK_INT(cai_exchange_finish(of, CAI_ERR_SHAPE, list, 2, &err), CAI_ERR_SHAPE);
        CHECK_BYTES(&err, &before, sizeof err);
    }
    CHECK_INT(released, 0); /* the arrays are the caller's */
    for (i = 0; i < 4; i++) {
        cai_array *const *arrays = i & 1 ? list : NULL;
        const int32_t count = i & 1 ? -2 : 2;
        const cai_status work = i & 2 ? CAI_ERR_VIEW : CAI_OK;
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s1, &err), CAI_OK);
        memset(&err, 0, sizeof err);
        CHECK_INT(cai_exchange_finish(&ex, work, arrays, count, &err), work ? work : CAI_ERR_ARGUMENT);
        CHECK_STR(err.message, work ? "" : bad);
        REFUSED(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_ARGUMENT, not_open); /* it has ended */
    }
    CHECK_INT(released, 0);
    cai_array_release(&a);
    cai_array_release(&b);
    CHECK_INT(released, 2);
    close_pool();
}

/* Stream 2: on another thread nothing is done, whatever the status. CAI_MODE_IGNORE allows the end there, but
 * not the release. */
static void check_finish_threads(void)
{
    const cai_exchange_options ignore = options_of(CAI_MODE_IGNORE, 0);
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    cai_exchange ex;
    open_pool(2, 0);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    make_two(&a, &b, 0, CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, CAI_STREAM_PER_THREAD, &err), CAI_OK);
    cai_sim_host_thread(sim, 9);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    REFUSED(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_ERR_THREAD, not_of_9);
    REFUSED(cai_exchange_finish(&ex, CAI_ERR_SHAPE, list, 2, &err), CAI_ERR_THREAD, not_of_9);
    CHECK_INT(released + pool.waiting, 0);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_OK);
    CHECK_INT(released * 10 + pool.waiting, 11);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    make_two(&a, &b, 0, CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 2, CAI_STREAM_PER_THREAD, &ignore, &err), CAI_OK);
    cai_sim_host_thread(sim, 9);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_ERR_THREAD);
    CHECK(strncmp(err.message, "arrays[0]: stream 2", 19) == 0);
    CHECK_INT(released + pool.waiting, 0);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_keepalive_push(&a, &pool, CAI_STREAM_PER_THREAD, &err), CAI_OK);
    CHECK_INT(cai_keepalive_push(&b, &pool, CAI_STREAM_PER_THREAD, &err), CAI_OK);
    CHECK_INT(pool.waiting, 2);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    close_pool();
}

/* A mask that did not get the back edge keeps the array. */
static void check_release_with_mask(void)
{
    cai_array a, mask, empty;
    cai_array *list[2] = {&a, &empty};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(2, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&mask, m1, CAI_SYNC_NONE, 0);
    make_empty(&empty, CAI_SYNC_NONE, 0);
    a.mask = &mask;
    a.flags |= CAI_ORDERED_FREE;
    own(&empty);
    own(&a);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_OK);
    CHECK_INT(released * 10 + pool.waiting, 11); /* the empty one at once, whoever owns it */
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 2);
    mask.sync = CAI_SYNC_STREAM;
    mask.stream = s2;
    own(&a);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK_INT(released, 1);
    close_pool();
}

/* ------------------------------------------------------------------ keep-alive */

static void polled(int32_t waits, const char *order)
{
    char text[MOST + 1];
    int32_t i, waiting = -7;
    released = 0;
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_OK);
    CHECK_INT(waiting, waits);
    CHECK_INT(pool.waiting, waits);
    for (i = 0; i < released; i++) text[i] = (char)('0' + release_order[i]);
    text[released] = 0;
    CHECK_STR(text, order);
}

static void check_keepalive_order(void)
{
    uint64_t s1, s2;
    open_pool(8, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c2);
    polled(0, "");
    logged("");
    CHECK_INT(keep(1, s1), CAI_OK);
    CHECK_INT(keep(2, s2), CAI_OK);
    CHECK_INT(keep(3, s1), CAI_OK);
    logged("stream_context s1 -> c1\nstream_capture s1 -> none\ncontext_id c1 -> 1\ncontext_current -> c1\n"
           "event_create -> e1\nevent_record e1 s1\nstream_context s2 -> c2\nstream_capture s2 -> none\n"
           "context_id c2 -> 2\n"
           "context_current -> c1\ncontext_push c2\nevent_create -> e2\ncontext_pop\n"
           "event_record e2 s2\nstream_context s1 -> c1\nstream_capture s1 -> none\ncontext_id c1 -> 1\n"
           "context_current -> c1\nevent_create -> e3\nevent_record e3 s1\n");
    polled(3, "");
    logged("capture_mode relaxed -> global\ncontext_id c1 -> 1\nevent_query e1 -> not_ready\n"
           "context_id c2 -> 2\nevent_query e2 -> not_ready\ncontext_id c1 -> 1\n"
           "event_query e3 -> not_ready\ncapture_mode global -> relaxed\n");
    CHECK_INT(cai_sim_step(sim, s2), 1);
    polled(2, "2");
    CHECK_INT(keep(4, s2), CAI_OK);
    CHECK_INT(pool.idle_count, 0);
    CHECK_INT(cai_sim_step(sim, s1), 1);
    CHECK_INT(keep(5, s2), CAI_OK);
    polled(3, "1");
    CHECK_INT(cai_sim_run(sim), 3);
    polled(0, "345");
    CHECK_INT(pool.idle_count, 4);
    CHECK_INT(keep(6, s2), CAI_OK);
    CHECK_INT(keep(7, s1), CAI_OK);
    cai_sim_log_clear(sim);
    released = 0;
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    logged("capture_mode relaxed -> global\ncontext_id c2 -> 2\nevent_synchronize e4\n"
           "context_id c1 -> 1\nevent_synchronize e3\n"
           "capture_mode global -> relaxed\n");
    CHECK_INT(released, 2);
    CHECK_INT(release_order[0] * 10 + release_order[1], 67);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    logged("");
    close_pool();
}

/* Where the list is full, the host waits for the oldest array, and for no other. */
static void check_keepalive_full(void)
{
    uint64_t s1, s2;
    int32_t i;
    open_pool(2, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    CHECK_INT(keep(1, s1), CAI_OK);
    CHECK_INT(keep(2, s2), CAI_OK);
    cai_sim_log_clear(sim);
    released = 0;
    CHECK_INT(keep(3, s1), CAI_OK);
    CHECK_INT(released * 10 + release_order[0], 11);
    logged("stream_context s1 -> c1\nstream_capture s1 -> none\ncontext_id c1 -> 1\ncontext_current -> c1\n"
           "event_create -> e3\nevent_record e3 s1\ncapture_mode relaxed -> global\ncontext_id c1 -> 1\n"
           "event_query e1 -> not_ready\ncontext_id c1 -> 1\nevent_query e2 -> not_ready\n"
           "capture_mode global -> relaxed\n"
           "capture_mode relaxed -> global\ncontext_id c1 -> 1\nevent_synchronize e1\n"
           "capture_mode global -> relaxed\n");
    CHECK_INT(pool.waiting, 2);
    CHECK_INT(cai_sim_step(sim, s1), 1);
    CHECK_INT(keep(4, s1), CAI_OK); /* its poll made room: the third, out of order */
    CHECK_INT(released * 10 + release_order[1], 23);
    for (i = 0; i < 30; i++) { /* nothing is lost of the list */
        CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
        released = 0;
        CHECK_INT(keep(1, s1) + keep(2, s1) + keep(3, s1), CAI_OK);
        CHECK_INT(released * 10 + release_order[0], 11);
    }
    for (i = 0; i < 2; i++) { /* an error of the wait keeps the array, unless the context is dead */
        CHECK_INT(cai_sim_fail_op(sim, "event_synchronize", 1, i ? 700 : 999), 1);
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(keep(3, s1), i ? CAI_OK : CAI_ERR_CUDA);
        CHECK_INT(err.native, i ? 0x5a5a5a5a : 999);
    }
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    close_pool_with(1);
}

/* A pool without places of the caller has its own. */
static void check_own_places(void)
{
    uint64_t s1;
    int32_t i;
    open_pool(0, 0);
    s1 = stream_in(c1);
    released = 0;
    for (i = 0; i < CAI_POOL_PLACES; i++) CHECK_INT(keep(i, s1), CAI_OK);
    CHECK_INT(released, 0);
    CHECK_INT(cai_sim_calls_of(sim, "event_synchronize"), 0);
    CHECK_INT(keep(i, s1), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_synchronize"), 1);
    CHECK_INT(released * 10 + release_order[0], 10);
    CHECK_INT(pool.waiting, CAI_POOL_PLACES);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, CAI_POOL_PLACES + 1);
    close_pool();
}

/* A begin that orders looks at the oldest array; one that orders nothing makes no call. */
static void check_begin_looks(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(8, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(keep(1, s1) + keep(2, s1) + keep(3, s1), CAI_OK);
    CHECK_INT(cai_sim_step(sim, s1) + cai_sim_step(sim, s1), 2);
    released = 0;
    cai_sim_log_clear(sim);
    exchange_once(list, 1, s1);
    logged("");
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_OK);
    CHECK_INT(released, 2);
    CHECK_INT(cai_sim_calls_of(sim, "event_query"), 3);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "event_query", 1, 999), 1); /* is not the exchange's affair */
    exchange_once(list, 1, s2);
    CHECK_INT(cai_sim_fail_op(sim, "capture_mode", 1, 999), 1);
    exchange_once(list, 1, s2);
    CHECK_INT(pool.waiting, 1);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    cai_sim_log_clear(sim);
    exchange_once(list, 1, s2);
    CHECK_INT(cai_sim_calls_of(sim, "event_query"), 0);
    close_pool();
}

static uint64_t stream_meanwhile;

/* event_query during which another thread keeps an array. */
static int32_t query_meanwhile(void *self, uint64_t event)
{
    cuda.event_query = cai_sim_cuda(sim)->event_query;
    CHECK_INT(keep(4, stream_meanwhile), CAI_OK);
    return cuda.event_query(self, event);
}

/* What still waits stays before what came while it was asked. */
static void check_keepalive_meanwhile(void)
{
    uint64_t s1, s2;
    open_pool(4, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    stream_meanwhile = s1;
    CHECK_INT(keep(1, s1), CAI_OK);
    CHECK_INT(keep(2, s2), CAI_OK);
    CHECK_INT(keep(3, s1), CAI_OK);
    CHECK_INT(cai_sim_step(sim, s2), 1);
    cuda.event_query = query_meanwhile;
    polled(3, "2");
    CHECK_INT(keep(5, s1), CAI_OK);
    CHECK_INT(cai_sim_run(sim), 4);
    polled(0, "1345");
    close_pool();
}

/* A release callback may use the pool for anything. */
static void on_release_busy(cai_array *array)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    const uint64_t *streams = (const uint64_t *)array->owner;
    int32_t waiting;
    array->release = NULL;
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_OK);
    make(&a, m1, CAI_SYNC_STREAM, streams[0]);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, streams[1], &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    if (released++ < 3) {
        make(&a, m1, CAI_SYNC_NONE, 0);
        cai_array_own(&a, on_release_busy, array->owner);
        CHECK_INT(cai_keepalive_push(&a, &pool, streams[0], &err), CAI_OK);
    }
    if (released == 2) { /* the poll below has arrays that it has not released yet */
        CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_ERR_PENDING);
        CHECK(pool.waiting > 0 && strstr(err.message, "arrays still wait") != NULL);
        CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_ERR_PENDING);
    }
}

static void check_reentrancy(void)
{
    cai_array a;
    uint64_t streams[2];
    int32_t i, waits;
    open_pool(4, 0);
    streams[0] = stream_in(c1);
    streams[1] = stream_in(c2);
    released = 0;
    for (i = 0; i < 4; i++) {
        make(&a, m1, CAI_SYNC_NONE, 0);
        cai_array_own(&a, on_release_busy, streams);
        CHECK_INT(cai_keepalive_push(&a, &pool, streams[0], &err), CAI_OK);
    }
    CHECK_INT(cai_sim_run(sim), 4);
    CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 7);
    CHECK_INT(pool.waiting, 0);
    waits = (int32_t)cai_sim_calls_of(sim, "event_synchronize");
    for (i = 0; i < 4; i++) CHECK_INT(keep(i, streams[1]), CAI_OK); /* all four places are free */
    CHECK_INT(cai_sim_calls_of(sim, "event_synchronize"), waits);
    CHECK_INT(keep(4, streams[1]), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_synchronize"), waits + 1);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    close_pool();
}

/* A callback that keeps two arrays where the list is full: the second place is that of an array which has
 * passed, too, and which it therefore releases itself. */
static void on_release_keeping(cai_array *array)
{
    const uint64_t *stream = (const uint64_t *)array->owner;
    array->release = NULL;
    release_order[released++] = 7;
    CHECK_INT(keep(1, *stream) + keep(2, *stream), CAI_OK);
    release_order[released++] = 8;
}

static void check_full_in_callback(void)
{
    cai_array a;
    uint64_t s1;
    open_pool(2, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_NONE, 0);
    cai_array_own(&a, on_release_keeping, &s1);
    CHECK_INT(cai_keepalive_push(&a, &pool, s1, &err), CAI_OK);
    CHECK_INT(keep(3, s1), CAI_OK);
    cai_sim_run(sim);
    released = 0;
    CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    CHECK_INT(released * 1000 + release_order[0] * 100 + release_order[1] * 10 + release_order[2], 3738);
    CHECK_INT(pool.waiting, 2);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    close_pool();
}

/* An error of a query keeps the array, unless the context is dead. */
static void check_query_errors(void)
{
    const int32_t kept[] = {1, 2, 3, 35, 201, 400, 800, 900, 907, 999};
    const int32_t dead[] = {214, 220, 700, 702, 709, 710, 715, 716, 717, 718, 719};
    uint64_t s1;
    size_t i;
    int32_t waiting;
    open_pool(4, 0);
    s1 = stream_in(c1);
    CHECK_INT(keep(1, s1), CAI_OK);
    CHECK_INT(keep(2, s1), CAI_OK);
    CHECK_INT(keep(3, s1), CAI_OK);
    CHECK_INT(cai_sim_step(sim, s1), 1);
    for (i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        CHECK_INT(cai_sim_fail_op(sim, "event_query", 1, kept[i]), 1);
        CHECK_INT(cai_sim_fail_op(sim, "event_query", 2, 400), 1);
        released = 0;
        CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err),
                  kept[i] < 900 || kept[i] > 908 ? CAI_ERR_CUDA : CAI_ERR_CAPTURE);
        CHECK_INT(err.native, kept[i]); /* the first */
        CHECK_INT(waiting, 3);
        CHECK_INT(released, 0);
    }
    polled(2, "1");
    CHECK_INT(cai_sim_run(sim), 2);
    CHECK_INT(cai_sim_fail_op(sim, "event_query", 1, 999), 1);
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_ERR_CUDA); /* the other one goes all the same */
    CHECK_INT(waiting, 1);
    polled(0, "2");
    for (i = 0; i < sizeof dead / sizeof dead[0]; i++) {
        CHECK_INT(keep(1, s1) + keep(2, s1), CAI_OK);
        CHECK_INT(cai_sim_fail_op(sim, "event_query", 1, dead[i]), 1);
        released = 0;
        CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_ERR_CUDA);
        CHECK_INT(err.native, dead[i]);
        CHECK_INT(waiting, 1);
        CHECK_INT(released, 1);
        CHECK_INT(cai_sim_fail_op(sim, "event_synchronize", 1, dead[i]), 1);
        CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_ERR_CUDA);
        CHECK_INT(released, 2);
    }
    close_pool_with(1);
}

/* A context with an error lets go of everything that waits for it. */
static void check_dead_device(void)
{
    char text[80];
    uint64_t s1, s2;
    int32_t waiting;
    open_pool(4, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c2);
    CHECK_INT(keep(1, s1), CAI_OK);
    CHECK_INT(keep(2, s2), CAI_OK);
    CHECK_INT(keep(3, s1), CAI_OK);
    cai_sim_set_device_error(sim, 0, 700);
    released = 0;
    CHECK_INT(cai_keepalive_poll(&pool, &waiting, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, 700);
    CHECK_INT(released, 2);
    CHECK_INT(waiting, 1);
    CHECK_INT(keep(4, s1), CAI_ERR_CUDA);
    CHECK_INT(pool.waiting, 1);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(pool.waiting, 0);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK); /* of c2; those of c1 went with the context */
    cai_sim_set_device_error(sim, 0, 0);
    cai_sim_leaks(sim, text, sizeof text);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ the pool's events */

/* No more than 32 idle events are kept. */
static void check_idle_events(void)
{
    uint64_t s1;
    int32_t i;
    open_pool(100, 0);
    s1 = stream_in(c1);
    for (i = 0; i < 40; i++) CHECK_INT(keep(i, s1), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_create"), 40);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_destroy"), 8);
    CHECK_INT(pool.idle_count, CAI_POOL_EVENTS);
    for (i = 0; i < 40; i++) CHECK_INT(keep(i, s1), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_create"), 48);
    CHECK_INT(pool.idle_count, 0);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_destroy"), CAI_POOL_EVENTS);
    CHECK_INT(cai_sim_calls(sim), 2 * CAI_POOL_EVENTS); /* the id of its context before each */
    close_table();
}

/* A full pool makes room by forgetting events of contexts that were reset, where an id tells (CUDA 12.0). */
static void check_idle_events_full(int with_id)
{
    uint64_t s1, s2;
    int32_t i;
    open_pool(100, 0);
    if (!with_id) cuda.context_id = NULL;
    s1 = stream_in(c1);
    s2 = stream_in(c2);
    for (i = 0; i < CAI_POOL_EVENTS; i++) CHECK_INT(keep(i, s1), CAI_OK);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    cai_sim_log_clear(sim);
    CHECK_INT(keep(i, s2), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "context_id"), with_id ? 1 + CAI_POOL_EVENTS : 0);
    CHECK_INT(pool.idle_count, CAI_POOL_EVENTS);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    close_table();
}

/* Before a context is destroyed nothing of it is left in the pool. */
static void check_forget(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    uint64_t s1, s2, s3, other;
    open_pool(4, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    other = cai_sim_context_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, other), 0);
    s3 = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    exchange_once(list, 1, s3);
    CHECK_INT(pool.idle_count, 2);
    CHECK_INT(keep(1, s3), CAI_OK);
    CHECK_INT(keep(2, s1), CAI_OK);
    exchange_once(list, 1, s3);
    CHECK_INT(pool.idle_count, 2);
    CHECK_INT(cai_event_pool_forget(&pool, c2, &err), CAI_OK); /* nothing of that */
    CHECK_INT(pool.idle_count, 2);
    cai_sim_log_clear(sim);
    released = 0;
    CHECK_INT(cai_event_pool_forget(&pool, other, &err), CAI_OK);
    CHECK_INT(released * 10 + release_order[0], 11); /* the host waited for it */
    CHECK_INT(cai_sim_calls_of(sim, "event_synchronize"), 1);
    CHECK_INT(cai_sim_calls_of(sim, "event_destroy"), 2);
    CHECK_INT(pool.idle_count, 1);
    CHECK_UINT(pool.idle[0].context, c1);
    CHECK_INT(cai_sim_context_destroy(sim, other), 0);
    CHECK_INT(cai_sim_run(sim) > 0, 1);
    polled(0, "2");
    exchange_once(list, 1, s2);
    CHECK_INT(pool.idle_count, 2);
    CHECK_INT(keep(3, s1), CAI_OK);
    CHECK_INT(cai_event_pool_forget(&pool, 77, &err), CAI_OK); /* of nobody: it goes on waiting */
    polled(1, "");
    CHECK_INT(cai_sim_fail_op(sim, "event_synchronize", 1, 999), 1);
    CHECK_INT(cai_event_pool_forget(&pool, 0, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native * 10 + pool.waiting, 9991);
    CHECK_INT(cai_event_pool_forget(&pool, 0, &err), CAI_OK);
    CHECK_INT(pool.idle_count + pool.waiting, 0);
    close_pool();
}

/* A context is destroyed before the pool forgot it. What waits for it goes, and none of its events is
 * named: the simulation would end the program. */
static void check_destroyed_context(void)
{
    uint64_t s1, other, ended;
    open_pool(4, 0);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_LIVING_CONTEXTS);
    s1 = stream_in(c1);
    other = cai_sim_context_create(sim, 1);
    ended = stream_in(other);
    CHECK_INT(keep(1, ended), CAI_OK);
    CHECK_INT(keep(2, s1), CAI_OK);
    CHECK_INT(cai_stream_order(&pool, ended, s1, &err), CAI_OK);
    CHECK_INT(pool.idle_count, 1);
    --made_count; /* it goes with its context */
    CHECK_INT(cai_sim_context_destroy(sim, other), 0);
    polled(1, "1");
    CHECK_INT(pool.idle_count, 1); /* the event that it waited for is none to use again */
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released * 10 + pool.waiting, 20);
    close_pool();
}

static void check_destroy_refused(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex, ex2;
    uint64_t s1, s2;
    open_pool(4, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    exchange_once(list, 1, s2);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_OK);
    a.stream = s2;
    CHECK_INT(cai_exchange_begin(&ex2, &pool, list, 1, s2, &err), CAI_OK); /* in order: owes nothing */
    REFUSED(cai_event_pool_destroy(&pool, &err), CAI_ERR_PENDING,
            "1 exchanges have not ended, and 0 arrays wait in the keep-alive list");
    CHECK_INT(keep(1, s2), CAI_OK);
    REFUSED(cai_event_pool_destroy(&pool, &err), CAI_ERR_PENDING,
            "1 exchanges have not ended, and 1 arrays wait in the keep-alive list");
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex2, CAI_OK, &err), CAI_OK);
    REFUSED(cai_event_pool_destroy(&pool, &err), CAI_ERR_PENDING,
            "0 exchanges have not ended, and 1 arrays wait in the keep-alive list");
    CHECK(pool.idle_count > 0);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "event_destroy", 1, 400), 1);
    CHECK_INT(pool.idle_count, 2);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_ERR_CUDA); /* the other one goes, too */
    CHECK_INT(err.native, 400);
    CHECK_INT(pool.idle_count, 0);
    CHECK_INT(cai_sim_leaks(sim, NULL, 0), 1 + 2 + 2); /* that event, streams, memory */
    cai_sim_destroy(sim);
}

/* A borrowed array keeps its event, an owned one takes it along. */
static void check_release_of_events(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&b, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    CHECK_INT(cai_stream_detach(&b, &pool, &err), CAI_OK);
    CHECK((a.flags & CAI_OWN_EVENT) && (b.flags & CAI_OWN_EVENT));
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_OK);
    CHECK_INT(a.sync, CAI_SYNC_EVENT);
    own(&a);
    own(&b);
    a.flags |= CAI_ORDERED_FREE;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_OK);
    CHECK_INT(released, 1);
    CHECK(a.event == 0 && b.event == 0 && !((a.flags | b.flags) & CAI_OWN_EVENT));
    CHECK_INT(a.sync, CAI_SYNC_STREAM);
    CHECK_INT(b.sync, CAI_SYNC_NONE);
    CHECK_INT(cai_stream_drop_event(&a, &pool, &err), CAI_OK); /* the older way: nothing is left to drop */
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 2);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    CHECK_INT(cai_stream_drop_event(&a, &pool, &err), CAI_OK);
    CHECK(!(a.flags & CAI_OWN_EVENT));
    close_pool();
}

int main(void)
{
    check_releases();
    check_release_with_mask();
    check_finish();
    check_finish_errors();
    check_finish_arguments();
    check_finish_threads();
    check_keepalive_order();
    check_keepalive_full();
    check_own_places();
    check_begin_looks();
    check_full_in_callback();
    check_release_of_events();
    check_keepalive_meanwhile();
    check_reentrancy();
    check_query_errors();
    check_dead_device();
    check_idle_events();
    check_idle_events_full(1);
    check_idle_events_full(0);
    check_forget();
    check_destroyed_context();
    check_destroy_refused();
    return cai_test_end();
}
