/* context.c - devices and contexts
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void peer_forget(uint64_t context);

static driver_map context_devices; /* of cuCtxCreate: the number of the device plus 1 */

int32_t driver_device_of(uint64_t context)
{
    cai_sim *sim = cai_driver_sim();
    void *known = driver_map_get(&context_devices, context);
    int32_t device;
    if (known)
        return (int32_t)driver_number(known) - 1;
    for (device = 0; driver_need_device(device) == CUDA_SUCCESS; ++device)
        if (cai_sim_primary(sim, device) == context)
            return device;
    return -1;
}

int32_t driver_current_device(void)
{
    uint64_t context = cai_sim_current(cai_driver_sim());
    return context ? driver_device_of(context) : -1;
}

/* A context argument, where NULL is the current one. */
static CUresult context_argument(CUcontext argument, uint64_t *context)
{
    *context = argument ? driver_number(argument) : cai_sim_current(cai_driver_sim());
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return driver_device_of(*context) < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------ >>devices */
CUresult do_cuDeviceGetCount(int *count)
{
    DRIVER_NEED(count);
    for (*count = 0; driver_need_device(*count) == CUDA_SUCCESS; ++*count)
        continue;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGet(CUdevice_v1 *device, int ordinal)
{
    DRIVER_NEED(device);
    DRIVER_TRY(driver_need_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetName(char *name, int length, CUdevice_v1 device)
{
    DRIVER_NEED(name && length > 0);
    DRIVER_TRY(driver_need_device(device));
    snprintf(name, (size_t)length, "cai simulated device");
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice_v1 device)
{
    const cai_cuda *cuda = driver_cuda();
    DRIVER_NEED(uuid);
    DRIVER_TRY(driver_need_device(device));
    return (CUresult)cuda->device_uuid(cuda->self, device, uuid);
}

CUresult do_cuDeviceGetUuid(CUuuid *uuid, CUdevice_v1 device)
{
    return do_cuDeviceGetUuid_v2(uuid, device);
}

CUresult do_cuDeviceTotalMem_v2(size_t *bytes, CUdevice_v1 device)
{
    DRIVER_NEED(bytes);
    DRIVER_TRY(driver_need_device(device));
    *bytes = (size_t)driver_memory_bytes();
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetPCIBusId(char *text, int length, CUdevice_v1 device)
{
    DRIVER_NEED(text && length > 0);
    DRIVER_TRY(driver_need_device(device));
    snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetByPCIBusId(CUdevice_v1 *device, const char *text)
{
    unsigned domain = 0, bus = 0;
    DRIVER_NEED(device && text);
    if (sscanf(text, "%x:%x", &domain, &bus) != 2 || !bus)
        return CUDA_ERROR_INVALID_VALUE;
    DRIVER_TRY(driver_need_device((CUdevice)bus - 1));
    *device = (CUdevice)bus - 1;
    return CUDA_SUCCESS;
}

/* CAI_SIM_CAPABILITY, "9.0" */
static void context_capability(int *major, int *minor)
{
    const char *text = getenv("CAI_SIM_CAPABILITY");
    *major = 9;
    *minor = 0;
    if (text && sscanf(text, "%d.%d", major, minor) != 2) {
        *major = 9;
        *minor = 0;
    }
}

CUresult do_cuDeviceComputeCapability(int *major, int *minor, CUdevice_v1 device)
{
    DRIVER_NEED(major && minor);
    DRIVER_TRY(driver_need_device(device));
    context_capability(major, minor);
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceCanAccessPeer(int *can, CUdevice_v1 device, CUdevice_v1 peer)
{
    DRIVER_NEED(can);
    DRIVER_TRY(driver_need_device(device));
    DRIVER_TRY(driver_need_device(peer));
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice_v1 from,
                                    CUdevice_v1 to)
{
    DRIVER_TRY(driver_need_device(from));
    DRIVER_TRY(driver_need_device(to));
    if (from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    DRIVER_NEED(value && (int)attribute >= 1 && (int)attribute <= 5);
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
}

/* A device that could be. What is not listed is 0: not supported. */
static const struct {
    CUdevice_attribute attribute;
    int value;
} context_attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1500000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 1024},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 33554432},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
};

CUresult do_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice_v1 device)
{
    int major, minor;
    size_t i;
    DRIVER_NEED(value && (int)attribute >= 1 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
    DRIVER_TRY(driver_need_device(device));
    *value = 0;
    context_capability(&major, &minor);
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = major;
    else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = minor;
    else if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value = device + 1;
    else if (attribute >= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH &&
             attribute <= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS)
        *value = 16384;
    for (i = 0; i < sizeof context_attributes / sizeof *context_attributes; ++i)
        if (context_attributes[i].attribute == attribute)
            *value = context_attributes[i].value;
    return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------- >>primary contexts */
CUresult do_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice_v1 device)
{
    uint64_t made;
    DRIVER_NEED(context);
    DRIVER_TRY(driver_need_device(device));
    made = cai_sim_primary_retain(cai_driver_sim(), device);
    *context = (CUcontext)driver_handle(made);
    return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult do_cuDevicePrimaryCtxRelease_v2(CUdevice_v1 device)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t left = 0;
    DRIVER_TRY(driver_need_device(device));
    DRIVER_TRY(cai_sim_primary_release(cai_driver_sim(), device));
    DRIVER_TRY(cuda->device_context(cuda->self, device, &left));
    if (!left)
        peer_forget(cai_sim_primary(cai_driver_sim(), device));
    return CUDA_SUCCESS;
}

CUresult do_cuDevicePrimaryCtxRelease(CUdevice_v1 device)
{
    return do_cuDevicePrimaryCtxRelease_v2(device);
}

CUresult do_cuDevicePrimaryCtxReset_v2(CUdevice_v1 device)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t context = 0;
    DRIVER_TRY(driver_need_device(device));
    DRIVER_TRY(cuda->device_context(cuda->self, device, &context));
    if (!context)
        return CUDA_SUCCESS; /* it is inactive: nothing is to be reset */
    peer_forget(context);
    return (CUresult)cai_sim_context_destroy(cai_driver_sim(), context);
}

CUresult do_cuDevicePrimaryCtxGetState(CUdevice_v1 device, unsigned int *flags, int *active)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t context = 0;
    DRIVER_NEED(flags && active);
    DRIVER_TRY(driver_need_device(device));
    DRIVER_TRY(cuda->device_context(cuda->self, device, &context));
    *flags = 0;
    *active = context != 0;
    return CUDA_SUCCESS;
}

CUresult do_cuDevicePrimaryCtxSetFlags_v2(CUdevice_v1 device, unsigned int flags)
{
    (void)flags;
    return driver_need_device(device);
}

/* ------------------------------------------------------------------------ >>contexts */
CUresult do_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice_v1 device)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t made;
    (void)flags;
    DRIVER_NEED(context);
    DRIVER_TRY(driver_need_device(device));
    made = cai_sim_context_create(cai_driver_sim(), device);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_map_set(&context_devices, made, driver_handle((uint64_t)device + 1));
    *context = (CUcontext)driver_handle(made);
    return (CUresult)cuda->context_push(cuda->self, made);
}

CUresult do_cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
                           CUdevice device)
{
    (void)parameters;
    return do_cuCtxCreate_v2(context, flags, device);
}

