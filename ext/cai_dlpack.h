/* cai_dlpack.h - cai_array <-> DLTensor, DLManagedTensor, DLManagedTensorVersioned - v0.1.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. Your dlpack.h; no CUDA, no Python, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_DLPACK_IMPLEMENTATION)
#define CAI_DLPACK_IMPLEMENTATION
#endif

/* Included again, cai.h adds what is wanted of it and refuses late configuration. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 1
#error "cai_dlpack.h: this is version 0.1, which needs cai.h 0.1"
#endif
#if defined(CAI_DLPACK_H_INCLUDED) && CAI_DLPACK_H_INCLUDED != 100
#error "cai_dlpack.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_DLPACK_H_INCLUDED
#define CAI_DLPACK_H_INCLUDED 100 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_DLPACK_IMPLEMENTATION for this header alone; all other configuration is
    that of cai.h, which is found by -I or beside this file):

        #define CAI_IMPLEMENTATION
        #include "cai_dlpack.h"

    dlpack.h is yours, from DLPack 0.6 on: the one that was included before; else the one that CAI_DLPACK_H
    names, quotes or brackets included; else <dlpack/dlpack.h>. All units of a library take the same one.
    Where it has no DLManagedTensorVersioned (before 1.0), the functions for it are not declared.

WHAT IT IS
    Both ways between cai_array and DLPack's structs, without a copy:

        CAI_TRY(cai_dlpack_import_versioned(managed, NULL, &x, err));        // x owns managed from here on
        ...
        cai_array_release(&x);                                               // calls managed->deleter

        storage->done = give_back;                                           // the deleter ends by this
        CAI_TRY(cai_dlpack_export_versioned(&y, 0, storage, &managed, err)); // managed owns what y owned

WHO OWNS WHAT
    An import that succeeds owns the tensor: its release calls the deleter once, on whatever thread. One that
    fails leaves it with the caller, untouched: its deleter is still to be called, or the capsule that it came
    in still does that. With one exception, DLPack's rule for an unknown major version: then the deleter has
    been called, nothing but version and deleter was read, and the status is CAI_ERR_VERSION, which no other
    failure has.
    An export that succeeds has moved the array into the storage; the deleter releases it, then calls `done`.
    One that fails leaves array and storage to the caller.
    A Python capsule: rename it to "used_dltensor(_versioned)" after CAI_OK and after CAI_ERR_VERSION.

STREAMS
    The structs say nothing of pending work. Who consumes passes the number of its stream to
    __dlpack__(stream=s), and the producer lets s wait for its work, once. So:
    - after importing what was made for stream s say CAI_SYNC_STREAM and s in the options: that is where the
      work is ordered, and where the edge back belongs (DLPack has none: the deleter gets no stream). After
      -1, or of a bare DLTensor, nothing is known: CAI_SYNC_UNKNOWN, the default, unless you know better;
    - before exporting, read the number with cai_stream_from_dlpack, order with cai_stream_order
      (cai_stream.h), and export with CAI_DLPACK_ORDERED. Without that, pending work is refused.
    On plain host memory (kDLCPU) DLPack has no streams: CAI_SYNC_UNKNOWN becomes CAI_SYNC_NONE.

DEVICES
    kDLCPU, kDLCUDAHost, kDLCUDAManaged and kDLCUDA are CAI_MEMORY_HOST, _PINNED, _MANAGED and _DEVICE; of the
    last alone the device is told, the others have device_id 0 by DLPack's word, and CAI_DEVICE_UNKNOWN here.
    All else is refused, ROCm too: its stream numbers mean other things (R106).

TYPES
    What both sides know: bool, ints, float16 to 64, complex32 to 128, bfloat16, float8. Not: lanes, float4
    and float6 (cai_array counts bytes), handles, long double (x87 or IEEE: neither side says which); nor,
    exporting, swapped bytes, records, text, times, bit fields, masks, strides that are not whole elements.

THREADS
    No state: any thread, as long as no two use one struct at a time. A deleter may run on any thread.
*/

#include <stdint.h>
#if defined(CAI_DLPACK_H)
#include CAI_DLPACK_H
#elif !defined(DLPACK_DLPACK_H_)
#include <dlpack/dlpack.h>
#endif

