/* rules.c - the list of the rules, and the steps they share.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

#include <stdio.h>
#include <string.h>

const rule *const rule_lists[] = {rules_of_events,     rules_of_legacy, rules_of_contexts,
                                  rules_of_captures,   rules_of_modes,  rules_of_memory,
                                  rules_of_allocation, rules_of_copies, rules_of_graphs,
                                  rules_of_pools,
                                  rules_of_errors,     rules_of_devices, NULL};

const rule_choice rule_choices[] = {
    {"X07", "one_thread_contexts", {"it may be current on several", "on one at a time: 216"}},
    {"X23", "primary_inactive", {"the context", "0"}},
    {"S08", "reuse", {"another handle", "the same handle"}},
    {"P19", "need_context", {"it is told", "it is left open"}},
    {"P20", "segments", {"the mapping", "one segment"}},
    {"A09", "free_returns", {"it waits", "it does not wait"}},
    {"A10", "free_returns", {"it waits", "it does not wait"}},
    {"D09", "free_own_context", {"it waits", "it does not wait"}},
    {"T09", "copy_returns", {"it waits", "it does not wait"}},
    {"T10", "copy_returns", {"it waits", "it does not wait"}},
    {"T11", "copy_returns", {"it waits", "it does not wait"}},
    {"T29", "copy_needs_access", {"it copies", "1"}},
    {"K10", "pool_reuse", {"other memory", "the same"}},
    {"K11", "pool_reuse", {"other memory", "the same"}},
    {NULL, NULL, {NULL, NULL}}};

const cai_cuda *cuda;

static char rule_text[WORLD_TEXT];
static int rule_result, rule_answered; /* -1: not yet */
static uint64_t rule_bystander; /* a stream that waits for nothing */
static int32_t rule_bystander_mark;

/* --------------------------------------------------------------------- checks */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* On whichever host thread: the rule waits for the others. */
static void rule_fail(void)
{
    if (rule_result == CHECK_CONFIRMED) rule_result = CHECK_FAILED;
}

int rule_expect(const char *file, int line, const char *what, int good)
{
    if (good) return rule_result == CHECK_CONFIRMED;
    if (rule_result == CHECK_CONFIRMED)
        (void)snprintf(rule_text, sizeof rule_text, "%s:%d: %s does not hold", file_name(file), line, what);
    rule_fail();
    return 0;
}

int rule_expect_int(const char *file, int line, const char *what, int64_t actual, int64_t expected)
{
    if (actual == expected) return rule_result == CHECK_CONFIRMED;
    if (rule_result == CHECK_CONFIRMED)
        (void)snprintf(rule_text, sizeof rule_text, "%s:%d: %s is %lld, not %lld", file_name(file), line,
                       what, (long long)actual, (long long)expected);
    rule_fail();
    return 0;
}

void rule_skip(const char *reason)
{
    if (rule_result != CHECK_CONFIRMED) return;
    rule_result = CHECK_SKIPPED;
    (void)snprintf(rule_text, sizeof rule_text, "%s", reason);
}

void rule_answer(int second)
{
    rule_answered = second;
}

const rule_choice *rule_choice_of(const char *id)
{
    const rule_choice *choice = rule_choices;
    while (choice->id != NULL && strcmp(choice->id, id) != 0) choice++;
    return choice->id == NULL ? NULL : choice;
}

/* Of a rule that held: on the simulation its answer is known beforehand. */
static void judge_answer(const rule_choice *choice)
{
    const int expected = world_option(choice->option);
    const int known = rule_answered == 0 || rule_answered == 1;
    if (!known || (expected >= 0 && rule_answered != expected)) rule_fail();
    if (!known) (void)snprintf(rule_text, sizeof rule_text, "no answer");
    else if (rule_result == CHECK_CONFIRMED)
        (void)snprintf(rule_text, sizeof rule_text, "%s", choice->answers[rule_answered]);
    else
        (void)snprintf(rule_text, sizeof rule_text, "%s, though %s is %s", choice->answers[rule_answered],
                       choice->option, expected ? "on" : "off");
}

int rule_run(const rule *what, char *text, size_t capacity)
{
    const rule_choice *choice = rule_choice_of(what->id);
    cuda = world_cuda();
    rule_result = CHECK_CONFIRMED;
    rule_answered = -1;
    rule_text[0] = 0;
    rule_bystander_mark = FIRST_BYSTANDER;
    rule_bystander = new_stream(NONBLOCKING);
    if (rule_result == CHECK_CONFIRMED) what->check();
    if (rule_result == CHECK_CONFIRMED && choice != NULL) judge_answer(choice);
    (void)snprintf(text, capacity, "%s", rule_text);
    return rule_result;
}

/* ---------------------------------------------------------------- small steps */
static uint64_t made(const char *what, uint64_t handle)
{
    (void)rule_expect(__FILE__, __LINE__, what, handle != 0);
    return handle;
}

uint64_t new_stream(int nonblocking)
{
    return made("a stream can be made: that", world_stream_create(nonblocking));
}

