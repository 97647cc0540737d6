/* memory.c - allocation, host memory, pools, pointer attributes, memory of other processes
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_PITCH = 512 };

static driver_map memory_host_flags; /* of cuMemHostAlloc, by the first address: the flags plus 1 */

/* ------------------------------------------------------------------------- >>device */
CUresult do_cuMemAlloc_v2(CUdeviceptr_v2 *pointer, size_t bytes)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t made = 0;
    DRIVER_NEED(pointer);
    DRIVER_TRY(cuda->memory_alloc(cuda->self, &made, bytes));
    *pointer = (CUdeviceptr)made;
    return CUDA_SUCCESS;
}

CUresult do_cuMemAllocPitch_v2(CUdeviceptr_v2 *pointer, size_t *pitch, size_t width, size_t height,
                               unsigned unit)
{
    size_t row = (width + MEMORY_PITCH - 1) / MEMORY_PITCH * MEMORY_PITCH;
    DRIVER_NEED(pointer && pitch && width && height && (unit == 4 || unit == 8 || unit == 16));
    DRIVER_NEED(row >= width && height <= SIZE_MAX / row);
    DRIVER_TRY(do_cuMemAlloc_v2(pointer, row * height));
    *pitch = row;
    return CUDA_SUCCESS;
}

CUresult do_cuMemFree_v2(CUdeviceptr_v2 pointer)
{
    const cai_cuda *cuda = driver_cuda();
    return driver_dead_memory((CUresult)cuda->memory_free(cuda->self, pointer), pointer, 0);
}

CUresult do_cuMemAllocManaged(CUdeviceptr_v2 *pointer, size_t bytes, unsigned int flags)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t made = 0;
    DRIVER_NEED(pointer);
    DRIVER_TRY(cuda->managed_alloc(cuda->self, &made, bytes, flags));
    *pointer = (CUdeviceptr)made;
    return CUDA_SUCCESS;
}

CUresult do_cuMemGetInfo_v2(size_t *left, size_t *total)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t free_bytes = 0, all = 0;
    DRIVER_NEED(left && total);
    DRIVER_TRY(cuda->memory_info(cuda->self, &free_bytes, &all));
    *left = (size_t)free_bytes;
    *total = (size_t)all;
    return CUDA_SUCCESS;
}

CUresult do_cuMemGetAddressRange_v2(CUdeviceptr_v2 *base, size_t *bytes, CUdeviceptr_v2 pointer)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t first = 0, size = 0;
    DRIVER_TRY(cuda->pointer_range(cuda->self, pointer, &first, &size));
    if (base)
        *base = (CUdeviceptr)first;
    if (bytes)
        *bytes = (size_t)size;
    return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------------- >>host */
CUresult do_cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t made = 0;
    DRIVER_NEED(pointer);
    DRIVER_TRY(cuda->host_alloc(cuda->self, &made, bytes, flags));
    driver_map_set(&memory_host_flags, made, driver_handle((uint64_t)flags + 1));
    *pointer = driver_handle(made);
    return CUDA_SUCCESS;
}

CUresult do_cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    return do_cuMemHostAlloc(pointer, bytes, 0);
}

CUresult do_cuMemFreeHost(void *pointer)
{
    const cai_cuda *cuda = driver_cuda();
    return driver_dead_memory((CUresult)cuda->host_free(cuda->self, driver_number(pointer)), driver_number(pointer), 0);
}

CUresult do_cuMemHostGetFlags(unsigned int *flags, void *pointer)
{
    cai_sim_pointer info;
    void *known;
    DRIVER_NEED(flags);
    DRIVER_TRY(driver_need_context());
    DRIVER_NEED(!cai_sim_pointer_get(cai_driver_sim(), driver_number(pointer), &info));
    DRIVER_NEED(info.kind == CAI_SIM_MEM_PINNED || info.kind == CAI_SIM_MEM_ALIASED);
    known = driver_map_get(&memory_host_flags, info.first);
    DRIVER_NEED(known);
    *flags = (unsigned)(driver_number(known) - 1);
    return CUDA_SUCCESS;
}

CUresult do_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
    const cai_cuda *cuda = driver_cuda();
    if ((flags & CU_MEMHOSTREGISTER_READ_ONLY) && flags <= 15)
        return driver_refuse(CUDA_ERROR_NOT_SUPPORTED, "the devices do not register read-only memory");
    DRIVER_TRY(cuda->host_register(cuda->self, driver_number(pointer), bytes, flags));
    driver_watch_registered(driver_number(pointer), bytes);
    return CUDA_SUCCESS;
}

