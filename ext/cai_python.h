/* cai_python.h - Python objects to cai_array, and back: one call, all checks - v0.1.0
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

/* Included again, cai.h adds what is wanted of it and refuses late configuration. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 1
#error "cai_python.h: this is version 0.1, which needs cai.h 0.1"
#endif
#if defined(CAI_PYTHON_H_INCLUDED) && CAI_PYTHON_H_INCLUDED != 100
#error "cai_python.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_PYTHON_H_INCLUDED
#define CAI_PYTHON_H_INCLUDED 100 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    Copy cai.h and cai_python.h into your extension module. In one file, before any other header, as Python.h
    wants it:

        #define CAI_IMPLEMENTATION
        #include "cai_python.h"

    cai_stream.h adds cai_python_release_after, and cai_dlpack.h all that is of DLPack, where they come before
    it; Python.h, after #define PY_SSIZE_T_CLEAN, then comes before them.

WHAT IT IS
    An array of CuPy, PyTorch, Numba, JAX, Warp, RMM or NumPy becomes a cai_array: its dictionary is read
    once, tagged, and judged by cai.h as a whole. What is wrong with it becomes a Python exception of the
    right type with cai.h's sentence. The object is kept alive until the cai_array is released, on whatever
    thread.

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
    1. The exchange of its type in C, __cai_exchange__ (docs/c-exchange.md): no dictionary, a few ns.
    2. DLPack's exchange of its type in C, __dlpack_c_exchange_api__, with the exporter's current stream as
       that of the pending work. With cai_dlpack.h.
    3. __cuda_array_interface__, of any version. Subclasses of dict are read as dict. An entry is held while
       it is read, and a list is read as it was when it was met, so that code that runs meanwhile (__index__
       of an item) changes nothing. A class whose attribute is a property is no array (R1).
    4. With CAI_PYTHON_HOST: __array_interface__.
    5. __dlpack__, which lets options.stream wait. With cai_dlpack.h. What comes in the struct of before
       DLPack 1.0, which cannot say whether it may be written to, is read-only, as with NumPy.
    6. With CAI_PYTHON_HOST: the buffer protocol. Without it arrays in plain host memory are refused, by 1, 2
       and 5, too.
    Of a type that was met before, what it offers in C (or that it does not) is remembered: types do not
    change that.

ORDER
    array->sync, ->stream say what the dictionary says of pending work (R70-R77). Nothing is waited for here:
    cai_stream.h does that, with cai_exchange_begin and cai_exchange_end.

OWNERSHIP
    An imported array owns a reference to the object, but with CAI_PYTHON_BORROW, for arguments of a call: the
    caller holds those anyway. Its release may run on any thread, with or without the GIL: the reference goes
    to a list in `cai_python`, and is dropped by the next call that has the GIL (cai_python_release at once).
    An object that was exported by DLPack is let go of by the deleter, on a thread of Python's at once.

THREADS
    All functions but the release of an array need the GIL, or, in a build without one, an attached thread;
    any number of those may use one cai_python.

RULES
    R1-R8, R70-R84, R100-R106, of docs/rules.md.

NOT HERE
    The device of a dictionary's memory: cai_locate asks CUDA.

CHANGES
    0.1.0  first version
*/

#if defined(CAI_NAMESPACE)
#define cai_python_adopt CAI_PRIV_RENAMED(cai_python_adopt)
#define cai_python_clear CAI_PRIV_RENAMED(cai_python_clear)
#define cai_python_cuda_stream CAI_PRIV_RENAMED(cai_python_cuda_stream)
#define cai_python_dlpack CAI_PRIV_RENAMED(cai_python_dlpack)
#define cai_python_dlpack_ask CAI_PRIV_RENAMED(cai_python_dlpack_ask)
#define cai_python_dlpack_device CAI_PRIV_RENAMED(cai_python_dlpack_device)
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
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CAI_PYTHON_EXCHANGE_ABI_V0
#define CAI_PYTHON_EXCHANGE_ABI_V0

/** How a type exchanges its arrays in C: docs/c-exchange.md has all rules. Static storage, which never
 *  changes and never goes; cai_python_offer makes it known. Both functions are called with the GIL (or an
 *  attached thread), and throw no C++ exception. */
struct cai_python_exchange_v0 {
    uint32_t abi;         /* CAI_ABI, the layout of cai_array; with another it is as no exchange at all */
    uint32_t struct_size; /* sizeof the maker's struct; later versions append */

    /** Describes `object`, an instance of the type or of one derived from it. `out` is not initialized; all
     *  before shape is to be written (cai_array_init does), slots past ndim need not be. Either borrowed
     *  (release NULL): the memory stays while `object` is referenced, whatever is done with it. Or owned:
     *  then release may run on any thread, without the GIL. sync and stream say what is pending. Returns 0,
     *  or -1 with an exception set and nothing to release. */
    int (*describe)(PyObject *object, struct cai_array_v0 *out);

    /** A new instance of `type` (which offers this, or derives from one that does) for `array`, which is
     *  moved into it: its release is called once, when the instance goes. Waits for nothing, sync and stream
     *  are kept. NULL with an exception set, and `array` as it was. May be NULL: not offered. */
    PyObject *(*adopt)(PyTypeObject *type, struct cai_array_v0 *array);
};

#endif /* CAI_PYTHON_EXCHANGE_ABI_V0 */

typedef struct cai_python_exchange_v0 cai_python_exchange;

/** The attribute of a type, and the name of the capsule that it is. */
#define CAI_PYTHON_EXCHANGE "__cai_exchange__"

enum { CAI_PYTHON_KEYS = 8, CAI_PYTHON_NAMES = 10, CAI_PYTHON_TYPES = 8 };

/** What is remembered of a type. */
typedef struct cai_python_type {
    PyObject *type;                      /* a reference; NULL: free */
    const cai_python_exchange *exchange; /* NULL: none */
    const void *dlpack;                  /* DLPack's exchange; NULL: none */
    uint32_t lacks;                      /* of the names: not on the type, and no __getattr__ answers */
    int32_t lazy;                        /* its tensors may have the conjugate or the negative bit set */
} cai_python_type;

/** Where references go that are to be dropped. Memory of its own, as arrays may outlive the module. */
typedef struct cai_python_home {
    void *released;  /* owners of references */
    int64_t holders; /* the module, and each array that owns one */
    int32_t closed;  /* the module is gone: nobody looks here any more */
    int32_t is_main; /* of the main interpreter, in which any thread can get the GIL */
} cai_python_home;

/** What a module knows. In its state; not to be moved or copied; look, don't touch. */
typedef struct cai_python {
    PyObject *keys[CAI_PYTHON_KEYS];   /* of the dictionary, in the order of CAI_ENTRY_LIST */
    PyObject *names[CAI_PYTHON_NAMES]; /* of the attributes */
    cai_python_type types[CAI_PYTHON_TYPES];
    cai_python_home *home;
} cai_python;

enum {
    CAI_PYTHON_HOST = 1 << 8,    /* arrays in host memory, too */
    CAI_PYTHON_MASK = 1 << 9,    /* arrays with a mask, too (R52): look at array->mask */
    CAI_PYTHON_FIELDS = 1 << 10, /* the rows of a descr are kept, in array->fields */
    CAI_PYTHON_NARROW = 1 << 11, /* items are bfloat16 or float8 if the exporter's dtype says so, too */
    CAI_PYTHON_BORROW = 1 << 12  /* the caller holds the objects for as long as it uses the arrays */
};

/** Options of an import; zero means the default. */
typedef struct cai_python_options {
    uint32_t flags;    /* 0, or of CAI_LENIENT, CAI_PYTHON_HOST and those that follow it */
    uint32_t reserved; /* 0 */
    uint64_t stream;   /* which one __dlpack__ lets wait; 0: the legacy default stream */
} cai_python_options;

/** Makes an empty one. Returns 0, or -1 with an exception set. */
CAI_API CAI_MUST_CHECK int cai_python_init(cai_python *py);

/** Drops what it holds: for the m_free of a module. Returns how many arrays are still alive; their references
 *  are dropped by whoever releases them, at once (in an interpreter that is not the main one, never). NULL,
 *  or one of zeros, is fine. No other function takes it any more. */
CAI_API int64_t cai_python_clear(cai_python *py);

/** Visits the types that are remembered, and what was released and not dropped yet: for the m_traverse of a
 *  module, as these lead back to modules. (An m_clear is not needed: types have their own.) */
CAI_API int cai_python_traverse(cai_python *py, visitproc visit, void *arg);

/** Imports `count` objects, all or none. out: `count` arrays; scratch where the import fails. options: NULL
 *  for the default. Returns 0, or -1 with an exception set: TypeError for an object that exports nothing of
 *  what is read, what the object itself raised, or of the type that CAI_STATUS_LIST has for the status of
 *  cai_import (cai_dlpack_import), with its message. */
CAI_API CAI_MUST_CHECK int cai_python_import(cai_python *py, PyObject *const *objects, Py_ssize_t count,
                                             const cai_python_options *options, cai_array *out);

/** Releases `count` arrays, and drops what was released so far. Borrowed arrays are not touched. */
CAI_API void cai_python_release(cai_python *py, cai_array *arrays, Py_ssize_t count);

