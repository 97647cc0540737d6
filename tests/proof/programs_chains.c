/* programs_chains.c - work exported from several streams, chains of libraries, several consumers, and the
 * parts of an exchange used on their own
 * SPDX-License-Identifier: MIT */
#include "programs.h"

/* ----------------------------------------------------- from several streams */

/* Work in some streams, exported in one; the consumer's; where the owner goes on. */
typedef struct export_case {
    const char *name, *work;
    char exported, consumer, after;
} export_case;

/* Each stream of the work fills a part of its own. */
static void fill_parts(proof_world *world, const char *work, const cai_array *array)
{
    const uint64_t bytes = PROOF_BYTES / 4;
    uint64_t i;
    for (i = 0; work[i]; i++) {
        const cai_sim_access part = cai_sim_writes(array->data + i * bytes, bytes);
        proof_touch(world, work[i], "fill a part", &part, 1);
    }
}

static void export_several(cai_sim *sim, void *argument)
{
    const export_case *shape = (const export_case *)argument;
    const int32_t count = (int32_t)strlen(shape->work);
    uint64_t pending[4], memory;
    proof_world world;
    cai_array array;
    int32_t i;
    proof_open(&world, sim, 0);
    memory = proof_memory_of(&world, shape->exported, CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, memory);
    fill_parts(&world, shape->work, &array);
    for (i = 0; i < count; i++) pending[i] = proof_stream(&world, shape->work[i]);
    proof_good(&world,
               cai_stream_export(&array, &world.pool, proof_stream(&world, shape->exported), pending, count,
                                 NULL),
               "cai_stream_export");
    proof_exchange(&world, &array, shape->consumer, "use", 1);
    if (shape->after != shape->exported)
        proof_good(&world,
                   cai_stream_order(&world.pool, proof_stream(&world, shape->exported),
                                    proof_stream(&world, shape->after), NULL),
                   "cai_stream_order");
    proof_write(&world, shape->after, "overwrite", &array);
    proof_free(&world, memory, shape->after);
    proof_close(&world);
}

static const export_case exports[] = {
    {"work in 7, 9 and 5, exported in 3", "795", '3', '1', '3'},
    {"work in 7 and 9, exported in 3, continued in 7", "79", '3', '1', '7'},
    {"work in 3 and 7, exported in 3", "37", '3', '1', '3'},
    {"work in the legacy stream and 7, exported in 3", "L7", '3', '1', '3'},
    {"work in the per-thread stream, exported in 3, continued there", "P", '3', '1', 'P'},
    {"work in 7, exported in the consumer's stream", "7", '1', '1', '1'},
    {"work on two devices, exported in 3", "7q", '3', '1', '3'},
    {"work in 7, exported in 3, continued on another device", "7", '3', '1', 'q'},
};

/* ------------------------------------------------------------------- chains */

/* Libraries in streams 1, 2, 3: each makes an array out of the one before, and exports it. Each owner goes on
 * in its own stream when the next one has ended its exchange. */
static void chain(cai_sim *sim, void *argument)
{
    const char *letters = (const char *)argument;
    const int32_t count = (int32_t)strlen(letters);
    proof_world world;
    cai_array arrays[4];
    uint64_t memory[4];
    int32_t i;
    proof_open(&world, sim, 0);
    for (i = 0; i < count; i++) {
        memory[i] = proof_memory_of(&world, letters[i], CAI_SIM_MEM_DEVICE);
        proof_array(&world, &arrays[i], memory[i]);
    }
    proof_write(&world, letters[0], "fill", &arrays[0]);
    proof_export(&world, &arrays[0], letters[0]);
    for (i = 1; i < count; i++) {
        cai_array *list[1];
        cai_sim_access accesses[2];
        cai_exchange ex;
        list[0] = &arrays[i - 1];
        accesses[0] = proof_reads(&arrays[i - 1]);
        accesses[1] = proof_writes(&arrays[i]);
        proof_good(&world,
                   cai_exchange_begin(&ex, &world.pool, list, 1, proof_stream(&world, letters[i]), NULL),
                   "cai_exchange_begin");
        proof_touch(&world, letters[i], "transform", accesses, 2);
        proof_good(&world, cai_exchange_end(&ex, CAI_OK, NULL), "cai_exchange_end");
        proof_export(&world, &arrays[i], letters[i]);
    }
    for (i = 0; i < count; i++) proof_write(&world, letters[i], "overwrite", &arrays[i]);
    for (i = 0; i < count; i++) proof_free(&world, memory[i], letters[i]);
    proof_close(&world);
}

