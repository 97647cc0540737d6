/* narrow.c - a module that takes arrays of values below 8 bits and gives them back, for check_narrow.py
 * SPDX-License-Identifier: MIT */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define CAI_STATIC
#define CAI_IMPLEMENTATION
#include "cai_python_dlpack.h"

typedef struct module_state {
    cai_python py;
    PyTypeObject *type;
} module_state;

/* An array that was imported, and that others can import. */
typedef struct taken {
    PyObject_HEAD
    PyObject *module;
    cai_array array;
    unsigned flags; /* of its exports by DLPack */
} taken;

static module_state *state_of(PyObject *module)
{
    return (module_state *)PyModule_GetState(module);
}

static const cai_array *array_of(PyObject *self)
{
    return &((taken *)self)->array;
}

static void taken_end(PyObject *object)
{
    taken *self = (taken *)object;
    PyTypeObject *type = Py_TYPE(object);
    cai_array_release(&self->array);
    Py_DECREF(self->module);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* take(object, flags) */
static PyObject *take(PyObject *module, PyObject *args)
{
    module_state *state = state_of(module);
    cai_python_options options = {0, 0, 0, NULL};
    PyObject *object;
    cai_array array;
    taken *self;
    if (!PyArg_ParseTuple(args, "OI", &object, &options.flags)) return NULL;
    if (cai_python_import(&state->py, &object, 1, &options, &array)) return NULL;
    self = PyObject_New(taken, state->type);
    if (!self) {
        cai_python_release(&state->py, &array, 1);
        return NULL;
    }
    Py_INCREF(module);
    self->module = module;
    self->flags = 0;
    cai_array_move(&self->array, &array);
    return (PyObject *)self;
}

static PyObject *taken_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    taken *self = (taken *)object;
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(&self->array, args, keywords, &request)) return NULL;
    request.flags |= self->flags;
    return cai_python_dlpack(&state_of(self->module)->py, object, &self->array, &request);
}

static PyObject *taken_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return cai_python_dlpack_device(array_of(self));
}

/* tobytes(): all bytes from the first element to the last, of host memory */
static PyObject *taken_bytes(PyObject *self, PyObject *unused)
{
    const cai_array *a = array_of(self);
    (void)unused;
    return PyBytes_FromStringAndSize((const char *)(uintptr_t)a->data + a->lo, (Py_ssize_t)(a->hi - a->lo));
}

/* become(name): the same bytes with the dtype of this name, for dtypes that no exporter can name */
static PyObject *taken_become(PyObject *object, PyObject *name)
{
    static const struct {
        const char *name;
        int32_t code;
    } rows[] = {
#define ROW(code, kind, bytes, format, name) {name, code},
        CAI_FORMAT_DTYPES(ROW)
#undef ROW
    };
    taken *self = (taken *)object;
    cai_array view;
    cai_dtype dtype;
    cai_error err;
    size_t i = 0;
    while (i < sizeof rows / sizeof rows[0] && PyUnicode_CompareWithASCIIString(name, rows[i].name)) ++i;
    if (i == sizeof rows / sizeof rows[0]) return PyErr_Format(PyExc_KeyError, "%U", name);
    if (cai_dtype_of(rows[i].code, &dtype, &err) || cai_view_reinterpret(&self->array, &dtype, &view, &err))
        return PyErr_Format(PyExc_ValueError, "%s", err.message);
    cai_array_own(&view, self->array.release, self->array.owner);
    self->array = view;
    Py_RETURN_NONE;
}

/* facts() -> (dtype, values of an element, ndim, packed axis, values along it, bytes, address) */
static PyObject *taken_facts(PyObject *self, PyObject *unused)
{
    const cai_array *a = array_of(self);
    (void)unused;
    return Py_BuildValue("siiiLLK", cai_dtype_name(a->dtype.code), (int)cai_dtype_values(&a->dtype),
                         (int)a->ndim, (int)a->packed_axis, (long long)a->packed_extent,
                         (long long)a->nbytes, (unsigned long long)a->data);
}

static PyObject *taken_interface(PyObject *self, void *of_host)
{
    if ((array_of(self)->memory == CAI_MEMORY_HOST) == (of_host != NULL))
        return cai_python_interface(&state_of(((taken *)self)->module)->py, array_of(self), 3, NULL);
    PyErr_SetString(PyExc_AttributeError, "of other memory");
    return NULL;
}

static PyGetSetDef taken_getset[] = {
    {"__array_interface__", taken_interface, NULL, NULL, (void *)taken_getset},
    {"__cuda_array_interface__", taken_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef taken_members[] = {{"flags", T_UINT, offsetof(taken, flags), 0, NULL},
                                      {NULL, 0, 0, 0, NULL}};

static PyMethodDef taken_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))taken_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", taken_device, METH_NOARGS, NULL},
    {"become", taken_become, METH_O, NULL},
    {"tobytes", taken_bytes, METH_NOARGS, NULL},
    {"facts", taken_facts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot taken_slots[] = {{Py_tp_dealloc, (void *)taken_end},
                                    {Py_tp_getset, taken_getset},
                                    {Py_tp_members, taken_members},
                                    {Py_tp_methods, taken_methods},
                                    {0, NULL}};
static PyType_Spec taken_spec = {"narrow.taken", sizeof(taken), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, taken_slots};

static int exec_module(PyObject *module)
{
    module_state *state = state_of(module);
    if (cai_python_dlpack_init(&state->py)) return -1;
    state->type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &taken_spec, NULL);
    if (!state->type) return -1;
    return PyModule_AddIntConstant(module, "HOST", CAI_PYTHON_HOST) ||
                   PyModule_AddIntConstant(module, "NARROW", CAI_PYTHON_NARROW) ||
                   PyModule_AddIntConstant(module, "DROP_READ_ONLY", CAI_DLPACK_DROP_READ_ONLY) ||
                   PyModule_AddIntConstant(module, "ONE_LANE", CAI_DLPACK_ONE_LANE)
               ? -1
               : 0;
}

/* A process has one of this module, until it ends: nothing is taken apart. */
static PyMethodDef functions[] = {{"take", take, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec_module}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "cai_narrow", NULL, sizeof(module_state),
                                        functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_cai_narrow(void);
PyMODINIT_FUNC PyInit_cai_narrow(void)
{
    return PyModuleDef_Init(&definition);
}