uint64_t new_event(void)
{
    uint64_t event = 0;
    const int32_t error = cuda->event_create(cuda->self, &event);
    return made("an event can be made: that", error ? 0 : event);
}

uint64_t new_context(void)
{
    return made("a context can be made: that", world_context_create(0));
}

uint64_t new_memory(int32_t kind)
{
    uint64_t address = 0;
    const int32_t error = world_alloc(kind, ENOUGH, &address);
    if (error != WORLD_NO_SUCH_MEMORY) return made("memory can be had: that", error ? 0 : address);
    rule_skip("no such memory");
    return 0;
}

uint64_t primary(void)
{
    uint64_t context = 0;
    const int32_t error = cuda->device_context(cuda->self, 0, &context);
    return made("device 0 has a context: that", error ? 0 : context);
}

int32_t spin(uint64_t stream, int32_t mark)
{
    return world_launch(stream, GATE, mark);
}

uint64_t new_event_after(uint64_t stream)
{
    const uint64_t event = new_event();
    return made("a record is possible: that", record(event, stream) ? 0 : event);
}

int order(uint64_t before, uint64_t after)
{
    const uint64_t event = new_event();
    return record(event, before) == 0 && wait_for(after, event) == 0;
}

int held(int32_t mark)
{
    const int32_t bystander = rule_bystander_mark++;
    if (world_launch(rule_bystander, 0, bystander)) return 0;
    return world_reaches(bystander) && !world_ran(mark);
}

int follows(int32_t later, int32_t earlier, uint64_t stream)
{
    world_set(GATE);
    return synchronize(stream) == 0 && world_saw(later, earlier);
}

int32_t capture_status(uint64_t stream)
{
    cai_cuda_capture capture;
    const int32_t error = cuda->stream_capture(cuda->self, stream, &capture);
    return error ? -error : capture.status;
}

uint64_t capture_id(uint64_t stream)
{
    cai_cuda_capture capture;
    const int32_t error = cuda->stream_capture(cuda->self, stream, &capture);
    return error || capture.status != CAI_CAPTURE_ACTIVE ? 0 : capture.id;
}

int captures(uint64_t stream)
{
    return capture_status(stream) == CAI_CAPTURE_ACTIVE;
}

int is_invalidated(uint64_t stream)
{
    return capture_status(stream) == CAI_CAPTURE_INVALIDATED;
}

uint64_t current(void)
{
    uint64_t context = 0;
    return cuda->context_current(cuda->self, &context) ? UINT64_MAX : context;
}

int is_current(uint64_t context)
{
    return current() == context;
}

/* ------------------------------------------------------------ on other threads */
int32_t thread_set_device(uint64_t device, uint64_t unused)
{
    (void)unused;
    return world_set_device((int32_t)device);
}

int32_t thread_current_is(uint64_t context, uint64_t unused)
{
    (void)unused;
    return is_current(context);
}

int32_t thread_push(uint64_t context, uint64_t unused)
{
    (void)unused;
    return push(context);
}

int32_t thread_pop(uint64_t unused, uint64_t unused_too)
{
    (void)unused;
    (void)unused_too;
    return pop();
}

int32_t thread_launch(uint64_t stream, uint64_t mark)
{
    return world_launch(stream, 0, (int32_t)mark);
}

int32_t thread_capture_begin(uint64_t stream, uint64_t mode)
{
    return world_capture_begin(stream, (int32_t)mode);
}

int32_t thread_capture_end(uint64_t stream, uint64_t unused)
{
    (void)unused;
    return world_capture_end(stream);
}

int32_t thread_event_create(uint64_t unused, uint64_t unused_too)
{
    uint64_t event = 0;
    (void)unused;
    (void)unused_too;
    return cuda->event_create(cuda->self, &event);
}

int32_t thread_event_destroy(uint64_t event, uint64_t unused)
{
    (void)unused;
    return destroy_event(event);
}

int32_t thread_event_query(uint64_t event, uint64_t unused)
{
    (void)unused;
    return query(event);
}

int32_t thread_event_synchronize(uint64_t event, uint64_t unused)
{
    (void)unused;
    return synchronize_event(event);
}

int32_t thread_record(uint64_t event, uint64_t stream)
{
    return record(event, stream);
}

int32_t thread_wait(uint64_t stream, uint64_t event)
{
    return wait_for(stream, event);
}

int32_t thread_synchronize(uint64_t stream, uint64_t unused)
{
    (void)unused;
    return synchronize(stream);
}

int32_t thread_mode(uint64_t mode, uint64_t unused)
{
    int32_t exchanged = (int32_t)mode;
    (void)unused;
    return cuda->capture_mode(cuda->self, &exchanged) ? -1 : exchanged;
}

int32_t thread_alloc(uint64_t unused, uint64_t unused_too)
{
    uint64_t address = 0;
    (void)unused;
    (void)unused_too;
    return world_alloc(WORLD_DEVICE, ENOUGH, &address);
}
