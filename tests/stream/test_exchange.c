/* test_exchange.c - exchanges and exports, call by call, beyond the cases of tests/cases
 * SPDX-License-Identifier: MIT */
#include "pool_setup.h"

/* ------------------------------------------------------------------ exchange, call by call */

static void check_two_contexts(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    uint64_t s1, s2, s3;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c2);
    s3 = stream_in(c2);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&b, m2, CAI_SYNC_STREAM, s2);
    exchange_once(list, 2, s3);
    logged("stream_context s3 -> c2\nstream_context s1 -> c1\nstream_context s2 -> c2\n"
           "stream_capture s3 -> none\nstream_capture s1 -> none\nstream_capture s2 -> none\n"
           "context_id c2 -> 1\ncontext_id c1 -> 2\n"
           "context_current -> c1\nevent_create -> e1\nevent_record e1 s1\nstream_wait_event s3 e1\n"
           "context_push c2\nevent_create -> e2\ncontext_pop\nevent_record e2 s2\n"
           "stream_wait_event s3 e2\nstream_capture s3 -> none\nstream_capture s1 -> none\n"
           "stream_capture s2 -> none\nevent_record e2 s3\nstream_wait_event s1 e2\n"
           "stream_wait_event s2 e2\n");
    exchange_once(list, 2, s3); /* warm: the same without event_create */
    CHECK_INT(cai_sim_calls_of(sim, "event_create"), 0);
    CHECK_INT(cai_sim_calls_of(sim, "event_record"), 3);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 4);
    CHECK_INT(pool.idle_count, 2);
    close_pool();
}

/* The same handle with a mask, twice and in any order, is one stream. */
static void check_masks_and_repeats(void)
{
    cai_array a, b, mask;
    cai_array *list[4] = {&b, &a, &b, &a};
    uint64_t s1, s2, s3;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    s3 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&b, m1, CAI_SYNC_STREAM, s3);
    make(&mask, m1, CAI_SYNC_STREAM, s2);
    b.mask = &mask;
    exchange_once(list, 4, s3);
    logged("stream_context s3 -> c1\nstream_context s2 -> c1\nstream_context s1 -> c1\n"
           "stream_capture s3 -> none\nstream_capture s2 -> none\nstream_capture s1 -> none\n"
           "context_id c1 -> 1\n"
           "context_current -> c1\nevent_create -> e1\nevent_record e1 s2\nstream_wait_event s3 e1\n"
           "event_record e1 s1\nstream_wait_event s3 e1\nstream_capture s3 -> none\n"
           "stream_capture s2 -> none\nstream_capture s1 -> none\nevent_record e1 s3\n"
           "stream_wait_event s2 e1\nstream_wait_event s1 e1\n");
    close_pool();
}

/* Streams 1 and 2 are one stream per context; of an argument, that of the current context. */
static void check_default_streams(void)
{
    cai_array here, there, again;
    cai_array *list[3] = {&here, &there, &again};
    open_pool(0, 0);
    make(&here, m1, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    make(&there, m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    make(&again, m2 + 256, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    exchange_once(list, 3, CAI_STREAM_LEGACY);
    logged("context_current -> c1\npointer_info m1 -> device 0 c1\npointer_info m2 -> device 1 c2\n"
           "pointer_info m2+256 -> device 1 c2\nstream_capture legacy -> none\ncontext_push c2\n"
           "stream_capture legacy -> none\ncontext_pop\ncontext_id c1 -> 1\ncontext_id c2 -> 2\n"
           "context_push c2\nevent_create -> e1\n"
           "context_pop\ncontext_push c2\nevent_record e1 legacy\ncontext_pop\n"
           "stream_wait_event legacy e1\ncontext_current -> c1\nstream_capture legacy -> none\n"
           "context_push c2\nstream_capture legacy -> none\ncontext_pop\nevent_create -> e2\n"
           "event_record e2 legacy\ncontext_push c2\nstream_wait_event legacy e2\ncontext_pop\n");
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    CHECK_INT(cai_exchange_begin(NULL, &pool, list, 1, 1, &err), CAI_ERR_ARGUMENT);
    {
        cai_exchange ex;
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, CAI_STREAM_LEGACY, &err), CAI_OK);
        CHECK_UINT(ex.context, c1); /* of device 0, as the runtime takes it */
        CHECK_INT(cai_exchange_end(&ex, CAI_OK, NULL), CAI_OK);
        cai_sim_log_clear(sim);
    }
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    close_pool();
}

/* The consumer's stream 1 is that of begin's context, also if another is current at the end. */
static void check_context_changed_between(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1;
    open_pool(1, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, CAI_STREAM_LEGACY, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    logged("context_current -> c2\ncontext_push c1\nstream_capture legacy -> none\ncontext_pop\n"
           "stream_capture s1 -> none\ncontext_push c1\nevent_record e1 legacy\ncontext_pop\n"
           "stream_wait_event s1 e1\n");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    own(&a);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, CAI_STREAM_LEGACY, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    logged("context_current -> c2\ncontext_push c1\nstream_capture legacy -> none\ncontext_pop\n"
           "context_id c1 -> 1\n"
           "context_push c1\nevent_record e1 legacy\ncontext_pop\n");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 1);
    close_pool();
}

static void check_moved(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange first, second;
    uint64_t s1, s2;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(cai_exchange_begin(&first, &pool, list, 1, s2, &err), CAI_OK);
    memcpy(&second, &first, sizeof first);
    memset(&first, 0x5a, sizeof first);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_end(&second, CAI_OK, &err), CAI_OK);
    logged("stream_capture s2 -> none\nstream_capture s1 -> none\n"
           "event_record e1 s2\nstream_wait_event s1 e1\n");
    close_pool();
}

/* Distinct streams: 16 are taken, 17 are refused before any call that orders. */
static void check_sixteen(void)
{
    static cai_array arrays[1000];
    static cai_array *list[1000];
    cai_exchange ex;
    uint64_t streams[17], consumer;
    int32_t i;
    open_pool(0, 0);
    for (i = 0; i < 17; i++) streams[i] = stream_in(i & 1 ? c2 : c1);
    consumer = stream_in(c1);
    for (i = 0; i < 1000; i++) {
        make(&arrays[i], m1, CAI_SYNC_STREAM, streams[(i * 7) % 16]);
        list[i] = &arrays[i];
    }
    exchange_once(list, 1000, consumer);
    CHECK_INT(cai_sim_calls_of(sim, "event_record"), 17);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 32);
    CHECK_INT(cai_sim_calls_of(sim, "stream_context"), 17);
    CHECK_INT(cai_sim_calls_of(sim, "stream_capture"), 34);
    CHECK_INT(cai_sim_calls_of(sim, "context_current"), 1); /* to make events */
    arrays[998].stream = consumer; /* does not count */
    exchange_once(list, 1000, consumer);
    arrays[999].stream = streams[16];
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1000, consumer, &err), CAI_ERR_CAPACITY,
            "arrays[999]: more than 16 distinct streams in one exchange");
    CHECK_INT(err.index, 999);
    REFUSED(cai_stream_export(&arrays[0], &pool, consumer, streams, 17, &err), CAI_ERR_CAPACITY,
            "more than 16 distinct streams in one exchange");
    CHECK_UINT(arrays[0].stream, streams[0]);
    CHECK_INT(cai_stream_export(&arrays[0], &pool, consumer, streams, 16, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 16);
    CHECK_INT(pool.open_exchanges, 0);
    close_pool();
}

