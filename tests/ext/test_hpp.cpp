// test_hpp.cpp - cai.hpp on the simulation: owners, exchanges, typed views, visit.
// SPDX-License-Identifier: MIT
// C++17 and later. CAI_TEST_MDSPAN: with an mdspan, that of CCCL or of the standard library.
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.hpp"
#include "sim/cai_sim.h"
#include "cai_test.h"

#include <complex>
#include <memory>
#if __cplusplus >= 202002L
#include <span>
#endif
#if defined(CAI_TEST_MDSPAN) && defined(__cpp_lib_mdspan)
#include <mdspan>
namespace md = std;
#elif defined(CAI_TEST_MDSPAN)
#include <cuda/std/mdspan>
namespace md = cuda::std;
#endif

#if defined(__cpp_exceptions)
#define EXCEPTIONS 1
#else
#define EXCEPTIONS 0
#endif

namespace {

/* A simulation with one device, a producer's and a consumer's stream and 4096 bytes of memory. */
struct world {
    cai_sim *sim = cai_sim_create(1);
    cai_cuda cuda = *cai_sim_cuda(sim); /* a test may take slots out */
    uint64_t producer = cai_sim_stream_create(sim, 1), consumer = cai_sim_stream_create(sim, 1);
    uint64_t memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4096);
    cai_error err = {};

    ~world()
    {
        char text[400];
        cai_sim_run(sim);
        CHECK_INT(cai_sim_stream_destroy(sim, producer), 0);
        CHECK_INT(cai_sim_stream_destroy(sim, consumer), 0);
        CHECK_INT(cai_sim_free(sim, memory), 0);
        cai_sim_leaks(sim, text, sizeof text);
        CHECK_STR(text, "");
        cai_sim_destroy(sim);
    }

    /* Device memory, pending on the producer's stream. */
    void fill(cai_array *out, int32_t code, int32_t ndim, const int64_t *shape, const int64_t *strides)
    {
        CHECK_INT(cai_array_init(out, code, ndim, shape, strides, cai_sim_bytes(sim, memory), &err), CAI_OK);
        out->sync = CAI_SYNC_STREAM;
        out->stream = producer;
        CHECK_INT(cai_locate(out, "x", &cuda, 0, nullptr, &err), CAI_OK);
    }
};

struct counter { /* counts its living copies */
    int *count;
    explicit counter(int *counted) : count(counted) { ++*count; }
    counter(counter &&from) noexcept : count(from.count) { ++*count; }
    counter &operator=(counter &&) = delete;
    ~counter() { --*count; }
};

/* ----------------------------------------------------------------------- owners */

void test_array()
{
    const int64_t shape[2] = {2, 3};
    float data[6] = {};
    int living = 0;
    cai_error err = {};
    cai::array nothing;
    CHECK(!nothing.owned());
    CHECK_INT(cai_array_check(&nothing, &err), CAI_ERR_ABI);
    {
        cai::array x;
        CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 2, shape, nullptr, data, &err), CAI_OK);
        CHECK_INT(x.own(counter(&living), &err), CAI_OK);
        CHECK_INT(living, 1);
        CHECK(x.owned());
        CHECK_INT(x.own(counter(&living), &err), CAI_ERR_ARGUMENT);
        CHECK_INT(living, 1);

        cai::array borrowed = x.borrow();
        CHECK(!borrowed.owned());
        CHECK_INT(borrowed.shape[1], 3);

        cai::array moved(std::move(x));
        CHECK(moved.owned());
        CHECK(!x.owned());
        x = std::move(moved);
        CHECK(x.owned());
        CHECK_INT(living, 1);
        cai::array &same = x;
        x = std::move(same);
        CHECK_INT(living, 1);

        cai_array c;
        cai_array_move(&c, &x);
        cai::array taken(&c);
        CHECK(taken.owned());
        CHECK(!c.release);
        CHECK_INT(living, 1);
        taken = cai::array();
        CHECK_INT(living, 0);
        CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 2, shape, nullptr, data, &err), CAI_OK);
        CHECK_INT(x.own(counter(&living), &err), CAI_OK);
        x.release(&x); /* as a consumer in another library may do */
        CHECK(!x.owned());
        CHECK_INT(living, 0);
        CHECK_INT(x.own(counter(&living), &err), CAI_OK);
        CHECK_INT(living, 1);
    }
    CHECK_INT(living, 0);
}

