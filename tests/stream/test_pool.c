/* test_pool.c - numbers, tables and arguments of the pool and of the exchange
 * SPDX-License-Identifier: MIT */
#include "pool_setup.h"

/* ------------------------------------------------------------------ numbers and texts */

static void check_numbers(void)
{
    struct CUstream_st *handle = cai_stream_to_cuda(0x1230);
    CHECK_UINT(cai_stream_from_cuda(handle, 7), 0x1230);
    CHECK_UINT(cai_stream_from_cuda(NULL, 7), 7);
    CHECK_UINT(CAI_STREAM(handle), 0x1230);
    CHECK(cai_stream_to_cuda(0) == NULL);
    CHECK_UINT((uintptr_t)cai_stream_to_cuda(2), 2);
    CHECK_UINT(CAI_STREAM(cai_stream_to_cuda(2)), 2);
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
    CHECK_UINT(CAI_STREAM(NULL), 2);
#else
    CHECK_UINT(CAI_STREAM(NULL), 1);
#endif
}

static void check_cuda_status(void)
{
    cai_error untouched;
    memset(&err, 0x5a, sizeof err);
    memset(&untouched, 0x5a, sizeof untouched);
    CHECK_INT(cai_cuda_status(0, "scale_kernel", &err), CAI_OK);
    CHECK_INT(cai_cuda_status(0, NULL, &err), CAI_OK);
    CHECK_BYTES(&err, &untouched, sizeof err);
    CHECK_INT(cai_cuda_status(700, "scale_kernel", &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "scale_kernel: CUDA error 700 (illegal address)");
    CHECK_INT(err.native, 700);
    CHECK_INT(err.code, CAI_ERR_CUDA);
    CHECK_INT(err.entry, CAI_ENTRY_NONE);
    CHECK_INT(err.index, -1);
    CHECK_INT(cai_cuda_status(400, "event_record", &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "event_record: CUDA error 400 (invalid resource handle)");
    CHECK_INT(cai_cuda_status(12345, "x", &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "x: CUDA error 12345 (see CUDA's list)");
    CHECK_INT(cai_cuda_status(-1, "x", &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "x: CUDA error -1 (see CUDA's list)");
    CHECK_INT(cai_cuda_status(INT32_MIN, "x", &err), CAI_ERR_CUDA);
    CHECK_INT(err.native, INT32_MIN);
    CHECK_INT(cai_cuda_status(2, NULL, &err), CAI_ERR_CUDA);
    CHECK_STR(err.message, "CUDA: CUDA error 2 (out of memory)");
    CHECK_INT(cai_cuda_status(2, "x", NULL), CAI_ERR_CUDA);
}

/* ------------------------------------------------------------------ tables */

typedef struct slot {
    const char *name;
    size_t offset;
} slot;

#define SLOT(name) {#name, offsetof(cai_cuda, name)}

static const slot slots[] = {
    SLOT(context_current), SLOT(context_push), SLOT(context_pop), SLOT(context_synchronize),
    SLOT(context_device), SLOT(device_context), SLOT(stream_context), SLOT(stream_capture), SLOT(stream_id),
    SLOT(stream_wait_event), SLOT(stream_synchronize), SLOT(event_create), SLOT(event_destroy),
    SLOT(event_record), SLOT(event_query), SLOT(event_synchronize), SLOT(capture_mode), SLOT(pointer_info),
    SLOT(pointer_range), SLOT(device_attribute), SLOT(host_thread), SLOT(primary_retain),
    SLOT(primary_release), SLOT(capture_retain)};

enum { SLOTS = (int)(sizeof slots / sizeof slots[0]) };

static void without(const char *name)
{
    int32_t i;
    for (i = 0; i < SLOTS; i++) {
        if (strcmp(slots[i].name, name) == 0) {
            memset((char *)&cuda + slots[i].offset, 0, sizeof cuda.context_pop);
            return;
        }
    }
    CHECK_STR(name, "the name of a slot");
}

static void check_pool_init(void)
{
    cai_event_pool before;
    open_table();
    memset(&pool, 0x5a, sizeof pool);
    memcpy(&before, &pool, sizeof pool);
    REFUSED(cai_event_pool_init(NULL, &cuda, NULL, 0, 0, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_init: pool is NULL");
    REFUSED(cai_event_pool_init(&pool, NULL, NULL, 0, 0, &err), CAI_ERR_ARGUMENT, "cuda is NULL");
    REFUSED(cai_event_pool_init(&pool, &cuda, NULL, 1, 0, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_init: keepalive is NULL, or capacity is negative");
    REFUSED(cai_event_pool_init(&pool, &cuda, places, -1, 0, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_init: keepalive is NULL, or capacity is negative");
    REFUSED(cai_event_pool_init(&pool, &cuda, NULL, 0, 2, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_init: flags = 0x2 has unknown bits");
    REFUSED(cai_event_pool_init(&pool, &cuda, NULL, 0, 0x80000000u, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_init: flags = 0x80000000 has unknown bits");
    CHECK_BYTES(&pool, &before, sizeof pool);
    CHECK_INT(cai_event_pool_init(&pool, &cuda, places, 0, 0, NULL), CAI_OK);
    CHECK_INT(cai_event_pool_init(&pool, &cuda, places, PLACES, 0, NULL), CAI_OK);
    CHECK(pool.cuda == &cuda && pool.keepalive == places);
    CHECK_INT(pool.open_exchanges | pool.idle_count | pool.waiting, 0);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    logged("");
    close_table();
}

/* What every CUDA since 11.2 has. */
static const char *const needed[] = {
    "context_current", "context_push", "context_pop", "context_synchronize", "context_device", "device_context",
    "stream_context", "stream_capture", "stream_wait_event", "stream_synchronize", "event_create",
    "event_destroy", "event_record", "event_query", "event_synchronize", "capture_mode", "pointer_info",
    "host_thread"};

enum { NEEDED = (int)(sizeof needed / sizeof needed[0]) };

static int is_needed(const char *name)
{
    int32_t i;
    for (i = 0; i < NEEDED; i++) {
        if (strcmp(needed[i], name) == 0) return 1;
    }
    return 0;
}

/* A table of another version is refused; one that is longer is as good. */
static void check_pool_tables(void)
{
    char sentence[80];
    int32_t i;
    open_table();
    for (i = 0; i < NEEDED; i++) {
        without(needed[i]);
        strcpy(sentence, "the CUDA table has no ");
        strcat(sentence, needed[i]);
        REFUSED(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_ERR_UNAVAILABLE, sentence);
        cuda = *cai_sim_cuda(sim);
    }
    for (i = 0; i < 3; i++) {
        cuda = *cai_sim_cuda(sim);
        if (i < 2) cuda.version = (uint32_t)(2 * i); /* 0 and 2 */
        else cuda.struct_size = 0;
        cai_sim_log_clear(sim);
        CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_ERR_ABI);
        logged("");
    }
    cuda = *cai_sim_cuda(sim);
    cuda.struct_size += 64; /* a newer one, with slots that nobody here knows */
    CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    close_table();
}

/* A table that ends before a slot is one that lacks it: what lies behind its end is not looked at. */
static void check_shorter_tables(void)
{
    const size_t head = offsetof(cai_cuda, context_current), last = offsetof(cai_cuda, host_thread);
    cai_array *list[2];
    cai_array a, b;
    size_t end;
    open_table();
    make(&a, m1, CAI_SYNC_STREAM, stream_in(c1));
    make(&b, m2, CAI_SYNC_STREAM, stream_in(c2));
    list[0] = &a;
    list[1] = &b;
    for (end = 0; end <= sizeof cuda + 8; end++) {
        const size_t slots_end = end - (end - head) % sizeof cuda.context_pop;
        cuda = *cai_sim_cuda(sim);
        if (end >= head && end < sizeof cuda) memset((char *)&cuda + end, 0x5a, sizeof cuda - end);
        cuda.struct_size = (uint32_t)end;
        if (end < head) {
            CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_ERR_ABI);
        } else if (slots_end < last + sizeof cuda.host_thread) {
            CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_ERR_UNAVAILABLE);
        } else if (CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_OK)) {
            CHECK((pool.cuda == &cuda) == (end >= sizeof cuda));
            CHECK((pool.cuda->copy_3d_peer_async != NULL) == (slots_end > offsetof(cai_cuda, copy_3d_peer_async)));
            exchange_once(list, 2, made[0]);
            CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
        }
    }
    close_table();
}

/* ------------------------------------------------------------------ arguments */

static void check_begin_arguments(void)
{
    cai_array a, odd;
    cai_array *list[2] = {&a, &odd};
    cai_array *hole[2] = {&a, NULL};
    cai_event_pool none;
    cai_exchange ex;
    memset(&none, 0, sizeof none);
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, stream_in(c1));
    make(&odd, m1, CAI_SYNC_NONE, 0);
    REFUSED(cai_exchange_begin(NULL, &pool, list, 1, 77, &err), CAI_ERR_ARGUMENT,
            "cai_exchange_begin: ex is NULL");
    REFUSED(cai_exchange_begin(&ex, NULL, list, 1, 77, &err), CAI_ERR_ARGUMENT,
            "cai_exchange_begin: pool is NULL or not made");
    REFUSED(cai_exchange_begin(&ex, &none, list, 1, 77, &err), CAI_ERR_ARGUMENT,
            "cai_exchange_begin: pool is NULL or not made");
    REFUSED(cai_exchange_begin(&ex, &pool, NULL, 1, 77, &err), CAI_ERR_ARGUMENT,
            "cai_exchange_begin: arrays is NULL");
    REFUSED(cai_exchange_begin(&ex, &pool, list, -1, 77, &err), CAI_ERR_ARGUMENT,
            "cai_exchange_begin: count = -1 is negative");
    REFUSED(cai_exchange_begin(&ex, &pool, hole, 2, 77, &err), CAI_ERR_ARGUMENT, "arrays[1]: array is NULL");
    CHECK_INT(err.index, 1);
    CHECK_INT(cai_exchange_begin(&ex, &pool, hole, 2, 77, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_exchange_begin(&ex, &pool, NULL, 0, 77, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    odd.abi = 7;
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, a.stream, &err), CAI_ERR_ABI);
    CHECK_INT(err.index, 1);
    odd.abi = CAI_ABI;
    odd.ndim = 65;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, a.stream, &err), CAI_ERR_ABI);
    CHECK_INT(err.index, 1);
    logged("");
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_ARGUMENT);
    close_pool();
}

static void check_begin_streams(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_STREAM, 0);
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 77, &err), CAI_ERR_STREAM, of_first(ambiguous));
    CHECK_INT(err.index, 0);
    CHECK_INT(err.entry, CAI_ENTRY_STREAM);
    a.stream = 77;
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 0, &err), CAI_ERR_STREAM, ambiguous);
    CHECK_INT(err.index, -1);
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, UINT64_MAX, &err), CAI_ERR_STREAM, minus_one);
    a.stream = UINT64_MAX;
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, UINT64_MAX, &err), CAI_ERR_STREAM, minus_one);
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 77, &err), CAI_ERR_STREAM, of_first(minus_one));
    make(&a, m1, CAI_SYNC_EVENT, 77);
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 77, &err), CAI_ERR_ARGUMENT,
            "arrays[0]: sync is CAI_SYNC_EVENT, but event is 0");
    a.sync = 4;
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 77, &err), CAI_ERR_ARGUMENT,
            "arrays[0]: sync = 4 is no CAI_SYNC_...");
    a.sync = -1;
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 77, &err), CAI_ERR_ARGUMENT,
            "arrays[0]: sync = -1 is no CAI_SYNC_...");
    make_empty(&a, CAI_SYNC_STREAM, 0); /* nobody asks an empty array */
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, 77, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    logged("");
    close_pool();
}

