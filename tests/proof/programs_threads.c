/* programs_threads.c - exchanges by several host threads: one pool, handing over by batons, per-thread
 * streams, the keep-alive list, memory of one manager
 * SPDX-License-Identifier: MIT
 *
 * What the threads use is made before they start. A thread tells another one something by a baton only. */
#include "programs.h"

enum { ARRAYS = 3 };

typedef struct thread_state {
    proof_world world;
    cai_array arrays[ARRAYS];
    uint64_t memory[ARRAYS];
    proof_owner owners[ARRAYS];
    cai_memory_handle block;
} thread_state;

/* ------------------------------------------------------------------ setting up */

/* A world with the streams that `letters` names. */
static void open_state(thread_state *state, cai_sim *sim, const char *letters)
{
    memset(state, 0, sizeof *state);
    proof_open(&state->world, sim, PROOF_PLACES);
    for (; *letters; letters++) (void)proof_stream(&state->world, *letters);
}

static void make(thread_state *state, int32_t i, int32_t kind)
{
    state->memory[i] = proof_memory_of(&state->world, '1', kind);
    proof_array(&state->world, &state->arrays[i], state->memory[i]);
}

static void fill(thread_state *state, int32_t i, char letter)
{
    proof_write(&state->world, letter, "fill", &state->arrays[i]);
    proof_export(&state->world, &state->arrays[i], letter);
}

static void run(thread_state *state, cai_check_program first, cai_check_program second,
                cai_check_program third)
{
    cai_check_program functions[3];
    void *arguments[3];
    functions[0] = first;
    functions[1] = second;
    functions[2] = third;
    arguments[0] = arguments[1] = arguments[2] = state;
    cai_check_threads(state->world.sim, functions, arguments, third ? 3 : 2);
}

/* What one thread does in its stream; the array is the one of its number. */
static void use(thread_state *state, int32_t i, char letter, const char *name, int32_t writes)
{
    proof_exchange(&state->world, &state->arrays[i], letter, name, writes);
}

/* ------------------------------------------------------------- two consumers */

static void read_in_2(cai_sim *sim, void *argument)
{
    (void)sim;
    use((thread_state *)argument, 0, '2', "read", 0);
}

static void read_in_3(cai_sim *sim, void *argument)
{
    (void)sim;
    use((thread_state *)argument, 0, '3', "read too", 0);
}

static void two_consumers(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_state(&state, sim, "123");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    fill(&state, 0, '1');
    run(&state, read_in_2, read_in_3, NULL);
    proof_write(&state.world, '1', "overwrite", &state.arrays[0]);
    proof_free(&state.world, state.memory[0], '1');
    proof_close(&state.world);
}

static void use_0_in_2(cai_sim *sim, void *argument)
{
    (void)sim;
    use((thread_state *)argument, 0, '2', "use", 1);
}

/* The first half of an exchange by hand; the program does the second. */
static void order_1_to_4(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    proof_world *world = &state->world;
    (void)sim;
    proof_good(world,
               cai_stream_order(&world->pool, proof_stream(world, '3'), proof_stream(world, '4'), NULL),
               "cai_stream_order");
    proof_write(world, '4', "use too", &state->arrays[1]);
}

/* Two arrays that have nothing to do with one another, but for the events of the pool. */
static void two_exchanges(cai_sim *sim, void *argument)
{
    thread_state state;
    proof_world *world = &state.world;
    int32_t i;
    (void)argument;
    open_state(&state, sim, "1234");
    for (i = 0; i < 2; i++) {
        make(&state, i, CAI_SIM_MEM_DEVICE);
        fill(&state, i, (char)('1' + 2 * i));
    }
    run(&state, use_0_in_2, order_1_to_4, NULL);
    proof_good(world,
               cai_stream_order(&world->pool, proof_stream(world, '4'), proof_stream(world, '3'), NULL),
               "cai_stream_order");
    for (i = 0; i < 2; i++) {
        proof_write(world, (char)('1' + 2 * i), "overwrite", &state.arrays[i]);
        proof_free(world, state.memory[i], (char)('1' + 2 * i));
    }
    proof_close(world);
}

static void release_0(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    (void)sim;
    proof_finish(&state->world, &state->arrays[0], '2', "use");
}

static void release_1(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    (void)sim;
    proof_finish(&state->world, &state->arrays[1], '3', "use too");
}

