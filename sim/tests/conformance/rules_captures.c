/* rules_captures.c - what a capture is, what ruins it, and the modes that decide over unsafe calls.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

/* ------------------------------------------------------------------- captures */
/* Captures are relaxed where the mode is not the point, so that nothing else interferes. */
static int32_t begin(uint64_t stream)
{
    return world_capture_begin(stream, WORLD_RELAXED);
}

/* Ends a capture that was invalidated: 901, and the stream is out of it. */
static int ends_invalidated(uint64_t stream)
{
    return is_invalidated(stream) && world_capture_end(stream) == 901 &&
           capture_status(stream) == CAI_CAPTURE_NONE;
}

static void captured_work_does_not_run(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(world_launch(stream, 0, FIRST), 0);
    EXPECT_INT(world_capture_end(stream), 0);
    EXPECT_INT(world_launch(stream, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
    EXPECT(!world_ran(FIRST));
}

static void capture_query_answers(void)
{
    const uint64_t first = new_stream(NONBLOCKING), second = new_stream(NONBLOCKING);
    uint64_t id;
    EXPECT_INT(capture_status(first), CAI_CAPTURE_NONE);
    EXPECT_INT(begin(first), 0);
    EXPECT_INT(begin(second), 0);
    EXPECT_INT(capture_status(first), CAI_CAPTURE_ACTIVE);
    id = capture_id(first);
    EXPECT(id == capture_id(first));
    EXPECT(id != capture_id(second));
    EXPECT_INT(world_capture_end(first), 0);
    EXPECT_INT(capture_status(first), CAI_CAPTURE_NONE);
    EXPECT_INT(world_capture_end(second), 0);
}

static void capture_query_harms_nothing(void)
{
    const uint64_t stream = new_stream(BLOCKING), other = new_stream(BLOCKING);
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(capture_status(stream), CAI_CAPTURE_ACTIVE);
    EXPECT_INT(capture_status(other), CAI_CAPTURE_NONE);
    EXPECT_INT(capture_status(CAI_STREAM_PER_THREAD), CAI_CAPTURE_NONE);
    EXPECT_INT(capture_status(stream), CAI_CAPTURE_ACTIVE);
    EXPECT_INT(world_capture_end(stream), 0);
}

static void legacy_cannot_be_captured(void)
{
    EXPECT(begin(CAI_STREAM_LEGACY) != 0);
    EXPECT_INT(capture_status(CAI_STREAM_LEGACY), CAI_CAPTURE_NONE);
}

static void per_thread_can_be_captured(void)
{
    EXPECT_INT(begin(CAI_STREAM_PER_THREAD), 0);
    EXPECT(captures(CAI_STREAM_PER_THREAD));
    EXPECT_INT(world_launch(CAI_STREAM_PER_THREAD, 0, FIRST), 0);
    EXPECT_INT(world_capture_end(CAI_STREAM_PER_THREAD), 0);
}

static void begin_twice(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT(begin(stream) != 0);
}

static void end_without_begin(void)
{
    EXPECT(world_capture_end(new_stream(NONBLOCKING)) != 0);
}

static void synchronize_stream_in_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(synchronize(stream), 900);
    EXPECT(ends_invalidated(stream));
}

static void synchronize_context_in_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(synchronize_context(), 900);
    EXPECT(ends_invalidated(stream));
}

