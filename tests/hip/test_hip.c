/* test_hip.c - each slot of ext/cai_hip.h over stand-ins of HIP's functions, and an exchange in every order
 * SPDX-License-Identifier: MIT */
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#else
#define CAI_HIP_IMPLEMENTATION
#endif
#include "cai_hip.h"
#include "cai_transfer.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "hip_stand_in.h"
#include "cai_test.h"
#include <pthread.h>

static const cai_cuda *hip;
static cai_error err;
static int32_t unknown_handles;

static void count_unknown(void *context, const cai_sim_undefined *what)
{
    (void)context;
    (void)what;
    ++unknown_handles;
}

static void open_sim(void)
{
    hip = cai_hip_table();
    hip_sim = cai_sim_create(2);
    if (!hip_sim) exit(2);
    hip_last = hipSuccess;
    hip_legacy = hip_refused = 0;
    hip_devices = 2;
    cai_sim_on_undefined(hip_sim, count_unknown, NULL);
    (void)cai_sim_primary_retain(hip_sim, 0); /* HIP's devices are always there */
    (void)cai_sim_primary_retain(hip_sim, 1);
}

static void close_sim(void)
{
    CHECK_INT(hip_legacy, 0); /* HIP never gets a stream that it crashes on */
    cai_sim_destroy(hip_sim);
}

static uint64_t stream_on(int32_t device)
{
    const uint64_t before = cai_sim_current(hip_sim);
    uint64_t stream;
    (void)cai_sim_set_context(hip_sim, cai_sim_primary(hip_sim, device));
    stream = cai_sim_stream_create(hip_sim, 1);
    (void)cai_sim_set_context(hip_sim, before);
    return stream;
}

static uint64_t memory_on(int32_t device, int32_t kind)
{
    const uint64_t before = cai_sim_current(hip_sim);
    uint64_t memory;
    (void)cai_sim_set_context(hip_sim, cai_sim_primary(hip_sim, device));
    memory = cai_sim_alloc(hip_sim, kind, 4096);
    (void)cai_sim_set_context(hip_sim, before);
    return memory;
}

static void *memory_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---------------------------------------------------------------- the table */
static void test_table(void)
{
    static cai_event_pool pool;
    open_sim();
    CHECK_UINT(hip->struct_size, sizeof(cai_cuda));
    CHECK_INT(hip->version, CAI_CUDA_VERSION);
    CHECK_UINT(hip->flags, CAI_CUDA_HIP);
    CHECK_INT(cai_event_pool_init(&pool, hip, NULL, 0, 0, &err), CAI_OK); /* it has all that is needed */
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    CHECK(!hip->copy_3d_peer_async && !hip->context_id && !hip->context_record && !hip->capture_retain);
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 701
    CHECK(hip->stream_id != NULL);
#else
    CHECK(hip->stream_id == NULL);
#endif
    CHECK(cai_hip_table() == hip);
    close_sim();
}

