/* test_ipc.c - ext/cai_ipc.h: two simulations play two processes; then two processes, and threads.
 * SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700
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
#if !defined(_WIN32)
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { PLACES = 3, OBJECT = 4096 };

static cai_sim *sim_a, *sim_b; /* exporter, importer */
static cai_cuda cuda_a, cuda_b;
static cai_event_pool pool;
static cai_manager emm;
static cai_ipc ipc_a, ipc_b;
static cai_ipc_mapping places[PLACES];
static cai_memory_handle memory;
static uint64_t address; /* of it, in A */
static cai_error err;

#include "calls_of_cai.h" /* GOOD, REFUSED */

static void open_ab(int32_t device, int async)
{
    cai_emm_hooks hooks;
    sim_a = cai_sim_create(2);
    sim_b = cai_sim_create(2);
    if (!sim_a || !sim_b) exit(2);
    cuda_a = *cai_sim_cuda(sim_a);
    cuda_b = *cai_sim_cuda(sim_b);
    CHECK(cai_sim_primary_retain(sim_b, 0) && cai_sim_primary_retain(sim_b, 1)); /* that one uses CUDA, too */
    CHECK_INT(cai_sim_set_context(sim_a, cai_sim_primary(sim_a, device)), 0);
    GOOD(cai_event_pool_init(&pool, &cuda_a, NULL, 0, 0, &err));
    GOOD(async ? cai_emm_hooks_async(&hooks, &cuda_a, NULL, &err) : cai_emm_hooks_cuda(&hooks, &cuda_a, &err));
    GOOD(cai_manager_init(&emm, &pool, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&memory, &emm, OBJECT, 0, 1, &err));
    address = (uint64_t)(uintptr_t)cai_manager_pointer(&emm, memory);
    memset(places, 0x5a, sizeof places);
    GOOD(cai_ipc_init(&ipc_a, &cuda_a, NULL, 0, 0, &err));
    GOOD(cai_ipc_init(&ipc_b, &cuda_b, places, PLACES, 0, &err));
    CHECK(ipc_a.cookie != ipc_b.cookie);
    cai_sim_log_clear(sim_a);
}

static void close_ab(void)
{
    char text[200];
    GOOD(cai_ipc_destroy(&ipc_b, &err));
    GOOD(cai_ipc_destroy(&ipc_a, &err));
    CHECK_INT(cai_sim_leaks(sim_b, text, sizeof text), 0);
    CHECK_STR(text, "");
    cai_sim_destroy(sim_b);
    GOOD(cai_manager_free(&emm, memory, 1, &err));
    cai_sim_run(sim_a);
    GOOD(cai_manager_destroy(&emm, &err));
    GOOD(cai_event_pool_destroy(&pool, &err));
    CHECK_INT(cai_sim_leaks(sim_a, text, sizeof text), 0);
    cai_sim_destroy(sim_a);
}

/* An array in the object, without pending work. strides: NULL: C order. */
static cai_array array_at(int32_t code, int64_t offset, int32_t ndim, const int64_t *shape,
                          const int64_t *strides)
{
    cai_array x;
    void *data = (void *)(uintptr_t)(address + (uint64_t)offset);
    GOOD(cai_array_init(&x, code, ndim, shape, strides, data, &err));
    x.sync = CAI_SYNC_NONE;
    return x;
}

static struct cai_ipc_v0 exported(const cai_array *x)
{
    struct cai_ipc_v0 d;
    memset(&d, 0, sizeof d);
    GOOD(cai_ipc_export(&ipc_a, &emm, memory, x, &d, &err));
    return d;
}

static struct cai_ipc_v0 exported_bytes(void) { return exported(NULL); }

/* ------------------------------------------------------------------ what arrives */

static void same_array(const cai_array *to, const cai_array *from)
{
    int32_t i;
    CHECK_BYTES(&to->dtype, &from->dtype, sizeof to->dtype);
    CHECK_INT(to->ndim, from->ndim);
    CHECK_INT(to->size, from->size);
    CHECK_INT(to->nbytes, from->nbytes);
    CHECK_INT(to->lo, from->lo);
    CHECK_INT(to->hi, from->hi);
    CHECK_UINT(to->flags | CAI_HAD_STRIDES, from->flags | CAI_HAD_STRIDES);
    CHECK_UINT(to->data, from->data); /* the simulation maps at the same address */
    for (i = 0; i < to->ndim; i++) {
        CHECK_INT(to->shape[i], from->shape[i]);
        CHECK_INT(to->strides[i], from->strides[i]);
    }
    CHECK_INT(to->packed_axis, from->packed_axis);
    CHECK_INT(to->packed_extent, from->packed_extent);
    CHECK_INT(to->sync, CAI_SYNC_NONE);
    CHECK_INT(to->memory, CAI_MEMORY_DEVICE);
    CHECK_INT(to->version, 3);
}

static int32_t inactive_primary(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    (void)device;
    *context = 0;
    return 0;
}

/* Where no primary context is active, the current one serves if it is of the device; none is made. */
static void check_inactive_primary(void)
{
    struct cai_ipc_v0 d;
    uint64_t own[2];
    cai_array x;
    int32_t device;
    open_ab(1, 0);
    d = exported_bytes();
    cuda_b.device_context = inactive_primary;
    CHECK_INT(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_UNAVAILABLE);
    CHECK_STR(err.message, "no context of device 1 is current on this thread, and its primary one is not active");
    for (device = 0; device < 2; device++) {
        own[device] = cai_sim_context_create(sim_b, device);
        CHECK_INT(cai_sim_set_context(sim_b, own[device]), 0);
        CHECK_INT(cai_ipc_import(&ipc_b, &d, &x, &err), device ? CAI_OK : CAI_ERR_UNAVAILABLE);
    }
    CHECK_INT(x.device, 1);
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0);
    cai_array_release(&x);
    CHECK_INT(cai_sim_set_context(sim_b, own[1]), 0);
    cuda_b.context_device = NULL; /* nobody knows of which device that is */
    CHECK_INT(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_UNAVAILABLE);
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0);
    for (device = 0; device < 2; device++) CHECK_INT(cai_sim_context_destroy(sim_b, own[device]), 0);
    close_ab();
}

/* Who made the primary context is done with it before the array is: the mapping keeps it. */
static void check_context_of_another(void)
{
    struct cai_ipc_v0 d;
    cai_array x, y;
    uint64_t context = 0;
    open_ab(1, 0);
    d = exported_bytes();
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    CHECK_INT(cai_sim_primary_release(sim_b, 1), 0);
    CHECK_INT(cuda_b.device_context(sim_b, 1, &context), 0);
    CHECK_UINT(context, cai_sim_primary(sim_b, 1));
    GOOD(cai_ipc_import(&ipc_b, &d, &y, &err)); /* joins it */
    cai_array_release(&x);
    cai_array_release(&y);
    CHECK_INT(ipc_b.failed, 0);
    CHECK_INT(cuda_b.device_context(sim_b, 1, &context), 0);
    CHECK_UINT(context, 0);
    CHECK(cai_sim_primary_retain(sim_b, 1) != 0);
    CHECK_INT(cai_sim_fail_op(sim_b, "ipc_open", 1, 2), 1); /* a failure keeps nothing */
    CHECK_INT(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_primary_release(sim_b, 1), 0);
    CHECK_INT(cuda_b.device_context(sim_b, 1, &context), 0);
    CHECK_UINT(context, 0);
    close_ab();
}

/* A context of its own is current, and the primary one is active, too: the memory is for the current one. */
static void check_current_first(void)
{
    struct cai_ipc_v0 d;
    uint64_t own[2];
    cai_array x;
    int32_t device;
    open_ab(1, 0);
    d = exported_bytes();
    for (device = 0; device < 2; device++) {
        own[device] = cai_sim_context_create(sim_b, device);
        CHECK_INT(cai_sim_set_context(sim_b, own[device]), 0);
        GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
        CHECK_UINT(places[0].context, device ? own[1] : cai_sim_primary(sim_b, 1));
        CHECK_UINT(cai_sim_current(sim_b), own[device]);
        cai_array_release(&x);
    }
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0);
    for (device = 0; device < 2; device++) CHECK_INT(cai_sim_context_destroy(sim_b, own[device]), 0);
    CHECK_INT(ipc_b.failed, 0);
    close_ab();
}

/* From now on the driver tells of a destroyed context, which CUDA does not promise. */
static void tell_of_destroyed(void)
{
    cai_sim_set_options(sim_b, cai_sim_options(sim_b) & ~(uint32_t)CAI_SIM_LIVING_CONTEXTS);
}

