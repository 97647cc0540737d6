/* cai_caster.h - the arrays that a module in C++ takes from Python and returns - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of cai.h)
 * C++17, over Python's limited API of 3.11 and later. No CUDA, no dlpack.h. */

#if !(__cplusplus >= 201703L || (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L))
#error "cai_caster.h: needs C++17"
#endif
#if defined(CAI_STATIC)
#error "cai_caster.h: not with CAI_STATIC: the files of a module share its state"
#endif

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include "cai.hpp"

#include "cai_python_dlpack.h"

#if defined(CAI_CASTER_H_INCLUDED) && CAI_CASTER_H_INCLUDED != 200
#error "cai_caster.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_CASTER_H_INCLUDED
#define CAI_CASTER_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    Include the header of your binding tool instead: cai_nanobind.h, cai_pybind11.h, or cimport cai.pxd.
    These have the manuals. This header is for the caster of another tool. That caster calls

        cai_caster::open("name of the module", cuda)    once, in the module's initialization
        cai_caster::take(object, to)                    for an argument
        cai_caster::drop(value)                         after the call, with the GIL
        cai_caster::give(&array)                        for a result

WHAT A MODULE HAS
    One event pool, for all interpreters. It is never freed, because arrays may outlive the module. In each
    interpreter one type `array`, which goes with the interpreter. Several modules in one library share both.

INTERPRETERS AND THREADS
    Any number of interpreters may open the module, one after the other or at the same time, also with a GIL
    each, and also after Py_Finalize. The tool decides whether a second one may import it. All functions need
    an attached thread of Python. No function needs the GIL to be right.

WHAT AN ARRAY OFFERS IN PYTHON
    __dlpack__, __dlpack_device__, __cuda_array_interface__ (in host memory __array_interface__), the exchange
    in C (__cai_exchange__), DLPack's exchange in C (__dlpack_c_exchange_api__), shape, strides (in bytes),
    dtype (a typestr), device (None in host memory), len() and repr(). All of these order both ends.

LIFETIMES
    An array keeps the stream object of the argument that its stream came from, or the array argument whose
    stream it names (R81). The last reference gives the memory back when the work in the array's stream has
    passed. An array with CAI_ORDERED_FREE is released at once, because its owner does the same. If a garbage
    collection ends a ring of the array and its stream object, an event stands for the work. If the stream
    object has a __del__ that ran before, the host waits for the context, because the stream may be gone. What
    a capture forbids is released at a later call. If x.y = f(x) and f returns x, the collector does not see x
    behind the result: both stay.
*/

#include <atomic>
#include <cstdio>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/* Hidden: modules share no state, even if one process loads several. */
#if defined(__GNUC__) && !defined(_WIN32)
namespace cai_caster __attribute__((visibility("hidden"))) {
#else
namespace cai_caster {
#endif

/* ------------------------------------------------------------------- >>module */
/* An array of an object that is gone, which waits for the end of a capture, and the object of its stream. */
struct kept_array {
    cai_array array;
    PyObject *stream;
    kept_array *next;
};

/* Of a module_state, instead of the ID of an interpreter. */
enum : int64_t { NOT_OPEN = -1, FREE = -2 };

/** What a module has in one interpreter. The interpreter's dictionary and each array keep it. When all are
 *  gone, the next interpreter gets its place. */
struct module_state {
    std::atomic<int64_t> interpreter{NOT_OPEN}; /* its ID */
    std::atomic<kept_array *> kept{nullptr};
    cai_python py = {};
    PyTypeObject *type = nullptr;
    PyObject *life = nullptr; /* a capsule. Its end ends the state */
    std::string name;         /* of the type */
    module_state *next = nullptr;
};

inline std::atomic<module_state *> states; /* of all interpreters */
inline std::atomic<cai::event_pool *> events; /* nullptr: opened without CUDA */

/** The state for this interpreter, or nullptr. Needs the GIL. */
inline module_state *find_state() noexcept
{
    const int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
    module_state *at = states;
    while (at && at->interpreter != here) at = at->next;
    return at;
}

/** The same, or nullptr with an exception set. */
inline module_state *current_state() noexcept
{
    module_state *const found = find_state();
    if (!found) PyErr_SetString(PyExc_RuntimeError, "cai: the module did not call open() first");
    return found;
}

/** The event pool of the module. Throws cai::error if the module was opened without CUDA. Needs no GIL. */
inline cai::event_pool &pool()
{
    cai_error why;
    if (cai::event_pool *const opened = events) return *opened;
    (void)cai_error_set(CAI_ERR_UNAVAILABLE, "pool", "the module was opened without CUDA: open(m, cuda)",
                        &why);
    throw cai::error(why);
}

/* ------------------------------------------------------------------- >>streams */
/** A stream argument. `owner` is borrowed for the time of the call. It is the object that the caller passed,
 *  or nullptr for an int. */
struct stream {
    uint64_t number = 0;
    PyObject *owner = nullptr;
    bool is_array = false; /* the stream of an array argument, which owner is */
};

/** While it lives, results on this thread that name the stream keep its owner. Needs an attached thread. */
class in_call {
  public:
    explicit in_call(const stream &of) noexcept
        : stream_(&of), before_(innermost()), interpreter_(PyInterpreterState_Get())
    {
        innermost() = this;
    }
    ~in_call()
    {
        in_call **at = &innermost();
        while (*at != this) at = &(*at)->before_;
        *at = before_;
    }
    in_call(const in_call &) = delete;
    in_call &operator=(const in_call &) = delete;

