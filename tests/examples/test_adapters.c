/* test_adapters.c - the pool plugin, the adapter for PyTorch, and structs of NVIDIA's libraries, simulated.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "examples/adapters/torch/cai_torch.c"
#include "examples/memory/pool_plugin.h"

#include "cai_test.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

typedef struct CUstream_st *stream_handle;

static cai_sim *sim;
static cai_error err;
static uint64_t c1, c2;         /* primary contexts of devices 0 and 1 */
static uint64_t number1, number2;
static stream_handle s1, s2, t1; /* s1, s2 of device 0; t1 of device 1 */

static void open_sim(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    number1 = cai_sim_stream_create(sim, 1);
    number2 = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    t1 = cai_stream_to_cuda(cai_sim_stream_create(sim, 1));
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    s1 = cai_stream_to_cuda(number1);
    s2 = cai_stream_to_cuda(number2);
}

static void close_sim(void)
{
    char text[400];
    CHECK_UINT(cai_sim_current(sim), c1);
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, number1), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, number2), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, cai_stream_from_cuda(t1, 0)), 0);
    cai_sim_leaks(sim, text, sizeof text);
    CHECK(!*text || (strncmp(text, "pools: ", 7) == 0 && !strchr(text, ';'))); /* PyTorch ends nothing */
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
    char memory[16][256]; /* what it gives out */
    int32_t given;
    int32_t fail_alloc, fail_free, fail_initialize, fail_info; /* errors to answer */
    int32_t fail_free_times;                                   /* 0: always */
} spy;

static void note(spy *s, const char *text)
{
    const size_t used = strlen(s->log), length = strlen(text);
    if (used + length < sizeof s->log) memcpy(s->log + used, text, length + 1);
}

static int spy_alloc(void *ctx, void **ptr, size_t size, stream_handle stream)
{
    spy *s = (spy *)ctx;
    char text[100];
    snprintf(text, sizeof text, "alloc %lu %lx\n", (unsigned long)size, (unsigned long)(uintptr_t)stream);
    note(s, text);
    if (s->fail_alloc) return s->fail_alloc;
    *ptr = s->memory[s->given++ % 16];
    return 0;
}

static int spy_free(void *ctx, void *ptr, size_t size, stream_handle stream)
{
    spy *s = (spy *)ctx;
    char text[100];
    const long place = (long)(((char *)ptr - s->memory[0]) / 256);
    snprintf(text, sizeof text, "free %ld %lu %lx\n", place, (unsigned long)size,
             (unsigned long)(uintptr_t)stream);
    note(s, text);
    if (!s->fail_free_times) return s->fail_free;
    return --s->fail_free_times ? s->fail_free : s->fail_free - 1; /* the last time another error */
}

static int spy_initialize(void *ctx, int device)
{
    spy *s = (spy *)ctx;
    char text[100];
    snprintf(text, sizeof text, "initialize %d\n", device);
    note(s, text);
    return s->fail_initialize;
}

static int spy_memory_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 1000;
    *total_bytes = 5000;
    return ((spy *)ctx)->fail_info;
}

static int spy_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    spy *s = (spy *)ctx;
    char text[100];
    snprintf(text, sizeof text, "host_alloc %lu flags %u\n", (unsigned long)size, flags);
    note(s, text);
    *ptr = s->memory[s->given++ % 16];
    return 0;
}

static cai_emm_hooks spy_hooks(spy *s)
{
    cai_emm_hooks hooks;
    memset(s, 0, sizeof *s);
    memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.kind = CAI_MEMORY_DEVICE;
    hooks.ctx = s;
    hooks.device_alloc = spy_alloc;
    hooks.device_free = spy_free;
    memcpy(hooks.name, "spy", 4);
    hooks.initialize = spy_initialize;
    hooks.memory_info = spy_memory_info;
    hooks.host_alloc = spy_host_alloc;
    hooks.host_free = spy_free;
    return hooks;
}

static void check_spy(spy *s, const char *expected)
{
    CHECK_STR(s->log, expected);
    s->log[0] = 0;
}

/* ------------------------------------------------------------------ PyTorch */

static void open_torch(int with_cuda)
{
    open_sim();
    memset(torch_devices, 0, sizeof torch_devices); /* as in a new process */
    torch_cuda = NULL;
    if (with_cuda) CHECK_INT(cai_torch_set_cuda(cai_sim_cuda(sim)), CAI_OK);
}

