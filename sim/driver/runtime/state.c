/* state.c - the state of each host thread (its device, its last error, its call), and the contexts. */
#define _GNU_SOURCE
#include "runtime.h"

#include "cai_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct rt_thread {
    cudaError_t last;
    int device;         /* of cudaSetDevice */
    int32_t depth;      /* calls of the runtime that this thread is in: a callback may make more */
    int32_t per_thread; /* the innermost call is of a _ptds or _ptsz function */
} rt_thread;

static __thread rt_thread rt_this;

/* ---- the calls, named for the driver ---- */

static struct {
    pthread_once_t once;
    void (*enter)(const char *name, const void *caller);
    void (*leave)(void);
    void (*mark)(const char *text);
} rt_driver = {PTHREAD_ONCE_INIT, NULL, NULL, NULL};

static void rt_find(void *library, const char *name, void *out, size_t bytes)
{
    void *found = dlsym(library, name);
    memcpy(out, &found, bytes);
}

/* Another libcuda.so.1 has none of these. */
static void rt_find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return;
    rt_find(library, "cai_driver_enter", &rt_driver.enter, sizeof rt_driver.enter);
    rt_find(library, "cai_driver_leave", &rt_driver.leave, sizeof rt_driver.leave);
    rt_find(library, "cai_driver_mark", &rt_driver.mark, sizeof rt_driver.mark);
    if (!rt_driver.leave) rt_driver.enter = NULL;
}

int32_t rt_enter(rt_function *function, const void *caller, int32_t per_thread)
{
    int32_t outer = rt_this.per_thread;
    pthread_once(&rt_driver.once, rt_find_driver);
    __atomic_fetch_add(&function->calls, 1, __ATOMIC_RELAXED);
    rt_this.per_thread = per_thread;
    if (rt_this.depth++ == 0 && rt_driver.enter) rt_driver.enter(function->name, caller);
    return outer;
}

/* cudaErrorNotReady: "This result is not actually an error". The programming guide says that it is not
   reported by cudaPeekAtLastError or cudaGetLastError. */
cudaError_t rt_leave(int32_t outer, cudaError_t error)
{
    rt_this.per_thread = outer;
    if (--rt_this.depth == 0 && rt_driver.enter) rt_driver.leave();
    if (error && error != cudaErrorNotReady) rt_this.last = error;
    return error;
}

cudaError_t rt_missing(rt_function *function, const void *caller)
{
    char text[160];
    int32_t outer = rt_enter(function, caller, 0);
    if (function->calls == 1) fprintf(stderr, "cai_sim: %s is not served\n", function->name);
    snprintf(text, sizeof text, "%s: not served", function->name);
    if (rt_driver.mark) rt_driver.mark(text);
    return rt_leave(outer, cudaErrorNotSupported);
}

RT_EXPORT int32_t cai_runtime_function_get(int32_t index, cai_runtime_function *out)
{
    int32_t i;
    if (index < 0 || !out) return 0;
    for (i = 0; rt_functions[i].name && i < index; ++i) {
    }
    if (!rt_functions[i].name) return 0;
    out->name = rt_functions[i].name;
    out->calls = __atomic_load_n(&rt_functions[i].calls, __ATOMIC_RELAXED);
    out->served = rt_functions[i].served != NULL;
    out->reserved = 0;
    return 1;
}

int32_t rt_is_per_thread(void)
{
    return rt_this.per_thread;
}

CUstream rt_stream(cudaStream_t stream)
{
    return !stream && rt_this.per_thread ? CU_STREAM_PER_THREAD : stream;
}

/* ---- the last error ---- */

/* "This leaves the process in an inconsistent state and any further CUDA work will return the same error. To
   continue using CUDA, the process must be terminated and relaunched." */
static int32_t rt_is_sticky(cudaError_t error)
{
    switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return 1;
    default: return 0;
    }
}

cudaError_t rt_cudaPeekAtLastError(void)
{
    return rt_this.last;
}

cudaError_t rt_cudaGetLastError(void)
{
    cudaError_t error = rt_this.last;
    if (!rt_is_sticky(error)) rt_this.last = cudaSuccess;
    return error;
}

static const char *rt_text_of(const rt_error_name *names, cudaError_t error)
{
    for (; names->name; ++names) {
        if (names->number == (int)error) return names->name;
    }
    return NULL;
}

/* "If the error code is not recognized, "unrecognized error code" is returned." */
static const char rt_unrecognized[] = "unrecognized error code";

RT_EXPORT const char *CUDARTAPI cudaGetErrorName(cudaError_t error)
{
    const char *name = rt_text_of(rt_error_names, error);
    return name ? name : rt_unrecognized;
}

/* Errors of the runtime that the driver does not have. */
static const rt_error_name rt_error_texts[] = {
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorMissingConfiguration, "__global__ function call is not configured"},
    {cudaErrorInvalidDeviceFunction, "invalid device function"},
    {cudaErrorUnknown, "unknown error"},
    {-1, NULL}};

