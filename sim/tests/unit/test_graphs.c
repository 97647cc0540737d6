/* test_graphs.c - graphs of the simulation: captured, instantiated, launched, and judged by both oracles
 * SPDX-License-Identifier: MIT */
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"

enum { BYTES = 64 };

static cai_sim *sim;
static uint64_t s, t; /* non-blocking streams; a capture begins in `s` */
static char order[64];

/* ---------------------------------------------------------------- small steps */
static void note(void *letter)
{
    const size_t length = strlen(order);
    if (length + 1 >= sizeof order) return;
    order[length] = *(const char *)letter;
    order[length + 1] = 0;
}

static char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Work that writes down its letter when it runs. */
static void launch(uint64_t stream, char letter)
{
    const char name[2] = {letter, 0};
    CHECK_INT(cai_sim_launch(sim, stream, name, note, &letters[letter - 'A'], NULL, 0), 0);
}

/* Of calls on handles that are dead or none, the tests look at the answers. */
static void go_on(void *context, const cai_sim_undefined *what)
{
    (void)context;
    (void)what;
}

static void begin_test(void)
{
    sim = cai_sim_create(2);
    cai_sim_on_undefined(sim, go_on, NULL);
    s = cai_sim_stream_create(sim, 1);
    t = cai_sim_stream_create(sim, 1);
    order[0] = 0;
}

static void end_test(void)
{
    char text[128];
    cai_sim_run(sim);
    cai_sim_stream_destroy(sim, s);
    cai_sim_stream_destroy(sim, t);
    CHECK_INT(cai_sim_leaks(sim, text, sizeof text), 0);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
}

static void begin_capture(uint64_t stream)
{
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_RELAXED), 0);
}

/* `after` waits for what `before` has so far. */
static void join(uint64_t before, uint64_t after)
{
    const uint64_t event = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_event_record(sim, event, before), 0);
    CHECK_INT(cai_sim_stream_wait_event(sim, after, event), 0);
    CHECK_INT(cai_sim_event_destroy(sim, event), 0);
}