/** Drops the references of arrays that were released, perhaps elsewhere. Each import does that, too. */
CAI_API void cai_python_drain(cai_python *py);

/** The stream that an argument means: an object with __cuda_stream__, or an int in the sense of the
 *  interface's `stream` (R71-R75). None is refused: it could mean several. Returns 0, or -1 with an exception
 *  set. */
CAI_API CAI_MUST_CHECK int cai_python_stream(cai_python *py, PyObject *object, uint64_t *stream);

/** What __cuda_stream__ of an object with this stream returns: a new tuple (0, stream); or NULL. */
CAI_API PyObject *cai_python_cuda_stream(uint64_t stream);

/** Offers the exchange of a type: to be called before its first instance is seen elsewhere. Types that derive
 *  from it inherit it. Returns 0, or -1 with an exception set. */
CAI_API CAI_MUST_CHECK int cai_python_offer(PyTypeObject *type, const cai_python_exchange *exchange);

/** The exchange the other way: a new instance of `type` that owns what the owned `array` owned; pending work
 *  stays pending. NULL with an exception set, and `array` as it was: TypeError for a type that does not offer
 *  it, ValueError for a borrowed array, or what the type raised. */
CAI_API PyObject *cai_python_adopt(cai_python *py, PyTypeObject *type, cai_array *array);

/** A new dictionary of `version` 0 to 3 for an array, as __cuda_array_interface__ returns it. mask: the
 *  object that exports array->mask, or NULL where there is none. An array in host memory (CAI_MEMORY_HOST,
 *  CAI_SYNC_NONE) returns it from __array_interface__, and has no other. NULL with an exception set:
 *  BufferError for what the version cannot say (cai_export). */
CAI_API PyObject *cai_python_interface(cai_python *py, const cai_array *array, int32_t version,
                                       PyObject *mask);

