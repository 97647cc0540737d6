/* test_storage_more.c - ext/cai_storage.h: without CUDA, slots and hooks that are missing, arguments, read-only
 * buffers, calls that fail one after the other
 * SPDX-License-Identifier: MIT */
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#include "cai_emm.h"
#include "cai_layout.h"
#include "cai_transfer.h"
#include <stdlib.h>
static int no_memory; /* cai_storage.h gets none */
static void *take(size_t size)
{
    return no_memory ? NULL : malloc(size);
}
#define malloc(size) take(size)
#endif
#include "cai_storage.h"
#undef malloc
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"
#include "cai_test_help.h"
#include "packed_model.h"
#include "storage_world.h"

static int is_zero(const cai_storage *s)
{
    const unsigned char *byte = (const unsigned char *)s;
    size_t i;
    for (i = 0; i < sizeof *s; ++i)
        if (byte[i]) return 0;
    return 1;
}

/* The end of a simulation whose device has failed: what is left in it cannot be freed. */
static void finish_dead(void)
{
    if (cai_event_pool_destroy(&pool, &err)) printf("    %s\n", err.message);
    cai_sim_destroy(sim);
}

static int32_t *numbers(const cai_array *array)
{
    void *bytes = cai_sim_bytes(sim, array->data);
    return (int32_t *)(bytes ? bytes : (void *)(uintptr_t)array->data);
}

static void fill(cai_storage *s, int32_t value)
{
    cai_storage_access a;
    int32_t i;
    GOOD(cai_storage_begin(&a, s, H, CAI_OVERWRITE, 0, &err));
    for (i = 0; i < LENGTH; ++i) numbers(&a.array)[i] = value + i;
    GOOD(cai_storage_end(&a, CAI_OK, &err));
}

static int holds(cai_storage *s, int32_t value)
{
    cai_storage_access a;
    int32_t i;
    int all = 1;
    GOOD(cai_storage_begin(&a, s, H, CAI_READ, 0, &err));
    for (i = 0; i < LENGTH; ++i) all &= numbers(&a.array)[i] == value + i;
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    return all;
}

static void fail_op(const char *operation, int32_t n, int32_t error)
{
    CHECK_INT(cai_sim_fail_op(sim, operation, n, error), 1);
}

/* ------------------------------------------------------------------- without CUDA */
static int32_t released;

static void count_release(cai_array *array)
{
    array->release = NULL;
    ++released;
}

static cai_array line_of(int32_t *values)
{
    const int64_t extent = LENGTH;
    cai_array x;
    GOOD(cai_array_init(&x, CAI_INT32, 1, &extent, NULL, values, &err));
    x.memory = CAI_MEMORY_HOST;
    x.sync = CAI_SYNC_NONE;
    return x;
}

static void test_without_cuda(void)
{
    static int32_t values[LENGTH];
    cai_storage_access a;
    cai_storage other, both;
    cai_array x;
    start("without CUDA");
    options.pool = NULL;
    options.hooks = NULL;
    options.host = &plain;
    options.home = 0;
    options.kind = CAI_STORAGE_HOST;
    make(&storage);
    CHECK_INT(storage.array[0].memory, CAI_MEMORY_HOST);
    fill(&storage, 5);
    x = line_of(values);
    cai_array_own(&x, count_release, values);
    released = 0;
    GOOD(cai_storage_wrap(&other, &options, &x, NULL, CLEAN, &err));
    CHECK(x.release == NULL && other.array[0].data == (uint64_t)(uintptr_t)values);
    GOOD(cai_storage_assign(&other, &storage, &err));
    CHECK(values[0] == 5 && values[LENGTH - 1] == 10);
    REFUSED(cai_storage_begin(&a, &other, H, CAI_READ, s1, &err), CAI_ERR_ARGUMENT, "without a pool has no streams");
    GOOD(cai_storage_export(&other, H, CAI_WRITE, 0, &x, &err));
    REFUSED(cai_storage_release(&other, &err), CAI_ERR_PENDING, "1 accesses of the host side");
    x.sync = CAI_SYNC_STREAM; /* which means nothing here */
    cai_array_release(&x);
    options.pool = &pool; /* from one without a pool to one with, and back: the host waits for home */
    options.hooks = &hooks;
    options.host = NULL;
    options.home = home;
    options.kind = CAI_STORAGE_BOTH;
    make(&both);
    GOOD(cai_storage_assign(&both, &other, &err));
    CHECK(!cai_sim_pending(sim) && holds(&both, 5) && both.state == CAI_STORAGE_HOST_NEWER);
    fill(&both, 30);
    GOOD(cai_storage_sync(&both, D, 0, &err));
    GOOD(cai_storage_assign(&other, &both, &err));
    CHECK(values[0] == 30 && values[LENGTH - 1] == 35);
    CHECK_INT(cai_storage_place(&other, &both), 0); /* the data are on the device, where it has no side */
    CHECK_INT(cai_storage_place(&both, &other), H);
    CHECK_INT(cai_storage_place(&both, NULL), H);
    CHECK_INT(cai_storage_place(NULL, &both), 0);
    REFUSED(cai_storage_assign(NULL, &both, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_assign(&both, NULL, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_assign(&both, &both, &err), CAI_ERR_ARGUMENT, "the same");
    GOOD(cai_storage_release(&both, &err));
    GOOD(cai_storage_release(&other, &err));
    CHECK_INT(released, 1);
    finish();
}

/* Assigning what is open, or of another form, or where a call fails. */
static void test_assign_refused(void)
{
    cai_storage other, larger;
    cai_storage_access a;
    cai_array x, y;
    start("assigning that is refused");
    make(&storage);
    make(&other);
    fill(&storage, 1);
    layout.shape[0] = LENGTH + 1;
    make(&larger);
    REFUSED(cai_storage_assign(&larger, &storage, &err), CAI_ERR_EXPECT, "to");
    GOOD(cai_storage_release(&larger, &err));
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, s1, &err));
    REFUSED(cai_storage_assign(&other, &storage, &err), CAI_ERR_CONFLICT, "open for writing");
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    GOOD(cai_storage_begin(&a, &other, H, CAI_READ, 0, &err));
    REFUSED(cai_storage_assign(&other, &storage, &err), CAI_ERR_CONFLICT, "open for reading");
    CHECK(storage.open[1] == 0);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    fail_op("copy_async", 1, 2);
    REFUSED(cai_storage_assign(&other, &storage, &err), CAI_ERR_CUDA, "copying");
    CHECK(storage.open[1] == 0 && other.open[1] == 0);
    GOOD(cai_storage_release(&other, &err));
    cai_array_borrow(&x, &storage.array[1]); /* two storages of one buffer */
    cai_array_borrow(&y, &storage.array[1]);
    options.kind = CAI_STORAGE_DEVICE;
    GOOD(cai_storage_wrap(&other, &options, NULL, &x, CLEAN, &err));
    GOOD(cai_storage_wrap(&larger, &options, NULL, &y, CLEAN, &err));
    REFUSED(cai_storage_assign(&other, &larger, &err), CAI_ERR_EXPECT, "share bytes");
    GOOD(cai_storage_release(&other, &err));
    GOOD(cai_storage_release(&larger, &err));
    finish();
}