CUresult do_cuMemHostUnregister(void *pointer)
{
    const cai_cuda *cuda = driver_cuda();
    DRIVER_TRY(cuda->host_unregister(cuda->self, driver_number(pointer)));
    driver_watch_registered(driver_number(pointer), 0);
    return CUDA_SUCCESS;
}

CUresult do_cuMemHostGetDevicePointer_v2(CUdeviceptr_v2 *pointer, void *host, unsigned int flags)
{
    const cai_cuda *cuda = driver_cuda();
    cai_cuda_pointer info;
    DRIVER_NEED(pointer && host && !flags);
    DRIVER_TRY(driver_need_context());
    DRIVER_TRY(cuda->pointer_info(cuda->self, driver_number(host), &info));
    DRIVER_NEED(info.memory != CAI_MEMORY_HOST && info.device_pointer);
    *pointer = (CUdeviceptr)info.device_pointer;
    return CUDA_SUCCESS;
}

/* 1 of memory that was freed. Memory that CUDA did not allocate is none of that. */
static CUresult memory_is_there(CUdeviceptr_v2 pointer)
{
    cai_sim_lifetime known;
    if (!cai_sim_memory_lifetime(cai_driver_sim(), pointer, &known) || known.live || known.kind == CAI_SIM_MEM_REGISTERED)
        return CUDA_SUCCESS;
    return driver_dead_memory(CUDA_ERROR_INVALID_VALUE, pointer, 0);
}

/* Managed memory may be used by all devices at once: these say where it should be, and change nothing. */
CUresult do_cuMemPrefetchAsync_v2(CUdeviceptr_v2 pointer, size_t bytes, CUmemLocation_v1 location,
                                  unsigned int flags, CUstream stream)
{
    (void)location;
    DRIVER_NEED(pointer && bytes && !flags);
    DRIVER_TRY(driver_need_context());
    DRIVER_TRY(driver_need_stream(stream));
    return memory_is_there(pointer);
}

CUresult do_cuMemAdvise_v2(CUdeviceptr_v2 pointer, size_t bytes, CUmem_advise advice,
                           CUmemLocation_v1 location)
{
    (void)advice;
    (void)location;
    DRIVER_NEED(pointer && bytes);
    DRIVER_TRY(driver_need_context());
    return memory_is_there(pointer);
}

/* All streams may access managed memory at once, so an association changes nothing. Pageable memory has none:
 * the devices here cannot access it. */
CUresult do_cuStreamAttachMemAsync(CUstream argument, CUdeviceptr_v2 pointer, size_t bytes, unsigned int flags)
{
    const uint64_t stream = driver_stream(argument);
    cai_sim_pointer info;
    if (stream <= 2)
        DRIVER_TRY(driver_need_context());
    DRIVER_NEED(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
    DRIVER_NEED(flags != CU_MEM_ATTACH_SINGLE || stream > 2);
    DRIVER_TRY(driver_need_stream(argument));
    DRIVER_TRY(memory_is_there(pointer));
    DRIVER_NEED(!cai_sim_pointer_get(cai_driver_sim(), pointer, &info));
    DRIVER_NEED(info.managed && info.first == pointer && (!bytes || bytes == info.bytes));
    return CUDA_SUCCESS;
}

/* -------------------------------------------------------------------------- >>pools */
CUresult do_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice_v1 device)
{
    DRIVER_NEED(pool);
    DRIVER_TRY(driver_need_device(device));
    *pool = (CUmemoryPool)driver_handle(cai_sim_pool_default(cai_driver_sim(), device));
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice_v1 device)
{
    DRIVER_NEED(pool);
    DRIVER_TRY(driver_need_device(device));
    *pool = (CUmemoryPool)driver_handle(cai_sim_pool_current(cai_driver_sim(), device));
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceSetMemPool(CUdevice_v1 device, CUmemoryPool pool)
{
    DRIVER_TRY(driver_need_device(device));
    DRIVER_NEED(pool);
    return (CUresult)cai_sim_pool_set_current(cai_driver_sim(), device, driver_number(pool));
}

CUresult do_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps_v1 *properties)
{
    uint64_t made;
    DRIVER_NEED(pool && properties && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->handleTypes)
        return CUDA_ERROR_NOT_SUPPORTED;
    DRIVER_TRY(driver_need_device(properties->location.id));
    made = cai_sim_pool_create(cai_driver_sim(), properties->location.id);
    *pool = (CUmemoryPool)driver_handle(made);
    return made ? CUDA_SUCCESS : (CUresult)cai_sim_clear_error(cai_driver_sim());
}

