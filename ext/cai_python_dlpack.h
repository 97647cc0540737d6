/* cai_python_dlpack.h - DLPack of Python objects to cai_array, and back: imports, __dlpack__ - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * C99 that is also C++11, over Python's limited API of 3.11 and later. No dlpack.h, no CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_PYTHON_DLPACK_IMPLEMENTATION)
#define CAI_PYTHON_DLPACK_IMPLEMENTATION
#endif
#if defined(CAI_PYTHON_DLPACK_IMPLEMENTATION) && !defined(CAI_PYTHON_IMPLEMENTATION)
#define CAI_PYTHON_IMPLEMENTATION /* the two share functions, so they are compiled together */
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_PYTHON_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                        \
    defined(CAI_PYTHON_IMPLEMENTATION) != defined(CAI_PYTHON_IMPLEMENTED) ||                                 \
    defined(CAI_STREAM_H_INCLUDED) != defined(CAI_PRIV_PY_WITH_STREAM) ||                                    \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_python.h" /* first, as Python.h comes before all other headers */
#endif
#if !defined(CAI_DLPACK_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                        \
    defined(CAI_STREAM_H_INCLUDED) != defined(CAI_PRIV_DLPACK_WITH_STREAM)
#include "cai_dlpack.h"
#endif

#if CAI_PYTHON_H_INCLUDED / 100 != 2
#error "cai_python_dlpack.h: this is version 0.2, which needs cai_python.h 0.2"
#endif
#if CAI_DLPACK_H_INCLUDED / 100 != 2
#error "cai_python_dlpack.h: this is version 0.2, which needs cai_dlpack.h 0.2"
#endif
#if defined(CAI_PYTHON_DLPACK_H_INCLUDED) && CAI_PYTHON_DLPACK_H_INCLUDED != 200
#error "cai_python_dlpack.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_PYTHON_DLPACK_H_INCLUDED
#define CAI_PYTHON_DLPACK_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    Copy cai.h, cai_python.h, cai_dlpack.h and cai_python_dlpack.h into your extension module. No dlpack.h is
    needed. Write this in one file, before any other header, as Python.h demands. In other files include the
    header without the define.

        #define CAI_IMPLEMENTATION
        #include "cai_python_dlpack.h"

    For cai_python_dlpack_ordered include cai_stream.h before it, and before that Python.h with
    PY_SSIZE_T_CLEAN defined. CAI_PYTHON_DLPACK_IMPLEMENTATION is for this header and cai_python.h, whose
    implementations belong into one file.

WHAT IT IS
    With this header the imports of cai_python.h also read DLPack, and your own types export it. Open the
    cai_python of your module with cai_python_dlpack_init in place of cai_python_init. All other calls stay.

EXAMPLE (of a type whose objects have a `cai_array array` and a `cai_python *py`)
        static PyObject *dlpack(object *self, PyObject *args, PyObject *kwargs) // __dlpack__
        {
            cai_python_dlpack_request request;
            if (cai_python_dlpack_ask(&self->array, args, kwargs, &request)) return NULL;
            return cai_python_dlpack_ordered(self->py, self->pool, (PyObject *)self, &self->array, &request);
        }

WHAT A TYPE CAN OFFER
    __dlpack__ and __dlpack_device__, as above. And __dlpack_c_exchange_api__, DLPack's exchange of a type in
    C, made of the `describe` and `adopt` of cai_python_offer:
        CAI_PYTHON_DLPACK_TABLE(your_table, your_current_work_stream)              // at file scope
        cai_python_dlpack_offer_ordered(py, pool, type, &your_table)               // after cai_python_offer

WHAT IT READS (by the numbers of WHAT IT READS in cai_python.h, which has the order of all)
    2. DLPack's exchange of a type in C, __dlpack_c_exchange_api__. The pending work is in the producer's
       current stream, which DLPack gives for a launch. End the exchange before you return. An array that you
       keep needs cai_migrate (cai_place.h) before that.
    5. __dlpack__, after __dlpack_device__. The producer makes options.stream wait. The struct from before
       DLPack 1.0 has no read-only mark, so its arrays are read-only, as with NumPy.
    A tensor that the producer marks as a copy is read-only (2 and 5), because writes to the copy would be
    lost. Without CAI_PYTHON_HOST arrays in plain host memory are refused.

ORDER
    Arrays of 2 and 5 have CAI_NO_BACK_EDGE, because their owner does not wait for your stream before it
    frees. cai_exchange_finish and cai_python_release_after keep them until your stream has passed.
    cai_python_release does not wait.

OWNERSHIP
    An imported array owns the tensor, and no reference to the object. The deleter of the producer runs as a
    reference is dropped (OWNERSHIP in cai_python.h): with the GIL, in the interpreter of the import.

THREADS
    Those of cai_python.h. Ordered exports of arrays that are not in plain host memory release the GIL while
    they call CUDA.
*/

#if defined(CAI_NAMESPACE)
#define cai_python_dlpack CAI_PRIV_RENAMED(cai_python_dlpack)
#define cai_python_dlpack_allocate CAI_PRIV_RENAMED(cai_python_dlpack_allocate)
#define cai_python_dlpack_ask CAI_PRIV_RENAMED(cai_python_dlpack_ask)
#define cai_python_dlpack_device CAI_PRIV_RENAMED(cai_python_dlpack_device)
#define cai_python_dlpack_give CAI_PRIV_RENAMED(cai_python_dlpack_give)
#define cai_python_dlpack_init CAI_PRIV_RENAMED(cai_python_dlpack_init)
#define cai_python_dlpack_make CAI_PRIV_RENAMED(cai_python_dlpack_make)
#define cai_python_dlpack_offer CAI_PRIV_RENAMED(cai_python_dlpack_offer)
#define cai_python_dlpack_offer_ordered CAI_PRIV_RENAMED(cai_python_dlpack_offer_ordered)
#define cai_python_dlpack_ordered CAI_PRIV_RENAMED(cai_python_dlpack_ordered)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- >>module */
/** Does the same as cai_python_init, and the imports with `py` read DLPack, too. Returns 0, or -1 with an
 *  exception set. */
CAI_API CAI_MUST_CHECK int cai_python_dlpack_init(cai_python *py);

/* ---------------------------------------------------------------- >>exporting */
/** The request of a consumer to __dlpack__. */
typedef struct cai_python_dlpack_request {
    uint64_t stream;   /* the stream that must wait for the array's pending work; 0: none */
    uint32_t flags;    /* of the export; add CAI_DLPACK_ORDERED when stream waits */
    int32_t versioned; /* 1: the consumer accepts DLManagedTensorVersioned */
    uint64_t consumer; /* the stream that the consumer passed; 0: it passed -1, or there are no streams */
} cai_python_dlpack_request;

/** Reads the arguments of __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) for
 *  `array`. Returns 0, or -1 with an exception set: BufferError for another device, or for a copy. */
