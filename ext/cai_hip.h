/* cai_hip.h - the CUDA table of cai_stream.h, filled in from the HIP runtime of AMD - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * NOBODY HAS RUN THIS ON AN AMD GPU. It compiles against headers of HIP 5.2 to 7.1. Its tests run it on a
 * simulated GPU, with stand-ins of HIP's functions. That is all that is known.
 * Plain C99 that is also C++11. No HIP header in the declarations, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_HIP_IMPLEMENTATION)
#define CAI_HIP_IMPLEMENTATION
#endif
#if defined(CAI_HIP_IMPLEMENTATION) && !defined(CAI_PRIV_WANT_HOST_THREAD)
#define CAI_PRIV_WANT_HOST_THREAD
#if !defined(CAI_PRIV_WANT_GUARD)
#define CAI_PRIV_WANT_GUARD /* for <windows.h> */
#endif
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_STREAM_H_INCLUDED) || defined(CAI_IMPLEMENTATION) || defined(CAI_HIP_IMPLEMENTATION) ||     \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_stream.h"
#endif

#if CAI_STREAM_H_INCLUDED / 100 != 2
#error "cai_hip.h: this is version 0.2, which needs cai_stream.h 0.2"
#endif
#if defined(CAI_HIP_H_INCLUDED) && CAI_HIP_H_INCLUDED != 200
#error "cai_hip.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_HIP_H_INCLUDED
#define CAI_HIP_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c or .cpp file, compiled with -D__HIP_PLATFORM_AMD__ and linked with -lamdhip64. This file needs
    <hip/hip_runtime_api.h>. All other configuration is that of cai_stream.h.

        #define CAI_IMPLEMENTATION
        #define CAI_NO_CUDART
        #define CAI_NO_LOADER
        #include "cai_hip.h"

    Then give the table to whatever takes a cai_cuda, and make stream numbers with CAI_HIP_STREAM:

        CAI_TRY(cai_event_pool_init(&pool, cai_hip_table(), NULL, 0, 0, err));
        CAI_TRY(cai_exchange_begin(&ex, &pool, io, 1, CAI_HIP_STREAM(stream), err));

WHAT HIP PROMISES LESS
    docs/cuda-table.md has the list, and the slots that are not available. Two of it can cost a day:
    - HIP reads the stream of an event when the event is queried. So call cai_keepalive_drain before
      hipStreamDestroy, and before you capture a stream.
    - A failed call clears the error that hipGetLastError would return. Before HIP 7 any call does that.
    Messages say "CUDA error". The number is a hipError_t, whose numbers are those of CUDA with a few more.
*/

struct ihipStream_t; /* what hipStream_t points to */

#if defined(CAI_NAMESPACE)
#define cai_hip_table CAI_PRIV_RENAMED(cai_hip_table)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#endif

/* -------------------------------------------------------------------- >>table */
/** Returns the table, which lives as long as the library. Makes no call of HIP. Nothing is to free. A copy may
 *  lack further slots (set them to NULL). A context of this table is a device: its ordinal plus 1. Stream 1 is
 *  HIP's null stream, stream 2 is hipStreamPerThread. Threads: any. */
CAI_API const cai_cuda *cai_hip_table(void);

/** Returns the number of a hipStream_t, and `when_null` for a NULL stream. Use CAI_HIP_STREAM. */
static inline uint64_t cai_stream_from_hip(struct ihipStream_t *stream, uint64_t when_null)
{
    return stream ? (uint64_t)(uintptr_t)stream : when_null;
}

/** Returns the hipStream_t of a number. That of stream 1 is NULL: functions whose names end in _spt must not
 *  get it, because NULL is the per-thread stream there. */
static inline struct ihipStream_t *cai_stream_to_hip(uint64_t stream)
{
    return (struct ihipStream_t *)(uintptr_t)(stream == CAI_STREAM_LEGACY ? 0 : stream);
}

/** Returns the number of a hipStream_t, in the unit where it stands. A NULL stream is the per-thread default
 *  stream if that unit is compiled so (hipcc -fgpu-default-stream=per-thread), else the null stream. */
