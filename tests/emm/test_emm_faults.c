/* test_emm_faults.c - every CUDA call and every hook under every function of cai_manager.h fails once.
 * SPDX-License-Identifier: MIT
 *
 * A scenario is a function in a situation, over a table of hooks. It runs once without a fault, which gives
 * the list of its calls, those of hooks included; then again for each of these calls and each error, with
 * that call failing, and with all from it on failing. What memory there is the test knows from the calls that
 * give and take it; with that it goes through the books of the manager (check_books). At the end a table says
 * how many failures of which call were injected into which function, and how often something was left. */
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

enum { PLACES = 8, STREAMS = 4, HELD = 24, ITEMS = 400, OPERATIONS = 41, TEXT = 30000 };
enum { CUDA, ASYNC, PLUGIN, FREES_WAIT, TABLES };
enum { ON_CUDA = 1 << CUDA, ON_ASYNC = 1 << ASYNC, ON_PLUGIN = 1 << PLUGIN, ON_FREES_WAIT = 1 << FREES_WAIT };
enum { BUILT_IN = ON_CUDA | ON_ASYNC, PLUGINS = ON_PLUGIN | ON_FREES_WAIT, ALL = BUILT_IN | PLUGINS };

static const char *const table_names[TABLES] = {"cuda", "cuda_async", "my_pool", "my_heap"};
static const int32_t errors[] = {1, 2, 4, 201, 400, 700, 709, 719, 900, 999};

enum { ERRORS = (int)(sizeof errors / sizeof errors[0]) };

/* ------------------------------------------------------------------ memory, as the test knows it */

/* What was given, and by whom: the simulation ('D' device, 'P' pool, 'H' host, 'M' managed, 'R' registered)
 * or the hooks of the test (the same in small letters). */
typedef struct item {
    uint64_t address, size;
    char kind;
    int live, tried; /* tried: a free of it failed */
} item;

static item items[ITEMS];
static int32_t item_count;
static int32_t failed_frees; /* but not with 4 */
static int32_t first_failed_free;
static uint64_t next_address;

static void given(uint64_t address, uint64_t size, char kind)
{
    item *it = &items[item_count];
    if (item_count++ == ITEMS - 1) exit(2);
    it->address = address;
    it->size = size;
    it->kind = kind;
    it->live = 1;
    it->tried = 0;
}

/* A free, by its address: of what is there, of that kind, and for the first time. */
static void taken(uint64_t address, const char *kinds, int32_t error)
{
    int32_t i;
    for (i = item_count - 1; i >= 0; i--) {
        if (items[i].address == address && items[i].live) break;
    }
    if (!CHECK(i >= 0)) return;
    CHECK(strchr(kinds, items[i].kind) != NULL);
    CHECK_INT(items[i].tried, 0);
    items[i].tried = error != 0;
    items[i].live = error != 0;
    if (!error || error == 4) return;
    if (!failed_frees++) first_failed_free = error;
}

/* ------------------------------------------------------------------ the world of a scenario */

typedef struct world {
    cai_event_pool pool;
    cai_keepalive places[PLACES];
    cai_manager emm;
    cai_emm_hooks hooks;
    uint64_t s[STREAMS]; /* of c1, the last one of c2 */
    uint64_t c1, c2;
    cai_memory_handle held[HELD]; /* objects, with one reference for each entry */
    int32_t held_count;
    cai_memory_handle out;
    cai_array array;
    uint64_t event;
    uint64_t capturing; /* this stream captures */
    uint64_t capacity;  /* of the hooks of the test, bytes; 0: no limit */
    int32_t made, gone; /* by init, by destroy */
    size_t free_bytes, total_bytes;
    cai_memory_ipc ipc;
} world;

static cai_sim *sim;
static cai_cuda cuda;
static world w;
static char trace[TEXT], text[TEXT], clean[TEXT]; /* so far; of the function; of it without a fault */
static int32_t hook_calls, hook_fault, hook_error; /* the hook_fault-th call of a hook fails */
static int32_t hook_storm;                         /* 1: those after it, too */
static int64_t lists;                              /* of the manager, that live */

static void must(cai_status status) { CHECK_INT(status, CAI_OK); }

static void *list_alloc(void *user_data, size_t size)
{
    CHECK(user_data == &lists);
    lists++;
    return malloc(size);
}

static void list_free(void *user_data, void *ptr, size_t size)
{
    CHECK(user_data == &lists && size > 0);
    lists--;
    free(ptr);
}

/* ------------------------------------------------------------------ the text of all calls */

static void trace_add(const char *line)
{
    const size_t used = strlen(trace), more = strlen(line);
    if (used + more >= sizeof trace) exit(2);
    memcpy(trace + used, line, more + 1);
}

static void trace_take(void)
{
    trace_add(cai_sim_log(sim));
    cai_sim_log_clear(sim);
}

/* A call of a hook of the test. Its error. */
static int32_t hook_called(const char *table, const char *hook)
{
    char line[80];
    const int fails = ++hook_calls == hook_fault || (hook_storm && hook_calls > hook_fault);
    const int32_t error = fails ? hook_error : 0;
    if (strcmp(hook, "reset") != 0) CHECK_UINT(cai_sim_current(sim), w.c1); /* the manager's context */
    CHECK_INT(w.emm.guard, 0);
    CHECK_INT(w.pool.guard, 0);
    if (error) sprintf(line, "hook %s of %s ! %d\n", hook, table, (int)error);
    else sprintf(line, "hook %s of %s\n", hook, table);
    trace_take();
    trace_add(line);
    return error;
}

/* ------------------------------------------------------------------ hooks of the test: addresses alone */

static uint64_t in_use(void)
{
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < item_count; i++) sum += items[i].live ? items[i].size : 0;
    return sum;
}

static int hook_alloc(void *ctx, const char *hook, char kind, void **ptr, size_t size)
{
    int32_t error = hook_called((const char *)ctx, hook);
    *ptr = NULL;
    if (!error && w.capacity && in_use() + size > w.capacity) error = 2;
    if (error) return error;
    next_address += 0x100000;
    given(next_address, size, kind);
    *ptr = (void *)(uintptr_t)next_address;
    return 0;
}

static int hook_free(void *ctx, const char *hook, const char *kinds, void *ptr)
{
    const int32_t error = hook_called((const char *)ctx, hook);
    taken((uint64_t)(uintptr_t)ptr, kinds, error);
    return error;
}

static int plug_device_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    CHECK(stream != NULL);
    return hook_alloc(ctx, "device_alloc", 'd', ptr, size);
}

static int plug_device_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    CHECK(stream != NULL && size > 0);
    return hook_free(ctx, "device_free", "d", ptr);
}

static int plug_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    (void)flags;
    return hook_alloc(ctx, "host_alloc", 'h', ptr, size);
}

static int plug_host_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    CHECK(stream != NULL && size > 0);
    return hook_free(ctx, "host_free", "h", ptr);
}

static int plug_managed_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    (void)flags;
    return hook_alloc(ctx, "managed_alloc", 'm', ptr, size);
}

static int plug_managed_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    CHECK(stream != NULL && size > 0);
    return hook_free(ctx, "managed_free", "m", ptr);
}