static void synchronize_other_context_in_capture(void)
{
    const uint64_t other = new_context(), stream = new_stream(NONBLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(push(other), 0);
    EXPECT_INT(synchronize_context(), 0);
    EXPECT_INT(pop(), 0);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void use_after_invalidation(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(synchronize(stream), 900);
    EXPECT_INT(world_launch(stream, 0, FIRST), 901);
    EXPECT_INT(record(event, stream), 901);
    EXPECT(ends_invalidated(stream));
    EXPECT_INT(world_launch(stream, 0, SECOND), 0);
    EXPECT(world_reaches(SECOND));
}

static void query_of_captured_event(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(query(event), 907);
    EXPECT(ends_invalidated(stream));
}

static void synchronize_captured_event(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(synchronize_event(event), 907);
    EXPECT(ends_invalidated(stream));
}

static void captured_event_after_the_end(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(world_capture_end(stream), 0);
    EXPECT_INT(query(event), 1);
    EXPECT_INT(synchronize_event(event), 1);
}

static void captured_event_recorded_again(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(world_capture_end(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(query(event), 0);
}

static void captured_event_destroyed(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(wait_for(stream, event), 0);
    EXPECT_INT(destroy_event(event), 0);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void wait_for_the_outside(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event_after(new_stream(NONBLOCKING));
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(wait_for(stream, event), 905);
    EXPECT(ends_invalidated(stream));
}

static void fork_and_join(void)
{
    const uint64_t origin = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    EXPECT_INT(begin(origin), 0);
    EXPECT_INT(world_launch(origin, 0, FIRST), 0);
    EXPECT(order(origin, other));
    EXPECT(captures(other));
    EXPECT(capture_id(origin) == capture_id(other));
    EXPECT_INT(world_launch(other, 0, SECOND), 0);
    EXPECT(order(other, origin));
    EXPECT_INT(world_capture_end(origin), 0);
    EXPECT_INT(capture_status(origin), CAI_CAPTURE_NONE);
    EXPECT_INT(capture_status(other), CAI_CAPTURE_NONE);
    EXPECT_INT(world_launch(other, 0, THIRD), 0);
    EXPECT(world_reaches(THIRD));
    EXPECT(!world_ran(FIRST));
    EXPECT(!world_ran(SECOND));
}

static void fork_without_join(void)
{
    const uint64_t origin = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    EXPECT_INT(begin(origin), 0);
    EXPECT_INT(world_launch(origin, 0, FIRST), 0);
    EXPECT(order(origin, other));
    EXPECT_INT(world_launch(other, 0, SECOND), 0);
    EXPECT_INT(world_capture_end(origin), 904);
    EXPECT_INT(capture_status(origin), CAI_CAPTURE_NONE);
    EXPECT_INT(capture_status(other), CAI_CAPTURE_NONE);
}

static void fork_without_work(void)
{
    const uint64_t origin = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    EXPECT_INT(begin(origin), 0);
    EXPECT_INT(world_launch(origin, 0, FIRST), 0);
    EXPECT(order(origin, other));
    EXPECT_INT(world_capture_end(origin), 0);
    EXPECT_INT(capture_status(other), CAI_CAPTURE_NONE);
}

static void merge_of_captures(void)
{
    const uint64_t first = new_stream(NONBLOCKING), second = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(first), 0);
    EXPECT_INT(begin(second), 0);
    EXPECT_INT(record(event, first), 0);
    EXPECT_INT(wait_for(second, event), 902);
    EXPECT(ends_invalidated(first));
    EXPECT(ends_invalidated(second));
}

static void end_on_another_stream(void)
{
    const uint64_t origin = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    EXPECT_INT(begin(origin), 0);
    EXPECT(order(origin, other));
    EXPECT_INT(world_capture_end(other), 903);
}

static void capture_after_903(void)
{
    const uint64_t origin = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    EXPECT_INT(begin(origin), 0);
    EXPECT(order(origin, other));
    EXPECT(world_capture_end(other) != 0);
    EXPECT_INT(capture_status(origin), CAI_CAPTURE_NONE);
    EXPECT_INT(capture_status(other), CAI_CAPTURE_NONE);
    EXPECT_INT(world_capture_end(origin), 901);
}

static void end_on_another_thread(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_on_thread(0, thread_set_device, 0, 0), 0);
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(world_on_thread(0, thread_capture_end, stream, 0), 908);
}

static void capture_after_908(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_on_thread(0, thread_set_device, 0, 0), 0);
    EXPECT_INT(world_capture_begin(stream, WORLD_THREAD_LOCAL), 0);
    EXPECT(world_on_thread(0, thread_capture_end, stream, 0) != 0);
    EXPECT_INT(capture_status(stream), CAI_CAPTURE_NONE);
    EXPECT_INT(world_capture_end(stream), 401);
}

static void relaxed_end_on_another_thread(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_on_thread(0, thread_set_device, 0, 0), 0);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(world_on_thread(0, thread_capture_end, stream, 0), 0);
    EXPECT_INT(capture_status(stream), CAI_CAPTURE_NONE);
}

static void legacy_launch_in_capture(void)
{
    const uint64_t stream = new_stream(BLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, FIRST), 906);
    EXPECT(ends_invalidated(stream));
}

