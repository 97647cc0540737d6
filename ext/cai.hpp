/* cai.hpp - cai for C++17: owners, exceptions, typed views - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of cai.h) */

#if !(__cplusplus >= 201703L || (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L))
#error "cai.hpp: needs C++17"
#endif

/* A second include of the header below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_STREAM_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                        \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_stream.h"
#endif

#if CAI_STREAM_H_INCLUDED / 100 != 2
#error "cai.hpp: this is version 0.2, which needs cai_stream.h 0.2"
#endif
#if defined(CAI_HPP_INCLUDED) && CAI_HPP_INCLUDED != 200
#error "cai.hpp: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_HPP_INCLUDED
#define CAI_HPP_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    Copy this file, cai.h and cai_stream.h into your project. In one .cpp or .cu file of it, define
    CAI_IMPLEMENTATION first. The rest is as in cai_stream.h: without the CUDA Runtime, define CAI_NO_CUDART.

WHAT IT IS
    Classes over the C functions. This one works on any library's array, on the caller's stream:

        static cai::event_pool pool(cai_cuda_linked); // the CUDA Runtime that this program is linked with

        void scale(float a, cai::array y, cudaStream_t s)
        {
            const auto v = cai::as<cai::view<float, 2>>(y, "y", CAI_ON_DEVICE);
            cai::exchange ex(pool, CAI_STREAM(s), y); // s waits for y's producer
            scale_kernel<<<blocks, threads, 0, s>>>(a, v);
            cai::check_cuda(cudaGetLastError(), "scale_kernel");
            ex.finish(); // the producer waits for s, and y is released in that order
        }

    cai::array         owns a cai_array and releases it. C functions take its address. Never copy it as one.
    cai::exchange      an exchange. Its destructor finishes it, also after an exception.
    cai::event_pool    an event pool with its driver and its list of arrays that wait
    cai::error         the exception. It is a cai_error.
    cai::call(f, ...)  calls a C function of cai and throws its error: cai::call(cai_locate, &y, "y", ...)
    cai::as<View>      a typed view of an array, checked first: cai::view<T, N>, or a std::span, std::mdspan
                       or cuda::std::mdspan of yours. This header includes none of them.
    cai::describe      the array of such a view
    cai::visit         calls a function for the type of the elements, one of a list
    cai::code_of<T>    the dtype of T: bool, integers, floating point, complex types, and those of
                       cuda_fp16.h, cuda_bf16.h and cuda_fp8.h if that came before. CAI_VOID stands for
                       any record of sizeof(T) bytes. For your own types:

        template <> inline constexpr int32_t cai::code_of<mylib::half> = CAI_FLOAT16;

WITHOUT EXCEPTIONS
    The forms whose last parameter is a cai_error throw nothing and return a cai_status. The others throw
    cai::error, and do not compile under -fno-exceptions. For as, use expect_as and unchecked_as. An exception
    must not leave a callback of the C functions, such as a release.

THREADS
    Any number of threads may use one event_pool. One thread at a time may use an array or an exchange.
*/

