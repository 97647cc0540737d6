/* test_ipc_more.c - ext/cai_ipc.h: imports by a copy, for devices without peer access, and exports by a table
 * without a manager. Two simulations play two processes.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_ipc.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"

enum { ROWS = 5, COLUMNS = 6, OBJECT = 4096 };

static cai_sim *sim_a, *sim_b; /* exporter, importer */
static cai_cuda cuda_a, cuda_b;
static cai_event_pool pool_a, pool_b;
static cai_emm_hooks hooks_a;
static cai_manager manager; /* of the importer, on its device 1 */
static cai_ipc ipc_a, ipc_b;
static cai_ipc_mapping places[2];
static uint64_t stream, slab;
static cai_error err;

#define GOOD(call) (CHECK_INT(call, CAI_OK) ? (void)0 : (void)printf("    %s\n", err.message))
#define BAD(call, status, words) (CHECK_INT(call, status), CHECK(strstr(err.message, words) != NULL))

static void open_ab(void)
{
    cai_emm_hooks hooks;
    sim_a = cai_sim_create(2);
    sim_b = cai_sim_create(2);
    if (!sim_a || !sim_b) exit(2);
    cuda_a = *cai_sim_cuda(sim_a);
    cuda_b = *cai_sim_cuda(sim_b);
    CHECK_INT(cai_sim_set_context(sim_a, cai_sim_primary(sim_a, 0)), 0);
    CHECK(cai_sim_primary_retain(sim_b, 0));
    CHECK_INT(cai_sim_set_context(sim_b, cai_sim_primary(sim_b, 1)), 0);
    GOOD(cai_event_pool_init(&pool_a, &cuda_a, NULL, 0, 0, &err));
    GOOD(cai_event_pool_init(&pool_b, &cuda_b, NULL, 0, 0, &err));
    GOOD(cai_emm_hooks_cuda(&hooks_a, &cuda_a, &err));
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda_b, &err));
    GOOD(cai_manager_init(&manager, &pool_b, &hooks, NULL, &err));
    GOOD(cai_ipc_init(&ipc_a, &cuda_a, NULL, 0, 1, &err));
    GOOD(cai_ipc_init(&ipc_b, &cuda_b, places, 2, 2, &err));
    stream = cai_sim_stream_create(sim_b, 1);
    slab = cai_sim_alloc(sim_a, CAI_SIM_MEM_DEVICE, OBJECT);
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0); /* what the copy needs is made current for it */
}

static void close_ab(void)
{
    const int32_t not_closed = ipc_b.failed; /* an opening that CUDA still counts */
    char text[200];
    CHECK_UINT(cai_sim_current(sim_b), 0);
    CHECK_INT(ipc_b.used, 0);
    GOOD(cai_ipc_destroy(&ipc_b, &err));
    GOOD(cai_ipc_destroy(&ipc_a, &err));
    GOOD(cai_manager_destroy(&manager, &err));
    GOOD(cai_event_pool_destroy(&pool_a, &err));
    GOOD(cai_event_pool_destroy(&pool_b, &err));
    CHECK_INT(cai_sim_stream_destroy(sim_b, stream), 0);
    CHECK_INT(cai_sim_free(sim_a, slab), 0);
    cai_sim_leaks(sim_a, text, sizeof text);
    CHECK_STR(text, "");
    cai_sim_leaks(sim_b, text, sizeof text);
    if (!not_closed) CHECK_STR(text, "");
    cai_sim_destroy(sim_a);
    cai_sim_destroy(sim_b);
}

/* An array at an offset in the slab, without pending work, whose bytes are numbered. */
static cai_array array_at(int32_t code, uint64_t offset, int32_t ndim, const int64_t *shape,
                          const int64_t *strides)
{
    unsigned char *bytes = (unsigned char *)cai_sim_bytes(sim_a, slab);
    cai_array x;
    int32_t i;
    for (i = 0; i < OBJECT; ++i) bytes[i] = (unsigned char)(i % 251);
    GOOD(cai_array_init(&x, code, ndim, shape, strides, (void *)(uintptr_t)(slab + offset), &err));
    x.sync = CAI_SYNC_NONE;
    return x;
}

static struct cai_ipc_v0 exported(const cai_array *x)
{
    struct cai_ipc_v0 d;
    memset(&d, 0, sizeof d);
    GOOD(cai_ipc_export_by_table(&ipc_a, &hooks_a, x, &d, &err));
    return d;
}

