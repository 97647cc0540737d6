/* test_pool.c - the pool, the exchange and the keep-alive list, beyond the cases of tests/cases.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#define CAI_PRIV_WANT_GUARD /* cai_priv_park */
#include "cai_stream.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { MOST = 64, PLACES = 160 };

static cai_sim *sim;
static cai_cuda cuda; /* a copy of the simulation's table, so that tests may take slots out */
static cai_event_pool pool;
static cai_keepalive places[PLACES];
static cai_error err;
static uint64_t c1, c2;       /* primary contexts of devices 0 and 1; c1 is current */
static uint64_t m1, m2;       /* memory in each */
static uint64_t made[MOST];   /* streams, in order: s1, s2, ... */
static int32_t made_count;

/* ------------------------------------------------------------------ setting up */

static void open_table(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS); /* tests say what runs */
    cuda = *cai_sim_cuda(sim);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    made_count = 0;
    memset(&err, 0, sizeof err);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    m1 = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    m2 = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
}

static void open_pool(int32_t capacity, uint32_t flags)
{
    open_table();
    CHECK_INT(cai_event_pool_init(&pool, &cuda, capacity ? places : NULL, capacity, flags, &err), CAI_OK);
}

static uint64_t stream_in(uint64_t context)
{
    const uint64_t before = cai_sim_current(sim);
    CHECK_INT(cai_sim_set_context(sim, context), 0);
    made[made_count] = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, before), 0);
    CHECK(made[made_count] != 0);
    return made[made_count++];
}

/* Everything back where it was: nothing leaked, the context as before. Events of which CUDA said that they are
 * dead were not destroyed. */
static void close_table_with(int dead_events)
{
    char text[400];
    int32_t i;
    CHECK_UINT(cai_sim_current(sim), c1);
    cai_sim_run(sim);
    for (i = 0; i < made_count; i++) CHECK_INT(cai_sim_stream_destroy(sim, made[i]), 0);
    CHECK_INT(cai_sim_free(sim, m1), 0);
    CHECK_INT(cai_sim_free(sim, m2), 0);
    cai_sim_leaks(sim, text, sizeof text);
    if (dead_events) CHECK(strncmp(text, "events: ", 8) == 0 && !strchr(text, ';'));
    else CHECK_STR(text, "");
    cai_sim_destroy(sim);
}

static void close_table(void)
{
    close_table_with(0);
}

static void close_pool_with(int dead_events)
{
    CHECK_INT(pool.open_exchanges, 0);
    CHECK_INT(pool.waiting, 0);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    close_table_with(dead_events);
}

static void close_pool(void)
{
    close_pool_with(0);
}

