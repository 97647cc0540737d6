/* test_emm.c - cai_manager.h: every function on its own, over hooks of the test and on the simulated CUDA.
 * SPDX-License-Identifier: MIT
 *
 * The hooks of the test write each call into `trace`, between the lines of the simulation's log, so that one
 * text tells the order of all calls. What happens when one of them fails: test_emm_faults.c. */
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

enum { BLOCKS = 96, STREAMS = 4, PLACES = 8, TRACE = 60000, MANY = 100000 };

static cai_sim *sim; /* NULL: a test without CUDA */
static cai_cuda cuda; /* a copy of the simulation's table, so that tests may take slots out */
static cai_event_pool pool;
static cai_keepalive places[PLACES];
static cai_manager emm;
static cai_error err;
static uint64_t c1, c2;
static uint64_t s1, s2, s3, s4; /* three streams of c1, one of c2 */
static char trace[TRACE];

/* ------------------------------------------------------------------ the text of all calls */

static void trace_add(const char *text)
{
    const size_t used = strlen(trace), more = strlen(text);
    if (used + more >= sizeof trace) {
        printf("the trace is full\n");
        exit(2);
    }
    memcpy(trace + used, text, more + 1);
}

/* Moves what the simulation has logged. */
static void trace_take(void)
{
    if (!sim) return;
    trace_add(cai_sim_log(sim));
    cai_sim_log_clear(sim);
}

static void trace_clear(void)
{
    trace_take();
    trace[0] = 0;
}

static char said[400];

static void say_it(void)
{
    trace_take();
    trace_add(said);
}

/* printf into the trace. */
#define SAY(...) (sprintf(said, __VA_ARGS__), say_it())

/* The calls since the last time. */
static void logged(const char *expected)
{
    trace_take();
    CHECK_STR(trace, expected);
    trace[0] = 0;
}

/* How many lines since the last time begin so. */
static int32_t lines(const char *start)
{
    const char *at = trace;
    int32_t n = 0;
    trace_take();
    while (*at) {
        n += strncmp(at, start, strlen(start)) == 0;
        at = strchr(at, '\n');
        at = at ? at + 1 : "";
    }
    return n;
}

static const char *stream_name(uint64_t stream)
{
    if (stream == s1) return "s1";
    if (stream == s2) return "s2";
    if (stream == s3) return "s3";
    return stream == 1 ? "legacy" : stream == 2 ? "per_thread" : stream == 0 ? "none" : "unknown";
}

/* ------------------------------------------------------------------ refusals */

static void poison(void) { memset(&err, 0x5a, sizeof err); }

static void check_untouched(const char *file, int line)
{
    cai_error untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    cai_test_true(file, line, "err is untouched", memcmp(&err, &untouched, sizeof err) == 0);
}

/* A success, which leaves err alone. */
#define GOOD(call)                                                                                           \
    do {                                                                                                     \
        poison();                                                                                            \
        CHECK_INT(call, CAI_OK);                                                                             \
        check_untouched(__FILE__, __LINE__);                                                                 \
    } while (0)

static void check_names(const char *file, int line, const char *word)
{
    if (err.code == 0x5a5a5a5a) return;
    if (!cai_test_true(file, line, "the message names it", strstr(err.message, word) != NULL))
        printf("    is    \"%.200s\"\n    lacks \"%s\"\n", err.message, word);
}

/* A failure: its status, and a word that its message must have. */
#define BAD(call, status, word)                                                                              \
    do {                                                                                                     \
        poison();                                                                                            \
        CHECK_INT(call, status);                                                                             \
        CHECK_INT(err.code, status);                                                                         \
        check_names(__FILE__, __LINE__, word);                                                               \
    } while (0)

/* A refusal: the same, and not one call. */
#define REFUSED(call, status, word)                                                                          \
    do {                                                                                                     \
        trace_clear();                                                                                       \
        BAD(call, status, word);                                                                             \
        CHECK_INT(err.native, 0);                                                                            \
        logged("");                                                                                          \
    } while (0)

/* ------------------------------------------------------------------ a pool of the test */

typedef struct block {
    void *raw;
    char *ptr;
    size_t size;
    uint64_t stream;
    char kind; /* 'd' device, 'h' host, 'm' managed, 'p' pinned */
    int live;
} block;

typedef struct plugin {
    cai_emm_hooks hooks;
    block blocks[BLOCKS];
    int32_t count, live;
    const char *fail; /* this hook */
    int32_t fail_skip, fail_times, fail_error;
    int32_t gift;     /* of the next device_alloc: 1: NULL, 2: 16 bytes off */
    int32_t deferring;
    size_t free_bytes, total_bytes;
} plugin;

static plugin mine;

/* What always holds when a hook is called: no lock is held, the manager's context is current. */
static int call_of(plugin *p, const char *hook)
{
    CHECK_INT(emm.guard, 0);
    if (sim && emm.pool) {
        CHECK_UINT(cai_sim_current(sim), emm.context);
        CHECK_INT(pool.guard, 0);
    }
    if (!p->fail || strcmp(p->fail, hook) != 0 || p->fail_times == 0) return 0;
    if (p->fail_skip-- > 0) return 0;
    p->fail_times--;
    return p->fail_error;
}

static void fail(plugin *p, const char *hook, int32_t skip, int32_t times, int32_t error)
{
    p->fail = hook;
    p->fail_skip = skip;
    p->fail_times = times;
    p->fail_error = error;
}

static int give(plugin *p, char kind, size_t size, uint64_t stream, void **ptr)
{
    block *b = &p->blocks[p->count];
    size_t off = p->gift == 2 ? 16 : 0;
    if (size > (size_t)1 << 26) return 2;
    if (p->count == BLOCKS) {
        printf("no more blocks\n");
        exit(2);
    }
    b->raw = malloc(size + 512);
    b->ptr = (char *)b->raw + (256 - (size_t)(uintptr_t)b->raw % 256) + off;
    b->size = size;
    b->stream = stream;
    b->kind = kind;
    b->live = 1;
    p->count++;
    p->live++;
    p->gift = 0;
    *ptr = b->ptr;
    return 0;
}

/* The number of the block, from 1. It must be live, of this kind, and given back as it was given. */
static int32_t take(plugin *p, char kind, void *ptr, size_t size, int error)
{
    int32_t i;
    for (i = 0; i < p->count; i++) {
        block *b = &p->blocks[i];
        if (!b->live || (void *)b->ptr != ptr) continue;
        CHECK_INT(b->kind, kind);
        CHECK_UINT(b->size, size);
        if (error) return i + 1;
        b->live = 0;
        p->live--;
        if (kind != 'p') free(b->raw);
        return i + 1;
    }
    CHECK_STR("freed", "a block that lives");
    return 0;
}

static int hook_alloc(plugin *p, const char *hook, char kind, size_t size, uint64_t stream, void **ptr)
{
    int error = call_of(p, hook);
    *ptr = NULL;
    if (!error && p->gift == 1) {
        p->gift = 0;
        SAY("%s %s NULL\n", p->hooks.name, hook);
        return 0;
    }
    if (!error) error = give(p, kind, size, stream, ptr);
    if (kind == 'd') SAY("%s %s %lu %s", p->hooks.name, hook, (unsigned long)size, stream_name(stream));
    else SAY("%s %s %lu flags %u", p->hooks.name, hook, (unsigned long)size, (unsigned)stream);
    if (error) SAY(" ! %d\n", error);
    else SAY(" -> b%d\n", (int)p->count);
    return error;
}

static int hook_free(plugin *p, const char *hook, char kind, void *ptr, size_t size, uint64_t stream)
{
    const int error = call_of(p, hook);
    const int32_t n = take(p, kind, ptr, size, error);
    if (error) SAY("%s %s b%d %s ! %d\n", p->hooks.name, hook, (int)n, stream_name(stream), error);
    else SAY("%s %s b%d %s\n", p->hooks.name, hook, (int)n, stream_name(stream));
    return error;
}

static int plug_device_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    return hook_alloc((plugin *)ctx, "device_alloc", 'd', size, cai_stream_from_cuda(stream, 0), ptr);
}

static int plug_device_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free((plugin *)ctx, "device_free", 'd', ptr, size, cai_stream_from_cuda(stream, 0));
}

static int plug_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return hook_alloc((plugin *)ctx, "host_alloc", 'h', size, flags, ptr);
}

static int plug_host_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free((plugin *)ctx, "host_free", 'h', ptr, size, cai_stream_from_cuda(stream, 0));
}

static int plug_managed_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return hook_alloc((plugin *)ctx, "managed_alloc", 'm', size, flags, ptr);
}

static int plug_managed_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free((plugin *)ctx, "managed_free", 'm', ptr, size, cai_stream_from_cuda(stream, 0));
}

static int plug_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    plugin *p = (plugin *)ctx;
    int error = call_of(p, "pin");
    int32_t i;
    for (i = 0; i < p->count; i++) {
        if (p->blocks[i].live && p->blocks[i].ptr == (char *)ptr) error = 712;
    }
    if (!error) {
        block *b = &p->blocks[p->count++];
        memset(b, 0, sizeof *b);
        b->ptr = (char *)ptr;
        b->size = size;
        b->kind = 'p';
        b->live = 1;
        p->live++;
    }
    SAY("%s pin %lu flags %u%s\n", p->hooks.name, (unsigned long)size, flags, error ? " !" : "");
    return error;
}

static int plug_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free((plugin *)ctx, "unpin", 'p', ptr, size, cai_stream_from_cuda(stream, 0));
}

static int plug_initialize(void *ctx, int device)
{
    plugin *p = (plugin *)ctx;
    const int error = call_of(p, "initialize");
    SAY("%s initialize %d%s\n", p->hooks.name, device, error ? " !" : "");
    return error;
}

/* Drops all that was given out, also what is in somebody's list. */
static int plug_reset(void *ctx)
{
    plugin *p = (plugin *)ctx;
    int32_t i;
    CHECK_INT(emm.guard, 0);
    SAY("%s reset\n", p->hooks.name);
    for (i = 0; i < p->count; i++) {
        if (p->blocks[i].live && p->blocks[i].kind != 'p') free(p->blocks[i].raw);
        p->blocks[i].live = 0;
    }
    p->live = 0;
    return p->fail && strcmp(p->fail, "reset") == 0 ? p->fail_error : 0;
}

static int plug_memory_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    plugin *p = (plugin *)ctx;
    const int error = call_of(p, "memory_info");
    SAY("%s memory_info%s\n", p->hooks.name, error ? " !" : "");
    if (error) return error;
    *free_bytes = p->free_bytes;
    *total_bytes = p->total_bytes;
    return 0;
}

static int plug_defer(void *ctx, int on)
{
    plugin *p = (plugin *)ctx;
    const int error = call_of(p, "defer");
    SAY("%s defer %d%s\n", p->hooks.name, on, error ? " !" : "");
    CHECK_INT(p->deferring, !on);
    if (!error || !on) p->deferring = on;
    return error;
}

/* Every block lies in an allocation that begins 4096 bytes before it. */
static int plug_ipc_handle(void *ctx, void *ptr, void *handle, void **base)
{
    plugin *p = (plugin *)ctx;
    const int error = call_of(p, "ipc_handle");
    int32_t i;
    SAY("%s ipc_handle%s\n", p->hooks.name, error ? " !" : "");
    if (error) return error;
    memset(handle, 0x33, 64);
    *base = NULL;
    for (i = 0; i < p->count; i++) {
        const block *b = &p->blocks[i];
        if (b->live && (char *)ptr >= b->ptr && (char *)ptr < b->ptr + b->size) *base = b->ptr - 4096;
    }
    CHECK(*base != NULL);
    return 0;
}

/* This plugin needs no context of its own: test_emm_contexts.c has one that does. */
static int plug_open(void *ctx, int device, uint64_t context, void **own)
{
    (void)device;
    (void)context;
    *own = ctx;
    return 0;
}

static int plug_close(void *own)
{
    (void)own;
    return 0;
}

static void fill_hooks(plugin *p, const char *name, uint32_t flags)
{
    memset(p, 0, sizeof *p);
    p->hooks.struct_size = (uint32_t)sizeof p->hooks;
    p->hooks.version = CAI_EMM_VERSION;
    p->hooks.flags = flags;
    p->hooks.ctx = p;
    p->hooks.device_alloc = plug_device_alloc;
    p->hooks.device_free = plug_device_free;
    strcpy(p->hooks.name, name);
}

static void fill_all_hooks(plugin *p, const char *name, uint32_t flags)
{
    fill_hooks(p, name, flags);
    p->hooks.initialize = plug_initialize;
    p->hooks.reset = plug_reset;
    p->hooks.memory_info = plug_memory_info;
    p->hooks.defer = plug_defer;
    p->hooks.ipc_handle = plug_ipc_handle;
    p->hooks.host_alloc = plug_host_alloc;
    p->hooks.host_free = plug_host_free;
    p->hooks.pin = plug_pin;
    p->hooks.unpin = plug_unpin;
    p->hooks.managed_alloc = plug_managed_alloc;
    p->hooks.managed_free = plug_managed_free;
    p->hooks.open = plug_open;
    p->hooks.close = plug_close;
}

/* ------------------------------------------------------------------ lists of the manager */

static int64_t list_calls, list_live, list_bytes; /* what the manager allocated for itself */
static int64_t list_fail;                         /* this one fails; 0: none */

static void *list_alloc(void *user_data, size_t size)
{
    void *ptr;
    CHECK(user_data == &list_calls);
    CHECK(size > 0);
    if (++list_calls == list_fail) return NULL;
    ptr = malloc(size);
    memset(ptr, 0x77, size);
    list_live++;
    list_bytes += (int64_t)size;
    return ptr;
}

static void list_free(void *user_data, void *ptr, size_t size)
{
    CHECK(user_data == &list_calls);
    CHECK(ptr != NULL);
    list_live--;
    list_bytes -= (int64_t)size;
    memset(ptr, 0x66, size);
    free(ptr);
}

static cai_manager_options list_options(void)
{
    cai_manager_options options;
    memset(&options, 0, sizeof options);
    options.alloc_fn = list_alloc;
    options.free_fn = list_free;
    options.user_data = &list_calls;
    list_calls = list_live = list_bytes = list_fail = 0;
    return options;
}

/* ------------------------------------------------------------------ opening and closing */

static void open_sim(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS); /* tests say what runs */
    cuda = *cai_sim_cuda(sim);
    c1 = cai_sim_primary(sim, 0);
    c2 = cai_sim_primary(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    s1 = cai_sim_stream_create(sim, 1);
    s2 = cai_sim_stream_create(sim, 1);
    s3 = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    s4 = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    GOOD(cai_event_pool_init(&pool, &cuda, places, PLACES, 0, &err));
    memset(&emm, 0x5a, sizeof emm);
    emm.guard = 0;
    emm.pool = NULL;
    trace[0] = 0;
}

