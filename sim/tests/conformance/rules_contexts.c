/* rules_contexts.c - contexts and host threads, streams and their contexts and ids, several devices.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

/* ------------------------------------------------------------------- contexts */
static void fresh_thread(void)
{
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
    EXPECT(!is_current(0)); /* here it is another matter */
}

static void primary_context(void)
{
    EXPECT_INT(world_on_thread(0, thread_set_device, 0, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, primary(), 0));
    EXPECT(is_current(primary()));
}

static int32_t ask_device_context(uint64_t unused, uint64_t unused_too)
{
    (void)unused;
    (void)unused_too;
    return primary() == 0;
}

static void primary_is_not_made_current(void)
{
    EXPECT_INT(world_on_thread(0, ask_device_context, 0, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void push_and_pop(void)
{
    const uint64_t other = new_context(), another = new_context(), before = current();
    EXPECT(other != another && other != before);
    EXPECT_INT(push(other), 0);
    EXPECT(is_current(other));
    EXPECT_INT(push(another), 0);
    EXPECT(is_current(another));
    EXPECT_INT(push(other), 0); /* a second time */
    EXPECT(is_current(other));
    EXPECT_INT(pop(), 0);
    EXPECT(is_current(another));
    EXPECT_INT(pop(), 0);
    EXPECT(is_current(other));
    EXPECT_INT(pop(), 0);
    EXPECT(is_current(before));
}

static void last_pop_leaves_none(void)
{
    EXPECT_INT(world_on_thread(0, thread_push, primary(), 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, primary(), 0));
    EXPECT_INT(world_on_thread(0, thread_pop, 0, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void pop_of_nothing(void)
{
    EXPECT_INT(world_on_thread(0, thread_pop, 0, 0), 201);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void stack_is_of_a_thread(void)
{
    const uint64_t other = new_context(), before = current();
    int32_t error;
    EXPECT_INT(world_on_thread(0, thread_push, other, 0), 0);
    EXPECT(is_current(before));
    error = push(other);
    ANSWER(error != 0);
    if (error) EXPECT(error == 216 && is_current(before));
    if (error) return;
    EXPECT(is_current(other));
    EXPECT(world_on_thread(0, thread_current_is, other, 0));
    EXPECT_INT(pop(), 0);
    EXPECT(world_on_thread(0, thread_current_is, other, 0));
}

static void set_replaces_the_top(void)
{
    const uint64_t other = new_context(), another = new_context(), before = current();
    EXPECT_INT(push(other), 0);
    EXPECT_INT(world_set_context(another), 0);
    EXPECT(is_current(another));
    EXPECT_INT(pop(), 0);
    EXPECT(is_current(before));
}

static int32_t ask_device(uint64_t unused, uint64_t unused_too)
{
    int32_t device;
    (void)unused;
    (void)unused_too;
    return cuda->context_device(cuda->self, &device);
}

static int32_t ask_context_synchronize(uint64_t unused, uint64_t unused_too)
{
    (void)unused;
    (void)unused_too;
    return synchronize_context();
}

static void needs_a_context(void)
{
    EXPECT_INT(world_on_thread(0, thread_event_create, 0, 0), 201);
    EXPECT_INT(world_on_thread(0, ask_device, 0, 0), 201);
    EXPECT_INT(world_on_thread(0, ask_context_synchronize, 0, 0), 201);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void device_of_a_context(void)
{
    const uint64_t other = new_context();
    int32_t device = -1;
    EXPECT_INT(cuda->context_device(cuda->self, &device), 0);
    EXPECT_INT(device, 0);
    EXPECT_INT(push(other), 0);
    EXPECT_INT(cuda->context_device(cuda->self, &device), 0);
    EXPECT_INT(device, 0);
    EXPECT_INT(pop(), 0);
}

static void no_such_device(void)
{
    uint64_t context;
    EXPECT_INT(cuda->device_context(cuda->self, 1000, &context), 101);
    EXPECT_INT(cuda->device_context(cuda->self, -1, &context), 101);
}

static void destroyed_elsewhere(void)
{
    const uint64_t doomed = new_context();
    EXPECT_INT(world_on_thread(0, thread_push, doomed, 0), 0);
    EXPECT_INT(world_context_destroy(doomed), 0);
    EXPECT_INT(world_on_thread(0, thread_event_create, 0, 0), 709);
    EXPECT(is_current(primary()));
}

static void destroyed_here(void)
{
    const uint64_t doomed = new_context(), before = current();
    EXPECT_INT(push(doomed), 0);
    EXPECT_INT(world_context_destroy(doomed), 0);
    EXPECT(is_current(before));
}

static void synchronize_waits_for_all(void)
{
    const uint64_t nonblocking = new_stream(NONBLOCKING), blocking = new_stream(BLOCKING);
    EXPECT_INT(spin(nonblocking, FIRST), 0);
    EXPECT_INT(world_launch(blocking, SECOND_GATE, SECOND), 0);
    world_set_while_waiting(GATE);
    world_set_while_waiting(SECOND_GATE);
    EXPECT_INT(synchronize_context(), 0);
    EXPECT(world_is_set(GATE));
    EXPECT(world_is_set(SECOND_GATE));
    EXPECT(world_ran(FIRST));
    EXPECT(world_ran(SECOND));
}

static int32_t launch_and_hold(uint64_t stream, uint64_t mark)
{
    return world_launch(stream, GATE, (int32_t)mark);
}

static void synchronize_waits_for_threads(void)
{
    EXPECT_INT(world_on_thread(0, thread_set_device, 0, 0), 0);
    EXPECT_INT(world_on_thread(0, launch_and_hold, CAI_STREAM_PER_THREAD, FIRST), 0);
    world_set_while_waiting(GATE);
    EXPECT_INT(synchronize_context(), 0);
    EXPECT(world_is_set(GATE));
    EXPECT(world_ran(FIRST));
}

static void synchronize_of_one_context(void)
{
    const uint64_t other = new_context();
    EXPECT_INT(push(other), 0);
    EXPECT_INT(spin(new_stream(NONBLOCKING), FIRST), 0);
    EXPECT_INT(pop(), 0);
    EXPECT_INT(synchronize_context(), 0);
    EXPECT(!world_ran(FIRST));
}

/* What cai_stream.h calls on a thread without a context: polling the keep-alive list, ending a pool. */
static void query_without_context(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(spin(stream, FIRST), 0);
    event = new_event_after(stream);
    EXPECT_INT(world_on_thread(0, thread_event_query, event, 0), 600);
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_on_thread(0, thread_event_query, event, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void synchronize_without_context(void)
{
    const uint64_t event = new_event_after(new_stream(NONBLOCKING));
    EXPECT_INT(world_on_thread(0, thread_event_synchronize, event, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void destroy_without_context(void)
{
    EXPECT_INT(world_on_thread(0, thread_event_destroy, new_event(), 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void mode_without_context(void)
{
    EXPECT_INT(world_on_thread(0, thread_mode, WORLD_RELAXED, 0), WORLD_GLOBAL);
    EXPECT_INT(world_on_thread(0, thread_mode, WORLD_GLOBAL, 0), WORLD_RELAXED);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static int32_t ask_stream(uint64_t stream, uint64_t expected)
{
    uint64_t context = 0;
    const int32_t error = context_of(stream, &context);
    return error ? error : context == expected ? 0 : -1;
}

static int32_t ask_capture(uint64_t stream, uint64_t unused)
{
    (void)unused;
    return capture_status(stream);
}

static void queries_without_context(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_on_thread(0, ask_stream, stream, primary()), 0);
    EXPECT_INT(world_on_thread(0, ask_capture, stream, 0), CAI_CAPTURE_NONE);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void primary_of_an_unused_device(void)
{
    uint64_t context = 99;
    EXPECT_INT(cuda->device_context(cuda->self, 1, &context), 0);
    ANSWER(context == 0);
    EXPECT_INT(world_set_device(1), 0);
    if (context) EXPECT(is_current(context));
    EXPECT_INT(cuda->device_context(cuda->self, 1, &context), 0);
    EXPECT(is_current(context)); /* now it is in use */
    EXPECT_INT(world_set_device(0), 0);
}

static void work_without_context(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(world_on_thread(0, thread_record, event, stream), 0);
    EXPECT_INT(world_on_thread(0, thread_wait, stream, event), 0);
    EXPECT_INT(world_on_thread(0, thread_synchronize, stream, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

/* -------------------------------------------------------------------- streams */
static void context_of_a_stream(void)
{
    const uint64_t other = new_context(), here = new_stream(NONBLOCKING);
    uint64_t there, context = 0;
    EXPECT_INT(push(other), 0);
    there = new_stream(BLOCKING);
    EXPECT_INT(context_of(here, &context), 0);
    EXPECT(context == primary());
    EXPECT_INT(pop(), 0);
    EXPECT_INT(context_of(there, &context), 0);
    EXPECT(context == other);
}

static void context_of_default_streams(void)
{
    const uint64_t other = new_context();
    EXPECT_INT(ask_stream(CAI_STREAM_LEGACY, primary()), 0);
    EXPECT_INT(ask_stream(CAI_STREAM_PER_THREAD, primary()), 0);
    EXPECT_INT(push(other), 0);
    EXPECT_INT(ask_stream(CAI_STREAM_LEGACY, other), 0);
    EXPECT_INT(ask_stream(CAI_STREAM_PER_THREAD, other), 0);
    EXPECT_INT(pop(), 0);
}

static void default_streams_without_context(void)
{
    EXPECT_INT(world_on_thread(0, ask_stream, CAI_STREAM_LEGACY, 0), 201);
    EXPECT_INT(world_on_thread(0, ask_stream, CAI_STREAM_PER_THREAD, 0), 201);
}

static void launch_in_another_context(void)
{
    const uint64_t other = new_context(), stream = new_stream(NONBLOCKING);
    EXPECT_INT(push(other), 0);
    EXPECT_INT(world_launch(stream, 0, FIRST), 0);
    EXPECT_INT(pop(), 0);
    EXPECT_INT(world_launch(stream, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT(world_saw(SECOND, FIRST));
}

enum { GENERATIONS = 8 };

static void ids_are_unique(void)
{
    uint64_t ids[GENERATIONS];
    int32_t i, j;
    for (i = 0; i < GENERATIONS; i++) {
        const uint64_t stream = new_stream(NONBLOCKING);
        ids[i] = 0;
        EXPECT_INT(id_of(stream, &ids[i]), 0);
        for (j = 0; j < i; j++) EXPECT(ids[i] != ids[j]);
        EXPECT_INT(world_stream_destroy(stream), 0);
    }
}

static void ids_stay(void)
{
    const uint64_t stream = new_stream(BLOCKING);
    uint64_t first = 0, second = 1;
    EXPECT_INT(id_of(stream, &first), 0);
    EXPECT_INT(world_launch(stream, 0, FIRST), 0);
    EXPECT_INT(id_of(stream, &second), 0);
    EXPECT(first == second);
}

static void handle_again(void)
{
    const uint64_t first = new_stream(NONBLOCKING);
    EXPECT_INT(world_stream_destroy(first), 0);
    ANSWER(new_stream(NONBLOCKING) == first);
}

static void id_while_capturing(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t id;
    EXPECT_INT(world_capture_begin(stream, WORLD_RELAXED), 0);
    EXPECT_INT(id_of(stream, &id), 900);
    EXPECT(is_invalidated(stream));
    EXPECT_INT(world_capture_end(stream), 901);
}

#define CONTEXTS "CUDA Driver API, Context Management"
#define NO_CONTEXT_SAID "not said; cai_stream.h may call it so"

const rule rules_of_contexts[] = {
    {"X01", "no context is current on a new host thread", CONTEXTS ", cuCtxGetCurrent", RULE_DOCUMENTED, 0,
     fresh_thread},
    {"X02", "device_context is the context that cudaSetDevice makes current",
     "CUDA Runtime API, Interactions with the CUDA Driver API", RULE_DOCUMENTED, 0, primary_context},
    {"X03", "device_context makes no context current", "CUDA Driver API, cuDevicePrimaryCtxRetain",
     RULE_DOCUMENTED, 0, primary_is_not_made_current},
    {"X04", "push makes a context current, pop the one before it again", CONTEXTS ", cuCtxPushCurrent",
     RULE_DOCUMENTED, NEEDS_CONTEXT, push_and_pop},
    {"X05", "after the last pop no context is current", CONTEXTS ", cuCtxPopCurrent", RULE_DOCUMENTED, 0,
     last_pop_leaves_none},
    {"X06", "a pop where nothing is current is 201", CONTEXTS ", cuCtxPopCurrent", RULE_DOCUMENTED, 0,
     pop_of_nothing},
    {"X07", "each host thread has its own stack; whether a context may be current on two of them",
     CONTEXTS ", cuCtxPushCurrent; cuGreenCtxCreate (\"current to only one thread at a time\")",
     RULE_DOCUMENTED, NEEDS_CONTEXT, stack_is_of_a_thread},
    {"X08", "cuCtxSetCurrent replaces the top of the stack", CONTEXTS ", cuCtxSetCurrent", RULE_DOCUMENTED,
     NEEDS_CONTEXT, set_replaces_the_top},
    {"X09", "event_create, context_device and context_synchronize are 201 without a current context",
     CONTEXTS, RULE_DOCUMENTED, 0, needs_a_context},
    {"X10", "context_device is the device of the current context", CONTEXTS ", cuCtxGetDevice",
     RULE_DOCUMENTED, NEEDS_CONTEXT, device_of_a_context},
    {"X11", "device_context of a device that is not there is 101",
     "CUDA Driver API, cuDevicePrimaryCtxRetain", RULE_DOCUMENTED, 0, no_such_device},
    {"X12", "a context destroyed while another thread has it current gives 709 there",
     CONTEXTS ", cuCtxDestroy", RULE_DOCUMENTED, NEEDS_CONTEXT, destroyed_elsewhere},
    {"X13", "a context destroyed while it is current here is popped", CONTEXTS ", cuCtxDestroy",
     RULE_DOCUMENTED, NEEDS_CONTEXT, destroyed_here},
    {"X14", "context_synchronize waits for blocking and non-blocking streams",
     CONTEXTS ", cuCtxSynchronize", RULE_DOCUMENTED, 0, synchronize_waits_for_all},
    {"X15", "context_synchronize waits for the work of other host threads", CONTEXTS ", cuCtxSynchronize",
     RULE_DOCUMENTED, 0, synchronize_waits_for_threads},
    {"X16", "context_synchronize does not wait for other contexts", CONTEXTS ", cuCtxSynchronize",
     RULE_DOCUMENTED, NEEDS_CONTEXT, synchronize_of_one_context},
    {"X17", "event_query needs no current context, and makes none",
     "CUDA Driver API, cuEventQuery (201 is not among its errors)", RULE_DOCUMENTED, 0,
     query_without_context},
    {"X18", "event_synchronize needs no current context, and makes none",
     NO_CONTEXT_SAID ": cai_keepalive_drain", RULE_SILENT, 0, synchronize_without_context},
    {"X19", "event_destroy needs no current context, and makes none",
     NO_CONTEXT_SAID ": cai_event_pool_destroy", RULE_SILENT, 0, destroy_without_context},
    {"X20", "capture_mode needs no current context, and makes none",
     "CUDA Driver API, cuThreadExchangeStreamCaptureMode (201 is not among its errors)", RULE_DOCUMENTED, 0,
     mode_without_context},
    {"X21", "stream_context and stream_capture of a handle need no current context, and make none",
     "CUDA Driver API, cuStreamGetCtx (201: of the special handles), cuStreamIsCapturing (201 is not among its "
     "errors)",
     RULE_DOCUMENTED, 0, queries_without_context},
    {"X22", "record, wait and synchronize of a handle need no current context, and make none",
     "not said (201 is among their errors); cai_stream.h makes a context current where none is",
     RULE_OBSERVED, 0, work_without_context},
    {"X23", "device_context of a device that nobody uses",
     "CUDA Driver API, cuDevicePrimaryCtxGetState (\"inactive\"), cuDevicePrimaryCtxRelease", RULE_DOCUMENTED,
     NEEDS_DEVICES, primary_of_an_unused_device},
    {"S01", "stream_context is the context that was current when the stream was made",
     "CUDA Driver API, cuStreamGetCtx", RULE_DOCUMENTED, NEEDS_CONTEXT, context_of_a_stream},
    {"S02", "stream_context of streams 1 and 2 is the current context", "CUDA Driver API, cuStreamGetCtx",
     RULE_DOCUMENTED, NEEDS_CONTEXT, context_of_default_streams},
    {"S03", "stream_context of streams 1 and 2 is 201 without a current context",
     "CUDA Driver API, cuStreamGetCtx", RULE_DOCUMENTED, 0, default_streams_without_context},
    {"S04", "a launch in a stream of another context of the current device runs",
     "not said (the Programming Guide, Stream and Event Behavior, speaks of devices)", RULE_OBSERVED,
     NEEDS_CONTEXT, launch_in_another_context},
    {"S05", "the id of a stream is never that of one destroyed before", "CUDA Driver API, cuStreamGetId",
     RULE_DOCUMENTED, NEEDS_ID, ids_are_unique},
    {"S06", "the id of a stream stays the same", "CUDA Driver API, cuStreamGetId", RULE_DOCUMENTED,
     NEEDS_ID, ids_stay},
    {"S07", "the id of a stream that captures is refused with 900, and the capture is invalidated",
     "CCCL, stf get_stream_id; cai_stream.h does not ask", RULE_OBSERVED, NEEDS_ID, id_while_capturing},
    {"S08", "the handle of a stream made after one was destroyed",
     "CUDA Driver API, cuStreamGetId (the id is unique; of handles nothing is said)", RULE_DOCUMENTED, 0,
     handle_again},
    {NULL, NULL, NULL, 0, 0, NULL}};

/* -------------------------------------------------------------------- devices */
static uint64_t context_of_second(void)
{
    uint64_t context = 0;
    return cuda->device_context(cuda->self, 1, &context) ? 0 : context;
}

static void wait_across_devices(void)
{
    uint64_t producer, consumer, event;
    EXPECT_INT(world_set_device(1), 0);
    producer = new_stream(NONBLOCKING);
    EXPECT_INT(spin(producer, FIRST), 0);
    event = new_event_after(producer);
    EXPECT_INT(world_set_device(0), 0);
    consumer = new_stream(NONBLOCKING);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, consumer));
}

static void record_on_two_devices(void)
{
    const uint64_t event = new_event();
    EXPECT_INT(world_set_device(1), 0);
    EXPECT_INT(record(event, new_stream(NONBLOCKING)), 400);
    EXPECT_INT(world_set_device(0), 0);
}

static void two_primary_contexts(void)
{
    const uint64_t first = primary();
    int32_t device = -1;
    EXPECT_INT(world_set_device(1), 0);
    EXPECT(current() != first && is_current(context_of_second()));
    EXPECT_INT(cuda->context_device(cuda->self, &device), 0);
    EXPECT_INT(device, 1);
    EXPECT_INT(push(first), 0);
    EXPECT_INT(cuda->context_device(cuda->self, &device), 0);
    EXPECT_INT(device, 0);
    EXPECT_INT(pop(), 0);
    EXPECT_INT(world_set_device(0), 0);
}

static void memory_of_two_devices(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE);
    cai_cuda_pointer info;
    EXPECT_INT(world_set_device(1), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.device, 0);
    EXPECT(info.context == primary());
    EXPECT_INT(info_of(new_memory(WORLD_DEVICE), &info), 0);
    EXPECT_INT(info.device, 1);
    EXPECT(info.context == context_of_second());
    EXPECT_INT(world_set_device(0), 0);
}

static void pinned_memory_of_two_devices(void)
{
    uint64_t memory;
    cai_cuda_pointer info;
    EXPECT_INT(world_set_device(1), 0);
    memory = new_memory(WORLD_PINNED);
    EXPECT_INT(world_set_device(0), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_PINNED);
    EXPECT_INT(info.device, 1);
}

static void two_legacy_streams(void)
{
    EXPECT_INT(spin(CAI_STREAM_LEGACY, FIRST), 0);
    EXPECT_INT(world_set_device(1), 0);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT_INT(synchronize_context(), 0); /* of device 1 alone */
    EXPECT(!world_ran(FIRST));
    EXPECT_INT(world_set_device(0), 0);
}

static void launch_on_another_device(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_set_device(1), 0);
    EXPECT_INT(world_launch(stream, 0, FIRST), 400);
    EXPECT_INT(world_set_device(0), 0);
}

static void capture_on_another_device(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_capture_begin(stream, WORLD_RELAXED), 0);
    EXPECT_INT(world_set_device(1), 0);
    EXPECT_INT(synchronize_context(), 0);
    EXPECT_INT(world_set_device(0), 0);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

/* A kernel of device 1 that may use memory of device 0. */
static void free_and_a_peer(void)
{
    uint64_t memory = 0, stream;
    EXPECT_INT(cuda->memory_alloc(cuda->self, &memory, ENOUGH), 0);
    EXPECT_INT(world_set_device(1), 0);
    stream = new_stream(NONBLOCKING);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(world_set_device(0), 0);
    EXPECT(held(FIRST));
    world_set_while_waiting(GATE);
    EXPECT_INT(cuda->memory_free(cuda->self, memory), 0);
    ANSWER(!world_ran(FIRST));
    EXPECT_INT(world_set_device(1), 0);
    EXPECT(follows(FIRST, FIRST_BYSTANDER, stream));
    EXPECT_INT(world_set_device(0), 0);
}

#define MULTI_DEVICE "CUDA C++ Programming Guide, Stream and Event Behavior"

const rule rules_of_devices[] = {
    {"D01", "a stream may wait for an event of another device", MULTI_DEVICE, RULE_DOCUMENTED,
     NEEDS_DEVICES, wait_across_devices},
    {"D02", "a record of an event in a stream of another device is 400", MULTI_DEVICE, RULE_DOCUMENTED,
     NEEDS_DEVICES, record_on_two_devices},
    {"D03", "each device has a primary context of its own", "CUDA Driver API, Primary Context Management",
     RULE_DOCUMENTED, NEEDS_DEVICES, two_primary_contexts},
    {"D04", "device memory reports its own device and context, whichever is current (G02)",
     "CUDA Driver API, Unified Addressing", RULE_DOCUMENTED, NEEDS_DEVICES, memory_of_two_devices},
    {"D05", "pinned memory reports the device that was current when it was made",
     "CUDA Runtime API, cudaPointerGetAttributes", RULE_DOCUMENTED, NEEDS_DEVICES,
     pinned_memory_of_two_devices},
    {"D06", "each device has a legacy stream and a context to synchronize of its own",
     "CUDA Driver API, Stream synchronization behavior", RULE_DOCUMENTED, NEEDS_DEVICES,
     two_legacy_streams},
    {"D07", "a launch in a stream of another device than the current one is 400", MULTI_DEVICE,
     RULE_DOCUMENTED, NEEDS_DEVICES, launch_on_another_device},
    {"D08", "context_synchronize of another device leaves a capture alone",
     "CUDA C++ Programming Guide, Prohibited and Unhandled Operations", RULE_DOCUMENTED, NEEDS_DEVICES,
     capture_on_another_device},
    {"D09", "memory_free, and whether it waits for pending work of another device",
     "CUDA Driver API, cuMemFree (\"may perform implicit synchronization\"); pytorch/pytorch issue 196257",
     RULE_DOCUMENTED, NEEDS_DEVICES, free_and_a_peer},
    {NULL, NULL, NULL, 0, 0, NULL}};
