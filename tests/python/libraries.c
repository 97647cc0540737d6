/* libraries.c - a module that takes arrays of any library and gives out its own, for test_libraries.py
 * SPDX-License-Identifier: MIT
 *
 * On the host it computes at once. On a GPU it computes on a stream, in an exchange with those that the
 * arrays name; with LIBRARIES_SIMULATED that GPU is of sim. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define CAI_STATIC
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_stream.h"
#include "cai_python_dlpack.h"

#if defined(LIBRARIES_SIMULATED)
#include "libraries_sim.h"
#else
#include "libraries_gpu.h"
#endif

enum { PLACES = 64, ALIGNMENT = 64 };

typedef struct module_state {
    cai_python py;
    cai_event_pool pool; /* once there is a GPU */
    cai_keepalive places[PLACES];
    gpu device;
    int64_t blocks; /* of memory that arrays of ours have */
    PyObject *array_type, *stream_type;
} module_state;

/* Memory of an array of ours. */
typedef struct block {
    module_state *state;
    void *host;       /* NULL: on the device */
    uint64_t address; /* there */
    uint64_t stream;
} block;

typedef struct array_object {
    PyObject_HEAD
    PyObject *module;
    PyObject *stream; /* what it was made on: outlives the array (R81) */
    cai_array array;  /* owned, by a block or by whom it was adopted from */
} array_object;

typedef struct stream_object {
    PyObject_HEAD
    PyObject *module;
    uint64_t handle;
} stream_object;

static module_state *state_of(PyObject *module)
{
    return (module_state *)PyModule_GetState(module);
}

static int is_on_host(const cai_array *array)
{
    return array->memory == CAI_MEMORY_HOST;
}

static PyObject *raise_cuda(int32_t code, const char *what)
{
    cai_error err;
    return cai_cuda_status(code, what, &err) ? cai_python_raise(&err) : NULL;
}

