/* test_dlpack_order.c - exports of ext/cai_dlpack.h that are in order at both ends, on the simulated runtime.
 * SPDX-License-Identifier: MIT
 *
 * The consumer here is any: it launches on the stream that it named, and calls the deleter while its kernel
 * is queued. The producer frees in the order of its own stream. */
#include "ordered.h"
#include "cai_test.h"

enum { BYTES = 64, PLACES = 4 };

static cai_error err;

#define GOOD(call) good(__LINE__, #call, (call))

static void good(int line, const char *what, cai_status status)
{
    if (!cai_test_int(__FILE__, line, what, status, CAI_OK)) printf("    %s\n", err.message);
}

/* ------------------------------------------------------------------- a world */

typedef struct world {
    cai_sim *sim;
    const cai_cuda *cuda;
    cai_event_pool pool;
    cai_keepalive places[PLACES];
    uint64_t s1, s2, memory; /* the producer's stream, the consumer's */
    uint64_t other, elsewhere; /* a second context of the device, and a stream of it; or 0 */
    cai_array array;
    cai_dlpack_ordered storage;
    struct DLManagedTensorVersioned *tensor;
    int32_t released, done;
} world;

static void count_release(cai_array *array)
{
    world *w = (world *)array->owner;
    array->release = NULL;
    w->released++;
}

/* In the order of the array's stream; at once, if it has none. */
static void free_memory(cai_array *array)
{
    world *w = (world *)array->owner;
    const int on_stream = array->sync == CAI_SYNC_STREAM;
    const uint64_t before = cai_sim_current(w->sim);
    array->release = NULL;
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
    if (on_stream) (void)w->cuda->memory_free_async(w->cuda->self, w->memory, array->stream);
    else (void)cai_sim_free(w->sim, w->memory);
    (void)cai_sim_set_context(w->sim, before);
    w->released++;
}

/* At once, whatever stream the array names. */
static void free_at_once(cai_array *array)
{
    array->sync = CAI_SYNC_NONE;
    free_memory(array);
}

static void count_done(cai_dlpack_storage *storage)
{
    ((world *)storage->user)->done++;
}

/* An array on s1, owned, with pending work. */
static int32_t pool_mode; /* CAI_MODE_... */

static void open_world(world *w, cai_sim *sim, void (*release)(cai_array *array))
{
    const int64_t shape[1] = {BYTES / 4};
    cai_status status;
    memset(w, 0, sizeof *w);
    w->sim = sim;
    w->cuda = cai_sim_cuda(sim);
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    w->s1 = cai_sim_stream_create(sim, 1);
    w->s2 = cai_sim_stream_create(sim, 1);
    w->memory = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, BYTES);
    status = cai_event_pool_init(&w->pool, w->cuda, w->places, PLACES, 0, &err);
    if (!status) status = cai_event_pool_set_modes(&w->pool, pool_mode, 0, &err);
    if (!status)
        status = cai_array_init(&w->array, CAI_FLOAT32, 1, shape, NULL, cai_sim_bytes(sim, w->memory), &err);
    if (status) cai_check_fail(sim, err.message);
    w->array.memory = CAI_MEMORY_DEVICE;
    w->array.device = 0;
    w->array.sync = CAI_SYNC_STREAM;
    w->array.stream = w->s1;
    cai_array_own(&w->array, release, w);
    w->array.flags |= CAI_ORDERED_FREE;
    w->storage.storage.done = count_done;
    w->storage.storage.user = w;
}

static void touch(world *w, uint64_t stream, const char *name, int writes)
{
    const uint64_t data = w->storage.storage.array.data ? w->storage.storage.array.data : w->array.data;
    const cai_sim_access access = writes ? cai_sim_writes(data, BYTES) : cai_sim_reads(data, BYTES);
    (void)cai_sim_touch(w->sim, stream, name, &access, 1);
}

static cai_status export_to(world *w, uint64_t stream, uint32_t flags)
{
    return cai_dlpack_export_ordered_versioned(&w->array, &w->pool, stream, flags, &w->storage, &w->tensor,
                                               &err);
}

static void drop(world *w)
{
    ((cai_dl_managed_versioned *)w->tensor)->deleter(w->tensor);
}

/* Nothing is left over: what is parked goes by the drain. */
static void close_world(world *w)
{
    if (w->s2) (void)cai_sim_stream_destroy(w->sim, w->s2);
    if (cai_keepalive_drain(&w->pool, &err) || cai_event_pool_destroy(&w->pool, &err))
        cai_check_fail(w->sim, err.message);
    if (w->s1) (void)cai_sim_stream_destroy(w->sim, w->s1);
    if (w->elsewhere) (void)cai_sim_stream_synchronize(w->sim, w->elsewhere); /* its context is destroyed */
    if (w->elsewhere) (void)cai_sim_stream_destroy(w->sim, w->elsewhere);
    if (!w->other) return;
    (void)cai_sim_set_context(w->sim, w->other); /* work in it may be queued, also in a destroyed stream */
    (void)cai_sim_context_synchronize(w->sim);
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
    (void)cai_sim_context_destroy(w->sim, w->other);
}

/* --------------------------------------------------------------------- races */

/* Who says what. */
typedef struct way {
    const char *name;
    char producer;  /* s: work pending on s1; n: nothing, and no stream; L: on the legacy stream; u: unknown;
                       d: on s1, and the array came by DLPack itself; f: on s1, and the owner frees at once */
    char consumer;  /* 2: s2; b: a blocking stream; L, P: the legacy stream, the per-thread one; 1: s1;
                       c: a stream of another context; -: passes -1 and waits itself */
    uint32_t flags; /* of the export */
    int32_t gone;   /* 1: the consumer destroys its stream before the deleter runs */
    int32_t plain;  /* 1: the plain export, ordered at its beginning */
    int32_t device; /* that is current in the producer's calls */
} way;

static uint64_t stream_of(const world *w, char letter)
{
    if (letter == 'L') return CAI_STREAM_LEGACY;
    if (letter == 'P') return CAI_STREAM_PER_THREAD;
    if (letter == 'c') return w->elsewhere;
    return letter == '1' ? w->s1 : w->s2;
}

static cai_status export_plainly(world *w, uint64_t stream)
{
    CAI_TRY(cai_stream_order(&w->pool, w->s1, stream, &err));
    return cai_dlpack_export_versioned(&w->array, CAI_DLPACK_ORDERED, &w->storage.storage, &w->tensor, &err);
}