static void legacy_events_in_capture(void)
{
    const uint64_t stream = new_stream(BLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, CAI_STREAM_LEGACY), 906);
    EXPECT(ends_invalidated(stream));
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(wait_for(CAI_STREAM_LEGACY, event), 906);
    EXPECT(ends_invalidated(stream));
}

static void legacy_synchronize_in_capture(void)
{
    const uint64_t stream = new_stream(BLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(synchronize(CAI_STREAM_LEGACY), 906);
    EXPECT(ends_invalidated(stream));
}

static void legacy_query_in_capture(void)
{
    const uint64_t stream = new_stream(BLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(capture_status(CAI_STREAM_LEGACY), -906);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void legacy_beside_nonblocking_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(capture_status(CAI_STREAM_LEGACY), CAI_CAPTURE_NONE);
    EXPECT_INT(world_launch(CAI_STREAM_LEGACY, 0, FIRST), 0);
    EXPECT(world_reaches(FIRST));
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void order_across_a_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(world_launch(stream, 0, SECOND), 0);
    EXPECT_INT(world_capture_end(stream), 0);
    EXPECT_INT(world_launch(stream, 0, THIRD), 0);
    EXPECT(held(THIRD));
    EXPECT(follows(THIRD, FIRST, stream));
    EXPECT(!world_ran(SECOND));
}

static void wait_for_an_invalidated_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(synchronize(stream), 900);
    EXPECT(wait_for(other, event) != 0);
    EXPECT_INT(capture_status(other), CAI_CAPTURE_NONE);
    EXPECT(ends_invalidated(stream));
}

static void wait_for_an_ended_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(world_capture_end(stream), 0);
    EXPECT(wait_for(other, event) != 0);
    EXPECT_INT(capture_status(other), CAI_CAPTURE_NONE);
}

#define BEGIN_CAPTURE "CUDA Driver API, cuStreamBeginCapture"
#define END_CAPTURE "CUDA Driver API, cuStreamEndCapture"
#define CAPTURE_QUERY "CUDA Driver API, cuStreamIsCapturing"
#define RESULT "CUDA Driver API, CUresult "
#define GUIDE_PROHIBITED "CUDA C++ Programming Guide, Prohibited and Unhandled Operations"
#define GUIDE_INVALIDATION "CUDA C++ Programming Guide, Invalidation"
#define GUIDE_CROSS "CUDA C++ Programming Guide, Cross-stream Dependencies and Events"