/* A float32 array of 16 in the memory of c1 or c2; its stream 2 is that of this thread. */
static void make(cai_array *array, uint64_t data, int32_t sync, uint64_t stream)
{
    const int64_t extent = 16;
    cai_dtype dtype;
    CHECK_INT(cai_dtype_of(CAI_FLOAT32, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(array, &dtype, 1, &extent, NULL, data, NULL), CAI_OK);
    array->sync = sync;
    array->stream = stream;
    if (stream == CAI_STREAM_PER_THREAD) /* this thread's; 0, not known, is refused */
        CHECK_INT(cai_sim_cuda(sim)->host_thread(sim, &array->thread), 0);
}

static void make_empty(cai_array *array, int32_t sync, uint64_t stream)
{
    const int64_t extent = 0;
    CHECK_INT(cai_array_init(array, CAI_FLOAT32, 1, &extent, NULL, NULL, NULL), CAI_OK);
    array->sync = sync;
    array->stream = stream;
}

static int32_t released;        /* how many */
static int32_t release_order[MOST];
static cai_array released_last; /* as its callback got it */

static void on_release(cai_array *array)
{
    const int32_t *number = (const int32_t *)array->owner;
    array->release = NULL;
    released_last = *array;
    release_order[released++ % MOST] = number ? *number : -1;
}

static void own(cai_array *array)
{
    released = 0;
    cai_array_own(array, on_release, NULL);
}

static cai_exchange_options options_of(int32_t mode, int32_t unknown)
{
    cai_exchange_options options;
    memset(&options, 0, sizeof options);
    options.mode = mode;
    options.unknown = unknown;
    return options;
}

/* The calls since the last time. */
static void logged(const char *expected)
{
    CHECK_STR(cai_sim_log(sim), expected);
    cai_sim_log_clear(sim);
}

/* Sentences that several functions say. */
static const char ambiguous[] =
    "stream 0 is ambiguous: CAI_STREAM(stream) returns the number of a cudaStream_t";
static const char minus_one[] = "stream -1 is no stream: use CAI_MODE_IGNORE for no order";
static const char not_open[] = "the exchange was not begun, or has ended";
static const char no_stream_1[] = "stream 1 is no stream of this platform: pass a handle";
static const char no_stream_2[] = "stream 2 is no stream of this platform: pass a handle";
static const char not_of_1f[] = "stream 2 is the per-thread stream of host thread 0x7, but this is 0x1f: "
                                "call cai_stream_detach on that thread first";
static const char of_no_thread[] = "the host thread of an array's stream 2 is unknown: call "
                                   "cai_stream_remember_thread where the array is imported";
static const char not_of_9[] = "stream 2 is the per-thread stream of host thread 0x8, but this is 0x9: "
                               "call cai_stream_detach on that thread first";

/* The same, said of the first array. */
static const char *of_first(const char *sentence)
{
    static char text[sizeof err.message];
    sprintf(text, "arrays[0]: %.200s", sentence);
    return text;
}

/* A refusal: its status, its sentence, and not a call of CUDA. */
#define REFUSED(call, status, sentence)                                                                      \
    do {                                                                                                     \
        cai_sim_log_clear(sim);                                                                              \
        memset(&err, 0x5a, sizeof err);                                                                      \
        CHECK_INT(call, status);                                                                             \
        CHECK_INT(err.code, status);                                                                         \
        CHECK_STR(err.message, sentence);                                                                    \
        CHECK_INT(err.native, 0);                                                                            \
        CHECK_STR(cai_sim_log(sim), "");                                                                     \
    } while (0)

static void exchange_once(cai_array *const *list, int32_t count, uint64_t stream)
{
    cai_exchange ex;
    const int32_t open = pool.open_exchanges;
    memset(&ex, 0, sizeof ex);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, count, stream, &err), CAI_OK);
    CHECK_INT(pool.open_exchanges, open + (ex.edge_count > 0)); /* one that owes nothing is not counted */
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(pool.open_exchanges, open);
}

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
    CHECK_STR(err.message, "mode = 3 is not CAI_MODE_EVENT, _HOST or _IGNORE");
    CHECK_INT(cai_event_pool_set_modes(&pool, -1, 0, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_event_pool_set_modes(&pool, 0, 3, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_event_pool_set_modes(&pool, 0, -1, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "export_mode = -1 is not CAI_MODE_EVENT, _HOST or _IGNORE");
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
    logged("stream_capture s2 -> none\nstream_capture s1 -> none\nevent_record e1 s2\nstream_wait_event s1 e1\n");
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
    static const int32_t numbers[2] = {1, 2};
    make(a, m1, from ? CAI_SYNC_STREAM : CAI_SYNC_NONE, from);
    make(b, m1, CAI_SYNC_STREAM, stream);
    own(a);
    a->owner = (void *)(uintptr_t)&numbers[0];
    own(b);
    b->owner = (void *)(uintptr_t)&numbers[1];
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
    make_two(&a, &b, s2, s2); /* on one stream: no call, and an array that is kept is left out */
    cai_sim_log_clear(sim);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 2, s2, &err), CAI_OK);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list + 1, 1, &err), CAI_OK);
    CHECK_INT(released * 10 + release_order[0], 12);
    CHECK(a.release != NULL);
    logged("");
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
    REFUSED(cai_exchange_finish(&ex, CAI_OK, hole, 3, &err), CAI_ERR_ARGUMENT, "arrays[1]: array is NULL");
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

