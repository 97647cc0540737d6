/* memory.c - memory of devices and of the host, pools, attributes of pointers, memory of other processes. */
#include "runtime.h"

#include <string.h>

/* ---- memory of devices ---- */

cudaError_t rt_cudaMemGetInfo(size_t *free, size_t *total)
{
    RT_NEED_VALUE(free && total);
    RT_NEED_CONTEXT();
    return rt_error(cuMemGetInfo(free, total));
}

/* `address` is a pointer: the call that sets it stands beside it, as the first argument. */
static cudaError_t rt_give(CUresult result, const CUdeviceptr *address, void **out)
{
    if (result) return rt_error(result);
    *out = (void *)(uintptr_t)*address;
    return cudaSuccess;
}

/* No bytes: success and NULL. The driver would refuse them. */
cudaError_t rt_cudaMalloc(void **devPtr, size_t size)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE(devPtr);
    RT_NEED_CONTEXT();
    *devPtr = NULL;
    if (!size) return cudaSuccess;
    return rt_give(cuMemAlloc(&address, size), &address, devPtr);
}

cudaError_t rt_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE(devPtr && pitch);
    RT_NEED_CONTEXT();
    *devPtr = NULL;
    *pitch = 0;
    if (!width || !height) return cudaSuccess;
    return rt_give(cuMemAllocPitch(&address, pitch, width, height, 4), &address, devPtr);
}

cudaError_t rt_cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    struct cudaPitchedPtr made;
    RT_NEED_VALUE(pitchedDevPtr);
    RT_NEED(!extent.depth || extent.height <= SIZE_MAX / extent.depth, cudaErrorMemoryAllocation);
    RT_TRY(rt_cudaMallocPitch(&made.ptr, &made.pitch, extent.width, extent.height * extent.depth));
    made.xsize = extent.width;
    made.ysize = extent.height;
    *pitchedDevPtr = made;
    return cudaSuccess;
}

cudaError_t rt_cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE(devPtr && size);
    RT_NEED_CONTEXT();
    return rt_give(cuMemAllocManaged(&address, size, flags), &address, devPtr);
}

/* "If devPtr is 0, no operation is performed." */
cudaError_t rt_cudaFree(void *devPtr)
{
    RT_NEED_CONTEXT();
    if (!devPtr) return cudaSuccess;
    return rt_error(cuMemFree(rt_address(devPtr)));
}

/* ---- memory of the host ---- */

cudaError_t rt_cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    RT_NEED_VALUE(pHost);
    RT_NEED_CONTEXT();
    *pHost = NULL;
    if (!size) return cudaSuccess;
    return rt_error(cuMemHostAlloc(pHost, size, flags));
}

cudaError_t rt_cudaMallocHost(void **ptr, size_t size)
{
    return rt_cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t rt_cudaFreeHost(void *ptr)
{
    RT_NEED_CONTEXT();
    if (!ptr) return cudaSuccess;
    return rt_error(cuMemFreeHost(ptr));
}

cudaError_t rt_cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    RT_NEED_VALUE(ptr && size);
    RT_NEED_CONTEXT();
    return rt_error(cuMemHostRegister(ptr, size, flags));
}

cudaError_t rt_cudaHostUnregister(void *ptr)
{
    RT_NEED_VALUE(ptr);
    RT_NEED_CONTEXT();
    return rt_error(cuMemHostUnregister(ptr));
}

cudaError_t rt_cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE(pDevice && flags == 0);
    RT_NEED_CONTEXT();
    return rt_give(cuMemHostGetDevicePointer(&address, pHost, flags), &address, pDevice);
}

cudaError_t rt_cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
    RT_NEED_VALUE(pFlags);
    RT_NEED_CONTEXT();
    return rt_error(cuMemHostGetFlags(pFlags, pHost));
}

/* ---- in the order of a stream ---- */

cudaError_t rt_cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE(devPtr);
    RT_NEED_CONTEXT();
    *devPtr = NULL;
    if (!size) return cudaSuccess;
    return rt_give(cuMemAllocAsync(&address, size, rt_stream(hStream)), &address, devPtr);
}

cudaError_t rt_cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE(ptr);
    RT_NEED_CONTEXT();
    *ptr = NULL;
    if (!size) return cudaSuccess;
    return rt_give(cuMemAllocFromPoolAsync(&address, size, memPool, rt_stream(stream)), &address, ptr);
}

