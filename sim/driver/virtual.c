/* virtual.c - reserved addresses, physical memory, mappings
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <string.h>

/* What a function of the simulation that makes something failed with. */
static CUresult virtual_made(uint64_t made)
{
    return made ? CUDA_SUCCESS : (CUresult)cai_sim_clear_error(cai_driver_sim());
}

static CUresult virtual_location(const CUmemLocation *location)
{
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    return driver_need_device(location->id);
}

CUresult do_cuMemAddressReserve(CUdeviceptr_v2 *pointer, size_t bytes, size_t alignment, CUdeviceptr_v2 wish,
                                unsigned long long flags)
{
    (void)wish;
    DRIVER_NEED(pointer && bytes && !flags);
    *pointer = (CUdeviceptr)cai_sim_virtual_reserve(cai_driver_sim(), bytes, alignment);
    return virtual_made(*pointer);
}

CUresult do_cuMemAddressFree(CUdeviceptr_v2 pointer, size_t bytes)
{
    return (CUresult)cai_sim_virtual_free(cai_driver_sim(), pointer, bytes);
}

CUresult do_cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp_v1 *properties,
                                          CUmemAllocationGranularity_flags option)
{
    DRIVER_NEED(bytes && properties && option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    *bytes = CAI_SIM_GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult do_cuMemCreate(CUmemGenericAllocationHandle_v1 *handle, size_t bytes,
                        const CUmemAllocationProp_v1 *properties, unsigned long long flags)
{
    DRIVER_NEED(handle && properties && !flags && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED);
    DRIVER_TRY(virtual_location(&properties->location));
    if (properties->requestedHandleTypes)
        return CUDA_ERROR_NOT_SUPPORTED;
    *handle = cai_sim_physical_create(cai_driver_sim(), properties->location.id, bytes);
    return virtual_made(*handle);
}

CUresult do_cuMemRelease(CUmemGenericAllocationHandle_v1 handle)
{
    return (CUresult)cai_sim_physical_release(cai_driver_sim(), handle);
}

CUresult do_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle_v1 *handle, void *address)
{
    DRIVER_NEED(handle && address);
    *handle = cai_sim_physical_retain(cai_driver_sim(), driver_number(address));
    return virtual_made(*handle);
}

CUresult do_cuMemMap(CUdeviceptr_v2 pointer, size_t bytes, size_t offset,
                     CUmemGenericAllocationHandle_v1 handle, unsigned long long flags)
{
    DRIVER_NEED(!flags);
    return (CUresult)cai_sim_virtual_map(cai_driver_sim(), pointer, bytes, offset, handle);
}

CUresult do_cuMemUnmap(CUdeviceptr_v2 pointer, size_t bytes)
{
    return (CUresult)cai_sim_virtual_unmap(cai_driver_sim(), pointer, bytes);
}

CUresult do_cuMemSetAccess(CUdeviceptr_v2 pointer, size_t bytes, const CUmemAccessDesc_v1 *access,
                           size_t count)
{
    size_t i;
    DRIVER_NEED(access && count);
    for (i = 0; i < count; ++i) {
        DRIVER_TRY(virtual_location(&access[i].location));
        DRIVER_TRY(cai_sim_virtual_set_access(cai_driver_sim(), pointer, bytes, access[i].location.id,
                                              (int32_t)access[i].flags));
    }
    return CUDA_SUCCESS;
}

CUresult do_cuMemGetAccess(unsigned long long *flags, const CUmemLocation_v1 *location,
                           CUdeviceptr_v2 pointer)
{
    DRIVER_NEED(flags && location);
    DRIVER_TRY(virtual_location(location));
    *flags = (unsigned long long)cai_sim_virtual_access(cai_driver_sim(), pointer, location->id);
    return CUDA_SUCCESS;
}