/* -------------------------------------------------------------- slots and hooks */
#define WITHOUT(slot)                                                                                        \
    do {                                                                                                     \
        poor = *cuda;                                                                                        \
        poor.slot = NULL;                                                                                    \
        GOOD(cai_event_pool_init(&weak, &poor, NULL, 0, 0, &err));                                           \
        REFUSED(cai_storage_init(&storage, &options, &dtype, &layout, &err), CAI_ERR_UNAVAILABLE, #slot);    \
        CHECK(is_zero(&storage));                                                                            \
        GOOD(cai_event_pool_destroy(&weak, &err));                                                           \
    } while (0)

static int32_t no_thread(void *self, uint64_t *thread)
{
    (void)self;
    (void)thread;
    return 1;
}

static void test_slots(void)
{
    cai_storage_access a;
    cai_array x;
    int32_t i;
    cai_cuda poor;
    cai_event_pool weak;
    start("slots that are missing");
    options.pool = &weak;
    WITHOUT(copy_async);
    WITHOUT(copy_3d_async);
    WITHOUT(set_async);
    poor = *cuda;
    GOOD(cai_event_pool_init(&weak, &poor, NULL, 0, 0, &err));
    make(&storage);
    for (i = 0; i < 2; ++i) { /* whose stream 2 it is is not known */
        poor.host_thread = no_thread;
        GOOD(cai_storage_export(&storage, D, CAI_READ, s1, &x, &err));
        x.stream = CAI_STREAM_PER_THREAD;
        cai_array_release(&x);
        GOOD(cai_keepalive_drain(&weak, &err));
        CHECK_INT(storage.open[1], 0);
    }
    GOOD(cai_storage_begin(&a, &storage, D, CAI_READ, CAI_STREAM_LEGACY, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK(cai_storage_begin(&a, &storage, D, CAI_READ, CAI_STREAM_PER_THREAD, &err) != CAI_OK);
    GOOD(cai_storage_release(&storage, &err));
    poor = *cuda;
    poor.flags |= CAI_CUDA_NO_DEFAULT_STREAMS; /* nothing is asked of stream 1 */
    options.kind = CAI_STORAGE_MANAGED;
    make(&storage);
    fill(&storage, 3);
    CHECK(!strstr(cai_sim_log(sim), "legacy"));
    GOOD(cai_storage_release(&storage, &err));
    options.kind = CAI_STORAGE_BOTH;
    poor = *cuda;
    GOOD(cai_event_pool_destroy(&weak, &err));
    finish();
}

static int32_t hook_error, hook_frees, free_error;
static void *hook_gives;

static int give_block(void *ctx, void **block, size_t size, unsigned int flags)
{
    (void)ctx;
    (void)size;
    (void)flags;
    *block = hook_gives;
    return hook_error;
}

static int take_back(void *ctx, void *block, size_t size, struct CUstream_st *stream)
{
    (void)ctx;
    (void)block;
    (void)size;
    (void)stream;
    ++hook_frees;
    return free_error;
}

#define INIT_REFUSED(status, words)                                                                          \
    do {                                                                                                     \
        REFUSED(cai_storage_init(&storage, &options, &dtype, &layout, &err), status, words);                 \
        CHECK(is_zero(&storage));                                                                            \
    } while (0)

static void test_hooks(void)
{
    start("hooks that fail");
    hooks.host_alloc = give_block;
    hooks.host_free = take_back;
    hook_gives = &hook_gives;
    hook_error = 2;
    INIT_REFUSED(CAI_ERR_OUT_OF_MEMORY, "host_alloc of");
    hook_error = 700;
    INIT_REFUSED(CAI_ERR_CUDA, "host_alloc");
    hook_error = 0;
    hook_gives = NULL;
    INIT_REFUSED(CAI_ERR_MEMORY, "succeeded and returned NULL");
    CHECK_INT(hook_frees, 0);
    hooks.host_alloc = NULL;
    hooks.host_free = NULL;
    INIT_REFUSED(CAI_ERR_UNAVAILABLE, "set options.host");
    hooks.version = 9;
    INIT_REFUSED(CAI_ERR_ABI, "version");
    GOOD(cai_emm_hooks_cuda(&hooks, cuda, &err));
    plain.version = 9;
    options.host = &plain;
    INIT_REFUSED(CAI_ERR_ABI, "version");
    options.host = NULL;
    dtype.code = CAI_BITFIELD; /* has no strides; the last step: what was allocated is given back */
    INIT_REFUSED(CAI_ERR_STRIDES, "bit field");
    GOOD(cai_dtype_of(CAI_INT32, &dtype, &err));
    finish();
}

/* The first failure is told, and all is freed. */
static void test_frees(void)
{
    static int32_t block[64];
    start("frees that fail");
    hooks.host_alloc = give_block;
    hooks.host_free = take_back;
    hook_gives = block;
    hook_error = 0;
    hook_frees = 0;
    free_error = 1;
    make(&storage);
    fail_op("memory_free", 1, 1);
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_CUDA, "a free");
    CHECK(hook_frees == 1 && is_zero(&storage));
    free_error = 0;
    make(&storage);
    GOOD(cai_storage_release(&storage, NULL));
    CHECK_INT(hook_frees, 2);
    cai_sim_destroy(sim); /* the device block of the first one is lost with its failed free */
}

/* ------------------------------------------------------------------- arguments */
#define WRAP(a, b, state, status, words)                                                                     \
    do {                                                                                                     \
        memset(&storage, 1, sizeof storage);                                                                 \
        REFUSED(cai_storage_wrap(&storage, &options, a, b, state, &err), status, words);                     \
        CHECK(is_zero(&storage));                                                                            \
    } while (0)

static void test_wrap_refused(void)
{
    static int32_t values[LENGTH];
    cai_array x, y, z;
    uint64_t memory, graph = 0;
    start("given arrays that are refused");
    x = line_of(values);
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, sizeof values);
    y = line_of((int32_t *)cai_sim_bytes(sim, memory));
    y.memory = CAI_MEMORY_DEVICE;
    REFUSED(cai_storage_wrap(NULL, &options, &x, NULL, CLEAN, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_storage_wrap(&storage, NULL, &x, NULL, CLEAN, &err), CAI_ERR_ARGUMENT, "NULL");
    WRAP(&x, &y, -1, CAI_ERR_ARGUMENT, "state = -1");
    options.kind = CAI_STORAGE_MANAGED;
    WRAP(&x, NULL, CLEAN, CAI_ERR_ARGUMENT, "do not fit kind = 4");
    options.kind = 7;
    WRAP(&x, NULL, CLEAN, CAI_ERR_ARGUMENT, "kind = 7");
    options.kind = CAI_STORAGE_BOTH;
    x.abi = 0;
    WRAP(&x, &y, CLEAN, CAI_ERR_ABI, "");
    x = line_of(values);
    z = x; /* one buffer as both sides */
    z.memory = CAI_MEMORY_PINNED;
    WRAP(&x, &z, CLEAN, CAI_ERR_EXPECT, "share bytes");
    z = y;
    z.dtype.unit = 1;
    WRAP(&x, &z, CLEAN, CAI_ERR_EXPECT, "different dtypes");
    z = y;
    z.dtype.unit_count = 1;
    WRAP(&x, &z, CLEAN, CAI_ERR_EXPECT, "different dtypes");
    z = y;
    z.dtype.itemsize = 8;
    WRAP(&x, &z, CLEAN, CAI_ERR_EXPECT, "different dtypes");
    z = y;
    z.sync = CAI_SYNC_STREAM; /* the missing side is allocated, and given back */
    z.stream = 0;
    WRAP(NULL, &z, CLEAN, CAI_ERR_STREAM, "");
    CHECK_INT(cai_sim_capture_begin(sim, home, 2), 0);
    WRAP(&x, &y, CLEAN, CAI_ERR_CAPTURE, "is capturing");
    CHECK_INT(cai_sim_capture_end(sim, home, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    cai_sim_free(sim, memory);
    finish();
}

static void test_wrap_sizes(void)
{
    static int32_t values[LENGTH];
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, large[2] = {(int64_t)1 << 31, (int64_t)1 << 30},
                  zeros[2] = {0, 0};
    cai_array x;
    cai_dtype bytes;
    start("given arrays of refused sizes");
    GOOD(cai_array_init(&x, CAI_INT32, 9, nine, NULL, values, &err));
    x.memory = CAI_MEMORY_HOST;
    WRAP(&x, NULL, CLEAN, CAI_ERR_SHAPE, "9 axes");
    GOOD(cai_dtype_of(CAI_INT8, &bytes, &err));
    GOOD(cai_array_init_dtype(&x, &bytes, 2, large, zeros, (uint64_t)(uintptr_t)values, &err));
    x.memory = CAI_MEMORY_HOST;
    WRAP(&x, NULL, CLEAN, sizeof(void *) == 8 ? CAI_ERR_OUT_OF_MEMORY : CAI_ERR_SHAPE, "bytes");
    finish();
}

/* Writes random bytes on one side, and compares the values with those of the other side. */
static void check_copies(const packed_kind *k, int32_t from)
{
    static model there, here;
    cai_storage_access a;
    cai_array side;
    int32_t i;
    GOOD(cai_storage_begin(&a, &storage, from, CAI_OVERWRITE, from == D ? s1 : 0, &err));
    cai_sim_run(sim);
    side = a.array;
    side.data = (uint64_t)(uintptr_t)numbers(&a.array);
    for (i = 0; i < (int32_t)(side.hi - side.lo); ++i)
        ((unsigned char *)(uintptr_t)side.data)[side.lo + i] = (unsigned char)help_between(0, 255);
    model_of(&side, k, &there);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    GOOD(cai_storage_begin(&a, &storage, from == D ? H : D, CAI_READ, from == D ? 0 : s1, &err));
    cai_sim_run(sim);
    side = a.array;
    side.data = (uint64_t)(uintptr_t)numbers(&a.array);
    model_of(&side, k, &here);
    CHECK(here.count == there.count && here.count > 0);
    CHECK_INT(values_differ(&there, &here, k->bits), 0);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
}

/* Both sides of a storage have the same values, along the innermost axis. */
static void test_packed(void)
{
    static const char *const presets[] = {"C", "F", "gtmc", "gtcuda"};
    int32_t i, p;
    for (i = 0; i < KINDS; ++i) {
        for (p = 0; p < 4; ++p) {
            start(cai_dtype_name(kinds[i].packed));
            GOOD(cai_dtype_of(kinds[i].packed, &dtype, &err));
            GOOD(cai_layout_preset(&layout, presets[p], "IJK", &err));
            if (kinds[i].bytes == 3) layout.alignment = 0; /* no power of two */
            layout.shape[0] = 3;
            layout.shape[1] = 2;
            layout.shape[2] = 5;
            make(&storage);
            CHECK_INT(storage.array[0].packed_axis, storage.array[1].packed_axis);
            CHECK_INT(layout.map[storage.array[0].packed_axis], 2);
            check_copies(&kinds[i], H);
            check_copies(&kinds[i], D);
            finish();
        }
    }
}

/* The side that is made has the packed axis of the side that is given. */
static void test_wrap_packed(void)
{
    static unsigned char bytes[16];
    const int64_t shape[2] = {7, 4};
    uint64_t memory;
    cai_array x;
    int32_t side, axis;
    start("packed arrays");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, sizeof bytes);
    for (side = 0; side < 2; ++side) {
        for (axis = 0; axis < 2; ++axis) {
            GOOD(cai_array_init_packed(&x, CAI_INT4_X2, 2, shape, axis, NULL,
                                       side ? (void *)(uintptr_t)memory : (void *)bytes, &err));
            x.sync = CAI_SYNC_NONE;
            x.memory = side ? CAI_MEMORY_DEVICE : CAI_MEMORY_HOST;
            GOOD(cai_storage_wrap(&storage, &options, side ? NULL : &x, side ? &x : NULL, CLEAN, &err));
            CHECK_INT(storage.array[1 - side].packed_axis, axis);
            CHECK_INT(storage.array[1 - side].packed_extent, axis ? 4 : 7);
            GOOD(cai_expect_same_shape(&storage.array[0], "host", &storage.array[1], "device", &err));
            check_copies(&kinds[2], side ? D : H);
            check_copies(&kinds[2], side ? H : D);
            GOOD(cai_storage_release(&storage, &err));
        }
    }
    cai_sim_free(sim, memory);
    finish();
}

static void test_read_only(void)
{
    static int32_t values[LENGTH];
    cai_storage_access a;
    cai_array x;
    start("read-only buffers");
    values[0] = 100;
    values[1] = 101, values[2] = 102, values[3] = 103, values[4] = 104, values[5] = 105;
    x = line_of(values);
    x.flags &= ~(uint32_t)CAI_WRITABLE;
    GOOD(cai_storage_wrap(&storage, &options, &x, NULL, CLEAN, &err));
    CHECK(storage.read_only && storage.state == CAI_STORAGE_HOST_NEWER && holds(&storage, 100));
    GOOD(cai_storage_begin(&a, &storage, D, CAI_READ, s1, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK_INT(storage.state, CLEAN);
    REFUSED(cai_storage_begin(&a, &storage, H, CAI_WRITE, 0, &err), CAI_ERR_EXPECT, "is read-only");
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_OVERWRITE, s1, &err), CAI_ERR_EXPECT, "is read-only");
    REFUSED(cai_storage_mark(&storage, D, 1, 0, &err), CAI_ERR_EXPECT, "is read-only");
    REFUSED(cai_storage_sync(&storage, H, 1, &err), CAI_ERR_EXPECT, "is read-only");
    GOOD(cai_storage_sync(&storage, D, 1, &err)); /* that side is its own */
    REFUSED(cai_storage_sync(&storage, -1, 0, &err), CAI_ERR_ARGUMENT, "to = -1");
    REFUSED(cai_storage_sync(&storage, 3, 0, &err), CAI_ERR_ARGUMENT, "to = 3");
    finish();
}

static void test_marks(void)
{
    start("marks that fail");
    make(&storage);
    REFUSED(cai_storage_mark(&storage, D, 0, UINT64_MAX, &err), CAI_ERR_STREAM, "");
    fail_op("event_record", 2, 1); /* neither home nor the host waits for s1 */
    fail_op("stream_synchronize", 1, 1);
    CHECK(cai_storage_mark(&storage, D, 0, s1, &err) != CAI_OK);
    CHECK_INT(storage.state, CLEAN);
    CHECK(storage.open[1] == 0 && storage.open_writes == 0);
    GOOD(cai_storage_mark(&storage, D, 0, s1, &err));
    finish();
}

static void test_mixed(void)
{
    cai_storage_access a, b, c;
    start("readers in two streams");
    make(&storage);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_READ, s1, &err));
    GOOD(cai_storage_begin(&b, &storage, D, CAI_READ, s2, &err));
    REFUSED(cai_storage_begin(&c, &storage, D, CAI_WRITE, s2, &err), CAI_ERR_CONFLICT, "on another stream");
    REFUSED(cai_storage_begin(&c, &storage, D, CAI_WRITE, s1, &err), CAI_ERR_CONFLICT, "on another stream");
    GOOD(cai_storage_end(&b, CAI_OK, &err));
    GOOD(cai_storage_begin(&c, &storage, D, CAI_WRITE, s1, &err)); /* the other reader has ended */
    GOOD(cai_storage_end(&c, CAI_OK, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    finish();
}

/* The newer data of the host would be copied over what is being written. */
static void test_overwriting(void)
{
    cai_storage_access a, b;
    start("beside an access that overwrites");
    make(&storage);
    fill(&storage, 1);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_OVERWRITE, s1, &err));
    REFUSED(cai_storage_begin(&b, &storage, D, CAI_READ, s1, &err), CAI_ERR_CONFLICT,
            "the device side cannot be read: it is being overwritten, and the host side is newer");
    REFUSED(cai_storage_begin(&b, &storage, D, CAI_WRITE, s1, &err), CAI_ERR_CONFLICT, "cannot be written");
    GOOD(cai_storage_begin(&b, &storage, D, CAI_OVERWRITE, s1, &err));
    GOOD(cai_storage_end(&b, CAI_OK, &err));
    GOOD(cai_storage_begin(&b, &storage, D, CAI_READ, s1, &err)); /* its data are the newest now */
    GOOD(cai_storage_end(&b, CAI_OK, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK(storage.state == CAI_STORAGE_DEVICE_NEWER && !cai_sim_calls_of(sim, "copy_async"));
    finish();
}

static void test_empty(void)
{
    cai_storage_access a;
    int32_t legacy;
    for (legacy = 0; legacy < 2; ++legacy) {
        start("no elements");
        if (legacy) options.home = CAI_STREAM_LEGACY;
        layout.shape[0] = 0;
        make(&storage);
        GOOD(cai_storage_begin(&a, &storage, H, CAI_WRITE, 0, &err));
        GOOD(cai_storage_end(&a, CAI_OK, &err));
        GOOD(cai_storage_begin(&a, &storage, D, CAI_READ, s1, &err));
        GOOD(cai_storage_end(&a, CAI_OK, &err));
        CHECK(storage.state == CLEAN && !cai_sim_calls_of(sim, "copy_async"));
        finish();
    }
}

/* ----------------------------------------------------- calls that fail, one after the other */
static void test_ends(void)
{
    cai_storage_access a;
    start("ends that fail");
    make(&storage);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, s1, &err));
    fail_op("event_record", 1, 1);
    fail_op("stream_synchronize", 1, 1);
    CHECK_INT(cai_storage_end(&a, CAI_OK, &err), CAI_ERR_CUDA);
    CHECK(a.storage == &storage && storage.open[1] == 1); /* open: neither home nor the host could wait */
    fail_op("stream_synchronize", 1, 1);
    CHECK(cai_storage_end(&a, CAI_ERR_VIEW, NULL) != CAI_OK && a.storage == &storage);
    fail_op("stream_synchronize", 1, 1);
    memset(&err, 0, sizeof err);
    CHECK(cai_storage_end(&a, CAI_ERR_VIEW, &err) == CAI_ERR_CUDA && err.code == CAI_ERR_CUDA);
    fail_op("capture_mode", 1, 1);
    CHECK(cai_storage_end(&a, CAI_OK, &err) != CAI_OK && a.storage == &storage);
    CHECK(cai_storage_end(&a, CAI_OK, &err) == CAI_OK && a.storage == NULL);
    CHECK_INT(storage.state, CAI_STORAGE_DEVICE_NEWER);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, s1, &err)); /* the host waited in place of home */
    fail_op("event_record", 1, 1);
    memset(&err, 0, sizeof err);
    CHECK_INT(cai_storage_end(&a, CAI_ERR_VIEW, &err), CAI_ERR_VIEW);
    CHECK(a.storage == NULL && err.code == 0);
    fill(&storage, 1);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, s1, &err)); /* all work of the context has ended */
    fail_op("event_record", 1, 1);
    fail_op("stream_synchronize", 1, 700);
    CHECK(cai_storage_end(&a, CAI_OK, &err) != CAI_OK && a.storage == NULL);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_OVERWRITE, s1, &err)); /* the error of the work comes first */
    fail_op("event_record", 1, 700);
    memset(&err, 0, sizeof err);
    CHECK(cai_storage_end(&a, CAI_ERR_VIEW, &err) == CAI_ERR_VIEW && err.code == 0 && a.storage == NULL);
    device_died = 1;
    finish();
}

