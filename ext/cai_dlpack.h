/* cai_dlpack.h - cai_array <-> DLTensor, DLManagedTensor, DLManagedTensorVersioned - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No dlpack.h, CUDA header, Python, allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_DLPACK_IMPLEMENTATION)
#define CAI_DLPACK_IMPLEMENTATION
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_dlpack.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_DLPACK_H_INCLUDED) && CAI_DLPACK_H_INCLUDED != 200
#error "cai_dlpack.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_DLPACK_H_INCLUDED
#define CAI_DLPACK_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    Write this in one .c, .cpp or .cu file. CAI_DLPACK_IMPLEMENTATION is for this header alone. All other
    configuration is that of cai.h. The compiler finds cai.h by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_dlpack.h"

    No dlpack.h is needed. Where you include one, its place does not matter. The functions take DLPack's own
    types, struct DLManagedTensor and struct DLManagedTensorVersioned. To reach fields without dlpack.h, cast
    to cai_dl_managed or cai_dl_managed_versioned. With dlpack.h, cast a DLTensor to cai_dl_tensor.

    Include cai_stream.h before this header, also in the unit with the implementation, for exports that are in
    order at both ends: cai_dlpack_export_ordered, cai_dlpack_export_ordered_versioned.

WHAT IT IS
    This header converts DLPack's structs to cai_array and back, without a copy.

        CAI_TRY(cai_dlpack_import_versioned(managed, &options, &x, err)); // x owns managed from here on
        ...
        cai_exchange_finish(&ex, status, io, 1, err);                     // calls managed->deleter, in order

        storage->storage.done = give_back;                                // the deleter ends by this
        CAI_TRY(cai_dlpack_export_ordered_versioned(&y, pool, consumers_stream, 0, storage, &managed, err));
                                                                          // managed owns what y owned

WHO OWNS WHAT
    After an import that succeeds, the array owns the tensor. Its release calls the deleter once, on any
    thread. After an import that fails, the caller still owns the unchanged tensor, and calls its deleter or
    leaves that to the capsule. DLPack demands one exception, for an unknown major version. Then only version
    and deleter are read, the deleter is called, and the status is CAI_ERR_VERSION. No other failure has this
    status. An export that succeeds has moved the array into the storage. The deleter releases it, then calls
    `done`. After an export that fails, the caller keeps array and storage. Rename a Python capsule to
    "used_dltensor(_versioned)" after CAI_OK and after CAI_ERR_VERSION.

STREAMS
    The structs have no field for pending work. The consumer passes the number of its stream to
    __dlpack__(stream=s), and the producer makes s wait for its work. DLPack defines no order at the other
    end, as the deleter gets no stream. The deleter runs when the host drops the tensor, and the consumer's
    kernels may still be queued then. If the producer frees the memory in the order of its own stream, or puts
    it into a cache, those kernels read freed memory. Each side can prevent this alone:

    - The consumer calls the deleter only when its stream has passed. After __dlpack__(stream=s), set
      CAI_SYNC_STREAM and s in the options of the import. The imports set CAI_NO_BACK_EDGE, so
      cai_exchange_finish keeps the tensor until the consumer's stream has passed. Without an exchange, call
      cai_keepalive_push with that stream, not cai_array_release.
    - The producer remembers what covers the work in s, and gives the array back after that work.
      cai_dlpack_export_ordered does this. The plain exports do not. Use a plain export only for memory that
      is not freed or used again before the consumer has finished.

    After stream=-1, and for a bare DLTensor, pending work is unknown. Then keep the default,
    CAI_SYNC_UNKNOWN, unless you know more. Before a plain export, decode the number with
    cai_decode_stream_dlpack, order with cai_stream_order, and set CAI_DLPACK_ORDERED. Without the flag,
    pending work is refused. DLPack has no streams for plain host memory (kDLCPU), so CAI_SYNC_UNKNOWN becomes
    CAI_SYNC_NONE.

DEVICES
    kDLCPU, kDLCUDAHost, kDLCUDAManaged and kDLCUDA are CAI_MEMORY_HOST, _PINNED, _MANAGED and _DEVICE. Only
    kDLCUDA has a device number. DLPack gives the others device_id 0, and cai CAI_DEVICE_UNKNOWN. Every other
    device type is refused. ROCm is refused because its stream numbers have other meanings (R106). So is an
    array whose backend is CAI_BACKEND_HIP, unless its memory is CAI_MEMORY_HOST, and an export in the order of
    a pool of HIP.

TYPES
    Supported: bool, ints, float16 to 64, complex32 to 128, bfloat16, float8, and below 8 bits int1, int2, int4,
    float6 and float4. Refused: other lanes, handles, long double (x87 or IEEE is not defined). The exports
    also refuse swapped bytes, records, text, times, bit fields, masks, and strides that are not whole
    elements. Values below 8 bits come in three forms:

    - As many lanes as fill whole bytes (float4: 2). The shape counts elements of that many values. The values
      lie along the last axis of stride 1. If there is none, or strides is NULL, they lie along the last axis.
      PyTorch has its float4_e2m1fn_x2 so. It is what the exports write. They refuse another axis, and
      unused bits.
    - One lane, packed. The shape counts values. An import takes it if every row begins at a whole element
      (the axis of stride 1 is packed, all other strides are multiples of its values). An export writes it
      with CAI_DLPACK_ONE_LANE.
    - One lane, padded: a byte for each value (CAI_INT4 in place of CAI_INT4_X2). Only the versioned struct can
      say this (CAI_DL_IS_PADDED).

THREADS
    Any thread may call. Two threads must not use one struct at a time. A deleter may run on any thread.
*/

#include <stdint.h>

#if defined(CAI_NAMESPACE)
#define cai_dlpack_borrow CAI_PRIV_RENAMED(cai_dlpack_borrow)
#define cai_dlpack_device CAI_PRIV_RENAMED(cai_dlpack_device)
#define cai_dlpack_dtype_from CAI_PRIV_RENAMED(cai_dlpack_dtype_from)
#define cai_dlpack_dtype_to CAI_PRIV_RENAMED(cai_dlpack_dtype_to)
#define cai_dlpack_export CAI_PRIV_RENAMED(cai_dlpack_export)
#define cai_dlpack_export_ordered CAI_PRIV_RENAMED(cai_dlpack_export_ordered)
#define cai_dlpack_export_ordered_versioned CAI_PRIV_RENAMED(cai_dlpack_export_ordered_versioned)
#define cai_dlpack_export_versioned CAI_PRIV_RENAMED(cai_dlpack_export_versioned)
#define cai_dlpack_import CAI_PRIV_RENAMED(cai_dlpack_import)
#define cai_dlpack_import_versioned CAI_PRIV_RENAMED(cai_dlpack_import_versioned)
#define cai_dlpack_is_padded CAI_PRIV_RENAMED(cai_dlpack_is_padded)
#define cai_dlpack_lend CAI_PRIV_RENAMED(cai_dlpack_lend)
#define cai_dlpack_limit CAI_PRIV_RENAMED(cai_dlpack_limit)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ >>structs */
/* The names are those of dlpack.h, so these are its types in each unit that includes it. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* The layout of DLPack 1.3, whose documentation describes each field. may_alias: compilers must expect that
 * other code writes the same memory by the types of dlpack.h. MSVC always does. */
#if defined(__GNUC__) || defined(__clang__)
#define CAI_DL_STRUCT struct __attribute__((may_alias))
#else
#define CAI_DL_STRUCT struct
#endif
typedef int32_t cai_dl_device_type;

/** DLDevice */
typedef CAI_DL_STRUCT cai_dl_device {
    cai_dl_device_type device_type; /* CAI_DL_CPU, ... */
    int32_t device_id;
} cai_dl_device;

/** DLDataType */
typedef CAI_DL_STRUCT cai_dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} cai_dl_dtype;

/** DLTensor */
typedef CAI_DL_STRUCT cai_dl_tensor {
    void *data;
    cai_dl_device device;
    int32_t ndim;
    cai_dl_dtype dtype;
    int64_t *shape, *strides; /* strides in elements */
    uint64_t byte_offset;
} cai_dl_tensor;

/** DLManagedTensor */
typedef CAI_DL_STRUCT cai_dl_managed {
    cai_dl_tensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} cai_dl_managed;

/** DLPackVersion */
typedef CAI_DL_STRUCT cai_dl_version {
    uint32_t major, minor;
} cai_dl_version;

/** DLManagedTensorVersioned */
typedef CAI_DL_STRUCT cai_dl_managed_versioned {
    cai_dl_version version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags; /* CAI_DL_READ_ONLY, CAI_DL_IS_COPIED, CAI_DL_IS_PADDED */
    cai_dl_tensor dl_tensor;
} cai_dl_managed_versioned;

/** Numbers of DLPack 1.3: the version that exports have and ask for, flags, types of devices. */
enum {
    CAI_DL_MAJOR = 1,
    CAI_DL_MINOR = 3,
    CAI_DL_READ_ONLY = 1 << 0,
    CAI_DL_IS_COPIED = 1 << 1,
    CAI_DL_IS_PADDED = 1 << 2, /* a type below one byte has a byte for each element */
    CAI_DL_CPU = 1,
    CAI_DL_CUDA = 2,
    CAI_DL_CUDA_HOST = 3,
    CAI_DL_CUDA_MANAGED = 13
};

/* ------------------------------------------------------------------ >>options */
/** Flags of imports (beside CAI_LENIENT) and of exports. */
enum {
    CAI_DLPACK_READ_ONLY = 1 << 1,      /* import: the array is read-only, whatever the struct contains */
    CAI_DLPACK_DROP_READ_ONLY = 1 << 2, /* export: a read-only array loses that mark in this struct */
    CAI_DLPACK_ORDERED = 1 << 3,        /* export: the consumer's stream waits for what is pending */
    CAI_DLPACK_COPIED = 1 << 4,         /* export, versioned: nobody else has this memory */
    CAI_DLPACK_STREAMS_LIVE = 1 << 5,   /* ordered export: you promise that a stream that a consumer names
                                           lives as long as the process, as PyTorch's do */
    CAI_DLPACK_NO_CAPTURES = 1 << 6,    /* ordered export: you promise that nothing captures in the context of
                                           the consumer's stream when the deleter runs */
    CAI_DLPACK_ONE_LANE = 1 << 7,       /* export: a packed array gets its shape in values (see TYPES) */
    CAI_DLPACK_PADDED = 1 << 8          /* cai_dlpack_lend: your struct has CAI_DL_IS_PADDED where
                                           cai_dlpack_is_padded says so */
};

