/* copy.c - cuMemcpy and cuMemset in all their forms
 * SPDX-License-Identifier: MIT */
#include "driver.h"

/* A stream argument: the default streams need a current context. */
static CUresult copy_stream(CUstream argument, uint64_t *stream)
{
    *stream = driver_stream(argument);
    return *stream <= 2 ? driver_need_context() : CUDA_SUCCESS;
}

static CUresult copy_now(uint64_t to, uint64_t from, size_t bytes)
{
    DRIVER_TRY(driver_need_context());
    DRIVER_NEED(!bytes || (to && from));
    return driver_dead_memory((CUresult)cai_sim_copy(cai_driver_sim(), to, from, bytes, driver_stream(NULL)), to, from);
}

static CUresult copy_later(uint64_t to, uint64_t from, size_t bytes, CUstream argument)
{
    uint64_t stream;
    DRIVER_NEED(!bytes || (to && from));
    DRIVER_TRY(copy_stream(argument, &stream));
    return driver_dead_memory((CUresult)cai_sim_copy_async(cai_driver_sim(), to, from, bytes, stream), to, from);
}

/* -------------------------------------------------------------------------- >>bytes */
CUresult do_cuMemcpy(CUdeviceptr_v2 to, CUdeviceptr_v2 from, size_t bytes)
{
    return copy_now(to, from, bytes);
}

CUresult do_cuMemcpyAsync(CUdeviceptr_v2 to, CUdeviceptr_v2 from, size_t bytes, CUstream stream)
{
    return copy_later(to, from, bytes, stream);
}

CUresult do_cuMemcpyHtoD_v2(CUdeviceptr_v2 to, const void *from, size_t bytes)
{
    return copy_now(to, driver_number(from), bytes);
}

CUresult do_cuMemcpyHtoDAsync_v2(CUdeviceptr_v2 to, const void *from, size_t bytes, CUstream stream)
{
    return copy_later(to, driver_number(from), bytes, stream);
}

CUresult do_cuMemcpyDtoH_v2(void *to, CUdeviceptr_v2 from, size_t bytes)
{
    return copy_now(driver_number(to), from, bytes);
}

CUresult do_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr_v2 from, size_t bytes, CUstream stream)
{
    return copy_later(driver_number(to), from, bytes, stream);
}

CUresult do_cuMemcpyDtoD_v2(CUdeviceptr_v2 to, CUdeviceptr_v2 from, size_t bytes)
{
    return copy_now(to, from, bytes);
}

CUresult do_cuMemcpyDtoDAsync_v2(CUdeviceptr_v2 to, CUdeviceptr_v2 from, size_t bytes, CUstream stream)
{
    return copy_later(to, from, bytes, stream);
}