/* The first consumer, between begin and end, lends the array to a second one, as pending in its stream. */
static void lend_on(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array array, lent;
    cai_array *list[1];
    cai_exchange ex;
    uint64_t memory;
    (void)argument;
    proof_open(&world, sim, 0);
    memory = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, memory);
    proof_write(&world, '1', "fill", &array);
    proof_export(&world, &array, '1');
    list[0] = &array;
    proof_good(&world, cai_exchange_begin(&ex, &world.pool, list, 1, proof_stream(&world, '2'), NULL),
               "cai_exchange_begin");
    proof_write(&world, '2', "use", &array);
    lent = array;
    proof_export(&world, &lent, '2');
    proof_exchange(&world, &lent, '3', "use again", 1);
    proof_good(&world, cai_exchange_end(&ex, CAI_OK, NULL), "cai_exchange_end");
    proof_write(&world, '1', "overwrite", &array);
    proof_free(&world, memory, '1');
    proof_close(&world);
}

/* Two consumers, one after the other, that write (argument: "w"), or that read, each between the other's
 * begin and end. */
static void two_consumers(cai_sim *sim, void *argument)
{
    const int32_t writes = *(const char *)argument == 'w';
    proof_world world;
    cai_array array;
    cai_array *list[1];
    cai_exchange first, second;
    uint64_t memory;
    proof_open(&world, sim, 0);
    memory = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, memory);
    proof_write(&world, '1', "fill", &array);
    proof_export(&world, &array, '1');
    list[0] = &array;
    if (writes) {
        proof_exchange(&world, &array, '2', "use", 1);
        proof_exchange(&world, &array, '3', "use again", 1);
    } else {
        proof_good(&world, cai_exchange_begin(&first, &world.pool, list, 1, proof_stream(&world, '2'), NULL),
                   "cai_exchange_begin");
        proof_good(&world, cai_exchange_begin(&second, &world.pool, list, 1, proof_stream(&world, '3'), NULL),
                   "cai_exchange_begin");
        proof_read(&world, '2', "read", &array);
        proof_read(&world, '3', "read too", &array);
        proof_good(&world, cai_exchange_end(&first, CAI_OK, NULL), "cai_exchange_end");
        proof_good(&world, cai_exchange_end(&second, CAI_OK, NULL), "cai_exchange_end");
    }
    proof_write(&world, '1', "overwrite", &array);
    proof_free(&world, memory, '1');
    proof_close(&world);
}

/* What a library made is released by the next one, which frees it in the maker's stream; the first array is
 * kept alive until the maker has passed. */
static void chain_released(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array input, output;
    proof_owner input_owner, output_owner;
    uint64_t memory;
    (void)argument;
    proof_open(&world, sim, 1);
    memory = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
    proof_array(&world, &input, memory);
    proof_write(&world, '1', "fill", &input);
    proof_wait(&world, '1');
    proof_own(&input_owner, &input, &world, memory, 0);
    memory = proof_memory_of(&world, '2', CAI_SIM_MEM_POOL);
    proof_array(&world, &output, memory);
    proof_own(&output_owner, &output, &world, memory, '2');
    {
        cai_sim_access accesses[2];
        accesses[0] = proof_reads(&input);
        accesses[1] = proof_writes(&output);
        proof_touch(&world, '2', "transform", accesses, 2);
    }
    proof_export(&world, &output, '2');
    proof_good(&world, cai_keepalive_push(&input, &world.pool, proof_stream(&world, '2'), NULL),
               "cai_keepalive_push");
    proof_finish(&world, &output, '3', "use");
    proof_drop(&world, '3');
    proof_drop(&world, '2'); /* what was exported there is released */
    proof_good(&world, cai_keepalive_drain(&world.pool, NULL), "cai_keepalive_drain");
    proof_close(&world);
}

