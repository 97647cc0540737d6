/* world.h - what lies below a manager in model.c: a CUDA and tables of hooks that write down every call.
 * SPDX-License-Identifier: MIT
 *
 * A call answers by itself, or fails as the test has planned; the model reads the list of calls afterwards,
 * and takes from it what nobody can predict: addresses, and which call a planned failure struck. The world
 * judges on its own what no hook may ever see: memory freed twice or with another size, the wrong context, a
 * lock that is held, size 0. */
#ifndef EMM_WORLD_H
#define EMM_WORLD_H

#include "sim/cai_sim.h"
#include "cai_manager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation {
    OP_NONE, OP_INITIALIZE, OP_RESET, OP_INFO, OP_DEFER, OP_IPC, OP_DEVICE_ALLOC, OP_DEVICE_FREE,
    OP_HOST_ALLOC, OP_HOST_FREE, OP_PIN, OP_UNPIN, OP_MANAGED_ALLOC, OP_MANAGED_FREE,
    /* CUDA */
    OP_PUSH, OP_POP, OP_RECORD, OP_ORDER, OP_EVENT, OP_STREAM_SYNC, OP_CONTEXT_SYNC,
    OP_CURRENT, OP_CAPTURE, /* queries: written down only if they fail */
    OP_HOST_MEMORY,         /* the manager's allocator: likewise */
    OP_COUNT
};

static const char *const operation_names[OP_COUNT] = {
    "none", "initialize", "reset", "memory_info", "defer", "ipc_handle", "device_alloc", "device_free",
    "host_alloc", "host_free", "pin", "unpin", "managed_alloc", "managed_free", "context_push",
    "context_pop", "event_record", "order", "wait_event", "stream_synchronize", "context_synchronize",
    "context_current", "stream_capture", "host memory"};

/* Where memory comes from: tables of hooks by number, and CUDA's own functions. */
enum { FROM_CUDA = 100, FROM_ASYNC = 101, TABLES = 8 };

/* Results beside error numbers: success that is none. */
enum { GIVES_NULL = -1, GIVES_MISALIGNED = -2 };

typedef struct call {
    int32_t operation, table;
    uint64_t address, size, stream, flags;
    int32_t result;
    uint64_t answer; /* the address that it gave */
} call;

typedef struct fault {
    int32_t operation, after, error;
} fault;

enum { CALLS = 4096, FAULTS = 8, CELLS = 2048, EVENTS = 512, THREADS = 4 };
#define CELL_SIZE 0x20000u
#define FIRST_ADDRESS 0x10000000u
#define OWN_CONTEXT 0x100u
#define OTHER_CONTEXT 0x200u
#define FIRST_EVENT 0x900000u

typedef struct cell {
    int32_t used, table, operation;
    uint64_t address, size;
} cell;

static struct {
    call calls[CALLS];
    int32_t call_count;
    fault faults[FAULTS];
    int32_t fault_count;
    cell cells[CELLS];
    int32_t next_cell;
    uint64_t event_stream[EVENTS]; /* where each was recorded last */
    uint64_t events[EVENTS];
    int32_t event_count;
    int32_t lost_events;           /* not destroyed, as CUDA said that the process ends */
    uint64_t thread;               /* the host thread that is played */
    uint64_t contexts[8];
    int32_t depth, mode;
    uint64_t capturing;            /* a stream, or 0 */
    int64_t host_live, host_bytes; /* of the manager's allocator */
    int64_t wrong;
    const cai_manager *emm;            /* that is called now */
    uint64_t foreign;                  /* a stream of another context */
    uint32_t hidden;                   /* of each push whether it is one that is not compared, the last first */
    cai_sim *sim;
    cai_cuda below;                /* the simulation's table */
    int quiet;
} world;

static void world_wrong(const char *what)
{
    if (world.wrong++ < 5 && !world.quiet) printf("  the world: %s\n", what);
}

