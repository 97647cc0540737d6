/* test_emm_order.c - cai_manager.h: memory is freed after its work, where CUDA's own frees promise no order.
 * SPDX-License-Identifier: MIT
 *
 * cuda.h 13.0 says of cuMemFree that it "may perform implicit synchronization", and of cuMemFreeHost nothing.
 * Each test runs where the frees of the simulation wait, and where they return at once (CAI_SIM_FREE_RETURNS).
 * Work on memory that was freed gives its context error 700: that is what is looked for at the end. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"
#include "examples/memory/pool_plugin.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

#if !defined(_WIN32)
#include <poll.h>
#include <pthread.h>
#endif

enum { KIB = 1024 };

static cai_sim *sim;
static cai_cuda cuda; /* the simulation's; tests take slots out */
static cai_event_pool streams;
static cai_keepalive places[4];
static cai_manager emm;
static cai_error err;
static uint64_t c1, c2, s1, s2, peer; /* two streams of c1, one of c2 */
static int32_t returns;               /* frees do not wait */

#define GOOD(call) CHECK_INT(call, CAI_OK)

/* A failure: its status, and a word that its message must have. */
#define BAD(call, status, word)                                                                              \
    do {                                                                                                     \
        CHECK_INT(call, status);                                                                             \
        if (CHECK_INT(err.code, status)) CHECK(strstr(err.message, word) != NULL);                           \
    } while (0)

static void in(uint64_t context) { CHECK_INT(cai_sim_set_context(sim, context), 0); }

static void open_sim(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    if (returns) cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_FREE_RETURNS);
    cai_sim_host_thread(sim, 1);
    cuda = *cai_sim_cuda(sim);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    in(c2);
    peer = cai_sim_stream_create(sim, 1);
    in(c1);
    s1 = cai_sim_stream_create(sim, 1);
    s2 = cai_sim_stream_create(sim, 1);
    GOOD(cai_event_pool_init(&streams, &cuda, places, 4, 0, &err));
    memset(&emm, 0, sizeof emm);
}

static void open_over(const cai_emm_hooks *hooks)
{
    open_sim();
    GOOD(cai_manager_init(&emm, &streams, hooks, NULL, &err));
}

static void open_cuda(void)
{
    cai_emm_hooks hooks;
    open_sim();
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    GOOD(cai_manager_init(&emm, &streams, &hooks, NULL, &err));
}

static void open_async(void)
{
    cai_emm_hooks hooks;
    open_sim();
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    GOOD(cai_manager_init(&emm, &streams, &hooks, NULL, &err));
}