static cai_torch_count counted(int device)
{
    cai_torch_count count;
    CHECK_INT(cai_torch_counts(device, &count), CAI_OK);
    return count;
}

/* K26: PyTorch keeps size, device and stream of each pointer, and gives them to free; they reach the hook. */
static void test_torch_default_hooks(void)
{
    void *a, *b;
    open_torch(1);
    a = cai_torch_alloc(1000, 0, s1);
    CHECK(a != NULL);
    CHECK(cai_sim_bytes(sim, (uint64_t)(uintptr_t)a) == a);
    check_log("primary_retain 0 -> c1\npool_create 0 reuse 6 -> p3\ncontext_current -> c1\n"
              "memory_alloc_from_pool 1000 p3 s1 -> m1\n");
    b = cai_torch_alloc(24, 0, s2);
    check_log("context_current -> c1\nmemory_alloc_from_pool 24 p3 s2 -> m2\n");
    CHECK_UINT(counted(0).live_bytes, 1024);
    cai_torch_free(a, 1000, 0, s1);
    check_log("context_current -> c1\nmemory_free_async m1 s1\n");
    cai_torch_free(b, 24, 0, s2);
    check_log("context_current -> c1\nmemory_free_async m2 s2\n");
    CHECK_UINT(counted(0).allocated, 2);
    CHECK_UINT(counted(0).freed, 2);
    CHECK_UINT(counted(0).live_bytes, 0);
    CHECK_UINT(counted(0).peak_bytes, 1024);
    CHECK_UINT(counted(0).failed, 0);
    CHECK_UINT(counted(1).allocated, 0);
    close_sim();
}

/* pytorch#159892 */
static void test_torch_empty(void)
{
    open_torch(1);
    CHECK(cai_torch_alloc(0, 0, s1) == NULL);
    cai_torch_free(NULL, 0, 0, s1);
    check_log("");
    CHECK_UINT(counted(0).empty, 1);
    CHECK_UINT(counted(0).failed + counted(0).allocated + counted(0).freed, 0);
    close_sim();
}

static void test_torch_no_such_device(void)
{
    static const int devices[] = {-1, -2147483647 - 1, 64, 2147483647};
    cai_torch_count count;
    int i;
    open_torch(1);
    for (i = 0; i < 4; i++) CHECK(cai_torch_alloc(16, devices[i], s1) == NULL);
    check_log("");
    CHECK_UINT(counted(63).failed, 0); /* the last one there is */
    CHECK(cai_torch_alloc(16, 63, s1) == NULL);
    check_log("primary_retain 63 ! 101\n");
    CHECK_UINT(counted(63).failed, 1);
    CHECK_UINT(counted(-1).failed, 4);
    CHECK_INT(counted(-1).native, 101);
    cai_torch_free(&count, 16, 64, s1);
    CHECK_UINT(counted(-1).failed, 5);
    CHECK(cai_torch_alloc(16, 5, s1) == NULL); /* in range, but CUDA has two */
    check_log("primary_retain 5 ! 101\n");
    CHECK_UINT(counted(5).failed, 1);
    CHECK_INT(counted(5).first_failure, CAI_ERR_CUDA);
    cai_torch_free(&count, 16, 1, s1); /* nothing was allocated there */
    check_log("");
    CHECK_UINT(counted(1).failed, 1);
    CHECK_INT(cai_torch_counts(64, &count), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_torch_counts(-2, &count), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_torch_counts(0, NULL), CAI_ERR_ARGUMENT);
    close_sim();
}

/* Trap 15: PyTorch's NULL is the legacy stream. */
static void test_torch_null_stream(void)
{
    void *a;
    open_torch(1);
    a = cai_torch_alloc(16, 0, NULL);
    check_log("primary_retain 0 -> c1\npool_create 0 reuse 6 -> p3\ncontext_current -> c1\n"
              "memory_alloc_from_pool 16 p3 legacy -> m1\n");
    cai_torch_free(a, 16, 0, NULL);
    check_log("context_current -> c1\nmemory_free_async m1 legacy\n");
    close_sim();
}

