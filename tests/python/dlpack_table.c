/* dlpack_table.c - types that offer DLPack's exchange in C and their own, for check_dlpack_table.py
 * SPDX-License-Identifier: MIT
 *
 * Both tables are made of the same describe and adopt. use(), facts() and make() are a consumer that knows
 * only dlpack.h. All is on the simulated CUDA, and races() of cai_check.h finds what is not in order. */
#include "dlpack_world.h"

/* What an Array says of itself. */
enum { READ_ONLY = 1, OWNED = 2, EVENT = 4, UNKNOWN = 8, SWAPPED = 16, FAILS = 32 };

typedef struct table_array {
    PyObject_HEAD
    cai_array array;
    uint64_t memory; /* 0: adopted */
    uint64_t stream; /* in whose order it is freed; 0: none */
    int how;
} table_array;

static uint64_t current_stream; /* of this library */
static int lent;                /* arrays that describe gave away and that were not released */
static int refuses;             /* adopt fails */

static struct PyModuleDef table_module;

static world *state_of(PyObject *object)
{
    return (world *)PyModule_GetState(PyType_GetModuleByDef(Py_TYPE(object), &table_module));
}

static int current_work_stream(cai_dl_device_type type, int32_t device, void **out)
{
    (void)type;
    (void)device;
    *out = (void *)(uintptr_t)current_stream;
    return 0;
}

static void lent_release(cai_array *array)
{
    --lent;
    array->release = NULL;
}

static int table_describe(PyObject *object, cai_array *out)
{
    const table_array *self = (const table_array *)object;
    if (self->how & FAILS) {
        PyErr_SetString(PyExc_BufferError, "not now");
        return -1;
    }
    cai_array_borrow(out, &self->array);
    out->flags |= CAI_ORDERED_FREE; /* the memory is freed in the order of the stream */
    if (!(self->how & OWNED)) return 0;
    ++lent;
    cai_array_own(out, lent_release, NULL);
    return 0;
}

static PyObject *table_adopt(PyTypeObject *type, cai_array *array)
{
    PyObject *made = NULL;
    if (refuses || !array->release) PyErr_SetString(PyExc_BufferError, "not adopted");
    else made = PyType_GenericAlloc(type, 0);
    if (made) cai_array_move(&((table_array *)made)->array, array);
    return made;
}

static const cai_python_exchange table_exchange = {CAI_ABI, sizeof(cai_python_exchange), table_describe,
                                                   table_adopt};

CAI_PYTHON_DLPACK_TABLE(ordered_table, current_work_stream)
CAI_PYTHON_DLPACK_TABLE(plain_table, current_work_stream)

static void say_pending(world *w, table_array *self, uint64_t stream)
{
    self->array.sync = stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    self->array.stream = self->stream = stream;
    if (stream) launch(w, stream, "fill", self->array.data);
    if (self->how & EVENT) {
        self->array.sync = CAI_SYNC_EVENT;
        self->array.event = cai_sim_event_create(w->sim);
        (void)cai_sim_event_record(w->sim, self->array.event, stream);
    } else if (self->how & UNKNOWN) {
        self->array.sync = CAI_SYNC_UNKNOWN;
        self->array.stream = 0;
    }
}

/* Array(stream, how=0): float32 of 2 x 3, in rows of 8; stream 0: nothing is pending, and it has no stream */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *unused)
{
    const int64_t shape[2] = {2, 3}, strides[2] = {32, 4};
    unsigned long long stream;
    world *w;
    table_array *self;
    int how = 0, code = CAI_FLOAT32;
    cai_error err;
    (void)unused;
    if (!PyArg_ParseTuple(args, "K|i:Array", &stream, &how)) return NULL;
    self = (table_array *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    w = state_of((PyObject *)self);
    self->how = how;
    self->memory = cai_sim_alloc(w->sim, CAI_SIM_MEM_POOL, BYTES);
    if (how & SWAPPED) code = CAI_SWAPPED(CAI_FLOAT32);
    if (cai_array_init(&self->array, code, 2, shape, strides, cai_sim_bytes(w->sim, self->memory),
                       &err)) {
        Py_DECREF(self);
        return cai_python_raise(&err);
    }
    self->array.memory = CAI_MEMORY_DEVICE;
    self->array.device = 0;
    if (how & READ_ONLY) self->array.flags &= ~(uint32_t)CAI_WRITABLE;
    say_pending(w, self, stream);
    return (PyObject *)self;
}

static void array_end(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    world *w = state_of(object);
    table_array *self = (table_array *)object;
    const cai_cuda *cuda = w->pool.cuda;
    cai_error err;
    if (self->array.event) (void)cai_sim_event_destroy(w->sim, self->array.event);
    if (!self->memory && cai_keepalive_push(&self->array, &w->pool, self->array.stream, &err))
        fprintf(stderr, "an array stays: %s\n", err.message);
    if (self->memory && self->stream) (void)cuda->memory_free_async(cuda->self, self->memory, self->stream);
    else if (self->memory) (void)cai_sim_free(w->sim, self->memory);
    type->tp_free(object);
    Py_DECREF(type);
}

static const DLPackExchangeAPI *table_of(PyObject *object)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
    const DLPackExchangeAPI *table = NULL;
    if (capsule) table = (const DLPackExchangeAPI *)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_XDECREF(capsule);
    return table;
}