    /** The owner of the stream that the array names, or nullptr. */
    static PyObject *owner_of(const cai_array &array) noexcept
    {
        if (array.sync == CAI_SYNC_NONE || !array.stream) return nullptr;
        PyObject *of_array = nullptr; /* a stream argument comes first: it keeps no memory */
        const PyInterpreterState *const here = PyInterpreterState_Get();
        for (const in_call *at = innermost(); at; at = at->before_) {
            if (at->interpreter_ != here) continue; /* code of an argument has called another one */
            if (!at->stream_->owner || at->stream_->number != array.stream) continue;
            if (!at->stream_->is_array) return at->stream_->owner;
            if (!of_array) of_array = at->stream_->owner;
        }
        return of_array;
    }

  private:
    static in_call *&innermost() noexcept
    {
        static thread_local in_call *last = nullptr;
        return last;
    }
    const stream *stream_;
    in_call *before_;
    const PyInterpreterState *interpreter_;
};

inline void settle_kept(module_state *of) noexcept; /* >>arrays */

/* ----------------------------------------------------------------- >>arguments */
/** An array, imported with FLAGS of cai_python_import. */
template <int FLAGS> struct basic_array : cai::array {
    basic_array() = default;
    basic_array(cai::array &&from) noexcept : cai::array(std::move(from)) {}
};

/* Any object. What is no array is told by expect. */
struct any_argument {
    cai::array array;
    char type[80] = ""; /* of an object that is no array */
};

/* Does the same as cai_expect, also for an object that is no array: "x: expected float32, 2-D; got None". */
inline cai_status expect(const any_argument *argument, const char *name, int32_t dtype, int32_t ndim,
                         uint32_t needs, cai_error *err) noexcept
{
    const int32_t other = dtype == CAI_INT8 ? CAI_UINT8 : CAI_INT8;
    const int64_t size = 0;
    cai_array none;
    if (!argument->type[0]) return cai_expect(&argument->array, name, dtype, ndim, needs, err);
    CAI_TRY(cai_array_init(&none, other, 1, &size, nullptr, nullptr, err));
    const cai_status status = cai_expect(&none, name, dtype, ndim, needs, err); /* writes what is expected */
    char *const got = std::strstr(err->message, "; got ");
    if (status != CAI_ERR_EXPECT || !got) return status;
    const size_t room = sizeof err->message - static_cast<size_t>(got - err->message);
    (void)std::snprintf(got, room, "; got %s", argument->type);
    err->code = CAI_ERR_TYPE;
    return CAI_ERR_TYPE;
}

/** An argument whose signature in Python has the dtype and the rank. It accepts any object, and leaves none to
 *  the next overload. expect checks it. A `const T` is only read. */
template <class T, int32_t NDIM = CAI_ANY_NDIM> class typed {
  public:
    static constexpr int32_t dtype = cai::code_of<T>;
    static_assert(dtype != CAI_ANY_DTYPE, "specialize cai::code_of for this type");

    /** The array, or throws cai::error: "x: expected float32, 2-D, on the device; got float32, 1-D". `flags`
     *  are those of cai_expect. Needs no GIL. */
    cai::array &expect(const char *name, uint32_t flags = CAI_ON_DEVICE)
    {
        const uint32_t writes = std::is_const_v<T> ? 0U : uint32_t{CAI_WRITABLE};
        cai::call(cai_caster::expect, &argument_, name, dtype, NDIM, flags | writes);
        return argument_.array;
    }

    any_argument &argument() noexcept { return argument_; }

  private:
    any_argument argument_;
};

/* The name of a dtype as a constant, for signatures. */
template <int32_t CODE> struct dtype_text;
#define CAI_PRIV_DTYPE_TEXT(name, kind, bytes, format, text)                                                 \
    template <> struct dtype_text<name> {                                                                    \
        static constexpr char value[] = text;                                                                \
    };
CAI_DTYPE_LIST(CAI_PRIV_DTYPE_TEXT)
#undef CAI_PRIV_DTYPE_TEXT

/* The same of a rank. */
template <int32_t NDIM, int32_t DIGITS = (NDIM < 0 ? 0 : NDIM < 10 ? 1 : 2)> struct rank_text;
template <int32_t NDIM> struct rank_text<NDIM, 0> {
    static constexpr char value[] = "";
};
template <int32_t NDIM> struct rank_text<NDIM, 1> {
    static constexpr char value[] = {',', ' ', 'n', 'd', 'i', 'm', '=', '0' + NDIM, 0};
};
template <int32_t NDIM> struct rank_text<NDIM, 2> {
    static constexpr char value[] = {',', ' ', 'n', 'd', 'i', 'm', '=', '0' + NDIM / 10, '0' + NDIM % 10, 0};
};

/** Takes an argument: a cai::array (with flags of cai_python_import), basic_array, typed, or stream. Returns
 *  what cai_python_try_import returns. */
inline int take(PyObject *from, uint32_t flags, cai::array &to) noexcept
{
    const cai_python_options options = {flags, 0, 0, nullptr};
    module_state *const of = current_state();
    cai_array taken;
    if (!of) return CAI_PYTHON_FAILED;
    const int found = cai_python_try_import(&of->py, from, &options, &taken);
    if (found == CAI_PYTHON_TAKEN) to = cai::array(&taken);
    return found;
}

inline int take(PyObject *from, cai::array &to) noexcept
{
    return take(from, 0, to);
}

template <int FLAGS> int take(PyObject *from, basic_array<FLAGS> &to) noexcept
{
    return take(from, uint32_t{FLAGS}, to);
}

/* The name of a type, as far as there is room. */
inline void put_type(PyObject *object, char *text, size_t size) noexcept
{
    PyObject *const name = PyType_GetName(Py_TYPE(object));
    const char *const utf8 = name ? PyUnicode_AsUTF8AndSize(name, nullptr) : nullptr;
    (void)std::snprintf(text, size, "an object of type %.50s", utf8 ? utf8 : "unknown");
    if (!utf8) PyErr_Clear();
    Py_XDECREF(name);
}

/* Takes any object. */
inline int take(PyObject *from, any_argument &to) noexcept
{
    const int found = take(from, uint32_t{CAI_PYTHON_HOST}, to.array);
    if (found != CAI_PYTHON_NOT_MINE) return found;
    if (from == Py_None) (void)std::snprintf(to.type, sizeof to.type, "None");
    else put_type(from, to.type, sizeof to.type);
    return CAI_PYTHON_TAKEN;
}

template <class T, int32_t NDIM> int take(PyObject *from, typed<T, NDIM> &to) noexcept
{
    return take(from, to.argument());
}

/* Whether the object has the attribute: 1 or 0. Returns -1 with the exception of the object's own code, other
 * than AttributeError. */
inline int has(PyObject *object, const char *name) noexcept
{
    PyObject *const found = PyObject_GetAttrString(object, name);
    Py_XDECREF(found);
    if (found) return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
}

/* The same, whether the object is an array. It may have a __cuda_stream__ that belongs to its stream. */
inline int is_array(PyObject *object) noexcept
{
    int found = 0;
    for (const char *name :
         {"__cuda_array_interface__", "__array_interface__", "__dlpack__", CAI_PYTHON_EXCHANGE})
        if (!found) found = has(object, name);
    return found;
}

/* Takes a stream: an int, or an object with __cuda_stream__ that is no array. */
inline int take(PyObject *from, stream &to) noexcept
{
    module_state *const of = current_state();
    const bool is_int = PyLong_Check(from) != 0;
    if (!of) return CAI_PYTHON_FAILED;
    const int found = is_int ? 1 : has(from, "__cuda_stream__");
    if (found <= 0) return found ? CAI_PYTHON_FAILED : CAI_PYTHON_NOT_MINE;
    const int array = is_int ? 0 : is_array(from);
    if (array < 0) return CAI_PYTHON_FAILED;
    if (array) {
        PyErr_SetString(PyExc_TypeError,
                        "an array is no stream, although it has __cuda_stream__: pass its stream");
        return CAI_PYTHON_FAILED;
    }
    if (cai_python_stream(&of->py, from, &to.number)) return CAI_PYTHON_FAILED;
    to.owner = is_int ? nullptr : from;
    return CAI_PYTHON_TAKEN;
}

/* The stream that an array argument names lives as long as the argument (R81). */
inline void name(stream &to, const cai_array &array, PyObject *from) noexcept
{
    if (array.sync != CAI_SYNC_STREAM && array.sync != CAI_SYNC_EVENT) return;
    to = {array.stream, from, true};
}
inline void name(stream &to, any_argument &argument, PyObject *from) noexcept
{
    if (!argument.type[0]) name(to, argument.array, from);
}
template <class T, int32_t NDIM> void name(stream &to, typed<T, NDIM> &argument, PyObject *from) noexcept
{
    name(to, argument.argument(), from);
}

/* Takes a list or a tuple of arrays, all or none. */
template <class Array> int take(PyObject *from, std::vector<Array> &to)
{
    if (!PyList_Check(from) && !PyTuple_Check(from)) return CAI_PYTHON_NOT_MINE;
    PyObject *const items = PySequence_Tuple(from); /* code of an item could change the list */
    int found = items ? int{CAI_PYTHON_TAKEN} : int{CAI_PYTHON_FAILED};
    for (Py_ssize_t i = 0; found == CAI_PYTHON_TAKEN && i < PyTuple_Size(items); ++i)
        found = take(PyTuple_GetItem(items, i), to.emplace_back());
    Py_XDECREF(items);
    return found;
}

/** Drops what was taken. Releases the GIL if it must wait. */
inline void drop(cai_array &array) noexcept
{
    module_state *const of = find_state();
    if (!of) return;
    if (of->kept) settle_kept(of);
    cai_python_release(&of->py, &array, 1); /* and what an exchange or the function gave back */
}

inline void drop(any_argument &argument) noexcept
{
    drop(argument.array);
}

template <class T, int32_t NDIM> void drop(typed<T, NDIM> &argument) noexcept
{
    drop(argument.argument());
}

inline void drop(stream &) noexcept {}

template <class Array> void drop(std::vector<Array> &all) noexcept
{
    for (Array &one : all) drop(one);
}

/* -------------------------------------------------------------------- >>arrays */
/* An object of the type `array`. */
struct array_object {
    PyObject_HEAD
    module_state *of;
    PyObject *life;   /* of the state */
    PyObject *stream; /* of the caller, or nullptr: it must outlive the array (R81) */
    cai_array array;  /* owned */
};

inline array_object *object_of(PyObject *self) noexcept
{
    return reinterpret_cast<array_object *>(self);
}

inline cai_array *array_of(PyObject *self) noexcept
{
    return &object_of(self)->array;
}

inline bool is_on_host(PyObject *self) noexcept
{
    return array_of(self)->memory == CAI_MEMORY_HOST;
}

/* Raises BufferError. */
inline int refuse(const char *why) noexcept
{
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
}

/* Raises the error. */
inline int fail(const cai_error &err) noexcept
{
    (void)cai_python_raise(&err);
    return -1;
}

/* CUDA cannot tell the device of an empty array by its address, and DLPack needs one: that of the array's
 * stream, or of the current context. */
inline void place_empty(cai_array *array, const cai_cuda *cuda) noexcept
{
    const bool has_stream = array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT;
    uint64_t context = 0;
    int32_t device = 0;
    if (has_stream && array->stream > CAI_STREAM_PER_THREAD &&
        cuda->stream_context(cuda->self, array->stream, &context))
        return;
    if (context && cuda->context_push(cuda->self, context)) return;
    const int32_t failed = cuda->context_device(cuda->self, &device);
    if (context) (void)cuda->context_pop(cuda->self);
    if (failed) return;
    array->memory = CAI_MEMORY_DEVICE;
    array->device = device;
}

/* Checks an array that becomes an object, and stores what exports need. Returns 0, or -1 with an exception. */
inline int prepare(cai_array *array) noexcept
{
    cai_error err;
    if (cai_array_check(array, &err)) return fail(err);
    const bool is_empty = !array->size && !array->mask && !array->fields; /* cai_emm.h gives it no owner */
    const bool is_kept = array->release || is_empty;
    if (!is_kept) return refuse("the array is borrowed, so nothing keeps its memory: own it first");
    if (array->memory == CAI_MEMORY_HOST) return 0;
    if (!events) return refuse("without CUDA only arrays in host memory are returned: open(m, cuda)");
    if (array->memory == CAI_MEMORY_UNKNOWN &&
        cai_locate(array, "array", events.load()->cuda(), 0, nullptr, &err))
        err.code = CAI_OK; /* exports say that it is unknown */
    if (array->memory == CAI_MEMORY_UNKNOWN && !array->size) place_empty(array, events.load()->cuda());
    if (array->sync == CAI_SYNC_NONE || array->stream != CAI_STREAM_PER_THREAD || array->thread) return 0;
    if (cai_stream_remember_thread(array, *events.load(), &err)) return fail(err);
    return 0;
}

/* A new array of the module, which takes over `array`. It keeps `owner`, the object of the array's stream. On
 *  failure returns nullptr with an exception set, and `array` is unchanged. */
inline PyObject *make(cai_array *array, PyObject *owner) noexcept
{
    module_state *const of = current_state();
    if (!of || prepare(array)) return nullptr;
    if (of->kept) settle_kept(of);
    PyObject *const made = PyType_GenericAlloc(of->type, 0);
    if (!made) return nullptr;
    object_of(made)->of = of;
    object_of(made)->life = Py_NewRef(of->life);
    object_of(made)->stream = Py_XNewRef(owner ? owner : in_call::owner_of(*array));
    cai_array_move(array_of(made), array);
    return made;
}

/** The object of a function's result, which takes over `array`. It keeps `owner`, the object of the array's
 *  stream. nullptr: that of the call. On failure returns nullptr with an exception set, and `array` stays
 *  the caller's. */
inline PyObject *give(cai_array *array, PyObject *owner = nullptr) noexcept
{
    if (array->memory == CAI_MEMORY_HOST && array->sync == CAI_SYNC_UNKNOWN)
        array->sync = CAI_SYNC_NONE; /* the function has written it */
    return make(array, owner);
}

/* An exception for which there is no caller. One that is set stays. */
inline void report(const cai_error &err, PyTypeObject *type) noexcept
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    (void)cai_python_raise(&err);
    PyErr_WriteUnraisable(reinterpret_cast<PyObject *>(type));
    PyErr_Restore(kind, value, trace);
}

/* Whether the array can be released at once. Without CUDA there is nothing to wait for. */
inline bool is_settled(const cai_array &array) noexcept
{
    if (events && array.flags & CAI_OWN_EVENT) return false; /* finish destroys the event */
    return !events || array.sync == CAI_SYNC_NONE || !array.size || (array.flags & CAI_ORDERED_FREE);
}

/* Where there is no default stream to wait in. */
inline cai_status release_behind_host(cai_array *array, cai_error *err) noexcept
{
    const cai_cuda *const cuda = events.load()->cuda();
    const bool by_event = array->sync == CAI_SYNC_EVENT;
    CAI_TRY(cai_cuda_status(by_event ? cuda->event_synchronize(cuda->self, array->event)
                                     : cuda->context_synchronize(cuda->self),
                            by_event ? "event_synchronize" : "context_synchronize", err));
    if (by_event) CAI_TRY(cai_stream_drop_event(array, *events.load(), err));
    cai_array_release(array);
    return CAI_OK;
}

/* Gives the memory back when the work in the array's stream has passed. The host may wait: without the GIL. */
inline cai_status release_behind(cai_array *array, cai_error *err) noexcept
{
    cai_array *const io[1] = {array};
    cai::exchange ex;
    if (array->sync == CAI_SYNC_STREAM && array->stream > CAI_STREAM_PER_THREAD)
        return cai_keepalive_push(array, *events.load(), array->stream, err);
    if (events.load()->cuda()->flags & CAI_CUDA_NO_DEFAULT_STREAMS) return release_behind_host(array, err);
    if (array->sync == CAI_SYNC_STREAM) array->stream = CAI_STREAM_LEGACY; /* after stream 2 of all threads */
    CAI_TRY(ex.begin(*events.load(), CAI_STREAM_LEGACY, io, 1, nullptr, err)); /* waits for the context */
    return ex.finish(CAI_OK, err);
}

/* The same, without the GIL meanwhile. */
inline cai_status release_without_gil(cai_array *array, cai_error *err) noexcept
{
    PyThreadState *const thread = PyEval_SaveThread();
    const cai_status status = release_behind(array, err);
    PyEval_RestoreThread(thread);
    return status;
}

inline void keep(module_state *of, kept_array *one) noexcept
{
    one->next = of->kept;
    while (!of->kept.compare_exchange_weak(one->next, one)) continue;
}

/* Tries again what a capture did not let go. */
inline void settle_kept(module_state *of) noexcept
{
    kept_array *at = of->kept ? of->kept.exchange(nullptr) : nullptr;
    while (at) {
        kept_array *const one = at;
        cai_error err;
        at = at->next;
        const cai_status status = release_without_gil(&one->array, &err);
        if (status == CAI_ERR_CAPTURE && one->array.release) {
            keep(of, one);
            continue;
        }
        if (status) report(err, of->type);
        PyObject *const stream = one->stream;
        delete one;
        Py_XDECREF(stream);
    }
}

/** Waits for the work of the module's arrays, and gives back all that waits for it, arguments as well. Call it
 *  when memory is short. Needs an attached thread, and releases the GIL to wait. Throws cai::error. */
inline void drain()
{
    module_state *const of = find_state();
    cai_error err;
    PyThreadState *const thread = PyEval_SaveThread();
    const cai_status status = events ? cai_keepalive_drain(*events.load(), &err) : CAI_OK;
    PyEval_RestoreThread(thread);
    if (of && of->kept) settle_kept(of);
    if (of) cai_python_drain(&of->py);
    if (status) throw cai::error(err);
}

inline void give_back(PyObject *self) noexcept
{
    array_object *const object = object_of(self);
    cai_array *const array = &object->array;
    cai_python *const py = &object->of->py;
    cai_error err;
    if (is_settled(*array)) {
        cai_python_release(py, array, 1);
        return;
    }
    const cai_status status = release_without_gil(array, &err);
    const bool is_captured = status == CAI_ERR_CAPTURE && array->release;
    kept_array *const kept = is_captured ? new (std::nothrow) kept_array : nullptr;
    if (kept) {
        cai_array_move(&kept->array, array);
        kept->stream = std::exchange(object->stream, nullptr);
        keep(object->of, kept);
    } else if (status) {
        report(err, Py_TYPE(self));
    }
    cai_python_drain(py);
}

inline int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(object_of(self)->stream);
    return 0;
}

