/* crash.c - a module that uses ext/cai_python.h in every way, which check_crash.py tries to crash from Python
 * SPDX-License-Identifier: MIT
 *
 * With CRASH_DLPACK it has cai_python_dlpack.h, too. A `held` is a capsule with imported arrays. Two types own memory
 * and offer the exchange in C; each of their functions ends the process when it gets an object of another type. */

#if !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#define CAI_STATIC
#define CAI_IMPLEMENTATION
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(CRASH_DLPACK)
#include <dlpack/dlpack.h>

#include "cai_python_dlpack.h"
#define CRASH_INIT cai_python_dlpack_init
#else
#include "cai_python.h"
#define CRASH_INIT cai_python_init
#endif

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CRASH_MOST = 8 };

typedef struct crash_state {
    cai_python py;
} crash_state;

static struct PyModuleDef crash_module;

static cai_python *crash_of(PyObject *module)
{
    return &((crash_state *)PyModule_GetState(module))->py;
}

/* ------------------------------------------------------------------------------- memory of the types */

typedef struct crash_block {
    double *items;
    int64_t count;
    int64_t exports; /* arrays that keep it where it is */
    int64_t holders;
    int32_t memory;
} crash_block;

/* Lent describes borrowed arrays. Kept describes owned ones, and may be resized while there are none. They
 * differ in where the block is, so that one taken for the other is an address of nothing. */
typedef struct crash_lent {
    PyObject_HEAD
    crash_block *block;
} crash_lent;

typedef struct crash_kept {
    PyObject_HEAD
    double unused[2];
    crash_block *block;
} crash_kept;

static void crash_block_drop(crash_block *block)
{
    if (!block || __atomic_sub_fetch(&block->holders, 1, __ATOMIC_ACQ_REL)) return;
    free(block->items);
    free(block);
}

static crash_block *crash_block_new(long long count, int memory)
{
    crash_block *block = (crash_block *)calloc(1, sizeof *block);
    double *items = (double *)calloc((size_t)count + 1, sizeof *items);
    if (!block || !items) {
        free(block);
        free(items);
        PyErr_NoMemory();
        return NULL;
    }
    block->items = items;
    block->count = count;
    block->holders = 1;
    block->memory = memory;
    return block;
}

static void lent_end(PyObject *object);
static void kept_end(PyObject *object);

/* Is it an instance of a type of this file? What Python makes of the type's attributes counts for nothing. */
static void crash_must_be(PyObject *object, destructor end, const char *function)
{
    PyTypeObject *type = Py_TYPE(object);
    for (; type; type = (PyTypeObject *)PyType_GetSlot(type, Py_tp_base)) {
        void *const slot = PyType_GetSlot(type, Py_tp_dealloc);
        if (!memcmp(&slot, &end, sizeof end)) return;
    }
    fprintf(stderr, "%s was called for an object of another type\n", function);
    abort();
}

/* ------------------------------------------------------------------------------------- the exchange */

static int crash_describe(const crash_block *block, cai_array *out)
{
    int64_t shape[1];
    cai_error err;
    shape[0] = block->count;
    if (cai_array_init(out, CAI_FLOAT64, 1, shape, NULL, block->items, &err)) {
        cai_python_raise(&err);
        return -1;
    }
    out->memory = block->memory;
    out->sync = block->memory == CAI_MEMORY_HOST ? CAI_SYNC_NONE : CAI_SYNC_STREAM;
    out->stream = block->memory == CAI_MEMORY_HOST ? 0 : 7;
    return 0;
}

static int lent_describe(PyObject *object, cai_array *out)
{
    crash_must_be(object, lent_end, "describe of Lent");
    return crash_describe(((crash_lent *)object)->block, out);
}

static void kept_release(cai_array *array)
{
    crash_block *block = (crash_block *)array->owner;
    array->release = NULL;
    (void)__atomic_sub_fetch(&block->exports, 1, __ATOMIC_ACQ_REL);
    crash_block_drop(block);
}

static int kept_describe(PyObject *object, cai_array *out)
{
    crash_block *block;
    crash_must_be(object, kept_end, "describe of Kept");
    block = ((crash_kept *)object)->block;
    if (crash_describe(block, out)) return -1;
    (void)__atomic_add_fetch(&block->exports, 1, __ATOMIC_ACQ_REL);
    (void)__atomic_add_fetch(&block->holders, 1, __ATOMIC_ACQ_REL);
    cai_array_own(out, kept_release, block);
    return 0;
}

