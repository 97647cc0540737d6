/* test_dead.c - handles that are dead, or none: each call that takes one reports it
 * SPDX-License-Identifier: MIT */
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

#if defined(__unix__) && !defined(CAI_SIM_LINKED)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { NEVER = 0x12340 };

static cai_sim *sim;
static const cai_cuda *cuda;
static uint64_t c1, own, stream, event, graph, executable, pool;
static uint64_t d_context, d_stream, d_event, d_graph, d_executable, d_pool; /* dead */
static int reports;
static uint64_t made_tag, destroyed_tag;
static char call[64], name[64], kind[32], destroyed[64], text[400];

static void copy_of(char *to, size_t capacity, const char *from)
{
    const size_t length = from == NULL ? 0 : strlen(from);
    CHECK(length < capacity);
    if (length && length < capacity) memcpy(to, from, length);
    to[length < capacity ? length : 0] = 0;
}

static void note(void *context, const cai_sim_undefined *what)
{
    CHECK(context == &reports);
    reports++;
    copy_of(call, sizeof call, what->call);
    copy_of(name, sizeof name, what->name);
    copy_of(kind, sizeof kind, what->kind);
    copy_of(destroyed, sizeof destroyed, what->destroyed);
    copy_of(text, sizeof text, what->text);
    made_tag = what->made_tag;
    destroyed_tag = what->destroyed_tag;
    CHECK((what->made == NULL) == (what->destroyed == NULL));
}

static void make_all(void)
{
    stream = cai_sim_stream_create(sim, 0);
    event = cai_sim_event_create(sim);
    graph = cai_sim_graph_create(sim);
    executable = cai_sim_graph_instantiate(sim, graph);
    pool = cai_sim_pool_create(sim, 0);
    own = cai_sim_context_create(sim, 0);
}

static void start(const char *what)
{
    cai_test_note(what);
    sim = cai_sim_create(1);
    if (sim == NULL) exit(2);
    cuda = cai_sim_cuda(sim);
    cai_sim_set_options(sim, CAI_SIM_DEFAULT); /* no handle is used again */
    c1 = cai_sim_primary_retain(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cai_sim_on_undefined(sim, note, &reports);
    make_all();
    d_stream = stream;
    d_event = event;
    d_graph = graph;
    d_executable = executable;
    d_pool = pool;
    d_context = own;
    CHECK_INT(cai_sim_stream_destroy(sim, d_stream), 0);
    CHECK_INT(cai_sim_event_destroy(sim, d_event), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, d_graph), 0);
    CHECK_INT(cai_sim_graph_executable_destroy(sim, d_executable), 0);
    CHECK_INT(cai_sim_pool_destroy(sim, d_pool), 0);
    CHECK_INT(cai_sim_context_destroy(sim, d_context), 0);
    make_all();
    CHECK_INT(reports, 0);
}

static void finish(void)
{
    cai_sim_destroy(sim);
    reports = 0;
    cai_test_note("");
}

/* The last call failed, and was reported so. */
static void told(int line, const char *by, int failed, const char *of, const char *as, const char *ended)
{
    char where[32];
    (void)snprintf(where, sizeof where, "line %d", line);
    cai_test_note(where);
    CHECK(failed);
    CHECK_INT(reports, 1);
    CHECK_STR(call, by);
    CHECK_STR(kind, of);
    CHECK_STR(name, as);
    CHECK_STR(destroyed, ended);
    CHECK(strstr(text, by) != NULL && strstr(text, as) != NULL && strstr(text, "undefined") != NULL);
    reports = 0;
}

#define STREAM(name, good) told(__LINE__, name, !(good), "stream", "s1", "stream_destroy")
#define EVENT(name, good) told(__LINE__, name, !(good), "event", "e1", "event_destroy")
#define CONTEXT(name, good) told(__LINE__, name, !(good), "context", "c2", "context_destroy")
#define GRAPH(name, good) told(__LINE__, name, !(good), "graph", "g1", "graph_destroy")
#define EXECUTABLE(name, good) \
    told(__LINE__, name, !(good), "executable graph", "x1", "graph_executable_destroy")
#define POOL(name, good) told(__LINE__, name, !(good), "memory pool", "p2", "pool_destroy")
#define NONE(name, of, good) told(__LINE__, name, !(good), of, "0x12340", "")