/* Imports in a context of its own, which is then destroyed. */
static void import_in_gone(cai_array *x)
{
    const struct cai_ipc_v0 d = exported_bytes();
    const uint64_t own = cai_sim_context_create(sim_b, 1);
    CHECK_INT(cai_sim_set_context(sim_b, own), 0);
    GOOD(cai_ipc_import(&ipc_b, &d, x, &err));
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0);
    tell_of_destroyed();
    CHECK_INT(cai_sim_context_destroy(sim_b, own), 0);
}

/* The context in which memory is open was destroyed, and the memory with it. */
static void check_context_gone(void)
{
    cai_array x;
    open_ab(1, 0);
    import_in_gone(&x);
    cai_array_release(&x);
    CHECK(ipc_b.used == 0 && ipc_b.failed == 1 && ipc_b.first_failure == 709);
    close_ab();
}

/* Another array of the same memory, which is opened anew: what was open is gone with its context. `x` is of that
 * one. Its release closes nothing of `y`. */
static void opens_anew(cai_array *x)
{
    struct cai_ipc_v0 d = exported_bytes();
    cai_array y;
    GOOD(cai_ipc_import(&ipc_b, &d, &y, &err));
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 2);
    CHECK_INT(ipc_b.used, 2);
    cai_array_release(x);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close"), 0);
    CHECK(ipc_b.used == 1 && ipc_b.failed == 1 && ipc_b.first_failure == 709);
    GOOD(cai_locate(&y, "y", &cuda_b, CAI_LOCATE_BOUNDS, NULL, &err));
    cai_array_release(&y);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close"), 1);
    CHECK(ipc_b.used == 0 && ipc_b.failed == 1);
}

/* A context that is gone is not joined: the address means nothing any more. */
static void check_no_join_of_gone(void)
{
    cai_array x;
    open_ab(1, 0);
    import_in_gone(&x);
    opens_anew(&x);
    close_ab();
}

/* A reset (cudaDeviceReset) ends what is open, too. The primary context keeps its handle, and has another id. */
static void check_primary_reset(void)
{
    struct cai_ipc_v0 d;
    cai_array x;
    open_ab(1, 0);
    d = exported_bytes();
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    CHECK_INT(cai_sim_context_destroy(sim_b, cai_sim_primary(sim_b, 1)), 0);
    opens_anew(&x);
    CHECK_INT(cai_sim_calls_of(sim_b, "primary_retain"), cai_sim_calls_of(sim_b, "primary_release"));
    close_ab();
}

/* A context whose handle is that of one that was destroyed. */
static uint64_t first_own, second_own; /* the handle, and what it means now; 0: the simulation's */

static int32_t again_current(void *self, uint64_t *context)
{
    const int32_t error = cai_sim_cuda(sim_b)->context_current(self, context);
    if (second_own && *context == second_own) *context = first_own;
    return error;
}

static int32_t again_push(void *self, uint64_t context)
{
    return cai_sim_cuda(sim_b)->context_push(self, second_own && context == first_own ? second_own : context);
}

static int32_t again_id(void *self, uint64_t context, uint64_t *id)
{
    return cai_sim_cuda(sim_b)->context_id(self, second_own && context == first_own ? second_own : context, id);
}

static void check_handle_again(void)
{
    struct cai_ipc_v0 d;
    cai_array x;
    open_ab(1, 0);
    cuda_b.context_current = again_current;
    cuda_b.context_push = again_push;
    cuda_b.context_id = again_id;
    d = exported_bytes();
    first_own = cai_sim_context_create(sim_b, 1);
    CHECK_INT(cai_sim_set_context(sim_b, first_own), 0);
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    tell_of_destroyed();
    CHECK_INT(cai_sim_context_destroy(sim_b, first_own), 0);
    second_own = cai_sim_context_create(sim_b, 1);
    CHECK_INT(cai_sim_set_context(sim_b, second_own), 0);
    opens_anew(&x);
    CHECK_INT(cai_sim_set_context(sim_b, 0), 0);
    CHECK_INT(cai_sim_context_destroy(sim_b, second_own), 0);
    second_own = 0;
    close_ab();
}

/* 900, as while a stream captures globally, unless the mode of the thread is relaxed. */
static int32_t in_relaxed_mode(void)
{
    const cai_cuda *cuda = cai_sim_cuda(sim_b);
    int32_t mode = 2, own;
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    own = mode;
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    return own == 2 ? 0 : 900;
}

static int32_t strict_open(void *self, const void *handle, uint64_t *pointer)
{
    const int32_t error = in_relaxed_mode();
    return error ? error : cai_sim_cuda(sim_b)->ipc_open(self, handle, pointer);
}

static int32_t strict_close(void *self, uint64_t pointer)
{
    const int32_t error = in_relaxed_mode();
    return error ? error : cai_sim_cuda(sim_b)->ipc_close(self, pointer);
}

static void check_capture_mode(void)
{
    struct cai_ipc_v0 d;
    cai_array x;
    int32_t n;
    open_ab(1, 0);
    d = exported_bytes();
    cuda_b.ipc_open = strict_open;
    cuda_b.ipc_close = strict_close;
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    cai_array_release(&x);
    CHECK_INT(ipc_b.failed, 0);
    CHECK_INT(in_relaxed_mode(), 900); /* as before */
    cuda_b = *cai_sim_cuda(sim_b);
    for (n = 1; n <= 2; n++) { /* the mode cannot be changed; then, it cannot be restored */
        CHECK_INT(cai_sim_fail_op(sim_b, "capture_mode", n, 1), 1);
        REFUSED(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_CUDA, "ipc_open: CUDA error 1");
        CHECK_INT(ipc_b.used, 0);
    }
    close_ab();
}

#define RELAXED(call) "capture_mode relaxed -> global\n" call "capture_mode global -> relaxed\n"

static void check_arrives(int32_t device)
{
    const int64_t shape[2] = {3, 4}, strides[2] = {64, -8};
    struct cai_ipc_v0 d;
    unsigned char bytes[sizeof d + 1];
    cai_array x, y;
    float *first;
    open_ab(device, 0);
    x = array_at(CAI_FLOAT32, 256 + 24, 2, shape, strides);
    d = exported(&x);
    CHECK_STR(cai_sim_log(sim_a),
              device ? "context_current -> c2\npointer_range m1 -> m1 4096\nipc_export m1\ndevice_uuid 1\n"
                     : "context_current -> c1\npointer_range m1 -> m1 4096\nipc_export m1\ndevice_uuid 0\n");
    CHECK_UINT(d.offset, 0);
    CHECK_UINT(d.size, OBJECT);
    CHECK_UINT(d.data_offset, 280);
    first = (float *)cai_sim_bytes(sim_a, x.data);
    first[0] = 7.5f;
    memcpy(bytes + 1, &d, sizeof d); /* unaligned, as it may come */
    GOOD(cai_ipc_import(&ipc_b, (const struct cai_ipc_v0 *)(const void *)(bytes + 1), &y, &err));
    CHECK_STR(cai_sim_log(sim_b), device ? "device_uuid 0\ndevice_uuid 1\ncontext_current -> none\n"
                                           "device_context 1 -> c2\nprimary_retain 1 -> c2\ncontext_id c2 -> 1\n"
                                           "context_current -> none\ncontext_push c2\n" RELAXED("ipc_open -> m1\n")
                                           "pointer_range m1 -> m1 4096\ncontext_pop\n"
                                         : "device_uuid 0\ncontext_current -> none\n"
                                           "device_context 0 -> c1\nprimary_retain 0 -> c1\ncontext_id c1 -> 1\n"
                                           "context_current -> none\ncontext_push c1\n" RELAXED("ipc_open -> m1\n")
                                           "pointer_range m1 -> m1 4096\ncontext_pop\n");
    same_array(&y, &x);
    CHECK_INT(y.device, device);
    CHECK(*(float *)cai_sim_bytes(sim_b, y.data) == 7.5f);
    CHECK(cai_locate(&y, "y", &cuda_b, CAI_LOCATE_BOUNDS, NULL, &err) != 0 || y.device == device);
    REFUSED(cai_ipc_destroy(&ipc_b, &err), CAI_ERR_PENDING, "1 imported");
    cai_sim_log_clear(sim_b);
    cai_array_release(&y);
    CHECK_STR(cai_sim_log(sim_b),
              device ? "context_id c2 -> 1\ncontext_current -> none\ncontext_push c2\n" RELAXED("ipc_close m1\n")
                       "context_pop\nprimary_release 1\n"
                     : "context_id c1 -> 1\ncontext_current -> none\ncontext_push c1\n" RELAXED("ipc_close m1\n")
                       "context_pop\nprimary_release 0\n");
    CHECK(y.release == NULL);
    CHECK_INT(ipc_b.failed, 0);
    close_ab();
}