/* No work came too late, nothing is left. */
static void close_sim(void)
{
    char text[400];
    cai_sim_clear_error(sim);
    GOOD(cai_event_pool_destroy(&streams, &err));
    while (cai_sim_step(sim, s1)) {} /* frees in its order before work elsewhere, if nothing forbids that */
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, s1), 0);
    if (s2) CHECK_INT(cai_sim_stream_destroy(sim, s2), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, peer), 0);
    (void)cai_sim_errors(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_leaks(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
}

static void close_emm(void)
{
    GOOD(cai_manager_destroy(&emm, &err));
    close_sim();
}

static cai_memory_handle get(size_t size, uint64_t stream)
{
    cai_memory_handle memory = 0;
    GOOD(cai_manager_alloc(&memory, &emm, size, 0, stream, &err));
    return memory;
}

static void let(cai_memory_handle memory, uint64_t stream) { GOOD(cai_manager_free(&emm, memory, stream, &err)); }

static cai_manager_count counts(void)
{
    cai_manager_count count;
    cai_manager_counts(&emm, &count);
    return count;
}

/* Queues work on the first KiB. */
static void work_at(const void *pointer, uint64_t stream)
{
    const cai_sim_access access = cai_sim_writes((uint64_t)(uintptr_t)pointer, KIB);
    const uint64_t before = cai_sim_current(sim);
    if (stream == peer) in(c2);
    CHECK_INT(cai_sim_touch(sim, stream, "kernel", &access, 1), 0);
    in(before);
}

static void work(cai_memory_handle memory, uint64_t stream) { work_at(cai_manager_pointer(&emm, memory), stream); }

/* ------------------------------------------------------------------ CUDA's own frees */

/* Memory of a kind, as the tables over cudaMalloc and cudaHostAlloc give it. */
static cai_memory_handle get_kind(int32_t kind)
{
    cai_memory_handle memory = 0;
    if (kind == 0) return get(KIB, s1);
    if (kind == 1) GOOD(cai_manager_pinned_alloc(&memory, &emm, KIB, CAI_HOST_MAPPED, &err));
    else GOOD(cai_manager_managed_alloc(&memory, &emm, KIB, 0, &err));
    return memory;
}

/* Freed on the stream of the work, one after the other; the limit of deferred frees is passed. */
static void check_one_stream(int32_t kind)
{
    int32_t i;
    open_cuda();
    for (i = 0; i < 25; i++) {
        const cai_memory_handle memory = get_kind(kind);
        work(memory, i % 3 ? s1 : s2);
        let(memory, i % 3 ? s1 : s2);
    }
    CHECK(counts().deferred <= 10);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_UINT(counts().failed, 0);
    close_emm();
}

/* Used last on a stream of another device, and freed on that. */
static void check_peer(int32_t kind)
{
    cai_memory_handle memory;
    open_cuda();
    memory = get_kind(kind);
    GOOD(cai_stream_order(&streams, s1, peer, &err));
    work(memory, peer);
    let(memory, peer);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_UINT(counts().failed, 0);
    close_emm();
}

/* The table alone, as cuTensorNet and others take it. A NULL stream is the legacy one. */
static void check_table_alone(void)
{
    cai_emm_hooks hooks;
    void *a = NULL, *b = NULL;
    uint64_t blocking;
    open_sim();
    blocking = cai_sim_stream_create(sim, 0);
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    CHECK_INT(hooks.device_alloc(hooks.ctx, &a, KIB, cai_stream_to_cuda(s1)), 0);
    work_at(a, s1);
    CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, cai_stream_to_cuda(s1)), 0);
    CHECK_INT(hooks.device_alloc(hooks.ctx, &b, KIB, NULL), 0);
    work_at(b, blocking);
    CHECK_INT(hooks.device_free(hooks.ctx, b, KIB, NULL), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, blocking), 0);
    close_sim();
}

static int32_t count_of(const char *call) { return cai_sim_calls_of(sim, call); }

/* A stream that captures is not waited for, which would end the capture, and the memory stays. So it does where
 * the wait fails, unless no work can go on. */
static void check_table_refuses(void)
{
    static const int32_t errors[3] = {1, 400, 999};
    cai_emm_hooks hooks;
    void *a = NULL;
    int32_t i;
    open_sim();
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    CHECK_INT(hooks.device_alloc(hooks.ctx, &a, KIB, cai_stream_to_cuda(s1)), 0);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_GLOBAL), 0);
    CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, cai_stream_to_cuda(s1)), 900);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    CHECK_INT(count_of("memory_free"), 0);
    work_at(a, s1);
    for (i = 0; i < 3; i++) {
        CHECK_INT(cai_sim_fail_op(sim, "stream_synchronize", 1, errors[i]), 1);
        CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, cai_stream_to_cuda(s1)), errors[i]);
        CHECK_INT(cai_sim_fail_op(sim, "stream_capture", 1, errors[i]), 1);
        CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, cai_stream_to_cuda(s1)), errors[i]);
    }
    CHECK_INT(count_of("memory_free"), 0);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_fail_op(sim, "stream_synchronize", 1, 719), 1);
    CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, cai_stream_to_cuda(s1)), 719);
    CHECK_INT(count_of("memory_free"), 1);
    close_sim();
}

/* What a table needs to keep its promise. */
static void check_table_needs(void)
{
    cai_emm_hooks hooks, before;
    memset(&hooks, 0x5a, sizeof hooks);
    before = hooks;
    open_sim();
    cuda.stream_synchronize = NULL;
    BAD(cai_emm_hooks_cuda(&hooks, &cuda, &err), CAI_ERR_UNAVAILABLE, "stream_synchronize");
    CHECK_BYTES(&hooks, &before, sizeof hooks);
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    GOOD(cai_manager_init(&emm, &streams, &hooks, NULL, &err));
    {
        cai_memory_handle memory = 9;
        BAD(cai_manager_pinned_alloc(&memory, &emm, KIB, 0, &err), CAI_ERR_UNAVAILABLE, "host_alloc");
        BAD(cai_manager_managed_alloc(&memory, &emm, KIB, 0, &err), CAI_ERR_UNAVAILABLE, "managed_alloc");
        CHECK_UINT(memory, 9);
    }
    cuda.flags = CAI_CUDA_NO_DEFAULT_STREAMS; /* NULL is no stream there: the host waits for the context */
    cuda.stream_synchronize = cai_sim_cuda(sim)->stream_synchronize;
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    {
        void *a = NULL;
        CHECK_INT(hooks.device_alloc(hooks.ctx, &a, KIB, NULL), 0);
        work_at(a, s1);
        CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, NULL), 0);
        CHECK_INT(count_of("context_synchronize"), 1);
        CHECK_INT(hooks.device_alloc(hooks.ctx, &a, KIB, NULL), 0);
        cuda.context_synchronize = NULL;
        CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, NULL), 400);
        CHECK_INT(hooks.device_free(hooks.ctx, a, KIB, cai_stream_to_cuda(s1)), 0);
    }
    close_emm();
}