static void test_streams_of_the_table(void)
{
    cai_cuda_capture capture;
    cai_cuda_copy copy;
    uint64_t out, memory;
    uint32_t flags;
    start("streams, table");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    memset(&copy, 0, sizeof copy);
    copy.to = copy.from = memory;
    copy.to_pitch = copy.from_pitch = copy.width = copy.to_height = copy.from_height = 1;
    copy.height = copy.depth = 1;
    STREAM("stream_context", !cuda->stream_context(sim, d_stream, &out));
    STREAM("stream_capture", !cuda->stream_capture(sim, d_stream, &capture));
    STREAM("stream_id", !cuda->stream_id(sim, d_stream, &out));
    STREAM("stream_flags", !cuda->stream_flags(sim, d_stream, &flags));
    STREAM("stream_wait_event", !cuda->stream_wait_event(sim, d_stream, event));
    STREAM("stream_synchronize", !cuda->stream_synchronize(sim, d_stream));
    STREAM("event_record", !cuda->event_record(sim, event, d_stream));
    STREAM("capture_retain", !cuda->capture_retain(sim, d_stream, free, NULL));
    STREAM("memory_alloc_async", !cuda->memory_alloc_async(sim, &out, 64, d_stream));
    STREAM("memory_alloc_from_pool", !cuda->memory_alloc_from_pool(sim, &out, 64, pool, d_stream));
    STREAM("memory_free_async", !cuda->memory_free_async(sim, memory, d_stream));
    STREAM("copy_async", !cuda->copy_async(sim, memory, memory + 32, 8, d_stream));
    STREAM("copy_3d_async", !cuda->copy_3d_async(sim, &copy, d_stream));
    STREAM("set_async", !cuda->set_async(sim, memory, 0, 8, d_stream));
    STREAM("set_2d_async", !cuda->set_2d_async(sim, memory, 8, 0, 8, 1, d_stream));
    STREAM("copy_peer_async", !cuda->copy_peer_async(sim, memory, c1, memory + 32, c1, 8, d_stream));
    STREAM("copy_3d_peer_async", !cuda->copy_3d_peer_async(sim, &copy, c1, c1, d_stream));
    NONE("stream_id", "stream", !cuda->stream_id(sim, NEVER, &out));
    finish();
}

static void test_others_of_the_table(void)
{
    uint64_t out, memory;
    cai_cuda_copy copy;
    start("events, contexts and pools, table");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    memset(&copy, 0, sizeof copy);
    EVENT("stream_wait_event", !cuda->stream_wait_event(sim, stream, d_event));
    EVENT("event_record", !cuda->event_record(sim, d_event, stream));
    EVENT("event_query", !cuda->event_query(sim, d_event));
    EVENT("event_synchronize", !cuda->event_synchronize(sim, d_event));
    EVENT("event_destroy", !cuda->event_destroy(sim, d_event));
    EVENT("context_record", !cuda->context_record(sim, c1, d_event));
    CONTEXT("context_record", !cuda->context_record(sim, d_context, event));
    CONTEXT("context_push", !cuda->context_push(sim, d_context));
    CONTEXT("copy_peer_async", !cuda->copy_peer_async(sim, memory, d_context, memory + 32, c1, 8, stream));
    CONTEXT("copy_peer_async", !cuda->copy_peer_async(sim, memory, c1, memory + 32, d_context, 8, stream));
    copy.to = copy.from = memory;
    CONTEXT("copy_3d_peer_async", !cuda->copy_3d_peer_async(sim, &copy, d_context, c1, stream));
    POOL("pool_destroy", !cuda->pool_destroy(sim, d_pool));
    POOL("memory_alloc_from_pool", !cuda->memory_alloc_from_pool(sim, &out, 64, d_pool, stream));
    NONE("event_query", "event", !cuda->event_query(sim, NEVER));
    NONE("context_push", "context", !cuda->context_push(sim, NEVER));
    NONE("context_id", "context", !cuda->context_id(sim, NEVER, &out));
    NONE("pool_destroy", "memory pool", !cuda->pool_destroy(sim, NEVER));
    cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_LIVING_CONTEXTS);
    CONTEXT("context_id", !cuda->context_id(sim, d_context, &out));
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_LIVING_CONTEXTS);
    CHECK_INT(cuda->context_id(sim, d_context, &out), 709);
    CHECK_INT(cuda->event_destroy(sim, 0), 400); /* CUDA looks for this one */
    CHECK_INT(reports, 0);
    finish();
}