static void test_thread(void)
{
    cai_storage_access a;
    start("stream 2 of another thread");
    make(&storage);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, 2, &err));
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_storage_end(&a, CAI_OK, &err), CAI_ERR_THREAD);
    CHECK(a.storage == &storage);
    cai_sim_host_thread(sim, 0);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    finish();
}

/* An export whose end cannot be ordered stays open: its memory is not freed while work may use it. */
static void test_exports(void)
{
    static const char *const waits[] = {"context_synchronize", "stream_wait_event", "event_record", "context_current"};
    cai_array x;
    int32_t i;
    start("exports");
    make(&storage);
#if !defined(CAI_TESTS_LINKED)
    no_memory = 1;
    REFUSED(cai_storage_export(&storage, H, CAI_READ, 0, &x, &err), CAI_ERR_OUT_OF_MEMORY, "malloc returned NULL");
    no_memory = 0;
#endif
    REFUSED(cai_storage_export(&storage, H, CAI_READ, 0, NULL, &err), CAI_ERR_ARGUMENT, "NULL");
    fail_op("event_record", 2, 1); /* the end of its exchange */
    CHECK_INT(cai_storage_export(&storage, D, CAI_WRITE, s1, &x, &err), CAI_ERR_CUDA);
    CHECK(storage.open[1] == 0 && storage.state == CLEAN);
    for (i = 0; i < 8; ++i) {
        const int blocked = i >= 4; /* the host waits in place of home */
        GOOD(cai_storage_export(&storage, D, CAI_WRITE, s1, &x, &err));
        if (i % 4 == 0) x.sync = CAI_SYNC_UNKNOWN;
        fail_op(waits[i % 4], 1, 1);
        if (!blocked && i) fail_op("stream_synchronize", 1, 1);
        cai_array_release(&x);
        CHECK_INT(storage.open[1], !blocked || i == 4);
        CHECK_INT(storage.open_writes, !blocked || i == 4);
        if (storage.open[1]) REFUSED(cai_storage_release(&storage, &err), CAI_ERR_PENDING, "1 of the device side");
        GOOD(cai_keepalive_drain(&pool, &err));
        CHECK_INT(storage.open[1], 0);
    }
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, home, &x, &err)); /* all work of the context has ended */
    x.sync = CAI_SYNC_UNKNOWN;
    fail_op("context_synchronize", 1, 700);
    cai_array_release(&x);
    CHECK_INT(storage.open[1], 0);
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, home, &x, &err));
    x.stream = CAI_STREAM_LEGACY;
    fail_op("context_current", 1, 700);
    cai_array_release(&x);
    CHECK_INT(storage.open[1], 0);
    finish();
}

