/* programs_recipes.c - what the documents say how to exchange arrays, run as it stands there (recipes.h)
 * SPDX-License-Identifier: MIT
 *
 * Owners free in the order of the stream that they exported, or at once if they exported none. So a recipe that
 * releases too early, at either end, is a race. */
#include <stdlib.h>

#include "programs.h"

#define CAI_DLPACK_IMPLEMENTATION
#include "cai_dlpack.h"
#ifndef CAI_TESTS_LINKED
#define CAI_PLACE_IMPLEMENTATION
#endif
#include "cai_place.h"

/* ------------------------------------------------------- what the recipes call */

/* Of docs/python.md, but for what is Python's. */
typedef struct module_state {
    cai_event_pool pool;
} module_state;

static proof_world *at_work;

/* A kernel: reads x (or NULL), writes y. */
static int32_t kernel(const char *name, uint64_t x, uint64_t y, uint64_t bytes, uint64_t stream)
{
    cai_sim_access accesses[2];
    int32_t count = 0;
    accesses[count++] = cai_sim_writes(y, bytes);
    if (x) accesses[count++] = cai_sim_reads(x, bytes);
    proof_touch_stream(at_work, stream, name, accesses, count);
    return 0;
}

static int32_t launch_pair(const cai_array *x, const cai_array *y, struct CUstream_st *stream)
{
    return kernel("launch", x->data, y->data, (uint64_t)x->nbytes, CAI_STREAM(stream));
}

static int32_t launch_one(const cai_array *x, struct CUstream_st *stream)
{
    return kernel("scale", 0, x->data, (uint64_t)x->nbytes, CAI_STREAM(stream));
}

static int32_t launch_saxpy(float a, cai_kernel_view x, cai_kernel_view y, int64_t size, uint64_t stream)
{
    (void)a;
    return kernel("saxpy", (uint64_t)(uintptr_t)x.data, (uint64_t)(uintptr_t)y.data, (uint64_t)size * 4, stream);
}

static int32_t launch_double(const cai_array *x, uint64_t stream)
{
    return kernel("double", 0, x->data, (uint64_t)x->nbytes, stream);
}

static int32_t launch_add(cai_array *const *io, uint64_t stream)
{
    cai_sim_access accesses[3];
    accesses[0] = proof_reads(io[0]);
    accesses[1] = proof_reads(io[1]);
    accesses[2] = proof_writes(io[2]);
    proof_touch_stream(at_work, stream, "add", accesses, 3);
    return 0;
}

#include "recipes.h"

/* -------------------------------------------------------------------- worlds */

enum { ARRAYS = 3 };

/* What a program is made of: letters of world.c. */
typedef struct recipe {
    const char *arrays; /* the stream in which each is filled */
    const char *said;   /* of each; s: that stream; n: nothing is pending, the host waited; u: not known */
    char consumer;
} recipe;

typedef struct state {
    proof_world world;
    const recipe *of;
    cai_array arrays[ARRAYS];
    proof_owner owners[ARRAYS];
    int32_t count;
} state;

/* Filled, located, owned: an owner that named a stream frees in it, the others at once. */
static void make(state *at, int32_t i)
{
    const char letter = at->of->arrays[i], said = at->of->said[i];
    proof_world *world = &at->world;
    cai_array *array = &at->arrays[i];
    const uint64_t memory = proof_memory_of(world, letter, said == 's' ? CAI_SIM_MEM_POOL : CAI_SIM_MEM_DEVICE);
    proof_array(world, array, memory);
    array->memory = CAI_MEMORY_DEVICE;
    array->device = letter >= 'q' && letter <= 't' ? 1 : 0;
    proof_write(world, letter, "fill", array);
    if (said == 's') proof_export(world, array, letter);
    if (said == 'n') proof_wait(world, letter);
    if (said == 'u') array->sync = CAI_SYNC_UNKNOWN;
    proof_own(&at->owners[i], array, world, memory, said == 's' ? letter : (char)0);
}

