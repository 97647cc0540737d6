/* cai_saxpy.c - a Python module that takes arrays of any library, in order on any stream, and returns its own
 * SPDX-License-Identifier: MIT
 *
 *     import cai_saxpy, numpy
 *     s = cai_saxpy.stream()
 *     x = cai_saxpy.array(numpy.ones(1000, "f4"), s)   # or an array of any library on the device
 *     y = cai_saxpy.array(numpy.ones(1000, "f4"), s)
 *     cai_saxpy.saxpy(2.0, x, y, s)                    # y = 2 x + y, queued on s
 *     numpy.asarray(y)                                 # in simulation only: waits for s, and looks */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER /* with a GPU: without this line, and the table of cai_cuda_load */
#include "cai_python.h"

#include "cai_place.h"

#include "saxpy_device.h"

#include <string.h>

enum { PLACES = 64 }; /* arrays that wait until the work on them has passed */

typedef struct module_state {
    cai_python py;
    cai_event_pool pool;
    cai_keepalive places[PLACES];
    saxpy_device *device;
} module_state;

/* A stream, and what an array begins with. Both need the state until they are gone; the module owns it, and
 * a collection may have taken that from the type by then. Nothing is cleared: their ends need all of it. */
typedef struct object {
    PyObject_HEAD
    PyObject *module;
    PyObject *stream; /* of an array: what was passed. A stream that is exported outlives the array (R81) */
    uint64_t handle;  /* of the stream */
} object;

typedef struct array_object {
    object base;
    cai_array array; /* over memory of ours; data is 0 as long as there is none */
} array_object;

static module_state *state_of(PyObject *self)
{
    return (module_state *)PyModule_GetState(((object *)self)->module);
}

static PyObject *new_object(PyTypeObject *type)
{
    PyObject *module = PyType_GetModule(type);
    PyObject *self = module ? PyType_GenericAlloc(type, 0) : NULL; /* zeros */
    if (self) ((object *)self)->module = Py_NewRef(module);
    return self;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((object *)self)->module);
    Py_VISIT(((object *)self)->stream);
    return 0;
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    const object held = *(object *)self;
    PyObject_GC_Del(self);
    Py_XDECREF(held.stream);
    Py_DECREF(type);
    Py_DECREF(held.module); /* perhaps the last one: the state goes */
}

/* ------------------------------------------------------------------------- the exchange */

/* y = a x + b y on `stream`, in order with what is pending on both, and what follows there in order with it.
 * Owned arrays are given back: at once, or by the keep-alive list. Needs no GIL. */
static cai_status exchange(module_state *state, float a, cai_array *x, float b, cai_array *y, uint64_t stream,
                           cai_error *err)
{
    const cai_cuda *cuda = state->pool.cuda;
    cai_array *const io[2] = {x, y};
    cai_exchange ex;
    cai_status status;
    CAI_TRY(cai_exchange_begin(&ex, &state->pool, io, 2, stream, err));
    status = saxpy_device_launch(state->device, a, x, b, y, stream, err);
    status = cai_exchange_finish(&ex, status, io, 2, err);
    if (x->release || y->release) /* a release failed; when the stream has passed, they may go all the same */
        (void)cuda->stream_synchronize(cuda->self, stream);
    return status;
}

static cai_status check_and_run(module_state *state, float a, cai_array *x, cai_array *y, uint64_t stream,
                                cai_error *err)
{
    const cai_operand input = cai_operand_array(x, "x");
    const cai_cuda *cuda = state->pool.cuda;
    cai_placement place;
    CAI_TRY(cai_keepalive_poll(&state->pool, NULL, err)); /* gives back what has passed meanwhile */
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, CAI_ANY_NDIM,
                       CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP, err));
    CAI_TRY(cai_expect_same_shape(x, "x", y, "y", err));
    CAI_TRY(cai_locate(x, "x", cuda, CAI_LOCATE_BOUNDS, NULL, err));
    CAI_TRY(cai_locate(y, "y", cuda, CAI_LOCATE_BOUNDS, NULL, err));
    CAI_TRY(cai_place(&input, 1, y, CAI_PLACE_INTO, 0, stream, &place, err)); /* and the overlap */
    return exchange(state, a, x, 1, y, stream, err);
}

/* saxpy(a, x, y, stream) */
static PyObject *saxpy(PyObject *module, PyObject *args)
{
    static const char *const names[2] = {"x", "y"};
    module_state *state = (module_state *)PyModule_GetState(module);
    cai_python_options options;
    cai_array v[2];
    cai_error err;
    cai_status status;
    uint64_t stream;
    PyObject *o[3];
    float a;
    memset(&options, 0, sizeof options);
    options.names = names;
    if (!PyArg_ParseTuple(args, "fOOO:saxpy", &a, &o[0], &o[1], &o[2])) return NULL;
    if (cai_python_stream(&state->py, o[2], &stream)) return NULL;
    if (cai_python_import(&state->py, o, 2, &options, v)) return NULL; /* both, or none */
    Py_BEGIN_ALLOW_THREADS /* from here on there are only cai_arrays */
    status = check_and_run(state, a, &v[0], &v[1], stream, &err);
    Py_END_ALLOW_THREADS
    cai_python_release(&state->py, v, 2); /* those that are still owned, and references that can go */
    return status ? cai_python_raise(&err) : Py_NewRef(Py_None);
}

