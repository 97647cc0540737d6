/* tvm_ffi_more.c - what test_tvm_ffi.py calls besides the example: every function of cai_tvm_ffi.h, on the host and on
 * the driver that it loads
 * SPDX-License-Identifier: MIT */
#include "cai_tvm_ffi.h"

#define CAI_EMM_IMPLEMENTATION
#include "cai_emm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define PACKED(name)                                                                                                     \
    static cai_status do_##name(const cai_tvm_ffi_args *args, TVMFFIAny *result, cai_error *err);                        \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(void *self, const TVMFFIAny *values, int32_t count, TVMFFIAny *result);      \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##name(void *self, const TVMFFIAny *values, int32_t count, TVMFFIAny *result)       \
    {                                                                                                                    \
        static const char *const names[] = {"first", "second", "third"};                                                 \
        cai_tvm_ffi_args args;                                                                                           \
        cai_error err;                                                                                                   \
        cai_status status;                                                                                               \
        (void)self;                                                                                                      \
        status = cai_tvm_ffi_open(&args, values, count, names, count, &err);                                             \
        if (!status) status = do_##name(&args, result, &err);                                                            \
        return cai_tvm_ffi_end(status, result, &err);                                                                    \
    }                                                                                                                    \
    static cai_status do_##name(const cai_tvm_ffi_args *args, TVMFFIAny *result, cai_error *err)

static cai_cuda_driver driver;
static cai_event_pool pool;
static cai_emm_pool blocks;
static cai_emm_hooks memory;
static int (*fill_async)(uint64_t at, uint32_t value, size_t count, uint64_t stream);
static int (*copy_async)(uint64_t to, uint64_t from, size_t bytes, uint64_t stream);
static int (*copy_to_host)(void *to, uint64_t from, size_t bytes, uint64_t stream);
static int64_t alive; /* arrays and tensors of the host */

cai_status queue_saxpy(float a, const cai_array *x, const cai_array *y, uint64_t stream, cai_error *err);
/* On the host the sum. For the device, where the simulated driver runs no kernel, y = x, which it sees. */
cai_status queue_saxpy(float a, const cai_array *x, const cai_array *y, uint64_t stream, cai_error *err)
{
    cai_kernel_view in, out;
    int64_t i;
    if (stream)
        return cai_cuda_status(copy_async(y->data, x->data, (size_t)x->nbytes, stream), "saxpy", err);
    CAI_TRY(cai_kernel_view_of(x, &in, err));
    CAI_TRY(cai_kernel_view_of(y, &out, err));
    for (i = 0; i < y->size; ++i)
        *(float *)cai_kernel_element(&out, i) += a * *(const float *)cai_kernel_element(&in, i);
    return CAI_OK;
}

static void give_text(const char *text, TVMFFIAny *result)
{
    TVMFFIByteArray bytes;
    bytes.data = text;
    bytes.size = strlen(text);
    (void)TVMFFIStringFromByteArray(&bytes, result);
}

static void give_number(int64_t number, TVMFFIAny *result)
{
    result->type_index = kTVMFFIInt;
    result->v_int64 = number;
}

PACKED(described)
{
    char text[200];
    cai_array x;
    CAI_TRY(cai_tvm_ffi_array(args, 0, &x, err));
    (void)cai_array_text(&x, text, (int32_t)sizeof text);
    give_text(text, result);
    return CAI_OK;
}

PACKED(as_int)
{
    int64_t number;
    CAI_TRY(cai_tvm_ffi_int(args, 0, &number, err));
    give_number(number, result);
    return CAI_OK;
}

PACKED(as_float)
{
    CAI_TRY(cai_tvm_ffi_float(args, 0, &result->v_float64, err));
    result->type_index = kTVMFFIFloat;
    return CAI_OK;
}

PACKED(alive)
{
    (void)args;
    (void)err;
    give_number(alive, result);
    return CAI_OK;
}

/* An argument as the pointer to a DLTensor, which Python does not pass. */
PACKED(by_pointer)
{
    static const char *const names[] = {"x"};
    cai_tvm_ffi_args one;
    TVMFFIAny value;
    cai_array x, same;
    CAI_TRY(cai_tvm_ffi_array(args, 0, &x, err));
    memset(&value, 0, sizeof value);
    value.type_index = kTVMFFIDLTensorPtr;
    value.v_ptr = (char *)args->values[0].v_obj + sizeof(TVMFFIObject);
    CAI_TRY(cai_tvm_ffi_open(&one, &value, 1, names, 1, err));
    CAI_TRY(cai_tvm_ffi_array(&one, 0, &same, err));
    give_number(!memcmp(&x, &same, offsetof(cai_array, shape)) && x.shape[0] == same.shape[0], result);
    value.v_ptr = NULL;
    return cai_tvm_ffi_array(&one, 0, &same, err) == CAI_ERR_TYPE ? CAI_OK : CAI_ERR_ABI;
}