/** Options of an import. Zero means the default. */
typedef struct cai_dlpack_options {
    uint32_t flags;  /* 0, CAI_LENIENT, CAI_DLPACK_READ_ONLY */
    int32_t sync;    /* CAI_SYNC_UNKNOWN, _NONE or _STREAM: what of the producer's work may be pending */
    uint64_t stream; /* with CAI_SYNC_STREAM: 1 legacy, 2 per-thread, else a handle; else 0 */
} cai_dlpack_options;

/** The storage of an export. Do not move, copy or reuse it before its deleter was called. Set `done`, and
 *  `user` if `done` needs it. The export sets the rest. Libraries must not pass this struct to each other. */
typedef struct cai_dlpack_storage {
    void (*done)(struct cai_dlpack_storage *self); /* last act of the deleter: may free self; NULL: nothing */
    void *user;
    int (*release)(struct cai_dlpack_storage *self); /* of the array; 0: later, with `done`; NULL: at once */
    cai_array array;
    int64_t shape_and_strides[128];
    cai_dl_managed managed;
    cai_dl_managed_versioned versioned;
} cai_dlpack_storage;

/* -------------------------------------------------------------------- >>types */
/** Converts a dtype of DLPack. Below 8 bits the result is packed, as DLPack's default is. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_TYPESTR (unsupported, see TYPES). */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_dtype_from(cai_dl_dtype in, cai_dtype *out, cai_error *err);

/** Converts a dtype to DLPack's. One value in a byte (CAI_INT4) also needs CAI_DL_IS_PADDED in the struct.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_EXPORT (see TYPES). */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_dtype_to(const cai_dtype *in, cai_dl_dtype *out, cai_error *err);

/** Stores the DLPack device of an array, which __dlpack_device__ returns. The kind of memory must be known,
 *  and for device memory also the device. cai_locate finds both. For an empty array the caller stores them.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPORT. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_device(const cai_array *array, cai_dl_device *out,
                                                    cai_error *err);

/** Returns 1 if each value below 8 bits has a byte (CAI_INT4, ...), so that the versioned struct needs the mark
 *  CAI_DL_IS_PADDED, else 0. */
CAI_API int32_t cai_dlpack_is_padded(const cai_dtype *dtype);

/* ------------------------------------------------------------------ >>tensors */
/** Describes a tensor as a borrowed array, valid as long as the tensor's memory. Shape and strides are
 *  copied. The array is writable without CAI_DLPACK_READ_ONLY, as the struct has no such mark. `options` may
 *  be NULL. Strides NULL mean C order. A stride that no element uses becomes 0 if it exceeds 64 bits in
 *  bytes. byte_offset is added to the address. On failure nothing is stored. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_TYPESTR, CAI_ERR_MEMORY (device), CAI_ERR_SHAPE, CAI_ERR_STRIDES, CAI_ERR_DATA. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_borrow(const cai_dl_tensor *tensor,
                                                    const cai_dlpack_options *options, cai_array *out,
                                                    cai_error *err);

/** Does the same as cai_dlpack_borrow, and the array owns the tensor (see WHO OWNS WHAT). Without a deleter
 *  the array is borrowed. It is writable as in cai_dlpack_borrow. NumPy treats such tensors as read-only. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_import(struct DLManagedTensor *managed,
                                                    const cai_dlpack_options *options, cai_array *out,
                                                    cai_error *err);

/** Writes a tensor for an array. The array must outlive all use of the tensor. `shape_and_strides` is the
 *  caller's storage of 2 * ndim numbers, or NULL if ndim is 0. `flags`: CAI_DLPACK_DROP_READ_ONLY, _ORDERED,
 *  _ONE_LANE, _PADDED.
 *  An array that the struct cannot describe is refused. A non-empty array needs CAI_SYNC_NONE or
 *  CAI_DLPACK_ORDERED. data is the first element, byte_offset is 0. strides is NULL only if ndim is 0 (DLPack
 *  1.2). On failure nothing is stored. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPORT. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_lend(const cai_array *array, uint32_t flags,
                                                  int64_t *shape_and_strides, cai_dl_tensor *out,
                                                  cai_error *err);

/** Moves an array into a tensor with a deleter, in the caller's storage (see WHO OWNS WHAT). A borrowed array
 *  may be exported. Its memory must outlive the tensor. The deleter has no CUDA table, so it releases the
 *  array in the capture mode of its thread. If that frees memory beside a capture, export with
 *  cai_dlpack_export_ordered. `flags` and errors are those of cai_dlpack_lend. *out points into the storage. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_export(cai_array *array, uint32_t flags,
                                                    cai_dlpack_storage *storage, struct DLManagedTensor **out,
                                                    cai_error *err);

/** cai_dlpack_import for the struct of DLPack 1.0 and later, which has a mark for read-only. managed->flags
 *  contains whether the memory is a copy that nobody else has. CAI_LENIENT accepts strides NULL of version
 *  1.2 or later, and flags that DLPack 1.3 does not have. A higher minor version is no error. Errors: those
 *  of cai_dlpack_borrow, CAI_ERR_ABI (flags), CAI_ERR_VERSION (another major version, and the deleter has
 *  been called). */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_import_versioned(struct DLManagedTensorVersioned *managed,
                                                              const cai_dlpack_options *options,
                                                              cai_array *out, cai_error *err);

/** cai_dlpack_export with the version of DLPack 1.3. The struct marks a read-only array as such.
 *  `flags` may have CAI_DLPACK_ORDERED, _COPIED and _ONE_LANE. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_export_versioned(cai_array *array, uint32_t flags,
                                                              cai_dlpack_storage *storage,
                                                              struct DLManagedTensorVersioned **out,
                                                              cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_DLPACK_H_INCLUDED */

/* Declarations that need cai_stream.h. It may be included between two inclusions of this header. */
#if defined(CAI_DLPACK_IMPLEMENTED) && defined(CAI_STREAM_H_INCLUDED) != defined(CAI_PRIV_DLPACK_WITH_STREAM)
#error "cai_dlpack.h: cai_stream.h is to be included before its implementation"
#endif
#if defined(CAI_STREAM_H_INCLUDED) && !defined(CAI_PRIV_DLPACK_WITH_STREAM)
#define CAI_PRIV_DLPACK_WITH_STREAM
#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- >>ordering */
/** The storage of an export that is in order at both ends. Set storage.done, and storage.user if storage.done
 *  needs it. storage.done gets the address of this struct. All other fields belong to the export. */
typedef struct cai_dlpack_ordered {
    cai_dlpack_storage storage;
    cai_priv_parked parked;       /* in the list of the pool, while the array cannot be given back */
    cai_event_pool *pool;
    uint64_t stream, stream_id;   /* the consumer's, by number and by cuStreamGetId */
    uint64_t context, context_id; /* of that stream */
    uint64_t event;               /* behind the consumer's work; 0: none yet */
    uint32_t flags;
    int32_t way;                  /* how the end of the consumer's work is found */
    int32_t graph, gone;          /* 1: a graph may use the array again, 2: and it tells its end: gone */
} cai_dlpack_ordered;

/** cai_dlpack_export for a consumer that works on `stream`. The export makes `stream` wait for the array's
 *  pending work (cai_exchange_begin). The deleter gives the array back after the work that is then in
 *  `stream`. The consumer must call the deleter only when its work on the tensor is in `stream`, or `stream`
 *  waits for that work.
 *
 *  `stream` is 1, 2 or a handle, as cai_decode_stream_dlpack decodes it. Streams 1 and 2 are those of the
 *  current context. If that is not on the array's device, they are those of the device's primary context. If
 *  the consumer passed -1, pass 0. Then the export orders nothing.
 *
 *  A consumer may destroy its stream before the deleter runs. So the deleter never uses `stream`. It waits on
 *  the host only if the array's release does:
 *  - `stream` is the array's own stream. The array is given back at once, or after an event of that stream.
 *  - `stream` is 1, 2 or a blocking handle. An event in stream 1 comes after its work, also if the stream is
 *    destroyed. If the array has CAI_ORDERED_FREE, its stream waits for the event, and the array is given
 *    back at once. If not, the array waits for the event in the list of `pool`.
 *  - With CAI_DLPACK_STREAMS_LIVE the event is in `stream`, with CAI_DLPACK_NO_CAPTURES in its context.
 *  - Any other stream, and -1. No event can be recorded after work whose stream may be gone. The array is
 *    parked in `pool` (cai_event_pool.waiting). A later ordered export to the same stream (CUDA 12.0) or the
 *    end of the context gives it back. cai_keepalive_drain waits for the context on the host.
 *  - `stream` captured at the export. A graph may use the array again. The array stays until the graph, all
 *    that is made of the graph and their launches have ended (CUDA 11.3: a user object of the graph). Then it
 *    is given back as above. Without user objects it is parked until the context ends (CUDA 12.0).
 *  What a capture forbids is tried again by each poll and each begin that orders. While a blocking stream
 *  captures in a context, a drain does not wait for that context. A drain does not see a capture of a
 *  non-blocking stream, and ends such a capture. cai_event_pool.dlpack counts what is in the list, and
 *  cai_dlpack_limit limits it.
 *
 *  The deleter reports no errors, and may run on any thread. The array is given back in the relaxed capture
 *  mode, so that no capture of another thread ends. `pool` must outlive the tensor. `storage.done`
 *  is called when the array was given back, on the thread of that call. `flags` are those of
 *  cai_dlpack_export and the two promises. Ownership is as in cai_dlpack_export. After a failure nothing is
 *  owed. Errors: those of cai_dlpack_export and of cai_exchange_begin, CAI_ERR_CAPACITY (cai_dlpack_limit).
 *  The export has the thread rule of cai_exchange_begin. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_export_ordered(cai_array *array, cai_event_pool *pool,
                                                            uint64_t stream, uint32_t flags,
                                                            cai_dlpack_ordered *storage,
                                                            struct DLManagedTensor **out, cai_error *err);

/** cai_dlpack_export_ordered for the struct of DLPack 1.0 and later. `flags` are those of
 *  cai_dlpack_export_versioned and the two promises. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_export_ordered_versioned(cai_array *array, cai_event_pool *pool,
                                                                      uint64_t stream, uint32_t flags,
                                                                      cai_dlpack_ordered *storage,
                                                                      struct DLManagedTensorVersioned **out,
                                                                      cai_error *err);

/** Limits what ordered exports may have parked in `pool`: `arrays` and `bytes`, 0 for no limit. If there is
 *  more, the next ordered export polls the pool. If there is more still, the export fails with
 *  CAI_ERR_CAPACITY (BufferError in Python), and the array stays the caller's. Then call cai_keepalive_drain,
 *  which waits on the host. A deleter never fails, so tensors that are out may bring the count further above
 *  the limit.
 *  Exports that are never parked are not refused. A new pool has no limit. Call it before the first export.
 *  Errors: CAI_ERR_ARGUMENT. */
