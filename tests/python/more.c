/* more.c - probe.c with what check_more.py needs besides: buffers that lie, rows of a descr, a simulated CUDA
 * SPDX-License-Identifier: MIT
 *
 * Built together with sim/cai_sim.c. One simulation and one pool at a time: `simulate` makes them. */

#if !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#define CAI_STATIC
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#define PY_SSIZE_T_CLEAN
#include <Python.h> /* first, as Python wants it */

#define CAI_IMPLEMENTATION
#include "cai_stream.h"

#include "cai_sim.h"

#define PyInit_cai_probe PyInit_cai_probe_inside /* its functions are wanted, and not its module */
#include "probe.c"

enum { MORE_PLACES = 8, MORE_AXES = 80 };

typedef struct more_state {
    probe_state probe; /* first: the functions of probe.c take the state for theirs */
    cai_sim *sim;
    cai_event_pool pool;
    cai_keepalive places[MORE_PLACES];
} more_state;

static more_state *more_of(PyObject *module)
{
    return (more_state *)PyModule_GetState(module);
}

static PyObject *more_number(int64_t number)
{
    return PyLong_FromLongLong((long long)number);
}

static PyObject *more_refuse(const char *text)
{
    PyErr_SetString(PyExc_AssertionError, text);
    return NULL;
}

/* ---------------------------------------------------------------------------- a buffer */
/* Buffer(memory, **what it says of it): all that is said is passed on as it is. */
typedef struct more_buffer {
    PyObject_HEAD
    PyObject *hook; /* called by each request; NULL: none */
    char *memory;
    Py_ssize_t bytes, offset, length, itemsize, ndim;
    char *format; /* NULL: none */
    Py_ssize_t *shape, *strides, *suboffsets; /* NULL: none */
    int read_only, null, polite;
    int flags; /* of the last request */
    long given, returned;
} more_buffer;

/* A row of numbers, or NULL for None. Room for MORE_AXES more. */
static int more_row(PyObject *tuple, Py_ssize_t **out)
{
    Py_ssize_t i, count;
    if (tuple == Py_None) return 0;
    count = PyTuple_Size(tuple);
    if (count < 0) return -1;
    *out = (Py_ssize_t *)PyMem_Calloc((size_t)count + MORE_AXES, sizeof **out);
    if (!*out) return -1;
    for (i = 0; i < count; ++i) (*out)[i] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
    return PyErr_Occurred() ? -1 : 0;
}

static int more_copy(char **out, const char *from, Py_ssize_t bytes)
{
    *out = (char *)PyMem_Calloc((size_t)bytes + 1, 1);
    if (!*out) return -1;
    memcpy(*out, from, (size_t)bytes);
    return 0;
}

static int more_buffer_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char memory[] = "memory", format[] = "format", itemsize[] = "itemsize", shape[] = "shape",
                strides[] = "strides", suboffsets[] = "suboffsets", ndim[] = "ndim", length[] = "length",
                offset[] = "offset", read_only[] = "read_only", null[] = "null", polite[] = "polite",
                hook[] = "hook";
    static char *names[] = {memory, format, itemsize,  shape, strides, suboffsets, ndim,
                            length, offset, read_only, null,  polite,  hook,       NULL};
    more_buffer *self = (more_buffer *)object;
    PyObject *rows[3] = {Py_None, Py_None, Py_None}, *called = NULL;
    const char *bytes, *text = NULL;
    Py_ssize_t count, text_count = 0;
    self->itemsize = 1;
    self->ndim = self->length = -2;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#|$z#nOOOnnnpppO", names, &bytes, &count, &text,
                                     &text_count, &self->itemsize, &rows[0], &rows[1], &rows[2], &self->ndim,
                                     &self->length, &self->offset, &self->read_only, &self->null,
                                     &self->polite, &called))
        return -1;
    self->bytes = count;
    if (self->length == -2) self->length = count;
    if (self->ndim == -2) self->ndim = rows[0] == Py_None ? 1 : PyTuple_Size(rows[0]);
    if (more_copy(&self->memory, bytes, count)) return -1;
    if (text && more_copy(&self->format, text, text_count)) return -1;
    if (more_row(rows[0], &self->shape) || more_row(rows[1], &self->strides)) return -1;
    Py_XINCREF(called);
    self->hook = called;
    return more_row(rows[2], &self->suboffsets);
}