/* The executable of what `stream` captured; its graph is gone. */
static uint64_t end_capture(uint64_t stream, int32_t nodes)
{
    uint64_t graph = 7, executable;
    CHECK_INT(cai_sim_capture_end(sim, stream, &graph), 0);
    CHECK_INT(cai_sim_graph_node_count(sim, graph), nodes);
    executable = cai_sim_graph_instantiate(sim, graph);
    CHECK(executable != 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    return executable;
}

/* B and C are two branches between A and D. */
static uint64_t diamond(void)
{
    begin_capture(s);
    launch(s, 'A');
    join(s, t);
    launch(s, 'B');
    launch(t, 'C');
    join(t, s);
    launch(s, 'D');
    return end_capture(s, 4);
}

static void launch_graph(uint64_t executable, uint64_t stream)
{
    CHECK_INT(cai_sim_graph_launch(sim, executable, stream), 0);
}

static void drop(uint64_t executable)
{
    CHECK_INT(cai_sim_graph_executable_destroy(sim, executable), 0);
}

static int captures(uint64_t stream)
{
    cai_cuda_capture capture;
    const cai_cuda *cuda = cai_sim_cuda(sim);
    return cuda->stream_capture(cuda->self, stream, &capture) == 0 && capture.status == CAI_CAPTURE_ACTIVE;
}

/* The operation that was queued last by a letter. */
static uint64_t work_of(char letter)
{
    cai_sim_operation op;
    uint64_t id = cai_sim_operation_count(sim);
    for (; cai_sim_operation_get(sim, id, &op); id--)
        if (op.name[0] == letter) return id;
    return 0;
}

static int is_ready(uint64_t id)
{
    uint64_t ready[16];
    const int32_t count = cai_sim_ready(sim, ready, 16);
    int32_t i;
    for (i = 0; i < count && i < 16; i++)
        if (ready[i] == id) return 1;
    return 0;
}

/* ---------------------------------------------------------------------- tests */
static void test_launches(void)
{
    uint64_t executable;
    begin_test();
    executable = diamond();
    CHECK_INT(cai_sim_run(sim), 0);
    CHECK_STR(order, ""); /* what was captured does not run itself */
    launch_graph(executable, s);
    CHECK_STR(order, "");
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
    CHECK_STR(order, "ABCD");
    launch_graph(executable, t); /* in another stream than it was captured in */
    launch_graph(executable, t);
    CHECK_INT(cai_sim_stream_query(sim, t), 600);
    CHECK_INT(cai_sim_stream_synchronize(sim, t), 0);
    CHECK_STR(order, "ABCDABCDABCD");
    drop(executable);
    end_test();
}

static void test_order_inside(void)
{
    uint64_t executable;
    begin_test();
    executable = diamond();
    launch(s, 'X');
    launch_graph(executable, s);
    launch(s, 'Y');
    CHECK(!is_ready(work_of('A')));
    CHECK_INT(cai_sim_run_operation(sim, work_of('X')), 1);
    CHECK_INT(cai_sim_step(sim, s), 1); /* the begin of the launch */
    CHECK(is_ready(work_of('A')) && !is_ready(work_of('B')) && !is_ready(work_of('C')));
    CHECK_INT(cai_sim_step(sim, s), 1);
    CHECK(is_ready(work_of('B')) && is_ready(work_of('C')) && !is_ready(work_of('D')));
    CHECK_INT(cai_sim_run_operation(sim, work_of('C')), 1);
    CHECK(!is_ready(work_of('D')) && !is_ready(work_of('Y')));
    CHECK_INT(cai_sim_step(sim, s), 1); /* B, which is all that is ready */
    CHECK(is_ready(work_of('D')) && !is_ready(work_of('Y')));
    cai_sim_run(sim);
    CHECK_STR(order, "XACBDY");
    drop(executable);
    end_test();
}

/* What was pulled in and not joined by an edge to the last node is still before what comes later. */
static void test_several_ends(void)
{
    uint64_t executable;
    begin_test();
    begin_capture(s);
    join(s, t);
    launch(t, 'A');
    launch(s, 'B');
    join(t, s); /* no node comes after it */
    executable = end_capture(s, 2);
    launch_graph(executable, s);
    launch(s, 'Y');
    CHECK_INT(cai_sim_run_operation(sim, work_of('B') - 2), 1);
    CHECK(is_ready(work_of('A')) && is_ready(work_of('B'))); /* both are first */
    CHECK_INT(cai_sim_run_operation(sim, work_of('B')), 1);
    CHECK(!is_ready(work_of('Y') - 1)); /* the end of the launch */
    cai_sim_run(sim);
    CHECK_STR(order, "BAY");
    drop(executable);
    end_test();
}

static void test_one_at_a_time(void)
{
    uint64_t graph, one, other;
    begin_test();
    begin_capture(s);
    launch(s, 'A');
    CHECK_INT(cai_sim_capture_end(sim, s, &graph), 0);
    one = cai_sim_graph_instantiate(sim, graph);
    other = cai_sim_graph_instantiate(sim, graph);
    CHECK(one && other && one != other);
    launch_graph(one, s);
    launch_graph(one, t);
    CHECK_INT(cai_sim_step(sim, t), 0); /* behind the launch in the other stream */
    CHECK_INT(cai_sim_stream_synchronize(sim, t), 0);
    CHECK_STR(order, "AA");
    CHECK_INT(cai_sim_pending(sim), 0);
    launch_graph(one, s);
    launch_graph(other, t);
    CHECK_INT(cai_sim_step(sim, t), 1); /* another executable is not held up */
    CHECK_INT(cai_sim_stream_synchronize(sim, t), 0);
    CHECK_STR(order, "AAA");
    drop(one); /* in flight: it still runs */
    cai_sim_run(sim);
    CHECK_STR(order, "AAAA");
    drop(other);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    end_test();
}

static void test_legacy(void)
{
    const uint64_t blocking = (begin_test(), cai_sim_stream_create(sim, 0));
    const uint64_t executable = diamond();
    launch(blocking, 'X');
    launch_graph(executable, CAI_STREAM_LEGACY);
    launch(blocking, 'Y');
    CHECK_INT(cai_sim_stream_synchronize(sim, blocking), 0);
    CHECK_STR(order, "XABCDY");
    begin_capture(blocking);
    CHECK_INT(cai_sim_graph_launch(sim, executable, CAI_STREAM_LEGACY), 906);
    CHECK_INT(cai_sim_graph_launch(sim, executable, blocking), 900);
    CHECK_INT(cai_sim_capture_end(sim, blocking, NULL), 901);
    cai_sim_stream_destroy(sim, blocking);
    drop(executable);
    end_test();
}

/* On an H100 a graph cannot be launched into a capture. */
static void test_launch_in_capture(void)
{
    uint64_t executable;
    begin_test();
    executable = diamond();
    begin_capture(s);
    launch(s, 'X');
    CHECK_INT(cai_sim_graph_launch(sim, executable, s), 900);
    CHECK_INT(cai_sim_capture_end(sim, s, NULL), 901);
    CHECK_INT(cai_sim_run(sim), 0);
    launch_graph(executable, s);
    CHECK(cai_sim_run(sim) > 0);
    CHECK_STR(order, "ABCD");
    drop(executable);
    end_test();
}

/* Copies, sets and host functions really do it again at each launch, with the bytes of then. */
static void test_kinds_of_nodes(void)
{
    const cai_sim_extent extent = {BYTES, 1, 1}, two = {2, 1, 1};
    cai_sim_rows rows = {0, 0, 0};
    uint64_t from, to, executable;
    unsigned char *bytes, plain[BYTES] = {3};
    begin_test();
    from = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    to = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    bytes = (unsigned char *)cai_sim_bytes(sim, to);
    rows.address = to + 1;
    begin_capture(s);
    CHECK_INT(cai_sim_copy_async(sim, from, (uint64_t)(uintptr_t)plain, BYTES, s), 0);
    CHECK_INT(cai_sim_copy_async(sim, to, from, 2, s), 0);
    CHECK_INT(cai_sim_set_async(sim, &rows, &extent, 9, 1, s), 1); /* over the end */
    rows.address = to + 8;
    CHECK_INT(cai_sim_set_async(sim, &rows, &two, 9, 1, s), 0);
    CHECK_INT(cai_sim_host_function(sim, s, "host", note, &letters[7], NULL, 0), 0);
    executable = end_capture(s, 4);
    plain[0] = 4;
    launch_graph(executable, s);
    CHECK_INT(bytes[0], 0);
    cai_sim_run(sim);
    CHECK(bytes[0] == 4 && bytes[8] == 9 && bytes[9] == 9 && bytes[10] == 0);
    plain[0] = 5;
    bytes[8] = 0;
    launch_graph(executable, t);
    CHECK_INT(cai_sim_stream_synchronize(sim, t), 0);
    CHECK(bytes[0] == 5 && bytes[8] == 9);
    CHECK_STR(order, "HH");
    drop(executable);
    cai_sim_free(sim, from);
    cai_sim_free(sim, to);
    end_test();
}

static void test_touches(void)
{
    uint64_t memory, executable, before, after;
    cai_sim_access write;
    begin_test();
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    write = cai_sim_writes(memory, BYTES);
    begin_capture(s);
    CHECK_INT(cai_sim_touch(sim, s, "touch", &write, 1), 0);
    executable = end_capture(s, 1);
    launch_graph(executable, s);
    memcpy(&before, cai_sim_bytes(sim, memory), sizeof before);
    CHECK_UINT(before, 0);
    cai_sim_run(sim);
    memcpy(&before, cai_sim_bytes(sim, memory), sizeof before);
    launch_graph(executable, s);
    cai_sim_run(sim);
    memcpy(&after, cai_sim_bytes(sim, memory), sizeof after);
    CHECK(before != 0 && after != 0 && after != before);
    launch_graph(executable, s); /* the memory goes before the node runs */
    cai_sim_free(sim, memory);
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 700);
    cai_sim_set_device_error(sim, 0, 0);
    drop(executable);
    end_test();
}

