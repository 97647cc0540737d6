/* rules_events.c - events: what they cover, who may wait for them, and the legacy stream's own order.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

/* --------------------------------------------------------------------- events */
static void record_of_two_contexts(void)
{
    const uint64_t other = new_context(), stream = new_stream(NONBLOCKING), here = new_event();
    uint64_t there;
    EXPECT_INT(push(other), 0);
    there = new_event();
    EXPECT_INT(pop(), 0);
    EXPECT_INT(record(there, stream), 400);
    EXPECT_INT(query(there), 0); /* nothing was recorded */
    EXPECT_INT(record(here, stream), 0);
}

static void wait_orders(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    EXPECT_INT(spin(producer, FIRST), 0);
    EXPECT(order(producer, consumer));
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, consumer));
}

static void wait_for_nothing(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    const uint64_t event = new_event();
    EXPECT_INT(spin(producer, FIRST), 0);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void record_again_keeps_waits(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    const uint64_t idle = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(spin(producer, FIRST), 0);
    event = new_event_after(producer);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(record(event, idle), 0);
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, consumer));
}

static void record_again_adds_no_wait(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    const uint64_t idle = new_stream(NONBLOCKING), event = new_event_after(idle);
    EXPECT_INT(spin(producer, FIRST), 0);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(record(event, producer), 0);
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT_INT(query(event), 600); /* of the last record */
}

static void later_work_is_not_covered(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    const uint64_t event = new_event_after(producer);
    EXPECT_INT(spin(producer, FIRST), 0);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void destroy_while_pending(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(spin(producer, FIRST), 0);
    event = new_event_after(producer);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(destroy_event(event), 0);
    EXPECT(!world_ran(FIRST)); /* nor did it wait */
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, consumer));
}

static void query_answers(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(spin(stream, FIRST), 0);
    event = new_event_after(stream);
    EXPECT_INT(query(event), 600);
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(query(event), 0);
}

static void unrecorded_is_done(void)
{
    const uint64_t event = new_event();
    EXPECT_INT(query(event), 0);
    EXPECT_INT(synchronize_event(event), 0);
}

static void event_synchronize_waits(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(spin(stream, FIRST), 0);
    event = new_event_after(stream);
    EXPECT_INT(world_launch(stream, SECOND_GATE, SECOND), 0);
    world_set_while_waiting(GATE);
    EXPECT_INT(synchronize_event(event), 0);
    EXPECT(world_is_set(GATE));
    EXPECT(world_ran(FIRST));
    EXPECT(!world_ran(SECOND)); /* came later */
    world_set(SECOND_GATE);
}

static void stream_synchronize_waits(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    EXPECT_INT(world_launch(other, SECOND_GATE, SECOND), 0);
    EXPECT_INT(spin(stream, FIRST), 0);
    world_set_while_waiting(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(world_is_set(GATE));
    EXPECT(world_ran(FIRST));
    EXPECT(!world_ran(SECOND));
    world_set(SECOND_GATE);
}

static void wait_across_contexts(void)
{
    const uint64_t other = new_context(), consumer = new_stream(NONBLOCKING);
    uint64_t producer, event;
    EXPECT_INT(push(other), 0);
    producer = new_stream(NONBLOCKING);
    EXPECT_INT(spin(producer, FIRST), 0);
    event = new_event_after(producer);
    EXPECT_INT(pop(), 0);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, consumer));
}

static void events_of_other_contexts(void)
{
    const uint64_t other = new_context();
    uint64_t stream, event;
    EXPECT_INT(push(other), 0);
    stream = new_stream(NONBLOCKING);
    EXPECT_INT(spin(stream, FIRST), 0);
    event = new_event_after(stream);
    EXPECT_INT(pop(), 0);
    EXPECT_INT(query(event), 600);
    world_set_while_waiting(GATE);
    EXPECT_INT(synchronize_event(event), 0);
    EXPECT(world_is_set(GATE));
    EXPECT_INT(query(event), 0);
    EXPECT_INT(destroy_event(event), 0);
}

