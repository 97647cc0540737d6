/* adapter.h - what the adapters for CuPy and CV-CUDA share: hooks of one device and stream, and their memory
 * SPDX-License-Identifier: MIT
 * Numba's adapter uses adapter_order alone. */
#ifndef CAI_ADAPTER_H
#define CAI_ADAPTER_H

#include "cai_emm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
typedef SRWLOCK adapter_mutex;
static inline void adapter_mutex_init(adapter_mutex *mutex) { InitializeSRWLock(mutex); }
static inline void adapter_mutex_end(adapter_mutex *mutex) { (void)mutex; }
static inline void adapter_lock(adapter_mutex *mutex) { AcquireSRWLockExclusive(mutex); }
static inline void adapter_unlock(adapter_mutex *mutex) { ReleaseSRWLockExclusive(mutex); }
#else
#include <pthread.h>
typedef pthread_mutex_t adapter_mutex;
static inline void adapter_mutex_init(adapter_mutex *mutex) { (void)pthread_mutex_init(mutex, NULL); }
static inline void adapter_mutex_end(adapter_mutex *mutex) { (void)pthread_mutex_destroy(mutex); }
static inline void adapter_lock(adapter_mutex *mutex) { (void)pthread_mutex_lock(mutex); }
static inline void adapter_unlock(adapter_mutex *mutex) { (void)pthread_mutex_unlock(mutex); }
#endif

/* One allocation. */
typedef struct adapter_block {
    void *ptr;   /* as the library knows it; NULL: an empty place */
    void *base;  /* as the hook gave it */
    size_t size; /* as the hook was asked */
    int32_t host; /* by host_alloc */
} adapter_block;

typedef struct cai_adapter_count {
    uint64_t allocated, freed;       /* by hooks */
    uint64_t live_bytes, peak_bytes; /* as hooks were asked */
    uint64_t empty;                  /* allocations of 0 bytes: no hook was called */
    uint64_t unknown;                /* frees of what is not allocated (any more): no hook was called */
    uint64_t failed;                 /* other allocations, and frees */
    int32_t first_failure;           /* the cai_status of the first of those, */
    int32_t native;                  /* and CUDA's number */
} cai_adapter_count;

typedef struct adapter {
    const char *name; /* for messages */
    cai_emm_hooks hooks;
    const cai_cuda *cuda; /* NULL: contexts are the caller's affair */
    uint64_t context, stream; /* the primary context, retained; 0: none */
    int32_t device;
    adapter_mutex mutex; /* of what follows; never held across a hook */
    adapter_block *blocks; /* by a hash of ptr, the next place if that is taken */
    size_t places, used; /* places: 0 or a power of two; no more than half of them are used */
    cai_adapter_count count;
} adapter;

/* ------------------------------------------------------------------ allocations by address, locked */

static inline size_t adapter_hash(const adapter *a, const void *ptr)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)ptr * 0x9e3779b97f4a7c15u; /* the low bits of ptr are all 0 */
    return (size_t)(mixed >> 32) & (a->places - 1);
}

/* The place of ptr, or the empty one where it would be. places is not 0. */
static inline adapter_block *adapter_at(const adapter *a, const void *ptr)
{
    size_t i = adapter_hash(a, ptr);
    while (a->blocks[i].ptr && a->blocks[i].ptr != ptr) i = (i + 1) & (a->places - 1);
    return &a->blocks[i];
}

static inline int adapter_grow(adapter *a)
{
    adapter_block *old = a->blocks, *grown;
    const size_t places = a->places;
    size_t i;
    grown = (adapter_block *)calloc(places ? 2 * places : 64, sizeof *grown);
    if (!grown) return 0;
    a->blocks = grown;
    a->places = places ? 2 * places : 64;
    for (i = 0; i < places; i++)
        if (old[i].ptr) *adapter_at(a, old[i].ptr) = old[i];
    free(old);
    return 1;
}

