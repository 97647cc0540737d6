/* consumer.c - facts(array) -> (address, bytes, writable, sync, stream): the exchange in C without "cai_python.h"
 * SPDX-License-Identifier: MIT
 *
 * A reader as an author in another language writes it, by docs/c-exchange.md. It uses only the struct of arrays of
 * cai. The struct of the exchange stands inside the guard that every copy of it has. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cai.h"

#ifndef CAI_PYTHON_EXCHANGE_ABI_V0
#define CAI_PYTHON_EXCHANGE_ABI_V0
struct cai_python_exchange_v0 {
    uint32_t abi;
    uint32_t struct_size;
    int (*describe)(PyObject *object, struct cai_array_v0 *out);
    PyObject *(*adopt)(PyTypeObject *type, struct cai_array_v0 *array);
};
#endif

typedef const struct cai_python_exchange_v0 exchange;

typedef struct known_type {
    PyObject *type;  /* a reference, so that no other type can have this address */
    exchange *offer; /* NULL: it has no exchange */
} known_type;

/* A new reference to the dictionary of a class itself. A metaclass may give another one as "__dict__". */
#if PY_VERSION_HEX >= 0x030c0000
#define OWN_DICTIONARY(type) PyType_GetDict((PyTypeObject *)(type))
#else
#define OWN_DICTIONARY(type) Py_XNewRef(((PyTypeObject *)(type))->tp_dict)
#endif

/* What the first class of the MRO that says what its arrays are has in its dictionary: a new reference. NULL
 * without an exception: it is no exchange. */
static PyObject *first_offer(PyObject *type)
{
    static const char *const names[] = {"__cai_exchange__", "__cuda_array_interface__", "__array_interface__",
                                        "__dlpack__", "__dlpack_c_exchange_api__"};
    PyObject *const mro = Py_XNewRef(((PyTypeObject *)type)->tp_mro);
    PyObject *found = NULL;
    int k, there = !mro; /* -1: an exception is set */
    Py_ssize_t i;
    for (i = 0; !there && i < PyTuple_Size(mro); ++i) {
        PyObject *dictionary = OWN_DICTIONARY(PyTuple_GetItem(mro, i));
        for (k = 0; !there && k < 5; ++k) {
            PyObject *name = PyUnicode_FromString(names[k]);
            there = name ? PyDict_Contains(dictionary, name) : -1;
            if (there == 1 && k == 0) found = PyObject_GetItem(dictionary, name);
            Py_XDECREF(name);
        }
        Py_XDECREF(dictionary);
    }
    Py_XDECREF(mro);
    return found;
}

/* Was the capsule made for this type, or for one that it derives from? Attributes can be copied anywhere. */
static int is_made_for(PyObject *capsule, PyObject *type)
{
    PyObject *weak = (PyObject *)PyCapsule_GetContext(capsule);
    PyObject *maker = weak ? PyObject_CallNoArgs(weak) : NULL; /* None if that type is gone */
    const int made = maker && PyType_Check(maker) &&
                     PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)maker);
    Py_XDECREF(maker);
    return made;
}

/* What a type offers; *found NULL: nothing. Returns 0, or -1 with an exception set. */
static int look_up(PyObject *type, exchange **found)
{
    PyObject *capsule = first_offer(type);
    *found = NULL;
    if (capsule && PyCapsule_IsValid(capsule, "__cai_exchange__") && is_made_for(capsule, type))
        *found = (exchange *)PyCapsule_GetPointer(capsule, "__cai_exchange__");
    Py_XDECREF(capsule);
    if (*found && ((*found)->abi != CAI_ABI || (*found)->struct_size < sizeof **found)) *found = NULL;
    return PyErr_Occurred() ? -1 : 0;
}

/* The same, once for each type. A real one remembers more types than the last, and keeps none alive. */
static exchange *exchange_of(known_type *last, PyObject *object)
{
    PyObject *type = Py_NewRef(Py_TYPE(object));
    exchange *found = last->offer;
    if (type == last->type) {
        Py_DECREF(type);
    } else if (look_up(type, &found)) { /* may run code that calls this function */
        Py_DECREF(type);
        return NULL;
    } else {
        PyObject *before = last->type;
        last->type = type;
        last->offer = found;
        Py_XDECREF(before); /* may run such code, too: *last is not looked at again */
    }
    if (!found) PyErr_SetString(PyExc_TypeError, "the type has no __cai_exchange__");
    return found;
}

/* What this reader can work on. A larger struct is a later one, which begins like this one. */
static const char *why_not(const struct cai_array_v0 *x)
{
    if (x->abi != CAI_ABI || x->struct_size < sizeof *x) return "the array has a layout of another version";
    if (x->must_understand) return "the array has something that only a later version knows";
    if (x->packed_axis != -1) return "the array has several values in an element, which is not looked at here";
    if (x->ndim < 0 || x->ndim > 64) return "the array has no such number of axes";
    if (x->mask) return "the array has a mask, which is not looked at here";
    return x->memory == CAI_MEMORY_HOST ? "the array is in host memory" : NULL;
}

static PyObject *facts(PyObject *module, PyObject *object)
{
    exchange *offer = exchange_of((known_type *)PyModule_GetState(module), object);
    struct cai_array_v0 x;
    PyObject *result = NULL;
    const char *reason;
    if (!offer || offer->describe(object, &x)) return NULL;
    reason = why_not(&x);
    if (reason) PyErr_SetString(PyExc_BufferError, reason);
    else result = Py_BuildValue("(KLOiK)", (unsigned long long)x.data, (long long)x.nbytes,
                                x.flags & CAI_WRITABLE ? Py_True : Py_False, (int)x.sync,
                                (unsigned long long)x.stream);
    if (x.release) x.release(&x); /* of an owned array: once */
    return result;
}

static int visit_type(PyObject *module, visitproc visit, void *arg)
{
    const known_type *last = (const known_type *)PyModule_GetState(module);
    if (last) Py_VISIT(last->type); /* a type leads to its module, and that perhaps to this one */
    return 0;
}

static void end(void *module)
{
    known_type *last = (known_type *)PyModule_GetState((PyObject *)module);
    if (last) Py_CLEAR(last->type);
}

static PyMethodDef functions[] = {{"facts", facts, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef consumer = {PyModuleDef_HEAD_INIT, "consumer", NULL, sizeof(known_type),
                                      functions, slots, visit_type, NULL, end};

PyMODINIT_FUNC PyInit_consumer(void)
{
    return PyModuleDef_Init(&consumer);
}