/* A copy: no type of Python that derives from Kept can do anything to it before it is returned. */
static PyObject *kept_adopt(PyTypeObject *type, cai_array *array)
{
    PyObject *made;
    cai_error err;
    if (cai_expect(array, "array", CAI_FLOAT64, 1, 0, &err)) {
        PyErr_SetString(PyExc_BufferError, err.message);
        return NULL;
    }
    made = PyType_GenericAlloc(type, 0);
    if (!made) return NULL;
    crash_must_be(made, kept_end, "adopt of Kept");
    ((crash_kept *)made)->block = crash_block_new(array->shape[0], array->memory);
    if (!((crash_kept *)made)->block) Py_CLEAR(made);
    else cai_array_release(array);
    return made;
}

static const cai_python_exchange lent_exchange = {CAI_ABI, (uint32_t)sizeof(cai_python_exchange),
                                                  lent_describe, NULL};
static const cai_python_exchange kept_exchange = {CAI_ABI, (uint32_t)sizeof(cai_python_exchange),
                                                  kept_describe, kept_adopt};

#if defined(CRASH_DLPACK) && DLPACK_MAJOR_VERSION >= 1 && DLPACK_MINOR_VERSION >= 3
/* DLPack's exchange, by an exporter that looks at what it gets: a table has no type in it. */
typedef struct crash_tensor {
    DLManagedTensorVersioned managed;
    cai_array array;
    int64_t shape[1], strides[1];
} crash_tensor;

static void table_delete(DLManagedTensorVersioned *managed)
{
    crash_tensor *tensor = (crash_tensor *)managed->manager_ctx;
    cai_array_release(&tensor->array);
    free(tensor);
}

static int table_from_object(void *object, DLManagedTensorVersioned **out)
{
    PyObject *const self = (PyObject *)object;
    PyTypeObject *const type = Py_TYPE(self);
    crash_tensor *tensor;
    PyObject *module = PyType_GetModuleByDef(type, &crash_module);
    PyObject *kept = module ? PyObject_GetAttrString(module, "kept_type") : NULL;
    const int is_kept = kept && PyType_IsSubtype(type, (PyTypeObject *)kept);
    Py_XDECREF(kept);
    if (!is_kept) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the table is that of another type");
        return -1;
    }
    tensor = (crash_tensor *)calloc(1, sizeof *tensor);
    if (!tensor || kept_describe(self, &tensor->array)) {
        free(tensor);
        return -1;
    }
    tensor->shape[0] = tensor->array.shape[0];
    tensor->strides[0] = 1;
    tensor->managed.version.major = DLPACK_MAJOR_VERSION;
    tensor->managed.version.minor = DLPACK_MINOR_VERSION;
    tensor->managed.manager_ctx = tensor;
    tensor->managed.deleter = table_delete;
    tensor->managed.dl_tensor.data = (void *)(uintptr_t)tensor->array.data;
    tensor->managed.dl_tensor.device.device_type = tensor->array.memory == CAI_MEMORY_HOST ? kDLCPU : kDLCUDA;
    tensor->managed.dl_tensor.ndim = 1;
    tensor->managed.dl_tensor.dtype.code = kDLFloat;
    tensor->managed.dl_tensor.dtype.bits = 64;
    tensor->managed.dl_tensor.dtype.lanes = 1;
    tensor->managed.dl_tensor.shape = tensor->shape;
    tensor->managed.dl_tensor.strides = tensor->strides;
    *out = &tensor->managed;
    return 0;
}

static int table_to_object(DLManagedTensorVersioned *tensor, void **out)
{
    (void)tensor;
    (void)out;
    return -1;
}

static int table_stream(DLDeviceType type, int32_t device, void **out)
{
    (void)type;
    (void)device;
    *out = NULL;
    return 0;
}

static const DLPackExchangeAPI crash_table = {
    {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL}, NULL, table_from_object, table_to_object, NULL,
    table_stream};

static int crash_add_table(PyObject *type)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&crash_table, "dlpack_exchange_api", NULL);
    const int failed = !capsule || PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", capsule);
    Py_XDECREF(capsule);
    return failed ? -1 : 0;
}
#else
static int crash_add_table(PyObject *type)
{
    (void)type;
    return 0;
}
#endif

/* --------------------------------------------------------------------------------- their methods */

static int crash_describe_any(PyObject *self, int is_kept, cai_array *out)
{
    return is_kept ? kept_describe(self, out) : lent_describe(self, out);
}

