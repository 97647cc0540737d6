/* test_storage.c - ext/cai_storage.h: states, placement, conflicts, exports, given buffers, faults, a model, races
 * SPDX-License-Identifier: MIT
 *
 *     test_storage [operations [seed]]    how many operations of the model: 1,000,000 */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_storage.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"
#include "cai_test_help.h"
#include "storage_world.h"

static int32_t copies(void)
{
    return cai_sim_calls_of(sim, "copy_async") + cai_sim_calls_of(sim, "copy_3d_async");
}

/* ------------------------------------------------------------------ the work */
static cai_sim_access bytes_of(const cai_array *array, int32_t write)
{
    cai_sim_access access = cai_sim_reads(array->data + (uint64_t)array->lo, (uint64_t)(array->hi - array->lo));
    access.write = write;
    return access;
}

static int32_t *at(const cai_array *array, int64_t i)
{
    const uint64_t address = array->data + (uint64_t)i * (uint64_t)array->strides[0];
    void *bytes = cai_sim_bytes(sim, address);
    return (int32_t *)(bytes ? bytes : (void *)(uintptr_t)address);
}

/* A kernel: adds `add` to each element, then multiplies it. It runs when the simulation runs it. */
typedef struct kernel {
    cai_array array;
    int32_t add, times;
} kernel;

static void run_kernel(void *argument)
{
    const kernel *k = (const kernel *)argument;
    int64_t i;
    for (i = 0; i < k->array.shape[0]; i++) *at(&k->array, i) = (*at(&k->array, i) + k->add) * k->times;
}

static kernel kernels[64];
static int32_t kernel_count;

static void launch(const cai_array *array, uint64_t stream, int32_t add, int32_t times)
{
    kernel *k = &kernels[kernel_count++ % 64];
    const cai_sim_access access = bytes_of(array, 1);
    k->array = *array;
    k->add = add;
    k->times = times;
    CHECK_INT(cai_sim_launch(sim, stream, "kernel", run_kernel, k, &access, 1), 0);
}

/* The host writes value, value + 1, ... */
static void write_host(const cai_array *array, int32_t value)
{
    int64_t i;
    for (i = 0; i < array->shape[0]; i++) *at(array, i) = value + (int32_t)i;
}

static void fill(int32_t value)
{
    cai_storage_access a;
    GOOD(cai_storage_begin(&a, &storage, H, CAI_OVERWRITE, 0, &err));
    write_host(&a.array, value);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
}

/* What the host reads is value, value + 1, ... times `times`. */
static int holds(int32_t value, int32_t times)
{
    cai_storage_access a;
    int64_t i;
    int good_values = 1;
    if (cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err)) return 0;
    for (i = 0; i < a.array.shape[0]; i++) good_values &= *at(&a.array, i) == (value + (int32_t)i) * times;
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    return good_values;
}

static void on_device(int32_t mode, uint64_t stream, int32_t add, int32_t times)
{
    cai_storage_access a;
    GOOD(cai_storage_begin(&a, &storage, D, mode, stream, &err));
    launch(&a.array, stream, add, times);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
}

/* Brings the storage to a state. The newer side has 100, 101, ... */
static void bring_to(int32_t state)
{
    fill(100);
    if (state == D) on_device(CAI_WRITE, home, 0, 1);
    if (state == CLEAN) GOOD(cai_storage_sync(&storage, D, 0, &err));
    cai_sim_run(sim);
    CHECK_INT(storage.state, state);
    cai_sim_log_clear(sim);
}

/* --------------------------------------------------------------------- making */
static void test_kinds(void)
{
    static const int32_t memory[5][2] = {{0, 0},
                                         {CAI_MEMORY_PINNED, 0},
                                         {0, CAI_MEMORY_DEVICE},
                                         {CAI_MEMORY_PINNED, CAI_MEMORY_DEVICE},
                                         {CAI_MEMORY_MANAGED, CAI_MEMORY_MANAGED}};
    cai_storage_access a;
    int32_t kind, side;
    for (kind = 1; kind <= 4; kind++) {
        start("kinds");
        options.kind = kind;
        options.flags = CAI_STORAGE_ZEROS;
        make(&storage);
        for (side = H; side <= D; side++) {
            const uint64_t stream = side == D ? s1 : 0;
            if (!memory[kind][side - 1]) {
                REFUSED(cai_storage_begin(&a, &storage, side, CAI_READ, stream, &err), CAI_ERR_NO_BUFFER,
                        side == H ? "no host side" : "no device side");
                continue;
            }
            GOOD(cai_storage_begin(&a, &storage, side, CAI_READ, stream, &err));
            CHECK_INT(a.array.memory, memory[kind][side - 1]);
            CHECK_INT(a.array.device, 0);
            CHECK(!(a.array.flags & CAI_WRITABLE) && !a.array.release);
            CHECK_INT(a.array.sync, stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE);
            CHECK_UINT(a.array.stream, stream);
            CHECK_INT(*at(&a.array, LENGTH - 1), 0);
            GOOD(cai_storage_end(&a, CAI_OK, &err));
        }
        CHECK_INT(storage.state, CLEAN);
        finish();
    }
    start("without CUDA");
    options.pool = NULL;
    options.hooks = NULL;
    options.host = &plain;
    options.kind = CAI_STORAGE_HOST;
    make(&storage);
    fill(7);
    CHECK(holds(7, 1));
    CHECK_INT(cai_sim_calls(sim), 0);
    CHECK_INT(storage.array[0].memory, CAI_MEMORY_HOST);
    REFUSED(cai_storage_begin(&a, &storage, H, CAI_READ, s1, &err), CAI_ERR_ARGUMENT, "without a pool");
    finish();
    start("plain host memory beside a device");
    options.host = &plain;
    make(&storage);
    fill(7);
    on_device(CAI_WRITE, s1, 0, 2);
    CHECK(holds(7, 2));
    on_device(CAI_WRITE, s1, 0, 2);
    GOOD(cai_storage_sync(&storage, H, 0, &err));
    finish(); /* waits: the copy to plain memory is queued */
    start("no elements");
    layout.shape[0] = 0;
    make(&storage);
    on_device(CAI_WRITE, s1, 0, 2);
    CHECK(holds(0, 1));
    finish();
}

static void test_layouts(void)
{
    cai_array domain;
    start("a layout");
    GOOD(cai_layout_preset(&layout, "gtcuda", "IJK", &err));
    layout.shape[0] = 8;
    layout.shape[1] = 7;
    layout.shape[2] = 5;
    layout.halo_low[0] = layout.halo_high[0] = layout.halo_low[1] = layout.halo_high[1] = 2;
    layout.alignment = 48; /* no power of two; a multiple of the element */
    make(&storage);
    GOOD(cai_view_domain(&storage.array[1], storage.layout.halo_low, storage.layout.halo_high, &domain, &err));
    CHECK_INT(domain.data % 48, 0);
    GOOD(cai_view_domain(&storage.array[0], storage.layout.halo_low, storage.layout.halo_high, &domain, &err));
    CHECK_INT(domain.data % 48, 0);
    CHECK_INT(domain.shape[0], 4);
    GOOD(cai_storage_mark(&storage, H, 0, 0, &err));
    cai_sim_log_clear(sim);
    GOOD(cai_storage_sync(&storage, D, 0, &err));
    CHECK_INT(copies(), 1); /* own blocks: one line */
    finish();
}

