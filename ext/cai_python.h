/* cai_python.h - Python objects to cai_array, and back: one call, all checks - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * C99 that is also C++11, over Python's limited API of 3.11 and later. No CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_PYTHON_IMPLEMENTATION)
#define CAI_PYTHON_IMPLEMENTATION
#endif

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#if PY_VERSION_HEX < 0x030b0000 || (defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030b0000)
#error "cai_python.h: Python 3.11 or later is needed, and a Py_LIMITED_API of 0x030b0000 or above"
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_python.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_PYTHON_H_INCLUDED) && CAI_PYTHON_H_INCLUDED != 200
#error "cai_python.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_PYTHON_H_INCLUDED
#define CAI_PYTHON_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    Copy cai.h and cai_python.h into your extension module. Write this in one file, before any other header,
    as Python.h demands.

        #define CAI_IMPLEMENTATION
        #include "cai_python.h"

    For cai_python_release_after include cai_stream.h before it, and before that Python.h with
    PY_SSIZE_T_CLEAN defined. For DLPack include cai_python_dlpack.h in place of this header.

WHAT IT IS
    An array of CuPy, PyTorch, Numba, JAX, Warp, RMM or NumPy becomes a cai_array. This header reads and tags
    the dictionary once, and cai.h judges it as a whole. An error becomes a Python exception of the matching
    type with cai.h's sentence. The object is kept alive until the cai_array is released, on any thread.

EXAMPLE (of a module with `cai_python py` in its state, opened in its exec slot by cai_python_init)
        static PyObject *scale(cai_python *py, PyObject *const *args)
        {
            cai_array v[2];
            cai_error err;
            cai_status st;
            uint64_t s;
            if (cai_python_stream(py, args[2], &s) || cai_python_import(py, args, 2, NULL, v)) return NULL;
            st = your_scale(&v[0], &v[1], s, &err); // an exchange, or an order of your own
            cai_python_release(py, v, 2);           // when the work on s needs them no more
            return st ? cai_python_raise(&err) : Py_NewRef(Py_None);
        }

WHAT IT READS (the first of these that an object has)
    1. The exchange of its type in C, __cai_exchange__ (docs/c-exchange.md). It needs no dictionary and takes
       a few ns. It is valid for the type that offered it and for derived types, not for copies.
    2. DLPack's exchange of its type in C, __dlpack_c_exchange_api__. Only with cai_python_dlpack.h.
    3. __cuda_array_interface__, of any version. Subclasses of dict are read as dict. All entries are fetched
       before the first one is read, and each list is copied when it is first read. So code that runs in
       between (__index__ of an item) changes nothing. A class whose attribute is a property is no array (R1).
    4. __array_interface__, with CAI_PYTHON_HOST. NumPy's ndarray itself, and no derived type, is read from
       its buffer. The array is the same. What a buffer cannot describe is read from the dictionary.
    5. __dlpack__. Only with cai_python_dlpack.h.
    6. The buffer protocol, with CAI_PYTHON_HOST. Without that flag 1, 2 and 5 also refuse arrays in plain
       host memory.
    If 3 raised AttributeError for the last array of a type, and the class with 3 has __dlpack_device__, too,
    the next array is first asked for its device. In plain host memory the order is then 4, 6, 5.
    The earlier class in the MRO decides. If a class has one of 2, 3, 4 or 5 in its dictionary, 1 or 2 of its
    base is not used. Attributes of a metaclass do not count. For the last 16 types, their offers in C are
    remembered, or that there is none. A type must not change its offers. Remembered types are not kept alive.

ORDER
    array->sync and array->stream describe pending work as the dictionary does (R70-R77). This header does not
    wait for it. cai_exchange_begin and cai_exchange_end of cai_stream.h do. cai_python_release does not wait,
    either. While your stream may still use an array, call cai_exchange_finish or cai_python_release_after.

OWNERSHIP
    An imported array owns a reference to the object. With CAI_PYTHON_BORROW it may own no reference. Use that
    flag for the arguments of a call, which the caller holds. The release may run on any thread of any
    interpreter, with or without the GIL, and does not wait. The reference is always dropped in the object's
    own interpreter:
        cai_python_release                 here, at once
        cai_array_release, or a list       in the next call that has the GIL; until then it waits in `py`
        the same, after cai_python_clear,  at once if the thread is attached to that interpreter; else by the
        and the deleter of an export       main thread of Python, between two of its instructions
    Outside the main interpreter such a reference waits for the next call, and is never dropped after
    cai_python_clear. In Python 3.11 the stable ABI cannot show whether a thread is attached, so the main
    thread drops. A program that starts Python again after Py_Finalize must release its arrays before.

THREADS
    All functions but the release of an array need the GIL, or an attached thread in a build without GIL. Any
    number of attached threads may use one cai_python. Each interpreter needs a cai_python of its own.
    A call that may wait releases the GIL meanwhile, because a host function in Python would wait for the GIL.
    These calls are cai_python_release_after with something to keep or to poll, and releases of arrays that a
    type's exchange owned, as their maker may wait for a stream. No other call releases it.

RULES
    R1-R8, R70-R84, R100-R106, of docs/rules.md.

NOT HERE
    The device of a dictionary's memory. cai_locate finds it.
    DLPack. cai_python_dlpack.h is a header over this one and cai_dlpack.h. Its cai_python_dlpack_init takes
    the place of cai_python_init. Then the imports of this header also read 2 and 5. It has the functions for
    __dlpack__ and __dlpack_device__ of your own types, too.
*/

#if defined(CAI_NAMESPACE)
#define cai_python_adopt CAI_PRIV_RENAMED(cai_python_adopt)
#define cai_python_clear CAI_PRIV_RENAMED(cai_python_clear)
#define cai_python_cuda_stream CAI_PRIV_RENAMED(cai_python_cuda_stream)
#define cai_python_drain CAI_PRIV_RENAMED(cai_python_drain)
#define cai_python_import CAI_PRIV_RENAMED(cai_python_import)
#define cai_python_init CAI_PRIV_RENAMED(cai_python_init)
#define cai_python_interface CAI_PRIV_RENAMED(cai_python_interface)
#define cai_python_offer CAI_PRIV_RENAMED(cai_python_offer)
#define cai_python_raise CAI_PRIV_RENAMED(cai_python_raise)
#define cai_python_release CAI_PRIV_RENAMED(cai_python_release)
#define cai_python_release_after CAI_PRIV_RENAMED(cai_python_release_after)
#define cai_python_stream CAI_PRIV_RENAMED(cai_python_stream)
#define cai_python_traverse CAI_PRIV_RENAMED(cai_python_traverse)
#define cai_python_try_import CAI_PRIV_RENAMED(cai_python_try_import)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- >>exchange */
#ifndef CAI_PYTHON_EXCHANGE_ABI_V0
#define CAI_PYTHON_EXCHANGE_ABI_V0

/** The exchange of a type in C. docs/c-exchange.md has all rules. The struct is static, and never changes or
 *  is freed. Pass it to cai_python_offer. Both functions are called with the GIL (or on an attached thread),
 *  and must not throw C++ exceptions. */
struct cai_python_exchange_v0 {
    uint32_t abi;         /* CAI_ABI, the layout of cai_array; with another one the exchange is ignored */
    uint32_t struct_size; /* sizeof the maker's struct; later versions append */

    /** Describes `object`, an instance of the type or of a derived type. `out` is not initialized. Write all
     *  fields before shape (cai_array_init does), and shape and strides up to ndim. The memory of a
     *  borrowed array (release NULL) must stay while `object` is referenced, whatever happens to it. The
     *  release of an owned array may run on any thread, without the GIL. Store pending work in sync and
     *  stream. Returns 0, or -1 with an exception set and nothing to release. */
    int (*describe)(PyObject *object, struct cai_array_v0 *out);

    /** Returns a new instance of `type`, which offers this or derives from a type that does. `array` is moved
     *  into it. Its release is called once, when the instance is freed. Must not wait. Keeps sync and stream.
     *  On failure returns NULL with an exception set, and `array` is unchanged. May be NULL: not offered. */
    PyObject *(*adopt)(PyTypeObject *type, struct cai_array_v0 *array);
};

#endif /* CAI_PYTHON_EXCHANGE_ABI_V0 */

typedef struct cai_python_exchange_v0 cai_python_exchange;

/** The name of the attribute of a type, and of the capsule that is its value. */
#define CAI_PYTHON_EXCHANGE "__cai_exchange__"

/* ------------------------------------------------------------------- >>module */
enum { CAI_PYTHON_KEYS = 8, CAI_PYTHON_NAMES = 11, CAI_PYTHON_TYPES = 16 };

/** The remembered offers of a type. */
typedef struct cai_python_type {
    const cai_python_exchange *exchange; /* NULL: none */
    const void *dlpack;                  /* DLPack's exchange; NULL: none */
    PyObject *weak;                      /* a weak reference to the type; NULL: free */
    PyObject *is_neg; /* that method or its name, if its tensors may have PyTorch's lazy bits; or NULL */
    int32_t plain;                       /* its buffers describe the same arrays as its __array_interface__ */
    int32_t device_first; /* 2: __dlpack_device__ is asked first; 1: not yet, as dictionaries are there */
} cai_python_type;

/** The list of references to drop. It has memory of its own, as arrays may outlive the module. */
typedef struct cai_python_home {
    void *released;      /* owners of references */
    void *spare;         /* an owner that is kept for the next array, or NULL */
    void *scheduled;     /* not NULL: the main thread of the main interpreter will drop the references */
    int64_t holders;     /* 1 for the module, and 1 for each array that owns a reference */
    int64_t interpreter; /* the ID of the interpreter of the references */
    int32_t guests;      /* 1 for all holders together, and 1 for each other thread that uses this struct */
    int32_t closed;      /* the module has called cai_python_clear: it drops no more references */
} cai_python_home;

/** The data of a module, kept in its state. Do not move, copy or change it. */
typedef struct cai_python {
    PyObject *keys[CAI_PYTHON_KEYS];   /* of the dictionary, in the order of CAI_ENTRY_LIST */
    PyObject *names[CAI_PYTHON_NAMES]; /* of the attributes */
    PyObject *mro_of, *dict_of;        /* getters of __mro__, __dict__ for any type, past its metaclass */
    const void *known[CAI_PYTHON_TYPES]; /* addresses of the types that are remembered */
    cai_python_type types[CAI_PYTHON_TYPES];
    int32_t next_type; /* index of the place that the next type gets */
    int32_t depth;     /* imports in progress, each called by code that the one before runs */
    int32_t users;     /* without a GIL: threads that read `types`; below 0: one that writes */
    int32_t reserved;  /* 0 */
    cai_python_home *home;
    const struct cai_python_reader *dlpack; /* of cai_python_dlpack_init; NULL: imports read no DLPack */
} cai_python;

/** Initializes an empty cai_python, whose imports read no DLPack. Returns 0, or -1 with an exception set. */
CAI_API CAI_MUST_CHECK int cai_python_init(cai_python *py);

/** Drops all that `py` holds. Call it in the m_free of a module. Returns how many arrays are still alive (see
 *  OWNERSHIP for their references). Other threads may release arrays meanwhile. `py` may be NULL or all
 *  zeros. No other function may be called with `py` afterwards. */
CAI_API int64_t cai_python_clear(cai_python *py);

/** Visits released references that are not dropped yet. Call it in the m_traverse of a module, as they may
 *  lead back to the module. An m_clear is not needed. */
CAI_API int cai_python_traverse(cai_python *py, visitproc visit, void *arg);

/** Raises the error of a function of cai, and returns NULL. err->code must not be CAI_OK. */
CAI_API PyObject *cai_python_raise(const cai_error *err);

/* ---------------------------------------------------------------- >>importing */
enum {
    CAI_PYTHON_HOST = 1 << 8,    /* arrays in host memory, too */
    CAI_PYTHON_MASK = 1 << 9,    /* arrays with a mask, too (R52): look at array->mask */
    CAI_PYTHON_FIELDS = 1 << 10, /* the rows of a descr are kept, in array->fields */
    CAI_PYTHON_NARROW = 1 << 11, /* items become bfloat16, float8, int4, ... by the name of the dtype */
    CAI_PYTHON_BORROW = 1 << 12  /* the caller holds the objects for as long as it uses the arrays */
};

/** Options of an import. Zero means the default. */
typedef struct cai_python_options {
    uint32_t flags;           /* 0, or of CAI_LENIENT, CAI_PYTHON_HOST and those that follow it */
    uint32_t reserved;        /* 0 */
    uint64_t stream;          /* the stream that __dlpack__ makes wait; 0: the legacy default stream */
    const char *const *names; /* of the objects, for messages, each one NULL or UTF-8; NULL: none */
} cai_python_options;

/** What cai_python_try_import returns. */
enum {
    CAI_PYTHON_FAILED = -1,  /* the object is a wrong array, or its own code raised; an exception is set */
    CAI_PYTHON_NOT_MINE = 0, /* the object is no array of the wanted kind; no exception is set */
    CAI_PYTHON_TAKEN = 1     /* the object was imported */
};

/** Imports `count` objects, all or none. `out` has `count` arrays, which are undefined after a failure.
 *  `options` may be NULL. Returns 0, or -1 with an exception set. An object that exports nothing readable
 *  raises TypeError. Exceptions of the object's own code stay. A status of cai.h or cai_dlpack.h raises its
 *  message with the type in CAI_STATUS_LIST. With several objects, or names, the message begins with
 *  "argument 2 (y), of type Foo: ", counted from 1. Exceptions of Python code get a note. */
CAI_API CAI_MUST_CHECK int cai_python_import(cai_python *py, PyObject *const *objects, Py_ssize_t count,
                                             const cai_python_options *options, cai_array *out);

/** Imports one object if it is an array. Type casters use this, and try the next overload for other objects.
 *  Returns CAI_PYTHON_TAKEN, or CAI_PYTHON_FAILED with the exception of cai_python_import. Returns
 *  CAI_PYTHON_NOT_MINE without an exception if the object exports nothing readable, is in plain host memory
 *  without CAI_PYTHON_HOST, or is on a device that is not CUDA's. `out` is one array, undefined unless
 *  taken. */
CAI_API CAI_MUST_CHECK int cai_python_try_import(cai_python *py, PyObject *object,
                                                 const cai_python_options *options, cai_array *out);

/* ---------------------------------------------------------------- >>releasing */
/** Releases `count` arrays, and drops the references of arrays released so far. Borrowed arrays are
 *  unchanged. An exception that is set stays. */
CAI_API void cai_python_release(cai_python *py, cai_array *arrays, Py_ssize_t count);

/** Drops the references of arrays that were released, also by other code. Each import does the same. */
CAI_API void cai_python_drain(cai_python *py);

/* ------------------------------------------------------------------ >>streams */
/** Stores the stream of an argument. It is an object with __cuda_stream__, or an int as the interface's
 *  `stream` (R71-R75). None is refused, as it could mean several streams. Returns 0, or -1 with an exception
 *  set. */
