/* bench.c - what tests/python/bench measures
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#if defined(BENCH_DLPACK)
#include <dlpack/dlpack.h>

#include "cai_python_dlpack.h"
#else
#include "cai_python.h"
#define cai_python_dlpack_init cai_python_init
#endif
#if defined(BENCH_CALLGRIND)
#include <valgrind/callgrind.h>
#endif

static PyObject *import_one(PyObject *module, PyObject *object, const cai_python_options *options)
{
    cai_python *py = (cai_python *)PyModule_GetState(module);
    cai_array array;
    if (cai_python_import(py, &object, 1, options, &array)) return NULL;
    cai_python_release(py, &array, 1);
    return Py_NewRef(Py_None);
}

/* The call alone. */
static PyObject *nothing(PyObject *module, PyObject *object)
{
    (void)object;
    return PyModule_GetState(module) ? Py_NewRef(Py_None) : NULL;
}

static int read_ints(PyObject *tuple, int64_t *out)
{
    Py_ssize_t i, count = tuple && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    for (i = 0; i < count && i < 8; ++i) out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    return (int)count;
}

/* The least that a reader does: the attribute, the eight keys, the values that are there. Judges nothing. */
static PyObject *reads(PyObject *module, PyObject *object)
{
    cai_python *py = (cai_python *)PyModule_GetState(module);
    PyObject *dictionary = PyObject_GetAttr(object, py->names[0]), *values[CAI_PYTHON_KEYS];
    int64_t numbers[16];
    Py_ssize_t length = 0;
    int i, count;
    if (!dictionary) return NULL;
    for (i = 0; i < CAI_PYTHON_KEYS; ++i) values[i] = PyDict_GetItemWithError(dictionary, py->keys[i]);
    count = read_ints(values[0], numbers) + read_ints(values[2], numbers) + read_ints(values[4], numbers);
    if (values[1] && !PyUnicode_AsUTF8AndSize(values[1], &length)) count = -1;
    if (values[3] && PyLong_AsLongLong(values[3]) < 0) count = -1;
    if (values[5] && PyLong_Check(values[5]) && PyLong_AsLongLong(values[5]) < 0) count = -1;
    Py_DECREF(dictionary);
    return count < 0 || PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* What cai.h takes to judge the same entries, tagged before. */
static PyObject *judge(PyObject *module, PyObject *object)
{
    static const cai_token shape[3] = {
        {CAI_TOKEN_TUPLE, 2, 0, NULL}, {CAI_TOKEN_INT, 0, 2, NULL}, {CAI_TOKEN_INT, 0, 3, NULL}};
    static const cai_token data[3] = {
        {CAI_TOKEN_TUPLE, 2, 0, NULL}, {CAI_TOKEN_INT, 0, 4096, NULL}, {CAI_TOKEN_BOOL, 0, 0, NULL}};
    static const cai_token typestr = {CAI_TOKEN_STR, 3, 0, "<f4"}, version = {CAI_TOKEN_INT, 0, 3, NULL};
    const cai_interface entries = {shape, &typestr, data, &version, NULL, NULL, NULL, NULL, NULL};
    const cai_interface *volatile in = &entries; /* nothing about it is known when this is compiled */
    cai_array array, *volatile out = &array;
    cai_error err;
    (void)object;
    if (!PyModule_GetState(module)) return NULL;
    return cai_import(in, NULL, out, &err) ? cai_python_raise(&err) : Py_NewRef(Py_None);
}

static PyObject *device(PyObject *module, PyObject *object)
{
    return import_one(module, object, NULL);
}

static PyObject *host(PyObject *module, PyObject *object)
{
    static const cai_python_options options = {CAI_PYTHON_HOST, 0, 0, NULL};
    return import_one(module, object, &options);
}

static PyObject *both(PyObject *module, PyObject *object)
{
    static const cai_python_options options = {CAI_PYTHON_HOST | CAI_PYTHON_BORROW, 0, 0, NULL};
    return import_one(module, object, &options);
}

/* Imports the objects of a tuple, one after the other. */
static PyObject *each(PyObject *module, PyObject *tuple)
{
    Py_ssize_t i;
    for (i = 0; i < PyTuple_Size(tuple); ++i) {
        PyObject *done = import_one(module, PyTuple_GetItem(tuple, i), NULL);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    return Py_NewRef(Py_None);
}

/* Gets and drops an attribute. */
static PyObject *attribute(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    Py_XDECREF(value);
    return value ? Py_NewRef(Py_None) : NULL;
}

static PyObject *cuda_attribute(PyObject *module, PyObject *object)
{
    return attribute(object, ((cai_python *)PyModule_GetState(module))->names[CAI_PRIV_PY_CUDA]);
}

static PyObject *host_attribute(PyObject *module, PyObject *object)
{
    return attribute(object, ((cai_python *)PyModule_GetState(module))->names[CAI_PRIV_PY_ARRAY]);
}

/* Asks a tensor whether it is negated, as an import of a type does that is remembered. */
static PyObject *is_neg(PyObject *module, PyObject *object)
{
    static PyObject *method;
    PyObject *answer;
    (void)module;
    if (!method) method = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "is_neg");
    answer = method ? cai_priv_py_call_method(object, method) : NULL;
    Py_XDECREF(answer);
    return answer ? Py_NewRef(Py_None) : NULL;
}

/* Calls __dlpack__(), and drops the capsule with its tensor. */
static PyObject *call_dlpack(PyObject *module, PyObject *object)
{
    PyObject *const name = ((cai_python *)PyModule_GetState(module))->names[CAI_PRIV_PY_DLPACK];
    PyObject *capsule = PyObject_CallMethodObjArgs(object, name, NULL);
    Py_XDECREF(capsule);
    return capsule ? Py_NewRef(Py_None) : NULL;
}

/* ---- exchanges in C: a type that offers ours, a type that offers DLPack's, both of the same array */
typedef struct bench_array {
    PyObject_HEAD
    cai_array array, on_host; /* on_host: the same array as memory of the host, for what it costs to export it */
    int64_t strides[2];       /* in elements, as DLPack has them */
} bench_array;

static int describe(PyObject *object, cai_array *out)
{
    cai_array_borrow(out, &((bench_array *)object)->array);
    return 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const int64_t shape[2] = {2, 3};
    allocfunc alloc = NULL;
    void *slot = PyType_GetSlot(type, Py_tp_alloc);
    bench_array *made;
    cai_error err;
    (void)args;
    (void)kwargs;
    memcpy(&alloc, &slot, sizeof alloc);
    made = (bench_array *)alloc(type, 0);
    if (!made) return NULL;
    if (cai_array_init(&made->array, CAI_FLOAT32, 2, shape, NULL, made, &err)) return cai_python_raise(&err);
    made->array.memory = CAI_MEMORY_DEVICE;
    made->array.device = 0;
    made->array.sync = CAI_SYNC_STREAM;
    made->array.stream = 1;
    cai_array_borrow(&made->on_host, &made->array);
    made->on_host.memory = CAI_MEMORY_HOST;
    made->on_host.sync = CAI_SYNC_NONE;
    made->strides[0] = 3;
    made->strides[1] = 1;
    return (PyObject *)made;
}

static PyObject *get_cuda(PyObject *object, void *py)
{
    return cai_python_interface((cai_python *)py, &((bench_array *)object)->array, 3, NULL);
}

static PyObject *get_host(PyObject *object, void *py)
{
    return cai_python_interface((cai_python *)py, &((bench_array *)object)->on_host, 3, NULL);
}

#if defined(BENCH_DLPACK)
static cai_python *exporter;

static PyObject *dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    const cai_array *const array = &((bench_array *)object)->on_host;
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(array, args, kwargs, &request)) return NULL;
    return cai_python_dlpack(exporter, object, array, &request);
}
#endif