static void test_refused(void)
{
    cai_array x;
    cai_cuda poor;
    uint64_t graph = 0;
    cai_event_pool weak;
    start("storages that are refused");
#define INIT() cai_storage_init(&storage, &options, &dtype, &layout, &err)
#define INIT_REFUSED(change, status, words)                                                                  \
    do {                                                                                                     \
        const cai_storage_options kept_options = options;                                                    \
        const cai_layout kept_layout = layout;                                                               \
        change;                                                                                              \
        REFUSED(INIT(), status, words);                                                                      \
        options = kept_options;                                                                              \
        layout = kept_layout;                                                                                \
    } while (0)
    INIT_REFUSED(options.kind = 0, CAI_ERR_ARGUMENT, "kind = 0");
    INIT_REFUSED(options.kind = 5, CAI_ERR_ARGUMENT, "kind = 5");
    INIT_REFUSED(options.flags = 2, CAI_ERR_ARGUMENT, "flags = 0x2");
    INIT_REFUSED(options.pool = NULL, CAI_ERR_ARGUMENT, "pool is NULL");
    INIT_REFUSED(options.hooks = NULL, CAI_ERR_ARGUMENT, "nothing allocates the device side");
    INIT_REFUSED((options.hooks = NULL, options.kind = CAI_STORAGE_HOST), CAI_ERR_ARGUMENT, "the host side");
    INIT_REFUSED(options.host = &hooks, CAI_ERR_ARGUMENT, "CAI_MEMORY_HOST");
    INIT_REFUSED(options.home = 0, CAI_ERR_STREAM, "home: stream 0 is ambiguous");
    INIT_REFUSED(options.home = UINT64_MAX, CAI_ERR_STREAM, "home: stream -1");
    INIT_REFUSED(options.home = 2, CAI_ERR_STREAM, "per-thread");
    INIT_REFUSED(layout.shape[0] = -1, CAI_ERR_SHAPE, "shape[0]");
    INIT_REFUSED(hooks.host_alloc = NULL; hooks.host_free = NULL, CAI_ERR_UNAVAILABLE, "no hook host_alloc");
    GOOD(cai_emm_hooks_cuda(&hooks, cuda, &err));
    INIT_REFUSED(options.kind = CAI_STORAGE_MANAGED; hooks.managed_alloc = NULL; hooks.managed_free = NULL,
                 CAI_ERR_UNAVAILABLE, "no hook managed_alloc");
    GOOD(cai_emm_hooks_cuda(&hooks, cuda, &err));
    REFUSED(cai_storage_init(NULL, &options, &dtype, &layout, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_init(&storage, NULL, &dtype, &layout, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_init(&storage, &options, NULL, &layout, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_init(&storage, &options, &dtype, NULL, &err), CAI_ERR_ARGUMENT, "NULL");
    CHECK_INT(cai_sim_capture_begin(sim, home, 2), 0);
    REFUSED(INIT(), CAI_ERR_CAPTURE, "is capturing");
    CHECK_INT(cai_sim_capture_end(sim, home, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    REFUSED(INIT(), CAI_ERR_UNAVAILABLE, "no context");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    poor = *cuda;
    poor.copy_3d_async = NULL;
    GOOD(cai_event_pool_init(&weak, &poor, NULL, 0, 0, &err));
    INIT_REFUSED(options.pool = &weak, CAI_ERR_UNAVAILABLE, "copy_3d_async");
    GOOD(cai_event_pool_destroy(&weak, &err));
    memset(&storage, 0, sizeof storage);
    REFUSED(cai_storage_release(NULL, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_export(NULL, H, CAI_READ, 0, &x, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_mark(NULL, H, 0, 0, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_sync(NULL, H, 0, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_assign(&storage, &storage, &err), CAI_ERR_ARGUMENT, "the same");
    CHECK_INT(cai_storage_place(NULL, NULL), 0);
    finish();
}

/* --------------------------------------------------------------------- states */
/* What is done without an access, in each state: what comes of it, and to which side is copied. */
typedef struct change {
    char operation; /* s: sync, m: mark */
    int32_t side, force;
    struct {
        int32_t state, copied; /* state -1: CAI_ERR_CONFLICT, and nothing changes */
    } from[3];                 /* clean, host newer, device newer */
} change;

static const change changes[] = {
    {'s', H, 0, {{CLEAN, 0}, {H, 0}, {CLEAN, H}}},     {'s', D, 0, {{CLEAN, 0}, {CLEAN, D}, {D, 0}}},
    {'s', 0, 0, {{CLEAN, 0}, {CLEAN, D}, {CLEAN, H}}}, {'s', H, 1, {{CLEAN, H}, {CLEAN, H}, {CLEAN, H}}},
    {'s', D, 1, {{CLEAN, D}, {CLEAN, D}, {CLEAN, D}}}, {'m', H, 0, {{H, 0}, {H, 0}, {-1, 0}}},
    {'m', D, 0, {{D, 0}, {-1, 0}, {D, 0}}},            {'m', H, 1, {{H, 0}, {H, 0}, {H, 0}}},
    {'m', D, 1, {{D, 0}, {D, 0}, {D, 0}}},             {'m', 3, 0, {{CLEAN, 0}, {CLEAN, 0}, {CLEAN, 0}}},
};

static cai_status do_change(const change *c, uint64_t stream)
{
    if (c->operation == 's') return cai_storage_sync(&storage, c->side, c->force, &err);
    return cai_storage_mark(&storage, c->side, c->force, stream, &err);
}

static void expect_change(const change *c, int32_t state, uint64_t stream)
{
    const int32_t after = c->from[state].state;
    char line[64] = "";
    bring_to(state);
    if (after < 0) REFUSED(do_change(c, stream), CAI_ERR_CONFLICT, "newer, and would be lost");
    else GOOD(do_change(c, stream));
    CHECK_INT(storage.state, after < 0 ? state : after);
    CHECK_INT(copies(), c->from[state].copied != 0);
    if (!c->from[state].copied) return;
    (void)snprintf(line, sizeof line, "copy_async %s", c->from[state].copied == H ? "m2 m1 24" : "m1 m2 24");
    CHECK(strstr(cai_sim_log(sim), line) != NULL);
}

static void test_states(void)
{
    size_t i;
    int32_t state, kind;
    start("states");
    make(&storage);
    for (i = 0; i < sizeof changes / sizeof *changes; i++)
        for (state = CLEAN; state <= D; state++) {
            expect_change(&changes[i], state, 0);
            if (changes[i].operation == 'm') expect_change(&changes[i], state, s1);
        }
    REFUSED(cai_storage_sync(&storage, 3, 0, &err), CAI_ERR_ARGUMENT, "to = 3");
    REFUSED(cai_storage_mark(&storage, 0, 0, 0, &err), CAI_ERR_ARGUMENT, "sides = 0");
    REFUSED(cai_storage_mark(&storage, 4, 0, 0, &err), CAI_ERR_ARGUMENT, "sides = 4");
    finish();
    for (kind = 1; kind <= 4; kind++) { /* where nothing is to do */
        if (kind == CAI_STORAGE_BOTH) continue;
        start("states of one buffer");
        options.kind = kind;
        make(&storage);
        for (i = 0; i < sizeof changes / sizeof *changes; i++) GOOD(do_change(&changes[i], s1));
        CHECK_INT(storage.state, CLEAN);
        CHECK_INT(cai_sim_calls(sim), 0);
        finish();
    }
}

/* Accesses: what is copied at begin, and the state after an end with success and one with a failure. */
typedef struct access_row {
    int32_t side, mode;
    struct {
        int32_t copied, after, failed;
    } from[3];
} access_row;

static const access_row access_rows[] = {
    {H, CAI_READ, {{0, CLEAN, CLEAN}, {0, H, H}, {H, CLEAN, CLEAN}}},
    {D, CAI_READ, {{0, CLEAN, CLEAN}, {D, CLEAN, CLEAN}, {0, D, D}}},
    {H, CAI_WRITE, {{0, H, D}, {0, H, H}, {H, H, D}}},
    {D, CAI_WRITE, {{0, D, H}, {D, D, H}, {0, D, D}}},
    {H, CAI_OVERWRITE, {{0, H, D}, {0, H, H}, {0, H, D}}},
    {D, CAI_OVERWRITE, {{0, D, H}, {0, D, H}, {0, D, D}}},
};

static void test_accesses(void)
{
    cai_storage_access a;
    size_t i;
    int32_t state, failed;
    start("accesses");
    make(&storage);
    for (i = 0; i < sizeof access_rows / sizeof *access_rows; i++)
        for (state = CLEAN; state <= D; state++)
            for (failed = 0; failed < 2; failed++) {
                const access_row *row = &access_rows[i];
                bring_to(state);
                GOOD(cai_storage_begin(&a, &storage, row->side, row->mode, row->side == D ? s1 : 0, &err));
                CHECK_INT(copies(), row->from[state].copied != 0);
                CHECK_INT(a.array.data, storage.array[row->side - 1].data);
                if (failed) (void)cai_error_set(CAI_ERR_SHAPE, "the work", NULL, &err);
                CHECK_INT(cai_storage_end(&a, failed ? CAI_ERR_SHAPE : CAI_OK, &err), failed ? CAI_ERR_SHAPE : 0);
                if (failed) CHECK(strstr(err.message, "the work") != NULL); /* the caller's stays */
                CHECK_INT(storage.state, failed ? row->from[state].failed : row->from[state].after);
                REFUSED(cai_storage_end(&a, CAI_OK, &err), CAI_ERR_ARGUMENT, "was ended");
            }
    REFUSED(cai_storage_begin(&a, &storage, 3, CAI_READ, s1, &err), CAI_ERR_ARGUMENT, "side = 3");
    REFUSED(cai_storage_begin(&a, &storage, H, 3, 0, &err), CAI_ERR_ARGUMENT, "mode = 3");
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_READ, 0, &err), CAI_ERR_STREAM, "0 is the host");
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_READ, UINT64_MAX, &err), CAI_ERR_STREAM, "-1");
    REFUSED(cai_storage_begin(NULL, &storage, D, CAI_READ, s1, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_begin(&a, NULL, D, CAI_READ, s1, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_end(NULL, CAI_OK, &err), CAI_ERR_ARGUMENT, "not begun");
    finish();
}

/* The data themselves, and what it costs. */
static void test_data(void)
{
    cai_storage_access a;
    start("data on both sides");
    make(&storage);
    fill(10);
    on_device(CAI_WRITE, s1, 0, 3);
    CHECK(holds(10, 3));
    on_device(CAI_WRITE, s1, 0, 2);
    on_device(CAI_WRITE, s2, 0, 2); /* after s1, by way of home */
    CHECK(holds(10, 12));
    cai_sim_log_clear(sim);
    CHECK(holds(10, 12)); /* again: nothing is to do */
    CHECK_INT(cai_sim_calls(sim), 0);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_READ, home, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK_INT(cai_sim_calls(sim), 0);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, home, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK_INT(cai_sim_calls(sim), 0);
    fill(0); /* no copy of what is overwritten */
    CHECK_INT(copies(), 0);
    GOOD(cai_storage_begin(&a, &storage, H, CAI_WRITE, s1, &err)); /* work in s1 on pinned memory */
    launch(&a.array, s1, 5, 1);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK(holds(5, 1));
    finish();
}

/* The nine cells of GDP-3: a part of `storage` is set by elements of `other`. */
static void test_placement(void)
{
    static const struct {
        int32_t self, value, where, self_copied, value_copied;
    } cells[9] = {
        {CLEAN, CLEAN, D, 0, 0}, {CLEAN, H, H, 0, 0}, {CLEAN, D, D, 0, 0}, {H, CLEAN, D, D, 0}, {H, H, H, 0, 0},
        {H, D, D, D, 0},         {D, CLEAN, D, 0, 0}, {D, H, H, H, 0},     {D, D, D, 0, 0},
    };
    cai_storage other;
    cai_storage_access to, from;
    int32_t i;
    start("placement");
    make(&storage);
    GOOD(cai_storage_init(&other, &options, &dtype, &layout, &err));
    for (i = 0; i < 9; i++) {
        bring_to(cells[i].self);
        other.state = cells[i].value;
        CHECK_INT(cai_storage_place(&storage, &other), cells[i].where);
        GOOD(cai_storage_begin(&to, &storage, cells[i].where, CAI_WRITE, s1, &err));
        CHECK_INT(copies(), cells[i].self_copied != 0);
        GOOD(cai_storage_begin(&from, &other, cells[i].where, CAI_READ, s1, &err));
        CHECK_INT(copies(), (cells[i].self_copied != 0) + cells[i].value_copied);
        GOOD(cai_storage_end(&from, CAI_OK, &err));
        GOOD(cai_storage_end(&to, CAI_OK, &err));
        CHECK_INT(storage.state, cells[i].where);
    }
    GOOD(cai_storage_release(&other, &err));
    finish();
}

/* ------------------------------------------------------------------- conflicts */
static void test_conflicts(void)
{
    cai_storage_access a, b, c;
    start("conflicts");
    make(&storage);
    bring_to(CLEAN);
    GOOD(cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err));
    GOOD(cai_storage_begin(&b, &storage, D, CAI_READ, s1, &err)); /* any number may read */
    REFUSED(cai_storage_begin(&c, &storage, D, CAI_WRITE, s1, &err), CAI_ERR_CONFLICT,
            "the device side cannot be written: the host side is open for reading");
    CHECK(c.storage == NULL);
    REFUSED(cai_storage_begin(&c, &storage, H, CAI_WRITE, 0, &err), CAI_ERR_CONFLICT,
            "the host side cannot be written: the device side is open for reading");
    REFUSED(cai_storage_mark(&storage, H, 0, 0, &err), CAI_ERR_CONFLICT, "cannot be marked");
    REFUSED(cai_storage_sync(&storage, D, 1, &err), CAI_ERR_CONFLICT,
            "the device side cannot be copied to: the device side is open for reading");
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_PENDING, "1 accesses of the host side and 1");
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    GOOD(cai_storage_begin(&c, &storage, D, CAI_WRITE, s1, &err)); /* in place, on one stream */
    GOOD(cai_storage_end(&c, CAI_OK, &err));
    REFUSED(cai_storage_begin(&c, &storage, D, CAI_WRITE, s2, &err), CAI_ERR_CONFLICT, "on another stream");
    GOOD(cai_storage_begin(&c, &storage, D, CAI_READ, s2, &err));
    GOOD(cai_storage_end(&b, CAI_OK, &err));
    GOOD(cai_storage_end(&c, CAI_OK, &err));
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, s2, &err));
    REFUSED(cai_storage_begin(&b, &storage, D, CAI_READ, s1, &err), CAI_ERR_CONFLICT,
            "cannot be read on stream");
    REFUSED(cai_storage_begin(&b, &storage, H, CAI_READ, 0, &err), CAI_ERR_CONFLICT,
            "the host side cannot be read: the device side is open for writing");
    GOOD(cai_storage_begin(&b, &storage, D, CAI_READ, s2, &err));
    GOOD(cai_storage_end(&b, CAI_OK, &err));
    REFUSED(cai_storage_sync(&storage, H, 0, &err), CAI_ERR_CONFLICT, "open for writing");
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK_INT(storage.state, D);
    finish();
}

/* --------------------------------------------------------------------- exports */
static void test_exports(void)
{
    cai_array out, gone;
    cai_array *list[1] = {&out};
    cai_exchange ex;
    start("exports");
    make(&storage);
    fill(20);
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, home, &out, &err));
    CHECK(out.release != NULL && out.sync == CAI_SYNC_STREAM && out.stream == home);
    REFUSED(cai_storage_export(&storage, H, CAI_READ, 0, &gone, &err), CAI_ERR_CONFLICT, "device side is open");
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_PENDING, "1 of the device side");
    GOOD(cai_exchange_begin(&ex, &pool, list, 1, s1, &err));
    launch(&out, s1, 0, 5);
    GOOD(cai_exchange_finish(&ex, CAI_OK, list, 1, &err));
    CHECK(out.release == NULL);
    CHECK_INT(storage.state, D);
    CHECK(holds(20, 5));
    GOOD(cai_storage_export(&storage, H, CAI_WRITE, 0, &out, &err));
    CHECK_INT(out.sync, CAI_SYNC_NONE);
    write_host(&out, 3);
    cai_array_release(&out);
    CHECK_INT(storage.state, H);
    CHECK(holds(3, 1));
    GOOD(cai_storage_export(&storage, D, CAI_READ, home, &out, &err));
    CHECK(!(out.flags & CAI_WRITABLE));
    cai_array_release(&out);
    CHECK_INT(storage.state, CLEAN);
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, home, &out, &err)); /* the owner's own order: another stream */
    out.stream = s2;
    launch(&out, s2, 0, 7);
    cai_array_release(&out);
    CHECK(holds(3, 7));
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, home, &out, &err)); /* an event */
    launch(&out, home, 0, 2);
    GOOD(cai_stream_detach(&out, &pool, &err));
    out.stream = 0;
    cai_array_release(&out);
    GOOD(cai_stream_drop_event(&out, &pool, &err));
    CHECK(holds(3, 14));
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, home, &out, &err)); /* nobody knows where */
    launch(&out, s1, 0, 2);
    out.sync = CAI_SYNC_UNKNOWN;
    cai_array_release(&out);
    CHECK(holds(3, 28));
    memset(&gone, 0x5a, sizeof gone);
    out = gone;
    REFUSED(cai_storage_export(&storage, 3, CAI_READ, home, &out, &err), CAI_ERR_ARGUMENT, "side = 3");
    CHECK_BYTES(&out, &gone, sizeof out);
    finish();
}