const rule rules_of_captures[] = {
    {"C01", "work in a stream that captures does not run", BEGIN_CAPTURE, RULE_DOCUMENTED, 0,
     captured_work_does_not_run},
    {"C02", "a capture query tells none from active, and one capture from another by its id",
     "CUDA Driver API, cuStreamGetCaptureInfo", RULE_DOCUMENTED, 0, capture_query_answers},
    {"C03", "a capture query harms no capture, of whichever stream", CAPTURE_QUERY, RULE_DOCUMENTED, 0,
     capture_query_harms_nothing},
    {"C04", "the legacy stream cannot be captured", BEGIN_CAPTURE, RULE_DOCUMENTED, 0,
     legacy_cannot_be_captured},
    {"C05", "the per-thread stream can be captured",
     "CUDA C++ Programming Guide, Creating a Graph Using Stream Capture", RULE_DOCUMENTED, 0,
     per_thread_can_be_captured},
    {"C06", "a stream that captures cannot begin another capture", BEGIN_CAPTURE, RULE_DOCUMENTED, 0,
     begin_twice},
    {"C07", "a capture that was not begun cannot be ended", END_CAPTURE, RULE_DOCUMENTED, 0,
     end_without_begin},
    {"C08", "synchronizing a stream that captures is 900 and invalidates the capture; its end is 901",
     GUIDE_PROHIBITED, RULE_DOCUMENTED, 0, synchronize_stream_in_capture},
    {"C09", "synchronizing a context in which a stream captures is 900 and invalidates the capture",
     GUIDE_PROHIBITED, RULE_DOCUMENTED, 0, synchronize_context_in_capture},
    {"C10", "synchronizing another context leaves the capture alone", GUIDE_PROHIBITED, RULE_DOCUMENTED,
     NEEDS_CONTEXT, synchronize_other_context_in_capture},
    {"C11", "launch and record in an invalidated capture are 901; after its end the stream works",
     GUIDE_INVALIDATION "; " CAPTURE_QUERY, RULE_DOCUMENTED, 0, use_after_invalidation},
    {"C12", "a query of an event recorded in a capture is 907 and invalidates the capture", RESULT "907",
     RULE_DOCUMENTED, 0, query_of_captured_event},
    {"C13", "synchronizing an event recorded in a capture is 907 and invalidates the capture", RESULT "907",
     RULE_DOCUMENTED, 0, synchronize_captured_event},
    {"C14", "an event recorded in a capture is no good after its end: a query is 1",
     RESULT "907 (\"last recorded in a capturing stream\"); cai_stream.h does not ask", RULE_OBSERVED, 0,
     captured_event_after_the_end},
    {"C15", "an event recorded in a capture and again outside is an ordinary event", RESULT "907",
     RULE_DOCUMENTED, 0, captured_event_recorded_again},
    {"C16", "an event recorded and waited for in a capture may be destroyed before its end",
     "not said; cai_stream.h retires events so", RULE_SILENT, 0, captured_event_destroyed},
    {"C17", "a wait of a stream that captures for an event from outside is 905 and invalidates the capture",
     GUIDE_PROHIBITED "; " RESULT "905", RULE_DOCUMENTED, 0, wait_for_the_outside},
    {"C18",
     "a wait for an event of a capture pulls the stream into it; joined back, all are out at the end",
     GUIDE_CROSS, RULE_DOCUMENTED, 0, fork_and_join},
    {"C19", "a stream with work that was pulled in and not joined makes the end 904; all are out of it",
     GUIDE_CROSS "; " RESULT "904", RULE_DOCUMENTED, 0, fork_without_join},
    {"C20", "a stream without work of its own need not be joined", "not said", RULE_OBSERVED, 0,
     fork_without_work},
    {"C21", "a wait of one capture for an event of another is 902 and invalidates both",
     GUIDE_PROHIBITED "; " RESULT "902", RULE_DOCUMENTED, 0, merge_of_captures},
    {"C22", "a capture ended on a stream that it did not begin on is 903", RESULT "903", RULE_DOCUMENTED, 0,
     end_on_another_stream},
    {"C23", "after a 903 the capture is over, and its end is 901", "not said", RULE_OBSERVED, 0,
     capture_after_903},
    {"C24", "a capture ended on another host thread is 908, if it is not relaxed", END_CAPTURE,
     RULE_DOCUMENTED, 0, end_on_another_thread},
    {"C25", "after a 908 the capture is over, and its end is 401", "not said", RULE_OBSERVED, 0,
     capture_after_908},
    {"C26", "a relaxed capture may be ended on another host thread", END_CAPTURE, RULE_DOCUMENTED, 0,
     relaxed_end_on_another_thread},
    {"C27",
     "a launch in the legacy stream is 906 while a blocking stream captures, and invalidates the capture",
     GUIDE_PROHIBITED "; " RESULT "906", RULE_DOCUMENTED, 0, legacy_launch_in_capture},
    {"C28",
     "a record and a wait in the legacy stream are 906 while a blocking stream captures, and invalidate it",
     GUIDE_PROHIBITED "; " RESULT "906", RULE_DOCUMENTED, 0, legacy_events_in_capture},
    {"C29",
     "synchronizing the legacy stream is 906 while a blocking stream captures, and invalidates the capture",
     GUIDE_PROHIBITED "; measured in ROCm/rocm-systems pull request 4508", RULE_DOCUMENTED, 0,
     legacy_synchronize_in_capture},
    {"C30",
     "a capture query of the legacy stream is 906 while a blocking stream captures, and harms nothing",
     CAPTURE_QUERY, RULE_DOCUMENTED, 0, legacy_query_in_capture},
    {"C31", "while a non-blocking stream captures, the legacy stream works as ever", GUIDE_PROHIBITED,
     RULE_DOCUMENTED, 0, legacy_beside_nonblocking_capture},
    {"C32", "work after a capture waits for the work before it in the same stream", GUIDE_CROSS " (note)",
     RULE_DOCUMENTED, 0, order_across_a_capture},
    {"C33", "a wait for an event of an invalidated capture is an error, and pulls nothing in",
     GUIDE_INVALIDATION, RULE_DOCUMENTED, 0, wait_for_an_invalidated_capture},
    {"C34", "a wait for an event of a capture that has ended is an error, and pulls nothing in", "not said",
     RULE_OBSERVED, 0, wait_for_an_ended_capture},
    {NULL, NULL, NULL, 0, 0, NULL}};

