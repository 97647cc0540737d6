/* test_access.c - ext/cai_access.h: fields as arguments, in which order what is called, temporaries, faults, races
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_access.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"

#include <stdlib.h>
#include <string.h>

enum { H = CAI_SIDE_HOST, D = CAI_SIDE_DEVICE, LENGTH = 5 };

static cai_sim *sim;
static cai_event_pool pool;
static cai_emm_hooks hooks;
static cai_storage_options options; /* of temporary buffers, and of storages */
static cai_layout layout;
static cai_dtype dtype;
static uint64_t home, s1, s2;
static cai_error err;

#define GOOD(call) good(__FILE__, __LINE__, #call, (call))
#define REFUSED(call, status, index, words) refused(__FILE__, __LINE__, #call, (call), (status), (index), (words))

static void good(const char *file, int line, const char *what, cai_status status)
{
    if (!cai_test_int(file, line, what, status, CAI_OK)) printf("    %s\n", err.message);
}

static void refused(const char *file, int line, const char *what, cai_status status, cai_status expected,
                    int32_t index, const char *words)
{
    cai_test_int(file, line, what, status, expected);
    cai_test_int(file, line, what, err.code, expected);
    cai_test_int(file, line, what, err.index, index);
    if (!cai_test_true(file, line, what, strstr(err.message, words) != NULL)) printf("    %s\n", err.message);
    memset(&err, 0, sizeof err);
}

/* ------------------------------------------------------------------- the world */
static void open_in(cai_sim *simulation)
{
    sim = simulation;
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS);
    home = cai_sim_stream_create(sim, 1);
    s1 = cai_sim_stream_create(sim, 1);
    s2 = cai_sim_stream_create(sim, 1);
    GOOD(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, &err));
    GOOD(cai_emm_hooks_cuda(&hooks, cai_sim_cuda(sim), &err));
    GOOD(cai_dtype_of(CAI_INT32, &dtype, &err));
    memset(&layout, 0, sizeof layout);
    layout.ndim = 1;
    layout.shape[0] = LENGTH;
    memset(&options, 0, sizeof options);
    options.pool = &pool;
    options.hooks = &hooks;
    options.home = home;
    options.kind = CAI_STORAGE_BOTH;
}

static void start(const char *note)
{
    cai_sim *made = cai_sim_create(1);
    cai_test_note(note);
    if (!made) exit(2);
    CHECK_INT(cai_sim_set_context(made, cai_sim_primary_retain(made, 0)), 0);
    open_in(made);
}

static void close_streams(void)
{
    GOOD(cai_keepalive_drain(&pool, &err));
    GOOD(cai_event_pool_destroy(&pool, &err));
    cai_sim_stream_destroy(sim, home);
    cai_sim_stream_destroy(sim, s1);
    cai_sim_stream_destroy(sim, s2);
}

static void finish(void)
{
    char text[300];
    cai_sim_run(sim);
    close_streams();
    CHECK_INT(cai_sim_leaks(sim, text, sizeof text), 0);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
    sim = NULL;
}

static int32_t *at(const cai_array *array, int64_t i)
{
    const uint64_t address = array->data + (uint64_t)i * (uint64_t)array->strides[0];
    void *bytes = sim ? cai_sim_bytes(sim, address) : NULL;
    return (int32_t *)(bytes ? bytes : (void *)(uintptr_t)address);
}

static cai_array array_at(uint64_t data, int32_t memory)
{
    const int64_t extent = LENGTH;
    cai_array x;
    GOOD(cai_array_init_dtype(&x, &dtype, 1, &extent, NULL, data, &err));
    x.memory = memory;
    x.sync = CAI_SYNC_NONE;
    if (memory != CAI_MEMORY_HOST) x.device = 0;
    return x;
}

/* A field without functions. */
static cai_access plain_field(const cai_array *on_host, const cai_array *on_device)
{
    cai_access field;
    memset(&field, 0, sizeof field);
    field.struct_size = (uint32_t)sizeof field;
    field.version = CAI_ACCESS_VERSION;
    field.array[0] = on_host;
    field.array[1] = on_device;
    return field;
}