/* ---------------------------------------------------------------------- cai_saxpy.array */

/* Memory for a copy of x, and the copy. Needs no GIL. */
static cai_status fill(module_state *state, cai_array *self, cai_array *x, uint64_t stream, cai_error *err)
{
    const cai_cuda *cuda = state->pool.cuda;
    const uint64_t bytes = (uint64_t)x->nbytes;
    uint64_t address = 0;
    CAI_TRY(cai_keepalive_poll(&state->pool, NULL, err));
    CAI_TRY(cai_expect(x, "source", CAI_FLOAT32, CAI_ANY_NDIM, 0, err));
    if (x->memory != CAI_MEMORY_HOST) CAI_TRY(cai_locate(x, "x", cuda, CAI_LOCATE_BOUNDS, NULL, err));
    if (bytes)
        CAI_TRY(cai_cuda_status(cuda->memory_alloc_async(cuda->self, &address, bytes, stream),
                                "memory_alloc_async", err));
    CAI_TRY(cai_array_init(self, CAI_FLOAT32, x->ndim, x->shape, NULL, (void *)(uintptr_t)address, err));
    CAI_TRY(cai_stream_export(self, &state->pool, stream, NULL, 0, err));
    return exchange(state, 1, x, 0, self, stream, err);
}

/* array(source, stream, read_only=False): a copy of an array on the device, or in host memory, which must not
 * change before the copy has run */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"source", "stream", "read_only", NULL};
    PyObject *source, *stream, *self = new_object(type);
    module_state *state = self ? state_of(self) : NULL;
    array_object *array = (array_object *)self;
    cai_python_options options;
    cai_array x;
    cai_error err;
    cai_status status;
    int read_only = 0;
    memset(&options, 0, sizeof options);
    options.flags = CAI_PYTHON_HOST;
    if (!self) return NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|p:array", names, &source, &stream, &read_only) ||
        cai_python_stream(&state->py, stream, &array->base.handle) ||
        cai_python_import(&state->py, &source, 1, &options, &x)) {
        Py_DECREF(self);
        return NULL;
    }
    array->base.stream = Py_NewRef(stream);
    Py_BEGIN_ALLOW_THREADS
    status = fill(state, &array->array, &x, array->base.handle, &err);
    Py_END_ALLOW_THREADS
    cai_python_release(&state->py, &x, 1);
    cai_array_set_read_only(&array->array, read_only);
    if (!status) return self;
    Py_DECREF(self);
    return cai_python_raise(&err);
}

/* Frees in the order of the stream. A collection calls this before it clears any object of a cycle: the stream
 * object is still whole. */
static void array_finalize(PyObject *self)
{
    const cai_cuda *cuda = state_of(self)->pool.cuda;
    cai_array *array = &((array_object *)self)->array;
    if (array->data) (void)cuda->memory_free_async(cuda->self, array->data, ((object *)self)->handle);
    array->data = 0;
}

static void array_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    array_finalize(self);
    free_object(self);
}

static PyObject *array_cuda_interface(PyObject *self, void *unused)
{
    (void)unused;
    return cai_python_interface(&state_of(self)->py, &((array_object *)self)->array, 3, NULL);
}

/* The exchange of the type in C, for those who know it: no dictionary is made and read. Borrowed: the memory
 * is the object's for as long as that lives. */
static int array_describe(PyObject *self, cai_array *out)
{
    cai_array_borrow(out, &((array_object *)self)->array);
    return 0;
}

static const cai_python_exchange array_exchange = {CAI_ABI, sizeof(cai_python_exchange), array_describe,
                                                   NULL};

/* Device memory is host memory in simulation: NumPy may look at it, once the stream has passed. */
static PyObject *array_host_interface(PyObject *self, void *unused)
{
    const cai_cuda *cuda = state_of(self)->pool.cuda;
    cai_array view;
    cai_error err;
    int32_t failed;
    (void)unused;
    cai_array_borrow(&view, &((array_object *)self)->array);
    Py_BEGIN_ALLOW_THREADS
    failed = cuda->stream_synchronize(cuda->self, ((object *)self)->handle);
    Py_END_ALLOW_THREADS
    if (cai_cuda_status(failed, "stream_synchronize", &err)) return cai_python_raise(&err);
    view.sync = CAI_SYNC_NONE;
    return cai_python_interface(&state_of(self)->py, &view, 3, NULL);
}

/* --------------------------------------------------------------------- cai_saxpy.stream */

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {NULL};
    PyObject *self = PyArg_ParseTupleAndKeywords(args, keywords, ":stream", names) ? new_object(type) : NULL;
    if (!self) return NULL;
    ((object *)self)->handle = saxpy_device_new_stream(state_of(self)->device);
    if (((object *)self)->handle) return self;
    Py_DECREF(self);
    return PyErr_Format(PyExc_RuntimeError, "the stream could not be made");
}