/* The streams without a handle that an export may name at its release. */
static void test_exports_of_context(void)
{
    cai_array x;
    int32_t i;
    start("exports on streams of the context");
    make(&storage);
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, s1, &x, &err)); /* a stream of DLPack's -1: the context */
    x.stream = UINT64_MAX;
    cai_sim_log_clear(sim);
    CHECK_INT(cai_sim_set_context(sim, c2), 0); /* released in another context */
    cai_array_release(&x);
    CHECK_INT(cai_sim_current(sim), c2);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK(storage.open[1] == 0 && cai_sim_calls_of(sim, "context_synchronize") >= 1);
    CHECK_INT(storage.state, CAI_STORAGE_DEVICE_NEWER);
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, home, &x, &err)); /* a default stream: home waits for it */
    x.stream = CAI_STREAM_LEGACY;
    cai_sim_log_clear(sim);
    cai_array_release(&x);
    CHECK(storage.open[1] == 0 && cai_sim_calls_of(sim, "context_synchronize") == 0);
    CHECK_INT(cai_sim_calls_of(sim, "stream_wait_event"), 1);
    for (i = 0; i < 2; ++i) { /* 2 of this thread, and of another one: 1 comes after it */
        GOOD(cai_storage_export(&storage, D, CAI_WRITE, CAI_STREAM_PER_THREAD, &x, &err));
        cai_sim_host_thread(sim, i ? 7 : 0);
        CHECK_INT(cai_sim_set_context(sim, c1), 0);
        cai_sim_log_clear(sim);
        cai_array_release(&x);
        cai_sim_host_thread(sim, 0);
        CHECK_INT(storage.open[1], 0);
        CHECK((strstr(cai_sim_log(sim), i ? " legacy" : " per_thread") != NULL));
    }
    finish();
}

