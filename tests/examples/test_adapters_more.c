/* test_adapters_more.c - the adapters for CuPy and CV-CUDA, simulated.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_emm.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif

/* Host memory of the adapters, which runs out on demand. */
#include <stdlib.h>
static int32_t host_left = -1; /* callocs that succeed; -1: all */
static void *limited_calloc(size_t count, size_t size)
{
    if (!host_left) return NULL;
    if (host_left > 0) host_left--;
    return calloc(count, size);
}
#define calloc limited_calloc
#include "examples/adapters/cupy/cai_cupy.c"
#include "examples/adapters/cvcuda/cai_cvcuda.c"
#undef calloc
#include "examples/memory/pool_plugin.h"

#include "cai_test.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

typedef struct CUstream_st *stream_handle;

static cai_sim *sim;
static cai_error err;
static uint64_t c1, number1;

static void open_sim(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    c1 = cai_sim_primary(sim, 0);
    CHECK(cai_sim_primary_retain(sim, 1) != 0); /* both devices are in use */
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    number1 = cai_sim_stream_create(sim, 1);
}

static void close_sim(void)
{
    char text[400];
    CHECK_UINT(cai_sim_current(sim), c1);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, number1), 0);
    cai_sim_leaks(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
}

/* Without what the hooks of cudaMallocAsync ask and set around each call. */
static void check_log(const char *expected)
{
    static char text[4000];
    const char *line;
    text[0] = 0;
    for (line = cai_sim_log(sim); *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, "capture_mode", 12) != 0 && strncmp(line, "stream_capture legacy", 21) != 0)
            strncat(text, line, strcspn(line, "\n") + 1);
    CHECK_STR(text, expected);
    cai_sim_log_clear(sim);
}

/* ------------------------------------------------------------------ hooks that write down their calls */

typedef struct spy {
    char log[2000];
    unsigned char *memory; /* 64 KiB, aligned to 64 KiB; what it gives out begins at `next` */
    void *block;
    size_t next;
    int32_t fail_alloc, fail_free, fail_initialize; /* errors to answer */
    int32_t give_null, give_same;
} spy;

static void note(spy *s, const char *text)
{
    const size_t used = strlen(s->log), length = strlen(text);
    if (used + length < sizeof s->log) memcpy(s->log + used, text, length + 1);
}

static int spy_give(spy *s, void **ptr, size_t size)
{
    if (s->fail_alloc) return s->fail_alloc;
    if (s->give_null) return 0;
    *ptr = s->memory + s->next;
    if (!s->give_same) s->next += (size + 255) / 256 * 256;
    return 0;
}

static int spy_alloc(void *ctx, void **ptr, size_t size, stream_handle stream)
{
    spy *s = (spy *)ctx;
    char text[100];
    snprintf(text, sizeof text, "alloc %lu %lx\n", (unsigned long)size, (unsigned long)(uintptr_t)stream);
    note(s, text);
    return spy_give(s, ptr, size);
}

static int spy_free(void *ctx, void *ptr, size_t size, stream_handle stream)
{
    spy *s = (spy *)ctx;
    char text[100];
    snprintf(text, sizeof text, "free %ld %lu %lx\n", (long)((unsigned char *)ptr - s->memory),
             (unsigned long)size, (unsigned long)(uintptr_t)stream);
    note(s, text);
    return s->fail_free;
}

static int spy_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    spy *s = (spy *)ctx;
    char text[100];
    snprintf(text, sizeof text, "host_alloc %lu flags %u\n", (unsigned long)size, flags);
    note(s, text);
    return spy_give(s, ptr, size);
}

static int spy_host_free(void *ctx, void *ptr, size_t size, stream_handle stream)
{
    note((spy *)ctx, "host_");
    return spy_free(ctx, ptr, size, stream);
}

static int spy_initialize(void *ctx, int device)
{
    char text[100];
    snprintf(text, sizeof text, "initialize %d\n", device);
    note((spy *)ctx, text);
    return ((spy *)ctx)->fail_initialize;
}

static cai_emm_hooks spy_open(spy *s)
{
    cai_emm_hooks hooks;
    memset(s, 0, sizeof *s);
    memset(&hooks, 0, sizeof hooks);
    s->block = malloc(2 * 65536);
    if (!s->block) exit(2);
    s->memory = (unsigned char *)s->block + 65536 - (uintptr_t)s->block % 65536;
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.kind = CAI_MEMORY_HOST;
    hooks.ctx = s;
    hooks.device_alloc = spy_alloc;
    hooks.device_free = spy_free;
    memcpy(hooks.name, "spy", 4);
    hooks.initialize = spy_initialize;
    hooks.host_alloc = spy_host_alloc;
    hooks.host_free = spy_host_free;
    return hooks;
}

