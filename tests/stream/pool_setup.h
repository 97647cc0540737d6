/* pool_setup.h - a simulated CUDA of two devices, a pool on it, and arrays, for the tests of the exchange.
 * SPDX-License-Identifier: MIT */
#if !defined(POOL_SETUP_H_INCLUDED)
#define POOL_SETUP_H_INCLUDED

#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#define CAI_PRIV_WANT_GUARD /* cai_priv_park */
#if defined(CAI_TEST_HIP) /* the same test through the table of HIP (tests/hip) */
#define CAI_HIP_IMPLEMENTATION
#include "cai_hip.h"
#else
#include "cai_stream.h"
#endif
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#if defined(CAI_TEST_HIP)
#include "hip_stand_in.h"
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

static inline void open_table(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS); /* tests say what runs */
#if defined(CAI_TEST_HIP)
    cuda = hip_table_over(sim);
#else
    cuda = *cai_sim_cuda(sim);
#endif
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

static inline void open_pool(int32_t capacity, uint32_t flags)
{
    open_table();
    CHECK_INT(cai_event_pool_init(&pool, &cuda, capacity ? places : NULL, capacity, flags, &err), CAI_OK);
}

static inline uint64_t stream_in(uint64_t context)
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
static inline void close_table_with(int dead_events)
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

static inline void close_table(void)
{
    close_table_with(0);
}

static inline void close_pool_with(int dead_events)
{
    CHECK_INT(pool.open_exchanges, 0);
    CHECK_INT(pool.waiting, 0);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    close_table_with(dead_events);
}

static inline void close_pool(void)
{
    close_pool_with(0);
}

/* A float32 array of 16 in the memory of c1 or c2; its stream 2 is that of this thread. */
static inline void make(cai_array *array, uint64_t data, int32_t sync, uint64_t stream)
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

static inline void make_empty(cai_array *array, int32_t sync, uint64_t stream)
{
    const int64_t extent = 0;
    CHECK_INT(cai_array_init(array, CAI_FLOAT32, 1, &extent, NULL, NULL, NULL), CAI_OK);
    array->sync = sync;
    array->stream = stream;
}

static int32_t numbers[MOST];   /* owners of the arrays that tests keep: each one its own number */
static int32_t released;        /* how many */
static int32_t release_order[MOST];
static cai_array released_last; /* as its callback got it */

static inline void on_release(cai_array *array)
{
    const int32_t *number = (const int32_t *)array->owner;
    array->release = NULL;
    released_last = *array;
    release_order[released++ % MOST] = number ? *number : -1;
}

static inline void own(cai_array *array)
{
    released = 0;
    cai_array_own(array, on_release, NULL);
}

static inline cai_exchange_options options_of(int32_t mode, int32_t unknown)
{
    cai_exchange_options options;
    memset(&options, 0, sizeof options);
    options.mode = mode;
    options.unknown = unknown;
    return options;
}

/* The calls since the last time. */
static inline void logged(const char *expected)
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
static inline const char *of_first(const char *sentence)
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

static inline void exchange_once(cai_array *const *list, int32_t count, uint64_t stream)
{
    cai_exchange ex;
    const int32_t open = pool.open_exchanges;
    memset(&ex, 0, sizeof ex);
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, count, stream, &err), CAI_OK);
    CHECK_INT(pool.open_exchanges, open + (ex.edge_count > 0)); /* one that owes nothing is not counted */
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    CHECK_INT(pool.open_exchanges, open);
}

/* Array `number`, kept until what is in `stream` now has run. */
static inline cai_status keep(int32_t number, uint64_t stream)
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

#endif /* POOL_SETUP_H_INCLUDED */