static void set_argument(cai_argument *argument, const cai_access *access, int32_t mode)
{
    memset(argument, 0, sizeof *argument);
    argument->access = access;
    argument->mode = mode;
}

/* The work: out = 10 * in + 1 in a stream, or on the host. */
typedef struct work {
    cai_array in, out;
} work;

static work works[8];
static int32_t work_count;

static void do_work(void *argument)
{
    const work *w = (const work *)argument;
    int64_t i;
    for (i = 0; i < LENGTH; i++) *at(&w->out, i) = 10 * *at(&w->in, i) + 1;
}

static void queue_work(const cai_argument *io, uint64_t stream)
{
    work *w = &works[work_count++ % 8];
    cai_sim_access accesses[2];
    w->in = io[0].array;
    w->out = io[1].array;
    if (!stream) {
        do_work(w);
        return;
    }
    accesses[0] = cai_sim_reads(w->in.data, LENGTH * 4);
    accesses[1] = cai_sim_writes(w->out.data, LENGTH * 4);
    CHECK_INT(cai_sim_launch(sim, stream, "work", do_work, w, accesses, 2), 0);
}

/* ------------------------------------------------------------------- the order */
/* A field whose functions write down their calls. */
typedef struct noted {
    cai_access access;
    char name;
    int32_t fails; /* 'a', 't' or 'r' */
} noted;

static char notes[200];

static int32_t note(const noted *n, char what, int32_t number, struct cai_error *error)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%c%c%d ", what, n->name, (int)number);
    strcat(notes, text);
    return n->fails == what ? cai_error_set(CAI_ERR_SHAPE, "noted", NULL, error) : CAI_OK;
}

static int32_t note_acquire(void *ctx, int32_t side, int32_t mode, uint64_t stream, struct cai_error *error)
{
    CHECK(stream == s1 || stream == home || stream == 0);
    return note((const noted *)ctx, 'a', 10 * side + mode, error);
}

static int32_t note_touch(void *ctx, struct cai_error *error) { return note((const noted *)ctx, 't', 0, error); }

static int32_t note_release(void *ctx, int32_t status, struct cai_error *error)
{
    return note((const noted *)ctx, 'r', status, error);
}

static void make_noted(noted *n, char name, const cai_array *on_host, const cai_array *on_device)
{
    n->access = plain_field(on_host, on_device);
    n->access.ctx = n;
    n->access.acquire = note_acquire;
    n->access.touch = note_touch;
    n->access.release = note_release;
    n->name = name;
    n->fails = 0;
}

static void expect_notes(const char *expected)
{
    CHECK_STR(notes, expected);
    notes[0] = 0;
}

