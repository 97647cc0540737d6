/* probe.c - an extension module that shows what ext/cai_python.h does: nothing but the two headers
 * SPDX-License-Identifier: MIT
 *
 * check_python.py builds it and asks it. A `held` is a capsule with imported arrays. */

#if !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#define CAI_STATIC
#define CAI_IMPLEMENTATION
#include "cai_python.h"

#include <pthread.h>

enum { PROBE_THREADS = 16 };

typedef struct probe_held {
    Py_ssize_t count;
    cai_array *arrays;
} probe_held;

/* Releases every `step`-th array from `first` on, without the GIL. */
typedef struct probe_worker {
    pthread_t thread;
    const probe_held *held;
    Py_ssize_t first, step;
} probe_worker;

typedef struct probe_state {
    cai_python py;
    probe_worker workers[PROBE_THREADS];
    int worker_count;
    PyObject *busy; /* the capsule that the workers release */
} probe_state;

static probe_state *probe_of(PyObject *module)
{
    return (probe_state *)PyModule_GetState(module);
}

/* ---------------------------------------------------------------------------- held arrays */

/* Arrays that are still owned are released, and wait for a drain. */
static void probe_free(probe_held *held)
{
    Py_ssize_t i;
    for (i = 0; i < held->count; ++i) cai_array_release(&held->arrays[i]);
    PyMem_Free(held->arrays);
    PyMem_Free(held);
}

static void probe_end(PyObject *capsule)
{
    probe_free((probe_held *)PyCapsule_GetPointer(capsule, "held"));
}

/* Room for `count` arrays, none of them owned. */
static probe_held *probe_new(Py_ssize_t count)
{
    probe_held *held = (probe_held *)PyMem_Calloc(1, sizeof *held);
    if (held) held->arrays = (cai_array *)PyMem_Calloc((size_t)count + 1, sizeof *held->arrays);
    if (held && held->arrays) return held;
    PyMem_Free(held);
    PyErr_NoMemory();
    return NULL;
}

static PyObject *probe_capsule(probe_held *held, Py_ssize_t count)
{
    PyObject *capsule = PyCapsule_New(held, "held", probe_end);
    held->count = count;
    if (!capsule) probe_free(held);
    return capsule;
}

static probe_held *probe_get(PyObject *capsule)
{
    return (probe_held *)PyCapsule_GetPointer(capsule, "held");
}

/* hold(objects: tuple, flags: int, bare: bool) -> held. bare: options are NULL. */
static PyObject *probe_hold(PyObject *module, PyObject *args)
{
    cai_python *const py = &probe_of(module)->py;
    cai_python_options options = {0, 0, 0, NULL};
    PyObject *tuple, **objects;
    int bare = 0, failed;
    Py_ssize_t i, count;
    probe_held *held;
    if (!PyArg_ParseTuple(args, "O!I|p", &PyTuple_Type, &tuple, &options.flags, &bare)) return NULL;
    count = PyTuple_Size(tuple);
    held = probe_new(count);
    if (!held) return NULL;
    objects = (PyObject **)PyMem_Calloc((size_t)count + 1, sizeof *objects);
    for (i = 0; objects && i < count; ++i) objects[i] = PyTuple_GetItem(tuple, i);
    failed = !objects;
    if (failed) PyErr_NoMemory();
    else failed = cai_python_import(py, objects, count, bare ? NULL : &options, held->arrays);
    PyMem_Free(objects);
    if (!failed) return probe_capsule(held, count);
    probe_free(held); /* what failed left nothing owned; if it did, that shows in live() */
    return NULL;
}

/* release(held): on this thread, and drained. */
static PyObject *probe_release(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    if (!held) return NULL;
    cai_python_release(&probe_of(module)->py, held->arrays, held->count);
    Py_RETURN_NONE;
}