cudaError_t rt_cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    RT_NEED_CONTEXT();
    if (!devPtr) return cudaSuccess;
    return rt_error(cuMemFreeAsync(rt_address(devPtr), rt_stream(hStream)));
}

cudaError_t rt_cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(memPool);
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceGetDefaultMemPool(memPool, handle));
}

cudaError_t rt_cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
    CUdevice handle = 0;
    RT_NEED_VALUE(memPool);
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceGetMemPool(memPool, handle));
}

cudaError_t rt_cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
    CUdevice handle = 0;
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuDeviceSetMemPool(handle, memPool));
}

cudaError_t rt_cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
    RT_NEED_VALUE(memPool && poolProps);
    RT_TRY(rt_start());
    return rt_error(cuMemPoolCreate(memPool, (const CUmemPoolProps *)(const void *)poolProps));
}

cudaError_t rt_cudaMemPoolDestroy(cudaMemPool_t memPool)
{
    RT_NEED_VALUE(memPool);
    return rt_error(cuMemPoolDestroy(memPool));
}

cudaError_t rt_cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
    RT_NEED_VALUE(memPool);
    return rt_error(cuMemPoolTrimTo(memPool, minBytesToKeep));
}

cudaError_t rt_cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    RT_NEED_VALUE(memPool && value);
    return rt_error(cuMemPoolSetAttribute(memPool, (CUmemPool_attribute)(int)attr, value));
}

cudaError_t rt_cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    RT_NEED_VALUE(memPool && value);
    return rt_error(cuMemPoolGetAttribute(memPool, (CUmemPool_attribute)(int)attr, value));
}

cudaError_t rt_cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList,
                                    size_t count)
{
    RT_NEED_VALUE(memPool && (descList || !count));
    return rt_error(cuMemPoolSetAccess(memPool, (const CUmemAccessDesc *)(const void *)descList, count));
}

cudaError_t rt_cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
                                    struct cudaMemLocation *location)
{
    CUmemAccess_flags found = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    RT_NEED_VALUE(flags && memPool && location);
    RT_TRY(rt_error(cuMemPoolGetAccess(&found, memPool, (CUmemLocation *)(void *)location)));
    *flags = (enum cudaMemAccessFlags)(int)found;
    return cudaSuccess;
}

cudaError_t rt_cudaMemPoolExportToShareableHandle(void *shareableHandle, cudaMemPool_t memPool,
                                                  enum cudaMemAllocationHandleType handleType,
                                                  unsigned int flags)
{
    RT_NEED_VALUE(shareableHandle && memPool);
    return rt_error(cuMemPoolExportToShareableHandle(shareableHandle, memPool,
                                                     (CUmemAllocationHandleType)(int)handleType, flags));
}

cudaError_t rt_cudaMemPoolImportFromShareableHandle(cudaMemPool_t *memPool, void *shareableHandle,
                                                    enum cudaMemAllocationHandleType handleType,
                                                    unsigned int flags)
{
    RT_NEED_VALUE(memPool);
    RT_TRY(rt_start());
    return rt_error(cuMemPoolImportFromShareableHandle(memPool, shareableHandle,
                                                       (CUmemAllocationHandleType)(int)handleType, flags));
}

cudaError_t rt_cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *exportData, void *ptr)
{
    RT_NEED_VALUE(exportData);
    return rt_error(cuMemPoolExportPointer((CUmemPoolPtrExportData *)(void *)exportData, rt_address(ptr)));
}

cudaError_t rt_cudaMemPoolImportPointer(void **ptr, cudaMemPool_t memPool,
                                        struct cudaMemPoolPtrExportData *exportData)
{
    CUdeviceptr address = 0;
    CUresult result;
    RT_NEED_VALUE(ptr && memPool && exportData);
    result = cuMemPoolImportPointer(&address, memPool, (CUmemPoolPtrExportData *)(void *)exportData);
    return rt_give(result, &address, ptr);
}

/* ---- managed memory ---- */

static cudaError_t rt_advise(const void *pointer, size_t count, enum cudaMemoryAdvise advice,
                             struct cudaMemLocation where)
{
    CUmemLocation location;
    memcpy(&location, &where, sizeof location);
    RT_NEED_CONTEXT();
    return rt_error(cuMemAdvise_v2(rt_address(pointer), count, (CUmem_advise)(int)advice, location));
}

static cudaError_t rt_prefetch(const void *pointer, size_t count, struct cudaMemLocation where,
                               unsigned int flags, cudaStream_t stream)
{
    CUmemLocation location;
    memcpy(&location, &where, sizeof location);
    RT_NEED_CONTEXT();
    return rt_error(cuMemPrefetchAsync_v2(rt_address(pointer), count, location, flags, rt_stream(stream)));
}