/* ----------------------------------------------------------------- given buffers */
static int32_t given_released;

static void on_release(cai_array *array)
{
    array->release = NULL;
    given_released++;
    if (array->owner) free(array->owner);
}

/* Every second number of a line of host memory; the others are somebody else's. */
static cai_array given_host(int32_t *line)
{
    const int64_t extent = LENGTH, stride = 8;
    cai_array x;
    GOOD(cai_array_init(&x, CAI_INT32, 1, &extent, &stride, line, &err));
    x.memory = CAI_MEMORY_HOST;
    x.sync = CAI_SYNC_NONE;
    return x;
}

static cai_array given_device(uint64_t memory, int64_t stride)
{
    const int64_t extent = LENGTH;
    cai_array x;
    GOOD(cai_array_init_dtype(&x, &dtype, 1, &extent, &stride, memory, &err));
    x.memory = CAI_MEMORY_DEVICE;
    x.device = 0;
    x.sync = CAI_SYNC_STREAM;
    x.stream = s1;
    return x;
}

static void test_given(void)
{
    int32_t line[2 * LENGTH], i;
    cai_array x, y;
    uint64_t memory;
    start("two given buffers");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 12 * LENGTH);
    for (i = 0; i < 2 * LENGTH; i++) line[i] = i % 2 ? -1 : 100 + i / 2;
    x = given_host(line);
    y = given_device(memory, 12);
    given_released = 0;
    cai_array_own(&x, on_release, NULL);
    cai_array_own(&y, on_release, NULL);
    launch(&y, s1, 40, 1); /* pending work of its owner */
    GOOD(cai_storage_wrap(&storage, &options, &x, &y, CAI_STORAGE_DEVICE_NEWER, &err));
    CHECK(x.release == NULL && y.release == NULL);
    CHECK_INT(storage.layout.strides[0], 12);
    {
        cai_storage_access a;
        GOOD(cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err));
        for (i = 0; i < LENGTH; i++) CHECK_INT(line[2 * i], 40);
        GOOD(cai_storage_end(&a, CAI_OK, &err));
    }
    fill(5);
    on_device(CAI_WRITE, s2, 0, 3);
    CHECK(holds(5, 3));
    for (i = 0; i < LENGTH; i++) CHECK_INT(line[2 * i + 1], -1); /* what is not ours */
    on_device(CAI_WRITE, s2, 0, 1);
    CHECK_INT(given_released, 0);
    GOOD(cai_storage_release(&storage, &err));
    cai_sim_run(sim);
    GOOD(cai_keepalive_drain(&pool, &err)); /* the host's has no stream: it waits until home has passed */
    CHECK_INT(given_released, 2);
    cai_sim_free(sim, memory);
    finish();
    start("one given buffer, and one that is made");
    for (i = 0; i < 2 * LENGTH; i++) line[i] = 100 + i / 2;
    x = given_host(line);
    GOOD(cai_storage_wrap(&storage, &options, &x, NULL, CLEAN, &err));
    CHECK_INT(storage.state, H);
    on_device(CAI_WRITE, s1, 0, 2);
    GOOD(cai_storage_sync(&storage, H, 0, &err)); /* the temporary is copied back */
    CHECK(holds(100, 2));
    finish();
    CHECK_INT(line[2], 202);
    start("managed memory that is given");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_MANAGED, 4 * LENGTH);
    y = given_device(memory, 4);
    options.kind = CAI_STORAGE_MANAGED;
    REFUSED(cai_storage_wrap(&storage, &options, NULL, &y, CLEAN, &err), CAI_ERR_MEMORY, "no managed memory");
    y.memory = CAI_MEMORY_MANAGED;
    GOOD(cai_storage_wrap(&storage, &options, NULL, &y, CLEAN, &err));
    fill(9);
    on_device(CAI_WRITE, s2, 0, 2);
    CHECK(holds(9, 2));
    CHECK_INT(storage.state, CLEAN);
    GOOD(cai_storage_release(&storage, &err));
    cai_sim_run(sim);
    cai_sim_free(sim, memory);
    finish();
}