#if defined(HIP_API_PER_THREAD_DEFAULT_STREAM)
#define CAI_HIP_STREAM(stream) cai_stream_from_hip(stream, CAI_STREAM_PER_THREAD)
#else
#define CAI_HIP_STREAM(stream) cai_stream_from_hip(stream, CAI_STREAM_LEGACY)
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_HIP_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>contexts  >>streams  >>memory  >>copies  >>pools  >>filling in */
#if defined(CAI_HIP_IMPLEMENTATION) && !defined(CAI_HIP_IMPLEMENTED)
#define CAI_HIP_IMPLEMENTED

#if !defined(__HIP_PLATFORM_AMD__)
#error "cai_hip.h: define __HIP_PLATFORM_AMD__; on HIP's other platform CUDA is linked, so use cai_cuda_linked"
#endif
#if defined(HIP_API_PER_THREAD_DEFAULT_STREAM)
#error "cai_hip.h: compile the unit with its implementation without per-thread default streams"
#endif

#include <string.h>
#include <hip/hip_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

typedef char cai_priv_assert_hip_handle[sizeof(hipIpcMemHandle_t) == 64 ? 1 : -1];
typedef char cai_priv_assert_hip_uuid[sizeof(hipUUID) == 16 ? 1 : -1];

#define CAI_PRIV_HIP_POINTER(address) ((void *)(uintptr_t)(address))

/* Returns the error of a call that was just made. HIP says 709 of a stream or event that it does not know, and
 * has no contexts that could be destroyed. cai_stream.h releases arrays after 709, so it is 400 here. HIP keeps
 * the error for hipGetLastError. That is of no use to the program, whose own error it replaced. HIP 7 does not
 * keep "not ready". */
static int32_t cai_priv_hip_did(hipError_t error)
{
    if (error == hipSuccess) return 0;
#if HIP_VERSION_MAJOR >= 7
    if (error == hipErrorNotReady) return (int32_t)error;
#endif
    (void)hipGetLastError();
    return error == hipErrorContextIsDestroyed ? (int32_t)hipErrorInvalidHandle : (int32_t)error;
}

/* Defines a slot that is one call of HIP. */
#define CAI_PRIV_HIP_SLOT(name, parameters, call)                                                            \
    static int32_t cai_priv_hip_##name parameters                                                            \
    {                                                                                                        \
        (void)self;                                                                                          \
        return cai_priv_hip_did(call);                                                                       \
    }

/* Defines a slot whose call stores an address or a handle of `type` in `made`. */
#define CAI_PRIV_HIP_MAKER(name, type, number, parameters, call)                                             \
    static int32_t cai_priv_hip_##name parameters                                                            \
    {                                                                                                        \
        type made = NULL;                                                                                    \
        const int32_t error = cai_priv_hip_did(call);                                                        \
        (void)self;                                                                                          \
        *number = (uint64_t)(uintptr_t)made;                                                                 \
        return error;                                                                                        \
    }

/* ----------------------------------------------------------------- >>contexts */
/* A context is a device. hipCtxPopCurrent leaves the device that was pushed, and hipCtxSynchronize is not
 * supported. So each thread has its own stack of devices. */
#if defined(_MSC_VER)
#define CAI_PRIV_HIP_THREAD_LOCAL __declspec(thread)
#else
#define CAI_PRIV_HIP_THREAD_LOCAL __thread
#endif
enum { CAI_PRIV_HIP_DEPTH = 32 };
static CAI_PRIV_HIP_THREAD_LOCAL struct {
    int32_t depth;
    int devices[CAI_PRIV_HIP_DEPTH];
} cai_priv_hip_pushed;

static int32_t cai_priv_hip_context_current(void *self, uint64_t *context)
{
    int device = -1;
    const int32_t error = cai_priv_hip_did(hipGetDevice(&device));
    (void)self;
    *context = error ? 0 : (uint64_t)device + 1;
    return error;
}

