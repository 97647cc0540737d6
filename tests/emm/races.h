/* races.h - two threads in one: what another thread does between two steps of a call of cai_manager.h.
 * SPDX-License-Identifier: MIT
 *
 * The slots of the CUDA table, the hooks and alloc_fn are places where "another thread", host thread 2 of the
 * simulation, gets to run: a function of the test, armed by meanwhile(place, skip, function). What the
 * hooks that free get is held against the work that the test queued: the free must come after all of it. */
#ifndef RACES_H
#define RACES_H
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { PLACES = 8, BLOCKS = 400, WORKS = 24, FIRST_CHUNK = 64 };

static cai_sim *sim;
static cai_cuda cuda; /* the simulation's, with slots of the test around it */
static cai_event_pool pool;
static cai_keepalive places[PLACES];
static cai_manager emm;
static uint64_t c1, c2, s1, s2, s3;
static cai_error errors[2]; /* of this thread, of the other one */
static int32_t me;          /* 1: the other one runs */

#define err (&errors[me])

static void poison(void) { memset(err, 0x5a, sizeof *err); }

static void check_untouched(const char *file, int line)
{
    cai_error untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    cai_test_true(file, line, "err is untouched", memcmp(err, &untouched, sizeof untouched) == 0);
}

/* A success, which leaves err alone. */
#define GOOD(call)                                                                                           \
    do {                                                                                                     \
        poison();                                                                                            \
        CHECK_INT(call, CAI_OK);                                                                             \
        check_untouched(__FILE__, __LINE__);                                                                 \
    } while (0)

/* A failure: its status, and a word that its message must have. */
#define BAD(call, status, word)                                                                              \
    do {                                                                                                     \
        poison();                                                                                            \
        CHECK_INT(call, status);                                                                             \
        if (CHECK_INT(err->code, status)) CHECK(strstr(err->message, word) != NULL);                         \
    } while (0)

/* ------------------------------------------------------------------ the other thread */

static struct {
    const char *place; /* NULL: not armed, "": any */
    int32_t skip;      /* so many passes of the place */
    void (*run)(void);
} armed;
static int32_t ran; /* how often it did */

static void meanwhile(const char *place, int32_t skip, void (*run)(void))
{
    armed.place = place;
    armed.skip = skip;
    armed.run = run;
    ran = 0;
}

/* A step of a call: the other thread may come in. No guard is held at any of them. */
static void step(const char *place)
{
    if (emm.guard) {
        printf("the guard is held at %s\n", place);
        exit(2);
    }
    if (!armed.place || (armed.place[0] && strcmp(armed.place, place) != 0)) return;
    if (armed.skip-- > 0) return;
    armed.place = NULL;
    ran++;
    me = 1;
    cai_sim_host_thread(sim, 2);
    armed.run();
    CHECK_UINT(cai_sim_current(sim), c1);
    cai_sim_host_thread(sim, 1);
    me = 0;
}

/* A slot that fails with `error` from now on, `times` times; it did its work if `done`. */
static struct {
    const char *slot;
    int32_t times, error, done;
} fault;

static void fail(const char *slot, int32_t times, int32_t error, int32_t done)
{
    fault.slot = slot;
    fault.times = times;
    fault.error = error;
    fault.done = done;
}

static int32_t fails(const char *slot)
{
    return fault.times > 0 && strcmp(fault.slot, slot) == 0;
}