#if CUDART_VERSION >= 13000
cudaError_t rt_cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                             struct cudaMemLocation location)
{
    return rt_advise(devPtr, count, advice, location);
}

cudaError_t rt_cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location,
                                    unsigned int flags, cudaStream_t stream)
{
    return rt_prefetch(devPtr, count, location, flags, stream);
}
#else
static struct cudaMemLocation rt_location(int device)
{
    struct cudaMemLocation location;
    memset(&location, 0, sizeof location);
    location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    location.id = device == cudaCpuDeviceId ? 0 : device;
    return location;
}

cudaError_t rt_cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice, int device)
{
    return rt_advise(devPtr, count, advice, rt_location(device));
}

cudaError_t rt_cudaMemAdvise_v2(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                                struct cudaMemLocation location)
{
    return rt_advise(devPtr, count, advice, location);
}

cudaError_t rt_cudaMemPrefetchAsync(const void *devPtr, size_t count, int dstDevice, cudaStream_t stream)
{
    return rt_prefetch(devPtr, count, rt_location(dstDevice), 0, stream);
}

cudaError_t rt_cudaMemPrefetchAsync_v2(const void *devPtr, size_t count, struct cudaMemLocation location,
                                       unsigned int flags, cudaStream_t stream)
{
    return rt_prefetch(devPtr, count, location, flags, stream);
}
#endif

cudaError_t rt_cudaMemRangeGetAttribute(void *data, size_t dataSize, enum cudaMemRangeAttribute attribute,
                                        const void *devPtr, size_t count)
{
    RT_NEED_VALUE(data);
    RT_NEED_CONTEXT();
    return rt_error(cuMemRangeGetAttribute(data, dataSize, (CUmem_range_attribute)(int)attribute,
                                           rt_address(devPtr), count));
}

/* ---- attributes of pointers ---- */

static enum cudaMemoryType rt_type(unsigned int type, unsigned int managed)
{
    if (!type) return cudaMemoryTypeUnregistered;
    if (managed) return cudaMemoryTypeManaged;
    return type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
}

/* Memory that CUDA does not know: success, cudaMemoryTypeUnregistered, device -2, no device pointer. */
cudaError_t rt_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    unsigned int type = 0;
    unsigned int managed = 0;
    int device = cudaInvalidDeviceId;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    CUpointer_attribute wanted[5] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                     CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[5] = {NULL, NULL, NULL, NULL, NULL};
    RT_NEED_VALUE(attributes);
    RT_NEED_CONTEXT();
    values[0] = &type;
    values[1] = &managed;
    values[2] = &device;
    values[3] = &device_pointer;
    values[4] = &host_pointer;
    RT_TRY(rt_error(cuPointerGetAttributes(5, wanted, values, rt_address(ptr))));
    memset(attributes, 0, sizeof *attributes);
    attributes->type = rt_type(type, managed);
    attributes->device = type ? device : cudaInvalidDeviceId;
    attributes->devicePointer = type ? (void *)(uintptr_t)device_pointer : NULL;
    attributes->hostPointer = type ? host_pointer : (void *)(uintptr_t)ptr;
    return cudaSuccess;
}

/* ---- arrays: the functions of texels are not served, but this one needs no device ---- */

RT_EXPORT struct cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                       enum cudaChannelFormatKind f)
{
    struct cudaChannelFormatDesc made;
    memset(&made, 0, sizeof made);
    made.x = x;
    made.y = y;
    made.z = z;
    made.w = w;
    made.f = f;
    return made;
}

/* ---- memory of other processes ---- */

cudaError_t rt_cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
    RT_NEED_VALUE(handle);
    RT_NEED_CONTEXT();
    return rt_error(cuIpcGetMemHandle((CUipcMemHandle *)(void *)handle, rt_address(devPtr)));
}

cudaError_t rt_cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle plain;
    CUdeviceptr address = 0;
    RT_NEED_VALUE(devPtr);
    RT_NEED_CONTEXT();
    memcpy(&plain, &handle, sizeof plain);
    return rt_give(cuIpcOpenMemHandle(&address, plain, flags), &address, devPtr);
}

cudaError_t rt_cudaIpcCloseMemHandle(void *devPtr)
{
    RT_NEED_CONTEXT();
    return rt_error(cuIpcCloseMemHandle(rt_address(devPtr)));
}