CAI_API CAI_MUST_CHECK int cai_python_stream(cai_python *py, PyObject *object, uint64_t *stream);

/** Makes the value of __cuda_stream__ for a stream. Returns a new tuple (0, stream), or NULL. */
CAI_API PyObject *cai_python_cuda_stream(uint64_t stream);

/* ---------------------------------------------------------------- >>exporting */
/** Offers the exchange of a type. Call it before other code gets the first instance. Derived types inherit
 *  it. In all other types the attribute is not an exchange. The type is not kept alive. Returns 0, or -1 with
 *  an exception set. */
CAI_API CAI_MUST_CHECK int cai_python_offer(PyTypeObject *type, const cai_python_exchange *exchange);

/** Moves the owned `array` into a new instance of `type`, with the type's exchange. Pending work stays
 *  pending. An array without elements, mask and fields needs no owner. On failure returns NULL with an
 *  exception set, and `array` is unchanged. Errors: TypeError for a type that does not offer this, ValueError
 *  for a borrowed array, or the exception of the type. */
CAI_API PyObject *cai_python_adopt(cai_python *py, PyTypeObject *type, cai_array *array);

/** Returns a new dictionary of `version` 0 to 3 for an array, the value of __cuda_array_interface__. `mask`
 *  is the object that exports array->mask, or NULL if there is none. For an array in host memory
 *  (CAI_MEMORY_HOST, CAI_SYNC_NONE) it is the value of __array_interface__, and of no other attribute. An
 *  empty one has an address there, as NumPy 2.3 and before refuse 0. On failure returns NULL with an
 *  exception set, BufferError if the version cannot describe the array (cai_export). */
CAI_API PyObject *cai_python_interface(cai_python *py, const cai_array *array, int32_t version,
                                       PyObject *mask);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PYTHON_H_INCLUDED */

/* Declarations that need cai_stream.h. It may be included between two inclusions of this one. */
#if defined(CAI_PYTHON_IMPLEMENTED) && defined(CAI_STREAM_H_INCLUDED) != defined(CAI_PRIV_PY_WITH_STREAM)
#error "cai_python.h: cai_stream.h is to be included before its implementation"
#endif
#if defined(CAI_STREAM_H_INCLUDED) && !defined(CAI_PRIV_PY_WITH_STREAM)
#define CAI_PRIV_PY_WITH_STREAM
#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------- >>releasing in order */
/** Does the same as cai_python_release for arrays that work on `stream` may still use (R80). The arrays stay
 *  in the keep-alive list of `pool` until `stream` has passed, with one event for up to 16 arrays. Empty
 *  arrays, and arrays with CAI_ORDERED_FREE and a stream, are released at once. That stream must have taken
 *  part in an exchange with `stream` (in the default mode), and so waits for that work. Polls the list.
 *  Returns 0, or -1 with an exception set. Then arrays that were not given back are still owned. */
CAI_API CAI_MUST_CHECK int cai_python_release_after(cai_python *py, cai_event_pool *pool, cai_array *arrays,
                                                    Py_ssize_t count, uint64_t stream);

#ifdef __cplusplus
}
#endif
#endif /* CAI_PRIV_PY_WITH_STREAM */

/* ============================================================ >>implementation
 *   >>released  >>module  >>types  >>tagging  >>reading  >>dictionaries  >>buffers  >>importing
 *   >>streams  >>writing */

#if defined(CAI_PYTHON_IMPLEMENTATION) && !defined(CAI_PYTHON_IMPLEMENTED)
#define CAI_PYTHON_IMPLEMENTED

#include <stdlib.h>
#include <string.h>
#if defined(_MSC_VER) && !defined(CAI_NO_THREADS)
#include <intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* this is C that is also C++: it has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL, for that reason */
#endif

/* Attributes, by their places in cai_python.names. */
enum { CAI_PRIV_PY_CUDA, CAI_PRIV_PY_ARRAY, CAI_PRIV_PY_STREAM, CAI_PRIV_PY_EXCHANGE, CAI_PRIV_PY_TABLE,
       CAI_PRIV_PY_DLPACK, CAI_PRIV_PY_DEVICE, CAI_PRIV_PY_DTYPE, CAI_PRIV_PY_IS_CONJ, CAI_PRIV_PY_IS_NEG,
       CAI_PRIV_PY_STRUCT };
enum {
    CAI_PRIV_PY_TOKENS = 160,     /* on the stack: shape and strides of 64 axes, and the rest */
    CAI_PRIV_PY_MOST = 1 << 20,   /* tokens of one dictionary */
    CAI_PRIV_PY_ITEMS = 65,       /* of a tuple that are read, but in a descr: more than 64 are too many */
    CAI_PRIV_PY_DEPTH = 200,      /* of nesting */
    CAI_PRIV_PY_LEVELS = 40       /* of recursion that an import within an import counts as */
};

struct cai_priv_py_import;

/* How imports read DLPack. The one that there is, is in cai_python_dlpack.h. */
struct cai_python_reader {
    /* Returns the table in the capsule of a type, or NULL. The capsule may be NULL, and so may be this. */
    const void *(*find)(PyObject *capsule);
    /* Returns what cai_priv_py_import_exchange does. `is_neg` is that of cai_python_type. */
    int (*import_table)(cai_python *py, uint32_t flags, const void *table, PyObject *is_neg, PyObject *object,
                        cai_array *out);
    int (*import_tensor)(struct cai_priv_py_import *in, PyObject *object, PyObject *method, cai_array *out);
    /* Returns 1 if __dlpack_device__ says so, 0 if it says else or nothing, or -1 with an exception. */
    int (*is_on_host)(struct cai_priv_py_import *in, PyObject *object);
};

/* ----------------------------------------------------------------- >>released */
/* The owner of an imported array, or of an exported tensor. */
typedef struct cai_priv_py_owner {
    struct cai_priv_py_owner *next; /* once it is released */
    cai_python_home *home;
    PyObject *object;
    PyObject *also_held; /* the mask, or the dictionary that holds NumPy's scalars; or NULL */
    void (*release)(cai_array *self); /* of the array as another header made it, with that owner; or NULL */
    void *inner;
    Py_buffer *buffer; /* or NULL */
    cai_field *fields; /* and the text of their names behind them; or NULL */
    int32_t at_once;   /* a thread of Python's that releases it takes the GIL */
    int32_t room;      /* bytes from `mask` on */
    cai_array mask;    /* its storage, or other storage, as far as there is room */
} cai_priv_py_owner;

/* Access to a home, also without the GIL. These functions never wait, as a process may fork at any time. */
#if defined(CAI_NO_THREADS)
static void *cai_priv_py_load(void **at)
{
    return *at;
}

static int cai_priv_py_replace(void **at, void *expected, void *value)
{
    if (*at != expected) return 0;
    *at = value;
    return 1;
}

static int32_t cai_priv_py_add(int32_t *at, int32_t change)
{
    return *at += change;
}
#elif defined(_MSC_VER) && !defined(__clang__)
static void *cai_priv_py_load(void **at)
{
    return *(void *volatile *)at;
}

static int cai_priv_py_replace(void **at, void *expected, void *value)
{
    return _InterlockedCompareExchangePointer(at, value, expected) == expected;
}