static void open_state(state *at, cai_sim *sim, void *argument)
{
    int32_t i;
    memset(at, 0, sizeof *at);
    at->of = (const recipe *)argument;
    at->count = (int32_t)strlen(at->of->arrays);
    proof_open(&at->world, sim, PROOF_PLACES);
    at_work = &at->world;
    for (i = 0; i < at->count; i++) make(at, i);
}

static void close_state(state *at)
{
    proof_good(&at->world, cai_keepalive_drain(&at->world.pool, NULL), "drain");
    proof_close(&at->world);
}

static struct CUstream_st *consumers(state *at)
{
    return cai_stream_to_cuda(proof_stream(&at->world, at->of->consumer));
}

/* -------------------------------------------------------------- cai_stream.h */

static void run_scale(cai_sim *sim, void *argument)
{
    state at;
    open_state(&at, sim, argument);
    proof_good(&at.world, scale(&at.world.pool, &at.arrays[0], consumers(&at), NULL), "scale");
    close_state(&at);
}

/* ----------------------------------------------------- docs/getting-started.md */

static void run_consume(cai_sim *sim, void *argument)
{
    state at;
    open_state(&at, sim, argument);
    proof_good(&at.world, consume(&at.world.pool, &at.arrays[0], &at.arrays[1], consumers(&at), NULL), "consume");
    close_state(&at);
}

/* The array's interface does not say where it has work; its library does. */
static void run_begin_after(cai_sim *sim, void *argument)
{
    state at;
    cai_array *list[1];
    cai_exchange ex;
    uint64_t theirs;
    open_state(&at, sim, argument);
    list[0] = &at.arrays[0];
    theirs = proof_stream(&at.world, at.of->arrays[0]);
    proof_good(&at.world, begin_after(&ex, &at.world.pool, &at.arrays[0], theirs, consumers(&at), NULL),
               "begin_after");
    (void)launch_double(&at.arrays[0], proof_stream(&at.world, at.of->consumer));
    proof_good(&at.world, cai_exchange_finish(&ex, CAI_OK, list, 1, NULL), "cai_exchange_finish");
    close_state(&at);
}

/* Three streams have worked on the sum; the consumer is in a fifth. */
static void run_export_sum(cai_sim *sim, void *argument)
{
    static const char letters[] = "234";
    state at;
    uint64_t working[3];
    int32_t i;
    open_state(&at, sim, argument);
    for (i = 0; i < 3; i++) {
        working[i] = proof_stream(&at.world, letters[i]);
        proof_good(&at.world,
                   cai_stream_order(&at.world.pool, proof_stream(&at.world, '1'), working[i], NULL),
                   "cai_stream_order");
        proof_read(&at.world, letters[i], "read", &at.arrays[0]);
    }
    proof_good(&at.world,
               export_sum(&at.arrays[0], &at.world.pool, working,
                          cai_stream_to_cuda(proof_stream(&at.world, at.of->arrays[0])), NULL),
               "export_sum");
    proof_finish(&at.world, &at.arrays[0], at.of->consumer, "use");
    close_state(&at);
}

/* The owners go on with the arrays, and free them. */
static void run_add(cai_sim *sim, void *argument)
{
    state at;
    int32_t i;
    open_state(&at, sim, argument);
    proof_good(&at.world,
               add(&at.world.pool, &at.arrays[0], &at.arrays[1], &at.arrays[2], launch_add, NULL), "add");
    for (i = 0; i < at.count; i++) cai_array_release(&at.arrays[i]);
    close_state(&at);
}

/* -------------------------------------------------------------- docs/memory.md */

static void open_memory(state *at)
{
    proof_world *world = &at->world;
    proof_good(world, cai_emm_hooks_async(&world->hooks, world->cuda, NULL, NULL), "cai_emm_hooks_async");
    proof_good(world, cai_manager_init(&world->emm, &world->pool, &world->hooks, NULL, NULL), "cai_manager_init");
}