static void test_errors(void)
{
    uint64_t graph = 7, executable, context, stream;
    char text[64];
    begin_test();
    CHECK_INT(cai_sim_capture_end(sim, s, &graph), 401);
    CHECK_UINT(graph, 0);
    CHECK_UINT(cai_sim_graph_instantiate(sim, 0), 0);
    CHECK_INT(cai_sim_clear_error(sim), 1);
    CHECK_INT(cai_sim_graph_destroy(sim, s), 1);
    CHECK_INT(cai_sim_graph_executable_destroy(sim, 0), 1);
    CHECK_INT(cai_sim_graph_node_count(sim, 0), -1);
    begin_capture(s);
    CHECK_INT(cai_sim_capture_end(sim, s, &graph), 0); /* an empty one */
    CHECK_INT(cai_sim_graph_node_count(sim, graph), 0);
    executable = cai_sim_graph_instantiate(sim, graph);
    CHECK_INT(cai_sim_leaks(sim, text, sizeof text), 4);
    CHECK_STR(text, "streams: s1 s2; graphs: g1; executables: x1");
    CHECK_INT(cai_sim_graph_launch(sim, graph, s), 1);
    CHECK_INT(cai_sim_graph_launch(sim, executable, 0), 400);
    launch_graph(executable, s);
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 1);
    CHECK_UINT(cai_sim_graph_instantiate(sim, graph), 0);
    drop(executable);
    CHECK_INT(cai_sim_graph_executable_destroy(sim, executable), 1);
    CHECK_INT(cai_sim_graph_launch(sim, executable, s), 1);
    context = cai_sim_context_create(sim, 0); /* the nodes' own context goes */
    CHECK_INT(cai_sim_set_context(sim, context), 0);
    stream = cai_sim_stream_create(sim, 1);
    begin_capture(stream);
    launch(stream, 'A');
    executable = end_capture(stream, 1);
    launch_graph(executable, s); /* in a stream of another context */
    CHECK_INT(cai_sim_stream_synchronize(sim, s), 0);
    CHECK_STR(order, "A");
    CHECK_INT(cai_sim_context_destroy(sim, context), 0);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(cai_sim_graph_launch(sim, executable, s), 709);
    drop(executable);
    end_test();
}

