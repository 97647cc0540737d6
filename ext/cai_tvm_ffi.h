/* cai_tvm_ffi.h - arrays as arguments and results of functions of Apache TVM FFI - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * C99 that is also C++11 and compiles under nvcc. Needs tvm/ffi/c_api.h and dlpack.h of apache-tvm-ffi. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_TVM_FFI_IMPLEMENTATION)
#define CAI_TVM_FFI_IMPLEMENTATION
#endif

#include <tvm/ffi/extra/c_env_api.h>

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_STREAM_H_INCLUDED) || !defined(CAI_PRIV_DLPACK_WITH_STREAM) ||                              \
    defined(CAI_IMPLEMENTATION) || defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||               \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_stream.h"

#include "cai_dlpack.h"
#endif

#if CAI_STREAM_H_INCLUDED / 100 != 2
#error "cai_tvm_ffi.h: this is version 0.2, which needs cai_stream.h 0.2"
#endif
#if CAI_DLPACK_H_INCLUDED / 100 != 2
#error "cai_tvm_ffi.h: this is version 0.2, which needs cai_dlpack.h 0.2"
#endif
#if defined(CAI_TVM_FFI_H_INCLUDED) && CAI_TVM_FFI_H_INCLUDED != 200
#error "cai_tvm_ffi.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_TVM_FFI_H_INCLUDED
#define CAI_TVM_FFI_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_TVM_FFI_IMPLEMENTATION for this header alone). The folders of TVM's
    headers are those of `tvm-ffi-config --cflags`. Link with `tvm-ffi-config --ldflags --libs`.

        #define CAI_IMPLEMENTATION
        #include "cai_tvm_ffi.h"

EXAMPLE
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
            CAI_TRY(cai_expect(&x, "x", CAI_FLOAT32, 1, CAI_ON_DEVICE, err));
            CAI_TRY(cai_expect(&y, "y", CAI_FLOAT32, 1, CAI_ON_DEVICE, err));
            CAI_TRY(cai_expect_same_shape(&x, "x", &y, "y", err));
            return your_launch((float)a, &x, &y, y.stream, err); // on the environment's stream
        }

        TVM_FFI_DLL_EXPORT int __tvm_ffi_saxpy(void *self, const TVMFFIAny *values, int32_t count,
                                               TVMFFIAny *result)
        {
            cai_error err;
            (void)self;
            return cai_tvm_ffi_end(saxpy(values, count, &err), result, &err);
        }

ORDER
    TVM FFI has one current stream for each device and thread, the environment's stream. If the first argument
    on a device is a PyTorch tensor, tvm_ffi sets it to PyTorch's current stream. The arguments are ready in it,
    and the caller goes on in it. So work that is queued there needs no event and no wait. Do not wait for it
    on the host. An argument has CAI_SYNC_STREAM with that stream. For work on another stream, use an exchange
    (cai_exchange_begin).
    Without such an argument it is the legacy default stream, or that of tvm_ffi.use_raw_stream. If the caller
    is on a non-blocking stream, it is then not ordered with your work. This happens with PyTorch if no
    argument is a tensor, and always with CuPy. For PyTorch, give the function a tensor. Else the caller uses
    the default stream, or calls under tvm_ffi.use_raw_stream with its stream.
    tvm_ffi asks no other argument. If a later one is of a library with another current stream, nothing orders
    its work. An array of a caster of cai answers with the legacy default stream. If PyTorch's current stream
    is another one, make PyTorch tensors of such arrays (torch.from_dlpack) before the call.
    If an object has __dlpack__ and not DLPack's table, tvm_ffi calls __dlpack__() without a stream. Then the
    tensor is ready in the legacy default stream. If the environment's stream is non-blocking, its work is not
    ordered after that. Such a tensor cannot be told from others here.

OWNERSHIP
    The caller holds the arguments for the call, and later for the work on the environment's stream. An array
    of an argument is borrowed. TVM FFI tensors have no mark for read-only, so every argument is writable.
    They do not show the negative bit of a PyTorch tensor: then the memory does not contain its values.

THREADS
    Any thread may call. The environment's stream is that of the calling thread. CUDA calls of your own need
    a current context there.
*/

