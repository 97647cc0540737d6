/* rules_graphs.c - graphs that are captured, instantiated and launched: what their nodes come after.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

#define LAUNCH "CUDA Driver API, cuGraphLaunch"
#define GUIDE "CUDA Programming Guide, CUDA Graphs"

enum { BYTES = 4096 };

/* ---------------------------------------------------------------- small steps */
static int begin(uint64_t stream)
{
    return world_capture_begin(stream, WORLD_RELAXED) == 0;
}

/* The executable of what a stream captured; 0: something failed. Its graph is gone. */
static uint64_t end(uint64_t stream)
{
    uint64_t graph = 0, executable;
    if (world_capture_graph(stream, &graph)) return 0;
    executable = world_graph_instantiate(graph);
    return world_graph_destroy(graph) ? 0 : executable;
}

/* Of a kernel that waits for `flag`. */
static uint64_t one_kernel(uint64_t stream, int32_t flag, int32_t mark)
{
    if (!begin(stream) || world_launch(stream, flag, mark)) return 0;
    return end(stream);
}

/* Two branches: FIRST, which waits for GATE, in `stream`, and SECOND. */
static uint64_t two_branches(uint64_t stream)
{
    const uint64_t other = new_stream(NONBLOCKING);
    if (!begin(stream) || !order(stream, other)) return 0;
    if (spin(stream, FIRST) || world_launch(other, 0, SECOND) || !order(other, stream)) return 0;
    return end(stream);
}

/* ---------------------------------------------------------------------- rules */
static void launched(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), executable = one_kernel(stream, 0, FIRST);
    EXPECT(executable != 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(!world_ran(FIRST));
    EXPECT_INT(world_graph_launch(executable, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(world_ran(FIRST));
}

static void after_the_stream(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), executable = one_kernel(stream, 0, SECOND);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(world_graph_launch(executable, stream), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, stream));
}

static void before_the_stream(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), executable = two_branches(stream);
    EXPECT_INT(world_graph_launch(executable, stream), 0);
    EXPECT_INT(world_launch(stream, 0, THIRD), 0);
    EXPECT(held(THIRD));
    EXPECT(follows(THIRD, FIRST, stream));
    EXPECT(world_saw(THIRD, SECOND));
}

static void one_at_a_time(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    const uint64_t executable = one_kernel(stream, 0, SECOND);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(world_graph_launch(executable, stream), 0);
    EXPECT_INT(world_graph_launch(executable, other), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, other));
}

static void two_executables(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    uint64_t graph = 0, first, second;
    EXPECT(begin(stream));
    EXPECT_INT(world_launch(stream, 0, SECOND), 0);
    EXPECT_INT(world_capture_graph(stream, &graph), 0);
    first = world_graph_instantiate(graph);
    second = world_graph_instantiate(graph);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(world_graph_launch(first, stream), 0);
    EXPECT_INT(world_graph_launch(second, other), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT(!world_ran(FIRST));
}

static void branches(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), executable = two_branches(stream);
    EXPECT_INT(world_graph_launch(executable, stream), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT(!world_ran(FIRST));
}

static void edges(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    uint64_t executable;
    EXPECT(begin(stream));
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT(order(stream, other));
    EXPECT_INT(world_launch(other, 0, SECOND), 0);
    EXPECT(order(other, stream));
    EXPECT_INT(world_launch(stream, 0, THIRD), 0);
    executable = end(stream);
    EXPECT_INT(world_graph_launch(executable, stream), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, stream));
    EXPECT(world_saw(THIRD, SECOND));
}

static void launched_in_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), executable = one_kernel(stream, 0, FIRST);
    uint64_t graph = 0;
    EXPECT(begin(stream));
    EXPECT_INT(world_graph_launch(executable, stream), 900);
    (void)world_capture_graph(stream, &graph); /* which may have been invalidated */
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(!world_ran(FIRST));
}

static void outlives_its_graph(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), executable = one_kernel(stream, 0, FIRST);
    EXPECT_INT(world_graph_launch(executable, stream), 0); /* its graph was destroyed before */
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(world_ran(FIRST));
}

static void destroyed_in_flight(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), executable = one_kernel(stream, GATE, FIRST);
    EXPECT_INT(world_graph_launch(executable, stream), 0);
    EXPECT_INT(world_executable_destroy(executable), 0);
    EXPECT(held(FIRST));
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(world_ran(FIRST));
}

