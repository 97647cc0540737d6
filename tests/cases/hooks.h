/* hooks.h - the runner's own tables of hooks: they write each call into the log, and look at what they get.
 * SPDX-License-Identifier: MIT
 *
 * Their memory is made of addresses alone, 256 bytes above multiples of 64 KiB, and named p1, p2, ... in the
 * order in which it is given out. */
#ifndef HOOKS_H
#define HOOKS_H

#include <stddef.h>

#include "cai_manager.h"
#include "world.h"

enum { HOOKS_TABLES = 8, HOOKS_BLOCKS = 128, HOOKS_FAULTS = 16, HOOKS_ROOM = 0x10000 };

typedef struct hook_table {
    char name[WORLD_NAME];
    cai_emm_hooks hooks;
    size_t free_bytes, total_bytes; /* that memory_info tells */
    int chunked;                    /* all its memory is one allocation to ipc_handle, from its first on */
    uint64_t chunk;
    int deferring;
} hook_table;

/* What a hook gave, and has to get back. */
typedef struct hook_block {
    char name[WORLD_NAME];
    char kind; /* 'd' device, 'h' host, 'm' managed, 'p' pinned */
    int live;
    uint64_t address, room;
    size_t size;
    const hook_table *table;
} hook_block;

/* What the case wants of a call of a hook. */
typedef struct hook_fault {
    char hook[2 * WORLD_NAME]; /* as the log calls it */
    int countdown;
    int32_t error;
    char gift; /* 'n': NULL, 'm': an address that is not aligned */
} hook_fault;

typedef struct hook_world {
    hook_table tables[HOOKS_TABLES];
    hook_block blocks[HOOKS_BLOCKS];
    hook_fault faults[HOOKS_FAULTS];
    uint64_t freed[HOOKS_BLOCKS][2]; /* address and room, the last one first to be used again */
    int table_count, block_count, fault_count, freed_count;
    int reuse;
    uint64_t next;
    const cai_manager *emm; /* that calls; NULL: none */
} hook_world;

static hook_world hw;

/* --------------------------------------------------------------------- a call */

/* A call of a hook, while it lasts. */
typedef struct hook_call {
    hook_table *table;
    const char *hook;
    char line[WORLD_LINE];
    int32_t error;
    char gift;
} hook_call;

static void log_line(const char *line)
{
    take_log(w.in);
    if (w.log_count == WORLD_LOG) script_stop(w.in->path, w.in->line, "too many calls", line);
    w.log[w.log_count][0] = 0;
    translate_line(line, strlen(line), w.log[w.log_count++]);
}

/* What always holds in a hook or a callback: no lock is held, the manager's context is current. */
static void check_caller(const char *who, int with_context)
{
    if (hw.emm == NULL) return;
    if (hw.emm->guard != 0) complain(w.in, "%s is called with the manager's lock held", who);
    if (hw.emm->context != 0 && with_context && cai_sim_current(w.sim) != hw.emm->context)
        complain(w.in, "%s is called without the manager's context", who);
}

static void hook_fate(hook_call *c)
{
    int i;
    for (i = 0; i < hw.fault_count; i++) {
        hook_fault *f = &hw.faults[i];
        if (f->countdown == 0 || strcmp(f->hook, c->line) != 0 || --f->countdown > 0) continue;
        c->error = f->error;
        c->gift = f->gift;
    }
}

static hook_call hook_begin(void *ctx, const char *hook)
{
    hook_call c;
    memset(&c, 0, sizeof c);
    take_log(w.in);
    c.table = (hook_table *)ctx;
    c.hook = hook;
    if (c.table != &hw.tables[0]) sprintf(c.line, "%s.", c.table->name);
    strcat(c.line, hook);
    check_caller(hook, strcmp(hook, "reset") != 0);
    hook_fate(&c);
    return c;
}