/* All elements of both. */
static void same_elements(const cai_array *x, const cai_array *y)
{
    cai_kernel_view of_x, of_y;
    int64_t i;
    GOOD(cai_kernel_view_of(x, &of_x, &err));
    GOOD(cai_kernel_view_of(y, &of_y, &err));
    for (i = 0; i < x->size; ++i) {
        const uint64_t at_x = (uint64_t)(uintptr_t)cai_kernel_element(&of_x, i);
        const uint64_t at_y = (uint64_t)(uintptr_t)cai_kernel_element(&of_y, i);
        CHECK_BYTES(cai_sim_bytes(sim_a, at_x), cai_sim_bytes(sim_b, at_y), (size_t)x->dtype.itemsize);
    }
}

/* ------------------------------------------------------------------ copies */
/* The manager's context is current, and the thread's capture mode allows a wait. */
static int32_t careful_peer(void *self, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                            uint64_t size, uint64_t on)
{
    int32_t mode = 2;
    CHECK_UINT(cai_sim_current(sim_b), cai_sim_primary(sim_b, 1));
    CHECK_UINT(to_context, cai_sim_primary(sim_b, 1));
    CHECK_UINT(from_context, cai_sim_primary(sim_b, 0));
    CHECK_INT(cuda_b.capture_mode(self, &mode), 0);
    CHECK_INT(mode, 2);
    return cai_sim_cuda(sim_b)->copy_peer_async(self, to, to_context, from, from_context, size, on);
}

static const char *copies_by = "copy_peer_async";

static void copy_arrives(const cai_array *x)
{
    struct cai_ipc_v0 d = exported(x);
    cai_array y;
    int32_t mode = 0;
    if (cuda_b.copy_peer_async) cuda_b.copy_peer_async = careful_peer;
    cai_sim_log_clear(sim_b);
    GOOD(cai_ipc_import_copy(&ipc_b, &d, &manager, stream, &y, &err));
    CHECK_INT(ipc_b.used, 0); /* closed again */
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close"), 1);
    CHECK_INT(cai_sim_calls_of(sim_b, copies_by), 1);
    CHECK_INT(cai_sim_calls_of(sim_b, "stream_synchronize"), 1);
    CHECK_INT(y.device, 1);
    CHECK_INT(y.memory, CAI_MEMORY_DEVICE);
    CHECK_INT(y.sync, CAI_SYNC_NONE);
    CHECK(y.flags & CAI_WRITABLE);
    CHECK_INT(y.ndim, x->ndim);
    CHECK_BYTES(y.shape, x->shape, (size_t)x->ndim * sizeof *y.shape);
    CHECK_BYTES(y.strides, x->strides, (size_t)x->ndim * sizeof *y.strides);
    CHECK_INT(y.packed_axis, x->packed_axis);
    CHECK_INT(y.packed_extent, x->packed_extent);
    same_elements(x, &y);
    CHECK_INT(cuda_b.capture_mode(cuda_b.self, &mode), 0);
    CHECK_INT(mode, 0); /* as before */
    CHECK_INT(manager.count.live, 1);
    cai_array_release(&y);
    CHECK_INT(manager.count.live, 0);
    GOOD(cai_manager_flush(&manager, &err));
}

/* To a manager of the memory's own device it is a plain copy. */
static void check_same_device(const cai_array *x)
{
    struct cai_ipc_v0 d = exported(x);
    const cai_emm_hooks hooks = manager.hooks;
    cai_manager near_it;
    cai_array y;
    uint64_t on;
    CHECK_INT(cai_sim_set_context(sim_b, cai_sim_primary(sim_b, 0)), 0);
    on = cai_sim_stream_create(sim_b, 1);
    GOOD(cai_manager_init(&near_it, &pool_b, &hooks, NULL, &err));
    cai_sim_log_clear(sim_b);
    GOOD(cai_ipc_import_copy(&ipc_b, &d, &near_it, on, &y, &err));
    CHECK_INT(cai_sim_calls_of(sim_b, "copy_async"), 1);
    CHECK_INT(y.device, 0);
    same_elements(x, &y);
    cai_array_release(&y);
    GOOD(cai_manager_destroy(&near_it, &err));
    CHECK_INT(cai_sim_stream_destroy(sim_b, on), 0);
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0);
}