CAI_API CAI_MUST_CHECK int cai_python_dlpack_ask(const cai_array *array, PyObject *args, PyObject *kwargs,
                                                 cai_python_dlpack_request *out);

/** Returns the capsule of __dlpack__ for `array`, whose memory is valid as long as `object`. Use this only
 *  for memory that may be freed as soon as the consumer drops the tensor, such as host memory. For all other
 *  memory use cai_python_dlpack_ordered. If request->stream is not 0, first make it wait for the pending work
 *  with cai_stream_order, and set CAI_DLPACK_ORDERED in request->flags. Without the flag, pending work is
 *  refused. On failure returns NULL with an exception set (cai_dlpack_export). */
CAI_API PyObject *cai_python_dlpack(cai_python *py, PyObject *object, const cai_array *array,
                                    const cai_python_dlpack_request *request);

/** Returns a new tuple, the value of __dlpack_device__ for `array`, or NULL (cai_dlpack_device). */
CAI_API PyObject *cai_python_dlpack_device(const cai_array *array);

/* ----------------------------------------------------------------- >>exchange */
/** DLPackExchangeAPIHeader */
typedef CAI_DL_STRUCT cai_dl_exchange_header {
    cai_dl_version version;
    struct cai_dl_exchange_header *prev_api; /* the table of an older version, or NULL */
} cai_dl_exchange_header;

/** DLPackExchangeAPI of DLPack 1.3, the exchange of a type in C. */
typedef CAI_DL_STRUCT cai_dl_exchange {
    cai_dl_exchange_header header;
    int (*managed_tensor_allocator)(cai_dl_tensor *prototype, struct DLManagedTensorVersioned **out,
                                    void *error_ctx,
                                    void (*set_error)(void *error_ctx, const char *kind,
                                                      const char *message));
    int (*managed_tensor_from_py_object_no_sync)(void *object, struct DLManagedTensorVersioned **out);
    int (*managed_tensor_to_py_object_no_sync)(struct DLManagedTensorVersioned *tensor, void **out);
    int (*dltensor_from_py_object_no_sync)(void *object, cai_dl_tensor *out); /* NULL: not offered */
    int (*current_work_stream)(cai_dl_device_type type, int32_t device, void **out);
} cai_dl_exchange;

/** Defines `name`, DLPack's exchange in C for one type, with static storage. Write it at file scope, with no
 *  semicolon, and pass &name to cai_python_dlpack_offer. Its functions call `describe` and `adopt` of the
 *  type's __cai_exchange__. `current` is your function for current_work_stream of DLPack. It stores the
 *  stream on which your library works now, on this thread, for any CUDA device type. NULL is the legacy
 *  default stream. dltensor_from_py_object_no_sync is NULL, as a bare DLTensor has no mark for read-only, and
 *  its strides in elements would have no place. There is no allocator. */
#define CAI_PYTHON_DLPACK_TABLE(name, current)                                                               \
    static int name##_make(struct DLManagedTensorVersioned *tensor, void **out);                             \
    static const cai_dl_exchange name = {{{CAI_DL_MAJOR, CAI_DL_MINOR}, NULL},                               \
                                           cai_python_dlpack_allocate,                                       \
                                           cai_python_dlpack_give,                                           \
                                           name##_make,                                                      \
                                           NULL,                                                             \
                                           current};                                                         \
    static int name##_make(struct DLManagedTensorVersioned *tensor, void **out)                              \
    {                                                                                                        \
        return cai_python_dlpack_make(&name, tensor, out);                                                   \
    }

/** Offers DLPack's exchange in C for a type that has offered its own (cai_python_offer), and for types that
 *  derive from it. In all other types the attribute is refused. Call it before other code gets the first
 *  instance. `py` must exist as long as instances of the type. `table` is of CAI_PYTHON_DLPACK_TABLE. In
 *  each interpreter managed_tensor_to_py_object_no_sync makes the last type that was offered with `table`. No
 *  type is kept alive. Returns 0, or -1 with an exception set.
 *
 *  A consumer of the table sees no pending work. It launches on `current`, and drops the tensor while its
 *  kernel is queued. So an array is given only if no work is pending, or if all of it is in `current`. Others
 *  raise BufferError. Free the memory in the order of the array's stream. An array that has no stream must
 *  stay until the consumer's work has passed. If you cannot promise this, call
 *  cai_python_dlpack_offer_ordered. */
CAI_API CAI_MUST_CHECK int cai_python_dlpack_offer(cai_python *py, PyTypeObject *type,
                                                   const cai_dl_exchange *table);

/** managed_tensor_from_py_object_no_sync of all tables. Stores a tensor for an instance of a type that offers
 *  a table. The tensor owns a reference to the instance, or what `describe` gave away. Its deleter may run on
 *  any thread, and does not wait for the GIL (OWNERSHIP in cai_python.h). Raises BufferError if DLPack cannot
 *  describe the array or its pending work, and if the type has described its arrays anew in another way. Then
 *  some consumers try __dlpack__. Returns 0, or -1 with an exception set. */
CAI_API int cai_python_dlpack_give(void *object, struct DLManagedTensorVersioned **out);

/** managed_tensor_to_py_object_no_sync of `table`. Makes an instance that owns `tensor`, by `adopt`. Its
 *  pending work is in the current stream. Returns 0, or -1 with an exception set. After a failure the tensor
 *  is still the caller's. DLPack says that the tensor is stolen, and nothing about failures. TVM FFI calls
 *  the deleter then. */
CAI_API int cai_python_dlpack_make(const cai_dl_exchange *table,
                                   struct DLManagedTensorVersioned *tensor, void **out);

/** managed_tensor_allocator of all tables, which must not be NULL. Reports that there is none. Returns -1. */
CAI_API int cai_python_dlpack_allocate(cai_dl_tensor *prototype,
                                       struct DLManagedTensorVersioned **out, void *context,
                                       void (*set_error)(void *context, const char *kind,
                                                         const char *message));

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PYTHON_DLPACK_H_INCLUDED */

/* Declarations that need cai_stream.h. It may be included between two inclusions of this header. */
#if defined(CAI_PYTHON_DLPACK_IMPLEMENTED) &&                                                                \
    defined(CAI_PRIV_DLPACK_WITH_STREAM) != defined(CAI_PRIV_PY_WITH_ORDER)
#error "cai_python_dlpack.h: cai_stream.h is to be included before its implementation"
#endif
#if defined(CAI_PRIV_DLPACK_WITH_STREAM) && !defined(CAI_PRIV_PY_WITH_ORDER)
#define CAI_PRIV_PY_WITH_ORDER
#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- >>ordering */
/** Returns the capsule of __dlpack__ in order at both ends (cai_dlpack_export_ordered for the stream of the
 *  request). That stream waits for the pending work of `array`. When the consumer drops the tensor, the
 *  reference to `object` is dropped after the consumer's work. This happens at once if `array` has
 *  CAI_ORDERED_FREE and its stream can wait, else in a later poll or drain of `pool`. So free the memory of
 *  `object` in the order of the array's stream. The deleter neither waits nor uses the consumer's stream. If
 *  it cannot tell when the work ends, the reference is parked in `pool`. When memory is short, call
 *  cai_keepalive_drain. `pool` must outlive the tensor. Keep it in the state of the module, which the type of
 *  `object` keeps. request->flags may have the promises CAI_DLPACK_STREAMS_LIVE and CAI_DLPACK_NO_CAPTURES.
 *  Returns NULL with an exception set on failure. */