static void open_other(world *w)
{
    const uint64_t before = cai_sim_current(w->sim);
    w->other = cai_sim_context_create(w->sim, 0);
    (void)cai_sim_set_context(w->sim, w->other);
    w->elsewhere = cai_sim_stream_create(w->sim, 1);
    (void)cai_sim_set_context(w->sim, before);
}

/* From now on the driver tells of a destroyed context, which CUDA does not promise. */
static void destroy_other(world *w)
{
    cai_sim_set_options(w->sim, cai_sim_options(w->sim) & ~(uint32_t)CAI_SIM_LIVING_CONTEXTS);
    CHECK_INT(cai_sim_context_destroy(w->sim, w->other), 0);
}

static void exchange(cai_sim *sim, void *argument)
{
    const way *how = (const way *)argument;
    const uint64_t primary = cai_sim_primary(sim, 0);
    uint64_t stream;
    world w;
    open_world(&w, sim, free_memory);
    if (how->consumer == 'c') open_other(&w);
    if (how->consumer == 'b') {
        (void)cai_sim_stream_destroy(sim, w.s2);
        w.s2 = cai_sim_stream_create(sim, 0);
    }
    stream = how->consumer == '-' ? 0 : stream_of(&w, how->consumer);
    if (how->producer == 'L') w.array.stream = CAI_STREAM_LEGACY;
    touch(&w, w.array.stream, "fill", 1);
    if (how->producer == 'n' || !stream) (void)cai_sim_stream_synchronize(sim, w.s1);
    if (how->producer == 'n') w.array.sync = CAI_SYNC_NONE;
    if (how->producer == 'u') w.array.sync = CAI_SYNC_UNKNOWN;
    if (how->producer == 'd') w.array.flags |= CAI_NO_BACK_EDGE;
    if (how->producer == 'f') w.array.flags &= ~(uint32_t)CAI_ORDERED_FREE;
    if (how->producer == 'f') w.array.release = free_at_once;
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, how->device));
    if (how->plain ? export_plainly(&w, stream) : export_to(&w, stream, how->flags))
        cai_check_fail(sim, err.message);
    (void)cai_sim_set_context(sim, w.other ? w.other : primary);
    touch(&w, stream ? stream : w.s2, "use", 1);
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, how->device));
    if (how->gone) {
        (void)cai_sim_stream_destroy(sim, how->consumer == 'c' ? w.elsewhere : w.s2);
        *(how->consumer == 'c' ? &w.elsewhere : &w.s2) = 0;
    }
    drop(&w);
    if (cai_sim_current(sim) != cai_sim_primary(sim, how->device)) cai_check_fail(sim, "another context");
    (void)cai_sim_set_context(sim, primary);
    close_world(&w);
    if (w.done != 1 || w.released != 1) cai_check_fail(sim, "not released once");
}

static void check_ways(void)
{
    enum { LIVE = CAI_DLPACK_STREAMS_LIVE, FREE = CAI_DLPACK_NO_CAPTURES };
    static const way ways[] = {
        {"a stream", 's', '2', 0, 0, 0, 0},
        {"a stream that is destroyed", 's', '2', 0, 1, 0, 0},
        {"a stream that lives", 's', '2', LIVE, 0, 0, 0},
        {"a stream that is destroyed, no captures", 's', '2', FREE, 1, 0, 0},
        {"a blocking stream", 's', 'b', 0, 0, 0, 0},
        {"a blocking stream that is destroyed", 's', 'b', 0, 1, 0, 0},
        {"one stream", 's', '1', 0, 0, 0, 0},
        {"an owner that frees at once", 'f', '2', 0, 0, 0, 0},
        {"an owner that frees at once, stream lives", 'f', '2', LIVE, 0, 0, 0},
        {"an owner that frees at once, stream destroyed", 'f', '2', 0, 1, 0, 0},
        {"an owner that frees at once, no captures", 'f', '2', FREE, 1, 0, 0},
        {"an owner that frees at once, one stream", 'f', '1', 0, 0, 0, 0},
        {"an owner that frees at once, legacy consumer", 'f', 'L', 0, 0, 0, 0},
        {"legacy consumer", 's', 'L', 0, 0, 0, 0},
        {"per-thread consumer", 's', 'P', 0, 0, 0, 0},
        {"legacy producer", 'L', '2', 0, 0, 0, 0},
        {"legacy on both sides", 'L', 'L', 0, 0, 0, 0},
        {"nothing pending", 'n', '2', 0, 0, 0, 0},
        {"nothing pending, stream destroyed", 'n', '2', 0, 1, 0, 0},
        {"nothing pending, stream lives", 'n', '2', LIVE, 0, 0, 0},
        {"nothing pending, legacy consumer", 'n', 'L', 0, 0, 0, 0},
        {"unknown", 'u', '2', 0, 0, 0, 0},
        {"-1", 's', '-', 0, 0, 0, 0},
        {"-1, nothing pending", 'n', '-', 0, 0, 0, 0},
        {"passed on", 'd', '2', 0, 0, 0, 0},
        {"passed on, stream lives", 'd', '2', LIVE, 0, 0, 0},
        {"another context", 's', 'c', 0, 0, 0, 0},
        {"another context, stream destroyed", 'n', 'c', 0, 1, 0, 0},
        {"another context, no captures", 's', 'c', FREE, 1, 0, 0},
        {"another device is current", 's', '2', 0, 0, 0, 1},
        {"another device is current, legacy consumer", 's', 'L', 0, 0, 0, 1},
        {"another device is current, legacy on both sides", 'L', 'L', 0, 0, 0, 1},
        {"another device is current, per-thread consumer", 'n', 'P', 0, 0, 0, 1},
        {"another device is current, stream destroyed", 's', '2', 0, 1, 0, 1},
        {"another device is current, -1", 's', '-', 0, 0, 0, 1},
        {"plain", 's', '2', 0, 0, 1, 0}};
    cai_check_options options;
    size_t i;
    memset(&options, 0, sizeof options);
    options.devices = 2;
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        way how = ways[i];
        cai_check_result result;
        const int32_t found = cai_check(exchange, &how, &options, &result);
        cai_test_note(how.name);
        CHECK_INT(found, how.plain);
        if (how.plain) CHECK(strstr(result.text, "race on") == result.text);
        else if (found) printf("    %s\n", result.text);
        pool_mode = CAI_MODE_IGNORE; /* which is for exchanges of the program, not for the lifetime of memory */
        if (!how.plain) CHECK_INT(cai_check(exchange, &how, &options, &result), 0);
        pool_mode = CAI_MODE_EVENT;
    }
    cai_test_note("");
}

/* --------------------------------------------------------- the deleter's thread */

static world *theirs; /* of the thread that exported */