#if defined(DLPACK_VERSION) && DLPACK_VERSION < 60
#error "cai_dlpack.h: this dlpack.h is older than 0.6"
#endif
#if defined(DLPACK_MAJOR_VERSION) && DLPACK_MAJOR_VERSION > 1
#error "cai_dlpack.h: this dlpack.h has another layout than DLPack 1, the last that is known here"
#endif
#if defined(DLPACK_MAJOR_VERSION) && DLPACK_MAJOR_VERSION == 1
#define CAI_DLPACK_VERSIONED /* dlpack.h has struct DLManagedTensorVersioned */
#endif

#if defined(CAI_NAMESPACE)
#define cai_dlpack_borrow CAI_PRIV_RENAMED(cai_dlpack_borrow)
#define cai_dlpack_device CAI_PRIV_RENAMED(cai_dlpack_device)
#define cai_dlpack_dtype_from CAI_PRIV_RENAMED(cai_dlpack_dtype_from)
#define cai_dlpack_dtype_to CAI_PRIV_RENAMED(cai_dlpack_dtype_to)
#define cai_dlpack_export CAI_PRIV_RENAMED(cai_dlpack_export)
#define cai_dlpack_export_versioned CAI_PRIV_RENAMED(cai_dlpack_export_versioned)
#define cai_dlpack_import CAI_PRIV_RENAMED(cai_dlpack_import)
#define cai_dlpack_import_versioned CAI_PRIV_RENAMED(cai_dlpack_import_versioned)
#define cai_dlpack_lend CAI_PRIV_RENAMED(cai_dlpack_lend)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of imports (beside CAI_LENIENT) and of exports. */
enum {
    CAI_DLPACK_READ_ONLY = 1 << 1,      /* import: read-only, whatever the struct says */
    CAI_DLPACK_DROP_READ_ONLY = 1 << 2, /* export: a struct that cannot say read-only will do */
    CAI_DLPACK_ORDERED = 1 << 3,        /* export: the consumer's stream waits for what is pending */
    CAI_DLPACK_COPIED = 1 << 4          /* export, versioned: nobody else has this memory */
};

/** Options of an import; zero means the default. */
typedef struct cai_dlpack_options {
    uint32_t flags;  /* 0, CAI_LENIENT, CAI_DLPACK_READ_ONLY */
    int32_t sync;    /* CAI_SYNC_UNKNOWN, _NONE or _STREAM: what of the producer's work may be pending */
    uint64_t stream; /* with CAI_SYNC_STREAM: 1 legacy, 2 per-thread, else a handle; else 0 */
} cai_dlpack_options;

/** Where an export lives until its deleter is called; not to be moved, copied or used again before. Set
 *  `done`, and `user` if that needs it; the rest is filled in. No cai struct that crosses libraries. */
typedef struct cai_dlpack_storage {
    void (*done)(struct cai_dlpack_storage *self); /* last act of the deleter: may free self; NULL: nothing */
    void *user;
    cai_array array;
    int64_t shape_and_strides[128];
    DLManagedTensor managed;
#if defined(CAI_DLPACK_VERSIONED)
    struct DLManagedTensorVersioned versioned;
#endif
} cai_dlpack_storage;

/** The dtype of DLPack's. Errors: CAI_ERR_ARGUMENT, CAI_ERR_TYPESTR (no such dtype here; see TYPES). */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_dtype_from(DLDataType in, cai_dtype *out, cai_error *err);

/** DLPack's of a dtype. Errors: CAI_ERR_ARGUMENT, CAI_ERR_EXPORT (see TYPES). */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_dtype_to(const cai_dtype *in, DLDataType *out, cai_error *err);