/* Only a collection calls this. It may have ended the stream object, which is garbage, too. So the stream is
 * named no more, and the host waits for the context instead. */
inline void array_finalize(PyObject *self)
{
    cai_array *const array = array_of(self);
    PyObject *const stream = object_of(self)->stream;
    if (array->sync == CAI_SYNC_NONE || !stream) return;
    if (events && array->sync == CAI_SYNC_STREAM && !PyObject_GC_IsFinalized(stream))
        (void)!cai_stream_detach(array, *events.load(), nullptr); /* it has not been ended yet */
    if (array->sync != CAI_SYNC_EVENT) array->sync = CAI_SYNC_UNKNOWN;
    array->stream = 0; /* an event stays: it needs no stream */
}

inline void array_dealloc(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    give_back(self);
    PyObject *const stream = object_of(self)->stream; /* there is no tp_clear: the end needs all of it */
    PyObject *const life = object_of(self)->life;
    PyObject_GC_Del(self);
    Py_XDECREF(stream); /* behind the free */
    Py_DECREF(life);
    Py_DECREF(type);
}

/* ------------------------------------------------------------ >>what others ask for */
inline int array_describe(PyObject *self, cai_array *out)
{
    cai_array_borrow(out, array_of(self));
    return 0;
}

inline PyObject *array_adopt(PyTypeObject *, cai_array *array)
{
    return make(array, nullptr); /* its maker promises that the stream lives */
}