#if defined(CAI_NAMESPACE)
#define cai_tvm_ffi_array CAI_PRIV_RENAMED(cai_tvm_ffi_array)
#define cai_tvm_ffi_end CAI_PRIV_RENAMED(cai_tvm_ffi_end)
#define cai_tvm_ffi_float CAI_PRIV_RENAMED(cai_tvm_ffi_float)
#define cai_tvm_ffi_give CAI_PRIV_RENAMED(cai_tvm_ffi_give)
#define cai_tvm_ffi_int CAI_PRIV_RENAMED(cai_tvm_ffi_int)
#define cai_tvm_ffi_new CAI_PRIV_RENAMED(cai_tvm_ffi_new)
#define cai_tvm_ffi_open CAI_PRIV_RENAMED(cai_tvm_ffi_open)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- >>arguments */
/** The arguments of a call, with the names that stand in errors. */
typedef struct cai_tvm_ffi_args {
    const TVMFFIAny *values;
    const char *const *names;
    int32_t count;
} cai_tvm_ffi_args;

/** Checks that there are as many arguments as names. `values` and `given` are those of the packed function,
 *  `names` has `count` names, and all must stay as long as `out` is used. On failure `out` is undefined.
 *  Errors: CAI_ERR_TYPE, such as "y is missing: there are 2 arguments, not 3", CAI_ERR_ARGUMENT. */
CAI_API CAI_MUST_CHECK cai_status cai_tvm_ffi_open(cai_tvm_ffi_args *out, const TVMFFIAny *values,
                                                   int32_t given, const char *const *names, int32_t count,
                                                   cai_error *err);

/** Describes a tensor, argument `index` counted from 0, as a borrowed array. Memory of a device, managed and
 *  pinned memory have CAI_SYNC_STREAM with the environment's stream (see ORDER). Plain host memory has
 *  CAI_SYNC_NONE and stream 0. Then check it with cai_expect. Errors begin with the name of the argument:
 *  CAI_ERR_TYPE for what is no tensor, CAI_ERR_ARGUMENT, and those of cai_dlpack_borrow. */
CAI_API CAI_MUST_CHECK cai_status cai_tvm_ffi_array(const cai_tvm_ffi_args *args, int32_t index,
                                                    cai_array *out, cai_error *err);

/** Reads an integer or a bool. Errors: CAI_ERR_TYPE, CAI_ERR_ARGUMENT. */
CAI_API CAI_MUST_CHECK cai_status cai_tvm_ffi_int(const cai_tvm_ffi_args *args, int32_t index, int64_t *out,
                                                  cai_error *err);

/** Reads a float, an integer or a bool. Errors: CAI_ERR_TYPE, CAI_ERR_ARGUMENT. */
CAI_API CAI_MUST_CHECK cai_status cai_tvm_ffi_float(const cai_tvm_ffi_args *args, int32_t index, double *out,
                                                    cai_error *err);

/* ------------------------------------------------------------------ >>results */
/** Makes the tensor that the function returns, by the environment's allocator, where `like` is. PyTorch tensors
 *  as arguments set it to that of PyTorch. With CuPy alone there is none: use cai_tvm_ffi_give. `result` is
 *  that of the packed function, and becomes the tensor. `out` is a borrowed array of it, as in
 *  cai_tvm_ffi_array, valid while `result` is. `code` is CAI_FLOAT32, .... `shape` counts elements: one of
 *  CAI_INT4_X2 is two values. On failure `result` is unchanged. Errors: CAI_ERR_ARGUMENT, CAI_ERR_SHAPE,
 *  CAI_ERR_EXPORT (cai_dlpack_dtype_to, cai_dlpack_device, a dtype with a byte for each narrow value such as
 *  CAI_INT4, which the allocator would pack), CAI_ERR_OUT_OF_MEMORY, CAI_ERR_UNAVAILABLE (there is no
 *  allocator, or it fails; with its message), and those of cai_dlpack_borrow. */
CAI_API CAI_MUST_CHECK cai_status cai_tvm_ffi_new(cai_array *out, const cai_array *like, int32_t code,
                                                  int32_t ndim, const int64_t *shape, TVMFFIAny *result,
                                                  cai_error *err);

