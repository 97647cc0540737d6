/* hip_stand_in.h - HIP's functions that ext/cai_hip.h calls, over a simulated GPU. They are declared by HIP's own
 * headers, and do what the source of HIP (ROCm/clr) does where that differs from CUDA:
 *   NULL is the null stream, and functions that read a stream's object crash on 1 (counted here)
 *   device 0 is current on a thread that chose none; a context is a device
 *   an unknown stream or event is 709; plain memory is an error before HIP 6 and a type since then
 *   each failed call is kept for hipGetLastError; before HIP 7 each call is
 *   a handle of an address inside an allocation opens as that address
 * SPDX-License-Identifier: MIT */
#if !defined(HIP_STAND_IN_H_INCLUDED)
#define HIP_STAND_IN_H_INCLUDED

#include "cai_hip.h"
#include "sim/cai_sim.h"
#include <hip/hip_runtime_api.h>
#include <string.h>

static cai_sim *hip_sim;
static hipError_t hip_last;       /* of hipGetLastError */
static uint32_t hip_event_flags;  /* of the last event */
static uint32_t hip_host_flags;   /* of the last pinned memory */
static int32_t hip_legacy;        /* streams 1 that HIP got */
static hipStream_t hip_got;       /* the last stream */
static int32_t hip_devices = 2;
static int32_t hip_refused;       /* the next call of hipMemPoolSetAttribute that fails, counted down; 0: none */
static uint64_t hip_ipc_pointer;  /* of the last exported handle */
static hipMemcpyKind hip_kind;    /* of the last copy */
static uint64_t hip_registered, hip_registered_size; /* the last hipHostRegister */

#define HIP_TABLE cai_sim_cuda(hip_sim)

static hipError_t hip_done(int32_t error)
{
    const hipError_t result = (hipError_t)(error == 400 ? 709 : error);
    if (HIP_VERSION_MAJOR < 7 || (error && error != 600)) hip_last = result;
    return result;
}

static void hip_enter(void)
{
    if (!cai_sim_current(hip_sim)) (void)cai_sim_set_context(hip_sim, cai_sim_primary(hip_sim, 0));
}

static uint64_t hip_number(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static void *hip_pointer(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static uint64_t hip_stream(hipStream_t stream)
{
    hip_enter();
    hip_got = stream;
    if (hip_number(stream) == 1) ++hip_legacy;
    return stream ? hip_number(stream) : CAI_STREAM_LEGACY;
}

static int hip_device_of(uint64_t context)
{
    int device;
    for (device = 0; device < hip_devices; ++device) {
        if (cai_sim_primary(hip_sim, device) == context) return device;
    }
    return -1;
}

/* ------------------------------------------------------------------ devices */
hipError_t hipGetLastError(void)
{
    const hipError_t last = hip_last;
    hip_last = hipSuccess;
    return last;
}

hipError_t hipGetDevice(int *device)
{
    hip_enter();
    *device = hip_device_of(cai_sim_current(hip_sim));
    return hip_done(0);
}

hipError_t hipSetDevice(int device)
{
    if (device < 0 || device >= hip_devices) return hip_done(101);
    return hip_done(cai_sim_set_context(hip_sim, cai_sim_primary(hip_sim, device)));
}

hipError_t hipGetDeviceCount(int *count)
{
    *count = hip_devices;
    return hip_done(hip_devices ? 0 : 100);
}

hipError_t hipDeviceSynchronize(void)
{
    hip_enter();
    return hip_done(HIP_TABLE->context_synchronize(hip_sim));
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
    const int32_t number = attribute == hipDeviceAttributePageableMemoryAccess ? 88
                           : attribute == hipDeviceAttributeConcurrentManagedAccess ? 89 : 0;
    return hip_done(HIP_TABLE->device_attribute(hip_sim, device, number, value));
}

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
    return hip_done(HIP_TABLE->device_uuid(hip_sim, device, uuid));
}

/* ------------------------------------------------------------------ streams */
int hipGetStreamDeviceId(hipStream_t stream)
{
    uint64_t context = 0;
    if (HIP_TABLE->stream_context(hip_sim, hip_stream(stream), &context)) return -1;
    return hip_device_of(context);
}

#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 506
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
    *device = hipGetStreamDeviceId(stream);
    return hip_done(*device < 0 ? 400 : 0);
}
#endif