static void test_torch_other_device(void)
{
    void *a;
    open_torch(1);
    a = cai_torch_alloc(16, 1, t1);
    check_log("primary_retain 1 -> c2\npool_create 1 reuse 6 -> p3\ncontext_current -> c1\ncontext_push c2\n"
              "memory_alloc_from_pool 16 p3 s3 -> m1\ncontext_pop\n");
    CHECK_UINT(cai_sim_current(sim), c1);
    CHECK_INT(cai_sim_set_context(sim, 0), 0); /* a thread without a context */
    cai_torch_free(a, 16, 1, t1);
    check_log("context_current -> none\ncontext_push c2\nmemory_free_async m1 s3\ncontext_pop\n");
    CHECK_UINT(cai_sim_current(sim), 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_sim_fail_op(sim, "context_push", 1, 201), 1);
    CHECK(cai_torch_alloc(16, 1, t1) == NULL);
    CHECK_INT(counted(1).native, 201);
    close_sim();
}

/* pytorch#133280: PyTorch takes the NULL. */
static void test_torch_out_of_memory(void)
{
    void *a;
    open_torch(1);
    cai_sim_set_memory(sim, 0, 1 << 20);
    CHECK(cai_torch_alloc(2 << 20, 0, s1) == NULL);
    CHECK_UINT(counted(0).failed, 1);
    CHECK_INT(counted(0).native, 2);
    CHECK_INT(counted(0).first_failure, CAI_ERR_OUT_OF_MEMORY);
    CHECK_UINT(counted(0).live_bytes + counted(0).allocated, 0);
    a = cai_torch_alloc(1 << 10, 0, s1);
    CHECK(a != NULL);
    cai_torch_free(a, 1 << 10, 0, s1);
    close_sim();
}

static uint64_t active_context(int32_t device)
{
    uint64_t context = 0;
    CHECK_INT(cai_sim_cuda(sim)->device_context(cai_sim_cuda(sim)->self, device, &context), 0);
    return context;
}

/* G2: PyTorch allocates before anything made a context. A failure leaves none; success keeps it for ever. */
static void test_torch_first(void)
{
    spy s;
    cai_emm_hooks hooks = spy_hooks(&s);
    void *a;
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    memset(torch_devices, 0, sizeof torch_devices);
    torch_cuda = NULL;
    CHECK_INT(cai_torch_set_cuda(cai_sim_cuda(sim)), CAI_OK);
    CHECK_INT(cai_torch_set_hooks(0, &hooks), CAI_OK);
    s.fail_initialize = 3;
    CHECK(cai_torch_alloc(16, 0, NULL) == NULL);
    check_spy(&s, "initialize 0\n");
    CHECK_UINT(active_context(0) + active_context(1), 0);
    a = cai_torch_alloc(16, 1, NULL); /* by a pool of its own */
    CHECK(a != NULL);
    CHECK_UINT(cai_sim_primary_retain(sim, 1), active_context(1)); /* another user comes, and goes */
    CHECK_INT(cai_sim_primary_release(sim, 1), 0);
    cai_torch_free(a, 16, 1, NULL);
    CHECK_UINT(counted(1).freed, 1);
    CHECK_UINT(active_context(0), 0);
    CHECK_UINT(active_context(1), cai_sim_primary(sim, 1));
    CHECK_UINT(cai_sim_current(sim), 0);
    CHECK_INT(cai_sim_primary_release(sim, 1), 0); /* it was retained once */
    CHECK_UINT(active_context(1), 0);
    cai_sim_destroy(sim);
}

static void test_torch_own_hooks(void)
{
    spy s;
    cai_emm_hooks hooks = spy_hooks(&s), poor = hooks;
    void *a;
    open_torch(1);
    poor.device_free = NULL;
    CHECK_INT(cai_torch_set_hooks(0, &poor), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_torch_set_hooks(0, NULL), CAI_ERR_ARGUMENT);
    poor.version = 2;
    CHECK_INT(cai_torch_set_hooks(0, &poor), CAI_ERR_ABI);
    CHECK_INT(cai_torch_set_hooks(64, &hooks), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_torch_set_hooks(-1, &hooks), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_torch_set_hooks(0, &hooks), CAI_OK);
    CHECK_INT(cai_torch_set_hooks(0, &hooks), CAI_OK); /* until it is used */
    s.fail_initialize = 3;
    CHECK(cai_torch_alloc(16, 0, s1) == NULL);
    check_spy(&s, "initialize 0\n");
    s.fail_initialize = 0;
    a = cai_torch_alloc(16, 0, (stream_handle)(uintptr_t)0x50);
    CHECK(a == s.memory[0]);
    CHECK(cai_torch_alloc(17, 0, NULL) == s.memory[1]);
    check_spy(&s, "initialize 0\nalloc 16 50\nalloc 17 1\n");
    CHECK_INT(cai_torch_set_hooks(0, &hooks), CAI_ERR_PENDING);
    s.fail_free = 700;
    cai_torch_free(a, 16, 0, NULL);
    check_spy(&s, "free 0 16 1\n");
    CHECK_UINT(counted(0).failed, 2);
    CHECK_INT(counted(0).native, 3); /* of the first */
    s.fail_free = 0;
    cai_torch_free(s.memory[1], 17, 0, NULL);
    CHECK_UINT(counted(0).freed, 1);
    close_sim();
}