static int32_t cai_priv_hip_context_push(void *self, uint64_t context)
{
    int before = 0;
    int32_t error;
    (void)self;
    if (!context || context > INT32_MAX) return (int32_t)hipErrorInvalidContext;
    if (cai_priv_hip_pushed.depth == CAI_PRIV_HIP_DEPTH) return (int32_t)hipErrorIllegalState;
    error = cai_priv_hip_did(hipGetDevice(&before));
    if (!error) error = cai_priv_hip_did(hipSetDevice((int)context - 1));
    if (!error) cai_priv_hip_pushed.devices[cai_priv_hip_pushed.depth++] = before;
    return error;
}

static int32_t cai_priv_hip_context_pop(void *self)
{
    int32_t error;
    (void)self;
    if (!cai_priv_hip_pushed.depth) return (int32_t)hipErrorInvalidContext;
    error = cai_priv_hip_did(hipSetDevice(cai_priv_hip_pushed.devices[cai_priv_hip_pushed.depth - 1]));
    if (!error) --cai_priv_hip_pushed.depth;
    return error;
}

CAI_PRIV_HIP_SLOT(context_synchronize, (void *self), hipDeviceSynchronize())
CAI_PRIV_HIP_SLOT(context_device, (void *self, int32_t *device), hipGetDevice(device))

/* Each device has its context at once. hipDevicePrimaryCtxGetState may call a device inactive that has work. */
static int32_t cai_priv_hip_device_context(void *self, int32_t device, uint64_t *context)
{
    int count = 0;
    const int32_t error = cai_priv_hip_did(hipGetDeviceCount(&count));
    (void)self;
    *context = 0;
    if (error) return error;
    if (device < 0 || device >= count) return (int32_t)hipErrorInvalidDevice;
    *context = (uint64_t)device + 1;
    return 0;
}

static int32_t cai_priv_hip_primary_release(void *self, int32_t device)
{
    uint64_t context;
    return cai_priv_hip_device_context(self, device, &context);
}

/* ------------------------------------------------------------------ >>streams */
/* Functions that read the object of a stream crash on hipStreamLegacy (1) in HIP 6. NULL is the same stream. */
static hipStream_t cai_priv_hip_stream(uint64_t stream)
{
    return cai_stream_to_hip(stream);
}

static int32_t cai_priv_hip_stream_context(void *self, uint64_t stream, uint64_t *context)
{
    int device = -1;
    int32_t error = 0;
    if (!cai_priv_is_handle(stream)) return cai_priv_hip_context_current(self, context);
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 506
    error = cai_priv_hip_did(hipStreamGetDevice(cai_priv_hip_stream(stream), &device));
#else
    device = hipGetStreamDeviceId(cai_priv_hip_stream(stream));
    if (device < 0) error = (int32_t)hipErrorInvalidHandle;
#endif
    *context = error ? 0 : (uint64_t)device + 1;
    return error;
}

/* No id is 0, which means no capture. */
static int32_t cai_priv_hip_stream_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    unsigned long long id = 0;
    const int32_t error =
        cai_priv_hip_did(hipStreamGetCaptureInfo(cai_priv_hip_stream(stream), &status, &id));
    (void)self;
    memset(capture, 0, sizeof *capture);
    capture->status = (int32_t)status;
    capture->id = status == hipStreamCaptureStatusActive ? (uint64_t)id + 1 : 0;
    return error;
}

#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 701
/* No id is 0, which cai_dlpack.h takes for a stream without one. */
static int32_t cai_priv_hip_stream_id(void *self, uint64_t stream, uint64_t *id)
{
    unsigned long long number = 0;
    const int32_t error = cai_priv_hip_did(hipStreamGetId(cai_priv_hip_stream(stream), &number));
    (void)self;
    *id = (uint64_t)number + 1;
    return error;
}
#endif

/* HIP refuses NULL. Both default streams are blocking. */
static int32_t cai_priv_hip_stream_flags(void *self, uint64_t stream, uint32_t *flags)
{
    (void)self;
    *flags = 0;
    return cai_priv_is_handle(stream) ? cai_priv_hip_did(hipStreamGetFlags(cai_priv_hip_stream(stream), flags))
                                      : 0;
}