static void more_buffer_dealloc(PyObject *object)
{
    more_buffer *self = (more_buffer *)object;
    PyTypeObject *type = Py_TYPE(object);
    void *const slot = PyType_GetSlot(type, Py_tp_free);
    freefunc release;
    memcpy(&release, &slot, sizeof release); /* a function is no object in ISO C */
    Py_XDECREF(self->hook);
    if (self->memory) memset(self->memory, 0xDD, (size_t)self->bytes);
    PyMem_Free(self->memory);
    PyMem_Free(self->format);
    PyMem_Free(self->shape);
    PyMem_Free(self->strides);
    PyMem_Free(self->suboffsets);
    release(object);
    Py_DECREF(type);
}

static int more_buffer_get(PyObject *object, Py_buffer *view, int flags)
{
    more_buffer *self = (more_buffer *)object;
    PyObject *result;
    self->flags = flags;
    view->obj = NULL;
    if (self->hook) {
        result = PyObject_CallObject(self->hook, NULL);
        if (!result) return -1;
        Py_DECREF(result);
    }
    if (self->polite && self->suboffsets && (flags & PyBUF_INDIRECT) != PyBUF_INDIRECT) {
        PyErr_SetString(PyExc_BufferError, "it has suboffsets");
        return -1;
    }
    if (self->read_only && (flags & PyBUF_WRITABLE)) {
        PyErr_SetString(PyExc_BufferError, "it is read-only");
        return -1;
    }
    view->buf = self->null ? NULL : self->memory + self->offset;
    view->len = self->length;
    view->readonly = self->read_only;
    view->itemsize = self->itemsize;
    view->format = self->format;
    view->ndim = (int)self->ndim;
    view->shape = self->shape;
    view->strides = self->strides;
    view->suboffsets = self->suboffsets;
    view->internal = NULL;
    Py_INCREF(object);
    view->obj = object;
    ++self->given;
    return 0;
}

static void more_buffer_release(PyObject *object, Py_buffer *view)
{
    (void)view;
    ++((more_buffer *)object)->returned;
}

/* counts() -> (buffers given, returned, flags of the last request, the address of the memory) */
static PyObject *more_buffer_counts(PyObject *object, PyObject *unused)
{
    const more_buffer *self = (const more_buffer *)object;
    (void)unused;
    return Py_BuildValue("llik", self->given, self->returned, self->flags, (unsigned long)self->memory);
}

/* spoil(): the rows and the format are no longer what they were. */
static PyObject *more_buffer_spoil(PyObject *object, PyObject *unused)
{
    more_buffer *self = (more_buffer *)object;
    (void)unused;
    if (self->shape) memset(self->shape, 0x77, MORE_AXES * sizeof *self->shape);
    if (self->strides) memset(self->strides, 0x77, MORE_AXES * sizeof *self->strides);
    if (self->format) memset(self->format, '?', strlen(self->format));
    Py_RETURN_NONE;
}

static PyMethodDef more_buffer_methods[] = {{"counts", more_buffer_counts, METH_NOARGS, NULL},
                                            {"spoil", more_buffer_spoil, METH_NOARGS, NULL},
                                            {NULL, NULL, 0, NULL}};

/* Slots are void *, to which a function is not converted in ISO C. */
static void more_slot(PyType_Slot *slot, int number, const void *function)
{
    slot->slot = number;
    memcpy(&slot->pfunc, function, sizeof slot->pfunc);
}