/** Where an array is, in DLPack's terms: what __dlpack_device__ returns. Memory, and the device of device
 *  memory, must be known (cai_locate finds them; those of an empty array are for the caller to store).
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPORT. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_device(const cai_array *array, DLDevice *out, cai_error *err);

/** Describes a tensor as a borrowed array, which ends with the tensor's memory; shape and strides are copied.
 *  It is writable unless the options say otherwise: the struct cannot. options: or NULL. Strides NULL mean C
 *  order. A stride that no element uses and that exceeds 64 bits in bytes becomes 0. byte_offset is added to
 *  the address. On failure nothing is stored.
 *  Errors: CAI_ERR_ARGUMENT; CAI_ERR_TYPESTR; CAI_ERR_MEMORY (device); CAI_ERR_SHAPE, _STRIDES, _DATA. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_borrow(const DLTensor *tensor, const cai_dlpack_options *options,
                                                    cai_array *out, cai_error *err);

/** cai_dlpack_borrow, and the array owns the tensor (see WHO OWNS WHAT); without a deleter it is borrowed.
 *  Writable as there; NumPy takes such tensors to be read-only. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_import(DLManagedTensor *managed,
                                                    const cai_dlpack_options *options, cai_array *out,
                                                    cai_error *err);

/** Writes a tensor for an array that outlives its use. shape_and_strides: storage of the caller for 2 * ndim
 *  numbers; may be NULL where ndim is 0. flags: CAI_DLPACK_DROP_READ_ONLY, _ORDERED. What the struct cannot
 *  say is refused, not dropped; so is any sync but CAI_SYNC_NONE of an array that is not empty, without
 *  CAI_DLPACK_ORDERED. Data is the first element, byte_offset 0; strides are NULL only where ndim is 0
 *  (DLPack 1.2). On failure nothing is stored. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPORT. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_lend(const cai_array *array, uint32_t flags,
                                                  int64_t *shape_and_strides, DLTensor *out, cai_error *err);

/** Moves an array into a tensor with a deleter, in the caller's storage (see WHO OWNS WHAT). A borrowed array
 *  may be exported; its memory must outlive the tensor. flags and errors as of cai_dlpack_lend; *out points
 *  into the storage. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_export(cai_array *array, uint32_t flags,
                                                    cai_dlpack_storage *storage, DLManagedTensor **out,
                                                    cai_error *err);

#if defined(CAI_DLPACK_VERSIONED)
/** cai_dlpack_import for the struct of DLPack 1.0 and later, which says read-only. Whether it is a copy that
 *  nobody else has, look up in managed->flags. CAI_LENIENT forgives strides NULL in what calls itself 1.2 or
 *  later, and flags that DLPack 1.3 does not have; a higher minor version is no error.
 *  Errors: those of cai_dlpack_borrow; CAI_ERR_ABI (flags); CAI_ERR_VERSION: another major version, and the
 *  deleter has been called. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_import_versioned(struct DLManagedTensorVersioned *managed,
                                                              const cai_dlpack_options *options,
                                                              cai_array *out, cai_error *err);

/** cai_dlpack_export with the version of the dlpack.h that was included, and with read-only said.
 *  flags: CAI_DLPACK_ORDERED, CAI_DLPACK_COPIED. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_export_versioned(cai_array *array, uint32_t flags,
                                                              cai_dlpack_storage *storage,
                                                              struct DLManagedTensorVersioned **out,
                                                              cai_error *err);
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_DLPACK_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>types  >>importing  >>exporting */

#if defined(CAI_DLPACK_IMPLEMENTATION) && !defined(CAI_DLPACK_IMPLEMENTED)
#define CAI_DLPACK_IMPLEMENTED

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* this is C that is also C++: it has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL, for that reason */
#endif

/* Numbers of DLPack, as not every dlpack.h has a name for all of them. */
enum { CAI_PRIV_DLPACK_CPU = 1, CAI_PRIV_DLPACK_CUDA = 2, CAI_PRIV_DLPACK_HOST = 3,
       CAI_PRIV_DLPACK_MANAGED = 13 };
enum { CAI_PRIV_DLPACK_BIT_READ_ONLY = 1, CAI_PRIV_DLPACK_BIT_COPIED = 2, CAI_PRIV_DLPACK_BITS = 7 };

#if defined(__MINGW_PRINTF_FORMAT)
__attribute__((format(__MINGW_PRINTF_FORMAT, 5, 6)))
#elif defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 5, 6)))
#endif
static cai_status cai_priv_dlpack_say(cai_error *err, cai_status status, int32_t entry, int32_t index,
                                      const char *format, ...)
{
    va_list values;
    if (!err) return status;
    va_start(values, format);
    (void)vsnprintf(err->message, sizeof err->message, format, values);
    va_end(values);
    err->code = status;
    err->native = 0;
    err->entry = entry;
    err->index = index;
    return status;
}

static cai_status cai_priv_dlpack_null(cai_error *err, const char *function, const char *argument)
{
    return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_NONE, -1, "%s: %s is NULL", function,
                               argument);
}