static int plug_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    const int32_t error = hook_called((const char *)ctx, "pin");
    (void)flags;
    if (!error) given((uint64_t)(uintptr_t)ptr, size, 'r');
    return error;
}

static int plug_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    CHECK(stream != NULL && size > 0);
    return hook_free(ctx, "unpin", "r", ptr);
}

static int plug_initialize(void *ctx, int device)
{
    CHECK_INT(device, 0);
    return hook_called((const char *)ctx, "initialize");
}

/* Drops what this table gave, and says so even if it fails. */
static int plug_reset(void *ctx)
{
    const int32_t error = hook_called((const char *)ctx, "reset");
    int32_t i;
    for (i = 0; i < item_count; i++) {
        if (strchr("dhmr", items[i].kind) != NULL) items[i].live = 0;
    }
    return error;
}

static int plug_memory_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 1000;
    *total_bytes = 1 << 20;
    return hook_called((const char *)ctx, "memory_info");
}

static int plug_defer(void *ctx, int on)
{
    CHECK(on == 0 || on == 1);
    return hook_called((const char *)ctx, "defer");
}

static int plug_ipc_handle(void *ctx, void *ptr, void *handle, void **base)
{
    memset(handle, 5, 64);
    *base = ptr;
    return hook_called((const char *)ctx, "ipc_handle");
}

/* "my_pool" or another one. */
static void fill_hooks(cai_emm_hooks *hooks, const char *name, uint32_t flags)
{
    memset(hooks, 0, sizeof *hooks);
    hooks->struct_size = (uint32_t)sizeof *hooks;
    hooks->version = CAI_EMM_VERSION;
    hooks->flags = flags;
    hooks->ctx = (void *)(uintptr_t)name;
    strcpy(hooks->name, name);
    hooks->device_alloc = plug_device_alloc;
    hooks->device_free = plug_device_free;
    hooks->initialize = plug_initialize;
    hooks->reset = plug_reset;
    hooks->memory_info = plug_memory_info;
    hooks->defer = plug_defer;
    hooks->ipc_handle = plug_ipc_handle;
    hooks->host_alloc = plug_host_alloc;
    hooks->host_free = plug_host_free;
    hooks->pin = plug_pin;
    hooks->unpin = plug_unpin;
    hooks->managed_alloc = plug_managed_alloc;
    hooks->managed_free = plug_managed_free;
}

/* ------------------------------------------------------------------ CUDA, looked over the shoulder */

static const cai_cuda *real(void) { return cai_sim_cuda(sim); }

/* From the call after `after` on, every call that has to do with work or memory fails for good. Contexts and the
 * thread can be asked for all the same (G5). */
static struct {
    int32_t error, after; /* error 0: nothing is broken */
} device;

static int64_t breaks; /* runs in which it did */

static int32_t broken(void) { return device.error && device.after-- <= 0 ? device.error : 0; }

#define BREAKS(name, parameters, arguments)                                                                  \
    static int32_t slot_##name parameters                                                                    \
    {                                                                                                        \
        const int32_t error = broken();                                                                      \
        return error ? error : real()->name arguments;                                                       \
    }

BREAKS(context_synchronize, (void *self), (self))
BREAKS(stream_context, (void *self, uint64_t stream, uint64_t *context), (self, stream, context))
BREAKS(stream_capture, (void *self, uint64_t stream, cai_cuda_capture *capture), (self, stream, capture))
BREAKS(stream_wait_event, (void *self, uint64_t stream, uint64_t event), (self, stream, event))
BREAKS(stream_synchronize, (void *self, uint64_t stream), (self, stream))
BREAKS(event_create, (void *self, uint64_t *event), (self, event))
BREAKS(event_destroy, (void *self, uint64_t event), (self, event))
BREAKS(event_record, (void *self, uint64_t event, uint64_t stream), (self, event, stream))
BREAKS(event_query, (void *self, uint64_t event), (self, event))
BREAKS(event_synchronize, (void *self, uint64_t event), (self, event))

static int32_t look_alloc(int32_t error, const uint64_t *pointer, uint64_t size, char kind)
{
    if (!error) given(*pointer, size, kind);
    return error;
}

static int32_t look_free(int32_t error, uint64_t pointer, const char *kinds)
{
    taken(pointer, kinds, error);
    return error;
}

static int32_t slot_memory_alloc(void *self, uint64_t *p, uint64_t size)
{
    const int32_t dead = broken();
    return look_alloc(dead ? dead : real()->memory_alloc(self, p, size), p, size, 'D');
}

static int32_t slot_memory_free(void *self, uint64_t p)
{
    const int32_t dead = broken();
    return look_free(dead ? dead : real()->memory_free(self, p), p, "DM");
}

static int32_t slot_memory_alloc_async(void *self, uint64_t *p, uint64_t size, uint64_t stream)
{
    const int32_t dead = broken();
    return look_alloc(dead ? dead : real()->memory_alloc_async(self, p, size, stream), p, size, 'P');
}

static int32_t slot_memory_free_async(void *self, uint64_t p, uint64_t stream)
{
    const int32_t dead = broken();
    return look_free(dead ? dead : real()->memory_free_async(self, p, stream), p, "P");
}

static int32_t slot_host_alloc(void *self, uint64_t *p, uint64_t size, uint32_t flags)
{
    const int32_t dead = broken();
    return look_alloc(dead ? dead : real()->host_alloc(self, p, size, flags), p, size, 'H');
}

static int32_t slot_host_free(void *self, uint64_t p)
{
    const int32_t dead = broken();
    return look_free(dead ? dead : real()->host_free(self, p), p, "H");
}

static int32_t slot_host_register(void *self, uint64_t p, uint64_t size, uint32_t flags)
{
    const int32_t dead = broken();
    return look_alloc(dead ? dead : real()->host_register(self, p, size, flags), &p, size, 'R');
}

static int32_t slot_host_unregister(void *self, uint64_t p)
{
    const int32_t dead = broken();
    return look_free(dead ? dead : real()->host_unregister(self, p), p, "R");
}

static int32_t slot_managed_alloc(void *self, uint64_t *p, uint64_t size, uint32_t flags)
{
    const int32_t dead = broken();
    return look_alloc(dead ? dead : real()->managed_alloc(self, p, size, flags), p, size, 'M');
}

static void look_at_cuda(void)
{
    cuda = *real();
    cuda.memory_alloc = slot_memory_alloc;
    cuda.memory_free = slot_memory_free;
    cuda.memory_alloc_async = slot_memory_alloc_async;
    cuda.memory_free_async = slot_memory_free_async;
    cuda.host_alloc = slot_host_alloc;
    cuda.host_free = slot_host_free;
    cuda.host_register = slot_host_register;
    cuda.host_unregister = slot_host_unregister;
    cuda.managed_alloc = slot_managed_alloc;
    cuda.context_synchronize = slot_context_synchronize;
    cuda.stream_context = slot_stream_context;
    cuda.stream_capture = slot_stream_capture;
    cuda.stream_wait_event = slot_stream_wait_event;
    cuda.stream_synchronize = slot_stream_synchronize;
    cuda.event_create = slot_event_create;
    cuda.event_destroy = slot_event_destroy;
    cuda.event_record = slot_event_record;
    cuda.event_query = slot_event_query;
    cuda.event_synchronize = slot_event_synchronize;
    device.error = 0;
}