#define SLOT(name, parameters, arguments)                                                                    \
    static int32_t slot_##name parameters                                                                    \
    {                                                                                                        \
        int32_t error;                                                                                       \
        step(#name);                                                                                         \
        if (fails(#name)) {                                                                                  \
            fault.times--;                                                                                   \
            if (fault.done) CHECK_INT(cai_sim_cuda(sim)->name arguments, 0);                                 \
            return fault.error;                                                                              \
        }                                                                                                    \
        error = cai_sim_cuda(sim)->name arguments;                                                           \
        step("after " #name);                                                                                \
        return error;                                                                                        \
    }

SLOT(context_current, (void *self, uint64_t *context), (self, context))
SLOT(context_push, (void *self, uint64_t context), (self, context))
SLOT(context_pop, (void *self), (self))
SLOT(context_synchronize, (void *self), (self))
SLOT(stream_capture, (void *self, uint64_t stream, cai_cuda_capture *capture), (self, stream, capture))
SLOT(stream_wait_event, (void *self, uint64_t stream, uint64_t event), (self, stream, event))
SLOT(stream_synchronize, (void *self, uint64_t stream), (self, stream))
SLOT(event_record, (void *self, uint64_t event, uint64_t stream), (self, event, stream))
SLOT(host_thread, (void *self, uint64_t *thread), (self, thread))

/* ------------------------------------------------------------------ work, and frees that come after it */

/* The work on one piece of memory. */
typedef struct work_list {
    uint64_t ids[WORKS];
    int32_t count;
} work_list;

static work_list works; /* that of the manager's memory */

static void queue_work(work_list *list, uint64_t stream)
{
    CHECK_INT(cai_sim_launch(sim, stream, "work", NULL, NULL, NULL, 0), 0);
    list->ids[list->count++] = cai_sim_operation_count(sim);
}

static inline void work(uint64_t stream) { queue_work(&works, stream); }

static int comes_after(uint64_t id, uint64_t earlier)
{
    cai_sim_operation operation;
    int32_t i;
    if (id == earlier) return 1;
    if (id < earlier || !cai_sim_operation_get(sim, id, &operation)) return 0;
    for (i = 0; i < operation.wait_count; i++) {
        if (comes_after(operation.waits[i], earlier)) return 1;
    }
    return 0;
}

/* Is this work pending? `text` gets that the free comes after it. The free is operation `by`, or 0 for one by
 * the host. */
static int pending(uint64_t id, const char *memory, uint64_t by, char *text, size_t size)
{
    cai_sim_operation operation, freeing;
    char on[40] = "the host", at[40];
    if (!CHECK(cai_sim_operation_get(sim, id, &operation))) return 0;
    if (operation.state != CAI_SIM_STATE_QUEUED) return 0;
    cai_sim_stream_name(sim, operation.stream, at, sizeof at);
    if (by && CHECK(cai_sim_operation_get(sim, by, &freeing)))
        cai_sim_stream_name(sim, freeing.stream, on, sizeof on);
    (void)snprintf(text, size, "%s, freed by %s, comes after operation %d of %s", memory, on, (int)id, at);
    return 1;
}

/* What is queued on `stream` now comes after all this work. */
static void check_after(const char *memory, uint64_t stream, const work_list *list)
{
    char text[200];
    uint64_t id;
    int32_t i;
    CHECK_INT(cai_sim_launch(sim, stream, "free", NULL, NULL, NULL, 0), 0);
    id = cai_sim_operation_count(sim);
    for (i = 0; i < list->count; i++) {
        if (!pending(list->ids[i], memory, id, text, sizeof text)) continue;
        cai_test_true(__FILE__, __LINE__, text, comes_after(id, list->ids[i]));
    }
}

static void check_order(uint64_t stream) { check_after("memory", stream, &works); }

/* Pinned memory is freed by the host: there is no work any more. */
static void check_done(void)
{
    char text[200];
    int32_t i;
    for (i = 0; i < works.count; i++) {
        if (pending(works.ids[i], "pinned memory", 0, text, sizeof text))
            cai_test_true(__FILE__, __LINE__, text, 0);
    }
}

/* ------------------------------------------------------------------ hooks and lists of the test */

static struct {
    char *ptr;
    int live;
} blocks[BLOCKS];
static int32_t block_count, block_live;
static int32_t frees;           /* calls of a hook that frees */
static uint64_t freed_on;       /* the stream of the last one */
static cai_emm_hooks hooks;
static int64_t list_live, list_calls;

static int hook_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)stream;
    CHECK(ctx == &block_count);
    CHECK_UINT(cai_sim_current(sim), emm.context);
    step("device_alloc");
    if (block_count == BLOCKS) exit(2);
    blocks[block_count].ptr = (char *)malloc(size + 256);
    blocks[block_count].live = 1;
    *ptr = blocks[block_count].ptr + (256 - (size_t)(uintptr_t)blocks[block_count].ptr % 256);
    block_count++;
    block_live++;
    return 0;
}

static int hook_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    int32_t i;
    (void)size;
    CHECK(ctx == &block_count);
    CHECK_UINT(cai_sim_current(sim), emm.context);
    for (i = 0; i < block_count; i++) {
        if (blocks[i].live && (char *)ptr > blocks[i].ptr && (char *)ptr <= blocks[i].ptr + 256) break;
    }
    if (!CHECK(i < block_count)) return 1; /* it lives, and so is freed once */
    blocks[i].live = 0;
    free(blocks[i].ptr);
    block_live--;
    frees++;
    freed_on = cai_stream_from_cuda(stream, 0);
    if (stream) check_order(freed_on);
    else check_done();
    step("device_free");
    return 0;
}