static struct DLManagedTensorVersioned *take(PyObject *object, const DLPackExchangeAPI **table)
{
    struct DLManagedTensorVersioned *managed = NULL;
    *table = table_of(object);
    if (!*table || (*table)->managed_tensor_from_py_object_no_sync(object, &managed)) return NULL;
    return managed;
}

/* use(object, stream=0): launches on the current stream of the producer, or on `stream`, which is wrong */
static PyObject *table_use(PyObject *module, PyObject *args)
{
    world *w = world_of(module);
    const DLPackExchangeAPI *table;
    struct DLManagedTensorVersioned *managed;
    unsigned long long other = 0;
    PyObject *object;
    void *stream = NULL;
    if (!PyArg_ParseTuple(args, "O|K:use", &object, &other)) return NULL;
    managed = take(object, &table);
    if (!managed) return NULL;
    (void)table->current_work_stream(kDLCUDA, managed->dl_tensor.device.device_id, &stream);
    if (!stream) stream = (void *)1;
    launch(w, other ? other : (uint64_t)(uintptr_t)stream, "use",
           (uint64_t)(uintptr_t)managed->dl_tensor.data);
    managed->deleter(managed);
    return Py_NewRef(Py_None);
}

/* facts(object) -> (address, shape, strides, code, bits, lanes, device, flags, version) of the tensor */
static PyObject *table_facts(PyObject *module, PyObject *object)
{
    const DLPackExchangeAPI *table;
    struct DLManagedTensorVersioned *managed = take(object, &table);
    const DLTensor *x;
    PyObject *made;
    (void)module;
    if (!managed) return NULL;
    x = &managed->dl_tensor;
    made = Py_BuildValue("(K(LL)(LL)iii(ii)K(ii))", (unsigned long long)(uintptr_t)x->data,
                         (long long)x->shape[0], (long long)x->shape[1], (long long)x->strides[0],
                         (long long)x->strides[1], (int)x->dtype.code, (int)x->dtype.bits,
                         (int)x->dtype.lanes, (int)x->device.device_type, (int)x->device.device_id,
                         (unsigned long long)managed->flags,
                         (int)managed->version.major, (int)managed->version.minor);
    managed->deleter(managed);
    return made;
}

/* make(object, version=1) -> what the table makes of the object's tensor; it deletes what is refused */
static PyObject *table_make(PyObject *module, PyObject *args)
{
    const DLPackExchangeAPI *table;
    struct DLManagedTensorVersioned *managed;
    unsigned version = 1;
    PyObject *object;
    void *made = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|I:make", &object, &version)) return NULL;
    managed = take(object, &table);
    if (!managed) return NULL;
    managed->version.major = version;
    if (!table->managed_tensor_to_py_object_no_sync(managed, &made)) return (PyObject *)made;
    managed->version.major = 1;
    managed->deleter(managed);
    return NULL;
}

static void say_error(void *context, const char *kind, const char *message)
{
    *(PyObject **)context = PyUnicode_FromFormat("%s: %s", kind, message);
}

/* allocate(object) -> what the allocator of its table says */
static PyObject *table_allocate(PyObject *module, PyObject *object)
{
    const DLPackExchangeAPI *table = table_of(object);
    struct DLManagedTensorVersioned *managed;
    PyObject *said = NULL;
    DLTensor prototype;
    (void)module;
    memset(&prototype, 0, sizeof prototype);
    if (table && !table->managed_tensor_allocator(&prototype, &managed, &said, say_error))
        return Py_NewRef(Py_None);
    return said;
}