/** Raises what a function of cai said; returns NULL. err->code: not CAI_OK. */
CAI_API PyObject *cai_python_raise(const cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PYTHON_H_INCLUDED */

/* What needs another header, which may come between two inclusions of this one. */
#if defined(CAI_PYTHON_IMPLEMENTED) &&                                                                       \
    (defined(CAI_STREAM_H_INCLUDED) != defined(CAI_PRIV_PY_WITH_STREAM) ||                                   \
     defined(CAI_DLPACK_H_INCLUDED) != defined(CAI_PRIV_PY_WITH_DLPACK))
#error "cai_python.h: cai_stream.h and cai_dlpack.h are to be included before its implementation"
#endif
#if defined(CAI_STREAM_H_INCLUDED) && !defined(CAI_PRIV_PY_WITH_STREAM)
#define CAI_PRIV_PY_WITH_STREAM
#ifdef __cplusplus
extern "C" {
#endif

/** cai_python_release of arrays that work on `stream` may still use (R80): at once where the array's own
 *  stream took part in an exchange with `stream` (by the default mode) and so waits for that work; else when
 *  `stream` has passed, by the keep-alive list of `pool`, which is polled here. Returns 0, or -1 with an
 *  exception set: from the first that could not be kept on, nothing is released. */
CAI_API CAI_MUST_CHECK int cai_python_release_after(cai_python *py, cai_stream_pool *pool, cai_array *arrays,
                                                    Py_ssize_t count, uint64_t stream);

#ifdef __cplusplus
}
#endif
#endif /* CAI_PRIV_PY_WITH_STREAM */

#if defined(CAI_DLPACK_H_INCLUDED) && !defined(CAI_PRIV_PY_WITH_DLPACK)
#define CAI_PRIV_PY_WITH_DLPACK
#ifdef __cplusplus
extern "C" {
#endif

/** What a consumer asks of __dlpack__. */
typedef struct cai_python_dlpack_request {
    uint64_t stream;   /* that is to wait for the array's pending work; 0: none is */
    uint32_t flags;    /* of the export; add CAI_DLPACK_ORDERED when stream waits */
    int32_t versioned; /* the consumer takes DLManagedTensorVersioned */
} cai_python_dlpack_request;

/** Reads the arguments of __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) for
 *  `array`. Returns 0, or -1 with an exception set: BufferError for another device, or for a copy. */
CAI_API CAI_MUST_CHECK int cai_python_dlpack_ask(const cai_array *array, PyObject *args, PyObject *kwargs,
                                                 cai_python_dlpack_request *out);

/** The capsule that __dlpack__ returns for `array`, which describes memory that lives as long as `object`.
 *  Before: if request->stream is not 0, cai_stream_order lets it wait for the pending work, and
 *  CAI_DLPACK_ORDERED in request->flags says so; without that, pending work is refused. NULL with an
 *  exception set (cai_dlpack_export). */
CAI_API PyObject *cai_python_dlpack(cai_python *py, PyObject *object, const cai_array *array,
                                    const cai_python_dlpack_request *request);

/** What __dlpack_device__ returns for `array`: a new tuple; or NULL (cai_dlpack_device). */
CAI_API PyObject *cai_python_dlpack_device(const cai_array *array);

#ifdef __cplusplus
}
#endif
#endif /* CAI_PRIV_PY_WITH_DLPACK */

/* ============================================================ >>implementation
 *   >>released  >>types  >>tagging  >>reading  >>dictionaries  >>buffers  >>dlpack  >>importing  >>streams
 *   >>writing */

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

#if defined(CAI_DLPACK_VERSIONED) && DLPACK_MINOR_VERSION >= 3
#define CAI_PRIV_PY_HAS_TABLE
static const void *cai_priv_py_table(const DLPackExchangeAPIHeader *header);
#endif

/* Attributes, by their places in cai_python.names. */
enum { CAI_PRIV_PY_CUDA, CAI_PRIV_PY_ARRAY, CAI_PRIV_PY_STREAM, CAI_PRIV_PY_EXCHANGE, CAI_PRIV_PY_TABLE,
       CAI_PRIV_PY_DLPACK, CAI_PRIV_PY_DEVICE, CAI_PRIV_PY_DTYPE, CAI_PRIV_PY_IS_CONJ, CAI_PRIV_PY_IS_NEG };
enum {
    CAI_PRIV_PY_TOKENS = 160,     /* on the stack: shape and strides of 64 axes, and the rest */
    CAI_PRIV_PY_MOST = 1 << 20,   /* tokens of one dictionary */
    CAI_PRIV_PY_ITEMS = 65,       /* of a tuple that are read, but in a descr: more than 64 are too many */
    CAI_PRIV_PY_DEPTH = 200       /* of nesting */
};

/* ----------------------------------------------------------------- >>released */
/* What an imported array owns, and an exported tensor. */
typedef struct cai_priv_py_owner {
    struct cai_priv_py_owner *next; /* once it is released */
    cai_python_home *home;
    PyObject *object, *mask_object;
    void (*release)(cai_array *self); /* of the array as DLPack made it, with that owner; or NULL */
    void *inner;
    Py_buffer *buffer; /* or NULL */
    cai_field *fields; /* and the text of their names behind them; or NULL */
    int32_t at_once;   /* a thread of Python's that releases it takes the GIL */
    cai_array mask;    /* its storage, there only if one was asked for */
} cai_priv_py_owner;

/* Puts an owner on the list. Any thread, without the GIL. */
static void cai_priv_py_push(cai_priv_py_owner *owner)
{
    cai_python_home *home = owner->home;
#if defined(CAI_NO_THREADS)
    owner->next = (cai_priv_py_owner *)home->released;
    home->released = owner;
#elif defined(_MSC_VER) && !defined(__clang__)
    void *first;
    do {
        first = *(void *volatile *)&home->released;
        owner->next = (cai_priv_py_owner *)first;
    } while (_InterlockedCompareExchangePointer(&home->released, owner, first) != first);
#elif defined(__GNUC__) || defined(__clang__)
    void *first = __atomic_load_n(&home->released, __ATOMIC_RELAXED);
    do owner->next = (cai_priv_py_owner *)first;
    while (!__atomic_compare_exchange_n(&home->released, &first, (void *)owner, 1, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
#else
#error "cai_python.h: no atomics for this compiler; define CAI_NO_THREADS for one thread at a time"
#endif
}

/* The list as it is now. */
static cai_priv_py_owner *cai_priv_py_look(cai_python_home *home)
{
#if defined(CAI_NO_THREADS)
    return (cai_priv_py_owner *)home->released;
#elif defined(_MSC_VER) && !defined(__clang__)
    return (cai_priv_py_owner *)*(void *const volatile *)&home->released;
#else
    return (cai_priv_py_owner *)__atomic_load_n(&home->released, __ATOMIC_ACQUIRE);
#endif
}

/* Takes the whole list. */
static cai_priv_py_owner *cai_priv_py_take(cai_python_home *home)
{
    if (!cai_priv_py_look(home)) return NULL;
#if defined(CAI_NO_THREADS)
    {
        void *first = home->released;
        home->released = NULL;
        return (cai_priv_py_owner *)first;
    }
#elif defined(_MSC_VER) && !defined(__clang__)
    return (cai_priv_py_owner *)_InterlockedExchangePointer(&home->released, NULL);
#else
    return (cai_priv_py_owner *)__atomic_exchange_n(&home->released, NULL, __ATOMIC_ACQUIRE);
#endif
}

/* Only callers that have the GIL count. */
static int64_t cai_priv_py_count(cai_python_home *home, int64_t change)
{
#if !defined(Py_GIL_DISABLED)
    return home->holders += change;
#elif defined(_MSC_VER) && !defined(__clang__)
    return _InterlockedExchangeAdd64(&home->holders, change) + change;
#else
    return __atomic_add_fetch(&home->holders, change, __ATOMIC_ACQ_REL);
#endif
}

/* May run any code. */
static void cai_priv_py_forget(cai_priv_py_owner *owner)
{
    if (owner->release) {
        cai_array array;
        array.release = owner->release;
        array.owner = owner->inner;
        array.release(&array);
    }
    if (owner->buffer) PyBuffer_Release(owner->buffer);
    PyMem_Free(owner->buffer);
    PyMem_Free(owner->fields);
    Py_XDECREF(owner->object);
    Py_XDECREF(owner->mask_object);
    PyMem_Free(owner);
}

/* Forgets an owner that an array had. */
static void cai_priv_py_drop(cai_priv_py_owner *owner)
{
    cai_python_home *home = owner->home;
    cai_priv_py_forget(owner);
    if (!cai_priv_py_count(home, -1)) PyMem_Free(home);
}

/* To take the GIL may be to wait for who waits for us: only a thread of Python's does so, and whoever would
 * leave the reference to nobody. */
static int cai_priv_py_takes_gil(const cai_priv_py_owner *owner)
{
    if (!owner->home->is_main || !Py_IsInitialized()) return 0;
    return owner->home->closed || (owner->at_once && PyGILState_GetThisThreadState());
}

static void cai_priv_py_let_go(cai_array *array)
{
    cai_priv_py_owner *owner = (cai_priv_py_owner *)array->owner;
    PyObject *type, *value, *trace;
    PyGILState_STATE state;
    array->release = NULL;
    if (!cai_priv_py_takes_gil(owner)) {
        cai_priv_py_push(owner);
        return;
    }
    state = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &trace);
    cai_priv_py_drop(owner);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(state);
}

/* An owner; the storage for a mask is left out where none is wanted. */
static cai_priv_py_owner *cai_priv_py_owner_new(const cai_python *py, PyObject *object, int with_mask)
{
    const size_t size = with_mask ? sizeof(cai_priv_py_owner) : offsetof(cai_priv_py_owner, mask);
    cai_priv_py_owner *owner = (cai_priv_py_owner *)PyMem_Malloc(size);
    if (!owner) {
        PyErr_NoMemory();
        return NULL;
    }
    memset(owner, 0, offsetof(cai_priv_py_owner, mask));
    owner->home = py->home;
    Py_XINCREF(object);
    owner->object = object;
    return owner;
}

static void cai_priv_py_attach(cai_array *array, cai_priv_py_owner *owner)
{
    cai_array_own(array, cai_priv_py_let_go, owner);
    cai_priv_py_count(owner->home, 1);
}

CAI_API void cai_python_drain(cai_python *py)
{
    cai_priv_py_owner *owner = cai_priv_py_take(py->home);
    while (owner) {
        cai_priv_py_owner *next = owner->next;
        cai_priv_py_drop(owner); /* may run code that imports and releases: this list is ours */
        owner = next ? next : cai_priv_py_take(py->home);
    }
}

CAI_API void cai_python_release(cai_python *py, cai_array *arrays, Py_ssize_t count)
{
    Py_ssize_t i;
    for (i = 0; i < count; ++i) {
        cai_priv_py_owner *owner = (cai_priv_py_owner *)arrays[i].owner;
        if (arrays[i].release != cai_priv_py_let_go) {
            cai_array_release(&arrays[i]);
            continue;
        }
        arrays[i].release = NULL; /* no need of the list */
        cai_priv_py_drop(owner);
    }
    cai_python_drain(py);
}

/* Releases what was imported, and keeps the exception through what that may run. */
static void cai_priv_py_undo(cai_python *py, cai_array *arrays, Py_ssize_t count)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    cai_python_release(py, arrays, count);
    PyErr_Restore(type, value, trace);
}

CAI_API int cai_python_init(cai_python *py)
{
    static const char *const keys[CAI_PYTHON_KEYS] = {"shape",   "typestr", "data",  "version",
                                                      "strides", "stream",  "descr", "mask"};
    static const char *const names[CAI_PYTHON_NAMES] = {
        "__cuda_array_interface__",   "__array_interface__", "__cuda_stream__",    CAI_PYTHON_EXCHANGE,
        "__dlpack_c_exchange_api__", "__dlpack__",          "__dlpack_device__", "dtype",
        "is_conj",                   "is_neg"};
    int i;
    memset(py, 0, sizeof *py);
    py->home = (cai_python_home *)PyMem_Malloc(sizeof *py->home);
    if (!py->home) {
        PyErr_NoMemory();
        return -1;
    }
    memset(py->home, 0, sizeof *py->home);
    py->home->holders = 1;
    py->home->is_main = !PyInterpreterState_GetID(PyInterpreterState_Get());
    for (i = 0; i < CAI_PYTHON_KEYS + CAI_PYTHON_NAMES; ++i) {
        const int is_key = i < CAI_PYTHON_KEYS;
        PyObject **const at = is_key ? &py->keys[i] : &py->names[i - CAI_PYTHON_KEYS];
        *at = PyUnicode_InternFromString(is_key ? keys[i] : names[i - CAI_PYTHON_KEYS]);
        if (*at) continue;
        (void)cai_python_clear(py);
        return -1;
    }
    return 0;
}

CAI_API int64_t cai_python_clear(cai_python *py)
{
    cai_python_home *home = py ? py->home : NULL;
    int64_t left;
    int i;
    if (!home) return 0;
    cai_python_drain(py);
    for (i = 0; i < CAI_PYTHON_KEYS; ++i) Py_CLEAR(py->keys[i]);
    for (i = 0; i < CAI_PYTHON_NAMES; ++i) Py_CLEAR(py->names[i]);
    for (i = 0; i < CAI_PYTHON_TYPES; ++i) Py_CLEAR(py->types[i].type);
    py->home = NULL;
    home->closed = 1;
    left = cai_priv_py_count(home, -1);
    if (!left) PyMem_Free(home);
    return left;
}

CAI_API int cai_python_traverse(cai_python *py, visitproc visit, void *arg)
{
    const cai_priv_py_owner *owner;
    int i;
    for (i = 0; i < CAI_PYTHON_TYPES; ++i) Py_VISIT(py->types[i].type);
    for (owner = py->home ? cai_priv_py_look(py->home) : NULL; owner; owner = owner->next) {
        Py_VISIT(owner->object);
        Py_VISIT(owner->mask_object);
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
/* A function of an exporter failed; it may have forgotten to say why. */
static int cai_priv_py_failed(const char *function)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "%s of the exporter failed without a word", function);
    return -1;
}

/* The pointer in a capsule that is an attribute of a type. *out NULL: it has none, or something else (None in
 * a derived class that does not want what it inherits; an int in early versions of DLPack's). */
static int cai_priv_py_capsule(PyObject *type, PyObject *name, const char *capsule_name, void **out)
{
    PyObject *found = PyObject_GetAttr(type, name);
    *out = NULL;
    if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    if (!found) {
        PyErr_Clear();
        return 0;
    }
    if (PyCapsule_IsValid(found, capsule_name)) *out = PyCapsule_GetPointer(found, capsule_name);
    Py_DECREF(found);
    return 0;
}

/* Attributes that are sought in vain on the type and, as nothing else answers for it, on instances. */
static int cai_priv_py_find_lacks(const cai_python *py, PyObject *type, uint32_t *lacks)
{
    static const int wanted[3] = {CAI_PRIV_PY_CUDA, CAI_PRIV_PY_ARRAY, CAI_PRIV_PY_DLPACK};
    void *slot = PyType_GetSlot((PyTypeObject *)type, Py_tp_getattro);
    getattrofunc get = NULL;
    int i;
    *lacks = 0;
    memcpy(&get, &slot, sizeof get);
    if (get != PyObject_GenericGetAttr) return 0;
    for (i = 0; i < 3; ++i) {
        PyObject *found = PyObject_GetAttr(type, py->names[wanted[i]]);
        if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        if (!found) *lacks |= 1u << wanted[i];
        PyErr_Clear();
        Py_XDECREF(found);
    }
    return 0;
}

/* Asks a type what it offers. */
static int cai_priv_py_ask_type(const cai_python *py, PyObject *type, cai_python_type *out)
{
    const cai_python_exchange *exchange;
    void *found;
    if (cai_priv_py_capsule(type, py->names[CAI_PRIV_PY_EXCHANGE], CAI_PYTHON_EXCHANGE, &found)) return -1;
    exchange = (const cai_python_exchange *)found;
    if (exchange && (exchange->abi != CAI_ABI || exchange->struct_size < sizeof *exchange)) exchange = NULL;
    if (exchange && !exchange->describe) exchange = NULL;
    out->type = type;
    out->exchange = exchange;
    out->dlpack = NULL;
    out->lazy = PyObject_HasAttr(type, py->names[CAI_PRIV_PY_IS_CONJ]) &&
                PyObject_HasAttr(type, py->names[CAI_PRIV_PY_IS_NEG]);
#if defined(CAI_PRIV_PY_HAS_TABLE)
    if (cai_priv_py_capsule(type, py->names[CAI_PRIV_PY_TABLE], "dlpack_exchange_api", &found)) return -1;
    out->dlpack = cai_priv_py_table((const DLPackExchangeAPIHeader *)found);
#endif
    return cai_priv_py_find_lacks(py, type, &out->lacks);
}

/* What a type offers, remembered or asked. Asking may run code that imports. */
static int cai_priv_py_know(cai_python *py, PyObject *type, cai_python_type *out)
{
#if defined(Py_GIL_DISABLED)
    return cai_priv_py_ask_type(py, type, out); /* a memory that threads share would need a lock */
#else
    const uintptr_t address = (uintptr_t)type;
    cai_python_type *place = &py->types[(address >> 4 ^ address >> 8) % CAI_PYTHON_TYPES];
    PyObject *before = place->type;
    if (before == type) {
        *out = *place;
        return 0;
    }
    Py_INCREF(type);
    if (cai_priv_py_ask_type(py, type, out)) {
        Py_DECREF(type);
        return -1;
    }
    before = place->type;
    *place = *out;
    Py_XDECREF(before);
    return 0;
#endif
}

CAI_API int cai_python_offer(PyTypeObject *type, const cai_python_exchange *exchange)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)exchange, CAI_PYTHON_EXCHANGE, NULL);
    const int failed = !capsule || PyObject_SetAttrString((PyObject *)type, CAI_PYTHON_EXCHANGE, capsule);
    Py_XDECREF(capsule);
    return failed ? -1 : 0;
}

