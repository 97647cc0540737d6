/* exchange.c - types that offer the exchange in C, rightly and wrongly, and an importer of their arrays
 * SPDX-License-Identifier: MIT
 *
 * check_exchange.py builds it and asks it; with EXCHANGE_DLPACK it has cai_python_dlpack.h, too. A `held` is a
 * capsule with imported arrays. */

#if !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#define CAI_STATIC
#define CAI_IMPLEMENTATION
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(EXCHANGE_DLPACK)
#include <dlpack/dlpack.h>

#include "cai_python_dlpack.h"
#define EXCHANGE_INIT cai_python_dlpack_init
#else
#include "cai_python.h"
#define EXCHANGE_INIT cai_python_init
#endif

#include <pthread.h>
#include <stdlib.h>
#include <structmember.h>
#include <time.h>

/* What describe does with an array. */
#define EXCHANGE_MODES(X)                                                                                    \
    X(BORROWED) X(OWNED) X(RAISES) X(SILENT) X(OTHER_ABI) X(LATER_BIT) X(SHORT_ARRAY) X(LONG_ARRAY)          \
    X(MANY_AXES) X(MANY_FIELDS) X(NEGATIVE_AXES) X(BORROWED_EVENT)

enum {
#define EXCHANGE_ENUMERATOR(name) EXCHANGE_##name,
    EXCHANGE_MODES(EXCHANGE_ENUMERATOR)
#undef EXCHANGE_ENUMERATOR
    EXCHANGE_FIELDS = 2,
    EXCHANGE_OLD_ABI = 0x43414930 /* of version 0.1 */
};

/* All that was released, described and adopted so far, by all types. */
static long exchange_released, exchange_described, exchange_adopted;

/* Instances that ended, and the interpreter in which the last one did. */
static long exchange_ended;
static long long exchange_ended_in = -1;

typedef struct exchange_state {
    cai_python py;
} exchange_state;

static cai_python *exchange_of(PyObject *module)
{
    return &((exchange_state *)PyModule_GetState(module))->py;
}

/* ----------------------------------------------------------------------------- the maker */

/* An instance: an array with all that an array can have. */
typedef struct maker {
    PyObject_HEAD
    cai_array array, mask;
    cai_field fields[EXCHANGE_FIELDS];
    int mode;
    long described; /* how often */
    PyObject *error; /* what RAISES raises */
} maker;