static void export_on_a_thread(cai_sim *sim, void *argument)
{
    theirs->sim = sim;
    touch(theirs, theirs->s1, "fill", 1);
    if (theirs->array.sync == CAI_SYNC_NONE) (void)cai_sim_stream_synchronize(sim, theirs->s1);
    if (export_to(theirs, CAI_STREAM_PER_THREAD, 0)) cai_check_fail(sim, err.message);
    touch(theirs, CAI_STREAM_PER_THREAD, "use", 1);
    (void)argument;
    cai_check_pass(sim, 0);
}

static void drop_on_a_thread(cai_sim *sim, void *argument)
{
    (void)argument;
    cai_check_take(sim, 0);
    drop(theirs);
}

/* Stream 2 of the consumer, and the deleter runs on another thread. */
static void two_threads(cai_sim *sim, void *argument)
{
    static const cai_check_program functions[2] = {export_on_a_thread, drop_on_a_thread};
    void *arguments[2] = {NULL, NULL};
    world w;
    open_world(&w, sim, free_memory);
    w.array.sync = argument ? CAI_SYNC_NONE : CAI_SYNC_STREAM;
    theirs = &w;
    cai_check_threads(sim, functions, arguments, 2);
    close_world(&w);
    if (w.pool.open_exchanges || w.released != 1) cai_check_fail(sim, "left over");
}

static void check_threads(void)
{
    cai_check_result result;
    int with_argument = 1;
    CHECK_INT(cai_check(two_threads, NULL, NULL, &result), 0);
    CHECK_INT(cai_check(two_threads, &with_argument, NULL, &result), 0);
}

/* ------------------------------------------------------------------ CUDA calls */

static world w0;

/* A new world whose work is queued. */
static world *open(void (*release)(cai_array *array))
{
    cai_sim *sim = cai_sim_create(2);
    if (!sim) exit(2);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS); /* a poll runs nothing */
    open_world(&w0, sim, release);
    cai_sim_log_clear(sim);
    return &w0;
}

static void end(world *w)
{
    if (w->memory) (void)cai_sim_free(w->sim, w->memory);
    close_world(w);
    CHECK_INT(cai_sim_leaks(w->sim, NULL, 0), 0);
    cai_sim_destroy(w->sim);
}

static int32_t calls(const world *w, const char *operation)
{
    return cai_sim_calls_of(w->sim, operation);
}

static void check_calls(void)
{
    world *w = open(count_release);
    GOOD(export_to(w, w->s1, 0)); /* the consumer is on the array's own stream */
    CHECK_INT(calls(w, "stream_capture"), 1);
    drop(w);
    CHECK_INT(calls(w, "capture_mode"), 2); /* of the release */
    CHECK_INT(cai_sim_calls(w->sim), 3);
    CHECK_INT(w->released, 1);
    end(w);

    w = open(count_release);
    GOOD(export_to(w, w->s2, CAI_DLPACK_STREAMS_LIVE));
    CHECK_INT(calls(w, "event_record"), 1);
    CHECK_INT(calls(w, "stream_wait_event"), 1);
    CHECK_INT(w->pool.open_exchanges, 0);
    drop(w);
    CHECK_INT(calls(w, "event_record"), 2);
    CHECK_INT(calls(w, "stream_wait_event"), 2);
    CHECK_INT(w->released, 1);
    CHECK_INT(w->done, 1);
    end(w);

    w = open(count_release);
    w->array.sync = CAI_SYNC_NONE;
    GOOD(export_to(w, w->s2, CAI_DLPACK_STREAMS_LIVE));
    touch(w, w->s2, "use", 1);
    drop(w);
    CHECK_INT(w->released * 10 + w->done, 0); /* kept until s2 has passed */
    CHECK_INT(w->pool.waiting, 1);
    CHECK_INT(calls(w, "event_record"), 1);
    GOOD(cai_keepalive_poll(&w->pool, NULL, &err));
    CHECK_INT(w->released, 0);
    CHECK_INT(cai_sim_run(w->sim), 2);
    GOOD(cai_keepalive_poll(&w->pool, NULL, &err));
    CHECK_INT(w->released * 10 + w->done, 11);
    CHECK_INT(w->pool.waiting, 0);
    end(w);
}

/* The stream of an array that came by DLPack itself is not the owner's: it gets no wait. */
static void check_imported(void)
{
    world *w = open(count_release);
    w->array.flags |= CAI_NO_BACK_EDGE;
    GOOD(export_to(w, w->s2, CAI_DLPACK_STREAMS_LIVE));
    touch(w, w->s2, "use", 1);
    cai_sim_log_clear(w->sim);
    drop(w);
    CHECK_INT(calls(w, "stream_wait_event"), 0);
    CHECK_INT(w->released, 0);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, 1);
    end(w);
}

/* An export of an array that nobody owns, on which nothing is pending. */
static void export_into(world *w, uint64_t stream, cai_dlpack_ordered *storage)
{
    const int64_t shape[1] = {BYTES / 4};
    struct DLManagedTensor *tensor;
    cai_array array;
    memset(storage, 0, sizeof *storage);
    GOOD(cai_array_init(&array, CAI_FLOAT32, 1, shape, NULL, cai_sim_bytes(w->sim, w->memory), &err));
    array.memory = CAI_MEMORY_DEVICE;
    array.device = 0;
    array.sync = CAI_SYNC_STREAM;
    array.stream = stream;
    array.flags |= CAI_ORDERED_FREE;
    GOOD(cai_dlpack_export_ordered(&array, &w->pool, stream, 0, storage, &tensor, &err));
    ((cai_dl_managed *)tensor)->deleter(tensor);
}

static void export_of_nobody(world *w, uint64_t stream)
{
    static cai_dlpack_ordered storage; /* it may stay in the list */
    export_into(w, stream, &storage);
}

static void export_of_nobody_again(world *w, uint64_t stream)
{
    cai_dlpack_ordered storage;
    export_into(w, stream, &storage);
}

/* The same, with an owner that does not free in order. */
static void export_owned_by_nobody(world *w, uint64_t stream, cai_status expected)
{
    const int64_t shape[1] = {BYTES / 4};
    cai_dlpack_ordered storage;
    struct DLManagedTensor *tensor = NULL;
    cai_array array;
    memset(&storage, 0, sizeof storage);
    GOOD(cai_array_init(&array, CAI_FLOAT32, 1, shape, NULL, cai_sim_bytes(w->sim, w->memory), &err));
    array.memory = CAI_MEMORY_DEVICE;
    array.device = 0;
    array.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_dlpack_export_ordered(&array, &w->pool, stream, 0, &storage, &tensor, &err), expected);
    if (!tensor) return;
    ((cai_dl_managed *)tensor)->deleter(tensor);
    GOOD(cai_keepalive_drain(&w->pool, &err));
}