static int32_t numbers[MOST];

/* Array `number`, kept until what is in `stream` now has run. */
static cai_status keep(int32_t number, uint64_t stream)
{
    cai_array a;
    cai_status status;
    numbers[number] = number;
    make(&a, m1, CAI_SYNC_NONE, 0);
    cai_array_own(&a, on_release, &numbers[number]);
    status = cai_keepalive_push(&a, &pool, stream, &err);
    CHECK((a.release == NULL) == (status == CAI_OK || err.native == 700)); /* 700: nothing is left to wait for */
    return status;
}

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
    if (released == 2) CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
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

static void run_corners(void)
{
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
}

/* ------------------------------------------------------------------ order, whatever the schedule */

/* Random programs of producers, consumers and chains of them. A kernel says which array it works on and in
 * which phase; phases of one array must run one after the other in every order that the queued work allows.
 * The simulation's scheduler is driven by chance: either any operation that is ready, or that of the stream
 * that comes first in an order drawn before.
 * A stream goes, with its work pending, at the first moment that the header allows, and another one takes its
 * place. Now and then that is one of a further context, which is destroyed as soon as its stream has gone. A
 * call that names what is gone ends the test. */

enum { LANES = 8, SUBJECTS = 5, PHASES = 600, WORKS = 6000, DEPTH = 2 };

typedef struct lane {
    uint64_t stream, context;
    int32_t home; /* work of an array begins and ends here */
    int32_t uses; /* exchanges, arrays and owners that need the stream */
} lane;

typedef struct work {
    int32_t array, phase;
} work;

typedef struct keeper { /* of an owned array */
    int32_t array, phase;
    lane *from; /* whose stream got the back edge; NULL: none did */
} keeper;

static lane lanes[LANES];
static work works[WORKS];
static keeper keepers[WORKS];
static int32_t work_count, keeper_count, violations;
static int32_t phase_of[SUBJECTS], left_of[SUBJECTS][PHASES];
static uint64_t program_chance, schedule_chance, stream_chance;
static uint64_t further; /* a context, or 0 */
static int32_t gone_streams, gone_contexts;
static int32_t schedule_kind; /* bit 0: by the order of streams; bit 1: nothing runs before the end */

static uint32_t draw(uint64_t *chance, uint32_t below)
{
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*chance >> 33) % below;
}

static int32_t earlier_work_left(int32_t array, int32_t phase)
{
    int32_t q, sum = 0;
    for (q = 0; q < phase; q++) sum += left_of[array][q];
    return sum;
}

static void run_work(void *argument)
{
    const work *w = (const work *)argument;
    if (earlier_work_left(w->array, w->phase)) violations++;
    left_of[w->array][w->phase]--;
}