static void maker_count(long *counter)
{
    (void)__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Of what RAISES leaves in `out`: nobody may call it. */
static void maker_must_not(cai_array *array)
{
    (void)array;
    abort();
}

/* The owner knows that it is one, and that once. */
static void maker_release(cai_array *array)
{
    long *const owner = (long *)array->owner;
    if (*owner != 4711) abort();
    *owner = 0;
    free(owner);
    array->release = NULL;
    maker_count(&exchange_released);
}

static int maker_own(cai_array *array)
{
    long *owner = (long *)malloc(sizeof *owner);
    if (!owner) {
        PyErr_NoMemory();
        return -1;
    }
    *owner = 4711;
    cai_array_own(array, maker_release, owner);
    return 0;
}

/* As little as is to be copied: what is behind it is not to be looked at. */
static void maker_copy(cai_array *to, const cai_array *from)
{
    memset(to, 0xAA, sizeof *to);
    cai_array_borrow(to, from);
    to->flags = from->flags; /* CAI_OWN_EVENT, too: a fault that readers must see */
}

static void maker_spoil(int mode, cai_array *out)
{
    switch (mode) {
    case EXCHANGE_OTHER_ABI: out->abi = EXCHANGE_OLD_ABI; break;
    case EXCHANGE_LATER_BIT: out->must_understand = 1; break;
    case EXCHANGE_SHORT_ARRAY: --out->struct_size; break;
    case EXCHANGE_LONG_ARRAY: out->struct_size += 8; break;
    case EXCHANGE_MANY_AXES: out->ndim = CAI_MAX_NDIM + 1; break;
    case EXCHANGE_NEGATIVE_AXES: out->ndim = -1; break;
    case EXCHANGE_BORROWED_EVENT: out->flags |= (uint32_t)(CAI_OWN_EVENT | CAI_ORDERED_FREE); break;
    case EXCHANGE_MANY_FIELDS: out->field_count = CAI_MAX_FIELDS + 1; break;
    default: break;
    }
}

static int maker_describe(PyObject *object, cai_array *out)
{
    maker *self = (maker *)object;
    ++self->described;
    maker_count(&exchange_described);
    maker_copy(out, &self->array);
    if (self->mode == EXCHANGE_RAISES || self->mode == EXCHANGE_SILENT) {
        cai_array_own(out, maker_must_not, NULL);
        if (self->mode == EXCHANGE_RAISES) PyErr_SetObject((PyObject *)Py_TYPE(self->error), self->error);
        return -1;
    }
    maker_spoil(self->mode, out);
    return self->mode == EXCHANGE_BORROWED || self->mode == EXCHANGE_BORROWED_EVENT ? 0 : maker_own(out);
}

static PyObject *maker_adopt(PyTypeObject *type, cai_array *array)
{
    PyObject *made = NULL;
    cai_error err;
    if (cai_array_check(array, &err)) PyErr_SetString(PyExc_BufferError, err.message);
    else if (!array->release) PyErr_SetString(PyExc_BufferError, "the array is borrowed");
    else if (array->mask) PyErr_SetString(PyExc_BufferError, "the array has a mask");
    else made = PyType_GenericAlloc(type, 0);
    if (!made) return NULL;
    cai_array_move(&((maker *)made)->array, array);
    maker_count(&exchange_adopted);
    return made;
}

/* It keeps the array, and leaves the caller's as if it were still the caller's. */
static PyObject *maker_adopt_sloppily(PyTypeObject *type, cai_array *array)
{
    const cai_array before = *array;
    PyObject *made = maker_adopt(type, array);
    array->release = before.release;
    return made;
}

static int maker_int64s(PyObject *tuple, int64_t *out, int32_t *count)
{
    const Py_ssize_t length = PyTuple_Size(tuple);
    Py_ssize_t i;
    if (length < 0) return -1;
    for (i = 0; i < length && i < CAI_MAX_NDIM; ++i) out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    *count = (int32_t)length;
    return PyErr_Occurred() ? -1 : 0;
}

/* typestr, shape, strides, address to an array. */
static int maker_build(maker *self, const char *typestr, PyObject *shape, PyObject *strides,
                       unsigned long long address)
{
    int64_t extents[CAI_MAX_NDIM], steps[CAI_MAX_NDIM];
    int32_t ndim, count = 0;
    cai_dtype dtype;
    cai_error err;
    cai_status status;
    if (maker_int64s(shape, extents, &ndim)) return -1;
    if (strides != Py_None && maker_int64s(strides, steps, &count)) return -1;
    if (strides != Py_None && count != ndim) {
        PyErr_SetString(PyExc_ValueError, "as many strides as extents");
        return -1;
    }
    status = cai_dtype_parse(typestr, (int64_t)strlen(typestr), 0, &dtype, &err);
    if (!status)
        status = cai_array_init_dtype(&self->array, &dtype, ndim, extents, strides == Py_None ? NULL : steps,
                                      (uint64_t)address, &err);
    if (status) cai_python_raise(&err);
    return status ? -1 : 0;
}

/* Two rows of one byte each, "a" and "b". */
static void maker_add_fields(maker *self)
{
    static const char names[2] = {'a', 'b'};
    cai_error err;
    int i;
    memset(self->fields, 0, sizeof self->fields);
    for (i = 0; i < EXCHANGE_FIELDS; ++i) {
        self->fields[i].name = &names[i];
        self->fields[i].name_length = 1;
        if (cai_dtype_of(CAI_INT8, &self->fields[i].dtype, &err)) abort();
        self->fields[i].offset = i;
        self->fields[i].nbytes = 1;
        self->fields[i].parent = -1;
    }
    self->array.fields = self->fields;
    self->array.field_count = EXCHANGE_FIELDS;
}

static int maker_set(maker *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"address", "shape",  "typestr", "strides", "read_only",
                                        "memory",  "device", "sync",    "stream",  "event",
                                        "thread",  "mask",   "fields",  "mode",    "error", NULL};
    PyObject *shape, *strides = Py_None, *mask = Py_None, *error = NULL;
    const char *typestr = "<f4";
    unsigned long long address, stream = 0, event = 0, thread = 0;
    int read_only = 0, fields = 0;
    int memory = CAI_MEMORY_UNKNOWN, device = CAI_DEVICE_UNKNOWN, sync = CAI_SYNC_NONE;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KO!|sO$piiiKKKOpiO", (char **)(uintptr_t)names, &address,
                                     &PyTuple_Type, &shape, &typestr, &strides, &read_only, &memory, &device,
                                     &sync, &stream, &event, &thread, &mask, &fields, &self->mode, &error))
        return -1;
    if (maker_build(self, typestr, shape, strides, address)) return -1;
    if (read_only) self->array.flags &= ~(uint32_t)CAI_WRITABLE;
    self->array.memory = memory;
    self->array.device = device;
    self->array.sync = sync;
    self->array.stream = stream;
    self->array.event = event;
    self->array.thread = thread;
    if (fields) maker_add_fields(self);
    if (mask != Py_None) maker_copy(&self->mask, &((maker *)mask)->array); /* of a type of this module */
    if (mask != Py_None) self->array.mask = &self->mask;
    Py_XINCREF(error);
    self->error = error;
    return 0;
}

static PyObject *maker_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *made = PyType_GenericAlloc(type, 0); /* zeros */
    if (made && maker_set((maker *)made, args, kwargs)) Py_CLEAR(made);
    return made;
}

static void maker_end(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    maker *self = (maker *)object;
    freefunc give_back;
    void *const slot = PyType_GetSlot(type, Py_tp_free);
    memcpy(&give_back, &slot, sizeof give_back);
    maker_count(&exchange_ended);
    exchange_ended_in = (long long)PyInterpreterState_GetID(PyInterpreterState_Get());
    cai_array_release(&self->array); /* of an adopted one */
    Py_XDECREF(self->error);
    give_back(object);
    Py_DECREF(type);
}