/* A deleter names no stream of the consumer, and never waits. */
static void check_parked(void)
{
    static const char *const never[] = {"context_synchronize", "event_synchronize", "stream_synchronize"};
    world *w = open(count_release);
    size_t i;
    GOOD(export_to(w, w->s2, 0));
    touch(w, w->s2, "use", 1);
    CHECK_INT(cai_sim_stream_destroy(w->sim, w->s2), 0);
    drop(w);
    CHECK_INT(w->released * 10 + w->done, 0);
    for (i = 0; i < 3; i++) CHECK_INT(calls(w, never[i]), 0);
    cai_sim_run(w->sim);
    GOOD(cai_keepalive_poll(&w->pool, NULL, &err)); /* nobody can tell that it has passed */
    CHECK_INT(w->released, 0);
    CHECK_INT(w->pool.waiting, 1);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(calls(w, "context_synchronize"), 1);
    CHECK_INT(w->released * 10 + w->done, 11);
    w->s2 = 0;
    end(w);
}

/* The consumer's context ends before anybody waits. */
static void check_parked_context(void)
{
    world *w = open(count_release);
    open_other(w);
    w->array.sync = CAI_SYNC_NONE;
    GOOD(export_to(w, w->elsewhere, 0));
    drop(w);
    CHECK_INT(w->pool.waiting, 1);
    (void)cai_sim_stream_destroy(w->sim, w->elsewhere);
    destroy_other(w);
    w->elsewhere = w->other = 0;
    GOOD(cai_keepalive_poll(&w->pool, NULL, &err));
    CHECK_INT(w->released * 10 + w->done, 11);
    end(w);
}

/* A later export names the stream again. */
static void check_settled_later(void)
{
    world *w = open(count_release);
    const uint64_t s3 = cai_sim_stream_create(w->sim, 1);
    GOOD(export_to(w, w->s2, 0));
    touch(w, w->s2, "use", 1);
    drop(w);
    export_of_nobody(w, s3);
    CHECK_INT(w->released, 0);
    export_of_nobody(w, w->s2);
    CHECK_INT(w->released * 10 + w->done, 11); /* s1 waits for s2 */
    CHECK_INT(w->pool.waiting, 0);
    CHECK_INT(cai_sim_stream_destroy(w->sim, s3), 0);
    end(w);

    w = open(count_release); /* which captures now: its id is not queried, as that would end the capture */
    open_other(w);
    w->array.sync = CAI_SYNC_NONE;
    GOOD(export_to(w, w->elsewhere, 0));
    drop(w);
    CHECK_INT(cai_sim_capture_begin(w->sim, w->elsewhere, 2), 0);
    export_of_nobody(w, w->elsewhere); /* a graph may use it, until the context ends */
    CHECK_INT(cai_sim_capture_end(w->sim, w->elsewhere, NULL), 0);
    CHECK_INT(w->pool.waiting, 2);
    export_of_nobody_again(w, w->elsewhere);
    CHECK_INT(w->pool.waiting, 2); /* behind an event, as it has no stream */
    cai_sim_run(w->sim);
    GOOD(cai_keepalive_poll(&w->pool, NULL, &err));
    CHECK_INT(w->released, 1);
    (void)cai_sim_stream_destroy(w->sim, w->elsewhere);
    destroy_other(w);
    w->elsewhere = w->other = 0;
    end(w);

    w = open(count_release); /* no event can be recorded now: it stays */
    GOOD(export_to(w, w->s2, 0));
    drop(w);
    CHECK(cai_sim_fail_op(w->sim, "event_record", 1, 999));
    export_of_nobody(w, w->s2);
    CHECK_INT(w->released, 0);
    CHECK_INT(w->pool.waiting, 1);
    export_of_nobody(w, w->s2);
    CHECK_INT(w->released, 1);
    end(w);
}

/* What is parked is counted. Above a limit no more is exported that could be parked, and nothing is lost. */
static void check_limit(void)
{
    static const struct {
        int64_t arrays, bytes;
        int refused;
    } rows[] = {{0, 0, 0}, {1, 0, 0}, {0, BYTES, 0}, {0, BYTES - 1, 1}, {2, BYTES - 1, 1}, {1, BYTES, 0}};
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = open(count_release);
        cai_dlpack_ordered first;
        GOOD(cai_dlpack_limit(&w->pool, rows[i].arrays, rows[i].bytes, &err));
        GOOD(export_to(w, w->s2, 0));
        touch(w, w->s2, "use", 1);
        CHECK_INT(w->pool.dlpack.arrays, 0); /* it is with the consumer */
        drop(w);
        CHECK_INT(w->pool.dlpack.arrays, 1);
        CHECK_INT(w->pool.dlpack.bytes, BYTES);
        first = w->storage;
        w->pool.parked = &first.parked; /* so that the world has room for another */
        CHECK_INT(cai_array_init(&w->array, CAI_FLOAT32, 1, w->storage.storage.array.shape, NULL,
                                 cai_sim_bytes(w->sim, w->memory), &err), CAI_OK);
        w->array.memory = CAI_MEMORY_DEVICE;
        w->array.device = 0;
        w->array.sync = CAI_SYNC_NONE;
        cai_array_own(&w->array, count_release, w);
        w->tensor = NULL;
        CHECK_INT(export_to(w, CAI_STREAM_LEGACY, 0), rows[i].refused ? CAI_ERR_CAPACITY : CAI_OK);
        if (rows[i].refused) {
            CHECK(w->array.release != NULL && !w->tensor && strstr(err.message, "cai_keepalive_drain"));
            CHECK_INT(w->pool.open_exchanges, 0);
            GOOD(cai_keepalive_drain(&w->pool, &err));
            CHECK_INT(w->released, 1);
            GOOD(export_to(w, CAI_STREAM_LEGACY, 0));
        }
        touch(w, CAI_STREAM_LEGACY, "use", 1);
        drop(w);
        CHECK_INT(w->pool.dlpack.peak_arrays, rows[i].refused ? 1 : 2);
        CHECK_INT(w->pool.dlpack.peak_bytes, rows[i].refused ? BYTES : 2 * BYTES);
        if (rows[i].arrays == 1) export_owned_by_nobody(w, CAI_STREAM_LEGACY, CAI_ERR_CAPACITY);
        GOOD(cai_keepalive_drain(&w->pool, &err));
        CHECK_INT(w->released * 10 + w->done, 22);
        CHECK_INT(w->pool.dlpack.arrays + w->pool.dlpack.bytes, 0);
        end(w);
    }
}

