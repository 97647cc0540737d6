/* rules.h - what the rules are made of: the table of them, checks, and short names for the calls of CUDA.
 * SPDX-License-Identifier: MIT */
#ifndef CONFORMANCE_RULES_H
#define CONFORMANCE_RULES_H

#include "world.h"

/* What stands behind a rule, and so what it means that a world does otherwise. */
enum {
    RULE_DOCUMENTED, /* CUDA's documents say so: must hold everywhere */
    RULE_SILENT,     /* they do not, but cai relies on it: must hold everywhere */
    RULE_OBSERVED,   /* they do not, and cai keeps away from it: a choice of the simulation, told of a GPU */
    RULE_SIMULATED   /* undefined in CUDA, or not to be had there: on the simulation alone */
};

enum {
    NEEDS_DEVICES = 1,  /* two of them */
    NEEDS_CONTEXT = 2,  /* one beside the primary contexts */
    NEEDS_ID = 4,       /* the operation stream_id */
    LEAVES_RUINS = 8    /* nothing can be checked in the process afterwards */
};

typedef struct rule {
    const char *id, *sentence;
    const char *source; /* the document, and where in it; an issue; or who relies on it */
    int kind, needs;
    void (*check)(void);
} rule;

/* A rule of which CUDA leaves the answer open: cai must be right with either one. The check says which it is
 * (ANSWER); on the simulation it must be the one that an option asks for. */
typedef struct rule_choice {
    const char *id, *option; /* on: the second answer */
    const char *answers[2];
} rule_choice;

/* Ended by NULL. */
extern const rule_choice rule_choices[];

/* NULL: the rule has one answer. */
const rule_choice *rule_choice_of(const char *id);

/* Ended by NULL. */
extern const rule *const rule_lists[];
extern const rule rules_of_events[], rules_of_legacy[], rules_of_contexts[], rules_of_captures[],
    rules_of_modes[], rules_of_memory[], rules_of_allocation[], rules_of_copies[], rules_of_graphs[],
    rules_of_pools[], rules_of_errors[], rules_of_devices[];

/* --------------------------------------------------------------------- checks */
/* The first failure of a rule is kept and ends its function. */
int rule_expect(const char *file, int line, const char *what, int good);
int rule_expect_int(const char *file, int line, const char *what, int64_t actual, int64_t expected);
void rule_skip(const char *reason);
void rule_answer(int second); /* 0: the first one */