/* ------------------------------------------------------------------------------- the types */

typedef struct exchange_later { /* of a version to come */
    cai_python_exchange known;
    void (*members[4])(void);
} exchange_later;

static const uint32_t maker_size = (uint32_t)sizeof(cai_python_exchange);

static const cai_python_exchange exchange_plain = {CAI_ABI, (uint32_t)sizeof(cai_python_exchange),
                                                   maker_describe, maker_adopt};
static const cai_python_exchange exchange_sloppy = {CAI_ABI, (uint32_t)sizeof(cai_python_exchange),
                                                    maker_describe, maker_adopt_sloppily};
static const cai_python_exchange exchange_no_adopt = {CAI_ABI, (uint32_t)sizeof(cai_python_exchange),
                                                      maker_describe, NULL};
static const cai_python_exchange exchange_other_abi = {
    EXCHANGE_OLD_ABI, (uint32_t)sizeof(cai_python_exchange), maker_describe, maker_adopt};
static const cai_python_exchange exchange_short = {CAI_ABI, (uint32_t)sizeof(cai_python_exchange) - 1,
                                                   maker_describe, maker_adopt};
static const cai_python_exchange exchange_header = {CAI_ABI, 8, maker_describe, maker_adopt};
static const cai_python_exchange exchange_no_describe = {CAI_ABI, (uint32_t)sizeof(cai_python_exchange), NULL,
                                                         maker_adopt};
static const exchange_later exchange_long = {
    {CAI_ABI, (uint32_t)sizeof(exchange_later), maker_describe, maker_adopt}, {NULL, NULL, NULL, NULL}};

#if defined(EXCHANGE_DLPACK)
static int table_from_object(void *object, DLManagedTensorVersioned **out)
{
    (void)object;
    (void)out;
    abort(); /* the other exchange comes first */
}

static int table_to_object(DLManagedTensorVersioned *tensor, void **out)
{
    (void)tensor;
    (void)out;
    abort();
}

static int table_stream(DLDeviceType type, int32_t device, void **out)
{
    (void)type;
    (void)device;
    (void)out;
    abort();
}

static const DLPackExchangeAPI exchange_table = {
    {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL}, NULL, table_from_object, table_to_object, NULL,
    table_stream};

/* offer_table(type): DLPack's exchange, whose functions end the process */
static PyObject *exchange_offer_table(PyObject *module, PyObject *type)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&exchange_table, "dlpack_exchange_api", NULL);
    const int failed = !capsule || PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", capsule);
    (void)module;
    Py_XDECREF(capsule);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
#endif

/* The exchange of a kind, and the name of its capsule; NULL for a kind without one. */
static const cai_python_exchange *exchange_by_kind(const char *kind, const char **name)
{
    *name = CAI_PYTHON_EXCHANGE;
    if (!strcmp(kind, "no adopt")) return &exchange_no_adopt;
    if (!strcmp(kind, "other abi")) return &exchange_other_abi;
    if (!strcmp(kind, "short")) return &exchange_short;
    if (!strcmp(kind, "no describe")) return &exchange_no_describe;
    if (!strcmp(kind, "header")) return &exchange_header;
    if (!strcmp(kind, "long")) return &exchange_long.known;
    if (!strcmp(kind, "none")) return NULL;
    if (!strcmp(kind, "other name")) *name = "__cai_exchange_v9__";
    if (!strcmp(kind, "no name")) *name = NULL;
    if (!strcmp(kind, "no context")) return &exchange_no_adopt;
    if (!strcmp(kind, "sloppy")) return &exchange_sloppy;
    return &exchange_plain;
}

static int exchange_offer(PyObject *type, const char *kind)
{
    const char *name;
    const cai_python_exchange *exchange = exchange_by_kind(kind, &name);
    PyObject *capsule;
    int failed;
    if (!exchange) return 0;
    if (name && !strcmp(name, CAI_PYTHON_EXCHANGE) && strcmp(kind, "no context"))
        return cai_python_offer((PyTypeObject *)type, exchange);
    capsule = PyCapsule_New((void *)(uintptr_t)exchange, name, NULL);
    failed = !capsule || PyObject_SetAttrString(type, CAI_PYTHON_EXCHANGE, capsule);
    Py_XDECREF(capsule);
    return failed ? -1 : 0;
}

/* offer(type, kind) */
static PyObject *exchange_offer_to(PyObject *module, PyObject *args)
{
    PyObject *type;
    const char *kind;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!s", &PyType_Type, &type, &kind)) return NULL;
    if (exchange_offer(type, kind)) return NULL;
    Py_RETURN_NONE;
}

static PyMemberDef maker_members[] = {
    {"mode", T_INT, (Py_ssize_t)offsetof(maker, mode), 0, NULL},
    {"described", T_LONG, (Py_ssize_t)offsetof(maker, described), 1, NULL},
    {"error", T_OBJECT, (Py_ssize_t)offsetof(maker, error), 0, NULL},
    {NULL, 0, 0, 0, NULL}};