static void test_order(void)
{
    static const int32_t modes[3] = {CAI_READ, CAI_WRITE, CAI_OVERWRITE};
    noted n[3];
    cai_argument io[3];
    cai_array x;
    int32_t i;
    start("order of the calls");
    x = array_at(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64), CAI_MEMORY_DEVICE);
    for (i = 0; i < 3; i++) {
        make_noted(&n[i], (char)('x' + i), NULL, &x);
        set_argument(&io[i], &n[i].access, modes[i]);
    }
    GOOD(cai_access_begin(io, 3, NULL, D, s1, &err));
    CHECK(!(io[0].array.flags & CAI_WRITABLE) && (io[1].array.flags & CAI_WRITABLE));
    CHECK(io[2].array.sync == CAI_SYNC_STREAM && io[2].array.stream == s1);
    GOOD(cai_access_end(io, 3, CAI_OK, &err));
    expect_notes("ax21 ay22 az24 rx0 ty0 ry0 tz0 rz0 ");
    GOOD(cai_access_begin(io, 3, NULL, D, s1, &err));
    CHECK_INT(cai_access_end(io, 3, CAI_ERR_VIEW, &err), CAI_ERR_VIEW); /* the work failed: no touch */
    expect_notes("ax21 ay22 az24 rx16 ry16 rz16 ");
    for (i = 0; i < 3; i++) {
        n[i].fails = 'a';
        REFUSED(cai_access_begin(io, 3, NULL, D, s1, &err), CAI_ERR_SHAPE, i, "noted");
        expect_notes(i == 0 ? "ax21 " : i == 1 ? "ax21 ay22 rx0 " : "ax21 ay22 az24 ry0 rx0 ");
        n[i].fails = 0;
    }
    n[1].fails = 't';
    GOOD(cai_access_begin(io, 3, NULL, D, s1, &err));
    REFUSED(cai_access_end(io, 3, CAI_OK, &err), CAI_ERR_SHAPE, 1, "noted");
    expect_notes("ax21 ay22 az24 rx0 ty0 ry5 tz0 rz0 ");
    n[1].fails = 'r';
    GOOD(cai_access_begin(io, 3, NULL, D, s1, &err));
    REFUSED(cai_access_end(io, 3, CAI_OK, &err), CAI_ERR_SHAPE, 1, "noted");
    expect_notes("ax21 ay22 az24 rx0 ty0 ry0 tz0 rz0 ");
    n[1].fails = 0;
    io[2].mode = 3;
    REFUSED(cai_access_begin(io, 3, NULL, D, s1, &err), CAI_ERR_ARGUMENT, 2, "mode = 3");
    io[2].mode = CAI_READ;
    n[2].access.version = 2;
    notes[0] = 0;
    REFUSED(cai_access_begin(io, 3, NULL, D, s1, &err), CAI_ERR_ABI, 2, "version 2");
    n[2].access.version = 1;
    n[2].access.struct_size--;
    REFUSED(cai_access_begin(io, 3, NULL, D, s1, &err), CAI_ERR_ABI, 2, "bytes");
    n[2].access.struct_size++;
    n[2].access.array[1] = NULL;
    REFUSED(cai_access_begin(io, 3, NULL, D, s1, &err), CAI_ERR_ARGUMENT, 2, "no array");
    io[2].access = NULL;
    REFUSED(cai_access_begin(io, 3, NULL, D, s1, &err), CAI_ERR_ARGUMENT, 2, "access is NULL");
    REFUSED(cai_access_begin(io, -1, NULL, D, s1, &err), CAI_ERR_ARGUMENT, -1, "count = -1");
    REFUSED(cai_access_begin(NULL, 1, NULL, D, s1, &err), CAI_ERR_ARGUMENT, -1, "NULL");
    REFUSED(cai_access_begin(io, 1, NULL, 3, s1, &err), CAI_ERR_ARGUMENT, -1, "side = 3");
    REFUSED(cai_access_end(NULL, 1, CAI_OK, &err), CAI_ERR_ARGUMENT, -1, "NULL");
    REFUSED(cai_access_begin(io, 1, NULL, H, 0, &err), CAI_ERR_ARGUMENT, 0, "options is NULL");
    notes[0] = 0;
    cai_sim_free(sim, x.data);
    finish();
}

