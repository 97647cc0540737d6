/* graph.c - graphs: the end of a capture, executables, launches
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return made ? driver_objects_copy(driver_number(graph), made) : CUDA_ERROR_INVALID_VALUE;
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
    DRIVER_NEED(executable);
    cai_sim_look(cai_driver_sim(), "executable graph", driver_number(executable));
    DRIVER_TRY(driver_need_stream(stream));
    return driver_need_context();
}

CUresult do_cuGraphDestroy(CUgraph graph)
{
    DRIVER_NEED(graph);
    DRIVER_TRY(cai_sim_graph_destroy(cai_driver_sim(), driver_number(graph)));
    driver_objects_drop(driver_number(graph), 0);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphExecDestroy(CUgraphExec executable)
{
    DRIVER_NEED(executable);
    DRIVER_TRY(cai_sim_graph_executable_destroy(cai_driver_sim(), driver_number(executable)));
    driver_objects_drop(driver_number(executable), 1);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    DRIVER_NEED(graph && !flags);
    *graph = (CUgraph)driver_handle(cai_sim_graph_create(cai_driver_sim()));
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult do_cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    CUresult result;
    DRIVER_NEED(executable && graph && info);
    memset(info, 0, sizeof *info);
    result = (CUresult)cai_sim_graph_update(cai_driver_sim(), driver_number(executable),
                                            driver_number(graph));
    if (result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    else if (result != CUDA_SUCCESS)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return result;
}

CUresult do_cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode *node,
                              CUgraphExecUpdateResult *out)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result;
    DRIVER_NEED(out);
    result = do_cuGraphExecUpdate_v2(executable, graph, &info);
    *out = info.result;
    if (node)
        *node = NULL;
    return result;
}

/* --------------------------------------------------------------------------- >>nodes */
int driver_edges_are_plain(const CUgraphEdgeData *edges, size_t count)
{
    static const CUgraphEdgeData plain;
    size_t i;
    for (i = 0; edges && i < count; ++i)
        if (memcmp(&edges[i], &plain, sizeof plain))
            return 0;
    return 1;
}

/* All nodes of a graph, to be freed. */
static CUresult graph_nodes(CUgraph graph, uint64_t **nodes, int32_t *count)
{
    *count = cai_sim_graph_nodes(cai_driver_sim(), driver_number(graph), NULL, 0);
    DRIVER_NEED(*count >= 0);
    *nodes = (uint64_t *)calloc((size_t)*count + 1, sizeof **nodes);
    if (!*nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    cai_sim_graph_nodes(cai_driver_sim(), driver_number(graph), *nodes, *count);
    return CUDA_SUCCESS;
}

/* A list that CUDA returns: without `out` its length, else as many as fit, and NULL for the rest. */
static void graph_list(const uint64_t *nodes, int32_t known, CUgraphNode *out, size_t *count)
{
    size_t i, room = *count;
    for (i = 0; out && i < room; ++i)
        out[i] = i < (size_t)known ? (CUgraphNode)driver_handle(nodes[i]) : NULL;
    if (!out || room > (size_t)known)
        *count = (size_t)known;
}

CUresult do_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    uint64_t *found = NULL;
    int32_t known = 0;
    DRIVER_NEED(graph && count);
    DRIVER_TRY(graph_nodes(graph, &found, &known));
    graph_list(found, known, nodes, count);
    free(found);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    uint64_t *found = NULL;
    int32_t i, known = 0, roots = 0;
    DRIVER_NEED(graph && count);
    DRIVER_TRY(graph_nodes(graph, &found, &known));
    for (i = 0; i < known; ++i)
        if (!cai_sim_node_dependencies(cai_driver_sim(), found[i], NULL, 0))
            found[roots++] = found[i];
    graph_list(found, roots, nodes, count);
    free(found);
    return CUDA_SUCCESS;
}

/* The edges of a graph, as two lists that are to be freed. */
typedef struct graph_edges {
    uint64_t *from, *to;
    int32_t count;
} graph_edges;

static void graph_add_edges(graph_edges *edges, uint64_t node)
{
    const int32_t more = cai_sim_node_dependencies(cai_driver_sim(), node, NULL, 0);
    const size_t room = (size_t)edges->count + (size_t)(more > 0 ? more : 0) + 1;
    int32_t i;
    edges->from = (uint64_t *)realloc(edges->from, room * sizeof *edges->from);
    edges->to = (uint64_t *)realloc(edges->to, room * sizeof *edges->to);
    if (!edges->from || !edges->to)
        abort();
    cai_sim_node_dependencies(cai_driver_sim(), node, edges->from + edges->count, more);
    for (i = 0; i < more; ++i)
        edges->to[edges->count++] = node;
}

static CUresult graph_edges_of(CUgraph graph, graph_edges *edges)
{
    uint64_t *nodes = NULL;
    int32_t i, known = 0;
    memset(edges, 0, sizeof *edges);
    DRIVER_TRY(graph_nodes(graph, &nodes, &known));
    for (i = 0; i < known; ++i)
        graph_add_edges(edges, nodes[i]);
    free(nodes);
    return CUDA_SUCCESS;
}