/* At the limit: what a poll ends, what the export itself settles, and what is never parked. */
static void check_limit_helps(void)
{
    world *w = open(count_release);
    GOOD(cai_dlpack_limit(&w->pool, 0, 1, &err));
    w->array.flags &= ~(uint32_t)CAI_ORDERED_FREE;
    GOOD(export_to(w, CAI_STREAM_LEGACY, 0));
    drop(w); /* waits for an event */
    CHECK_INT(w->pool.dlpack.arrays, 1);
    export_of_nobody(w, w->s2); /* which is never parked */
    CHECK_INT(w->pool.dlpack.arrays, 1);
    cai_sim_run(w->sim);
    export_owned_by_nobody(w, w->s2, CAI_OK); /* polls */
    CHECK_INT(w->released, 1);
    end(w);

    w = open(count_release);
    GOOD(cai_dlpack_limit(&w->pool, 0, 1, &err));
    GOOD(export_to(w, w->s2, 0));
    touch(w, w->s2, "use", 1);
    drop(w);
    export_owned_by_nobody(w, CAI_STREAM_LEGACY, CAI_ERR_CAPACITY);
    export_owned_by_nobody(w, w->s2, CAI_OK); /* names the stream of what is parked */
    CHECK_INT(w->released, 1);
    end(w);

    w = open(count_release);
    CHECK_INT(cai_dlpack_limit(NULL, 1, 1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dlpack_limit(&w->pool, -1, 1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dlpack_limit(&w->pool, 1, -1, &err), CAI_ERR_ARGUMENT);
    cai_array_release(&w->array);
    end(w);
}

/* What no stream works on needs no exchange. */
static void check_nothing_to_order(void)
{
    static const int64_t empty[1] = {0};
    world *w = open(count_release);
    w->array.memory = CAI_MEMORY_HOST;
    w->array.sync = CAI_SYNC_NONE;
    GOOD(export_to(w, 0, 0));
    drop(w);
    CHECK_INT(w->released, 1);
    CHECK_INT(calls(w, "capture_mode"), 2); /* of the release */
    CHECK_INT(cai_sim_calls(w->sim), 2);
    end(w);

    w = open(count_release);
    w->array.release = NULL;
    GOOD(cai_array_init(&w->array, CAI_FLOAT32, 1, empty, NULL, NULL, &err));
    w->array.memory = CAI_MEMORY_DEVICE;
    w->array.device = 0;
    cai_array_own(&w->array, count_release, w);
    GOOD(export_to(w, 0, 0));
    drop(w);
    CHECK_INT(w->released, 1);
    CHECK_INT(calls(w, "capture_mode"), 2); /* of the release */
    CHECK_INT(cai_sim_calls(w->sim), 2);
    end(w);
}

/* -------------------------------------------------------------------- captures */

/* Nobody's capture ends by a deleter or by the drain. */
static void check_captures(void)
{
    uint64_t blocking;
    world *w = open(count_release);
    CHECK_INT(cai_sim_capture_begin(w->sim, w->s2, 0), 0);
    CHECK_INT(export_to(w, w->s2, 0), CAI_ERR_CAPTURE); /* the work to wait for is outside of the capture */
    CHECK(w->array.release != NULL);
    CHECK_INT(w->pool.open_exchanges, 0);
    CHECK_INT(cai_sim_capture_end(w->sim, w->s2, NULL), 0);
    cai_array_release(&w->array);
    end(w);

    w = open(count_release); /* the producer's stream captures: the pool keeps the array until s2 has passed */
    GOOD(export_to(w, w->s2, CAI_DLPACK_STREAMS_LIVE));
    CHECK_INT(cai_sim_capture_begin(w->sim, w->s1, 2), 0);
    drop(w);
    CHECK_INT(w->released, 0);
    CHECK_INT(cai_sim_capture_end(w->sim, w->s1, NULL), 0);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, 1);
    end(w);

    w = open(count_release); /* the consumer's stream captures, now or any other one that a wait would end */
    GOOD(export_to(w, w->s2, CAI_DLPACK_STREAMS_LIVE));
    CHECK_INT(cai_sim_capture_begin(w->sim, w->s2, 2), 0);
    drop(w);
    GOOD(cai_keepalive_poll(&w->pool, NULL, &err));
    CHECK_INT(w->released, 0);
    CHECK_INT(cai_sim_capture_end(w->sim, w->s2, NULL), 0);
    GOOD(cai_keepalive_poll(&w->pool, NULL, &err)); /* now it has an event */
    CHECK_INT(w->released, 1);
    end(w);

    w = open(count_release); /* a blocking stream captures: stream 1 tells of it */
    GOOD(export_to(w, CAI_STREAM_LEGACY, 0));
    touch(w, CAI_STREAM_LEGACY, "use", 1);
    blocking = cai_sim_stream_create(w->sim, 0);
    CHECK_INT(cai_sim_capture_begin(w->sim, blocking, 2), 0);
    drop(w);
    CHECK_INT(cai_keepalive_drain(&w->pool, &err), CAI_ERR_PENDING);
    CHECK_INT(w->released, 0);
    CHECK_INT(cai_sim_capture_end(w->sim, blocking, NULL), 0);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, 1);
    CHECK_INT(cai_sim_stream_destroy(w->sim, blocking), 0);
    end(w);

    w = open(count_release); /* the same for a drain that would wait for the context */
    GOOD(export_to(w, w->s2, 0));
    blocking = cai_sim_stream_create(w->sim, 0);
    CHECK_INT(cai_sim_capture_begin(w->sim, blocking, 2), 0);
    drop(w);
    CHECK_INT(cai_keepalive_drain(&w->pool, &err), CAI_ERR_PENDING);
    CHECK_INT(cai_sim_capture_end(w->sim, blocking, NULL), 0);
    CHECK_INT(cai_sim_stream_destroy(w->sim, blocking), 0);
    end(w);
    CHECK_INT(w->released, 1);
}