static void arrives_same(const cai_array *x)
{
    struct cai_ipc_v0 d = exported(x);
    cai_array y;
    GOOD(cai_ipc_import(&ipc_b, &d, &y, &err));
    same_array(&y, x);
    CHECK_INT(y.release != NULL, x->size != 0);
    CHECK_INT(ipc_b.used, x->size != 0);
    cai_array_release(&y);
    CHECK_INT(ipc_b.used, 0);
}

/* The values of packed elements lie along the axis of the exporter, and the last element keeps its unused bits. */
static void check_packed(void)
{
    const int64_t shape[2] = {7, 4};
    const int32_t code[2] = {CAI_INT4_X2, CAI_FLOAT6_E2M3FN_X4};
    cai_array x;
    int32_t i;
    open_ab(0, 0);
    for (i = 0; i < 4; i++) {
        GOOD(cai_array_init_packed(&x, code[i / 2], 2, shape, i % 2, NULL, (void *)(uintptr_t)address, &err));
        x.sync = CAI_SYNC_NONE;
        arrives_same(&x);
    }
    GOOD(cai_array_init_packed(&x, CAI_INT4_X2, 0, NULL, -1, NULL, (void *)(uintptr_t)address, &err));
    x.sync = CAI_SYNC_NONE;
    arrives_same(&x);
    close_ab();
}

static void check_kinds(void)
{
    static const char *const typestrs[] = {"<M8[25s]", ">m8", "|S7", "<U3", ">U3", "|V12", "|t9", ">c16",
                                           "|b1"};
    const int64_t shape[3] = {2, 0, 5}, few[2] = {2, 5};
    int64_t ones[64], zeros[64];
    cai_array x;
    cai_dtype dtype;
    size_t i;
    open_ab(0, 0);
    for (i = 0; i < 64; i++) {
        ones[i] = 1;
        zeros[i] = 0;
    }
#define CAI_EACH(name, kind, bytes, format, text)                                                            \
    if (bytes) {                                                                                             \
        x = array_at(name, 64, 2, few, NULL);                                                                \
        arrives_same(&x);                                                                                    \
        if (bytes > 1 && !format) {                                                                          \
            x = array_at(CAI_SWAPPED(name), 64, 2, few, NULL);                                               \
            arrives_same(&x);                                                                                \
        }                                                                                                    \
    }
    CAI_DTYPE_LIST(CAI_EACH)
#undef CAI_EACH
    for (i = 0; i < sizeof typestrs / sizeof *typestrs; i++) {
        cai_test_note(typestrs[i]);
        GOOD(cai_dtype_parse(typestrs[i], (int64_t)strlen(typestrs[i]), 0, &dtype, &err));
        GOOD(cai_array_init_dtype(&x, &dtype, 2, few, NULL, address + 8, &err));
        x.sync = CAI_SYNC_NONE;
        arrives_same(&x);
    }
    cai_test_note("");
    x = array_at(CAI_INT32, 0, 0, NULL, NULL);
    arrives_same(&x);
    x = array_at(CAI_INT32, OBJECT - 4, 64, ones, NULL); /* the last element */
    arrives_same(&x);
    ones[63] = 1000;
    x = array_at(CAI_INT64, 8, 64, ones, zeros); /* one element, repeated */
    x.flags &= ~(uint32_t)CAI_WRITABLE;
    arrives_same(&x);
    x = array_at(CAI_INT64, 8, 3, shape, NULL); /* empty: nothing is opened */
    x.sync = CAI_SYNC_UNKNOWN;
    arrives_same(&x);
    close_ab();
}

static void check_bytes(void)
{
    struct cai_ipc_v0 d;
    cai_array x;
    open_ab(0, 0);
    d = exported_bytes();
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    CHECK_INT(x.dtype.code, CAI_UINT8);
    CHECK_INT(x.ndim, 1);
    CHECK_INT(x.shape[0], OBJECT);
    CHECK_UINT(x.data, address);
    CHECK(x.flags & CAI_WRITABLE);
    cai_array_release(&x);
    x = array_at(CAI_UINT8, 0, 1, &x.shape[0], NULL);
    GOOD(cai_ipc_export(&ipc_a, &emm, memory, &x, &d, &err));
    CHECK_UINT(d.data_offset, 0);
    x.data--; /* not in the object */
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, &d, &err), CAI_ERR_MEMORY, "describe no memory");
    close_ab();
}

/* ------------------------------------------------------------------ one mapping for all */

static void check_one_mapping(void)
{
    const int64_t n = 16;
    struct cai_ipc_v0 d[3];
    cai_array x, y[4], moved;
    int32_t i;
    open_ab(0, 0);
    x = array_at(CAI_INT32, 0, 1, &n, NULL);
    d[0] = exported(&x);
    x = array_at(CAI_INT32, 512, 1, &n, NULL);
    d[1] = exported(&x);
    d[2] = exported_bytes();
    for (i = 0; i < 4; i++) GOOD(cai_ipc_import(&ipc_b, &d[i % 3], &y[i], &err));
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 1);
    CHECK_INT(ipc_b.used, 1);
    CHECK_UINT(y[3].data, y[0].data);
    CHECK_UINT(y[1].data, y[0].data + 512);
    cai_array_move(&moved, &y[0]);
    cai_array_release(&y[0]);
    for (i = 1; i < 4; i++) cai_array_release(&y[i]);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close"), 0);
    cai_array_release(&moved);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close"), 1);
    GOOD(cai_ipc_import(&ipc_b, &d[0], &y[0], &err)); /* and once more */
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 2);
    cai_array_release(&y[0]);
    close_ab();
}

static void check_capacity(void)
{
    struct cai_ipc_v0 d[PLACES + 1];
    cai_memory_handle more[PLACES + 1];
    cai_array x[PLACES + 2];
    int32_t i;
    open_ab(0, 0);
    for (i = 0; i <= PLACES; i++) {
        GOOD(cai_manager_alloc(&more[i], &emm, 64, 0, 1, &err));
        GOOD(cai_ipc_export(&ipc_a, &emm, more[i], NULL, &d[i], &err));
    }
    for (i = 0; i < PLACES; i++) GOOD(cai_ipc_import(&ipc_b, &d[i], &x[i], &err));
    REFUSED(cai_ipc_import(&ipc_b, &d[PLACES], &x[PLACES], &err), CAI_ERR_CAPACITY, "none of 3 mappings is free");
    GOOD(cai_ipc_import(&ipc_b, &d[1], &x[PLACES], &err)); /* is open */
    cai_array_release(&x[1]);
    REFUSED(cai_ipc_import(&ipc_b, &d[PLACES], &x[1], &err), CAI_ERR_CAPACITY, "none of 3 mappings is free");
    cai_array_release(&x[PLACES]);
    GOOD(cai_ipc_import(&ipc_b, &d[PLACES], &x[1], &err));
    for (i = 0; i < PLACES; i++) cai_array_release(&x[i]);
    REFUSED(cai_ipc_import(&ipc_a, &d[0], &x[0], &err), CAI_ERR_ARGUMENT, "the process that exported it");
    ipc_a.cookie++; /* has no places at all */
    REFUSED(cai_ipc_import(&ipc_a, &d[0], &x[0], &err), CAI_ERR_CAPACITY, "none of 0 mappings is free");
    for (i = 0; i <= PLACES; i++) GOOD(cai_manager_free(&emm, more[i], 1, &err));
    close_ab();
}

/* ------------------------------------------------------------------ errors */

static void check_own_process(void)
{
    struct cai_ipc_v0 d;
    cai_ipc another;
    cai_array x;
    open_ab(0, 0);
    d = exported_bytes();
    cai_sim_log_clear(sim_a);
    REFUSED(cai_ipc_import(&ipc_a, &d, &x, &err), CAI_ERR_ARGUMENT, "the process that exported it cannot open it");
    CHECK_INT(cai_sim_calls(sim_a), 0); /* K15: CUDA is not asked */
    GOOD(cai_ipc_init(&another, &cuda_a, places, PLACES, 0, &err));
    CHECK_INT(cai_ipc_import(&another, &d, &x, &err), CAI_ERR_ARGUMENT); /* here it is */
    CHECK_INT(err.native, 201);
    CHECK_STR(err.message, "descriptor: the process that exported it cannot open it");
    CHECK_INT(another.used, 0);
    GOOD(cai_ipc_destroy(&another, &err));
    GOOD(cai_ipc_init(&another, &cuda_a, places, PLACES, ipc_a.cookie, &err));
    REFUSED(cai_ipc_import(&another, &d, &x, &err), CAI_ERR_ARGUMENT, "the process that exported it cannot");
    d.process++; /* the same cookie after a fork */
    CHECK_INT(cai_ipc_import(&another, &d, &x, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(err.native, 201);
    GOOD(cai_ipc_destroy(&another, &err));
    GOOD(cai_ipc_init(&ipc_b, &cuda_b, places, PLACES, 77, &err));
    CHECK_UINT(ipc_b.cookie, 77);
    close_ab();
}

/* Each of these leaves *d as it was. */
static void refuse_arguments(struct cai_ipc_v0 *d, cai_array x)
{
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_ipc_export(NULL, &emm, memory, &x, d, &err), CAI_ERR_ARGUMENT, "ipc is NULL");
    REFUSED(cai_ipc_export(&ipc_a, NULL, memory, &x, d, &err), CAI_ERR_ARGUMENT, "manager is NULL");
    REFUSED(cai_ipc_export(&ipc_a, &emm, 0, &x, d, &err), CAI_ERR_ARGUMENT, "0");
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory + (UINT64_C(1) << 40), &x, d, &err), CAI_ERR_STALE, "");
}