/* Deferred frees of a stream that captures by now go: they come after an event of before. */
static void check_captured(void)
{
    cai_memory_handle a, b;
    open_cuda();
    a = get(KIB, s1);
    b = get(KIB, s2);
    work(a, s1);
    work(b, s2);
    let(a, s1);
    let(b, s2);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_GLOBAL), 0);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_UINT(counts().deferred, 0);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0); /* unharmed */
    close_emm();
}

/* A reset while a stream captures, with memory and a deferred free there: nothing is lost, and the capture is not
 * harmed. While a blocking stream captures, the legacy stream is of no use either. */
static void check_reset_captured(int32_t nonblocking)
{
    cai_memory_handle a, b;
    uint64_t stream;
    open_cuda();
    stream = cai_sim_stream_create(sim, nonblocking);
    a = get(KIB, stream);
    b = get(KIB, stream);
    let(a, stream);
    CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_GLOBAL), 0);
    GOOD(cai_manager_reset(&emm, &err));
    CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
    CHECK_UINT(counts().failed, 0);
    let(b, stream);
    CHECK_INT(cai_sim_stream_destroy(sim, stream), 0);
    close_emm();
}

/* ------------------------------------------------------------------ plugins over CUDA's own */

/* Out of memory gives kept blocks back: of a stream of this device, or of a peer's. */
static void check_pool(int32_t of_peer)
{
    static pool_plugin pool;
    cai_emm_hooks up, hooks;
    cai_memory_handle memory;
    const uint64_t stream = of_peer ? peer : s1;
    open_sim();
    cai_sim_set_memory(sim, 0, 8 * KIB);
    GOOD(cai_emm_hooks_cuda(&up, &cuda, &err));
    pool_plugin_open(&pool, &up, &hooks);
    GOOD(cai_manager_init(&emm, &streams, &hooks, NULL, &err));
    memory = get(4 * KIB, s1);
    if (of_peer) GOOD(cai_stream_order(&streams, s1, peer, &err));
    work(memory, stream);
    let(memory, stream);
    memory = get(8 * KIB, s1);
    let(memory, s1);
    GOOD(cai_manager_destroy(&emm, &err));
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 0);
    close_sim();
}

/* What upstream refuses as a stream captures is kept: nothing is lost, and the capture goes on. */
static void check_pool_captured(void)
{
    static pool_plugin pool;
    cai_emm_hooks up, hooks;
    cai_memory_handle memory = 9;
    open_sim();
    cai_sim_set_memory(sim, 0, 8 * KIB);
    GOOD(cai_emm_hooks_cuda(&up, &cuda, &err));
    pool_plugin_open(&pool, &up, &hooks);
    GOOD(cai_manager_init(&emm, &streams, &hooks, NULL, &err));
    let(get(4 * KIB, s1), s1);
    let(get(2 * KIB, s2), s2);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_GLOBAL), 0);
    BAD(cai_manager_alloc(&memory, &emm, 8 * KIB, 0, s2, &err), CAI_ERR_OUT_OF_MEMORY, "pool_plugin");
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    CHECK_UINT(pool.kept.bytes, 4 * KIB);
    CHECK_UINT(pool.returned, 1);
    memory = get(8 * KIB, s1);
    let(memory, s1);
    GOOD(cai_manager_destroy(&emm, &err));
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 0);
    close_sim();
}

