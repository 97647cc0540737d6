/* stream.c - streams, events, captures, host functions
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct stream_facts {
    unsigned flags;
    int priority;
} stream_facts;

typedef struct event_facts {
    unsigned flags;
    uint64_t recorded; /* 0: never; else 1, 2, 3, ... in the order of the calls */
} event_facts;

typedef struct stream_callback {
    CUstreamCallback function;
    CUstream stream;
    void *argument;
} stream_callback;

static driver_map stream_known, event_known;
static driver_map stream_nodes; /* what cuStreamGetCaptureInfo returned last */
static uint64_t event_records;

/* ------------------------------------------------------------------------ >>streams */
CUresult do_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    stream_facts *facts;
    uint64_t made;
    DRIVER_NEED(stream && flags <= CU_STREAM_NON_BLOCKING);
    DRIVER_TRY(driver_need_context());
    made = cai_sim_stream_create(cai_driver_sim(), flags == CU_STREAM_NON_BLOCKING);
    if (!made)
        return (CUresult)cai_sim_clear_error(cai_driver_sim());
    facts = (stream_facts *)calloc(1, sizeof *facts);
    if (!facts)
        return CUDA_ERROR_OUT_OF_MEMORY;
    facts->flags = flags;
    facts->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    free(driver_map_set(&stream_known, made, facts));
    *stream = (CUstream)driver_handle(made);
    return CUDA_SUCCESS;
}

CUresult do_cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return do_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult do_cuStreamDestroy_v2(CUstream stream)
{
    DRIVER_TRY(cai_sim_stream_destroy(cai_driver_sim(), driver_number(stream)));
    free(driver_map_set(&stream_known, driver_number(stream), NULL));
    free(driver_map_set(&stream_nodes, driver_number(stream), NULL));
    return CUDA_SUCCESS;
}

static CUresult stream_context(CUstream stream, uint64_t *context)
{
    const cai_cuda *cuda = driver_cuda();
    return (CUresult)cuda->stream_context(cuda->self, driver_stream(stream), context);
}

CUresult driver_need_stream(CUstream stream)
{
    uint64_t context = 0;
    return stream_context(stream, &context);
}

CUresult do_cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    uint64_t found = 0;
    DRIVER_NEED(context);
    DRIVER_TRY(stream_context(stream, &found));
    *context = (CUcontext)driver_handle(found);
    return CUDA_SUCCESS;
}

CUresult do_cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    if (green)
        *green = NULL;
    return do_cuStreamGetCtx(stream, context);
}

CUresult do_cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    uint64_t found = 0;
    DRIVER_NEED(device);
    DRIVER_TRY(stream_context(stream, &found));
    *device = driver_device_of(found);
    return CUDA_SUCCESS;
}

CUresult do_cuStreamGetId(CUstream stream, unsigned long long *id)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t found = 0;
    DRIVER_NEED(id);
    DRIVER_TRY(cuda->stream_id(cuda->self, driver_stream(stream), &found));
    *id = found;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    stream_facts *facts = (stream_facts *)driver_map_get(&stream_known, driver_number(stream));
    uint64_t context = 0;
    DRIVER_NEED(flags);
    DRIVER_TRY(stream_context(stream, &context));
    *flags = facts ? facts->flags : 0;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamGetPriority(CUstream stream, int *priority)
{
    stream_facts *facts = (stream_facts *)driver_map_get(&stream_known, driver_number(stream));
    uint64_t context = 0;
    DRIVER_NEED(priority);
    DRIVER_TRY(stream_context(stream, &context));
    *priority = facts ? facts->priority : 0;
    return CUDA_SUCCESS;
}

/* The default streams are those of the current context, so they need one. */
static CUresult stream_argument(CUstream argument, uint64_t *stream)
{
    *stream = driver_stream(argument);
    return *stream <= 2 ? driver_need_context() : CUDA_SUCCESS;
}

CUresult do_cuStreamWaitEvent(CUstream argument, CUevent event, unsigned int flags)
{
    uint64_t stream;
    DRIVER_NEED(flags <= CU_EVENT_WAIT_EXTERNAL);
    DRIVER_TRY(stream_argument(argument, &stream));
    return (CUresult)cai_sim_stream_wait_event(cai_driver_sim(), stream, driver_number(event));
}

CUresult do_cuStreamSynchronize(CUstream argument)
{
    uint64_t stream;
    DRIVER_TRY(stream_argument(argument, &stream));
    return (CUresult)cai_sim_stream_synchronize(cai_driver_sim(), stream);
}

CUresult do_cuStreamQuery(CUstream argument)
{
    uint64_t stream;
    DRIVER_TRY(stream_argument(argument, &stream));
    return (CUresult)cai_sim_stream_query(cai_driver_sim(), stream);
}