static void test_streams_of_the_test(void)
{
    const cai_sim_extent one = {1, 1, 1};
    cai_sim_rows rows, more;
    uint64_t memory, out;
    start("streams, functions");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    memset(&rows, 0, sizeof rows);
    rows.address = memory;
    more = rows;
    more.address += 32;
    STREAM("stream_destroy", !cai_sim_stream_destroy(sim, d_stream));
    STREAM("event_record", !cai_sim_event_record(sim, event, d_stream));
    STREAM("stream_wait_event", !cai_sim_stream_wait_event(sim, d_stream, event));
    STREAM("stream_synchronize", !cai_sim_stream_synchronize(sim, d_stream));
    STREAM("stream_query", !cai_sim_stream_query(sim, d_stream));
    STREAM("launch", !cai_sim_launch(sim, d_stream, "x", NULL, NULL, NULL, 0));
    STREAM("host_function", !cai_sim_host_function(sim, d_stream, "x", free, NULL, NULL, 0));
    STREAM("touch", !cai_sim_touch(sim, d_stream, "x", NULL, 0));
    STREAM("copy", !cai_sim_copy(sim, memory, memory + 32, 8, d_stream));
    STREAM("copy_async", !cai_sim_copy_async(sim, memory, memory + 32, 8, d_stream));
    STREAM("copy_rows", !cai_sim_copy_rows(sim, &rows, &more, &one, d_stream));
    STREAM("copy_rows_async", !cai_sim_copy_rows_async(sim, &rows, &more, &one, d_stream));
    STREAM("set", !cai_sim_set(sim, &rows, &one, 0, 1, d_stream));
    STREAM("set_async", !cai_sim_set_async(sim, &rows, &one, 0, 1, d_stream));
    STREAM("capture_begin", !cai_sim_capture_begin(sim, d_stream, CAI_SIM_MODE_RELAXED));
    STREAM("capture_begin_to",
           !cai_sim_capture_begin_to(sim, d_stream, CAI_SIM_MODE_RELAXED, graph, NULL, 0));
    STREAM("capture_end", !cai_sim_capture_end(sim, d_stream, &out));
    STREAM("capture_graph", cai_sim_capture_graph(sim, d_stream));
    STREAM("capture_nodes", cai_sim_capture_nodes(sim, d_stream, NULL, 0) >= 0);
    STREAM("capture_depend", !cai_sim_capture_depend(sim, d_stream, NULL, 0, 0));
    STREAM("graph_launch", !cai_sim_graph_launch(sim, executable, d_stream));
    STREAM("pool_alloc", cai_sim_pool_alloc(sim, pool, 64, d_stream));
    STREAM("pool_free", !cai_sim_pool_free(sim, memory, d_stream));
    finish();
}