/* Writes a call down; gives what was planned for it, 0 else. Queries are written down only if they fail. */
static call *world_call(int32_t operation, int32_t table, uint64_t address, uint64_t size, uint64_t stream,
                        uint64_t flags)
{
    call *c = &world.calls[world.call_count];
    int32_t i, result = 0;
    for (i = 0; i < world.fault_count && !result; i++) {
        if (world.faults[i].operation != operation || --world.faults[i].after) continue;
        result = world.faults[i].error;
        world.faults[i] = world.faults[--world.fault_count];
    }
    if (world.call_count + 1 < CALLS) world.call_count++;
    else world_wrong("more calls than the list takes");
    c->operation = operation;
    c->table = table;
    c->address = address;
    c->size = size;
    c->stream = stream;
    c->flags = flags;
    c->result = result;
    c->answer = 0;
    return c;
}

static int32_t world_query(int32_t operation)
{
    call *c = world_call(operation, 0, 0, 0, 0, 0);
    if (!c->result) world.call_count--;
    return c->result;
}

/* ------------------------------------------------------------------ CUDA */

static uint64_t world_current(void)
{
    uint64_t context = 0;
    if (!world.sim) return world.contexts[world.depth];
    (void)world.below.context_current(world.below.self, &context);
    return context;
}

static uint64_t world_own_context(void) { return world.sim ? cai_sim_primary(world.sim, 0) : OWN_CONTEXT; }

static int32_t cuda_current(void *self, uint64_t *context)
{
    const int32_t error = world_query(OP_CURRENT);
    (void)self;
    if (!error) *context = world_current();
    return error;
}

/* No primary context is active, and no memory is known: streams 1 and 2 are those of the current context. */
static int32_t cuda_primary(void *self, int32_t device, uint64_t *context)
{
    (void)self;
    (void)device;
    *context = 0;
    return 0;
}

static int32_t cuda_pointer(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self;
    (void)pointer;
    memset(info, 0, sizeof *info);
    info->device = CAI_DEVICE_UNKNOWN;
    return 0;
}

static uint64_t world_other_context(void) { return world.sim ? cai_sim_primary(world.sim, 1) : OTHER_CONTEXT; }

static int32_t world_push(uint64_t context)
{
    if (world.sim) return world.below.context_push(world.below.self, context);
    if (world.depth == 7) world_wrong("context_push too often");
    else world.contexts[++world.depth] = context;
    return 0;
}

static int32_t world_pop(void)
{
    if (world.sim) return world.below.context_pop(world.below.self);
    if (world.depth == 0) world_wrong("context_pop too often");
    else world.depth--;
    return 0;
}

/* For a new event, or a wait, in another context than the manager's: such a push is not compared, nor its pop. */
static int32_t cuda_push(void *self, uint64_t context)
{
    const int hidden = context == world_current() || context != world_own_context();
    call *c = NULL;
    (void)self;
    if (!hidden) {
        c = world_call(OP_PUSH, 0, context, 0, 0, 0);
        if (!c->result) c->result = world_push(context);
        if (c->result) return c->result;
    } else if (world_push(context)) world_wrong("a context is not pushed");
    world.hidden = world.hidden << 1 | (uint32_t)hidden;
    return 0;
}

static int32_t cuda_pop(void *self)
{
    call *c;
    (void)self;
    if (world.hidden & 1) {
        world.hidden >>= 1;
        return world_pop();
    }
    c = world_call(OP_POP, 0, 0, 0, 0, 0);
    if (!c->result) c->result = world_pop();
    if (!c->result) world.hidden >>= 1;
    return c->result;
}

static int32_t cuda_context_synchronize(void *self)
{
    const uint64_t now = world_current(), context = now == world_own_context() ? 1 : now == world_other_context() ? 2 : 0;
    call *c = world_call(OP_CONTEXT_SYNC, 0, context, 0, 0, 0);
    (void)self;
    if (world.mode != 2 && !world.sim) world_wrong("context_synchronize without a relaxed capture mode");
    if (!c->result && world.sim) c->result = world.below.context_synchronize(world.below.self);
    return c->result;
}

