/* test_paths.c - each way that makes, moves or passes on an array: with a table of HIP its array says HIP, and with a
 * table of CUDA it refuses an array of HIP. The tables are those of two simulations. HIP's headers are not needed.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#else
#define CAI_DLPACK_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"
#include "cai_access.h"
#include "cai_dlpack.h"
#include "cai_manager.h"
#include "cai_move.h"
#include "cai_place.h"
#include "cai_storage.h"
#include "cai_transfer.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { EXTENT = 16, HIP = CAI_BACKEND_HIP };

static cai_sim *sim;
static cai_cuda table;
static cai_event_pool pool;
static cai_emm_hooks hooks, plain;
static cai_manager manager;
static cai_storage storage;
static cai_error err;
static uint64_t here, there, s, t, other; /* contexts of devices 0 and 1; two streams of `here`, one of `there` */
static uint64_t memory;

#include "calls_of_cai.h" /* GOOD, REFUSED */

static void open_table(uint32_t flags)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    table = *cai_sim_cuda(sim);
    table.flags |= flags;
    here = cai_sim_primary_retain(sim, 0);
    there = cai_sim_primary_retain(sim, 1);
    (void)cai_sim_set_context(sim, there);
    other = cai_sim_stream_create(sim, 1);
    (void)cai_sim_set_context(sim, here);
    s = cai_sim_stream_create(sim, 1);
    t = cai_sim_stream_create(sim, 1);
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096);
    GOOD(cai_event_pool_init(&pool, &table, NULL, 0, 0, &err));
    GOOD(cai_emm_hooks_cuda(&hooks, &table, &err));
    cai_emm_hooks_malloc(&plain);
    GOOD(cai_manager_init(&manager, &pool, &hooks, NULL, &err));
}

static void close_table(void)
{
    cai_sim_run(sim);
    GOOD(cai_keepalive_drain(&pool, &err));
    GOOD(cai_manager_destroy(&manager, &err));
    GOOD(cai_event_pool_destroy(&pool, &err));
    cai_sim_destroy(sim);
}

/* An array in memory of a device, of a dictionary or of HIP. */
static cai_array array_of(int32_t backend)
{
    static const int64_t shape[1] = {EXTENT};
    cai_array x;
    GOOD(cai_array_init(&x, CAI_FLOAT32, 1, shape, NULL, (void *)(uintptr_t)memory, &err));
    x.memory = CAI_MEMORY_DEVICE;
    x.device = 0;
    x.sync = CAI_SYNC_STREAM;
    x.stream = s;
    x.backend = backend;
    return x;
}

/* ------------------------------------------------------------------ the table of HIP */
static cai_status by_emm_array(cai_array *x)
{
    static const int64_t shape[1] = {EXTENT};
    return cai_emm_array(x, &pool, &hooks, CAI_FLOAT32, 1, shape, s, &err);
}

static cai_status by_manager_array(cai_array *x)
{
    static const int64_t shape[1] = {EXTENT};
    return cai_manager_array(x, &manager, CAI_FLOAT32, 1, shape, s, &err);
}

static cai_status by_manager_own(cai_array *x)
{
    cai_memory_handle handle;
    *x = array_of(CAI_BACKEND_CUDA);
    GOOD(cai_manager_alloc(&handle, &manager, 4096, 0, s, &err));
    x->data = (uint64_t)(uintptr_t)cai_manager_pointer(&manager, handle);
    GOOD(cai_manager_own(x, &manager, handle, &err));
    return cai_manager_free(&manager, handle, s, &err);
}

static cai_status by_locate(cai_array *x)
{
    *x = array_of(CAI_BACKEND_CUDA);
    return cai_locate(x, "x", &table, 0, NULL, &err);
}

static cai_status by_export(cai_array *x)
{
    *x = array_of(CAI_BACKEND_CUDA);
    return cai_stream_export(x, &pool, t, &s, 1, &err);
}

static cai_status by_migrate(cai_array *x)
{
    *x = array_of(CAI_BACKEND_CUDA);
    return cai_migrate(x, &pool, t, &err);
}

static cai_status by_move(cai_array *x)
{
    *x = array_of(CAI_BACKEND_CUDA);
    return cai_move(x, &pool, other, &hooks, &err);
}

static cai_storage_options options_for(int32_t kind)
{
    cai_storage_options options;
    memset(&options, 0, sizeof options);
    options.pool = &pool;
    options.hooks = &hooks;
    options.home = s;
    options.kind = kind;
    return options;
}

