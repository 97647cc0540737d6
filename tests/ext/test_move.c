/* test_move.c - ext/cai_move.h: arrays to other streams and devices, in all orders, with each ordering call left
 * out and each CUDA call failing in turn
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_move.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"

enum { ROWS = 3, COLUMNS = 4, PITCH = 24, BYTES = ROWS * PITCH };

static cai_error err;

/* Two devices: an array on the first, with work on `old`, and a stream of the second. */
typedef struct world {
    cai_sim *sim;
    cai_cuda cuda;
    cai_event_pool pool;
    cai_emm_hooks hooks;
    uint64_t device_of[2], old, next, data;
    cai_array x;
    int32_t released;
} world;

static void fail_unless(const world *w, int good, const char *what)
{
    if (!good) cai_check_fail(w->sim, what);
}

/* An owner that frees in the order of the stream that the array names then. Without one, nothing may be pending. */
static void give_back(cai_array *array)
{
    world *w = (world *)array->owner;
    array->release = NULL;
    w->released++;
    if (array->sync == CAI_SYNC_STREAM) (void)w->cuda.memory_free_async(w->cuda.self, w->data, array->stream);
    else (void)cai_sim_free(w->sim, w->data);
}

static void build(world *w, cai_sim *sim)
{
    const int64_t shape[2] = {ROWS, COLUMNS}, strides[2] = {PITCH, 4};
    int32_t i;
    memset(w, 0, sizeof *w);
    w->sim = sim;
    w->cuda = *cai_sim_cuda(sim);
    for (i = 1; i >= 0; --i) {
        w->device_of[i] = cai_sim_primary(sim, i);
        (void)cai_sim_set_context(sim, w->device_of[i]);
        if (i) w->next = cai_sim_stream_create(sim, 1);
    }
    w->old = cai_sim_stream_create(sim, 1);
    (void)w->cuda.memory_alloc_async(w->cuda.self, &w->data, BYTES, w->old);
    (void)cai_sim_stream_synchronize(sim, w->old);
    fail_unless(w, !cai_event_pool_init(&w->pool, &w->cuda, NULL, 0, 0, &err), err.message);
    fail_unless(w, !cai_emm_hooks_async(&w->hooks, &w->cuda, NULL, &err), err.message);
    fail_unless(w, !cai_array_init(&w->x, CAI_FLOAT32, 2, shape, strides, (void *)(uintptr_t)w->data, &err),
                err.message);
    w->x.memory = CAI_MEMORY_DEVICE;
    w->x.device = 0;
    fail_unless(w, !cai_stream_export(&w->x, &w->pool, w->old, NULL, 0, &err), err.message);
}

static void pull_down(world *w)
{
    (void)cai_sim_context_synchronize(w->sim);
    (void)cai_sim_set_context(w->sim, w->device_of[1]);
    (void)cai_sim_context_synchronize(w->sim);
    (void)cai_sim_set_context(w->sim, w->device_of[0]);
    fail_unless(w, !cai_keepalive_drain(&w->pool, &err), err.message);
    fail_unless(w, !cai_event_pool_destroy(&w->pool, &err), err.message);
    (void)cai_sim_stream_destroy(w->sim, w->old);
    (void)cai_sim_stream_destroy(w->sim, w->next);
}

/* ------------------------------------------------------------------ orders */
typedef struct plan {
    int32_t owned, detached, kept; /* detached: by an event; kept: its owner gets no back edge */
    int32_t ordered;               /* its owner frees behind the stream that it names */
    int32_t mode;                  /* of the pool */
} plan;

static void write_numbers(void *memory)
{
    int32_t i;
    for (i = 0; i < BYTES / 4; ++i) ((float *)memory)[i] = (float)(i + 1);
}

static void add_hundred(void *memory)
{
    int32_t i;
    for (i = 0; i < ROWS * COLUMNS; ++i) ((float *)memory)[i] += 100;
}