/* A table of an older maker: what lies behind its end is NULL. */
static void test_torch_short_table(void)
{
    spy s;
    cai_emm_hooks hooks = spy_hooks(&s);
    open_torch(1);
    hooks.struct_size = (uint32_t)offsetof(cai_emm_hooks, initialize) + 3;
    CHECK_INT(cai_torch_set_hooks(1, &hooks), CAI_OK);
    CHECK(cai_torch_alloc(16, 1, NULL) == s.memory[0]);
    check_spy(&s, "alloc 16 1\n");
    close_sim();
}

static void test_torch_without_cuda(void)
{
    cai_cuda cuda;
    open_torch(0);
    CHECK(cai_torch_alloc(16, 0, s1) == NULL); /* the loader is not compiled in here */
    CHECK_UINT(counted(0).failed, 1);
    cuda = *cai_sim_cuda(sim);
    cuda.struct_size = (uint32_t)(offsetof(cai_cuda, primary_release) + sizeof cuda.primary_release - 1); /* not all */
    CHECK_INT(cai_torch_set_cuda(&cuda), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_torch_set_cuda(NULL), CAI_ERR_ARGUMENT);
    cuda = *cai_sim_cuda(sim);
    cuda.context_pop = NULL;
    CHECK_INT(cai_torch_set_cuda(&cuda), CAI_ERR_ARGUMENT);
    cuda = *cai_sim_cuda(sim);
    cuda.primary_retain = NULL;
    CHECK_INT(cai_torch_set_cuda(&cuda), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_torch_set_cuda(cai_sim_cuda(sim)), CAI_OK);
    CHECK_INT(cai_torch_set_cuda(cai_sim_cuda(sim)), CAI_ERR_PENDING);
    cuda = *cai_sim_cuda(sim);
    cuda.memory_alloc_async = NULL;
    torch_cuda = &cuda;
    CHECK(cai_torch_alloc(16, 0, s1) == NULL);
    CHECK_UINT(counted(0).failed, 2);
    close_sim();
}

/* R105: what is freed while the process ends. */
static void test_torch_teardown(void)
{
    void *a;
    open_torch(1);
    a = cai_torch_alloc(16, 0, s1);
    cai_sim_teardown(sim);
    cai_torch_free(a, 16, 0, s1);
    CHECK_UINT(counted(0).freed, 1);
    CHECK_UINT(counted(0).failed, 0);
    CHECK(cai_torch_alloc(16, 0, s1) == NULL);
    CHECK_INT(counted(0).native, 4);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ the pool */

static pool_plugin pool;

static cai_emm_hooks open_pool(spy *s)
{
    cai_emm_hooks upstream = spy_hooks(s), hooks;
    pool_plugin_open(&pool, &upstream, &hooks);
    CHECK_INT(cai_emm_hooks_check(&hooks, &err), CAI_OK);
    return hooks;
}

static void *take(const cai_emm_hooks *hooks, size_t size, uintptr_t stream)
{
    void *ptr = NULL;
    CHECK_INT(hooks->device_alloc(hooks->ctx, &ptr, size, (stream_handle)stream), 0);
    return ptr;
}

static void give(const cai_emm_hooks *hooks, void *ptr, size_t size, uintptr_t stream)
{
    CHECK_INT(hooks->device_free(hooks->ctx, ptr, size, (stream_handle)stream), 0);
}

static void test_pool_classes(void)
{
    size_t size, last = 0;
    CHECK_UINT(pool_class(1), 256);
    CHECK_UINT(pool_class(256), 256);
    CHECK_UINT(pool_class(257), 512);
    CHECK_UINT(pool_class(4096), 4096);
    CHECK_UINT(pool_class(4097), 4608);
    CHECK_UINT(pool_class(8191), 8192);
    CHECK_UINT(pool_class(8193), 9216);
    CHECK_UINT(pool_class(SIZE_MAX), 0);
    CHECK_UINT(pool_class(SIZE_MAX - 255), 0);
    for (size = 1; size < 3000000; size += 1 + size / 97) {
        const size_t whole = pool_class(size);
        CHECK(whole >= size && whole % 256 == 0 && whole >= last && pool_class(whole) == whole);
        CHECK(whole - size < 256 || whole - size <= size / 8);
        last = whole;
    }
}

static void test_pool_reuse(void)
{
    spy s;
    const cai_emm_hooks hooks = open_pool(&s);
    void *a = take(&hooks, 1000, 0x50), *b;
    check_spy(&s, "alloc 1024 50\n");
    give(&hooks, a, 1000, 0x50);
    CHECK(take(&hooks, 900, 0x50) == a); /* the class, not the size */
    check_spy(&s, "");
    give(&hooks, a, 900, 0x50);
    b = take(&hooks, 1000, 0x60); /* what 0x50 may still use is not for 0x60 */
    CHECK(b != a);
    check_spy(&s, "alloc 1024 60\n");
    give(&hooks, b, 1000, 0x70); /* the caller ordered 0x70 after 0x60 */
    CHECK(take(&hooks, 1000, 0x70) == b);
    check_spy(&s, "");
    CHECK_UINT(pool.hits, 2);
    CHECK_UINT(pool.taken, 2);
    CHECK_UINT(pool.kept.bytes, 1024);
    CHECK_UINT(pool.used.bytes, 1024);
    give(&hooks, b, 1000, 0);
    CHECK(take(&hooks, 1000, CAI_STREAM_LEGACY) == b); /* one stream by two names */
    give(&hooks, b, 1000, CAI_STREAM_LEGACY);
    CHECK_INT(pool_empty(&pool, &pool.kept, (stream_handle)(uintptr_t)0x50), 0);
    check_spy(&s, "free 0 1024 50\n");
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 0);
    check_spy(&s, "free 1 1024 1\n");
    CHECK_UINT(pool.returned, 2);
    CHECK_UINT(pool.kept.bytes + pool.used.bytes, 0);
}