CAI_API PyObject *cai_python_dlpack_ordered(cai_python *py, cai_event_pool *pool, PyObject *object,
                                            const cai_array *array, const cai_python_dlpack_request *request);

/** Does the same as cai_python_dlpack_offer, in order at both ends for any array whose pending work is known.
 *  When a tensor is made, the current stream waits for the pending work, and the host does not. When the
 *  tensor is dropped, the array is given back after the work in that stream (cai_dlpack_export_ordered).
 *  Unknown pending work raises BufferError, as the host would have to wait. `pool` must outlive the tensors,
 *  and so must the streams that `current` has stored. A consumer that works on another stream than `current`
 *  must order that stream after it, and `current` after its work. */
CAI_API CAI_MUST_CHECK int cai_python_dlpack_offer_ordered(cai_python *py, cai_event_pool *pool,
                                                           PyTypeObject *type,
                                                           const cai_dl_exchange *table);

#ifdef __cplusplus
}
#endif
#endif /* CAI_PRIV_PY_WITH_ORDER */

/* ============================================================ >>implementation
 *   >>tables  >>capsules  >>requests  >>exporting  >>offering */

#if defined(CAI_PYTHON_DLPACK_IMPLEMENTATION) && !defined(CAI_PYTHON_DLPACK_IMPLEMENTED)
#define CAI_PYTHON_DLPACK_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* this is C that is also C++: it has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL, for that reason */
#endif

/* Returns the flag that makes an exporter's copy read-only, as writes to a copy would be lost. */
static uint32_t cai_priv_py_copied(const struct DLManagedTensorVersioned *managed)
{
    const cai_dl_managed_versioned *seen = (const cai_dl_managed_versioned *)managed;
    const int is_copied = seen->version.major == CAI_DL_MAJOR && (seen->flags & CAI_DL_IS_COPIED) != 0;
    return is_copied ? (uint32_t)CAI_DLPACK_READ_ONLY : 0;
}

/* Takes over an array of cai_dlpack.h. Its deleter will run with the GIL, whoever releases the array. */
static inline void cai_priv_py_take_tensor(cai_array *array, cai_priv_py_owner *owner, PyObject *object)
{
    owner->release = array->release;
    owner->inner = array->owner;
    if (!array->release) { /* no deleter: the object keeps the memory */
        Py_INCREF(object);
        owner->object = object;
    }
    array->release = NULL;
    cai_priv_py_attach(array, owner);
}

/* ------------------------------------------------------------------- >>tables */
/* Returns the table of the supported major version in a type's capsule, or an older one that it links to. */
static const void *cai_priv_py_find_table(PyObject *capsule)
{
    const cai_dl_exchange_header *header;
    const cai_dl_exchange *table;
    if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api")) return NULL;
    header = (const cai_dl_exchange_header *)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    while (header && header->version.major != CAI_DL_MAJOR) header = header->prev_api;
    table = (const cai_dl_exchange *)(const void *)header;
    if (!table || !table->managed_tensor_from_py_object_no_sync || !table->current_work_stream) return NULL;
    return table;
}

/* Stores the exporter's current stream. The pending work is in it. */
static inline int cai_priv_py_current_stream(const cai_dl_exchange *table,
                                             const struct DLManagedTensorVersioned *managed, cai_array *array)
{
    const cai_dl_device device = ((const cai_dl_managed_versioned *)managed)->dl_tensor.device;
    void *stream = NULL;
    if (array->memory != CAI_MEMORY_DEVICE && array->memory != CAI_MEMORY_MANAGED) return 0;
    if (table->current_work_stream((cai_dl_device_type)CAI_DL_CUDA, device.device_id, &stream))
        return cai_priv_py_failed("current_work_stream");
    array->sync = CAI_SYNC_STREAM;
    array->stream = stream ? (uint64_t)(uintptr_t)stream : (uint64_t)CAI_STREAM_LEGACY;
    return 0;
}

CAI_PRIV_COLD int cai_priv_py_refuse_tensor(struct DLManagedTensorVersioned *managed, cai_status status,
                                            const cai_error *err)
{
    const cai_dl_managed_versioned *seen = (const cai_dl_managed_versioned *)managed;
    if (status != CAI_ERR_VERSION && seen->deleter) seen->deleter(managed);
    cai_python_raise(err);
    return -1;
}

/* Imports a tensor of a table. Returns 0, -1 with an exception, or why it is refused. Then nothing is left to
 * release. `err` is memory for an error. */
static inline int cai_priv_py_open_tensor(cai_python *py, uint32_t flags, const cai_dl_exchange *table,
                                          PyObject *object, cai_array *out, cai_error *err)
{
    struct DLManagedTensorVersioned *managed = NULL;
    cai_dlpack_options options = {0, 0, 0};
    cai_status status;
    int how = 0;
    if (table->managed_tensor_from_py_object_no_sync(object, &managed) || !managed)
        return cai_priv_py_failed("managed_tensor_from_py_object_no_sync");
    options.flags = (flags & CAI_LENIENT) | cai_priv_py_copied(managed);
    status = cai_dlpack_import_versioned(managed, options.flags ? &options : NULL, out, err);
    if (status) return cai_priv_py_refuse_tensor(managed, status, err);
    if (out->memory != CAI_MEMORY_HOST)
        how = cai_priv_py_current_stream(table, managed, out);
    else if (!(flags & CAI_PYTHON_HOST)) how = CAI_PRIV_PY_HOST_MEMORY;
    if (how) cai_priv_py_undo(py, out, 1);
    return how;
}

static int cai_priv_py_import_table(cai_python *py, uint32_t flags, const void *table, PyObject *is_neg,
                                    PyObject *object, cai_array *out)
{
    const int levels = cai_priv_py_enter_levels(py);
    cai_priv_py_owner *owner;
    cai_error err;
    int how = -1;
    if (levels < 0) return -1;
    owner = cai_priv_py_owner_new(py, NULL);
    if (owner) how = cai_priv_py_open_tensor(py, flags, (const cai_dl_exchange *)table, object, out, &err);
    if (!how) cai_priv_py_take_tensor(out, owner, object);
    else if (owner) cai_priv_py_free_owner(owner);
    if (!how && is_neg) how = cai_priv_py_refuse_lazy(py, object, is_neg, out);
    cai_priv_py_leave_levels(py, levels);
    return how;
}