/* ---------------------------------------------------------------- the parts */

/* cai_stream_order in place of an exchange. argument: the two streams. */
static void by_hand(cai_sim *sim, void *argument)
{
    const char *letters = (const char *)argument;
    proof_world world;
    cai_array array;
    uint64_t memory, from, to;
    proof_open(&world, sim, 0);
    from = proof_stream(&world, letters[0]);
    to = proof_stream(&world, letters[1]);
    memory = proof_memory_of(&world, letters[0], CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, memory);
    proof_write(&world, letters[0], "fill", &array);
    proof_good(&world, cai_stream_order(&world.pool, from, to, NULL), "cai_stream_order");
    proof_write(&world, letters[1], "use", &array);
    proof_good(&world, cai_stream_order(&world.pool, to, from, NULL), "cai_stream_order");
    proof_write(&world, letters[0], "overwrite", &array);
    proof_free(&world, memory, letters[0]);
    proof_close(&world);
}

/* The same array twice, and its halves as arrays of their own. */
static void one_array_often(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array array, half;
    cai_array *list[3];
    cai_exchange ex;
    uint64_t memory;
    (void)argument;
    proof_open(&world, sim, 0);
    memory = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, memory);
    proof_write(&world, '1', "fill", &array);
    proof_export(&world, &array, '1');
    half = array;
    half.data += PROOF_BYTES / 2;
    half.shape[0] /= 2;
    half.size /= 2;
    half.nbytes /= 2;
    half.hi /= 2;
    list[0] = &half;
    list[1] = list[2] = &array;
    proof_good(&world, cai_exchange_begin(&ex, &world.pool, list, 3, proof_stream(&world, '2'), NULL),
               "cai_exchange_begin");
    proof_write(&world, '2', "use", &array);
    proof_good(&world, cai_exchange_end(&ex, CAI_OK, NULL), "cai_exchange_end");
    proof_write(&world, '1', "overwrite", &array);
    proof_free(&world, memory, '1');
    proof_close(&world);
}

/* The consumer's work failed, half of it was queued: the back edges are made all the same. */
static void failed_work(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array arrays[2];
    cai_array *list[2];
    uint64_t memory[2];
    cai_exchange ex;
    int32_t i;
    (void)argument;
    proof_open(&world, sim, 0);
    for (i = 0; i < 2; i++) {
        memory[i] = proof_memory_of(&world, (char)('1' + i), CAI_SIM_MEM_DEVICE);
        proof_array(&world, &arrays[i], memory[i]);
        proof_write(&world, (char)('1' + i), "fill", &arrays[i]);
        proof_export(&world, &arrays[i], (char)('1' + i));
        list[i] = &arrays[i];
    }
    proof_good(&world, cai_exchange_begin(&ex, &world.pool, list, 2, proof_stream(&world, '3'), NULL),
               "cai_exchange_begin");
    for (i = 0; i < 2; i++) proof_write(&world, '3', "use", &arrays[i]);
    if (cai_exchange_end(&ex, CAI_ERR_MEMORY, NULL) != CAI_ERR_MEMORY)
        cai_check_fail(sim, "the status of the work was lost");
    for (i = 0; i < 2; i++) proof_write(&world, (char)('1' + i), "overwrite", &arrays[i]);
    for (i = 0; i < 2; i++) proof_free(&world, memory[i], (char)('1' + i));
    proof_close(&world);
}