/* The owner writes, the array moves to the other device, and is used there. Then the owner writes again. */
static void move_program(cai_sim *sim, void *argument)
{
    const plan *const is = (const plan *)argument;
    cai_sim_access use;
    world w;
    const float *values;
    int32_t i, right = 0;
    build(&w, sim);
    use = cai_sim_writes(w.data, BYTES);
    (void)cai_sim_launch(sim, w.old, "before", write_numbers, cai_sim_bytes(sim, w.data), &use, 1);
    if (is->detached) fail_unless(&w, !cai_stream_detach(&w.x, &w.pool, &err), err.message);
    if (is->kept) w.x.flags |= CAI_NO_BACK_EDGE;
    fail_unless(&w, !cai_event_pool_set_modes(&w.pool, is->mode, 0, &err), err.message);
    if (is->owned) cai_array_own(&w.x, give_back, &w);
    if (is->ordered) w.x.flags |= CAI_ORDERED_FREE;
    fail_unless(&w, !cai_move(&w.x, &w.pool, w.next, &w.hooks, &err), err.message);
    fail_unless(&w, w.x.data != w.data && w.x.device == 1 && w.x.stream == w.next, "not moved");
    if (!is->owned) (void)cai_sim_touch(sim, w.old, "the owner again", &use, 1);
    use = cai_sim_writes(w.x.data, ROWS * COLUMNS * 4);
    values = (const float *)cai_sim_bytes(sim, w.x.data);
    (void)cai_sim_set_context(sim, w.device_of[1]);
    (void)cai_sim_launch(sim, w.next, "after", add_hundred, cai_sim_bytes(sim, w.x.data), &use, 1);
    (void)cai_sim_stream_synchronize(sim, w.next);
    for (i = 0; i < ROWS * COLUMNS; ++i)
        right += values[i] > 100.5f + (float)(i / COLUMNS * PITCH / 4 + i % COLUMNS) &&
                 values[i] < 101.5f + (float)(i / COLUMNS * PITCH / 4 + i % COLUMNS);
    fail_unless(&w, right == ROWS * COLUMNS, "other elements");
    cai_array_release(&w.x);
    (void)cai_sim_set_context(sim, w.device_of[0]);
    pull_down(&w);
    fail_unless(&w, w.released == is->owned, "the old memory was not given back once");
    if (!is->owned) (void)cai_sim_free(sim, w.data);
}

static void test_orders(void)
{
    int32_t n;
    for (n = 0; n < 32; ++n) {
        plan is;
        cai_check_options options = {0, 0, 0, 0, NULL, 0, 0, NULL, NULL};
        cai_check_result result;
        is.owned = n & 1;
        is.detached = n >> 1 & 1;
        is.kept = n >> 2 & 1;
        is.mode = n >> 3 & 1 ? CAI_MODE_IGNORE : CAI_MODE_EVENT; /* it is in order all the same */
        is.ordered = n >> 4;
        if (is.ordered && !is.owned) continue;
        if (is.kept && !is.owned) continue; /* the owner must know of the copy then */
        options.devices = 2;
        CHECK_INT(cai_check(move_program, &is, &options, &result), 0);
        CHECK_STR(result.text, "");
    }
}

/* Each call that orders, left out. */
static void test_left_out(void)
{
    static const char *const operations[] = {"event_record", "stream_wait_event"};
    int32_t owned, n, o;
    for (owned = 0; owned < 2; ++owned) {
        for (o = 0; o < 2; ++o) {
            plan is = {0, 0, 0, 0, 0};
            is.owned = is.ordered = owned; /* any other owner waits for an event of its own, too */
            for (n = 1; n < 20; ++n) {
                cai_check_options options = {0, 0, 0, 0, NULL, 0, 0, NULL, NULL};
                cai_check_result result;
                int32_t bad;
                options.devices = 2;
                options.omit = operations[o];
                options.omit_call = n;
                bad = cai_check(move_program, &is, &options, &result);
                if (!result.omitted) break;
                CHECK_INT(bad, 1);
            }
            CHECK_INT(n, 3); /* there, and back */
        }
    }
}