/* 1 and 2 of each context count, too, but are known only after queries. */
static void check_seventeen_by_context(void)
{
    cai_array arrays[19];
    cai_array *list[19];
    cai_exchange ex;
    uint64_t consumer;
    int32_t i;
    open_pool(0, 0);
    for (i = 0; i < 14; i++) make(&arrays[i], m1, CAI_SYNC_STREAM, stream_in(c1));
    make(&arrays[14], m1, CAI_SYNC_STREAM, 1);
    make(&arrays[15], m2, CAI_SYNC_STREAM, 1);
    make(&arrays[16], m2 + 512, CAI_SYNC_STREAM, 1);
    make(&arrays[17], m2, CAI_SYNC_STREAM, 2);
    for (i = 0; i < 19; i++) list[i] = &arrays[i];
    consumer = stream_in(c1);
    exchange_once(list, 17, consumer);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 18, consumer, &err), CAI_ERR_CAPACITY);
    CHECK_INT(err.index, 17);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(pool.open_exchanges, 0);
    close_pool();
}

/* Contexts that are to be synchronized: those of the memory, and both primary ones. */
static void check_many_contexts(void)
{
    enum { MANY = 63 };
    static cai_array arrays[MANY];
    cai_array *list[MANY];
    uint64_t contexts[MANY], data[MANY], s1;
    cai_exchange ex;
    int32_t i;
    open_pool(0, 0);
    s1 = stream_in(c1);
    for (i = 0; i < MANY; i++) {
        contexts[i] = cai_sim_context_create(sim, 0);
        CHECK_INT(cai_sim_set_context(sim, contexts[i]), 0);
        data[i] = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
        make(&arrays[i], data[i], CAI_SYNC_UNKNOWN, 0);
        list[i] = &arrays[i];
    }
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    exchange_once(list, MANY - 1, s1);
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), MANY - 1 + 2);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, MANY, s1, &err), CAI_ERR_CAPACITY);
    CHECK_STR(err.message, "arrays[62]: more than 64 distinct contexts in one exchange");
    CHECK_INT(err.index, 62);
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), MANY - 1 + 2);
    for (i = 0; i < MANY; i++) {
        CHECK_INT(cai_sim_free(sim, data[i]), 0);
        CHECK_INT(cai_sim_context_destroy(sim, contexts[i]), 0);
    }
    close_pool();
}

static void check_many_events(void)
{
    cai_array arrays[17];
    cai_array *list[17];
    cai_exchange ex;
    uint64_t s1, s2;
    int32_t i;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    for (i = 0; i < 17; i++) {
        make(&arrays[i], m1, CAI_SYNC_STREAM, s1);
        CHECK_INT(cai_stream_detach(&arrays[i], &pool, &err), CAI_OK);
        CHECK_UINT(arrays[i].stream, s1);
        list[i] = &arrays[i];
    }
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 17, s2, &err), CAI_ERR_CAPACITY);
    CHECK_INT(err.index, 16);
    CHECK_STR(err.message, "arrays[16]: more than 16 distinct events in one exchange");
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    list[16] = &arrays[0]; /* the same event twice is one */
    exchange_once(list, 17, s2);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 17);
    CHECK_INT(cai_sim_calls_of(sim, "event_record"), 1);
    for (i = 0; i < 17; i++) CHECK_INT(cai_stream_drop_event(&arrays[i], &pool, &err), CAI_OK);
    close_pool();
}

/* Calls that are done, and report what went wrong before. */
static int32_t earlier_push, earlier_pop;

static int32_t push_after_error(void *self, uint64_t context)
{
    const int32_t error = cai_sim_cuda(sim)->context_push(self, context);
    return error ? error : earlier_push;
}

static int32_t pop_after_error(void *self)
{
    const int32_t error = cai_sim_cuda(sim)->context_pop(self);
    return error ? error : earlier_pop;
}

/* However push and pop fail, the context that was current is current again. */
static void check_earlier_errors(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1;
    open_pool(0, 0);
    s1 = stream_in(c1);
    make(&a, m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    exchange_once(list, 1, s1);
    cuda.context_push = push_after_error;
    cuda.context_pop = pop_after_error;
    for (earlier_push = 719; earlier_push >= 0; earlier_push -= 719) {
        earlier_pop = 719 - earlier_push;
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_ERR_CUDA);
        CHECK_INT(err.native, 719);
        CHECK_STR(err.message, earlier_pop ? "arrays[0]: context_pop: CUDA error 719 (launch failure) of an "
                                             "earlier operation"
                                           : "arrays[0]: context_push: CUDA error 719 (launch failure) of an "
                                             "earlier operation");
        CHECK_UINT(cai_sim_current(sim), c1);
        CHECK_INT(pool.idle_count, 2);
    }
    close_pool();
}

/* An error of a producer's stream says which array brought it; one of the consumer's none. */
static void check_blame(void)
{
    static const struct {
        const char *operation;
        int32_t n, end, index;
    } rows[] = {{"stream_context", 1, 0, -1},
                {"stream_context", 3, 0, 2},    {"stream_capture", 1, 0, -1},
                {"stream_capture", 3, 0, 2},    {"event_record", 1, 0, 0},
                {"event_record", 2, 0, 2},      {"stream_wait_event", 2, 0, 2},
                {"stream_capture", 1, 1, -1},   {"stream_capture", 3, 1, 2},
                {"stream_wait_event", 1, 1, 0}, {"stream_wait_event", 2, 1, 2}};
    cai_array a, b, c;
    cai_array *list[4] = {&a, &b, &c, &a};
    cai_exchange ex;
    uint64_t consumer;
    size_t i;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, stream_in(c1));
    make(&b, m1, CAI_SYNC_NONE, 0);
    make(&c, m1, CAI_SYNC_STREAM, stream_in(c1));
    consumer = stream_in(c1);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cai_test_note(rows[i].operation);
        if (rows[i].end) CHECK_INT(cai_exchange_begin(&ex, &pool, list, 4, consumer, &err), CAI_OK);
        CHECK_INT(cai_sim_fail_op(sim, rows[i].operation, rows[i].n, 400), 1);
        memset(&err, 0x5a, sizeof err);
        if (rows[i].end) CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_CUDA);
        else CHECK_INT(cai_exchange_begin(&ex, &pool, list, 4, consumer, &err), CAI_ERR_CUDA);
        CHECK_INT(err.index, rows[i].index);
        CHECK_INT(err.native, 400);
    }
    cai_test_note("");
    close_pool();
}

/* ------------------------------------------------------------------ modes and policies */