/* ------------------------------------------------------------------ opening */

static void make_hooks(int32_t table)
{
    if (table == CUDA) must(cai_emm_hooks_cuda(&w.hooks, &cuda, NULL));
    else if (table == ASYNC) must(cai_emm_hooks_async(&w.hooks, &cuda, NULL, NULL));
    else fill_hooks(&w.hooks, table_names[table], table == FREES_WAIT ? (uint32_t)CAI_EMM_FREES_WAIT : 0);
}

static cai_status do_init(cai_error *err)
{
    cai_manager_options options;
    cai_status status;
    memset(&options, 0, sizeof options);
    options.alloc_fn = list_alloc;
    options.free_fn = list_free;
    options.user_data = &lists;
    status = cai_manager_init(&w.emm, &w.pool, &w.hooks, &options, err);
    w.made = status == CAI_OK;
    return status;
}

static void open_world(int32_t table, int makes)
{
    int32_t i;
    memset(&w, 0, sizeof w);
    item_count = failed_frees = first_failed_free = 0;
    hook_calls = hook_fault = 0;
    next_address = 0x700000000000u & UINTPTR_MAX;
    lists = 0;
    trace[0] = 0;
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    look_at_cuda();
    w.c1 = cai_sim_primary(sim, 0);
    w.c2 = cai_sim_primary(sim, 1);
    must(cai_sim_set_context(sim, w.c2));
    w.s[3] = cai_sim_stream_create(sim, 1);
    must(cai_sim_set_context(sim, w.c1));
    for (i = 0; i < 3; i++) w.s[i] = cai_sim_stream_create(sim, 1);
    must(cai_event_pool_init(&w.pool, &cuda, w.places, PLACES, 0, NULL));
    make_hooks(table);
    if (makes) must(do_init(NULL));
}

/* ------------------------------------------------------------------ situations */

static void nothing(void) {}

static cai_memory_handle hold(cai_memory_handle memory)
{
    CHECK(memory != 0);
    return w.held[w.held_count++] = memory;
}

static cai_memory_handle get(size_t size, uint64_t stream)
{
    cai_memory_handle memory = 0;
    must(cai_manager_alloc(&memory, &w.emm, size, 0, stream, NULL));
    return hold(memory);
}

/* Gives back the object that was got last. */
static void let(uint64_t stream) { must(cai_manager_free(&w.emm, w.held[--w.held_count], stream, NULL)); }

static void one(void) { get(100, w.s[0]); }
static void two(void) { get(100, w.s[0]); get(200, w.s[1]); }
static void initialized(void) { must(cai_manager_device_memory(&w.emm, &w.free_bytes, &w.total_bytes, NULL)); }

static void warm(void) /* the pool has an idle event */
{
    one();
    must(cai_stream_order(&w.pool, w.s[0], w.s[1], NULL));
}

static void retained(void)
{
    one();
    must(cai_manager_retain(&w.emm, w.held[0], NULL));
    hold(w.held[0]);
}

static void deferred(void) /* three frees wait, on two streams, one of them of host memory */
{
    must(cai_manager_defer_begin(&w.emm, NULL));
    one();
    let(w.s[0]);
    get(200, w.s[1]);
    let(w.s[1]);
    must(cai_manager_pinned_alloc(&w.held[w.held_count++], &w.emm, 300, 0, NULL));
    let(w.s[0]);
    must(cai_manager_defer_end(&w.emm, NULL));
    CHECK_UINT(w.emm.count.deferred, 3);
}

static void ten_and_one(void) /* one more, and all are carried out */
{
    int32_t i;
    must(cai_manager_defer_begin(&w.emm, NULL));
    for (i = 0; i < 10; i++) {
        get(100, w.s[i % 2]);
        let(w.s[i % 2]);
    }
    must(cai_manager_defer_end(&w.emm, NULL));
    CHECK_UINT(w.emm.count.deferred, 10);
    one();
}

static void scope(void)
{
    one();
    must(cai_manager_defer_begin(&w.emm, NULL));
}

static void full_scope(void)
{
    int32_t i;
    must(cai_manager_defer_begin(&w.emm, NULL));
    for (i = 0; i < 11; i++) {
        get(100, w.s[i % 2]);
        let(w.s[i % 2]);
    }
}

static void live_and_deferred(void)
{
    deferred();
    two();
    must(cai_manager_pinned_alloc(&w.held[w.held_count++], &w.emm, 300, 0, NULL));
    cai_sim_run(sim); /* a reset is for memory without pending work */
}

/* The next allocation does not fit: one free is deferred, an array waits in the keep-alive list. */
static void tight(void)
{
    const int64_t extent = 500;
    deferred();
    must(cai_manager_array(&w.array, &w.emm, CAI_INT8, 1, &extent, w.s[0], NULL));
    must(cai_keepalive_push(&w.array, &w.pool, w.s[0], NULL));
    w.capacity = in_use() + 50;
    cai_sim_set_memory(sim, 0, 800 + 50); /* without the host memory */
}

static char plain[4096];

static void a_pinned(void)
{
    must(cai_manager_pin(&w.held[w.held_count++], &w.emm, plain, sizeof plain, 0, NULL));
}

static void given_back(void)
{
    retained();
    must(cai_manager_retain(&w.emm, w.held[0], NULL));
    must(cai_manager_free(&w.emm, w.held[0], w.s[0], NULL));
}

static void last_of_two(void)
{
    retained();
    must(cai_manager_free(&w.emm, w.held[--w.held_count], w.s[0], NULL));
}

static void a_host(void) { must(cai_manager_pinned_alloc(&w.held[w.held_count++], &w.emm, 300, 0, NULL)); }

static void a_managed(void) { must(cai_manager_managed_alloc(&w.held[w.held_count++], &w.emm, 300, 1, NULL)); }

static void here_is_none(void) { must(cai_sim_set_context(sim, 0)); }
static void here_is_c2(void) { must(cai_sim_set_context(sim, w.c2)); }
static void one_none(void) { one(); here_is_none(); }
static void one_c2(void) { one(); here_is_c2(); }
static void deferred_c2(void) { deferred(); here_is_c2(); }
static void live_c2(void) { live_and_deferred(); here_is_c2(); }

/* An array of 64 bytes that owns its memory. */
static void owned(void)
{
    const int64_t extent = 64;
    must(cai_manager_array(&w.array, &w.emm, CAI_INT8, 1, &extent, w.s[0], NULL));
}

static void owned_elsewhere(void) { owned(); w.array.stream = w.s[1]; }
static void owned_none(void) { owned(); w.array.sync = CAI_SYNC_NONE; }
static void owned_unknown(void) { owned(); w.array.sync = CAI_SYNC_UNKNOWN; }
static void owned_c2(void) { owned_elsewhere(); here_is_c2(); }

static void owned_event(void)
{
    owned();
    w.array.sync = CAI_SYNC_EVENT;
    w.event = w.array.event = cai_sim_event_create(sim);
    must(cai_sim_event_record(sim, w.event, w.s[1]));
}

static void capture(uint64_t stream)
{
    must(cai_sim_capture_begin(sim, stream, CAI_SIM_MODE_THREAD_LOCAL));
    w.capturing = stream;
}

