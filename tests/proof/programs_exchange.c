/* programs_exchange.c - one library gives arrays to another: every way to say what is pending, every kind of
 * stream, and every way in which the owner gets the memory back
 * SPDX-License-Identifier: MIT */
#include "programs.h"

enum { MOST = 3 };

/* What the owner does in the end. */
enum {
    OVERWRITE, /* writes the memory again, in the stream that it exported */
    RELEASE,   /* frees it when it is released, in the stream that it exported (CAI_ORDERED_FREE) or, if it named
                  none, at once; that is by a drain at the latest */
    POLL,      /* the same, with a poll before the drain */
    AT_ONCE,   /* frees it at once when it is released, whatever stream it exported */
    ELSEWHERE, /* frees it in the order of a stream that it did not name */
    UNNAMED    /* frees it in the stream that filled it (CAI_ORDERED_FREE), though the consumer may not know it */
};

/* One exchange. Strings have a letter for each array. */
typedef struct exchange_case {
    const char *name;
    const char *arrays;   /* whose stream it was filled in */
    const char *masks;    /* of its mask; '-': none; NULL: no array has one */
    const char *said;     /* s: that stream; n: nothing is pending, as the host waited; u: not known;
                             e: an event (cai_stream_detach); w: not known, and nothing is pending;
                             t, v: as s and u, in memory without a context; b: the stream of an owner that learns
                             nothing of the consumer (CAI_NO_BACK_EDGE) */
    char consumer;
    int32_t mode, unknown; /* of the options */
    char unknown_stream;   /* 0: none */
    int32_t end;
    int32_t rounds;        /* exchanges one after another; the producers write in between */
    int32_t reads;         /* 1: the consumer reads only */
} exchange_case;

typedef struct exchange_state {
    proof_world world;
    const exchange_case *shape;
    cai_array arrays[MOST], masks[MOST];
    uint64_t memory[MOST], mask_memory[MOST];
    proof_owner owners[MOST];
    int32_t count;
} exchange_state;

static int has_mask(const exchange_state *state, int32_t i)
{
    return state->shape->masks && state->shape->masks[i] != '-';
}

/* The owner named a stream, which waits for the consumer: it frees in the order of that one, else at once. */
static int frees_in_stream(const exchange_case *shape, int32_t i)
{
    const char said = shape->said[i], letter = shape->arrays[i];
    if (shape->mode == CAI_MODE_HOST || shape->end == AT_ONCE) return 0;
    if (shape->end == ELSEWHERE || shape->end == UNNAMED) return 1;
    if (said == 'u') return shape->unknown == CAI_UNKNOWN_STREAM;
    return said == 's' || (said == 'e' && letter != 'P' && letter != 'p');
}

/* Memory that can be freed so, and that the host may touch where it does. */
static int32_t kind_of(const exchange_case *shape, int32_t i)
{
    if (shape->mode == CAI_MODE_HOST) return CAI_SIM_MEM_PINNED;
    if (shape->said[i] == 't' || shape->said[i] == 'v') return CAI_SIM_MEM_POOL;
    return shape->end != OVERWRITE && frees_in_stream(shape, i) ? CAI_SIM_MEM_POOL : CAI_SIM_MEM_DEVICE;
}

/* How many arrays, masks and consumers the stream of a letter has. */
static int uses_of(const exchange_case *shape, char letter)
{
    const char *const lists[2] = {shape->arrays, shape->masks};
    int uses = shape->consumer == letter, k;
    const char *at;
    for (k = 0; k < 2; k++) {
        for (at = lists[k]; at && *at; at++) uses += *at == letter;
    }
    return uses;
}