void test_pool()
{
    world w;
    cai::event_pool pool;
    CHECK(!pool.cuda());
    CHECK_INT(pool.close(&w.err), CAI_OK);
    CHECK_INT(pool.open(&w.cuda, -1, 0, &w.err), CAI_ERR_ARGUMENT);
    CHECK_INT(pool.open(&w.cuda, 4, 99, &w.err), CAI_ERR_ARGUMENT);
    CHECK(!pool.cuda());
    for (int32_t places : {0, 4}) {
        CHECK_INT(pool.open(&w.cuda, places, 0, &w.err), CAI_OK);
        CHECK(pool.cuda() == &w.cuda);
        CHECK_INT(pool.open(&w.cuda, 4, 0, &w.err), CAI_ERR_ARGUMENT);
        CHECK_INT(pool.close(&w.err), CAI_OK);
        CHECK(!pool.cuda());
    }

    const auto lost = [](cai_cuda_driver *, cai_error *why) -> cai_status {
        return cai_error_set(CAI_ERR_UNAVAILABLE, "lost", "there is no CUDA", why);
    };
    CHECK_INT(pool.open(lost, 0, 0, &w.err), CAI_ERR_UNAVAILABLE);
    CHECK_STR(w.err.message, "lost: there is no CUDA");
    static const cai_cuda *table;
    table = &w.cuda;
    const auto found = [](cai_cuda_driver *driver, cai_error *) -> cai_status {
        driver->cuda = *table;
        return CAI_OK;
    };
    CHECK_INT(pool.open(found, 0, 0, &w.err), CAI_OK);
    CHECK_INT(pool.open(lost, 0, 0, &w.err), CAI_ERR_ARGUMENT); /* it is open: nothing is looked for */
    CHECK(pool.cuda() != nullptr);
}

/* -------------------------------------------------------------------- exchanges */

/* An owned array that is offered, a pool and an exchange that is not begun. */
struct meeting : world {
    cai::event_pool pool;
    cai::array x;
    cai_array *const list[1] = {&x};
    cai::exchange ex;

    explicit meeting(int *living)
    {
        CHECK_INT(pool.open(&cuda, 4, 0, &err), CAI_OK);
        offer();
        CHECK_INT(x.own(counter(living), &err), CAI_OK);
    }

    void offer()
    {
        const int64_t shape[1] = {16};
        fill(&x, CAI_FLOAT32, 1, shape, nullptr);
    }
};

/* How often each side waited for the other, and that the array came back. */
void test_exchange()
{
    int living = 0;
    {
        meeting w(&living);
        CHECK_INT(w.ex.finish(CAI_OK, &w.err), CAI_ERR_ARGUMENT);
        CHECK_INT(w.ex.finish(CAI_ERR_CUDA, &w.err), CAI_ERR_CUDA);
        CHECK_INT(w.ex.begin(w.pool, 0, w.list, 1, nullptr, &w.err), CAI_ERR_STREAM);
        CHECK_INT(w.ex.begin(w.pool, w.consumer, w.list, 1, nullptr, &w.err), CAI_OK);
        CHECK_INT(w.ex.begin(w.pool, w.consumer, w.list, 1, nullptr, &w.err), CAI_ERR_ARGUMENT);
        CHECK_INT(cai_sim_calls_of(w.sim, "stream_wait_event"), 1);
        CHECK_INT(w.ex.finish(CAI_OK, &w.err), CAI_OK);
        CHECK_INT(cai_sim_calls_of(w.sim, "stream_wait_event"), 2);
        CHECK(!w.x.owned());
        CHECK_INT(living, 1); /* its owner frees at once, so it stays until the consumer's stream has passed */
        CHECK_INT(cai_keepalive_drain(w.pool, &w.err), CAI_OK);
        CHECK_INT(living, 0);
        CHECK_INT(w.ex.finish(CAI_OK, &w.err), CAI_ERR_ARGUMENT);

        {
            w.offer(); /* again, ended by the destructor */
            CHECK_INT(w.x.own(counter(&living), &w.err), CAI_OK);
            cai::exchange left;
            CHECK_INT(left.begin(w.pool, w.consumer, w.list, 1, nullptr, &w.err), CAI_OK);
        }
        CHECK_INT(cai_sim_calls_of(w.sim, "stream_wait_event"), 4);
        CHECK_INT(cai_keepalive_drain(w.pool, &w.err), CAI_OK);
        CHECK_INT(living, 0);

        w.offer(); /* the owner promises that its free comes behind the stream: nothing is kept */
        CHECK_INT(w.x.own(counter(&living), &w.err), CAI_OK);
        w.x.flags |= CAI_ORDERED_FREE;
        CHECK_INT(w.ex.begin(w.pool, w.consumer, w.list, 1, nullptr, &w.err), CAI_OK);
        CHECK_INT(w.ex.finish(CAI_OK, &w.err), CAI_OK);
        CHECK_INT(living, 0);
        CHECK_INT(cai_sim_calls_of(w.sim, "stream_wait_event"), 6);

        w.offer(); /* the status and the error of the work come first */
        CHECK_INT(w.ex.begin(w.pool, w.consumer, w.list, 1, nullptr, &w.err), CAI_OK);
        CHECK_INT(w.ex.finish(cai_cuda_status(719, "kernel", &w.err), &w.err), CAI_ERR_CUDA);
        CHECK_INT(w.err.native, 719);
        CHECK_INT(cai_sim_calls_of(w.sim, "stream_wait_event"), 8);
        w.offer(); /* also if the end fails, too */
        CHECK_INT(w.ex.begin(w.pool, w.consumer, w.list, 1, nullptr, &w.err), CAI_OK);
        cai_sim_fail_op(w.sim, "event_record", 1, CAI_SIM_ERROR_OUT_OF_MEMORY);
        CHECK_INT(w.ex.finish(cai_cuda_status(719, "kernel", &w.err), &w.err), CAI_ERR_CUDA);
        CHECK_INT(w.err.native, 719);
    }
}