CUresult do_cuLaunchHostFunc(CUstream argument, CUhostFn function, void *data)
{
    uint64_t stream;
    DRIVER_NEED(function);
    DRIVER_TRY(stream_argument(argument, &stream));
    return (CUresult)cai_sim_host_function(cai_driver_sim(), stream, "host function", function, data, NULL,
                                           0);
}

static void stream_call_back(void *argument)
{
    stream_callback *call = (stream_callback *)argument;
    call->function(call->stream, CUDA_SUCCESS, call->argument);
    free(call);
}

CUresult do_cuStreamAddCallback(CUstream argument, CUstreamCallback function, void *data, unsigned int flags)
{
    stream_callback *call;
    uint64_t stream;
    CUresult result;
    DRIVER_NEED(function && !flags);
    DRIVER_TRY(stream_argument(argument, &stream));
    call = (stream_callback *)malloc(sizeof *call);
    if (!call)
        return CUDA_ERROR_OUT_OF_MEMORY;
    call->function = function;
    call->stream = argument;
    call->argument = data;
    result = (CUresult)cai_sim_host_function(cai_driver_sim(), stream, "callback", stream_call_back, call,
                                             NULL, 0);
    if (result != CUDA_SUCCESS)
        free(call);
    return result;
}

/* ------------------------------------------------------------------------- >>events */
CUresult do_cuEventCreate(CUevent *event, unsigned int flags)
{
    event_facts *facts;
    uint64_t made;
    DRIVER_NEED(event && flags <= 7);
    DRIVER_NEED(!(flags & CU_EVENT_INTERPROCESS) || (flags & CU_EVENT_DISABLE_TIMING));
    DRIVER_TRY(driver_need_context());
    made = cai_sim_event_create(cai_driver_sim());
    if (!made)
        return (CUresult)cai_sim_clear_error(cai_driver_sim());
    facts = (event_facts *)calloc(1, sizeof *facts);
    if (!facts)
        return CUDA_ERROR_OUT_OF_MEMORY;
    facts->flags = flags;
    free(driver_map_set(&event_known, made, facts));
    *event = (CUevent)driver_handle(made);
    return CUDA_SUCCESS;
}

CUresult do_cuEventDestroy_v2(CUevent event)
{
    DRIVER_TRY(cai_sim_event_destroy(cai_driver_sim(), driver_number(event)));
    free(driver_map_set(&event_known, driver_number(event), NULL));
    return CUDA_SUCCESS;
}

CUresult do_cuEventRecord(CUevent event, CUstream argument)
{
    event_facts *facts = (event_facts *)driver_map_get(&event_known, driver_number(event));
    uint64_t stream;
    DRIVER_TRY(stream_argument(argument, &stream));
    DRIVER_TRY(cai_sim_event_record(cai_driver_sim(), driver_number(event), stream));
    if (facts)
        facts->recorded = __atomic_add_fetch(&event_records, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

CUresult do_cuEventRecordWithFlags(CUevent event, CUstream argument, unsigned int flags)
{
    DRIVER_NEED(flags <= CU_EVENT_RECORD_EXTERNAL);
    return do_cuEventRecord(event, argument);
}

CUresult do_cuEventQuery(CUevent event)
{
    return (CUresult)cai_sim_event_query(cai_driver_sim(), driver_number(event));
}

CUresult do_cuEventSynchronize(CUevent event)
{
    return (CUresult)cai_sim_event_synchronize(cai_driver_sim(), driver_number(event));
}

/* An event has no work of other processes here. So its handle can be made, and opened nowhere. */
CUresult do_cuIpcGetEventHandle(CUipcEventHandle_v1 *handle, CUevent event)
{
    const event_facts *facts = (event_facts *)driver_map_get(&event_known, driver_number(event));
    DRIVER_NEED(handle);
    if (!facts)
        return CUDA_ERROR_INVALID_HANDLE;
    DRIVER_NEED(facts->flags & CU_EVENT_INTERPROCESS);
    memset(handle, 0, sizeof *handle);
    driver_mark_handle(handle);
    return CUDA_SUCCESS;
}

/* As of memory: not in the process that it comes from. */
CUresult do_cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle_v1 handle)
{
    DRIVER_NEED(event);
    DRIVER_TRY(driver_need_context());
    DRIVER_TRY(driver_check_handle(&handle));
    return CUDA_ERROR_INVALID_CONTEXT;
}

/* There is no clock: a microsecond for each record between the two. */
CUresult do_cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    event_facts *first = (event_facts *)driver_map_get(&event_known, driver_number(start));
    event_facts *second = (event_facts *)driver_map_get(&event_known, driver_number(end));
    DRIVER_NEED(milliseconds);
    if (!first || !second || !first->recorded || !second->recorded)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    DRIVER_TRY(do_cuEventQuery(start));
    DRIVER_TRY(do_cuEventQuery(end));
    *milliseconds = ((float)second->recorded - (float)first->recorded) * 0.001f;
    return CUDA_SUCCESS;
}