inline const cai_python_exchange exchange = {CAI_ABI, sizeof(cai_python_exchange), array_describe,
                                             array_adopt};

/* DLPack's exchange in C. */
struct dlpack {
    /* We have no current stream, so that is the default one. */
    static int current_stream(cai_dl_device_type, int32_t, void **out)
    {
        *out = nullptr;
        return 0;
    }
    static int make(struct DLManagedTensorVersioned *tensor, void **out);
    static const cai_dl_exchange table;
};

inline const cai_dl_exchange dlpack::table = {{{CAI_DL_MAJOR, CAI_DL_MINOR}, nullptr},
                                              cai_python_dlpack_allocate,
                                              cai_python_dlpack_give,
                                              dlpack::make,
                                              nullptr,
                                              dlpack::current_stream};

inline int dlpack::make(struct DLManagedTensorVersioned *tensor, void **out)
{
    return cai_python_dlpack_make(&table, tensor, out);
}

/* A dictionary does not name the thread of stream 2. Elsewhere it names stream 1, which comes after it. */
inline void name_stream(cai_array *array) noexcept
{
    uint64_t now = 0;
    if (array->sync != CAI_SYNC_STREAM || array->stream != CAI_STREAM_PER_THREAD || !events) return;
    if (events.load()->cuda()->host_thread(events.load()->cuda()->self, &now) || now != array->thread)
        array->stream = CAI_STREAM_LEGACY;
}

