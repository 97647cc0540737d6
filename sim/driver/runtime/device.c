/* device.c - devices: numbers, properties, limits, peers, and versions and entry points of the driver. */
#include "runtime.h"

#include <stddef.h>
#include <string.h>

/* ---- versions and entry points ---- */

cudaError_t rt_cudaRuntimeGetVersion(int *runtimeVersion)
{
    RT_NEED_VALUE(runtimeVersion);
    *runtimeVersion = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t rt_cudaDriverGetVersion(int *driverVersion)
{
    RT_NEED_VALUE(driverVersion);
    return rt_error(cuDriverGetVersion(driverVersion));
}

/* "The API will return ::cudaSuccess and set the returned funcPtr to NULL if the requested driver function is
   not supported on the platform, no ABI compatible driver function exists for the requested version or if the
   driver symbol is invalid." */
cudaError_t rt_cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr, unsigned int cudaVersion,
                                                unsigned long long flags,
                                                enum cudaDriverEntryPointQueryResult *driverStatus)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result;
    RT_NEED_VALUE(symbol && funcPtr && flags <= cudaEnablePerThreadDefaultStream);
    RT_TRY(rt_start());
    if (flags == cudaEnableDefault && rt_is_per_thread()) flags = cudaEnablePerThreadDefaultStream;
    *funcPtr = NULL;
    result = cuGetProcAddress_v2(symbol, funcPtr, (int)cudaVersion, flags, &found);
    if (result && result != CUDA_ERROR_NOT_FOUND) return rt_error(result);
    if (driverStatus) *driverStatus = (enum cudaDriverEntryPointQueryResult)(int)found;
    return cudaSuccess;
}

cudaError_t rt_cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                       enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return rt_cudaGetDriverEntryPointByVersion(symbol, funcPtr, CUDART_VERSION, flags, driverStatus);
}

/* Private tables are not served. */
cudaError_t rt_cudaGetExportTable(const void **ppExportTable, const cudaUUID_t *pExportTableId)
{
    RT_NEED_VALUE(ppExportTable && pExportTableId);
    *ppExportTable = NULL;
    return cudaErrorSymbolNotFound;
}

/* No profiler is attached, so there is nothing to start. */
cudaError_t rt_cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t rt_cudaProfilerStop(void)
{
    return cudaSuccess;
}

/* ---- devices ---- */

cudaError_t rt_cudaGetDeviceCount(int *count)
{
    RT_NEED_VALUE(count);
    *count = 0;
    RT_TRY(rt_start());
    RT_TRY(rt_error(cuDeviceGetCount(count)));
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t rt_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(value);
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceGetAttribute(value, (CUdevice_attribute)(int)attr, handle));
}

cudaError_t rt_cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(pciBusId && len > 0);
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceGetPCIBusId(pciBusId, len, handle));
}

cudaError_t rt_cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(device && pciBusId);
    RT_TRY(rt_start());
    RT_TRY(rt_error(cuDeviceGetByPCIBusId(&handle, pciBusId)));
    *device = (int)handle;
    return cudaSuccess;
}

typedef struct rt_property {
    size_t offset;
    size_t bytes; /* of the field: int or size_t */
    CUdevice_attribute attribute;
} rt_property;

#define RT_FIELD(field, attribute)                                                                           \
    {                                                                                                        \
        offsetof(struct cudaDeviceProp, field), sizeof(((struct cudaDeviceProp *)0)->field),                 \
            CU_DEVICE_ATTRIBUTE_##attribute                                                                  \
    }

