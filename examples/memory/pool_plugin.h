/* pool_plugin.h - a caching pool as a plugin: hooks of cai_emm.h over other hooks
 * SPDX-License-Identifier: MIT
 * A block that is freed on a stream is kept for this stream. The next allocation of the same class there gets
 * it, after all work that used it, without an event or a wait. Copy it for a pool of your own (docs/memory.md).
 * Its lists are searched one by one. C99 that is also C++11; gcc, clang, nvcc. One pool for one device. */
#ifndef POOL_PLUGIN_H
#define POOL_PLUGIN_H
#include "cai_emm.h"
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#include <sched.h>
#endif
typedef struct pool_block {
    struct pool_block *next;
    void *ptr;
    size_t size;                /* of its class */
    struct CUstream_st *stream; /* used: asked for there; kept: freed there */
} pool_block;

typedef struct pool_list { pool_block *first; uint64_t bytes; } pool_list;
typedef struct pool_plugin {        /* stays where it is */
    cai_emm_hooks upstream;
    pool_list used, kept;
    uint64_t hits, taken, returned; /* blocks used again, taken from upstream, given back to it */
    long guard;                     /* held while a list is searched, never across a hook */
} pool_plugin;

/* Multiples of 256, from 4 KiB on eight classes for each power of two. 0: too large. */
static inline size_t pool_class(size_t size)
{
    size_t step = 256;
    while (step <= size / 16) step *= 2;
    return (size + step - 1) / step * step;
}

static inline void pool_lock(pool_plugin *pool)
{
    while (__atomic_exchange_n(&pool->guard, 1L, __ATOMIC_ACQUIRE)) {
#if !defined(_WIN32)
        (void)sched_yield();
#endif
    }
}

static inline void pool_put(pool_plugin *pool, pool_list *list, pool_block *block)
{
    pool_lock(pool);
    block->next = list->first;
    list->first = block;
    __atomic_fetch_add(&list->bytes, block->size, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->guard, 0L, __ATOMIC_RELEASE);
}

/* Takes a block out: the one at ptr, or where that is NULL one of a class (0: any) and stream (NULL: any). */
static inline pool_block *pool_get(pool_plugin *pool, pool_list *list, const void *ptr, size_t size,
                                   struct CUstream_st *stream)
{
    pool_block **at = &list->first, *b;
    pool_lock(pool);
    for (; (b = *at) != NULL; at = &b->next)
        if (ptr ? b->ptr == ptr : (!size || b->size == size) && (!stream || b->stream == stream)) break;
    if (b) *at = b->next;
    __atomic_fetch_sub(&list->bytes, b ? b->size : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->guard, 0L, __ATOMIC_RELEASE);
    return b;
}

/* Gives a block back in the order of its stream: upstream frees it when all work on it has passed. While that
 * stream captures, CUDA refuses (900 to 908): then the block stays, in `refused`. */
static inline int pool_return(pool_plugin *pool, pool_block *block, pool_list *refused)
{
    const int error = pool->upstream.device_free(pool->upstream.ctx, block->ptr, block->size, block->stream);
    if (error >= 900 && error <= 908) {
        block->next = refused->first;
        refused->first = block;
        return error;
    }
    __atomic_fetch_add(&pool->returned, 1u, __ATOMIC_RELAXED);
    free(block);
    return error;
}

static inline void pool_keep_refused(pool_plugin *pool, pool_list *list, pool_list *refused)
{
    for (pool_block *block; (block = refused->first) != NULL;) {
        refused->first = block->next;
        pool_put(pool, list, block);
    }
}

/** Gives back a list's blocks of a stream (NULL: all); the first error. pool->kept before a stream goes. */
static inline int pool_empty(pool_plugin *pool, pool_list *list, struct CUstream_st *stream)
{
    pool_list refused = {NULL, 0};
    int first = 0;
    for (pool_block *block; (block = pool_get(pool, list, NULL, 0, stream)) != NULL;) {
        const int error = pool_return(pool, block, &refused);
        if (!first) first = error;
    }
    pool_keep_refused(pool, list, &refused);
    return first;
}