/* A producer fills an array, and says what is pending. */
static void produce(proof_world *world, cai_array *array, uint64_t memory, char letter, char said)
{
    const uint64_t before = proof_current(world, letter);
    proof_array(world, array, memory);
    proof_write(world, letter, "fill", array);
    if (said == 'n' || said == 'w') proof_wait(world, letter);
    if (strchr("steb", said)) proof_export(world, array, letter);
    if (said == 'b') array->flags |= CAI_NO_BACK_EDGE;
    if (said == 'e') proof_good(world, cai_stream_detach(array, &world->pool, NULL), "cai_stream_detach");
    if (said == 'u' || said == 'v' || said == 'w') array->sync = CAI_SYNC_UNKNOWN;
    proof_restore(world, before);
}

static void produce_all(exchange_state *state)
{
    const exchange_case *shape = state->shape;
    proof_world *world = &state->world;
    int32_t i;
    for (i = 0; i < state->count; i++) {
        state->memory[i] = proof_memory_of(world, shape->arrays[i], kind_of(shape, i));
        produce(world, &state->arrays[i], state->memory[i], shape->arrays[i], shape->said[i]);
        if (!has_mask(state, i)) continue;
        state->mask_memory[i] = proof_memory_of(world, shape->masks[i], CAI_SIM_MEM_DEVICE);
        produce(world, &state->masks[i], state->mask_memory[i], shape->masks[i], 's');
        state->arrays[i].mask = &state->masks[i];
    }
    for (i = 0; i < state->count && shape->end != OVERWRITE; i++) {
        const char letter = shape->end == ELSEWHERE || shape->said[i] == 'b' ? '9' : shape->arrays[i];
        proof_own(&state->owners[i], &state->arrays[i], world, state->memory[i],
                  frees_in_stream(shape, i) ? letter : (char)0);
        if (uses_of(shape, shape->arrays[i]) == 1) state->owners[i].drops = shape->arrays[i];
        if (shape->end == ELSEWHERE) state->arrays[i].flags &= ~(uint32_t)CAI_ORDERED_FREE;
    }
}

static void refill_all(exchange_state *state)
{
    int32_t i;
    for (i = 0; i < state->count; i++)
        proof_write(&state->world, state->shape->arrays[i], "fill again", &state->arrays[i]);
}

/* The consumer's kernel, and what the host does beside it where it may. */
static void consume(exchange_state *state, uint64_t stream)
{
    const exchange_case *shape = state->shape;
    proof_world *world = &state->world;
    cai_sim_access accesses[2 * MOST];
    int32_t i, count = 0;
    for (i = 0; i < state->count; i++) {
        accesses[count++] = shape->reads ? proof_reads(&state->arrays[i]) : proof_writes(&state->arrays[i]);
        if (has_mask(state, i)) accesses[count++] = proof_reads(&state->masks[i]);
    }
    if (shape->mode == CAI_MODE_HOST) (void)cai_sim_host_access(world->sim, "look", accesses, count);
    proof_touch_stream(world, stream, "use", accesses, count);
}

/* finishes: the arrays go back */
static void exchange_once(exchange_state *state, int32_t finishes)
{
    const exchange_case *shape = state->shape;
    proof_world *world = &state->world;
    cai_array *list[MOST];
    const uint64_t stream = proof_stream(world, shape->consumer);
    const uint64_t before = proof_current(world, shape->consumer);
    cai_exchange_options options;
    cai_exchange ex;
    cai_status status;
    int32_t i;
    memset(&options, 0, sizeof options);
    options.mode = shape->mode;
    options.unknown = shape->unknown;
    if (shape->unknown_stream) options.unknown_stream = proof_stream(world, shape->unknown_stream);
    for (i = 0; i < state->count; i++) list[i] = &state->arrays[i];
    status = shape->mode || shape->unknown
                 ? cai_exchange_begin_with(&ex, &world->pool, list, state->count, stream, &options, NULL)
                 : cai_exchange_begin(&ex, &world->pool, list, state->count, stream, NULL);
    proof_good(world, status, "cai_exchange_begin");
    consume(state, stream);
    if (!status && finishes)
        proof_good(world, cai_exchange_finish(&ex, CAI_OK, list, state->count, NULL), "cai_exchange_finish");
    else if (!status)
        proof_good(world, cai_exchange_end(&ex, CAI_OK, NULL), "cai_exchange_end");
    proof_restore(world, before);
}