/* ---------------------------------------------------------------- an allocator of the host */
static void delete_tensor(DLManagedTensorVersioned *self)
{
    --alive;
    free(self->dl_tensor.data);
    free(self->dl_tensor.shape);
    free(self);
}

static int allocate(DLTensor *wanted, DLManagedTensorVersioned **out, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message))
{
    DLManagedTensorVersioned *made = (DLManagedTensorVersioned *)calloc(1, sizeof *made);
    size_t size = 4;
    int32_t i;
    if (wanted->ndim && wanted->shape[0] > 1000) {
        free(made);
        set_error(context, wanted->shape[0] > 2000 ? "MemoryError" : "RuntimeError", "more than 1000");
        return -1;
    }
    ++alive;
    made->version.major = 1;
    made->deleter = delete_tensor;
    made->dl_tensor = *wanted;
    made->dl_tensor.shape = (int64_t *)calloc((size_t)wanted->ndim + 1, sizeof(int64_t));
    for (i = 0; i < wanted->ndim; ++i) {
        made->dl_tensor.shape[i] = wanted->shape[i];
        size *= (size_t)wanted->shape[i];
    }
    made->dl_tensor.data = calloc(size, 1);
    *out = made;
    return 0;
}

PACKED(use_allocator)
{
    int64_t on;
    (void)result;
    CAI_TRY(cai_tvm_ffi_int(args, 0, &on, err));
    return TVMFFIEnvSetDLPackManagedTensorAllocator(on ? allocate : NULL, 0, NULL) ? CAI_ERR_UNAVAILABLE : CAI_OK;
}

/* A new tensor like x, with its sum and 1; the second argument is a size in place of that of x. */
PACKED(plus_one)
{
    int64_t shape[CAI_MAX_NDIM];
    cai_kernel_view from, to;
    cai_array x, z;
    int64_t i;
    CAI_TRY(cai_tvm_ffi_array(args, 0, &x, err));
    memcpy(shape, x.shape, sizeof shape);
    if (args->count > 1) CAI_TRY(cai_tvm_ffi_int(args, 1, &shape[0], err));
    CAI_TRY(cai_tvm_ffi_new(&z, &x, CAI_FLOAT32, x.ndim, shape, result, err));
    CAI_TRY(cai_expect(&x, "x", CAI_FLOAT32, CAI_ANY_NDIM, 0, err)); /* too late, so the result is dropped */
    if (args->count > 1) return CAI_OK;
    CAI_TRY(cai_kernel_view_of(&x, &from, err));
    CAI_TRY(cai_kernel_view_of(&z, &to, err));
    for (i = 0; i < z.size; ++i)
        *(float *)cai_kernel_element(&to, i) = *(const float *)cai_kernel_element(&from, i) + 1;
    return CAI_OK;
}

/* -------------------------------------------------------------------------- arrays of its own */
static void release(cai_array *self)
{
    self->release = NULL;
    --alive;
    free(self->owner);
}

PACKED(on_host)
{
    int64_t size, i;
    cai_array made;
    float *numbers;
    cai_status status;
    CAI_TRY(cai_tvm_ffi_int(args, 0, &size, err));
    numbers = (float *)calloc((size_t)size + 1, sizeof *numbers);
    for (i = 0; i < size; ++i) numbers[i] = (float)i;
    CAI_TRY(cai_array_init(&made, CAI_FLOAT32, 1, &size, NULL, numbers, err));
    made.sync = CAI_SYNC_NONE;
    if (args->count == 1) made.memory = CAI_MEMORY_HOST; /* without it the array cannot be given */
    cai_array_own(&made, release, numbers);
    ++alive;
    status = cai_tvm_ffi_give(&made, NULL, result, err);
    if (status) cai_array_release(&made); /* it is still ours */
    return status;
}

PACKED(open_device)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    (void)args;
    (void)result;
    *(void **)&fill_async = dlsym(library, "cuMemsetD32Async");
    *(void **)&copy_async = dlsym(library, "cuMemcpyDtoDAsync_v2");
    *(void **)&copy_to_host = dlsym(library, "cuMemcpyDtoHAsync_v2");
    CAI_TRY(cai_cuda_load(&driver, NULL, err));
    CAI_TRY(cai_event_pool_init(&pool, &driver.cuda, NULL, 0, 0, err));
    CAI_TRY(cai_emm_pool_create(&blocks, &driver.cuda, 0, err));
    return cai_emm_hooks_async(&memory, &driver.cuda, &blocks, err);
}

/* Of `first` elements, with the value `second`, which is written in stream `third`. */
PACKED(filled)
{
    int64_t size, value, stream;
    cai_array made;
    cai_status status;
    CAI_TRY(cai_tvm_ffi_int(args, 0, &size, err));
    CAI_TRY(cai_tvm_ffi_int(args, 1, &value, err));
    CAI_TRY(cai_tvm_ffi_int(args, 2, &stream, err));
    CAI_TRY(cai_emm_array(&made, &pool, &memory, CAI_FLOAT32, 1, &size, (uint64_t)stream, err));
    status = cai_cuda_status(fill_async(made.data, (uint32_t)value, (size_t)size, (uint64_t)stream), "fill", err);
    if (!status) status = cai_tvm_ffi_give(&made, &pool, result, err);
    if (status) cai_array_release(&made);
    return status;
}