static int32_t cai_priv_py_add(int32_t *at, int32_t change)
{
    return (int32_t)_InterlockedExchangeAdd((volatile long *)at, change) + change;
}
#elif defined(__GNUC__) || defined(__clang__)
static void *cai_priv_py_load(void **at)
{
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static int cai_priv_py_replace(void **at, void *expected, void *value)
{
    return __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static int32_t cai_priv_py_add(int32_t *at, int32_t change)
{
    return __atomic_add_fetch(at, change, __ATOMIC_SEQ_CST);
}
#else
#error "cai_python.h: no atomics for this compiler; define CAI_NO_THREADS for one thread at a time"
#endif

static void *cai_priv_py_exchange(void **at, void *value)
{
    void *before;
    do before = cai_priv_py_load(at);
    while (!cai_priv_py_replace(at, before, value));
    return before;
}

/* Puts an owner on the list, on any thread, without the GIL. */
static void cai_priv_py_push(cai_python_home *home, cai_priv_py_owner *owner)
{
    void *first;
    do {
        first = cai_priv_py_load(&home->released);
        owner->next = (cai_priv_py_owner *)first;
    } while (!cai_priv_py_replace(&home->released, first, owner));
}

/* Takes the whole list. */
static cai_priv_py_owner *cai_priv_py_take(cai_python_home *home)
{
    return (cai_priv_py_owner *)cai_priv_py_exchange(&home->released, NULL);
}

/* Removes a guest of a home. The last guest frees the home. */
static void cai_priv_py_leave(cai_python_home *home)
{
    if (!cai_priv_py_add(&home->guests, -1)) free(home);
}

/* Adds or removes a holder. Only the home's interpreter calls this. Returns the number of holders. */
static int64_t cai_priv_py_count(cai_python_home *home, int64_t change)
{
#if !defined(Py_GIL_DISABLED)
    const int64_t left = home->holders += change;
#elif defined(_MSC_VER) && !defined(__clang__)
    const int64_t left = _InterlockedExchangeAdd64(&home->holders, change) + change;
#else
    const int64_t left = __atomic_add_fetch(&home->holders, change, __ATOMIC_SEQ_CST);
#endif
    if (!left) cai_priv_py_leave(home);
    return left;
}

/* The exception that is set, or none, while other code runs. */
typedef struct cai_priv_py_exception {
    PyObject *type, *value, *trace;
} cai_priv_py_exception;

static void cai_priv_py_keep(cai_priv_py_exception *kept)
{
    PyErr_Fetch(&kept->type, &kept->value, &kept->trace);
}

/* Sets the exception again. No other exception remains. */
static void cai_priv_py_put_back(const cai_priv_py_exception *kept)
{
    PyErr_Restore(kept->type, kept->value, kept->trace);
}

/* Calls the release of the array as another header made it. */
CAI_PRIV_NOINLINE void cai_priv_py_release_inner(cai_priv_py_owner *owner)
{
    cai_array array;
    array.release = owner->release;
    array.owner = owner->inner;
    owner->release = NULL;
    array.release(&array);
}

CAI_PRIV_NOINLINE void cai_priv_py_drop_rest(cai_priv_py_owner *owner)
{
    if (owner->buffer) PyBuffer_Release(owner->buffer);
    if (owner->buffer) PyMem_Free(owner->buffer);
    if (owner->fields) PyMem_Free(owner->fields);
    owner->buffer = NULL;
    owner->fields = NULL;
    Py_CLEAR(owner->also_held);
}

/* Drops all that an owner holds. Other code may run, and leave an exception behind. */
static inline void cai_priv_py_drop_held(cai_priv_py_owner *owner)
{
    if (owner->release) cai_priv_py_release_inner(owner);
    if (owner->buffer || owner->fields || owner->also_held) cai_priv_py_drop_rest(owner);
    Py_CLEAR(owner->object);
}

/* Does the same while an exception is set, which stays. */
CAI_PRIV_COLD void cai_priv_py_drop_guarded(cai_priv_py_owner *owner)
{
    cai_priv_py_exception kept;
    cai_priv_py_keep(&kept);
    cai_priv_py_drop_held(owner);
    cai_priv_py_put_back(&kept);
}

/* Returns 1 if an owner has an object alone, which others hold, too. Then no other code runs. */
static inline int cai_priv_py_is_simple(const cai_priv_py_owner *owner)
{
#if !defined(Py_GIL_DISABLED)
    return !owner->release && !owner->buffer && !owner->fields && !owner->also_held && owner->object &&
           Py_REFCNT(owner->object) > 1;
#else
    (void)owner;
    return 0;
#endif
}

/* Drops all that an owner holds. An exception that is set stays, and no other remains. */
static inline void cai_priv_py_empty(cai_priv_py_owner *owner)
{
    if (cai_priv_py_is_simple(owner)) {
        Py_CLEAR(owner->object);
    } else if (PyErr_Occurred()) {
        cai_priv_py_drop_guarded(owner);
    } else {
        cai_priv_py_drop_held(owner);
        if (PyErr_Occurred()) PyErr_Clear();
    }
}

CAI_PRIV_NOINLINE cai_priv_py_owner *cai_priv_py_make_owner(cai_python_home *home, size_t room)
{
    const size_t bytes = offsetof(cai_priv_py_owner, mask) + room;
    cai_priv_py_owner *owner = (cai_priv_py_owner *)PyMem_Malloc(bytes);
    if (!owner) {
        PyErr_NoMemory();
        return NULL;
    }
    memset(owner, 0, offsetof(cai_priv_py_owner, mask));
    owner->home = home;
    owner->room = (int32_t)room;
    return owner;
}

/* Returns an owner of nothing. The owner freed last is the next one. Without a GIL that would need atomics,
 * which cost as much. */
static inline cai_priv_py_owner *cai_priv_py_alloc_owner(cai_python_home *home, size_t room)
{
#if !defined(Py_GIL_DISABLED)
    cai_priv_py_owner *owner = (cai_priv_py_owner *)home->spare;
    if (owner && (size_t)owner->room >= room) {
        home->spare = NULL;
        return owner;
    }
#endif
    return cai_priv_py_make_owner(home, room);
}

/* Frees an owner of nothing. */
static inline void cai_priv_py_free_owner(cai_priv_py_owner *owner)
{
#if !defined(Py_GIL_DISABLED)
    cai_python_home *const home = owner->home;
    if (!home->spare && !home->closed) {
        owner->at_once = 0;
        home->spare = owner;
        return;
    }
#endif
    PyMem_Free(owner);
}

CAI_PRIV_NOINLINE void cai_priv_py_forget(cai_priv_py_owner *owner)
{
    cai_priv_py_empty(owner);
    cai_priv_py_free_owner(owner);
}

/* Forgets the owner of an array. An exception that is set stays. */
static inline void cai_priv_py_drop(cai_priv_py_owner *owner)
{
    cai_python_home *const home = owner->home;
    cai_priv_py_empty(owner);
    cai_priv_py_free_owner(owner);
    (void)cai_priv_py_count(home, -1);
}

/* Drops what was released, on a thread of the home's interpreter. */
CAI_PRIV_NOINLINE void cai_priv_py_drop_all(cai_python_home *home)
{
    cai_priv_py_owner *owner = cai_priv_py_take(home);
    if (!owner) return;
    (void)cai_priv_py_add(&home->guests, 1);
    while (owner) {
        cai_priv_py_owner *next = owner->next;
        cai_priv_py_drop(owner); /* may run code that imports and releases; this list is local */
        owner = next ? next : cai_priv_py_take(home);
    }
    cai_priv_py_leave(home);
}

static inline void cai_priv_py_drain(cai_python_home *home)
{
    if (cai_priv_py_load(&home->released)) cai_priv_py_drop_all(home);
}

/* Returns 1 if this thread is attached to the interpreter of the home. Returns 0 if Python has no answer. */
static int cai_priv_py_is_attached(const cai_python_home *home)
{
#if !defined(Py_LIMITED_API) && PY_VERSION_HEX < 0x030c0000
    /* The process has one current state. It belongs to this thread if the thread stores it, too. */
    PyThreadState *const own = PyGILState_GetThisThreadState();
    if (!own || _PyThreadState_UncheckedGet() != own) return 0;
#else
    /* Does the same for a build for 3.11 and later. From 3.12 on each thread has a current state. */
    if (Py_Version < 0x030c0000 || !PyThreadState_GetDict()) return 0;
#endif
    return PyInterpreterState_GetID(PyInterpreterState_Get()) == home->interpreter;
}

/* The main thread of an interpreter calls this between two instructions. */
static int cai_priv_py_look_again(void *argument)
{
    cai_python_home *const home = (cai_python_home *)argument;
    (void)cai_priv_py_exchange(&home->scheduled, NULL);
    /* Python 3.11 may call this in another interpreter. Then the next release schedules again */
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == home->interpreter) cai_priv_py_drain(home);
    cai_priv_py_leave(home);
    return 0;
}

/* Schedules a drain in the main interpreter, on any thread, without the GIL. It does not wait. */
static void cai_priv_py_schedule(cai_python_home *home)
{
    if (home->interpreter || !Py_IsInitialized()) return; /* only the main one has pending calls */
    if (cai_priv_py_exchange(&home->scheduled, home)) return; /* scheduled, and not yet run */
    (void)cai_priv_py_add(&home->guests, 1);
    if (!Py_AddPendingCall(cai_priv_py_look_again, home)) return;
    (void)cai_priv_py_exchange(&home->scheduled, NULL); /* too many are pending: the next release retries */
    cai_priv_py_leave(home);
}

/* Gives an owner back, on any thread. The thread that has the GIL may wait for this one, so this one never
 * waits for the GIL. It drops the reference only if it is attached. The main thread drops references that
 * cannot wait for the next call. */
static void cai_priv_py_give_back(cai_priv_py_owner *owner)
{
    cai_python_home *home = owner->home;
    const int at_once = owner->at_once;
    if ((at_once || cai_priv_py_add(&home->closed, 0)) && cai_priv_py_is_attached(home)) {
        cai_priv_py_drop(owner);
        return;
    }
    (void)cai_priv_py_add(&home->guests, 1);
    cai_priv_py_push(home, owner);
    if (at_once || cai_priv_py_add(&home->closed, 0)) cai_priv_py_schedule(home); /* may be closed by now */
    cai_priv_py_leave(home);
}

/* Releases an array, on any thread. */
static void cai_priv_py_let_go(cai_array *array)
{
    array->release = NULL;
    cai_priv_py_give_back((cai_priv_py_owner *)array->owner);
}

/* Makes an owner with room for as many bytes, in the place of the mask. */
static inline cai_priv_py_owner *cai_priv_py_owner_with(const cai_python *py, PyObject *object, size_t room)
{
    cai_priv_py_owner *owner = cai_priv_py_alloc_owner(py->home, room);
    if (!owner) return NULL;
    Py_XINCREF(object);
    owner->object = object;
    return owner;
}

static inline cai_priv_py_owner *cai_priv_py_owner_new(const cai_python *py, PyObject *object)
{
    return cai_priv_py_owner_with(py, object, 0);
}

static void cai_priv_py_attach(cai_array *array, cai_priv_py_owner *owner)
{
    cai_array_own(array, cai_priv_py_let_go, owner);
    cai_priv_py_count(owner->home, 1);
}

CAI_API void cai_python_drain(cai_python *py)
{
    cai_priv_py_drain(py->home);
}

/* The release of other code may wait for a stream. One of this code only puts the array into a list. */
CAI_PRIV_NOINLINE void cai_priv_py_release_other(cai_array *array)
{
    PyThreadState *const thread = array->release == cai_priv_py_let_go ? NULL : PyEval_SaveThread();
    cai_array_release(array);
    if (thread) PyEval_RestoreThread(thread);
}

CAI_PRIV_NOINLINE void cai_priv_py_release_one(const cai_python *py, cai_array *array)
{
    cai_priv_py_owner *owner = (cai_priv_py_owner *)array->owner;
    if (array->release != cai_priv_py_let_go || owner->home != py->home) {
        cai_priv_py_release_other(array);
        return;
    }
    array->release = NULL; /* dropped now, without the list */
    cai_priv_py_drop(owner);
}

CAI_API void cai_python_release(cai_python *py, cai_array *arrays, Py_ssize_t count)
{
    for (; count > 0; --count, ++arrays)
        if (arrays->release) cai_priv_py_release_one(py, arrays);
    cai_priv_py_drain(py->home);
}

/* Releases imported arrays. The exception that is set stays, even if other code runs. */
static void cai_priv_py_undo(cai_python *py, cai_array *arrays, Py_ssize_t count)
{
    cai_priv_py_exception kept;
    cai_priv_py_keep(&kept);
    cai_python_release(py, arrays, count);
    cai_priv_py_put_back(&kept);
}

/* ------------------------------------------------------------------- >>module */
static cai_python_home *cai_priv_py_home_new(void)
{
    cai_python_home *home = (cai_python_home *)malloc(sizeof *home); /* may be freed without the GIL */
    if (!home) {
        PyErr_NoMemory();
        return NULL;
    }
    memset(home, 0, sizeof *home);
    home->holders = home->guests = 1;
    home->interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
    return home;
}

/* Finds the getters of __mro__ and __dict__ that every type has from `type`. */
static int cai_priv_py_find_getters(cai_python *py)
{
    PyObject *name = PyUnicode_InternFromString("__dict__"); /* as Python may keep it */
    PyObject *own = name ? PyObject_GetAttr((PyObject *)&PyType_Type, name) : NULL;
    if (own) py->dict_of = PyObject_GetItem(own, name);
    if (py->dict_of) py->mro_of = PyMapping_GetItemString(own, "__mro__");
    Py_XDECREF(own);
    Py_XDECREF(name);
    return py->mro_of ? 0 : -1;
}

CAI_API int cai_python_init(cai_python *py)
{
    static const char *const keys[CAI_PYTHON_KEYS] = {"shape",   "typestr", "data",  "version",
                                                      "strides", "stream",  "descr", "mask"};
    static const char *const names[CAI_PYTHON_NAMES] = {
        "__cuda_array_interface__",   "__array_interface__", "__cuda_stream__",    CAI_PYTHON_EXCHANGE,
        "__dlpack_c_exchange_api__", "__dlpack__",          "__dlpack_device__", "dtype",
        "is_conj",                   "is_neg",              "__array_struct__"};
    int i;
    memset(py, 0, sizeof *py);
    py->home = cai_priv_py_home_new();
    if (!py->home) return -1;
    for (i = 0; i < CAI_PYTHON_KEYS + CAI_PYTHON_NAMES; ++i) {
        const int is_key = i < CAI_PYTHON_KEYS;
        PyObject **const at = is_key ? &py->keys[i] : &py->names[i - CAI_PYTHON_KEYS];
        *at = PyUnicode_InternFromString(is_key ? keys[i] : names[i - CAI_PYTHON_KEYS]);
        if (!*at) break;
    }
    if (i == CAI_PYTHON_KEYS + CAI_PYTHON_NAMES && !cai_priv_py_find_getters(py)) return 0;
    (void)cai_python_clear(py);
    return -1;
}

CAI_API int64_t cai_python_clear(cai_python *py)
{
    cai_python_home *home = py ? py->home : NULL;
    int i;
    if (!home) return 0;
    (void)cai_priv_py_add(&home->closed, 1); /* first: later releases do not rely on the module */
    cai_priv_py_drain(home);
    for (i = 0; i < CAI_PYTHON_KEYS; ++i) Py_CLEAR(py->keys[i]);
    for (i = 0; i < CAI_PYTHON_NAMES; ++i) Py_CLEAR(py->names[i]);
    for (i = 0; i < CAI_PYTHON_TYPES; ++i) Py_CLEAR(py->types[i].weak);
    memset(py->known, 0, sizeof py->known);
    Py_CLEAR(py->mro_of);
    Py_CLEAR(py->dict_of);
    PyMem_Free(home->spare);
    home->spare = NULL;
    py->home = NULL;
    return cai_priv_py_count(home, -1);
}

CAI_API int cai_python_traverse(cai_python *py, visitproc visit, void *arg)
{
    const cai_priv_py_owner *owner;
    if (!py->home) return 0;
    owner = (const cai_priv_py_owner *)cai_priv_py_load(&py->home->released);
    for (; owner; owner = owner->next) {
        Py_VISIT(owner->object);
        Py_VISIT(owner->also_held);
        if (owner->buffer) Py_VISIT(owner->buffer->obj);
    }
    return 0;
}

CAI_API PyObject *cai_python_raise(const cai_error *err)
{
    PyObject *type = PyExc_RuntimeError, *text;
    switch (err->code) {
#define CAI_PRIV_PY_CASE(name, number, exception, meaning)                                                   \
    case name: type = PyExc_##exception; break;
        CAI_STATUS_LIST(CAI_PRIV_PY_CASE)
#undef CAI_PRIV_PY_CASE
    default: break;
    }
    text = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "replace");
    if (text) PyErr_SetObject(type, text);
    Py_XDECREF(text);
    return NULL;
}

/* -------------------------------------------------------------------- >>types */
/* A function of an exporter failed. Raises an exception if that function did not. */
CAI_PRIV_COLD int cai_priv_py_failed(const char *function)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "%s of the producer failed without an exception", function);
    return -1;
}

/* Returns 1 if a weak reference still leads to this object, which the caller keeps alive. */
static inline int cai_priv_py_leads_to(PyObject *weak, const PyObject *object)
{
#if !defined(Py_LIMITED_API) && !defined(Py_GIL_DISABLED)
    return ((const PyWeakReference *)weak)->wr_object == object; /* a dead one leads to None */
#else
    PyObject *found = NULL;
#if PY_VERSION_HEX >= 0x030d0000 && (!defined(Py_LIMITED_API) || Py_LIMITED_API + 0 >= 0x030d0000)
    if (PyWeakref_GetRef(weak, &found) < 0) PyErr_Clear();
    Py_XDECREF(found); /* the caller has a reference of its own */
#else
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* its successor is of Python 3.13 */
#endif
    found = PyWeakref_GetObject(weak);
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif
    if (!found) PyErr_Clear();
#endif
    return found == object;
#endif
}

/* Calls a getter of `type` for a type. Returns a new reference. No other code runs. */
static PyObject *cai_priv_py_get(PyObject *descriptor, PyObject *type)
{
    void *slot = PyType_GetSlot(Py_TYPE(descriptor), Py_tp_descr_get);
    descrgetfunc get = NULL;
    memcpy(&get, &slot, sizeof get);
    return get(descriptor, type, (PyObject *)Py_TYPE(type));
}

/* The places in the MRO of the attributes that describe the arrays of a type. */
typedef struct cai_priv_py_places {
    Py_ssize_t at[CAI_PYTHON_NAMES]; /* index of the first class that has the attribute; count: none has it */
    Py_ssize_t count;                /* number of classes */
    PyObject *mro;                   /* a reference, as the next ones */
    PyObject *capsules[2];           /* the values of CAI_PRIV_PY_EXCHANGE and CAI_PRIV_PY_TABLE */
} cai_priv_py_places;

static int cai_priv_py_find_in(const cai_python *py, PyObject *dictionary, Py_ssize_t at,
                               cai_priv_py_places *out)
{
    int name, there;
    for (name = 0; name < CAI_PYTHON_NAMES; ++name) {
        const int is_capsule = name == CAI_PRIV_PY_EXCHANGE || name == CAI_PRIV_PY_TABLE;
        if (out->at[name] < at) continue;
        there = PySequence_Contains(dictionary, py->names[name]);
        if (there < 0) return -1;
        if (!there) continue;
        out->at[name] = at;
        if (!is_capsule) continue;
        out->capsules[name - CAI_PRIV_PY_EXCHANGE] = PyObject_GetItem(dictionary, py->names[name]);
        if (!out->capsules[name - CAI_PRIV_PY_EXCHANGE]) return -1;
    }
    return 0;
}

/* Searches the classes of a type in the order of its MRO. Attributes of a metaclass do not count. */
static int cai_priv_py_find_places(const cai_python *py, PyObject *type, cai_priv_py_places *out)
{
    PyObject *const mro = cai_priv_py_get(py->mro_of, type);
    const Py_ssize_t count = mro && PyTuple_Check(mro) ? PyTuple_Size(mro) : 0;
    int failed = !mro;
    Py_ssize_t i;
    out->mro = mro;
    out->count = count;
    for (i = 0; i < CAI_PYTHON_NAMES; ++i) out->at[i] = count;
    out->capsules[0] = out->capsules[1] = NULL;
    for (i = 0; i < count && !failed; ++i) {
        PyObject *dictionary = cai_priv_py_get(py->dict_of, PyTuple_GetItem(mro, i));
        failed = !dictionary || cai_priv_py_find_in(py, dictionary, i, out);
        Py_XDECREF(dictionary);
    }
    return failed ? -1 : 0;
}

/* Returns 1 if the capsule was made for this type or for a base. An attribute can be copied anywhere, so the
 * capsule's context is a weak reference to the type that it was made for. */
static int cai_priv_py_is_made_for(PyObject *capsule, const cai_priv_py_places *places)
{
    PyObject *weak = (PyObject *)PyCapsule_GetContext(capsule);
    Py_ssize_t i = 0;
    if (!weak) return 0;
    while (i < places->count && !cai_priv_py_leads_to(weak, PyTuple_GetItem(places->mro, i))) ++i;
    return i < places->count;
}

/* Returns the exchange that was found if it belongs to this type, else NULL. Its layout may be another one. */
static const cai_python_exchange *cai_priv_py_any_exchange(const cai_priv_py_places *places)
{
    PyObject *const capsule = places->capsules[0];
    if (!capsule || !PyCapsule_IsValid(capsule, CAI_PYTHON_EXCHANGE)) return NULL;
    if (!cai_priv_py_is_made_for(capsule, places)) return NULL;
    return (const cai_python_exchange *)PyCapsule_GetPointer(capsule, CAI_PYTHON_EXCHANGE);
}

/* Returns the same if it can be used. */
static const cai_python_exchange *cai_priv_py_prove(const cai_priv_py_places *places)
{
    const cai_python_exchange *const exchange = cai_priv_py_any_exchange(places);
    if (!exchange) return NULL;
    if (exchange->abi != CAI_ABI || exchange->struct_size < sizeof *exchange) return NULL;
    return exchange->describe ? exchange : NULL;
}

/* Chooses what is used of a type. The earlier class in the MRO decides. If a class has a description of its
 * own, the offer in C of its base is not used. */