/* Makes a storage, and returns a copy of the array of a side. */
static cai_status storage_side(cai_array *x, int32_t kind, int32_t side, int32_t wrapped, int32_t on_plain_host)
{
    cai_storage_options options = options_for(kind);
    cai_array given = array_of(CAI_BACKEND_CUDA);
    cai_layout layout;
    cai_dtype dtype;
    memset(&layout, 0, sizeof layout);
    layout.ndim = 1;
    layout.shape[0] = EXTENT;
    if (on_plain_host) options.host = &plain;
    GOOD(cai_dtype_of(CAI_FLOAT32, &dtype, &err));
    if (wrapped) GOOD(cai_storage_wrap(&storage, &options, NULL, &given, CAI_STORAGE_CLEAN, &err));
    else GOOD(cai_storage_init(&storage, &options, &dtype, &layout, &err));
    cai_array_borrow(x, &storage.array[side - 1]);
    return cai_storage_release(&storage, &err);
}

static cai_status by_storage_device(cai_array *x)
{
    return storage_side(x, CAI_STORAGE_BOTH, CAI_SIDE_DEVICE, 0, 0);
}

static cai_status by_storage_pinned(cai_array *x)
{
    return storage_side(x, CAI_STORAGE_BOTH, CAI_SIDE_HOST, 0, 0);
}

/* Its stream is home, whose number is one of HIP, too. */
static cai_status by_storage_host(cai_array *x)
{
    return storage_side(x, CAI_STORAGE_BOTH, CAI_SIDE_HOST, 0, 1);
}

static cai_status by_storage_managed(cai_array *x)
{
    return storage_side(x, CAI_STORAGE_MANAGED, CAI_SIDE_DEVICE, 0, 0);
}

static cai_status by_storage_given(cai_array *x)
{
    return storage_side(x, CAI_STORAGE_BOTH, CAI_SIDE_DEVICE, 1, 0);
}

static cai_status by_storage_missing(cai_array *x)
{
    return storage_side(x, CAI_STORAGE_BOTH, CAI_SIDE_HOST, 1, 0);
}

/* The temporary array of a field that has none of the device. */
static cai_status by_access(cai_array *x)
{
    static float numbers[EXTENT];
    static cai_argument io[1];
    const cai_storage_options options = options_for(CAI_STORAGE_BOTH);
    const int64_t shape[1] = {EXTENT};
    cai_array on_host;
    cai_access field;
    GOOD(cai_array_init(&on_host, CAI_FLOAT32, 1, shape, NULL, numbers, &err));
    on_host.memory = CAI_MEMORY_HOST;
    on_host.sync = CAI_SYNC_NONE;
    memset(&field, 0, sizeof field);
    memset(io, 0, sizeof io);
    field.struct_size = (uint32_t)sizeof field;
    field.version = CAI_ACCESS_VERSION;
    field.array[0] = &on_host;
    io[0].access = &field;
    io[0].mode = CAI_READ;
    GOOD(cai_access_begin(io, 1, &options, CAI_SIDE_DEVICE, t, &err));
    cai_array_borrow(x, &io[0].array);
    return cai_access_end(io, 1, CAI_OK, &err);
}

typedef struct path {
    const char *name;
    cai_status (*run)(cai_array *x);
} path;

static const path makers[] = {{"cai_emm_array", by_emm_array},
                              {"cai_manager_array", by_manager_array},
                              {"cai_manager_own", by_manager_own},
                              {"cai_locate", by_locate},
                              {"cai_stream_export", by_export},
                              {"cai_migrate", by_migrate},
                              {"cai_move", by_move},
                              {"storage, device", by_storage_device},
                              {"storage, pinned", by_storage_pinned},
                              {"storage, plain host", by_storage_host},
                              {"storage, managed", by_storage_managed},
                              {"storage, given", by_storage_given},
                              {"storage, missing", by_storage_missing},
                              {"cai_access_begin", by_access}};

static void check_makers(void)
{
    size_t i;
    for (i = 0; i < sizeof makers / sizeof makers[0]; ++i) {
        cai_array x;
        cai_dl_device device;
        cai_test_note(makers[i].name);
        open_table(CAI_CUDA_HIP);
        GOOD(makers[i].run(&x));
        CHECK_INT(x.backend, HIP);
        CHECK_INT(cai_dlpack_device(&x, &device, &err), x.memory == CAI_MEMORY_HOST ? CAI_OK : CAI_ERR_EXPORT);
        cai_array_release(&x);
        close_table();
    }
}