/* Trap 19 */
static void test_pool_per_thread_stream(void)
{
    spy s;
    const cai_emm_hooks hooks = open_pool(&s);
    void *a = take(&hooks, 16, CAI_STREAM_PER_THREAD);
    give(&hooks, a, 16, CAI_STREAM_PER_THREAD);
    CHECK(take(&hooks, 16, CAI_STREAM_PER_THREAD) != a);
    check_spy(&s, "alloc 256 2\nfree 0 256 2\nalloc 256 2\n");
    CHECK_INT(hooks.reset(hooks.ctx), 0);
}

static void test_pool_out_of_memory(void)
{
    spy s;
    const cai_emm_hooks hooks = open_pool(&s);
    void *a = take(&hooks, 16, 0x50), *b = take(&hooks, 16, 0x50), *c = NULL;
    give(&hooks, a, 16, 0x50);
    give(&hooks, b, 16, 0x60);
    s.log[0] = 0;
    s.fail_alloc = 2;
    CHECK_INT(hooks.device_alloc(hooks.ctx, &c, 5000, NULL), 2);
    check_spy(&s, "alloc 5120 1\nfree 1 256 60\nfree 0 256 50\nalloc 5120 1\n");
    s.fail_alloc = 700; /* another error: once */
    CHECK_INT(hooks.device_alloc(hooks.ctx, &c, 16, NULL), 700);
    check_spy(&s, "alloc 256 1\n");
    CHECK_INT(hooks.device_alloc(hooks.ctx, &c, SIZE_MAX, NULL), 2);
    check_spy(&s, "");
    CHECK(c == NULL);
    CHECK_UINT(pool.used.bytes + pool.kept.bytes, 0);
}

static void test_pool_wrong_frees(void)
{
    spy s;
    const cai_emm_hooks hooks = open_pool(&s);
    void *a = take(&hooks, 16, 0x50);
    CHECK_INT(hooks.device_free(hooks.ctx, &s, 16, NULL), 1);
    CHECK_INT(hooks.device_free(hooks.ctx, NULL, 16, NULL), 1);
    give(&hooks, a, 16, 0x50);
    CHECK_INT(hooks.device_free(hooks.ctx, a, 16, NULL), 1);
    s.fail_free = 700;
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 700);
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 0); /* gone all the same */
}