/* An export into a capture, before CUDA 11.3: a graph may use the array until its context ends. */
static void check_export_in_capture(void)
{
    world *w = open(count_release);
    cai_cuda less = *w->cuda;
    less.capture_retain = NULL;
    less.context_id = NULL; /* then nothing says that the context has ended, so it is not named */
    w->pool.cuda = &less;
    open_other(w);
    w->array.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_sim_capture_begin(w->sim, w->elsewhere, 2), 0);
    GOOD(export_to(w, w->elsewhere, 0));
    CHECK_INT(cai_sim_capture_end(w->sim, w->elsewhere, NULL), 0); /* no query has ended it */
    drop(w);
    CHECK_INT(cai_keepalive_drain(&w->pool, &err), CAI_ERR_PENDING);
    CHECK_INT(w->released, 0);
    CHECK_INT(calls(w, "context_push"), 0);
    GOOD(cai_event_pool_forget(&w->pool, w->other, &err));
    less.context_id = w->cuda->context_id;
    CHECK_INT(less.context_id(less.self, w->other, &w->storage.context_id), 0);
    (void)cai_sim_stream_destroy(w->sim, w->elsewhere);
    destroy_other(w);
    w->elsewhere = w->other = 0;
    end(w);
    CHECK_INT(w->released, 1);
}

/* The graph says that it has ended, before the deleter or after it. It may fail to take the array. */
static void check_graph(void)
{
    int32_t i;
    for (i = 0; i < 4; i++) {
        world *w = open(count_release);
        const uint64_t stream = i < 3 ? w->s2 : w->s1;
        uint64_t graph = 0;
        if (i < 3) w->array.sync = CAI_SYNC_NONE;
        CHECK_INT(cai_sim_capture_begin(w->sim, stream, 2), 0);
        if (i > 1) CHECK(cai_sim_fail_op(w->sim, "capture_retain", 1, 999));
        GOOD(export_to(w, stream, CAI_DLPACK_STREAMS_LIVE));
        CHECK_INT(cai_sim_capture_end(w->sim, stream, &graph), 0);
        if (i != 1) drop(w);
        CHECK_INT(w->released, 0);
        CHECK_INT(cai_sim_graph_destroy(w->sim, graph), 0);
        if (i == 1) drop(w);
        cai_sim_run(w->sim);
        GOOD(cai_keepalive_poll(&w->pool, NULL, &err));
        cai_sim_run(w->sim);
        GOOD(cai_keepalive_poll(&w->pool, NULL, &err));
        CHECK_INT(w->released, i < 2);
        if (i > 1) { /* until the context ends */
            CHECK_INT(cai_keepalive_drain(&w->pool, &err), CAI_ERR_PENDING);
            CHECK_INT(w->released, 0);
            (void)cai_sim_context_destroy(w->sim, cai_sim_primary(w->sim, 0));
            (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
            w->s1 = w->s2 = 0;
        }
        end(w);
        CHECK_INT(w->released, 1);
    }
}

/* At the limit nothing is given to a graph, as the caller keeps the array. */
static void check_graph_at_limit(void)
{
    world *w = open(count_release);
    const uint64_t s3 = cai_sim_stream_create(w->sim, 1);
    GOOD(cai_dlpack_limit(&w->pool, 0, 1, &err));
    GOOD(export_to(w, w->s2, 0));
    drop(w);
    CHECK_INT(cai_sim_capture_begin(w->sim, s3, 2), 0);
    export_owned_by_nobody(w, s3, CAI_ERR_CAPACITY);
    CHECK_INT(calls(w, "capture_retain"), 0);
    CHECK_INT(cai_sim_capture_end(w->sim, s3, NULL), 0);
    CHECK_INT(cai_sim_stream_destroy(w->sim, s3), 0);
    end(w);
}

/* A global capture on another thread forbids waits and queries to threads that are not relaxed. */
static void check_capture_elsewhere(void)
{
    int32_t mode = 0;
    world *w = open(count_release);
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 1));
    w->elsewhere = cai_sim_stream_create(w->sim, 1);
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
    w->array.flags &= ~(uint32_t)CAI_ORDERED_FREE; /* so the event is queried */
    GOOD(export_to(w, w->s2, CAI_DLPACK_STREAMS_LIVE));
    CHECK_INT(cai_sim_capture_begin(w->sim, w->elsewhere, 0), 0);
    drop(w);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, 1);
    CHECK_INT(w->cuda->capture_mode(w->cuda->self, &mode), 0);
    CHECK_INT(mode, 0); /* as it was */
    CHECK_INT(cai_sim_capture_end(w->sim, w->elsewhere, NULL), 0);
    end(w);
}

/* An owner that frees memory and notes CUDA's answer: 900 in a thread whose mode a capture forbids. */
static uint64_t apart;
static int32_t freed_with;

static void free_noting(cai_array *array)
{
    world *w = (world *)array->owner;
    array->release = NULL;
    freed_with = cai_sim_free(w->sim, apart);
    w->released++;
}

/* Drops the tensor while thread 7 captures `captured` globally. `expected` is what the free returns. */
static void drop_beside_capture(world *w, uint64_t captured, int32_t expected)
{
    int32_t mode = 0;
    freed_with = -1;
    cai_sim_run(w->sim);
    cai_sim_host_thread(w->sim, 7);
    CHECK_INT(cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0)), 0);
    CHECK_INT(cai_sim_capture_begin(w->sim, captured, CAI_SIM_MODE_GLOBAL), 0);
    cai_sim_host_thread(w->sim, 0);
    drop(w);
    CHECK_INT(w->released, 1);
    CHECK_INT(freed_with, expected);
    CHECK_INT(calls(w, "capture_mode") % 2, expected != 0);
    CHECK_INT(w->cuda->capture_mode(w->cuda->self, &mode), 0);
    CHECK_INT(mode, 0); /* as it was */
    CHECK_INT(w->cuda->capture_mode(w->cuda->self, &mode), 0);
    cai_sim_host_thread(w->sim, 7);
    CHECK_INT(cai_sim_capture_end(w->sim, captured, NULL), expected ? 901 : 0);
    cai_sim_host_thread(w->sim, 0);
}

/* What a deleter gives back at once ends no capture of another thread. */
static void check_released_beside_captures(void)
{
    static const int64_t empty[1] = {0};
    int32_t i;
    for (i = 0; i < 5; i++) {
        world *w = open(free_noting);
        const uint64_t s3 = cai_sim_stream_create(w->sim, 1);
        uint64_t to;
        apart = cai_sim_alloc(w->sim, CAI_SIM_MEM_DEVICE, BYTES);
        to = i == 1 ? w->s2 : w->s1; /* 0: the array's own stream; 1: its stream waits */
        if (i == 2) w->array.memory = CAI_MEMORY_HOST;
        if (i == 3) {
            w->array.release = NULL;
            GOOD(cai_array_init(&w->array, CAI_FLOAT32, 1, empty, NULL, NULL, &err));
            w->array.memory = CAI_MEMORY_DEVICE;
            w->array.device = 0;
            cai_array_own(&w->array, free_noting, w);
        }
        if (i == 2) w->array.sync = CAI_SYNC_NONE;
        GOOD(export_to(w, to, i == 1 ? CAI_DLPACK_STREAMS_LIVE : 0));
        if (i == 4) CHECK(cai_sim_fail_op(w->sim, "capture_mode", 1, 999)); /* given back all the same */
        drop_beside_capture(w, s3, i == 4 ? 900 : 0);
        CHECK_INT(cai_sim_stream_destroy(w->sim, s3), 0);
        if (i == 4) (void)cai_sim_free(w->sim, apart);
        end(w);
    }
}