/* The numbers that the headers compare with, and that HIP gives a name. */
static void test_numbers(void)
{
    static const int32_t both[][2] = {
        {hipErrorInvalidValue, 1}, {hipErrorOutOfMemory, 2}, {hipErrorNotInitialized, 3},
        {hipErrorDeinitialized, 4}, {hipErrorNoDevice, 100}, {hipErrorInvalidDevice, 101},
        {hipErrorInvalidContext, 201}, {hipErrorECCNotCorrectable, 214}, {hipErrorContextAlreadyInUse, 216},
        {hipErrorInvalidHandle, 400}, {hipErrorIllegalState, 401}, {hipErrorNotFound, 500},
        {hipErrorNotReady, 600}, {hipErrorIllegalAddress, 700}, {hipErrorLaunchTimeOut, 702},
        {hipErrorContextIsDestroyed, 709}, {hipErrorAssert, 710}, {hipErrorLaunchFailure, 719},
        {hipErrorNotSupported, 801}, {hipErrorStreamCaptureUnsupported, 900},
        {hipErrorStreamCaptureWrongThread, 908},
        {hipStreamCaptureStatusNone, CAI_CAPTURE_NONE}, {hipStreamCaptureStatusActive, CAI_CAPTURE_ACTIVE},
        {hipStreamCaptureStatusInvalidated, CAI_CAPTURE_INVALIDATED}, {hipStreamCaptureModeGlobal, 0},
        {hipStreamCaptureModeThreadLocal, 1}, {hipStreamCaptureModeRelaxed, 2}, {hipStreamNonBlocking, 1},
        {hipHostMallocPortable, 1}, {hipHostMallocMapped, 2}, {hipHostMallocWriteCombined, 4},
        {hipHostRegisterPortable, 1}, {hipHostRegisterMapped, 2}, {hipHostRegisterIoMemory, 4},
        {hipMemAttachGlobal, 1}, {hipMemAttachHost, 2}, {hipMemPoolReuseFollowEventDependencies, 1},
        {hipMemPoolReuseAllowOpportunistic, 2}, {hipMemPoolReuseAllowInternalDependencies, 3},
        {hipMemPoolAttrReleaseThreshold, 4}};
    size_t i;
    for (i = 0; i < sizeof both / sizeof both[0]; ++i) CHECK_INT(both[i][0], both[i][1]);
    CHECK_UINT((uintptr_t)hipStreamPerThread, CAI_STREAM_PER_THREAD);
    CHECK_UINT(CAI_HIP_STREAM(NULL), CAI_STREAM_LEGACY);
    CHECK_UINT(CAI_HIP_STREAM(hipStreamPerThread), CAI_STREAM_PER_THREAD);
    CHECK(cai_stream_to_hip(CAI_STREAM_LEGACY) == NULL);
    CHECK(cai_stream_to_hip(CAI_STREAM_PER_THREAD) == hipStreamPerThread);
    CHECK_UINT(CAI_HIP_STREAM(cai_stream_to_hip(4711)), 4711);
}

/* ----------------------------------------------------------------- contexts */
static void *pop_on_thread(void *result)
{
    *(int32_t *)result = hip->context_pop(hip->self);
    return NULL;
}