/* If the end fails, the host waits for the consumer: on its stream, or in its context for stream 1. */
void test_end_fails()
{
    for (int legacy = 0; legacy < 2; ++legacy) {
        int living = 0;
        {
            meeting w(&living);
            const uint64_t stream = legacy ? uint64_t{CAI_STREAM_LEGACY} : w.consumer;
            CHECK_INT(w.ex.begin(w.pool, stream, w.list, 1, nullptr, &w.err), CAI_OK);
            cai_sim_fail_op(w.sim, "event_record", 1, CAI_SIM_ERROR_OUT_OF_MEMORY);
            CHECK(w.ex.finish(CAI_OK, &w.err) != CAI_OK);
            CHECK_INT(cai_sim_calls_of(w.sim, legacy ? "context_synchronize" : "stream_synchronize"), 1);
            CHECK_INT(w.ex.finish(CAI_OK, &w.err), CAI_ERR_ARGUMENT); /* it is not open any more */
        }
        CHECK_INT(living, 0);
    }
}

/* Stream 2 on another thread: the exchange stays open, until its own thread ends it. */
void test_thread()
{
    int living = 0;
    {
        meeting w(&living);
        CHECK_INT(w.ex.begin(w.pool, CAI_STREAM_PER_THREAD, w.list, 1, nullptr, &w.err), CAI_OK);
        cai_sim_host_thread(w.sim, 1);
        CHECK_INT(cai_sim_set_context(w.sim, cai_sim_primary(w.sim, 0)), 0);
        CHECK_INT(w.ex.finish(CAI_OK, &w.err), CAI_ERR_THREAD);
        CHECK_INT(living, 1);
        cai_sim_host_thread(w.sim, 0);
        CHECK_INT(w.ex.finish(CAI_OK, &w.err), CAI_OK);
    }
    CHECK_INT(living, 0);
}

#if EXCEPTIONS
/* What `function` throws; its code is 0 if it throws nothing. */
template <class Function> cai_error caught(Function &&function)
{
    cai_error got = {};
    try {
        function();
    } catch (const cai::error &e) {
        CHECK_STR(e.what(), e.message);
        got = e;
    }
    return got;
}