static void make_emm(const cai_emm_hooks *hooks, uint64_t deferred_bytes, int32_t deferred_count)
{
    cai_manager_options options = list_options();
    options.deferred_bytes = deferred_bytes;
    options.deferred_count = deferred_count;
    GOOD(cai_manager_init(&emm, &pool, hooks, &options, &err));
    trace_clear();
}

/* A manager over hooks of the test: these flags, and the device pair alone or all hooks. */
static void open_plugin(uint32_t flags, int all)
{
    if (all) fill_all_hooks(&mine, "my_pool", flags);
    else fill_hooks(&mine, "my_pool", flags);
    open_sim();
    make_emm(&mine.hooks, 0, 0);
}

static void open_cuda(void)
{
    cai_emm_hooks hooks;
    memset(&mine, 0, sizeof mine);
    open_sim();
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    make_emm(&hooks, 0, 0);
}

static void open_async(void)
{
    cai_emm_hooks hooks;
    memset(&mine, 0, sizeof mine);
    open_sim();
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    make_emm(&hooks, 0, 0);
}

static void close_sim(void)
{
    char text[400];
    CHECK_UINT(cai_sim_current(sim), c1);
    GOOD(cai_event_pool_destroy(&pool, &err));
    cai_sim_run(sim);
    CHECK_INT(cai_sim_stream_destroy(sim, s1), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s2), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s3), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, s4), 0);
    cai_sim_leaks(sim, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
    sim = NULL;
}

static void close_emm(void)
{
    CHECK_INT(emm.count.live, 0);
    GOOD(cai_manager_destroy(&emm, &err));
    CHECK_INT(mine.live, 0);
    CHECK_INT(list_live, 0);
    CHECK_INT(list_bytes, 0);
    close_sim();
}

/* ------------------------------------------------------------------ short forms */

static cai_memory_handle get(size_t size, uint64_t stream)
{
    cai_memory_handle memory = 99;
    GOOD(cai_manager_alloc(&memory, &emm, size, 0, stream, &err));
    CHECK(memory != 0 && memory != 99);
    return memory;
}

static void let(cai_memory_handle memory, uint64_t stream) { GOOD(cai_manager_free(&emm, memory, stream, &err)); }

static cai_manager_count counts(void)
{
    cai_manager_count count;
    memset(&count, 0x5a, sizeof count);
    cai_manager_counts(&emm, &count);
    return count;
}

/* What lives and what is deferred: so many, of so many bytes. */
static void counted(uint64_t live, uint64_t live_bytes, uint64_t deferred, uint64_t deferred_bytes)
{
    const cai_manager_count count = counts();
    CHECK_UINT(count.live, live);
    CHECK_UINT(count.live_bytes, live_bytes);
    CHECK_UINT(count.deferred, deferred);
    CHECK_UINT(count.deferred_bytes, deferred_bytes);
}

static cai_memory_object info_of(cai_memory_handle memory)
{
    cai_memory_object info;
    memset(&info, 0x5a, sizeof info);
    GOOD(cai_manager_describe(&emm, memory, &info, &err));
    return info;
}

/* ------------------------------------------------------------------ tables */

typedef struct slot {
    const char *name;
    size_t offset;
} slot;

#define HOOK(name) {#name, offsetof(cai_emm_hooks, name)}

static const slot hook_slots[] = {
    HOOK(device_alloc), HOOK(device_free), HOOK(initialize), HOOK(reset), HOOK(memory_info), HOOK(defer),
    HOOK(ipc_handle), HOOK(host_alloc), HOOK(host_free), HOOK(pin), HOOK(unpin), HOOK(managed_alloc),
    HOOK(managed_free), HOOK(open), HOOK(close)};

enum { HOOKS = (int)(sizeof hook_slots / sizeof hook_slots[0]), TAIL = 2 /* the first one behind name */ };

static void clear_hook(cai_emm_hooks *hooks, const char *name)
{
    int32_t i;
    for (i = 0; i < HOOKS; i++) {
        if (strcmp(hook_slots[i].name, name) == 0) {
            memset((char *)hooks + hook_slots[i].offset, 0, sizeof hooks->reset);
            return;
        }
    }
    CHECK_STR(name, "the name of a hook");
}

static void check_hooks_good(void)
{
    static const int32_t kinds[] = {0, CAI_MEMORY_DEVICE, CAI_MEMORY_POOL, CAI_MEMORY_HOST};
    int32_t i;
    memset(&emm, 0, sizeof emm);
    fill_hooks(&mine, "my_pool", 0);
    GOOD(cai_emm_hooks_check(&mine.hooks, &err));
    fill_all_hooks(&mine, "my_pool", CAI_EMM_FREES_WAIT | CAI_EMM_CUDA_HOST);
    GOOD(cai_emm_hooks_check(&mine.hooks, &err));
    GOOD(cai_emm_hooks_check(&mine.hooks, NULL));
    for (i = 0; i < 4; i++) {
        mine.hooks.kind = kinds[i];
        GOOD(cai_emm_hooks_check(&mine.hooks, &err));
    }
    mine.hooks.struct_size += 512; /* a newer one, with hooks that nobody here knows */
    GOOD(cai_emm_hooks_check(&mine.hooks, &err));
    mine.hooks.ctx = NULL;
    mine.hooks.name[0] = 0;
    GOOD(cai_emm_hooks_check(&mine.hooks, &err));
    memset(mine.hooks.name, 'x', 63);
    mine.hooks.name[63] = 0;
    GOOD(cai_emm_hooks_check(&mine.hooks, &err));
    logged("");
}

static void check_hooks_version(void)
{
    const uint32_t versions[3] = {0, 2, UINT32_MAX};
    char word[40];
    int32_t i;
    for (i = 0; i < 3; i++) {
        fill_all_hooks(&mine, "my_pool", 0);
        mine.hooks.version = versions[i];
        sprintf(word, "version = %lu", (unsigned long)versions[i]);
        REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ABI, word);
        CHECK(strstr(err.message, "version 1") != NULL); /* the required one (Numba: "version 1 required") */
        CHECK_INT(cai_emm_hooks_check(&mine.hooks, NULL), CAI_ERR_ABI);
    }
}

static void check_hooks_fields(void)
{
    fill_all_hooks(&mine, "my_pool", 8);
    REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, "flags");
    mine.hooks.flags = 0x80000000u | CAI_EMM_FREES_WAIT;
    REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, "flags");
    mine.hooks.flags = 0;
    mine.hooks.kind = -1;
    REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, "kind");
    for (mine.hooks.kind = CAI_MEMORY_PINNED; mine.hooks.kind < 12; mine.hooks.kind++) {
        if (mine.hooks.kind == CAI_MEMORY_DEVICE || mine.hooks.kind == CAI_MEMORY_POOL) continue;
        REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, "kind = ");
    }
    mine.hooks.kind = INT32_MIN;
    REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, "kind");
    mine.hooks.kind = 0;
    memset(mine.hooks.name, 'x', sizeof mine.hooks.name);
    REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, "name");
    REFUSED(cai_emm_hooks_check(NULL, &err), CAI_ERR_ARGUMENT, "hooks");
}

/* One of a pair: the message is a sentence of the header. */
static void check_hooks_pairs(void)
{
    static const char *const pairs[4][2] = {
        {"host_alloc", "host_free"}, {"pin", "unpin"}, {"managed_alloc", "managed_free"}, {"open", "close"}};
    char word[80];
    int32_t i, k;
    for (i = 0; i < 4; i++) {
        for (k = 0; k < 2; k++) {
            fill_all_hooks(&mine, "my_pool", 0);
            clear_hook(&mine.hooks, pairs[i][k]);
            sprintf(word, "%s is NULL, but %s is not", pairs[i][k], pairs[i][!k]);
            REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, word);
        }
        clear_hook(&mine.hooks, pairs[i][0]);
        GOOD(cai_emm_hooks_check(&mine.hooks, &err));
    }
    for (k = 0; k < 2; k++) {
        fill_all_hooks(&mine, "my_pool", 0);
        clear_hook(&mine.hooks, hook_slots[k].name);
        REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ARGUMENT, hook_slots[k].name);
    }
}

/* A copy that ends where struct_size says, so that a sanitizer sees a look beyond. */
static cai_emm_hooks *cut_hooks(size_t size)
{
    cai_emm_hooks *hooks = (cai_emm_hooks *)malloc(size);
    mine.hooks.struct_size = (uint32_t)size;
    memcpy(hooks, &mine.hooks, size);
    return hooks;
}

static int opens_pair(int32_t i)
{
    const char *name = hook_slots[i].name;
    return strcmp(name, "host_alloc") == 0 || strcmp(name, "pin") == 0 || strcmp(name, "managed_alloc") == 0 ||
           strcmp(name, "open") == 0;
}

/* A struct that ends after hook i, or (more: 1 to 7) inside the one that follows. */
static void check_cut(int32_t i, size_t more)
{
    const size_t size = hook_slots[i].offset + sizeof mine.hooks.reset + more;
    cai_emm_hooks *hooks = cut_hooks(size);
    if (opens_pair(i)) REFUSED(cai_emm_hooks_check(hooks, &err), CAI_ERR_ARGUMENT, hook_slots[i + 1].name);
    else GOOD(cai_emm_hooks_check(hooks, &err));
    free(hooks);
}

static void check_hooks_sizes(void)
{
    const size_t least = offsetof(cai_emm_hooks, initialize);
    cai_emm_hooks *hooks;
    size_t size;
    int32_t i;
    fill_all_hooks(&mine, "my_pool", 0);
    for (size = 8; size < least; size += size == 8 ? least - 9 - 8 * 8 : 8) {
        hooks = cut_hooks(size); /* from version on */
        REFUSED(cai_emm_hooks_check(hooks, &err), CAI_ERR_ABI, "struct_size");
        free(hooks);
    }
    mine.hooks.struct_size = 0;
    REFUSED(cai_emm_hooks_check(&mine.hooks, &err), CAI_ERR_ABI, "struct_size = 0");
    hooks = cut_hooks(least);
    GOOD(cai_emm_hooks_check(hooks, &err));
    free(hooks);
    for (i = TAIL; i < HOOKS; i++) {
        check_cut(i, 0);
        if (i < HOOKS - 1) check_cut(i, 1);
        if (i < HOOKS - 1) check_cut(i, sizeof hooks->reset - 1);
    }
}

/* The built-in tables over a CUDA table that ends early, in memory that ends there too: they are made of what
 * lies in it, and look nowhere else. */
static void check_cut_cuda(size_t size)
{
    const size_t bytes = sizeof cuda.memory_free;
    cai_cuda *cut = (cai_cuda *)malloc(size);
    cai_emm_hooks hooks;
    cai_status made;
    void *ptr = NULL;
    cuda.struct_size = (uint32_t)size;
    memcpy(cut, &cuda, size);
    made = cai_emm_hooks_cuda(&hooks, cut, &err);
    CHECK_INT(made, size >= offsetof(cai_cuda, memory_free) + bytes ? CAI_OK : CAI_ERR_UNAVAILABLE);
    if (!made) {
        CHECK_INT(hooks.device_alloc(hooks.ctx, &ptr, 256, NULL), 0);
        CHECK_INT(hooks.device_free(hooks.ctx, ptr, 256, NULL), 0);
        CHECK((hooks.memory_info != NULL) == (size >= offsetof(cai_cuda, memory_info) + bytes));
        CHECK((hooks.ipc_handle != NULL) == (size >= offsetof(cai_cuda, ipc_export) + bytes));
    }
    made = cai_emm_hooks_async(&hooks, cut, NULL, &err);
    CHECK_INT(made, size >= offsetof(cai_cuda, memory_free_async) + bytes ? CAI_OK : CAI_ERR_UNAVAILABLE);
    free(cut);
}

static void check_cuda_sizes(void)
{
    size_t size;
    open_sim();
    for (size = offsetof(cai_cuda, context_current); size <= sizeof cuda; size++) check_cut_cuda(size);
    cuda.struct_size = (uint32_t)sizeof cuda;
    cai_sim_destroy(sim);
    sim = NULL;
}

/* Hooks behind the end are NULL: not available, not called. */
static void check_hooks_tail(void)
{
    cai_manager_options options = list_options();
    cai_emm_hooks *hooks;
    cai_memory_handle memory, none = 9;
    size_t bytes;
    cai_memory_ipc ipc;
    fill_all_hooks(&mine, "my_pool", 0);
    open_sim();
    hooks = cut_hooks(offsetof(cai_emm_hooks, initialize));
    GOOD(cai_manager_init(&emm, &pool, hooks, &options, &err));
    free(hooks);
    trace_clear();
    memory = get(100, s1);
    logged("context_current -> c1\nstream_capture s1 -> none\nmy_pool device_alloc 100 s1 -> b1\n");
    REFUSED(cai_manager_device_memory(&emm, &bytes, &bytes, &err), CAI_ERR_UNAVAILABLE, "memory_info");
    CHECK_INT(err.rule, 115);
    REFUSED(cai_manager_pinned_alloc(&none, &emm, 1, 0, &err), CAI_ERR_UNAVAILABLE, "host_alloc");
    CHECK_UINT(none, 9);
    none = 9;
    REFUSED(cai_manager_pin(&none, &emm, &bytes, 1, 0, &err), CAI_ERR_UNAVAILABLE, "pin");
    CHECK_UINT(none, 9);
    none = 9;
    REFUSED(cai_manager_managed_alloc(&none, &emm, 1, 1, &err), CAI_ERR_UNAVAILABLE, "managed_alloc");
    CHECK_UINT(none, 9);
    REFUSED(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_UNAVAILABLE, "ipc_handle");
    let(memory, s1);
    trace_clear();
    GOOD(cai_manager_defer_begin(&emm, &err));
    GOOD(cai_manager_defer_end(&emm, &err));
    GOOD(cai_manager_reset(&emm, &err));
    CHECK_INT(lines("my_pool"), 0);
    close_emm();
}

/* ------------------------------------------------------------------ NVIDIA's struct */

typedef struct device_mem_handler { /* cutensornetDeviceMemHandler_t, custatevecDeviceMemHandler_t, ... */
    void *ctx;
    int (*device_alloc)(void *ctx, void **ptr, size_t size, struct CUstream_st *stream);
    int (*device_free)(void *ctx, void *ptr, size_t size, struct CUstream_st *stream);
    char name[64];
} device_mem_handler;