static void check_unknown(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    cai_exchange ex;
    cai_exchange_options o = options_of(0, CAI_UNKNOWN_STREAM);
    uint64_t s1, s2;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    make(&b, m2, CAI_SYNC_UNKNOWN, 0);
    exchange_once(list, 2, s2); /* both contexts are synchronized; nothing to do at the end */
    logged("pointer_info m1 -> device 0 c1\ncontext_current -> c1\ndevice_context 0 -> c1\n"
           "device_context 1 -> c2\ndevice_context 2 ! 101\npointer_info m2 -> device 1 c2\n"
           "device_context 0 -> c1\ndevice_context 1 -> c2\ndevice_context 2 ! 101\n"
           "stream_capture s2 -> none\nstream_capture legacy -> none\ncontext_push c2\n"
           "stream_capture legacy -> none\ncontext_pop\ncapture_mode relaxed -> global\n"
           "context_synchronize\ncapture_mode global -> relaxed\ncapture_mode relaxed -> global\n"
           "context_push c2\ncontext_synchronize\ncontext_pop\ncapture_mode global -> relaxed\n");
    o.unknown_stream = s1;
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 2, s2, &o, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_ordering_calls(sim), 5); /* a create, 2 records, 2 waits */
    cai_sim_log_clear(sim);
    o = options_of(0, CAI_UNKNOWN_LEGACY);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 2, s2, &o, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "event_record"), 3);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 4);
    cai_sim_log_clear(sim);
    o = options_of(0, CAI_UNKNOWN_ASSUME_IDLE);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 2, s2, &o, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    logged("");
    close_pool();
}

static void check_host_mode(void)
{
    cai_array a, b, c;
    cai_array *list[3] = {&a, &b, &c};
    cai_exchange ex;
    cai_exchange_options o = options_of(CAI_MODE_HOST, 0);
    uint64_t s1, s2;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&b, m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    make(&c, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(cai_stream_detach(&c, &pool, &err), CAI_OK);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 3, s2, &o, &err), CAI_OK);
    logged("stream_context s2 -> c1\nstream_context s1 -> c1\npointer_info m2 -> device 1 c2\n"
           "stream_capture s2 -> none\nstream_capture s1 -> none\ncontext_current -> c1\n"
           "context_push c2\nstream_capture legacy -> none\ncontext_pop\n"
           "capture_mode relaxed -> global\nstream_synchronize s1\ncapture_mode global -> relaxed\n"
           "capture_mode relaxed -> global\ncontext_push c2\nstream_synchronize legacy\ncontext_pop\n"
           "capture_mode global -> relaxed\ncapture_mode relaxed -> global\nevent_synchronize e1\n"
           "capture_mode global -> relaxed\n");
    own(&a);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "stream_synchronize"), 1);
    CHECK_INT(cai_sim_ordering_calls(sim), 1);
    CHECK_INT(released, 1); /* whatever its owner does with it */
    CHECK_INT(cai_stream_drop_event(&c, &pool, &err), CAI_OK);
    close_pool();
}

/* The switch of a program: the exchanges of the pool, then its exports. */
static void check_modes_exchange(int32_t mode, const cai_exchange_options *own, const char *calls)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    CHECK_INT(cai_event_pool_set_modes(&pool, mode, 0, &err), CAI_OK);
    make(&a, m1, CAI_SYNC_STREAM, made[0]);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, made[1], own, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "stream_synchronize"), calls[0] - '0');
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), calls[1] - '0');
}

static void check_modes_export(int32_t mode, int32_t sync, uint64_t stream, const char *calls)
{
    cai_array a;
    CHECK_INT(cai_event_pool_set_modes(&pool, 0, mode, &err), CAI_OK);
    make(&a, m1, CAI_SYNC_STREAM, made[0]);
    a.thread = 5;
    cai_sim_log_clear(sim);
    CHECK_INT(cai_stream_export(&a, &pool, made[1], made, 2, &err), CAI_OK);
    CHECK_INT(a.sync, sync);
    CHECK_UINT(a.stream, stream);
    CHECK_UINT(a.thread, 0);
    CHECK_INT(cai_sim_calls_of(sim, "stream_synchronize"), calls[0] - '0');
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), calls[1] - '0');
}

static void check_modes(void)
{
    cai_exchange_options host = options_of(CAI_MODE_HOST, 0), assume = options_of(0, 3);
    cai_exchange_options kept = options_of(0, 0), one_way = kept;
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    open_pool(0, 0);
    CHECK(stream_in(c1) && stream_in(c1));
    make(&a, m1, CAI_SYNC_STREAM, made[0]);
    check_modes_exchange(CAI_MODE_EVENT, NULL, "02");
    check_modes_exchange(CAI_MODE_HOST, NULL, "20");
    check_modes_exchange(CAI_MODE_HOST, &assume, "20");
    check_modes_exchange(CAI_MODE_IGNORE, NULL, "00");
    check_modes_exchange(CAI_MODE_IGNORE, &host, "20");
    kept.flags = CAI_PRIV_KEEP_MODE;
    check_modes_exchange(CAI_MODE_HOST, &kept, "02");
    check_modes_exchange(CAI_MODE_IGNORE, &kept, "02");
    kept.flags |= CAI_PRIV_ONE_WAY;
    check_modes_exchange(CAI_MODE_IGNORE, &kept, "01");
    one_way.flags = CAI_PRIV_ONE_WAY;
    check_modes_exchange(CAI_MODE_HOST, &one_way, "10");
    check_modes_exchange(CAI_MODE_EVENT, &one_way, "01");
    own(&a); /* the consumer keeps the array: its release waits for the consumer */
    a.flags |= CAI_ORDERED_FREE;
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, made[1], &one_way, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK_INT(pool.waiting, 1);
    cai_sim_run(sim);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 1);
    CHECK_INT(cai_event_pool_set_modes(&pool, CAI_MODE_HOST, 0, &err), CAI_OK);
    make(&a, m1, CAI_SYNC_STREAM, made[0]); /* on one stream too: the host may use the data */
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, made[0], &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "stream_synchronize"), 1);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    check_modes_export(CAI_MODE_EVENT, CAI_SYNC_STREAM, made[1], "01");
    check_modes_export(CAI_MODE_HOST, CAI_SYNC_NONE, 0, "11");
    check_modes_export(CAI_MODE_IGNORE, CAI_SYNC_NONE, 0, "00");
    close_pool();
}