/* A pool over memory that can go to other processes can do that, too; one over cudaMallocAsync cannot. */
static void check_pool_ipc(void)
{
    static pool_plugin pool;
    cai_emm_hooks up, hooks;
    cai_memory_handle memory;
    cai_memory_ipc ipc;
    open_sim();
    GOOD(cai_emm_hooks_async(&up, &cuda, NULL, &err));
    pool_plugin_open(&pool, &up, &hooks);
    CHECK_INT(hooks.kind, CAI_MEMORY_POOL);
    CHECK(hooks.ipc_handle == NULL);
    GOOD(cai_emm_hooks_cuda(&up, &cuda, &err));
    pool_plugin_open(&pool, &up, &hooks);
    CHECK_INT(hooks.kind, CAI_MEMORY_DEVICE);
    GOOD(cai_manager_init(&emm, &streams, &hooks, NULL, &err));
    memory = get(KIB, s1);
    GOOD(cai_manager_ipc_handle(&emm, memory, &ipc, &err));
    CHECK_UINT(ipc.offset, 0);
    CHECK_UINT(ipc.size, KIB);
    let(memory, s1);
    GOOD(cai_manager_destroy(&emm, &err));
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 0);
    close_sim();
}

/* ------------------------------------------------------------------ a plugin of the test */

static struct {
    int32_t frees, last_error; /* of the hooks that free */
    uint64_t freed_on;
    int32_t base;              /* what ipc_handle tells: 0 right, 1 NULL, 2 behind the memory */
} mine;

static int mine_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    const cai_cuda *c = (const cai_cuda *)ctx;
    uint64_t pointer = 0; /* a pointer may have 4 bytes */
    const int32_t error = c->memory_alloc(c->self, &pointer, size);
    (void)stream;
    *ptr = (void *)(uintptr_t)pointer;
    return error;
}

/* As a pool would: in the order of the stream, at once. */
static int mine_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    const cai_cuda *c = (const cai_cuda *)ctx;
    (void)size;
    mine.frees++;
    mine.freed_on = (uint64_t)(uintptr_t)stream;
    mine.last_error = c->stream_synchronize(c->self, mine.freed_on);
    return mine.last_error ? mine.last_error : c->memory_free(c->self, (uint64_t)(uintptr_t)ptr);
}

static int mine_ipc(void *ctx, void *ptr, void *handle, void **base)
{
    (void)ctx;
    memset(handle, 7, 64);
    *base = mine.base == 0 ? ptr : mine.base == 1 ? NULL : (void *)((char *)ptr + 1);
    return 0;
}

static int32_t unpins;

static int mine_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    (void)ctx, (void)ptr, (void)size, (void)flags;
    return 0;
}

static int mine_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)ptr, (void)size, (void)stream;
    unpins++;
    return 0;
}

static void fill_mine(cai_emm_hooks *hooks, uint32_t flags)
{
    memset(&mine, 0, sizeof mine);
    memset(hooks, 0, sizeof *hooks);
    hooks->struct_size = (uint32_t)sizeof *hooks;
    hooks->version = CAI_EMM_VERSION;
    hooks->flags = flags;
    hooks->ctx = &cuda;
    hooks->device_alloc = mine_alloc;
    hooks->device_free = mine_free;
    hooks->pin = mine_pin;
    hooks->unpin = mine_unpin;
    memcpy(hooks->name, "mine", 5);
}

/* CUDA's own hook for other processes, lent to a table that has none. */
static void check_lent_ipc(void)
{
    cai_emm_hooks hooks;
    cai_memory_handle memory;
    cai_memory_ipc ipc, before;
    memset(&ipc, 0x5a, sizeof ipc);
    before = ipc;
    fill_mine(&hooks, 0);
    open_over(&hooks);
    memory = get(KIB, s1);
    BAD(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_UNAVAILABLE, "ipc_handle");
    CHECK_BYTES(&ipc, &before, sizeof ipc);
    let(memory, s1);
    close_emm();
    hooks.flags = CAI_EMM_CUDA_IPC;
    open_over(&hooks);
    GOOD(cai_manager_alloc(&memory, &emm, KIB, 4096, s1, &err));
    GOOD(cai_manager_ipc_handle(&emm, memory, &ipc, &err));
    CHECK(ipc.offset < 4096);
    CHECK_UINT(ipc.size, KIB);
    CHECK_INT(count_of("ipc_export"), 1);
    let(memory, s1);
    close_emm();
    hooks.ipc_handle = mine_ipc; /* its own comes first */
    open_over(&hooks);
    memory = get(KIB, s1);
    GOOD(cai_manager_ipc_handle(&emm, memory, &ipc, &err));
    CHECK_INT(ipc.handle[63], 7);
    let(memory, s1);
    close_emm();
    cai_emm_hooks_malloc(&hooks);
    hooks.flags = CAI_EMM_CUDA_IPC;
    BAD(cai_manager_init(&emm, NULL, &hooks, NULL, &err), CAI_ERR_ARGUMENT, "pool is NULL");
}

