/* dlpack.c - an extension module that shows what ext/cai_python_dlpack.h does
 * SPDX-License-Identifier: MIT
 *
 * check_dlpack.py builds it and asks it. A `held` is a capsule with imported arrays; a `spec` is a dictionary
 * that says what a tensor of a producer in Python looks like (spec_names). */

#if !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#define CAI_STATIC
#define CAI_IMPLEMENTATION
#include <Python.h>
#include <dlpack/dlpack.h>

#include "cai_python_dlpack.h"

#include <pthread.h>

enum { PROBE_MOST = 8, PROBE_AXES = 66, PROBE_QUARANTINE = 64 };

typedef struct probe_held {
    Py_ssize_t count;
    cai_array arrays[PROBE_MOST];
} probe_held;

typedef struct probe_state {
    cai_python py;
    PyObject *array_type;
    pthread_t worker;
    PyObject *busy; /* the capsule that the worker releases */
} probe_state;

static probe_state *probe_of(PyObject *module)
{
    return (probe_state *)PyModule_GetState(module);
}

static PyObject *probe_none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *probe_numbers(const int64_t *values, int32_t count)
{
    PyObject *list = values ? PyList_New(count) : probe_none();
    int32_t i;
    for (i = 0; list && values && i < count; ++i) {
        PyObject *number = PyLong_FromLongLong((long long)values[i]);
        if (!number || PyList_SetItem(list, i, number)) Py_CLEAR(list);
    }
    return list;
}

/* --------------------------------------------------------------- tensors of a producer in Python */

/* A tensor with its deleter. Blocks that were deleted stay a while, so that a second deleter is seen. */
typedef struct probe_block {
    DLManagedTensor plain;
    DLManagedTensorVersioned versioned;
    int64_t shape[PROBE_AXES], strides[PROBE_AXES];
    int alive;
} probe_block;

static struct {
    pthread_mutex_t lock;
    probe_block *dead[PROBE_QUARANTINE];
    long long made, deleted, twice, wrong; /* wrong: functions that are not to be called */
    PyObject *current;                     /* what current_work_stream asks */
    PyObject *on_delete;                   /* what deleters call, or NULL */
} probe_all = {PTHREAD_MUTEX_INITIALIZER, {NULL}, 0, 0, 0, 0, NULL, NULL};

/* A deleter that runs Python code, and thinks no further. A LookupError stays behind. */
static void probe_call_on_delete(void)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallObject(probe_all.on_delete, NULL);
    if (!result && !PyErr_ExceptionMatches(PyExc_LookupError)) PyErr_Clear();
    Py_XDECREF(result);
    PyGILState_Release(state);
}

/* On any thread, without the GIL. What the tensor pointed to is no shape any more. */
static void probe_delete(probe_block *block)
{
    probe_block *oldest = NULL;
    (void)pthread_mutex_lock(&probe_all.lock);
    if (!block->alive) ++probe_all.twice;
    else {
        probe_block **const slot = &probe_all.dead[probe_all.deleted++ % PROBE_QUARANTINE];
        block->alive = 0;
        memset(block->shape, 0x5a, sizeof block->shape);
        memset(block->strides, 0x5a, sizeof block->strides);
        oldest = *slot;
        *slot = block;
    }
    (void)pthread_mutex_unlock(&probe_all.lock);
    free(oldest);
    if (probe_all.on_delete) probe_call_on_delete();
}

static void probe_delete_plain(DLManagedTensor *self)
{
    probe_delete((probe_block *)self->manager_ctx);
}

static void probe_delete_versioned(DLManagedTensorVersioned *self)
{
    probe_delete((probe_block *)self->manager_ctx);
}

static int probe_read_axes(PyObject *tuple, int64_t *out, int32_t *count)
{
    Py_ssize_t i, length;
    *count = 0;
    if (tuple == Py_None) return 0;
    length = PyTuple_Size(tuple);
    if (length > PROBE_AXES) PyErr_SetString(PyExc_ValueError, "a spec has too many axes");
    for (i = 0; i < length && !PyErr_Occurred(); ++i)
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    *count = (int32_t)length;
    return PyErr_Occurred() ? -1 : 0;
}

/* The parts of a spec that PyArg can read as they are. */
typedef struct probe_spec {
    PyObject *shape, *strides;
    unsigned long long address, offset, flags;
    int code, bits, lanes, device_type, device_id, ndim, deleter;
    unsigned major, minor;
} probe_spec;

