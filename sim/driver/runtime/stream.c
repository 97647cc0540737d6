/* stream.c - streams, events, host functions and captures. */
#include "runtime.h"

#include <stdlib.h>

/* ---- streams ---- */

cudaError_t rt_cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
    RT_NEED_VALUE(pStream);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamCreateWithPriority(pStream, flags, priority));
}

cudaError_t rt_cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    RT_NEED_VALUE(pStream);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamCreate(pStream, flags));
}

cudaError_t rt_cudaStreamCreate(cudaStream_t *pStream)
{
    return rt_cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

cudaError_t rt_cudaStreamDestroy(cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamDestroy(stream));
}

cudaError_t rt_cudaStreamSynchronize(cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamSynchronize(rt_stream(stream)));
}

cudaError_t rt_cudaStreamQuery(cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamQuery(rt_stream(stream)));
}

cudaError_t rt_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamWaitEvent(rt_stream(stream), event, flags));
}

cudaError_t rt_cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
    RT_NEED_VALUE(flags);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamGetFlags(rt_stream(hStream), flags));
}

cudaError_t rt_cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
    RT_NEED_VALUE(priority);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamGetPriority(rt_stream(hStream), priority));
}

cudaError_t rt_cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId)
{
    RT_NEED_VALUE(streamId);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamGetId(rt_stream(hStream), streamId));
}

cudaError_t rt_cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(device);
    RT_NEED_CONTEXT();
    RT_TRY(rt_error(cuStreamGetDevice(rt_stream(hStream), &handle)));
    *device = (int)handle;
    return cudaSuccess;
}

cudaError_t rt_cudaStreamAttachMemAsync(cudaStream_t stream, void *devPtr, size_t length, unsigned int flags)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamAttachMemAsync(rt_stream(stream), rt_address(devPtr), length, flags));
}

cudaError_t rt_cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamCopyAttributes(rt_stream(dst), rt_stream(src)));
}

cudaError_t rt_cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attr,
                                      cudaLaunchAttributeValue *value)
{
    RT_NEED_VALUE(value);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamGetAttribute(rt_stream(stream), (CUlaunchAttributeID)(int)attr,
                                         (CUlaunchAttributeValue *)(void *)value));
}

cudaError_t rt_cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attr,
                                      const cudaLaunchAttributeValue *value)
{
    RT_NEED_VALUE(value);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamSetAttribute(rt_stream(stream), (CUlaunchAttributeID)(int)attr,
                                         (const CUlaunchAttributeValue *)(const void *)value));
}

/* ---- host functions ---- */

cudaError_t rt_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    RT_NEED_VALUE(fn);
    RT_NEED_CONTEXT();
    return rt_error(cuLaunchHostFunc(rt_stream(stream), fn, userData));
}

/* The driver's callback has another type of error. */
typedef struct rt_callback {
    cudaStreamCallback_t function;
    void *data;
} rt_callback;

static void CUDA_CB rt_call_back(CUstream stream, CUresult status, void *data)
{
    rt_callback call = *(rt_callback *)data;
    free(data);
    call.function(stream, rt_error(status), call.data);
}

cudaError_t rt_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                     unsigned int flags)
{
    rt_callback *call;
    CUresult result;
    RT_NEED_VALUE(callback && flags == 0);
    RT_NEED_CONTEXT();
    call = (rt_callback *)malloc(sizeof *call);
    RT_NEED(call, cudaErrorMemoryAllocation);
    call->function = callback;
    call->data = userData;
    result = cuStreamAddCallback(rt_stream(stream), rt_call_back, call, 0);
    if (result) free(call);
    return rt_error(result);
}

/* ---- events ---- */

cudaError_t rt_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    RT_NEED_VALUE(event);
    RT_NEED_CONTEXT();
    return rt_error(cuEventCreate(event, flags));
}

cudaError_t rt_cudaEventCreate(cudaEvent_t *event)
{
    return rt_cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t rt_cudaEventDestroy(cudaEvent_t event)
{
    RT_NEED_CONTEXT();
    return rt_error(cuEventDestroy(event));
}

cudaError_t rt_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    return rt_error(cuEventRecord(event, rt_stream(stream)));
}

cudaError_t rt_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    RT_NEED_CONTEXT();
    return rt_error(cuEventRecordWithFlags(event, rt_stream(stream), flags));
}

cudaError_t rt_cudaEventQuery(cudaEvent_t event)
{
    RT_NEED_CONTEXT();
    return rt_error(cuEventQuery(event));
}