/* Copies that fail in another context, or while home captures: nothing is changed. */
static void test_copies(void)
{
    static int32_t values[2 * LENGTH];
    const int64_t extent = LENGTH, step = 8;
    cai_storage_access a;
    uint64_t memory, graph = 0;
    cai_array x, y;
    start("copies that fail");
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, sizeof values);
    x = line_of(values);
    GOOD(cai_array_init_dtype(&y, &dtype, 1, &extent, &step, memory, &err));
    y.memory = CAI_MEMORY_DEVICE;
    y.sync = CAI_SYNC_NONE;
    GOOD(cai_storage_wrap(&storage, &options, &x, &y, CAI_STORAGE_HOST_NEWER, &err));
    CHECK_INT(cai_sim_set_context(sim, c2), 0);
    fail_op("copy_3d_async", 1, 1);
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_READ, s1, &err), CAI_ERR_CUDA, "copying");
    CHECK(storage.state == CAI_STORAGE_HOST_NEWER && cai_sim_current(sim) == c2);
    CHECK_INT(cai_sim_capture_begin(sim, home, 2), 0);
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_READ, s1, &err), CAI_ERR_CAPTURE, "is capturing");
    CHECK(storage.state == CAI_STORAGE_HOST_NEWER && cai_sim_current(sim) == c2);
    CHECK_INT(cai_sim_capture_end(sim, home, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_READ, s1, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    GOOD(cai_storage_release(&storage, &err));
    cai_sim_run(sim);
    cai_sim_free(sim, memory);
    finish();
}

static void write_seven(void *bytes)
{
    *(int32_t *)bytes = 7;
}

/* The owner of a pinned buffer has work pending on it: the host waits for it, too. */
static void test_given_pending(void)
{
    cai_storage_access a;
    cai_sim_access access;
    cai_array x;
    uint64_t pinned;
    start("a given host buffer with pending work");
    pinned = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 4 * LENGTH);
    x = line_of((int32_t *)cai_sim_bytes(sim, pinned));
    x.memory = CAI_MEMORY_PINNED;
    x.sync = CAI_SYNC_STREAM;
    x.stream = s1;
    access = cai_sim_writes(pinned, 4);
    CHECK_INT(cai_sim_launch(sim, s1, "seven", write_seven, cai_sim_bytes(sim, pinned), &access, 1), 0);
    options.kind = CAI_STORAGE_HOST;
    GOOD(cai_storage_wrap(&storage, &options, &x, NULL, CLEAN, &err));
    GOOD(cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err));
    CHECK_INT(numbers(&a.array)[0], 7);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    GOOD(cai_storage_release(&storage, &err));
    cai_sim_free(sim, pinned);
    finish();
}