void test_exceptions()
{
    const int64_t shape[1] = {16};
    world w;
    int living = 0;
    {
        cai::event_pool pool(&w.cuda);
        cai::array x, y;
        CHECK_INT(caught([&] { pool.open(&w.cuda, 0, 0, nullptr); }).code, 0);
        CHECK_INT(caught([&] { cai::event_pool bad(&w.cuda, 0, 99); }).code, CAI_ERR_ARGUMENT);
        for (int fails = 0; fails < 2; ++fails) {
            const int32_t waits = cai_sim_calls_of(w.sim, "stream_wait_event");
            w.fill(&x, CAI_FLOAT32, 1, shape, nullptr);
            w.fill(&y, CAI_FLOAT32, 1, shape, nullptr);
            x.own(counter(&living));
            y.own(counter(&living));
            CHECK_INT(caught([&] { x.own(counter(&living)); }).code, CAI_ERR_ARGUMENT);
            const cai_error got = caught([&] {
                cai::exchange ex(pool, w.consumer, x, y);
                CHECK_INT(living, 2);
                cai::check_cuda(fails ? 719 : 0, "kernel");
                ex.finish();
            });
            CHECK_INT(living, 2); /* until the stream has passed */
            CHECK_INT(cai_keepalive_drain(pool, &w.err), CAI_OK);
            CHECK_INT(got.code, fails ? CAI_ERR_CUDA : CAI_OK);
            CHECK_INT(got.native, fails ? 719 : 0);
            CHECK_INT(living, 0);
            CHECK_INT(cai_sim_calls_of(w.sim, "stream_wait_event") - waits, 2);
        }
        CHECK_INT(caught([&] { cai::exchange ex(pool, 0, x); }).code, CAI_ERR_STREAM);
        const cai_error wrong = caught([&] { cai::call(cai_expect, &x, "x", CAI_FLOAT64, 1, 0u); });
        CHECK_INT(wrong.code, CAI_ERR_EXPECT);
        CHECK_STR(wrong.message, "x: expected float64, 1-D; got float32, 1-D");
        CHECK_INT(caught([&] { (void)cai::as<cai::view<int32_t, 1>>(x, "x"); }).code, CAI_ERR_EXPECT);
        CHECK_INT((cai::as<cai::view<float, 1>>(x, "x", CAI_ON_DEVICE).shape[0]), 16);
        const auto bytes = [](auto tag) { return sizeof(typename decltype(tag)::type); };
        CHECK_UINT(cai::visit(cai::floats(), x, "x", bytes), 4);
        CHECK_INT(caught([&] { (void)cai::visit(cai::integers(), x, "x", bytes); }).code, CAI_ERR_EXPECT);
        const cai::array same = cai::describe(cai::as<cai::view<float, 1>>(x, "x"));
        CHECK_UINT(same.data, x.data);
        const cai::view<float, 1> bad{nullptr, {16}, {1}};
        CHECK(caught([&] { (void)cai::describe(bad); }).code != CAI_OK);
    }
}
#endif

/* ------------------------------------------------------------------------ types */