CAI_API CAI_MUST_CHECK cai_status cai_dlpack_limit(cai_event_pool *pool, int64_t arrays, int64_t bytes,
                                                   cai_error *err);

#ifdef __cplusplus
}
#endif
#endif /* CAI_PRIV_DLPACK_WITH_STREAM */

/* ============================================================ >>implementation
 *   >>types  >>importing  >>exporting  >>ordering */

#if defined(CAI_DLPACK_IMPLEMENTATION) && !defined(CAI_DLPACK_IMPLEMENTED)
#define CAI_DLPACK_IMPLEMENTED

#include <stdarg.h>
#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"
#if defined(CAI_PRIV_DLPACK_WITH_STREAM)
#define CAI_PRIV_WANT_GUARD
#include "cai_stream.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* this is C that is also C++: it has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL, for that reason */
#endif

enum { CAI_PRIV_DLPACK_BITS = CAI_DL_READ_ONLY | CAI_DL_IS_COPIED | CAI_DL_IS_PADDED };

CAI_PRIV_PRINTF(5, 6)
static cai_status cai_priv_dlpack_say(cai_error *err, cai_status status, int32_t entry, int32_t index,
                                      const char *format, ...)
{
    va_list values;
    if (!err) return CAI_PRIV_STATUS(status);
    va_start(values, format);
    status = cai_priv_error_values(err, status, 0, format, values);
    va_end(values);
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
enum { CAI_PRIV_DLPACK_TYPES = 18, CAI_PRIV_DLPACK_SIZES = 4 };

/* A code of DLPack, in their order, with the dtypes that both sides support. */
typedef struct cai_priv_dlpack_type {
    const char *name;
    cai_dtype sizes[CAI_PRIV_DLPACK_SIZES];
} cai_priv_dlpack_type;

#define CAI_PRIV_SIZE(code, alignment) {(code), (code) & 0xff, 0, CAI_UNIT_NONE, 0, (alignment)}
#define CAI_PRIV_ONE(code, alignment) {CAI_PRIV_SIZE(code, alignment)}
#define CAI_PRIV_NONE {{0, 0, 0, 0, 0, 0}}
static const cai_priv_dlpack_type cai_priv_dlpack_types[CAI_PRIV_DLPACK_TYPES] = {
    {"int", {CAI_PRIV_SIZE(CAI_INT8, 1), CAI_PRIV_SIZE(CAI_INT16, 2), CAI_PRIV_SIZE(CAI_INT32, 4),
             CAI_PRIV_SIZE(CAI_INT64, 8)}},
    {"uint", {CAI_PRIV_SIZE(CAI_UINT8, 1), CAI_PRIV_SIZE(CAI_UINT16, 2), CAI_PRIV_SIZE(CAI_UINT32, 4),
              CAI_PRIV_SIZE(CAI_UINT64, 8)}},
    {"float", {CAI_PRIV_SIZE(CAI_FLOAT16, 2), CAI_PRIV_SIZE(CAI_FLOAT32, 4), CAI_PRIV_SIZE(CAI_FLOAT64, 8)}},
    {"opaque handle", CAI_PRIV_NONE},
    {"bfloat", CAI_PRIV_ONE(CAI_BFLOAT16, 2)},
    {"complex", {CAI_PRIV_SIZE(CAI_COMPLEX32, 2), CAI_PRIV_SIZE(CAI_COMPLEX64, 4),
                 CAI_PRIV_SIZE(CAI_COMPLEX128, 8)}},
    {"bool", CAI_PRIV_ONE(CAI_BOOL, 1)},
    {"float8_e3m4", CAI_PRIV_ONE(CAI_FLOAT8_E3M4, 1)},
    {"float8_e4m3", CAI_PRIV_ONE(CAI_FLOAT8_E4M3, 1)},
    {"float8_e4m3b11fnuz", CAI_PRIV_ONE(CAI_FLOAT8_E4M3B11FNUZ, 1)},
    {"float8_e4m3fn", CAI_PRIV_ONE(CAI_FLOAT8_E4M3FN, 1)},
    {"float8_e4m3fnuz", CAI_PRIV_ONE(CAI_FLOAT8_E4M3FNUZ, 1)},
    {"float8_e5m2", CAI_PRIV_ONE(CAI_FLOAT8_E5M2, 1)},
    {"float8_e5m2fnuz", CAI_PRIV_ONE(CAI_FLOAT8_E5M2FNUZ, 1)},
    {"float8_e8m0fnu", CAI_PRIV_ONE(CAI_FLOAT8_E8M0FNU, 1)},
    {"float6_e2m3fn", CAI_PRIV_NONE}, {"float6_e3m2fn", CAI_PRIV_NONE}, {"float4_e2m1fn", CAI_PRIV_NONE}};

/* Values below 8 bits: DLPack's code, and the packed dtype. */
static const struct {
    uint8_t code, bits, values;
    int32_t packed;
} cai_priv_dlpack_narrow[] = {{0, 1, 8, CAI_INT1_X8},  {0, 2, 4, CAI_INT2_X4},  {0, 4, 2, CAI_INT4_X2},
                              {1, 1, 8, CAI_UINT1_X8}, {1, 2, 4, CAI_UINT2_X4}, {1, 4, 2, CAI_UINT4_X2},
                              {15, 6, 4, CAI_FLOAT6_E2M3FN_X4}, {16, 6, 4, CAI_FLOAT6_E3M2FN_X4},
                              {17, 4, 2, CAI_FLOAT4_E2M1FN_X2}};
enum { CAI_PRIV_DLPACK_NARROW = 9 };

/* The dtype with one value in each byte beside a packed one. */
#define CAI_PRIV_SINGLE(packed) (((packed) & 0xff00) | 1 | (((packed) & 0xff0000) - 0x100000))
#undef CAI_PRIV_SIZE
#undef CAI_PRIV_ONE
#undef CAI_PRIV_NONE

CAI_PRIV_COLD cai_status cai_priv_dlpack_reject_dtype(cai_dl_dtype in, cai_error *err)
{
    const int known = in.code < CAI_PRIV_DLPACK_TYPES;
    const char *why = "is not supported";
    if (in.lanes != 1) why = "must have 1 lane, or below 8 bits as many as fill whole bytes";
    else if (in.bits % 8) why = "is not a whole number of bytes";
    else if (known && cai_priv_dlpack_types[in.code].sizes[0].code) why = "has a size that is not supported";
    return cai_priv_dlpack_say(err, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, -1,
                               "dtype: code = %u (%s), bits = %u, lanes = %u %s", (unsigned)in.code,
                               known ? cai_priv_dlpack_types[in.code].name : "unknown", (unsigned)in.bits,
                               (unsigned)in.lanes, why);
}

/* Returns NULL for a dtype that is not supported. */
static inline const cai_dtype *cai_priv_dlpack_dtype(cai_dl_dtype in)
{
    const cai_dtype *dtype, *last;
    if (in.code >= CAI_PRIV_DLPACK_TYPES || in.lanes != 1 || !in.bits) return NULL;
    dtype = cai_priv_dlpack_types[in.code].sizes;
    last = dtype + CAI_PRIV_DLPACK_SIZES - 1;
    while (dtype->itemsize * 8 != in.bits && dtype != last) ++dtype;
    return dtype->itemsize * 8 == in.bits ? dtype : NULL;
}

/* Returns the row of a dtype below 8 bits, or -1. */
static int32_t cai_priv_dlpack_narrow_row(cai_dl_dtype in)
{
    int32_t row = CAI_PRIV_DLPACK_NARROW;
    while (--row >= 0) {
        if (in.code == cai_priv_dlpack_narrow[row].code && in.bits == cai_priv_dlpack_narrow[row].bits) break;
    }
    return row >= 0 && (in.lanes == 1 || in.lanes == cai_priv_dlpack_narrow[row].values) ? row : -1;
}

CAI_API cai_status cai_dlpack_dtype_from(cai_dl_dtype in, cai_dtype *out, cai_error *err)
{
    const cai_dtype *dtype = cai_priv_dlpack_dtype(in);
    const int32_t row = dtype ? -1 : cai_priv_dlpack_narrow_row(in);
    if (!out) return cai_priv_dlpack_null(err, "cai_dlpack_dtype_from", "out");
    if (row >= 0) return cai_dtype_of(cai_priv_dlpack_narrow[row].packed, out, err);
    if (!dtype) return cai_priv_dlpack_reject_dtype(in, err);
    *out = *dtype;
    return CAI_OK;
}

CAI_API int32_t cai_dlpack_is_padded(const cai_dtype *dtype)
{
    const int32_t format = dtype->code >> 16 & 0xff;
    return format >= 10 && format <= 15;
}

CAI_API cai_status cai_dlpack_dtype_to(const cai_dtype *in, cai_dl_dtype *out, cai_error *err)
{
    const char *why = "DLPack has no such dtype";
    int32_t code, kind, size;
    if (!in || !out) return cai_priv_dlpack_null(err, "cai_dlpack_dtype_to", in ? "out" : "in");
    for (code = 0; in->itemsize && code < CAI_PRIV_DLPACK_TYPES; ++code) {
        const cai_dtype *same = cai_priv_dlpack_types[code].sizes, *last = same + CAI_PRIV_DLPACK_SIZES - 1;
        if (same->code >> 8 != in->code >> 8) continue; /* another kind or format */
        while (same->itemsize != in->itemsize && same != last) ++same;
        if (same->code != in->code || same->itemsize != in->itemsize) break;
        out->code = (uint8_t)code;
        out->bits = (uint8_t)(in->itemsize * 8);
        out->lanes = 1;
        return CAI_OK;
    }
    for (code = 0; code < CAI_PRIV_DLPACK_NARROW; ++code) {
        const int32_t packed = cai_priv_dlpack_narrow[code].packed;
        if (in->code != packed && in->code != CAI_PRIV_SINGLE(packed)) continue;
        if (in->itemsize != (in->code & 0xff)) break;
        out->code = cai_priv_dlpack_narrow[code].code;
        out->bits = cai_priv_dlpack_narrow[code].bits;
        out->lanes = in->code == packed ? cai_priv_dlpack_narrow[code].values : 1;
        return CAI_OK;
    }
    kind = in->code >> 8 & 0xff;
    size = in->code & 0xff;
    if (in->code & CAI_SWAPPED(0)) why = "the bytes are swapped, but DLPack has no byte order";
    else if ((kind == 'f' && size > 8) || (kind == 'c' && size > 16))
        why = "DLPack has IEEE floats without padding, this dtype may be another";
    return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_TYPESTR, -1, "dtype: %s of %ld bytes: %s",
                               cai_dtype_name(in->code), (long)in->itemsize, why);
}