CAI_API PyObject *cai_python_adopt(cai_python *py, PyTypeObject *type, cai_array *array)
{
    cai_python_type known;
    PyObject *made;
    cai_error err;
    if (cai_array_check(array, &err)) return cai_python_raise(&err);
    if (cai_priv_py_know(py, (PyObject *)type, &known)) return NULL;
    if (!known.exchange || !known.exchange->adopt) {
        PyErr_SetString(PyExc_TypeError, "the type has no " CAI_PYTHON_EXCHANGE " that adopts arrays");
        return NULL;
    }
    if (!array->release) {
        PyErr_SetString(PyExc_ValueError, "cai_python_adopt: the array is borrowed, nobody would own it");
        return NULL;
    }
    made = known.exchange->adopt(type, array);
    if (!made) (void)cai_priv_py_failed("adopt");
    return made;
}

/* ------------------------------------------------------------------ >>tagging */
/* Tokens of one dictionary. Held objects live until cai_priv_py_close, as tokens point into strings. */
typedef struct cai_priv_py_reader {
    cai_token *tokens;
    size_t count, capacity;
    int lenient;
    int truths; /* it matters whether an object is true */
    int whole;  /* tuples are read to their end */
    PyObject *held[2 * CAI_PYTHON_KEYS];
    int held_count;
    PyObject *snapshots; /* a list of what lists were; NULL: none was met */
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
    while (reader->held_count) Py_DECREF(reader->held[--reader->held_count]);
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

static int cai_priv_py_put(cai_priv_py_reader *reader, int32_t kind, size_t length, uint64_t number,
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

static int cai_priv_py_put_int(cai_priv_py_reader *reader, PyObject *object, int32_t kind)
{
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    unsigned long long above;
    if (value == -1 && !overflow && PyErr_Occurred()) return -1;
    if (!overflow) return cai_priv_py_put(reader, kind, 0, (uint64_t)value, NULL);
    if (kind == CAI_TOKEN_INDEX) return cai_priv_py_put(reader, CAI_TOKEN_OBJECT, 0, 1, NULL);
    if (overflow < 0) return cai_priv_py_put(reader, CAI_TOKEN_BIG_INT, 0, 0, NULL);
    above = PyLong_AsUnsignedLongLong(object);
    if (above != (unsigned long long)-1 || !PyErr_Occurred())
        return cai_priv_py_put(reader, CAI_TOKEN_UINT, 0, above, NULL);
    PyErr_Clear();
    return cai_priv_py_put(reader, CAI_TOKEN_BIG_INT, 0, 0, NULL);
}

/* An object of no kind that the interface knows: a number by __index__, or just something. */
static int cai_priv_py_put_object(cai_priv_py_reader *reader, PyObject *object)
{
    int truth = 1, failed;
    PyObject *number;
    number = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
    if (number) {
        failed = cai_priv_py_put_int(reader, number, CAI_TOKEN_INDEX);
        Py_DECREF(number);
        return failed;
    }
    if (PyErr_Occurred()) { /* arrays have __index__, and only some can say a number */
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

static int cai_priv_py_put_bytes(cai_priv_py_reader *reader, PyObject *object)
{
    Py_ssize_t length;
    char *bytes;
    if (PyBytes_AsStringAndSize(object, &bytes, &length)) return -1;
    return cai_priv_py_put(reader, CAI_TOKEN_BYTES, (size_t)length, 0, bytes);
}

static int cai_priv_py_put_value(cai_priv_py_reader *reader, PyObject *object, int depth);

/* How many items of so many are read. */
static Py_ssize_t cai_priv_py_to_read(const cai_priv_py_reader *reader, Py_ssize_t length)
{
    const Py_ssize_t most = reader->whole ? (Py_ssize_t)CAI_PRIV_PY_MOST : (Py_ssize_t)CAI_PRIV_PY_ITEMS;
    return length < most ? length : most;
}

static int cai_priv_py_put_items(cai_priv_py_reader *reader, PyObject *tuple, int32_t kind, Py_ssize_t length,
                                 int depth)
{
    const Py_ssize_t read = cai_priv_py_to_read(reader, length);
    Py_ssize_t i;
    if (cai_priv_py_put(reader, kind, (size_t)length, 0, NULL)) return -1;
    for (i = 0; i < read; ++i)
        if (cai_priv_py_put_value(reader, PyTuple_GetItem(tuple, i), depth + 1)) return -1;
    return 0;
}

/* A list is read as what it is now: as far as it is read at all, it is copied. */
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

static int cai_priv_py_put_value(cai_priv_py_reader *reader, PyObject *object, int depth)
{
    if (!object) return -1;
    if (Py_TYPE(object) == &PyLong_Type) return cai_priv_py_put_int(reader, object, CAI_TOKEN_INT);
    if (depth > CAI_PRIV_PY_DEPTH) return cai_priv_py_put(reader, CAI_TOKEN_OTHER, 0, 0, NULL);
    if (PyBool_Check(object)) return cai_priv_py_put(reader, CAI_TOKEN_BOOL, 0, object == Py_True, NULL);
    if (PyLong_Check(object)) return cai_priv_py_put_int(reader, object, CAI_TOKEN_INT);
    if (object == Py_None) return cai_priv_py_put(reader, CAI_TOKEN_NONE, 0, 0, NULL);
    if (PyUnicode_Check(object)) return cai_priv_py_put_text(reader, object);
    if (PyTuple_Check(object))
        return cai_priv_py_put_items(reader, object, CAI_TOKEN_TUPLE, PyTuple_Size(object), depth);
    if (PyList_Check(object)) return cai_priv_py_put_list(reader, object, depth);
    if (PyBytes_Check(object)) return cai_priv_py_put_bytes(reader, object);
    if (PyDict_Check(object))
        return cai_priv_py_put(reader, CAI_TOKEN_DICT, 0, PyDict_Size(object) > 0, NULL);
    if (PyFloat_Check(object)) {
        const double value = PyFloat_AsDouble(object);
        return cai_priv_py_put(reader, CAI_TOKEN_FLOAT, 0, value < 0 || value > 0 || value != value, NULL);
    }
    return cai_priv_py_put_object(reader, object);
}

/* ------------------------------------------------------------------ >>reading */
/* Where the runs of a dictionary's entries begin, plus 1; 0: absent. Tokens move while they grow. */
typedef struct cai_priv_py_entries {
    size_t at[CAI_PYTHON_KEYS];
} cai_priv_py_entries;

enum { CAI_PRIV_PY_TYPESTR = 1, CAI_PRIV_PY_DATA = 2, CAI_PRIV_PY_DESCR = 6, CAI_PRIV_PY_MASK = 7 };

/* A mask is an object that exports an interface; what cannot be one is tagged as what it is. */
static int cai_priv_py_put_mask(cai_priv_py_reader *reader, PyObject *value, PyObject **mask)
{
    const int plain = value == Py_None || PyLong_Check(value) || PyFloat_Check(value) ||
                      PyUnicode_Check(value) || PyBytes_Check(value) || PyTuple_Check(value) ||
                      PyList_Check(value) || PyDict_Check(value);
    if (plain) return cai_priv_py_put_value(reader, value, 0);
    *mask = value;
    return cai_priv_py_put(reader, CAI_TOKEN_OBJECT, 0, 1, NULL);
}

/* A new reference to an entry; NULL without an exception: absent. */
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

static int cai_priv_py_read(cai_priv_py_reader *reader, const cai_python *py, PyObject *dictionary,
                            cai_priv_py_entries *entries, PyObject **mask)
{
    int i;
    memset(entries, 0, sizeof *entries);
    for (i = 0; i < CAI_PYTHON_KEYS; ++i) { /* held, as code that runs meanwhile may change the dictionary */
        PyObject *value = cai_priv_py_entry(dictionary, py->keys[i]);
        if (!value && PyErr_Occurred()) return -1;
        if (!value) continue;
        reader->held[reader->held_count++] = value;
        entries->at[i] = reader->count + 1;
        reader->whole = i == CAI_PRIV_PY_DESCR;
        reader->truths = reader->lenient && i == CAI_PRIV_PY_DATA; /* of the read-only flag */
        if (i == CAI_PRIV_PY_MASK ? cai_priv_py_put_mask(reader, value, mask)
                                  : cai_priv_py_put_value(reader, value, 0))
            return -1;
    }
    return 0;
}

static void cai_priv_py_link(const cai_priv_py_reader *reader, const cai_priv_py_entries *entries,
                             cai_interface *out)
{
    const cai_token **const runs[CAI_PYTHON_KEYS] = {&out->shape,   &out->typestr, &out->data,  &out->version,
                                                     &out->strides, &out->stream,  &out->descr, &out->mask};
    int i;
    memset(out, 0, sizeof *out);
    for (i = 0; i < CAI_PYTHON_KEYS; ++i)
        if (entries->at[i]) *runs[i] = &reader->tokens[entries->at[i] - 1];
}

/* What the import of one object needs. */
typedef struct cai_priv_py_import {
    cai_python *py;
    uint32_t flags;
    uint64_t stream;
    int on_host;
    cai_python_type type;
    PyObject *dictionary, *mask_dictionary;
    cai_priv_py_reader reader;
} cai_priv_py_import;

/* A new reference to an attribute; NULL without an exception: there is none. */
static PyObject *cai_priv_py_attribute(const cai_python *py, PyObject *object, int name)
{
    PyObject *found = PyObject_GetAttr(object, py->names[name]);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return found;
}

/* The same of what is imported: no AttributeError is made where its type can do without. */
static PyObject *cai_priv_py_find(const cai_priv_py_import *in, PyObject *object, int name)
{
    const int lacks = (in->type.lacks & 1u << name) != 0;
    if (lacks && !PyObject_HasAttr(object, in->py->names[name])) return NULL;
    return cai_priv_py_attribute(in->py, object, name);
}

/* `found`, if it is a dictionary; it is let go of if not. */
static PyObject *cai_priv_py_dictionary(const cai_python *py, PyObject *object, PyObject *found, int name)
{
    if (!found || PyDict_Check(found)) return found;
    if (!PyType_Check(object)) /* R1: of a class the property itself is found */
        PyErr_Format(PyExc_TypeError, "%U is not a dictionary", py->names[name]);
    Py_DECREF(found);
    return NULL;
}

/* --------------------------------------------------------------- >>dictionaries */
/* Reads the dictionary of a mask; an object without one is cai.h's to refuse. */
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

/* Nothing of CUDA can be pending in memory of the host. */
static void cai_priv_py_put_on_host(cai_array *array)
{
    array->memory = CAI_MEMORY_HOST;
    array->sync = CAI_SYNC_NONE;
}

/* What cai.h says to what was read. fields: storage, or NULL. */
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

/* cai_priv_py_judge, and the rows of a descr are kept: there are no more than its tokens. */
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

/* The narrow format that the last word of a text names and that has so many bytes, or 0. */
static int32_t cai_priv_py_narrow_of(const char *text, size_t length, int64_t itemsize)
{
    size_t end = length, start;
    while (end && (text[end - 1] == '>' || text[end - 1] == '\'')) --end; /* "<class 'warp.bfloat16'>" */
    for (start = end; start && text[start - 1] != '.' && text[start - 1] != '\''; --start) {}
#define CAI_PRIV_PY_NARROW(code, kind, size, format, name)                                                   \
    if (format && kind == 'f' && size == itemsize && end - start == sizeof name - 1 &&                       \
        !memcmp(text + start, name, end - start))                                                            \
        return code;
    CAI_DTYPE_LIST(CAI_PRIV_PY_NARROW)
#undef CAI_PRIV_PY_NARROW
    return 0;
}

/* What an exporter's dtype calls itself, a new reference; NULL without an exception: it has none. */
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

/* Where the typestr cannot tell a narrow format, the exporter's dtype is asked. */
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
    array->mask = NULL; /* views are of values */
    failed = cai_dtype_of(code, &narrow, &err) || cai_view_reinterpret(array, &narrow, array, &err);
    array->mask = mask;
    array->flags = (array->flags & ~(uint32_t)CAI_HAD_STRIDES) | had_strides;
    if (failed) cai_python_raise(&err);
    return failed ? -1 : 0;
}

/* Does the typestr say the other byte order? A dtype of kind V does not keep that, and there is no swapped
 * bfloat16: such items stay as they are. */
static int cai_priv_py_is_swapped(const cai_priv_py_reader *reader, const cai_priv_py_entries *entries)
{
    static const uint16_t one = 1;
    const char other = *(const unsigned char *)&one ? '>' : '<';
    return *reader->tokens[entries->at[CAI_PRIV_PY_TYPESTR] - 1].text == other;
}

static int cai_priv_py_import_entries(cai_priv_py_import *in, PyObject *object, cai_priv_py_owner *owner,
                                      cai_array *out)
{
    cai_priv_py_entries entries[2];
    PyObject *mask = NULL;
    memset(entries, 0, sizeof entries);
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
        owner->mask_object = mask;
        Py_INCREF(mask);
    }
    if (!(in->flags & CAI_PYTHON_NARROW)) return 0;
    if (out->dtype.itemsize != 1 && cai_priv_py_is_swapped(&in->reader, &entries[0])) return 0;
    return cai_priv_py_narrow(in->py, object, out);
}

static int cai_priv_py_import_dictionary(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const uint32_t with_storage = (uint32_t)CAI_PYTHON_MASK | (uint32_t)CAI_PYTHON_FIELDS;
    const int owned = !(in->flags & CAI_PYTHON_BORROW) || (in->flags & with_storage) != 0;
    cai_priv_py_owner *owner = NULL;
    int failed = 0;
    if (owned) owner = cai_priv_py_owner_new(in->py, object, (in->flags & CAI_PYTHON_MASK) != 0);
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
/* Kind and size of a format's letter; standard: the sizes are those of no platform. Size 0: no such type. */
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

/* Writes the typestr of a buffer's format (that of the struct module, PEP 3118); returns 0 if it has none. */
static int cai_priv_py_typestr(const char *format, Py_ssize_t itemsize, char *out)
{
    static const uint16_t one = 1;
    char native = *(const unsigned char *)&one ? '<' : '>', order = native;
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
        PyOS_snprintf(out, CAI_TYPESTR_SIZE, "%c%c%lld", at[0] == 'w' ? order : '|',
                      at[0] == 'w' ? 'U' : 'S', (long long)count);
        return 1;
    }
    is_complex = *at == 'Z';
    at += is_complex;
    kind = cai_priv_py_letter(*at, standard, &size);
    if (!size || at[1] || count != 1 || (is_complex && kind != 'f')) return 0;
    if (is_complex) size *= 2;
    if (size != itemsize) return 0;
    PyOS_snprintf(out, CAI_TYPESTR_SIZE, "%c%c%d", size == 1 ? '|' : order, is_complex ? 'c' : kind, size);
    return 1;
}

static int cai_priv_py_put_extents(cai_priv_py_reader *reader, const Py_ssize_t *values, int count)
{
    int i, failed = cai_priv_py_put(reader, CAI_TOKEN_TUPLE, (size_t)count, 0, NULL);
    for (i = 0; i < count && !failed; ++i)
        failed = cai_priv_py_put(reader, CAI_TOKEN_INT, 0, (uint64_t)(int64_t)values[i], NULL);
    return failed;
}

/* Tags a buffer as a dictionary of version 3. text: for its typestr. */
static int cai_priv_py_put_buffer(cai_priv_py_reader *reader, const Py_buffer *view, const char *text,
                                  cai_priv_py_entries *entries)
{
    const uint64_t data = view->len ? (uint64_t)(uintptr_t)view->buf : 0;
    int failed;
    memset(entries, 0, 2 * sizeof *entries);
    entries->at[0] = reader->count + 1;
    failed = cai_priv_py_put_extents(reader, view->shape, view->ndim);
    entries->at[1] = reader->count + 1;
    failed |= cai_priv_py_put(reader, CAI_TOKEN_STR, strlen(text), 0, text);
    entries->at[CAI_PRIV_PY_DATA] = reader->count + 1;
    failed |= cai_priv_py_put(reader, CAI_TOKEN_TUPLE, 2, 0, NULL);
    failed |= cai_priv_py_put(reader, CAI_TOKEN_UINT, 0, data, NULL);
    failed |= cai_priv_py_put(reader, CAI_TOKEN_BOOL, 0, view->readonly != 0, NULL);
    entries->at[3] = reader->count + 1;
    failed |= cai_priv_py_put(reader, CAI_TOKEN_INT, 0, 3, NULL);
    if (!view->strides) return failed;
    entries->at[4] = reader->count + 1;
    return failed | cai_priv_py_put_extents(reader, view->strides, view->ndim);
}

static int cai_priv_py_judge_buffer(cai_priv_py_import *in, const Py_buffer *view, cai_array *out)
{
    cai_priv_py_entries entries[2];
    char text[CAI_TYPESTR_SIZE];
    int i, failed, indirect = 0;
    for (i = 0; view->suboffsets && i < view->ndim && i < CAI_MAX_NDIM; ++i)
        indirect |= view->suboffsets[i] >= 0;
    if (indirect || view->ndim < 0 || view->ndim > CAI_MAX_NDIM || (view->ndim && !view->shape)) {
        PyErr_Format(PyExc_BufferError, indirect ? "the buffer has %d dimensions, with pointers to pointers"
                                                 : "the buffer has %d dimensions, not 0 to 64 with a shape",
                     view->ndim);
        return -1;
    }
    if (!cai_priv_py_typestr(view->format, view->itemsize, text)) {
        PyErr_Format(PyExc_BufferError, "the buffer's format '%s' with items of %zd bytes has no typestr",
                     view->format ? view->format : "B", view->itemsize);
        return -1;
    }
    in->on_host = 1;
    in->mask_dictionary = NULL;
    cai_priv_py_open(&in->reader, 0);
    failed = cai_priv_py_put_buffer(&in->reader, view, text, entries);
    if (!failed) failed = cai_priv_py_judge(in, entries, NULL, NULL, out);
    cai_priv_py_close(&in->reader);
    return failed ? -1 : 0;
}

static int cai_priv_py_import_buffer(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    cai_priv_py_owner *owner = cai_priv_py_owner_new(in->py, NULL, 0);
    Py_buffer *view = owner ? (Py_buffer *)PyMem_Malloc(sizeof *view) : NULL;
    if (owner && !view) PyErr_NoMemory();
    if (view && !PyObject_GetBuffer(object, view, PyBUF_FULL_RO)) owner->buffer = view;
    else PyMem_Free(view);
    if (owner && owner->buffer && !cai_priv_py_judge_buffer(in, view, out)) {
        out->fields = NULL;
        out->field_count = 0;
        cai_priv_py_attach(out, owner);
        return 0;
    }
    if (owner) cai_priv_py_forget(owner);
    return -1;
}

/* ------------------------------------------------------------------ >>dlpack */
static int cai_priv_py_refuse_host(void)
{
    PyErr_SetString(PyExc_TypeError, "the array is in plain host memory, this consumer takes those that CUDA "
                                     "can reach");
    return -1;
}

static int cai_priv_py_check_host(const cai_priv_py_import *in, const cai_array *array)
{
    if (array->memory != CAI_MEMORY_HOST || in->flags & CAI_PYTHON_HOST) return 0;
    return cai_priv_py_refuse_host();
}

#if defined(CAI_PRIV_PY_WITH_DLPACK)
/* Device types of DLPack. */
enum { CAI_PRIV_PY_DL_CPU = 1, CAI_PRIV_PY_DL_CUDA = 2, CAI_PRIV_PY_DL_PINNED = 3,
       CAI_PRIV_PY_DL_MANAGED = 13 };

/* Takes over what cai_dlpack.h imported: its deleter will run with the GIL, whoever releases the array. */
static void cai_priv_py_take_tensor(cai_array *array, cai_priv_py_owner *owner, PyObject *object)
{
    owner->release = array->release;
    owner->inner = array->owner;
    if (!array->release) { /* no deleter: then it is the object that keeps the memory */
        Py_INCREF(object);
        owner->object = object;
    }
    array->release = NULL;
    cai_priv_py_attach(array, owner);
}

#if defined(CAI_PRIV_PY_HAS_TABLE)
/* What is pending is in the exporter's current stream. */
static int cai_priv_py_current_stream(const DLPackExchangeAPI *table, DLDevice device, cai_array *array)
{
    void *stream = NULL;
    if (array->memory != CAI_MEMORY_DEVICE && array->memory != CAI_MEMORY_MANAGED) return 0;
    if (table->current_work_stream(kDLCUDA, device.device_id, &stream))
        return cai_priv_py_failed("current_work_stream");
    array->sync = CAI_SYNC_STREAM;
    array->stream = stream ? (uint64_t)(uintptr_t)stream : (uint64_t)CAI_STREAM_LEGACY;
    return 0;
}

static int cai_priv_py_import_table(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const DLPackExchangeAPI *table = (const DLPackExchangeAPI *)in->type.dlpack;
    struct DLManagedTensorVersioned *managed = NULL;
    cai_dlpack_options options;
    cai_priv_py_owner *owner;
    cai_error err;
    cai_status status;
    memset(&options, 0, sizeof options);
    options.flags = in->flags & CAI_LENIENT;
    owner = cai_priv_py_owner_new(in->py, NULL, 0);
    if (!owner) return -1;
    if (table->managed_tensor_from_py_object_no_sync(object, &managed) || !managed) {
        PyMem_Free(owner);
        return cai_priv_py_failed("managed_tensor_from_py_object_no_sync");
    }
    status = cai_dlpack_import_versioned(managed, &options, out, &err);
    if (status && status != CAI_ERR_VERSION && managed->deleter) managed->deleter(managed);
    if (status) cai_python_raise(&err);
    else if (!cai_priv_py_check_host(in, out) &&
             !cai_priv_py_current_stream(table, managed->dl_tensor.device, out)) {
        cai_priv_py_take_tensor(out, owner, object);
        return 0;
    } else cai_priv_py_undo(in->py, out, 1);
    PyMem_Free(owner);
    return -1;
}

/* The table of a major version that is known here, this or an older one behind it; or NULL. */
static const void *cai_priv_py_table(const DLPackExchangeAPIHeader *header)
{
    const DLPackExchangeAPI *table;
    while (header && header->version.major != DLPACK_MAJOR_VERSION) header = header->prev_api;
    table = (const DLPackExchangeAPI *)(const void *)header;
    if (!table || !table->managed_tensor_from_py_object_no_sync || !table->current_work_stream) return NULL;
    return table;
}
#endif /* CAI_PRIV_PY_HAS_TABLE */

/* What __dlpack_device__ says: type and number. */
static int cai_priv_py_ask_device(const cai_python *py, PyObject *object, long device[2])
{
    PyObject *method = cai_priv_py_attribute(py, object, CAI_PRIV_PY_DEVICE), *pair = NULL;
    int i;
    device[0] = device[1] = 0;
    if (method) pair = PyObject_CallObject(method, NULL);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the object has __dlpack__ without __dlpack_device__");
    Py_XDECREF(method);
    if (!pair) return -1;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
        PyErr_SetString(PyExc_TypeError, "__dlpack_device__ returned no tuple (type, id)");
    for (i = 0; i < 2 && !PyErr_Occurred(); ++i) device[i] = PyLong_AsLong(PyTuple_GetItem(pair, i));
    Py_DECREF(pair);
    return PyErr_Occurred() ? -1 : 0;
}

static int cai_priv_py_has_streams(long device_type)
{
    return device_type == CAI_PRIV_PY_DL_CUDA || device_type == CAI_PRIV_PY_DL_MANAGED;
}

/* The keywords of __dlpack__: stream only where there are streams, as not all take one elsewhere. */
static PyObject *cai_priv_py_keywords(const cai_priv_py_import *in, long device_type)
{
    PyObject *keywords = PyDict_New(), *value;
    int failed = !keywords;
#if defined(CAI_DLPACK_VERSIONED)
    value = failed ? NULL : Py_BuildValue("(ii)", (int)DLPACK_MAJOR_VERSION, (int)DLPACK_MINOR_VERSION);
    failed = !value || PyDict_SetItemString(keywords, "max_version", value);
    Py_XDECREF(value);
#endif
    if (!failed && cai_priv_py_has_streams(device_type)) {
        value = PyLong_FromUnsignedLongLong(in->stream);
        failed = !value || PyDict_SetItemString(keywords, "stream", value);
        Py_XDECREF(value);
    }
    if (failed) Py_CLEAR(keywords);
    return keywords;
}

static PyObject *cai_priv_py_call_dlpack(const cai_priv_py_import *in, PyObject *method, long device_type)
{
    PyObject *keywords = cai_priv_py_keywords(in, device_type), *nothing = PyTuple_New(0), *capsule = NULL;
    if (keywords && nothing) capsule = PyObject_Call(method, nothing, keywords);
#if defined(CAI_DLPACK_VERSIONED)
    if (keywords && nothing && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* exporters of before DLPack 1.0 do not know max_version */
        if (!PyDict_DelItemString(keywords, "max_version"))
            capsule = PyObject_Call(method, nothing, keywords);
    }
#endif
    Py_XDECREF(keywords);
    Py_XDECREF(nothing);
    return capsule;
}

/* The tensor of a capsule, which is marked as used if it is not its own any more. */
static int cai_priv_py_open_capsule(PyObject *capsule, const cai_dlpack_options *options, cai_array *out)
{
    const char *used = "used_dltensor";
    cai_status status;
    cai_error err;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *managed = (DLManagedTensor *)PyCapsule_GetPointer(capsule, "dltensor");
        cai_dlpack_options read_only = *options; /* it cannot say so, and JAX means it */
        read_only.flags |= (uint32_t)CAI_DLPACK_READ_ONLY;
        status = cai_dlpack_import(managed, &read_only, out, &err);
#if defined(CAI_DLPACK_VERSIONED)
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        void *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        used = "used_dltensor_versioned";
        status = cai_dlpack_import_versioned((struct DLManagedTensorVersioned *)managed, options, out, &err);
#endif
    } else {
        PyErr_SetString(PyExc_TypeError, "__dlpack__ returned no capsule with an unused tensor");
        return -1;
    }
    if (!status || status == CAI_ERR_VERSION) (void)PyCapsule_SetName(capsule, used);
    if (status) cai_python_raise(&err);
    return status ? -1 : 0;
}

/* Does the tensor lie where __dlpack_device__ said? The order of its work depends on that. */
static int cai_priv_py_check_device(cai_array *array, const long device[2])
{
    const int32_t memory = device[0] == CAI_PRIV_PY_DL_CPU      ? CAI_MEMORY_HOST
                           : device[0] == CAI_PRIV_PY_DL_PINNED ? CAI_MEMORY_PINNED
                           : device[0] == CAI_PRIV_PY_DL_CUDA   ? CAI_MEMORY_DEVICE
                                                                : CAI_MEMORY_MANAGED;
    if (array->memory == memory && (memory != CAI_MEMORY_DEVICE || array->device == device[1])) return 0;
    cai_array_release(array);
    PyErr_Format(PyExc_BufferError, "__dlpack_device__ returned (%ld, %ld), and the tensor is elsewhere",
                 device[0], device[1]);
    return -1;
}

static int cai_priv_py_import_tensor(cai_priv_py_import *in, PyObject *object, PyObject *method,
                                     cai_array *out)
{
    cai_dlpack_options options;
    cai_priv_py_owner *owner;
    PyObject *capsule, *type, *value, *trace;
    long device[2];
    int failed;
    memset(&options, 0, sizeof options);
    options.flags = in->flags & CAI_LENIENT;
    if (cai_priv_py_ask_device(in->py, object, device)) return -1;
    if (device[0] == CAI_PRIV_PY_DL_CPU && !(in->flags & CAI_PYTHON_HOST)) return cai_priv_py_refuse_host();
    if (device[0] != CAI_PRIV_PY_DL_CPU && device[0] != CAI_PRIV_PY_DL_PINNED &&
        !cai_priv_py_has_streams(device[0])) {
        PyErr_Format(PyExc_TypeError, "__dlpack_device__ returned (%ld, %ld), no device of CUDA", device[0],
                     device[1]);
        return -1;
    }
    if (cai_priv_py_has_streams(device[0])) {
        options.sync = CAI_SYNC_STREAM;
        options.stream = in->stream;
    }
    owner = cai_priv_py_owner_new(in->py, NULL, 0);
    capsule = owner ? cai_priv_py_call_dlpack(in, method, device[0]) : NULL;
    failed = !capsule || cai_priv_py_open_capsule(capsule, &options, out) ||
             cai_priv_py_check_device(out, device);
    if (failed) PyMem_Free(owner);
    else cai_priv_py_take_tensor(out, owner, object);
    PyErr_Fetch(&type, &value, &trace); /* an unused capsule runs its deleter */
    Py_XDECREF(capsule);
    PyErr_Restore(type, value, trace);
    return failed ? -1 : 0;
}

CAI_API PyObject *cai_python_dlpack_device(const cai_array *array)
{
    DLDevice device;
    cai_error err;
    if (cai_dlpack_device(array, &device, &err)) return cai_python_raise(&err);
    return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

/* `stream` of __dlpack__: is there something that it has to wait for? */
static int cai_priv_py_ask_stream(const cai_array *array, PyObject *stream, cai_python_dlpack_request *out)
{
    const int of_device = array->memory == CAI_MEMORY_DEVICE || array->memory == CAI_MEMORY_MANAGED;
    cai_priv_py_reader reader;
    cai_error err;
    int32_t sync = CAI_SYNC_NONE;
    int failed, there;
    if (!of_device && stream == Py_None) return 0;
    cai_priv_py_open(&reader, 0);
    failed = cai_priv_py_put_value(&reader, stream, 0);
    if (!failed && cai_stream_from_dlpack(reader.tokens, &sync, &out->stream, &err)) {
        cai_python_raise(&err);
        failed = 1;
    }
    cai_priv_py_close(&reader);
    if (failed) return -1;
    there = array->sync == CAI_SYNC_STREAM && array->stream == out->stream &&
            out->stream != CAI_STREAM_PER_THREAD; /* of which each thread has its own */
    if (sync == CAI_SYNC_NONE || there) {
        out->flags |= (uint32_t)CAI_DLPACK_ORDERED; /* the consumer sees to it, or is there already */
        out->stream = 0;
    }
    if (array->sync == CAI_SYNC_NONE) out->stream = 0;
    if (of_device || sync == CAI_SYNC_NONE) return 0;
    PyErr_SetString(PyExc_ValueError, "__dlpack__: stream is for memory of a device, and must be None here");
    return -1;
}

/* `dl_device` and `copy`: neither is done, so only what is so already can be asked for. */
static int cai_priv_py_ask_place(const cai_array *array, PyObject *device, PyObject *copy)
{
    PyObject *own;
    int same;
    if (copy != Py_None) {
        const int wanted = PyObject_IsTrue(copy);
        if (wanted > 0) PyErr_SetString(PyExc_BufferError, "__dlpack__: copy=True is not supported");
        if (wanted) return -1;
    }
    if (device == Py_None) return 0;
    own = cai_python_dlpack_device(array);
    same = own ? PyObject_RichCompareBool(own, device, Py_EQ) : -1;
    if (!same)
        PyErr_Format(PyExc_BufferError, "__dlpack__: dl_device=%R, and the array is on %R", device, own);
    Py_XDECREF(own);
    return same > 0 ? 0 : -1;
}

/* `max_version`: does it take the struct of DLPack 1? */
static int cai_priv_py_ask_version(PyObject *version, int32_t *versioned)
{
    long major;
    *versioned = 0;
    if (version == Py_None) return 0;
    if (!PyTuple_Check(version) || PyTuple_Size(version) != 2) {
        PyErr_SetString(PyExc_TypeError, "__dlpack__: max_version is no tuple (major, minor)");
        return -1;
    }
    major = PyLong_AsLong(PyTuple_GetItem(version, 0));
    if (major == -1 && PyErr_Occurred()) return -1;
#if defined(CAI_DLPACK_VERSIONED)
    *versioned = major >= DLPACK_MAJOR_VERSION;
#endif
    return 0;
}

CAI_API int cai_python_dlpack_ask(const cai_array *array, PyObject *args, PyObject *kwargs,
                                  cai_python_dlpack_request *out)
{
    char stream_name[] = "stream", version_name[] = "max_version", device_name[] = "dl_device",
         copy_name[] = "copy";
    char *names[5];
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    names[0] = stream_name;
    names[1] = version_name;
    names[2] = device_name;
    names[3] = copy_name;
    names[4] = NULL;
    memset(out, 0, sizeof *out);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version, &device,
                                     &copy))
        return -1;
    if (cai_priv_py_ask_version(version, &out->versioned)) return -1;
    if (cai_priv_py_ask_place(array, device, copy)) return -1;
    return cai_priv_py_ask_stream(array, stream, out);
}