static void test_contexts(void)
{
    uint64_t context = 0;
    int32_t device = -1, on_thread = 0, i;
    pthread_t thread;
    open_sim();
    CHECK_INT(hip->context_current(hip->self, &context), 0); /* device 0 is current without a choice */
    CHECK_UINT(context, 1);
    CHECK_INT(hip->context_pop(hip->self), 201);
    CHECK_INT(hip->context_push(hip->self, 0), 201);
    CHECK_INT(hip->context_push(hip->self, UINT64_MAX), 201);
    CHECK_INT(hip->context_push(hip->self, 3), 101);
    CHECK_INT(hip->context_pop(hip->self), 201); /* what failed is not pushed */
    CHECK_INT(hip->context_push(hip->self, 2), 0);
    CHECK_INT(hip->context_device(hip->self, &device), 0);
    CHECK_INT(device, 1);
    CHECK_UINT(cai_sim_current(hip_sim), cai_sim_primary(hip_sim, 1));
    CHECK_INT(hip->context_push(hip->self, 1), 0);
    CHECK_INT(hipSetDevice(1), 0); /* by a callback of the program */
    CHECK_INT(pthread_create(&thread, NULL, pop_on_thread, &on_thread), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(on_thread, 201); /* each thread has its own stack */
    CHECK_INT(hip->context_pop(hip->self), 0);
    CHECK_INT(hip->context_current(hip->self, &context), 0);
    CHECK_UINT(context, 2);
    hip_devices = 0;
    CHECK_INT(hip->context_pop(hip->self), 101);
    hip_devices = 2;
    CHECK_INT(hip->context_pop(hip->self), 0); /* the pop that failed can be made again */
    CHECK_INT(hip->context_current(hip->self, &context), 0);
    CHECK_UINT(context, 1);
    for (i = 0; i < 32; ++i) CHECK_INT(hip->context_push(hip->self, 1 + (uint64_t)(i & 1)), 0);
    CHECK_INT(hip->context_push(hip->self, 1), 401);
    for (i = 0; i < 32; ++i) CHECK_INT(hip->context_pop(hip->self), 0);
    CHECK_INT(hip->context_pop(hip->self), 201);
    CHECK_INT(hip->device_context(hip->self, 1, &context), 0);
    CHECK_UINT(context, 2);
    CHECK_INT(hip->device_context(hip->self, 2, &context), 101);
    CHECK_UINT(context, 0);
    CHECK_INT(hip->device_context(hip->self, -1, &context), 101);
    CHECK_INT(hip->primary_retain(hip->self, 1, &context), 0);
    CHECK_UINT(context, 2);
    CHECK_INT(hip->primary_release(hip->self, 1), 0);
    CHECK_INT(hip->primary_release(hip->self, 2), 101);
    hip_devices = 0;
    CHECK_INT(hip->device_context(hip->self, 0, &context), 100);
    hip_devices = 2;
    close_sim();
}

/* ------------------------------------------------------------------ streams */
static void test_streams(void)
{
    uint64_t s, context = 0, graph = 0;
    uint32_t flags = 7;
    int32_t mode = 2;
    cai_cuda_capture capture;
    open_sim();
    s = stream_on(1);
    CHECK_INT(hip->stream_context(hip->self, s, &context), 0);
    CHECK_UINT(context, 2);
    CHECK_INT(hip->stream_context(hip->self, CAI_STREAM_LEGACY, &context), 0);
    CHECK_UINT(context, 1);
    CHECK_INT(hip->stream_context(hip->self, CAI_STREAM_PER_THREAD, &context), 0);
    CHECK_UINT(context, 1);
    CHECK_INT(hip->stream_flags(hip->self, s, &flags), 0);
    CHECK_UINT(flags, 1);
    CHECK_INT(hip->stream_flags(hip->self, CAI_STREAM_LEGACY, &flags), 0);
    CHECK_UINT(flags, 0);
    flags = 7;
    CHECK_INT(hip->stream_flags(hip->self, CAI_STREAM_PER_THREAD, &flags), 0);
    CHECK_UINT(flags, 0);
    CHECK_INT(hip->stream_capture(hip->self, s, &capture), 0);
    CHECK_INT(capture.status, CAI_CAPTURE_NONE);
    CHECK_UINT(capture.id, 0);
    CHECK_INT(cai_sim_capture_begin(hip_sim, s, 0), 0);
    CHECK_INT(hip->stream_capture(hip->self, s, &capture), 0);
    CHECK_INT(capture.status, CAI_CAPTURE_ACTIVE);
    CHECK(capture.id != 0); /* HIP's first one may be 0 */
    CHECK_INT(hip->capture_mode(hip->self, &mode), 0);
    CHECK_INT(mode, 0);
    CHECK_INT(hip->capture_mode(hip->self, &mode), 0);
    CHECK_INT(mode, 2);
    CHECK_INT(cai_sim_capture_end(hip_sim, s, &graph), 0);
    CHECK_INT(hip->stream_synchronize(hip->self, s), 0);
    CHECK(hip_got == cai_stream_to_hip(s));
    CHECK_INT(hip->stream_synchronize(hip->self, CAI_STREAM_LEGACY), 0);
    CHECK(hip_got == NULL);
    CHECK_INT(hip->stream_synchronize(hip->self, CAI_STREAM_PER_THREAD), 0);
    CHECK(hip_got == hipStreamPerThread);
    CHECK_INT(hip->context_synchronize(hip->self), 0);
    if (hip->stream_id) {
        uint64_t id = 0, other = 0;
        CHECK_INT(hip->stream_id(hip->self, s, &id), 0);
        CHECK_INT(hip->stream_id(hip->self, CAI_STREAM_LEGACY, &other), 0);
        CHECK(id && other && id != other);
    }
    unknown_handles = 0; /* 709 of HIP would release arrays whose work is pending */
    CHECK_INT(hip->stream_context(hip->self, 0x5550, &context), 400);
    CHECK_UINT(context, 0);
    CHECK_INT(hip->stream_synchronize(hip->self, 0x5550), 400);
    CHECK_INT(hip->event_destroy(hip->self, 0x5550), 400);
    CHECK(unknown_handles == 3);
    close_sim();
}

static void test_events(void)
{
    uint64_t s, e = 0;
    cai_sim_access access;
    open_sim();
    cai_sim_set_options(hip_sim, cai_sim_options(hip_sim) & ~(uint32_t)CAI_SIM_PROGRESS);
    (void)cai_sim_set_context(hip_sim, cai_sim_primary(hip_sim, 0));
    s = stream_on(0);
    access = cai_sim_writes(memory_on(0, CAI_SIM_MEM_DEVICE), 4096);
    CHECK_INT(hip->event_create(hip->self, &e), 0);
    CHECK(e != 0);
    CHECK_UINT(hip_event_flags, (uint32_t)hipEventDisableTiming | (uint32_t)hipEventReleaseToSystem);
    CHECK_INT(cai_sim_touch(hip_sim, s, "write", &access, 1), 0);
    CHECK_INT(hip->event_record(hip->self, e, s), 0);
    hip_last = hipErrorLaunchFailure; /* the program's own */
    CHECK_INT(hip->event_query(hip->self, e), 600);
    CHECK_INT(hipGetLastError(), HIP_VERSION_MAJOR < 7 ? hipSuccess : hipErrorLaunchFailure);
    CHECK_INT(hip->event_record(hip->self, e, s), 0);
    CHECK_INT(hip->stream_wait_event(hip->self, CAI_STREAM_LEGACY, e), 0);
    CHECK_INT(hip->event_synchronize(hip->self, e), 0);
    CHECK_INT(hip->event_query(hip->self, e), 0);
    CHECK_INT(hip->event_destroy(hip->self, e), 0);
    CHECK_INT(cai_sim_touch(hip_sim, s, "write", &access, 1), 0);
    CHECK_INT(hip->context_synchronize(hip->self), 0);
    CHECK_INT(cai_sim_pending(hip_sim), 0);
    CHECK_INT(hip->memory_free(hip->self, 77), 1);
    CHECK_INT(hipGetLastError(), hipSuccess); /* a call of the table that failed leaves nothing */
    close_sim();
}

/* ------------------------------------------------------------------- memory */
static void test_pointers(void)
{
    static const int32_t kinds[][3] = {{CAI_SIM_MEM_DEVICE, CAI_MEMORY_DEVICE, 0},
                                       {CAI_SIM_MEM_MANAGED, CAI_MEMORY_MANAGED, 0},
                                       {CAI_SIM_MEM_PINNED, CAI_MEMORY_PINNED, 0},
                                       {CAI_SIM_MEM_ARRAY, CAI_MEMORY_DEVICE, CAI_POINTER_ARRAY}};
    static int32_t plain[16];
    const int64_t extent = 16;
    cai_cuda_pointer info;
    cai_location place;
    cai_array x;
    uint64_t base = 0, size = 0;
    int32_t i, yes = 7;
    open_sim();
    for (i = 0; i < 4; ++i) {
        const uint64_t memory = memory_on(1, kinds[i][0]);
        cai_test_note(i ? i == 1 ? "managed" : i == 2 ? "pinned" : "array" : "device");
        memset(&info, 0x5a, sizeof info);
        CHECK_INT(hip->pointer_info(hip->self, memory, &info), 0);
        CHECK_INT(info.memory, kinds[i][1]);
        CHECK_INT(info.device, 1);
        CHECK_UINT(info.context, 2);
        CHECK_UINT(info.flags, (uint32_t)kinds[i][2]);
        CHECK_UINT(info.reserved, 0);
        if (i < 3) CHECK_UINT(info.device_pointer, memory);
    }
    cai_test_note("");
    CHECK_INT(hip->pointer_info(hip->self, (uint64_t)(uintptr_t)plain, &info), 0);
    CHECK_INT(info.memory, CAI_MEMORY_HOST);
    CHECK_INT(info.device, CAI_DEVICE_UNKNOWN);
    CHECK_UINT(info.context, 0);
    CHECK_INT(hipGetLastError(), hipSuccess);
    base = memory_on(1, CAI_SIM_MEM_DEVICE);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, &extent, NULL, memory_at(base + 256), &err), CAI_OK);
    CHECK_INT(cai_locate(&x, "x", hip, CAI_LOCATE_BOUNDS, &place, &err), CAI_OK);
    CHECK_UINT(place.base, base);
    CHECK_UINT(place.nbytes, 4096);
    CHECK_INT(place.device * 10 + place.bounds, 10 + CAI_BOUNDS_INSIDE);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, &extent, NULL, memory_at(base + 4092), &err), CAI_OK);
    CHECK_INT(cai_locate(&x, "x", hip, CAI_LOCATE_BOUNDS, NULL, &err), CAI_ERR_MEMORY);
    CHECK_INT(hip->pointer_range(hip->self, base + 8, &base, &size), 0);
    CHECK_UINT(size, 4096);
    CHECK_INT(hip->device_attribute(hip->self, 0, CAI_ATTRIBUTE_CONCURRENT_MANAGED, &yes), 0);
    CHECK(yes == 0 || yes == 1);
    CHECK_INT(hip->device_attribute(hip->self, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &yes), 0);
    CHECK_INT(hip->device_attribute(hip->self, 0, 75, &yes), 1);
    close_sim();
}