static void streams_of_other_contexts(void)
{
    const uint64_t other = new_context(), gate = new_stream(NONBLOCKING);
    uint64_t stream, event, gate_event;
    EXPECT_INT(push(other), 0);
    stream = new_stream(NONBLOCKING);
    event = new_event();
    EXPECT_INT(pop(), 0);
    EXPECT_INT(spin(gate, FIRST), 0);
    gate_event = new_event_after(gate);
    EXPECT_INT(wait_for(stream, gate_event), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(query(event), 600);
    world_set_while_waiting(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(world_is_set(GATE));
    EXPECT_INT(query(event), 0);
}

static void every_thread_may(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    const uint64_t event = new_event();
    EXPECT_INT(world_on_thread(0, thread_set_device, 0, 0), 0);
    EXPECT_INT(spin(producer, FIRST), 0);
    EXPECT_INT(world_on_thread(0, thread_record, event, producer), 0);
    EXPECT_INT(wait_for(consumer, event), 0);
    EXPECT_INT(world_on_thread(0, thread_launch, consumer, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, consumer));
}

static void stream_destroyed_while_pending(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(spin(stream, FIRST), 0);
    event = new_event_after(stream);
    EXPECT_INT(world_stream_destroy(stream), 0);
    EXPECT_INT(query(event), 600);
    EXPECT(!world_ran(FIRST));
    world_set_while_waiting(GATE);
    EXPECT_INT(synchronize_event(event), 0);
    EXPECT(world_ran(FIRST));
}

static void one_event_many_waits(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), second = new_stream(NONBLOCKING);
    const uint64_t third = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(spin(producer, FIRST), 0);
    event = new_event_after(producer);
    EXPECT_INT(wait_for(second, event), 0);
    EXPECT_INT(wait_for(third, event), 0);
    EXPECT_INT(world_launch(second, 0, SECOND), 0);
    EXPECT_INT(world_launch(third, 0, THIRD), 0);
    EXPECT(held(SECOND));
    EXPECT(held(THIRD));
    EXPECT(follows(SECOND, FIRST, second));
    EXPECT(follows(THIRD, FIRST, third));
}

#define EVENT_RECORD "CUDA Driver API, cuEventRecord"
#define EVENT_DESTROY "CUDA Driver API, cuEventDestroy"
#define STREAM_WAIT "CUDA Driver API, cuStreamWaitEvent"

const rule rules_of_events[] = {
    {"E01", "a record of an event in a stream of another context is 400, and records nothing", EVENT_RECORD,
     RULE_DOCUMENTED, NEEDS_CONTEXT, record_of_two_contexts},
    {"E02", "work after a wait runs after the work before the record", STREAM_WAIT, RULE_DOCUMENTED, 0,
     wait_orders},
    {"E03", "a wait for an event that was never recorded does nothing",
     EVENT_RECORD " (\"an empty set of work\")", RULE_DOCUMENTED, 0, wait_for_nothing},
    {"E04", "recording an event again takes nothing from the waits made before", EVENT_RECORD,
     RULE_DOCUMENTED, 0, record_again_keeps_waits},
    {"E05", "recording an event again adds nothing to the waits made before", EVENT_RECORD, RULE_DOCUMENTED,
     0, record_again_adds_no_wait},
    {"E06", "an event does not cover the work that its stream gets after the record", EVENT_RECORD,
     RULE_DOCUMENTED, 0, later_work_is_not_covered},
    {"E07", "an event may be destroyed while it is pending: the call does not block, and waits for it hold",
     EVENT_DESTROY, RULE_DOCUMENTED, 0, destroy_while_pending},
    {"E08", "a query of an event is 600 while its work is pending, and 0 after that",
     "CUDA Driver API, cuEventQuery", RULE_DOCUMENTED, 0, query_answers},
    {"E09", "an event that was never recorded has passed: query and synchronize succeed",
     EVENT_RECORD " (\"an empty set of work\")", RULE_DOCUMENTED, 0, unrecorded_is_done},
    {"E10", "event_synchronize waits for the work before the record, and for no other",
     "CUDA Driver API, cuEventSynchronize", RULE_DOCUMENTED, 0, event_synchronize_waits},
    {"E11", "stream_synchronize waits for all work of the stream, and for no other stream",
     "CUDA Driver API, cuStreamSynchronize", RULE_DOCUMENTED, 0, stream_synchronize_waits},
    {"E12", "a stream may wait for an event of another context", STREAM_WAIT, RULE_DOCUMENTED,
     NEEDS_CONTEXT, wait_across_contexts},
    {"E13", "an event can be queried, synchronized and destroyed while another context is current",
     "CUDA C++ Programming Guide, Stream and Event Behavior", RULE_DOCUMENTED, NEEDS_CONTEXT,
     events_of_other_contexts},
    {"E14", "a stream can wait, record and be synchronized while another context is current",
     "not said of contexts; cai_stream.h waits so", RULE_SILENT, NEEDS_CONTEXT, streams_of_other_contexts},
    {"E15", "streams and events belong to no host thread",
     "CUDA C++ Programming Guide, Driver API, Context", RULE_DOCUMENTED, 0, every_thread_may},
    {"E16", "a stream may be destroyed while it has work: the call does not block, and the work is done",
     "CUDA Driver API, cuStreamDestroy", RULE_DOCUMENTED, 0, stream_destroyed_while_pending},
    {"E17", "any number of streams may wait for one record", STREAM_WAIT, RULE_DOCUMENTED, 0,
     one_event_many_waits},
    {NULL, NULL, NULL, 0, 0, NULL}};

/* --------------------------------------------------------------- legacy stream */
static void legacy_waits(void)
{
    const uint64_t blocking = new_stream(BLOCKING);
    EXPECT_INT(spin(blocking, FIRST), 0);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, CAI_STREAM_LEGACY));
}