/* An array has one of the two interfaces. */
inline PyObject *array_interface(PyObject *self, void *on_host)
{
    if (is_on_host(self) == (on_host != nullptr)) {
        cai_array seen;
        cai_array_borrow(&seen, array_of(self));
        name_stream(&seen);
        return cai_python_interface(&object_of(self)->of->py, &seen, 3, nullptr);
    }
    PyErr_SetString(PyExc_AttributeError, on_host ? "__array_interface__: the array is not in host memory"
                                                  : "__cuda_array_interface__: the array is in host memory");
    return nullptr;
}

inline PyObject *refuse_numpy(PyObject *, PyObject *, PyObject *)
{
    PyErr_SetString(PyExc_TypeError,
                    "NumPy takes arrays in host memory only: copy the array to the host first");
    return nullptr;
}

/* Without it NumPy makes an array of one object. In host memory NumPy reads __array_interface__. */
inline PyObject *array_array(PyObject *self, void *)
{
    static PyMethodDef refuses = {
        "__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(refuse_numpy)),
        METH_VARARGS | METH_KEYWORDS, nullptr};
    if (!is_on_host(self)) return PyCFunction_New(&refuses, self);
    PyErr_SetString(PyExc_AttributeError, "__array__: the array is in host memory");
    return nullptr;
}

