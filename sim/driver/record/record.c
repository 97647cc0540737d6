/* record.c - the recorder: a libcuda.so.1 in front of the real one, with the same calls in the simulation
 * SPDX-License-Identifier: MIT
 *
 * Each entry point calls the real driver, and the program gets its answer. The simulation then does the same call:
 * memory is adopted where the real driver made it, handles of the real driver stand for those of the simulation.
 * It moves no data, so that it has the trace and nothing else. Most entries are made by make_tables.py; here are
 * those that need more than that.
 *
 * What ends something is done in the simulation first: the real driver may give the same handle or address to
 * another thread at once. */
#include "../driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_UNKNOWN = 3, RECORD_QUERIES = 1 << 20, RECORD_NODES = 256 };

static driver_map record_handles;
static int record_version; /* of the real driver */
static driver_pointer record_real_current; /* cuCtxGetCurrent of the real driver */

/* ------------------------------------------------------------------------ >>opening */
static driver_pointer record_find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    driver_pointer function;
    memcpy(&function, &found, sizeof function);
    return function;
}

static driver_pointer record_real(const char *name)
{
    int row;
    for (row = 0; row < driver_rows; ++row)
        if (!strcmp(driver_table[row].name, name))
            return driver_table[row].real;
    return NULL;
}

/* The devices of the real driver, or -1. */
static int record_begin(char *text, size_t capacity)
{
    CUresult (*init)(unsigned) = (CUresult (*)(unsigned))record_real("cuInit");
    CUresult (*version)(int *) = (CUresult (*)(int *))record_real("cuDriverGetVersion");
    CUresult (*count)(int *) = (CUresult (*)(int *))record_real("cuDeviceGetCount");
    CUresult result = CUDA_ERROR_NOT_FOUND;
    int devices = 0;
    if (init && version && count)
        result = init(0);
    if (result == CUDA_SUCCESS)
        result = version(&record_version);
    if (result == CUDA_SUCCESS)
        result = count(&devices);
    if (result == CUDA_SUCCESS)
        return devices;
    snprintf(text, capacity, "the driver cannot be used: error %d", (int)result);
    return -1;
}

int32_t cai_driver_record(const char *path, char *text, size_t capacity)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int row, devices;
    if (!library) {
        snprintf(text, capacity, "%s", dlerror());
        return 0;
    }
    if (dlsym(library, "cai_driver_record")) {
        snprintf(text, capacity, "%s is the recorder itself", path);
        return 0;
    }
    for (row = 0; row < driver_rows; ++row)
        driver_table[row].real = record_find(library, driver_table[row].name);
    record_real_current = record_real("cuCtxGetCurrent");
    devices = record_begin(text, capacity);
    if (devices < 0)
        return 0;
    if (!cai_driver_configure(devices ? devices : 1, UINT64_MAX / 4, 0)) {
        snprintf(text, capacity, "the simulation was used before");
        return 0;
    }
    driver_recorder = 1;
    cai_sim_adopt(cai_driver_sim(), 0);
    return 1;
}

/* ------------------------------------------------------------------------ >>handles */
uint64_t record_handle(uint64_t real, uint64_t unknown)
{
    void *own;
    if (real <= 2)
        return real; /* none, or one of the default streams */
    own = driver_map_get(&record_handles, real);
    return own ? driver_number(own) : unknown;
}

void record_bind(uint64_t real, uint64_t own)
{
    if (real > 2)
        driver_map_set(&record_handles, real, driver_handle(own));
}

void record_look(const char *kind, uint64_t real)
{
    const uint64_t own = record_handle(real, 0);
    if (own > 2)
        cai_sim_look(cai_driver_sim(), kind, own);
}

void record_adopt(uint64_t address)
{
    cai_sim_adopt(cai_driver_sim(), address);
}

void CUDA_CB record_no_function(void *argument)
{
    (void)argument;
}