/* imported(object, stream) -> (address, strides, writable) by cai_python_import, after work in an exchange */
static PyObject *table_imported(PyObject *module, PyObject *args)
{
    world *w = world_of(module);
    unsigned long long stream;
    PyObject *object, *made;
    cai_array x, *io[1];
    cai_exchange ex;
    cai_error err;
    cai_status status;
    io[0] = &x;
    if (!PyArg_ParseTuple(args, "OK:imported", &object, &stream)) return NULL;
    if (cai_python_import(&w->py, &object, 1, NULL, &x)) return NULL;
    made = Py_BuildValue("(K(LL)O)", (unsigned long long)x.data, (long long)x.strides[0],
                         (long long)x.strides[1], x.flags & CAI_WRITABLE ? Py_True : Py_False);
    status = cai_exchange_begin(&ex, &w->pool, io, 1, stream, &err);
    if (!status) {
        launch(w, stream, "exchange", x.data);
        status = cai_exchange_finish(&ex, CAI_OK, io, 1, &err);
    }
    if (!status) return made;
    Py_XDECREF(made);
    return cai_python_raise(&err);
}

/* set(current, refuses=0) */
static PyObject *table_set(PyObject *module, PyObject *args)
{
    unsigned long long stream;
    (void)module;
    refuses = 0;
    if (!PyArg_ParseTuple(args, "K|i:set", &stream, &refuses)) return NULL;
    current_stream = stream;
    return Py_NewRef(Py_None);
}

static PyObject *table_lent(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(lent);
}

static PyObject *table_settle(PyObject *module, PyObject *unused)
{
    (void)unused;
    return drop_kept(world_of(module)) ? NULL : Py_NewRef(Py_None);
}

static PyType_Slot array_slots[] = {
    {Py_tp_new, (void *)array_new}, {Py_tp_dealloc, (void *)array_end}, {0, NULL}};
static PyType_Spec ordered_spec = {"dlpack_table.Array", sizeof(table_array), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, array_slots};
static PyType_Spec plain_spec = {"dlpack_table.Plain", sizeof(table_array), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, array_slots};

static int table_begin(PyObject *module)
{
    world *w = world_of(module);
    PyObject *ordered = PyType_FromModuleAndSpec(module, &ordered_spec, NULL);
    PyObject *plain = PyType_FromModuleAndSpec(module, &plain_spec, NULL);
    PyTypeObject *types[2];
    int failed = !ordered || !plain || cai_python_dlpack_init(&w->py);
    types[0] = (PyTypeObject *)ordered;
    types[1] = (PyTypeObject *)plain;
    failed = failed || cai_python_offer(types[0], &table_exchange) ||
             cai_python_offer(types[1], &table_exchange) ||
             cai_python_dlpack_offer_ordered(&w->py, &w->pool, types[0], &ordered_table) ||
             cai_python_dlpack_offer(&w->py, types[1], &plain_table) ||
             PyModule_AddObjectRef(module, "Array", ordered) || PyModule_AddObjectRef(module, "Plain", plain);
    Py_XDECREF(ordered);
    Py_XDECREF(plain);
    return failed ? -1 : 0;
}

static void table_end(void *module)
{
    (void)cai_python_clear(&world_of((PyObject *)module)->py);
}

static PyMethodDef table_functions[] = {
    {"streams", world_streams, METH_VARARGS, NULL},   {"use", table_use, METH_VARARGS, NULL},
    {"facts", table_facts, METH_O, NULL},             {"make", table_make, METH_VARARGS, NULL},
    {"allocate", table_allocate, METH_O, NULL},       {"imported", table_imported, METH_VARARGS, NULL},
    {"set", table_set, METH_VARARGS, NULL},           {"lent", table_lent, METH_NOARGS, NULL},
    {"close", world_close, METH_NOARGS, NULL},        {"settle", table_settle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot table_slots[] = {{Py_mod_exec, (void *)table_begin}, {0, NULL}};
static struct PyModuleDef table_module = {PyModuleDef_HEAD_INIT, "dlpack_table", NULL, sizeof(world),
                                          table_functions, table_slots, NULL, NULL, table_end};

PyMODINIT_FUNC PyInit_dlpack_table(void)
{
    return PyModuleDef_Init(&table_module);
}
