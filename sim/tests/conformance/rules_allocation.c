/* rules_allocation.c - how memory is had and given back, in the order of a stream too, and named for others.
 * SPDX-License-Identifier: MIT
 *
 * What a rule allocates by the table it frees itself: the world knows only of what it made. */
#include "rules.h"

#include <string.h>

enum { HANDLE = 64, UUID = 16, MAPPED = 2, GLOBALLY = 1 };

/* ---------------------------------------------------------------- small steps */
static int32_t alloc(uint64_t *memory)
{
    return cuda->memory_alloc(cuda->self, memory, ENOUGH);
}

static int32_t give_back(uint64_t memory)
{
    return cuda->memory_free(cuda->self, memory);
}

static int32_t alloc_in(uint64_t *memory, uint64_t stream)
{
    return cuda->memory_alloc_async(cuda->self, memory, ENOUGH, stream);
}

static int32_t give_back_in(uint64_t memory, uint64_t stream)
{
    return cuda->memory_free_async(cuda->self, memory, stream);
}

static int32_t host_alloc(uint64_t *memory)
{
    return cuda->host_alloc(cuda->self, memory, ENOUGH, MAPPED);
}

static int32_t host_free(uint64_t memory)
{
    return cuda->host_free(cuda->self, memory);
}

static int32_t enroll(uint64_t memory)
{
    return cuda->host_register(cuda->self, memory, ENOUGH, MAPPED);
}

static int32_t dismiss(uint64_t memory)
{
    return cuda->host_unregister(cuda->self, memory);
}

/* CAI_MEMORY_..., or minus the error. */
static int32_t kind_of(uint64_t memory)
{
    cai_cuda_pointer info;
    const int32_t error = info_of(memory, &info);
    return error ? -error : info.memory;
}

/* Does the device have this kind? Otherwise the rule is skipped, and ends. */
static int has(int32_t kind)
{
    return new_memory(kind) != 0;
}

/* ------------------------------------------------------------ had and given back */
static void device_memory(void)
{
    uint64_t memory = 0;
    cai_cuda_pointer info;
    EXPECT_INT(alloc(&memory), 0);
    EXPECT(memory != 0 && memory % 256 == 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT(info.context == primary() && info.device_pointer == memory);
    EXPECT_INT(give_back(memory), 0);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_HOST);
}

static void memory_of_the_current_context(void)
{
    const uint64_t other = new_context();
    uint64_t memory = 0;
    cai_cuda_pointer info;
    EXPECT_INT(push(other), 0);
    EXPECT_INT(alloc(&memory), 0);
    EXPECT_INT(pop(), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT(info.context == other);
    EXPECT_INT(give_back(memory), 0); /* whatever is current */
    EXPECT_INT(kind_of(memory), CAI_MEMORY_HOST);
}

/* How many calls did not say 201; a free works. */
static int32_t without_context(uint64_t memory, uint64_t pinned)
{
    static unsigned char handle[HANDLE];
    const uint64_t stretch = new_memory(WORLD_PLAIN);
    uint64_t out = 0, other = 0;
    int32_t wrong = 0;
    wrong += alloc(&out) != 201;
    wrong += host_alloc(&out) != 201;
    wrong += enroll(stretch) != 201;
    wrong += cuda->managed_alloc(cuda->self, &out, ENOUGH, GLOBALLY) != 201;
    wrong += cuda->memory_info(cuda->self, &out, &other) != 201;
    wrong += cuda->ipc_export(cuda->self, memory, handle) != 201;
    wrong += alloc_in(&out, CAI_STREAM_LEGACY) != 201;
    wrong += give_back(memory) != 0;
    wrong += host_free(pinned) != 0;
    return wrong + !is_current(0);
}

static void needs_context(void)
{
    uint64_t memory = 0, pinned = 0;
    EXPECT_INT(alloc(&memory), 0);
    EXPECT_INT(host_alloc(&pinned), 0);
    EXPECT_INT(world_on_thread(0, without_context, memory, pinned), 0);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_HOST);
}

