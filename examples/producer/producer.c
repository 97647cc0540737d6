/* producer.c - an array type of one's own in Python: copy it, rename it, and change what is yours
 * SPDX-License-Identifier: MIT
 *
 *     import producer
 *     x = producer.empty((2, 3), "<f4", s)  # device memory; s: an object with __cuda_stream__, or an int
 *     y = producer.asarray(obj, s)          # the memory of anybody's array; s waits for its pending work
 *     x[1:, ::2]                            # the same memory; every library takes any of them
 *     producer.drain()                      # waits for what was let go, if memory is short
 *
 * The CUDA driver is loaded at run time. The context is the primary one of device 0, as that of the CUDA
 * Runtime and of the other libraries. The module retains it from its import until it and all arrays are gone.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_emm.h"

#include "cai_place.h"

#include "cai_python_dlpack.h"

enum { DEVICE = 0, PLACES = 64 }; /* arrays of other libraries that wait for a stream */

typedef struct module_state {
    cai_python py;
    cai_cuda_driver driver;
    uint64_t context;     /* retained; 0: not yet */
    cai_emm_pool memory;  /* of CUDA; it keeps freed memory for the next array */
    cai_emm_hooks hooks;  /* over it; a table of your own goes here */
    cai_event_pool pool;  /* made once, as it keeps events */
    cai_keepalive places[PLACES];
    PyTypeObject *type;
} module_state;

typedef struct array_object {
    PyObject_HEAD
    PyObject *module; /* its state must outlive the array */
    PyObject *stream; /* what was passed: a stream that is exported outlives the array (R81) */
    PyObject *base;   /* of a view: the array whose memory it is */
    cai_array array;  /* owned, or the view of an owned one */
} array_object;

static module_state *state_of(PyObject *self)
{
    return (module_state *)PyModule_GetState(((array_object *)self)->module);
}

/* -------------------------------------------------------------- making and giving back */

/* Ours frees behind the work in its stream, without a wait. The memory of others goes when the stream has
 * passed. Without the GIL, as the host may wait. Nothing ends a capture for it: then the memory stays. */
static cai_status give_back(module_state *state, cai_array *array, cai_error *err)
{
    cai_array *const io[1] = {array};
    cai_exchange ex;
    if (array->flags & CAI_ORDERED_FREE || array->sync == CAI_SYNC_NONE || !array->release) {
        cai_array_release(array); /* does nothing for a view */
        return CAI_OK;
    }
    if (array->sync == CAI_SYNC_STREAM)
        return cai_keepalive_push(array, &state->pool, array->stream, err);
    CAI_TRY(cai_exchange_begin(&ex, &state->pool, io, 1, CAI_STREAM_LEGACY, err)); /* waits for the context */
    return cai_exchange_finish(&ex, CAI_OK, io, 1, err);
}

/* An exception for which there is no caller. One that is set stays. */
static void report(const cai_error *err, PyTypeObject *type)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    (void)cai_python_raise(err);
    PyErr_WriteUnraisable((PyObject *)type);
    PyErr_Restore(kind, value, trace);
}

/* A new object, which takes over `array`. On failure an owned array is still the caller's. */
static PyObject *wrap(PyObject *module, PyObject *stream, PyObject *base, cai_array *array)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    array_object *self;
    if (!state->type) return PyErr_Format(PyExc_RuntimeError, "the module was collected");
    self = (array_object *)PyType_GenericAlloc(state->type, 0);
    if (!self) return NULL;
    self->module = Py_NewRef(module);
    self->stream = Py_XNewRef(stream);
    self->base = Py_XNewRef(base);
    cai_array_move(&self->array, array);
    return (PyObject *)self;
}

static int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((array_object *)self)->module);
    Py_VISIT(((array_object *)self)->stream);
    Py_VISIT(((array_object *)self)->base);
    return 0;
}

/* Only a collection calls this. It may have ended the stream object, which is garbage, too. So the stream is
 * named no more, and the host waits for the context instead. */
static void array_finalize(PyObject *self)
{
    cai_array *array = &((array_object *)self)->array;
    if (array->sync == CAI_SYNC_NONE) return;
    array->sync = CAI_SYNC_UNKNOWN;
    array->stream = 0;
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    array_object *object = (array_object *)self; /* there is no tp_clear: the end needs all of it */
    PyObject *module = object->module, *stream = object->stream, *base = object->base;
    module_state *state = state_of(self);
    cai_error err;
    cai_status status;
    PyObject_GC_UnTrack(self);
    Py_BEGIN_ALLOW_THREADS
    status = give_back(state, &object->array, &err);
    Py_END_ALLOW_THREADS
    if (status) report(&err, type);
    PyObject_GC_Del(self);
    Py_XDECREF(base);
    Py_XDECREF(stream); /* behind the free */
    Py_DECREF(type);
    Py_DECREF(module); /* perhaps the last one: the state goes */
}