/* What cannot be done changes nothing. */
static void check_modes_failures(void)
{
    cai_array a;
    uint64_t before[2];
    open_pool(0, 0);
    CHECK(stream_in(c1) && stream_in(c1));
    CHECK_INT(cai_event_pool_set_modes(&pool, CAI_MODE_HOST, CAI_MODE_HOST, &err), CAI_OK);
    make(&a, m1, CAI_SYNC_STREAM, made[0]);
    memcpy(before, &a.stream, sizeof before);
    CHECK_INT(cai_sim_fail_op(sim, "stream_synchronize", 1, 700), 1);
    CHECK_INT(cai_stream_export(&a, &pool, made[1], made, 1, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_fail_op(sim, "stream_wait_event", 1, 700), 1);
    CHECK_INT(cai_stream_export(&a, &pool, made[1], made, 1, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_capture_begin(sim, made[1], 2), 0);
    CHECK_INT(cai_stream_export(&a, &pool, made[1], NULL, 0, &err), CAI_ERR_CAPTURE);
    CHECK_INT(cai_sim_capture_end(sim, made[1], NULL), 0);
    CHECK_INT(cai_stream_export(&a, &pool, 0, NULL, 0, &err), CAI_ERR_STREAM);
    CHECK_INT(a.sync, CAI_SYNC_STREAM);
    CHECK_BYTES(before, &a.stream, sizeof before);
    close_pool();
}

static void check_modes_arguments(void)
{
    static cai_event_pool unmade;
    open_pool(0, 0);
    CHECK_INT(cai_event_pool_set_modes(&pool, CAI_MODE_HOST, CAI_MODE_IGNORE, &err), CAI_OK);
    CHECK_INT(cai_event_pool_set_modes(&pool, 3, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "mode = 3 is no CAI_MODE_...");
    CHECK_INT(cai_event_pool_set_modes(&pool, -1, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_event_pool_set_modes(&pool, 0, 3, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_event_pool_set_modes(&pool, 0, -1, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "export_mode = -1 is no CAI_MODE_...");
    CHECK_INT(pool.mode * 10 + pool.export_mode, 12); /* as it was */
    CHECK_INT(cai_event_pool_set_modes(NULL, 0, 0, &err), CAI_ERR_ARGUMENT);
    memset(&unmade, 0, sizeof unmade);
    CHECK_INT(cai_event_pool_set_modes(&unmade, 0, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_event_pool_set_modes: pool is NULL or not made");
    close_pool();
}

/* An event beside a stream: the event is waited for, the stream gets the back edge. */
static void check_event_arrays(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    uint64_t s1, s2;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c2);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&b, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    CHECK_INT(cai_stream_detach(&b, &pool, &err), CAI_OK);
    CHECK_INT(a.sync, CAI_SYNC_EVENT);
    CHECK_UINT(a.stream, s1);
    CHECK_INT(b.sync, CAI_SYNC_EVENT);
    CHECK_UINT(b.stream, 0);
    logged("stream_context s1 -> c1\nstream_capture s1 -> none\ncontext_id c1 -> 1\ncontext_current -> c1\n"
           "event_create -> e1\nevent_record e1 s1\npointer_info m1 -> device 0 c1\n"
           "context_current -> c1\nstream_capture per_thread -> none\ncontext_id c1 -> 1\n"
           "event_create -> e2\n"
           "event_record e2 per_thread\n");
    exchange_once(list, 2, s2);
    logged("stream_context s2 -> c2\nstream_context s1 -> c1\nstream_capture s2 -> none\n"
           "stream_capture s1 -> none\ncontext_id c2 -> 2\ncontext_id c1 -> 1\nstream_wait_event s2 e1\n"
           "stream_wait_event s2 e2\n"
           "stream_capture s2 -> none\nstream_capture s1 -> none\ncontext_current -> c1\n"
           "context_push c2\nevent_create -> e3\ncontext_pop\nevent_record e3 s2\n"
           "stream_wait_event s1 e3\n");
    CHECK_INT(cai_stream_drop_event(&a, &pool, &err), CAI_OK);
    CHECK_INT(cai_stream_drop_event(&b, &pool, &err), CAI_OK);
    CHECK_INT(cai_stream_drop_event(&b, &pool, &err), CAI_OK); /* no event any more */
    CHECK_INT(a.sync, CAI_SYNC_UNKNOWN);
    CHECK_UINT(a.event | b.event, 0);
    logged("event_destroy e1\nevent_destroy e2\n");
    close_pool();
}

static void check_detach(void)
{
    cai_array a;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    CHECK_INT(a.sync, CAI_SYNC_NONE);
    make_empty(&a, CAI_SYNC_STREAM, 77);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    CHECK_INT(a.sync, CAI_SYNC_STREAM);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    REFUSED(cai_stream_detach(&a, &pool, &err), CAI_ERR_ARGUMENT,
            "cai_stream_detach: the array's sync is not CAI_SYNC_STREAM");
    make(&a, m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    logged("pointer_info m2 -> device 1 c2\ncontext_current -> c1\ncontext_push c2\n"
           "stream_capture legacy -> none\ncontext_pop\ncontext_id c2 -> 1\ncontext_push c2\n"
           "event_create -> e1\n"
           "context_pop\ncontext_push c2\nevent_record e1 legacy\ncontext_pop\n");
    CHECK_UINT(a.stream, CAI_STREAM_LEGACY); /* any thread can give it the back edge */
    CHECK_INT(cai_stream_drop_event(&a, &pool, &err), CAI_OK);
    close_pool();
}

static void go_on(void *context, const cai_sim_undefined *what)
{
    (void)context;
    (void)what;
}

static void check_order_and_export(void)
{
    cai_array a, before;
    uint64_t s[5], pending[4];
    int32_t i;
    open_pool(0, 0);
    for (i = 0; i < 4; i++) s[i] = stream_in(c1);
    s[4] = stream_in(c2);
    CHECK_INT(cai_stream_order(&pool, s[0], s[4], &err), CAI_OK);
    logged("stream_context s5 -> c2\nstream_context s1 -> c1\nstream_capture s5 -> none\n"
           "stream_capture s1 -> none\ncontext_id c2 -> 1\ncontext_id c1 -> 2\ncontext_current -> c1\n"
           "event_create -> e1\nevent_record e1 s1\n"
           "stream_wait_event s5 e1\n");
    CHECK_INT(cai_stream_order(&pool, s[0], s[0], &err), CAI_OK);
    CHECK_INT(cai_stream_order(&pool, 1, 1, &err), CAI_OK);
    logged("");
    CHECK_INT(cai_stream_order(&pool, 1, 2, &err), CAI_OK);
    logged("context_current -> c1\nstream_capture per_thread -> none\nstream_capture legacy -> none\n"
           "context_id c1 -> 2\n"
           "event_record e1 legacy\nstream_wait_event per_thread e1\n");
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    pending[0] = s[0];
    pending[1] = s[3]; /* the exported one itself */
    pending[2] = s[1];
    pending[3] = s[0]; /* again */
    CHECK_INT(cai_stream_export(&a, &pool, s[3], pending, 4, &err), CAI_OK);
    logged("stream_context s4 -> c1\nstream_context s1 -> c1\n"
           "stream_context s2 -> c1\nstream_capture s4 -> none\nstream_capture s1 -> none\n"
           "stream_capture s2 -> none\ncontext_id c1 -> 2\nevent_record e1 s1\nstream_wait_event s4 e1\n"
           "event_record e1 s2\nstream_wait_event s4 e1\n");
    CHECK_INT(a.sync, CAI_SYNC_STREAM);
    CHECK_UINT(a.stream, s[3]);
    CHECK_UINT(a.thread, 0);
    cai_sim_host_thread(sim, 9);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_PER_THREAD, NULL, 0, &err), CAI_OK);
    CHECK_UINT(a.thread, 9);
    logged("context_current -> c1\npointer_info m1 -> device 0 c1\n");
    before = a;
    pending[0] = 0xdead; /* never a stream: the simulation would end the program */
    cai_sim_on_undefined(sim, go_on, NULL);
    CHECK_INT(cai_stream_export(&a, &pool, s[1], pending, 1, &err), CAI_ERR_CUDA);
    cai_sim_on_undefined(sim, NULL, NULL);
    CHECK_BYTES(&a, &before, offsetof(cai_array, shape));
    cai_sim_host_thread(sim, 0);
    close_pool();
}

/* ------------------------------------------------------------------ corners */

/* A pool of zeros is none, and neither is one that was destroyed. */
static void check_pools_not_made(void)
{
    cai_array a;
    cai_event_pool none;
    memset(&none, 0, sizeof none);
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, 77);
    own(&a);
    REFUSED(cai_stream_export(&a, &none, 7, NULL, 0, &err), CAI_ERR_ARGUMENT,
            "cai_stream_export: pool is NULL or not made");
    REFUSED(cai_stream_remember_thread(&a, &none, &err), CAI_ERR_ARGUMENT,
            "cai_stream_remember_thread: pool is NULL or not made");
    REFUSED(cai_stream_detach(&a, &none, &err), CAI_ERR_ARGUMENT,
            "cai_stream_detach: pool is NULL or not made");
    REFUSED(cai_stream_drop_event(&a, &none, &err), CAI_ERR_ARGUMENT,
            "cai_stream_drop_event: pool is NULL or not made");
    REFUSED(cai_keepalive_push(&a, &none, 7, &err), CAI_ERR_ARGUMENT,
            "cai_keepalive_push: pool is NULL or not made");
    REFUSED(cai_keepalive_poll(&none, NULL, &err), CAI_ERR_ARGUMENT,
            "cai_keepalive_poll: pool is NULL or not made");
    REFUSED(cai_keepalive_drain(&none, &err), CAI_ERR_ARGUMENT,
            "cai_keepalive_drain: pool is NULL or not made");
    REFUSED(cai_event_pool_destroy(&none, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_destroy: pool is NULL or not made");
    CHECK(a.release != NULL);
    cai_array_release(&a);
    close_pool();
}

static int32_t threads_told; /* so many calls of host_thread succeed */

static int32_t failing_host_thread(void *self, uint64_t *thread)
{
    return threads_told-- > 0 ? cai_sim_cuda(sim)->host_thread(self, thread) : 3;
}

/* Whichever call of host_thread fails, it is told. */
static void check_failing_host_thread(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    int32_t n, succeeded = 0;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    cuda.host_thread = failing_host_thread;
    for (n = 0; n < 8 && !succeeded; n++) {
        cai_status status;
        threads_told = n;
        memset(&err, 0x5a, sizeof err);
        status = cai_exchange_begin(&ex, &pool, list, 1, CAI_STREAM_PER_THREAD, &err);
        succeeded = status == CAI_OK;
        if (succeeded) continue;
        CHECK_INT(status, CAI_ERR_CUDA);
        CHECK_STR(err.message, err.index < 0 ? "host_thread: CUDA error 3 (not initialized)"
                                             : "arrays[0]: host_thread: CUDA error 3 (not initialized)");
    }
    CHECK(succeeded);
    threads_told = 0;
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_CUDA); /* stays open */
    threads_told = 9;
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    threads_told = 0;
    CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_PER_THREAD, NULL, 0, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "host_thread: CUDA error 3 (not initialized)");
    close_pool();
}

static void check_remember_masks(void)
{
    cai_array a, mask;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    make(&mask, m1, CAI_SYNC_STREAM, 77);
    a.mask = &mask;
    a.thread = 0;
    CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_OK);
    CHECK(a.thread != 0);
    CHECK_UINT(mask.thread, 0);
    a.stream = 77;
    a.thread = 0;
    mask.stream = CAI_STREAM_PER_THREAD;
    CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_OK);
    CHECK_UINT(a.thread, 0);
    CHECK(mask.thread != 0);
    mask.stream = 77;
    mask.thread = 0;
    CHECK_INT(cai_stream_remember_thread(&a, &pool, &err), CAI_OK);
    CHECK_UINT(a.thread | mask.thread, 0);
    close_pool();
}

/* A default stream is exported where the memory has the same one. */
static void check_export_default(void)
{
    cai_array a, empty;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    make_empty(&empty, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_stream_export(&empty, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_OK);
    logged("");
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_OK);
    CHECK_UINT(a.stream, CAI_STREAM_LEGACY);
    make(&a, m2, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_ERR_STREAM);
    CHECK_STR(err.message, "a consumer would use stream 1 of the memory's context, not of the current context: "
                           "export a handle");
    CHECK_INT(cai_sim_fail_op(sim, "context_current", 1, 999), 1);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_fail_op(sim, "pointer_info", 1, 999), 1);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "pointer_info: CUDA error 999 (unknown error)");
    CHECK_INT(a.sync, CAI_SYNC_NONE);
    a.sync = CAI_SYNC_EVENT;
    REFUSED(cai_stream_export(&a, &pool, 77, NULL, 0, &err), CAI_ERR_ARGUMENT,
            "cai_stream_export: the array has an event, call cai_stream_drop_event first");
    close_pool();
}

/* Memory without a context: of the current one if that is on its device, else of the primary one. */
static void check_memory_without_context(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    uint64_t pooled, s1;
    open_pool(0, 0);
    pooled = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 64);
    s1 = stream_in(c1);
    make(&a, pooled, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_calls_of(sim, "device_context"), 0);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_calls_of(sim, "device_context"), 1);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_calls_of(sim, "device_context"), 2);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 6);
    CHECK_INT(cai_sim_free(sim, pooled), 0);
    close_pool();
}