/* make_type(kind) -> a new type, which leads to this module */
static PyObject *exchange_make_type(PyObject *module, PyObject *args)
{
    PyObject *(*const create)(PyTypeObject *, PyObject *, PyObject *) = maker_new;
    void (*const end)(PyObject *) = maker_end;
    PyType_Slot slots[4] = {{Py_tp_new, NULL}, {Py_tp_dealloc, NULL}, {Py_tp_members, NULL}, {0, NULL}};
    PyType_Spec spec = {"cai_exchange.maker", (int)sizeof(maker), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, NULL};
    PyObject *type;
    const char *kind;
    if (!PyArg_ParseTuple(args, "s", &kind)) return NULL;
    memcpy(&slots[0].pfunc, &create, sizeof create); /* functions are no objects in ISO C */
    memcpy(&slots[1].pfunc, &end, sizeof end);
    slots[2].pfunc = maker_members;
    spec.slots = slots;
    type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (type && exchange_offer(type, kind)) Py_CLEAR(type);
    return type;
}

/* adopt(type, instance, owned) -> a new instance, by the exchange of the type, as a reader finds it */
static PyObject *exchange_adopt(PyObject *module, PyObject *args)
{
    const cai_python_exchange *exchange = NULL;
    PyObject *type, *instance, *capsule, *made;
    cai_array array;
    int owned;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!Op", &PyType_Type, &type, &instance, &owned)) return NULL;
    capsule = PyObject_GetAttrString(type, CAI_PYTHON_EXCHANGE);
    if (!capsule) return NULL;
    exchange = (const cai_python_exchange *)PyCapsule_GetPointer(capsule, CAI_PYTHON_EXCHANGE);
    Py_DECREF(capsule);
    if (!exchange) return NULL;
    if (exchange->abi != CAI_ABI || exchange->struct_size < maker_size || !exchange->adopt) {
        PyErr_SetString(PyExc_TypeError, "the type does not adopt");
        return NULL;
    }
    maker_copy(&array, &((maker *)instance)->array);
    if (owned && maker_own(&array)) return NULL;
    made = exchange->adopt((PyTypeObject *)type, &array);
    if (made && array.release) PyErr_SetString(PyExc_AssertionError, "adopted, and still the caller's");
    if (!made && owned && array.release != maker_release)
        PyErr_SetString(PyExc_AssertionError, "not adopted, and not the caller's any more");
    else if (!made) cai_array_release(&array);
    if (made && array.release) Py_CLEAR(made);
    return made;
}

/* adopt_by_header(type, instance, owned) -> a new instance, by cai_python_adopt */
static PyObject *exchange_adopt_by_header(PyObject *module, PyObject *args)
{
    PyObject *type, *instance, *made;
    cai_array array;
    int owned;
    if (!PyArg_ParseTuple(args, "O!Op", &PyType_Type, &type, &instance, &owned)) return NULL;
    maker_copy(&array, &((maker *)instance)->array);
    if (owned && maker_own(&array)) return NULL;
    made = cai_python_adopt(exchange_of(module), (PyTypeObject *)type, &array);
    cai_array_release(&array); /* ours still, if it failed */
    return made;
}

/* ---------------------------------------------------------------------------- the importer */

typedef struct exchange_held {
    Py_ssize_t count;
    cai_array *arrays;
} exchange_held;

static void held_free(exchange_held *held)
{
    Py_ssize_t i;
    for (i = 0; held->arrays && i < held->count; ++i) cai_array_release(&held->arrays[i]);
    free(held->arrays);
    free(held);
}

static void held_end(PyObject *capsule)
{
    held_free((exchange_held *)PyCapsule_GetPointer(capsule, "held"));
}

static exchange_held *held_get(PyObject *capsule)
{
    return (exchange_held *)PyCapsule_GetPointer(capsule, "held");
}

static exchange_held *held_new(Py_ssize_t count)
{
    exchange_held *held = (exchange_held *)calloc(1, sizeof *held); /* may go in another interpreter */
    if (held) held->arrays = (cai_array *)calloc((size_t)count + 1, sizeof *held->arrays);
    if (held && held->arrays) return held;
    free(held);
    PyErr_NoMemory();
    return NULL;
}

static int held_import(cai_python *py, exchange_held *held, PyObject *tuple, uint32_t flags)
{
    cai_python_options options = {0, 0, 0, NULL};
    const Py_ssize_t count = PyTuple_Size(tuple);
    PyObject **objects = (PyObject **)PyMem_Calloc((size_t)count + 1, sizeof *objects);
    Py_ssize_t i;
    int failed;
    options.flags = flags;
    for (i = 0; objects && i < count; ++i) objects[i] = PyTuple_GetItem(tuple, i);
    failed = !objects || cai_python_import(py, objects, count, &options, held->arrays);
    if (!objects) PyErr_NoMemory();
    PyMem_Free(objects);
    held->count = failed ? 0 : count; /* what failed is scratch: nobody releases it */
    return failed;
}