/* A table without the operations has nothing to lend. */
static void check_nothing_lent(void)
{
    cai_emm_hooks hooks;
    cai_memory_handle memory;
    cai_memory_ipc ipc;
    int32_t i;
    fill_mine(&hooks, CAI_EMM_CUDA_IPC);
    for (i = 0; i < 2; i++) {
        open_sim();
        if (i) cuda.pointer_range = NULL;
        else cuda.ipc_export = NULL;
        GOOD(cai_manager_init(&emm, &streams, &hooks, NULL, &err));
        memory = get(KIB, s1);
        BAD(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_UNAVAILABLE, "ipc_handle");
        let(memory, s1);
        close_emm();
    }
}

/* What the hook says is not believed: the memory begins at its base, or behind it. */
static void check_ipc_base(void)
{
    cai_emm_hooks hooks;
    cai_memory_handle memory;
    cai_memory_ipc ipc, before;
    memset(&ipc, 0x5a, sizeof ipc);
    before = ipc;
    fill_mine(&hooks, 0);
    hooks.ipc_handle = mine_ipc;
    open_over(&hooks);
    memory = get(KIB, s1);
    for (mine.base = 1; mine.base < 3; mine.base++) {
        BAD(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_MEMORY, "ipc_handle of mine");
        CHECK_INT(err.rule, 116);
        CHECK_BYTES(&ipc, &before, sizeof ipc);
    }
    CHECK_INT(cai_sim_fail_op(sim, "context_pop", 1, 1), 1);
    mine.base = 0;
    in(c2);
    BAD(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_CUDA, "context_pop");
    in(c1);
    CHECK_BYTES(&ipc, &before, sizeof ipc);
    let(memory, s1);
    close_emm();
}

/* ------------------------------------------------------------------ threads that ended */

/* Memory of stream 2 of host thread 7, with work there; host thread 8 goes on. */
static cai_memory_handle of_thread_7(void)
{
    cai_memory_handle memory;
    cai_sim_host_thread(sim, 7);
    in(c1);
    memory = get(KIB, CAI_STREAM_PER_THREAD);
    work(memory, CAI_STREAM_PER_THREAD);
    cai_sim_host_thread(sim, 8);
    in(c1);
    return memory;
}

static void check_thread_that_ended(int32_t async)
{
    cai_memory_handle a;
    if (async) open_async();
    else open_cuda();
    a = of_thread_7();
    GOOD(cai_manager_retain(&emm, a, &err));
    GOOD(cai_stream_order(&streams, CAI_STREAM_LEGACY, s1, &err)); /* that comes after stream 2 of all threads */
    work(a, s1);
    let(a, s1); /* not the last: the work on s1 comes before the free all the same */
    let(a, s2);
    CHECK_UINT(counts().live, 0);
    close_emm();
}

/* Frees that it left deferred come after events: a limit carries them out on any thread, without a wait. */
static void check_frees_of_thread_that_ended(int32_t flushes)
{
    cai_memory_handle memory;
    int32_t i;
    open_cuda();
    cai_sim_host_thread(sim, 7);
    in(c1);
    for (i = 0; i < 10; i++) {
        memory = get(KIB, CAI_STREAM_PER_THREAD);
        work(memory, CAI_STREAM_PER_THREAD);
        let(memory, CAI_STREAM_PER_THREAD);
    }
    cai_sim_host_thread(sim, 8);
    in(c1);
    for (i = 0; i < 4; i++) let(get(KIB, s1), s1);
    CHECK_UINT(counts().deferred, 3);
    CHECK_INT(count_of("context_synchronize"), 0);
    if (flushes) GOOD(cai_manager_flush(&emm, &err));
    if (flushes) CHECK_UINT(counts().deferred, 0);
    close_emm();
}

/* ------------------------------------------------------------------ waits that fail */

/* Nothing is unpinned, and the reference stays. */
static void check_unpin_not_waited(void)
{
    static char bytes[KIB];
    cai_emm_hooks hooks;
    cai_memory_handle memory;
    cai_memory_object info;
    fill_mine(&hooks, 0);
    open_over(&hooks);
    unpins = 0;
    GOOD(cai_manager_pin(&memory, &emm, bytes, KIB, 0, &err));
    CHECK_INT(cai_sim_fail_op(sim, "stream_synchronize", 1, 801), 1);
    BAD(cai_manager_free(&emm, memory, s1, &err), CAI_ERR_CUDA, "stream_synchronize");
    CHECK_INT(unpins, 0);
    GOOD(cai_manager_describe(&emm, memory, &info, &err));
    CHECK_INT(info.references, 1);
    let(memory, s1);
    CHECK_INT(unpins, 1);
    close_emm();
}