/* ------------------------------------------------------------------ without a copy */
static void test_same_device(void)
{
    world w;
    cai_sim *sim = cai_sim_create(2);
    uint64_t second;
    build(&w, sim);
    second = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_move(&w.x, &w.pool, second, &w.hooks, &err), CAI_OK);
    CHECK(w.x.data == w.data && w.x.stream == second && !w.x.release);
    w.x.memory = CAI_MEMORY_UNKNOWN; /* as after an import: it is located, and copied */
    w.x.device = CAI_DEVICE_UNKNOWN;
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, &w.hooks, &err), CAI_OK);
    CHECK(w.x.data != w.data && w.x.release && w.x.device == 1);
    cai_array_release(&w.x);
    w.x.data = w.data;
    w.x.memory = CAI_MEMORY_DEVICE; /* of a device that nobody wrote down */
    w.x.device = CAI_DEVICE_UNKNOWN;
    w.x.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_move(&w.x, &w.pool, second, NULL, &err), CAI_OK);
    CHECK(w.x.data == w.data && w.x.device == 0);
    w.x.memory = CAI_MEMORY_MANAGED; /* of no one device */
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, NULL, &err), CAI_OK);
    CHECK(w.x.data == w.data && w.x.stream == w.next);
    pull_down(&w);
    cai_sim_destroy(sim);
}

static int32_t no_primary_of_0(void *self, int32_t device, uint64_t *context)
{
    *context = device ? cai_sim_primary((cai_sim *)self, device) : 0;
    return 0;
}

static int32_t no_primary(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    (void)device;
    *context = 0;
    return 0;
}

/* The default streams are those of the current context. */
static void test_current_context(void)
{
    int32_t n;
    for (n = 0; n < 5; ++n) {
        uint64_t stream, plain = 0;
        world w;
        cai_sim *sim = cai_sim_create(2);
        build(&w, sim);
        if (n == 2) w.cuda.device_context = no_primary_of_0;
        if (n == 4) w.cuda.device_context = no_primary; /* by CUDA's plain copy */
        if (n == 3) w.x.data = plain = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES); /* it has a context */
        stream = n == 0 ? (uint64_t)CAI_STREAM_LEGACY : n == 1 ? (uint64_t)CAI_STREAM_PER_THREAD : w.next;
        w.x.sync = CAI_SYNC_NONE; /* events would need contexts */
        CHECK_INT(cai_sim_set_context(sim, w.device_of[1]), 0);
        CHECK_INT(cai_move(&w.x, &w.pool, stream, &w.hooks, NULL), CAI_OK);
        CHECK_INT(w.x.thread != 0, n == 1); /* whose stream that is */
        CHECK(w.x.data != w.data && w.x.data != plain);
        CHECK_INT(cai_sim_calls_of(sim, "copy_3d_peer_async"), n != 2 && n != 4);
        CHECK_UINT(cai_sim_current(sim), w.device_of[1]);
        w.cuda = *cai_sim_cuda(sim);
        cai_array_release(&w.x);
        CHECK_INT(cai_sim_set_context(sim, w.device_of[0]), 0);
        if (plain) (void)cai_sim_run(sim), (void)cai_sim_free(sim, plain);
        pull_down(&w);
        cai_sim_destroy(sim);
    }
}