static PyObject *borrowed(PyObject *module, PyObject *object)
{
    static const cai_python_options options = {CAI_PYTHON_BORROW, 0, 0, NULL};
    return import_one(module, object, &options);
}

/* The consumer's part of an exchange at its least: the table is at hand, the type is compared. As in the call that
 * does nothing, the state of the module is asked for. */
static PyObject *raw_exchange(PyObject *module, PyObject *object)
{
    static PyTypeObject *type;
    static const cai_python_exchange *exchange;
    cai_array array;
    if (!PyModule_GetState(module)) return NULL;
    if (Py_TYPE(object) != type) {
        PyObject *capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(object), CAI_PYTHON_EXCHANGE);
        if (!capsule) return NULL;
        exchange = (const cai_python_exchange *)PyCapsule_GetPointer(capsule, CAI_PYTHON_EXCHANGE);
        type = Py_TYPE(object);
        Py_DECREF(capsule);
        if (!exchange) return NULL;
    }
    return exchange->describe(object, &array) ? NULL : Py_NewRef(Py_None);
}

#if defined(BENCH_DLPACK)
static int to_tensor(void *object, DLTensor *out)
{
    bench_array *from = (bench_array *)object;
    out->data = (void *)(uintptr_t)from->array.data;
    out->device.device_type = kDLCUDA;
    out->device.device_id = from->array.device;
    out->ndim = from->array.ndim;
    out->dtype.code = kDLFloat;
    out->dtype.bits = 32;
    out->dtype.lanes = 1;
    out->shape = from->array.shape;
    out->strides = from->strides;
    out->byte_offset = 0;
    return 0;
}