static cai_array array;

/* An array on a stream, of the object's last reference. */
static void own_last(cai_memory_handle memory, uint64_t stream)
{
    const int64_t extent = KIB;
    GOOD(cai_array_init(&array, CAI_UINT8, 1, &extent, NULL, cai_manager_pointer(&emm, memory), &err));
    array.sync = CAI_SYNC_STREAM;
    array.stream = stream;
    GOOD(cai_manager_own(&array, &emm, memory, &err));
}

/* Each call of a release on another thread fails once: the memory is freed, or the counts say where it is. */
static void check_release_failing(void)
{
    const int64_t extent = KIB;
    int32_t call, failed, freed, left = 1;
    for (call = 1; left; call++) {
        uint64_t data;
        open_async();
        cai_sim_host_thread(sim, 7);
        in(c1);
        GOOD(cai_manager_array(&array, &emm, CAI_UINT8, 1, &extent, CAI_STREAM_PER_THREAD, &err));
        work_at((void *)(uintptr_t)(data = array.data), CAI_STREAM_PER_THREAD);
        cai_sim_host_thread(sim, 8);
        in(c1);
        CHECK_INT(cai_sim_fail(sim, call, 2), 1);
        cai_array_release(&array);
        left = !cai_sim_faults(sim);
        cai_sim_faults_clear(sim);
        cai_sim_clear_error(sim);
        CHECK_UINT(counts().live, 0);
        failed = (int32_t)counts().failed; /* the hook itself, perhaps before its free */
        freed = failed ? count_of("memory_free_async") : 1;
        if (!failed) CHECK_INT(count_of("memory_free_async") + (int32_t)counts().deferred, 1);
        GOOD(cai_manager_flush(&emm, &err));
        CHECK_UINT(counts().deferred, 0);
        CHECK_INT(count_of("memory_free_async"), freed);
        cai_sim_run(sim);
        if (failed) (void)cai_sim_free(sim, data); /* if it was not the mode that failed behind the free */
        close_emm();
    }
    CHECK(call > 4);
}

/* The context cannot be had while the array is released from another one: the free is deferred. */
static void check_release_outside(void)
{
    cai_memory_handle memory;
    open_async();
    memory = get(KIB, s1);
    own_last(memory, s1);
    let(memory, s1);
    work_at((void *)(uintptr_t)array.data, s1);
    in(c2);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 2), 1);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 2, 2), 1);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 3, 2), 1);
    cai_array_release(&array);
    CHECK_UINT(counts().deferred, 1);
    CHECK_INT(count_of("memory_free_async"), 0);
    in(c1);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_UINT(counts().deferred, 0);
    CHECK_INT(count_of("memory_free_async"), 1);
    close_emm();
}

/* ------------------------------------------------------------------ streams that are destroyed */

/* Destroys s2, with its work pending. */
static void destroy_s2(void)
{
    CHECK_INT(cai_sim_stream_destroy(sim, s2), 0);
    s2 = 0;
}

/* A reference goes while its stream captures. No flush is needed before the stream is destroyed. */
static void check_stream_destroyed(int32_t last)
{
    cai_emm_hooks hooks;
    cai_memory_handle memory;
    fill_mine(&hooks, 0);
    open_over(&hooks);
    memory = get(KIB, s1);
    own_last(memory, s2);
    work(memory, s2);
    if (last) let(memory, s1);
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_GLOBAL), 0);
    cai_array_release(&array);
    CHECK_INT(cai_sim_capture_end(sim, s2, NULL), 0);
    destroy_s2();
    if (!last) let(memory, s1);
    CHECK_INT(mine.frees, 0);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_INT(mine.frees, 1);
    close_emm();
}