inline PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    cai_python *const py = &object_of(self)->of->py;
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(array_of(self), args, kwargs, &request)) return nullptr;
    if (is_on_host(self)) return cai_python_dlpack(py, self, array_of(self), &request);
    return cai_python_dlpack_ordered(py, *events.load(), self, array_of(self), &request);
}

inline PyObject *array_dlpack_device(PyObject *self, PyObject *)
{
    return cai_python_dlpack_device(array_of(self));
}

/* shape, or strides in bytes */
inline PyObject *array_extents(PyObject *self, void *strides)
{
    const cai_array *const array = array_of(self);
    const int64_t *const numbers = strides ? array->strides : array->shape;
    PyObject *const tuple = PyTuple_New(array->ndim);
    for (int32_t i = 0; tuple && i < array->ndim; ++i)
        PyTuple_SetItem(tuple, i, PyLong_FromLongLong(numbers[i]));
    return tuple;
}

inline PyObject *array_dtype(PyObject *self, void *)
{
    char text[CAI_TYPESTR_SIZE];
    (void)cai_dtype_typestr(&array_of(self)->dtype, text, sizeof text);
    return PyUnicode_FromString(text);
}

inline PyObject *array_device(PyObject *self, void *)
{
    if (is_on_host(self)) return Py_NewRef(Py_None);
    return PyLong_FromLong(array_of(self)->device);
}