/* ---------------------------------------------------------------- >>importing */
CAI_PRIV_NOINLINE cai_status cai_priv_dlpack_judge_options(const cai_dlpack_options *options, cai_error *err)
{
    const uint32_t known = (uint32_t)CAI_LENIENT | (uint32_t)CAI_DLPACK_READ_ONLY;
    const int stream = options->sync == CAI_SYNC_STREAM;
    int32_t rule;
    if (options->flags & ~known)
        return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_NONE, -1,
                                   "options: flags = 0x%lx has unknown bits", (unsigned long)options->flags);
    if (!stream && options->sync != CAI_SYNC_UNKNOWN && options->sync != CAI_SYNC_NONE)
        return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_STREAM, -1,
                                   "options: sync = %ld is not UNKNOWN, NONE or STREAM (0..2)",
                                   (long)options->sync);
    if (stream == (options->stream != 0) && options->stream != UINT64_MAX) return CAI_OK;
    rule = options->stream == UINT64_MAX ? 74 : stream ? 71 : 0;
    return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_ARGUMENT, rule), CAI_ENTRY_STREAM, -1,
                               "options: stream = %lld does not fit sync = %ld",
                               (long long)options->stream, (long)options->sync);
}

CAI_PRIV_COLD cai_status cai_priv_dlpack_reject_device(int32_t type, int32_t id, cai_error *err)
{
    const int rocm = type == 10 || type == 11;
    if (type == CAI_DL_CUDA)
        return cai_priv_dlpack_say(err, CAI_ERR_MEMORY, CAI_ENTRY_DATA, -1, "device: id = %ld is negative",
                                   (long)id);
    return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, rocm ? 106 : 0), CAI_ENTRY_DATA, -1,
                               "device: type %ld%s is not CPU, CUDA, CUDAHost, CUDAManaged (1, 2, 3, 13)",
                               (long)type, rocm ? " (ROCm)" : "");
}

/* Stores the kind of memory and, for device memory, the device. */
static inline cai_status cai_priv_dlpack_place(const cai_dl_tensor *tensor, int32_t *memory, int32_t *device,
                                               cai_error *err)
{
    static const int8_t memories[14] = {/* by the type of the device; 0: not supported */
                                        0, CAI_MEMORY_HOST, CAI_MEMORY_DEVICE, CAI_MEMORY_PINNED, 0, 0, 0, 0,
                                        0, 0, 0, 0, 0, CAI_MEMORY_MANAGED};
    const int32_t id = tensor->device.device_id;
    uint32_t type = 0;
    memcpy(&type, &tensor->device.device_type, sizeof type); /* may be a number outside the enum */
    *memory = type < sizeof memories ? memories[type] : 0;
    if (!*memory || (*memory == CAI_MEMORY_DEVICE && id < 0))
        return cai_priv_dlpack_reject_device((int32_t)type, id, err);
    *device = *memory == CAI_MEMORY_DEVICE ? id : CAI_DEVICE_UNKNOWN;
    return CAI_OK;
}

static int cai_priv_dlpack_empty(const cai_dl_tensor *tensor)
{
    int32_t i;
    for (i = 0; i < tensor->ndim; ++i) if (!tensor->shape[i]) return 1;
    return 0;
}

/* Returns 1 if the strides are those of C order, which need no conversion. 0 also if it is empty. Where `run`
 * overflows, the array has too many elements, whatever its strides. */
static int cai_priv_dlpack_is_c(const cai_dl_tensor *tensor)
{
    uint64_t run = 1;
    int64_t axis = tensor->ndim;
    while (--axis >= 0) {
        if ((uint64_t)tensor->strides[axis] != run || tensor->shape[axis] < 1) return 0;
        run *= (uint64_t)tensor->shape[axis];
    }
    return 1;
}

/* Converts strides from elements to bytes. A stride that no element uses may be any number. */
static cai_status cai_priv_dlpack_bytes(const cai_dl_tensor *tensor, int64_t itemsize, int64_t *strides,
                                        cai_error *err)
{
    const int64_t most = INT64_MAX / itemsize, least = INT64_MIN / itemsize;
    const int empty = cai_priv_dlpack_empty(tensor);
    int32_t i;
    for (i = 0; i < tensor->ndim; ++i) {
        const int64_t stride = tensor->strides[i];
        const int fits = stride <= most && stride >= least;
        if (!fits && !empty && tensor->shape[i] > 1)
            return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_STRIDES, 27), CAI_ENTRY_STRIDES, i,
                                       "strides[%ld] = %lld elements of %ld bytes exceed 64 bits", (long)i,
                                       (long long)stride, (long)itemsize);
        strides[i] = fits ? stride * itemsize : 0;
    }
    return CAI_OK;
}

/* Finds the address. NULL stays NULL, for cai_array_init_dtype. An empty array's is not judged (R13). */
static cai_status cai_priv_dlpack_address(const cai_dl_tensor *tensor, uint64_t *out, cai_error *err)
{
    const uint64_t data = (uint64_t)(uintptr_t)tensor->data, offset = tensor->byte_offset;
    *out = data ? data + offset : 0;
    if (!data || offset <= (uint64_t)UINTPTR_MAX - data || cai_priv_dlpack_empty(tensor)) return CAI_OK;
    return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_DATA, 28), CAI_ENTRY_DATA, -1,
                               "data = 0x%llx and byte_offset = %llu exceed a pointer",
                               (unsigned long long)data, (unsigned long long)offset);
}

CAI_PRIV_NOINLINE cai_status cai_priv_dlpack_strided(const cai_dl_tensor *tensor, const cai_dtype *dtype,
                                                     uint64_t data, cai_array *out, cai_error *err)
{
    int64_t strides[CAI_MAX_NDIM];
    CAI_TRY(cai_priv_dlpack_bytes(tensor, dtype->itemsize, strides, err));
    return cai_array_init_dtype(out, dtype, tensor->ndim, tensor->shape, strides, data, err);
}

CAI_PRIV_COLD cai_status cai_priv_dlpack_reject_shape(const cai_dl_tensor *tensor, cai_error *err)
{
    if (tensor->ndim < 0 || tensor->ndim > CAI_MAX_NDIM)
        return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_SHAPE, 29), CAI_ENTRY_SHAPE, -1,
                                   "shape: ndim = %ld is not in 0..64", (long)tensor->ndim);
    return cai_priv_dlpack_say(err, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, -1, "shape is NULL, but ndim = %ld",
                               (long)tensor->ndim);
}

/* Returns the axis along which the values of an element lie: the last of stride 1, or one without neighbours,
 * or -1 for none. In C order the last above 1 has stride 1. */
static int32_t cai_priv_dlpack_packed_axis(const cai_dl_tensor *tensor)
{
    int32_t alone = -1;
    for (int32_t axis = tensor->ndim; axis-- > 0;) {
        if (tensor->shape[axis] > 1 && (!tensor->strides || tensor->strides[axis] == 1)) return axis;
        if (tensor->shape[axis] <= 1 && alone < 0) alone = axis;
    }
    return alone;
}

/* Converts the strides of packed values to bytes. Each row must begin at a whole element. */
static cai_status cai_priv_dlpack_packed_bytes(const cai_dl_tensor *tensor, int32_t packed, int64_t values,
                                               int64_t itemsize, int64_t *strides, cai_error *err)
{
    int64_t run = 1; /* the stride in C order */
    for (int32_t axis = tensor->ndim; axis-- > 0;) {
        const int64_t extent = tensor->shape[axis], stride = tensor->strides ? tensor->strides[axis] : run;
        if (axis != packed && extent > 1 && stride % values)
            return cai_priv_dlpack_say(err, CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, axis,
                                       "strides[%ld] = %lld values is no multiple of the %lld in an element",
                                       (long)axis, (long long)stride, (long long)values);
        strides[axis] = axis == packed ? itemsize : stride / values * itemsize;
        if (tensor->strides || extent < 2) continue;
        if (extent > INT64_MAX / run)
            return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_SHAPE, 18), CAI_ENTRY_SHAPE, axis,
                                       "shape[%ld] = %lld makes more than 9223372036854775807 values",
                                       (long)axis, (long long)extent);
        run *= extent;
    }
    return CAI_OK;
}