static void test_given_refused(void)
{
    int32_t line[2 * LENGTH] = {0};
    cai_array x, y, bad;
    uint64_t memory;
    start("given buffers that are refused");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4 * LENGTH);
    x = given_host(line);
    y = given_device(memory, 4);
#define WRAP_REFUSED(host, device, change, status, words)                                                    \
    do {                                                                                                     \
        bad = host ? x : y;                                                                                  \
        change;                                                                                              \
        REFUSED(cai_storage_wrap(&storage, &options, host ? &bad : &x, device ? &bad : &y, CLEAN, &err),     \
                status, words);                                                                              \
    } while (0)
    WRAP_REFUSED(1, 0, bad.flags &= ~(uint32_t)CAI_WRITABLE, CAI_ERR_EXPECT, "on_host is read-only");
    WRAP_REFUSED(0, 1, bad.flags &= ~(uint32_t)CAI_WRITABLE, CAI_ERR_EXPECT, "on_device is read-only");
    WRAP_REFUSED(1, 0, bad.flags &= ~(uint32_t)CAI_NO_SELF_OVERLAP, CAI_ERR_EXPECT, "share bytes");
    WRAP_REFUSED(1, 0, bad.mask = &x, CAI_ERR_EXPECT, "mask");
    WRAP_REFUSED(1, 0, bad.memory = CAI_MEMORY_DEVICE, CAI_ERR_MEMORY, "on_host");
    WRAP_REFUSED(0, 1, bad.memory = CAI_MEMORY_HOST, CAI_ERR_MEMORY, "on_device");
    WRAP_REFUSED(0, 1, bad.memory = CAI_MEMORY_UNKNOWN, CAI_ERR_MEMORY, "cai_locate");
    WRAP_REFUSED(0, 1, bad.dtype.code = CAI_FLOAT32, CAI_ERR_EXPECT, "dtypes");
    WRAP_REFUSED(0, 1, GOOD(cai_view_slice(&y, 0, 0, LENGTH - 1, 1, &bad, &err)), CAI_ERR_EXPECT, "on_device");
    REFUSED(cai_storage_wrap(&storage, &options, NULL, NULL, CLEAN, &err), CAI_ERR_ARGUMENT, "do not fit");
    REFUSED(cai_storage_wrap(&storage, &options, &x, &y, 3, &err), CAI_ERR_ARGUMENT, "state = 3");
    options.kind = CAI_STORAGE_HOST;
    REFUSED(cai_storage_wrap(&storage, &options, &x, &y, CLEAN, &err), CAI_ERR_ARGUMENT, "do not fit");
    options.kind = CAI_STORAGE_DEVICE;
    REFUSED(cai_storage_wrap(&storage, &options, &x, &y, CLEAN, &err), CAI_ERR_ARGUMENT, "do not fit");
    memset(&storage, 0, sizeof storage);
    cai_sim_free(sim, memory);
    finish();
}