/* At each launch the bytes of then. */
static void each_launch(void)
{
    const uint64_t from = new_memory(WORLD_PINNED), to = new_memory(WORLD_PINNED);
    const uint64_t device = new_memory(WORLD_DEVICE), stream = new_stream(NONBLOCKING);
    unsigned char *const source = (unsigned char *)(uintptr_t)from;
    const unsigned char *const result = (const unsigned char *)(uintptr_t)to;
    uint64_t executable;
    int i;
    EXPECT(begin(stream));
    EXPECT_INT(world_copy_async(device, from, BYTES, stream), 0);
    EXPECT_INT(world_copy_async(to, device, BYTES, stream), 0);
    executable = end(stream);
    for (i = 1; i < 4; i++) {
        source[0] = (unsigned char)i;
        EXPECT_INT(world_graph_launch(executable, stream), 0);
        EXPECT_INT(synchronize(stream), 0);
        EXPECT_INT(result[0], i);
    }
}

static void nodes(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    const uint64_t memory = new_memory(WORLD_DEVICE);
    uint64_t graph = 0;
    EXPECT(begin(stream));
    EXPECT_INT(world_launch(stream, 0, FIRST), 0);
    EXPECT(order(stream, other));
    EXPECT_INT(world_host_function(other, SECOND), 0);
    EXPECT_INT(world_fill_async(memory, 1, BYTES, stream), 0);
    EXPECT(order(other, stream));
    EXPECT_INT(world_capture_graph(stream, &graph), 0);
    EXPECT_INT(world_graph_nodes(graph), 3);
}

static void no_graph(void)
{
    const uint64_t stream = new_stream(BLOCKING);
    uint64_t graph = 1;
    EXPECT(begin(stream));
    EXPECT_INT(synchronize(CAI_STREAM_LEGACY), 906);
    EXPECT_INT(world_capture_graph(stream, &graph), 901);
    EXPECT(graph == 0);
}

const rule rules_of_graphs[] = {
    {"N01", "a graph does at its launch what was captured", LAUNCH, RULE_DOCUMENTED, 0, launched},
    {"N02", "a launch of a graph comes after the work before it in its stream",
     LAUNCH " (\"behind both any previous work in hStream\")", RULE_DOCUMENTED, 0, after_the_stream},
    {"N03", "work after a launch of a graph waits for all of its branches",
     GUIDE " (\"launched into a stream, similar to any other CUDA work\")", RULE_DOCUMENTED, 0,
     before_the_stream},
    {"N04", "two launches of one executable are ordered, also in two streams",
     LAUNCH " (\"any previous launches of hGraphExec\")", RULE_DOCUMENTED, 0, one_at_a_time},
    {"N05", "launches of two executables of one graph are not ordered",
     LAUNCH " (\"it must be instantiated multiple times\")", RULE_DOCUMENTED, 0, two_executables},
    {"N06", "two branches of a graph are not ordered",
     GUIDE ", Graph Structure (\"may be scheduled at any time once the nodes on which it depends are "
           "complete\")",
     RULE_OBSERVED, 0, branches},
    {"N07", "records and waits of the capture are the edges of the graph",
     GUIDE ", Cross-stream Dependencies and Events", RULE_DOCUMENTED, 0, edges},
    {"N08", "a launch in a stream that captures is 900, and does not run", "not said", RULE_OBSERVED, 0,
     launched_in_capture},
    {"N09", "an executable can be launched after its graph was destroyed",
     "CUDA Driver API, cuGraphInstantiate", RULE_DOCUMENTED, 0, outlives_its_graph},
    {"N10", "an executable may be destroyed while it runs: the call does not block, and the work is done",
     "CUDA Driver API, cuGraphExecDestroy (\"freed asynchronously on completion\")", RULE_DOCUMENTED, 0,
     destroyed_in_flight},
    {"N11", "each launch of a graph copies what is there then", LAUNCH, RULE_DOCUMENTED, 0, each_launch},
    {"N12", "launches, fills and host functions are nodes of a graph, records and waits are none",
     GUIDE ", Node Types; Cross-stream Dependencies and Events", RULE_DOCUMENTED, 0, nodes},
    {"N13", "the end of a capture that was invalidated gives no graph",
     "CUDA Driver API, cuStreamEndCapture (\"a NULL graph will be returned\")", RULE_DOCUMENTED, 0,
     no_graph},
    {NULL, NULL, NULL, 0, 0, NULL}};