/* closure: "kept" or "lent" */
static PyObject *crash_get_interface(PyObject *self, void *closure)
{
    PyObject *module = PyType_GetModuleByDef(Py_TYPE(self), &crash_module), *made;
    cai_array array;
    if (!module || crash_describe_any(self, *(const char *)closure == 'k', &array)) return NULL;
    made = cai_python_interface(crash_of(module), &array, 3, NULL);
    cai_array_release(&array);
    return made;
}

#if defined(CRASH_DLPACK)
static PyObject *crash_dlpack(PyObject *self, int is_kept, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyType_GetModuleByDef(Py_TYPE(self), &crash_module), *made = NULL;
    cai_python_dlpack_request request;
    cai_array array;
    if (!module || crash_describe_any(self, is_kept, &array)) return NULL;
    if (array.memory != CAI_MEMORY_HOST) array.device = 0;
    if (!cai_python_dlpack_ask(&array, args, kwargs, &request)) {
        if (request.stream) request.flags |= CAI_DLPACK_ORDERED;
        made = cai_python_dlpack(crash_of(module), self, &array, &request);
    }
    cai_array_release(&array);
    return made;
}

static PyObject *lent_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return crash_dlpack(self, 0, args, kwargs);
}

static PyObject *crash_device(PyObject *self, int is_kept)
{
    PyObject *made;
    cai_array array;
    if (crash_describe_any(self, is_kept, &array)) return NULL;
    if (array.memory != CAI_MEMORY_HOST) array.device = 0;
    made = cai_python_dlpack_device(&array);
    cai_array_release(&array);
    return made;
}

static PyObject *lent_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return crash_device(self, 0);
}
#endif

/* resize(count): as bytearray does it */
static PyObject *kept_resize(PyObject *self, PyObject *argument)
{
    crash_block *const block = ((crash_kept *)self)->block;
    const long long count = PyLong_AsLongLong(argument);
    double *items;
    if (count < 0 || count > 1000000) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "resize: no such number of items");
        return NULL;
    }
    if (__atomic_load_n(&block->exports, __ATOMIC_ACQUIRE)) {
        PyErr_SetString(PyExc_BufferError, "resize: an array keeps the memory in place");
        return NULL;
    }
    items = (double *)calloc((size_t)count + 1, sizeof *items);
    if (!items) return PyErr_NoMemory();
    free(block->items);
    block->items = items;
    block->count = count;
    Py_RETURN_NONE;
}

static PyObject *crash_new(PyTypeObject *type, PyObject *args, crash_block ***where, int is_kept)
{
    long long count = 4;
    int memory = CAI_MEMORY_HOST;
    PyObject *made;
    if (!PyArg_ParseTuple(args, "|Li", &count, &memory)) return NULL;
    if (count < 0 || count > 1000000) {
        PyErr_SetString(PyExc_ValueError, "no such number of items");
        return NULL;
    }
    made = PyType_GenericAlloc(type, 0);
    if (!made) return NULL;
    *where = is_kept ? &((crash_kept *)made)->block : &((crash_lent *)made)->block;
    **where = crash_block_new(count, memory);
    if (!**where) Py_CLEAR(made);
    return made;
}

static PyObject *lent_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    crash_block **where;
    (void)kwargs;
    return crash_new(type, args, &where, 0);
}

static PyObject *kept_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    crash_block **where;
    (void)kwargs;
    return crash_new(type, args, &where, 1);
}

static void crash_end(PyObject *object, crash_block *block)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc give_back;
    void *const slot = PyType_GetSlot(type, Py_tp_free);
    memcpy(&give_back, &slot, sizeof give_back);
    crash_block_drop(block);
    give_back(object);
    Py_DECREF(type);
}

static void lent_end(PyObject *object)
{
    crash_end(object, ((crash_lent *)object)->block);
}

static void kept_end(PyObject *object)
{
    crash_end(object, ((crash_kept *)object)->block);
}

static char crash_is_lent[] = "lent", crash_is_kept[] = "kept";
static PyGetSetDef lent_properties[] = {
    {"__cuda_array_interface__", crash_get_interface, NULL, NULL, crash_is_lent},
    {"__array_interface__", crash_get_interface, NULL, NULL, crash_is_lent},
    {NULL, NULL, NULL, NULL, NULL}};
