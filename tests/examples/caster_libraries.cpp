/* caster_libraries.cpp - what test_caster_libraries.py binds with cai_nanobind.h, on the driver that it loads
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_nanobind.h"

#include "cai_emm.h"

#include <dlfcn.h>
#include <vector>

static cai_emm_pool blocks;
static cai_emm_hooks memory;
static int (*fill_async)(uint64_t at, uint32_t value, size_t count, uint64_t stream);
static int (*copy_async)(uint64_t to, uint64_t from, size_t bytes, uint64_t stream);

static void allocate(cai::array &made, const int64_t *size, cai_nb::stream s)
{
    cai::call(cai_emm_array, &made, cai_nb::pool(), &memory, CAI_INT32, 1, size, s.number);
}

/* A new array, with the write pending on the stream. */
static cai_nb::array filled(int64_t size, uint32_t value, cai_nb::stream s)
{
    cai::array made;
    allocate(made, &size, s);
    cai::check_cuda(fill_async(made.data, value, static_cast<size_t>(size), s.number), "fill");
    return made;
}

/* A copy of x, with the read of x pending on the stream. */
static cai_nb::array copied(cai_nb::typed<const int32_t, 1> in, cai_nb::stream s, bool in_order)
{
    cai::array &x = in.expect("x"), kept = x.borrow(), made;
    allocate(made, x.shape, s);
    if (!in_order) {
        cai::check_cuda(copy_async(made.data, x.data, static_cast<size_t>(x.nbytes), s.number), "copy");
        return made;
    }
    cai::exchange ex(cai_nb::pool(), s.number, x);
    cai::check_cuda(copy_async(made.data, kept.data, static_cast<size_t>(kept.nbytes), s.number), "copy");
    ex.finish();
    return made;
}

static cai_nb::array on_host(int64_t size, int32_t value)
{
    std::vector<int32_t> numbers(static_cast<size_t>(size), value);
    cai::array made;
    cai::call(cai_array_init, &made, CAI_INT32, 1, &size, nullptr, numbers.data());
    made.memory = CAI_MEMORY_HOST;
    made.own(std::move(numbers));
    return made;
}

template <class Function> static void find(Function &to, void *library, const char *name)
{
    to = reinterpret_cast<Function>(dlsym(library, name));
    if (!to) throw std::runtime_error(name);
}

NB_MODULE(caster_libraries, m)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    find(fill_async, library, "cuMemsetD32Async");
    find(copy_async, library, "cuMemcpyDtoDAsync_v2");
    cai_nb::open(m, [](cai_cuda_driver *driver, cai_error *err) { return cai_cuda_load(driver, nullptr, err); });
    cai::call(cai_emm_pool_create, &blocks, cai_nb::pool().cuda(), 0);
    cai::call(cai_emm_hooks_async, &memory, cai_nb::pool().cuda(), &blocks);
    m.def("filled", filled, nanobind::arg("size"), nanobind::arg("value"), nanobind::arg("stream"));
    m.def("copied", copied, nanobind::arg("x"), nanobind::arg("stream"), nanobind::arg("in_order") = true);
    m.def("on_host", on_host, nanobind::arg("size"), nanobind::arg("value"));
}
