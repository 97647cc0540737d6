/* cai_pybind11.h - arrays of any library as arguments of functions bound with pybind11 (2.12 or later)
 * SPDX-License-Identifier: MIT
 * C++11. CAI_IMPLEMENTATION in one file of the module. Arguments may be
 *     const cai_array & (cai_array &)  for the time of the call; what needs CAI_PYTHON_HOST is refused
 *     const cai_array * (cai_array *)  the same, and nullptr for None
 *     cai::array                       owned: may be moved elsewhere, goes on any thread, without the GIL
 *     cai::basic_array<FLAGS>          the same, by flags of cai_python_import; CAI_PYTHON_HOST, for instance
 * cai::array may also be an item of a std::vector, std::optional or std::variant, and what py::cast returns.
 * An object that is no such array leaves the argument to the next overload: one that exports nothing, one in
 * host memory without CAI_PYTHON_HOST, None (without another overload: TypeError of pybind11). What is wrong
 * with an array is raised as cai_python_import does. Nothing is converted back. DLPack is read, too, if all
 * files of the module include cai_python_dlpack.h before. The module has one cai_python for each interpreter
 * with pybind11 3.1 and Python 3.12 or later; with older ones it has one, and is for one interpreter. The first
 * call makes it. It is never cleared, as arrays may outlive the module: an interpreter that ends leaves it
 * behind, and with older ones none may come after. */
#pragma once
#include "cai_python.h"
#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>

namespace cai {
template <uint32_t Flags> struct basic_array : cai_array {
    basic_array() { clear(); }
    basic_array(basic_array &&from) noexcept { cai_array_move(this, &from); }
    basic_array &operator=(basic_array &&from) noexcept
    {
        if (this == &from) return *this;
        cai_array_release(this);
        cai_array_move(this, &from);
        return *this;
    }
    ~basic_array() { cai_array_release(this); }
    void clear() { ndim = 0; release = nullptr; } // of what is not owned
};
using array = basic_array<0>;
} // namespace cai

namespace PYBIND11_NAMESPACE { namespace detail { /* hidden: modules share no state */
inline cai_python *cai_state()
{
    PYBIND11_CONSTINIT static gil_safe_call_once_and_store<cai_python *> state;
    return state.call_once_and_store_result([] {
        cai_python *py = new cai_python;
#if defined(CAI_PYTHON_DLPACK_H_INCLUDED)
        if (!cai_python_dlpack_init(py)) return py;
#else
        if (!cai_python_init(py)) return py;
#endif
        delete py;
        throw error_already_set();
    }).get_stored();
}
template <uint32_t Flags> class type_caster<cai::basic_array<Flags>> {
  public:
    using array = cai::basic_array<Flags>;
    static constexpr auto name = const_name("cai.array");
    template <typename T> /* no array &: pybind11 would refuse to cast objects that are referenced elsewhere */
    using cast_op_type =
        conditional_t<std::is_pointer<remove_reference_t<T>>::value, array *,
                      conditional_t<std::is_rvalue_reference<T>::value, array &&, const array &>>;
    type_caster() = default;
    type_caster(type_caster &&) = default;
    ~type_caster() { if (py) cai_python_release(py, &value, 1); } /* and drops what went without the GIL */
    operator array *() { return is_none ? nullptr : &value; }
    operator const array &() { return get(); }
    operator array &&() && { return std::move(get()); }
    bool load(handle object, bool convert)
    {
        cai_python_options options{};
        int found;
        is_none = object.is_none();
        if (is_none) return convert; /* nullptr to who takes pointers; get() has nothing for the others */
        options.flags = Flags;
        py = cai_state();
        found = cai_python_try_import(py, object.ptr(), &options, &value);
        if (found != CAI_PYTHON_TAKEN) value.clear();
        if (found == CAI_PYTHON_FAILED) throw error_already_set();
        return found == CAI_PYTHON_TAKEN;
    }

  protected:
    array &get()
    {
        if (is_none) throw reference_cast_error("None is no array");
        return value;
    }

  private:
    array value;
    cai_python *py = nullptr;
    bool is_none = false;
};
template <> class type_caster<cai_array> : public type_caster<cai::array> {
  public:
    template <typename T> /* by value, it would be a copy of what is owned: does not compile */
    using cast_op_type = conditional_t<std::is_pointer<remove_reference_t<T>>::value, cai_array *,
                                       enable_if_t<std::is_lvalue_reference<T>::value ||
                                                   std::is_pointer<remove_reference_t<T>>::value, cai_array &>>;
    operator cai_array *() { return type_caster<cai::array>::operator cai::array *(); }
    operator cai_array &() { return get(); }
};
}} // namespace PYBIND11_NAMESPACE::detail