static void refuse_arrays(struct cai_ipc_v0 *d)
{
    const int64_t n = 4;
    cai_array x = array_at(CAI_INT32, 0, 1, &n, NULL), mask;
    x.sync = CAI_SYNC_UNKNOWN;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_EXPORT, "sync = 0");
    x.sync = CAI_SYNC_NONE;
    mask = x;
    x.mask = &mask;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_EXPORT, "mask");
    x.mask = NULL;
    x.field_count = 1;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_EXPORT, "fields");
    x.field_count = 0;
    x.abi++;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_ABI, "");
    x.abi--;
    x.dtype.itemsize = -4;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_TYPESTR, "no dtype");
}

static void refuse_extents(struct cai_ipc_v0 *d, cai_array x)
{
    const int64_t n = 4, back = -4;
    const struct cai_ipc_v0 before = *d;
    x.data = address - 1;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_MEMORY, "describe no memory");
    x.data = address + OBJECT - 15;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_MEMORY, "not inside size 4096");
    x.data = address + OBJECT + 1;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_MEMORY, "describe no memory");
    x = array_at(CAI_INT32, 8, 1, &n, &back);
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err), CAI_ERR_MEMORY, "[-12, 4)");
    x = array_at(CAI_INT32, 12, 1, &n, &back);
    GOOD(cai_ipc_export(&ipc_a, &emm, memory, &x, d, &err));
    *d = before;
}

static void refuse_kinds_of_memory(struct cai_ipc_v0 *d)
{
    cai_memory_handle host;
    GOOD(cai_manager_pinned_alloc(&host, &emm, 64, 0, &err));
    REFUSED(cai_ipc_export(&ipc_a, &emm, host, NULL, d, &err), CAI_ERR_MEMORY, "kind 2 is no device memory");
    GOOD(cai_manager_free(&emm, host, 1, &err));
    GOOD(cai_manager_managed_alloc(&host, &emm, 64, 0, &err));
    REFUSED(cai_ipc_export(&ipc_a, &emm, host, NULL, d, &err), CAI_ERR_MEMORY, "kind 3 is no device memory");
    GOOD(cai_manager_free(&emm, host, 1, &err));
}

static void refuse_without_functions(struct cai_ipc_v0 *d)
{
    cai_memory_handle host;
    cai_manager poor;
    cai_emm_hooks hooks;
    cai_sim_log_clear(sim_a);
    cuda_a.device_uuid = NULL;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, NULL, d, &err), CAI_ERR_UNAVAILABLE, "device_uuid");
    cuda_a = *cai_sim_cuda(sim_a);
    cuda_a.ipc_export = NULL;
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda_a, &err));
    GOOD(cai_manager_init(&poor, &pool, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&host, &poor, 64, 0, 1, &err));
    REFUSED(cai_ipc_export(&ipc_a, &poor, host, NULL, d, &err), CAI_ERR_UNAVAILABLE, "ipc_handle");
    GOOD(cai_manager_free(&poor, host, 1, &err));
    GOOD(cai_manager_destroy(&poor, &err));
}

static void check_export_refusals(void)
{
    const int64_t n = 4;
    struct cai_ipc_v0 d, clean;
    cai_array x;
    open_ab(0, 0);
    memset(&d, 0x33, sizeof d);
    clean = d;
    x = array_at(CAI_INT32, 0, 1, &n, NULL);
    refuse_arguments(&d, x);
    refuse_arrays(&d);
    refuse_extents(&d, x);
    refuse_kinds_of_memory(&d);
    refuse_without_functions(&d);
    CHECK_BYTES(&d, &clean, sizeof d);
    close_ab();
    open_ab(0, 1); /* K16 */
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, NULL, &d, &err), CAI_ERR_MEMORY, "of a pool");
    CHECK_INT(cai_sim_calls(sim_a), 0);
    CHECK_BYTES(&d, &clean, sizeof d);
    close_ab();
}

#define WRONG(change, status, words)                                                                         \
    do {                                                                                                     \
        d = right;                                                                                           \
        change;                                                                                              \
        REFUSED(cai_ipc_import(&ipc_b, &d, &x, &err), status, words);                                        \
        CHECK_INT(cai_ipc_import(&ipc_b, &d, &x, NULL), status);                                             \
    } while (0)

static void check_import_refusals(void)
{
    const int64_t shape[2] = {4, 4};
    struct cai_ipc_v0 right, d;
    cai_array x, clean;
    cai_memory_handle gone;
    open_ab(0, 0);
    x = array_at(CAI_INT32, 64, 2, shape, NULL);
    right = exported(&x);
    memset(&x, 0x33, sizeof x);
    clean = x;
    d = right;
    REFUSED(cai_ipc_import(&ipc_b, &d, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_ipc_import(NULL, &d, &x, &err), CAI_ERR_ARGUMENT, "ipc is NULL");
    REFUSED(cai_ipc_import(&ipc_b, NULL, &x, &err), CAI_ERR_ARGUMENT, "in is NULL");
    WRONG(d.abi++, CAI_ERR_ABI, "abi = 0x43495032");
    WRONG(d.struct_size++, CAI_ERR_ABI, "size = 1201");
    WRONG(d.struct_size = 0, CAI_ERR_ABI, "size = 0");
    WRONG(d.flags = 2, CAI_ERR_ABI, "flags = 0x2");
    WRONG(d.ndim = -1, CAI_ERR_SHAPE, "ndim = -1 is not");
    WRONG(d.ndim = 65, CAI_ERR_SHAPE, "ndim = 65 is not");
    WRONG(d.shape[1] = -1, CAI_ERR_SHAPE, "-1");
    WRONG(d.shape[0] = INT64_MAX, CAI_ERR_SHAPE, "");
    WRONG(d.strides[0] = INT64_MAX / 4, CAI_ERR_MEMORY, "not inside size 4096");
    WRONG(d.strides[0] = INT64_MAX, CAI_ERR_STRIDES, "");
    WRONG(d.strides[0] = 1400, CAI_ERR_MEMORY, "not inside size 4096");
    WRONG(d.strides[0] = -32, CAI_ERR_MEMORY, "[-96, 16)");
    WRONG(d.offset = UINT64_MAX, CAI_ERR_MEMORY, "offset 18446744073709551615");
    WRONG(d.size = UINT64_MAX, CAI_ERR_MEMORY, "describe no memory");
    WRONG(d.data_offset = OBJECT + 1, CAI_ERR_MEMORY, "describe no memory");
    WRONG(d.data_offset = OBJECT - 63, CAI_ERR_MEMORY, "not inside size 4096");
    WRONG(d.dtype.code = 5, CAI_ERR_TYPESTR, "0x5");
    WRONG(d.dtype.itemsize = 8, CAI_ERR_TYPESTR, "itemsize = 8");
    WRONG(d.dtype.itemsize = 0, CAI_ERR_TYPESTR, "itemsize = 0");
    WRONG(d.dtype.alignment = 0, CAI_ERR_TYPESTR, "no dtype");
    WRONG(d.dtype.unit = 3, CAI_ERR_TYPESTR, "no dtype");
    WRONG(d.backend = 1, CAI_ERR_UNAVAILABLE, "backend = 1, but the table is of backend 0");
    WRONG(d.backend = -1, CAI_ERR_UNAVAILABLE, "backend = -1, but");
    WRONG(d.packed_axis = 0, CAI_ERR_ABI, "packed_axis = 0 does not fit");
    WRONG(d.packed_axis = -2, CAI_ERR_ABI, "packed_axis = -2 does not fit");
    WRONG(d.packed_extent = 4, CAI_ERR_ABI, "packed_extent = 4, and packed_axis is -1");
    WRONG(d.device_uuid[3]++, CAI_ERR_UNAVAILABLE, "UUID 6361696");
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 0);
    WRONG(d.size++, CAI_ERR_MEMORY, "not inside the 4096 bytes opened");
    WRONG(d.offset++, CAI_ERR_MEMORY, "not inside the 4096 bytes opened");
    WRONG(d.offset = UINT64_C(1) << 61, CAI_ERR_MEMORY, "not inside the 4096 bytes opened");
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 6);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close"), 6);
    WRONG(memset(d.handle, 1, sizeof d.handle), CAI_ERR_CUDA, "ipc_open: CUDA error 1");
    GOOD(cai_manager_alloc(&gone, &emm, 64, 0, 1, &err));
    GOOD(cai_ipc_export(&ipc_a, &emm, gone, NULL, &right, &err));
    GOOD(cai_manager_free(&emm, gone, 1, &err));
    GOOD(cai_manager_flush(&emm, &err));
    WRONG((void)0, CAI_ERR_CUDA, "ipc_open: CUDA error 1"); /* the exporter freed it */
    CHECK_BYTES(&x, &clean, sizeof x);
    CHECK_INT(ipc_b.failed, 0);
    CHECK_INT(ipc_b.used, 0);
    close_ab();
}

