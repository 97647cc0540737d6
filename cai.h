/* cai.h - the C-side CUDA Array Interface: descriptors, dtypes, checks, views - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA, no allocation, no stdio. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_CORE_IMPLEMENTATION)
#define CAI_CORE_IMPLEMENTATION
#endif

#if defined(CAI_H_INCLUDED) && CAI_H_INCLUDED != 200
#error "cai.h: another version of cai.h was included first; one translation unit takes one version"
#endif

#ifndef CAI_H_INCLUDED
#define CAI_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file:

        #define CAI_IMPLEMENTATION
        #include "cai.h"

    Everywhere else include it without the define.

WHAT IT IS
    Libraries exchange GPU arrays as the dictionary of the CUDA Array Interface (__cuda_array_interface__,
    with entries shape, typestr, data, version, strides, descr, mask, stream). This header turns such a
    dictionary into a checked C struct, cai_array, and back. It judges every entry, and computes the facts
    that a consumer needs. If something is wrong, one sentence describes it.

EXAMPLE (a consumer)
        cai_status double_it(const cai_array *y, cai_error *err);
        cai_status double_it(const cai_array *y, cai_error *err)
        {
            cai_kernel_view v;
            CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, CAI_ANY_NDIM, CAI_WRITABLE | CAI_NO_SELF_OVERLAP, err));
            CAI_TRY(cai_kernel_view_of(y, &v, err));
            for (int64_t n = 0; n < y->size; n++) *(float *)cai_kernel_element(&v, n) *= 2;
            return CAI_OK;
        }

THE FIVE FUNCTIONS MOST USERS NEED
    cai_import          dictionary entries  -> cai_array, or an error that names the entry
    cai_expect          checks "float32, 2-D, on the device, writable", or fails with one sentence why
    cai_kernel_view_of  cai_array -> pointer, extents and strides that pass by value to a kernel
    cai_array_init      pointer, dtype and shape of your own buffer -> cai_array
    cai_export          cai_array -> dictionary entries of a chosen version

CONFIGURATION (define before the first include, the same in every unit of a library; no macro changes a struct)
    CAI_IMPLEMENTATION       compile the implementation of every cai header here
    CAI_CORE_IMPLEMENTATION  compile the implementation of this header here
    CAI_STATIC               make all functions static, for a library in a single translation unit. Every unit
                             that includes the header then needs the implementation (16.3 KB of code and
                             constants, if it imports, expects and takes a view; all is 32.3 KB, gcc -Os)
    CAI_SHARED               export the functions from a shared library. Add CAI_BUILD while you build it
    CAI_NAMESPACE            put a prefix before every function (#define CAI_NAMESPACE mylib_), so that two
                             libraries with a copy each can be linked into one program
    CAI_API                  the whole linkage specifier, instead of the four above
    If none of them is defined, functions are external with hidden visibility: they stay inside the shared
    object that you build.

READERS AND JUDGES
    A reader (a literal reader, a Python or Julia binding) only tags what it finds, in runs of cai_token. This
    header judges them all, so that two readers cannot disagree. The default profile is strict.

OWNERSHIP
    An array with a release callback is owned, one without is borrowed. Call cai_array_release once when you
    are done. Do not copy an owned array, except with cai_array_move and cai_array_borrow. A view is valid as
    long as the array that it was made of. mask and fields belong to the owner and are valid until release. So
    is an event without CAI_OWN_EVENT.

ARGUMENTS (in all headers)
    The object that a function makes or works on comes first, a result last before err, a count behind its
    list. Zero a struct of options first (memset), then set what differs from the default. NULL in place of
    options means the default of all.

ERRORS
    A function that can fail returns a cai_status, 0 (CAI_OK) or one of CAI_STATUS_LIST. The last argument,
    cai_error *err, may be NULL. On success it is not written. On failure no output is written, except for
    the storage of cai_export. A message names entry, index, value and limit ("shape[2] = -1 is negative").

THREADS
    There are no globals and no thread-locals. Every function, and every release callback, may run on any
    thread. Two threads must not use one object at a time, unless both only read it.

ABI
    cai_array, cai_dtype and cai_field cross shared objects. Their layout is asserted at compile time for
    64-bit and 32-bit targets. It is experimental (_v0) until 1.0. A consumer that does not know the value of
    abi must call release and nothing else.

    Comments name rules of docs/rules.md (R1-R61, R70-R85).
*/

#include <stddef.h>
#include <stdint.h>

#define CAI_VERSION_MAJOR 0
#define CAI_VERSION_MINOR 2
#define CAI_VERSION_PATCH 0

/* ------------------------------------------------------------------ >>linkage */
#if defined(CAI_STATIC)
#define CAI_PRIV_DECLARED_STATIC
#endif
#if defined(CAI_SHARED)
#define CAI_PRIV_DECLARED_SHARED
#endif
#if defined(CAI_NAMESPACE)
#define CAI_PRIV_DECLARED_NAMESPACE
#endif

#if defined(CAI_STATIC) && defined(CAI_SHARED)
#error "cai.h: CAI_STATIC and CAI_SHARED exclude each other"
#endif

#if !defined(CAI_API)
#if defined(CAI_STATIC) && (defined(__GNUC__) || defined(__clang__))
#define CAI_API __attribute__((unused)) static
#elif defined(CAI_STATIC)
#define CAI_API static
#elif defined(CAI_SHARED) && defined(_WIN32) && defined(CAI_BUILD)
#define CAI_API __declspec(dllexport) extern
#elif defined(CAI_SHARED) && defined(_WIN32)
#define CAI_API __declspec(dllimport) extern
#elif defined(_WIN32) || !(defined(__GNUC__) || defined(__clang__))
#define CAI_API extern
#elif defined(CAI_SHARED)
#define CAI_API __attribute__((visibility("default"))) extern
#else
#define CAI_API __attribute__((visibility("hidden"))) extern
#endif
#endif

#if defined(__GNUC__) || defined(__clang__)
#define CAI_MUST_CHECK __attribute__((warn_unused_result))
#define CAI_PRIV_COLD __attribute__((cold, noinline, unused)) static
#define CAI_PRIV_NOINLINE __attribute__((noinline)) static /* keeps the common path beside it lean */
#else
#define CAI_MUST_CHECK
#if defined(_MSC_VER)
#define CAI_PRIV_COLD __declspec(noinline) static
#else
#define CAI_PRIV_COLD static
#endif
#define CAI_PRIV_NOINLINE static
#endif

#if defined(CAI_NAMESPACE)
#define CAI_PRIV_PASTE2(prefix, name) prefix##name
#define CAI_PRIV_PASTE(prefix, name) CAI_PRIV_PASTE2(prefix, name)
#define CAI_PRIV_RENAMED(name) CAI_PRIV_PASTE(CAI_NAMESPACE, name)
#define cai_array_borrow CAI_PRIV_RENAMED(cai_array_borrow)
#define cai_array_check CAI_PRIV_RENAMED(cai_array_check)
#define cai_array_init CAI_PRIV_RENAMED(cai_array_init)
#define cai_array_init_dtype CAI_PRIV_RENAMED(cai_array_init_dtype)
#define cai_array_init_packed CAI_PRIV_RENAMED(cai_array_init_packed)
#define cai_array_move CAI_PRIV_RENAMED(cai_array_move)
#define cai_array_own CAI_PRIV_RENAMED(cai_array_own)
#define cai_array_release CAI_PRIV_RENAMED(cai_array_release)
#define cai_array_set_read_only CAI_PRIV_RENAMED(cai_array_set_read_only)
#define cai_array_text CAI_PRIV_RENAMED(cai_array_text)
#define cai_broadcast_shape CAI_PRIV_RENAMED(cai_broadcast_shape)
#define cai_decode_stream_dlpack CAI_PRIV_RENAMED(cai_decode_stream_dlpack)
#define cai_decode_stream_interface CAI_PRIV_RENAMED(cai_decode_stream_interface)
#define cai_decode_stream_protocol CAI_PRIV_RENAMED(cai_decode_stream_protocol)
#define cai_dtype_name CAI_PRIV_RENAMED(cai_dtype_name)
#define cai_dtype_of CAI_PRIV_RENAMED(cai_dtype_of)
#define cai_dtype_parse CAI_PRIV_RENAMED(cai_dtype_parse)
#define cai_dtype_typestr CAI_PRIV_RENAMED(cai_dtype_typestr)
#define cai_dtype_values CAI_PRIV_RENAMED(cai_dtype_values)
#define cai_entry_name CAI_PRIV_RENAMED(cai_entry_name)
#define cai_error_name CAI_PRIV_RENAMED(cai_error_name)
#define cai_error_set CAI_PRIV_RENAMED(cai_error_set)
#define cai_expect CAI_PRIV_RENAMED(cai_expect)
#define cai_expect_same_shape CAI_PRIV_RENAMED(cai_expect_same_shape)
#define cai_export CAI_PRIV_RENAMED(cai_export)
#define cai_fields_compile CAI_PRIV_RENAMED(cai_fields_compile)
#define cai_import CAI_PRIV_RENAMED(cai_import)
#define cai_kernel_view_of CAI_PRIV_RENAMED(cai_kernel_view_of)
#define cai_overlap CAI_PRIV_RENAMED(cai_overlap)
#define cai_status_name CAI_PRIV_RENAMED(cai_status_name)
#define cai_version CAI_PRIV_RENAMED(cai_version)
#define cai_view_broadcast CAI_PRIV_RENAMED(cai_view_broadcast)
#define cai_view_coalesce CAI_PRIV_RENAMED(cai_view_coalesce)
#define cai_view_expand CAI_PRIV_RENAMED(cai_view_expand)
#define cai_view_field CAI_PRIV_RENAMED(cai_view_field)
#define cai_view_index CAI_PRIV_RENAMED(cai_view_index)
#define cai_view_permute CAI_PRIV_RENAMED(cai_view_permute)
#define cai_view_reinterpret CAI_PRIV_RENAMED(cai_view_reinterpret)
#define cai_view_reshape CAI_PRIV_RENAMED(cai_view_reshape)
#define cai_view_slice CAI_PRIV_RENAMED(cai_view_slice)
#define cai_view_values CAI_PRIV_RENAMED(cai_view_values)
enum { CAI_PRIV_RENAMED(cai_priv_declared) }; /* the implementation checks it */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the version of the linked implementation, 10000 * major + 100 * minor + patch. Compare it with
 *  CAI_H_INCLUDED if header and implementation come from different places. */
CAI_API int32_t cai_version(void);

/* ------------------------------------------------------------------- >>errors */
/** CAI_OK or one of CAI_STATUS_LIST. A number never changes its meaning. New numbers are appended. */
typedef int32_t cai_status;

/** The list of all errors, X(name, number, Python exception, meaning). Enumerators, cai_status_name,
 *  docs/errors.md and the exceptions of a Python binding are made from this list. */
#define CAI_STATUS_LIST(X)                                                                         \
    X(CAI_ERR_ARGUMENT, 1, ValueError, "an argument of the call is NULL or out of range")          \
    X(CAI_ERR_INTERFACE, 2, TypeError, "the interface is not a dictionary that can be read")       \
    X(CAI_ERR_MISSING, 3, ValueError, "a required entry is missing")                               \
    X(CAI_ERR_TYPE, 4, TypeError, "an entry or an item of it has the wrong Python type")           \
    X(CAI_ERR_SHAPE, 5, ValueError, "the shape is not valid")                                      \
    X(CAI_ERR_TYPESTR, 6, ValueError, "the typestr is not valid")                                  \
    X(CAI_ERR_DATA, 7, ValueError, "the data pointer is not valid for this shape")                 \
    X(CAI_ERR_VERSION, 8, ValueError, "the version is not valid")                                  \
    X(CAI_ERR_STRIDES, 9, ValueError, "the strides are not valid for this shape and typestr")      \
    X(CAI_ERR_STREAM, 10, ValueError, "the stream number is not valid")                            \
    X(CAI_ERR_DESCR, 11, ValueError, "the descr is not valid or does not match the typestr")       \
    X(CAI_ERR_MASK, 12, ValueError, "the mask is not valid, or a mask cannot be handled here")     \
    X(CAI_ERR_CAPACITY, 13, BufferError, "storage given by the caller is too small")               \
    X(CAI_ERR_EXPORT, 14, BufferError, "the chosen form cannot carry this array")                  \
    X(CAI_ERR_EXPECT, 15, ValueError, "the array is not what the consumer expects")                \
    X(CAI_ERR_VIEW, 16, ValueError, "the view does not exist or would need a copy")                \
    X(CAI_ERR_ABI, 17, BufferError, "the struct does not have the layout of this header")          \
    X(CAI_ERR_CUDA, 18, RuntimeError, "a CUDA call failed")                                        \
    X(CAI_ERR_UNAVAILABLE, 19, RuntimeError, "CUDA, or an operation of it, is not available")      \
    X(CAI_ERR_THREAD, 20, RuntimeError, "the per-thread stream belongs to another host thread")    \
    X(CAI_ERR_CAPTURE, 21, RuntimeError, "a stream capture does not allow this")                   \
    X(CAI_ERR_MEMORY, 22, ValueError, "the data is not memory that a device can use")              \
    X(CAI_ERR_STALE, 23, RuntimeError, "a handle was freed")                                       \
    X(CAI_ERR_PENDING, 24, RuntimeError, "an exchange, a scope or an allocation is still in use")  \
    X(CAI_ERR_OUT_OF_MEMORY, 25, MemoryError, "there is not enough memory")                        \
    X(CAI_ERR_PLACEMENT, 26, ValueError, "operands do not agree on a device or a stream")          \
    X(CAI_ERR_CONFLICT, 27, RuntimeError, "an open access, or newer data, does not allow this")    \
    X(CAI_ERR_NO_BUFFER, 28, BufferError, "the storage has no buffer on this side")                \
    X(CAI_ERR_MPI, 29, RuntimeError, "an MPI function failed")

enum {
    CAI_OK = 0,
#define CAI_PRIV_ENUMERATOR(name, number, exception, text) name = number,
    CAI_STATUS_LIST(CAI_PRIV_ENUMERATOR)
#undef CAI_PRIV_ENUMERATOR
    CAI_STATUS_COUNT = 30
};

/** The entries of an interface in the order in which cai_import judges them, X(name, number, key). */
#define CAI_ENTRY_LIST(X)                                                                                    \
    X(CAI_ENTRY_SHAPE, 1, "shape")     X(CAI_ENTRY_TYPESTR, 2, "typestr")                                    \
    X(CAI_ENTRY_DATA, 3, "data")       X(CAI_ENTRY_VERSION, 4, "version")                                    \
    X(CAI_ENTRY_STRIDES, 5, "strides") X(CAI_ENTRY_STREAM, 6, "stream")                                      \
    X(CAI_ENTRY_DESCR, 7, "descr")     X(CAI_ENTRY_MASK, 8, "mask")

enum {
    CAI_ENTRY_NONE = 0, /* the error is not about an entry of an interface */
#define CAI_PRIV_ENUMERATOR(name, number, key) name = number,
    CAI_ENTRY_LIST(CAI_PRIV_ENUMERATOR)
#undef CAI_PRIV_ENUMERATOR
    CAI_ENTRY_COUNT = 9
};

/** The error of a function that failed. Put it on the stack. Initialize and free nothing. */
typedef struct cai_error {
    int32_t code;      /* the cai_status that was returned */
    int32_t native;    /* CUDA's own error number if CUDA failed, else 0 */
    int32_t entry;     /* CAI_ENTRY_..., the entry at fault */
    int32_t index;     /* the item of the entry at fault, counted from 0, or -1 for none */
    int32_t rule;      /* the broken rule of docs/rules.md, 17 for R17, or 0 for none */
    char message[240]; /* one English sentence, always NUL-terminated */
} cai_error;

/** Returns "CAI_ERR_SHAPE" for CAI_ERR_SHAPE, and "CAI_ERR_UNKNOWN" for a number that is not in the list. */
CAI_API const char *cai_status_name(cai_status status);

/** Returns "shape" for CAI_ENTRY_SHAPE, and "" for CAI_ENTRY_NONE and unknown numbers. */
CAI_API const char *cai_entry_name(int32_t entry);

/** Fills an error for your own checks, in the form of cai's errors, "name: message". Returns `status`. With
 *  CAI_OK, `err` stays as it is. `name` is the argument or the call, or NULL. If `message` is NULL, it is the
 *  name of the status. Text that does not fit ends in "...". index becomes -1, entry, native and rule 0. */
CAI_API cai_status cai_error_set(cai_status status, const char *name, const char *message, cai_error *err);

/** Puts the name of an argument before the message of a function of one array, as in "x: axis 3 does not
 *  exist: there are 2 axes". With CAI_OK, or if `name` is NULL, `err` stays as it is. Returns `status`:
 *  CAI_TRY(cai_error_name(cai_view_index(x, 3, 0, &row, err), "x", err)). */
CAI_API cai_status cai_error_name(cai_status status, const char *name, cai_error *err);

/** Returns from the calling function if `call` fails. */
#define CAI_TRY(call)                                                                              \
    do {                                                                                           \
        cai_status cai_priv_status = (call);                                                       \
        if (cai_priv_status != CAI_OK) return cai_priv_status;                                     \
    } while (0)

/* A status with the broken rule of docs/rules.md. Functions that fill errors split them again. */
#define CAI_PRIV_RULE(status, rule) ((status) | (rule) << 8)
#define CAI_PRIV_STATUS(with_rule) ((with_rule) & 0xff)

/* ------------------------------------------------------------------- >>dtypes */
/** The code of a dtype. `kind` is the letter of the typestr, `bytes` the size. `format` distinguishes the
 *  formats that have no typestr of their own. Flexible types (CAI_BYTES, CAI_UNICODE, CAI_VOID, CAI_BITFIELD)
 *  have 0 bytes in the code. Their size is in cai_dtype. */
#define CAI_CODE(kind, bytes, format) ((kind) << 8 | (bytes) | (format) << 16)

/** The code of the same dtype in the byte order that this machine does not have. */
#define CAI_SWAPPED(code) ((code) | 0x01000000)

/** The dtypes with a typestr, X(name, kind, bytes, format, text). */
#define CAI_TYPESTR_DTYPES(X)                                                                                \
    X(CAI_BOOL, 'b', 1, 0, "bool")                                                                           \
    X(CAI_INT8, 'i', 1, 0, "int8")                     X(CAI_INT16, 'i', 2, 0, "int16")                      \
    X(CAI_INT32, 'i', 4, 0, "int32")                   X(CAI_INT64, 'i', 8, 0, "int64")                      \
    X(CAI_UINT8, 'u', 1, 0, "uint8")                   X(CAI_UINT16, 'u', 2, 0, "uint16")                    \
    X(CAI_UINT32, 'u', 4, 0, "uint32")                 X(CAI_UINT64, 'u', 8, 0, "uint64")                    \
    X(CAI_FLOAT16, 'f', 2, 0, "float16")               X(CAI_FLOAT32, 'f', 4, 0, "float32")                  \
    X(CAI_FLOAT64, 'f', 8, 0, "float64")               X(CAI_FLOAT80, 'f', 10, 0, "float80")                 \
    X(CAI_FLOAT96, 'f', 12, 0, "float96")              X(CAI_FLOAT128, 'f', 16, 0, "float128")               \
    X(CAI_COMPLEX32, 'c', 4, 0, "complex32")           X(CAI_COMPLEX64, 'c', 8, 0, "complex64")              \
    X(CAI_COMPLEX128, 'c', 16, 0, "complex128")        X(CAI_COMPLEX160, 'c', 20, 0, "complex160")           \
    X(CAI_COMPLEX192, 'c', 24, 0, "complex192")        X(CAI_COMPLEX256, 'c', 32, 0, "complex256")           \
    X(CAI_TIMEDELTA64, 'm', 8, 0, "timedelta64")       X(CAI_DATETIME64, 'M', 8, 0, "datetime64")            \
    X(CAI_BYTES, 'S', 0, 0, "bytes")                   X(CAI_UNICODE, 'U', 0, 0, "unicode")                  \
    X(CAI_VOID, 'V', 0, 0, "void")                     X(CAI_BITFIELD, 't', 0, 0, "bitfield")

/** The dtypes without one. Those below 8 bits come twice: with one value in the low bits of each element, and
 *  packed (_X2, ...), where an element is 2, 4 or 8 values, the first in the lowest bits. Of an element of 3
 *  bytes, byte 0 is the least significant. CUDA's __nv_fp6x4 is another layout: 4 values in 4 bytes. */
#define CAI_FORMAT_DTYPES(X)                                                                                 \
    X(CAI_BFLOAT16, 'f', 2, 1, "bfloat16")             X(CAI_FLOAT8_E3M4, 'f', 1, 2, "float8_e3m4")          \
    X(CAI_FLOAT8_E4M3, 'f', 1, 3, "float8_e4m3")                                                             \
    X(CAI_FLOAT8_E4M3B11FNUZ, 'f', 1, 4, "float8_e4m3b11fnuz")                                               \
    X(CAI_FLOAT8_E4M3FN, 'f', 1, 5, "float8_e4m3fn")   X(CAI_FLOAT8_E4M3FNUZ, 'f', 1, 6, "float8_e4m3fnuz")  \
    X(CAI_FLOAT8_E5M2, 'f', 1, 7, "float8_e5m2")       X(CAI_FLOAT8_E5M2FNUZ, 'f', 1, 8, "float8_e5m2fnuz")  \
    X(CAI_FLOAT8_E8M0FNU, 'f', 1, 9, "float8_e8m0fnu")                                                       \
    X(CAI_INT1, 'i', 1, 10, "int1")                    X(CAI_UINT1, 'u', 1, 10, "uint1")                     \
    X(CAI_INT2, 'i', 1, 11, "int2")                    X(CAI_UINT2, 'u', 1, 11, "uint2")                     \
    X(CAI_INT4, 'i', 1, 12, "int4")                    X(CAI_UINT4, 'u', 1, 12, "uint4")                     \
    X(CAI_FLOAT6_E2M3FN, 'f', 1, 13, "float6_e2m3fn")  X(CAI_FLOAT6_E3M2FN, 'f', 1, 14, "float6_e3m2fn")     \
    X(CAI_FLOAT4_E2M1FN, 'f', 1, 15, "float4_e2m1fn")                                                        \
    X(CAI_INT1_X8, 'i', 1, 26, "int1_x8")              X(CAI_UINT1_X8, 'u', 1, 26, "uint1_x8")               \
    X(CAI_INT2_X4, 'i', 1, 27, "int2_x4")              X(CAI_UINT2_X4, 'u', 1, 27, "uint2_x4")               \
    X(CAI_INT4_X2, 'i', 1, 28, "int4_x2")              X(CAI_UINT4_X2, 'u', 1, 28, "uint4_x2")               \
    X(CAI_FLOAT6_E2M3FN_X4, 'f', 3, 29, "float6_e2m3fn_x4")                                                  \
    X(CAI_FLOAT6_E3M2FN_X4, 'f', 3, 30, "float6_e3m2fn_x4")                                                  \
    X(CAI_FLOAT4_E2M1FN_X2, 'f', 1, 31, "float4_e2m1fn_x2")

/** The list of all dtypes. */
#define CAI_DTYPE_LIST(X) CAI_TYPESTR_DTYPES(X) CAI_FORMAT_DTYPES(X)

enum {
    CAI_ANY_DTYPE = 0, /* for cai_expect */
#define CAI_PRIV_ENUMERATOR(name, kind, bytes, format, text) name = CAI_CODE(kind, bytes, format),
    CAI_DTYPE_LIST(CAI_PRIV_ENUMERATOR)
#undef CAI_PRIV_ENUMERATOR
    /* the types of C whose size depends on the platform */
    CAI_LONG = CAI_CODE('i', sizeof(long), 0), CAI_UNSIGNED_LONG = CAI_CODE('u', sizeof(long), 0),
    CAI_PTRDIFF = CAI_CODE('i', sizeof(ptrdiff_t), 0), CAI_SIZE = CAI_CODE('u', sizeof(size_t), 0),
    CAI_LONG_DOUBLE = CAI_CODE('f', sizeof(long double), 0)
};