void CUDA_CB record_no_callback(CUstream stream, CUresult status, void *argument)
{
    (void)stream;
    (void)status;
    (void)argument;
}

static CUstream record_stream(CUstream stream)
{
    return (CUstream)driver_handle(record_handle(driver_number(stream), RECORD_UNKNOWN));
}

static CUgraph record_graph(CUgraph graph)
{
    return (CUgraph)driver_handle(record_handle(driver_number(graph), RECORD_UNKNOWN));
}

static void record_bind_pointer(const void *real, const void *own)
{
    record_bind(driver_number(real), driver_number(own));
}

/* ----------------------------------------------------------------------- >>contexts */
/* A runtime that is linked statically makes the primary context, and makes it current, by private tables of the
 * driver, which nobody else sees. So the context that is current is asked for before each call. One that is not
 * known is adopted. */
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;

/* 1: `real`, a context of the device that is current, is its primary one. An active one is retained and released. */
static int record_is_primary(CUcontext real, CUdevice device)
{
    CUresult (*state)(CUdevice, unsigned *, int *) =
        (CUresult (*)(CUdevice, unsigned *, int *))record_real("cuDevicePrimaryCtxGetState");
    CUresult (*retain)(CUcontext *, CUdevice) =
        (CUresult (*)(CUcontext *, CUdevice))record_real("cuDevicePrimaryCtxRetain");
    CUresult (*release)(CUdevice) = (CUresult (*)(CUdevice))record_real("cuDevicePrimaryCtxRelease_v2");
    CUcontext primary = NULL;
    unsigned flags = 0;
    int active = 0;
    if (!state || !retain || !release || state(device, &flags, &active) != CUDA_SUCCESS || !active)
        return 0;
    if (retain(&primary, device) != CUDA_SUCCESS)
        return 0;
    release(device);
    return primary == real;
}

/* The context of the simulation for the one that is current, which is made if there is none. 0: it cannot be told. */
static uint64_t record_adopt_context(CUcontext real)
{
    CUresult (*device_of)(CUdevice *) = (CUresult (*)(CUdevice *))record_real("cuCtxGetDevice");
    uint64_t own = record_handle(driver_number(real), 0);
    CUcontext made = NULL;
    CUdevice device = 0;
    if (own || !real || !device_of)
        return own;
    pthread_mutex_lock(&record_lock);
    own = record_handle(driver_number(real), 0);
    if (!own && device_of(&device) == CUDA_SUCCESS) {
        if (!record_is_primary(real, device))
            own = cai_sim_context_create(cai_driver_sim(), device);
        else if (do_cuDevicePrimaryCtxRetain(&made, device) == CUDA_SUCCESS)
            own = driver_number(made);
        record_bind(driver_number(real), own);
    }
    pthread_mutex_unlock(&record_lock);
    return own;
}

void record_agree(void)
{
    CUresult (*current)(CUcontext *) = (CUresult (*)(CUcontext *))record_real_current;
    cai_sim *sim = cai_driver_sim();
    CUcontext real = NULL;
    uint64_t own;
    if (!current || current(&real) != CUDA_SUCCESS)
        return;
    own = record_adopt_context(real);
    if (own != cai_sim_current(sim) && (own || !real))
        (void)do_cuCtxSetCurrent((CUcontext)driver_handle(own));
}

CUresult record_cuCtxSetCurrent(int row, CUresult (*real)(CUcontext), CUcontext context)
{
    const CUresult result = real(context);
    if (result == CUDA_SUCCESS)
        driver_followed(row, do_cuCtxSetCurrent((CUcontext)driver_handle(record_adopt_context(context))));
    return result;
}

CUresult record_cuCtxPushCurrent_v2(int row, CUresult (*real)(CUcontext), CUcontext context)
{
    const CUresult result = real(context);
    if (result == CUDA_SUCCESS)
        driver_followed(row, do_cuCtxPushCurrent_v2((CUcontext)driver_handle(record_adopt_context(context))));
    return result;
}

