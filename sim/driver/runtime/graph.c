/* graph.c - graphs: made by captures or by hand, instantiated, launched. */
#include "runtime.h"

#include <string.h>

cudaError_t rt_cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
    RT_NEED_VALUE(pGraph && flags == 0);
    RT_TRY(rt_start());
    return rt_error(cuGraphCreate(pGraph, flags));
}

cudaError_t rt_cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
    RT_NEED_VALUE(pGraphClone && originalGraph);
    return rt_error(cuGraphClone(pGraphClone, originalGraph));
}

cudaError_t rt_cudaGraphDestroy(cudaGraph_t graph)
{
    return rt_error(cuGraphDestroy(graph));
}

cudaError_t rt_cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                             unsigned long long flags)
{
    RT_NEED_VALUE(pGraphExec && graph);
    RT_NEED_CONTEXT();
    return rt_error(cuGraphInstantiateWithFlags(pGraphExec, graph, flags));
}

cudaError_t rt_cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
    return rt_cudaGraphInstantiateWithFlags(pGraphExec, graph, flags);
}

cudaError_t rt_cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    return rt_error(cuGraphExecDestroy(graphExec));
}

cudaError_t rt_cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
    cuuint64_t found = 0;
    RT_NEED_VALUE(graphExec && flags);
    RT_TRY(rt_error(cuGraphExecGetFlags(graphExec, &found)));
    *flags = found;
    return cudaSuccess;
}

cudaError_t rt_cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    return rt_error(cuGraphUpload(graphExec, rt_stream(stream)));
}

cudaError_t rt_cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    return rt_error(cuGraphLaunch(graphExec, rt_stream(stream)));
}

cudaError_t rt_cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                   cudaGraphExecUpdateResultInfo *resultInfo)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result;
    RT_NEED_VALUE(resultInfo);
    RT_NEED_CONTEXT();
    memset(&info, 0, sizeof info);
    result = cuGraphExecUpdate(hGraphExec, hGraph, &info);
    resultInfo->result = (enum cudaGraphExecUpdateResult)(int)info.result;
    resultInfo->errorNode = info.errorNode;
    resultInfo->errorFromNode = info.errorFromNode;
    return rt_error(result);
}

cudaError_t rt_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
    RT_NEED_VALUE(graph && numNodes);
    return rt_error(cuGraphGetNodes(graph, nodes, numNodes));
}

cudaError_t rt_cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes, size_t *pNumRootNodes)
{
    RT_NEED_VALUE(graph && pNumRootNodes);
    return rt_error(cuGraphGetRootNodes(graph, pRootNodes, pNumRootNodes));
}

cudaError_t rt_cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
    CUgraphNodeType type;
    RT_NEED_VALUE(node && pType);
    RT_TRY(rt_error(cuGraphNodeGetType(node, &type)));
    *pType = (enum cudaGraphNodeType)(int)type;
    return cudaSuccess;
}

cudaError_t rt_cudaGraphDestroyNode(cudaGraphNode_t node)
{
    RT_NEED_VALUE(node);
    return rt_error(cuGraphDestroyNode(node));
}

cudaError_t rt_cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    RT_NEED_VALUE(graph && path);
    return rt_error(cuGraphDebugDotPrint(graph, path, flags));
}

/* ---- nodes by hand ---- */

cudaError_t rt_cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies)
{
    RT_NEED_VALUE(pGraphNode && graph);
    return rt_error(cuGraphAddEmptyNode(pGraphNode, graph, pDependencies, numDependencies));
}

cudaError_t rt_cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                           cudaEvent_t event)
{
    RT_NEED_VALUE(pGraphNode && graph);
    return rt_error(cuGraphAddEventRecordNode(pGraphNode, graph, pDependencies, numDependencies, event));
}

cudaError_t rt_cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                         const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                         cudaEvent_t event)
{
    RT_NEED_VALUE(pGraphNode && graph);
    return rt_error(cuGraphAddEventWaitNode(pGraphNode, graph, pDependencies, numDependencies, event));
}

cudaError_t rt_cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                          const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                          cudaGraph_t childGraph)
{
    RT_NEED_VALUE(pGraphNode && graph && childGraph);
    return rt_error(cuGraphAddChildGraphNode(pGraphNode, graph, pDependencies, numDependencies, childGraph));
}

cudaError_t rt_cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                    const struct cudaHostNodeParams *pNodeParams)
{
    CUDA_HOST_NODE_PARAMS host;
    RT_NEED_VALUE(pGraphNode && graph && pNodeParams && pNodeParams->fn);
    memset(&host, 0, sizeof host);
    host.fn = pNodeParams->fn;
    host.userData = pNodeParams->userData;
    return rt_error(cuGraphAddHostNode(pGraphNode, graph, pDependencies, numDependencies, &host));
}

cudaError_t rt_cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    RT_NEED_VALUE(pGraphNode && graph && pNodeParams);
    RT_NEED_CONTEXT();
    memset(&kernel, 0, sizeof kernel);
    RT_TRY(rt_function_of(pNodeParams->func, &kernel.func));
    kernel.gridDimX = pNodeParams->gridDim.x;
    kernel.gridDimY = pNodeParams->gridDim.y;
    kernel.gridDimZ = pNodeParams->gridDim.z;
    kernel.blockDimX = pNodeParams->blockDim.x;
    kernel.blockDimY = pNodeParams->blockDim.y;
    kernel.blockDimZ = pNodeParams->blockDim.z;
    kernel.sharedMemBytes = pNodeParams->sharedMemBytes;
    kernel.kernelParams = pNodeParams->kernelParams;
    kernel.extra = pNodeParams->extra;
    return rt_error(cuGraphAddKernelNode(pGraphNode, graph, pDependencies, numDependencies, &kernel));
}

/* ---- objects that a graph keeps alive ---- */

cudaError_t rt_cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr, cudaHostFn_t destroy,
                                    unsigned int initialRefcount, unsigned int flags)
{
    RT_NEED_VALUE(object_out && destroy);
    RT_TRY(rt_start());
    return rt_error(cuUserObjectCreate(object_out, ptr, destroy, initialRefcount, flags));
}

cudaError_t rt_cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    return rt_error(cuUserObjectRetain(object, count));
}

cudaError_t rt_cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    return rt_error(cuUserObjectRelease(object, count));
}

cudaError_t rt_cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                         unsigned int flags)
{
    return rt_error(cuGraphRetainUserObject(graph, object, count, flags));
}

cudaError_t rt_cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count)
{
    return rt_error(cuGraphReleaseUserObject(graph, object, count));
}

/* ---- memory of graphs ---- */

cudaError_t rt_cudaDeviceGraphMemTrim(int device)
{
    CUdevice handle = 0;
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceGraphMemTrim(handle));
}

cudaError_t rt_cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void *value)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(value);
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceGetGraphMemAttribute(handle, (CUgraphMem_attribute)(int)attr, value));
}

cudaError_t rt_cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void *value)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(value);
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceSetGraphMemAttribute(handle, (CUgraphMem_attribute)(int)attr, value));
}
