/* cai_nanobind.h - arrays of any library as arguments and results of functions bound with nanobind (2.0 or later)
 * SPDX-License-Identifier: MIT
 * C++17. One file of the module has CAI_IMPLEMENTATION. NB_MODULE calls cai_nb::open(m) first. Arguments may be
 *     cai_nb::array            owned: may be moved elsewhere, goes on any thread, without the GIL
 *     cai_nb::array *          the same, and nullptr for None if the argument is nb::arg("x").none()
 *     std::vector<array>       a list or tuple of them; an item that is wrong is raised, too
 *     cai_nb::basic_array<F>   the same, by flags of cai_python_import; CAI_PYTHON_HOST, for instance
 *     cai_nb::stream           an int, or an object with __cuda_stream__
 * What is no array leaves the argument to the next overload. What is wrong with one is raised, as by
 * cai_python_import. A result cai_nb::array must be owned. It becomes an object of the module's type `array`. */
#pragma once
#include "cai_python.h"
#include <nanobind/nanobind.h>
#include <optional>
#include <vector>

namespace cai_nb {
template <uint32_t Flags> struct basic_array : cai_array {
    basic_array() { release = nullptr; }
    basic_array(basic_array &&from) noexcept { cai_array_move(this, &from); }
    basic_array &operator=(basic_array &&from) noexcept
    { if (this != &from) { cai_array_release(this); cai_array_move(this, &from); } return *this; }
    ~basic_array() { cai_array_release(this); }
};
using array = basic_array<0>;
struct stream { uint64_t number = 0; };
struct held { array value; }; // in an object of the type `array`
struct module_data { cai_python py; PyTypeObject *type; };
} // namespace cai_nb
namespace NB_NAMESPACE { inline cai_nb::module_data *cai_data = nullptr; } // not freed: arrays may outlive it
namespace cai_nb {
[[noreturn]] inline void raise(const cai_error &err) // also without the GIL
{ nanobind::gil_scoped_acquire gil; cai_python_raise(&err); throw nanobind::python_error(); }
inline int describe(PyObject *object, cai_array *out)
{
    const bool made = nanobind::inst_ready(object); // not so after array.__new__(array)
    if (made) cai_array_borrow(out, &nanobind::inst_ptr<held>(object)->value);
    else PyErr_SetString(PyExc_TypeError, "the array was never made");
    return made ? 0 : -1;
}
inline PyObject *adopt(PyTypeObject *type, cai_array *from)
{
    nanobind::object made = nanobind::inst_alloc(reinterpret_cast<PyObject *>(type));
    if (!made.is_valid()) return nullptr;
    cai_array_move(&(new (nanobind::inst_ptr<held>(made)) held)->value, from);
    nanobind::inst_mark_ready(made);
    return made.release().ptr();
}
inline void open(nanobind::module_ &m)
{
    static const cai_python_exchange exchange = {CAI_ABI, sizeof exchange, describe, adopt};
    nanobind::class_<held> type(m, "array");
    module_data *const data = nanobind::cai_data = new module_data{{}, reinterpret_cast<PyTypeObject *>(type.ptr())};
    if (cai_python_init(&data->py) || cai_python_offer(data->type, &exchange)) throw nanobind::python_error();
    type.def_prop_ro("__cuda_array_interface__", [](const held &self) {
        return nanobind::steal(cai_python_interface(&nanobind::cai_data->py, &self.value, 3, nullptr)); });
}
} // namespace cai_nb
namespace nanobind { namespace detail {
template <typename T> struct cai_argument { // an error waits for the call, as from_python must not throw
    using Value = T;
    template <typename U> using Cast = movable_cast_t<U>;
    template <typename U> bool can_cast() const noexcept { return !error && (std::is_pointer_v<U> || !none); }
    explicit operator T *() { return none ? nullptr : &static_cast<T &>(*this); }
    explicit operator T &() { if (error) throw *error; if (none) throw next_overload(); return value; }
    explicit operator T &&() { return std::move(static_cast<T &>(*this)); }
    T value;
    std::optional<python_error> error;
    bool none = false;
};
template <uint32_t F> struct type_caster<cai_nb::basic_array<F>> : cai_argument<cai_nb::basic_array<F>> {
    static constexpr auto Name = const_name("array");
    ~type_caster() { cai_python_release(&cai_data->py, &this->value, 1); }
    bool from_python(handle object, uint32_t, cleanup_list *) noexcept
    {
        const cai_python_options options = {F, 0, 0, nullptr};
        cai_array taken;
        if ((this->none = object.is_none())) return true;
        const int found = cai_python_try_import(&cai_data->py, object.ptr(), &options, &taken);
        if (found == CAI_PYTHON_TAKEN) cai_array_release(&this->value), cai_array_move(&this->value, &taken);
        if (found == CAI_PYTHON_FAILED) this->error.emplace();
        return found != CAI_PYTHON_NOT_MINE;
    }
    static handle from_cpp(cai_nb::basic_array<F> &&from, rv_policy, cleanup_list *) noexcept
    { return cai_python_adopt(&cai_data->py, cai_data->type, &from); }
};
template <uint32_t F> struct type_caster<std::vector<cai_nb::basic_array<F>>>
    : cai_argument<std::vector<cai_nb::basic_array<F>>> {
    static constexpr auto Name = const_name("list[array]");
    bool from_python(handle list, uint32_t flags, cleanup_list *cleanup) noexcept
    {
        if (!PyList_Check(list.ptr()) && !PyTuple_Check(list.ptr())) return false;
        for (handle item : borrow<object>(list)) {
            make_caster<cai_nb::basic_array<F>> one;
            if (!one.from_python(item, flags, cleanup) || one.none) return false;
            if (one.error) return this->error.emplace(*one.error), true;
            this->value.push_back(std::move(one.value));
        }
        return true;
    }
};
template <> struct type_caster<cai_nb::stream> : cai_argument<cai_nb::stream> {
    static constexpr auto Name = const_name("stream");
    bool from_python(handle object, uint32_t, cleanup_list *) noexcept
    {
        const bool mine = PyLong_Check(object.ptr()) || hasattr(object, "__cuda_stream__");
        if (mine && cai_python_stream(&cai_data->py, object.ptr(), &this->value.number)) error.emplace();
        return mine;
    }
};
}} // namespace nanobind::detail