static void cai_priv_py_choose(const cai_python *py, const cai_priv_py_places *places, cai_python_type *out)
{
    const Py_ssize_t *at = places->at;
    const Py_ssize_t later = at[CAI_PRIV_PY_CUDA] < at[CAI_PRIV_PY_ARRAY] ? at[CAI_PRIV_PY_CUDA]
                                                                         : at[CAI_PRIV_PY_ARRAY];
    const Py_ssize_t others = later < at[CAI_PRIV_PY_DLPACK] ? later : at[CAI_PRIV_PY_DLPACK];
    const int comes_first =
        at[CAI_PRIV_PY_EXCHANGE] <= others && at[CAI_PRIV_PY_EXCHANGE] <= at[CAI_PRIV_PY_TABLE];
    out->exchange = comes_first ? cai_priv_py_prove(places) : NULL;
    out->dlpack = NULL;
    if (at[CAI_PRIV_PY_TABLE] <= others && py->dlpack && py->dlpack->find)
        out->dlpack = py->dlpack->find(places->capsules[1]);
}

/* Returns 1 for NumPy's ndarray, and for types like it. Their buffers describe the same arrays as their
 * __array_interface__, faster. Such a type has both of NumPy's interfaces itself. It is static, and its
 * instances have no __dict__. So no code in Python changes that, or adds a __cuda_array_interface__. */
static int cai_priv_py_is_plain(PyObject *type, const cai_priv_py_places *places)
{
    const Py_ssize_t *const at = places->at;
    const int is_static = !(PyType_GetFlags((PyTypeObject *)type) & Py_TPFLAGS_HEAPTYPE);
    void *slot;
    getattrofunc get = NULL;
    PyObject *offset;
    int is_plain;
    if (!is_static || at[CAI_PRIV_PY_ARRAY] || at[CAI_PRIV_PY_STRUCT] || at[CAI_PRIV_PY_CUDA] < places->count)
        return 0;
    slot = PyType_GetSlot((PyTypeObject *)type, Py_tp_getattro);
    memcpy(&get, &slot, sizeof get);
    offset = PyObject_GetAttrString(type, "__dictoffset__");
    is_plain = get == PyObject_GenericGetAttr && offset && PyLong_Check(offset) && !PyObject_IsTrue(offset);
    PyErr_Clear();
    Py_XDECREF(offset);
    return is_plain;
}

/* Returns a borrowed reference to the method is_neg, or to its name. NULL: the type has none, or no is_conj.
 * The method of a static type stays, as PyTorch's does. To look it up each time takes a quarter more. */
static PyObject *cai_priv_py_find_is_neg(const cai_python *py, const cai_priv_py_places *places)
{
    PyObject *const name = py->names[CAI_PRIV_PY_IS_NEG];
    const Py_ssize_t at = places->at[CAI_PRIV_PY_IS_NEG];
    PyObject *owner, *dictionary, *method = NULL;
    int is_c;
    if (at == places->count || places->at[CAI_PRIV_PY_IS_CONJ] == places->count) return NULL;
    owner = PyTuple_GetItem(places->mro, at);
    if (PyType_GetFlags((PyTypeObject *)owner) & Py_TPFLAGS_HEAPTYPE) return name;
    dictionary = cai_priv_py_get(py->dict_of, owner);
    if (dictionary) method = PyObject_GetItem(dictionary, name);
    is_c = method && Py_TYPE(method) == &PyMethodDescr_Type;
    PyErr_Clear();
    Py_XDECREF(dictionary);
    Py_XDECREF(method);
    return is_c ? method : name;
}

/* Reads the offers of a type. */
static int cai_priv_py_ask_type(const cai_python *py, PyObject *type, cai_python_type *out)
{
    cai_priv_py_places places;
    const int failed = cai_priv_py_find_places(py, type, &places);
    memset(out, 0, sizeof *out);
    if (!failed) cai_priv_py_choose(py, &places, out);
    if (!failed) out->plain = cai_priv_py_is_plain(type, &places);
    out->device_first = py->dlpack && places.at[CAI_PRIV_PY_CUDA] < places.count &&
                        places.at[CAI_PRIV_PY_DEVICE] <= places.at[CAI_PRIV_PY_CUDA];
    if (!failed) out->is_neg = cai_priv_py_find_is_neg(py, &places);
    Py_XDECREF(places.mro);
    Py_XDECREF(places.capsules[0]);
    Py_XDECREF(places.capsules[1]);
    return failed;
}

/* The memory of types is read by any number of threads, or written by one. No thread waits for another, but
 * does without the memory. With a GIL only one thread is there. */
enum { CAI_PRIV_PY_WRITER = -(1 << 30) };

/* Returns 1 if this thread may read (change 1) or write (CAI_PRIV_PY_WRITER). In any case call
 * cai_priv_py_close_types afterwards. */
static int cai_priv_py_open_types(cai_python *py, int32_t change)
{
#if defined(Py_GIL_DISABLED)
    const int32_t now = cai_priv_py_add(&py->users, change);
    return change == CAI_PRIV_PY_WRITER ? now == change : now > 0;
#else
    (void)py;
    (void)change;
    return 1;
#endif
}

static void cai_priv_py_close_types(cai_python *py, int32_t change)
{
#if defined(Py_GIL_DISABLED)
    (void)cai_priv_py_add(&py->users, -change);
#else
    (void)py;
    (void)change;
#endif
}

/* Remembers a type by a weak reference. The type may be freed, and another one may get its address. */
static int cai_priv_py_remember(cai_python *py, PyObject *type, const cai_python_type *what)
{
    PyObject *before = PyWeakref_NewRef(type, NULL);
    int at = 0;
    if (!before) return -1;
    if (cai_priv_py_open_types(py, CAI_PRIV_PY_WRITER)) {
        PyObject *const weak = before;
        while (at < CAI_PYTHON_TYPES && py->known[at] != type) ++at;
        if (at == CAI_PYTHON_TYPES) {
            at = py->next_type;
            py->next_type = (at + 1) % CAI_PYTHON_TYPES;
        }
        before = py->types[at].weak;
        py->known[at] = type;
        py->types[at] = *what;
        py->types[at].weak = weak;
    }
    cai_priv_py_close_types(py, CAI_PRIV_PY_WRITER);
    Py_XDECREF(before);
    return 0;
}

/* Returns what is remembered of a type, or NULL. */
static inline const cai_python_type *cai_priv_py_find_type(const cai_python *py, const PyObject *type)
{
    const cai_python_type *at = py->types;
    const void *const *known = py->known;
    for (; *known != type; ++known, ++at)
        if (known == &py->known[CAI_PYTHON_TYPES - 1]) return NULL;
    return cai_priv_py_leads_to(at->weak, type) ? at : NULL;
}

static inline int cai_priv_py_recall(cai_python *py, const PyObject *type, cai_python_type *out)
{
    const cai_python_type *found = cai_priv_py_open_types(py, 1) ? cai_priv_py_find_type(py, type) : NULL;
    if (found) *out = *found;
    cai_priv_py_close_types(py, 1);
    return found != NULL;
}

/* Changes the number of imports in progress in this state, of all threads. Returns the new number. */
static inline int32_t cai_priv_py_deeper(cai_python *py, int32_t change)
{
#if defined(Py_GIL_DISABLED)
    return cai_priv_py_add(&py->depth, change);
#else
    return py->depth += change;
#endif
}

static inline void cai_priv_py_leave_levels(cai_python *py, int levels)
{
    while (levels--) Py_LeaveRecursiveCall();
    (void)cai_priv_py_deeper(py, -1);
}

/* Does the part of cai_priv_py_enter_levels for an import within an import. */
CAI_PRIV_NOINLINE int cai_priv_py_enter_again(cai_python *py)
{
    int levels = 0;
    while (levels < CAI_PRIV_PY_LEVELS && !Py_EnterRecursiveCall(" in an import within an import")) ++levels;
    if (levels == CAI_PRIV_PY_LEVELS) return levels;
    cai_priv_py_leave_levels(py, levels);
    return -1;
}

/* Code that an import runs may import. Such an import counts as several levels of recursion, as it takes more
 * of the stack than most functions do. Returns how many, or -1 with an exception set. */
static inline int cai_priv_py_enter_levels(cai_python *py)
{
    return cai_priv_py_deeper(py, 1) == 1 ? 0 : cai_priv_py_enter_again(py);
}

/* Reads the offers of a type and remembers them. Keys of its dictionary may run code that imports. */
CAI_PRIV_NOINLINE int cai_priv_py_learn(cai_python *py, PyObject *type, cai_python_type *out)
{
    int failed;
    const int levels = cai_priv_py_enter_levels(py);
    if (levels < 0) return -1;
    Py_INCREF(type);
    failed = cai_priv_py_ask_type(py, type, out) || cai_priv_py_remember(py, type, out);
    Py_DECREF(type);
    cai_priv_py_leave_levels(py, levels);
    return failed ? -1 : 0;
}

/* Stores the offers of a type, remembered or read. */
static inline int cai_priv_py_know(cai_python *py, PyObject *type, cai_python_type *out)
{
    return cai_priv_py_recall(py, type, out) ? 0 : cai_priv_py_learn(py, type, out);
}

/* The destructor of the capsule of an exchange. Drops the capsule's context. */
static void cai_priv_py_drop_context(PyObject *capsule)
{
    Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
}

CAI_API int cai_python_offer(PyTypeObject *type, const cai_python_exchange *exchange)
{
    PyObject *weak = PyWeakref_NewRef((PyObject *)type, NULL), *capsule = NULL;
    int failed;
    if (weak) capsule = PyCapsule_New((void *)(uintptr_t)exchange, CAI_PYTHON_EXCHANGE, NULL);
    failed = !capsule || PyCapsule_SetContext(capsule, weak) ||
             PyCapsule_SetDestructor(capsule, cai_priv_py_drop_context);
    if (failed) Py_XDECREF(weak);
    else failed = PyObject_SetAttrString((PyObject *)type, CAI_PYTHON_EXCHANGE, capsule);
    Py_XDECREF(capsule);
    return failed ? -1 : 0;
}

/* The release of an array without memory. */
static void cai_priv_py_release_nothing(cai_array *array)
{
    array->release = NULL;
}

CAI_API PyObject *cai_python_adopt(cai_python *py, PyTypeObject *type, cai_array *array)
{
    cai_python_type known;
    PyObject *made;
    int has_memory;
    cai_error err;
    if (cai_array_check(array, &err)) return cai_python_raise(&err);
    if (cai_priv_py_know(py, (PyObject *)type, &known)) return NULL;
    if (!known.exchange || !known.exchange->adopt) {
        PyErr_SetString(PyExc_TypeError, "the type has no " CAI_PYTHON_EXCHANGE " that adopts arrays");
        return NULL;
    }
    has_memory = array->release || array->size || array->mask || array->fields;
    if (has_memory && !array->release) {
        PyErr_SetString(PyExc_ValueError, "cai_python_adopt: the array is borrowed, and needs an owner");
        return NULL;
    }
    if (!has_memory) cai_array_own(array, cai_priv_py_release_nothing, NULL); /* adopt gets an owned array */
    made = known.exchange->adopt(type, array);
    if (made || !has_memory) array->release = NULL; /* adopt must have done so */
    if (!made) (void)cai_priv_py_failed("adopt");
    return made;
}

/* ------------------------------------------------------------------ >>tagging */
/* Tokens of one dictionary. Objects are held until cai_priv_py_close, as tokens point into strings. */
typedef struct cai_priv_py_reader {
    cai_token *tokens;
    size_t count, capacity;
    int lenient;
    int truths; /* the truth of objects is read */
    int whole;  /* tuples are read to their end */
    PyObject *held[2 * CAI_PYTHON_KEYS];
    int held_count;
    PyObject *snapshots; /* a list of copies of lists; NULL: none was read */
    cai_token room[CAI_PRIV_PY_TOKENS];
} cai_priv_py_reader;

static void cai_priv_py_open(cai_priv_py_reader *reader, int lenient)
{
    reader->tokens = reader->room;
    reader->count = 0;
    reader->capacity = CAI_PRIV_PY_TOKENS;
    reader->lenient = lenient;
    reader->truths = reader->whole = 0;
    reader->held_count = 0;
    reader->snapshots = NULL;
}

static void cai_priv_py_close(cai_priv_py_reader *reader)
{
    if (reader->tokens != reader->room) PyMem_Free(reader->tokens);
    Py_XDECREF(reader->snapshots);
    while (reader->held_count) Py_XDECREF(reader->held[--reader->held_count]);
}

static int cai_priv_py_grow(cai_priv_py_reader *reader)
{
    const size_t capacity = 2 * reader->capacity;
    cai_token *more;
    if (capacity > CAI_PRIV_PY_MOST) {
        PyErr_Format(PyExc_ValueError, "the interface has more than %d values", (int)CAI_PRIV_PY_MOST / 2);
        return -1;
    }
    more = (cai_token *)PyMem_Malloc(capacity * sizeof *more);
    if (!more) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(more, reader->tokens, reader->count * sizeof *more);
    if (reader->tokens != reader->room) PyMem_Free(reader->tokens);
    reader->tokens = more;
    reader->capacity = capacity;
    return 0;
}

static inline int cai_priv_py_put(cai_priv_py_reader *reader, int32_t kind, size_t length, uint64_t number,
                                  const char *text)
{
    cai_token *token;
    if (reader->count == reader->capacity && cai_priv_py_grow(reader)) return -1;
    token = &reader->tokens[reader->count++];
    token->kind = kind;
    token->length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
    token->number = number;
    token->text = text;
    return 0;
}

/* Tags an int that int64 cannot hold. overflow: its sign. */
static int cai_priv_py_put_big(cai_priv_py_reader *reader, PyObject *object, int32_t kind, int overflow)
{
    unsigned long long above;
    if (kind == CAI_TOKEN_INDEX) return cai_priv_py_put(reader, CAI_TOKEN_OBJECT, 0, 1, NULL);
    if (overflow < 0) return cai_priv_py_put(reader, CAI_TOKEN_BIG_INT, 0, 0, NULL);
    above = PyLong_AsUnsignedLongLong(object);
    if (above != (unsigned long long)-1 || !PyErr_Occurred())
        return cai_priv_py_put(reader, CAI_TOKEN_UINT, 0, above, NULL);
    PyErr_Clear();
    return cai_priv_py_put(reader, CAI_TOKEN_BIG_INT, 0, 0, NULL);
}

static inline int cai_priv_py_put_int(cai_priv_py_reader *reader, PyObject *object, int32_t kind)
{
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (value == -1 && !overflow && PyErr_Occurred()) return -1;
    if (overflow) return cai_priv_py_put_big(reader, object, kind, overflow);
    return cai_priv_py_put(reader, kind, 0, (uint64_t)value, NULL);
}

/* Tags an object of no kind of the interface, as a number if it has __index__. */
static int cai_priv_py_put_object(cai_priv_py_reader *reader, PyObject *object)
{
    int truth = 1, failed;
    PyObject *number = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
    if (number) {
        failed = cai_priv_py_put_int(reader, number, CAI_TOKEN_INDEX);
        Py_DECREF(number);
        return failed;
    }
    if (PyErr_Occurred()) { /* arrays have __index__, and only some return a number */
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
    }
    if (reader->truths) truth = PyObject_IsTrue(object);
    return truth < 0 ? -1 : cai_priv_py_put(reader, CAI_TOKEN_OBJECT, 0, (uint64_t)truth, NULL);
}

