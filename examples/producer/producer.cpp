/* producer.cpp - producer.c in C++17 with cai.hpp: an array type of one's own in Python
 * SPDX-License-Identifier: MIT
 *
 * The head of producer.c says what the module offers, and who makes the context. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai.hpp"

#include "cai_emm.h"

#include "cai_place.h"

#include "cai_python_dlpack.h"

namespace {

constexpr int32_t device = 0, places = 64; /* arrays of other libraries that wait for a stream */

/* cai_cuda_load makes no context, and initializes nothing until a call needs it. The retain does both. */
struct library {
    cai_cuda_driver driver = {};
    const cai_cuda &cuda = driver.cuda;
    uint64_t context = 0;     /* retained */
    cai_emm_pool memory = {}; /* of CUDA; it keeps freed memory for the next array */
    cai_emm_hooks hooks = {}; /* over it; a table of your own goes here */
    cai::event_pool pool;     /* opened once, as it keeps events */

    library() : library(0) /* which is complete then: what throws below calls the destructor */
    {
        cai::call(cai_cuda_load, &driver, nullptr);
        cai::check_cuda(cuda.primary_retain(cuda.self, device, &context), "primary_retain");
        cai::call(cai_emm_pool_create, &memory, &cuda, device);
        cai::call(cai_emm_hooks_async, &hooks, &cuda, &memory);
        cai::call([&](cai_error *why) { return pool.open(&cuda, places, 0, why); });
    }

    ~library() /* events and memory go before the context */
    {
        cai_status status = pool.close(nullptr);
        if (memory.pool) status = cai_emm_pool_destroy(&memory, nullptr);
        if (context) (void)cuda.primary_release(cuda.self, device);
        (void)status; /* nobody is left who could be told */
    }

    library(const library &) = delete;

  private:
    explicit library(int) {}
};

/* While it lives, the context is current. */
struct current {
    const cai_cuda &cuda;
    explicit current(const library &of) : cuda(of.cuda)
    {
        cai::check_cuda(cuda.context_push(cuda.self, of.context), "context_push");
    }
    ~current() { (void)cuda.context_pop(cuda.self); }
    current(const current &) = delete;
};

/* Calls a function that may wait, or throw, while other threads of Python run. */
template <class Function> auto unlocked(Function function)
{
    struct restore {
        PyThreadState *state;
        ~restore() { PyEval_RestoreThread(state); }
    } const after = {PyEval_SaveThread()};
    return function();
}

/* Calls a function that may throw, and raises what it throws. */
template <class Function> PyObject *guarded(Function function)
{
    try {
        return function();
    } catch (const cai::error &why) {
        return cai_python_raise(&why);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
}

struct module_state {
    cai_python py;
    library *cuda;
    PyTypeObject *type;
};

struct array_object {
    PyObject_HEAD
    PyObject *module; /* its state must outlive the array */
    PyObject *stream; /* what was passed: a stream that is exported outlives the array (R81) */
    PyObject *base;   /* of a view: the array whose memory it is */
    cai::array array; /* owned, or the view of an owned one */
};

module_state *state_of_module(PyObject *module)
{
    return static_cast<module_state *>(PyModule_GetState(module));
}

array_object *object_of(PyObject *self) { return reinterpret_cast<array_object *>(self); }

module_state *state_of(PyObject *self) { return state_of_module(object_of(self)->module); }

/* -------------------------------------------------------------- making and giving back */

/* Ours frees behind the work in its stream, without a wait. The memory of others goes when the stream has
 * passed. Without the GIL, as the host may wait. Nothing ends a capture for it: then the memory stays. */
cai_status give_back(library &cuda, cai::array &array, cai_error *err)
{
    cai_array *const io[1] = {&array};
    cai::exchange ex;
    if (array.flags & CAI_ORDERED_FREE || array.sync == CAI_SYNC_NONE || !array.owned()) {
        cai_array_release(&array); /* does nothing for a view */
        return CAI_OK;
    }
    if (array.sync == CAI_SYNC_STREAM) return cai_keepalive_push(&array, cuda.pool, array.stream, err);
    CAI_TRY(ex.begin(cuda.pool, CAI_STREAM_LEGACY, io, 1, nullptr, err)); /* waits for the context */
    return ex.finish(CAI_OK, err);
}

/* An exception for which there is no caller. One that is set stays. */
void report(const cai_error &err, PyTypeObject *type)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    (void)cai_python_raise(&err);
    PyErr_WriteUnraisable(reinterpret_cast<PyObject *>(type));
    PyErr_Restore(kind, value, trace);
}

