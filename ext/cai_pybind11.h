/* cai_pybind11.h - arrays of any library as arguments and results, with pybind11 2.12 or later - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of cai.h) */

/*
DO THIS
    In one file of the module, define CAI_IMPLEMENTATION first. The module first calls cai_py::open(m, cuda).

        #define CAI_IMPLEMENTATION
        #include "cai_pybind11.h"

        static void saxpy(float a, cai_py::typed<const float> in, cai_py::typed<float> out, cai_py::stream s)
        {
            const pybind11::gil_scoped_release without_gil;
            cai::array &x = in.expect("x"), &y = out.expect("y");
            cai::call(cai_expect_same_shape, &x, "x", &y, "y");
            cai::exchange ex(cai_py::pool(), s.number, x, y);
            cai::check_cuda(launch_saxpy(a, x, y, s.number), "saxpy"); // your kernel
            ex.finish();
        }

        PYBIND11_MODULE(example, m)
        {
            cai_py::open(m, cai_cuda_linked);
            m.def("saxpy", saxpy);
        }

ARGUMENTS
    cai_py::array            a cai::array, owned; or const cai::array &. An object that is no array on a device
                             is left to the next overload
    cai_py::basic_array<F>   the same, by flags of cai_python_import: CAI_PYTHON_HOST, for instance
    cai_py::typed<T, N>      any object. The signature has dtype and rank. expect("x") checks the object, or
                             throws "x: expected float32, 1-D, on the device; got None". No other overload is
                             tried
    cai_py::stream           an int, or an object with __cuda_stream__ that is no array
    A pointer to an array is nullptr for None. std::vector, std::optional and std::variant of arrays work with
    pybind11/stl.h, and so does py::cast<cai::array>. If something is wrong with an array, the exception says
    what.

RESULTS
    cai_py::array, which must be owned. Its type is m.array (cai_caster.h). If its stream is that of an
    argument, it keeps the stream object. A cai::error becomes the Python exception of its code.

OPENING
    `cuda` is cai_cuda_linked, a lambda that calls cai_cuda_load, or a `const cai_cuda *`. open makes one event
    pool, cai_py::pool(), which is never freed. After open(m), without CUDA, results must be in host memory.
    Up to 64 arrays keep their memory until a later call finds that the work on them has passed. When memory is
    short, cai_py::drain() waits for the work, and gives back all that waits for it.

INTERPRETERS AND THREADS
    With pybind11 3.0 or later and Python 3.12 or later each interpreter may import the module:
    PYBIND11_MODULE(example, m, pybind11::mod_gil_not_used(),
                    pybind11::multiple_interpreters::per_interpreter_gil())
    Static data of your own must allow that, too. The first tag declares that the module needs no GIL.
*/
#include "cai_caster.h"

#if defined(CAI_PYBIND11_H_INCLUDED) && CAI_PYBIND11_H_INCLUDED != 200
#error "cai_pybind11.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_PYBIND11_H_INCLUDED
#define CAI_PYBIND11_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

#include <pybind11/pybind11.h>

#include <cstddef>
#include <exception>
#include <optional>

namespace cai_py {
using cai_caster::basic_array;
using cai_caster::drain;
using cai_caster::pool;
using cai_caster::stream;
using cai_caster::typed;
using array = cai::array;

/** Opens the module. Throws the exception of Python that says what is wrong. */
template <class Cuda = std::nullptr_t> void open(pybind11::module_ &m, Cuda cuda = nullptr)
{
    const pybind11::object name = m.attr("__name__");
    PyTypeObject *const type = cai_caster::open(PyUnicode_AsUTF8AndSize(name.ptr(), nullptr), cuda);
    if (!type) throw pybind11::error_already_set();
    m.attr("array") = pybind11::handle(reinterpret_cast<PyObject *>(type));
    pybind11::register_local_exception_translator([](std::exception_ptr now) {
        try {
            std::rethrow_exception(now);
        } catch (const cai::error &e) {
            (void)cai_python_raise(&e);
        }
    });
}
} // namespace cai_py