/* An array of a manager moves to another stream, as cai_migrate moves it. The stream on which it was made goes. */
static void check_moved_array(int32_t async, int32_t sync)
{
    const int64_t extent = KIB;
    if (async) open_async();
    else open_cuda();
    GOOD(cai_manager_array(&array, &emm, CAI_UINT8, 1, &extent, s2, &err));
    work_at((void *)(uintptr_t)array.data, s2);
    GOOD(cai_stream_order(&streams, s2, s1, &err));
    array.stream = s1;
    array.sync = sync;
    if (sync == CAI_SYNC_EVENT) CHECK_INT(cuda.event_create(cuda.self, &array.event), 0);
    if (sync == CAI_SYNC_EVENT) CHECK_INT(cuda.event_record(cuda.self, array.event, s1), 0);
    if (sync == CAI_SYNC_NONE) CHECK_INT(cuda.stream_synchronize(cuda.self, s1), 0);
    else work_at((void *)(uintptr_t)array.data, s1);
    destroy_s2();
    cai_array_release(&array);
    if (sync == CAI_SYNC_EVENT) CHECK_INT(cuda.event_destroy(cuda.self, array.event), 0);
    array.event = 0;
    CHECK_UINT(counts().live, 0);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_UINT(counts().deferred, 0);
    close_emm();
}

/* Pinned memory has no stream. That of the first reference that is given back may be destroyed. */
static void check_moved_host_memory(int32_t of_array)
{
    cai_memory_handle memory;
    open_cuda();
    GOOD(cai_manager_pinned_alloc(&memory, &emm, KIB, 0, &err));
    if (of_array) own_last(memory, s2);
    else GOOD(cai_manager_retain(&emm, memory, &err));
    work(memory, s2);
    if (of_array) cai_array_release(&array);
    else let(memory, s2);
    destroy_s2();
    let(memory, s1);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_UINT(counts().deferred, 0);
    close_emm();
}

/* Two arrays go while their streams capture, which are of two contexts (O2). */
static void check_captured_twice(int32_t waits)
{
    cai_memory_handle memory;
    int32_t i;
    if (waits) open_cuda();
    else open_async();
    memory = get(KIB, s1);
    GOOD(cai_stream_order(&streams, s1, peer, &err));
    GOOD(cai_stream_order(&streams, s1, s2, &err));
    for (i = 0; i < 2; i++) {
        const uint64_t stream = i ? s2 : peer;
        own_last(memory, stream);
        work(memory, stream);
        in(i ? c1 : c2);
        CHECK_INT(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_RELAXED), 0);
        in(c1);
        cai_array_release(&array);
        in(i ? c1 : c2);
        CHECK_INT(cai_sim_capture_end(sim, stream, NULL), 0);
        in(c1);
    }
    let(memory, s1);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_UINT(counts().deferred, 0);
    close_emm();
}

/* Memory of one context with work on a stream of another one, which cannot be ordered. */
static void check_work_elsewhere(void)
{
    cai_memory_handle memory;
    open_async();
    memory = get(KIB, s1);
    own_last(memory, peer);
    GOOD(cai_stream_order(&streams, s1, peer, &err));
    work(memory, peer);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 1, 1), 1);
    cai_array_release(&array);
    CHECK_INT(cai_sim_faults(sim), 0);
    let(memory, s1);
    CHECK_UINT(counts().deferred, 0);
    close_emm();
}

/* ------------------------------------------------------------------ outputs, generations */

static void check_untouched_init(void)
{
    cai_emm_hooks hooks;
    cai_manager made, before;
    memset(&made, 0x5a, sizeof made);
    before = made;
    open_sim();
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    in(0);
    BAD(cai_manager_init(&made, &streams, &hooks, NULL, &err), CAI_ERR_UNAVAILABLE, "context");
    CHECK_BYTES(&made, &before, sizeof made);
    in(c1);
    BAD(cai_manager_init(&made, NULL, &hooks, NULL, &err), CAI_ERR_ARGUMENT, "pool");
    CHECK_BYTES(&made, &before, sizeof made);
    close_sim();
}

/* Managers at one address, one after the other: handles of the one before are not taken for those of the next. */
static void check_generations(void)
{
    enum { ROUNDS = 500, OBJECTS = 20 };
    cai_emm_hooks hooks;
    cai_memory_handle now[OBJECTS], old[OBJECTS];
    int32_t round, i, taken = 0;
    memset(old, 0, sizeof old);
    cai_emm_hooks_malloc(&hooks);
    for (round = 0; round < ROUNDS; round++) {
        GOOD(cai_manager_init(&emm, NULL, &hooks, NULL, &err));
        for (i = 0; i < OBJECTS; i++) now[i] = get(8, CAI_STREAM_LEGACY);
        for (i = 0; i < OBJECTS; i++) taken += old[i] && cai_manager_pointer(&emm, old[i]) != NULL;
        for (i = 0; i < OBJECTS; i++) let(now[i], CAI_STREAM_LEGACY);
        memcpy(old, now, sizeof old);
        GOOD(cai_manager_destroy(&emm, &err));
    }
    printf("%d of %d handles of earlier managers were taken\n", (int)taken, ROUNDS * OBJECTS);
    CHECK_INT(taken, 0);
}