static void graph_free_edges(graph_edges *edges)
{
    free(edges->from);
    free(edges->to);
}

CUresult do_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                               size_t *count)
{
    graph_edges edges;
    size_t again;
    DRIVER_NEED(graph && count && !from == !to && (!data || from));
    DRIVER_TRY(graph_edges_of(graph, &edges));
    again = *count;
    if (data)
        memset(data, 0, again * sizeof *data);
    graph_list(edges.from, edges.count, from, &again);
    graph_list(edges.to, edges.count, to, count);
    graph_free_edges(&edges);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return do_cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult do_cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data,
                                          size_t *count)
{
    graph_edges edges = {NULL, NULL, 0};
    cai_sim_graph_node known;
    DRIVER_NEED(count && (!data || nodes));
    DRIVER_NEED(cai_sim_node_get(cai_driver_sim(), driver_number(node), &known));
    graph_add_edges(&edges, driver_number(node));
    if (data)
        memset(data, 0, *count * sizeof *data);
    graph_list(edges.from, edges.count, nodes, count);
    graph_free_edges(&edges);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return do_cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

CUresult do_cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data,
                                            size_t *count)
{
    graph_edges edges;
    cai_sim_graph_node known;
    int32_t i, after = 0;
    DRIVER_NEED(count && (!data || nodes));
    DRIVER_NEED(cai_sim_node_get(cai_driver_sim(), driver_number(node), &known));
    DRIVER_TRY(graph_edges_of((CUgraph)driver_handle(known.graph), &edges));
    for (i = 0; i < edges.count; ++i)
        if (edges.from[i] == driver_number(node))
            edges.to[after++] = edges.to[i];
    if (data)
        memset(data, 0, *count * sizeof *data);
    graph_list(edges.to, after, nodes, count);
    graph_free_edges(&edges);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return do_cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

/* The captured operation of a node. */
static CUresult graph_operation_of(CUgraphNode node, cai_sim_graph_node *known, cai_sim_operation *operation)
{
    DRIVER_NEED(cai_sim_node_get(cai_driver_sim(), driver_number(node), known));
    DRIVER_NEED(cai_sim_operation_get(cai_driver_sim(), known->operation, operation));
    return CUDA_SUCCESS;
}

CUresult do_cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    cai_sim_graph_node known;
    cai_sim_operation operation;
    DRIVER_NEED(type);
    DRIVER_TRY(graph_operation_of(node, &known, &operation));
    if (known.kind == CAI_SIM_OP_LAUNCH && !strcmp(operation.name, "free"))
        *type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    else if (known.kind == CAI_SIM_OP_COPY)
        *type = strcmp(operation.name, "set") ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_MEMSET;
    else if (known.kind == CAI_SIM_OP_HOST_FUNCTION)
        *type = CU_GRAPH_NODE_TYPE_HOST;
    else
        *type = CU_GRAPH_NODE_TYPE_KERNEL;
    return CUDA_SUCCESS;
}

CUresult do_cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1 *out)
{
    cai_sim_graph_node known;
    DRIVER_NEED(out && cai_sim_node_get(cai_driver_sim(), driver_number(node), &known));
    DRIVER_NEED(known.kind == CAI_SIM_OP_HOST_FUNCTION);
    out->fn = known.function;
    out->userData = known.argument;
    return CUDA_SUCCESS;
}

/* A node as a text, without quotes inside. */
static void graph_print_node(FILE *file, uint64_t node)
{
    cai_sim_graph_node known;
    cai_sim_operation operation;
    cai_driver_call call;
    const char *name;
    memset(&call, 0, sizeof call);
    if (graph_operation_of((CUgraphNode)driver_handle(node), &known, &operation) != CUDA_SUCCESS)
        return;
    cai_driver_call_of(operation.tag, &call);
    name = call.kernel ? call.kernel : operation.name;
    fprintf(file, "  node_%llx [label=\"", (unsigned long long)node);
    for (; *name; ++name)
        if (*name != '"' && *name != '\\')
            fputc(*name, file);
    fprintf(file, "\"];\n");
}

CUresult do_cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
    graph_edges edges;
    uint64_t *nodes = NULL;
    int32_t i, known = 0;
    FILE *file;
    (void)flags;
    DRIVER_NEED(graph && path);
    DRIVER_TRY(graph_nodes(graph, &nodes, &known));
    file = fopen(path, "w");
    if (!file) {
        free(nodes);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    graph_edges_of(graph, &edges);
    fprintf(file, "digraph graph_%llx {\n", (unsigned long long)driver_number(graph));
    for (i = 0; i < known; ++i)
        graph_print_node(file, nodes[i]);
    for (i = 0; i < edges.count; ++i)
        fprintf(file, "  node_%llx -> node_%llx;\n", (unsigned long long)edges.from[i],
                (unsigned long long)edges.to[i]);
    fprintf(file, "}\n");
    graph_free_edges(&edges);
    free(nodes);
    return fclose(file) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