static int32_t cuda_device(void *self, int32_t *device)
{
    (void)self;
    if (world.sim) return world.below.context_device(world.below.self, device);
    *device = world_current() == OWN_CONTEXT ? 0 : 1;
    return world_current() ? 0 : 201;
}

static int32_t cuda_stream_context(void *self, uint64_t stream, uint64_t *context)
{
    (void)self;
    if (world.sim) return world.below.stream_context(world.below.self, stream, context);
    *context = stream <= 2 ? world_current() : stream == world.foreign ? OTHER_CONTEXT : OWN_CONTEXT;
    return 0;
}

static int32_t cuda_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    const int32_t error = world_query(OP_CAPTURE);
    (void)self;
    if (error) return error;
    if (world.sim) return world.below.stream_capture(world.below.self, stream, capture);
    memset(capture, 0, sizeof *capture);
    if (stream != world.capturing) return 0;
    capture->status = CAI_CAPTURE_ACTIVE;
    capture->id = 7;
    return 0;
}

static int32_t world_event(uint64_t event)
{
    int32_t i;
    for (i = 0; i < world.event_count && world.events[i] != event; i++) {}
    if (i < world.event_count) return i;
    if (world.event_count < EVENTS) world.event_count++;
    else i = 0;
    world.events[i] = event;
    world.event_stream[i] = 0;
    return i;
}

static int32_t cuda_event_create(void *self, uint64_t *event)
{
    static uint64_t made = FIRST_EVENT;
    (void)self;
    if (world.sim) return world.below.event_create(world.below.self, event);
    *event = ++made;
    return 0;
}

static int32_t cuda_event_destroy(void *self, uint64_t event)
{
    const int32_t i = world_event(event);
    (void)self;
    world.events[i] = world.events[--world.event_count];
    world.event_stream[i] = world.event_stream[world.event_count];
    return world.sim ? world.below.event_destroy(world.below.self, event) : 0;
}

/* A record that works is told by the wait for it. */
static int32_t cuda_event_record(void *self, uint64_t event, uint64_t stream)
{
    const int32_t i = world_event(event);
    call *c = world_call(OP_RECORD, 0, 0, 0, stream, 0);
    (void)self;
    if (!c->result && world.sim)
        c->result = world.below.event_record(world.below.self, event, stream);
    if (world.sim && (c->result == 700 || c->result == 719)) /* with its context */
        (void)world.below.event_destroy(world.below.self, event);
    if (c->result) return c->result;
    world.event_stream[i] = stream;
    world.call_count--;
    return 0;
}

static int32_t cuda_wait_event(void *self, uint64_t stream, uint64_t event)
{
    const int32_t i = world_event(event);
    call *c = world.event_stream[i] ? world_call(OP_ORDER, 0, world.event_stream[i], 0, stream, 0)
                                    : world_call(OP_EVENT, 0, event, 0, stream, 0);
    (void)self;
    if (!c->result && world.sim)
        c->result = world.below.stream_wait_event(world.below.self, stream, event);
    return c->result;
}

static int32_t cuda_stream_synchronize(void *self, uint64_t stream)
{
    call *c = world_call(OP_STREAM_SYNC, 0, 0, 0, stream, 0);
    (void)self;
    if (!c->result && world.sim) c->result = world.below.stream_synchronize(world.below.self, stream);
    return c->result;
}

/* All that is queued has passed, so that a poll finds what a drain would. */
static int32_t cuda_event_query(void *self, uint64_t event)
{
    if (world.sim) (void)cai_sim_run(world.sim);
    return world.sim ? world.below.event_query(world.below.self, event) : ((void)self, 0);
}

static int32_t cuda_event_synchronize(void *self, uint64_t event)
{
    return world.sim ? world.below.event_synchronize(world.below.self, event) : ((void)self, 0);
}