#define EXPECT(condition)                                                            \
    do {                                                                             \
        if (!rule_expect(__FILE__, __LINE__, #condition, (condition) ? 1 : 0)) return; \
    } while (0)
#define EXPECT_INT(actual, expected)                                                     \
    do {                                                                                 \
        if (!rule_expect_int(__FILE__, __LINE__, #actual, (int64_t)(actual), (expected))) return; \
    } while (0)
#define ANSWER(second) rule_answer((second) ? 1 : 0)
#define SKIP(reason)       \
    do {                   \
        rule_skip(reason); \
        return;            \
    } while (0)

/* Marks and flags: any names will do. */
enum { GATE = 1, SECOND_GATE = 2 };
enum { FIRST = 1, SECOND, THIRD, FOURTH, FIRST_BYSTANDER = 32 };
enum { BLOCKING = 0, NONBLOCKING = 1 };

/* ---------------------------------------------------------------- small steps */
extern const cai_cuda *cuda; /* the table of the world */

uint64_t new_stream(int nonblocking); /* in the current context; fails the rule rather than give 0 */
uint64_t new_event(void);
uint64_t new_context(void); /* a further one on device 0 */
uint64_t new_memory(int32_t kind); /* ENOUGH bytes; 0: the rule failed, or is skipped */
uint64_t primary(void);     /* the context of device 0 */

enum { ENOUGH = 1 << 22 };

/* A kernel that spins until GATE is set. */
int32_t spin(uint64_t stream, int32_t mark);

/* An event after all work in a stream; and the order of two streams, both of the current context. */
uint64_t new_event_after(uint64_t stream);
int order(uint64_t before, uint64_t after);

/* `mark` does not run although a stream that has nothing to do with it gets through: it is held back. */
int held(int32_t mark);

/* Sets GATE, waits for `stream`, and says whether `later` came after `earlier` there. */
int follows(int32_t later, int32_t earlier, uint64_t stream);

/* Of a stream. */
int32_t capture_status(uint64_t stream);
uint64_t capture_id(uint64_t stream);
int captures(uint64_t stream);
int is_invalidated(uint64_t stream);

int is_current(uint64_t context);
uint64_t current(void);

/* The same for world_on_thread. */
int32_t thread_set_device(uint64_t device, uint64_t unused);
int32_t thread_current_is(uint64_t context, uint64_t unused);
int32_t thread_push(uint64_t context, uint64_t unused);
int32_t thread_pop(uint64_t unused, uint64_t unused_too);
int32_t thread_launch(uint64_t stream, uint64_t mark);
int32_t thread_capture_begin(uint64_t stream, uint64_t mode);
int32_t thread_capture_end(uint64_t stream, uint64_t unused);
int32_t thread_event_create(uint64_t unused, uint64_t unused_too);
int32_t thread_event_destroy(uint64_t event, uint64_t unused);
int32_t thread_event_query(uint64_t event, uint64_t unused);
int32_t thread_event_synchronize(uint64_t event, uint64_t unused);
int32_t thread_record(uint64_t event, uint64_t stream);
int32_t thread_wait(uint64_t stream, uint64_t event);
int32_t thread_synchronize(uint64_t stream, uint64_t unused);
int32_t thread_mode(uint64_t mode, uint64_t unused); /* minus 1 on failure, else the mode before */
int32_t thread_alloc(uint64_t unused, uint64_t unused_too);

/* The operations of the table. */
static inline int32_t record(uint64_t event, uint64_t stream)
{
    return cuda->event_record(cuda->self, event, stream);
}

static inline int32_t wait_for(uint64_t stream, uint64_t event)
{
    return cuda->stream_wait_event(cuda->self, stream, event);
}

static inline int32_t query(uint64_t event)
{
    return cuda->event_query(cuda->self, event);
}

static inline int32_t synchronize_event(uint64_t event)
{
    return cuda->event_synchronize(cuda->self, event);
}

static inline int32_t synchronize(uint64_t stream)
{
    return cuda->stream_synchronize(cuda->self, stream);
}

static inline int32_t synchronize_context(void)
{
    return cuda->context_synchronize(cuda->self);
}

static inline int32_t destroy_event(uint64_t event)
{
    return cuda->event_destroy(cuda->self, event);
}

static inline int32_t push(uint64_t context)
{
    return cuda->context_push(cuda->self, context);
}

static inline int32_t pop(void)
{
    return cuda->context_pop(cuda->self);
}

static inline int32_t info_of(uint64_t pointer, cai_cuda_pointer *info)
{
    return cuda->pointer_info(cuda->self, pointer, info);
}

static inline int32_t range_of(uint64_t pointer, uint64_t *base, uint64_t *size)
{
    return cuda->pointer_range(cuda->self, pointer, base, size);
}

static inline int32_t id_of(uint64_t stream, uint64_t *id)
{
    return cuda->stream_id(cuda->self, stream, id);
}

static inline int32_t context_of(uint64_t stream, uint64_t *context)
{
    return cuda->stream_context(cuda->self, stream, context);
}

/* ---------------------------------------------------------------- for the run */
/* What became of a rule's function. */
enum { CHECK_CONFIRMED, CHECK_FAILED, CHECK_SKIPPED };

/* Runs a rule's function in the world as it is; text: what failed, why it was skipped, or the answer. */
int rule_run(const rule *what, char *text, size_t capacity);

#endif