/** Units of CAI_TIMEDELTA64 and CAI_DATETIME64 (R34). */
enum {
    CAI_UNIT_NONE = 0, CAI_UNIT_YEAR, CAI_UNIT_MONTH, CAI_UNIT_WEEK, CAI_UNIT_DAY, CAI_UNIT_HOUR,
    CAI_UNIT_MINUTE, CAI_UNIT_SECOND, CAI_UNIT_MILLISECOND, CAI_UNIT_MICROSECOND, CAI_UNIT_NANOSECOND,
    CAI_UNIT_PICOSECOND, CAI_UNIT_FEMTOSECOND, CAI_UNIT_ATTOSECOND
};

enum {
    CAI_MAX_NDIM = 64,        /* dimensions of an array, as in NumPy 2 and PyTorch (R29) */
    CAI_MAX_FIELD_NDIM = 8,   /* dimensions of a sub-array in a descr */
    CAI_MAX_FIELD_DEPTH = 32, /* nesting of a descr (R45) */
    CAI_MAX_FIELDS = 4096,    /* fields of a descr, nested ones and padding included */
    CAI_MAX_KERNEL_NDIM = 8,  /* dimensions of a cai_kernel_view */
    CAI_TYPESTR_SIZE = 40     /* bytes that hold any typestr with its NUL */
};

/* The structs below cross shared objects. The guard and the names never change. Any number of copies of this
 * header, renamed or not, share one definition. */
#ifndef CAI_ARRAY_ABI_V0
#define CAI_ARRAY_ABI_V0

/** An element type. */
struct cai_dtype_v0 {
    int32_t code;       /* CAI_FLOAT32, CAI_SWAPPED(CAI_FLOAT32), ... */
    int32_t itemsize;   /* bytes of one element; 0 for CAI_BITFIELD */
    int32_t bits;       /* of one value below 8 bits, or of one element of CAI_BITFIELD; else 0 */
    int32_t unit;       /* CAI_UNIT_... of the datetime kinds */
    int32_t unit_count; /* 25 for [25s]; 0 if unit is CAI_UNIT_NONE */
    int32_t alignment;  /* natural alignment in bytes: a power of two, at most 16 */
};

/** One row of the table that a descr compiles to. The rows are in the order of the descr, a parent before its
 *  children. Padding is a row with name_length 0 and dtype CAI_VOID. */
struct cai_field_v0 {
    const char *name;           /* UTF-8, not NUL-terminated; memory of the owner */
    const char *title;          /* the full name of ('full name', 'basic name'), or NULL */
    uint32_t name_length;       /* bytes */
    uint32_t title_length;      /* bytes */
    struct cai_dtype_v0 dtype;  /* CAI_VOID for a nested record, whose rows follow */
    int64_t offset;             /* bytes from the start of the enclosing record */
    int64_t nbytes;             /* bytes of the field, all repeats included */
    int32_t parent;             /* row of the enclosing record; -1 at the top level */
    int32_t child_count;        /* rows directly in this record; 0 for a plain field */
    int32_t ndim;               /* of the sub-array; 0 for a single item */
    int32_t reserved;           /* 0 */
    int64_t shape[8];           /* of the sub-array, elements; in C order */
};

/** An array with the values of a dictionary and the facts that follow from them. You may read all fields.
 *  Make arrays with cai_import, cai_array_init or a view, so that the fields agree with one another. */
struct cai_array_v0 {
    uint32_t abi;         /* CAI_ABI */
    uint32_t struct_size; /* sizeof of the maker's struct */
    void (*release)(struct cai_array_v0 *self); /* NULL: borrowed. Sets itself to NULL. */
    void *owner;                /* a pointer of the code that set release */
    uint32_t flags;             /* CAI_WRITABLE, CAI_C_CONTIGUOUS, ... */
    int32_t version;            /* of the interface that the array came from */
    uint64_t data;              /* address of the first element; 0 if size is 0 */
    struct cai_dtype_v0 dtype;
    int32_t device;             /* CUDA ordinal, or CAI_DEVICE_UNKNOWN */
    int32_t memory;             /* CAI_MEMORY_... */
    int32_t sync;               /* CAI_SYNC_...: what a consumer must wait for */
    int32_t ndim;               /* 0 to 64 */
    uint64_t stream;            /* 1 legacy, 2 per-thread, else a handle; 0: none */
    uint64_t event;             /* recorded before hand-over, with CAI_SYNC_EVENT */
    uint64_t thread;            /* the host thread that stream 2 means; 0: not known */
    int64_t size;               /* elements */
    int64_t nbytes;             /* of the elements, gaps not counted */
    int64_t lo, hi;             /* byte extent [lo, hi) relative to data */
    const struct cai_field_v0 *fields; /* NULL: no descr, or no storage given for it */
    struct cai_array_v0 *mask;  /* true means valid; NULL: no mask. A mask has none. */
    int64_t field_count;        /* rows of fields */
    int64_t packed_extent;      /* values along packed_axis; the last element may have unused bits */
    int32_t packed_axis;        /* along which the values of a packed element lie; -1: not packed, or 0 axes */
    int32_t backend;            /* CAI_BACKEND_... */
    uint64_t must_understand;   /* 0; a reader refuses an array with a bit that it does not know */
    uint64_t reserved;          /* 0 */
    int64_t shape[64];          /* elements; slots past ndim are unspecified */
    int64_t strides[64];        /* bytes, always filled in (0 for CAI_BITFIELD) */
};

#endif /* CAI_ARRAY_ABI_V0 */

typedef struct cai_dtype_v0 cai_dtype;
typedef struct cai_field_v0 cai_field;
typedef struct cai_array_v0 cai_array;

#define CAI_ABI 0x43414931u /* "CAI1": the candidate of the layout of 1.0. Version 0.1 has "CAI0" */

/** Fills `out` for a code of CAI_DTYPE_LIST with a fixed size, plain or CAI_SWAPPED. Datetime kinds get no
 *  unit. For flexible kinds use cai_dtype_parse. Errors: CAI_ERR_ARGUMENT. */
CAI_API CAI_MUST_CHECK cai_status cai_dtype_of(int32_t code, cai_dtype *out, cai_error *err);

/** Parses a typestr of `length` bytes, which need not be NUL-terminated: byteorder kind digits [unit]
 *  (R30-R38). `flags` is 0 or CAI_LENIENT, which accepts '=' or no byte order. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_TYPESTR (index is the position). */
CAI_API CAI_MUST_CHECK cai_status cai_dtype_parse(const char *typestr, int64_t length, uint32_t flags,
                                                  cai_dtype *out, cai_error *err);

/** Writes the typestr, such as "<f4" or "<m8[25s]", and a NUL. Returns its length in bytes. A dtype without one
 *  is written as bytes: bfloat16 as "<V2", a packed dtype as "|V1" or "|V3". CAI_TYPESTR_SIZE bytes always
 *  suffice. A smaller capacity truncates the text. With 0 nothing is written. */
CAI_API int32_t cai_dtype_typestr(const cai_dtype *dtype, char *buffer, int32_t capacity);

/** Returns "float32" for CAI_FLOAT32 and CAI_SWAPPED(CAI_FLOAT32), "unknown" for a code outside the list. */
CAI_API const char *cai_dtype_name(int32_t code);

/** Returns the values of one element: 8 * itemsize / bits if `dtype` is packed (CAI_INT4_X2, ...), else 1. All
 *  codes of packed dtypes have the bit 0x100000, also those of later versions. */
CAI_API int32_t cai_dtype_values(const cai_dtype *dtype);

/* ------------------------------------------------------------------- >>arrays */
/** Facts about an array (cai_array.flags). cai computes all but the last three from entries or arguments.
 *  cai_expect can also require the first five. If the bounded search for overlaps is given up, neither
 *  CAI_NO_SELF_OVERLAP nor CAI_SELF_OVERLAP is set. */
enum {
    CAI_WRITABLE = 1 << 0,        /* R6 */
    CAI_C_CONTIGUOUS = 1 << 1,    /* R23; extents of 1 do not count; an empty array is both */
    CAI_F_CONTIGUOUS = 1 << 2,    /* R23 */
    CAI_ALIGNED = 1 << 3,         /* R26; data, and strides of extents above 1 */
    CAI_NO_SELF_OVERLAP = 1 << 4, /* no two elements share a byte */
    CAI_SELF_OVERLAP = 1 << 5,    /* two elements share a byte (R25) */
    CAI_DENSE = 1 << 6,           /* elements fill [lo, hi), in any order of the axes */
    CAI_BYTE_SWAPPED = 1 << 7,    /* R31 */
    CAI_HAD_STRIDES = 1 << 8,     /* strides were given (R21), or it is a view */
    CAI_FUTURE_VERSION = 1 << 9,  /* R61; version above 3; its known entries were judged */
    CAI_NO_BACK_EDGE = 1 << 10,   /* an importer set it (as of DLPack): the owner does not see work in `stream`.
                                     cai_exchange_finish keeps the array until the consumer's work has passed */
    CAI_OWN_EVENT = 1 << 11,      /* `event` belongs to the array (cai_stream_detach), else to the owner */
    CAI_ORDERED_FREE = 1 << 12,   /* release frees the memory in the order of the array's stream. You may
                                     release the array as soon as that stream waits for the consumer's work.
                                     Owners whose free has this order set it, never an import */
    /* requirements of cai_expect that are not facts of an array */
    CAI_ON_DEVICE = 1 << 16,      /* not known as plain host memory, unless a device can use that (HMM, ATS) */
    CAI_ALLOW_MASK = 1 << 17,     /* the caller applies the mask (else it must refuse, R52) */
    CAI_ALLOW_UNALIGNED = 1 << 18 /* the caller loads byte by byte */
};

/** The lenient profile: a flag of all imports. A macro, as C++20 deprecates to combine two enumerations. */
#define CAI_LENIENT 1

enum {
    CAI_DEVICE_UNKNOWN = -1,
    CAI_ANY_NDIM = -1 /* for cai_expect */
};

/** The kind of memory (cai_array.memory). cai_import leaves it unknown. */
enum {
    CAI_MEMORY_UNKNOWN = 0,
    CAI_MEMORY_HOST = 1,    /* plain host memory; cai_array.device is known if that device can use it */
    CAI_MEMORY_PINNED = 2,  /* pinned or registered host memory */
    CAI_MEMORY_MANAGED = 3,
    CAI_MEMORY_DEVICE = 4,
    /* what a memory object of ext/cai_manager.h also is; the memory of an array is one of those above */
    CAI_MEMORY_POOL = 5,      /* device memory of a memory pool: has no handle for other processes */
    CAI_MEMORY_MAPPED = 6,    /* pinned, and mapped for devices */
    CAI_MEMORY_REGISTERED = 7 /* pinned, and the memory has another owner */
};

/** The means that order a consumer after the producer's work (cai_array.sync). */
enum {
    CAI_SYNC_UNKNOWN = 0, /* versions 0-2 without a stream; work may be pending */
    CAI_SYNC_NONE = 1,    /* no work is pending (R70, R78) */
    CAI_SYNC_STREAM = 2,  /* order on cai_array.stream, at both ends (R75-R77) */
    CAI_SYNC_EVENT = 3    /* wait for cai_array.event; the stream, if any, gets the back edge */
};

/** Whose numbers the stream and the event of an array are, and whose memory it is (cai_array.backend). */
enum {
    CAI_BACKEND_CUDA = 0, /* or not known, as a dictionary cannot say it */
    CAI_BACKEND_HIP = 1   /* set by every function that makes, locates, moves or exports an array with a table
                             of HIP. Tables of CUDA (CAI_ERR_STREAM) and DLPack (CAI_ERR_EXPORT) refuse it. */
};

enum {
    CAI_STREAM_LEGACY = 1,    /* the legacy default stream (R72) */
    CAI_STREAM_PER_THREAD = 2 /* the per-thread default stream (R73) */
};

/** Describes your own memory in `out` as a borrowed, writable array of version 3. `code` is a dtype of fixed
 *  size. `shape` has `ndim` (0 to 64) extents in elements. `strides` has as many strides in bytes, or is NULL
 *  for C order. `data` is the first element, and is ignored if the array is empty. Device, memory and sync are
 *  unknown. If work is pending, set out->sync and out->stream, else set CAI_SYNC_NONE.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_SHAPE, CAI_ERR_STRIDES, CAI_ERR_DATA. */
CAI_API CAI_MUST_CHECK cai_status cai_array_init(cai_array *out, int32_t code, int32_t ndim,
                                                 const int64_t *shape, const int64_t *strides, void *data,
                                                 cai_error *err);

/** Does the same for any dtype (flexible, datetime with a unit, ...) and any 64-bit address. `dtype` comes from
 *  cai_dtype_of or cai_dtype_parse, and is copied. `strides` of a bit field is NULL. */
CAI_API CAI_MUST_CHECK cai_status cai_array_init_dtype(cai_array *out, const cai_dtype *dtype, int32_t ndim,
                                                       const int64_t *shape, const int64_t *strides,
                                                       uint64_t data, cai_error *err);

/** Describes memory of a packed dtype, such as CAI_FLOAT4_E2M1FN_X2. `shape` counts values, and the values of
 *  an element lie along `axis`. out->shape[axis] is the number of elements that hold them, so the last element
 *  may have unused bits. `strides` are in bytes as ever, the one of `axis` from element to element. With 0
 *  axes, `shape` is NULL, `axis` is -1 and the array is one element. The rest is as in cai_array_init, which
 *  takes these dtypes, too: its shape counts elements, and the values lie along the last axis whose stride is
 *  the itemsize, or with `strides` NULL or without such an axis along the last. */
CAI_API CAI_MUST_CHECK cai_status cai_array_init_packed(cai_array *out, int32_t code, int32_t ndim,
                                                        const int64_t *shape, int32_t axis,
                                                        const int64_t *strides, void *data, cai_error *err);

/** Makes `array` read-only, or with 0 writable. Views that were made before stay as they are. */
CAI_API void cai_array_set_read_only(cai_array *array, int32_t read_only);

/** Makes `array` owned. `release` is called once, on any thread, and finds `owner` in array->owner. The
 *  callback must set array->release to NULL, because consumers in other libraries may call it directly. */
CAI_API void cai_array_own(cai_array *array, void (*release)(cai_array *array), void *owner);

/** Moves `from` to `to`, which is memory of the caller and is overwritten without release. `from` becomes
 *  borrowed. Do not use it after `to` was released. `from` may have an abi that this header does not know. */
CAI_API void cai_array_move(cai_array *to, cai_array *from);

/** Copies `from` to `to` as a borrowed array, valid as long as `from`. `to` is memory of the caller and is
 *  overwritten without release. Owner, event and CAI_ORDERED_FREE stay with `from`. The mask is shared, not
 *  copied. If `from` came from elsewhere, call cai_array_check first. */
CAI_API void cai_array_borrow(cai_array *to, const cai_array *from);

/** Calls the release callback once, if there is one. `array` may be NULL or borrowed. */
CAI_API void cai_array_release(cai_array *array);

/** Checks that a struct from elsewhere has the layout of this header and valid bounds (ndim, field_count, the
 *  values of a packed dtype). A dtype below 8 bits must have the bits and the itemsize of its code. Every
 *  function below that reads an array calls it first. Errors: CAI_ERR_ARGUMENT (NULL), CAI_ERR_ABI. */
CAI_API CAI_MUST_CHECK cai_status cai_array_check(const cai_array *array, cai_error *err);

/** Writes one line for logs and a NUL, such as "float32 (2, 3) strides (4, 8), F-contiguous, read-only,
 *  stream 1, at 0x7f0000000000", and "NULL" for NULL. Returns its length in bytes. A smaller capacity cuts the
 *  line, which then ends in "...". With 0 nothing is written. */
CAI_API int32_t cai_array_text(const cai_array *array, char *buffer, int32_t capacity);

/** Checks an argument of a consumer. `name` is its name in the message. `code` is CAI_FLOAT32, ..., or
 *  CAI_ANY_DTYPE. `ndim` is a number of axes or CAI_ANY_NDIM. `requirements` are bits of the flags above:
 *  CAI_WRITABLE to CAI_NO_SELF_OVERLAP, and CAI_ON_DEVICE to CAI_ALLOW_UNALIGNED. CAI_C_CONTIGUOUS
 *  (CAI_F_CONTIGUOUS) also requires that the values of a packed element lie along the last (first) axis. An
 *  unaligned array is refused without CAI_ALLOW_UNALIGNED, or with CAI_ALIGNED. An undecided overlap counts
 *  as an overlap. CAI_ON_DEVICE accepts memory that is not known. cai_locate of cai_stream.h finds out where
 *  it is. A mask is refused without CAI_ALLOW_MASK.
 *  Errors: CAI_ERR_EXPECT with a full sentence, such as "x: expected float32, 2-D, C-contiguous, writable;
 *  got >f8, 2-D, strides (8, 16), read-only", CAI_ERR_ARGUMENT, CAI_ERR_ABI. */
CAI_API CAI_MUST_CHECK cai_status cai_expect(const cai_array *array, const char *name, int32_t code,
                                             int32_t ndim, uint32_t requirements, cai_error *err);

/** Checks that two arrays have the same extents in elements, and if both are packed, also the same values
 *  along the same axis. Errors: CAI_ERR_EXPECT, such as "shape[1] = 3 in x, 4 in y" (index is the first axis
 *  that differs, or -1 if the number of axes differs), CAI_ERR_ARGUMENT, CAI_ERR_ABI. */
CAI_API CAI_MUST_CHECK cai_status cai_expect_same_shape(const cai_array *a, const char *a_name,
                                                        const cai_array *b, const char *b_name, cai_error *err);

enum { CAI_OVERLAP_NO = 0, CAI_OVERLAP_YES = 1, CAI_OVERLAP_UNDECIDED = 2 };

/** Returns whether an element of one array shares a byte with one of the other. The even and the odd columns of
 *  one array do not overlap. The answer is exact, unless the bounded search is given up. Treat
 *  CAI_OVERLAP_UNDECIDED as an overlap. It is the result for NULL and unknown layouts, too. The function
 *  assumes one address space for both arrays, and ignores masks. */
CAI_API int32_t cai_overlap(const cai_array *a, const cai_array *b);

/* ---------------------------------------------------------------- >>interface */
/** The kind of a value that a reader found, in Python's terms. */
enum {
    CAI_TOKEN_NONE = 1, /* None */
    CAI_TOKEN_BOOL,     /* number: 0 or 1 */
    CAI_TOKEN_INT,      /* fits int64; number: its two's complement */
    CAI_TOKEN_UINT,     /* above int64, fits uint64; number: the value */
    CAI_TOKEN_BIG_INT,  /* an int beyond both */
    CAI_TOKEN_INDEX,    /* not an int, has __index__ (NumPy's integers), fits int64; as INT */
    CAI_TOKEN_FLOAT,    /* number: 1 if not zero */
    CAI_TOKEN_STR, CAI_TOKEN_BYTES,  /* text, length; a str is UTF-8 */
    CAI_TOKEN_TUPLE, CAI_TOKEN_LIST, /* length items, whose tokens follow */
    CAI_TOKEN_DICT,     /* nothing follows; number: 1 if not empty */
    CAI_TOKEN_OBJECT,   /* any other object; number: 1 if true */
    CAI_TOKEN_OTHER     /* a value that the reader cannot name */
};

/** One tagged value. The tokens of the items follow a tuple or a list, nested ones in place. */
typedef struct cai_token {
    int32_t kind;     /* CAI_TOKEN_... */
    uint32_t length;  /* STR, BYTES: bytes; TUPLE, LIST: items */
    uint64_t number;  /* INT, UINT, BOOL, ...; see the kind */
    const char *text; /* STR, BYTES: not NUL-terminated; else NULL */
} cai_token;

/** The entries of one dictionary as a reader tagged them. Each points to the first token of its run, or is
 *  NULL if the key is absent. Zero the struct before you fill it. */
typedef struct cai_interface {
    const cai_token *shape;
    const cai_token *typestr;
    const cai_token *data;
    const cai_token *version;
    const cai_token *strides;
    const cai_token *stream;
    const cai_token *descr;
    const cai_token *mask;                      /* one token (NONE, OBJECT, ...), beside: */
    const struct cai_interface *mask_interface; /* the mask's interface; alone it is a mask, too */
} cai_interface;

/** Options of cai_import. Zero means the default. */
typedef struct cai_import_options {
    uint32_t flags;         /* 0 (strict) or CAI_LENIENT */
    cai_array *mask;        /* storage for a mask; NULL: an array with a mask is refused (R52) */
    cai_field *fields;      /* storage for the rows of a descr; NULL: the descr is checked, not kept */
    int64_t field_capacity; /* rows that `fields` holds */
} cai_import_options;

/** Judges a dictionary completely. If it is right, the function describes it in `out` as a borrowed array.
 *  Attach the object that keeps the memory with cai_array_own. `options` may be NULL. On failure nothing is
 *  stored in `out` or in the storage of the options.
 *
 *  CAI_LENIENT accepts only these slips. A missing version counts as 0. `data` may be a list or have extra
 *  items. The read-only flag may have any Python truth value. `shape` and `strides` may be lists. The byte
 *  order may be '=' or missing. `typestr` may be bytes. A repeat in a descr may be an int. A descr may be a
 *  tuple of tuples. The pointer of an empty array may be None. Objects with __index__ count as ints.
 *
 *  A mask may have any dtype, as only true or false counts. cai_fields_compile counts the rows of a descr.
 *  Fields are in the storage of the options, their names in the text of the tokens. Keep storage and text as
 *  long as `out`. Errors: CAI_ERR_ARGUMENT, CAI_ERR_MISSING to CAI_ERR_CAPACITY. */
CAI_API CAI_MUST_CHECK cai_status cai_import(const cai_interface *in, const cai_import_options *options,
                                             cai_array *out, cai_error *err);

/** Compiles a descr without its dictionary. It counts the rows into *count and, if `fields` is not NULL,
 *  stores them. `descr` is the token run, NULL for none. `dtype` is that of the typestr (R41). `flags` is 0
 *  or CAI_LENIENT. Errors: CAI_ERR_ARGUMENT, CAI_ERR_TYPE, CAI_ERR_DESCR, CAI_ERR_CAPACITY. */
CAI_API CAI_MUST_CHECK cai_status cai_fields_compile(const cai_token *descr, const cai_dtype *dtype,
                                                     uint32_t flags, cai_field *fields, int64_t capacity,
                                                     int64_t *count, cai_error *err);

/** Storage for cai_export. An array of n dimensions without descr needs 2 n + 8 tokens and CAI_TYPESTR_SIZE
 *  bytes of text. A mask needs the same again, one more token, and `mask`. Each row of a descr needs up to 16
 *  tokens and CAI_TYPESTR_SIZE bytes, and so does each padding between rows. */
typedef struct cai_export_storage {
    cai_token *tokens;
    int64_t token_capacity; /* tokens */
    char *text;
    int64_t text_capacity;  /* bytes */
    cai_interface *mask;    /* for the mask's entries; may be NULL if there is no mask */
} cai_export_storage;

/** Writes the entries of an interface of `version` 0 to 3 for `array`. The entries point into the storage.
 *  Names of fields point to the same text as those of the array. C-contiguous arrays get strides None. What
 *  the version cannot describe is refused: a mask in version 0, a stream below version 3, an event in any
 *  version, CAI_SYNC_UNKNOWN or a sync of later headers in version 3, and a packed array with unused bits or
 *  with another axis than cai_array_init finds. In version 3, no stream means no pending work. An empty array
 *  has no work to wait for and is exported without a stream. No version has an entry for device and memory
 *  kind. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPORT, CAI_ERR_CAPACITY. */
CAI_API CAI_MUST_CHECK cai_status cai_export(const cai_array *array, int32_t version,
                                             const cai_export_storage *storage, cai_interface *out,
                                             cai_error *err);

/* -------------------------------------------------------------------- >>views */
/* A view is a borrowed array over the same memory. Its facts are computed anew. It inherits device, memory,
 * sync, stream, event, thread and version. `out` may be the array itself if that is borrowed. Axes count from
 * 0, negative ones from the end. Arrays with a mask are refused (CAI_ERR_MASK). Take views of cai_view_values
 * and of the mask. Bit fields are refused (CAI_ERR_VIEW).
 * Views count elements, also along a packed axis. These views of a packed axis are refused (CAI_ERR_VIEW): a
 * slice with a step, an index, a repeat, and a reshape unless it is the last axis.
 * Errors of all views are CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_MASK, CAI_ERR_VIEW (index is the axis at
 * fault), and CAI_ERR_SHAPE for a new shape that is negative or too large. cai_error_name adds the array. */

