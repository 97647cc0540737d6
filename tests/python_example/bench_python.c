/* bench_python.c - what bench_python.py measures
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_python.h"

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
    (void)module;
    (void)object;
    return cai_import(in, NULL, out, &err) ? cai_python_raise(&err) : Py_NewRef(Py_None);
}

static PyObject *device(PyObject *module, PyObject *object)
{
    return import_one(module, object, NULL);
}

static PyObject *host(PyObject *module, PyObject *object)
{
    const cai_python_options options = {CAI_PYTHON_HOST, 0, 0};
    return import_one(module, object, &options);
}

/* Export of an array of two axes, of version 3. */
static PyObject *interface(PyObject *module, PyObject *object)
{
    cai_python *py = (cai_python *)PyModule_GetState(module);
    const int64_t shape[2] = {2, 3};
    cai_array array;
    cai_error err;
    (void)object;
    if (cai_array_init(&array, CAI_FLOAT32, 2, shape, NULL, &array, &err)) return cai_python_raise(&err);
    array.sync = CAI_SYNC_STREAM;
    array.stream = 1;
    return cai_python_interface(py, &array, 3, NULL);
}

static int begin(PyObject *module)
{
    return cai_python_init((cai_python *)PyModule_GetState(module));
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
                                  {"interface", interface, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)begin}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bench_python", NULL, sizeof(cai_python),
                                        functions, slots, NULL, NULL, end};

PyMODINIT_FUNC PyInit_bench_python(void);
PyMODINIT_FUNC PyInit_bench_python(void)
{
    return PyModuleDef_Init(&definition);
}