/** Moves an array of your own into a tensor that the function returns, without a copy. The environment's
 *  stream waits for the array's pending work. When the tensor ends, the array is given back after the work
 *  that is then in that stream (cai_dlpack_export_ordered). `pool` must outlive the tensor. For plain host
 *  memory it may be NULL. Allocates memory. On failure the array stays the caller's, and `result` is
 *  unchanged. Errors: CAI_ERR_ARGUMENT, CAI_ERR_OUT_OF_MEMORY (if TVM FFI has none, the array was released),
 *  and those of cai_dlpack_export_ordered. */
CAI_API CAI_MUST_CHECK cai_status cai_tvm_ffi_give(cai_array *array, cai_event_pool *pool, TVMFFIAny *result,
                                                   cai_error *err);

/** Ends a packed function, and returns what it returns: 0 for CAI_OK. If not, drops what is in `result`, sets
 *  an error of TVM FFI with the message of `err`, and returns -1. The kind of the error is the Python
 *  exception in CAI_STATUS_LIST. tvm_ffi raises it, and RuntimeError for BufferError. `err` may be NULL. */
CAI_API int cai_tvm_ffi_end(cai_status status, TVMFFIAny *result, const cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TVM_FFI_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>reading  >>returning */

#if defined(CAI_TVM_FFI_IMPLEMENTATION) && !defined(CAI_TVM_FFI_IMPLEMENTED)
#define CAI_TVM_FFI_IMPLEMENTED

#include <stdlib.h>
#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

/* ------------------------------------------------------------------ >>reading */
CAI_API cai_status cai_tvm_ffi_open(cai_tvm_ffi_args *out, const TVMFFIAny *values, int32_t given,
                                    const char *const *names, int32_t count, cai_error *err)
{
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_tvm_ffi_open: out is NULL");
    out->values = values;
    out->names = names;
    out->count = count;
    if ((!values && given) || (!names && count))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_tvm_ffi_open: %s is NULL",
                              names || !count ? "values" : "names");
    if (given < count)
        return cai_priv_error(err, CAI_ERR_TYPE, "%s is missing: there are %ld arguments, not %ld",
                              names[given], (long)given, (long)count);
    if (given > count)
        return cai_priv_error(err, CAI_ERR_TYPE, "there are %ld arguments, not %ld", (long)given,
                              (long)count);
    return CAI_OK;
}

/* The value of an argument, or NULL for CAI_ERR_ARGUMENT. */
static const TVMFFIAny *cai_priv_tvm_at(const cai_tvm_ffi_args *args, int32_t index, const void *out,
                                        cai_error *err)
{
    if (args && out && index >= 0 && index < args->count) return args->values + index;
    if (!args || !out) (void)cai_priv_error(err, CAI_ERR_ARGUMENT, "%s is NULL", args ? "out" : "args");
    else
        (void)cai_priv_error(err, CAI_ERR_ARGUMENT, "index = %ld is not an argument: there are %ld",
                             (long)index, (long)args->count);
    return NULL;
}

/* Fails with a sentence such as "x: expected a tensor, got None". */
CAI_PRIV_COLD cai_status cai_priv_tvm_refuse(const cai_tvm_ffi_args *args, int32_t index, const char *wanted,
                                             cai_error *err)
{
    const TVMFFITypeInfo *info = TVMFFIGetTypeInfo(args->values[index].type_index);
    return cai_priv_error(err, CAI_ERR_TYPE, "%s: expected %s, got %.*s", args->names[index], wanted,
                          info ? (int)info->type_key.size : 1, info ? info->type_key.data : "?");
}

/* The environment's stream on this thread. NULL, also where none was set, is the legacy default stream. */
static uint64_t cai_priv_tvm_stream(int32_t type, int32_t device)
{
    void *stream = TVMFFIEnvGetStream(type, device);
    return stream ? (uint64_t)(uintptr_t)stream : (uint64_t)CAI_STREAM_LEGACY;
}