/* ------------------------------------------------------------------ the table of CUDA */
static cai_status to_migrate(cai_array *x)
{
    return cai_migrate(x, &pool, t, &err);
}

static cai_status to_move(cai_array *x)
{
    return cai_move(x, &pool, t, &hooks, &err);
}

static cai_status to_other_device(cai_array *x)
{
    return cai_move(x, &pool, other, &hooks, &err);
}

static cai_status to_storage(cai_array *x)
{
    const cai_storage_options options = options_for(CAI_STORAGE_DEVICE);
    return cai_storage_wrap(&storage, &options, NULL, x, CAI_STORAGE_CLEAN, &err);
}

static cai_status to_place_on(cai_array *x)
{
    static cai_cached_stream streams[1];
    cai_stream_maker maker;
    cai_stream_cache cache;
    cai_placement at;
    memset(&cache, 0, sizeof cache);
    memset(&maker, 0, sizeof maker);
    cache.cuda = &table;
    cache.maker = maker;
    cache.streams = streams;
    cache.capacity = 1;
    return cai_place_on(&cache, CAI_DEVICE_UNKNOWN, x, 0, &at, &err);
}

static cai_status to_transfer(cai_array *x)
{
    const cai_array from = *x;
    cai_array to = array_of(CAI_BACKEND_CUDA);
    cai_transfer plan;
    to.data += 1024;
    GOOD(cai_transfer_plan(&plan, &to, &from, &err));
    return cai_transfer_copy(&plan, &table, s, &err);
}

static cai_status to_transfer_peer(cai_array *x)
{
    cai_array from = array_of(CAI_BACKEND_CUDA);
    cai_transfer plan;
    from.data += 1024;
    GOOD(cai_transfer_plan(&plan, x, &from, &err));
    return cai_transfer_copy_peer(&plan, &table, here, there, s, &err);
}

static cai_status to_pack(cai_array *x)
{
    cai_transfer plan;
    GOOD(cai_transfer_pack(&plan, x, memory + 1024, &err));
    return cai_transfer_copy(&plan, &table, s, &err);
}

static const path takers[] = {{"cai_migrate", to_migrate},
                              {"cai_move", to_move},
                              {"cai_move to another device", to_other_device},
                              {"cai_storage_wrap", to_storage},
                              {"cai_place_on", to_place_on},
                              {"cai_transfer_copy", to_transfer},
                              {"cai_transfer_copy_peer", to_transfer_peer},
                              {"cai_transfer_pack", to_pack}};

/* Nothing of CUDA gets a number or an address of the array. A storage asks for its own device before. */
static void check_takers(void)
{
    size_t i;
    for (i = 0; i < sizeof takers / sizeof takers[0]; ++i) {
        cai_array x;
        cai_test_note(takers[i].name);
        open_table(0);
        x = array_of(HIP);
        cai_sim_log_clear(sim);
        REFUSED(takers[i].run(&x), CAI_ERR_STREAM, "backend = 1");
        if (takers[i].run != to_storage) CHECK_STR(cai_sim_log(sim), "");
        CHECK(x.backend == HIP && x.sync == CAI_SYNC_STREAM && x.stream == s);
        close_table();
    }
}

/* An array that does not say HIP, in a pool of HIP, is not exported as one of CUDA. */
static void check_dlpack(void)
{
    static cai_dlpack_ordered ordered;
    struct DLManagedTensor *tensor;
    struct DLManagedTensorVersioned *versioned;
    cai_array x;
    open_table(CAI_CUDA_HIP);
    x = array_of(CAI_BACKEND_CUDA);
    CHECK_INT(cai_dlpack_export_ordered(&x, &pool, s, 0, &ordered, &tensor, &err), CAI_ERR_EXPORT);
    CHECK_INT(cai_dlpack_export_ordered_versioned(&x, &pool, s, 0, &ordered, &versioned, &err), CAI_ERR_EXPORT);
    CHECK(x.data == memory && x.backend == CAI_BACKEND_CUDA);
    close_table();
}

static void run(void)
{
    check_makers();
    check_takers();
    check_dlpack();
}

CAI_TEST_MAIN(run)