static void test_others_of_the_test(void)
{
    uint64_t value;
    start("events, contexts, graphs and pools, functions");
    EVENT("event_destroy", !cai_sim_event_destroy(sim, d_event));
    EVENT("event_record", !cai_sim_event_record(sim, d_event, stream));
    EVENT("event_query", !cai_sim_event_query(sim, d_event));
    EVENT("event_synchronize", !cai_sim_event_synchronize(sim, d_event));
    EVENT("stream_wait_event", !cai_sim_stream_wait_event(sim, stream, d_event));
    CONTEXT("context_destroy", !cai_sim_context_destroy(sim, d_context));
    CONTEXT("set_context", !cai_sim_set_context(sim, d_context));
    GRAPH("graph_destroy", !cai_sim_graph_destroy(sim, d_graph));
    GRAPH("graph_instantiate", cai_sim_graph_instantiate(sim, d_graph));
    GRAPH("graph_node_count", cai_sim_graph_node_count(sim, d_graph) >= 0);
    GRAPH("graph_nodes", cai_sim_graph_nodes(sim, d_graph, NULL, 0) >= 0);
    GRAPH("graph_update", !cai_sim_graph_update(sim, executable, d_graph));
    GRAPH("capture_begin_to",
          !cai_sim_capture_begin_to(sim, stream, CAI_SIM_MODE_RELAXED, d_graph, NULL, 0));
    EXECUTABLE("graph_update", !cai_sim_graph_update(sim, d_executable, graph));
    EXECUTABLE("graph_launch", !cai_sim_graph_launch(sim, d_executable, stream));
    EXECUTABLE("graph_executable_destroy", !cai_sim_graph_executable_destroy(sim, d_executable));
    POOL("pool_destroy", !cai_sim_pool_destroy(sim, d_pool));
    POOL("pool_set_current", !cai_sim_pool_set_current(sim, 0, d_pool));
    POOL("pool_alloc", cai_sim_pool_alloc(sim, d_pool, 64, stream));
    POOL("pool_trim", !cai_sim_pool_trim(sim, d_pool, 0));
    POOL("pool_get", !cai_sim_pool_get(sim, d_pool, CAI_SIM_POOL_USED, &value));
    POOL("pool_set", !cai_sim_pool_set(sim, d_pool, CAI_SIM_POOL_THRESHOLD, 0));
    POOL("pool_set_access", !cai_sim_pool_set_access(sim, d_pool, 0, 1));
    POOL("pool_access", cai_sim_pool_access(sim, d_pool, 0));
    NONE("graph_launch", "executable graph", !cai_sim_graph_launch(sim, NEVER, stream));
    CHECK_INT(cai_sim_step(sim, d_stream), 0); /* the test as the GPU: a dead stream still has work */
    CHECK_INT(reports, 0);
    finish();
}

static void test_of_a_dead_context(void)
{
    uint64_t s, e;
    start("streams and events of a context that is gone, or was reset");
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    s = cai_sim_stream_create(sim, 0);
    e = cai_sim_event_create(sim);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    told(__LINE__, "stream_synchronize", cuda->stream_synchronize(sim, s) == 709, "stream", "s3",
         "context_destroy");
    told(__LINE__, "event_query", cuda->event_query(sim, e) == 709, "event", "e3", "context_destroy");
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cuda->context_synchronize(sim), 709); /* it is current here */
    CHECK_INT(cuda->stream_synchronize(sim, CAI_STREAM_LEGACY), 709);
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_INT(reports, 0);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_sim_context_destroy(sim, c1), 0); /* a reset */
    told(__LINE__, "stream_synchronize", cuda->stream_synchronize(sim, stream) == 709, "stream", "s2",
         "context_destroy");
    told(__LINE__, "event_destroy", cuda->event_destroy(sim, event) == 709, "event", "e2", "context_destroy");
    CHECK_INT(cuda->context_synchronize(sim), 0);
    CHECK_INT(cuda->context_push(sim, c1), 0);
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_INT(reports, 0);
    finish();
}

/* Calls that a fault stops do nothing. A handle that is used again means the new stream. */
static void test_not_reported(void)
{
    uint64_t again;
    start("what is not reported");
    CHECK_INT(cai_sim_fail_op(sim, "stream_synchronize", 1, 719), 1);
    CHECK_INT(cuda->stream_synchronize(sim, d_stream), 719);
    cai_sim_recycle_handles(sim, 1);
    again = cai_sim_stream_create(sim, 0);
    CHECK_UINT(again, d_stream);
    CHECK_INT(cuda->stream_synchronize(sim, d_stream), 0);
    cai_sim_teardown(sim);
    CHECK_INT(cuda->event_query(sim, d_event), 4);
    CHECK_INT(reports, 0);
    finish();
}

static void test_text(void)
{
    start("the text");
    CHECK_INT(cuda->event_query(sim, d_event), 400);
    CHECK_STR(text, "event_query (call 21) is given event e1, which cai_sim_event_destroy (call 10) has "
                    "destroyed. cai_sim_event_create (call 4) had made it. CUDA leaves undefined what "
                    "follows.");
    CHECK_INT(cuda->event_query(sim, NEVER), 400);
    CHECK_STR(text, "event_query (call 22) is given 0x12340, which never was the handle of an event. CUDA "
                    "leaves undefined what follows.");
    finish();
}