static int hook_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    (void)ctx, (void)ptr, (void)size, (void)flags;
    return 0;
}

static int hook_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)ptr, (void)size;
    frees++;
    freed_on = cai_stream_from_cuda(stream, 0);
    check_done();
    return 0;
}

static void *list_alloc(void *user_data, size_t size)
{
    void *ptr;
    CHECK(user_data == &list_live);
    list_calls++;
    step("alloc_fn");
    ptr = malloc(size);
    list_live++;
    return ptr;
}

static void list_free(void *user_data, void *ptr, size_t size)
{
    (void)size;
    CHECK(user_data == &list_live && ptr);
    list_live--;
    free(ptr);
}

static void fill_hooks(uint32_t flags)
{
    memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.flags = flags;
    hooks.ctx = &block_count;
    hooks.device_alloc = hook_alloc;
    hooks.device_free = hook_free;
    strcpy(hooks.name, "my_pool");
}

/* ------------------------------------------------------------------ opening and closing */

static void open_sim(uint32_t flags)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    s1 = cai_sim_stream_create(sim, 1);
    s2 = cai_sim_stream_create(sim, 1);
    s3 = cai_sim_stream_create(sim, 1);
    cuda = *cai_sim_cuda(sim);
    cuda.context_current = slot_context_current;
    cuda.context_push = slot_context_push;
    cuda.context_pop = slot_context_pop;
    cuda.context_synchronize = slot_context_synchronize;
    cuda.stream_capture = slot_stream_capture;
    cuda.stream_wait_event = slot_stream_wait_event;
    cuda.stream_synchronize = slot_stream_synchronize;
    cuda.event_record = slot_event_record;
    cuda.host_thread = slot_host_thread;
    memset(&emm, 0, sizeof emm);
    armed.place = NULL;
    fault.times = 0;
    block_count = block_live = frees = works.count = me = 0;
    list_live = list_calls = 0;
    freed_on = 0;
    fill_hooks(flags);
}

static void make_emm(void)
{
    cai_manager_options options;
    memset(&options, 0, sizeof options);
    options.alloc_fn = list_alloc;
    options.free_fn = list_free;
    options.user_data = &list_live;
    GOOD(cai_event_pool_init(&pool, &cuda, places, PLACES, 0, err));
    GOOD(cai_manager_init(&emm, &pool, &hooks, &options, err));
}

static inline void open_emm(uint32_t flags)
{
    open_sim(flags);
    make_emm();
}

/* Everything was given back, once. */
static void close_emm(void)
{
    char text[400];
    CHECK(armed.place == NULL);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 0);
    CHECK_UINT(emm.count.live, 0);
    CHECK_UINT(emm.count.live_bytes, 0);
    GOOD(cai_manager_destroy(&emm, err));
    CHECK_INT(fault.times, 0);
    CHECK_INT(block_live, 0);
    CHECK_INT(list_live, 0);
    CHECK_UINT(cai_sim_current(sim), c1);
    GOOD(cai_event_pool_destroy(&pool, err));
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, s1), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s2), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s3), 0);
    cai_sim_leaks(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
    sim = NULL;
}

static cai_memory_handle get(size_t size, uint64_t stream)
{
    cai_memory_handle memory = 0;
    GOOD(cai_manager_alloc(&memory, &emm, size, 0, stream, err));
    return memory;
}

static inline void let(cai_memory_handle memory, uint64_t stream)
{
    GOOD(cai_manager_free(&emm, memory, stream, err));
}

static inline void retain(cai_memory_handle memory) { GOOD(cai_manager_retain(&emm, memory, err)); }

static cai_manager_count counts(void)
{
    cai_manager_count count;
    cai_manager_counts(&emm, &count);
    return count;
}

static inline cai_memory_object info_of(cai_memory_handle memory)
{
    cai_memory_object info;
    memset(&info, 0, sizeof info);
    GOOD(cai_manager_describe(&emm, memory, &info, err));
    return info;
}

/* Freed: so often in all, the last time on this stream. */
static inline void freed(int32_t times, uint64_t stream)
{
    CHECK_INT(frees, times);
    CHECK_UINT(freed_on, stream);
}

#endif