/* The GPU, or RuntimeError. */
static int need_gpu(module_state *state)
{
    cai_error err;
    if (gpu_open(&state->device)) {
        PyErr_SetString(PyExc_RuntimeError, state->device.why);
        return -1;
    }
    if (state->pool.cuda) return 0;
    if (cai_event_pool_init(&state->pool, &state->device.driver.cuda, state->places, PLACES, 0, &err)) {
        (void)cai_python_raise(&err);
        return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------- memory */

/* A capture elsewhere ends if a thread allocates or frees that is not in the relaxed mode. */
enum { RELAXED = 2 };

static int32_t allocate(const cai_cuda *cuda, uint64_t *address, size_t bytes, uint64_t stream)
{
    int32_t mode = RELAXED, error;
    (void)cuda->capture_mode(cuda->self, &mode);
    error = cuda->memory_alloc_async(cuda->self, address, bytes, stream);
    (void)cuda->capture_mode(cuda->self, &mode);
    return error;
}

static void deallocate(const cai_cuda *cuda, uint64_t address, uint64_t stream)
{
    int32_t mode = RELAXED;
    (void)cuda->capture_mode(cuda->self, &mode);
    (void)cuda->memory_free_async(cuda->self, address, stream);
    (void)cuda->capture_mode(cuda->self, &mode);
}

static void free_block(block *b)
{
    gpu *const g = &b->state->device;
    b->state->blocks -= 1;
    if (b->host) PyMem_RawFree(b->host);
    if (b->address && !gpu_enter(g)) {
        deallocate(&g->driver.cuda, b->address, b->stream);
        gpu_leave(g);
    }
    PyMem_RawFree(b);
}

static void release_block(cai_array *array)
{
    array->release = NULL;
    free_block((block *)array->owner);
}

static cai_status no_memory(cai_error *err)
{
    return cai_cuda_status(2, "memory", err); /* CUDA's number for it */
}

/* An array of `like`'s shape in C order, on the host (stream 0) or on the device in the order of `stream`,
 * with a block that it owns. */
static cai_status new_memory(module_state *state, const cai_array *like, uint64_t stream, cai_array *out,
                             cai_error *err)
{
    const cai_cuda *cuda = &state->device.driver.cuda;
    const size_t bytes = (size_t)like->size * sizeof(float);
    block *b = (block *)PyMem_RawCalloc(1, sizeof *b);
    void *data = NULL;
    cai_status status = CAI_OK;
    if (!b) return no_memory(err);
    b->state = state;
    b->stream = stream;
    if (stream && bytes) {
        status = cai_cuda_status(allocate(cuda, &b->address, bytes, stream), "alloc", err);
        data = (void *)(uintptr_t)b->address;
    } else if (bytes) {
        b->host = PyMem_RawMalloc(bytes + ALIGNMENT);
        data = (void *)(((uintptr_t)b->host + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        if (!b->host) status = no_memory(err);
    }
    if (!status) status = cai_array_init(out, CAI_FLOAT32, like->ndim, like->shape, NULL, data, err);
    state->blocks += 1;
    if (status) {
        free_block(b);
        return status;
    }
    out->memory = stream ? CAI_MEMORY_DEVICE : CAI_MEMORY_HOST;
    out->device = stream ? 0 : CAI_DEVICE_UNKNOWN;
    out->sync = CAI_SYNC_NONE;
    cai_array_own(out, release_block, b);
    return CAI_OK;
}

/* -------------------------------------------------------------------------------- saxpy */
/* What is computed, and how. */
typedef struct job {
    float a;
    int into;     /* y is written; else a new array */
    int in_order; /* else the exchange orders nothing */
    uint64_t stream, spin;   /* 0: the host; nanoseconds that pass on it before */
    cai_array arrays[2];     /* x and y as they were imported */
    cai_array x, y, result;  /* the same as floats; and what is new */
} job;

/* Bytes count as floats: buffers of RMM and of cuda.core have nothing else. */
static cai_status as_floats(const cai_array *array, cai_array *out, cai_error *err)
{
    cai_dtype dtype;
    CAI_TRY(cai_dtype_of(CAI_FLOAT32, &dtype, err));
    if (array->dtype.code == CAI_UINT8 || array->dtype.code == CAI_INT8)
        return cai_view_reinterpret(array, &dtype, out, err);
    return cai_view_values(array, out, err);
}

/* The floats of an array as one stretch. */
static cai_status stretch_of(const cai_array *array, const char *name, gpu_floats *out, cai_error *err)
{
    cai_array flat;
    CAI_TRY(cai_expect(array, name, CAI_FLOAT32, CAI_ANY_NDIM, 0, err));
    CAI_TRY(cai_view_coalesce(array, &flat, err));
    CAI_TRY(cai_expect(&flat, name, CAI_FLOAT32, flat.ndim ? 1 : 0, 0, err));
    out->data = flat.data;
    out->stride = flat.ndim ? flat.strides[0] : 0;
    return CAI_OK;
}

static float *float_at(gpu_floats floats, int64_t i)
{
    return (float *)(uintptr_t)(floats.data + (uint64_t)(i * floats.stride));
}

static cai_status compute(module_state *state, const job *j, const cai_array *r, cai_error *err)
{
    gpu_floats x, y, to;
    int64_t i;
    int32_t code;
    CAI_TRY(stretch_of(&j->x, "x", &x, err));
    CAI_TRY(stretch_of(&j->y, "y", &y, err));
    CAI_TRY(stretch_of(r, "the result", &to, err));
    if (j->stream) {
        code = gpu_run_spin(&state->device, j->spin, j->stream);
        if (!code) code = gpu_run_saxpy(&state->device, j->a, r->size, x, y, to, j->stream);
        return cai_cuda_status(code, "saxpy", err);
    }
    for (i = 0; i < r->size; ++i) *float_at(to, i) = j->a * *float_at(x, i) + *float_at(y, i);
    return CAI_OK;
}

static cai_status compute_in_exchange(module_state *state, job *j, const cai_array *r, cai_error *err)
{
    cai_array *const io[2] = {&j->arrays[0], &j->arrays[1]};
    cai_exchange_options options;
    cai_exchange ex;
    memset(&options, 0, sizeof options);
    if (!j->in_order) options.mode = CAI_MODE_IGNORE;
    CAI_TRY(cai_exchange_begin_with(&ex, &state->pool, io, 2, j->stream, &options, err));
    return cai_exchange_end(&ex, compute(state, j, r, err), err);
}

static cai_status compute_on_device(module_state *state, job *j, cai_error *err)
{
    CAI_TRY(cai_keepalive_poll(&state->pool, NULL, err));
    CAI_TRY(cai_locate(&j->arrays[0], "x", state->pool.cuda, CAI_LOCATE_BOUNDS, NULL, err));
    CAI_TRY(cai_locate(&j->arrays[1], "y", state->pool.cuda, CAI_LOCATE_BOUNDS, NULL, err));
    if (j->into) return compute_in_exchange(state, j, &j->y, err);
    CAI_TRY(new_memory(state, &j->x, j->stream, &j->result, err));
    CAI_TRY(compute_in_exchange(state, j, &j->result, err));
    return cai_stream_export(&j->result, &state->pool, j->stream, NULL, 0, err);
}

/* Needs no GIL; a context is current where there is a stream. */
static cai_status run(module_state *state, job *j, cai_error *err)
{
    CAI_TRY(as_floats(&j->arrays[0], &j->x, err));
    CAI_TRY(as_floats(&j->arrays[1], &j->y, err));
    CAI_TRY(cai_expect_same_shape(&j->x, "x", &j->y, "y", err));
    if (j->into)
        CAI_TRY(cai_expect(&j->y, "y", CAI_FLOAT32, CAI_ANY_NDIM, CAI_WRITABLE | CAI_NO_SELF_OVERLAP, err));
    if (j->stream) return compute_on_device(state, j, err);
    if (j->into) return compute(state, j, &j->y, err);
    CAI_TRY(new_memory(state, &j->x, 0, &j->result, err));
    return compute(state, j, &j->result, err);
}

static array_object *new_array(PyTypeObject *type, PyObject *module, PyObject *stream, cai_array *array)
{
    array_object *self = (array_object *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    self->module = Py_NewRef(module);
    self->stream = Py_NewRef(stream);
    cai_array_move(&self->array, array);
    return self;
}

/* Gives back what was imported, and returns what a call returns. */
static PyObject *finish(PyObject *module, PyObject *stream, job *j, cai_status status, const cai_error *err)
{
    module_state *state = state_of(module);
    PyObject *result = NULL;
    int failed = 0;
    if (!j->stream) cai_python_release(&state->py, j->arrays, 2);
    else if (gpu_enter(&state->device)) failed = 1;
    else {
        failed = cai_python_release_after(&state->py, &state->pool, j->arrays, 2, j->stream);
        gpu_leave(&state->device);
    }
    if (!failed && status) (void)cai_python_raise(err);
    else if (!failed && j->into) result = Py_NewRef(Py_None);
    else if (!failed)
        result = (PyObject *)new_array((PyTypeObject *)state->array_type, module, stream, &j->result);
    if (!result) cai_array_release(&j->result);
    return result;
}

/* saxpy(a, x, y, stream=None, *, into=False, in_order=True, spin=0.0, flags=HOST): a x + y, as a new array or
 * in y; spin: seconds that pass on the stream before */
static PyObject *saxpy(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"a", "x", "y", "stream", "into", "in_order", "spin", "flags", NULL};
    module_state *state = state_of(module);
    cai_python_options options = {CAI_PYTHON_HOST, 0, 0, NULL};
    PyObject *o[2], *stream = Py_None;
    double seconds = 0;
    int32_t code = 0;
    cai_status status;
    cai_error err;
    job j;
    memset(&j, 0, sizeof j);
    j.in_order = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "fOO|O$ppdI", names, &j.a, &o[0], &o[1], &stream,
                                     &j.into, &j.in_order, &seconds, &options.flags))
        return NULL;
    if (stream != Py_None && need_gpu(state)) return NULL;
    if (stream != Py_None && cai_python_stream(&state->py, stream, &j.stream)) return NULL;
    j.spin = (uint64_t)(seconds * 1e9);
    options.stream = j.stream;
    if (cai_python_import(&state->py, o, 2, &options, j.arrays)) return NULL;
    if (!j.stream && !(is_on_host(&j.arrays[0]) && is_on_host(&j.arrays[1]))) {
        cai_python_release(&state->py, j.arrays, 2);
        PyErr_SetString(PyExc_ValueError, "saxpy: without a stream the arrays are in host memory");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    if (j.stream) code = gpu_enter(&state->device);
    status = code ? cai_cuda_status(code, "context_push", &err) : run(state, &j, &err);
    if (j.stream && !code) gpu_leave(&state->device);
    Py_END_ALLOW_THREADS
    return finish(module, stream, &j, status, &err);
}

/* ---------------------------------------------------------------------- libraries.array */

static void array_dealloc(PyObject *object)
{
    array_object *self = (array_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    cai_array_release(&self->array);
    Py_XDECREF(self->stream);
    Py_XDECREF(self->module);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* The attributes are there for the memory that they are for. */
static PyObject *array_interface(PyObject *object, int of_host)
{
    array_object *self = (array_object *)object;
    if (is_on_host(&self->array) == of_host)
        return cai_python_interface(&state_of(self->module)->py, &self->array, 3, NULL);
    PyErr_SetString(PyExc_AttributeError, of_host ? "on the device" : "on the host");
    return NULL;
}

static PyObject *array_host_interface(PyObject *object, void *unused)
{
    (void)unused;
    return array_interface(object, 1);
}

static PyObject *array_cuda_interface(PyObject *object, void *unused)
{
    (void)unused;
    return array_interface(object, 0);
}

static PyObject *array_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    array_object *self = (array_object *)object;
    module_state *state = state_of(self->module);
    cai_python_dlpack_request request;
    PyObject *capsule;
    int32_t code;
    if (cai_python_dlpack_ask(&self->array, args, keywords, &request)) return NULL;
    if (is_on_host(&self->array)) return cai_python_dlpack(&state->py, object, &self->array, &request);
    code = gpu_enter(&state->device);
    if (code) return raise_cuda(code, "context_push");
    capsule = cai_python_dlpack_ordered(&state->py, &state->pool, object, &self->array, &request);
    gpu_leave(&state->device);
    return capsule;
}

static PyObject *array_dlpack_device(PyObject *object, PyObject *unused)
{
    (void)unused;
    return cai_python_dlpack_device(&((array_object *)object)->array);
}

/* tobytes(): what is in it, once its stream has passed. */
static PyObject *array_bytes(PyObject *object, PyObject *unused)
{
    array_object *self = (array_object *)object;
    gpu *const g = &state_of(self->module)->device;
    const cai_array *const a = &self->array;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)a->nbytes);
    int32_t code;
    (void)unused;
    if (!bytes || !a->nbytes) return bytes;
    if (is_on_host(a)) {
        memcpy(PyBytes_AsString(bytes), (const void *)(uintptr_t)a->data, (size_t)a->nbytes);
        return bytes;
    }
    code = gpu_enter(g);
    if (!code) {
        code = gpu_to_host(g, PyBytes_AsString(bytes), a->data, (size_t)a->nbytes, a->stream);
        gpu_leave(g);
    }
    if (!code) return bytes;
    Py_DECREF(bytes);
    return raise_cuda(code, "a copy to the host");
}

static int describe(PyObject *object, cai_array *out)
{
    cai_array_borrow(out, &((array_object *)object)->array); /* the object keeps the memory */
    return 0;
}

static PyObject *adopt(PyTypeObject *type, cai_array *array)
{
    PyObject *module = PyType_GetModule(type);
    if (!array->release) PyErr_SetString(PyExc_BufferError, "array is borrowed");
    else if (module) return (PyObject *)new_array(type, module, Py_None, array);
    return NULL;
}

static const cai_python_exchange exchange = {CAI_ABI, sizeof(cai_python_exchange), describe, adopt};

/* --------------------------------------------------------------------- libraries.stream */

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {NULL};
    PyObject *module = PyType_GetModule(type);
    stream_object *self;
    uint64_t handle = 0;
    int32_t code;
    if (!module || !PyArg_ParseTupleAndKeywords(args, keywords, ":stream", names)) return NULL;
    if (need_gpu(state_of(module))) return NULL;
    code = gpu_enter(&state_of(module)->device);
    if (code) return raise_cuda(code, "context_push");
    code = gpu_new_stream(&state_of(module)->device, &handle);
    gpu_leave(&state_of(module)->device);
    if (code) return raise_cuda(code, "stream_create");
    self = (stream_object *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    self->module = Py_NewRef(module);
    self->handle = handle;
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *object)
{
    stream_object *self = (stream_object *)object;
    gpu *const g = &state_of(self->module)->device;
    PyTypeObject *type = Py_TYPE(object);
    if (!gpu_enter(g)) {
        gpu_drop_stream(g, self->handle);
        gpu_leave(g);
    }
    Py_DECREF(self->module);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *stream_protocol(PyObject *object, PyObject *unused)
{
    (void)unused;
    return cai_python_cuda_stream(((stream_object *)object)->handle);
}

static PyObject *stream_handle(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((stream_object *)object)->handle);
}

/* --------------------------------------------------------------------------- the module */

static PyObject *numbers(const int64_t *values, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);
    int32_t i;
    for (i = 0; tuple && i < count; ++i) {
        PyObject *number = PyLong_FromLongLong((long long)values[i]);
        if (!number || PyTuple_SetItem(tuple, i, number)) Py_CLEAR(tuple);
    }
    return tuple;
}

static const char *sync_name(int32_t sync)
{
    static const char *const names[] = {"unknown", "none", "stream", "event"};
    return sync >= 0 && sync < 4 ? names[sync] : "?";
}

static const char *memory_name(int32_t memory)
{
    static const char *const names[] = {"unknown", "host", "pinned", "managed", "device"};
    return memory >= 0 && memory < 5 ? names[memory] : "?";
}

/* (name, dtype, offset, bytes, row of the enclosing record) of each row */
static PyObject *rows(const cai_array *array)
{
    PyObject *list = PyList_New(0);
    int64_t i;
    for (i = 0; list && array->fields && i < array->field_count; ++i) {
        const cai_field *f = &array->fields[i];
        PyObject *row = Py_BuildValue("(s#sLLi)", f->name, (Py_ssize_t)f->name_length,
                                      cai_dtype_name(f->dtype.code), (long long)f->offset,
                                      (long long)f->nbytes, (int)f->parent);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *describe_facts(const cai_array *a)
{
    return Py_BuildValue(
        "{sN sN ss si sN sK sL ss si ss sK si sN sN}", "shape", numbers(a->shape, a->ndim), "strides",
        numbers(a->strides, a->ndim), "dtype", cai_dtype_name(a->dtype.code), "itemsize",
        (int)a->dtype.itemsize, "read_only", PyBool_FromLong(!(a->flags & CAI_WRITABLE)), "data",
        (unsigned long long)a->data, "size", (long long)a->size, "memory", memory_name(a->memory),
        "device", (int)a->device, "sync", sync_name(a->sync), "stream", (unsigned long long)a->stream,
        "version", (int)a->version, "swapped",
        PyBool_FromLong((a->flags & CAI_BYTE_SWAPPED) != 0), "fields", rows(a));
}

/* facts(object, flags=HOST, stream=0): what an import says of it */
static PyObject *facts(PyObject *module, PyObject *args)
{
    module_state *state = state_of(module);
    cai_python_options options = {CAI_PYTHON_HOST, 0, 0, NULL};
    unsigned long long stream = 0;
    PyObject *object, *result;
    cai_array array;
    if (!PyArg_ParseTuple(args, "O|IK", &object, &options.flags, &stream)) return NULL;
    options.stream = (uint64_t)stream;
    if (cai_python_import(&state->py, &object, 1, &options, &array)) return NULL;
    result = describe_facts(&array);
    cai_python_release(&state->py, &array, 1);
    return result;
}

/* nothing(object): a call, and nothing else */
static PyObject *nothing(PyObject *module, PyObject *args)
{
    (void)args;
    return state_of(module) ? Py_NewRef(Py_None) : NULL;
}

/* take(object, flags=HOST): an import and its release, and nothing else */
static PyObject *take(PyObject *module, PyObject *args)
{
    module_state *state = state_of(module);
    cai_python_options options = {CAI_PYTHON_HOST, 0, 0, NULL};
    PyObject *object;
    cai_array array;
    if (!PyArg_ParseTuple(args, "O|I", &object, &options.flags)) return NULL;
    if (cai_python_import(&state->py, &object, 1, &options, &array)) return NULL;
    cai_python_release(&state->py, &array, 1);
    return Py_NewRef(Py_None);
}

/* adopted(object): an array of ours that owns the import of another one */
static PyObject *adopted(PyObject *module, PyObject *object)
{
    module_state *state = state_of(module);
    const cai_python_options options = {CAI_PYTHON_HOST, 0, 0, NULL};
    cai_array array;
    PyObject *result;
    if (cai_python_import(&state->py, &object, 1, &options, &array)) return NULL;
    result = cai_python_adopt(&state->py, (PyTypeObject *)state->array_type, &array);
    if (!result) cai_python_release(&state->py, &array, 1);
    return result;
}

/* counts(): (imported arrays that live, blocks of memory of ours, arrays that wait for a stream) */
static PyObject *counts(PyObject *module, PyObject *unused)
{
    module_state *state = state_of(module);
    cai_error err;
    (void)unused;
    if (state->pool.cuda && cai_keepalive_poll(&state->pool, NULL, &err)) return cai_python_raise(&err);
    cai_python_drain(&state->py);
    return Py_BuildValue("(LLi)", (long long)state->py.home->holders - 1, (long long)state->blocks,
                         (int)state->pool.waiting);
}

/* pass_time(): what is queued runs, which the simulation does not do by itself */
static PyObject *pass_time(PyObject *module, PyObject *unused)
{
    module_state *state = state_of(module);
    cai_error err;
    (void)unused;
    if (!state->pool.cuda) Py_RETURN_NONE;
    gpu_pass_time(&state->device);
    if (cai_keepalive_drain(&state->pool, &err)) return cai_python_raise(&err); /* what deleters have parked */
    Py_RETURN_NONE;
}

/* device(): why there is none, or None */
static PyObject *device(PyObject *module, PyObject *unused)
{
    (void)unused;
    if (!need_gpu(state_of(module))) return Py_NewRef(Py_None);
    PyErr_Clear();
    return PyUnicode_FromString(state_of(module)->device.why);
}

/* computes(): kernels run; else saxpy copies the first half of x and the second half of y, and nothing spins */
static PyObject *computes(PyObject *module, PyObject *unused)
{
    (void)unused;
    if (need_gpu(state_of(module))) return NULL;
    return PyBool_FromLong(gpu_computes(&state_of(module)->device));
}

enum { SPIN, ORDER, DONE, SYNCHRONIZE };

static PyObject *with_streams(PyObject *module, PyObject *first, PyObject *second, double seconds, int what)
{
    module_state *state = state_of(module);
    const cai_cuda *cuda = &state->device.driver.cuda;
    uint64_t s, after = 0;
    cai_error err;
    cai_status status = CAI_OK;
    int32_t code;
    if (need_gpu(state) || cai_python_stream(&state->py, first, &s)) return NULL;
    if (second && cai_python_stream(&state->py, second, &after)) return NULL;
    code = gpu_enter(&state->device);
    if (code) return raise_cuda(code, "context_push");
    Py_BEGIN_ALLOW_THREADS
    if (what == SPIN) code = gpu_run_spin(&state->device, (uint64_t)(seconds * 1e9), s);
    else if (what == ORDER) status = cai_stream_order(&state->pool, s, after, &err);
    else if (what == DONE) code = gpu_query(&state->device, s);
    else code = cuda->stream_synchronize(cuda->self, s);
    Py_END_ALLOW_THREADS
    gpu_leave(&state->device);
    if (status) return cai_python_raise(&err);
    if (what == DONE && (!code || code == GPU_NOT_READY)) return PyBool_FromLong(!code);
    return code ? raise_cuda(code, "a call with a stream") : Py_NewRef(Py_None);
}

/* spin(stream, seconds): work that takes so long */
static PyObject *spin(PyObject *module, PyObject *args)
{
    PyObject *stream;
    double seconds;
    if (!PyArg_ParseTuple(args, "Od", &stream, &seconds)) return NULL;
    return with_streams(module, stream, NULL, seconds, SPIN);
}

/* order(before, after): the second waits for what is in the first */
static PyObject *order(PyObject *module, PyObject *args)
{
    PyObject *before, *after;
    if (!PyArg_ParseTuple(args, "OO", &before, &after)) return NULL;
    return with_streams(module, before, after, 0, ORDER);
}

/* done(stream): nothing is pending on it */
static PyObject *done(PyObject *module, PyObject *stream)
{
    return with_streams(module, stream, NULL, 0, DONE);
}

/* synchronize(stream) */
static PyObject *synchronize(PyObject *module, PyObject *stream)
{
    return with_streams(module, stream, NULL, 0, SYNCHRONIZE);
}

/* upload(source, stream): an array of ours on the device, with the floats of one on the host */
static PyObject *upload(PyObject *module, PyObject *args)
{
    module_state *state = state_of(module);
    const cai_python_options options = {CAI_PYTHON_HOST, 0, 0, NULL};
    PyObject *source, *stream, *result = NULL;
    cai_array from, to;
    cai_error err;
    cai_status status;
    uint64_t s;
    int32_t code;
    memset(&to, 0, sizeof to);
    if (!PyArg_ParseTuple(args, "OO", &source, &stream)) return NULL;
    if (need_gpu(state) || cai_python_stream(&state->py, stream, &s)) return NULL;
    if (cai_python_import(&state->py, &source, 1, &options, &from)) return NULL;
    code = gpu_enter(&state->device);
    status = code ? cai_cuda_status(code, "context_push", &err)
                  : cai_expect(&from, "source", CAI_FLOAT32, CAI_ANY_NDIM, CAI_C_CONTIGUOUS, &err);
    if (!status) status = new_memory(state, &from, s, &to, &err);
    if (!status && to.size)
        status = cai_cuda_status(gpu_to_device(&state->device, to.data, (const void *)(uintptr_t)from.data,
                                               (size_t)to.nbytes, s),
                                 "a copy to the device", &err);
    if (!status) status = cai_stream_export(&to, &state->pool, s, NULL, 0, &err);
    if (!code) gpu_leave(&state->device);
    cai_python_release(&state->py, &from, 1);
    if (status) (void)cai_python_raise(&err);
    else result = (PyObject *)new_array((PyTypeObject *)state->array_type, module, stream, &to);
    cai_array_release(&to);
    return result;
}

/* copy(pointer, bytes, stream): an address of the device, by whoever says so */
static PyObject *copy(PyObject *module, PyObject *args)
{
    module_state *state = state_of(module);
    unsigned long long address;
    Py_ssize_t size;
    PyObject *stream, *bytes;
    uint64_t s;
    int32_t code;
    if (!PyArg_ParseTuple(args, "KnO", &address, &size, &stream)) return NULL;
    if (need_gpu(state) || cai_python_stream(&state->py, stream, &s)) return NULL;
    bytes = PyBytes_FromStringAndSize(NULL, size);
    if (!bytes) return NULL;
    code = gpu_enter(&state->device);
    if (!code) {
        code = gpu_to_host(&state->device, PyBytes_AsString(bytes), address, (size_t)size, s);
        gpu_leave(&state->device);
    }
    if (!code) return bytes;
    Py_DECREF(bytes);
    return raise_cuda(code, "a copy to the host");
}

static PyGetSetDef array_getset[] = {
    {"__array_interface__", array_host_interface, NULL, "on the host", NULL},
    {"__cuda_array_interface__", array_cuda_interface, NULL, "on the device: version 3", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, NULL},
    {"tobytes", array_bytes, METH_NOARGS, "once its stream has passed"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef stream_getset[] = {{"handle", stream_handle, NULL, NULL, NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef stream_methods[] = {{"__cuda_stream__", stream_protocol, METH_NOARGS, "(0, handle)"},
                                       {NULL, NULL, 0, NULL}};

static PyType_Slot array_slots[] = {{Py_tp_dealloc, (void *)array_dealloc},
                                    {Py_tp_getset, array_getset},
                                    {Py_tp_methods, array_methods},
                                    {0, NULL}};
static PyType_Slot stream_slots[] = {{Py_tp_new, (void *)stream_new},
                                     {Py_tp_dealloc, (void *)stream_dealloc},
                                     {Py_tp_getset, stream_getset},
                                     {Py_tp_methods, stream_methods},
                                     {0, NULL}};

static PyType_Spec array_spec = {"libraries.array", sizeof(array_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, array_slots};
static PyType_Spec stream_spec = {"libraries.stream", sizeof(stream_object), 0, Py_TPFLAGS_DEFAULT,
                                  stream_slots};

static int exec_module(PyObject *module)
{
    module_state *state = state_of(module);
    const int has_dlpack = 1;
    if (cai_python_dlpack_init(&state->py)) return -1;
    state->array_type = PyType_FromModuleAndSpec(module, &array_spec, NULL);
    state->stream_type = PyType_FromModuleAndSpec(module, &stream_spec, NULL);
    if (!state->array_type || !state->stream_type) return -1;
    if (cai_python_offer((PyTypeObject *)state->array_type, &exchange)) return -1;
    return PyModule_AddType(module, (PyTypeObject *)state->array_type) ||
                   PyModule_AddType(module, (PyTypeObject *)state->stream_type) ||
                   PyModule_AddIntConstant(module, "LENIENT", CAI_LENIENT) ||
                   PyModule_AddIntConstant(module, "HOST", CAI_PYTHON_HOST) ||
                   PyModule_AddIntConstant(module, "MASK", CAI_PYTHON_MASK) ||
                   PyModule_AddIntConstant(module, "FIELDS", CAI_PYTHON_FIELDS) ||
                   PyModule_AddIntConstant(module, "NARROW", CAI_PYTHON_NARROW) ||
                   PyModule_AddIntConstant(module, "HAS_DLPACK", has_dlpack)
               ? -1
               : 0;
}

/* A process has one of this module, until it ends: nothing is taken apart. */
static PyMethodDef functions[] = {
    {"saxpy", (PyCFunction)(void (*)(void))saxpy, METH_VARARGS | METH_KEYWORDS, "a x + y"},
    {"facts", facts, METH_VARARGS, NULL},
    {"nothing", nothing, METH_VARARGS, NULL},
    {"take", take, METH_VARARGS, NULL},
    {"adopted", adopted, METH_O, NULL},
    {"counts", counts, METH_NOARGS, NULL},
    {"pass_time", pass_time, METH_NOARGS, NULL},
    {"device", device, METH_NOARGS, NULL},
    {"computes", computes, METH_NOARGS, NULL},
    {"spin", spin, METH_VARARGS, NULL},
    {"order", order, METH_VARARGS, NULL},
    {"done", done, METH_O, NULL},
    {"synchronize", synchronize, METH_O, NULL},
    {"upload", upload, METH_VARARGS, NULL},
    {"copy", copy, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec_module}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "libraries", NULL, sizeof(module_state),
                                        functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_libraries(void);
PyMODINIT_FUNC PyInit_libraries(void)
{
    return PyModuleDef_Init(&definition);
}