/* ------------------------------------------------------------------- empty and asarray */

static cai_status allocate(module_state *state, const cai_array *like, uint64_t stream, cai_array *out,
                           cai_error *err)
{
    const cai_dtype *dtype = &like->dtype;
    CAI_TRY(cai_emm_array(out, &state->pool, &state->hooks, dtype->code, like->ndim, like->shape, stream,
                          err));
    out->dtype = *dtype; /* the unit of a time, too */
    return CAI_OK;
}

/* The stream waits for what is pending on the array, which is then an array of that stream. */
static cai_status take(module_state *state, uint64_t stream, cai_array *array, cai_error *err)
{
    CAI_TRY(cai_expect(array, "obj", CAI_ANY_DTYPE, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
    CAI_TRY(cai_stream_remember_thread(array, &state->pool, err));
    CAI_TRY(cai_locate(array, "obj", state->pool.cuda, CAI_LOCATE_BOUNDS, NULL, err));
    if (array->size) return cai_migrate(array, &state->pool, stream, err);
    array->memory = CAI_MEMORY_DEVICE; /* CUDA cannot tell for an empty one */
    array->device = DEVICE;
    array->sync = CAI_SYNC_NONE;
    return CAI_OK;
}

/* With our context current and without the GIL: a new array `like` another one, or `array` is taken. */
static cai_status make(module_state *state, const cai_array *like, uint64_t stream, cai_array *array,
                       cai_error *err)
{
    const cai_cuda *cuda = state->pool.cuda;
    cai_status status;
    CAI_TRY(cai_keepalive_poll(&state->pool, NULL, err)); /* gives back what has passed meanwhile */
    CAI_TRY(cai_cuda_status(cuda->context_push(cuda->self, state->context), "context_push", err));
    status = like ? allocate(state, like, stream, array, err) : take(state, stream, array, err);
    if (status == CAI_ERR_OUT_OF_MEMORY && like) {
        (void)!cai_keepalive_drain(&state->pool, NULL); /* what a capture holds may stay */
        status = allocate(state, like, stream, array, err);
    }
    (void)cuda->context_pop(cuda->self);
    return status;
}

/* The object. On failure the array is given back. */
static PyObject *make_object(PyObject *module, PyObject *stream, const cai_array *like, uint64_t number,
                             cai_array *array)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    PyObject *self = NULL;
    cai_error err;
    cai_status status;
    Py_BEGIN_ALLOW_THREADS
    status = make(state, like, number, array, &err);
    Py_END_ALLOW_THREADS
    if (!status) self = wrap(module, stream, NULL, array);
    else (void)cai_python_raise(&err);
    if (self) cai_python_drain(&state->py); /* drops the references of what the poll gave back */
    else if (!status || !like) cai_python_release(&state->py, array, 1); /* nothing of ours is queued on it */
    return self;
}

/* empty(shape, dtype, stream): the dtype is a typestr, such as numpy.dtype("f4").str */
static PyObject *empty(PyObject *module, PyObject *args)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    int64_t extents[CAI_MAX_NDIM];
    PyObject *shape, *stream;
    const char *typestr;
    cai_array like, made;
    cai_dtype dtype;
    cai_error err;
    uint64_t number;
    Py_ssize_t i = 0, length;
    if (!PyArg_ParseTuple(args, "O!s#O:empty", &PyTuple_Type, &shape, &typestr, &length, &stream))
        return NULL;
    if (PyTuple_Size(shape) > CAI_MAX_NDIM) return PyErr_Format(PyExc_ValueError, "too many dimensions");
    for (; i < PyTuple_Size(shape) && !PyErr_Occurred(); ++i)
        extents[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred() || cai_python_stream(&state->py, stream, &number)) return NULL;
    if (cai_dtype_parse(typestr, length, 0, &dtype, &err) ||
        cai_array_init_dtype(&like, &dtype, (int32_t)i, extents, NULL, 256, &err)) /* no memory yet */
        return cai_python_raise(&err);
    return make_object(module, stream, &like, number, &made);
}

/* asarray(obj, stream): what obj's library does later is not behind `stream`. Order that, as with CuPy. */
static PyObject *asarray(PyObject *module, PyObject *args)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    cai_python_options options = {0, 0, 0, NULL};
    PyObject *object, *stream;
    cai_array array;
    if (!PyArg_ParseTuple(args, "OO:asarray", &object, &stream)) return NULL;
    if (cai_python_stream(&state->py, stream, &options.stream)) return NULL;
    if (cai_python_import(&state->py, &object, 1, &options, &array)) return NULL;
    return make_object(module, stream, NULL, options.stream, &array);
}