/** Makes a view without the mask. The caller must apply the mask. Bit fields are allowed. */
CAI_API CAI_MUST_CHECK cai_status cai_view_values(const cai_array *array, cai_array *out, cai_error *err);

/** Axis i of the view is axis axes[i] of the array. If `axes` is NULL, the order is reversed. */
CAI_API CAI_MUST_CHECK cai_status cai_view_permute(const cai_array *array, const int32_t *axes,
                                                   cai_array *out, cai_error *err);

/** Takes the elements start, start + step, ... (`count` of them) along one axis. Every one must exist. step
 *  is in elements and is not 0. x[::-1] is start = extent - 1, count = extent, step = -1. */
CAI_API CAI_MUST_CHECK cai_status cai_view_slice(const cai_array *array, int32_t axis, int64_t start,
                                                 int64_t count, int64_t step, cai_array *out, cai_error *err);

/** Takes element `index` along one axis and drops the axis. A negative index counts from the end. The index 0
 *  squeezes an axis of extent 1. */
CAI_API CAI_MUST_CHECK cai_status cai_view_index(const cai_array *array, int32_t axis, int64_t index,
                                                 cai_array *out, cai_error *err);

/** Inserts an axis of extent 1, which becomes axis `axis` of the view. */
CAI_API CAI_MUST_CHECK cai_status cai_view_expand(const cai_array *array, int32_t axis, cai_array *out,
                                                  cai_error *err);

/** Broadcasts to `shape` (ndim extents) as NumPy does. If anything is repeated, the view is read-only. */
CAI_API CAI_MUST_CHECK cai_status cai_view_broadcast(const cai_array *array, int32_t ndim,
                                                     const int64_t *shape, cai_array *out, cai_error *err);

/** Broadcasts arrays to one shape, by one call for each array. Set *ndim to 0 before the first call. *ndim
 *  and `shape` become those of the result, to which cai_view_broadcast takes each array. `shape` has room for
 *  CAI_MAX_NDIM extents. `name` is the array in the message, such as "y: shape[1] = 4 does not broadcast with
 *  the 3 of the arrays before". Errors: CAI_ERR_EXPECT (index is the axis of the array), CAI_ERR_SHAPE (too
 *  many elements, where extents of 0 are left out; or a negative extent), CAI_ERR_ARGUMENT, CAI_ERR_ABI. Of
 *  packed arrays it compares elements: call cai_expect_same_shape, too. */
CAI_API CAI_MUST_CHECK cai_status cai_broadcast_shape(const cai_array *array, const char *name, int32_t *ndim,
                                                      int64_t *shape, cai_error *err);

/** Gives another shape to the elements in C order, if this needs no copy. An extent of -1 is computed. */
CAI_API CAI_MUST_CHECK cai_status cai_view_reshape(const cai_array *array, int32_t ndim, const int64_t *shape,
                                                   cai_array *out, cai_error *err);

/** Describes the same bytes with another dtype, such as "<V2" or "<u2" as CAI_BFLOAT16, float32 pairs as
 *  complex64, or a swapped type as its bytes. If the itemsize changes, the last axis must be contiguous, and
 *  the new itemsize must divide its bytes. Values of a packed dtype lie along the axis that cai_array_init
 *  finds, or stay as they are if the array's elements have as many and the same size. The view has no field
 *  table. */
CAI_API CAI_MUST_CHECK cai_status cai_view_reinterpret(const cai_array *array, const cai_dtype *dtype,
                                                       cai_array *out, cai_error *err);

/** Merges axes for loops and kernels. The view has the fewest axes that visit the same elements in the same
 *  (C) order. A packed axis stays as it is. */
CAI_API CAI_MUST_CHECK cai_status cai_view_coalesce(const cai_array *array, cai_array *out, cai_error *err);

/** Makes a view of one field of a structured array (row `row` of array->fields). The axes of sub-arrays
 *  follow those of the array, enclosing records first. */
CAI_API CAI_MUST_CHECK cai_status cai_view_field(const cai_array *array, int64_t row, cai_array *out,
                                                 cai_error *err);

/* ------------------------------------------------------------------- >>kernel */
/** The part of an array that a kernel needs. Pass it by value. */
typedef struct cai_kernel_view {
    char *data;         /* the first element; NULL if the array is empty */
    int32_t ndim;       /* 0 to 8 */
    int32_t itemsize;   /* bytes */
    int64_t shape[8];   /* elements; 1 past ndim */
    int64_t strides[8]; /* bytes; 0 past ndim */
} cai_kernel_view;

/** Fills a kernel view. Call cai_expect first, because a kernel view has no dtype, read-only flag or mask. It
 *  counts elements. For a packed dtype give the kernel packed_axis and packed_extent, too. If the array has
 *  more than 8 axes, try cai_view_coalesce. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_VIEW (too many
 *  axes, a bit field, or an address beyond this machine's pointers). */
CAI_API CAI_MUST_CHECK cai_status cai_kernel_view_of(const cai_array *array, cai_kernel_view *out,
                                                     cai_error *err);

#if defined(__CUDACC__)
#define CAI_HOST_DEVICE __host__ __device__
#elif defined(__HIP__) /* clang; HIP's headers may come later */
#define CAI_HOST_DEVICE __attribute__((host, device))
#else
#define CAI_HOST_DEVICE
#endif

/** Returns the address of element (i), (i, j) or (i, j, k) of a view of 1, 2 or 3 axes, unchecked. */
CAI_HOST_DEVICE static inline void *cai_kernel_at1(const cai_kernel_view *view, int64_t i)
{
    return view->data + i * view->strides[0];
}

CAI_HOST_DEVICE static inline void *cai_kernel_at2(const cai_kernel_view *view, int64_t i, int64_t j)
{
    return view->data + i * view->strides[0] + j * view->strides[1];
}

CAI_HOST_DEVICE static inline void *cai_kernel_at3(const cai_kernel_view *view, int64_t i, int64_t j, int64_t k)
{
    return view->data + i * view->strides[0] + j * view->strides[1] + k * view->strides[2];
}

/** Returns the address of element number `n` in C order, for any number of axes, unchecked. */
CAI_HOST_DEVICE static inline void *cai_kernel_element(const cai_kernel_view *view, int64_t n)
{
    char *at = view->data;
    int32_t axis = view->ndim;
    while (--axis > 0) {
        at += n % view->shape[axis] * view->strides[axis];
        n /= view->shape[axis];
    }
    return axis < 0 ? at : at + n * view->strides[0];
}

/* ------------------------------------------------------------------ >>streams */
/* Three protocols number streams, and the same number has different meanings in them. Results are a
 * CAI_SYNC_... and a number with the meaning of cai_array.stream. */

/** Decodes the `stream` entry of an interface of `version`. If `value` is NULL (absent), the result is
 *  CAI_SYNC_NONE from version 3 on, else CAI_SYNC_UNKNOWN. None is CAI_SYNC_NONE. 0 is refused as ambiguous
 *  (R71), and -1 as a number of DLPack (R74). Errors: CAI_ERR_ARGUMENT, CAI_ERR_TYPE, CAI_ERR_STREAM. */
CAI_API CAI_MUST_CHECK cai_status cai_decode_stream_interface(const cai_token *value, int32_t version,
                                                              int32_t *sync, uint64_t *stream, cai_error *err);

/** Decodes the result of an object's __cuda_stream__(), a tuple or list (0, handle). The handle 0 is a NULL
 *  cudaStream_t, and NULL is the driver's legacy default stream. The result is then 1. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_TYPE, CAI_ERR_VERSION (the protocol version is not 0), CAI_ERR_STREAM. */
CAI_API CAI_MUST_CHECK cai_status cai_decode_stream_protocol(const cai_token *value, uint64_t *stream,
                                                             cai_error *err);

/** Decodes the `stream` argument of __dlpack__ for CUDA. NULL and None mean the legacy default stream. -1
 *  means no synchronization (CAI_SYNC_NONE, stream 0). 0 is refused, as DLPack disallows it.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_TYPE, CAI_ERR_STREAM. */
CAI_API CAI_MUST_CHECK cai_status cai_decode_stream_dlpack(const cai_token *value, int32_t *sync,
                                                           uint64_t *stream, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#else /* CAI_H_INCLUDED. The first include has decided the linkage. */

#if defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC)
#error "cai.h: define CAI_STATIC before the first include of cai.h in this translation unit"
#endif
#if defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED)
#error "cai.h: define CAI_SHARED before the first include of cai.h in this translation unit"
#endif
#if defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#error "cai.h: define CAI_NAMESPACE before the first include of cai.h in this translation unit"
#endif

#endif /* CAI_H_INCLUDED */

#if defined(CAI_CORE_IMPLEMENTATION) || defined(CAI_PRIV_WANT_ERRORS)
#include <stdarg.h>
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

/* ================================================================== >>writing
 * The one writer of sentences, for all headers. It needs no stdio. It is compiled with the implementation of
 * this header, and with that of another header that defines CAI_PRIV_WANT_ERRORS. */
#if (defined(CAI_CORE_IMPLEMENTATION) || defined(CAI_PRIV_WANT_ERRORS)) && !defined(CAI_PRIV_ERRORS)
#define CAI_PRIV_ERRORS

#if defined(__MINGW32__) && defined(__GNUC__) && !defined(__clang__)
#define CAI_PRIV_PRINTF(text, values) __attribute__((format(gnu_printf, text, values)))
#elif defined(__GNUC__) || defined(__clang__)
#define CAI_PRIV_PRINTF(text, values) __attribute__((format(printf, text, values)))
#else
#define CAI_PRIV_PRINTF(text, values)
#endif

/* A line of text of bounded size. Text that does not fit is cut, and the cut is visible. */
typedef struct cai_priv_text {
    char *start, *at, *end; /* end: the last place for the NUL */
    int32_t cut;
} cai_priv_text;

static inline cai_priv_text cai_priv_text_open(char *buffer, int32_t capacity)
{
    cai_priv_text text;
    text.start = text.at = buffer;
    text.end = buffer + capacity - 1;
    text.cut = 0;
    return text;
}

CAI_PRIV_COLD int32_t cai_priv_text_close(cai_priv_text *text)
{
    if (text->cut && text->end - text->start >= 3) memcpy(text->end - 3, "...", 3);
    *text->at = 0;
    return (int32_t)(text->at - text->start);
}

CAI_PRIV_COLD void cai_priv_put_char(cai_priv_text *text, char c)
{
    if (text->at < text->end) *text->at++ = c;
    else text->cut = 1;
}

CAI_PRIV_COLD void cai_priv_put(cai_priv_text *text, const char *string)
{
    while (*string) cai_priv_put_char(text, *string++);
}

CAI_PRIV_COLD void cai_priv_put_digits(cai_priv_text *text, uint64_t value, uint32_t base)
{
    char digits[20];
    int32_t n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (n) cai_priv_put_char(text, digits[--n]);
}

CAI_PRIV_COLD void cai_priv_put_int(cai_priv_text *text, int64_t value)
{
    if (value < 0) cai_priv_put_char(text, '-');
    cai_priv_put_digits(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
}

CAI_PRIV_COLD void cai_priv_put_index(cai_priv_text *text, int32_t index)
{
    cai_priv_put_char(text, '[');
    cai_priv_put_int(text, index);
    cai_priv_put_char(text, ']');
}

/* Writes a sentence with its values, by a part of printf that the compiler can check: %s %.*s %c %p %%, and
 * %d %u %x, each with l or ll or neither. */
CAI_PRIV_PRINTF(2, 0)
CAI_PRIV_COLD void cai_priv_put_values(cai_priv_text *text, const char *format, va_list values)
{
    for (; *format; ++format) {
        int32_t most = INT32_MAX, longs = 0;
        uint64_t number = 0;
        const char *string;
        if (*format != '%') {
            cai_priv_put_char(text, *format);
            continue;
        }
        for (++format; *format == '.' || *format == '*'; ++format) {
            if (*format == '*') most = va_arg(values, int);
        }
        for (; *format == 'l'; ++format) ++longs;
        if (*format == 'u' || *format == 'x') {
            if (longs > 1) number = va_arg(values, unsigned long long);
            else number = longs ? va_arg(values, unsigned long) : va_arg(values, unsigned);
            cai_priv_put_digits(text, number, *format == 'x' ? 16 : 10);
        } else if (*format == 'd') {
            if (longs > 1) cai_priv_put_int(text, va_arg(values, long long));
            else cai_priv_put_int(text, longs ? va_arg(values, long) : va_arg(values, int));
        } else if (*format == 's') {
            for (string = va_arg(values, const char *); most > 0 && *string; --most)
                cai_priv_put_char(text, *string++);
        } else if (*format == 'p') {
            cai_priv_put(text, "0x");
            cai_priv_put_digits(text, (uintptr_t)va_arg(values, void *), 16);
        } else {
            cai_priv_put_char(text, *format == 'c' ? (char)va_arg(values, int) : '%');
        }
    }
}

CAI_PRIV_PRINTF(2, 3)
CAI_PRIV_COLD void cai_priv_say(cai_priv_text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    cai_priv_put_values(text, format, values);
    va_end(values);
}

/* Fills an error except for its message, which is open then. `status` may have a rule (CAI_PRIV_RULE). */
CAI_PRIV_COLD cai_priv_text cai_priv_error_open(cai_error *err, cai_status status, int32_t entry, int32_t index)
{
    err->code = CAI_PRIV_STATUS(status);
    err->native = 0;
    err->entry = entry;
    err->index = index;
    err->rule = status >> 8;
    return cai_priv_text_open(err->message, (int32_t)sizeof err->message);
}

/* Does the same as cai_priv_error. The message has `used` bytes already. */
CAI_PRIV_PRINTF(4, 0)
CAI_PRIV_COLD cai_status cai_priv_error_values(cai_error *err, cai_status status, size_t used,
                                               const char *format, va_list values)
{
    cai_priv_text text;
    const cai_status plain = CAI_PRIV_STATUS(status);
    if (!err) return plain;
    text = cai_priv_error_open(err, status, plain == CAI_ERR_STREAM ? CAI_ENTRY_STREAM : CAI_ENTRY_NONE, -1);
    text.at += used;
    cai_priv_put_values(&text, format, values);
    (void)cai_priv_text_close(&text);
    return plain;
}

/* Fills `err` if it is not NULL, with entry and index of none. `status` may have a rule (CAI_PRIV_RULE).
 * Returns the status without it. A message that does not fit ends in "...". */
CAI_PRIV_PRINTF(3, 4)
CAI_PRIV_COLD cai_status cai_priv_error(cai_error *err, cai_status status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    status = cai_priv_error_values(err, status, 0, format, values);
    va_end(values);
    return status;
}

/* Puts "name: " or, if `index` is not negative, "name[index]: " before the message of an error that has one.
 * Returns `status`. */
CAI_PRIV_COLD cai_status cai_priv_error_before(cai_error *err, cai_status status, const char *name,
                                               int32_t index)
{
    cai_error before;
    cai_priv_text text;
    if (!err) return status;
    before = *err;
    text = cai_priv_text_open(err->message, (int32_t)sizeof err->message);
    cai_priv_put(&text, name);
    if (index >= 0) cai_priv_put_index(&text, index);
    cai_priv_put(&text, ": ");
    cai_priv_put(&text, before.message);
    (void)cai_priv_text_close(&text);
    return status;
}

#endif /* CAI_PRIV_ERRORS */

/* ============================================================ >>implementation
 *   >>platform  >>text  >>failing  >>dtype  >>facts  >>overlap  >>judging  >>descr
 *   >>import  >>export  >>describing  >>expecting  >>viewing  >>decoding streams */

#if defined(CAI_CORE_IMPLEMENTATION) && !defined(CAI_CORE_IMPLEMENTED)
#define CAI_CORE_IMPLEMENTED

/* ----------------------------------------------------------------- >>platform */
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define CAI_PRIV_NATIVE_ORDER '>'
#else
#define CAI_PRIV_NATIVE_ORDER '<'
#endif

/* On 32-bit targets clang's builtin needs a library function that libgcc does not have. */
#if (defined(__clang__) || defined(__GNUC__)) && UINTPTR_MAX > 0xffffffff
#define CAI_PRIV_OVERFLOW_BUILTINS
#endif

#if defined(CAI_NAMESPACE)
enum { CAI_PRIV_NAMESPACE_IS_THE_DECLARED_ONE = CAI_PRIV_RENAMED(cai_priv_declared) };
#endif

/* The layout of the ABI structs with pointers of 8 and of 4 bytes. */
#define CAI_PRIV_ASSERT(name, condition) typedef char cai_priv_assert_##name[(condition) ? 1 : -1]
#define CAI_PRIV_BY_POINTER(wide, narrow) (sizeof(void *) == 8 ? (size_t)(wide) : (size_t)(narrow))
CAI_PRIV_ASSERT(dtype, sizeof(struct cai_dtype_v0) == 24);
CAI_PRIV_ASSERT(field, sizeof(struct cai_field_v0) == CAI_PRIV_BY_POINTER(144, 136));
CAI_PRIV_ASSERT(array, sizeof(struct cai_array_v0) == CAI_PRIV_BY_POINTER(1216, 1200));
CAI_PRIV_ASSERT(data, offsetof(struct cai_array_v0, data) == CAI_PRIV_BY_POINTER(32, 24));
CAI_PRIV_ASSERT(shape, offsetof(struct cai_array_v0, shape) == CAI_PRIV_BY_POINTER(192, 176));

/* Stores count * step for count >= 0. Returns true if it overflows. */
static inline int cai_priv_mul(int64_t count, int64_t step, int64_t *out)
{
#if defined(CAI_PRIV_OVERFLOW_BUILTINS)
    return __builtin_mul_overflow(count, step, out);
#else
    if (count > 0 && (step > INT64_MAX / count || step < INT64_MIN / count)) return 1;
    *out = count * step;
    return 0;
#endif
}

static inline int cai_priv_add(int64_t a, int64_t b, int64_t *out)
{
#if defined(CAI_PRIV_OVERFLOW_BUILTINS)
    return __builtin_add_overflow(a, b, out);
#else
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return 1;
    *out = a + b;
    return 0;
#endif
}

static inline int cai_priv_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
#if defined(CAI_PRIV_OVERFLOW_BUILTINS)
    return __builtin_mul_overflow(a, b, out);
#else
    *out = a * b;
    return a && b > UINT64_MAX / a;
#endif
}

/* Multiplies modulo 2^64, for addresses and for strides that no element uses. */
static inline int64_t cai_priv_wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static inline uint64_t cai_priv_magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* --------------------------------------------------------------------- >>text */
enum { CAI_PRIV_QUOTED = 4 * 40 + 6 };

/* Puts text of a producer in quotes, at most 40 bytes of it, so that the rest fits. Returns `out`. */
CAI_PRIV_COLD const char *cai_priv_quote(const cai_token *token, char out[CAI_PRIV_QUOTED])
{
    cai_priv_text text = cai_priv_text_open(out, CAI_PRIV_QUOTED);
    uint32_t i;
    cai_priv_put_char(&text, '\'');
    for (i = 0; i < token->length && i < 40; ++i) {
        const unsigned char c = (unsigned char)token->text[i];
        if (c >= ' ' && c < 127) {
            cai_priv_put_char(&text, token->text[i]);
        } else {
            cai_priv_put(&text, c < 16 ? "\\x0" : "\\x");
            cai_priv_put_digits(&text, c, 16);
        }
    }
    cai_priv_put(&text, i < token->length ? "...'" : "'");
    (void)cai_priv_text_close(&text);
    return out;
}

static void cai_priv_put_tuple(cai_priv_text *text, int32_t count, const int64_t *values)
{
    for (int32_t i = 0; i < count; ++i) {
        cai_priv_put(text, i ? ", " : "(");
        cai_priv_put_int(text, values[i]);
    }
    cai_priv_put(text, count > 1 ? ")" : count ? ",)" : "()");
}

/* Returns string `n` of strings that follow one another. */
static const char *cai_priv_nth(const char *strings, int32_t n)
{
    while (n-- > 0) strings += strlen(strings) + 1;
    return strings;
}

static const char *cai_priv_kind_name(int32_t kind)
{
    return cai_priv_nth("a value of unknown kind\0None\0a bool\0an int\0an int\0an int\0an object with "
                        "__index__\0a float\0a str\0bytes\0a tuple\0a list\0a dict\0an object",
                        kind > 0 && kind < CAI_TOKEN_OTHER ? kind : 0);
}

static const char cai_priv_forgivable[] = " (accepted by CAI_LENIENT)";

/* ------------------------------------------------------------------ >>failing */
CAI_API int32_t cai_version(void)
{
    return CAI_H_INCLUDED;
}

CAI_API const char *cai_status_name(cai_status status)
{
#define CAI_PRIV_NAME(name, number, exception, text) #name "\0"
    const int32_t known = status >= 0 && status < CAI_STATUS_COUNT;
    return cai_priv_nth("CAI_OK\0" CAI_STATUS_LIST(CAI_PRIV_NAME) "CAI_ERR_UNKNOWN",
                        known ? status : CAI_STATUS_COUNT);
#undef CAI_PRIV_NAME
}

CAI_API const char *cai_entry_name(int32_t entry)
{
#define CAI_PRIV_NAME(name, number, key) key "\0"
    return cai_priv_nth("\0" CAI_ENTRY_LIST(CAI_PRIV_NAME), entry > 0 && entry < CAI_ENTRY_COUNT ? entry : 0);
#undef CAI_PRIV_NAME
}

/* What a judging function needs: the error and the profile. */
typedef struct cai_priv_judge {
    cai_error *err;
    uint32_t lenient;
} cai_priv_judge;

/* Opens the message of a failure. If the sentence begins with a blank, a comma or a colon, the place comes
 * first: "shape[2]", or "shape" if Python has no index there. A wrong value or type breaks the rule of its
 * entry, unless `status` has another rule. Streams have several protocols. */
CAI_PRIV_COLD cai_priv_text cai_priv_fail_open(cai_error *err, cai_status status, int32_t entry, int32_t index,
                                               const char *sentence)
{
    static const uint8_t rules[] = {0, 3, 4, 5, 8, 19, 0, 40, 50};
    cai_priv_text text;
    if (status == CAI_ERR_TYPE || status == entry + 4) status = CAI_PRIV_RULE(status, rules[entry]);
    text = cai_priv_error_open(err, status, entry, index);
    if (!strchr(" ,:", *sentence)) return text;
    cai_priv_put(&text, cai_entry_name(entry));
    if (index >= 0 && entry != CAI_ENTRY_TYPESTR && entry != CAI_ENTRY_MASK) cai_priv_put_index(&text, index);
    return text;
}

/* Fails at an entry. `status` may have a rule (CAI_PRIV_RULE). Returns the status without it. */
CAI_PRIV_PRINTF(5, 6)
CAI_PRIV_COLD cai_status cai_priv_fail(cai_error *err, cai_status status, int32_t entry, int32_t index,
                                       const char *format, ...)
{
    cai_priv_text text;
    va_list values;
    if (!err) return CAI_PRIV_STATUS(status);
    text = cai_priv_fail_open(err, status, entry, index, format);
    va_start(values, format);
    cai_priv_put_values(&text, format, values);
    va_end(values);
    (void)cai_priv_text_close(&text);
    return err->code;
}

/* Rejects a value that is not valid for its entry. The status of an entry is the entry + 4. `entry` may have
 * a rule (CAI_PRIV_RULE). */
#define CAI_PRIV_WRONG(err, entry, index, ...) \
    cai_priv_fail(err, (entry) + 4, CAI_PRIV_STATUS(entry), index, __VA_ARGS__)
CAI_PRIV_ASSERT(status_of_shape, CAI_ERR_SHAPE == CAI_ENTRY_SHAPE + 4);
CAI_PRIV_ASSERT(status_of_mask, CAI_ERR_MASK == CAI_ENTRY_MASK + 4);

/* Rejects a value of the wrong type: "shape must be a tuple, not a list (accepted by CAI_LENIENT)".
 * `forgiven` is the kind for CAI_LENIENT, or 0. `entry` may have a rule (CAI_PRIV_RULE). */
CAI_PRIV_COLD cai_status cai_priv_mistyped(cai_error *err, int32_t entry, int32_t index, const char *sentence,
                                           const cai_token *token, int32_t forgiven)
{
    const cai_status status = CAI_PRIV_RULE(CAI_ERR_TYPE, entry >> 8);
    cai_priv_text text;
    if (!err) return CAI_ERR_TYPE;
    text = cai_priv_fail_open(err, status, CAI_PRIV_STATUS(entry), index, sentence);
    cai_priv_put(&text, sentence);
    cai_priv_put(&text, ", not ");
    cai_priv_put(&text, cai_priv_kind_name(token->kind));
    if (token->kind == forgiven) cai_priv_put(&text, cai_priv_forgivable);
    (void)cai_priv_text_close(&text);
    return CAI_ERR_TYPE;
}

CAI_API cai_status cai_error_set(cai_status status, const char *name, const char *message, cai_error *err)
{
    cai_priv_text text;
    if (!status || !err) return status;
    text = cai_priv_error_open(err, status, CAI_ENTRY_NONE, -1);
    cai_priv_put(&text, message ? message : cai_status_name(status));
    (void)cai_priv_text_close(&text);
    return cai_error_name(status, name, err);
}

CAI_API cai_status cai_error_name(cai_status status, const char *name, cai_error *err)
{
    return status && name ? cai_priv_error_before(err, status, name, -1) : status;
}

/* Fails with a sentence such as "cai_import: in or out is NULL". */
CAI_PRIV_COLD cai_status cai_priv_is_null(cai_error *err, const char *argument)
{
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s is NULL", argument);
}

CAI_PRIV_COLD cai_status cai_priv_bad_ndim(cai_error *err, int32_t ndim)
{
    return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_ARGUMENT, 29), CAI_ENTRY_SHAPE, -1,
                         "ndim = %d is not in 0..64", ndim);
}