static void launch(const lane *on, int32_t array)
{
    work *w = &works[work_count++ % WORKS];
    w->array = array;
    w->phase = phase_of[array];
    left_of[array][w->phase]++;
    CHECK(work_count <= WORKS);
    CHECK_INT(cai_sim_set_context(sim, on->context), 0);
    CHECK_INT(cai_sim_launch(sim, on->stream, "work", run_work, w, NULL, 0), 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
}

static void next_phase(int32_t array)
{
    if (phase_of[array] < PHASES - 1) phase_of[array]++;
    else CHECK_INT(array, -1);
}

static void on_undefined(void *context, const cai_sim_undefined *what)
{
    (void)context;
    CHECK_STR(what->text, "a call with handles that live");
    exit(cai_test_end());
}

/* The context of the stream that takes the place of this lane's: as before, or now and then a further one. */
static uint64_t next_context(const lane *from)
{
    const int32_t number = (int32_t)(from - lanes), device = number == 3 || number == 4;
    if (from->home || further || draw(&stream_chance, 8)) return device ? c2 : c1;
    further = cai_sim_context_create(sim, device);
    CHECK(further != 0);
    return further;
}

/* Nobody needs the stream of the lane any more, but that the work of an array goes on in its home. */
static void replace(lane *l)
{
    const uint64_t old = l->stream;
    int32_t i;
    if (old <= CAI_STREAM_PER_THREAD || draw(&stream_chance, l->home ? 2 : 4) == 0) return;
    l->context = next_context(l);
    l->stream = stream_in(l->context);
    if (l->home) CHECK_INT(cai_stream_order(&pool, old, l->stream, &err), CAI_OK);
    for (i = 0; i < made_count - 1 && made[i] != old;) i++;
    CHECK_UINT(made[i], old);
    made[i] = made[--made_count];
    CHECK_INT(cai_sim_stream_destroy(sim, old), 0);
    gone_streams++;
}

static void leave(lane *l)
{
    if (--l->uses == 0) replace(l);
}

/* Destroys the further context if no stream of it is left. */
static void leave_further(void)
{
    int32_t i;
    for (i = 0; i < LANES; i++) {
        if (lanes[i].context == further) return;
    }
    if (!further) return;
    CHECK_INT(cai_event_pool_forget(&pool, further, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, further), 0);
    CHECK_INT(cai_sim_context_synchronize(sim), 0); /* work of a context that is destroyed does not run */
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_sim_context_destroy(sim, further), 0);
    further = 0;
    gone_contexts++;
}

/* The owner uses the memory again: on its stream, or, if that did not get the back edge, right away. */
static void on_release_reuse(cai_array *array)
{
    const keeper *k = (const keeper *)array->owner;
    array->release = NULL;
    released++;
    if (!k->from) {
        if (earlier_work_left(k->array, k->phase + 1)) violations++;
        return;
    }
    next_phase(k->array);
    launch(k->from, k->array);
    leave(k->from);
}

/* Runs up to `most` operations in an order that the schedule chooses. */
static void shuffle(int32_t most)
{
    uint64_t ready[64];
    cai_sim_operation operation;
    while (most-- > 0) {
        int32_t i, best = 0, count = cai_sim_ready(sim, ready, 64);
        uint64_t least = UINT64_MAX;
        if (!count) return;
        if (count > 64) count = 64;
        best = (int32_t)draw(&schedule_chance, (uint32_t)count);
        for (i = 0; i < count && schedule_kind & 1; i++) {
            uint64_t rank;
            CHECK_INT(cai_sim_operation_get(sim, ready[i], &operation), 1);
            rank = operation.stream * 2654435761u ^ (uint64_t)(uint32_t)schedule_kind >> 2;
            rank *= 0x9e3779b97f4a7c15u;
            if (rank < least) best = i;
            if (rank < least) least = rank;
        }
        CHECK_INT(cai_sim_run_operation(sim, ready[best]), 1);
    }
}

static void sometimes(void)
{
    if (!(schedule_kind & 2) && draw(&schedule_chance, 2)) shuffle((int32_t)draw(&schedule_chance, 6));
}

static void open_lanes(void)
{
    int32_t i;
    open_pool(PLACES, 0);
    for (i = 0; i < LANES; i++) lanes[i].context = i == 3 || i == 4 || i == 7 ? c2 : c1;
    for (i = 0; i < 5; i++) lanes[i].stream = stream_in(lanes[i].context);
    lanes[5].stream = lanes[7].stream = CAI_STREAM_LEGACY;
    lanes[6].stream = CAI_STREAM_PER_THREAD;
    for (i = 0; i < LANES; i++) {
        lanes[i].home = i != 1 && i != 3;
        lanes[i].uses = 0;
    }
    further = 0;
    if (draw(&stream_chance, 2)) cuda.context_id = NULL; /* below CUDA 12.0 only a forget can tell */
    cai_sim_on_undefined(sim, on_undefined, NULL);
    memset(phase_of, 0, sizeof phase_of);
    memset(left_of, 0, sizeof left_of);
    work_count = keeper_count = violations = 0;
}