cudaError_t rt_cudaEventSynchronize(cudaEvent_t event)
{
    RT_NEED_CONTEXT();
    return rt_error(cuEventSynchronize(event));
}

cudaError_t rt_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    RT_NEED_VALUE(ms);
    RT_NEED_CONTEXT();
    return rt_error(cuEventElapsedTime(ms, start, end));
}

#if CUDART_VERSION < 13000
cudaError_t rt_cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return rt_cudaEventElapsedTime(ms, start, end);
}
#endif

cudaError_t rt_cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    RT_NEED_VALUE(handle);
    RT_NEED_CONTEXT();
    return rt_error(cuIpcGetEventHandle((CUipcEventHandle *)(void *)handle, event));
}

cudaError_t rt_cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle plain;
    size_t i;
    RT_NEED_VALUE(event);
    RT_NEED_CONTEXT();
    for (i = 0; i < sizeof plain.reserved; ++i) plain.reserved[i] = handle.reserved[i];
    return rt_error(cuIpcOpenEventHandle(event, plain));
}

/* ---- captures ---- */

cudaError_t rt_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamBeginCapture(rt_stream(stream), (CUstreamCaptureMode)(int)mode));
}

cudaError_t rt_cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                             const cudaGraphNode_t *dependencies,
                                             const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                                             enum cudaStreamCaptureMode mode)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamBeginCaptureToGraph(rt_stream(stream), graph, dependencies,
                                                (const CUgraphEdgeData *)(const void *)dependencyData,
                                                numDependencies, (CUstreamCaptureMode)(int)mode));
}

cudaError_t rt_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
    RT_NEED_VALUE(pGraph);
    RT_NEED_CONTEXT();
    return rt_error(cuStreamEndCapture(rt_stream(stream), pGraph));
}

cudaError_t rt_cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    RT_NEED_VALUE(pCaptureStatus);
    RT_NEED_CONTEXT();
    RT_TRY(rt_error(cuStreamIsCapturing(rt_stream(stream), &status)));
    *pCaptureStatus = (enum cudaStreamCaptureStatus)(int)status;
    return cudaSuccess;
}

/* The driver's function of CUDA 12.3 has every output. A stream that does not capture has only the status. */
static cudaError_t rt_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                   unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                                   const cudaGraphEdgeData **edges, size_t *count)
{
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    RT_NEED_VALUE(status);
    RT_NEED_CONTEXT();
    RT_TRY(rt_error(cuStreamGetCaptureInfo_v3(rt_stream(stream), &found, &number, graph, nodes,
                                              (const CUgraphEdgeData **)(void *)edges, count)));
    *status = (enum cudaStreamCaptureStatus)(int)found;
    if (id) *id = number;
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t rt_cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                        size_t *count)
{
    return rt_capture_info(stream, status, id, graph, nodes, edges, count);
}

cudaError_t rt_cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                   const cudaGraphEdgeData *dependencyData,
                                                   size_t numDependencies, unsigned int flags)
{
    RT_NEED_CONTEXT();
    return rt_error(cuStreamUpdateCaptureDependencies(rt_stream(stream), dependencies,
                                                      (const CUgraphEdgeData *)(const void *)dependencyData,
                                                      numDependencies, flags));
}
#else
cudaError_t rt_cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id)
{
    return rt_capture_info(stream, status, id, NULL, NULL, NULL, NULL);
}

cudaError_t rt_cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                           unsigned long long *id, cudaGraph_t *graph,
                                           const cudaGraphNode_t **nodes, size_t *count)
{
    return rt_capture_info(stream, status, id, graph, nodes, NULL, count);
}

cudaError_t rt_cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                           unsigned long long *id, cudaGraph_t *graph,
                                           const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                           size_t *count)
{
    return rt_capture_info(stream, status, id, graph, nodes, edges, count);
}

cudaError_t rt_cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                   size_t numDependencies, unsigned int flags)
{
    RT_NEED_CONTEXT();
    return rt_error(
        cuStreamUpdateCaptureDependencies(rt_stream(stream), dependencies, numDependencies, flags));
}
#endif

cudaError_t rt_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CUstreamCaptureMode exchanged;
    RT_NEED_VALUE(mode);
    RT_TRY(rt_start());
    exchanged = (CUstreamCaptureMode)(int)*mode;
    RT_TRY(rt_error(cuThreadExchangeStreamCaptureMode(&exchanged)));
    *mode = (enum cudaStreamCaptureMode)(int)exchanged;
    return cudaSuccess;
}