CAI_PRIV_HIP_SLOT(stream_wait_event, (void *self, uint64_t stream, uint64_t event),
                  hipStreamWaitEvent(cai_priv_hip_stream(stream), (hipEvent_t)CAI_PRIV_HIP_POINTER(event), 0))
CAI_PRIV_HIP_SLOT(stream_synchronize, (void *self, uint64_t stream),
                  hipStreamSynchronize(cai_priv_hip_stream(stream)))

/* An event's default is a release to its own device. CUDA's events are for the host and other devices, too. */
CAI_PRIV_HIP_MAKER(event_create, hipEvent_t, event, (void *self, uint64_t *event),
                   hipEventCreateWithFlags(&made, hipEventDisableTiming | hipEventReleaseToSystem))
CAI_PRIV_HIP_SLOT(event_destroy, (void *self, uint64_t event),
                  hipEventDestroy((hipEvent_t)CAI_PRIV_HIP_POINTER(event)))
CAI_PRIV_HIP_SLOT(event_record, (void *self, uint64_t event, uint64_t stream),
                  hipEventRecord((hipEvent_t)CAI_PRIV_HIP_POINTER(event), cai_priv_hip_stream(stream)))
CAI_PRIV_HIP_SLOT(event_query, (void *self, uint64_t event),
                  hipEventQuery((hipEvent_t)CAI_PRIV_HIP_POINTER(event)))
CAI_PRIV_HIP_SLOT(event_synchronize, (void *self, uint64_t event),
                  hipEventSynchronize((hipEvent_t)CAI_PRIV_HIP_POINTER(event)))

static int32_t cai_priv_hip_capture_mode(void *self, int32_t *mode)
{
    hipStreamCaptureMode exchanged = (hipStreamCaptureMode)*mode;
    const int32_t error = cai_priv_hip_did(hipThreadExchangeStreamCaptureMode(&exchanged));
    (void)self;
    *mode = (int32_t)exchanged;
    return error;
}

/* ------------------------------------------------------------------- >>memory */
/* Plain memory is an error before HIP 6, and a type of its own since then. */
static int32_t cai_priv_hip_pointer_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    hipPointerAttribute_t found;
    int32_t error, type;
    memset(&found, 0, sizeof found);
    memset(info, 0, sizeof *info);
    error = cai_priv_hip_did(hipPointerGetAttributes(&found, CAI_PRIV_HIP_POINTER(pointer)));
    (void)self;
    info->memory = CAI_MEMORY_HOST;
    info->device = CAI_DEVICE_UNKNOWN;
    if (error) return error == (int32_t)hipErrorInvalidValue ? 0 : error;
#if HIP_VERSION_MAJOR >= 6
    type = (int32_t)found.type;
    if (type == (int32_t)hipMemoryTypeUnregistered) return 0;
    if (type == (int32_t)hipMemoryTypeManaged) found.isManaged = 1;
#else
    type = (int32_t)found.memoryType;
#endif
    info->memory = found.isManaged                       ? CAI_MEMORY_MANAGED
                   : type == (int32_t)hipMemoryTypeHost ? CAI_MEMORY_PINNED
                                                         : CAI_MEMORY_DEVICE;
    info->device = found.device;
    info->context = found.device >= 0 ? (uint64_t)found.device + 1 : 0;
    if (type == (int32_t)hipMemoryTypeArray) info->flags |= CAI_POINTER_ARRAY;
    info->device_pointer = (uint64_t)(uintptr_t)found.devicePointer;
    return 0;
}

static int32_t cai_priv_hip_pointer_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    hipDeviceptr_t first = NULL;
    size_t bytes = 0;
    const int32_t error =
        cai_priv_hip_did(hipMemGetAddressRange(&first, &bytes, CAI_PRIV_HIP_POINTER(pointer)));
    (void)self;
    *base = (uint64_t)(uintptr_t)first;
    *size = bytes;
    return error;
}