/* Arrays with nothing pending: both threads put one into the keep-alive list, which the program drains. */
static void two_kept_alive(cai_sim *sim, void *argument)
{
    thread_state state;
    int32_t i;
    (void)argument;
    open_state(&state, sim, "123");
    for (i = 0; i < 2; i++) {
        make(&state, i, CAI_SIM_MEM_DEVICE);
        proof_own(&state.owners[i], &state.arrays[i], &state.world, state.memory[i], 0);
    }
    run(&state, release_0, release_1, NULL);
    proof_good(&state.world, cai_keepalive_drain(&state.world.pool, NULL), "cai_keepalive_drain");
    proof_close(&state.world);
}

/* ---------------------------------------------------------------- handing over */

static void produce_and_overwrite(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    fill(state, 0, '1');
    cai_check_pass(sim, 0);
    cai_check_take(sim, 1);
    proof_write(&state->world, '1', "overwrite", &state->arrays[0]);
}

static void consume(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_check_take(sim, 0);
    use(state, 0, '2', "use", 1);
    cai_check_pass(sim, 1);
}

static void producer_and_consumer(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_state(&state, sim, "12");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    run(&state, produce_and_overwrite, consume, NULL);
    proof_free(&state.world, state.memory[0], '1');
    proof_close(&state.world);
}

static void produce_twice(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    fill(state, 0, '1');
    cai_check_pass(sim, 0);
    fill(state, 1, '1');
    cai_check_pass(sim, 0);
    cai_check_take(sim, 1);
    proof_write(&state->world, '1', "overwrite", &state->arrays[0]);
    cai_check_take(sim, 1);
    proof_write(&state->world, '1', "overwrite", &state->arrays[1]);
}

static void consume_twice(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    int32_t i;
    for (i = 0; i < 2; i++) {
        cai_check_take(sim, 0);
        use(state, i, '2', "use", 1);
        cai_check_pass(sim, 1);
    }
}

/* The producer is one array ahead. */
static void pipeline(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_state(&state, sim, "12");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    make(&state, 1, CAI_SIM_MEM_DEVICE);
    run(&state, produce_twice, consume_twice, NULL);
    proof_free(&state.world, state.memory[0], '1');
    proof_free(&state.world, state.memory[1], '1');
    proof_close(&state.world);
}

static void produce_for_two(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    fill(state, 0, '1');
    cai_check_pass(sim, 0);
    cai_check_pass(sim, 1);
    cai_check_take(sim, 2);
    cai_check_take(sim, 2);
    proof_write(&state->world, '1', "overwrite", &state->arrays[0]);
}

static void read_after_baton(thread_state *state, int32_t baton, char letter)
{
    cai_check_take(state->world.sim, baton);
    use(state, 0, letter, "read", 0);
    cai_check_pass(state->world.sim, 2);
}

static void first_reader(cai_sim *sim, void *argument)
{
    (void)sim;
    read_after_baton((thread_state *)argument, 0, '2');
}

static void second_reader(cai_sim *sim, void *argument)
{
    (void)sim;
    read_after_baton((thread_state *)argument, 1, '3');
}

static void producer_and_two_consumers(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_state(&state, sim, "123");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    run(&state, produce_for_two, first_reader, second_reader);
    proof_free(&state.world, state.memory[0], '1');
    proof_close(&state.world);
}

static void hand_on(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_check_take(sim, 0);
    use(state, 0, '2', "use", 1);
    cai_check_pass(sim, 2);
}

static void hand_back(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_check_take(sim, 2);
    use(state, 0, '3', "use again", 1);
    cai_check_pass(sim, 1);
}

/* From thread to thread, each in a stream of its own. */
static void three_in_a_row(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_state(&state, sim, "123");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    run(&state, produce_and_overwrite, hand_on, hand_back);
    proof_free(&state.world, state.memory[0], '1');
    proof_close(&state.world);
}

/* --------------------------------------------------------- per-thread streams */

/* Fills in its own stream 2, and hands out an event. */
static void fill_and_detach(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    fill(state, 0, 'P');
    proof_good(&state->world, cai_stream_detach(&state->arrays[0], &state->world.pool, NULL),
               "cai_stream_detach");
    cai_check_pass(sim, 0);
    cai_check_take(sim, 1);
    proof_write(&state->world, 'P', "overwrite", &state->arrays[0]);
    proof_wait(&state->world, 'P');
}

