/* test_emm_contexts.c - plugins with a context of their own for each manager, work in other contexts, CUDA's
 * handle for other processes lent to plugins.
 * SPDX-License-Identifier: MIT */
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

enum { DEVICES = 2, SLAB = 1 << 16 };

static cai_sim *sim;
static cai_cuda cuda;
static cai_event_pool pool;
static cai_error err;

#define GOOD(call) (CHECK_INT(call, CAI_OK) ? (void)0 : (void)printf("    %s\n", err.message))
#define BAD(call, status, words) (CHECK_INT(call, status), CHECK(strstr(err.message, words) != NULL))

static void open_world(void)
{
    sim = cai_sim_create(DEVICES);
    if (!sim) exit(2);
    cuda = *cai_sim_cuda(sim);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    GOOD(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err));
}

static void close_world(void)
{
    char text[200];
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    GOOD(cai_event_pool_destroy(&pool, &err));
    cai_sim_leaks(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ a plugin of slabs
 * It cuts memory out of one slab for each CUDA context, which it makes when it is opened. */
typedef struct arena {
    uint64_t context, slab, used;
    int device, live;
} arena;

static arena arenas[4]; /* the first is the table's own, for libraries without a manager */
static int32_t arenas_made, open_error, close_error;

static int arena_open(void *ctx, int device, uint64_t context, void **own)
{
    arena *made = &arenas[++arenas_made];
    CHECK(ctx == &arenas[0]);
    CHECK_UINT(cai_sim_current(sim), context); /* R111 */
    if (open_error) return open_error;
    made->device = device;
    made->context = context;
    *own = made;
    return cuda.memory_alloc(cuda.self, &made->slab, SLAB);
}

static int arena_close(void *own)
{
    arena *at = (arena *)own;
    const int32_t error = cuda.memory_free(cuda.self, at->slab);
    CHECK_INT(at->live, 0);
    at->slab = 0;
    return close_error ? close_error : error;
}

static int arena_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    arena *at = (arena *)ctx;
    (void)stream;
    CHECK_UINT(cai_sim_current(sim), at->context);
    *ptr = (void *)(uintptr_t)(at->slab + at->used);
    at->used += (size + 255) / 256 * 256;
    at->live++;
    return at->used > SLAB ? 2 : 0;
}

static int arena_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ptr;
    (void)size;
    (void)stream;
    ((arena *)ctx)->live--;
    return 0;
}

/* What a plugin borrows: CUDA's handle is that of the slab. */
static int arena_ipc_handle(void *ctx, void *ptr, void *handle, void **base)
{
    CHECK(ctx != &arenas[0]);
    return cai_emm_ipc_handle(&cuda, ptr, handle, base);
}

static cai_emm_hooks arena_hooks(void)
{
    cai_emm_hooks hooks;
    memset(&hooks, 0, sizeof hooks);
    memset(arenas, 0, sizeof arenas);
    arenas_made = open_error = close_error = 0;
    hooks.struct_size = sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.kind = CAI_MEMORY_DEVICE; /* of cudaMalloc, so that it has a handle */
    hooks.ctx = &arenas[0];
    hooks.device_alloc = arena_alloc;
    hooks.device_free = arena_free;
    hooks.ipc_handle = arena_ipc_handle;
    hooks.open = arena_open;
    hooks.close = arena_close;
    memcpy(hooks.name, "arenas", 7);
    return hooks;
}

/* ------------------------------------------------------------------ a context for hooks */
static void check_open(void)
{
    cai_manager managers[DEVICES];
    cai_memory_handle memory[DEVICES];
    cai_emm_hooks hooks;
    int32_t device;
    open_world();
    hooks = arena_hooks();
    for (device = 0; device < DEVICES; ++device) {
        CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, device)), 0);
        GOOD(cai_manager_init(&managers[device], &pool, &hooks, NULL, &err));
        CHECK(managers[device].hooks.ctx == &arenas[device + 1]);
        CHECK_INT(arenas[device + 1].device, device);
        CHECK_UINT(arenas[device + 1].context, cai_sim_primary(sim, device));
    }
    for (device = 0; device < DEVICES; ++device) /* in the context of the manager, whatever is current */
        GOOD(cai_manager_alloc(&memory[device], &managers[device], 100, 0, 1, &err));
    CHECK_INT(arenas[1].live + arenas[2].live, 2);
    BAD(cai_manager_destroy(&managers[0], &err), CAI_ERR_PENDING, "1 objects are referenced");
    CHECK(arenas[1].slab != 0); /* not closed */
    for (device = 0; device < DEVICES; ++device) {
        GOOD(cai_manager_free(&managers[device], memory[device], 1, &err));
        GOOD(cai_manager_destroy(&managers[device], &err));
        CHECK_UINT(arenas[device + 1].slab, 0);
    }
    close_world();
}

