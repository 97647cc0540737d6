/* cai_cupy.c - hooks of cai_emm.h as a CFunctionAllocator of CuPy
 * SPDX-License-Identifier: MIT
 *
 * As a shared object, with nothing of CuPy: cc -shared -fPIC -I. examples/adapters/cupy/cai_cupy.c */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART /* loaded: the CUDA that CuPy has in the process */
#include "cai_cupy.h"

struct cai_cupy {
    adapter memory;
    cai_emm_pool own; /* without hooks of the caller */
#if !defined(CAI_NO_LOADER)
    cai_cuda_driver driver;
#endif
};

static cai_status cupy_load(cai_cupy *cupy, const cai_cuda **cuda, cai_error *err)
{
#if defined(CAI_NO_LOADER)
    (void)cupy;
    (void)cuda;
    return cai_cuda_status(3, "cai_cuda_load", err); /* not initialized */
#else
    CAI_TRY(cai_cuda_load(&cupy->driver, NULL, err));
    *cuda = &cupy->driver.cuda;
    return CAI_OK;
#endif
}

static void cupy_drop(cai_cupy *cupy)
{
    const cai_status status = cupy->own.pool ? cai_emm_pool_destroy(&cupy->own, NULL) : CAI_OK;
    (void)status; /* of a device that is gone */
    adapter_drop(&cupy->memory);
    free(cupy);
}

static cai_status cupy_start(cai_cupy *cupy, const cai_emm_hooks *hooks, const cai_cuda *cuda, int device,
                             uint64_t stream, cai_error *err)
{
    cai_emm_hooks standard;
    if (hooks) CAI_TRY(cai_emm_hooks_check(hooks, err));
    if (!cuda && !(hooks && hooks->kind == CAI_MEMORY_HOST)) CAI_TRY(cupy_load(cupy, &cuda, err));
    CAI_TRY(adapter_hold(&cupy->memory, "cai_cupy", cuda, device, stream, err));
    if (!hooks) {
        CAI_TRY(cai_emm_pool_create(&cupy->own, cuda, device, err));
        CAI_TRY(cai_emm_hooks_async(&standard, cuda, &cupy->own, err));
        hooks = &standard;
    }
    return adapter_open(&cupy->memory, hooks, err);
}

CAI_CUPY_API cai_cupy *cai_cupy_open(const cai_emm_hooks *hooks, const cai_cuda *cuda, int device,
                                     uint64_t stream, cai_error *err)
{
    cai_cupy *cupy = (cai_cupy *)calloc(1, sizeof *cupy);
    if (!cupy) (void)adapter_say(err, CAI_ERR_OUT_OF_MEMORY, "cai_cupy_open: no host memory");
    else if (cupy_start(cupy, hooks, cuda, device, stream, err)) {
        cupy_drop(cupy);
        cupy = NULL;
    }
    return cupy;
}

CAI_CUPY_API void *cai_cupy_malloc(void *param, size_t size, int device)
{
    adapter *memory = &((cai_cupy *)param)->memory;
    cai_error err;
    if (device == memory->device) return adapter_alloc(memory, size, 256, 256, 0);
    if (cai_cuda_status(101, "cai_cupy_malloc for another device", &err)) /* invalid device ordinal */
        adapter_failed(memory, "allocation", size, &err);
    return NULL;
}

/* The device is that of the allocation: known. */
CAI_CUPY_API void cai_cupy_free(void *param, void *ptr, int device)
{
    (void)device;
    adapter_free(&((cai_cupy *)param)->memory, ptr, 0);
}

CAI_CUPY_API void cai_cupy_counts(cai_cupy *cupy, cai_adapter_count *out)
{
    *out = adapter_counts(&cupy->memory);
}

CAI_CUPY_API cai_status cai_cupy_close(cai_cupy *cupy)
{
    if (!cupy) return CAI_OK;
    CAI_TRY(adapter_close(&cupy->memory));
    cupy_drop(cupy);
    return CAI_OK;
}