/* In a mode, on a stream of this thread. Nobody gives stream 2 of another one a back edge. */
static void use_in_mode(thread_state *state, char letter, int32_t mode)
{
    cai_array *list[1];
    cai_exchange_options options;
    cai_exchange ex;
    cai_status status;
    memset(&options, 0, sizeof options);
    options.mode = mode;
    list[0] = &state->arrays[0];
    status = cai_exchange_begin_with(&ex, &state->world.pool, list, 1, proof_stream(&state->world, letter),
                                     &options, NULL);
    proof_good(&state->world, status, "cai_exchange_begin_with");
    proof_write(&state->world, letter, "use", &state->arrays[0]);
    if (!status) proof_good(&state->world, cai_exchange_end(&ex, CAI_OK, NULL), "cai_exchange_end");
}

static void use_event_by_host(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_check_take(sim, 0);
    use_in_mode(state, '2', CAI_MODE_HOST);
    cai_check_pass(sim, 1);
}

static void use_event_in_own_2(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_check_take(sim, 0);
    use_in_mode(state, 'P', CAI_MODE_EVENT);
    proof_wait(&state->world, 'P');
    cai_check_pass(sim, 1);
}

static void detached_on(cai_sim *sim, cai_check_program consumer)
{
    thread_state state;
    open_state(&state, sim, "12");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    run(&state, fill_and_detach, consumer, NULL);
    proof_good(&state.world, cai_stream_drop_event(&state.arrays[0], &state.world.pool, NULL), "drop_event");
    proof_free(&state.world, state.memory[0], 0);
    proof_close(&state.world);
}

static void detached_by_host(cai_sim *sim, void *argument)
{
    (void)argument;
    detached_on(sim, use_event_by_host);
}

static void detached_in_own_2(cai_sim *sim, void *argument)
{
    (void)argument;
    detached_on(sim, use_event_in_own_2);
}

static void fill_in_own_2(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    fill(state, 0, 'P');
    cai_check_pass(sim, 0);
    cai_check_take(sim, 1);
    proof_write(&state->world, 'P', "overwrite", &state->arrays[0]);
    proof_wait(&state->world, 'P');
}

/* Stream 2 of this thread is not that of the array; where that is refused, as it must be, nothing is used. */
static void try_own_2(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_array *list[1];
    cai_exchange ex;
    list[0] = &state->arrays[0];
    cai_check_take(sim, 0);
    if (!cai_exchange_begin(&ex, &state->world.pool, list, 1, CAI_STREAM_PER_THREAD, NULL)) {
        proof_write(&state->world, 'P', "use", &state->arrays[0]);
        proof_good(&state->world, cai_exchange_end(&ex, CAI_OK, NULL), "cai_exchange_end");
    }
    cai_check_pass(sim, 1);
}

static void stream_2_refused(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_state(&state, sim, "12");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    run(&state, fill_in_own_2, try_own_2, NULL);
    proof_free(&state.world, state.memory[0], 0);
    proof_close(&state.world);
}

/* ------------------------------------------------------------------ keep-alive */

/* An array with nothing pending, used in stream 2: kept alive. */
static void use_and_release(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    release_0(sim, state);
    cai_check_pass(sim, 0);
}

static void poll_now(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    (void)sim;
    proof_good(&state->world, cai_keepalive_poll(&state->world.pool, NULL, NULL), "cai_keepalive_poll");
}

static void poll_after(cai_sim *sim, void *argument)
{
    cai_check_take(sim, 0);
    poll_now(sim, argument);
}

static void drain_after(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_check_take(sim, 0);
    proof_good(&state->world, cai_keepalive_drain(&state->world.pool, NULL), "cai_keepalive_drain");
}

static void kept_alive(cai_sim *sim, cai_check_program releases, cai_check_program other)
{
    thread_state state;
    open_state(&state, sim, "12");
    make(&state, 0, CAI_SIM_MEM_DEVICE);
    proof_own(&state.owners[0], &state.arrays[0], &state.world, state.memory[0], 0);
    run(&state, releases, other, NULL);
    proof_good(&state.world, cai_keepalive_drain(&state.world.pool, NULL), "cai_keepalive_drain");
    proof_close(&state.world);
}

static void polled_meanwhile(cai_sim *sim, void *argument)
{
    (void)argument;
    kept_alive(sim, release_0, poll_now);
}

static void polled_on_another(cai_sim *sim, void *argument)
{
    (void)argument;
    kept_alive(sim, use_and_release, poll_after);
}

static void drained_on_another(cai_sim *sim, void *argument)
{
    (void)argument;
    kept_alive(sim, use_and_release, drain_after);
}

/* The exchange ends on one thread, and another one gives the array back. */
static void use_and_end(cai_sim *sim, void *argument)
{
    use((thread_state *)argument, 0, '2', "use", 1);
    cai_check_pass(sim, 0);
}