CUresult do_cuCtxDestroy_v2(CUcontext context)
{
    if (!driver_map_get(&context_devices, driver_number(context)))
        return CUDA_ERROR_INVALID_CONTEXT;
    peer_forget(driver_number(context));
    driver_map_set(&context_devices, driver_number(context), NULL);
    return (CUresult)cai_sim_context_destroy(cai_driver_sim(), driver_number(context));
}

/* Deprecated since CUDA 4: a use count of each context, which is 1 here. */
CUresult do_cuCtxDetach(CUcontext context)
{
    if (!context || driver_number(context) != cai_sim_current(cai_driver_sim()))
        return CUDA_ERROR_INVALID_CONTEXT;
    return do_cuCtxDestroy_v2(context);
}

CUresult do_cuCtxPushCurrent_v2(CUcontext context)
{
    const cai_cuda *cuda = driver_cuda();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return (CUresult)cuda->context_push(cuda->self, driver_number(context));
}

CUresult do_cuCtxPopCurrent_v2(CUcontext *context)
{
    const cai_cuda *cuda = driver_cuda();
    uint64_t current = cai_sim_current(cai_driver_sim());
    DRIVER_TRY(cuda->context_pop(cuda->self));
    if (context)
        *context = (CUcontext)driver_handle(current);
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetCurrent(CUcontext context)
{
    const cai_cuda *cuda = driver_cuda();
    const uint64_t before = cai_sim_current(cai_driver_sim());
    int32_t error = 0;
    if (before)
        DRIVER_TRY(cuda->context_pop(cuda->self));
    if (context)
        error = cuda->context_push(cuda->self, driver_number(context));
    if (error && before)
        cuda->context_push(cuda->self, before);
    return (CUresult)error;
}

CUresult do_cuCtxGetCurrent(CUcontext *context)
{
    DRIVER_NEED(context);
    *context = (CUcontext)driver_handle(cai_sim_current(cai_driver_sim()));
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetDevice(CUdevice_v1 *device)
{
    DRIVER_NEED(device);
    DRIVER_TRY(driver_need_context());
    *device = driver_current_device();
    return *device < 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult do_cuCtxGetDevice_v2(CUdevice *device, CUcontext argument)
{
    uint64_t context;
    DRIVER_NEED(device);
    DRIVER_TRY(context_argument(argument, &context));
    *device = driver_device_of(context);
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetId(CUcontext argument, unsigned long long *id)
{
    uint64_t context;
    DRIVER_NEED(id);
    DRIVER_TRY(context_argument(argument, &context));
    *id = context;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetFlags(unsigned int *flags)
{
    DRIVER_NEED(flags);
    DRIVER_TRY(driver_need_context());
    *flags = 0;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetApiVersion(CUcontext argument, unsigned int *version)
{
    uint64_t context;
    DRIVER_NEED(version);
    DRIVER_TRY(context_argument(argument, &context));
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSynchronize(void)
{
    DRIVER_TRY(driver_need_context());
    return (CUresult)cai_sim_context_synchronize(cai_driver_sim());
}

CUresult do_cuCtxSynchronize_v2(CUcontext argument)
{
    const cai_cuda *cuda = driver_cuda();
    CUresult result;
    if (!argument)
        return do_cuCtxSynchronize();
    DRIVER_TRY(cuda->context_push(cuda->self, driver_number(argument)));
    result = (CUresult)cai_sim_context_synchronize(cai_driver_sim());
    cuda->context_pop(cuda->self);
    return result;
}

CUresult do_cuCtxGetLimit(size_t *value, CUlimit limit)
{
    DRIVER_NEED(value);
    DRIVER_TRY(driver_need_context());
    if (limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = limit == CU_LIMIT_STACK_SIZE ? 1024 : (size_t)8 << 20;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetLimit(CUlimit limit, size_t value)
{
    (void)value;
    DRIVER_TRY(driver_need_context());
    return limit < CU_LIMIT_MAX ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult do_cuCtxGetCacheConfig(CUfunc_cache *config)
{
    DRIVER_NEED(config);
    DRIVER_TRY(driver_need_context());
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetCacheConfig(CUfunc_cache config)
{
    (void)config;
    return driver_need_context();
}

/* Banks of shared memory cannot be chosen since compute capability 5.0. */
CUresult do_cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    DRIVER_NEED(config);
    DRIVER_TRY(driver_need_context());
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    DRIVER_NEED((int)config >= 0 && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    return driver_need_context();
}

CUresult do_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    DRIVER_TRY(driver_need_context());
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------- >>peer access */
typedef struct context_peers {
    uint64_t from, to; /* contexts: `from` can access memory of `to` */
} context_peers;

static pthread_mutex_t peer_lock = PTHREAD_MUTEX_INITIALIZER;
static context_peers *peer_pairs;
static size_t peer_count;

/* The place of a pair, or peer_count. */
static size_t peer_find(uint64_t from, uint64_t to)
{
    size_t i = 0;
    while (i < peer_count && (peer_pairs[i].from != from || peer_pairs[i].to != to))
        ++i;
    return i;
}

/* The simulation knows access of devices: it is there while a pair of their contexts has it. */
static void peer_drop(size_t place)
{
    const int32_t from = driver_device_of(peer_pairs[place].from), to = driver_device_of(peer_pairs[place].to);
    size_t i;
    peer_pairs[place] = peer_pairs[--peer_count];
    for (i = 0; i < peer_count; ++i)
        if (driver_device_of(peer_pairs[i].from) == from && driver_device_of(peer_pairs[i].to) == to)
            return;
    cai_sim_set_peer_access(cai_driver_sim(), from, to, 0);
}

static void peer_forget(uint64_t context)
{
    size_t i;
    pthread_mutex_lock(&peer_lock);
    for (i = peer_count; i-- > 0;)
        if (peer_pairs[i].from == context || peer_pairs[i].to == context)
            peer_drop(i);
    pthread_mutex_unlock(&peer_lock);
}

static CUresult peer_add(uint64_t from, uint64_t to)
{
    context_peers *more;
    if (peer_find(from, to) < peer_count)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    more = (context_peers *)realloc(peer_pairs, (peer_count + 1) * sizeof *more);
    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    peer_pairs = more;
    peer_pairs[peer_count].from = from;
    peer_pairs[peer_count++].to = to;
    cai_sim_set_peer_access(cai_driver_sim(), driver_device_of(from), driver_device_of(to), 1);
    return CUDA_SUCCESS;
}

CUresult do_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    const uint64_t from = cai_sim_current(cai_driver_sim()), to = driver_number(peer);
    CUresult result;
    DRIVER_NEED(!flags);
    if (!from || from == to || driver_device_of(to) < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (driver_device_of(from) == driver_device_of(to))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&peer_lock);
    result = peer_add(from, to);
    pthread_mutex_unlock(&peer_lock);
    return result;
}

CUresult do_cuCtxDisablePeerAccess(CUcontext peer)
{
    const uint64_t from = cai_sim_current(cai_driver_sim()), to = driver_number(peer);
    CUresult result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    size_t place;
    if (!from || driver_device_of(to) < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&peer_lock);
    place = peer_find(from, to);
    if (place < peer_count) {
        peer_drop(place);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&peer_lock);
    return result;
}