CUresult do_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return do_cuEventElapsedTime_v2(milliseconds, start, end);
}

/* ----------------------------------------------------------------------- >>captures */
static CUresult stream_capture(CUstream argument, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    const cai_cuda *cuda = driver_cuda();
    cai_cuda_capture capture = {0, 0, 0};
    uint64_t stream;
    DRIVER_NEED(status);
    DRIVER_TRY(stream_argument(argument, &stream));
    DRIVER_TRY(cuda->stream_capture(cuda->self, stream, &capture));
    *status = (CUstreamCaptureStatus)capture.status;
    if (id && capture.status == CAI_CAPTURE_ACTIVE)
        *id = capture.id;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return stream_capture(stream, status, NULL);
}

CUresult do_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return stream_capture(stream, status, id);
}

/* The nodes that the next one of a stream will depend on, and as many edges without data behind them. They
 * are kept until the stream is asked again. */
static CUresult stream_keep_nodes(uint64_t stream, CUgraphNode **nodes, size_t *count)
{
    static __thread char own; /* stands for stream 2 of this thread */
    const uint64_t key = stream <= 2 ? driver_number(&own) : stream;
    const int32_t found = cai_sim_capture_nodes(cai_driver_sim(), stream, NULL, 0);
    uint64_t *kept;
    DRIVER_NEED(found >= 0);
    kept = (uint64_t *)calloc((size_t)found + 1, sizeof *kept + sizeof(CUgraphEdgeData));
    if (!kept)
        return CUDA_ERROR_OUT_OF_MEMORY;
    cai_sim_capture_nodes(cai_driver_sim(), stream, kept, found);
    free(driver_map_set(&stream_nodes, key, kept));
    *nodes = (CUgraphNode *)(void *)kept;
    *count = (size_t)found;
    return CUDA_SUCCESS;
}

/* No edge has data here, so none is lost without `edges`. */
CUresult do_cuStreamGetCaptureInfo_v3(CUstream argument, CUstreamCaptureStatus *status, cuuint64_t *id,
                                      CUgraph *graph, const CUgraphNode **nodes,
                                      const CUgraphEdgeData **edges, size_t *count)
{
    const uint64_t stream = driver_stream(argument);
    CUgraphNode *kept = NULL;
    size_t found = 0;
    DRIVER_TRY(stream_capture(argument, status, id));
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (graph)
        *graph = (CUgraph)driver_handle(cai_sim_capture_graph(cai_driver_sim(), stream));
    if (!nodes && !edges && !count)
        return CUDA_SUCCESS;
    DRIVER_TRY(stream_keep_nodes(stream, &kept, &found));
    if (nodes)
        *nodes = kept;
    if (edges)
        *edges = (const CUgraphEdgeData *)(const void *)(kept + found);
    if (count)
        *count = found;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                      CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    return do_cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

CUresult do_cuStreamBeginCapture_v2(CUstream argument, CUstreamCaptureMode mode)
{
    uint64_t stream;
    DRIVER_NEED((int)mode >= 0 && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    DRIVER_TRY(stream_argument(argument, &stream));
    return (CUresult)cai_sim_capture_begin(cai_driver_sim(), stream, (int32_t)mode);
}

CUresult do_cuStreamBeginCaptureToGraph(CUstream argument, CUgraph graph, const CUgraphNode *nodes,
                                        const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    uint64_t stream;
    DRIVER_NEED((int)mode >= 0 && mode <= CU_STREAM_CAPTURE_MODE_RELAXED && count <= INT32_MAX);
    DRIVER_NEED(graph && driver_edges_are_plain(edges, count));
    DRIVER_TRY(stream_argument(argument, &stream));
    return (CUresult)cai_sim_capture_begin_to(cai_driver_sim(), stream, (int32_t)mode, driver_number(graph),
                                              (const uint64_t *)(const void *)nodes, (int32_t)count);
}

CUresult do_cuStreamUpdateCaptureDependencies_v2(CUstream argument, CUgraphNode *nodes,
                                                 const CUgraphEdgeData *edges, size_t count,
                                                 unsigned int flags)
{
    uint64_t stream;
    DRIVER_NEED(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES && count <= INT32_MAX);
    DRIVER_NEED(driver_edges_are_plain(edges, count));
    DRIVER_TRY(stream_argument(argument, &stream));
    return (CUresult)cai_sim_capture_depend(cai_driver_sim(), stream, (const uint64_t *)(const void *)nodes,
                                            (int32_t)count, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

CUresult do_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                              unsigned int flags)
{
    return do_cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}

CUresult do_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    const cai_cuda *cuda = driver_cuda();
    int32_t number;
    DRIVER_NEED(mode);
    number = (int32_t)*mode;
    DRIVER_TRY(cuda->capture_mode(cuda->self, &number));
    *mode = (CUstreamCaptureMode)number;
    return CUDA_SUCCESS;
}