static int probe_read_spec(PyObject *dictionary, probe_spec *out)
{
    static char shape[] = "shape", strides[] = "strides", address[] = "address", offset[] = "offset",
                flags[] = "flags", dtype[] = "dtype", device[] = "device", version[] = "version",
                ndim[] = "ndim", deleter[] = "deleter";
    static char *names[] = {shape, strides, address, offset, flags, dtype,
                            device, version, ndim,  deleter, NULL};
    PyObject *none = PyTuple_New(0);
    int good;
    memset(out, 0, sizeof *out);
    out->shape = out->strides = Py_None;
    out->address = 0x10000000u;
    out->code = 2;
    out->bits = 32;
    out->lanes = out->deleter = 1;
    out->device_type = 2;
    out->major = DLPACK_MAJOR_VERSION;
    out->minor = DLPACK_MINOR_VERSION;
    out->ndim = -1000;
    good = none && PyArg_ParseTupleAndKeywords(none, dictionary, "|OOKKK(iii)(ii)(II)ip", names, &out->shape,
                                               &out->strides, &out->address, &out->offset, &out->flags,
                                               &out->code, &out->bits, &out->lanes, &out->device_type,
                                               &out->device_id, &out->major, &out->minor, &out->ndim,
                                               &out->deleter);
    Py_XDECREF(none);
    return good ? 0 : -1;
}

/* A tensor of a spec, both as versioned and as plain; NULL with an exception. */
static probe_block *probe_make(PyObject *dictionary)
{
    probe_block *block = (probe_block *)calloc(1, sizeof *block);
    DLTensor *tensor;
    probe_spec spec;
    int32_t ndim, given;
    if (!block || probe_read_spec(dictionary, &spec) || probe_read_axes(spec.shape, block->shape, &ndim) ||
        probe_read_axes(spec.strides, block->strides, &given)) {
        free(block);
        return NULL;
    }
    tensor = &block->versioned.dl_tensor;
    tensor->data = (void *)(uintptr_t)spec.address;
    tensor->byte_offset = spec.offset;
    memcpy(&tensor->device.device_type, &spec.device_type, sizeof spec.device_type);
    tensor->device.device_id = spec.device_id;
    tensor->dtype.code = (uint8_t)spec.code;
    tensor->dtype.bits = (uint8_t)spec.bits;
    tensor->dtype.lanes = (uint16_t)spec.lanes;
    tensor->ndim = spec.ndim == -1000 ? ndim : spec.ndim;
    tensor->shape = spec.shape == Py_None ? NULL : block->shape;
    tensor->strides = spec.strides == Py_None ? NULL : block->strides;
    block->plain.dl_tensor = *tensor;
    block->versioned.version.major = spec.major;
    block->versioned.version.minor = spec.minor;
    block->versioned.flags = spec.flags;
    block->plain.manager_ctx = block->versioned.manager_ctx = block;
    block->plain.deleter = spec.deleter ? probe_delete_plain : NULL;
    block->versioned.deleter = spec.deleter ? probe_delete_versioned : NULL;
    block->alive = 1;
    (void)pthread_mutex_lock(&probe_all.lock);
    ++probe_all.made;
    (void)pthread_mutex_unlock(&probe_all.lock);
    return block;
}

/* counts() -> (tensors made, deleted, deleted twice, calls of what is not to be called) */
static PyObject *probe_counts(PyObject *module, PyObject *unused)
{
    long long made, deleted, twice, wrong;
    (void)module;
    (void)unused;
    (void)pthread_mutex_lock(&probe_all.lock);
    made = probe_all.made;
    deleted = probe_all.deleted;
    twice = probe_all.twice;
    wrong = probe_all.wrong;
    (void)pthread_mutex_unlock(&probe_all.lock);
    return Py_BuildValue("LLLL", made, deleted, twice, wrong);
}

/* -------------------------------------------------------------------------------------- capsules */

static const char *const probe_names[] = {"dltensor",           "dltensor_versioned", "used_dltensor",
                                          "used_dltensor_versioned", "dlpack_exchange_api", "something else"};

/* Names of capsules live for ever. */
static const char *probe_name(const char *name)
{
    size_t i;
    for (i = 0; i < sizeof probe_names / sizeof *probe_names; ++i)
        if (!strcmp(name, probe_names[i])) return probe_names[i];
    PyErr_Format(PyExc_ValueError, "no such name: %s", name);
    return NULL;
}

/* What a producer does with a capsule that nobody has used. */
static void probe_capsule_end(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *managed = (DLManagedTensor *)PyCapsule_GetPointer(capsule, "dltensor");
        if (managed->deleter) managed->deleter(managed);
    }
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        DLManagedTensorVersioned *managed =
            (DLManagedTensorVersioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed->deleter) managed->deleter(managed);
    }
}