/* Checks the shape that a caller gives. */
static inline cai_status cai_priv_check_shape(int32_t ndim, const int64_t *shape, cai_error *err)
{
    if (ndim < 0 || ndim > CAI_MAX_NDIM) return cai_priv_bad_ndim(err, ndim);
    return shape || !ndim ? CAI_OK : cai_priv_is_null(err, "the argument shape");
}

/* -------------------------------------------------------------------- >>dtype */
/* Returns the name of a dtype in native order, or NULL if there is none of this code. */
CAI_PRIV_NOINLINE const char *cai_priv_name_of(int32_t code)
{
#define CAI_PRIV_CODE(name, kind, bytes, format, text) name,
#define CAI_PRIV_NAME(name, kind, bytes, format, text) text "\0"
    static const int32_t codes[] = {CAI_DTYPE_LIST(CAI_PRIV_CODE) CAI_ANY_DTYPE};
    int32_t n = 0;
    while (codes[n] && codes[n] != code) ++n;
    return codes[n] ? cai_priv_nth(CAI_DTYPE_LIST(CAI_PRIV_NAME), n) : NULL;
#undef CAI_PRIV_NAME
#undef CAI_PRIV_CODE
}

/* Returns whether a code is that of a dtype with a typestr, in native order. */
static inline int cai_priv_code_known(int32_t code)
{
#define CAI_PRIV_CASE(name, kind, bytes, format, text) case name:
    switch (code) {
        CAI_TYPESTR_DTYPES(CAI_PRIV_CASE)
        return 1;
    default: return 0;
    }
#undef CAI_PRIV_CASE
}

CAI_API const char *cai_dtype_name(int32_t code)
{
    const char *name = cai_priv_name_of(code & ~CAI_SWAPPED(0));
    return name ? name : "unknown";
}

/* Returns the bytes of the unit that a byte order applies to, or 1 if it applies to none (R31). The unit is
 * aligned to the largest power of two that divides it. */
static inline int32_t cai_priv_unit_bytes(int32_t kind, int32_t itemsize)
{
    if (kind == 'c') return itemsize / 2;
    if (kind == 'U') return 4;
    return kind == 'S' || kind == 'V' || kind == 't' ? 1 : itemsize;
}

static inline void cai_priv_dtype_fill(cai_dtype *out, int32_t code, int32_t itemsize, int32_t alignment)
{
    out->code = code;
    out->itemsize = itemsize;
    out->bits = 0;
    out->unit = CAI_UNIT_NONE;
    out->unit_count = 0;
    out->alignment = alignment;
}

/* Returns the bits of a value of a narrow format (10 to 15, packed 26 to 31), or 0 for another one. */
static inline int32_t cai_priv_narrow_bits(int32_t code)
{
    const int32_t format = code >> 16 & 0xff, row = (format & 15) - 10;
    return format > 31 || row < 0 ? 0 : "\1\2\4\6\6\4"[row];
}

enum {
    CAI_PRIV_PACKED = 0x100000, /* in the code of a packed dtype, also of later versions, and of no other */
    CAI_PRIV_NARROW = 0x180000  /* one of these bits: perhaps a narrow format */
};

CAI_API int32_t cai_dtype_values(const cai_dtype *dtype)
{
    const int packed = dtype && dtype->code & CAI_PRIV_PACKED && dtype->bits > 0;
    const int64_t values = packed ? (int64_t)dtype->itemsize * 8 / dtype->bits : 1;
    return values > 1 && values <= INT32_MAX ? (int32_t)values : 1;
}

CAI_PRIV_COLD cai_status cai_priv_reject_code(int32_t code, cai_error *err)
{
    return cai_priv_error(err, CAI_ERR_ARGUMENT,
                          "code 0x%llx is no dtype of a fixed size (for others: cai_dtype_parse)",
                          (unsigned long long)code);
}

/* cai_dtype_of for swapped bytes, and for a dtype without a typestr. */
CAI_PRIV_NOINLINE cai_status cai_priv_dtype_of_rare(int32_t code, cai_dtype *out, cai_error *err)
{
    const int32_t itemsize = code & 0xff, plain = code & 0xffff, kind = plain >> 8;
    const int32_t unit = cai_priv_unit_bytes(kind, itemsize);
    const int swapped = code == CAI_SWAPPED(plain) && unit > 1 && cai_priv_code_known(plain);
    if (!itemsize || !(swapped || cai_priv_name_of(code))) return cai_priv_reject_code(code, err);
    cai_priv_dtype_fill(out, code, itemsize, unit & -unit);
    if (!swapped) out->bits = cai_priv_narrow_bits(code);
    return CAI_OK;
}

static inline cai_status cai_priv_dtype_of(int32_t code, cai_dtype *out, cai_error *err)
{
    const int32_t itemsize = code & 0xff;
    int32_t unit;
    if (code > 0xffff) return cai_priv_dtype_of_rare(code, out, err);
    if (!itemsize || !cai_priv_code_known(code)) return cai_priv_reject_code(code, err);
    unit = code >> 8 == 'c' ? itemsize / 2 : itemsize;
    cai_priv_dtype_fill(out, code, itemsize, unit & -unit);
    return CAI_OK;
}

CAI_API cai_status cai_dtype_of(int32_t code, cai_dtype *out, cai_error *err)
{
    return out ? cai_priv_dtype_of(code, out, err) : cai_priv_is_null(err, "cai_dtype_of: out");
}

/* Units in the order of CAI_UNIT_...; "generic" is NumPy's word for none. */
static const char cai_priv_unit_names[] = "generic\0Y\0M\0W\0D\0h\0m\0s\0ms\0us\0ns\0ps\0fs\0as";

/* Reads a number without sign or leading zeros. Above INT32_MAX it saturates. Returns -1 if there is none. */
static int64_t cai_priv_scan_number(const char *s, uint32_t n, uint32_t *at)
{
    const uint32_t first = *at;
    int64_t number = 0;
    for (; *at < n && s[*at] >= '0' && s[*at] <= '9'; ++*at) {
        if (number <= INT32_MAX) number = number * 10 + (s[*at] - '0');
    }
    return *at == first || (s[first] == '0' && *at - first > 1) ? -1 : number;
}

/* Reads "[25s]" from the bracket on (R34). Returns the rule and what is wrong, or NULL. */
static const char *cai_priv_scan_unit(const char *s, uint32_t n, uint32_t *at, cai_dtype *out)
{
    const uint32_t digits = *at + 1;
    uint32_t name = digits, end;
    int64_t count = cai_priv_scan_number(s, n, &name);
    int32_t unit = CAI_UNIT_NONE;
    const char *known = cai_priv_unit_names;
    if (name == digits) count = 1;
    if (count < 1 || count > INT32_MAX) return "34 the multiple is not in 1..2147483647";
    for (end = name; end < n && s[end] != ']';) ++end;
    for (; unit <= CAI_UNIT_ATTOSECOND; ++unit, known += strlen(known) + 1) {
        if (strlen(known) == end - name && memcmp(known, s + name, end - name) == 0) break;
    }
    if (end == n || unit > CAI_UNIT_ATTOSECOND || (unit == CAI_UNIT_NONE && name > digits))
        return "34 NumPy has no such unit";
    *at = end + 1;
    out->unit = unit;
    out->unit_count = unit == CAI_UNIT_NONE ? 0 : (int32_t)count;
    return NULL;
}

/* Fills a dtype by kind and number (R32, R36-R38). Returns the rule and what is wrong, or NULL. */
static const char *cai_priv_scan_size(int32_t kind, int64_t number, cai_dtype *out)
{
    const int32_t flexible = kind == 'S' || kind == 'V' || kind == 'U' || kind == 't';
    const int32_t size = (int32_t)number, code = CAI_CODE(kind, flexible ? 0 : size & 0xff, 0);
    const int32_t unit = cai_priv_unit_bytes(kind, size);
    if (number == 0) return "38 the size is 0";
    if (number > (kind == 'U' ? INT32_MAX / 4 : INT32_MAX)) return "32 the size exceeds 2147483647 bytes";
    if (!flexible && (number > 32 || !cai_priv_code_known(code))) return "32 the kind has no such size";
    cai_priv_dtype_fill(out, code, kind == 'U' ? 4 * size : kind == 't' ? 0 : size, unit & -unit);
    if (kind == 't') out->bits = size;
    return NULL;
}

/* Reads kind, digits and unit from *at on, by the grammar (R30). Returns the rule and what is wrong
 * at *at, or NULL. */
CAI_PRIV_NOINLINE const char *cai_priv_scan_typestr(const char *s, uint32_t n, uint32_t *at, char order,
                                                    cai_dtype *out)
{
    int64_t number;
    const char kind = *at < n ? s[*at] : (char)0, *wrong;
    uint32_t end = *at + 1;
    if (kind == 'O') return "37 Python objects cannot live in device memory";
    if (!kind || !strchr("tbiufcmMSUV", kind)) return "30 the kind must be one of t b i u f c m M S U V";
    number = cai_priv_scan_number(s, n, &end);
    ++*at;
    wrong = number < 0 ? "30 the size must be in decimal digits" : cai_priv_scan_size(kind, number, out);
    if (wrong) return wrong;
    *at = end;
    if ((kind == 'm' || kind == 'M') && end < n && s[end] == '[') wrong = cai_priv_scan_unit(s, n, at, out);
    if (wrong) return wrong;
    if (*at != n) return "30 something follows the size";
    if (order != '|' && order != CAI_PRIV_NATIVE_ORDER && cai_priv_unit_bytes(kind, out->itemsize) > 1)
        out->code = CAI_SWAPPED(out->code);
    return NULL;
}

/* Reads a typestr of three characters, a dtype of fixed size in native order. Most typestrs are such. */
static inline int cai_priv_plain_typestr(const cai_token *token, cai_dtype *out)
{
    const unsigned char *s = (const unsigned char *)token->text;
    int32_t size, code;
    if (token->kind != CAI_TOKEN_STR || token->length != 3) return 0;
    if ((s[0] != CAI_PRIV_NATIVE_ORDER && s[0] != '|') || s[2] < '1' || s[2] > '9') return 0;
    size = s[2] - '0';
    code = CAI_CODE(s[1], size, 0);
    if (!cai_priv_code_known(code)) return 0;
    cai_priv_dtype_fill(out, code, size, s[1] == 'c' ? size / 2 : size);
    return 1;
}

/* Rejects with a sentence such as "typestr '<i3' is not valid at 2: the kind has no such size". `wrong` has a
 * rule of two digits and a blank before its text. */
CAI_PRIV_COLD cai_status cai_priv_reject_typestr(cai_error *err, int32_t entry, int32_t index,
                                                 const cai_token *token, uint32_t at, const char *wrong,
                                                 int forgiven)
{
    const int32_t rule = (wrong[0] - '0') * 10 + (wrong[1] - '0');
    char quoted[CAI_PRIV_QUOTED];
    return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(entry, rule), index,
                          entry == CAI_ENTRY_DESCR ? ": typestr %s is not valid at %u: %s%s"
                                                   : " %s is not valid at %u: %s%s",
                          cai_priv_quote(token, quoted), at, wrong + 3, forgiven ? cai_priv_forgivable : "");
}

/* Judges the typestr of an entry (index -1), or of field `index` of a descr. */
static cai_status cai_priv_judge_typestr(const cai_priv_judge *judge, int32_t entry, int32_t index,
                                         const cai_token *token, cai_dtype *out)
{
    char first;
    const char *wrong, native = CAI_PRIV_NATIVE_ORDER;
    int ordered, forgiven = 0;
    uint32_t at;
    if (token->kind != CAI_TOKEN_STR && !(token->kind == CAI_TOKEN_BYTES && judge->lenient))
        return cai_priv_mistyped(judge->err, entry, index, " must be a str", token, CAI_TOKEN_BYTES);
    first = token->length ? token->text[0] : (char)0;
    ordered = first == '<' || first == '>' || first == '|';
    at = ordered || first == '=' ? 1 : 0;
    wrong = cai_priv_scan_typestr(token->text, token->length, &at, ordered ? first : native, out);
    if (!ordered && !judge->lenient) {
        at = 0;
        forgiven = !wrong;
        wrong = "30 the byte order must be < > or |";
    }
    if (entry == CAI_ENTRY_TYPESTR) index = (int32_t)at;
    return wrong ? cai_priv_reject_typestr(judge->err, entry, index, token, at, wrong, forgiven) : CAI_OK;
}

CAI_API cai_status cai_dtype_parse(const char *typestr, int64_t length, uint32_t flags, cai_dtype *out,
                                   cai_error *err)
{
    const cai_priv_judge judge = {err, flags & CAI_LENIENT};
    const cai_token token = {CAI_TOKEN_STR, (uint32_t)length, 0, typestr};
    cai_dtype dtype;
    if (!typestr || !out) return cai_priv_is_null(err, "cai_dtype_parse: typestr or out");
    if (length < 0 || length > INT32_MAX)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_dtype_parse: length = %lld is not in 0..2147483647",
                              (long long)length);
    CAI_TRY(cai_priv_judge_typestr(&judge, CAI_ENTRY_TYPESTR, -1, &token, &dtype));
    *out = dtype;
    return CAI_OK;
}

CAI_API int32_t cai_dtype_typestr(const cai_dtype *dtype, char *buffer, int32_t capacity)
{
    cai_priv_text text;
    const char native = CAI_PRIV_NATIVE_ORDER, other = native == '<' ? '>' : '<';
    int32_t format, kind, size, unit_bytes;
    if (!buffer || capacity < 1) return 0;
    *buffer = 0;
    if (!dtype) return 0;
    format = dtype->code >> 16 & 0xff;
    kind = format ? 'V' : dtype->code >> 8 & 0xff;
    size = kind == 't' ? dtype->bits : kind == 'U' ? dtype->itemsize / 4 : dtype->itemsize;
    unit_bytes = format ? (dtype->bits ? 1 : dtype->itemsize) : cai_priv_unit_bytes(kind, dtype->itemsize);
    text = cai_priv_text_open(buffer, capacity);
    cai_priv_put_char(&text, unit_bytes <= 1 ? '|' : dtype->code > 0xffffff ? other : native);
    cai_priv_put_char(&text, (char)kind);
    cai_priv_put_int(&text, size);
    if (dtype->unit > CAI_UNIT_NONE && dtype->unit <= CAI_UNIT_ATTOSECOND) {
        cai_priv_put_char(&text, '[');
        if (dtype->unit_count != 1) cai_priv_put_int(&text, dtype->unit_count);
        cai_priv_put(&text, cai_priv_nth(cai_priv_unit_names, dtype->unit));
        cai_priv_put_char(&text, ']');
    }
    text.cut = 0; /* no dots at a cut, they would change the meaning */
    return cai_priv_text_close(&text);
}

/* Writes "float32" if this name is the whole dtype, else the typestr. */
static void cai_priv_put_dtype(cai_priv_text *text, const cai_dtype *dtype)
{
    const int32_t kind = dtype->code >> 8 & 0xff, plain = dtype->code == (dtype->code & 0xffffff);
    char typestr[CAI_TYPESTR_SIZE];
    const int named = (dtype->code & 0xff) && plain && kind != 'm' && kind != 'M';
    if (!named) (void)cai_dtype_typestr(dtype, typestr, CAI_TYPESTR_SIZE);
    cai_priv_put(text, named ? cai_dtype_name(dtype->code) : typestr);
}

/* -------------------------------------------------------------------- >>facts */
/* Every array is made in two steps. Its maker fills a draft. Then cai_priv_describe judges dtype, data, shape
 * and strides together, and stores them with all facts that follow. */
typedef struct cai_priv_draft {
    const int64_t *shape;   /* in `array`, or of the caller */
    const int64_t *strides; /* the same; NULL: C order */
    cai_array array;        /* the fields that do not follow from others */
} cai_priv_draft;

/* Fills the part of a new array that is the same for all. */
static inline void cai_priv_draft_open(cai_array *array)
{
    array->abi = CAI_ABI;
    array->struct_size = (uint32_t)sizeof *array;
    array->release = NULL;
    array->owner = NULL;
    array->device = CAI_DEVICE_UNKNOWN;
    array->memory = CAI_MEMORY_UNKNOWN;
    array->event = array->thread = 0;
    array->field_count = 0;
}

/* Copies the part of an array that is in use. Axes are copied in pairs, as calls of memcpy cost more. In a
 * struct of another layout, ndim may be any number. */
static void cai_priv_copy(cai_array *to, const cai_array *from)
{
    const size_t pair = 2 * sizeof from->shape[0];
    const int32_t ndim = from->ndim < CAI_MAX_NDIM ? from->ndim : CAI_MAX_NDIM;
    int32_t axis;
    memcpy(to, from, offsetof(cai_array, shape));
    for (axis = 0; axis < ndim; axis += 2) {
        memcpy(&to->shape[axis], &from->shape[axis], pair);
        memcpy(&to->strides[axis], &from->strides[axis], pair);
    }
}

CAI_PRIV_COLD cai_status cai_priv_reject_extent(cai_error *err, int64_t axis, int64_t extent)
{
    if (extent < 0)
        return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_SHAPE, 17), (int32_t)axis, " = %lld is negative",
                              (long long)extent);
    return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_SHAPE, 18), (int32_t)axis,
                          " = %lld makes the array larger than 9223372036854775807 bytes", (long long)extent);
}

/* Rejects the first axis, from the last, that makes the extent in bytes exceed int64 (R27). */
CAI_PRIV_COLD cai_status cai_priv_reject_reach(cai_error *err, const cai_priv_draft *draft)
{
    int64_t lo = 0, hi = draft->array.dtype.itemsize, span = 0;
    int32_t axis = draft->array.ndim;
    while (axis-- > 0) {
        if (cai_priv_mul(draft->shape[axis] - 1, draft->strides[axis], &span) ||
            (span < 0 ? cai_priv_add(lo, span, &lo) : cai_priv_add(hi, span, &hi)))
            break;
    }
    return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_STRIDES, 27), axis,
                          " = %lld over %lld elements reaches beyond 64 bits",
                          (long long)draft->strides[axis], (long long)draft->shape[axis]);
}

/* Rejects a pointer that does not reach all elements, `below` and `above` it in bytes (R14, R28). */
CAI_PRIV_COLD cai_status cai_priv_reject_address(cai_error *err, uint64_t data, uint64_t below, uint64_t above)
{
    if (!data)
        return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_DATA, 14), 0,
                              " = 0 (NULL) but the array is not empty");
    if (data < below)
        return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_DATA, 27), 0,
                              " = %llu but elements begin at -%llu from it, below address 0",
                              (unsigned long long)data, (unsigned long long)below);
    return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_DATA, 28), 0,
                          " = %llu but elements reach %llu bytes above it, past 2^64",
                          (unsigned long long)data, (unsigned long long)above);
}

/* Returns the orders of a dense array (R23). C: strides[k] == itemsize * product of shape[j] over j > k.
 * Fortran: the same over j < k. Axes with shape[k] == 1 do not count. */
CAI_PRIV_NOINLINE uint32_t cai_priv_order(const cai_priv_draft *draft)
{
    const int64_t *shape = draft->shape, *strides = draft->strides;
    uint32_t flags = CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS;
    int64_t c_run = draft->array.dtype.itemsize, f_run = c_run;
    int32_t last = draft->array.ndim, first = 0;
    for (; last-- > 0; ++first) {
        if (shape[first] != 1 && strides[first] != f_run) flags &= ~(uint32_t)CAI_F_CONTIGUOUS;
        if (shape[last] != 1 && strides[last] != c_run) flags &= ~(uint32_t)CAI_C_CONTIGUOUS;
        f_run *= shape[first];
        c_run *= shape[last];
    }
    return flags;
}

CAI_PRIV_NOINLINE uint32_t cai_priv_self_overlap(const cai_priv_draft *draft, uint64_t width, int64_t nbytes);

/* Stores a description except shape and strides. Addresses of elements are sums of the bits in `offsets`. The
 * fields that do not follow from others are those of `given`, or NULL: the caller stores them. */
static inline void cai_priv_store(const cai_array *array, const cai_array *given, uint32_t flags,
                                  uint64_t offsets, int64_t size, int64_t nbytes, cai_array *out)
{
    if (given) memcpy(out, given, offsetof(cai_array, size));
    if (!((uint32_t)offsets & (uint32_t)(array->dtype.alignment - 1))) flags |= CAI_ALIGNED;
    if (array->dtype.code > 0xffffff) flags |= CAI_BYTE_SWAPPED;
    out->flags = array->flags | flags;
    out->size = size;
    out->nbytes = nbytes;
    out->fields = NULL;
    out->mask = NULL;
    out->field_count = array->field_count;
    out->packed_extent = 0;
    out->packed_axis = -1;
    out->backend = CAI_BACKEND_CUDA;
    out->must_understand = out->reserved = 0;
}

/* Counts elements and bytes, and checks for overflow as NumPy does. Extents of 0 are left out (R18), but make
 * *size 0. If the itemsize is 0 (bits), *nbytes is the number of elements without extents of 0. */
static inline cai_status cai_priv_count(cai_error *err, const cai_priv_draft *draft, int64_t *size,
                                        int64_t *nbytes)
{
    const int64_t *shape = draft->shape;
    int64_t run = draft->array.dtype.itemsize, elements = 1, axis = draft->array.ndim;
    if (!run) run = 1;
    while (--axis >= 0) {
        if (shape[axis] > 1) {
            if (cai_priv_mul(shape[axis], run, &run)) return cai_priv_reject_extent(err, axis, shape[axis]);
            elements *= shape[axis];
        } else if (shape[axis] != 1) {
            if (shape[axis] < 0) return cai_priv_reject_extent(err, axis, shape[axis]);
            elements = 0;
        }
    }
    *size = elements;
    *nbytes = run;
    return CAI_OK;
}

/* Stores a description without strides. They become those of C order (R20), or 0 for a bit field. */
static inline cai_status cai_priv_store_c(cai_error *err, const cai_priv_draft *draft, const cai_array *given,
                                          int64_t size, int64_t nbytes, cai_array *out)
{
    const int64_t *shape = draft->shape;
    uint32_t flags = CAI_C_CONTIGUOUS | CAI_NO_SELF_OVERLAP | CAI_DENSE;
    int64_t run = draft->array.dtype.itemsize, last = 1, axis = draft->array.ndim;
    uint64_t data = draft->array.data;
    if (!size) {
        data = 0;
        nbytes = 0;
        flags |= CAI_F_CONTIGUOUS;
    } else if (data - 1 > UINT64_MAX - (uint64_t)nbytes) {
        return cai_priv_reject_address(err, data, 0, (uint64_t)nbytes);
    }
    while (--axis >= 0) {
        const int64_t extent = shape[axis];
        out->shape[axis] = extent;
        out->strides[axis] = run;
        if (extent <= 1) continue;
        run *= extent;
        last = extent;
    }
    if (size == last) flags |= CAI_F_CONTIGUOUS; /* at most one extent above 1 */
    cai_priv_store(&draft->array, given, flags, data, size, nbytes, out);
    out->data = data;
    out->lo = 0;
    out->hi = nbytes;
    return CAI_OK;
}