/* The first element. The host waits for the environment's stream. */
PACKED(first)
{
    uint32_t number = 0;
    cai_array x;
    CAI_TRY(cai_tvm_ffi_array(args, 0, &x, err));
    CAI_TRY(cai_cuda_status(copy_to_host(&number, x.data, sizeof number, x.stream), "copy", err));
    CAI_TRY(cai_cuda_status(driver.cuda.stream_synchronize(driver.cuda.self, x.stream), "synchronize", err));
    give_number(number, result);
    return CAI_OK;
}

PACKED(close_device)
{
    (void)args;
    (void)result;
    CAI_TRY(cai_keepalive_drain(&pool, err));
    CAI_TRY(cai_event_pool_destroy(&pool, err));
    return cai_emm_pool_destroy(&blocks, err);
}

/* Wrong calls, and how many of them had the right error. */
PACKED(misuse)
{
    static const char *const names[] = {"x", "y"};
    const int64_t shape[1] = {-1}, one[1] = {2};
    const TVMFFIAny *values = args->values;
    cai_tvm_ffi_args some;
    cai_array x, z;
    TVMFFIAny none, vector;
    DLTensor lanes;
    double number;
    int32_t right = 0;
    memset(&none, 0, sizeof none);
    CAI_TRY(cai_tvm_ffi_array(args, 0, &x, err));
    right += cai_tvm_ffi_open(NULL, values, 1, names, 1, err) == CAI_ERR_ARGUMENT && !!strstr(err->message, "out is");
    right += cai_tvm_ffi_open(&some, NULL, 1, names, 1, err) == CAI_ERR_ARGUMENT && !!strstr(err->message, "values is");
    right += cai_tvm_ffi_open(&some, values, 1, NULL, 1, err) == CAI_ERR_ARGUMENT && !!strstr(err->message, "names is");
    right += cai_tvm_ffi_open(&some, NULL, 0, NULL, 0, err) == CAI_OK && some.count == 0;
    right += cai_tvm_ffi_array(&some, 0, &z, err) == CAI_ERR_ARGUMENT && !!strstr(err->message, "index = 0");
    lanes = *(const DLTensor *)(const void *)((const char *)values->v_obj + sizeof(TVMFFIObject));
    lanes.dtype.lanes = 4;
    vector.type_index = kTVMFFIDLTensorPtr;
    vector.v_ptr = &lanes;
    right += cai_tvm_ffi_open(&some, &vector, 1, names + 1, 1, err) == CAI_OK;
    right += cai_tvm_ffi_array(&some, 0, &z, err) == CAI_ERR_TYPESTR && !strncmp(err->message, "y: ", 3);
    right += cai_tvm_ffi_array(args, -1, &z, err) == CAI_ERR_ARGUMENT && !!strstr(err->message, "index = -1");
    right += cai_tvm_ffi_array(NULL, 0, &z, err) == CAI_ERR_ARGUMENT && !!strstr(err->message, "args is NULL");
    right += cai_tvm_ffi_array(args, 0, NULL, err) == CAI_ERR_ARGUMENT && !!strstr(err->message, "out is NULL");
    right += cai_tvm_ffi_float(args, 9, &number, err) == CAI_ERR_ARGUMENT;
    right += cai_tvm_ffi_new(NULL, &x, CAI_FLOAT32, 1, shape, &none, err) == CAI_ERR_ARGUMENT;
    right += cai_tvm_ffi_new(&z, NULL, CAI_FLOAT32, 1, shape, &none, err) == CAI_ERR_ARGUMENT;
    right += cai_tvm_ffi_new(&z, &x, CAI_FLOAT32, 1, shape, NULL, err) == CAI_ERR_ARGUMENT;
    right += cai_tvm_ffi_new(&z, &x, CAI_FLOAT32, 1, shape, &none, err) == CAI_ERR_SHAPE;
    right += cai_tvm_ffi_new(&z, &x, CAI_FLOAT80, 1, x.shape, &none, err) == CAI_ERR_EXPORT;
    right += cai_tvm_ffi_new(&z, &x, CAI_INT4, 1, one, &none, err) == CAI_ERR_EXPORT && !!strstr(err->message, "int4 has a byte");
    right += cai_tvm_ffi_give(NULL, NULL, &none, err) == CAI_ERR_ARGUMENT;
    right += cai_tvm_ffi_give(&x, NULL, NULL, err) == CAI_ERR_ARGUMENT;
    right += none.type_index == kTVMFFINone;
    right += cai_tvm_ffi_end(CAI_OK, &none, NULL) == 0;
    right += cai_tvm_ffi_end(CAI_ERR_VIEW, NULL, NULL) == -1;
    TVMFFIErrorSetRaisedFromCStr("ValueError", "of a wrong call");
    give_number(right, result);
    return CAI_OK;
}
