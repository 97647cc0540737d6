/* copy.c - copies and fills, of bytes, of rows, of boxes, between devices and to symbols. */
#include "runtime.h"

#include <string.h>

/* The per-thread variants of the driver's functions that wait. cuda.h declares one of both. */
CUresult CUDAAPI cuMemcpy_ptds(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr, const void *, size_t);
CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void *, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyDtoD_v2_ptds(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *);
CUresult CUDAAPI cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *);
CUresult CUDAAPI cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *);
CUresult CUDAAPI cuMemsetD8_v2_ptds(CUdeviceptr, unsigned char, size_t);
CUresult CUDAAPI cuMemsetD2D8_v2_ptds(CUdeviceptr, size_t, unsigned char, size_t, size_t);

static int rt_is_kind(enum cudaMemcpyKind kind)
{
    return (int)kind >= cudaMemcpyHostToHost && (int)kind <= cudaMemcpyDefault;
}

/* ---- bytes ---- */

static CUresult rt_copy_now(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoD(rt_address(dst), src, count);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoH(dst, rt_address(src), count);
    case cudaMemcpyDeviceToDevice: return cuMemcpyDtoD(rt_address(dst), rt_address(src), count);
    default: return cuMemcpy(rt_address(dst), rt_address(src), count);
    }
}

static CUresult rt_copy_per_thread(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoD_v2_ptds(rt_address(dst), src, count);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoH_v2_ptds(dst, rt_address(src), count);
    case cudaMemcpyDeviceToDevice: return cuMemcpyDtoD_v2_ptds(rt_address(dst), rt_address(src), count);
    default: return cuMemcpy_ptds(rt_address(dst), rt_address(src), count);
    }
}

static CUresult rt_copy_queued(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                               CUstream stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoDAsync(rt_address(dst), src, count, stream);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoHAsync(dst, rt_address(src), count, stream);
    case cudaMemcpyDeviceToDevice: return cuMemcpyDtoDAsync(rt_address(dst), rt_address(src), count, stream);
    default: return cuMemcpyAsync(rt_address(dst), rt_address(src), count, stream);
    }
}

cudaError_t rt_cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    RT_NEED_CONTEXT();
    if (!count) return cudaSuccess;
    RT_NEED(rt_is_kind(kind), cudaErrorInvalidMemcpyDirection);
    RT_NEED_VALUE(dst && src);
    if (rt_is_per_thread()) return rt_error(rt_copy_per_thread(dst, src, count, kind));
    return rt_error(rt_copy_now(dst, src, count, kind));
}

cudaError_t rt_cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                               cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    if (!count) return cudaSuccess;
    RT_NEED(rt_is_kind(kind), cudaErrorInvalidMemcpyDirection);
    RT_NEED_VALUE(dst && src);
    return rt_error(rt_copy_queued(dst, src, count, kind, rt_stream(stream)));
}

cudaError_t rt_cudaMemset(void *devPtr, int value, size_t count)
{
    RT_NEED_CONTEXT();
    if (!count) return cudaSuccess;
    if (rt_is_per_thread())
        return rt_error(cuMemsetD8_v2_ptds(rt_address(devPtr), (unsigned char)value, count));
    return rt_error(cuMemsetD8(rt_address(devPtr), (unsigned char)value, count));
}

cudaError_t rt_cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    if (!count) return cudaSuccess;
    return rt_error(cuMemsetD8Async(rt_address(devPtr), (unsigned char)value, count, rt_stream(stream)));
}

/* ---- between devices: the primary contexts stand for them ---- */

static cudaError_t rt_two(int dst_device, int src_device, CUcontext *dst, CUcontext *src)
{
    RT_NEED_CONTEXT();
    RT_TRY(rt_primary(dst_device, dst));
    return rt_primary(src_device, src);
}