/* ---------------------------------------------------------------------- copies */
/* A storage of a random layout: given buffers with gaps, flipped axes, or own ones. */
static void random_layout(cai_layout *to, int32_t ndim, const int64_t *shape)
{
    int32_t i, j;
    memset(to, 0, sizeof *to);
    to->ndim = ndim;
    for (i = 0; i < ndim; i++) {
        to->shape[i] = shape[i];
        to->map[i] = i;
    }
    for (i = ndim - 1; i > 0; i--) {
        const int32_t kept = to->map[i];
        j = (int32_t)help_between(0, i);
        to->map[i] = to->map[j];
        to->map[j] = kept;
    }
    to->alignment = help_between(0, 2) ? 4 * (int32_t)help_between(1, 9) : 0;
}

/* A view of a larger block by the layout: each extent one more, and some axes from the other end. */
static cai_array random_given(const cai_layout *wanted, int32_t memory, uint64_t block)
{
    cai_layout larger = *wanted;
    cai_array x;
    int32_t i;
    for (i = 0; i < larger.ndim; i++) larger.shape[i] += help_between(0, 1);
    GOOD(cai_layout_plan(&larger, &dtype, &err));
    CHECK(larger.nbytes <= 65536);
    GOOD(cai_array_init_dtype(&x, &dtype, larger.ndim, larger.shape, larger.strides, block, &err));
    for (i = 0; i < larger.ndim; i++) {
        const int64_t extent = wanted->shape[i];
        const int backwards = extent > 1 && help_between(0, 3) == 0;
        GOOD(cai_view_slice(&x, i, backwards ? extent - 1 : 0, extent, backwards ? -1 : 1, &x, &err));
    }
    x.memory = memory;
    x.sync = CAI_SYNC_NONE;
    return x;
}

static uint64_t element(const cai_array *x, const int64_t *index)
{
    uint64_t address = x->data;
    int32_t i;
    for (i = 0; i < x->ndim; i++) address += (uint64_t)index[i] * (uint64_t)x->strides[i];
    return address;
}

static int32_t *number_at(uint64_t address)
{
    void *bytes = cai_sim_bytes(sim, address);
    return (int32_t *)(bytes ? bytes : (void *)(uintptr_t)address);
}

/* Fills a storage on the host with its row-major numbers plus `first`, or compares. Returns what differs. */
static int64_t numbers(cai_storage *s, int32_t first, int compare)
{
    cai_storage_access a;
    int64_t index[8] = {0}, wrong = 0;
    int32_t n = first;
    GOOD(cai_storage_begin(&a, s, s->sides & H ? H : D, compare ? CAI_READ : CAI_OVERWRITE, s->sides & H ? 0 : home,
                           &err));
    cai_sim_run(sim);
    if (a.array.size) do {
        int32_t *value = number_at(element(&a.array, index));
        if (compare) wrong += *value != n;
        else *value = n;
        n++;
    } while (help_next(index, a.array.shape, a.array.ndim));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    return wrong;
}

/* Makes a storage of a random kind and layout. Its given buffers end with it. */
static void random_storage(cai_storage *s, int32_t ndim, const int64_t *shape, uint64_t on_device_block,
                           char *on_host_block)
{
    cai_storage_options o = options;
    cai_layout l;
    cai_array x, y;
    const int32_t kind = (int32_t)help_between(0, 5);
    random_layout(&l, ndim, shape);
    o.host = help_between(0, 1) ? &plain : NULL;
    o.kind = kind < 3 ? kind + 1 : CAI_STORAGE_BOTH;
    if (help_between(0, 1)) o.home = s1;
    if (kind < 3) {
        GOOD(cai_storage_init(s, &o, &dtype, &l, &err));
        return;
    }
    x = random_given(&l, CAI_MEMORY_HOST, (uint64_t)(uintptr_t)on_host_block);
    y = random_given(&l, CAI_MEMORY_DEVICE, on_device_block);
    GOOD(cai_storage_wrap(s, &o, kind == 4 ? NULL : &x, kind == 3 ? NULL : &y, CLEAN, &err));
}

static void test_layout_pairs(void)
{
    static char host_blocks[2][65536];
    int32_t round, checked = 0;
    for (round = 0; round < 400; round++) {
        int64_t shape[5];
        int32_t i, ndim;
        uint64_t blocks[2];
        cai_storage other;
        if (round % 20 == 0) start("copies between layouts");
        blocks[0] = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 65536);
        blocks[1] = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 65536);
        ndim = (int32_t)help_between(0, 5);
        for (i = 0; i < ndim; i++) shape[i] = help_between(1, 4);
        random_storage(&storage, ndim, shape, blocks[0], host_blocks[0]);
        random_storage(&other, ndim, shape, blocks[1], host_blocks[1]);
        (void)numbers(&other, round, 0);
        if (other.options.kind == CAI_STORAGE_BOTH && help_between(0, 1))
            GOOD(cai_storage_sync(&other, 0, 0, &err)); /* the device has the numbers, too */
        (void)numbers(&storage, -1000, 0);
        GOOD(cai_storage_assign(&storage, &other, &err));
        CHECK_INT(numbers(&storage, round, 1), 0);
        CHECK_INT(numbers(&other, round, 1), 0);
        GOOD(cai_storage_release(&other, &err));
        GOOD(cai_storage_release(&storage, &err));
        cai_sim_run(sim);
        cai_sim_free(sim, blocks[0]);
        cai_sim_free(sim, blocks[1]);
        checked++;
        if (round % 20 == 19) finish();
    }
    CHECK_INT(checked, 400);
}

/* Rows go to CUDA as rows and planes, not one by one. */
static void test_row_calls(void)
{
    static char line[4096];
    const int64_t shape[3] = {4, 3, 5}, strides[3] = {4, 32, 128}, turned[3] = {60, 20, 4};
    cai_array x, y;
    uint64_t memory;
    start("rows and planes");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096);
    GOOD(cai_array_init(&x, CAI_INT32, 3, shape, strides, line, &err));
    x.memory = CAI_MEMORY_HOST;
    GOOD(cai_array_init_dtype(&y, &dtype, 3, shape, strides, memory, &err));
    y.memory = CAI_MEMORY_DEVICE;
    x.sync = y.sync = CAI_SYNC_NONE;
    GOOD(cai_storage_wrap(&storage, &options, &x, &y, CAI_STORAGE_HOST_NEWER, &err));
    cai_sim_log_clear(sim);
    GOOD(cai_storage_sync(&storage, D, 0, &err));
    CHECK_INT(copies(), 1);
    CHECK(strstr(cai_sim_log(sim), " 16 3 5 s1\n") != NULL); /* a row of 4 numbers, 3 rows, 5 planes */
    GOOD(cai_storage_release(&storage, &err));
    GOOD(cai_array_init_dtype(&y, &dtype, 3, shape, turned, memory, &err)); /* the other order of axes */
    y.memory = CAI_MEMORY_DEVICE;
    y.sync = CAI_SYNC_NONE;
    GOOD(cai_storage_wrap(&storage, &options, &x, &y, CAI_STORAGE_HOST_NEWER, &err));
    cai_sim_log_clear(sim);
    GOOD(cai_storage_sync(&storage, D, 0, &err));
    CHECK_INT(copies(), 4 * 3); /* rows of one number; no planes, as only one side has them */
    GOOD(cai_storage_release(&storage, &err));
    cai_sim_run(sim);
    cai_sim_free(sim, memory);
    finish();
}

