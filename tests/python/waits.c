/* waits.c - an extension module whose host functions need the GIL while calls of cai wait, for check_waits.py
 * SPDX-License-Identifier: MIT
 *
 * A host function of CUDA runs on a thread of the driver. block(stream) queues one that waits until another
 * thread has had the GIL, for 2 seconds at most. All calls are made with the GIL. counts() says how often a
 * host function was called and was late, and how often the headers let the GIL go. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <pthread.h>
#include <time.h>

static int let_go;
static PyThreadState *counted_save(void)
{
    ++let_go;
    return PyEval_SaveThread();
}
#define PyEval_SaveThread counted_save

#define CAI_STATIC
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"

#include <dlpack/dlpack.h>

#include "cai_python_dlpack.h"

#include "cai_sim.c"

enum { PLACES = 2 };

static cai_python py;
static cai_sim *sim;
static cai_event_pool pool;
static cai_keepalive places[PLACES];
static uint64_t memory;

/* ------------------------------------------------------------- host functions */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_had = PTHREAD_COND_INITIALIZER;
static int had, called, late; /* had: the last host function whose thread has had the GIL */

static void *take_the_gil(void *number)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    PyGILState_Release(state);
    pthread_mutex_lock(&lock);
    had = (int)(intptr_t)number;
    pthread_cond_signal(&has_had);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void host_function(void *unused)
{
    struct timespec until;
    pthread_t thread;
    static int number;
    int error = 0;
    (void)unused;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    pthread_mutex_lock(&lock);
    ++called;
    ++number;
    if (!pthread_create(&thread, NULL, take_the_gil, (void *)(intptr_t)number)) (void)pthread_detach(thread);
    while (had != number && error != ETIMEDOUT) error = pthread_cond_timedwait(&has_had, &lock, &until);
    late += had != number;
    pthread_mutex_unlock(&lock);
}

/* block(stream) */
static PyObject *waits_block(PyObject *module, PyObject *stream)
{
    const uint64_t number = PyLong_AsUnsignedLongLong(stream);
    const int32_t error = cai_sim_host_function(sim, number, "host function", host_function, NULL, NULL, 0);
    (void)module;
    return error ? PyErr_Format(PyExc_RuntimeError, "host_function: error %d", (int)error) : Py_NewRef(Py_None);
}

/* --------------------------------------------------------------------- arrays */
static uint64_t slow[256]; /* the streams of owners, by the number of the owner */
static int owners, released;

/* Waits for a stream, as the free of a library may, and never for the GIL. */
static void release_slowly(cai_array *array)
{
    const uint64_t stream = *(const uint64_t *)array->owner;
    array->release = NULL;
    ++released;
    if (stream) (void)cai_sim_stream_synchronize(sim, stream);
}

static void make(cai_array *array, int32_t sync, uint64_t stream, uint64_t waits_for)
{
    const int64_t shape[1] = {16};
    cai_error err;
    cai_status status = cai_array_init(array, CAI_FLOAT32, 1, shape, NULL, (void *)(uintptr_t)memory, &err);
    (void)status;
    array->memory = CAI_MEMORY_DEVICE;
    array->device = 0;
    array->sync = sync;
    array->stream = sync == CAI_SYNC_STREAM ? stream : 0;
    slow[owners] = waits_for;
    cai_array_own(array, release_slowly, &slow[owners++ % 256]);
}

/* release(waits_for): of an array of other code */
static PyObject *waits_release(PyObject *module, PyObject *stream)
{
    cai_array array;
    (void)module;
    make(&array, CAI_SYNC_NONE, 0, PyLong_AsUnsignedLongLong(stream));
    cai_python_release(&py, &array, 1);
    return Py_NewRef(Py_None);
}

/* release_own(): of an array that holds an object */
static PyObject *waits_release_own(PyObject *module, PyObject *object)
{
    cai_array array;
    make(&array, CAI_SYNC_NONE, 0, 0);
    array.release = NULL;
    (void)module;
    if (cai_priv_py_own_object(&py, object, &array)) return NULL;
    cai_python_release(&py, &array, 1);
    return Py_NewRef(Py_None);
}

/* release_after(stream, count, waits_for) */
static PyObject *waits_release_after(PyObject *module, PyObject *args)
{
    unsigned long long stream, waits_for;
    cai_array arrays[4];
    int count, i;
    (void)module;
    if (!PyArg_ParseTuple(args, "KiK:release_after", &stream, &count, &waits_for)) return NULL;
    for (i = 0; i < count; ++i) make(&arrays[i], CAI_SYNC_STREAM, stream, waits_for);
    if (cai_python_release_after(&py, &pool, arrays, count, stream)) return NULL;
    return Py_NewRef(Py_None);
}