/* --------------------------------------------------------------------- the side */
static void test_side(void)
{
    static const struct {
        int32_t has, newer, mode, other_has, other_mode, side;
    } rows[] = {
        {3, 0, CAI_READ, 3, CAI_WRITE, D},     {3, H, CAI_READ, 3, CAI_WRITE, H},     {3, D, CAI_READ, 3, CAI_WRITE, D},
        {3, H, CAI_OVERWRITE, 3, CAI_READ, D}, {1, 0, CAI_READ, 3, CAI_OVERWRITE, H}, {2, 0, CAI_READ, 3, CAI_READ, D},
        {1, 0, CAI_READ, 2, CAI_READ, D},      {1, 0, CAI_WRITE, 2, CAI_READ, H},     {1, 0, CAI_READ, 2, CAI_WRITE, D},
        {1, 0, CAI_READ, 2, CAI_OVERWRITE, D}, {1, 0, CAI_READ, 1, CAI_READ, H},
    };
    cai_argument io[2];
    cai_access fields[2];
    cai_array x;
    int32_t line[LENGTH], newer;
    size_t i;
    sim = NULL;
    GOOD(cai_dtype_of(CAI_INT32, &dtype, &err));
    x = array_at((uint64_t)(uintptr_t)line, CAI_MEMORY_HOST);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        newer = rows[i].newer;
        fields[0] = plain_field(rows[i].has & H ? &x : NULL, rows[i].has & D ? &x : NULL);
        fields[1] = plain_field(rows[i].other_has & H ? &x : NULL, rows[i].other_has & D ? &x : NULL);
        fields[0].newer = &newer;
        set_argument(&io[0], &fields[0], rows[i].mode);
        set_argument(&io[1], &fields[1], rows[i].other_mode);
        if (!CHECK_INT(cai_access_side(io, 2), rows[i].side)) printf("    row %d\n", (int)i);
    }
    io[1].access = NULL;
    CHECK_INT(cai_access_side(io, 2), 0);
    CHECK_INT(cai_access_side(NULL, 2), 0);
    CHECK_INT(cai_access_side(io, 0), 0);
}

/* ------------------------------------------------------------ storages as fields */
static void fill(cai_storage *storage, int32_t value)
{
    cai_storage_access a;
    int32_t i;
    GOOD(cai_storage_begin(&a, storage, storage->sides & H ? H : D, CAI_OVERWRITE, storage->sides & H ? 0 : home,
                           &err));
    cai_sim_run(sim);
    for (i = 0; i < LENGTH; i++) *at(&a.array, i) = value + i;
    GOOD(cai_storage_end(&a, CAI_OK, &err));
}

static int holds(cai_storage *storage, int32_t value, int32_t step)
{
    cai_storage_access a;
    int32_t i, wrong = 0;
    GOOD(cai_storage_begin(&a, storage, storage->sides & H ? H : D, CAI_READ, storage->sides & H ? 0 : home, &err));
    cai_sim_run(sim);
    for (i = 0; i < LENGTH; i++) wrong += *at(&a.array, i) != value + step * i;
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    return !wrong;
}

/* Every pair of kinds, on both sides, and with work that fails. */
static void test_storages(void)
{
    int32_t kinds, side, failed;
    for (kinds = 0; kinds < 16; kinds++)
        for (side = H; side <= D; side++)
            for (failed = 0; failed < 2; failed++) {
                cai_storage in, out;
                cai_storage_field fields[2];
                cai_argument io[2];
                start("storages as fields");
                options.kind = 1 + kinds % 4;
                GOOD(cai_storage_init(&in, &options, &dtype, &layout, &err));
                options.kind = 1 + kinds / 4;
                GOOD(cai_storage_init(&out, &options, &dtype, &layout, &err));
                fill(&in, 3);
                fill(&out, 100);
                GOOD(cai_storage_as_field(&fields[0], &in, "I", &err));
                GOOD(cai_storage_as_field(&fields[1], &out, "I", &err));
                CHECK(fields[1].access.halo_low == out.layout.halo_low && fields[0].access.newer == &in.state);
                set_argument(&io[0], &fields[0].access, CAI_READ);
                set_argument(&io[1], &fields[1].access, CAI_WRITE);
                GOOD(cai_access_begin(io, 2, &options, side, side == D ? s1 : 0, &err));
                if (!failed) queue_work(io, side == D ? s1 : 0);
                CHECK_INT(cai_access_end(io, 2, failed ? CAI_ERR_VIEW : CAI_OK, &err), failed ? CAI_ERR_VIEW : 0);
                CHECK(holds(&in, 3, 1));
                CHECK(failed ? holds(&out, 100, 1) : holds(&out, 31, 10));
                CHECK_INT(io[0].state | io[1].state, 0);
                GOOD(cai_storage_release(&in, &err));
                GOOD(cai_storage_release(&out, &err));
                finish();
            }
    start("one storage twice");
    {
        cai_storage storage;
        cai_storage_field fields[2];
        cai_argument io[2];
        GOOD(cai_storage_init(&storage, &options, &dtype, &layout, &err));
        fill(&storage, 4);
        GOOD(cai_storage_as_field(&fields[0], &storage, NULL, &err));
        GOOD(cai_storage_as_field(&fields[1], &storage, NULL, &err));
        set_argument(&io[0], &fields[0].access, CAI_READ);
        set_argument(&io[1], &fields[1].access, CAI_WRITE);
        GOOD(cai_access_begin(io, 2, &options, D, s1, &err));
        queue_work(io, s1);
        GOOD(cai_access_end(io, 2, CAI_OK, &err));
        CHECK(holds(&storage, 41, 10));
        GOOD(cai_storage_sync(&storage, D, 0, &err));
        GOOD(cai_access_begin(io, 2, &options, D, s1, &err)); /* undone by hand: nothing was written */
        GOOD(io[1].access->release(io[1].access->ctx, CAI_OK, &err));
        GOOD(io[0].access->release(io[0].access->ctx, CAI_OK, &err));
        CHECK_INT(storage.state, CAI_STORAGE_CLEAN);
        GOOD(cai_storage_release(&storage, &err));
    }
    REFUSED(cai_storage_as_field(NULL, NULL, NULL, &err), CAI_ERR_ARGUMENT, -1, "NULL");
    finish();
}