static PyObject *more_buffer_type(void)
{
    static PyType_Slot slots[6];
    static PyType_Spec spec = {"cai_more.Buffer", (int)sizeof(more_buffer), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    int (*const init)(PyObject *, PyObject *, PyObject *) = more_buffer_init;
    void (*const dealloc)(PyObject *) = more_buffer_dealloc;
    int (*const get)(PyObject *, Py_buffer *, int) = more_buffer_get;
    void (*const release)(PyObject *, Py_buffer *) = more_buffer_release;
    more_slot(&slots[0], Py_tp_init, &init);
    more_slot(&slots[1], Py_tp_dealloc, &dealloc);
    more_slot(&slots[2], Py_bf_getbuffer, &get);
    more_slot(&slots[3], Py_bf_releasebuffer, &release);
    slots[4].slot = Py_tp_methods;
    slots[4].pfunc = more_buffer_methods;
    return PyType_FromSpec(&spec);
}

/* ------------------------------------------------------------------------ held arrays */

/* The array `index` of a capsule; NULL with an exception set. */
static cai_array *more_array(PyObject *capsule, Py_ssize_t index)
{
    probe_held *held = probe_get(capsule);
    if (!held) return NULL;
    if (index >= 0 && index < held->count) return &held->arrays[index];
    PyErr_SetString(PyExc_IndexError, "no such array");
    return NULL;
}

static PyObject *more_text(const char *text, uint32_t length)
{
    if (!text) return probe_none();
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "strict");
}

/* A row as cai_inspect prints it, and what it does not print. */
static PyObject *more_field(const cai_field *field)
{
    char typestr[CAI_TYPESTR_SIZE];
    (void)cai_dtype_typestr(&field->dtype, typestr, CAI_TYPESTR_SIZE);
    return Py_BuildValue("{sN sN sL sL sN si ss si si}", "name", more_text(field->name, field->name_length),
                         "title", more_text(field->title, field->title_length), "offset",
                         (long long)field->offset, "nbytes", (long long)field->nbytes, "shape",
                         probe_numbers(field->shape, field->ndim), "parent", (int)field->parent, "typestr",
                         typestr, "children", (int)field->child_count, "reserved", (int)field->reserved);
}

/* fields(held, index) -> a list of rows, or None */
static PyObject *more_fields(PyObject *module, PyObject *args)
{
    PyObject *capsule, *list;
    const cai_array *array;
    Py_ssize_t index;
    int64_t row;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &capsule, &index)) return NULL;
    array = more_array(capsule, index);
    if (!array) return NULL;
    if (!array->fields) return array->field_count ? more_refuse("rows without storage") : probe_none();
    list = PyList_New((Py_ssize_t)array->field_count);
    for (row = 0; list && row < array->field_count; ++row) {
        PyObject *facts = more_field(&array->fields[row]);
        if (!facts || PyList_SetItem(list, (Py_ssize_t)row, facts)) Py_CLEAR(list);
    }
    return list;
}

/* owned(held) -> which of the arrays have a release */
static PyObject *more_owned(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    PyObject *list = held ? PyList_New(held->count) : NULL;
    Py_ssize_t i;
    (void)module;
    for (i = 0; list && i < held->count; ++i) {
        PyObject *owned = PyBool_FromLong(held->arrays[i].release != NULL);
        if (!owned || PyList_SetItem(list, i, owned)) Py_CLEAR(list);
    }
    return list;
}

/* flags(held, index): CAI_HAD_STRIDES and all the others */
static PyObject *more_flags(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    const cai_array *array;
    Py_ssize_t index;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &capsule, &index)) return NULL;
    array = more_array(capsule, index);
    return array ? PyLong_FromUnsignedLong(array->flags) : NULL;
}

/* set_sync(held, index, sync, stream, event): of the array, or with index + 1000 of its mask */
static PyObject *more_set_sync(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    Py_ssize_t index;
    int sync;
    unsigned long long stream, event;
    cai_array *array;
    (void)module;
    if (!PyArg_ParseTuple(args, "OniKK", &capsule, &index, &sync, &stream, &event)) return NULL;
    array = more_array(capsule, index % 1000);
    if (array && index >= 1000) array = array->mask;
    if (!array) return PyErr_Occurred() ? NULL : more_refuse("no mask");
    array->sync = sync;
    array->stream = stream;
    array->event = event;
    Py_RETURN_NONE;
}

/* narrow() -> [(name of the dtype, itemsize)]: the formats without a typestr of their own */
static PyObject *more_narrow(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0), *pair;
    int failed = !list;
    (void)module;
    (void)unused;