static void owned_captured(void) { owned_elsewhere(); capture(w.s[1]); }
static void owned_all_captured(void) { owned(); capture(w.s[0]); }

static void owned_by_another_thread(void)
{
    const int64_t extent = 64;
    cai_sim_host_thread(sim, 7);
    must(cai_sim_set_context(sim, w.c1));
    must(cai_manager_array(&w.array, &w.emm, CAI_INT8, 1, &extent, CAI_STREAM_PER_THREAD, NULL));
    cai_sim_host_thread(sim, 0);
}

static void borrowed(void)
{
    const int64_t extent = 20;
    one();
    must(cai_array_init(&w.array, CAI_INT8, 1, &extent, NULL, cai_manager_pointer(&w.emm, w.held[0]), NULL));
    w.array.sync = CAI_SYNC_NONE;
}

/* ------------------------------------------------------------------ functions under test */

static cai_status do_alloc(cai_error *err) { return cai_manager_alloc(&w.out, &w.emm, 100, 0, w.s[0], err); }
static cai_status do_align(cai_error *err) { return cai_manager_alloc(&w.out, &w.emm, 100, 4096, w.s[0], err); }
static cai_status do_large(cai_error *err) { return cai_manager_alloc(&w.out, &w.emm, 500, 0, w.s[0], err); }
static cai_status do_host_alloc(cai_error *err) { return cai_manager_pinned_alloc(&w.out, &w.emm, 100, 2, err); }
static cai_status do_managed(cai_error *err) { return cai_manager_managed_alloc(&w.out, &w.emm, 100, 1, err); }
static cai_status do_pin(cai_error *err) { return cai_manager_pin(&w.out, &w.emm, plain, 4096, 1, err); }
static cai_status do_free(cai_error *err) { return cai_manager_free(&w.emm, w.held[0], w.s[0], err); }
static cai_status do_free_else(cai_error *err) { return cai_manager_free(&w.emm, w.held[0], w.s[1], err); }
static cai_status do_free_legacy(cai_error *err) { return cai_manager_free(&w.emm, w.held[0], 1, err); }
static cai_status do_free_c2(cai_error *err) { return cai_manager_free(&w.emm, w.held[0], w.s[3], err); }
static cai_status do_flush(cai_error *err) { return cai_manager_flush(&w.emm, err); }
static cai_status do_defer_begin(cai_error *err) { return cai_manager_defer_begin(&w.emm, err); }
static cai_status do_defer_end(cai_error *err) { return cai_manager_defer_end(&w.emm, err); }
static cai_status do_reset(cai_error *err) { return cai_manager_reset(&w.emm, err); }
static cai_status do_ipc(cai_error *err) { return cai_manager_ipc_handle(&w.emm, w.held[0], &w.ipc, err); }
static cai_status do_own(cai_error *err) { return cai_manager_own(&w.array, &w.emm, w.held[0], err); }

static cai_status do_memory_info(cai_error *err)
{
    return cai_manager_device_memory(&w.emm, &w.free_bytes, &w.total_bytes, err);
}

static cai_status do_array(cai_error *err)
{
    const int64_t shape[2] = {5, 7};
    return cai_manager_array(&w.array, &w.emm, CAI_FLOAT32, 2, shape, w.s[0], err);
}

static cai_status do_release(cai_error *err)
{
    (void)err;
    cai_array_release(&w.array);
    return CAI_OK;
}

static cai_status do_destroy(cai_error *err)
{
    const cai_status status = cai_manager_destroy(&w.emm, err);
    w.gone = status == CAI_OK || status == CAI_ERR_CUDA;
    return status;
}

/* ------------------------------------------------------------------ scenarios */

enum {
    ALLOCATES = 1 << 0, /* w.out is a handle after success, untouched otherwise */
    FREES = 1 << 1,     /* error 4 is success */
    RELEASES = 1 << 2,  /* nothing is told */
    RESETS = 1 << 3,
    DESTROYS = 1 << 4,
    INITS = 1 << 5,
    ASKS = 1 << 6,      /* memory_info is what is asked for */
    RETRIES = 1 << 7,   /* out of memory at first; what fails to free is not told */
    MAKES = 1 << 8,     /* w.array owns memory after success */
    CARRIES_OUT = 1 << 9
};

typedef struct scenario {
    const char *function, *situation;
    void (*prepare)(void);
    cai_status (*act)(cai_error *err);
    uint32_t flags, tables;
} scenario;

static const scenario scenarios[] = {
    {"cai_manager_init", "", nothing, do_init, INITS, ALL},
    {"cai_manager_device_memory", "first use", nothing, do_memory_info, ASKS, ALL},
    {"cai_manager_device_memory", "from c2", here_is_c2, do_memory_info, ASKS, ALL},
    {"cai_manager_alloc", "first use", nothing, do_alloc, ALLOCATES, ALL},
    {"cai_manager_alloc", "warm", one, do_alloc, ALLOCATES, ALL},
    {"cai_manager_alloc", "aligned to 4096", one, do_align, ALLOCATES, ALL},
    {"cai_manager_alloc", "no context", one_none, do_alloc, ALLOCATES, ALL},
    {"cai_manager_alloc", "another context", one_c2, do_alloc, ALLOCATES, ALL},
    {"cai_manager_alloc", "out of memory at first", tight, do_large, ALLOCATES | RETRIES, ON_CUDA | PLUGINS},
    {"cai_manager_pinned_alloc", "", initialized, do_host_alloc, ALLOCATES, ALL},
    {"cai_manager_pinned_alloc", "another context", one_c2, do_host_alloc, ALLOCATES, ALL},
    {"cai_manager_managed_alloc", "", initialized, do_managed, ALLOCATES, ALL},
    {"cai_manager_pin", "", initialized, do_pin, ALLOCATES, ALL},
    {"cai_manager_free", "same stream", one, do_free, FREES, ALL},
    {"cai_manager_free", "another stream", one, do_free_else, FREES, ALL},
    {"cai_manager_free", "another stream, warm", warm, do_free_else, FREES, ALL},
    {"cai_manager_free", "legacy stream", one, do_free_legacy, FREES, ALL},
    {"cai_manager_free", "a stream of c2", one, do_free_c2, FREES, ALL},
    {"cai_manager_free", "not the last", retained, do_free_else, FREES, ALL},
    {"cai_manager_free", "not the first", given_back, do_free_else, FREES, ALL},
    {"cai_manager_free", "the last", last_of_two, do_free_else, FREES, ALL},
    {"cai_manager_free", "no context", one_none, do_free, FREES, ALL},
    {"cai_manager_free", "another context", one_c2, do_free_else, FREES, ALL},
    {"cai_manager_free", "the eleventh", ten_and_one, do_free, FREES | CARRIES_OUT, ALL},
    {"cai_manager_free", "in a scope", scope, do_free_else, FREES, ALL},
    {"cai_manager_free", "pinned by pin", a_pinned, do_free, FREES, ALL},
    {"cai_manager_free", "host", a_host, do_free, FREES, ALL},
    {"cai_manager_free", "managed", a_managed, do_free, FREES, ALL},
    {"cai_manager_flush", "three", deferred, do_flush, FREES | CARRIES_OUT, ALL},
    {"cai_manager_flush", "three, another context", deferred_c2, do_flush, FREES | CARRIES_OUT, ALL},
    {"cai_manager_defer_begin", "", one, do_defer_begin, 0, PLUGINS},
    {"cai_manager_defer_end", "under the limit", scope, do_defer_end, FREES, PLUGINS},
    {"cai_manager_defer_end", "over the limit", full_scope, do_defer_end, FREES | CARRIES_OUT, ALL},
    {"cai_manager_reset", "", live_and_deferred, do_reset, FREES | RESETS, ALL},
    {"cai_manager_reset", "another context", live_c2, do_reset, FREES | RESETS, ALL},
    {"cai_manager_destroy", "three deferred", deferred, do_destroy, FREES | CARRIES_OUT | DESTROYS, ALL},
    {"cai_manager_destroy", "another context", deferred_c2, do_destroy, FREES | CARRIES_OUT | DESTROYS, ALL},
    {"cai_manager_ipc_handle", "", one, do_ipc, 0, ON_CUDA | PLUGINS},
    {"cai_manager_ipc_handle", "another context", one_c2, do_ipc, 0, ON_CUDA | PLUGINS},
    {"cai_manager_array", "", nothing, do_array, MAKES, ALL},
    {"cai_manager_own", "and release", borrowed, do_own, MAKES, PLUGINS | BUILT_IN},
    {"release", "stream", owned, do_release, RELEASES, ALL},
    {"release", "another stream", owned_elsewhere, do_release, RELEASES, ALL},
    {"release", "none", owned_none, do_release, RELEASES, ALL},
    {"release", "unknown", owned_unknown, do_release, RELEASES, ALL},
    {"release", "event", owned_event, do_release, RELEASES, ALL},
    {"release", "another context", owned_c2, do_release, RELEASES, ALL},
    {"release", "its stream captures", owned_captured, do_release, RELEASES, ALL},
    {"release", "all capture", owned_all_captured, do_release, RELEASES, ALL},
    {"release", "another thread's", owned_by_another_thread, do_release, RELEASES, ALL}};