/* -------------------------------------------------------------- streams, captures */
static void test_captures(void)
{
    cai_storage_access a;
    uint64_t graph = 0;
    start("captures");
    make(&storage);
    bring_to(H);
    CHECK_INT(cai_sim_capture_begin(sim, home, 2), 0);
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_READ, home, &err), CAI_ERR_CAPTURE, "home, stream");
    REFUSED(cai_storage_sync(&storage, D, 0, &err), CAI_ERR_CAPTURE, "is capturing");
    CHECK_INT(storage.state, H);
    CHECK_INT(copies(), 0);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_OVERWRITE, home, &err)); /* nothing to copy */
    launch(&a.array, home, 1, 1);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_CAPTURE, "is capturing");
    CHECK_INT(cai_sim_capture_end(sim, home, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    CHECK_INT(storage.open[0] + storage.open[1], 0);
    GOOD(cai_storage_mark(&storage, H, 1, 0, &err));
    CHECK_INT(cai_sim_capture_begin(sim, s1, 2), 0);
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_READ, s1, &err), CAI_ERR_CAPTURE, "captur");
    CHECK_INT(cai_sim_capture_end(sim, s1, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    CHECK(holds(100, 1));
    finish();
}

/* A storage of another context: the current one is the same before and after each call. */
static void test_contexts(void)
{
    cai_storage_access a;
    uint64_t h;
    int32_t legacy;
    for (legacy = 0; legacy < 2; legacy++) {
        start(legacy ? "another context, home 1" : "another context");
        CHECK_INT(cai_sim_set_context(sim, c2), 0);
        h = cai_sim_stream_create(sim, 1);
        options.home = legacy ? (uint64_t)CAI_STREAM_LEGACY : h;
        make(&storage);
        CHECK_INT(cai_sim_set_context(sim, c1), 0);
        CHECK_UINT(storage.context, c2);
        CHECK_INT(storage.array[1].device, 1);
        fill(1);
        GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, h, &err));
        CHECK_UINT(cai_sim_current(sim), c1);
        CHECK_INT(cai_sim_set_context(sim, c2), 0);
        launch(&a.array, h, 1, 1);
        CHECK_INT(cai_sim_set_context(sim, c1), 0);
        GOOD(cai_storage_end(&a, CAI_OK, &err));
        CHECK(holds(2, 1));
        CHECK_UINT(cai_sim_current(sim), c1);
        GOOD(cai_storage_begin(&a, &storage, H, CAI_WRITE, CAI_STREAM_LEGACY, &err)); /* of c1 */
        CHECK_INT(a.array.sync, CAI_SYNC_UNKNOWN); /* 1 would be that of c2 */
        launch(&a.array, CAI_STREAM_LEGACY, 1, 1);
        GOOD(cai_storage_end(&a, CAI_OK, &err));
        CHECK(holds(3, 1));
        GOOD(cai_storage_release(&storage, &err));
        CHECK_UINT(cai_sim_current(sim), c1);
        cai_sim_run(sim);
        cai_sim_stream_destroy(sim, h);
        finish();
    }
    start("the per-thread stream");
    make(&storage);
    fill(1);
    on_device(CAI_WRITE, CAI_STREAM_PER_THREAD, 0, 2);
    CHECK(holds(1, 2));
    finish();
    start("no context is current");
    make(&storage);
    fill(1);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    on_device(CAI_WRITE, s1, 0, 2);
    CHECK(holds(1, 2));
    GOOD(cai_storage_release(&storage, &err));
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    finish();
}

/* concurrent: may the host use managed memory beside a kernel? -1: nothing tells; -2: nor are 1 and 2 streams. */
static void check_managed(const char *what, int32_t concurrent, int64_t waits_for_all)
{
    cai_cuda poor;
    start(what);
    poor = *cuda;
    poor.device_attribute = NULL;
    if (concurrent < -1) poor.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    if (concurrent < 0) GOOD(cai_event_pool_init(&pool, &poor, NULL, 0, 0, &err));
    cai_sim_set_device_attribute(sim, 0, CAI_ATTRIBUTE_CONCURRENT_MANAGED, concurrent != 0);
    options.kind = CAI_STORAGE_MANAGED;
    make(&storage);
    fill(5);
    on_device(CAI_WRITE, s1, 0, 2);
    CHECK(holds(5, 2));
    CHECK_INT(cai_sim_calls_of(sim, "context_synchronize"), waits_for_all);
    CHECK_INT(copies(), 0);
    finish();
}

/* Other memory: of a pool in the order of home, and managed, for which the host waits for home, or for all. */
static void test_memory(void)
{
    cai_emm_hooks async;
    start("memory of a pool");
    GOOD(cai_emm_hooks_async(&async, cuda, NULL, &err));
    options.hooks = &async;
    options.host = &plain;
    options.flags = CAI_STORAGE_ZEROS;
    make(&storage);
    on_device(CAI_WRITE, s1, 4, 1);
    {
        cai_storage_access a;
        int64_t i;
        GOOD(cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err));
        for (i = 0; i < LENGTH; i++) CHECK_INT(*at(&a.array, i), 4); /* zeros before */
        GOOD(cai_storage_end(&a, CAI_OK, &err));
    }
    finish();
    check_managed("managed memory", 1, 0);
    check_managed("managed memory that the host may not use beside a kernel", 0, 2);
    check_managed("managed memory of a device of which nothing is known", -1, 2);
    check_managed("managed memory where 1 and 2 are no streams", -2, 2);
}

/* ---------------------------------------------------------------------- faults */
static const int32_t fault_errors[] = {1, 2, 4, 201, 700, 900, 906, 999};

/* A life of a storage, in which every call may fail. Returns the first status. What was read is the newest,
 * whenever a read succeeds. */
static cai_status life(int32_t which, int *wrong)
{
    cai_storage_access a;
    cai_array out;
    cai_array *list[1] = {&out};
    cai_exchange ex;
    cai_status status, other;
    int64_t i;
    int written = 0;
    options.kind = which % 2 ? CAI_STORAGE_BOTH : CAI_STORAGE_MANAGED;
    options.host = which & 2 ? &plain : NULL;
    options.flags = CAI_STORAGE_ZEROS;
    status = cai_storage_init(&storage, &options, &dtype, &layout, &err);
    if (status) {
        memset(&storage, 0, sizeof storage);
        return status;
    }
    status = cai_storage_begin(&a, &storage, H, CAI_OVERWRITE, 0, &err);
    if (!status) {
        cai_sim_run(sim);
        write_host(&a.array, 50);
        status = cai_storage_end(&a, CAI_OK, &err);
    }
    if (!status) status = cai_storage_begin(&a, &storage, D, CAI_WRITE, s1, &err);
    if (!status) {
        launch(&a.array, s1, 0, 2);
        written = 1;
        other = cai_storage_end(&a, CAI_OK, &err);
        if (other && a.storage) other = cai_storage_end(&a, CAI_OK, &err); /* again */
        CHECK(a.storage == NULL);
        status = other;
    }
    if (!status) status = cai_storage_export(&storage, D, CAI_READ, home, &out, &err);
    if (!status) {
        status = cai_exchange_begin(&ex, &pool, list, 1, s2, &err);
        if (status) cai_array_release(&out);
        else status = cai_exchange_finish(&ex, CAI_OK, list, 1, &err);
        if (out.release) cai_array_release(&out);
    }
    other = cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err);
    if (!other) {
        for (i = 0; i < LENGTH && written; i++) *wrong += *at(&a.array, i) != (50 + (int32_t)i) * 2;
        other = cai_storage_end(&a, CAI_OK, &err);
    }
    return status ? status : other;
}