/* Describes a tensor of values below 8 bits, in one of the three forms of TYPES. */
CAI_PRIV_NOINLINE cai_status cai_priv_dlpack_describe_narrow(const cai_dl_tensor *tensor, int padded,
                                                             uint64_t data, cai_array *out, cai_error *err)
{
    const int32_t row = cai_priv_dlpack_narrow_row(tensor->dtype), packed = cai_priv_dlpack_narrow[row].packed;
    const int32_t axis = cai_priv_dlpack_packed_axis(tensor);
    int64_t strides[CAI_MAX_NDIM];
    cai_dtype dtype;
    CAI_TRY(cai_dtype_of(padded ? CAI_PRIV_SINGLE(packed) : packed, &dtype, err));
    if (padded || tensor->dtype.lanes > 1) {
        if (padded && tensor->dtype.lanes > 1) return cai_priv_dlpack_reject_dtype(tensor->dtype, err);
        if (tensor->strides) return cai_priv_dlpack_strided(tensor, &dtype, data, out, err);
        return cai_array_init_dtype(out, &dtype, tensor->ndim, tensor->shape, NULL, data, err);
    }
    if (axis < 0)
        return cai_priv_dlpack_say(err, CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, -1,
                                   "strides: no axis of stride 1 holds the %u values of an element",
                                   (unsigned)cai_priv_dlpack_narrow[row].values);
    CAI_TRY(cai_priv_dlpack_packed_bytes(tensor, axis, cai_priv_dlpack_narrow[row].values, dtype.itemsize,
                                         strides, err));
    return cai_array_init_packed(out, packed, tensor->ndim, tensor->shape, axis,
                                 tensor->strides ? strides : NULL, (void *)(uintptr_t)data, err);
}

/* Describes a tensor. The options have been judged. `flags` are those that the array gets, too. */
static inline cai_status cai_priv_dlpack_describe(const cai_dl_tensor *tensor,
                                                  const cai_dlpack_options *options, int padded,
                                                  uint32_t flags, cai_array *out, cai_error *err)
{
    const cai_dtype *dtype = cai_priv_dlpack_dtype(tensor->dtype);
    int32_t memory = CAI_MEMORY_UNKNOWN, device = CAI_DEVICE_UNKNOWN;
    uint64_t data = 0;
    CAI_TRY(cai_priv_dlpack_place(tensor, &memory, &device, err));
    if (!dtype && cai_priv_dlpack_narrow_row(tensor->dtype) < 0)
        return cai_priv_dlpack_reject_dtype(tensor->dtype, err);
    if (tensor->ndim < 0 || tensor->ndim > CAI_MAX_NDIM || (tensor->ndim && !tensor->shape))
        return cai_priv_dlpack_reject_shape(tensor, err);
    CAI_TRY(cai_priv_dlpack_address(tensor, &data, err));
    if (!dtype) CAI_TRY(cai_priv_dlpack_describe_narrow(tensor, padded, data, out, err));
    else if (!tensor->strides || cai_priv_dlpack_is_c(tensor))
        CAI_TRY(cai_array_init_dtype(out, dtype, tensor->ndim, tensor->shape, NULL, data, err));
    else
        CAI_TRY(cai_priv_dlpack_strided(tensor, dtype, data, out, err));
    if (tensor->strides) flags |= CAI_HAD_STRIDES;
    flags |= out->flags;
    if (options->flags & (uint32_t)CAI_DLPACK_READ_ONLY) flags &= ~(uint32_t)CAI_WRITABLE;
    out->flags = flags;
    out->memory = memory;
    out->device = device;
    out->sync = memory == CAI_MEMORY_HOST && !options->sync ? CAI_SYNC_NONE : options->sync;
    out->stream = options->stream;
    return CAI_OK;
}

CAI_API cai_status cai_dlpack_borrow(const cai_dl_tensor *tensor, const cai_dlpack_options *options,
                                     cai_array *out, cai_error *err)
{
    static const cai_dlpack_options none = {0, 0, 0};
    if (!tensor || !out) return cai_priv_dlpack_null(err, "cai_dlpack_borrow", tensor ? "out" : "tensor");
    if (options) CAI_TRY(cai_priv_dlpack_judge_options(options, err));
    return cai_priv_dlpack_describe(tensor, options ? options : &none, 0, 0, out, err);
}

static void cai_priv_dlpack_release(cai_array *self)
{
    struct DLManagedTensor *managed = (struct DLManagedTensor *)self->owner;
    self->release = NULL;
    ((cai_dl_managed *)managed)->deleter(managed);
}

CAI_API cai_status cai_dlpack_import(struct DLManagedTensor *managed, const cai_dlpack_options *options,
                                     cai_array *out, cai_error *err)
{
    const cai_dl_managed *in = (const cai_dl_managed *)managed;
    if (!managed) return cai_priv_dlpack_null(err, "cai_dlpack_import", "managed");
    CAI_TRY(cai_dlpack_borrow(&in->dl_tensor, options, out, err));
    out->flags |= CAI_NO_BACK_EDGE;
    if (in->deleter) cai_array_own(out, cai_priv_dlpack_release, managed);
    return CAI_OK;
}

static void cai_priv_dlpack_release_versioned(cai_array *self)
{
    struct DLManagedTensorVersioned *managed = (struct DLManagedTensorVersioned *)self->owner;
    self->release = NULL;
    ((cai_dl_managed_versioned *)managed)->deleter(managed);
}

/* Calls the deleter, as DLPack demands. */
CAI_PRIV_COLD cai_status cai_priv_dlpack_reject_version(struct DLManagedTensorVersioned *managed,
                                                        cai_error *err)
{
    const cai_dl_managed_versioned *in = (const cai_dl_managed_versioned *)managed;
    const uint32_t major = in->version.major, minor = in->version.minor;
    if (in->deleter) in->deleter(managed);
    return cai_priv_dlpack_say(err, CAI_ERR_VERSION, CAI_ENTRY_VERSION, -1,
                               "version %lu.%lu is not 1.x: the deleter was called", (unsigned long)major,
                               (unsigned long)minor);
}

/* Returns 1 if the flags and strides are as the version defines them. */
static inline int cai_priv_dlpack_is_strict(const cai_dl_managed_versioned *managed)
{
    return !(managed->flags & ~(uint64_t)CAI_PRIV_DLPACK_BITS) &&
           (managed->version.minor < 2 || managed->dl_tensor.strides || managed->dl_tensor.ndim < 1);
}

CAI_PRIV_COLD cai_status cai_priv_dlpack_reject_lax(const cai_dl_managed_versioned *managed,
                                                    cai_error *err)
{
    const uint64_t more = managed->flags & ~(uint64_t)CAI_PRIV_DLPACK_BITS;
    if (more)
        return cai_priv_dlpack_say(err, CAI_ERR_ABI, CAI_ENTRY_NONE, -1,
                                   "flags = 0x%llx: DLPack 1.3 lacks bits 0x%llx (accepted by CAI_LENIENT)",
                                   (unsigned long long)managed->flags, (unsigned long long)more);
    return cai_priv_dlpack_say(err, CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, -1,
                               "strides is NULL, but ndim = %ld and version 1.%lu (accepted by CAI_LENIENT)",
                               (long)managed->dl_tensor.ndim, (unsigned long)managed->version.minor);
}

/* The parts are in one body, because calls between them are a tenth of an import from Python. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((flatten))
#endif
CAI_API cai_status cai_dlpack_import_versioned(struct DLManagedTensorVersioned *managed,
                                               const cai_dlpack_options *options, cai_array *out,
                                               cai_error *err)
{
    const cai_dl_managed_versioned *in = (const cai_dl_managed_versioned *)managed;
    cai_dlpack_options how = {0, 0, 0};
    int padded;
    if (!managed || !out)
        return cai_priv_dlpack_null(err, "cai_dlpack_import_versioned", managed ? "out" : "managed");
    if (in->version.major != 1) return cai_priv_dlpack_reject_version(managed, err);
    if (options) CAI_TRY(cai_priv_dlpack_judge_options(options, err));
    if (options) how = *options;
    if (!(how.flags & CAI_LENIENT) && !cai_priv_dlpack_is_strict(in))
        return cai_priv_dlpack_reject_lax(in, err);
    if (in->flags & CAI_DL_READ_ONLY) how.flags |= (uint32_t)CAI_DLPACK_READ_ONLY;
    padded = in->flags & CAI_DL_IS_PADDED ? 1 : 0;
    CAI_TRY(cai_priv_dlpack_describe(&in->dl_tensor, &how, padded, CAI_NO_BACK_EDGE, out, err));
    if (in->deleter) cai_array_own(out, cai_priv_dlpack_release_versioned, managed);
    return CAI_OK;
}

/* ---------------------------------------------------------------- >>exporting */
CAI_API cai_status cai_dlpack_device(const cai_array *array, cai_dl_device *out, cai_error *err)
{
    int32_t type;
    CAI_TRY(cai_array_check(array, err));
    if (!out) return cai_priv_dlpack_null(err, "cai_dlpack_device", "out");
    if (array->backend != CAI_BACKEND_CUDA && array->memory != CAI_MEMORY_HOST)
        return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_EXPORT, 106), CAI_ENTRY_DATA, -1,
                                   "device: backend = %ld is not CUDA (0): in DLPack its streams have other "
                                   "numbers",
                                   (long)array->backend);
    if (array->memory == CAI_MEMORY_HOST) type = CAI_DL_CPU;
    else if (array->memory == CAI_MEMORY_PINNED) type = CAI_DL_CUDA_HOST;
    else if (array->memory == CAI_MEMORY_MANAGED) type = CAI_DL_CUDA_MANAGED;
    else if (array->memory == CAI_MEMORY_DEVICE) type = CAI_DL_CUDA;
    else
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1,
                                   "memory = %ld is not known: cai_locate finds it", (long)array->memory);
    if (type == CAI_DL_CUDA && array->device < 0)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_DATA, -1,
                                   "device = %ld is not known: cai_locate finds it", (long)array->device);
    out->device_type = (cai_dl_device_type)type;
    out->device_id = type == CAI_DL_CUDA ? array->device : 0;
    return CAI_OK;
}

/* Refuses an array that the structs cannot describe. */
static cai_status cai_priv_dlpack_sayable(const cai_array *array, uint32_t flags, cai_error *err)
{
    int32_t i;
    if (array->mask)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_MASK, -1, "mask: DLPack has no masks");
    if (array->size && array->sync != CAI_SYNC_NONE && !(flags & (uint32_t)CAI_DLPACK_ORDERED))
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_STREAM, -1,
                                   "stream: sync = %ld is not NONE (1): order it and pass CAI_DLPACK_ORDERED",
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