/* Describes a bit field, packed without gaps, least significant bit first (R33). */
CAI_PRIV_NOINLINE cai_status cai_priv_describe_bits(cai_error *err, const cai_priv_draft *draft, cai_array *out)
{
    const int64_t bits = draft->array.dtype.bits;
    int64_t size = 0, elements = 0, nbytes;
    CAI_TRY(cai_priv_count(err, draft, &size, &elements));
    if (cai_priv_mul(elements / 8, bits, &nbytes) ||
        cai_priv_add(nbytes, (elements % 8 * bits + 7) / 8, &nbytes))
        return cai_priv_reject_extent(err, 0, draft->shape[0]);
    return cai_priv_store_c(err, draft, &draft->array, size, nbytes, out);
}

CAI_PRIV_NOINLINE cai_status cai_priv_describe_c(cai_error *err, const cai_priv_draft *draft, cai_array *out)
{
    int64_t size = 0, nbytes = 0;
    if (!draft->array.dtype.itemsize) return cai_priv_describe_bits(err, draft, out);
    CAI_TRY(cai_priv_count(err, draft, &size, &nbytes));
    return cai_priv_store_c(err, draft, &draft->array, size, nbytes, out);
}

/* Describes an empty array with strides, or rejects a wrong one. An empty array has no element to reach and
 * none to overlap, whatever the strides. */
CAI_PRIV_COLD cai_status cai_priv_describe_rare(cai_error *err, const cai_priv_draft *draft, cai_array *out)
{
    int64_t size = 0, nbytes = 0;
    CAI_TRY(cai_priv_count(err, draft, &size, &nbytes));
    if (size) return cai_priv_reject_reach(err, draft);
    (void)cai_priv_describe_c(err, draft, out); /* cannot fail for a counted, empty array */
    memcpy(out->strides, draft->strides, (size_t)out->ndim * sizeof out->strides[0]);
    return CAI_OK;
}

/* Judges strides that are not nested (see below) or span more than int64, and sets the flag of overlap. */
CAI_PRIV_NOINLINE cai_status cai_priv_judge_overlap(cai_error *err, const cai_priv_draft *draft, uint64_t width,
                                                    uint64_t below, uint32_t *flags)
{
    int64_t size = 0, nbytes = 0;
    CAI_TRY(cai_priv_count(err, draft, &size, &nbytes));
    if (below > (uint64_t)INT64_MAX + 1 || width - below > INT64_MAX)
        return cai_priv_reject_reach(err, draft);
    *flags = cai_priv_self_overlap(draft, width, nbytes);
    return CAI_OK;
}

/* Describes an array with strides. With span[j] = (shape[j] - 1) * |stride[j]|, `width` is itemsize + sum of
 * span[j] over the axes so far, and `below` is the part of that sum with stride[j] < 0. Strides are nested if
 * |stride[k]| >= itemsize + sum over j > k of span[j] for each axis with shape[k] > 1. Nested strides never
 * overlap. nbytes <= width then, so that nbytes cannot overflow. */
CAI_PRIV_NOINLINE cai_status cai_priv_describe_strided(cai_error *err, const cai_priv_draft *draft,
                                                       cai_array *out)
{
    const uint64_t data = draft->array.data;
    const int64_t *shape = draft->shape, *strides = draft->strides;
    uint64_t size = 1, width = (uint64_t)draft->array.dtype.itemsize, below = 0, offsets = 0, span;
    uint32_t flags = CAI_NO_SELF_OVERLAP;
    int64_t axis = draft->array.ndim, nbytes;
    int nested = 1;
    while (--axis >= 0) {
        const int64_t extent = shape[axis], stride = strides[axis];
        const uint64_t step = cai_priv_magnitude(stride);
        if (extent == 1) continue;
        if (extent <= 0 || cai_priv_mul_u64((uint64_t)extent - 1, step, &span))
            return cai_priv_describe_rare(err, draft, out);
        if (step < width) nested = 0;
        width += span;
        if (width < span) return cai_priv_describe_rare(err, draft, out);
        if (stride < 0) below += span;
        size *= (uint64_t)extent;
        offsets |= step;
    }
    if (!nested || width > INT64_MAX)
        CAI_TRY(cai_priv_judge_overlap(err, draft, width, below, &flags));
    if (data < below || data - 1 > UINT64_MAX - (width - below))
        return cai_priv_reject_address(err, data, below, width - below);
    nbytes = (int64_t)size * draft->array.dtype.itemsize;
    if ((flags & CAI_NO_SELF_OVERLAP) && width == (uint64_t)nbytes)
        flags |= CAI_DENSE | cai_priv_order(draft);
    cai_priv_store(&draft->array, &draft->array, flags, data | offsets, (int64_t)size, nbytes, out);
    out->lo = (int64_t)(0 - below);
    out->hi = (int64_t)(width - below);
    for (axis = out->ndim; --axis >= 0;) {
        out->shape[axis] = shape[axis];
        out->strides[axis] = strides[axis];
    }
    return CAI_OK;
}

static inline cai_status cai_priv_describe(cai_error *err, const cai_priv_draft *draft, cai_array *out)
{
    return draft->strides ? cai_priv_describe_strided(err, draft, out)
                          : cai_priv_describe_c(err, draft, out);
}

/* ------------------------------------------------------------------ >>overlap */
/* Finds whether some sum over i of step[i] * x[i] is in [lo, hi], with 0 <= x[i] <= most[i]. The steps are
 * descending: step[0] > step[1] > ... > 0. reach[k] = sum over i >= k of step[i] * most[i] < 2^62. divisor[k] =
 * gcd(step[k], step[k + 1], ...). lo <= reach[0] and hi >= 0. */
enum { CAI_PRIV_MAX_TERMS = 2 * CAI_MAX_NDIM, CAI_PRIV_MAX_WORK = 4096 };
#define CAI_PRIV_MAX_REACH ((uint64_t)1 << 61)

typedef struct cai_priv_sums {
    int32_t count, work;
    uint64_t step[CAI_PRIV_MAX_TERMS];
    int64_t most[CAI_PRIV_MAX_TERMS], reach[CAI_PRIV_MAX_TERMS + 1], divisor[CAI_PRIV_MAX_TERMS];
} cai_priv_sums;

static int32_t cai_priv_sum_in(cai_priv_sums *sums, int32_t term, int64_t lo, int64_t hi)
{
    int64_t first, x, step;
    if (lo <= 0) return CAI_OVERLAP_YES;
    if (hi - hi % sums->divisor[term] < lo) return CAI_OVERLAP_NO;
    if (term + 1 == sums->count) return CAI_OVERLAP_YES;
    step = (int64_t)sums->step[term];
    x = hi / step < sums->most[term] ? hi / step : sums->most[term];
    first = lo > sums->reach[term + 1] ? (lo - sums->reach[term + 1] + step - 1) / step : 0;
    for (; x >= first; --x) {
        int32_t verdict;
        if (--sums->work < 0) return CAI_OVERLAP_UNDECIDED;
        verdict = cai_priv_sum_in(sums, term + 1, lo - x * step, hi - x * step);
        if (verdict != CAI_OVERLAP_NO) return verdict;
    }
    return CAI_OVERLAP_NO;
}

/* Inserts a term by descending step. Equal steps become one term, which changes no sum. */
static void cai_priv_add_term(cai_priv_sums *sums, uint64_t step, int64_t most)
{
    int32_t at = sums->count;
    while (at > 0 && sums->step[at - 1] < step) --at;
    if (at > 0 && sums->step[at - 1] == step) {
        sums->most[at - 1] += most;
        return;
    }
    for (int32_t i = sums->count++; i > at; --i) {
        sums->step[i] = sums->step[i - 1];
        sums->most[i] = sums->most[i - 1];
    }
    sums->step[at] = step;
    sums->most[at] = most;
}

static void cai_priv_close_sums(cai_priv_sums *sums)
{
    int32_t term = sums->count;
    int64_t reach = 0, divisor = 0;
    sums->reach[term] = 0;
    while (term-- > 0) {
        int64_t a = (int64_t)sums->step[term], b = divisor;
        while (b) { /* Euclid */
            divisor = a % b;
            a = b;
            b = divisor;
        }
        sums->divisor[term] = divisor = a;
        sums->reach[term] = reach += (int64_t)sums->step[term] * sums->most[term];
    }
}

/* Returns whether |sum over i >= k of step[i] * d[i]| < item for some 1 <= d[k] <= most[k] and |d[i]| <=
 * most[i]. d is the difference of two positions that first differ along axis k. */
static int32_t cai_priv_overlap_from(cai_priv_sums *axes, int32_t k, int64_t item)
{
    int32_t verdict;
    const int64_t first = (int64_t)axes->step[k];
    cai_priv_sums sums;
    int64_t reach = 0;
    sums.count = 0;
    sums.work = axes->work;
    for (int32_t i = k + 1; i < axes->count; ++i) {
        cai_priv_add_term(&sums, axes->step[i], 2 * axes->most[i]);
        reach += (int64_t)axes->step[i] * axes->most[i];
    }
    if (first - item >= reach) return CAI_OVERLAP_NO;
    if (axes->most[k] > 1) cai_priv_add_term(&sums, axes->step[k], axes->most[k] - 1);
    cai_priv_close_sums(&sums);
    verdict = cai_priv_sum_in(&sums, 0, reach - first - (item - 1), reach - first + item - 1);
    axes->work = sums.work;
    return verdict;
}

/* Returns CAI_NO_SELF_OVERLAP, CAI_SELF_OVERLAP, or 0 if the search is given up. The axes with shape > 1 become
 * terms, most = shape - 1, by descending stride. If step[i] == step[j], elements overlap. If step[k] >=
 * itemsize + sum over i > k of step[i] * most[i] for all k, none do. */
CAI_PRIV_NOINLINE uint32_t cai_priv_self_overlap(const cai_priv_draft *draft, uint64_t width, int64_t nbytes)
{
    const int64_t itemsize = draft->array.dtype.itemsize;
    uint64_t enclosed = (uint64_t)itemsize;
    cai_priv_sums axes;
    int32_t count = 0, nested = 1;
    if (width < (uint64_t)nbytes) return CAI_SELF_OVERLAP; /* more bytes than places for them */
    axes.count = 0;
    axes.work = CAI_PRIV_MAX_WORK;
    for (int32_t axis = 0; axis < draft->array.ndim; ++axis) {
        if (draft->shape[axis] == 1) continue;
        cai_priv_add_term(&axes, cai_priv_magnitude(draft->strides[axis]), draft->shape[axis] - 1);
        ++count;
    }
    if (axes.count < count || (count && axes.step[count - 1] < enclosed)) return CAI_SELF_OVERLAP;
    for (int32_t k = count; k-- > 0;) {
        if (axes.step[k] < enclosed) nested = 0;
        enclosed += axes.step[k] * (uint64_t)axes.most[k];
    }
    if (nested) return CAI_NO_SELF_OVERLAP;
    if (width > CAI_PRIV_MAX_REACH) return 0;
    for (int32_t k = 0; k < count; ++k) {
        const int32_t verdict = cai_priv_overlap_from(&axes, k, itemsize);
        if (verdict != CAI_OVERLAP_NO) return verdict == CAI_OVERLAP_YES ? CAI_SELF_OVERLAP : 0;
    }
    return CAI_NO_SELF_OVERLAP;
}

/* Adds the axes of one array to a sum. *item becomes the bytes that each sum stands for. A dense array is a
 * single item. */
static void cai_priv_add_axes(cai_priv_sums *sums, const cai_array *array, int64_t *item)
{
    *item = array->nbytes;
    if (array->flags & CAI_DENSE) return;
    *item = array->dtype.itemsize;
    for (int32_t axis = 0; axis < array->ndim; ++axis) {
        const uint64_t step = cai_priv_magnitude(array->strides[axis]);
        if (array->shape[axis] > 1 && step) cai_priv_add_term(sums, step, array->shape[axis] - 1);
    }
}

CAI_API int32_t cai_overlap(const cai_array *a, const cai_array *b)
{
    uint64_t a_start, b_start, a_span, b_span;
    int64_t a_item, b_item, apart;
    cai_priv_sums sums;
    if (cai_array_check(a, NULL) || cai_array_check(b, NULL)) return CAI_OVERLAP_UNDECIDED;
    if (!a->size || !b->size) return CAI_OVERLAP_NO;
    a_start = a->data + (uint64_t)a->lo;
    b_start = b->data + (uint64_t)b->lo;
    a_span = (uint64_t)a->hi - (uint64_t)a->lo;
    b_span = (uint64_t)b->hi - (uint64_t)b->lo;
    if (a_start <= b_start ? b_start - a_start >= a_span : a_start - b_start >= b_span) return CAI_OVERLAP_NO;
    if (a_span > CAI_PRIV_MAX_REACH || b_span > CAI_PRIV_MAX_REACH) return CAI_OVERLAP_UNDECIDED;
    sums.count = 0;
    sums.work = CAI_PRIV_MAX_WORK;
    cai_priv_add_axes(&sums, a, &a_item);
    cai_priv_add_axes(&sums, b, &b_item);
    cai_priv_close_sums(&sums);
    /* Elements begin at a_start + s and b_start + b_reach - t, where s + t is a sum of the terms and t <=
     * b_reach. They share a byte if -a_item < a_start + s - (b_start + b_reach - t) < b_item. */
    apart = (int64_t)(b_start - a_start) + ((int64_t)b_span - b_item);
    if (apart - (a_item - 1) > sums.reach[0]) return CAI_OVERLAP_UNDECIDED; /* lo and hi are wrong */
    return cai_priv_sum_in(&sums, 0, apart - (a_item - 1), apart + (b_item - 1));
}

/* ------------------------------------------------------------------ >>judging */
static int cai_priv_is_items(const cai_token *token)
{
    return token->kind == CAI_TOKEN_TUPLE || token->kind == CAI_TOKEN_LIST;
}

/* Returns the token after a value and all its items. */
static const cai_token *cai_priv_skip(const cai_token *token)
{
    uint64_t pending = 1;
    for (; pending; --pending, ++token) {
        if (cai_priv_is_items(token)) pending += token->length;
    }
    return token;
}

/* Returns whether a value has the wanted kind, or the kind that is forgiven in its place. */
static inline int cai_priv_is(const cai_priv_judge *judge, const cai_token *token, int32_t wanted,
                              int32_t forgiven)
{
    return token->kind == wanted || (token->kind == forgiven && judge->lenient);
}

static inline int cai_priv_is_int(const cai_priv_judge *judge, const cai_token *token)
{
    return cai_priv_is(judge, token, CAI_TOKEN_INT, CAI_TOKEN_INDEX);
}

CAI_PRIV_COLD cai_status cai_priv_reject_missing(cai_error *err, int32_t entry)
{
    return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_MISSING, 2), entry, -1, " is missing%s",
                         entry == CAI_ENTRY_VERSION ? cai_priv_forgivable : "");
}

/* Rejects a value that is not an int, or exceeds int64 (31 bits in a version, 64 in an address). */
CAI_PRIV_COLD cai_status cai_priv_reject_int(cai_error *err, int32_t entry, int32_t index,
                                             const cai_token *token)
{
    if (token->kind != CAI_TOKEN_UINT && token->kind != CAI_TOKEN_BIG_INT)
        return cai_priv_mistyped(err, entry, index, " must be an int", token, CAI_TOKEN_INDEX);
    if (entry == CAI_ENTRY_VERSION)
        return CAI_PRIV_WRONG(err, entry, index, " is an int that is not in 0..2147483647");
    if (token->kind == CAI_TOKEN_BIG_INT)
        return CAI_PRIV_WRONG(err, entry, index, " is an int that 64 bits cannot hold");
    return CAI_PRIV_WRONG(err, entry, index, " = %llu exceeds 9223372036854775807",
                          (unsigned long long)token->number);
}

static inline cai_status cai_priv_read_ints(const cai_priv_judge *judge, int32_t entry, const cai_token *tuple,
                                            int64_t *out)
{
    const cai_token *item = tuple + 1, *end = item + tuple->length;
    for (; item != end; ++item) {
        if (!cai_priv_is_int(judge, item))
            return cai_priv_reject_int(judge->err, entry, (int32_t)(item - tuple) - 1, item);
        *out++ = (int64_t)item->number;
    }
    return CAI_OK;
}

static inline cai_status cai_priv_judge_shape(const cai_priv_judge *judge, const cai_token *token,
                                              cai_array *array)
{
    if (!token) return cai_priv_reject_missing(judge->err, CAI_ENTRY_SHAPE);
    if (!cai_priv_is(judge, token, CAI_TOKEN_TUPLE, CAI_TOKEN_LIST))
        return cai_priv_mistyped(judge->err, CAI_ENTRY_SHAPE, -1, " must be a tuple", token, CAI_TOKEN_LIST);
    if (token->length > CAI_MAX_NDIM)
        return CAI_PRIV_WRONG(judge->err, CAI_PRIV_RULE(CAI_ENTRY_SHAPE, 29), -1,
                              " has %u dimensions, the limit is 64", token->length);
    array->ndim = (int32_t)token->length;
    return cai_priv_read_ints(judge, CAI_ENTRY_SHAPE, token, array->shape);
}

/* Judges a pointer that is not an int of 0 or more. CAI_LENIENT accepts an object with __index__, and None if
 * the array has an extent of 0. */
CAI_PRIV_NOINLINE cai_status cai_priv_judge_odd_pointer(const cai_priv_judge *judge, const cai_token *token,
                                                        cai_array *array)
{
    int32_t axis = array->ndim, forgiven = CAI_TOKEN_INDEX;
    if (token->kind == CAI_TOKEN_BIG_INT) return cai_priv_reject_int(judge->err, CAI_ENTRY_DATA, 0, token);
    while (axis-- > 0) {
        if (array->shape[axis] == 0 && token->kind == CAI_TOKEN_NONE) forgiven = CAI_TOKEN_NONE;
    }
    if (!cai_priv_is(judge, token, CAI_TOKEN_INT, forgiven))
        return cai_priv_mistyped(judge->err, CAI_ENTRY_DATA, 0, ", the pointer, must be an int", token,
                                 forgiven);
    if (token->kind == CAI_TOKEN_NONE) array->data = 0;
    if ((int64_t)array->data >= 0) return CAI_OK;
    return CAI_PRIV_WRONG(judge->err, CAI_ENTRY_DATA, 0, " = %lld is negative", (long long)token->number);
}

/* Python's bool(value) */
static int cai_priv_truth(const cai_token *token)
{
    const int text = token->kind == CAI_TOKEN_STR || token->kind == CAI_TOKEN_BYTES;
    if (text || cai_priv_is_items(token)) return token->length != 0;
    if (token->kind == CAI_TOKEN_NONE || token->kind == CAI_TOKEN_BIG_INT)
        return token->kind != CAI_TOKEN_NONE;
    return token->number != 0;
}

/* Judges a read-only flag that is not a bool. An int of 0 or 1 is valid (R6). Any truth value is forgiven. */
CAI_PRIV_NOINLINE cai_status cai_priv_judge_odd_flag(const cai_priv_judge *judge, const cai_token *token,
                                                     cai_array *array)
{
    const int32_t kind = token->kind, forgiven = kind == CAI_TOKEN_OTHER ? 0 : kind;
    array->flags = cai_priv_truth(token) ? 0u : (uint32_t)CAI_WRITABLE;
    if ((kind == CAI_TOKEN_INT && token->number <= 1) || (judge->lenient && forgiven)) return CAI_OK;
    return cai_priv_mistyped(judge->err, CAI_PRIV_RULE(CAI_ENTRY_DATA, 6), 1, ", read-only, must be a bool",
                             token, forgiven);
}

static inline cai_status cai_priv_judge_data(const cai_priv_judge *judge, const cai_token *token,
                                             cai_array *array)
{
    if (!token) return cai_priv_reject_missing(judge->err, CAI_ENTRY_DATA);
    if (!cai_priv_is(judge, token, CAI_TOKEN_TUPLE, CAI_TOKEN_LIST))
        return cai_priv_mistyped(judge->err, CAI_ENTRY_DATA, -1, " must be a tuple (pointer, read-only)", token,
                                 CAI_TOKEN_LIST);
    if (token->length != 2 && (token->length < 2 || !judge->lenient))
        return CAI_PRIV_WRONG(judge->err, CAI_ENTRY_DATA, -1,
                              " has length %u, it must be 2 (pointer, read-only)%s", token->length,
                              token->length < 2 ? "" : cai_priv_forgivable);
    array->data = token[1].number;
    if ((token[1].kind != CAI_TOKEN_INT || (int64_t)array->data < 0) && token[1].kind != CAI_TOKEN_UINT)
        CAI_TRY(cai_priv_judge_odd_pointer(judge, token + 1, array));
    if (token[2].kind != CAI_TOKEN_BOOL) return cai_priv_judge_odd_flag(judge, token + 2, array);
    array->flags = token[2].number ? 0u : (uint32_t)CAI_WRITABLE;
    return CAI_OK;
}

/* Judges a version. Any version from 0 on is valid, future ones too (R61). */
static inline cai_status cai_priv_judge_version(const cai_priv_judge *judge, const cai_token *token,
                                                cai_array *array)
{
    if (!token) {
        array->version = 0;
        return judge->lenient ? CAI_OK : cai_priv_reject_missing(judge->err, CAI_ENTRY_VERSION);
    }
    if (!cai_priv_is_int(judge, token)) return cai_priv_reject_int(judge->err, CAI_ENTRY_VERSION, -1, token);
    if (token->number > INT32_MAX)
        return CAI_PRIV_WRONG(judge->err, CAI_ENTRY_VERSION, -1, " = %lld is not in 0..2147483647",
                              (long long)token->number);
    array->version = (int32_t)token->number;
    if (array->version > 3) array->flags |= CAI_FUTURE_VERSION;
    return CAI_OK;
}

static inline cai_status cai_priv_judge_strides(const cai_priv_judge *judge, const cai_token *token,
                                                cai_array *array)
{
    if (!token || token->kind == CAI_TOKEN_NONE) return CAI_OK;
    if (array->dtype.code == CAI_BITFIELD)
        return CAI_PRIV_WRONG(judge->err, CAI_PRIV_RULE(CAI_ENTRY_STRIDES, 33), -1,
                              " must be None or NULL for a bit field: bytes cannot address bits");
    if (!cai_priv_is(judge, token, CAI_TOKEN_TUPLE, CAI_TOKEN_LIST))
        return cai_priv_mistyped(judge->err, CAI_ENTRY_STRIDES, -1, " must be None or a tuple", token,
                                 CAI_TOKEN_LIST);
    if (token->length != (uint32_t)array->ndim)
        return CAI_PRIV_WRONG(judge->err, CAI_PRIV_RULE(CAI_ENTRY_STRIDES, 22), -1,
                              " has length %u, shape has %d", token->length, array->ndim);
    array->flags |= CAI_HAD_STRIDES;
    return cai_priv_read_ints(judge, CAI_ENTRY_STRIDES, token, array->strides);
}

/* Judges the number of a stream (R70-R74). */
CAI_PRIV_NOINLINE cai_status cai_priv_judge_stream_number(const cai_priv_judge *judge, const cai_token *token)
{
    const int32_t entry = CAI_PRIV_RULE(CAI_ENTRY_STREAM, 74);
    const int64_t number = (int64_t)token->number;
    if (token->kind == CAI_TOKEN_UINT) return CAI_OK;
    if (!cai_priv_is_int(judge, token)) return cai_priv_reject_int(judge->err, entry, -1, token);
    if (number > 0) return CAI_OK;
    if (number == -1) return CAI_PRIV_WRONG(judge->err, entry, -1, " = -1 is DLPack's number: pass None");
    if (number < 0) return CAI_PRIV_WRONG(judge->err, entry, -1, " = %lld is negative", (long long)number);
    return CAI_PRIV_WRONG(judge->err, CAI_PRIV_RULE(CAI_ENTRY_STREAM, 71), -1,
                          " = 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread one, "
                          "None is no pending work");
}