/* ---------------------------------------------------------------------- >>functions */
/* The entry of this library for a function that the real driver has. Its own pointer stays if the headers do not say
 * which arguments it has: the version that is asked for may be newer, or it is of another API. */
static void record_replace(CUresult (*real)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *),
                           const char *symbol, void **function, int version, cuuint64_t flags)
{
    int known = 0;
    void *older = NULL;
    driver_row *row;
    if (version > CUDA_VERSION) {
        real(symbol, &older, CUDA_VERSION, flags, NULL);
        if (older != *function)
            return;
    }
    version = version < record_version ? version : record_version;
    row = driver_find(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
    if (!row || !row->real || !row->function)
        return;
    row->asked = 1;
    memcpy(function, &row->function, sizeof *function);
}

CUresult record_cuGetProcAddress_v2(int row,
                                    CUresult (*real)(const char *, void **, int, cuuint64_t,
                                                     CUdriverProcAddressQueryResult *),
                                    const char *symbol, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    const CUresult result = real(symbol, function, version, flags, status);
    (void)row;
    if (result == CUDA_SUCCESS && *function)
        record_replace(real, symbol, function, version, flags);
    return result;
}

CUresult record_cuGetProcAddress(int row, CUresult (*real)(const char *, void **, int, cuuint64_t),
                                 const char *symbol, void **function, int version, cuuint64_t flags)
{
    CUresult (*newer)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    const CUresult result = real(symbol, function, version, flags);
    (void)row;
    newer = (CUresult (*)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *))record_real(
        "cuGetProcAddress_v2");
    if (result == CUDA_SUCCESS && *function && newer)
        record_replace(newer, symbol, function, version, flags);
    return result;
}

/* The order of functions in an image is that of the real driver: each is found by its name. */
CUresult record_cuModuleEnumerateFunctions(int row, CUresult (*real)(CUfunction *, unsigned, CUmodule),
                                           CUfunction *functions, unsigned int count, CUmodule module)
{
    CUresult (*name_of)(const char **, CUfunction) =
        (CUresult (*)(const char **, CUfunction))record_real("cuFuncGetName");
    const CUmodule own = (CUmodule)driver_handle(record_handle(driver_number(module), 0));
    const CUresult result = real(functions, count, module);
    unsigned i;
    for (i = 0; result == CUDA_SUCCESS && name_of && i < count; ++i) {
        CUfunction found = NULL;
        const char *name = NULL;
        if (name_of(&name, functions[i]) != CUDA_SUCCESS)
            continue;
        driver_followed(row, do_cuModuleGetFunction(&found, own, name));
        record_bind_pointer(functions[i], found);
    }
    return result;
}

CUresult record_cuLibraryEnumerateKernels(int row, CUresult (*real)(CUkernel *, unsigned, CUlibrary),
                                          CUkernel *kernels, unsigned int count, CUlibrary library)
{
    CUresult (*name_of)(const char **, CUkernel) =
        (CUresult (*)(const char **, CUkernel))record_real("cuKernelGetName");
    const CUlibrary own = (CUlibrary)driver_handle(record_handle(driver_number(library), 0));
    const CUresult result = real(kernels, count, library);
    unsigned i;
    for (i = 0; result == CUDA_SUCCESS && name_of && i < count; ++i) {
        CUkernel found = NULL;
        const char *name = NULL;
        if (name_of(&name, kernels[i]) != CUDA_SUCCESS)
            continue;
        driver_followed(row, do_cuLibraryGetKernel(&found, own, name));
        record_bind_pointer(kernels[i], found);
    }
    return result;
}

CUresult record_cuLaunchKernelEx(int row, CUresult (*real)(const CUlaunchConfig *, CUfunction, void **, void **),
                                 const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
    const CUfunction own = (CUfunction)driver_handle(record_handle(driver_number(function), 0));
    const CUresult result = real(config, function, arguments, extra);
    CUlaunchConfig copy;
    if (result != CUDA_SUCCESS)
        return result;
    copy = *config;
    copy.hStream = record_stream(config->hStream);
    driver_followed(row, do_cuLaunchKernelEx(&copy, own, arguments, extra));
    return result;
}