/* A program with contexts of its own: no primary context is made, and where none is known that is said. */
static void check_own_contexts(void)
{
    static const char none_of_1[] = "no context of device 1 is current on this host thread, and its primary "
                                    "context is not active: choose a device (cudaSetDevice)";
    static const char none_of_0[] = "no context of device 0 is current on this host thread, and its primary "
                                    "context is not active: choose a device (cudaSetDevice)";
    cai_event_pool own;
    cai_sim *other = cai_sim_create(2);
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t context, stream, pooled, pooled1;
    int32_t sync;
    cai_sim_set_options(other,
                        (cai_sim_options(other) | CAI_SIM_PRIMARY_INACTIVE) & ~(uint32_t)CAI_SIM_PROGRESS);
    context = cai_sim_context_create(other, 1);
    CHECK_INT(cai_sim_set_context(other, context), 0);
    pooled1 = cai_sim_alloc(other, CAI_SIM_MEM_POOL, 64);
    context = cai_sim_context_create(other, 0);
    CHECK_INT(cai_sim_set_context(other, context), 0);
    pooled = cai_sim_alloc(other, CAI_SIM_MEM_POOL, 64);
    stream = cai_sim_stream_create(other, 1);
    CHECK_INT(cai_event_pool_init(&own, cai_sim_cuda(other), NULL, 0, 0, &err), CAI_OK);
    for (sync = CAI_SYNC_UNKNOWN; sync <= CAI_SYNC_STREAM; sync += 2) {
        const uint64_t said = sync == CAI_SYNC_STREAM ? CAI_STREAM_LEGACY : 0;
        CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 0, NULL, NULL, cai_stream_to_cuda(pooled), NULL), CAI_OK);
        a.sync = sync;
        a.stream = said;
        CHECK_INT(cai_exchange_begin(&ex, &own, list, 1, stream, &err), CAI_OK);
        CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
        CHECK_INT(cai_sim_calls_of(other, "context_push"), 0);
        CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 0, NULL, NULL, cai_stream_to_cuda(pooled1), NULL), CAI_OK);
        a.sync = sync;
        a.stream = said;
        CHECK_INT(cai_exchange_begin(&ex, &own, list, 1, stream, &err), CAI_ERR_CUDA);
        CHECK_STR(err.message, of_first(none_of_1));
        CHECK_INT(err.native, 201);
        CHECK_INT(err.index, 0);
    }
    CHECK_INT(cai_sim_set_context(other, 0), 0);
    a.sync = CAI_SYNC_STREAM;
    a.stream = stream;
    CHECK_INT(cai_exchange_begin(&ex, &own, list, 1, CAI_STREAM_LEGACY, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, none_of_1); /* of the data's device */
    CHECK_INT(cai_exchange_begin(&ex, &own, list, 0, CAI_STREAM_LEGACY, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, none_of_0);
    CHECK_INT(cai_exchange_begin(&ex, &own, list, 0, CAI_STREAM_LEGACY, NULL), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_set_context(other, context), 0);
    CHECK_INT(cai_event_pool_destroy(&own, &err), CAI_OK);
    cai_sim_destroy(other);
}

/* Contexts that are current on one thread at a time, as green ones: the exchange leaves them where they are.
 * */
static void check_one_thread_contexts(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t green, s1, s2;
    open_pool(0, 0);
    green = cai_sim_context_create(sim, 0);
    s1 = stream_in(green);
    s2 = stream_in(c1);
    CHECK_INT(cai_stream_order(&pool, s1, s2, &err), CAI_OK); /* makes the event, which needs the context */
    CHECK_INT(cai_stream_order(&pool, s2, s1, &err), CAI_OK);
    cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_ONE_THREAD_CONTEXTS);
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, green), 0);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, s1), 0);
    made[0] = made[1];
    made_count = 1;
    CHECK_INT(cai_sim_context_destroy(sim, green), 0);
    close_table();
}