static int32_t cuda_mode(void *self, int32_t *mode)
{
    const int32_t before = world.mode;
    (void)self;
    world.mode = *mode;
    if (world.sim) return world.below.capture_mode(world.below.self, mode);
    *mode = before;
    return 0;
}

static int32_t cuda_thread(void *self, uint64_t *thread)
{
    (void)self;
    *thread = world.thread;
    return 0;
}

/* ------------------------------------------------------------------ memory */

static uint64_t world_give(int32_t table, int32_t operation, uint64_t size)
{
    int32_t i;
    for (i = 0; i < CELLS; i++) {
        cell *c = &world.cells[(world.next_cell + i) % CELLS];
        if (c->used) continue;
        c->used = 1;
        c->table = table;
        c->operation = operation;
        c->size = size;
        c->address = FIRST_ADDRESS + (uint64_t)((world.next_cell + i) % CELLS) * CELL_SIZE;
        c->address += (uint64_t)(i % 3) * 256;
        world.next_cell = (world.next_cell + i % 5) % 512; /* addresses come back soon */
        return c->address;
    }
    world_wrong("no more memory");
    return 0;
}

static void world_take(int32_t table, int32_t operation, uint64_t address, uint64_t size)
{
    int32_t i;
    for (i = 0; i < CELLS && !(world.cells[i].used && world.cells[i].address == address); i++) {}
    if (i == CELLS) {
        world_wrong("memory is freed that is not allocated");
        return;
    }
    if (world.cells[i].table != table) world_wrong("memory is freed by another table");
    if (world.cells[i].operation != operation) world_wrong("memory is freed by another hook");
    if (size && world.cells[i].size != size) world_wrong("memory is freed with another size");
    world.cells[i].used = 0;
}

static int32_t world_leaks(int32_t table)
{
    int32_t i, count = 0;
    for (i = 0; i < CELLS; i++) count += world.cells[i].used && (table < 0 || world.cells[i].table == table);
    return count;
}

/* What every call of a hook must be like. */
static void world_judge(int32_t table, uint64_t size)
{
    if (world.emm->guard) world_wrong("a hook is called with the guard held");
    if (world.emm->pool && world.emm->pool->guard) world_wrong("a hook is called with the pool's guard held");
    if (world.emm->pool && world_current() != world_own_context()) world_wrong("a hook has another context");
    if (!size) world_wrong("a hook gets size 0");
    if (table >= FROM_CUDA && table != FROM_ASYNC && world.mode != 2)
        world_wrong("CUDA is called without a relaxed capture mode");
}

/* An allocation, as a hook or as a function of CUDA. In a simulation CUDA's own is the simulation's. */
static int32_t world_alloc(int32_t operation, int32_t table, uint64_t *pointer, uint64_t size,
                           uint64_t stream, uint64_t flags)
{
    call *c = world_call(operation, table, 0, size, stream, flags);
    *pointer = 0x7770; /* not to be looked at if it fails */
    world_judge(table, size);
    if (c->result > 0) return c->result;
    if (c->result == GIVES_NULL) *pointer = 0;
    else *pointer = world_give(table, operation, size) + (c->result == GIVES_MISALIGNED ? 16 : 0);
    if (c->result == GIVES_MISALIGNED) world.cells[(*pointer - FIRST_ADDRESS) / CELL_SIZE].address += 16;
    c->answer = *pointer;
    return 0;
}

static int32_t world_free(int32_t operation, int32_t table, uint64_t address, uint64_t size, uint64_t stream)
{
    call *c = world_call(operation, table, address, size, stream, 0);
    const int32_t allocated_by = operation == OP_DEVICE_FREE && table == FROM_CUDA ? 0 : operation - 1;
    int32_t i;
    world_judge(table, table >= FROM_CUDA ? 1 : size);
    for (i = 0; !allocated_by && i < CELLS; i++) /* cudaFree is for managed memory, too */
        if (world.cells[i].used && world.cells[i].address == address) break;
    world_take(table, allocated_by ? allocated_by : i < CELLS ? world.cells[i].operation : 0, address, size);
    return c->result;
}