inline PyObject *array_repr(PyObject *self)
{
    char text[512];
    (void)cai_array_text(array_of(self), text, sizeof text);
    return PyUnicode_FromFormat("<%s %s>", object_of(self)->of->name.c_str(), text);
}

inline Py_ssize_t array_length(PyObject *self)
{
    const cai_array *const array = array_of(self);
    if (array->ndim) return static_cast<Py_ssize_t>(array->shape[0]);
    PyErr_SetString(PyExc_TypeError, "len() of an array without dimensions");
    return -1;
}

/* ------------------------------------------------------------------- >>opening */
template <class Function> void *slot(Function *function) noexcept
{
    return reinterpret_cast<void *>(function);
}

/* A new type. Returns nullptr with an exception set on failure. */
inline PyTypeObject *make_type(const char *name) noexcept
{
    static char host[] = "host", strides[] = "strides";
    static PyGetSetDef getset[] = {
        {"__cuda_array_interface__", array_interface, nullptr, "version 3, with the stream", nullptr},
        {"__array_interface__", array_interface, nullptr, "of an array in host memory", host},
        {"__array__", array_array, nullptr, "refuses what is not in host memory", nullptr},
        {"shape", array_extents, nullptr, nullptr, nullptr},
        {"strides", array_extents, nullptr, "in bytes", strides},
        {"dtype", array_dtype, nullptr, "a typestr", nullptr},
        {"device", array_device, nullptr, "a number, or None in host memory", nullptr},
        {}};
    static PyMethodDef methods[] = {
        {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_dlpack)),
         METH_VARARGS | METH_KEYWORDS, nullptr},
        {"__dlpack_device__", array_dlpack_device, METH_NOARGS, nullptr},
        {}};
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, slot(array_dealloc)},   {Py_tp_traverse, slot(array_traverse)},
        {Py_tp_finalize, slot(array_finalize)}, {Py_tp_repr, slot(array_repr)},
        {Py_mp_length, slot(array_length)},     {Py_tp_getset, getset},
        {Py_tp_methods, methods},               {}};
    const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    PyType_Spec spec = {name, static_cast<int>(sizeof(array_object)), 0, flags, slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
}