/* let_go(held): each array is moved, and released where it is then; not drained. */
static PyObject *probe_let_go(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    cai_array moved;
    Py_ssize_t i;
    (void)module;
    for (i = 0; held && i < held->count; ++i) {
        cai_array_move(&moved, &held->arrays[i]);
        cai_array_release(&moved);
    }
    if (!held) return NULL;
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------------- other threads */

static void *probe_work(void *argument)
{
    const probe_worker *worker = (const probe_worker *)argument;
    Py_ssize_t i;
    for (i = worker->first; i < worker->held->count; i += worker->step)
        cai_array_release(&worker->held->arrays[i]);
    return NULL;
}

/* begin(held, threads): threads that have never seen Python release it. */
static PyObject *probe_begin(PyObject *module, PyObject *args)
{
    probe_state *state = probe_of(module);
    PyObject *capsule;
    probe_held *held;
    int i, threads;
    if (!PyArg_ParseTuple(args, "Oi", &capsule, &threads)) return NULL;
    held = probe_get(capsule);
    if (!held) return NULL;
    if (state->busy || threads < 1 || threads > PROBE_THREADS) {
        PyErr_SetString(PyExc_ValueError, "begin: busy, or no such number of threads");
        return NULL;
    }
    for (i = 0; i < threads; ++i) {
        probe_worker *worker = &state->workers[i];
        worker->held = held;
        worker->first = i;
        worker->step = threads;
        if (pthread_create(&worker->thread, NULL, probe_work, worker)) break;
        state->worker_count = i + 1;
    }
    Py_INCREF(capsule);
    state->busy = capsule;
    return PyLong_FromLong(state->worker_count);
}

/* join(): waits for them. */
static PyObject *probe_join(PyObject *module, PyObject *unused)
{
    probe_state *state = probe_of(module);
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    while (state->worker_count > 0) (void)pthread_join(state->workers[--state->worker_count].thread, NULL);
    Py_END_ALLOW_THREADS
    Py_CLEAR(state->busy);
    Py_RETURN_NONE;
}

/* --------------------------------------------------------------------------------- facts */

static PyObject *probe_numbers(const int64_t *values, int32_t count)
{
    PyObject *list = PyList_New(count);
    int32_t i;
    for (i = 0; list && i < count; ++i) {
        PyObject *number = PyLong_FromLongLong((long long)values[i]);
        if (!number || PyList_SetItem(list, i, number)) Py_CLEAR(list);
    }
    return list;
}

static const char *probe_overlap_name(uint32_t flags)
{
    if (flags & CAI_NO_SELF_OVERLAP) return "no";
    return flags & CAI_SELF_OVERLAP ? "yes" : "undecided";
}

static const char *probe_sync_name(int32_t sync)
{
    if (sync == CAI_SYNC_NONE) return "none";
    return sync == CAI_SYNC_STREAM ? "stream" : sync == CAI_SYNC_UNKNOWN ? "unknown" : "?";
}

static PyObject *probe_none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *probe_flag(const cai_array *array, uint32_t flag)
{
    return PyBool_FromLong((array->flags & flag) != 0);
}

/* The keys and values of cai_inspect. */
static PyObject *probe_describe(const cai_array *a)
{
    const int bits = a->dtype.code == CAI_BITFIELD;
    const int64_t extent[2] = {a->lo, a->hi};
    char typestr[CAI_TYPESTR_SIZE];
    (void)cai_dtype_typestr(&a->dtype, typestr, CAI_TYPESTR_SIZE);
    return Py_BuildValue(
        "{sO sN sL sL sN sN sN sN sN sN sN ss si sN ss ss si ss sN sK sN sN si}", "ok", Py_True, "itemsize",
        bits ? probe_none() : PyLong_FromLongLong((long long)a->dtype.itemsize), "size", (long long)a->size,
        "nbytes", (long long)a->nbytes, "strides", bits ? probe_none() : probe_numbers(a->strides, a->ndim),
        "c_contiguous", probe_flag(a, CAI_C_CONTIGUOUS), "f_contiguous", probe_flag(a, CAI_F_CONTIGUOUS),
        "extent", probe_numbers(extent, 2), "read_only", PyBool_FromLong(!(a->flags & CAI_WRITABLE)),
        "byte_swapped", probe_flag(a, CAI_BYTE_SWAPPED), "aligned", probe_flag(a, CAI_ALIGNED),
        "self_overlap", probe_overlap_name(a->flags), "ndim", (int)a->ndim, "shape",
        probe_numbers(a->shape, a->ndim), "typestr", typestr, "dtype", cai_dtype_name(a->dtype.code),
        "version", (int)a->version, "sync", probe_sync_name(a->sync), "stream",
        a->sync == CAI_SYNC_STREAM ? PyLong_FromUnsignedLongLong(a->stream) : probe_none(), "data",
        (unsigned long long)a->data, "fields", a->fields ? PyBool_FromLong(1) : probe_none(), "mask",
        a->mask ? probe_describe(a->mask) : probe_none(), "memory", (int)a->memory);
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

/* interface(held, index, version, mask = None): the dictionary of one of them */
static PyObject *probe_interface(PyObject *module, PyObject *args)
{
    PyObject *capsule, *mask = Py_None;
    Py_ssize_t index;
    int version;
    probe_held *held;
    if (!PyArg_ParseTuple(args, "Oni|O", &capsule, &index, &version, &mask)) return NULL;
    held = probe_get(capsule);
    if (!held) return NULL;
    if (index < 0 || index >= held->count) {
        PyErr_SetString(PyExc_IndexError, "interface: no such array");
        return NULL;
    }
    return cai_python_interface(&probe_of(module)->py, &held->arrays[index], version,
                                mask == Py_None ? NULL : mask);
}

/* ------------------------------------------------------------------------------- the rest */

static PyObject *probe_stream(PyObject *module, PyObject *object)
{
    uint64_t stream = 12345;
    if (!cai_python_stream(&probe_of(module)->py, object, &stream))
        return PyLong_FromUnsignedLongLong(stream);
    if (stream != 12345) PyErr_SetString(PyExc_AssertionError, "a stream was stored though it failed");
    return NULL;
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
    Py_RETURN_NONE;
}

/* raise_(code, message) */
static PyObject *probe_raise(PyObject *module, PyObject *args)
{
    cai_error err;
    const char *message;
    Py_ssize_t length;
    memset(&err, 0, sizeof err);
    (void)module;
    if (!PyArg_ParseTuple(args, "iy#", &err.code, &message, &length)) return NULL;
    if (length >= (Py_ssize_t)sizeof err.message) length = (Py_ssize_t)sizeof err.message - 1;
    memcpy(err.message, message, (size_t)length);
    return cai_python_raise(&err);
}

/* own_state(object): from init over an import to clear; what clear said before and after the release */
static PyObject *probe_own_state(PyObject *module, PyObject *object)
{
    cai_python py;
    cai_array array;
    int64_t before, after;
    (void)module;
    memset(&py, 0, sizeof py);
    if (cai_python_clear(NULL) || cai_python_clear(&py) || cai_python_init(&py)) return NULL;
    if (cai_python_import(&py, &object, 1, NULL, &array)) {
        (void)cai_python_clear(&py);
        return NULL;
    }
    before = cai_python_clear(&py);
    cai_array_release(&array);
    after = cai_python_clear(&py);
    return Py_BuildValue("LL", (long long)before, (long long)after);
}

static PyMethodDef probe_methods[] = {
    {"hold", probe_hold, METH_VARARGS, NULL},
    {"facts", probe_facts, METH_O, NULL},
    {"interface", probe_interface, METH_VARARGS, NULL},
    {"release", probe_release, METH_O, NULL},
    {"let_go", probe_let_go, METH_O, NULL},
    {"begin", probe_begin, METH_VARARGS, NULL},
    {"join", probe_join, METH_NOARGS, NULL},
    {"stream", probe_stream, METH_O, NULL},
    {"live", probe_live, METH_NOARGS, NULL},
    {"drain", probe_drain, METH_NOARGS, NULL},
    {"raise_", probe_raise, METH_VARARGS, NULL},
    {"own_state", probe_own_state, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

/* statuses: number -> (name, exception, meaning) */
static int probe_add_statuses(PyObject *module)
{
    PyObject *table = PyDict_New(), *key, *value;
    int failed = !table;
#define PROBE_STATUS(name, number, exception, meaning)                                                       \
    key = PyLong_FromLong(number);                                                                           \
    value = Py_BuildValue("sOs", #name, PyExc_##exception, meaning);                                         \
    failed = failed || !key || !value || PyDict_SetItem(table, key, value);                                  \
    Py_XDECREF(key);                                                                                         \
    Py_XDECREF(value);
    CAI_STATUS_LIST(PROBE_STATUS)
#undef PROBE_STATUS
    failed = failed || PyModule_AddObjectRef(module, "statuses", table);
    Py_XDECREF(table);
    return failed;
}

static int probe_exec(PyObject *module)
{
    if (cai_python_init(&probe_of(module)->py)) return -1;
    if (PyModule_AddIntConstant(module, "LENIENT", CAI_LENIENT)) return -1;
    if (PyModule_AddIntConstant(module, "HOST", CAI_PYTHON_HOST)) return -1;
    if (PyModule_AddIntConstant(module, "MASK", CAI_PYTHON_MASK)) return -1;
    return probe_add_statuses(module) ? -1 : 0;
}

static void probe_free_module(void *module)
{
    (void)cai_python_clear(&probe_of((PyObject *)module)->py);
}

static PyModuleDef_Slot probe_slots[] = {{Py_mod_exec, NULL}, {0, NULL}};

static struct PyModuleDef probe_module = {
    PyModuleDef_HEAD_INIT, "cai_probe", NULL, (Py_ssize_t)sizeof(probe_state), probe_methods, probe_slots,
    NULL, NULL, probe_free_module};

PyMODINIT_FUNC PyInit_cai_probe(void);
PyMODINIT_FUNC PyInit_cai_probe(void)
{
    int (*const exec)(PyObject *) = probe_exec;
    memcpy(&probe_slots[0].value, &exec, sizeof exec); /* a function is no object in ISO C */
    return PyModuleDef_Init(&probe_module);
}