#define BELOW(slot, ...) (world.sim ? world.below.slot(world.below.self, __VA_ARGS__) : 0)

/* CUDA's own functions keep to the same cells, so that the model need not tell them from hooks; a simulation
 * is asked as well, with addresses of its own. */
enum { SHADOWS = 4096 };
static struct { uint64_t address, real; } shadows[SHADOWS];

static void shadow_put(uint64_t address, uint64_t real)
{
    int32_t i;
    for (i = 0; i < SHADOWS && shadows[i].address; i++) {}
    if (i == SHADOWS) return;
    shadows[i].address = address;
    shadows[i].real = real;
}

static uint64_t shadow_take(uint64_t address)
{
    int32_t i;
    for (i = 0; i < SHADOWS; i++) {
        if (shadows[i].address != address) continue;
        shadows[i].address = 0;
        return shadows[i].real;
    }
    return 0;
}

static void below_gave(int32_t error, uint64_t address, const uint64_t *real)
{
    if (!world.sim) return;
    if (error) world_wrong("the simulation does not give memory");
    else shadow_put(address, *real);
}

static void below_took(int32_t error)
{
    if (error) world_wrong("the simulation does not take memory back");
}

/* Memory that no call will free any more, as CUDA is gone to those who ask. */
static void world_forget(uint64_t address)
{
    const uint64_t real = shadow_take(address);
    uint64_t current;
    int32_t i;
    for (i = 0; i < CELLS; i++) world.cells[i].used &= world.cells[i].address != address;
    if (!real || !world.sim) return;
    current = world_current();
    (void)cai_sim_set_context(world.sim, world_own_context());
    (void)cai_sim_free(world.sim, real);
    (void)cai_sim_set_context(world.sim, current);
}

static int32_t cuda_memory_alloc(void *self, uint64_t *pointer, uint64_t size)
{
    const int32_t error = world_alloc(OP_DEVICE_ALLOC, FROM_CUDA, pointer, size, 0, 0);
    uint64_t real = 0;
    (void)self;
    if (!error && *pointer) below_gave(BELOW(memory_alloc, &real, size), *pointer, &real);
    return error;
}

static int32_t cuda_memory_free(void *self, uint64_t pointer)
{
    const uint64_t real = shadow_take(pointer);
    (void)self;
    if (real) below_took(BELOW(memory_free, real));
    return world_free(OP_DEVICE_FREE, FROM_CUDA, pointer, 0, 0);
}

static int32_t cuda_memory_alloc_async(void *self, uint64_t *pointer, uint64_t size, uint64_t stream)
{
    const int32_t error = world_alloc(OP_DEVICE_ALLOC, FROM_ASYNC, pointer, size, stream, 0);
    uint64_t real = 0;
    (void)self;
    if (!error && *pointer) below_gave(BELOW(memory_alloc_async, &real, size, stream), *pointer, &real);
    return error;
}

static int32_t cuda_memory_free_async(void *self, uint64_t pointer, uint64_t stream)
{
    const uint64_t real = shadow_take(pointer);
    (void)self;
    /* A reset frees on streams that capture, too; there the simulation has no asynchronous free. */
    if (real && world.capturing == stream) below_took(BELOW(memory_free, real));
    else if (real) below_took(BELOW(memory_free_async, real, stream));
    return world_free(OP_DEVICE_FREE, FROM_ASYNC, pointer, 0, stream);
}

static int32_t cuda_host_alloc(void *self, uint64_t *pointer, uint64_t size, uint32_t flags)
{
    const int32_t error = world_alloc(OP_HOST_ALLOC, FROM_CUDA, pointer, size, 0, flags);
    uint64_t real = 0;
    (void)self;
    if (!error && *pointer) below_gave(BELOW(host_alloc, &real, size, flags), *pointer, &real);
    return error;
}