static void test_pool_memory_info(void)
{
    spy s;
    cai_emm_hooks upstream, hooks = open_pool(&s);
    size_t available = 0, total = 0;
    give(&hooks, take(&hooks, 16, 0x50), 16, 0x50);
    CHECK_INT(hooks.memory_info(hooks.ctx, &available, &total), 0);
    CHECK_UINT(available, 1256);
    CHECK_UINT(total, 5000);
    s.fail_info = 700;
    CHECK_INT(hooks.memory_info(hooks.ctx, &available, &total), 700);
    CHECK_UINT(available, 1000);
    CHECK_INT(hooks.reset(hooks.ctx), 0);
    upstream = spy_hooks(&s);
    upstream.memory_info = NULL;
    upstream.flags = CAI_EMM_FREES_WAIT | CAI_EMM_CUDA_HOST;
    upstream.host_alloc = NULL;
    upstream.host_free = NULL;
    pool_plugin_open(&pool, &upstream, &hooks);
    CHECK(hooks.memory_info == NULL);
    CHECK_UINT(hooks.flags, CAI_EMM_CUDA_HOST);
    CHECK_INT(hooks.kind, CAI_MEMORY_DEVICE);
    upstream.flags = CAI_EMM_FREES_WAIT; /* CUDA's own table has hooks for host memory, and the pool has none */
    pool_plugin_open(&pool, &upstream, &hooks);
    CHECK_UINT(hooks.flags, CAI_EMM_CUDA_HOST);
    upstream.kind = CAI_MEMORY_HOST;
    pool_plugin_open(&pool, &upstream, &hooks);
    CHECK_UINT(hooks.flags, 0);
}

static void test_pool_reset(void)
{
    spy s;
    const cai_emm_hooks hooks = open_pool(&s);
    void *a;
    CHECK_INT(hooks.reset(hooks.ctx), 0); /* R113: it may come first */
    CHECK_INT(hooks.initialize(hooks.ctx, 3), 0);
    check_spy(&s, "initialize 3\n");
    a = take(&hooks, 16, 0x50);
    (void)take(&hooks, 300, 0x60);
    give(&hooks, a, 16, 0x70);
    s.log[0] = 0;
    s.fail_free = 709;
    s.fail_free_times = 2;
    CHECK_INT(hooks.reset(hooks.ctx), 709); /* the first */
    check_spy(&s, "free 1 512 60\nfree 0 256 70\n");
    CHECK_UINT(pool.used.bytes + pool.kept.bytes, 0);
    s.fail_free = 0;
    s.fail_free_times = 0;
    a = take(&hooks, 16, 0x50);
    give(&hooks, take(&hooks, 16, 0x50), 16, 0x50);
    give(&hooks, a, 16, 0x50);
    s.fail_free = 709;
    s.fail_free_times = 2;
    CHECK_INT(hooks.reset(hooks.ctx), 709);
}