cudaError_t rt_cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
    CUcontext to = NULL;
    CUcontext from = NULL;
    RT_TRY(rt_two(dstDevice, srcDevice, &to, &from));
    if (!count) return cudaSuccess;
    return rt_error(cuMemcpyPeer(rt_address(dst), to, rt_address(src), from, count));
}

cudaError_t rt_cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
                                   cudaStream_t stream)
{
    CUcontext to = NULL;
    CUcontext from = NULL;
    RT_TRY(rt_two(dstDevice, srcDevice, &to, &from));
    if (!count) return cudaSuccess;
    return rt_error(cuMemcpyPeerAsync(rt_address(dst), to, rt_address(src), from, count, rt_stream(stream)));
}

/* ---- rows ---- */

static CUmemorytype rt_source_type(enum cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice) return CU_MEMORYTYPE_HOST;
    return CU_MEMORYTYPE_DEVICE;
}

static CUmemorytype rt_destination_type(enum cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost) return CU_MEMORYTYPE_HOST;
    return CU_MEMORYTYPE_DEVICE;
}

static cudaError_t rt_rows(CUDA_MEMCPY2D *out, void *dst, size_t dpitch, const void *src, size_t spitch,
                           size_t width, size_t height, enum cudaMemcpyKind kind)
{
    RT_NEED(rt_is_kind(kind), cudaErrorInvalidMemcpyDirection);
    RT_NEED(width <= dpitch && width <= spitch, cudaErrorInvalidPitchValue);
    memset(out, 0, sizeof *out);
    out->srcMemoryType = rt_source_type(kind);
    out->srcHost = src;
    out->srcDevice = rt_address(src);
    out->srcPitch = spitch;
    out->dstMemoryType = rt_destination_type(kind);
    out->dstHost = dst;
    out->dstDevice = rt_address(dst);
    out->dstPitch = dpitch;
    out->WidthInBytes = width;
    out->Height = height;
    return cudaSuccess;
}

cudaError_t rt_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy;
    RT_NEED_CONTEXT();
    RT_TRY(rt_rows(&copy, dst, dpitch, src, spitch, width, height, kind));
    if (!width || !height) return cudaSuccess;
    return rt_error(rt_is_per_thread() ? cuMemcpy2D_v2_ptds(&copy) : cuMemcpy2D(&copy));
}

cudaError_t rt_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                 size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D copy;
    RT_NEED_CONTEXT();
    RT_TRY(rt_rows(&copy, dst, dpitch, src, spitch, width, height, kind));
    if (!width || !height) return cudaSuccess;
    return rt_error(cuMemcpy2DAsync(&copy, rt_stream(stream)));
}

cudaError_t rt_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
    unsigned char byte = (unsigned char)value;
    RT_NEED_CONTEXT();
    if (!width || !height) return cudaSuccess;
    if (rt_is_per_thread())
        return rt_error(cuMemsetD2D8_v2_ptds(rt_address(devPtr), pitch, byte, width, height));
    return rt_error(cuMemsetD2D8(rt_address(devPtr), pitch, byte, width, height));
}

cudaError_t rt_cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                                 cudaStream_t stream)
{
    RT_NEED_CONTEXT();
    if (!width || !height) return cudaSuccess;
    return rt_error(
        cuMemsetD2D8Async(rt_address(devPtr), pitch, (unsigned char)value, width, height, rt_stream(stream)));
}

/* ---- boxes of memory with pitches. Arrays are not served. ---- */