/* Does somebody still need the stream of a letter? */
static int is_needed(const exchange_state *state, char letter)
{
    const exchange_case *shape = state->shape;
    int32_t i;
    for (i = 0; i < state->count; i++) {
        const int keeps = shape->end == OVERWRITE || !state->owners[i].released;
        if (has_mask(state, i) && shape->masks[i] == letter) return 1;
        if (keeps && shape->arrays[i] == letter) return 1;
    }
    return 0;
}

/* Each stream goes at the first moment at which it may: the consumer's after the end, a producer's when its
 * arrays are released (in the last release where it is of one array). */
static void drop_streams(exchange_state *state)
{
    const exchange_case *shape = state->shape;
    int32_t i;
    if (!is_needed(state, shape->consumer)) proof_drop(&state->world, shape->consumer);
    for (i = 0; i < state->count; i++) {
        if (!is_needed(state, shape->arrays[i])) proof_drop(&state->world, shape->arrays[i]);
    }
}

static void release_rest(exchange_state *state)
{
    const exchange_case *shape = state->shape;
    proof_world *world = &state->world;
    const uint64_t before = proof_current(world, shape->consumer);
    if (shape->end == POLL)
        proof_good(world, cai_keepalive_poll(&world->pool, NULL, NULL), "poll");
    proof_good(world, cai_keepalive_drain(&world->pool, NULL), "drain");
    proof_restore(world, before);
}

/* The owner of the masks, and of arrays that were lent, goes on in its stream. */
static void reuse_all(exchange_state *state)
{
    const exchange_case *shape = state->shape;
    proof_world *world = &state->world;
    int32_t i;
    for (i = 0; i < state->count; i++) {
        if (shape->end == OVERWRITE) proof_write(world, shape->arrays[i], "overwrite", &state->arrays[i]);
        if (has_mask(state, i)) proof_write(world, shape->masks[i], "overwrite mask", &state->masks[i]);
    }
    for (i = 0; i < state->count; i++) {
        if (shape->end == OVERWRITE) proof_free(world, state->memory[i], shape->arrays[i]);
        if (has_mask(state, i)) proof_free(world, state->mask_memory[i], shape->masks[i]);
    }
}

static void exchange(cai_sim *sim, void *argument)
{
    exchange_state state;
    int32_t i;
    memset(&state, 0, sizeof state);
    state.shape = (const exchange_case *)argument;
    state.count = (int32_t)strlen(state.shape->arrays);
    proof_open(&state.world, sim, PROOF_PLACES);
    produce_all(&state);
    for (i = 0; i < state.shape->rounds; i++) {
        if (i) refill_all(&state);
        exchange_once(&state, state.shape->end != OVERWRITE && i == state.shape->rounds - 1);
    }
    drop_streams(&state);
    if (state.shape->end != OVERWRITE) release_rest(&state);
    drop_streams(&state);
    reuse_all(&state);
    for (i = 0; i < state.count; i++) /* those that were lent; the others went with their arrays */
        proof_good(&state.world, cai_stream_drop_event(&state.arrays[i], &state.world.pool, NULL), "drop_event");
    proof_close(&state.world);
}

#define EVENT CAI_MODE_EVENT, 0, 0
#define UNKNOWN(policy, stream) CAI_MODE_EVENT, CAI_UNKNOWN_##policy, stream

