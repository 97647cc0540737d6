/* test_newer.c - the slots of CUDA 12 and of pools: ids and records of contexts, flags, pools of one's own
 * SPDX-License-Identifier: MIT */
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

static cai_sim *sim;
static const cai_cuda *cuda;
static uint64_t c1;

static void start(const char *note)
{
    cai_test_note(note);
    sim = cai_sim_create(1);
    if (sim == NULL) exit(2);
    cuda = cai_sim_cuda(sim);
    c1 = cai_sim_primary_retain(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
}

static void finish(void)
{
    cai_sim_destroy(sim);
    cai_test_note("");
}

static void test_context_id(void)
{
    uint64_t first = 0, other = 0, again = 0, own;
    start("context_id");
    own = cai_sim_context_create(sim, 0);
    CHECK_INT(cuda->context_id(sim, c1, &first), 0);
    CHECK_INT(cuda->context_id(sim, own, &other), 0);
    CHECK(first && other && first != other);
    CHECK_INT(cuda->context_id(sim, c1, &again), 0);
    CHECK_UINT(again, first);
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_LIVING_CONTEXTS);
    CHECK_INT(cuda->context_id(sim, own, &again), 709);
    CHECK_INT(cuda->context_id(sim, 0, &again), 201);
    CHECK_INT(cai_sim_context_destroy(sim, c1), 0); /* a reset */
    CHECK_INT(cuda->context_id(sim, c1, &again), 0);
    CHECK(again != first && again != other);
    CHECK_INT(cai_sim_capture_begin(sim, cai_sim_stream_create(sim, 0), CAI_SIM_MODE_GLOBAL), 0);
    CHECK_INT(cuda->context_id(sim, c1, &other), 0);
    CHECK_UINT(other, again);
    finish();
}

/* Blocking, non-blocking, destroyed, and the stream of a host thread that ended. */
static void test_context_record(void)
{
    uint64_t streams[3], event, later, after;
    char name[32];
    cai_sim_operation record;
    int named;
    int i;
    start("context_record");
    for (i = 0; i < 3; i++) {
        streams[i] = cai_sim_stream_create(sim, i == 1);
        CHECK_INT(cai_sim_launch(sim, streams[i], "work", NULL, NULL, NULL, 0), 0);
    }
    CHECK_INT(cai_sim_stream_destroy(sim, streams[2]), 0);
    event = cai_sim_event_create(sim);
    CHECK_INT(cuda->context_record(sim, c1, event), 0);
    later = cai_sim_stream_create(sim, 1);
    after = cai_sim_operation_count(sim);
    named = cai_sim_operation_get(sim, after, &record);
    CHECK(named);
    cai_sim_stream_name(sim, record.stream, name, sizeof name);
    CHECK_STR(name, "context");
    CHECK_INT(cuda->stream_wait_event(sim, later, event), 0);
    CHECK_INT(cai_sim_run_operation(sim, 1), 1);
    CHECK_INT(cai_sim_run_operation(sim, 2), 1);
    CHECK_INT(cai_sim_run_operation(sim, after), 0); /* the third is before it */
    CHECK_INT(cai_sim_run_operation(sim, 3), 1);
    CHECK_INT(cai_sim_run_operation(sim, after), 1);
    CHECK_INT(cuda->event_query(sim, event), 0);
    CHECK_INT(cuda->context_record(sim, c1, event), 0);
    CHECK_INT(cuda->event_synchronize(sim, event), 0);
    finish();
}

