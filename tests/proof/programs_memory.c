/* programs_memory.c - memory of cai_manager.h: given back on another stream, by its last reference, by arrays,
 * later, and out of memory
 * SPDX-License-Identifier: MIT */
#include "programs.h"

/* A world with a manager over CUDA's pool ('a'; 'd': that drains the keep-alive list when memory runs out) or over
 * cudaMalloc ('c'). */
static void open_memory(proof_world *world, cai_sim *sim, char hooks, int32_t deferred_count)
{
    cai_manager_options options;
    memset(&options, 0, sizeof options);
    options.deferred_count = deferred_count;
    if (hooks == 'd') options.flags = CAI_MANAGER_DRAIN;
    proof_open(world, sim, PROOF_PLACES);
    proof_good(world,
               hooks != 'c' ? cai_emm_hooks_async(&world->hooks, world->cuda, NULL, NULL)
                            : cai_emm_hooks_cuda(&world->hooks, world->cuda, NULL),
               "cai_emm_hooks");
    proof_good(world, cai_manager_init(&world->emm, &world->pool, &world->hooks, &options, NULL), "cai_manager_init");
}

static void close_memory(proof_world *world)
{
    proof_good(world, cai_keepalive_drain(&world->pool, NULL), "cai_keepalive_drain");
    proof_good(world, cai_manager_destroy(&world->emm, NULL), "cai_manager_destroy");
    proof_close(world);
}

static void make_array(proof_world *world, cai_array *array, char letter)
{
    const int64_t extent = PROOF_BYTES / 4;
    proof_good(world,
               cai_manager_array(array, &world->emm, CAI_FLOAT32, 1, &extent, proof_stream(world, letter), NULL),
               "cai_manager_array");
}

/* Memory of the manager, and a borrowed array that fills it. */
static cai_memory_handle make_memory(proof_world *world, cai_array *array, char letter)
{
    cai_memory_handle memory = 0;
    proof_good(world,
               cai_manager_alloc(&memory, &world->emm, PROOF_BYTES, 0, proof_stream(world, letter), NULL),
               "cai_manager_alloc");
    proof_array(world, array, (uint64_t)(uintptr_t)cai_manager_pointer(&world->emm, memory));
    return memory;
}

static void give_back(proof_world *world, cai_memory_handle memory, char letter)
{
    proof_good(world, cai_manager_free(&world->emm, memory, proof_stream(world, letter), NULL), "cai_manager_free");
}

static void order(proof_world *world, char before, char after)
{
    proof_good(world,
               cai_stream_order(&world->pool, proof_stream(world, before), proof_stream(world, after), NULL),
               "cai_stream_order");
}

/* ------------------------------------------------------------------- arrays */

/* Hooks; the stream of the array; the consumer's; what is pending: s: what its stream says, n: nothing */
static void array_exchanged(cai_sim *sim, void *argument)
{
    const char *shape = (const char *)argument;
    proof_world world;
    cai_array array;
    open_memory(&world, sim, shape[0], 0);
    make_array(&world, &array, shape[1]);
    proof_write(&world, shape[1], "fill", &array);
    if (shape[3] == 'n') {
        proof_wait(&world, shape[1]);
        array.sync = CAI_SYNC_NONE;
    }
    proof_finish(&world, &array, shape[2], "use");
    if (shape[2] != shape[1]) proof_drop(&world, shape[2]);
    close_memory(&world);
}

/* The owner goes on with the array after a consumer, and releases it itself. */
static void array_kept(cai_sim *sim, void *argument)
{
    const char *shape = (const char *)argument;
    proof_world world;
    cai_array array;
    open_memory(&world, sim, shape[0], 0);
    make_array(&world, &array, '1');
    proof_write(&world, '1', "fill", &array);
    proof_exchange(&world, &array, '2', "use", 1);
    proof_write(&world, '1', "overwrite", &array);
    cai_array_release(&array);
    close_memory(&world);
}

/* Released with work in stream 2 of which the array says: u: nothing; e: an event; s: that stream, which comes after
 * that of its allocation. */