static int cai_priv_py_put_text(cai_priv_py_reader *reader, PyObject *object)
{
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text) return cai_priv_py_put(reader, CAI_TOKEN_STR, (size_t)length, 0, text);
    PyErr_Clear(); /* lone surrogates */
    return cai_priv_py_put(reader, CAI_TOKEN_OTHER, 0, 0, NULL);
}

static int cai_priv_py_put_other(cai_priv_py_reader *reader, PyObject *object, int depth);

/* Tags a value. Most of them are ints. */
static inline int cai_priv_py_put_value(cai_priv_py_reader *reader, PyObject *object, int depth)
{
    if (object && Py_TYPE(object) == &PyLong_Type) return cai_priv_py_put_int(reader, object, CAI_TOKEN_INT);
    return cai_priv_py_put_other(reader, object, depth);
}

/* Returns how many items of a sequence are read. */
static Py_ssize_t cai_priv_py_to_read(const cai_priv_py_reader *reader, Py_ssize_t length)
{
    const Py_ssize_t most = reader->whole ? (Py_ssize_t)CAI_PRIV_PY_MOST : (Py_ssize_t)CAI_PRIV_PY_ITEMS;
    return length < most ? length : most;
}

#if defined(Py_LIMITED_API)
#define CAI_PRIV_PY_ITEM PyTuple_GetItem
#else
#define CAI_PRIV_PY_ITEM PyTuple_GET_ITEM
#endif

static int cai_priv_py_put_items(cai_priv_py_reader *reader, PyObject *tuple, int32_t kind, Py_ssize_t length,
                                 int depth)
{
    const Py_ssize_t read = cai_priv_py_to_read(reader, length);
    Py_ssize_t i;
    if (cai_priv_py_put(reader, kind, (size_t)length, 0, NULL)) return -1;
    for (i = 0; i < read; ++i)
        if (cai_priv_py_put_value(reader, CAI_PRIV_PY_ITEM(tuple, i), depth + 1)) return -1;
    return 0;
}

/* Copies the part of a list that is read, and tags the copy. */
static int cai_priv_py_put_list(cai_priv_py_reader *reader, PyObject *list, int depth)
{
    const Py_ssize_t length = PyList_Size(list);
    PyObject *now = PyList_GetSlice(list, 0, cai_priv_py_to_read(reader, length)), *tuple = NULL;
    int failed = 1;
    if (now) tuple = PyList_AsTuple(now);
    if (tuple && !reader->snapshots) reader->snapshots = PyList_New(0);
    if (tuple && reader->snapshots) failed = PyList_Append(reader->snapshots, tuple);
    if (!failed && PyTuple_Size(tuple) == cai_priv_py_to_read(reader, length))
        failed = cai_priv_py_put_items(reader, tuple, CAI_TOKEN_LIST, length, depth);
    else if (!failed) failed = cai_priv_py_put(reader, CAI_TOKEN_OTHER, 0, 0, NULL); /* it shrank meanwhile */
    Py_XDECREF(now);
    Py_XDECREF(tuple);
    return failed ? -1 : 0;
}

static int cai_priv_py_put_other(cai_priv_py_reader *reader, PyObject *object, int depth)
{
    if (!object) return -1;
    if (Py_TYPE(object) == &PyUnicode_Type) return cai_priv_py_put_text(reader, object);
    if (PyTuple_Check(object) && depth <= CAI_PRIV_PY_DEPTH)
        return cai_priv_py_put_items(reader, object, CAI_TOKEN_TUPLE, PyTuple_Size(object), depth);
    if (depth > CAI_PRIV_PY_DEPTH) return cai_priv_py_put(reader, CAI_TOKEN_OTHER, 0, 0, NULL);
    if (PyBool_Check(object)) return cai_priv_py_put(reader, CAI_TOKEN_BOOL, 0, object == Py_True, NULL);
    if (PyLong_Check(object)) return cai_priv_py_put_int(reader, object, CAI_TOKEN_INT);
    if (object == Py_None) return cai_priv_py_put(reader, CAI_TOKEN_NONE, 0, 0, NULL);
    if (PyUnicode_Check(object)) return cai_priv_py_put_text(reader, object);
    if (PyList_Check(object)) return cai_priv_py_put_list(reader, object, depth);
    if (PyBytes_Check(object))
        return cai_priv_py_put(reader, CAI_TOKEN_BYTES, (size_t)PyBytes_Size(object), 0,
                               PyBytes_AsString(object));
    if (PyDict_Check(object))
        return cai_priv_py_put(reader, CAI_TOKEN_DICT, 0, PyDict_Size(object) > 0, NULL);
    if (PyFloat_Check(object)) {
        const double value = PyFloat_AsDouble(object);
        return cai_priv_py_put(reader, CAI_TOKEN_FLOAT, 0, value < 0 || value > 0 || value != value, NULL);
    }
    return cai_priv_py_put_object(reader, object);
}

/* ------------------------------------------------------------------ >>reading */
/* The index of each entry's first token, plus 1. 0: absent. The array of tokens may move when it grows. */
typedef struct cai_priv_py_entries {
    size_t at[CAI_PYTHON_KEYS];
} cai_priv_py_entries;

enum { CAI_PRIV_PY_TYPESTR = 1, CAI_PRIV_PY_DATA = 2, CAI_PRIV_PY_DESCR = 6, CAI_PRIV_PY_MASK = 7 };

/* Stores a mask, which is an object that exports an interface. Tags any other value as usual. */
static int cai_priv_py_put_mask(cai_priv_py_reader *reader, PyObject *value, PyObject **mask)
{
    const int plain = value == Py_None || PyLong_Check(value) || PyFloat_Check(value) ||
                      PyUnicode_Check(value) || PyBytes_Check(value) || PyTuple_Check(value) ||
                      PyList_Check(value) || PyDict_Check(value);
    if (plain) return cai_priv_py_put_value(reader, value, 0);
    *mask = value;
    return cai_priv_py_put(reader, CAI_TOKEN_OBJECT, 0, 1, NULL);
}

/* Returns a new reference to an entry. NULL without an exception: absent. */
static PyObject *cai_priv_py_entry(PyObject *dictionary, PyObject *key)
{
    PyObject *value = NULL;
#if defined(Py_GIL_DISABLED)
    (void)PyDict_GetItemRef(dictionary, key, &value);
#else
    value = PyDict_GetItemWithError(dictionary, key);
    Py_XINCREF(value);
#endif
    return value;
}

/* Finds all entries by one walk, without running code. Stores new references. Returns 0, and stores none,
 * if a key is another object. */
static int cai_priv_py_walk(const cai_python *py, PyObject *dictionary, PyObject *values[CAI_PYTHON_KEYS])
{
    static const unsigned char after[CAI_PYTHON_KEYS] = {1, 6, 7, 4, 2, 3, 5, 0}; /* in CuPy's order */
    PyObject *key, *value;
    Py_ssize_t at = 0;
    unsigned next, last = CAI_PRIV_PY_MASK, tries = 0;
#if defined(Py_GIL_DISABLED)
    Py_BEGIN_CRITICAL_SECTION(dictionary);
#endif
    while (tries < CAI_PYTHON_KEYS && PyDict_Next(dictionary, &at, &key, &value)) {
        next = after[last]; /* else it is mostly that of the next entry */
        for (tries = 0; key != py->keys[next] && tries < CAI_PYTHON_KEYS; ++tries)
            next = (last + 1 + tries) % CAI_PYTHON_KEYS;
        if (tries == CAI_PYTHON_KEYS) break; /* another key */
        Py_INCREF(value);
        values[next] = value;
        last = next;
    }
    if (tries == CAI_PYTHON_KEYS)
        for (next = 0; next < CAI_PYTHON_KEYS; ++next) Py_CLEAR(values[next]);
#if defined(Py_GIL_DISABLED)
    Py_END_CRITICAL_SECTION();
#endif
    return tries < CAI_PYTHON_KEYS;
}

/* Finds the entries. Returns them, or NULL with an exception. The reader holds new references, as code that
 * runs meanwhile may change the dictionary. */
static PyObject **cai_priv_py_find_entries(cai_priv_py_reader *reader, const cai_python *py,
                                           PyObject *dictionary)
{
    PyObject **const values = &reader->held[reader->held_count];
    int walked, i;
    memset(values, 0, CAI_PYTHON_KEYS * sizeof *values);
    reader->held_count += CAI_PYTHON_KEYS;
    walked = cai_priv_py_walk(py, dictionary, values);
    for (i = 0; !walked && i < CAI_PYTHON_KEYS; ++i) {
        values[i] = cai_priv_py_entry(dictionary, py->keys[i]);
        if (!values[i] && PyErr_Occurred()) return NULL;
    }
    return values;
}

/* Returns 1 if a descr is [('', typestr)], which says nothing (R40). Most are so. Runs no code. A bit field,
 * of kind t, has no such descr. */
static int cai_priv_py_only_repeats(PyObject *descr, PyObject *typestr)
{
    PyObject *field, *name, *text;
    Py_ssize_t length = 0, as_long = 0;
    const char *said, *expected;
    int same;
    if (!typestr || Py_TYPE(typestr) != &PyUnicode_Type || Py_TYPE(descr) != &PyList_Type) return 0;
    if (PyList_Size(descr) != 1) return 0;
    field = PySequence_GetItem(descr, 0);
    if (!field) PyErr_Clear(); /* another thread has emptied the list */
    same = field && Py_TYPE(field) == &PyTuple_Type && PyTuple_Size(field) == 2;
    if (same) {
        name = PyTuple_GetItem(field, 0);
        text = PyTuple_GetItem(field, 1);
        same = Py_TYPE(name) == &PyUnicode_Type && !PyUnicode_GetLength(name) &&
               Py_TYPE(text) == &PyUnicode_Type;
        said = same ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
        expected = said ? PyUnicode_AsUTF8AndSize(typestr, &as_long) : NULL;
        same = expected && length == as_long && !memcmp(said, expected, (size_t)length) &&
               !memchr(said, 't', (size_t)length);
        if (!expected) PyErr_Clear(); /* lone surrogates */
    }
    Py_XDECREF(field);
    return same;
}

static int cai_priv_py_read(cai_priv_py_reader *reader, const cai_python *py, PyObject *dictionary,
                            cai_priv_py_entries *entries, PyObject **mask)
{
    PyObject *const *const values = cai_priv_py_find_entries(reader, py, dictionary);
    int i;
    memset(entries, 0, sizeof *entries);
    for (i = 0; values && i < CAI_PYTHON_KEYS; ++i) {
        PyObject *value = values[i];
        if (!value) continue;
        if (i == CAI_PRIV_PY_DESCR && cai_priv_py_only_repeats(value, values[CAI_PRIV_PY_TYPESTR])) continue;
        entries->at[i] = reader->count + 1;
        reader->whole = i == CAI_PRIV_PY_DESCR;
        reader->truths = reader->lenient && i == CAI_PRIV_PY_DATA; /* of the read-only flag */
        if (i == CAI_PRIV_PY_MASK ? cai_priv_py_put_mask(reader, value, mask)
                                  : cai_priv_py_put_value(reader, value, 0))
            return -1;
    }
    return values ? 0 : -1;
}

/* Returns the run of an entry, or NULL. */
static inline const cai_token *cai_priv_py_run(const cai_priv_py_reader *reader, size_t at)
{
    return at ? &reader->tokens[at - 1] : NULL;
}

static void cai_priv_py_link(const cai_priv_py_reader *reader, const cai_priv_py_entries *entries,
                             cai_interface *out)
{
    const size_t *const at = entries->at; /* in the order of the keys */
    out->shape = cai_priv_py_run(reader, at[0]);
    out->typestr = cai_priv_py_run(reader, at[1]);
    out->data = cai_priv_py_run(reader, at[2]);
    out->version = cai_priv_py_run(reader, at[3]);
    out->strides = cai_priv_py_run(reader, at[4]);
    out->stream = cai_priv_py_run(reader, at[5]);
    out->descr = cai_priv_py_run(reader, at[6]);
    out->mask = cai_priv_py_run(reader, at[7]);
    out->mask_interface = NULL;
}

/* The state of the import of one object. */
typedef struct cai_priv_py_import {
    cai_python *py;
    uint32_t flags;
    uint64_t stream;
    int on_host;
    int refusal; /* why the object is refused, CAI_PRIV_PY_NO_EXPORT or one that follows it; else 0 */
    long device[2]; /* what __dlpack_device__ returned; type 0: nothing yet */
    cai_python_type type;
    PyObject *dictionary, *mask_dictionary;
    cai_priv_py_reader reader;
} cai_priv_py_import;

/* Why an object is refused. cai_priv_py_raise_refusal sets the exception later. */
enum { CAI_PRIV_PY_NO_EXPORT = 1, CAI_PRIV_PY_HOST_MEMORY, CAI_PRIV_PY_OTHER_DEVICE };

static int cai_priv_py_refuse(cai_priv_py_import *in, int refusal)
{
    in->refusal = refusal;
    return -1;
}

/* Clears the exception that is set, and returns 1, but leaves those that end a program. */
static int cai_priv_py_excuse(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return 0;
    PyErr_Clear();
    return 1;
}

/* Returns a new reference to an attribute. NULL without an exception: there is none. */
static PyObject *cai_priv_py_attribute(const cai_python *py, PyObject *object, int name)
{
    PyObject *found = NULL;
#if PY_VERSION_HEX >= 0x030d0000 && (!defined(Py_LIMITED_API) || Py_LIMITED_API + 0 >= 0x030d0000)
    (void)PyObject_GetOptionalAttr(object, py->names[name], &found);
#elif !defined(Py_LIMITED_API)
    (void)_PyObject_LookupAttr(object, py->names[name], &found); /* the name before 3.13 */
#else
    found = PyObject_GetAttr(object, py->names[name]);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
#endif
    return found;
}

/* Returns `found` if it is a dictionary. If not, drops it and returns NULL. */
static PyObject *cai_priv_py_dictionary(const cai_python *py, PyObject *object, PyObject *found, int name)
{
    if (!found || PyDict_Check(found)) return found;
    if (!PyType_Check(object)) /* a class returns the property itself (R1) */
        PyErr_Format(PyExc_TypeError, "%U is not a dictionary", py->names[name]);
    Py_DECREF(found);
    return NULL;
}

/* --------------------------------------------------------------- >>dictionaries */
/* Reads the dictionary of a mask. cai.h refuses an object without one. */
static int cai_priv_py_find_mask(cai_priv_py_import *in, PyObject *mask, cai_priv_py_entries *entries)
{
    const int name = in->on_host ? CAI_PRIV_PY_ARRAY : CAI_PRIV_PY_CUDA;
    PyObject *inner = NULL;
    if (!mask) return 0;
    in->mask_dictionary =
        cai_priv_py_dictionary(in->py, mask, cai_priv_py_attribute(in->py, mask, name), name);
    if (!in->mask_dictionary) return PyErr_Occurred() ? -1 : 0;
    return cai_priv_py_read(&in->reader, in->py, in->mask_dictionary, entries, &inner);
}