/* The contexts need not be current, and are checked alone. */
static CUresult copy_peers(CUcontext to, CUcontext from)
{
    if (driver_device_of(driver_number(to)) < 0 || driver_device_of(driver_number(from)) < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    return CUDA_SUCCESS;
}

CUresult do_cuMemcpyPeer(CUdeviceptr_v2 to, CUcontext to_context, CUdeviceptr_v2 from, CUcontext from_context,
                         size_t bytes)
{
    DRIVER_TRY(copy_peers(to_context, from_context));
    return copy_now(to, from, bytes);
}

CUresult do_cuMemcpyPeerAsync(CUdeviceptr_v2 to, CUcontext to_context, CUdeviceptr_v2 from,
                              CUcontext from_context, size_t bytes, CUstream stream)
{
    DRIVER_TRY(copy_peers(to_context, from_context));
    return copy_later(to, from, bytes, stream);
}

/* --------------------------------------------------------------------------- >>rows */
/* One end of a copy of rows: the first byte, by the kind of memory. */
typedef struct copy_end {
    CUmemorytype kind;
    const void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
} copy_end;

static CUresult copy_rows_of(const copy_end *end, const cai_sim_extent *extent, cai_sim_rows *rows)
{
    size_t pitch = end->pitch ? end->pitch : (size_t)extent->width;
    size_t height = end->height ? end->height : (size_t)extent->height;
    if (end->kind == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    DRIVER_NEED(end->kind == CU_MEMORYTYPE_HOST || end->kind == CU_MEMORYTYPE_DEVICE ||
                end->kind == CU_MEMORYTYPE_UNIFIED);
    DRIVER_NEED(extent->height <= 1 || pitch >= end->x + extent->width);
    DRIVER_NEED(extent->depth <= 1 || height >= end->y + extent->height);
    rows->address = end->kind == CU_MEMORYTYPE_HOST ? driver_number(end->host) : (uint64_t)end->device;
    DRIVER_NEED(rows->address || !extent->width || !extent->height || !extent->depth);
    rows->pitch = pitch;
    rows->plane = (uint64_t)pitch * height;
    rows->address += end->x + (uint64_t)pitch * end->y + rows->plane * end->z;
    return CUDA_SUCCESS;
}

/* waits: 1: the form that waits. */
static CUresult copy_rows(const copy_end *to, const copy_end *from, const cai_sim_extent *extent, int waits,
                          CUstream argument)
{
    cai_sim_rows target, source;
    uint64_t stream;
    CUresult result;
    DRIVER_TRY(copy_stream(argument, &stream));
    DRIVER_TRY(copy_rows_of(to, extent, &target));
    DRIVER_TRY(copy_rows_of(from, extent, &source));
    result = (CUresult)(waits ? cai_sim_copy_rows : cai_sim_copy_rows_async)(cai_driver_sim(), &target, &source, extent, stream);
    return driver_dead_memory(result, target.address, source.address);
}

static CUresult copy_plane(const CUDA_MEMCPY2D_v2 *copy, int waits, CUstream stream)
{
    copy_end to = {CU_MEMORYTYPE_HOST, NULL, 0, 0, 0, 0, 0, 0}, from = to;
    cai_sim_extent extent;
    DRIVER_NEED(copy);
    to.kind = copy->dstMemoryType;
    to.host = copy->dstHost;
    to.device = copy->dstDevice;
    to.x = copy->dstXInBytes;
    to.y = copy->dstY;
    to.pitch = copy->dstPitch;
    from.kind = copy->srcMemoryType;
    from.host = copy->srcHost;
    from.device = copy->srcDevice;
    from.x = copy->srcXInBytes;
    from.y = copy->srcY;
    from.pitch = copy->srcPitch;
    extent.width = copy->WidthInBytes;
    extent.height = copy->Height;
    extent.depth = 1;
    return copy_rows(&to, &from, &extent, waits, stream);
}

CUresult do_cuMemcpy2D_v2(const CUDA_MEMCPY2D_v2 *copy)
{
    return copy_plane(copy, 1, NULL);
}

CUresult do_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D_v2 *copy)
{
    return copy_plane(copy, 1, NULL);
}

CUresult do_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D_v2 *copy, CUstream stream)
{
    return copy_plane(copy, 0, stream);
}

static CUresult copy_box(const CUDA_MEMCPY3D_PEER_v1 *copy, int waits, CUstream stream)
{
    copy_end to = {CU_MEMORYTYPE_HOST, NULL, 0, 0, 0, 0, 0, 0}, from = to;
    cai_sim_extent extent;
    to.kind = copy->dstMemoryType;
    to.host = copy->dstHost;
    to.device = copy->dstDevice;
    to.x = copy->dstXInBytes;
    to.y = copy->dstY;
    to.z = copy->dstZ;
    to.pitch = copy->dstPitch;
    to.height = copy->dstHeight;
    from.kind = copy->srcMemoryType;
    from.host = copy->srcHost;
    from.device = copy->srcDevice;
    from.x = copy->srcXInBytes;
    from.y = copy->srcY;
    from.z = copy->srcZ;
    from.pitch = copy->srcPitch;
    from.height = copy->srcHeight;
    extent.width = copy->WidthInBytes;
    extent.height = copy->Height;
    extent.depth = copy->Depth;
    return copy_rows(&to, &from, &extent, waits, stream);
}

/* The struct of one device has the same members, but for the contexts. */
static CUresult copy_box_here(const CUDA_MEMCPY3D_v2 *copy, int waits, CUstream stream)
{
    CUDA_MEMCPY3D_PEER_v1 both = {0};
    DRIVER_NEED(copy);
    both.srcXInBytes = copy->srcXInBytes;
    both.srcY = copy->srcY;
    both.srcZ = copy->srcZ;
    both.srcMemoryType = copy->srcMemoryType;
    both.srcHost = copy->srcHost;
    both.srcDevice = copy->srcDevice;
    both.srcPitch = copy->srcPitch;
    both.srcHeight = copy->srcHeight;
    both.dstXInBytes = copy->dstXInBytes;
    both.dstY = copy->dstY;
    both.dstZ = copy->dstZ;
    both.dstMemoryType = copy->dstMemoryType;
    both.dstHost = copy->dstHost;
    both.dstDevice = copy->dstDevice;
    both.dstPitch = copy->dstPitch;
    both.dstHeight = copy->dstHeight;
    both.WidthInBytes = copy->WidthInBytes;
    both.Height = copy->Height;
    both.Depth = copy->Depth;
    return copy_box(&both, waits, stream);
}