static void array_released(cai_sim *sim, void *argument)
{
    const char said = *(const char *)argument;
    proof_world world;
    cai_array array;
    uint64_t event = 0;
    open_memory(&world, sim, 'a', 0);
    make_array(&world, &array, '1');
    proof_write(&world, '1', "fill", &array);
    order(&world, '1', '2');
    if (said == 's') proof_read(&world, '1', "read here", &array);
    if (said == 's') order(&world, '1', '2'); /* the stream that the array names comes after all work */
    proof_read(&world, '2', "read there", &array);
    if (said == 'u') array.sync = CAI_SYNC_UNKNOWN;
    if (said == 's') array.stream = proof_stream(&world, '2');
    if (said == 'e') {
        event = cai_sim_event_create(sim);
        (void)cai_sim_event_record(sim, event, proof_stream(&world, '2'));
        array.sync = CAI_SYNC_EVENT;
        array.event = event;
    }
    cai_array_release(&array);
    if (event) proof_zero(&world, cai_sim_event_destroy(sim, event), "event_destroy");
    close_memory(&world);
}

/* A library lends a part of its memory, which the consumer's release keeps no longer than it needs it. */
static void array_owned(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array array, lent;
    cai_memory_handle memory;
    (void)argument;
    open_memory(&world, sim, 'a', 0);
    memory = make_memory(&world, &array, '1');
    proof_write(&world, '1', "fill", &array);
    lent = array;
    proof_export(&world, &lent, '1');
    proof_good(&world, cai_manager_own(&lent, &world.emm, memory, NULL), "cai_manager_own");
    give_back(&world, memory, '1');
    proof_finish(&world, &lent, '2', "use");
    proof_drop(&world, '2');
    close_memory(&world);
}

/* Libraries in streams 1 and 2: the second makes its array from that of the first and gives it to stream 3;
 * everything is released as soon as it may. */
static void arrays_in_a_chain(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array first, second;
    cai_array *list[1];
    cai_sim_access accesses[2];
    cai_exchange ex;
    (void)argument;
    open_memory(&world, sim, 'a', 0);
    make_array(&world, &first, '1');
    proof_write(&world, '1', "fill", &first);
    make_array(&world, &second, '2');
    list[0] = &first;
    accesses[0] = proof_reads(&first);
    accesses[1] = proof_writes(&second);
    proof_good(&world, cai_exchange_begin(&ex, &world.pool, list, 1, proof_stream(&world, '2'), NULL),
               "cai_exchange_begin");
    proof_touch(&world, '2', "transform", accesses, 2);
    proof_good(&world, cai_exchange_finish(&ex, CAI_OK, list, 1, NULL), "cai_exchange_finish");
    proof_finish(&world, &second, '3', "use");
    proof_drop(&world, '3');
    close_memory(&world);
}

/* -------------------------------------------------------------------- frees */

/* Hooks, the stream of the allocation, another stream in which it is freed, after the first one. In both something
 * reads it. */
static void freed_elsewhere(cai_sim *sim, void *argument)
{
    const char *shape = (const char *)argument;
    proof_world world;
    cai_array array;
    cai_memory_handle memory;
    open_memory(&world, sim, shape[0], 0);
    memory = make_memory(&world, &array, shape[1]);
    proof_write(&world, shape[1], "fill", &array);
    order(&world, shape[1], shape[2]);
    proof_read(&world, shape[1], "read here", &array);
    proof_read(&world, shape[2], "read there", &array);
    order(&world, shape[1], shape[2]);
    give_back(&world, memory, shape[2]);
    close_memory(&world);
}

/* Two references, given back in two streams. argument: the order in which they are. */
static void two_references(cai_sim *sim, void *argument)
{
    const char *letters = (const char *)argument;
    proof_world world;
    cai_array array;
    cai_memory_handle memory;
    open_memory(&world, sim, 'a', 0);
    memory = make_memory(&world, &array, '1');
    proof_write(&world, '1', "fill", &array);
    order(&world, '1', '2');
    proof_good(&world, cai_manager_retain(&world.emm, memory, NULL), "cai_manager_retain");
    proof_read(&world, '1', "read here", &array);
    proof_read(&world, '2', "read there", &array);
    if (letters[0] == letters[1]) order(&world, '1', '2');
    give_back(&world, memory, letters[0]);
    give_back(&world, memory, letters[1]);
    close_memory(&world);
}