/* HIP does not tell where registered memory begins. So its bounds stay unknown, and any part of it is located. */
static void test_registered(void)
{
    static float block[1024];
    const uint64_t first = (uint64_t)(uintptr_t)block;
    const int64_t extent = 16;
    unsigned char handle[64];
    uint64_t base = 1, size = 1;
    cai_location place;
    cai_array x;
    open_sim();
    CHECK_INT(hip->host_register(hip->self, first, sizeof block, 3), 0);
    CHECK_INT(hip->pointer_range(hip->self, first + 64, &base, &size), 500);
    CHECK_UINT(base + size, 0);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, &extent, NULL, block + 8, &err), CAI_OK);
    CHECK_INT(cai_locate(&x, "x", hip, CAI_LOCATE_BOUNDS, &place, &err), CAI_OK);
    CHECK_INT(x.memory, CAI_MEMORY_PINNED);
    CHECK_INT(place.bounds, CAI_BOUNDS_UNKNOWN);
    CHECK_UINT(place.base + place.nbytes, 0);
    CHECK_INT(hip->ipc_export(hip->self, first, handle), 500); /* and no handle of address 0 */
    CHECK_INT(hip->host_unregister(hip->self, first), 0);
    close_sim();
}

static void test_allocations(void)
{
    uint64_t s, p = 0, q = 0, pool = 0, have = 0, most = 0, value = 0;
    unsigned char handle[64], other[64], uuid[2][16];
    int32_t i;
    open_sim();
    (void)cai_sim_set_context(hip_sim, cai_sim_primary(hip_sim, 0));
    s = stream_on(0);
    CHECK_INT(hip->memory_alloc(hip->self, &p, 512), 0);
    CHECK_INT(hip->memory_alloc_async(hip->self, &q, 512, s), 0);
    CHECK_INT(hip->memory_free_async(hip->self, q, s), 0);
    CHECK_INT(hip->memory_alloc_async(hip->self, &q, 512, CAI_STREAM_LEGACY), 0);
    CHECK_INT(hip->memory_free_async(hip->self, q, CAI_STREAM_LEGACY), 0);
    CHECK_INT(hip->memory_info(hip->self, &have, &most), 0);
    CHECK(have > 0 && have < most);
    CHECK_INT(hip->ipc_export(hip->self, p, handle), 0);
    CHECK_INT(hip->ipc_export(hip->self, p + 128, other), 0);
    CHECK_UINT(hip_ipc_pointer, p);
    CHECK_BYTES(other, handle, 64);
    CHECK_INT(hip->ipc_export(hip->self, 77, other), 500);
    CHECK_INT(hip->ipc_open(hip->self, handle, &q), cai_sim_cuda(hip_sim)->ipc_open(hip_sim, handle, &value));
    if (q) CHECK_INT(hip->ipc_close(hip->self, q), 0);
    CHECK_INT(hip->memory_free(hip->self, p), 0);
    CHECK_INT(hip->host_alloc(hip->self, &p, 512, 1), 0);
    CHECK_UINT(hip_host_flags, 1u | (uint32_t)hipHostMallocCoherent);
    CHECK_INT(hip->host_free(hip->self, p), 0);
    CHECK_INT(hip->host_register(hip->self, (uint64_t)(uintptr_t)handle, 64, 1), 0);
    CHECK_INT(hip->host_unregister(hip->self, (uint64_t)(uintptr_t)handle), 0);
    CHECK_INT(hip->managed_alloc(hip->self, &p, 512, 1), 0);
    CHECK_INT(hip->memory_free(hip->self, p), 0);
    CHECK_INT(hip->device_uuid(hip->self, 0, uuid[0]), 0);
    CHECK_INT(hip->device_uuid(hip->self, 1, uuid[1]), 0);
    CHECK(memcmp(uuid[0], uuid[1], 16) != 0);
    for (i = 0; i < 8; ++i) {
        int32_t k;
        CHECK_INT(hip->pool_create(hip->self, 0, (uint32_t)i, &pool), 0);
        for (k = 0; k < 3; ++k) {
            CHECK_INT(cai_sim_pool_get(hip_sim, pool, CAI_SIM_POOL_FOLLOW_EVENTS + k, &value), 0);
            CHECK_UINT(value, (uint64_t)(i >> k & 1));
        }
        CHECK_INT(cai_sim_pool_get(hip_sim, pool, CAI_SIM_POOL_THRESHOLD, &value), 0);
        CHECK_UINT(value, UINT64_MAX);
        CHECK_INT(hip->memory_alloc_from_pool(hip->self, &p, 512, pool, s), 0);
        CHECK_INT(cai_sim_pool_get(hip_sim, pool, CAI_SIM_POOL_USED, &value), 0);
        CHECK(value >= 512);
        CHECK_INT(hip->memory_free_async(hip->self, p, s), 0);
        CHECK_INT(hip->pool_destroy(hip->self, pool), 0);
    }
    CHECK_INT(hip->pool_create(hip->self, 0, 8, &pool), 1);
    for (i = 1; i < 5; ++i) { /* a pool that is not as asked is destroyed */
        char text[200];
        hip_refused = i;
        CHECK_INT(hip->pool_create(hip->self, 0, 7, &pool), 1);
        CHECK_UINT(pool, 0);
        cai_sim_leaks(hip_sim, text, sizeof text);
        CHECK(strstr(text, "pool") == NULL);
    }
    close_sim();
}