enum { SCENARIOS = (int)(sizeof scenarios / sizeof scenarios[0]) };

/* ------------------------------------------------------------------ logs */

static const char *const operations[OPERATIONS] = {
    "context_current", "context_push", "context_pop", "context_synchronize", "context_device",
    "stream_context", "stream_capture", "stream_wait_event", "stream_synchronize", "event_create",
    "event_destroy", "event_record", "event_query", "event_synchronize", "capture_mode",
    "pointer_range", "memory_alloc", "memory_free", "memory_alloc_async", "memory_free_async",
    "host_alloc", "host_free", "host_register", "host_unregister", "managed_alloc",
    "memory_info", "ipc_export", "hook device_alloc", "hook device_free", "hook initialize",
    "hook reset", "hook memory_info", "hook defer", "hook ipc_handle", "hook host_alloc",
    "hook host_free", "hook pin", "hook unpin", "hook managed_alloc", "hook managed_free", "context_id"};

#include "fault_log.h"

static int is_hook(const char *line) { return strncmp(line, "hook ", 5) == 0; }

/* ------------------------------------------------------------------ one run */

typedef struct fault {
    int32_t call;      /* the one that fails, from 1; 0: none */
    int32_t error;
    int32_t of_hooks;  /* 1: of the hooks of the test, counted alone; else of the simulation */
    int32_t storm;     /* from it on all calls fail, at most 16 of the simulation */
    int32_t after[2];  /* so many calls of the simulation and of hooks came before it */
    const char *operation;
    const char *line;  /* in the clean trace */
} fault;

static int64_t injections, runs, leaks, context_changes, error_changes, mode_changes;
static int64_t cells[SCENARIOS][OPERATIONS];
static cai_error err;

static int named(const fault *f, const char *name) { return strcmp(f->operation, name) == 0; }

static int is_alloc(const fault *f)
{
    return named(f, "memory_alloc") || named(f, "memory_alloc_async") || named(f, "host_alloc") ||
           named(f, "host_register") || named(f, "managed_alloc") || named(f, "hook device_alloc") ||
           named(f, "hook host_alloc") || named(f, "hook pin") || named(f, "hook managed_alloc");
}

static int gives_back(const scenario *sc) { return strcmp(sc->function, "cai_manager_free") == 0; }

static int enters(const fault *f)
{
    return named(f, "context_current") || named(f, "context_id") || named(f, "context_push") ||
           named(f, "context_pop");
}

/* Is it an error that ends all work of a context, where a free asks or waits? */
static int ends_work(const scenario *sc, const fault *f)
{
    const int dead = f->error == 700 || f->error == 709 || f->error == 719;
    return dead && gives_back(sc) && (named(f, "stream_capture") || named(f, "stream_synchronize"));
}

/* Is it a call for the events of the references that were given back? If it fails, the host waits. */
static int joins(const scenario *sc, const fault *f)
{
    if (!gives_back(sc)) return 0;
    if (enters(f)) return f->call > 1 && !strcmp(sc->situation, "a stream of c2");
    return named(f, "stream_context") || named(f, "event_create") || named(f, "event_record") ||
           named(f, "stream_wait_event") || named(f, "event_destroy");
}

/* Is it a call with the event of a deferred free, which is carried out? */
static int follows(const scenario *sc, const fault *f)
{
    if (gives_back(sc) && strcmp(sc->situation, "the eleventh") != 0) return 0;
    return named(f, "event_destroy") || !strncmp(f->line, "stream_wait_event legacy", 24);
}

/* Does the error say that the manager's context is no more? Its memory is gone then, and no hook is called. */
static int says_gone(const scenario *sc, const fault *f)
{
    return sc->flags & (FREES | RELEASES) && (f->error == 201 || f->error == 709) &&
           (named(f, "context_id") || named(f, "context_push"));
}

/* The status that a failure must have; -1: it depends. CAI_ERR_CAPTURE of a function that frees says that
 * nothing was done. */
static cai_status expected(const scenario *sc, const fault *f, int32_t table)
{
    const int asked = named(f, "memory_info") || named(f, "hook memory_info");
    const int last = !strstr(next_line(f->line), f->operation);
    if (!f->call || sc->flags & RELEASES) return CAI_OK;
    if (f->storm) return -1;
    if (f->error == 4 && sc->flags & FREES) return CAI_OK;
    if (asked && !(sc->flags & ASKS && last)) return CAI_OK; /* it is no limit then */
    if (f->error == 2 && is_alloc(f))                        /* tried again, up to two times */
        return lines_of(clean, f->operation, 0) > 2 && last ? CAI_ERR_OUT_OF_MEMORY : CAI_OK;
    if (says_gone(sc, f) || joins(sc, f)) return CAI_OK;
    if (follows(sc, f)) return CAI_OK;
    if (ends_work(sc, f)) return table > ASYNC ? CAI_OK : -1; /* the built-in hooks make the same calls */
    if (sc->flags & RETRIES && !is_alloc(f)) return -1;
    if (sc->flags & RESETS && enters(f) && !named(f, "context_pop")) return CAI_OK;
    if (sc->flags & (CARRIES_OUT | RESETS) && named(f, "stream_capture")) return -1; /* tried, or stays */
    if (named(f, "capture_mode") && (f->error == 2 || table == ASYNC)) return -1; /* in a hook, or not */
    if (named(f, "stream_capture") && table == ASYNC) return -1; /* the hook asks, too */
    if (f->error == 900 && named(f, "context_id")) return -1; /* CAI_ERR_CAPTURE, or of a push */
    if (f->error == 900 && named(f, "stream_capture")) return CAI_ERR_CAPTURE;
    return CAI_ERR_CUDA;
}