static void close_memory(state *at)
{
    proof_good(&at->world, cai_keepalive_drain(&at->world.pool, NULL), "drain");
    proof_good(&at->world, cai_manager_destroy(&at->world.emm, NULL), "cai_manager_destroy");
    close_state(at);
}

/* What comes of it goes on to stream 3. */
static void run_doubled(cai_sim *sim, void *argument)
{
    cai_array y;
    state at;
    open_state(&at, sim, argument);
    open_memory(&at);
    proof_good(&at.world, doubled(&y, &at.world.emm, &at.arrays[0], consumers(&at), NULL), "doubled");
    proof_finish(&at.world, &y, '3', "use");
    close_memory(&at);
}

/* The tail is used in one stream more, and freed there. */
static void run_tail_of(cai_sim *sim, void *argument)
{
    cai_array tail;
    state at;
    open_state(&at, sim, argument);
    open_memory(&at);
    proof_good(&at.world, tail_of(&tail, &at.world.emm, cai_stream_to_cuda(proof_stream(&at.world, '1')), NULL),
               "tail_of");
    (void)kernel("fill", 0, tail.data, 1024, proof_stream(&at.world, '1'));
    proof_good(&at.world,
               cai_stream_order(&at.world.pool, proof_stream(&at.world, '1'), proof_stream(&at.world, '2'), NULL),
               "cai_stream_order");
    (void)kernel("use", 0, tail.data, 1024, proof_stream(&at.world, '2'));
    tail.sync = CAI_SYNC_STREAM;
    tail.stream = proof_stream(&at.world, '2');
    cai_array_release(&tail);
    close_memory(&at);
}

/* -------------------------------------------------------------- docs/python.md */

/* Both objects are dropped as soon as the call returns. */
static void run_saxpy(cai_sim *sim, void *argument)
{
    module_state module;
    state at;
    open_state(&at, sim, argument);
    proof_good(&at.world, cai_event_pool_init(&module.pool, at.world.cuda, at.world.places, PROOF_PLACES, 0, NULL),
               "cai_event_pool_init");
    proof_good(&at.world, exchange(&module, 2, at.arrays, proof_stream(&at.world, at.of->consumer), NULL),
               "exchange");
    proof_good(&at.world, cai_keepalive_drain(&module.pool, NULL), "drain");
    proof_good(&at.world, cai_event_pool_destroy(&module.pool, NULL), "cai_event_pool_destroy");
    close_state(&at);
}

/* ---------------------------------------------------------- docs/c-exchange.md */

/* A borrowed array: the reader holds the object over the call. */
static void run_describe(cai_sim *sim, void *argument)
{
    cai_array described;
    state at;
    open_state(&at, sim, argument);
    cai_array_borrow(&described, &at.arrays[0]); /* what describe does */
    proof_finish(&at.world, &described, at.of->consumer, "use");
    cai_array_release(&at.arrays[0]); /* the object goes */
    close_state(&at);
}

/* adopt: the reader's array becomes an object of the maker's type, whose own work comes after what is pending. */
static void run_adopt(cai_sim *sim, void *argument)
{
    cai_array adopted, described;
    state at;
    open_state(&at, sim, argument);
    cai_array_move(&adopted, &at.arrays[0]);
    cai_array_borrow(&described, &adopted);
    proof_finish(&at.world, &described, at.of->consumer, "use");
    cai_array_release(&adopted);
    close_state(&at);
}

/* -------------------------------------------------------------- docs/dlpack.md */

/* Streams by letters of world.c; '-': the consumer passes -1, and sees to the order itself. */
typedef struct tensors {
    recipe of;
    char producer; /* c: give_tensor; p: one that knows nothing of cai, and releases in the deleter; s: one that
                      is told that consumers' streams live */
    char taken;    /* c: double_tensor; p: one that calls the deleter while its kernel is queued; t: by the
                      table of its type: the producer's current stream, an exchange in the consumer's */
} tensors;