/* Judges whether one lane can have the values of a packed array (CAI_DLPACK_ONE_LANE). */
static cai_status cai_priv_dlpack_judge_values(const cai_array *array, cai_error *err)
{
    const int32_t packed = array->packed_axis;
    const int64_t values = cai_dtype_values(&array->dtype);
    if (packed < 0)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_SHAPE, -1,
                                   "shape: the values of an element lie along no axis, as one lane needs");
    if (array->shape[packed] > 1 && array->strides[packed] != array->dtype.itemsize)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_STRIDES, packed,
                                   "strides[%ld] = %lld bytes leaves gaps between elements of a packed axis",
                                   (long)packed, (long long)array->strides[packed]);
    for (int32_t i = 0; i < array->ndim; ++i) {
        const int64_t stride = array->strides[i] / array->dtype.itemsize;
        if (stride > INT64_MAX / values || stride < INT64_MIN / values)
            return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_STRIDES, i,
                                       "strides[%ld] = %lld bytes exceeds 64 bits in values", (long)i,
                                       (long long)array->strides[i]);
    }
    return CAI_OK;
}

/* Returns the axis of the lanes: the last of stride 1, else the last, as cai_array_init finds it. */
static int32_t cai_priv_dlpack_lanes_axis(const cai_array *array)
{
    for (int32_t axis = array->ndim; axis-- > 0;) {
        if (array->strides[axis] / array->dtype.itemsize == 1) return axis;
    }
    return array->ndim - 1;
}

/* Judges an array of values below 8 bits, and stores the lanes of its dtype. */
static cai_status cai_priv_dlpack_judge_narrow(const cai_array *array, uint32_t flags, cai_dl_dtype *dtype,
                                               cai_error *err)
{
    const int32_t packed = array->packed_axis;
    int32_t lanes;
    if (cai_dlpack_is_padded(&array->dtype) && !(flags & (uint32_t)CAI_DLPACK_PADDED))
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_TYPESTR, -1,
                                   "dtype: %s has a byte for each value: only the versioned struct says so",
                                   cai_dtype_name(array->dtype.code));
    if (flags & (uint32_t)CAI_DLPACK_ONE_LANE && dtype->lanes > 1) {
        dtype->lanes = 1;
        return cai_priv_dlpack_judge_values(array, err);
    }
    if (packed < 0) return CAI_OK;
    lanes = cai_priv_dlpack_lanes_axis(array);
    if (packed != lanes)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_STRIDES, packed,
                                   "strides: the values of an element lie along axis %ld, a reader of lanes "
                                   "takes axis %ld (CAI_DLPACK_ONE_LANE)", (long)packed, (long)lanes);
    if (array->packed_extent % dtype->lanes)
        return cai_priv_dlpack_say(err, CAI_ERR_EXPORT, CAI_ENTRY_SHAPE, packed,
                                   "shape[%ld] = %lld values do not fill elements of %u (CAI_DLPACK_ONE_LANE)",
                                   (long)packed, (long long)array->packed_extent, (unsigned)dtype->lanes);
    return CAI_OK;
}

/* Judges the whole array, then writes. The exported functions have checked `flags`. */
static cai_status cai_priv_dlpack_write(const cai_array *array, uint32_t flags, int64_t *shape_and_strides,
                                        cai_dl_tensor *out, cai_error *err)
{
    cai_dl_dtype dtype = {0, 0, 0};
    cai_dl_device device;
    int64_t values = 1; /* in an element of the array for each of the tensor: more in one lane */
    int32_t i;
    CAI_TRY(cai_dlpack_device(array, &device, err));
    CAI_TRY(cai_dlpack_dtype_to(&array->dtype, &dtype, err));
    CAI_TRY(cai_priv_dlpack_sayable(array, flags, err));
    if (array->dtype.bits) {
        CAI_TRY(cai_priv_dlpack_judge_narrow(array, flags, &dtype, err));
        values = cai_dtype_values(&array->dtype) / dtype.lanes;
    }
    for (i = 0; i < array->ndim; ++i) {
        const int packed = values > 1 && i == array->packed_axis;
        shape_and_strides[i] = packed ? array->packed_extent : array->shape[i];
        shape_and_strides[array->ndim + i] = packed ? 1 : array->strides[i] / array->dtype.itemsize * values;
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

enum {
    CAI_PRIV_DLPACK_LEND =
        CAI_DLPACK_DROP_READ_ONLY | CAI_DLPACK_ORDERED | CAI_DLPACK_ONE_LANE | CAI_DLPACK_PADDED,
    CAI_PRIV_DLPACK_VERSIONED = CAI_DLPACK_ORDERED | CAI_DLPACK_COPIED | CAI_DLPACK_ONE_LANE
};

CAI_API cai_status cai_dlpack_lend(const cai_array *array, uint32_t flags, int64_t *shape_and_strides,
                                   cai_dl_tensor *out, cai_error *err)
{
    CAI_TRY(cai_array_check(array, err));
    if (!out || (array->ndim && !shape_and_strides))
        return cai_priv_dlpack_null(err, "cai_dlpack_lend", out ? "shape_and_strides" : "out");
    CAI_TRY(cai_priv_dlpack_flags(flags, CAI_PRIV_DLPACK_LEND, err));
    if (!(array->flags & CAI_WRITABLE) && !(flags & (uint32_t)CAI_DLPACK_DROP_READ_ONLY))
        return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_EXPORT, 6), CAI_ENTRY_DATA, -1,
                                   "data is read-only, but a tensor without version has no flag for that");
    return cai_priv_dlpack_write(array, flags, shape_and_strides, out, err);
}

static void cai_priv_dlpack_done(void *context)
{
    cai_dlpack_storage *storage = (cai_dlpack_storage *)context;
    if (storage->release && !storage->release(storage)) return; /* it does the rest later */
    cai_array_release(&storage->array);
    if (storage->done) storage->done(storage);
}

static void cai_priv_dlpack_delete(struct DLManagedTensor *self)
{
    if (self) cai_priv_dlpack_done(((cai_dl_managed *)self)->manager_ctx);
}

CAI_API cai_status cai_dlpack_export(cai_array *array, uint32_t flags, cai_dlpack_storage *storage,
                                     struct DLManagedTensor **out, cai_error *err)
{
    if (!storage || !out) return cai_priv_dlpack_null(err, "cai_dlpack_export", storage ? "out" : "storage");
    CAI_TRY(cai_priv_dlpack_flags(flags, CAI_PRIV_DLPACK_LEND & ~CAI_DLPACK_PADDED, err));
    CAI_TRY(cai_dlpack_lend(array, flags, storage->shape_and_strides, &storage->managed.dl_tensor, err));
    storage->managed.manager_ctx = storage;
    storage->managed.deleter = cai_priv_dlpack_delete;
    storage->release = NULL;
    cai_array_move(&storage->array, array);
    *out = (struct DLManagedTensor *)(void *)&storage->managed;
    return CAI_OK;
}

static void cai_priv_dlpack_delete_versioned(struct DLManagedTensorVersioned *self)
{
    if (self) cai_priv_dlpack_done(((cai_dl_managed_versioned *)self)->manager_ctx);
}

CAI_API cai_status cai_dlpack_export_versioned(cai_array *array, uint32_t flags, cai_dlpack_storage *storage,
                                               struct DLManagedTensorVersioned **out, cai_error *err)
{
    cai_dl_managed_versioned *made;
    if (!storage || !out)
        return cai_priv_dlpack_null(err, "cai_dlpack_export_versioned", storage ? "out" : "storage");
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_dlpack_flags(flags, CAI_PRIV_DLPACK_VERSIONED, err));
    made = &storage->versioned;
    CAI_TRY(cai_priv_dlpack_write(array, flags | (uint32_t)CAI_DLPACK_PADDED, storage->shape_and_strides,
                                  &made->dl_tensor, err));
    made->version.major = CAI_DL_MAJOR;
    made->version.minor = CAI_DL_MINOR;
    made->manager_ctx = storage;
    made->deleter = cai_priv_dlpack_delete_versioned;
    made->flags = (array->flags & CAI_WRITABLE ? 0u : (uint32_t)CAI_DL_READ_ONLY) |
                  (flags & (uint32_t)CAI_DLPACK_COPIED ? (uint32_t)CAI_DL_IS_COPIED : 0u) |
                  (cai_dlpack_is_padded(&array->dtype) ? (uint32_t)CAI_DL_IS_PADDED : 0u);
    storage->release = NULL;
    cai_array_move(&storage->array, array);
    *out = (struct DLManagedTensorVersioned *)(void *)made;
    return CAI_OK;
}

#if defined(CAI_PRIV_DLPACK_WITH_STREAM)
/* ----------------------------------------------------------------- >>ordering */
/* Lets the host wait for the context of the memory, as for unknown pending work. */
static cai_status cai_priv_dlpack_wait_memory(cai_event_pool *pool, const cai_array *array)
{
    const cai_exchange_options kept = cai_priv_keep_mode();
    cai_array view;
    cai_array *io[1];
    cai_exchange ex;
    cai_error own;
    cai_status status;
    io[0] = &view;
    cai_array_borrow(&view, array);
    view.sync = CAI_SYNC_UNKNOWN;
    own.native = 0;
    status = cai_exchange_begin_with(&ex, pool, io, 1, CAI_STREAM_LEGACY, &kept, &own);
    if (!status) return cai_exchange_end(&ex, CAI_OK, NULL);
    return cai_priv_is_dead(own.native) ? CAI_OK : status;
}

/* The ways to find the end of the consumer's work. */
enum {
    CAI_PRIV_DLPACK_BY_OWN = 1, /* it is in the array's own stream, which lives as long as the array (R81) */
    CAI_PRIV_DLPACK_BY_LEGACY,  /* by a record in stream 1, which covers a destroyed blocking stream, too */
    CAI_PRIV_DLPACK_BY_STREAM,  /* by a record in the stream, which lives */
    CAI_PRIV_DLPACK_BY_CONTEXT, /* by a record in the context, which ends each capture there */
    CAI_PRIV_DLPACK_BY_WAIT     /* by a wait of the host alone */
};

/* Records an event after the consumer's work, in the context of that work. */
static int32_t cai_priv_dlpack_record(cai_dlpack_ordered *at)
{
    const cai_cuda *cuda = at->pool->cuda;
    const int32_t way = at->way;
    const uint64_t stream = way == CAI_PRIV_DLPACK_BY_OWN ? at->storage.array.stream
                            : way == CAI_PRIV_DLPACK_BY_STREAM ? at->stream : (uint64_t)CAI_STREAM_LEGACY;
    int32_t error = cai_priv_captures(cuda, stream);
    if (!error) error = cuda->event_create(cuda->self, &at->event);
    if (error) at->event = 0;
    if (error) return error;
    error = way == CAI_PRIV_DLPACK_BY_CONTEXT ? cuda->context_record(cuda->self, at->context, at->event)
                                              : cuda->event_record(cuda->self, at->event, stream);
    if (!error) return 0;
    (void)cuda->event_destroy(cuda->self, at->event);
    at->event = 0;
    return error;
}