/* Does the message name what failed: the call, or the hook and its table? */
static int names_it(const fault *f, int32_t table)
{
    char start[100];
    if (f->of_hooks) sprintf(start, "%.20s of %.20s: CUDA error %d (", f->operation + 5,
                             strstr(f->line, " of more\n") == strchr(f->line + 5, ' ') ? "more"
                                                                                      : table_names[table],
                             (int)f->error);
    else sprintf(start, "%.30s: CUDA error %d (", f->operation, (int)f->error);
    if (strncmp(err.message, start, strlen(start)) == 0) return 1;
    if (named(f, "context_id") && strncmp(err.message, "context_push: CUDA", 18) == 0) return 1; /* before it */
    if (f->of_hooks || table > ASYNC) return 0;
    sprintf(start, " of %.20s: CUDA error %d (", table_names[table], (int)f->error);
    return strstr(err.message, start) != NULL;
}

static void check_error(const scenario *sc, const fault *f, int32_t table, cai_status status, int told)
{
    const cai_status wanted = expected(sc, f, table);
    cai_error untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    if (wanted >= 0) CHECK_INT(status, wanted);
    if (!told) return;
    if (status == CAI_OK) {
        CHECK_BYTES(&err, &untouched, sizeof untouched);
        return;
    }
    CHECK_INT(err.code, status);
    if (sc->flags & DESTROYS && strstr(err.message, "which is capturing")) return; /* as 900 says */
    CHECK_INT(err.native, status == CAI_ERR_OUT_OF_MEMORY ? 2 : f->error);
    CHECK_INT(err.entry, CAI_ENTRY_NONE);
    if (f->storm) return;
    CHECK_INT(err.index, -1);
    if (status == CAI_ERR_OUT_OF_MEMORY) {
        CHECK(strstr(err.message, table_names[table]) != NULL);
        CHECK(strstr(err.message, ": out of memory for 500 bytes") != NULL);
        return;
    }
    if (!names_it(f, table)) CHECK_STR(err.message, f->operation);
}

static int32_t mode_here(void)
{
    int32_t mode = 0, before;
    must(cuda.capture_mode(cuda.self, &mode));
    before = mode;
    must(cuda.capture_mode(cuda.self, &mode));
    return before;
}

/* What the thread had before, it has again, unless what restores it failed as well. */
static void check_thread(uint64_t context, int32_t last, int ended)
{
    const int32_t pops = lines_of(text, "context_pop", 1), currents = lines_of(text, "context_current", 1);
    if (cai_sim_last_error(sim) != last) error_changes++;
    CHECK_INT(cai_sim_last_error(sim), last);
    if (pops > 1 || (pops && currents) || lines_of(text, "capture_mode", 1) > 1) return;
    if (cai_sim_current(sim) != context) context_changes++;
    CHECK_UINT(cai_sim_current(sim), context);
    if (ended) return; /* the process ends: nothing is restored */
    if (mode_here() != 0) mode_changes++;
    CHECK_INT(mode_here(), 0);
}

/* After a storm: what could not be restored. */
static void repair_thread(uint64_t context)
{
    int32_t mode = 0, i;
    for (i = 0; i < 2 && cai_sim_current(sim) != context; i++) must(cuda.context_pop(cuda.self));
    CHECK_UINT(cai_sim_current(sim), context);
    must(cuda.capture_mode(cuda.self, &mode));
}

/* ------------------------------------------------------------------ the books */

static char marked[ITEMS];

/* Memory that is in use: it was given, and nobody has tried to free it. */
static void mark(uint64_t address)
{
    int32_t i;
    for (i = item_count - 1; i >= 0; i--) {
        const item *it = &items[i];
        if (address >= it->address && address - it->address < it->size && it->live && !it->tried) break;
    }
    if (CHECK(i >= 0)) marked[i] = 1;
}

static void mark_handle(cai_memory_handle memory)
{
    const void *pointer = cai_manager_pointer(&w.emm, memory);
    if (memory && pointer) mark((uint64_t)(uintptr_t)pointer);
}

static void mark_all(void)
{
    int32_t i;
    memset(marked, 0, sizeof marked);
    for (i = 0; i < w.held_count; i++) mark_handle(w.held[i]);
    mark_handle(w.out);
    if (w.array.release) mark(w.array.data);
    for (i = w.pool.first; i >= 0; i = w.places[i].next) mark(w.places[i].data);
}

/* A free of CUDA's tables may fail before it frees: the mode, the question for a capture, the wait. */
static int may_refuse(const fault *f, int32_t table)
{
    return table <= ASYNC &&
           (named(f, "capture_mode") || named(f, "stream_capture") || named(f, "stream_synchronize"));
}

/* Memory may be left where nothing could be called any more, or where a free refused. */
static int may_leak(const scenario *sc, const fault *f, int32_t table)
{
    if (!f->call) return 0;
    if (f->storm) return 1;
    if (sc->flags & (FREES | RELEASES | RETRIES) && f->error == 4) return 1;
    if (says_gone(sc, f)) return 1;
    if (sc->flags & (RESETS | RELEASES) && enters(f)) return 1;
    return may_refuse(f, table);
}

/* How much memory is left that the manager does not know of. */
static int64_t check_books(const scenario *sc, const fault *f, int32_t table)
{
    cai_manager_count count;
    uint64_t live = 0, live_bytes = 0, rest = 0, rest_bytes = 0;
    int64_t left;
    int32_t i;
    cai_manager_counts(&w.emm, &count);
    mark_all();
    for (i = 0; i < item_count; i++) {
        if (!items[i].live || items[i].tried) continue;
        live += marked[i] != 0;
        live_bytes += marked[i] ? items[i].size : 0;
        rest += !marked[i];
        rest_bytes += marked[i] ? 0 : items[i].size;
    }
    CHECK_UINT(count.live, live);
    CHECK_UINT(count.live_bytes, live_bytes);
    left = (int64_t)(rest - count.deferred);
    CHECK(may_leak(sc, f, table) ? left >= 0 : left == 0);
    if (left == 0) CHECK_UINT(count.deferred_bytes, rest_bytes);
    i = (int32_t)count.failed - failed_frees;
    /* In a storm a hook of the built-in tables may have failed to free what it could not give. */
    if (f->storm) CHECK(i >= -(table <= ASYNC) && i <= 16);
    else if (may_refuse(f, table)) CHECK(i == 0 || i == 1);
    else CHECK_INT(i, 0);
    /* After a wait that failed nothing is freed, and the count says so; in a dead context no work is left. */
    if (!f->storm && f->error != 4 && may_refuse(f, table) && !named(f, "capture_mode"))
        CHECK_INT(left, f->error == 700 || f->error == 709 || f->error == 719 ? 0 : i);
    if (failed_frees && i >= 0) CHECK_INT(count.first_failure, first_failed_free);
    CHECK_INT(w.emm.guard, 0);
    CHECK_INT(w.pool.guard, 0);
    return left;
}

