/* cai_field.c - a Python module: a field on host and device, and each side for any library
 * SPDX-License-Identifier: MIT
 *
 *     import cai_field, numpy, numba.cuda as cuda
 *     cuda.current_context()                                   # a context must be current
 *     f = cai_field.field((68, 52, 8), preset="gtcuda", dims="IJK", halo=(2, 2, 0))
 *     numpy.asarray(f.host("overwrite"))[...] = 1.0            # nothing is copied
 *     kernel[grid, block](cuda.as_cuda_array(f.device("write"))) # copied to the device now
 *     numpy.asarray(f.host())                                  # copied back now, and read-only
 *
 * f.host and f.device begin an access. It ends when the last view of it is gone, so `del` the views that you
 * keep. An access that does not go with an open one raises an error that names both sides.
 *
 * GT4Py takes a side as an argument of a stencil, and field.of makes a field of an array or a field of GT4Py:
 *
 *     diffuse(f.host(), g.host("overwrite"), domain=f.gt_domain)
 *     f = cai_field.field.of(gt4py.storage.zeros(shape, backend="numpy"), dims="IJK", halo=(2, 2, 0)) */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_storage.h"

#include "cai_python_dlpack.h"

#include <string.h>

enum { PLACES = 64 }; /* tensors that wait until the work on them has passed */

typedef struct module_state {
    cai_python py;
    cai_cuda_driver driver;
    cai_event_pool pool;
    cai_emm_hooks hooks;
    cai_keepalive places[PLACES];
    PyTypeObject *sides[2]; /* of the host and of the device */
} module_state;

/* Both keep the object that stands for their stream, which must outlive them (R81). */
typedef struct field_object {
    PyObject_HEAD
    PyObject *module, *home, *dims; /* dims: a tuple of the names of the axes, or NULL */
    int busy; /* a thread is in it, without the GIL */
    cai_storage storage;
} field_object;

/* One side, while it is open. */
typedef struct side_object {
    PyObject_HEAD
    PyObject *field, *stream;
    cai_array array; /* owned */
} side_object;

static module_state *state_of_field(PyObject *self)
{
    return (module_state *)PyModule_GetState(((field_object *)self)->module);
}

static module_state *state_of_side(PyObject *self)
{
    return state_of_field(((side_object *)self)->field);
}

/* ---------------------------------------------------------------------------- the sides */
static int side_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((side_object *)self)->field);
    Py_VISIT(((side_object *)self)->stream);
    return 0;
}

/* The end of the access. It may wait for a default stream, and so for a callback that needs the GIL. */
static void side_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    side_object *side = (side_object *)self;
    PyObject *field = side->field, *stream = side->stream;
    PyObject_GC_UnTrack(self);
    Py_BEGIN_ALLOW_THREADS
    cai_array_release(&side->array);
    Py_END_ALLOW_THREADS
    PyObject_GC_Del(self);
    Py_XDECREF(stream);
    Py_XDECREF(field);
    Py_DECREF(type);
}

static PyObject *host_interface(PyObject *self, void *unused)
{
    cai_array view;
    (void)unused;
    cai_array_borrow(&view, &((side_object *)self)->array);
    view.memory = CAI_MEMORY_HOST; /* it is pinned, which is nothing to the host */
    return cai_python_interface(&state_of_side(self)->py, &view, 3, NULL);
}

static PyObject *device_interface(PyObject *self, void *unused)
{
    (void)unused;
    return cai_python_interface(&state_of_side(self)->py, &((side_object *)self)->array, 3, NULL);
}

static PyObject *side_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    const cai_array *array = &((side_object *)self)->array;
    module_state *state = state_of_side(self);
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(array, args, keywords, &request)) return NULL;
    if (array->sync == CAI_SYNC_NONE) return cai_python_dlpack(&state->py, self, array, &request);
    return cai_python_dlpack_ordered(&state->py, &state->pool, self, array, &request);
}

static PyObject *side_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return cai_python_dlpack_device(&((side_object *)self)->array);
}

/* ------------------------------------------------------------------------ GT4Py's names */
/* GT4Py's order of the axes: I, J, K, then those of data by their number. Other names keep their order. */
static int rank_of(PyObject *dims, int32_t axis)
{
    PyObject *name = PyTuple_GetItem(dims, axis);
    Py_UCS4 letter = PyUnicode_GetLength(name) == 1 ? PyUnicode_ReadChar(name, 0) : 0;
    if (letter >= 'I' && letter <= 'K') return (int)(letter - 'I');
    return letter >= '0' && letter <= '9' ? (int)(letter - '0') + 3 : 13;
}