static void cai_priv_py_free_storage(cai_dlpack_storage *storage)
{
    free(storage);
}

/* Of a capsule that nobody used. */
static void cai_priv_py_drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *managed = (DLManagedTensor *)PyCapsule_GetPointer(capsule, "dltensor");
        managed->deleter(managed);
    }
#if defined(CAI_DLPACK_VERSIONED)
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        void *found = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        struct DLManagedTensorVersioned *managed = (struct DLManagedTensorVersioned *)found;
        managed->deleter(managed);
    }
#endif
}

/* Moves an array into a capsule; on failure it is the caller's still. */
static PyObject *cai_priv_py_encapsulate(cai_array *array, const cai_python_dlpack_request *request,
                                         cai_dlpack_storage *storage)
{
    DLManagedTensor *plain = NULL;
    void *managed = NULL;
    PyObject *capsule;
    cai_error err;
    cai_status status;
#if defined(CAI_DLPACK_VERSIONED)
    struct DLManagedTensorVersioned *versioned = NULL;
    if (request->versioned) {
        status = cai_dlpack_export_versioned(array, request->flags, storage, &versioned, &err);
        managed = versioned;
    } else
#endif
    {
        status = cai_dlpack_export(array, request->flags, storage, &plain, &err);
        managed = plain;
    }
    if (status) return cai_python_raise(&err);
    capsule = PyCapsule_New(managed, plain ? "dltensor" : "dltensor_versioned", cai_priv_py_drop_capsule);
    if (!capsule) cai_array_move(array, &storage->array);
    return capsule;
}