static void test_trace(void)
{
    cai_sim_operation op, begin;
    uint64_t executable, first, i;
    begin_test();
    executable = diamond();
    first = cai_sim_operation_count(sim) + 1;
    launch_graph(executable, t);
    CHECK_UINT(cai_sim_operation_count(sim) - first, 5);
    CHECK(cai_sim_operation_get(sim, first, &begin));
    CHECK_INT(begin.kind, CAI_SIM_OP_GRAPH);
    CHECK_STR(begin.name, "graph_begin");
    for (i = 0; i < 6; i++) {
        CHECK(cai_sim_operation_get(sim, first + i, &op));
        CHECK_INT(op.state, CAI_SIM_STATE_QUEUED);
        CHECK(op.stream == begin.stream && op.executable == executable && op.capture == 0);
        CHECK_INT(op.branch, i == 3); /* C alone is in the second one */
        if (i == 0 || i == 5) continue;
        CHECK_INT(op.kind, CAI_SIM_OP_LAUNCH);
        CHECK(cai_sim_operation_get(sim, op.node, &op));
        CHECK_INT(op.state, CAI_SIM_STATE_CAPTURED);
    }
    CHECK(cai_sim_operation_get(sim, first + 4, &op)); /* D, which waits for B and C */
    CHECK_INT(op.wait_count, 2);
    CHECK_UINT(op.waits[0] + op.waits[1], 2 * first + 5);
    CHECK(cai_sim_operation_get(sim, first + 5, &op));
    CHECK_STR(op.name, "graph_end");
    cai_sim_run(sim);
    CHECK(cai_sim_operation_get(sim, first + 5, &op));
    CHECK(op.state == CAI_SIM_STATE_DONE && op.order == 6);
    drop(executable);
    end_test();
}