/* Both processes have HIP, or one alone. Arrays say it, also a copy and one without elements. */
static void check_backend(void)
{
    static const int64_t shape[1] = {8}, none[1] = {0};
    struct cai_ipc_v0 d, empty;
    cai_event_pool pool_b;
    cai_emm_hooks hooks;
    cai_manager emm_b;
    cai_array x, y;
    uint64_t s;
    open_ab(0, 0);
    cuda_a.flags |= (uint32_t)CAI_CUDA_HIP;
    x = array_at(CAI_INT32, 0, 1, shape, NULL);
    GOOD(cai_ipc_export(&ipc_a, &emm, memory, &x, &d, &err));
    CHECK_INT(d.backend, CAI_BACKEND_HIP);
    x.backend = CAI_BACKEND_HIP;
    GOOD(cai_ipc_export(&ipc_a, &emm, memory, &x, &d, &err));
    y = array_at(CAI_INT32, 0, 1, none, NULL);
    GOOD(cai_ipc_export(&ipc_a, &emm, memory, &y, &empty, &err));
    REFUSED(cai_ipc_import(&ipc_b, &d, &y, &err), CAI_ERR_UNAVAILABLE, "descriptor: backend = 1, but the table");
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 0);
    cuda_b.flags |= (uint32_t)CAI_CUDA_HIP;
    GOOD(cai_ipc_import(&ipc_b, &d, &y, &err));
    CHECK_INT(y.backend, CAI_BACKEND_HIP);
    cai_array_release(&y);
    CHECK_INT(cai_sim_set_context(sim_b, cai_sim_primary(sim_b, 0)), 0);
    s = cai_sim_stream_create(sim_b, 1);
    GOOD(cai_event_pool_init(&pool_b, &cuda_b, NULL, 0, 0, &err));
    GOOD(cai_emm_hooks_cuda(&hooks, &cuda_b, &err));
    GOOD(cai_manager_init(&emm_b, &pool_b, &hooks, NULL, &err));
    GOOD(cai_ipc_import_copy(&ipc_b, &d, &emm_b, s, &y, &err));
    CHECK_INT(y.backend, CAI_BACKEND_HIP);
    cai_array_release(&y);
    GOOD(cai_ipc_import_copy(&ipc_b, &empty, &emm_b, s, &y, &err));
    CHECK_INT(y.backend, CAI_BACKEND_HIP);
    GOOD(cai_manager_destroy(&emm_b, &err));
    GOOD(cai_event_pool_destroy(&pool_b, &err));
    CHECK_INT(cai_sim_stream_destroy(sim_b, s), 0);
    cuda_a.flags &= ~(uint32_t)CAI_CUDA_HIP;
    REFUSED(cai_ipc_export(&ipc_a, &emm, memory, &x, &d, &err), CAI_ERR_EXPORT,
            "backend = 1, but the table is of backend 0");
    close_ab();
}

/* cai_error.rule. The status is the same without an error. */
static void check_rules(void)
{
    enum { NDIM, EXTENT, NO_PART, INSIDE, OPENED, UUID, LAYOUT, COUNT };
    static const struct {
        cai_status status;
        int32_t rule;
    } rows[COUNT] = {{CAI_ERR_SHAPE, 29}, {CAI_ERR_SHAPE, 17}, {CAI_ERR_MEMORY, 116}, {CAI_ERR_MEMORY, 116},
                     {CAI_ERR_MEMORY, 116}, {CAI_ERR_UNAVAILABLE, 0}, {CAI_ERR_ABI, 0}};
    const int64_t shape[2] = {4, 4};
    struct cai_ipc_v0 right, d;
    cai_memory_handle host;
    cai_array x;
    int32_t i;
    open_ab(0, 0);
    x = array_at(CAI_INT32, 64, 2, shape, NULL);
    right = exported(&x);
    for (i = 0; i < COUNT; i++) {
        d = right;
        d.ndim = i == NDIM ? 65 : 2;
        if (i == EXTENT) d.shape[1] = -1;
        if (i == NO_PART) d.size = UINT64_MAX;
        if (i == INSIDE) d.strides[0] = 1400;
        if (i == OPENED) d.size++;
        if (i == UUID) d.device_uuid[3]++;
        if (i == LAYOUT) d.abi++;
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(cai_ipc_import(&ipc_b, &d, &x, &err), rows[i].status);
        CHECK_INT(err.code, rows[i].status);
        CHECK_INT(err.rule, rows[i].rule);
        CHECK_INT(cai_ipc_import(&ipc_b, &d, &x, NULL), rows[i].status);
    }
    GOOD(cai_manager_pinned_alloc(&host, &emm, 64, 0, &err));
    CHECK_INT(cai_ipc_export(&ipc_a, &emm, host, NULL, &d, &err), CAI_ERR_MEMORY);
    CHECK_INT(err.rule, 116);
    GOOD(cai_manager_free(&emm, host, 1, &err));
    close_ab();
    open_ab(0, 1);
    CHECK_INT(cai_ipc_export(&ipc_a, &emm, memory, NULL, &d, &err), CAI_ERR_MEMORY);
    CHECK_INT(err.rule, 116);
    close_ab();
}

static void check_poor_tables(void)
{
    struct cai_ipc_v0 d;
    cai_array x;
    open_ab(0, 0);
    d = exported_bytes();
#define WITHOUT(slot)                                                                                        \
    cuda_b = *cai_sim_cuda(sim_b);                                                                           \
    cuda_b.slot = NULL;                                                                                      \
    REFUSED(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_UNAVAILABLE, "lacks")
    WITHOUT(device_uuid);
    WITHOUT(device_context);
    WITHOUT(context_current);
    WITHOUT(context_push);
    WITHOUT(context_pop);
    WITHOUT(ipc_open);
    WITHOUT(ipc_close);
#undef WITHOUT
    CHECK_INT(cai_sim_calls(sim_b), 0);
    cuda_b = *cai_sim_cuda(sim_b);
    cuda_b.pointer_range = NULL;
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    CHECK_UINT(x.data, address);
    cai_array_release(&x);
    CHECK_INT(cai_sim_calls_of(sim_b, "primary_release"), 1);
    cuda_b.primary_release = NULL; /* then the context is the caller's to keep */
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    cai_array_release(&x);
    cuda_b.primary_retain = NULL;
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    cai_array_release(&x);
    CHECK_INT(cai_sim_calls_of(sim_b, "primary_retain"), 1);
    CHECK_INT(ipc_b.failed, 0);
    cuda_b = *cai_sim_cuda(sim_b);
    REFUSED(cai_ipc_init(NULL, &cuda_b, places, 1, 0, &err), CAI_ERR_ARGUMENT, "ipc is NULL");
    REFUSED(cai_ipc_init(&ipc_b, NULL, places, 1, 0, &err), CAI_ERR_ARGUMENT, "cuda is NULL");
    REFUSED(cai_ipc_init(&ipc_b, &cuda_b, places, -1, 0, &err), CAI_ERR_ARGUMENT, "capacity");
    REFUSED(cai_ipc_init(&ipc_b, &cuda_b, NULL, 1, 0, &err), CAI_ERR_ARGUMENT, "mappings");
    cuda_b.struct_size = (uint32_t)offsetof(cai_cuda, context_current) - 1;
    REFUSED(cai_ipc_init(&ipc_b, &cuda_b, places, 1, 0, &err), CAI_ERR_ABI, "bytes");
    cuda_b.struct_size = (uint32_t)offsetof(cai_cuda, ipc_close) + 1; /* half a slot is none */
    CHECK_INT(cai_ipc_init(&ipc_b, &cuda_b, places, 1, 0, &err), CAI_OK);
    CHECK(ipc_b.cuda != &cuda_b && ipc_b.cuda->ipc_open == cuda_b.ipc_open && !ipc_b.cuda->ipc_close);
    cuda_b.struct_size = (uint32_t)sizeof cuda_b;
    cuda_b.version++;
    REFUSED(cai_ipc_init(&ipc_b, &cuda_b, places, 1, 0, &err), CAI_ERR_ABI, "version 2");
    cuda_b.version--;
    REFUSED(cai_ipc_destroy(NULL, &err), CAI_ERR_ARGUMENT, "ipc is NULL");
    close_ab();
    REFUSED(cai_ipc_destroy(&ipc_b, &err), CAI_ERR_ARGUMENT, "not made");
}