/* hold(objects: tuple, flags: int) -> held */
static PyObject *exchange_hold(PyObject *module, PyObject *args)
{
    PyObject *tuple, *capsule;
    exchange_held *held;
    unsigned int flags;
    if (!PyArg_ParseTuple(args, "O!I", &PyTuple_Type, &tuple, &flags)) return NULL;
    held = held_new(PyTuple_Size(tuple));
    if (!held) return NULL;
    capsule = held_import(exchange_of(module), held, tuple, flags) ? NULL
                                                                   : PyCapsule_New(held, "held", held_end);
    if (!capsule) held_free(held);
    return capsule;
}

/* try_(object, flags, name) -> (answer, held or None). name: None, or of the argument */
static PyObject *exchange_try(PyObject *module, PyObject *args)
{
    cai_python_options options = {0, 0, 0, NULL};
    PyObject *object, *capsule;
    exchange_held *held;
    const char *name;
    int answer;
    if (!PyArg_ParseTuple(args, "OIz", &object, &options.flags, &name)) return NULL;
    if (name) options.names = &name;
    held = held_new(1);
    if (!held) return NULL;
    answer = cai_python_try_import(exchange_of(module), object, &options, held->arrays);
    held->count = answer == CAI_PYTHON_TAKEN;
    if (held->count) {
        capsule = PyCapsule_New(held, "held", held_end);
        return Py_BuildValue("iN", answer, capsule);
    }
    held_free(held);
    if (answer == CAI_PYTHON_FAILED) return NULL;
    if (PyErr_Occurred()) return NULL;
    return Py_BuildValue("iO", answer, Py_None);
}

/* import_named(objects: tuple, flags, names: tuple of str or None): imports and releases */
static PyObject *exchange_import_named(PyObject *module, PyObject *args)
{
    cai_python_options options = {0, 0, 0, NULL};
    const char *names[8] = {NULL};
    PyObject *tuple, *labels, *objects[8];
    cai_array out[8];
    Py_ssize_t i, count;
    if (!PyArg_ParseTuple(args, "O!IO!", &PyTuple_Type, &tuple, &options.flags, &PyTuple_Type, &labels))
        return NULL;
    count = PyTuple_Size(tuple);
    if (count > 8 || PyTuple_Size(labels) > 8) return PyErr_NoMemory();
    for (i = 0; i < count; ++i) objects[i] = PyTuple_GetItem(tuple, i);
    for (i = 0; i < PyTuple_Size(labels); ++i) {
        PyObject *label = PyTuple_GetItem(labels, i);
        names[i] = label == Py_None ? NULL : PyUnicode_AsUTF8AndSize(label, NULL);
    }
    if (PyTuple_Size(labels)) options.names = names;
    if (cai_python_import(exchange_of(module), objects, count, &options, out)) return NULL;
    cai_python_release(exchange_of(module), out, count);
    Py_RETURN_NONE;
}

/* release(held): on this thread, and drained */
static PyObject *exchange_release(PyObject *module, PyObject *capsule)
{
    exchange_held *held = held_get(capsule);
    if (!held) return NULL;
    cai_python_release(exchange_of(module), held->arrays, held->count);
    Py_RETURN_NONE;
}

/* Each array is moved, and released where it is then. */
static void *exchange_let_go(void *argument)
{
    const exchange_held *held = (const exchange_held *)argument;
    cai_array moved;
    Py_ssize_t i;
    for (i = 0; i < held->count; ++i) {
        cai_array_move(&moved, &held->arrays[i]);
        if (moved.release) moved.release(&moved); /* as those do that have no cai.h */
        if (moved.release) abort();
    }
    return NULL;
}

/* release_elsewhere(held): by a thread that has never seen Python, while this one waits with the GIL */
static PyObject *exchange_release_elsewhere(PyObject *module, PyObject *capsule)
{
    exchange_held *held = held_get(capsule);
    pthread_t thread;
    (void)module;
    if (!held) return NULL;
    if (pthread_create(&thread, NULL, exchange_let_go, held)) return PyErr_NoMemory();
    (void)pthread_join(thread, NULL);
    Py_RETURN_NONE;
}

/* release_pending(held): while an exception is set, which must stay */
static PyObject *exchange_release_pending(PyObject *module, PyObject *capsule)
{
    exchange_held *held = held_get(capsule);
    if (!held) return NULL;
    PyErr_SetString(PyExc_LookupError, "pending");
    cai_python_release(exchange_of(module), held->arrays, held->count);
    if (!PyErr_ExceptionMatches(PyExc_LookupError))
        PyErr_SetString(PyExc_AssertionError, "the exception that was pending is gone");
    return NULL;
}

/* ------------------------------------------------------- what outlives its module or interpreter */

/* Arrays, and a tensor, that all interpreters of the process have in common. */
static struct {
    exchange_held *held;
#if defined(EXCHANGE_DLPACK)
    DLManagedTensor *tensor;
#endif
} parked;