/* Stores the axes of a field in that order. GT4Py wants `__gt_dims__` in the order of the array, and
 * `__gt_origin__` in this one (GT4Py 1.1.12, StencilObject._normalize_origins). */
static void gt_order(PyObject *dims, int32_t ndim, int32_t *axes)
{
    int32_t i, k;
    for (i = 0; i < ndim; ++i) {
        for (k = i; dims && k > 0 && rank_of(dims, axes[k - 1]) > rank_of(dims, i); --k)
            axes[k] = axes[k - 1];
        axes[k] = i;
    }
}

static PyObject *side_dims(PyObject *self, void *unused)
{
    field_object *field = (field_object *)((side_object *)self)->field;
    (void)unused;
    if (field->dims) return Py_NewRef(field->dims);
    return PyErr_Format(PyExc_AttributeError, "the axes of the field have no names: give dims");
}

/* The numbers without the halo, in GT4Py's order: where the domain begins, or how far it goes. */
static PyObject *gt_numbers(const field_object *field, int extent)
{
    const cai_layout *layout = &field->storage.layout;
    PyObject *out = PyTuple_New(layout->ndim);
    int32_t axes[CAI_LAYOUT_MAX_NDIM], i;
    gt_order(field->dims, layout->ndim, axes);
    for (i = 0; out && i < layout->ndim; ++i) {
        int32_t axis = axes[i];
        int64_t size = layout->shape[axis] - layout->halo_low[axis] - layout->halo_high[axis];
        PyObject *number = PyLong_FromLongLong(extent ? size : layout->halo_low[axis]);
        if (!number || PyTuple_SetItem(out, i, number)) Py_CLEAR(out);
    }
    return out;
}

static PyObject *side_origin(PyObject *self, void *unused)
{
    (void)unused;
    return gt_numbers((field_object *)((side_object *)self)->field, 0);
}

/* --------------------------------------------------------------------------- the fields */
static int field_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((field_object *)self)->module);
    Py_VISIT(((field_object *)self)->home);
    Py_VISIT(((field_object *)self)->dims);
    return 0;
}

/* A side whose end failed leaves the storage open, and its memory is kept for the work that may use it. */
static void field_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    field_object *field = (field_object *)self;
    PyObject *module = field->module, *home = field->home, *dims = field->dims;
    cai_error err;
    cai_status status;
    PyObject_GC_UnTrack(self);
    Py_BEGIN_ALLOW_THREADS
    status = cai_storage_release(&field->storage, &err);
    Py_END_ALLOW_THREADS
    if (status) {
        (void)cai_python_raise(&err);
        PyErr_WriteUnraisable((PyObject *)type);
    }
    PyObject_GC_Del(self);
    Py_XDECREF(dims);
    Py_XDECREF(home);
    Py_DECREF(type);
    Py_XDECREF(module);
}