/* ---------------------------------------------------------------------- modes */
/* Host thread 0 captures, this one does something unsafe: an allocation. What does it say, and what of the
 * capture? */
static int elsewhere(uint64_t stream, int32_t mode)
{
    return world_on_thread(0, thread_set_device, 0, 0) == 0 &&
           world_on_thread(0, thread_capture_begin, stream, (uint64_t)mode) == 0;
}

static int lives_elsewhere(uint64_t stream)
{
    return captures(stream) && world_on_thread(0, thread_capture_end, stream, 0) == 0;
}

static int was_invalidated_elsewhere(uint64_t stream)
{
    return is_invalidated(stream) && world_on_thread(0, thread_capture_end, stream, 0) == 901;
}

static int32_t alloc_here(void)
{
    return thread_alloc(0, 0);
}

static int32_t set_mode(int32_t mode)
{
    return thread_mode((uint64_t)mode, 0);
}

static void mode_exchange(void)
{
    EXPECT_INT(set_mode(WORLD_RELAXED), WORLD_GLOBAL);
    EXPECT_INT(set_mode(WORLD_THREAD_LOCAL), WORLD_RELAXED);
    EXPECT_INT(world_on_thread(0, thread_mode, WORLD_GLOBAL, 0), WORLD_GLOBAL); /* its own */
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_THREAD_LOCAL);
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_GLOBAL);
}

static void unsafe_beside_global(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(alloc_here(), 900);
    EXPECT(was_invalidated_elsewhere(stream));
}

static void query_beside_global(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event_after(new_stream(NONBLOCKING));
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(query(event), 900);
    EXPECT(was_invalidated_elsewhere(stream));
}

static void relaxed_beside_global(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(set_mode(WORLD_RELAXED), WORLD_GLOBAL);
    EXPECT_INT(alloc_here(), 0);
    EXPECT_INT(query(event), 0);
    EXPECT_INT(synchronize_event(event), 0);
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_RELAXED);
    EXPECT(lives_elsewhere(stream));
}