static void check_spy(spy *s, const char *expected)
{
    CHECK_STR(s->log, expected);
    s->log[0] = 0;
}

static void spy_close(spy *s) { free(s->block); }

/* ------------------------------------------------------------------ CuPy */

static cai_adapter_count cupy_count(cai_cupy *cupy)
{
    cai_adapter_count count;
    cai_cupy_counts(cupy, &count);
    return count;
}

/* Trap 21: no size at free; it reaches the hook all the same, as does the stream. */
static void test_cupy_default_hooks(void)
{
    cai_cupy *cupy;
    void *a, *b;
    open_sim();
    cupy = cai_cupy_open(NULL, cai_sim_cuda(sim), 0, number1, &err);
    CHECK(cupy != NULL);
    a = cai_cupy_malloc(cupy, 1000, 0);
    b = cai_cupy_malloc(cupy, 24, 0);
    CHECK(a && cai_sim_bytes(sim, (uint64_t)(uintptr_t)a) == a);
    CHECK_UINT(cupy_count(cupy).live_bytes, 1024);
    CHECK_INT(cai_cupy_close(cupy), CAI_ERR_PENDING);
    cai_cupy_free(cupy, a, 0);
    cai_cupy_free(cupy, b, 0);
    check_log("primary_retain 0 -> c1\npool_create 0 reuse 6 -> p3\ncontext_current -> c1\n"
              "memory_alloc_from_pool 1000 p3 s1 -> m1\n"
              "context_current -> c1\nmemory_alloc_from_pool 24 p3 s1 -> m2\n"
              "context_current -> c1\nmemory_free_async m1 s1\n"
              "context_current -> c1\nmemory_free_async m2 s1\n");
    CHECK_UINT(cupy_count(cupy).allocated, 2);
    CHECK_UINT(cupy_count(cupy).freed, 2);
    CHECK_UINT(cupy_count(cupy).live_bytes, 0);
    CHECK_UINT(cupy_count(cupy).peak_bytes, 1024);
    CHECK_UINT(cupy_count(cupy).failed + cupy_count(cupy).unknown, 0);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    CHECK_INT(cai_cupy_close(NULL), CAI_OK);
    close_sim();
}

/* K25; and CuPy's NULL is not freed by it, but may be. */
static void test_cupy_empty(void)
{
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    cai_cupy *cupy = cai_cupy_open(&hooks, NULL, 3, 0, &err);
    CHECK(cupy != NULL);
    check_spy(&s, "initialize 3\n");
    CHECK(cai_cupy_malloc(cupy, 0, 3) == NULL);
    cai_cupy_free(cupy, NULL, 3);
    check_spy(&s, "");
    CHECK_UINT(cupy_count(cupy).empty, 1);
    CHECK_UINT(cupy_count(cupy).failed + cupy_count(cupy).unknown + cupy_count(cupy).freed, 0);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    spy_close(&s);
}

static void test_cupy_wrong_frees(void)
{
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    cai_cupy *cupy = cai_cupy_open(&hooks, NULL, 0, 0, &err);
    unsigned char *a;
    cai_cupy_free(cupy, s.memory, 0); /* before anything was allocated */
    CHECK_UINT(cupy_count(cupy).unknown, 1);
    a = (unsigned char *)cai_cupy_malloc(cupy, 1000, 0);
    CHECK(a == s.memory);
    cai_cupy_free(cupy, a + 256, 0);
    cai_cupy_free(cupy, a, 0);
    check_spy(&s, "initialize 0\nalloc 1000 1\nfree 0 1000 1\n"); /* 1: the legacy stream */
    cai_cupy_free(cupy, a, 0);
    check_spy(&s, "");
    CHECK_UINT(cupy_count(cupy).unknown, 3);
    CHECK_UINT(cupy_count(cupy).freed, 1);
    CHECK_UINT(cupy_count(cupy).failed, 0);
    s.next = 0; /* the same address once more is another allocation */
    CHECK(cai_cupy_malloc(cupy, 24, 0) == a);
    cai_cupy_free(cupy, a, 0);
    check_spy(&s, "alloc 24 1\nfree 0 24 1\n");
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    spy_close(&s);
}

