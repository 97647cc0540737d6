/* A module of somebody else's, with nanobind: the shape of any array. SPDX-License-Identifier: MIT */
#include <nanobind/nanobind.h>

#define CAI_IMPLEMENTATION
#include "cai_python.h"

static cai_python python;

static nanobind::str text(nanobind::handle object)
{
    cai_array array;
    char line[200];
    PyObject *objects[1] = {object.ptr()};
    if (cai_python_import(&python, objects, 1, nullptr, &array)) throw nanobind::python_error();
    cai_array_text(&array, line, sizeof line);
    cai_python_release(&python, &array, 1);
    return nanobind::str(line);
}

NB_MODULE(stranger_nb, m)
{
    if (cai_python_init(&python)) throw nanobind::python_error();
    m.def("text", &text);
}