static void test_copies(void)
{
    uint64_t here, there, s;
    cai_cuda_copy rows = {0, 0, 64, 32, 5, 4, 16, 3, 2};
    unsigned char *a, *b;
    int32_t i, right = 0;
    open_sim();
    (void)cai_sim_set_context(hip_sim, cai_sim_primary(hip_sim, 0));
    s = stream_on(0);
    here = memory_on(0, CAI_SIM_MEM_PINNED);
    there = memory_on(0, CAI_SIM_MEM_PINNED);
    a = (unsigned char *)memory_at(here);
    b = (unsigned char *)memory_at(there);
    for (i = 0; i < 4096; ++i) a[i] = (unsigned char)(i * 7 + 1);
    CHECK_INT(hip->copy_async(hip->self, there, here, 100, s), 0);
    CHECK_INT(hip_kind, hipMemcpyDefault);
    CHECK_INT(hip->set_async(hip->self, there + 100, 0x1ff, 50, s), 0);
    CHECK_INT(hip->set_2d_async(hip->self, there + 200, 10, 0x3fe, 4, 3, s), 0);
    CHECK_INT(hip->stream_synchronize(hip->self, s), 0);
    CHECK_INT(b[5], 36);
    CHECK_BYTES(b, a, 100);
    CHECK_INT(b[100] * 1000 + b[149], 255255);
    CHECK_INT(b[150], 0);
    CHECK_INT(b[200] + b[203] + b[210] + b[223], 4 * 254);
    CHECK_INT(b[204] + b[224], 0);
    rows.to = there + 1024;
    rows.from = here + 1024;
    hip_kind = hipMemcpyHostToHost;
    CHECK_INT(hip->copy_3d_async(hip->self, &rows, CAI_STREAM_LEGACY), 0);
    CHECK_INT(hip_kind, hipMemcpyDefault);
    CHECK_INT(hip->stream_synchronize(hip->self, CAI_STREAM_LEGACY), 0);
    for (i = 0; i < 2 * 3 * 16; ++i) {
        const int32_t x = i % 16, y = i / 16 % 3, z = i / 48;
        right += b[1024 + x + y * 64 + z * 64 * 5] == a[1024 + x + y * 32 + z * 32 * 4];
    }
    CHECK_INT(right, 96);
    here = memory_on(0, CAI_SIM_MEM_DEVICE);
    there = memory_on(1, CAI_SIM_MEM_DEVICE);
    CHECK_INT(hip->copy_peer_async(hip->self, there, 2, here, 1, 64, s), 0);
    CHECK_INT(hip->copy_peer_async(hip->self, there, 3, here, 1, 64, s), 101);
    CHECK_INT(hip->copy_peer_async(hip->self, there, 2, here, 0, 64, s), 101);
    CHECK_INT(hip->stream_synchronize(hip->self, s), 0);
    close_sim();
}