CAI_API PyObject *cai_python_dlpack(cai_python *py, PyObject *object, const cai_array *array,
                                    const cai_python_dlpack_request *request)
{
    cai_dlpack_storage *storage;
    cai_priv_py_owner *owner;
    PyObject *capsule = NULL;
    cai_array moving;
    cai_error err;
    cai_python_drain(py);
    if (cai_array_check(array, &err)) return cai_python_raise(&err);
    moving = *array;
    owner = cai_priv_py_owner_new(py, object, 0);
    if (!owner) return NULL;
    owner->at_once = 1;
    cai_priv_py_attach(&moving, owner);
    storage = (cai_dlpack_storage *)malloc(sizeof *storage);
    if (storage) {
        memset(storage, 0, sizeof *storage);
        storage->done = cai_priv_py_free_storage;
        capsule = cai_priv_py_encapsulate(&moving, request, storage);
    } else {
        PyErr_NoMemory();
    }
    if (capsule) return capsule;
    free(storage);
    cai_priv_py_undo(py, &moving, 1);
    return NULL;
}
#endif /* CAI_PRIV_PY_WITH_DLPACK */

/* --------------------------------------------------------------- >>importing */
/* Takes what the exchange of a type in C describes. */
static int cai_priv_py_import_exchange(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    cai_priv_py_owner *owner;
    cai_error err;
    if (in->type.exchange->describe(object, out)) return cai_priv_py_failed("describe");
    if (cai_array_check(out, &err)) {
        cai_python_raise(&err);
    } else if (cai_priv_py_check_host(in, out)) {
        /* the exception is set */
    } else if (out->mask && !(in->flags & CAI_PYTHON_MASK)) {
        PyErr_SetString(PyExc_ValueError, "mask is present, this consumer takes arrays without one");
    } else {
        if (!(in->flags & CAI_PYTHON_FIELDS)) out->fields = NULL;
        if (!(in->flags & CAI_PYTHON_FIELDS)) out->field_count = 0;
        if (out->release || in->flags & CAI_PYTHON_BORROW) return 0;
        owner = cai_priv_py_owner_new(in->py, object, 0);
        if (owner) cai_priv_py_attach(out, owner);
        return owner ? 0 : -1;
    }
    cai_priv_py_undo(in->py, out, 1);
    return -1;
}