/* -------------------------------------------------------------------- >>types */
/* Codes of DLPack in their order; those with a format of their own have one size. */
typedef struct cai_priv_dlpack_type {
    const char *name;
    int32_t kind;   /* letter of the typestr; 0: not here */
    int32_t format; /* as in CAI_CODE */
    int32_t least, most; /* bits */
} cai_priv_dlpack_type;

enum { CAI_PRIV_DLPACK_TYPES = 18 };

static const cai_priv_dlpack_type *cai_priv_dlpack_type_of(int32_t code)
{
    static const cai_priv_dlpack_type types[CAI_PRIV_DLPACK_TYPES] = {
        {"int", 'i', 0, 8, 64}, {"uint", 'u', 0, 8, 64}, {"float", 'f', 0, 16, 64},
        {"opaque handle", 0, 0, 0, 0}, {"bfloat", 'f', 1, 16, 16}, {"complex", 'c', 0, 32, 128},
        {"bool", 'b', 0, 8, 8}, {"float8_e3m4", 'f', 2, 8, 8}, {"float8_e4m3", 'f', 3, 8, 8},
        {"float8_e4m3b11fnuz", 'f', 4, 8, 8}, {"float8_e4m3fn", 'f', 5, 8, 8},
        {"float8_e4m3fnuz", 'f', 6, 8, 8}, {"float8_e5m2", 'f', 7, 8, 8},
        {"float8_e5m2fnuz", 'f', 8, 8, 8}, {"float8_e8m0fnu", 'f', 9, 8, 8},
        {"float6_e2m3fn", 0, 0, 0, 0}, {"float6_e3m2fn", 0, 0, 0, 0}, {"float4_e2m1fn", 0, 0, 0, 0}};
    static const cai_priv_dlpack_type unknown = {"unknown", 0, 0, 0, 0};
    return code < CAI_PRIV_DLPACK_TYPES ? &types[code] : &unknown;
}

/* Is a type of this kind and format the code's, with a size that both sides know? */
static int cai_priv_dlpack_fits(const cai_priv_dlpack_type *type, int32_t kind, int32_t format, int32_t bits)
{
    return type->kind && type->kind == kind && type->format == format && bits >= type->least &&
           bits <= type->most && !(bits & (bits - 1));
}

CAI_API cai_status cai_dlpack_dtype_from(DLDataType in, cai_dtype *out, cai_error *err)
{
    const cai_priv_dlpack_type *type = cai_priv_dlpack_type_of(in.code);
    const char *why = "is not supported";
    if (!out) return cai_priv_dlpack_null(err, "cai_dlpack_dtype_from", "out");
    if (in.lanes == 1 && cai_priv_dlpack_fits(type, type->kind, type->format, in.bits))
        return cai_dtype_of(CAI_CODE(type->kind, in.bits / 8, type->format), out, err);
    if (in.lanes != 1) why = "has lanes, not 1";
    else if (in.bits % 8) why = "is no number of whole bytes";
    else if (type->kind) why = "has a size that is not supported";
    return cai_priv_dlpack_say(err, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, -1,
                               "dtype: code = %u (%s), bits = %u, lanes = %u %s", (unsigned)in.code,
                               type->name, (unsigned)in.bits, (unsigned)in.lanes, why);
}

CAI_API cai_status cai_dlpack_dtype_to(const cai_dtype *in, DLDataType *out, cai_error *err)
{
    const char *why = "DLPack has no such dtype";
    int32_t code, kind, format, bits;
    if (!in || !out) return cai_priv_dlpack_null(err, "cai_dlpack_dtype_to", in ? "out" : "in");
    kind = in->code >> 8 & 0xff;
    format = in->code >> 16;
    bits = (in->code & 0xff) * 8;
    for (code = 0; in->itemsize * (int64_t)8 == bits && code < CAI_PRIV_DLPACK_TYPES; ++code) {
        if (!cai_priv_dlpack_fits(cai_priv_dlpack_type_of(code), kind, format, bits)) continue;
        out->code = (uint8_t)code;
        out->bits = (uint8_t)bits;
        out->lanes = 1;
        return CAI_OK;
    }
    if (in->code & CAI_SWAPPED(0)) why = "the bytes are swapped, DLPack has no byte order";
    else if ((kind == 'f' && bits > 64) || (kind == 'c' && bits > 128))
        why = "floats of DLPack are IEEE without padding, these may not be";
    return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_TYPESTR, -1, "dtype: %s of %ld bytes: %s",
                               cai_dtype_name(in->code), (long)in->itemsize, why);
}