/* -------------------------------------------------------------------- releases */
static void test_release_in_capture(void)
{
    uint64_t graph = 0;
    int32_t kind;
    start("a release while home captures");
    for (kind = CAI_STORAGE_DEVICE; kind <= CAI_STORAGE_BOTH; ++kind) {
        options.kind = kind;
        make(&storage);
        CHECK_INT(cai_sim_capture_begin(sim, home, 2), 0);
        REFUSED(cai_storage_release(&storage, &err), CAI_ERR_CAPTURE, "is capturing");
        CHECK_INT(cai_storage_release(&storage, NULL), CAI_ERR_CAPTURE);
        CHECK(storage.block[1] != NULL);
        CHECK_INT(cai_sim_capture_end(sim, home, &graph), 0);
        CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
        GOOD(cai_storage_release(&storage, &err));
    }
    options.host = &plain; /* plain memory waits for home */
    make(&storage);
    fill(&storage, 1);
    GOOD(cai_storage_sync(&storage, D, 0, &err));
    fail_op("stream_synchronize", 1, 1);
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_CUDA, "waiting for home");
    CHECK(storage.block[0] && storage.block[1]);
    finish();
}

static void test_release_of_given(void)
{
    static int32_t values[LENGTH];
    cai_array x;
    start("given arrays after a free that fails");
    x = line_of(values);
    cai_array_own(&x, count_release, values);
    released = 0;
    GOOD(cai_storage_wrap(&storage, &options, &x, NULL, CLEAN, &err));
    fail_op("memory_free", 1, 1);
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_CUDA, "a free");
    CHECK(is_zero(&storage));
    GOOD(cai_keepalive_drain(&pool, &err));
    CHECK_INT(released, 1);
    cai_sim_destroy(sim);
}

/* The context has failed, or the process ends: what is not CUDA's is freed, and the storage is gone. */
static void test_release_dead(void)
{
    static const int32_t errors[] = {700, 4};
    int32_t i, with_plain, later;
    for (i = 0; i < 8; ++i) {
        with_plain = i & 1;
        later = i & 2;
        start("a release in a dead context");
        options.host = with_plain ? &plain : NULL;
        make(&storage);
        fill(&storage, 1);
        GOOD(cai_storage_sync(&storage, D, 0, &err));
        if (with_plain) fail_op("stream_synchronize", 1, errors[i >> 2]);
        else fail_op("stream_capture", 1, errors[i >> 2]);
        if (later) fail_op("context_current", 2, errors[i >> 2]);
        CHECK_INT(cai_storage_release(&storage, &err), errors[i >> 2] == 4 ? CAI_OK : CAI_ERR_CUDA);
        CHECK(is_zero(&storage));
        finish_dead();
    }
}

/* ------------------------------------------------- captures, contexts, broken devices */
static void begin_capture(uint64_t stream)
{
    CHECK_INT(cai_sim_capture_begin(sim, stream, 2), 0);
}

