/* graph.c - graphs: the end of a capture, executables, launches
 * SPDX-License-Identifier: MIT */
#include "driver.h"

CUresult do_cuStreamEndCapture(CUstream argument, CUgraph *graph)
{
    uint64_t made = 0;
    CUresult result;
    DRIVER_NEED(graph);
    if (driver_stream(argument) <= 2)
        DRIVER_TRY(driver_need_context());
    result = (CUresult)cai_sim_capture_end(cai_driver_sim(), driver_stream(argument), &made);
    *graph = (CUgraph)driver_handle(made);
    return result;
}

static CUresult graph_instantiate(CUgraphExec *executable, CUgraph graph)
{
    uint64_t made;
    DRIVER_NEED(executable && graph);
    made = cai_sim_graph_instantiate(cai_driver_sim(), driver_number(graph));
    *executable = (CUgraphExec)driver_handle(made);
    return made ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    DRIVER_NEED(flags < 16);
    return graph_instantiate(executable, graph);
}

CUresult do_cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    CUresult result;
    DRIVER_NEED(parameters && parameters->flags < 16);
    result = graph_instantiate(executable, graph);
    parameters->hErrNode_out = NULL;
    parameters->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return result;
}

CUresult do_cuGraphInstantiate_v2(CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
                                  size_t bytes)
{
    if (node)
        *node = NULL;
    if (log && bytes)
        *log = 0;
    return graph_instantiate(executable, graph);
}

CUresult do_cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    DRIVER_NEED(executable);
    DRIVER_TRY(driver_need_context());
    return (CUresult)cai_sim_graph_launch(cai_driver_sim(), driver_number(executable), driver_stream(stream));
}

/* An upload moves nothing that a program can see. */
CUresult do_cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    (void)stream;
    DRIVER_NEED(executable);
    return driver_need_context();
}

CUresult do_cuGraphDestroy(CUgraph graph)
{
    DRIVER_NEED(graph);
    return (CUresult)cai_sim_graph_destroy(cai_driver_sim(), driver_number(graph));
}

CUresult do_cuGraphExecDestroy(CUgraphExec executable)
{
    DRIVER_NEED(executable);
    return (CUresult)cai_sim_graph_executable_destroy(cai_driver_sim(), driver_number(executable));
}

/* The nodes are counted. Their handles are not served. */
CUresult do_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    int32_t known;
    DRIVER_NEED(graph && count);
    if (nodes)
        return CUDA_ERROR_NOT_SUPPORTED;
    known = cai_sim_graph_node_count(cai_driver_sim(), driver_number(graph));
    DRIVER_NEED(known >= 0);
    *count = (size_t)known;
    return CUDA_SUCCESS;
}