/* Returns whether the owner frees in the order of a stream that may be used. */
static int cai_priv_dlpack_frees_in_order(const cai_array *array)
{
    if (!(array->flags & CAI_ORDERED_FREE) || array->flags & CAI_NO_BACK_EDGE) return 0;
    return (array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT) &&
           cai_priv_is_handle(array->stream);
}

/* Returns whether a graph may use the array again. */
static int cai_priv_dlpack_in_graph(cai_dlpack_ordered *at)
{
    int in_graph;
    if (!at->graph) return 0;
    cai_priv_guard_take(&at->pool->guard);
    in_graph = !at->gone;
    cai_priv_guard_give(&at->pool->guard);
    return in_graph;
}

/* Marks the end of the graph, for a later call. As destructor of a user object it must not call CUDA. */
static void cai_priv_dlpack_graph_ends(void *user)
{
    cai_dlpack_ordered *at = (cai_dlpack_ordered *)user;
    cai_event_pool *pool = at->pool;
    cai_priv_guard_take(&pool->guard);
    at->gone = 1;
    cai_priv_guard_give(&pool->guard);
}

/* Asks the graph to tell its end. The graph then uses the storage, so no export may fail after this. */
static void cai_priv_dlpack_ask_graph(cai_dlpack_ordered *at)
{
    const cai_cuda *cuda = at->pool->cuda;
    if (!at->graph || !cuda->capture_retain) return;
    at->graph = 2;
    if (cuda->capture_retain(cuda->self, at->stream, cai_priv_dlpack_graph_ends, at)) at->graph = 1;
}

/* Returns 0 if the array can be given back at once, in the order of its own stream. */
static int cai_priv_dlpack_may_park(cai_dlpack_ordered *at)
{
    if (cai_priv_dlpack_in_graph(at) || at->way != CAI_PRIV_DLPACK_BY_OWN) return 1;
    return !cai_priv_dlpack_frees_in_order(&at->storage.array);
}

/* Makes the array's stream wait for the event. */
static int cai_priv_dlpack_pass_on(const cai_dlpack_ordered *at)
{
    const cai_cuda *cuda = at->pool->cuda;
    const cai_array *array = &at->storage.array;
    if (!cai_priv_dlpack_frees_in_order(array) || cai_priv_captures(cuda, array->stream)) return 0;
    return !cuda->stream_wait_event(cuda->self, array->stream, at->event);
}

/* Lets the host wait for the consumer's context, or for all contexts (-1), unless a stream captures. */
static int32_t cai_priv_dlpack_wait(const cai_dlpack_ordered *at)
{
    const cai_cuda *cuda = at->pool->cuda;
    int32_t error = 0;
    if (!at->context) return cai_priv_dlpack_wait_memory(at->pool, &at->storage.array) ? 600 : 0;
    if (!(cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS))
        error = cai_priv_captures(cuda, CAI_STREAM_LEGACY);
    return error ? error : cuda->context_synchronize(cuda->self);
}

/* Returns 0 if the array can be given back, 600 if not yet, or CUDA's error. `wait`: the host may wait. */
static int32_t cai_priv_dlpack_look(cai_dlpack_ordered *at, int wait)
{
    const cai_cuda *cuda = at->pool->cuda;
    int32_t error;
    if (at->graph == 1) {
        error = cai_priv_captures(cuda, CAI_STREAM_LEGACY); /* it tells a broken device, too */
        return cai_priv_is_dead(error) ? error : 600;
    }
    if (at->way == CAI_PRIV_DLPACK_BY_WAIT) return wait ? cai_priv_dlpack_wait(at) : 600;
    if (!at->event) {
        error = cai_priv_dlpack_record(at);
        if (error || cai_priv_dlpack_pass_on(at)) return error;
    }
    return wait ? cuda->event_synchronize(cuda->self, at->event) : cuda->event_query(cuda->self, at->event);
}

/* Does the same in the context of the consumer's work. */
static int32_t cai_priv_dlpack_look_there(cai_dlpack_ordered *at, int wait)
{
    const cai_cuda *cuda = at->pool->cuda;
    uint64_t current = at->context;
    int32_t error = 0;
    if (at->context) error = cuda->context_current(cuda->self, &current);
    if (error) return error;
    if (current == at->context) return cai_priv_dlpack_look(at, wait);
    error = cai_priv_context_enter(cuda, at->context);
    if (error) return error;
    error = cai_priv_dlpack_look(at, wait);
    (void)cai_priv_context_leave(cuda, at->context);
    return error;
}

/* Gives an array back in the relaxed mode. A failure to relax does not keep it. */
static void cai_priv_dlpack_let_go(const cai_cuda *cuda, cai_array *array)
{
    int32_t mode;
    const int32_t kept = cai_priv_mode_relax(cuda, &mode);
    cai_array_release(array);
    if (!kept) (void)cai_priv_mode_restore(cuda, mode, 0);
}

/* Gives the array back if possible, or if no work of the context continues. Returns whether it did. */
static int cai_priv_dlpack_settle(cai_dlpack_ordered *at, int wait)
{
    const cai_cuda *cuda = at->pool->cuda;
    cai_array *array = &at->storage.array;
    int32_t mode, error = 0;
    if (at->graph == 2 && cai_priv_dlpack_in_graph(at)) return 0;
    if (cai_priv_dlpack_may_park(at)) error = 709;
    if (error && cai_priv_context_lives(cuda, at->context, at->context_id)) {
        if (at->graph == 1 && !cuda->context_id) return 0; /* the context may be gone */
        error = cai_priv_mode_relax(cuda, &mode);
        if (!error) error = cai_priv_mode_restore(cuda, mode, cai_priv_dlpack_look_there(at, wait));
    }
    if (error && !cai_priv_is_dead(error)) return 0;
    if (at->event && error != 709) (void)cuda->event_destroy(cuda->self, at->event);
    if (array->flags & CAI_OWN_EVENT) {
        const cai_status dropped = cai_stream_drop_event(array, at->pool, NULL);
        (void)dropped; /* if that failed, the array goes anyway */
    }
    cai_priv_dlpack_let_go(cuda, array);
    return 1;
}

/* Returns the storage that a node of the list is a part of. */
static cai_dlpack_ordered *cai_priv_dlpack_of(cai_priv_parked *node)
{
    return (cai_dlpack_ordered *)(void *)((char *)node - offsetof(cai_dlpack_ordered, parked));
}

/* Counts an array that is parked (1), or that is parked no more (-1). */
static void cai_priv_dlpack_count(cai_event_pool *pool, int64_t nbytes, int64_t sign)
{
    cai_pool_parked *parked = &pool->dlpack;
    cai_priv_guard_take(&pool->guard);
    parked->arrays += sign;
    parked->bytes += sign * nbytes;
    if (parked->peak_arrays < parked->arrays) parked->peak_arrays = parked->arrays;
    if (parked->peak_bytes < parked->bytes) parked->peak_bytes = parked->bytes;
    cai_priv_guard_give(&pool->guard);
}

static int cai_priv_dlpack_is_above(cai_event_pool *pool)
{
    const cai_pool_parked *parked = &pool->dlpack;
    int above;
    cai_priv_guard_take(&pool->guard);
    above = (parked->limit_arrays && parked->arrays > parked->limit_arrays) ||
            (parked->limit_bytes && parked->bytes > parked->limit_bytes);
    cai_priv_guard_give(&pool->guard);
    return above;
}

/* Fails if too much is parked, after a poll of the pool. */
static cai_status cai_priv_dlpack_check_limit(cai_event_pool *pool, cai_error *err)
{
    if (!cai_priv_dlpack_is_above(pool)) return CAI_OK;
    (void)!cai_keepalive_poll(pool, NULL, NULL);
    if (!cai_priv_dlpack_is_above(pool)) return CAI_OK;
    return cai_priv_dlpack_say(err, CAI_ERR_CAPACITY, CAI_ENTRY_NONE, -1,
                               "exported arrays are parked above the limit of cai_dlpack_limit: call "
                               "cai_keepalive_drain");
}

static int cai_priv_dlpack_again(cai_priv_parked *node, int wait)
{
    cai_dlpack_ordered *at = cai_priv_dlpack_of(node);
    const int64_t nbytes = at->storage.array.nbytes;
    if (!cai_priv_dlpack_settle(at, wait)) return 0;
    cai_priv_dlpack_count(at->pool, nbytes, -1);
    if (at->storage.done) at->storage.done(&at->storage);
    return 1;
}

/* Gives the array back or parks it, for the deleter. */
static int cai_priv_dlpack_finish(cai_dlpack_storage *storage)
{
    cai_dlpack_ordered *at = (cai_dlpack_ordered *)(void *)storage;
    if (cai_priv_dlpack_settle(at, 0)) return 1;
    cai_priv_dlpack_count(at->pool, storage->array.nbytes, 1); /* another thread may end it at once */
    cai_priv_park(at->pool, &at->parked);
    return 0;
}

/* The same for an array that no stream works on. */
static int cai_priv_dlpack_give_back(cai_dlpack_storage *storage)
{
    const cai_event_pool *pool = ((cai_dlpack_ordered *)(void *)storage)->pool;
    if (pool->cuda) cai_priv_dlpack_let_go(pool->cuda, &storage->array);
    return 1; /* the rest is done at once */
}

/* Takes an array out of the list that waits for a stream with this id. */
static cai_priv_parked *cai_priv_dlpack_take(cai_event_pool *pool, uint64_t stream_id)
{
    cai_priv_parked **link, *found = NULL;
    cai_priv_guard_take(&pool->guard);
    for (link = &pool->parked; *link && !found; link = found ? link : &(*link)->next) {
        if ((*link)->again != cai_priv_dlpack_again) continue;
        if (cai_priv_dlpack_of(*link)->way == CAI_PRIV_DLPACK_BY_WAIT &&
            cai_priv_dlpack_of(*link)->stream_id == stream_id)
            found = *link;
    }
    if (found) {
        *link = found->next;
        cai_priv_guarded_put(&pool->waiting, pool->waiting - 1);
    }
    cai_priv_guard_give(&pool->guard);
    return found;
}