static int32_t cuda_host_free(void *self, uint64_t pointer)
{
    const uint64_t real = shadow_take(pointer);
    (void)self;
    if (real) below_took(BELOW(host_free, real));
    return world_free(OP_HOST_FREE, FROM_CUDA, pointer, 0, 0);
}

static int32_t cuda_managed_alloc(void *self, uint64_t *pointer, uint64_t size, uint32_t flags)
{
    const int32_t error = world_alloc(OP_MANAGED_ALLOC, FROM_CUDA, pointer, size, 0, flags);
    uint64_t real = 0;
    (void)self;
    if (!error && *pointer) below_gave(BELOW(managed_alloc, &real, size, flags), *pointer, &real);
    return error;
}

/* Pinned memory is somebody else's: only the calls are compared. */
static int32_t cuda_host_register(void *self, uint64_t pointer, uint64_t size, uint32_t flags)
{
    (void)self;
    world_judge(FROM_CUDA, size);
    return world_call(OP_PIN, FROM_CUDA, pointer, size, 0, flags)->result;
}

static int32_t cuda_host_unregister(void *self, uint64_t pointer)
{
    (void)self;
    world_judge(FROM_CUDA, 1);
    return world_call(OP_UNPIN, FROM_CUDA, pointer, 0, 0, 0)->result;
}

enum { TOTAL_BYTES = 100000 };

static int32_t cuda_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const call *c = world_call(OP_INFO, FROM_CUDA, 0, 0, 0, 0);
    (void)self;
    *free_bytes = 5;
    *total_bytes = TOTAL_BYTES;
    return c->result;
}

static int32_t cuda_ipc_export(void *self, uint64_t pointer, void *handle)
{
    const call *c = world_call(OP_IPC, FROM_CUDA, pointer, 0, 0, 0);
    (void)self;
    memset(handle, 9, 64);
    return c->result;
}

static int32_t cuda_pointer_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    (void)self;
    *base = pointer / CELL_SIZE * CELL_SIZE;
    *size = CELL_SIZE;
    return 0;
}

static void world_fill_table(cai_cuda *cuda)
{
    memset(cuda, 0, sizeof *cuda);
    cuda->struct_size = (uint32_t)sizeof *cuda;
    cuda->version = CAI_CUDA_VERSION;
    cuda->context_current = cuda_current;
    cuda->context_push = cuda_push;
    cuda->context_pop = cuda_pop;
    cuda->context_synchronize = cuda_context_synchronize;
    cuda->context_device = cuda_device;
    cuda->device_context = cuda_primary;
    cuda->pointer_info = cuda_pointer;
    cuda->stream_context = cuda_stream_context;
    cuda->stream_capture = cuda_capture;
    cuda->stream_wait_event = cuda_wait_event;
    cuda->stream_synchronize = cuda_stream_synchronize;
    cuda->event_create = cuda_event_create;
    cuda->event_destroy = cuda_event_destroy;
    cuda->event_record = cuda_event_record;
    cuda->event_query = cuda_event_query;
    cuda->event_synchronize = cuda_event_synchronize;
    cuda->capture_mode = cuda_mode;
    cuda->host_thread = cuda_thread;
    cuda->memory_alloc = cuda_memory_alloc;
    cuda->memory_free = cuda_memory_free;
    cuda->memory_alloc_async = cuda_memory_alloc_async;
    cuda->memory_free_async = cuda_memory_free_async;
    cuda->host_alloc = cuda_host_alloc;
    cuda->host_free = cuda_host_free;
    cuda->host_register = cuda_host_register;
    cuda->host_unregister = cuda_host_unregister;
    cuda->managed_alloc = cuda_managed_alloc;
    cuda->memory_info = cuda_memory_info;
    cuda->ipc_export = cuda_ipc_export;
    cuda->pointer_range = cuda_pointer_range;
}

