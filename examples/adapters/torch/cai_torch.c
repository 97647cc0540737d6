/* cai_torch.c - hooks of cai_emm.h as a CUDAPluggableAllocator of PyTorch
 * SPDX-License-Identifier: MIT
 *
 * As a shared object, with nothing of PyTorch: cc -shared -fPIC -I. examples/adapters/torch/cai_torch.c */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART /* loaded: the CUDA that PyTorch has in the process */
#include "cai_torch.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
static SRWLOCK torch_mutex = SRWLOCK_INIT;
static void torch_lock(void) { AcquireSRWLockExclusive(&torch_mutex); }
static void torch_unlock(void) { ReleaseSRWLockExclusive(&torch_mutex); }
#else
#include <pthread.h>
static pthread_mutex_t torch_mutex = PTHREAD_MUTEX_INITIALIZER;
static void torch_lock(void) { (void)pthread_mutex_lock(&torch_mutex); }
static void torch_unlock(void) { (void)pthread_mutex_unlock(&torch_mutex); }
#endif

typedef struct torch_device {
    cai_emm_hooks hooks;
    cai_emm_pool own; /* if none were set */
    uint64_t context; /* the primary one, retained for ever; 0: not used yet. Then only the count changes */
    int32_t given;    /* hooks were set */
    cai_torch_count count;
} torch_device;

static torch_device torch_devices[CAI_TORCH_DEVICES + 1]; /* the last: calls that name none of the others */
static const cai_cuda *torch_cuda;
#if !defined(CAI_NO_LOADER)
static cai_cuda_driver torch_driver;
#endif

static torch_device *torch_find(int device)
{
    return &torch_devices[device >= 0 && device < CAI_TORCH_DEVICES ? device : CAI_TORCH_DEVICES];
}

/* ------------------------------------------------------------------ the context */

static cai_status torch_enter(const torch_device *d, int32_t *pushed, cai_error *err)
{
    uint64_t current = 0;
    *pushed = 0;
    CAI_TRY(cai_cuda_status(torch_cuda->context_current(torch_cuda->self, &current), "context_current", err));
    if (current == d->context) return CAI_OK;
    CAI_TRY(cai_cuda_status(torch_cuda->context_push(torch_cuda->self, d->context), "context_push", err));
    *pushed = 1;
    return CAI_OK;
}

static void torch_leave(int32_t pushed)
{
    if (pushed) (void)torch_cuda->context_pop(torch_cuda->self);
}

/* ------------------------------------------------------------------ the first use of a device, locked */

static cai_status torch_load(cai_error *err)
{
    if (torch_cuda) return CAI_OK;
#if defined(CAI_NO_LOADER)
    return cai_cuda_status(3, "cai_cuda_load", err); /* not initialized */
#else
    CAI_TRY(cai_cuda_load(&torch_driver, NULL, err));
    torch_cuda = &torch_driver.cuda;
    return CAI_OK;
#endif
}

static cai_status torch_start(torch_device *d, int device, cai_error *err)
{
    cai_status status = CAI_OK;
    int32_t pushed;
    if (!d->given && !d->own.pool) CAI_TRY(cai_emm_pool_create(&d->own, torch_cuda, device, err));
    if (!d->given) CAI_TRY(cai_emm_hooks_async(&d->hooks, torch_cuda, &d->own, err));
    if (d->hooks.initialize) {
        CAI_TRY(torch_enter(d, &pushed, err));
        status = cai_cuda_status(d->hooks.initialize(d->hooks.ctx, device), "initialize", err);
        torch_leave(pushed);
    }
    return status;
}

/* PyTorch never says that it is done, so the primary context is retained once, and never released. */
static cai_status torch_open(torch_device *d, int device, cai_error *err)
{
    cai_status status;
    if (d->context) return CAI_OK;
    CAI_TRY(torch_load(err));
    CAI_TRY(cai_cuda_status(torch_cuda->primary_retain(torch_cuda->self, device, &d->context),
                            "primary_retain", err));
    status = torch_start(d, device, err);
    if (!status) return CAI_OK;
    (void)torch_cuda->primary_release(torch_cuda->self, device);
    d->context = 0;
    return status;
}

/* ------------------------------------------------------------------ counting */

static void torch_failed(torch_device *d, const char *what, size_t size, int device, const cai_error *err)
{
    torch_lock();
    if (!d->count.failed++) {
        d->count.first_failure = err->native == 2 ? CAI_ERR_OUT_OF_MEMORY : err->code;
        d->count.native = err->native;
    }
    torch_unlock();
    fprintf(stderr, "cai_torch: %s of %lu bytes, device %d: %s\n", what, (unsigned long)size, device,
            err->message);
}