static cudaError_t rt_box(CUDA_MEMCPY3D *out, const struct cudaMemcpy3DParms *p)
{
    RT_NEED_VALUE(p);
    RT_NEED(!p->srcArray && !p->dstArray, cudaErrorNotSupported);
    RT_NEED_VALUE(p->srcPtr.ptr && p->dstPtr.ptr);
    RT_NEED(rt_is_kind(p->kind), cudaErrorInvalidMemcpyDirection);
    RT_NEED(p->extent.width <= p->srcPtr.pitch && p->extent.width <= p->dstPtr.pitch,
            cudaErrorInvalidPitchValue);
    memset(out, 0, sizeof *out);
    out->srcXInBytes = p->srcPos.x;
    out->srcY = p->srcPos.y;
    out->srcZ = p->srcPos.z;
    out->srcMemoryType = rt_source_type(p->kind);
    out->srcHost = p->srcPtr.ptr;
    out->srcDevice = rt_address(p->srcPtr.ptr);
    out->srcPitch = p->srcPtr.pitch;
    out->srcHeight = p->srcPtr.ysize;
    out->dstXInBytes = p->dstPos.x;
    out->dstY = p->dstPos.y;
    out->dstZ = p->dstPos.z;
    out->dstMemoryType = rt_destination_type(p->kind);
    out->dstHost = p->dstPtr.ptr;
    out->dstDevice = rt_address(p->dstPtr.ptr);
    out->dstPitch = p->dstPtr.pitch;
    out->dstHeight = p->dstPtr.ysize;
    out->WidthInBytes = p->extent.width;
    out->Height = p->extent.height;
    out->Depth = p->extent.depth;
    return cudaSuccess;
}

static int rt_is_empty(struct cudaExtent extent)
{
    return !extent.width || !extent.height || !extent.depth;
}

cudaError_t rt_cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
    CUDA_MEMCPY3D copy;
    RT_NEED_CONTEXT();
    RT_TRY(rt_box(&copy, p));
    if (rt_is_empty(p->extent)) return cudaSuccess;
    return rt_error(rt_is_per_thread() ? cuMemcpy3D_v2_ptds(&copy) : cuMemcpy3D(&copy));
}

cudaError_t rt_cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    CUDA_MEMCPY3D copy;
    RT_NEED_CONTEXT();
    RT_TRY(rt_box(&copy, p));
    if (rt_is_empty(p->extent)) return cudaSuccess;
    return rt_error(cuMemcpy3DAsync(&copy, rt_stream(stream)));
}

static cudaError_t rt_peer_box(CUDA_MEMCPY3D_PEER *out, const struct cudaMemcpy3DPeerParms *p)
{
    RT_NEED_VALUE(p);
    RT_NEED(!p->srcArray && !p->dstArray, cudaErrorNotSupported);
    RT_NEED_VALUE(p->srcPtr.ptr && p->dstPtr.ptr);
    memset(out, 0, sizeof *out);
    RT_TRY(rt_two(p->dstDevice, p->srcDevice, &out->dstContext, &out->srcContext));
    out->srcXInBytes = p->srcPos.x;
    out->srcY = p->srcPos.y;
    out->srcZ = p->srcPos.z;
    out->srcMemoryType = CU_MEMORYTYPE_DEVICE;
    out->srcDevice = rt_address(p->srcPtr.ptr);
    out->srcPitch = p->srcPtr.pitch;
    out->srcHeight = p->srcPtr.ysize;
    out->dstXInBytes = p->dstPos.x;
    out->dstY = p->dstPos.y;
    out->dstZ = p->dstPos.z;
    out->dstMemoryType = CU_MEMORYTYPE_DEVICE;
    out->dstDevice = rt_address(p->dstPtr.ptr);
    out->dstPitch = p->dstPtr.pitch;
    out->dstHeight = p->dstPtr.ysize;
    out->WidthInBytes = p->extent.width;
    out->Height = p->extent.height;
    out->Depth = p->extent.depth;
    return cudaSuccess;
}

cudaError_t rt_cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
    CUDA_MEMCPY3D_PEER copy;
    RT_TRY(rt_peer_box(&copy, p));
    if (rt_is_empty(p->extent)) return cudaSuccess;
    return rt_error(rt_is_per_thread() ? cuMemcpy3DPeer_ptds(&copy) : cuMemcpy3DPeer(&copy));
}

cudaError_t rt_cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
    CUDA_MEMCPY3D_PEER copy;
    RT_TRY(rt_peer_box(&copy, p));
    if (rt_is_empty(p->extent)) return cudaSuccess;
    return rt_error(cuMemcpy3DPeerAsync(&copy, rt_stream(stream)));
}