/* park(objects, flags, closed): imports them; closed: by a state that is cleared at once */
static PyObject *exchange_park(PyObject *module, PyObject *args)
{
    cai_python own, *py = exchange_of(module);
    PyObject *tuple;
    unsigned int flags;
    int closed, failed = 0;
    if (!PyArg_ParseTuple(args, "O!Ip", &PyTuple_Type, &tuple, &flags, &closed)) return NULL;
    parked.held = held_new(PyTuple_Size(tuple));
    if (!parked.held) return NULL;
    if (closed) failed = EXCHANGE_INIT(&own);
    if (closed) py = &own;
    if (!failed) failed = held_import(py, parked.held, tuple, flags);
    if (closed) (void)cai_python_clear(&own);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* unpark(how): "array" by cai_array_release, "python" by cai_python_release, "thread" by a thread of C while
 * this one has the GIL and waits */
static PyObject *exchange_unpark(PyObject *module, PyObject *args)
{
    const char *how;
    pthread_t thread;
    if (!PyArg_ParseTuple(args, "s", &how)) return NULL;
    if (!strcmp(how, "python")) {
        cai_python_release(exchange_of(module), parked.held->arrays, parked.held->count);
    } else if (!strcmp(how, "thread")) {
        if (pthread_create(&thread, NULL, exchange_let_go, parked.held)) return PyErr_NoMemory();
        (void)pthread_join(thread, NULL);
    }
    held_free(parked.held); /* releases what was not released so far */
    parked.held = NULL;
    Py_RETURN_NONE;
}

#if defined(EXCHANGE_DLPACK)
/* park_tensor(instance): exports it by DLPack */
static PyObject *exchange_park_tensor(PyObject *module, PyObject *instance)
{
    cai_python_dlpack_request request;
    PyObject *capsule;
    memset(&request, 0, sizeof request);
    capsule = cai_python_dlpack(exchange_of(module), instance, &((maker *)instance)->array, &request);
    if (!capsule) return NULL;
    parked.tensor = (DLManagedTensor *)PyCapsule_GetPointer(capsule, "dltensor");
    (void)PyCapsule_SetName(capsule, "used_dltensor");
    Py_DECREF(capsule);
    Py_RETURN_NONE;
}

static void *exchange_delete(void *unused)
{
    parked.tensor->deleter(parked.tensor);
    return unused;
}

/* delete_tensor(how): here; or "thread", by a thread of C while this one has the GIL and waits; or "detached",
 * here without the GIL */
static PyObject *exchange_delete_tensor(PyObject *module, PyObject *args)
{
    const char *how;
    pthread_t thread;
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &how)) return NULL;
    if (!strcmp(how, "thread")) {
        if (pthread_create(&thread, NULL, exchange_delete, NULL)) return PyErr_NoMemory();
        (void)pthread_join(thread, NULL);
    } else if (!strcmp(how, "detached")) {
        Py_BEGIN_ALLOW_THREADS
        (void)exchange_delete(NULL);
        Py_END_ALLOW_THREADS
    } else {
        (void)exchange_delete(NULL);
    }
    Py_RETURN_NONE;
}
#endif

/* ended() -> (instances that ended, the interpreter in which the last one did, this interpreter) */
static PyObject *exchange_ends(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("(lLL)", __atomic_load_n(&exchange_ended, __ATOMIC_RELAXED), exchange_ended_in,
                         (long long)PyInterpreterState_GetID(PyInterpreterState_Get()));
}

typedef struct exchange_racer {
    exchange_held *held;
    int begun;
} exchange_racer;

static void *exchange_race_on(void *argument)
{
    exchange_racer *racer = (exchange_racer *)argument;
    __atomic_store_n(&racer->begun, 1, __ATOMIC_RELEASE);
    return exchange_let_go(racer->held);
}

/* race(object, count, spins) -> live at cai_python_clear, while a thread of C releases `count` arrays */
static PyObject *exchange_race(PyObject *module, PyObject *args)
{
    cai_python own;
    exchange_racer racer = {NULL, 0};
    PyObject *object, *tuple;
    Py_ssize_t i, count;
    pthread_t thread;
    int64_t left = -1;
    volatile long spins;
    long wanted;
    (void)module;
    if (!PyArg_ParseTuple(args, "Onl", &object, &count, &wanted)) return NULL;
    tuple = PyTuple_New(count);
    for (i = 0; tuple && i < count; ++i) PyTuple_SetItem(tuple, i, Py_NewRef(object));
    racer.held = tuple ? held_new(count) : NULL;
    if (!racer.held || EXCHANGE_INIT(&own)) return NULL;
    if (held_import(&own, racer.held, tuple, CAI_PYTHON_HOST)) return NULL;
    Py_DECREF(tuple);
    if (pthread_create(&thread, NULL, exchange_race_on, &racer)) return PyErr_NoMemory();
    while (!__atomic_load_n(&racer.begun, __ATOMIC_ACQUIRE)) {}
    for (spins = 0; spins < wanted; ++spins) {}
    left = cai_python_clear(&own);
    memset(&own, 0xa5, sizeof own); /* its memory goes with the module */
    (void)pthread_join(thread, NULL); /* with the GIL: a release waits for nothing */
    held_free(racer.held);
    return PyLong_FromLongLong((long long)left);
}