/* capsule(spec, name, versioned = whether the name says so) */
static PyObject *probe_capsule(PyObject *module, PyObject *args)
{
    PyObject *spec, *capsule;
    const char *name;
    int versioned = -1;
    probe_block *block;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!s|i", &PyDict_Type, &spec, &name, &versioned)) return NULL;
    name = probe_name(name);
    block = name ? probe_make(spec) : NULL;
    if (!block) return NULL;
    if (versioned < 0) versioned = strstr(name, "versioned") != NULL;
    capsule = PyCapsule_New(versioned ? (void *)&block->versioned : (void *)&block->plain, name,
                            probe_capsule_end);
    if (!capsule) probe_delete(block);
    return capsule;
}

static PyObject *probe_capsule_name(PyObject *module, PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    (void)module;
    return name ? PyUnicode_FromString(name) : PyErr_Occurred() ? NULL : probe_none();
}

/* What the struct of a capsule says, in dlpack.h's own words. */
static PyObject *probe_read(PyObject *module, PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    const int versioned = name && strstr(name, "versioned") != NULL;
    void *const pointer = name ? PyCapsule_GetPointer(capsule, name) : NULL;
    const DLManagedTensorVersioned *const full = (const DLManagedTensorVersioned *)pointer;
    const DLTensor *tensor;
    int type;
    (void)module;
    if (!pointer) return NULL;
    tensor = versioned ? &full->dl_tensor : &((const DLManagedTensor *)pointer)->dl_tensor;
    memcpy(&type, &tensor->device.device_type, sizeof type);
    return Py_BuildValue("{ss sK sK s(ii) s(iii) si sN sN sN sK}", "name", name, "data",
                         (unsigned long long)(uintptr_t)tensor->data, "offset",
                         (unsigned long long)tensor->byte_offset, "device", type,
                         (int)tensor->device.device_id, "dtype", (int)tensor->dtype.code,
                         (int)tensor->dtype.bits, (int)tensor->dtype.lanes, "ndim", (int)tensor->ndim,
                         "shape", probe_numbers(tensor->shape, tensor->ndim), "strides",
                         probe_numbers(tensor->strides, tensor->ndim), "version",
                         versioned ? Py_BuildValue("II", (unsigned)full->version.major,
                                                   (unsigned)full->version.minor) : probe_none(),
                         "flags", versioned ? (unsigned long long)full->flags : 0);
}

/* What a consumer has of a capsule that it took. */
typedef struct probe_taken {
    DLManagedTensor *plain;
    DLManagedTensorVersioned *versioned;
} probe_taken;

static void *probe_end_taken(void *argument)
{
    const probe_taken *taken = (const probe_taken *)argument;
    if (taken->plain) taken->plain->deleter(taken->plain);
    if (taken->versioned) taken->versioned->deleter(taken->versioned);
    return NULL;
}

/* consume(capsule, elsewhere): renames it and calls the deleter; elsewhere: on a thread that never saw
 * Python, while this one keeps the GIL. */
static PyObject *probe_consume(PyObject *module, PyObject *args)
{
    probe_taken taken = {NULL, NULL};
    PyObject *capsule;
    pthread_t thread;
    int elsewhere = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|p", &capsule, &elsewhere)) return NULL;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        taken.versioned = (DLManagedTensorVersioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned");
        (void)PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else {
        taken.plain = (DLManagedTensor *)PyCapsule_GetPointer(capsule, "dltensor");
        if (!taken.plain) return NULL;
        (void)PyCapsule_SetName(capsule, "used_dltensor");
    }
    if (!elsewhere) (void)probe_end_taken(&taken);
    else if (pthread_create(&thread, NULL, probe_end_taken, &taken) || pthread_join(thread, NULL))
        return PyErr_Format(PyExc_RuntimeError, "consume: no thread");
    return probe_none();
}

/* ---------------------------------------------------------------------- a table that Python scripts */

/* What a method of a producer in Python says: 1: a spec, which *spec is; 0: *code is to be returned, and the
 * exception, if there is one, is that method's. */
static int probe_script(PyObject *object, const char *method, PyObject **spec, int *code)
{
    PyObject *name = PyUnicode_InternFromString(method); /* CPython caches look-ups by the string's address */
    PyObject *answer = name ? PyObject_CallMethodObjArgs(object, name, NULL) : NULL;
    Py_XDECREF(name);
    *code = -1;
    if (!answer) return 0;
    *spec = answer;
    if (PyDict_Check(answer)) return 1;
    *code = (int)PyLong_AsLong(answer);
    Py_DECREF(answer);
    return 0;
}

static int probe_table_managed(void *object, DLManagedTensorVersioned **out)
{
    PyObject *spec;
    probe_block *block;
    int code;
    if (!probe_script((PyObject *)object, "managed", &spec, &code)) return code;
    block = probe_make(spec);
    Py_DECREF(spec);
    if (!block) return -1;
    *out = &block->versioned;
    return 0;
}

