/* cai_nanobind.h - arrays of any library as arguments and results of functions of nanobind 2.0 or later
 * SPDX-License-Identifier: MIT
 * C++17. One file of the module has CAI_IMPLEMENTATION. The module first calls cai_nb::open(m). Arguments:
 *     cai_nb::array            a cai::array, owned. With * also None, if the argument is nb::arg("x").none()
 *     cai_nb::basic_array<F>   by flags of cai_python_import. Also std::vector of these, for a list or tuple
 *     cai_nb::stream           an int, or an object with __cuda_stream__
 * What is no array is left to the next overload. What is wrong with one is raised, and so is a cai::error. A
 * result cai_nb::array must be owned. Its type is m.array. */
#pragma once
#include "cai.hpp"
#include "cai_python.h"
#include <nanobind/nanobind.h>
#include <vector>
namespace cai_nb { struct stream { uint64_t number = 0; }; template <int> struct basic_array : cai::array {};
using array = basic_array<0>; }
namespace NB_NAMESPACE { namespace detail {
inline struct cai_data { cai_python py; PyTypeObject *type; } *cai_now; // never freed: arrays may outlive it
inline void cai_drop(cai_array &a) { cai_python_release(&cai_now->py, &a, 1); } // lets the GIL go to wait
template <typename T> void cai_drop(std::vector<T> &all) { for (T &one : all) cai_drop(one); }
struct cai_held { PyObject_HEAD cai_array value; }; // an object of the type `array`
inline cai_array *cai_of(PyObject *o) { return &reinterpret_cast<cai_held *>(o)->value; }
inline int cai_describe(PyObject *o, cai_array *out) { return cai_array_borrow(out, cai_of(o)), 0; }
inline PyObject *cai_adopt(PyTypeObject *type, cai_array *from)
{ PyObject *o = PyType_GenericAlloc(type, 0); return o ? cai_array_move(cai_of(o), from), o : nullptr; }
inline PyObject *cai_get(PyObject *o, void *) { return cai_python_interface(&cai_now->py, cai_of(o), 3, {}); }
inline void cai_destroy(PyObject *o)
{ PyTypeObject *type = Py_TYPE(o); cai_drop(*cai_of(o)); PyObject_Free(o); Py_DECREF(type); }
template <int F> int cai_take(handle from, cai_nb::basic_array<F> &to) {
    const cai_python_options options = {F, 0, 0, nullptr};
    cai_array taken;
    const int found = cai_python_try_import(&cai_now->py, from.ptr(), &options, &taken);
    if (found == CAI_PYTHON_TAKEN) static_cast<cai::array &>(to) = cai::array(&taken);
    return found;
}
template <int F> int cai_take(handle from, std::vector<cai_nb::basic_array<F>> &to) {
    if (!PyList_Check(from.ptr()) && !PyTuple_Check(from.ptr())) return CAI_PYTHON_NOT_MINE;
    for (handle item : borrow<object>(from))
        if (const int found = cai_take(item, to.emplace_back()); found != CAI_PYTHON_TAKEN) return found;
    return CAI_PYTHON_TAKEN;
}
inline int cai_take(handle from, cai_nb::stream &to) {
    if (!PyLong_Check(from.ptr()) && !hasattr(from, "__cuda_stream__")) return CAI_PYTHON_NOT_MINE;
    return cai_python_stream(&cai_now->py, from.ptr(), &to.number) ? CAI_PYTHON_FAILED : CAI_PYTHON_TAKEN;
}
template <typename T> struct cai_caster {
    ~cai_caster() { if constexpr (!std::is_same_v<T, cai_nb::stream>) cai_drop(value); }
    using Value = T; template <typename U> using Cast = movable_cast_t<U>;
    template <typename U> bool can_cast() const noexcept { return !error && (std::is_pointer_v<U> || !none); }
    explicit operator T *() { if (error) std::rethrow_exception(error); return none ? nullptr : &value; }
    explicit operator T &() { T *const p = static_cast<T *>(*this); return p ? *p : throw next_overload(); }
    explicit operator T &&() { return std::move(static_cast<T &>(*this)); }
    bool from_python(handle from, uint32_t, cleanup_list *) noexcept { // so what is raised waits for the call
        const int found = (none = from.is_none()) ? CAI_PYTHON_TAKEN : cai_take(from, value);
        if (found == CAI_PYTHON_FAILED) error = std::make_exception_ptr(python_error());
        return found != CAI_PYTHON_NOT_MINE;
    }
    static handle from_cpp(T &&from, rv_policy, cleanup_list *) noexcept
    { return cai_python_adopt(&cai_now->py, cai_now->type, &from); }
    T value;
    std::exception_ptr error; bool none = false;
};
template <> struct type_caster<cai_nb::stream> : cai_caster<cai_nb::stream>
{ static constexpr auto Name = const_name("stream"); };
template <int F> struct type_caster<cai_nb::basic_array<F>> : cai_caster<cai_nb::basic_array<F>>
{ static constexpr auto Name = const_name("array"); };
template <int F> struct type_caster<std::vector<cai_nb::basic_array<F>>>
    : cai_caster<std::vector<cai_nb::basic_array<F>>> { static constexpr auto Name = const_name("list"); };
inline void cai_open(module_ &m) {
    static PyGetSetDef get[] = {{"__cuda_array_interface__", cai_get, nullptr, nullptr, nullptr}, {}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)cai_destroy}, {Py_tp_getset, get}, {}};
    static PyType_Spec spec = {"cai.array", sizeof(cai_held), 0, Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    static const cai_python_exchange exchange = {CAI_ABI, sizeof exchange, cai_describe, cai_adopt};
    PyTypeObject *const type = (cai_now = new cai_data{{}, (PyTypeObject *)PyType_FromSpec(&spec)})->type;
    if (!type || cai_python_init(&cai_now->py) || cai_python_offer(type, &exchange)) throw python_error();
    m.attr("array") = handle((PyObject *)type);
    nanobind::register_exception_translator([](const std::exception_ptr &now, void *) {
        try { std::rethrow_exception(now); } catch (const cai::error &e) { cai_python_raise(&e); } });
}
}} // namespace NB_NAMESPACE::detail
namespace cai_nb { constexpr auto open = nanobind::detail::cai_open; }