/* ------------------------------------------------------------------ every call fails once */

static const int32_t errors[] = {1, 2, 4, 100, 101, 201, 400, 700, 900, 999};

/* Did a query of a context's id fail? */
static int id_failed(void)
{
    const char *id = cai_sim_log(sim_b);
    while ((id = strstr(id, "context_id c")) != NULL && strncmp(id + 13, " ! ", 3) != 0) id++;
    return id != NULL;
}

/* Import and release with the n-th call of B answering `error`, or doing nothing (0). 0: there is no n-th. */
static int fault_once(const struct cai_ipc_v0 *d, int32_t n, int32_t error, int32_t *told)
{
    cai_array x, clean;
    const uint64_t before = cai_sim_current(sim_b);
    cai_status status;
    int struck, close_failed;
    memset(&x, 0x33, sizeof x);
    clean = x;
    cai_sim_log_clear(sim_b);
    memset(&err, 0, sizeof err);
    ipc_b.failed = ipc_b.first_failure = 0;
    CHECK_INT(error ? cai_sim_fail(sim_b, n, error) : cai_sim_omit(sim_b, n), 1);
    status = cai_ipc_import(&ipc_b, d, &x, &err);
    CHECK_INT(err.code, status);
    CHECK_INT(status ? strlen(err.message) > 10 : 1, 1);
    if (status) CHECK_BYTES(&x, &clean, sizeof x);
    else cai_array_release(&x);
    struck = !cai_sim_faults(sim_b);
    cai_sim_faults_clear(sim_b);
    CHECK_INT(ipc_b.used, 0);
    CHECK_INT(ipc_b.guard, 0);
    if (error) CHECK_UINT(cai_sim_current(sim_b), before);
    else CHECK_INT(cai_sim_set_context(sim_b, before), 0);
    /* told, or in the count of failures, or an error that means nothing there (4: the process ends), or the close
     * did without the answer (the id of the context) */
    *told += status != CAI_OK || ipc_b.failed;
    close_failed = cai_sim_calls_of(sim_b, "ipc_open") > 0 && (ipc_b.failed || error == 4 || !error);
    if (error && struck) CHECK(status || ipc_b.failed || error == 4 || id_failed());
    if (!close_failed && error) CHECK_INT(cai_sim_leaks(sim_b, NULL, 0), 0);
    return struck;
}

static void check_faults(int32_t device)
{
    struct cai_ipc_v0 d, got, clean;
    int32_t n, i, told = 0, runs = 0;
    for (i = -1; i < (int32_t)(sizeof errors / sizeof errors[0]); i++) {
        for (n = 1;; n++) {
            int struck;
            char note[60];
            sprintf(note, "call %d of an import, error %d", (int)n, i < 0 ? 0 : (int)errors[i]);
            cai_test_note(note);
            open_ab(device, 0);
            d = exported_bytes();
            struck = fault_once(&d, n, i < 0 ? 0 : errors[i], &told);
            cai_sim_destroy(sim_b); /* may have a mapping that could not be closed */
            sim_b = cai_sim_create(1);
            CHECK_INT(ipc_b.used, 0);
            close_ab();
            if (!struck) break;
            runs++;
        }
    }
    for (n = 1;; n++) {
        int struck;
        cai_status status;
        open_ab(device, 0);
        memset(&got, 0x33, sizeof got);
        clean = got;
        CHECK_INT(cai_sim_fail(sim_a, n, 999), 1);
        status = cai_ipc_export(&ipc_a, &emm, memory, NULL, &got, &err);
        struck = !cai_sim_faults(sim_a);
        cai_sim_faults_clear(sim_a);
        CHECK_INT(status, struck ? CAI_ERR_CUDA : CAI_OK);
        if (struck) CHECK_INT(err.native, 999);
        if (struck) CHECK_BYTES(&got, &clean, sizeof got);
        close_ab();
        if (!struck) break;
        runs++;
    }
    cai_test_note("");
    printf("faults: %d runs, %d told\n", (int)runs, (int)told);
    CHECK(runs > 80);
}

static void check_close_fails(void)
{
    struct cai_ipc_v0 d;
    cai_array x;
    open_ab(0, 0);
    d = exported_bytes();
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    CHECK_INT(cai_sim_fail_op(sim_b, "ipc_close", 1, 700), 1);
    cai_array_release(&x);
    CHECK_INT(ipc_b.failed, 1);
    CHECK_INT(ipc_b.first_failure, 700);
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err)); /* CUDA counts 2 now */
    cai_array_release(&x);
    CHECK_INT(cuda_b.context_push(cuda_b.self, cai_sim_primary(sim_b, 0)), 0);
    CHECK_INT(cuda_b.ipc_close(cuda_b.self, address), 0);
    CHECK_INT(cuda_b.context_pop(cuda_b.self), 0);
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    cai_sim_teardown(sim_b); /* R105 */
    cai_array_release(&x);
    CHECK_INT(ipc_b.failed, 1);
    CHECK_INT(ipc_b.used, 0);
    cai_sim_destroy(sim_b);
    sim_b = cai_sim_create(1);
    close_ab();
}

static int32_t sticky_push(void *self, uint64_t context) /* done, and reports an earlier error */
{
    const int32_t error = cai_sim_cuda(sim_b)->context_push(self, context);
    return error ? error : 719;
}

static void check_odd_answers(void)
{
    struct cai_ipc_v0 d;
    cai_array x, y;
    open_ab(0, 0);
    d = exported_bytes();
    cuda_b.context_push = sticky_push;
    REFUSED(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_CUDA, "context_push: CUDA error 719");
    CHECK_UINT(cai_sim_current(sim_b), 0);
    cuda_b = *cai_sim_cuda(sim_b);
    CHECK_INT(cai_sim_omit_op(sim_b, "ipc_open", 1), 1);
    REFUSED(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_MEMORY, "returned no address");
    CHECK_INT(cai_sim_fail_op(sim_b, "device_uuid", 1, 100), 1);
    REFUSED(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_UNAVAILABLE, "no device of this process");
    CHECK_INT(cai_sim_fail_op(sim_b, "device_uuid", 1, 700), 1);
    REFUSED(cai_ipc_import(&ipc_b, &d, &x, &err), CAI_ERR_CUDA, "device_uuid: CUDA error 700");
    GOOD(cai_ipc_import(&ipc_b, &d, &x, &err));
    d.device_uuid[15]++; /* the same handle, said to be of the other device: no mapping of that is open */
    CHECK(cai_sim_primary_retain(sim_b, 1) != 0);
    REFUSED(cai_ipc_import(&ipc_b, &d, &y, &err), CAI_ERR_CUDA, "ipc_open: CUDA error 208");
    CHECK_INT(cai_sim_primary_release(sim_b, 1), 0);
    cai_array_release(&x);
    CHECK_INT(ipc_b.failed, 0);
    close_ab();
}

/* What another thread does meanwhile: an import of the same while it is being opened, or closed. */
static struct cai_ipc_v0 meanwhile;
static cai_array its_array;
static int32_t its_turn;

static void another_thread(void)
{
    if (!its_turn) return;
    its_turn = 0;
    GOOD(cai_ipc_import(&ipc_b, &meanwhile, &its_array, &err));
}

static int32_t open_meanwhile(void *self, const void *handle, uint64_t *pointer)
{
    another_thread();
    return cai_sim_cuda(sim_b)->ipc_open(self, handle, pointer);
}

static int32_t close_meanwhile(void *self, uint64_t pointer)
{
    another_thread();
    return cai_sim_cuda(sim_b)->ipc_close(self, pointer);
}