/* Slices without a gap between them are one fill. */
cudaError_t rt_cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                                 cudaStream_t stream)
{
    char *slice = (char *)to.ptr;
    size_t z;
    RT_NEED_CONTEXT();
    if (rt_is_empty(extent)) return cudaSuccess;
    RT_NEED_VALUE(extent.width <= to.pitch && (extent.depth == 1 || extent.height <= to.ysize));
    if (extent.height == to.ysize) {
        return rt_cudaMemset2DAsync(slice, to.pitch, value, extent.width, extent.height * extent.depth,
                                    stream);
    }
    for (z = 0; z < extent.depth; ++z) {
        RT_TRY(rt_cudaMemset2DAsync(slice, to.pitch, value, extent.width, extent.height, stream));
        slice += to.pitch * to.ysize;
    }
    return cudaSuccess;
}

cudaError_t rt_cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    char *slice = (char *)to.ptr;
    size_t z;
    RT_NEED_CONTEXT();
    if (rt_is_empty(extent)) return cudaSuccess;
    RT_NEED_VALUE(extent.width <= to.pitch && (extent.depth == 1 || extent.height <= to.ysize));
    if (extent.height == to.ysize) {
        return rt_cudaMemset2D(slice, to.pitch, value, extent.width, extent.height * extent.depth);
    }
    for (z = 0; z < extent.depth; ++z) {
        RT_TRY(rt_cudaMemset2D(slice, to.pitch, value, extent.width, extent.height));
        slice += to.pitch * to.ysize;
    }
    return cudaSuccess;
}

/* ---- symbols ---- */

cudaError_t rt_cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;
    RT_NEED_VALUE(devPtr);
    RT_NEED_CONTEXT();
    RT_TRY(rt_symbol(symbol, &address, &bytes));
    *devPtr = (void *)(uintptr_t)address;
    return cudaSuccess;
}

cudaError_t rt_cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE(size);
    RT_NEED_CONTEXT();
    return rt_symbol(symbol, &address, size);
}

/* The place of `count` bytes from `offset` on. */
static cudaError_t rt_inside(const void *symbol, size_t offset, size_t count, char **out)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;
    RT_NEED_CONTEXT();
    RT_TRY(rt_symbol(symbol, &address, &bytes));
    RT_NEED_VALUE(offset <= bytes && count <= bytes - offset);
    *out = (char *)(uintptr_t)address + offset;
    return cudaSuccess;
}

static int rt_is_to_device(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

static int rt_is_from_device(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

cudaError_t rt_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                                  enum cudaMemcpyKind kind)
{
    char *place = NULL;
    RT_NEED(rt_is_to_device(kind), cudaErrorInvalidMemcpyDirection);
    RT_TRY(rt_inside(symbol, offset, count, &place));
    return rt_cudaMemcpy(place, src, count, kind);
}

cudaError_t rt_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
                                       enum cudaMemcpyKind kind, cudaStream_t stream)
{
    char *place = NULL;
    RT_NEED(rt_is_to_device(kind), cudaErrorInvalidMemcpyDirection);
    RT_TRY(rt_inside(symbol, offset, count, &place));
    return rt_cudaMemcpyAsync(place, src, count, kind, stream);
}

cudaError_t rt_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind)
{
    char *place = NULL;
    RT_NEED(rt_is_from_device(kind), cudaErrorInvalidMemcpyDirection);
    RT_TRY(rt_inside(symbol, offset, count, &place));
    return rt_cudaMemcpy(dst, place, count, kind);
}

cudaError_t rt_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    char *place = NULL;
    RT_NEED(rt_is_from_device(kind), cudaErrorInvalidMemcpyDirection);
    RT_TRY(rt_inside(symbol, offset, count, &place));
    return rt_cudaMemcpyAsync(dst, place, count, kind, stream);
}
