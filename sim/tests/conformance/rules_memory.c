/* rules_memory.c - what CUDA knows of memory, and what calls leave behind as errors.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

/* --------------------------------------------------------------------- memory */
static void device_memory(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT_INT(info.device, 0);
    EXPECT_INT(info.flags, 0);
    EXPECT(info.context == primary());
    EXPECT(info.device_pointer == memory);
}

static void interior_pointer(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory + 256, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT_INT(info.device, 0);
    EXPECT(info.context == primary());
    EXPECT(info.device_pointer == memory + 256);
    EXPECT_INT(info_of(memory + ENOUGH - 1, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
}

static void range(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE);
    uint64_t base = 0, size = 0;
    EXPECT_INT(range_of(memory, &base, &size), 0);
    EXPECT(base == memory);
    EXPECT_INT(size, ENOUGH);
    EXPECT_INT(range_of(memory + 4097, &base, &size), 0);
    EXPECT(base == memory);
    EXPECT_INT(size, ENOUGH);
}

static void range_of_nothing(void)
{
    const uint64_t memory = new_memory(WORLD_PLAIN);
    uint64_t base = 0, size = 0;
    const int32_t error = range_of(memory, &base, &size);
    EXPECT(error == 1 || error == 500);
}

static void range_of_other_kinds(void)
{
    static const int32_t kinds[] = {WORLD_MANAGED, WORLD_PINNED, WORLD_POOL};
    uint64_t base = 0, size = 0;
    int32_t i;
    for (i = 0; i < (int32_t)(sizeof kinds / sizeof kinds[0]); i++) {
        const uint64_t memory = new_memory(kinds[i]);
        EXPECT_INT(range_of(memory + 4097, &base, &size), 0);
        EXPECT(base == memory);
        EXPECT_INT(size, ENOUGH);
    }
}

static void managed_memory(void)
{
    const uint64_t memory = new_memory(WORLD_MANAGED);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory + 8, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_MANAGED);
    EXPECT_INT(info.device, 0);
    EXPECT(info.device_pointer == memory + 8);
}

static void pinned_memory(void)
{
    const uint64_t memory = new_memory(WORLD_PINNED);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory + 8, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_PINNED);
    EXPECT_INT(info.device, 0);
    EXPECT(info.device_pointer == memory + 8);
}

/* Whether devices use the same address is up to them. */
static void registered_memory(void)
{
    const uint64_t memory = new_memory(WORLD_REGISTERED);
    cai_cuda_pointer info, inside;
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_PINNED);
    EXPECT_INT(info.device, 0);
    EXPECT(info.device_pointer != 0);
    EXPECT_INT(info_of(memory + 8, &inside), 0);
    EXPECT(inside.device_pointer == info.device_pointer + 8);
}

static void unmapped_memory(void)
{
    const uint64_t memory = new_memory(WORLD_UNMAPPED);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_PINNED);
    EXPECT(info.device_pointer == 0);
}

static void plain_memory(void)
{
    const uint64_t memory = new_memory(WORLD_PLAIN);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_HOST);
    EXPECT_INT(info.device, CAI_DEVICE_UNKNOWN);
    EXPECT(info.context == 0);
}

static void null_pointer(void)
{
    cai_cuda_pointer info;
    EXPECT_INT(info_of(0, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_HOST);
}

static void freed_memory(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT_INT(world_free(memory), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_HOST);
    EXPECT_INT(info.device, CAI_DEVICE_UNKNOWN);
}

static void pool_memory(void)
{
    const uint64_t memory = new_memory(WORLD_POOL);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory + 8, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT_INT(info.device, 0);
    EXPECT_INT(info.flags, CAI_POINTER_POOL);
    EXPECT(info.context == 0);
    EXPECT(info.device_pointer == memory + 8);
}

static void virtual_memory(void)
{
    const uint64_t memory = new_memory(WORLD_VIRTUAL);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory + 8, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT_INT(info.device, 0);
    EXPECT_INT(info.flags, 0);
    EXPECT(info.context == 0);
    EXPECT(info.device_pointer == memory + 8);
}

static void texture(void)
{
    const uint64_t memory = new_memory(WORLD_TEXTURE);
    cai_cuda_pointer info;
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info.flags, CAI_POINTER_ARRAY);
}