static void check_meanwhile(void)
{
    cai_array x;
    open_ab(0, 0);
    cuda_b.ipc_open = open_meanwhile;
    cuda_b.ipc_close = close_meanwhile;
    meanwhile = exported_bytes();
    its_turn = 1;
    GOOD(cai_ipc_import(&ipc_b, &meanwhile, &x, &err));
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 2);
    CHECK_INT(ipc_b.used, 2);
    cai_array_release(&its_array);
    CHECK(cai_sim_bytes(sim_b, x.data) != NULL); /* CUDA counted */
    its_turn = 1;
    cai_array_release(&x);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_open"), 3);
    CHECK_INT(cai_sim_calls_of(sim_b, "ipc_close"), 2);
    CHECK(cai_sim_bytes(sim_b, its_array.data) != NULL);
    cai_array_release(&its_array);
    CHECK_INT(ipc_b.failed, 0);
    close_ab();
}

/* ------------------------------------------------------------------ fuzz */

static struct cai_ipc_v0 original;
static uint32_t seed = 1;

static uint32_t draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* As CUDA does, which the simulation does not: a handle that was altered is none. */
static int32_t careful_open(void *self, const void *handle, uint64_t *pointer)
{
    if (memcmp(handle, original.handle, sizeof original.handle) != 0) return 1;
    return cai_sim_cuda(sim_b)->ipc_open(self, handle, pointer);
}

static int fuzz_once(const struct cai_ipc_v0 *d)
{
    cai_array x;
    if (cai_ipc_import(&ipc_b, d, &x, &err)) {
        CHECK(err.code > CAI_OK && err.code < CAI_STATUS_COUNT);
        CHECK(memchr(err.message, 0, sizeof err.message) != NULL);
        return 0;
    }
    CHECK(!cai_array_check(&x, NULL));
    if (x.size) {
        CHECK(x.data + (uint64_t)x.lo >= address);
        CHECK(x.data + (uint64_t)x.hi <= address + OBJECT);
        CHECK(x.lo <= 0 && x.hi >= 0);
    }
    CHECK_INT(x.release != NULL, x.size != 0);
    cai_array_release(&x);
    return 1;
}

/* Two new simulations and a descriptor of an array. One that opened thousands of memories looks through all. */
static struct cai_ipc_v0 fuzz_afresh(void)
{
    const int64_t shape[3] = {4, 2, 8}, strides[3] = {-128, 512, 8};
    cai_array x;
    open_ab(1, 0);
    cuda_b.ipc_open = careful_open;
    x = array_at(CAI_COMPLEX64, 1024, 3, shape, strides);
    return exported(&x);
}

static void check_fuzz(void)
{
    static const uint64_t odd[] = {0, 1, 2, 4, 8, 63, 64, 65, 255, 4095, 4096, 4097, UINT64_C(1) << 31,
                                   UINT64_C(1) << 32, UINT64_C(1) << 61, UINT64_C(1) << 62, UINT64_C(1) << 63,
                                   UINT64_MAX, UINT64_MAX - 7, UINT64_MAX >> 1, 0 - (UINT64_C(1) << 61)};
    struct cai_ipc_v0 d;
    unsigned char *bytes = (unsigned char *)&d;
    size_t i;
    int32_t k, bit, good_ones = 0, runs = 0;
    original = fuzz_afresh();
    for (i = 0; i < sizeof d; i++) {
        for (bit = 0; bit < 9; bit++, runs++) {
            d = original;
            bytes[i] = (unsigned char)(bytes[i] ^ (bit < 8 ? 1 << bit : 0xff));
            good_ones += fuzz_once(&d);
        }
        if (i % 64 == 0) cai_sim_log_clear(sim_b);
    }
    for (k = 0; k < 100000; k++, runs++) {
        int32_t changes = 1 + (int32_t)(draw() % 4);
        if (k % 2000 == 0) {
            CHECK_INT(ipc_b.failed, 0);
            close_ab();
            original = fuzz_afresh();
        }
        d = original;
        while (changes--) {
            const uint64_t value = odd[draw() % (sizeof odd / sizeof *odd)] + (draw() % 8 ? 0 : draw() % 999);
            const size_t word = draw() % 2 ? draw() % 22 : 22 + draw() % 4 + 64 * (draw() % 2);
            if (word >= 2 && word < 12) continue; /* handle, UUID */
            if (draw() % 3) memcpy(bytes + 8 * word, &value, 8);
            else memcpy(bytes + 8 * word + 4 * (draw() % 2), &value, 4);
        }
        good_ones += fuzz_once(&d);
        if (k % 64 == 0) cai_sim_log_clear(sim_b);
    }
    for (k = 0; k < 20000; k++, runs++) {
        for (i = 0; i < sizeof d; i++) bytes[i] = (unsigned char)draw();
        if (k % 2) memcpy(bytes, &original, 8 + 8 * (size_t)(draw() % 22));
        good_ones += fuzz_once(&d);
    }
    printf("fuzz: %d descriptors, %d of them good\n", (int)runs, (int)good_ones);
    CHECK(good_ones > 1000);
    CHECK_INT(ipc_b.failed, 0);
    close_ab();
}

#if !defined(_WIN32)
/* ------------------------------------------------------------------ two processes */

/* "Device memory" is a file that both map; its handle is its name, in the working folder, because a handle has 64
 * bytes. The rest of CUDA is the simulation. */
static char file_name[64] = "cai_test_ipc_XXXXXX";
enum { FILE_BYTES = 1 << 16 };
static struct {
    void *at;
    int32_t opened, closed;
} mapped;

static int file_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    const int fd = mkstemp(file_name);
    (void)ctx;
    (void)stream;
    if (fd < 0 || size > FILE_BYTES / 2 || ftruncate(fd, FILE_BYTES)) return 2;
    mapped.at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (mapped.at == MAP_FAILED) return 2;
    *ptr = (char *)mapped.at + 4096; /* a pool: the object is not at the beginning */
    return 0;
}

static int file_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx;
    (void)size;
    (void)stream;
    (void)unlink(file_name);
    return ptr == (char *)mapped.at + 4096 ? munmap(mapped.at, FILE_BYTES) : 1;
}

static int file_ipc_handle(void *ctx, void *ptr, void *handle, void **base)
{
    (void)ctx;
    (void)ptr;
    memcpy(handle, file_name, sizeof file_name);
    *base = mapped.at;
    return 0;
}

static int32_t file_open(void *self, const void *handle, uint64_t *pointer)
{
    char name[64];
    int fd;
    (void)self;
    memcpy(name, handle, sizeof name);
    if (!memchr(name, 0, sizeof name)) return 1;
    fd = open(name, O_RDWR);
    if (fd < 0) return 1;
    mapped.at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (mapped.at == MAP_FAILED) return 2;
    mapped.opened++;
    *pointer = (uint64_t)(uintptr_t)mapped.at;
    return 0;
}

static int32_t file_close(void *self, uint64_t pointer)
{
    (void)self;
    mapped.closed++;
    return munmap((void *)(uintptr_t)pointer, FILE_BYTES) ? 1 : 0;
}

static int32_t file_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    (void)self;
    *base = (uint64_t)(uintptr_t)mapped.at;
    *size = FILE_BYTES;
    return pointer >= *base && pointer - *base < FILE_BYTES ? 0 : 500;
}

/* The importer: two arrays of (5, 7) doubles with a step, and its answer is the exit status. */
static int import_and_double(int from)
{
    struct cai_ipc_v0 d[3];
    cai_array x, again, fixed;
    cai_kernel_view v;
    int64_t n;
    cai_test_checks = cai_test_failures = 0;
    sim_b = cai_sim_create(1);
    cuda_b = *cai_sim_cuda(sim_b);
    CHECK(cai_sim_primary_retain(sim_b, 0)); /* it uses CUDA, too */
    cuda_b.ipc_open = file_open;
    cuda_b.ipc_close = file_close;
    cuda_b.pointer_range = file_range;
    GOOD(cai_ipc_init(&ipc_b, &cuda_b, places, PLACES, 0, &err));
    if (read(from, d, sizeof d) != (ssize_t)sizeof d) return 2;
    GOOD(cai_ipc_import(&ipc_b, &d[0], &x, &err));
    GOOD(cai_ipc_import(&ipc_b, &d[1], &again, &err));
    GOOD(cai_ipc_import(&ipc_b, &d[2], &fixed, &err));
    CHECK_INT(mapped.opened, 1);
    GOOD(cai_expect(&x, "x", CAI_FLOAT64, 2, CAI_WRITABLE | CAI_NO_SELF_OVERLAP | CAI_ON_DEVICE, &err));
    GOOD(cai_kernel_view_of(&x, &v, &err));
    for (n = 0; n < x.size; n++) {
        double *at = (double *)cai_kernel_element(&v, n);
        CHECK(*at == (double)n);
        *at *= 2;
    }
    CHECK(!(fixed.flags & CAI_WRITABLE));
    GOOD(cai_kernel_view_of(&fixed, &v, &err));
    CHECK(*(double *)cai_kernel_element(&v, 3) == 6);
    CHECK_INT(again.nbytes, 8192);
    CHECK(memcmp((char *)(uintptr_t)again.data, "begins", 6) == 0);
    memcpy((char *)(uintptr_t)again.data, "answer", 6);
    d[0].offset += FILE_BYTES;
    REFUSED(cai_ipc_import(&ipc_b, &d[0], &x, &err), CAI_ERR_MEMORY, "not inside the 65536 bytes");
    cai_array_release(&x);
    cai_array_release(&again);
    CHECK_INT(mapped.closed, 0);
    cai_array_release(&fixed);
    CHECK_INT(mapped.closed, 1);
    GOOD(cai_ipc_destroy(&ipc_b, &err));
    cai_sim_destroy(sim_b);
    return cai_test_failures != 0;
}