/* ------------------------------------------------------------------ frees of another thread */

#if !defined(_WIN32) && !defined(CAI_NO_THREADS)
static struct {
    int32_t blocks; /* that the budget has left */
    int32_t asked;  /* how often it was asked for one */
    int32_t inside; /* frees that have begun */
} budget;

static int budget_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)size, (void)stream;
    (void)__atomic_add_fetch(&budget.asked, 1, __ATOMIC_SEQ_CST);
    if (__atomic_sub_fetch(&budget.blocks, 1, __ATOMIC_SEQ_CST) < 0) {
        (void)__atomic_add_fetch(&budget.blocks, 1, __ATOMIC_SEQ_CST);
        return 2;
    }
    *ptr = (void *)(uintptr_t)4096;
    return 0;
}

/* The first one takes until there was no room for an allocation, and longer, so that who asked for it waits by then. */
static int budget_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    int32_t looks;
    (void)ctx, (void)ptr, (void)size, (void)stream;
    if (!__atomic_exchange_n(&budget.inside, 1, __ATOMIC_SEQ_CST)) {
        for (looks = 0; looks < 10000 && __atomic_load_n(&budget.asked, __ATOMIC_SEQ_CST) < 2; looks++)
            (void)poll(NULL, 0, 1);
        (void)poll(NULL, 0, 200);
    }
    (void)__atomic_add_fetch(&budget.blocks, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void *flush_it(void *unused)
{
    (void)unused;
    (void)!cai_manager_flush(&emm, NULL);
    return NULL;
}

/* Out of memory while another thread carries out the only free there is: its room is waited for. */
static void check_frees_in_flight(void)
{
    cai_emm_hooks hooks;
    cai_memory_handle memory = 0;
    pthread_t thread;
    cai_emm_hooks_malloc(&hooks);
    hooks.flags = CAI_EMM_FREES_WAIT;
    hooks.device_alloc = budget_alloc;
    hooks.device_free = budget_free;
    budget.blocks = 1;
    budget.asked = budget.inside = 0;
    GOOD(cai_manager_init(&emm, NULL, &hooks, NULL, &err));
    let(get(KIB, CAI_STREAM_LEGACY), CAI_STREAM_LEGACY);
    CHECK_INT(pthread_create(&thread, NULL, flush_it, NULL), 0);
    while (!__atomic_load_n(&budget.inside, __ATOMIC_SEQ_CST)) (void)poll(NULL, 0, 1);
    memory = get(KIB, CAI_STREAM_LEGACY);
    CHECK_INT(pthread_join(thread, NULL), 0);
    if (memory) let(memory, CAI_STREAM_LEGACY);
    GOOD(cai_manager_destroy(&emm, &err));
}
#else
static void check_frees_in_flight(void) {}
#endif

static void run_both(void)
{
    int32_t i;
    for (i = 0; i < 3; i++) {
        check_one_stream(i);
        check_peer(i);
    }
    check_table_alone();
    check_table_refuses();
    check_table_needs();
    check_captured();
    check_reset_captured(1);
    check_reset_captured(0);
    check_pool(0);
    check_pool(1);
    check_pool_captured();
    check_pool_ipc();
    check_lent_ipc();
    check_nothing_lent();
    check_ipc_base();
    for (i = 0; i < 2; i++) {
        check_thread_that_ended(i);
        check_frees_of_thread_that_ended(i);
    }
    check_unpin_not_waited();
    check_release_failing();
    check_release_outside();
    for (i = 0; i < 2; i++) {
        check_stream_destroyed(i);
        check_moved_array(i, CAI_SYNC_STREAM);
        check_moved_array(i, CAI_SYNC_NONE);
        check_moved_array(i, CAI_SYNC_EVENT);
        check_moved_array(i, CAI_SYNC_UNKNOWN);
        check_moved_host_memory(i);
        check_captured_twice(i);
    }
    check_work_elsewhere();
    check_untouched_init();
}

static void run(void)
{
    for (returns = 0; returns < 2; returns++) {
        cai_test_note(returns ? "frees return at once" : "frees wait");
        run_both();
    }
    cai_test_note("");
    check_generations();
    check_frees_in_flight();
}

CAI_TEST_MAIN(run)
