/* cai_pybind11.h - arrays of any library as arguments and results of functions of pybind11 2.12 or later
 * SPDX-License-Identifier: MIT
 * C++17. One file of the module has CAI_IMPLEMENTATION. The module first calls cai_py::open(m). Arguments:
 *     cai::array, const cai::array &   owned: may be moved elsewhere, goes on any thread, without the GIL
 *     cai::array *                     the same, and nullptr for None
 *     cai_py::basic_array<F>           the same, by flags of cai_python_import; CAI_PYTHON_HOST, for instance
 *     cai_py::stream                   an int, or an object with __cuda_stream__
 * What is no array is left to the next overload. What is wrong with one is raised, and so is a cai::error. A
 * result cai::array must be owned. Its type is m.array. For DLPack: open(m, cai_python_dlpack_init). */
#pragma once
#include "cai.hpp"
#include "cai_python.h"
#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>
namespace cai_py { struct stream { uint64_t number; }; template <int> struct basic_array : cai::array {}; }
namespace PYBIND11_NAMESPACE { namespace detail { // hidden: modules share no state
struct cai_data { cai_python py; PyTypeObject *type; }; // never freed, as arrays may outlive the module
inline gil_safe_call_once_and_store<cai_data *> cai_store; // for each interpreter, with pybind11 3.1
inline cai_data &cai_state() { return *cai_store.get_stored(); }
inline void cai_drop(cai_array &a) { cai_python_release(&cai_state().py, &a, 1); } // lets the GIL go to wait
struct cai_held { PyObject_HEAD cai_array value; }; // an object of the type `array`
inline cai_array *cai_of(PyObject *o) { return &reinterpret_cast<cai_held *>(o)->value; }
inline int cai_describe(PyObject *o, cai_array *out) { return cai_array_borrow(out, cai_of(o)), 0; }
inline PyObject *cai_adopt(PyTypeObject *type, cai_array *from)
{ PyObject *o = PyType_GenericAlloc(type, 0); return o ? cai_array_move(cai_of(o), from), o : nullptr; }
inline PyObject *cai_export(PyObject *o, void *)
{ return cai_python_interface(&cai_state().py, cai_of(o), 3, nullptr); }
inline void cai_destroy(PyObject *o)
{ PyTypeObject *type = Py_TYPE(o); cai_drop(*cai_of(o)); PyObject_Free(o); Py_DECREF(type); }
template <typename T, int F = 0> struct cai_caster {
    cai_caster() = default; cai_caster(cai_caster &&) = default; ~cai_caster() { cai_drop(value); }
    static constexpr auto name = const_name("array");
    template <typename U> // no array &: pybind11 would refuse to cast objects that are referenced elsewhere
    using cast_op_type = conditional_t<std::is_pointer_v<remove_reference_t<U>>, T *,
                                       conditional_t<std::is_rvalue_reference_v<U>, T &&, const T &>>;
    operator T *() { return none ? nullptr : &value; }
    operator const T &() { return none ? throw reference_cast_error("None is no array") : value; }
    operator T &&() && { return none ? throw reference_cast_error("None is no array") : std::move(value); }
    bool load(handle from, bool convert) {
        const cai_python_options options = {F, 0, 0, nullptr};
        cai_array taken;
        if ((none = from.is_none())) return convert; // when other overloads had it
        const int found = cai_python_try_import(&cai_state().py, from.ptr(), &options, &taken);
        if (found == CAI_PYTHON_FAILED) throw error_already_set();
        if (found == CAI_PYTHON_TAKEN) static_cast<cai::array &>(value) = cai::array(&taken);
        return found == CAI_PYTHON_TAKEN;
    }
    static handle cast(T &&from, return_value_policy, handle) {
        const handle made = cai_python_adopt(&cai_state().py, cai_state().type, &from);
        return made ? made : throw error_already_set();
    }
    T value; bool none = false;
};
template <> struct type_caster<cai::array> : cai_caster<cai::array> {};
template <int F> struct type_caster<cai_py::basic_array<F>> : cai_caster<cai_py::basic_array<F>, F> {};
template <> struct type_caster<cai_py::stream> {
    PYBIND11_TYPE_CASTER(cai_py::stream, const_name("stream"));
    bool load(handle from, bool) {
        const bool mine = PyLong_Check(from.ptr()) || hasattr(from, "__cuda_stream__");
        if (mine && cai_python_stream(&cai_state().py, from.ptr(), &value.number)) throw error_already_set();
        return mine;
    }
};
}} namespace cai_py {
inline void open(pybind11::module_ &m, int (*init)(cai_python *) = cai_python_init) {
    using namespace pybind11::detail;
    static PyGetSetDef get[] = {{"__cuda_array_interface__", cai_export, nullptr, nullptr, nullptr}, {}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)cai_destroy}, {Py_tp_getset, get}, {}};
    static PyType_Spec spec = {"cai.array", sizeof(cai_held), 0, Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    static const cai_python_exchange exchange = {CAI_ABI, sizeof exchange, cai_describe, cai_adopt};
    cai_store.call_once_and_store_result([init] {
        auto *data = new cai_data{{}, (PyTypeObject *)PyType_FromSpec(&spec)};
        const bool made = data->type && !init(&data->py) && !cai_python_offer(data->type, &exchange);
        return made ? data : throw pybind11::error_already_set();
    });
    m.attr("array") = pybind11::handle((PyObject *)cai_state().type);
    pybind11::register_local_exception_translator([](std::exception_ptr now) {
        try { std::rethrow_exception(now); } catch (const cai::error &e) { cai_python_raise(&e); } });
}
} // namespace cai_py