static void let_go(int32_t error)
{
    cai_sim_set_device_error(sim, 0, 0);
    cai_sim_run(sim);
    if (cai_keepalive_drain(&pool, &err)) CHECK(0);
    if (storage.options.kind) {
        const cai_status status = cai_storage_release(&storage, &err);
        if (status) printf("    release after %d: %s\n", (int)error, err.message);
        CHECK_INT(status, CAI_OK);
    }
}

static void test_faults(void)
{
    char log[20000];
    int32_t which, n, calls, wrong = 0, injected = 0, failed = 0;
    size_t e;
    for (which = 0; which < 4; which++) {
        start("faults");
        CHECK_INT(life(which, &wrong), CAI_OK);
        calls = cai_sim_calls(sim);
        (void)snprintf(log, sizeof log, "%s", cai_sim_log(sim));
        let_go(0);
        finish();
        for (n = 1; n <= calls; n++)
            for (e = 0; e < sizeof fault_errors / sizeof *fault_errors; e++) {
                cai_status status;
                start("faults");
                CHECK_INT(cai_sim_fail(sim, n, fault_errors[e]), 1);
                status = life(which, &wrong);
                injected++;
                failed += status != CAI_OK;
                if (fault_errors[e] == 4 || fault_errors[e] == 700) wrong = 0; /* after these nothing would work */
                if (!CHECK_INT(wrong, 0)) printf("    life %d, call %d, error %d\n%s", (int)which, (int)n,
                                                 (int)fault_errors[e], cai_sim_log(sim));
                wrong = 0;
                cai_sim_run(sim);
                let_go(fault_errors[e]);
                device_died = fault_errors[e] == 4 || fault_errors[e] == 700;
                finish();
            }
    }
    printf("faults: %d injected, %d reported, %d leaks\n", (int)injected, (int)failed, 0);
    CHECK(failed > injected / 2);
}

/* ------------------------------------------------------------- a broken device */
/* The hooks of CUDA, counted. While the device is broken CUDA frees nothing, and the count tells what was given
 * back. */
static int32_t blocks; /* given and not given back */
static cai_emm_hooks counted;

static int counted_alloc(void *ctx, void **block, size_t size, struct CUstream_st *stream)
{
    const int error = hooks.device_alloc(ctx, block, size, stream);
    blocks += !error;
    return error;
}

static int counted_free(void *ctx, void *block, size_t size, struct CUstream_st *stream)
{
    --blocks;
    return hooks.device_free(ctx, block, size, stream);
}

static int counted_host_alloc(void *ctx, void **block, size_t size, unsigned int flags)
{
    const int error = hooks.host_alloc(ctx, block, size, flags);
    blocks += !error;
    return error;
}

static int counted_host_free(void *ctx, void *block, size_t size, struct CUstream_st *stream)
{
    --blocks;
    return hooks.host_free(ctx, block, size, stream);
}

static int counted_managed_alloc(void *ctx, void **block, size_t size, unsigned int flags)
{
    const int error = hooks.managed_alloc(ctx, block, size, flags);
    blocks += !error;
    return error;
}

static int counted_managed_free(void *ctx, void *block, size_t size, struct CUstream_st *stream)
{
    --blocks;
    return hooks.managed_free(ctx, block, size, stream);
}

static void count_hooks(void)
{
    counted = hooks;
    counted.device_alloc = counted_alloc;
    counted.device_free = counted_free;
    counted.host_alloc = counted_host_alloc;
    counted.host_free = counted_host_free;
    counted.managed_alloc = counted_managed_alloc;
    counted.managed_free = counted_managed_free;
    options.hooks = &counted;
    blocks = 0;
}

/* Everything is given back while the device is broken, and the storage goes. */
static void let_go_broken(int32_t which, int32_t n)
{
    cai_status status = cai_keepalive_drain(&pool, &err);
    CHECK(status == CAI_OK || status == CAI_ERR_CUDA);
    CHECK_INT(pool.waiting, 0);
    status = storage.options.kind ? cai_storage_release(&storage, &err) : CAI_OK;
    CHECK(status == CAI_OK || status == CAI_ERR_CUDA);
    if (!CHECK_INT(blocks, 0) || !CHECK_INT(storage.options.kind, 0))
        printf("    life %d, broken from call %d on: %s\n", (int)which, (int)n, status ? err.message : "");
    status = cai_event_pool_destroy(&pool, &err); /* of a device that is broken no event can be destroyed */
    CHECK(status == CAI_OK || status == CAI_ERR_CUDA);
    CHECK(!pool.cuda);
    cai_sim_destroy(sim);
}

static void test_broken_device(void)
{
    static const int32_t errors[] = {700, 719};
    int32_t which, n, calls, wrong = 0, lives = 0;
    size_t e;
    for (which = 0; which < 4; which++) {
        start("a life");
        (void)life(which, &wrong);
        calls = cai_sim_calls(sim);
        let_go(0);
        finish();
        for (n = 1; n <= calls; n++) {
            for (e = 0; e < sizeof errors / sizeof *errors; e++, lives++) {
                start("a device that stays broken");
                count_hooks();
                CHECK_INT(cai_sim_break(sim, n, 0, errors[e]), 1);
                (void)life(which, &wrong);
                let_go_broken(which, n);
            }
        }
    }
    printf("broken device: %d lives, everything given back\n", (int)lives);
}

/* ----------------------------------------------------------------------- model */
/* Two sides and many views against one line of numbers. Each write stores the number of the operation in a
 * part of the line, each read compares a part. */
typedef struct part {
    cai_array view;
    int32_t value, first, wrong, reads;
    int32_t expected[LENGTH];
} part;

static part parts[256];
static int32_t part_count, stale;

static void work_on_part(void *argument)
{
    part *p = (part *)argument;
    int64_t i;
    for (i = 0; i < p->view.shape[0]; i++) {
        if (!p->reads) *at(&p->view, i) = p->value;
        else if (*at(&p->view, i) != p->expected[p->first + i]) stale++;
    }
}

/* One access of the model, by begin and end or by an export, on the host or in a stream. */
static void model_access(int32_t number, int32_t *line)
{
    static const int32_t modes[3] = {CAI_READ, CAI_WRITE, CAI_OVERWRITE};
    const int32_t side = (int32_t)help_between(H, D), mode = modes[help_between(0, 2)];
    const int exported = help_between(0, 3) == 0;
    const uint64_t streams[4] = {home, s1, s2, CAI_STREAM_LEGACY};
    const uint64_t stream = side == H && (exported || help_between(0, 1)) ? 0
                            : exported                                   ? home
                                                                         : streams[help_between(0, 3)];
    const int64_t first = mode == CAI_OVERWRITE ? 0 : help_between(0, LENGTH - 1);
    const int64_t count = mode == CAI_OVERWRITE ? (int64_t)LENGTH : help_between(1, LENGTH - first);
    part *p = &parts[part_count++ % 256];
    cai_storage_access a;
    cai_array out;
    cai_sim_access access;
    int64_t i;
    if (exported) GOOD(cai_storage_export(&storage, side, mode, side == D ? home : 0, &out, &err));
    else GOOD(cai_storage_begin(&a, &storage, side, mode, stream, &err));
    GOOD(cai_view_slice(exported ? &out : &a.array, 0, first, count, 1, &p->view, &err));
    p->value = number;
    p->first = (int32_t)first;
    p->reads = mode == CAI_READ;
    memcpy(p->expected, line, sizeof p->expected);
    for (i = first; i < first + count && !p->reads; i++) line[i] = number;
    if (!stream) work_on_part(p);
    else {
        access = bytes_of(&p->view, !p->reads);
        CHECK_INT(cai_sim_launch(sim, stream, "part", work_on_part, p, &access, 1), 0);
    }
    if (exported) cai_array_release(&out);
    else GOOD(cai_storage_end(&a, CAI_OK, &err));
}