#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace cai {
/* Another version, or functions with another prefix, are other classes for the linker. */
#if defined(CAI_STATIC)
inline namespace {
#elif defined(CAI_NAMESPACE)
inline namespace CAI_PRIV_RENAMED(v0_1_0) {
#else
inline namespace v0_1_0 {
#endif

/* ------------------------------------------------------------------- >>errors */
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
/** What the functions of this header throw: a cai_error, with its code, entry, index, rule and native number.
 *  It allocates nothing. */
class error : public std::exception, public cai_error {
  public:
    explicit error(const cai_error &why) noexcept : cai_error(why) {}
    const char *what() const noexcept override { return message; }
};

/** Calls a function whose last parameter is a cai_error, with the arguments before it. Throws its error:
 *  cai::call(cai_expect, &y, "y", CAI_FLOAT32, 2, CAI_WRITABLE). */
template <class Function, class... Arguments> void call(Function &&function, Arguments &&...arguments)
{
    cai_error why;
    if (function(std::forward<Arguments>(arguments)..., &why)) throw error(why);
}

/** Throws CAI_ERR_CUDA if `number`, the result of your own CUDA call `what`, is not 0. */
inline void check_cuda(int32_t number, const char *what) { call(cai_cuda_status, number, what); }
#else
template <class Function, class... Arguments> void call(Function &&, Arguments &&...)
{
    static_assert(sizeof(Function) == 0, "without exceptions, use the form that takes a cai_error");
}
#endif

/* -------------------------------------------------------------------- >>array */
/** An array that is released when the object ends, unless it is borrowed. It can be moved, not copied. The
 *  release is immediate. If work on the array may be pending, give the array to an exchange. */
class array : public cai_array {
  public:
    /** Describes nothing yet. Functions refuse it with CAI_ERR_ABI. */
    array() noexcept { std::memset(static_cast<cai_array *>(this), 0, offsetof(cai_array, shape)); }
    /** Takes over what a C function made. `*from` becomes borrowed. */
    explicit array(cai_array *from) noexcept { cai_array_move(this, from); }
    explicit array(array *) = delete; /* say std::move */
    array(array &&from) noexcept { cai_array_move(this, &from); }
    array &operator=(array &&from) noexcept
    {
        if (this == &from) return *this;
        cai_array_release(this);
        cai_array_move(this, &from);
        return *this;
    }
    ~array() { cai_array_release(this); }

    bool owned() const noexcept { return release != nullptr; }

    /** Makes a borrowed array with the same elements. It is valid as long as this one. */
    array borrow() const noexcept
    {
        array made;
        cai_array_borrow(&made, this);
        return made;
    }

    /** Keeps `value` until the array is released, on any thread. Such a value is a std::shared_ptr, a buffer,
     *  or a lambda with captures. As `value` may free at once, an exchange keeps the array until its stream has
     *  passed. If `value` frees after the work of the array's stream, set CAI_ORDERED_FREE. A failure destroys
     *  `value`. Errors: CAI_ERR_ARGUMENT (owned already), CAI_ERR_OUT_OF_MEMORY. */
    template <class Owner> cai_status own(Owner value, cai_error *why)
    {
        static_assert(!std::is_pointer_v<Owner>, "a pointer frees nothing; give a std::unique_ptr");
        if (owned()) return cai_error_set(CAI_ERR_ARGUMENT, "own", "the array is owned already", why);
        Owner *const kept = new (std::nothrow) Owner(std::move(value));
        if (!kept) return cai_error_set(CAI_ERR_OUT_OF_MEMORY, "own", nullptr, why);
        cai_array_own(this, destroy<Owner>, kept);
        return CAI_OK;
    }
    template <class Owner> void own(Owner value)
    {
        call([&](cai_error *why) { return own(std::move(value), why); });
    }

  private:
    template <class Owner> static void destroy(cai_array *self)
    {
        self->release = nullptr;
        delete static_cast<Owner *>(self->owner);
    }
};

/* --------------------------------------------------------------- >>event pool */
/** An event pool, the CUDA that it calls, and `places` for arrays that wait until a stream has passed. It
 *  must stay at its address, and outlive its exchanges and the arrays of cai_stream_export. */
class event_pool {
  public:
    event_pool() noexcept = default;
    event_pool &operator=(event_pool &&) = delete; /* no copies and no moves */
    /** Closes the pool. If that fails, such as after the end of CUDA, arrays that wait are never released. */
    ~event_pool()
    {
        (void)close(nullptr);
        delete[] places_;
    }

    /** Opens the pool on a table, which must outlive the pool. `flags` is 0. With 0 places it has those of
     *  the cai_event_pool. Errors: those of cai_event_pool_init, CAI_ERR_ARGUMENT (it is open),
     *  CAI_ERR_OUT_OF_MEMORY. */
    cai_status open(const cai_cuda *table, int32_t places, uint32_t flags, cai_error *why) noexcept
    {
        if (pool_.cuda) return cai_error_set(CAI_ERR_ARGUMENT, "event_pool", "it is open already", why);
        delete[] places_;
        places_ = places > 0 ? new (std::nothrow) cai_keepalive[static_cast<size_t>(places)] : nullptr;
        if (places > 0 && !places_) return cai_error_set(CAI_ERR_OUT_OF_MEMORY, "event_pool", nullptr, why);
        return cai_event_pool_init(&pool_, table, places_, places, flags, why);
    }

    /** Opens the pool on the CUDA that a function finds: cai_cuda_linked, or a lambda that calls
     *  cai_cuda_load. The driver's library then stays loaded. Errors: also those of that function. */
    cai_status open(cai_status (*find)(cai_cuda_driver *, cai_error *), int32_t places, uint32_t flags,
                    cai_error *why) noexcept
    {
        if (!pool_.cuda) CAI_TRY(find(&driver_, why));
        return open(&driver_.cuda, places, flags, why);
    }

    /** Opens the pool. `table` is the first argument of open, in one of its two forms. */
    template <class Table> explicit event_pool(Table table, int32_t places = 64, uint32_t flags = 0)
    {
        call([&](cai_error *why) { return open(table, places, flags, why); });
    }

    /** Waits for the arrays, releases them and closes the pool, which may be opened again. On failure the
     *  pool stays open. Errors: those of cai_keepalive_drain and cai_event_pool_destroy. */
    cai_status close(cai_error *why) noexcept
    {
        if (!pool_.cuda) return CAI_OK;
        CAI_TRY(cai_keepalive_drain(&pool_, why));
        return cai_event_pool_destroy(&pool_, why);
    }

    /** For the C functions: cai_stream_export(&y, pool, ...). */
    operator cai_event_pool *() noexcept { return &pool_; }
    const cai_cuda *cuda() const noexcept { return pool_.cuda; }

  private:
    cai_event_pool pool_ = {};
    cai_keepalive *places_ = nullptr;
    cai_cuda_driver driver_ = {};
};

/* ----------------------------------------------------------------- >>exchange */
/** An exchange of arrays on a consumer's stream (cai_exchange_begin_with). Each array is released at the end,
 *  or when the stream has passed. To keep an array y, use y.borrow(). Declare the exchange after the arrays.
 *  They must outlive it, without assignment or move. If stream 2 takes part, end it on the same thread. */
class exchange {
  public:
    exchange() noexcept {}
    exchange &operator=(exchange &&) = delete; /* no copies and no moves */
    /** Finishes the exchange. Errors are not reported. To get them, call finish(). */
    ~exchange()
    {
        if (open_ && finish(CAI_OK, nullptr) == CAI_ERR_THREAD) wait();
    }

    /** Begins it. `arrays` has `count` pointers. The pointers and the arrays must outlive the exchange.
     *  `options` may be NULL. Errors: those of cai_exchange_begin_with, CAI_ERR_ARGUMENT (it is open). */
    cai_status begin(cai_event_pool *pool, uint64_t stream, cai_array *const *arrays, int32_t count,
                     const cai_exchange_options *options, cai_error *why) noexcept
    {
        if (open_) return cai_error_set(CAI_ERR_ARGUMENT, "exchange", "it was begun and not finished", why);
        CAI_TRY(cai_exchange_begin_with(&ex_, pool, arrays, count, stream, options, why));
        arrays_ = arrays;
        count_ = count;
        open_ = true;
        return CAI_OK;
    }

    /** Ends it, and releases the arrays (cai_exchange_finish). `status` is that of your work. Unless it is
     *  CAI_OK, it is returned, with `why` as you filled it. If the end or a release fails, the host waits for
     *  the stream, so that no work is pending on arrays that are still yours. After CAI_ERR_THREAD, finish
     *  the exchange on the right thread. Errors: those of cai_exchange_finish. */
    cai_status finish(cai_status status, cai_error *why) noexcept
    {
        if (!open_) return status ? status : cai_error_set(CAI_ERR_ARGUMENT, "exchange", "not begun", why);
        const cai_status ended = cai_exchange_finish(&ex_, CAI_OK, arrays_, count_, status ? nullptr : why);
        open_ = ended == CAI_ERR_THREAD;
        if (ended && !open_) wait();
        return status ? status : ended;
    }

    /** Begins it with the arrays themselves: exchange(pool, CAI_STREAM(s), x, y). 16 at most. */
    template <class... Arrays> exchange(cai_event_pool *events, uint64_t stream, Arrays &...arrays)
    {
        static_assert(sizeof...(arrays) <= MOST, "list more arrays by begin()");
        static_assert((!std::is_const_v<Arrays> && ...), "borrow() the array that is const");
        int32_t count = 0;
        ((listed_[count++] = &arrays), ...);
        call([&](cai_error *why) { return begin(events, stream, listed_, count, nullptr, why); });
    }
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
    /** Ends it after work that succeeded. If the work failed, throw, and the destructor finishes it. */
    void finish() { call([&](cai_error *why) { return finish(CAI_OK, why); }); }
#endif

  private:
    enum { MOST = 16 };
    /* For work that could not be ordered by an event. Streams 1 and 2 may be other streams now. */
    void wait() noexcept
    {
        const cai_cuda *const cuda = ex_.pool->cuda;
        if (ex_.stream > CAI_STREAM_PER_THREAD) {
            if (cuda->stream_synchronize) (void)cuda->stream_synchronize(cuda->self, ex_.stream);
            return;
        }
        if (!cuda->context_push || !cuda->context_pop || !cuda->context_synchronize) return;
        if (cuda->context_push(cuda->self, ex_.context)) return;
        (void)cuda->context_synchronize(cuda->self);
        (void)cuda->context_pop(cuda->self);
    }
    cai_exchange ex_; /* has a value from begin to finish, as has the list */
    cai_array *listed_[MOST];
    cai_array *const *arrays_ = nullptr;
    int32_t count_ = 0;
    bool open_ = false;
};

/* -------------------------------------------------------------------- >>types */
namespace detail {
/* Whether T has what the alias Member names. */
template <template <class> class Member, class T, class = void> inline constexpr bool has = false;
template <template <class> class Member, class T>
inline constexpr bool has<Member, T, std::void_t<Member<T>>> = true;
template <class T> using real_of = std::enable_if_t<
    std::is_floating_point_v<decltype(std::declval<const T &>().real() + std::declval<const T &>().imag())>>;
template <class T> using handle_of = decltype(std::declval<const T &>().data_handle()); /* mdspan, view */
template <class T> using mapping_of = typename T::mapping_type;                         /* mdspan */
template <class T> using strides_of = std::decay_t<decltype(std::declval<T>().strides())>; /* a layout */

template <class T> constexpr int32_t find_code() noexcept
{
    if constexpr (std::is_same_v<T, bool>) return CAI_BOOL;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, char>) /* is char a number? */
        return CAI_CODE(std::is_signed_v<T> ? 'i' : 'u', sizeof(T), 0);
    if constexpr (std::is_floating_point_v<T>) return CAI_CODE('f', sizeof(T), 0);
    if constexpr (has<real_of, T>) return CAI_CODE('c', sizeof(T), 0);
    return CAI_ANY_DTYPE;
}
} // namespace detail

/** The dtype of T, which may be const. It is CAI_ANY_DTYPE for a type that has none. */
template <class T> inline constexpr int32_t code_of = detail::find_code<T>();
template <class T> inline constexpr int32_t code_of<const T> = code_of<T>;
#if defined(__CUDA_FP16_TYPES_EXIST__)
template <> inline constexpr int32_t code_of<__half> = CAI_FLOAT16;
#endif
#if defined(__CUDA_BF16_TYPES_EXIST__)
template <> inline constexpr int32_t code_of<__nv_bfloat16> = CAI_BFLOAT16;
#endif
#if defined(__CUDA_FP8_TYPES_EXIST__)
template <> inline constexpr int32_t code_of<__nv_fp8_e4m3> = CAI_FLOAT8_E4M3FN;
template <> inline constexpr int32_t code_of<__nv_fp8_e5m2> = CAI_FLOAT8_E5M2;
#endif

/* --------------------------------------------------------------- >>typed views */
/** A typed view of N axes, in the form of std::mdspan. It passes by value to a kernel. Unlike std::mdspan it
 *  may have strides that are 0 or negative. */
template <class T, size_t N> struct view {
    using element_type = T;

    T *data;                    /* the first element; nullptr if the array is empty */
    int64_t shape[N ? N : 1];   /* elements */
    int64_t strides[N ? N : 1]; /* elements, as those of std::mdspan */

    CAI_HOST_DEVICE static constexpr size_t rank() noexcept { return N; }
    CAI_HOST_DEVICE constexpr int64_t extent(size_t axis) const noexcept { return shape[axis]; }
    CAI_HOST_DEVICE constexpr int64_t stride(size_t axis) const noexcept { return strides[axis]; }
    CAI_HOST_DEVICE constexpr T *data_handle() const noexcept { return data; }
    /** Returns the element (i, j, ...), unchecked. */
    template <class... Indices> CAI_HOST_DEVICE constexpr T &operator()(Indices... indices) const noexcept
    {
        static_assert(sizeof...(indices) == N, "one index for each axis");
        int64_t offset = 0;
        size_t axis = 0;
        ((offset += static_cast<int64_t>(indices) * strides[axis++]), ...);
        return data[offset];
    }
};

namespace detail {
/* A text of words and numbers. What does not fit is cut off. */
struct message {
    char text[160] = "";
    size_t end = 0;

    void put(const char *word) noexcept
    {
        while (*word && end + 1 < sizeof text) text[end++] = *word++;
    }
    template <class Number> void put(Number number) noexcept
    {
        char digits[24];
        (void)std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(number));
        put(static_cast<const char *>(digits));
    }
};

template <class... Parts>
cai_status refuse(const char *name, size_t axis, cai_error *why, Parts... parts) noexcept
{
    message m;
    (m.put(parts), ...);
    (void)cai_error_set(CAI_ERR_VIEW, name, m.text, why);
    if (why) why->index = static_cast<int32_t>(axis);
    return CAI_ERR_VIEW;
}

inline bool has_steps(const cai_array &a, size_t axis) noexcept { return a.size && a.shape[axis] > 1; }

/* In elements. It is 1 where there is no step. */
inline int64_t stride_of(const cai_array &a, size_t axis) noexcept
{
    return has_steps(a, axis) ? a.strides[axis] / a.dtype.itemsize : 1;
}

/* Checks that each element can be a T& of this machine. */
template <class T>
cai_status expect(const cai_array &a, const char *name, int32_t ndim, uint32_t needs, cai_error *why) noexcept
{
    static_assert(code_of<T> != CAI_ANY_DTYPE, "specialize cai::code_of for this type");
    const int32_t bytes = sizeof(T);
    if (!std::is_const_v<T>) needs |= uint32_t{CAI_WRITABLE | CAI_NO_SELF_OVERLAP};
    CAI_TRY(cai_expect(&a, name, code_of<T>, ndim, needs & ~uint32_t{CAI_ALLOW_UNALIGNED}, why));
    if (a.dtype.itemsize != bytes)
        return refuse(name, 0, why, "an element has ", a.dtype.itemsize, " bytes, that of the view ", bytes);
    if (static_cast<uintptr_t>(a.data) != a.data || a.data % alignof(T))
        return refuse(name, 0, why, "the address is not that of an element of the view");
    for (size_t axis = 0; axis < static_cast<size_t>(a.ndim); ++axis) {
        if (has_steps(a, axis) && a.strides[axis] % bytes)
            return refuse(name, axis, why, "strides[", axis, "] = ", a.strides[axis],
                          " is not a multiple of the ", bytes, " bytes of an element");
    }
    return CAI_OK;
}

template <class View, size_t... Axis> auto map(const cai_array &a, std::index_sequence<Axis...>) noexcept
{
    using index = typename View::index_type;
    using mapping = typename View::mapping_type;
    const typename View::extents_type extents(static_cast<index>(a.shape[Axis])...);
    if constexpr (has<strides_of, mapping>) {
        strides_of<mapping> strides{};
        ((strides[Axis] = static_cast<index>(stride_of(a, Axis))), ...);
        return mapping(extents, strides);
    } else {
        return mapping(extents);
    }
}

/* The static extents, an index type that counts all elements, and strides that the layout has. In
 * layout_stride, one of two axes steps over all of the other. */
template <class View> cai_status fit(const cai_array &a, const char *name, cai_error *why) noexcept
{
    const int64_t reach = (a.hi - a.lo) / a.dtype.itemsize;
    for (size_t axis = 0; axis != View::rank(); ++axis) {
        const int64_t shape = a.shape[axis], wanted = static_cast<int64_t>(View::static_extent(axis));
        const int64_t largest = reach > shape ? reach : shape;
        if (wanted != -1 && wanted != shape) /* -1: std::dynamic_extent */
            return refuse(name, axis, why, "shape[", axis, "] = ", shape, ", and the view has ", wanted);
        if (static_cast<int64_t>(static_cast<typename View::index_type>(largest)) != largest)
            return refuse(name, axis, why, "the index type of the view cannot count to ", largest);
        if (stride_of(a, axis) <= 0)
            return refuse(name, axis, why, "axis ", axis, " steps by ", stride_of(a, axis), ", below 1");
    }
    const auto layout = map<View>(a, std::make_index_sequence<View::rank()>());
    for (size_t axis = 0; axis != View::rank(); ++axis) {
        const int64_t step = stride_of(a, axis), wanted = static_cast<int64_t>(layout.stride(axis));
        if (has_steps(a, axis) && step != wanted)
            return refuse(name, axis, why, "axis ", axis, " steps by ", step, ", the view's by ", wanted);
        for (size_t inner = 0; inner != View::rank(); ++inner) {
            if (has_steps(a, axis) && has_steps(a, inner) && inner != axis && stride_of(a, inner) <= step &&
                step / stride_of(a, inner) < a.shape[inner])
                return refuse(name, axis, why, "axes ", axis, " and ", inner, " interleave; no layout does");
        }
    }
    return CAI_OK;
}
} // namespace detail

/** Checks that `a` can be a View: cai::view<T, N>, or a type like std::span or std::mdspan. `name` is that of
 *  `a` in messages. `requirements` are those of cai_expect. It adds: the dtype of T, the number of axes, and,
 *  unless T is const, CAI_WRITABLE and CAI_NO_SELF_OVERLAP. A std::span also needs C order, and has the
 *  elements of all axes. A std::mdspan needs what its layout, static extents and index type demand.
 *  Errors: those of cai_expect, CAI_ERR_VIEW (the message says what does not fit; index is the axis). */
template <class View>
cai_status expect_as(const cai_array &a, const char *name, uint32_t requirements, cai_error *why) noexcept
{
    using T = typename View::element_type;
    if constexpr (detail::has<detail::handle_of, View>) {
        if (detail::has<detail::mapping_of, View>) requirements |= CAI_NO_SELF_OVERLAP;
        CAI_TRY(detail::expect<T>(a, name, static_cast<int32_t>(View::rank()), requirements, why));
    } else {
        CAI_TRY(detail::expect<T>(a, name, CAI_ANY_NDIM, requirements | CAI_C_CONTIGUOUS, why));
        if (View::extent != static_cast<size_t>(-1) && View::extent != static_cast<size_t>(a.size))
            return detail::refuse(name, 0, why, "it has ", a.size, " elements, and the view ", View::extent);
    }
    if constexpr (detail::has<detail::mapping_of, View>) CAI_TRY(detail::fit<View>(a, name, why));
    return CAI_OK;
}

/** Makes the View, after expect_as of the same View returned CAI_OK. It is valid as long as the array. */
template <class View> View unchecked_as(const cai_array &a) noexcept
{
    auto *const data = reinterpret_cast<typename View::element_type *>(static_cast<uintptr_t>(a.data));
    if constexpr (detail::has<detail::mapping_of, View>) {
        return View(data, detail::map<View>(a, std::make_index_sequence<View::rank()>()));
    } else if constexpr (detail::has<detail::handle_of, View>) {
        View made{data, {}, {}};
        for (size_t axis = 0; axis != View::rank(); ++axis) made.shape[axis] = a.shape[axis];
        for (size_t axis = 0; axis != View::rank(); ++axis) made.strides[axis] = detail::stride_of(a, axis);
        return made;
    } else {
        return View(data, static_cast<size_t>(a.size));
    }
}

/** Describes the elements of such a view in `*out`, as cai_array_init does: borrowed, and read-only if they
 *  are const. `*out` is overwritten. The elements are no records.
 *  Errors: those of cai_array_init. */
template <class View> cai_status describe(const View &view, cai_array *out, cai_error *why) noexcept
{
    using T = typename View::element_type;
    using plain = std::remove_const_t<T>;
    static_assert(code_of<T> != CAI_ANY_DTYPE, "specialize cai::code_of for this type");
    if constexpr (detail::has<detail::handle_of, View>) {
        int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM];
        for (size_t axis = 0; axis != View::rank(); ++axis) {
            shape[axis] = static_cast<int64_t>(view.extent(axis));
            strides[axis] = static_cast<int64_t>(view.stride(axis)) * static_cast<int64_t>(sizeof(T));
        }
        CAI_TRY(cai_array_init(out, code_of<T>, static_cast<int32_t>(View::rank()), shape, strides,
                               const_cast<plain *>(view.data_handle()), why));
    } else {
        const int64_t size = static_cast<int64_t>(view.size());
        CAI_TRY(cai_array_init(out, code_of<T>, 1, &size, nullptr, const_cast<plain *>(view.data()), why));
    }
    cai_array_set_read_only(out, std::is_const_v<T>);
    return CAI_OK;
}