static void memory_of_another_context(void)
{
    const uint64_t other = new_context(), here = new_memory(WORLD_DEVICE);
    uint64_t there;
    cai_cuda_pointer info;
    EXPECT_INT(push(other), 0);
    there = new_memory(WORLD_DEVICE);
    EXPECT_INT(info_of(here, &info), 0);
    EXPECT(info.context == primary());
    EXPECT_INT(pop(), 0);
    EXPECT_INT(info_of(there, &info), 0);
    EXPECT_INT(info.memory, CAI_MEMORY_DEVICE);
    EXPECT_INT(info.device, 0);
    EXPECT(info.context == other);
}

static int32_t ask_pointer(uint64_t pointer, uint64_t memory)
{
    cai_cuda_pointer info;
    const int32_t error = info_of(pointer, &info);
    return error ? error : info.memory == (int32_t)memory && info.context == primary() ? 0 : -1;
}

static void pointer_without_context(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE);
    EXPECT_INT(world_on_thread(0, ask_pointer, memory, CAI_MEMORY_DEVICE), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

static int32_t ask_flags(uint64_t pointer, uint64_t unused)
{
    cai_cuda_pointer info;
    const int32_t error = info_of(pointer, &info);
    const int32_t open = (info.flags & CAI_POINTER_NO_CONTEXT) != 0;
    (void)unused;
    return error ? -error : info.device_pointer == (open ? 0 : pointer) ? open : -1;
}

static void device_pointer_without_context(void)
{
    const uint64_t memory = new_memory(WORLD_PINNED);
    int32_t open;
    EXPECT_INT(ask_flags(memory, 0), 0);
    open = world_on_thread(0, ask_flags, memory, 0);
    EXPECT(open == 0 || open == 1);
    ANSWER(open);
}

static void range_of_segments(void)
{
    const uint64_t memory = new_memory(WORLD_SEGMENTS);
    uint64_t base = 0, size = 0;
    EXPECT_INT(range_of(memory + ENOUGH - 1, &base, &size), 0);
    EXPECT((base == memory && size == ENOUGH) || (base == memory + ENOUGH / 2 && size == ENOUGH / 2));
    ANSWER(base != memory);
}

static int32_t ask_pageable(uint64_t expected, uint64_t unused)
{
    int32_t yes = -1;
    const int32_t error = cuda->device_attribute(cuda->self, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &yes);
    (void)unused;
    return error ? error : yes == (int32_t)expected ? 0 : -1;
}

static void pageable(void)
{
    const int32_t expected = world_pageable_access(0);
    EXPECT_INT(ask_pageable((uint64_t)expected, 0), 0);
    EXPECT_INT(world_on_thread(0, ask_pageable, (uint64_t)expected, 0), 0);
    EXPECT(world_on_thread(0, thread_current_is, 0, 0));
}

#define ATTRIBUTES "CUDA Driver API, cuPointerGetAttributes"
#define ATTRIBUTE "CUDA Driver API, cuPointerGetAttribute"
#define RANGE "CUDA Driver API, cuMemGetAddressRange"

const rule rules_of_memory[] = {
    {"P01", "device memory: kind, device, context, and the address itself", ATTRIBUTE, RULE_DOCUMENTED, 0,
     device_memory},
    {"P02", "a pointer into device memory says the same, to the last byte", ATTRIBUTE, RULE_DOCUMENTED, 0,
     interior_pointer},
    {"P03", "pointer_range gives base and size of the allocation, also from inside", RANGE, RULE_DOCUMENTED,
     0, range},
    {"P04", "pointer_range of plain memory is 1 or 500", RANGE, RULE_DOCUMENTED, 0, range_of_nothing},
    {"P05", "pointer_range knows managed, pinned and pool memory",
     "not said; without it bounds stay unknown", RULE_OBSERVED, 0, range_of_other_kinds},
    {"P06", "managed memory: kind, device, and the address itself", ATTRIBUTE, RULE_DOCUMENTED, 0,
     managed_memory},
    {"P07", "pinned mapped memory: kind, device, and the address itself",
     "CUDA Driver API, Unified Addressing", RULE_DOCUMENTED, 0, pinned_memory},
    {"P08", "registered memory is pinned memory, and devices have an address for it",
     "CUDA Runtime API, cudaHostRegister", RULE_DOCUMENTED, 0, registered_memory},
    {"P09", "memory that no device has an address for has device address 0",
     "simulation only: no such memory with unified addressing", RULE_SIMULATED, 0, unmapped_memory},
    {"P10", "plain memory is no error: it is host memory of no device", ATTRIBUTES, RULE_DOCUMENTED, 0,
     plain_memory},
    {"P11", "a NULL pointer is no error: it is host memory", "not said; cai_stream.h does not ask",
     RULE_OBSERVED, 0, null_pointer},
    {"P12", "freed memory is like plain memory", ATTRIBUTES, RULE_DOCUMENTED, 0, freed_memory},
    {"P13", "memory of a pool: device memory without a context, marked as of a pool",
     "CUDA Driver API, cuCtxDestroy (note); " ATTRIBUTE, RULE_DOCUMENTED, 0, pool_memory},
    {"P14", "mapped virtual memory: device memory without a context",
     "CUDA Driver API, cuCtxDestroy (note)", RULE_DOCUMENTED, 0, virtual_memory},
    {"P15", "a CUDA array is marked as such", "simulation only: CUDA arrays have handles, no addresses",
     RULE_SIMULATED, 0, texture},
    {"P16", "memory reports the context that it was made in, whichever is current", ATTRIBUTE,
     RULE_DOCUMENTED, NEEDS_CONTEXT, memory_of_another_context},
    {"P17", "pointer_info needs no current context, and makes none",
     "doubtful: " ATTRIBUTE " (DEVICE_POINTER: 201 without one); cai_locate", RULE_SILENT, 0,
     pointer_without_context},
    {"P18", "device_attribute is the attribute of the device, and needs no current context",
     "CUDA Driver API, cuDeviceGetAttribute", RULE_DOCUMENTED, 0, pageable},
    {"P19", "the device address of pinned memory without a current context",
     ATTRIBUTE " (DEVICE_POINTER: \"If there is no current CUcontext\": 201)", RULE_DOCUMENTED, 0,
     device_pointer_without_context},
    {"P20", "pointer_range of a mapping of two pieces of physical memory",
     RANGE " (\"the allocation by cuMemAlloc\"); openucx/ucx issue 11461, ofiwg/libfabric pull request 12473",
     RULE_DOCUMENTED, 0, range_of_segments},
    {NULL, NULL, NULL, 0, 0, NULL}};

/* --------------------------------------------------------------------- errors */
static void failed_calls_leave_no_error(void)
{
    const uint64_t other = new_context(), stream = new_stream(NONBLOCKING);
    uint64_t there, context;
    EXPECT_INT(push(other), 0);
    there = new_event();
    EXPECT_INT(pop(), 0);
    EXPECT_INT(record(there, stream), 400);
    EXPECT_INT(world_last_error(), 0);
    EXPECT_INT(cuda->device_context(cuda->self, 1000, &context), 101);
    EXPECT_INT(world_last_error(), 0);
    EXPECT_INT(world_launch(stream, 0, FIRST), 0);
    EXPECT_INT(world_last_error(), 0);
}

static void captures_leave_no_error(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    EXPECT_INT(world_capture_begin(stream, WORLD_RELAXED), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(query(event), 907);
    EXPECT_INT(synchronize(stream), 900);
    EXPECT_INT(world_last_error(), 0);
    EXPECT_INT(world_capture_end(stream), 901);
    EXPECT_INT(world_clear_error(), 901);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(query(event), 600);
    EXPECT_INT(world_last_error(), 0);
}

static void pending_error_stays(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    cai_cuda_pointer info;
    EXPECT_INT(world_capture_end(stream), 401);
    EXPECT_INT(record(event, stream), 0);
    EXPECT_INT(wait_for(stream, event), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(info_of(new_memory(WORLD_PLAIN), &info), 0);
    EXPECT_INT(world_last_error(), 401);
    EXPECT_INT(world_clear_error(), 401);
    EXPECT_INT(world_last_error(), 0);
}

static void unknown_memory_leaves_no_error(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE), stream = new_stream(NONBLOCKING);
    uint64_t base, size;
    cai_cuda_pointer info;
    EXPECT_INT(world_free(memory), 0);
    EXPECT_INT(info_of(memory, &info), 0);
    EXPECT_INT(info_of(new_memory(WORLD_PLAIN), &info), 0);
    EXPECT(range_of(new_memory(WORLD_PLAIN), &base, &size) != 0);
    EXPECT_INT(world_last_error(), 0);
    EXPECT_INT(world_launch(stream, 0, FIRST), 0);
    EXPECT_INT(world_last_error(), 0);
}

static void first_calls(void)
{
    EXPECT_INT(world_first_error(), 0);
}

/* The event is pending when the device breaks. */
static void broken_device(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    uint64_t event;
    int32_t error;
    EXPECT_INT(spin(stream, FIRST), 0);
    event = new_event_after(stream);
    world_break_device();
    world_set(GATE); /* a kernel that spins is not ended by the error of another one */
    error = synchronize_context();
    EXPECT(error != 0);
    EXPECT_INT(synchronize_context(), error);
    EXPECT_INT(synchronize(stream), error);
    EXPECT_INT(query(event), error);
    EXPECT_INT(synchronize_event(event), error);
    EXPECT_INT(wait_for(other, event), error);
    EXPECT_INT(record(event, other), error);
}

static void broken_device_is_current(void)
{
    const uint64_t before = current(), stream = new_stream(NONBLOCKING);
    uint64_t context = 0;
    world_break_device();
    EXPECT(synchronize_context() != 0);
    EXPECT(is_current(before));
    EXPECT_INT(push(before), 0);
    EXPECT_INT(pop(), 0);
    EXPECT(is_current(before));
    EXPECT(context_of(stream, &context) != 0);
}

static void teardown(void)
{
    const uint64_t stream = new_stream(NONBLOCKING), event = new_event();
    uint64_t context;
    if (!world_teardown()) SKIP("no end of the process");
    EXPECT_INT(cuda->context_current(cuda->self, &context), 4);
    EXPECT_INT(record(event, stream), 4);
    EXPECT_INT(query(event), 4);
    EXPECT_INT(destroy_event(event), 4);
}

const rule rules_of_errors[] = {
    {"Q01", "calls that fail leave no last error to the runtime",
     "CUDA Runtime API, cudaGetLastError (\"from any of the runtime calls\")", RULE_DOCUMENTED,
     NEEDS_CONTEXT, failed_calls_leave_no_error},
    {"Q02", "600 and the errors of captures leave no last error to the runtime",
     "CUDA Runtime API, cudaGetLastError (\"from any of the runtime calls\")", RULE_DOCUMENTED, 0,
     captures_leave_no_error},
    {"Q03", "a last error of the runtime survives calls of the table",
     "CUDA Runtime API, cudaPeekAtLastError", RULE_DOCUMENTED, 0, pending_error_stays},
    {"Q04", "questions about plain and freed memory leave no last error",
     "CUDA Runtime API, cudaGetLastError (\"from any of the runtime calls\")", RULE_DOCUMENTED, 0,
     unknown_memory_leaves_no_error},
    {"Q05", "the first calls of a process initialize the driver",
     "CUDA Driver API, cuInit; cai_cuda_linked", RULE_DOCUMENTED, 0, first_calls},
    {"Q06", "after an asynchronous error every call that works on the device gives it",
     "CUDA Driver API, CUresult 719 (\"any further CUDA work will return the same error\")",
     RULE_DOCUMENTED, LEAVES_RUINS, broken_device},
    {"Q07", "after an asynchronous error the current context can be asked for, pushed and popped, no stream's",
     "not said; cai_stream.h restores so", RULE_SILENT, LEAVES_RUINS, broken_device_is_current},
    {"Q08", "while the process ends every call is 4",
     "CUDA Driver API, CUresult 4; simulation only: there is no rule to be run then", RULE_SIMULATED,
     LEAVES_RUINS, teardown},
    {NULL, NULL, NULL, 0, 0, NULL}};