/* Without a slot the headers name it. */
static void test_slots_that_are_missing(void)
{
    const int64_t shape[2] = {4, 4}, strides[2] = {64, 4};
    cai_transfer plan;
    cai_array from, to;
    uint64_t s;
    open_sim();
    s = stream_on(0);
    CHECK_INT(cai_array_init(&from, CAI_FLOAT32, 2, shape, strides, memory_at(memory_on(0, CAI_SIM_MEM_DEVICE)),
                             &err), CAI_OK);
    CHECK_INT(cai_array_init(&to, CAI_FLOAT32, 2, shape, strides, memory_at(memory_on(1, CAI_SIM_MEM_DEVICE)),
                             &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &to, &from, &err), CAI_OK);
    CHECK_INT(cai_transfer_copy_peer(&plan, hip, 2, 1, s, &err), CAI_ERR_UNAVAILABLE);
    CHECK(strstr(err.message, "copy_3d_peer_async") != NULL);
    close_sim();
}

/* -------------------------------------------------------------------- order */
typedef struct owner {
    uint64_t data, stream;
} owner;

static void free_in_order(cai_array *array)
{
    const owner *const o = (const owner *)array->owner;
    array->release = NULL;
    (void)hip->memory_free_async(hip->self, o->data, o->stream);
}