static void check_copies(void)
{
    const int64_t shape[2] = {ROWS, COLUMNS}, strides[2] = {-64, 8}, still[2] = {0, 4}, none[2] = {3, 0};
    struct cai_ipc_v0 d;
    cai_memory_handle memory;
    cai_manager owner;
    cai_array x, y;
    open_ab();
    x = array_at(CAI_FLOAT32, 256, 2, shape, NULL);
    copy_arrives(&x);
    x.flags &= ~(uint32_t)CAI_WRITABLE;
    copy_arrives(&x);
    x = array_at(CAI_FLOAT64, 1024, 2, shape, strides);
    copy_arrives(&x);
    x = array_at(CAI_INT16, 12, 2, shape, still);
    copy_arrives(&x);
    GOOD(cai_array_init_packed(&x, CAI_INT4_X2, 2, shape, 0, NULL, (void *)(uintptr_t)(slab + 64), &err));
    x.sync = CAI_SYNC_NONE;
    copy_arrives(&x); /* 5 values in 3 elements, along axis 0 */
    x = array_at(CAI_FLOAT32, 0, 0, shape, NULL);
    copy_arrives(&x);
    copies_by = "copy_async";
    cuda_b.copy_peer_async = NULL; /* a table of before, or one that ends there */
    copy_arrives(&x);
    cuda_b = *cai_sim_cuda(sim_b);
    cuda_b.struct_size = (uint32_t)offsetof(cai_cuda, copy_3d_peer_async) - 1;
    copy_arrives(&x);
    cuda_b = *cai_sim_cuda(sim_b);
    check_same_device(&x);
    copies_by = "copy_peer_async";
    GOOD(cai_manager_init(&owner, &pool_a, &hooks_a, NULL, &err)); /* of no elements, which a table cannot send */
    GOOD(cai_manager_alloc(&memory, &owner, 64, 0, 1, &err));
    GOOD(cai_array_init(&x, CAI_INT8, 2, none, NULL, NULL, &err));
    x.sync = CAI_SYNC_NONE;
    x.flags &= ~(uint32_t)CAI_WRITABLE;
    GOOD(cai_ipc_export(&ipc_a, &owner, memory, &x, &d, &err));
    cai_sim_log_clear(sim_b);
    GOOD(cai_ipc_import_copy(&ipc_b, &d, &manager, stream, &y, &err));
    CHECK(y.device == 1 && y.flags & CAI_WRITABLE && !y.size && !y.release && y.shape[0] == 3);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 0);
    GOOD(cai_manager_free(&owner, memory, 1, &err));
    GOOD(cai_manager_destroy(&owner, &err));
    close_ab();
}