static const rt_property rt_properties[] = {
    RT_FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    RT_FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    RT_FIELD(warpSize, WARP_SIZE),
    RT_FIELD(memPitch, MAX_PITCH),
    RT_FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    RT_FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    RT_FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    RT_FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    RT_FIELD(maxGridSize[0], MAX_GRID_DIM_X),
    RT_FIELD(maxGridSize[1], MAX_GRID_DIM_Y),
    RT_FIELD(maxGridSize[2], MAX_GRID_DIM_Z),
    RT_FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
    RT_FIELD(major, COMPUTE_CAPABILITY_MAJOR),
    RT_FIELD(minor, COMPUTE_CAPABILITY_MINOR),
    RT_FIELD(textureAlignment, TEXTURE_ALIGNMENT),
    RT_FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    RT_FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
    RT_FIELD(integrated, INTEGRATED),
    RT_FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    RT_FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    RT_FIELD(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
    RT_FIELD(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
    RT_FIELD(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
    RT_FIELD(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
    RT_FIELD(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
    RT_FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
    RT_FIELD(concurrentKernels, CONCURRENT_KERNELS),
    RT_FIELD(ECCEnabled, ECC_ENABLED),
    RT_FIELD(pciBusID, PCI_BUS_ID),
    RT_FIELD(pciDeviceID, PCI_DEVICE_ID),
    RT_FIELD(pciDomainID, PCI_DOMAIN_ID),
    RT_FIELD(tccDriver, TCC_DRIVER),
    RT_FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
    RT_FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
    RT_FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    RT_FIELD(l2CacheSize, L2_CACHE_SIZE),
    RT_FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    RT_FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    RT_FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    RT_FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    RT_FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    RT_FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    RT_FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    RT_FIELD(managedMemory, MANAGED_MEMORY),
    RT_FIELD(isMultiGpuBoard, MULTI_GPU_BOARD),
    RT_FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    RT_FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    RT_FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    RT_FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    RT_FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    RT_FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    RT_FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
    RT_FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    RT_FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    RT_FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    RT_FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    RT_FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    RT_FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    RT_FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    RT_FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    RT_FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    RT_FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    RT_FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    RT_FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    RT_FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    RT_FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    RT_FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    RT_FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    RT_FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
    RT_FIELD(clusterLaunch, CLUSTER_LAUNCH),
    RT_FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
#if CUDART_VERSION >= 13000
    RT_FIELD(mpsEnabled, MPS_ENABLED),
    RT_FIELD(hostNumaId, HOST_NUMA_ID),
#else
    RT_FIELD(clockRate, CLOCK_RATE),
    RT_FIELD(deviceOverlap, GPU_OVERLAP),
    RT_FIELD(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
    RT_FIELD(computeMode, COMPUTE_MODE),
    RT_FIELD(memoryClockRate, MEMORY_CLOCK_RATE),
    RT_FIELD(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    RT_FIELD(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH),
#endif
};

static void rt_fill_properties(struct cudaDeviceProp *prop, CUdevice device)
{
    size_t i;
    for (i = 0; i < sizeof rt_properties / sizeof rt_properties[0]; ++i) {
        const rt_property *property = &rt_properties[i];
        int value = 0;
        size_t wide;
        if (cuDeviceGetAttribute(&value, property->attribute, device)) continue;
        wide = (size_t)(value > 0 ? value : 0);
        if (property->bytes == sizeof wide) memcpy((char *)prop + property->offset, &wide, sizeof wide);
        if (property->bytes == sizeof value) memcpy((char *)prop + property->offset, &value, sizeof value);
    }
}

static cudaError_t rt_properties_of(struct cudaDeviceProp *prop, int device)
{
    CUdevice handle = 0;
    CUuuid uuid;
    RT_NEED_VALUE(prop);
    RT_TRY(rt_device(device, &handle));
    memset(prop, 0, sizeof *prop);
    RT_TRY(rt_error(cuDeviceGetName(prop->name, (int)sizeof prop->name, handle)));
    RT_TRY(rt_error(cuDeviceTotalMem(&prop->totalGlobalMem, handle)));
    if (cuDeviceGetUuid(&uuid, handle) == CUDA_SUCCESS) memcpy(&prop->uuid, &uuid, sizeof prop->uuid);
    rt_fill_properties(prop, handle);
    return cudaSuccess;
}

/* In CUDA 12 the name without _v2 fills the smaller struct of CUDA 11. It is not served there. */
#if CUDART_VERSION >= 13000
cudaError_t rt_cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
#else
cudaError_t rt_cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
#endif
{
    return rt_properties_of(prop, device);
}

/* The first device of at least that compute capability and memory, else device 0. */
cudaError_t rt_cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    int count = 0;
    int i;
    RT_NEED_VALUE(device && prop);
    RT_TRY(rt_cudaGetDeviceCount(&count));
    *device = 0;
    for (i = 0; i < count; ++i) {
        struct cudaDeviceProp have;
        RT_TRY(rt_properties_of(&have, i));
        if (have.major < prop->major || (have.major == prop->major && have.minor < prop->minor)) continue;
        if (have.totalGlobalMem < prop->totalGlobalMem) continue;
        *device = i;
        return cudaSuccess;
    }
    return cudaSuccess;
}

/* ---- flags and limits of the current device ---- */

cudaError_t rt_cudaSetDeviceFlags(unsigned int flags)
{
    int device = 0;
    CUdevice handle = 0;
    RT_TRY(rt_cudaGetDevice(&device));
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDevicePrimaryCtxSetFlags(handle, flags & ~(unsigned int)cudaDeviceMapHost));
}

/* Memory of the host is always mapped. */
cudaError_t rt_cudaGetDeviceFlags(unsigned int *flags)
{
    int device = 0;
    int active = 0;
    CUdevice handle = 0;
    RT_NEED_VALUE(flags);
    RT_TRY(rt_cudaGetDevice(&device));
    RT_TRY(rt_device(device, &handle));
    RT_TRY(rt_error(cuDevicePrimaryCtxGetState(handle, flags, &active)));
    *flags |= cudaDeviceMapHost;
    return cudaSuccess;
}

cudaError_t rt_cudaDeviceSynchronize(void)
{
    RT_NEED_CONTEXT();
    return rt_error(cuCtxSynchronize());
}

cudaError_t rt_cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    RT_NEED_CONTEXT();
    return rt_error(cuCtxSetLimit((CUlimit)(int)limit, value));
}

cudaError_t rt_cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
    RT_NEED_VALUE(pValue);
    RT_NEED_CONTEXT();
    return rt_error(cuCtxGetLimit(pValue, (CUlimit)(int)limit));
}

cudaError_t rt_cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
    CUfunc_cache config = CU_FUNC_CACHE_PREFER_NONE;
    RT_NEED_VALUE(pCacheConfig);
    RT_NEED_CONTEXT();
    RT_TRY(rt_error(cuCtxGetCacheConfig(&config)));
    *pCacheConfig = (enum cudaFuncCache)(int)config;
    return cudaSuccess;
}

cudaError_t rt_cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
    RT_NEED_CONTEXT();
    return rt_error(cuCtxSetCacheConfig((CUfunc_cache)(int)cacheConfig));
}

cudaError_t rt_cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    RT_NEED_CONTEXT();
    return rt_error(cuCtxGetStreamPriorityRange(leastPriority, greatestPriority));
}