/* Ends the further context if a lane is still there. */
static void close_lanes(void)
{
    int32_t i;
    for (i = 0; i < LANES; i++) {
        while (further && lanes[i].context == further) replace(&lanes[i]);
    }
    leave_further();
}

static void finish_lanes(void)
{
    int32_t i;
    shuffle(INT32_MAX);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    shuffle(INT32_MAX);
    for (i = 0; i < SUBJECTS; i++) CHECK_INT(earlier_work_left(i, PHASES), 0);
    for (i = 0; i < LANES; i++) CHECK_INT(lanes[i].uses, 0);
    close_lanes();
    close_pool();
}

typedef struct member {
    int32_t array;
    lane *from; /* where its work is pending */
    int32_t sync;
    int32_t uses; /* 1: its description names the stream, and this needs it */
    int32_t edge; /* 1: the stream will wait for the consumer */
    cai_array description;
} member;

/* Hands an array over in one of the ways that there are; the rest is up to its stream. */
static void hand_over(member *m)
{
    const int handle = m->from->stream > CAI_STREAM_PER_THREAD;
    const int32_t kinds[6] = {CAI_SYNC_STREAM, CAI_SYNC_STREAM, CAI_SYNC_STREAM,
                              CAI_SYNC_EVENT, CAI_SYNC_UNKNOWN, CAI_SYNC_NONE};
    m->sync = kinds[draw(&program_chance, 6)];
    if (!handle && m->from->context != c1) m->sync = CAI_SYNC_STREAM;
    if (m->sync == CAI_SYNC_UNKNOWN && m->from->context == further) m->sync = CAI_SYNC_STREAM; /* is not seen */
    make(&m->description, m->from->context == c1 ? m1 : m2, m->sync, m->from->stream);
    if (m->sync == CAI_SYNC_NONE) {
        CHECK_INT(cai_sim_set_context(sim, m->from->context), 0);
        CHECK_INT(cai_sim_stream_synchronize(sim, m->from->stream), 0);
        CHECK_INT(cai_sim_set_context(sim, c1), 0);
    }
    if (draw(&program_chance, 4) == 0) m->description.flags |= CAI_NO_BACK_EDGE;
    if (m->sync == CAI_SYNC_EVENT) {
        m->description.sync = CAI_SYNC_STREAM;
        CHECK_INT(cai_stream_detach(&m->description, &pool, &err), CAI_OK);
    }
    m->uses = m->sync == CAI_SYNC_STREAM || m->sync == CAI_SYNC_EVENT;
    m->from->uses += m->uses;
    if (!m->from->uses) replace(m->from);
}

/* Some arrays are owned, by owners that free in order or not. */
static int returned(const member *m)
{
    const int on_stream = m->sync == CAI_SYNC_STREAM || (m->sync == CAI_SYNC_EVENT && m->description.stream);
    return on_stream && !(m->description.flags & CAI_NO_BACK_EDGE);
}

/* One that frees in order needs the stream until then. */
static void give_back(member *m)
{
    keeper *k = &keepers[keeper_count++ % WORKS];
    const int ordered = draw(&program_chance, 2) == 0;
    k->array = m->array;
    k->phase = phase_of[m->array];
    m->edge = returned(m);
    k->from = ordered && m->edge ? m->from : NULL;
    if (draw(&program_chance, 3)) return;
    cai_array_own(&m->description, on_release_reuse, k);
    if (k->from) m->uses = 0;
    if (ordered) m->description.flags |= CAI_ORDERED_FREE;
}