static cai_status give(state *at, cai_array *array, char how, uint64_t stream,
                       struct DLManagedTensorVersioned **managed)
{
    cai_dlpack_ordered *storage;
    cai_status status;
    if (how == 'c') return give_tensor(array, &at->world.pool, stream, managed, NULL);
    storage = (cai_dlpack_ordered *)malloc(sizeof *storage);
    if (!storage) return CAI_ERR_OUT_OF_MEMORY;
    storage->storage.done = free_storage;
    if (how == 's') {
        status = cai_dlpack_export_ordered_versioned(array, &at->world.pool, stream,
                                                     CAI_DLPACK_STREAMS_LIVE, storage, managed, NULL);
    } else {
        status = array->stream
                     ? cai_stream_order(&at->world.pool, array->stream, stream, NULL)
                     : CAI_OK;
        if (!status)
            status = cai_dlpack_export_versioned(array, CAI_DLPACK_ORDERED, &storage->storage, managed,
                                                 NULL);
    }
    if (status) free(storage);
    return status;
}

/* What comes by the table of a type: nothing waits, and what is pending is in the producer's current stream. */
static void take_by_table(state *at, struct DLManagedTensorVersioned *managed)
{
    const cai_dlpack_options options = {0, CAI_SYNC_STREAM, proof_stream(&at->world, at->of->arrays[0])};
    cai_array x;
    proof_good(&at->world, cai_dlpack_import_versioned(managed, &options, &x, NULL), "import");
    proof_finish(&at->world, &x, at->of->consumer, "use");
}

static void take(state *at, char how, uint64_t stream, struct DLManagedTensorVersioned *managed)
{
    int taken = 0;
    if (how == 'c')
        proof_good(&at->world, double_tensor(managed, &at->world.pool, stream, &taken, NULL), "double_tensor");
    if (how == 't') take_by_table(at, managed);
    if (how != 'p') return;
    (void)kernel("double", 0, (uint64_t)(uintptr_t)((cai_dl_managed_versioned *)managed)->dl_tensor.data,
                 PROOF_BYTES, stream);
    ((cai_dl_managed_versioned *)managed)->deleter(managed);
}

static void run_tensors(cai_sim *sim, void *argument)
{
    const tensors *how = (const tensors *)argument;
    struct DLManagedTensorVersioned *managed = NULL;
    const char letter = how->of.consumer == '-' ? '2' : how->of.consumer;
    uint64_t stream, before, said;
    state at;
    open_state(&at, sim, (void *)(uintptr_t)&how->of);
    if (how->of.consumer == '-') proof_wait(&at.world, how->of.arrays[0]);
    stream = proof_stream(&at.world, letter);
    before = proof_current(&at.world, letter);
    if (how->of.consumer == '-') said = 0;
    else said = how->taken == 't' ? at.arrays[0].stream : stream;
    proof_good(&at.world, give(&at, &at.arrays[0], how->producer, said, &managed), "give");
    if (managed) take(&at, how->taken, stream, managed);
    proof_restore(&at.world, before);
    close_state(&at);
}

/* What came by DLPack into stream 2 goes on by DLPack, to the consumer. */
static void run_passed_on(cai_sim *sim, void *argument)
{
    const tensors *how = (const tensors *)argument;
    struct DLManagedTensorVersioned *managed = NULL, *again = NULL;
    cai_dlpack_options options = {0, CAI_SYNC_STREAM, 0};
    uint64_t stream;
    cai_array x;
    state at;
    open_state(&at, sim, (void *)(uintptr_t)&how->of);
    options.stream = proof_stream(&at.world, '2');
    stream = proof_stream(&at.world, how->of.consumer);
    proof_good(&at.world, give(&at, &at.arrays[0], how->producer, options.stream, &managed), "give");
    if (managed) proof_good(&at.world, cai_dlpack_import_versioned(managed, &options, &x, NULL), "import");
    if (managed) proof_write(&at.world, '2', "change", &x);
    if (managed) proof_good(&at.world, give(&at, &x, 'c', stream, &again), "give again");
    if (again) take(&at, how->taken, stream, again);
    close_state(&at);
}