static void stream_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    saxpy_device_drop_stream(state_of(self)->device, ((object *)self)->handle);
    free_object(self);
}

/* The protocol of CUDA's libraries: (version 0, handle). */
static PyObject *stream_protocol(PyObject *self, PyObject *unused)
{
    (void)unused;
    return cai_python_cuda_stream(((object *)self)->handle);
}

/* --------------------------------------------------------------------------- the module */

/* simulation(run=False), for tests: what is alive, waits, is queued, and was called since the last time */
static PyObject *simulation(PyObject *module, PyObject *args)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    cai_error err;
    cai_status status = CAI_OK;
    int all = 0;
    if (!PyArg_ParseTuple(args, "|p:simulation", &all)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    if (all) (void)saxpy_device_run(state->device);
    if (all) status = cai_keepalive_poll(&state->pool, NULL, &err);
    Py_END_ALLOW_THREADS
    if (status) return cai_python_raise(&err);
    cai_python_drain(&state->py);
    return Py_BuildValue("{s:L,s:i,s:i,s:s}", "imported", (long long)state->py.home->holders - 1, "waiting",
                         (int)state->pool.waiting, "queued", (int)saxpy_device_queued(state->device), "calls",
                         saxpy_device_calls(state->device));
}

static PyGetSetDef array_getset[] = {
    {"__cuda_array_interface__", array_cuda_interface, NULL, "version 3, with the stream", NULL},
    {"__array_interface__", array_host_interface, NULL, "in simulation: waits, and shows the memory", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef stream_methods[] = {{"__cuda_stream__", stream_protocol, METH_NOARGS, "(0, handle)"},
                                       {NULL, NULL, 0, NULL}};

static PyType_Slot array_slots[] = {
    {Py_tp_new, (void *)array_new},    {Py_tp_dealloc, (void *)array_dealloc},
    {Py_tp_traverse, (void *)traverse}, {Py_tp_finalize, (void *)array_finalize},
    {Py_tp_getset, array_getset},
    {Py_tp_doc, (void *)"array(source, stream, read_only=False)"}, {0, NULL}};

static PyType_Slot stream_slots[] = {
    {Py_tp_new, (void *)stream_new},    {Py_tp_dealloc, (void *)stream_dealloc},
    {Py_tp_traverse, (void *)traverse}, {Py_tp_methods, stream_methods},
    {Py_tp_doc, (void *)"stream()"},    {0, NULL}};

enum { TYPE_FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC };
static PyType_Spec array_spec = {"cai_saxpy.array", sizeof(array_object), 0, TYPE_FLAGS, array_slots};
static PyType_Spec stream_spec = {"cai_saxpy.stream", sizeof(object), 0, TYPE_FLAGS, stream_slots};

static int add_type(PyObject *module, PyType_Spec *spec, const cai_python_exchange *exchange)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int failed = !type || PyModule_AddType(module, (PyTypeObject *)type);
    if (!failed && exchange) failed = cai_python_offer((PyTypeObject *)type, exchange);
    Py_XDECREF(type);
    return failed;
}

static int exec_module(PyObject *module)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    const cai_cuda *cuda;
    cai_error err;
    if (cai_python_init(&state->py)) return -1;
    state->device = saxpy_device_open();
    cuda = state->device ? saxpy_device_cuda(state->device) : NULL; /* which the pool refuses */
    if (cai_event_pool_init(&state->pool, cuda, state->places, PLACES, 0, &err)) {
        (void)cai_python_raise(&err);
        return -1;
    }
    if (add_type(module, &stream_spec, NULL)) return -1;
    return add_type(module, &array_spec, &array_exchange) ? -1 : 0;
}

/* The state remembers types, those of this module, too. No m_clear: all of it is needed to the end. */
static int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    return state ? cai_python_traverse(&state->py, visit, arg) : 0;
}

/* Runs when no stream and no array is left. */
static void free_module(void *module)
{
    module_state *state = (module_state *)PyModule_GetState((PyObject *)module);
    cai_status status = CAI_OK;
    Py_BEGIN_ALLOW_THREADS /* it waits */
    if (state->pool.cuda) status = cai_keepalive_drain(&state->pool, NULL);
    Py_END_ALLOW_THREADS
    if (state->pool.cuda && !status) status = cai_event_pool_destroy(&state->pool, NULL);
    (void)status; /* nobody is left who could be told */
    (void)cai_python_clear(&state->py);
    saxpy_device_close(state->device);
}

static PyMethodDef functions[] = {
    {"saxpy", saxpy, METH_VARARGS, "saxpy(a, x, y, stream): y = a x + y"},
    {"simulation", simulation, METH_VARARGS, "for tests"},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec_module},
#if defined(Py_mod_multiple_interpreters)
                                   {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
                                   {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "cai_saxpy",
                                        "y = a x + y on arrays of any library, in order on any stream",
                                        sizeof(module_state), functions, slots, traverse_module, NULL,
                                        free_module};

PyMODINIT_FUNC PyInit_cai_saxpy(void);
PyMODINIT_FUNC PyInit_cai_saxpy(void)
{
    return PyModuleDef_Init(&definition);
}