/* drain(): waits for what was let go while work was pending, and frees it */
static PyObject *drain(PyObject *module, PyObject *unused)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    cai_error err;
    cai_status status;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = cai_keepalive_drain(&state->pool, &err);
    Py_END_ALLOW_THREADS
    cai_python_drain(&state->py);
    return status ? cai_python_raise(&err) : Py_NewRef(Py_None);
}

/* ----------------------------------------------------------------- what others ask for */

static PyObject *array_interface(PyObject *self, void *unused)
{
    (void)unused;
    return cai_python_interface(&state_of(self)->py, &((array_object *)self)->array, 3, NULL);
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const cai_array *array = &((array_object *)self)->array;
    module_state *state = state_of(self);
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(array, args, kwargs, &request)) return NULL;
    return cai_python_dlpack_ordered(&state->py, &state->pool, self, array, &request);
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return cai_python_dlpack_device(&((array_object *)self)->array);
}

/* The exchange in C. Borrowed: the memory is the object's for as long as that lives. */
static int array_describe(PyObject *self, cai_array *out)
{
    cai_array_borrow(out, &((array_object *)self)->array);
    return 0;
}

/* What a function in C returns as an array of this type. Its maker promises that the stream lives (R81). */
static PyObject *array_adopt(PyTypeObject *type, cai_array *array)
{
    PyObject *module = PyType_GetModule(type);
    cai_error err;
    if (!module) return NULL;
    if (cai_expect(array, "array", CAI_ANY_DTYPE, CAI_ANY_NDIM, CAI_ON_DEVICE, &err))
        return PyErr_Format(PyExc_BufferError, "%s", err.message);
    if (array->release && (array->sync == CAI_SYNC_NONE || array->sync == CAI_SYNC_STREAM))
        return wrap(module, NULL, NULL, array);
    return PyErr_Format(PyExc_BufferError, "the array is borrowed, or its work is not in a stream");
}

static const cai_python_exchange array_exchange = {CAI_ABI, sizeof(cai_python_exchange), array_describe,
                                                   array_adopt};

/* DLPack's exchange in C asks where we work now. We have no current stream, so that is the default one. */
static int current_stream(cai_dl_device_type type, int32_t device, void **out)
{
    (void)type;
    (void)device;
    *out = NULL;
    return 0;
}

CAI_PYTHON_DLPACK_TABLE(dlpack_table, current_stream)

/* ---------------------------------------------------------------- what Python asks for */

/* shape, or strides in bytes */
static PyObject *array_extents(PyObject *self, void *strides)
{
    const cai_array *array = &((array_object *)self)->array;
    const int64_t *numbers = strides ? array->strides : array->shape;
    PyObject *tuple = PyTuple_New(array->ndim);
    int32_t i;
    for (i = 0; tuple && i < array->ndim; ++i) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(numbers[i]));
    return tuple;
}

static PyObject *array_dtype(PyObject *self, void *unused)
{
    char text[CAI_TYPESTR_SIZE];
    (void)unused;
    (void)cai_dtype_typestr(&((array_object *)self)->array.dtype, text, sizeof text);
    return PyUnicode_FromString(text);
}

static PyObject *array_device(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((array_object *)self)->array.device);
}

static PyObject *array_repr(PyObject *self)
{
    char text[512];
    (void)cai_array_text(&((array_object *)self)->array, text, sizeof text);
    return PyUnicode_FromFormat("<producer.Array %s>", text);
}

static Py_ssize_t array_length(PyObject *self)
{
    const cai_array *array = &((array_object *)self)->array;
    if (array->ndim) return (Py_ssize_t)array->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of an array without dimensions");
    return -1;
}

/* One index or slice along *axis of the view, which it changes. Returns 0, or -1 with an exception set. */
static int cut(cai_array *view, int32_t *axis, PyObject *item)
{
    Py_ssize_t start, stop, step;
    cai_error err;
    cai_status status;
    if (*axis == view->ndim) {
        PyErr_SetString(PyExc_IndexError, "too many indices");
        return -1;
    }
    if (PySlice_Check(item)) {
        if (PySlice_Unpack(item, &start, &stop, &step)) return -1;
        stop = PySlice_AdjustIndices((Py_ssize_t)view->shape[*axis], &start, &stop, step);
        status = cai_view_slice(view, (*axis)++, start, stop, step, view, &err);
    } else {
        start = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (start == -1 && PyErr_Occurred()) return -1;
        status = cai_view_index(view, *axis, start, view, &err);
    }
    if (status) PyErr_SetString(PyExc_IndexError, err.message);
    return status ? -1 : 0;
}