/* ---------------------------------------------------------------- >>importing */
static cai_status cai_priv_dlpack_judge_options(const cai_dlpack_options *options, cai_error *err)
{
    const uint32_t known = (uint32_t)CAI_LENIENT | (uint32_t)CAI_DLPACK_READ_ONLY;
    const int stream = options->sync == CAI_SYNC_STREAM;
    if (options->flags & ~known)
        return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_NONE, -1,
                                   "options: flags = 0x%lx has unknown bits", (unsigned long)options->flags);
    if (!stream && options->sync != CAI_SYNC_UNKNOWN && options->sync != CAI_SYNC_NONE)
        return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_STREAM, -1,
                                   "options: sync = %ld is not UNKNOWN, NONE or STREAM (0..2)",
                                   (long)options->sync);
    if (stream == (options->stream != 0) && options->stream != UINT64_MAX) return CAI_OK;
    return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_STREAM, -1,
                               "options: stream = %lld does not go with sync = %ld",
                               (long long)options->stream, (long)options->sync);
}

/* The kind of memory and, of device memory, the device. */
static cai_status cai_priv_dlpack_place(const DLTensor *tensor, int32_t *memory, int32_t *device,
                                        cai_error *err)
{
    int32_t type = 0;
    memcpy(&type, &tensor->device.device_type, sizeof type); /* any number: an enum may not hold it */
    *device = CAI_DEVICE_UNKNOWN;
    if (type == CAI_PRIV_DLPACK_CPU) *memory = CAI_MEMORY_HOST;
    else if (type == CAI_PRIV_DLPACK_HOST) *memory = CAI_MEMORY_PINNED;
    else if (type == CAI_PRIV_DLPACK_MANAGED) *memory = CAI_MEMORY_MANAGED;
    else if (type == CAI_PRIV_DLPACK_CUDA) *memory = CAI_MEMORY_DEVICE;
    else
        return cai_priv_dlpack_say(err, CAI_ERR_MEMORY, CAI_ENTRY_DATA, -1,
                                   "device: type %ld%s is not CPU, CUDA, CUDAHost, CUDAManaged (1, 2, 3, 13)",
                                   (long)type, type == 10 || type == 11 ? " (ROCm)" : "");
    if (type != CAI_PRIV_DLPACK_CUDA) return CAI_OK;
    if (tensor->device.device_id < 0)
        return cai_priv_dlpack_say(err, CAI_ERR_MEMORY, CAI_ENTRY_DATA, -1, "device: id = %ld is negative",
                                   (long)tensor->device.device_id);
    *device = tensor->device.device_id;
    return CAI_OK;
}

static int cai_priv_dlpack_empty(const DLTensor *tensor)
{
    int32_t i;
    for (i = 0; i < tensor->ndim; ++i) if (!tensor->shape[i]) return 1;
    return 0;
}

/* Elements to bytes. Strides along which nothing moves may be any number. */
static cai_status cai_priv_dlpack_bytes(const DLTensor *tensor, int64_t itemsize, int64_t *strides,
                                        cai_error *err)
{
    const int64_t most = INT64_MAX / itemsize, least = INT64_MIN / itemsize;
    const int empty = cai_priv_dlpack_empty(tensor);
    int32_t i;
    for (i = 0; i < tensor->ndim; ++i) {
        const int64_t stride = tensor->strides[i];
        const int fits = stride <= most && stride >= least;
        if (!fits && !empty && tensor->shape[i] > 1)
            return cai_priv_dlpack_say(err, CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, i,
                                       "strides[%ld] = %lld elements of %ld bytes exceed 64 bits", (long)i,
                                       (long long)stride, (long)itemsize);
        strides[i] = fits ? stride * itemsize : 0;
    }
    return CAI_OK;
}