/* -------------------------------------------------------------------- >>visit */
/** The argument of a function for visit, which may say: using T = typename decltype(tag)::type; */
template <class T> struct tag { using type = T; };
/** A list of types. */
template <class... Ts> struct types {};
using integers = types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using floats = types<float, double>;

namespace detail {
/* "expected float32 or float64; got <i4" */
template <class... Ts>
cai_status expect_one_of(types<Ts...>, const cai_array &a, const char *name, cai_error *why) noexcept
{
    static_assert(((code_of<Ts> != CAI_ANY_DTYPE) && ...), "specialize cai::code_of for these types");
    CAI_TRY(cai_array_check(&a, why));
    if (((a.dtype.code == code_of<Ts>) || ...)) return CAI_OK;
    message m;
    char got[CAI_TYPESTR_SIZE] = "";
    (void)cai_dtype_typestr(&a.dtype, got, sizeof got);
    ((m.put(m.end ? " or " : "expected "), m.put(cai_dtype_name(code_of<Ts>))), ...);
    m.put("; got ");
    m.put(a.dtype.code & CAI_SWAPPED(0) ? got : cai_dtype_name(a.dtype.code));
    return cai_error_set(CAI_ERR_EXPECT, name, m.text, why);
}

template <class Function, class T, class... Rest>
auto choose(types<T, Rest...>, int32_t code, Function &function) -> decltype(function(tag<T>()))
{
    if constexpr (sizeof...(Rest) > 0) {
        using other = decltype(choose(types<Rest...>(), code, function));
        static_assert(std::is_same_v<other, decltype(function(tag<T>()))>, "one result for all types");
        if (code != code_of<T>) return choose(types<Rest...>(), code, function);
    }
    return function(tag<T>());
}
} // namespace detail