static inline cai_status cai_priv_judge_stream(const cai_priv_judge *judge, const cai_token *token,
                                               int32_t version, int32_t *sync, uint64_t *stream)
{
    const int named = token && token->kind != CAI_TOKEN_NONE;
    if (named) CAI_TRY(cai_priv_judge_stream_number(judge, token));
    *sync = named ? CAI_SYNC_STREAM : token || version >= 3 ? CAI_SYNC_NONE : CAI_SYNC_UNKNOWN;
    *stream = named ? token->number : 0;
    return CAI_OK;
}

/* -------------------------------------------------------------------- >>descr */
/* The state while a descr is compiled. Rows are counted, and stored if `fields` is not NULL. */
typedef struct cai_priv_descr {
    const cai_priv_judge *judge;
    cai_field *fields;
    int64_t rows;
    int32_t top; /* the item of the descr that is judged, for messages */
} cai_priv_descr;

static cai_status cai_priv_descr_record(cai_priv_descr *descr, const cai_token *list, int32_t parent,
                                        int32_t depth, int64_t *nbytes);

/* Rejects the item that is judged. `rule` is the broken one. */
#define CAI_PRIV_BAD_FIELD(descr, rule, ...) \
    CAI_PRIV_WRONG((descr)->judge->err, CAI_PRIV_RULE(CAI_ENTRY_DESCR, rule), (descr)->top, __VA_ARGS__)

CAI_PRIV_COLD cai_status cai_priv_bad_type(const cai_priv_descr *descr, int32_t rule, const char *sentence,
                                           const cai_token *token, int32_t forgiven)
{
    return cai_priv_mistyped(descr->judge->err, CAI_PRIV_RULE(CAI_ENTRY_DESCR, rule), descr->top, sentence,
                             token, forgiven);
}

/* Judges a name, or ('full name', 'basic name'). The (basic) names of a record must differ (R44). */
static cai_status cai_priv_judge_name(const cai_priv_descr *descr, const cai_token *first,
                                      const cai_token *token, cai_field *field)
{
    const cai_token *name = token + 1, *other;
    char quoted[CAI_PRIV_QUOTED];
    if (name->kind == CAI_TOKEN_TUPLE && name->length == 2 && name[1].kind == CAI_TOKEN_STR &&
        name[2].kind == CAI_TOKEN_STR) {
        field->title = name[1].text;
        field->title_length = name[1].length;
        name += 2;
    } else if (name->kind != CAI_TOKEN_STR) {
        return cai_priv_bad_type(descr, 44, ": a name must be a str or a tuple of 2 str", name, 0);
    }
    field->name = name->text;
    field->name_length = name->length;
    for (other = first; name->length && other < token; other = cai_priv_skip(other)) {
        const cai_token *taken = other[1].kind == CAI_TOKEN_TUPLE ? other + 3 : other + 1;
        if (taken->length == name->length && memcmp(taken->text, name->text, name->length) == 0)
            return CAI_PRIV_BAD_FIELD(descr, 44, ": the name %s occurs twice", cai_priv_quote(name, quoted));
    }
    return CAI_OK;
}

/* Judges the repeat of a field, a tuple of extents. An int is forgiven. */
static cai_status cai_priv_judge_repeat(const cai_priv_descr *descr, const cai_token *token, cai_field *field)
{
    const int bare = descr->judge->lenient && cai_priv_is_int(descr->judge, token);
    const cai_token *items = bare ? token : token + 1;
    if (token->kind != CAI_TOKEN_TUPLE && !bare)
        return cai_priv_bad_type(descr, 43, ": a repeat must be a tuple", token,
                                 (int64_t)token->number >= 0 ? CAI_TOKEN_INT : 0);
    if (!bare && token->length > CAI_MAX_FIELD_NDIM)
        return CAI_PRIV_BAD_FIELD(descr, 45, ": a repeat of %u dimensions, the limit is 8", token->length);
    field->ndim = bare ? 1 : (int32_t)token->length;
    for (int32_t i = 0; i < field->ndim; ++i) {
        const int64_t extent = (int64_t)items[i].number;
        const int huge = items[i].kind == CAI_TOKEN_UINT || items[i].kind == CAI_TOKEN_BIG_INT;
        if (!huge && !cai_priv_is_int(descr->judge, items + i))
            return cai_priv_bad_type(descr, 43, ": an extent of a repeat must be an int", items + i,
                                     CAI_TOKEN_INDEX);
        if (huge) return CAI_PRIV_BAD_FIELD(descr, 43, ": extent %d of the repeat exceeds int64", i);
        if (extent < 0)
            return CAI_PRIV_BAD_FIELD(descr, 43, ": extent %d of the repeat is negative: %lld", i,
                                      (long long)extent);
        field->shape[i] = extent;
    }
    return CAI_OK;
}

/* Judges the type of a field, plain or a nested list. Fills field->dtype and the bytes of one item. */
static cai_status cai_priv_judge_field_type(cai_priv_descr *descr, const cai_token *type, int32_t row,
                                            int32_t depth, cai_field *field, int64_t *nbytes)
{
    const cai_priv_judge *judge = descr->judge;
    if (cai_priv_is(judge, type, CAI_TOKEN_LIST, CAI_TOKEN_TUPLE)) {
        CAI_TRY(cai_priv_descr_record(descr, type, row, depth + 1, nbytes));
        cai_priv_dtype_fill(&field->dtype, CAI_VOID, (int32_t)*nbytes, 1);
        field->child_count = (int32_t)type->length;
        return CAI_OK;
    }
    if (!cai_priv_is(judge, type, CAI_TOKEN_STR, CAI_TOKEN_BYTES))
        return cai_priv_bad_type(descr, 43, ": a type must be a typestr or a list", type,
                                 type->kind == CAI_TOKEN_TUPLE ? CAI_TOKEN_TUPLE : CAI_TOKEN_BYTES);
    CAI_TRY(cai_priv_judge_typestr(judge, CAI_ENTRY_DESCR, descr->top, type, &field->dtype));
    *nbytes = field->dtype.itemsize;
    if (field->dtype.code != CAI_BITFIELD) return CAI_OK;
    return CAI_PRIV_BAD_FIELD(descr, 33, ": a record cannot contain a bit field");
}

/* Returns the bytes of a field with its repeats, or INT32_MAX + 1 if they exceed INT32_MAX. */
static int64_t cai_priv_field_bytes(const cai_field *field, int64_t item)
{
    int64_t nbytes = item;
    int32_t empty = 0;
    for (int32_t i = 0; i < field->ndim; ++i) {
        if (field->shape[i] == 0) empty = 1;
        else if (nbytes <= INT32_MAX / field->shape[i]) nbytes *= field->shape[i];
        else nbytes = (int64_t)INT32_MAX + 1;
    }
    return empty ? 0 : nbytes;
}

/* Judges one tuple of a descr. `first` is the first tuple of its list. */
static cai_status cai_priv_descr_field(cai_priv_descr *descr, const cai_token *first, const cai_token *token,
                                       cai_field *field, int32_t depth)
{
    const cai_token *type;
    const int64_t row = descr->rows++;
    int64_t item = 0;
    if (token->kind != CAI_TOKEN_TUPLE || token->length < 2 || token->length > 3)
        return cai_priv_bad_type(descr, 40, ": a field must be a tuple of 2 or 3 items", token, 0);
    if (descr->rows > CAI_MAX_FIELDS) return CAI_PRIV_BAD_FIELD(descr, 45, ": more than 4096 fields");
    CAI_TRY(cai_priv_judge_name(descr, first, token, field));
    type = cai_priv_skip(token + 1);
    CAI_TRY(cai_priv_judge_field_type(descr, type, (int32_t)row, depth, field, &item));
    if (token->length == 3) CAI_TRY(cai_priv_judge_repeat(descr, cai_priv_skip(type), field));
    field->nbytes = cai_priv_field_bytes(field, item);
    if (descr->fields) descr->fields[row] = *field;
    return CAI_OK;
}

static cai_status cai_priv_descr_record(cai_priv_descr *descr, const cai_token *list, int32_t parent,
                                        int32_t depth, int64_t *nbytes)
{
    const cai_token *token = list + 1;
    cai_field field;
    int64_t offset = 0;
    if (depth > CAI_MAX_FIELD_DEPTH) return CAI_PRIV_BAD_FIELD(descr, 45, ": nested deeper than 32 lists");
    if (list->length == 0) return CAI_PRIV_BAD_FIELD(descr, 41, ": a list without fields");
    for (uint32_t i = 0; i < list->length; ++i, token = cai_priv_skip(token)) {
        if (depth == 1) descr->top = (int32_t)i;
        memset(&field, 0, sizeof field);
        field.offset = offset;
        field.parent = parent;
        CAI_TRY(cai_priv_descr_field(descr, list + 1, token, &field, depth));
        offset += field.nbytes;
        if (offset > INT32_MAX)
            return CAI_PRIV_BAD_FIELD(descr, 41, ": ends beyond 2147483647 bytes, the limit of an itemsize");
    }
    *nbytes = offset;
    return CAI_OK;
}

/* Returns whether a descr is [('', typestr)], which only repeats the typestr (R40). */
static int cai_priv_is_default_descr(const cai_priv_judge *judge, const cai_token *descr,
                                     const cai_dtype *dtype)
{
    const cai_priv_judge quiet = {NULL, judge->lenient};
    const cai_token *field = descr + 1;
    cai_dtype same;
    return descr->length == 1 && field->kind == CAI_TOKEN_TUPLE && field->length == 2 &&
           field[1].kind == CAI_TOKEN_STR && field[1].length == 0 &&
           cai_priv_judge_typestr(&quiet, CAI_ENTRY_DESCR, 0, field + 2, &same) == CAI_OK &&
           same.code != CAI_BITFIELD && memcmp(&same, dtype, sizeof same) == 0;
}

/* Judges a descr against its dtype (R41) and counts its rows. If `fields` is not NULL, stores them. */
static cai_status cai_priv_judge_descr(const cai_priv_judge *judge, const cai_token *token,
                                       const cai_dtype *dtype, cai_field *fields, int64_t *rows)
{
    cai_priv_descr descr = {NULL, NULL, 0, -1};
    int64_t nbytes = 0;
    *rows = 0;
    if (!token || token->kind == CAI_TOKEN_NONE) return CAI_OK;
    if (!cai_priv_is(judge, token, CAI_TOKEN_LIST, CAI_TOKEN_TUPLE))
        return cai_priv_mistyped(judge->err, CAI_ENTRY_DESCR, -1, " must be a list", token, CAI_TOKEN_TUPLE);
    if (cai_priv_is_default_descr(judge, token, dtype)) return CAI_OK;
    descr.judge = judge;
    descr.fields = fields;
    CAI_TRY(cai_priv_descr_record(&descr, token, -1, 1, &nbytes));
    if (nbytes != dtype->itemsize)
        return CAI_PRIV_WRONG(judge->err, CAI_PRIV_RULE(CAI_ENTRY_DESCR, 41), -1,
                              " adds up to %lld bytes, but typestr has %d", (long long)nbytes, dtype->itemsize);
    *rows = descr.rows;
    return CAI_OK;
}

CAI_PRIV_COLD cai_status cai_priv_reject_capacity(cai_error *err, int64_t rows, int64_t capacity)
{
    return cai_priv_fail(err, CAI_ERR_CAPACITY, CAI_ENTRY_DESCR, -1,
                         " needs %lld rows, but the storage has %lld", (long long)rows, (long long)capacity);
}

CAI_API cai_status cai_fields_compile(const cai_token *descr, const cai_dtype *dtype, uint32_t flags,
                                      cai_field *fields, int64_t capacity, int64_t *count, cai_error *err)
{
    const cai_priv_judge judge = {err, flags & CAI_LENIENT};
    int64_t rows;
    if (!dtype || !count) return cai_priv_is_null(err, "cai_fields_compile: dtype or count");
    CAI_TRY(cai_priv_judge_descr(&judge, descr, dtype, NULL, &rows));
    if (fields && rows > capacity) return cai_priv_reject_capacity(err, rows, capacity);
    if (fields) CAI_TRY(cai_priv_judge_descr(&judge, descr, dtype, fields, &rows));
    *count = rows;
    return CAI_OK;
}

/* ------------------------------------------------------------------- >>import */
/* Judges all entries but the mask. If they are right, stores the array in `out`. field_count is then the
 * number of rows, 0 for a descr that only repeats the typestr. */
static cai_status cai_priv_import_entries(const cai_interface *in, cai_priv_judge judge, cai_array *out)
{
    cai_priv_draft draft;
    cai_array *array = &draft.array;
    cai_priv_draft_open(array);
    CAI_TRY(cai_priv_judge_shape(&judge, in->shape, array));
    if (!in->typestr) return cai_priv_reject_missing(judge.err, CAI_ENTRY_TYPESTR);
    if (!cai_priv_plain_typestr(in->typestr, &array->dtype))
        CAI_TRY(cai_priv_judge_typestr(&judge, CAI_ENTRY_TYPESTR, -1, in->typestr, &array->dtype));
    CAI_TRY(cai_priv_judge_data(&judge, in->data, array));
    CAI_TRY(cai_priv_judge_version(&judge, in->version, array));
    CAI_TRY(cai_priv_judge_strides(&judge, in->strides, array));
    CAI_TRY(cai_priv_judge_stream(&judge, in->stream, array->version, &array->sync, &array->stream));
    if (in->descr)
        CAI_TRY(cai_priv_judge_descr(&judge, in->descr, &array->dtype, NULL, &array->field_count));
    draft.shape = array->shape;
    draft.strides = array->flags & CAI_HAD_STRIDES ? array->strides : NULL;
    return cai_priv_describe(judge.err, &draft, out);
}

/* Judges whether a mask broadcasts to the array's shape (R51). */
static cai_status cai_priv_judge_mask_shape(cai_error *err, const cai_array *mask, const cai_array *array)
{
    const int32_t more = array->ndim - mask->ndim;
    if (more < 0)
        return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_MASK, 51), -1,
                              " has %d dimensions, the array has %d", mask->ndim, array->ndim);
    for (int32_t axis = 0; axis < mask->ndim; ++axis) {
        const int64_t extent = mask->shape[axis], wanted = array->shape[axis + more];
        if (extent != wanted && extent != 1)
            return CAI_PRIV_WRONG(err, CAI_PRIV_RULE(CAI_ENTRY_MASK, 51), axis,
                                  ": shape[%d] = %lld does not broadcast to the array's %lld", axis,
                                  (long long)extent, (long long)wanted);
    }
    return CAI_OK;
}

static int cai_priv_has_mask(const cai_interface *in)
{
    return in->mask ? in->mask->kind != CAI_TOKEN_NONE : in->mask_interface != NULL;
}

/* Makes the error of an entry of a mask one of the mask. */
CAI_PRIV_COLD cai_status cai_priv_of_mask(cai_error *err, cai_status status)
{
    if (err) err->entry = CAI_ENTRY_MASK;
    return cai_priv_error_before(err, status, "mask", -1);
}

/* Judges a mask, which is an object that exports the interface (R50), itself without a mask. */
static cai_status cai_priv_import_mask(const cai_priv_judge *judge, const cai_interface *in,
                                       const cai_import_options *options, const cai_array *array,
                                       cai_array *mask)
{
    const cai_interface *entries = in->mask_interface;
    cai_status status;
    if (in->mask && (in->mask->kind != CAI_TOKEN_OBJECT || !entries))
        return cai_priv_mistyped(judge->err, CAI_ENTRY_MASK, -1,
                                 " must be None or an object with the interface", in->mask, 0);
    if (!options || !options->mask)
        return CAI_PRIV_WRONG(judge->err, CAI_PRIV_RULE(CAI_ENTRY_MASK, 52), -1,
                              " is present, but this consumer accepts none");
    status = cai_priv_import_entries(entries, *judge, mask);
    if (status) return cai_priv_of_mask(judge->err, status);
    mask->field_count = 0;
    if (cai_priv_has_mask(entries)) return CAI_PRIV_WRONG(judge->err, CAI_ENTRY_MASK, -1, " has a mask itself");
    return cai_priv_judge_mask_shape(judge->err, mask, array);
}

/* Imports an array with a mask or a descr. More is judged after the array was described. The array is
 * therefore kept aside, so that nothing is stored before the end. */
CAI_PRIV_NOINLINE cai_status cai_priv_import_aside(const cai_interface *in, const cai_priv_judge judge,
                                                   const cai_import_options *options, cai_array *out)
{
    int64_t rows;
    cai_array array, mask;
    if (options && options->mask == out)
        return cai_priv_error(judge.err, CAI_ERR_ARGUMENT, "cai_import: options->mask equals out");
    CAI_TRY(cai_priv_import_entries(in, judge, &array));
    rows = array.field_count;
    if (!options || !options->fields) rows = array.field_count = 0;
    if (rows && rows > options->field_capacity)
        return cai_priv_reject_capacity(judge.err, rows, options->field_capacity);
    if (rows) array.fields = options->fields;
    if (cai_priv_has_mask(in)) {
        CAI_TRY(cai_priv_import_mask(&judge, in, options, &array, &mask));
        array.mask = options->mask;
        cai_priv_copy(options->mask, &mask);
    }
    if (rows) CAI_TRY(cai_priv_judge_descr(&judge, in->descr, &array.dtype, options->fields, &rows));
    cai_priv_copy(out, &array);
    return CAI_OK;
}

CAI_API cai_status cai_import(const cai_interface *in, const cai_import_options *options, cai_array *out,
                              cai_error *err)
{
    const cai_priv_judge judge = {err, options ? options->flags & CAI_LENIENT : 0};
    if (!in || !out) return cai_priv_is_null(err, "cai_import: in or out");
    if (in->mask || in->mask_interface || in->descr) return cai_priv_import_aside(in, judge, options, out);
    return cai_priv_import_entries(in, judge, out);
}

/* ------------------------------------------------------------------- >>export */
/* Storage of the caller, used from the start. */
typedef struct cai_priv_storage {
    const cai_export_storage *given;
    int64_t tokens, text; /* used so far */
    cai_error *err;
    cai_token spare;      /* written if the storage is full */
    int32_t full;         /* true if something did not fit */
} cai_priv_storage;

/* Fills the next token and returns it. The items of a tuple or list follow. */
static cai_token *cai_priv_emit(cai_priv_storage *room, int32_t kind, uint64_t number, const char *text,
                                uint32_t length)
{
    cai_token *token = &room->spare;
    if (room->tokens < room->given->token_capacity) token = room->given->tokens + room->tokens++;
    else room->full = 1;
    token->kind = kind;
    token->length = length;
    token->number = number;
    token->text = text;
    return token;
}

static cai_token *cai_priv_emit_uint(cai_priv_storage *room, uint64_t value)
{
    return cai_priv_emit(room, value > INT64_MAX ? CAI_TOKEN_UINT : CAI_TOKEN_INT, value, NULL, 0);
}

static cai_token *cai_priv_emit_tuple(cai_priv_storage *room, int32_t count, const int64_t *values)
{
    cai_token *first = cai_priv_emit(room, CAI_TOKEN_TUPLE, 0, NULL, (uint32_t)count);
    for (int32_t i = 0; i < count && !room->full; ++i)
        (void)cai_priv_emit(room, CAI_TOKEN_INT, (uint64_t)values[i], NULL, 0);
    return first;
}

static cai_token *cai_priv_emit_typestr(cai_priv_storage *room, const cai_dtype *dtype)
{
    char *text = room->given->text;
    int32_t length = 0;
    if (room->given->text_capacity - room->text < CAI_TYPESTR_SIZE) {
        room->full = 1;
    } else {
        text += room->text;
        length = cai_dtype_typestr(dtype, text, CAI_TYPESTR_SIZE);
        room->text += CAI_TYPESTR_SIZE;
    }
    return cai_priv_emit(room, CAI_TOKEN_STR, 0, text, (uint32_t)length);
}

static void cai_priv_emit_padding(cai_priv_storage *room, int64_t nbytes)
{
    cai_dtype padding;
    cai_priv_dtype_fill(&padding, CAI_VOID, (int32_t)nbytes, 1);
    (void)cai_priv_emit(room, CAI_TOKEN_TUPLE, 0, NULL, 2);
    (void)cai_priv_emit(room, CAI_TOKEN_STR, 0, "", 0);
    (void)cai_priv_emit_typestr(room, &padding);
}

static cai_status cai_priv_emit_record(cai_priv_storage *room, const cai_array *array, cai_token *list,
                                       int32_t parent, int64_t record_bytes, int32_t depth);

/* Writes the tuple of one row, with the rows of its own record if it has one. */
static cai_status cai_priv_emit_field(cai_priv_storage *room, const cai_array *array, int32_t row,
                                      int32_t depth)
{
    const cai_field *field = array->fields + row;
    (void)cai_priv_emit(room, CAI_TOKEN_TUPLE, 0, NULL, field->ndim ? 3 : 2);
    if (field->title) {
        (void)cai_priv_emit(room, CAI_TOKEN_TUPLE, 0, NULL, 2);
        (void)cai_priv_emit(room, CAI_TOKEN_STR, 0, field->title, field->title_length);
    }
    (void)cai_priv_emit(room, CAI_TOKEN_STR, 0, field->name, field->name_length);
    if (field->child_count) {
        cai_token *items = cai_priv_emit(room, CAI_TOKEN_LIST, 0, NULL, 0);
        CAI_TRY(cai_priv_emit_record(room, array, items, row, field->dtype.itemsize, depth + 1));
    } else {
        (void)cai_priv_emit_typestr(room, &field->dtype);
    }
    if (field->ndim) (void)cai_priv_emit_tuple(room, field->ndim, field->shape);
    return CAI_OK;
}

/* Writes the rows of one record as items of `list`, with padding for bytes between them (R42). */
static cai_status cai_priv_emit_record(cai_priv_storage *room, const cai_array *array, cai_token *list,
                                       int32_t parent, int64_t record_bytes, int32_t depth)
{
    int64_t at = 0;
    for (int32_t row = parent + 1; row <= array->field_count && !room->full; ++row) {
        const cai_field *field = row < array->field_count ? array->fields + row : NULL;
        const int64_t offset = field ? field->offset : record_bytes;
        if (field && field->parent != parent) continue;
        if (offset < at || offset > record_bytes || depth > CAI_MAX_FIELD_DEPTH)
            return cai_priv_fail(room->err, CAI_ERR_EXPORT, CAI_ENTRY_DESCR, -1,
                                 ": row %d at %lld does not follow the rows before it", row, (long long)offset);
        if (offset > at) {
            cai_priv_emit_padding(room, offset - at);
            ++list->length;
        }
        if (!field) break;
        ++list->length;
        CAI_TRY(cai_priv_emit_field(room, array, row, depth));
        at = offset + field->nbytes;
    }
    return CAI_OK;
}

/* Writes the stream entry, or refuses an order that the version cannot carry. */
static cai_status cai_priv_export_stream(cai_priv_storage *room, const cai_array *array, int32_t version,
                                         cai_interface *out)
{
    const int32_t sync = array->size ? array->sync : CAI_SYNC_NONE;
    if (sync == CAI_SYNC_EVENT)
        return cai_priv_fail(room->err, CAI_ERR_EXPORT, CAI_ENTRY_STREAM, -1,
                             ": the array has an event, but no version has an entry for events");
    if (sync == CAI_SYNC_STREAM && !array->stream)
        return cai_priv_fail(room->err, CAI_PRIV_RULE(CAI_ERR_EXPORT, 71), CAI_ENTRY_STREAM, -1,
                             " = 0 is no stream");
    if (sync == CAI_SYNC_STREAM && version < 3)
        return cai_priv_fail(room->err, CAI_PRIV_RULE(CAI_ERR_EXPORT, 60), CAI_ENTRY_STREAM, -1,
                             " = %llu needs version 3, but version is %d", (unsigned long long)array->stream,
                             version);
    if (sync != CAI_SYNC_STREAM && sync != CAI_SYNC_NONE && version >= 3)
        return cai_priv_fail(room->err, CAI_PRIV_RULE(CAI_ERR_EXPORT, 70), CAI_ENTRY_STREAM, -1,
                             ": work may be pending, but version %d without a stream means none", version);
    if (version >= 3 && sync == CAI_SYNC_STREAM) out->stream = cai_priv_emit_uint(room, array->stream);
    else if (version >= 3) out->stream = cai_priv_emit(room, CAI_TOKEN_NONE, 0, NULL, 0);
    return CAI_OK;
}