/* A new object, which takes over `array`. On failure that is still the caller's. */
PyObject *wrap(PyObject *module, PyObject *stream, PyObject *base, cai_array *array)
{
    module_state *state = state_of_module(module);
    if (!state->type) return PyErr_Format(PyExc_RuntimeError, "the module was collected");
    PyObject *made = PyType_GenericAlloc(state->type, 0);
    if (!made) return nullptr;
    array_object *self = object_of(made);
    self->module = Py_NewRef(module);
    self->stream = Py_XNewRef(stream);
    self->base = Py_XNewRef(base);
    new (&self->array) cai::array(array);
    return made;
}

int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(object_of(self)->module);
    Py_VISIT(object_of(self)->stream);
    Py_VISIT(object_of(self)->base);
    return 0;
}

/* Only a collection calls this. It may have ended the stream object, which is garbage, too. So the stream is
 * named no more, and the host waits for the context instead. */
void array_finalize(PyObject *self)
{
    cai::array &array = object_of(self)->array;
    if (array.sync == CAI_SYNC_NONE) return;
    array.sync = CAI_SYNC_UNKNOWN;
    array.stream = 0;
}

void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    array_object *object = object_of(self); /* there is no tp_clear: the end needs all of it */
    PyObject *module = object->module, *stream = object->stream, *base = object->base;
    library &cuda = *state_of(self)->cuda;
    cai_error err;
    PyObject_GC_UnTrack(self);
    if (unlocked([&] { return give_back(cuda, object->array, &err); })) report(err, type);
    PyObject_GC_Del(self);
    Py_XDECREF(base);
    Py_XDECREF(stream); /* behind the free */
    Py_DECREF(type);
    Py_DECREF(module); /* perhaps the last one: the state goes */
}

/* Without the GIL. If memory is short, what was let go and still waits is freed first. */
cai::array allocate(library &cuda, const cai_array &like, uint64_t stream)
{
    const current context(cuda);
    cai::array made;
    cai_error why;
    const auto allocated = [&] {
        return cai_emm_array(&made, cuda.pool, &cuda.hooks, like.dtype.code, like.ndim, like.shape,
                             stream, &why);
    };
    cai::call(cai_keepalive_poll, cuda.pool, nullptr); /* gives back what has passed meanwhile */
    cai_status status = allocated();
    if (status == CAI_ERR_OUT_OF_MEMORY) {
        (void)!cai_keepalive_drain(cuda.pool, nullptr); // what a capture holds may stay
        status = allocated();
    }
    if (status) throw cai::error(why);
    made.dtype = like.dtype; /* the unit of a time, too */
    return made;
}

/* Without the GIL. The stream waits for what is pending on the array, which is an array of it then. */
void take(library &cuda, cai::array &array, uint64_t stream)
{
    const current context(cuda);
    cai::call(cai_keepalive_poll, cuda.pool, nullptr);
    cai::call(cai_expect, &array, "obj", CAI_ANY_DTYPE, CAI_ANY_NDIM, CAI_ON_DEVICE);
    cai::call(cai_stream_remember_thread, &array, cuda.pool);
    cai::call(cai_locate, &array, "obj", cuda.pool.cuda(), CAI_LOCATE_BOUNDS, nullptr);
    if (array.size) return cai::call(cai_migrate, &array, cuda.pool, stream);
    array.memory = CAI_MEMORY_DEVICE; /* CUDA cannot tell for an empty one */
    array.device = device;
    array.sync = CAI_SYNC_NONE;
}

/* empty(shape, dtype, stream): the dtype is a typestr, such as numpy.dtype("f4").str */
PyObject *empty(PyObject *module, PyObject *args)
{
    module_state *state = state_of_module(module);
    int64_t extents[CAI_MAX_NDIM];
    PyObject *shape, *stream;
    const char *typestr;
    Py_ssize_t length;
    uint64_t number;
    if (!PyArg_ParseTuple(args, "O!s#O:empty", &PyTuple_Type, &shape, &typestr, &length, &stream))
        return nullptr;
    const Py_ssize_t ndim = PyTuple_Size(shape);
    if (ndim > CAI_MAX_NDIM) return PyErr_Format(PyExc_ValueError, "too many dimensions");
    for (Py_ssize_t i = 0; i < ndim && !PyErr_Occurred(); ++i)
        extents[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred() || cai_python_stream(&state->py, stream, &number)) return nullptr;
    return guarded([&] {
        cai_dtype dtype;
        cai::array like, made;
        cai::call(cai_dtype_parse, typestr, length, 0U, &dtype);
        cai::call(cai_array_init_dtype, &like, &dtype, static_cast<int32_t>(ndim), extents, nullptr, 256U);
        made = unlocked([&] { return allocate(*state->cuda, like, number); });
        cai_python_drain(&state->py); /* drops the references of what the poll gave back */
        return wrap(module, stream, nullptr, &made);
    });
}