static void check_layout(void)
{
    const size_t at = offsetof(cai_emm_hooks, ctx);
    device_mem_handler handler;
    cai_emm_hooks hooks;
    cai_memory_handle memory;
    CHECK_UINT(offsetof(cai_emm_hooks, struct_size), 0);
    CHECK_UINT(offsetof(cai_emm_hooks, version), 4);
    CHECK_UINT(offsetof(cai_emm_hooks, flags), 8);
    CHECK_UINT(offsetof(cai_emm_hooks, kind), 12);
    CHECK_UINT(at, 16);
    CHECK_UINT(offsetof(cai_emm_hooks, device_alloc) - at, offsetof(device_mem_handler, device_alloc));
    CHECK_UINT(offsetof(cai_emm_hooks, device_free) - at, offsetof(device_mem_handler, device_free));
    CHECK_UINT(offsetof(cai_emm_hooks, name) - at, offsetof(device_mem_handler, name));
    CHECK_UINT(offsetof(cai_emm_hooks, initialize) - at, sizeof(device_mem_handler));
    CHECK_UINT(sizeof(cai_emm_hooks), at + sizeof handler + 13 * sizeof hooks.reset);
    fill_hooks(&mine, "my_pool", 0); /* a handler of a program becomes a table, as it is */
    memset(&handler, 0, sizeof handler);
    handler.ctx = &mine;
    handler.device_alloc = plug_device_alloc;
    handler.device_free = plug_device_free;
    strcpy(handler.name, "my_pool");
    memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    memcpy(&hooks.ctx, &handler, sizeof handler);
    open_sim();
    make_emm(&hooks, 0, 0);
    memory = get(7, s2);
    let(memory, s2);
    CHECK_INT(lines("my_pool device_alloc 7 s2 -> b1\n"), 1);
    CHECK_INT(lines("my_pool device_free b1 s2\n"), 1);
    close_emm();
}

/* ------------------------------------------------------------------ built-in tables */

static void check_builtin_fields(void)
{
    cai_emm_hooks hooks;
    open_sim();
    memset(&hooks, 0x5a, sizeof hooks);
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    GOOD(cai_emm_hooks_check(&hooks, &err));
    CHECK_UINT(hooks.struct_size, sizeof hooks);
    CHECK_UINT(hooks.flags, CAI_EMM_FREES_WAIT);
    CHECK(hooks.host_alloc && hooks.host_free && hooks.pin && hooks.unpin && hooks.managed_alloc && hooks.managed_free);
    CHECK_INT(hooks.kind, CAI_MEMORY_DEVICE);
    CHECK_STR(hooks.name, "cuda");
    CHECK(!hooks.initialize && !hooks.reset && !hooks.defer && hooks.memory_info && hooks.ipc_handle);
    memset(&hooks, 0x5a, sizeof hooks);
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    GOOD(cai_emm_hooks_check(&hooks, &err));
    CHECK_UINT(hooks.flags, CAI_EMM_CUDA_HOST);
    CHECK_INT(hooks.kind, CAI_MEMORY_POOL);
    CHECK_STR(hooks.name, "cuda_async");
    CHECK(!hooks.initialize && !hooks.reset && !hooks.defer && !hooks.ipc_handle);
    memset(&hooks, 0x5a, sizeof hooks);
    cai_emm_hooks_malloc(&hooks);
    GOOD(cai_emm_hooks_check(&hooks, &err));
    CHECK_UINT(hooks.flags, 0);
    CHECK_INT(hooks.kind, CAI_MEMORY_HOST);
    CHECK_STR(hooks.name, "host");
    logged("");
    close_sim();
}

static void check_builtin_arguments(void)
{
    cai_emm_hooks hooks;
    open_sim();
    REFUSED(cai_emm_hooks_cuda(NULL, &cuda, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_emm_hooks_cuda(&hooks, NULL, &err), CAI_ERR_ARGUMENT, "cuda");
    REFUSED(cai_emm_hooks_async(NULL, &cuda, NULL, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_emm_hooks_async(&hooks, NULL, NULL, &err), CAI_ERR_ARGUMENT, "cuda");
    CHECK_INT(cai_emm_hooks_cuda(&hooks, NULL, NULL), CAI_ERR_ARGUMENT);
    cuda.memory_alloc = NULL;
    REFUSED(cai_emm_hooks_cuda(&hooks, &cuda, &err), CAI_ERR_UNAVAILABLE, "memory_alloc");
    GOOD(cai_emm_hooks_async(&hooks, &cuda, NULL, &err));
    cuda = *cai_sim_cuda(sim);
    cuda.memory_free = NULL;
    REFUSED(cai_emm_hooks_cuda(&hooks, &cuda, &err), CAI_ERR_UNAVAILABLE, "memory_free");
    cuda = *cai_sim_cuda(sim);
    cuda.memory_alloc_async = NULL;
    REFUSED(cai_emm_hooks_async(&hooks, &cuda, NULL, &err), CAI_ERR_UNAVAILABLE, "memory_alloc_async");
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda, &err));
    cuda = *cai_sim_cuda(sim);
    cuda.memory_free_async = NULL;
    REFUSED(cai_emm_hooks_async(&hooks, &cuda, NULL, &err), CAI_ERR_UNAVAILABLE, "memory_free_async");
    cuda = *cai_sim_cuda(sim);
    close_sim();
}

/* ------------------------------------------------------------------ a manager */

static void check_init_arguments(void)
{
    cai_manager_options options;
    cai_event_pool none;
    memset(&none, 0, sizeof none);
    fill_all_hooks(&mine, "my_pool", 0);
    open_sim();
    REFUSED(cai_manager_init(NULL, &pool, &mine.hooks, NULL, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_init(&emm, NULL, &mine.hooks, NULL, &err), CAI_ERR_ARGUMENT, "pool");
    REFUSED(cai_manager_init(&emm, &none, &mine.hooks, NULL, &err), CAI_ERR_ARGUMENT, "pool");
    REFUSED(cai_manager_init(&emm, &pool, NULL, NULL, &err), CAI_ERR_ARGUMENT, "hooks");
    mine.hooks.kind = CAI_MEMORY_POOL;
    REFUSED(cai_manager_init(&emm, NULL, &mine.hooks, NULL, &err), CAI_ERR_ARGUMENT, "pool");
    mine.hooks.version = 2;
    REFUSED(cai_manager_init(&emm, &pool, &mine.hooks, NULL, &err), CAI_ERR_ABI, "version = 2");
    mine.hooks.version = 1;
    mine.hooks.device_free = NULL;
    REFUSED(cai_manager_init(&emm, &pool, &mine.hooks, NULL, &err), CAI_ERR_ARGUMENT, "device_free");
    mine.hooks.device_free = plug_device_free;
    options = list_options();
    options.free_fn = NULL;
    REFUSED(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err), CAI_ERR_ARGUMENT, "free_fn");
    options = list_options();
    options.alloc_fn = NULL;
    REFUSED(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err), CAI_ERR_ARGUMENT, "alloc_fn");
    options = list_options();
    options.deferred_count = -1;
    REFUSED(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err), CAI_ERR_ARGUMENT, "deferred_count");
    options.deferred_count = 0;
    options.flags = 2;
    REFUSED(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err), CAI_ERR_ARGUMENT, "unknown bits");
    CHECK_INT(cai_manager_init(&emm, &pool, NULL, NULL, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(list_calls, 0);
    close_sim();
}

static void check_init(void)
{
    cai_manager_options options = list_options();
    fill_all_hooks(&mine, "my_pool", 0);
    open_sim();
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    trace_clear();
    BAD(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err), CAI_ERR_UNAVAILABLE, "context");
    logged("context_current -> none\n");
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    GOOD(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err));
    logged("context_current -> c2\ncontext_device -> 1\n");
    CHECK_INT(emm.device, 1);
    CHECK_UINT(emm.context, c2);
    CHECK(emm.pool == &pool);
    counted(0, 0, 0, 0);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 0);
    GOOD(cai_manager_destroy(&emm, &err));
    CHECK_INT(list_live, 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    trace_clear();
    CHECK_INT(cai_sim_fail_op(sim, "context_device", 1, 999), 1);
    BAD(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err), CAI_ERR_CUDA, "context_device");
    CHECK_INT(err.native, 999);
    CHECK_INT(cai_sim_fail_op(sim, "context_current", 1, 3), 1);
    BAD(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err), CAI_ERR_CUDA, "context_current");
    CHECK_INT(err.native, 3);
    CHECK_INT(list_live, 0);
    GOOD(cai_manager_init(&emm, &pool, &mine.hooks, NULL, NULL)); /* malloc */
    trace_clear();
    let(get(8, s1), s1);
    CHECK_INT(lines("my_pool device_alloc"), 1);
    close_emm();
}