/* -------------------------------------------------------------------- failures */

static void refuse(world *w, int line, uint64_t stream, uint32_t flags, cai_status expected)
{
    cai_test_int(__FILE__, line, "the export", export_to(w, stream, flags), expected);
    cai_test_true(__FILE__, line, "still the caller's", w->array.release != NULL);
    cai_test_true(__FILE__, line, "nothing stored", w->tensor == NULL);
    cai_test_int(__FILE__, line, "open exchanges", w->pool.open_exchanges, 0);
}

/* A full list makes the host wait for its oldest array, and for nothing that is parked: the wait for a context would
 * end the captures of non-blocking streams in it, and nobody asked for that. */
static void check_full_list_in_capture(void)
{
    world *w = open(count_release);
    const uint64_t capturing = cai_sim_stream_create(w->sim, 1);
    const int64_t one = 1;
    cai_array others[PLACES + 1];
    int32_t i;
    GOOD(export_to(w, w->s2, 0));
    touch(w, w->s2, "use", 0);
    drop(w);
    CHECK_INT(w->pool.waiting, 1);
    cai_sim_host_thread(w->sim, 2);
    CHECK_INT(cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0)), 0);
    CHECK_INT(cai_sim_capture_begin(w->sim, capturing, 0), 0);
    cai_sim_host_thread(w->sim, 0);
    for (i = 0; i <= PLACES; i++) {
        GOOD(cai_array_init(&others[i], CAI_UINT8, 1, &one, NULL, cai_sim_bytes(w->sim, w->memory), &err));
        others[i].sync = CAI_SYNC_NONE;
        cai_array_own(&others[i], count_release, w);
        touch(w, w->s1, "work", 0);
        GOOD(cai_keepalive_push(&others[i], &w->pool, w->s1, &err));
    }
    CHECK_INT(cai_sim_calls_of(w->sim, "context_synchronize"), 0);
    cai_sim_host_thread(w->sim, 2);
    CHECK_INT(cai_sim_capture_end(w->sim, capturing, NULL), 0); /* nobody has ended it */
    cai_sim_host_thread(w->sim, 0);
    CHECK_INT(cai_sim_stream_destroy(w->sim, capturing), 0);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, PLACES + 2);
    end(w);
}

static void check_refusals(void)
{
    world *w = open(count_release);
    refuse(w, __LINE__, UINT64_MAX, 0, CAI_ERR_STREAM);
    refuse(w, __LINE__, w->s2, 1u << 20, CAI_ERR_ARGUMENT);
    refuse(w, __LINE__, w->s2, CAI_DLPACK_DROP_READ_ONLY, CAI_ERR_ARGUMENT); /* the versioned struct says it */
    CHECK(cai_sim_fail_op(w->sim, "stream_context", 1, 400));
    refuse(w, __LINE__, w->s2, 0, CAI_ERR_CUDA);
    cai_sim_faults_clear(w->sim);
    w->array.sync = CAI_SYNC_NONE; /* then only the deleter needs the context */
    CHECK(cai_sim_fail_op(w->sim, "stream_context", 1, 400));
    refuse(w, __LINE__, w->s2, 0, CAI_ERR_CUDA);
    CHECK(cai_sim_fail_op(w->sim, "context_id", 1, 999));
    refuse(w, __LINE__, w->s2, 0, CAI_ERR_CUDA);
    cai_sim_faults_clear(w->sim);
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 1));
    CHECK(cai_sim_fail_op(w->sim, "device_context", 1, 101));
    refuse(w, __LINE__, CAI_STREAM_LEGACY, 0, CAI_ERR_CUDA);
    CHECK(cai_sim_fail_op(w->sim, "context_push", 1, 201));
    refuse(w, __LINE__, CAI_STREAM_LEGACY, 0, CAI_ERR_CUDA);
    CHECK_UINT(cai_sim_current(w->sim), cai_sim_primary(w->sim, 1));
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
    w->array.sync = CAI_SYNC_NONE; /* an earlier error instead of the device: the context is not pushed again */
    CHECK(cai_sim_fail_op(w->sim, "context_device", 1, 700));
    CHECK(cai_sim_fail_op(w->sim, "context_push", 1, 700));
    CHECK_INT(cai_dlpack_export_ordered_versioned(&w->array, &w->pool, CAI_STREAM_LEGACY, 0,
                                                  &w->storage, &w->tensor, &err), CAI_OK);
    cai_sim_faults_clear(w->sim);
    CHECK_UINT(cai_sim_current(w->sim), cai_sim_primary(w->sim, 0));
    drop(w);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, 1);
    end(w);
}