static void relaxed_synchronize_beside_global(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), own = new_stream(NONBLOCKING);
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(set_mode(WORLD_RELAXED), WORLD_GLOBAL);
    EXPECT_INT(synchronize(own), 0);
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_RELAXED);
    EXPECT(lives_elsewhere(stream));
}

static void thread_local_beside_global(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(set_mode(WORLD_THREAD_LOCAL), WORLD_GLOBAL);
    EXPECT_INT(alloc_here(), 0);
    EXPECT_INT(query(event), 0);
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_THREAD_LOCAL);
    EXPECT(lives_elsewhere(stream));
}

static void global_beside_thread_local(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT(elsewhere(stream, WORLD_THREAD_LOCAL));
    EXPECT_INT(alloc_here(), 0);
    EXPECT_INT(query(event), 0);
    EXPECT(lives_elsewhere(stream));
}

static void global_beside_relaxed(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT(elsewhere(stream, WORLD_RELAXED));
    EXPECT_INT(alloc_here(), 0);
    EXPECT_INT(query(event), 0);
    EXPECT(lives_elsewhere(stream));
}

static void unsafe_in_own_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(alloc_here(), 900);
    EXPECT(ends_invalidated(stream));
    EXPECT_INT(world_capture_begin(stream, WORLD_THREAD_LOCAL), 0);
    EXPECT_INT(alloc_here(), 900);
    EXPECT(ends_invalidated(stream));
}

static void thread_local_in_own_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(set_mode(WORLD_THREAD_LOCAL), WORLD_GLOBAL);
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(alloc_here(), 900);
    EXPECT(ends_invalidated(stream));
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_THREAD_LOCAL);
}

static void unsafe_in_own_relaxed_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(begin(stream), 0);
    EXPECT_INT(alloc_here(), 0);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void relaxed_in_own_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(set_mode(WORLD_RELAXED), WORLD_GLOBAL);
    EXPECT_INT(alloc_here(), 0);
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_RELAXED);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void relaxed_does_not_excuse(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(set_mode(WORLD_RELAXED), WORLD_GLOBAL);
    EXPECT_INT(query(event), 907);
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_RELAXED);
    EXPECT(ends_invalidated(stream));
}

static void events_are_safe(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), first = new_stream(NONBLOCKING);
    const uint64_t second = new_stream(NONBLOCKING);
    uint64_t event;
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    event = new_event();
    EXPECT_INT(record(event, first), 0);
    EXPECT_INT(wait_for(second, event), 0);
    EXPECT_INT(destroy_event(event), 0);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void queries_are_safe(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE), stream = new_stream(NONBLOCKING);
    cai_cuda_pointer info;
    uint64_t context = 0, base, size;
    int32_t number;
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(range_of(memory, &base, &size), 0);
    EXPECT_INT(cuda->device_context(cuda->self, 0, &context), 0);
    EXPECT_INT(push(context), 0);
    EXPECT_INT(context_of(stream, &context), 0);
    EXPECT_INT(cuda->context_device(cuda->self, &number), 0);
    EXPECT_INT(cuda->device_attribute(cuda->self, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &number), 0);
    EXPECT_INT(pop(), 0);
    EXPECT(captures(stream));
    EXPECT_INT(world_capture_end(stream), 0);
}

static void event_synchronize_is_unsafe(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(synchronize_event(event), 900);
    EXPECT(was_invalidated_elsewhere(stream));
}

static void stream_synchronize_is_unsafe(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), own = new_stream(NONBLOCKING);
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(synchronize(own), 900);
    EXPECT(was_invalidated_elsewhere(stream));
}

static void context_synchronize_is_safe(void)
{
    const uint64_t other = new_context(), stream = new_stream(NONBLOCKING);
    EXPECT(elsewhere(stream, WORLD_GLOBAL));
    EXPECT_INT(push(other), 0);
    EXPECT_INT(synchronize_context(), 0);
    EXPECT_INT(pop(), 0);
    EXPECT(captures(stream));
    EXPECT_INT(world_on_thread(0, thread_capture_end, stream, 0), 0);
}