/* Without memory, or if the address is there already, nothing is kept. */
static inline cai_status adapter_keep(adapter *a, const adapter_block *block)
{
    adapter_block *at;
    if (2 * (a->used + 1) > a->places && !adapter_grow(a)) return CAI_ERR_OUT_OF_MEMORY;
    at = adapter_at(a, block->ptr);
    if (at->ptr) return CAI_ERR_MEMORY;
    *at = *block;
    a->used++;
    return CAI_OK;
}

/* Takes ptr out. What stands behind it moves up, as far as a search for it would end too early. */
static inline int adapter_take(adapter *a, const void *ptr, adapter_block *out)
{
    const size_t mask = a->places - 1;
    size_t hole, i;
    if (!a->places || !adapter_at(a, ptr)->ptr) return 0;
    hole = (size_t)(adapter_at(a, ptr) - a->blocks);
    *out = a->blocks[hole];
    for (i = (hole + 1) & mask; a->blocks[i].ptr; i = (i + 1) & mask) {
        if (((i - adapter_hash(a, a->blocks[i].ptr)) & mask) < ((i - hole) & mask)) continue;
        a->blocks[hole] = a->blocks[i];
        hole = i;
    }
    a->blocks[hole].ptr = NULL;
    a->used--;
    return 1;
}

/* ------------------------------------------------------------------ counting */

static inline void adapter_add(adapter *a, uint64_t *calls)
{
    adapter_lock(&a->mutex);
    ++*calls;
    adapter_unlock(&a->mutex);
}

static inline void adapter_failed(adapter *a, const char *what, size_t size, const cai_error *err)
{
    adapter_lock(&a->mutex);
    if (!a->count.failed++) {
        a->count.first_failure = err->native == 2 ? CAI_ERR_OUT_OF_MEMORY : err->code;
        a->count.native = err->native;
    }
    adapter_unlock(&a->mutex);
    fprintf(stderr, "%s: %s of %lu bytes, device %d: %s\n", a->name, what, (unsigned long)size,
            (int)a->device, err->message);
}

static inline cai_status adapter_say(cai_error *err, cai_status status, const char *message)
{
    if (!err) return status;
    memset(err, 0, sizeof *err);
    err->code = status;
    err->index = -1;
    snprintf(err->message, sizeof err->message, "%s", message);
    return status;
}

/* ------------------------------------------------------------------ hooks, in the context of the device */

static inline cai_status adapter_enter(const adapter *a, int32_t *pushed, cai_error *err)
{
    const cai_cuda *cuda = a->cuda;
    uint64_t current = 0;
    *pushed = 0;
    if (!cuda) return CAI_OK;
    CAI_TRY(cai_cuda_status(cuda->context_current(cuda->self, &current), "context_current", err));
    if (current == a->context) return CAI_OK;
    CAI_TRY(cai_cuda_status(cuda->context_push(cuda->self, a->context), "context_push", err));
    *pushed = 1;
    return CAI_OK;
}

static inline void adapter_leave(const adapter *a, int32_t pushed)
{
    if (pushed) (void)a->cuda->context_pop(a->cuda->self);
}

/* Libraries use the memory on streams that they do not name here, and a hook need not queue anything in stream 1.
 * So an event is recorded there after each allocation. It comes after all earlier work of the blocking streams of
 * the current context, and before all their later work. */
static inline int32_t adapter_order(const cai_cuda *cuda)
{
    uint64_t event = 0;
    int32_t error = cuda->event_create(cuda->self, &event);
    if (error) return error;
    error = cuda->event_record(cuda->self, event, CAI_STREAM_LEGACY);
    (void)cuda->event_destroy(cuda->self, event);
    return error;
}