/* A graph whose branches write: both to the same bytes, or not. Returns its executable. */
static uint64_t racing(uint64_t memory, uint64_t apart)
{
    const cai_sim_access one = cai_sim_writes(memory, 8), other = cai_sim_writes(memory + apart, 8);
    begin_capture(s);
    CHECK_INT(cai_sim_touch(sim, s, "one", &one, 1), 0);
    join(s, t);
    CHECK_INT(cai_sim_touch(sim, s, "two", &one, 1), 0);
    CHECK_INT(cai_sim_touch(sim, t, "two", &other, 1), 0);
    join(t, s);
    CHECK_INT(cai_sim_touch(sim, s, "three", &one, 1), 0);
    return end_capture(s, 4);
}

static void test_races(void)
{
    cai_check_race races[8];
    char text[CAI_CHECK_TEXT];
    cai_sim_access write;
    uint64_t memory, executable;
    begin_test();
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    write = cai_sim_writes(memory, BYTES);
    executable = racing(memory, 8);
    CHECK_INT(cai_sim_touch(sim, t, "before", &write, 1), 0);
    launch_graph(executable, t);
    launch_graph(executable, s); /* the executable orders the streams */
    launch_graph(executable, t);
    CHECK_INT(cai_sim_touch(sim, t, "after", &write, 1), 0);
    CHECK_INT(cai_check_races(sim, races, 8), 0);
    CHECK_INT(cai_sim_touch(sim, s, "elsewhere", &write, 1), 0);
    CHECK_INT(cai_check_races(sim, races, 8), 5); /* the nodes of the last launch, and "after" */
    drop(executable);
    executable = racing(memory + 32, 4);
    CHECK_INT(cai_check_races(sim, races, 8), 6); /* those in the capture */
    join(s, t);
    launch_graph(executable, t);
    CHECK_INT(cai_check_races(sim, races, 8), 7);
    cai_check_race_text(sim, &races[6], text);
    CHECK(strstr(text, "race on m1[36, 40): \"two\" writes on s2 (operation ") != NULL);
    CHECK(strstr(text, "nothing makes branch 1 of a graph on s2 wait for s2") != NULL);
    drop(executable);
    cai_sim_run(sim);
    cai_sim_free(sim, memory);
    end_test();
}

/* --------------------------------------------------------------- at random, by brute force */
enum { STREAMS = 4, MOST = 256, ROUNDS = 300 };

static uint64_t dice = 1;

static int any(int of)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (int)((dice >> 32) % (uint64_t)of);
}

static uint64_t random_streams[STREAMS];

/* A capture of some streams. */
static uint64_t random_graph(void)
{
    uint64_t graph = 0, executable;
    int i, in = 1;
    begin_capture(random_streams[0]);
    for (i = 3 + any(6); i > 0; i--) {
        const int from = any(in), to = any(in + (in < STREAMS));
        if (any(2) && from != to) join(random_streams[from], random_streams[to]);
        else launch(random_streams[from], 'A');
        if (to == in) in += captures(random_streams[to]);
    }
    for (i = 1; i < in; i++) join(random_streams[i], random_streams[0]);
    CHECK_INT(cai_sim_capture_end(sim, random_streams[0], &graph), 0);
    executable = cai_sim_graph_instantiate(sim, graph);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    return executable;
}

/* In how many pairs do the clocks say more or less than the waits. */
static int32_t differences(void)
{
    static unsigned char before[MOST + 1][MOST + 1];
    const int32_t count = (int32_t)cai_sim_operation_count(sim);
    cai_check_order *clocks = cai_check_order_make(sim);
    cai_sim_operation op;
    int32_t i, j, k, wrong = 0;
    CHECK(count <= MOST);
    memset(before, 0, sizeof before);
    for (j = 1; j <= count && count <= MOST; j++) {
        CHECK(cai_sim_operation_get(sim, (uint64_t)j, &op));
        for (i = 0; i < op.wait_count; i++) {
            before[j][op.waits[i]] = 1;
            for (k = 1; k <= count; k++) before[j][k] |= before[op.waits[i]][k];
        }
        for (i = 1; i < j; i++) wrong += before[j][i] != cai_check_before(clocks, (uint64_t)i, (uint64_t)j);
    }
    cai_check_order_free(clocks);
    return wrong;
}