static int32_t alloc_and_free_in(uint64_t stream, uint64_t unused)
{
    uint64_t memory = 0;
    const int32_t error = alloc_in(&memory, stream);
    (void)unused;
    return error ? error : memory == 0 ? -1 : give_back_in(memory, stream);
}

static void stream_brings_context(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(world_on_thread(0, alloc_and_free_in, stream, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static void size_of_nothing(void)
{
    uint64_t memory = 0;
    EXPECT_INT(cuda->memory_alloc(cuda->self, &memory, 0), 1);
    EXPECT_INT(cuda->managed_alloc(cuda->self, &memory, 0, GLOBALLY), 1);
}

static void size_of_nothing_elsewhere(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    EXPECT_INT(cuda->host_alloc(cuda->self, &memory, 0, MAPPED), 0);
    EXPECT_INT((int64_t)memory, 0);
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(cuda->memory_alloc_async(cuda->self, &memory, 0, stream), 0);
    EXPECT_INT((int64_t)memory, 0);
}

static void too_much(void)
{
    uint64_t memory = 0, available = 0, total = 0;
    EXPECT_INT(cuda->memory_info(cuda->self, &available, &total), 0);
    EXPECT(total >= ENOUGH && available <= total);
    EXPECT_INT(cuda->memory_alloc(cuda->self, &memory, 2 * total), 2);
    EXPECT_INT(alloc(&memory), 0); /* and it goes on */
    EXPECT_INT(give_back(memory), 0);
}

static void not_given(void)
{
    uint64_t memory = 0;
    EXPECT_INT(alloc(&memory), 0);
    EXPECT_INT(give_back(memory), 0);
    EXPECT_INT(give_back(memory), 1);
    EXPECT_INT(give_back(new_memory(WORLD_PLAIN)), 1);
    EXPECT_INT(host_free(new_memory(WORLD_PLAIN)), 1);
}

/* Pending work keeps away from the memory, which may be gone. */
static void free_waits(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    EXPECT_INT(alloc(&memory), 0);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT(held(FIRST));
    world_set_while_waiting(GATE);
    EXPECT_INT(give_back(memory), 0);
    ANSWER(!world_ran(FIRST));
    EXPECT(follows(FIRST, FIRST_BYSTANDER, stream));
}

static void host_free_waits(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    EXPECT_INT(host_alloc(&memory), 0);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT(held(FIRST));
    world_set_while_waiting(GATE);
    EXPECT_INT(host_free(memory), 0);
    ANSWER(!world_ran(FIRST));
    EXPECT(follows(FIRST, FIRST_BYSTANDER, stream));
}

/* -------------------------------------------------------- in the order of a stream */
static void pool_memory(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    cai_cuda_pointer info;
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(alloc_in(&memory, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT_INT(info.flags, CAI_POINTER_POOL);
    EXPECT(info.context == 0);
    EXPECT_INT(give_back_in(memory, stream), 0); /* from here on nobody may ask about it */
    EXPECT_INT(synchronize(stream), 0);
}

static void pool_free_does_not_wait(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(alloc_in(&memory, other), 0);
    EXPECT_INT(synchronize(other), 0);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(give_back(memory), 0);
    EXPECT(held(FIRST));
}

static void free_in_order(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(alloc_in(&memory, stream), 0);
    EXPECT_INT(world_touch(stream, GATE, FIRST, memory), 0);
    EXPECT_INT(give_back_in(memory, stream), 0);
    EXPECT(held(FIRST)); /* nor did the call wait */
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(world_ran(FIRST));
}

static void free_after_another_stream(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(alloc_in(&memory, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_touch(other, GATE, FIRST, memory), 0);
    EXPECT(order(other, stream));
    EXPECT_INT(give_back_in(memory, stream), 0);
    EXPECT_INT(world_launch(stream, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, stream));
    EXPECT_INT(synchronize(other), 0);
}

/* Memory of device 0 is given back in the order of a stream of device 1. */
static void free_on_another_device(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0, other;
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(alloc_in(&memory, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_set_device(1), 0);
    other = new_stream(NONBLOCKING);
    EXPECT_INT(give_back_in(memory, other), 0);
    EXPECT_INT(synchronize(other), 0);
    EXPECT_INT(world_set_device(0), 0);
}

static void freed_twice_in_order(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    EXPECT(has(WORLD_POOL));
    EXPECT_INT(alloc_in(&memory, stream), 0);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(give_back_in(memory, stream), 0);
    EXPECT_INT(give_back_in(memory, stream), 1);
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
}

/* ------------------------------------------------------------- memory of the host */
static void pinned_memory(void)
{
    uint64_t memory = 0;
    cai_cuda_pointer info;
    EXPECT_INT(host_alloc(&memory), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_PINNED);
    EXPECT(memory != 0 && info.device_pointer == memory);
    EXPECT_INT(host_free(memory), 0);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_HOST);
}

static void registered_memory(void)
{
    const uint64_t memory = new_memory(WORLD_PLAIN);
    cai_cuda_pointer info;
    EXPECT_INT(enroll(memory), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_PINNED);
    EXPECT(info.device_pointer != 0);
    EXPECT_INT(dismiss(memory), 0);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_HOST);
    EXPECT_INT(enroll(memory), 0); /* again */
    EXPECT_INT(dismiss(memory), 0);
}

static void registered_twice(void)
{
    const uint64_t memory = new_memory(WORLD_PLAIN);
    EXPECT_INT(dismiss(memory), 713);
    EXPECT_INT(enroll(memory), 0);
    EXPECT_INT(enroll(memory), 712);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_PINNED);
    EXPECT_INT(dismiss(memory), 0);
    EXPECT_INT(dismiss(memory), 713);
}

static void managed_memory(void)
{
    uint64_t memory = 0;
    EXPECT(has(WORLD_MANAGED));
    EXPECT_INT(cuda->managed_alloc(cuda->self, &memory, ENOUGH, 0), 1);
    EXPECT_INT(cuda->managed_alloc(cuda->self, &memory, ENOUGH, GLOBALLY), 0);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_MANAGED);
    EXPECT_INT(give_back(memory), 0);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_HOST);
}

/* ---------------------------------------------------------------------- captures */
static int32_t set_mode(int32_t mode)
{
    return thread_mode((uint64_t)mode, 0);
}

static void alloc_in_capture(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t memory = 0, none = 0;
    EXPECT_INT(world_capture_begin(stream, WORLD_GLOBAL), 0);
    EXPECT_INT(set_mode(WORLD_RELAXED), WORLD_GLOBAL);
    EXPECT_INT(alloc(&memory), 0);
    EXPECT(captures(stream));
    EXPECT_INT(set_mode(WORLD_GLOBAL), WORLD_RELAXED);
    EXPECT_INT(alloc(&none), 900);
    EXPECT(is_invalidated(stream));
    EXPECT_INT(world_capture_end(stream), 901);
    EXPECT_INT(give_back(memory), 0);
}

/* --------------------------------------------------------------- other processes */
static void handles(void)
{
    unsigned char first[HANDLE + 1], second[HANDLE + 1];
    uint64_t memory = 0, other = 0;
    memset(first, 0x5a, sizeof first);
    memset(second, 0x5a, sizeof second);
    EXPECT_INT(alloc(&memory), 0);
    EXPECT_INT(alloc(&other), 0);
    EXPECT_INT(cuda->ipc_export(cuda->self, memory, first), 0);
    EXPECT_INT(cuda->ipc_export(cuda->self, memory, second), 0);
    EXPECT(memcmp(first, second, sizeof first) == 0);
    EXPECT_INT(first[HANDLE], 0x5a);
    EXPECT_INT(cuda->ipc_export(cuda->self, other, second), 0);
    EXPECT(memcmp(first, second, HANDLE) != 0);
    EXPECT_INT(give_back(memory), 0);
    EXPECT_INT(give_back(other), 0);
}

static void handle_from_inside(void)
{
    unsigned char first[HANDLE], second[HANDLE];
    uint64_t memory = 0;
    EXPECT_INT(alloc(&memory), 0);
    EXPECT_INT(cuda->ipc_export(cuda->self, memory, first), 0);
    EXPECT_INT(cuda->ipc_export(cuda->self, memory + 4096, second), 0);
    EXPECT(memcmp(first, second, HANDLE) == 0);
    EXPECT_INT(give_back(memory), 0);
}

static void handle_of_a_pool(void)
{
    unsigned char handle[HANDLE];
    EXPECT_INT(cuda->ipc_export(cuda->self, new_memory(WORLD_POOL), handle), 1);
}

static void own_handle(void)
{
    unsigned char handle[HANDLE];
    uint64_t memory = 0, opened = 0;
    EXPECT_INT(alloc(&memory), 0);
    EXPECT_INT(cuda->ipc_export(cuda->self, memory, handle), 0);
    EXPECT_INT(cuda->ipc_open(cuda->self, handle, &opened), 201);
    EXPECT_INT(cuda->ipc_close(cuda->self, memory), 1);
    EXPECT_INT(kind_of(memory), CAI_MEMORY_DEVICE);
    EXPECT_INT(give_back(memory), 0);
}

static int32_t ask_uuid(uint64_t device, uint64_t place)
{
    return cuda->device_uuid(cuda->self, (int32_t)device, (void *)(uintptr_t)place);
}

static void uuid(void)
{
    unsigned char here[UUID + 1], there[UUID + 1];
    memset(here, 0x5a, sizeof here);
    memset(there, 0x5a, sizeof there);
    EXPECT_INT(ask_uuid(0, (uint64_t)(uintptr_t)here), 0);
    EXPECT_INT(here[UUID], 0x5a);
    EXPECT_INT(world_on_thread(0, ask_uuid, 0, (uint64_t)(uintptr_t)there), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
    EXPECT(memcmp(here, there, sizeof here) == 0);
    memset(there, 0, sizeof there);
    EXPECT(memcmp(here, there, UUID) != 0);
    EXPECT_INT(ask_uuid(1000, (uint64_t)(uintptr_t)there), 101);
}

static void uuids_differ(void)
{
    unsigned char first[UUID], second[UUID];
    EXPECT_INT(ask_uuid(0, (uint64_t)(uintptr_t)first), 0);
    EXPECT_INT(ask_uuid(1, (uint64_t)(uintptr_t)second), 0);
    EXPECT(memcmp(first, second, UUID) != 0);
}

#define API "CUDA Driver API, "

const rule rules_of_allocation[] = {
    {"A01", "memory_alloc gives device memory, and when it is freed it is like plain memory",
     API "cuMemAlloc, cuMemFree", RULE_DOCUMENTED, 0, device_memory},
    {"A02", "memory_alloc allocates in the current context, memory_free frees what is of another",
     API "cuMemAlloc; not said of cuMemFree; cai_emm.h frees in the context of the memory", RULE_OBSERVED,
     NEEDS_CONTEXT,
     memory_of_the_current_context},
    {"A03", "allocation, registration, memory_info, ipc_export without a current context: 201; a free works",
     API "cuMemAlloc and others", RULE_DOCUMENTED, 0, needs_context},
    {"A04", "memory_alloc_async and memory_free_async take the context of the stream",
     API "cuMemAllocAsync (201: \"default stream specified with no current context\")", RULE_DOCUMENTED, 0,
     stream_brings_context},
    {"A05", "memory_alloc and managed_alloc of size 0: 1", API "cuMemAlloc, cuMemAllocManaged",
     RULE_DOCUMENTED, 0, size_of_nothing},
    {"A06", "host_alloc and memory_alloc_async of size 0 succeed, and give 0",
     "not said; cai_emm.h does not ask", RULE_OBSERVED, 0, size_of_nothing_elsewhere},
    {"A07", "memory_info tells what there is; more than that: 2", API "cuMemGetInfo, cuMemAlloc",
     RULE_DOCUMENTED, 0, too_much},
    {"A08", "freed twice, or never allocated: 1", "not said; cai_emm.h does not do it", RULE_OBSERVED, 0,
     not_given},
    {"A09", "memory_free, and whether it waits for pending work of the context",
     API "cuMemFree (\"may perform implicit synchronization\")", RULE_DOCUMENTED, 0, free_waits},
    {"A10", "host_free, and whether it waits for pending work of the context",
     API "cuMemFreeHost (nothing said)", RULE_DOCUMENTED, 0, host_free_waits},
    {"A11", "memory_alloc_async gives memory of a pool, and memory_free_async takes it back",
     API "cuMemAllocAsync, cuMemFreeAsync", RULE_DOCUMENTED, 0, pool_memory},
    {"A12", "memory_free of pool memory does not wait for work",
     API "cuMemFree (\"will not perform any implict synchronization\")", RULE_DOCUMENTED, 0,
     pool_free_does_not_wait},
    {"A13", "memory_free_async does not wait, and work before it in the stream finds the memory",
     API "cuMemFreeAsync", RULE_DOCUMENTED, 0, free_in_order},
    {"A14", "work of another stream that the stream waits for before memory_free_async finds the memory",
     API "cuMemFreeAsync, cuMemAllocAsync (note)", RULE_DOCUMENTED, 0, free_after_another_stream},
    {"A15", "host_alloc gives pinned memory, at the same address for devices",
     API "cuMemHostAlloc, cuMemFreeHost", RULE_DOCUMENTED, 0, pinned_memory},
    {"A16", "registered memory is pinned memory until it is unregistered",
     API "cuMemHostRegister, cuMemHostUnregister", RULE_DOCUMENTED, 0, registered_memory},
    {"A17", "registered twice: 712; unregistered without: 713",
     API "cuMemHostRegister, cuMemHostUnregister; CUresult", RULE_DOCUMENTED, 0, registered_twice},
    {"A18", "managed_alloc gives managed memory, needs one of its flags, and memory_free ends it",
     API "cuMemAllocManaged, cuMemFree", RULE_DOCUMENTED, 0, managed_memory},
    {"A19", "memory_alloc during a capture: 900, and invalidates it, unless the thread is relaxed",
     API "cuThreadExchangeStreamCaptureMode (\"potentially unsafe API calls\")", RULE_DOCUMENTED, 0,
     alloc_in_capture},
    {"A20", "a handle has 64 bytes, the same each time, and others for another allocation",
     API "cuIpcGetMemHandle (\"a unique handle\"); cai_ipc.h opens again if it differs", RULE_OBSERVED, 0,
     handles},
    {"A21", "a pointer into an allocation has the handle of the allocation",
     API "cuIpcGetMemHandle (\"base pointer\"); cai_emm.h asks for the base", RULE_OBSERVED, 0,
     handle_from_inside},
    {"A22", "pool memory has no handle: 1", "not said; chelsea0x3b/cudarc issue 521", RULE_OBSERVED, 0,
     handle_of_a_pool},
    {"A23", "a handle cannot be opened in the process that it comes from: 201",
     API "cuIpcOpenMemHandle (\"exported from another process\"); openucx/ucx pull request 11603",
     RULE_OBSERVED, 0, own_handle},
    {"A24", "device_uuid gives 16 bytes, the same each time, and needs no current context",
     API "cuDeviceGetUuid", RULE_DOCUMENTED, 0, uuid},
    {"A25", "two devices have two UUIDs", API "cuDeviceGetUuid", RULE_DOCUMENTED, NEEDS_DEVICES,
     uuids_differ},
    {"A26", "freed twice in the order of a stream: 1", "not said; cai_emm.h does not do it", RULE_OBSERVED,
     0, freed_twice_in_order},
    {"A27", "memory_free_async in a stream of another device than that of the memory",
     "not said; cai_emm.h gives such streams to memory_free_async", RULE_SILENT, NEEDS_DEVICES,
     free_on_another_device},
    {NULL, NULL, NULL, 0, 0, NULL}};