static void check_no_default_streams(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s;
    open_pool(1, 0);
    s = stream_in(c1);
    cuda.flags = CAI_CUDA_NO_DEFAULT_STREAMS;
    make(&a, m1, CAI_SYNC_STREAM, 1);
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, s, &err), CAI_ERR_STREAM, of_first(no_stream_1));
    a.stream = s;
    REFUSED(cai_exchange_begin(&ex, &pool, list, 1, 2, &err), CAI_ERR_STREAM, no_stream_2);
    REFUSED(cai_stream_order(&pool, 1, s, &err), CAI_ERR_STREAM, no_stream_1);
    REFUSED(cai_stream_order(&pool, s, 1, &err), CAI_ERR_STREAM, no_stream_1);
    REFUSED(cai_stream_export(&a, &pool, 2, NULL, 0, &err), CAI_ERR_STREAM, no_stream_2);
    own(&a);
    REFUSED(cai_keepalive_push(&a, &pool, 1, &err), CAI_ERR_STREAM, no_stream_1);
    cai_array_release(&a);
    exchange_once(list, 1, s);
    close_pool();
}

static void check_options(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    cai_exchange_options o = options_of(4, 0);
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_ARGUMENT,
            "mode = 4 is no CAI_MODE_...");
    o = options_of(-1, 0);
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_ARGUMENT,
            "mode = -1 is no CAI_MODE_...");
    o = options_of(0, 4);
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_ARGUMENT,
            "unknown = 4 is no CAI_UNKNOWN_...");
    o = options_of(0, -1);
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_ARGUMENT,
            "unknown = -1 is no CAI_UNKNOWN_...");
    o = options_of(0, 0);
    o.flags = 24;
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_ARGUMENT,
            "flags = 0x18 has unknown bits");
    o.flags = 0;
    o.reserved = 1;
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_ARGUMENT,
            "reserved = 1 is not 0");
    o = options_of(0, CAI_UNKNOWN_STREAM); /* unknown_stream is 0 */
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_STREAM, of_first(ambiguous));
    o = options_of(CAI_MODE_IGNORE, 0);
    make(&a, m1, CAI_SYNC_STREAM, 0);
    REFUSED(cai_exchange_begin_with(&ex, &pool, list, 1, 77, &o, &err), CAI_ERR_STREAM, of_first(ambiguous));
    close_pool();
}