/* NULL stays NULL, which cai_array_init_dtype judges; of an empty array nothing is looked at (R13). */
static cai_status cai_priv_dlpack_address(const DLTensor *tensor, uint64_t *out, cai_error *err)
{
    const uint64_t data = (uint64_t)(uintptr_t)tensor->data, offset = tensor->byte_offset;
    *out = data ? data + offset : 0;
    if (!data || offset <= (uint64_t)UINTPTR_MAX - data || cai_priv_dlpack_empty(tensor)) return CAI_OK;
    return cai_priv_dlpack_say(err, CAI_ERR_DATA, CAI_ENTRY_DATA, -1,
                               "data = 0x%llx and byte_offset = %llu exceed a pointer",
                               (unsigned long long)data, (unsigned long long)offset);
}

CAI_API cai_status cai_dlpack_borrow(const DLTensor *tensor, const cai_dlpack_options *options,
                                     cai_array *out, cai_error *err)
{
    static const cai_dlpack_options none = {0, 0, 0};
    int64_t strides[CAI_MAX_NDIM];
    int32_t memory, device;
    cai_dtype dtype;
    uint64_t data;
    if (!tensor || !out) return cai_priv_dlpack_null(err, "cai_dlpack_borrow", tensor ? "out" : "tensor");
    if (!options) options = &none;
    CAI_TRY(cai_priv_dlpack_judge_options(options, err));
    CAI_TRY(cai_priv_dlpack_place(tensor, &memory, &device, err));
    CAI_TRY(cai_dlpack_dtype_from(tensor->dtype, &dtype, err));
    if (tensor->ndim < 0 || tensor->ndim > CAI_MAX_NDIM || (tensor->ndim && !tensor->shape))
        return cai_priv_dlpack_say(err, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, -1, "shape: ndim = %ld %s",
                                   (long)tensor->ndim, tensor->ndim < 0 || tensor->ndim > CAI_MAX_NDIM
                                   ? "is not in 0..64" : "and shape is NULL");
    CAI_TRY(cai_priv_dlpack_address(tensor, &data, err));
    if (tensor->strides) CAI_TRY(cai_priv_dlpack_bytes(tensor, dtype.itemsize, strides, err));
    CAI_TRY(cai_array_init_dtype(out, &dtype, tensor->ndim, tensor->shape, tensor->strides ? strides : NULL,
                                 data, err));
    if (options->flags & (uint32_t)CAI_DLPACK_READ_ONLY) out->flags &= ~(uint32_t)CAI_WRITABLE;
    out->memory = memory;
    out->device = device;
    out->sync = memory == CAI_MEMORY_HOST && !options->sync ? CAI_SYNC_NONE : options->sync;
    out->stream = options->stream;
    return CAI_OK;
}

static void cai_priv_dlpack_release(cai_array *self)
{
    DLManagedTensor *managed = (DLManagedTensor *)self->owner;
    self->release = NULL;
    managed->deleter(managed);
}

CAI_API cai_status cai_dlpack_import(DLManagedTensor *managed, const cai_dlpack_options *options,
                                     cai_array *out, cai_error *err)
{
    if (!managed) return cai_priv_dlpack_null(err, "cai_dlpack_import", "managed");
    CAI_TRY(cai_dlpack_borrow(&managed->dl_tensor, options, out, err));
    if (managed->deleter) cai_array_own(out, cai_priv_dlpack_release, managed);
    return CAI_OK;
}

#if defined(CAI_DLPACK_VERSIONED)
static void cai_priv_dlpack_release_versioned(cai_array *self)
{
    struct DLManagedTensorVersioned *managed = (struct DLManagedTensorVersioned *)self->owner;
    self->release = NULL;
    managed->deleter(managed);
}

/* What the version promises of the rest. */
static cai_status cai_priv_dlpack_judge(const struct DLManagedTensorVersioned *managed, cai_error *err)
{
    const uint64_t more = managed->flags & ~(uint64_t)CAI_PRIV_DLPACK_BITS;
    if (more)
        return cai_priv_dlpack_say(err, CAI_ERR_ABI, CAI_ENTRY_NONE, -1,
                                   "flags = 0x%llx: DLPack 1.3 has no 0x%llx (accepted by CAI_LENIENT)",
                                   (unsigned long long)managed->flags, (unsigned long long)more);
    if (managed->version.minor < 2 || managed->dl_tensor.strides || managed->dl_tensor.ndim < 1)
        return CAI_OK;
    return cai_priv_dlpack_say(err, CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, -1,
                               "strides is NULL, ndim = %ld, version 1.%lu (accepted by CAI_LENIENT)",
                               (long)managed->dl_tensor.ndim, (unsigned long)managed->version.minor);
}