static void hook_number(hook_call *c, const char *before, uint64_t number)
{
    sprintf(c->line + strlen(c->line), "%s%llu", before, (unsigned long long)number);
}

static void hook_address(hook_call *c, const char *before, uint64_t address)
{
    if (address == 0) sprintf(c->line + strlen(c->line), "%snull", before);
    else sprintf(c->line + strlen(c->line), "%s0x%llx", before, (unsigned long long)address);
}

static void hook_stream(hook_call *c, struct CUstream_st *stream)
{
    const uint64_t number = (uint64_t)(uintptr_t)stream;
    if (number == 0) strcat(c->line, " none");
    else if (number == CAI_STREAM_LEGACY) strcat(c->line, " legacy");
    else if (number == CAI_STREAM_PER_THREAD) strcat(c->line, " per_thread");
    else hook_address(c, " ", number);
}

/* Writes the line; what came back is in it unless the call failed. */
static int hook_end(hook_call *c)
{
    if (c->error) sprintf(c->line + strlen(c->line), " ! %d", (int)c->error);
    log_line(c->line);
    return c->error;
}

/* --------------------------------------------------------------------- memory */

/* Where the next memory lies. */
static uint64_t take_address(size_t size, uint64_t *room)
{
    uint64_t address;
    *room = ((uint64_t)size + HOOKS_ROOM) / HOOKS_ROOM * HOOKS_ROOM;
    if (hw.reuse && hw.freed_count > 0 && hw.freed[hw.freed_count - 1][1] >= *room) {
        hw.freed_count--;
        *room = hw.freed[hw.freed_count][1];
        return hw.freed[hw.freed_count][0];
    }
    address = hw.next + 256;
    hw.next += *room;
    if (hw.next > UINTPTR_MAX - HOOKS_ROOM) script_bad(w.in, "no more addresses");
    return address;
}

static hook_block *add_block(hook_table *table, char kind, uint64_t address, size_t size)
{
    hook_block *b = &hw.blocks[hw.block_count];
    script_words in = *w.in;
    if (hw.block_count == HOOKS_BLOCKS) script_bad(w.in, "too much memory");
    memset(b, 0, sizeof *b);
    b->table = table;
    b->kind = kind;
    b->live = 1;
    b->address = address;
    b->size = size;
    sprintf(b->name, "p%d", ++hw.block_count);
    if (kind != 'p') { /* others know it by this name, too */
        thing *t = add_thing(&in, b->name, 'm', address);
        t->bytes = size + 512;
        t->gone = 1;
    }
    if (table->chunk == 0) table->chunk = address;
    return b;
}

static hook_block *find_block(uint64_t address)
{
    int i;
    for (i = hw.block_count - 1; i >= 0; i--) {
        if (hw.blocks[i].live && hw.blocks[i].address == address) return &hw.blocks[i];
    }
    return NULL;
}

static void drop_block(hook_block *b)
{
    b->live = 0;
    if (b->kind == 'p' || hw.freed_count == HOOKS_BLOCKS) return;
    hw.freed[hw.freed_count][0] = b->address;
    hw.freed[hw.freed_count++][1] = b->room;
}

/* Answers an allocation; what stands at *ptr after a failure must not matter. */
static int hook_give(hook_call *c, char kind, void **ptr, size_t size)
{
    hook_block *b;
    uint64_t room, address = 0;
    if (size == 0) complain(w.in, "%s is asked for 0 bytes", c->hook);
    memset(ptr, w.garbage, sizeof *ptr);
    if (c->error) return hook_end(c);
    if (c->gift != 'n') {
        address = take_address(size, &room);
        if (c->gift == 'm') address += 16;
        b = add_block(c->table, kind, address, size);
        b->room = room;
    }
    *ptr = (void *)(uintptr_t)address;
    hook_address(c, " -> ", address);
    return hook_end(c);
}