CUresult do_cuMemcpy3D_v2(const CUDA_MEMCPY3D_v2 *copy)
{
    return copy_box_here(copy, 1, NULL);
}

CUresult do_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D_v2 *copy, CUstream stream)
{
    return copy_box_here(copy, 0, stream);
}

CUresult do_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER_v1 *copy)
{
    DRIVER_NEED(copy);
    return copy_box(copy, 1, NULL);
}

CUresult do_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER_v1 *copy, CUstream stream)
{
    DRIVER_NEED(copy);
    return copy_box(copy, 0, stream);
}

/* ----------------------------------------------------------------------------- >>set */
typedef struct set_area {
    CUdeviceptr address;
    size_t pitch; /* bytes */
    size_t width; /* units */
    size_t height;
} set_area;

static CUresult set_units(const set_area *area, uint32_t value, uint32_t unit, int waits, CUstream argument)
{
    cai_sim_rows rows = {0, 0, 0};
    cai_sim_extent extent = {0, 0, 1};
    uint64_t stream;
    CUresult result;
    DRIVER_NEED(area->width <= SIZE_MAX / unit);
    DRIVER_TRY(copy_stream(argument, &stream));
    rows.address = area->address;
    rows.pitch = area->pitch;
    extent.width = (uint64_t)area->width * unit;
    extent.height = area->height;
    result = (CUresult)(waits ? cai_sim_set : cai_sim_set_async)(cai_driver_sim(), &rows, &extent, value, unit, stream);
    return driver_dead_memory(result, rows.address, 0);
}

CUresult do_cuMemsetD8_v2(CUdeviceptr_v2 address, unsigned char value, size_t count)
{
    set_area area = {address, 0, count, 1};
    return set_units(&area, value, 1, 1, NULL);
}

CUresult do_cuMemsetD8Async(CUdeviceptr_v2 address, unsigned char value, size_t count, CUstream stream)
{
    set_area area = {address, 0, count, 1};
    return set_units(&area, value, 1, 0, stream);
}

CUresult do_cuMemsetD2D8_v2(CUdeviceptr_v2 address, size_t pitch, unsigned char value, size_t width,
                            size_t height)
{
    set_area area = {address, pitch, width, height};
    return set_units(&area, value, 1, 1, NULL);
}

CUresult do_cuMemsetD2D8Async(CUdeviceptr_v2 address, size_t pitch, unsigned char value, size_t width,
                              size_t height, CUstream stream)
{
    set_area area = {address, pitch, width, height};
    return set_units(&area, value, 1, 0, stream);
}

CUresult do_cuMemsetD16_v2(CUdeviceptr_v2 address, unsigned short value, size_t count)
{
    set_area area = {address, 0, count, 1};
    return set_units(&area, value, 2, 1, NULL);
}

CUresult do_cuMemsetD16Async(CUdeviceptr_v2 address, unsigned short value, size_t count, CUstream stream)
{
    set_area area = {address, 0, count, 1};
    return set_units(&area, value, 2, 0, stream);
}

CUresult do_cuMemsetD2D16_v2(CUdeviceptr_v2 address, size_t pitch, unsigned short value, size_t width,
                             size_t height)
{
    set_area area = {address, pitch, width, height};
    return set_units(&area, value, 2, 1, NULL);
}

CUresult do_cuMemsetD2D16Async(CUdeviceptr_v2 address, size_t pitch, unsigned short value, size_t width,
                               size_t height, CUstream stream)
{
    set_area area = {address, pitch, width, height};
    return set_units(&area, value, 2, 0, stream);
}

CUresult do_cuMemsetD32_v2(CUdeviceptr_v2 address, unsigned int value, size_t count)
{
    set_area area = {address, 0, count, 1};
    return set_units(&area, value, 4, 1, NULL);
}

CUresult do_cuMemsetD32Async(CUdeviceptr_v2 address, unsigned int value, size_t count, CUstream stream)
{
    set_area area = {address, 0, count, 1};
    return set_units(&area, value, 4, 0, stream);
}

CUresult do_cuMemsetD2D32_v2(CUdeviceptr_v2 address, size_t pitch, unsigned int value, size_t width,
                             size_t height)
{
    set_area area = {address, pitch, width, height};
    return set_units(&area, value, 4, 1, NULL);
}

CUresult do_cuMemsetD2D32Async(CUdeviceptr_v2 address, size_t pitch, unsigned int value, size_t width,
                               size_t height, CUstream stream)
{
    set_area area = {address, pitch, width, height};
    return set_units(&area, value, 4, 0, stream);
}
