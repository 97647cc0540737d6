/* rules_pools.c - pools of memory in the order of streams, and virtual memory.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

#define GUIDE "CUDA Programming Guide, Stream-Ordered Memory Allocator, "

enum { ALL = -1 }; /* a threshold */
enum { FOLLOW_EVENTS = 1, OPPORTUNISTIC, INTERNAL_WAITS, THRESHOLD, RESERVED, RESERVED_HIGH, USED };

/* ---------------------------------------------------------------- small steps */
static uint64_t new_pool(void)
{
    const uint64_t pool = world_pool_create(0);
    if (pool == 0) rule_skip("no pools");
    return pool;
}

/* In a stream; 0: the rule failed. */
static uint64_t take(uint64_t pool, uint64_t stream)
{
    uint64_t address = 0;
    const int32_t error = world_pool_alloc(pool, ENOUGH, stream, &address);
    return rule_expect_int(__FILE__, __LINE__, "an allocation from a pool", error, 0) ? address : 0;
}

static int64_t value_of(uint64_t pool, int32_t attribute)
{
    uint64_t value = 0;
    return world_pool_get(pool, attribute, &value) ? -1 : (int64_t)value;
}

/* Allocates, frees and waits for it. */
static int32_t take_and_give(uint64_t pool, uint64_t stream)
{
    const uint64_t memory = take(pool, stream);
    const int32_t error = world_pool_free(memory, stream);
    return error ? error : synchronize(stream);
}