/* Under a manager, over cudaMalloc. */
static void test_pool_managed(void)
{
    cai_event_pool streams;
    cai_emm_hooks upstream, hooks;
    cai_manager emm;
    cai_memory_handle a, b;
    cai_manager_count count;
    int i;
    open_sim();
    CHECK_INT(cai_event_pool_init(&streams, cai_sim_cuda(sim), NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(cai_emm_hooks_cuda(&upstream, cai_sim_cuda(sim), &err), CAI_OK);
    pool_plugin_open(&pool, &upstream, &hooks);
    CHECK_INT(cai_manager_init(&emm, &streams, &hooks, NULL, &err), CAI_OK);
    for (i = 0; i < 50; i++) {
        CHECK_INT(cai_manager_alloc(&a, &emm, 1000, 0, number1, &err), CAI_OK);
        CHECK_INT(cai_manager_alloc(&b, &emm, 1000, 0, number1, &err), CAI_OK);
        CHECK_INT(cai_manager_free(&emm, a, number1, &err), CAI_OK);
        CHECK_INT(cai_manager_free(&emm, b, number1, &err), CAI_OK);
    }
    CHECK_INT(cai_sim_calls_of(sim, "memory_alloc"), 2);
    CHECK_INT(cai_sim_calls_of(sim, "memory_free"), 0);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(cai_manager_alloc(&a, &emm, 1000, 0, number1, &err), CAI_OK);
    CHECK_INT(cai_stream_order(&streams, number1, number2, &err), CAI_OK);
    cai_sim_log_clear(sim);
    CHECK_INT(cai_manager_free(&emm, a, number2, &err), CAI_OK);
    CHECK_INT(cai_sim_ordering_calls(sim), 0);
    CHECK_INT(cai_manager_alloc(&a, &emm, 1000, 0, number2, &err), CAI_OK);
    CHECK_INT(cai_manager_reset(&emm, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "memory_free"), 2); /* a, and what was kept */
    CHECK_INT(cai_manager_alloc(&b, &emm, 1000, 0, number2, &err), CAI_OK);
    CHECK_INT(cai_manager_free(&emm, a, number2, &err), CAI_OK); /* K04: of before the reset */
    CHECK_INT(cai_manager_free(&emm, b, number2, &err), CAI_OK);
    cai_manager_counts(&emm, &count);
    CHECK_UINT(count.lost, 1);
    CHECK_UINT(count.failed, 0);
    CHECK_INT(cai_manager_destroy(&emm, &err), CAI_OK);
    CHECK_INT(pool_empty(&pool, &pool.kept, NULL), 0);
    CHECK_INT(cai_event_pool_destroy(&streams, &err), CAI_OK);
    close_sim();
}

/* ------------------------------------------------------------------ several threads */

#if !defined(_WIN32)
enum { THREADS = 4, TURNS = 2000 };

typedef struct worker {
    const cai_emm_hooks *hooks;
    uintptr_t stream;
    int64_t wrong;
} worker;

/* The pool gives memory of malloc here, so that what two threads get at a time shows. */
static void *work(void *argument)
{
    worker *w = (worker *)argument;
    int i;
    for (i = 0; i < TURNS; i++) {
        const size_t size = 16 + (size_t)(i % 7) * 300;
        void *ptr = NULL;
        w->wrong += w->hooks->device_alloc(w->hooks->ctx, &ptr, size, (stream_handle)w->stream) != 0;
        memset(ptr, (int)w->stream, size);
        w->wrong += ((unsigned char *)ptr)[size - 1] != (unsigned char)w->stream;
        w->wrong += w->hooks->device_free(w->hooks->ctx, ptr, size, (stream_handle)w->stream) != 0;
        if (i % 500 == 499) w->wrong += pool_empty(&pool, &pool.kept, NULL) != 0;
    }
    return NULL;
}

static void test_pool_threads(void)
{
    cai_emm_hooks upstream, hooks;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    int i;
    cai_emm_hooks_malloc(&upstream);
    pool_plugin_open(&pool, &upstream, &hooks);
    for (i = 0; i < THREADS; i++) {
        workers[i].hooks = &hooks;
        workers[i].stream = 0x50 + (uintptr_t)(i / 2); /* two threads to a stream */
        workers[i].wrong = 0;
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK_INT(workers[i].wrong, 0);
    }
    CHECK_INT(hooks.reset(hooks.ctx), 0);
    CHECK_UINT(pool.used.bytes + pool.kept.bytes, 0);
    CHECK_UINT(pool.hits + pool.taken, THREADS * TURNS);
    CHECK_UINT(pool.returned, pool.taken);
}

static void *work_torch(void *argument)
{
    worker *w = (worker *)argument;
    int i;
    for (i = 0; i < TURNS / 4; i++) {
        void *ptr = cai_torch_alloc(64, (int)w->stream, NULL);
        w->wrong += ptr == NULL;
        cai_torch_free(ptr, 64, (int)w->stream, NULL);
    }
    return NULL;
}

static void test_torch_threads(void)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    int i;
    open_torch(1);
    for (i = 0; i < THREADS; i++) {
        workers[i].stream = (uintptr_t)(i % 2); /* the device */
        workers[i].wrong = 0;
        CHECK_INT(pthread_create(&threads[i], NULL, work_torch, &workers[i]), 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK_INT(workers[i].wrong, 0);
    }
    for (i = 0; i < 2; i++) {
        CHECK_UINT(counted(i).allocated, 2 * TURNS / 4);
        CHECK_UINT(counted(i).freed, 2 * TURNS / 4);
        CHECK_UINT(counted(i).live_bytes, 0);
    }
    close_sim();
}
#else
static void test_pool_threads(void) {}
static void test_torch_threads(void) {}
#endif

/* ------------------------------------------------------------------ structs of NVIDIA's libraries */

/* As cuTensorNet 2.14, cuStateVec 1.15 and cuDSS 1.0 declare it; examples/adapters/nvidia.c takes theirs. */
typedef struct device_mem_handler {
    void *ctx;
    int (*device_alloc)(void *ctx, void **ptr, size_t size, stream_handle stream);
    int (*device_free)(void *ctx, void *ptr, size_t size, stream_handle stream);
    char name[64];
} device_mem_handler;

/* As nvJPEG 12.4 declares them. */
typedef struct jpeg_device {
    int (*dev_malloc)(void *ctx, void **ptr, size_t size, stream_handle stream);
    int (*dev_free)(void *ctx, void *ptr, size_t size, stream_handle stream);
    void *dev_ctx;
} jpeg_device;

static void test_handlers(void)
{
    cai_emm_hooks hooks;
    device_mem_handler handler;
    jpeg_device jpeg;
    void *ptr = NULL;
    CHECK_UINT(offsetof(cai_emm_hooks, name) + sizeof hooks.name - offsetof(cai_emm_hooks, ctx),
               sizeof handler);
    open_sim();
    CHECK_INT(cai_emm_hooks_async(&hooks, cai_sim_cuda(sim), NULL, &err), CAI_OK);
    memcpy(&handler, &hooks.ctx, sizeof handler);
    CHECK_STR(handler.name, "cuda_async");
    CHECK_INT(handler.device_alloc(handler.ctx, &ptr, 1000, s1), 0);
    CHECK(ptr != NULL && (uintptr_t)ptr % 256 == 0);
    CHECK_INT(handler.device_free(handler.ctx, ptr, 1000, s2), 0);
    jpeg.dev_malloc = hooks.device_alloc;
    jpeg.dev_free = hooks.device_free;
    jpeg.dev_ctx = hooks.ctx;
    CHECK_INT(jpeg.dev_malloc(jpeg.dev_ctx, &ptr, 24, s1), 0);
    CHECK_INT(jpeg.dev_free(jpeg.dev_ctx, ptr, 24, s1), 0);
    check_log("memory_alloc_async 1000 s1 -> m1\nmemory_free_async m1 s2\n"
              "memory_alloc_async 24 s1 -> m2\nmemory_free_async m2 s1\n");
    cai_sim_set_memory(sim, 0, 512);
    CHECK_INT(handler.device_alloc(handler.ctx, &ptr, 100000, s1), 2);
    close_sim();
}

/* nvJPEG's pinned pair: the table has flags where it has a stream; free is the table's own. */
static int pinned_malloc(void *ctx, void **ptr, size_t size, stream_handle stream)
{
    const cai_emm_hooks *hooks = (const cai_emm_hooks *)ctx;
    (void)stream;
    return hooks->host_alloc(hooks->ctx, ptr, size, 0);
}

static void test_pinned_handler(void)
{
    spy s;
    cai_emm_hooks hooks = spy_hooks(&s);
    jpeg_device pinned;
    void *ptr = NULL;
    pinned.dev_malloc = pinned_malloc;
    pinned.dev_free = hooks.host_free;
    pinned.dev_ctx = &hooks;
    CHECK_INT(pinned.dev_malloc(pinned.dev_ctx, &ptr, 100, NULL), 0);
    CHECK_INT(pinned.dev_free(hooks.ctx, ptr, 100, NULL), 0);
    check_spy(&s, "host_alloc 100 flags 0\nfree 0 100 0\n");
}

/* A handler over the pool: reuse without a call. */
static void test_handler_over_pool(void)
{
    spy s;
    const cai_emm_hooks hooks = open_pool(&s);
    device_mem_handler handler;
    void *ptr = NULL, *again = NULL;
    memcpy(&handler, &hooks.ctx, sizeof handler);
    CHECK_INT(handler.device_alloc(handler.ctx, &ptr, 1000, NULL), 0);
    CHECK_INT(handler.device_free(handler.ctx, ptr, 1000, NULL), 0);
    CHECK_INT(handler.device_alloc(handler.ctx, &again, 1000, NULL), 0);
    CHECK(ptr == again);
    check_spy(&s, "alloc 1024 1\n");
    CHECK_INT(hooks.reset(hooks.ctx), 0);
}

static void run(void)
{
    test_torch_default_hooks();
    test_torch_empty();
    test_torch_no_such_device();
    test_torch_null_stream();
    test_torch_other_device();
    test_torch_out_of_memory();
    test_torch_first();
    test_torch_own_hooks();
    test_torch_short_table();
    test_torch_without_cuda();
    test_torch_teardown();
    test_torch_threads();
    test_pool_classes();
    test_pool_reuse();
    test_pool_per_thread_stream();
    test_pool_out_of_memory();
    test_pool_wrong_frees();
    test_pool_memory_info();
    test_pool_reset();
    test_pool_managed();
    test_pool_threads();
    test_handlers();
    test_pinned_handler();
    test_handler_over_pool();
}

CAI_TEST_MAIN(run)
