# cai.pxd - arrays of any library as arguments and results of functions in Cython (3.1 or later, as C++17)
# SPDX-License-Identifier: MIT
# Compile the module with CAI_IMPLEMENTATION. It calls cai.open(cuda) before all else; cuda may be NULL.
#     cdef cai.array x = cai.take(object, flags)    owned. It is released when the function ends, in any way
#     if cai.try_take(object, flags, x):            the same, and False for what is no array
#     cdef cai.exchange ex                          after the arrays
#     ex.begin(s, x, y); work on s; ex.finish()     an exception in between ends it in order, too
#     return cai.give(x)                            an object of the type that open returned, for an owned array
#     s = cai.stream(object)                        of an int, or of an object with __cuda_stream__
# Flags and exceptions are those of cai_python_import. Other functions of C are declared as cai.expect is.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
cdef extern from * nogil:
    """
    #include "cai.hpp"
    #include "cai_python.h"
    #include <optional>
    namespace cai_cython { namespace {
    cai_python py; // not cleared, as arrays may outlive the module
    cai::event_pool pool;
    PyTypeObject *made; // of what give returns
    struct array : cai::array { array() = default; array(array &&) = default; array &operator=(array &&) = default;
        ~array() { if (PyGILState_Check()) cai_python_release(&py, this, 1); } }; // lets the GIL go to wait
    struct exchange : std::optional<cai::exchange> {
        template <class... T> void begin(uint64_t s, T &...arrays) { this->emplace(pool, s, arrays...); }
        void finish() { this->value().finish(); } };
    template <auto F, class... T> inline void call(T... arguments) { cai::call(F, arguments...); }
    inline void check(bool failed) { if (failed) throw failed; } // Python has the exception
    inline void error() { try { throw; } catch (const cai::error &e) { cai_python_raise(&e); } catch (...) {} }
    inline bool try_take(PyObject *object, uint32_t flags, array &to, bool must = false) {
        const cai_python_options options = {flags, 0, 0, nullptr};
        cai_array taken;
        int found = CAI_PYTHON_TAKEN;
        if (must) check(cai_python_import(&py, &object, 1, &options, &taken));
        else check((found = cai_python_try_import(&py, object, &options, &taken)) == CAI_PYTHON_FAILED);
        if (found) static_cast<cai::array &>(to) = cai::array(&taken);
        return found;
    }
    [[maybe_unused]] array take(PyObject *o, uint32_t flags) { array to; try_take(o, flags, to, true); return to; }
    [[maybe_unused]] uint64_t stream(PyObject *o) { uint64_t s; return check(cai_python_stream(&py, o, &s)), s; }
    struct held { PyObject_HEAD cai_array value; }; // in an object of `made`
    inline cai_array *of(PyObject *o) { return &reinterpret_cast<held *>(o)->value; }
    inline int describe(PyObject *o, cai_array *out) { return cai_array_borrow(out, of(o)), 0; }
    inline PyObject *adopt(PyTypeObject *type, cai_array *from)
    { PyObject *o = PyType_GenericAlloc(type, 0); return o ? cai_array_move(of(o), from), o : nullptr; }
    [[maybe_unused]] PyObject *give(array &from) { return cai_python_adopt(&py, made, &from); }
    inline PyObject *interface(PyObject *o, void *) { return cai_python_interface(&py, of(o), 3, nullptr); }
    inline void destroy(PyObject *o)
    { PyObject *type = (PyObject *)Py_TYPE(o); cai_python_release(&py, of(o), 1); PyObject_Free(o); Py_DECREF(type); }
    inline PyObject *open(const cai_cuda *cuda) {
        static PyGetSetDef get[] = {{"__cuda_array_interface__", interface, nullptr, nullptr, nullptr}, {}};
        static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)destroy}, {Py_tp_getset, get}, {}};
        static PyType_Spec spec = {"cai.array", sizeof(held), 0, Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
        static const cai_python_exchange exchange = {CAI_ABI, sizeof exchange, describe, adopt};
        made = (PyTypeObject *)PyType_FromSpec(&spec);
        check(!made || cai_python_init(&py) || cai_python_offer(made, &exchange));
        if (cai_error why; cuda && pool.open(cuda, 64, 0, &why)) throw cai::error(why);
        return Py_NewRef((PyObject *)made);
    }
    }} // namespaces
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
    object open(const cai_cuda *) except +error
    array take(object, uint32_t) except +error
    bint try_take(object, uint32_t, array &) except +error
    uint64_t stream(object) except +error
    object give(array &) except +error
    void expect "cai_cython::call<cai_expect>"(array *, const char *, int32_t, int32_t, uint32_t) except +error nogil
    void expect_same_shape "cai_cython::call<cai_expect_same_shape>"(
        array *, const char *, array *, const char *) except +error nogil