CAI_API cai_status cai_dlpack_import_versioned(struct DLManagedTensorVersioned *managed,
                                               const cai_dlpack_options *options, cai_array *out,
                                               cai_error *err)
{
    if (!managed || !out)
        return cai_priv_dlpack_null(err, "cai_dlpack_import_versioned", managed ? "out" : "managed");
    if (managed->version.major != 1) {
        const uint32_t major = managed->version.major, minor = managed->version.minor;
        if (managed->deleter) managed->deleter(managed);
        return cai_priv_dlpack_say(err, CAI_ERR_VERSION, CAI_ENTRY_VERSION, -1,
                                   "version %lu.%lu is not 1.x: the deleter was called", (unsigned long)major,
                                   (unsigned long)minor);
    }
    if (!options || !(options->flags & CAI_LENIENT)) CAI_TRY(cai_priv_dlpack_judge(managed, err));
    CAI_TRY(cai_dlpack_borrow(&managed->dl_tensor, options, out, err));
    if (managed->flags & CAI_PRIV_DLPACK_BIT_READ_ONLY) out->flags &= ~(uint32_t)CAI_WRITABLE;
    if (managed->deleter) cai_array_own(out, cai_priv_dlpack_release_versioned, managed);
    return CAI_OK;
}
#endif

/* ---------------------------------------------------------------- >>exporting */
CAI_API cai_status cai_dlpack_device(const cai_array *array, DLDevice *out, cai_error *err)
{
    int32_t type;
    CAI_TRY(cai_array_check(array, err));
    if (!out) return cai_priv_dlpack_null(err, "cai_dlpack_device", "out");
    if (array->memory == CAI_MEMORY_HOST) type = CAI_PRIV_DLPACK_CPU;
    else if (array->memory == CAI_MEMORY_PINNED) type = CAI_PRIV_DLPACK_HOST;
    else if (array->memory == CAI_MEMORY_MANAGED) type = CAI_PRIV_DLPACK_MANAGED;
    else if (array->memory == CAI_MEMORY_DEVICE) type = CAI_PRIV_DLPACK_CUDA;
    else
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1,
                                   "memory = %ld is not known: cai_locate finds it", (long)array->memory);
    if (type == CAI_PRIV_DLPACK_CUDA && array->device < 0)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1,
                                   "device = %ld is not known: cai_locate finds it", (long)array->device);
    out->device_type = (DLDeviceType)type;
    out->device_id = type == CAI_PRIV_DLPACK_CUDA ? array->device : 0;
    return CAI_OK;
}

/* Whatever of an array the structs have no place for. */
static cai_status cai_priv_dlpack_sayable(const cai_array *array, uint32_t flags, cai_error *err)
{
    int32_t i;
    if (array->mask)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_MASK, -1, "mask: DLPack has none");
    if (array->size && array->sync != CAI_SYNC_NONE && !(flags & (uint32_t)CAI_DLPACK_ORDERED))
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_STREAM, -1,
                                   "stream: sync = %ld is not NONE (1): order, and say CAI_DLPACK_ORDERED",
                                   (long)array->sync);
    if ((uintptr_t)array->data != array->data)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1, "data = 0x%llx exceeds a pointer",
                                   (unsigned long long)array->data);
    for (i = 0; i < array->ndim && array->size; ++i) {
        if (array->shape[i] == 1 || !(array->strides[i] % array->dtype.itemsize)) continue;
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_STRIDES, i,
                                   "strides[%ld] = %lld bytes is no multiple of the itemsize, %ld", (long)i,
                                   (long long)array->strides[i], (long)array->dtype.itemsize);
    }
    return CAI_OK;
}

/* Judges all, then writes. flags are those that the caller's caller may give. */
static cai_status cai_priv_dlpack_write(const cai_array *array, uint32_t flags, int64_t *shape_and_strides,
                                        DLTensor *out, cai_error *err)
{
    DLDataType dtype;
    DLDevice device;
    int32_t i;
    CAI_TRY(cai_dlpack_device(array, &device, err));
    CAI_TRY(cai_dlpack_dtype_to(&array->dtype, &dtype, err));
    CAI_TRY(cai_priv_dlpack_sayable(array, flags, err));
    for (i = 0; i < array->ndim; ++i) {
        shape_and_strides[i] = array->shape[i];
        shape_and_strides[array->ndim + i] = array->strides[i] / array->dtype.itemsize;
    }
    out->data = array->size ? (void *)(uintptr_t)array->data : NULL;
    out->device = device;
    out->ndim = array->ndim;
    out->dtype = dtype;
    out->shape = array->ndim ? shape_and_strides : NULL;
    out->strides = array->ndim ? shape_and_strides + array->ndim : NULL;
    out->byte_offset = 0;
    return CAI_OK;
}

