# cai.pxd - arrays of any library as arguments and results of functions in Cython 3.1 or later, as C++17 - v0.2.0
# SPDX-License-Identifier: MIT (text at the end of cai.h)
#
# DO THIS
#     Compile the module as C++ with CAI_IMPLEMENTATION defined. It first calls cai.open(cuda).
#
#         # distutils: language = c++
#         # distutils: define_macros = CAI_IMPLEMENTATION
#         cimport cai
#         from cai cimport error
#         from libc.stdint cimport uint64_t
#
#         cdef extern from "saxpy.h" nogil:
#             void launch "cai_cython::call<launch_saxpy>"(float, cai.array *, cai.array *, uint64_t) except +error
#
#         array = cai.open(cai.linked())
#
#         def saxpy(float a, x, y, stream):
#             cdef cai.array vx = cai.take(x, 0), vy = cai.take(y, 0)
#             cdef cai.exchange ex
#             cdef uint64_t s = cai.stream(stream)
#             cai.expect(&vx, "x", cai.CAI_FLOAT32, cai.CAI_ANY_NDIM, cai.CAI_ON_DEVICE)
#             cai.expect(&vy, "y", cai.CAI_FLOAT32, cai.CAI_ANY_NDIM, cai.CAI_ON_DEVICE | cai.CAI_WRITABLE)
#             with nogil:
#                 ex.begin(s, vx, vy)
#                 launch(a, &vx, &vy, s)
#                 ex.finish()
#
# ARGUMENTS
#     x = cai.take(object, flags)             an owned array, released when the function ends, in any way. The flags
#                                             and exceptions are those of cai_python_import
#     if cai.try_take(object, flags, x):      the same. False: the object is no array
#     s = cai.stream(object)                  an int, or an object with __cuda_stream__ that is no array
#     cai.expect, cai.expect_same_shape       check an array, and raise the sentence that names it. Declare other
#                                             functions of C as these are declared
#
# ORDER
#     cdef cai.exchange ex                    after the arrays. An exception after begin ends it in order, too
#
# RESULTS
#     return cai.give(x, stream)              an object of the type that open returned, for an owned array. It
#                                             keeps `stream`, the object that x's stream came from, or None
#
# OPENING
#     `cuda` is a `const cai_cuda *`, or cai.linked(): that of the CUDA Runtime that the module is linked with. It
#     may be NULL. Then results must be in host memory. The event pool is never freed.
#     Up to 64 arrays keep their memory until a later call finds that the work on them has passed. When memory is
#     short, cai.drain() waits for the work, and gives back all that waits for it.
#
# INTERPRETERS AND THREADS
#     Cython refuses a second interpreter with ImportError. With Python 3.12 or later, the directive
#     subinterpreters_compatible = own_gil and the macro CYTHON_USE_MODULE_STATE=1 allow it. The directive
#     freethreading_compatible = True declares that the module needs no GIL.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
cdef extern from * nogil:
    """
    #include "cai_caster.h"

    #include <optional>

    namespace cai_cython {
    namespace {
    /* Whether this thread has the GIL. PyGILState_Check says yes to all once there has been a second interpreter. */
    inline bool is_attached()
    {
    #if !defined(Py_LIMITED_API) && PY_VERSION_HEX < 0x030c0000
        PyThreadState *const own = PyGILState_GetThisThreadState();
        return own && _PyThreadState_UncheckedGet() == own;
    #else
        return Py_Version >= 0x030c0000 && PyThreadState_GetDict();
    #endif
    }

    /* Released with the GIL if that is held, so that references go at once. */
    struct array : cai::array {
        array() = default;
        array(array &&) = default;
        array &operator=(array &&) = default;
        ~array()
        {
            if (is_attached()) cai_caster::drop(*this);
        }
    };

    struct exchange : std::optional<cai::exchange> {
        template <class... Arrays> void begin(uint64_t stream, Arrays &...arrays)
        {
            this->emplace(cai_caster::pool(), stream, arrays...);
        }
        void finish() { this->value().finish(); }
    };

    template <auto FUNCTION, class... Arguments> inline void call(Arguments... arguments)
    {
        cai::call(FUNCTION, arguments...);
    }

    struct raised {}; /* the exception of Python is set */

    inline void check(bool failed)
    {
        if (failed) throw raised{};
    }

    /* Cython calls this in a catch block. */
    inline void error()
    {
        try {
            throw;
        } catch (const cai::error &e) {
            (void)cai_python_raise(&e);
        } catch (const raised &) {
        } catch (const std::exception &e) {
            PyErr_SetString(PyExc_RuntimeError, e.what());
        }
    }

    [[maybe_unused]] bool try_take(PyObject *object, uint32_t flags, array &to)
    {
        const int found = cai_caster::take(object, flags, to);
        check(found == CAI_PYTHON_FAILED);
        return found == CAI_PYTHON_TAKEN;
    }

    [[maybe_unused]] array take(PyObject *object, uint32_t flags)
    {
        cai_caster::module_state *const of = cai_caster::current_state();
        const cai_python_options options = {flags, 0, 0, nullptr};
        cai_array taken;
        array to;
        check(!of || cai_python_import(&of->py, &object, 1, &options, &taken));
        static_cast<cai::array &>(to) = cai::array(&taken);
        return to;
    }

    [[maybe_unused]] uint64_t stream(PyObject *object)
    {
        cai_caster::module_state *const of = cai_caster::current_state();
        cai_caster::stream taken;
        check(!of);
        const int found = cai_caster::take(object, taken);
        check(found == CAI_PYTHON_FAILED);
        if (found == CAI_PYTHON_NOT_MINE) check(cai_python_stream(&of->py, object, &taken.number)); /* says why */
        return taken.number;
    }

    [[maybe_unused]] PyObject *give(array &from, PyObject *stream)
    {
        return cai_caster::give(&from, stream == Py_None ? nullptr : stream);
    }

    #if !defined(CAI_NO_CUDART)
    [[maybe_unused]] const cai_cuda *linked()
    {
        static cai_cuda_driver driver; /* the pool points to it */
        cai::call(cai_cuda_linked, &driver);
        return &driver.cuda;
    }
    #endif

    [[maybe_unused]] PyObject *open(const cai_cuda *cuda)
    {
        PyTypeObject *const type = cai_caster::open("cai", cuda);
        check(!type);
        return Py_NewRef(reinterpret_cast<PyObject *>(type));
    }
    } // namespace
    } // namespace cai_cython
    """
    enum: CAI_FLOAT32, CAI_FLOAT64, CAI_ANY_NDIM, CAI_ON_DEVICE, CAI_WRITABLE, CAI_NO_SELF_OVERLAP, CAI_PYTHON_HOST
    ctypedef struct cai_cuda

cdef extern from * namespace "cai_cython":
    void error()
    cppclass array:
        int32_t ndim, dtype "dtype.code", device, memory, sync
        int64_t size, nbytes
        int64_t[64] shape, strides
        uint64_t data, stream
    cppclass exchange:
        void begin(uint64_t, ...) except +error nogil
        void finish() except +error nogil
    const cai_cuda *linked() except +error
    object open(const cai_cuda *) except +error
    void drain "cai_caster::drain"() except +error
    array take(object, uint32_t) except +error
    bint try_take(object, uint32_t, array &) except +error
    uint64_t stream(object) except +error
    object give(array &, object) except +error
    void expect "cai_cython::call<cai_expect>"(array *, const char *, int32_t, int32_t, uint32_t) except +error nogil
    void expect_same_shape "cai_cython::call<cai_expect_same_shape>"(
        array *, const char *, array *, const char *) except +error nogil
