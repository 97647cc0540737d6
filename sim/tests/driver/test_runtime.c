/* test_runtime.c - libcudart over the simulated driver: results and errors as CUDA's documentation has them.
   Linked with libcudart and libcuda; runs with two devices. */
#define _GNU_SOURCE
#include "cai_test.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>

enum { BYTES = 4096 };

static void check_errors(void)
{
    CHECK_STR(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
    CHECK_STR(cudaGetErrorName(cudaSuccess), "cudaSuccess");
    CHECK_STR(cudaGetErrorName((cudaError_t)7654), "unrecognized error code");
    CHECK_STR(cudaGetErrorString((cudaError_t)7654), "unrecognized error code");
    CHECK_STR(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    CHECK_STR(cudaGetErrorString(cudaErrorInvalidDeviceFunction), "invalid device function");
    CHECK_STR(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument");
}

static void *last_error_of_another(void *unused)
{
    int device = -1;
    (void)unused;
    CHECK_INT(cudaPeekAtLastError(), cudaSuccess);
    CHECK_INT(cudaGetDevice(&device), cudaSuccess);
    CHECK_INT(device, 0);
    return NULL;
}

static void in_another_thread(void *(*call)(void *))
{
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, call, NULL), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
}

/* "Returns the last error that has been produced by any of the runtime calls [...] in the host thread and
   resets it to cudaSuccess." A call that succeeds leaves it. */
static void check_last_error(void)
{
    int device = -1;
    CHECK_INT(cudaSetDevice(99), cudaErrorInvalidDevice);
    CHECK_INT(cudaGetDevice(&device), cudaSuccess);
    CHECK_INT(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    CHECK_INT(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    in_another_thread(last_error_of_another);
    CHECK_INT(cudaGetLastError(), cudaErrorInvalidDevice);
    CHECK_INT(cudaGetLastError(), cudaSuccess);
}

static CUcontext current(void)
{
    CUcontext context = NULL;
    CHECK_INT(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
}

static int primary_is_active(int device)
{
    unsigned int flags = 0;
    int active = -1;
    CHECK_INT(cuDevicePrimaryCtxGetState(device, &flags, &active), CUDA_SUCCESS);
    return active;
}

static void *use_device_one(void *unused)
{
    int device = -1;
    CUcontext primary = NULL;
    (void)unused;
    CHECK(current() == NULL);
    CHECK_INT(cudaSetDevice(1), cudaSuccess);
    CHECK(current() != NULL);
    CHECK_INT(primary_is_active(1), 1);
    CHECK_INT(cuDevicePrimaryCtxRetain(&primary, 1), CUDA_SUCCESS);
    CHECK(current() == primary);
    CHECK_INT(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    CHECK_INT(cudaGetDevice(&device), cudaSuccess);
    CHECK_INT(device, 1);
    CHECK_INT(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    CHECK_INT(cudaGetDevice(&device), cudaSuccess);
    CHECK_INT(device, 1);
    CHECK_INT(cudaFree(NULL), cudaSuccess);
    CHECK(current() == primary);
    return NULL;
}

/* The first call that needs a context makes the primary one of device 0 current. */
static void check_initialization(void)
{
    int count = 0;
    int device = -1;
    CHECK_INT(cudaGetDeviceCount(&count), cudaSuccess);
    CHECK_INT(count, 2);
    CHECK_INT(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
    CHECK_INT(cudaGetLastError(), cudaErrorInvalidValue);
    CHECK_INT(cudaGetDevice(&device), cudaSuccess);
    CHECK_INT(device, 0);
    CHECK(current() == NULL);
    CHECK_INT(primary_is_active(0), 0);
    CHECK_INT(cudaFree(NULL), cudaSuccess);
    CHECK(current() != NULL);
    CHECK_INT(primary_is_active(0), 1);
    CHECK_INT(primary_is_active(1), 0);
    in_another_thread(use_device_one);
    CHECK_INT(cudaGetDevice(&device), cudaSuccess);
    CHECK_INT(device, 0);
}

static void check_device(void)
{
    struct cudaDeviceProp prop;
    int value = 0;
    int version = 0;
    char bus[32];
    memset(&prop, 0x55, sizeof prop);
    CHECK_INT(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
    CHECK(prop.name[0] != 0 && strlen(prop.name) < sizeof prop.name);
    CHECK_INT(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
    CHECK_INT(prop.major, value);
    CHECK_INT(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
    CHECK_INT(prop.multiProcessorCount, value);
    CHECK_INT(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlock, 0), cudaSuccess);
    CHECK_UINT(prop.sharedMemPerBlock, (uint64_t)value);
    CHECK_INT(prop.warpSize, 32);
    CHECK_INT(prop.unifiedAddressing, 1);
    CHECK_INT(prop.reserved[0], 0);
    CHECK_INT(cudaGetDeviceProperties(&prop, 2), cudaErrorInvalidDevice);
    CHECK_INT(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
    CHECK_INT(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -1), cudaErrorInvalidDevice);
    CHECK_INT(cudaDeviceGetPCIBusId(bus, (int)sizeof bus, 1), cudaSuccess);
    CHECK_INT(cudaDeviceGetByPCIBusId(&value, bus), cudaSuccess);
    CHECK_INT(value, 1);
    CHECK_INT(cudaRuntimeGetVersion(&version), cudaSuccess);
    CHECK_INT(version, CUDART_VERSION);
    CHECK_INT(cudaDriverGetVersion(&version), cudaSuccess);
    CHECK(version >= 12000);
    (void)cudaGetLastError();
}

static void check_memory(void)
{
    void *device = &device;
    void *host = NULL;
    size_t free_bytes = 0;
    size_t total = 0;
    CHECK_INT(cudaMalloc(&device, 0), cudaSuccess);
    CHECK(device == NULL);
    CHECK_INT(cudaMalloc(NULL, 8), cudaErrorInvalidValue);
    CHECK_INT(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    CHECK(free_bytes <= total && total > 0);
    CHECK_INT(cudaMalloc(&device, total + 1), cudaErrorMemoryAllocation);
    CHECK_INT(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_INT(cudaMalloc(&device, BYTES), cudaSuccess);
    CHECK_INT(cudaFree(device), cudaSuccess);
    CHECK_INT(cudaFree(device), cudaErrorInvalidValue);
    CHECK_INT(cudaMallocHost(&host, BYTES), cudaSuccess);
    CHECK_INT(cudaHostGetDevicePointer(&device, host, 0), cudaSuccess);
    CHECK(device == host);
    CHECK_INT(cudaFreeHost(host), cudaSuccess);
    CHECK_INT(cudaFreeHost(NULL), cudaSuccess);
    (void)cudaGetLastError();
}

static void check_copies(void)
{
    unsigned char in[BYTES];
    unsigned char out[BYTES];
    void *a = NULL;
    void *b = NULL;
    size_t i;
    for (i = 0; i < BYTES; ++i) in[i] = (unsigned char)(i * 7);
    memset(out, 0, sizeof out);
    CHECK_INT(cudaMalloc(&a, BYTES), cudaSuccess);
    CHECK_INT(cudaMalloc(&b, BYTES), cudaSuccess);
    CHECK_INT(cudaMemcpy(a, in, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    CHECK_INT(cudaMemcpy(b, a, BYTES, cudaMemcpyDeviceToDevice), cudaSuccess);
    CHECK_INT(cudaMemcpy(out, b, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_BYTES(out, in, BYTES);
    memset(out, 0, sizeof out);
    CHECK_INT(cudaMemcpy(out, b, BYTES, cudaMemcpyDefault), cudaSuccess);
    CHECK_BYTES(out, in, BYTES);
    CHECK_INT(cudaMemcpy(out, in, 16, cudaMemcpyHostToHost), cudaSuccess);
    CHECK_INT(cudaMemcpy(out, b, BYTES, (enum cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
    CHECK_INT(cudaMemcpy(NULL, b, BYTES, cudaMemcpyDefault), cudaErrorInvalidValue);
    CHECK_INT(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault), cudaSuccess);
    CHECK_INT(cudaMemset(a, 0x1A5, BYTES), cudaSuccess);
    memset(in, 0xA5, BYTES);
    CHECK_INT(cudaMemcpyAsync(out, a, BYTES, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_BYTES(out, in, BYTES);
    CHECK_INT(cudaMemcpyPeer(b, 0, a, 0, BYTES), cudaSuccess);
    CHECK_INT(cudaMemcpyPeer(b, 0, a, 9, BYTES), cudaErrorInvalidDevice);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_INT(cudaFree(a), cudaSuccess);
    CHECK_INT(cudaFree(b), cudaSuccess);
    (void)cudaGetLastError();
}

static void check_rows(void)
{
    unsigned char in[8][10];
    unsigned char out[8][10];
    unsigned char expected[8][10];
    void *device = NULL;
    size_t pitch = 0;
    memset(in, 3, sizeof in);
    memset(out, 0, sizeof out);
    memset(expected, 0, sizeof expected);
    CHECK_INT(cudaMallocPitch(&device, &pitch, 10, 8), cudaSuccess);
    CHECK(pitch >= 10);
    CHECK_INT(cudaMemset2D(device, pitch, 9, 10, 8), cudaSuccess);
    CHECK_INT(cudaMemcpy2D(device, pitch, in, 10, 5, 4, cudaMemcpyHostToDevice), cudaSuccess);
    CHECK_INT(cudaMemcpy2D(out, 10, device, pitch, 10, 8, cudaMemcpyDefault), cudaSuccess);
    memset(expected, 9, sizeof expected);
    memset(expected[0], 3, 5), memset(expected[1], 3, 5), memset(expected[2], 3, 5),
        memset(expected[3], 3, 5);
    CHECK_BYTES(out, expected, sizeof out);
    CHECK_INT(cudaMemcpy2D(out, 9, device, pitch, 10, 8, cudaMemcpyDefault), cudaErrorInvalidPitchValue);
    CHECK_INT(cudaGetLastError(), cudaErrorInvalidPitchValue);
    CHECK_INT(cudaFree(device), cudaSuccess);
}

static void check_boxes(void)
{
    unsigned char host[4][3][6];
    unsigned char expected[4][3][6];
    struct cudaMemcpy3DParms copy;
    struct cudaPitchedPtr device;
    struct cudaExtent extent = {6, 3, 4};
    size_t z;
    memset(host, 0, sizeof host);
    CHECK_INT(cudaMalloc3D(&device, extent), cudaSuccess);
    CHECK_UINT(device.ysize, 3);
    CHECK_INT(cudaMemset3D(device, 5, extent), cudaSuccess);
    extent.height = 2;
    CHECK_INT(cudaMemset3D(device, 6, extent), cudaSuccess);
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = device;
    copy.dstPtr.ptr = host;
    copy.dstPtr.pitch = 6;
    copy.dstPtr.ysize = 3;
    copy.extent.width = 6;
    copy.extent.height = 3;
    copy.extent.depth = 4;
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK_INT(cudaMemcpy3D(&copy), cudaSuccess);
    memset(expected, 5, sizeof expected);
    for (z = 0; z < 4; ++z) memset(expected[z], 6, 12);
    CHECK_BYTES(host, expected, sizeof host);
    CHECK_INT(cudaMemcpy3D(NULL), cudaErrorInvalidValue);
    CHECK_INT(cudaFree(device.ptr), cudaSuccess);
    (void)cudaGetLastError();
}

static void check_streams(void)
{
    cudaStream_t stream = NULL;
    cudaStream_t other = NULL;
    cudaEvent_t event = NULL;
    cudaEvent_t plain = NULL;
    unsigned int flags = 99;
    float ms = -1;
    int least = 9;
    int greatest = 9;
    CHECK_INT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    CHECK_INT(cudaStreamGetFlags(stream, &flags), cudaSuccess);
    CHECK_INT(flags, cudaStreamNonBlocking);
    CHECK_INT(cudaStreamCreate(&other), cudaSuccess);
    CHECK_INT(cudaStreamCreateWithFlags(&other, 77), cudaErrorInvalidValue);
    CHECK_INT(cudaStreamCreate(NULL), cudaErrorInvalidValue);
    CHECK_INT(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    CHECK(greatest <= least);
    CHECK_INT(cudaEventCreate(&event), cudaSuccess);
    CHECK_INT(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming), cudaSuccess);
    CHECK_INT(cudaEventRecord(event, stream), cudaSuccess);
    CHECK_INT(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    CHECK_INT(cudaEventSynchronize(event), cudaSuccess);
    CHECK_INT(cudaEventQuery(event), cudaSuccess);
    CHECK_INT(cudaEventElapsedTime(&ms, event, event), cudaSuccess);
    CHECK(ms >= 0);
    CHECK_INT(cudaEventElapsedTime(&ms, event, plain), cudaErrorInvalidResourceHandle);
    CHECK_INT(cudaStreamSynchronize(other), cudaSuccess);
    CHECK_INT(cudaStreamQuery(other), cudaSuccess);
    CHECK_INT(cudaEventDestroy(event), cudaSuccess);
    CHECK_INT(cudaEventDestroy(plain), cudaSuccess);
    CHECK_INT(cudaStreamDestroy(other), cudaSuccess);
    CHECK_INT(cudaStreamDestroy(stream), cudaSuccess);
    (void)cudaGetLastError();
}

static int order[4];
static int ordered;

static void CUDART_CB note_call(void *data)
{
    order[ordered++ & 3] = *(const int *)data;
}

static void CUDART_CB note_callback(cudaStream_t stream, cudaError_t status, void *data)
{
    (void)stream;
    CHECK_INT(status, cudaSuccess);
    order[ordered++ & 3] = *(const int *)data;
}

static void check_host_functions(void)
{
    static int numbers[3] = {1, 2, 3};
    cudaStream_t stream = NULL;
    ordered = 0;
    CHECK_INT(cudaStreamCreate(&stream), cudaSuccess);
    CHECK_INT(cudaLaunchHostFunc(stream, note_call, &numbers[0]), cudaSuccess);
    CHECK_INT(cudaStreamAddCallback(stream, note_callback, &numbers[1], 0), cudaSuccess);
    CHECK_INT(cudaLaunchHostFunc(stream, note_call, &numbers[2]), cudaSuccess);
    CHECK_INT(cudaLaunchHostFunc(stream, NULL, NULL), cudaErrorInvalidValue);
    CHECK_INT(cudaStreamSynchronize(stream), cudaSuccess);
    CHECK_INT(ordered, 3);
    CHECK(order[0] == 1 && order[1] == 2 && order[2] == 3);
    CHECK_INT(cudaStreamDestroy(stream), cudaSuccess);
    (void)cudaGetLastError();
}

static int is_capturing(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    CHECK_INT(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    return status == cudaStreamCaptureStatusActive;
}

/* A graph holds the work that was captured, and does it at each launch. */
static void check_captures(void)
{
    unsigned char host[16];
    unsigned char expected[16];
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    size_t nodes = 0;
    void *device = NULL;
    int launch;
    memset(expected, 7, sizeof expected);
    CHECK_INT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    CHECK_INT(cudaMalloc(&device, sizeof host), cudaSuccess);
    CHECK_INT(cudaMemset(device, 0, sizeof host), cudaSuccess);
    CHECK(!is_capturing(stream));
    CHECK_INT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    CHECK(is_capturing(stream));
    CHECK_INT(cudaMemsetAsync(device, 7, sizeof host, stream), cudaSuccess);
    CHECK_INT(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    CHECK(!is_capturing(stream));
    CHECK_INT(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_INT(host[0], 0);
    CHECK_INT(cudaGraphGetNodes(graph, NULL, &nodes), cudaSuccess);
    CHECK_UINT(nodes, 1);
    CHECK_INT(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    CHECK_INT(cudaGraphDestroy(graph), cudaSuccess);
    for (launch = 0; launch < 2; ++launch) {
        CHECK_INT(cudaMemset(device, 0, sizeof host), cudaSuccess);
        CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
        CHECK_INT(cudaGraphLaunch(executable, stream), cudaSuccess);
        CHECK_INT(cudaStreamSynchronize(stream), cudaSuccess);
        CHECK_INT(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
        CHECK_BYTES(host, expected, sizeof host);
    }
    CHECK_INT(cudaGraphExecDestroy(executable), cudaSuccess);
    CHECK_INT(cudaFree(device), cudaSuccess);
    CHECK_INT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    CHECK_INT(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    CHECK_INT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK_INT(cudaStreamDestroy(stream), cudaSuccess);
    (void)cudaGetLastError();
}

static void check_pools(void)
{
    cudaMemPool_t pool = NULL;
    cudaMemPool_t standard = NULL;
    struct cudaMemPoolProps props;
    uint64_t threshold = 77;
    void *memory = NULL;
    memset(&props, 0, sizeof props);
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    CHECK_INT(cudaDeviceGetDefaultMemPool(&standard, 0), cudaSuccess);
    CHECK_INT(cudaDeviceGetMemPool(&pool, 0), cudaSuccess);
    CHECK(pool == standard);
    CHECK_INT(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), cudaSuccess);
    CHECK_UINT(threshold, 0);
    CHECK_INT(cudaMallocAsync(&memory, BYTES, NULL), cudaSuccess);
    CHECK(memory != NULL);
    CHECK_INT(cudaFreeAsync(memory, NULL), cudaSuccess);
    CHECK_INT(cudaMemPoolCreate(&pool, &props), cudaSuccess);
    CHECK_INT(cudaMallocFromPoolAsync(&memory, BYTES, pool, NULL), cudaSuccess);
    CHECK_INT(cudaFreeAsync(memory, NULL), cudaSuccess);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_INT(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
    CHECK_INT(cudaMemPoolDestroy(pool), cudaSuccess);
    CHECK_INT(cudaDeviceGetDefaultMemPool(&pool, 7), cudaErrorInvalidDevice);
    CHECK_INT(cudaMallocAsync(NULL, 8, NULL), cudaErrorInvalidValue);
    (void)cudaGetLastError();
}

static void check_pointers(void)
{
    struct cudaPointerAttributes attributes;
    void *memory = NULL;
    int local = 0;
    CHECK_INT(cudaMalloc(&memory, BYTES), cudaSuccess);
    CHECK_INT(cudaPointerGetAttributes(&attributes, (char *)memory + 8), cudaSuccess);
    CHECK_INT(attributes.type, cudaMemoryTypeDevice);
    CHECK_INT(attributes.device, 0);
    CHECK(attributes.devicePointer == (void *)((char *)memory + 8));
    CHECK_INT(cudaFree(memory), cudaSuccess);
    CHECK_INT(cudaMallocHost(&memory, BYTES), cudaSuccess);
    CHECK_INT(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
    CHECK_INT(attributes.type, cudaMemoryTypeHost);
    CHECK(attributes.hostPointer == memory);
    CHECK_INT(cudaFreeHost(memory), cudaSuccess);
    CHECK_INT(cudaMallocManaged(&memory, BYTES, cudaMemAttachGlobal), cudaSuccess);
    CHECK_INT(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
    CHECK_INT(attributes.type, cudaMemoryTypeManaged);
    CHECK(attributes.hostPointer == memory && attributes.devicePointer == memory);
    CHECK_INT(cudaFree(memory), cudaSuccess);
    CHECK_INT(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
    CHECK_INT(attributes.type, cudaMemoryTypeUnregistered);
    CHECK_INT(attributes.device, cudaInvalidDeviceId);
    CHECK(attributes.devicePointer == NULL);
    CHECK_INT(cudaPointerGetAttributes(NULL, &local), cudaErrorInvalidValue);
    (void)cudaGetLastError();
}

static void check_entry_points(void)
{
    CUresult(CUDAAPI * version)(int *) = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointVersionNotSufficent;
    const void *table = &found;
    cudaUUID_t id;
    void *entry = NULL;
    int number = 0;
    memset(&id, 1, sizeof id);
    CHECK_INT(
        cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &entry, 12000, cudaEnableDefault, &found),
        cudaSuccess);
    CHECK_INT(found, cudaDriverEntryPointSuccess);
    CHECK(entry != NULL);
    memcpy(&version, &entry, sizeof version);
    CHECK(version(&number) == CUDA_SUCCESS && number >= 12000);
    CHECK_INT(cudaGetDriverEntryPointByVersion("cuNothing", &entry, 12000, cudaEnableDefault, &found),
              cudaSuccess);
    CHECK_INT(found, cudaDriverEntryPointSymbolNotFound);
    CHECK(entry == NULL);
    CHECK_INT(cudaGetDriverEntryPointByVersion(NULL, &entry, 12000, 0, &found), cudaErrorInvalidValue);
    CHECK(cudaGetExportTable(&table, &id) != cudaSuccess);
    CHECK(table == NULL);
    (void)cudaGetLastError();
}

/* Stream 0 of a _ptsz function is the stream of the host thread. */
static void check_per_thread(void)
{
    cudaError_t (*id_of)(cudaStream_t, unsigned long long *) = NULL;
    cudaError_t (*copy)(void *, const void *, size_t, enum cudaMemcpyKind) = NULL;
    unsigned long long plain = 0;
    unsigned long long thread = 0;
    unsigned long long zero = 0;
    char from[4] = "abc";
    char to[4] = "";
    void *symbol = dlsym(RTLD_DEFAULT, "cudaStreamGetId_ptsz");
    CHECK(symbol != NULL);
    memcpy(&id_of, &symbol, sizeof id_of);
    CHECK_INT(cudaStreamGetId(NULL, &plain), cudaSuccess);
    CHECK_INT(cudaStreamGetId(cudaStreamPerThread, &thread), cudaSuccess);
    CHECK_INT(id_of(NULL, &zero), cudaSuccess);
    CHECK_UINT(zero, thread);
    CHECK(zero != plain);
    symbol = dlsym(RTLD_DEFAULT, "cudaMemcpy_ptds");
    CHECK(symbol != NULL);
    memcpy(&copy, &symbol, sizeof copy);
    CHECK_INT(copy(to, from, sizeof to, cudaMemcpyDefault), cudaSuccess);
    CHECK_STR(to, "abc");
}

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .global .align 4 .b8 table[64];\n"
                          ".visible .entry twice(.param .u64 twice_param_0, .param .u32 twice_param_1)\n"
                          "{\n\t.reg .b64 %rd<3>;\n\t.reg .f32 %f<3>;\n"
                          "\tld.param.u64 %rd1, [twice_param_0];\n\tcvta.to.global.u64 %rd2, %rd1;\n"
                          "\tld.global.f32 %f1, [%rd2];\n\tadd.f32 %f2, %f1, %f1;\n"
                          "\tst.global.f32 [%rd2], %f2;\n\tret;\n}\n";

extern void **__cudaRegisterFatBinary(void *);
extern void __cudaRegisterFatBinaryEnd(void **);
extern void __cudaUnregisterFatBinary(void **);
extern void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *,
                                   void *, int *);
extern void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
extern unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, struct CUstream_st *);
extern cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);

static char stub_of_twice, stub_of_nothing, shadow_of_table;

/* A driver that cannot read an image finds every name. */
static cudaError_t error_of_nothing(void)
{
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUresult found;
    CHECK_INT(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
    found = cuLibraryGetKernel(&kernel, library, "nothing");
    CHECK_INT(cuLibraryUnload(library), CUDA_SUCCESS);
    return found == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

static void check_launch(void)
{
    struct cudaFuncAttributes attributes;
    cudaFunction_t function = NULL;
    dim3 one = {1, 1, 1};
    dim3 none = {0, 1, 1};
    void *memory = NULL;
    unsigned int count = 4;
    void *arguments[2];
    int blocks = 0;
    arguments[0] = &memory;
    arguments[1] = &count;
    CHECK_INT(cudaMalloc(&memory, 16), cudaSuccess);
    CHECK_INT(cudaLaunchKernel(&stub_of_twice, one, one, arguments, 0, NULL), cudaSuccess);
    CHECK_INT(cudaLaunchKernel(&stub_of_twice, none, one, arguments, 0, NULL), cudaErrorInvalidConfiguration);
    CHECK_INT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CHECK_INT(cudaLaunchKernel(&stub_of_nothing, one, one, arguments, 0, NULL), error_of_nothing());
    CHECK_INT(cudaLaunchKernel(NULL, one, one, arguments, 0, NULL), cudaErrorInvalidDeviceFunction);
    CHECK_INT(cudaGetFuncBySymbol(&function, &stub_of_twice), cudaSuccess);
    CHECK(function != NULL);
    CHECK_INT(cudaLaunchKernel(function, one, one, arguments, 0, NULL), cudaSuccess);
    CHECK_INT(cudaFuncGetAttributes(&attributes, &stub_of_twice), cudaSuccess);
    CHECK(attributes.maxThreadsPerBlock > 0);
    CHECK_INT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &stub_of_twice, 128, 0), cudaSuccess);
    CHECK(blocks > 0);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_INT(cudaFree(memory), cudaSuccess);
    (void)cudaGetLastError();
}

/* The functions that the compiler's code calls. */
static void check_registered(void)
{
    char host[8] = "seven..";
    char back[8] = "";
    void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)ptx);
    void *address = NULL;
    size_t bytes = 0;
    dim3 grid = {1, 2, 3};
    dim3 block = {4, 5, 6};
    size_t shared = 0;
    cudaStream_t stream = NULL;
    CHECK(handle != NULL);
    __cudaRegisterFunction(handle, &stub_of_twice, NULL, "twice", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &stub_of_nothing, NULL, "nothing", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, &shadow_of_table, NULL, "table", 0, 64, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    check_launch();
    CHECK_INT(cudaGetSymbolSize(&bytes, &shadow_of_table), cudaSuccess);
    CHECK_UINT(bytes, 64);
    CHECK_INT(cudaGetSymbolAddress(&address, &shadow_of_table), cudaSuccess);
    CHECK_INT(cudaMemcpyToSymbol(&shadow_of_table, host, 8, 8, cudaMemcpyHostToDevice), cudaSuccess);
    CHECK_INT(cudaMemcpyFromSymbol(back, &shadow_of_table, 8, 8, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_STR(back, host);
    CHECK_INT(cudaMemcpyToSymbol(&shadow_of_table, host, 8, 60, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
    CHECK_INT(cudaGetSymbolAddress(&address, &stub_of_twice), cudaErrorInvalidSymbol);
    CHECK_INT(__cudaPushCallConfiguration(grid, block, 7, cudaStreamPerThread), 0);
    CHECK_INT(__cudaPopCallConfiguration(&block, &grid, &shared, &stream), cudaSuccess);
    CHECK(block.z == 3 && grid.x == 4 && shared == 7 && stream == cudaStreamPerThread);
    CHECK(__cudaPopCallConfiguration(&block, &grid, &shared, &stream) != cudaSuccess);
    __cudaUnregisterFatBinary(handle);
    CHECK_INT(cudaGetSymbolAddress(&address, &shadow_of_table), cudaErrorInvalidSymbol);
    (void)cudaGetLastError();
}

/* The driver knows whether access is enabled. */
static void check_access_of_one(void)
{
    CUcontext one = NULL;
    CHECK_INT(cuDevicePrimaryCtxRetain(&one, 1), CUDA_SUCCESS);
    CHECK_INT(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
    CHECK_INT(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    CHECK_INT((int)cudaDeviceEnablePeerAccess(1, 0), (int)cuCtxEnablePeerAccess(one, 0));
    CHECK_INT(cudaDeviceDisablePeerAccess(1), cudaSuccess);
    CHECK_INT((int)cudaDeviceDisablePeerAccess(1), (int)cuCtxDisablePeerAccess(one));
    CHECK_INT(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

static void check_peers(void)
{
    unsigned char host[16];
    unsigned char expected[16];
    void *here = NULL;
    void *there = NULL;
    int can = -1;
    memset(expected, 4, sizeof expected);
    CHECK_INT(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
    CHECK_INT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    if (can) check_access_of_one();
    CHECK_INT(cudaMalloc(&here, sizeof host), cudaSuccess);
    CHECK_INT(cudaSetDevice(1), cudaSuccess);
    CHECK_INT(cudaMalloc(&there, sizeof host), cudaSuccess);
    CHECK_INT(cudaMemset(there, 4, sizeof host), cudaSuccess);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_INT(cudaMemcpyPeer(here, 0, there, 1, sizeof host), cudaSuccess);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_INT(cudaFree(there), cudaSuccess);
    CHECK_INT(cudaSetDevice(0), cudaSuccess);
    CHECK_INT(cudaMemcpy(host, here, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_BYTES(host, expected, sizeof host);
    CHECK_INT(cudaFree(here), cudaSuccess);
    (void)cudaGetLastError();
}

/* As in cai_driver.h, which another libcuda.so.1 does not have. */
typedef struct driver_call {
    const char *name;
    const void *caller;
    uint64_t site;
    const char *kernel;
    int32_t opaque;
    int32_t reserved;
} driver_call;

static int64_t calls_named(int32_t (*call_of)(uint64_t, driver_call *), const char *name)
{
    driver_call call;
    uint64_t tag;
    int64_t count = 0;
    for (tag = 1; call_of(tag, &call); ++tag) {
        Dl_info from;
        if (strcmp(call.name, name)) continue;
        ++count;
        CHECK(dladdr(call.caller, &from) && from.dli_fname && !strstr(from.dli_fname, "libcudart"));
    }
    return count;
}

/* The driver's calls belong to the call of the runtime, and that to the program. */
static void check_names(void)
{
    int32_t (*call_of)(uint64_t, driver_call *) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "cai_driver_call_of");
    void *memory = NULL;
    int64_t before;
    if (!symbol) return;
    memcpy(&call_of, &symbol, sizeof call_of);
    CHECK_INT(cudaMalloc(&memory, BYTES), cudaSuccess);
    before = calls_named(call_of, "cudaMemsetAsync");
    CHECK_INT(cudaMemsetAsync(memory, 0, BYTES, NULL), cudaSuccess);
    CHECK_INT(calls_named(call_of, "cudaMemsetAsync"), before + 1);
    CHECK_INT(calls_named(call_of, "cuMemsetD8Async"), 0);
    CHECK_INT(cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, 0, BYTES, NULL), CUDA_SUCCESS);
    CHECK_INT(calls_named(call_of, "cuMemsetD8Async"), 1);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_INT(cudaFree(memory), cudaSuccess);
}

/* Work that is not done yet is no error. The simulation does one piece of work at each query. */
static void check_not_ready(void)
{
    cudaStream_t stream = NULL;
    void *memory = NULL;
    cudaError_t error;
    int seen = 0;
    int i;
    CHECK_INT(cudaStreamCreate(&stream), cudaSuccess);
    CHECK_INT(cudaMalloc(&memory, BYTES), cudaSuccess);
    for (i = 0; i < 20; ++i) CHECK_INT(cudaMemsetAsync(memory, i, BYTES, stream), cudaSuccess);
    for (i = 0; i < 1000; ++i) {
        error = cudaStreamQuery(stream);
        CHECK(error == cudaSuccess || error == cudaErrorNotReady);
        CHECK_INT(cudaPeekAtLastError(), cudaSuccess);
        seen += error == cudaErrorNotReady;
        if (error == cudaSuccess) break;
    }
    CHECK(seen > 0);
    CHECK(i < 1000);
    CHECK_INT(cudaStreamSynchronize(stream), cudaSuccess);
    CHECK_INT(cudaFree(memory), cudaSuccess);
    CHECK_INT(cudaStreamDestroy(stream), cudaSuccess);
}

/* What is not served says so, and fails as CUDA says that it may. */
static void check_not_served(void)
{
    cudaArray_t array = NULL;
    struct cudaChannelFormatDesc texel = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    CHECK_INT(texel.x, 8);
    CHECK_INT(cudaMallocArray(&array, &texel, 4, 4, 0), cudaErrorNotSupported);
    CHECK_INT(cudaGetLastError(), cudaErrorNotSupported);
}

/* "Any subsequent API call to this device will reinitialize the device." */
static void check_reset(void)
{
    void *memory = NULL;
    void *again = NULL;
    CHECK_INT(cudaMalloc(&memory, BYTES), cudaSuccess);
    CHECK_INT(cudaDeviceReset(), cudaSuccess);
    CHECK_INT(cudaMalloc(&again, BYTES), cudaSuccess);
    CHECK_INT(primary_is_active(0), 1);
    CHECK_INT(cudaMemset(again, 1, BYTES), cudaSuccess);
    CHECK_INT(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_INT(cudaFree(again), cudaSuccess);
    (void)cudaGetLastError();
}

static void run(void)
{
    check_errors();
    check_initialization();
    check_last_error();
    check_device();
    check_memory();
    check_copies();
    check_rows();
    check_boxes();
    check_streams();
    check_host_functions();
    check_captures();
    check_pools();
    check_pointers();
    check_entry_points();
    check_per_thread();
    check_registered();
    check_peers();
    check_names();
    check_not_ready();
    check_not_served();
    check_reset();
}

/* Before any call: the driver reads the environment at its first use. As with CUDA, no primary context is
   active before somebody retains it. */
__attribute__((constructor)) static void choose_simulation(void)
{
    setenv("CAI_SIM_DEVICES", "2", 1);
    setenv("CAI_SIM_OPTIONS", "primary_inactive", 0);
}

CAI_TEST_MAIN(run)