static PyGetSetDef kept_properties[] = {
    {"__cuda_array_interface__", crash_get_interface, NULL, NULL, crash_is_kept},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef lent_methods[] = {
#if defined(CRASH_DLPACK)
    {"__dlpack__", (PyCFunction)(void (*)(void))lent_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", lent_device, METH_NOARGS, NULL},
#endif
    {NULL, NULL, 0, NULL}};
static PyMethodDef kept_methods[] = {{"resize", kept_resize, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static void crash_slot(PyType_Slot *slot, int id, void (*function)(void))
{
    slot->slot = id;
    memcpy(&slot->pfunc, &function, sizeof function); /* a function is no object in ISO C */
}

/* A new type, Lent or Kept, that offers its exchange. */
static PyObject *crash_type(PyObject *module, int is_kept)
{
    PyType_Slot slots[5];
    PyType_Spec spec;
    PyObject *type;
    memset(slots, 0, sizeof slots);
    memset(&spec, 0, sizeof spec);
    crash_slot(&slots[0], Py_tp_new, is_kept ? (void (*)(void))kept_new : (void (*)(void))lent_new);
    crash_slot(&slots[1], Py_tp_dealloc, is_kept ? (void (*)(void))kept_end : (void (*)(void))lent_end);
    slots[2].slot = Py_tp_methods;
    slots[2].pfunc = is_kept ? kept_methods : lent_methods;
    slots[3].slot = Py_tp_getset;
    slots[3].pfunc = is_kept ? kept_properties : lent_properties;
    spec.name = is_kept ? "cai_crash.Kept" : "cai_crash.Lent";
    spec.basicsize = (int)(is_kept ? sizeof(crash_kept) : sizeof(crash_lent));
    spec.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    spec.slots = slots;
    type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (type && cai_python_offer((PyTypeObject *)type, is_kept ? &kept_exchange : &lent_exchange))
        Py_CLEAR(type);
    return type;
}

/* fresh(is_kept) -> a new type of that kind, which nobody else has */
static PyObject *crash_fresh(PyObject *module, PyObject *argument)
{
    const int is_kept = PyObject_IsTrue(argument);
    return is_kept < 0 ? NULL : crash_type(module, is_kept);
}

/* -------------------------------------------------------------------------------------- imported arrays */

typedef struct crash_held {
    Py_ssize_t count;
    cai_array arrays[CRASH_MOST];
    int64_t wait_us; /* of a thread that releases them */
} crash_held;

static crash_held *crash_get(PyObject *capsule)
{
    return (crash_held *)PyCapsule_GetPointer(capsule, "held");
}

static void crash_let_all_go(crash_held *held)
{
    Py_ssize_t i;
    for (i = 0; i < held->count; ++i) cai_array_release(&held->arrays[i]);
}

static void crash_held_end(PyObject *capsule)
{
    crash_held *held = crash_get(capsule);
    crash_let_all_go(held);
    free(held);
}

/* Imports a tuple of objects; NULL with an exception. */
static crash_held *crash_import(PyObject *module, PyObject *args)
{
    cai_python_options options;
    PyObject *tuple, *objects[CRASH_MOST];
    crash_held *held;
    Py_ssize_t i, count;
    memset(&options, 0, sizeof options);
    if (!PyArg_ParseTuple(args, "O!I", &PyTuple_Type, &tuple, &options.flags)) return NULL;
    count = PyTuple_Size(tuple);
    if (count > CRASH_MOST) return (crash_held *)PyErr_Format(PyExc_ValueError, "too many objects");
    held = (crash_held *)calloc(1, sizeof *held);
    if (!held) return (crash_held *)PyErr_NoMemory();
    for (i = 0; i < count; ++i) objects[i] = PyTuple_GetItem(tuple, i); /* the tuple is the caller's */
    if (!cai_python_import(crash_of(module), objects, count, &options, held->arrays)) {
        held->count = count;
        return held;
    }
    free(held);
    return NULL;
}

static PyObject *crash_facts(const crash_held *held)
{
    PyObject *list = PyList_New(0);
    Py_ssize_t i;
    for (i = 0; list && i < held->count; ++i) {
        const cai_array *a = &held->arrays[i];
        PyObject *row = Py_BuildValue("(KLisi)", (unsigned long long)a->data, (long long)a->size,
                                      (int)a->ndim, cai_dtype_name(a->dtype.code), (int)a->sync);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* What a consumer does with arrays: it reads all their bytes. */
static unsigned crash_sum(const crash_held *held)
{
    unsigned sum = 0;
    Py_ssize_t i;
    int64_t at;
    for (i = 0; i < held->count; ++i)
        for (at = held->arrays[i].lo; at < held->arrays[i].hi; ++at)
            sum += *((const unsigned char *)(uintptr_t)held->arrays[i].data + at);
    return sum;
}

/* take(objects, flags) -> facts; released at once */
static PyObject *crash_take(PyObject *module, PyObject *args)
{
    crash_held *held = crash_import(module, args);
    PyObject *facts;
    if (!held) return NULL;
    facts = crash_facts(held);
    cai_python_release(crash_of(module), held->arrays, held->count);
    free(held);
    return facts;
}

/* touch(objects, flags) -> a sum of all bytes, made without the GIL. Only for objects that say what is so. */
static PyObject *crash_touch(PyObject *module, PyObject *args)
{
    crash_held *held = crash_import(module, args);
    unsigned sum;
    if (!held) return NULL;
    Py_BEGIN_ALLOW_THREADS
    sum = crash_sum(held);
    crash_let_all_go(held);
    free(held);
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLong(sum);
}

/* hold(objects, flags) -> held */
static PyObject *crash_hold(PyObject *module, PyObject *args)
{
    crash_held *held = crash_import(module, args);
    PyObject *capsule = held ? PyCapsule_New(held, "held", crash_held_end) : NULL;
    if (held && !capsule) crash_let_all_go(held);
    if (held && !capsule) free(held);
    return capsule;
}

/* touch_held(held) -> a sum of all bytes */
static PyObject *crash_touch_held(PyObject *module, PyObject *capsule)
{
    crash_held *held = crash_get(capsule);
    (void)module;
    return held ? PyLong_FromUnsignedLong(crash_sum(held)) : NULL;
}

static PyObject *crash_release(PyObject *module, PyObject *capsule)
{
    crash_held *held = crash_get(capsule);
    if (!held) return NULL;
    cai_python_release(crash_of(module), held->arrays, held->count);
    held->count = 0;
    Py_RETURN_NONE;
}

static void *crash_work(void *argument)
{
    crash_held *held = (crash_held *)argument;
    struct timespec wait;
    wait.tv_sec = (time_t)(held->wait_us / 1000000);
    wait.tv_nsec = (long)(held->wait_us % 1000000) * 1000;
    (void)nanosleep(&wait, NULL);
    crash_let_all_go(held);
    free(held);
    return NULL;
}

/* elsewhere(held, microseconds): a thread that has never seen Python releases it then; nobody waits for it */
static PyObject *crash_elsewhere(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    crash_held *held, *moved;
    pthread_t thread;
    long long wait;
    (void)module;
    if (!PyArg_ParseTuple(args, "OL", &capsule, &wait)) return NULL;
    held = crash_get(capsule);
    moved = held ? (crash_held *)malloc(sizeof *moved) : NULL;
    if (!moved) return NULL;
    *moved = *held;
    moved->wait_us = wait;
    held->count = 0;
    if (pthread_create(&thread, NULL, crash_work, moved)) return PyErr_NoMemory();
    (void)pthread_detach(thread);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------------------------------ the rest */

/* adopt(type, objects, flags) -> a new instance of the type, for the first of them */
static PyObject *crash_adopt(PyObject *module, PyObject *args)
{
    PyObject *type, *tuple, *rest, *made;
    unsigned flags;
    crash_held *held;
    if (!PyArg_ParseTuple(args, "O!O!I", &PyType_Type, &type, &PyTuple_Type, &tuple, &flags)) return NULL;
    rest = Py_BuildValue("(OI)", tuple, flags);
    held = rest ? crash_import(module, rest) : NULL;
    Py_XDECREF(rest);
    if (!held) return NULL;
    made = held->count ? cai_python_adopt(crash_of(module), (PyTypeObject *)type, &held->arrays[0])
                       : PyErr_Format(PyExc_ValueError, "adopt: no object");
    crash_let_all_go(held);
    free(held);
    return made;
}

/* interface(objects, flags, version, mask) -> the dictionary of the first of them */
static PyObject *crash_interface(PyObject *module, PyObject *args)
{
    PyObject *tuple, *mask, *rest, *made;
    unsigned flags;
    int version;
    crash_held *held;
    if (!PyArg_ParseTuple(args, "O!IiO", &PyTuple_Type, &tuple, &flags, &version, &mask)) return NULL;
    rest = Py_BuildValue("(OI)", tuple, flags);
    held = rest ? crash_import(module, rest) : NULL;
    Py_XDECREF(rest);
    if (!held) return NULL;
    made = held->count ? cai_python_interface(crash_of(module), &held->arrays[0], version,
                                              mask == Py_None ? NULL : mask)
                       : PyErr_Format(PyExc_ValueError, "interface: no object");
    crash_let_all_go(held);
    free(held);
    return made;
}

static PyObject *crash_stream(PyObject *module, PyObject *object)
{
    uint64_t stream;
    if (cai_python_stream(crash_of(module), object, &stream)) return NULL;
    return PyLong_FromUnsignedLongLong((unsigned long long)stream);
}

/* raise_(code, text): what a function of cai said */
static PyObject *crash_raise(PyObject *module, PyObject *args)
{
    cai_error err;
    const char *text;
    Py_ssize_t length;
    (void)module;
    memset(&err, 0, sizeof err);
    if (!PyArg_ParseTuple(args, "iy#", &err.code, &text, &length)) return NULL;
    if (length >= (Py_ssize_t)sizeof err.message) length = (Py_ssize_t)sizeof err.message - 1;
    memcpy(err.message, text, (size_t)length);
    return cai_python_raise(&err);
}

static PyObject *crash_drain(PyObject *module, PyObject *unused)
{
    (void)unused;
    cai_python_drain(crash_of(module));
    Py_RETURN_NONE;
}

static PyMethodDef crash_methods[] = {
    {"fresh", crash_fresh, METH_O, NULL},
    {"take", crash_take, METH_VARARGS, NULL},
    {"touch", crash_touch, METH_VARARGS, NULL},
    {"hold", crash_hold, METH_VARARGS, NULL},
    {"touch_held", crash_touch_held, METH_O, NULL},
    {"release", crash_release, METH_O, NULL},
    {"elsewhere", crash_elsewhere, METH_VARARGS, NULL},
    {"adopt", crash_adopt, METH_VARARGS, NULL},
    {"interface", crash_interface, METH_VARARGS, NULL},
    {"stream", crash_stream, METH_O, NULL},
    {"raise_", crash_raise, METH_VARARGS, NULL},
    {"drain", crash_drain, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static int crash_add_types(PyObject *module)
{
    PyObject *lent = crash_type(module, 0), *kept = crash_type(module, 1);
    int failed = !lent || !kept || PyModule_AddObjectRef(module, "Lent", lent) ||
                 PyModule_AddObjectRef(module, "Kept", kept) ||
                 PyModule_AddObjectRef(module, "kept_type", kept);
    PyObject *tabled = failed ? NULL : PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){sO}", "Tabled", kept,
                                                             CAI_PYTHON_EXCHANGE, Py_None);
    failed = !tabled || crash_add_table(tabled) || PyModule_AddObjectRef(module, "Tabled", tabled);
    Py_XDECREF(lent);
    Py_XDECREF(kept);
    Py_XDECREF(tabled);
    return failed ? -1 : 0;
}

static int crash_exec(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } numbers[] = {{"HOST", CAI_PYTHON_HOST},     {"MASK", CAI_PYTHON_MASK},     {"FIELDS", CAI_PYTHON_FIELDS},
                   {"NARROW", CAI_PYTHON_NARROW}, {"BORROW", CAI_PYTHON_BORROW}, {"LENIENT", CAI_LENIENT},
                   {"DEVICE", CAI_MEMORY_DEVICE}};
    size_t i;
    if (CRASH_INIT(crash_of(module))) return -1;
    for (i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (PyModule_AddIntConstant(module, numbers[i].name, numbers[i].value)) return -1;
    return crash_add_types(module);
}

static int crash_traverse(PyObject *module, visitproc visit, void *arg)
{
    return cai_python_traverse(crash_of(module), visit, arg);
}

static void crash_free(void *module)
{
    (void)cai_python_clear(crash_of((PyObject *)module));
}

static PyModuleDef_Slot crash_slots[] = {{Py_mod_exec, NULL}, {0, NULL}};

static struct PyModuleDef crash_module = {
    PyModuleDef_HEAD_INIT, "cai_crash", NULL, (Py_ssize_t)sizeof(crash_state), crash_methods,
    crash_slots, crash_traverse, NULL, crash_free};

PyMODINIT_FUNC PyInit_cai_crash(void);
PyMODINIT_FUNC PyInit_cai_crash(void)
{
    int (*const exec)(PyObject *) = crash_exec;
    memcpy(&crash_slots[0].value, &exec, sizeof exec); /* a function is no object in ISO C */
    return PyModuleDef_Init(&crash_module);
}