/* The arrays of an interpreter that has ended are gone, too. */
inline void end_state(PyObject *life) noexcept
{
    module_state *const of = static_cast<module_state *>(PyCapsule_GetPointer(life, nullptr));
    if (of->kept) settle_kept(of);
    (void)cai_python_clear(&of->py);
    if (!of->kept) of->interpreter = FREE; /* else a capture has not ended: no interpreter comes here again */
}

/* An interpreter ends. Python may give its ID to another one. */
inline void close_state(PyObject *opened) noexcept
{
    module_state *const of = static_cast<module_state *>(PyCapsule_GetPointer(opened, nullptr));
    PyTypeObject *const type = of->type;
    of->interpreter = NOT_OPEN;
    Py_DECREF(of->life);
    Py_XDECREF(reinterpret_cast<PyObject *>(type));
}

/* Returns 0, or -1 with an exception set. */
inline int offer(module_state *of) noexcept
{
    if (cai_python_offer(of->type, &exchange)) return -1;
    if (events) return cai_python_dlpack_offer_ordered(&of->py, *events.load(), of->type, &dlpack::table);
    return cai_python_dlpack_offer(&of->py, of->type, &dlpack::table);
}

/* The dictionary of the interpreter keeps `opened`. Returns 0, or -1 with an exception set. */
inline int keep_opened(PyObject *opened) noexcept
{
    PyObject *const all = PyInterpreterState_GetDict(PyInterpreterState_Get());
    PyObject *const key = PyUnicode_FromFormat("cai_caster:%p", static_cast<void *>(&states));
    if (!all) PyErr_SetString(PyExc_RuntimeError, "cai: the interpreter has no dictionary");
    const int failed = !all || !key || PyDict_SetItem(all, key, opened);
    Py_XDECREF(key);
    return failed ? -1 : 0;
}

/* Fills in a state. On failure returns -1 with an exception set, and the state is free. */
inline int begin(module_state *of) noexcept
{
    of->type = nullptr;
    of->life = PyCapsule_New(of, nullptr, end_state);
    PyObject *const opened = of->life ? PyCapsule_New(of, nullptr, close_state) : nullptr;
    if (!opened) {
        Py_XDECREF(of->life);
        of->interpreter = FREE;
        return -1;
    }
    int failed = cai_python_dlpack_init(&of->py);
    if (!failed) of->type = make_type(of->name.c_str());
    failed = !of->type || offer(of) || keep_opened(opened);
    Py_DECREF(opened); /* the dictionary has it, or all ends */
    return failed ? -1 : 0;
}

/* A state that no interpreter has. */
inline module_state *free_state()
{
    for (module_state *at = states; at; at = at->next) {
        int64_t found = FREE;
        if (at->interpreter.compare_exchange_strong(found, NOT_OPEN)) return at;
    }
    module_state *const made = new module_state;
    made->next = states;
    while (!states.compare_exchange_weak(made->next, made)) continue;
    return made;
}

/* Opens the event pool, once for all interpreters. `cuda` is what cai::event_pool::open takes, or nullptr. */
template <class Cuda> int open_events(Cuda cuda)
{
    cai_error err;
    if constexpr (!std::is_null_pointer_v<Cuda>) {
        if constexpr (std::is_pointer_v<Cuda>) {
            if (!cuda) return 0;
        }
        if (events) return 0;
        cai::event_pool *const opened = new cai::event_pool;
        const cai_status status = opened->open(cuda, 64, 0, &err);
        cai::event_pool *before = nullptr;
        if (!status && events.compare_exchange_strong(before, opened)) return 0;
        delete opened;
        if (!status) return 0; /* another interpreter was first */
        (void)cai_python_raise(&err);
        return -1;
    }
    return 0;
}

/** Opens the module: its event pool and the type `array` of this interpreter, which it returns, borrowed.
 *  `cuda` is a `const cai_cuda *`, or a function that finds CUDA: cai_cuda_linked, or a lambda that calls
 *  cai_cuda_load. Without it the module returns arrays in host memory only. On failure returns nullptr with an
 *  exception set. */
template <class Cuda> PyTypeObject *open(const char *module, Cuda cuda)
{
    if (open_events(cuda)) return nullptr;
    if (module_state *const opened = find_state()) return opened->type;
    module_state *const made = free_state();
    made->name = std::string(module) + ".array";
    if (begin(made)) return nullptr;
    made->interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
    return made->type;
}

} // namespace cai_caster

#endif /* CAI_CASTER_H_INCLUDED */
