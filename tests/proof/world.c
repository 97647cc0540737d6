/* world.c - what the programs of the proof are made of
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "programs.h"

static int within(char letter, char first, char last) { return letter >= first && letter <= last; }

/* In the second context of device 0? */
static int in_second(char letter) { return within(letter, 'u', 'w') || letter == 'k'; }

void proof_good(proof_world *world, cai_status status, const char *what)
{
    char text[120];
    if (!status) return;
    (void)snprintf(text, sizeof text, "%s: status %d", what, (int)status);
    cai_check_fail(world->sim, text);
}

void proof_zero(proof_world *world, int32_t error, const char *what)
{
    char text[120];
    if (!error) return;
    (void)snprintf(text, sizeof text, "%s: CUDA error %d", what, (int)error);
    cai_check_fail(world->sim, text);
}

/* A dead handle is told at the end, so that what comes of it shows before. */
static void undefined_found(void *context, const cai_sim_undefined *what)
{
    proof_world *world = (proof_world *)context;
    if (!world->undefined[0]) (void)snprintf(world->undefined, sizeof world->undefined, "%s", what->text);
}

void proof_open(proof_world *world, cai_sim *sim, int32_t capacity)
{
    memset(world, 0, sizeof *world);
    cai_sim_on_undefined(sim, undefined_found, world);
    /* The order of queued work is cai_check's: a query that lets some of it run would leave no choice. */
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS);
    world->sim = sim;
    world->cuda = cai_sim_cuda(sim);
    world->contexts[0] = cai_sim_primary(sim, 0);
    world->contexts[1] = cai_sim_primary(sim, 1);
    proof_good(world,
               cai_event_pool_init(&world->pool, world->cuda, capacity ? world->places : NULL, capacity, 0,
                                   NULL),
               "cai_event_pool_init");
}

void proof_close(proof_world *world)
{
    int32_t i;
    proof_good(world, cai_event_pool_destroy(&world->pool, NULL), "cai_event_pool_destroy");
    for (i = 0; i < world->stream_count; i++) { /* what a destroyed context has queued does not run */
        if (in_second(world->letters[i])) proof_wait(world, world->letters[i]);
    }
    for (i = 0; i < world->stream_count; i++) {
        if (world->streams[i] > 2)
            proof_zero(world, cai_sim_stream_destroy(world->sim, world->streams[i]), "stream_destroy");
    }
    if (world->contexts[2])
        proof_zero(world, cai_sim_context_destroy(world->sim, world->contexts[2]), "context_destroy");
    if (world->undefined[0]) cai_check_fail(world->sim, world->undefined);
    cai_sim_on_undefined(world->sim, NULL, NULL);
}

/* ------------------------------------------------------------------ letters */

uint64_t proof_context(const proof_world *world, char letter)
{
    if (in_second(letter)) return world->contexts[2];
    return world->contexts[within(letter, 'a', 'z')];
}

uint64_t proof_current(proof_world *world, char letter)
{
    const uint64_t before = cai_sim_current(world->sim);
    if (in_second(letter) && !world->contexts[2])
        world->contexts[2] = cai_sim_context_create(world->sim, 0);
    if (proof_context(world, letter) != before)
        proof_zero(world, cai_sim_set_context(world->sim, proof_context(world, letter)), "set_context");
    return before;
}

void proof_restore(proof_world *world, uint64_t context)
{
    if (context != cai_sim_current(world->sim))
        proof_zero(world, cai_sim_set_context(world->sim, context), "set_context");
}

uint64_t proof_stream(proof_world *world, char letter)
{
    const int blocking = within(letter, 'A', 'J') || within(letter, 'x', 'z');
    uint64_t stream, before;
    int32_t i;
    if (letter == 'L' || letter == 'l' || letter == 'k') return CAI_STREAM_LEGACY;
    if (letter == 'P' || letter == 'p') return CAI_STREAM_PER_THREAD;
    for (i = 0; i < world->stream_count; i++) {
        if (world->letters[i] == letter) return world->streams[i];
    }
    before = proof_current(world, letter);
    stream = cai_sim_stream_create(world->sim, !blocking);
    proof_restore(world, before);
    world->letters[world->stream_count] = letter;
    world->streams[world->stream_count++] = stream;
    return stream;
}

void proof_drop(proof_world *world, char letter)
{
    int32_t i;
    for (i = 0; i < world->stream_count && world->letters[i] != letter; i++) {}
    if (i == world->stream_count || in_second(letter)) return;
    proof_zero(world, cai_sim_stream_destroy(world->sim, world->streams[i]), "stream_destroy");
    world->streams[i] = world->streams[--world->stream_count];
    world->letters[i] = world->letters[world->stream_count];
}

/* ------------------------------------------------------------------- arrays */

uint64_t proof_memory_of(proof_world *world, char letter, int32_t kind)
{
    const uint64_t before = proof_current(world, letter);
    const uint64_t memory = cai_sim_alloc(world->sim, kind, PROOF_BYTES);
    proof_restore(world, before);
    if (!memory) cai_check_fail(world->sim, "no memory");
    return memory;
}