struct pixel {
    uint8_t rgba[4];
};
struct word {
    int32_t value;
};
enum class float16 : uint16_t {};

} // namespace
template <> inline constexpr int32_t cai::code_of<float16> = CAI_FLOAT16;
template <> inline constexpr int32_t cai::code_of<pixel> = CAI_VOID;
template <> inline constexpr int32_t cai::code_of<word> = CAI_VOID;
namespace {

void test_codes()
{
    CHECK_INT(cai::code_of<bool>, CAI_BOOL);
    CHECK_INT(cai::code_of<int8_t>, CAI_INT8);
    CHECK_INT(cai::code_of<const uint16_t>, CAI_UINT16);
    CHECK_INT(cai::code_of<long long>, CAI_INT64);
    CHECK_INT(cai::code_of<unsigned long>, sizeof(long) == 8 ? CAI_UINT64 : CAI_UINT32);
    CHECK_INT(cai::code_of<float>, CAI_FLOAT32);
    CHECK_INT(cai::code_of<double>, CAI_FLOAT64);
    CHECK_INT(cai::code_of<std::complex<float>>, CAI_COMPLEX64);
    CHECK_INT(cai::code_of<std::complex<double>>, CAI_COMPLEX128);
    CHECK_INT(cai::code_of<std::complex<int>>, CAI_ANY_DTYPE);
    CHECK_INT(cai::code_of<char>, CAI_ANY_DTYPE);
    CHECK_INT(cai::code_of<void *>, CAI_ANY_DTYPE);
    CHECK_INT(cai::code_of<const float16>, CAI_FLOAT16);
}

/* ------------------------------------------------------------------------ views */

/* The message of a view that is refused, or "". */
template <class View> const char *refusal(const cai_array &a, int32_t index = 0, uint32_t requirements = 0)
{
    static cai_error err;
    std::memset(&err, 0, sizeof err);
    const cai_status status = cai::expect_as<View>(a, "a", requirements, &err);
    if (status == CAI_ERR_VIEW) CHECK_INT(err.index, index);
    CHECK(cai::expect_as<View>(a, "a", requirements, nullptr) == status);
    return status ? err.message : "";
}

struct matrix { /* an array in memory of the host */
    float data[64];
    cai::array a;
    matrix(int32_t ndim, const int64_t *shape, const int64_t *strides, int32_t first = 0)
    {
        for (int n = 0; n < 64; ++n) data[n] = static_cast<float>(n);
        CHECK_INT(cai_array_init(&a, CAI_FLOAT32, ndim, shape, strides, data + first, nullptr), CAI_OK);
    }
};

void test_views()
{
    const int64_t shape[2] = {3, 2}, turned[2] = {4, 12}, back[2] = {-8, -4};
    const int64_t repeat[2] = {0, 4}, odd[2] = {10, 4};
    matrix m(2, shape, turned);
    CHECK_STR((refusal<cai::view<float, 2>>(m.a)), "");
    const auto v = cai::unchecked_as<cai::view<float, 2>>(m.a);
    CHECK(v(2, 1) == 5.0f && v.extent(0) == 3 && v.stride(1) == 3 && v.rank() == 2);
    v(1, 1) = 40.0f;
    CHECK(m.data[4] == 40.0f);
    matrix reversed(2, shape, back, 5);
    CHECK_STR((refusal<cai::view<float, 2>>(reversed.a)), "");
    CHECK((cai::unchecked_as<cai::view<const float, 2>>(reversed.a)(2, 1) == 0.0f));

    CHECK_STR((refusal<cai::view<float, 1>>(m.a)),
              "a: expected float32, 1-D, writable, no self-overlap; got float32, 2-D");
    CHECK_STR((refusal<cai::view<int32_t, 2>>(m.a)),
              "a: expected int32, 2-D, writable, no self-overlap; got float32, 2-D");
    CHECK_STR((refusal<cai::view<const float, 2>>(m.a, 0, CAI_C_CONTIGUOUS)),
              "a: expected float32, 2-D, C-contiguous; got float32, 2-D, strides (4, 12)");
    matrix repeated(2, shape, repeat);
    CHECK_STR((refusal<cai::view<const float, 2>>(repeated.a)), "");
    CHECK((*refusal<cai::view<float, 2>>(repeated.a)));
    matrix uneven(2, shape, odd);
    CHECK_STR((refusal<cai::view<const float, 2>>(uneven.a, 0)),
              "a: expected float32, 2-D, aligned; got float32, 2-D, not aligned to 4 bytes");
    matrix narrow(2, shape, nullptr);
    narrow.a.flags &= ~uint32_t{CAI_WRITABLE};
    CHECK_STR((refusal<cai::view<const float, 2>>(narrow.a)), "");
    CHECK((*refusal<cai::view<float, 2>>(narrow.a)));

    const int64_t none = 0, one = 1;
    matrix empty(1, &none, nullptr), scalar(0, &one, nullptr);
    CHECK_STR((refusal<cai::view<float, 1>>(empty.a)), "");
    CHECK((cai::unchecked_as<cai::view<float, 1>>(empty.a).data == nullptr));
    CHECK_STR((refusal<cai::view<float, 0>>(scalar.a)), "");
    CHECK((cai::unchecked_as<cai::view<float, 0>>(scalar.a)() == 0.0f));
}

/* A record says nothing of alignment: size, address and strides must be those of the type of the view. */
void test_records()
{
    alignas(8) uint8_t bytes[64] = {};
    const int64_t shape[1] = {4}, strides[1] = {6};
    cai_dtype dtype;
    cai::array a;
    const auto describe = [&](const char *typestr, int first, const int64_t *steps) {
        CHECK_INT(cai_dtype_parse(typestr, 3, 0, &dtype, nullptr), CAI_OK);
        const uint64_t address = reinterpret_cast<uintptr_t>(bytes + first);
        CHECK_INT(cai_array_init_dtype(&a, &dtype, 1, shape, steps, address, nullptr), CAI_OK);
    };
    describe("|V4", 0, nullptr);
    CHECK_STR((refusal<cai::view<pixel, 1>>(a)), "");
    CHECK_STR((refusal<cai::view<word, 1>>(a)), "");
    describe("|V4", 0, strides);
    CHECK_STR((refusal<cai::view<pixel, 1>>(a)),
              "a: strides[0] = 6 is not a multiple of the 4 bytes of an element");
    describe("|V3", 0, nullptr);
    CHECK_STR((refusal<cai::view<pixel, 1>>(a)), "a: an element has 3 bytes, that of the view 4");
    describe("|V4", 1, nullptr);
    CHECK_STR((refusal<cai::view<pixel, 1>>(a)), "");
    CHECK_STR((refusal<cai::view<word, 1>>(a)), "a: the address is not that of an element of the view");
}

/* A span of C++17: what the standard says of one, as far as cai.hpp asks. */
template <class T, size_t Extent = static_cast<size_t>(-1)> struct mini_span {
    using element_type = T;
    static constexpr size_t extent = Extent;
    T *first;
    size_t length;
    mini_span(T *data, size_t size) : first(data), length(size) {}
    T *data() const { return first; }
    size_t size() const { return length; }
};

template <template <class, size_t> class Span> void test_spans(size_t any)
{
    const int64_t shape[2] = {3, 2}, turned[2] = {4, 12};
    matrix m(2, shape, nullptr), t(2, shape, turned);
    CHECK_UINT(any, static_cast<size_t>(-1));
    CHECK_STR((refusal<Span<float, size_t(-1)>>(m.a)), "");
    const auto s = cai::unchecked_as<Span<const float, size_t(-1)>>(m.a);
    CHECK(s.data() == m.data && s.size() == 6);
    CHECK_STR((refusal<Span<float, size_t(-1)>>(t.a)), "a: expected float32, C-contiguous, writable, "
                                                       "no self-overlap; got float32, 2-D, strides (4, 12)");
    CHECK_STR((refusal<Span<float, 6>>(m.a)), "");
    CHECK_STR((refusal<Span<float, 5>>(m.a)), "a: it has 6 elements, and the view 5");
    cai::array a;
    CHECK_INT(cai::describe(s, &a, nullptr), CAI_OK);
    CHECK_INT(a.ndim, 1);
    CHECK_INT(a.shape[0], 6);
    CHECK(!(a.flags & CAI_WRITABLE));
    CHECK_INT(cai::describe(cai::unchecked_as<Span<float, 6>>(m.a), &a, nullptr), CAI_OK);
    CHECK(a.flags & CAI_WRITABLE);
}

void test_describe()
{
    const int64_t shape[2] = {3, 2}, back[2] = {-8, -4};
    matrix m(2, shape, back, 5);
    cai::array a;
    CHECK_INT(cai::describe(cai::unchecked_as<cai::view<float, 2>>(m.a), &a, nullptr), CAI_OK);
    CHECK_UINT(a.data, m.a.data);
    CHECK_INT(a.strides[0], -8);
    CHECK_INT(a.strides[1], -4);
    CHECK(a.flags & CAI_WRITABLE);
    CHECK_INT(cai::describe(cai::unchecked_as<cai::view<const float, 2>>(m.a), &a, nullptr), CAI_OK);
    CHECK(!(a.flags & CAI_WRITABLE));
    const cai::view<float, 2> outside{m.data, {INT64_MAX, 2}, {2, 1}};
    CHECK(cai::describe(outside, &a, nullptr) != CAI_OK);
}

#if defined(CAI_TEST_MDSPAN)
template <class T, class Extents, class Layout = md::layout_stride>
using mdspan = md::mdspan<T, Extents, Layout>;

void test_mdspan()
{
    using dynamic = md::dextents<int64_t, 2>;
    const int64_t shape[2] = {3, 2}, turned[2] = {4, 12}, back[2] = {-8, 4}, repeat[2] = {0, 4};
    matrix c(2, shape, nullptr), f(2, shape, turned);
    const auto v = cai::unchecked_as<mdspan<float, dynamic>>(f.a);
    CHECK(v.data_handle() == f.data && v.extent(0) == 3 && v.extent(1) == 2);
    CHECK(v.stride(0) == 1 && v.stride(1) == 3);
    CHECK((v.data_handle()[v.mapping()(2, 1)] == 5.0f));
    CHECK_STR((refusal<mdspan<float, dynamic>>(c.a)), "");
    CHECK_STR((refusal<mdspan<float, dynamic, md::layout_right>>(c.a)), "");
    CHECK_STR((refusal<mdspan<float, dynamic, md::layout_left>>(f.a)), "");
    CHECK_STR((refusal<mdspan<float, dynamic, md::layout_right>>(f.a)),
              "a: axis 0 steps by 1, the view's by 2");
    CHECK_STR((refusal<mdspan<float, md::extents<int32_t, 3, md::dynamic_extent>>>(c.a)), "");
    CHECK_STR((refusal<mdspan<float, md::extents<int32_t, 3, 4>>>(c.a, 1)),
              "a: shape[1] = 2, and the view has 4");

    matrix reversed(2, shape, back, 8), repeated(2, shape, repeat);
    CHECK_STR((refusal<mdspan<float, dynamic>>(reversed.a)), "a: axis 0 steps by -2, below 1");
    CHECK_STR((refusal<mdspan<const float, dynamic>>(repeated.a)),
              "a: expected float32, 2-D, no self-overlap; "
              "got float32, 2-D, strides (0, 4), overlapping itself");
    const int64_t between[2] = {8, 12}, wide[2] = {3, 20}, tall[1] = {200};
    matrix woven(2, shape, between);
    CHECK_STR((refusal<mdspan<float, dynamic>>(woven.a, 1)), "a: axes 1 and 0 interleave; no layout does");
    matrix good(2, wide, nullptr);
    CHECK_STR((refusal<mdspan<float, md::dextents<int8_t, 2>>>(good.a)), "");
    static float many[200];
    cai::array a;
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 1, tall, nullptr, many, nullptr), CAI_OK);
    CHECK_STR((refusal<mdspan<float, md::dextents<int8_t, 1>>>(a)),
              "a: the index type of the view cannot count to 200");
    const int64_t two = 2, far = 4 * 199;
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 1, &two, &far, many, nullptr), CAI_OK);
    CHECK_STR((refusal<mdspan<float, md::dextents<int8_t, 1>>>(a)),
              "a: the index type of the view cannot count to 200");
    const int64_t thin[2] = {0, 200}, line[2] = {1, 3}, any[2] = {4000, 4};
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 2, thin, nullptr, many, nullptr), CAI_OK);
    CHECK_STR((refusal<mdspan<float, md::dextents<int8_t, 2>>>(a, 1)),
              "a: the index type of the view cannot count to 200");
    CHECK_STR((refusal<mdspan<float, dynamic>>(a)), "");
    matrix single(2, line, any); /* a stride along which nothing moves says nothing */
    CHECK_STR((refusal<mdspan<float, dynamic, md::layout_right>>(single.a)), "");
    CHECK_INT(cai::describe(v, &a, nullptr), CAI_OK);
    CHECK_INT(a.strides[1], 12);
}
#endif