static void test_context_record_refused(void)
{
    uint64_t own, stream, event, foreign;
    cai_cuda_capture capture;
    int32_t mode;
    start("context_record: refused");
    own = cai_sim_context_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    foreign = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    event = cai_sim_event_create(sim);
    CHECK_INT(cuda->context_record(sim, c1, foreign), 400);
    CHECK_INT(cuda->context_record(sim, 0, event), 201);
    for (mode = CAI_SIM_MODE_GLOBAL; mode <= CAI_SIM_MODE_RELAXED; mode++) {
        stream = cai_sim_stream_create(sim, 1);
        CHECK_INT(cai_sim_capture_begin(sim, stream, mode), 0);
        CHECK_INT(cuda->context_record(sim, own, foreign), 0);
        CHECK_INT(cuda->context_record(sim, c1, event), 900);
        CHECK_INT(cuda->stream_capture(sim, stream, &capture), 0);
        CHECK_INT(capture.status, CAI_CAPTURE_INVALIDATED);
        CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 901);
    }
    cai_sim_set_device_error(sim, 0, 719);
    CHECK_INT(cuda->context_record(sim, c1, event), 719);
    finish();
}

static void test_stream_flags(void)
{
    uint64_t stream;
    uint32_t flags = 7;
    cai_cuda_capture capture;
    start("stream_flags");
    stream = cai_sim_stream_create(sim, 1);
    CHECK_INT(cuda->stream_flags(sim, stream, &flags), 0);
    CHECK_UINT(flags, 1);
    CHECK_INT(cuda->stream_flags(sim, CAI_STREAM_LEGACY, &flags), 0);
    CHECK_UINT(flags, 0);
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_RELAXED), 0);
    CHECK_INT(cuda->stream_flags(sim, stream, &flags), 900);
    CHECK_INT(cuda->stream_capture(sim, stream, &capture), 0);
    CHECK_INT(capture.status, CAI_CAPTURE_INVALIDATED);
    finish();
}

static void test_pools(void)
{
    uint64_t pool = 0, stream, memory = 0, value = 7;
    start("pools of the table");
    stream = cai_sim_stream_create(sim, 0);
    CHECK_INT(cuda->pool_create(sim, 0, 6, &pool), 0);
    CHECK_INT(cai_sim_pool_get(sim, pool, CAI_SIM_POOL_FOLLOW_EVENTS, &value), 0);
    CHECK_UINT(value, 0);
    CHECK_INT(cai_sim_pool_get(sim, pool, CAI_SIM_POOL_OPPORTUNISTIC, &value), 0);
    CHECK_UINT(value, 1);
    CHECK_INT(cuda->memory_alloc_from_pool(sim, &memory, 64, pool, stream), 0);
    CHECK_INT(cai_sim_pool_get(sim, pool, CAI_SIM_POOL_USED, &value), 0);
    CHECK_UINT(value, 64);
    CHECK_INT(cuda->memory_free_async(sim, memory, stream), 0);
    CHECK_INT(cuda->memory_alloc_from_pool(sim, &memory, 64, 0, stream), 1);
    CHECK_INT(cuda->pool_destroy(sim, pool), 0);
    CHECK_INT(cuda->pool_destroy(sim, cai_sim_pool_default(sim, 0)), 1);
    CHECK_INT(cuda->pool_create(sim, 1, 0, &pool), 101);
    CHECK_INT(cuda->pool_create(sim, 0, 8, &pool), 1);
    CHECK_STR(cai_sim_log(sim), "pool_create 0 reuse 6 -> p2\n"
                                "memory_alloc_from_pool 64 p2 s1 -> m1\n"
                                "memory_free_async m1 s1\n"
                                "memory_alloc_from_pool 64 0x0 s1 ! 1\n"
                                "pool_destroy p2\n"
                                "pool_destroy p1 ! 1\n"
                                "pool_create 1 reuse 0 ! 101\n"
                                "pool_create 0 reuse 8 ! 1\n");
    finish();
}

static void count_gone(void *user)
{
    ++*(int32_t *)user;
}