/* Takes memory back, which must be what was given. */
static int hook_take(hook_call *c, char kind, void *ptr, size_t size)
{
    hook_block *b = find_block((uint64_t)(uintptr_t)ptr);
    if (b == NULL) complain(w.in, "%s gets memory that was not given out", c->hook);
    else if (b->kind != kind || b->size != size || b->table != c->table)
        complain(w.in, "%s gets memory that was given as another kind, size, or by another table", c->hook);
    else if (c->error == 0) drop_block(b);
    return hook_end(c);
}

/* ---------------------------------------------------------------------- hooks */

static int hook_device_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    hook_call c = hook_begin(ctx, "device_alloc");
    hook_number(&c, " ", size);
    hook_stream(&c, stream);
    return hook_give(&c, 'd', ptr, size);
}

static int hook_free_of(void *ctx, const char *hook, char kind, void *ptr, size_t size,
                        struct CUstream_st *stream)
{
    hook_call c = hook_begin(ctx, hook);
    hook_address(&c, " ", (uint64_t)(uintptr_t)ptr);
    hook_number(&c, " ", size);
    hook_stream(&c, stream);
    return hook_take(&c, kind, ptr, size);
}

static int hook_device_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free_of(ctx, "device_free", 'd', ptr, size, stream);
}

static int hook_host_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free_of(ctx, "host_free", 'h', ptr, size, stream);
}

static int hook_managed_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free_of(ctx, "managed_free", 'm', ptr, size, stream);
}

static int hook_give_flagged(void *ctx, const char *hook, char kind, void **ptr, size_t size,
                             unsigned int flags)
{
    hook_call c = hook_begin(ctx, hook);
    hook_number(&c, " ", size);
    hook_number(&c, " flags ", flags);
    return hook_give(&c, kind, ptr, size);
}

static int hook_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return hook_give_flagged(ctx, "host_alloc", 'h', ptr, size, flags);
}

static int hook_managed_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return hook_give_flagged(ctx, "managed_alloc", 'm', ptr, size, flags);
}

/* As CUDA: what is pinned already gives 712. */
static int hook_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    hook_call c = hook_begin(ctx, "pin");
    const uint64_t address = (uint64_t)(uintptr_t)ptr;
    int i;
    hook_address(&c, " ", address);
    hook_number(&c, " ", size);
    hook_number(&c, " flags ", flags);
    for (i = 0; i < hw.block_count && c.error == 0; i++) {
        const hook_block *b = &hw.blocks[i];
        if (b->live && b->kind == 'p' && b->address < address + size && address < b->address + b->size)
            c.error = 712;
    }
    if (c.error == 0) add_block(c.table, 'p', address, size);
    return hook_end(&c);
}

static int hook_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    return hook_free_of(ctx, "unpin", 'p', ptr, size, stream);
}

static int hook_initialize(void *ctx, int device)
{
    hook_call c = hook_begin(ctx, "initialize");
    hook_number(&c, " ", (uint64_t)device);
    return hook_end(&c);
}

/* Everything that this table gave out is gone. */
static int hook_reset(void *ctx)
{
    hook_call c = hook_begin(ctx, "reset");
    int i;
    for (i = 0; i < hw.block_count && c.error == 0; i++) {
        if (hw.blocks[i].table == c.table && hw.blocks[i].live) drop_block(&hw.blocks[i]);
    }
    return hook_end(&c);
}

static int hook_memory_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    hook_call c = hook_begin(ctx, "memory_info");
    memset(free_bytes, w.garbage, sizeof *free_bytes);
    memset(total_bytes, w.garbage, sizeof *total_bytes);
    if (c.error) return hook_end(&c);
    *free_bytes = c.table->free_bytes;
    *total_bytes = c.table->total_bytes;
    hook_number(&c, " -> ", *free_bytes);
    hook_number(&c, " ", *total_bytes);
    return hook_end(&c);
}