/* Of every function, a manager that is none: NULL, or never made. */
static void refused_of(cai_manager *e)
{
    cai_memory_handle memory = 9;
    cai_memory_object info;
    cai_memory_ipc ipc;
    cai_array array;
    size_t a, b;
    int64_t extent = 4;
    char byte;
    GOOD(cai_array_init(&array, CAI_INT8, 1, &extent, NULL, &byte, &err));
    REFUSED(cai_manager_destroy(e, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_reset(e, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_device_memory(e, &a, &b, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_alloc(&memory, e, 1, 0, s1, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    CHECK_UINT(memory, 9); /* untouched */
    REFUSED(cai_manager_pinned_alloc(&memory, e, 1, 0, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_pin(&memory, e, &byte, 1, 0, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_managed_alloc(&memory, e, 1, 1, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_free(e, 5, s1, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_retain(e, 5, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_describe(e, 5, &info, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_ipc_handle(e, 5, &ipc, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_array(&array, e, CAI_INT8, 1, &extent, s1, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_own(&array, e, 5, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_flush(e, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_defer_begin(e, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_manager_defer_end(e, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    CHECK(cai_manager_pointer(e, 5) == NULL);
    CHECK_INT(cai_manager_flush(e, NULL), CAI_ERR_ARGUMENT);
}

static void check_no_manager(void)
{
    static cai_manager none;
    open_plugin(0, 1);
    refused_of(NULL);
    refused_of(&none);
    GOOD(cai_manager_destroy(&emm, &err));
    refused_of(&emm); /* destroyed: gone */
    CHECK_INT(list_live, 0);
    close_sim();
}

/* Pointers that are NULL, and the handle 0. */
static void check_null_arguments(void)
{
    cai_memory_handle memory;
    cai_memory_object info;
    cai_memory_ipc ipc;
    cai_array array;
    size_t bytes;
    int64_t extent = 4;
    open_plugin(0, 1);
    memory = get(16, s1);
    REFUSED(cai_manager_device_memory(&emm, NULL, &bytes, &err), CAI_ERR_ARGUMENT, "free_bytes");
    REFUSED(cai_manager_device_memory(&emm, &bytes, NULL, &err), CAI_ERR_ARGUMENT, "total_bytes");
    REFUSED(cai_manager_alloc(NULL, &emm, 1, 0, s1, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_alloc(NULL, &emm, 0, 0, s1, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_pinned_alloc(NULL, &emm, 1, 0, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_pin(NULL, &emm, &bytes, 1, 0, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_managed_alloc(NULL, &emm, 1, 1, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_describe(&emm, memory, NULL, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_ipc_handle(&emm, memory, NULL, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_array(NULL, &emm, CAI_INT8, 1, &extent, s1, &err), CAI_ERR_ARGUMENT, "out");
    REFUSED(cai_manager_own(NULL, &emm, memory, &err), CAI_ERR_ARGUMENT, "array");
    REFUSED(cai_manager_retain(&emm, 0, &err), CAI_ERR_ARGUMENT, "memory");
    REFUSED(cai_manager_describe(&emm, 0, &info, &err), CAI_ERR_ARGUMENT, "memory");
    REFUSED(cai_manager_ipc_handle(&emm, 0, &ipc, &err), CAI_ERR_ARGUMENT, "memory");
    GOOD(cai_array_init(&array, CAI_INT8, 1, &extent, NULL, &bytes, &err));
    REFUSED(cai_manager_own(&array, &emm, 0, &err), CAI_ERR_ARGUMENT, "memory");
    CHECK(array.release == NULL);
    CHECK(cai_manager_pointer(&emm, 0) == NULL);
    REFUSED(cai_manager_pin(&memory, &emm, NULL, 1, 0, &err), CAI_ERR_ARGUMENT, "ptr");
    let(memory, s1); /* which was not touched */
    close_emm();
}

/* ------------------------------------------------------------------ allocating */

static void check_alloc_refused(void)
{
    static const size_t odd[6] = {3, 5, 255, 257, SIZE_MAX, ((size_t)1 << 20) + 1};
    cai_memory_handle memory;
    int32_t i;
    open_plugin(0, 1);
    for (i = 0; i < 6; i++) {
        memory = 9;
        REFUSED(cai_manager_alloc(&memory, &emm, 64, odd[i], s1, &err), CAI_ERR_ARGUMENT, "alignment");
        CHECK_UINT(memory, 9);
    }
    memory = 9;
    REFUSED(cai_manager_alloc(&memory, &emm, 64, 0, 0, &err), CAI_ERR_STREAM, "stream 0");
    CHECK_UINT(memory, 9);
    memory = 9;
    REFUSED(cai_manager_alloc(&memory, &emm, 64, 0, UINT64_MAX, &err), CAI_ERR_STREAM, "stream -1");
    CHECK_UINT(memory, 9);
    REFUSED(cai_manager_alloc(&memory, &emm, 0, 3, s1, &err), CAI_ERR_ARGUMENT, "alignment");
    REFUSED(cai_manager_alloc(&memory, &emm, 0, 0, 0, &err), CAI_ERR_STREAM, "stream 0");
    memory = 9;
    REFUSED(cai_manager_alloc(&memory, &emm, SIZE_MAX, 512, s1, &err), CAI_ERR_ARGUMENT, "alignment");
    CHECK_UINT(memory, 9);
    memory = 9;
    REFUSED(cai_manager_alloc(&memory, &emm, SIZE_MAX - 255, 512, s1, &err), CAI_ERR_ARGUMENT, "alignment");
    CHECK_UINT(memory, 9);
    memory = 9; /* one less is a size */
    BAD(cai_manager_alloc(&memory, &emm, SIZE_MAX - 256, 512, s1, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc");
    CHECK_UINT(memory, 9);
    CHECK_INT(lines("my_pool device_alloc"), 3); /* asked again after the frees, and after the poll */
    trace_clear();
    memory = 9;
    BAD(cai_manager_alloc(&memory, &emm, SIZE_MAX, 256, s1, &err), CAI_ERR_OUT_OF_MEMORY,
        "device_alloc of my_pool");
    CHECK_INT(err.native, 2);
    CHECK_UINT(memory, 9);
    CHECK_INT(lines("my_pool device_alloc"), 3);
    CHECK_INT(mine.count, 0);
    counted(0, 0, 0, 0);
    close_emm();
}

static void check_no_default_streams(void)
{
    cai_memory_handle memory;
    open_plugin(0, 0);
    cuda.flags = CAI_CUDA_NO_DEFAULT_STREAMS;
    REFUSED(cai_manager_alloc(&memory, &emm, 64, 0, 1, &err), CAI_ERR_STREAM, "stream 1");
    REFUSED(cai_manager_alloc(&memory, &emm, 64, 0, 2, &err), CAI_ERR_STREAM, "stream 2");
    memory = get(64, s1);
    REFUSED(cai_manager_free(&emm, memory, 1, &err), CAI_ERR_STREAM, "stream 1");
    let(memory, s1);
    close_emm();
}

/* The address is aligned, the hook is asked for what that needs and gets its own block back. */
static void check_alignments(void)
{
    size_t alignment;
    cai_memory_handle memory;
    char line[80];
    open_plugin(0, 0);
    for (alignment = 1; alignment <= (size_t)1 << 20; alignment *= 2) {
        const size_t asked = 1000 + (alignment > 256 ? alignment - 256 : 0);
        trace_clear();
        GOOD(cai_manager_alloc(&memory, &emm, 1000, alignment, s1, &err));
        CHECK_UINT((uintptr_t)cai_manager_pointer(&emm, memory) % alignment, 0);
        memset(cai_manager_pointer(&emm, memory), 1, 1000);
        CHECK_UINT(mine.blocks[mine.count - 1].size, asked);
        CHECK_UINT(info_of(memory).size, 1000);
        counted(1, asked, 0, 0); /* what the hook gave */
        let(memory, s1);
        sprintf(line, "my_pool device_free b%d s1\n", (int)mine.count);
        CHECK_INT(lines(line), 1);
        CHECK_INT(mine.live, 0);
    }
    memory = get(1, 1);
    CHECK_UINT((uintptr_t)cai_manager_pointer(&emm, memory) % 256, 0);
    let(memory, 1);
    close_emm();
}

/* A hook that gives NULL, or less alignment than it promised. */
static void check_broken_promise(void)
{
    cai_memory_handle memory = 9;
    open_plugin(0, 0);
    mine.gift = 1;
    BAD(cai_manager_alloc(&memory, &emm, 100, 0, s1, &err), CAI_ERR_MEMORY, "my_pool");
    CHECK_UINT(memory, 9);
    CHECK_INT(err.native, 0);
    logged("context_current -> c1\nstream_capture s1 -> none\nmy_pool device_alloc NULL\n");
    memory = 9;
    mine.gift = 2;
    BAD(cai_manager_alloc(&memory, &emm, 100, 0, s1, &err), CAI_ERR_MEMORY, "my_pool");
    CHECK_UINT(memory, 9);
    logged("context_current -> c1\nstream_capture s1 -> none\nmy_pool device_alloc 100 s1 -> b1\n"
           "context_current -> c1\nmy_pool device_free b1 s1\n");
    mine.gift = 2;
    BAD(cai_manager_alloc(&memory, &emm, 100, 32, s1, &err), CAI_ERR_MEMORY, "my_pool");
    mine.gift = 2;
    BAD(cai_manager_alloc(&memory, &emm, 100, 4096, s1, &err), CAI_ERR_MEMORY, "my_pool");
    CHECK_INT(mine.live, 0);
    counted(0, 0, 0, 0);
    mine.gift = 2; /* what was asked for is kept */
    GOOD(cai_manager_alloc(&memory, &emm, 100, 16, s1, &err));
    CHECK_UINT((uintptr_t)cai_manager_pointer(&emm, memory) % 256, 16);
    let(memory, s1);
    close_emm();
}

static void check_zero_size(void)
{
    cai_memory_handle memory = 9;
    char byte;
    int32_t i;
    open_plugin(0, 1);
    for (i = 0; i < 3; i++) {
        memory = 9;
        GOOD(cai_manager_alloc(&memory, &emm, 0, 0, s1, &err));
        CHECK_UINT(memory, 0);
        let(memory, s1);
    }
    memory = 9;
    GOOD(cai_manager_pinned_alloc(&memory, &emm, 0, 0, &err));
    CHECK_UINT(memory, 0);
    memory = 9;
    GOOD(cai_manager_pin(&memory, &emm, &byte, 0, 0, &err));
    CHECK_UINT(memory, 0);
    memory = 9;
    GOOD(cai_manager_managed_alloc(&memory, &emm, 0, 1, &err));
    CHECK_UINT(memory, 0);
    GOOD(cai_manager_free(&emm, 0, 0, &err)); /* before anything else */
    logged("");
    CHECK_UINT(counts().allocated, 0);
    close_emm();
}

/* test_emm_plugins.py: initialized before the first allocation; exact sizes reach the hook; freed once. */
static void check_numba_plugin(void)
{
    cai_memory_handle a, b;
    open_plugin(0, 1);
    logged("");
    a = get(4000, s1);
    logged("context_current -> c1\nstream_capture s1 -> none\nmy_pool initialize 0\nmy_pool memory_info\n"
           "my_pool device_alloc 4000 s1 -> b1\n");
    b = get(4008, s2);
    logged("context_current -> c1\nstream_capture s2 -> none\nmy_pool device_alloc 4008 s2 -> b2\n");
    counted(2, 8008, 0, 0);
    let(a, s1);
    logged("context_current -> c1\nstream_capture s1 -> none\nmy_pool device_free b1 s1\n");
    counted(1, 4008, 0, 0);
    let(b, s2);
    CHECK_INT(lines("my_pool device_free"), 1);
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_STALE, "");
    BAD(cai_manager_free(&emm, b, s1, &err), CAI_ERR_STALE, "");
    CHECK_INT(lines("my_pool device_free"), 1);
    CHECK_UINT(counts().allocated, 2);
    CHECK_UINT(counts().freed, 2);
    close_emm();
}

/* Numba's values, passed through; and the handle of an object inside an allocation. */
static void check_numba_info_and_ipc(void)
{
    unsigned char handle[64];
    size_t free_bytes = 9, total_bytes = 9;
    cai_memory_handle memory;
    cai_memory_ipc ipc;
    open_plugin(0, 1);
    mine.free_bytes = 32;
    mine.total_bytes = 64;
    GOOD(cai_manager_device_memory(&emm, &free_bytes, &total_bytes, &err));
    CHECK_UINT(free_bytes, 32);
    CHECK_UINT(total_bytes, 64);
    CHECK_INT(lines("my_pool initialize 0\n"), 1);
    trace_clear();
    GOOD(cai_manager_device_memory(&emm, &free_bytes, &total_bytes, &err));
    logged("context_current -> c1\nmy_pool memory_info\n");
    memory = get(100, s1);
    trace_clear();
    memset(handle, 0x33, sizeof handle);
    memset(&ipc, 0x5a, sizeof ipc);
    GOOD(cai_manager_ipc_handle(&emm, memory, &ipc, &err));
    logged("context_current -> c1\nmy_pool ipc_handle\n");
    CHECK_BYTES(ipc.handle, handle, 64);
    CHECK_UINT(ipc.offset, 4096);
    CHECK_UINT(ipc.size, 100);
    CHECK_INT(ipc.device, 0);
    CHECK_INT(ipc.reserved, 0);
    let(memory, s1);
    close_emm();
}

/* K07-K09: one flush, one retry, for 2 alone. */
static void check_retry(void)
{
    cai_memory_handle a, memory = 9;
    open_plugin(CAI_EMM_FREES_WAIT, 0);
    a = get(100, s1);
    let(a, s1);
    counted(0, 0, 1, 100);
    fail(&mine, "device_alloc", 0, 1, 2);
    trace_clear();
    GOOD(cai_manager_alloc(&memory, &emm, 50, 0, s2, &err));
    logged("context_current -> c1\nstream_capture s2 -> none\nmy_pool device_alloc 50 s2 ! 2\n"
           "stream_capture legacy -> none\nstream_wait_event legacy e1\nmy_pool device_free b1 legacy\n"
           "event_destroy e1\nmy_pool device_alloc 50 s2 -> b2\n");
    CHECK_UINT(counts().retries, 1);
    counted(1, 50, 0, 0);
    let(memory, s2);
    fail(&mine, "device_alloc", 0, 3, 2);
    trace_clear();
    memory = 9;
    BAD(cai_manager_alloc(&memory, &emm, 50, 0, s2, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc of my_pool");
    CHECK_INT(err.native, 2);
    CHECK_UINT(memory, 9);
    CHECK_INT(lines("my_pool device_alloc"), 3);
    CHECK_INT(lines("my_pool device_free"), 1);
    CHECK_UINT(counts().retries, 2);
    memory = get(10, s1);
    let(memory, s1);
    fail(&mine, "device_alloc", 0, 1, 700);
    trace_clear();
    memory = 9;
    BAD(cai_manager_alloc(&memory, &emm, 50, 0, s2, &err), CAI_ERR_CUDA,
        "device_alloc of my_pool: CUDA error 700 (illegal address)");
    CHECK_INT(err.native, 700);
    CHECK_UINT(memory, 9);
    CHECK_INT(lines("my_pool device_alloc"), 1);
    CHECK_INT(lines("my_pool device_free"), 0);
    CHECK_UINT(counts().retries, 2);
    fail(&mine, "device_alloc", 0, 1, 4); /* nothing is freed here: no success */
    BAD(cai_manager_alloc(&memory, &emm, 50, 0, s2, &err), CAI_ERR_CUDA, "device_alloc of my_pool");
    CHECK_INT(err.native, 4);
    close_emm();
}

/* What is deferred goes first - in a scope of defer, too -, then what has passed of the keep-alive list; only
 * CAI_MANAGER_DRAIN has the host wait for the rest of that. */
static void check_retry_steps(int32_t flags)
{
    cai_array passed, waits;
    cai_manager_options options = list_options();
    cai_memory_handle memory = 9, old;
    const int64_t extent = 100;
    fill_hooks(&mine, "my_pool", 0);
    open_sim();
    options.flags = flags;
    GOOD(cai_manager_init(&emm, &pool, &mine.hooks, &options, &err));
    GOOD(cai_manager_array(&passed, &emm, CAI_INT8, 1, &extent, s1, &err));
    GOOD(cai_manager_array(&waits, &emm, CAI_INT8, 1, &extent, s3, &err));
    GOOD(cai_keepalive_push(&passed, &pool, s1, &err));
    CHECK_INT(cai_sim_stream_synchronize(sim, s1), 0);
    CHECK_INT(cai_sim_launch(sim, s3, "long", NULL, NULL, NULL, 0), 0);
    GOOD(cai_keepalive_push(&waits, &pool, s3, &err));
    old = get(30, s2);
    GOOD(cai_manager_defer_begin(&emm, &err));
    let(old, s2);
    counted(2, 200, 1, 30);
    fail(&mine, "device_alloc", 0, 2, 2);
    trace_clear();
    memory = get(50, s2);
    CHECK_INT(pool.waiting, 1);
    CHECK_INT(lines("my_pool device_free b1 legacy\n"), 1);
    CHECK_INT(lines("my_pool device_free b3 legacy\n"), 1);
    CHECK_INT(lines("my_pool device_alloc"), 3);
    CHECK_INT(lines("event_synchronize"), 0);
    CHECK(strstr(trace, "device_free b3") < strstr(trace, "device_free b1"));
    counted(2, 150, 0, 0);
    CHECK_UINT(counts().retries, 1);
    fail(&mine, "device_alloc", 0, 3, 2);
    old = 9;
    if (flags) {
        old = get(20, s2);
        let(old, s2);
    } else {
        BAD(cai_manager_alloc(&old, &emm, 20, 0, s2, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc");
        CHECK_UINT(old, 9);
        GOOD(cai_keepalive_drain(&pool, &err));
    }
    CHECK_INT(pool.waiting, 0);
    CHECK(lines("event_synchronize") == 1 || cai_sim_options(sim) & CAI_SIM_PROGRESS);
    let(memory, s2);
    GOOD(cai_manager_defer_end(&emm, &err));
    close_emm();
}

/* A free that fails in such a flush is counted, not told; the others go all the same. */
static void check_retry_failing_free(void)
{
    cai_memory_handle a, b, memory;
    open_plugin(CAI_EMM_FREES_WAIT, 0);
    a = get(5, s1);
    b = get(7, s1);
    let(a, s1);
    let(b, s1);
    fail(&mine, "device_free", 0, 1, 999);
    BAD(cai_manager_alloc(&memory, &emm, (size_t)1 << 30, 0, s1, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc");
    CHECK_UINT(counts().failed, 1);
    CHECK_INT(counts().first_failure, 999);
    CHECK_UINT(counts().freed, 2);
    CHECK_INT(mine.live, 1);
    counted(0, 0, 0, 0);
    fail(&mine, "", 0, 0, 0);
    take(&mine, 'd', mine.blocks[0].ptr, 5, 0);
    close_emm();
}

/* Streams that capture: nothing is allocated or freed there. */
static void check_capture(void)
{
    cai_memory_handle memory = 9, a;
    open_plugin(CAI_EMM_FREES_WAIT, 0);
    a = get(10, s1);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_THREAD_LOCAL), 0);
    BAD(cai_manager_alloc(&memory, &emm, 50, 0, s1, &err), CAI_ERR_CAPTURE, "captur");
    CHECK_UINT(memory, 9);
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_CAPTURE, "captur");
    CHECK_INT(info_of(a).references, 1); /* kept */
    CHECK_INT(lines("my_pool device_free"), 0);
    CHECK_INT(lines("my_pool device_alloc 50"), 0);
    memory = get(50, s2); /* elsewhere it goes on */
    let(memory, s2);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    let(a, s1);
    close_emm();
}

/* Deferred frees stay while no stream of the manager is allowed, where hooks are stream-ordered. */
static void check_capture_flush(void)
{
    cai_memory_handle a, b;
    open_plugin(0, 0);
    a = get(10, s1);
    b = get(20, s2);
    GOOD(cai_manager_defer_begin(&emm, &err));
    let(a, s1);
    let(b, s2);
    GOOD(cai_manager_defer_end(&emm, &err));
    counted(0, 0, 2, 30);
    CHECK_INT(cai_sim_capture_begin(sim, CAI_STREAM_PER_THREAD, CAI_SIM_MODE_THREAD_LOCAL), 0);
    trace_clear();
    GOOD(cai_manager_flush(&emm, &err));
    logged("context_current -> c1\nstream_capture legacy ! 906\nstream_capture per_thread -> active 1\n"
           "stream_capture legacy ! 906\nstream_capture per_thread -> active 1\n");
    counted(0, 0, 2, 30);
    BAD(cai_manager_destroy(&emm, &err), CAI_ERR_CAPTURE, "captur");
    CHECK_INT(cai_manager_destroy(&emm, NULL), CAI_ERR_CAPTURE);
    CHECK_INT(mine.live, 2);
    counted(0, 0, 2, 30);
    CHECK_INT(cai_sim_capture_end(sim, CAI_STREAM_PER_THREAD, NULL), 0);
    GOOD(cai_manager_flush(&emm, &err));
    counted(0, 0, 0, 0);
    close_emm();
}

/* ------------------------------------------------------------------ deferring */

static void get_and_let(int32_t count, size_t size)
{
    while (count-- > 0) let(get(size, s1), s1);
}

/* test_deallocations.py: 10 wait, the 11th frees all. The capacity is not known here: no byte limit. */
static void check_count_rule(void)
{
    open_plugin(CAI_EMM_FREES_WAIT, 0);
    get_and_let(10, (size_t)1 << 20);
    counted(0, 0, 10, (uint64_t)10 << 20);
    CHECK_INT(mine.live, 10);
    CHECK_INT(lines("my_pool device_free"), 0);
    get_and_let(1, 1);
    CHECK_INT(mine.live, 0);
    CHECK_INT(lines("my_pool device_free"), 11);
    counted(0, 0, 0, 0);
    CHECK_UINT(counts().freed, 11);
    get_and_let(20, 100); /* Numba's vector: of 20, 11 go, 9 wait; two more are 11, and go */
    counted(0, 0, 9, 900);
    get_and_let(2, 100);
    counted(0, 0, 0, 0);
    close_emm();
    fill_hooks(&mine, "my_pool", CAI_EMM_FREES_WAIT);
    open_sim();
    make_emm(&mine.hooks, 0, 3);
    get_and_let(3, 1);
    CHECK_INT(mine.live, 3);
    get_and_let(1, 1);
    CHECK_INT(mine.live, 0);
    close_emm();
}

/* By bytes: as many as the limit wait, one more does not. A fifth of what the hook tells, or the option. */
static void check_byte_rule(void)
{
    int32_t by_option;
    for (by_option = 0; by_option < 2; by_option++) {
        fill_hooks(&mine, "my_pool", CAI_EMM_FREES_WAIT);
        mine.hooks.memory_info = plug_memory_info;
        mine.total_bytes = 502; /* a fifth of it is 100 */
        open_sim();
        make_emm(&mine.hooks, by_option ? 100 : 0, 0);
        get_and_let(1, 60);
        CHECK_INT(lines("my_pool memory_info"), !by_option);
        get_and_let(1, 40);
        counted(0, 0, 2, 100);
        CHECK_INT(mine.live, 2);
        get_and_let(1, 1);
        CHECK_INT(mine.live, 0);
        counted(0, 0, 0, 0);
        get_and_let(1, 101); /* alone */
        CHECK_INT(mine.live, 0);
        get_and_let(1, 100);
        CHECK_INT(mine.live, 1);
        close_emm();
    }
}

/* memory_info that fails, or tells nothing, is no limit. */
static void check_no_byte_limit(void)
{
    int32_t fails;
    for (fails = 0; fails < 2; fails++) {
        fill_hooks(&mine, "my_pool", CAI_EMM_FREES_WAIT);
        mine.hooks.memory_info = plug_memory_info;
        mine.total_bytes = fails ? 100 : 0;
        if (fails) fail(&mine, "memory_info", 0, 1, 801);
        open_sim();
        make_emm(&mine.hooks, 0, 0);
        get_and_let(10, 5000);
        CHECK_INT(lines("my_pool memory_info"), 1);
        counted(0, 0, 10, 50000);
        close_emm();
    }
}

/* Of 5 and 7 bytes the first fails: the other goes, and nothing is left in the books (Numba: 1 and 12). */
static void check_failing_free(void)
{
    cai_memory_handle a, b, c;
    open_plugin(CAI_EMM_FREES_WAIT, 0);
    a = get(5, s1);
    b = get(7, s1);
    c = get(11, s1);
    let(a, s1);
    let(b, s1);
    let(c, s1);
    counted(0, 0, 3, 23);
    fail(&mine, "device_free", 0, 2, 719);
    trace_clear();
    BAD(cai_manager_flush(&emm, &err), CAI_ERR_CUDA, "device_free of my_pool: CUDA error 719 (launch failure)");
    CHECK_INT(err.native, 719);
    logged("context_current -> c1\nstream_capture legacy -> none\nstream_wait_event legacy e1\n"
           "my_pool device_free b1 legacy ! 719\nevent_destroy e1\nstream_capture legacy -> none\n"
           "stream_wait_event legacy e2\nmy_pool device_free b2 legacy ! 719\nevent_destroy e2\n"
           "stream_capture legacy -> none\nstream_wait_event legacy e3\nmy_pool device_free b3 legacy\n"
           "event_destroy e3\n");
    counted(0, 0, 0, 0);
    CHECK_UINT(counts().failed, 2);
    CHECK_INT(counts().first_failure, 719);
    CHECK_UINT(counts().freed, 3);
    GOOD(cai_manager_flush(&emm, &err)); /* not tried again */
    logged("");
    CHECK_INT(mine.live, 2);
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_STALE, "");
    fail(&mine, "", 0, 0, 0);
    take(&mine, 'd', mine.blocks[0].ptr, 5, 0);
    take(&mine, 'd', mine.blocks[1].ptr, 7, 0);
    close_emm();
}

/* Without deferring: the hook's error is told, the reference is gone. Error 4 is success. */
static void check_failing_free_at_once(void)
{
    cai_memory_handle a;
    open_plugin(0, 0);
    a = get(5, s1);
    fail(&mine, "device_free", 0, 1, 700);
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_CUDA, "device_free of my_pool: CUDA error 700");
    CHECK_INT(err.native, 700);
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_STALE, "");
    CHECK_UINT(counts().failed, 1);
    counted(0, 0, 0, 0);
    a = get(6, s1);
    fail(&mine, "device_free", 0, 1, 4);
    GOOD(cai_manager_free(&emm, a, s1, &err));
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_STALE, "");
    CHECK_UINT(counts().failed, 1);
    CHECK_UINT(counts().freed, 2);
    CHECK_INT(counts().first_failure, 700);
    take(&mine, 'd', mine.blocks[0].ptr, 5, 0);
    take(&mine, 'd', mine.blocks[1].ptr, 6, 0);
    close_emm();
}

/* ------------------------------------------------------------------ defer */

/* test_deallocations.py: a flush inside does nothing, also nested; the end frees only above a limit. */
static void check_defer(void)
{
    open_plugin(CAI_EMM_FREES_WAIT, 0);
    GOOD(cai_manager_defer_begin(&emm, &err));
    logged("");
    get_and_let(12, 10);
    counted(0, 0, 12, 120);
    GOOD(cai_manager_flush(&emm, &err));
    counted(0, 0, 12, 120);
    GOOD(cai_manager_defer_begin(&emm, &err));
    get_and_let(1, 10);
    GOOD(cai_manager_flush(&emm, &err));
    counted(0, 0, 13, 130);
    GOOD(cai_manager_defer_end(&emm, &err));
    GOOD(cai_manager_flush(&emm, &err));
    counted(0, 0, 13, 130);
    CHECK_INT(lines("my_pool device_free"), 0);
    GOOD(cai_manager_defer_end(&emm, &err));
    counted(0, 0, 0, 0);
    CHECK_INT(lines("my_pool device_free"), 13);
    GOOD(cai_manager_defer_begin(&emm, &err));
    get_and_let(10, 10);
    GOOD(cai_manager_defer_end(&emm, &err)); /* at the limit: nothing */
    counted(0, 0, 10, 100);
    GOOD(cai_manager_flush(&emm, &err));
    counted(0, 0, 0, 0);
    REFUSED(cai_manager_defer_end(&emm, &err), CAI_ERR_ARGUMENT, "defer");
    CHECK_INT(emm.defer_depth, 0);
    close_emm();
}

/* Frees that do not wait are deferred inside, and the scope is balanced when something in it fails. */
static void check_defer_failing(void)
{
    cai_memory_handle a, b, memory = 9;
    open_plugin(0, 1);
    a = get(10, s1);
    b = get(20, s1);
    trace_clear();
    GOOD(cai_manager_defer_begin(&emm, &err));
    logged("context_current -> c1\nmy_pool defer 1\n");
    GOOD(cai_manager_defer_begin(&emm, &err));
    let(a, s1);
    counted(1, 20, 1, 10);
    fail(&mine, "device_alloc", 0, 1, 999);
    BAD(cai_manager_alloc(&memory, &emm, 1, 0, s1, &err), CAI_ERR_CUDA, "device_alloc");
    BAD(cai_manager_destroy(&emm, &err), CAI_ERR_PENDING, "");
    BAD(cai_manager_reset(&emm, &err), CAI_ERR_PENDING, "defer");
    let(b, s1);
    BAD(cai_manager_destroy(&emm, &err), CAI_ERR_PENDING, "scope");
    GOOD(cai_manager_defer_end(&emm, &err));
    CHECK_INT(mine.deferring, 1);
    CHECK_INT(lines("my_pool device_free"), 0);
    trace_clear();
    GOOD(cai_manager_defer_end(&emm, &err));
    logged("context_current -> c1\nmy_pool defer 0\n");
    counted(0, 0, 2, 30);
    fail(&mine, "defer", 0, 1, 700);
    BAD(cai_manager_defer_begin(&emm, &err), CAI_ERR_CUDA, "defer of my_pool: CUDA error 700");
    CHECK_INT(emm.defer_depth, 0);
    REFUSED(cai_manager_defer_end(&emm, &err), CAI_ERR_ARGUMENT, "defer");
    GOOD(cai_manager_defer_begin(&emm, &err));
    fail(&mine, "defer", 0, 1, 719);
    BAD(cai_manager_defer_end(&emm, &err), CAI_ERR_CUDA, "defer of my_pool: CUDA error 719");
    CHECK_INT(emm.defer_depth, 0); /* the scope is over */
    close_emm();
}

/* ------------------------------------------------------------------ host and managed memory */

static cai_memory_handle pinned(void *ptr, size_t size)
{
    cai_memory_handle memory = 9;
    GOOD(cai_manager_pin(&memory, &emm, ptr, size, 0, &err));
    return memory;
}

/* Flags reach the hooks as they are, and no stream is asked. */
static void check_host_flags(void)
{
    cai_memory_handle h, m, g, p, memory = 9;
    size_t unused;
    char bytes[64];
    open_plugin(0, 1);
    GOOD(cai_manager_device_memory(&emm, &unused, &unused, &err)); /* which initializes the table */
    trace_clear();
    GOOD(cai_manager_pinned_alloc(&h, &emm, 100, CAI_HOST_PORTABLE | CAI_HOST_WRITE_COMBINED, &err));
    GOOD(cai_manager_pinned_alloc(&m, &emm, 101, CAI_HOST_MAPPED, &err));
    GOOD(cai_manager_managed_alloc(&g, &emm, 102, CAI_MANAGED_HOST, &err));
    GOOD(cai_manager_pin(&p, &emm, bytes, 64, CAI_HOST_PORTABLE | CAI_HOST_MAPPED, &err));
    logged("context_current -> c1\nmy_pool host_alloc 100 flags 5 -> b1\n"
           "context_current -> c1\nmy_pool host_alloc 101 flags 2 -> b2\n"
           "context_current -> c1\nmy_pool managed_alloc 102 flags 2 -> b3\n"
           "context_current -> c1\nmy_pool pin 64 flags 3\n");
    CHECK_INT(info_of(h).kind, CAI_MEMORY_PINNED);
    CHECK_INT(info_of(m).kind, CAI_MEMORY_MAPPED);
    CHECK_INT(info_of(g).kind, CAI_MEMORY_MANAGED);
    CHECK_INT(info_of(p).kind, CAI_MEMORY_REGISTERED);
    CHECK(cai_manager_pointer(&emm, p) == (void *)bytes);
    counted(4, 100 + 101 + 102 + 64, 0, 0);
    BAD(cai_manager_pin(&memory, &emm, bytes, 64, 0, &err), CAI_ERR_CUDA, /* K17 */
        "pin of my_pool: CUDA error 712");
    CHECK_UINT(memory, 9);
    let(h, s1);
    let(m, s2);
    let(g, 1);
    let(p, s1);
    CHECK_INT(lines("my_pool host_free b1 s1\n"), 1);
    CHECK_INT(lines("my_pool host_free b2 s2\n"), 1);
    CHECK_INT(lines("my_pool managed_free b3 legacy\n"), 1);
    CHECK_INT(lines("my_pool unpin b4 s1\n"), 1);
    close_emm();
}

static void check_host_flags_refused(void)
{
    cai_memory_handle memory = 9;
    char byte;
    open_plugin(0, 1);
    REFUSED(cai_manager_pin(&memory, &emm, &byte, 1, CAI_HOST_WRITE_COMBINED, &err), CAI_ERR_ARGUMENT, "flags");
    CHECK_UINT(memory, 9);
    memory = 9;
    REFUSED(cai_manager_pinned_alloc(&memory, &emm, 1, 8, &err), CAI_ERR_ARGUMENT, "flags");
    CHECK_UINT(memory, 9);
    memory = 9;
    REFUSED(cai_manager_managed_alloc(&memory, &emm, 1, 4, &err), CAI_ERR_ARGUMENT, "flags");
    CHECK_UINT(memory, 9);
    GOOD(cai_manager_managed_alloc(&memory, &emm, 1, 0, &err)); /* CAI_MANAGED_GLOBAL */
    CHECK_INT(lines("my_pool managed_alloc 1 flags 1 -> b1\n"), 1);
    let(memory, s1);
    close_emm();
}

/* numba#3532: pin, unpin, pin; at once, in a scope of defer as well. The host waits for the stream first. */
static void check_pin_is_immediate(void)
{
    char bytes[64];
    int32_t i;
    open_plugin(CAI_EMM_FREES_WAIT, 1);
    GOOD(cai_manager_defer_begin(&emm, &err));
    for (i = 0; i < 3; i++) {
        const cai_memory_handle p = pinned(bytes, 64);
        char text[300];
        trace_clear();
        let(p, s1);
        sprintf(text, "context_current -> c1\nstream_capture s1 -> none\ncapture_mode relaxed -> global\n"
                      "stream_synchronize s1\ncapture_mode global -> relaxed\nmy_pool unpin b%d s1\n",
                (int)mine.count);
        logged(text);
        counted(0, 0, 0, 0);
    }
    GOOD(cai_manager_defer_end(&emm, &err));
    {
        const cai_memory_handle p = pinned(bytes, 64);
        fail(&mine, "unpin", 0, 1, 713);
        BAD(cai_manager_free(&emm, p, s1, &err), CAI_ERR_CUDA, "unpin of my_pool: CUDA error 713");
        CHECK_UINT(counts().failed, 1);
        take(&mine, 'p', bytes, 64, 0);
    }
    close_emm();
}

/* The same over CUDA's own functions. */
static void check_pin_of_cuda(void)
{
    static char bytes[4096];
    cai_memory_handle p;
    open_cuda();
    GOOD(cai_manager_defer_begin(&emm, &err));
    p = pinned(bytes, 4096);
    let(p, s1);
    p = pinned(bytes, 4096);
    let(p, s2);
    GOOD(cai_manager_defer_end(&emm, &err));
    CHECK_INT(lines("host_register"), 2);
    CHECK_INT(lines("host_unregister"), 2);
    close_emm();
}

/* The frees of the CUDA_HOST functions are always deferred: of pinned, mapped, device and managed memory,
 * silently, after they were queued. */
static void check_silent_frees(int32_t async)
{
    cai_memory_handle d, h, m, g;
    if (async) open_async();
    else open_cuda();
    d = get(1000, s1);
    GOOD(cai_manager_pinned_alloc(&h, &emm, 1001, 0, &err));
    GOOD(cai_manager_pinned_alloc(&m, &emm, 1002, CAI_HOST_MAPPED | CAI_HOST_PORTABLE, &err));
    GOOD(cai_manager_managed_alloc(&g, &emm, 1003, CAI_MANAGED_GLOBAL, &err));
    CHECK_INT(lines("host_alloc 1001 flags 0"), 1);
    CHECK_INT(lines("host_alloc 1002 flags 3"), 1);
    CHECK_INT(lines("managed_alloc 1003 flags 1"), 1);
    CHECK_INT(info_of(d).kind, async ? CAI_MEMORY_POOL : CAI_MEMORY_DEVICE);
    trace_clear();
    let(h, s1);
    let(m, s1);
    let(g, s2);
    let(d, s1);
    CHECK_INT(lines("host_free") + lines("memory_free "), 0);
    CHECK_INT(lines("memory_free_async"), async);
    counted(0, 0, async ? 3 : 4, async ? 3006 : 4006);
    trace_clear();
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_INT(lines("host_free"), 2);
    CHECK_INT(lines("memory_free "), async ? 1 : 2);
    counted(0, 0, 0, 0);
    CHECK_UINT(counts().freed, 4);
    CHECK_UINT(counts().failed, 0);
    close_emm();
}

/* ------------------------------------------------------------------ references */

static void check_references(void)
{
    cai_memory_handle memory;
    open_plugin(0, 0);
    memory = get(10, s1);
    CHECK_INT(info_of(memory).references, 1);
    GOOD(cai_manager_retain(&emm, memory, &err));
    GOOD(cai_manager_retain(&emm, memory, &err));
    CHECK_INT(info_of(memory).references, 3);
    let(memory, s1);
    let(memory, s1);
    counted(1, 10, 0, 0);
    CHECK_INT(lines("my_pool device_free"), 0);
    trace_clear();
    let(memory, s1);
    logged("context_current -> c1\nstream_capture s1 -> none\nstream_wait_event s1 e2\n"
           "my_pool device_free b1 s1\nevent_destroy e2\n");
    BAD(cai_manager_free(&emm, memory, s1, &err), CAI_ERR_STALE, "");
    BAD(cai_manager_retain(&emm, memory, &err), CAI_ERR_STALE, "");
    close_emm();
}

/* ------------------------------------------------------------------ streams */

static void check_streams(void)
{
    cai_memory_handle memory;
    open_plugin(0, 0);
    memory = get(10, s1);
    REFUSED(cai_manager_free(&emm, memory, 0, &err), CAI_ERR_STREAM, "stream 0");
    REFUSED(cai_manager_free(&emm, memory, UINT64_MAX, &err), CAI_ERR_STREAM, "stream -1");
    GOOD(cai_manager_retain(&emm, memory, &err));
    GOOD(cai_manager_retain(&emm, memory, &err));
    trace_clear();
    let(memory, s2); /* not the last one: an event */
    CHECK_INT(lines("event_record e1 s2"), 1);
    CHECK_INT(lines("stream_wait_event"), 0);
    trace_clear();
    let(memory, s1); /* one event for both */
    CHECK_INT(lines("stream_wait_event s1 e1"), 1);
    CHECK_INT(lines("event_record e2 s1"), 1);
    CHECK_INT(lines("event_destroy e1"), 1);
    trace_clear();
    let(memory, s3); /* the last one: s3 waits for it */
    CHECK_INT(lines("stream_wait_event s3 e"), 1);
    CHECK_INT(lines("event_record"), 0);
    CHECK_INT(lines("event_destroy e"), 1);
    CHECK_INT(lines("my_pool device_free b1 s3"), 1);
    memory = get(10, s1);
    trace_clear();
    let(memory, s2); /* the caller owes that s2 comes after s1 */
    logged("context_current -> c1\nstream_capture s2 -> none\nmy_pool device_free b2 s2\n");
    close_emm();
}

/* Pinned memory: an event of each reference, and the last free comes after it. */
static void check_host_streams(void)
{
    cai_memory_handle memory;
    open_plugin(0, 1);
    GOOD(cai_manager_pinned_alloc(&memory, &emm, 10, 0, &err));
    GOOD(cai_manager_retain(&emm, memory, &err));
    trace_clear();
    let(memory, s2);
    CHECK_INT(lines("event_record e1 s2"), 1);
    let(memory, s3);
    CHECK_INT(lines("stream_wait_event s3 e1"), 1);
    CHECK_INT(lines("stream_synchronize"), 0);
    CHECK_INT(lines("my_pool host_free b1 s3"), 1);
    close_emm();
}

/* Stream 2 is that of one host thread. */
static void check_threads(void)
{
    cai_memory_handle memory;
    open_plugin(0, 0);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    memory = get(10, CAI_STREAM_PER_THREAD);
    GOOD(cai_manager_retain(&emm, memory, &err));
    let(memory, CAI_STREAM_PER_THREAD);
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(info_of(memory).references, 1);
    trace_clear();
    let(memory, s1); /* no host waits */
    CHECK_INT(lines("stream_wait_event s1 e1"), 1);
    CHECK_INT(lines("my_pool device_free b1 s1"), 1);
    cai_sim_host_thread(sim, 0);
    close_emm();
}

/* From another context, and without one: the manager's is current in hooks, the old one again after it. */
static void check_contexts(void)
{
    const char *const names[2] = {"none", "c2"};
    cai_memory_handle memory;
    char text[300];
    int32_t i;
    open_plugin(0, 0);
    for (i = 0; i < 2; i++) {
        CHECK_INT(cai_sim_set_context(sim, i ? c2 : 0), 0);
        trace_clear();
        memory = get(10, s1);
        sprintf(text, "context_current -> %s\ncontext_id c1 -> 1\ncontext_push c1\nstream_capture s1 -> none\n"
                      "my_pool device_alloc 10 s1 -> b%d\ncontext_pop\n", names[i], (int)i + 1);
        logged(text);
        let(memory, s1);
        sprintf(text, "context_current -> %s\ncontext_id c1 -> 1\ncontext_push c1\nstream_capture s1 -> none\n"
                      "my_pool device_free b%d s1\ncontext_pop\n", names[i], (int)i + 1);
        logged(text);
        CHECK_UINT(cai_sim_current(sim), i ? c2 : 0);
    }
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    close_emm();
}

/* ------------------------------------------------------------------ reset */

/* K03, K04, R114: what the reset took is lost; freeing it is success, whatever lies at its address now. */
static void check_reset(void)
{
    const int64_t extent = 1;
    cai_memory_handle a, b, fresh;
    cai_array array;
    char byte;
    open_plugin(0, 1);
    GOOD(cai_array_init(&array, CAI_INT8, 1, &extent, NULL, &byte, &err));
    GOOD(cai_manager_reset(&emm, &err)); /* before the first use */
    CHECK_INT(lines("my_pool initialize"), 0);
    CHECK_INT(lines("my_pool reset"), 1);
    a = get(10, s1);
    b = get(20, s2);
    trace_clear();
    GOOD(cai_manager_reset(&emm, &err));
    logged("context_current -> c1\nmy_pool reset\n");
    counted(0, 0, 0, 0);
    CHECK_INT(info_of(a).lost, 1);
    CHECK(cai_manager_pointer(&emm, a) == NULL && cai_manager_pointer(&emm, b) == NULL);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 2);
    BAD(cai_manager_own(&array, &emm, a, &err), CAI_ERR_STALE, "a reset freed");
    CHECK_INT(err.rule, 114);
    fresh = get(10, s1);
    CHECK_INT(lines("my_pool initialize 0"), 1); /* again */
    mine.blocks[mine.count - 1].stream = s1;
    BAD(cai_manager_destroy(&emm, &err), CAI_ERR_PENDING, "");
    trace_clear();
    let(a, s1);
    let(b, s1);
    CHECK_INT(lines("my_pool"), 0);
    CHECK_INT(mine.live, 1);
    CHECK_UINT(counts().lost, 2);
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_STALE, "");
    counted(1, 10, 0, 0);
    let(fresh, s1);
    close_emm();
}

/* Without the hook: one free each; what is deferred goes first. */
static void check_reset_without_hook(void)
{
    cai_memory_handle a, b, h, old;
    fill_all_hooks(&mine, "my_pool", CAI_EMM_FREES_WAIT);
    clear_hook(&mine.hooks, "reset");
    open_sim();
    make_emm(&mine.hooks, 0, 0);
    old = get(1, s1);
    a = get(2, s2);
    b = get(3, s3);
    GOOD(cai_manager_pinned_alloc(&h, &emm, 4, 0, &err));
    let(old, s1);
    trace_clear();
    GOOD(cai_manager_reset(&emm, &err));
    CHECK(strstr(trace, "") != NULL);
    trace_take();
    CHECK(strstr(trace, "stream_capture legacy -> none\nmy_pool device_free b1 legacy\nevent_destroy e1\n"
                        "stream_capture legacy -> none\nmy_pool device_free b2 legacy\n"
                        "stream_capture legacy -> none\nmy_pool device_free b3 legacy\n"
                        "stream_capture legacy -> none\nmy_pool host_free b4 legacy\n") != NULL);
    CHECK_INT(mine.live, 0);
    counted(0, 0, 0, 0);
    let(a, s1);
    let(b, s1);
    let(h, s1);
    CHECK_UINT(counts().lost, 3);
    close_emm();
}

/* A hook that fails in it: the rest is done. */
static void check_reset_failing(void)
{
    cai_memory_handle a, b;
    open_plugin(CAI_EMM_FREES_WAIT, 1);
    a = get(1, s1);
    b = get(2, s2);
    let(a, s1);
    fail(&mine, "reset", 0, 1, 999);
    BAD(cai_manager_reset(&emm, &err), CAI_ERR_CUDA, "reset of my_pool: CUDA error 999");
    CHECK_INT(mine.live, 0);
    counted(0, 0, 0, 0);
    mine.fail = NULL;
    let(b, s2);
    a = get(1, s1);
    b = get(2, s1);
    let(a, s1);
    fail(&mine, "device_free", 0, 1, 719);
    BAD(cai_manager_reset(&emm, &err), CAI_ERR_CUDA, "device_free of my_pool");
    CHECK_INT(mine.live, 0); /* the hook came all the same */
    let(b, s1);
    close_emm();
}

/* ------------------------------------------------------------------ ipc */

static void check_ipc(void)
{
    cai_memory_handle memory, h;
    cai_memory_ipc ipc;
    unsigned char handle[64];
    open_cuda();
    memory = get(1000, s1);
    memset(&ipc, 0x5a, sizeof ipc);
    GOOD(cai_manager_ipc_handle(&emm, memory, &ipc, &err));
    CHECK_UINT(ipc.offset, 0);
    CHECK_UINT(ipc.size, 1000);
    CHECK_INT(ipc.device, 0);
    CHECK_INT(ipc.reserved, 0);
    CHECK_INT(cuda.ipc_export(sim, (uint64_t)(uintptr_t)cai_manager_pointer(&emm, memory), handle), 0);
    CHECK_BYTES(ipc.handle, handle, 64);
    GOOD(cai_manager_pinned_alloc(&h, &emm, 10, 0, &err));
    REFUSED(cai_manager_ipc_handle(&emm, h, &ipc, &err), CAI_ERR_MEMORY, "");
    CHECK_INT(err.rule, 116);
    let(h, s1);
    let(memory, s1);
    REFUSED(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_STALE, "");
    memory = get(10, s1);
    GOOD(cai_manager_reset(&emm, &err));
    REFUSED(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_STALE, "");
    let(memory, s1);
    close_emm();
    open_async(); /* K16 */
    memory = get(10, s1);
    trace_clear();
    CHECK(cai_manager_ipc_handle(&emm, memory, &ipc, &err) != CAI_OK);
    CHECK(err.code == CAI_ERR_MEMORY || err.code == CAI_ERR_UNAVAILABLE);
    logged("");
    let(memory, s1);
    close_emm();
}

/* ------------------------------------------------------------------ arrays */

static void check_one_array(int32_t code, int32_t ndim, const int64_t *shape, int64_t nbytes)
{
    cai_array array;
    memset(&array, 0x5a, sizeof array);
    GOOD(cai_manager_array(&array, &emm, code, ndim, shape, s2, &err));
    CHECK_INT(array.nbytes, nbytes);
    CHECK(array.flags & CAI_C_CONTIGUOUS);
    CHECK(array.flags & CAI_WRITABLE);
    CHECK(array.release != NULL);
    CHECK_INT(array.dtype.code, code);
    CHECK_INT(array.sync, CAI_SYNC_STREAM);
    CHECK_UINT(array.stream, s2);
    CHECK_INT(array.device, 0);
    CHECK_INT(array.memory, CAI_MEMORY_DEVICE);
    CHECK_UINT(mine.blocks[mine.count - 1].size, (uint64_t)nbytes);
    CHECK(array.data == (uint64_t)(uintptr_t)mine.blocks[mine.count - 1].ptr);
    GOOD(cai_array_check(&array, &err));
    counted(1, (uint64_t)nbytes, 0, 0);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 1);
    cai_array_release(&array);
    CHECK(array.release == NULL);
    CHECK_INT(mine.live, 0);
    counted(0, 0, 0, 0);
}

static void check_array_shapes(void)
{
    const int64_t shapes[3] = {3, 4, 5};
    const int64_t empties[3] = {3, 0, 5};
    cai_array array;
    int64_t ones[64];
    int32_t i;
    open_plugin(0, 1);
    for (i = 0; i < 64; i++) ones[i] = 1;
    check_one_array(CAI_FLOAT32, 0, NULL, 4);
    check_one_array(CAI_FLOAT64, 1, shapes, 24);
    check_one_array(CAI_FLOAT32, 3, shapes, 240);
    check_one_array(CAI_COMPLEX128, 2, shapes, 192);
    check_one_array(CAI_INT8, 64, ones, 1);
    trace_clear();
    GOOD(cai_manager_array(&array, &emm, CAI_FLOAT32, 3, empties, s1, &err));
    logged("");
    CHECK_UINT(array.data, 0);
    CHECK(array.release == NULL);
    CHECK_INT(array.sync, CAI_SYNC_NONE);
    cai_array_release(&array);
    let(get(8, s1), s1);
    CHECK_INT(mine.live, 0);
    close_emm();
}

static void check_array_refused(void)
{
    const int64_t shape[2] = {INT64_MAX, 2}, negative[1] = {-1}, big[1] = {(int64_t)1 << 30};
    cai_array array, untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    memset(&array, 0x5a, sizeof array);
    open_plugin(0, 0);
    REFUSED(cai_manager_array(&array, &emm, CAI_INT8, 2, shape, s1, &err), CAI_ERR_SHAPE, "");
    REFUSED(cai_manager_array(&array, &emm, CAI_FLOAT64, 1, shape, s1, &err), CAI_ERR_SHAPE, "");
    REFUSED(cai_manager_array(&array, &emm, CAI_INT8, 1, negative, s1, &err), CAI_ERR_SHAPE, "");
    REFUSED(cai_manager_array(&array, &emm, CAI_INT8, -1, shape, s1, &err), CAI_ERR_ARGUMENT, "ndim");
    CHECK_INT(cai_manager_array(&array, &emm, CAI_INT8, 65, shape, s1, &err), cai_array_init(&array, CAI_INT8, 65,
              shape, NULL, NULL, &err));
    memset(&array, 0x5a, sizeof array);
    REFUSED(cai_manager_array(&array, &emm, CAI_INT8, 1, NULL, s1, &err), CAI_ERR_ARGUMENT, "shape");
    REFUSED(cai_manager_array(&array, &emm, 12345, 1, big, s1, &err), CAI_ERR_ARGUMENT, "");
    REFUSED(cai_manager_array(&array, &emm, CAI_INT8, 1, big, 0, &err), CAI_ERR_STREAM, "stream 0");
    BAD(cai_manager_array(&array, &emm, CAI_INT8, 1, big, s1, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc");
    CHECK_BYTES(&array, &untouched, sizeof array);
    counted(0, 0, 0, 0);
    close_emm();
}

/* The array of stream 2 says of which host thread it is; kinds of memory. */
static void check_array_facts(void)
{
    const int64_t extent = 8;
    cai_array array;
    uint64_t thread = 0;
    open_async();
    CHECK_INT(cuda.host_thread(sim, &thread), 0);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, CAI_STREAM_PER_THREAD, &err));
    CHECK_UINT(array.thread, thread);
    CHECK_INT(array.memory, CAI_MEMORY_DEVICE);
    CHECK_INT(array.sync, CAI_SYNC_STREAM);
    CHECK_UINT(array.stream, CAI_STREAM_PER_THREAD);
    cai_array_release(&array);
    CHECK_INT(lines("memory_free_async m1 per_thread"), 1);
    close_emm();
}

static void int8_at(cai_array *array, const char *data, int64_t extent, int64_t stride)
{
    GOOD(cai_array_init(array, CAI_INT8, 1, &extent, &stride, (void *)(uintptr_t)data, &err));
    array->sync = CAI_SYNC_NONE;
}

/* Inside is [0, 100); the extent counts, not the first element. */
static void check_own_ranges(void)
{
    const struct {
        int64_t at, extent, stride;
        int inside;
    } list[] = {{0, 100, 1, 1}, {0, 101, 1, 0}, {1, 100, 1, 0}, {99, 1, 1, 1}, {100, 1, 1, 0}, {-1, 1, 1, 0},
                {99, 100, -1, 1}, {98, 100, -1, 0}, {100, 100, -1, 0}, {0, 34, 3, 1}, {1, 34, 3, 0},
                {0, 2, 99, 1}, {0, 2, 100, 0}, {50, 2, -51, 0}, {50, 2, -50, 1}, {-200, 1, 1, 0},
                {50, 7, 0, 1}, {5000000, 1, 1, 0}};
    cai_memory_handle memory;
    cai_array array;
    char *base;
    size_t i;
    open_plugin(0, 0);
    memory = get(100, s1);
    base = (char *)cai_manager_pointer(&emm, memory);
    for (i = 0; i < sizeof list / sizeof list[0]; i++) {
        int8_at(&array, (const char *)((uintptr_t)base + (uintptr_t)(intptr_t)list[i].at), list[i].extent,
                list[i].stride);
        if (!list[i].inside) {
            REFUSED(cai_manager_own(&array, &emm, memory, &err), CAI_ERR_MEMORY, "");
            CHECK(array.release == NULL);
            CHECK_INT(array.memory, CAI_MEMORY_UNKNOWN);
            continue;
        }
        GOOD(cai_manager_own(&array, &emm, memory, &err));
        CHECK(array.release != NULL);
        CHECK_INT(array.memory, CAI_MEMORY_DEVICE);
        CHECK_INT(array.device, 0);
        counted(1, 100, 0, 0);
        cai_array_release(&array);
        CHECK_INT(info_of(memory).references, 1); /* yours stays */
    }
    let(memory, s1);
    CHECK_INT(lines("my_pool device_free b1 s1"), 1);
    close_emm();
}

/* Several arrays in one object: the last one frees it. A second free of the handle takes nothing from them. */
static void check_own_keeps(void)
{
    cai_memory_handle memory;
    cai_array a, b, c;
    cai_memory_object live[8];
    char *base;
    open_plugin(0, 0);
    memory = get(100, s1);
    base = (char *)cai_manager_pointer(&emm, memory);
    int8_at(&a, base, 50, 1);
    int8_at(&b, base + 50, 50, 1);
    int8_at(&c, base + 51, 50, 1);
    GOOD(cai_manager_own(&a, &emm, memory, &err));
    GOOD(cai_manager_own(&b, &emm, memory, &err));
    REFUSED(cai_manager_own(&c, &emm, memory, &err), CAI_ERR_MEMORY, "50 bytes at offset 51");
    REFUSED(cai_manager_own(&a, &emm, memory, &err), CAI_ERR_ARGUMENT, "own"); /* owned already */
    c.abi = 7;
    REFUSED(cai_manager_own(&c, &emm, memory, &err), CAI_ERR_ABI, "");
    CHECK_INT(cai_manager_list(&emm, live, 8), 1);
    CHECK_UINT(live[0].memory, memory);
    CHECK_INT(live[0].references, 3);
    let(memory, s1);
    counted(1, 100, 0, 0);
    BAD(cai_manager_free(&emm, memory, s1, &err), CAI_ERR_STALE, "");
    BAD(cai_manager_retain(&emm, memory, &err), CAI_ERR_STALE, "");
    CHECK(cai_manager_pointer(&emm, memory) == NULL);
    CHECK_INT(cai_manager_list(&emm, live, 1), 1);
    CHECK_UINT(live[0].memory, 0); /* arrays alone have it */
    CHECK_INT(live[0].references, 2);
    CHECK_INT(cai_manager_list(&emm, live, 1), cai_manager_list(&emm, NULL, 0));
    cai_array_release(&a);
    CHECK_INT(lines("my_pool device_free"), 0);
    cai_array_release(&b);
    cai_array_release(&b);
    CHECK_INT(lines("stream_wait_event legacy e1"), 1); /* after the free of the handle */
    CHECK_INT(lines("my_pool device_free b1 legacy"), 1);
    BAD(cai_manager_own(&c, &emm, memory, &err), CAI_ERR_ABI, "");
    int8_at(&c, base, 1, 1);
    REFUSED(cai_manager_own(&c, &emm, memory, &err), CAI_ERR_STALE, "");
    close_emm();
}

static void own_of(cai_memory_handle memory, int32_t memory_kind)
{
    cai_array array;
    int8_at(&array, (char *)cai_manager_pointer(&emm, memory), 8, 1);
    GOOD(cai_manager_own(&array, &emm, memory, &err));
    CHECK_INT(array.memory, memory_kind);
    CHECK_INT(array.flags & CAI_ORDERED_FREE, CAI_ORDERED_FREE);
    let(memory, s1);
    cai_array_release(&array);
}

static void check_own_kinds(void)
{
    cai_memory_handle h, m, g, p;
    char bytes[8];
    open_plugin(0, 1);
    GOOD(cai_manager_pinned_alloc(&h, &emm, 8, 0, &err));
    GOOD(cai_manager_pinned_alloc(&m, &emm, 8, CAI_HOST_MAPPED, &err));
    GOOD(cai_manager_managed_alloc(&g, &emm, 8, CAI_MANAGED_GLOBAL, &err));
    p = pinned(bytes, 8);
    own_of(h, CAI_MEMORY_PINNED);
    own_of(m, CAI_MEMORY_PINNED);
    own_of(g, CAI_MEMORY_MANAGED);
    own_of(p, CAI_MEMORY_PINNED);
    CHECK_INT(mine.live, 0);
    CHECK_INT(lines("my_pool unpin"), 1);
    h = get(8, s1);
    GOOD(cai_manager_reset(&emm, &err));
    {
        cai_array array;
        int8_at(&array, bytes, 8, 1);
        REFUSED(cai_manager_own(&array, &emm, h, &err), CAI_ERR_STALE, "");
    }
    let(h, s1);
    close_emm();
}

/* Release: in the order of the stream that the array names then. */
static void check_release_orders(void)
{
    const int64_t extent = 8;
    cai_array array;
    open_plugin(0, 0);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err));
    GOOD(cai_stream_export(&array, &pool, s2, &s1, 1, &err));
    trace_clear();
    cai_array_release(&array);
    logged("context_current -> c1\nstream_capture s2 -> none\nmy_pool device_free b1 s2\n"); /* not s1 */
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err));
    array.sync = CAI_SYNC_NONE;
    trace_clear();
    cai_array_release(&array);
    logged("context_current -> c1\nstream_capture legacy -> none\nmy_pool device_free b2 legacy\n");
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err));
    array.sync = CAI_SYNC_UNKNOWN;
    trace_clear();
    cai_array_release(&array);
    CHECK_INT(lines("context_synchronize"), 1);
    CHECK_INT(lines("my_pool device_free b3 legacy"), 1);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err));
    array.sync = CAI_SYNC_EVENT;
    array.event = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_event_record(sim, array.event, s3), 0);
    trace_clear();
    cai_array_release(&array);
    CHECK_INT(lines("stream_wait_event s1"), 1);
    CHECK_INT(lines("my_pool device_free b4 s1"), 1);
    CHECK_INT(cai_sim_event_destroy(sim, array.event), 0);
    close_emm();
}

/* A stream of another host thread, and one that captures. */
static void check_release_waits(void)
{
    const int64_t extent = 8;
    cai_array array;
    open_plugin(0, 0);
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, CAI_STREAM_PER_THREAD, &err));
    cai_sim_host_thread(sim, 8);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    trace_clear();
    cai_array_release(&array);
    CHECK_INT(lines("my_pool device_free b1 legacy"), 1); /* which comes after stream 2 of all threads */
    cai_sim_host_thread(sim, 0);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err));
    array.stream = s2;
    CHECK_INT(cai_sim_capture_begin(sim, s2, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&array);
    CHECK_INT(lines("my_pool device_free b2"), 0);
    counted(0, 0, 1, 8);
    GOOD(cai_manager_defer_begin(&emm, &err));
    GOOD(cai_manager_defer_end(&emm, &err)); /* it still captures */
    CHECK_INT(lines("my_pool device_free b2"), 0);
    CHECK_INT(cai_sim_capture_end(sim, s2, NULL), 0);
    CHECK_INT(lines("context_synchronize"), 0);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_INT(lines("context_synchronize"), 1);
    CHECK_INT(lines("my_pool device_free b2 legacy"), 1);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err));
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_THREAD_LOCAL), 0);
    cai_array_release(&array);
    CHECK(array.release == NULL);
    CHECK_INT(lines("my_pool device_free b3"), 0);
    counted(0, 0, 1, 8);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    GOOD(cai_manager_flush(&emm, &err));
    CHECK_INT(lines("my_pool device_free b3 legacy"), 1);
    CHECK_UINT(counts().failed, 0);
    close_emm();
}

/* ------------------------------------------------------------------ handles */

static void stale(cai_memory_handle memory)
{
    cai_memory_object info;
    cai_memory_ipc ipc;
    cai_array array;
    char byte = 0;
    int8_at(&array, &byte, 1, 1);
    REFUSED(cai_manager_free(&emm, memory, s1, &err), CAI_ERR_STALE, "");
    REFUSED(cai_manager_retain(&emm, memory, &err), CAI_ERR_STALE, "");
    REFUSED(cai_manager_describe(&emm, memory, &info, &err), CAI_ERR_STALE, "");
    REFUSED(cai_manager_ipc_handle(&emm, memory, &ipc, &err), CAI_ERR_STALE, "");
    REFUSED(cai_manager_own(&array, &emm, memory, &err), CAI_ERR_STALE, "");
    CHECK(cai_manager_pointer(&emm, memory) == NULL);
    CHECK_INT(cai_manager_free(&emm, memory, s1, NULL), CAI_ERR_STALE);
}

static uint64_t random_state = 20240607;

static uint64_t random_number(void) /* splitmix64 */
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Numbers that were never a handle, are near one, or are one of the past. */
static void check_garbage(void)
{
    cai_memory_handle memory, twin;
    int32_t i;
    open_plugin(0, 1);
    for (i = 0; i < 64; i++) stale((cai_memory_handle)1 << i); /* nothing was allocated yet */
    memory = get(10, s1);
    for (i = 0; i < 64; i++) {
        if (memory != (cai_memory_handle)1 << i) stale(memory ^ (cai_memory_handle)1 << i);
    }
    for (i = 0; i < 300; i++) stale(random_number());
    stale(UINT64_MAX);
    let(memory, s1);
    stale(memory);
    twin = get(10, s1); /* in the same place */
    CHECK(twin != memory);
    stale(memory);
    CHECK(cai_manager_pointer(&emm, twin) != NULL);
    let(twin, s1);
    stale(twin);
    stale(memory);
    for (i = 0; i < 40; i++) { /* never the same twice */
        const cai_memory_handle next = get(10, s1);
        CHECK(next != memory && next != twin);
        let(next, s1);
        stale(next);
    }
    close_emm();
}

/* Handles of another manager that this one has no place for. */
static void check_strangers(void)
{
    cai_manager second;
    cai_emm_hooks hooks;
    cai_memory_handle theirs[5];
    int32_t i;
    cai_emm_hooks_malloc(&hooks);
    open_plugin(0, 1);
    hooks.name[0] = 0;
    GOOD(cai_manager_init(&second, NULL, &hooks, NULL, &err));
    BAD(cai_manager_alloc(&theirs[0], &second, SIZE_MAX, 0, 1, &err), CAI_ERR_OUT_OF_MEMORY,
        "device_alloc of an unnamed table");
    for (i = 0; i < 5; i++) GOOD(cai_manager_alloc(&theirs[i], &second, 8, 0, 1, &err));
    for (i = 0; i < 5; i++) stale(theirs[i]);
    for (i = 0; i < 5; i++) GOOD(cai_manager_free(&second, theirs[i], 1, &err));
    GOOD(cai_manager_destroy(&second, &err));
    close_emm();
}

static void check_live(void)
{
    cai_memory_handle a, b, c;
    cai_memory_object live[8];
    open_plugin(0, 1);
    CHECK_INT(cai_manager_list(&emm, live, 8), 0);
    a = get(10, s1);
    b = get(20, s2);
    GOOD(cai_manager_retain(&emm, b, &err));
    GOOD(cai_manager_pinned_alloc(&c, &emm, 30, 0, &err));
    memset(live, 0x5a, sizeof live);
    CHECK_INT(cai_manager_list(&emm, live, 8), 3);
    CHECK(live[0].memory == a && live[1].memory == b && live[2].memory == c);
    CHECK(live[0].number == 1 && live[1].number == 2 && live[2].number == 3);
    CHECK(live[0].size == 10 && live[1].size == 20 && live[2].size == 30);
    CHECK(live[0].references == 1 && live[1].references == 2 && live[2].references == 1);
    CHECK(live[0].kind == CAI_MEMORY_DEVICE && live[2].kind == CAI_MEMORY_PINNED);
    CHECK(!live[0].lost && !live[1].lost && !live[2].lost);
    CHECK_UINT(live[1].address, (uintptr_t)cai_manager_pointer(&emm, b));
    memset(live, 0x5a, sizeof live);
    CHECK_INT(cai_manager_list(&emm, live, 2), 3);
    CHECK(live[1].memory == b);
    CHECK_UINT(live[2].memory, 0x5a5a5a5a5a5a5a5au);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 3);
    BAD(cai_manager_destroy(&emm, &err), CAI_ERR_PENDING, "");
    CHECK_UINT(counts().live, 3);
    let(a, s1);
    let(b, s1);
    let(b, s1);
    CHECK_INT(cai_manager_list(&emm, live, 8), 1);
    CHECK(live[0].memory == c);
    BAD(cai_manager_destroy(&emm, &err), CAI_ERR_PENDING, "");
    let(c, s1);
    CHECK_INT(cai_manager_list(&emm, live, 8), 0);
    close_emm();
}

/* ------------------------------------------------------------------ many objects */

static int64_t plain_live;

static int plain_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)stream;
    *ptr = (void *)(uintptr_t)(0x100000 + 0x100 * (uintptr_t)plain_live++); /* numbers, no memory */
    return size > 256 ? 2 : 0;
}

static int plain_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)stream, (void)size;
    CHECK(ptr != NULL);
    plain_live--;
    return 0;
}

static int compare(const void *x, const void *y)
{
    const cai_memory_handle a = *(const cai_memory_handle *)x, b = *(const cai_memory_handle *)y;
    return (a > b) - (a < b);
}

static cai_memory_handle many[MANY], sorted[MANY];

static int32_t wrong_of(const cai_memory_handle *list, int32_t count)
{
    int32_t i, wrong = 0;
    cai_memory_object info;
    for (i = 0; i < count; i++) {
        wrong += cai_manager_pointer(&emm, list[i]) != (void *)(uintptr_t)(0x100000 + 0x100 * (uintptr_t)i);
        wrong += cai_manager_describe(&emm, list[i], &info, &err) != CAI_OK || info.memory != list[i];
        wrong += info.number != (uint64_t)i + 1 || info.size != (uint64_t)(1 + i % 256);
    }
    return wrong;
}

static void check_many(void)
{
    cai_manager_options options = list_options();
    cai_emm_hooks hooks;
    int32_t i, wrong = 0;
    plain_live = 0;
    cai_emm_hooks_malloc(&hooks);
    hooks.device_alloc = plain_alloc;
    hooks.device_free = plain_free;
    memset(&emm, 0, sizeof emm);
    GOOD(cai_manager_init(&emm, NULL, &hooks, &options, &err));
    for (i = 0; i < MANY; i++)
        wrong += cai_manager_alloc(&many[i], &emm, (size_t)(1 + i % 256), 0, 1, &err) != CAI_OK;
    CHECK_INT(wrong, 0);
    memcpy(sorted, many, sizeof many);
    qsort(sorted, MANY, sizeof sorted[0], compare);
    for (i = 1; i < MANY; i++) wrong += sorted[i] == sorted[i - 1];
    CHECK_INT(wrong + (sorted[0] == 0), 0);
    CHECK_INT(wrong_of(many, MANY), 0);
    CHECK_UINT(counts().live, MANY);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), MANY);
    for (i = 0; i < MANY; i += 2) wrong += cai_manager_free(&emm, many[i], 1, &err) != CAI_OK;
    for (i = 0; i < MANY; i += 2) wrong += cai_manager_free(&emm, many[i], 1, &err) != CAI_ERR_STALE;
    for (i = 1; i < MANY; i += 2) wrong += cai_manager_pointer(&emm, many[i]) == NULL;
    CHECK_UINT(counts().live, MANY / 2);
    for (i = MANY - 1; i > 0; i -= 2) wrong += cai_manager_free(&emm, many[i], 1, &err) != CAI_OK;
    CHECK_INT(wrong, 0);
    CHECK_INT(plain_live, 0);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 0);
    CHECK_UINT(counts().freed, MANY);
    GOOD(cai_manager_destroy(&emm, &err));
    CHECK_INT(list_live, 0);
    CHECK_INT(list_bytes, 0);
    printf("%d objects, %ld lists of the manager\n", (int)MANY, (long)list_calls);
}