static void take_back(member *m, const lane *consumer)
{
    CHECK(m->description.release == NULL);
    CHECK_INT(cai_stream_drop_event(&m->description, &pool, &err), CAI_OK);
    if (!m->edge) CHECK_INT(cai_stream_order(&pool, consumer->stream, m->from->stream, &err), CAI_OK);
}

static void work_on(member *members, int32_t count, const lane *consumer)
{
    int32_t i;
    for (i = 0; i < count; i++) {
        next_phase(members[i].array);
        launch(consumer ? consumer : members[i].from, members[i].array);
    }
}

/* After the end: the consumer's stream goes first, unless an array without a back edge has to wait for it. */
static void leave_all(member *members, int32_t count, lane *consumer)
{
    int32_t i, missing = 0;
    for (i = 0; i < count; i++) missing += !members[i].edge;
    if (!missing) leave(consumer);
    for (i = 0; i < count; i++) {
        if (members[i].uses) leave(members[i].from);
    }
    for (i = 0; i < count; i++) take_back(&members[i], consumer);
    if (missing) leave(consumer);
}

/* What is pending on members[i].from is consumed on another stream; that one may hand it on. */
static void consume(member *members, int32_t count, int32_t depth)
{
    cai_array *list[SUBJECTS];
    member inner[SUBJECTS];
    cai_exchange ex;
    cai_exchange_options o = options_of(draw(&program_chance, 6) ? CAI_MODE_EVENT : CAI_MODE_HOST, 0);
    lane *consumer = &lanes[draw(&program_chance, LANES - 1)]; /* not the legacy stream of c2 */
    int32_t i;
    consumer->uses++;
    for (i = 0; i < count; i++) {
        hand_over(&members[i]);
        list[i] = &members[i].description;
    }
    sometimes();
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, count, consumer->stream, &o, &err), CAI_OK);
    work_on(members, count, consumer);
    sometimes();
    if (depth < DEPTH && draw(&program_chance, 3) == 0) {
        for (i = 0; i < count; i++) {
            inner[i].array = members[i].array;
            inner[i].from = consumer;
        }
        consume(inner, count, depth + 1);
        work_on(members, count, consumer);
    }
    for (i = 0; i < count; i++) give_back(&members[i]);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, count, &err), CAI_OK);
    leave_all(members, count, consumer);
    leave_further();
    sometimes();
    work_on(members, count, NULL);
}

/* Work on one array in several streams, exported on its own; they start after what was there before. */
static void spread(int32_t array, lane *home)
{
    uint64_t pending[3];
    lane *others[3];
    cai_array exported;
    int32_t i, count = (int32_t)draw(&program_chance, 4);
    next_phase(array);
    launch(home, array);
    if (home->stream <= CAI_STREAM_PER_THREAD) return; /* relative to a context: a plain producer */
    for (i = 0; i < count; i++) {
        lane *on = others[i] = &lanes[draw(&program_chance, 5)];
        CHECK_INT(cai_stream_order(&pool, home->stream, on->stream, &err), CAI_OK);
        pending[i] = on->stream;
        if (i == 0) next_phase(array);
        launch(on, array);
    }
    make(&exported, home->context == c1 ? m1 : m2, CAI_SYNC_UNKNOWN, 0);
    CHECK_INT(cai_stream_export(&exported, &pool, home->stream, pending, count, &err), CAI_OK);
    for (i = 0; i < count; i++) {
        if (!others[i]->uses) replace(others[i]);
    }
}

static void random_program(int32_t steps)
{
    member members[SUBJECTS];
    int32_t step, i;
    for (step = 0; step < steps; step++) {
        const int32_t first = (int32_t)draw(&program_chance, SUBJECTS);
        const int32_t count = 1 + (int32_t)draw(&program_chance, (uint32_t)(SUBJECTS - first));
        for (i = 0; i < count; i++) {
            members[i].array = first + i;
            members[i].from = &lanes[(first + i) % 2 ? 7 - first - i : first + i]; /* a home that stays */
            spread(members[i].array, members[i].from);
        }
        consume(members, count, 0);
        if (draw(&program_chance, 4) == 0) CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    }
}