/* No work of CUDA can be pending in plain host memory. */
static void cai_priv_py_put_on_host(cai_array *array)
{
    array->memory = CAI_MEMORY_HOST;
    array->sync = CAI_SYNC_NONE;
}

/* Lets cai.h judge the tokens. `fields` is storage, or NULL. */
static int cai_priv_py_judge(cai_priv_py_import *in, const cai_priv_py_entries entries[2],
                             cai_priv_py_owner *owner, cai_field *fields, cai_array *out)
{
    cai_import_options options;
    cai_interface interfaces[2];
    cai_error err;
    memset(&options, 0, sizeof options);
    options.flags = in->flags & CAI_LENIENT;
    options.mask = owner && in->flags & CAI_PYTHON_MASK ? &owner->mask : NULL;
    options.fields = fields;
    options.field_capacity = (int64_t)in->reader.count;
    cai_priv_py_link(&in->reader, &entries[0], &interfaces[0]);
    if (in->mask_dictionary) {
        cai_priv_py_link(&in->reader, &entries[1], &interfaces[1]);
        if (in->on_host) interfaces[1].stream = NULL;
        interfaces[0].mask_interface = &interfaces[1];
    }
    if (in->on_host) interfaces[0].stream = NULL;
    if (cai_import(&interfaces[0], &options, out, &err)) {
        cai_python_raise(&err);
        return -1;
    }
    if (in->on_host) cai_priv_py_put_on_host(out);
    if (in->on_host && out->mask) cai_priv_py_put_on_host(out->mask);
    return 0;
}

/* Copies rows, and the names that they point to, into memory of the owner. */
static int cai_priv_py_keep_fields(cai_array *array, cai_priv_py_owner *owner)
{
    const size_t rows = (size_t)array->field_count;
    size_t row, text = 0;
    char *at;
    for (row = 0; row < rows; ++row) text += array->fields[row].name_length + array->fields[row].title_length;
    owner->fields = (cai_field *)PyMem_Malloc(rows * sizeof(cai_field) + text);
    if (!owner->fields) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(owner->fields, array->fields, rows * sizeof(cai_field));
    at = (char *)(owner->fields + rows);
    for (row = 0; row < rows; ++row) {
        cai_field *field = &owner->fields[row];
        memcpy(at, field->name, field->name_length);
        field->name = at;
        at += field->name_length;
        if (!field->title) continue;
        memcpy(at, field->title, field->title_length);
        field->title = at;
        at += field->title_length;
    }
    array->fields = owner->fields;
    return 0;
}

/* Calls cai_priv_py_judge, and keeps the rows of a descr. There are at most as many rows as tokens. */
static int cai_priv_py_judge_fields(cai_priv_py_import *in, const cai_priv_py_entries entries[2],
                                    cai_priv_py_owner *owner, cai_array *out)
{
    cai_field *fields = (cai_field *)PyMem_Malloc(in->reader.count * sizeof *fields);
    int failed = 1;
    if (!fields) PyErr_NoMemory();
    else failed = cai_priv_py_judge(in, entries, owner, fields, out);
    if (!failed && out->fields) failed = cai_priv_py_keep_fields(out, owner);
    PyMem_Free(fields);
    return failed ? -1 : 0;
}

/* Returns the narrow format of `itemsize` bytes that is the last word of a text, or 0. */
static int32_t cai_priv_py_narrow_of(const char *text, size_t length, int64_t itemsize)
{
    size_t end = length, start;
    while (end && (text[end - 1] == '>' || text[end - 1] == '\'')) --end; /* "<class 'warp.bfloat16'>" */
    for (start = end; start && text[start - 1] != '.' && text[start - 1] != '\''; --start) {}
#define CAI_PRIV_PY_NARROW(code, kind, size, format, name)                                                   \
    if (size == itemsize && end - start == sizeof name - 1 && !memcmp(text + start, name, end - start))      \
        return code;
    CAI_FORMAT_DTYPES(CAI_PRIV_PY_NARROW)
#undef CAI_PRIV_PY_NARROW
    return 0;
}

/* Returns the name of an exporter's dtype, a new reference. NULL without an exception: there is no dtype. */
static PyObject *cai_priv_py_dtype_name(const cai_python *py, PyObject *object)
{
    PyObject *dtype = cai_priv_py_attribute(py, object, CAI_PRIV_PY_DTYPE), *name;
    if (!dtype) return NULL;
    name = PyObject_GetAttrString(dtype, "name"); /* NumPy's; others have a str */
    if (!name && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    if (!PyErr_Occurred() && !(name && PyUnicode_Check(name))) {
        Py_XDECREF(name);
        name = PyObject_Str(dtype);
    }
    Py_DECREF(dtype);
    return name;
}

/* Reads a narrow format from the exporter's dtype, as a typestr cannot express it. */
static int cai_priv_py_narrow(const cai_python *py, PyObject *object, cai_array *array)
{
    const int32_t kind = array->dtype.code >> 8 & 0xff;
    const uint32_t had_strides = array->flags & CAI_HAD_STRIDES;
    cai_array *const mask = array->mask;
    PyObject *name;
    Py_ssize_t length = 0;
    const char *text;
    cai_dtype narrow;
    cai_error err;
    int32_t code;
    int failed;
    if (array->dtype.itemsize > 2 || (kind != 'V' && kind != 'u' && kind != 'f')) return 0;
    name = cai_priv_py_dtype_name(py, object);
    text = name ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    code = text ? cai_priv_py_narrow_of(text, (size_t)length, array->dtype.itemsize) : 0;
    Py_XDECREF(name);
    if (!code) return PyErr_Occurred() ? -1 : 0;
    array->mask = NULL; /* cai_view_reinterpret refuses a mask */
    failed = cai_dtype_of(code, &narrow, &err) || cai_view_reinterpret(array, &narrow, array, &err);
    array->mask = mask;
    array->flags = (array->flags & ~(uint32_t)CAI_HAD_STRIDES) | had_strides;
    if (failed) cai_python_raise(&err);
    return failed ? -1 : 0;
}

/* Returns the byte order of this machine, as a typestr begins with it. */
static char cai_priv_py_byte_order(void)
{
    static const uint16_t one = 1;
    return *(const unsigned char *)&one ? '<' : '>';
}

/* Returns 1 if the typestr has the other byte order. A dtype of kind V does not keep that, and there is no
 * swapped bfloat16. So such items stay as they are. */
static int cai_priv_py_is_swapped(const cai_priv_py_reader *reader, const cai_priv_py_entries *entries)
{
    const char other = cai_priv_py_byte_order() == '<' ? '>' : '<';
    return *reader->tokens[entries->at[CAI_PRIV_PY_TYPESTR] - 1].text == other;
}

static int cai_priv_py_import_entries(cai_priv_py_import *in, PyObject *object, cai_priv_py_owner *owner,
                                      cai_array *out)
{
    cai_priv_py_entries entries[2];
    PyObject *mask = NULL;
    if (cai_priv_py_read(&in->reader, in->py, in->dictionary, &entries[0], &mask)) return -1;
    if (cai_priv_py_find_mask(in, mask, &entries[1])) return -1;
    if (in->flags & CAI_PYTHON_FIELDS && entries[0].at[CAI_PRIV_PY_DESCR]) {
        if (cai_priv_py_judge_fields(in, entries, owner, out)) return -1;
    } else {
        if (cai_priv_py_judge(in, entries, owner, NULL, out)) return -1;
        out->fields = NULL;
        out->field_count = 0;
    }
    if (out->mask) {
        owner->also_held = mask;
        Py_INCREF(mask);
    }
    if (owner && in->on_host && !owner->also_held) { /* of NumPy's scalars it holds the memory */
        owner->also_held = in->dictionary;
        Py_INCREF(in->dictionary);
    }
    if (!(in->flags & CAI_PYTHON_NARROW)) return 0;
    if (out->dtype.itemsize != 1 && cai_priv_py_is_swapped(&in->reader, &entries[0])) return 0;
    return cai_priv_py_narrow(in->py, object, out);
}

static int cai_priv_py_import_dictionary(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const uint32_t with_storage = (uint32_t)CAI_PYTHON_MASK | (uint32_t)CAI_PYTHON_FIELDS;
    const int owned = !(in->flags & CAI_PYTHON_BORROW) || in->on_host || (in->flags & with_storage) != 0;
    cai_priv_py_owner *owner = NULL;
    int failed = 0;
    if (owned)
        owner = cai_priv_py_owner_with(in->py, object, in->flags & CAI_PYTHON_MASK ? sizeof(cai_array) : 0);
    if (owned && !owner) return -1;
    in->mask_dictionary = NULL;
    cai_priv_py_open(&in->reader, (in->flags & CAI_LENIENT) != 0);
    failed = cai_priv_py_import_entries(in, object, owner, out);
    cai_priv_py_close(&in->reader);
    Py_XDECREF(in->mask_dictionary);
    if (failed && owner) cai_priv_py_forget(owner);
    if (!failed && owner) cai_priv_py_attach(out, owner);
    return failed ? -1 : 0;
}

/* ----------------------------------------------------------------- >>buffers */
/* Returns kind and size of a format's letter. `standard`: in the standard sizes. Size 0: no such type. */
static int cai_priv_py_letter(char letter, int standard, int *size)
{
    static const char letters[] = "?bBhHiIlLqQnNefdg";
    static const char kinds[] = "biuiuiuiuiuiuffff";
    static const int standard_sizes[] = {1, 1, 1, 2, 2, 4, 4, 4, 4, 8, 8, 0, 0, 2, 4, 8, 0};
    static const size_t native_sizes[] = {1, 1, 1, sizeof(short), sizeof(short), sizeof(int), sizeof(int),
                                          sizeof(long), sizeof(long), sizeof(long long), sizeof(long long),
                                          sizeof(size_t), sizeof(size_t), 2, sizeof(float), sizeof(double),
                                          sizeof(long double)};
    const char *at = letter ? strchr(letters, letter) : NULL;
    *size = 0;
    if (!at) return 0;
    *size = standard ? standard_sizes[at - letters] : (int)native_sizes[at - letters];
    return kinds[at - letters];
}

/* Writes a typestr. Returns its length. */
static int cai_priv_py_put_typestr(char *out, int order, int kind, int64_t number)
{
    char digits[20], *const start = out;
    int count = 0;
    *out++ = (char)order;
    *out++ = (char)kind;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count) *out++ = digits[--count];
    *out = 0;
    return (int)(out - start);
}

/* Writes the typestr of a buffer's format (struct module, PEP 3118). Returns its length, or 0: none. */
static int cai_priv_py_typestr(const char *format, Py_ssize_t itemsize, char *out)
{
    char order = cai_priv_py_byte_order();
    const char *at = format ? format : "B";
    int standard = 0, is_complex, kind, size;
    int64_t count = 1;
    if (*at && strchr("@=<>!", *at)) {
        standard = *at != '@';
        if (*at == '<' || *at == '>') order = *at;
        if (*at == '!') order = '>';
        ++at;
    }
    for (size = 0; *at >= '0' && *at <= '9' && size < 9; ++at, ++size)
        count = (size ? count : 0) * 10 + (*at - '0');
    if ((at[0] == 's' || at[0] == 'w' || (at[0] == 'c' && count == 1)) && !at[1]) {
        if (count * (at[0] == 'w' ? 4 : 1) != itemsize) return 0;
        return cai_priv_py_put_typestr(out, at[0] == 'w' ? order : '|', at[0] == 'w' ? 'U' : 'S', count);
    }
    is_complex = *at == 'Z';
    at += is_complex;
    kind = cai_priv_py_letter(*at, standard, &size);
    if (!size || at[1] || count != 1 || (is_complex && kind != 'f')) return 0;
    if (is_complex) size *= 2;
    if (size != itemsize) return 0;
    return cai_priv_py_put_typestr(out, size == 1 ? '|' : order, is_complex ? 'c' : kind, size);
}

/* Stores the dtype of a buffer. Returns 0 if it has no typestr. */
static int cai_priv_py_dtype_of(const Py_buffer *view, cai_dtype *out)
{
    char text[CAI_TYPESTR_SIZE];
    int size, length;
    const char *const format = view->format ? view->format : "B";
    const int kind = cai_priv_py_letter(format[0], 0, &size);
    if (kind && !format[1] && size == view->itemsize && !cai_dtype_of(kind << 8 | size, out, NULL)) return 1;
    length = cai_priv_py_typestr(view->format, view->itemsize, text);
    return length && !cai_dtype_parse(text, length, 0, out, NULL);
}

/* Describes a buffer of 0 to 64 dimensions. Its strides are used if `with_strides` is not 0. */
static cai_status cai_priv_py_describe_buffer(const Py_buffer *view, const cai_dtype *dtype, int with_strides,
                                              cai_array *out, cai_error *err)
{
    int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM];
    int i;
    for (i = 0; i < view->ndim; ++i) {
        shape[i] = view->shape[i];
        if (with_strides) strides[i] = view->strides[i];
    }
    CAI_TRY(cai_array_init_dtype(out, dtype, view->ndim, shape, with_strides ? strides : NULL,
                                 (uint64_t)(uintptr_t)view->buf, err));
    cai_array_set_read_only(out, view->readonly);
    cai_priv_py_put_on_host(out);
    return CAI_OK;
}

static int cai_priv_py_judge_buffer(const Py_buffer *view, cai_array *out)
{
    int i, indirect = 0;
    cai_dtype dtype;
    cai_error err;
    for (i = 0; view->suboffsets && i < view->ndim && i < CAI_MAX_NDIM; ++i)
        indirect |= view->suboffsets[i] >= 0;
    if (indirect || view->ndim < 0 || view->ndim > CAI_MAX_NDIM || (view->ndim && !view->shape)) {
        PyErr_Format(PyExc_BufferError, indirect ? "the buffer has %d dimensions, with pointers to pointers"
                                                 : "the buffer has %d dimensions, not 0 to 64 with a shape",
                     view->ndim);
        return -1;
    }
    if (!cai_priv_py_dtype_of(view, &dtype)) {
        PyErr_Format(PyExc_BufferError, "the buffer's format '%s' with items of %zd bytes has no typestr",
                     view->format ? view->format : "B", view->itemsize);
        return -1;
    }
    if (!cai_priv_py_describe_buffer(view, &dtype, view->strides != NULL, out, &err)) return 0;
    cai_python_raise(&err);
    return -1;
}

static int cai_priv_py_import_buffer(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    cai_priv_py_owner *owner = cai_priv_py_owner_new(in->py, NULL);
    Py_buffer *view = owner ? (Py_buffer *)PyMem_Malloc(sizeof *view) : NULL;
    if (owner && !view) PyErr_NoMemory();
    if (view && !PyObject_GetBuffer(object, view, PyBUF_FULL_RO)) owner->buffer = view;
    else PyMem_Free(view);
    if (owner && owner->buffer && !cai_priv_py_judge_buffer(view, out)) {
        cai_priv_py_attach(out, owner);
        return 0;
    }
    if (owner) cai_priv_py_forget(owner);
    return -1;
}