/* A user object ends with the graph, its executables and their launches. */
static void test_user_objects(void)
{
    uint64_t graph, stream, executable, again;
    int32_t gone = 0, lost = 0;
    start("user objects of graphs");
    stream = cai_sim_stream_create(sim, 1);
    CHECK_INT(cuda->capture_retain(sim, stream, count_gone, &gone), 401);
    CHECK_INT(cai_sim_capture_begin(sim, stream, 2), 0);
    CHECK_INT(cuda->capture_retain(sim, stream, NULL, &gone), 1);
    CHECK_INT(cuda->capture_retain(sim, stream, count_gone, &gone), 0);
    CHECK_INT(cai_sim_launch(sim, stream, "node", NULL, NULL, NULL, 0), 0);
    CHECK_INT(cai_sim_capture_end(sim, stream, &graph), 0);
    executable = cai_sim_graph_instantiate(sim, graph);
    again = cai_sim_graph_instantiate(sim, graph);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    CHECK_INT(cai_sim_graph_executable_destroy(sim, again), 0);
    CHECK_INT(cai_sim_graph_launch(sim, executable, stream), 0);
    CHECK_INT(cai_sim_graph_executable_destroy(sim, executable), 0);
    CHECK_INT(gone, 0); /* it runs */
    CHECK_INT(cai_sim_stream_synchronize(sim, stream), 0);
    CHECK_INT(gone, 1);
    CHECK_INT(cai_sim_capture_begin(sim, stream, 2), 0);
    CHECK_INT(cuda->capture_retain(sim, stream, count_gone, &lost), 0);
    (void)cai_sim_context_synchronize(sim); /* ends the capture */
    CHECK_INT(cuda->capture_retain(sim, stream, count_gone, &gone), 401);
    CHECK_INT(lost, 0);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 901);
    CHECK_INT(lost, 1);
    CHECK_INT(gone, 1);
    CHECK_STR(cai_sim_log(sim), "capture_retain s1 ! 401\ncapture_retain s1 ! 1\ncapture_retain s1\n"
                                "capture_retain s1\ncapture_retain s1 ! 401\n");
    CHECK_INT(cai_sim_stream_destroy(sim, stream), 0);
    finish();
}

/* Two references: the context goes with the last, with what is in it. */
static void test_references(void)
{
    uint64_t context = 0, none = 7;
    cai_test_note("references of the table");
    sim = cai_sim_create(2);
    if (sim == NULL) exit(2);
    cuda = cai_sim_cuda(sim);
    CHECK_INT(cuda->primary_retain(sim, 1, &context), 0); /* no context is current */
    CHECK_UINT(context, cai_sim_primary(sim, 1));
    CHECK_UINT(cai_sim_primary_retain(sim, 1), context);
    CHECK_INT(cuda->primary_release(sim, 1), 0);
    CHECK_INT(cuda->context_push(sim, context), 0);
    CHECK_INT(cuda->context_pop(sim), 0);
    CHECK_INT(cuda->primary_release(sim, 1), 0);
    CHECK_INT(cuda->device_context(sim, 1, &none), 0);
    CHECK_UINT(none, 0);
    CHECK_INT(cuda->primary_release(sim, 1), 201);
    CHECK_INT(cuda->primary_retain(sim, 2, &none), 101);
    CHECK_INT(cuda->primary_release(sim, -1), 101);
    CHECK_INT(cuda->primary_retain(sim, 0, NULL), 1);
    CHECK_INT(cuda->device_context(sim, 0, &none), 0);
    CHECK_UINT(none, 0);
    CHECK_STR(cai_sim_log(sim), "primary_retain 1 -> c2\nprimary_release 1\ncontext_push c2\ncontext_pop\n"
                                "primary_release 1\ndevice_context 1 -> none\nprimary_release 1 ! 201\n"
                                "primary_retain 2 ! 101\nprimary_release -1 ! 101\nprimary_retain 0 ! 1\n"
                                "device_context 0 -> none\n");
    finish();
}

static void run(void)
{
    test_context_id();
    test_context_record();
    test_context_record_refused();
    test_stream_flags();
    test_pools();
    test_references();
    test_user_objects();
}

CAI_TEST_MAIN(run)