/* Any dtype, shape and strides; the fields and the version of the interface stay. */
static void test_kinds(void)
{
    static const int64_t shape[2] = {ROWS, COLUMNS}, strides[2] = {-16, 4}, none[2] = {0, 4}, packed[2] = {7, 4};
    static cai_field fields[1];
    world w;
    cai_sim *sim = cai_sim_create(2);
    cai_dtype dtype;
    build(&w, sim);
    CHECK_INT(cai_dtype_parse("|S3", 3, 0, &dtype, &err), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&w.x, &dtype, 2, shape, strides, w.data + 32, &err), CAI_OK);
    w.x.memory = CAI_MEMORY_DEVICE;
    w.x.device = 0;
    w.x.sync = CAI_SYNC_NONE;
    w.x.version = 2;
    w.x.fields = fields;
    w.x.field_count = 1;
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, &w.hooks, &err), CAI_OK);
    CHECK_INT(w.x.dtype.itemsize, 3);
    CHECK(w.x.strides[0] == 12 && w.x.strides[1] == 3 && w.x.flags & CAI_C_CONTIGUOUS);
    CHECK(w.x.version == 2 && w.x.fields == fields && w.x.field_count == 1 && w.x.memory == CAI_MEMORY_DEVICE);
    CHECK(w.x.sync == CAI_SYNC_STREAM && w.x.stream == w.next && w.x.device == 1);
    CHECK_UINT(cai_sim_current(sim), w.device_of[0]);
    cai_array_release(&w.x);
    CHECK_INT(cai_array_init_packed(&w.x, CAI_INT4_X2, 2, packed, 0, NULL, (void *)(uintptr_t)w.data, &err),
              CAI_OK);
    w.x.memory = CAI_MEMORY_DEVICE;
    w.x.device = 0;
    w.x.sync = CAI_SYNC_NONE;
    if (!CHECK_INT(cai_move(&w.x, &w.pool, w.next, &w.hooks, &err), CAI_OK)) printf("    %s\n", err.message);
    CHECK(w.x.packed_axis == 0 && w.x.packed_extent == 7);
    CHECK(w.x.device == 1 && w.x.shape[0] == 4 && w.x.shape[1] == 4);
    cai_array_release(&w.x);
    CHECK_INT(cai_array_init(&w.x, CAI_FLOAT32, 2, none, NULL, NULL, &err), CAI_OK);
    w.x.memory = CAI_MEMORY_DEVICE; /* without elements it is nowhere */
    w.x.device = 0;
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, &w.hooks, &err), CAI_OK);
    CHECK(!w.x.release && w.x.stream == w.next);
    pull_down(&w);
    cai_sim_destroy(sim);
}

/* ------------------------------------------------------------------ errors */
static void refused(world *w, const cai_emm_hooks *hooks, cai_status status, const char *words)
{
    const cai_array before = w->x;
    memset(&err, 0, sizeof err);
    CHECK_INT(cai_move(&w->x, &w->pool, w->next, hooks, &err), status);
    CHECK_INT(err.code, status);
    if (!CHECK(strstr(err.message, words) != NULL)) printf("    %s\n", err.message);
    CHECK_BYTES(&w->x, &before, sizeof before);
    CHECK_UINT(cai_sim_current(w->sim), w->device_of[0]);
}

static void test_refused(void)
{
    world w;
    cai_sim *sim = cai_sim_create(2);
    static cai_event_pool unmade;
    cai_emm_hooks poor;
    build(&w, sim);
    CHECK_INT(cai_move(NULL, &w.pool, w.next, &w.hooks, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_move(&w.x, NULL, w.next, &w.hooks, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_move(&w.x, &w.pool, 0, &w.hooks, &err), CAI_ERR_STREAM);
    memset(&unmade, 0, sizeof unmade);
    w.x.memory = CAI_MEMORY_UNKNOWN;
    CHECK_INT(cai_move(&w.x, &unmade, w.next, &w.hooks, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_move(&w.x, NULL, w.next, &w.hooks, &err), CAI_ERR_ARGUMENT);
    w.x.data = 0x10; /* nobody's */
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, &w.hooks, &err), CAI_ERR_MEMORY);
    w.x.data = w.data;
    w.x.memory = CAI_MEMORY_DEVICE;
    refused(&w, NULL, CAI_ERR_PLACEMENT, ": copy it (cai_move)");
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, NULL, NULL), CAI_ERR_PLACEMENT);
    poor = w.hooks;
    poor.device_free = NULL;
    refused(&w, &poor, CAI_ERR_ARGUMENT, "device_free is NULL");
    cai_emm_hooks_malloc(&poor);
    refused(&w, &poor, CAI_ERR_MEMORY, "hooks: the table is of host memory");
    w.cuda.copy_peer_async = NULL; /* a table of before */
    w.cuda.copy_3d_async = NULL;
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, &w.hooks, NULL), CAI_ERR_UNAVAILABLE);
    w.cuda = *cai_sim_cuda(sim);
    w.cuda.copy_3d_peer_async = NULL;
    w.cuda.copy_3d_async = NULL;
    refused(&w, &w.hooks, CAI_ERR_UNAVAILABLE, "no copy_3d_async");
    w.cuda = *cai_sim_cuda(sim);
    CHECK_INT(cai_sim_fail_op(sim, "memory_alloc_async", 1, 2), 1);
    refused(&w, &w.hooks, CAI_ERR_OUT_OF_MEMORY, "is out of memory");
    pull_down(&w);
    cai_sim_destroy(sim);
}