static void model_step(int32_t number, int32_t *line)
{
    const int64_t what = help_between(0, 19);
    if (what == 0) GOOD(cai_storage_sync(&storage, (int32_t)help_between(0, 2), 0, &err));
    else if (what == 1 && storage.state) GOOD(cai_storage_mark(&storage, storage.state, 0, 0, &err));
    else if (what == 2) cai_sim_run(sim);
    else if (what < 6) (void)cai_sim_step(sim, help_between(0, 1) ? home : s1);
    else model_access(number, line);
}

static void test_model(int32_t operations)
{
    int32_t line[LENGTH], done = 0, i;
    stale = 0;
    while (done < operations) {
        start("model");
        options.kind = help_between(0, 9) ? CAI_STORAGE_BOTH : CAI_STORAGE_MANAGED;
        options.flags = CAI_STORAGE_ZEROS;
        if (help_between(0, 4) == 0) options.host = &plain;
        make(&storage);
        memset(line, 0, sizeof line);
        for (i = 0; i < 200; i++, done++) model_step(done + 1, line);
        cai_sim_run(sim);
        finish();
    }
    printf("model: %d operations, %d stale reads\n", (int)done, (int)stale);
    CHECK_INT(stale, 0);
}

/* ----------------------------------------------------------------------- races */
/* A storage in the hands of the detector: every order of the queued work, and each ordering call left out. */
static int32_t pool_mode; /* CAI_MODE_... */

static void storage_program(cai_sim *simulation, void *argument)
{
    const int32_t exports = *(const int32_t *)argument;
    cai_storage_access a;
    cai_array out;
    cai_array *list[1] = {&out};
    cai_exchange ex;
    cai_sim_access whole;
    uint64_t streams[3];
    int32_t i;
    cai_error why;
#define DO(call) do { if (call) cai_check_fail(simulation, why.message); } while (0)
    sim = simulation;
    cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_FREE_RETURNS); /* a free waits for nothing */
    for (i = 0; i < 3; i++) streams[i] = cai_sim_stream_create(simulation, 1);
    DO(cai_event_pool_init(&pool, cai_sim_cuda(simulation), NULL, 0, 0, &why));
    DO(cai_event_pool_set_modes(&pool, pool_mode, 0, &why));
    DO(cai_emm_hooks_cuda(&hooks, cai_sim_cuda(simulation), &why));
    memset(&options, 0, sizeof options);
    options.pool = &pool;
    options.hooks = &hooks;
    options.home = streams[0];
    options.kind = CAI_STORAGE_BOTH;
    memset(&layout, 0, sizeof layout);
    layout.ndim = 1;
    layout.shape[0] = 8;
    DO(cai_dtype_of(CAI_INT32, &dtype, &why));
    DO(cai_storage_init(&storage, &options, &dtype, &layout, &why));
    DO(cai_storage_begin(&a, &storage, H, CAI_OVERWRITE, 0, &why));
    whole = bytes_of(&a.array, 1);
    cai_sim_host_touch(simulation, "initial", &whole, 1);
    DO(cai_storage_end(&a, CAI_OK, &why));
    for (i = 1; i < 3; i++) {
        DO(cai_storage_begin(&a, &storage, D, CAI_WRITE, streams[i], &why));
        whole = bytes_of(&a.array, 1);
        cai_sim_touch(simulation, streams[i], i == 1 ? "first" : "second", &whole, 1);
        DO(cai_storage_end(&a, CAI_OK, &why));
    }
    if (exports) {
        DO(cai_storage_export(&storage, D, CAI_WRITE, storage.options.home, &out, &why));
        DO(cai_exchange_begin(&ex, &pool, list, 1, streams[1], &why));
        whole = bytes_of(&out, 1);
        cai_sim_touch(simulation, streams[1], "exported", &whole, 1);
        DO(cai_exchange_finish(&ex, CAI_OK, list, 1, &why));
    }
    DO(cai_storage_begin(&a, &storage, H, CAI_WRITE, 0, &why));
    whole = bytes_of(&a.array, 1);
    cai_sim_host_touch(simulation, "host", &whole, 1);
    DO(cai_storage_end(&a, CAI_OK, &why));
    DO(cai_storage_begin(&a, &storage, D, CAI_READ, streams[1], &why));
    whole = bytes_of(&a.array, 0);
    cai_sim_touch(simulation, streams[1], "last", &whole, 1);
    DO(cai_storage_end(&a, CAI_OK, &why));
    DO(cai_storage_release(&storage, &why));
    DO(cai_event_pool_destroy(&pool, &why));
    for (i = 0; i < 3; i++) cai_sim_stream_destroy(simulation, streams[i]);
#undef DO
}

/* Each edge is needed, but for those in `spare`: records of an event that still has its record in the stream
 * whose work is meant, from the call before; and the wait before the second free, after that of the first. */
static void test_races(void)
{
    static const struct {
        const char *call;
        int32_t exports, times, spare;
    } rows[] = {{"event_record", 0, 6, 1},       {"event_record", 1, 8, 2},       {"stream_wait_event", 0, 6, 0},
                {"stream_wait_event", 1, 8, 0}, {"stream_synchronize", 0, 3, 1}, {"stream_synchronize", 1, 3, 1}};
    cai_check_options check;
    cai_check_result result;
    int32_t exports, found;
    size_t i;
    cai_test_note("races");
    for (exports = 0; exports < 2; exports++) {
        CHECK_INT(cai_check(storage_program, &exports, NULL, &result), 0);
        CHECK_STR(result.text, "");
    }
    pool_mode = CAI_MODE_IGNORE; /* which is for exchanges of the program, not for the copies of a storage */
    exports = 0;
    CHECK_INT(cai_check(storage_program, &exports, NULL, &result), 0);
    CHECK_STR(result.text, "");
    pool_mode = CAI_MODE_EVENT;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        memset(&check, 0, sizeof check);
        check.omit = rows[i].call;
        exports = rows[i].exports;
        found = 0;
        for (check.omit_call = 1;; check.omit_call++) {
            (void)cai_check(storage_program, &exports, &check, &result);
            if (!result.omitted) break;
            found += result.racy > 0;
        }
        CHECK_INT(check.omit_call - 1, rows[i].times);
        CHECK_INT(found, rows[i].times - rows[i].spare);
        printf("races: %s left out at %d places, found at %d\n", rows[i].call, (int)rows[i].times, (int)found);
    }
    cai_test_note("");
}

int main(int count, char **arguments)
{
    const int32_t operations = count > 1 ? atoi(arguments[1]) : 1000000;
    if (count > 2) help_random_state = (uint64_t)atoll(arguments[2]);
    test_kinds();
    test_layouts();
    test_refused();
    test_states();
    test_accesses();
    test_data();
    test_placement();
    test_conflicts();
    test_exports();
    test_given();
    test_given_refused();
    test_layout_pairs();
    test_row_calls();
    test_captures();
    test_contexts();
    test_memory();
    test_races();
    test_faults();
    test_broken_device();
    test_model(operations);
    return cai_test_end();
}