static inline int pool_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    pool_plugin *pool = (pool_plugin *)ctx;
    const size_t whole = pool_class(size);
    pool_block *block;
    if (!whole) return 2; /* CUDA's number for: out of memory */
    if (!stream) stream = cai_stream_to_cuda(CAI_STREAM_LEGACY);
    block = pool_get(pool, &pool->kept, NULL, whole, stream);
    __atomic_fetch_add(block ? &pool->hits : &pool->taken, 1u, __ATOMIC_RELAXED);
    if (!block) {
        if (!(block = (pool_block *)calloc(1, sizeof *block))) return 2;
        block->size = whole;
        int error = pool->upstream.device_alloc(pool->upstream.ctx, &block->ptr, whole, stream);
        if (error == 2) { /* once more, with nothing kept */
            (void)pool_empty(pool, &pool->kept, NULL);
            error = pool->upstream.device_alloc(pool->upstream.ctx, &block->ptr, whole, stream);
        }
        if (error) free(block);
        if (error) return error;
    }
    block->stream = stream;
    *ptr = block->ptr;
    pool_put(pool, &pool->used, block);
    return 0;
}

static inline int pool_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    pool_plugin *pool = (pool_plugin *)ctx;
    pool_block *block = ptr ? pool_get(pool, &pool->used, ptr, size, NULL) : NULL;
    if (!block) return 1; /* CUDA's number for: invalid value */
    block->stream = stream ? stream : cai_stream_to_cuda(CAI_STREAM_LEGACY);
    if (stream == cai_stream_to_cuda(CAI_STREAM_PER_THREAD)) { /* whose? */
        pool_list refused = {NULL, 0};
        const int error = pool_return(pool, block, &refused);
        pool_keep_refused(pool, &pool->used, &refused);
        return error;
    }
    pool_put(pool, &pool->kept, block);
    return 0;
}

static inline int pool_initialize(void *ctx, int device)
{
    const cai_emm_hooks *up = &((pool_plugin *)ctx)->upstream;
    return up->initialize ? up->initialize(up->ctx, device) : 0;
}

static inline int pool_memory_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    pool_plugin *pool = (pool_plugin *)ctx;
    const int error = pool->upstream.memory_info(pool->upstream.ctx, free_bytes, total_bytes);
    *free_bytes += error ? 0 : (size_t)__atomic_load_n(&pool->kept.bytes, __ATOMIC_RELAXED);
    return error;
}

static inline int pool_ipc_handle(void *ctx, void *ptr, void *handle, void **base)
{
    const cai_emm_hooks *up = &((pool_plugin *)ctx)->upstream;
    return up->ipc_handle(up->ctx, ptr, handle, base);
}

static inline int pool_reset(void *ctx)
{
    pool_plugin *pool = (pool_plugin *)ctx;
    const int used = pool_empty(pool, &pool->used, NULL), kept = pool_empty(pool, &pool->kept, NULL);
    return used ? used : kept;
}

/** Makes a pool over `upstream`, which is copied, and the hooks that use it. */
static inline void pool_plugin_open(pool_plugin *pool, const cai_emm_hooks *upstream, cai_emm_hooks *out)
{
    memset(pool, 0, sizeof *pool);
    memset(out, 0, sizeof *out);
    pool->upstream = *upstream;
    out->struct_size = sizeof *out;
    out->version = CAI_EMM_VERSION;
    out->flags = upstream->flags & ~(uint32_t)CAI_EMM_FREES_WAIT;              /* frees do not wait */
    if (upstream->kind != CAI_MEMORY_HOST) out->flags |= CAI_EMM_CUDA_HOST; /* as it has no hooks for host memory */
    out->kind = upstream->kind;
    out->ctx = pool;
    out->device_alloc = pool_alloc;
    out->device_free = pool_free;
    memcpy(out->name, "pool_plugin", sizeof "pool_plugin");
    out->initialize = pool_initialize;
    out->reset = pool_reset;
    out->memory_info = upstream->memory_info ? pool_memory_info : NULL;
    out->ipc_handle = upstream->ipc_handle ? pool_ipc_handle : NULL;
}
#endif