/* --------------------------------------------------------------- temporary buffers */
static void test_temporaries(void)
{
    int32_t in[LENGTH] = {1, 2, 3, 4, 5}, out[LENGTH] = {0}, i;
    cai_array x, y;
    cai_access fields[2];
    cai_argument io[2];
    start("host arrays on the device");
    x = array_at((uint64_t)(uintptr_t)in, CAI_MEMORY_HOST);
    y = array_at((uint64_t)(uintptr_t)out, CAI_MEMORY_HOST);
    x.flags &= ~(uint32_t)CAI_WRITABLE; /* an input may be read-only */
    fields[0] = plain_field(&x, NULL);
    fields[1] = plain_field(&y, NULL);
    set_argument(&io[0], &fields[0], CAI_READ);
    set_argument(&io[1], &fields[1], CAI_OVERWRITE);
    GOOD(cai_access_begin(io, 2, &options, D, s1, &err));
    CHECK_INT(cai_sim_calls_of(sim, "copy_async"), 1); /* the output is overwritten */
    queue_work(io, s1);
    GOOD(cai_access_end(io, 2, CAI_OK, &err));
    CHECK_INT(cai_sim_calls_of(sim, "copy_async"), 2);
    for (i = 0; i < LENGTH; i++) CHECK_INT(out[i], 10 * in[i] + 1); /* the release waited for the copy */
    memset(out, 0, sizeof out);
    GOOD(cai_access_begin(io, 2, &options, D, s1, &err));
    queue_work(io, s1);
    CHECK_INT(cai_access_end(io, 2, CAI_ERR_VIEW, &err), CAI_ERR_VIEW);
    cai_sim_run(sim);
    for (i = 0; i < LENGTH; i++) CHECK_INT(out[i], 0); /* not copied back */
    set_argument(&io[0], &fields[0], CAI_WRITE);
    REFUSED(cai_access_begin(io, 2, &options, D, s1, &err), CAI_ERR_EXPECT, 0, "read-only");
    GOOD(cai_access_begin(io + 1, 1, &options, H, 0, &err)); /* in place */
    CHECK_UINT(io[1].array.data, y.data);
    GOOD(cai_access_end(io + 1, 1, CAI_OK, &err));
    finish();
    start("device arrays on the host");
    x = array_at(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64), CAI_MEMORY_DEVICE);
    y = array_at(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64), CAI_MEMORY_DEVICE);
    for (i = 0; i < LENGTH; i++) *at(&x, i) = i;
    x.sync = y.sync = CAI_SYNC_STREAM;
    x.stream = s1;
    y.stream = s2;
    fields[0] = plain_field(NULL, &x);
    fields[1] = plain_field(NULL, &y);
    set_argument(&io[0], &fields[0], CAI_READ);
    set_argument(&io[1], &fields[1], CAI_OVERWRITE);
    GOOD(cai_access_begin(io, 2, &options, H, 0, &err));
    queue_work(io, 0);
    GOOD(cai_access_end(io, 2, CAI_OK, &err));
    cai_sim_run(sim);
    for (i = 0; i < LENGTH; i++) CHECK_INT(*at(&y, i), 10 * i + 1);
    cai_sim_free(sim, x.data);
    cai_sim_free(sim, y.data);
    finish();
}