/* ------------------------------------------------------------------------- >>queries */
/* What the real driver has done is done here, too. What it has not may be done here or not. */
CUresult record_cuStreamQuery(int row, CUresult (*real)(CUstream), CUstream stream)
{
    const CUresult result = real(stream);
    CUresult own = CUDA_ERROR_NOT_READY;
    int i;
    if (result != CUDA_SUCCESS)
        return result;
    for (i = 0; i < RECORD_QUERIES && own == CUDA_ERROR_NOT_READY; ++i)
        own = do_cuStreamQuery(record_stream(stream));
    driver_followed(row, own);
    return result;
}

CUresult record_cuEventQuery(int row, CUresult (*real)(CUevent), CUevent event)
{
    const CUevent known = (CUevent)driver_handle(record_handle(driver_number(event), RECORD_UNKNOWN));
    const CUresult result = real(event);
    CUresult own = CUDA_ERROR_NOT_READY;
    int i;
    if (result != CUDA_SUCCESS)
        return result;
    for (i = 0; i < RECORD_QUERIES && own == CUDA_ERROR_NOT_READY; ++i)
        own = do_cuEventQuery(known);
    driver_followed(row, own);
    return result;
}

/* -------------------------------------------------------------------------- >>memory */
/* The rows are as far apart as the real driver chose. */
CUresult record_cuMemAllocPitch_v2(int row, CUresult (*real)(CUdeviceptr *, size_t *, size_t, size_t, unsigned),
                                   CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int unit)
{
    const CUresult result = real(pointer, pitch, width, height, unit);
    CUdeviceptr own = 0;
    if (result != CUDA_SUCCESS)
        return result;
    record_adopt(*pointer);
    driver_followed(row, do_cuMemAlloc_v2(&own, *pitch * height));
    record_adopt(0);
    return result;
}

static void record_host_memory(int row, const void *pointer, size_t bytes, unsigned int flags)
{
    void *own = NULL;
    record_adopt(driver_number(pointer));
    driver_followed(row, do_cuMemHostAlloc(&own, bytes, flags));
    record_adopt(0);
}

CUresult record_cuMemHostAlloc(int row, CUresult (*real)(void **, size_t, unsigned), void **pointer, size_t bytes,
                               unsigned int flags)
{
    const CUresult result = real(pointer, bytes, flags);
    if (result == CUDA_SUCCESS)
        record_host_memory(row, *pointer, bytes, flags);
    return result;
}

CUresult record_cuMemAllocHost_v2(int row, CUresult (*real)(void **, size_t), void **pointer, size_t bytes)
{
    const CUresult result = real(pointer, bytes);
    if (result == CUDA_SUCCESS)
        record_host_memory(row, *pointer, bytes, 0);
    return result;
}

CUresult record_cuMemHostRegister_v2(int row, CUresult (*real)(void *, size_t, unsigned), void *pointer,
                                     size_t bytes, unsigned int flags)
{
    const CUresult result = real(pointer, bytes, flags);
    if (result == CUDA_SUCCESS)
        driver_followed(row, do_cuMemHostRegister_v2(pointer, bytes, flags & ~(unsigned)CU_MEMHOSTREGISTER_READ_ONLY));
    return result;
}

/* The simulation does not give memory to other processes: here it need not know that the real driver may. */
CUresult record_cuMemPoolCreate(int row, CUresult (*real)(CUmemoryPool *, const CUmemPoolProps *),
                                CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    const CUresult result = real(pool, properties);
    CUmemPoolProps copy;
    CUmemoryPool own = NULL;
    if (result != CUDA_SUCCESS)
        return result;
    copy = *properties;
    copy.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    driver_followed(row, do_cuMemPoolCreate(&own, &copy));
    record_bind_pointer(*pool, own);
    return result;
}