/* repeat(objects, flags, count) -> ns of one import and release */
static PyObject *exchange_repeat(PyObject *module, PyObject *args)
{
    cai_python *const py = exchange_of(module);
    PyObject *tuple;
    exchange_held *held;
    struct timespec begin, end;
    unsigned int flags;
    double ns;
    long i, count;
    int failed = 0;
    if (!PyArg_ParseTuple(args, "O!Il", &PyTuple_Type, &tuple, &flags, &count)) return NULL;
    held = held_new(PyTuple_Size(tuple));
    if (!held) return NULL;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (i = 0; i < count && !failed; ++i) {
        failed = held_import(py, held, tuple, flags);
        if (!failed) cai_python_release(py, held->arrays, held->count);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    held_free(held);
    if (failed) return NULL;
    ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    return PyFloat_FromDouble(ns / (double)(count * PyTuple_Size(tuple)));
}

/* ---------------------------------------------------------------------------------- facts */

static PyObject *facts_numbers(const int64_t *values, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);
    int32_t i;
    for (i = 0; tuple && i < count; ++i) {
        PyObject *number = PyLong_FromLongLong((long long)values[i]);
        if (!number || PyTuple_SetItem(tuple, i, number)) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *facts_fields(const cai_array *a)
{
    PyObject *list = PyList_New((Py_ssize_t)a->field_count);
    int64_t i;
    for (i = 0; list && i < a->field_count; ++i) {
        const cai_field *f = &a->fields[i];
        PyObject *row = Py_BuildValue("(s#LLi)", f->name, (Py_ssize_t)f->name_length, (long long)f->offset,
                                      (long long)f->nbytes, (int)f->parent);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row)) Py_CLEAR(list);
    }
    return list;
}

/* All that an array says. */
static PyObject *facts_of(const cai_array *a)
{
    char typestr[CAI_TYPESTR_SIZE];
    PyObject *mask = a->mask ? facts_of(a->mask) : Py_NewRef(Py_None);
    if (!mask) return NULL;
    (void)cai_dtype_typestr(&a->dtype, typestr, CAI_TYPESTR_SIZE);
    return Py_BuildValue("{sI sI sN sI si sK si si si si ss si si si si sK sK sK sL sL sL sL sN sN sN sN sN}",
                         "abi", (unsigned)a->abi, "struct_size", (unsigned)a->struct_size, "owned",
                         PyBool_FromLong(a->release != NULL), "flags", (unsigned)a->flags, "version",
                         (int)a->version, "data", (unsigned long long)a->data, "code", (int)a->dtype.code,
                         "itemsize", (int)a->dtype.itemsize, "bits", (int)a->dtype.bits, "alignment",
                         (int)a->dtype.alignment, "typestr", typestr, "device", (int)a->device, "memory",
                         (int)a->memory, "sync", (int)a->sync, "ndim", (int)a->ndim, "stream",
                         (unsigned long long)a->stream, "event", (unsigned long long)a->event, "thread",
                         (unsigned long long)a->thread, "size", (long long)a->size, "nbytes",
                         (long long)a->nbytes, "lo", (long long)a->lo, "hi", (long long)a->hi, "shape",
                         facts_numbers(a->shape, a->ndim), "strides", facts_numbers(a->strides, a->ndim),
                         "has_rows", PyBool_FromLong(a->fields != NULL), "fields", facts_fields(a),
                         "mask", mask);
}

/* facts(held) -> a list of dictionaries */
static PyObject *exchange_facts(PyObject *module, PyObject *capsule)
{
    exchange_held *held = held_get(capsule);
    PyObject *list = held ? PyList_New(held->count) : NULL;
    Py_ssize_t i;
    (void)module;
    for (i = 0; list && i < held->count; ++i) {
        PyObject *facts = facts_of(&held->arrays[i]);
        if (!facts || PyList_SetItem(list, i, facts)) Py_CLEAR(list);
    }
    return list;
}

/* interface(held, version) -> the dictionary of the first of them */
static PyObject *exchange_interface(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    int version;
    exchange_held *held;
    if (!PyArg_ParseTuple(args, "Oi", &capsule, &version)) return NULL;
    held = held_get(capsule);
    return held ? cai_python_interface(exchange_of(module), &held->arrays[0], version, NULL) : NULL;
}

/* counts() -> (described, released, adopted, live) */
static PyObject *exchange_counts(PyObject *module, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(lllL)", __atomic_load_n(&exchange_described, __ATOMIC_RELAXED),
                         __atomic_load_n(&exchange_released, __ATOMIC_RELAXED),
                         __atomic_load_n(&exchange_adopted, __ATOMIC_RELAXED),
                         (long long)exchange_of(module)->home->holders - 1);
}

static PyObject *exchange_drain(PyObject *module, PyObject *unused)
{
    (void)unused;
    cai_python_drain(exchange_of(module));
    Py_RETURN_NONE;
}

/* own_state(objects, flags, outlived): a cai_python from init to clear, before or after which the arrays are
 * released -> (live before, live after) */
