/* rules_copies.c - what copies, fills and host functions come after, and what the host waits for.
 * SPDX-License-Identifier: MIT
 *
 * A kernel that is held back stands before each copy. Where the host should wait for it, it is let go while
 * the host waits. */
#include "rules.h"

#include <string.h>

#define PAGE "CUDA Runtime API, API synchronization behavior, "

#define SENSITIVITY "CUDA Programming Guide, cudaMemcpyAsync Current Context/Device Sensitivity"

enum { BYTES = 4096 };

/* ---------------------------------------------------------------- small steps */
/* A kernel before a copy, which runs while the host waits, or not before the rule lets it. */
static int behind(uint64_t stream, int waits)
{
    if (waits) world_set_while_waiting(GATE);
    return spin(stream, FIRST) == 0;
}

static unsigned char *bytes_of(uint64_t host)
{
    return (unsigned char *)(uintptr_t)host;
}

/* 1: a synchronous copy returned, and the kernel before it had run. 0: it had not. -1: an error. */
static int copy_waits(int32_t to, int32_t from, int waits)
{
    const uint64_t into = new_memory(to), out_of = new_memory(from);
    if (!into || !out_of || !behind(CAI_STREAM_LEGACY, waits)) return -1;
    return world_copy(into, out_of, BYTES) ? -1 : world_ran(FIRST);
}

static int copy_async_waits(int32_t to, int32_t from, int waits)
{
    const uint64_t into = new_memory(to), out_of = new_memory(from), stream = new_stream(NONBLOCKING);
    if (!into || !out_of || !behind(stream, waits)) return -1;
    return world_copy_async(into, out_of, BYTES, stream) ? -1 : world_ran(FIRST);
}

static int fill_waits(int32_t kind, int waits)
{
    const uint64_t memory = new_memory(kind);
    if (!memory || !behind(CAI_STREAM_LEGACY, waits)) return -1;
    return world_fill(memory, 1, BYTES) ? -1 : world_ran(FIRST);
}

/* ---------------------------------------------------------------------- rules */
static void async_to_device(void)
{
    EXPECT_INT(copy_async_waits(WORLD_DEVICE, WORLD_PINNED, 0), 0);
    EXPECT(held(FIRST));
}

static void async_to_pinned(void)
{
    EXPECT_INT(copy_async_waits(WORLD_PINNED, WORLD_DEVICE, 0), 0);
    EXPECT(held(FIRST));
}

static void device_to_device(void)
{
    EXPECT_INT(copy_waits(WORLD_DEVICE, WORLD_DEVICE, 0), 0);
    EXPECT(held(FIRST));
}

/* The kernel writes 1, which the copy brings. */
static void to_host(int32_t kind)
{
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(kind);
    bytes_of(host)[0] = 0;
    world_set_while_waiting(GATE);
    EXPECT_INT(world_touch(CAI_STREAM_LEGACY, GATE, FIRST, device), 0);
    EXPECT_INT(world_copy(host, device, BYTES), 0);
    EXPECT(world_ran(FIRST));
    EXPECT_INT(bytes_of(host)[0], 1);
}

static void device_to_pinned(void)
{
    to_host(WORLD_PINNED);
}

static void device_to_pageable(void)
{
    to_host(WORLD_PLAIN);
}

static void pinned_to_device(void)
{
    EXPECT_INT(copy_waits(WORLD_DEVICE, WORLD_PINNED, 1), 1);
}

static void pageable_to_device(void)
{
    EXPECT_INT(copy_waits(WORLD_DEVICE, WORLD_PLAIN, 1), 1);
}

static void async_host_to_host(void)
{
    EXPECT_INT(copy_async_waits(WORLD_PINNED, WORLD_PINNED, 1), 1);
}

static void async_from_pageable(void)
{
    const int waits = copy_async_waits(WORLD_DEVICE, WORLD_PLAIN, 1);
    EXPECT(waits >= 0);
    ANSWER(!waits);
}