CUresult record_cuMemCreate(int row,
                            CUresult (*real)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                                             unsigned long long),
                            CUmemGenericAllocationHandle *handle, size_t bytes,
                            const CUmemAllocationProp *properties, unsigned long long flags)
{
    const CUresult result = real(handle, bytes, properties, flags);
    CUmemAllocationProp copy;
    CUmemGenericAllocationHandle own = 0;
    if (result != CUDA_SUCCESS)
        return result;
    copy = *properties;
    copy.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    driver_followed(row, do_cuMemCreate(&own, bytes, &copy, flags));
    record_bind(*handle, own);
    return result;
}

/* Memory of another process is memory like any other here. */
CUresult record_cuIpcOpenMemHandle_v2(int row, CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned),
                                      CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    CUresult (*range)(CUdeviceptr *, size_t *, CUdeviceptr) =
        (CUresult (*)(CUdeviceptr *, size_t *, CUdeviceptr))record_real("cuMemGetAddressRange_v2");
    const CUresult result = real(pointer, handle, flags);
    size_t bytes = 0;
    if (result != CUDA_SUCCESS)
        return result;
    if (range && range(NULL, &bytes, *pointer) == CUDA_SUCCESS) {
        record_adopt(*pointer);
        (void)cai_sim_alloc(cai_driver_sim(), CAI_SIM_MEM_DEVICE, bytes);
        record_adopt(0);
    }
    driver_followed(row, bytes ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
    return result;
}

CUresult record_cuIpcCloseMemHandle(int row, CUresult (*real)(CUdeviceptr), CUdeviceptr pointer)
{
    const CUresult own = (CUresult)cai_sim_free(cai_driver_sim(), pointer);
    const CUresult result = real(pointer);
    if (result == CUDA_SUCCESS)
        driver_followed(row, own);
    return result;
}

static CUDA_MEMCPY3D_PEER record_box(const CUDA_MEMCPY3D_PEER *copy)
{
    CUDA_MEMCPY3D_PEER own = *copy;
    own.srcContext = (CUcontext)driver_handle(record_handle(driver_number(copy->srcContext), RECORD_UNKNOWN));
    own.dstContext = (CUcontext)driver_handle(record_handle(driver_number(copy->dstContext), RECORD_UNKNOWN));
    return own;
}

CUresult record_cuMemcpy3DPeer(int row, CUresult (*real)(const CUDA_MEMCPY3D_PEER *), const CUDA_MEMCPY3D_PEER *copy)
{
    const CUresult result = real(copy);
    if (result == CUDA_SUCCESS) {
        const CUDA_MEMCPY3D_PEER own = record_box(copy);
        driver_followed(row, do_cuMemcpy3DPeer(&own));
    }
    return result;
}

CUresult record_cuMemcpy3DPeerAsync(int row, CUresult (*real)(const CUDA_MEMCPY3D_PEER *, CUstream),
                                    const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
    const CUresult result = real(copy, stream);
    if (result == CUDA_SUCCESS) {
        const CUDA_MEMCPY3D_PEER own = record_box(copy);
        driver_followed(row, do_cuMemcpy3DPeerAsync(&own, record_stream(stream)));
    }
    return result;
}

/* ------------------------------------------------------------------ >>captures, graphs */
CUresult record_cuThreadExchangeStreamCaptureMode(int row, CUresult (*real)(CUstreamCaptureMode *),
                                                  CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode own = mode ? *mode : CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUresult result = real(mode);
    if (result == CUDA_SUCCESS)
        driver_followed(row, do_cuThreadExchangeStreamCaptureMode(&own));
    return result;
}