static void drop_tensor(struct DLManagedTensorVersioned *managed)
{
    Py_DECREF((PyObject *)managed->manager_ctx);
    PyMem_Free(managed);
}

static int to_managed(void *object, struct DLManagedTensorVersioned **out)
{
    struct DLManagedTensorVersioned *made = (struct DLManagedTensorVersioned *)PyMem_Malloc(sizeof *made);
    if (!made) return PyErr_NoMemory() ? 0 : -1;
    made->version.major = DLPACK_MAJOR_VERSION;
    made->version.minor = DLPACK_MINOR_VERSION;
    made->manager_ctx = Py_NewRef((PyObject *)object);
    made->deleter = drop_tensor;
    made->flags = 0;
    *out = made;
    return to_tensor(object, &made->dl_tensor);
}

static int current_stream_of(const DLPackExchangeAPI *table, DLDevice device)
{
    void *stream;
    return device.device_type == kDLCUDA && table->current_work_stream(kDLCUDA, device.device_id, &stream);
}

static int current_stream(DLDeviceType type, int32_t device, void **out)
{
    (void)type;
    (void)device;
    *out = (void *)1;
    return 0;
}

static const DLPackExchangeAPI *raw_table(PyObject *module, PyObject *object)
{
    static PyTypeObject *type;
    static const DLPackExchangeAPI *table;
    PyObject *capsule;
    if (!PyModule_GetState(module)) return NULL;
    if (Py_TYPE(object) == type) return table;
    capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
    if (!capsule) return NULL;
    table = (const DLPackExchangeAPI *)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    type = Py_TYPE(object);
    Py_DECREF(capsule);
    return table;
}

/* The least that DLPack's exchange costs its consumer, with the stream of memory on a device. */
static PyObject *raw_tensor(PyObject *module, PyObject *object)
{
    const DLPackExchangeAPI *table = raw_table(module, object);
    DLTensor tensor;
    if (!table || table->dltensor_from_py_object_no_sync(object, &tensor)) return NULL;
    return current_stream_of(table, tensor.device) ? NULL : Py_NewRef(Py_None);
}

static PyObject *raw_managed(PyObject *module, PyObject *object)
{
    const DLPackExchangeAPI *table = raw_table(module, object);
    struct DLManagedTensorVersioned *managed;
    int failed;
    if (!table || table->managed_tensor_from_py_object_no_sync(object, &managed)) return NULL;
    failed = current_stream_of(table, managed->dl_tensor.device);
    managed->deleter(managed);
    return failed ? NULL : Py_NewRef(Py_None);
}
#endif

static PyObject *new_type(const char *name, PyGetSetDef *attributes, PyMethodDef *methods)
{
    PyType_Slot slots[4];
    PyType_Spec spec;
    memset(slots, 0, sizeof slots);
    slots[0].slot = Py_tp_new;
    slots[0].pfunc = (void *)make;
    slots[1].slot = attributes ? Py_tp_getset : 0;
    slots[1].pfunc = attributes;
    slots[2].slot = methods ? Py_tp_methods : 0;
    slots[2].pfunc = methods;
    memset(&spec, 0, sizeof spec);
    spec.name = name;
    spec.basicsize = (int)sizeof(bench_array);
    spec.flags = Py_TPFLAGS_DEFAULT;
    spec.slots = slots;
    return PyType_FromSpec(&spec);
}