static void async_to_pageable(void)
{
    const int waits = copy_async_waits(WORLD_PLAIN, WORLD_DEVICE, 1);
    EXPECT(waits >= 0);
    ANSWER(!waits);
}

static void managed_to_device(void)
{
    const int waits = copy_waits(WORLD_DEVICE, WORLD_MANAGED, 1);
    EXPECT(waits >= 0);
    ANSWER(!waits);
}

static void fill_of_device(void)
{
    EXPECT_INT(fill_waits(WORLD_DEVICE, 0), 0);
    EXPECT(held(FIRST));
}

static void fill_of_pinned(void)
{
    EXPECT_INT(fill_waits(WORLD_PINNED, 1), 1);
}

static void fill_of_managed(void)
{
    EXPECT_INT(fill_waits(WORLD_MANAGED, 1), 1);
}

static void async_fill(void)
{
    const uint64_t memory = new_memory(WORLD_PINNED), stream = new_stream(NONBLOCKING);
    bytes_of(memory)[0] = 0;
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(world_fill_async(memory, 7, BYTES, stream), 0);
    EXPECT(held(FIRST));
    EXPECT_INT(bytes_of(memory)[0], 0);
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(bytes_of(memory)[0], 7);
}

static void order_of_stream(void)
{
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    const uint64_t stream = new_stream(NONBLOCKING);
    bytes_of(host)[0] = 0;
    EXPECT_INT(world_touch(stream, GATE, FIRST, device), 0);
    EXPECT_INT(world_copy_async(host, device, BYTES, stream), 0);
    EXPECT_INT(world_launch(stream, 0, SECOND), 0);
    EXPECT(held(SECOND));
    EXPECT_INT(bytes_of(host)[0], 0);
    EXPECT(follows(SECOND, FIRST, stream));
    EXPECT_INT(bytes_of(host)[0], 1);
}