static int plain_open(void *ctx, int device, uint64_t context, void **own)
{
    CHECK_INT(device, 0);
    CHECK_UINT(context, 0);
    *own = (char *)ctx + 1;
    return 0;
}

static int plain_close(void *own)
{
    CHECK((const char *)own - 1 == (const char *)arenas);
    return 0;
}

static void check_open_fails(void)
{
    static cai_manager manager, before;
    cai_emm_hooks hooks;
    open_world();
    hooks = arena_hooks();
    memset(&manager, 0x5a, sizeof manager);
    before = manager;
    open_error = 700;
    BAD(cai_manager_init(&manager, &pool, &hooks, NULL, &err), CAI_ERR_CUDA, "open of arenas: CUDA error 700");
    CHECK_BYTES(&manager, &before, sizeof manager);
    open_error = 0;
    hooks.close = NULL;
    BAD(cai_manager_init(&manager, &pool, &hooks, NULL, &err), CAI_ERR_ARGUMENT, "close is NULL, but open is not");
    hooks.close = arena_close;
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    close_error = 999;
    BAD(cai_manager_destroy(&manager, &err), CAI_ERR_CUDA, "close of arenas: CUDA error 999");
    CHECK(!manager.options.alloc_fn); /* it is gone all the same */
    close_world();
    cai_emm_hooks_malloc(&hooks); /* without CUDA */
    hooks.ctx = arenas;
    hooks.open = plain_open;
    hooks.close = plain_close;
    GOOD(cai_manager_init(&manager, NULL, &hooks, NULL, &err));
    GOOD(cai_manager_destroy(&manager, &err));
}

/* From now on the driver tells of a destroyed context, which CUDA does not promise. */
static void open_world_that_tells(void)
{
    open_world();
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_LIVING_CONTEXTS);
}

/* A context is destroyed under its manager: the memory is gone, and what is given back needs no hook. */
static void check_free_without_context(void)
{
    static cai_manager manager;
    cai_memory_handle memory, kept, deferred;
    cai_array array, captured;
    const int64_t extent = 100;
    uint64_t own, stream;
    cai_emm_hooks hooks;
    open_world_that_tells();
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    own = cai_sim_context_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    stream = cai_sim_stream_create(sim, 1);
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&memory, &manager, 100, 0, stream, &err));
    GOOD(cai_manager_alloc(&kept, &manager, 100, 0, stream, &err));
    GOOD(cai_manager_alloc(&deferred, &manager, 100, 0, stream, &err));
    GOOD(cai_manager_array(&array, &manager, CAI_INT8, 1, &extent, stream, &err));
    GOOD(cai_array_init(&captured, CAI_INT8, 1, &extent, NULL, cai_manager_pointer(&manager, kept), &err));
    GOOD(cai_manager_own(&captured, &manager, kept, &err));
    captured.sync = CAI_SYNC_STREAM;
    captured.stream = stream;
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&captured);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
    GOOD(cai_manager_free(&manager, deferred, stream, &err));
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    GOOD(cai_manager_flush(&manager, &err));
    CHECK_UINT(manager.count.deferred, 0);
    GOOD(cai_manager_free(&manager, memory, stream, &err));
    cai_array_release(&array);
    GOOD(cai_manager_free(&manager, kept, CAI_STREAM_LEGACY, &err));
    CHECK_UINT(manager.count.live, 0);
    CHECK_UINT(manager.count.freed, 4);
    GOOD(cai_manager_destroy(&manager, &err));
    close_world();
}

/* A reference is given back in a stream of another context, which is destroyed then, with the event. how: what comes
 * next. */
static void check_event_without_context(int32_t how)
{
    static cai_manager manager;
    cai_memory_handle memory;
    uint64_t own, other, stream;
    cai_emm_hooks hooks;
    open_world_that_tells();
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    own = cai_sim_primary(sim, 0);
    other = cai_sim_context_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, other), 0);
    stream = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&memory, &manager, 100, 0, CAI_STREAM_LEGACY, &err));
    if (how < 2) GOOD(cai_manager_retain(&manager, memory, &err));
    if (how == 1) GOOD(cai_manager_retain(&manager, memory, &err));
    if (how == 2) GOOD(cai_manager_defer_begin(&manager, &err));
    GOOD(cai_manager_free(&manager, memory, stream, &err));
    if (how == 2) GOOD(cai_manager_defer_end(&manager, &err));
    CHECK_INT(cai_sim_context_destroy(sim, other), 0);
    if (how == 1) GOOD(cai_manager_free(&manager, memory, CAI_STREAM_LEGACY, &err));
    if (how < 2) GOOD(cai_manager_free(&manager, memory, CAI_STREAM_LEGACY, &err));
    GOOD(cai_manager_flush(&manager, &err));
    CHECK_UINT(manager.count.freed, 1);
    GOOD(cai_manager_destroy(&manager, &err));
    close_world();
}