/* The capture did not end because of us. */
static void end_capture(uint64_t stream)
{
    uint64_t graph = 0;
    CHECK_INT(cai_sim_capture_end(sim, stream, &graph), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
}

static cai_array exported(uint64_t stream)
{
    cai_array x;
    memset(&x, 0, sizeof x);
    GOOD(cai_storage_export(&storage, D, CAI_WRITE, stream, &x, &err));
    return x;
}

/* The device broke: no work is left for which home could wait. */
static void test_export_of_dead(void)
{
    cai_array x;
    start("an export that is released on a broken device");
    make(&storage);
    x = exported(s1);
    cai_sim_set_device_error(sim, 0, 719);
    cai_array_release(&x);
    CHECK_INT(storage.open[1], 0);
    cai_sim_set_device_error(sim, 0, 0);
    device_died = 1;
    finish();
}

/* While home captures, or cannot be asked, the host waits for the work of the export. */
static void test_export_while_home_captures(void)
{
    cai_array x;
    uint64_t other, event;
    int32_t i;
    start("an export that is released while home captures");
    make(&storage);
    x = exported(s1);
    begin_capture(home);
    cai_array_release(&x);
    end_capture(home);
    CHECK_INT(storage.open[1], 0);
    x = exported(s1); /* by an event, which lives only until the release returns */
    CHECK_INT(cuda->event_create(cuda->self, &event), 0);
    CHECK_INT(cuda->event_record(cuda->self, event, s1), 0);
    x.sync = CAI_SYNC_EVENT;
    x.event = event;
    begin_capture(home);
    cai_array_release(&x);
    end_capture(home);
    CHECK_INT(storage.open[1], 0);
    x = exported(s1);
    x.sync = CAI_SYNC_EVENT;
    x.event = event;
    begin_capture(home);
    fail_op("capture_mode", 1, 1);
    cai_array_release(&x);
    CHECK_INT(cuda->event_destroy(cuda->self, event), 0);
    end_capture(home);
    CHECK_INT(storage.open[1], 1);
    GOOD(cai_keepalive_drain(&pool, &err));
    for (i = 0; i < 3; ++i) { /* on stream 1 of the context of the storage */
        x = exported(s1);
        x.stream = CAI_STREAM_LEGACY;
        begin_capture(home);
        CHECK_INT(cai_sim_set_context(sim, c2), 0);
        if (i) fail_op("context_current", i + 1, 1);
        cai_array_release(&x);
        CHECK_INT(cai_sim_set_context(sim, c1), 0);
        end_capture(home);
        GOOD(cai_keepalive_drain(&pool, &err));
        CHECK_INT(storage.open[1], 0);
    }
    GOOD(cai_storage_release(&storage, &err));
    other = cai_sim_stream_create(sim, 0);
    options.home = CAI_STREAM_LEGACY;
    make(&storage);
    x = exported(s1);
    begin_capture(other);
    cai_array_release(&x);
    end_capture(other);
    CHECK_INT(storage.open[1], 0);
    cai_sim_stream_destroy(sim, other);
    finish();
}

/* While its own stream captures, nothing can tell when its work has passed. It waits in the pool. */
static void test_export_while_it_captures(void)
{
    cai_array x;
    start("an export that is released while its stream captures");
    make(&storage);
    x = exported(s1);
    begin_capture(s1);
    cai_array_release(&x);
    CHECK_INT(pool.waiting, 1);
    fail_op("context_synchronize", 1, 1);
    REFUSED(cai_keepalive_drain(&pool, &err), CAI_ERR_PENDING, "");
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_PENDING, "call cai_keepalive_drain");
    end_capture(s1);
    GOOD(cai_keepalive_poll(&pool, NULL, &err));
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_PENDING, "1 of the device side");
    GOOD(cai_keepalive_drain(&pool, &err));
    CHECK(storage.open[1] == 0 && storage.state == CAI_STORAGE_DEVICE_NEWER);
    finish();
}

/* Nobody knows the stream, and a blocking stream captures: to wait for all would end that capture. */
static void test_export_of_unknown(void)
{
    cai_array x;
    uint64_t other;
    start("an export on an unknown stream, while a blocking stream captures");
    other = cai_sim_stream_create(sim, 0);
    make(&storage);
    x = exported(s1);
    x.sync = CAI_SYNC_UNKNOWN;
    begin_capture(other);
    cai_array_release(&x);
    CHECK_INT(storage.open[1], 1);
    end_capture(other);
    GOOD(cai_keepalive_drain(&pool, &err));
    CHECK_INT(storage.open[1], 0);
    cai_sim_stream_destroy(sim, other);
    finish();
}

/* The stream of an access captures before its end: the access stays open, and the capture goes on. */
static void test_end_in_capture(void)
{
    cai_storage_access a;
    start("an end while the stream captures");
    make(&storage);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, s1, &err));
    begin_capture(s1);
    REFUSED(cai_storage_end(&a, CAI_OK, &err), CAI_ERR_CAPTURE, "captur");
    REFUSED(cai_storage_end(&a, CAI_OK, &err), CAI_ERR_CAPTURE, "captur");
    end_capture(s1);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK_INT(storage.state, CAI_STORAGE_DEVICE_NEWER);
    finish();
}

/* A blocking stream captures: CUDA does not answer about stream 1 (906). */
static void test_legacy_home_in_capture(void)
{
    uint64_t other;
    start("home is 1, and a blocking stream captures");
    other = cai_sim_stream_create(sim, 0);
    options.home = CAI_STREAM_LEGACY;
    make(&storage);
    fill(&storage, 1);
    begin_capture(other);
    REFUSED(cai_storage_sync(&storage, D, 0, &err), CAI_ERR_CAPTURE, "home");
    CHECK_INT(cai_storage_sync(&storage, D, 0, NULL), CAI_ERR_CAPTURE);
    REFUSED(cai_storage_release(&storage, &err), CAI_ERR_CAPTURE, "home");
    end_capture(other);
    GOOD(cai_storage_sync(&storage, D, 0, &err));
    cai_sim_stream_destroy(sim, other);
    finish();
}

/* Where the host may not use managed memory beside a kernel, it waits for the context, which would end the
 * capture of a blocking stream. Elsewhere it waits for home, which ends none. */
