/* Python.h - the names of Python that the declarations of ext/cai_python.h use, for machines without Python
 * SPDX-License-Identifier: MIT
 *
 * Behind them are pointers, and a signed integer as wide as one: all that a layout depends on. */
#ifndef Py_PYTHON_H
#define Py_PYTHON_H

#include <stddef.h>
#include <stdint.h>

#define PY_VERSION_HEX 0x030b0000
typedef struct _object PyObject;
typedef struct _typeobject PyTypeObject;
typedef ptrdiff_t Py_ssize_t;
typedef int (*visitproc)(PyObject *, void *);

#endif