/* ----------------------------------------------------------------- >>capsules */
/* Stores the type and number that __dlpack_device__ returns. */
static int cai_priv_py_ask_device(const cai_python *py, PyObject *object, long device[2])
{
    PyObject *method = cai_priv_py_attribute(py, object, CAI_PRIV_PY_DEVICE), *pair = NULL;
    int i;
    device[0] = device[1] = 0;
    if (method) pair = PyObject_CallObject(method, NULL);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the object has __dlpack__, but no __dlpack_device__");
    Py_XDECREF(method);
    if (!pair) return -1;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
        PyErr_SetString(PyExc_TypeError, "__dlpack_device__ returned no tuple (type, id)");
    for (i = 0; i < 2 && !PyErr_Occurred(); ++i) device[i] = PyLong_AsLong(PyTuple_GetItem(pair, i));
    Py_DECREF(pair);
    return PyErr_Occurred() ? -1 : 0;
}

static int cai_priv_py_is_on_host(cai_priv_py_import *in, PyObject *object)
{
    if (!cai_priv_py_ask_device(in->py, object, in->device)) return in->device[0] == CAI_DL_CPU;
    in->device[0] = 0;
    return cai_priv_py_excuse() - 1;
}

static int cai_priv_py_has_streams(long device_type)
{
    return device_type == CAI_DL_CUDA || device_type == CAI_DL_CUDA_MANAGED;
}

/* Makes the keywords of __dlpack__. `stream` is only for devices with streams. Some refuse it elsewhere. */
static PyObject *cai_priv_py_keywords(const cai_priv_py_import *in, long device_type)
{
    PyObject *keywords = PyDict_New(), *value;
    int failed = !keywords;
    value = failed ? NULL : Py_BuildValue("(ii)", (int)CAI_DL_MAJOR, (int)CAI_DL_MINOR);
    failed = !value || PyDict_SetItemString(keywords, "max_version", value);
    Py_XDECREF(value);
    if (!failed && cai_priv_py_has_streams(device_type)) {
        value = PyLong_FromUnsignedLongLong(in->stream);
        failed = !value || PyDict_SetItemString(keywords, "stream", value);
        Py_XDECREF(value);
    }
    if (failed) Py_CLEAR(keywords);
    return keywords;
}

/* Clears a TypeError that is set if it has no text or is about an unknown keyword. Returns 1 if it did. */
static int cai_priv_py_is_keyword_refused(void)
{
    static const char *const words[] = {"max_version", "keyword", "function arguments", "signature"};
    PyObject *type, *value, *trace, *text;
    const char *said;
    int i, refused;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return 0;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    text = PyObject_Str(value);
    said = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    refused = !said || !*said;
    for (i = 0; i < 4 && !refused; ++i) refused = strstr(said, words[i]) != NULL;
    PyErr_Clear();
    Py_XDECREF(text);
    if (!refused) {
        PyErr_Restore(type, value, trace);
        return 0;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return 1;
}

static PyObject *cai_priv_py_call_dlpack(const cai_priv_py_import *in, PyObject *method, long device_type)
{
    PyObject *keywords = cai_priv_py_keywords(in, device_type), *nothing = PyTuple_New(0), *capsule = NULL;
    if (keywords && nothing) capsule = PyObject_Call(method, nothing, keywords);
    if (keywords && nothing && !capsule && cai_priv_py_is_keyword_refused()) {
        /* exporters from before DLPack 1.0 do not accept max_version */
        if (!PyDict_DelItemString(keywords, "max_version"))
            capsule = PyObject_Call(method, nothing, keywords);
    }
    Py_XDECREF(keywords);
    Py_XDECREF(nothing);
    return capsule;
}

/* Imports the tensor of a capsule. If the capsule no longer owns the tensor, it is marked as used. */
static int cai_priv_py_open_capsule(PyObject *capsule, const cai_dlpack_options *options, cai_array *out)
{
    const char *used = "used_dltensor";
    cai_status status;
    cai_error err;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        void *found = PyCapsule_GetPointer(capsule, "dltensor");
        cai_dlpack_options read_only = *options; /* no mark in this struct, and JAX expects it */
        read_only.flags |= (uint32_t)CAI_DLPACK_READ_ONLY;
        status = cai_dlpack_import((struct DLManagedTensor *)found, &read_only, out, &err);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        void *found = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        struct DLManagedTensorVersioned *managed = (struct DLManagedTensorVersioned *)found;
        cai_dlpack_options copied = *options;
        copied.flags |= cai_priv_py_copied(managed);
        used = "used_dltensor_versioned";
        status = cai_dlpack_import_versioned(managed, &copied, out, &err);
    } else {
        PyErr_SetString(PyExc_TypeError, "__dlpack__ returned no capsule with an unused tensor");
        return -1;
    }
    if (!status || status == CAI_ERR_VERSION) (void)PyCapsule_SetName(capsule, used);
    if (status) cai_python_raise(&err);
    return status ? -1 : 0;
}

/* Checks that the tensor is on the device of __dlpack_device__. The order of its work depends on that. */
static int cai_priv_py_check_device(cai_array *array, const long device[2])
{
    const int32_t memory = device[0] == CAI_DL_CPU      ? CAI_MEMORY_HOST
                           : device[0] == CAI_DL_CUDA_HOST ? CAI_MEMORY_PINNED
                           : device[0] == CAI_DL_CUDA   ? CAI_MEMORY_DEVICE
                                                                : CAI_MEMORY_MANAGED;
    if (array->memory == memory && (memory != CAI_MEMORY_DEVICE || array->device == device[1])) return 0;
    cai_array_release(array);
    PyErr_Format(PyExc_BufferError, "__dlpack_device__ returned (%ld, %ld), but the tensor is elsewhere",
                 device[0], device[1]);
    return -1;
}

static int cai_priv_py_import_tensor(cai_priv_py_import *in, PyObject *object, PyObject *method,
                                     cai_array *out)
{
    cai_dlpack_options options;
    cai_priv_py_owner *owner;
    cai_priv_py_exception kept;
    PyObject *capsule;
    long *const device = in->device;
    int failed;
    memset(&options, 0, sizeof options);
    options.flags = in->flags & CAI_LENIENT;
    if (!device[0] && cai_priv_py_ask_device(in->py, object, device)) return -1;
    if (device[0] == CAI_DL_CPU && !(in->flags & CAI_PYTHON_HOST))
        return cai_priv_py_refuse(in, CAI_PRIV_PY_HOST_MEMORY);
    if (device[0] != CAI_DL_CPU && device[0] != CAI_DL_CUDA_HOST &&
        !cai_priv_py_has_streams(device[0]))
        return cai_priv_py_refuse(in, CAI_PRIV_PY_OTHER_DEVICE);
    if (cai_priv_py_has_streams(device[0])) {
        options.sync = CAI_SYNC_STREAM;
        options.stream = in->stream;
    }
    owner = cai_priv_py_owner_new(in->py, NULL);
    capsule = owner ? cai_priv_py_call_dlpack(in, method, device[0]) : NULL;
    failed = !capsule || cai_priv_py_open_capsule(capsule, &options, out) ||
             cai_priv_py_check_device(out, device);
    if (!failed) cai_priv_py_take_tensor(out, owner, object);
    else if (owner) cai_priv_py_free_owner(owner);
    cai_priv_py_keep(&kept); /* a capsule that is not used runs its deleter */
    Py_XDECREF(capsule);
    cai_priv_py_put_back(&kept);
    return failed ? -1 : 0;
}