static void check_end_arguments(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    cai_error before;
    memset(&ex, 0x5a, sizeof ex);
    open_pool(0, 0);
    make(&a, m1, CAI_SYNC_NONE, 0);
    REFUSED(cai_exchange_end(NULL, CAI_OK, &err), CAI_ERR_ARGUMENT, not_open);
    REFUSED(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_ARGUMENT, not_open);
    memset(&err, 0x5a, sizeof err);
    before = err;
    CHECK_INT(cai_exchange_end(&ex, CAI_ERR_SHAPE, &err), CAI_ERR_SHAPE);
    CHECK_BYTES(&err, &before, sizeof err);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, 77, &err), CAI_OK);
    before = err;
    CHECK_INT(cai_exchange_end(&ex, CAI_ERR_SHAPE, &err), CAI_ERR_SHAPE);
    CHECK_BYTES(&err, &before, sizeof err);
    CHECK_INT(pool.open_exchanges, 0);
    REFUSED(cai_exchange_end(&ex, CAI_OK, &err), CAI_ERR_ARGUMENT, not_open);
    CHECK_INT(pool.open_exchanges, 0);
    logged("");
    close_pool();
}

static void check_export_arguments(void)
{
    cai_array a;
    cai_event_pool none;
    memset(&none, 0, sizeof none);
    open_pool(1, 0);
    make(&a, m1, CAI_SYNC_STREAM, 77);
    REFUSED(cai_stream_order(NULL, 7, 8, &err), CAI_ERR_ARGUMENT,
            "cai_stream_order: pool is NULL or not made");
    REFUSED(cai_stream_order(&none, 7, 8, &err), CAI_ERR_ARGUMENT,
            "cai_stream_order: pool is NULL or not made");
    REFUSED(cai_stream_order(&pool, 0, 8, &err), CAI_ERR_STREAM, ambiguous);
    REFUSED(cai_stream_order(&pool, 7, 0, &err), CAI_ERR_STREAM, ambiguous);
    REFUSED(cai_stream_export(NULL, &pool, 7, NULL, 0, &err), CAI_ERR_ARGUMENT, "array is NULL");
    REFUSED(cai_stream_export(&a, NULL, 7, NULL, 0, &err), CAI_ERR_ARGUMENT,
            "cai_stream_export: pool is NULL or not made");
    REFUSED(cai_stream_export(&a, &pool, 7, NULL, 1, &err), CAI_ERR_ARGUMENT,
            "cai_stream_export: pending is NULL, or count is negative");
    REFUSED(cai_stream_export(&a, &pool, 7, &a.stream, -1, &err), CAI_ERR_ARGUMENT,
            "cai_stream_export: pending is NULL, or count is negative");
    REFUSED(cai_stream_export(&a, &pool, UINT64_MAX, NULL, 0, &err), CAI_ERR_STREAM, minus_one);
    CHECK_UINT(a.stream, 77);
    close_pool();
}