/* ------------------------------------------------------------------ hooks; ctx is the table's number */

static int32_t table_of(const void *ctx) { return *(const int32_t *)ctx; }
static uint64_t number_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static int hook_initialize(void *ctx, int device)
{
    world_judge(0, 1);
    return world_call(OP_INITIALIZE, table_of(ctx), 0, 0, 0, (uint64_t)device)->result;
}

/* The world forgets what the table gave out; without a context that is all that a reset can do. */
static int hook_reset(void *ctx)
{
    const int32_t table = table_of(ctx);
    int32_t i;
    for (i = 0; i < CELLS; i++) world.cells[i].used &= world.cells[i].table != table;
    return world_call(OP_RESET, table, 0, 0, 0, 0)->result;
}

static int hook_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    world_judge(0, 1);
    *free_bytes = 5;
    *total_bytes = TOTAL_BYTES;
    return world_call(OP_INFO, table_of(ctx), 0, 0, 0, 0)->result;
}

static int hook_defer(void *ctx, int on)
{
    world_judge(0, 1);
    return world_call(OP_DEFER, table_of(ctx), 0, 0, 0, (uint64_t)on)->result;
}

static int hook_ipc(void *ctx, void *pointer, void *handle, void **base)
{
    world_judge(0, 1);
    memset(handle, 9, 64);
    *base = (void *)(uintptr_t)(number_of(pointer) / CELL_SIZE * CELL_SIZE);
    return world_call(OP_IPC, table_of(ctx), number_of(pointer), 0, 0, 0)->result;
}

static int alloc_by(int32_t operation, const void *ctx, void **ptr, size_t size, uint64_t stream,
                    uint64_t flags)
{
    uint64_t pointer = 0;
    const int error = world_alloc(operation, table_of(ctx), &pointer, size, stream, flags);
    *ptr = (void *)(uintptr_t)pointer;
    return error;
}

static int hook_device_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    return alloc_by(OP_DEVICE_ALLOC, ctx, ptr, size, number_of(stream), 0);
}

static int hook_device_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return world_free(OP_DEVICE_FREE, table_of(ctx), number_of(ptr), size, number_of(stream));
}

static int hook_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return alloc_by(OP_HOST_ALLOC, ctx, ptr, size, 0, flags);
}

static int hook_host_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return world_free(OP_HOST_FREE, table_of(ctx), number_of(ptr), size, number_of(stream));
}

static int hook_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    world_judge(0, size);
    return world_call(OP_PIN, table_of(ctx), number_of(ptr), size, 0, flags)->result;
}

static int hook_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    world_judge(0, size);
    return world_call(OP_UNPIN, table_of(ctx), number_of(ptr), size, number_of(stream), 0)->result;
}

static int hook_managed_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return alloc_by(OP_MANAGED_ALLOC, ctx, ptr, size, 0, flags);
}

static int hook_managed_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return world_free(OP_MANAGED_FREE, table_of(ctx), number_of(ptr), size, number_of(stream));
}

/* ------------------------------------------------------------------ the manager's own memory */

static void *manager_alloc(void *user_data, size_t size)
{
    void *made;
    if (user_data != &world) world_wrong("the allocator gets other user data");
    if (world_query(OP_HOST_MEMORY)) return NULL;
    made = malloc(size + 16);
    if (!made) return NULL;
    memcpy(made, &size, sizeof size);
    memset((char *)made + 16, 0xa5, size);
    world.host_live++;
    world.host_bytes += (int64_t)size;
    return (char *)made + 16;
}

static void manager_free(void *user_data, void *ptr, size_t size)
{
    size_t was;
    if (!ptr) {
        world_wrong("the allocator is to free NULL");
        return;
    }
    memcpy(&was, (char *)ptr - 16, sizeof was);
    if (was != size || user_data != &world) world_wrong("the allocator gets another size");
    world.host_live--;
    world.host_bytes -= (int64_t)size;
    free((char *)ptr - 16);
}

#endif