static inline int32_t adapter_device_alloc(const adapter *a, adapter_block *block)
{
    const cai_emm_hooks *h = &a->hooks;
    const int orders = a->cuda && a->stream == CAI_STREAM_LEGACY && h->kind != CAI_MEMORY_HOST;
    struct CUstream_st *const stream = cai_stream_to_cuda(a->stream);
    cai_cuda_capture capture;
    int32_t error = 0;
    if (orders) error = a->cuda->stream_capture(a->cuda->self, a->stream, &capture); /* 906: a record would end it */
    if (!error) error = h->device_alloc(h->ctx, &block->base, block->size, stream);
    if (error || !orders || !block->base) return error;
    error = adapter_order(a->cuda);
    if (error) (void)h->device_free(h->ctx, block->base, block->size, stream);
    return error;
}

static inline cai_status adapter_call_alloc(const adapter *a, adapter_block *block, cai_error *err)
{
    const cai_emm_hooks *h = &a->hooks;
    cai_status status;
    int32_t pushed;
    CAI_TRY(adapter_enter(a, &pushed, err));
    status = cai_cuda_status(block->host ? h->host_alloc(h->ctx, &block->base, block->size, 0)
                                         : adapter_device_alloc(a, block),
                             h->name, err);
    adapter_leave(a, pushed);
    return status;
}

/* Error 4 is CUDA's answer while the process ends: nothing is left to free. */
static inline cai_status adapter_call_free(const adapter *a, const adapter_block *block, cai_error *err)
{
    const cai_emm_hooks *h = &a->hooks;
    cai_emm_free_hook hook = block->host ? h->host_free : h->device_free;
    cai_status status;
    int32_t pushed = 0;
    status = adapter_enter(a, &pushed, err);
    if (!status) {
        status = cai_cuda_status(hook(h->ctx, block->base, block->size, cai_stream_to_cuda(a->stream)), h->name,
                                 err);
        adapter_leave(a, pushed);
    }
    return status && err->native == 4 ? CAI_OK : status;
}

/* Takes note of what a hook gave, or gives it back. */
static inline cai_status adapter_note(adapter *a, const adapter_block *block, cai_error *err)
{
    cai_adapter_count *count = &a->count;
    cai_error ignored;
    cai_status status;
    adapter_lock(&a->mutex);
    status = adapter_keep(a, block);
    if (!status) {
        count->allocated++;
        count->live_bytes += block->size;
        if (count->peak_bytes < count->live_bytes) count->peak_bytes = count->live_bytes;
    }
    adapter_unlock(&a->mutex);
    if (status == CAI_ERR_MEMORY) return adapter_say(err, status, "a hook gave what is in use");
    if (!status) return CAI_OK;
    (void)adapter_call_free(a, block, &ignored);
    return adapter_say(err, status, "no host memory to note the address");
}

/* align: a power of two. promised: what the hook aligns to. */
static inline cai_status adapter_try_alloc(adapter *a, void **ptr, size_t size, size_t align, size_t promised,
                                           int32_t host, cai_error *err)
{
    const size_t more = align > promised ? align - 1 : 0;
    adapter_block block;
    cai_error ignored;
    memset(&block, 0, sizeof block);
    block.host = host;
    block.size = size + more;
    if (block.size < size) return adapter_say(err, CAI_ERR_OUT_OF_MEMORY, "the size overflows");
    CAI_TRY(adapter_call_alloc(a, &block, err));
    if (!block.base) return adapter_say(err, CAI_ERR_MEMORY, "a hook gave NULL");
    block.ptr = (char *)block.base + (more & (0 - (uintptr_t)block.base));
    if ((uintptr_t)block.ptr & (align - 1)) {
        (void)adapter_call_free(a, &block, &ignored);
        return adapter_say(err, CAI_ERR_MEMORY, "a hook gave memory that is not aligned");
    }
    CAI_TRY(adapter_note(a, &block, err));
    *ptr = block.ptr;
    return CAI_OK;
}

/* NULL where that failed, which is counted, and told on stderr. */
static inline void *adapter_alloc(adapter *a, size_t size, size_t align, size_t promised, int32_t host)
{
    void *ptr = NULL;
    cai_error err;
    if (!size) adapter_add(a, &a->count.empty);
    else if (adapter_try_alloc(a, &ptr, size, align, promised, host, &err)) {
        adapter_failed(a, "allocation", size, &err);
        ptr = NULL;
    }
    return ptr;
}