static const recipe
    two = {"12", "ss", '3'}, two_legacy = {"1L", "ss", '3'}, one_done = {"12", "sn", '3'},
    not_known = {"12", "us", '3'}, both_mine = {"33", "ss", '3'}, one_mine = {"31", "ss", '3'},
    unknown = {"1", "u", '2'}, sum = {"1", "s", '5'},
    three = {"123", "sss", '1'}, three_legacy = {"L23", "sss", 'L'}, one = {"1", "s", '2'},
    one_legacy = {"L", "s", '1'}, done = {"1", "n", '2'}, nothing = {"", "", '2'};

/* The producer is cai's, the consumer any; the other way round; both. */
static const tensors
    both_ends = {{"1", "s", '2'}, 'c', 'c'}, by_producer = {{"1", "s", '2'}, 'c', 'p'},
    by_consumer = {{"1", "s", '2'}, 'p', 'c'}, done_producer = {{"1", "n", '2'}, 'c', 'p'},
    done_consumer = {{"1", "n", '2'}, 'p', 'c'}, done_both = {{"1", "n", '2'}, 'c', 'c'},
    legacy_producer = {{"L", "s", '1'}, 'c', 'p'}, legacy_consumer = {{"1", "s", 'L'}, 'c', 'p'},
    thread_producer = {{"P", "s", '1'}, 'c', 'p'}, thread_consumer = {{"1", "s", 'P'}, 'c', 'p'},
    one_stream = {{"1", "s", '1'}, 'c', 'p'}, one_stream_consumer = {{"1", "s", '1'}, 'p', 'c'},
    tensor_unknown = {{"1", "u", '2'}, 'c', 'p'}, lives = {{"1", "s", '2'}, 's', 'p'},
    lives_done = {{"1", "n", '2'}, 's', 'p'}, minus_one = {{"1", "s", '-'}, 'c', 'p'},
    by_table = {{"1", "s", '2'}, 'c', 't'}, by_table_of_any = {{"1", "s", '2'}, 'p', 't'},
    peer = {{"1", "s", 'q'}, 'c', 'p'}, peer_consumer = {{"1", "s", 'q'}, 'p', 'c'},
    second_context = {{"u", "s", '1'}, 'c', 'p'}, second_consumer = {{"1", "s", 'u'}, 'c', 'p'},
    passed_on = {{"1", "s", '3'}, 'c', 'p'}, passed_on_by_any = {{"1", "s", '3'}, 'p', 'p'},
    passed_on_done = {{"1", "n", '3'}, 'c', 'p'}, passed_back = {{"1", "s", '1'}, 'c', 'p'};