/* An array outlives the handle of its object, whose other half was used here. */
static void array_last(cai_sim *sim, void *argument)
{
    const int64_t extent = PROOF_BYTES / 2;
    proof_world world;
    cai_array array, tail;
    cai_memory_handle memory;
    cai_sim_access half;
    (void)argument;
    open_memory(&world, sim, 'a', 0);
    memory = make_memory(&world, &array, '1');
    proof_good(&world,
               cai_array_init(&tail, CAI_UINT8, 1, &extent, NULL,
                              (void *)(uintptr_t)(array.data + PROOF_BYTES / 2), NULL), "cai_array_init");
    proof_good(&world, cai_manager_own(&tail, &world.emm, memory, NULL), "cai_manager_own");
    proof_write(&world, '1', "fill", &array);
    order(&world, '1', '2');
    half = cai_sim_writes(array.data, PROOF_BYTES / 2);
    proof_touch(&world, '1', "write here", &half, 1);
    give_back(&world, memory, '1');
    half = cai_sim_writes(array.data + PROOF_BYTES / 2, PROOF_BYTES / 2);
    proof_touch(&world, '2', "write there", &half, 1);
    tail.sync = CAI_SYNC_STREAM;
    tail.stream = proof_stream(&world, '2');
    cai_array_release(&tail);
    close_memory(&world);
}

/* Freed in a scope, in which nothing goes; carried out by a flush after it. */
static void deferred(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array array;
    cai_memory_handle memory;
    (void)argument;
    open_memory(&world, sim, 'a', 0);
    memory = make_memory(&world, &array, '1');
    proof_write(&world, '1', "fill", &array);
    order(&world, '1', '2');
    proof_good(&world, cai_manager_defer_begin(&world.emm, NULL), "cai_manager_defer_begin");
    proof_read(&world, '1', "read here", &array);
    proof_read(&world, '2', "read there", &array);
    order(&world, '1', '2');
    give_back(&world, memory, '2');
    proof_good(&world, cai_manager_defer_end(&world.emm, NULL), "cai_manager_defer_end");
    proof_good(&world, cai_manager_flush(&world.emm, NULL), "cai_manager_flush");
    close_memory(&world);
}

/* Frees that wait for the device are deferred; the second one passes the limit. */
static void deferred_over_limit(cai_sim *sim, void *argument)
{
    proof_world world;
    cai_array arrays[3];
    cai_memory_handle memory[3];
    int32_t i;
    (void)argument;
    open_memory(&world, sim, 'c', 1);
    for (i = 0; i < 3; i++) {
        memory[i] = make_memory(&world, &arrays[i], (char)('1' + i));
        proof_write(&world, (char)('1' + i), "fill", &arrays[i]);
    }
    for (i = 0; i < 3; i++) give_back(&world, memory[i], (char)('1' + i));
    close_memory(&world);
}

/* Memory of somebody else that was pinned: it is unpinned when its stream has passed (R119). */
static void pinned(cai_sim *sim, void *argument)
{
    static union {
        unsigned char bytes[PROOF_BYTES];
        double alignment;
    } buffer;
    proof_world world;
    cai_memory_handle memory = 0;
    cai_sim_access whole;
    (void)argument;
    memset(&buffer, 0, sizeof buffer);
    open_memory(&world, sim, 'c', 0);
    proof_good(&world, cai_manager_pin(&memory, &world.emm, buffer.bytes, PROOF_BYTES, CAI_HOST_MAPPED, NULL),
               "cai_manager_pin");
    whole = cai_sim_writes((uint64_t)(uintptr_t)buffer.bytes, PROOF_BYTES);
    proof_touch(&world, '1', "write", &whole, 1);
    give_back(&world, memory, '1');
    close_memory(&world);
}