/* Describes a buffer as NumPy's dictionary would: strides of a contiguous array are none. Returns 0 if only
 * the dictionary can: NumPy's buffers lack records and times, and change the strides of extents of 1. */
static int cai_priv_py_describe_plain(const Py_buffer *view, cai_array *out)
{
    const int dense = PyBuffer_IsContiguous(view, 'C');
    cai_dtype dtype;
    int i;
    if (view->suboffsets || view->ndim > CAI_MAX_NDIM || !cai_priv_py_dtype_of(view, &dtype)) return 0;
    for (i = 0; !dense && i < view->ndim; ++i)
        if (view->shape[i] == 1) return 0;
    return !cai_priv_py_describe_buffer(view, &dtype, !dense, out, NULL);
}

CAI_PRIV_NOINLINE int cai_priv_py_own_object(const cai_python *py, PyObject *object, cai_array *array)
{
    cai_priv_py_owner *owner = cai_priv_py_owner_new(py, object);
    if (owner) cai_priv_py_attach(array, owner);
    return owner ? 0 : -1;
}

/* Imports NumPy's ndarray (cai_priv_py_is_plain) by its buffer. The array owns the object, as that of the
 * dictionary does. Returns 0 if the dictionary must be read. */
static int cai_priv_py_import_plain(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    Py_buffer view;
    int good = !PyObject_GetBuffer(object, &view, PyBUF_FULL_RO);
    if (good) {
        good = cai_priv_py_describe_plain(&view, out);
        PyBuffer_Release(&view);
    }
    if (good && !(in->flags & CAI_PYTHON_BORROW)) good = !cai_priv_py_own_object(in->py, object, out);
    if (!good) PyErr_Clear(); /* the dictionary will say what is wrong */
    return good;
}

/* --------------------------------------------------------------- >>importing */
/* Judges what the exchange of a type described. Returns 0, -1 with an exception, or why it is refused. Then
 * nothing is left to release. */
CAI_PRIV_COLD int cai_priv_py_judge_described(cai_python *py, uint32_t flags, cai_array *array)
{
    cai_error err;
    int how = -1;
    if (cai_array_check(array, &err)) {
        cai_python_raise(&err);
    } else if (array->memory == CAI_MEMORY_HOST && !(flags & CAI_PYTHON_HOST)) {
        how = CAI_PRIV_PY_HOST_MEMORY;
    } else if (array->mask && !(flags & CAI_PYTHON_MASK)) {
        PyErr_SetString(PyExc_ValueError, "mask is present, but this consumer accepts none");
    } else if (!array->release && array->mask && array->mask->flags & (uint32_t)CAI_OWN_EVENT) {
        PyErr_SetString(PyExc_BufferError, "the mask is borrowed, but owns an event");
    } else {
        if (!(flags & CAI_PYTHON_FIELDS)) array->fields = NULL;
        if (!(flags & CAI_PYTHON_FIELDS)) array->field_count = 0;
        return 0;
    }
    cai_priv_py_undo(py, array, 1);
    return how;
}

/* Returns 1 for most arrays, which cai_priv_py_judge_described would accept as they are. */
static inline int cai_priv_py_is_ordinary(const cai_array *array, uint32_t flags)
{
    return array->abi == CAI_ABI && array->struct_size >= sizeof *array && array->ndim >= 0 &&
           array->ndim <= CAI_MAX_NDIM && !array->fields && !array->field_count && !array->mask &&
           array->packed_axis == -1 && !array->must_understand &&
           (array->memory != CAI_MEMORY_HOST || flags & CAI_PYTHON_HOST);
}

/* Imports by the exchange of a type in C. Returns 0, -1 with an exception, or why the object is refused. */
static inline int cai_priv_py_import_exchange(cai_python *py, uint32_t flags,
                                              const cai_python_exchange *exchange, PyObject *object,
                                              cai_array *out)
{
    if (exchange->describe(object, out)) return cai_priv_py_failed("describe");
    if (!cai_priv_py_is_ordinary(out, flags)) {
        const int how = cai_priv_py_judge_described(py, flags, out);
        if (how) return how;
    }
    if (out->release) return 0;
    out->flags &= ~(uint32_t)(CAI_OWN_EVENT | CAI_ORDERED_FREE); /* the object stays, and owns both */
    return flags & CAI_PYTHON_BORROW ? 0 : cai_priv_py_own_object(py, object, out);
}

/* Imports an object by the dictionary of `name`. Returns 0, 1: there is none, or -1 with an exception. */
static int cai_priv_py_import_named(cai_priv_py_import *in, PyObject *object, int name, cai_array *out)
{
    PyObject *found = cai_priv_py_attribute(in->py, object, name);
    int failed;
    if (found) found = cai_priv_py_dictionary(in->py, object, found, name);
    if (!found) return PyErr_Occurred() ? -1 : 1;
    in->on_host = name == CAI_PRIV_PY_ARRAY;
    in->dictionary = found;
    failed = cai_priv_py_import_dictionary(in, object, out);
    Py_DECREF(in->dictionary);
    return failed;
}

/* Imports an object without a dictionary. */
static int cai_priv_py_import_else(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const int on_host = (in->flags & CAI_PYTHON_HOST) != 0;
    if (in->py->dlpack && !PyType_Check(object)) {
        PyObject *method = cai_priv_py_attribute(in->py, object, CAI_PRIV_PY_DLPACK);
        const int failed = method ? in->py->dlpack->import_tensor(in, object, method, out) : -1;
        Py_XDECREF(method);
        if (method || PyErr_Occurred()) return failed;
    }
    if (on_host && PyObject_CheckBuffer(object)) return cai_priv_py_import_buffer(in, object, out);
    return cai_priv_py_refuse(in, CAI_PRIV_PY_NO_EXPORT);
}

/* Calls a method, or the method of a name, without arguments. */
static PyObject *cai_priv_py_call_method(PyObject *object, PyObject *method)
{
#if !defined(Py_LIMITED_API) || Py_LIMITED_API + 0 >= 0x030c0000
    return PyUnicode_Check(method) ? PyObject_VectorcallMethod(method, &object, 1, NULL)
                                   : PyObject_Vectorcall(method, &object, 1, NULL);
#else
    return PyUnicode_Check(method) ? PyObject_CallMethodObjArgs(object, method, NULL)
                                   : PyObject_CallFunctionObjArgs(method, object, NULL);
#endif
}

/* Refuses a PyTorch tensor if a method is true, or raises. */
static int cai_priv_py_refuse_bit(PyObject *object, PyObject *method, PyObject *name)
{
    PyObject *answer = cai_priv_py_call_method(object, method);
    const int is_set = answer == Py_True;
    Py_XDECREF(answer);
    if (answer && !is_set) return 0;
    if (is_set)
        PyErr_Format(PyExc_BufferError, "%U() of the tensor is true: its values are not those in memory, "
                                        "call resolve_conj() and resolve_neg() first", name);
    return -1;
}

/* Releases and refuses the array of a PyTorch tensor whose values must be conjugated or negated when they are
 * read. PyTorch's dictionary and table do not contain this, and __dlpack__ only refuses the conjugate. Only
 * complex values can be conjugated, and only they and their parts negated. */
static int cai_priv_py_refuse_lazy(cai_python *py, PyObject *object, PyObject *is_neg, cai_array *array)
{
    PyObject *const is_conj = py->names[CAI_PRIV_PY_IS_CONJ];
    const int kind = array->dtype.code >> 8 & 0xff, is_complex = kind == 'c';
    if (array->dtype.itemsize == 1 || kind == 'i') return 0; /* an unsigned int may be bits of a bfloat16 */
    if ((!is_complex || !cai_priv_py_refuse_bit(object, is_conj, is_conj)) &&
        !cai_priv_py_refuse_bit(object, is_neg, py->names[CAI_PRIV_PY_IS_NEG]))
        return 0;
    cai_priv_py_undo(py, array, 1);
    return -1;
}

/* Imports an array whose device says that it is on the host. Returns 0, 1: it is elsewhere, or -1. */
static int cai_priv_py_import_by_device(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    int done = in->py->dlpack->is_on_host(in, object);
    if (done <= 0) return done ? -1 : 1;
    if (!(in->flags & CAI_PYTHON_HOST)) return cai_priv_py_refuse(in, CAI_PRIV_PY_HOST_MEMORY);
    done = cai_priv_py_import_named(in, object, CAI_PRIV_PY_ARRAY, out);
    if (done <= 0) return done;
    if (PyObject_CheckBuffer(object) && !cai_priv_py_import_buffer(in, object, out)) return 0;
    if (PyErr_Occurred() && !cai_priv_py_excuse()) return -1;
    return cai_priv_py_import_else(in, object, out); /* it reads more dtypes, or says what is wrong */
}

/* Imports an object by its dictionary of CUDA, or by its device if arrays of this type have no dictionary. */
static int cai_priv_py_import_cuda(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const int32_t before = in->type.device_first;
    PyObject *const type = (PyObject *)Py_TYPE(object);
    int done = 1;
    Py_INCREF(type); /* the object may get another one meanwhile */
    if (before == 2) done = cai_priv_py_import_by_device(in, object, out);
    if (done > 0) {
        done = cai_priv_py_import_named(in, object, CAI_PRIV_PY_CUDA, out);
        if (before && done >= 0 && before != 1 + done) {
            in->type.device_first = 1 + done;
            if (cai_priv_py_remember(in->py, type, &in->type)) PyErr_Clear(); /* then it stays as it is */
        }
        if (done > 0 && before == 1) done = cai_priv_py_import_by_device(in, object, out);
    }
    Py_DECREF(type);
    return done;
}

/* Imports an object of a type without an offer in C. */
static int cai_priv_py_import_asking(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const int on_host = (in->flags & CAI_PYTHON_HOST) != 0;
    int done;
    if (on_host && in->type.plain && cai_priv_py_import_plain(in, object, out)) return 0;
    done = cai_priv_py_import_cuda(in, object, out);
    if (done > 0 && on_host) done = cai_priv_py_import_named(in, object, CAI_PRIV_PY_ARRAY, out);
    if (done > 0) done = cai_priv_py_import_else(in, object, out);
    return !done && in->type.is_neg ? cai_priv_py_refuse_lazy(in->py, object, in->type.is_neg, out) : done;
}

/* Not inlined, so that imports by an exchange need little of the stack. */
CAI_PRIV_NOINLINE int cai_priv_py_import_within(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const int levels = cai_priv_py_enter_levels(in->py);
    int failed;
    if (levels < 0) return -1;
    in->device[0] = 0; /* it is not asked yet */
    failed = cai_priv_py_import_asking(in, object, out);
    cai_priv_py_leave_levels(in->py, levels);
    return failed;
}

/* Imports by the offer in C of a type, which has one. Returns what cai_priv_py_import_exchange does. */
static inline int cai_priv_py_import_offered(cai_python *py, uint32_t flags, const cai_python_type *type,
                                             PyObject *object, cai_array *out)
{
    return type->exchange ? cai_priv_py_import_exchange(py, flags, type->exchange, object, out)
                          : py->dlpack->import_table(py, flags, type->dlpack, type->is_neg, object, out);
}

static int cai_priv_py_import_one(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    int how;
    if (cai_priv_py_know(in->py, (PyObject *)Py_TYPE(object), &in->type)) return -1;
    if (!in->type.exchange && !in->type.dlpack) return cai_priv_py_import_within(in, object, out);
    how = cai_priv_py_import_offered(in->py, in->flags, &in->type, object, out);
    return how > 0 ? cai_priv_py_refuse(in, how) : how;
}

/* Writes that the object's type has an exchange of another layout, or "". */
static void cai_priv_py_tell_layout(const cai_priv_py_import *in, PyObject *object, char *text, size_t size)
{
    cai_priv_py_places places;
    const int failed = cai_priv_py_find_places(in->py, (PyObject *)Py_TYPE(object), &places);
    const cai_python_exchange *const other = failed ? NULL : cai_priv_py_any_exchange(&places);
    if (failed) PyErr_Clear();
    text[0] = 0;
    if (other && other->abi != CAI_ABI)
        PyOS_snprintf(text, size, ", and its " CAI_PYTHON_EXCHANGE " has abi = 0x%lx, not 0x%lx",
                      (unsigned long)other->abi, (unsigned long)CAI_ABI);
    Py_XDECREF(places.mro);
    Py_XDECREF(places.capsules[0]);
    Py_XDECREF(places.capsules[1]);
}

/* Raises TypeError for a refused object. `lone`: no other message will contain the object's type. */
static void cai_priv_py_raise_refusal(const cai_priv_py_import *in, PyObject *object, int lone)
{
    const char *const without_dlpack = in->py->dlpack ? ", no __dlpack__" : "";
    const char *const without_host = in->flags & CAI_PYTHON_HOST ? ", no __array_interface__, no buffer" : "";
    PyObject *type_name;
    char layout[96], text[224];
    if (in->refusal == CAI_PRIV_PY_OTHER_DEVICE)
        PyErr_Format(PyExc_TypeError, "__dlpack_device__ returned (%ld, %ld), which is no CUDA device",
                     in->device[0], in->device[1]);
    if (in->refusal == CAI_PRIV_PY_OTHER_DEVICE) return;
    if (in->refusal == CAI_PRIV_PY_HOST_MEMORY)
        PyOS_snprintf(text, sizeof text, "the array is in plain host memory, "
                                         "but this consumer accepts only memory that CUDA can use");
    else {
        cai_priv_py_tell_layout(in, object, layout, sizeof layout);
        PyOS_snprintf(text, sizeof text, "the object has no __cuda_array_interface__%s%s%s", without_dlpack,
                      without_host, layout);
    }
    type_name = lone ? PyType_GetName(Py_TYPE(object)) : NULL;
    if (type_name) PyErr_Format(PyExc_TypeError, "%s; its type is %U", text, type_name);
    else if (!lone) PyErr_SetString(PyExc_TypeError, text);
    Py_XDECREF(type_name);
}

/* Returns the text of an exception that seems to be raised in C, a new reference. Such an exception has
 * exactly one of these types, only a text, and no line of Python. NULL: it is another exception. */
static PyObject *cai_priv_py_plain_text(PyObject *type, PyObject *trace, PyObject *value)
{
    PyObject *cause, *handled;
    if (type != PyExc_TypeError && type != PyExc_ValueError && type != PyExc_BufferError &&
        type != PyExc_RuntimeError)
        return NULL;
    cause = trace ? NULL : PyException_GetCause(value);
    handled = PyErr_GetHandledException(); /* Python sets it as the context of what is raised */
    if (!trace && !cause) cause = PyException_GetContext(value);
    if (cause && cause == handled) Py_CLEAR(cause);
    Py_XDECREF(handled);
    if (!trace && !cause) return PyObject_Str(value);
    Py_XDECREF(cause);
    return NULL;
}