/* A capture ends here also if the real driver says that it failed. */
CUresult record_cuStreamEndCapture(int row, CUresult (*real)(CUstream, CUgraph *), CUstream stream, CUgraph *graph)
{
    const CUresult result = real(stream, graph);
    CUgraph made = NULL;
    const CUresult own = do_cuStreamEndCapture(record_stream(stream), &made);
    if (result == CUDA_SUCCESS) {
        driver_followed(row, own);
        record_bind_pointer(*graph, made);
    } else if (made) {
        do_cuGraphDestroy(made);
    }
    return result;
}

/* Binds the graph of a capture, and the nodes that the next one will depend on. */
static void record_capture(int row, CUstream stream, CUgraph *graph, const CUgraphNode *nodes, size_t count)
{
    const CUgraphNode *found = NULL;
    CUstreamCaptureStatus status;
    CUgraph own = NULL;
    size_t own_count = 0, i;
    const CUresult result = do_cuStreamGetCaptureInfo_v2(record_stream(stream), &status, NULL, &own, &found,
                                                         &own_count);
    driver_followed(row, result);
    if (result != CUDA_SUCCESS)
        return;
    if (graph)
        record_bind_pointer(*graph, own);
    for (i = 0; nodes && count == own_count && i < count; ++i)
        record_bind_pointer(nodes[i], found[i]);
}

CUresult record_cuStreamGetCaptureInfo_v2(int row,
                                          CUresult (*real)(CUstream, CUstreamCaptureStatus *, cuuint64_t *,
                                                           CUgraph *, const CUgraphNode **, size_t *),
                                          CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    const CUresult result = real(stream, status, id, graph, nodes, count);
    if (result == CUDA_SUCCESS && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE && (graph || nodes))
        record_capture(row, stream, graph, nodes ? *nodes : NULL, count ? *count : 0);
    return result;
}

CUresult record_cuStreamGetCaptureInfo_v3(int row,
                                          CUresult (*real)(CUstream, CUstreamCaptureStatus *, cuuint64_t *,
                                                           CUgraph *, const CUgraphNode **,
                                                           const CUgraphEdgeData **, size_t *),
                                          CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **nodes, const CUgraphEdgeData **edges,
                                          size_t *count)
{
    const CUresult result = real(stream, status, id, graph, nodes, edges, count);
    if (result == CUDA_SUCCESS && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE && (graph || nodes))
        record_capture(row, stream, graph, nodes ? *nodes : NULL, count ? *count : 0);
    return result;
}

/* The nodes of both are in the order in which they were made. */
CUresult record_cuGraphGetNodes(int row, CUresult (*real)(CUgraph, CUgraphNode *, size_t *), CUgraph graph,
                                CUgraphNode *nodes, size_t *count)
{
    const CUresult result = real(graph, nodes, count);
    CUgraphNode own[RECORD_NODES];
    size_t all = 0, asked = RECORD_NODES, i;
    (void)row; /* it is a question: nodes of a graph that is not recorded stay unknown */
    if (result != CUDA_SUCCESS || !nodes || do_cuGraphGetNodes(record_graph(graph), NULL, &all) != CUDA_SUCCESS)
        return result;
    if (all != *count || all > RECORD_NODES || do_cuGraphGetNodes(record_graph(graph), own, &asked) != CUDA_SUCCESS)
        return result;
    for (i = 0; i < all; ++i)
        record_bind_pointer(nodes[i], own[i]);
    return result;
}

/* The nodes of the simulation for those of the real driver. Returns 0: one is not known, or they are too many. */
static int record_nodes(const CUgraphNode *nodes, size_t count, CUgraphNode *own)
{
    size_t i;
    for (i = 0; i < count; ++i) {
        uint64_t known = i < RECORD_NODES && nodes ? record_handle(driver_number(nodes[i]), 0) : 0;
        if (!known)
            return 0;
        own[i] = (CUgraphNode)driver_handle(known);
    }
    return 1;
}