/* The same with a reset. The event of a reference went with the context. */
static void check_reset_without_context(void)
{
    static cai_manager manager;
    cai_memory_handle memory;
    uint64_t own, stream;
    cai_emm_hooks hooks;
    open_world_that_tells();
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    own = cai_sim_context_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    stream = cai_sim_stream_create(sim, 1);
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&memory, &manager, 100, 0, stream, &err));
    GOOD(cai_manager_retain(&manager, memory, &err));
    GOOD(cai_manager_free(&manager, memory, stream, &err));
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    GOOD(cai_manager_reset(&manager, &err));
    GOOD(cai_manager_free(&manager, memory, stream, &err));
    CHECK_UINT(manager.count.lost, 1);
    GOOD(cai_manager_destroy(&manager, &err));
    close_world();
}

/* The CUDA context is gone: the hook is called all the same, and its failure is told. */
static void check_close_without_context(void)
{
    cai_manager manager;
    cai_emm_hooks hooks;
    uint64_t own;
    open_world_that_tells();
    hooks = arena_hooks();
    own = cai_sim_context_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    CHECK(cai_manager_destroy(&manager, &err) != CAI_OK); /* cudaFree of memory that is gone */
    CHECK(strstr(err.message, "close of arenas") != NULL);
    CHECK_UINT(arenas[1].slab, 0);
    CHECK_UINT(cai_sim_current(sim), cai_sim_primary(sim, 0));
    close_world();
}

/* ------------------------------------------------------------------ work in other contexts */

/* An array of the memory, with work on a stream of the context, goes while that stream captures. Then the stream
 * goes, too. */
static void release_captured(cai_manager *manager, cai_memory_handle memory, uint64_t context)
{
    const int64_t extent = 100;
    const uint64_t before = cai_sim_current(sim);
    cai_array array;
    uint64_t stream;
    GOOD(cai_array_init(&array, CAI_INT8, 1, &extent, NULL, cai_manager_pointer(manager, memory), &err));
    GOOD(cai_manager_own(&array, manager, memory, &err));
    CHECK_INT(cai_sim_set_context(sim, context), 0);
    stream = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_launch(sim, stream, "work", NULL, NULL, NULL, 0), 0);
    CHECK_INT(cai_sim_set_context(sim, before), 0);
    array.sync = CAI_SYNC_STREAM;
    array.stream = stream;
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&array);
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, stream), 0);
}

enum { WAITED, CAPTURES, DESTROYED, BROKEN, INVALID, REFUSED };

/* The host waits for the other context, unless a blocking stream captures there, or nothing is there any more. */
static void check_other_context(int32_t how)
{
    cai_manager manager;
    cai_memory_handle memory;
    cai_emm_hooks hooks;
    uint64_t other, blocking = 0;
    open_world_that_tells();
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&memory, &manager, 100, 0, 1, &err));
    other = cai_sim_context_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, manager.context), 0);
    release_captured(&manager, memory, other);
    GOOD(cai_manager_free(&manager, memory, 1, &err));
    CHECK_UINT(manager.count.deferred, 1);
    CHECK_INT(cai_sim_set_context(sim, other), 0);
    if (how == CAPTURES) blocking = cai_sim_stream_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, manager.context), 0);
    if (how == CAPTURES) CHECK_INT(cai_sim_capture_begin(sim, blocking, CAI_SIM_MODE_THREAD_LOCAL), 0);
    if (how == CAPTURES) BAD(cai_manager_destroy(&manager, &err), CAI_ERR_CAPTURE, "906");
    if (how == CAPTURES) CHECK_INT(cai_sim_capture_end(sim, blocking, NULL), 0);
    if (how == CAPTURES) CHECK_INT(cai_sim_stream_destroy(sim, blocking), 0);
    if (how == DESTROYED) CHECK_INT(cai_sim_context_destroy(sim, other), 0);
    if (how == BROKEN) CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 719), 1);
    if (how == INVALID) CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 201), 1);
    if (how == REFUSED) CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 2), 1);
    cai_sim_log_clear(sim);
    GOOD(cai_manager_flush(&manager, &err));
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), how == WAITED || how == CAPTURES);
    CHECK_UINT(manager.count.deferred, how == REFUSED);
    CHECK_UINT(cai_sim_current(sim), manager.context);
    GOOD(cai_manager_destroy(&manager, &err));
    if (how != DESTROYED) CHECK_INT(cai_sim_context_destroy(sim, other), 0);
    close_world();
}

