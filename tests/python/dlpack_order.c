/* dlpack_order.c - an extension module that gives and takes DLPack on the simulated CUDA, for check_dlpack_order.py
 * SPDX-License-Identifier: MIT
 *
 * An Array owns memory, which it frees in the order of its stream. use(object, stream, how) imports any object
 * by __dlpack__, launches a kernel that writes, and lets go. races() is what cai_check.h finds. */
#include "dlpack_world.h"

typedef struct order_array {
    PyObject_HEAD
    cai_array array;
    uint64_t memory;
    int plain;              /* its capsules order nothing in the deleter */
    unsigned flags;         /* of its exports */
} order_array;

static world *state_of_type(PyTypeObject *type)
{
    return (world *)PyType_GetModuleState(type);
}

/* Array(stream, plain=0, flags=0): stream 0: nothing is pending, and it has no stream */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *unused)
{
    world *w = state_of_type(type);
    const int64_t shape[1] = {BYTES / 4};
    unsigned long long stream;
    unsigned flags = 0;
    int plain = 0;
    order_array *self;
    cai_error err;
    (void)unused;
    if (!PyArg_ParseTuple(args, "K|iI:Array", &stream, &plain, &flags)) return NULL;
    self = (order_array *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    self->memory = cai_sim_alloc(w->sim, CAI_SIM_MEM_POOL, BYTES);
    if (cai_array_init(&self->array, CAI_FLOAT32, 1, shape, NULL, cai_sim_bytes(w->sim, self->memory), &err)) {
        Py_DECREF(self);
        return cai_python_raise(&err);
    }
    self->plain = plain;
    self->flags = flags;
    self->array.memory = CAI_MEMORY_DEVICE;
    self->array.device = 0;
    self->array.sync = stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    self->array.stream = stream;
    if (stream) launch(w, stream, "fill", self->array.data);
    return (PyObject *)self;
}

static void array_end(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    world *w = state_of_type(type);
    const order_array *self = (order_array *)object;
    const cai_cuda *cuda = w->pool.cuda;
    if (self->array.stream) (void)cuda->memory_free_async(cuda->self, self->memory, self->array.stream);
    else (void)cai_sim_free(w->sim, self->memory);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *array_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    world *w = state_of_type(Py_TYPE(object));
    order_array *self = (order_array *)object;
    cai_python_dlpack_request request;
    cai_error err;
    if (cai_python_dlpack_ask(&self->array, args, kwargs, &request)) return NULL;
    request.flags |= self->flags;
    if (!self->plain)
        return cai_python_dlpack_ordered(&w->py, &w->pool, object, &self->array, &request);
    if (request.stream && cai_stream_order(&w->pool, self->array.stream, request.stream, &err))
        return cai_python_raise(&err);
    request.flags |= CAI_DLPACK_ORDERED;
    return cai_python_dlpack(&w->py, object, &self->array, &request);
}

static PyObject *array_device(PyObject *object, PyObject *unused)
{
    (void)unused;
    return cai_python_dlpack_device(&((order_array *)object)->array);
}

/* What a consumer does that knows nothing of cai: the deleter is called while the kernel is queued. */
static PyObject *use_capsule(world *w, PyObject *capsule, uint64_t stream, int destroys)
{
    struct DLManagedTensorVersioned *managed =
        (struct DLManagedTensorVersioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (!managed) return NULL;
    (void)PyCapsule_SetName(capsule, "used_dltensor_versioned");
    launch(w, stream, "use", (uint64_t)(uintptr_t)managed->dl_tensor.data);
    if (destroys) (void)cai_sim_stream_destroy(w->sim, stream);
    managed->deleter(managed);
    return Py_NewRef(Py_None);
}

static cai_status use_array(world *w, cai_array *x, uint64_t stream, cai_error *err)
{
    cai_array *io[1];
    cai_exchange ex;
    io[0] = x;
    CAI_TRY(cai_exchange_begin(&ex, &w->pool, io, 1, stream, err));
    launch(w, stream, "use", x->data);
    return cai_exchange_finish(&ex, CAI_OK, io, 1, err);
}

/* use(object, stream, how): 0 by an exchange, 1 by cai_python_release_after; of a capsule as any consumer, 1: that
 * destroys its stream */
static PyObject *order_use(PyObject *module, PyObject *args)
{
    world *w = world_of(module);
    cai_python_options options;
    unsigned long long stream;
    PyObject *object;
    cai_array x;
    cai_error err;
    cai_status status = CAI_OK;
    int how = 0;
    if (!PyArg_ParseTuple(args, "OK|i:use", &object, &stream, &how)) return NULL;
    if (PyCapsule_CheckExact(object)) return use_capsule(w, object, stream, how);
    memset(&options, 0, sizeof options);
    options.stream = stream;
    if (cai_python_import(&w->py, &object, 1, &options, &x)) return NULL;
    if (!how) status = use_array(w, &x, stream, &err);
    else launch(w, stream, "use", x.data);
    if (how && cai_python_release_after(&w->py, &w->pool, &x, 1, stream)) return NULL;
    cai_python_release(&w->py, &x, 1);
    return status ? cai_python_raise(&err) : Py_NewRef(Py_None);
}

/* wait(stream): what it had to wait for is let go */
static PyObject *order_wait(PyObject *module, PyObject *stream)
{
    world *w = world_of(module);
    cai_error err;
    (void)cai_sim_stream_synchronize(w->sim, PyLong_AsUnsignedLongLong(stream));
    if (cai_keepalive_drain(&w->pool, &err)) return cai_python_raise(&err);
    cai_python_drain(&w->py);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* capture(stream, begins): the graph ends with the capture */
static PyObject *order_capture(PyObject *module, PyObject *args)
{
    world *w = world_of(module);
    unsigned long long stream;
    int begins;
    if (!PyArg_ParseTuple(args, "Ki:capture", &stream, &begins)) return NULL;
    if (begins) return PyLong_FromLong(cai_sim_capture_begin(w->sim, stream, 2));
    return PyLong_FromLong(cai_sim_capture_end(w->sim, stream, NULL));
}

/* limit(arrays) -> how many are parked now */
static PyObject *order_limit(PyObject *module, PyObject *arrays)
{
    world *w = world_of(module);
    cai_error err;
    if (cai_dlpack_limit(&w->pool, PyLong_AsLongLong(arrays), 0, &err)) return cai_python_raise(&err);
    return PyLong_FromLongLong(w->pool.dlpack.arrays);
}

static PyMethodDef array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", array_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyType_Slot array_slots[] = {{Py_tp_new, (void *)array_new},
                                    {Py_tp_dealloc, (void *)array_end},
                                    {Py_tp_methods, array_methods},
                                    {0, NULL}};
static PyType_Spec array_spec = {"dlpack_order.Array", sizeof(order_array), 0, Py_TPFLAGS_DEFAULT, array_slots};

static int order_begin(PyObject *module)
{
    world *w = world_of(module);
    PyObject *type = PyType_FromModuleAndSpec(module, &array_spec, NULL);
    const int failed = !type || cai_python_dlpack_init(&w->py) || PyModule_AddObjectRef(module, "Array", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyMethodDef order_functions[] = {
    {"streams", world_streams, METH_VARARGS, NULL}, {"use", order_use, METH_VARARGS, NULL},
    {"limit", order_limit, METH_O, NULL},
    {"capture", order_capture, METH_VARARGS, NULL},
    {"wait", order_wait, METH_O, NULL},             {"close", world_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot order_slots[] = {{Py_mod_exec, (void *)order_begin}, {0, NULL}};
static struct PyModuleDef order_module = {PyModuleDef_HEAD_INIT, "dlpack_order", NULL, sizeof(world),
                                          order_functions, order_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_dlpack_order(void)
{
    return PyModuleDef_Init(&order_module);
}