static void probe_lent_end(PyObject *capsule)
{
    probe_delete((probe_block *)PyCapsule_GetPointer(capsule, "lent"));
}

/* Shape and strides are the producer's: they go when `lent` of the object is replaced. */
static int probe_table_lend(void *object, DLTensor *out)
{
    PyObject *spec, *keep, *name;
    probe_block *block;
    int code;
    if (!probe_script((PyObject *)object, "tensor", &spec, &code)) return code;
    block = probe_make(spec);
    Py_DECREF(spec);
    if (!block) return -1;
    *out = block->plain.dl_tensor;
    keep = PyCapsule_New(block, "lent", probe_lent_end);
    if (!keep) probe_delete(block);
    name = PyUnicode_InternFromString("lent");
    code = !keep || !name || PyObject_SetAttr((PyObject *)object, name, keep);
    Py_XDECREF(name);
    Py_XDECREF(keep);
    return code ? -1 : 0;
}

/* current(type, id) says: a stream; None: nothing is written; (code,): nothing is written, code returned. */
static int probe_table_stream(DLDeviceType device, int32_t id, void **out)
{
    unsigned long long number;
    PyObject *answer;
    int code = 0;
    if (!probe_all.current) {
        PyErr_SetString(PyExc_AssertionError, "nobody has said what the current stream is");
        return -1;
    }
    answer = PyObject_CallFunction(probe_all.current, "ii", (int)device, (int)id);
    if (!answer) return -1;
    if (PyTuple_Check(answer)) code = (int)PyLong_AsLong(PyTuple_GetItem(answer, 0));
    else if (answer != Py_None) {
        number = PyLong_AsUnsignedLongLong(answer);
        *out = (void *)(uintptr_t)number;
    }
    Py_DECREF(answer);
    return PyErr_Occurred() ? -1 : code;
}

static int probe_wrong(void)
{
    ++probe_all.wrong;
    PyErr_SetString(PyExc_AssertionError, "a function was called that is not to be called");
    return -1;
}

static int probe_wrong_managed(void *object, DLManagedTensorVersioned **out)
{
    (void)object;
    (void)out;
    return probe_wrong();
}

static int probe_wrong_lend(void *object, DLTensor *out)
{
    (void)object;
    (void)out;
    return probe_wrong();
}

static int probe_wrong_stream(DLDeviceType device, int32_t id, void **out)
{
    (void)device;
    (void)id;
    (void)out;
    return probe_wrong();
}

static int probe_wrong_adopt(DLManagedTensorVersioned *tensor, void **out)
{
    (void)tensor;
    (void)out;
    return probe_wrong();
}

static int probe_wrong_allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                                void (*error)(void *, const char *, const char *))
{
    (void)prototype;
    (void)out;
    (void)context;
    (void)error;
    return probe_wrong();
}

/* table(major, minor, prev = None, null = "", wrong = False, name = "dlpack_exchange_api") -> capsule.
 * null: m, t and s in it mean that managed, tensor and stream are NULL; a and o the two that nothing here
 * needs. wrong: nothing of it is to be called. A table lives for ever, as DLPack has it. */
static PyObject *probe_table(PyObject *module, PyObject *args)
{
    DLPackExchangeAPI *table = (DLPackExchangeAPI *)calloc(1, sizeof *table);
    const char *null = "", *name = "dlpack_exchange_api";
    PyObject *previous = Py_None;
    unsigned major, minor;
    int wrong = 0;
    (void)module;
    if (!table || !PyArg_ParseTuple(args, "II|Osps", &major, &minor, &previous, &null, &wrong, &name) ||
        !(name = probe_name(name))) {
        free(table);
        return NULL;
    }
    table->header.version.major = major;
    table->header.version.minor = minor;
    if (previous != Py_None)
        table->header.prev_api =
            (DLPackExchangeAPIHeader *)PyCapsule_GetPointer(previous, "dlpack_exchange_api");
    if (!strchr(null, 'm'))
        table->managed_tensor_from_py_object_no_sync = wrong ? probe_wrong_managed : probe_table_managed;
    if (!strchr(null, 't'))
        table->dltensor_from_py_object_no_sync = wrong ? probe_wrong_lend : probe_table_lend;
    if (!strchr(null, 's')) table->current_work_stream = wrong ? probe_wrong_stream : probe_table_stream;
    if (!strchr(null, 'a')) table->managed_tensor_allocator = probe_wrong_allocate;
    if (!strchr(null, 'o')) table->managed_tensor_to_py_object_no_sync = probe_wrong_adopt;
    return PyCapsule_New(table, name, NULL);
}

static PyObject *probe_set(PyObject **place, PyObject *object)
{
    PyObject *before = *place;
    if (object == Py_None) object = NULL;
    Py_XINCREF(object);
    *place = object;
    Py_XDECREF(before);
    return probe_none();
}