/* ------------------------------------------------------------------ no host memory */

/* Allocates until the manager wants a new list; returns the first failure. */
static cai_status use_lists(cai_memory_handle *list, int32_t *count, int32_t most)
{
    cai_status status = CAI_OK;
    while (*count < most && !status) {
        poison();
        list[*count] = 9;
        status = cai_manager_alloc(&list[*count], &emm, 8, 0, 1, &err);
        if (!status) ++*count;
    }
    if (status) CHECK_UINT(list[*count], 9);
    return status;
}

/* Every allocation of the manager's own fails in turn: an error, no leak, and it goes on. */
static void check_list_failures(void)
{
    enum { SOME = 3000 };
    cai_emm_hooks hooks;
    int32_t n, at, failures = 0;
    cai_emm_hooks_malloc(&hooks);
    hooks.device_alloc = plain_alloc;
    hooks.device_free = plain_free;
    for (n = 1; n < 100; n++) {
        cai_manager_options options = list_options();
        cai_status status;
        int32_t count = 0, struck;
        plain_live = 0;
        list_fail = n;
        poison();
        status = cai_manager_init(&emm, NULL, &hooks, &options, &err);
        if (!status) status = use_lists(many, &count, SOME);
        struck = list_calls >= n;
        CHECK_INT(status, struck ? CAI_ERR_OUT_OF_MEMORY : CAI_OK);
        if (status) CHECK_INT(err.code, status);
        if (status) CHECK_INT(err.native, 0);
        CHECK_INT(plain_live, count);
        failures += struck;
        if (status && emm.count.live != (uint64_t)count) CHECK_UINT(emm.count.live, (uint64_t)count);
        if (!status || list_live) CHECK_INT(use_lists(many, &count, SOME), CAI_OK);
        for (at = 0; at < count; at++) CHECK_INT(cai_manager_free(&emm, many[at], 1, &err), CAI_OK);
        if (count || !status) GOOD(cai_manager_destroy(&emm, &err));
        CHECK_INT(plain_live, 0);
        CHECK_INT(list_live, 0);
        CHECK_INT(list_bytes, 0);
        if (!struck) break;
    }
    CHECK(failures >= 2);
    printf("%d failures of alloc_fn\n", (int)failures);
}