static void test_refused_arrays(void)
{
    world w;
    cai_sim *sim = cai_sim_create(2);
    cai_array mask;
    cai_dtype bits;
    const int64_t shape[1] = {5};
    build(&w, sim);
    w.x.dtype.itemsize = -4; /* written over by somebody */
    refused(&w, &w.hooks, CAI_ERR_DATA, "");
    w.x.dtype.itemsize = 4;
    mask = w.x;
    w.x.mask = &mask;
    refused(&w, &w.hooks, CAI_ERR_EXPECT, "the array: a mask is not copied");
    w.x.mask = NULL;
    w.x.field_count = 1;
    cai_array_own(&w.x, give_back, &w);
    refused(&w, &w.hooks, CAI_ERR_EXPECT, "the fields of an owned array are not copied");
    w.x.release = NULL;
    w.x.field_count = 0;
    w.x.memory = CAI_MEMORY_HOST;
    refused(&w, &w.hooks, CAI_ERR_MEMORY, "the array: plain host memory");
    CHECK_INT(cai_dtype_parse("|t3", 3, 0, &bits, &err), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&w.x, &bits, 1, shape, NULL, w.data, &err), CAI_OK);
    w.x.memory = CAI_MEMORY_DEVICE;
    w.x.device = 0;
    w.x.sync = CAI_SYNC_NONE;
    refused(&w, &w.hooks, CAI_ERR_EXPECT, "bit fields");
    pull_down(&w);
    cai_sim_destroy(sim);
}

/* An owner that also frees at once, which CUDA forbids to a thread whose mode a capture forbids. */
static uint64_t apart;
static int32_t freed_with = -1;

static void give_back_noting(cai_array *array)
{
    freed_with = cai_sim_free(((world *)array->owner)->sim, apart);
    give_back(array);
}

/* The old memory is given back while thread 7 captures globally. That capture goes on. */
static void test_capture_elsewhere(void)
{
    world w;
    cai_sim *sim = cai_sim_create(2);
    uint64_t captured;
    int32_t mode = 0;
    build(&w, sim);
    captured = cai_sim_stream_create(sim, 1);
    apart = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 256);
    cai_array_own(&w.x, give_back_noting, &w);
    w.x.flags |= CAI_ORDERED_FREE;
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, w.device_of[0]), 0);
    CHECK_INT(cai_sim_capture_begin(sim, captured, CAI_SIM_MODE_GLOBAL), 0);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_move(&w.x, &w.pool, w.next, &w.hooks, &err), CAI_OK);
    CHECK_INT(w.released * 1000 + freed_with, 1000);
    CHECK_INT(w.cuda.capture_mode(w.cuda.self, &mode), 0);
    CHECK_INT(mode, 0); /* as it was */
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_capture_end(sim, captured, NULL), 0);
    cai_sim_host_thread(sim, 0);
    CHECK_INT(cai_sim_stream_destroy(sim, captured), 0);
    cai_array_release(&w.x);
    pull_down(&w);
    cai_sim_destroy(sim);
}

static int32_t (*real_mode)(void *self, int32_t *mode);
static int32_t mode_calls; /* until one fails */

static int32_t failing_mode(void *self, int32_t *mode)
{
    return mode_calls-- ? real_mode(self, mode) : 3;
}

/* The modes around the hooks must be set. Without that of the release, the old memory is given back all the same. */
static void test_mode_refused(void)
{
    int32_t at, moved = 0;
    for (at = 0; at < 6; ++at) {
        world w;
        cai_sim *sim = cai_sim_create(2);
        cai_status status;
        build(&w, sim);
        apart = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 256);
        cai_array_own(&w.x, give_back_noting, &w);
        w.x.flags |= CAI_ORDERED_FREE;
        real_mode = w.cuda.capture_mode;
        w.cuda.capture_mode = failing_mode;
        mode_calls = at;
        status = cai_move(&w.x, &w.pool, w.next, &w.hooks, &err);
        moved += !status && mode_calls < 0;
        CHECK_INT(w.released, status ? 0 : 1);
        w.cuda.capture_mode = real_mode;
        cai_array_release(&w.x);
        pull_down(&w);
        cai_sim_destroy(sim);
    }
    CHECK(moved > 0);
}