/* set_current(callable or None): what current_work_stream asks from now on */
static PyObject *probe_set_current(PyObject *module, PyObject *object)
{
    (void)module;
    return probe_set(&probe_all.current, object);
}

/* set_on_delete(callable or None): what deleters call from now on */
static PyObject *probe_set_on_delete(PyObject *module, PyObject *object)
{
    (void)module;
    return probe_set(&probe_all.on_delete, object);
}

/* --------------------------------------------------------------------------------- held arrays */

static void probe_held_end(PyObject *capsule)
{
    probe_held *held = (probe_held *)PyCapsule_GetPointer(capsule, "held");
    Py_ssize_t i;
    for (i = 0; i < held->count; ++i) cai_array_release(&held->arrays[i]);
    PyMem_Free(held);
}

static probe_held *probe_get(PyObject *capsule)
{
    return (probe_held *)PyCapsule_GetPointer(capsule, "held");
}

/* hold(objects: tuple, flags, stream = 0) -> held */
static PyObject *probe_hold(PyObject *module, PyObject *args)
{
    cai_python_options options;
    PyObject *tuple, *objects[PROBE_MOST], *capsule;
    unsigned long long stream = 0;
    unsigned flags = 0;
    Py_ssize_t i, count;
    probe_held *held;
    if (!PyArg_ParseTuple(args, "O!I|K", &PyTuple_Type, &tuple, &flags, &stream)) return NULL;
    count = PyTuple_Size(tuple);
    if (count > PROBE_MOST) return PyErr_Format(PyExc_ValueError, "hold: more than %d", (int)PROBE_MOST);
    memset(&options, 0, sizeof options);
    options.flags = flags;
    options.stream = stream;
    held = (probe_held *)PyMem_Calloc(1, sizeof *held);
    if (!held) return PyErr_NoMemory();
    for (i = 0; i < count; ++i) objects[i] = PyTuple_GetItem(tuple, i);
    if (cai_python_import(&probe_of(module)->py, objects, count, &options, held->arrays)) {
        PyMem_Free(held);
        return NULL;
    }
    held->count = count;
    capsule = PyCapsule_New(held, "held", probe_held_end);
    if (capsule) return capsule;
    for (i = 0; i < count; ++i) cai_array_release(&held->arrays[i]);
    PyMem_Free(held);
    return NULL;
}

/* without(object, flags): imported by a cai_python of cai_python_init; whether it was writable */
static PyObject *probe_without(PyObject *module, PyObject *args)
{
    cai_python_options options = {0, 0, 0, NULL};
    PyObject *object, *result = NULL;
    cai_python py;
    cai_array x;
    (void)module;
    if (!PyArg_ParseTuple(args, "OI", &object, &options.flags) || cai_python_init(&py)) return NULL;
    if (!cai_python_import(&py, &object, 1, &options, &x)) {
        result = PyBool_FromLong((x.flags & CAI_WRITABLE) != 0);
        cai_python_release(&py, &x, 1);
    }
    (void)cai_python_clear(&py);
    return result;
}

/* release(held): on this thread, and drained */
static PyObject *probe_release(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    if (!held) return NULL;
    cai_python_release(&probe_of(module)->py, held->arrays, held->count);
    return probe_none();
}

static void *probe_work(void *argument)
{
    probe_held *held = (probe_held *)argument;
    Py_ssize_t i;
    for (i = 0; i < held->count; ++i) {
        cai_array moved;
        cai_array_move(&moved, &held->arrays[i]);
        cai_array_release(&moved);
    }
    return NULL;
}

/* let_go(held): each is moved, and released where it is then; not drained */
static PyObject *probe_let_go(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    (void)module;
    if (!held) return NULL;
    (void)probe_work(held);
    return probe_none();
}

/* elsewhere(held): released on a thread that never saw Python, while this one keeps the GIL */
static PyObject *probe_elsewhere(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    pthread_t thread;
    (void)module;
    if (!held) return NULL;
    if (pthread_create(&thread, NULL, probe_work, held) || pthread_join(thread, NULL))
        return PyErr_Format(PyExc_RuntimeError, "elsewhere: no thread");
    return probe_none();
}

/* begin(held): the same, while this thread goes on; until join() */
static PyObject *probe_begin(PyObject *module, PyObject *capsule)
{
    probe_state *state = probe_of(module);
    probe_held *held = probe_get(capsule);
    if (!held) return NULL;
    if (state->busy || pthread_create(&state->worker, NULL, probe_work, held))
        return PyErr_Format(PyExc_RuntimeError, "begin: busy, or no thread");
    Py_INCREF(capsule);
    state->busy = capsule;
    return probe_none();
}