static int32_t cai_priv_hip_device_attribute(void *self, int32_t device, int32_t attribute, int32_t *value)
{
    (void)self;
    *value = 0;
    if (attribute == CAI_ATTRIBUTE_PAGEABLE_ACCESS)
        return cai_priv_hip_did(hipDeviceGetAttribute(value, hipDeviceAttributePageableMemoryAccess, device));
    if (attribute == CAI_ATTRIBUTE_CONCURRENT_MANAGED)
        return cai_priv_hip_did(
            hipDeviceGetAttribute(value, hipDeviceAttributeConcurrentManagedAccess, device));
    return (int32_t)hipErrorInvalidValue;
}

CAI_PRIV_HIP_MAKER(memory_alloc, void *, pointer, (void *self, uint64_t *pointer, uint64_t size),
                   hipMalloc(&made, (size_t)size))
CAI_PRIV_HIP_SLOT(memory_free, (void *self, uint64_t pointer), hipFree(CAI_PRIV_HIP_POINTER(pointer)))
CAI_PRIV_HIP_MAKER(memory_alloc_async, void *, pointer,
                   (void *self, uint64_t *pointer, uint64_t size, uint64_t stream),
                   hipMallocAsync(&made, (size_t)size, cai_priv_hip_stream(stream)))
CAI_PRIV_HIP_SLOT(memory_free_async, (void *self, uint64_t pointer, uint64_t stream),
                  hipFreeAsync(CAI_PRIV_HIP_POINTER(pointer), cai_priv_hip_stream(stream)))

/* The flags have CUDA's numbers. Pinned memory of CUDA is coherent. HIP's is not always so if a flag is set. */
CAI_PRIV_HIP_MAKER(host_alloc, void *, pointer,
                   (void *self, uint64_t *pointer, uint64_t size, uint32_t flags),
                   hipHostMalloc(&made, (size_t)size, flags | hipHostMallocCoherent))
CAI_PRIV_HIP_SLOT(host_free, (void *self, uint64_t pointer), hipHostFree(CAI_PRIV_HIP_POINTER(pointer)))
CAI_PRIV_HIP_SLOT(host_register, (void *self, uint64_t pointer, uint64_t size, uint32_t flags),
                  hipHostRegister(CAI_PRIV_HIP_POINTER(pointer), (size_t)size, flags))
CAI_PRIV_HIP_SLOT(host_unregister, (void *self, uint64_t pointer),
                  hipHostUnregister(CAI_PRIV_HIP_POINTER(pointer)))
CAI_PRIV_HIP_MAKER(managed_alloc, void *, pointer,
                   (void *self, uint64_t *pointer, uint64_t size, uint32_t flags),
                   hipMallocManaged(&made, (size_t)size, flags))

static int32_t cai_priv_hip_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t available = 0, total = 0;
    const int32_t error = cai_priv_hip_did(hipMemGetInfo(&available, &total));
    (void)self;
    *free_bytes = available;
    *total_bytes = total;
    return error;
}

/* The handle of an address inside an allocation opens as that address. The slot means the allocation. */
static int32_t cai_priv_hip_ipc_export(void *self, uint64_t pointer, void *handle)
{
    hipIpcMemHandle_t made;
    uint64_t base, size;
    int32_t error = cai_priv_hip_pointer_range(self, pointer, &base, &size);
    memset(&made, 0, sizeof made);
    if (!error) error = cai_priv_hip_did(hipIpcGetMemHandle(&made, CAI_PRIV_HIP_POINTER(base)));
    memcpy(handle, &made, sizeof made);
    return error;
}

static int32_t cai_priv_hip_ipc_open(void *self, const void *handle, uint64_t *pointer)
{
    hipIpcMemHandle_t copy;
    void *made = NULL;
    int32_t error;
    memcpy(&copy, handle, sizeof copy);
    error = cai_priv_hip_did(hipIpcOpenMemHandle(&made, copy, hipIpcMemLazyEnablePeerAccess));
    (void)self;
    *pointer = (uint64_t)(uintptr_t)made;
    return error;
}