static cai_cuda *breaks;
static cai_sim *breaks_sim;

static int32_t no_current(void *self, uint64_t *context)
{
    (void)self;
    *context = 0;
    return 719;
}

static int32_t break_all(void *self, const cai_cuda_copy *copy, uint64_t to_context, uint64_t from_context,
                         uint64_t stream)
{
    (void)self;
    (void)copy;
    CHECK_UINT(stream, CAI_STREAM_LEGACY);
    CHECK_UINT(to_context, cai_sim_primary(breaks_sim, 1));
    CHECK_UINT(from_context, cai_sim_primary(breaks_sim, 0));
    breaks->context_current = no_current;
    return 719;
}

/* The device dies under the copy: there is nothing to wait for. */
static void test_dead(void)
{
    world w;
    cai_sim *sim = cai_sim_create(2);
    build(&w, sim);
    w.x.sync = CAI_SYNC_NONE;
    CHECK_INT(cai_sim_set_context(sim, w.device_of[1]), 0);
    breaks = &w.cuda;
    breaks_sim = sim;
    w.cuda.copy_3d_peer_async = break_all;
    CHECK_INT(cai_move(&w.x, &w.pool, CAI_STREAM_LEGACY, &w.hooks, &err), CAI_ERR_CUDA);
    CHECK(err.native == 719 && strstr(err.message, "719") != NULL && w.x.data == w.data);
    cai_sim_destroy(sim);
}

/* Each CUDA call fails once. What is told leaves the array as it was, and no memory behind. */
static void test_faults(void)
{
    int32_t n, borrowed, struck = 1, told = 0;
    for (borrowed = 0; borrowed < 2; ++borrowed, struck = 1) {
        for (n = 1; struck; ++n) {
            char note[60], text[200];
            cai_sim *sim = cai_sim_create(2);
            world w;
            cai_array before;
            cai_status status;
            build(&w, sim);
            if (borrowed) CHECK_INT(cai_stream_detach(&w.x, &w.pool, &err), CAI_OK);
            else cai_array_own(&w.x, give_back, &w);
            sprintf(note, "call %d, %s", (int)n, borrowed ? "borrowed, with an event" : "owned");
            cai_test_note(note);
            before = w.x;
            CHECK_INT(cai_sim_fail(sim, n, 999), 1);
            status = cai_move(&w.x, &w.pool, w.next, &w.hooks, &err);
            struck = !cai_sim_faults(sim);
            cai_sim_faults_clear(sim);
            told += status != CAI_OK;
            if (status && !strstr(err.message, "context_pop")) CHECK_BYTES(&w.x, &before, sizeof before);
            if (status != CAI_ERR_CAPTURE && status) CHECK_INT(err.native, 999); /* asked whether it captures */
            CHECK_UINT(cai_sim_current(sim), w.device_of[0]);
            if (status && !strstr(err.message, "context_pop")) { /* nothing reads the array any more */
                const cai_sim_access use = cai_sim_writes(w.data, BYTES);
                cai_check_race race[1];
                (void)cai_sim_host_access(sim, "the caller again", &use, 1);
                CHECK_INT(cai_check_races(sim, race, 1), 0);
            }
            cai_sim_run(sim);
            if (status && borrowed) CHECK_INT(cai_stream_drop_event(&w.x, &w.pool, &err), CAI_OK);
            cai_array_release(&w.x);
            pull_down(&w);
            if (borrowed) CHECK_INT(cai_sim_free(sim, w.data), 0);
            else CHECK_INT(w.released, 1);
            cai_sim_leaks(sim, text, sizeof text);
            if (status || !struck) CHECK_STR(text, ""); /* else the owner's own free failed */
            cai_sim_destroy(sim);
        }
    }
    cai_test_note("");
    CHECK(told > 30);
    printf("faults: %d told\n", (int)told);
}

int main(void)
{
    test_orders();
    test_left_out();
    test_same_device();
    test_current_context();
    test_capture_elsewhere();
    test_mode_refused();
    test_kinds();
    test_refused();
    test_refused_arrays();
    test_dead();
    test_faults();
    return cai_test_end();
}