/** Calls function(tag<T>()) for the type of the list that the elements of `a` have, and returns its status:
 *  visit(cai::floats(), x, "x", function, err). Errors: those of the function, CAI_ERR_EXPECT
 *  (the dtype is none of the list), CAI_ERR_ABI. */
template <class... Ts, class Function>
cai_status visit(types<Ts...> list, const cai_array &a, const char *name, Function &&function, cai_error *why)
{
    CAI_TRY(detail::expect_one_of(list, a, name, why));
    return detail::choose(list, a.dtype.code, function);
}

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
/** Returns the View of `a` after expect_as: cai::as<std::span<const float>>(x, "x"). Throws its errors. */
template <class View> View as(const cai_array &a, const char *name, uint32_t requirements = 0)
{
    call(expect_as<View>, a, name, requirements);
    return unchecked_as<View>(a);
}

template <class View> array describe(const View &view)
{
    array made;
    call([&](cai_error *why) { return describe(view, &made, why); });
    return made;
}

/** Returns what the function returns, which is of one type for all. */
template <class... Ts, class Function>
auto visit(types<Ts...> list, const cai_array &a, const char *name, Function &&function)
{
    call(detail::expect_one_of<Ts...>, list, a, name);
    return detail::choose(list, a.dtype.code, function);
}
#endif
} // inline namespace
} // namespace cai

#endif /* CAI_HPP_INCLUDED */