static void test_cupy_failures(void)
{
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    cai_cupy *cupy = cai_cupy_open(&hooks, NULL, 1, 0x50, &err);
    void *a;
    s.log[0] = 0;
    CHECK(cai_cupy_malloc(cupy, 16, 0) == NULL); /* another device */
    CHECK_INT(cupy_count(cupy).native, 101);
    check_spy(&s, "");
    s.fail_alloc = 2;
    CHECK(cai_cupy_malloc(cupy, 16, 1) == NULL);
    s.fail_alloc = 0;
    s.give_null = 1;
    CHECK(cai_cupy_malloc(cupy, 17, 1) == NULL);
    s.give_null = 0;
    s.next = 128; /* K20: not what the hook promised */
    CHECK(cai_cupy_malloc(cupy, 18, 1) == NULL);
    check_spy(&s, "alloc 16 50\nalloc 17 50\nalloc 18 50\nfree 128 18 50\n");
    s.next = 0;
    s.give_same = 1;
    a = cai_cupy_malloc(cupy, 19, 1);
    CHECK(cai_cupy_malloc(cupy, 20, 1) == NULL); /* in use: not to be freed */
    check_spy(&s, "alloc 19 50\nalloc 20 50\n");
    CHECK_UINT(cupy_count(cupy).failed, 5);
    CHECK_UINT(cupy_count(cupy).allocated, 1);
    CHECK_INT(cupy_count(cupy).native, 101); /* of the first */
    CHECK_INT(cupy_count(cupy).first_failure, CAI_ERR_CUDA);
    s.fail_free = 700;
    cai_cupy_free(cupy, a, 0); /* the device is known */
    check_spy(&s, "free 0 19 50\n");
    CHECK_UINT(cupy_count(cupy).failed, 6);
    CHECK_UINT(cupy_count(cupy).freed, 0);
    CHECK_UINT(cupy_count(cupy).live_bytes, 0);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    spy_close(&s);
}

static void test_cupy_out_of_memory(void)
{
    cai_cupy *cupy;
    void *a;
    open_sim();
    cai_sim_set_memory(sim, 0, 1 << 20);
    cupy = cai_cupy_open(NULL, cai_sim_cuda(sim), 0, 0, &err);
    CHECK(cai_cupy_malloc(cupy, 2 << 20, 0) == NULL);
    CHECK_INT(cupy_count(cupy).native, 2);
    CHECK_INT(cupy_count(cupy).first_failure, CAI_ERR_OUT_OF_MEMORY);
    a = cai_cupy_malloc(cupy, 1 << 10, 0);
    CHECK(a != NULL);
    cai_cupy_free(cupy, a, 0);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    close_sim();
}

/* Host memory runs out: for the struct, for the first places, for more of them. */
static void test_cupy_host_memory(void)
{
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    cai_cupy *cupy;
    void *at[33];
    int i;
    host_left = 0;
    CHECK(cai_cupy_open(&hooks, NULL, 0, 0, &err) == NULL);
    CHECK_INT(err.code, CAI_ERR_OUT_OF_MEMORY);
    CHECK(cai_cvcuda_open(&hooks, NULL, 0, 0, NULL) == NULL);
    host_left = 1;
    cupy = cai_cupy_open(&hooks, NULL, 0, 0, &err);
    s.log[0] = 0;
    CHECK(cai_cupy_malloc(cupy, 16, 0) == NULL);
    check_spy(&s, "alloc 16 1\nfree 0 16 1\n");
    host_left = 1;
    for (i = 0; i < 33; i++) at[i] = cai_cupy_malloc(cupy, 16, 0);
    for (i = 0; i < 33; i++) CHECK((at[i] == NULL) == (i == 32)); /* half of 64 */
    CHECK_UINT(cupy_count(cupy).failed, 2);
    CHECK_INT(cupy_count(cupy).first_failure, CAI_ERR_OUT_OF_MEMORY);
    CHECK_INT(cupy_count(cupy).native, 0);
    host_left = -1;
    at[32] = cai_cupy_malloc(cupy, 16, 0);
    for (i = 0; i < 33; i++) cai_cupy_free(cupy, at[i], 0);
    CHECK_UINT(cupy_count(cupy).freed, 33);
    CHECK_UINT(cupy_count(cupy).unknown, 0);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    spy_close(&s);
}

static void test_cupy_contexts(void)
{
    cai_cupy *cupy;
    void *a;
    open_sim();
    cupy = cai_cupy_open(NULL, cai_sim_cuda(sim), 1, 0, &err);
    CHECK(cupy != NULL);
    a = cai_cupy_malloc(cupy, 16, 1);
    check_log("primary_retain 1 -> c2\npool_create 1 reuse 6 -> p3\ncontext_current -> c1\ncontext_push c2\n"
              "memory_alloc_from_pool 16 p3 legacy -> m1\nevent_create -> e1\nevent_record e1 legacy\n"
              "event_destroy e1\ncontext_pop\n");
    CHECK_INT(cai_sim_set_context(sim, 0), 0); /* Python's collector, on a thread without a context */
    cai_cupy_free(cupy, a, 1);
    check_log("context_current -> none\ncontext_push c2\nmemory_free_async m1 legacy\ncontext_pop\n");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 201), 1);
    CHECK(cai_cupy_malloc(cupy, 16, 1) == NULL);
    CHECK_INT(cupy_count(cupy).native, 201);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    close_sim();
}