static void check_processes(void)
{
    const int64_t shape[2] = {5, 7}, strides[2] = {-256, 16};
    struct cai_ipc_v0 d[3];
    cai_emm_hooks hooks;
    cai_kernel_view v;
    cai_array x;
    int64_t n;
    int pipes[2], answer = -1;
    pid_t child;
    fflush(stdout);
    if (pipe(pipes)) exit(2);
    child = fork();
    if (child < 0) exit(2);
    if (!child) {
        (void)close(pipes[1]);
        exit(import_and_double(pipes[0]));
    }
    (void)close(pipes[0]);
    sim_a = cai_sim_create(1);
    cuda_a = *cai_sim_cuda(sim_a);
    CHECK_INT(cai_sim_set_context(sim_a, cai_sim_primary(sim_a, 0)), 0);
    memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.kind = CAI_MEMORY_DEVICE;
    hooks.device_alloc = file_alloc;
    hooks.device_free = file_free;
    hooks.ipc_handle = file_ipc_handle;
    GOOD(cai_event_pool_init(&pool, &cuda_a, NULL, 0, 0, &err));
    GOOD(cai_manager_init(&emm, &pool, &hooks, NULL, &err));
    GOOD(cai_manager_alloc(&memory, &emm, 8192, 0, 1, &err));
    GOOD(cai_ipc_init(&ipc_a, &cuda_a, NULL, 0, 0, &err));
    address = (uint64_t)(uintptr_t)cai_manager_pointer(&emm, memory);
    memcpy((char *)(uintptr_t)address, "begins", 6);
    x = array_at(CAI_FLOAT64, 2048, 2, shape, strides);
    GOOD(cai_kernel_view_of(&x, &v, &err));
    for (n = 0; n < x.size; n++) *(double *)cai_kernel_element(&v, n) = (double)n;
    d[0] = exported(&x);
    CHECK_UINT(d[0].offset, 4096);
    d[1] = exported_bytes();
    x.flags &= ~(uint32_t)CAI_WRITABLE;
    d[2] = exported(&x);
    CHECK_INT(write(pipes[1], d, sizeof d), sizeof d);
    CHECK_INT(waitpid(child, &answer, 0), child);
    CHECK_INT(answer, 0);
    for (n = 0; n < x.size; n++) CHECK(*(double *)cai_kernel_element(&v, n) == (double)(2 * n));
    CHECK(memcmp((char *)(uintptr_t)address, "answer", 6) == 0);
    (void)close(pipes[1]);
    GOOD(cai_manager_free(&emm, memory, 1, &err));
    GOOD(cai_manager_destroy(&emm, &err));
    GOOD(cai_event_pool_destroy(&pool, &err));
    GOOD(cai_ipc_destroy(&ipc_a, &err));
    cai_sim_destroy(sim_a);
}

/* ------------------------------------------------------------------ threads */

/* CUDA that counts, for many threads: "memory" k is at 1 MiB * (k + 1). */
enum { THREADS = 6, MEMORIES = 4, ROUNDS = 4000 };
static int32_t open_count[MEMORIES]; /* atomic */
static int32_t opens, wrong_closes;  /* atomic */

static int32_t own_current(void *self, uint64_t *context) { (void)self; *context = 5; return 0; }
static int32_t own_push(void *self, uint64_t context) { (void)self; (void)context; return 1; }
static int32_t own_pop(void *self) { (void)self; return 1; }

static int32_t own_context(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    (void)device;
    *context = 5;
    return 0;
}

static int32_t own_uuid(void *self, int32_t device, void *uuid)
{
    (void)self;
    memset(uuid, device + 1, 16);
    return device < 2 ? 0 : 101;
}

static int32_t own_open(void *self, const void *handle, uint64_t *pointer)
{
    const int32_t k = *(const unsigned char *)handle;
    (void)self;
    __atomic_add_fetch(&open_count[k], 1, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&opens, 1, __ATOMIC_SEQ_CST) % 7 == 0) (void)sched_yield();
    *pointer = (uint64_t)(k + 1) << 20;
    return 0;
}

static int32_t own_close(void *self, uint64_t pointer)
{
    (void)self;
    if (__atomic_sub_fetch(&open_count[(pointer >> 20) - 1], 1, __ATOMIC_SEQ_CST) < 0)
        __atomic_add_fetch(&wrong_closes, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void *thread_work(void *argument)
{
    uint32_t *state = (uint32_t *)argument;
    struct cai_ipc_v0 d = original;
    cai_array x[3];
    cai_status status[3];
    int32_t i, k, n = 0;
    for (i = 0; i < ROUNDS; i++) {
        for (k = 0; k < 3; k++) {
            *state = *state * 1664525u + 1013904223u;
            memset(d.handle, (int)(*state >> 16 & 3), sizeof d.handle);
            status[k] = cai_ipc_import(&ipc_b, &d, &x[k], NULL);
            if (!status[k]) {
                n += x[k].data != (uint64_t)(d.handle[0] + 1) << 20;
                /* as long as the array lives, its memory is open */
                n += __atomic_load_n(&open_count[d.handle[0]], __ATOMIC_SEQ_CST) < 1;
            } else n += status[k] != CAI_ERR_CAPACITY;
        }
        for (k = 0; k < 3; k++) if (!status[k]) cai_array_release(&x[k]);
    }
    *state = (uint32_t)n;
    return NULL;
}

static void check_threads(void)
{
    static cai_ipc_mapping more[THREADS * 3];
    pthread_t threads[THREADS];
    uint32_t states[THREADS];
    int32_t i;
    open_ab(0, 0);
    original = exported_bytes();
    memset(original.device_uuid, 2, 16);
    close_ab();
    memset(&cuda_b, 0, sizeof cuda_b);
    cuda_b.struct_size = (uint32_t)sizeof cuda_b;
    cuda_b.version = CAI_CUDA_VERSION;
    cuda_b.context_current = own_current;
    cuda_b.context_push = own_push;
    cuda_b.context_pop = own_pop;
    cuda_b.device_context = own_context;
    cuda_b.device_uuid = own_uuid;
    cuda_b.ipc_open = own_open;
    cuda_b.ipc_close = own_close;
    GOOD(cai_ipc_init(&ipc_b, &cuda_b, more, THREADS * 3, 0, &err));
    for (i = 0; i < THREADS; i++) states[i] = (uint32_t)i;
    for (i = 0; i < THREADS; i++) CHECK_INT(pthread_create(&threads[i], NULL, thread_work, &states[i]), 0);
    for (i = 0; i < THREADS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
    for (i = 0; i < THREADS; i++) CHECK_INT(states[i], 0);
    for (i = 0; i < MEMORIES; i++) CHECK_INT(open_count[i], 0);
    CHECK_INT(wrong_closes, 0);
    CHECK_INT(ipc_b.failed, 0);
    printf("threads: %d arrays, opened %d times\n", THREADS * ROUNDS * 3, (int)opens);
    GOOD(cai_ipc_destroy(&ipc_b, &err));
}
#endif

static void run(void)
{
    check_inactive_primary();
    check_context_of_another();
    check_current_first();
    check_context_gone();
    check_no_join_of_gone();
    check_primary_reset();
    check_handle_again();
    check_capture_mode();
    check_arrives(0);
    check_arrives(1);
    check_kinds();
    check_packed();
    check_bytes();
    check_one_mapping();
    check_capacity();
    check_own_process();
    check_export_refusals();
    check_import_refusals();
    check_backend();
    check_rules();
    check_poor_tables();
    check_faults(0);
    check_faults(1);
    check_close_fails();
    check_odd_answers();
    check_meanwhile();
    check_fuzz();
#if !defined(_WIN32)
    check_processes();
    check_threads();
#endif
}

CAI_TEST_MAIN(run)