static void blocking_waits(void)
{
    const uint64_t blocking = new_stream(BLOCKING);
    EXPECT_INT(spin(CAI_STREAM_LEGACY, FIRST), 0);
    EXPECT_INT(world_launch(blocking, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, blocking));
}

static void legacy_between(void)
{
    const uint64_t first = new_stream(BLOCKING), second = new_stream(BLOCKING);
    EXPECT_INT(spin(first, FIRST), 0);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, SECOND), 0);
    EXPECT_INT(world_launch(second, 0, THIRD), 0);
    EXPECT(held(THIRD));
    EXPECT(follows(THIRD, FIRST, second));
    EXPECT(world_saw(THIRD, SECOND));
}

static void nonblocking_does_not_wait(void)
{
    const uint64_t nonblocking = new_stream(NONBLOCKING);
    EXPECT_INT(spin(CAI_STREAM_LEGACY, FIRST), 0);
    EXPECT_INT(world_launch(nonblocking, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void legacy_does_not_wait(void)
{
    const uint64_t nonblocking = new_stream(NONBLOCKING);
    EXPECT_INT(spin(nonblocking, FIRST), 0);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void blocking_streams_are_apart(void)
{
    const uint64_t first = new_stream(BLOCKING), second = new_stream(BLOCKING);
    EXPECT_INT(spin(first, FIRST), 0);
    EXPECT_INT(world_launch(second, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void per_thread_waits(void)
{
    EXPECT_INT(spin(CAI_STREAM_LEGACY, FIRST), 0);
    EXPECT_INT(world_launch(CAI_STREAM_PER_THREAD, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, CAI_STREAM_PER_THREAD));
}

static void legacy_waits_for_per_thread(void)
{
    EXPECT_INT(spin(CAI_STREAM_PER_THREAD, FIRST), 0);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, CAI_STREAM_LEGACY));
}

static void per_thread_is_apart(void)
{
    const uint64_t blocking = new_stream(BLOCKING);
    EXPECT_INT(spin(blocking, FIRST), 0);
    EXPECT_INT(world_launch(CAI_STREAM_PER_THREAD, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

/* The other thread uses its stream once before, so that nothing is set up while a kernel spins. */
static void per_thread_is_of_a_thread(void)
{
    EXPECT_INT(world_on_thread(0, thread_set_device, 0, 0), 0);
    EXPECT_INT(world_on_thread(0, thread_launch, CAI_STREAM_PER_THREAD, THIRD), 0);
    EXPECT(world_reaches(THIRD));
    EXPECT_INT(spin(CAI_STREAM_PER_THREAD, FIRST), 0);
    EXPECT_INT(world_on_thread(0, thread_launch, CAI_STREAM_PER_THREAD, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void legacy_record_covers_all(void)
{
    const uint64_t blocking = new_stream(BLOCKING), consumer = new_stream(NONBLOCKING);
    EXPECT_INT(spin(blocking, FIRST), 0);
    EXPECT(order(CAI_STREAM_LEGACY, consumer));
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, consumer));
}

static void legacy_record_skips_nonblocking(void)
{
    const uint64_t nonblocking = new_stream(NONBLOCKING), consumer = new_stream(NONBLOCKING);
    EXPECT_INT(spin(nonblocking, FIRST), 0);
    EXPECT(order(CAI_STREAM_LEGACY, consumer));
    EXPECT_INT(world_launch(consumer, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void legacy_wait_holds_all(void)
{
    const uint64_t producer = new_stream(NONBLOCKING), blocking = new_stream(BLOCKING);
    EXPECT_INT(spin(producer, FIRST), 0);
    EXPECT(order(producer, CAI_STREAM_LEGACY));
    EXPECT_INT(world_launch(blocking, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, blocking));
}

static void legacy_synchronize_waits(void)
{
    const uint64_t blocking = new_stream(BLOCKING);
    EXPECT_INT(spin(blocking, FIRST), 0);
    world_set_while_waiting(GATE);
    EXPECT_INT(synchronize(CAI_STREAM_LEGACY), 0);
    EXPECT(world_is_set(GATE));
    EXPECT(world_ran(FIRST));
}

static void legacy_is_of_a_context(void)
{
    const uint64_t other = new_context(), blocking = new_stream(BLOCKING);
    EXPECT_INT(spin(blocking, FIRST), 0);
    EXPECT_INT(push(other), 0);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT_INT(pop(), 0);
}

/* As above, the stream is used once before. */
static void per_thread_is_of_a_context(void)
{
    const uint64_t other = new_context();
    EXPECT_INT(push(other), 0);
    EXPECT_INT(world_launch(CAI_STREAM_PER_THREAD, 0, THIRD), 0);
    EXPECT(world_reaches(THIRD));
    EXPECT_INT(pop(), 0);
    EXPECT_INT(spin(CAI_STREAM_PER_THREAD, FIRST), 0);
    EXPECT_INT(push(other), 0);
    EXPECT_INT(world_launch(CAI_STREAM_PER_THREAD, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT_INT(pop(), 0);
}

#define SYNC_BEHAVIOR "CUDA Driver API, Stream synchronization behavior"

const rule rules_of_legacy[] = {
    {"L01", "work in the legacy stream waits for the blocking streams", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     legacy_waits},
    {"L02", "work in a blocking stream waits for the legacy stream", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     blocking_waits},
    {"L03", "work in the legacy stream orders one blocking stream after another", SYNC_BEHAVIOR,
     RULE_DOCUMENTED, 0, legacy_between},
    {"L04", "a non-blocking stream does not wait for the legacy stream", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     nonblocking_does_not_wait},
    {"L05", "the legacy stream does not wait for a non-blocking stream", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     legacy_does_not_wait},
    {"L06", "blocking streams do not wait for one another", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     blocking_streams_are_apart},
    {"L07", "the per-thread stream waits for the legacy stream", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     per_thread_waits},
    {"L08", "the legacy stream waits for the per-thread stream", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     legacy_waits_for_per_thread},
    {"L09", "the per-thread stream does not wait for blocking streams", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     per_thread_is_apart},
    {"L10", "each host thread has a per-thread stream of its own", SYNC_BEHAVIOR, RULE_DOCUMENTED, 0,
     per_thread_is_of_a_thread},
    {"L11", "a record in the legacy stream covers the blocking streams",
     SYNC_BEHAVIOR "; " EVENT_RECORD " (\"note on default stream behavior\")", RULE_DOCUMENTED, 0,
     legacy_record_covers_all},
    {"L12", "a record in the legacy stream does not cover non-blocking streams", SYNC_BEHAVIOR,
     RULE_DOCUMENTED, 0, legacy_record_skips_nonblocking},
    {"L13", "a wait in the legacy stream holds back the blocking streams", SYNC_BEHAVIOR, RULE_DOCUMENTED,
     0, legacy_wait_holds_all},
    {"L14", "synchronizing the legacy stream waits for the blocking streams",
     "CUDA C++ Programming Guide, Prohibited and Unhandled Operations (\"encompasses these other streams\")",
     RULE_DOCUMENTED, 0, legacy_synchronize_waits},
    {"L15", "each context has a legacy stream of its own", SYNC_BEHAVIOR, RULE_DOCUMENTED, NEEDS_CONTEXT,
     legacy_is_of_a_context},
    {"L16", "a host thread has a per-thread stream in each context", SYNC_BEHAVIOR, RULE_DOCUMENTED,
     NEEDS_CONTEXT, per_thread_is_of_a_context},
    {NULL, NULL, NULL, 0, 0, NULL}};