/* Two arrays, of which the second finds the list full: it is drained (argument "d"), or the first one waits
 * for a stream that the host has waited for, and the second takes its place. */
static void full_list(cai_sim *sim, void *argument)
{
    const int32_t drains = *(const char *)argument == 'd';
    proof_world world;
    cai_array arrays[2];
    proof_owner owners[2];
    int32_t i;
    proof_open(&world, sim, 1);
    for (i = 0; i < 2; i++) {
        const uint64_t memory = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
        proof_array(&world, &arrays[i], memory);
        proof_own(&owners[i], &arrays[i], &world, memory, 0);
        proof_write(&world, (char)('1' + i), "use", &arrays[i]);
    }
    for (i = 0; i < 2; i++) {
        const uint64_t stream = proof_stream(&world, (char)('1' + i));
        if (i && !drains) proof_wait(&world, '1');
        if (i && drains && cai_keepalive_push(&arrays[i], &world.pool, stream, NULL) == CAI_ERR_CAPACITY)
            proof_good(&world, cai_keepalive_drain(&world.pool, NULL), "cai_keepalive_drain");
        if (arrays[i].release)
            proof_good(&world, cai_keepalive_push(&arrays[i], &world.pool, stream, NULL), "push");
    }
    proof_good(&world, cai_keepalive_drain(&world.pool, NULL), "cai_keepalive_drain");
    proof_close(&world);
}

/* The owner's release writes the memory again, in its own stream. */
static void overwritten_by_release(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array array;
    proof_owner owner;
    uint64_t memory;
    (void)argument;
    proof_open(&world, sim, 0);
    memory = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, memory);
    proof_write(&world, '1', "fill", &array);
    proof_export(&world, &array, '1');
    proof_own(&owner, &array, &world, memory, '1');
    owner.overwrite = 1;
    proof_finish(&world, &array, '2', "use");
    proof_drop(&world, '2');
    proof_free(&world, memory, '1');
    proof_close(&world);
}

/* ping and pong: each side writes in turn, twice; the arrays go there and back by exchanges of one pool. */
static void ping_pong(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array array;
    uint64_t memory;
    int32_t i;
    (void)argument;
    proof_open(&world, sim, 0);
    memory = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, memory);
    for (i = 0; i < 3; i++) {
        proof_write(&world, '1', "ping", &array);
        proof_export(&world, &array, '1');
        proof_exchange(&world, &array, (char)('2' + i % 2), "pong", 1);
    }
    proof_write(&world, '1', "overwrite", &array);
    proof_free(&world, memory, '1');
    proof_close(&world);
}

/* ------------------------------------------------------------- unknown work */

/* The memory's context, a stream with work on it that nobody names, what is current, the consumer's stream; the
 * letter of a stream stands for its context. */
typedef struct unknown_case {
    char memory, work, current, consumer;
    int32_t kind, unknown;
} unknown_case;

static const unknown_case in_current = {'1', 'u', 'u', '2', CAI_SIM_MEM_DEVICE, CAI_UNKNOWN_SYNCHRONIZE};
static const unknown_case on_other_device = {'1', 'q', '1', '2', CAI_SIM_MEM_PINNED, CAI_UNKNOWN_SYNCHRONIZE};
static const unknown_case in_primary = {'u', '1', 'u', 'v', CAI_SIM_MEM_DEVICE, CAI_UNKNOWN_SYNCHRONIZE};
static const unknown_case by_legacy = {'u', 'A', 'u', '2', CAI_SIM_MEM_POOL, CAI_UNKNOWN_LEGACY};