CAI_API int cai_python_dlpack_init(cai_python *py)
{
    static const struct cai_python_reader reader = {cai_priv_py_find_table, cai_priv_py_import_table,
                                                    cai_priv_py_import_tensor, cai_priv_py_is_on_host};
    const int failed = cai_python_init(py);
    if (!failed) py->dlpack = &reader;
    return failed;
}

/* ----------------------------------------------------------------- >>requests */
CAI_API PyObject *cai_python_dlpack_device(const cai_array *array)
{
    cai_dl_device device;
    cai_error err;
    if (cai_dlpack_device(array, &device, &err)) return cai_python_raise(&err);
    return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

/* Reads `stream` of __dlpack__, and finds out whether it must wait. */
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
    if (!failed && cai_decode_stream_dlpack(reader.tokens, &sync, &out->stream, &err)) {
        cai_python_raise(&err);
        failed = 1;
    }
    cai_priv_py_close(&reader);
    if (failed) return -1;
    out->consumer = out->stream;
    there = array->sync == CAI_SYNC_STREAM && array->stream == out->stream &&
            out->stream != CAI_STREAM_PER_THREAD; /* each thread has its own */
    if (sync == CAI_SYNC_NONE || there) {
        out->flags |= (uint32_t)CAI_DLPACK_ORDERED; /* the consumer orders, or works on this stream */
        out->stream = 0;
    }
    if (array->sync == CAI_SYNC_NONE) out->stream = 0;
    if (of_device || sync == CAI_SYNC_NONE) return 0;
    PyErr_SetString(PyExc_ValueError, "__dlpack__: stream must be None, the array is not in device memory");
    return -1;
}

/* Reads `dl_device` and `copy`. This header neither moves nor copies, and refuses such requests. */
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
        PyErr_Format(PyExc_BufferError, "__dlpack__: dl_device=%R, but the array is on %R", device, own);
    Py_XDECREF(own);
    return same > 0 ? 0 : -1;
}

/* Reads `max_version`. Stores whether the consumer accepts the struct of DLPack 1. */
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
    *versioned = major >= CAI_DL_MAJOR;
    return 0;
}

/* Stores the arguments that were given: stream, max_version, dl_device, copy. */
CAI_PRIV_NOINLINE int cai_priv_py_ask_arguments(PyObject *args, PyObject *kwargs, PyObject *given[4])
{
    char stream_name[] = "stream", version_name[] = "max_version", device_name[] = "dl_device",
         copy_name[] = "copy";
    char *names[5]; /* Python's function wants them mutable */
    names[0] = stream_name;
    names[1] = version_name;
    names[2] = device_name;
    names[3] = copy_name;
    names[4] = NULL;
    return PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &given[0], &given[1],
                                       &given[2], &given[3]) ? 0 : -1;
}

CAI_API int cai_python_dlpack_ask(const cai_array *array, PyObject *args, PyObject *kwargs,
                                  cai_python_dlpack_request *out)
{
    PyObject *given[4] = {Py_None, Py_None, Py_None, Py_None};
    memset(out, 0, sizeof *out);
    if ((kwargs || PyTuple_Size(args)) && cai_priv_py_ask_arguments(args, kwargs, given)) return -1;
    if (cai_priv_py_ask_version(given[1], &out->versioned)) return -1;
    if (cai_priv_py_ask_place(array, given[2], given[3])) return -1;
    return cai_priv_py_ask_stream(array, given[0], out);
}

/* ---------------------------------------------------------------- >>exporting */
static const char cai_priv_py_plain_name[] = "dltensor";
static const char cai_priv_py_versioned_name[] = "dltensor_versioned";

/* Returns which of our names a capsule has, or NULL if it was used. Most have the name at our own address. */
static const char *cai_priv_py_name_of(PyObject *capsule)
{
    const char *const name = PyCapsule_GetName(capsule);
    if (name == cai_priv_py_plain_name) return name;
    if (name == cai_priv_py_versioned_name) return name;
    if (PyCapsule_IsValid(capsule, cai_priv_py_versioned_name)) return cai_priv_py_versioned_name;
    return PyCapsule_IsValid(capsule, cai_priv_py_plain_name) ? cai_priv_py_plain_name : NULL;
}

/* The destructor of a capsule. Calls the deleter if the capsule was not used. */
static void cai_priv_py_drop_capsule(PyObject *capsule)
{
    const char *const name = cai_priv_py_name_of(capsule);
    void *const found = name ? PyCapsule_GetPointer(capsule, name) : NULL;
    if (!found) return;
    if (name == cai_priv_py_plain_name) {
        ((cai_dl_managed *)found)->deleter((struct DLManagedTensor *)found);
        return;
    }
    ((cai_dl_managed_versioned *)found)->deleter((struct DLManagedTensorVersioned *)found);
}

/* A tensor of an object's memory, behind its owner in one block. */
typedef struct cai_priv_py_lent {
    union {
        cai_dl_managed plain;
        cai_dl_managed_versioned versioned;
    } tensor;
    int64_t shape_and_strides[2 * CAI_MAX_NDIM]; /* there as far as they are used */
} cai_priv_py_lent;

static void cai_priv_py_delete(struct DLManagedTensor *self)
{
    if (self) cai_priv_py_give_back((cai_priv_py_owner *)((cai_dl_managed *)self)->manager_ctx);
}

static void cai_priv_py_delete_versioned(struct DLManagedTensorVersioned *self)
{
    if (self) cai_priv_py_give_back((cai_priv_py_owner *)((cai_dl_managed_versioned *)self)->manager_ctx);
}

static cai_status cai_priv_py_fill_versioned(cai_priv_py_lent *lent, const cai_array *array, uint32_t flags,
                                             cai_priv_py_owner *owner, cai_error *err)
{
    cai_dl_managed_versioned *const made = &lent->tensor.versioned;
    const uint32_t writable = array->flags & CAI_WRITABLE ? 0u : (uint32_t)CAI_DL_READ_ONLY;
    const uint32_t copied = flags & (uint32_t)CAI_DLPACK_COPIED ? (uint32_t)CAI_DL_IS_COPIED : 0u;
    const uint32_t padded = cai_dlpack_is_padded(&array->dtype) ? (uint32_t)CAI_DL_IS_PADDED : 0u;
    const uint32_t rest =
        (flags & ~(uint32_t)CAI_DLPACK_COPIED) | (uint32_t)(CAI_DLPACK_DROP_READ_ONLY | CAI_DLPACK_PADDED);
    made->version.major = CAI_DL_MAJOR;
    made->version.minor = CAI_DL_MINOR;
    made->manager_ctx = owner;
    made->deleter = cai_priv_py_delete_versioned;
    made->flags = writable | copied | padded; /* said here, not dropped */
    return cai_dlpack_lend(array, rest, lent->shape_and_strides, &made->dl_tensor, err);
}