static int32_t references_of(cai_memory_handle memory)
{
    cai_memory_object info;
    return memory && !cai_manager_describe(&w.emm, memory, &info, NULL) ? (int32_t)info.references : 0;
}

/* Success takes a reference. These failures promise that it was kept; the others can be told by asking. */
static void check_kept(cai_status status)
{
    const int32_t before = w.held_count, now = references_of(w.held[0]);
    if (status == CAI_OK) CHECK_INT(now, before - 1);
    else if (status == CAI_ERR_CUDA) CHECK(now == before || now == before - 1);
    else CHECK_INT(now, before);
}

static void check_result(const scenario *sc, cai_status status)
{
    if (sc->flags & ALLOCATES) CHECK_INT(w.out != 0, status == CAI_OK);
    if (sc->flags & MAKES) CHECK_INT(w.array.release != NULL, status == CAI_OK);
    if (sc->flags & RELEASES) {
        CHECK(w.array.release == NULL);
        CHECK_UINT(w.emm.count.live, 0); /* nobody could give it back */
    }
    if (gives_back(sc)) check_kept(status);
    if (sc->act == do_defer_begin) CHECK_INT(w.emm.defer_depth, status == CAI_OK);
    if (sc->act == do_defer_end) CHECK_INT(w.emm.defer_depth, 0);
}

/* ------------------------------------------------------------------ afterwards */

static void give_back(cai_memory_handle memory, uint64_t stream)
{
    cai_memory_object info;
    while (memory && cai_manager_describe(&w.emm, memory, &info, NULL) == CAI_OK)
        must(cai_manager_free(&w.emm, memory, stream, NULL));
}

/* The manager goes on as if nothing had been; then all is given back. */
static void use_and_close(void)
{
    cai_memory_handle memory = 0;
    int32_t i;
    must(cai_manager_alloc(&memory, &w.emm, 64, 0, w.s[2], NULL));
    CHECK(cai_manager_pointer(&w.emm, memory) != NULL);
    give_back(memory, w.s[2]);
    while (w.emm.defer_depth) must(cai_manager_defer_end(&w.emm, NULL));
    for (i = 0; i < w.held_count; i++) give_back(w.held[i], w.s[0]);
    give_back(w.out, w.s[0]);
    cai_array_release(&w.array);
    must(cai_keepalive_drain(&w.pool, NULL));
    CHECK_INT(cai_manager_list(&w.emm, NULL, 0), 0);
    must(cai_manager_flush(&w.emm, NULL));
    CHECK_UINT(w.emm.count.live, 0);
    CHECK_UINT(w.emm.count.deferred, 0);
    must(cai_manager_destroy(&w.emm, NULL));
}

static int ends_context(int32_t error)
{
    return error == 4 || error == 700 || error == 709 || error == 719;
}

/* The events in a report of leaks, which begins with them: "events: e1 e2; ..." */
static int32_t events_in(const char *left)
{
    int32_t count = 0;
    if (strncmp(left, "events:", 7) != 0) return 0;
    for (left += 7; *left && *left != ';'; left++) count += *left == ' ';
    return count;
}

/* Events and memory that CUDA did not destroy, and nothing else, are left in the simulation. */
static void check_leaks(const scenario *sc, const fault *f, int32_t table)
{
    char left[400];
    int32_t i, n, lost = lines_of(text, "event_destroy", 1);
    for (i = 0; i < item_count; i++) {
        if (!items[i].live) continue;
        if (!items[i].tried) CHECK(may_leak(sc, f, table));
        if (strchr("DPHMR", items[i].kind) != NULL) lost++;
    }
    n = cai_sim_leaks(sim, left, sizeof left);
    /* no call is made on an event whose context has ended, or may have, and no pop is left in a storm */
    if (n > lost && (ends_context(f->error) || named(f, "context_id") || says_gone(sc, f) || (sc->flags & RESETS && enters(f))))
        lost += n - lost < events_in(left) ? n - lost : events_in(left);
    if (f->storm && n > lost && strstr(left, "context stack: 1")) lost++;
    leaks += n - lost;
    if (n != lost) CHECK_STR(left, "");
    CHECK_INT(lists, 0);
}

/* Nothing has spoiled it, unless there was no other way than to wait for the whole context. */
static void end_capture(void)
{
    int32_t error;
    if (!w.capturing) return;
    error = cai_sim_capture_end(sim, w.capturing, NULL);
    if (!lines_of(text, "context_synchronize", 0)) CHECK_INT(error, 0);
    else CHECK(error == 0 || error == 901);
}

static void finish(const scenario *sc, const fault *f, int32_t table)
{
    int32_t i;
    must(cai_sim_set_context(sim, w.c1));
    end_capture();
    cai_sim_clear_error(sim);
    w.capacity = 0;
    cai_sim_set_memory(sim, 0, (uint64_t)1 << 40);
    if (sc->flags & INITS && !w.made) must(do_init(NULL));
    if (!w.gone) use_and_close();
    must(cai_event_pool_destroy(&w.pool, NULL));
    if (w.event) must(cai_sim_event_destroy(sim, w.event));
    cai_sim_run(sim);
    for (i = 0; i < STREAMS; i++) must(cai_sim_stream_destroy(sim, w.s[i]));
    check_leaks(sc, f, table);
}

/* On failure no output is touched. */
static void check_untouched(const scenario *sc, cai_status status)
{
    cai_array untouched;
    if (!status) return;
    if (sc->flags & ALLOCATES) CHECK_UINT(w.out, 0x5a5a5a5a5a5a5a5au);
    w.out = 0;
    if (sc->act != do_array) return;
    memset(&untouched, 0x5a, sizeof untouched);
    CHECK_BYTES(&w.array, &untouched, sizeof untouched);
    w.array.release = NULL;
}

static void inject(const fault *f)
{
    int32_t i;
    hook_calls = 0;
    hook_fault = f->storm ? f->after[1] + 1 : f->of_hooks ? f->call : 0;
    hook_error = f->error;
    hook_storm = f->storm;
    if (f->call && !f->of_hooks && !f->storm) CHECK_INT(cai_sim_fail(sim, f->call, f->error), 1);
    for (i = 1; f->storm && i <= 16; i++) CHECK_INT(cai_sim_fail(sim, f->after[0] + i, f->error), 1);
}