static PyObject *probe_join(PyObject *module, PyObject *unused)
{
    probe_state *state = probe_of(module);
    (void)unused;
    if (!state->busy) return probe_none();
    Py_BEGIN_ALLOW_THREADS
    (void)pthread_join(state->worker, NULL);
    Py_END_ALLOW_THREADS
    Py_CLEAR(state->busy);
    return probe_none();
}

static PyObject *probe_flag(const cai_array *array, uint32_t flag)
{
    return PyBool_FromLong((array->flags & flag) != 0);
}

static PyObject *probe_describe(const cai_array *a)
{
    char typestr[CAI_TYPESTR_SIZE];
    (void)cai_dtype_typestr(&a->dtype, typestr, CAI_TYPESTR_SIZE);
    return Py_BuildValue(
        "{ss ss si sN sN sK sL sL sL sN sN sN si si si sK si sN sN}", "dtype", cai_dtype_name(a->dtype.code),
        "typestr", typestr, "itemsize", (int)a->dtype.itemsize, "shape", probe_numbers(a->shape, a->ndim),
        "strides", probe_numbers(a->strides, a->ndim), "data", (unsigned long long)a->data, "size",
        (long long)a->size, "lo", (long long)a->lo, "hi", (long long)a->hi, "read_only",
        PyBool_FromLong(!(a->flags & CAI_WRITABLE)), "c_contiguous", probe_flag(a, CAI_C_CONTIGUOUS),
        "f_contiguous", probe_flag(a, CAI_F_CONTIGUOUS), "memory", (int)a->memory, "device", (int)a->device,
        "sync", (int)a->sync, "stream", (unsigned long long)a->stream, "version", (int)a->version, "owned",
        PyBool_FromLong(a->release != NULL), "plain",
        PyBool_FromLong(!a->fields && !a->mask && a->abi == CAI_ABI && !a->event && !a->thread));
}