static int hook_defer(void *ctx, int on)
{
    hook_call c = hook_begin(ctx, "defer");
    hook_number(&c, " ", (uint64_t)on);
    if (on == c.table->deferring) complain(w.in, "defer gets %d a second time", on);
    if (c.error == 0 || on == 0) c.table->deferring = on;
    return hook_end(&c);
}

/* The handle tells the first address of the allocation. */
static int hook_ipc_handle(void *ctx, void *ptr, void *handle, void **base)
{
    hook_call c = hook_begin(ctx, "ipc_handle");
    const uint64_t address = (uint64_t)(uintptr_t)ptr;
    uint64_t first = 0;
    int i;
    hook_address(&c, " ", address);
    memset(handle, w.garbage, 64);
    memset(base, w.garbage, sizeof *base);
    if (c.error) return hook_end(&c);
    for (i = 0; i < hw.block_count; i++) {
        const hook_block *b = &hw.blocks[i];
        if (b->live && address >= b->address && address < b->address + b->size) first = b->address;
    }
    if (c.table->chunked) first = c.table->chunk;
    memset(handle, 0x49, 64);
    memcpy(handle, &first, sizeof first);
    *base = (void *)(uintptr_t)first;
    hook_address(&c, " -> ", first);
    return hook_end(&c);
}

/* --------------------------------------------------------------------- tables */

static void fill_hooks(hook_table *t)
{
    cai_emm_hooks *h = &t->hooks;
    h->struct_size = (uint32_t)sizeof *h;
    h->version = CAI_EMM_VERSION;
    h->kind = CAI_MEMORY_DEVICE;
    h->ctx = t;
    h->device_alloc = hook_device_alloc;
    h->device_free = hook_device_free;
    memcpy(h->name, t->name, WORLD_NAME);
    h->initialize = hook_initialize;
    h->reset = hook_reset;
    h->memory_info = hook_memory_info;
    h->defer = hook_defer;
    h->ipc_handle = hook_ipc_handle;
    h->host_alloc = hook_host_alloc;
    h->host_free = hook_host_free;
    h->pin = hook_pin;
    h->unpin = hook_unpin;
    h->managed_alloc = hook_managed_alloc;
    h->managed_free = hook_managed_free;
}

/* One more table with all hooks, or the one of that name as it was at first. */
static hook_table *make_table(script_words *in, const char *name)
{
    hook_table *t;
    int i;
    for (i = 0; i < hw.table_count && strcmp(hw.tables[i].name, name) != 0; i++) continue;
    if (i == HOOKS_TABLES) script_bad(in, "too many tables");
    if (i == hw.table_count) hw.table_count++;
    t = &hw.tables[i];
    memset(t, 0, sizeof *t);
    copy_name(in, t->name, name);
    fill_hooks(t);
    t->free_bytes = 900000;
    t->total_bytes = 1000000;
    return t;
}

static hook_table *table_word(script_words *in)
{
    const char *name = script_word(in);
    int i;
    for (i = 0; i < hw.table_count; i++) {
        if (strcmp(hw.tables[i].name, name) == 0) return &hw.tables[i];
    }
    in->at--;
    script_bad(in, "no such table of hooks");
    return NULL;
}

/* Adds what the hooks did not get back to the leaks. */
static void hook_leaks(char *text, size_t capacity)
{
    const char *before = text[0] ? "; hooks: " : "hooks: ";
    int i;
    for (i = 0; i < hw.block_count; i++) {
        if (!hw.blocks[i].live || strlen(text) + 2 * WORLD_NAME >= capacity) continue;
        sprintf(text + strlen(text), "%s%s", before, hw.blocks[i].name);
        before = " ";
    }
}

static void hooks_begin(script_words *in)
{
    memset(&hw, 0, sizeof hw);
    hw.next = sizeof(void *) == 8 ? (uint64_t)1 << 44 : 0x10000000;
    make_table(in, "mine");
}

#endif
