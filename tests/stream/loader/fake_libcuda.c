/* fake_libcuda.c - a CUDA driver without a GPU: every function that cai_stream.h may ask for, in every
 * version that CUDA 11.2 to 13.0 has of it, with that version's signature, on a small model of contexts,
 * streams, events and memory. fake_cuda.h says what is in the model and how a test steers it.
 * SPDX-License-Identifier: MIT
 *
 * FAKE_DRIVER: the newest CUDA it can do, and thereby which names it exports (13000).
 * FAKE_WITHOUT_EVENT_RECORD: does not export cuEventRecord. */
#include "fake_cuda.h"
#include "fake_types.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_DRIVER
#define FAKE_DRIVER 13000
#endif

/* -------------------------------------------------------------------- model */
enum { STREAMS = 9, CONTEXTS = 4, EVENTS = 24, STACK = 16, GUARD = 0xa5, CLOCKS = STREAMS };

/* What handles point to. Nobody else may look inside or write to it; the guards are checked. */
struct object {
    unsigned char before[24];
    char name[16];
    int32_t context; /* its number; of an event that lives: where it was created */
    int32_t live;
    int32_t capture; /* of a stream: its CUstreamCaptureStatus */
    int32_t work[CLOCKS]; /* how much of each stream is known to be done before */
    unsigned char after[24];
};

struct memory {
    const char *name;
    uint64_t base, size, on_device;
    int32_t type, managed, device, context, pool;
    int32_t used_in; /* the only context in which devices can use it; 0: all that can, -1: none */
};

static const struct memory memories[] = {
    {"m1", FAKE_M1, FAKE_M1_SIZE, FAKE_M1, CU_MEMORYTYPE_DEVICE, 0, 0, 1, 0, 0},
    {"m2", FAKE_M2, FAKE_SIZE, FAKE_M2, CU_MEMORYTYPE_DEVICE, 0, 1, 2, 0, 2},
    {"m3", FAKE_M3, FAKE_SIZE, FAKE_M3_ON_DEVICE, CU_MEMORYTYPE_HOST, 0, 0, 1, 0, 0},
    {"m4", FAKE_M4, FAKE_SIZE, FAKE_M4, CU_MEMORYTYPE_DEVICE, 1, 0, 1, 0, 0},
    {"m5", FAKE_M5, FAKE_SIZE, FAKE_M5, CU_MEMORYTYPE_DEVICE, 0, 1, 0, 1, 2},
    {"m6", FAKE_M6, FAKE_SIZE, FAKE_M6, CU_MEMORYTYPE_ARRAY, 0, 0, 1, 0, 0},
    {"m7", FAKE_M7, FAKE_SIZE, FAKE_M7, CU_MEMORYTYPE_HOST, 0, 0, 1, 0, -1},
    {"m8", FAKE_M8, FAKE_SIZE, FAKE_M8, CU_MEMORYTYPE_HOST, 0, 1, 2, 0, 2},
};

static struct object contexts[CONTEXTS], streams[STREAMS], events[EVENTS], pool_object;
static struct object graph_object, node_object, user_object;
/* handed out as an array of dependencies, with its own guards */
static struct {
    unsigned char before[16];
    CUgraphNode nodes[2];
    unsigned char after[16];
} dependencies;

static struct {
    int32_t driver, initialized, error, narrow, pending, depth, mode, created, overflow;
    int32_t stack[STACK], retained[2], inactive[2], made, mirror;
    char failing[64], hidden[64];
    size_t length;
    char log[1 << 16];
} state;

static void make_object(struct object *object, const char *kind, int32_t number, int32_t context)
{
    memset(object, 0, sizeof *object);
    memset(object->before, GUARD, sizeof object->before);
    memset(object->after, GUARD, sizeof object->after);
    snprintf(object->name, sizeof object->name, "%s%d", kind, (int)number);
    object->context = context;
    object->live = 1;
}

static int32_t damage_of(const unsigned char *guard, size_t size)
{
    int32_t damaged = 0;
    size_t i;
    for (i = 0; i < size; i++) damaged += guard[i] != GUARD;
    return damaged;
}

static int32_t damage_of_object(const struct object *object)
{
    return damage_of(object->before, sizeof object->before) + damage_of(object->after, sizeof object->after);
}

static void reset(void)
{
    static const int32_t context_of[STREAMS] = {0, 0, 0, 1, 1, 2, 1, 1, 1}; /* 1, 2, then s1... */
    int32_t i;
    memset(&state, 0, sizeof state);
    state.driver = getenv("FAKE_CUDA_DRIVER") ? (int32_t)atoi(getenv("FAKE_CUDA_DRIVER")) : FAKE_DRIVER;
    for (i = 0; i < CONTEXTS; i++) make_object(&contexts[i], "c", i, i);
    for (i = 0; i < STREAMS; i++) make_object(&streams[i], "s", i - 2, context_of[i]);
    for (i = 0; i < EVENTS; i++) make_object(&events[i], "e", i + 1, 0);
    for (i = 0; i < EVENTS; i++) events[i].live = 0;
    make_object(&pool_object, "p", 1, 0);
    make_object(&graph_object, "g", 1, 0);
    make_object(&user_object, "u", 1, 0);
    make_object(&node_object, "n", 1, 0);
    memset(&dependencies, GUARD, sizeof dependencies);
    dependencies.nodes[0] = dependencies.nodes[1] = (CUgraphNode)(void *)&node_object;
    snprintf(streams[1].name, sizeof streams[1].name, "legacy");
    snprintf(streams[2].name, sizeof streams[2].name, "per_thread");
    streams[6].capture = streams[8].capture = 1; /* s4, s6 */
    streams[7].capture = 2;                      /* s5 */
    state.depth = 1;
    state.stack[0] = 1;
}

static void start(void)
{
    if (!state.driver) reset();
}

/* ---------------------------------------------------------------------- log */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static void put(const char *format, ...)
{
    va_list arguments;
    int written;
    va_start(arguments, format);
    written = vsnprintf(state.log + state.length, sizeof state.log - state.length, format, arguments);
    va_end(arguments);
    if (written < 0 || (size_t)written >= sizeof state.log - state.length) state.overflow = 1;
    else state.length += (size_t)written;
}

/* A call begins: its line of the log, and whether it fails at once. */
static CUresult enter(const char *function)
{
    const size_t name = strcspn(function, ".");
    const int32_t all = !strcmp(state.failing, "*");
    start();
    put("%s", function);
    if (all || (strlen(state.failing) == name && !memcmp(state.failing, function, name)))
        return (CUresult)state.error;
    if (!state.initialized) return CUDA_ERROR_NOT_INITIALIZED;
    return CUDA_SUCCESS;
}

static CUresult leave(CUresult result)
{
    if (result) put(" ! %d", (int)result);
    put("\n");
    return result;
}

static void put_output(const char *name, const void *where)
{
    put(where ? " *%s" : " -", name);
}

static struct object *object_of(const void *handle, struct object *list, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; i++)
        if (handle == (const void *)&list[i]) return &list[i];
    return NULL;
}

static void put_handle(const void *handle)
{
    const struct object *object = object_of(handle, contexts + 1, CONTEXTS - 1);
    if (!object) object = object_of(handle, streams + 3, STREAMS - 3);
    if (!object) object = object_of(handle, events, EVENTS);
    if (object) put(" %s", object->name);
    else if ((uintptr_t)handle == 1 || (uintptr_t)handle == 2) put(" %s", streams[(uintptr_t)handle].name);
    else put(" 0x%llx", (unsigned long long)(uintptr_t)handle);
}

/* ----------------------------------------------------------- lookup in model */
static int32_t current(void)
{
    return state.depth ? state.stack[state.depth - 1] : 0;
}

static CUcontext context_handle(int32_t number)
{
    return number ? (CUcontext)(void *)&contexts[number] : NULL;
}