/* facts(held) -> a list of dictionaries */
static PyObject *probe_facts(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    PyObject *list = held ? PyList_New(held->count) : NULL;
    Py_ssize_t i;
    (void)module;
    for (i = 0; list && i < held->count; ++i) {
        PyObject *facts = probe_describe(&held->arrays[i]);
        if (!facts || PyList_SetItem(list, i, facts)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *probe_live(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong((long long)(probe_of(module)->py.home->holders - 1));
}

static PyObject *probe_drain(PyObject *module, PyObject *unused)
{
    (void)unused;
    cai_python_drain(&probe_of(module)->py);
    return probe_none();
}

/* ---------------------------------------------------------------------------------- an exporter */

/* A cai_array as a Python object with DLPack's two methods: what an author writes. */
typedef struct probe_array {
    PyObject_HEAD
    PyObject *owner; /* of the memory, or None */
    cai_array array, mask;
    cai_python_dlpack_request asked;
    unsigned flags; /* added to those of each export */
    int orders;     /* it makes streams wait, and says so */
} probe_array;

static PyObject *probe_array_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    probe_state *state = (probe_state *)PyType_GetModuleState(Py_TYPE(object));
    probe_array *self = (probe_array *)object;
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(&self->array, args, kwargs, &request)) return NULL;
    self->asked = request;
    if (request.stream && self->orders) request.flags |= CAI_DLPACK_ORDERED;
    request.flags |= self->flags;
    return cai_python_dlpack(&state->py, object, &self->array, &request);
}

/* ask(...) -> (stream, flags, versioned), of the arguments of __dlpack__ */
static PyObject *probe_array_ask(PyObject *object, PyObject *args, PyObject *kwargs)
{
    cai_python_dlpack_request request;
    memset(&request, 0x5a, sizeof request);
    if (cai_python_dlpack_ask(&((probe_array *)object)->array, args, kwargs, &request)) return NULL;
    return Py_BuildValue("KIi", (unsigned long long)request.stream, (unsigned)request.flags,
                         (int)request.versioned);
}

static PyObject *probe_array_asked(PyObject *object, PyObject *unused)
{
    const cai_python_dlpack_request *asked = &((probe_array *)object)->asked;
    (void)unused;
    return Py_BuildValue("KIi", (unsigned long long)asked->stream, (unsigned)asked->flags,
                         (int)asked->versioned);
}

static PyObject *probe_array_device(PyObject *object, PyObject *unused)
{
    (void)unused;
    return cai_python_dlpack_device(&((probe_array *)object)->array);
}

static PyMethodDef probe_array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))probe_array_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", probe_array_device, METH_NOARGS, NULL},
    {"ask", (PyCFunction)(void (*)(void))probe_array_ask, METH_VARARGS | METH_KEYWORDS, NULL},
    {"asked", probe_array_asked, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static void probe_array_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(((probe_array *)object)->owner);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* The dtype of a typestr, or of a code of cai.h. */
static int probe_dtype(PyObject *object, cai_dtype *out)
{
    cai_status status;
    const char *text;
    Py_ssize_t length;
    cai_error err;
    if (PyLong_Check(object)) status = cai_dtype_of((int32_t)PyLong_AsLong(object), out, &err);
    else {
        text = PyUnicode_AsUTF8AndSize(object, &length);
        if (!text) return -1;
        status = cai_dtype_parse(text, (int64_t)length, 0, out, &err);
    }
    if (status) cai_python_raise(&err);
    return status ? -1 : 0;
}

static int probe_array_set(probe_array *self, PyObject *shape, PyObject *strides, PyObject *dtype,
                           unsigned long long address)
{
    int64_t extents[PROBE_AXES], steps[PROBE_AXES];
    int32_t ndim, given;
    cai_dtype type;
    cai_error err;
    if (probe_read_axes(shape, extents, &ndim) || probe_read_axes(strides, steps, &given)) return -1;
    if (probe_dtype(dtype, &type)) return -1;
    if (!cai_array_init_dtype(&self->array, &type, ndim, extents, strides == Py_None ? NULL : steps, address,
                              &err))
        return 0;
    cai_python_raise(&err);
    return -1;
}

/* Array(owner, address, shape, strides, dtype, read_only=, memory=, device=, sync=, stream=, mask=, orders=,
 * flags=, abi=) */
static PyObject *probe_array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char owner[] = "owner", address[] = "address", shape[] = "shape", strides[] = "strides",
                dtype[] = "dtype", read_only[] = "read_only", memory[] = "memory", device[] = "device",
                sync[] = "sync", stream[] = "stream", mask[] = "mask", orders[] = "orders", flags[] = "flags",
                layout[] = "abi";
    static char *names[] = {owner, address, shape, strides, dtype, read_only, memory, device,
                            sync,  stream,  mask,  orders,  flags, layout, NULL};
    PyObject *keep, *extents, *steps, *format;
    unsigned long long at, pending = 0;
    int fixed = 0, kind = CAI_MEMORY_HOST, ordinal = CAI_DEVICE_UNKNOWN, state = CAI_SYNC_NONE;
    int masked = 0, waits = 1;
    unsigned more = 0, abi = CAI_ABI;
    probe_array *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OKO!OO|piiiKppII", names, &keep, &at, &PyTuple_Type,
                                     &extents, &steps, &format, &fixed, &kind, &ordinal, &state, &pending,
                                     &masked, &waits, &more, &abi))
        return NULL;
    self = (probe_array *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    Py_INCREF(keep);
    self->owner = keep;
    self->orders = waits;
    self->flags = more;
    if (probe_array_set(self, extents, steps, format, at)) {
        Py_DECREF(self);
        return NULL;
    }
    if (fixed) self->array.flags &= ~(uint32_t)CAI_WRITABLE;
    self->array.memory = kind;
    self->array.device = ordinal;
    self->array.sync = state;
    self->array.stream = pending;
    self->mask = self->array;
    if (masked) self->array.mask = &self->mask;
    self->array.abi = abi;
    return (PyObject *)self;
}

static void probe_slot(PyType_Slot *slot, int id, void (*function)(void))
{
    slot->slot = id;
    memcpy(&slot->pfunc, &function, sizeof function); /* a function is no object in ISO C */
}