/* The dictionary of device memory, else of host memory if that is wanted. A new reference, or NULL. */
static PyObject *cai_priv_py_find_dictionary(cai_priv_py_import *in, PyObject *object)
{
    PyObject *found = cai_priv_py_find(in, object, CAI_PRIV_PY_CUDA);
    in->on_host = 0;
    if (found || PyErr_Occurred()) {
        found = cai_priv_py_dictionary(in->py, object, found, CAI_PRIV_PY_CUDA);
        if (found || PyErr_Occurred()) return found;
    }
    if (!(in->flags & CAI_PYTHON_HOST)) return NULL;
    in->on_host = 1;
    found = cai_priv_py_find(in, object, CAI_PRIV_PY_ARRAY);
    return cai_priv_py_dictionary(in->py, object, found, CAI_PRIV_PY_ARRAY);
}

/* What is left where there is no dictionary. */
static int cai_priv_py_import_else(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    const int on_host = (in->flags & CAI_PYTHON_HOST) != 0;
#if defined(CAI_PRIV_PY_WITH_DLPACK)
    PyObject *method = PyType_Check(object) ? NULL : cai_priv_py_find(in, object, CAI_PRIV_PY_DLPACK);
    if (method) {
        const int failed = cai_priv_py_import_tensor(in, object, method, out);
        Py_DECREF(method);
        return failed;
    }
    if (PyErr_Occurred()) return -1;
#endif
    if (on_host && PyObject_CheckBuffer(object)) return cai_priv_py_import_buffer(in, object, out);
#if defined(CAI_PRIV_PY_WITH_DLPACK)
#define CAI_PRIV_PY_NONE_OF "the object has no __cuda_array_interface__, no __dlpack__"
#else
#define CAI_PRIV_PY_NONE_OF "the object has no __cuda_array_interface__"
#endif
    PyErr_SetString(PyExc_TypeError, on_host ? CAI_PRIV_PY_NONE_OF ", no __array_interface__, no buffer"
                                             : CAI_PRIV_PY_NONE_OF);
    return -1;
}