RT_EXPORT const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
    const char *text = rt_text_of(rt_error_texts, error);
    if (text) return text;
    if (!rt_text_of(rt_error_names, error)) return rt_unrecognized;
    if (cuGetErrorString((CUresult)(int)error, &text) == CUDA_SUCCESS && text) return text;
    return cudaGetErrorName(error);
}

/* ---- contexts ---- */

static struct {
    pthread_mutex_t lock;
    CUcontext primary[RT_DEVICES]; /* stays after a reset: host threads may still have it current */
    int32_t retained[RT_DEVICES];
    int32_t started;
} rt_contexts = {PTHREAD_MUTEX_INITIALIZER, {NULL}, {0}, 0};

cudaError_t rt_start(void)
{
    CUresult result;
    if (__atomic_load_n(&rt_contexts.started, __ATOMIC_ACQUIRE)) return cudaSuccess;
    result = cuInit(0);
    if (result == CUDA_SUCCESS) __atomic_store_n(&rt_contexts.started, 1, __ATOMIC_RELEASE);
    return rt_error(result);
}

cudaError_t rt_device(int device, CUdevice *out)
{
    RT_TRY(rt_start());
    RT_NEED(device >= 0 && device < RT_DEVICES, cudaErrorInvalidDevice);
    return cuDeviceGet(out, device) ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t rt_primary(int device, CUcontext *out)
{
    CUdevice handle = 0;
    CUresult result = CUDA_SUCCESS;
    RT_TRY(rt_device(device, &handle));
    pthread_mutex_lock(&rt_contexts.lock);
    if (!rt_contexts.retained[device]) {
        result = cuDevicePrimaryCtxRetain(&rt_contexts.primary[device], handle);
        rt_contexts.retained[device] = result == CUDA_SUCCESS;
    }
    *out = rt_contexts.primary[device];
    pthread_mutex_unlock(&rt_contexts.lock);
    return rt_error(result);
}

static cudaError_t rt_use(int device)
{
    CUcontext context = NULL;
    RT_TRY(rt_primary(device, &context));
    return rt_error(cuCtxSetCurrent(context));
}

/* A primary context that cudaDeviceReset gave back. */
static int32_t rt_was_reset(CUcontext context)
{
    int32_t i;
    int32_t reset = 0;
    pthread_mutex_lock(&rt_contexts.lock);
    for (i = 0; i < RT_DEVICES; ++i) {
        if (rt_contexts.primary[i] == context && !rt_contexts.retained[i]) reset = 1;
    }
    pthread_mutex_unlock(&rt_contexts.lock);
    return reset;
}

/* The runtime works in the context that is current. If none is, it makes the device's primary one current. */
cudaError_t rt_ready(void)
{
    CUcontext context = NULL;
    RT_TRY(rt_start());
    RT_TRY(rt_error(cuCtxGetCurrent(&context)));
    if (context && !rt_was_reset(context)) return cudaSuccess;
    return rt_use(rt_this.device);
}

/* Since CUDA 12 the context is made and current at once. */
cudaError_t rt_cudaSetDevice(int device)
{
    RT_TRY(rt_use(device));
    rt_this.device = device;
    return cudaSuccess;
}

cudaError_t rt_cudaGetDevice(int *device)
{
    CUdevice current = 0;
    RT_NEED_VALUE(device);
    RT_TRY(rt_start());
    *device = cuCtxGetDevice(&current) == CUDA_SUCCESS ? (int)current : rt_this.device;
    return cudaSuccess;
}

/* "If a non-primary ::CUcontext is current to the thread, ::cudaDeviceReset() will destroy only the internal
   CUDA RT state for that ::CUcontext." There is none here. */
cudaError_t rt_cudaDeviceReset(void)
{
    CUcontext current = NULL;
    CUdevice handle = 0;
    int device = 0;
    CUresult result = CUDA_SUCCESS;
    RT_TRY(rt_cudaGetDevice(&device));
    RT_TRY(rt_device(device, &handle));
    RT_TRY(rt_error(cuCtxGetCurrent(&current)));
    pthread_mutex_lock(&rt_contexts.lock);
    if (rt_contexts.retained[device] && (!current || current == rt_contexts.primary[device])) {
        (void)cuCtxSetCurrent(NULL);
        result = cuDevicePrimaryCtxReset(handle);
        if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRelease(handle);
        rt_contexts.retained[device] = 0;
        rt_this.last = cudaSuccess;
    }
    pthread_mutex_unlock(&rt_contexts.lock);
    rt_forget_symbols(device);
    return rt_error(result);
}

cudaError_t rt_cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
    CUcontext context = NULL;
    CUdevice handle = 0;
    RT_NEED_VALUE(flags == 0 || flags == cudaInitDeviceFlagsAreValid);
    RT_TRY(rt_device(device, &handle));
    if (flags) {
        RT_TRY(rt_error(cuDevicePrimaryCtxSetFlags(handle, deviceFlags)));
    }
    return rt_primary(device, &context);
}