static const exchange_case cases[] = {
    /* streams of both sides */
    {"non-blocking streams", "1", NULL, "s", '2', EVENT, OVERWRITE, 1, 0},
    {"blocking streams", "A", NULL, "s", 'B', EVENT, OVERWRITE, 1, 0},
    {"non-blocking producer, blocking consumer", "1", NULL, "s", 'A', EVENT, OVERWRITE, 1, 0},
    {"legacy producer", "L", NULL, "s", '1', EVENT, OVERWRITE, 1, 0},
    {"legacy consumer", "1", NULL, "s", 'L', EVENT, OVERWRITE, 1, 0},
    {"legacy producer, blocking consumer", "L", NULL, "s", 'A', EVENT, OVERWRITE, 1, 0},
    {"per-thread producer", "P", NULL, "s", '1', EVENT, OVERWRITE, 1, 0},
    {"per-thread consumer", "1", NULL, "s", 'P', EVENT, OVERWRITE, 1, 0},
    {"per-thread producer, legacy consumer", "P", NULL, "s", 'L', EVENT, OVERWRITE, 1, 0},
    {"one stream", "1", NULL, "s", '1', EVENT, OVERWRITE, 1, 0},
    {"legacy stream on both sides", "L", NULL, "s", 'L', EVENT, OVERWRITE, 1, 0},
    {"per-thread stream on both sides", "P", NULL, "s", 'P', EVENT, OVERWRITE, 1, 0},
    {"consumer only reads", "1", NULL, "s", '2', EVENT, OVERWRITE, 1, 1},
    {"three exchanges in a row", "1", NULL, "s", '2', EVENT, OVERWRITE, 3, 0},
    /* several arrays */
    {"two producers", "12", NULL, "ss", '3', EVENT, OVERWRITE, 1, 0},
    {"one producer of two arrays", "11", NULL, "ss", '3', EVENT, OVERWRITE, 1, 0},
    {"a producer, and the consumer's own array", "13", NULL, "ss", '3', EVENT, OVERWRITE, 1, 0},
    {"three arrays of two producers", "112", NULL, "sss", '3', EVENT, OVERWRITE, 1, 0},
    {"three producers", "123", NULL, "sss", '4', EVENT, OVERWRITE, 1, 0},
    {"three kinds of producers", "1AL", NULL, "sss", '4', EVENT, OVERWRITE, 1, 0},
    {"two producers, one of them per-thread", "1P", NULL, "ss", '2', EVENT, OVERWRITE, 1, 0},
    {"two arrays, one with nothing pending", "12", NULL, "sn", '3', EVENT, RELEASE, 1, 0},
    {"two producers, two exchanges", "12", NULL, "ss", '3', EVENT, OVERWRITE, 2, 0},
    /* masks */
    {"mask in another stream", "1", "2", "s", '3', EVENT, OVERWRITE, 1, 0},
    {"mask in the same stream", "1", "1", "s", '3', EVENT, OVERWRITE, 1, 0},
    {"mask in the consumer's stream", "1", "3", "s", '3', EVENT, OVERWRITE, 1, 0},
    {"array in the consumer's stream, mask in another", "3", "1", "s", '3', EVENT, OVERWRITE, 1, 0},
    {"mask in the legacy stream", "1", "L", "s", '3', EVENT, OVERWRITE, 1, 0},
    {"mask of the second array in the stream of the first", "12", "-1", "ss", '3', EVENT, OVERWRITE, 1, 0},
    {"mask pending, array not", "1", "2", "n", '3', EVENT, RELEASE, 1, 0},
    {"mask in another stream, released", "1", "2", "s", '3', EVENT, RELEASE, 1, 0},
    /* releases */
    {"released with a back edge", "1", NULL, "s", '2', EVENT, RELEASE, 1, 0},
    {"two released with back edges", "12", NULL, "ss", '3', EVENT, RELEASE, 1, 0},
    {"released in its own stream", "1", NULL, "s", '1', EVENT, RELEASE, 1, 0},
    {"kept alive, drained", "1", NULL, "n", '2', EVENT, RELEASE, 1, 0},
    {"kept alive, polled", "1", NULL, "n", '2', EVENT, POLL, 1, 0},
    {"kept alive by the legacy stream", "1", NULL, "n", 'L', EVENT, RELEASE, 1, 0},
    {"kept alive by the per-thread stream", "1", NULL, "n", 'P', EVENT, RELEASE, 1, 0},
    {"two kept alive, polled", "12", NULL, "nn", '3', EVENT, POLL, 1, 0},
    {"freed at once, with a back edge", "1", NULL, "s", '2', EVENT, AT_ONCE, 1, 0},
    {"freed at once, in its own stream", "1", NULL, "s", '1', EVENT, AT_ONCE, 1, 0},
    {"freed at once, detached", "1", NULL, "e", '2', EVENT, AT_ONCE, 1, 0},
    {"freed at once, with a mask", "1", "2", "s", '3', EVENT, AT_ONCE, 1, 0},
    {"two freed at once, one event for both", "12", NULL, "sn", '3', EVENT, AT_ONCE, 1, 0},
    {"three freed at once, by the legacy stream", "11A", NULL, "sns", 'L', EVENT, AT_ONCE, 1, 0},
    {"freed at once, after two exchanges", "1", NULL, "s", '2', EVENT, AT_ONCE, 2, 0},
    {"freed in another stream", "1", NULL, "s", '2', EVENT, ELSEWHERE, 1, 0},
    {"freed in another stream, its own", "1", NULL, "s", '1', EVENT, ELSEWHERE, 1, 0},
    {"freed in a stream that nobody named", "1", NULL, "n", '2', EVENT, UNNAMED, 1, 0},
    {"freed in a stream whose event was named", "P", NULL, "e", '2', EVENT, UNNAMED, 1, 0},
    {"freed in a stream without a way back", "1", NULL, "b", '2', EVENT, UNNAMED, 1, 0},
    {"freed in an unnamed stream, ignore mode", "1", NULL, "n", '2', CAI_MODE_IGNORE, 0, 0, UNNAMED, 1, 0},
    {"no way back, released", "1", NULL, "b", '2', EVENT, RELEASE, 1, 0},
    {"no way back, in the consumer's own stream", "1", NULL, "b", '1', EVENT, POLL, 1, 0},
    {"no way back, of a mask's array", "1", "2", "b", '3', EVENT, RELEASE, 1, 0},
    {"no way back, host mode", "1", NULL, "b", '2', CAI_MODE_HOST, 0, 0, RELEASE, 1, 0},
    {"unknown: synchronize", "1", NULL, "u", '2', UNKNOWN(SYNCHRONIZE, 0), RELEASE, 1, 0},
    {"unknown: a stream", "1", NULL, "u", '2', UNKNOWN(STREAM, '1'), RELEASE, 1, 0},
    {"unknown: legacy", "A", NULL, "u", '2', UNKNOWN(LEGACY, 0), RELEASE, 1, 0},
    {"unknown: trust", "1", NULL, "w", '2', UNKNOWN(ASSUME_IDLE, 0), POLL, 1, 0},
    {"unknown: synchronize, one stream", "12", NULL, "us", '3', UNKNOWN(SYNCHRONIZE, 0), RELEASE, 1, 0},
    /* modes */
    {"host mode, released", "1", NULL, "s", '2', CAI_MODE_HOST, 0, 0, RELEASE, 1, 0},
    {"host mode, two producers", "12", NULL, "ss", '3', CAI_MODE_HOST, 0, 0, OVERWRITE, 1, 0},
    {"host mode, legacy producer", "L", NULL, "s", '2', CAI_MODE_HOST, 0, 0, OVERWRITE, 1, 0},
    {"host mode, event", "1", NULL, "e", '2', CAI_MODE_HOST, 0, 0, RELEASE, 1, 0},
    {"host mode, unknown", "1", NULL, "u", '2', CAI_MODE_HOST, 0, 0, RELEASE, 1, 0},
    {"ignore mode, kept alive", "1", NULL, "n", '3', CAI_MODE_IGNORE, 0, 0, RELEASE, 1, 0},
    /* events */
    {"detached", "1", NULL, "e", '2', EVENT, OVERWRITE, 1, 0},
    {"detached from the per-thread stream", "P", NULL, "e", '2', EVENT, RELEASE, 1, 0},
    {"detached from per-thread, legacy consumer", "P", NULL, "e", 'L', EVENT, POLL, 1, 0},
    {"two detached", "12", NULL, "ee", '3', EVENT, OVERWRITE, 1, 0},
    {"one detached, one not", "12", NULL, "es", '3', EVENT, RELEASE, 1, 0},
    {"one detached from per-thread, one not", "P1", NULL, "es", '3', EVENT, RELEASE, 1, 0},
    {"detached, consumer in the same stream", "1", NULL, "e", '1', EVENT, RELEASE, 1, 0},
    {"detached from per-thread, beside a named stream", "P1", NULL, "eu", '2', UNKNOWN(STREAM, '1'), RELEASE, 1, 0},
    {"detached from per-thread, the consumer's stream named", "P", NULL, "e", '1', UNKNOWN(STREAM, '1'), RELEASE, 1,
     0},
    {"detached, ignore mode", "P", NULL, "e", 'P', CAI_MODE_IGNORE, 0, 0, RELEASE, 1, 0},
    /* devices and contexts */
    {"producer on another device", "q", NULL, "s", '1', EVENT, OVERWRITE, 1, 0},
    {"producers on two devices", "1q", NULL, "ss", '2', EVENT, OVERWRITE, 1, 0},
    {"legacy streams of two devices", "l", NULL, "s", 'L', EVENT, OVERWRITE, 1, 0},
    {"legacy producers on two devices", "Ll", NULL, "ss", '1', EVENT, OVERWRITE, 1, 0},
    {"per-thread producers on two devices", "Pp", NULL, "ss", '1', EVENT, OVERWRITE, 1, 0},
    {"consumer on another device", "1", NULL, "s", 'q', EVENT, OVERWRITE, 1, 0},
    {"unknown on another device: legacy", "x", NULL, "u", '1', UNKNOWN(LEGACY, 0), RELEASE, 1, 0},
    {"unknown on another device: synchronize", "q", NULL, "u", '1', UNKNOWN(SYNCHRONIZE, 0), RELEASE, 1, 0},
    {"producers on two devices, released", "q1", NULL, "ss", '2', EVENT, RELEASE, 1, 0},
    {"producer in a second context", "u", NULL, "s", '1', EVENT, OVERWRITE, 1, 0},
    {"legacy stream of a second context", "k", NULL, "s", '1', EVENT, OVERWRITE, 1, 0},
    {"legacy streams of two contexts", "k", NULL, "s", 'L', EVENT, OVERWRITE, 1, 0},
    {"legacy producers in two contexts", "Lk", NULL, "ss", '1', EVENT, OVERWRITE, 1, 0},
    {"pool memory, legacy stream of a second context", "k", NULL, "t", 'u', EVENT, OVERWRITE, 1, 0},
    {"unknown in pool memory of a second context", "u", NULL, "v", 'k', UNKNOWN(SYNCHRONIZE, 0), RELEASE, 1, 0},
    {"unknown in pool memory, consumer in a second context", "1", NULL, "v", 'u', UNKNOWN(SYNCHRONIZE, 0), RELEASE,
     1, 0},
    {"mask on another device", "1", "q", "s", '2', EVENT, OVERWRITE, 1, 0},
};

enum { CASES = sizeof cases / sizeof cases[0] };

int32_t proof_exchanges(const proof_program **list)
{
    static proof_program programs[CASES];
    int32_t i;
    for (i = 0; i < CASES; i++) {
        programs[i].name = cases[i].name;
        programs[i].program = exchange;
        programs[i].argument = &cases[i];
        programs[i].devices = strpbrk(cases[i].arrays, "qlpx") || cases[i].consumer == 'q' ||
                                      (cases[i].masks && strchr(cases[i].masks, 'q'))
                                  ? 2
                                  : 1;
        programs[i].threads = programs[i].samples = 0;
    }
    *list = programs;
    return CASES;
}