/* A stream by its handle, NULL being the legacy one; and the context that it belongs to. */
static CUresult find_stream(CUstream handle, struct object **stream, int32_t *context)
{
    const uintptr_t number = (uintptr_t)handle;
    *stream = number <= 2 ? &streams[number == 2 ? 2 : 1] : object_of(handle, streams + 3, STREAMS - 3);
    if (!*stream) return CUDA_ERROR_INVALID_HANDLE;
    *context = number <= 2 ? current() : (*stream)->context;
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult find_event(CUevent handle, struct object **event)
{
    *event = object_of(handle, events, EVENTS);
    return *event && (*event)->live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void learn(struct object *to, const struct object *from)
{
    int32_t i;
    for (i = 0; i < CLOCKS; i++)
        if (to->work[i] < from->work[i]) to->work[i] = from->work[i];
}

static const struct memory *find_memory(uint64_t address)
{
    size_t i;
    for (i = 0; i < sizeof memories / sizeof memories[0]; i++) {
        const struct memory *m = &memories[i];
        if (address - m->base < m->size || address - m->on_device < m->size) return m;
    }
    return NULL;
}

/* -------------------------------------------------- functions: initialization */
static CUresult CUDAAPI fake_cuInit_2000(unsigned int flags)
{
    const CUresult result = enter("cuInit.2000");
    put(" %u", flags);
    if (result && result != CUDA_ERROR_NOT_INITIALIZED) return leave(result);
    if (flags) return leave(CUDA_ERROR_INVALID_VALUE);
    state.initialized = 1;
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuDriverGetVersion_2020(int *version)
{
    const CUresult result = enter("cuDriverGetVersion.2020");
    put_output("version", version);
    if (result && result != CUDA_ERROR_NOT_INITIALIZED) return leave(result);
    if (!version) return leave(CUDA_ERROR_INVALID_VALUE);
    *version = state.driver;
    return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------- functions: contexts */
static CUresult CUDAAPI fake_cuCtxGetCurrent_4000(CUcontext *context)
{
    const CUresult result = enter("cuCtxGetCurrent.4000");
    put_output("context", context);
    if (result) return leave(result);
    *context = context_handle(current());
    return leave(CUDA_SUCCESS);
}

/* c1 and c2 are primary contexts: they live as long as somebody retains them. */
static int32_t is_active(int32_t context)
{
    return context == 3 || !state.inactive[context - 1] || state.retained[context - 1];
}

static CUresult push(const char *function, CUcontext context)
{
    const CUresult result = enter(function);
    const struct object *object = object_of(context, contexts + 1, CONTEXTS - 1);
    put_handle(context);
    if (result) return leave(result);
    if (!object || !is_active(object->context)) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (state.depth == STACK) return leave(CUDA_ERROR_UNKNOWN);
    state.stack[state.depth++] = object->context;
    return leave(CUDA_SUCCESS);
}

static CUresult pop(const char *function, CUcontext *context)
{
    const CUresult result = enter(function);
    put_output("context", context);
    if (result) return leave(result);
    if (!state.depth) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (context) *context = context_handle(current());
    state.depth--;
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuCtxPushCurrent_4000(CUcontext context)
{
    return push("cuCtxPushCurrent.4000", context);
}

static CUresult CUDAAPI fake_cuCtxPushCurrent_2000(CUcontext context)
{
    return push("cuCtxPushCurrent.2000", context);
}

static CUresult CUDAAPI fake_cuCtxPopCurrent_4000(CUcontext *context)
{
    return pop("cuCtxPopCurrent.4000", context);
}

static CUresult CUDAAPI fake_cuCtxPopCurrent_2000(CUcontext *context)
{
    return pop("cuCtxPopCurrent.2000", context);
}

static int32_t device_of(int32_t context)
{
    return context == 2 ? 1 : 0;
}

static CUresult context_device(const char *function, CUdevice *device, int32_t context)
{
    const CUresult result = enter(function);
    put_output("device", device);
    if (result) return leave(result);
    if (!context) return leave(CUDA_ERROR_INVALID_CONTEXT);
    *device = device_of(context);
    return leave(CUDA_SUCCESS);
}

static int32_t number_of(CUcontext context)
{
    const struct object *object = object_of(context, contexts + 1, CONTEXTS - 1);
    return object ? object->context : 0;
}

static CUresult CUDAAPI fake_cuCtxGetDevice_2000(CUdevice *device)
{
    return context_device("cuCtxGetDevice.2000", device, current());
}

static CUresult CUDAAPI fake_cuCtxGetDevice_13000(CUdevice *device, CUcontext context)
{
    return context_device("cuCtxGetDevice.13000", device, context ? number_of(context) : current());
}

static CUresult synchronize_context(const char *function, int32_t context)
{
    const CUresult result = enter(function);
    if (result) return leave(result);
    return leave(context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

static CUresult CUDAAPI fake_cuCtxSynchronize_2000(void)
{
    return synchronize_context("cuCtxSynchronize.2000", current());
}

static CUresult CUDAAPI fake_cuCtxSynchronize_13000(CUcontext context)
{
    return synchronize_context("cuCtxSynchronize.13000", context ? number_of(context) : current());
}

static CUresult CUDAAPI fake_cuDevicePrimaryCtxGetState_7000(CUdevice_v1 device, unsigned int *flags,
                                                             int *active)
{
    const CUresult result = enter("cuDevicePrimaryCtxGetState.7000");
    put(" %d", device);
    put_output("flags", flags);
    put_output("active", active);
    if (result) return leave(result);
    if (device < 0 || device > 1) return leave(CUDA_ERROR_INVALID_DEVICE);
    *flags = 8;
    *active = is_active(device + 1);
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuDevicePrimaryCtxRetain_7000(CUcontext *context, CUdevice_v1 device)
{
    const CUresult result = enter("cuDevicePrimaryCtxRetain.7000");
    put_output("context", context);
    put(" %d", device);
    if (result) return leave(result);
    if (device < 0 || device > 1) return leave(CUDA_ERROR_INVALID_DEVICE);
    *context = context_handle(device + 1);
    if (!is_active(device + 1)) state.made++;
    state.retained[device]++;
    return leave(CUDA_SUCCESS);
}

static CUresult release_primary(const char *function, CUdevice_v1 device)
{
    const CUresult result = enter(function);
    put(" %d", device);
    if (result) return leave(result);
    if (device < 0 || device > 1 || !state.retained[device]) return leave(CUDA_ERROR_INVALID_DEVICE);
    state.retained[device]--;
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuDevicePrimaryCtxRelease_7000(CUdevice_v1 device)
{
    return release_primary("cuDevicePrimaryCtxRelease.7000", device);
}

static CUresult CUDAAPI fake_cuDevicePrimaryCtxRelease_11000(CUdevice_v1 device)
{
    return release_primary("cuDevicePrimaryCtxRelease.11000", device);
}

static CUresult CUDAAPI fake_cuDeviceGetAttribute_2000(int *value, CUdevice_attribute attribute,
                                                       CUdevice_v1 device)
{
    const CUresult result = enter("cuDeviceGetAttribute.2000");
    put_output("value", value);
    put(" %d %d", (int)attribute, device);
    if (result) return leave(result);
    if (device < 0 || device > 1) return leave(CUDA_ERROR_INVALID_DEVICE);
    *value = attribute == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS ? device == 1 : -1;
    return leave(CUDA_SUCCESS);
}

/* -------------------------------------------------------- functions: streams */
static CUresult stream_context(const char *function, CUstream handle, CUcontext *context, CUgreenCtx *green,
                               int has_green)
{
    CUresult result = enter(function);
    struct object *stream;
    int32_t number;
    put_handle(handle);
    put_output("context", context);
    if (has_green) put_output("green", (const void *)green);
    if (result) return leave(result);
    result = find_stream(handle, &stream, &number);
    if (result) return leave(result);
    *context = context_handle(number);
    if (green) *green = NULL;
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuStreamGetCtx_9020(CUstream stream, CUcontext *context)
{
    return stream_context("cuStreamGetCtx.9020", stream, context, NULL, 0);
}

static CUresult CUDAAPI fake_cuStreamGetCtx_9020_ptsz(CUstream stream, CUcontext *context)
{
    return stream_context("cuStreamGetCtx.9020_ptsz", stream, context, NULL, 0);
}

static CUresult CUDAAPI fake_cuStreamGetCtx_12050(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    return stream_context("cuStreamGetCtx.12050", stream, context, green, 1);
}

static CUresult CUDAAPI fake_cuStreamGetCtx_12050_ptsz(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    return stream_context("cuStreamGetCtx.12050_ptsz", stream, context, green, 1);
}

/* What all versions of cuStreamGetCaptureInfo have. The graph and the nodes are handed out where wanted. */
static CUresult capture(const char *function, CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    CUresult result = enter(function);
    struct object *stream;
    int32_t context;
    put_handle(handle);
    put_output("status", status);
    put_output("id", id);
    if (result) return result;
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    result = find_stream(handle, &stream, &context);
    if (result) return result;
    *status = (CUstreamCaptureStatus)stream->capture;
    if (id && stream->capture == 1) *id = FAKE_CAPTURE_ID;
    return CUDA_SUCCESS;
}

static CUresult capture_graph(CUstream handle, CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    struct object *stream;
    int32_t context;
    put_output("graph", (const void *)graph);
    put_output("nodes", (const void *)nodes);
    put_output("count", count);
    if (find_stream(handle, &stream, &context) || stream->capture != 1) return CUDA_SUCCESS;
    if (graph) *graph = (CUgraph)(void *)&graph_object;
    if (nodes) *nodes = dependencies.nodes;
    if (count) *count = 2;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_cuStreamGetCaptureInfo_10010(CUstream stream, CUstreamCaptureStatus *status,
                                                          cuuint64_t *id)
{
    return leave(capture("cuStreamGetCaptureInfo.10010", stream, status, id));
}

static CUresult CUDAAPI fake_cuStreamGetCaptureInfo_10010_ptsz(CUstream stream, CUstreamCaptureStatus *status,
                                                               cuuint64_t *id)
{
    return leave(capture("cuStreamGetCaptureInfo.10010_ptsz", stream, status, id));
}

static CUresult CUDAAPI fake_cuStreamGetCaptureInfo_11030(CUstream stream, CUstreamCaptureStatus *status,
                                                          cuuint64_t *id, CUgraph *graph,
                                                          const CUgraphNode **nodes, size_t *count)
{
    const CUresult result = capture("cuStreamGetCaptureInfo.11030", stream, status, id);
    return leave(result ? result : capture_graph(stream, graph, nodes, count));
}

static CUresult CUDAAPI fake_cuStreamGetCaptureInfo_11030_ptsz(CUstream stream, CUstreamCaptureStatus *status,
                                                               cuuint64_t *id, CUgraph *graph,
                                                               const CUgraphNode **nodes, size_t *count)
{
    const CUresult result = capture("cuStreamGetCaptureInfo.11030_ptsz", stream, status, id);
    return leave(result ? result : capture_graph(stream, graph, nodes, count));
}

static CUresult CUDAAPI fake_cuStreamGetCaptureInfo_12030(CUstream stream, CUstreamCaptureStatus *status,
                                                          cuuint64_t *id, CUgraph *graph,
                                                          const CUgraphNode **nodes,
                                                          const CUgraphEdgeData **edges, size_t *count)
{
    const CUresult result = capture("cuStreamGetCaptureInfo.12030", stream, status, id);
    put_output("edges", (const void *)edges);
    if (edges) *edges = NULL;
    return leave(result ? result : capture_graph(stream, graph, nodes, count));
}

static CUresult CUDAAPI fake_cuStreamGetCaptureInfo_12030_ptsz(CUstream stream, CUstreamCaptureStatus *status,
                                                               cuuint64_t *id, CUgraph *graph,
                                                               const CUgraphNode **nodes,
                                                               const CUgraphEdgeData **edges, size_t *count)
{
    const CUresult result = capture("cuStreamGetCaptureInfo.12030_ptsz", stream, status, id);
    put_output("edges", (const void *)edges);
    if (edges) *edges = NULL;
    return leave(result ? result : capture_graph(stream, graph, nodes, count));
}

static CUresult stream_id(const char *function, CUstream handle, unsigned long long *id)
{
    CUresult result = enter(function);
    struct object *stream;
    int32_t context;
    put_handle(handle);
    put_output("id", id);
    if (result) return leave(result);
    result = find_stream(handle, &stream, &context);
    if (result) return leave(result);
    if (stream->capture) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    *id = FAKE_STREAM_ID + (unsigned long long)(stream - streams);
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuStreamGetId_12000(CUstream stream, unsigned long long *id)
{
    return stream_id("cuStreamGetId.12000", stream, id);
}

static CUresult CUDAAPI fake_cuStreamGetId_12000_ptsz(CUstream stream, unsigned long long *id)
{
    return stream_id("cuStreamGetId.12000_ptsz", stream, id);
}

static CUresult wait_event(const char *function, CUstream handle, CUevent event_handle, unsigned int flags)
{
    CUresult result = enter(function);
    struct object *stream, *event;
    int32_t context;
    put_handle(handle);
    put_handle(event_handle);
    put(" %u", flags);
    if (result) return leave(result);
    result = find_stream(handle, &stream, &context);
    if (!result) result = find_event(event_handle, &event);
    if (!result && flags > 1) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) learn(stream, event);
    return leave(result);
}

static CUresult CUDAAPI fake_cuStreamWaitEvent_3020(CUstream stream, CUevent event, unsigned int flags)
{
    return wait_event("cuStreamWaitEvent.3020", stream, event, flags);
}

static CUresult CUDAAPI fake_cuStreamWaitEvent_7000_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    return wait_event("cuStreamWaitEvent.7000_ptsz", stream, event, flags);
}

static CUresult synchronize_stream(const char *function, CUstream handle)
{
    CUresult result = enter(function);
    struct object *stream;
    int32_t context;
    put_handle(handle);
    if (result) return leave(result);
    result = find_stream(handle, &stream, &context);
    if (!result && stream->capture) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return leave(result);
}

static CUresult CUDAAPI fake_cuStreamSynchronize_2000(CUstream stream)
{
    return synchronize_stream("cuStreamSynchronize.2000", stream);
}

static CUresult CUDAAPI fake_cuStreamSynchronize_7000_ptsz(CUstream stream)
{
    return synchronize_stream("cuStreamSynchronize.7000_ptsz", stream);
}

static CUresult CUDAAPI fake_cuThreadExchangeStreamCaptureMode_10010(CUstreamCaptureMode *mode)
{
    const CUresult result = enter("cuThreadExchangeStreamCaptureMode.10010");
    const int32_t before = state.mode;
    if (mode) put(" %d", (int)*mode);
    if (result) return leave(result);
    if (!mode || (unsigned)*mode > 2) return leave(CUDA_ERROR_INVALID_VALUE);
    state.mode = (int32_t)*mode;
    *mode = (CUstreamCaptureMode)before;
    return leave(CUDA_SUCCESS);
}

/* --------------------------------------------------------- functions: events */
static CUresult CUDAAPI fake_cuEventCreate_2000(CUevent *event, unsigned int flags)
{
    const CUresult result = enter("cuEventCreate.2000");
    put_output("event", event);
    put(" %u", flags);
    if (result) return leave(result);
    if (!current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (state.created == EVENTS) return leave(CUDA_ERROR_UNKNOWN);
    events[state.created].live = 1;
    events[state.created].context = current();
    *event = (CUevent)(void *)&events[state.created++];
    return leave(CUDA_SUCCESS);
}

static CUresult destroy(const char *function, CUevent handle)
{
    CUresult result = enter(function);
    struct object *event;
    put_handle(handle);
    if (result) return leave(result);
    result = find_event(handle, &event);
    if (!result) event->live = 0;
    return leave(result);
}

static CUresult CUDAAPI fake_cuEventDestroy_4000(CUevent event)
{
    return destroy("cuEventDestroy.4000", event);
}

static CUresult CUDAAPI fake_cuEventDestroy_2000(CUevent event)
{
    return destroy("cuEventDestroy.2000", event);
}

static CUresult record(const char *function, CUevent event_handle, CUstream handle)
{
    CUresult result = enter(function);
    struct object *event, *stream;
    int32_t context;
    put_handle(event_handle);
    put_handle(handle);
    if (result) return leave(result);
    result = find_event(event_handle, &event);
    if (!result) result = find_stream(handle, &stream, &context);
    if (!result && event->context != context) result = CUDA_ERROR_INVALID_HANDLE; /* R100 */
    if (!result) memcpy(event->work, stream->work, sizeof event->work);
    return leave(result);
}

static CUresult CUDAAPI fake_cuEventRecord_2000(CUevent event, CUstream stream)
{
    return record("cuEventRecord.2000", event, stream);
}

static CUresult CUDAAPI fake_cuEventRecord_7000_ptsz(CUevent event, CUstream stream)
{
    return record("cuEventRecord.7000_ptsz", event, stream);
}

static CUresult CUDAAPI fake_cuEventQuery_2000(CUevent handle)
{
    CUresult result = enter("cuEventQuery.2000");
    struct object *event;
    put_handle(handle);
    if (!result) result = find_event(handle, &event);
    return leave(result ? result : state.pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuEventSynchronize_2000(CUevent handle)
{
    CUresult result = enter("cuEventSynchronize.2000");
    struct object *event;
    put_handle(handle);
    if (!result) result = find_event(handle, &event);
    return leave(result);
}

/* --------------------------------------------------------- functions: memory */
static void store(void *to, const void *value, size_t size)
{
    memcpy(to, value, size);
}

static void store_flag(void *to, int32_t yes)
{
    const unsigned char narrow = (unsigned char)yes;
    const unsigned int wide = (unsigned int)yes;
    if (state.narrow) store(to, &narrow, sizeof narrow);
    else store(to, &wide, sizeof wide);
}

/* Stores one attribute as the driver does, with its width. memory: NULL for a pointer that is not CUDA's. */
static CUresult store_attribute(void *to, int attribute, const struct memory *memory, uint64_t address)
{
    static const struct memory unknown = {"", 0, 0, 0, 0, 0, -2, 0, 0, 0};
    const struct memory *m = memory ? memory : &unknown;
    const CUcontext context = context_handle(m->context);
    const CUmemoryPool pool = m->pool ? (CUmemoryPool)(void *)&pool_object : NULL;
    const unsigned int type = (unsigned int)m->type;
    const uint64_t offset = address - m->base < m->size ? address - m->base : address - m->on_device;
    const CUdeviceptr_v2 on_device = memory ? m->on_device + offset : 0, base = m->base;
    const uint64_t host = m->type == CU_MEMORYTYPE_HOST || m->managed ? m->base + offset : 0;
    const size_t size = (size_t)m->size;
    const int device = m->device;
    const unsigned long long id = memory ? 0x7700000000000001ULL : 0;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: store(to, &context, sizeof context); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: store(to, &type, sizeof type); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: store(to, &on_device, sizeof on_device); break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: store(to, &host, sizeof(void *)); break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: memset(to, 0, 16); break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: store(to, &id, sizeof id); break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: store_flag(to, m->managed); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: store(to, &device, sizeof device); break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: store(to, &base, sizeof base); break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: store(to, &size, sizeof size); break;
    case CU_POINTER_ATTRIBUTE_MAPPED: store_flag(to, memory != NULL); break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: store(to, &id, sizeof id); break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: store(to, &pool, sizeof pool); break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: store_flag(to, 0); break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* "If there is no current CUcontext then CUDA_ERROR_INVALID_CONTEXT", "if there exists no device pointer
 * value through which kernels running in the current CUcontext may access ptr then
 * CUDA_ERROR_INVALID_VALUE". */
static CUresult use_in_current(const struct memory *memory)
{
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    return memory->used_in && memory->used_in != current() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_cuPointerGetAttributes_7000(unsigned int count, CUpointer_attribute *attributes,
                                                         void **data, CUdeviceptr_v2 pointer)
{
    CUresult result = enter("cuPointerGetAttributes.7000");
    const struct memory *memory = state.mirror && !current() ? NULL : find_memory(pointer);
    unsigned int i;
    put(" %u", count);
    for (i = 0; i < count; i++) put("%s%d", i ? "," : " ", (int)attributes[i]);
    put(" 0x%llx", (unsigned long long)pointer);
    /* R102: what a driver does not know of is an error for all */
    for (i = 0; i < count && !result; i++)
        if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE && state.driver < 11030)
            result = CUDA_ERROR_INVALID_VALUE;
    for (i = 0; i < count && !result && memory; i++)
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) result = use_in_current(memory);
    for (i = 0; i < count && !result; i++)
        result = store_attribute(data[i], (int)attributes[i], memory, pointer);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemGetAddressRange_3020(CUdeviceptr_v2 *base, size_t *size,
                                                       CUdeviceptr_v2 pointer)
{
    const CUresult result = enter("cuMemGetAddressRange.3020");
    const struct memory *memory = find_memory(pointer);
    put_output("base", base);
    put_output("size", size);
    put(" 0x%llx", (unsigned long long)pointer);
    if (result) return leave(result);
    if (!current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (!memory) return leave(CUDA_ERROR_NOT_FOUND);
    if (base) *base = memory->on_device;
    if (size) *size = (size_t)memory->size;
    return leave(CUDA_SUCCESS);
}

/* The version of 32-bit addresses, which only finds what is there. */
static CUresult CUDAAPI fake_cuMemGetAddressRange_2000(CUdeviceptr_v1 *base, unsigned int *size,
                                                       CUdeviceptr_v1 pointer)
{
    const CUresult result = enter("cuMemGetAddressRange.2000");
    put_output("base", base);
    put_output("size", size);
    put(" 0x%x", pointer);
    if (base) *base = 0;
    if (size) *size = 0;
    return leave(result ? result : CUDA_ERROR_NOT_FOUND);
}

/* ----------------------------------------------------- functions: allocation */
/* The end of a call that makes memory in a context. */
static CUresult make(CUresult result, CUdeviceptr_v2 *pointer, size_t size, int32_t context)
{
    if (!result && !context) result = CUDA_ERROR_INVALID_CONTEXT;
    if (!result && (!pointer || !size)) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) *pointer = FAKE_MADE;
    return leave(result);
}

/* The end of one that takes memory, or a part of its name, back. */
static CUresult take_back(CUresult result, uint64_t pointer)
{
    put(" 0x%llx", (unsigned long long)pointer);
    if (!result && !current()) result = CUDA_ERROR_INVALID_CONTEXT;
    if (!result && pointer != FAKE_MADE) result = CUDA_ERROR_INVALID_VALUE;
    return leave(result);
}

static void put_size(size_t size)
{
    put(" %llu", (unsigned long long)size);
}

static CUresult CUDAAPI fake_cuMemAlloc_3020(CUdeviceptr_v2 *pointer, size_t size)
{
    const CUresult result = enter("cuMemAlloc.3020");
    put_output("pointer", pointer);
    put_size(size);
    return make(result, pointer, size, current());
}

/* Those of 32-bit addresses have none to give. */
static CUresult CUDAAPI fake_cuMemAlloc_2000(CUdeviceptr_v1 *pointer, unsigned int size)
{
    const CUresult result = enter("cuMemAlloc.2000");
    put_output("pointer", pointer);
    put(" %u", size);
    return leave(result ? result : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult CUDAAPI fake_cuMemFree_3020(CUdeviceptr_v2 pointer)
{
    return take_back(enter("cuMemFree.3020"), pointer);
}

static CUresult CUDAAPI fake_cuMemFree_2000(CUdeviceptr_v1 pointer)
{
    return take_back(enter("cuMemFree.2000"), pointer);
}

static CUresult alloc_async(const char *function, CUdeviceptr_v2 *pointer, size_t size, CUstream handle)
{
    CUresult result = enter(function);
    struct object *stream;
    int32_t context = 0;
    put_output("pointer", pointer);
    put_size(size);
    put_handle(handle);
    if (!result) result = find_stream(handle, &stream, &context);
    return make(result, pointer, size, context);
}

static CUresult CUDAAPI fake_cuMemAllocAsync_11020(CUdeviceptr_v2 *pointer, size_t size, CUstream stream)
{
    return alloc_async("cuMemAllocAsync.11020", pointer, size, stream);
}

static CUresult CUDAAPI fake_cuMemAllocAsync_11020_ptsz(CUdeviceptr_v2 *pointer, size_t size, CUstream stream)
{
    return alloc_async("cuMemAllocAsync.11020_ptsz", pointer, size, stream);
}

/* Behind the location nothing may be set. */
static CUresult CUDAAPI fake_cuMemPoolCreate_11020(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    CUresult result = enter("cuMemPoolCreate.11020");
    const unsigned char *bytes = (const unsigned char *)properties;
    size_t i;
    put_output("pool", (const void *)pool);
    put(" %d %d %d %d", (int)properties->allocType, (int)properties->handleTypes,
        (int)properties->location.type, (int)properties->location.id);
    for (i = 4 * sizeof(int); i < sizeof *properties; i++)
        if (bytes[i]) put(" byte %d", (int)i);
    if (!result && properties->location.id > 1) result = CUDA_ERROR_INVALID_DEVICE;
    if (!result) *pool = (CUmemoryPool)(void *)&pool_object;
    return leave(result);
}

static CUresult put_pool(CUresult result, CUmemoryPool pool)
{
    const int known = (const void *)pool == (const void *)&pool_object;
    put(" %s", known ? pool_object.name : "?");
    return result || known ? result : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI fake_cuMemPoolSetAttribute_11020(CUmemoryPool pool, CUmemPool_attribute attribute,
                                                         void *value)
{
    const CUresult result = put_pool(enter("cuMemPoolSetAttribute.11020"), pool);
    cuuint64_t number;
    int yes;
    put(" %d", (int)attribute);
    memcpy(&yes, value, sizeof yes);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) memcpy(&number, value, sizeof number);
    else number = (cuuint64_t)yes;
    put(" %llu", (unsigned long long)number);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemPoolDestroy_11020(CUmemoryPool pool)
{
    return leave(put_pool(enter("cuMemPoolDestroy.11020"), pool));
}

static CUresult alloc_from_pool(const char *function, CUdeviceptr_v2 *pointer, size_t size, CUmemoryPool pool,
                                CUstream handle)
{
    CUresult result = enter(function);
    struct object *stream;
    int32_t context = 0;
    put_output("pointer", pointer);
    put_size(size);
    result = put_pool(result, pool);
    put_handle(handle);
    if (!result) result = find_stream(handle, &stream, &context);
    return make(result, pointer, size, context);
}

static CUresult CUDAAPI fake_cuMemAllocFromPoolAsync_11020(CUdeviceptr_v2 *pointer, size_t size,
                                                           CUmemoryPool pool, CUstream stream)
{
    return alloc_from_pool("cuMemAllocFromPoolAsync.11020", pointer, size, pool, stream);
}

static CUresult CUDAAPI fake_cuMemAllocFromPoolAsync_11020_ptsz(CUdeviceptr_v2 *pointer, size_t size,
                                                                CUmemoryPool pool, CUstream stream)
{
    return alloc_from_pool("cuMemAllocFromPoolAsync.11020_ptsz", pointer, size, pool, stream);
}

static CUresult free_async(const char *function, CUdeviceptr_v2 pointer, CUstream handle)
{
    CUresult result = enter(function);
    struct object *stream;
    int32_t context;
    put_handle(handle);
    if (!result) result = find_stream(handle, &stream, &context);
    return take_back(result, pointer);
}

static CUresult CUDAAPI fake_cuMemFreeAsync_11020(CUdeviceptr_v2 pointer, CUstream stream)
{
    return free_async("cuMemFreeAsync.11020", pointer, stream);
}

static CUresult CUDAAPI fake_cuMemFreeAsync_11020_ptsz(CUdeviceptr_v2 pointer, CUstream stream)
{
    return free_async("cuMemFreeAsync.11020_ptsz", pointer, stream);
}

static CUresult CUDAAPI fake_cuMemHostAlloc_2020(void **pointer, size_t size, unsigned int flags)
{
    CUresult result = enter("cuMemHostAlloc.2020");
    CUdeviceptr_v2 made = 0;
    put_output("pointer", (const void *)pointer);
    put_size(size);
    put(" %u", flags);
    if (!result && flags > 7) result = CUDA_ERROR_INVALID_VALUE;
    result = make(result, &made, size, current());
    if (!result) *pointer = (void *)(uintptr_t)made;
    return result;
}

static CUresult CUDAAPI fake_cuMemFreeHost_2000(void *pointer)
{
    return take_back(enter("cuMemFreeHost.2000"), (uint64_t)(uintptr_t)pointer);
}

static CUresult host_register(const char *function, const void *pointer, size_t size, unsigned int flags)
{
    const CUresult result = enter(function);
    put_size(size);
    put(" %u", flags);
    return take_back(result, (uint64_t)(uintptr_t)pointer);
}

static CUresult CUDAAPI fake_cuMemHostRegister_4000(void *pointer, size_t size, unsigned int flags)
{
    return host_register("cuMemHostRegister.4000", pointer, size, flags);
}

static CUresult CUDAAPI fake_cuMemHostRegister_6050(void *pointer, size_t size, unsigned int flags)
{
    return host_register("cuMemHostRegister.6050", pointer, size, flags);
}

static CUresult CUDAAPI fake_cuMemHostUnregister_4000(void *pointer)
{
    return take_back(enter("cuMemHostUnregister.4000"), (uint64_t)(uintptr_t)pointer);
}

static CUresult CUDAAPI fake_cuMemAllocManaged_6000(CUdeviceptr_v2 *pointer, size_t size, unsigned int flags)
{
    CUresult result = enter("cuMemAllocManaged.6000");
    put_output("pointer", pointer);
    put_size(size);
    put(" %u", flags);
    if (!result && flags != 1 && flags != 2) result = CUDA_ERROR_INVALID_VALUE;
    return make(result, pointer, size, current());
}

static CUresult CUDAAPI fake_cuMemGetInfo_3020(size_t *available, size_t *total)
{
    const CUresult result = enter("cuMemGetInfo.3020");
    put_output("free", available);
    put_output("total", total);
    if (result) return leave(result);
    if (!current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
    *available = (size_t)FAKE_FREE;
    *total = (size_t)FAKE_TOTAL;
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuMemGetInfo_2000(unsigned int *available, unsigned int *total)
{
    const CUresult result = enter("cuMemGetInfo.2000");
    put_output("free", available);
    put_output("total", total);
    if (!result) *available = *total = 0xffffffff;
    return leave(result);
}

static CUresult CUDAAPI fake_cuIpcGetMemHandle_4010(CUipcMemHandle *handle, CUdeviceptr_v2 pointer)
{
    const CUresult result = enter("cuIpcGetMemHandle.4010");
    size_t i;
    put_output("handle", handle);
    for (i = 0; !result && i < sizeof *handle; i++)
        ((unsigned char *)handle)[i] = pointer == FAKE_MADE ? FAKE_HANDLE_BYTE(i) : 0;
    return take_back(result, pointer);
}

static CUresult ipc_open(const char *function, CUdeviceptr_v2 *pointer, const CUipcMemHandle *handle,
                         unsigned int flags)
{
    CUresult result = enter(function);
    size_t i;
    put_output("pointer", pointer);
    put(" %u", flags);
    if (!result && flags != 1) result = CUDA_ERROR_INVALID_VALUE;
    for (i = 0; !result && i < sizeof *handle; i++)
        if (((const unsigned char *)handle)[i] != FAKE_HANDLE_BYTE(i)) result = CUDA_ERROR_INVALID_VALUE;
    return make(result, pointer, 1, current());
}

static CUresult CUDAAPI fake_cuIpcOpenMemHandle_4010(CUdeviceptr_v2 *pointer, CUipcMemHandle handle,
                                                     unsigned int flags)
{
    return ipc_open("cuIpcOpenMemHandle.4010", pointer, &handle, flags);
}

static CUresult CUDAAPI fake_cuIpcOpenMemHandle_11000(CUdeviceptr_v2 *pointer, CUipcMemHandle handle,
                                                      unsigned int flags)
{
    return ipc_open("cuIpcOpenMemHandle.11000", pointer, &handle, flags);
}

static CUresult CUDAAPI fake_cuIpcCloseMemHandle_4010(CUdeviceptr_v2 pointer)
{
    return take_back(enter("cuIpcCloseMemHandle.4010"), pointer);
}

static CUresult device_uuid(const char *function, CUuuid *uuid, CUdevice_v1 device)
{
    const CUresult result = enter(function);
    size_t i;
    put_output("uuid", uuid);
    put(" %d", device);
    if (result) return leave(result);
    if (device < 0 || device > 1) return leave(CUDA_ERROR_INVALID_DEVICE);
    for (i = 0; i < sizeof *uuid; i++) ((unsigned char *)uuid)[i] = FAKE_UUID_BYTE(device, i);
    return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_cuDeviceGetUuid_9020(CUuuid *uuid, CUdevice_v1 device)
{
    return device_uuid("cuDeviceGetUuid.9020", uuid, device);
}

static CUresult CUDAAPI fake_cuDeviceGetUuid_11040(CUuuid *uuid, CUdevice_v1 device)
{
    return device_uuid("cuDeviceGetUuid.11040", uuid, device);
}

/* Copies and fills say what they were given. */
static CUresult CUDAAPI fake_cuMemcpyAsync_4000(CUdeviceptr_v2 to, CUdeviceptr_v2 from, size_t size,
                                                CUstream stream)
{
    const CUresult result = enter("cuMemcpyAsync.4000");
    put(" 0x%llx 0x%llx", (unsigned long long)to, (unsigned long long)from);
    put_size(size);
    put_handle(stream);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemcpyAsync_7000_ptsz(CUdeviceptr_v2 to, CUdeviceptr_v2 from, size_t size,
                                                     CUstream stream)
{
    const CUresult result = enter("cuMemcpyAsync.7000_ptsz");
    (void)to, (void)from, (void)size, (void)stream;
    return leave(result);
}

static void put_copy(const CUDA_MEMCPY3D_v2 *copy)
{
    put(" %d %d", (int)copy->srcMemoryType, (int)copy->dstMemoryType);
    put(" 0x%llx 0x%llx", (unsigned long long)copy->dstDevice, (unsigned long long)copy->srcDevice);
    put_size(copy->dstPitch);
    put_size(copy->srcPitch);
    put_size(copy->dstHeight);
    put_size(copy->srcHeight);
    put_size(copy->WidthInBytes);
    put_size(copy->Height);
    put_size(copy->Depth);
    if (copy->srcXInBytes || copy->srcY || copy->srcZ || copy->srcLOD || copy->srcHost || copy->srcArray ||
        copy->reserved0 || copy->dstXInBytes || copy->dstY || copy->dstZ || copy->dstLOD || copy->dstHost ||
        copy->dstArray || copy->reserved1)
        put(" and more");
}

static CUresult CUDAAPI fake_cuMemcpy3DAsync_3020(const CUDA_MEMCPY3D_v2 *copy, CUstream stream)
{
    const CUresult result = enter("cuMemcpy3DAsync.3020");
    put_copy(copy);
    put_handle(stream);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemcpy3DAsync_7000_ptsz(const CUDA_MEMCPY3D_v2 *copy, CUstream stream)
{
    const CUresult result = enter("cuMemcpy3DAsync.7000_ptsz");
    (void)copy, (void)stream;
    return leave(result);
}

/* The version of 32-bit addresses. */
static CUresult CUDAAPI fake_cuMemcpy3DAsync_2000(const CUDA_MEMCPY3D_v1 *copy, CUstream stream)
{
    const CUresult result = enter("cuMemcpy3DAsync.2000");
    (void)copy, (void)stream;
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemcpyPeerAsync_4000(CUdeviceptr_v2 to, CUcontext to_context,
                                                    CUdeviceptr_v2 from, CUcontext from_context, size_t size,
                                                    CUstream stream)
{
    const CUresult result = enter("cuMemcpyPeerAsync.4000");
    put(" 0x%llx", (unsigned long long)to);
    put_handle(to_context);
    put(" 0x%llx", (unsigned long long)from);
    put_handle(from_context);
    put_size(size);
    put_handle(stream);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemcpyPeerAsync_7000_ptsz(CUdeviceptr_v2 to, CUcontext to_context,
                                                         CUdeviceptr_v2 from, CUcontext from_context,
                                                         size_t size, CUstream stream)
{
    const CUresult result = enter("cuMemcpyPeerAsync.7000_ptsz");
    (void)to, (void)to_context, (void)from, (void)from_context, (void)size, (void)stream;
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemcpy3DPeerAsync_4000(const CUDA_MEMCPY3D_PEER_v1 *copy, CUstream stream)
{
    const CUresult result = enter("cuMemcpy3DPeerAsync.4000");
    put(" %d %d", (int)copy->srcMemoryType, (int)copy->dstMemoryType);
    put(" 0x%llx", (unsigned long long)copy->dstDevice);
    put_handle(copy->dstContext);
    put(" 0x%llx", (unsigned long long)copy->srcDevice);
    put_handle(copy->srcContext);
    put_size(copy->dstPitch);
    put_size(copy->srcPitch);
    put_size(copy->dstHeight);
    put_size(copy->srcHeight);
    put_size(copy->WidthInBytes);
    put_size(copy->Height);
    put_size(copy->Depth);
    if (copy->srcXInBytes || copy->srcY || copy->srcZ || copy->srcLOD || copy->srcHost || copy->srcArray ||
        copy->dstXInBytes || copy->dstY || copy->dstZ || copy->dstLOD || copy->dstHost || copy->dstArray)
        put(" and more");
    put_handle(stream);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemcpy3DPeerAsync_7000_ptsz(const CUDA_MEMCPY3D_PEER_v1 *copy, CUstream stream)
{
    const CUresult result = enter("cuMemcpy3DPeerAsync.7000_ptsz");
    (void)copy, (void)stream;
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemsetD8Async_3020(CUdeviceptr_v2 to, unsigned char value, size_t size,
                                                  CUstream stream)
{
    const CUresult result = enter("cuMemsetD8Async.3020");
    put(" 0x%llx %u", (unsigned long long)to, value);
    put_size(size);
    put_handle(stream);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemsetD8Async_7000_ptsz(CUdeviceptr_v2 to, unsigned char value, size_t size,
                                                       CUstream stream)
{
    const CUresult result = enter("cuMemsetD8Async.7000_ptsz");
    (void)to, (void)value, (void)size, (void)stream;
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemsetD2D8Async_3020(CUdeviceptr_v2 to, size_t pitch, unsigned char value,
                                                    size_t width, size_t height, CUstream stream)
{
    const CUresult result = enter("cuMemsetD2D8Async.3020");
    put(" 0x%llx", (unsigned long long)to);
    put_size(pitch);
    put(" %u", value);
    put_size(width);
    put_size(height);
    put_handle(stream);
    return leave(result);
}

static CUresult CUDAAPI fake_cuMemsetD2D8Async_7000_ptsz(CUdeviceptr_v2 to, size_t pitch, unsigned char value,
                                                         size_t width, size_t height, CUstream stream)
{
    const CUresult result = enter("cuMemsetD2D8Async.7000_ptsz");
    (void)to, (void)pitch, (void)value, (void)width, (void)height, (void)stream;
    return leave(result);
}

/* It calls `destroy` at once, so that a test sees with what. */
static CUresult CUDAAPI fake_cuUserObjectCreate_11030(CUuserObject *object, void *user, CUhostFn gone,
                                                      unsigned int count, unsigned int flags)
{
    const CUresult result = enter("cuUserObjectCreate.11030");
    put_output("object", (const void *)object);
    put(" %u %u", count, flags);
    if (!result) *object = (CUuserObject)(void *)&user_object;
    if (!result) gone(user);
    return leave(result);
}

static CUresult CUDAAPI fake_cuGraphRetainUserObject_11030(CUgraph graph, CUuserObject object, unsigned int count,
                                                           unsigned int flags)
{
    const CUresult result = enter("cuGraphRetainUserObject.11030");
    put(" %s %s %u %u", (const void *)graph == (const void *)&graph_object ? graph_object.name : "?",
        (const void *)object == (const void *)&user_object ? user_object.name : "?", count, flags);
    return leave(result);
}

/* ------------------------------------------------------------------- lookup */
static CUresult CUDAAPI fake_cuGetProcAddress_11030(const char *symbol, void **function, int version,
                                                    cuuint64_t flags);
static CUresult CUDAAPI fake_cuGetProcAddress_12000(const char *symbol, void **function, int version,
                                                    cuuint64_t flags, CUdriverProcAddressQueryResult *status);

/* Every function: name and version; those that the headers of CUDA 11, 12 and 13 know; then the variants for
 * a per-thread default stream. Where one symbol has more versions, the later follows. */
#define FUNCTIONS_11(X)                                                                                      \
    X(cuInit, 2000) X(cuDriverGetVersion, 2020) X(cuGetProcAddress, 11030) X(cuCtxGetCurrent, 4000)          \
    X(cuCtxPushCurrent, 2000) X(cuCtxPushCurrent, 4000) X(cuCtxPopCurrent, 2000) X(cuCtxPopCurrent, 4000)    \
    X(cuCtxGetDevice, 2000) X(cuCtxSynchronize, 2000) X(cuDevicePrimaryCtxGetState, 7000)                    \
    X(cuDevicePrimaryCtxRetain, 7000) X(cuDevicePrimaryCtxRelease, 7000)                                     \
    X(cuDevicePrimaryCtxRelease, 11000)                                                                      \
    X(cuDeviceGetAttribute, 2000) X(cuStreamGetCtx, 9020) X(cuStreamGetCaptureInfo, 10010)                   \
    X(cuStreamGetCaptureInfo, 11030) X(cuStreamWaitEvent, 3020) X(cuStreamSynchronize, 2000)                 \
    X(cuThreadExchangeStreamCaptureMode, 10010) X(cuEventCreate, 2000) X(cuEventDestroy, 2000)               \
    X(cuEventDestroy, 4000) X(cuEventRecord, 2000) X(cuEventQuery, 2000) X(cuEventSynchronize, 2000)         \
    X(cuPointerGetAttributes, 7000) X(cuMemGetAddressRange, 2000) X(cuMemGetAddressRange, 3020)              \
    X(cuMemAlloc, 2000) X(cuMemAlloc, 3020) X(cuMemFree, 2000) X(cuMemFree, 3020)                            \
    X(cuMemAllocAsync, 11020) X(cuMemFreeAsync, 11020) X(cuMemHostAlloc, 2020) X(cuMemFreeHost, 2000)        \
    X(cuMemHostRegister, 4000) X(cuMemHostRegister, 6050) X(cuMemHostUnregister, 4000)                       \
    X(cuMemAllocManaged, 6000) X(cuMemGetInfo, 2000) X(cuMemGetInfo, 3020) X(cuIpcGetMemHandle, 4010)        \
    X(cuIpcOpenMemHandle, 4010) X(cuIpcOpenMemHandle, 11000) X(cuIpcCloseMemHandle, 4010)                    \
    X(cuDeviceGetUuid, 9020) X(cuDeviceGetUuid, 11040) X(cuMemcpyAsync, 4000) X(cuMemcpy3DAsync, 2000)       \
    X(cuMemcpy3DAsync, 3020) X(cuMemsetD8Async, 3020) X(cuMemsetD2D8Async, 3020)                             \
    X(cuMemcpyPeerAsync, 4000) X(cuMemcpy3DPeerAsync, 4000) X(cuMemPoolCreate, 11020)                        \
    X(cuMemPoolSetAttribute, 11020) X(cuMemPoolDestroy, 11020) X(cuMemAllocFromPoolAsync, 11020)             \
    X(cuUserObjectCreate, 11030) X(cuGraphRetainUserObject, 11030)
#define FUNCTIONS_12(X)                                                                                      \
    X(cuGetProcAddress, 12000) X(cuStreamGetId, 12000) X(cuStreamGetCaptureInfo, 12030)                      \
    X(cuStreamGetCtx, 12050)
#define FUNCTIONS_13(X) X(cuCtxGetDevice, 13000) X(cuCtxSynchronize, 13000)
#define PER_THREAD_11(X)                                                                                     \
    X(cuStreamGetCtx, 9020) X(cuStreamGetCaptureInfo, 10010) X(cuStreamGetCaptureInfo, 11030)                \
    X(cuStreamWaitEvent, 7000) X(cuStreamSynchronize, 7000) X(cuEventRecord, 7000)                           \
    X(cuMemAllocAsync, 11020) X(cuMemFreeAsync, 11020) X(cuMemcpyAsync, 7000) X(cuMemcpy3DAsync, 7000)       \
    X(cuMemsetD8Async, 7000) X(cuMemsetD2D8Async, 7000) X(cuMemcpyPeerAsync, 7000)                           \
    X(cuMemcpy3DPeerAsync, 7000) X(cuMemAllocFromPoolAsync, 11020)
#define PER_THREAD_12(X)                                                                                     \
    X(cuStreamGetId, 12000) X(cuStreamGetCaptureInfo, 12030) X(cuStreamGetCtx, 12050)

struct function {
    const char *symbol;
    int32_t version, per_thread;
    void (*address)(void);
};

#define LEGACY_ROW(symbol, version) {#symbol, version, 0, (void (*)(void))fake_##symbol##_##version},
#define PER_THREAD_ROW(symbol, version)                                                                      \
    {#symbol, version, 1, (void (*)(void))fake_##symbol##_##version##_ptsz},
static const struct function functions[] = {
    FUNCTIONS_11(LEGACY_ROW) FUNCTIONS_12(LEGACY_ROW) FUNCTIONS_13(LEGACY_ROW) PER_THREAD_11(PER_THREAD_ROW)
        PER_THREAD_12(PER_THREAD_ROW)};

/* The newest variant that version and driver allow; with per_thread those variants too, before the others. */
static int32_t find(const char *symbol, int32_t version, int32_t per_thread, void (**address)(void))
{
    const struct function *best = NULL;
    int32_t known = 0;
    size_t i;
    *address = NULL;
    if (!strcmp(symbol, state.hidden)) return FAKE_NOT_FOUND;
    for (i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const struct function *f = &functions[i];
        if (strcmp(f->symbol, symbol) || f->version > state.driver) continue;
        if (f->per_thread && !per_thread) continue;
        known = 1;
        if (f->version > version) continue;
        if (!best || f->per_thread > best->per_thread ||
            (f->per_thread == best->per_thread && f->version > best->version))
            best = f;
    }
    if (best) *address = best->address;
    return best ? FAKE_FOUND : known ? FAKE_VERSION_TOO_OLD : FAKE_NOT_FOUND;
}

static CUresult proc_address(const char *name, const char *symbol, void **function, int version,
                             cuuint64_t flags, int32_t *found)
{
    const CUresult result = enter(name);
    void (*address)(void);
    put(" %s %d %llu", symbol, version, (unsigned long long)flags);
    if (result && result != CUDA_ERROR_NOT_INITIALIZED) return result;
    if (!symbol || !function || flags > 2 || version > state.driver) return CUDA_ERROR_INVALID_VALUE;
    *found = find(symbol, version, flags == 2, &address);
    memcpy(function, &address, sizeof *function);
    return CUDA_SUCCESS;
}

/* Until CUDA 11 what is missing is an error, later it is a status. */
static CUresult CUDAAPI fake_cuGetProcAddress_11030(const char *symbol, void **function, int version,
                                                    cuuint64_t flags)
{
    int32_t found = FAKE_FOUND;
    CUresult result = proc_address("cuGetProcAddress.11030", symbol, function, version, flags, &found);
    if (!result && found != FAKE_FOUND) result = CUDA_ERROR_NOT_FOUND;
    return leave(result);
}

static CUresult CUDAAPI fake_cuGetProcAddress_12000(const char *symbol, void **function, int version,
                                                    cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    int32_t found = FAKE_FOUND;
    const CUresult result = proc_address("cuGetProcAddress.12000", symbol, function, version, flags, &found);
    put_output("status", status);
    if (!result && status) *status = (CUdriverProcAddressQueryResult)found;
    return leave(result);
}

/* ------------------------------------------------- the exported names, by name */
#ifndef FAKE_REAL_HEADERS
#define OWN_PROTOTYPE(declaration) declaration;
#else
#define OWN_PROTOTYPE(declaration)
#endif
#define EXPORTED(name, parameters, call)                                                                     \
    OWN_PROTOTYPE(FAKE_EXPORT CUresult CUDAAPI name parameters)                                              \
    FAKE_EXPORT CUresult CUDAAPI name parameters                                                             \
    {                                                                                                        \
        return call;                                                                                         \
    }
#define STATUS_ID CUstreamCaptureStatus *status, cuuint64_t *id
#define GRAPH CUgraph *graph, const CUgraphNode **nodes

EXPORTED(cuInit, (unsigned int flags), fake_cuInit_2000(flags))
EXPORTED(cuDriverGetVersion, (int *version), fake_cuDriverGetVersion_2020(version))
EXPORTED(cuCtxGetCurrent, (CUcontext * context), fake_cuCtxGetCurrent_4000(context))
EXPORTED(cuCtxPushCurrent, (CUcontext context), fake_cuCtxPushCurrent_2000(context))
EXPORTED(cuCtxPushCurrent_v2, (CUcontext context), fake_cuCtxPushCurrent_4000(context))
EXPORTED(cuCtxPopCurrent, (CUcontext * context), fake_cuCtxPopCurrent_2000(context))
EXPORTED(cuCtxPopCurrent_v2, (CUcontext * context), fake_cuCtxPopCurrent_4000(context))
EXPORTED(cuCtxGetDevice, (CUdevice * device), fake_cuCtxGetDevice_2000(device))
EXPORTED(cuCtxSynchronize, (void), fake_cuCtxSynchronize_2000())
EXPORTED(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *active),
         fake_cuDevicePrimaryCtxGetState_7000(device, flags, active))
EXPORTED(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
         fake_cuDevicePrimaryCtxRetain_7000(context, device))
EXPORTED(cuDevicePrimaryCtxRelease, (CUdevice device), fake_cuDevicePrimaryCtxRelease_7000(device))
EXPORTED(cuDevicePrimaryCtxRelease_v2, (CUdevice device), fake_cuDevicePrimaryCtxRelease_11000(device))
EXPORTED(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device),
         fake_cuDeviceGetAttribute_2000(value, attribute, device))
EXPORTED(cuStreamGetCtx, (CUstream stream, CUcontext *context), fake_cuStreamGetCtx_9020(stream, context))
EXPORTED(cuStreamGetCtx_ptsz, (CUstream stream, CUcontext *context),
         fake_cuStreamGetCtx_9020_ptsz(stream, context))
EXPORTED(cuStreamGetCaptureInfo, (CUstream stream, STATUS_ID),
         fake_cuStreamGetCaptureInfo_10010(stream, status, id))
EXPORTED(cuStreamGetCaptureInfo_ptsz, (CUstream stream, STATUS_ID),
         fake_cuStreamGetCaptureInfo_10010_ptsz(stream, status, id))
EXPORTED(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
         fake_cuStreamWaitEvent_3020(stream, event, flags))
EXPORTED(cuStreamWaitEvent_ptsz, (CUstream stream, CUevent event, unsigned int flags),
         fake_cuStreamWaitEvent_7000_ptsz(stream, event, flags))
EXPORTED(cuStreamSynchronize, (CUstream stream), fake_cuStreamSynchronize_2000(stream))
EXPORTED(cuStreamSynchronize_ptsz, (CUstream stream), fake_cuStreamSynchronize_7000_ptsz(stream))
EXPORTED(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
         fake_cuThreadExchangeStreamCaptureMode_10010(mode))
EXPORTED(cuEventCreate, (CUevent * event, unsigned int flags), fake_cuEventCreate_2000(event, flags))
EXPORTED(cuEventDestroy, (CUevent event), fake_cuEventDestroy_2000(event))
EXPORTED(cuEventDestroy_v2, (CUevent event), fake_cuEventDestroy_4000(event))
#ifndef FAKE_WITHOUT_EVENT_RECORD
EXPORTED(cuEventRecord, (CUevent event, CUstream stream), fake_cuEventRecord_2000(event, stream))
EXPORTED(cuEventRecord_ptsz, (CUevent event, CUstream stream), fake_cuEventRecord_7000_ptsz(event, stream))
#endif
EXPORTED(cuEventQuery, (CUevent event), fake_cuEventQuery_2000(event))
EXPORTED(cuEventSynchronize, (CUevent event), fake_cuEventSynchronize_2000(event))
EXPORTED(cuPointerGetAttributes,
         (unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr_v2 pointer),
         fake_cuPointerGetAttributes_7000(count, attributes, data, pointer))
EXPORTED(cuMemGetAddressRange, (CUdeviceptr_v1 * base, unsigned int *size, CUdeviceptr_v1 pointer),
         fake_cuMemGetAddressRange_2000(base, size, pointer))
EXPORTED(cuMemGetAddressRange_v2, (CUdeviceptr_v2 * base, size_t *size, CUdeviceptr_v2 pointer),
         fake_cuMemGetAddressRange_3020(base, size, pointer))
EXPORTED(cuMemAlloc, (CUdeviceptr_v1 * pointer, unsigned int size), fake_cuMemAlloc_2000(pointer, size))
EXPORTED(cuMemAlloc_v2, (CUdeviceptr_v2 * pointer, size_t size), fake_cuMemAlloc_3020(pointer, size))
EXPORTED(cuMemFree, (CUdeviceptr_v1 pointer), fake_cuMemFree_2000(pointer))
EXPORTED(cuMemFree_v2, (CUdeviceptr_v2 pointer), fake_cuMemFree_3020(pointer))
EXPORTED(cuMemAllocAsync, (CUdeviceptr_v2 * pointer, size_t size, CUstream stream),
         fake_cuMemAllocAsync_11020(pointer, size, stream))
EXPORTED(cuMemAllocAsync_ptsz, (CUdeviceptr_v2 * pointer, size_t size, CUstream stream),
         fake_cuMemAllocAsync_11020_ptsz(pointer, size, stream))
EXPORTED(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties),
         fake_cuMemPoolCreate_11020(pool, properties))
EXPORTED(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
         fake_cuMemPoolSetAttribute_11020(pool, attribute, value))
EXPORTED(cuMemPoolDestroy, (CUmemoryPool pool), fake_cuMemPoolDestroy_11020(pool))
EXPORTED(cuUserObjectCreate,
         (CUuserObject * object, void *user, CUhostFn gone, unsigned int count, unsigned int flags),
         fake_cuUserObjectCreate_11030(object, user, gone, count, flags))
EXPORTED(cuGraphRetainUserObject, (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags),
         fake_cuGraphRetainUserObject_11030(graph, object, count, flags))
EXPORTED(cuMemAllocFromPoolAsync,
         (CUdeviceptr_v2 * pointer, size_t size, CUmemoryPool pool, CUstream stream),
         fake_cuMemAllocFromPoolAsync_11020(pointer, size, pool, stream))
EXPORTED(cuMemAllocFromPoolAsync_ptsz,
         (CUdeviceptr_v2 * pointer, size_t size, CUmemoryPool pool, CUstream stream),
         fake_cuMemAllocFromPoolAsync_11020_ptsz(pointer, size, pool, stream))
EXPORTED(cuMemFreeAsync, (CUdeviceptr_v2 pointer, CUstream stream),
         fake_cuMemFreeAsync_11020(pointer, stream))
EXPORTED(cuMemFreeAsync_ptsz, (CUdeviceptr_v2 pointer, CUstream stream),
         fake_cuMemFreeAsync_11020_ptsz(pointer, stream))
EXPORTED(cuMemHostAlloc, (void **pointer, size_t size, unsigned int flags),
         fake_cuMemHostAlloc_2020(pointer, size, flags))
EXPORTED(cuMemFreeHost, (void *pointer), fake_cuMemFreeHost_2000(pointer))
EXPORTED(cuMemHostRegister, (void *pointer, size_t size, unsigned int flags),
         fake_cuMemHostRegister_4000(pointer, size, flags))
EXPORTED(cuMemHostRegister_v2, (void *pointer, size_t size, unsigned int flags),
         fake_cuMemHostRegister_6050(pointer, size, flags))
EXPORTED(cuMemHostUnregister, (void *pointer), fake_cuMemHostUnregister_4000(pointer))
EXPORTED(cuMemAllocManaged, (CUdeviceptr_v2 * pointer, size_t size, unsigned int flags),
         fake_cuMemAllocManaged_6000(pointer, size, flags))
EXPORTED(cuMemGetInfo, (unsigned int *available, unsigned int *total),
         fake_cuMemGetInfo_2000(available, total))
EXPORTED(cuMemGetInfo_v2, (size_t *available, size_t *total), fake_cuMemGetInfo_3020(available, total))
EXPORTED(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr_v2 pointer),
         fake_cuIpcGetMemHandle_4010(handle, pointer))
EXPORTED(cuIpcOpenMemHandle, (CUdeviceptr_v2 * pointer, CUipcMemHandle handle, unsigned int flags),
         fake_cuIpcOpenMemHandle_4010(pointer, handle, flags))
EXPORTED(cuIpcOpenMemHandle_v2, (CUdeviceptr_v2 * pointer, CUipcMemHandle handle, unsigned int flags),
         fake_cuIpcOpenMemHandle_11000(pointer, handle, flags))
EXPORTED(cuIpcCloseMemHandle, (CUdeviceptr_v2 pointer), fake_cuIpcCloseMemHandle_4010(pointer))
#define COPY CUdeviceptr_v2 to, CUdeviceptr_v2 from, size_t size, CUstream stream
#define PEER                                                                                                 \
    CUdeviceptr_v2 to, CUcontext to_context, CUdeviceptr_v2 from, CUcontext from_context, size_t size,       \
        CUstream stream
#define SET CUdeviceptr_v2 to, unsigned char value, size_t size, CUstream stream
#define SET_2D                                                                                               \
    CUdeviceptr_v2 to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream
EXPORTED(cuMemcpyAsync, (COPY), fake_cuMemcpyAsync_4000(to, from, size, stream))
EXPORTED(cuMemcpyAsync_ptsz, (COPY), fake_cuMemcpyAsync_7000_ptsz(to, from, size, stream))
EXPORTED(cuMemcpy3DAsync, (const CUDA_MEMCPY3D_v1 *copy, CUstream stream),
         fake_cuMemcpy3DAsync_2000(copy, stream))
EXPORTED(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D_v2 *copy, CUstream stream),
         fake_cuMemcpy3DAsync_3020(copy, stream))
EXPORTED(cuMemcpy3DAsync_v2_ptsz, (const CUDA_MEMCPY3D_v2 *copy, CUstream stream),
         fake_cuMemcpy3DAsync_7000_ptsz(copy, stream))
EXPORTED(cuMemcpyPeerAsync, (PEER),
         fake_cuMemcpyPeerAsync_4000(to, to_context, from, from_context, size, stream))
EXPORTED(cuMemcpyPeerAsync_ptsz, (PEER),
         fake_cuMemcpyPeerAsync_7000_ptsz(to, to_context, from, from_context, size, stream))
EXPORTED(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER_v1 *copy, CUstream stream),
         fake_cuMemcpy3DPeerAsync_4000(copy, stream))
EXPORTED(cuMemcpy3DPeerAsync_ptsz, (const CUDA_MEMCPY3D_PEER_v1 *copy, CUstream stream),
         fake_cuMemcpy3DPeerAsync_7000_ptsz(copy, stream))
EXPORTED(cuMemsetD8Async, (SET), fake_cuMemsetD8Async_3020(to, value, size, stream))
EXPORTED(cuMemsetD8Async_ptsz, (SET), fake_cuMemsetD8Async_7000_ptsz(to, value, size, stream))
EXPORTED(cuMemsetD2D8Async, (SET_2D), fake_cuMemsetD2D8Async_3020(to, pitch, value, width, height, stream))
EXPORTED(cuMemsetD2D8Async_ptsz, (SET_2D),
         fake_cuMemsetD2D8Async_7000_ptsz(to, pitch, value, width, height, stream))
EXPORTED(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), fake_cuDeviceGetUuid_9020(uuid, device))
#if FAKE_DRIVER >= 11040
EXPORTED(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), fake_cuDeviceGetUuid_11040(uuid, device))
#endif
#if FAKE_DRIVER >= 11030
EXPORTED(cuGetProcAddress, (const char *symbol, void **function, int version, cuuint64_t flags),
         fake_cuGetProcAddress_11030(symbol, function, version, flags))
EXPORTED(cuStreamGetCaptureInfo_v2, (CUstream stream, STATUS_ID, GRAPH, size_t *count),
         fake_cuStreamGetCaptureInfo_11030(stream, status, id, graph, nodes, count))
EXPORTED(cuStreamGetCaptureInfo_v2_ptsz, (CUstream stream, STATUS_ID, GRAPH, size_t *count),
         fake_cuStreamGetCaptureInfo_11030_ptsz(stream, status, id, graph, nodes, count))
#endif
#if FAKE_DRIVER >= 12000 && (FAKE_HEADERS == 0 || FAKE_HEADERS >= 12000)
EXPORTED(cuGetProcAddress_v2,
         (const char *symbol, void **function, int version, cuuint64_t flags,
          CUdriverProcAddressQueryResult *status),
         fake_cuGetProcAddress_12000(symbol, function, version, flags, status))
EXPORTED(cuStreamGetId, (CUstream stream, unsigned long long *id), fake_cuStreamGetId_12000(stream, id))
EXPORTED(cuStreamGetId_ptsz, (CUstream stream, unsigned long long *id),
         fake_cuStreamGetId_12000_ptsz(stream, id))
#endif
#if FAKE_DRIVER >= 12030 && (FAKE_HEADERS == 0 || FAKE_HEADERS >= 12030)
EXPORTED(cuStreamGetCaptureInfo_v3,
         (CUstream stream, STATUS_ID, GRAPH, const CUgraphEdgeData **edges, size_t *count),
         fake_cuStreamGetCaptureInfo_12030(stream, status, id, graph, nodes, edges, count))
#endif
#if FAKE_DRIVER >= 12050 && (FAKE_HEADERS == 0 || FAKE_HEADERS >= 12050)
EXPORTED(cuStreamGetCtx_v2, (CUstream stream, CUcontext *context, CUgreenCtx *green),
         fake_cuStreamGetCtx_12050(stream, context, green))
#endif
#if FAKE_DRIVER >= 13000 && (FAKE_HEADERS == 0 || FAKE_HEADERS >= 13000)
EXPORTED(cuCtxGetDevice_v2, (CUdevice * device, CUcontext context),
         fake_cuCtxGetDevice_13000(device, context))
EXPORTED(cuCtxSynchronize_v2, (CUcontext context), fake_cuCtxSynchronize_13000(context))
#endif

/* With the real headers each function must be what their type of that version says. */
#ifdef FAKE_REAL_HEADERS
#define CHECK_LEGACY(symbol, version)                                                                        \
    check = (void (*)(void))(PFN_##symbol##_v##version){fake_##symbol##_##version};
#define CHECK_PER_THREAD(symbol, version)                                                                    \
    check = (void (*)(void))(PFN_##symbol##_v##version##_ptsz){fake_##symbol##_##version##_ptsz};
FAKE_EXPORT void fake_signatures(void);
FAKE_EXPORT void fake_signatures(void)
{
    void (*volatile check)(void);
    FUNCTIONS_11(CHECK_LEGACY)
    PER_THREAD_11(CHECK_PER_THREAD)
#if FAKE_HEADERS >= 12050
    FUNCTIONS_12(CHECK_LEGACY)
    PER_THREAD_12(CHECK_PER_THREAD)
#endif
#if FAKE_HEADERS >= 13000
    FUNCTIONS_13(CHECK_LEGACY)
#endif
    (void)check;
}
#endif

/* ------------------------------------------------------------------ control */
static int32_t driver(void)
{
    return state.driver;
}

static void set_initialized(int32_t yes)
{
    state.initialized = yes;
}

static void fail(const char *function, int32_t error)
{
    snprintf(state.failing, sizeof state.failing, "%s", error ? function : "");
    state.error = error;
}

static int32_t failing(const char *function)
{
    return strcmp(state.failing, function) ? 0 : state.error;
}

static void hide(const char *symbol)
{
    snprintf(state.hidden, sizeof state.hidden, "%s", symbol);
}

static void narrow(int32_t yes)
{
    state.narrow = yes;
}

static void make_current(const char *context)
{
    state.depth = context[0] ? 1 : 0;
    state.stack[0] = context[0] ? context[1] - '0' : 0;
}

static int32_t depth(void)
{
    return state.depth;
}

static const char *current_name(void)
{
    return current() ? contexts[current()].name : "";
}

static struct object *object_by_name(const char *name)
{
    int32_t i;
    for (i = 1; i < CONTEXTS; i++)
        if (!strcmp(name, contexts[i].name)) return &contexts[i];
    for (i = 1; i < STREAMS; i++)
        if (!strcmp(name, streams[i].name)) return &streams[i];
    for (i = 0; i < EVENTS; i++)
        if (!strcmp(name, events[i].name)) return &events[i];
    return NULL;
}

static uint64_t handle(const char *name)
{
    const struct object *object = object_by_name(name);
    if (object == &streams[1] || object == &streams[2]) return (uint64_t)(object - streams);
    return (uint64_t)(uintptr_t)object;
}

static void set_pending(int32_t yes)
{
    state.pending = yes;
}

static void work(const char *name)
{
    struct object *stream = object_by_name(name);
    stream->work[stream - streams]++;
}

static int32_t ordered(const char *before, const char *after)
{
    const struct object *first = object_by_name(before), *then = object_by_name(after);
    return then->work[first - streams] >= first->work[first - streams];
}

static int32_t living(void)
{
    int32_t i, count = 0;
    for (i = 0; i < EVENTS; i++) count += events[i].live;
    return count;
}

static int32_t retained(void)
{
    return state.retained[0] + state.retained[1];
}

static void set_active(int32_t device, int32_t yes)
{
    state.inactive[device] = !yes;
}

static int32_t primaries_made(void)
{
    return state.made;
}

static void set_mirror(int32_t yes)
{
    state.mirror = yes;
}

static int32_t damaged(void)
{
    int32_t i, count = state.overflow;
    for (i = 0; i < CONTEXTS; i++) count += damage_of_object(&contexts[i]);
    for (i = 0; i < STREAMS; i++) count += damage_of_object(&streams[i]);
    for (i = 0; i < EVENTS; i++) count += damage_of_object(&events[i]);
    count += damage_of_object(&pool_object) + damage_of_object(&graph_object) + damage_of_object(&user_object);
    count += damage_of_object(&node_object) + damage_of(dependencies.before, sizeof dependencies.before);
    return count + damage_of(dependencies.after, sizeof dependencies.after);
}

static const char *log_text(void)
{
    return state.log;
}

static void clear(void)
{
    state.length = 0;
    state.log[0] = 0;
}

static void note(const char *line)
{
    put("%s\n", line);
}

FAKE_EXPORT const struct fake_control *fake_cuda_control(void);
FAKE_EXPORT const struct fake_control *fake_cuda_control(void)
{
    static const struct fake_control control = {
        reset, driver, set_initialized, fail, failing, hide, narrow, make_current, depth, current_name,
        handle, set_pending, work, ordered, living, retained, set_active, primaries_made, set_mirror, damaged,
        log_text, clear, note, find,
    };
    start();
    return &control;
}
