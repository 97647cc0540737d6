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
    Copy cai.h and cai_python.h into your extension module. In one file, before any other header:

        #define CAI_IMPLEMENTATION
        #include "cai_python.h"

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

WHAT IT READS
    __cuda_array_interface__, of any version; else, if CAI_PYTHON_HOST is asked for, __array_interface__ of
    arrays in host memory. Subclasses of dict are read as dict. An entry is held while it is read, and a list
    is read as it was when it was met, so that code that runs meanwhile (__index__ of an item) changes
    nothing. A class whose attribute is a property is no array (R1).

ORDER
    array->sync, ->stream say what the dictionary says of pending work (R70-R77). Nothing is waited for here:
    cai_stream.h does that, with cai_exchange_begin and cai_exchange_end.

OWNERSHIP
    An imported array owns a reference to the object. Its release may run on any thread, with or without the
    GIL: the reference goes to a list in `cai_python`, and is dropped by the next call that has the GIL
    (cai_python_release at once). `cai_python` outlives its arrays.

THREADS
    All functions but the release of an array need the GIL, or, in a build without one, an attached thread;
    any number of those may use one cai_python.

RULES
    R1-R8, R70-R84, of docs/rules.md.

NOT HERE
    DLPack, the buffer protocol, an exchange between types in C. A device: cai_locate asks CUDA.

CHANGES
    0.1.0  first version
*/

#if defined(CAI_NAMESPACE)
#define cai_python_clear CAI_PRIV_RENAMED(cai_python_clear)
#define cai_python_drain CAI_PRIV_RENAMED(cai_python_drain)
#define cai_python_import CAI_PRIV_RENAMED(cai_python_import)
#define cai_python_init CAI_PRIV_RENAMED(cai_python_init)
#define cai_python_interface CAI_PRIV_RENAMED(cai_python_interface)
#define cai_python_raise CAI_PRIV_RENAMED(cai_python_raise)
#define cai_python_release CAI_PRIV_RENAMED(cai_python_release)
#define cai_python_stream CAI_PRIV_RENAMED(cai_python_stream)
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { CAI_PYTHON_KEYS = 8, CAI_PYTHON_NAMES = 3 };

/** What a module knows. In its state; not to be moved or copied; look, don't touch. */
typedef struct cai_python {
    PyObject *keys[CAI_PYTHON_KEYS];   /* of the dictionary, in the order of CAI_ENTRY_LIST */
    PyObject *names[CAI_PYTHON_NAMES]; /* of the attributes */
    void *released;                    /* references to drop */
    int64_t live;                      /* arrays that own one */
} cai_python;

enum {
    CAI_PYTHON_HOST = 1 << 8, /* arrays in host memory, too: __array_interface__ */
    CAI_PYTHON_MASK = 1 << 9  /* arrays with a mask, too (R52): look at array->mask */
};

/** Options of an import; zero means the default. */
typedef struct cai_python_options {
    uint32_t flags;    /* 0, or of CAI_LENIENT, CAI_PYTHON_HOST, CAI_PYTHON_MASK */
    uint32_t reserved; /* 0 */
} cai_python_options;

/** Makes an empty one. Returns 0, or -1 with an exception set. */
CAI_API CAI_MUST_CHECK int cai_python_init(cai_python *py);

/** Drops what it holds: for the m_free of a module (nothing in it can be part of a cycle). Returns how many
 *  imported arrays are still alive: with any, the memory of `py` must stay where it is. NULL, or one of
 *  zeros, is fine. No other function takes it any more. */
CAI_API int64_t cai_python_clear(cai_python *py);

/** Imports `count` objects, all or none. out: `count` arrays, each of which owns its object; scratch where
 *  the import fails. options: NULL for the default. Returns 0, or -1 with an exception set: TypeError for an
 *  object that exports no interface, what the object itself raised, or of the type that CAI_STATUS_LIST has
 *  for the status of cai_import, with its message. Rows of a descr are checked, and not kept. */
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

/** A new dictionary of `version` 0 to 3 for an array, as __cuda_array_interface__ returns it. mask: the
 *  object that exports array->mask, or NULL where there is none. NULL with an exception set: BufferError for
 *  what the version cannot say (cai_export). */