CAI_PRIV_HIP_SLOT(ipc_close, (void *self, uint64_t pointer),
                  hipIpcCloseMemHandle(CAI_PRIV_HIP_POINTER(pointer)))

static int32_t cai_priv_hip_device_uuid(void *self, int32_t device, void *uuid)
{
    hipUUID made;
    int32_t error;
    memset(&made, 0, sizeof made);
    error = cai_priv_hip_did(hipDeviceGetUuid(&made, device));
    (void)self;
    memcpy(uuid, &made, sizeof made);
    return error;
}

/* ------------------------------------------------------------------- >>copies */
CAI_PRIV_HIP_SLOT(copy_async, (void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream),
                  hipMemcpyAsync(CAI_PRIV_HIP_POINTER(to), CAI_PRIV_HIP_POINTER(from), (size_t)size,
                                 hipMemcpyDefault, cai_priv_hip_stream(stream)))
CAI_PRIV_HIP_SLOT(set_async, (void *self, uint64_t to, uint32_t value, uint64_t size, uint64_t stream),
                  hipMemsetAsync(CAI_PRIV_HIP_POINTER(to), (int)(value & 255), (size_t)size,
                                 cai_priv_hip_stream(stream)))
CAI_PRIV_HIP_SLOT(set_2d_async,
                  (void *self, uint64_t to, uint64_t pitch, uint32_t value, uint64_t width, uint64_t height,
                   uint64_t stream),
                  hipMemset2DAsync(CAI_PRIV_HIP_POINTER(to), (size_t)pitch, (int)(value & 255), (size_t)width,
                                   (size_t)height, cai_priv_hip_stream(stream)))

static int32_t cai_priv_hip_copy_3d_async(void *self, const cai_cuda_copy *copy, uint64_t stream)
{
    hipMemcpy3DParms rows;
    memset(&rows, 0, sizeof rows);
    rows.srcPtr.ptr = CAI_PRIV_HIP_POINTER(copy->from);
    rows.srcPtr.pitch = (size_t)copy->from_pitch;
    rows.srcPtr.xsize = rows.dstPtr.xsize = (size_t)copy->width;
    rows.srcPtr.ysize = (size_t)copy->from_height;
    rows.dstPtr.ptr = CAI_PRIV_HIP_POINTER(copy->to);
    rows.dstPtr.pitch = (size_t)copy->to_pitch;
    rows.dstPtr.ysize = (size_t)copy->to_height;
    rows.extent.width = (size_t)copy->width;
    rows.extent.height = (size_t)copy->height;
    rows.extent.depth = (size_t)copy->depth;
    rows.kind = hipMemcpyDefault;
    (void)self;
    return cai_priv_hip_did(hipMemcpy3DAsync(&rows, cai_priv_hip_stream(stream)));
}

CAI_PRIV_HIP_SLOT(copy_peer_async,
                  (void *self, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                   uint64_t size, uint64_t stream),
                  hipMemcpyPeerAsync(CAI_PRIV_HIP_POINTER(to), (int)to_context - 1, CAI_PRIV_HIP_POINTER(from),
                                     (int)from_context - 1, (size_t)size, cai_priv_hip_stream(stream)))

/* -------------------------------------------------------------------- >>pools */
static int32_t cai_priv_hip_pool_set(hipMemPool_t pool, hipMemPoolAttr attribute, uint32_t yes)
{
    int value = yes != 0;
    return cai_priv_hip_did(hipMemPoolSetAttribute(pool, attribute, &value));
}