#define MORE_NARROW(name, kind, bytes, format, text)                                                         \
    if (!failed && (format)) {                                                                               \
        pair = Py_BuildValue("si", text, bytes);                                                             \
        failed = !pair || PyList_Append(list, pair);                                                         \
        Py_XDECREF(pair);                                                                                    \
    }
    CAI_DTYPE_LIST(MORE_NARROW)
#undef MORE_NARROW
    if (failed) Py_CLEAR(list);
    return list;
}

static PyObject *more_cuda_stream(PyObject *module, PyObject *number)
{
    const unsigned long long stream = PyLong_AsUnsignedLongLong(number);
    (void)module;
    if (stream == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    return cai_python_cuda_stream(stream);
}

/* -------------------------------------------------------------------------- simulation */

/* The simulation; NULL with an exception set. */
static cai_sim *more_sim(PyObject *module)
{
    cai_sim *sim = more_of(module)->sim;
    if (!sim) PyErr_SetString(PyExc_RuntimeError, "simulate first");
    return sim;
}

/* simulate(devices, capacity): a new CUDA, and a pool with room for so many arrays that wait */
static PyObject *more_simulate(PyObject *module, PyObject *args)
{
    more_state *state = more_of(module);
    cai_keepalive *places = state->places;
    int devices, capacity;
    cai_error err;
    if (!PyArg_ParseTuple(args, "ii", &devices, &capacity)) return NULL;
    if (state->sim || capacity > MORE_PLACES) return more_refuse("simulate: there is one, or too much room");
    state->sim = cai_sim_create(devices);
    if (!state->sim) return PyErr_NoMemory();
    (void)cai_sim_set_context(state->sim, cai_sim_primary(state->sim, 0));
    if (!capacity) places = NULL;
    if (cai_event_pool_init(&state->pool, cai_sim_cuda(state->sim), places, capacity, 0, &err))
        return cai_python_raise(&err);
    Py_RETURN_NONE;
}

/* finish() -> (status of the pool's end, what is alive in the simulation, in words) */
static PyObject *more_finish(PyObject *module, PyObject *unused)
{
    more_state *state = more_of(module);
    char text[200] = "";
    cai_status status;
    (void)unused;
    if (!more_sim(module)) return NULL;
    status = cai_event_pool_destroy(&state->pool, NULL);
    (void)cai_sim_leaks(state->sim, text, sizeof text);
    cai_sim_destroy(state->sim);
    state->sim = NULL;
    return Py_BuildValue("is", (int)status, text);
}

static PyObject *more_new_stream(PyObject *module, PyObject *args)
{
    cai_sim *sim = more_sim(module);
    int nonblocking = 0, device = 0;
    uint64_t stream, before;
    if (!sim || !PyArg_ParseTuple(args, "|ii", &nonblocking, &device)) return NULL;
    before = cai_sim_current(sim);
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, device));
    stream = cai_sim_stream_create(sim, nonblocking);
    (void)cai_sim_set_context(sim, before);
    return PyLong_FromUnsignedLongLong(stream);
}