CAI_API PyObject *cai_python_interface(cai_python *py, const cai_array *array, int32_t version,
                                       PyObject *mask);

/** Raises what a function of cai said; returns NULL. err->code: not CAI_OK. */
CAI_API PyObject *cai_python_raise(const cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PYTHON_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>released  >>tagging  >>reading  >>importing  >>streams  >>writing */

#if defined(CAI_PYTHON_IMPLEMENTATION) && !defined(CAI_PYTHON_IMPLEMENTED)
#define CAI_PYTHON_IMPLEMENTED

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

enum { CAI_PRIV_PY_CUDA = 0, CAI_PRIV_PY_ARRAY = 1, CAI_PRIV_PY_STREAM = 2 };
enum {
    CAI_PRIV_PY_TOKENS = 160,     /* on the stack: shape and strides of 64 axes, and the rest */
    CAI_PRIV_PY_MOST = 1 << 20,   /* tokens of one dictionary */
    CAI_PRIV_PY_ITEMS = 65,       /* of a tuple that are read, but in a descr: more than 64 are too many */
    CAI_PRIV_PY_DEPTH = 200       /* of nesting */
};

/* ----------------------------------------------------------------- >>released */
/* What an imported array owns. */
typedef struct cai_priv_py_owner {
    struct cai_priv_py_owner *next; /* once it is released */
    cai_python *py;
    PyObject *object, *mask_object;
    cai_array mask; /* its storage, there only if one was asked for */
} cai_priv_py_owner;

/* Puts an owner on the list. Any thread, without the GIL. */
static void cai_priv_py_push(cai_priv_py_owner *owner)
{
    cai_python *py = owner->py;
#if defined(CAI_NO_THREADS)
    owner->next = (cai_priv_py_owner *)py->released;
    py->released = owner;
#elif defined(_MSC_VER) && !defined(__clang__)
    void *first;
    do {
        first = *(void *volatile *)&py->released;
        owner->next = (cai_priv_py_owner *)first;
    } while (_InterlockedCompareExchangePointer(&py->released, owner, first) != first);
#elif defined(__GNUC__) || defined(__clang__)
    void *first = __atomic_load_n(&py->released, __ATOMIC_RELAXED);
    do owner->next = (cai_priv_py_owner *)first;
    while (!__atomic_compare_exchange_n(&py->released, &first, (void *)owner, 1, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
#else
#error "cai_python.h: no atomics for this compiler; define CAI_NO_THREADS for one thread at a time"
#endif
}

/* Takes the whole list. */
static cai_priv_py_owner *cai_priv_py_take(cai_python *py)
{
#if defined(CAI_NO_THREADS)
    void *first = py->released;
    py->released = NULL;
    return (cai_priv_py_owner *)first;
#elif defined(_MSC_VER) && !defined(__clang__)
    return (cai_priv_py_owner *)_InterlockedExchangePointer(&py->released, NULL);
#else
    if (!__atomic_load_n(&py->released, __ATOMIC_RELAXED)) return NULL;
    return (cai_priv_py_owner *)__atomic_exchange_n(&py->released, NULL, __ATOMIC_ACQUIRE);
#endif
}

static int64_t cai_priv_py_count(cai_python *py, int64_t change)
{
#if defined(CAI_NO_THREADS)
    return py->live += change;
#elif defined(_MSC_VER) && !defined(__clang__)
    return _InterlockedExchangeAdd64(&py->live, change) + change;
#else
    return __atomic_add_fetch(&py->live, change, __ATOMIC_RELAXED);
#endif
}

static void cai_priv_py_let_go(cai_array *array)
{
    array->release = NULL;
    cai_priv_py_push((cai_priv_py_owner *)array->owner);
}

static void cai_priv_py_forget(cai_priv_py_owner *owner)
{
    Py_XDECREF(owner->object);
    Py_XDECREF(owner->mask_object);
    PyMem_Free(owner);
}

CAI_API void cai_python_drain(cai_python *py)
{
    cai_priv_py_owner *owner = cai_priv_py_take(py);
    while (owner) {
        cai_priv_py_owner *next = owner->next;
        cai_priv_py_count(py, -1);
        cai_priv_py_forget(owner); /* may run code that imports and releases: the list is ours */
        owner = next;
    }
}

CAI_API void cai_python_release(cai_python *py, cai_array *arrays, Py_ssize_t count)
{
    Py_ssize_t i;
    for (i = 0; i < count; ++i) cai_array_release(&arrays[i]);
    cai_python_drain(py);
}

CAI_API int cai_python_init(cai_python *py)
{
    static const char *const keys[CAI_PYTHON_KEYS] = {"shape",   "typestr", "data",  "version",
                                                      "strides", "stream",  "descr", "mask"};
    static const char *const names[CAI_PYTHON_NAMES] = {"__cuda_array_interface__", "__array_interface__",
                                                        "__cuda_stream__"};
    int i;
    memset(py, 0, sizeof *py);
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
    int i;
    if (!py) return 0;
    cai_python_drain(py);
    for (i = 0; i < CAI_PYTHON_KEYS; ++i) Py_CLEAR(py->keys[i]);
    for (i = 0; i < CAI_PYTHON_NAMES; ++i) Py_CLEAR(py->names[i]);
    return cai_priv_py_count(py, 0);
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

enum { CAI_PRIV_PY_DATA = 2, CAI_PRIV_PY_DESCR = 6, CAI_PRIV_PY_MASK = 7 };

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

static int cai_priv_py_read(cai_priv_py_reader *reader, const cai_python *py, PyObject *dictionary,
                            cai_priv_py_entries *entries, PyObject **mask)
{
    int i;
    memset(entries, 0, sizeof *entries);
    for (i = 0; i < CAI_PYTHON_KEYS; ++i) {
        PyObject *value = PyDict_GetItemWithError(dictionary, py->keys[i]);
        if (!value && PyErr_Occurred()) return -1;
        if (!value) continue;
        Py_INCREF(value); /* code that runs meanwhile may change the dictionary */
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

/* A new reference to the dictionary of an object; NULL without an exception: it has none. */
static PyObject *cai_priv_py_dictionary(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(object, name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    if (!found || PyDict_Check(found)) return found;
    if (!PyType_Check(object)) /* R1: of a class the property itself is found */
        PyErr_Format(PyExc_TypeError, "%U is not a dictionary", name);
    Py_DECREF(found);
    return NULL;
}

/* ---------------------------------------------------------------- >>importing */
/* What the import of one object needs. */
typedef struct cai_priv_py_import {
    cai_python *py;
    uint32_t flags;
    int on_host;
    PyObject *dictionary, *mask_dictionary;
    cai_priv_py_reader reader;
} cai_priv_py_import;

static int cai_priv_py_find(cai_priv_py_import *in, PyObject *object)
{
    in->on_host = 0;
    in->dictionary = cai_priv_py_dictionary(object, in->py->names[CAI_PRIV_PY_CUDA]);
    if (in->dictionary || PyErr_Occurred()) return in->dictionary ? 0 : -1;
    if (in->flags & CAI_PYTHON_HOST) {
        in->on_host = 1;
        in->dictionary = cai_priv_py_dictionary(object, in->py->names[CAI_PRIV_PY_ARRAY]);
    }
    if (!in->dictionary && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, in->flags & CAI_PYTHON_HOST
                                             ? "the object has neither __cuda_array_interface__ nor "
                                               "__array_interface__"
                                             : "the object has no __cuda_array_interface__");
    return in->dictionary ? 0 : -1;
}

/* Reads the dictionary of a mask; an object without one is cai.h's to refuse. */
static int cai_priv_py_find_mask(cai_priv_py_import *in, PyObject *mask, cai_priv_py_entries *entries)
{
    PyObject *inner = NULL;
    if (!mask) return 0;
    in->mask_dictionary =
        cai_priv_py_dictionary(mask, in->py->names[in->on_host ? CAI_PRIV_PY_ARRAY : CAI_PRIV_PY_CUDA]);
    if (!in->mask_dictionary) return PyErr_Occurred() ? -1 : 0;
    return cai_priv_py_read(&in->reader, in->py, in->mask_dictionary, entries, &inner);
}

static int cai_priv_py_judge(cai_priv_py_import *in, const cai_priv_py_entries entries[2],
                             cai_priv_py_owner *owner, cai_array *out)
{
    cai_import_options options;
    cai_interface interfaces[2];
    cai_error err;
    memset(&options, 0, sizeof options);
    options.flags = in->flags & CAI_LENIENT;
    options.mask = in->flags & CAI_PYTHON_MASK ? &owner->mask : NULL;
    cai_priv_py_link(&in->reader, &entries[0], &interfaces[0]);
    cai_priv_py_link(&in->reader, &entries[1], &interfaces[1]);
    if (in->mask_dictionary) interfaces[0].mask_interface = &interfaces[1];
    if (in->on_host) interfaces[0].stream = interfaces[1].stream = NULL;
    if (cai_import(&interfaces[0], &options, out, &err)) {
        cai_python_raise(&err);
        return -1;
    }
    if (!in->on_host) return 0;
    out->memory = CAI_MEMORY_HOST;
    out->sync = CAI_SYNC_NONE;
    if (out->mask) out->mask->memory = CAI_MEMORY_HOST;
    if (out->mask) out->mask->sync = CAI_SYNC_NONE;
    return 0;
}

static int cai_priv_py_import_dictionary(cai_priv_py_import *in, cai_priv_py_owner *owner, cai_array *out)
{
    cai_priv_py_entries entries[2];
    PyObject *mask = NULL;
    memset(entries, 0, sizeof entries);
    if (cai_priv_py_read(&in->reader, in->py, in->dictionary, &entries[0], &mask)) return -1;
    if (cai_priv_py_find_mask(in, mask, &entries[1])) return -1;
    if (cai_priv_py_judge(in, entries, owner, out)) return -1;
    if (out->mask) owner->mask_object = mask;
    Py_XINCREF(owner->mask_object);
    out->fields = NULL; /* their names would have to live as long */
    out->field_count = 0;
    return 0;
}

/* An owner; the storage for a mask is left out where none is wanted. */
static cai_priv_py_owner *cai_priv_py_owner_new(cai_python *py, PyObject *object, int with_mask)
{
    const size_t size = with_mask ? sizeof(cai_priv_py_owner) : offsetof(cai_priv_py_owner, mask);
    cai_priv_py_owner *owner = (cai_priv_py_owner *)PyMem_Malloc(size);
    if (!owner) {
        PyErr_NoMemory();
        return NULL;
    }
    owner->next = NULL;
    owner->py = py;
    owner->mask_object = NULL;
    Py_INCREF(object);
    owner->object = object;
    return owner;
}

static int cai_priv_py_import_one(cai_python *py, PyObject *object, uint32_t flags, cai_array *out)
{
    cai_priv_py_import in;
    cai_priv_py_owner *owner;
    int failed;
    in.py = py;
    in.flags = flags;
    in.mask_dictionary = NULL;
    if (cai_priv_py_find(&in, object)) return -1;
    owner = cai_priv_py_owner_new(py, object, (flags & CAI_PYTHON_MASK) != 0);
    cai_priv_py_open(&in.reader, (flags & CAI_LENIENT) != 0);
    failed = !owner || cai_priv_py_import_dictionary(&in, owner, out);
    cai_priv_py_close(&in.reader);
    Py_DECREF(in.dictionary);
    Py_XDECREF(in.mask_dictionary);
    if (failed) {
        if (owner) cai_priv_py_forget(owner);
        return -1;
    }
    cai_array_own(out, cai_priv_py_let_go, owner);
    cai_priv_py_count(py, 1);
    return 0;
}

/* Releases what was imported, and keeps the exception through what that may run. */
static void cai_priv_py_undo(cai_python *py, cai_array *arrays, Py_ssize_t count)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    cai_python_release(py, arrays, count);
    PyErr_Restore(type, value, trace);
}

CAI_API int cai_python_import(cai_python *py, PyObject *const *objects, Py_ssize_t count,
                              const cai_python_options *options, cai_array *out)
{
    const uint32_t flags = options ? options->flags : 0;
    const uint32_t known = (uint32_t)CAI_LENIENT | (uint32_t)CAI_PYTHON_HOST | (uint32_t)CAI_PYTHON_MASK;
    Py_ssize_t i;
    cai_python_drain(py);
    if (flags & ~known) {
        PyErr_Format(PyExc_ValueError, "cai_python_import: flags = %u are none", (unsigned)flags);
        return -1;
    }
    for (i = 0; i < count; ++i) {
        if (!cai_priv_py_import_one(py, objects[i], flags, &out[i])) continue;
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