/* ------------------------------------------------------------------ one block on two blocking streams */

static char order_of_fills[8];
static size_t fills;
static void fill_first(void *unused)
{
    (void)unused;
    order_of_fills[fills++] = '1';
}
static void fill_second(void *unused)
{
    (void)unused;
    order_of_fills[fills++] = '2';
}

/* A library fills memory on stream one, frees it, and fills it on stream two. `order`: of what has run when the host
 * has waited for two: the simulation runs nothing else. */
static void check_order(void *(*take)(void *), void (*give)(void *, void *), void *memory, const char *order)
{
    const uint64_t one = cai_sim_stream_create(sim, 0), two = cai_sim_stream_create(sim, 0);
    void *a = take(memory), *b;
    CHECK(a != NULL);
    memset(order_of_fills, 0, sizeof order_of_fills);
    fills = 0;
    CHECK_INT(cai_sim_launch(sim, one, "first", fill_first, NULL, NULL, 0), 0);
    give(memory, a);
    b = take(memory);
    CHECK(a == b); /* the pool queues nothing */
    CHECK_INT(cai_sim_launch(sim, two, "second", fill_second, NULL, NULL, 0), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, two), 0);
    CHECK_STR(order_of_fills, order);
    give(memory, b);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, one), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, two), 0);
}