CUresult record_cuStreamBeginCaptureToGraph(int row,
                                            CUresult (*real)(CUstream, CUgraph, const CUgraphNode *,
                                                             const CUgraphEdgeData *, size_t, CUstreamCaptureMode),
                                            CUstream stream, CUgraph graph, const CUgraphNode *nodes,
                                            const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    const CUresult result = real(stream, graph, nodes, edges, count, mode);
    CUgraphNode own[RECORD_NODES];
    CUresult followed = CUDA_ERROR_NOT_FOUND;
    if (result != CUDA_SUCCESS)
        return result;
    if (record_nodes(nodes, count, own))
        followed = do_cuStreamBeginCaptureToGraph(record_stream(stream), record_graph(graph), own, edges, count, mode);
    driver_followed(row, followed);
    return result;
}

static void record_depend(int row, CUstream stream, const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count,
                          unsigned int flags)
{
    CUgraphNode own[RECORD_NODES];
    CUresult followed = CUDA_ERROR_NOT_FOUND;
    if (record_nodes(nodes, count, own))
        followed = do_cuStreamUpdateCaptureDependencies_v2(record_stream(stream), own, edges, count, flags);
    driver_followed(row, followed);
}

CUresult record_cuStreamUpdateCaptureDependencies_v2(int row,
                                                     CUresult (*real)(CUstream, CUgraphNode *,
                                                                      const CUgraphEdgeData *, size_t, unsigned),
                                                     CUstream stream, CUgraphNode *nodes,
                                                     const CUgraphEdgeData *edges, size_t count, unsigned int flags)
{
    const CUresult result = real(stream, nodes, edges, count, flags);
    if (result == CUDA_SUCCESS)
        record_depend(row, stream, nodes, edges, count, flags);
    return result;
}

CUresult record_cuStreamUpdateCaptureDependencies(int row, CUresult (*real)(CUstream, CUgraphNode *, size_t, unsigned),
                                                  CUstream stream, CUgraphNode *nodes, size_t count,
                                                  unsigned int flags)
{
    const CUresult result = real(stream, nodes, count, flags);
    if (result == CUDA_SUCCESS)
        record_depend(row, stream, nodes, NULL, count, flags);
    return result;
}

static void record_instantiate(int row, CUgraphExec *executable, CUgraph graph)
{
    CUgraphExec own = NULL;
    driver_followed(row, do_cuGraphInstantiateWithFlags(&own, record_graph(graph), 0));
    record_bind_pointer(*executable, own);
}

CUresult record_cuGraphInstantiate_v2(int row,
                                      CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t),
                                      CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
                                      size_t bytes)
{
    const CUresult result = real(executable, graph, node, log, bytes);
    if (result == CUDA_SUCCESS)
        record_instantiate(row, executable, graph);
    return result;
}

CUresult record_cuGraphInstantiateWithParams(int row,
                                             CUresult (*real)(CUgraphExec *, CUgraph,
                                                              CUDA_GRAPH_INSTANTIATE_PARAMS *),
                                             CUgraphExec *executable, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    const CUresult result = real(executable, graph, parameters);
    if (result == CUDA_SUCCESS)
        record_instantiate(row, executable, graph);
    return result;
}

static void record_update(int row, CUgraphExec executable, CUgraph graph)
{
    CUgraphExecUpdateResultInfo own;
    const uint64_t known = record_handle(driver_number(executable), RECORD_UNKNOWN);
    driver_followed(row, do_cuGraphExecUpdate_v2((CUgraphExec)driver_handle(known), record_graph(graph), &own));
}

CUresult record_cuGraphExecUpdate_v2(int row, CUresult (*real)(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *),
                                     CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    const CUresult result = real(executable, graph, info);
    if (result == CUDA_SUCCESS)
        record_update(row, executable, graph);
    return result;
}

CUresult record_cuGraphExecUpdate(int row,
                                  CUresult (*real)(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *),
                                  CUgraphExec executable, CUgraph graph, CUgraphNode *node,
                                  CUgraphExecUpdateResult *out)
{
    const CUresult result = real(executable, graph, node, out);
    if (result == CUDA_SUCCESS)
        record_update(row, executable, graph);
    return result;
}