/* On a thread without a current context stream 1 is that of the primary context of device 0, from begin to
 * release and in an export, and a wait of the host has a context. */
static void check_without_context(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange_options host;
    cai_exchange ex;
    uint64_t s1;
    memset(&host, 0, sizeof host);
    host.mode = CAI_MODE_HOST;
    open_pool(0, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, CAI_STREAM_LEGACY, &err), CAI_OK);
    CHECK_UINT(ex.context, c1);
    CHECK_INT(cai_sim_set_context(sim, c2), 0); /* the release is after the work in c1 all the same */
    own(&a);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK(strstr(cai_sim_log(sim), "context_push c1") != NULL);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "device_context", 1, 999), 1);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, s1, &host, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    make(&a, m1, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, s1, &host, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, s1, &host, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "stream_capture", 1, 400), 1);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    close_pool();
}

/* An event that is somebody else's is forgotten, not destroyed. */
static void check_lent_event(void)
{
    cai_array a, lent;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, stream_in(c1));
    CHECK_INT(cai_stream_detach(&a, &pool, &err), CAI_OK);
    lent = a;
    lent.flags &= ~(uint32_t)CAI_OWN_EVENT;
    cai_sim_log_clear(sim);
    CHECK_INT(cai_stream_drop_event(&lent, &pool, &err), CAI_OK);
    logged("");
    CHECK_INT(lent.sync, CAI_SYNC_UNKNOWN);
    CHECK_INT(cai_stream_drop_event(&a, &pool, &err), CAI_OK);
    close_pool();
}

/* What restores a context may fail, too: the first error is told, the rest is the caller's. */
static void check_helpless(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1;
    open_pool(0, 0);
    s1 = stream_in(c1);
    make(&a, m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_fail_op(sim, "context_pop", 2, 999), 1);
    CHECK_INT(cai_sim_fail_op(sim, "context_current", 2, 719), 1);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "arrays[0]: context_pop: CUDA error 999 (unknown error)");
    CHECK_INT(cai_sim_faults(sim), 0);
    CHECK(cai_sim_current(sim) != c1);
    while (cai_sim_leaks(sim, NULL, 0) > 1 + 2 + pool.idle_count) CHECK_INT(cuda.context_pop(sim), 0);
    CHECK_UINT(cai_sim_current(sim), c1);
    close_pool();
}

/* The short way of begin, for arrays of which nothing is to be asked, sees what the long one sees. */
static void check_short_way(void)
{
    cai_array a, mask;
    cai_array *list[2] = {&a, NULL}, *hole[1] = {NULL};
    cai_exchange ex;
    uint64_t s1, s2;
    open_pool(0, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&mask, m1, CAI_SYNC_STREAM, s2);
    REFUSED(cai_exchange_begin(&ex, &pool, hole, 1, s1, &err), CAI_ERR_ARGUMENT, "arrays[0]: array is NULL");
    REFUSED(cai_exchange_begin(&ex, &pool, list, 2, s1, &err), CAI_ERR_ARGUMENT, "arrays[1]: array is NULL");
    CHECK_INT(err.index, 1);
    exchange_once(list, 1, s1);
    logged("");
    a.struct_size += 8; /* a newer layout, with more at its end */
    exchange_once(list, 1, s1);
    a.struct_size -= 8;
    a.mask = &mask;
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 2);
    close_pool();
}

/* CAI_UNKNOWN_LEGACY and memory of a pool: stream 1 of the current context and of the primary one. */
static void check_legacy_of_two_contexts(void)
{
    cai_array arrays[CAI_EXCHANGE_EDGES + 1];
    cai_array *list[CAI_EXCHANGE_EDGES + 1];
    cai_exchange ex;
    cai_exchange_options legacy = options_of(0, CAI_UNKNOWN_LEGACY);
    uint64_t s1, further, pooled;
    int32_t i;
    open_pool(0, 0);
    s1 = stream_in(c1);
    pooled = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 64);
    further = cai_sim_context_create(sim, 0);
    for (i = 0; i <= CAI_EXCHANGE_EDGES; i++) {
        list[i] = &arrays[i];
        if (i < CAI_EXCHANGE_EDGES) make(&arrays[i], m1, CAI_SYNC_STREAM, stream_in(c1));
        else make(&arrays[i], pooled, CAI_SYNC_UNKNOWN, 0);
    }
    CHECK_INT(cai_sim_set_context(sim, c1), 0); /* they are the same */
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list + i - 1, 1, s1, &legacy, &err), CAI_OK);
    CHECK_INT(ex.edge_count, 1);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, further), 0);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list + i - 1, 1, CAI_STREAM_LEGACY, &legacy, &err), CAI_OK);
    CHECK_INT(ex.edge_count, 1); /* the consumer's stream is that of the current context */
    CHECK_UINT(ex.edges[0].context, c1);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, i, s1, &legacy, &err), CAI_ERR_CAPACITY);
    CHECK_INT(err.index, CAI_EXCHANGE_EDGES);
    CHECK_INT(cai_event_pool_forget(&pool, further, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_context_destroy(sim, further), 0);
    CHECK_INT(cai_sim_free(sim, pooled), 0);
    close_pool();
}

static int32_t second_inactive(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    *context = device == 0 ? c1 : 0;
    return device < 2 ? 0 : 101;
}