/* A look at a handle, which does no more. */
static void test_look(void)
{
    start("looks");
    reports = 0;
    cai_sim_look(sim, "event", event);
    cai_sim_look(sim, "stream", 0);
    cai_sim_look(sim, "nothing", NEVER);
    CHECK_INT(reports, 0);
    cai_sim_look(sim, "event", d_event);
    cai_sim_look(sim, "stream", d_stream);
    cai_sim_look(sim, "graph", d_graph);
    cai_sim_look(sim, "executable graph", d_executable);
    cai_sim_look(sim, "stream", NEVER);
    CHECK_INT(reports, 5);
    finish();
}

/* The tags of the calls that made and ended a stream. */
static void test_stream_lifetime(void)
{
    cai_sim_lifetime life;
    uint64_t first, second, id = 0;
    start("lifetimes of streams");
    cai_sim_recycle_handles(sim, 1);
    cai_sim_set_tag(sim, 11);
    first = cai_sim_stream_create(sim, 0);
    cai_sim_set_tag(sim, 12);
    CHECK_INT(cai_sim_stream_destroy(sim, first), 0);
    CHECK_INT(cai_sim_stream_query(sim, first), 400);
    CHECK_INT((int)made_tag, 11);
    CHECK_INT((int)destroyed_tag, 12);
    cai_sim_set_tag(sim, 13);
    second = cai_sim_stream_create(sim, 0);
    CHECK(first == second);
    CHECK_INT(cuda->stream_id(sim, second, &id), 0);
    CHECK_INT(cai_sim_stream_lifetime(sim, id, &life), 1);
    CHECK_INT((int)life.made, 13);
    CHECK_INT(life.live, 1);
    CHECK(life.before != 0 && life.before != id);
    CHECK_INT(cai_sim_stream_lifetime(sim, life.before, &life), 1);
    CHECK_INT((int)life.made, 11);
    CHECK_INT((int)life.ended, 12);
    CHECK_INT(life.live, 0);
    CHECK(life.after == id);
    CHECK_INT(cai_sim_stream_lifetime(sim, 1000, &life), 0);
    cai_sim_clear_error(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, second), 0);
    finish();
}

/* The same for memory. */
static void test_memory_lifetime(void)
{
    cai_sim_lifetime life;
    cai_sim_pointer pointer;
    uint64_t first, memory, pooled;
    start("lifetimes of memory");
    cai_sim_set_tag(sim, 13);
    first = cai_sim_stream_create(sim, 0);
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    cai_sim_set_tag(sim, 14);
    CHECK_INT(cai_sim_free(sim, memory), 0);
    CHECK_INT(cai_sim_memory_lifetime(sim, memory + 8, &life), 1);
    CHECK_INT((int)life.made, 13);
    CHECK_INT((int)life.ended, 14);
    CHECK_INT(life.live, 0);
    CHECK_INT(life.kind, CAI_SIM_MEM_DEVICE);
    CHECK_INT(cai_sim_memory_lifetime(sim, 8, &life), 0);
    pooled = cai_sim_pool_alloc(sim, 0, 64, first);
    CHECK_INT(cai_sim_pointer_get(sim, pooled, &pointer), 0);
    CHECK_INT(pointer.ending, 0);
    CHECK_INT(cai_sim_pool_free(sim, pooled, first), 0);
    cai_sim_set_tag(sim, 15);
    CHECK_INT(cai_sim_pointer_get(sim, pooled, &pointer), 0);
    CHECK_INT(pointer.ending, 1);
    CHECK_INT(cai_sim_stream_synchronize(sim, first), 0);
    CHECK_INT(cai_sim_memory_lifetime(sim, pooled, &life), 1);
    CHECK_INT((int)life.ended, 14);
    CHECK_INT(life.live, 0);
    CHECK_INT(cai_sim_stream_destroy(sim, first), 0);
    finish();
}

/* Without a function the program ends. */
static void test_end(void)
{
#if defined(__unix__) && !defined(CAI_SIM_LINKED)
    int status = 0;
    pid_t child;
    start("the end of the program");
    cai_sim_on_undefined(sim, NULL, NULL);
    child = fork();
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        (void)cuda->event_query(sim, d_event);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    finish();
#endif
}

static void run(void)
{
    test_streams_of_the_table();
    test_others_of_the_table();
    test_streams_of_the_test();
    test_others_of_the_test();
    test_of_a_dead_context();
    test_not_reported();
    test_text();
    test_look();
    test_stream_lifetime();
    test_memory_lifetime();
    test_end();
}

CAI_TEST_MAIN(run)