/* Arrays that wait for earlier work of this stream get an event in it. The stream is an argument now, so it
 * exists. */
static void cai_priv_dlpack_settle_others(cai_dlpack_ordered *now)
{
    const cai_cuda *cuda = now->pool->cuda;
    cai_priv_parked *node;
    if (!cai_priv_guarded_look(&now->pool->waiting) || !cai_priv_is_handle(now->stream)) return;
    if (cai_priv_captures(cuda, now->stream)) return; /* the query of the id would end the capture */
    if (!now->stream_id && (!cuda->stream_id || cuda->stream_id(cuda->self, now->stream, &now->stream_id)))
        return;
    while ((node = cai_priv_dlpack_take(now->pool, now->stream_id)) != NULL) {
        cai_dlpack_ordered *at = cai_priv_dlpack_of(node);
        int recorded;
        at->way = CAI_PRIV_DLPACK_BY_STREAM;
        at->stream = now->stream;
        if (cai_priv_dlpack_again(node, 0)) continue;
        recorded = at->event != 0;
        if (!recorded) at->way = CAI_PRIV_DLPACK_BY_WAIT;
        cai_priv_park(now->pool, node); /* another thread may end it from here on */
        if (!recorded) return;          /* it would be found again */
    }
}

/* DLPack's 1 and 2 are streams of the tensor's device. Finds the context to push for them, or 0. */
static cai_status cai_priv_dlpack_find_device(const cai_cuda *cuda, const cai_array *array, uint64_t stream,
                                              uint64_t *context, cai_error *err)
{
    int32_t device = CAI_DEVICE_UNKNOWN, error;
    uint64_t current = 0;
    *context = 0;
    if (!stream || stream > CAI_STREAM_PER_THREAD || array->memory != CAI_MEMORY_DEVICE) return CAI_OK;
    error = cuda->context_device(cuda->self, &device);
    if (!error && device == array->device) return CAI_OK;
    CAI_TRY(cai_cuda_status(cuda->device_context(cuda->self, array->device, context), "device_context", err));
    if (error && !cuda->context_current(cuda->self, &current) && current == *context)
        *context = 0; /* context_device returned an earlier error: the context is current */
    return CAI_OK;
}

/* Finds the context of the consumer's stream, and its id. */
static cai_status cai_priv_dlpack_ask_context(cai_dlpack_ordered *at, cai_error *err)
{
    const cai_cuda *cuda = at->pool->cuda;
    int32_t error = 0;
    if (!at->context && cai_priv_is_handle(at->stream))
        error = cuda->stream_context(cuda->self, at->stream, &at->context);
    if (error) return cai_cuda_status(error, "stream_context", err);
    if (at->context && cuda->context_id)
        error = cuda->context_id(cuda->self, at->context, &at->context_id);
    return cai_cuda_status(error, "context_id", err);
}

/* Chooses the way while the stream is an argument. The query of its capture comes first, because queries of
 * its flags and of its id would end the capture. A graph may use the array again, whatever the stream is. */
static cai_status cai_priv_dlpack_choose(cai_dlpack_ordered *at, cai_error *err)
{
    const cai_cuda *cuda = at->pool->cuda;
    const cai_array *array = &at->storage.array;
    const int handle = cai_priv_is_handle(at->stream);
    const int plain = cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS;
    int own;
    uint32_t non_blocking = 1;
    at->graph = at->stream != (uint64_t)CAI_STREAM_LEGACY && cai_priv_captures(cuda, at->stream);
    at->way = CAI_PRIV_DLPACK_BY_OWN;
    own = handle && array->sync == CAI_SYNC_STREAM && array->stream == at->stream;
    if (own && !cai_priv_dlpack_may_park(at)) return CAI_OK;
    CAI_TRY(cai_priv_dlpack_ask_context(at, err));
    if (own) return CAI_OK;
    at->way = CAI_PRIV_DLPACK_BY_STREAM;
    if (handle && at->flags & (uint32_t)CAI_DLPACK_STREAMS_LIVE) return CAI_OK;
    at->way = CAI_PRIV_DLPACK_BY_LEGACY;
    if (!handle) return CAI_OK;
    if (!at->graph && cuda->stream_flags && cuda->stream_flags(cuda->self, at->stream, &non_blocking))
        non_blocking = 1;
    if (!non_blocking && !plain) return CAI_OK;
    at->way = CAI_PRIV_DLPACK_BY_CONTEXT;
    if (at->flags & (uint32_t)CAI_DLPACK_NO_CAPTURES && cuda->context_record && at->context) return CAI_OK;
    at->way = CAI_PRIV_DLPACK_BY_WAIT;
    if (at->graph || (cuda->stream_id && cuda->stream_id(cuda->self, at->stream, &at->stream_id)))
        at->stream_id = 0;
    return CAI_OK;
}

/* Makes the consumer's stream wait for the array's pending work, then chooses the way back. */
static cai_status cai_priv_dlpack_begin_here(cai_dlpack_ordered *at, cai_error *err)
{
    cai_exchange ex;
    cai_array *array = &at->storage.array;
    const uint64_t stream = at->stream ? at->stream : (uint64_t)CAI_STREAM_LEGACY;
    cai_exchange_options one_way = cai_priv_keep_mode();
    one_way.flags |= (uint32_t)CAI_PRIV_ONE_WAY;
    CAI_TRY(cai_exchange_begin_with(&ex, at->pool, &array, at->stream ? 1 : 0, stream, &one_way, err));
    at->context = at->stream ? ex.context : 0;
    CAI_TRY(cai_exchange_end(&ex, CAI_OK, err));
    at->way = CAI_PRIV_DLPACK_BY_WAIT;
    if (at->stream) CAI_TRY(cai_priv_dlpack_choose(at, err));
    cai_priv_dlpack_settle_others(at);
    if (cai_priv_dlpack_may_park(at)) CAI_TRY(cai_priv_dlpack_check_limit(at->pool, err));
    cai_priv_dlpack_ask_graph(at);
    return CAI_OK;
}

/* Begins the export of the array in the storage. */
static cai_status cai_priv_dlpack_begin(cai_dlpack_ordered *at, cai_event_pool *pool, uint64_t stream,
                                        uint32_t flags, cai_error *err)
{
    const cai_array *array = &at->storage.array;
    const cai_cuda *cuda = pool->cuda;
    cai_status status;
    uint64_t context = 0;
    memset(&at->parked, 0, sizeof *at - offsetof(cai_dlpack_ordered, parked));
    at->parked.again = cai_priv_dlpack_again;
    at->pool = pool;
    at->stream = stream;
    at->flags = flags;
    at->storage.release = cai_priv_dlpack_give_back;
    if (!array->size || array->memory == CAI_MEMORY_HOST) return CAI_OK; /* no stream works on it */
    if (cuda && cai_priv_backend(cuda) != CAI_BACKEND_CUDA)
        return cai_priv_dlpack_say(err, CAI_PRIV_RULE(CAI_ERR_EXPORT, 106), CAI_ENTRY_NONE, -1,
                                   "the pool's table is of HIP: in DLPack its streams have other numbers");
    if (cuda) CAI_TRY(cai_priv_dlpack_find_device(cuda, array, stream, &context, err));
    if (context) CAI_TRY(cai_cuda_status(cai_priv_context_enter(cuda, context), "context_push", err));
    status = cai_priv_dlpack_begin_here(at, err);
    if (context) (void)cai_priv_context_leave(cuda, context);
    if (!status) at->storage.release = cai_priv_dlpack_finish;
    return status;
}

static uint32_t cai_priv_dlpack_plain(uint32_t flags)
{
    const uint32_t promises = (uint32_t)CAI_DLPACK_STREAMS_LIVE | (uint32_t)CAI_DLPACK_NO_CAPTURES;
    return (flags & ~promises) | (uint32_t)CAI_DLPACK_ORDERED;
}

CAI_API cai_status cai_dlpack_limit(cai_event_pool *pool, int64_t arrays, int64_t bytes, cai_error *err)
{
    if (!pool) return cai_priv_dlpack_null(err, "cai_dlpack_limit", "pool");
    if (arrays < 0 || bytes < 0)
        return cai_priv_dlpack_say(err, CAI_ERR_ARGUMENT, CAI_ENTRY_NONE, -1,
                                   "cai_dlpack_limit: a limit is negative");
    pool->dlpack.limit_arrays = arrays;
    pool->dlpack.limit_bytes = bytes;
    return CAI_OK;
}

CAI_API cai_status cai_dlpack_export_ordered(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                             uint32_t flags, cai_dlpack_ordered *storage,
                                             struct DLManagedTensor **out, cai_error *err)
{
    struct DLManagedTensor *made;
    cai_status status;
    if (!storage || !out || !pool)
        return cai_priv_dlpack_null(err, "cai_dlpack_export_ordered",
                                    !storage ? "storage" : out ? "pool" : "out");
    CAI_TRY(cai_dlpack_export(array, cai_priv_dlpack_plain(flags), &storage->storage, &made, err));
    status = cai_priv_dlpack_begin(storage, pool, stream, flags, err);
    if (status) cai_array_move(array, &storage->storage.array);
    else *out = made;
    return status;
}

CAI_API cai_status cai_dlpack_export_ordered_versioned(cai_array *array, cai_event_pool *pool,
                                                       uint64_t stream, uint32_t flags,
                                                       cai_dlpack_ordered *storage,
                                                       struct DLManagedTensorVersioned **out, cai_error *err)
{
    struct DLManagedTensorVersioned *made;
    cai_status status;
    if (!storage || !out || !pool)
        return cai_priv_dlpack_null(err, "cai_dlpack_export_ordered_versioned",
                                    !storage ? "storage" : out ? "pool" : "out");
    CAI_TRY(cai_dlpack_export_versioned(array, cai_priv_dlpack_plain(flags), &storage->storage, &made, err));
    status = cai_priv_dlpack_begin(storage, pool, stream, flags, err);
    if (status) cai_array_move(array, &storage->storage.array);
    else *out = made;
    return status;
}
#endif /* CAI_PRIV_DLPACK_WITH_STREAM */

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
