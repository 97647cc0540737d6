/* producer.c - floats(address, count, stream): a float32 array over memory and a stream of somebody else
 * SPDX-License-Identifier: MIT
 *
 * A type that offers the exchange in C (docs/c-exchange.md), with describe and adopt. */
#define CAI_IMPLEMENTATION
#include "cai_python.h"

typedef struct floats_object {
    PyObject_HEAD
    cai_array array; /* all that describe says; owned, if it was adopted */
} floats_object;

/* The part that is in use, borrowed. */
static int floats_describe(PyObject *object, cai_array *out)
{
    cai_array_borrow(out, &((floats_object *)object)->array); /* the object owns it, and its event */
    return 0;
}

static PyObject *floats_adopt(PyTypeObject *type, cai_array *array)
{
    PyObject *made = NULL;
    cai_error err;
    if (cai_expect(array, "array", CAI_FLOAT32, 1, CAI_ON_DEVICE, &err))
        PyErr_SetString(PyExc_BufferError, err.message);
    else if (!array->release) PyErr_SetString(PyExc_BufferError, "array is borrowed");
    else made = PyType_GenericAlloc(type, 0);
    if (made) cai_array_move(&((floats_object *)made)->array, array);
    return made;
}

static const cai_python_exchange floats_exchange = {CAI_ABI, sizeof(cai_python_exchange), floats_describe,
                                                    floats_adopt};

static PyObject *floats_new(PyTypeObject *type, PyObject *args, PyObject *unused)
{
    unsigned long long address, stream;
    long long count;
    cai_array array;
    cai_error err;
    PyObject *made;
    int64_t shape[1];
    (void)unused;
    if (!PyArg_ParseTuple(args, "KLK:floats", &address, &count, &stream)) return NULL;
    shape[0] = count;
    if (cai_array_init(&array, CAI_FLOAT32, 1, shape, NULL, (void *)(uintptr_t)address, &err))
        return cai_python_raise(&err);
    array.sync = stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    array.stream = stream;
    made = PyType_GenericAlloc(type, 0);
    if (made) cai_array_move(&((floats_object *)made)->array, &array);
    return made;
}

static void floats_end(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    const freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);
    cai_array_release(&((floats_object *)self)->array); /* does nothing for a borrowed one */
    give_back(self);
    Py_DECREF(type);
}

static PyType_Slot floats_slots[] = {
    {Py_tp_new, (void *)floats_new}, {Py_tp_dealloc, (void *)floats_end}, {0, NULL}};
static PyType_Spec floats_spec = {"producer.floats", sizeof(floats_object), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, floats_slots};

static int begin(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &floats_spec, NULL);
    const int failed = !type || cai_python_offer((PyTypeObject *)type, &floats_exchange) ||
                       PyModule_AddObjectRef(module, "floats", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)begin}, {0, NULL}};
static struct PyModuleDef producer = {PyModuleDef_HEAD_INIT, "producer", NULL, 0, NULL,
                                      slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_producer(void)
{
    return PyModuleDef_Init(&producer);
}
