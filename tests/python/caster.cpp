/* caster.cpp - arrays of ext/cai_caster.h on the loaded driver, for check_conform.py and check_consumers.py
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_caster.h"

#include "cai_emm.h"

#include <exception>

static cai_emm_pool blocks;
static cai_emm_hooks memory;

template <class Function> static PyObject *guarded(Function function) noexcept
{
    try {
        return function();
    } catch (const cai::error &e) {
        (void)cai_python_raise(&e);
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
    return nullptr;
}

/* array(shape, stream): a new array of float32 with pending work on the stream. */
static PyObject *array(PyObject *, PyObject *args)
{
    PyObject *extents, *of_stream;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &extents, &of_stream)) return nullptr;
    cai_caster::stream stream;
    if (cai_caster::take(of_stream, stream) != CAI_PYTHON_TAKEN) return nullptr;
    int64_t shape[CAI_MAX_NDIM] = {};
    const Py_ssize_t size = PyTuple_Size(extents), most = CAI_MAX_NDIM, ndim = size < most ? size : most;
    for (Py_ssize_t i = 0; i < ndim; ++i) shape[i] = PyLong_AsLongLong(PyTuple_GetItem(extents, i));
    if (PyErr_Occurred()) return nullptr;
    return guarded([&] {
        cai::array made;
        cai::call(cai_emm_array, &made, cai_caster::pool(), &memory, CAI_FLOAT32, static_cast<int32_t>(ndim), shape,
                  stream.number);
        return cai_caster::give(&made, stream.owner);
    });
}

/* echo(x): x, taken and returned. */
static PyObject *echo(PyObject *, PyObject *from)
{
    return guarded([&]() -> PyObject * {
        cai::array x;
        const int found = cai_caster::take(from, x);
        if (found == CAI_PYTHON_NOT_MINE) PyErr_SetString(PyExc_TypeError, "x is no array on a device");
        PyObject *const given = found == CAI_PYTHON_TAKEN ? cai_caster::give(&x) : nullptr;
        cai_caster::drop(x);
        return given;
    });
}

static PyMethodDef functions[] = {{"array", array, METH_VARARGS, nullptr}, {"echo", echo, METH_O, nullptr}, {}};
static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "caster", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_caster(void)
{
    return guarded([]() -> PyObject * {
        const auto find = [](cai_cuda_driver *to, cai_error *err) { return cai_cuda_load(to, nullptr, err); };
        if (!cai_caster::open("caster", find)) return nullptr;
        cai::call(cai_emm_pool_create, &blocks, cai_caster::pool().cuda(), 0);
        cai::call(cai_emm_hooks_async, &memory, cai_caster::pool().cuda(), &blocks);
        return PyModule_Create(&module);
    });
}