static cai_status cai_priv_py_fill(cai_priv_py_lent *lent, const cai_array *array,
                                   const cai_python_dlpack_request *request, cai_priv_py_owner *owner,
                                   cai_error *err)
{
    cai_dl_managed *const made = &lent->tensor.plain;
    if (request->versioned) return cai_priv_py_fill_versioned(lent, array, request->flags, owner, err);
    made->manager_ctx = owner;
    made->deleter = cai_priv_py_delete;
    return cai_dlpack_lend(array, request->flags, lent->shape_and_strides, &made->dl_tensor, err);
}

static cai_priv_py_lent *cai_priv_py_lent_of(cai_priv_py_owner *owner)
{
    return (cai_priv_py_lent *)(void *)((char *)owner + offsetof(cai_priv_py_owner, mask));
}

/* Makes an owner with a tensor, whose deleter gives the owner back. NULL: an exception is set. */
static cai_priv_py_owner *cai_priv_py_lend(cai_python *py, PyObject *object, const cai_array *array,
                                           const cai_python_dlpack_request *request)
{
    const int is_wrong = array->ndim < 0 || array->ndim > CAI_MAX_NDIM; /* that will be said */
    const size_t extents = is_wrong ? 0 : 2 * sizeof(int64_t) * (size_t)array->ndim;
    cai_priv_py_owner *owner =
        cai_priv_py_owner_with(py, object, offsetof(cai_priv_py_lent, shape_and_strides) + extents);
    cai_error err;
    if (!owner) return NULL;
    owner->at_once = 1;
    if (cai_priv_py_fill(cai_priv_py_lent_of(owner), array, request, owner, &err)) {
        cai_priv_py_forget(owner);
        (void)cai_python_raise(&err);
        return NULL;
    }
    (void)cai_priv_py_count(py->home, 1);
    return owner;
}

CAI_API PyObject *cai_python_dlpack(cai_python *py, PyObject *object, const cai_array *array,
                                    const cai_python_dlpack_request *request)
{
    const char *name = cai_priv_py_plain_name;
    cai_priv_py_owner *owner;
    PyObject *capsule;
    cai_python_drain(py);
    owner = cai_priv_py_lend(py, object, array, request);
    if (!owner) return NULL;
    if (request->versioned) name = cai_priv_py_versioned_name;
    capsule = PyCapsule_New(&cai_priv_py_lent_of(owner)->tensor, name, cai_priv_py_drop_capsule);
    if (!capsule) cai_priv_py_drop(owner);
    return capsule;
}

/* How a tensor is exported. */
typedef struct cai_priv_py_export {
    const cai_python_dlpack_request *request;
    void *pool; /* of an export in order, or NULL */
    void *memory;
    int32_t versioned;
} cai_priv_py_export;

static void cai_priv_py_free_storage(cai_dlpack_storage *storage)
{
    free(storage);
}

static cai_dlpack_storage *cai_priv_py_make_storage(cai_priv_py_export *of)
{
    size_t size = sizeof(cai_dlpack_storage);
    cai_dlpack_storage *storage;
#if defined(CAI_PRIV_PY_WITH_ORDER)
    if (of->pool) size = sizeof(cai_dlpack_ordered);
#endif
    of->memory = malloc(size);
    storage = (cai_dlpack_storage *)of->memory;
    if (!storage) {
        PyErr_NoMemory();
        return NULL;
    }
    storage->done = cai_priv_py_free_storage;
    storage->user = NULL;
    return storage;
}

#if defined(CAI_PRIV_PY_WITH_ORDER)
/* Releases the GIL, because CUDA and releases of other code may wait, such as for a host function in
 * Python. */
static cai_status cai_priv_py_move_in_order(const cai_priv_py_export *of, cai_array *array, cai_error *err)
{
    const cai_python_dlpack_request *request = of->request;
    cai_event_pool *pool = (cai_event_pool *)of->pool;
    cai_dlpack_ordered *ordered = (cai_dlpack_ordered *)of->memory;
    const int calls_cuda = array->size && array->memory != CAI_MEMORY_HOST;
    PyThreadState *const thread = calls_cuda ? PyEval_SaveThread() : NULL;
    struct DLManagedTensor *plain;
    cai_status status;
    struct DLManagedTensorVersioned *versioned;
    if (of->versioned)
        status = cai_dlpack_export_ordered_versioned(array, pool, request->consumer, request->flags, ordered,
                                                     &versioned, err);
    else
        status = cai_dlpack_export_ordered(array, pool, request->consumer, request->flags, ordered, &plain,
                                           err);
    if (thread) PyEval_RestoreThread(thread);
    return status;
}
#endif

/* Moves an array into the storage. On failure the caller still owns it. */
static cai_status cai_priv_py_move_out(const cai_priv_py_export *of, cai_array *array, cai_error *err)
{
    const cai_python_dlpack_request *request = of->request;
    cai_dlpack_storage *storage = (cai_dlpack_storage *)of->memory;
    struct DLManagedTensor *plain;
    struct DLManagedTensorVersioned *versioned;
#if defined(CAI_PRIV_PY_WITH_ORDER)
    if (of->pool) return cai_priv_py_move_in_order(of, array, err);
#endif
    if (of->versioned)
        return cai_dlpack_export_versioned(array, request->flags, storage, &versioned, err);
    return cai_dlpack_export(array, request->flags, storage, &plain, err);
}


#if defined(CAI_PRIV_PY_WITH_ORDER)
/* The destructor of a capsule with a storage. If nobody has used it, there is no work to wait for. A graph
 * that was asked to tell its end still names the storage. */
static void cai_priv_py_drop_stored(PyObject *capsule)
{
    const char *const name = cai_priv_py_name_of(capsule);
    void *const found = name ? PyCapsule_GetPointer(capsule, name) : NULL;
    void *storage = NULL;
    if (!found) return;
    if (name == cai_priv_py_plain_name) storage = ((cai_dl_managed *)found)->manager_ctx;
    else storage = ((cai_dl_managed_versioned *)found)->manager_ctx;
    if (!((cai_dlpack_ordered *)storage)->graph) ((cai_dlpack_storage *)storage)->release = NULL;
    cai_priv_py_drop_capsule(capsule);
}