/* act(what, stream = 0, number = 0) -> what the simulation answers */
static PyObject *more_act(PyObject *module, PyObject *args)
{
    cai_sim *sim = more_sim(module);
    const char *what;
    unsigned long long s = 0;
    int number = 0;
    if (!sim || !PyArg_ParseTuple(args, "s|Ki", &what, &s, &number)) return NULL;
    if (!strcmp(what, "launch")) return more_number(cai_sim_launch(sim, s, "work", NULL, NULL, NULL, 0));
    if (!strcmp(what, "run")) return more_number(cai_sim_run(sim));
    if (!strcmp(what, "step")) return more_number(cai_sim_step(sim, s));
    if (!strcmp(what, "pending")) return more_number(cai_sim_pending(sim));
    if (!strcmp(what, "free")) return more_number(cai_sim_stream_destroy(sim, s));
    if (!strcmp(what, "capture")) return more_number(cai_sim_capture_begin(sim, s, number));
    if (!strcmp(what, "capture_end")) return more_number(cai_sim_capture_end(sim, s, NULL));
    if (!strcmp(what, "fail")) return more_number(cai_sim_fail(sim, (int32_t)s, number));
    if (!strcmp(what, "faults")) return more_number(cai_sim_faults(sim));
    if (!strcmp(what, "last_error")) return more_number(cai_sim_last_error(sim));
    if (!strcmp(what, "current")) return more_number((int64_t)cai_sim_current(sim));
    if (!strcmp(what, "calls")) return more_number(cai_sim_calls(sim));
    if (!strcmp(what, "ordering")) return more_number(cai_sim_ordering_calls(sim));
    if (!strcmp(what, "waiting")) return more_number(more_of(module)->pool.waiting);
    if (!strcmp(what, "log")) return PyUnicode_FromString(cai_sim_log(sim));
    if (!strcmp(what, "event")) {
        const uint64_t event = cai_sim_event_create(sim);
        (void)cai_sim_event_record(sim, event, s);
        return PyLong_FromUnsignedLongLong(event);
    }
    if (!strcmp(what, "event_free")) return more_number(cai_sim_event_destroy(sim, s));
    if (!strcmp(what, "clear_faults")) cai_sim_faults_clear(sim);
    else if (!strcmp(what, "clear_log")) cai_sim_log_clear(sim);
    else if (!strcmp(what, "device_error")) cai_sim_set_device_error(sim, (int32_t)s, number);
    else if (!strcmp(what, "teardown")) cai_sim_teardown(sim);
    else if (!strcmp(what, "device")) (void)cai_sim_set_context(sim, cai_sim_primary(sim, number));
    else return more_refuse("act: unknown");
    Py_RETURN_NONE;
}

/* release_after(held, stream) */
static PyObject *more_release_after(PyObject *module, PyObject *args)
{
    more_state *state = more_of(module);
    cai_python *py = &state->probe.py;
    PyObject *capsule;
    unsigned long long stream;
    probe_held *held;
    if (!more_sim(module) || !PyArg_ParseTuple(args, "OK", &capsule, &stream)) return NULL;
    held = probe_get(capsule);
    if (!held) return NULL;
    if (cai_python_release_after(py, &state->pool, held->arrays, held->count, stream)) return NULL;
    Py_RETURN_NONE;
}

/* set_ordered(held): the owners free behind the streams that the arrays name */
static PyObject *more_set_ordered(PyObject *module, PyObject *capsule)
{
    probe_held *held = probe_get(capsule);
    Py_ssize_t i;
    (void)module;
    if (!held) return NULL;
    for (i = 0; i < held->count; ++i) held->arrays[i].flags |= CAI_ORDERED_FREE;
    Py_RETURN_NONE;
}

/* exchange(held, stream): begun and ended, with work of the consumer in between */
static PyObject *more_exchange(PyObject *module, PyObject *args)
{
    more_state *state = more_of(module);
    cai_array *arrays[MORE_PLACES];
    PyObject *capsule;
    unsigned long long stream;
    probe_held *held;
    cai_exchange ex;
    cai_error err;
    Py_ssize_t i;
    if (!more_sim(module) || !PyArg_ParseTuple(args, "OK", &capsule, &stream)) return NULL;
    held = probe_get(capsule);
    if (!held || held->count > MORE_PLACES) return more_refuse("exchange: not so many");
    for (i = 0; i < held->count; ++i) arrays[i] = &held->arrays[i];
    if (cai_exchange_begin(&ex, &state->pool, arrays, (int32_t)held->count, stream, &err))
        return cai_python_raise(&err);
    (void)cai_sim_launch(state->sim, stream, "consumer", NULL, NULL, NULL, 0);
    if (cai_exchange_end(&ex, CAI_OK, &err)) return cai_python_raise(&err);
    Py_RETURN_NONE;
}

/* wait(): until all that waits is released */
static PyObject *more_wait(PyObject *module, PyObject *unused)
{
    more_state *state = more_of(module);
    cai_error err;
    (void)unused;
    if (!more_sim(module)) return NULL;
    if (cai_keepalive_drain(&state->pool, &err)) return cai_python_raise(&err);
    cai_python_drain(&state->probe.py);
    Py_RETURN_NONE;
}

/* -------------------------------------------------------------------- counted exceptions */