/* It is forgotten before the hook is called: then another thread may get the same address. */
static inline void adapter_free(adapter *a, void *ptr, int32_t host)
{
    adapter_block block;
    cai_error err;
    int32_t found;
    if (!ptr) return;
    adapter_lock(&a->mutex);
    found = adapter_take(a, ptr, &block);
    if (found && block.host != host) {
        (void)adapter_keep(a, &block); /* there was a place */
        found = 0;
    }
    if (found) a->count.live_bytes -= block.size;
    else a->count.unknown++;
    adapter_unlock(&a->mutex);
    if (!found) fprintf(stderr, "%s: free of %p, which is not allocated\n", a->name, ptr);
    else if (adapter_call_free(a, &block, &err)) adapter_failed(a, "free", block.size, &err);
    else adapter_add(a, &a->count.freed);
}

/* ------------------------------------------------------------------ its beginning and end */

/* Can contexts be entered and kept? Slots behind the table's end are NULL. */
static inline int adapter_knows(const cai_cuda *cuda)
{
    return cuda->struct_size >= offsetof(cai_cuda, primary_release) + sizeof cuda->primary_release &&
           cuda->context_current && cuda->context_push && cuda->context_pop && cuda->primary_retain &&
           cuda->primary_release;
}

/* The device's primary context, which is made if need be, is there until adapter_drop. cuda: NULL, or outlives
 * the adapter. stream: 0 is the legacy one. */
static inline cai_status adapter_hold(adapter *a, const char *name, const cai_cuda *cuda, int device,
                                      uint64_t stream, cai_error *err)
{
    memset(a, 0, sizeof *a);
    if (device < 0) return adapter_say(err, CAI_ERR_ARGUMENT, "device is negative");
    if (cuda && !adapter_knows(cuda))
        return adapter_say(err, CAI_ERR_ARGUMENT, "cuda has no operations of contexts");
    a->name = name;
    a->cuda = cuda;
    a->device = device;
    a->stream = stream ? stream : (uint64_t)CAI_STREAM_LEGACY;
    if (!cuda) return CAI_OK;
    return cai_cuda_status(cuda->primary_retain(cuda->self, device, &a->context), "primary_retain", err);
}

static inline void adapter_drop(adapter *a)
{
    if (a->context) (void)a->cuda->primary_release(a->cuda->self, a->device);
    a->context = 0;
}

/* hooks: copied; what lies behind their end is NULL. After a failure adapter_drop is still to be called. */
static inline cai_status adapter_open(adapter *a, const cai_emm_hooks *hooks, cai_error *err)
{
    cai_emm_hooks *const h = &a->hooks;
    cai_status status = CAI_OK;
    int32_t pushed;
    size_t bytes;
    CAI_TRY(cai_emm_hooks_check(hooks, err));
    bytes = hooks->struct_size < sizeof *h ? hooks->struct_size : sizeof *h;
    memcpy(h, hooks, bytes - bytes % sizeof(void *));
    if (h->initialize) {
        CAI_TRY(adapter_enter(a, &pushed, err));
        status = cai_cuda_status(h->initialize(h->ctx, a->device), "initialize", err);
        adapter_leave(a, pushed);
    }
    if (!status) adapter_mutex_init(&a->mutex);
    return status;
}

/* Refused while something is allocated. adapter_drop comes after it, and after the memory of the hooks. */
static inline cai_status adapter_close(adapter *a)
{
    size_t used;
    adapter_lock(&a->mutex);
    used = a->used;
    adapter_unlock(&a->mutex);
    if (used) return CAI_ERR_PENDING;
    adapter_mutex_end(&a->mutex);
    free(a->blocks);
    return CAI_OK;
}

static inline cai_adapter_count adapter_counts(adapter *a)
{
    cai_adapter_count count;
    adapter_lock(&a->mutex);
    count = a->count;
    adapter_unlock(&a->mutex);
    return count;
}

#endif