static const proof_program list_of[] = {
    {"cai_stream.h, the example", run_scale, &one, 1, 0, 0},
    {"cai_stream.h, the example: nothing pending", run_scale, &done, 1, 0, 0},
    {"getting-started.md, consume", run_consume, &two, 1, 0, 0},
    {"getting-started.md, consume: the legacy stream", run_consume, &two_legacy, 1, 0, 0},
    {"getting-started.md, consume: nothing pending", run_consume, &one_done, 1, 0, 0},
    {"getting-started.md, consume: not known", run_consume, &not_known, 1, 0, 0},
    {"getting-started.md, consume: its own arrays", run_consume, &both_mine, 1, 0, 0},
    {"getting-started.md, consume: one of its own", run_consume, &one_mine, 1, 0, 0},
    {"placing.md, begin_after", run_begin_after, &unknown, 1, 0, 0},
    {"placing.md, export_sum", run_export_sum, &sum, 1, 0, 0},
    {"placing.md, add", run_add, &three, 1, 0, 0},
    {"placing.md, add: the legacy stream", run_add, &three_legacy, 1, 0, 0},
    {"memory.md, doubled", run_doubled, &one, 1, 0, 0},
    {"memory.md, doubled: nothing pending", run_doubled, &done, 1, 0, 0},
    {"memory.md, tail_of", run_tail_of, &nothing, 1, 0, 0},
    {"python.md, exchange", run_saxpy, &two, 1, 0, 0},
    {"python.md, exchange: nothing pending", run_saxpy, &one_done, 1, 0, 0},
    {"python.md, exchange: not known", run_saxpy, &not_known, 1, 0, 0},
    {"python.md, exchange: one of its own", run_saxpy, &one_mine, 1, 0, 0},
    {"c-exchange.md, described", run_describe, &one, 1, 0, 0},
    {"c-exchange.md, described: the legacy stream", run_describe, &one_legacy, 1, 0, 0},
    {"c-exchange.md, adopted", run_adopt, &one, 1, 0, 0},
    {"dlpack.md, both ends", run_tensors, &both_ends, 1, 0, 0},
    {"dlpack.md, give_tensor", run_tensors, &by_producer, 1, 0, 0},
    {"dlpack.md, double_tensor", run_tensors, &by_consumer, 1, 0, 0},
    {"dlpack.md, give_tensor: nothing pending", run_tensors, &done_producer, 1, 0, 0},
    {"dlpack.md, double_tensor: nothing pending", run_tensors, &done_consumer, 1, 0, 0},
    {"dlpack.md, both ends: nothing pending", run_tensors, &done_both, 1, 0, 0},
    {"dlpack.md, give_tensor: legacy producer", run_tensors, &legacy_producer, 1, 0, 0},
    {"dlpack.md, give_tensor: legacy consumer", run_tensors, &legacy_consumer, 1, 0, 0},
    {"dlpack.md, give_tensor: per-thread producer", run_tensors, &thread_producer, 1, 0, 0},
    {"dlpack.md, give_tensor: per-thread consumer", run_tensors, &thread_consumer, 1, 0, 0},
    {"dlpack.md, give_tensor: one stream", run_tensors, &one_stream, 1, 0, 0},
    {"dlpack.md, double_tensor: one stream", run_tensors, &one_stream_consumer, 1, 0, 0},
    {"dlpack.md, give_tensor: not known", run_tensors, &tensor_unknown, 1, 0, 0},
    {"dlpack.md, streams live", run_tensors, &lives, 1, 0, 0},
    {"dlpack.md, streams live: nothing pending", run_tensors, &lives_done, 1, 0, 0},
    {"dlpack.md, give_tensor: -1", run_tensors, &minus_one, 1, 0, 0},
    {"dlpack.md, by the table of a type", run_tensors, &by_table, 1, 0, 0},
    {"dlpack.md, by the table of any type", run_tensors, &by_table_of_any, 1, 0, 0},
    {"dlpack.md, give_tensor: consumer on another device", run_tensors, &peer, 2, 0, 0},
    {"dlpack.md, double_tensor: on another device", run_tensors, &peer_consumer, 2, 0, 0},
    {"dlpack.md, give_tensor: producer in a second context", run_tensors, &second_context, 1, 0, 0},
    {"dlpack.md, give_tensor: consumer in a second context", run_tensors, &second_consumer, 1, 0, 0},
    {"dlpack.md, passed on", run_passed_on, &passed_on, 1, 0, 0},
    {"dlpack.md, passed on, from any producer", run_passed_on, &passed_on_by_any, 1, 0, 0},
    {"dlpack.md, passed on: nothing pending", run_passed_on, &passed_on_done, 1, 0, 0},
    {"dlpack.md, passed on to the producer's stream", run_passed_on, &passed_back, 1, 0, 0},
};

int32_t proof_recipes(const proof_program **list)
{
    *list = list_of;
    return (int32_t)(sizeof list_of / sizeof list_of[0]);
}