/* ------------------------------------------------------------------------ visit */

void test_visit()
{
    const int64_t shape[2] = {3, 2};
    matrix m(2, shape, nullptr);
    cai_error err = {};
    size_t size = 0;
    const auto take = [&](auto tag) -> cai_status {
        size = sizeof(typename decltype(tag)::type);
        return size == 8 ? CAI_ERR_VIEW : CAI_OK;
    };
    CHECK_INT(cai::visit(cai::floats(), m.a, "a", take, &err), CAI_OK);
    CHECK_UINT(size, 4);
    m.a.dtype.code = CAI_FLOAT64;
    CHECK_INT(cai::visit(cai::floats(), m.a, "a", take, &err), CAI_ERR_VIEW);
    CHECK_UINT(size, 8);
    size = 0;
    matrix other(2, shape, nullptr);
    CHECK_INT(cai::visit(cai::types<int8_t, double>(), other.a, "a", take, &err), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "a: expected int8 or float64; got float32");
    other.a.dtype.code = CAI_SWAPPED(CAI_FLOAT32);
    CHECK_INT(cai::visit(cai::floats(), other.a, "a", take, &err), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "a: expected float32 or float64; got >f4");
    CHECK_UINT(size, 0);
    cai::array nothing;
    CHECK_INT(cai::visit(cai::floats(), nothing, "a", take, &err), CAI_ERR_ABI);
}

void run()
{
    test_array();
    test_pool();
    test_exchange();
    test_end_fails();
    test_thread();
    test_codes();
    test_views();
    test_records();
    test_spans<mini_span>(static_cast<size_t>(-1));
#if defined(__cpp_lib_span)
    test_spans<std::span>(std::dynamic_extent);
#endif
    test_describe();
    test_visit();
#if EXCEPTIONS
    test_exceptions();
#endif
#if defined(CAI_TEST_MDSPAN)
    test_mdspan();
#endif
}
} // namespace

CAI_TEST_MAIN(run)
