/* cai_nanobind.h - arrays of any library as arguments and results, with nanobind 2.0 or later - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of cai.h) */

/*
DO THIS
    In one file of the module, define CAI_IMPLEMENTATION first. The module first calls cai_nb::open(m, cuda).

        #define CAI_IMPLEMENTATION
        #include "cai_nanobind.h"

        static void saxpy(float a, cai_nb::typed<const float> in, cai_nb::typed<float> out, cai_nb::stream s)
        {
            const nanobind::gil_scoped_release without_gil;
            cai::array &x = in.expect("x"), &y = out.expect("y");
            cai::call(cai_expect_same_shape, &x, "x", &y, "y");
            cai::exchange ex(cai_nb::pool(), s.number, x, y);
            cai::check_cuda(launch_saxpy(a, x, y, s.number), "saxpy"); // your kernel
            ex.finish();
        }

        NB_MODULE(example, m)
        {
            cai_nb::open(m, cai_cuda_linked);
            m.def("saxpy", saxpy);
        }

ARGUMENTS
    cai_nb::array            a cai::array, owned. An object that is no array on a device is left to the next
                             overload
    cai_nb::basic_array<F>   the same, by flags of cai_python_import: CAI_PYTHON_HOST, for instance
    cai_nb::typed<T, N>      any object. The signature has dtype and rank. expect("x") checks the object, or
                             throws "x: expected float32, 1-D, on the device; got None". No other overload is
                             tried. nanobind adds "| None" to the signature
    cai_nb::stream           an int, or an object with __cuda_stream__ that is no array
    A pointer to an array is NULL for None, if the argument is nanobind::arg("x").none(). A std::vector of
    arrays is a list or a tuple. If something is wrong with an array, the exception says what.

RESULTS
    cai_nb::array, which must be owned. Its type is m.array (cai_caster.h). If its stream is that of an
    argument, it keeps the stream object. A cai::error becomes the Python exception of its code.

OPENING
    `cuda` is cai_cuda_linked, a lambda that calls cai_cuda_load, or a `const cai_cuda *`. open makes one event
    pool, cai_nb::pool(), which is never freed. After open(m), without CUDA, results must be in host memory.
    Up to 64 arrays keep their memory until a later call finds that the work on them has passed. When memory is
    short, cai_nb::drain() waits for the work, and gives back all that waits for it.

INTERPRETERS AND THREADS
    nanobind marks its modules as those of one interpreter. From Python 3.12 on, a second one gets "ImportError:
    module example does not support loading in subinterpreters". Without a GIL (NB_FREE_THREADED) it works.
*/
#include "cai_caster.h"

#if defined(CAI_NANOBIND_H_INCLUDED) && CAI_NANOBIND_H_INCLUDED != 200
#error "cai_nanobind.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_NANOBIND_H_INCLUDED
#define CAI_NANOBIND_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

#include <nanobind/nanobind.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <vector>

namespace cai_nb {
using cai_caster::basic_array;
using cai_caster::drain;
using cai_caster::pool;
using cai_caster::stream;
using cai_caster::typed;
using array = cai::array;

/** Opens the module. Throws the exception of Python that says what is wrong. */
template <class Cuda = std::nullptr_t> void open(nanobind::module_ &m, Cuda cuda = nullptr)
{
    const auto name = nanobind::cast<nanobind::object>(m.attr("__name__"));
    PyTypeObject *const type = cai_caster::open(PyUnicode_AsUTF8AndSize(name.ptr(), nullptr), cuda);
    if (!type) throw nanobind::python_error();
    m.attr("array") = nanobind::handle(reinterpret_cast<PyObject *>(type));
    nanobind::register_exception_translator([](const std::exception_ptr &now, void *) {
        try {
            std::rethrow_exception(now);
        } catch (const cai::error &e) {
            (void)cai_python_raise(&e);
        }
    });
}
} // namespace cai_nb