static void check_copy_refused(void)
{
    static cai_manager plain;
    const int64_t shape[1] = {8};
    struct cai_ipc_v0 d;
    cai_emm_hooks host;
    cai_array x, y, before;
    open_ab();
    x = array_at(CAI_FLOAT32, 0, 1, shape, NULL);
    d = exported(&x);
    memset(&y, 0x33, sizeof y);
    before = y;
    BAD(cai_ipc_import_copy(&ipc_b, &d, NULL, stream, &y, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    BAD(cai_ipc_import_copy(&ipc_b, &d, &plain, stream, &y, &err), CAI_ERR_ARGUMENT, "not made");
    BAD(cai_ipc_import_copy(&ipc_b, &d, &manager, stream, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    BAD(cai_ipc_import_copy(NULL, &d, &manager, stream, &y, &err), CAI_ERR_ARGUMENT, "ipc is NULL");
    BAD(cai_ipc_import_copy(&ipc_b, NULL, &manager, stream, &y, &err), CAI_ERR_ARGUMENT, "in is NULL");
    BAD(cai_ipc_import_copy(&ipc_b, &d, &manager, 0, &y, &err), CAI_ERR_STREAM, "stream 0 is ambiguous");
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), cai_sim_calls_of(sim_b, "ipc_close"));
    cai_emm_hooks_malloc(&host);
    GOOD(cai_manager_init(&plain, NULL, &host, NULL, &err));
    BAD(cai_ipc_import_copy(&ipc_b, &d, &plain, stream, &y, &err), CAI_ERR_ARGUMENT, "of host memory");
    GOOD(cai_manager_destroy(&plain, &err));
    cuda_b.copy_async = NULL;
    BAD(cai_ipc_import_copy(&ipc_b, &d, &manager, stream, &y, &err), CAI_ERR_UNAVAILABLE, "no copy_async");
    cuda_b = *cai_sim_cuda(sim_b);
    cuda_b.struct_size = (uint32_t)offsetof(cai_cuda, copy_3d_async); /* the last slot that it needs */
    GOOD(cai_ipc_import_copy(&ipc_b, &d, &manager, stream, &y, &err));
    cai_array_release(&y);
    GOOD(cai_manager_flush(&manager, &err));
    y = before;
    cuda_b.struct_size = (uint32_t)offsetof(cai_cuda, copy_async) + 1; /* half a slot is none */
    BAD(cai_ipc_import_copy(&ipc_b, &d, &manager, stream, &y, &err), CAI_ERR_UNAVAILABLE, "no copy_async");
    cuda_b.struct_size = (uint32_t)sizeof cuda_b;
    CHECK_BYTES(&y, &before, sizeof y);
    close_ab();
}

/* Each CUDA call fails once: nothing is stored, the memory goes back. Nothing stays open but for a copy whose
 * wait failed, until its stream has passed. */
static void check_copy_faults(void)
{
    const int64_t shape[1] = {8};
    int32_t n, struck = 1, waits = 0;
    for (n = 1; struck; ++n) {
        char note[60];
        struct cai_ipc_v0 d;
        cai_array x, y, before;
        cai_status status;
        open_ab();
        x = array_at(CAI_FLOAT32, 0, 1, shape, NULL);
        d = exported(&x);
        memset(&y, 0x33, sizeof y);
        before = y;
        sprintf(note, "call %d of a copy", (int)n);
        cai_test_note(note);
        CHECK_INT(cai_sim_fail(sim_b, n, 999), 1);
        status = cai_ipc_import_copy(&ipc_b, &d, &manager, stream, &y, &err);
        struck = !cai_sim_faults(sim_b);
        cai_sim_faults_clear(sim_b);
        CHECK(!status || (struck && status == CAI_ERR_CUDA && err.native == 999));
        if (status) CHECK_BYTES(&y, &before, sizeof y);
        else cai_array_release(&y);
        if (pool_b.waiting) ++waits; /* the copy may be pending */
        GOOD(cai_keepalive_drain(&pool_b, &err));
        CHECK(!struck || status || ipc_b.failed || manager.count.failed || manager.count.deferred);
        if (ipc_b.failed) CHECK_INT(ipc_b.first_failure, 999);
        close_ab();
    }
    cai_test_note("");
    CHECK(n > 15);
    CHECK_INT(waits, 1);
}

static int32_t waits_and_fails(void *self, uint64_t on)
{
    CHECK_INT(cai_sim_cuda(sim_b)->stream_synchronize(self, on), 0);
    return 999;
}

/* The wait fails, and the memory cannot be kept: it is closed at once, beside a capture of thread 7. */
static void check_closed_beside_capture(void)
{
    const int64_t shape[1] = {8};
    struct cai_ipc_v0 d;
    cai_array x, y;
    uint64_t captured;
    open_ab();
    x = array_at(CAI_FLOAT32, 0, 1, shape, NULL);
    d = exported(&x);
    cai_sim_host_thread(sim_b, 7);
    CHECK_INT(cai_sim_set_context(sim_b, cai_sim_primary(sim_b, 1)), 0);
    captured = cai_sim_stream_create(sim_b, 1);
    CHECK_INT(cai_sim_capture_begin(sim_b, captured, CAI_SIM_MODE_GLOBAL), 0);
    cai_sim_host_thread(sim_b, 0);
    cuda_b.stream_synchronize = waits_and_fails;
    CHECK_INT(cai_sim_fail_op(sim_b, "event_create", 1, 2), 1);
    cai_sim_log_clear(sim_b);
    BAD(cai_ipc_import_copy(&ipc_b, &d, &manager, stream, &y, &err), CAI_ERR_CUDA, "999");
    cuda_b = *cai_sim_cuda(sim_b);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close") * 100 + ipc_b.used * 10 + ipc_b.failed, 100);
    cai_sim_host_thread(sim_b, 7);
    CHECK_INT(cai_sim_capture_end(sim_b, captured, NULL), 0); /* it is as it was */
    CHECK_INT(cai_sim_stream_destroy(sim_b, captured), 0);
    cai_sim_host_thread(sim_b, 0);
    close_ab();
}

/* ------------------------------------------------------------------ tables */
static int crooked_ipc(void *ctx, void *ptr, void *handle, void **base)
{
    memset(handle, 0, 64);
    *base = ctx ? (char *)ptr + 1 : NULL;
    return 0;
}

static int poor_ipc(void *ctx, void *ptr, void *handle, void **base)
{
    (void)ctx;
    (void)ptr;
    (void)handle;
    (void)base;
    return 801;
}

static void check_tables(void)
{
    const int64_t shape[2] = {ROWS, COLUMNS}, strides[2] = {-64, 8};
    struct cai_ipc_v0 d;
    cai_array x, y;
    open_ab();
    CHECK_INT(cai_sim_set_context(sim_b, cai_sim_primary(sim_b, 0)), 0);
    x = array_at(CAI_FLOAT64, 1024, 2, shape, strides);
    d = exported(&x);
    CHECK_UINT(d.offset, 1024 - 4 * 64); /* of the lowest byte in the slab */
    CHECK_UINT(d.size, 4 * 64 + 5 * 8 + 8);
    CHECK_UINT(d.data_offset, 4 * 64);
    GOOD(cai_ipc_import(&ipc_b, &d, &y, &err));
    same_elements(&x, &y);
    cai_array_release(&y);
    hooks_a.ipc_handle = NULL; /* CUDA finds the allocation */
    hooks_a.flags |= CAI_EMM_CUDA_IPC;
    d = exported(&x);
    CHECK_UINT(d.offset, 1024 - 4 * 64);
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0);
    close_ab();
}

static void check_tables_refused(void)
{
    const int64_t shape[1] = {8}, none[1] = {0};
    struct cai_ipc_v0 d, before;
    cai_emm_hooks hooks;
    cai_array x, empty;
    open_ab();
    x = array_at(CAI_FLOAT32, 64, 1, shape, NULL);
    memset(&d, 0x33, sizeof d);
    before = d;
    hooks = hooks_a;
    BAD(cai_ipc_export_by_table(NULL, &hooks, &x, &d, &err), CAI_ERR_ARGUMENT, "ipc is NULL");
    BAD(cai_ipc_export_by_table(&ipc_a, NULL, &x, &d, &err), CAI_ERR_ARGUMENT, "hooks is NULL");
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, NULL, &d, &err), CAI_ERR_ARGUMENT, "NULL");
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    GOOD(cai_array_init(&empty, CAI_INT8, 1, none, NULL, NULL, &err));
    empty.sync = CAI_SYNC_NONE;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &empty, &d, &err), CAI_ERR_MEMORY, "no memory");
    x.sync = CAI_SYNC_UNKNOWN;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_EXPORT, "work may be pending");
    x.sync = CAI_SYNC_NONE;
    hooks.ipc_handle = crooked_ipc;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_MEMORY, "as the base of");
    hooks.ctx = NULL;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_MEMORY, "as the base of");
    hooks.ipc_handle = poor_ipc;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_UNAVAILABLE, "ipc_handle of cuda");
    x.device = 1;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_MEMORY, "the array is on device 1");
    x.device = CAI_DEVICE_UNKNOWN;
    x.memory = CAI_MEMORY_MANAGED;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_MEMORY, "(kind 3)");
    x.memory = CAI_MEMORY_DEVICE;
    hooks.ipc_handle = NULL;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_UNAVAILABLE, "cuda has no hook ipc_handle");
    cai_emm_hooks_malloc(&hooks);
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_MEMORY, "memory of host (kind 1)");
    GOOD(cai_emm_hooks_async(&hooks, &cuda_a, NULL, &err));
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks, &x, &d, &err), CAI_ERR_MEMORY, "memory of cuda_async (kind 5)");
    CHECK_INT(cai_sim_fail_op(sim_a, "context_device", 1, 700), 1);
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks_a, &x, &d, &err), CAI_ERR_CUDA, "context_device");
    CHECK_INT(cai_sim_fail_op(sim_a, "device_uuid", 1, 700), 1);
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks_a, &x, &d, &err), CAI_ERR_CUDA, "device_uuid");
    cuda_a.device_uuid = NULL;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks_a, &x, &d, &err), CAI_ERR_UNAVAILABLE, "no device_uuid");
    cuda_a = *cai_sim_cuda(sim_a);
    cuda_a.context_device = NULL;
    BAD(cai_ipc_export_by_table(&ipc_a, &hooks_a, &x, &d, &err), CAI_ERR_UNAVAILABLE, "or context_device");
    CHECK_BYTES(&d, &before, sizeof d);
    cuda_a = *cai_sim_cuda(sim_a);
    close_ab();
}

int main(void)
{
    check_copies();
    check_copy_refused();
    check_copy_faults();
    check_closed_beside_capture();
    check_tables();
    check_tables_refused();
    return cai_test_end();
}
