/* A module of somebody else's: the shape of any array. SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_python.h"

static cai_python python;

static PyObject *text(PyObject *self, PyObject *object)
{
    cai_array array;
    char line[200];
    (void)self;
    if (cai_python_import(&python, &object, 1, NULL, &array)) return NULL;
    cai_array_text(&array, line, sizeof line);
    cai_python_release(&python, &array, 1);
    return PyUnicode_FromString(line);
}

static PyMethodDef methods[] = {{"text", text, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "stranger", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_stranger(void)
{
    return cai_python_init(&python) ? NULL : PyModule_Create(&module);
}
