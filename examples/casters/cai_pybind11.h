/* cai_pybind11.h - arrays of any library as arguments of functions bound with pybind11 (2.12 or later)
 * SPDX-License-Identifier: MIT
 * C++11. CAI_IMPLEMENTATION in one file of the module. Arguments may be
 *     const cai_array & (cai_array &)  for the time of the call; what needs CAI_PYTHON_HOST is refused
 *     cai::array                       owned: may be moved elsewhere, goes on any thread, without the GIL
 *     cai::basic_array<FLAGS>          the same, by flags of cai_python_import; CAI_PYTHON_HOST, for instance
 * An object that is no array at all leaves the argument to the next overload (without one: TypeError of
 * pybind11). Everything else that is wrong is raised as cai_python_import does. Nothing is converted back.
 * The module has one cai_python for each interpreter with pybind11 3.1 and Python 3.12 or later; with older
 * ones it has one, and is for one interpreter. The first call makes it. It is never cleared, as arrays may
 * outlive the module: an interpreter that ends leaves it behind, and with older ones none may come after. */
#pragma once
#include "cai_python.h"
#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>

namespace cai {
template <uint32_t Flags> struct basic_array : cai_array {
    basic_array() { release = nullptr; }
    basic_array(basic_array &&from) noexcept { cai_array_move(this, &from); }
    basic_array &operator=(basic_array &&) = delete;
    ~basic_array() { cai_array_release(this); }
};
using array = basic_array<0>;
} // namespace cai

namespace PYBIND11_NAMESPACE { namespace detail { /* hidden: modules share no state */
inline cai_python *cai_state()
{
    PYBIND11_CONSTINIT static gil_safe_call_once_and_store<cai_python *> state;
    return state.call_once_and_store_result([] {
        cai_python *py = new cai_python;
        if (!cai_python_init(py)) return py;
        delete py;
        throw error_already_set();
    }).get_stored();
}
template <uint32_t Flags> struct type_caster<cai::basic_array<Flags>> {
    PYBIND11_TYPE_CASTER(cai::basic_array<Flags>, const_name("cai.array"));
    ~type_caster() { if (py) cai_python_release(py, &value, 1); } /* and drops what went without the GIL */
    bool load(handle object, bool)
    {
        const cai_python_options options = {Flags, 0, 0};
        py = cai_state();
        if (!cai_python_import(py, &object.ptr(), 1, &options, &value)) return true;
        value.release = nullptr;
        error_already_set error; /* what is no array at all is said so; other errors are thrown */
        const std::string text = error.matches(PyExc_TypeError) ? std::string(str(error.value())) : "";
        if (text.find("the object has no __cuda_array_interface__") != 0) throw error;
        return false;
    }
    cai_python *py = nullptr;
};
template <> struct type_caster<cai_array> : type_caster<cai::array> {
    operator cai_array &() { return value; }
    template <typename T> /* by value, it would be a copy of what is owned: does not compile */
    using cast_op_type = enable_if_t<std::is_lvalue_reference<T>::value, cai_array &>;
};
}} // namespace PYBIND11_NAMESPACE::detail