CUresult do_cuMemPoolDestroy(CUmemoryPool pool)
{
    DRIVER_NEED(pool);
    return (CUresult)cai_sim_pool_destroy(cai_driver_sim(), driver_number(pool));
}

CUresult do_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    DRIVER_NEED(pool);
    return (CUresult)cai_sim_pool_trim(cai_driver_sim(), driver_number(pool), keep);
}

/* The first three attributes are an int, the others a cuuint64_t. */
static int memory_is_int(CUmemPool_attribute attribute)
{
    return attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
}

CUresult do_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    uint64_t found = 0;
    DRIVER_NEED(pool && value);
    DRIVER_TRY(cai_sim_pool_get(cai_driver_sim(), driver_number(pool), (int32_t)attribute, &found));
    if (memory_is_int(attribute))
        *(int *)value = (int)found;
    else
        *(cuuint64_t *)value = found;
    return CUDA_SUCCESS;
}

CUresult do_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    uint64_t number;
    DRIVER_NEED(pool && value);
    number = memory_is_int(attribute) ? (uint64_t)(*(int *)value != 0) : *(cuuint64_t *)value;
    return (CUresult)cai_sim_pool_set(cai_driver_sim(), driver_number(pool), (int32_t)attribute, number);
}

CUresult do_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc_v1 *access, size_t count)
{
    size_t i;
    DRIVER_NEED(pool && access && count);
    for (i = 0; i < count; ++i) {
        DRIVER_NEED(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
        DRIVER_TRY(driver_need_device(access[i].location.id));
        DRIVER_TRY(cai_sim_pool_set_access(cai_driver_sim(), driver_number(pool), access[i].location.id,
                                           access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE));
    }
    return CUDA_SUCCESS;
}

CUresult do_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation_v1 *location)
{
    DRIVER_NEED(flags && pool && location && location->type == CU_MEM_LOCATION_TYPE_DEVICE);
    DRIVER_TRY(driver_need_device(location->id));
    *flags = cai_sim_pool_access(cai_driver_sim(), driver_number(pool), location->id) ?
                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* Memory that was allocated in a capture. Its addresses are those of all launches of the graph, so it is made at once, and
 * a free in the capture leaves it: a later launch uses it again. The value is `memory_of_graphs`, or from that free on the
 * number of its call, twice, and 1. */
static driver_map memory_of_graphs;

int driver_graph_freed(uint64_t address, uint64_t *freed)
{
    cai_sim_lifetime known;
    cai_sim_pointer info;
    uint64_t value;
    if (!memory_of_graphs.used || !cai_sim_memory_lifetime(cai_driver_sim(), address, &known) || !known.live)
        return 0;
    if (cai_sim_pointer_get(cai_driver_sim(), address, &info))
        return 0;
    value = driver_number(driver_map_get(&memory_of_graphs, info.first));
    *freed = value / 2;
    return (int)(value & 1);
}

/* A node that counts as a write, so that what is not ordered with the free is a race. The capture goes on from where it
 * was: PyTorch frees in a stream of its own that it does not join before the capture ends. */
static CUresult memory_add_free(uint64_t stream, const cai_sim_access *whole)
{
    cai_sim *sim = cai_driver_sim();
    const int32_t count = cai_sim_capture_nodes(sim, stream, NULL, 0);
    uint64_t *nodes;
    CUresult result;
    DRIVER_NEED(count >= 0);
    nodes = (uint64_t *)calloc((size_t)count + 1, sizeof *nodes);
    if (!nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    cai_sim_capture_nodes(sim, stream, nodes, count);
    result = (CUresult)cai_sim_launch(sim, stream, "free", NULL, NULL, whole, 1);
    if (result == CUDA_SUCCESS)
        result = (CUresult)cai_sim_capture_depend(sim, stream, nodes, count, 1);
    free(nodes);
    return result;
}

static CUresult memory_free_captured(CUdeviceptr_v2 pointer, uint64_t stream)
{
    cai_sim_access whole;
    cai_sim_pointer info;
    const void *thread;
    uint64_t freed = 0, tag = 0;
    DRIVER_NEED(!cai_sim_pointer_get(cai_driver_sim(), pointer, &info));
    if (driver_graph_freed(pointer, &freed))
        return driver_dead_memory(CUDA_ERROR_INVALID_VALUE, pointer, 0);
    whole = cai_sim_writes(pointer, info.bytes);
    DRIVER_TRY(memory_add_free(stream, &whole));
    (void)driver_dead_call(&tag, &thread);
    driver_map_set(&memory_of_graphs, (uint64_t)pointer, driver_handle(2 * tag + 1));
    return CUDA_SUCCESS;
}

static CUresult memory_alloc_captured(CUdeviceptr *pointer, size_t bytes)
{
    uint64_t made;
    cai_sim_clear_error(cai_driver_sim());
    made = cai_sim_alloc(cai_driver_sim(), CAI_SIM_MEM_POOL, bytes);
    *pointer = (CUdeviceptr)made;
    if (!made)
        return (CUresult)cai_sim_clear_error(cai_driver_sim());
    driver_map_set(&memory_of_graphs, made, &memory_of_graphs);
    return CUDA_SUCCESS;
}

/* Nothing is given back to the system, so the figures of graphs are 0. */
CUresult do_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    DRIVER_TRY(driver_need_device(device));
    DRIVER_NEED(value && attribute >= CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT && attribute <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
    memset(value, 0, sizeof(cuuint64_t));
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    DRIVER_TRY(driver_need_device(device));
    DRIVER_NEED(value && (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGraphMemTrim(CUdevice device)
{
    return driver_need_device(device);
}

static CUresult memory_alloc_ordered(CUdeviceptr *pointer, size_t bytes, uint64_t pool, CUstream argument)
{
    uint64_t stream = driver_stream(argument), made;
    DRIVER_NEED(pointer);
    if (stream <= 2)
        DRIVER_TRY(driver_need_context());
    if (!bytes) { /* no error, unlike in cuMemAlloc: cuda.core's own tests do this */
        *pointer = 0;
        return CUDA_SUCCESS;
    }
    if (cai_sim_capture_graph(cai_driver_sim(), stream))
        return memory_alloc_captured(pointer, bytes);
    cai_sim_clear_error(cai_driver_sim());
    made = cai_sim_pool_alloc(cai_driver_sim(), pool, bytes, stream);
    *pointer = (CUdeviceptr)made;
    return made ? CUDA_SUCCESS : (CUresult)cai_sim_clear_error(cai_driver_sim());
}

CUresult do_cuMemAllocAsync(CUdeviceptr_v2 *pointer, size_t bytes, CUstream stream)
{
    return memory_alloc_ordered(pointer, bytes, 0, stream);
}

CUresult do_cuMemAllocFromPoolAsync(CUdeviceptr_v2 *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    DRIVER_NEED(pool);
    return memory_alloc_ordered(pointer, bytes, driver_number(pool), stream);
}

CUresult do_cuMemFreeAsync(CUdeviceptr_v2 pointer, CUstream argument)
{
    uint64_t stream = driver_stream(argument);
    if (stream <= 2)
        DRIVER_TRY(driver_need_context());
    if (driver_map_get(&memory_of_graphs, (uint64_t)pointer) && cai_sim_capture_graph(cai_driver_sim(), stream))
        return memory_free_captured(pointer, stream);
    driver_map_set(&memory_of_graphs, (uint64_t)pointer, NULL);
    return driver_dead_memory((CUresult)cai_sim_pool_free(cai_driver_sim(), pointer, stream), pointer, 0);
}

/* ----------------------------------------------------------------------- >>pointers */
/* A value of 1, 4 or 8 bytes, as the attribute has it. */
static CUresult memory_store(void *data, uint64_t value, size_t bytes)
{
    unsigned char one = (unsigned char)value;
    int four = (int)value;
    memcpy(data, bytes == 1 ? (void *)&one : bytes == 4 ? (void *)&four : (void *)&value, bytes);
    return CUDA_SUCCESS;
}

/* Page-locked memory counts as memory of the host, all other as that of a device. */
static uint64_t memory_type(const cai_sim_pointer *info)
{
    if (info->kind == CAI_SIM_MEM_PINNED || info->kind == CAI_SIM_MEM_ALIASED ||
        info->kind == CAI_SIM_MEM_REGISTERED)
        return CU_MEMORYTYPE_HOST;
    return info->kind == CAI_SIM_MEM_ARRAY ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
}

/* The address that a device uses: without a current context none is known, and without access there is none. */
static CUresult memory_store_device_address(void *data, const cai_sim_pointer *info)
{
    if (!info->device_address)
        return CUDA_ERROR_INVALID_VALUE;
    DRIVER_TRY(driver_need_context());
    DRIVER_NEED(info->access != CAI_SIM_ACCESS_NONE);
    return memory_store(data, info->device_address, 8);
}

static CUresult memory_attribute(void *data, CUpointer_attribute attribute, const cai_sim_pointer *info)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return memory_store(data, info->context, 8);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return memory_store(data, memory_type(info), 4);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return memory_store_device_address(data, info);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return info->host_address ? memory_store(data, info->host_address, 8) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return memory_store(data, info->buffer, 8);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return memory_store(data, (uint64_t)info->managed, 1);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return memory_store(data, (uint64_t)(int64_t)info->device, 4);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return memory_store(data, (uint64_t)info->exportable, 1);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return memory_store(data, info->first, 8);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return memory_store(data, info->bytes, 8);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return memory_store(data, (uint64_t)info->mapped, 1);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return memory_store(data, info->mapping_bytes, 8);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return memory_store(data, info->mapping, 8);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return memory_store(data, info->pool, 8);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return memory_store(data, (uint64_t)info->access, 4);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return memory_store(data, 0, 8);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return memory_store(data, 0, 1);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult do_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr_v2 pointer)
{
    cai_sim_pointer info;
    DRIVER_NEED(data && !cai_sim_pointer_get(cai_driver_sim(), pointer, &info));
    return memory_attribute(data, attribute, &info);
}

/* Sets what a pointer that CUDA does not know gets: zeros, of the device -2. */
static void memory_default(void *data, CUpointer_attribute attribute)
{
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        memory_store(data, (uint64_t)(int64_t)-2, 4);
    else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attribute == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)
        memory_store(data, 0, 4);
    else if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED || attribute == CU_POINTER_ATTRIBUTE_MAPPED ||
             attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
             attribute == CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE ||
             attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE ||
             attribute == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE)
        memory_store(data, 0, 1);
    else
        memory_store(data, 0, 8);
}

CUresult do_cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                   CUdeviceptr_v2 pointer)
{
    cai_sim_pointer info;
    int known;
    unsigned i;
    DRIVER_NEED(count && attributes && data);
    known = !cai_sim_pointer_get(cai_driver_sim(), pointer, &info);
    for (i = 0; i < count; ++i) {
        DRIVER_NEED((int)attributes[i] >= 1 && (int)attributes[i] <= 21 && data[i]);
        memory_default(data[i], attributes[i]);
        if (known)
            (void)memory_attribute(data[i], attributes[i], &info);
    }
    return CUDA_SUCCESS;
}

CUresult do_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr_v2 pointer)
{
    cai_sim_pointer info;
    DRIVER_NEED(value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    DRIVER_NEED(!cai_sim_pointer_get(cai_driver_sim(), pointer, &info));
    DRIVER_NEED(info.kind == CAI_SIM_MEM_DEVICE || info.kind == CAI_SIM_MEM_POOL);
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- >>other processes */
/* Where a handle comes from, behind what the simulation has in it. */
typedef struct memory_origin {
    char magic[8];
    uint64_t process;
} memory_origin;

enum { MEMORY_ORIGIN = 40 }; /* its place in a handle of 64 bytes */

void driver_mark_handle(void *handle)
{
    memory_origin origin = {"cai ipc", 0};
    origin.process = (uint64_t)getpid();
    memcpy((char *)handle + MEMORY_ORIGIN, &origin, sizeof origin);
}

CUresult driver_check_handle(const void *handle)
{
    memory_origin origin;
    memcpy(&origin, (const char *)handle + MEMORY_ORIGIN, sizeof origin);
    DRIVER_NEED(!memcmp(origin.magic, "cai ipc", sizeof origin.magic));
    if (origin.process == (uint64_t)getpid())
        return CUDA_SUCCESS;
    return driver_refuse(CUDA_ERROR_MAP_FAILED, "a handle of another process: memory is of one process");
}

CUresult do_cuIpcGetMemHandle(CUipcMemHandle_v1 *handle, CUdeviceptr_v2 pointer)
{
    const cai_cuda *cuda = driver_cuda();
    DRIVER_NEED(handle);
    memset(handle, 0, sizeof *handle);
    DRIVER_TRY(cuda->ipc_export(cuda->self, pointer, handle));
    driver_mark_handle(handle);
    return CUDA_SUCCESS;
}

CUresult do_cuIpcOpenMemHandle_v2(CUdeviceptr_v2 *pointer, CUipcMemHandle_v1 handle, unsigned int flags)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t opened = 0;
    DRIVER_NEED(pointer && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    DRIVER_TRY(driver_need_context());
    DRIVER_TRY(driver_check_handle(&handle));
    DRIVER_TRY(cuda->ipc_open(cuda->self, &handle, &opened));
    *pointer = (CUdeviceptr)opened;
    return CUDA_SUCCESS;
}

CUresult do_cuIpcCloseMemHandle(CUdeviceptr_v2 pointer)
{
    const cai_cuda *cuda = driver_cuda();
    return (CUresult)cuda->ipc_close(cuda->self, pointer);
}