void proof_array(proof_world *world, cai_array *array, uint64_t memory)
{
    const int64_t extent = PROOF_BYTES / 4;
    proof_good(world,
               cai_array_init(array, CAI_FLOAT32, 1, &extent, NULL, cai_sim_bytes(world->sim, memory), NULL),
               "cai_array_init");
    array->sync = CAI_SYNC_NONE;
}

cai_sim_access proof_reads(const cai_array *array) { return cai_sim_reads(array->data, PROOF_BYTES); }

cai_sim_access proof_writes(const cai_array *array) { return cai_sim_writes(array->data, PROOF_BYTES); }

/* --------------------------------------------------------------------- work */

void proof_touch_stream(proof_world *world, uint64_t stream, const char *name, const cai_sim_access *accesses,
                        int32_t count)
{
    /* An error is what comes of an order that is missing; it is in the fingerprint. */
    (void)cai_sim_touch(world->sim, stream, name, accesses, count);
}

void proof_touch(proof_world *world, char letter, const char *name, const cai_sim_access *accesses,
                 int32_t count)
{
    const uint64_t stream = proof_stream(world, letter), before = proof_current(world, letter);
    proof_touch_stream(world, stream, name, accesses, count);
    proof_restore(world, before);
}

void proof_write(proof_world *world, char letter, const char *name, const cai_array *array)
{
    const cai_sim_access access = proof_writes(array);
    proof_touch(world, letter, name, &access, 1);
}

void proof_read(proof_world *world, char letter, const char *name, const cai_array *array)
{
    const cai_sim_access access = proof_reads(array);
    proof_touch(world, letter, name, &access, 1);
}

void proof_wait(proof_world *world, char letter)
{
    const uint64_t stream = proof_stream(world, letter), before = proof_current(world, letter);
    (void)cai_sim_stream_synchronize(world->sim, stream);
    proof_restore(world, before);
}

/* ------------------------------------------------------------------- owners */

static void free_memory(proof_owner *owner, cai_array *array)
{
    proof_world *world = owner->world;
    if (owner->overwrite) {
        proof_write(world, owner->letter, "overwrite", array);
    } else if (!owner->letter) {
        (void)cai_sim_free(world->sim, owner->memory);
    } else {
        const uint64_t stream = proof_stream(world, owner->letter);
        const uint64_t before = proof_current(world, owner->letter);
        (void)world->cuda->memory_free_async(world->cuda->self, owner->memory, stream);
        proof_restore(world, before);
    }
}

static void proof_released(cai_array *array)
{
    proof_owner *owner = (proof_owner *)array->owner;
    array->release = NULL;
    owner->released = 1;
    free_memory(owner, array);
    if (owner->drops) proof_drop(owner->world, owner->drops);
}

void proof_own(proof_owner *owner, cai_array *array, proof_world *world, uint64_t memory, char letter)
{
    owner->world = world;
    owner->memory = memory;
    owner->letter = letter;
    owner->overwrite = owner->released = 0;
    owner->drops = 0;
    if (letter) array->flags |= CAI_ORDERED_FREE;
    cai_array_own(array, proof_released, owner);
}

void proof_free(proof_world *world, uint64_t memory, char letter)
{
    if (letter) proof_wait(world, letter);
    (void)cai_sim_free(world->sim, memory);
}

/* ---------------------------------------------------------------- exchanges */

void proof_export(proof_world *world, cai_array *array, char letter)
{
    const uint64_t stream = proof_stream(world, letter), before = proof_current(world, letter);
    proof_good(world, cai_stream_export(array, &world->pool, stream, NULL, 0, NULL), "cai_stream_export");
    proof_restore(world, before);
}

/* Begins, and uses the array; false: it was not begun. */
static int begin_and_use(proof_world *world, cai_exchange *ex, cai_array *const *list, uint64_t stream,
                         const char *name, int32_t writes)
{
    const cai_sim_access access = writes ? proof_writes(list[0]) : proof_reads(list[0]);
    const cai_status status = cai_exchange_begin(ex, &world->pool, list, 1, stream, NULL);
    proof_good(world, status, "cai_exchange_begin");
    proof_touch_stream(world, stream, name, &access, 1);
    return !status;
}

void proof_exchange(proof_world *world, cai_array *array, char letter, const char *name, int32_t writes)
{
    const uint64_t stream = proof_stream(world, letter), before = proof_current(world, letter);
    cai_array *list[1];
    cai_exchange ex;
    list[0] = array;
    if (begin_and_use(world, &ex, list, stream, name, writes))
        proof_good(world, cai_exchange_end(&ex, CAI_OK, NULL), "cai_exchange_end");
    proof_restore(world, before);
}

void proof_finish(proof_world *world, cai_array *array, char letter, const char *name)
{
    const uint64_t stream = proof_stream(world, letter), before = proof_current(world, letter);
    cai_array *list[1];
    cai_exchange ex;
    list[0] = array;
    if (begin_and_use(world, &ex, list, stream, name, 1))
        proof_good(world, cai_exchange_finish(&ex, CAI_OK, list, 1, NULL), "cai_exchange_finish");
    proof_restore(world, before);
}