#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 701
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *id)
{
    uint64_t number = 0;
    const int32_t error = HIP_TABLE->stream_id(hip_sim, hip_stream(stream), &number);
    *id = number - 1; /* begins at 0 */
    return hip_done(error);
}
#endif

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id)
{
    cai_cuda_capture capture;
    int32_t error;
    memset(&capture, 0, sizeof capture);
    error = HIP_TABLE->stream_capture(hip_sim, hip_stream(stream), &capture);
    if (error) return hip_done(error);
    *status = (hipStreamCaptureStatus)capture.status;
    if (capture.status == CAI_CAPTURE_ACTIVE) *id = capture.id - 1; /* begins at 0 */
    return hip_done(0);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
    int32_t number = (int32_t)*mode;
    const int32_t error = HIP_TABLE->capture_mode(hip_sim, &number);
    *mode = (hipStreamCaptureMode)number;
    return hip_done(error);
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags)
{
    if (!stream) return hip_done(1);
    return hip_done(HIP_TABLE->stream_flags(hip_sim, hip_stream(stream), flags));
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    if (flags) return hip_done(1);
    return hip_done(HIP_TABLE->stream_wait_event(hip_sim, hip_stream(stream), hip_number(event)));
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    return hip_done(HIP_TABLE->stream_synchronize(hip_sim, hip_stream(stream)));
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    uint64_t made = 0;
    int32_t error;
    hip_enter();
    error = HIP_TABLE->event_create(hip_sim, &made);
    hip_event_flags = flags;
    *event = (hipEvent_t)hip_pointer(made);
    return hip_done(error);
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    return hip_done(HIP_TABLE->event_destroy(hip_sim, hip_number(event)));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    return hip_done(HIP_TABLE->event_record(hip_sim, hip_number(event), hip_stream(stream)));
}

hipError_t hipEventQuery(hipEvent_t event)
{
    return hip_done(HIP_TABLE->event_query(hip_sim, hip_number(event)));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    return hip_done(HIP_TABLE->event_synchronize(hip_sim, hip_number(event)));
}

/* ------------------------------------------------------------------- memory */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer)
{
    cai_cuda_pointer info;
    enum hipMemoryType type = hipMemoryTypeDevice;
    int32_t error;
    hip_enter();
    memset(attributes, 0, sizeof *attributes);
    error = HIP_TABLE->pointer_info(hip_sim, hip_number(pointer), &info);
    if (error) return hip_done(error);
#if HIP_VERSION_MAJOR >= 6
    if (info.memory == CAI_MEMORY_HOST) {
        attributes->type = hipMemoryTypeUnregistered;
        attributes->device = -2;
        return hip_done(0);
    }
    if (info.memory == CAI_MEMORY_MANAGED) type = hipMemoryTypeManaged;
#else
    if (info.memory == CAI_MEMORY_HOST) return hip_done(1);
    if (info.memory == CAI_MEMORY_MANAGED) type = hipMemoryTypeHost;
#endif
    if (info.memory == CAI_MEMORY_PINNED) type = hipMemoryTypeHost;
    if (info.flags & CAI_POINTER_ARRAY) type = hipMemoryTypeArray;
#if HIP_VERSION_MAJOR >= 6
    attributes->type = type;
#else
    attributes->memoryType = type;
    attributes->isManaged = info.memory == CAI_MEMORY_MANAGED;
#endif
    attributes->device = info.device;
    attributes->devicePointer = hip_pointer(info.device_pointer);
    return hip_done(0);
}

/* The base of registered memory is NULL, with success: clr has no address of its own for it. */
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t pointer)
{
    uint64_t first = 0, bytes = 0;
    int32_t error;
    hip_enter();
    error = HIP_TABLE->pointer_range(hip_sim, hip_number(pointer), &first, &bytes);
    *base = hip_number(pointer) - hip_registered < hip_registered_size ? NULL : hip_pointer(first);
    *size = (size_t)bytes;
    return hip_done(error);
}

hipError_t hipMalloc(void **pointer, size_t size)
{
    uint64_t made = 0;
    int32_t error;
    hip_enter();
    error = HIP_TABLE->memory_alloc(hip_sim, &made, size);
    *pointer = hip_pointer(made);
    return hip_done(error);
}

hipError_t hipFree(void *pointer)
{
    hip_enter();
    return hip_done(HIP_TABLE->memory_free(hip_sim, hip_number(pointer)));
}

hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream)
{
    uint64_t made = 0;
    const int32_t error = HIP_TABLE->memory_alloc_async(hip_sim, &made, size, hip_stream(stream));
    *pointer = hip_pointer(made);
    return hip_done(error);
}

hipError_t hipFreeAsync(void *pointer, hipStream_t stream)
{
    return hip_done(HIP_TABLE->memory_free_async(hip_sim, hip_number(pointer), hip_stream(stream)));
}

hipError_t hipHostMalloc(void **pointer, size_t size, unsigned int flags)
{
    uint64_t made = 0;
    int32_t error;
    hip_enter();
    hip_host_flags = flags;
    error = HIP_TABLE->host_alloc(hip_sim, &made, size, flags & 7);
    *pointer = hip_pointer(made);
    return hip_done(error);
}

hipError_t hipHostFree(void *pointer)
{
    hip_enter();
    return hip_done(HIP_TABLE->host_free(hip_sim, hip_number(pointer)));
}

hipError_t hipHostRegister(void *pointer, size_t size, unsigned int flags)
{
    int32_t error;
    hip_enter();
    error = HIP_TABLE->host_register(hip_sim, hip_number(pointer), size, flags);
    if (!error) {
        hip_registered = hip_number(pointer);
        hip_registered_size = size;
    }
    return hip_done(error);
}

hipError_t hipHostUnregister(void *pointer)
{
    hip_enter();
    if (hip_number(pointer) == hip_registered) hip_registered_size = 0;
    return hip_done(HIP_TABLE->host_unregister(hip_sim, hip_number(pointer)));
}