/* Out of memory: what waits in the keep-alive list is released by its owners, if its stream has passed ('a'), or
 * after a wait ('d'). */
static void out_of_memory(cai_sim *sim, void *argument)
{
    const char hooks = *(const char *)argument;
    proof_world world;
    cai_array array, other;
    proof_owner owner;
    uint64_t block;
    cai_memory_handle memory;
    open_memory(&world, sim, hooks, 0);
    block = proof_memory_of(&world, '1', CAI_SIM_MEM_DEVICE);
    proof_array(&world, &array, block);
    proof_own(&owner, &array, &world, block, 0);
    proof_write(&world, '1', "use", &array);
    proof_good(&world, cai_keepalive_push(&array, &world.pool, proof_stream(&world, '1'), NULL), "push");
    if (hooks == 'a') proof_wait(&world, '1');
    cai_sim_set_memory(sim, 0, PROOF_BYTES);
    memory = make_memory(&world, &other, '2');
    proof_write(&world, '2', "fill", &other);
    give_back(&world, memory, '2');
    close_memory(&world);
}

static const proof_program list_of[] = {
    {"emm: exchanged and released", array_exchanged, "a12s", 1, 0, 0},
    {"emm: exchanged and released, cudaFree", array_exchanged, "c12s", 1, 0, 0},
    {"emm: nothing pending, kept alive", array_exchanged, "a12n", 1, 0, 0},
    {"emm: nothing pending, kept alive, cudaFree", array_exchanged, "c12n", 1, 0, 0},
    {"emm: per-thread array", array_exchanged, "aP1s", 1, 0, 0},
    {"emm: legacy array", array_exchanged, "aL1s", 1, 0, 0},
    {"emm: overwritten and released", array_kept, "a", 1, 0, 0},
    {"emm: overwritten and released, cudaFree", array_kept, "c", 1, 0, 0},
    {"emm: released, work not known", array_released, "u", 1, 0, 0},
    {"emm: released with an event", array_released, "e", 1, 0, 0},
    {"emm: released in another stream", array_released, "s", 1, 0, 0},
    {"emm: a part lent and owned", array_owned, NULL, 1, 0, 0},
    {"emm: arrays in a chain", arrays_in_a_chain, NULL, 1, 0, 0},
    {"emm: freed in another stream", freed_elsewhere, "a12", 1, 0, 0},
    {"emm: freed in another stream, cudaFree", freed_elsewhere, "c12", 1, 0, 0},
    {"emm: freed in another stream than the legacy one", freed_elsewhere, "aL1", 1, 0, 0},
    {"emm: freed in the per-thread stream", freed_elsewhere, "a1P", 1, 0, 0},
    {"emm: two references, its own stream first", two_references, "12", 1, 0, 0},
    {"emm: two references, its own stream last", two_references, "21", 1, 0, 0},
    {"emm: two references, both elsewhere", two_references, "22", 1, 0, 0},
    {"emm: an array is last", array_last, NULL, 1, 0, 0},
    {"emm: deferred, flushed", deferred, NULL, 1, 0, 0},
    {"emm: deferred over the limit", deferred_over_limit, NULL, 1, 0, 0},
    {"emm: pinned memory", pinned, NULL, 1, 0, 0},
    {"emm: out of memory", out_of_memory, "a", 1, 0, 0},
    {"emm: out of memory, drained", out_of_memory, "d", 1, 0, 0},
    {"emm: freed on a peer device", freed_elsewhere, "a1q", 2, 0, 0},
    {"emm: freed on a peer device, cudaFree", freed_elsewhere, "c1q", 2, 0, 0},
    {"emm: exchanged with a peer device, cudaFree", array_exchanged, "c1qs", 2, 0, 0},
    {"emm: nothing pending, a peer device, cudaFree", array_exchanged, "c1qn", 2, 0, 0},
};

int32_t proof_memory(const proof_program **list)
{
    *list = list_of;
    return (int32_t)(sizeof list_of / sizeof list_of[0]);
}