/* Unknown work where no context is current, the other device has none, and CUDA says that there are no more. */
static void check_unknown_without_contexts(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    uint64_t s1;
    open_pool(0, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    CHECK_INT(cai_sim_fail_op(sim, "device_context", 3, 100), 1);
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cuda.device_context = second_inactive;
    cai_sim_log_clear(sim);
    exchange_once(list, 1, s1);
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), 1);
    close_pool();
}

static int32_t unknown_pointer(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self;
    (void)pointer;
    memset(info, 0, sizeof *info);
    info->device = CAI_DEVICE_UNKNOWN;
    return 0;
}

/* The device of the first array that has one is that of a consumer on stream 1 without a current context. */
static void check_device_of_data(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    cai_exchange ex;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    make(&b, m2, CAI_SYNC_NONE, 0);
    a.device = CAI_DEVICE_UNKNOWN;
    b.device = 1;
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    cuda.pointer_info = unknown_pointer;
    b.sync = CAI_SYNC_STREAM; /* 1 of memory of which nothing is known is that of device 0, too */
    b.stream = CAI_STREAM_LEGACY;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, CAI_STREAM_LEGACY, &err), CAI_OK);
    CHECK_UINT(ex.context, c2);
    CHECK_UINT(ex.edges[0].context, c1);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    cuda = *cai_sim_cuda(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, CAI_STREAM_LEGACY, &err), CAI_OK);
    CHECK_UINT(ex.context, c1);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    close_pool();
}

/* An array without values and a mask that has some: the mask is what was used. */
static void check_empty_with_mask(void)
{
    cai_array a, mask;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1, s2;
    int32_t ordered;
    open_pool(2, 0);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    for (ordered = 0; ordered <= 1; ordered++) {
        make_empty(&a, CAI_SYNC_NONE, 0);
        make(&mask, m1, ordered ? CAI_SYNC_STREAM : CAI_SYNC_NONE, ordered ? s1 : 0);
        a.mask = &mask;
        own(&a);
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_OK);
        CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
        CHECK_INT(released, ordered);
        CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
        CHECK_INT(released, 1);
    }
    make_empty(&mask, CAI_SYNC_NONE, 0);
    make_empty(&a, CAI_SYNC_NONE, 0);
    a.mask = &mask;
    own(&a);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK_INT(released, 1);
    close_pool();
}

/* An export on the host, of streams whose context nobody has asked for. */
static void check_export_on_host(void)
{
    cai_array a;
    uint64_t s1;
    open_pool(0, 0);
    s1 = stream_in(c1);
    CHECK_INT(cai_event_pool_set_modes(&pool, 0, CAI_MODE_HOST, &err), CAI_OK);
    make(&a, m1, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_stream_export(&a, &pool, s1, NULL, 0, &err), CAI_OK);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "stream_synchronize"), 2);
    CHECK_INT(cai_sim_fail_op(sim, "context_current", 1, 999), 1);
    CHECK_INT(cai_stream_export(&a, &pool, CAI_STREAM_LEGACY, NULL, 0, &err), CAI_ERR_CUDA);
    close_pool();
}

/* A full list: the event went to what waits, and the next one cannot be recorded. */
static void check_second_record_fails(void)
{
    cai_array a, b, c;
    cai_array *list[3] = {&a, &b, &c};
    cai_exchange ex;
    uint64_t s1;
    open_pool(2, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_NONE, 0);
    b = c = a;
    own(&c);
    own(&b);
    own(&a);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 3, s1, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 2, 999), 1);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 3, &err), CAI_ERR_CUDA);
    CHECK_INT(err.index, 2);
    CHECK_INT(released, 2);
    CHECK(c.release != NULL);
    CHECK_INT(pool.waiting, 0);
    CHECK_INT(cai_keepalive_push(&c, &pool, s1, &err), CAI_OK); /* the place is there again */
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    CHECK_INT(released, 3);
    close_pool();
}

/* The arrays of a finish that has nothing else to do. */
static void check_short_finish(void)
{
    cai_array a;
    cai_array *list[1] = {&a}, *hole[1] = {NULL};
    cai_exchange ex;
    uint64_t s1;
    open_pool(0, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, hole, 1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, NULL, 1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, NULL, 0, &err), CAI_OK);
    a.packed_axis = 0; /* its maker zeroed the struct: what begin takes, finish gives back */
    a.flags |= CAI_ORDERED_FREE;
    released = 0;
    cai_array_own(&a, on_release, NULL);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_OK);
    CHECK_INT(released, 1);
    cai_array_own(&a, on_release, NULL);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_OK);
    a.abi ^= 1; /* spoilt since: nothing of it is used */
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_ERR_ABI);
    a.abi ^= 1;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s1, &err), CAI_OK);
    a.struct_size -= 8;
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 1, &err), CAI_ERR_ABI);
    CHECK_INT(released, 1);
    close_pool();
}

static int32_t many_devices(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    *context = 0x1000 + (uint64_t)(uint32_t)device;
    return 0;
}

/* More devices than the host waits for. */
static void check_many_devices(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    cuda.device_context = many_devices;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, stream_in(c1), &err), CAI_ERR_CAPACITY);
    CHECK(strstr(err.message, "contexts") != NULL);
    close_pool();
}

/* The process ends after an error of the same call, which is told. */
static void check_end_after_error(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    cai_exchange ex;
    open_pool(2, 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    b = a;
    own(&b);
    own(&a);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, stream_in(c1), &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 1, 999), 1);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 2, 4), 1);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, 2, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, 999);
    CHECK_INT(released, 1); /* b */
    CHECK(a.release != NULL);
    close_pool();
}

/* In a capture the array with the event is named, wherever it stands. */
static void check_events_in_captures(void)
{
    cai_array a, b, c;
    cai_array *list[3] = {&a, &b, &c};
    cai_exchange ex;
    uint64_t s1;
    open_pool(0, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, s1);
    make(&b, m1, CAI_SYNC_EVENT, 0);
    make(&c, m1, CAI_SYNC_EVENT, 0);
    b.event = cai_sim_event_create(sim);
    c.event = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_THREAD_LOCAL), 0);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 3, s1, &err), CAI_ERR_CAPTURE);
    CHECK_INT(err.index, 1);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list + 1, 2, s1, &err), CAI_ERR_CAPTURE);
    CHECK_INT(err.index, 0);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    CHECK_INT(cai_sim_event_destroy(sim, b.event) | cai_sim_event_destroy(sim, c.event), 0);
    close_pool();
}

/* An exchange that orders nothing may end anywhere, stream 2 or not. */
static void check_ignore_elsewhere(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    cai_exchange_options o = options_of(CAI_MODE_IGNORE, 0);
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 1, CAI_STREAM_PER_THREAD, &o, &err), CAI_OK);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    close_pool();
}

/* Two failures of one call, the second being that the process ends: that is a success. */
static void check_gone_after_error(void)
{
    cai_array a, b;
    cai_array *list[2] = {&a, &b};
    cai_exchange ex;
    uint64_t s1;
    open_pool(4, 0);
    s1 = stream_in(c1);
    make(&a, m1, CAI_SYNC_STREAM, stream_in(c1));
    make(&b, m1, CAI_SYNC_STREAM, stream_in(c1));
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s1, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "stream_wait_event", 1, 400), 1);
    CHECK_INT(cai_sim_fail_op(sim, "stream_wait_event", 2, 4), 1);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, 400);
    CHECK_INT(keep(1, s1), CAI_OK);
    CHECK_INT(keep(2, s1), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "event_query", 1, 400), 1);
    CHECK_INT(cai_sim_fail_op(sim, "event_query", 2, 4), 1);
    CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, 400);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    close_pool();
}