static void test_managed_in_capture(void)
{
    cai_storage_access a;
    uint64_t other;
    int32_t concurrent;
    for (concurrent = 0; concurrent < 2; ++concurrent) {
        start("managed memory, and a blocking stream captures");
        cai_sim_set_device_attribute(sim, 0, CAI_ATTRIBUTE_CONCURRENT_MANAGED, concurrent);
        other = cai_sim_stream_create(sim, 0);
        options.kind = CAI_STORAGE_MANAGED;
        options.flags = CAI_STORAGE_ZEROS; /* work of home that the host waits for */
        make(&storage);
        begin_capture(other);
        if (!concurrent)
            REFUSED(cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err), CAI_ERR_CAPTURE, "waiting for home");
        if (!concurrent) end_capture(other);
        GOOD(cai_storage_begin(&a, &storage, H, CAI_READ, 0, &err));
        GOOD(cai_storage_end(&a, CAI_OK, &err));
        if (concurrent) end_capture(other);
        cai_sim_stream_destroy(sim, other);
        finish();
    }
}

/* 2 of two threads, and 1 and 2 of two contexts, are different streams. */
static void test_same_number(void)
{
    cai_storage_access a, b;
    uint64_t own;
    start("different streams of one number");
    own = cai_sim_context_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    make(&storage);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, 2, &err));
    GOOD(cai_storage_begin(&b, &storage, D, CAI_READ, 2, &err));
    GOOD(cai_storage_end(&b, CAI_OK, &err));
    cai_sim_host_thread(sim, 7);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    REFUSED(cai_storage_begin(&b, &storage, D, CAI_READ, 2, &err), CAI_ERR_CONFLICT, "on another stream");
    cai_sim_host_thread(sim, 0);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    GOOD(cai_storage_begin(&a, &storage, D, CAI_WRITE, 1, &err));
    fail_op("context_current", 1, 1);
    REFUSED(cai_storage_begin(&b, &storage, D, CAI_READ, 1, &err), CAI_ERR_CUDA, "stream");
    GOOD(cai_storage_begin(&b, &storage, D, CAI_READ, 1, &err));
    GOOD(cai_storage_end(&b, CAI_OK, &err));
    REFUSED(cai_storage_begin(&b, &storage, D, CAI_OVERWRITE, s1, &err), CAI_ERR_CONFLICT, "on another stream");
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    REFUSED(cai_storage_begin(&b, &storage, D, CAI_READ, 1, &err), CAI_ERR_CONFLICT, "on another stream");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    GOOD(cai_event_pool_forget(&pool, own, &err));
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    finish();
}

/* Home 1 is that of the storage's context. The memory is of another one, where 1 is another stream. */
static void test_legacy_home_of_other_memory(void)
{
    cai_storage_access a;
    cai_emm_hooks async;
    cai_array x;
    uint64_t pinned, own;
    start("home is 1, and the memory is of another context");
    own = cai_sim_context_create(sim, 0);
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    pinned = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 4 * LENGTH);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    x = line_of((int32_t *)cai_sim_bytes(sim, pinned));
    x.memory = CAI_MEMORY_PINNED;
    options.home = CAI_STREAM_LEGACY;
    GOOD(cai_storage_wrap(&storage, &options, &x, NULL, CLEAN, &err));
    REFUSED(cai_storage_begin(&a, &storage, H, CAI_READ, s1, &err), CAI_ERR_STREAM, "home");
    CHECK(storage.open[0] == 0 && pool.open_exchanges == 0);
    GOOD(cai_storage_release(&storage, &err));
    cai_sim_free(sim, pinned);
    GOOD(cai_emm_hooks_async(&async, cuda, NULL, &err)); /* memory of a pool has no context */
    options.hooks = &async;
    options.host = &plain;
    make(&storage);
    GOOD(cai_storage_begin(&a, &storage, D, CAI_OVERWRITE, s1, &err));
    GOOD(cai_storage_end(&a, CAI_OK, &err));
    CHECK_INT(cai_sim_set_context(sim, own), 0);
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_OVERWRITE, s1, &err), CAI_ERR_STREAM, "home");
    REFUSED(cai_storage_begin(&a, &storage, D, CAI_OVERWRITE, 1, &err), CAI_ERR_STREAM, "home");
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    GOOD(cai_event_pool_forget(&pool, own, &err));
    CHECK_INT(cai_sim_context_destroy(sim, own), 0);
    finish();
}

/* The source of an assignment cannot wait for the copy: it does later. */
static void test_assign_unordered(void)
{
    cai_storage other;
    int32_t n;
    start("an assignment whose source cannot wait");
    make(&storage);
    fill(&storage, 5);
    options.home = s2;
    make(&other);
    for (n = 1; n <= 2; ++n) {
        fail_op("event_record", n, 1);
        CHECK_INT(cai_storage_assign(&other, &storage, &err), CAI_ERR_CUDA);
        CHECK(other.open[0] + other.open[1] + storage.open[0] + storage.open[1] == 0);
    }
    fail_op("context_current", 1, 1);
    REFUSED(cai_storage_assign(&other, &storage, &err), CAI_ERR_CUDA, "home");
    fail_op("event_record", 3, 1);
    fail_op("stream_synchronize", 1, 1);
    GOOD(cai_storage_assign(&other, &storage, &err));
    CHECK(other.open[0] + other.open[1] == 0 && storage.open[0] == 1);
    GOOD(cai_keepalive_drain(&pool, &err));
    CHECK(storage.open[0] == 0 && holds(&other, 5));
    GOOD(cai_storage_release(&other, &err));
    finish();
}

int main(void)
{
    test_without_cuda();
    test_assign_refused();
    test_slots();
    test_hooks();
    test_frees();
    test_wrap_refused();
    test_wrap_sizes();
    test_wrap_packed();
    test_packed();
    test_read_only();
    test_marks();
    test_mixed();
    test_overwriting();
    test_empty();
    test_ends();
    test_thread();
    test_exports();
    test_exports_of_context();
    test_copies();
    test_given_pending();
    test_release_in_capture();
    test_release_of_given();
    test_release_dead();
    test_export_of_dead();
    test_export_while_home_captures();
    test_export_while_it_captures();
    test_export_of_unknown();
    test_end_in_capture();
    test_legacy_home_in_capture();
    test_managed_in_capture();
    test_same_number();
    test_legacy_home_of_other_memory();
    test_assign_unordered();
    return cai_test_end();
}