/* Nothing is allocated without the order, and the capture goes on. */
static void check_order_fails(void *(*take)(void *), void (*give)(void *, void *), void *memory)
{
    const uint64_t one = cai_sim_stream_create(sim, 0);
    uint64_t graph = 0;
    void *a;
    CHECK_INT(cai_sim_capture_begin(sim, one, 2), 0);
    CHECK(take(memory) == NULL); /* 906 */
    CHECK_INT(cai_sim_capture_end(sim, one, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    CHECK_INT(cai_sim_fail_op(sim, "event_create", 1, 700), 1);
    CHECK(take(memory) == NULL);
    CHECK_INT(cai_sim_fail_op(sim, "event_record", 1, 700), 1);
    CHECK(take(memory) == NULL);
    a = take(memory);
    CHECK(a != NULL);
    give(memory, a);
    CHECK_INT(cai_sim_stream_destroy(sim, one), 0);
}

static int32_t record_nothing(void *self, uint64_t event, uint64_t stream)
{
    (void)self;
    (void)event;
    (void)stream;
    return 0;
}

static void *cupy_take(void *cupy) { return cai_cupy_malloc(cupy, 4096, 0); }
static void cupy_give(void *cupy, void *ptr) { cai_cupy_free(cupy, ptr, 0); }
static void *cvcuda_take(void *memory) { return cai_cvcuda_alloc(memory, 4096, 256); }
static void cvcuda_give(void *memory, void *ptr) { cai_cvcuda_free(memory, ptr, 4096, 256); }

static void test_order_of_blocking_streams(void)
{
    static pool_plugin pool;
    cai_emm_hooks upstream, hooks;
    cai_cuda defect;
    cai_cupy *cupy;
    cai_cvcuda *memory;
    open_sim();
    CHECK_INT(cai_emm_hooks_cuda(&upstream, cai_sim_cuda(sim), &err), CAI_OK);
    pool_plugin_open(&pool, &upstream, &hooks);
    cupy = cai_cupy_open(&hooks, cai_sim_cuda(sim), 0, 0, &err);
    check_order(cupy_take, cupy_give, cupy, "12");
    check_order_fails(cupy_take, cupy_give, cupy);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    defect = *cai_sim_cuda(sim);
    defect.event_record = record_nothing;
    cupy = cai_cupy_open(&hooks, &defect, 0, 0, &err);
    check_order(cupy_take, cupy_give, cupy, "2"); /* the test finds an adapter that forgets the event */
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    memory = cai_cvcuda_open(&hooks, cai_sim_cuda(sim), 0, 0, &err);
    check_order(cvcuda_take, cvcuda_give, memory, "12");
    check_order_fails(cvcuda_take, cvcuda_give, memory);
    CHECK_INT(cai_cvcuda_close(memory), CAI_OK);
    CHECK_UINT(pool.used.bytes, 0);
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 0);
    close_sim();
}

/* R105 */
static void test_cupy_teardown(void)
{
    cai_cupy *cupy;
    void *a;
    open_sim();
    cupy = cai_cupy_open(NULL, cai_sim_cuda(sim), 0, 0, &err);
    a = cai_cupy_malloc(cupy, 16, 0);
    cai_sim_teardown(sim);
    cai_cupy_free(cupy, a, 0);
    CHECK_UINT(cupy_count(cupy).freed, 1);
    CHECK_UINT(cupy_count(cupy).failed, 0);
    CHECK(cai_cupy_malloc(cupy, 16, 0) == NULL);
    CHECK_INT(cupy_count(cupy).native, 4);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    cai_sim_destroy(sim);
}

static void refuse(const cai_emm_hooks *hooks, const cai_cuda *cuda, int device, int32_t code)
{
    memset(&err, 0, sizeof err);
    CHECK(cai_cupy_open(hooks, cuda, device, 0, &err) == NULL);
    CHECK_INT(err.code, code);
    CHECK(err.message[0] != 0);
    CHECK(cai_cupy_open(hooks, cuda, device, 0, NULL) == NULL);
}

static void refuse_tables(const cai_emm_hooks *hooks)
{
    cai_cuda cuda;
    cuda = *cai_sim_cuda(sim);
    cuda.memory_alloc_async = NULL;
    refuse(NULL, &cuda, 0, CAI_ERR_UNAVAILABLE);
    cuda.context_pop = NULL;
    refuse(hooks, &cuda, 0, CAI_ERR_ARGUMENT);
    cuda = *cai_sim_cuda(sim);
    cuda.struct_size = (uint32_t)offsetof(cai_cuda, primary_release); /* of an older maker */
    refuse(hooks, &cuda, 0, CAI_ERR_ARGUMENT);
    cuda = *cai_sim_cuda(sim);
    cuda.primary_release = NULL;
    refuse(hooks, &cuda, 0, CAI_ERR_ARGUMENT);
    CHECK(cai_cvcuda_open(hooks, &cuda, 0, 0, &err) == NULL);
    CHECK_INT(err.code, CAI_ERR_ARGUMENT);
    CHECK_INT(cai_sim_calls_of(sim, "primary_retain"), cai_sim_calls_of(sim, "primary_release") + 2); /* device 2 */
}

static void test_cupy_refused(void)
{
    spy s;
    cai_emm_hooks hooks = spy_open(&s), bad = hooks;
    cai_cupy *cupy;
    open_sim();
    refuse(NULL, NULL, 0, CAI_ERR_CUDA); /* the loader is not compiled in here */
    refuse(&hooks, NULL, -1, CAI_ERR_ARGUMENT);
    refuse(NULL, cai_sim_cuda(sim), 2, CAI_ERR_CUDA); /* CUDA has two */
    bad.version = 2;
    refuse(&bad, NULL, 0, CAI_ERR_ABI);
    bad = hooks;
    bad.device_free = NULL;
    refuse(&bad, NULL, 0, CAI_ERR_ARGUMENT);
    bad.kind = CAI_MEMORY_DEVICE;
    refuse(&bad, cai_sim_cuda(sim), 0, CAI_ERR_ARGUMENT);
    refuse_tables(&hooks);
    CHECK_STR(s.log, "");
    s.fail_initialize = 3;
    refuse(&hooks, NULL, 0, CAI_ERR_CUDA);
    hooks.struct_size = (uint32_t)offsetof(cai_emm_hooks, initialize) + 3; /* of an older maker */
    cupy = cai_cupy_open(&hooks, NULL, 0, 0, &err);
    CHECK(cupy != NULL);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    close_sim();
    spy_close(&s);
}

/* ------------------------------------------------------------------ addresses */

/* The table of addresses against an array: random allocations and frees, of addresses that collide. */
static void test_addresses(void)
{
    static unsigned char present[3000];
    static unsigned char memory[3000];
    adapter a;
    uint32_t random = 1, i;
    size_t count = 0;
    memset(&a, 0, sizeof a);
    for (i = 0; i < 60000; i++) {
        const uint32_t k = (random = random * 1664525u + 1013904223u) >> 8;
        const uint32_t at = k % (i / 20000 % 2 ? 40u : 3000u);
        adapter_block block, got;
        memset(&block, 0, sizeof block);
        got = block;
        block.ptr = block.base = memory + at;
        block.size = at + 1u;
        if (k >> 20 & 1) {
            CHECK_INT(adapter_keep(&a, &block), present[at] ? CAI_ERR_MEMORY : CAI_OK);
            count += !present[at];
            present[at] = 1;
        } else {
            CHECK_INT(adapter_take(&a, memory + at, &got), present[at]);
            if (present[at]) CHECK(got.ptr == memory + at && got.size == at + 1u);
            count -= present[at];
            present[at] = 0;
        }
        CHECK_UINT(a.used, count);
        CHECK(2 * a.used <= a.places);
    }
    for (i = 0; i < 3000; i++) {
        adapter_block got;
        CHECK_INT(adapter_take(&a, memory + i, &got), present[i]);
    }
    CHECK_UINT(a.used, 0);
    free(a.blocks);
}

/* ------------------------------------------------------------------ CV-CUDA */

/* As nvcv/alloc/Allocator.h of CV-CUDA 0.19 declares it. */
typedef struct resource_allocator {
    void *ctx;
    int type;
    struct {
        void *(*alloc)(void *ctx, int64_t size, int32_t align);
        void (*free)(void *ctx, void *ptr, int64_t size, int32_t align);
    } mem;
    void (*cleanup)(void *ctx, struct resource_allocator *data);
} resource_allocator;

static cai_adapter_count cvcuda_count(cai_cvcuda *memory)
{
    cai_adapter_count count;
    cai_cvcuda_counts(memory, &count);
    return count;
}

static void test_cvcuda_pair(void)
{
    cai_cvcuda *memory;
    cai_emm_hooks hooks;
    resource_allocator of;
    void *a;
    open_sim();
    CHECK_INT(cai_emm_hooks_async(&hooks, cai_sim_cuda(sim), NULL, &err), CAI_OK);
    memory = cai_cvcuda_open(&hooks, cai_sim_cuda(sim), 0, 0, &err);
    CHECK(memory != NULL);
    of.ctx = memory;
    of.type = 1;
    of.mem.alloc = cai_cvcuda_alloc;
    of.mem.free = cai_cvcuda_free;
    of.cleanup = NULL;
    a = of.mem.alloc(of.ctx, 1024, 256);
    CHECK(a != NULL && (uintptr_t)a % 256 == 0);
    CHECK_INT(cai_cvcuda_close(memory), CAI_ERR_PENDING);
    of.mem.free(of.ctx, a, 1024, 256);
    of.mem.free(of.ctx, NULL, 1024, 256);
    check_log("primary_retain 0 -> c1\ncontext_current -> c1\nmemory_alloc_async 1024 legacy -> m1\n"
              "event_create -> e1\nevent_record e1 legacy\nevent_destroy e1\n"
              "context_current -> c1\nmemory_free_async m1 legacy\n");
    CHECK_UINT(cvcuda_count(memory).freed, 1);
    CHECK_INT(cai_cvcuda_close(memory), CAI_OK);
    CHECK_INT(cai_cvcuda_close(NULL), CAI_OK);
    close_sim();
}

/* K20: more than the hook promises is allocated for more, and freed as it was given. */
static void test_cvcuda_alignment(void)
{
    static const int32_t aligns[] = {1, 2, 16, 256, 512, 4096};
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    cai_cvcuda *memory = cai_cvcuda_open(&hooks, NULL, 0, 0x50, &err);
    unsigned char *a;
    char text[100];
    size_t i, more, gap;
    s.log[0] = 0;
    for (i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        s.next = 256;
        a = (unsigned char *)cai_cvcuda_alloc(memory, 4096, aligns[i]);
        more = aligns[i] > 256 ? (size_t)aligns[i] - 1 : 0;
        gap = aligns[i] > 256 ? (size_t)aligns[i] - 256 : 0;
        CHECK(a == s.memory + 256 + gap);
        CHECK((uintptr_t)a % (size_t)aligns[i] == 0);
        CHECK_UINT(cvcuda_count(memory).live_bytes, 4096 + more);
        cai_cvcuda_free(memory, a, 4096, aligns[i]);
        snprintf(text, sizeof text, "alloc %lu 50\nfree 256 %lu 50\n", (unsigned long)(4096 + more),
                 (unsigned long)(4096 + more));
        check_spy(&s, text);
    }
    s.next = 4096; /* it happens to be aligned */
    a = (unsigned char *)cai_cvcuda_alloc(memory, 4096, 4096);
    CHECK(a == s.memory + 4096);
    cai_cvcuda_free(memory, a, 4096, 4096);
    cai_cvcuda_free(memory, a, 4096, 4096); /* a second free */
    check_spy(&s, "alloc 8191 50\nfree 4096 8191 50\n");
    CHECK_UINT(cvcuda_count(memory).unknown, 1);
    CHECK_INT(cai_cvcuda_close(memory), CAI_OK);
    spy_close(&s);
}

static void test_cvcuda_refused(void)
{
    static const int32_t aligns[] = {0, 3, 24, -1, -256, -2147483647 - 1};
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    cai_cvcuda *memory = cai_cvcuda_open(&hooks, NULL, 0, 0, &err);
    char text[100];
    size_t i;
    s.log[0] = 0;
    for (i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        CHECK(cai_cvcuda_alloc(memory, 48, aligns[i]) == NULL);
        CHECK(cai_cvcuda_pinned_alloc(memory, 48, aligns[i]) == NULL);
    }
    CHECK(cai_cvcuda_alloc(memory, -1, 16) == NULL);
    CHECK(cai_cvcuda_alloc(memory, INT64_MIN, 16) == NULL);
    CHECK(cai_cvcuda_pinned_alloc(memory, -16, 16) == NULL);
    check_spy(&s, "");
    CHECK_UINT(cvcuda_count(memory).failed, 15);
    CHECK_INT(cvcuda_count(memory).first_failure, CAI_ERR_ARGUMENT);
    CHECK_INT(cvcuda_count(memory).native, 0);
    CHECK(cai_cvcuda_alloc(memory, 0, 512) == NULL);
    CHECK_UINT(cvcuda_count(memory).empty, 1);
    s.fail_alloc = 2;
    CHECK(cai_cvcuda_alloc(memory, INT64_MAX, 1 << 30) == NULL);
    if (sizeof(size_t) == 4) {
        CHECK(cai_cvcuda_alloc(memory, 0xffffff00, 1 << 30) == NULL);
        check_spy(&s, "");
    } else {
        snprintf(text, sizeof text, "alloc %lu 1\n", (unsigned long)((size_t)INT64_MAX + (1 << 30) - 1));
        check_spy(&s, text);
    }
    CHECK_INT(cai_cvcuda_close(memory), CAI_OK);
    CHECK(cai_cvcuda_open(NULL, NULL, 0, 0, &err) == NULL);
    CHECK_INT(err.code, CAI_ERR_ARGUMENT);
    spy_close(&s);
}

static void test_cvcuda_pinned(void)
{
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    cai_cvcuda *memory = cai_cvcuda_open(&hooks, NULL, 0, 0x50, &err);
    unsigned char *a, *b;
    s.log[0] = 0;
    a = (unsigned char *)cai_cvcuda_pinned_alloc(memory, 1024, 8);
    check_spy(&s, "host_alloc 1024 flags 0\n");
    s.next += 8; /* host_alloc promises less than device_alloc */
    b = (unsigned char *)cai_cvcuda_pinned_alloc(memory, 1024, 64);
    CHECK(a == s.memory && b == s.memory + 1024 + 64);
    check_spy(&s, "host_alloc 1087 flags 0\n");
    cai_cvcuda_free(memory, a, 1024, 8); /* not the pair that gave it */
    CHECK_UINT(cvcuda_count(memory).unknown, 1);
    check_spy(&s, "");
    cai_cvcuda_pinned_free(memory, a, 1024, 8);
    cai_cvcuda_pinned_free(memory, b, 1024, 64);
    cai_cvcuda_pinned_free(memory, NULL, 1024, 64);
    check_spy(&s, "host_free 0 1024 50\nhost_free 1032 1087 50\n");
    CHECK_UINT(cvcuda_count(memory).freed, 2);
    CHECK_INT(cai_cvcuda_close(memory), CAI_OK);
    hooks.host_alloc = NULL;
    hooks.host_free = NULL;
    memory = cai_cvcuda_open(&hooks, NULL, 0, 0, &err);
    CHECK(cai_cvcuda_pinned_alloc(memory, 1024, 64) == NULL);
    CHECK_UINT(cvcuda_count(memory).failed, 1);
    CHECK_INT(cai_cvcuda_close(memory), CAI_OK);
    spy_close(&s);
}

/* ------------------------------------------------------------------ opened before anything made a context (G2) */

static uint64_t active_context(int32_t device)
{
    uint64_t context = 0;
    CHECK_INT(cai_sim_cuda(sim)->device_context(cai_sim_cuda(sim)->self, device, &context), 0);
    return context;
}

static void open_idle_sim(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    CHECK_UINT(active_context(0) + active_context(1), 0);
}

/* What was opened is closed: no context is left. */
static void close_idle_sim(void)
{
    char text[400];
    CHECK_UINT(active_context(0) + active_context(1), 0);
    CHECK_UINT(cai_sim_current(sim), 0);
    cai_sim_leaks(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
}

static void test_cupy_opened_first(void)
{
    cai_cupy *cupy;
    void *a;
    open_idle_sim();
    cupy = cai_cupy_open(NULL, cai_sim_cuda(sim), 1, 0, &err);
    CHECK(cupy != NULL);
    a = cai_cupy_malloc(cupy, 16, 1); /* no context is current */
    CHECK(a != NULL);
    cai_cupy_free(cupy, a, 1);
    CHECK_UINT(cupy_count(cupy).freed, 1);
    CHECK_UINT(active_context(0), 0);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    close_idle_sim();
}

static void test_cvcuda_opened_first(void)
{
    cai_cvcuda *memory;
    cai_emm_hooks hooks;
    void *a;
    open_idle_sim();
    CHECK_INT(cai_emm_hooks_async(&hooks, cai_sim_cuda(sim), NULL, &err), CAI_OK);
    memory = cai_cvcuda_open(&hooks, cai_sim_cuda(sim), 1, 0, &err);
    CHECK(memory != NULL);
    a = cai_cvcuda_alloc(memory, 1024, 256);
    CHECK(a != NULL);
    cai_cvcuda_free(memory, a, 1024, 256);
    CHECK_UINT(cvcuda_count(memory).freed, 1);
    CHECK_INT(cai_cvcuda_close(memory), CAI_OK);
    close_idle_sim();
}

/* Another user of the primary context goes: the adapter still has it. */
static void test_context_of_another(void)
{
    cai_cupy *cupy;
    void *a, *b;
    open_idle_sim();
    CHECK(cai_sim_primary_retain(sim, 0) != 0);
    cupy = cai_cupy_open(NULL, cai_sim_cuda(sim), 0, 0, &err);
    CHECK(cupy != NULL);
    a = cai_cupy_malloc(cupy, 16, 0);
    CHECK_INT(cai_sim_primary_release(sim, 0), 0);
    b = cai_cupy_malloc(cupy, 16, 0);
    CHECK(a && b);
    cai_cupy_free(cupy, a, 0);
    cai_cupy_free(cupy, b, 0);
    CHECK_UINT(cupy_count(cupy).freed, 2);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
    close_idle_sim();
}

/* An error of open leaves no context. */
static void test_open_fails_first(void)
{
    spy s;
    cai_emm_hooks hooks = spy_open(&s);
    open_idle_sim();
    s.fail_initialize = 3;
    refuse(&hooks, cai_sim_cuda(sim), 0, CAI_ERR_CUDA);
    CHECK(cai_cvcuda_open(&hooks, cai_sim_cuda(sim), 1, 0, &err) == NULL);
    CHECK_STR(s.log, "initialize 0\ninitialize 0\ninitialize 1\n");
    CHECK_INT(cai_sim_fail_op(sim, "pool_create", 1, 801), 1);
    CHECK(cai_cupy_open(NULL, cai_sim_cuda(sim), 0, 0, &err) == NULL);
    CHECK_INT(err.native, 801);
    close_idle_sim();
    spy_close(&s);
}

/* ------------------------------------------------------------------ several threads */

#if !defined(_WIN32)
enum { THREADS = 4, TURNS = 500, HELD = 60 };

typedef struct worker {
    cai_cupy *cupy;
    int64_t wrong;
    int32_t mark;
} worker;

/* Memory of malloc, so that what two threads get at a time shows; enough of it that the table grows. */
static void *work(void *argument)
{
    worker *w = (worker *)argument;
    unsigned char *held[HELD] = {NULL};
    int i;
    for (i = 0; i < TURNS + HELD; i++) {
        unsigned char **at = &held[i % HELD];
        const size_t size = 16 + (size_t)(i % HELD);
        if (*at) w->wrong += (*at)[size - 1] != w->mark;
        cai_cupy_free(w->cupy, *at, 0);
        *at = i < TURNS ? (unsigned char *)cai_cupy_malloc(w->cupy, size, 0) : NULL;
        if (*at) memset(*at, (int)w->mark, size);
        else w->wrong += i < TURNS;
    }
    return NULL;
}

static void test_threads(void)
{
    cai_emm_hooks hooks;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    cai_cupy *cupy;
    int i;
    cai_emm_hooks_malloc(&hooks);
    cupy = cai_cupy_open(&hooks, NULL, 0, 0, &err);
    for (i = 0; i < THREADS; i++) {
        workers[i].cupy = cupy;
        workers[i].wrong = 0;
        workers[i].mark = i + 1;
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK_INT(workers[i].wrong, 0);
    }
    CHECK_UINT(cupy_count(cupy).allocated, THREADS * TURNS);
    CHECK_UINT(cupy_count(cupy).freed, THREADS * TURNS);
    CHECK_UINT(cupy_count(cupy).live_bytes + cupy_count(cupy).unknown + cupy_count(cupy).failed, 0);
    CHECK_INT(cai_cupy_close(cupy), CAI_OK);
}
#else
static void test_threads(void) {}
#endif

static void run(void)
{
    test_cupy_default_hooks();
    test_cupy_empty();
    test_cupy_wrong_frees();
    test_cupy_failures();
    test_cupy_out_of_memory();
    test_cupy_host_memory();
    test_cupy_contexts();
    test_order_of_blocking_streams();
    test_cupy_teardown();
    test_cupy_refused();
    test_addresses();
    test_cvcuda_pair();
    test_cvcuda_alignment();
    test_cvcuda_refused();
    test_cvcuda_pinned();
    test_cupy_opened_first();
    test_cvcuda_opened_first();
    test_context_of_another();
    test_open_fails_first();
    test_threads();
}

CAI_TEST_MAIN(run)