/* A sentence that does not fit is cut off. */
static void check_long_names(void)
{
    char name[400];
    size_t n;
    for (n = 200; n < sizeof name; n++) {
        memset(name, 'x', n);
        name[n] = 0;
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(cai_cuda_status(700, name, &err), CAI_ERR_CUDA);
        CHECK(strlen(err.message) < sizeof err.message);
        CHECK(strncmp(err.message, name, n < 236 ? n : 236) == 0);
        if (n > 239) CHECK_STR(err.message + 236, "...");
        CHECK_INT(err.native, 700);
    }
}


/* ------------------------------------------------------------------ the rules that errors name */

static cai_array ruled;
static cai_exchange ruled_exchange;
static uint64_t ruled_consumer;
static cai_error *ruled_error; /* &err or NULL */

static cai_status begin_ruled(int32_t sync, uint64_t stream)
{
    cai_array *list[1] = {&ruled};
    make(&ruled, m1, sync, stream);
    return cai_exchange_begin(&ruled_exchange, &pool, list, 1, ruled_consumer, ruled_error);
}

static cai_status broken_zero(void) { return begin_ruled(CAI_SYNC_STREAM, 0); }
static cai_status broken_minus_one(void) { return begin_ruled(CAI_SYNC_STREAM, UINT64_MAX); }
static cai_status broken_sync(void) { return begin_ruled(9, 0); }

static cai_status broken_platform(void)
{
    cuda.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    return begin_ruled(CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
}

static cai_status broken_context(void)
{
    make(&ruled, m2, CAI_SYNC_NONE, 0);
    return cai_stream_export(&ruled, &pool, CAI_STREAM_LEGACY, NULL, 0, ruled_error);
}

static cai_status broken_thread(void)
{
    make(&ruled, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    ruled.thread++;
    return cai_stream_detach(&ruled, &pool, ruled_error);
}

static cai_status broken_no_thread(void)
{
    make(&ruled, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    ruled.thread = 0;
    return cai_stream_detach(&ruled, &pool, ruled_error);
}

static uint64_t capturing(void)
{
    const uint64_t stream = stream_in(c1);
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_THREAD_LOCAL), 0);
    return stream;
}

static cai_status broken_capture(void)
{
    const uint64_t stream = capturing();
    const cai_status status = begin_ruled(CAI_SYNC_STREAM, stream);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
    return status;
}

static cai_status broken_capture_of_detach(void)
{
    const uint64_t stream = capturing();
    cai_status status;
    make(&ruled, m1, CAI_SYNC_STREAM, stream);
    status = cai_stream_detach(&ruled, &pool, ruled_error);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
    return status;
}

static cai_status broken_capture_invalidated(void)
{
    const uint64_t stream = capturing();
    cai_status status;
    CHECK(cai_sim_stream_synchronize(sim, stream) != 0);
    status = cai_stream_order(&pool, stream, ruled_consumer, ruled_error);
    CHECK(cai_sim_capture_end(sim, stream, NULL) != 0);
    cai_sim_clear_error(sim);
    return status;
}

static cai_status broken_call_in_capture(void)
{
    CHECK_INT(cai_sim_fail_op(sim, "stream_wait_event", 1, 905), 1);
    return cai_stream_order(&pool, made[0], ruled_consumer, ruled_error);
}

static cai_status failed_call(void)
{
    CHECK_INT(cai_sim_fail_op(sim, "stream_wait_event", 1, 719), 1);
    return cai_stream_order(&pool, made[0], ruled_consumer, ruled_error);
}

static cai_status failed_kernel(void) { return cai_cuda_status(700, "kernel", ruled_error); }
static cai_status failed_capture(void) { return cai_cuda_status(900, "kernel", ruled_error); }

/* cai_error.rule is the rule of docs/rules.md, and the status is the same without an error. */
static void check_rules(void)
{
    static const struct {
        const char *what;
        cai_status (*provoke)(void);
        int32_t status, rule;
    } rows[] = {
        {"stream 0", broken_zero, CAI_ERR_STREAM, 71}, {"stream -1", broken_minus_one, CAI_ERR_STREAM, 74},
        {"stream 1 of ROCm", broken_platform, CAI_ERR_STREAM, 106},
        {"stream 1 of another context", broken_context, CAI_ERR_STREAM, 83},
        {"stream 2 of another thread", broken_thread, CAI_ERR_THREAD, 84},
        {"stream 2 of no thread", broken_no_thread, CAI_ERR_THREAD, 84},
        {"the producer captures", broken_capture, CAI_ERR_CAPTURE, 103},
        {"an event of a capture", broken_capture_of_detach, CAI_ERR_CAPTURE, 103},
        {"a capture that was invalidated", broken_capture_invalidated, CAI_ERR_CAPTURE, 103},
        {"CUDA refuses it in a capture", broken_call_in_capture, CAI_ERR_CAPTURE, 103},
        {"error 900 of the caller", failed_capture, CAI_ERR_CUDA, 103},
        {"error 700 of the caller", failed_kernel, CAI_ERR_CUDA, 0},
        {"another error of CUDA", failed_call, CAI_ERR_CUDA, 0}, {"sync", broken_sync, CAI_ERR_ARGUMENT, 0}};
    size_t i;
    for (i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        cai_test_note(rows[i / 2].what);
        open_pool(2, 0);
        (void)stream_in(c1);
        ruled_consumer = stream_in(c1);
        ruled_error = i % 2 ? NULL : &err;
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(rows[i / 2].provoke(), rows[i / 2].status);
        if (ruled_error) CHECK_INT(err.code, rows[i / 2].status);
        if (ruled_error) CHECK_INT(err.rule, rows[i / 2].rule);
        cuda.flags &= ~(uint32_t)CAI_CUDA_NO_DEFAULT_STREAMS;
        close_pool();
    }
    cai_test_note("");
}


int main(void)
{
    check_two_contexts();
    check_masks_and_repeats();
    check_default_streams();
    check_context_changed_between();
    check_earlier_errors();
    check_blame();
    check_moved();
    check_sixteen();
    check_seventeen_by_context();
    check_many_contexts();
    check_many_events();
    check_unknown();
    check_host_mode();
    check_modes();
    check_modes_failures();
    check_modes_arguments();
    check_event_arrays();
    check_detach();
    check_order_and_export();
    check_rules();
    check_pools_not_made();
    check_failing_host_thread();
    check_remember_masks();
    check_export_default();
    check_memory_without_context();
    check_own_contexts();
    check_one_thread_contexts();
    check_without_context();
    check_lent_event();
    check_helpless();
    check_short_way();
    check_short_finish();
    check_legacy_of_two_contexts();
    check_unknown_without_contexts();
    check_device_of_data();
    check_empty_with_mask();
    check_export_on_host();
    check_many_devices();
    check_end_after_error();
    check_second_record_fails();
    check_events_in_captures();
    check_ignore_elsewhere();
    check_gone_after_error();
    check_long_names();
    return cai_test_end();
}