namespace PYBIND11_NAMESPACE { namespace detail {

/* Takes an argument of type T. With NULLABLE, None is nullptr. */
template <typename T, bool NULLABLE = true> struct cai_argument {
    cai_argument() = default;
    cai_argument(cai_argument &&) = default;
    ~cai_argument() { cai_caster::drop(value); }

    /* No array &: pybind11 would refuse to cast objects that are referenced elsewhere. */
    template <typename U>
    using cast_op_type = conditional_t<std::is_pointer_v<remove_reference_t<U>>, T *,
                                       conditional_t<std::is_rvalue_reference_v<U>, T &&, const T &>>;

    bool load(handle from, bool convert)
    {
        is_null = NULLABLE && from.is_none();
        if (is_null) return convert; /* when other overloads had it */
        const int found = cai_caster::take(from.ptr(), value);
        if (found == CAI_PYTHON_FAILED) throw error_already_set();
        return found == CAI_PYTHON_TAKEN;
    }

    operator T *() { return is_null ? nullptr : &value; }

    operator const T &()
    {
        if (is_null) throw reference_cast_error("None is no array");
        return value;
    }

    operator T &&() &&
    {
        if (is_null) throw reference_cast_error("None is no array");
        return std::move(value);
    }

    T value;
    bool is_null = false;
};

/* The same of an array. Results may name its stream. */
template <typename T, bool NULLABLE = true> struct cai_array_argument : cai_argument<T, NULLABLE> {
    cai_array_argument() = default;
    cai_array_argument(cai_array_argument &&from) noexcept
        : cai_argument<T, NULLABLE>(std::move(from)), named(from.named)
    {
    }
    bool load(handle from, bool convert)
    {
        const bool taken = cai_argument<T, NULLABLE>::load(from, convert);
        if (taken && !this->is_null) cai_caster::name(named, this->value, from.ptr());
        return taken;
    }
    cai_caster::stream named;
    cai_caster::in_call in_call{named};
};

template <typename Array> struct cai_array_caster : cai_array_argument<Array> {
    static constexpr auto name = const_name("array");

    static handle cast(Array &&from, return_value_policy, handle)
    {
        const handle made = cai_caster::give(&from);
        if (!made) throw error_already_set();
        return made;
    }
};

template <> struct type_caster<cai::array> : cai_array_caster<cai::array> {};

template <int FLAGS>
struct type_caster<cai_caster::basic_array<FLAGS>> : cai_array_caster<cai_caster::basic_array<FLAGS>> {};

template <> struct type_caster<cai_caster::stream> : cai_argument<cai_caster::stream, false> {
    static constexpr auto name = const_name("stream");
    type_caster() = default;
    type_caster(type_caster &&from) noexcept : cai_argument(std::move(from)) {}
    cai_caster::in_call in_call{value};
};

/* With <pybind11/stl.h>, which would end the inner caster, and what it registers, before the call. */
template <> struct type_caster<std::optional<cai_caster::stream>> {
    using Value = std::optional<cai_caster::stream>;
    static constexpr auto name = const_name("stream | None");
    template <typename> using cast_op_type = Value;

    bool load(handle from, bool convert)
    {
        is_none = from.is_none();
        return is_none || inner.load(from, convert);
    }
    operator Value()
    {
        if (is_none) return Value();
        return Value(inner.operator const cai_caster::stream &());
    }

    type_caster<cai_caster::stream> inner;
    bool is_none = false;
};

template <typename T, int32_t NDIM>
struct type_caster<cai_caster::typed<T, NDIM>> : cai_array_argument<cai_caster::typed<T, NDIM>, false> {
    static constexpr auto name = const_name("array[dtype=") +
                                 const_name(cai_caster::dtype_text<cai::code_of<T>>::value) +
                                 const_name(cai_caster::rank_text<NDIM>::value) + const_name("]");
};

}} // namespace PYBIND11_NAMESPACE::detail

#endif /* CAI_PYBIND11_H_INCLUDED */