/* A type that exports through Python. */
static int add_producer(PyObject *module)
{
    static PyGetSetDef attributes[] = {{"__cuda_array_interface__", get_cuda, NULL, NULL, NULL},
                                       {"__array_interface__", get_host, NULL, NULL, NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    PyMethodDef *methods = NULL;
    PyObject *type;
#if defined(BENCH_DLPACK)
    static PyMethodDef own[] = {
        {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
        {NULL, NULL, 0, NULL}};
    methods = own;
    exporter = (cai_python *)PyModule_GetState(module);
#endif
    attributes[0].closure = attributes[1].closure = PyModule_GetState(module);
    type = new_type("bench.Producer", attributes, methods);
    return type ? PyModule_AddObject(module, "Producer", type) : -1;
}

static int add_types(PyObject *module)
{
    static const cai_python_exchange exchange = {CAI_ABI, sizeof(cai_python_exchange), describe, NULL};
    PyObject *type = new_type("bench.Exchanger", NULL, NULL);
    if (!type || cai_python_offer((PyTypeObject *)type, &exchange)) return -1;
    if (PyModule_AddObject(module, "Exchanger", type)) return -1;
    type = new_type("bench.OtherExchanger", NULL, NULL);
    if (!type || cai_python_offer((PyTypeObject *)type, &exchange)) return -1;
    if (PyModule_AddObject(module, "OtherExchanger", type)) return -1;
#if defined(BENCH_DLPACK)
    {
        static DLPackExchangeAPI table;
        PyObject *capsule;
        table.header.version.major = DLPACK_MAJOR_VERSION;
        table.header.version.minor = DLPACK_MINOR_VERSION;
        table.managed_tensor_from_py_object_no_sync = to_managed;
        table.dltensor_from_py_object_no_sync = to_tensor;
        table.current_work_stream = current_stream;
        type = new_type("bench.Tensor", NULL, NULL);
        capsule = type ? PyCapsule_New(&table, "dlpack_exchange_api", NULL) : NULL;
        if (!capsule || PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", capsule)) return -1;
        Py_DECREF(capsule);
        if (PyModule_AddObject(module, "Tensor", type)) return -1;
    }
#endif
    return add_producer(module);
}

#if defined(BENCH_CALLGRIND)
static PyObject *zero(PyObject *module, PyObject *object)
{
    (void)module;
    (void)object;
    CALLGRIND_ZERO_STATS;
    return Py_NewRef(Py_None);
}

/* Writes the instructions since zero() to a file of callgrind's. */
static PyObject *dump(PyObject *module, PyObject *name)
{
    (void)module;
    CALLGRIND_DUMP_STATS_AT(PyUnicode_AsUTF8AndSize(name, NULL));
    return Py_NewRef(Py_None);
}
#endif

static int begin(PyObject *module)
{
    return cai_python_dlpack_init((cai_python *)PyModule_GetState(module)) ? -1 : add_types(module);
}

static void end(void *module)
{
    (void)cai_python_clear((cai_python *)PyModule_GetState((PyObject *)module));
}

static PyMethodDef functions[] = {{"nothing", nothing, METH_O, NULL},
                                  {"reads", reads, METH_O, NULL},
                                  {"judge", judge, METH_O, NULL},
                                  {"device", device, METH_O, NULL},
                                  {"host", host, METH_O, NULL},
                                  {"both", both, METH_O, NULL},
                                  {"each", each, METH_O, NULL},
                                  {"cuda_attribute", cuda_attribute, METH_O, NULL},
                                  {"host_attribute", host_attribute, METH_O, NULL},
                                  {"call_dlpack", call_dlpack, METH_O, NULL},
                                  {"is_neg", is_neg, METH_O, NULL},
                                  {"borrowed", borrowed, METH_O, NULL},
                                  {"raw_exchange", raw_exchange, METH_O, NULL},
#if defined(BENCH_DLPACK)
                                  {"raw_tensor", raw_tensor, METH_O, NULL},
                                  {"raw_managed", raw_managed, METH_O, NULL},
#endif
#if defined(BENCH_CALLGRIND)
                                  {"zero", zero, METH_NOARGS, NULL},
                                  {"dump", dump, METH_O, NULL},
#endif
                                  {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)begin},
#if defined(Py_mod_gil)
                                   {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                   {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bench", NULL, sizeof(cai_python),
                                        functions, slots, NULL, NULL, end};

PyMODINIT_FUNC PyInit_bench(void);
PyMODINIT_FUNC PyInit_bench(void)
{
    return PyModuleDef_Init(&definition);
}