/* Adds a note to an exception, only once, as an exporter may raise the same exception again. */
static void cai_priv_py_add_note(PyObject *exception, PyObject *note)
{
    PyObject *attribute = PyUnicode_InternFromString("__notes__"), *method = NULL, *noted = NULL;
    PyObject *notes = attribute ? PyObject_GetAttr(exception, attribute) : NULL;
    const int there = notes ? PySequence_Contains(notes, note) : 0;
    PyErr_Clear();
    if (!there) method = PyUnicode_InternFromString("add_note");
    if (method) noted = PyObject_CallMethodObjArgs(exception, method, note, NULL);
    PyErr_Clear();
    Py_XDECREF(attribute);
    Py_XDECREF(notes);
    Py_XDECREF(method);
    Py_XDECREF(noted);
}

/* Names the argument in the exception that is set, at the beginning of its text or in a note. */
static void cai_priv_py_name_argument(PyObject *object, Py_ssize_t number, const char *name)
{
    PyObject *type, *value, *trace, *text, *type_name, *where = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    type_name = PyType_GetName(Py_TYPE(object));
    if (type_name)
        where = name ? PyUnicode_FromFormat("argument %zd (%s), of type %U", number, name, type_name)
                     : PyUnicode_FromFormat("argument %zd, of type %U", number, type_name);
    text = where ? cai_priv_py_plain_text(type, trace, value) : NULL;
    if (text) {
        PyErr_Format(type, "%U: %U", where, text);
        Py_XDECREF(type);
        Py_XDECREF(value);
    } else {
        if (where) cai_priv_py_add_note(value, where);
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(text);
    Py_XDECREF(where);
    Py_XDECREF(type_name);
}

enum {
    CAI_PRIV_PY_FLAGS = CAI_LENIENT | CAI_PYTHON_HOST | CAI_PYTHON_MASK | CAI_PYTHON_FIELDS |
                        CAI_PYTHON_NARROW | CAI_PYTHON_BORROW
};

/* Reads the options of an import, and drops released references. */
static int cai_priv_py_begin(cai_priv_py_import *in, cai_python *py, const cai_python_options *options)
{
    in->py = py;
    in->flags = options ? options->flags : 0;
    in->stream = options && options->stream ? options->stream : (uint64_t)CAI_STREAM_LEGACY;
    in->refusal = 0;
    cai_priv_py_drain(py->home);
    if (!(in->flags & ~(uint32_t)CAI_PRIV_PY_FLAGS)) return 0;
    PyErr_Format(PyExc_ValueError, "cai_python_import: flags = %u has unknown bits", (unsigned)in->flags);
    return -1;
}

/* Imports any objects. `how` is 0, or how the first one failed (cai_priv_py_import_exchange). */
CAI_PRIV_NOINLINE int cai_priv_py_import_all(cai_python *py, PyObject *const *objects, Py_ssize_t count,
                                             const cai_python_options *options, cai_array *out, int how)
{
    const char *const *names = options ? options->names : NULL;
    cai_priv_py_import in;
    Py_ssize_t i;
    if (cai_priv_py_begin(&in, py, options)) return -1;
    if (how > 0) in.refusal = how;
    for (i = 0; i < count; ++i) {
        if (!how && !cai_priv_py_import_one(&in, objects[i], &out[i])) continue;
        if (in.refusal) cai_priv_py_raise_refusal(&in, objects[i], count == 1 && !names);
        if (count > 1 || names) cai_priv_py_name_argument(objects[i], i + 1, names ? names[i] : NULL);
        cai_priv_py_undo(py, out, i);
        return -1;
    }
    return 0;
}

CAI_PRIV_NOINLINE int cai_priv_py_try_any(cai_python *py, PyObject *object, const cai_python_options *options,
                                          cai_array *out, int how)
{
    const char *const *names = options ? options->names : NULL;
    cai_priv_py_import in;
    if (how > 0) return CAI_PYTHON_NOT_MINE;
    if (cai_priv_py_begin(&in, py, options)) return CAI_PYTHON_FAILED;
    if (!how && !cai_priv_py_import_one(&in, object, out)) return CAI_PYTHON_TAKEN;
    if (in.refusal) return CAI_PYTHON_NOT_MINE;
    if (names) cai_priv_py_name_argument(object, 1, names[0]);
    return CAI_PYTHON_FAILED;
}

/* Copies what is remembered of the object's type. Returns 1 if an import needs nothing else, as most do. */
static inline int cai_priv_py_at_hand(cai_python *py, PyObject *object, uint32_t flags, cai_python_type *out)
{
    if (cai_priv_py_load(&py->home->released) || flags & ~(uint32_t)CAI_PRIV_PY_FLAGS) return 0;
    return cai_priv_py_recall(py, (PyObject *)Py_TYPE(object), out) && (out->exchange || out->dlpack);
}

CAI_API int cai_python_import(cai_python *py, PyObject *const *objects, Py_ssize_t count,
                              const cai_python_options *options, cai_array *out)
{
    const uint32_t flags = options ? options->flags : 0;
    cai_python_type type;
    int how;
    if (count != 1 || !cai_priv_py_at_hand(py, objects[0], flags, &type))
        return cai_priv_py_import_all(py, objects, count, options, out, 0);
    how = cai_priv_py_import_offered(py, flags, &type, objects[0], out);
    return how ? cai_priv_py_import_all(py, objects, 1, options, out, how) : 0;
}

CAI_API int cai_python_try_import(cai_python *py, PyObject *object, const cai_python_options *options,
                                  cai_array *out)
{
    const uint32_t flags = options ? options->flags : 0;
    cai_python_type type;
    int how;
    if (!cai_priv_py_at_hand(py, object, flags, &type))
        return cai_priv_py_try_any(py, object, options, out, 0);
    how = cai_priv_py_import_offered(py, flags, &type, object, out);
    return how ? cai_priv_py_try_any(py, object, options, out, how) : CAI_PYTHON_TAKEN;
}

/* ------------------------------------------------------------------ >>streams */
/* Returns the value of __cuda_stream__(), a new reference. NULL without an exception: the object has none. */
static PyObject *cai_priv_py_call_stream(const cai_python *py, PyObject *object)
{
    PyObject *result = NULL, *method = PyObject_GetAttr(object, py->names[CAI_PRIV_PY_STREAM]);
    if (method) result = PyObject_CallObject(method, NULL);
    else if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    Py_XDECREF(method);
    return result;
}

static int cai_priv_py_decode_stream(PyObject *object, int by_protocol, uint64_t *stream)
{
    cai_priv_py_reader reader;
    cai_error err;
    int32_t sync;
    int failed;
    cai_status status;
    cai_priv_py_open(&reader, 0);
    failed = cai_priv_py_put_value(&reader, object, 0);
    if (!failed) {
        status = by_protocol ? cai_decode_stream_protocol(reader.tokens, stream, &err)
                             : cai_decode_stream_interface(reader.tokens, 3, &sync, stream, &err);
        if (status) cai_python_raise(&err);
        failed = status != CAI_OK;
    }
    cai_priv_py_close(&reader);
    return failed ? -1 : 0;
}

/* Raises its own messages for 0 and -1. Those of the interface recommend None, which is refused here. */
static int cai_priv_py_decode_int(PyObject *object, uint64_t *stream)
{
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (overflow || value > 0 || PyBool_Check(object)) return cai_priv_py_decode_stream(object, 0, stream);
    PyErr_Format(PyExc_ValueError, "stream = %lld is not a stream: 1 is the legacy default stream, "
                                   "2 the per-thread one, everything above a handle", value);
    return -1;
}

CAI_API int cai_python_stream(cai_python *py, PyObject *object, uint64_t *stream)
{
    PyObject *pair;
    int failed;
    if (object == Py_None) {
        PyErr_SetString(PyExc_TypeError, "stream is None, which could mean no order, or a default stream: "
                                         "pass 1, 2, a handle, or an object with __cuda_stream__");
        return -1;
    }
    if (PyLong_Check(object)) return cai_priv_py_decode_int(object, stream);
    pair = cai_priv_py_call_stream(py, object);
    if (!pair && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a stream is an int, or an object with __cuda_stream__");
    if (!pair) return -1;
    failed = cai_priv_py_decode_stream(pair, 1, stream);
    Py_DECREF(pair);
    return failed;
}

CAI_API PyObject *cai_python_cuda_stream(uint64_t stream)
{
    return Py_BuildValue("(iK)", 0, (unsigned long long)stream);
}

#if defined(CAI_PRIV_PY_WITH_STREAM)
/* Returns 1 if an exchange made the owner's stream wait, or there is nothing to wait for. */
static int cai_priv_py_is_ordered(const cai_array *member)
{
    if (!member || !member->size) return 1;
    if (member->flags & (uint32_t)(CAI_NO_BACK_EDGE | CAI_OWN_EVENT)) return 0; /* the list drops the event */
    return member->sync == CAI_SYNC_STREAM || (member->sync == CAI_SYNC_EVENT && member->stream);
}

/* Returns 1 if the array can be released at once: its owner frees behind a stream that waits. */
static int cai_priv_py_is_settled(const cai_array *array)
{
    if (array->size && !(array->flags & CAI_ORDERED_FREE)) return 0;
    return cai_priv_py_is_ordered(array) && cai_priv_py_is_ordered(array->mask);
}

/* Keeps arrays until the stream has passed. Without arrays, gives back those that need not be kept any more.
 * Releases the GIL, because CUDA and releases of other code may wait, such as for a host function in Python. */
static cai_status cai_priv_py_keep_arrays(cai_event_pool *pool, cai_array *const *arrays, int32_t count,
                                          uint64_t stream, cai_error *err)
{
    cai_exchange none; /* its end is the place in the stream that they wait for */
    PyThreadState *thread;
    cai_status status;
    if (!count && pool && pool->cuda && !pool->waiting) return CAI_OK;
    thread = PyEval_SaveThread();
    if (!count) {
        status = cai_keepalive_poll(pool, NULL, err);
    } else {
        status = cai_exchange_begin(&none, pool, NULL, 0, stream, err);
        if (!status) status = cai_exchange_finish(&none, CAI_OK, arrays, count, err);
    }
    PyEval_RestoreThread(thread);
    return status;
}

CAI_API int cai_python_release_after(cai_python *py, cai_event_pool *pool, cai_array *arrays,
                                     Py_ssize_t count, uint64_t stream)
{
    enum { AT_A_TIME = 16 };
    cai_array *waiting[AT_A_TIME];
    cai_error err;
    cai_status status = cai_priv_py_keep_arrays(pool, NULL, 0, stream, &err);
    Py_ssize_t i;
    int32_t n = 0;
    for (i = 0; i < count && !status; ++i) {
        if (cai_priv_py_is_settled(&arrays[i])) cai_python_release(py, &arrays[i], 1);
        else if (arrays[i].release) waiting[n++] = &arrays[i];
        if (!n || (n < AT_A_TIME && i + 1 < count)) continue;
        status = cai_priv_py_keep_arrays(pool, waiting, n, stream, &err);
        n = 0;
    }
    cai_python_drain(py);
    if (status) cai_python_raise(&err);
    return status ? -1 : 0;
}
#endif

/* ------------------------------------------------------------------ >>writing */
static PyObject *cai_priv_py_value(const cai_token **at);

static PyObject *cai_priv_py_sequence(const cai_token **at, uint32_t length, int as_list)
{
    PyObject *made = as_list ? PyList_New((Py_ssize_t)length) : PyTuple_New((Py_ssize_t)length);
    uint32_t i;
    for (i = 0; made && i < length; ++i) {
        PyObject *item = cai_priv_py_value(at);
        const int failed = !item || (as_list ? PyList_SetItem(made, (Py_ssize_t)i, item)
                                             : PyTuple_SetItem(made, (Py_ssize_t)i, item));
        if (failed) Py_CLEAR(made);
    }
    return made;
}

/* Makes the object of a run of tokens, and moves *at past the run. */
static PyObject *cai_priv_py_value(const cai_token **at)
{
    const cai_token *token = (*at)++;
    switch (token->kind) {
    case CAI_TOKEN_BOOL: return PyBool_FromLong((long)token->number);
    case CAI_TOKEN_INT: return PyLong_FromLongLong((long long)token->number);
    case CAI_TOKEN_UINT: return PyLong_FromUnsignedLongLong(token->number);
    case CAI_TOKEN_STR: return PyUnicode_DecodeUTF8(token->text, (Py_ssize_t)token->length, "strict");
    case CAI_TOKEN_TUPLE: return cai_priv_py_sequence(at, token->length, 0);
    case CAI_TOKEN_LIST: return cai_priv_py_sequence(at, token->length, 1);
    default: Py_INCREF(Py_None); return Py_None;
    }
}

static int cai_priv_py_set(PyObject *dictionary, PyObject *key, const cai_token *run)
{
    const cai_token *at = run;
    PyObject *value;
    int failed;
    if (!run) return 0;
    value = cai_priv_py_value(&at);
    failed = !value || PyDict_SetItem(dictionary, key, value);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static PyObject *cai_priv_py_write(const cai_python *py, const cai_interface *in, PyObject *mask)
{
    const cai_token *const runs[CAI_PYTHON_KEYS] = {in->shape,   in->typestr, in->data,  in->version,
                                                    in->strides, in->stream,  in->descr, NULL};
    PyObject *made = PyDict_New();
    int i, failed = !made;
    for (i = 0; i < CAI_PYTHON_KEYS && !failed; ++i) failed = cai_priv_py_set(made, py->keys[i], runs[i]);
    if (!failed && mask) failed = PyDict_SetItem(made, py->keys[CAI_PRIV_PY_MASK], mask);
    if (failed) Py_CLEAR(made);
    return made;
}

/* Gives an empty array in host memory an address, as NumPy before 2.4 refuses 0. */
static void cai_priv_py_set_address(cai_token *tokens, const cai_token *data)
{
    static const double nothing = 0;
    cai_token *const address = &tokens[data - tokens + 1];
    if (!address->number) address->number = (uint64_t)(uintptr_t)&nothing;
}

CAI_API PyObject *cai_python_interface(cai_python *py, const cai_array *array, int32_t version,
                                       PyObject *mask)
{
    cai_token tokens[2 * (2 * CAI_MAX_NDIM + 8) + 1];
    char text[2 * CAI_TYPESTR_SIZE];
    cai_export_storage storage;
    cai_interface entries, mask_entries;
    cai_error err;
    storage.tokens = tokens;
    storage.token_capacity = (int64_t)(sizeof tokens / sizeof *tokens);
    storage.text = text;
    storage.text_capacity = (int64_t)sizeof text;
    storage.mask = &mask_entries;
    memset(&entries, 0, sizeof entries);
    if (cai_export(array, version, &storage, &entries, &err)) return cai_python_raise(&err);
    if (array->memory == CAI_MEMORY_HOST) cai_priv_py_set_address(tokens, entries.data);
    if ((array->mask != NULL) != (mask != NULL)) {
        PyErr_SetString(PyExc_ValueError, mask ? "cai_python_interface: the array has no mask"
                                               : "cai_python_interface: mask is NULL, but the array has one");
        return NULL;
    }
    return cai_priv_py_write(py, &entries, mask);
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PYTHON_IMPLEMENTATION */

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