/* The pool reuses memory as asked, and keeps its memory at synchronizations. */
static int32_t cai_priv_hip_pool_create(void *self, int32_t device, uint32_t reuse, uint64_t *pool)
{
    hipMemPoolProps properties;
    hipMemPool_t made = NULL;
    uint64_t all = UINT64_MAX;
    int32_t error;
    (void)self;
    *pool = 0;
    if (reuse > 7) return (int32_t)hipErrorInvalidValue;
    memset(&properties, 0, sizeof properties);
    properties.allocType = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    properties.location.id = device;
    error = cai_priv_hip_did(hipMemPoolCreate(&made, &properties));
    if (error) return error;
    error = cai_priv_hip_pool_set(made, hipMemPoolReuseFollowEventDependencies, reuse & 1);
    if (!error) error = cai_priv_hip_pool_set(made, hipMemPoolReuseAllowOpportunistic, reuse & 2);
    if (!error) error = cai_priv_hip_pool_set(made, hipMemPoolReuseAllowInternalDependencies, reuse & 4);
    if (!error) error = cai_priv_hip_did(hipMemPoolSetAttribute(made, hipMemPoolAttrReleaseThreshold, &all));
    if (error) (void)cai_priv_hip_did(hipMemPoolDestroy(made));
    else *pool = (uint64_t)(uintptr_t)made;
    return error;
}

CAI_PRIV_HIP_SLOT(pool_destroy, (void *self, uint64_t pool),
                  hipMemPoolDestroy((hipMemPool_t)CAI_PRIV_HIP_POINTER(pool)))
CAI_PRIV_HIP_MAKER(memory_alloc_from_pool, void *, pointer,
                   (void *self, uint64_t *pointer, uint64_t size, uint64_t pool, uint64_t stream),
                   hipMallocFromPoolAsync(&made, (size_t)size, (hipMemPool_t)CAI_PRIV_HIP_POINTER(pool),
                                          cai_priv_hip_stream(stream)))

/* --------------------------------------------------------------- >>filling in */
CAI_API const cai_cuda *cai_hip_table(void)
{
    static const cai_cuda table = {
        (uint32_t)sizeof(cai_cuda), CAI_CUDA_VERSION, CAI_CUDA_HIP, 0, NULL, cai_priv_hip_context_current,
        cai_priv_hip_context_push, cai_priv_hip_context_pop, cai_priv_hip_context_synchronize,
        cai_priv_hip_context_device, cai_priv_hip_device_context, cai_priv_hip_stream_context,
        cai_priv_hip_stream_capture,
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 701
        cai_priv_hip_stream_id,
#else
        NULL, /* stream_id */
#endif
        cai_priv_hip_stream_wait_event, cai_priv_hip_stream_synchronize, cai_priv_hip_event_create,
        cai_priv_hip_event_destroy, cai_priv_hip_event_record, cai_priv_hip_event_query,
        cai_priv_hip_event_synchronize, cai_priv_hip_capture_mode, cai_priv_hip_pointer_info,
        cai_priv_hip_pointer_range, cai_priv_hip_device_attribute, cai_priv_host_thread,
        cai_priv_hip_memory_alloc, cai_priv_hip_memory_free, cai_priv_hip_memory_alloc_async,
        cai_priv_hip_memory_free_async, cai_priv_hip_host_alloc, cai_priv_hip_host_free,
        cai_priv_hip_host_register, cai_priv_hip_host_unregister, cai_priv_hip_managed_alloc,
        cai_priv_hip_memory_info, cai_priv_hip_ipc_export, cai_priv_hip_ipc_open, cai_priv_hip_ipc_close,
        cai_priv_hip_device_uuid, cai_priv_hip_copy_async, cai_priv_hip_copy_3d_async,
        cai_priv_hip_set_async, cai_priv_hip_set_2d_async, cai_priv_hip_copy_peer_async,
        NULL, /* copy_3d_peer_async */
        NULL, /* context_id: no number tells a reset (hipDeviceReset) */
        NULL, /* context_record */
        cai_priv_hip_stream_flags, cai_priv_hip_pool_create, cai_priv_hip_pool_destroy,
        cai_priv_hip_memory_alloc_from_pool, cai_priv_hip_device_context, cai_priv_hip_primary_release,
        NULL /* capture_retain: nobody has seen that a user object outlives the launches of its graph */
    };
    return &table;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_HIP_IMPLEMENTATION */

/*
MIT License

Copyright (c) 2026 the cai authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions
of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
*/
