/* test_driver.c - the simulated libcuda.so.1, as a program that links it sees it
 * SPDX-License-Identifier: MIT */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>

#include "cai_driver.h"
#include "cai_sim.h"
#include "cai_test.h"
#include "recorded.h"

enum { THREADS = 4, ROUNDS = 200 };

static uint64_t test_site(void *context)
{
    ++*(int *)context;
    return 42;
}

static void test_before_init(void)
{
    CUdevice device = 7;
    int version = 0, count = 0;
    CHECK_INT(cuDriverGetVersion(&version), CUDA_SUCCESS);
    CHECK_INT(version, CUDA_VERSION);
    CHECK_INT(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_INT(cai_driver_configure(65, 0, 0), 0);
    CHECK_INT(cai_driver_configure(2, 0, 0), 0); /* the simulation is made by the first call */
    CHECK_INT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuInit(0), CUDA_SUCCESS);
    CHECK_INT(cuDeviceGetCount(&count), CUDA_SUCCESS);
    CHECK_INT(count, 2);
}

/* The call fails, the program goes on, and what happened can be read. */
static void test_dead_handles(void)
{
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUdeviceptr memory;
    cai_driver_dead dead;
    cai_driver_call call;
    unsigned flags = 0;
    int32_t count = 0;
    while (cai_driver_undefined(count, NULL)) count++;
    CHECK_INT(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxPushCurrent(context), CUDA_SUCCESS);
    CHECK_INT(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&event, 0), CUDA_SUCCESS);
    CHECK_INT(cuEventDestroy(event), CUDA_SUCCESS);
    CHECK_INT(cai_driver_undefined(count, NULL), 0);
    CHECK_INT(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cai_driver_undefined(count, &dead), 1);
    CHECK_INT(dead.what, CAI_DRIVER_DESTROYED);
    CHECK_STR(dead.kind, "event");
    CHECK_STR(dead.call, "cuEventRecord");
    CHECK_INT(cai_driver_call_of(dead.made, &call), 1);
    CHECK_STR(call.name, "cuEventCreate");
    CHECK_INT(cai_driver_call_of(dead.destroyed, &call), 1);
    CHECK_STR(call.name, "cuEventDestroy_v2");
    CHECK_INT(cai_driver_call_of(dead.used, &call), 1);
    CHECK_STR(call.name, "cuEventRecord");
    CHECK_INT(cai_driver_undefined(count + 1, &dead), 0);
    CHECK_INT(cai_driver_undefined(-1, &dead), 0);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamGetFlags(stream, &flags), CUDA_ERROR_INVALID_HANDLE); /* a call that has no number at first */
    CHECK_INT(cai_driver_undefined(count + 1, &dead), 1);
    CHECK_STR(dead.kind, "stream");
    CHECK_INT(cai_driver_call_of(dead.used, &call), 1);
    CHECK_STR(call.name, "cuStreamGetFlags");
    CHECK_INT(cuEventDestroy((CUevent)(uintptr_t)0x12340), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cai_driver_undefined(count + 2, &dead), 1);
    CHECK_INT(dead.what, CAI_DRIVER_NEVER_MADE);
    CHECK_STR(dead.name, "0x12340");
    CHECK_INT(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemsetD8(memory + 8, 0, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemcpyDtoH(&flags, memory, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemFree(0x1000), CUDA_ERROR_INVALID_VALUE); /* it never was memory: an error and no more */
    CHECK_INT(cai_driver_undefined(count + 5, &dead), 1);
    CHECK_INT(cai_driver_undefined(count + 6, NULL), 0);
    CHECK_STR(dead.kind, "memory");
    CHECK_STR(dead.call, "cuMemcpyDtoH_v2");
    CHECK_INT(cai_driver_call_of(dead.made, &call), 1);
    CHECK_STR(call.name, "cuMemAlloc_v2");
    CHECK_INT(cai_driver_call_of(dead.destroyed, &call), 1);
    CHECK_STR(call.name, "cuMemFree_v2");
    CHECK_INT(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    CHECK_INT(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    CHECK_INT(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS); /* numba.cuda.close resets what it released */
    CHECK_INT(cuDevicePrimaryCtxReset(2), CUDA_ERROR_INVALID_DEVICE);
}

/* The recorder says so before the real driver is asked. A handle that the driver gives again is another one. */
static void test_dead_recorded(void)
{
    CUcontext context;
    CUstream stream;
    CUevent event;
    cai_driver_dead dead;
    CHECK_INT(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxPushCurrent(context), CUDA_SUCCESS);
    CHECK_INT(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&event, 0), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(event, stream), CUDA_SUCCESS);
    CHECK_INT(cuEventDestroy(event), CUDA_SUCCESS);
    CHECK_INT(cai_driver_undefined(0, NULL), 0);
    CHECK_INT(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cai_driver_undefined(0, &dead), 1);
    CHECK_STR(dead.kind, "event");
    CHECK_STR(dead.call, "cuStreamWaitEvent");
    CHECK(dead.made && dead.destroyed && dead.used);
    CHECK_INT(cai_driver_undefined(1, NULL), 0);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cai_driver_undefined(1, &dead), 1);
    CHECK_STR(dead.kind, "stream");
    CHECK_INT(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    CHECK_INT(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

/* Each finding of a long run can be read, with its own name, and those before it stay where they are. */
static void test_many_findings(void)
{
    enum { MANY = 300 };
    CUcontext context;
    cai_driver_dead dead, first;
    int32_t count = 0, i, right = 0;
    char name[32];
    while (cai_driver_undefined(count, NULL)) count++;
    CHECK_INT(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxPushCurrent(context), CUDA_SUCCESS);
    for (i = 0; i < MANY; ++i)
        CHECK_INT(cuEventQuery((CUevent)(uintptr_t)(0x20000 + 16 * i)), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cai_driver_undefined(count, &first), 1);
    CHECK_STR(first.name, "0x20000");
    for (i = 0; i < MANY; ++i) {
        snprintf(name, sizeof name, "0x%x", 0x20000 + 16 * i);
        right += cai_driver_undefined(count + i, &dead) && !strcmp(dead.name, name) && dead.used;
    }
    CHECK_INT(right, MANY);
    CHECK_INT(cai_driver_undefined(count + MANY, NULL), 0);
    CHECK_INT(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    CHECK_INT(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

static void test_devices(void)
{
    CUdevice device;
    int value = 0, i;
    char name[8];
    CHECK_INT(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    CHECK_INT(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    CHECK_INT(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuDeviceGetName(name, 8, 1), CUDA_SUCCESS);
    CHECK_STR(name, "cai sim");
    CHECK_INT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), CUDA_SUCCESS);
    CHECK_INT(value, 9);
    CHECK_INT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1), CUDA_SUCCESS);
    CHECK_INT(value, 32);
    for (i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i)
        CHECK_INT(cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0), CUDA_SUCCESS);
    CHECK_INT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
}

static void *address_of(const char *name, int version, cuuint64_t flags, int expected)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
    void *found = (void *)&status;
    CHECK_INT(cuGetProcAddress(name, &found, version, flags, &status), CUDA_SUCCESS);
    CHECK_INT(status, expected);
    return found;
}

static void test_addresses(void)
{
    void *library = dlopen(NULL, RTLD_NOW), *found = NULL;
    const void *table = NULL;
    const char *text = NULL;
    CUuuid id = {{0}};
    CHECK(address_of("cuMemcpyHtoDAsync", 2000, 0, 0) == dlsym(library, "cuMemcpyHtoDAsync"));
    CHECK(address_of("cuMemcpyHtoDAsync", 13000, 0, 0) == dlsym(library, "cuMemcpyHtoDAsync_v2"));
    CHECK(address_of("cuMemcpyHtoDAsync", 13000, 2, 0) == dlsym(library, "cuMemcpyHtoDAsync_v2_ptsz"));
    CHECK(address_of("cuMemcpyHtoD", 12000, 2, 0) == dlsym(library, "cuMemcpyHtoD_v2_ptds"));
    CHECK(address_of("cuMemAlloc", 12000, 2, 0) == dlsym(library, "cuMemAlloc_v2"));
    CHECK(address_of("cuGetProcAddress", 11040, 0, 0) == dlsym(library, "cuGetProcAddress"));
    CHECK(address_of("cuCtxCreate", 11040, 0, 0) == dlsym(library, "cuCtxCreate_v3"));
    CHECK(address_of("cuStreamGetId", 11000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == NULL);
    CHECK(address_of("cuNoSuchName", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
    CHECK_INT(cuGetProcAddress("cuInit", &found, CUDA_VERSION + 10, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGetProcAddress("cuInit", &found, 12000, 3, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGetProcAddress(NULL, &found, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    CHECK_INT(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
    CHECK_STR(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK_INT(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(text == NULL);
    dlclose(library);
}

/* Writes the address of a function that a header gives to newer ones, or calls deprecated. */
static void test_symbol(const char *name, void *function)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    CHECK(found != NULL);
    memcpy(function, &found, sizeof found);
}

static int test_find(const char *name, cai_driver_function *out)
{
    int32_t i;
    for (i = 0; cai_driver_function_get(i, out); ++i)
        if (!strcmp(out->name, name))
            return 1;
    return 0;
}

static void test_names(void)
{
    cai_driver_function before, one;
    int32_t i;
    CHECK_INT(cai_driver_function_get(0, &before), 1);
    for (i = 1; cai_driver_function_get(i, &one); before = one, ++i)
        CHECK(strcmp(before.name, one.name) < 0);
    CHECK(i > 600);
    CHECK_INT(cai_driver_function_get(-1, &one), 0);
    CHECK_INT(cai_driver_function_get(0, NULL), 0);
    CHECK_INT(cuMulticastUnbind(0, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
    CHECK(test_find("cuMulticastUnbind", &one) && one.calls == 1 && !one.served && !one.asked);
    CHECK(test_find("cuMemcpyHtoDAsync_v2_ptsz", &one) && one.served && one.asked);
}

static void test_without_context(void)
{
    CUdeviceptr pointer = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUdevice device = 0;
    char byte = 0;
    CHECK_INT(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuMemAlloc(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuMemcpyHtoD(1, &byte, 1), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuMemAllocAsync(&pointer, 4, NULL), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxPopCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
}

/* Work runs when something waits for it, and an event orders two streams. */
static void test_order(void)
{
    CUstream first = NULL, second = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    unsigned char *host = NULL;
    CHECK_INT(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -9), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_INT(cuMemHostAlloc((void **)&host, 64, 0), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
    memset(host, 1, 64);
    CHECK_INT(cuMemsetD8Async(memory, 5, 64, first), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(event, first), CUDA_SUCCESS);
    CHECK_INT(cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoHAsync(host, memory, 64, second), CUDA_SUCCESS);
    CHECK_INT(host[63], 1);
    CHECK_INT(cuStreamSynchronize(second), CUDA_SUCCESS);
    CHECK_INT(host[0], 5);
    CHECK_INT(host[63], 5);
    CHECK_INT(cuEventQuery(event), CUDA_SUCCESS);
    CHECK_INT(cuStreamQuery(second), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemFreeHost(host), CUDA_SUCCESS);
    CHECK_INT(cuEventDestroy(event), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(event, first), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuStreamDestroy(first), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(first), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuStreamDestroy(second), CUDA_SUCCESS);
}

/* A query lets one operation run, so a loop of queries ends. The legacy stream waits for blocking streams. */
static void test_queries(void)
{
    CUstream blocking = NULL, free_stream = NULL;
    CUdeviceptr memory = 0;
    uint64_t count;
    int tries = 0;
    CHECK_INT(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    CHECK_INT(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8Async(memory, 5, 64, blocking), CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8Async(memory, 6, 32, free_stream), CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8Async(memory, 7, 32, free_stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    CHECK_INT(cuStreamQuery(blocking), CUDA_SUCCESS);
    count = cai_sim_operation_count(cai_driver_sim());
    CHECK_INT(cuStreamQuery(free_stream), CUDA_ERROR_NOT_READY);
    CHECK_UINT(cai_sim_operation_count(cai_driver_sim()), count); /* nothing is known to be done */
    while (cuStreamQuery(free_stream) == CUDA_ERROR_NOT_READY && tries < 9)
        ++tries;
    CHECK(tries < 9);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(blocking), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(free_stream), CUDA_SUCCESS);
}

/* What belongs to one stream of many. */
static void test_many_streams(void)
{
    CUstream streams[300];
    int i, priority = 9;
    for (i = 0; i < 300; ++i)
        CHECK_INT(cuStreamCreateWithPriority(&streams[i], CU_STREAM_NON_BLOCKING, -(i % 6)), CUDA_SUCCESS);
    for (i = 0; i < 300; ++i) {
        CHECK_INT(cuStreamGetPriority(streams[i], &priority), CUDA_SUCCESS);
        CHECK_INT(priority, -(i % 6));
        CHECK_INT(cuStreamDestroy(streams[i]), CUDA_SUCCESS);
    }
}

static void test_facts_of_streams(void)
{
    CUstream stream = NULL;
    CUcontext current = NULL, context = NULL;
    unsigned flags = 9;
    int priority = 9;
    unsigned long long id = 0, other = 0;
    CHECK_INT(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -9), CUDA_SUCCESS);
    CHECK_INT(cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
    CHECK_INT(priority, -5);
    CHECK_INT(cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
    CHECK_INT(flags, CU_STREAM_NON_BLOCKING);
    CHECK_INT(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    CHECK_INT(cuStreamGetCtx(stream, &context), CUDA_SUCCESS);
    CHECK(context == current);
    CHECK_INT(cuStreamGetId(stream, &id), CUDA_SUCCESS);
    CHECK_INT(cuStreamGetId(NULL, &other), CUDA_SUCCESS);
    CHECK(id && other && id != other);
    CHECK_INT(cuStreamGetFlags((CUstream)(uintptr_t)0x1234, &flags), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
}

static void test_copies(void)
{
    unsigned char rows[4][8], back[4][8];
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    CUDA_MEMCPY2D copy;
    int i;
    for (i = 0; i < 32; ++i)
        rows[i / 8][i % 8] = (unsigned char)i;
    memset(back, 0, sizeof back);
    CHECK_INT(cuMemAllocPitch(&memory, &pitch, 8, 4, 4), CUDA_SUCCESS);
    CHECK_INT(pitch, 512);
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = rows;
    copy.srcPitch = 8;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.dstPitch = pitch;
    copy.WidthInBytes = 8;
    copy.Height = 4;
    CHECK_INT(cuMemcpy2D(&copy), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoH(back, memory + pitch, 8), CUDA_SUCCESS);
    CHECK_BYTES(back[0], rows[1], 8);
    CHECK_INT(cuMemsetD2D8(memory + 2, pitch, 77, 2, 4), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoH(back, memory + 3 * pitch, 8), CUDA_SUCCESS);
    CHECK(back[0][1] == 25 && back[0][2] == 77 && back[0][3] == 77 && back[0][4] == 28);
    copy.dstPitch = 7;
    CHECK_INT(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    CHECK_INT(cuMemcpy2D(&copy), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_INT(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemcpyDtoH(back, memory + pitch * 4 - 4, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

static void test_pointers(void)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    unsigned type = 9;
    int device = 9, local = 0;
    char managed = 9;
    void *data[3];
    CUdeviceptr memory = 0, base = 0;
    size_t bytes = 0;
    data[0] = &type;
    data[1] = &device;
    data[2] = &managed;
    CHECK_INT(cuMemAllocManaged(&memory, 100, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    CHECK_INT(cuPointerGetAttributes(3, names, data, memory + 50), CUDA_SUCCESS);
    CHECK_INT(type, CU_MEMORYTYPE_DEVICE);
    CHECK_INT(device, 0);
    CHECK_INT(managed, 1);
    CHECK_INT(cuMemGetAddressRange(&base, &bytes, memory + 50), CUDA_SUCCESS);
    CHECK(base == memory && bytes == 100);
    CHECK_INT(cuPointerGetAttributes(3, names, data, (CUdeviceptr)(uintptr_t)&local), CUDA_SUCCESS);
    CHECK(type == 0 && device == -2 && managed == 0);
    CHECK_INT(cuPointerGetAttribute(&type, names[0], (CUdeviceptr)(uintptr_t)&local),
              CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

static void CUDA_CB test_host_function(void *data)
{
    *(int *)data += 10;
}

static void CUDA_CB test_callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    if (status == CUDA_SUCCESS)
        *(int *)data *= 3;
}

static void test_host_functions(void)
{
    CUstream stream = NULL;
    int value = 1;
    CHECK_INT(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    CHECK_INT(cuLaunchHostFunc(stream, test_host_function, &value), CUDA_SUCCESS);
    CHECK_INT(cuStreamAddCallback(stream, test_callback, &value, 0), CUDA_SUCCESS);
    CHECK_INT(cuStreamAddCallback(stream, test_callback, &value, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuLaunchHostFunc(stream, NULL, &value), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(value, 1);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(value, 33);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
}

static void test_graphs(void)
{
    CUstream stream = NULL;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    CUdeviceptr memory = 0;
    size_t nodes = 0;
    unsigned char byte = 0;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 1), CUDA_SUCCESS);
    CHECK_INT(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    CHECK_INT(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    CHECK_INT(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_INT(cuMemsetD8Async(memory, 6, 1, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK_INT(cuGraphGetNodes(graph, NULL, &nodes), CUDA_SUCCESS);
    CHECK_INT(nodes, 1);
    CHECK_INT(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    CHECK_INT(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_INT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemcpyDtoH(&byte, memory, 1), CUDA_SUCCESS);
    CHECK_INT(byte, 0);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoH(&byte, memory, 1), CUDA_SUCCESS);
    CHECK_INT(byte, 6);
    CHECK_INT(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

static void test_ignore(void *argument)
{
    (void)argument;
}

/* A set, then a host function and, on another stream, a copy beside it. Both are joined. */
static void test_capture_diamond(CUstream stream, CUstream other, CUevent event, CUdeviceptr memory)
{
    CHECK_INT(cuMemsetD8Async(memory, 1, 1, stream), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(event, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    CHECK_INT(cuLaunchHostFunc(stream, test_ignore, &memory), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoDAsync(memory + 1, memory, 1, other), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(event, other), CUDA_SUCCESS);
    CHECK_INT(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
}

static size_t test_capture_nodes(CUstream stream, CUgraph *graph, CUgraphNode *nodes)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *found = NULL;
    const CUgraphEdgeData *edges = NULL;
    cuuint64_t id = 0;
    size_t count = 99, i;
    CHECK_INT(cuStreamGetCaptureInfo(stream, &status, &id, graph, &found, &edges, &count), CUDA_SUCCESS);
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && found && edges && *graph);
    for (i = 0; i < count; ++i) {
        nodes[i] = found[i];
        CHECK(!edges[i].type && !edges[i].from_port && !edges[i].to_port);
    }
    return count;
}

static void test_graph_types(const CUgraphNode *nodes)
{
    CUDA_HOST_NODE_PARAMS host;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CHECK_INT(cuGraphNodeGetType(nodes[0], &type), CUDA_SUCCESS);
    CHECK_INT(type, CU_GRAPH_NODE_TYPE_MEMSET);
    CHECK_INT(cuGraphNodeGetType(nodes[1], &type), CUDA_SUCCESS);
    CHECK_INT(type, CU_GRAPH_NODE_TYPE_HOST);
    CHECK_INT(cuGraphNodeGetType(nodes[2], &type), CUDA_SUCCESS);
    CHECK_INT(type, CU_GRAPH_NODE_TYPE_MEMCPY);
    CHECK_INT(cuGraphNodeGetType((CUgraphNode)(uintptr_t)&host, &type), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGraphNodeGetType(NULL, &type), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGraphHostNodeGetParams(nodes[1], &host), CUDA_SUCCESS);
    CHECK(host.fn == test_ignore);
    CHECK_INT(cuGraphHostNodeGetParams(nodes[0], &host), CUDA_ERROR_INVALID_VALUE);
}

/* The queries of a graph, with more room than there is, and with less. */
static void test_graph_lists(CUgraph graph, const CUgraphNode *nodes)
{
    CUgraphNode from[5], to[5];
    CUgraphEdgeData data[5];
    size_t count = 5;
    CHECK_INT(cuGraphGetNodes(graph, from, &count), CUDA_SUCCESS);
    CHECK(count == 3 && from[0] == nodes[0] && from[2] == nodes[2] && !from[3] && !from[4]);
    count = 1;
    CHECK_INT(cuGraphGetNodes(graph, from, &count), CUDA_SUCCESS);
    CHECK(count == 1 && from[0] == nodes[0]);
    CHECK_INT(cuGraphGetEdges(graph, NULL, NULL, NULL, &count), CUDA_SUCCESS);
    CHECK_INT(count, 2);
    count = 5;
    CHECK_INT(cuGraphGetEdges(graph, from, to, data, &count), CUDA_SUCCESS);
    CHECK(count == 2 && from[0] == nodes[0] && to[0] == nodes[1] && from[1] == nodes[0] && to[1] == nodes[2]);
    CHECK(!from[4] && !to[4]);
    CHECK_INT(cuGraphGetEdges(graph, from, NULL, NULL, &count), CUDA_ERROR_INVALID_VALUE);
    count = 5;
    CHECK_INT(cuGraphGetRootNodes(graph, from, &count), CUDA_SUCCESS);
    CHECK(count == 1 && from[0] == nodes[0]);
    CHECK_INT(cuGraphNodeGetDependencies(nodes[2], NULL, NULL, &count), CUDA_SUCCESS);
    CHECK_INT(count, 1);
    count = 5;
    CHECK_INT(cuGraphNodeGetDependentNodes(nodes[0], to, data, &count), CUDA_SUCCESS);
    CHECK(count == 2 && to[0] == nodes[1] && to[1] == nodes[2]);
    CHECK_INT(cuGraphNodeGetDependentNodes(nodes[2], NULL, NULL, &count), CUDA_SUCCESS);
    CHECK_INT(count, 0);
}

/* The graph is there while it is captured, and can be asked and not be destroyed. */
static void test_graph_nodes(void)
{
    CUstream stream = NULL, other = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    CUgraph during = NULL, graph = NULL;
    CUgraphNode nodes[4] = {NULL, NULL, NULL, NULL}, all[4];
    CUgraphExec executable = NULL;
    size_t count = 4;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 2), CUDA_SUCCESS);
    CHECK_INT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    CHECK_INT(test_capture_nodes(stream, &during, nodes), 0);
    test_capture_diamond(stream, other, event, memory);
    CHECK_INT(test_capture_nodes(stream, &during, nodes), 2);
    CHECK_INT(cuGraphDestroy(during), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGraphInstantiate(&executable, during, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGraphGetNodes(during, all, &count), CUDA_SUCCESS);
    CHECK(count == 3 && nodes[0] != nodes[1] && nodes[0] != all[0] && nodes[1] != all[0]);
    CHECK((nodes[0] == all[1] || nodes[0] == all[2]) && (nodes[1] == all[1] || nodes[1] == all[2]));
    CHECK_INT(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK(graph == during);
    test_graph_types(all);
    test_graph_lists(graph, all);
    CHECK_INT(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    CHECK_INT(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_INT(cuGraphNodeGetDependencies(all[2], NULL, NULL, &count), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuEventDestroy(event), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(other), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

/* A graph that is made by hand is captured into twice. The second part comes after the node of the first. */
static void test_capture_to_graph(void)
{
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    CUgraph graph = NULL, end = NULL;
    CUgraphNode nodes[4];
    CUgraphEdgeData data;
    size_t count = 4;
    memset(&data, 0, sizeof data);
    data.from_port = 1;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 2), CUDA_SUCCESS);
    CHECK_INT(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CHECK_INT(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 1), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_INT(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8Async(memory, 1, 1, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamEndCapture(stream, &end), CUDA_SUCCESS);
    CHECK(end == graph);
    CHECK_INT(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
    CHECK_INT(count, 1);
    CHECK_INT(cuStreamBeginCaptureToGraph(stream, graph, nodes, &data, 1, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuStreamBeginCaptureToGraph(stream, graph, nodes, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8Async(memory, 2, 1, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamUpdateCaptureDependencies(stream, nodes, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
              CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8Async(memory + 1, 3, 1, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamEndCapture(stream, &end), CUDA_SUCCESS);
    CHECK_INT(cuGraphGetEdges(graph, NULL, NULL, NULL, &count), CUDA_SUCCESS);
    CHECK_INT(count, 2); /* both after the first: the second one was left out of the set */
    CHECK_INT(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

static CUgraph test_graph_of_sets(CUstream stream, CUdeviceptr memory, int count, unsigned char value)
{
    CUgraph graph = NULL;
    int i;
    CHECK_INT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    for (i = 0; i < count; ++i)
        CHECK_INT(cuMemsetD8Async(memory, value, 1, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    return graph;
}

static void test_graph_update(void)
{
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    CUgraph first, alike, longer;
    CUgraphExec executable = NULL;
    CUgraphExecUpdateResultInfo info;
    unsigned char byte = 0;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 1), CUDA_SUCCESS);
    first = test_graph_of_sets(stream, memory, 1, 1);
    alike = test_graph_of_sets(stream, memory, 1, 2);
    longer = test_graph_of_sets(stream, memory, 2, 3);
    CHECK_INT(cuGraphInstantiate(&executable, first, 0), CUDA_SUCCESS);
    CHECK_INT(cuGraphExecUpdate(executable, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_INT(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK_INT(cuGraphExecUpdate(executable, alike, &info), CUDA_SUCCESS);
    CHECK_INT(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoH(&byte, memory, 1), CUDA_SUCCESS);
    CHECK_INT(byte, 2);
    CHECK_INT(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    CHECK_INT(cuGraphDestroy(first) || cuGraphDestroy(alike) || cuGraphDestroy(longer), 0);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

static void test_destroy(void *pointer)
{
    ++*(int *)pointer;
}

/* An object lives as long as its creator, a graph or an executable has a reference. */
static void test_user_objects(void)
{
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    CUuserObject object = NULL;
    CUgraph graph, other;
    CUgraphExec executable = NULL;
    int destroyed = 0;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 1), CUDA_SUCCESS);
    graph = test_graph_of_sets(stream, memory, 1, 1);
    other = test_graph_of_sets(stream, memory, 1, 1);
    CHECK_INT(cuUserObjectCreate(&object, &destroyed, test_destroy, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuUserObjectCreate(&object, &destroyed, test_destroy, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuUserObjectCreate(&object, &destroyed, NULL, 1, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuUserObjectCreate(&object, &destroyed, test_destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
              CUDA_SUCCESS);
    CHECK_INT(cuGraphRetainUserObject(graph, object, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuGraphRetainUserObject(graph, object, 2, 0), CUDA_SUCCESS);
    CHECK_INT(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
    CHECK_INT(cuGraphReleaseUserObject(other, object, 1), CUDA_ERROR_INVALID_VALUE); /* it has none */
    CHECK_INT(cuGraphReleaseUserObject(graph, object, 2), CUDA_SUCCESS);
    CHECK_INT(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    CHECK_INT(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_INT(destroyed, 0);
    CHECK_INT(cuUserObjectRetain(object, 1), CUDA_SUCCESS);
    CHECK_INT(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    CHECK_INT(destroyed, 0); /* its launch has not run */
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cuGraphDestroy(other), CUDA_SUCCESS);
    CHECK_INT(destroyed, 1);
    CHECK_INT(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

static void test_pools(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr memory = 0;
    cuuint64_t used = 9;
    CHECK_INT(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocAsync(&memory, 4096, NULL), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    CHECK_INT(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
    CHECK(used >= 4096);
    CHECK_INT(cuMemFreeAsync(memory, NULL), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    CHECK_INT(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
    CHECK_INT(used, 0);
    CHECK_INT(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemPoolGetAttribute(NULL, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_ERROR_INVALID_VALUE);
}

/* Memory that a capture allocates and frees is there at each launch. */
static void test_captured_memory(void)
{
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    CUdeviceptr inner = 0, outer = 0, before = 0;
    cuuint64_t used = 9;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocAsync(&before, 256, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocAsync(&inner, 256, stream), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocAsync(&outer, 256, stream), CUDA_SUCCESS);
    CHECK(inner && outer && inner != outer);
    CHECK_INT(cuMemsetD8Async(inner, 5, 256, stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoDAsync(outer, inner, 256, stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeAsync(inner, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK_INT(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    CHECK_INT(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeAsync(outer, stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeAsync(before, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeAsync(outer, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
    CHECK_INT(used, 0);
    CHECK_INT(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
}

static void test_kernels(void)
{
    static const char image[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                ".visible .entry k()\n{\nret;\n}\n";
    CUmodule module = NULL;
    CUfunction function = NULL;
    const char *name = NULL;
    CHECK_INT(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
    CHECK_INT(cuFuncGetName(&name, function), CUDA_SUCCESS);
    CHECK_STR(name, "k");
    CHECK_INT(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
    CHECK_INT(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_INT(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK_INT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* What a launch accesses beyond its arguments, and what is no source of machine code. */
static void test_sources(void)
{
    static const char image[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .u32 x;\n"
                                ".visible .entry k()\n{\nst.global.u32 [x], 0;\nret;\n}\n";
    CUmodule module = NULL;
    CUfunction function = NULL;
    cai_sim_operation operation;
    cai_driver_call call;
    CHECK_INT(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
    CHECK_INT(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
    CHECK_INT(cai_sim_operation_get(cai_driver_sim(), cai_sim_operation_count(cai_driver_sim()), &operation), 1);
    CHECK_INT(cai_driver_call_of(operation.tag, &call), 1);
    CHECK_INT(call.opaque, 0);
    CHECK_INT(call.follows, 2); /* global variables */
    CHECK_INT(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK_INT(cai_driver_source(NULL, 8, image, sizeof image), 0);
    CHECK_INT(cai_driver_source(image, sizeof image, image, sizeof image), 0);
    CHECK_INT(cai_driver_source("\177ELF", 4, image, sizeof image), 0);
}

/* What PyCUDA does: the block and the arguments are kept by the function. */
static void test_old_launches(void)
{
    static const char image[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                ".visible .entry k(.param .u32 a)\n{\nret;\n}\n";
    const uint64_t before = cai_sim_operation_count(cai_driver_sim());
    CUresult (*launch)(CUfunction, int, int) = NULL;
    CUresult (*block)(CUfunction, int, int, int) = NULL, (*value)(CUfunction, int, unsigned) = NULL;
    CUresult (*size)(CUfunction, unsigned) = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    cai_sim_operation operation;
    test_symbol("cuFuncSetBlockShape", &block);
    test_symbol("cuParamSeti", &value);
    test_symbol("cuParamSetSize", &size);
    test_symbol("cuLaunchGrid", &launch);
    CHECK_INT(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
    CHECK_INT(launch(function, 1, 1), CUDA_ERROR_INVALID_VALUE); /* no block yet */
    CHECK_INT(block(function, 32, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(block(NULL, 32, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(block(function, 32, 1, 1), CUDA_SUCCESS);
    CHECK_INT(value(function, 4096, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(value(function, -1, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(value(function, 0, 1), CUDA_SUCCESS);
    CHECK_INT(size(function, 4), CUDA_SUCCESS);
    CHECK_INT(launch(function, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch(function, 2, 2), CUDA_SUCCESS);
    CHECK_INT(cai_sim_operation_count(cai_driver_sim()), before + 1);
    CHECK_INT(cai_sim_operation_get(cai_driver_sim(), before + 1, &operation), 1);
    CHECK_STR(operation.name, "k");
    CHECK_INT(cuModuleUnload(module), CUDA_SUCCESS);
}

/* Flags of host memory, and registered memory, which has none. */
static void test_host_flags(void)
{
    static char bytes[64];
    unsigned flags = 9;
    char *host = NULL;
    CHECK_INT(cuMemHostAlloc((void **)&host, 64, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED),
              CUDA_SUCCESS);
    CHECK_INT(cuMemHostGetFlags(&flags, host + 63), CUDA_SUCCESS);
    CHECK_INT(flags, 6);
    CHECK_INT(cuMemHostGetFlags(&flags, host + 64), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemHostGetFlags(NULL, host), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemFreeHost(host), CUDA_SUCCESS);
    CHECK_INT(cuMemHostGetFlags(&flags, host), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemHostRegister(bytes, 64, 16), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemHostRegister(bytes, 64, CU_MEMHOSTREGISTER_READ_ONLY), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_INT(cuMemHostRegister(bytes, 64, CU_MEMHOSTREGISTER_PORTABLE), CUDA_SUCCESS);
    CHECK_INT(cuMemHostGetFlags(&flags, bytes), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemHostUnregister(bytes), CUDA_SUCCESS);
}

static void test_attach(void)
{
    CUstream stream = NULL;
    CUdeviceptr managed = 0, device = 0;
    CHECK_INT(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&device, 64), CUDA_SUCCESS);
    CHECK_INT(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE), CUDA_SUCCESS);
    CHECK_INT(cuStreamAttachMemAsync(stream, managed, 64, CU_MEM_ATTACH_HOST), CUDA_SUCCESS);
    CHECK_INT(cuStreamAttachMemAsync(stream, managed, 32, CU_MEM_ATTACH_HOST), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuStreamAttachMemAsync(stream, managed, 0, 3), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuStreamAttachMemAsync(NULL, managed, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuStreamAttachMemAsync(stream, device, 0, CU_MEM_ATTACH_HOST), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemFree(managed) || cuMemFree(device) || cuStreamDestroy(stream), 0);
}

/* Handles are made. None can be opened in the process that made it, nor in another one. */
static void test_other_processes(void)
{
    CUipcMemHandle memory_handle, elsewhere;
    CUipcEventHandle event_handle;
    CUevent shared = NULL, plain = NULL, opened = NULL;
    CUdeviceptr memory = 0, out = 0;
    CHECK_INT(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_INT(cuIpcGetMemHandle(&memory_handle, memory), CUDA_SUCCESS);
    CHECK_INT(cuIpcOpenMemHandle(&out, memory_handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_CONTEXT);
    elsewhere = memory_handle;
    elsewhere.reserved[48]++; /* the process */
    CHECK_INT(cuIpcOpenMemHandle(&out, elsewhere, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_MAP_FAILED);
    memset(&elsewhere, 7, sizeof elsewhere);
    CHECK_INT(cuIpcOpenMemHandle(&out, elsewhere, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuIpcGetEventHandle(&event_handle, plain), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuIpcGetEventHandle(&event_handle, NULL), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuIpcGetEventHandle(&event_handle, shared), CUDA_SUCCESS);
    CHECK_INT(cuIpcOpenEventHandle(&opened, event_handle), CUDA_ERROR_INVALID_CONTEXT);
    event_handle.reserved[48]++;
    CHECK_INT(cuIpcOpenEventHandle(&opened, event_handle), CUDA_ERROR_MAP_FAILED);
    CHECK_INT(cuEventDestroy(plain) || cuEventDestroy(shared) || cuMemFree(memory), 0);
}

/* Memory of cuMemAlloc may be freed in the order of a stream. It is there until then. */
static void test_free_in_order(void)
{
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    cai_sim_pointer info;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8Async(memory, 1, 64, stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeAsync(memory + 1, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuMemFreeAsync(memory, stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cai_sim_pointer_get(cai_driver_sim(), memory, &info), 0);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cai_sim_pointer_get(cai_driver_sim(), memory, &info), 1);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
    memory = 7;
    CHECK_INT(cuMemAllocAsync(&memory, 0, NULL), CUDA_SUCCESS); /* cuMemAlloc of 0 bytes is an error */
    CHECK(memory == 0);
}

/* The call that made the newest operation; and where a function of the program above counts instead. */
static void test_calls(void)
{
    cai_sim *sim = cai_driver_sim();
    cai_driver_call call;
    cai_sim_operation operation;
    CUdeviceptr memory = 0;
    char name[64];
    uint64_t last = 0;
    int sites = 0;
    CHECK_INT(cai_driver_call_of(0, &call), 0);
    CHECK_INT(cuMemAlloc(&memory, 8), CUDA_SUCCESS);
    cai_driver_set_site(test_site, &sites);
    CHECK_INT(cuMemsetD8Async(memory, 1, 8, NULL), CUDA_SUCCESS);
    while (cai_driver_call_of(last + 1, &call))
        ++last;
    CHECK_INT(cai_driver_call_of(last, &call), 1);
    CHECK_STR(call.name, "cuMemsetD8Async");
    CHECK(call.site == 42 && sites == 1 && call.caller && !call.kernel && !call.opaque);
    CHECK_INT(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &operation), 1);
    cai_sim_stream_name(sim, operation.stream, name, sizeof name);
    CHECK_STR(name, "legacy");
    cai_driver_enter("cudaMemset", (const void *)&sites);
    CHECK_INT(cuMemsetD8Async(memory, 1, 8, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    cai_driver_leave();
    CHECK_INT(cai_driver_call_of(last + 1, &call), 1);
    CHECK_STR(call.name, "cudaMemset");
    CHECK(call.caller == (const void *)&sites);
    CHECK_INT(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &operation), 1);
    cai_sim_stream_name(sim, operation.stream, name, sizeof name);
    CHECK_STR(name, "per_thread");
    cai_driver_set_site(NULL, NULL);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

/* Stream 0 of the per-thread form is the stream of the thread. */
static void test_per_thread(void)
{
    cai_sim *sim = cai_driver_sim();
    CUresult (*set)(CUdeviceptr, unsigned char, size_t, CUstream) = NULL;
    void *found = NULL;
    cai_sim_operation operation;
    CUdeviceptr memory = 0;
    char name[64];
    CHECK_INT(cuGetProcAddress("cuMemsetD8Async", &found, 12000, 2, NULL), CUDA_SUCCESS);
    memcpy(&set, &found, sizeof set);
    CHECK_INT(cuMemAlloc(&memory, 8), CUDA_SUCCESS);
    CHECK_INT(set(memory, 1, 8, NULL), CUDA_SUCCESS);
    CHECK_INT(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &operation), 1);
    cai_sim_stream_name(sim, operation.stream, name, sizeof name);
    CHECK_STR(name, "per_thread");
    CHECK_INT(set(memory, 1, 8, CU_STREAM_LEGACY), CUDA_SUCCESS);
    CHECK_INT(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &operation), 1);
    cai_sim_stream_name(sim, operation.stream, name, sizeof name);
    CHECK_STR(name, "legacy");
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
}

static void *test_thread(void *argument)
{
    unsigned char number = (unsigned char)(uintptr_t)argument, host[256];
    CUcontext context = NULL;
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    uintptr_t bad = 0;
    int i;
    bad += cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuStreamCreate(&stream, 1);
    for (i = 0; i < ROUNDS; ++i) {
        bad += cuMemAllocAsync(&memory, 256, stream) || cuMemsetD8Async(memory, number, 256, stream);
        bad += cuMemcpyDtoHAsync(host, memory, 256, stream) || cuMemFreeAsync(memory, stream);
        bad += cuStreamSynchronize(stream) || host[0] != number || host[255] != number;
    }
    bad += cuStreamDestroy(stream) || cuDevicePrimaryCtxRelease(0);
    return (void *)bad;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    void *bad = NULL;
    uintptr_t i;
    for (i = 0; i < THREADS; ++i)
        CHECK_INT(pthread_create(&threads[i], NULL, test_thread, (void *)(i + 1)), 0);
    for (i = 0; i < THREADS; ++i) {
        CHECK_INT(pthread_join(threads[i], &bad), 0);
        CHECK(bad == NULL);
    }
}

static void test_contexts(void)
{
    CUcontext primary = NULL, other = NULL, popped = NULL;
    CUresult (*detach)(CUcontext) = NULL;
    CUdevice device = 9;
    test_symbol("cuCtxDetach", &detach);
    CHECK_INT(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxSetCurrent(primary), CUDA_SUCCESS);
    CHECK_INT(cuCtxCreate(&other, NULL, 0, 1), CUDA_SUCCESS);
    CHECK_INT(cuCtxGetDevice(&device), CUDA_SUCCESS);
    CHECK_INT(device, 1);
    CHECK_INT(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    CHECK(popped == other);
    CHECK_INT(cuCtxGetDevice(&device), CUDA_SUCCESS);
    CHECK_INT(device, 0);
    CHECK_INT(cuCtxDestroy(other), CUDA_SUCCESS);
    CHECK_INT(cuCtxPushCurrent(other), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxPushCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxCreate(&other, NULL, 0, 1), CUDA_SUCCESS);
    CHECK_INT(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    CHECK_INT(detach(other), CUDA_ERROR_INVALID_CONTEXT); /* not current */
    CHECK_INT(cuCtxPushCurrent(other), CUDA_SUCCESS);
    CHECK_INT(detach(other), CUDA_SUCCESS);
    CHECK_INT(cuCtxGetCurrent(&popped), CUDA_SUCCESS);
    CHECK(popped == primary);
}

static void test_peer_queries(CUcontext here, CUcontext there)
{
    int value = 7;
    CHECK_INT(cuDeviceCanAccessPeer(&value, 0, 1), CUDA_SUCCESS);
    CHECK_INT(value, 1);
    CHECK_INT(cuDeviceCanAccessPeer(&value, 0, 0), CUDA_SUCCESS);
    CHECK_INT(value, 0);
    CHECK_INT(cuDeviceCanAccessPeer(&value, 0, 2), CUDA_ERROR_INVALID_DEVICE);
    CHECK_INT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1), CUDA_SUCCESS);
    CHECK_INT(value, 1);
    CHECK_INT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1),
              CUDA_ERROR_INVALID_DEVICE);
    CHECK_INT(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuCtxEnablePeerAccess(there, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuCtxEnablePeerAccess(here, 0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxDisablePeerAccess(there), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK_INT(cuCtxDisablePeerAccess(NULL), CUDA_ERROR_INVALID_CONTEXT);
}

/* What a kernel of the current context that reads 8 bytes ends with. */
static CUresult test_read(CUdeviceptr memory)
{
    const cai_sim_access access = cai_sim_reads(memory, 8);
    CHECK_INT(cai_sim_launch(cai_driver_sim(), 1, "read", NULL, NULL, &access, 1), 0);
    return cuCtxSynchronize();
}

/* A copy needs no access, a kernel does. */
static void test_peer_memory(CUcontext here, CUcontext there)
{
    CUdeviceptr mine = 0, peer = 0, address = 0;
    unsigned char bytes[8] = {0};
    CHECK_INT(cuMemAlloc(&mine, 8), CUDA_SUCCESS);
    CHECK_INT(cuCtxPushCurrent(there), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&peer, 8), CUDA_SUCCESS);
    CHECK_INT(cuMemsetD8(peer, 5, 8), CUDA_SUCCESS);
    CHECK_INT(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_INT(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyPeer(mine, here, peer, there, 8), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoH(bytes, mine, 8), CUDA_SUCCESS);
    CHECK_INT(bytes[7], 5);
    CHECK_INT(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, peer),
              CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuCtxEnablePeerAccess(there, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxEnablePeerAccess(there, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK_INT(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, peer), CUDA_SUCCESS);
    CHECK(address == peer);
    CHECK_INT(test_read(peer), CUDA_SUCCESS);
    CHECK_INT(cuCtxDisablePeerAccess(there), CUDA_SUCCESS);
    CHECK_INT(test_read(mine), CUDA_SUCCESS);
    if (!recorded_is_on()) /* it does not check accesses */
        CHECK_INT(test_read(peer), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_peers(void)
{
    CUcontext here = NULL, there = NULL, third = NULL;
    CHECK_INT(cuCtxCreate(&there, NULL, 0, 1), CUDA_SUCCESS);
    CHECK_INT(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    CHECK_INT(cuCtxCreate(&third, NULL, 0, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxCreate(&here, NULL, 0, 0), CUDA_SUCCESS);
    test_peer_queries(here, there);
    CHECK_INT(cuCtxEnablePeerAccess(third, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    test_peer_memory(here, there);
    CHECK_INT(cuCtxDestroy(here), CUDA_SUCCESS);
    CHECK_INT(cuCtxEnablePeerAccess(there, 0), CUDA_SUCCESS); /* of `third`, which is current again */
    CHECK_INT(cuCtxDestroy(there), CUDA_SUCCESS);
    CHECK_INT(cuCtxDisablePeerAccess(there), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(cuCtxDestroy(third), CUDA_SUCCESS);
}

static void test_all(void)
{
    setenv("CAI_SIM_DEVICES", "2", 1);
    recorded_begin();
    if (!recorded_is_on())
        test_before_init();
    test_devices();
    if (recorded_is_on())
        test_dead_recorded();
    else {
        test_dead_handles();
        test_many_findings();
    }
    test_addresses();
    test_names();
    test_without_context();
    test_contexts();
    test_peers();
    test_order();
    test_queries();
    test_many_streams();
    test_facts_of_streams();
    test_copies();
    test_pointers();
    test_host_functions();
    test_graphs();
    test_graph_nodes();
    test_capture_to_graph();
    test_graph_update();
    test_user_objects();
    test_pools();
    test_captured_memory();
    test_kernels();
    test_sources();
    test_old_launches();
    test_host_flags();
    test_attach();
    test_other_processes();
    test_free_in_order();
    test_calls();
    test_per_thread();
    test_threads();
    recorded_end();
}

CAI_TEST_MAIN(test_all)
