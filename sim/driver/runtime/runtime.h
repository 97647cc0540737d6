/* runtime.h - what the files of libcudart share.

   rt_cudaX is the function behind the public cudaX. The generated cudaX names the call for the driver, calls
   rt_cudaX and keeps its error. */
#ifndef CAI_RUNTIME_INTERNAL_H
#define CAI_RUNTIME_INTERNAL_H

#include <cuda.h>
/* The header's own switch: each name means itself, without _v2, _ptds or _ptsz. cuda.h stays without it. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#include <stdint.h>

#define RT_EXPORT __attribute__((visibility("default")))
#define RT_WEAK __attribute__((weak, visibility("hidden")))
#define RT_CALLER __builtin_return_address(0)
#define RT_DEVICES 64

typedef void (*rt_any_function)(void);

typedef struct rt_function {
    const char *name;
    int64_t calls;
    rt_any_function served; /* NULL: no source file defines rt_NAME */
} rt_function;

typedef struct rt_error_name {
    int number;
    const char *name;
} rt_error_name;

extern rt_function rt_functions[];           /* ends with the name NULL */
extern const rt_error_name rt_error_names[]; /* ends with the name NULL */

#include "runtime_names.h"

/* Leaves the function if `test` does not hold, or if `call` fails. */
#define RT_NEED(test, error)                                                                                 \
    do {                                                                                                     \
        if (!(test)) return (error);                                                                         \
    } while (0)
#define RT_TRY(call)                                                                                         \
    do {                                                                                                     \
        cudaError_t rt_try_error = (call);                                                                   \
        if (rt_try_error) return rt_try_error;                                                               \
    } while (0)
#define RT_NEED_VALUE(test) RT_NEED(test, cudaErrorInvalidValue)
#define RT_NEED_CONTEXT() RT_TRY(rt_ready())

/* state.c */
int32_t rt_enter(rt_function *function, const void *caller,
                 int32_t per_thread); /* the result goes to rt_leave */
cudaError_t rt_leave(int32_t outer, cudaError_t error);
cudaError_t rt_missing(rt_function *function, const void *caller);
cudaError_t rt_start(void);                         /* the driver is initialized */
cudaError_t rt_ready(void);                         /* this host thread has a context */
cudaError_t rt_device(int device, CUdevice *out);   /* the driver's device of that number */
cudaError_t rt_primary(int device, CUcontext *out); /* its primary context, retained once */
CUstream rt_stream(cudaStream_t stream);            /* 0 is stream 2 in a call of a _ptsz function */
int32_t rt_is_per_thread(void);                     /* the call is of a _ptds or _ptsz function */
cudaError_t rt_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes); /* code.c */
cudaError_t rt_function_of(const void *function, CUfunction *out);              /* code.c */
void rt_forget_symbols(int device); /* after a reset of the device */

/* The numbers of the driver's results and of the runtime's errors are the same since CUDA 10.1. */
static inline cudaError_t rt_error(CUresult result)
{
    return (cudaError_t)(int)result;
}

static inline CUdeviceptr rt_address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

#endif