cudaError_t rt_cudaCtxResetPersistingL2Cache(void)
{
    RT_NEED_CONTEXT();
    return rt_error(cuCtxResetPersistingL2Cache());
}

#if CUDART_VERSION < 13000
cudaError_t rt_cudaThreadSynchronize(void)
{
    return rt_cudaDeviceSynchronize();
}

cudaError_t rt_cudaThreadExit(void)
{
    return rt_cudaDeviceReset();
}
#endif

/* ---- peers ---- */

cudaError_t rt_cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    CUdevice handle = 0;
    CUdevice peer = 0;
    RT_NEED_VALUE(canAccessPeer);
    RT_TRY(rt_device(device, &handle));
    RT_TRY(rt_device(peerDevice, &peer));
    return rt_error(cuDeviceCanAccessPeer(canAccessPeer, handle, peer));
}

/* The documentation lists cudaErrorInvalidDevice for a peer that cannot be one. */
static cudaError_t rt_peer(int peer_device, CUcontext *out)
{
    int device = 0;
    RT_NEED_CONTEXT();
    RT_TRY(rt_cudaGetDevice(&device));
    RT_NEED(device != peer_device, cudaErrorInvalidDevice);
    return rt_primary(peer_device, out);
}

cudaError_t rt_cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    CUcontext peer = NULL;
    RT_NEED_VALUE(flags == 0);
    RT_TRY(rt_peer(peerDevice, &peer));
    return rt_error(cuCtxEnablePeerAccess(peer, flags));
}

cudaError_t rt_cudaDeviceDisablePeerAccess(int peerDevice)
{
    CUcontext peer = NULL;
    RT_TRY(rt_peer(peerDevice, &peer));
    return rt_error(cuCtxDisablePeerAccess(peer));
}

cudaError_t rt_cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int srcDevice,
                                         int dstDevice)
{
    CUdevice source = 0;
    CUdevice destination = 0;
    RT_NEED_VALUE(value);
    RT_TRY(rt_device(srcDevice, &source));
    RT_TRY(rt_device(dstDevice, &destination));
    return rt_error(cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)(int)attr, source, destination));
}