static void torch_count(torch_device *d, uint64_t *calls, size_t size, int32_t sign)
{
    cai_torch_count *count = &d->count;
    torch_lock();
    ++*calls;
    if (sign > 0) count->live_bytes += size;
    if (sign < 0) count->live_bytes -= size;
    if (count->peak_bytes < count->live_bytes) count->peak_bytes = count->live_bytes;
    torch_unlock();
}

/* ------------------------------------------------------------------ what PyTorch calls */

static cai_status torch_try_alloc(torch_device *d, void **ptr, size_t size, int device, uint64_t stream,
                                  cai_error *err)
{
    cai_status status;
    int32_t pushed;
    if (d == torch_find(-1)) return cai_cuda_status(101, "cai_torch_alloc", err); /* invalid device ordinal */
    torch_lock();
    status = torch_open(d, device, err);
    torch_unlock();
    if (status) return status;
    CAI_TRY(torch_enter(d, &pushed, err));
    status = cai_cuda_status(d->hooks.device_alloc(d->hooks.ctx, ptr, size, cai_stream_to_cuda(stream)),
                             d->hooks.name, err);
    torch_leave(pushed);
    return status;
}

static cai_status torch_try_free(torch_device *d, void *ptr, size_t size, uint64_t stream, cai_error *err)
{
    cai_status status;
    int32_t pushed, opened;
    torch_lock();
    opened = d->context != 0;
    torch_unlock();
    if (!opened) return cai_cuda_status(101, "cai_torch_free", err); /* nothing was allocated there */
    CAI_TRY(torch_enter(d, &pushed, err));
    status = cai_cuda_status(d->hooks.device_free(d->hooks.ctx, ptr, size, cai_stream_to_cuda(stream)),
                             d->hooks.name, err);
    torch_leave(pushed);
    return status;
}

CAI_TORCH_API void *cai_torch_alloc(size_t size, int device, struct CUstream_st *stream)
{
    torch_device *d = torch_find(device);
    void *ptr = NULL;
    cai_error err;
    if (!size) torch_count(d, &d->count.empty, 0, 0);
    else if (!torch_try_alloc(d, &ptr, size, device, CAI_STREAM(stream), &err))
        torch_count(d, &d->count.allocated, size, 1);
    else {
        torch_failed(d, "allocation", size, device, &err);
        ptr = NULL;
    }
    return ptr;
}

/* Error 4 is CUDA's answer while the process ends: nothing is left to free. */
CAI_TORCH_API void cai_torch_free(void *ptr, size_t size, int device, struct CUstream_st *stream)
{
    torch_device *d = torch_find(device);
    cai_error err;
    if (!ptr) return;
    if (!torch_try_free(d, ptr, size, CAI_STREAM(stream), &err) || err.native == 4)
        torch_count(d, &d->count.freed, size, -1);
    else torch_failed(d, "free", size, device, &err);
}

/* ------------------------------------------------------------------ what the program calls */

CAI_TORCH_API cai_status cai_torch_set_hooks(int device, const cai_emm_hooks *hooks)
{
    torch_device *d = torch_find(device);
    cai_status status = cai_emm_hooks_check(hooks, NULL);
    size_t bytes;
    if (status) return status;
    bytes = hooks->struct_size < sizeof d->hooks ? hooks->struct_size : sizeof d->hooks;
    if (d == torch_find(-1)) return CAI_ERR_ARGUMENT;
    torch_lock();
    if (d->context) status = CAI_ERR_PENDING;
    else {
        memset(&d->hooks, 0, sizeof d->hooks);
        memcpy(&d->hooks, hooks, bytes - bytes % sizeof(void *)); /* what lies behind its end is NULL */
        d->given = 1;
    }
    torch_unlock();
    return status;
}

CAI_TORCH_API cai_status cai_torch_set_cuda(const cai_cuda *cuda)
{
    cai_status status = CAI_OK;
    if (!cuda || cuda->struct_size < offsetof(cai_cuda, primary_release) + sizeof cuda->primary_release ||
        !cuda->context_current || !cuda->context_push || !cuda->context_pop || !cuda->primary_retain ||
        !cuda->primary_release)
        return CAI_ERR_ARGUMENT;
    torch_lock();
    if (torch_cuda) status = CAI_ERR_PENDING;
    else torch_cuda = cuda;
    torch_unlock();
    return status;
}

CAI_TORCH_API cai_status cai_torch_counts(int device, cai_torch_count *out)
{
    torch_device *d = torch_find(device);
    if (!out || (device != -1 && d == torch_find(-1))) return CAI_ERR_ARGUMENT;
    torch_lock();
    *out = d->count;
    torch_unlock();
    return CAI_OK;
}