static void release_after(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    proof_world *world = &state->world;
    cai_check_take(sim, 0);
    if (state->arrays[0].flags & CAI_ORDERED_FREE) {
        cai_array_release(&state->arrays[0]);
        return;
    }
    proof_good(world, cai_keepalive_push(&state->arrays[0], &world->pool, proof_stream(world, '2'), NULL), "push");
    proof_good(world, cai_keepalive_drain(&world->pool, NULL), "cai_keepalive_drain");
}

/* argument: "s": with a back edge, freed in that order; "a": with a back edge, freed at once; "n": without */
static void released_on_another(cai_sim *sim, void *argument)
{
    const char pending = *(const char *)argument;
    thread_state state;
    open_state(&state, sim, "12");
    make(&state, 0, pending == 's' ? CAI_SIM_MEM_POOL : CAI_SIM_MEM_DEVICE);
    if (pending != 'n') fill(&state, 0, '1');
    proof_own(&state.owners[0], &state.arrays[0], &state.world, state.memory[0],
              pending == 's' ? '1' : (char)0);
    run(&state, use_and_end, release_after, NULL);
    proof_close(&state.world);
}

/* --------------------------------------------------------------------- memory */

static void open_manager(thread_state *state, cai_sim *sim, const char *letters, char hooks)
{
    proof_world *world = &state->world;
    open_state(state, sim, letters);
    proof_good(world,
               hooks == 'a' ? cai_emm_hooks_async(&world->hooks, world->cuda, NULL, NULL)
                            : cai_emm_hooks_cuda(&world->hooks, world->cuda, NULL),
               "cai_emm_hooks");
    proof_good(world, cai_manager_init(&world->emm, &world->pool, &world->hooks, NULL, NULL), "cai_manager_init");
}

static void close_manager(thread_state *state)
{
    proof_good(&state->world, cai_keepalive_drain(&state->world.pool, NULL), "cai_keepalive_drain");
    proof_good(&state->world, cai_manager_destroy(&state->world.emm, NULL), "cai_manager_destroy");
    proof_close(&state->world);
}

static void allocate(thread_state *state, int32_t i, char letter)
{
    const int64_t extent = PROOF_BYTES / 4;
    proof_good(&state->world,
               cai_manager_array(&state->arrays[i], &state->world.emm, CAI_FLOAT32, 1, &extent,
                             proof_stream(&state->world, letter), NULL),
               "cai_manager_array");
    proof_write(&state->world, letter, "fill", &state->arrays[i]);
}

/* A block of the manager, filled in its stream. */
static void allocate_block(thread_state *state, char letter)
{
    proof_world *world = &state->world;
    proof_good(world,
               cai_manager_alloc(&state->block, &world->emm, PROOF_BYTES, 0, proof_stream(world, letter), NULL),
               "cai_manager_alloc");
    proof_array(world, &state->arrays[0], (uint64_t)(uintptr_t)cai_manager_pointer(&world->emm, state->block));
    proof_write(world, letter, "fill", &state->arrays[0]);
}

static void allocate_and_release(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    (void)sim;
    allocate(state, 1, '3');
    cai_array_release(&state->arrays[1]);
}

static void released_meanwhile(cai_sim *sim, void *argument)
{
    thread_state state;
    open_manager(&state, sim, "123", *(const char *)argument);
    allocate(&state, 0, '1');
    run(&state, release_0, allocate_and_release, NULL);
    close_manager(&state);
}

static void give_back(thread_state *state, char letter)
{
    proof_good(&state->world,
               cai_manager_free(&state->world.emm, state->block, proof_stream(&state->world, letter), NULL),
               "cai_manager_free");
}

static void read_and_free(thread_state *state, char letter)
{
    proof_read(&state->world, letter, "read", &state->arrays[0]);
    give_back(state, letter);
}

static void free_in_1(cai_sim *sim, void *argument)
{
    (void)sim;
    read_and_free((thread_state *)argument, '1');
}

static void free_in_2(cai_sim *sim, void *argument)
{
    (void)sim;
    read_and_free((thread_state *)argument, '2');
}

static void free_in_3(cai_sim *sim, void *argument)
{
    (void)sim;
    read_and_free((thread_state *)argument, '3');
}

/* Each thread gives back a reference in its stream; whoever is last frees. argument: the second stream. */
static void two_references(cai_sim *sim, void *argument)
{
    const char second = *(const char *)argument;
    thread_state state;
    open_manager(&state, sim, "123", 'a');
    allocate_block(&state, '1');
    proof_good(&state.world, cai_manager_retain(&state.world.emm, state.block, NULL), "cai_manager_retain");
    proof_wait(&state.world, '1');
    run(&state, free_in_2, second == '1' ? free_in_1 : free_in_3, NULL);
    close_manager(&state);
}