/* One of each thing that orders, every one of them needed. */
static void straight_program(void)
{
    member m[2];
    cai_array a, mask;
    cai_array *list[1] = {&a};
    const uint64_t pending[2] = {lanes[0].stream, lanes[1].stream};
    cai_exchange ex;
    m[0].array = 0;
    m[1].array = 1;
    m[0].from = &lanes[2];
    m[1].from = &lanes[3];
    launch(&lanes[0], 0);
    launch(&lanes[1], 0);
    launch(&lanes[3], 1);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    make(&mask, m2, CAI_SYNC_STREAM, lanes[3].stream);
    CHECK_INT(cai_stream_export(&a, &pool, lanes[2].stream, pending, 2, &err), CAI_OK);
    a.mask = &mask;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, lanes[4].stream, &err), CAI_OK);
    work_on(m, 2, &lanes[4]);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    work_on(m, 2, NULL);
    CHECK_INT(cai_stream_order(&pool, lanes[2].stream, lanes[0].stream, &err), CAI_OK);
    next_phase(0);
    launch(&lanes[0], 0);
}

static void schedule(int32_t number)
{
    schedule_kind = number;
    schedule_chance = (uint64_t)(uint32_t)number * 977 + 5;
}

static void check_order(int32_t programs)
{
    int32_t program, number;
    int64_t sum = 0;
    gone_streams = gone_contexts = 0;
    for (program = 0; program < programs; program++) {
        for (number = 0; number < 6; number++) {
            char note[60];
            sprintf(note, "program %d, schedule %d", (int)program, (int)number);
            cai_test_note(note);
            program_chance = stream_chance = (uint64_t)(uint32_t)program + 1;
            schedule(number);
            open_lanes();
            random_program(8);
            finish_lanes();
            CHECK_INT(violations, 0);
            sum += work_count;
        }
    }
    cai_test_note("");
    printf("order: %d programs in 6 schedules each, %ld kernels; %d streams and %d contexts went meanwhile\n",
           (int)programs, (long)sum, (int)gone_streams, (int)gone_contexts);
}

/* How many of the calls of one operation, when they are left out one by one, some schedule shows. */
static void check_omissions(const char *operation, void (*program)(void), int32_t every, int32_t least)
{
    int32_t n, number, shown = 0, tried = 0, struck = 1;
    for (n = 1; struck; n += every) {
        int32_t found = 0;
        for (number = 0; number < 80 && struck && !found; number++) {
            program_chance = stream_chance = 12345;
            schedule(number);
            open_lanes();
            CHECK_INT(cai_sim_omit_op(sim, operation, n), 1);
            program();
            struck = !cai_sim_faults(sim);
            cai_sim_faults_clear(sim);
            finish_lanes();
            found = violations != 0;
        }
        tried += struck;
        shown += found;
    }
    printf("left out: %s: %d of %d seen\n", operation, (int)shown, (int)tried);
    CHECK(tried > 0);
    CHECK(shown * 100 >= tried * least);
}

static void short_random_program(void) { random_program(3); }

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

static void run_arguments(void)
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
}

static void run_exchanges(void)
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
    check_unknown_elsewhere();
    check_join_legacy();
    check_threads();
    check_detached_elsewhere();
    check_rules();
}

static void run_keepalive(void)
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
}

/* test_pool [programs [alone]]: how many random programs are run; alone: and nothing before them */
int main(int argc, char **argv)
{
    if (argc < 3) {
        run_arguments();
        run_exchanges();
        run_keepalive();
        run_corners();
    }
    check_order(argc > 1 ? (int32_t)atoi(argv[1]) : 200);
    check_omissions("stream_wait_event", straight_program, 1, 100);
    check_omissions("event_record", straight_program, 1, 100);
    check_omissions("stream_wait_event", short_random_program, 3, 30);
    return cai_test_end();
}