/* Returns the axis along which the values of packed elements lie, if nothing else says so (>>arrays). */
CAI_PRIV_NOINLINE int32_t cai_priv_packed_axis(int32_t ndim, const int64_t *strides, int64_t itemsize)
{
    for (int32_t axis = strides ? ndim : 0; axis-- > 0;) {
        if (strides[axis] == itemsize) return axis;
    }
    return ndim - 1;
}

/* Refuses values that lie elsewhere than a reader of the entries would find them. */
static cai_status cai_priv_export_packed(cai_priv_storage *room, const cai_array *array)
{
    const int64_t *strides = array->flags & CAI_C_CONTIGUOUS ? NULL : array->strides;
    const int32_t axis = array->packed_axis;
    if (axis < 0) return CAI_OK;
    if (axis == cai_priv_packed_axis(array->ndim, strides, array->dtype.itemsize) &&
        array->packed_extent % cai_dtype_values(&array->dtype) == 0)
        return CAI_OK;
    return cai_priv_fail(room->err, CAI_ERR_EXPORT, CAI_ENTRY_TYPESTR, -1,
                         ": no version can say that %lld values lie along axis %d",
                         (long long)array->packed_extent, axis);
}

static cai_status cai_priv_export_entries(cai_priv_storage *room, const cai_array *array, int32_t version,
                                          cai_interface *out)
{
    cai_token *list;
    CAI_TRY(cai_priv_export_packed(room, array));
    memset(out, 0, sizeof *out);
    out->shape = cai_priv_emit_tuple(room, array->ndim, array->shape);
    out->typestr = cai_priv_emit_typestr(room, &array->dtype);
    out->data = cai_priv_emit(room, CAI_TOKEN_TUPLE, 0, NULL, 2);
    (void)cai_priv_emit_uint(room, array->data);
    (void)cai_priv_emit(room, CAI_TOKEN_BOOL, array->flags & CAI_WRITABLE ? 0 : 1, NULL, 0);
    out->version = cai_priv_emit_uint(room, (uint64_t)version);
    if (array->flags & CAI_C_CONTIGUOUS) out->strides = cai_priv_emit(room, CAI_TOKEN_NONE, 0, NULL, 0);
    else out->strides = cai_priv_emit_tuple(room, array->ndim, array->strides);
    CAI_TRY(cai_priv_export_stream(room, array, version, out));
    if (!array->fields || !array->field_count) return CAI_OK;
    out->descr = list = cai_priv_emit(room, CAI_TOKEN_LIST, 0, NULL, 0);
    return cai_priv_emit_record(room, array, list, -1, array->dtype.itemsize, 1);
}

CAI_API cai_status cai_export(const cai_array *array, int32_t version, const cai_export_storage *storage,
                              cai_interface *out, cai_error *err)
{
    cai_priv_storage room;
    cai_interface entries, of_mask;
    cai_status status;
    CAI_TRY(cai_array_check(array, err));
    if (!storage || !out) return cai_priv_is_null(err, "cai_export: storage or out");
    if (version < 0 || version > 3)
        return cai_priv_fail(err, CAI_ERR_ARGUMENT, CAI_ENTRY_VERSION, -1, "version = %d is not in 0..3",
                             version);
    memset(&room, 0, sizeof room);
    memset(&of_mask, 0, sizeof of_mask);
    room.given = storage;
    room.err = err;
    CAI_TRY(cai_priv_export_entries(&room, array, version, &entries));
    if (array->mask) {
        if (version < 1)
            return cai_priv_fail(err, CAI_ERR_EXPORT, CAI_ENTRY_MASK, -1, "version 0 has no entry for a mask");
        status = cai_priv_export_entries(&room, array->mask, version, &of_mask);
        if (status) return cai_priv_of_mask(err, status);
        entries.mask = cai_priv_emit(&room, CAI_TOKEN_OBJECT, 1, NULL, 0);
        entries.mask_interface = storage->mask;
    }
    if (room.full || (array->mask && !storage->mask))
        return cai_priv_error(err, CAI_ERR_CAPACITY,
                              "storage of %lld tokens and %lld bytes of text is too small",
                              (long long)storage->token_capacity, (long long)storage->text_capacity);
    if (array->mask) *storage->mask = of_mask;
    *out = entries;
    return CAI_OK;
}

/* --------------------------------------------------------------- >>describing */
CAI_API cai_status cai_array_init(cai_array *out, int32_t code, int32_t ndim, const int64_t *shape,
                                  const int64_t *strides, void *data, cai_error *err)
{
    cai_dtype dtype;
    CAI_TRY(cai_priv_dtype_of(code, &dtype, err));
    return cai_array_init_dtype(out, &dtype, ndim, shape, strides, (uintptr_t)data, err);
}

/* Fills what cai_array_init_dtype is given, but for data, flags and field_count. */
static inline void cai_priv_init_given(cai_array *array, const cai_dtype *dtype, int32_t ndim)
{
    cai_priv_draft_open(array);
    array->version = 3;
    array->dtype = *dtype;
    array->sync = CAI_SYNC_UNKNOWN;
    array->ndim = ndim;
    array->stream = 0;
}

/* cai_array_init_dtype with strides. */
static inline cai_status cai_priv_init_strided(cai_array *out, const cai_dtype *dtype, int32_t ndim,
                                               const int64_t *shape, const int64_t *strides, uint64_t data,
                                               cai_error *err)
{
    cai_priv_draft draft;
    draft.shape = shape;
    draft.strides = strides;
    cai_priv_init_given(&draft.array, dtype, ndim);
    draft.array.flags = strides ? CAI_WRITABLE | CAI_HAD_STRIDES : CAI_WRITABLE;
    draft.array.data = data;
    return cai_priv_describe(err, &draft, out);
}

/* cai_array_init_dtype for values below 8 bits. */
CAI_PRIV_NOINLINE cai_status cai_priv_init_bits(cai_array *out, const cai_dtype *dtype, int32_t ndim,
                                                const int64_t *shape, const int64_t *strides, uint64_t data,
                                                cai_error *err)
{
    const int32_t values = cai_dtype_values(dtype);
    const int32_t axis = values > 1 && shape ? cai_priv_packed_axis(ndim, strides, dtype->itemsize) : -1;
    int64_t extent = 0;
    if (strides && dtype->code == CAI_BITFIELD)
        return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_STRIDES, 33), CAI_ENTRY_STRIDES, -1,
                             " must be None or NULL for a bit field: bytes cannot address bits");
    if (axis >= 0 && cai_priv_mul(shape[axis], values, &extent))
        return cai_priv_reject_extent(err, axis, shape[axis]);
    CAI_TRY(cai_priv_init_strided(out, dtype, ndim, shape, strides, data, err));
    out->packed_axis = axis;
    out->packed_extent = extent;
    return CAI_OK;
}

/* Without strides, the arguments are written to `out` without a draft. This saves 4 of 11 ns. The function is
 * not inlined, because gcc would warn that a refusal leaves `out` uninitialized. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((noinline))
#endif
CAI_API cai_status cai_array_init_dtype(cai_array *out, const cai_dtype *dtype, int32_t ndim,
                                        const int64_t *shape, const int64_t *strides, uint64_t data,
                                        cai_error *err)
{
    cai_priv_draft draft;
    int64_t size = 0, nbytes = 0;
    if (!out || !dtype) return cai_priv_is_null(err, "cai_array_init: out or dtype");
    CAI_TRY(cai_priv_check_shape(ndim, shape, err));
    if (dtype->bits || (strides && dtype->code == CAI_BITFIELD))
        return cai_priv_init_bits(out, dtype, ndim, shape, strides, data, err);
    if (strides) return cai_priv_init_strided(out, dtype, ndim, shape, strides, data, err);
    draft.shape = shape;
    draft.array.dtype = *dtype;
    draft.array.ndim = ndim;
    draft.array.flags = CAI_WRITABLE;
    draft.array.data = data;
    draft.array.field_count = 0;
    CAI_TRY(cai_priv_count(err, &draft, &size, &nbytes));
    CAI_TRY(cai_priv_store_c(err, &draft, NULL, size, nbytes, out));
    cai_priv_init_given(out, dtype, ndim);
    return CAI_OK;
}

CAI_API cai_status cai_array_init_packed(cai_array *out, int32_t code, int32_t ndim, const int64_t *shape,
                                         int32_t axis, const int64_t *strides, void *data, cai_error *err)
{
    int64_t elements[CAI_MAX_NDIM], extent = 0;
    int32_t values;
    cai_dtype dtype;
    if (!out) return cai_priv_is_null(err, "cai_array_init_packed: out");
    CAI_TRY(cai_priv_dtype_of(code, &dtype, err));
    values = cai_dtype_values(&dtype);
    if (values == 1)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_array_init_packed: %s is not packed",
                              cai_dtype_name(code));
    CAI_TRY(cai_priv_check_shape(ndim, shape, err));
    if (axis < (ndim ? 0 : -1) || axis >= ndim)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_array_init_packed: axis = %d is not one of %d axes",
                              axis, ndim);
    for (int32_t i = 0; i < ndim; ++i) elements[i] = shape[i];
    if (ndim) extent = shape[axis]; /* before `out`, which may have the shape */
    if (extent > 0) elements[axis] = (extent - 1) / values + 1;
    CAI_TRY(cai_priv_init_strided(out, &dtype, ndim, elements, strides, (uintptr_t)data, err));
    out->packed_axis = axis;
    out->packed_extent = extent;
    return CAI_OK;
}

CAI_API void cai_array_set_read_only(cai_array *array, int32_t read_only)
{
    array->flags = (array->flags & ~(uint32_t)CAI_WRITABLE) | (read_only ? 0 : CAI_WRITABLE);
}

CAI_API void cai_array_own(cai_array *array, void (*release)(cai_array *array), void *owner)
{
    array->release = release;
    array->owner = owner;
}

CAI_API void cai_array_move(cai_array *to, cai_array *from)
{
    cai_priv_copy(to, from);
    from->release = NULL;
}

CAI_API void cai_array_borrow(cai_array *to, const cai_array *from)
{
    cai_priv_copy(to, from);
    to->struct_size = (uint32_t)sizeof *to;
    to->release = NULL;
    to->owner = NULL;
    to->flags = from->flags & ~(uint32_t)(CAI_OWN_EVENT | CAI_ORDERED_FREE);
}

CAI_API void cai_array_release(cai_array *array)
{
    void (*release)(cai_array *self);
    if (!array || !array->release) return;
    release = array->release;
    array->release = NULL; /* before the call, as the callback may free the struct */
    release(array);
}

/* Checks the values below 8 bits. Packed ones have an axis, unless the array has none. */
CAI_PRIV_NOINLINE cai_status cai_priv_check_narrow(const cai_array *array, cai_error *err)
{
    const int32_t axis = array->packed_axis, values = cai_dtype_values(&array->dtype), code = array->dtype.code;
    const int32_t bits = cai_priv_narrow_bits(code), packed = code & CAI_PRIV_PACKED;
    int64_t elements;
    if (bits && (array->dtype.bits != bits || array->dtype.itemsize != (code & 0xff)))
        return cai_priv_error(err, CAI_ERR_ABI,
                              "dtype.bits = %d, itemsize = %d: dtype.code = 0x%x has %d bits",
                              array->dtype.bits, array->dtype.itemsize, (unsigned)code, bits);
    if (axis == -1 && !(array->ndim && packed)) return CAI_OK;
    if (!packed || axis < 0 || axis >= array->ndim)
        return cai_priv_error(err, CAI_ERR_ABI, "packed_axis = %d does not fit ndim = %d, dtype.code = 0x%x",
                              axis, array->ndim, (unsigned)code);
    elements = array->packed_extent / values + (array->packed_extent % values > 0);
    if (values < 2 || array->packed_extent < 0 || elements != array->shape[axis])
        return cai_priv_error(err, CAI_ERR_ABI, "packed_extent = %lld does not fill %lld elements of %d values",
                              (long long)array->packed_extent, (long long)array->shape[axis], values);
    return CAI_OK;
}

/* Checks an array without its mask. */
static cai_status cai_priv_check(const cai_array *array, cai_error *err)
{
    if (array->abi != CAI_ABI)
        return cai_priv_error(err, CAI_ERR_ABI, "abi = 0x%x is not 0x%x, that of this header", array->abi,
                              CAI_ABI);
    if (array->struct_size < sizeof *array)
        return cai_priv_error(err, CAI_ERR_ABI, "struct_size = %u is less than %u, that of this header",
                              array->struct_size, (uint32_t)sizeof *array);
    if (array->ndim < 0 || array->ndim > CAI_MAX_NDIM)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_ABI, 29), "ndim = %d is not in 0..64", array->ndim);
    if (array->field_count < 0 || array->field_count > CAI_MAX_FIELDS)
        return cai_priv_error(err, CAI_ERR_ABI, "field_count = %lld is not in 0..4096",
                              (long long)array->field_count);
    if (array->must_understand)
        return cai_priv_error(err, CAI_ERR_ABI, "must_understand = 0x%llx has bits of a later version",
                              (unsigned long long)array->must_understand);
    if (array->packed_axis != -1 || array->dtype.code & CAI_PRIV_NARROW)
        return cai_priv_check_narrow(array, err);
    return CAI_OK;
}

CAI_API cai_status cai_array_check(const cai_array *array, cai_error *err)
{
    cai_status status;
    if (!array) return cai_priv_is_null(err, "array");
    CAI_TRY(cai_priv_check(array, err));
    if (!array->mask) return CAI_OK;
    status = cai_priv_check(array->mask, err);
    return status ? cai_priv_of_mask(err, status) : CAI_OK;
}

static const char *cai_priv_order_text(uint32_t flags)
{
    if (flags & CAI_C_CONTIGUOUS) return ", C-contiguous";
    if (flags & CAI_F_CONTIGUOUS) return ", F-contiguous";
    if (flags & CAI_SELF_OVERLAP) return ", overlapping itself";
    return flags & CAI_NO_SELF_OVERLAP ? ", strided" : ", may overlap itself";
}

static void cai_priv_put_sync(cai_priv_text *text, const cai_array *array)
{
    const int stream = array->sync == CAI_SYNC_STREAM;
    if (stream && array->stream <= CAI_STREAM_PER_THREAD)
        cai_priv_say(text, ", stream %d", (int)array->stream);
    else if (stream) cai_priv_say(text, ", stream 0x%llx", (unsigned long long)array->stream);
    else if (array->sync == CAI_SYNC_NONE) cai_priv_put(text, ", no pending work");
    else cai_priv_put(text, array->sync == CAI_SYNC_EVENT ? ", event" : ", work may be pending");
}

CAI_PRIV_COLD void cai_priv_put_packed(cai_priv_text *text, const cai_array *array)
{
    if (array->packed_axis < 0) return;
    cai_priv_say(text, " of %lld values along axis %d", (long long)array->packed_extent, array->packed_axis);
}

/* Writes dtype, shape and strides, such as "float32 (4, 6) strides (48, 8)". */
static void cai_priv_put_layout(cai_priv_text *text, const cai_array *array)
{
    cai_priv_put_dtype(text, &array->dtype);
    cai_priv_put_char(text, ' ');
    cai_priv_put_tuple(text, array->ndim, array->shape);
    cai_priv_put_packed(text, array);
    if (array->flags & CAI_C_CONTIGUOUS) return;
    cai_priv_put(text, " strides ");
    cai_priv_put_tuple(text, array->ndim, array->strides);
}

CAI_API int32_t cai_array_text(const cai_array *array, char *buffer, int32_t capacity)
{
    cai_priv_text text;
    if (!buffer || capacity < 1) return 0;
    text = cai_priv_text_open(buffer, capacity);
    if (cai_array_check(array, NULL)) {
        cai_priv_put(&text, array ? "no cai_array" : "NULL");
        return cai_priv_text_close(&text);
    }
    cai_priv_put_layout(&text, array);
    cai_priv_put(&text, cai_priv_order_text(array->flags));
    if (!(array->flags & CAI_ALIGNED)) cai_priv_put(&text, ", unaligned");
    if (!(array->flags & CAI_WRITABLE)) cai_priv_put(&text, ", read-only");
    if (array->mask) cai_priv_put(&text, ", with a mask");
    cai_priv_put_sync(&text, array);
    if (array->device != CAI_DEVICE_UNKNOWN) cai_priv_say(&text, ", device %d", array->device);
    cai_priv_say(&text, ", at 0x%llx", (unsigned long long)array->data);
    return cai_priv_text_close(&text);
}

/* ---------------------------------------------------------------- >>expecting */
enum {
    CAI_PRIV_FACTS = CAI_WRITABLE | CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS | CAI_ALIGNED | CAI_NO_SELF_OVERLAP,
    CAI_PRIV_REQUIREMENTS = CAI_PRIV_FACTS | CAI_ON_DEVICE | CAI_ALLOW_MASK | CAI_ALLOW_UNALIGNED
};

/* Returns the bits of `requirements` that the array does not meet. */
static uint32_t cai_priv_unmet(const cai_array *array, uint32_t requirements)
{
    const uint32_t wanted = requirements & CAI_ALLOW_UNALIGNED ? requirements : requirements | CAI_ALIGNED;
    uint32_t unmet = wanted & CAI_PRIV_FACTS & ~array->flags;
    if (array->packed_axis >= 0 && array->packed_axis != array->ndim - 1) unmet |= wanted & CAI_C_CONTIGUOUS;
    if (array->packed_axis > 0) unmet |= wanted & CAI_F_CONTIGUOUS;
    if ((requirements & CAI_ON_DEVICE) && array->memory == CAI_MEMORY_HOST && array->device < 0)
        unmet |= CAI_ON_DEVICE;
    if (array->mask && !(requirements & CAI_ALLOW_MASK)) unmet |= CAI_ALLOW_MASK;
    return unmet;
}

/* Writes an item of a list if `condition` is not 0, with a comma before all but the first. */
static void cai_priv_put_item(cai_priv_text *text, uint32_t condition, const char *item)
{
    if (!condition) return;
    if (text->at[-1] != ' ') cai_priv_put(text, ", ");
    cai_priv_put(text, item);
}

static void cai_priv_put_ndim(cai_priv_text *text, int32_t ndim)
{
    cai_priv_put_item(text, 1, "");
    cai_priv_say(text, "%d-D", ndim);
}

static void cai_priv_put_expected(cai_priv_text *text, int32_t code, int32_t ndim, uint32_t wanted,
                                  uint32_t unmet)
{
    cai_dtype dtype;
    cai_priv_dtype_fill(&dtype, code, code & 0xff, 1);
    if (dtype.itemsize) cai_priv_put_dtype(text, &dtype);
    else if (code != CAI_ANY_DTYPE) cai_priv_put(text, cai_dtype_name(code));
    if (ndim != CAI_ANY_NDIM) cai_priv_put_ndim(text, ndim);
    cai_priv_put_item(text, wanted & CAI_C_CONTIGUOUS, "C-contiguous");
    cai_priv_put_item(text, wanted & CAI_F_CONTIGUOUS, "F-contiguous");
    cai_priv_put_item(text, wanted & CAI_WRITABLE, "writable");
    cai_priv_put_item(text, wanted & CAI_NO_SELF_OVERLAP, "no self-overlap");
    cai_priv_put_item(text, wanted & CAI_ON_DEVICE, "on the device");
    cai_priv_put_item(text, (wanted | unmet) & CAI_ALIGNED, "aligned");
    cai_priv_put_item(text, unmet & CAI_ALLOW_MASK, "no mask");
}

static void cai_priv_put_got(cai_priv_text *text, const cai_array *array, uint32_t unmet)
{
    const uint32_t overlap = unmet & CAI_NO_SELF_OVERLAP;
    cai_priv_put_dtype(text, &array->dtype);
    cai_priv_put_ndim(text, array->ndim);
    if (overlap | (unmet & (CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS))) {
        cai_priv_put_packed(text, array);
        cai_priv_put(text, ", strides ");
        cai_priv_put_tuple(text, array->ndim, array->strides);
    }
    cai_priv_put_item(text, overlap,
                      array->flags & CAI_SELF_OVERLAP ? "overlapping itself" : "may overlap itself");
    cai_priv_put_item(text, unmet & CAI_WRITABLE, "read-only");
    cai_priv_put_item(text, unmet & CAI_ON_DEVICE, "in host memory");
    if (unmet & CAI_ALIGNED) cai_priv_say(text, ", not aligned to %d bytes", array->dtype.alignment);
    cai_priv_put_item(text, unmet & CAI_ALLOW_MASK, "with a mask");
}

CAI_API cai_status cai_expect(const cai_array *array, const char *name, int32_t code, int32_t ndim,
                              uint32_t requirements, cai_error *err)
{
    cai_priv_text text;
    uint32_t unmet;
    if (!name) return cai_priv_is_null(err, "cai_expect: name");
    CAI_TRY(cai_error_name(cai_array_check(array, err), name, err));
    if (requirements & ~(uint32_t)CAI_PRIV_REQUIREMENTS)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_expect: requirements = 0x%x has unknown bits",
                              requirements);
    unmet = cai_priv_unmet(array, requirements);
    if (!unmet && (code == CAI_ANY_DTYPE || code == array->dtype.code) &&
        (ndim == CAI_ANY_NDIM || ndim == array->ndim))
        return CAI_OK;
    if (!err) return CAI_ERR_EXPECT;
    text = cai_priv_error_open(err, CAI_ERR_EXPECT, CAI_ENTRY_NONE, -1);
    cai_priv_put(&text, name);
    cai_priv_put(&text, ": expected ");
    cai_priv_put_expected(&text, code, ndim, requirements, unmet);
    cai_priv_put(&text, "; got ");
    cai_priv_put_got(&text, array, unmet);
    (void)cai_priv_text_close(&text);
    return CAI_ERR_EXPECT;
}

CAI_API cai_status cai_expect_same_shape(const cai_array *a, const char *a_name, const cai_array *b,
                                         const char *b_name, cai_error *err)
{
    int32_t axis = 0;
    if (!a_name || !b_name) return cai_priv_is_null(err, "cai_expect_same_shape: a name");
    CAI_TRY(cai_error_name(cai_array_check(a, err), a_name, err));
    CAI_TRY(cai_error_name(cai_array_check(b, err), b_name, err));
    if (a->ndim != b->ndim)
        return cai_priv_fail(err, CAI_ERR_EXPECT, CAI_ENTRY_SHAPE, -1,
                             "shape has %d dimensions in %s, %d in %s", a->ndim, a_name, b->ndim, b_name);
    while (axis < a->ndim && a->shape[axis] == b->shape[axis]) ++axis;
    if (axis < a->ndim)
        return cai_priv_fail(err, CAI_ERR_EXPECT, CAI_ENTRY_SHAPE, axis, "shape[%d] = %lld in %s, %lld in %s",
                             axis, (long long)a->shape[axis], a_name, (long long)b->shape[axis], b_name);
    axis = a->packed_axis;
    if (axis < 0 || b->packed_axis < 0 || (axis == b->packed_axis && a->packed_extent == b->packed_extent))
        return CAI_OK;
    return cai_priv_fail(err, CAI_ERR_EXPECT, CAI_ENTRY_SHAPE, axis,
                         "axis %d has %lld values in %s, axis %d has %lld in %s", axis,
                         (long long)a->packed_extent, a_name, b->packed_axis, (long long)b->packed_extent,
                         b_name);
}

/* ------------------------------------------------------------------ >>viewing */
static cai_status cai_priv_addressable(const cai_array *array, cai_error *err)
{
    if (array->dtype.code != CAI_BITFIELD) return CAI_OK;
    return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_VIEW, 33), CAI_ENTRY_TYPESTR, -1,
                         "a bit field has no views: bits have no addresses");
}

/* Checks the arguments of every view. An owned array would lose its owner. */
static cai_status cai_priv_view_check(const cai_array *array, const cai_array *out, cai_error *err)
{
    CAI_TRY(cai_array_check(array, err));
    if (!out) return cai_priv_is_null(err, "the argument out");
    if (out == array && array->release)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "an owned array cannot become a view of itself");
    return CAI_OK;
}