/* The stream captures at the end: the argument stays open, and the next end does all that is left. */
static void test_end_in_capture(void)
{
    int32_t in[LENGTH] = {1, 2, 3, 4, 5}, out[LENGTH] = {0}, i;
    cai_array x, y;
    cai_access fields[2];
    cai_argument io[2];
    uint64_t graph = 0;
    start("an end while the stream captures");
    x = array_at((uint64_t)(uintptr_t)in, CAI_MEMORY_HOST);
    y = array_at((uint64_t)(uintptr_t)out, CAI_MEMORY_HOST);
    fields[0] = plain_field(&x, NULL);
    fields[1] = plain_field(&y, NULL);
    set_argument(&io[0], &fields[0], CAI_READ);
    set_argument(&io[1], &fields[1], CAI_OVERWRITE);
    GOOD(cai_access_begin(io, 2, &options, D, s1, &err));
    queue_work(io, s1);
    CHECK_INT(cai_sim_capture_begin(sim, s1, 2), 0);
    REFUSED(cai_access_end(io, 2, CAI_OK, &err), CAI_ERR_CAPTURE, 0, "captur");
    CHECK(io[0].state && io[1].state);
    CHECK_INT(cai_access_end(io, 2, CAI_ERR_CAPTURE, NULL), CAI_ERR_CAPTURE);
    CHECK(io[0].state && io[1].state);
    CHECK_INT(cai_sim_capture_end(sim, s1, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    GOOD(cai_access_end(io, 2, CAI_OK, &err));
    CHECK_INT(io[0].state | io[1].state, 0);
    for (i = 0; i < LENGTH; i++) CHECK_INT(out[i], 10 * in[i] + 1);
    finish();
}

/* ----------------------------------------------------------------------- faults */
static const int32_t errors[] = {1, 2, 201, 900, 999}; /* after 4 and 700 no work would run any more */

static uint64_t temporary; /* the address of the temporary buffer */

/* A storage that is only on the device and a host array, worked on on the device. */
static cai_status one_call(cai_storage *in, const cai_array *out)
{
    cai_storage_field field;
    cai_access plain = plain_field(out, NULL);
    cai_argument io[2];
    cai_status status;
    GOOD(cai_storage_as_field(&field, in, NULL, &err));
    set_argument(&io[0], &field.access, CAI_READ);
    set_argument(&io[1], &plain, CAI_WRITE);
    status = cai_access_begin(io, 2, &options, D, s1, &err);
    if (status) {
        CHECK_INT(in->open[0] + in->open[1], 0);
        CHECK(err.index == 0 || err.index == 1);
        return status;
    }
    temporary = io[1].array.data;
    queue_work(io, s1);
    status = cai_access_end(io, 2, CAI_OK, &err);
    if (io[0].state | io[1].state) {
        CHECK(status != CAI_OK);
        CHECK_INT(cai_access_end(io, 2, CAI_OK, NULL), CAI_OK);
    }
    CHECK_INT(io[0].state | io[1].state, 0);
    return status;
}

/* Memory whose free failed is the hook's: nobody knows whether it is still there. */
static int32_t leave_to_the_hook(cai_status status)
{
    char text[100];
    if (!status || !strstr(err.message, "a free of cuda")) return 0;
    cai_sim_run(sim);
    if (cai_sim_leaks(sim, text, sizeof text) && strstr(text, "m2"))
        cai_sim_free(sim, temporary);
    return 1;
}

static void test_faults(void)
{
    int32_t out[LENGTH], i, n, calls = 0, injected = 0, reported = 0, mixed = 0, left = 0;
    size_t e;
    for (n = 0; n <= calls; n++)
        for (e = 0; e < sizeof errors / sizeof *errors; e++) {
            cai_storage in;
            cai_array y;
            cai_status status;
            int32_t kept = 0, done = 0;
            start("faults");
            options.kind = CAI_STORAGE_DEVICE;
            GOOD(cai_storage_init(&in, &options, &dtype, &layout, &err));
            fill(&in, 1);
            for (i = 0; i < LENGTH; i++) out[i] = -1;
            y = array_at((uint64_t)(uintptr_t)out, CAI_MEMORY_HOST);
            cai_sim_log_clear(sim);
            if (n) CHECK_INT(cai_sim_fail(sim, n, errors[e]), 1);
            status = one_call(&in, &y);
            if (!n) calls = cai_sim_calls(sim);
            injected += n > 0;
            reported += status != CAI_OK;
            cai_sim_run(sim);
            for (i = 0; i < LENGTH; i++) {
                kept += out[i] == -1;
                done += out[i] == 10 * (1 + i) + 1;
            }
            mixed += kept != LENGTH && done != LENGTH;
            if (!status) CHECK_INT(done, LENGTH);
            if (!n) CHECK_INT(status, CAI_OK);
            left += leave_to_the_hook(status);
            GOOD(cai_storage_release(&in, &err));
            finish();
        }
    printf("faults: %d calls, %d injected, %d reported, %d half results, %d frees refused\n", (int)calls, (int)injected,
           (int)reported, (int)mixed, (int)left);
    CHECK_INT(mixed, 0);
    CHECK(calls > 20 && reported > injected / 2);
}

/* ------------------------------------------------------------------------ races */
static void racing_program(cai_sim *simulation, void *argument)
{
    cai_storage in;
    cai_storage_field field;
    cai_access plain;
    cai_argument io[2];
    cai_array y;
    cai_sim_access whole;
    int32_t i;
    (void)argument;
    open_in(simulation);
    cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_FREE_RETURNS);
    GOOD(cai_storage_init(&in, &options, &dtype, &layout, &err));
    y = array_at(cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 64), CAI_MEMORY_PINNED);
    y.sync = CAI_SYNC_STREAM;
    y.stream = s2;
    whole = cai_sim_writes(y.data, 4 * LENGTH);
    cai_sim_touch(sim, s2, "owner", &whole, 1); /* pending work of the owner of a field */
    GOOD(cai_storage_mark(&in, H, 0, 0, &err));
    plain = plain_field(&y, NULL);
    for (i = 0; i < 2; i++) {
        GOOD(cai_storage_as_field(&field, &in, NULL, &err));
        set_argument(&io[0], &field.access, CAI_READ);
        set_argument(&io[1], &plain, CAI_WRITE);
        GOOD(cai_access_begin(io, 2, &options, D, s1, &err));
        whole = cai_sim_writes(io[1].array.data, 4 * LENGTH);
        cai_sim_touch(sim, s1, "work", &whole, 1);
        GOOD(cai_access_end(io, 2, CAI_OK, &err));
    }
    whole = cai_sim_writes(y.data, 4 * LENGTH);
    cai_sim_touch(sim, s2, "owner again", &whole, 1);
    GOOD(cai_storage_release(&in, &err));
    cai_sim_stream_synchronize(sim, s2);
    cai_sim_free(sim, y.data);
    close_streams();
}

static void test_races(void)
{
    cai_check_result result;
    cai_test_note("races");
    CHECK_INT(cai_check(racing_program, NULL, NULL, &result), 0);
    CHECK_STR(result.text, "");
    cai_test_note("");
}

static void run_tests(void)
{
    test_order();
    test_side();
    test_storages();
    test_temporaries();
    test_end_in_capture();
    test_faults();
    test_races();
}

CAI_TEST_MAIN(run_tests)