static void check_refused_arguments(void)
{
    world *w = open(count_release);
    struct DLManagedTensor *plain = NULL;
    w->array.memory = CAI_MEMORY_UNKNOWN;
    refuse(w, __LINE__, w->s2, 0, CAI_ERR_EXPORT);
    w->array.memory = CAI_MEMORY_DEVICE;
    CHECK_INT(cai_dlpack_export_ordered_versioned(&w->array, NULL, w->s2, 0, &w->storage, &w->tensor, &err),
              CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_dlpack_export_ordered_versioned: pool is NULL");
    CHECK_INT(cai_dlpack_export_ordered_versioned(&w->array, &w->pool, w->s2, 0, NULL, &w->tensor, &err),
              CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dlpack_export_ordered_versioned(&w->array, &w->pool, w->s2, 0, &w->storage, NULL, &err),
              CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dlpack_export_ordered(&w->array, NULL, w->s2, 0, &w->storage, &plain, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "cai_dlpack_export_ordered: pool is NULL");
    CHECK_INT(cai_dlpack_export_ordered(&w->array, &w->pool, w->s2, 0, NULL, &plain, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dlpack_export_ordered(&w->array, &w->pool, w->s2, 0, &w->storage, NULL, &err),
              CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dlpack_export_ordered(&w->array, &w->pool, UINT64_MAX, 0, &w->storage, &plain, &err),
              CAI_ERR_STREAM);
    CHECK(plain == NULL);
    w->array.flags &= ~(uint32_t)CAI_WRITABLE;
    CHECK_INT(cai_dlpack_export_ordered(&w->array, &w->pool, w->s2, 0, &w->storage, &plain, &err),
              CAI_ERR_EXPORT);
    GOOD(cai_dlpack_export_ordered(&w->array, &w->pool, w->s2, CAI_DLPACK_DROP_READ_ONLY, &w->storage, &plain,
                                   &err));
    CHECK_INT(w->array.release == NULL, 1);
    ((cai_dl_managed *)plain)->deleter(plain);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, 1);
    end(w);
}

/* Each CUDA call of a deleter and of the poll after it fails once, or from one on: the array is given back once,
 * and after the work unless no work of the context continues. */
static void check_failing_deleters(void)
{
    static const struct {
        uint64_t stream;
        uint32_t flags;
    } rows[] = {{0, CAI_DLPACK_STREAMS_LIVE}, {0, CAI_DLPACK_NO_CAPTURES}, {0, 0}, {CAI_STREAM_LEGACY, 0}};
    static const int32_t errors[] = {400, 709, 999};
    size_t i;
    for (i = 0; i < 4 * 3; i++) {
        int32_t n, failed = 1, lost;
        for (n = 1; failed; n++) {
            world *w = open(count_release);
            const uint64_t stream = rows[i / 3].stream ? rows[i / 3].stream : w->s2;
            GOOD(export_to(w, stream, rows[i / 3].flags));
            touch(w, stream, "use", 1);
            (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 1)); /* so that the other is pushed */
            cai_sim_fail(w->sim, n, errors[i % 3]);
            drop(w);
            (void)!cai_keepalive_poll(&w->pool, NULL, NULL);
            failed = !cai_sim_faults(w->sim);
            lost = errors[i % 3] == 709 || strstr(cai_sim_log(w->sim), "event_destroy e2 !") != NULL;
            cai_sim_faults_clear(w->sim);
            CHECK_UINT(cai_sim_current(w->sim), cai_sim_primary(w->sim, 1));
            (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
            GOOD(cai_keepalive_drain(&w->pool, &err));
            CHECK_INT(w->released * 10 + w->done, 11);
            (void)cai_sim_free(w->sim, w->memory);
            close_world(w);
            CHECK(cai_sim_leaks(w->sim, NULL, 0) <= lost); /* an event of a dead context is not named */
            cai_sim_destroy(w->sim);
        }
        CHECK(n > 3);
    }
}

/* The deleter runs on a thread without a context. */
static void check_deleters_without_context(void)
{
    static const uint64_t streams[] = {0, 1, 2};
    size_t i;
    for (i = 0; i < 3; i++) {
        world *w = open(count_release);
        GOOD(export_to(w, streams[i], 0));
        touch(w, streams[i] ? streams[i] : w->s2, "use", 1);
        (void)cai_sim_set_context(w->sim, 0);
        drop(w);
        CHECK_INT(w->released, i > 0);
        GOOD(cai_keepalive_drain(&w->pool, &err));
        CHECK_INT(cai_sim_pending(w->sim) > 0, i > 0); /* s1 waits for stream 1, not the host */
        CHECK_INT(w->released, 1);
        CHECK_UINT(cai_sim_current(w->sim), 0);
        (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
        end(w);
    }
}

/* A table may lack what the deleter would take. */
static void lack(cai_cuda *less, int32_t which)
{
    if (which == 0) less->stream_flags = NULL;
    if (which == 1) less->stream_id = NULL;
    if (which == 2) less->context_id = NULL;
    if (which == 3) less->context_record = NULL;
    if (which == 4) less->flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
}

static void check_lacking_slots(void)
{
    int32_t which;
    for (which = 0; which <= 4; which++) {
        world *w = open(count_release);
        cai_cuda less = *w->cuda;
        uint64_t stream = w->s2;
        lack(&less, which);
        if (which == 0 || which == 4) stream = cai_sim_stream_create(w->sim, 0);
        w->pool.cuda = &less;
        GOOD(export_to(w, stream, which == 3 ? (uint32_t)CAI_DLPACK_NO_CAPTURES : 0));
        touch(w, stream, "use", 1);
        drop(w);
        CHECK_INT(w->pool.waiting, 1);
        CHECK_INT(w->released, 0);
        GOOD(cai_keepalive_drain(&w->pool, &err));
        CHECK_INT(cai_sim_pending(w->sim), 0);
        CHECK_INT(w->released, 1);
        if (stream != w->s2) (void)cai_sim_stream_destroy(w->sim, stream);
        end(w);
    }
}

/* Imports say that the owner's order cannot be reached; what is borrowed has none to release. */
static void check_imports(void)
{
    const cai_dlpack_options options = {0, CAI_SYNC_STREAM, CAI_STREAM_LEGACY};
    world *w = open(count_release);
    cai_dlpack_ordered again;
    struct DLManagedTensor *plain;
    cai_array in;
    memset(&again, 0, sizeof again);
    GOOD(export_to(w, CAI_STREAM_LEGACY, 0));
    GOOD(cai_dlpack_borrow(&((cai_dl_managed_versioned *)w->tensor)->dl_tensor, &options, &in, &err));
    CHECK_INT(in.flags & CAI_NO_BACK_EDGE, 0);
    GOOD(cai_dlpack_import_versioned(w->tensor, &options, &in, &err));
    CHECK_INT(in.flags & CAI_NO_BACK_EDGE, CAI_NO_BACK_EDGE);
    GOOD(cai_dlpack_export_ordered(&in, &w->pool, w->s2, 0, &again, &plain, &err));
    GOOD(cai_dlpack_import(plain, &options, &in, &err));
    CHECK_INT(in.flags & CAI_NO_BACK_EDGE, CAI_NO_BACK_EDGE);
    cai_array_release(&in);
    GOOD(cai_keepalive_drain(&w->pool, &err));
    CHECK_INT(w->released, 1);
    end(w);
}

static void run(void)
{
    check_ways();
    check_threads();
    check_calls();
    check_imported();
    check_parked();
    check_parked_context();
    check_settled_later();
    check_limit();
    check_limit_helps();
    check_nothing_to_order();
    check_captures();
    check_export_in_capture();
    check_graph();
    check_graph_at_limit();
    check_capture_elsewhere();
    check_released_beside_captures();
    check_full_list_in_capture();
    check_refusals();
    check_refused_arguments();
    check_failing_deleters();
    check_deleters_without_context();
    check_lacking_slots();
    check_imports();
}

CAI_TEST_MAIN(run)