static cai_status cai_priv_view_open(const cai_array *array, const cai_array *out, cai_priv_draft *view,
                                     cai_error *err)
{
    CAI_TRY(cai_priv_view_check(array, out, err));
    if (array->mask)
        return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_MASK, 52), CAI_ENTRY_MASK, -1,
                             "the array has a mask: view cai_view_values and the mask separately");
    CAI_TRY(cai_priv_addressable(array, err));
    cai_array_borrow(&view->array, array);
    view->shape = view->array.shape;
    view->strides = view->array.strides;
    view->array.flags = array->flags & (CAI_WRITABLE | CAI_FUTURE_VERSION | CAI_NO_BACK_EDGE);
    view->array.flags |= CAI_HAD_STRIDES;
    return CAI_OK;
}

/* Fails with what a view cannot do to an axis whose elements are several values. */
CAI_PRIV_COLD cai_status cai_priv_reject_packed(const cai_array *array, const char *what, cai_error *err)
{
    return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_NONE, array->packed_axis,
                         "axis %d cannot be %s: an element is %d values (as bytes: cai_view_reinterpret)",
                         array->packed_axis, what, cai_dtype_values(&array->dtype));
}

/* Computes the facts and stores the view. If `fields` is true, the rows of a descr still apply. */
static cai_status cai_priv_view_close(cai_priv_draft *view, int fields, cai_array *out, cai_error *err)
{
    if (view->array.packed_axis < 0 && view->array.dtype.code & CAI_PRIV_PACKED && view->array.ndim)
        return cai_priv_reject_packed(&view->array, "added", err);
    if (!fields) view->array.field_count = 0;
    CAI_TRY(cai_priv_describe(err, view, out));
    if (fields) out->fields = view->array.fields;
    out->packed_extent = view->array.packed_extent;
    out->packed_axis = view->array.packed_axis;
    out->backend = view->array.backend;
    return CAI_OK;
}

/* Makes a negative axis count from the end. `ndim` is the number of axes to choose from. */
static cai_status cai_priv_axis(int32_t *axis, int32_t ndim, cai_error *err)
{
    const int32_t given = *axis;
    if (given < -ndim || given >= ndim)
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_NONE, given < 0 ? -1 : given,
                             "axis %d does not exist: there are %d axes", given, ndim);
    if (given < 0) *axis = given + ndim;
    return CAI_OK;
}

static void cai_priv_append_axis(cai_array *view, int64_t extent, int64_t stride)
{
    view->shape[view->ndim] = extent;
    view->strides[view->ndim++] = stride;
}

CAI_API cai_status cai_view_values(const cai_array *array, cai_array *out, cai_error *err)
{
    CAI_TRY(cai_priv_view_check(array, out, err));
    if (out != array) cai_array_borrow(out, array);
    out->owner = NULL;
    out->mask = NULL;
    return CAI_OK;
}

CAI_API cai_status cai_view_permute(const cai_array *array, const int32_t *axes, cai_array *out, cai_error *err)
{
    cai_priv_draft view;
    uint64_t seen = 0;
    int32_t axis;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    for (int32_t i = 0; i < array->ndim; ++i) {
        axis = axes ? axes[i] : array->ndim - 1 - i;
        CAI_TRY(cai_priv_axis(&axis, array->ndim, err));
        if (seen >> axis & 1)
            return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_NONE, i, "axes[%d] = %d occurs twice", i, axis);
        seen |= (uint64_t)1 << axis;
        view.array.shape[i] = array->shape[axis];
        view.array.strides[i] = array->strides[axis];
        if (axis == array->packed_axis) view.array.packed_axis = i;
    }
    return cai_priv_view_close(&view, 1, out, err);
}

/* Counts the values of `count` elements from `start`. The last element of the array may have unused bits. */
static void cai_priv_slice_packed(const cai_array *array, int64_t start, int64_t count, cai_array *view)
{
    const int64_t values = cai_dtype_values(&array->dtype);
    view->packed_extent = start + count < array->shape[array->packed_axis] || !count
                              ? count * values
                              : array->packed_extent - start * values;
}

CAI_API cai_status cai_view_slice(const cai_array *array, int32_t axis, int64_t start, int64_t count,
                                  int64_t step, cai_array *out, cai_error *err)
{
    cai_priv_draft view;
    int64_t travel = 0, last = start, extent;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    CAI_TRY(cai_priv_axis(&axis, array->ndim, err));
    extent = array->shape[axis];
    if (step == 0 || count < 0 || start < 0 || start > extent - (count > 0) ||
        (count && (cai_priv_mul(count - 1, step, &travel) || cai_priv_add(start, travel, &last) || last < 0 ||
                   last >= extent)))
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_NONE, axis,
                             "axis %d of extent %lld has no slice with start = %lld, count = %lld, step = %lld",
                             axis, (long long)extent, (long long)start, (long long)count, (long long)step);
    if (axis == array->packed_axis) {
        if (count > 1 && step != 1) return cai_priv_reject_packed(array, "sliced with a step", err);
        cai_priv_slice_packed(array, start, count, &view.array);
    }
    if (count) view.array.data += (uint64_t)cai_priv_wrap_mul(start, array->strides[axis]);
    view.array.shape[axis] = count;
    view.array.strides[axis] = cai_priv_wrap_mul(array->strides[axis], step);
    return cai_priv_view_close(&view, 1, out, err);
}

CAI_API cai_status cai_view_index(const cai_array *array, int32_t axis, int64_t index, cai_array *out,
                                  cai_error *err)
{
    int64_t extent;
    cai_priv_draft view;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    CAI_TRY(cai_priv_axis(&axis, array->ndim, err));
    extent = array->shape[axis];
    if (index < -extent || index >= extent)
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_NONE, axis,
                             "axis %d: index %lld is outside of an extent of %lld", axis, (long long)index,
                             (long long)extent);
    if (axis == array->packed_axis) return cai_priv_reject_packed(array, "dropped", err);
    if (index < 0) index += extent;
    view.array.data += (uint64_t)cai_priv_wrap_mul(index, array->strides[axis]);
    view.array.ndim = 0;
    if (array->packed_axis > axis) --view.array.packed_axis;
    for (int32_t i = 0; i < array->ndim; ++i) {
        if (i != axis) cai_priv_append_axis(&view.array, array->shape[i], array->strides[i]);
    }
    return cai_priv_view_close(&view, 1, out, err);
}

CAI_API cai_status cai_view_expand(const cai_array *array, int32_t axis, cai_array *out, cai_error *err)
{
    cai_priv_draft view;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    CAI_TRY(cai_priv_axis(&axis, array->ndim + 1, err));
    if (array->ndim == CAI_MAX_NDIM)
        return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_VIEW, 29), CAI_ENTRY_NONE, axis,
                             "the array has 64 dimensions, the limit");
    view.array.ndim = 0;
    if (array->packed_axis >= axis) ++view.array.packed_axis;
    for (int32_t i = 0; i <= array->ndim; ++i) {
        if (i == axis) cai_priv_append_axis(&view.array, 1, 0);
        if (i < array->ndim) cai_priv_append_axis(&view.array, array->shape[i], array->strides[i]);
    }
    return cai_priv_view_close(&view, 1, out, err);
}

CAI_API cai_status cai_view_broadcast(const cai_array *array, int32_t ndim, const int64_t *shape,
                                      cai_array *out, cai_error *err)
{
    cai_priv_draft view;
    int32_t more;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    CAI_TRY(cai_priv_check_shape(ndim, shape, err));
    more = ndim - array->ndim;
    if (more < 0)
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_SHAPE, -1, "%d dimensions do not broadcast to %d",
                             array->ndim, ndim);
    view.array.ndim = ndim;
    if (array->packed_axis >= 0) view.array.packed_axis += more;
    for (int32_t axis = ndim; axis-- > 0;) {
        const int64_t extent = axis < more ? 1 : array->shape[axis - more];
        const int same = extent == shape[axis];
        if (!same && extent != 1)
            return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_SHAPE, axis - more,
                                 "shape[%d] = %lld does not broadcast to %lld", axis - more,
                                 (long long)extent, (long long)shape[axis]);
        view.array.strides[axis] = same && axis >= more ? array->strides[axis - more] : 0;
        view.array.shape[axis] = shape[axis];
        if (!same) view.array.flags &= ~(uint32_t)CAI_WRITABLE;
        if (!same && axis == view.array.packed_axis) return cai_priv_reject_packed(array, "repeated", err);
    }
    return cai_priv_view_close(&view, 1, out, err);
}

CAI_API cai_status cai_broadcast_shape(const cai_array *array, const char *name, int32_t *ndim, int64_t *shape,
                                       cai_error *err)
{
    int64_t joint[CAI_MAX_NDIM], size = 1;
    int32_t axis, count;
    if (!name || !ndim || !shape)
        return cai_priv_is_null(err, "cai_broadcast_shape: name, ndim or shape");
    CAI_TRY(cai_error_name(cai_array_check(array, err), name, err));
    CAI_TRY(cai_priv_check_shape(*ndim, shape, err));
    axis = count = array->ndim > *ndim ? array->ndim : *ndim;
    while (axis-- > 0) {
        const int32_t own = axis - (count - array->ndim), other = axis - (count - *ndim);
        const int64_t extent = own < 0 ? 1 : array->shape[own], before = other < 0 ? 1 : shape[other];
        if (extent != before && extent != 1 && before != 1)
            return cai_priv_fail(err, CAI_ERR_EXPECT, CAI_ENTRY_SHAPE, own,
                                 "%s: shape[%d] = %lld does not broadcast with the %lld of the arrays before",
                                 name, own, (long long)extent, (long long)before);
        joint[axis] = before == 1 ? extent : before;
        if (joint[axis] < 0) return cai_error_name(cai_priv_reject_extent(err, axis, joint[axis]), name, err);
        if (joint[axis] && cai_priv_mul(joint[axis], size, &size))
            return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_SHAPE, 18), CAI_ENTRY_SHAPE, axis,
                                 "%s: the result has more than 9223372036854775807 elements", name);
    }
    *ndim = count;
    while (count-- > 0) shape[count] = joint[count];
    return CAI_OK;
}

/* Resolves the -1 of a new shape and checks that it has as many elements as the array. */
static cai_status cai_priv_resolve_shape(const cai_array *array, cai_array *view, cai_error *err)
{
    int64_t count = 1;
    int32_t open = -1, empty = 0, huge = 0;
    for (int32_t axis = 0; axis < view->ndim; ++axis) {
        const int64_t extent = view->shape[axis];
        if (extent == -1 && open < 0) open = axis;
        else if (extent == -1)
            return CAI_PRIV_WRONG(err, CAI_ENTRY_SHAPE, axis, " = -1 is a second unknown extent");
        else if (extent < 0) return cai_priv_reject_extent(err, axis, extent);
        else if (extent == 0) empty = 1;
        else huge |= cai_priv_mul(extent, huge ? 1 : count, &count);
    }
    if (open >= 0 && !empty && !huge && array->size % count == 0) {
        view->shape[open] = array->size / count;
        return CAI_OK;
    }
    if (open < 0 && (empty ? array->size == 0 : !huge && count == array->size)) return CAI_OK;
    return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_SHAPE, open,
                         "%lld elements do not fill the new shape of %d dimensions", (long long)array->size,
                         view->ndim);
}

/* Copies the axes of an array with elements. Extents of 1 are dropped, and axes that continue one another are
 * merged. The axis `packed`, if there is such a one, stays as it is. */
static void cai_priv_merge_axes(const cai_array *array, int32_t packed, cai_array *merged)
{
    merged->ndim = 0;
    merged->packed_axis = -1;
    for (int32_t axis = 0; axis < array->ndim; ++axis) {
        const int64_t extent = array->shape[axis], stride = array->strides[axis];
        const int32_t last = merged->ndim - 1;
        if (axis == packed) {
            merged->packed_axis = merged->ndim;
        } else if (extent == 1) {
            continue;
        } else if (last > merged->packed_axis && merged->strides[last] == cai_priv_wrap_mul(extent, stride)) {
            merged->shape[last] *= extent;
            merged->strides[last] = stride;
            continue;
        }
        cai_priv_append_axis(merged, extent, stride);
    }
}

/* Computes strides for a new shape of the same elements in C order. Each merged axis is cut into new axes
 * with the same product. Returns false if there are none, which needs a copy. */
static int cai_priv_restride(const cai_array *array, cai_array *view)
{
    cai_array merged;
    int32_t to = 0;
    cai_priv_merge_axes(array, array->ndim, &merged);
    for (int32_t from = 0; from < merged.ndim; ++from) {
        int64_t extent = 1, stride = merged.strides[from];
        const int32_t first = to;
        while (extent < merged.shape[from]) extent *= view->shape[to++];
        if (extent != merged.shape[from]) return 0;
        for (int32_t axis = to; axis-- > first;) {
            view->strides[axis] = stride;
            stride = cai_priv_wrap_mul(stride, view->shape[axis]);
        }
    }
    for (; to < view->ndim; ++to) view->strides[to] = view->dtype.itemsize;
    return 1;
}

CAI_PRIV_COLD cai_status cai_priv_needs_copy(cai_error *err, const cai_array *array, const cai_array *view)
{
    cai_priv_text text;
    if (!err) return CAI_ERR_VIEW;
    text = cai_priv_error_open(err, CAI_ERR_VIEW, CAI_ENTRY_SHAPE, -1);
    cai_priv_put_layout(&text, array);
    cai_priv_put(&text, " needs a copy to become ");
    cai_priv_put_tuple(&text, view->ndim, view->shape);
    (void)cai_priv_text_close(&text);
    return CAI_ERR_VIEW;
}

/* Packs the last axis of a view that has the elements of the array in C order. Unused bits must stay at its
 * end. */
static cai_status cai_priv_reshape_packed(const cai_array *array, cai_array *view, cai_error *err)
{
    const int32_t packed = array->packed_axis, last = view->ndim - 1;
    const int64_t values = cai_dtype_values(&array->dtype);
    if (packed < 0) return CAI_OK;
    if (packed != array->ndim - 1 || last < 0) return cai_priv_reject_packed(array, "reshaped", err);
    view->packed_axis = last;
    if (view->shape[last] == array->shape[packed]) return CAI_OK;
    if (array->size && array->packed_extent % values)
        return cai_priv_reject_packed(array, "reshaped, as it has unused bits", err);
    if (cai_priv_mul(view->shape[last], values, &view->packed_extent))
        return cai_priv_reject_packed(array, "so long", err);
    return CAI_OK;
}

CAI_API cai_status cai_view_reshape(const cai_array *array, int32_t ndim, const int64_t *shape, cai_array *out,
                                    cai_error *err)
{
    cai_priv_draft view;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    CAI_TRY(cai_priv_check_shape(ndim, shape, err));
    view.array.ndim = ndim;
    for (int32_t axis = 0; axis < ndim; ++axis) view.array.shape[axis] = shape[axis];
    CAI_TRY(cai_priv_resolve_shape(array, &view.array, err));
    CAI_TRY(cai_priv_reshape_packed(array, &view.array, err));
    if (array->size == 0) view.strides = NULL; /* C order */
    else if (!cai_priv_restride(array, &view.array)) return cai_priv_needs_copy(err, array, &view.array);
    return cai_priv_view_close(&view, 1, out, err);
}

/* Closes a view with a new dtype. A packed axis stays if the elements have as many values as before. */
static cai_status cai_priv_reinterpreted(cai_priv_draft *view, const cai_dtype *before, cai_array *out,
                                         cai_error *err)
{
    cai_array *array = &view->array;
    const int32_t values = cai_dtype_values(&array->dtype), size = array->dtype.itemsize;
    if (values == cai_dtype_values(before) && size == before->itemsize)
        return cai_priv_view_close(view, 0, out, err);
    array->packed_axis = values > 1 ? cai_priv_packed_axis(array->ndim, array->strides, size) : -1;
    array->packed_extent = 0;
    if (array->packed_axis >= 0 &&
        cai_priv_mul(array->shape[array->packed_axis], values, &array->packed_extent))
        return cai_priv_reject_packed(array, "so long", err);
    return cai_priv_view_close(view, 0, out, err);
}

CAI_API cai_status cai_view_reinterpret(const cai_array *array, const cai_dtype *dtype, cai_array *out,
                                        cai_error *err)
{
    cai_priv_draft view;
    int64_t nbytes, size, old_size;
    int32_t last;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    if (!dtype) return cai_priv_is_null(err, "cai_view_reinterpret: dtype");
    view.array.dtype = *dtype;
    last = array->ndim - 1;
    size = dtype->itemsize;
    old_size = array->dtype.itemsize;
    if (size == old_size) return cai_priv_reinterpreted(&view, &array->dtype, out, err);
    if (size < 1 || last < 0 || (array->size && array->shape[last] != 1 && array->strides[last] != old_size))
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_NONE, last,
                             "items of %lld bytes cannot become items of %lld: no contiguous last axis",
                             (long long)old_size, (long long)size);
    if (cai_priv_mul(array->shape[last], old_size, &nbytes) || nbytes % size)
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_NONE, last,
                             "a last axis of %lld elements is not a whole number of items of %lld bytes",
                             (long long)array->shape[last], (long long)size);
    view.array.shape[last] = nbytes / size;
    view.array.strides[last] = size;
    return cai_priv_reinterpreted(&view, &array->dtype, out, err);
}

CAI_API cai_status cai_view_coalesce(const cai_array *array, cai_array *out, cai_error *err)
{
    cai_priv_draft view;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    view.array.ndim = 0;
    if (array->size) {
        cai_priv_merge_axes(array, array->packed_axis, &view.array);
    } else {
        cai_priv_append_axis(&view.array, 0, array->dtype.itemsize);
        if (array->packed_axis >= 0) view.array.packed_axis = 0;
        view.array.packed_extent = 0;
    }
    return cai_priv_view_close(&view, 1, out, err);
}

/* Appends the axes of the sub-array of a field, in C order over its items. */
static cai_status cai_priv_append_repeat(cai_array *view, const cai_field *field, cai_error *err)
{
    int64_t stride = field->dtype.itemsize;
    int32_t ndim = view->ndim;
    if (field->ndim < 0 || field->ndim > CAI_MAX_FIELD_NDIM || ndim + field->ndim > CAI_MAX_NDIM)
        return cai_priv_fail(err, CAI_PRIV_RULE(CAI_ERR_VIEW, 29), CAI_ENTRY_DESCR, -1,
                             "%d dimensions and %d of the sub-array exceed 64", ndim, field->ndim);
    for (int32_t i = field->ndim; i-- > 0;) {
        view->shape[ndim + i] = field->shape[i];
        view->strides[ndim + i] = stride;
        stride = cai_priv_wrap_mul(stride, field->shape[i]);
    }
    view->ndim += field->ndim;
    view->data += (uint64_t)field->offset;
    return CAI_OK;
}

CAI_API cai_status cai_view_field(const cai_array *array, int64_t row, cai_array *out, cai_error *err)
{
    const cai_field *chain[CAI_MAX_FIELD_DEPTH];
    cai_priv_draft view;
    int32_t depth = 0;
    int64_t rows;
    CAI_TRY(cai_priv_view_open(array, out, &view, err));
    rows = array->fields ? array->field_count : 0;
    if (row < 0 || row >= rows)
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_DESCR, -1,
                             "row %lld does not exist: there are %lld rows", (long long)row, (long long)rows);
    for (int64_t at = row; at >= 0 && at < rows && depth < CAI_MAX_FIELD_DEPTH; at = array->fields[at].parent)
        chain[depth++] = array->fields + at;
    view.array.dtype = chain[0]->dtype;
    while (depth > 0) CAI_TRY(cai_priv_append_repeat(&view.array, chain[--depth], err));
    return cai_priv_view_close(&view, 0, out, err);
}

CAI_API cai_status cai_kernel_view_of(const cai_array *array, cai_kernel_view *out, cai_error *err)
{
    CAI_TRY(cai_array_check(array, err));
    if (!out) return cai_priv_is_null(err, "cai_kernel_view_of: out");
    if (array->ndim > CAI_MAX_KERNEL_NDIM)
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_SHAPE, -1,
                             "the array has %d dimensions, a kernel view at most 8: cai_view_coalesce may "
                             "merge some", array->ndim);
    CAI_TRY(cai_priv_addressable(array, err));
    if (array->data > UINTPTR_MAX)
        return cai_priv_fail(err, CAI_ERR_VIEW, CAI_ENTRY_DATA, 0, "data = %llu exceeds a pointer",
                             (unsigned long long)array->data);
    out->data = (char *)(uintptr_t)array->data;
    out->ndim = array->ndim;
    out->itemsize = array->dtype.itemsize;
    for (int32_t axis = 0; axis < CAI_MAX_KERNEL_NDIM; ++axis) {
        out->shape[axis] = axis < array->ndim ? array->shape[axis] : 1;
        out->strides[axis] = axis < array->ndim ? array->strides[axis] : 0;
    }
    return CAI_OK;
}

/* --------------------------------------------------------- >>decoding streams */
CAI_API cai_status cai_decode_stream_interface(const cai_token *value, int32_t version, int32_t *sync,
                                               uint64_t *stream, cai_error *err)
{
    const cai_priv_judge judge = {err, 0};
    if (!sync || !stream) return cai_priv_is_null(err, "cai_decode_stream_interface: sync or stream");
    return cai_priv_judge_stream(&judge, value, version, sync, stream);
}

CAI_API cai_status cai_decode_stream_protocol(const cai_token *value, uint64_t *stream, cai_error *err)
{
    int64_t handle;
    if (!value || !stream) return cai_priv_is_null(err, "cai_decode_stream_protocol: value or stream");
    if (!cai_priv_is_items(value))
        return cai_priv_mistyped(err, CAI_ENTRY_STREAM, -1,
                                 ": __cuda_stream__() must return a tuple (0, handle)", value, 0);
    if (value->length != 2)
        return CAI_PRIV_WRONG(err, CAI_ENTRY_STREAM, -1,
                              ": __cuda_stream__() must return (0, handle), not %u items", value->length);
    if (value[1].kind != CAI_TOKEN_INT) return cai_priv_reject_int(err, CAI_ENTRY_STREAM, 0, value + 1);
    if (value[1].number != 0)
        return cai_priv_fail(err, CAI_ERR_VERSION, CAI_ENTRY_STREAM, 0,
                             ": __cuda_stream__() has protocol version %lld, only 0 is supported",
                             (long long)value[1].number);
    handle = (int64_t)value[2].number;
    if (value[2].kind != CAI_TOKEN_INT && value[2].kind != CAI_TOKEN_UINT)
        return cai_priv_reject_int(err, CAI_ENTRY_STREAM, 1, value + 2);
    if (value[2].kind == CAI_TOKEN_INT && handle < 0)
        return CAI_PRIV_WRONG(err, CAI_ENTRY_STREAM, 1, " = %lld, the handle, is negative", (long long)handle);
    if (value[2].number > UINTPTR_MAX)
        return CAI_PRIV_WRONG(err, CAI_ENTRY_STREAM, 1, " = %llu, the handle, exceeds a pointer",
                              (unsigned long long)handle);
    *stream = value[2].number ? value[2].number : (uint64_t)CAI_STREAM_LEGACY;
    return CAI_OK;
}

CAI_API cai_status cai_decode_stream_dlpack(const cai_token *value, int32_t *sync, uint64_t *stream,
                                            cai_error *err)
{
    const int absent = !value || value->kind == CAI_TOKEN_NONE;
    const uint64_t number = absent ? (uint64_t)CAI_STREAM_LEGACY : value->number;
    const int is_signed = !absent && value->kind == CAI_TOKEN_INT;
    const int no_sync = is_signed && (int64_t)number == -1;
    if (!sync || !stream) return cai_priv_is_null(err, "cai_decode_stream_dlpack: sync or stream");
    if (!absent && !is_signed && value->kind != CAI_TOKEN_UINT)
        return cai_priv_reject_int(err, CAI_ENTRY_STREAM, -1, value);
    if (number == 0)
        return CAI_PRIV_WRONG(err, CAI_ENTRY_STREAM, -1,
                              " = 0 is disallowed by DLPack for CUDA: 1 is the legacy default stream, 2 the "
                              "per-thread one");
    if (is_signed && (int64_t)number < -1)
        return CAI_PRIV_WRONG(err, CAI_ENTRY_STREAM, -1,
                              " = %lld is below -1, the number for no synchronization", (long long)number);
    *sync = no_sync ? CAI_SYNC_NONE : CAI_SYNC_STREAM;
    *stream = no_sync ? 0 : number;
    return CAI_OK;
}

#endif /* CAI_CORE_IMPLEMENTATION */

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

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