static cai_status cai_priv_tvm_describe(const DLTensor *tensor, cai_array *out, cai_error *err)
{
    const int32_t type = (int32_t)tensor->device.device_type;
    cai_dlpack_options options = {0, CAI_SYNC_UNKNOWN, 0};
    if (type != CAI_DL_CPU) {
        options.sync = CAI_SYNC_STREAM;
        options.stream = cai_priv_tvm_stream(type, tensor->device.device_id);
    }
    return cai_dlpack_borrow((const cai_dl_tensor *)(const void *)tensor, &options, out, err);
}

/* The struct in a tensor object, which comes behind the header of all objects. */
static const DLTensor *cai_priv_tvm_tensor(const void *object)
{
    return (const DLTensor *)(const void *)((const char *)object + sizeof(TVMFFIObject));
}

CAI_API cai_status cai_tvm_ffi_array(const cai_tvm_ffi_args *args, int32_t index, cai_array *out,
                                     cai_error *err)
{
    const TVMFFIAny *value = cai_priv_tvm_at(args, index, out, err);
    const DLTensor *tensor = NULL;
    if (!value) return CAI_ERR_ARGUMENT;
    if (value->type_index == kTVMFFITensor) tensor = cai_priv_tvm_tensor(value->v_obj);
    if (value->type_index == kTVMFFIDLTensorPtr) tensor = (const DLTensor *)value->v_ptr;
    if (!tensor) return cai_priv_tvm_refuse(args, index, "a tensor", err);
    return cai_error_name(cai_priv_tvm_describe(tensor, out, err), args->names[index], err);
}

CAI_API cai_status cai_tvm_ffi_int(const cai_tvm_ffi_args *args, int32_t index, int64_t *out, cai_error *err)
{
    const TVMFFIAny *value = cai_priv_tvm_at(args, index, out, err);
    if (!value) return CAI_ERR_ARGUMENT;
    if (value->type_index != kTVMFFIInt && value->type_index != kTVMFFIBool)
        return cai_priv_tvm_refuse(args, index, "an integer", err);
    *out = value->v_int64;
    return CAI_OK;
}

CAI_API cai_status cai_tvm_ffi_float(const cai_tvm_ffi_args *args, int32_t index, double *out, cai_error *err)
{
    const TVMFFIAny *value = cai_priv_tvm_at(args, index, out, err);
    if (!value) return CAI_ERR_ARGUMENT;
    if (value->type_index == kTVMFFIFloat) *out = value->v_float64;
    else if (value->type_index == kTVMFFIInt || value->type_index == kTVMFFIBool)
        *out = (double)value->v_int64;
    else return cai_priv_tvm_refuse(args, index, "a number", err);
    return CAI_OK;
}

/* ---------------------------------------------------------------- >>returning */
static void cai_priv_tvm_set(TVMFFIAny *result, int32_t type, void *object)
{
    memset(result, 0, sizeof *result);
    result->type_index = type;
    result->v_obj = (TVMFFIObject *)object;
}

/* Takes the error that a function of TVM FFI has set. */
CAI_PRIV_COLD cai_status cai_priv_tvm_failed(const char *call, cai_error *err)
{
    static const char memory[] = "MemoryError";
    const TVMFFIErrorCell *cell;
    cai_status status = CAI_ERR_UNAVAILABLE;
    void *error = NULL;
    TVMFFIErrorMoveFromRaised(&error);
    if (!error) return cai_priv_error(err, status, "%s failed", call);
    cell = (const TVMFFIErrorCell *)(const void *)((const char *)error + sizeof(TVMFFIObject));
    if (cell->kind.size == sizeof memory - 1 && !memcmp(cell->kind.data, memory, sizeof memory - 1))
        status = CAI_ERR_OUT_OF_MEMORY;
    status = cai_priv_error(err, status, "%s: %.*s", call, (int)cell->message.size, cell->message.data);
    (void)TVMFFIObjectDecRef(error);
    return status;
}