namespace NB_NAMESPACE { namespace detail {

/* Takes an argument of type T. With NULLABLE, None is NULL. */
template <typename T, bool NULLABLE = true> struct cai_argument {
    using Value = T;
    template <typename U> using Cast = movable_cast_t<U>;

    ~cai_argument() { cai_caster::drop(value); }

    /* What is raised waits for the call, as nanobind would try the next overload. */
    bool from_python(handle from, uint32_t, cleanup_list *) noexcept
    {
        is_null = NULLABLE && from.is_none();
        const int found = is_null ? int{CAI_PYTHON_TAKEN} : cai_caster::take(from.ptr(), value);
        if (found == CAI_PYTHON_FAILED) error = std::make_exception_ptr(python_error());
        return found != CAI_PYTHON_NOT_MINE;
    }

    template <typename U> bool can_cast() const noexcept
    {
        return !error && (std::is_pointer_v<U> || !is_null);
    }

    explicit operator T *()
    {
        if (error) std::rethrow_exception(error);
        return is_null ? nullptr : &value;
    }

    explicit operator T &()
    {
        T *const found = static_cast<T *>(*this);
        if (!found) throw next_overload();
        return *found;
    }

    explicit operator T &&() { return std::move(static_cast<T &>(*this)); }

    T value;
    std::exception_ptr error;
    bool is_null = false;
};

/* The same of an array. Results may name its stream. */
template <typename T, bool NULLABLE = true> struct cai_array_argument : cai_argument<T, NULLABLE> {
    bool from_python(handle from, uint32_t flags, cleanup_list *cleanup) noexcept
    {
        const bool taken = cai_argument<T, NULLABLE>::from_python(from, flags, cleanup);
        if (taken && !this->error && !this->is_null) cai_caster::name(named, this->value, from.ptr());
        return taken;
    }
    cai_caster::stream named;
    cai_caster::in_call in_call{named};
};

template <typename Array> struct cai_array_caster : cai_array_argument<Array> {
    static constexpr auto Name = const_name("array");

    static handle from_cpp(Array &&from, rv_policy, cleanup_list *) noexcept
    {
        return cai_caster::give(&from);
    }
};

template <typename List> struct cai_list_caster : cai_argument<List> {
    static constexpr auto Name = const_name("list[array]");
};

template <> struct type_caster<cai::array> : cai_array_caster<cai::array> {};

template <int FLAGS>
struct type_caster<cai_caster::basic_array<FLAGS>> : cai_array_caster<cai_caster::basic_array<FLAGS>> {};

template <> struct type_caster<std::vector<cai::array>> : cai_list_caster<std::vector<cai::array>> {};

template <int FLAGS>
struct type_caster<std::vector<cai_caster::basic_array<FLAGS>>>
    : cai_list_caster<std::vector<cai_caster::basic_array<FLAGS>>> {};

template <> struct type_caster<cai_caster::stream> : cai_argument<cai_caster::stream> {
    static constexpr auto Name = const_name("stream");
    cai_caster::in_call in_call{value};
};

/* With <nanobind/stl/optional.h>, which would end the inner caster, and what it registers, before the call. */
template <> struct type_caster<std::optional<cai_caster::stream>> {
    using Value = std::optional<cai_caster::stream>;
    static constexpr auto Name = const_name("stream | None");
    template <typename> using Cast = Value;

    bool from_python(handle from, uint32_t flags, cleanup_list *cleanup) noexcept
    {
        is_none = from.is_none();
        return is_none || inner.from_python(from, flags, cleanup);
    }
    template <typename> bool can_cast() const noexcept { return true; } /* the cast raises what was raised */
    explicit operator Value()
    {
        if (is_none) return Value();
        return Value(static_cast<cai_caster::stream &>(inner));
    }

    type_caster<cai_caster::stream> inner;
    bool is_none = false;
};

template <typename T, int32_t NDIM>
struct type_caster<cai_caster::typed<T, NDIM>> : cai_array_argument<cai_caster::typed<T, NDIM>, false> {
    static constexpr auto Name = const_name("array[dtype=") +
                                 const_name(cai_caster::dtype_text<cai::code_of<T>>::value) +
                                 const_name(cai_caster::rank_text<NDIM>::value) + const_name("]");
};

/* nanobind gives None to arguments of this type. */
template <typename T, int32_t NDIM> struct has_arg_defaults<cai_caster::typed<T, NDIM>> : std::true_type {};

}} // namespace NB_NAMESPACE::detail

#endif /* CAI_NANOBIND_H_INCLUDED */