/* asarray(obj, stream): what obj's library does later is not behind `stream`. Order that, as with CuPy. */
PyObject *asarray(PyObject *module, PyObject *args)
{
    module_state *state = state_of_module(module);
    cai_python_options options = {};
    PyObject *object, *stream;
    cai::array array;
    if (!PyArg_ParseTuple(args, "OO:asarray", &object, &stream)) return nullptr;
    if (cai_python_stream(&state->py, stream, &options.stream)) return nullptr;
    if (cai_python_import(&state->py, &object, 1, &options, &array)) {
        new (&array) cai::array(); /* undefined after a failure */
        return nullptr;
    }
    PyObject *made = guarded([&] {
        unlocked([&] { take(*state->cuda, array, options.stream); });
        return wrap(module, stream, nullptr, &array);
    });
    cai_python_release(&state->py, &array, 1); /* after a failure; nothing of ours is queued on it */
    return made;
}

/* drain(): waits for what was let go while work was pending, and frees it */
PyObject *drain(PyObject *module, PyObject *)
{
    module_state *state = state_of_module(module);
    return guarded([&] {
        unlocked([&] { cai::call(cai_keepalive_drain, state->cuda->pool); });
        cai_python_drain(&state->py);
        return Py_NewRef(Py_None);
    });
}

/* ----------------------------------------------------------------- what others ask for */

PyObject *array_interface(PyObject *self, void *)
{
    return cai_python_interface(&state_of(self)->py, &object_of(self)->array, 3, nullptr);
}

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const cai_array *array = &object_of(self)->array;
    module_state *state = state_of(self);
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(array, args, kwargs, &request)) return nullptr;
    return cai_python_dlpack_ordered(&state->py, state->cuda->pool, self, array, &request);
}

PyObject *array_dlpack_device(PyObject *self, PyObject *)
{
    return cai_python_dlpack_device(&object_of(self)->array);
}

/* The exchange in C. Borrowed: the memory is the object's for as long as that lives. */
int array_describe(PyObject *self, cai_array *out)
{
    cai_array_borrow(out, &object_of(self)->array);
    return 0;
}

/* What a function in C returns as an array of this type. Its maker promises that the stream lives (R81). */
PyObject *array_adopt(PyTypeObject *type, cai_array *array)
{
    PyObject *module = PyType_GetModule(type);
    cai_error err;
    if (!module) return nullptr;
    if (cai_expect(array, "array", CAI_ANY_DTYPE, CAI_ANY_NDIM, CAI_ON_DEVICE, &err))
        return PyErr_Format(PyExc_BufferError, "%s", err.message);
    if (array->release && (array->sync == CAI_SYNC_NONE || array->sync == CAI_SYNC_STREAM))
        return wrap(module, nullptr, nullptr, array);
    return PyErr_Format(PyExc_BufferError, "the array is borrowed, or its work is not in a stream");
}

const cai_python_exchange array_exchange = {CAI_ABI, sizeof(cai_python_exchange), array_describe,
                                            array_adopt};

/* DLPack's exchange in C asks where we work now. We have no current stream, so that is the default one. */
int current_stream(cai_dl_device_type, int32_t, void **out)
{
    *out = nullptr;
    return 0;
}

CAI_PYTHON_DLPACK_TABLE(dlpack_table, current_stream)

/* ---------------------------------------------------------------- what Python asks for */

/* shape, or strides in bytes */
PyObject *array_extents(PyObject *self, void *strides)
{
    const cai::array &array = object_of(self)->array;
    const int64_t *numbers = strides ? array.strides : array.shape;
    PyObject *tuple = PyTuple_New(array.ndim);
    for (int32_t i = 0; tuple && i < array.ndim; ++i)
        PyTuple_SetItem(tuple, i, PyLong_FromLongLong(numbers[i]));
    return tuple;
}

PyObject *array_dtype(PyObject *self, void *)
{
    char text[CAI_TYPESTR_SIZE];
    (void)cai_dtype_typestr(&object_of(self)->array.dtype, text, sizeof text);
    return PyUnicode_FromString(text);
}

PyObject *array_device(PyObject *self, void *) { return PyLong_FromLong(object_of(self)->array.device); }

PyObject *array_repr(PyObject *self)
{
    char text[512];
    (void)cai_array_text(&object_of(self)->array, text, sizeof text);
    return PyUnicode_FromFormat("<producer.Array %s>", text);
}