static cai_status cai_priv_dlpack_flags(uint32_t flags, int known, cai_error *err)
{
    if (!(flags & ~(uint32_t)known)) return CAI_OK;
    return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_NONE, -1, "flags = 0x%lx has unknown bits",
                               (unsigned long)flags);
}

CAI_API cai_status cai_dlpack_lend(const cai_array *array, uint32_t flags, int64_t *shape_and_strides,
                                   DLTensor *out, cai_error *err)
{
    CAI_TRY(cai_array_check(array, err));
    if (!out || (array->ndim && !shape_and_strides))
        return cai_priv_dlpack_null(err, "cai_dlpack_lend", out ? "shape_and_strides" : "out");
    CAI_TRY(cai_priv_dlpack_flags(flags, CAI_DLPACK_DROP_READ_ONLY | CAI_DLPACK_ORDERED, err));
    if (!(array->flags & CAI_WRITABLE) && !(flags & (uint32_t)CAI_DLPACK_DROP_READ_ONLY))
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1,
                                   "data is read-only, which a tensor without version cannot say");
    return cai_priv_dlpack_write(array, flags, shape_and_strides, out, err);
}

static void cai_priv_dlpack_done(void *context)
{
    cai_dlpack_storage *storage = (cai_dlpack_storage *)context;
    cai_array_release(&storage->array);
    if (storage->done) storage->done(storage);
}

static void cai_priv_dlpack_delete(DLManagedTensor *self)
{
    if (self) cai_priv_dlpack_done(self->manager_ctx);
}

CAI_API cai_status cai_dlpack_export(cai_array *array, uint32_t flags, cai_dlpack_storage *storage,
                                     DLManagedTensor **out, cai_error *err)
{
    if (!storage || !out) return cai_priv_dlpack_null(err, "cai_dlpack_export", storage ? "out" : "storage");
    CAI_TRY(cai_dlpack_lend(array, flags, storage->shape_and_strides, &storage->managed.dl_tensor, err));
    storage->managed.manager_ctx = storage;
    storage->managed.deleter = cai_priv_dlpack_delete;
    cai_array_move(&storage->array, array);
    *out = &storage->managed;
    return CAI_OK;
}

#if defined(CAI_DLPACK_VERSIONED)
static void cai_priv_dlpack_delete_versioned(struct DLManagedTensorVersioned *self)
{
    if (self) cai_priv_dlpack_done(self->manager_ctx);
}

CAI_API cai_status cai_dlpack_export_versioned(cai_array *array, uint32_t flags, cai_dlpack_storage *storage,
                                               struct DLManagedTensorVersioned **out, cai_error *err)
{
    struct DLManagedTensorVersioned *made;
    if (!storage || !out)
        return cai_priv_dlpack_null(err, "cai_dlpack_export_versioned", storage ? "out" : "storage");
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_dlpack_flags(flags, CAI_DLPACK_ORDERED | CAI_DLPACK_COPIED, err));
    made = &storage->versioned;
    CAI_TRY(cai_priv_dlpack_write(array, flags, storage->shape_and_strides, &made->dl_tensor, err));
    made->version.major = DLPACK_MAJOR_VERSION;
    made->version.minor = DLPACK_MINOR_VERSION;
    made->manager_ctx = storage;
    made->deleter = cai_priv_dlpack_delete_versioned;
    made->flags = (array->flags & CAI_WRITABLE ? 0u : (uint32_t)CAI_PRIV_DLPACK_BIT_READ_ONLY) |
                  (flags & (uint32_t)CAI_DLPACK_COPIED ? (uint32_t)CAI_PRIV_DLPACK_BIT_COPIED : 0u);
    cai_array_move(&storage->array, array);
    *out = made;
    return CAI_OK;
}
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_DLPACK_IMPLEMENTATION */

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