/* Reads a tuple of `count` numbers. Returns 0, or -1 with an exception set. */
static int read_numbers(PyObject *tuple, const char *name, int64_t *out, Py_ssize_t count)
{
    Py_ssize_t i;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) {
        (void)PyErr_Format(PyExc_TypeError, "%s is not a tuple of %zd numbers", name, count);
        return -1;
    }
    for (i = 0; i < count; ++i) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (out[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

static void set_options(module_state *state, uint64_t home, cai_storage_options *options)
{
    memset(options, 0, sizeof *options);
    options->pool = &state->pool;
    options->hooks = &state->hooks;
    options->home = home;
    options->kind = CAI_STORAGE_BOTH;
    options->flags = CAI_STORAGE_ZEROS;
}

/* Makes the storage. Needs no GIL. */
static cai_status make_storage(module_state *state, cai_storage *out, const char *typestr, const char *preset,
                               const char *dims, const cai_layout *wanted, uint64_t home, cai_error *err)
{
    cai_layout layout;
    cai_storage_options options;
    cai_dtype dtype;
    CAI_TRY(cai_dtype_parse(typestr, (int64_t)strlen(typestr), 0, &dtype, err));
    layout = *wanted;
    if (preset) {
        CAI_TRY(cai_layout_preset(&layout, preset, dims ? dims : "", err));
        if (layout.ndim != wanted->ndim)
            return cai_error_set(CAI_ERR_SHAPE, "field: shape and dims have different lengths", NULL, err);
    }
    if (wanted->alignment) layout.alignment = wanted->alignment;
    set_options(state, home, &options);
    return cai_storage_init(out, &options, &dtype, &layout, err);
}

/* A field without a storage. Takes the reference `dims`, also on failure. */
static PyObject *new_field(PyTypeObject *type, PyObject *module, PyObject *home, PyObject *dims)
{
    PyObject *self = PyType_GenericAlloc(type, 0); /* zeros */
    if (!self) {
        Py_XDECREF(dims);
        return NULL;
    }
    ((field_object *)self)->module = Py_NewRef(module);
    ((field_object *)self)->home = Py_XNewRef(home);
    ((field_object *)self)->dims = dims;
    return self;
}

/* The names of `ndim` axes as a tuple: of a string the letters. Returns NULL with an exception set. */
static PyObject *read_dims(PyObject *names, int32_t ndim)
{
    PyObject *dims = PySequence_Tuple(names);
    Py_ssize_t i;
    if (dims && PyTuple_Size(dims) != ndim) {
        (void)PyErr_Format(PyExc_ValueError, "the array has %d axes, and dims %zd: different lengths",
                           (int)ndim, PyTuple_Size(dims));
        Py_CLEAR(dims);
    }
    for (i = 0; dims && i < ndim; ++i) {
        if (PyUnicode_Check(PyTuple_GetItem(dims, i))) continue;
        (void)PyErr_Format(PyExc_TypeError, "dims[%zd] is not a string", i);
        Py_CLEAR(dims);
    }
    return dims;
}

/* field(shape, dtype="<f8", *, preset=None, dims=None, halo=None, alignment=0, home=1) */
static PyObject *field_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *keys[] = {"shape", "dtype", "preset", "dims", "halo", "alignment", "home", NULL};
    PyObject *module = PyType_GetModule(type), *shape, *halo = NULL, *home = NULL, *names = NULL, *self;
    const char *typestr = "<f8", *preset = NULL, *dims = NULL;
    module_state *state = module ? (module_state *)PyModule_GetState(module) : NULL;
    cai_layout layout;
    cai_error err;
    cai_status status;
    uint64_t stream = CAI_STREAM_LEGACY;
    int alignment = 0;
    memset(&layout, 0, sizeof layout);
    if (!state || !PyArg_ParseTupleAndKeywords(args, keywords, "O!|s$zOO!iO:field", keys, &PyTuple_Type,
                                               &shape, &typestr, &preset, &names, &PyTuple_Type, &halo,
                                               &alignment, &home))
        return NULL;
    if (PyTuple_Size(shape) > CAI_LAYOUT_MAX_NDIM)
        return PyErr_Format(PyExc_ValueError, "shape has more than %d axes", (int)CAI_LAYOUT_MAX_NDIM);
    layout.ndim = (int32_t)PyTuple_Size(shape);
    layout.alignment = alignment;
    if (read_numbers(shape, "shape", layout.shape, layout.ndim)) return NULL;
    if (halo && read_numbers(halo, "halo", layout.halo_low, layout.ndim)) return NULL;
    memcpy(layout.halo_high, layout.halo_low, sizeof layout.halo_high);
    if (home && cai_python_stream(&state->py, home, &stream)) return NULL;
    if (names == Py_None) names = NULL;
    if (names && preset && !(dims = PyUnicode_AsUTF8AndSize(names, NULL))) return NULL;
    if (names && !(names = read_dims(names, layout.ndim))) return NULL;
    self = new_field(type, module, home, names);
    if (!self) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = make_storage(state, &((field_object *)self)->storage, typestr, preset, dims, &layout, stream,
                          &err);
    Py_END_ALLOW_THREADS
    if (!status) return self;
    Py_DECREF(self);
    return cai_python_raise(&err);
}

/* An attribute that an object may lack: NULL then. Returns 0, or -1 with an exception set. */
static int optional(PyObject *object, const char *name, PyObject **out)
{
    *out = PyObject_GetAttrString(object, name);
    if (*out) return 0;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
}

/* Stores the names of a foreign array's axes: `dims`, or else its __gt_dims__, or NULL. */
static int foreign_dims(PyObject *array, PyObject *dims, int32_t ndim, PyObject **out)
{
    PyObject *found = NULL;
    *out = NULL;
    if (dims) {
        *out = read_dims(dims, ndim);
        return *out ? 0 : -1;
    }
    if (optional(array, "__gt_dims__", &found)) return -1;
    if (!found) return 0;
    *out = read_dims(found, ndim);
    Py_DECREF(found);
    return *out ? 0 : -1;
}

/* Stores the halo of a foreign array: `halo`, in the order of its axes, or else its __gt_origin__, or zeros.
 * GT4Py does not say how wide the upper halo is. It is taken to be as wide as the lower one. */
static int foreign_halo(PyObject *array, PyObject *halo, PyObject *dims, cai_layout *layout)
{
    int64_t numbers[CAI_LAYOUT_MAX_NDIM] = {0};
    int32_t axes[CAI_LAYOUT_MAX_NDIM], i;
    PyObject *origin = NULL;
    int failed = 0;
    gt_order(halo ? NULL : dims, layout->ndim, axes);
    if (halo) failed = read_numbers(halo, "halo", numbers, layout->ndim);
    else if (optional(array, "__gt_origin__", &origin)) return -1;
    else if (origin) failed = read_numbers(origin, "__gt_origin__", numbers, layout->ndim);
    Py_XDECREF(origin);
    for (i = 0; !failed && i < layout->ndim; ++i) {
        if (numbers[i] < 0 || numbers[i] > layout->shape[axes[i]] / 2) {
            (void)PyErr_Format(PyExc_ValueError, "a halo of %lld at both ends does not fit axis %d of %lld",
                               (long long)numbers[i], (int)axes[i], (long long)layout->shape[axes[i]]);
            failed = -1;
        }
        layout->halo_low[axes[i]] = layout->halo_high[axes[i]] = numbers[i];
    }
    return failed;
}

/* Makes the storage of a foreign array, which is moved into it as one side. Needs no GIL. */
static cai_status wrap(cai_storage *storage, module_state *state, cai_array *array, uint64_t home,
                       cai_error *err)
{
    cai_storage_options options;
    set_options(state, home, &options);
    options.flags = 0;
    if (array->memory != CAI_MEMORY_HOST) {
        CAI_TRY(cai_locate(array, "array", &state->driver.cuda, 0, NULL, err));
    }
    if (array->memory == CAI_MEMORY_DEVICE)
        return cai_storage_wrap(storage, &options, NULL, array, 0, err);
    return cai_storage_wrap(storage, &options, array, NULL, 0, err);
}

/* field.of(array, *, dims=None, halo=None, home=1): a field whose one side is the memory of `array` */
static PyObject *field_of(PyObject *type, PyObject *args, PyObject *keywords)
{
    static char *keys[] = {"array", "dims", "halo", "home", NULL};
    PyObject *module = PyType_GetModule((PyTypeObject *)type), *object, *buffer, *self = NULL;
    PyObject *dims = NULL, *halo = NULL, *home = NULL;
    module_state *state = module ? (module_state *)PyModule_GetState(module) : NULL;
    cai_python_options options = {CAI_PYTHON_HOST, 0, 0, NULL};
    uint64_t stream = CAI_STREAM_LEGACY;
    cai_array array;
    cai_error err;
    cai_status status;
    if (!state || !PyArg_ParseTupleAndKeywords(args, keywords, "O|$OO!O:of", keys, &object, &dims,
                                               &PyTuple_Type, &halo, &home))
        return NULL;
    if (home && cai_python_stream(&state->py, home, &stream)) return NULL;
    options.stream = stream;
    if (optional(object, "ndarray", &buffer)) return NULL; /* of a field of gt4py.next */
    if (!buffer) buffer = Py_NewRef(object);
    if (cai_python_import(&state->py, &buffer, 1, &options, &array)) goto done;
    if (foreign_dims(object, dims == Py_None ? NULL : dims, array.ndim, &dims)) goto taken;
    self = new_field((PyTypeObject *)type, module, home, dims);
    if (!self) goto taken;
    Py_BEGIN_ALLOW_THREADS
    status = wrap(&((field_object *)self)->storage, state, &array, stream, &err);
    Py_END_ALLOW_THREADS
    if (status) {
        (void)cai_python_raise(&err);
        goto taken;
    }
    if (foreign_halo(object, halo, dims, &((field_object *)self)->storage.layout)) Py_CLEAR(self);
    goto done;
taken: /* but not moved */
    cai_python_release(&state->py, &array, 1);
    Py_CLEAR(self);
done:
    Py_DECREF(buffer);
    return self;
}

static int32_t mode_of(const char *name)
{
    if (!strcmp(name, "read")) return CAI_READ;
    if (!strcmp(name, "write")) return CAI_WRITE;
    if (!strcmp(name, "overwrite")) return CAI_OVERWRITE;
    (void)PyErr_Format(PyExc_ValueError, "mode '%s' is not read, write or overwrite", name);
    return 0;
}

/* What consumers let go of by DLPack may be parked in the pool, as only a wait can tell that they are done. */
static int settle(module_state *state)
{
    cai_error err;
    cai_status status = CAI_OK;
    Py_BEGIN_ALLOW_THREADS
    if (state->pool.waiting) status = cai_keepalive_drain(&state->pool, &err);
    Py_END_ALLOW_THREADS
    cai_python_drain(&state->py); /* the references that were given back without the GIL */
    if (!status) return 0;
    (void)cai_python_raise(&err);
    return -1;
}

/* Begins an access. It may wait, so the GIL is not held. */
static PyObject *open_side(PyObject *self, int32_t side, int32_t mode, uint64_t stream, PyObject *owner)
{
    field_object *field = (field_object *)self;
    PyObject *out;
    cai_error err;
    cai_status status;
    if (field->busy) return PyErr_Format(PyExc_RuntimeError, "another thread uses the field");
    if (settle(state_of_field(self))) return NULL;
    out = PyType_GenericAlloc(state_of_field(self)->sides[side - 1], 0);
    if (!out) return NULL;
    ((side_object *)out)->field = Py_NewRef(self);
    ((side_object *)out)->stream = Py_XNewRef(owner);
    field->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    status = cai_storage_export(&field->storage, side, mode, stream, &((side_object *)out)->array, &err);
    Py_END_ALLOW_THREADS
    field->busy = 0;
    if (!status) return out;
    Py_DECREF(out);
    return cai_python_raise(&err);
}

/* host(mode="read") */
static PyObject *field_host(PyObject *self, PyObject *args)
{
    const char *name = "read";
    int32_t mode;
    if (!PyArg_ParseTuple(args, "|s:host", &name)) return NULL;
    mode = mode_of(name);
    return mode ? open_side(self, CAI_SIDE_HOST, mode, 0, NULL) : NULL;
}

/* device(mode="read", stream=home): the stream is that of your work */
static PyObject *field_device(PyObject *self, PyObject *args)
{
    const char *name = "read";
    PyObject *object = NULL;
    uint64_t stream = ((field_object *)self)->storage.options.home;
    int32_t mode;
    if (!PyArg_ParseTuple(args, "|sO:device", &name, &object)) return NULL;
    if (object && cai_python_stream(&state_of_field(self)->py, object, &stream)) return NULL;
    mode = mode_of(name);
    return mode ? open_side(self, CAI_SIDE_DEVICE, mode, stream, object) : NULL;
}

static PyObject *field_state(PyObject *self, void *unused)
{
    static const char *const names[] = {"clean", "host newer", "device newer"};
    (void)unused;
    if (settle(state_of_field(self))) return NULL;
    return PyUnicode_FromString(names[((field_object *)self)->storage.state]);
}

/* The domain without the halo, as an index of a view. */
static PyObject *field_domain(PyObject *self, void *unused)
{
    const cai_layout *layout = &((field_object *)self)->storage.layout;
    PyObject *out = PyTuple_New(layout->ndim);
    int32_t i;
    (void)unused;
    for (i = 0; out && i < layout->ndim; ++i) {
        PyObject *low = PyLong_FromLongLong(layout->halo_low[i]);
        PyObject *high = PyLong_FromLongLong(layout->shape[i] - layout->halo_high[i]);
        PyObject *slice = low && high ? PySlice_New(low, high, NULL) : NULL;
        Py_XDECREF(low);
        Py_XDECREF(high);
        if (!slice) Py_CLEAR(out);
        else if (PyTuple_SetItem(out, i, slice)) Py_CLEAR(out);
    }
    return out;
}

/* The same as sizes in GT4Py's order. A stencil needs it, as GT4Py does not know the upper halo. */
static PyObject *field_gt_domain(PyObject *self, void *unused)
{
    (void)unused;
    return gt_numbers((field_object *)self, 1);
}

/* --------------------------------------------------------------------------- the module */
static PyMethodDef side_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))side_dlpack, METH_VARARGS | METH_KEYWORDS, "a tensor"},
    {"__dlpack_device__", side_dlpack_device, METH_NOARGS, "type and number of the device"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef host_getset[] = {
    {"__array_interface__", host_interface, NULL, "of the host side", NULL},
    {"__gt_dims__", side_dims, NULL, "names of the axes, for GT4Py", NULL},
    {"__gt_origin__", side_origin, NULL, "where the domain begins, for GT4Py", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyGetSetDef device_getset[] = {
    {"__cuda_array_interface__", device_interface, NULL, "version 3, with the stream", NULL},
    {"__gt_dims__", side_dims, NULL, "names of the axes, for GT4Py", NULL},
    {"__gt_origin__", side_origin, NULL, "where the domain begins, for GT4Py", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef field_methods[] = {
    {"host", field_host, METH_VARARGS, "host(mode=\"read\")"},
    {"device", field_device, METH_VARARGS, "device(mode=\"read\", stream=home)"},
    {"of", (PyCFunction)(void (*)(void))field_of, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "of(array, *, dims=None, halo=None, home=1)"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef field_getset[] = {{"state", field_state, NULL, "which side is newer", NULL},
                                     {"domain", field_domain, NULL, "slices without the halo", NULL},
                                     {"gt_domain", field_gt_domain, NULL, "GT4Py's domain", NULL},
                                     {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot field_slots[] = {
    {Py_tp_new, (void *)field_new},           {Py_tp_dealloc, (void *)field_dealloc},
    {Py_tp_traverse, (void *)field_traverse}, {Py_tp_methods, field_methods},
    {Py_tp_getset, field_getset},             {0, NULL}};

static PyType_Slot host_slots[] = {
    {Py_tp_dealloc, (void *)side_dealloc}, {Py_tp_traverse, (void *)side_traverse},
    {Py_tp_methods, side_methods},         {Py_tp_getset, host_getset},
    {0, NULL}};

static PyType_Slot device_slots[] = {
    {Py_tp_dealloc, (void *)side_dealloc}, {Py_tp_traverse, (void *)side_traverse},
    {Py_tp_methods, side_methods},         {Py_tp_getset, device_getset},
    {0, NULL}};

enum {
    FIELD_FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    SIDE_FLAGS = FIELD_FLAGS | Py_TPFLAGS_DISALLOW_INSTANTIATION
};
static PyType_Spec field_spec = {"cai_field.field", sizeof(field_object), 0, FIELD_FLAGS, field_slots};
static PyType_Spec host_spec = {"cai_field.host_side", sizeof(side_object), 0, SIDE_FLAGS, host_slots};
static PyType_Spec device_spec = {"cai_field.device_side", sizeof(side_object), 0, SIDE_FLAGS, device_slots};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type)) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static cai_status open_cuda(module_state *state, cai_error *err)
{
    CAI_TRY(cai_cuda_load(&state->driver, NULL, err));
    CAI_TRY(cai_event_pool_init(&state->pool, &state->driver.cuda, state->places, PLACES, 0, err));
    return cai_emm_hooks_cuda(&state->hooks, &state->driver.cuda, err);
}

static int exec_module(PyObject *module)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    PyTypeObject *field;
    cai_error err;
    if (cai_python_dlpack_init(&state->py)) return -1;
    if (open_cuda(state, &err)) {
        (void)cai_python_raise(&err);
        return -1;
    }
    state->sides[0] = add_type(module, &host_spec);
    state->sides[1] = state->sides[0] ? add_type(module, &device_spec) : NULL;
    field = state->sides[1] ? add_type(module, &field_spec) : NULL;
    Py_XDECREF(field);
    return field ? 0 : -1;
}

static int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    if (!state) return 0;
    Py_VISIT(state->sides[0]);
    Py_VISIT(state->sides[1]);
    return cai_python_traverse(&state->py, visit, arg);
}

static int clear_module(PyObject *module)
{
    module_state *state = (module_state *)PyModule_GetState(module);
    if (!state) return 0;
    Py_CLEAR(state->sides[0]);
    Py_CLEAR(state->sides[1]);
    return 0;
}

/* Runs when no field and no side is left. */
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
    (void)clear_module((PyObject *)module);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec_module}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "cai_field",
                                        "fields on host and device, whose sides any library takes",
                                        sizeof(module_state), NULL, slots, traverse_module,
                                        clear_module, free_module};

PyMODINIT_FUNC PyInit_cai_field(void);
PyMODINIT_FUNC PyInit_cai_field(void)
{
    return PyModuleDef_Init(&definition);
}