/* export(object, sync, stream, consumer, size=16) -> a capsule, which is dropped unused */
static PyObject *waits_export(PyObject *module, PyObject *args)
{
    unsigned long long stream, consumer;
    cai_python_dlpack_request request;
    PyObject *object;
    cai_array array;
    int sync, size = 16;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiKK|i:export", &object, &sync, &stream, &consumer, &size)) return NULL;
    make(&array, sync, stream, 0);
    array.size = array.shape[0] = size;
    array.nbytes = array.hi = 4 * size;
    if (!size) array.data = 0;
    array.release = NULL;
    memset(&request, 0, sizeof request);
    request.versioned = 1;
    request.consumer = consumer;
    return cai_python_dlpack_ordered(&py, &pool, object, &array, &request);
}

/* Array(): its exchange describes it, borrowed */
static int describe(PyObject *self, cai_array *out)
{
    (void)self;
    make(out, CAI_SYNC_NONE, 0, 0);
    out->release = NULL;
    return 0;
}
static const cai_python_exchange exchange = {CAI_ABI, sizeof exchange, describe, NULL};
static PyType_Slot array_slots[] = {{0, NULL}};
static PyType_Spec array_spec = {"waits.Array", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, array_slots};

/* take(object): imports and releases */
static PyObject *waits_take(PyObject *module, PyObject *object)
{
    cai_python_options options;
    cai_array array;
    (void)module;
    memset(&options, 0, sizeof options);
    if (cai_python_import(&py, &object, 1, &options, &array)) return NULL;
    cai_python_release(&py, &array, 1);
    return Py_NewRef(Py_None);
}

/* ----------------------------------------------------------------- the module */
static PyObject *waits_stream(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(cai_sim_stream_create(sim, 1));
}

/* mode(mode): of the pool */
static PyObject *waits_mode(PyObject *module, PyObject *mode)
{
    cai_error err;
    (void)module;
    if (cai_event_pool_set_modes(&pool, (int32_t)PyLong_AsLong(mode), CAI_MODE_EVENT, &err))
        return cai_python_raise(&err);
    return Py_NewRef(Py_None);
}

/* pass(stream): its work is done, without the GIL, and nothing is given back */
static PyObject *waits_pass(PyObject *module, PyObject *stream)
{
    const uint64_t number = PyLong_AsUnsignedLongLong(stream);
    (void)module;
    Py_BEGIN_ALLOW_THREADS
    (void)cai_sim_stream_synchronize(sim, number);
    Py_END_ALLOW_THREADS
    --let_go;
    return Py_NewRef(Py_None);
}

/* counts() -> (called, late, let go, released), since the last time; then all work is done, and the list empty */
static PyObject *waits_counts(PyObject *module, PyObject *unused)
{
    PyObject *const made = Py_BuildValue("(iiii)", called, late, let_go, released);
    cai_status status;
    cai_error err;
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = cai_keepalive_drain(&pool, &err);
    Py_END_ALLOW_THREADS
    cai_python_drain(&py);
    called = late = let_go = released = 0;
    return status ? cai_python_raise(&err) : made;
}

static int waits_begin(PyObject *module)
{
    cai_error err;
    PyObject *const type = PyType_FromSpec(&array_spec);
    sim = cai_sim_create(1);
    if (!sim || !type || cai_python_dlpack_init(&py)) return -1;
    if (cai_python_offer((PyTypeObject *)type, &exchange) || PyModule_AddObjectRef(module, "Array", type)) return -1;
    Py_DECREF(type);
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    if (!cai_event_pool_init(&pool, cai_sim_cuda(sim), places, PLACES, 0, &err)) return 0;
    (void)cai_python_raise(&err);
    return -1;
}

static PyMethodDef functions[] = {
    {"block", waits_block, METH_O, NULL},
    {"release", waits_release, METH_O, NULL},
    {"release_own", waits_release_own, METH_O, NULL},
    {"release_after", waits_release_after, METH_VARARGS, NULL},
    {"take", waits_take, METH_O, NULL},
    {"export", waits_export, METH_VARARGS, NULL},
    {"stream", waits_stream, METH_NOARGS, NULL},
    {"mode", waits_mode, METH_O, NULL},
    {"pass_", waits_pass, METH_O, NULL},
    {"counts", waits_counts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)waits_begin},
#if defined(Py_mod_gil)
                                   {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                   {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "waits", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_waits(void)
{
    return PyModuleDef_Init(&definition);
}