/* Moves an array into a capsule. Makes the capsule first, as no step after the export may fail. */
static PyObject *cai_priv_py_encapsulate(cai_priv_py_export *of, cai_array *array)
{
    cai_dlpack_storage *storage = cai_priv_py_make_storage(of);
    const char *name = cai_priv_py_plain_name;
    PyObject *capsule;
    cai_error err;
    void *managed = storage ? &storage->managed : NULL;
    if (storage && of->versioned) {
        managed = &storage->versioned;
        name = cai_priv_py_versioned_name;
    }
    capsule = managed ? PyCapsule_New(managed, name, NULL) : NULL;
    if (capsule) {
        if (!cai_priv_py_move_out(of, array, &err)) {
            (void)PyCapsule_SetDestructor(capsule, cai_priv_py_drop_stored);
            return capsule;
        }
        Py_DECREF(capsule);
        (void)cai_python_raise(&err);
    }
    free(of->memory);
    return NULL;
}

static PyObject *cai_priv_py_give_tensor(cai_python *py, PyObject *object, const cai_array *array,
                                         cai_priv_py_export *of)
{
    cai_priv_py_owner *owner;
    PyObject *capsule;
    cai_array moving;
    cai_error err;
    cai_python_drain(py);
    if (cai_array_check(array, &err)) return cai_python_raise(&err);
    cai_array_borrow(&moving, array); /* the object stays and owns the event */
    moving.flags |= array->flags & (uint32_t)CAI_ORDERED_FREE; /* and frees as its array does */
    owner = cai_priv_py_owner_new(py, object);
    if (!owner) return NULL;
    owner->at_once = 1;
    cai_priv_py_attach(&moving, owner);
    of->versioned = of->request->versioned;
    capsule = cai_priv_py_encapsulate(of, &moving);
    if (!capsule) cai_priv_py_undo(py, &moving, 1);
    return capsule;
}

CAI_API PyObject *cai_python_dlpack_ordered(cai_python *py, cai_event_pool *pool, PyObject *object,
                                            const cai_array *array, const cai_python_dlpack_request *request)
{
    cai_priv_py_export of = {NULL, NULL, NULL, 0};
    of.request = request;
    of.pool = pool;
    return cai_priv_py_give_tensor(py, object, array, &of);
}
#endif

/* ----------------------------------------------------------------- >>offering */
/* The context of the capsule of a type's table. */
typedef struct cai_priv_py_offered {
    PyObject *weak; /* a weak reference to the type, as an attribute can be copied anywhere */
    cai_python *py;
    void *pool; /* NULL: nothing is ordered */
} cai_priv_py_offered;

static void cai_priv_py_drop_offered(PyObject *capsule)
{
    cai_priv_py_offered *offered = (cai_priv_py_offered *)PyCapsule_GetContext(capsule);
    Py_DECREF(offered->weak);
    PyMem_Free(offered);
}

static PyObject *cai_priv_py_offered_new(cai_priv_py_offered value, const cai_dl_exchange *table)
{
    cai_priv_py_offered *offered = (cai_priv_py_offered *)PyMem_Malloc(sizeof *offered);
    PyObject *capsule;
    if (!offered) return PyErr_NoMemory();
    capsule = PyCapsule_New((void *)(uintptr_t)table, "dlpack_exchange_api", NULL);
    if (capsule && !PyCapsule_SetContext(capsule, offered)) {
        *offered = value;
        Py_INCREF(value.weak);
        (void)PyCapsule_SetDestructor(capsule, cai_priv_py_drop_offered); /* never fails for a capsule */
        return capsule;
    }
    PyMem_Free(offered);
    Py_XDECREF(capsule);
    return NULL;
}

/* The key of a table in the dictionary of an interpreter, as a table is one for all interpreters. */
static PyObject *cai_priv_py_table_key(const cai_dl_exchange *table)
{
    return PyUnicode_FromFormat("cai_python_dlpack:%p", (const void *)table);
}

static int cai_priv_py_offer_table(cai_priv_py_offered offered, PyTypeObject *type,
                                   const cai_dl_exchange *table)
{
    PyObject *const types = PyInterpreterState_GetDict(PyInterpreterState_Get());
    PyObject *const name = offered.py->names[CAI_PRIV_PY_TABLE];
    PyObject *key = cai_priv_py_table_key(table), *capsule = NULL;
    int failed;
    offered.weak = PyWeakref_NewRef((PyObject *)type, NULL);
    if (offered.weak) capsule = cai_priv_py_offered_new(offered, table);
    if (!types) PyErr_SetString(PyExc_RuntimeError, "cai_python_dlpack_offer: no interpreter dictionary");
    failed = !types || !key || !capsule || PyDict_SetItem(types, key, offered.weak);
    if (!failed) failed = PyObject_SetAttr((PyObject *)type, name, capsule);
    Py_XDECREF(capsule);
    Py_XDECREF(offered.weak);
    Py_XDECREF(key);
    return failed ? -1 : 0;
}

CAI_API int cai_python_dlpack_offer(cai_python *py, PyTypeObject *type, const cai_dl_exchange *table)
{
    cai_priv_py_offered offered = {NULL, NULL, NULL};
    offered.py = py;
    return cai_priv_py_offer_table(offered, type, table);
}

#if defined(CAI_PRIV_PY_WITH_ORDER)
CAI_API int cai_python_dlpack_offer_ordered(cai_python *py, cai_event_pool *pool, PyTypeObject *type,
                                            const cai_dl_exchange *table)
{
    cai_priv_py_offered offered = {NULL, NULL, NULL};
    offered.py = py;
    offered.pool = pool;
    return cai_priv_py_offer_table(offered, type, table);
}
#endif

/* Copies the context of a capsule that was made for this type or for a base. Returns 0 if it was not. */
static int cai_priv_py_prove_table(PyObject *capsule, PyObject *type, cai_priv_py_offered *out)
{
    PyObject *maker;
    int proven;
    if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api")) return 0;
    if (PyCapsule_GetDestructor(capsule) != cai_priv_py_drop_offered) return 0; /* of other code */
    *out = *(const cai_priv_py_offered *)PyCapsule_GetContext(capsule);
    if (cai_priv_py_leads_to(out->weak, type)) return out->py->home != NULL;
    maker = PyObject_CallNoArgs(out->weak); /* a base, or None if the type is gone */
    if (!maker) return 0;
    proven = PyType_Check(maker) && PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)maker);
    Py_DECREF(maker);
    return proven && out->py->home != NULL;
}

/* Finds the table of a type, what was offered with it, and the exchange that describes the arrays of the
 * type. Returns NULL with an exception set. */
static const cai_dl_exchange *cai_priv_py_table_of(PyObject *type, cai_priv_py_offered *offered,
                                                   cai_python_type *known)
{
    PyObject *name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
    PyObject *capsule = name ? PyObject_GetAttr(type, name) : NULL;
    const cai_dl_exchange *table = NULL;
    int failed = !capsule;
    memset(known, 0, sizeof *known);
    Py_XDECREF(name);
    if (!failed && cai_priv_py_prove_table(capsule, type, offered)) {
        table = (const cai_dl_exchange *)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        failed = cai_priv_py_know(offered->py, type, known);
    }
    Py_XDECREF(capsule);
    if (failed || PyErr_Occurred()) return NULL;
    if (known->exchange) return table;
    PyErr_SetString(PyExc_BufferError, "__dlpack_c_exchange_api__ is not of this type, or it describes its "
                                       "arrays in another way");
    return NULL;
}