static void allocate_block_in_own_2(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    allocate_block(state, 'P');
    proof_good(&state->world,
               cai_stream_order(&state->world.pool, proof_stream(&state->world, 'P'), proof_stream(&state->world, '2'),
                                NULL), "cai_stream_order");
    cai_check_pass(sim, 0);
}

static void free_after_baton(cai_sim *sim, void *argument)
{
    cai_check_take(sim, 0);
    give_back((thread_state *)argument, '2');
}

static void freed_on_another(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_manager(&state, sim, "12", 'a');
    run(&state, allocate_block_in_own_2, free_after_baton, NULL);
    close_manager(&state);
}

static void defer_one(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    (void)sim;
    read_and_free(state, '1');
}

static void flush(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    (void)sim;
    proof_good(&state->world, cai_manager_flush(&state->world.emm, NULL), "cai_manager_flush");
}

/* Deferred by one thread, carried out by another one if that comes later, or else by destroy. */
static void flushed_on_another(cai_sim *sim, void *argument)
{
    thread_state state;
    (void)argument;
    open_manager(&state, sim, "1", 'c');
    allocate_block(&state, '1');
    run(&state, defer_one, flush, NULL);
    close_manager(&state);
}

static void allocate_in_own_2(cai_sim *sim, void *argument)
{
    allocate((thread_state *)argument, 0, 'P');
    cai_check_pass(sim, 0);
}

static void release_after_baton(cai_sim *sim, void *argument)
{
    thread_state *state = (thread_state *)argument;
    cai_check_take(sim, 0);
    cai_array_release(&state->arrays[0]);
}

/* The memory's stream is 2 of a thread; another one releases the array. */
static void stream_2_released(cai_sim *sim, void *argument)
{
    thread_state state;
    open_manager(&state, sim, "1", *(const char *)argument);
    run(&state, allocate_in_own_2, release_after_baton, NULL);
    close_manager(&state);
}

static const proof_program list_of[] = {
    {"threads: two consumers of one pool", two_consumers, NULL, 1, 2, 0},
    {"threads: two exchanges, one pool", two_exchanges, NULL, 1, 2, 0},
    {"threads: two kept alive", two_kept_alive, NULL, 1, 2, 0},
    {"threads: producer and consumer", producer_and_consumer, NULL, 1, 2, 0},
    {"threads: pipeline", pipeline, NULL, 1, 2, 0},
    {"threads: a producer and two consumers", producer_and_two_consumers, NULL, 1, 3, 60},
    {"threads: three in a row", three_in_a_row, NULL, 1, 3, 0},
    {"threads: detached, the host of another waits", detached_by_host, NULL, 1, 2, 0},
    {"threads: detached, used in stream 2 of another", detached_in_own_2, NULL, 1, 2, 0},
    {"threads: stream 2 of another is refused", stream_2_refused, NULL, 1, 2, 0},
    {"threads: polled meanwhile", polled_meanwhile, NULL, 1, 2, 0},
    {"threads: polled on another", polled_on_another, NULL, 1, 2, 0},
    {"threads: drained on another", drained_on_another, NULL, 1, 2, 0},
    {"threads: released on another, back edge", released_on_another, "s", 1, 2, 0},
    {"threads: released on another, kept alive", released_on_another, "n", 1, 2, 0},
    {"threads: released on another, freed at once", released_on_another, "a", 1, 2, 0},
    {"threads: emm, released while another allocates", released_meanwhile, "a", 1, 2, 0},
    {"threads: emm, the same with cudaFree", released_meanwhile, "c", 1, 2, 0},
    {"threads: emm, two references", two_references, "1", 1, 2, 0},
    {"threads: emm, two references, both elsewhere", two_references, "3", 1, 2, 0},
    {"threads: emm, allocated in stream 2, freed on another", freed_on_another, NULL, 1, 2, 0},
    {"threads: emm, flushed on another", flushed_on_another, NULL, 1, 2, 0},
    {"threads: emm, stream 2 released on another", stream_2_released, "a", 1, 2, 0},
    {"threads: emm, stream 2 released on another, cudaFree", stream_2_released, "c", 1, 2, 0},
};

int32_t proof_threads(const proof_program **list)
{
    *list = list_of;
    return (int32_t)(sizeof list_of / sizeof list_of[0]);
}