/* An array wants a place in the lists, too; what fails leaves everything as it was. */
static void check_list_failures_elsewhere(void)
{
    const int64_t extent = 8;
    cai_array array;
    int32_t i;
    open_plugin(0, 0);
    memset(&array, 0, sizeof array);
    for (i = 0; i < 64; i++) many[i] = get(64, s1);
    list_fail = list_calls + 1;
    BAD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err), CAI_ERR_OUT_OF_MEMORY, "");
    CHECK(array.release == NULL);
    CHECK_INT(mine.live, 64);
    counted(64, 64 * 64, 0, 0);
    CHECK_INT(cai_manager_list(&emm, NULL, 0), 64);
    for (i = 0; i < 64; i++) let(many[i], s1);
    close_emm();
}

/* ------------------------------------------------------------------ without CUDA */

static void check_host_hooks(void)
{
    const int64_t shape[2] = {3, 4};
    cai_emm_hooks hooks;
    cai_memory_handle memory = 9, none;
    cai_array array;
    size_t bytes;
    cai_emm_hooks_malloc(&hooks);
    memset(&emm, 0x5a, sizeof emm);
    GOOD(cai_manager_init(&emm, NULL, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&memory, &emm, 1000, 0, 1, &err));
    CHECK_UINT((uintptr_t)cai_manager_pointer(&emm, memory) % 256, 0);
    memset(cai_manager_pointer(&emm, memory), 7, 1000);
    CHECK_INT(info_of(memory).kind, CAI_MEMORY_HOST);
    GOOD(cai_manager_alloc(&none, &emm, 10, 1 << 16, 77, &err)); /* any number is a stream here */
    CHECK_UINT((uintptr_t)cai_manager_pointer(&emm, none) % ((size_t)1 << 16), 0);
    GOOD(cai_manager_free(&emm, none, 78, &err));
    GOOD(cai_manager_retain(&emm, memory, &err));
    GOOD(cai_manager_free(&emm, memory, 2, &err));
    GOOD(cai_manager_free(&emm, memory, 9, &err));
    GOOD(cai_manager_array(&array, &emm, CAI_FLOAT64, 2, shape, 1, &err));
    CHECK_INT(array.sync, CAI_SYNC_NONE);
    CHECK_INT(array.memory, CAI_MEMORY_HOST);
    CHECK_INT(array.flags & CAI_ORDERED_FREE, 0); /* free() is in the order of no stream */
    memset((void *)(uintptr_t)array.data, 1, 96);
    cai_array_release(&array);
    BAD(cai_manager_device_memory(&emm, &bytes, &bytes, &err), CAI_ERR_UNAVAILABLE, "memory_info");
    GOOD(cai_manager_alloc(&memory, &emm, 8, 0, 1, &err));
    BAD(cai_manager_alloc(&none, &emm, SIZE_MAX, 0, 1, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc of host");
    GOOD(cai_manager_defer_begin(&emm, &err));
    GOOD(cai_manager_free(&emm, memory, 1, &err));
    GOOD(cai_manager_defer_end(&emm, &err));
    counted(0, 0, 1, 8);
    GOOD(cai_manager_flush(&emm, &err));
    GOOD(cai_manager_alloc(&memory, &emm, 8, 0, 1, &err));
    GOOD(cai_manager_reset(&emm, &err));
    GOOD(cai_manager_free(&emm, memory, 1, &err));
    CHECK_UINT(counts().lost, 1);
    GOOD(cai_manager_destroy(&emm, &err));
}

/* The header's example, with a consumer that fails. */
static cai_status launch_status;

static cai_status sum_of_squares(uint64_t s, cai_array *out, cai_error *error)
{
    cai_memory_handle scratch;
    cai_status status;
    CAI_TRY(cai_manager_alloc(&scratch, &emm, 4096, 0, s, error));
    status = cai_manager_array(out, &emm, CAI_FLOAT32, 0, NULL, s, error);
    if (!status) status = launch_status;
    if (status) cai_array_release(out);
    return cai_manager_free(&emm, scratch, s, status ? NULL : error) ? CAI_ERR_CUDA : status;
}

static void check_example(void)
{
    cai_array out;
    open_plugin(0, 1);
    launch_status = CAI_OK;
    GOOD(sum_of_squares(s1, &out, &err));
    CHECK_INT(mine.live, 1);
    cai_array_release(&out);
    launch_status = CAI_ERR_SHAPE;
    CHECK_INT(sum_of_squares(s1, &out, &err), CAI_ERR_SHAPE);
    CHECK_INT(mine.live, 0);
    launch_status = CAI_OK;
    fail(&mine, "device_alloc", 1, 3, 2); /* the array's */
    BAD(sum_of_squares(s1, &out, &err), CAI_ERR_OUT_OF_MEMORY, "device_alloc");
    CHECK_INT(mine.live, 0);
    close_emm();
}

/* The end of the process, R105: everything that frees is success, whatever comes of it. */
static void check_process_end(int32_t async)
{
    static char bytes[64];
    const int64_t extent = 8;
    cai_memory_handle a, b, h, p, none = 9;
    cai_array array;
    if (async) open_async();
    else open_cuda();
    a = get(10, s1);
    b = get(20, s2);
    let(get(5, s1), s1);
    GOOD(cai_manager_pinned_alloc(&h, &emm, 10, 0, &err));
    p = pinned(bytes, 64);
    GOOD(cai_manager_array(&array, &emm, CAI_INT8, 1, &extent, s1, &err));
    cai_sim_teardown(sim);
    trace_clear();
    let(a, s1);
    let(b, 1);
    let(h, s1);
    let(p, s1);
    cai_array_release(&array);
    CHECK(array.release == NULL);
    CHECK_INT(lines("memory_free") + lines("host_free"), 0);
    BAD(cai_manager_free(&emm, a, s1, &err), CAI_ERR_STALE, "");
    BAD(cai_manager_alloc(&none, &emm, 1, 0, s1, &err), CAI_ERR_CUDA, "CUDA error 4");
    CHECK_UINT(none, 9);
    CHECK_UINT(counts().live, 0);
    CHECK_UINT(counts().failed, 0);
    GOOD(cai_manager_flush(&emm, &err));
    GOOD(cai_manager_reset(&emm, &err));
    GOOD(cai_manager_destroy(&emm, &err));
    CHECK_INT(list_live, 0);
    cai_sim_destroy(sim);
    sim = NULL;
}

/* ------------------------------------------------------------------ all */

static void run_tables(void)
{
    check_hooks_good();
    check_hooks_version();
    check_hooks_fields();
    check_hooks_pairs();
    check_hooks_sizes();
    check_cuda_sizes();
    check_hooks_tail();
    check_layout();
    check_builtin_fields();
    check_builtin_arguments();
    check_init_arguments();
    check_init();
    check_no_manager();
    check_null_arguments();
}

static void run_allocating(void)
{
    check_alloc_refused();
    check_no_default_streams();
    check_alignments();
    check_broken_promise();
    check_zero_size();
    check_numba_plugin();
    check_numba_info_and_ipc();
    check_retry();
    check_retry_steps(0);
    check_retry_steps(CAI_MANAGER_DRAIN);
    check_retry_failing_free();
    check_capture();
    check_capture_flush();
    check_count_rule();
    check_byte_rule();
    check_no_byte_limit();
    check_failing_free();
    check_failing_free_at_once();
    check_defer();
    check_defer_failing();
}

static void run_kinds(void)
{
    check_host_flags();
    check_host_flags_refused();
    check_pin_is_immediate();
    check_pin_of_cuda();
    check_silent_frees(0);
    check_silent_frees(1);
    check_references();
    check_streams();
    check_host_streams();
    check_threads();
    check_contexts();
    check_reset();
    check_reset_without_hook();
    check_reset_failing();
    check_ipc();
}

static void run(void)
{
    run_tables();
    run_allocating();
    run_kinds();
    check_array_shapes();
    check_array_refused();
    check_array_facts();
    check_own_ranges();
    check_own_keeps();
    check_own_kinds();
    check_release_orders();
    check_release_waits();
    check_garbage();
    check_strangers();
    check_live();
    check_many();
    check_list_failures();
    check_list_failures_elsewhere();
    check_host_hooks();
    check_example();
    check_process_end(0);
    check_process_end(1);
}

CAI_TEST_MAIN(run)