hipError_t hipMallocManaged(void **pointer, size_t size, unsigned int flags)
{
    uint64_t made = 0;
    int32_t error;
    hip_enter();
    error = HIP_TABLE->managed_alloc(hip_sim, &made, size, flags);
    *pointer = hip_pointer(made);
    return hip_done(error);
}

hipError_t hipMemGetInfo(size_t *available, size_t *total)
{
    uint64_t first = 0, second = 0;
    int32_t error;
    hip_enter();
    error = HIP_TABLE->memory_info(hip_sim, &first, &second);
    *available = (size_t)first;
    *total = (size_t)second;
    return hip_done(error);
}

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer)
{
    hip_enter();
    hip_ipc_pointer = hip_number(pointer);
    return hip_done(HIP_TABLE->ipc_export(hip_sim, hip_ipc_pointer, handle));
}

hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned int flags)
{
    uint64_t made = 0;
    int32_t error;
    hip_enter();
    if (flags != hipIpcMemLazyEnablePeerAccess) return hip_done(1);
    error = HIP_TABLE->ipc_open(hip_sim, &handle, &made);
    *pointer = hip_pointer(made);
    return hip_done(error);
}

hipError_t hipIpcCloseMemHandle(void *pointer)
{
    hip_enter();
    return hip_done(HIP_TABLE->ipc_close(hip_sim, hip_number(pointer)));
}

/* -------------------------------------------------------------------- pools */
hipError_t hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *properties)
{
    uint64_t made = 0;
    int32_t error;
    *pool = NULL;
    if (properties->allocType != hipMemAllocationTypePinned) return hip_done(1);
    if (properties->location.type != hipMemLocationTypeDevice) return hip_done(1);
    error = HIP_TABLE->pool_create(hip_sim, properties->location.id, 7, &made);
    *pool = (hipMemPool_t)hip_pointer(made);
    return hip_done(error);
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value)
{
    uint64_t number = 0;
    if (hip_refused && !--hip_refused) return hip_done(1);
    memcpy(&number, value, attribute == hipMemPoolAttrReleaseThreshold ? sizeof number : sizeof(int));
    return hip_done(cai_sim_pool_set(hip_sim, hip_number(pool), (int32_t)attribute, number));
}

hipError_t hipMemPoolDestroy(hipMemPool_t pool)
{
    return hip_done(HIP_TABLE->pool_destroy(hip_sim, hip_number(pool)));
}

hipError_t hipMallocFromPoolAsync(void **pointer, size_t size, hipMemPool_t pool, hipStream_t stream)
{
    uint64_t made = 0;
    const int32_t error =
        HIP_TABLE->memory_alloc_from_pool(hip_sim, &made, size, hip_number(pool), hip_stream(stream));
    *pointer = hip_pointer(made);
    return hip_done(error);
}

/* ------------------------------------------------------------------- copies */
hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream)
{
    hip_kind = kind;
    return hip_done(HIP_TABLE->copy_async(hip_sim, hip_number(to), hip_number(from), size, hip_stream(stream)));
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                              hipStream_t stream)
{
    const uint64_t from_context = cai_sim_primary(hip_sim, from_device);
    const uint64_t to_context = cai_sim_primary(hip_sim, to_device);
    if (!from_context || !to_context) return hip_done(101);
    return hip_done(HIP_TABLE->copy_peer_async(hip_sim, hip_number(to), to_context, hip_number(from), from_context,
                                               size, hip_stream(stream)));
}

hipError_t hipMemcpy3DAsync(const struct hipMemcpy3DParms *rows, hipStream_t stream)
{
    cai_cuda_copy copy;
    copy.to = hip_number(rows->dstPtr.ptr);
    copy.from = hip_number(rows->srcPtr.ptr);
    copy.to_pitch = rows->dstPtr.pitch;
    copy.from_pitch = rows->srcPtr.pitch;
    copy.to_height = rows->dstPtr.ysize;
    copy.from_height = rows->srcPtr.ysize;
    copy.width = rows->extent.width;
    copy.height = rows->extent.height;
    copy.depth = rows->extent.depth;
    hip_kind = rows->kind;
    return hip_done(HIP_TABLE->copy_3d_async(hip_sim, &copy, hip_stream(stream)));
}

hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream)
{
    return hip_done(HIP_TABLE->set_async(hip_sim, hip_number(to), (uint32_t)value, size, hip_stream(stream)));
}

hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream)
{
    return hip_done(HIP_TABLE->set_2d_async(hip_sim, hip_number(to), pitch, (uint32_t)value, width, height,
                                            hip_stream(stream)));
}

/* ------------------------------------------------------------------- tables */
static inline int32_t hip_host_thread(void *self, uint64_t *thread)
{
    (void)self;
    return HIP_TABLE->host_thread(hip_sim, thread);
}

/* The table of ext/cai_hip.h over a simulation, in which host threads have the simulation's numbers. */
static inline cai_cuda hip_table_over(cai_sim *sim)
{
    cai_cuda table = *cai_hip_table();
    table.host_thread = hip_host_thread;
    hip_sim = sim;
    return table;
}

#endif