/* Runs what is ready in any order: all runs, each after what it waits for. */
static void run_in_any_order(void)
{
    uint64_t ready[MOST];
    cai_sim_operation op, other;
    int32_t count, i;
    while ((count = cai_sim_ready(sim, ready, MOST)) > 0)
        CHECK_INT(cai_sim_run_operation(sim, ready[any(count)]), 1);
    CHECK_INT(cai_sim_pending(sim), 0);
    for (i = 1; cai_sim_operation_get(sim, (uint64_t)i, &op); i++) {
        int32_t k;
        for (k = 0; k < op.wait_count && op.capture == 0; k++) {
            CHECK(cai_sim_operation_get(sim, op.waits[k], &other));
            CHECK(other.capture == 0 && other.order > 0 && other.order < op.order);
        }
    }
}

static void test_at_random(void)
{
    int round, i;
    for (round = 0; round < ROUNDS; round++) {
        uint64_t executables[2];
        begin_test();
        random_streams[0] = s;
        random_streams[1] = t;
        random_streams[2] = cai_sim_stream_create(sim, 0);
        random_streams[3] = cai_sim_stream_create(sim, 0);
        executables[0] = random_graph();
        executables[1] = random_graph();
        for (i = 0; i < 5; i++) {
            launch(any(4) ? random_streams[any(STREAMS)] : CAI_STREAM_LEGACY, 'A');
            launch_graph(executables[any(2)], any(4) ? random_streams[any(STREAMS)] : CAI_STREAM_LEGACY);
        }
        CHECK_INT(differences(), 0);
        run_in_any_order();
        drop(executables[0]);
        drop(executables[1]);
        cai_sim_stream_destroy(sim, random_streams[2]);
        cai_sim_stream_destroy(sim, random_streams[3]);
        end_test();
    }
}

/* ------------------------------------------------------- both oracles on programs */
typedef struct program {
    int apart, twice, joined;
} program;

static void run_program(cai_sim *own, void *what)
{
    const program *p = (const program *)what;
    uint64_t memory, executable, other;
    cai_sim_access read;
    sim = own;
    s = cai_sim_stream_create(sim, 1);
    t = cai_sim_stream_create(sim, 1);
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    read = cai_sim_reads(memory, BYTES);
    executable = racing(memory, p->apart ? 8 : 0);
    launch_graph(executable, s);
    if (p->twice) launch_graph(executable, t);
    other = p->twice ? t : s;
    if (!p->joined) other = p->twice ? s : t;
    CHECK_INT(cai_sim_touch(sim, other, "reads", &read, 1), 0);
    CHECK_INT(cai_sim_context_synchronize(sim), 0);
    drop(executable);
    cai_sim_stream_destroy(sim, s);
    cai_sim_stream_destroy(sim, t);
    cai_sim_free(sim, memory);
}

/* The clocks and the search for orders agree, and find what there is. */
static void test_programs(void)
{
    int i;
    for (i = 0; i < 8; i++) {
        program what;
        cai_check_result result;
        cai_check_options options;
        memset(&options, 0, sizeof options);
        what.apart = i & 1;
        what.twice = i >> 1 & 1;
        what.joined = i >> 2 & 1;
        cai_check(run_program, &what, &options, &result);
        CHECK_INT(result.disagreements, 0);
        CHECK_INT(result.failed, 0);
        CHECK_INT(result.racy, !what.apart || !what.joined);
        CHECK_INT(result.changed, result.racy);
    }
}

int main(void)
{
    test_launches();
    test_order_inside();
    test_several_ends();
    test_one_at_a_time();
    test_legacy();
    test_launch_in_capture();
    test_kinds_of_nodes();
    test_touches();
    test_errors();
    test_trace();
    test_races();
    test_at_random();
    test_programs();
    return cai_test_end();
}
