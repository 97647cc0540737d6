/* programs_graphs.c - exchanges in a capture: begin and end inside of it, and the graph launched twice
 * SPDX-License-Identifier: MIT
 *
 * The kernels of both sides are nodes. Nothing but the exchange orders them: a graph has only the edges that its
 * capture made. A wait that CUDA refuses ends the capture. A program that then works without the graph has no order at
 * all, so that also a call which was left out with an error shows as a race. */
#include "programs.h"

/* One capture. Letters of world.c. */
typedef struct graph_case {
    const char *name;
    const char *producers; /* the stream of each array */
    char consumer;
    int32_t joins;         /* 1: the producer captures, and the exchange pulls the consumer in */
    int32_t rounds;        /* exchanges in the capture */
    const char *launches;  /* the streams in which the graph is launched */
} graph_case;

typedef struct graph_state {
    proof_world world;
    const graph_case *shape;
    cai_array arrays[2];
    uint64_t memory[2];
    int32_t count;
} graph_state;

/* `to` comes after what is in `from`, by the program's own hand. */
static void join(proof_world *world, char from, char to)
{
    const uint64_t before = proof_current(world, from), event = cai_sim_event_create(world->sim);
    (void)cai_sim_event_record(world->sim, event, proof_stream(world, from));
    proof_restore(world, before);
    (void)cai_sim_stream_wait_event(world->sim, proof_stream(world, to), event);
    (void)cai_sim_event_destroy(world->sim, event);
}

static void fill_all(graph_state *at)
{
    int32_t i;
    for (i = 0; i < at->count; i++)
        proof_write(&at->world, at->shape->producers[i], "fill", &at->arrays[i]);
}

/* The consumer reads all, and writes the first. */
static void use_all(graph_state *at)
{
    cai_sim_access accesses[2];
    int32_t i;
    accesses[0] = proof_writes(&at->arrays[0]);
    for (i = 1; i < at->count; i++) accesses[i] = proof_reads(&at->arrays[i]);
    proof_touch(&at->world, at->shape->consumer, "use", accesses, at->count);
}

/* Fill, exchange, fill again. False: CUDA refused an order. */
static int exchange_in_capture(graph_state *at)
{
    const cai_exchange_options joining = {0, 0, 0, CAI_EXCHANGE_JOIN_CAPTURE, 0};
    proof_world *world = &at->world;
    cai_array *arrays[2];
    cai_exchange ex;
    int32_t i;
    for (i = 0; i < at->count; i++) arrays[i] = &at->arrays[i];
    fill_all(at);
    if (cai_exchange_begin_with(&ex, &world->pool, arrays, at->count, proof_stream(world, at->shape->consumer),
                                at->shape->joins ? &joining : NULL, NULL))
        return 0;
    use_all(at);
    return !cai_exchange_finish(&ex, CAI_OK, arrays, at->count, NULL);
}

/* The graph of the capture; 0: it was invalidated. */
static uint64_t capture(graph_state *at)
{
    proof_world *world = &at->world;
    const char *producers = at->shape->producers;
    const char origin = at->shape->joins ? producers[0] : at->shape->consumer;
    uint64_t graph = 0;
    int32_t i, good = 1;
    proof_zero(world, cai_sim_capture_begin(world->sim, proof_stream(world, origin), 0), "capture_begin");
    for (i = 0; i < at->count; i++)
        if (producers[i] != origin) join(world, origin, producers[i]);
    for (i = 0; i < at->shape->rounds && good; i++) good = exchange_in_capture(at);
    if (good) fill_all(at);
    for (i = 0; i < at->count && good; i++)
        if (producers[i] != origin) join(world, producers[i], origin);
    if (cai_sim_capture_end(world->sim, proof_stream(world, origin), &graph)) graph = 0;
    if (good) return graph;
    if (graph) (void)cai_sim_graph_destroy(world->sim, graph);
    return 0;
}

static void launch(graph_state *at, uint64_t graph)
{
    proof_world *world = &at->world;
    const uint64_t executable = cai_sim_graph_instantiate(world->sim, graph);
    const char *letter;
    for (letter = at->shape->launches; *letter; letter++)
        proof_zero(world, cai_sim_graph_launch(world->sim, executable, proof_stream(world, *letter)),
                   "graph_launch");
    for (letter = at->shape->launches; *letter; letter++) proof_wait(world, *letter);
    proof_zero(world, cai_sim_graph_executable_destroy(world->sim, executable), "executable_destroy");
    proof_zero(world, cai_sim_graph_destroy(world->sim, graph), "graph_destroy");
}

static void run(cai_sim *sim, void *argument)
{
    graph_state at;
    uint64_t graph;
    int32_t i;
    memset(&at, 0, sizeof at);
    at.shape = (const graph_case *)argument;
    at.count = (int32_t)strlen(at.shape->producers);
    proof_open(&at.world, sim, PROOF_PLACES);
    for (i = 0; i < at.count; i++) {
        at.memory[i] = proof_memory_of(&at.world, at.shape->producers[i], CAI_SIM_MEM_DEVICE);
        proof_array(&at.world, &at.arrays[i], at.memory[i]);
        at.arrays[i].sync = CAI_SYNC_STREAM;
        at.arrays[i].stream = proof_stream(&at.world, at.shape->producers[i]);
    }
    (void)proof_stream(&at.world, at.shape->consumer);
    graph = capture(&at);
    if (graph) launch(&at, graph);
    else { /* the same work, with no order */
        fill_all(&at);
        use_all(&at);
        fill_all(&at);
    }
    proof_wait(&at.world, at.shape->consumer);
    for (i = 0; i < at.count; i++) proof_wait(&at.world, at.shape->producers[i]);
    for (i = 0; i < at.count; i++) proof_free(&at.world, at.memory[i], 0);
    proof_close(&at.world);
}

static const graph_case cases[] = {
    {"graph: the consumer captures", "1", '2', 0, 1, "22"},
    {"graph: launched in two streams", "1", '2', 0, 1, "23"},
    {"graph: blocking streams", "A", 'B', 0, 1, "BB"},
    {"graph: two producers", "13", '2', 0, 1, "22"},
    {"graph: two exchanges", "1", '2', 0, 2, "2"},
    {"graph: a producer on another device", "q", '2', 0, 1, "22"},
    {"graph: the producer captures, and pulls the consumer in", "1", '2', 1, 1, "11"},
};

enum { CASES = sizeof cases / sizeof cases[0] };

int32_t proof_graphs(const proof_program **list)
{
    static proof_program programs[CASES];
    int32_t i;
    for (i = 0; i < CASES; i++) {
        programs[i].name = cases[i].name;
        programs[i].program = run;
        programs[i].argument = &cases[i];
        programs[i].devices = strchr(cases[i].producers, 'q') ? 2 : 1;
        programs[i].threads = programs[i].samples = 0;
    }
    *list = programs;
    return CASES;
}