static void stream_of_another_context(void)
{
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    uint64_t stream;
    EXPECT_INT(world_set_device(1), 0);
    stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_set_device(0), 0);
    EXPECT_INT(world_copy_async(device, host, BYTES, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
}

static void captured(void)
{
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_touch(stream, 0, FIRST, device), 0);
    EXPECT_INT(synchronize(stream), 0);
    bytes_of(host)[0] = 0;
    EXPECT_INT(world_capture_begin(stream, WORLD_RELAXED), 0);
    EXPECT_INT(world_copy_async(host, device, BYTES, stream), 0);
    EXPECT_INT(world_capture_end(stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(bytes_of(host)[0], 0);
}

static void beside_a_capture(void)
{
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    const uint64_t stream = new_stream(BLOCKING);
    EXPECT_INT(world_capture_begin(stream, WORLD_RELAXED), 0);
    EXPECT_INT(world_copy(device, host, BYTES), 906);
    EXPECT(is_invalidated(stream));
    EXPECT_INT(world_capture_end(stream), 901);
}

static void over_the_end(void)
{
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    EXPECT_INT(world_copy(device + ENOUGH - BYTES, host, BYTES), 0);
    EXPECT_INT(world_copy(device + ENOUGH - BYTES + 1, host, BYTES), 1);
}

static void host_function(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(world_host_function(stream, SECOND), 0);
    EXPECT_INT(world_launch(stream, 0, THIRD), 0);
    EXPECT(held(SECOND));
    EXPECT(follows(SECOND, FIRST, stream));
    EXPECT(world_saw(THIRD, SECOND));
}

static void captured_host_function(void)
{
    const uint64_t stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_capture_begin(stream, WORLD_RELAXED), 0);
    EXPECT_INT(world_host_function(stream, FIRST), 0);
    EXPECT_INT(world_capture_end(stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(!world_ran(FIRST));
}

/* The slots of the table. Each is queued behind a kernel that is held back. */
static void slot_copy(void)
{
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    const uint64_t stream = new_stream(NONBLOCKING);
    bytes_of(host)[0] = 0;
    EXPECT_INT(world_touch(stream, GATE, FIRST, device), 0);
    EXPECT_INT(cuda->copy_async(cuda->self, host, device, BYTES, stream), 0);
    EXPECT(held(FIRST));
    EXPECT_INT(bytes_of(host)[0], 0);
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(bytes_of(host)[0], 1);
}

/* Two planes of three rows of five bytes, to and fro, with other pitches and heights at both ends. Byte n of
 * the rows has the value n + 1. */
static void slot_copy_3d(void)
{
    enum { WIDTH = 5, HEIGHT = 3, DEPTH = 2, PITCH = 16, ROWS = 4 };
    const uint64_t device = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    const uint64_t stream = new_stream(NONBLOCKING);
    const cai_cuda_copy out = {device, host, 64, PITCH, 7, ROWS, WIDTH, HEIGHT, DEPTH};
    const cai_cuda_copy back = {host, device, PITCH, 64, ROWS, 7, WIDTH, HEIGHT, DEPTH};
    int32_t i, good = 0;
    memset(bytes_of(host), 0, BYTES);
    for (i = 0; i < WIDTH * HEIGHT * DEPTH; i++)
        bytes_of(host)[i / WIDTH % HEIGHT * PITCH + i / (WIDTH * HEIGHT) * ROWS * PITCH + i % WIDTH] =
            (unsigned char)(i + 1);
    EXPECT_INT(cuda->copy_3d_async(cuda->self, &out, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    memset(bytes_of(host), 99, BYTES);
    EXPECT_INT(cuda->copy_3d_async(cuda->self, &back, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    for (i = 0; i < PITCH * ROWS * DEPTH; i++) {
        const int32_t x = i % PITCH, y = i / PITCH % ROWS, z = i / (PITCH * ROWS);
        const int inside = x < WIDTH && y < HEIGHT;
        good += bytes_of(host)[i] == (inside ? z * WIDTH * HEIGHT + y * WIDTH + x + 1 : 99);
    }
    EXPECT_INT(good, PITCH * ROWS * DEPTH);
}

static void slot_set(void)
{
    const uint64_t memory = new_memory(WORLD_PINNED), stream = new_stream(NONBLOCKING);
    bytes_of(memory)[0] = bytes_of(memory)[3] = 9;
    EXPECT_INT(spin(stream, FIRST), 0);
    EXPECT_INT(cuda->set_async(cuda->self, memory, 0x107, 3, stream), 0);
    EXPECT(held(FIRST));
    EXPECT_INT(bytes_of(memory)[0], 9);
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(bytes_of(memory)[0], 7);
    EXPECT_INT(bytes_of(memory)[2], 7);
    EXPECT_INT(bytes_of(memory)[3], 9);
}

static void slot_set_2d(void)
{
    const uint64_t memory = new_memory(WORLD_PINNED), stream = new_stream(NONBLOCKING);
    memset(bytes_of(memory), 9, 64);
    EXPECT_INT(cuda->set_2d_async(cuda->self, memory, 16, 7, 3, 2, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(bytes_of(memory)[0] == 7 && bytes_of(memory)[2] == 7 && bytes_of(memory)[3] == 9);
    EXPECT(bytes_of(memory)[16] == 7 && bytes_of(memory)[18] == 7 && bytes_of(memory)[19] == 9);
    EXPECT(bytes_of(memory)[15] == 9 && bytes_of(memory)[32] == 9);
}

/* Memory of a pool of device 1, which device 0 cannot access; and the primary contexts of both. Device 1 is
 * current then. 0: the rule failed, or is skipped. */
static uint64_t memory_of_a_pool(uint64_t *pool, uint64_t contexts[2])
{
    uint64_t address = 0;
    *pool = world_pool_create(1);
    if (!*pool) rule_skip("no pools here");
    else if (!rule_expect_int(__FILE__, __LINE__, "choosing device 1", world_set_device(1), 0) ||
             !rule_expect_int(__FILE__, __LINE__, "the context of device 0",
                              cuda->device_context(cuda->self, 0, &contexts[0]), 0) ||
             !rule_expect_int(__FILE__, __LINE__, "the context of device 1",
                              cuda->device_context(cuda->self, 1, &contexts[1]), 0) ||
             !rule_expect_int(__FILE__, __LINE__, "an allocation from a pool",
                              world_pool_alloc(*pool, ENOUGH, CAI_STREAM_LEGACY, &address), 0) ||
             !rule_expect_int(__FILE__, __LINE__, "waiting", synchronize(CAI_STREAM_LEGACY), 0))
        return 0;
    return address;
}

static int32_t give_back(uint64_t memory, uint64_t pool)
{
    int32_t error = world_set_device(1);
    if (!error) error = world_pool_free(memory, CAI_STREAM_LEGACY);
    if (!error) error = synchronize(CAI_STREAM_LEGACY);
    if (!error) error = world_pool_destroy(pool);
    return error ? error : world_set_device(0);
}

/* A kernel of device 1 writes 1, which the copy brings to device 0. */
static void slot_copy_peer(void)
{
    const uint64_t here = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    uint64_t pool, contexts[2] = {0, 0}, stream;
    const uint64_t there = memory_of_a_pool(&pool, contexts);
    if (!there) return;
    bytes_of(host)[0] = 0;
    stream = new_stream(NONBLOCKING);
    EXPECT_INT(world_touch(stream, GATE, FIRST, there), 0);
    EXPECT_INT(cuda->copy_peer_async(cuda->self, here, contexts[0], there, contexts[1], BYTES, stream), 0);
    EXPECT_INT(world_set_device(0), 0);
    EXPECT(held(FIRST));
    world_set(GATE);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_copy(host, here, BYTES), 0);
    EXPECT_INT(bytes_of(host)[0], 1);
    EXPECT_INT(give_back(there, pool), 0);
}

/* Two planes of two rows of three bytes. */
static void slot_copy_3d_peer(void)
{
    enum { WIDTH = 3, PITCH = 8, ROWS = 3, PLANE = PITCH * ROWS };
    const uint64_t here = new_memory(WORLD_DEVICE), host = new_memory(WORLD_PINNED);
    const uint64_t stream = new_stream(NONBLOCKING);
    uint64_t there, contexts[2] = {0, 0};
    cai_cuda_copy rows = {0, 0, PITCH, 16, ROWS, 2, WIDTH, 2, 2};
    int32_t i, good = 0;
    EXPECT_INT(world_set_device(1), 0);
    there = new_memory(WORLD_DEVICE);
    for (i = 0; i < 2; i++) EXPECT_INT(cuda->device_context(cuda->self, i, &contexts[i]), 0);
    for (i = 0; i < 64; i++) bytes_of(host)[i] = (unsigned char)(i + 1);
    EXPECT_INT(world_copy(there, host, 64), 0);
    EXPECT_INT(world_set_device(0), 0);
    EXPECT_INT(world_fill(here, 99, 2 * PLANE), 0);
    EXPECT_INT(synchronize(CAI_STREAM_LEGACY), 0);
    rows.to = here;
    rows.from = there;
    EXPECT_INT(cuda->copy_3d_peer_async(cuda->self, &rows, contexts[0], contexts[1], stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_copy(host, here, 2 * PLANE), 0);
    for (i = 0; i < 2 * PLANE; i++) {
        const int32_t x = i % PITCH, y = i / PITCH % ROWS, z = i / PLANE;
        good += bytes_of(host)[i] == (x < WIDTH && y < 2 ? 32 * z + 16 * y + x + 1 : 99);
    }
    EXPECT_INT(good, 2 * PLANE);
}

static void copy_without_access(void)
{
    const uint64_t here = new_memory(WORLD_DEVICE), stream = new_stream(NONBLOCKING);
    uint64_t pool, contexts[2] = {0, 0};
    const uint64_t there = memory_of_a_pool(&pool, contexts);
    int32_t error;
    if (!there) return;
    EXPECT_INT(world_set_device(0), 0);
    error = cuda->copy_async(cuda->self, here, there, BYTES, stream);
    EXPECT(error == 0 || error == 1);
    EXPECT_INT(synchronize(stream), 0);
    ANSWER(error);
    EXPECT_INT(give_back(there, pool), 0);
}

static void peer_without_context(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE), stream = new_stream(NONBLOCKING);
    uint64_t context = 0;
    EXPECT_INT(cuda->device_context(cuda->self, 0, &context), 0);
    EXPECT_INT(cuda->copy_peer_async(cuda->self, memory, context, memory + BYTES, 0, BYTES, stream), 0);
    EXPECT_INT(cuda->copy_peer_async(cuda->self, memory, 0, memory + BYTES, context, BYTES, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
}

static void peer_of_another_device(void)
{
    const uint64_t memory = new_memory(WORLD_DEVICE), stream = new_stream(NONBLOCKING);
    uint64_t contexts[2] = {0, 0};
    EXPECT_INT(world_set_device(1), 0);
    EXPECT_INT(cuda->device_context(cuda->self, 0, &contexts[0]), 0);
    EXPECT_INT(cuda->device_context(cuda->self, 1, &contexts[1]), 0);
    EXPECT_INT(world_set_device(0), 0);
    EXPECT_INT(
        cuda->copy_peer_async(cuda->self, memory, contexts[1], memory + BYTES, contexts[0], BYTES, stream), 1);
}

const rule rules_of_copies[] = {
    {"T01", "an asynchronous copy from pinned to device memory does not make the host wait",
     PAGE "Memcpy, asynchronous 4", RULE_DOCUMENTED, 0, async_to_device},
    {"T02", "an asynchronous copy from device to pinned memory does not make the host wait",
     PAGE "Memcpy, asynchronous 4", RULE_DOCUMENTED, 0, async_to_pinned},
    {"T03", "a synchronous copy from device to device memory does not make the host wait",
     PAGE "Memcpy, synchronous 4", RULE_DOCUMENTED, 0, device_to_device},
    {"T04", "a synchronous copy from device to pinned memory returns when it is done",
     PAGE "Memcpy, synchronous 3", RULE_DOCUMENTED, 0, device_to_pinned},
    {"T05", "a synchronous copy from device to pageable memory returns when it is done",
     PAGE "Memcpy, synchronous 3", RULE_DOCUMENTED, 0, device_to_pageable},
    {"T06", "a synchronous copy from pinned to device memory waits for its stream",
     PAGE "Memcpy, synchronous 2", RULE_DOCUMENTED, 0, pinned_to_device},
    {"T07", "a synchronous copy from pageable to device memory waits for its stream",
     PAGE "Memcpy, synchronous 1", RULE_DOCUMENTED, 0, pageable_to_device},
    {"T08", "an asynchronous copy between host memory is synchronous", PAGE "Memcpy, asynchronous 2",
     RULE_DOCUMENTED, 0, async_host_to_host},
    {"T09", "an asynchronous copy from pageable memory, with work before it in the stream",
     PAGE "Memcpy, asynchronous 1 (\"might be synchronous\")", RULE_DOCUMENTED, 0, async_from_pageable},
    {"T10", "an asynchronous copy to pageable memory, with work before it in the stream",
     PAGE "Memcpy, asynchronous 1 (\"might be synchronous\")", RULE_DOCUMENTED, 0, async_to_pageable},
    {"T11", "a synchronous copy from managed to device memory, with work before it in the stream",
     PAGE "which says nothing of managed memory; up to CUDA 11.1 \"fully synchronous\"", RULE_DOCUMENTED, 0,
     managed_to_device},
    {"T12", "a synchronous fill of device memory does not make the host wait", PAGE "Memset",
     RULE_DOCUMENTED, 0, fill_of_device},
    {"T13", "a synchronous fill of pinned memory waits for its stream", PAGE "Memset", RULE_DOCUMENTED, 0,
     fill_of_pinned},
    {"T14", "a synchronous fill of managed memory waits for its stream", PAGE "Memset", RULE_DOCUMENTED, 0,
     fill_of_managed},
    {"T15", "an asynchronous fill does not make the host wait, also of pinned memory", PAGE "Memset",
     RULE_DOCUMENTED, 0, async_fill},
    {"T16", "a copy comes after the work before it in its stream, and before the work after it",
     "CUDA Programming Guide, Streams (\"execute in order\")", RULE_DOCUMENTED, 0, order_of_stream},
    {"T17", "a copy can be queued in a stream of another device than the current one",
     "CUDA Programming Guide, Stream and Event Behavior", RULE_DOCUMENTED, NEEDS_DEVICES,
     stream_of_another_context},
    {"T18", "an asynchronous copy in a capture does not run", "CUDA Programming Guide, Stream Capture",
     RULE_DOCUMENTED, 0, captured},
    {"T19", "a synchronous copy while a blocking stream captures is 906, and invalidates the capture",
     "CUDA Programming Guide, Prohibited and Unhandled Operations (\"synchronous APIs\")",
     RULE_DOCUMENTED, 0, beside_a_capture},
    {"T20", "a copy over the end of an allocation is 1", "not said", RULE_OBSERVED, 0, over_the_end},
    {"T21", "a host function comes after the work before it in its stream, and before the work after it",
     "CUDA Driver API, cuLaunchHostFunc", RULE_DOCUMENTED, 0, host_function},
    {"T22", "a host function in a capture is not called", "CUDA Programming Guide, Stream Capture",
     RULE_DOCUMENTED, 0, captured_host_function},
    {"T23", "copy_async is in the order of its stream, and the host does not wait", PAGE "Memcpy, asynchronous 4",
     RULE_DOCUMENTED, 0, slot_copy},
    {"T24", "copy_3d_async copies rows of planes, and nothing between them", "CUDA Driver API, cuMemcpy3D",
     RULE_DOCUMENTED, 0, slot_copy_3d},
    {"T25", "set_async stores the lowest byte of the value, in the order of its stream", PAGE "Memset",
     RULE_DOCUMENTED, 0, slot_set},
    {"T26", "set_2d_async fills rows, and nothing between them", "CUDA Driver API, cuMemsetD2D8",
     RULE_DOCUMENTED, 0, slot_set_2d},
    {"T27", "copy_peer_async is in the order of its stream, and needs no access to the pool of the memory",
     SENSITIVITY " (\"the device primary contexts specified in the API are referenced\")", RULE_DOCUMENTED,
     NEEDS_DEVICES, slot_copy_peer},
    {"T28", "copy_3d_peer_async copies rows of planes to another device, and nothing between them",
     "CUDA Driver API, cuMemcpy3DPeerAsync", RULE_DOCUMENTED, NEEDS_DEVICES, slot_copy_3d_peer},
    {"T29", "copy_async of memory of a pool that the device of the stream cannot access",
     SENSITIVITY ", which does not say; ggml-org/llama.cpp pull request 4620", RULE_DOCUMENTED, NEEDS_DEVICES,
     copy_without_access},
    {"T30", "a copy between devices with 0 as a context takes that of the memory",
     "CUDA Driver API, cuMemcpyPeerAsync (lists it)", RULE_OBSERVED, 0, peer_without_context},
    {"T31", "a copy between devices with the context of another device than that of the memory is 1",
     "not said", RULE_OBSERVED, NEEDS_DEVICES, peer_of_another_device},
    {NULL, NULL, NULL, 0, 0, NULL}};