#define EXCHANGE_MODE "CUDA Driver API, cuThreadExchangeStreamCaptureMode"
#define UNSAFE_SAID "not said which calls are unsafe; cai_stream.h calls it under the relaxed mode"

const rule rules_of_modes[] = {
    {"M01", "each host thread has a capture mode, global at first; the exchange gives the one before",
     EXCHANGE_MODE, RULE_DOCUMENTED, 0, mode_exchange},
    {"M02", "while another thread captures globally, an allocation is 900 and invalidates the capture",
     EXCHANGE_MODE "; " GUIDE_INVALIDATION, RULE_DOCUMENTED, 0, unsafe_beside_global},
    {"M03",
     "while another thread captures globally, a query of any event is 900 and invalidates the capture",
     "pytorch/pytorch pull request 104555; cai_keepalive_poll", RULE_SILENT, 0, query_beside_global},
    {"M04",
     "in the relaxed mode a thread may allocate, query and synchronize events beside a global capture",
     EXCHANGE_MODE, RULE_DOCUMENTED, 0, relaxed_beside_global},
    {"M05", "in the relaxed mode a thread may synchronize other streams beside a global capture",
     EXCHANGE_MODE, RULE_DOCUMENTED, 0, relaxed_synchronize_beside_global},
    {"M06", "in the thread-local mode a thread may allocate and query events beside a global capture",
     EXCHANGE_MODE, RULE_DOCUMENTED, 0, thread_local_beside_global},
    {"M07", "a thread-local capture forbids nothing to other threads", EXCHANGE_MODE, RULE_DOCUMENTED, 0,
     global_beside_thread_local},
    {"M08", "a relaxed capture forbids nothing to other threads", EXCHANGE_MODE, RULE_DOCUMENTED, 0,
     global_beside_relaxed},
    {"M09", "in an own capture, global or thread-local, an allocation is 900 and invalidates it",
     EXCHANGE_MODE "; " GUIDE_INVALIDATION, RULE_DOCUMENTED, 0, unsafe_in_own_capture},
    {"M10", "the thread-local mode does not excuse an allocation in an own capture", EXCHANGE_MODE,
     RULE_DOCUMENTED, 0, thread_local_in_own_capture},
    {"M11", "in an own relaxed capture a thread may allocate", EXCHANGE_MODE, RULE_DOCUMENTED, 0,
     unsafe_in_own_relaxed_capture},
    {"M12", "a thread in the relaxed mode may allocate in an own global capture", EXCHANGE_MODE,
     RULE_DOCUMENTED, 0, relaxed_in_own_capture},
    {"M13", "the relaxed mode does not excuse a query of a captured event", EXCHANGE_MODE, RULE_DOCUMENTED,
     0, relaxed_does_not_excuse},
    {"M14", "event_create, event_destroy, and record and wait on streams that do not capture, are safe",
     "not said; cai_stream.h makes them in any mode", RULE_SILENT, 0, events_are_safe},
    {"M15", "queries of memory, contexts and devices, push and pop are safe",
     "not said; cai_stream.h makes them in any mode", RULE_SILENT, 0, queries_are_safe},
    {"M16", "event_synchronize is unsafe like event_query", UNSAFE_SAID, RULE_OBSERVED, 0,
     event_synchronize_is_unsafe},
    {"M17", "stream_synchronize is unsafe also of a stream that does not capture",
     UNSAFE_SAID "; ROCm/rocm-systems pull request 4508 measured otherwise on two devices", RULE_OBSERVED,
     0, stream_synchronize_is_unsafe},
    {"M18", "context_synchronize of a context in which nothing captures is allowed", UNSAFE_SAID,
     RULE_OBSERVED, NEEDS_CONTEXT, context_synchronize_is_safe},
    {NULL, NULL, NULL, 0, 0, NULL}};