static void unknown_elsewhere(cai_sim *sim, void *argument)
{
    const unknown_case *of = (const unknown_case *)argument;
    proof_world world;
    cai_array array;
    cai_array *list[1];
    proof_owner owner;
    cai_exchange_options options;
    cai_exchange ex;
    uint64_t before, memory;
    proof_open(&world, sim, 1);
    memory = proof_memory_of(&world, of->memory, of->kind);
    proof_array(&world, &array, memory);
    proof_write(&world, of->work, "fill", &array);
    array.sync = CAI_SYNC_UNKNOWN;
    proof_own(&owner, &array, &world, memory, 0);
    memset(&options, 0, sizeof options);
    options.unknown = of->unknown;
    list[0] = &array;
    (void)proof_stream(&world, of->consumer);
    before = proof_current(&world, of->current);
    proof_good(&world,
               cai_exchange_begin_with(&ex, &world.pool, list, 1, proof_stream(&world, of->consumer), &options,
                                       NULL),
               "cai_exchange_begin_with");
    proof_write(&world, of->consumer, "use", &array);
    proof_good(&world, cai_exchange_finish(&ex, CAI_OK, list, 1, NULL), "cai_exchange_finish");
    proof_drop(&world, of->consumer);
    proof_good(&world, cai_keepalive_drain(&world.pool, NULL), "cai_keepalive_drain");
    proof_restore(&world, before);
    proof_good(&world, cai_event_pool_forget(&world.pool, world.contexts[2], NULL), "cai_event_pool_forget");
    proof_close(&world);
}

static const proof_program others[] = {
    {"chain of two libraries", chain, "12", 1, 0, 0},
    {"chain of three libraries", chain, "123", 1, 0, 0},
    {"chain of three libraries, two streams", chain, "121", 1, 0, 0},
    {"chain over the legacy stream", chain, "1L2", 1, 0, 0},
    {"chain over two devices", chain, "1q2", 2, 0, 0},
    {"lent on before the end", lend_on, NULL, 1, 0, 0},
    {"two consumers that write", two_consumers, "w", 1, 0, 0},
    {"two consumers that read at once", two_consumers, "r", 1, 0, 0},
    {"chain, released and kept alive", chain_released, NULL, 1, 0, 0},
    {"ordered by hand", by_hand, "12", 1, 0, 0},
    {"ordered by hand, legacy and non-blocking", by_hand, "L1", 1, 0, 0},
    {"ordered by hand, two devices", by_hand, "1q", 2, 0, 0},
    {"one array three times in a list", one_array_often, NULL, 1, 0, 0},
    {"the consumer's work failed", failed_work, NULL, 1, 0, 0},
    {"the keep-alive list is full, drained", full_list, "d", 1, 0, 0},
    {"the keep-alive list is full, one has passed", full_list, "p", 1, 0, 0},
    {"overwritten by the release", overwritten_by_release, NULL, 1, 0, 0},
    {"ping pong", ping_pong, NULL, 1, 0, 0},
    {"unknown work in the current context", unknown_elsewhere, &in_current, 1, 0, 0},
    {"unknown work on another device", unknown_elsewhere, &on_other_device, 2, 0, 0},
    {"unknown work in the primary context", unknown_elsewhere, &in_primary, 1, 0, 0},
    {"unknown work in a blocking stream of the primary context", unknown_elsewhere, &by_legacy, 1, 0, 0},
};

enum { EXPORTS = sizeof exports / sizeof exports[0], OTHERS = sizeof others / sizeof others[0] };

int32_t proof_chains(const proof_program **list)
{
    static proof_program programs[EXPORTS + OTHERS];
    int32_t i;
    for (i = 0; i < EXPORTS; i++) {
        programs[i].name = exports[i].name;
        programs[i].program = export_several;
        programs[i].argument = &exports[i];
        programs[i].devices = strchr(exports[i].work, 'q') || exports[i].after == 'q' ? 2 : 1;
        programs[i].threads = programs[i].samples = 0;
    }
    for (i = 0; i < OTHERS; i++) programs[EXPORTS + i] = others[i];
    *list = programs;
    return EXPORTS + OTHERS;
}