CAI_API cai_status cai_tvm_ffi_new(cai_array *out, const cai_array *like, int32_t code, int32_t ndim,
                                   const int64_t *shape, TVMFFIAny *result, cai_error *err)
{
    int64_t extents[CAI_MAX_NDIM];
    const uint64_t any_address = 256;
    cai_dl_device device;
    cai_dl_dtype dl_dtype;
    cai_dtype dtype;
    DLTensor wanted;
    void *made = NULL;
    cai_status status;
    if (!out || !like || !result)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_tvm_ffi_new: %s is NULL",
                              !out ? "out" : like ? "result" : "like");
    CAI_TRY(cai_dtype_of(code, &dtype, err));
    CAI_TRY(cai_dlpack_dtype_to(&dtype, &dl_dtype, err));
    if (cai_dlpack_is_padded(&dtype))
        return cai_priv_error(err, CAI_ERR_EXPORT,
                              "cai_tvm_ffi_new: %s has a byte for each value, and the allocator packs them",
                              cai_dtype_name(code));
    CAI_TRY(cai_dlpack_device(like, &device, err));
    CAI_TRY(cai_array_init_dtype(out, &dtype, ndim, shape, NULL, any_address, err)); /* it checks the shape */
    memset(&wanted, 0, sizeof wanted);
    memcpy(&wanted.device, &device, sizeof device);
    memcpy(&wanted.dtype, &dl_dtype, sizeof dl_dtype);
    if (ndim) memcpy(extents, shape, (size_t)ndim * sizeof *shape);
    wanted.ndim = ndim;
    wanted.shape = extents;
    if (TVMFFIEnvTensorAlloc(&wanted, &made)) return cai_priv_tvm_failed("the environment's allocator", err);
    status = cai_priv_tvm_describe(cai_priv_tvm_tensor(made), out, err);
    if (status) (void)TVMFFIObjectDecRef(made);
    else cai_priv_tvm_set(result, kTVMFFITensor, made);
    return status;
}

static void cai_priv_tvm_done(cai_dlpack_storage *storage)
{
    free(storage); /* the first member of what was allocated */
}

CAI_API cai_status cai_tvm_ffi_give(cai_array *array, cai_event_pool *pool, TVMFFIAny *result, cai_error *err)
{
    DLManagedTensorVersioned *managed = NULL;
    cai_dlpack_ordered *room;
    cai_dl_device device;
    uint64_t stream;
    void *made = NULL;
    cai_status status;
    if (!result) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_tvm_ffi_give: result is NULL");
    CAI_TRY(cai_dlpack_device(array, &device, err));
    room = (cai_dlpack_ordered *)calloc(1, sizeof *room);
    if (!room) return cai_priv_error(err, CAI_ERR_OUT_OF_MEMORY, "cai_tvm_ffi_give: no memory");
    room->storage.done = cai_priv_tvm_done;
    stream = cai_priv_tvm_stream((int32_t)device.device_type, device.device_id);
    if ((int32_t)device.device_type == CAI_DL_CPU)
        status = cai_dlpack_export_versioned(array, 0, &room->storage, &managed, err);
    else status = cai_dlpack_export_ordered_versioned(array, pool, stream, 0, room, &managed, err);
    if (status) {
        free(room);
        return status;
    }
    if (TVMFFITensorFromDLPackVersioned(managed, 0, 0, &made)) {
        managed->deleter(managed);
        return cai_priv_tvm_failed("TVMFFITensorFromDLPackVersioned", err);
    }
    cai_priv_tvm_set(result, kTVMFFITensor, made);
    return CAI_OK;
}

static const char *cai_priv_tvm_kind(cai_status status)
{
#define CAI_PRIV_CASE(name, number, exception, text)                                                         \
    case name: return #exception;
    switch (status) {
        CAI_STATUS_LIST(CAI_PRIV_CASE)
    default: return "RuntimeError";
    }
#undef CAI_PRIV_CASE
}

CAI_API int cai_tvm_ffi_end(cai_status status, TVMFFIAny *result, const cai_error *err)
{
    if (!status) return 0;
    if (result && result->type_index >= kTVMFFIStaticObjectBegin) {
        (void)TVMFFIObjectDecRef(result->v_obj);
        cai_priv_tvm_set(result, kTVMFFINone, NULL);
    }
    TVMFFIErrorSetRaisedFromCStr(cai_priv_tvm_kind(status), err ? err->message : cai_status_name(status));
    return -1;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TVM_FFI_IMPLEMENTATION */

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