static PyObject *probe_array_type(PyObject *module)
{
    PyType_Slot slots[4];
    PyType_Spec spec;
    memset(slots, 0, sizeof slots);
    memset(&spec, 0, sizeof spec);
    probe_slot(&slots[0], Py_tp_new, (void (*)(void))probe_array_new);
    probe_slot(&slots[1], Py_tp_dealloc, (void (*)(void))probe_array_dealloc);
    slots[2].slot = Py_tp_methods;
    slots[2].pfunc = probe_array_methods;
    spec.name = "cai_probe_dlpack.Array";
    spec.basicsize = (int)sizeof(probe_array);
    spec.flags = Py_TPFLAGS_DEFAULT;
    spec.slots = slots;
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

/* --------------------------------------------------------------------------------- bits of PyTorch */

/* Returns the attribute `negated`. */
static PyObject *probe_is_neg(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyObject_GetAttrString(self, "negated");
}

static PyMethodDef probe_bits_methods[] = {
    {"is_neg", probe_is_neg, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

#if !defined(Py_LIMITED_API)
/* A type that cannot be changed, as the base of PyTorch's tensors. */
static PyTypeObject probe_fixed_bits;
#endif

static int probe_add_bits(PyObject *module)
{
    PyType_Slot slots[2] = {{Py_tp_methods, probe_bits_methods}, {0, NULL}};
    PyType_Spec spec = {"cai_probe_dlpack.Bits", (int)sizeof(PyObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    PyObject *type = PyType_FromSpec(&spec);
    const int failed = !type || PyModule_AddObjectRef(module, "Bits", type);
    Py_XDECREF(type);
    if (failed) return -1;
#if !defined(Py_LIMITED_API)
    probe_fixed_bits.tp_name = "cai_probe_dlpack.FixedBits";
    probe_fixed_bits.tp_basicsize = (Py_ssize_t)sizeof(PyObject);
    probe_fixed_bits.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    probe_fixed_bits.tp_methods = probe_bits_methods;
    return PyModule_AddType(module, &probe_fixed_bits);
#else
    return 0;
#endif
}

/* ------------------------------------------------------------------------------------ the module */

static PyMethodDef probe_methods[] = {
    {"hold", probe_hold, METH_VARARGS, NULL},
    {"facts", probe_facts, METH_O, NULL},
    {"without", probe_without, METH_VARARGS, NULL},
    {"release", probe_release, METH_O, NULL},
    {"let_go", probe_let_go, METH_O, NULL},
    {"elsewhere", probe_elsewhere, METH_O, NULL},
    {"begin", probe_begin, METH_O, NULL},
    {"join", probe_join, METH_NOARGS, NULL},
    {"live", probe_live, METH_NOARGS, NULL},
    {"drain", probe_drain, METH_NOARGS, NULL},
    {"counts", probe_counts, METH_NOARGS, NULL},
    {"capsule", probe_capsule, METH_VARARGS, NULL},
    {"capsule_name", probe_capsule_name, METH_O, NULL},
    {"read", probe_read, METH_O, NULL},
    {"consume", probe_consume, METH_VARARGS, NULL},
    {"table", probe_table, METH_VARARGS, NULL},
    {"set_current", probe_set_current, METH_O, NULL},
    {"set_on_delete", probe_set_on_delete, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static int probe_add_numbers(PyObject *module)
{
#define PROBE_NUMBER(name, value) \
    if (PyModule_AddIntConstant(module, name, value)) return -1;
#define PROBE_CODE(name, kind, bytes, format, text) PROBE_NUMBER(#name, name)
    CAI_DTYPE_LIST(PROBE_CODE)
#undef PROBE_CODE
    PROBE_NUMBER("LENIENT", CAI_LENIENT)
    PROBE_NUMBER("HOST", CAI_PYTHON_HOST)
    PROBE_NUMBER("MASK", CAI_PYTHON_MASK)
    PROBE_NUMBER("BORROW", CAI_PYTHON_BORROW)
    PROBE_NUMBER("READ_ONLY", CAI_DLPACK_READ_ONLY)
    PROBE_NUMBER("DROP_READ_ONLY", CAI_DLPACK_DROP_READ_ONLY)
    PROBE_NUMBER("ORDERED", CAI_DLPACK_ORDERED)
    PROBE_NUMBER("COPIED", CAI_DLPACK_COPIED)
    PROBE_NUMBER("MAJOR", DLPACK_MAJOR_VERSION)
    PROBE_NUMBER("MINOR", DLPACK_MINOR_VERSION)
#undef PROBE_NUMBER
    return 0;
}

static int probe_exec(PyObject *module)
{
    probe_state *state = probe_of(module);
    if (cai_python_dlpack_init(&state->py) || probe_add_numbers(module) || probe_add_bits(module)) return -1;
    state->array_type = probe_array_type(module);
    return state->array_type ? PyModule_AddObjectRef(module, "Array", state->array_type) : -1;
}

static int probe_traverse(PyObject *module, visitproc visit, void *arg)
{
    probe_state *state = probe_of(module);
    if (!state) return 0;
    Py_VISIT(state->array_type);
    return cai_python_traverse(&state->py, visit, arg);
}

static void probe_free_module(void *module)
{
    probe_state *state = probe_of((PyObject *)module);
    Py_CLEAR(state->array_type);
    (void)cai_python_clear(&state->py);
}

static PyModuleDef_Slot probe_slots[] = {{Py_mod_exec, NULL}, {0, NULL}};

static struct PyModuleDef probe_module = {
    PyModuleDef_HEAD_INIT, "cai_probe_dlpack", NULL, (Py_ssize_t)sizeof(probe_state), probe_methods,
    probe_slots, probe_traverse, NULL, probe_free_module};

PyMODINIT_FUNC PyInit_cai_probe_dlpack(void);
PyMODINIT_FUNC PyInit_cai_probe_dlpack(void)
{
    int (*const exec)(PyObject *) = probe_exec;
    memcpy(&probe_slots[0].value, &exec, sizeof exec); /* a function is no object in ISO C */
    return PyModuleDef_Init(&probe_module);
}