/* Stores the stream of the consumer. Refuses pending work that would not be before the consumer's. */
static int cai_priv_py_ask_current(const cai_dl_exchange *table, const cai_array *array, const void *pool,
                                   cai_python_dlpack_request *out)
{
    void *stream = NULL;
    cai_dl_device device;
    cai_error err;
    memset(out, 0, sizeof *out);
    out->versioned = 1;
    if (cai_dlpack_device(array, &device, &err)) {
        cai_python_raise(&err);
        return -1;
    }
    if (!array->size || array->memory == CAI_MEMORY_HOST) return 0;
    if (table->current_work_stream(device.device_type, device.device_id, &stream))
        return cai_priv_py_failed("current_work_stream");
    out->consumer = stream ? (uint64_t)(uintptr_t)stream : (uint64_t)CAI_STREAM_LEGACY;
    if (array->sync == CAI_SYNC_NONE) return 0;
    out->flags = (uint32_t)CAI_DLPACK_ORDERED;
    if (array->sync == CAI_SYNC_STREAM && array->stream == out->consumer &&
        array->stream != CAI_STREAM_PER_THREAD) /* each thread has its own */
        return 0;
    if (pool && array->sync != CAI_SYNC_UNKNOWN) return 0;
    PyErr_SetString(PyExc_BufferError, "pending work of the array is not in the current stream");
    return -1;
}

/* Moves an array that was described into a tensor. On failure the caller still owns it. */
static void *cai_priv_py_hand_over(const cai_priv_py_offered *offered, PyObject *object,
                                   const cai_python_dlpack_request *request, cai_array *array)
{
    cai_priv_py_export of = {NULL, NULL, NULL, 1};
    cai_dlpack_storage *storage;
    cai_priv_py_owner *owner;
    cai_error err;
    of.request = request;
    of.pool = offered->pool;
    if (!array->release && !of.pool) {
        owner = cai_priv_py_lend(offered->py, object, array, request);
        return owner ? &cai_priv_py_lent_of(owner)->tensor.versioned : NULL;
    }
    if (!array->release) {
        owner = cai_priv_py_owner_new(offered->py, object);
        if (!owner) return NULL;
        owner->at_once = 1;
        cai_priv_py_attach(array, owner);
    }
    storage = cai_priv_py_make_storage(&of);
    if (!storage) return NULL;
    if (!cai_priv_py_move_out(&of, array, &err)) return &storage->versioned;
    free(of.memory);
    cai_python_raise(&err);
    return NULL;
}

CAI_API int cai_python_dlpack_give(void *object, struct DLManagedTensorVersioned **out)
{
    PyObject *const self = (PyObject *)object;
    cai_priv_py_offered offered;
    cai_python_dlpack_request request;
    cai_python_type known;
    cai_array array;
    cai_error err;
    const cai_dl_exchange *table = cai_priv_py_table_of((PyObject *)Py_TYPE(self), &offered, &known);
    *out = NULL;
    if (!table) return -1;
    cai_python_drain(offered.py);
    if (known.exchange->describe(self, &array)) return cai_priv_py_failed("describe");
    if (cai_array_check(&array, &err)) cai_python_raise(&err);
    else if (!cai_priv_py_ask_current(table, &array, offered.pool, &request))
        *out = (struct DLManagedTensorVersioned *)cai_priv_py_hand_over(&offered, self, &request, &array);
    if (*out) return 0;
    cai_priv_py_undo(offered.py, &array, 1);
    return -1;
}

/* Returns a new reference to the type that a table makes in this interpreter. NULL: an exception is set. */
static PyObject *cai_priv_py_made_type(const cai_dl_exchange *table)
{
    PyObject *const types = PyInterpreterState_GetDict(PyInterpreterState_Get());
    PyObject *key = cai_priv_py_table_key(table), *weak = NULL, *type = NULL;
    if (key && types) weak = PyObject_GetItem(types, key);
    if (weak) type = PyObject_CallNoArgs(weak); /* None if the type is gone */
    Py_XDECREF(weak);
    Py_XDECREF(key);
    if (type && PyType_Check(type)) return type;
    Py_XDECREF(type);
    if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_KeyError))
        PyErr_SetString(PyExc_RuntimeError, "no type with this __dlpack_c_exchange_api__ is alive");
    return NULL;
}

/* Makes the array of a tensor, with its pending work, and stores the owner. On failure the tensor is as it
 * was. */
static cai_priv_py_owner *cai_priv_py_accept(cai_python *py, const cai_dl_exchange *table,
                                             struct DLManagedTensorVersioned *tensor, cai_array *out)
{
    cai_priv_py_owner *owner;
    cai_error err;
    if (((cai_dl_managed_versioned *)tensor)->version.major != CAI_DL_MAJOR) {
        /* the import would call the deleter */
        PyErr_SetString(PyExc_BufferError, "the tensor is of another major version of DLPack");
        return NULL;
    }
    owner = cai_priv_py_owner_new(py, NULL);
    if (!owner) return NULL;
    if (cai_dlpack_import_versioned(tensor, NULL, out, &err)) cai_python_raise(&err);
    else if (!cai_priv_py_current_stream(table, tensor, out)) {
        cai_priv_py_take_tensor(out, owner, Py_None);
        return owner;
    }
    cai_priv_py_free_owner(owner);
    return NULL;
}

CAI_API int cai_python_dlpack_make(const cai_dl_exchange *table,
                                   struct DLManagedTensorVersioned *tensor, void **out)
{
    PyObject *type = cai_priv_py_made_type(table), *made = NULL;
    cai_priv_py_owner *owner = NULL;
    cai_priv_py_offered offered;
    cai_python_type known;
    cai_array array;
    if (type && cai_priv_py_table_of(type, &offered, &known))
        owner = cai_priv_py_accept(offered.py, table, tensor, &array);
    if (owner) {
        made = cai_python_adopt(offered.py, (PyTypeObject *)type, &array);
        if (!made) {
            owner->release = NULL; /* the tensor is the caller's again */
            cai_priv_py_undo(offered.py, &array, 1);
        }
    }
    Py_XDECREF(type);
    *out = made;
    return made ? 0 : -1;
}

CAI_API int cai_python_dlpack_allocate(cai_dl_tensor *prototype,
                                       struct DLManagedTensorVersioned **out, void *context,
                                       void (*set_error)(void *context, const char *kind,
                                                         const char *message))
{
    (void)prototype;
    *out = NULL;
    set_error(context, "NotImplementedError", "the type of this __dlpack_c_exchange_api__ has no allocator");
    return -1;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PYTHON_DLPACK_IMPLEMENTATION */

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
