// test_rmm.cpp - the adapter for RMM: with RMM's own headers and library, or with a stand-in for them
// SPDX-License-Identifier: MIT
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "examples/adapters/rmm/cai_rmm.hpp"

#include "cai_test.h"

namespace {
char memory[2][256];
char seen[200];
int alloc_error, free_error, give_null;

int hook_alloc(void *ctx, void **ptr, std::size_t size, CUstream_st *stream)
{
    std::snprintf(seen, sizeof seen, "alloc %d %lu %lx", ctx == memory, static_cast<unsigned long>(size),
                  static_cast<unsigned long>(reinterpret_cast<std::uintptr_t>(stream)));
    if (alloc_error) return alloc_error;
    if (!give_null) *ptr = memory[1];
    return 0;
}

int hook_free(void *ctx, void *ptr, std::size_t size, CUstream_st *stream)
{
    std::snprintf(seen, sizeof seen, "free %d %d %lu %lx", ctx == memory, ptr == memory[1],
                  static_cast<unsigned long>(size),
                  static_cast<unsigned long>(reinterpret_cast<std::uintptr_t>(stream)));
    return free_error;
}

cai_emm_hooks make_hooks()
{
    cai_emm_hooks hooks;
    std::memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.ctx = memory;
    hooks.device_alloc = hook_alloc;
    hooks.device_free = hook_free;
    std::memcpy(hooks.name, "my_pool", 8);
    return hooks;
}

CUstream_st *stream_of(std::uintptr_t number) { return reinterpret_cast<CUstream_st *>(number); }

void check_seen(const char *expected)
{
    CHECK_STR(seen, expected);
    seen[0] = 0;
}

template <class Resource> int allocate(Resource &resource, std::size_t size, const char *message)
{
    const char *said = "";
    int thrown = 0;
    try {
        CHECK(resource.allocate(stream_of(0x50), size, 256) != nullptr);
    } catch (const rmm::out_of_memory &e) {
        thrown = 2;
        said = e.what();
        CHECK(std::strstr(said, message) != nullptr);
    } catch (const rmm::bad_alloc &e) {
        thrown = 1;
        said = e.what();
        CHECK(std::strstr(said, message) != nullptr);
    }
    return thrown;
}

void test_pair()
{
    cai_rmm adapter(make_hooks());
    auto resource = adapter.resource();
    void *ptr = resource.allocate(stream_of(0x50), 1000, 256);
    CHECK(ptr == memory[1]);
    check_seen("alloc 1 1000 50");
    resource.deallocate(stream_of(0x60), ptr, 1000, 256);
    check_seen("free 1 1 1000 60");
    ptr = resource.allocate(stream_of(0), 24, 256); // NULL is the legacy stream
    check_seen("alloc 1 24 1");
    resource.deallocate(stream_of(0), ptr, 24, 256);
    check_seen("free 1 1 24 1");
    CHECK(resource.allocate(stream_of(0x50), 0, 256) == nullptr);
    resource.deallocate(stream_of(0x50), nullptr, 0, 256);
    check_seen("");
    CHECK_UINT(adapter.failed_frees, 0);
}

void test_errors()
{
    cai_rmm adapter(make_hooks());
    auto resource = adapter.resource();
    alloc_error = 2;
    CHECK_INT(allocate(resource, 1000, "my_pool"), 2);
    alloc_error = 700;
    CHECK_INT(allocate(resource, 1000, "700"), 1);
    alloc_error = 0;
    give_null = 1;
    CHECK_INT(allocate(resource, 1000, "NULL"), 1);
    give_null = 0;
    CHECK_INT(allocate(resource, 1000, ""), 0);
    free_error = 4;
    resource.deallocate(stream_of(0x50), memory[1], 1000, 256);
    CHECK_UINT(adapter.failed_frees, 0);
    free_error = 700;
    resource.deallocate(stream_of(0x50), memory[1], 1000, 256);
    CHECK_UINT(adapter.failed_frees, 1);
    free_error = 0;
}

void test_bad_table()
{
    cai_emm_hooks hooks = make_hooks();
    int thrown = 0;
    hooks.version = 7;
    try {
        cai_rmm adapter(hooks);
    } catch (const rmm::bad_alloc &e) {
        thrown = std::strstr(e.what(), "version") != nullptr;
    }
    CHECK_INT(thrown, 1);
    hooks = make_hooks(); // of an older maker: what lies behind its end is not read
    hooks.struct_size = offsetof(cai_emm_hooks, initialize);
    cai_rmm adapter(hooks);
    CHECK(adapter.hooks.initialize == nullptr);
}

void run()
{
    test_pair();
    test_errors();
    test_bad_table();
}
} // namespace

CAI_TEST_MAIN(run)