/* ---------------------------------------------------------------------- pools */
static void default_stays(void)
{
    const uint64_t pool = new_pool();
    if (!pool) return;
    EXPECT(world_pool_destroy(world_pool_default(0)) != 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void current_pool_destroyed(void)
{
    const uint64_t pool = new_pool();
    if (!pool) return;
    EXPECT(world_pool_current(0) == world_pool_default(0));
    EXPECT_INT(world_pool_set_current(0, pool), 0);
    EXPECT(world_pool_current(0) == pool);
    EXPECT_INT(world_pool_destroy(pool), 0);
    EXPECT(world_pool_current(0) == world_pool_default(0));
}

static void pool_of_another_device(void)
{
    const uint64_t pool = new_pool();
    if (!pool) return;
    EXPECT(world_pool_set_current(1, pool) != 0);
    EXPECT(world_pool_current(1) == world_pool_default(1));
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void from_the_current_pool(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING);
    uint64_t memory = 0;
    if (!pool) return;
    EXPECT_INT(world_pool_set_current(0, pool), 0);
    EXPECT_INT(cuda->memory_alloc_async(cuda->self, &memory, ENOUGH, stream), 0);
    EXPECT_INT(value_of(pool, USED), ENOUGH);
    EXPECT_INT(world_pool_free(memory, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void held_below_threshold(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING);
    if (!pool) return;
    EXPECT_INT(world_pool_set(pool, THRESHOLD, (uint64_t)ALL), 0);
    EXPECT_INT(take_and_give(pool, stream), 0);
    EXPECT(value_of(pool, RESERVED) >= ENOUGH);
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void released_above_threshold(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING);
    if (!pool) return;
    EXPECT_INT(value_of(pool, THRESHOLD), 0);
    EXPECT_INT(take_and_give(pool, stream), 0);
    EXPECT_INT(synchronize_context(), 0);
    EXPECT_INT(value_of(pool, RESERVED), 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void trim(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING);
    uint64_t memory;
    if (!pool) return;
    EXPECT_INT(world_pool_set(pool, THRESHOLD, (uint64_t)ALL), 0);
    memory = take(pool, stream);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_pool_trim(pool, 0), 0);
    EXPECT(value_of(pool, RESERVED) >= ENOUGH); /* it is in use */
    EXPECT_INT(world_pool_free(memory, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT_INT(world_pool_trim(pool, ENOUGH), 0);
    EXPECT(value_of(pool, RESERVED) >= ENOUGH);
    EXPECT_INT(world_pool_trim(pool, 0), 0);
    EXPECT_INT(value_of(pool, RESERVED), 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void high_watermark(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING);
    if (!pool) return;
    EXPECT_INT(take_and_give(pool, stream), 0);
    EXPECT(value_of(pool, RESERVED_HIGH) >= ENOUGH);
    EXPECT(world_pool_set(pool, RESERVED_HIGH, 1) != 0);
    EXPECT_INT(world_pool_set(pool, RESERVED_HIGH, 0), 0);
    EXPECT(value_of(pool, RESERVED_HIGH) == value_of(pool, RESERVED));
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void memory_of_a_destroyed_pool(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING);
    uint64_t memory;
    if (!pool) return;
    memory = take(pool, stream);
    EXPECT_INT(world_pool_destroy(pool), 0);
    EXPECT_INT(world_touch(stream, 0, FIRST, memory), 0);
    EXPECT_INT(world_pool_free(memory, stream), 0);
    EXPECT_INT(synchronize(stream), 0);
    EXPECT(world_ran(FIRST));
}

/* ---------------------------------------------------------------------- reuse */
/* Frees in one stream, behind a kernel that is held back, and allocates in another one. 1: it is the same
 * memory; the kernel is still held. */
static int used_again(uint64_t pool, uint64_t freed_in, uint64_t stream, int ordered)
{
    const uint64_t memory = take(pool, freed_in);
    uint64_t again;
    if (!memory || spin(freed_in, FIRST) || world_pool_free(memory, freed_in)) return -1;
    if (ordered && !order(freed_in, stream)) return -1;
    again = take(pool, stream);
    if (!held(FIRST)) return -1;
    world_set(GATE);
    if (!again || world_pool_free(again, stream) || synchronize(stream) || synchronize(freed_in)) return -1;
    return again == memory;
}

static int allow(uint64_t pool, uint64_t events, uint64_t done, uint64_t waits)
{
    return world_pool_set(pool, FOLLOW_EVENTS, events) == 0 &&
           world_pool_set(pool, OPPORTUNISTIC, done) == 0 && world_pool_set(pool, INTERNAL_WAITS, waits) == 0;
}

static void again_in_the_stream(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING);
    int again;
    if (!pool) return;
    again = used_again(pool, stream, stream, 0);
    EXPECT(again >= 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
    ANSWER(again);
}

static void again_behind_an_event(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    int again;
    if (!pool) return;
    EXPECT(allow(pool, 1, 0, 0));
    again = used_again(pool, stream, other, 1);
    EXPECT(again >= 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
    ANSWER(again);
}

static void not_behind_an_event(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    if (!pool) return;
    EXPECT(allow(pool, 0, 0, 0));
    EXPECT_INT(used_again(pool, stream, other, 1), 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
}

static void not_without_order(void)
{
    const uint64_t pool = new_pool(), stream = new_stream(NONBLOCKING), other = new_stream(NONBLOCKING);
    if (!pool) return;
    EXPECT(allow(pool, 1, 1, 0));
    EXPECT_INT(used_again(pool, stream, other, 0), 0);
    EXPECT_INT(world_pool_destroy(pool), 0);
}

/* ------------------------------------------------------------- virtual memory */
static uint64_t addresses, physical; /* room for two, and memory for one */

/* Two halves of addresses, memory in the first one. 0: the rule is over. */
static int begin_virtual(void)
{
    const int32_t error = world_reserve(2 * ENOUGH, &addresses);
    if (error == WORLD_NO_SUCH_MEMORY) {
        rule_skip("no virtual memory");
        return 0;
    }
    return rule_expect_int(__FILE__, __LINE__, "a reservation", error, 0) &&
           rule_expect_int(__FILE__, __LINE__, "memory", world_create(ENOUGH, &physical), 0) &&
           rule_expect_int(__FILE__, __LINE__, "a mapping", world_map(addresses, ENOUGH, physical), 0);
}

static void end_virtual(void)
{
    EXPECT_INT(world_unmap(addresses, ENOUGH), 0);
    EXPECT_INT(world_release(physical), 0);
    EXPECT_INT(world_unreserve(addresses, 2 * ENOUGH), 0);
}

static int32_t touch_and_wait(uint64_t address)
{
    const int32_t error = world_touch(CAI_STREAM_LEGACY, 0, FIRST, address);
    return error ? error : synchronize_context();
}

static void without_access(void)
{
    if (!begin_virtual()) return;
    EXPECT_INT(touch_and_wait(addresses), 700);
}

static void with_access(void)
{
    if (!begin_virtual()) return;
    EXPECT_INT(world_set_access(addresses, ENOUGH, 1), 0);
    EXPECT_INT(touch_and_wait(addresses + ENOUGH - 1), 0);
    end_virtual();
}

static void access_after_unmap(void)
{
    if (!begin_virtual()) return;
    EXPECT_INT(world_set_access(addresses, ENOUGH, 1), 0);
    EXPECT_INT(world_unmap(addresses, ENOUGH), 0);
    EXPECT_INT(world_map(addresses, ENOUGH, physical), 0);
    EXPECT_INT(touch_and_wait(addresses), 700);
}

static void part_of_a_mapping(void)
{
    if (!begin_virtual()) return;
    EXPECT(world_unmap(addresses, ENOUGH / 2) != 0);
    end_virtual();
}

static void mapped_twice(void)
{
    if (!begin_virtual()) return;
    EXPECT(world_map(addresses, ENOUGH, physical) != 0);
    end_virtual();
}

static void access_over_the_end(void)
{
    if (!begin_virtual()) return;
    EXPECT(world_set_access(addresses, 2 * ENOUGH, 1) != 0);
    end_virtual();
}

static void other_size(void)
{
    if (!begin_virtual()) return;
    EXPECT_INT(world_unmap(addresses, ENOUGH), 0);
    EXPECT(world_unreserve(addresses, ENOUGH) != 0);
    EXPECT_INT(world_release(physical), 0);
    EXPECT_INT(world_unreserve(addresses, 2 * ENOUGH), 0);
}

/* The first byte at an address, or -1. */
static int byte_at(uint64_t address)
{
    const uint64_t host = new_memory(WORLD_PINNED);
    if (!host || world_copy(host, address, 1)) return -1;
    return *(unsigned char *)(uintptr_t)host;
}

static void moved(void)
{
    if (!begin_virtual()) return;
    EXPECT_INT(world_set_access(addresses, ENOUGH, 1), 0);
    EXPECT_INT(touch_and_wait(addresses), 0);
    EXPECT_INT(world_unmap(addresses, ENOUGH), 0);
    addresses += ENOUGH;
    EXPECT_INT(world_map(addresses, ENOUGH, physical), 0);
    EXPECT_INT(world_set_access(addresses, ENOUGH, 1), 0);
    EXPECT_INT(byte_at(addresses), 1);
    EXPECT_INT(world_unmap(addresses, ENOUGH), 0);
    EXPECT_INT(world_release(physical), 0);
    EXPECT_INT(world_unreserve(addresses - ENOUGH, 2 * ENOUGH), 0);
}

static void released_while_mapped(void)
{
    if (!begin_virtual()) return;
    EXPECT_INT(world_set_access(addresses, ENOUGH, 1), 0);
    EXPECT_INT(world_release(physical), 0);
    EXPECT_INT(touch_and_wait(addresses), 0);
    EXPECT_INT(byte_at(addresses), 1);
    EXPECT_INT(world_unmap(addresses, ENOUGH), 0);
    EXPECT_INT(world_unreserve(addresses, 2 * ENOUGH), 0);
}

const rule rules_of_pools[] = {
    {"K01", "the default pool of a device cannot be destroyed",
     "cuMemPoolDestroy (\"A device's default memory pool cannot be destroyed\")", RULE_DOCUMENTED, 0,
     default_stays},
    {"K02", "when the current pool is destroyed the default one is current",
     "cuMemPoolDestroy (\"sets the default mempool of that device as the current mempool\")", RULE_DOCUMENTED,
     0, current_pool_destroyed},
    {"K03", "a pool of another device cannot be the current one",
     "cuDeviceSetMemPool (\"must be local to the specified device\")", RULE_DOCUMENTED, NEEDS_DEVICES,
     pool_of_another_device},
    {"K04", "memory_alloc_async takes from the current pool of the device of the stream",
     "cuDeviceSetMemPool (\"allocates from the current mempool of the provided stream's device\")",
     RULE_DOCUMENTED, 0, from_the_current_pool},
    {"K05", "what is freed stays with the pool up to the release threshold",
     "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD (\"bytes to hold onto\")", RULE_DOCUMENTED, 0, held_below_threshold},
    {"K06", "with the threshold 0 a synchronization leaves nothing with a pool that is not used",
     "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD (\"will try to release\", which promises nothing)", RULE_OBSERVED, 0,
     released_above_threshold},
    {"K07", "a trim releases what is free, and leaves as much as it was told to keep",
     "cuMemPoolTrimTo (\"guaranteed to have at least minBytesToKeep bytes\")", RULE_DOCUMENTED, 0, trim},
    {"K08", "a high watermark can be set to 0 alone", "cuda.h (\"High watermark can only be reset to zero\")",
     RULE_DOCUMENTED, 0, high_watermark},
    {"K09", "memory of a pool that was destroyed is good until it is freed",
     "cuMemPoolDestroy (\"once there are no more outstanding allocations\")", RULE_DOCUMENTED, 0,
     memory_of_a_destroyed_pool},
    {"K10", "an allocation behind a free in the same stream, and whether it is the same memory",
     GUIDE "Memory Reuse Policies (\"attempts to reuse memory\")", RULE_DOCUMENTED, 0, again_in_the_stream},
    {"K11", "an allocation that an event orders behind a free, and whether it is the same memory",
     "CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES (\"Allow\")", RULE_DOCUMENTED, 0,
     again_behind_an_event},
    {"K12", "with all reuse turned off, no event brings memory back whose free is pending",
     "CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES", RULE_DOCUMENTED, 0, not_behind_an_event},
    {"K13", "without internal waits, memory whose free is pending is not used without order",
     "CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES", RULE_DOCUMENTED, 0, not_without_order},
    {"V01", "work on a mapping without access is 700",
     "cuMemMap (\"does not make the address accessible\")", RULE_DOCUMENTED, LEAVES_RUINS, without_access},
    {"V02", "work on a mapping with access runs", "cuMemSetAccess", RULE_DOCUMENTED, 0, with_access},
    {"V03", "access has to be given again to the next mapping",
     "cuMemUnmap (\"all mappings start with no accessibility setup\")", RULE_DOCUMENTED, LEAVES_RUINS,
     access_after_unmap},
    {"V04", "a part of a mapping cannot be unmapped", "cuMemUnmap (\"cannot unmap a sub-range\")",
     RULE_DOCUMENTED, 0, part_of_a_mapping},
    {"V05", "mapped addresses cannot be mapped again",
     "cuMemMap (\"that are not currently mapped\")", RULE_DOCUMENTED, 0, mapped_twice},
    {"V06", "access cannot be given to addresses without a mapping",
     "cuMemSetAccess (\"must be a fully mapped address range\")", RULE_DOCUMENTED, 0, access_over_the_end},
    {"V07", "reserved addresses are given back with the size that they had",
     "cuMemAddressFree (\"The size must match\")", RULE_DOCUMENTED, 0, other_size},
    {"V08", "physical memory keeps its bytes from one mapping to the next",
     "cuMemUnmap (\"freed if there are no existing mappings and there are no unreleased memory handles\")",
     RULE_DOCUMENTED, 0, moved},
    {"V09", "a handle can be released while its memory is mapped",
     "cuMemRelease (\"when there are still outstanding mappings\")", RULE_DOCUMENTED, 0,
     released_while_mapped},
    {NULL, NULL, NULL, 0, 0, NULL}};