/* More contexts than a manager can name: what was used in the last ones stays until a reset. */
static void check_many_contexts(void)
{
    cai_manager manager;
    cai_memory_handle memory;
    cai_emm_hooks hooks;
    uint64_t contexts[CAI_MANAGER_CONTEXTS];
    int32_t i;
    open_world();
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    for (i = 0; i < CAI_MANAGER_CONTEXTS; ++i) {
        contexts[i] = cai_sim_context_create(sim, 0);
        CHECK_INT(cai_sim_set_context(sim, manager.context), 0);
        GOOD(cai_manager_alloc(&memory, &manager, 100, 0, 1, &err));
        release_captured(&manager, memory, contexts[i]);
        release_captured(&manager, memory, contexts[0]);
        GOOD(cai_manager_free(&manager, memory, 1, &err));
    }
    GOOD(cai_manager_flush(&manager, &err));
    CHECK_UINT(manager.count.deferred, 1);
    BAD(cai_manager_destroy(&manager, &err), CAI_ERR_PENDING, "more than 31 contexts");
    GOOD(cai_manager_reset(&manager, &err));
    CHECK_UINT(manager.count.deferred, 0);
    GOOD(cai_manager_destroy(&manager, &err));
    for (i = 0; i < CAI_MANAGER_CONTEXTS; ++i) CHECK_INT(cai_sim_context_destroy(sim, contexts[i]), 0);
    close_world();
}

/* ------------------------------------------------------------------ the borrowed handle */
static void check_ipc_handle(void)
{
    unsigned char first[64], second[64];
    cai_cuda poor;
    void *base = NULL, *slab;
    open_world();
    slab = (void *)(uintptr_t)cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, SLAB);
    CHECK_INT(cai_emm_ipc_handle(&cuda, slab, first, &base), 0);
    CHECK(base == slab);
    base = NULL;
    CHECK_INT(cai_emm_ipc_handle(&cuda, (char *)slab + 512, second, &base), 0);
    CHECK(base == slab);
    CHECK_BYTES(first, second, sizeof first);
    base = &base;
    CHECK_INT(cai_emm_ipc_handle(NULL, slab, first, &base), 1);
    CHECK_INT(cai_emm_ipc_handle(&cuda, slab, NULL, &base), 1);
    CHECK_INT(cai_emm_ipc_handle(&cuda, slab, first, NULL), 1);
    poor = cuda;
    poor.ipc_export = NULL;
    CHECK_INT(cai_emm_ipc_handle(&poor, slab, first, &base), 801);
    poor = cuda;
    poor.pointer_range = NULL;
    CHECK_INT(cai_emm_ipc_handle(&poor, slab, first, &base), 801);
    poor = cuda;
    poor.struct_size = (uint32_t)offsetof(cai_cuda, ipc_export); /* it ends before the slot */
    CHECK_INT(cai_emm_ipc_handle(&poor, slab, first, &base), 801);
    CHECK_INT(cai_sim_fail_op(sim, "pointer_range", 1, 700), 1);
    CHECK_INT(cai_emm_ipc_handle(&cuda, slab, first, &base), 700);
    CHECK(base == &base); /* not touched by failures */
    CHECK_INT(cai_sim_free(sim, (uint64_t)(uintptr_t)slab), 0);
    close_world();
}

/* Two objects of a plugin's slab have one handle, and each its offset (R116). */
static void check_offsets(void)
{
    cai_manager manager;
    cai_memory_handle memory[2];
    cai_memory_ipc place[2];
    cai_emm_hooks hooks;
    int32_t i;
    open_world();
    hooks = arena_hooks();
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
    for (i = 0; i < 2; ++i) {
        GOOD(cai_manager_alloc(&memory[i], &manager, 1000, 0, 1, &err));
        GOOD(cai_manager_ipc_handle(&manager, memory[i], &place[i], &err));
        CHECK_UINT(place[i].offset, (uint64_t)i * 1024);
        CHECK_UINT(place[i].size, 1000);
    }
    CHECK_BYTES(place[0].handle, place[1].handle, sizeof place[0].handle);
    for (i = 0; i < 2; ++i) GOOD(cai_manager_free(&manager, memory[i], 1, &err));
    GOOD(cai_manager_destroy(&manager, &err));
    close_world();
}

int main(void)
{
    int32_t how;
    check_open();
    check_open_fails();
    check_close_without_context();
    check_free_without_context();
    check_reset_without_context();
    check_event_without_context(0);
    check_event_without_context(1);
    check_event_without_context(2);
    for (how = WAITED; how <= REFUSED; ++how) check_other_context(how);
    check_many_contexts();
    check_ipc_handle();
    check_offsets();
    return cai_test_end();
}