/* told: with an error struct; otherwise without, and with an error of CUDA's pending. */
static void run_once(const scenario *sc, int32_t table, const fault *f, int told)
{
    char note[200];
    cai_status status;
    uint64_t context;
    int32_t last;
    sprintf(note, "%s, %s, %s: call %d (%s) fails with %d%s", sc->function, sc->situation, table_names[table],
            (int)f->call, f->operation, (int)f->error, f->storm ? ", and all after it" : "");
    cai_test_note(note);
    open_world(table, !(sc->flags & INITS));
    if (!told) CHECK(cai_sim_event_destroy(sim, 0) != 0);
    sc->prepare();
    context = cai_sim_current(sim);
    last = cai_sim_last_error(sim);
    CHECK_INT(last == 0, told);
    trace_take();
    trace[0] = 0;
    inject(f);
    memset(&err, 0x5a, sizeof err);
    w.out = sc->flags & ALLOCATES ? 0x5a5a5a5a5a5a5a5au : 0;
    if (sc->act == do_array) memset(&w.array, 0x5a, sizeof w.array);
    status = sc->act(told ? &err : NULL);
    check_untouched(sc, status);
    trace_take();
    strcpy(text, trace);
    if (!f->storm) CHECK_INT(cai_sim_faults(sim), 0);
    if (!f->storm) CHECK(hook_calls >= hook_fault);
    cai_sim_faults_clear(sim);
    if (sc->flags & DESTROYS && enters(f) && !named(f, "context_pop") && f->error != 4 && !says_gone(sc, f)) w.gone = 0;
    check_error(sc, f, table, status, told);
    check_thread(context, last, f->error == 4);
    if (f->storm || f->error == 4) repair_thread(context);
    if (!w.gone && (w.made || !(sc->flags & INITS))) {
        check_books(sc, f, table);
        check_result(sc, status);
    }
    hook_fault = hook_storm = 0;
    runs++;
    finish(sc, f, table);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ a device that is broken for good */

/* A free returns an error of its hook, or none. The reference is gone in any case. */
static void give_back_broken(cai_memory_handle memory)
{
    int32_t left = references_of(memory);
    for (; left > 0; left--) {
        const cai_status status = cai_manager_free(&w.emm, memory, w.s[0], NULL);
        CHECK(status == CAI_OK || status == CAI_ERR_CUDA);
        CHECK_INT(references_of(memory), left - 1);
    }
}

/* All is given back, once, and the manager goes. */
static void close_broken(void)
{
    int32_t i;
    for (i = 0; w.emm.defer_depth && i < 9; i++) (void)!cai_manager_defer_end(&w.emm, NULL);
    cai_array_release(&w.array);
    for (i = 0; i < w.held_count; i++) give_back_broken(w.held[i]);
    give_back_broken(w.out);
    (void)!cai_keepalive_drain(&w.pool, NULL);
    CHECK_INT(cai_manager_list(&w.emm, NULL, 0), 0);
    CHECK_UINT(w.emm.count.live, 0);
    (void)!cai_manager_destroy(&w.emm, NULL); /* the error of a hook */
    CHECK(w.emm.options.alloc_fn == NULL);
    CHECK_INT(lists, 0);
    for (i = 0; i < item_count; i++) CHECK(!items[i].live || items[i].tried);
    if (!CHECK(cai_event_pool_destroy(&w.pool, NULL) != CAI_ERR_PENDING)) leaks++; /* nothing waits there */
}

/* The device breaks before the call after `after`, in the function or behind it. False: it was behind. */
static int run_broken(const scenario *sc, int32_t table, int32_t error, int32_t after)
{
    char note[200];
    int inside;
    sprintf(note, "%s, %s, %s: broken by %d after %d calls", sc->function, sc->situation, table_names[table],
            (int)error, (int)after);
    cai_test_note(note);
    open_world(table, !(sc->flags & INITS));
    sc->prepare();
    device.error = error;
    device.after = after;
    if (sc->act(NULL)) w.out = 0;
    inside = device.after < 0;
    device.after = 0;
    if (w.capturing) (void)cai_sim_capture_end(sim, w.capturing, NULL);
    (void)cai_sim_set_context(sim, w.c1);
    if (w.made && w.emm.options.alloc_fn) close_broken();
    runs++;
    cai_sim_destroy(sim);
    return inside;
}

static void break_scenario(int32_t index, int32_t table)
{
    static const int32_t dead[] = {700, 719};
    int32_t i, after;
    for (i = 0; i < 2; i++)
        for (after = 0; run_broken(&scenarios[index], table, dead[i], after); after++) breaks++;
}

/* ------------------------------------------------------------------ all runs */

static void run_line(int32_t index, int32_t table, fault *f)
{
    int32_t i, told;
    f->operation = operations[operation_of(f->line)];
    for (i = 0; i < ERRORS; i++) {
        f->error = errors[i];
        for (told = 0; told < 2; told++) run_once(&scenarios[index], table, f, told);
        cells[index][operation_of(f->line)] += 2;
        injections += 2;
    }
    f->storm = 1;
    for (i = 0; i < ERRORS; i++) {
        f->error = errors[i];
        run_once(&scenarios[index], table, f, 1);
    }
    f->storm = 0;
}

static void run_scenario(int32_t index, int32_t table)
{
    const scenario *sc = &scenarios[index];
    fault f = {0, 0, 0, 0, {0, 0}, "", ""};
    const char *line;
    int32_t calls[2] = {0, 0};
    run_once(sc, table, &f, 1);
    strcpy(clean, text);
    run_once(sc, table, &f, 0);
    CHECK_STR(text, clean);
    for (line = clean; *line; line = next_line(line)) {
        f.line = line;
        f.of_hooks = is_hook(line);
        f.after[0] = calls[0];
        f.after[1] = calls[1];
        f.call = ++calls[f.of_hooks];
        run_line(index, table, &f);
    }
}

static void print_row(int32_t first, int32_t end, int32_t from, int32_t to)
{
    int32_t i, k;
    printf("%-22s", scenarios[first].function);
    for (k = from; k < to; k++) {
        int64_t sum = 0;
        for (i = first; i < end; i++) sum += cells[i][k];
        if (sum) printf(" %4ld", (long)sum);
        else printf("    .");
    }
    printf("\n");
}

static char letter(int32_t operation)
{
    return (char)(operation < 26 ? 'a' + operation : 'A' + operation - 26);
}

static void print_part(int32_t from, int32_t to)
{
    int32_t i, first = 0;
    printf("\n%-22s", "failures injected");
    for (i = from; i < to; i++) printf("    %c", letter(i));
    printf("\n");
    for (i = 1; i <= SCENARIOS; i++) {
        if (i < SCENARIOS && strcmp(scenarios[i].function, scenarios[first].function) == 0) continue;
        print_row(first, i, from, to);
        first = i;
    }
}

static void print_table(void)
{
    int32_t i;
    for (i = 0; i < OPERATIONS; i++)
        printf("%s%c %s", i % 5 ? "  " : i ? "\n" : "", letter(i), operations[i]);
    printf("\n");
    print_part(0, 15);
    print_part(15, 27);
    print_part(27, OPERATIONS);
    printf("\n%ld injections in %d scenarios over 4 tables, leaks %ld, context changes %ld, last-error "
           "changes %ld, capture-mode changes %ld\n",
           (long)injections, (int)SCENARIOS, (long)leaks, (long)context_changes, (long)error_changes,
           (long)mode_changes);
    printf("%ld runs, with storms in which all calls fail from one on; in %ld the device broke for good\n",
           (long)runs, (long)breaks);
}

static void run(void)
{
    int32_t i, table;
    for (i = 0; i < SCENARIOS; i++) {
        for (table = 0; table < TABLES; table++) {
            if (!(scenarios[i].tables >> table & 1)) continue;
            run_scenario(i, table);
            break_scenario(i, table);
        }
    }
    cai_test_note("");
    print_table();
    CHECK_INT(leaks | context_changes | error_changes | mode_changes, 0);
}

CAI_TEST_MAIN(run)