#if defined(Py_LIMITED_API)
static PyObject *more_count_errors(PyObject *module, PyObject *on)
{
    (void)module;
    (void)on;
    return probe_none();
}
#else
static newfunc more_new_error;
static long more_errors;

static PyObject *more_counted_error(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    ++more_errors;
    return more_new_error(type, args, kwargs);
}

/* count_errors(on) -> how many AttributeErrors were made since the last call with True */
static PyObject *more_count_errors(PyObject *module, PyObject *on)
{
    PyTypeObject *type = (PyTypeObject *)PyExc_AttributeError;
    const int start = PyObject_IsTrue(on);
    const long count = more_errors;
    (void)module;
    if (!more_new_error) more_new_error = type->tp_new;
    type->tp_new = start > 0 ? more_counted_error : more_new_error;
    more_errors = 0;
    return PyLong_FromLong(count);
}
#endif

/* --------------------------------------------------------------------------- the module */

static PyMethodDef more_methods[] = {{"fields", more_fields, METH_VARARGS, NULL},
                                     {"owned", more_owned, METH_O, NULL},
                                     {"flags", more_flags, METH_VARARGS, NULL},
                                     {"set_sync", more_set_sync, METH_VARARGS, NULL},
                                     {"narrow", more_narrow, METH_NOARGS, NULL},
                                     {"cuda_stream", more_cuda_stream, METH_O, NULL},
                                     {"simulate", more_simulate, METH_VARARGS, NULL},
                                     {"finish", more_finish, METH_NOARGS, NULL},
                                     {"new_stream", more_new_stream, METH_VARARGS, NULL},
                                     {"act", more_act, METH_VARARGS, NULL},
                                     {"release_after", more_release_after, METH_VARARGS, NULL},
                                     {"set_ordered", more_set_ordered, METH_O, NULL},
                                     {"exchange", more_exchange, METH_VARARGS, NULL},
                                     {"wait", more_wait, METH_NOARGS, NULL},
                                     {"count_errors", more_count_errors, METH_O, NULL},
                                     {NULL, NULL, 0, NULL}};

static int more_add_flags(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } flags[] = {{"FIELDS", CAI_PYTHON_FIELDS}, {"NARROW", CAI_PYTHON_NARROW}, {"BORROW", CAI_PYTHON_BORROW},
                 {"NONE", CAI_SYNC_NONE},       {"STREAM", CAI_SYNC_STREAM},   {"EVENT", CAI_SYNC_EVENT},
                 {"UNKNOWN", CAI_SYNC_UNKNOWN}, {"ALIGNED", CAI_ALIGNED}};
    size_t i;
    for (i = 0; i < sizeof flags / sizeof flags[0]; ++i)
        if (PyModule_AddIntConstant(module, flags[i].name, flags[i].value)) return -1;
    return 0;
}

static int more_exec(PyObject *module)
{
    PyObject *type;
    int failed;
    if (probe_exec(module)) return -1;
    if (PyModule_AddFunctions(module, more_methods) || more_add_flags(module)) return -1;
    type = more_buffer_type();
    failed = !type || PyModule_AddObjectRef(module, "Buffer", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static int more_traverse(PyObject *module, visitproc visit, void *arg)
{
    more_state *state = more_of(module);
    return state ? cai_python_traverse(&state->probe.py, visit, arg) : 0;
}

static void more_free(void *module)
{
    more_state *state = more_of((PyObject *)module);
    cai_sim_destroy(state->sim);
    probe_free_module(module);
}

static PyModuleDef_Slot more_slots[] = {{Py_mod_exec, NULL}, {0, NULL}};

static struct PyModuleDef more_module = {
    PyModuleDef_HEAD_INIT, "cai_more", NULL,      (Py_ssize_t)sizeof(more_state), probe_methods, more_slots,
    more_traverse,         NULL,       more_free};

PyMODINIT_FUNC PyInit_cai_more(void);
PyMODINIT_FUNC PyInit_cai_more(void)
{
    int (*const exec)(PyObject *) = more_exec;
    memcpy(&more_slots[0].value, &exec, sizeof exec);
    return PyModuleDef_Init(&more_module);
}
