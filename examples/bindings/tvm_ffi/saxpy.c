/* saxpy.c - y = a x + y as a function of TVM FFI, for tensors of any framework, by cai_tvm_ffi.h
 * SPDX-License-Identifier: MIT
 *
 *     cc -shared -fPIC saxpy.c kernel.o -I../../.. -I../../../ext -DCAI_NO_CUDART \
 *         $(tvm-ffi-config --cflags) $(tvm-ffi-config --ldflags) $(tvm-ffi-config --libs) -o saxpy.so
 *     python -c 'import tvm_ffi; tvm_ffi.load_module("saxpy.so").saxpy(2.0, x, y)' */
#define CAI_IMPLEMENTATION
#include "cai_tvm_ffi.h"

/* Your kernel. The stream is the environment's, or 0 for memory of the host. */
cai_status queue_saxpy(float a, const cai_array *x, const cai_array *y, uint64_t stream, cai_error *err);

static cai_status saxpy(const TVMFFIAny *values, int32_t count, cai_error *err)
{
    static const char *const names[] = {"a", "x", "y"};
    cai_tvm_ffi_args args;
    cai_array x, y;
    double a;
    CAI_TRY(cai_tvm_ffi_open(&args, values, count, names, 3, err));
    CAI_TRY(cai_tvm_ffi_float(&args, 0, &a, err));
    CAI_TRY(cai_tvm_ffi_array(&args, 1, &x, err));
    CAI_TRY(cai_tvm_ffi_array(&args, 2, &y, err));
    CAI_TRY(cai_expect(&x, "x", CAI_FLOAT32, CAI_ANY_NDIM, 0, err));
    CAI_TRY(cai_expect(&y, "y", CAI_FLOAT32, CAI_ANY_NDIM, CAI_NO_SELF_OVERLAP, err));
    CAI_TRY(cai_expect_same_shape(&x, "x", &y, "y", err));
    if (x.memory != y.memory || x.device != y.device)
        return cai_error_set(CAI_ERR_PLACEMENT, "x, y", "one is in other memory than the other", err);
    return queue_saxpy((float)a, &x, &y, y.stream, err);
}

TVM_FFI_DLL_EXPORT int __tvm_ffi_saxpy(void *self, const TVMFFIAny *values, int32_t count, TVMFFIAny *result);
TVM_FFI_DLL_EXPORT int __tvm_ffi_saxpy(void *self, const TVMFFIAny *values, int32_t count, TVMFFIAny *result)
{
    cai_error err;
    (void)self;
    return cai_tvm_ffi_end(saxpy(values, count, &err), result, &err);
}