/* PyTorch says nowhere but here that values are to be conjugated or negated when they are read: neither its
 * dictionary nor its table does, and __dlpack__ only of the conjugate. */
static int cai_priv_py_refuse_lazy(const cai_python *py, PyObject *object)
{
    int name;
    for (name = CAI_PRIV_PY_IS_CONJ; name <= CAI_PRIV_PY_IS_NEG; ++name) {
        PyObject *method = cai_priv_py_attribute(py, object, name);
        PyObject *answer = method ? PyObject_CallObject(method, NULL) : NULL;
        const int is_lazy = answer == Py_True;
        Py_XDECREF(method);
        Py_XDECREF(answer);
        if (is_lazy)
            PyErr_Format(PyExc_BufferError, "%U() of the tensor is true: its values are not those in memory, "
                                            "resolve_conj() and resolve_neg() make them so", py->names[name]);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static int cai_priv_py_import_one(cai_priv_py_import *in, PyObject *object, cai_array *out)
{
    int failed;
    if (cai_priv_py_know(in->py, (PyObject *)Py_TYPE(object), &in->type)) return -1;
    if (in->type.exchange) return cai_priv_py_import_exchange(in, object, out);
    if (in->type.lazy && cai_priv_py_refuse_lazy(in->py, object)) return -1;
#if defined(CAI_PRIV_PY_HAS_TABLE)
    if (in->type.dlpack) return cai_priv_py_import_table(in, object, out);
#endif
    in->dictionary = cai_priv_py_find_dictionary(in, object);
    if (!in->dictionary) return PyErr_Occurred() ? -1 : cai_priv_py_import_else(in, object, out);
    failed = cai_priv_py_import_dictionary(in, object, out);
    Py_DECREF(in->dictionary);
    return failed;
}

CAI_API int cai_python_import(cai_python *py, PyObject *const *objects, Py_ssize_t count,
                              const cai_python_options *options, cai_array *out)
{
    const uint32_t known = (uint32_t)CAI_LENIENT | (uint32_t)CAI_PYTHON_HOST | (uint32_t)CAI_PYTHON_MASK |
                           (uint32_t)CAI_PYTHON_FIELDS | (uint32_t)CAI_PYTHON_NARROW |
                           (uint32_t)CAI_PYTHON_BORROW;
    cai_priv_py_import in;
    Py_ssize_t i;
    in.py = py;
    in.flags = options ? options->flags : 0;
    in.stream = options && options->stream ? options->stream : (uint64_t)CAI_STREAM_LEGACY;
    cai_python_drain(py);
    if (in.flags & ~known) {
        PyErr_Format(PyExc_ValueError, "cai_python_import: flags = %u are none", (unsigned)in.flags);
        return -1;
    }
    for (i = 0; i < count; ++i) {
        if (!cai_priv_py_import_one(&in, objects[i], &out[i])) continue;
        cai_priv_py_undo(py, out, i);
        return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------ >>streams */
/* What __cuda_stream__() of an object returns, a new reference; NULL without an exception: it has none. */
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
        status = by_protocol ? cai_stream_from_protocol(reader.tokens, stream, &err)
                             : cai_stream_from_interface(reader.tokens, 3, &sync, stream, &err);
        if (status) cai_python_raise(&err);
        failed = status != CAI_OK;
    }
    cai_priv_py_close(&reader);
    return failed ? -1 : 0;
}

/* What the interface says of 0 and -1 leads to None, which is none here. */
static int cai_priv_py_decode_int(PyObject *object, uint64_t *stream)
{
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (overflow || value > 0 || PyBool_Check(object)) return cai_priv_py_decode_stream(object, 0, stream);
    PyErr_Format(PyExc_ValueError, "stream = %lld is none: 1 is the legacy default stream, 2 the per-thread "
                                   "one, everything above a handle", value);
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
/* Does the owner's own stream come after what `stream` has now, as an exchange let it? */
static int cai_priv_py_is_settled(const cai_array *array)
{
    const int on_stream = array->sync == CAI_SYNC_STREAM || (array->sync == CAI_SYNC_EVENT && array->stream);
    return (on_stream || !array->size) && (!array->mask || cai_priv_py_is_settled(array->mask));
}

CAI_API int cai_python_release_after(cai_python *py, cai_stream_pool *pool, cai_array *arrays,
                                     Py_ssize_t count, uint64_t stream)
{
    cai_error err;
    cai_status status = cai_keepalive_poll(pool, NULL, &err);
    Py_ssize_t i;
    for (i = 0; i < count && !status; ++i) {
        if (cai_priv_py_is_settled(&arrays[i])) cai_python_release(py, &arrays[i], 1);
        else status = cai_keepalive_push(&arrays[i], pool, stream, &err);
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

/* The object that a run of tokens means; *at goes past it. */
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
    if ((array->mask != NULL) != (mask != NULL)) {
        PyErr_SetString(PyExc_ValueError, mask ? "cai_python_interface: the array has no mask"
                                               : "cai_python_interface: which object exports the mask?");
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