Py_ssize_t array_length(PyObject *self)
{
    const cai::array &array = object_of(self)->array;
    if (array.ndim) return static_cast<Py_ssize_t>(array.shape[0]);
    PyErr_SetString(PyExc_TypeError, "len() of an array without dimensions");
    return -1;
}

/* One index or slice along `axis` of the view, which it changes. Returns 0, or -1 with an exception set. */
int cut(cai::array &view, int32_t &axis, PyObject *item)
{
    Py_ssize_t start, stop, step;
    cai_error err;
    cai_status status;
    if (axis == view.ndim) {
        PyErr_SetString(PyExc_IndexError, "too many indices");
        return -1;
    }
    if (PySlice_Check(item)) {
        if (PySlice_Unpack(item, &start, &stop, &step)) return -1;
        stop = PySlice_AdjustIndices(static_cast<Py_ssize_t>(view.shape[axis]), &start, &stop, step);
        status = cai_view_slice(&view, axis++, start, stop, step, &view, &err);
    } else {
        start = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (start == -1 && PyErr_Occurred()) return -1;
        status = cai_view_index(&view, axis, start, &view, &err);
    }
    if (status) PyErr_SetString(PyExc_IndexError, err.message);
    return status ? -1 : 0;
}

PyObject *array_item(PyObject *self, PyObject *key)
{
    array_object *from = object_of(self);
    const bool many = PyTuple_Check(key);
    const Py_ssize_t count = many ? PyTuple_Size(key) : 1;
    cai::array view = from->array.borrow();
    int32_t axis = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (cut(view, axis, many ? PyTuple_GetItem(key, i) : key)) return nullptr;
    }
    return wrap(from->module, from->stream, from->base ? from->base : self, &view);
}

/* -------------------------------------------------------------------------- the module */

PyGetSetDef array_getset[] = {
    {"__cuda_array_interface__", array_interface, nullptr, "version 3, with the stream", nullptr},
    {"shape", array_extents, nullptr, nullptr, nullptr},
    {"strides", array_extents, nullptr, "in bytes", const_cast<char *>("strides")},
    {"dtype", array_dtype, nullptr, "a typestr", nullptr},
    {"device", array_device, nullptr, nullptr, nullptr},
    {}};

PyMethodDef array_methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_dlpack)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, nullptr},
    {}};

template <class Function> void *slot(Function *function) { return reinterpret_cast<void *>(function); }

PyType_Slot array_slots[] = {
    {Py_tp_dealloc, slot(array_dealloc)},   {Py_tp_traverse, slot(array_traverse)},
    {Py_tp_finalize, slot(array_finalize)}, {Py_tp_repr, slot(array_repr)},
    {Py_mp_length, slot(array_length)},     {Py_mp_subscript, slot(array_item)},
    {Py_tp_getset, array_getset},           {Py_tp_methods, array_methods},
    {}};

PyType_Spec array_spec = {"producer.Array", sizeof(array_object), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          array_slots};

int begin(PyObject *module)
{
    module_state *state = state_of_module(module);
    if (cai_python_dlpack_init(&state->py)) return -1;
    PyObject *opened = guarded([&] {
        state->cuda = new library;
        return module;
    });
    if (!opened) return -1;
    state->type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &array_spec, nullptr));
    if (!state->type || cai_python_offer(state->type, &array_exchange)) return -1;
    if (cai_python_dlpack_offer_ordered(&state->py, state->cuda->pool, state->type, &dlpack_table)) return -1;
    return PyModule_AddType(module, state->type);
}

int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = state_of_module(module);
    if (!state) return 0;
    Py_VISIT(state->type);
    return cai_python_traverse(&state->py, visit, arg);
}

int clear_module(PyObject *module)
{
    module_state *state = state_of_module(module);
    if (state) Py_CLEAR(state->type); /* the rest is needed until the last array is gone */
    return 0;
}

/* Runs when no array is left, and after a begin that failed. */
void end(void *module)
{
    module_state *state = state_of_module(static_cast<PyObject *>(module));
    if (!state) return;
    Py_CLEAR(state->type);
    unlocked([&] { delete state->cuda; }); /* it waits */
    (void)cai_python_clear(&state->py);
}

PyMethodDef functions[] = {{"empty", empty, METH_VARARGS, "empty(shape, dtype, stream)"},
                           {"asarray", asarray, METH_VARARGS, "asarray(obj, stream)"},
                           {"drain", drain, METH_NOARGS, "drain()"},
                           {}};

PyModuleDef_Slot slots[] = {{Py_mod_exec, slot(begin)}, {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "producer", "arrays on the device, for every library",
                          sizeof(module_state), functions, slots, traverse_module, clear_module, end};

} // namespace

PyMODINIT_FUNC PyInit_producer()
{
    return PyModuleDef_Init(&definition);
}