static PyObject *exchange_own_state(PyObject *module, PyObject *args)
{
    cai_python py;
    PyObject *tuple;
    exchange_held *held;
    unsigned int flags;
    int64_t before = 0, after;
    int failed, outlived;
    Py_ssize_t i;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!Ip", &PyTuple_Type, &tuple, &flags, &outlived)) return NULL;
    held = held_new(PyTuple_Size(tuple));
    if (!held) return NULL;
    failed = EXCHANGE_INIT(&py);
    if (!failed) {
        failed = held_import(&py, held, tuple, flags);
        before = py.home->holders - 1;
        if (!outlived) cai_python_release(&py, held->arrays, held->count);
    }
    after = cai_python_clear(&py);
    memset(&py, 0xa5, sizeof py); /* its memory goes with the module */
    for (i = 0; !failed && outlived && i < held->count; ++i) cai_array_release(&held->arrays[i]);
    held_free(held);
    return failed ? NULL : Py_BuildValue("(LL)", (long long)before, (long long)after);
}

/* ------------------------------------------------------------------------------ the module */

static PyMethodDef exchange_methods[] = {
    {"make_type", exchange_make_type, METH_VARARGS, NULL},
    {"offer", exchange_offer_to, METH_VARARGS, NULL},
#if defined(EXCHANGE_DLPACK)
    {"offer_table", exchange_offer_table, METH_O, NULL},
#endif
    {"adopt", exchange_adopt, METH_VARARGS, NULL},
    {"adopt_by_header", exchange_adopt_by_header, METH_VARARGS, NULL},
    {"hold", exchange_hold, METH_VARARGS, NULL},
    {"try_", exchange_try, METH_VARARGS, NULL},
    {"import_named", exchange_import_named, METH_VARARGS, NULL},
    {"release", exchange_release, METH_O, NULL},
    {"release_elsewhere", exchange_release_elsewhere, METH_O, NULL},
    {"release_pending", exchange_release_pending, METH_O, NULL},
    {"park", exchange_park, METH_VARARGS, NULL},
    {"unpark", exchange_unpark, METH_VARARGS, NULL},
#if defined(EXCHANGE_DLPACK)
    {"park_tensor", exchange_park_tensor, METH_O, NULL},
    {"delete_tensor", exchange_delete_tensor, METH_VARARGS, NULL},
#endif
    {"ended", exchange_ends, METH_NOARGS, NULL},
    {"race", exchange_race, METH_VARARGS, NULL},
    {"repeat", exchange_repeat, METH_VARARGS, NULL},
    {"facts", exchange_facts, METH_O, NULL},
    {"interface", exchange_interface, METH_VARARGS, NULL},
    {"counts", exchange_counts, METH_NOARGS, NULL},
    {"drain", exchange_drain, METH_NOARGS, NULL},
    {"own_state", exchange_own_state, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static int exchange_exec(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } numbers[] = {
#define EXCHANGE_NUMBER(name) {#name, (long)EXCHANGE_##name},
        EXCHANGE_MODES(EXCHANGE_NUMBER)
#undef EXCHANGE_NUMBER
        {"HOST", CAI_PYTHON_HOST}, {"MASK", CAI_PYTHON_MASK}, {"WITH_FIELDS", CAI_PYTHON_FIELDS},
        {"BORROW", CAI_PYTHON_BORROW}, {"TYPES", CAI_PYTHON_TYPES}, {"LENIENT", CAI_LENIENT},
        {"NARROW", CAI_PYTHON_NARROW}, {"TAKEN", CAI_PYTHON_TAKEN},
        {"NOT_MINE", CAI_PYTHON_NOT_MINE},
#if defined(Py_LIMITED_API)
        {"LIMITED", 1}};
#else
        {"LIMITED", 0}};
#endif
    size_t i;
    if (EXCHANGE_INIT(exchange_of(module))) return -1;
    for (i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (PyModule_AddIntConstant(module, numbers[i].name, numbers[i].value)) return -1;
    return 0;
}

static int exchange_traverse(PyObject *module, visitproc visit, void *arg)
{
    return cai_python_traverse(exchange_of(module), visit, arg);
}

static void exchange_free(void *module)
{
    (void)cai_python_clear(exchange_of((PyObject *)module));
}

static PyModuleDef_Slot exchange_slots[] = {
    {Py_mod_exec, NULL},
#if PY_VERSION_HEX >= 0x030c0000 && !defined(Py_LIMITED_API)
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL}};

static struct PyModuleDef exchange_module = {
    PyModuleDef_HEAD_INIT, "cai_exchange", NULL, (Py_ssize_t)sizeof(exchange_state), exchange_methods,
    exchange_slots, exchange_traverse, NULL, exchange_free};

PyMODINIT_FUNC PyInit_cai_exchange(void);
PyMODINIT_FUNC PyInit_cai_exchange(void)
{
    int (*const exec)(PyObject *) = exchange_exec;
    memcpy(&exchange_slots[0].value, &exec, sizeof exec); /* a function is no object in ISO C */
    return PyModuleDef_Init(&exchange_module);
}