static void must(cai_sim *sim, int good, const char *what)
{
    if (!good) cai_check_fail(sim, what);
}

/* A producer allocates and writes on one stream. A consumer of the same or the other device reads on another
 * stream. The owner frees in the order of the producer's stream, and the memory is allocated again. */
static void exchange_program(cai_sim *sim, void *argument)
{
    static cai_event_pool pool;
    const int32_t streams = *(const int32_t *)argument; /* bit 0: ordered free; bits 1 and 2: stream 1, 2 */
    const int64_t extent = 256;
    const uint64_t memory_of_pool = cai_sim_pool_default(sim, 0);
    uint64_t again = 0, consumer;
    owner o;
    cai_array x;
    cai_array *io[1];
    cai_exchange ex;
    cai_sim_access access;
    io[0] = &x;
    hip_sim = sim;
    hip = cai_hip_table();
    (void)cai_sim_pool_set_access(sim, memory_of_pool, 1, 1);
    o.stream = streams & 2 ? (uint64_t)CAI_STREAM_LEGACY : stream_on(0);
    consumer = streams & 4 ? stream_on(1) : stream_on(0);
    must(sim, !cai_event_pool_init(&pool, hip, NULL, 0, 0, &err), err.message);
    must(sim, !hip->memory_alloc_async(hip->self, &o.data, 1024, o.stream), "alloc");
    access = cai_sim_writes(o.data, 1024);
    (void)cai_sim_touch(sim, o.stream, "produce", &access, 1);
    must(sim, !cai_array_init(&x, CAI_FLOAT32, 1, &extent, NULL, memory_at(o.data), &err), err.message);
    must(sim, !cai_stream_export(&x, &pool, o.stream, NULL, 0, &err), err.message);
    cai_array_own(&x, free_in_order, &o);
    if (streams & 1) x.flags |= CAI_ORDERED_FREE;
    must(sim, !cai_exchange_begin(&ex, &pool, io, 1, consumer, &err), err.message);
    must(sim, !hip->context_push(hip->self, streams & 4 ? 2 : 1), "push");
    (void)cai_sim_touch(sim, consumer, "consume", &access, 1);
    must(sim, !hip->context_pop(hip->self), "pop");
    must(sim, !cai_exchange_finish(&ex, CAI_OK, io, 1, &err), err.message);
    must(sim, !cai_keepalive_drain(&pool, &err), err.message);
    must(sim, !hip->memory_alloc_async(hip->self, &again, 1024, o.stream), "alloc");
    access = cai_sim_writes(again, 1024);
    (void)cai_sim_touch(sim, o.stream, "again", &access, 1);
    must(sim, !hip->memory_free_async(hip->self, again, o.stream), "free");
    must(sim, !cai_event_pool_destroy(&pool, &err), err.message);
    (void)cai_sim_stream_synchronize(sim, o.stream);
    if (!(streams & 2)) (void)cai_sim_stream_destroy(sim, o.stream);
    (void)cai_sim_stream_destroy(sim, consumer);
}

static void test_exchange(void)
{
    static const char *const operations[] = {"event_record", "stream_wait_event"};
    int32_t streams, n, o;
    hip_legacy = 0;
    for (streams = 0; streams < 8; ++streams) {
        cai_check_options options = {2, 0, 0, 0, NULL, 0, 0, NULL, NULL};
        cai_check_result result;
        CHECK_INT(cai_check(exchange_program, &streams, &options, &result), 0);
        CHECK_STR(result.text, "");
        for (o = 0; o < 2 && streams & 1; ++o) { /* each call that orders, left out */
            for (n = 1; n < 9; ++n) {
                int32_t bad;
                options.omit = operations[o];
                options.omit_call = n;
                bad = cai_check(exchange_program, &streams, &options, &result);
                if (!result.omitted) break;
                CHECK_INT(bad, 1);
            }
            CHECK(n == 3); /* one for the begin, one for the end */
        }
    }
    CHECK_INT(hip_legacy, 0);
}

static void run(void)
{
    test_table();
    test_numbers();
    test_contexts();
    test_streams();
    test_events();
    test_pointers();
    test_registered();
    test_allocations();
    test_copies();
    test_slots_that_are_missing();
    test_exchange();
}

CAI_TEST_MAIN(run)