static void check_other_arguments(void)
{
    cai_array a;
    open_pool(1, 0);
    make(&a, m1, CAI_SYNC_STREAM, 77);
    REFUSED(cai_stream_remember_thread(NULL, &pool, &err), CAI_ERR_ARGUMENT, "array is NULL");
    REFUSED(cai_stream_remember_thread(&a, NULL, &err), CAI_ERR_ARGUMENT,
            "cai_stream_remember_thread: pool is NULL or not made");
    REFUSED(cai_stream_detach(NULL, &pool, &err), CAI_ERR_ARGUMENT, "array is NULL");
    REFUSED(cai_stream_detach(&a, NULL, &err), CAI_ERR_ARGUMENT,
            "cai_stream_detach: pool is NULL or not made");
    REFUSED(cai_stream_drop_event(NULL, &pool, &err), CAI_ERR_ARGUMENT, "array is NULL");
    REFUSED(cai_stream_drop_event(&a, NULL, &err), CAI_ERR_ARGUMENT,
            "cai_stream_drop_event: pool is NULL or not made");
    REFUSED(cai_keepalive_push(NULL, &pool, 7, &err), CAI_ERR_ARGUMENT, "array is NULL");
    REFUSED(cai_keepalive_push(&a, NULL, 7, &err), CAI_ERR_ARGUMENT,
            "cai_keepalive_push: pool is NULL or not made");
    REFUSED(cai_keepalive_push(&a, &pool, 0, &err), CAI_ERR_STREAM, ambiguous);
    REFUSED(cai_keepalive_poll(NULL, NULL, &err), CAI_ERR_ARGUMENT,
            "cai_keepalive_poll: pool is NULL or not made");
    REFUSED(cai_keepalive_drain(NULL, &err), CAI_ERR_ARGUMENT,
            "cai_keepalive_drain: pool is NULL or not made");
    REFUSED(cai_event_pool_destroy(NULL, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_destroy: pool is NULL or not made");
    REFUSED(cai_event_pool_forget(NULL, 0, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_forget: pool is NULL or not made");
    CHECK_UINT(a.stream, 77);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    REFUSED(cai_stream_order(&pool, 7, 8, &err), CAI_ERR_ARGUMENT,
            "cai_stream_order: pool is NULL or not made");
    REFUSED(cai_event_pool_destroy(&pool, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_destroy: pool is NULL or not made");
    REFUSED(cai_event_pool_forget(&pool, 0, &err), CAI_ERR_ARGUMENT,
            "cai_event_pool_forget: pool is NULL or not made");
    close_table();
}

/* ------------------------------------------------------------------ tables that lack something */

/* The statuses of ten things that a table may be wanted for. */
static void try_everything(char *text)
{
    cai_array a, b, c, u;
    cai_array *one[1] = {&a}, *two[1] = {&b}, *own_thread[1] = {&c}, *unknown[1] = {&u};
    cai_exchange ex;
    cai_exchange_options host = options_of(CAI_MODE_HOST, 0);
    cai_location where;
    int32_t got[10], i;
    make(&a, m1, CAI_SYNC_STREAM, made[0]);
    make(&b, m2, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    make(&c, m1, CAI_SYNC_STREAM, CAI_STREAM_PER_THREAD);
    make(&u, m1, CAI_SYNC_UNKNOWN, 0);
    got[0] = cai_exchange_begin(&ex, &pool, one, 1, made[1], &err);
    if (!got[0]) got[0] = cai_exchange_end(&ex, CAI_OK, &err);
    got[1] = cai_exchange_begin(&ex, &pool, two, 1, made[1], &err); /* another context */
    if (!got[1]) got[1] = cai_exchange_end(&ex, CAI_OK, &err);
    got[2] = cai_exchange_begin(&ex, &pool, own_thread, 1, made[1], &err);
    if (!got[2]) got[2] = cai_exchange_end(&ex, CAI_OK, &err);
    got[3] = cai_exchange_begin_with(&ex, &pool, one, 1, made[1], &host, &err);
    if (!got[3]) got[3] = cai_exchange_end(&ex, CAI_OK, &err);
    got[4] = cai_exchange_begin(&ex, &pool, unknown, 1, made[1], &err);
    if (!got[4]) got[4] = cai_exchange_end(&ex, CAI_OK, &err);
    got[5] = keep(1, made[0]);
    got[6] = cai_keepalive_poll(&pool, NULL, &err);
    got[7] = cai_keepalive_drain(&pool, &err);
    cai_sim_run(sim);
    if (got[7]) CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    got[8] = cai_locate(&a, "a", &cuda, 0, NULL, &err);
    got[9] = cai_locate(&a, "a", &cuda, CAI_LOCATE_BOUNDS, &where, &err);
    if (!got[9]) got[9] = -where.bounds;
    for (text[0] = 0, i = 0; i < 10; i++) sprintf(text + strlen(text), "%d ", got[i]);
}

static void check_lacking(void)
{
    /* 18 is CAI_ERR_CUDA, 19 CAI_ERR_UNAVAILABLE, -1 CAI_BOUNDS_INSIDE */
    static const char *const expected[][2] = {
        {"", "0 0 0 0 0 0 0 0 0 -1 "},
        {"stream_id", "0 0 0 0 0 0 0 0 0 -1 "},
        {"pointer_range", "0 0 0 0 0 0 0 0 0 0 "},
        {"device_attribute", "0 0 0 0 0 0 0 0 0 -1 "},
        {"primary_retain", "0 0 0 0 0 0 0 0 0 -1 "},
        {"primary_release", "0 0 0 0 0 0 0 0 0 -1 "},
        {"capture_retain", "0 0 0 0 0 0 0 0 0 -1 "}};
    char got[80];
    size_t i;
    for (i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cai_test_note(expected[i][0]);
        open_pool(4, 0);
        stream_in(c1);
        stream_in(c1);
        if (expected[i][0][0]) without(expected[i][0]);
        try_everything(got);
        CHECK_STR(got, expected[i][1]);
        close_pool();
    }
    cai_test_note("");
}

/* What stays of an exchange in one context, slot by slot: the order. */
static void check_lacking_order(void)
{
    cai_array a;
    cai_array *list[1] = {&a};
    cai_exchange ex;
    uint64_t s1, s2;
    int32_t i;
    for (i = 0; i < SLOTS; i++) {
        if (is_needed(slots[i].name)) continue;
        cai_test_note(slots[i].name);
        open_pool(0, 0);
        s1 = stream_in(c1);
        s2 = stream_in(c1);
        without(slots[i].name);
        make(&a, m1, CAI_SYNC_STREAM, s1);
        CHECK_INT(cai_sim_launch(sim, s1, "producer", NULL, NULL, NULL, 0), 0);
        CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, s2, &err), CAI_OK);
        CHECK_INT(cai_sim_step(sim, s2), 0);
        CHECK_INT(cai_sim_launch(sim, s2, "consumer", NULL, NULL, NULL, 0), 0);
        CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
        CHECK_INT(cai_sim_step(sim, s1) + cai_sim_step(sim, s1), 2); /* the work and its record */
        CHECK_INT(cai_sim_step(sim, s1), 0);                         /* waits for the consumer */
        CHECK_INT(cai_sim_run(sim), 4);
        close_pool();
    }
    cai_test_note("");
}

int main(void)
{
    check_numbers();
    check_cuda_status();
    check_pool_init();
    check_pool_tables();
    check_shorter_tables();
    check_begin_arguments();
    check_begin_streams();
    check_no_default_streams();
    check_options();
    check_end_arguments();
    check_export_arguments();
    check_other_arguments();
    check_lacking();
    check_lacking_order();
    return cai_test_end();
}