static PyObject *array_item(PyObject *self, PyObject *key)
{
    array_object *from = (array_object *)self;
    const int many = PyTuple_Check(key);
    const Py_ssize_t count = many ? PyTuple_Size(key) : 1;
    cai_array view;
    Py_ssize_t i;
    int32_t axis = 0;
    cai_array_borrow(&view, &from->array);
    for (i = 0; i < count; ++i) {
        if (cut(&view, &axis, many ? PyTuple_GetItem(key, i) : key)) return NULL;
    }
    return wrap(from->module, from->stream, from->base ? from->base : self, &view);
}

/* -------------------------------------------------------------------------- the module */

static PyGetSetDef array_getset[] = {
    {"__cuda_array_interface__", array_interface, NULL, "version 3, with the stream", NULL},
    {"shape", array_extents, NULL, NULL, NULL},
    {"strides", array_extents, NULL, "in bytes", (void *)"strides"},
    {"dtype", array_dtype, NULL, "a typestr", NULL},
    {"device", array_device, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot array_slots[] = {
    {Py_tp_dealloc, (void *)array_dealloc},   {Py_tp_traverse, (void *)array_traverse},
    {Py_tp_finalize, (void *)array_finalize}, {Py_tp_repr, (void *)array_repr},
    {Py_mp_length, (void *)array_length},     {Py_mp_subscript, (void *)array_item},
    {Py_tp_getset, array_getset},             {Py_tp_methods, array_methods},
    {0, NULL}};

static PyType_Spec array_spec = {"producer.Array", sizeof(array_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 array_slots};

/* cai_cuda_load makes no context, and initializes nothing until a call needs it. The retain does both. */
static cai_status open_cuda(module_state *state, cai_error *err)
{
    const cai_cuda *cuda = &state->driver.cuda;
    CAI_TRY(cai_cuda_load(&state->driver, NULL, err));
    CAI_TRY(cai_cuda_status(cuda->primary_retain(cuda->self, DEVICE, &state->context), "primary_retain",
                            err));
    CAI_TRY(cai_emm_pool_create(&state->memory, cuda, DEVICE, err));
    CAI_TRY(cai_emm_hooks_async(&state->hooks, cuda, &state->memory, err));
    return cai_event_pool_init(&state->pool, cuda, state->places, PLACES, 0, err);
}

static int begin(PyObject *module)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    cai_error err;
    if (cai_python_dlpack_init(&state->py)) return -1;
    if (open_cuda(state, &err)) {
        (void)cai_python_raise(&err);
        return -1;
    }
    state->type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &array_spec, NULL);
    if (!state->type || cai_python_offer(state->type, &array_exchange)) return -1;
    if (cai_python_dlpack_offer_ordered(&state->py, &state->pool, state->type, &dlpack_table)) return -1;
    return PyModule_AddType(module, state->type);
}

static int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    if (!state) return 0;
    Py_VISIT(state->type);
    return cai_python_traverse(&state->py, visit, arg);
}

static int clear_module(PyObject *module)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    if (state) Py_CLEAR(state->type); /* the rest is needed until the last array is gone */
    return 0;
}

/* Events and memory go before the context. What failed, also in `begin`, was not made. */
static void close_cuda(module_state *state)
{
    const cai_cuda *cuda = &state->driver.cuda;
    cai_status status = CAI_OK;
    if (state->pool.cuda) status = cai_keepalive_drain(&state->pool, NULL);
    if (state->pool.cuda && !status) status = cai_event_pool_destroy(&state->pool, NULL);
    if (state->memory.pool) status = cai_emm_pool_destroy(&state->memory, NULL);
    if (state->context) (void)cuda->primary_release(cuda->self, DEVICE);
    (void)status; /* nobody is left who could be told */
}

/* Runs when no array is left. */
static void end(void *module)
{
    module_state *state = (module_state *)PyModule_GetState((PyObject *)module);
    if (!state) return;
    (void)clear_module((PyObject *)module);
    Py_BEGIN_ALLOW_THREADS /* it waits */
    close_cuda(state);
    Py_END_ALLOW_THREADS
    (void)cai_python_clear(&state->py);
}

static PyMethodDef functions[] = {
    {"empty", empty, METH_VARARGS, "empty(shape, dtype, stream)"},
    {"asarray", asarray, METH_VARARGS, "asarray(obj, stream)"},
    {"drain", drain, METH_NOARGS, "drain()"},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)begin}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "producer",
                                        "arrays on the device, for every library", sizeof(module_state),
                                        functions, slots, traverse_module, clear_module, end};

PyMODINIT_FUNC PyInit_producer(void);
PyMODINIT_FUNC PyInit_producer(void)
{
    return PyModuleDef_Init(&definition);
}
